/* The same cells in another shape or order, and what is put together. */
#include "frontends/coreml/coreml.h"

#include <string.h>

/* ---- shapes: 0 keeps the dimension as far from the end, -1 is what is left ---------------------------------------------- */

static bool reshape_to(CmlNode *n, const Expr *x, Dims d)
{
    const Idx **at = NEW_ARRAY(n->b.c->arena, const Idx *, d.n + 1);

    for (uint32_t i = 0; i < d.n; i++) {
        int64_t v;

        at[i] = d.at[i];
        if (idx_is_const(at[i], &v) && v == 0)
            at[i] = i + expr_rank(x) < d.n ? idx_const(n->b.c->arith, 1)
                                           : expr_form(x, i + expr_rank(x) - d.n);
    }
    return cml_done(n, build_reshape_left(&n->b, x, (Dims){d.n, at}));
}

bool cml_reshape(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    Dims        d;

    return x && cml_forms(n, "shape", &d) && reshape_to(n, x, d);
}

bool cml_layer_reshape_to(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    Dims        d;

    return x && cml_forms(n, "target_shape", &d) && reshape_to(n, x, d);
}

bool cml_rank_preserving(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    Dims        d;

    if (!x || !cml_forms(n, "target_shape", &d))
        return false;
    if (d.n != expr_rank(x))
        return cml_error(n, E_IMPORT, "a shape of %u dimensions for %s", d.n,
                         type_text(n->b.c, x->type));
    return reshape_to(n, x, d);
}

bool cml_layer_reshape_like(CmlNode *n)
{
    const Expr *x = cml_x(n, "x"), *like = x ? cml_x(n, "like") : NULL;

    return like && cml_done(n, build_reshape_to(&n->b, x, expr_rank(like), expr_forms(like).at));
}

/* Parts of the shapes of some tensors, one after another. */
bool cml_reshape_like(CmlNode *n)
{
    const Expr *x = cml_x(n, "x"), **refs;
    uint32_t    count = x ? cml_all(n, "ref_tensors", &refs) : 0, d = 0;
    const Idx  *dims[MAX_RANK];
    Ints        begin, end, mask;

    if (!count || !cml_ints(n, "begins", &begin) || !cml_ints(n, "ends", &end) ||
        !cml_ints(n, "end_masks", &mask))
        return false;
    if (begin.n != count || end.n != count || mask.n != count)
        return cml_error(n, E_IMPORT, "%u begins, %u ends and %u masks for %u tensors", begin.n,
                         end.n, mask.n, count);
    for (uint32_t i = 0; i < count; i++) {
        int64_t rank = expr_rank(refs[i]);
        int64_t from = begin.at[i] < 0 ? begin.at[i] + rank : begin.at[i];
        int64_t to = mask.at[i] ? rank : end.at[i] < 0 ? end.at[i] + rank : end.at[i];

        for (; from >= 0 && from < to && from < rank; from++) {
            if (d == MAX_RANK)
                return cml_error(n, E_UNSUPPORTED, "more than %d dimensions", MAX_RANK);
            dims[d++] = expr_form(refs[i], (uint32_t)from);
        }
    }
    return cml_done(n, build_reshape_left(&n->b, x, (Dims){d, dims}));
}

bool cml_squeeze(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    bool        all = n->layer && cml_bool(n, "squeeze_all", false);
    int64_t     axes[MAX_RANK];
    uint32_t    count;

    if (!x || !cml_axes(n, "axes", expr_rank(x), &count, axes))
        return false;
    return cml_done(n, build_squeeze(&n->b, x, all ? 0 : count, axes));
}

bool cml_expand_dims(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    const Idx  *dims[MAX_RANK];
    bool        fresh[MAX_RANK] = {false};
    int64_t     axes[MAX_RANK];
    uint32_t    count, rank, at = 0;
    Ints        v;

    if (!x || !cml_ints(n, "axes", &v))
        return false;
    rank = expr_rank(x) + v.n;
    if (rank > MAX_RANK)
        return cml_error(n, E_UNSUPPORTED, "a tensor of %u dimensions", rank);
    if (!build_axes(&n->b, v, rank, 0, &count, axes))
        return false;
    if (count != v.n)
        return cml_error(n, E_IMPORT, "an axis is there twice");
    for (uint32_t i = 0; i < count; i++)
        fresh[axes[i]] = true;
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = fresh[i] ? idx_const(n->b.c->arith, 1) : expr_form(x, at++);
    return cml_done(n, build_reshape_to(&n->b, x, rank, dims));
}

