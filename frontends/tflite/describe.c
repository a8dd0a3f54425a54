/* What a model takes and gives as its file says it, for `tvmcc inspect`. */
#include "frontends/tflite/tflite.h"

static void describe_tensor(Ctx *c, const TfliteModel *m, int64_t i, bool output,
                            SignatureTensor *out)
{
    const TfliteTensor *t = tflite_tensor(m->main, i);
    bool                known = t->signature.n == t->shape.n;
    InputDim           *dims = NEW_ARRAY(c->arena, InputDim, t->shape.n + 1);

    for (uint32_t k = 0; k < t->shape.n; k++)
        dims[k] = (InputDim){fb_int_at(known ? t->signature : t->shape, FB_I32, k), NULL};
    *out = (SignatureTensor){tflite_port_name(c, m, i, output), tflite_dtype_name(t->type),
                             t->shape.n, dims, SIGNATURE_TENSOR};
}

static SignatureTensor *describe_list(Ctx *c, const TfliteModel *m, FbVector list, bool output)
{
    SignatureTensor *out = NEW_ARRAY(c->arena, SignatureTensor, list.n + 1);

    for (uint32_t i = 0; i < list.n; i++)
        describe_tensor(c, m, fb_int_at(list, FB_I32, i), output, &out[i]);
    return out;
}

/* In the order in which they are met. */
static void describe_operators(Ctx *c, const TfliteModel *m, ModelSignature *out)
{
    const TfliteGraph *g = m->main;
    Map               *index = map_new(c->scratch); /* name to number, plus one */
    OpTally           *ops = NEW_ARRAY(c->arena, OpTally, g->operators.n + 1);

    for (uint32_t i = 0; i < g->operators.n; i++)
        signature_count(c, index, out, ops,
                        tflite_op_name(c, tflite_opcode(m, g->operators.at[i])));
}

bool tflite_describe(Ctx *c, const char *path, Bytes file, const ImportOptions *o,
                     ModelSignature *out)
{
    TfliteModel        m;
    const TfliteGraph *g;

    if (!tflite_read(c, (Loc){.file = path}, file, o->signature, &m))
        return false;
    g = m.main;
    out->name = m.signature ? m.signature->key : NULL;
    out->names = tflite_signatures(c, &m, &out->nnames);
    out->ninputs = g->in.n;
    out->noutputs = g->out.n;
    out->inputs = describe_list(c, &m, g->in, false);
    out->outputs = describe_list(c, &m, g->out, true);
    describe_operators(c, &m, out);
    return true;
}
