/* The messages of TensorFlow's .proto files that carry a model, as field tables for
 * formats/protobuf.c, with their names for text. */
#include "frontends/tensorflow/tensorflow.h"

#include <string.h>

#define MESSAGE(var, T, table) const PbMessage var = {#T, sizeof(T), COUNT(table), table}
#define F(n, k, T, member, text) \
    {.number = n, .kind = k, .offset = offsetof(T, member), .name = text}
#define H(n, k, T, member, flag, text) \
    {.number = n, .kind = k, .offset = offsetof(T, member), .has = offsetof(T, flag), .name = text}
#define M(n, k, T, member, message, text) \
    {.number = n, .kind = k, .offset = offsetof(T, member), .sub = &(message), .name = text}
#define E(n, k, T, member, text) \
    {.number = n, .kind = k, .offset = offsetof(T, member), .name = text, .words = types}

/* Numbers of element types, in text. */
static const PbEnum types[] = {{"DT_FLOAT", TF_FLOAT},
                               {"DT_DOUBLE", TF_DOUBLE},
                               {"DT_INT32", TF_INT32},
                               {"DT_UINT8", TF_UINT8},
                               {"DT_INT16", TF_INT16},
                               {"DT_INT8", TF_INT8},
                               {"DT_STRING", TF_STRING},
                               {"DT_COMPLEX64", TF_COMPLEX64},
                               {"DT_INT64", TF_INT64},
                               {"DT_BOOL", TF_BOOL},
                               {"DT_BFLOAT16", TF_BFLOAT16},
                               {"DT_UINT16", TF_UINT16},
                               {"DT_HALF", TF_HALF},
                               {"DT_RESOURCE", TF_RESOURCE},
                               {"DT_VARIANT", TF_VARIANT},
                               {"DT_UINT32", TF_UINT32},
                               {"DT_UINT64", TF_UINT64},
                               {"DT_FLOAT_REF", TF_REF + TF_FLOAT},
                               {"DT_INT32_REF", TF_REF + TF_INT32},
                               {"DT_INT64_REF", TF_REF + TF_INT64},
                               {"DT_BOOL_REF", TF_REF + TF_BOOL},
                               {NULL, 0}};

static const PbField dim_fields[] = {
    F(1, PB_INT, TfDim, size, "size"),
    F(2, PB_TEXT, TfDim, name, "name"),
};
static MESSAGE(tf_dim, TfDim, dim_fields);

static const PbField shape_fields[] = {
    M(2, PB_MSGS, TfShape, dim, tf_dim, "dim"),
    F(3, PB_INT, TfShape, unknown_rank, "unknown_rank"),
};
static MESSAGE(tf_shape_message, TfShape, shape_fields);

static const PbField tensor_fields[] = {
    E(1, PB_INT, TfTensor, dtype, "dtype"),
    M(2, PB_MSG, TfTensor, shape, tf_shape_message, "tensor_shape"),
    F(4, PB_BYTES, TfTensor, content, "tensor_content"),
    F(5, PB_FLOATS, TfTensor, float_val, "float_val"),
    F(6, PB_DOUBLES, TfTensor, double_val, "double_val"),
    F(7, PB_INTS, TfTensor, int_val, "int_val"),
    F(8, PB_BLOBS, TfTensor, string_val, "string_val"),
    F(9, PB_FLOATS, TfTensor, scomplex_val, "scomplex_val"),
    F(10, PB_INTS, TfTensor, int64_val, "int64_val"),
    F(11, PB_INTS, TfTensor, bool_val, "bool_val"),
    F(13, PB_INTS, TfTensor, half_val, "half_val"),
    F(16, PB_INTS, TfTensor, uint32_val, "uint32_val"),
    F(17, PB_INTS, TfTensor, uint64_val, "uint64_val"),
};
static MESSAGE(tf_tensor, TfTensor, tensor_fields);

static const PbMessage tf_value;

static const PbField attr_fields[] = {
    F(1, PB_TEXT, TfAttr, key, "key"),
    M(2, PB_MSG, TfAttr, value, tf_value, "value"),
};
static MESSAGE(tf_attr_entry, TfAttr, attr_fields);

static const PbField func_fields[] = {
    F(1, PB_TEXT, TfFunc, name, "name"),
    M(2, PB_MSGS, TfFunc, attr, tf_attr_entry, "attr"),
};
static MESSAGE(tf_func, TfFunc, func_fields);

