/* recurrent_cell: a step of a recurrent layer that is written out, read as the gates of a cell.
 *
 *   %4 = nn.bias_add(add(nn.matmul(%x, %w), nn.matmul(%h, %r)), %b)            // sums of all gates
 *   %5 = add(multiply(sigmoid(f of %4), %c), multiply(sigmoid(i of %4), tanh(g of %4)))
 *   %6 = multiply(sigmoid(o of %4), tanh(%5))
 *     -> an LSTM: state %6, cell %5 after %c, and the sums of its gates i, o, f, g
 *
 *   %6 = add(multiply(%z, %h), multiply(subtract(1, %z), tanh(..)))            // a GRU
 *   %6 = tanh(%4)                                                              // an RNN
 *
 * The sum of a gate is a list of terms, a product or a bias each, of which the gate takes some
 * columns: slices and parts of splits move the window, reshapes that keep rows leave it as it is,
 * and a product of two tensors put together is two products.  So the order of the gates, how many
 * products compute them, and how biases are divided do not matter.  Operands of sums and products
 * stand in any order.  recurrent_loop.c says which terms are of the input, which of the state. */
#include "passes/graph/recurrent.h"

#include <string.h>

enum { MAX_CHAIN = 16 }; /* operators one in another, between a gate and its products */

const Expr *without_views(const Expr *e)
{
    while (is_view(e))
        e = call_arg(e, 0);
    return e;
}

static bool cells_are(const Expr *e, int64_t n)
{
    int64_t cells;

    return expr_has_shape(e) && type_elems(e->type, &cells) && cells == n;
}

/* The last dimension; 0: it has none that is a number. */
static int64_t width_of(const Expr *e)
{
    int64_t n = 0;

    return expr_has_shape(e) && e->type->n && idx_is_const(e->type->dims[e->type->n - 1], &n) ? n
                                                                                              : 0;
}

/* A call of two operands, cell by cell. */
static bool is_even(const Expr *e, const char *op, int64_t cells)
{
    return call_is(e, op) && cells_are(e, cells) && cells_are(call_arg(e, 0), cells) &&
           cells_are(call_arg(e, 1), cells);
}

/* ---- windows ------------------------------------------------------------------------------------ */

static bool same_but_last(const Type *a, const Type *b)
{
    return a && a->kind == TYPE_TENSOR && a->n == b->n && a->n &&
           !memcmp(a->dims, b->dims, (a->n - 1) * sizeof *a->dims);
}

/* Columns of a slice of the last dimension alone, that lie side by side. */
static bool slice_from(const Expr *e, int64_t *from)
{
    const StridedSliceAttrs *a = ATTRS_OF(StridedSliceAttrs, e);
    const Type              *t = call_arg(e, 0)->type;

    if (!same_but_last(t, e->type))
        return false;
    for (uint32_t i = 0; i < a->strides.n; i++)
        if (a->strides.at[i] != 1)
            return false;
    for (uint32_t i = 0; i < a->begin.n; i++)
        if (axis_from_front(a->axes.n ? a->axes.at[i] : (int64_t)i, t->n) == t->n - 1) {
            if (!idx_is_const(a->begin.at[i], from))
                return false;
            *from += *from < 0 ? width_of(call_arg(e, 0)) : 0;
            return *from >= 0;
        }
    *from = 0;
    return true;
}

static bool part_from(const Expr *e, const Expr *split, int64_t *from)
{
    const SplitAttrs *a = ATTRS_OF(SplitAttrs, split);
    const Type       *t = call_arg(split, 0)->type;

    if (!t || t->kind != TYPE_TENSOR || axis_from_front(a->axis, t->n) != t->n - 1)
        return false;
    *from = 0;
    if (a->sections)
        *from = width_of(e) * e->u.index;
    else if (e->u.index)
        return idx_is_const(a->indices.at[e->u.index - 1], from);
    return true;
}

/* What e shows columns of, which begin at *at: slices, parts and views that keep rows are taken
 * off.  NULL: it is cut in another way. */
