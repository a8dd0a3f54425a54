/* Lists: sequences of which a run decides the number of elements, or which is which.
 *
 * A list is a count, the cells of as many elements as there may be, each with the room of the
 * largest, and, if they differ, their sizes.  What lies behind the count means nothing. */
#include "frontends/onnx/onnx.h"

const Expr *onnx_list_new(Import *im, Loc loc, OnnxList l)
{
    const Expr *parts[] = {l.count, l.cells, l.sizes}, *e;

    if (!l.count || !l.cells || (pack_open(l.element) && !l.sizes))
        return NULL;
    e = expr_tuple(im->c, l.sizes ? 3 : 2, parts, loc);
    map_put(im->lists, PTR_KEY(e), DUP_ARRAY(im->c->arena, &l, 1));
    return e;
}

const OnnxList *onnx_list(const Import *im, const Expr *e)
{
    return map_get(im->lists, PTR_KEY(e));
}

void list_fix(const Import *im, const Expr *e)
{
    const OnnxOptional *o = onnx_optional(im, e);
    OnnxList           *l = map_get(im->lists, PTR_KEY(o ? o->value : e));

    if (l)
        l->fixed = true;
}

/* ---- cells ------------------------------------------------------------------------------------------ */

static const Expr *number(const Build *b, int64_t v)
{
    return build_const(b, DT_I64, 0, NULL, &v);
}

static const Expr *add(const Build *b, const Expr *x, const Expr *y)
{
    return build2(b, "add", x, y, NULL);
}

static const Expr *as_cell(const Build *b, const Expr *x)
{
    int64_t one = 1;

    return build_reshape(b, x, 1, &one);
}

/* count rows of `like`'s further dimensions, all 0. */
static const Expr *zero_rows(const Build *b, const Expr *like, int64_t count)
{
    const Idx *dims[MAX_RANK + 1] = {idx_const(b->c->arith, count)};

    for (uint32_t i = 1; i < expr_rank(like); i++)
        dims[i] = expr_form(like, i);
    return build_zeros_of(b, expr_dtype(like), expr_rank(like), dims);
}

/* The first `most` rows of x, with zeros behind them if it has less. */
static const Expr *rows(const Build *b, const Expr *x, int64_t most)
{
    int64_t have = build_dim(b, x, 0);

    if (have > most)
        return build_slice(b, x, 0, 0, most);
    return have == most ? x
                        : build_concat(b, 2, (const Expr *[]){x, zero_rows(b, x, most - have)}, 0);
}

OnnxList list_of_elements(const Build *b, OnnxPack *of, int64_t most, uint32_t count,
                          const Expr *const *at)
{
    OnnxList     l = {.element = of, .most = most, .count = number(b, count)};
    const Expr **cells = NEW_ARRAY(b->c->arena, const Expr *, count + 1);
    const Expr **sizes = NEW_ARRAY(b->c->arena, const Expr *, count + 1);
    const Idx   *dims[MAX_RANK + 1] = {idx_const(b->c->arith, most)};
    int64_t      rank[2] = {most, of->n};

    for (uint32_t i = 0; i < of->n; i++)
        dims[i + 1] = of->room[i];
    for (uint32_t i = 0; i < count; i++) {
        cells[i] = build_expand_dims(b, pack_padded(b, of, at[i]), 0, 1);
        sizes[i] = build_expand_dims(b, pack_sizes(b, at[i]), 0, 1);
    }
    l.cells = count ? rows(b, build_concat(b, count, cells, 0), most)
                    : build_zeros_of(b, of->dtype, of->n + 1, dims);
    if (pack_open(of))
        l.sizes = count ? rows(b, build_concat(b, count, sizes, 0), most)
                        : build_zeros(b, DT_I64, 2, rank);
    return l;
}

/* A list with the room of `of`, which is at least its own. */
static OnnxList widened(const Build *b, OnnxPack *of, OnnxList l)
{
    OnnxPack all = {.kind = PACK_TENSOR, .dtype = of->dtype, .n = of->n + 1};

    if (pack_open(of) && !l.sizes) {
        int64_t     rank[2] = {l.most, of->n};
        const Expr *own = build_values(b, type_tensor_i64(b->c, DT_I64, 1, rank + 1),
                                       (Dims){of->n, l.element->room});

        l.sizes = build_broadcast(b, own, 2, rank);
    }
    all.room[0] = expr_form(l.cells, 0);
    for (uint32_t i = 0; i < of->n; i++) {
        all.room[i + 1] = of->room[i];
        all.open[i + 1] = of->open[i];
    }
    l.cells = pack_padded(b, &all, l.cells);
    l.element = of;
    return l;
}

