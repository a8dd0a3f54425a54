/* vision.roi_align: boxes of pictures, each as a grid of the same size.
 *
 *     %3 = vision.roi_align(%x, %boxes, %pictures, pooled_size=[7, 7], spatial_scale=0.25);
 *
 * x [N, C, H, W], boxes [R, 4] (left, top, right, bottom), pictures [R]: whose box it is; the
 * result is [R, C, *pooled_size].  A bin is the mean (or largest) of sample_ratio x sample_ratio
 * points, which are interpolated; 0: as many as the bin has cells.  Points outside of the picture
 * count as 0. aligned: boxes are moved by half a cell, and may be smaller than one.
 *
 * How many points there are the boxes say, so that it is a statement of TIR.  Points that lie far
 * outside are not visited, whatever the boxes are. */
#include "ops/common.h"

#include <math.h>
#include <string.h>

const Type *rel_roi_align(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const RoiAlignAttrs *a = attrs;
    int64_t              four;

    if (!rel_tensors(c, loc, in, nin) || !rel_rank(c, loc, in[0], 4, "data") ||
        !rel_rank(c, loc, in[1], 2, "boxes") || !rel_rank(c, loc, in[2], 1, "pictures") ||
        !rel_same_dtype(c, loc, in[0], in[1]) || !rel_int_dtype(c, loc, in[2], "pictures") ||
        !rel_ints(c, loc, "pooled_size", a->pooled_size, 2, 1) ||
        !rel_dims_equal(c, loc, in[1]->dims[0], in[2]->dims[0], "boxes and pictures") ||
        !rel_dim(c, loc, in[1], 1, &four))
        return NULL;
    if (four != 4 || !dtype_is_float(in[0]->dtype))
        return error_at(c, E_TYPE, loc, "boxes %s of data %s", type_text(c, in[1]),
                        type_text(c, in[0]));
    if (strcmp(a->mode, "avg") && strcmp(a->mode, "max"))
        return error_at(c, E_TYPE, loc, "mode '%s' is not avg or max", a->mode);
    if (a->sample_ratio < 0 || a->sample_ratio > 1 << 12)
        return error_at(c, E_TYPE, loc, "sample_ratio is %lld", (long long)a->sample_ratio);
    for (uint32_t i = 0; i < 4; i++)
        if (i != 1 && in[0]->dims[i]->lo < 1)
            return error_at(c, E_TYPE, loc, "dimension %u of %s may be empty", i,
                            type_text(c, in[0]));
    return rel_tensor(c, loc, in[0]->dtype, 4,
                      (const Idx *[]){in[1]->dims[0], in[0]->dims[1],
                                      idx_const(c->arith, a->pooled_size.at[0]),
                                      idx_const(c->arith, a->pooled_size.at[1])});
}

/* ---- compute -------------------------------------------------------------------------------------- */

static const Prim *num(Ctx *c, double v)
{
    return prim_float(c, DT_F32, v);
}

/* Into lo .. hi; NaN is lo. */
static const Prim *within(Ctx *c, const Prim *x, const Prim *lo, const Prim *hi)
{
    x = prim_select(c, prim_lt(c, lo, x), x, lo);
    return prim_select(c, prim_lt(c, x, hi), x, hi);
}

/* A whole number of 0 .. most as an index. */
static const Idx *whole(Ctx *c, const Prim *x, const Idx *most)
{
    return te_index(c, prim_cast(c, DT_I32, x), idx_addc(c->arith, most, 1), INDEX_CLIP);
}

/* The points of a bin along one axis. */
typedef struct {
    const Prim *start, *size; /* of the bin */
    const Prim *points;       /* how many it has, a whole number */
    const Prim *first, *n;    /* those that may be inside of the picture */
    const Idx  *extent;       /* of the picture */
    const Atom *var;
} Line;

/* Axis 0 is y: bin number `bin` of `bins` of a box. */
static Line line_of(Ctx *c, const RoiAlignAttrs *a, const Tensor *boxes, const Idx *box,
                    uint32_t axis, const Idx *bin, const Idx *extent)
{
    const Prim *edge[2], *size, *cells = te_number(c, DT_F32, extent), *apart, *limit;
    Line        l = {.extent = extent};

    for (int64_t i = 0; i < 2; i++) {
        const Idx *at[2] = {box, idx_const(c->arith, 2 * i + (axis == 0))};

        edge[i] = prim_mul(c, prim_cast(c, DT_F32, te_at(c, boxes, at)), num(c, a->spatial_scale));
        if (a->aligned)
            edge[i] = prim_sub(c, edge[i], num(c, 0.5));
    }
    size = prim_sub(c, edge[1], edge[0]);
    if (!a->aligned)
        size = prim_select(c, prim_lt(c, num(c, 1), size), size, num(c, 1));
    l.size = prim_div(c, size, num(c, (double)a->pooled_size.at[axis]));
    l.start = prim_add(c, edge[0], prim_mul(c, te_number(c, DT_F32, bin), l.size));
    l.points = a->sample_ratio
                   ? num(c, (double)a->sample_ratio)
                   : within(c, prim_math(c, MATH_CEIL, l.size, NULL), num(c, 0), num(c, INFINITY));
    /* Points are at start + (i + 0.5) * apart; in a bin without extent all are at one place. */
    apart = prim_div(c, l.size, l.points);
    limit = a->sample_ratio ? num(c, (double)a->sample_ratio)
                            : prim_add(c, prim_mul(c, cells, num(c, 2)), num(c, 8));
    if (a->sample_ratio) {
        l.first = num(c, 0);
        l.n = l.points;
        return l;
    }
    l.first = prim_math(c, MATH_FLOOR, prim_div(c, prim_sub(c, num(c, -2), l.start), apart), NULL);
    l.first = within(c, l.first, num(c, 0), l.points);
    l.n = within(c, prim_sub(c, l.points, l.first), num(c, 0), limit);
    return l;
}