static const Expr *uncut(const Expr *e, int64_t *at)
{
    for (;;) {
        const Expr *kid = NULL;
        int64_t     from = 0;

        if (is_view(e) && width_of(e) && width_of(call_arg(e, 0)) == width_of(e))
            kid = call_arg(e, 0);
        else if (call_is(e, "strided_slice") && expr_has_shape(e))
            kid = slice_from(e, &from) ? call_arg(e, 0) : NULL;
        else if (e->kind == EXPR_PROJ && call_is(e->kids[0], "split"))
            kid = part_from(e, e->kids[0], &from) ? call_arg(e->kids[0], 0) : NULL;
        if (!kid)
            return e;
        *at += from;
        e = kid;
    }
}

/* ---- sums --------------------------------------------------------------------------------------- */

typedef struct {
    int64_t rows; /* of all tensors: of the batch */
    Sum    *sum;
} Adding;

static bool add_term(Sum *s, Term t)
{
    if (s->n == MAX_TERMS)
        return false;
    s->at[s->n++] = t;
    return true;
}

/* The product x * w, or, where x is two tensors side by side, of each with its rows of w. */
static bool add_product(const Adding *a, const Expr *x, const Expr *w, bool transposed, int64_t at)
{
    const ConcatenateAttrs *k;
    int64_t                 row = 0;
    const Expr             *parts;

    if (w->type->kind != TYPE_TENSOR || w->type->n != 2)
        return false;
    if (!call_is(x, "concatenate") || call_arg(x, 0)->kind != EXPR_TUPLE)
        return add_term(a->sum, (Term){x, w, transposed, at, 0, width_of(x)});
    k = ATTRS_OF(ConcatenateAttrs, x);
    parts = call_arg(x, 0);
    if (axis_from_front(k->axis, x->type->n) != x->type->n - 1)
        return false;
    for (uint32_t i = 0; i < parts->nkids; i++) {
        int64_t n = width_of(parts->kids[i]);

        if (!n || !add_term(a->sum, (Term){parts->kids[i], w, transposed, at, row, n}))
            return false;
        row += n;
    }
    return true;
}

/* The terms that make columns from `at` on. */
static bool add_sum(const Adding *a, const Expr *e, int64_t at, int depth)
{
    int64_t width;
    bool    bias;

    if (depth == MAX_CHAIN || !(e = uncut(e, &at)) || !(width = width_of(e)))
        return false;
    if (call_is(e, "nn.dense") && cells_are(e, a->rows * width))
        return add_product(a, call_arg(e, 0), call_arg(e, 1), true, at);
    if (call_is(e, "nn.matmul") && cells_are(e, a->rows * width) &&
        !ATTRS_OF(MatmulAttrs, e)->transpose_a)
        return add_product(a, call_arg(e, 0), call_arg(e, 1), ATTRS_OF(MatmulAttrs, e)->transpose_b,
                           at);
    bias = call_is(e, "nn.bias_add") && !ATTRS_OF(BiasAddAttrs, e)->layout[0] &&
           axis_from_front(ATTRS_OF(BiasAddAttrs, e)->axis, e->type->n) == e->type->n - 1;
    if ((bias || call_is(e, "add")) && cells_are(e, a->rows * width)) {
        for (uint32_t i = 0; i < 2; i++)
            if (width_of(call_arg(e, i)) != width || !add_sum(a, call_arg(e, i), at, depth + 1))
                return false;
        return true;
    }
    /* A bias is the same for all rows; others are what a GRU's last gate may have. */
    return (cells_are(e, width) || call_is(e, "multiply")) &&
           add_term(a->sum, (Term){NULL, e, false, at, 0, 0});
}

static bool sum_of(const Cell *k, const Expr *e, int64_t at, Sum *out)
{
    Adding a = {k->rows, out};

    out->n = 0;
    return add_sum(&a, e, at, 0);
}

/* An activation of a sum; it may be of all gates, of which e is a part. */
static bool is_gate(const Cell *k, const Expr *e, const char *activation, Sum *out)
{
    int64_t at = 0;

    if (width_of(e) != k->units || !cells_are(e, k->rows * k->units))
        return false;
    e = uncut(e, &at);
    return call_is(e, activation) && sum_of(k, call_arg(e, 0), at, out);
}

/* ---- cells -------------------------------------------------------------------------------------- */

