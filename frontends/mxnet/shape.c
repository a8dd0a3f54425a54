/* Other shapes of the same cells, and cells that are repeated or padded. */
#include "frontends/mxnet/mxnet.h"

#include <string.h>

/* ---- reshape ---------------------------------------------------------------------------------------- */

/* What numbers below 1 mean, the same ones in two vocabularies; MX_NONE: it has no such word.  They
 * go through the dimensions of the data as they are read. */
typedef struct {
    int64_t copy, left, rest, merge, split, skip;
} Words;
static const Words first_words = {0, -1, -2, -3, -4, MX_NONE}, np_words = {-2, -1, -4, -5, -6, -3};

typedef struct {
    MxNode    *n;
    Dims       from;
    uint32_t   at, count;
    int32_t    left; /* which is to be found out; -1: none */
    const Idx *dims[MAX_RANK];
} Reshape;

static bool put(Reshape *r, const Idx *d)
{
    if (r->count == MAX_RANK)
        return mx_error(r->n, E_UNSUPPORTED, "more than %d dimensions", MAX_RANK);
    r->dims[r->count++] = d;
    return true;
}

static const Idx *next(Reshape *r)
{
    if (r->at >= r->from.n)
        return mx_error(r->n, E_IMPORT, "it asks for more dimensions than the %u that there are",
                        r->from.n);
    return r->from.at[r->at++];
}

/* One dimension as two, one of which may be -1. */
static bool split(Reshape *r, int64_t x, int64_t y)
{
    Arith     *A = r->n->b.c->arith;
    const Idx *d = next(r), *first, *second;

    if (!d)
        return false;
    if ((x < 1 && x != -1) || (y < 1 && y != -1) || (x == -1 && y == -1))
        return mx_error(r->n, E_IMPORT, "a dimension as %lld times %lld", (long long)x,
                        (long long)y);
    first = x == -1 ? idx_div(A, d, idx_const(A, y)) : idx_const(A, x);
    second = y == -1 ? idx_div(A, d, idx_const(A, x)) : idx_const(A, y);
    return put(r, first) && put(r, second);
}

static bool read_word(Reshape *r, const Words *w, Ints v, uint32_t *i)
{
    Arith     *A = r->n->b.c->arith;
    int64_t    word = v.at[*i];
    const Idx *x, *y;

    if (word == w->copy)
        return (x = next(r)) && put(r, x);
    if (word == w->left) {
        if (r->left >= 0)
            return mx_error(r->n, E_IMPORT, "two dimensions are to be found out");
        r->left = (int32_t)r->count;
        r->at++;
        return put(r, idx_const(A, 1));
    }
    if (word == w->rest) {
        while (r->at < r->from.n)
            if (!put(r, r->from.at[r->at++]))
                return false;
        return true;
    }
    if (word == w->merge)
        return (x = next(r)) && (y = next(r)) && put(r, idx_mul(A, x, y));
    if (word == w->skip)
        return (x = next(r)) && (idx_is_const(x, NULL) || true);
    if (word == w->split) {
        if (*i + 2 >= v.n)
            return mx_error(r->n, E_IMPORT, "a split without its two sizes");
        *i += 2;
        return split(r, v.at[*i - 1], v.at[*i]);
    }
    if (word < 0)
        return mx_error(r->n, E_IMPORT, "a dimension of %lld", (long long)word);
    r->at++;
    return put(r, idx_const(A, word));
}

static void turn(Ctx *c, Dims *d)
{
    const Idx **at = NEW_ARRAY(c->arena, const Idx *, d->n + 1);

    for (uint32_t i = 0; i < d->n; i++)
        at[i] = d->at[d->n - 1 - i];
    *d = (Dims){d->n, at};
}

/* From the last to the first, for reverse=True. */
static Ints turned(Ctx *c, Ints v)
{
    int64_t *at = NEW_ARRAY(c->arena, int64_t, v.n + 1);

    for (uint32_t i = 0; i < v.n; i++)
        at[i] = v.at[v.n - 1 - i];
    return (Ints){v.n, at};
}

