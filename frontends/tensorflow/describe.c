/* What a model takes and gives as its file says it, for `tvmcc inspect`. */
#include "frontends/tensorflow/tensorflow.h"

static SignatureTensor *describe_list(Ctx *c, uint32_t n, const TfPortal *list)
{
    SignatureTensor *out = NEW_ARRAY(c->arena, SignatureTensor, n + 1);

    for (uint32_t i = 0; i < n; i++) {
        const TfPortal *p = &list[i];
        bool            ranked = p->shape && !p->shape->unknown_rank;
        uint32_t        rank = ranked ? p->shape->dim.n : 0;
        InputDim       *dims = NEW_ARRAY(c->arena, InputDim, rank + 1);

        for (uint32_t k = 0; k < rank; k++) {
            int64_t size = ((const TfDim *)p->shape->dim.at[k])->size;

            dims[k] = (InputDim){size < 0 ? -1 : size, NULL};
        }
        out[i] = (SignatureTensor){p->name, p->dtype ? tf_dtype_name(c, p->dtype) : "?",
                                   ranked ? rank : UINT32_MAX, dims, SIGNATURE_TENSOR};
    }
    return out;
}

typedef struct {
    Ctx            *c;
    Map            *index; /* name to number, plus one */
    ModelSignature *out;
    VEC(OpTally) ops;
} Tally;

static void count_node(void *user, const TfGraph *g, const TfOp *p, bool order)
{
    Tally *t = user;

    (void)g;
    if (order)
        return;
    vec_push(t->c->arena, &t->ops, (OpTally){0}); /* room for one more */
    signature_count(t->c, t->index, t->out, t->ops.at, p->op);
}

bool tensorflow_describe(Ctx *c, const char *path, Bytes file, const ImportOptions *o,
                         ModelSignature *out)
{
    TfModel m;
    Tally   t = {.c = c, .index = map_new(c->scratch), .out = out};

    if (!tf_read_model(c, path, file, o->signature, &m))
        return false;
    out->name = m.signature;
    out->nnames = m.nsignatures;
    out->names = m.signatures;
    out->ninputs = m.in.n;
    out->noutputs = m.out.n;
    out->inputs = describe_list(c, m.in.n, m.in.at);
    out->outputs = describe_list(c, m.out.n, m.out.at);
    tf_walk(&m, count_node, &t);
    return true;
}
