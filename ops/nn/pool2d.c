/* Pooling: nn.max_pool2d, nn.avg_pool2d and the global forms, NCHW or NCHW<b>c.
 *
 *     %1 = nn.max_pool2d(%0, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1]);
 *
 *     %pad[n, c, y, x, j] = select(the cell lies inside, %d[n, c, y-1, x-1, j], -inf)
 *     %pool[n, c, y, x, j] = max[kh, kw] %pad[n, c, y*2+kh, x*2+kw, j]
 *
 * An average is a sum "pool" divided by the number of cells in "out".  With ceil_mode the last
 * window may hang over the padding; what hangs over counts for nothing, and a window that would
 * start in it is left out. */
#include "ops/common.h"

#include <string.h>

typedef struct {
    int64_t    k[2], stride[2], dilation[2], pad_lo[2], pad_hi[2];
    const Idx *over[2]; /* cells past the padding that the last window covers */
} Pool;

/* Output size of one dimension. */
static const Idx *pool_dim(Ctx *c, Loc loc, const Pool2dAttrs *a, Pool *p, const Type *data,
                           uint32_t i)
{
    Arith     *A = c->arith;
    const Idx *n = data->dims[i + 2], *out, *past;
    int64_t    reach = (p->k[i] - 1) * p->dilation[i];
    const Idx *room = idx_addc(A, n, p->pad_lo[i] + p->pad_hi[i] - reach - 1);
    bool       up = a->ceil_mode;

    if (room->lo < 0 && (!up || idx_addc(A, room, p->stride[i] - 1)->lo < 0))
        return error_at(c, E_TYPE, loc, "a window of %lld does not fit into dimension %u of %s",
                        (long long)reach + 1, i + 2, type_text(c, data));
    out = idx_addc(A, idx_divc(A, idx_addc(A, room, up ? p->stride[i] - 1 : 0), p->stride[i]), 1);
    if (up) /* each window begins before the padding behind */
        out = idx_min(A, out,
                      idx_addc(A, idx_divc(A, idx_addc(A, n, p->pad_lo[i] - 1), p->stride[i]), 1));
    past = idx_sub(A, idx_mulc(A, idx_addc(A, out, -1), p->stride[i]), room);
    p->over[i] = idx_max(A, past, idx_const(A, 0));
    return out;
}

static const Type *pool_sizes(Ctx *c, Loc loc, const Pool2dAttrs *a, const Type *data, Pool *p)
{
    const Idx *dims[5];
    int64_t    block;

    *p = (Pool){0};
    if (!rel_ints(c, loc, "pool_size", a->pool_size, 2, 1) ||
        !rel_ints(c, loc, "strides", a->strides, 2, 1) ||
        !rel_ints(c, loc, "dilation", a->dilation, 2, 1) ||
        !rel_ints(c, loc, "padding", a->padding, 4, 0) ||
        !rel_layout(c, loc, a->layout, "NCHW", &block) ||
        !rel_rank(c, loc, data, block ? 5 : 4, "data"))
        return NULL;
    for (uint32_t i = 0; i < data->n; i++)
        dims[i] = data->dims[i];
    for (uint32_t i = 0; i < 2; i++) {
        p->k[i] = a->pool_size.at[i];
        p->stride[i] = a->strides.at[i];
        p->dilation[i] = a->dilation.at[i];
        p->pad_lo[i] = a->padding.at[i];
        p->pad_hi[i] = a->padding.at[i + 2];
        if (!(dims[i + 2] = pool_dim(c, loc, a, p, data, i)))
            return NULL;
    }
    return rel_tensor(c, loc, data->dtype, data->n, dims);
}

const Type *rel_pool2d(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const Pool2dAttrs *a = attrs;
    const Type        *t;
    Pool               p;
    DType              out;

    if (strcmp(a->algorithm, "direct") &&
        (strcmp(a->algorithm, "rows") || strcmp(a->layout, "NCHW")))
        return error_at(c, E_TYPE, loc, "algorithm '%s' of a pooling in %s is not direct or rows",
                        a->algorithm, a->layout);
    if (!rel_tensors(c, loc, in, nin) || !rel_number(c, loc, in[0]) ||
        !(t = pool_sizes(c, loc, a, in[0], &p)) || !rel_dtype(c, loc, a->out_dtype, t->dtype, &out))
        return NULL;
    return rel_tensor(c, loc, out, t->n, t->dims);
}