bool cml_flatten2d(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    int64_t     axis = cml_int(n, "axis", 1), rank = x ? expr_rank(x) : 0;

    axis = axis < 0 ? axis + rank : axis;
    if (!x || axis < 0 || axis > rank)
        return x && cml_error(n, E_IMPORT, "axis %lld of %s", (long long)axis,
                              type_text(n->b.c, x->type));
    return cml_done(n, build_matrix(&n->b, x, (uint32_t)axis));
}

bool cml_transpose(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    Ints        v;

    return x && cml_ints(n, "perm", &v) && cml_done(n, build_permuted(&n->b, x, v));
}

bool cml_layer_transpose(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    Ints        v;

    return x && cml_ints(n, "axes", &v) && cml_done(n, build_permuted(&n->b, x, v));
}

/* ---- of sequences of images -------------------------------------------------------------------------- */

enum { CHANNEL_FIRST, CHANNEL_LAST };

static const Expr *channels_last(const Build *b, const Expr *x)
{
    return build_transpose(b, x, 4, (int64_t[]){0, 2, 3, 1});
}

bool cml_layer_flatten(CmlNode *n)
{
    const Build *b = &n->b;
    int64_t      mode = cml_int(n, "mode", 0);
    const Expr  *x = cml_image(n, "x", 2);
    const Idx   *one = idx_const(b->c->arith, 1), *cells;

    if (!x)
        return false;
    if (mode != CHANNEL_FIRST && mode != CHANNEL_LAST)
        return cml_error(n, E_UNSUPPORTED, "mode %lld", (long long)mode);
    if (mode == CHANNEL_LAST && !(x = channels_last(b, x)))
        return false;
    cells = idx_mul(b->c->arith, idx_mul(b->c->arith, expr_form(x, 1), expr_form(x, 2)),
                    expr_form(x, 3));
    return cml_done_image(
        n, build_reshape_to(b, x, 4, (const Idx *[]){expr_form(x, 0), cells, one, one}));
}

bool cml_layer_reshape(CmlNode *n)
{
    const Build *b = &n->b;
    int64_t      mode = cml_int(n, "mode", 0), seq, of[4];
    const Expr  *x = cml_image(n, "x", 2);
    const Idx   *dims[4], *batch;
    Ints         v;

    if (!x || !cml_ints(n, "target_shape", &v))
        return false;
    if ((v.n != 3 && v.n != 4) || (mode != CHANNEL_FIRST && mode != CHANNEL_LAST))
        return cml_error(n, E_UNSUPPORTED, "a shape of %u dimensions in mode %lld", v.n,
                         (long long)mode);
    memcpy(of + 4 - v.n, v.at, v.n * sizeof *of);
    seq = n->lead ? n->lead : 1;
    of[0] = v.n == 4 ? of[0] : seq;
    for (uint32_t i = 0; i < 4; i++)
        if (of[i] < 1 || of[i] > INT32_MAX)
            return cml_error(n, E_IMPORT, "a dimension of its shape is %lld", (long long)of[i]);
    if (mode == CHANNEL_LAST && !(x = channels_last(b, x)))
        return false;
    batch = idx_div_exact(b->c->arith, expr_form(x, 0), idx_const(b->c->arith, seq));
    if (!batch)
        return cml_error(n, E_IMPORT, "%s is no whole number of sequences",
                         type_text(b->c, x->type));
    dims[0] = idx_mul(b->c->arith, batch, idx_const(b->c->arith, of[0]));
    dims[1] = idx_const(b->c->arith, mode == CHANNEL_LAST ? of[2] : of[1]);
    dims[2] = idx_const(b->c->arith, mode == CHANNEL_LAST ? of[3] : of[2]);
    dims[3] = idx_const(b->c->arith, mode == CHANNEL_LAST ? of[1] : of[3]);
    x = build_reshape_left(b, x, (Dims){4, dims});
    if (mode == CHANNEL_LAST && x)
        x = build_transpose(b, x, 4, (int64_t[]){0, 3, 1, 2});
    if (n->lead)
        n->lead = of[0];
    return cml_done_image(n, x);
}

