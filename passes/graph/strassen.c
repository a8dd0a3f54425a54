/* strassen: large products with constant weights by Strassen's algorithm, where that is faster.
 *
 *   nn.dense(%x, const @w)  ->  nn.contrib_dense_strassen(%x, const @w.u)
 *
 * Seven products of quarters instead of eight; sums of quarters of the data come before them, sums
 * of the products behind, and the weights grow by 7/4.  Taken where the estimated cycles are less
 * by 3 % at least.  Halves must be whole vectors.  The sums of weights are folded, so weights must
 * be constant.  Rounding is of the size of Winograd's, so -fno-winograd turns it off too, and
 * -fno-pass=strassen it alone.  Cost: one walk and the evaluation of the sums. */
#include "passes/graph/graph.h"

#define MAX_ROWS 1536 /* more, and the products of a panel leave L2 */

/* The weights of a panel come from memory while its first tile of rows is computed; the fewer tiles
 * follow, the more of their 7/4 shows.  Measured: with 32 registers 7 % faster from 64 rows on,
 * with 16, whose tiles have half as many vectors, as fast at 128 rows and 4 % faster at 384. */
static int64_t least_rows(const Target *t)
{
    return t->vector_regs > 16 ? 64 : 256;
}

static bool is_faster(const Target *t, double m, double n, double k)
{
    Machine at = machine_of(t);
    double  lanes = (double)at.vector_bytes / 4, stream = at.memory_rate, near = at.l2_rate / 2;
    double  direct = overlap(m * n * k / lanes / 2 * 1.05, n * k * 4 / stream);
    double  sums = m * k * 4 * (1 + 7.0 / 4) / near + m * n * 4 * (3 + 7.0 / 4) / near;
    double  fast = overlap(m * n * k / lanes / 2 * 1.05 * 7 / 8 + sums, n * k * 7 / stream);

    return fast < 0.97 * direct;
}

static const Expr *choose(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    int64_t n, k, rows = 1, d, lanes = c->target->vector_bytes / 4;

    (void)user;
    (void)was;
    if (!call_is(now, "nn.dense") || call_arg(now, 1)->kind != EXPR_CONST || !now->type ||
        !type_dim(call_arg(now, 1)->type, 0, &n) || !type_dim(call_arg(now, 1)->type, 1, &k) ||
        n % (2 * lanes) || k % (2 * lanes))
        return now;
    const Type *x = call_arg(now, 0)->type;
    for (uint32_t i = 0; i + 1 < x->n; i++)
        if (!type_dim(x, i, &d) || !checked_mul(rows, d, &rows))
            return now;
    if (rows < least_rows(c->target) || rows > MAX_ROWS ||
        !is_faster(c->target, (double)rows, (double)n, (double)k))
        return now;
    const Expr *e = dense_strassen(c, now);

    return e ? e : now;
}

const Module *strassen(Ctx *c, const Module *m)
{
    if (!has_vectors(c->target) || !c->target->winograd)
        return m;
    const Module *next = module_rewrite(c, m, choose, NULL);

    return !next || next == m ? next : fold_constant(c, next);
}
