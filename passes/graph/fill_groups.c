/* fill_groups: grouped convolutions whose groups give whole vectors.
 *
 *   nn.conv2d(%x, const @w, groups=5)                  // %x: 1 65 34 34, @w: 65 13 3 3
 *     -> %0 = nn.conv2d(%x, const @w', groups=5)       // @w': 80 13 3 3, 3 zeros a group
 *        %1 = reshape(%0)                              // 1 5 16 34 34
 *        %2 = strided_slice(%1, axes=[2], begin=[0], end=[13])
 *        reshape(%2)                                   // 1 65 34 34
 *
 * A block of channels lies within one group, or holds whole ones, so 13 channels a group have no
 * blocked layout, and rows as they are give a few percent of the peak.  The outputs of a group are
 * filled up with zeros where the estimate of layout_choice.c says that it pays, with the cells that
 * are moved once more; data are read as they lie, or a group's inputs are filled up as well, so
 * that they have blocks, and Winograd's algorithm:
 *
 *   nn.conv2d(%x, const @w, groups=8)                  // %x: 1 408 18 4, @w: 408 51 3 3
 *     -> %0 = nn.pad(reshape(%x), ..)                  // 1 8 64 18 4
 *        %1 = nn.conv2d(reshape(%0), const @w', ..)    // @w': 512 64 3 3; and so on
 *
 * Weights must be constant.  Cost: one walk and a copy of the weights. */
#include "passes/graph/graph.h"

/* Channels of a group, as they are and filled up. */
typedef struct {
    int64_t in, out, to_in, to_out;
} Filled;

static const Expr *filled_weights(Ctx *c, const Expr *w, int64_t groups, const Filled *f)
{
    PadAttrs *a = ATTRS_NEW(c, PadAttrs);
    int64_t   kh, kw;

    if (!type_dim(w->type, 2, &kh) || !type_dim(w->type, 3, &kw))
        return NULL;
    a->pad_width =
        ints_dup(c, (int64_t[]){0, 0, 0, f->to_out - f->out, 0, f->to_in - f->in, 0, 0, 0, 0}, 10);
    w = make_reshape(c, w, 5, (int64_t[]){groups, f->out, f->in, kh, kw}, w->loc);
    w = w ? make1(c, "nn.pad", w, a, w->loc) : NULL;
    return w ? make_reshape(c, w, 4, (int64_t[]){groups * f->to_out, f->to_in, kh, kw}, w->loc)
             : NULL;
}

static const Expr *filled_data(Ctx *c, const Expr *x, int64_t groups, const Filled *f)
{
    const Idx *const *d = x->type->dims;
    const Idx *dims[5] = {d[0], idx_const(c->arith, groups), idx_const(c->arith, f->in), d[2],
                          d[3]};

    if (f->to_in == f->in)
        return x;
    x = make_reshape_to(c, x, 5, dims, x->loc);
    x = x ? make_pad(c, x, 2, 0, f->to_in - f->in, 0, x->loc) : NULL;
    dims[1] = idx_const(c->arith, groups * f->to_in);
    dims[2] = dims[3], dims[3] = dims[4];
    return x ? make_reshape_to(c, x, 4, dims, x->loc) : NULL;
}

/* The first `out` of `of` channels of each group. */
static const Expr *real_channels(Ctx *c, const Expr *x, int64_t groups, int64_t out, int64_t of,
                                 const Type *t)
{
    StridedSliceAttrs *a = ATTRS_NEW(c, StridedSliceAttrs);
    const Idx         *dims[5] = {t->dims[0], idx_const(c->arith, groups), idx_const(c->arith, of),
                                  t->dims[2], t->dims[3]};

    a->axes = ints_of(c, 1, 2);
    a->begin = dims_of_i64(c, (int64_t[]){0}, 1);
    a->end = dims_of_i64(c, &out, 1);
    x = make_reshape_to(c, x, 5, dims, x->loc);
    x = x ? make1(c, "strided_slice", x, a, x->loc) : NULL;
    return x ? make_reshape_to(c, x, 4, t->dims, x->loc) : NULL;
}

static const Expr *rewrite(Ctx *c, void *user, const Expr *was, const Expr *e)
{
    int64_t channels;

    (void)was;
    (void)user;
    if (!call_is(e, "nn.conv2d") || !is_float(e) || !is_constant(call_arg(e, 1)) ||
        !type_dim(e->type, 1, &channels))
        return e;
    const Conv2dAttrs *a = ATTRS_OF(Conv2dAttrs, e);
    double             best = conv2d_cycles(c, e, 0, 0);
    int64_t            lanes = c->target->vector_bytes / 4, out = channels / a->groups, in;
    Filled             f = {0};

    if (a->groups < 2 || !type_dim(call_arg(e, 1)->type, 1, &in))
        return e;
    for (int64_t w = lanes; w >= LEAST_LANES; w /= 2)
        for (int both = 0; both < 2; both++) {
            int64_t to = ceil_div(out, w) * w, from = both ? ceil_div(in, w) * w : in;
            double  cycles = (to > out || from > in) && (!both || in >= w)
                                 ? conv2d_cycles(c, e, from, to)
                                 : best;

            if (cycles < best)
                best = cycles, f = (Filled){in, out, from, to};
        }
    if (!f.out)
        return e;
    Conv2dAttrs *now = ATTRS_COPY(c, Conv2dAttrs, e);
    const Expr  *w = filled_weights(c, call_arg(e, 1), a->groups, &f);
    const Expr  *x = filled_data(c, call_arg(e, 0), a->groups, &f);

    now->channels = a->groups * f.to_out;
    x = w && x ? make2(c, "nn.conv2d", x, w, now, e->loc) : NULL;
    return x && f.to_out > out ? real_channels(c, x, a->groups, out, f.to_out, e->type) : x;
}

const Module *fill_groups(Ctx *c, const Module *m)
{
    if (!has_vectors(c->target))
        return m;
    const Module *now = module_rewrite(c, m, rewrite, NULL);

    return now && now != m ? fold_constant(c, now) : now;
}
