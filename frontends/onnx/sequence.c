/* Sequences.  One has a known length everywhere here, so it is a tuple. */
#include "frontends/onnx/onnx.h"

bool is_sequence(const Import *im, const Expr *e)
{
    return e->type->kind == TYPE_TUPLE && !onnx_optional(im, e);
}

const Expr *sequence_element(const Build *b, const Expr *s, uint32_t i)
{
    return s->kind == EXPR_TUPLE ? s->kids[i] : build_proj(b, s, i);
}

static bool items(Node *n, uint32_t i, uint32_t *count, const Expr ***out)
{
    const Expr *s;

    if (!node_has(n, i) || !is_sequence(n->im, n->in[i]))
        return node_error(n, E_IMPORT, "input %u should be a sequence", i);
    s = n->in[i];
    *count = s->type->n;
    *out = NEW_ARRAY(n->b.c->arena, const Expr *, *count + 2);
    for (uint32_t k = 0; k < *count; k++)
        if (!((*out)[k] = sequence_element(&n->b, s, k)))
            return false;
    return true;
}

/* A position in 0 .. limit-1 from input i, below 0 counted from `count`; the fallback where it is
 * left out. */
static bool position(Node *n, uint32_t i, uint32_t count, uint32_t limit, uint32_t fallback,
                     uint32_t *out)
{
    Ints v;

    *out = fallback;
    if (node_has(n, i)) {
        if (!node_const_ints(n, i, &v))
            return false;
        if (v.n != 1 || v.at[0] < -(int64_t)count || v.at[0] >= limit)
            return node_error(n, E_IMPORT, "the position is outside the sequence");
        *out = (uint32_t)(v.at[0] < 0 ? v.at[0] + count : v.at[0]);
    }
    return true;
}

static bool sequence(Node *n, uint32_t count, const Expr *const *xs)
{
    return node_done(n, expr_tuple(n->b.c, count, xs, n->b.loc));
}

bool convert_sequence_construct(Node *n)
{
    node_ignore(n, "dtype"); /* of an empty one: its elements say it */
    for (uint32_t i = 0; i < n->nin; i++)
        if (!node_need_rank(n, i, 0, MAX_RANK))
            return false;
    return sequence(n, n->nin, n->in);
}

bool convert_sequence_at(Node *n)
{
    const Expr **xs;
    uint32_t     count, at;

    return items(n, 0, &count, &xs) && position(n, 1, count, count, 0, &at) &&
           (count > 0 || node_error(n, E_IMPORT, "the sequence is empty")) && node_done(n, xs[at]);
}

bool convert_sequence_insert(Node *n)
{
    const Expr **xs;
    uint32_t     count, at;

    if (!items(n, 0, &count, &xs) || !node_need_rank(n, 1, 0, MAX_RANK) ||
        !position(n, 2, count, count + 1, count, &at))
        return false;
    for (uint32_t i = count; i > at; i--)
        xs[i] = xs[i - 1];
    xs[at] = n->in[1];
    return sequence(n, count + 1, xs);
}

bool convert_sequence_erase(Node *n)
{
    const Expr **xs;
    uint32_t     count, at;

    if (!items(n, 0, &count, &xs) || !position(n, 1, count, count, count - 1, &at))
        return false;
    if (count == 0)
        return node_error(n, E_IMPORT, "the sequence is empty");
    for (uint32_t i = at; i + 1 < count; i++)
        xs[i] = xs[i + 1];
    return sequence(n, count - 1, xs);
}

bool convert_sequence_length(Node *n)
{
    const Expr **xs;
    uint32_t     count;
    int64_t      v;

    if (!items(n, 0, &count, &xs))
        return false;
    v = count;
    return node_done(n, build_const(&n->b, DT_I64, 0, NULL, &v));
}

