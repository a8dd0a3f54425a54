/* What a model takes and gives as its file says it, for `tvmcc inspect`: also where dimensions are
 * open, or where it could not be imported. */
#include "frontends/onnx/onnx.h"

#include <ctype.h>
#include <string.h>

static const char *type_name(Ctx *c, const OnnxType *t)
{
    DType dtype;
    char *text;

    if (t && t->optional)
        return arena_printf(c->arena, "optional(%s)", type_name(c, t->optional->type));
    if (t && t->sequence)
        return arena_printf(c->arena, "sequence(%s)", type_name(c, t->sequence->type));
    if (!t || !t->tensor)
        return t && t->map ? "map" : "?";
    if (onnx_dtype(t->tensor->elem_type, &dtype))
        return dtype_text(c, dtype);
    text = arena_printf(c->arena, "%s", onnx_dtype_text(t->tensor->elem_type));
    for (char *p = text; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return text;
}

/* A tensor that is an input or output, or of which there are several or perhaps none. */
static SignatureKind kind_of(const OnnxType *t)
{
    const OnnxType *of = t && t->optional ? t->optional->type : t;
    const OnnxType *each = of && of->sequence ? of->sequence->type : of;

    if (!each || !each->tensor)
        return SIGNATURE_OTHER;
    return t == each     ? SIGNATURE_TENSOR
           : t->sequence ? SIGNATURE_SEQUENCE
           : of == each  ? SIGNATURE_OPTIONAL
                         : SIGNATURE_OPTIONAL_SEQUENCE;
}

static void describe_tensor(Ctx *c, const OnnxValue *v, SignatureTensor *out)
{
    const OnnxTensorType *t = v->type ? v->type->tensor : NULL;
    uint32_t              n = t && t->shape ? t->shape->dims.n : 0;
    InputDim             *dims = NEW_ARRAY(c->arena, InputDim, n + 1);

    for (uint32_t i = 0; i < n; i++) {
        const OnnxDim *d = t->shape->dims.at[i];
        bool           known = d->has_value && d->value >= 0;

        dims[i] = (InputDim){known ? d->value : -1,
                             known || shapes_placeholder(d->param) ? NULL : d->param};
    }
    *out = (SignatureTensor){onnx_text(v->name), type_name(c, v->type),
                             t && t->shape ? n : UINT32_MAX, dims, kind_of(v->type)};
}

static SignatureTensor *describe_tensors(Ctx *c, const PbMsgs *values, Map *constants, uint32_t *n)
{
    SignatureTensor *out = NEW_ARRAY(c->arena, SignatureTensor, values->n + 1);

    *n = 0;
    for (uint32_t i = 0; i < values->n; i++) {
        const OnnxValue *v = values->at[i];

        if (!map_get(constants, PTR_KEY(intern(c->strings, onnx_text(v->name)))))
            describe_tensor(c, v, &out[(*n)++]);
    }
    return out;
}

/* In the order in which they are met; those of subgraphs count with the node around them. */
static void graph_operators(Ctx *c, const OnnxGraph *g, ModelSignature *out)
{
    Map     *index = map_new(c->scratch); /* name to number, plus one */
    OpTally *ops = NEW_ARRAY(c->arena, OpTally, g->node.n + 1);

    for (uint32_t i = 0; i < g->node.n; i++) {
        const OnnxNode *p = g->node.at[i];
        const char     *domain = onnx_domain(onnx_text(p->domain));
        const char     *op = onnx_text(p->op_type);

        signature_count(c, index, out, ops,
                        *domain ? arena_printf(c->arena, "%s.%s", domain, op) : op);
    }
}

bool onnx_describe(Ctx *c, const char *path, Bytes file, UNUSED const ImportOptions *o,
                   ModelSignature *out)
{
    OnnxModel  model;
    Map       *constants = map_new(c->scratch), *none = map_new(c->scratch);
    OnnxGraph *g;

    if (!onnx_read(c, path, file, &model))
        return false;
    g = model.graph;
    for (uint32_t i = 0; i < g->initializer.n; i++) {
        const OnnxTensor *t = g->initializer.at[i];

        map_put(constants, PTR_KEY(intern(c->strings, onnx_text(t->name))), g->initializer.at[i]);
    }
    out->inputs = describe_tensors(c, &g->input, constants, &out->ninputs);
    out->outputs = describe_tensors(c, &g->output, none, &out->noutputs);
    graph_operators(c, g, out);
    return true;
}
