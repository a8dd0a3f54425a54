/* Strassen's matrix product: seven products of quarters instead of eight.
 *
 *     %u = nn.contrib_dense_strassen_weight(%w);           // folded: a constant [7, N/2, K/2]
 *     %y = nn.contrib_dense_strassen(%x, %u);              // nn.dense(%x, %w)
 *
 * Rows, columns and the sum are cut in halves: x = (a b; c d), w' = (e f; g h).
 *
 *     %s[r, b, m, k] = case(r; a + d, c + d, a, d, a + b, c - a, b - d)
 *     %u[r, n, k]    = case(r; e + h, e, f - h, g - e, h, e + f, g + h)
 *     %p[r, b, m, n] = sum[k] %s[r, b, m, k] * %u[r, n, k]
 *     %y[b, m, n]    = case(quarter; p0 + p3 - p4 + p6, p2 + p4, p1 + p3, p0 - p1 + p2 + p5)
 *
 * An odd number of rows gets one of zeros.  Of the known variants this one has the best bound on
 * the error: small against the largest element of the product, not against each element.  Strassen,
 * "Gaussian Elimination is not Optimal", 1969. */
#include "ops/common.h"

enum { PRODUCTS = 7 };

/* ---- the weight ------------------------------------------------------------------------------------ */

const Type *rel_dense_strassen_weight(Ctx *c, Loc loc, const void *attrs, const Type *const *in,
                                      uint32_t nin)
{
    int64_t n, k;

    (void)attrs;
    if (!rel_tensors(c, loc, in, nin) || !rel_rank(c, loc, in[0], 2, "weight") ||
        !rel_dim(c, loc, in[0], 0, &n) || !rel_dim(c, loc, in[0], 1, &k))
        return NULL;
    if (n % 2 || k % 2 || n < 2 || k < 2 || !dtype_is_float(in[0]->dtype))
        return error_at(c, E_TYPE, loc, "the weight must be floats with even dimensions, not %s",
                        type_text(c, in[0]));
    return rel_tensor_i64(c, loc, in[0]->dtype, 3, (int64_t[]){PRODUCTS, n / 2, k / 2});
}

bool te_dense_strassen_weight(Ctx *c, const OpCall *call, const Tensor *const *in,
                              const Tensor **out)
{
    static const char *const names[] = {"r", "n", "k"};
    Arith                   *A = c->arith;
    Axes                     a = te_axes(c, 3, call->out[0]->dims, names);
    const Prim              *q[2][2]; /* by half of n, half of k */
    int64_t                  half[2];

    if (!rel_dim(c, call->loc, call->out[0], 1, &half[0]) ||
        !rel_dim(c, call->loc, call->out[0], 2, &half[1]))
        return false;
    for (int64_t i = 0; i < 2; i++)
        for (int64_t j = 0; j < 2; j++) {
            const Idx *at[2] = {idx_addc(A, a.at[1], i * half[0]),
                                idx_addc(A, a.at[2], j * half[1])};
            q[i][j] = te_at(c, in[0], at);
        }
    const Prim *e = q[0][0], *f = q[1][0], *g = q[0][1], *h = q[1][1];
    const Prim *arms[PRODUCTS] = {
        prim_add(c, e, h), e, prim_sub(c, f, h), prim_sub(c, g, e), h, prim_add(c, e, f),
        prim_add(c, g, h),
    };

    out[0] = te_compute(c, "u", call->out[0]->dtype, a, prim_case(c, a.at[0], PRODUCTS, arms));
    return true;
}

/* ---- the product ----------------------------------------------------------------------------------- */

typedef struct {
    int64_t batch, rows, half_rows, half_n, half_k; /* batch: 0 if the data are a matrix */
} Sizes;

static bool sizes_of(Ctx *c, Loc loc, const Type *x, const Type *u, Sizes *z)
{
    int64_t d[3] = {0}, ud[3];

    if (!rel_rank(c, loc, u, 3, "transformed weight"))
        return false;
    if (x->n != 2 && x->n != 3)
        return error_at(c, E_TYPE, loc, "the data must have two or three dimensions, not %s",
                        type_text(c, x));
    for (uint32_t i = 0; i < 3; i++)
        if (!rel_dim(c, loc, u, i, &ud[i]) || (i < x->n && !rel_dim(c, loc, x, i, &d[i])))
            return false;
    z->batch = x->n == 3 ? d[0] : 0;
    z->rows = d[x->n - 2];
    z->half_rows = z->rows / 2 + z->rows % 2;
    z->half_n = ud[1];
    z->half_k = ud[2];
    if (ud[0] != PRODUCTS || d[x->n - 1] % 2 || d[x->n - 1] / 2 != ud[2] || z->rows < 2 ||
        (x->n == 3 && z->batch < 1) || z->half_n < 1 || z->half_k < 1)
        return error_at(c, E_TYPE, loc, "a transformed weight %s for data %s", type_text(c, u),
                        type_text(c, x));
    return true;
}

const Type *rel_dense_strassen(Ctx *c, Loc loc, const void *attrs, const Type *const *in,
                               uint32_t nin)
{
    Sizes   z;
    int64_t n;

    (void)attrs;
    if (!rel_tensors(c, loc, in, nin) || !rel_same_dtype(c, loc, in[0], in[1]) ||
        !sizes_of(c, loc, in[0], in[1], &z))
        return NULL;
    if (!checked_mul(z.half_n, 2, &n))
        return error_at(c, E_TYPE, loc, "too many columns");
    int64_t dims[3] = {z.batch, z.rows, n};

    return rel_tensor_i64(c, loc, in[0]->dtype, in[0]->n, dims + (z.batch ? 0 : 1));
}