static bool reshape(MxNode *n, Ints v, const Words *w, bool reverse)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    Reshape      r = {.n = n, .from = expr_forms(n->in[0]), .left = -1};
    Dims         out;

    if (reverse) {
        turn(b->c, &r.from);
        v = turned(b->c, v);
    }
    for (uint32_t i = 0; i < v.n; i++)
        if (!read_word(&r, w, v, &i))
            return false;
    if (r.left >= 0) {
        const Idx *known = idx_const(A, 1);

        for (uint32_t i = 0; i < r.count; i++)
            known = idx_mul(A, known, r.dims[i]);
        if (known->lo < 1)
            return mx_error(n, E_IMPORT, "%s cells are to be divided among none",
                            dim_text(b->c, type_cells(b->c, n->in[0]->type)));
        r.dims[r.left] = idx_div(A, type_cells(b->c, n->in[0]->type), known);
    }
    out = dims_dup(b->c, r.dims, r.count);
    if (reverse)
        turn(b->c, &out);
    return build_check_shape(b, out) && mx_done(n, build_reshape_to(b, n->in[0], out.n, out.at));
}

/* The first form of the attribute: 0 is what is left, and the first dimension may stay. */
static bool reshape_to_target(MxNode *n)
{
    Ints     v = mx_ints(n, "target_shape");
    int64_t *at = DUP_ARRAY(n->b.c->arena, v.at, v.n);

    for (uint32_t i = 0; i < v.n; i++)
        if (at[i] == 0)
            at[i] = -1;
    if (mx_bool(n, "keep_highest") && v.n)
        at[0] = 0;
    return reshape(n, (Ints){v.n, at}, &first_words, false);
}

bool mx_reshape(MxNode *n)
{
    Ints v = mx_ints(n, "shape");

    if (!v.n && mx_ints(n, "target_shape").n)
        return reshape_to_target(n);
    if (!v.n)
        return mx_error(n, E_IMPORT, "it says no shape");
    return reshape(n, v, &first_words, mx_bool(n, "reverse"));
}

bool mx_npx_reshape(MxNode *n)
{
    if (strcmp(mx_text(n, "order"), "C") != 0)
        return mx_error(n, E_UNSUPPORTED, "order='%s'", mx_text(n, "order"));
    return reshape(n, mx_ints(n, "newshape"), &np_words, mx_bool(n, "reverse"));
}

bool mx_np_reshape(MxNode *n)
{
    static const Words words = {MX_NONE, -1, MX_NONE, MX_NONE, MX_NONE, MX_NONE};

    if (strcmp(mx_text(n, "order"), "C") != 0)
        return mx_error(n, E_UNSUPPORTED, "order='%s'", mx_text(n, "order"));
    return reshape(n, mx_ints(n, "newshape"), &words, false);
}

/* A position from 0 to the rank, by an attribute that may be None. */
static bool position(MxNode *n, const char *name, uint32_t rank, uint32_t fallback, uint32_t *out)
{
    int64_t v = mx_has(n, name) ? mx_int(n, name) : fallback;

    v += v < 0 ? rank : 0;
    *out = (uint32_t)v;
    return (v >= 0 && v <= rank) || mx_error(n, E_IMPORT, "'%s' is %s", name, mx_text(n, name));
}

/* Some dimensions of the first operand become some of the second's. */
bool mx_reshape_like(MxNode *n)
{
    uint32_t   x = expr_rank(n->in[0]), y = expr_rank(n->in[1]), from[2], to[2], k = 0;
    const Idx *dims[2 * MAX_RANK];

    if (!position(n, "lhs_begin", x, 0, &from[0]) || !position(n, "lhs_end", x, x, &to[0]) ||
        !position(n, "rhs_begin", y, 0, &from[1]) || !position(n, "rhs_end", y, y, &to[1]))
        return false;
    for (uint32_t i = 0; i < from[0]; i++)
        dims[k++] = expr_form(n->in[0], i);
    for (uint32_t i = from[1]; i < to[1]; i++)
        dims[k++] = expr_form(n->in[1], i);
    for (uint32_t i = to[0]; i < x; i++)
        dims[k++] = expr_form(n->in[0], i);
    return build_check_shape(&n->b, (Dims){k, dims}) &&
           mx_done(n, build_reshape_to(&n->b, n->in[0], k, dims));
}

bool mx_flatten(MxNode *n)
{
    if (!mx_rank(n, 0, 1, MAX_RANK))
        return false;
    return mx_done(n, expr_rank(n->in[0]) == 2 ? n->in[0] : build_matrix(&n->b, n->in[0], 1));
}

