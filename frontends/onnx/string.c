/* Strings (docs/design/strings.md): a tensor of shape S is one of bytes, [S, room], with zeros
 * behind each string.
 *
 *     ["cat", "mouse"]    c a t 0 0
 *                         m o u s e
 *
 * No other room knows of them.  Here they are noted by expression; operators that only choose and
 * move cells work on the cells' numbers, by which the strings are taken.  Zero bytes end a string:
 * what a caller has behind the first one is not looked at. */
#include "frontends/onnx/onnx.h"

#include <string.h>

const Expr *onnx_string(Import *im, const Expr *cells)
{
    if (cells)
        map_put(im->strings, PTR_KEY(cells), im);
    return cells;
}

bool onnx_is_string(const Import *im, const Expr *e)
{
    return map_get(im->strings, PTR_KEY(e)) != NULL;
}

const Type *onnx_value_type(Import *im, const Expr *e)
{
    const Type *t = e->type;

    return onnx_is_string(im, e) ? type_tensor(im->c, t->dtype, t->n - 1, t->dims) : t;
}

const Expr *onnx_string_constant(Import *im, const OnnxTensor *t, Loc loc)
{
    Ctx    *c = im->c;
    int64_t n = 1, dims[MAX_RANK];
    Bytes   cells;

    if (t->dims.n >= MAX_RANK)
        return error_at(c, E_UNSUPPORTED, loc, "strings of %u dimensions", t->dims.n);
    for (uint32_t i = 0; i < t->dims.n; i++)
        if ((dims[i] = t->dims.at[i]) < 0 || !checked_mul(n, dims[i], &n))
            return error_at(c, E_IMPORT, loc, "a tensor of strings has a dimension below 0");
    if (n != t->string_data.n)
        return error_at(c, E_IMPORT, loc, "a tensor has %u strings, but its shape needs %lld",
                        t->string_data.n, (long long)n);
    if (!text_cells(c->diags, c->arena, loc, (size_t)n, t->string_data.at, &dims[t->dims.n],
                    &cells))
        return NULL;
    return onnx_string(
        im, expr_const(c, const_new(c, NULL, type_tensor_i64(c, DT_U8, t->dims.n + 1, dims), cells),
                       loc));
}

const Expr *onnx_strings_of(Node *n, uint32_t count, const Bytes *strings)
{
    OnnxTensor t = {.data_type = ONNX_STRING};

    vec_push(n->b.c->scratch, &t.dims, (int64_t)count);
    for (uint32_t i = 0; i < count; i++)
        vec_push(n->b.c->scratch, &t.string_data, strings[i]);
    return onnx_string_constant(n->im, &t, n->b.loc);
}

/* ---- cells ------------------------------------------------------------------------------------------ */

static const Expr *along_last(const Build *b, const char *op, const Expr *x, bool keep)
{
    int64_t last = x ? (int64_t)expr_rank(x) - 1 : 0;

    return x ? build_reduce(b, op, x, 1, &last, keep) : NULL;
}

const Expr *string_length(const Build *b, const Expr *x)
{
    const Expr *there = build_by(b, "not_equal", x, 0);

    return along_last(b, "sum", there ? build_cast(b, there, DT_I64) : NULL, true);
}

const Expr *string_rows(const Build *b, const Expr *x)
{
    const Idx *dims[2] = {idx_const(b->c->arith, 1), string_room(x)};

    for (uint32_t i = 0; i + 1 < expr_rank(x); i++)
        dims[0] = idx_mul(b->c->arith, dims[0], expr_form(x, i));
    return build_reshape_to(b, x, 2, dims);
}

const Expr *string_ended(const Build *b, const Expr *rows)
{
    const Idx *dims[2] = {expr_form(rows, 0), idx_const(b->c->arith, 1)};

    return build_concat(b, 2, (const Expr *[]){rows, build_zeros_of(b, DT_U8, 2, dims)}, 1);
}

