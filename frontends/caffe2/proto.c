/* The messages of caffe2.proto that carry a net, with their names for text. */
#include "frontends/caffe2/caffe2.h"

#define MESSAGE(var, T, table) const PbMessage var = {#T, sizeof(T), COUNT(table), table}
#define F(n, k, T, member, text) \
    {.number = n, .kind = k, .offset = offsetof(T, member), .name = text}
#define H(n, k, T, member, flag, text) \
    {.number = n, .kind = k, .offset = offsetof(T, member), .has = offsetof(T, flag), .name = text}
#define M(n, k, T, member, message, text) \
    {.number = n, .kind = k, .offset = offsetof(T, member), .sub = &(message), .name = text}

static const PbField arg_fields[] = {
    F(1, PB_TEXT, C2Arg, name, "name"),        H(2, PB_FLOAT, C2Arg, f, has_f, "f"),
    H(3, PB_INT, C2Arg, i, has_i, "i"),        H(4, PB_BYTES, C2Arg, s, has_s, "s"),
    F(5, PB_FLOATS, C2Arg, floats, "floats"),  F(6, PB_INTS, C2Arg, ints, "ints"),
    F(7, PB_BLOBS, C2Arg, strings, "strings"), M(8, PB_MSG, C2Arg, net, c2_net, "n"),
};
static MESSAGE(c2_arg, C2Arg, arg_fields);

static const PbField op_fields[] = {
    F(1, PB_TEXTS, C2OpDef, input, "input"),    F(2, PB_TEXTS, C2OpDef, output, "output"),
    F(3, PB_TEXT, C2OpDef, name, "name"),       F(4, PB_TEXT, C2OpDef, type, "type"),
    M(5, PB_MSGS, C2OpDef, arg, c2_arg, "arg"),
};
static MESSAGE(c2_op, C2OpDef, op_fields);

static const PbField net_fields[] = {
    F(1, PB_TEXT, C2Net, name, "name"),
    M(2, PB_MSGS, C2Net, op, c2_op, "op"),
    M(6, PB_MSGS, C2Net, arg, c2_arg, "arg"),
    F(7, PB_TEXTS, C2Net, input, "external_input"),
    F(8, PB_TEXTS, C2Net, output, "external_output"),
};
MESSAGE(c2_net, C2Net, net_fields);
