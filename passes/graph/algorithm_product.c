/* Algorithms of nn.dense, nn.matmul and nn.batch_matmul: direct, through a panel, in fours, by
 * Strassen.
 *
 * Data [n, k] that are no weights have to be transposed in every run; without a panel, a vector of
 * them is gathered number by number.  Data [k, n] are read in pieces, a tile's columns of each row,
 * which many rows of the product make dearer than one copy in which the pieces lie in order.
 *
 * Strassen's algorithm takes seven products of quarters instead of eight; sums of quarters of the
 * data come before them, sums of the products behind, and the weights grow by 7/4.  Halves must be
 * whole vectors.  The sums of weights are folded, so weights must be constant.  Rounding is of the
 * size of Winograd's, so -fno-winograd turns it off too. */
#include "ir/tir/intrin.h"
#include "passes/graph/choose_algorithms.h"

/* The products of a call, and the matrix y of weights or of data. */
typedef struct {
    Machine machine;
    double  macs, cells; /* of y */
    double  n, k;        /* 0: a run decides */
    int64_t lanes;
    bool    transposed; /* y is [n, k] */
} Work;

static double cells_of(const Type *t)
{
    double n = 1;

    for (uint32_t i = 0; i < t->n; i++)
        n *= (double)idx_usual(t->dims[i]);
    return n;
}

static Work work_of(const Ctx *c, const Expr *e)
{
    const Type *x = call_arg(e, 0)->type, *y = call_arg(e, 1)->type;
    Work        w = {.machine = machine_of(c->target), .cells = cells_of(y), .transposed = true};
    bool        across = false; /* x is [k, m] */
    int64_t     n, k;

    w.lanes = w.machine.vector_bytes / 4;
    w.lanes = w.lanes < 1 ? 1 : w.lanes;
    if (call_is(e, "nn.matmul")) {
        across = ATTRS_OF(MatmulAttrs, e)->transpose_a;
        w.transposed = ATTRS_OF(MatmulAttrs, e)->transpose_b;
    } else if (call_is(e, "nn.batch_matmul")) {
        across = ATTRS_OF(BatchMatmulAttrs, e)->transpose_a;
        w.transposed = ATTRS_OF(BatchMatmulAttrs, e)->transpose_b;
    }
    if (type_dim(y, y->n - 1, &n) && type_dim(y, y->n - 2, &k)) {
        w.n = (double)(w.transposed ? k : n);
        w.k = (double)(w.transposed ? n : k);
    }
    w.macs = cells_of(e->type) * (double)idx_usual(x->dims[x->n - (across ? 2 : 1)]);
    return w;
}

static bool is_weight(const Expr *y)
{
    return y->kind == EXPR_CONST;
}

/* Matrices y, if a panel of each can be made: of f32, whose sides are known. */
static double matrices(const Work *w, const Expr *y)
{
    return dtype_eq(y->type->dtype, DT_F32) && w->n > 0 && w->k > 0 ? w->cells / w->n / w->k : 0;
}

double time_product(Ctx *c, const Expr *call, const Algorithm *a)
{
    const Expr *y = call_arg(call, 1);
    Work        w = work_of(c, call);
    double      t = dense_cycles(&w.machine, w.macs, w.cells, w.lanes), times = matrices(&w, y);

    (void)a;
    if (w.transposed && !is_weight(y))
        return w.macs;
    if (dtype_is_int(y->type->dtype))
        return conv_bytes_cycles(&w.machine, w.macs, w.cells, w.lanes);
    if (!is_weight(y) && times >= 1)
        t += times * pieces_cycles(&w.machine, w.macs / w.cells, w.n, w.k, w.cells);
    return t;
}

double time_product_panel(Ctx *c, const Expr *call, const Algorithm *a)
{
    const Expr *y = call_arg(call, 1);
    Work        w = work_of(c, call);

    (void)a;
    double times = matrices(&w, y);

    if (!has_vectors(c->target) || is_weight(y) || !dtype_eq(y->type->dtype, DT_F32) ||
        (!w.transposed && (times < 1 || w.macs / w.cells < 2)))
        return NEVER;
    return dense_cycles(&w.machine, w.macs, w.cells, w.lanes) +
           (w.transposed ? panel_copy_cycles(&w.machine, w.cells)
                         : times * pieces_copy_cycles(&w.machine, w.n, w.k, w.cells));
}

double time_dense_fours(Ctx *c, const Expr *call, const Algorithm *a)
{
    const Expr *x = call_arg(call, 0), *y = call_arg(call, 1);
    DType       data = x->type->dtype, weight = y->type->dtype;
    Work        w = work_of(c, call);
    int64_t     k;

    (void)a;
    if (!is_weight(y) || data.bits != 8 || weight.bits != 8 || w.lanes < LEAST_LANES ||
        w.n < LEAST_LANES || !type_dim(x->type, x->type->n - 1, &k) || k % 4 == 0)
        return NEVER;
    uint32_t ops = intrin_ops(c, "dot4", data, weight);
    double   more = (double)(ceil_div(k, 4) * 4) / (double)k;

    return ops ? conv_dot4_cycles(&w.machine, w.macs * more, w.cells * more, w.lanes, ops) +
                     panel_copy_cycles(&w.machine, cells_of(x->type))
               : NEVER;
}

/* With columns of zeros up to a multiple of four. */
static const Expr *fill_fours(Ctx *c, const Expr *x)
{
    uint32_t last = x->type->n - 1;
    int64_t  k;

    return type_dim(x->type, last, &k) ? make_pad(c, x, last, 0, ceil_div(k, 4) * 4 - k, 0, x->loc)
                                       : NULL;
}

const Expr *make_dense_fours(Ctx *c, const Expr *call, const Algorithm *a)
{
    const Expr *x = fill_fours(c, call_arg(call, 0)), *y = fill_fours(c, call_arg(call, 1));

    (void)a;
    return x && y ? make2(c, "nn.dense", x, y, call->u.attrs, call->loc) : NULL;
}

double time_dense_strassen(Ctx *c, const Expr *call, const Algorithm *a)
{
    int64_t n, k, rows = 1, d, lanes;

    (void)a;
    if (!has_vectors(c->target) || !c->target->winograd || !is_weight(call_arg(call, 1)) ||
        !dense_suits_strassen(call) || !type_dim(call_arg(call, 1)->type, 0, &n) ||
        !type_dim(call_arg(call, 1)->type, 1, &k))
        return NEVER;
    lanes = c->target->vector_bytes / 4;
    const Type *x = call_arg(call, 0)->type;
    for (uint32_t i = 0; i + 1 < x->n; i++)
        if (!type_dim(x, i, &d) || !checked_mul(rows, d, &rows))
            return NEVER;
    Machine m = machine_of(c->target);
    if (n % (2 * lanes) || k % (2 * lanes) || rows < limit_strassen_least_rows(&m) ||
        rows > limit_strassen_most_rows(&m))
        return NEVER;
    return strassen_cycles(&m, (double)rows, (double)n, (double)k, m.vector_bytes / 4) /
           limit_strassen_share(&m);
}

const Expr *make_dense_strassen(Ctx *c, const Expr *call, const Algorithm *a)
{
    (void)a;
    return dense_strassen(c, call);
}
