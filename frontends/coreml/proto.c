/* The messages of Core ML's .proto files that carry a model, as field tables for
 * formats/protobuf.c.  Layers stay bytes: their messages are in records.def. */
#include "frontends/coreml/coreml.h"

#include <string.h>

#define MESSAGE(var, T, table) const PbMessage var = {#T, sizeof(T), COUNT(table), table}
#define F(n, k, T, member) {.number = n, .kind = k, .offset = offsetof(T, member)}
#define H(n, k, T, member, flag) \
    {.number = n, .kind = k, .offset = offsetof(T, member), .has = offsetof(T, flag)}
#define M(n, k, T, member, message) \
    {.number = n, .kind = k, .offset = offsetof(T, member), .sub = &(message)}

static const PbField   no_fields[] = {{0}};
static const PbMessage empty = {"CmlEmpty", sizeof(CmlEmpty), 0, no_fields};

/* ---- FeatureTypes.proto --------------------------------------------------------------------------- */

static const PbField range_fields[] = {
    F(1, PB_INT, CmlRange, lo),
    F(2, PB_INT, CmlRange, hi),
};
static MESSAGE(range, CmlRange, range_fields);

static const PbField shape_fields[] = {F(1, PB_INTS, CmlShape, shape)};
static MESSAGE(shape, CmlShape, shape_fields);

static const PbField shapes_fields[] = {M(1, PB_MSGS, CmlShapes, list, shape)};
static MESSAGE(shapes, CmlShapes, shapes_fields);

static const PbField ranges_fields[] = {M(1, PB_MSGS, CmlRanges, list, range)};
static MESSAGE(ranges, CmlRanges, ranges_fields);

static const PbField size_fields[] = {
    F(1, PB_INT, CmlSize, width),
    F(2, PB_INT, CmlSize, height),
};
static MESSAGE(size, CmlSize, size_fields);

static const PbField sizes_fields[] = {M(1, PB_MSGS, CmlShapes, list, size)};
static MESSAGE(sizes, CmlShapes, sizes_fields);

static const PbField size_range_fields[] = {
    M(1, PB_MSG, CmlSizeRange, width, range),
    M(2, PB_MSG, CmlSizeRange, height, range),
};
static MESSAGE(size_range, CmlSizeRange, size_range_fields);

static const PbField array_fields[] = {
    F(1, PB_INTS, CmlArrayType, shape),
    F(2, PB_INT, CmlArrayType, type),
    M(21, PB_MSG, CmlArrayType, enumerated, shapes),
    M(31, PB_MSG, CmlArrayType, range, ranges),
};
static MESSAGE(array, CmlArrayType, array_fields);

static const PbField image_fields[] = {
    F(1, PB_INT, CmlImageType, width),
    F(2, PB_INT, CmlImageType, height),
    F(3, PB_INT, CmlImageType, color),
    M(21, PB_MSG, CmlImageType, enumerated, sizes),
    M(31, PB_MSG, CmlImageType, range, size_range),
};
static MESSAGE(image, CmlImageType, image_fields);

static const PbField state_fields[] = {M(1, PB_MSG, CmlStateType, array, array)};
static MESSAGE(state, CmlStateType, state_fields);

static const PbField type_fields[] = {
    M(1, PB_MSG, CmlFeatureType, integer, empty),  M(2, PB_MSG, CmlFeatureType, number, empty),
    M(3, PB_MSG, CmlFeatureType, text, empty),     M(4, PB_MSG, CmlFeatureType, image, image),
    M(5, PB_MSG, CmlFeatureType, array, array),    M(6, PB_MSG, CmlFeatureType, dictionary, empty),
    M(7, PB_MSG, CmlFeatureType, sequence, empty), M(8, PB_MSG, CmlFeatureType, state, state),
    F(1000, PB_INT, CmlFeatureType, optional),
};
static MESSAGE(feature_type, CmlFeatureType, type_fields);

/* ---- Model.proto ---------------------------------------------------------------------------------- */