/* A gate times something, which is *other. */
static bool is_gated(const Cell *k, const Expr *e, Sum *gate, const Expr **other)
{
    e = without_views(e);
    for (uint32_t i = 0; is_even(e, "multiply", k->rows * k->units) && i < 2; i++)
        if (is_gate(k, call_arg(e, i), "sigmoid", gate)) {
            *other = call_arg(e, 1 - i);
            return true;
        }
    return false;
}

/* The gates in the operator's order: i o f c. */
static bool is_lstm(Cell *k, const Expr *e)
{
    int64_t     cells = k->rows * k->units;
    const Expr *through, *fresh;

    if (!is_gated(k, e, &k->gate[1], &through))
        return false;
    through = without_views(through);
    if (!call_is(through, "tanh"))
        return false;
    k->c1 = without_views(call_arg(through, 0));
    for (uint32_t i = 0; is_even(k->c1, "add", cells) && i < 2; i++) {
        /* A sum of two gated values: the fresh one is a tanh of a sum. */
        if (!is_gated(k, call_arg(k->c1, i), &k->gate[0], &fresh) ||
            !is_gate(k, fresh, "tanh", &k->gate[3]) ||
            !is_gated(k, call_arg(k->c1, 1 - i), &k->gate[2], &k->c0))
            continue;
        k->kind = CELL_LSTM;
        k->gates = 4;
        return true;
    }
    return false;
}

static bool is_rest(const Expr *e, const Expr *z)
{
    double one;

    e = without_views(e);
    return call_is(e, "subtract") && expr_const_f(call_arg(e, 0), &one) && one == 1 &&
           without_views(call_arg(e, 1)) == without_views(z);
}

/* The last gate of a GRU: of the input, and of the state behind the gate r, which is before the
 * product or behind it. */
static bool is_fresh(Cell *k, const Expr *e)
{
    Sum *last = &k->gate[2];

    if (!is_gate(k, e, "tanh", last))
        return false;
    for (uint32_t i = 0; i < last->n; i++) {
        Term        t = last->at[i];
        const Expr *other, *x = t.x ? t.x : t.w;

        if (!is_gated(k, x, &k->gate[1], &other))
            continue;
        if (t.x) { /* (r * h) * w */
            k->kind = CELL_GRU;
            last->at[i].x = other;
            return true;
        }
        k->kind = CELL_GRU_LINEAR; /* r * (h * w + b) */
        last->at[i] = last->at[--last->n];
        return t.from == 0 && sum_of(k, other, 0, &k->inner);
    }
    return false;
}

/* The gates z r h. */
static bool is_gru(Cell *k, const Expr *e)
{
    int64_t cells = k->rows * k->units;

    k->gates = 3;
    for (uint32_t i = 0; is_even(e, "add", cells) && i < 2; i++) {
        const Expr *kept = without_views(call_arg(e, i)), *made = without_views(call_arg(e, 1 - i));

        if (!is_even(kept, "multiply", cells) || !is_even(made, "multiply", cells))
            continue;
        for (uint32_t n = 0; n < 2; n++) { /* which operand is the gate, */
            const Expr *z = call_arg(kept, n);

            k->h0 = call_arg(kept, 1 - n);
            for (uint32_t r = 0; r < 2; r++) /* and which what it leaves */
                if (is_rest(call_arg(made, r), z) && is_gate(k, z, "sigmoid", &k->gate[0]) &&
                    is_fresh(k, call_arg(made, 1 - r)))
                    return true;
        }
    }
    return false;
}

static bool is_rnn(Cell *k, const Expr *e)
{
    static const char *const op[] = {"tanh", "nn.relu", "sigmoid"}, *const name[] = {"tanh", "relu",
                                                                                     "sigmoid"};

    for (uint32_t i = 0; i < COUNT(op); i++)
        if (is_gate(k, e, op[i], &k->gate[0])) {
            k->kind = CELL_RNN;
            k->gates = 1;
            k->f = name[i];
            return true;
        }
    return false;
}

bool recurrent_cell(const Expr *e, Cell *out)
{
    int64_t cells;

    e = without_views(e);
    *out = (Cell){.units = width_of(e)};
    if (!out->units || !is_float(e) || !type_elems(e->type, &cells) || !cells)
        return false;
    out->rows = cells / out->units;
    return is_lstm(out, e) || is_gru(out, e) || is_rnn(out, e);
}