/* Where point i of a line lies. */
static const Prim *point(Ctx *c, const Line *l, const Idx *i)
{
    const Prim *at = prim_add(c, prim_add(c, l->first, te_number(c, DT_F32, i)), num(c, 0.5));

    return prim_add(c, l->start, prim_div(c, prim_mul(c, at, l->size), l->points));
}

/* The cells around a place, and the weight of the second; *in: it is not outside. */
typedef struct {
    const Idx  *cell[2];
    const Prim *weight[2], *in;
} Around;

static Around around(Ctx *c, const Prim *x, const Idx *extent)
{
    const Prim *last = te_number(c, DT_F32, idx_addc(c->arith, extent, -1)), *low;
    Around      r;

    r.in = prim_and(c, prim_le(c, num(c, -1), x), prim_le(c, x, te_number(c, DT_F32, extent)));
    x = within(c, x, num(c, 0), last);
    low = prim_math(c, MATH_FLOOR, x, NULL);
    r.cell[0] = whole(c, low, idx_addc(c->arith, extent, -1));
    r.cell[1] = idx_min(c->arith, idx_addc(c->arith, r.cell[0], 1), idx_addc(c->arith, extent, -1));
    r.weight[1] = prim_sub(c, x, low);
    r.weight[0] = prim_sub(c, num(c, 1), r.weight[1]);
    return r;
}

/* The four cells around a point by their weights: their sum, or the largest. */
static const Prim *sample(Ctx *c, const Tensor *x, const Idx *n, const Idx *channel,
                          const Around *y, const Around *xs, bool mean)
{
    const Prim *v = NULL;

    for (int i = 0; i < 4; i++) {
        const Idx  *at[4] = {n, channel, y->cell[i / 2], xs->cell[i % 2]};
        const Prim *w = prim_mul(c, y->weight[i / 2], xs->weight[i % 2]);

        w = prim_mul(c, w, prim_cast(c, DT_F32, te_at(c, x, at)));
        v = !v ? w : mean ? prim_add(c, v, w) : prim_max(c, v, w);
    }
    return prim_select(c, prim_and(c, y->in, xs->in), v, num(c, 0));
}

/* What a bin begins with: of the largest, 0 where a point lies outside or there is none. */
static const Prim *beginning(Ctx *c, const Line *y, const Line *x, bool mean)
{
    const Prim *all = prim_mul(c, y->points, x->points), *seen = prim_mul(c, y->n, x->n);
    const Prim *every = prim_and(c, prim_le(c, all, seen), prim_lt(c, num(c, 0), all));

    return mean ? num(c, 0) : prim_select(c, every, num(c, -INFINITY), num(c, 0));
}

bool te_roi_align(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const RoiAlignAttrs *a = call->attrs;
    Arith               *A = c->arith;
    const Type          *t = call->out[0];
    bool                 mean = *a->mode == 'a';
    const Tensor        *y = te_extern_out(c, "out", t);
    const Buffer        *sum;
    const Atom          *var[4], *points[2];
    const Idx           *at[4], *extent[2], *zero = idx_const(A, 0);
    Line                 l[2];

    for (uint32_t i = 0; i < 4; i++) {
        var[i] = te_loop_var(c, (const char *[]){"r", "c", "y", "x"}[i], t->dims[i]);
        at[i] = idx_atom(A, var[i]);
    }
    sum = buffer_new(c, "sum", DT_F32, SCOPE_PRIVATE, 1, (const Idx *[]){idx_const(A, 1)});
    for (uint32_t i = 0; i < 2; i++) {
        l[i] = line_of(c, a, in[1], at[0], i, at[2 + i], call->in[0]->dims[2 + i]);
        extent[i] = a->sample_ratio ? idx_const(A, a->sample_ratio)
                                    : whole(c, l[i].n, idx_addc(A, idx_mulc(A, l[i].extent, 2), 8));
        points[i] = te_loop_var(c, i ? "px" : "py", extent[i]);
    }
    Around      row = around(c, point(c, &l[0], idx_atom(A, points[0])), l[0].extent);
    Around      column = around(c, point(c, &l[1], idx_atom(A, points[1])), l[1].extent);
    const Idx  *n = te_index(c, te_at(c, in[2], at), call->in[0]->dims[0], INDEX_CLIP);
    const Prim *was = prim_load(c, sum, &zero), *all, *v;

    v = sample(c, in[0], n, at[1], &row, &column, mean);
    v = mean ? prim_add(c, was, v) : prim_max(c, was, v);
    all = prim_mul(c, l[0].points, l[1].points);
    all = prim_select(c, prim_lt(c, num(c, 1), all), all, num(c, 1));
    const Stmt *body = loop_stmt(c, points[0], extent[0],
                                 loop_stmt(c, points[1], extent[1], stmt_store(c, sum, &zero, v)));
    const Stmt *kids[3] = {
        stmt_store(c, sum, &zero, beginning(c, &l[0], &l[1], mean)), body,
        stmt_store(c, y->buffer, at, prim_cast(c, t->dtype, mean ? prim_div(c, was, all) : was))};

    body = stmt_alloc(c, sum, stmt_seq(c, 3, kids));
    for (uint32_t i = 4; i-- > 0;)
        body = loop_stmt(c, var[i], t->dims[i], body);
    out[0] = y;
    te_extern(c, 3, in, 1, out, body);
    return true;
}