const Expr *string_parts(const Build *b, const Expr *rows, const Expr *from, const Expr *length)
{
    Arith      *A = b->c->arith;
    const Idx  *n = expr_form(rows, 0), *room = string_room(rows), *one = idx_const(A, 1), *all;
    const Expr *j = build_arange(b, room, DT_I64), *base, *at;

    all = idx_mul(A, n, idx_addc(A, room, 1)); /* with a zero behind each row */
    rows = build_reshape_to(b, string_ended(b, rows), 1, &all);
    base =
        build2(b, "multiply", build_arange(b, n, DT_I64), cell_form(b, idx_addc(A, room, 1)), NULL);
    base = build_reshape_to(b, base, 3, (const Idx *[]){n, one, one});
    at = cell_clamp(b, build_add(b, from, j), cell_number(b, 0), cell_form(b, room));
    at = build_where(b, build_less(b, j, length), at, cell_form(b, room));
    return build_take(b, rows, build_add(b, base, at), 0);
}

/* ---- automata --------------------------------------------------------------------------------------- */

typedef struct {
    const Expr *bytes, *class_of, *next; /* [N, W]; [256] and [states * classes] of i32 */
    int64_t     classes;
} Walk;

static bool walk_on(Node *n, void *user, const Expr *i, const Expr *const *state, const Expr **next,
                    const Expr **piece)
{
    const Walk  *w = user;
    const Build *b = &n->b;
    const Expr  *byte = build_cast(b, build_take(b, w->bytes, i, 1), DT_I64), *at;

    at = build_add(b, build_by(b, "multiply", state[0], (double)w->classes),
                   build_take(b, w->class_of, byte, 0));
    next[0] = build_take(b, w->next, at, 0);
    if (piece)
        piece[0] = next[0];
    return next[0] != NULL;
}

const Expr *string_walk(Node *n, const Expr *rows, const StringAutomaton *a, bool all)
{
    const Build *b = &n->b;
    int64_t      count = 256, cells = (int64_t)a->states * a->classes, swap[2] = {1, 0};
    int32_t     *class_of = NEW_ARRAY(b->c->arena, int32_t, 256);
    const Idx   *N = expr_form(rows, 0);
    InitAttrs   *fill = ATTRS(b, InitAttrs);
    const Expr  *first, *out[2];
    Walk         w = {.bytes = rows, .classes = a->classes};

    for (uint32_t i = 0; i < 256; i++)
        class_of[i] = a->class_of[i];
    w.class_of = build_const(b, DT_I32, 1, &count, class_of);
    w.next = build_const(b, DT_I32, 1, &cells, a->next);
    fill->shape = dims_dup(b->c, &N, 1);
    fill->dtype = DT_I32;
    first = build1(b, "full", build_const(b, DT_I32, 0, NULL, &a->start), fill);
    if (!first || !onnx_rounds(n, string_room(rows), 1, &first, all, walk_on, &w, out))
        return NULL;
    return all ? build_transpose(b, out[1], 2, swap) : out[0];
}

const Expr *onnx_string_input(Import *im, const Expr *x)
{
    const Build b = {im->c, x->loc, "string"};

    return onnx_string(im, string_input(&b, x));
}

/* ---- operators on other tensors --------------------------------------------------------------------- */

static bool holds_strings(const Import *im, const Expr *e)
{
    const OnnxList     *l = onnx_list(im, e);
    const OnnxOptional *o = onnx_optional(im, e);

    if (o)
        return o->value && holds_strings(im, o->value);
    if (l)
        return l->element->string;
    return onnx_is_string(im, e) ||
           (e->kind == EXPR_TUPLE && e->nkids && holds_strings(im, e->kids[0]));
}

bool onnx_takes_strings(const Node *n)
{
    for (uint32_t i = 0; i < n->nin; i++)
        if (n->in[i] && holds_strings(n->im, n->in[i]))
            return true;
    return false;
}

/* Numbers of the rows, from `base` on, in the shape of the strings x. */
static const Expr *row_numbers(const Build *b, const Expr *x, const Idx *base, const Idx **count)
{
    uint32_t    rank = expr_rank(x) - 1;
    const Expr *at;

    *count = idx_const(b->c->arith, 1);
    for (uint32_t i = 0; i < rank; i++)
        *count = idx_mul(b->c->arith, *count, expr_form(x, i));
    at = build_arange(b, *count, DT_I64);
    if (base->lo != 0 || base->hi != 0)
        at = build_add(b, at, cell_form(b, base));
    return build_reshape_to(b, at, rank, expr_forms(x).at);
}