/* ---- compute
 * ------------------------------------------------------------------------------------- */

static const char *const pool_axes[] = {"n", "c", "y", "x", "j"};
static const char *const window_axes[] = {"kh", "kw"};

static const Tensor *padded(Ctx *c, const Pool *p, const Tensor *d, const Prim *fill)
{
    const Idx *dims[5], *at[5];
    uint32_t   nd = d->buffer->ndim;
    Pred       inside = PRED_TRUE;

    for (uint32_t i = 0; i < nd; i++)
        dims[i] = d->buffer->extent[i];
    for (uint32_t i = 0; i < 2; i++)
        dims[i + 2] = idx_addc(c->arith, idx_add(c->arith, dims[i + 2], p->over[i]),
                               p->pad_lo[i] + p->pad_hi[i]);
    if (dims[2] == d->buffer->extent[2] && dims[3] == d->buffer->extent[3])
        return d;
    Axes a = te_axes(c, nd, dims, pool_axes);

    for (uint32_t i = 0; i < nd; i++) {
        at[i] = a.at[i];
        if (i != 2 && i != 3)
            continue;
        at[i] = idx_addc(c->arith, a.at[i], -p->pad_lo[i - 2]);
        if (p->pad_lo[i - 2])
            inside = pred_and(c->arith, c->arena, inside, at[i]);
        inside = pred_and(c->arith, c->arena, inside,
                          idx_addc(c->arith, idx_sub(c->arith, d->buffer->extent[i], at[i]), -1));
    }
    return te_compute(c, "pad", d->buffer->dtype, a,
                      prim_select(c, pred_prim(c, inside), te_at(c, d, at), fill));
}

/* The reduction over windows. */
static const Tensor *windows(Ctx *c, const OpCall *call, const Pool *p, const Tensor *d,
                             Combiner comb, DType t)
{
    const Type   *out = call->out[0];
    const Tensor *x = padded(c, p, d, comb_identity(c, comb, d->buffer->dtype));
    Axes          a = te_axes(c, out->n, out->dims, pool_axes);
    Axes          r = te_raxes(c, 2, p->k, window_axes);
    const Idx    *at[5] = {a.at[0], a.at[1], NULL, NULL, a.at[4]};

    for (uint32_t i = 0; i < 2; i++)
        at[i + 2] = idx_add(c->arith, idx_mulc(c->arith, a.at[i + 2], p->stride[i]),
                            idx_mulc(c->arith, r.at[i], p->dilation[i]));
    return te_reduce(c, "pool", t, a, comb, r, prim_cast(c, t, te_at(c, x, at)));
}

/* Rows first, then their cells side by side: kh + kw steps instead of kh * kw, of which the first
 * read plain vectors at any stride. */
static const Tensor *rows_first(Ctx *c, const OpCall *call, const Pool *p, const Tensor *d,
                                Combiner comb, DType t)
{
    const Type   *out = call->out[0];
    const Tensor *x = padded(c, p, d, comb_identity(c, comb, d->buffer->dtype));
    const Idx    *dims[4] = {out->dims[0], out->dims[1], out->dims[2], x->buffer->extent[3]};
    Axes          a = te_axes(c, 4, dims, pool_axes);
    Axes          r = te_raxes(c, 1, &p->k[0], window_axes);
    const Idx    *at[4] = {a.at[0], a.at[1],
                           idx_add(c->arith, idx_mulc(c->arith, a.at[2], p->stride[0]),
                                   idx_mulc(c->arith, r.at[0], p->dilation[0])),
                           a.at[3]};
    const Tensor *rows = te_reduce(c, "rows", t, a, comb, r, prim_cast(c, t, te_at(c, x, at)));

    a = te_axes(c, 4, out->dims, pool_axes);
    r = te_raxes(c, 1, &p->k[1], window_axes + 1);
    const Idx *from[4] = {a.at[0], a.at[1], a.at[2],
                          idx_add(c->arith, idx_mulc(c->arith, a.at[3], p->stride[1]),
                                  idx_mulc(c->arith, r.at[0], p->dilation[1]))};
    return te_reduce(c, "pool", t, a, comb, r, te_at(c, rows, from));
}