static const PbField list_fields[] = {
    F(2, PB_BLOBS, TfListValue, s, "s"),
    F(3, PB_INTS, TfListValue, i, "i"),
    F(4, PB_FLOATS, TfListValue, f, "f"),
    F(5, PB_INTS, TfListValue, b, "b"),
    E(6, PB_INTS, TfListValue, type, "type"),
    M(7, PB_MSGS, TfListValue, shape, tf_shape_message, "shape"),
    M(9, PB_MSGS, TfListValue, func, tf_func, "func"),
};
static MESSAGE(tf_list, TfListValue, list_fields);

static const PbField value_fields[] = {
    M(1, PB_MSG, TfValueDef, list, tf_list, "list"),
    H(2, PB_BYTES, TfValueDef, s, has_s, "s"),
    H(3, PB_INT, TfValueDef, i, has_i, "i"),
    H(4, PB_FLOAT, TfValueDef, f, has_f, "f"),
    H(5, PB_INT, TfValueDef, b, has_b, "b"),
    {.number = 6,
     .kind = PB_INT,
     .offset = offsetof(TfValueDef, type),
     .has = offsetof(TfValueDef, has_type),
     .name = "type",
     .words = types},
    M(7, PB_MSG, TfValueDef, shape, tf_shape_message, "shape"),
    M(8, PB_MSG, TfValueDef, tensor, tf_tensor, "tensor"),
    F(9, PB_TEXT, TfValueDef, placeholder, "placeholder"),
    M(10, PB_MSG, TfValueDef, func, tf_func, "func"),
};
static MESSAGE(tf_value, TfValueDef, value_fields);

static const PbField node_fields[] = {
    F(1, PB_TEXT, TfNodeDef, name, "name"),
    F(2, PB_TEXT, TfNodeDef, op, "op"),
    F(3, PB_TEXTS, TfNodeDef, input, "input"),
    M(5, PB_MSGS, TfNodeDef, attr, tf_attr_entry, "attr"),
};
static MESSAGE(tf_node_def, TfNodeDef, node_fields);

static const PbField arg_fields[] = {
    F(1, PB_TEXT, TfArg, name, "name"),
    E(3, PB_INT, TfArg, type, "type"),
    F(5, PB_TEXT, TfArg, number_attr, "number_attr"),
    F(6, PB_TEXT, TfArg, type_list_attr, "type_list_attr"),
};
static MESSAGE(tf_arg, TfArg, arg_fields);

static const PbField signature_fields[] = {
    F(1, PB_TEXT, TfSignatureDef, name, "name"),
    M(2, PB_MSGS, TfSignatureDef, input, tf_arg, "input_arg"),
    M(3, PB_MSGS, TfSignatureDef, output, tf_arg, "output_arg"),
};
static MESSAGE(tf_signature, TfSignatureDef, signature_fields);

static const PbField ret_fields[] = {
    F(1, PB_TEXT, TfRet, key, "key"),
    F(2, PB_TEXT, TfRet, value, "value"),
};
static MESSAGE(tf_ret, TfRet, ret_fields);

static const PbField function_fields[] = {
    M(1, PB_MSG, TfFunctionDef, signature, tf_signature, "signature"),
    M(3, PB_MSGS, TfFunctionDef, node, tf_node_def, "node_def"),
    M(4, PB_MSGS, TfFunctionDef, ret, tf_ret, "ret"),
};
static MESSAGE(tf_function_def, TfFunctionDef, function_fields);

static const PbField library_fields[] = {
    M(1, PB_MSGS, TfLibrary, function, tf_function_def, "function"),
};
static MESSAGE(tf_library, TfLibrary, library_fields);

static const PbField graph_fields[] = {
    M(1, PB_MSGS, TfGraphDef, node, tf_node_def, "node"),
    M(2, PB_MSG, TfGraphDef, library, tf_library, "library"),
};
MESSAGE(tf_graph_def, TfGraphDef, graph_fields);

static const PbField port_fields[] = {
    F(1, PB_TEXT, TfPortDef, name, "name"),
    E(2, PB_INT, TfPortDef, dtype, "dtype"),
    M(3, PB_MSG, TfPortDef, shape, tf_shape_message, "tensor_shape"),
};
static MESSAGE(tf_port_def, TfPortDef, port_fields);