static const PbField feature_fields[] = {
    F(1, PB_TEXT, CmlFeature, name),
    M(3, PB_MSG, CmlFeature, type, feature_type),
};
static MESSAGE(feature, CmlFeature, feature_fields);

static const PbField interface_fields[] = {
    F(1, PB_TEXT, CmlInterface, name),          M(2, PB_MSGS, CmlInterface, in, feature),
    M(3, PB_MSGS, CmlInterface, out, feature),  F(4, PB_TEXT, CmlInterface, label),
    F(5, PB_TEXT, CmlInterface, probabilities), M(6, PB_MSGS, CmlInterface, state, feature),
};
static MESSAGE(interface, CmlInterface, interface_fields);

static const PbField description_fields[] = {
    M(1, PB_MSGS, CmlDescription, in, feature),
    M(10, PB_MSGS, CmlDescription, out, feature),
    F(11, PB_TEXT, CmlDescription, label),
    F(12, PB_TEXT, CmlDescription, probabilities),
    M(13, PB_MSGS, CmlDescription, state, feature),
    M(20, PB_MSGS, CmlDescription, functions, interface),
    F(21, PB_TEXT, CmlDescription, main),
};
static MESSAGE(description, CmlDescription, description_fields);

/* ---- NeuralNetwork.proto -------------------------------------------------------------------------- */

static const PbField scaler_fields[] = {
    F(10, PB_FLOAT, CmlScaler, scale), F(20, PB_FLOAT, CmlScaler, blue),
    F(21, PB_FLOAT, CmlScaler, green), F(22, PB_FLOAT, CmlScaler, red),
    F(30, PB_FLOAT, CmlScaler, gray),
};
static MESSAGE(scaler, CmlScaler, scaler_fields);

static const PbField mean_fields[] = {F(1, PB_FLOATS, CmlMean, cells)};
static MESSAGE(mean, CmlMean, mean_fields);

static const PbField preprocessing_fields[] = {
    F(1, PB_TEXT, CmlPreprocessing, feature),
    M(10, PB_MSG, CmlPreprocessing, scaler, scaler),
    M(11, PB_MSG, CmlPreprocessing, mean, mean),
};
static MESSAGE(preprocessing, CmlPreprocessing, preprocessing_fields);

static const PbField label_texts_fields[] = {F(1, PB_TEXTS, CmlLabels, t)};
static MESSAGE(label_texts, CmlLabels, label_texts_fields);

static const PbField label_numbers_fields[] = {F(1, PB_INTS, CmlLabels, v)};
static MESSAGE(label_numbers, CmlLabels, label_numbers_fields);

static const PbField network_fields[] = {
    F(1, PB_BLOBS, CmlNetwork, layers),
    M(2, PB_MSGS, CmlNetwork, preprocessing, preprocessing),
    F(5, PB_INT, CmlNetwork, exact_arrays),
    F(6, PB_INT, CmlNetwork, exact_images),
    M(100, PB_MSG, CmlNetwork, texts, label_texts),
    M(101, PB_MSG, CmlNetwork, numbers, label_numbers),
    F(200, PB_TEXT, CmlNetwork, scores),
};
MESSAGE(cml_network, CmlNetwork, network_fields);

static const PbField layer_fields[] = {
    F(1, PB_TEXT, CmlLayerHead, name),
    F(2, PB_TEXTS, CmlLayerHead, in),
    F(3, PB_TEXTS, CmlLayerHead, out),
};
MESSAGE(cml_layer_head, CmlLayerHead, layer_fields);

/* ---- MIL.proto ------------------------------------------------------------------------------------ */

static const PbMessage mil_type, literal, block;

static const PbField const_dim_fields[] = {F(1, PB_INT, CmlConstDim, size)};
static MESSAGE(const_dim, CmlConstDim, const_dim_fields);

static const PbField dim_fields[] = {M(1, PB_MSG, CmlDim, constant, const_dim)};
static MESSAGE(dim, CmlDim, dim_fields);

static const PbField tensor_type_fields[] = {
    F(1, PB_INT, CmlTensorType, type),
    F(2, PB_INT, CmlTensorType, rank),
    M(3, PB_MSGS, CmlTensorType, dims, dim),
};
static MESSAGE(tensor_type, CmlTensorType, tensor_type_fields);