bool mx_expand_dims(MxNode *n)
{
    uint32_t axis;

    return mx_rank(n, 0, 0, MAX_RANK - 1) &&
           mx_axis(n, mx_int(n, "axis"), expr_rank(n->in[0]) + 1, &axis) &&
           mx_done(n, build_expand_dims(&n->b, n->in[0], axis, 1));
}

bool mx_squeeze(MxNode *n)
{
    Ints     v = mx_ints(n, "axis");
    int64_t  axes[MAX_RANK];
    uint32_t count;

    return build_axes(&n->b, v, expr_rank(n->in[0]), 0, &count, axes) &&
           mx_done(n, build_squeeze(&n->b, n->in[0], count, axes));
}

/* ---- order ------------------------------------------------------------------------------------------ */

bool mx_transpose(MxNode *n)
{
    Ints     v = mx_ints(n, "axes");
    uint32_t rank = expr_rank(n->in[0]);
    int64_t  axes[MAX_RANK];

    if (v.n)
        return mx_done(n, build_permuted(&n->b, n->in[0], v));
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = rank - 1 - i;
    return mx_done(n, build_transpose(&n->b, n->in[0], rank, axes));
}

bool mx_swap_axis(MxNode *n)
{
    uint32_t rank = expr_rank(n->in[0]), x, y;
    int64_t  axes[MAX_RANK];

    if (!mx_axis(n, mx_int(n, "dim1"), rank, &x) || !mx_axis(n, mx_int(n, "dim2"), rank, &y))
        return false;
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = i == x ? y : i == y ? x : i;
    return mx_done(n, build_transpose(&n->b, n->in[0], rank, axes));
}

static bool block_of(const MxNode *n, int64_t *out)
{
    *out = mx_int(n, "block_size");
    if (*out < 1 || *out > 4096)
        return mx_error(n, E_IMPORT, "'block_size' is %lld", (long long)*out);
    return mx_rank(n, 0, 4, 4);
}

bool mx_depth_to_space(MxNode *n)
{
    int64_t s;

    return block_of(n, &s) && mx_done(n, build_depth_to_space(&n->b, n->in[0], s));
}

bool mx_space_to_depth(MxNode *n)
{
    int64_t s;

    return block_of(n, &s) && mx_done(n, build_space_to_depth(&n->b, n->in[0], s));
}

bool mx_reverse(MxNode *n)
{
    int64_t  axes[MAX_RANK];
    uint32_t count;

    return build_axes(&n->b, mx_ints(n, "axis"), expr_rank(n->in[0]), 0, &count, axes) &&
           mx_done(n, build_reverse(&n->b, n->in[0], count, axes));
}

/* ---- broadcasting ----------------------------------------------------------------------------------- */

static bool broadcast(MxNode *n, uint32_t rank, const Idx *const *dims)
{
    return build_check_shape(&n->b, (Dims){rank, dims}) &&
           mx_done(n, build_broadcast_to(&n->b, n->in[0], rank, dims));
}

/* 0: as it is. */
bool mx_broadcast_to(MxNode *n)
{
    Ints       v = mx_ints(n, "shape");
    const Idx *dims[MAX_RANK];
    uint32_t   rank = expr_rank(n->in[0]);

    if (v.n > MAX_RANK || v.n < rank)
        return mx_error(n, E_IMPORT, "'shape' has %u dimensions, the data %u", v.n, rank);
    for (uint32_t i = 0; i < v.n; i++) {
        uint32_t at = i - (v.n - rank);

        dims[i] = v.at[i] == 0 && i >= v.n - rank ? expr_form(n->in[0], at)
                                                  : idx_const(n->b.c->arith, v.at[i]);
    }
    return broadcast(n, v.n, dims);
}

bool mx_broadcast_axis(MxNode *n)
{
    Ints       axes = mx_ints(n, "axis"), size = mx_ints(n, "size");
    Dims       d = expr_forms(n->in[0]);
    const Idx *dims[MAX_RANK];

    if (axes.n != size.n)
        return mx_error(n, E_IMPORT, "%u axes, %u sizes", axes.n, size.n);
    memcpy(dims, d.at, d.n * sizeof *dims);
    for (uint32_t i = 0; i < axes.n; i++) {
        uint32_t at;

        if (!mx_axis(n, axes.at[i], d.n, &at))
            return false;
        dims[at] = idx_const(n->b.c->arith, size.at[i]);
    }
    return broadcast(n, d.n, dims);
}