static const Tensor *pooled(Ctx *c, const OpCall *call, const Pool *p, const Tensor *d,
                            Combiner comb, DType t)
{
    const Pool2dAttrs *a = call->attrs;

    return !strcmp(a->algorithm, "rows") ? rows_first(c, call, p, d, comb, t)
                                         : windows(c, call, p, d, comb, t);
}

bool te_max_pool2d(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    Pool p;

    if (!pool_sizes(c, call->loc, call->attrs, call->in[0], &p))
        return false;
    out[0] = pooled(c, call, &p, in[0], COMB_MAX, call->out[0]->dtype);
    return true;
}

/* How many cells of the window at y count in dimension i: those inside lo <= cell < hi. */
static const Prim *cells(Ctx *c, const Pool *p, uint32_t i, const Idx *y, const Idx *lo,
                         const Idx *hi)
{
    Arith     *A = c->arith;
    const Idx *first = idx_mulc(A, y, p->stride[i]);

    if (p->dilation[i] == 1)
        return prim_index(
            c, DT_I32,
            idx_sub(A, idx_min(A, idx_addc(A, first, p->k[i]), hi), idx_max(A, first, lo)));
    /* Cells before an end, every dilation-th from `first`. */
    const Idx *below[2] = {lo, hi};
    for (uint32_t k = 0; k < 2; k++) {
        const Idx *n = idx_addc(A, idx_sub(A, below[k], first), p->dilation[i] - 1);

        n = idx_max(A, idx_divc(A, n, p->dilation[i]), idx_const(A, 0));
        below[k] = idx_min(A, n, idx_const(A, p->k[i]));
    }
    return prim_index(c, DT_I32, idx_sub(A, below[1], below[0]));
}

static const Prim *count(Ctx *c, const OpCall *call, const Pool *p, const Axes *a)
{
    const Pool2dAttrs *attrs = call->attrs;
    const Prim        *n[2];

    for (uint32_t i = 0; i < 2; i++) {
        const Idx *size = call->in[0]->dims[i + 2];
        const Idx *lo = idx_const(c->arith, attrs->count_include_pad ? 0 : p->pad_lo[i]);
        const Idx *hi =
            idx_addc(c->arith, size, p->pad_lo[i] + (attrs->count_include_pad ? p->pad_hi[i] : 0));
        bool whole = p->over[i] == idx_const(c->arith, 0) &&
                     (attrs->count_include_pad || (!p->pad_lo[i] && !p->pad_hi[i]));

        n[i] = whole ? prim_int(c, DT_I32, p->k[i]) : cells(c, p, i, a->at[i + 2], lo, hi);
    }
    return prim_mul(c, n[0], n[1]);
}

/* x / n, rounded towards zero.  Integers up to 2^24 may be divided in floats: what is left of 1 / n
 * is more than these round by.  Vectors of integers have no division, but for by a constant. */
static const Prim *quotient(Ctx *c, const Prim *x, const Prim *n, int64_t most)
{
    if (!dtype_eq(x->dtype, DT_I32) || most >= 1 << 24 || n->kind == PRIM_INT)
        return prim_div(c, x, prim_cast(c, x->dtype, n));
    return prim_cast(c, DT_I32, prim_div(c, prim_cast(c, DT_F32, x), prim_cast(c, DT_F32, n)));
}

/* sum / n; integers round towards zero, unless floats or the nearest are asked for.  most: how far
 * from zero an integer sum and half a divisor may be. */
static bool average(Ctx *c, const OpCall *call, const Tensor *sum, const Axes *a, const Prim *n,
                    int64_t most, bool nearest, const Tensor **out)
{
    const Prim *x = te_at(c, sum, a->at);

    if (dtype_is_float(call->out[0]->dtype)) {
        x = prim_cast(c, call->out[0]->dtype, x);
    } else if (nearest) {
        const Prim *half = prim_div(c, prim_cast(c, x->dtype, n), prim_int(c, x->dtype, 2));

        x = prim_select(c, prim_lt(c, x, prim_int(c, x->dtype, 0)), prim_sub(c, x, half),
                        prim_add(c, x, half));
    }
    x = quotient(c, x, n, most);
    return te_out(c, call, a, prim_cast(c, call->out[0]->dtype, x), out);
}

static DType sum_dtype(DType t)
{
    return dtype_is_int(t) && t.bits < 32 ? DT_I32 : t;
}

