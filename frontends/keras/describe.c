/* What a model takes and gives as its file says it, for `tvmcc inspect`. */
#include "frontends/keras/keras.h"

static SignatureTensor *describe_ports(Ctx *c, const KerasPorts *ports, bool inputs)
{
    SignatureTensor *out = NEW_ARRAY(c->arena, SignatureTensor, ports->n + 1);

    for (uint32_t i = 0; i < ports->n; i++) {
        const KerasPort *p = &ports->at[i];
        InputDim        *dims = NEW_ARRAY(c->arena, InputDim, MAX_RANK);
        DType            t;

        out[i] = (SignatureTensor){.name = p->name, .type = "?", .ndim = UINT32_MAX, .dims = dims};
        if (!inputs)
            continue;
        keras_shape(p, &out[i].ndim, dims);
        out[i].type = keras_dtype(p->dtype, &t) ? dtype_text(c, t) : intern(c->strings, p->dtype);
    }
    return out;
}

/* Layers were read KERAS_MAX_NESTING deep at most. */
static void count_layers(const KerasLayer *l, uint32_t *n)
{
    for (uint32_t i = 0; i < l->kids.n; i++)
        count_layers(l->kids.at[i], n);
    *n += l->model == NULL;
}

static void tally(Ctx *c, const KerasLayer *l, Map *index, ModelSignature *out, OpTally *ops)
{
    if (!l->model)
        signature_count(c, index, out, ops, l->class_name);
    for (uint32_t i = 0; i < l->kids.n; i++)
        tally(c, l->kids.at[i], index, out, ops);
}

bool keras_describe(Ctx *c, const char *path, Bytes file, UNUSED const ImportOptions *o,
                    ModelSignature *out)
{
    KerasPorts   in = {0}, res = {0};
    KerasLayer  *l = NULL;
    KerasArchive a;
    OpTally     *ops;
    uint32_t     n = 0;

    if (keras_read_archive(c, (Loc){.file = path}, file, &a) &&
        (l = keras_read_config(c, path, &a))) {
        keras_inputs(c, l, &in);
        keras_outputs(c, l, &res);
        out->inputs = describe_ports(c, &in, true);
        out->outputs = describe_ports(c, &res, false);
        out->ninputs = in.n;
        out->noutputs = res.n;
        count_layers(l, &n);
        ops = NEW_ARRAY(c->arena, OpTally, n + 1);
        tally(c, l, map_new(c->scratch), out, ops);
        out->ops = ops;
    }
    json_decref(a.config);
    return l != NULL;
}
