/* What the file says of variables: their shapes and types, and what follows from the values beside
 * them. */
#include "frontends/mxnet/mxnet.h"

#include <string.h>

bool mx_consumer(const MxGraph *g, uint32_t at, const MxOp **p, uint32_t *operand)
{
    for (uint32_t i = at + 1; i < g->n; i++)
        for (uint32_t k = 0; k < g->op[i].nin; k++)
            if (g->op[i].in[k].node == at) {
                *p = &g->op[i];
                *operand = k;
                return true;
            }
    return false;
}

bool mx_is_trained(Bytes role)
{
    static const char *const roles[] = {"weight", "bias",        "gamma",      "beta",
                                        "mask",   "moving_mean", "moving_var", "parameters"};

    for (uint32_t i = 0; i < COUNT(roles); i++)
        if (role.n == strlen(roles[i]) && !memcmp(role.at, roles[i], role.n))
            return true;
    return false;
}

/* What the values beside an input say of it: its type, and of what is convolved its rank and its
 * channels. */
static void learn(Ctx *c, const MxGraph *g, const MxParams *params, const MxOp *p, DType *t,
                  uint32_t *rank, InputDim *dims)
{
    const MxOp    *w = p->nin > 1 ? &g->op[p->in[1].node] : NULL;
    const MxArray *a = w && !w->op ? mx_param(params, w->name) : NULL;
    const char    *layout, *group;
    int64_t        groups;

    if (!a || !mx_is_trained(mx_arg_role(c, p, 1)) || !dtype_is_float(a->dtype))
        return;
    if (strcmp(p->row->name, "Embedding") != 0)
        *t = a->dtype;
    if (strcmp(p->row->name, "Convolution") != 0 || a->rank < 3 || a->rank > 5 ||
        *rank != UINT32_MAX)
        return;
    layout = mx_attr_text(c, p, "layout");
    group = mx_attr_text(c, p, "num_group");
    if (!mx_parse_int(group, &groups) || groups < 1 || groups > INT32_MAX ||
        a->dims[1] > INT32_MAX || a->dims[a->rank - 1] > INT32_MAX)
        return;
    *rank = a->rank;
    for (uint32_t i = 0; i < a->rank; i++)
        dims[i] = (InputDim){-1, NULL};
    if (layout[0] && layout[strlen(layout) - 1] == 'C')
        dims[a->rank - 1].value = a->dims[a->rank - 1] * groups;
    else
        dims[1].value = a->dims[1] * groups;
}

/* Dimensions of 0 and -1 are what it does not know. */
void mx_declared(Ctx *c, const MxGraph *g, const MxParams *params, uint32_t at, DType *t,
                 uint32_t *rank, InputDim *dims)
{
    const MxOp *p = &g->op[at], *taker;
    const char *shape = mx_attr(p, "__shape__"), *type = mx_attr(p, "__dtype__");
    int64_t     number;
    uint32_t    operand;
    Ints        v;

    *t = DT_F32;
    *rank = UINT32_MAX;
    if (shape && mx_parse_ints(c, shape, &v) && v.n <= MAX_RANK) {
        *rank = v.n;
        for (uint32_t i = 0; i < v.n; i++)
            dims[i] = (InputDim){v.at[i] > 0 ? v.at[i] : -1, NULL};
    }
    if (mx_consumer(g, at, &taker, &operand) && operand == 0 && taker->row)
        learn(c, g, params, taker, t, rank, dims);
    if (type && mx_parse_int(type, &number))
        mx_dtype(number, t);
}