/* Of sequence, channels, rows and columns; the batch stays where it is. */
bool cml_layer_permute(CmlNode *n)
{
    static const int64_t place[] = {0, 2, 3, 4};
    const Expr          *x = cml_x(n, "x");
    int64_t              axes[5] = {0, 1, 2, 3, 4};
    CmlArg              *a = cml_arg(n, "x");
    Ints                 v;

    if (!x || !cml_ints(n, "axis", &v))
        return false;
    if (expr_rank(x) != 5 || (v.n != 0 && v.n != 4))
        return cml_error(n, E_IMPORT, "%u axes of %s", v.n, type_text(n->b.c, x->type));
    for (uint32_t i = 0; i < v.n; i++) {
        if (v.at[i] < 0 || v.at[i] > 3)
            return cml_error(n, E_IMPORT, "axis %lld", (long long)v.at[i]);
        axes[place[i]] = place[v.at[i]];
    }
    if (axes[0] == 0 && a->at[0].seq) { /* within each image */
        int64_t four[4] = {0, axes[2] - 1, axes[3] - 1, axes[4] - 1};

        return cml_done_seq(n, 0, build_permuted(&n->b, a->at[0].e, (Ints){4, four}), a->at[0].seq);
    }
    return cml_done(n, build_permuted(&n->b, x, (Ints){5, axes}));
}

/* All as images of the same length of sequences, or all with their dimensions. */
static uint32_t alike(CmlNode *n, const char *name, const Expr ***out, int64_t *seq)
{
    CmlArg *a = cml_arg(n, name);

    *seq = a ? a->at[0].seq : 0;
    for (uint32_t i = 0; a && i < a->n; i++)
        *seq = *seq == a->at[i].seq ? *seq : 0;
    if (!a || !*seq)
        return cml_all(n, name, out);
    *out = NEW_ARRAY(n->b.c->arena, const Expr *, a->n + 1);
    for (uint32_t i = 0; i < a->n; i++)
        (*out)[i] = a->at[i].e;
    return a->n;
}

bool cml_layer_concat(CmlNode *n)
{
    bool         sequence = cml_bool(n, "sequence_concat", false);
    const Expr **x;
    int64_t      seq = 0;
    uint32_t     count = sequence ? cml_all(n, "values", &x) : alike(n, "values", &x, &seq), rank;

    if (!count)
        return false;
    rank = expr_rank(x[0]);
    if (rank < (sequence ? 5 : 3))
        return cml_error(n, E_IMPORT, "its first input is %s", type_text(n->b.c, x[0]->type));
    return cml_done_seq(n, 0, build_concat(&n->b, count, x, rank - (sequence ? 5 : 3)), seq);
}

bool cml_layer_split(CmlNode *n)
{
    const Expr *x = cml_image(n, "x", 2), **parts;
    int64_t     count = cml_int(n, "n_outputs", 0);

    if (!x)
        return false;
    if (count != n->nout)
        return cml_error(n, E_IMPORT, "%lld parts for %u outputs", (long long)count, n->nout);
    parts = NEW_ARRAY(n->b.c->arena, const Expr *, n->nout + 1);
    if (!build_split(&n->b, x, 1, NULL, n->nout, parts))
        return false;
    for (uint32_t i = 0; i < n->nout; i++)
        if (!cml_done_image_at(n, i, parts[i]))
            return false;
    return true;
}

bool cml_sequence_repeat(CmlNode *n)
{
    TileAttrs  *a = ATTRS(&n->b, TileAttrs);
    const Expr *x = cml_x(n, "x");
    int64_t     times = cml_int(n, "n_repetitions", 1);

    if (!x)
        return false;
    if (times < 1 || times > INT32_MAX || expr_rank(x) != 5)
        return cml_error(n, E_IMPORT, "%lld times %s", (long long)times,
                         type_text(n->b.c, x->type));
    a->reps = dims_of_i64(n->b.c, (int64_t[]){times, 1, 1, 1, 1}, 5);
    return cml_done(n, build1(&n->b, "tile", x, a));
}

static const Expr *to_space(const Build *b, const Expr *x, int64_t size, const char *mode)
{
    DepthToSpaceAttrs *a = ATTRS(b, DepthToSpaceAttrs);

    a->block_size = ints_of(b->c, 2, (int)size, (int)size);
    a->mode = mode;
    return build1(b, "nn.depth_to_space", x, a);
}

