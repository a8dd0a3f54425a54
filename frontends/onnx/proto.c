/* The messages of onnx.proto that carry a model, as field tables for formats/protobuf.c. */
#include "frontends/onnx/onnx.h"

#define MESSAGE(var, T, table) const PbMessage var = {#T, sizeof(T), COUNT(table), table}
#define F(number, kind, T, member) {number, kind, offsetof(T, member), 0, NULL, NULL, NULL}
#define H(number, kind, T, member, has) \
    {number, kind, offsetof(T, member), offsetof(T, has), NULL, NULL, NULL}
#define M(number, kind, T, member, sub) {number, kind, offsetof(T, member), 0, &sub, NULL, NULL}

static const PbMessage onnx_graph;

static const PbField   other_fields[] = {{0}};
static const PbMessage onnx_other = {"OnnxOther", sizeof(OnnxOther), 0, other_fields};

static const PbField dim_fields[] = {
    H(1, PB_INT, OnnxDim, value, has_value),
    F(2, PB_TEXT, OnnxDim, param),
};
static MESSAGE(onnx_dim, OnnxDim, dim_fields);

static const PbField shape_fields[] = {
    M(1, PB_MSGS, OnnxShape, dims, onnx_dim),
};
static MESSAGE(onnx_shape, OnnxShape, shape_fields);

static const PbField tensor_type_fields[] = {
    F(1, PB_INT, OnnxTensorType, elem_type),
    M(2, PB_MSG, OnnxTensorType, shape, onnx_shape),
};
static MESSAGE(onnx_tensor_type, OnnxTensorType, tensor_type_fields);

static const PbMessage onnx_type;

static const PbField of_type_fields[] = {
    M(1, PB_MSG, OnnxOfType, type, onnx_type),
};
static MESSAGE(onnx_of_type, OnnxOfType, of_type_fields);

static const PbField type_fields[] = {
    M(1, PB_MSG, OnnxType, tensor, onnx_tensor_type),
    M(4, PB_MSG, OnnxType, sequence, onnx_of_type),
    M(5, PB_MSG, OnnxType, map, onnx_other),
    M(8, PB_MSG, OnnxType, sparse, onnx_other),
    M(9, PB_MSG, OnnxType, optional, onnx_of_type),
};
static MESSAGE(onnx_type, OnnxType, type_fields);

static const PbField value_fields[] = {
    F(1, PB_TEXT, OnnxValue, name),
    M(2, PB_MSG, OnnxValue, type, onnx_type),
};
static MESSAGE(onnx_value, OnnxValue, value_fields);

static const PbField attr_fields[] = {
    F(1, PB_TEXT, OnnxAttr, name),
    F(2, PB_FLOAT, OnnxAttr, f),
    F(3, PB_INT, OnnxAttr, i),
    F(4, PB_BYTES, OnnxAttr, s),
    M(5, PB_MSG, OnnxAttr, t, onnx_tensor),
    M(6, PB_MSG, OnnxAttr, g, onnx_graph),
    F(7, PB_FLOATS, OnnxAttr, floats),
    F(8, PB_INTS, OnnxAttr, ints),
    F(9, PB_BLOBS, OnnxAttr, strings),
    F(20, PB_INT, OnnxAttr, type),
    F(21, PB_TEXT, OnnxAttr, ref),
};
static MESSAGE(onnx_attr, OnnxAttr, attr_fields);

static const PbField node_fields[] = {
    F(1, PB_TEXTS, OnnxNode, input),
    F(2, PB_TEXTS, OnnxNode, output),
    F(3, PB_TEXT, OnnxNode, name),
    F(4, PB_TEXT, OnnxNode, op_type),
    M(5, PB_MSGS, OnnxNode, attribute, onnx_attr),
    F(7, PB_TEXT, OnnxNode, domain),
};
static MESSAGE(onnx_node, OnnxNode, node_fields);

static const PbField graph_fields[] = {
    M(1, PB_MSGS, OnnxGraph, node, onnx_node),
    F(2, PB_TEXT, OnnxGraph, name),
    M(5, PB_MSGS, OnnxGraph, initializer, onnx_tensor),
    M(11, PB_MSGS, OnnxGraph, input, onnx_value),
    M(12, PB_MSGS, OnnxGraph, output, onnx_value),
    M(13, PB_MSGS, OnnxGraph, value_info, onnx_value),
    M(15, PB_MSGS, OnnxGraph, sparse, onnx_other),
};
static MESSAGE(onnx_graph, OnnxGraph, graph_fields);

static const PbField opset_fields[] = {
    F(1, PB_TEXT, OnnxOpset, domain),
    F(2, PB_INT, OnnxOpset, version),
};
static MESSAGE(onnx_opset, OnnxOpset, opset_fields);

static const PbField function_fields[] = {
    F(1, PB_TEXT, OnnxFunction, name),
    F(4, PB_TEXTS, OnnxFunction, input),
    F(5, PB_TEXTS, OnnxFunction, output),
    F(6, PB_TEXTS, OnnxFunction, attribute),
    M(7, PB_MSGS, OnnxFunction, node, onnx_node),
    M(9, PB_MSGS, OnnxFunction, opset_import, onnx_opset),
    F(10, PB_TEXT, OnnxFunction, domain),
    M(11, PB_MSGS, OnnxFunction, attribute_proto, onnx_attr),
    M(12, PB_MSGS, OnnxFunction, value_info, onnx_value),
};
static MESSAGE(onnx_function, OnnxFunction, function_fields);

static const PbField model_fields[] = {
    F(1, PB_INT, OnnxModel, ir_version),
    M(7, PB_MSG, OnnxModel, graph, onnx_graph),
    M(8, PB_MSGS, OnnxModel, opset_import, onnx_opset),
    M(25, PB_MSGS, OnnxModel, functions, onnx_function),
};
MESSAGE(onnx_model, OnnxModel, model_fields);

bool onnx_dtype(int64_t type, DType *out)
{
    *out = (DType){.lanes = 1};
    return onnx_dtype_code(type, &out->code, &out->bits) && dtype_known(*out);
}