/* Axes r, b (if there is a batch), m and the last. */
static Axes quarter_axes(Ctx *c, const Sizes *z, const char *last, int64_t extent)
{
    const char *names[4] = {"r", "b", "m", last};
    const Idx  *dims[4] = {idx_const(c->arith, PRODUCTS), idx_const(c->arith, z->batch),
                           idx_const(c->arith, z->half_rows), idx_const(c->arith, extent)};

    if (!z->batch) {
        names[1] = "m", names[2] = last;
        dims[1] = dims[2], dims[2] = dims[3];
    }
    return te_axes(c, z->batch ? 4 : 3, dims, names);
}

/* %s: sums of quarters of the data. */
static const Tensor *data_sums(Ctx *c, const Sizes *z, const Tensor *x)
{
    Arith      *A = c->arith;
    Axes        a = quarter_axes(c, z, "k", z->half_k);
    uint32_t    m = z->batch ? 2 : 1;
    const Prim *q[2][2];

    for (int64_t i = 0; i < 2; i++)
        for (int64_t j = 0; j < 2; j++) {
            const Idx *row = idx_addc(A, a.at[m], i * z->half_rows), *at[3] = {a.at[1]};

            at[m - 1] = row;
            at[m] = idx_addc(A, a.at[m + 1], j * z->half_k);
            q[i][j] = te_at(c, x, at);
            if (i && z->rows % 2) {
                Pred inside =
                    pred_and(A, c->arena, PRED_TRUE, idx_sub(A, idx_const(A, z->rows - 1), row));
                q[i][j] =
                    prim_select(c, pred_prim(c, inside), q[i][j], prim_num(c, q[i][j]->dtype, 0));
            }
        }
    const Prim *arms[PRODUCTS] = {
        prim_add(c, q[0][0], q[1][1]),
        prim_add(c, q[1][0], q[1][1]),
        q[0][0],
        q[1][1],
        prim_add(c, q[0][0], q[0][1]),
        prim_sub(c, q[1][0], q[0][0]),
        prim_sub(c, q[0][1], q[1][1]),
    };

    return te_compute(c, "s", x->buffer->dtype, a, prim_case(c, a.at[0], PRODUCTS, arms));
}

bool te_dense_strassen(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    static const char *const names[] = {"b", "m", "n"}, *const rnames[] = {"k"};
    Arith      *A = c->arith;
    const Type *type = call->out[0];
    Sizes       z;

    if (!sizes_of(c, call->loc, call->in[0], call->in[1], &z))
        return false;
    const Tensor *s = data_sums(c, &z, in[0]);
    uint32_t      m = z.batch ? 2 : 1;
    Axes          a = quarter_axes(c, &z, "n", z.half_n);
    const Idx    *extent = idx_const(A, z.half_k);
    Axes          k = te_axes(c, 1, &extent, rnames);
    const Idx    *sat[4] = {a.at[0], a.at[1], a.at[2], NULL},
              *uat[3] = {a.at[0], a.at[m + 1], k.at[0]};

    sat[m + 1] = k.at[0];
    const Tensor *p = te_reduce(c, "p", type->dtype, a, COMB_SUM, k,
                                prim_mul(c, te_at(c, s, sat), te_at(c, in[1], uat)));

    a = te_axes(c, type->n, type->dims, names + (z.batch ? 0 : 1));
    const Idx  *row = a.at[m - 1], *col = a.at[m], *pat[4] = {NULL, a.at[0]};
    const Prim *t[PRODUCTS];
    pat[m] = idx_modc(A, row, z.half_rows);
    pat[m + 1] = idx_modc(A, col, z.half_n);
    for (int64_t r = 0; r < PRODUCTS; r++) {
        pat[0] = idx_const(A, r);
        t[r] = te_at(c, p, pat);
    }
    const Prim *arms[4] = {
        prim_add(c, prim_sub(c, prim_add(c, t[0], t[3]), t[4]), t[6]),
        prim_add(c, t[2], t[4]),
        prim_add(c, t[1], t[3]),
        prim_add(c, prim_add(c, prim_sub(c, t[0], t[1]), t[2]), t[5]),
    };
    const Idx *quarter =
        idx_add(A, idx_mulc(A, idx_divc(A, row, z.half_rows), 2), idx_divc(A, col, z.half_n));

    out[0] = te_compute(c, "y", type->dtype, a, prim_case(c, quarter, 4, arms));
    return true;
}

/* ---- the variant of a call ------------------------------------------------------------------------- */

bool dense_suits_strassen(const Expr *dense)
{
    const DenseAttrs *a = ATTRS(DenseAttrs, dense);
    const Type       *x = call_arg(dense, 0)->type, *w = call_arg(dense, 1)->type;
    int64_t           n, k, d;

    return x && w && !*a->out_dtype && dtype_eq(x->dtype, w->dtype) && dtype_is_float(x->dtype) &&
           type_dim(w, 0, &n) && type_dim(w, 1, &k) && n % 2 == 0 && k % 2 == 0 &&
           (x->n == 2 || x->n == 3) && type_dim(x, x->n - 2, &d) && d >= 2 && type_dim(x, 0, &d) &&
           d >= 1;
}

const Expr *dense_strassen(Ctx *c, const Expr *dense)
{
    return call2(c, "nn.contrib_dense_strassen", call_arg(dense, 0),
                 call1(c, "nn.contrib_dense_strassen_weight", call_arg(dense, 1), NULL, dense->loc),
                 NULL, dense->loc);
}