/* The opposite of mode CRD. */
static const Expr *unshuffled(const Build *b, const Expr *x, int64_t s)
{
    Arith     *A = b->c->arith;
    const Idx *size = idx_const(A, s), *c, *h, *w;

    if (!x)
        return NULL;
    c = expr_form(x, 1);
    h = idx_div_exact(A, expr_form(x, 2), size);
    w = idx_div_exact(A, expr_form(x, 3), size);
    if (!h || !w)
        return build_error(b, E_IMPORT, "blocks of %lld of %s", (long long)s,
                           type_text(b->c, x->type));
    x = build_reshape_to(b, x, 6, (const Idx *[]){expr_form(x, 0), c, h, size, w, size});
    x = build_transpose(b, x, 6, (int64_t[]){0, 1, 3, 5, 2, 4});
    return x ? build_reshape_to(
                   b, x, 4,
                   (const Idx *[]){expr_form(x, 0), idx_mul(A, c, idx_const(A, s * s)), h, w})
             : NULL;
}

static bool block_size(CmlNode *n, const char *name, int64_t *out)
{
    *out = cml_int(n, name, 1);
    return (*out >= 1 && *out <= 1 << 15) ||
           cml_error(n, E_IMPORT, "blocks of %lld", (long long)*out);
}

bool cml_reorganize(CmlNode *n)
{
    enum { SPACE_TO_DEPTH, DEPTH_TO_SPACE, PIXEL_SHUFFLE };
    const Build *b = &n->b;
    int64_t      mode = cml_int(n, "mode", 0), size;
    const Expr  *x = cml_image(n, "x", 2);

    if (!x || !block_size(n, "block_size", &size))
        return false;
    switch (mode) {
    case SPACE_TO_DEPTH: return cml_done_image(n, build_space_to_depth(b, x, size));
    case DEPTH_TO_SPACE: return cml_done_image(n, to_space(b, x, size, "DCR"));
    case PIXEL_SHUFFLE: return cml_done_image(n, to_space(b, x, size, "CRD"));
    default: return cml_error(n, E_UNSUPPORTED, "mode %lld", (long long)mode);
    }
}

bool cml_depth_to_space(CmlNode *n)
{
    int64_t size;

    return block_size(n, "block_size", &size) &&
           cml_done_image(n, to_space(&n->b, cml_image(n, "x", 2), size, "DCR"));
}

bool cml_space_to_depth(CmlNode *n)
{
    int64_t size;

    return block_size(n, "block_size", &size) &&
           cml_done_image(n, build_space_to_depth(&n->b, cml_image(n, "x", 2), size));
}

bool cml_pixel_shuffle(CmlNode *n)
{
    int64_t size;

    return block_size(n, "upscale_factor", &size) &&
           cml_done_image(n, to_space(&n->b, cml_image(n, "x", 2), size, "CRD"));
}

bool cml_pixel_unshuffle(CmlNode *n)
{
    int64_t size;

    return block_size(n, "downscale_factor", &size) &&
           cml_done_image(n, unshuffled(&n->b, cml_image(n, "x", 2), size));
}

/* Of rows and columns, which stand behind the channels. */
static const Expr *batches(CmlNode *n, const Expr *x, Ints size, Ints around, bool to_batch)
{
    static const int64_t last[] = {0, 2, 3, 1}, first[] = {0, 3, 1, 2};
    const Build         *b = &n->b;

    if (expr_rank(x) != 4 || size.n != 2)
        return cml_error(n, E_UNSUPPORTED, "blocks of %u dimensions of %s", size.n,
                         type_text(b->c, x->type));
    if (!(x = build_transpose(b, x, 4, last)))
        return NULL;
    x = to_batch ? build_space_to_batch(b, x, size, around)
                 : build_batch_to_space(b, x, size, around);
    return build_transpose(b, x, 4, first);
}

bool cml_space_to_batch(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    Ints        size, around;

    return x && cml_ints(n, "block_shape", &size) && cml_ints(n, "paddings", &around) &&
           cml_done(n, batches(n, x, size, around, true));
}

bool cml_batch_to_space(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    Ints        size, around;

    return x && cml_ints(n, "block_shape", &size) && cml_ints(n, "crops", &around) &&
           cml_done(n, batches(n, x, size, around, false));
}

/* ---- put together, taken apart ------------------------------------------------------------------------ */

