/* Sequences.  One whose length and order are known is a tuple; another one is a list (list.c). */
#include "frontends/onnx/onnx.h"

bool is_sequence(const Import *im, const Expr *e)
{
    return e->type->kind == TYPE_TUPLE && !onnx_optional(im, e);
}

const Expr *sequence_element(const Build *b, const Expr *s, uint32_t i)
{
    return s->kind == EXPR_TUPLE ? s->kids[i] : build_proj(b, s, i);
}

static bool need_sequence(Node *n, uint32_t i)
{
    return (node_has(n, i) && is_sequence(n->im, n->in[i])) ||
           node_error(n, E_IMPORT, "input %u should be a sequence", i);
}

/* Is input 0 a list, or does the run say the position, input i? */
static bool wants_list(const Node *n, uint32_t i)
{
    return onnx_list(n->im, n->in[0]) || (node_has(n, i) && !build_fold(&n->b, n->in[i]));
}

static bool items(Node *n, uint32_t i, uint32_t *count, const Expr ***out)
{
    const Expr *s;

    if (!need_sequence(n, i))
        return false;
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
    OnnxList     l;

    if (!need_sequence(n, 0))
        return false;
    if (wants_list(n, 1))
        return list_of(n, 0, &l) && list_at(n, &l);
    return items(n, 0, &count, &xs) && position(n, 1, count, count, 0, &at) &&
           (count > 0 || node_error(n, E_IMPORT, "the sequence is empty")) && node_done(n, xs[at]);
}

bool convert_sequence_insert(Node *n)
{
    const Expr **xs;
    uint32_t     count, at;
    OnnxList     l;

    if (!need_sequence(n, 0) || !node_need_rank(n, 1, 0, MAX_RANK))
        return false;
    if (wants_list(n, 2) && n->in[0]->type->n > 0)
        return list_of(n, 0, &l) && list_insert(n, &l);
    if (!items(n, 0, &count, &xs) || !position(n, 2, count, count + 1, count, &at))
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
    OnnxList     l;

    if (!need_sequence(n, 0))
        return false;
    if (wants_list(n, 1))
        return list_of(n, 0, &l) && list_erase(n, &l);
    if (!items(n, 0, &count, &xs))
        return false;
    if (count == 0)
        return node_error(n, E_IMPORT, "the sequence is empty");
    if (!position(n, 1, count, count, count - 1, &at))
        return false;
    for (uint32_t i = at; i + 1 < count; i++)
        xs[i] = xs[i + 1];
    return sequence(n, count - 1, xs);
}

bool convert_sequence_length(Node *n)
{
    const OnnxList *l;
    int64_t         v;

    if (!need_sequence(n, 0))
        return false;
    if ((l = onnx_list(n->im, n->in[0])))
        return node_done(n, l->count);
    v = n->in[0]->type->n;
    return node_done(n, build_const(&n->b, DT_I64, 0, NULL, &v));
}

bool convert_concat_from_sequence(Node *n)
{
    bool         fresh = node_int(n, "new_axis", 0) != 0;
    const Expr **xs;
    uint32_t     count, axis;

    if (!need_sequence(n, 0))
        return false;
    const OnnxList *l = onnx_list(n->im, n->in[0]);
    if (l)
        return node_axis(n, node_int(n, "axis", 0), l->element->n + fresh, &axis) &&
               list_concat(n, l, axis, fresh);
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

/* Pieces of sizes that the run says. */
static bool split_by_run(Node *n, uint32_t axis)
{
    int64_t      count;
    const Expr **out;

    if (!type_dim(n->in[1]->type, 0, &count) || count > MAX_PIECES)
        return node_error(n, E_UNSUPPORTED, "a number of pieces that a run decides");
    out = NEW_ARRAY(n->b.c->arena, const Expr *, (size_t)count + 1);
    return parts_at_run(n, axis, (uint32_t)count, out) && sequence(n, (uint32_t)count, out);
}

/* Equal pieces, but for the last one, of a size that the run says: piece j has the cells from
 * j * size on. */
static bool split_evenly_by_run(Node *n, uint32_t axis)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    const Expr  *x = n->in[0], *size, *at, *j, *left, *all = cell_form(b, expr_form(x, axis));
    const Idx   *room = idx_const(A, expr_form(x, axis)->hi), *one = idx_const(A, 1), *yes;
    OnnxPack    *of = pack_of(n->im, x, NULL);
    OnnxList     l = {.element = of, .most = room->hi};
    int64_t      axes[MAX_RANK + 1], unit = 1;
    uint32_t     rank = expr_rank(x);

    if (expr_form(x, axis)->lo < 1 || rank >= MAX_RANK)
        return node_error(n, E_UNSUPPORTED, "dimension %u may be empty", axis);
    for (uint32_t i = 0; i < rank; i++)
        if (i != axis)
            build_dim(b, x, i); /* has to be a number */
    size = build_reshape(b, build_cast(b, n->in[1], DT_I64), 1, &unit);
    RunDim d = {build2(b, "minimum", size, cell_number(b, 1), NULL), 1, one, axis, 1};
    if (!onnx_bind(n, 0, 1, &d, &yes)) /* it is 1 at least, or the run ends */
        return false;
    size = build2(b, "minimum", build2(b, "maximum", size, cell_number(b, 1), NULL), all, NULL);
    of->open[axis] = true;
    of->room[axis] = room;
    of->least[axis] = 1;
    l.count = build2(b, "add", all, build2(b, "subtract", size, cell_number(b, 1), NULL), NULL);
    l.count = build_reshape(b, build2(b, "divide", l.count, size, NULL), 0, NULL);
    j = build2(b, "multiply", build_arange(b, room, DT_I64), size, NULL);
    left = build2(b, "maximum", build2(b, "subtract", all, j, NULL), cell_number(b, 0), NULL);
    left = build2(b, "minimum", left, size, NULL);
    at = build2(b, "add", build_reshape_to(b, j, 2, (const Idx *[]){room, one}),
                build_reshape_to(b, build_arange(b, room, DT_I64), 2, (const Idx *[]){one, room}),
                NULL);
    at = build2(b, "minimum", at, build2(b, "subtract", all, cell_number(b, 1), NULL), NULL);
    for (uint32_t i = 0; i <= rank; i++)
        axes[i] = i == 0 ? axis : i <= axis ? i - 1 : i;
    l.cells = build_transpose(b, build_take(b, x, at, axis), rank + 1, axes);
    for (uint32_t i = 0; i < rank; i++) { /* the other dimensions are those of x */
        const Expr *column = i == axis ? left : cell_form(b, expr_form(x, i));

        column = i == axis ? column : build_broadcast_to(b, column, 1, &room);
        column = build_expand_dims(b, column, 1, 1);
        l.sizes = l.sizes ? build_concat(b, 2, (const Expr *[]){l.sizes, column}, 1) : column;
    }
    return node_done(n, onnx_list_new(n->im, b->loc, l));
}

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
    if (node_has(n, 1) && !node_need_rank(n, 1, 0, 1))
        return false;
    if (!node_known(n, 1)) {
        node_ignore(n, "keepdims");
        return expr_rank(n->in[1]) ? split_by_run(n, axis) : split_evenly_by_run(n, axis);
    }
    if (node_has(n, 1)) {
        if (!node_const_ints(n, 1, &sizes))
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
    if (!need_sequence(n, 0))
        return false;
    for (uint32_t i = 0; i < n->nin; i++)
        if (node_has(n, i) && onnx_list(n->im, n->in[i]))
            return node_error(n, E_UNSUPPORTED, "a run decides how many elements input %u has", i);
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