static const PbField of_type_fields[] = {M(1, PB_MSG, CmlOfType, type, mil_type)};
static MESSAGE(of_type, CmlOfType, of_type_fields);

static const PbField mil_type_fields[] = {
    M(1, PB_MSG, CmlType, tensor, tensor_type), M(2, PB_MSG, CmlType, list, of_type),
    M(3, PB_MSG, CmlType, tuple, empty),        M(4, PB_MSG, CmlType, dictionary, empty),
    M(5, PB_MSG, CmlType, state, of_type),
};
static MESSAGE(mil_type, CmlType, mil_type_fields);

static const PbField floats_fields[] = {F(1, PB_FLOATS, CmlPacked, v)};
static MESSAGE(floats, CmlPacked, floats_fields);

static const PbField doubles_fields[] = {F(1, PB_DOUBLES, CmlPacked, v)};
static MESSAGE(doubles, CmlPacked, doubles_fields);

static const PbField ints_fields[] = {F(1, PB_INTS, CmlInts, v)};
static MESSAGE(ints, CmlInts, ints_fields);

static const PbField texts_fields[] = {F(1, PB_TEXTS, CmlTexts, v)};
static MESSAGE(texts, CmlTexts, texts_fields);

static const PbField bytes_fields[] = {F(1, PB_BYTES, CmlBytes, v)};
static MESSAGE(bytes, CmlBytes, bytes_fields);

static const PbField tensor_value_fields[] = {
    M(1, PB_MSG, CmlTensorValue, floats, floats), M(2, PB_MSG, CmlTensorValue, ints, ints),
    M(3, PB_MSG, CmlTensorValue, bools, ints),    M(4, PB_MSG, CmlTensorValue, texts, texts),
    M(5, PB_MSG, CmlTensorValue, longs, ints),    M(6, PB_MSG, CmlTensorValue, doubles, doubles),
    M(7, PB_MSG, CmlTensorValue, bytes, bytes),
};
static MESSAGE(tensor_value, CmlTensorValue, tensor_value_fields);

static const PbField list_fields[] = {M(1, PB_MSGS, CmlList, list, literal)};
static MESSAGE(list, CmlList, list_fields);

static const PbField immediate_fields[] = {
    M(1, PB_MSG, CmlImmediate, tensor, tensor_value),
    M(2, PB_MSG, CmlImmediate, tuple, list),
    M(3, PB_MSG, CmlImmediate, list, list),
};
static MESSAGE(immediate, CmlImmediate, immediate_fields);

static const PbField blob_fields[] = {
    F(1, PB_TEXT, CmlBlob, file),
    F(2, PB_INT, CmlBlob, offset),
};
static MESSAGE(blob, CmlBlob, blob_fields);

static const PbField literal_fields[] = {
    M(2, PB_MSG, CmlLiteral, type, mil_type),
    M(3, PB_MSG, CmlLiteral, immediate, immediate),
    M(5, PB_MSG, CmlLiteral, blob, blob),
};
static MESSAGE(literal, CmlLiteral, literal_fields);

static const PbField binding_fields[] = {
    F(1, PB_TEXT, CmlBinding, name),
    M(2, PB_MSG, CmlBinding, value, literal),
};
static MESSAGE(binding, CmlBinding, binding_fields);

static const PbField bindings_fields[] = {M(1, PB_MSGS, CmlBindings, list, binding)};
static MESSAGE(bindings, CmlBindings, bindings_fields);

static const PbField input_fields[] = {
    F(1, PB_TEXT, CmlInputEntry, key),
    M(2, PB_MSG, CmlInputEntry, value, bindings),
};
static MESSAGE(input_entry, CmlInputEntry, input_fields);

static const PbField attribute_fields[] = {
    F(1, PB_TEXT, CmlAttribute, key),
    M(2, PB_MSG, CmlAttribute, value, literal),
};
static MESSAGE(attribute, CmlAttribute, attribute_fields);