bool mx_broadcast_like(MxNode *n)
{
    Ints       x = mx_ints(n, "lhs_axes"), y = mx_ints(n, "rhs_axes");
    Dims       d = expr_forms(n->in[0]), like = expr_forms(n->in[1]);
    const Idx *dims[MAX_RANK];

    if (!x.n && !y.n)
        return broadcast(n, like.n, like.at);
    if (x.n != y.n)
        return mx_error(n, E_IMPORT, "%u axes of one operand, %u of the other", x.n, y.n);
    memcpy(dims, d.at, d.n * sizeof *dims);
    for (uint32_t i = 0; i < x.n; i++) {
        uint32_t to, from;

        if (!mx_axis(n, x.at[i], d.n, &to) || !mx_axis(n, y.at[i], like.n, &from))
            return false;
        dims[to] = like.at[from];
    }
    return broadcast(n, d.n, dims);
}

/* ---- more cells ------------------------------------------------------------------------------------- */

bool mx_tile(MxNode *n)
{
    const Build *b = &n->b;
    Ints         v = mx_ints(n, "reps");
    uint32_t     rank = expr_rank(n->in[0]), more = v.n > rank ? v.n - rank : 0;
    TileAttrs   *a = ATTRS(b, TileAttrs);
    int64_t      reps[2 * MAX_RANK];

    if (v.n > MAX_RANK)
        return mx_error(n, E_UNSUPPORTED, "more than %d dimensions", MAX_RANK);
    for (uint32_t i = 0; i < rank + more; i++) {
        reps[i] = i + v.n >= rank + more ? v.at[i + v.n - rank - more] : 1;
        if (reps[i] < 1 || reps[i] > INT32_MAX)
            return mx_error(n, E_IMPORT, "'reps' is %s", mx_text(n, "reps"));
    }
    a->reps = dims_of_i64(b->c, reps, rank + more);
    return mx_done(n,
                   build1(b, "tile", more ? build_expand_dims(b, n->in[0], 0, more) : n->in[0], a));
}

/* Without an axis: of all cells in a row. */
bool mx_repeat(MxNode *n)
{
    const Build *b = &n->b;
    RepeatAttrs *a = ATTRS(b, RepeatAttrs);
    const Expr  *x = n->in[0];
    const Idx   *cells;
    uint32_t     axis;

    a->repeats = mx_int(n, "repeats");
    if (a->repeats < 1 || a->repeats > INT32_MAX)
        return mx_error(n, E_IMPORT, "'repeats' is %lld", (long long)a->repeats);
    if (mx_has(n, "axis")) {
        if (!mx_axis(n, mx_int(n, "axis"), expr_rank(x), &axis))
            return false;
        a->axis = axis;
    } else {
        cells = type_cells(b->c, x->type);
        x = build_reshape_to(b, x, 1, &cells);
    }
    return mx_done(n, build1(b, "repeat", x, a));
}

static bool pads_of(const MxNode *n, int64_t *out)
{
    Ints     v = mx_ints(n, "pad_width");
    uint32_t rank = expr_rank(n->in[0]);

    if (v.n != 2 * rank)
        return mx_error(n, E_IMPORT, "'pad_width' has %u numbers for %u dimensions", v.n, rank);
    for (uint32_t i = 0; i < v.n; i++) {
        if (v.at[i] < 0 || v.at[i] > INT32_MAX)
            return mx_error(n, E_IMPORT, "'pad_width' is %s", mx_text(n, "pad_width"));
        out[i] = v.at[i];
    }
    return true;
}

bool mx_pad(MxNode *n)
{
    int64_t pads[2 * MAX_RANK];

    return pads_of(n, pads) &&
           mx_done(n, build_pad(&n->b, n->in[0], pads, mx_float(n, "constant_value"),
                                mx_text(n, "mode")));
}

bool mx_npi_pad(MxNode *n)
{
    const char *mode = mx_text(n, "mode");
    int64_t     pads[2 * MAX_RANK];

    if (!pads_of(n, pads))
        return false;
    if (!strcmp(mode, "maximum") || !strcmp(mode, "minimum") ||
        strcmp(mx_text(n, "reflect_type"), "even") != 0)
        return mx_error(n, E_UNSUPPORTED, "mode '%s' with reflect_type '%s'", mode,
                        mx_text(n, "reflect_type"));
    if (!strcmp(mode, "symmetric"))
        return mx_done(n, build_mirror_pad(&n->b, n->in[0], pads, true));
    return mx_pad(n);
}