bool te_avg_pool2d(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const Type *t = call->out[0];
    Pool        p;

    if (!pool_sizes(c, call->loc, call->attrs, call->in[0], &p))
        return false;
    const Tensor *sum = pooled(c, call, &p, in[0], COMB_SUM, sum_dtype(call->in[0]->dtype));
    Axes          a = te_axes(c, t->n, t->dims, pool_axes);

    int64_t most;

    if (call->in[0]->dtype.bits > 16 || !checked_mul(p.k[0], p.k[1], &most) ||
        !checked_mul(most, (INT64_C(1) << call->in[0]->dtype.bits) + 1, &most))
        most = INT64_MAX;
    return average(c, call, sum, &a, count(c, call, &p, &a), most,
                   ((const Pool2dAttrs *)call->attrs)->rounded, out);
}

/* ---- global pooling
 * ------------------------------------------------------------------------------ */

const Type *rel_global_pool2d(Ctx *c, Loc loc, const void *attrs, const Type *const *in,
                              uint32_t nin)
{
    const GlobalPool2dAttrs *a = attrs;
    const Idx               *dims[5];
    int64_t                  block;
    DType                    t;

    if (!rel_tensors(c, loc, in, nin) || !rel_number(c, loc, in[0]) ||
        !rel_dtype(c, loc, a->out_dtype, in[0]->dtype, &t) ||
        !rel_layout(c, loc, a->layout, "NCHW", &block) ||
        !rel_rank(c, loc, in[0], block ? 5 : 4, "data"))
        return NULL;
    for (uint32_t i = 0; i < in[0]->n; i++) {
        bool cell = i == 2 || i == 3;

        if (cell && in[0]->dims[i]->lo < 1)
            return error_at(c, E_TYPE, loc, "pooling of an empty image");
        dims[i] = cell ? idx_const(c->arith, 1) : in[0]->dims[i];
    }
    return rel_tensor(c, loc, t, in[0]->n, dims);
}

static const Tensor *whole_image(Ctx *c, const OpCall *call, const Tensor *d, Combiner comb,
                                 DType t)
{
    Axes       a = te_axes(c, call->out[0]->n, call->out[0]->dims, pool_axes);
    Axes       r = te_axes(c, 2, call->in[0]->dims + 2, window_axes);
    const Idx *at[5] = {a.at[0], a.at[1], r.at[0], r.at[1], a.at[4]};

    return te_reduce(c, "pool", t, a, comb, r, prim_cast(c, t, te_at(c, d, at)));
}

bool te_global_max_pool2d(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    out[0] = whole_image(c, call, in[0], COMB_MAX, call->out[0]->dtype);
    return true;
}

bool te_global_avg_pool2d(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const Type   *t = call->out[0];
    const Tensor *sum = whole_image(c, call, in[0], COMB_SUM, sum_dtype(call->in[0]->dtype));
    Axes          a = te_axes(c, t->n, t->dims, pool_axes);
    const Idx    *n = idx_mul(c->arith, call->in[0]->dims[2], call->in[0]->dims[3]);

    return average(c, call, sum, &a, prim_index(c, DT_I64, n), INT64_MAX, false, out);
}

/* ---- blocked layout
 * -------------------------------------------------------------------------------- */

/* Surplus lanes are zero and stay zero: of zeros the maximum (every window has a real cell) and the
 * average are zero. */
const Expr *block_pool2d(Ctx *c, const Expr *e, const Expr *const *args, uint32_t block)
{
    Pool2dAttrs *b = DUP_ARRAY(c->arena, ATTRS(Pool2dAttrs, e), 1);

    if (args[0]->type->n != 5)
        return NULL;
    b->layout = intern_printf(c->strings, "NCHW%uc", block);
    return expr_call(c, call_op(e), 1, args, b, e->loc);
}

const Expr *block_global_pool2d(Ctx *c, const Expr *e, const Expr *const *args, uint32_t block)
{
    GlobalPool2dAttrs *b = DUP_ARRAY(c->arena, ATTRS(GlobalPool2dAttrs, e), 1);

    if (args[0]->type->n != 5)
        return NULL;
    b->layout = intern_printf(c->strings, "NCHW%uc", block);
    return expr_call(c, call_op(e), 1, args, b, e->loc);
}