bool cml_concat(CmlNode *n)
{
    const Build *b = &n->b;
    bool         turns = cml_bool(n, "interleave", false);
    const Expr **x, *y;
    uint32_t     count = cml_all(n, "values", &x), axis;
    const Idx   *dims[MAX_RANK + 1];

    if (!count || !cml_axis(n, cml_int(n, "axis", 0), expr_rank(x[0]), &axis))
        return false;
    if (!turns)
        return cml_done(n, build_concat(b, count, x, axis));
    /* The first cell of each along the axis, the second of each .. */
    for (uint32_t i = 0; i < count; i++)
        if (!(x[i] = build_expand_dims(b, x[i], axis + 1, 1)))
            return false;
    if (!(y = build_concat(b, count, x, axis + 1)))
        return false;
    for (uint32_t i = 0; i + 1 < expr_rank(y); i++)
        dims[i] = i == axis ? idx_mul(b->c->arith, expr_form(y, i), expr_form(y, i + 1))
                            : expr_form(y, i + (i > axis));
    return cml_done(n, build_reshape_to(b, y, expr_rank(y) - 1, dims));
}

bool cml_stack(CmlNode *n)
{
    const Expr **x;
    uint32_t     count = cml_all(n, "values", &x), axis;

    if (!count || !cml_axis(n, cml_int(n, "axis", 0), expr_rank(x[0]) + 1, &axis))
        return false;
    /* One at a time as parts of a concatenation, whose sizes are then followed. */
    for (uint32_t i = 0; i < count; i++)
        if (!(x[i] = build_expand_dims(&n->b, x[i], axis, 1)))
            return false;
    return cml_done(n, build_concat(&n->b, count, x, axis));
}

bool cml_split(CmlNode *n)
{
    const Expr *x = cml_x(n, "x"), **parts;
    int64_t     count = cml_int(n, "num_splits", 0);
    uint32_t    axis;
    Ints        sizes;

    if (!x || !cml_ints(n, "split_sizes", &sizes) ||
        !cml_axis(n, cml_int(n, "axis", 0), expr_rank(x), &axis))
        return false;
    if ((count && count != n->nout) || (sizes.n && sizes.n != n->nout))
        return cml_error(n, E_IMPORT, "%lld parts for %u outputs",
                         (long long)(sizes.n ? sizes.n : count), n->nout);
    parts = NEW_ARRAY(n->b.c->arena, const Expr *, n->nout + 1);
    if (!build_split(&n->b, x, axis, sizes.n ? &sizes : NULL, n->nout, parts))
        return false;
    for (uint32_t i = 0; i < n->nout; i++)
        if (!cml_done_at(n, i, parts[i]))
            return false;
    return true;
}

bool cml_tile(CmlNode *n)
{
    TileAttrs  *a = ATTRS(&n->b, TileAttrs);
    const Expr *x = cml_x(n, "x");
    bool        given = n->nargs > 1 || !n->layer;
    Dims        d;

    if (!x || (given ? !cml_operand_forms(n, "reps", &d) : !cml_forms(n, "reps", &d)))
        return false;
    if (given && n->layer)
        (void)cml_has(n, "reps");
    if (d.n != expr_rank(x))
        return cml_error(n, E_IMPORT, "%u repetitions of %s", d.n, type_text(n->b.c, x->type));
    for (uint32_t i = 0; i < d.n; i++)
        if (d.at[i]->lo < 1)
            return cml_error(n, E_IMPORT, "%s times", dim_text(n->b.c, d.at[i]));
    a->reps = d;
    return cml_done(n, build1(&n->b, "tile", x, a));
}

/* ---- broadcast ------------------------------------------------------------------------------------------ */

static bool broadcast_to(CmlNode *n, const Expr *x, Dims d)
{
    Dims out;

    return x && build_broadcast_dims(&n->b, expr_forms(x), d, &out) &&
           cml_done(n, build_broadcast_to(&n->b, x, out.n, out.at));
}

bool cml_broadcast(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    Dims        d;

    return x && cml_forms(n, "target_shape", &d) && build_check_shape(&n->b, d) &&
           broadcast_to(n, x, d);
}

bool cml_broadcast_like(CmlNode *n)
{
    const Expr *x = cml_x(n, "x"), *like = x ? cml_x(n, "like") : NULL;

    return like && broadcast_to(n, x, expr_forms(like));
}