/* The strings of which `at` has the numbers. */
static const Expr *rows_at(Import *im, const Build *b, const Expr *rows, const Expr *at)
{
    const Expr *x;

    if (at && at->kind == EXPR_TUPLE) {
        const Expr **xs = NEW_ARRAY(b->c->arena, const Expr *, at->nkids + 1);

        for (uint32_t i = 0; i < at->nkids; i++)
            if (!(xs[i] = rows_at(im, b, rows, at->kids[i])))
                return NULL;
        return expr_tuple(b->c, at->nkids, xs, b->loc);
    }
    if (at && expr_rank(at) >= MAX_RANK)
        return error_at(b->c, E_UNSUPPORTED, b->loc, "strings of %u dimensions", expr_rank(at));
    x = at ? build_take(b, rows, at, 0) : NULL;
    return onnx_string(im, x);
}

bool convert_strings_moved(Node *n, OnnxConvert *as_numbers)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    const Expr **rows = NEW_ARRAY(b->c->arena, const Expr *, n->nin + 1), *all;
    const Idx   *base = idx_const(A, 0), *count, *room;
    uint32_t     k = 0;

    for (uint32_t i = 0; i < n->nin; i++)
        if (n->in[i] && onnx_is_string(n->im, n->in[i]))
            rows[k++] = n->in[i];
    room = string_common_room(b, k, rows);
    k = 0;
    for (uint32_t i = 0; i < n->nin; i++) {
        if (!n->in[i] || !onnx_is_string(n->im, n->in[i]))
            continue;
        n->in[i] = row_numbers(b, rows[k], base, &count);
        rows[k] =
            build_reshape_to(b, string_fitted(b, rows[k], room), 2, (const Idx *[]){count, room});
        base = idx_add(A, base, count);
        k++;
    }
    if (base->lo == 0) /* what chooses among none looks at one, too */
        rows[k++] = build_zeros_of(b, DT_U8, 2, (const Idx *[]){idx_const(A, 1), room});
    if (!(all = build_concat(b, k, rows, 0)) || !as_numbers(n))
        return false;
    for (uint32_t i = 0; i < n->nout; i++)
        if (n->out[i] && !(n->out[i] = rows_at(n->im, b, all, n->out[i])))
            return false;
    return true;
}

bool convert_strings_reshaped(Node *n, OnnxConvert *as_numbers)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0];
    const Idx   *dims[MAX_RANK + 1], *count;
    uint32_t     rank;

    for (uint32_t i = 1; i < n->nin; i++)
        if (n->in[i] && onnx_is_string(n->im, n->in[i]))
            return node_error(n, E_IMPORT, "input %u is one of strings", i);
    n->in[0] = row_numbers(b, x, idx_const(b->c->arith, 0), &count);
    if (!n->in[0] || !as_numbers(n))
        return false;
    rank = expr_rank(n->out[0]);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = expr_form(n->out[0], i);
    dims[rank] = string_room(x);
    if (rank >= MAX_RANK)
        return node_error(n, E_UNSUPPORTED, "strings of %u dimensions", rank);
    return node_done(n, onnx_string(n->im, build_reshape_to(b, x, rank + 1, dims)));
}

bool convert_strings_counted(Node *n, OnnxConvert *as_numbers)
{
    const Idx *count;

    n->in[0] = row_numbers(&n->b, n->in[0], idx_const(n->b.c->arith, 0), &count);
    return n->in[0] && as_numbers(n);
}

/* ---- who takes strings ------------------------------------------------------------------------------ */

typedef bool OnnxStrings(Node *n, OnnxConvert *as_numbers);

static const struct {
    const char  *name, *domain;
    OnnxStrings *convert;
} takers[] = {
#define own NULL
#define STRINGS(name, domain, convert) {#name, domain, convert},
#include "frontends/onnx/strings.def"
#undef STRINGS
#undef own
};

bool onnx_convert_strings(Node *n, const OnnxRow *row)
{
    for (uint32_t i = 0; i < COUNT(takers); i++)
        if (!strcmp(takers[i].name, row->name) && !strcmp(takers[i].domain, row->domain))
            return takers[i].convert ? takers[i].convert(n, row->convert) : row->convert(n);
    return node_error(n, E_UNSUPPORTED, "it is not supported for strings");
}