OnnxList list_fitted(Import *im, const Build *b, OnnxPack *of, int64_t most, const Expr *e)
{
    const OnnxList *had = onnx_list(im, e);
    OnnxList        l;

    if (!had) {
        const Expr **at = NEW_ARRAY(b->c->arena, const Expr *, e->type->n + 1);

        for (uint32_t i = 0; i < e->type->n; i++)
            at[i] = sequence_element(b, e, i);
        return list_of_elements(b, of, most, e->type->n, at);
    }
    l = widened(b, of, *had);
    l.cells = rows(b, l.cells, most);
    l.sizes = l.sizes ? rows(b, l.sizes, most) : NULL;
    l.most = most;
    return l;
}

bool list_of(Node *n, uint32_t i, OnnxList *out)
{
    const Expr     *e = n->in[i];
    const OnnxList *had = onnx_list(n->im, e);
    OnnxPack       *p;

    if (had) {
        *out = *had;
        return true;
    }
    if (e->type->n == 0)
        return node_error(n, E_IMPORT, "the sequence is empty");
    p = pack_of(n->im, e, NULL);
    p = pack_join(n->b.c, &(OnnxPack){.kind = PACK_SEQUENCE}, p);
    if (!p)
        return node_error(n, E_UNSUPPORTED, "its elements differ in rank or type");
    *out = list_fitted(n->im, &n->b, p->of, e->type->n, e);
    return out->cells != NULL;
}

/* ---- operators -------------------------------------------------------------------------------------- */

/* Input i as a position in 0 .. limit-1, below 0 counted from the list's end; else the run ends. */
static const Expr *position(Node *n, uint32_t i, const OnnxList *l, const Expr *limit)
{
    const Build *b = &n->b;
    const Expr  *p, *zero = number(b, 0), *inside;
    const Idx   *yes;

    if (!node_need_rank(n, i, 0, 1) || !expr_single(n->in[i]))
        return node_error(n, E_IMPORT, "the position is not one number");
    p = build_reshape(b, build_cast(b, n->in[i], DT_I64), 0, NULL);
    p = build_where(b, build2(b, "less", p, zero, NULL), add(b, p, l->count), p);
    inside = build2(b, "logical_and", build2(b, "less_equal", zero, p, NULL),
                    build2(b, "less", p, limit, NULL), NULL);
    RunDim d = {as_cell(b, build_cast(b, inside, DT_I64)), 1, idx_const(b->c->arith, 1), 0, 1};
    return onnx_bind(n, 0, 1, &d, &yes) ? p : NULL;
}

bool list_at(Node *n, const OnnxList *l)
{
    const Build *b = &n->b;
    const Expr  *p = position(n, 1, l, l->count);

    return p && node_done(n, pack_cut(n, l->element, build_take(b, l->cells, p, 0), 0,
                                      l->sizes ? build_take(b, l->sizes, p, 0) : NULL, 0));
}

/* Rows from where `from` says, of as many as there are. */
static const Expr *moved(const Build *b, const Expr *x, const Expr *from)
{
    int64_t last = build_dim(b, x, 0) - 1;

    return build_take(b, x, cell_clamp(b, from, cell_number(b, 0), cell_number(b, last)), 0);
}

bool list_insert(Node *n, const OnnxList *had)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[1], *at, *j, *from, *slice[3] = {0};
    OnnxPack    *of = pack_of(n->im, x, NULL);
    OnnxList     l;

    if (of->kind != PACK_TENSOR || !(of = pack_join(b->c, had->element, of)))
        return node_error(n, E_UNSUPPORTED, "%s is no element of this sequence",
                          type_text(b->c, x->type));
    l = widened(b, of, *had);
    at = l.count;
    if (!l.fixed)
        l.most++;
    l.cells = rows(b, l.cells, l.most);
    l.sizes = l.sizes ? rows(b, l.sizes, l.most) : NULL;
    if (node_has(n, 2)) { /* from there on one further */
        if (!(at = position(n, 2, &l, add(b, l.count, number(b, 1)))))
            return false;
        j = build_arange(b, idx_const(b->c->arith, l.most), DT_I64);
        from =
            build2(b, "subtract", j, build_cast(b, build2(b, "less", at, j, NULL), DT_I64), NULL);
        l.cells = moved(b, l.cells, from);
        l.sizes = l.sizes ? moved(b, l.sizes, from) : NULL;
    }
    slice[0] = l.cells, slice[1] = pack_padded(b, of, x), slice[2] = at;
    l.cells = build_call(b, "update_slice", 3, slice, NULL);
    slice[0] = l.sizes, slice[1] = pack_sizes(b, x);
    l.sizes = l.sizes ? build_call(b, "update_slice", 3, slice, NULL) : NULL;
    l.count = add(b, l.count, number(b, 1));
    return node_done(n, onnx_list_new(n->im, b->loc, l));
}