static const PbField named_fields[] = {
    F(1, PB_TEXT, CmlNamed, name),
    M(2, PB_MSG, CmlNamed, type, mil_type),
};
static MESSAGE(named, CmlNamed, named_fields);

static const PbField operation_fields[] = {
    F(1, PB_TEXT, CmlOperation, type),
    M(2, PB_MSGS, CmlOperation, in, input_entry),
    M(3, PB_MSGS, CmlOperation, out, named),
    M(4, PB_MSGS, CmlOperation, blocks, block),
    M(5, PB_MSGS, CmlOperation, attributes, attribute),
};
static MESSAGE(operation, CmlOperation, operation_fields);

static const PbField block_fields[] = {
    M(1, PB_MSGS, CmlBlock, in, named),
    F(2, PB_TEXTS, CmlBlock, out),
    M(3, PB_MSGS, CmlBlock, operations, operation),
};
static MESSAGE(block, CmlBlock, block_fields);

static const PbField block_entry_fields[] = {
    F(1, PB_TEXT, CmlBlockEntry, key),
    M(2, PB_MSG, CmlBlockEntry, value, block),
};
static MESSAGE(block_entry, CmlBlockEntry, block_entry_fields);

static const PbField function_fields[] = {
    M(1, PB_MSGS, CmlFunction, in, named),
    F(2, PB_TEXT, CmlFunction, opset),
    M(3, PB_MSGS, CmlFunction, blocks, block_entry),
};
static MESSAGE(function, CmlFunction, function_fields);

static const PbField function_entry_fields[] = {
    F(1, PB_TEXT, CmlFunctionEntry, key),
    M(2, PB_MSG, CmlFunctionEntry, value, function),
};
static MESSAGE(function_entry, CmlFunctionEntry, function_entry_fields);

static const PbField program_fields[] = {
    F(1, PB_INT, CmlProgram, version),
    M(2, PB_MSGS, CmlProgram, functions, function_entry),
};
static MESSAGE(program, CmlProgram, program_fields);

/* ---- the model ------------------------------------------------------------------------------------ */

static const PbField pipeline_fields[] = {
    M(1, PB_MSGS, CmlPipeline, models, cml_model),
    F(2, PB_TEXTS, CmlPipeline, names),
};
static MESSAGE(pipeline, CmlPipeline, pipeline_fields);

static const PbField pipeline_of_fields[] = {M(1, PB_MSG, CmlPipelineOf, pipeline, pipeline)};
static MESSAGE(pipeline_of, CmlPipelineOf, pipeline_of_fields);

static const PbField pick_top_fields[] = {F(1, PB_INT, CmlPickTop, per_class)};
static MESSAGE(pick_top, CmlPickTop, pick_top_fields);

static const PbField suppression_fields[] = {
    M(1, PB_MSG, CmlSuppression, pick_top, pick_top), F(110, PB_DOUBLE, CmlSuppression, overlap),
    F(111, PB_DOUBLE, CmlSuppression, least),         F(200, PB_TEXT, CmlSuppression, scores_in),
    F(201, PB_TEXT, CmlSuppression, boxes_in),        F(202, PB_TEXT, CmlSuppression, overlap_in),
    F(203, PB_TEXT, CmlSuppression, least_in),        F(210, PB_TEXT, CmlSuppression, scores_out),
    F(211, PB_TEXT, CmlSuppression, boxes_out),
};
static MESSAGE(suppression, CmlSuppression, suppression_fields);

