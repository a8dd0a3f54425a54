/* Operators: the table, and the attribute records as structs. */
#ifndef TVMCC_OPS_H
#define TVMCC_OPS_H

#include "ir/te.h"

/* The C type of an attribute field, by its ATTR_ name. */
typedef int64_t     AttrC_INT;
typedef bool        AttrC_BOOL;
typedef double      AttrC_FLOAT;
typedef const char *AttrC_STR;
typedef DType       AttrC_DTYPE;
typedef Ints        AttrC_INTS;
typedef Floats      AttrC_FLOATS;

#define RECORD(name) typedef struct name {
#define FIELD(record, name, type, fallback) AttrC_##type name;
#define END(name) } name; \
    extern const AttrRecord attrs_##name;
#include "ops/attrs.def"
#undef RECORD
#undef FIELD
#undef END

/* Ids: OP_NN_CONV2D; the row is op_table.at[OP_NN_CONV2D]. */
typedef enum {
#define OP(id, ...) OP_##id,
#include "ops/ops.def"
#undef OP
    OP_COUNT
} OpId;

extern const OpTable op_table;

#endif