bool list_erase(Node *n, const OnnxList *had)
{
    const Build *b = &n->b;
    OnnxList     l = *had;
    const Expr  *at, *j, *from;

    if (l.most == 0)
        return node_error(n, E_IMPORT, "the sequence is empty");
    if (node_has(n, 1)) {
        if (!(at = position(n, 1, &l, l.count)))
            return false;
        j = build_arange(b, idx_const(b->c->arith, l.most), DT_I64);
        from = add(b, j, build_cast(b, build2(b, "less_equal", at, j, NULL), DT_I64));
        l.cells = moved(b, l.cells, from);
        l.sizes = l.sizes ? moved(b, l.sizes, from) : NULL;
    }
    l.count = build2(b, "subtract", l.count, number(b, 1), NULL);
    return node_done(n, onnx_list_new(n->im, b->loc, l));
}

bool list_keeps(Node *n, const OnnxList *l)
{
    const Build *b = &n->b;
    const Expr  *over = build2(b, "subtract", as_cell(b, l->count), cell_number(b, l->most), NULL);

    return onnx_require(n, build2(b, "maximum", over, cell_number(b, 0), NULL),
                        "the sequence is too long");
}

bool list_count(Node *n, const OnnxList *l, uint32_t out, const Idx **count)
{
    RunDim d = {as_cell(&n->b, l->count), 0, idx_const(n->b.c->arith, l->most), 0, 1};

    return onnx_bind(n, out, 1, &d, count);
}

/* Dimension 0 as dimension `axis`. */
static const Expr *first_to(const Build *b, const Expr *x, uint32_t axis)
{
    int64_t axes[MAX_RANK + 1];

    for (uint32_t k = 0; k < expr_rank(x); k++)
        axes[k] = k < axis ? k + 1 : k == axis ? 0 : k;
    return axis ? build_transpose(b, x, expr_rank(x), axes) : x;
}

/* Which cells along `axis` of all elements are there: [most * room] */
static const Expr *cells_there(const Build *b, const OnnxList *l, uint32_t axis)
{
    const Idx  *room = l->element->room[axis], *most = idx_const(b->c->arith, l->most);
    const Idx  *one = idx_const(b->c->arith, 1), *all = idx_mul(b->c->arith, most, room);
    const Expr *j = build_arange(b, most, DT_I64), *t = build_arange(b, room, DT_I64), *size;

    j = build_reshape_to(b, j, 2, (const Idx *[]){most, one});
    t = build_reshape_to(b, t, 2, (const Idx *[]){one, room});
    size = build_slice(b, l->sizes, 1, axis, (int64_t)axis + 1);
    j = build2(b, "logical_and", build2(b, "less", j, l->count, NULL),
               build2(b, "less", t, size, NULL), NULL);
    return build_reshape_to(b, j, 1, &all);
}

bool list_concat(Node *n, const OnnxList *l, uint32_t axis, bool fresh)
{
    const Build    *b = &n->b;
    Arith          *A = b->c->arith;
    const OnnxPack *of = l->element;
    const Expr     *x, *at;
    const Idx      *dims[MAX_RANK + 1], *count;

    for (uint32_t i = 0; i < of->n; i++)
        if (of->open[i] && (fresh || i != axis))
            return node_error(n, E_UNSUPPORTED, "dimension %u of its elements may differ", i);
    if (of->n >= MAX_RANK || l->most == 0)
        return node_error(n, E_UNSUPPORTED, "elements of %u dimensions", of->n);
    if (fresh || !of->open[axis]) {
        if (!list_count(n, l, 0, &count))
            return false;
        x = first_to(b, build_slice_to(b, l->cells, 0, idx_const(A, 0), count), axis);
        if (fresh)
            return node_done(n, x);
        for (uint32_t i = 0; i < of->n; i++)
            dims[i] = i == axis ? idx_mul(A, count, of->room[i]) : of->room[i];
        return node_done(n, build_reshape_to(b, x, of->n, dims));
    }
    for (uint32_t i = 0; i < of->n; i++)
        dims[i] = i == axis ? idx_mulc(A, of->room[i], l->most) : of->room[i];
    x = build_reshape_to(b, first_to(b, l->cells, axis), of->n, dims);
    at = onnx_positions(n, cells_there(b, l, axis), 0, axis, NULL);
    return node_done(n, build_take(b, x, at, axis));
}