static const PbField model_fields[] = {
#define KIND(n, name)                       \
    {.number = (n),                         \
     .kind = PB_BYTES,                      \
     .offset = offsetof(CmlModel, skipped), \
     .has = offsetof(CmlModel, others) + CML_KIND_##name},
#include "frontends/coreml/kinds.def"
#undef KIND
    F(1, PB_INT, CmlModel, version),
    M(2, PB_MSG, CmlModel, description, description),
    M(200, PB_MSG, CmlModel, classifiers, pipeline_of),
    M(201, PB_MSG, CmlModel, regressors, pipeline_of),
    M(202, PB_MSG, CmlModel, pipeline, pipeline),
    M(303, PB_MSG, CmlModel, regressor, cml_network),
    M(403, PB_MSG, CmlModel, classifier, cml_network),
    M(500, PB_MSG, CmlModel, network, cml_network),
    M(502, PB_MSG, CmlModel, program, program),
    M(610, PB_MSG, CmlModel, suppression, suppression),
};
MESSAGE(cml_model, CmlModel, model_fields);

const CmlNetwork *cml_network_of(const CmlModel *m)
{
    return m->network ? m->network : m->classifier ? m->classifier : m->regressor;
}

const char *cml_kind(const CmlModel *m)
{
    static const char *const names[] = {
#define KIND(number, name) #name,
#include "frontends/coreml/kinds.def"
#undef KIND
    };

    for (uint32_t i = 0; i < CML_OTHERS; i++)
        if (m->others[i])
            return names[i];
    return "that it has";
}

void cml_models(Arena *a, const CmlModel *m, CmlModels *out)
{
    const CmlPipelineOf *of = m->classifiers ? m->classifiers : m->regressors;
    const CmlPipeline   *p = of ? of->pipeline : m->pipeline;

    if (!p)
        vec_push(a, out, m);
    for (uint32_t i = 0; p && i < p->models.n; i++)
        cml_models(a, p->models.at[i], out);
}

/* ---- element types -------------------------------------------------------------------------------- */

bool cml_array_dtype(int64_t type, DType *out)
{
    switch (type) {
    case 0x10000 | 16: *out = DT_F16; return true;
    case 0x10000 | 32: *out = DT_F32; return true;
    case 0x10000 | 64: *out = DT_F32; return true; /* networks compute with 32 bits */
    case 0x20000 | 32: *out = DT_I32; return true;
    case 0x20000 | 8: *out = DT_I8; return true;
    default: return false;
    }
}

static const struct {
    int64_t     number;
    const char *name, *text; /* as `cast` has it */
    DType       type;
} types[] = {
    {1, "bool", "bool", {DT_BOOLEAN, 8, 1}},  {10, "fp16", "f16", {DT_FLOAT, 16, 1}},
    {11, "fp32", "f32", {DT_FLOAT, 32, 1}},   {12, "fp64", "f64", {DT_FLOAT, 64, 1}},
    {13, "bf16", "bf16", {DT_BFLOAT, 16, 1}}, {21, "int8", "i8", {DT_INT, 8, 1}},
    {22, "int16", "i16", {DT_INT, 16, 1}},    {23, "int32", "i32", {DT_INT, 32, 1}},
    {24, "int64", "i64", {DT_INT, 64, 1}},    {25, "int4", "i4", {DT_INT, 8, 1}},
    {31, "uint8", "u8", {DT_UINT, 8, 1}},     {32, "uint16", "u16", {DT_UINT, 16, 1}},
    {33, "uint32", "u32", {DT_UINT, 32, 1}},  {34, "uint64", "u64", {DT_UINT, 64, 1}},
    {35, "uint4", "u4", {DT_UINT, 8, 1}},     {36, "uint2", "u2", {DT_UINT, 8, 1}},
    {37, "uint1", "u1", {DT_UINT, 8, 1}},     {38, "uint6", "u6", {DT_UINT, 8, 1}},
    {39, "uint3", "u3", {DT_UINT, 8, 1}},     {CML_STRING, "string", "string", {DT_POINTER, 64, 1}},
};

bool cml_dtype(int64_t type, DType *out)
{
    for (uint32_t i = 0; i < COUNT(types); i++)
        if (types[i].number == type && type != CML_STRING) {
            *out = types[i].type;
            return true;
        }
    return false;
}

const char *cml_dtype_name(int64_t type)
{
    for (uint32_t i = 0; i < COUNT(types); i++)
        if (types[i].number == type)
            return types[i].text;
    return "a type that is not known";
}

bool cml_dtype_named(const char *name, DType *out)
{
    for (uint32_t i = 0; i < COUNT(types); i++)
        if (!strcmp(types[i].name, name))
            return cml_dtype(types[i].number, out);
    return false;
}