static const PbField port_entry_fields[] = {
    F(1, PB_TEXT, TfPortEntry, key, "key"),
    M(2, PB_MSG, TfPortEntry, value, tf_port_def, "value"),
};
static MESSAGE(tf_port_entry, TfPortEntry, port_entry_fields);

static const PbField entry_def_fields[] = {
    M(1, PB_MSGS, TfEntryDef, input, tf_port_entry, "inputs"),
    M(2, PB_MSGS, TfEntryDef, output, tf_port_entry, "outputs"),
    F(3, PB_TEXT, TfEntryDef, method, "method_name"),
};
static MESSAGE(tf_entry_def, TfEntryDef, entry_def_fields);

static const PbField entry_fields[] = {
    F(1, PB_TEXT, TfEntry, key, "key"),
    M(2, PB_MSG, TfEntry, value, tf_entry_def, "value"),
};
static MESSAGE(tf_entry, TfEntry, entry_fields);

static const PbField info_fields[] = {
    F(4, PB_TEXTS, TfMetaInfo, tags, "tags"),
};
static MESSAGE(tf_info, TfMetaInfo, info_fields);

static const PbField saver_fields[] = {
    F(3, PB_TEXT, TfSaver, restore, "restore_op_name"),
};
static MESSAGE(tf_saver, TfSaver, saver_fields);

static const PbField meta_fields[] = {
    M(1, PB_MSG, TfMetaGraph, info, tf_info, "meta_info_def"),
    M(2, PB_MSG, TfMetaGraph, graph, tf_graph_def, "graph_def"),
    M(3, PB_MSG, TfMetaGraph, saver, tf_saver, "saver_def"),
    M(5, PB_MSGS, TfMetaGraph, entry, tf_entry, "signature_def"),
};
static MESSAGE(tf_meta, TfMetaGraph, meta_fields);

static const PbField saved_fields[] = {
    F(1, PB_INT, TfSavedModel, version, "saved_model_schema_version"),
    M(2, PB_MSGS, TfSavedModel, meta, tf_meta, "meta_graphs"),
};
MESSAGE(tf_saved_model, TfSavedModel, saved_fields);

static const PbField header_fields[] = {
    F(1, PB_INT, TfBundleHeader, shards, "num_shards"),
    F(2, PB_INT, TfBundleHeader, endianness, "endianness"),
};
MESSAGE(tf_bundle_header, TfBundleHeader, header_fields);

static const PbField bundle_fields[] = {
    F(1, PB_INT, TfBundleEntry, dtype, "dtype"),
    M(2, PB_MSG, TfBundleEntry, shape, tf_shape_message, "shape"),
    F(3, PB_INT, TfBundleEntry, shard, "shard_id"),
    F(4, PB_INT, TfBundleEntry, offset, "offset"),
    F(5, PB_INT, TfBundleEntry, size, "size"),
    F(7, PB_BLOBS, TfBundleEntry, slices, "slices"),
};
MESSAGE(tf_bundle_entry, TfBundleEntry, bundle_fields);

bool tf_dtype(int64_t type, DType *out)
{
    switch (type % TF_REF) {
    case TF_FLOAT: *out = DT_F32; return true;
    case TF_DOUBLE: *out = DT_F64; return true;
    case TF_INT32: *out = DT_I32; return true;
    case TF_UINT8: *out = DT_U8; return true;
    case TF_INT16: *out = DT_I16; return true;
    case TF_INT8: *out = DT_I8; return true;
    case TF_INT64: *out = DT_I64; return true;
    case TF_BOOL: *out = DT_BOOL; return true;
    case TF_BFLOAT16: *out = DT_BF16; return true;
    case TF_UINT16: *out = DT_U16; return true;
    case TF_HALF: *out = DT_F16; return true;
    case TF_UINT32: *out = DT_U32; return true;
    case TF_UINT64: *out = DT_U64; return true;
    default: return false;
    }
}

const char *tf_dtype_name(Ctx *c, int64_t type)
{
    DType t;

    if (tf_dtype(type, &t))
        return dtype_text(c, t);
    switch (type % TF_REF) {
    case TF_STRING: return "string";
    case TF_COMPLEX64: return "complex64";
    case TF_RESOURCE: return "resource";
    case TF_VARIANT: return "variant";
    default: return arena_printf(c->arena, "type %lld", (long long)type);
    }
}