bool convert_concat_from_sequence(Node *n)
{
    bool         fresh = node_int(n, "new_axis", 0) != 0;
    const Expr **xs;
    uint32_t     count, axis;

    if (!items(n, 0, &count, &xs))
        return false;
    if (count == 0)
        return node_error(n, E_IMPORT, "the sequence is empty");
    if (!expr_has_shape(xs[0]) ||
        !node_axis(n, node_int(n, "axis", 0), expr_rank(xs[0]) + fresh, &axis))
        return false;
    for (uint32_t i = 0; fresh && i < count; i++)
        xs[i] = build_expand_dims(&n->b, xs[i], axis, 1);
    return node_done(n, build_concat(&n->b, count, xs, axis));
}

#define MAX_PIECES 65536

bool convert_split_to_sequence(Node *n)
{
    const Build *b = &n->b;
    bool         keep = node_int(n, "keepdims", 1) != 0 || node_has(n, 1);
    int64_t      extent, at = 0, dims[MAX_RANK];
    VEC(const Expr *) out = {0};
    uint32_t axis, k = 0;
    Ints     sizes = {1, (int64_t[]){1}};
    bool     each = true;

    if (!node_need_rank(n, 0, 1, MAX_RANK) ||
        !node_axis(n, node_int(n, "axis", 0), expr_rank(n->in[0]), &axis))
        return false;
    if (node_has(n, 1)) {
        if (!node_need_rank(n, 1, 0, 1) || !node_const_ints(n, 1, &sizes))
            return false;
        each = expr_rank(n->in[1]) == 0;
    }
    extent = build_dim(b, n->in[0], axis);
    for (uint32_t i = 0; i < expr_rank(n->in[0]); i++)
        if (i != axis)
            dims[k++] = build_dim(b, n->in[0], i);
    for (uint32_t i = 0; each ? at < extent : i < sizes.n; i++) {
        int64_t     size = each ? sizes.at[0] : sizes.at[i];
        const Expr *x;

        if (each && size > extent - at)
            size = extent - at;
        if (size < each || size > extent - at || out.n == MAX_PIECES)
            break;
        x = build_slice(b, n->in[0], axis, at, at + size);
        x = keep ? x : build_reshape(b, x, k, dims);
        if (!x)
            return false;
        vec_push(b->c->arena, &out, x);
        at += size;
    }
    if (at != extent)
        return node_error(n, E_IMPORT, "the pieces do not make up %lld cells", (long long)extent);
    return sequence(n, out.n, out.at);
}

/* ---- SequenceMap --------------------------------------------------------------------------------- */

/* The body once for each element; what is no sequence is the same for all. */
bool convert_sequence_map(Node *n)
{
    const Build     *b = &n->b;
    const OnnxGraph *g = node_graph(n, "body");
    const Expr     **in = NEW_ARRAY(b->c->arena, const Expr *, n->nin + 1), **made, ***out;
    uint32_t         count = 0;

    if (!g)
        return false;
    if (g->output.n != n->nout)
        return node_error(n, E_IMPORT, "its body has %u outputs, not %u", g->output.n, n->nout);
    if (!node_has(n, 0) || !is_sequence(n->im, n->in[0]))
        return node_error(n, E_IMPORT, "input 0 should be a sequence");
    count = n->in[0]->type->n;
    made = NEW_ARRAY(b->c->arena, const Expr *, n->nout + 1);
    out = NEW_ARRAY(b->c->arena, const Expr **, n->nout + 1);
    for (uint32_t i = 0; i < n->nin; i++)
        if (!node_has(n, i) || (is_sequence(n->im, n->in[i]) && n->in[i]->type->n != count))
            return node_error(n, E_IMPORT, "input %u should be there, with %u elements", i, count);
    for (uint32_t k = 0; k < n->nout; k++)
        out[k] = NEW_ARRAY(b->c->arena, const Expr *, count + 1);
    for (uint32_t j = 0; j < count; j++) {
        for (uint32_t i = 0; i < n->nin; i++)
            in[i] = is_sequence(n->im, n->in[i]) ? sequence_element(b, n->in[i], j) : n->in[i];
        if (!onnx_subgraph(n, g, n->nin, in, made))
            return false;
        for (uint32_t k = 0; k < n->nout; k++)
            out[k][j] = made[k];
    }
    for (uint32_t k = 0; k < n->nout; k++)
        n->out[k] = expr_tuple(b->c, count, out[k], b->loc);
    return true;
}
