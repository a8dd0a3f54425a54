/* nn.attention: softmax(q k' * scale + mask) v, without the matrix of scores as a tensor.
 *
 *     %y = nn.attention(%q, %k, %v, %mask, scale=0.125, axes_k=[0, 2, 1, 3]);
 *
 * q [.., M, K], k [.., N, K], v [.., N, E] once their dimensions stand in the order of axes_q,
 * axes_k and axes_v ([]: as they are); the result [.., M, E], then in the order of axes_out: so
 * that no kernel has to put heads in front and back.  Leading dimensions of k and v are those of q,
 * or 1.  A mask of numbers is added; where one of bools is false a score is `fill`.
 *
 *     %score[.., m, n]   = sum[k] %q[.., m, k] * %keys[.., k, n]
 *     %masked[.., m, n]  = %score * scale + %mask
 *     %exp[.., m, n]     = exp(%masked - %max[.., m]),  %sum[.., m] over n
 *     %context[.., m, e] = sum[n] %exp[.., m, n] * %values[.., n, e]
 *     %out               = %context / %sum
 *
 * A row all of whose scores are -inf is NaN, as that of a softmax.  %keys and %values are copies,
 * for schedules to lay out as the products read them.  With out_dtype="f32" operands of 16 bits
 * give scores, sums and a result of 32: the copies widen them, and queries have one, too.
 *
 * With chunk=32 the keys come 32 at a time (online softmax): so few scores of a row are there at
 * once, and what was summed before is scaled down where a larger score comes.
 *
 *     scan t [.., m] {
 *       %top[t]       = the largest of %masked[t, j],  %max[t+1] = the larger of %max[t] and %top
 *       %keep[t]      = exp(%max[t] - %max[t+1])
 *       %exp[t, j]    = exp(%masked[t, j] - %max[t+1]),  %part[t] over j
 *       %sum[t+1]     = %sum[t] * %keep + %part
 *       %prod[t, e]   = sum[j] %exp[t, j] * %values[t*32+j, e]
 *       %total[t+1, e] = %total[t, e] * %keep + %prod
 *     }
 *
 * The maximum begins with the lowest finite number, so that a score of -inf counts nothing. */
#include "ops/common.h"

#include <math.h>
#include <string.h>

enum { QUERY, KEY, VALUE, MASK };
enum { MAX_CHUNK = 1 << 20 };

/* Where dimension i in the order of `axes` comes from. */
static uint32_t source(Ints axes, uint32_t i, uint32_t n)
{
    return axes.n ? axis_of(axes.at[i], n) : i;
}

static bool is_order(Ctx *c, Loc loc, Ints axes, uint32_t n, const char *name)
{
    uint32_t set = 0;

    if (!axes.n)
        return true;
    if (!rel_axes(c, loc, axes, n, &set))
        return false;
    return (axes.n == n && set == (1u << n) - 1) ||
           error_at(c, E_TYPE, loc, "'%s' is no order of %u dimensions", name, n) != NULL;
}

/* The operand's type with its dimensions in order. */
static const Type *ordered(Ctx *c, const Type *t, Ints axes)
{
    const Idx *dims[TE_MAX_AXES];

    for (uint32_t i = 0; i < t->n; i++)
        dims[i] = t->dims[source(axes, i, t->n)];
    return type_tensor(c, t->dtype, t->n, dims);
}

static Ints axes_of_operand(const AttentionAttrs *a, uint32_t i)
{
    return i == QUERY ? a->axes_q : i == KEY ? a->axes_k : a->axes_v;
}

/* The mask broadcasts to the scores. */
static bool mask_fits(Ctx *c, Loc loc, const Type *mask, const Type *scores)
{
    const Idx *dims[2 * TE_MAX_AXES];
    uint32_t   n;

    if (!dtype_is_bool(mask->dtype) && !dtype_eq(mask->dtype, scores->dtype))
        return error_at(c, E_TYPE, loc, "a mask of %s for scores of %s", dtype_text(c, mask->dtype),
                        dtype_text(c, scores->dtype));
    if (!rel_bcast_dims(c, loc, mask, scores, &n, dims))
        return false;
    bool same = n == scores->n;
    for (uint32_t i = 0; same && i < n; i++)
        same = dims[i] == scores->dims[i];
    return same || error_at(c, E_TYPE, loc, "a mask %s for scores %s", type_text(c, mask),
                            type_text(c, scores)) != NULL;
}

const Type *rel_attention(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    static const char *const names[] = {"axes_q", "axes_k", "axes_v"};
    const AttentionAttrs    *a = attrs;
    const Type              *t[3];
    const Idx               *dims[TE_MAX_AXES];
    int64_t                  one;
    DType                    dtype;

    if (!rel_tensors(c, loc, in, nin))
        return NULL;
    uint32_t n = in[QUERY]->n;
    if (a->chunk < 0 || a->chunk > MAX_CHUNK)
        return error_at(c, E_TYPE, loc, "a chunk of %lld keys, not 0 to %d", (long long)a->chunk,
                        MAX_CHUNK);
    if (n < 2 || n > TE_MAX_AXES - 1 || !dtype_is_float(in[QUERY]->dtype))
        return error_at(c, E_TYPE, loc, "attention of %s", type_text(c, in[QUERY]));
    if (!rel_dtype(c, loc, a->out_dtype, in[QUERY]->dtype, &dtype))
        return NULL;
    if (!dtype_is_float(dtype) || dtype.bits < in[QUERY]->dtype.bits)
        return error_at(c, E_TYPE, loc, "attention of %s as %s", dtype_text(c, in[QUERY]->dtype),
                        a->out_dtype);
    for (uint32_t i = 0; i < 3; i++) {
        if (!rel_rank(c, loc, in[i], n, "queries, keys and values") ||
            !rel_same_dtype(c, loc, in[QUERY], in[i]) ||
            !is_order(c, loc, axes_of_operand(a, i), n, names[i]))
            return NULL;
        t[i] = ordered(c, in[i], axes_of_operand(a, i));
        for (uint32_t d = 0; d + 2 < n; d++)
            if (!(i && type_dim(t[i], d, &one) && one == 1) &&
                !rel_dims_equal(c, loc, t[QUERY]->dims[d], t[i]->dims[d],
                                "heads of queries and of keys or values"))
                return NULL;
    }
    if (!is_order(c, loc, a->axes_out, n, "axes_out") ||
        !rel_dims_equal(c, loc, t[QUERY]->dims[n - 1], t[KEY]->dims[n - 1],
                        "columns of queries and keys") ||
        !rel_dims_equal(c, loc, t[KEY]->dims[n - 2], t[VALUE]->dims[n - 2],
                        "rows of keys and values"))
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        dims[i] = t[QUERY]->dims[i];
    dims[n - 1] = t[KEY]->dims[n - 2];
    const Type *scores = rel_tensor(c, loc, dtype, n, dims);
    if (!scores || (nin > MASK && !mask_fits(c, loc, in[MASK], scores)))
        return NULL;
    dims[n - 1] = t[VALUE]->dims[n - 1];
    const Type *out = rel_tensor(c, loc, dtype, n, dims);
    return out ? ordered(c, out, a->axes_out) : NULL;
}

typedef struct {
    Ctx                  *c;
    const OpCall         *call;
    const AttentionAttrs *a;
    const Tensor *const  *in;
    uint32_t              n; /* dimensions */
    DType                 dtype;
    const Type           *t[3];    /* of the operands, in order */
    const Tensor         *queries; /* of the scores' type, in order; NULL: they are so */
} Attention;

/* Axes of a definition: those of the operand's leading dimensions, then two that are named. */
static Axes axes_like(const Attention *s, const Type *t, const char *row, const Idx *rows,
                      const char *column, const Idx *columns)
{
    static const char *const batch[] = {"b", "b1", "b2", "b3", "b4", "b5"};
    const char              *names[TE_MAX_AXES];
    const Idx               *dims[TE_MAX_AXES];
    uint32_t                 n = s->n - 2;

    for (uint32_t i = 0; i < n; i++)
        names[i] = batch[i], dims[i] = t->dims[i];
    names[n] = row, dims[n++] = rows;
    if (column)
        names[n] = column, dims[n++] = columns;
    return te_axes(s->c, n, dims, names);
}

static Axes reduced(Ctx *c, const char *name, const Idx *extent)
{
    const char *const names[] = {name};

    return te_axes(c, 1, &extent, names);
}

/* The cell of an operand whose dimensions in order are `at`. */
static const Prim *operand_at(const Attention *s, uint32_t i, const Idx *const *at)
{
    const Idx *from[TE_MAX_AXES];

    for (uint32_t d = 0; d < s->n; d++)
        from[source(axes_of_operand(s->a, i), d, s->n)] = at[d];
    return te_at(s->c, s->in[i], from);
}

/* The cell of a definition at the axes' leading dimensions (0 where it has one), row and column. */
static const Prim *cell_of(const Attention *s, const Tensor *t, const Axes *a, const Idx *row,
                           const Idx *column)
{
    const Idx *at[TE_MAX_AXES];
    uint32_t   n = s->n - 2;

    for (uint32_t i = 0; i < n; i++)
        at[i] = a->at[i];
    at[n++] = row;
    if (column)
        at[n++] = column;
    return te_at_bcast(s->c, t, n, at);
}

/* A copy of keys (k before n) or values (n before e), of so many; those that are not there are 0.
 */
static const Tensor *copy_of(const Attention *s, uint32_t i, const Idx *keys)
{
    Arith      *A = s->c->arith;
    const Type *t = s->t[i];
    uint32_t    n = s->n;
    bool        key = i == KEY;
    Axes        a = axes_like(s, t, key ? "k" : "n", key ? t->dims[n - 1] : keys, key ? "n" : "e",
                       key ? keys : t->dims[n - 1]);
    const Idx  *at[TE_MAX_AXES];
    Pred        there = pred_and(A, s->c->arena, PRED_TRUE,
                                 idx_sub(A, idx_addc(A, t->dims[n - 2], -1), a.at[key ? n - 1 : n - 2]));

    for (uint32_t d = 0; d < n; d++)
        at[d] = a.at[d];
    if (key)
        at[n - 2] = a.at[n - 1], at[n - 1] = a.at[n - 2];
    return te_compute(s->c, key ? "keys" : "values", s->dtype, a,
                      prim_select(s->c, pred_prim(s->c, there),
                                  prim_cast(s->c, s->dtype, operand_at(s, i, at)),
                                  prim_num(s->c, s->dtype, 0)));
}

/* Queries of fewer bits than the scores, as those. */
static const Tensor *widened_queries(const Attention *s)
{
    const Type *t = s->t[QUERY];
    Axes        a = axes_like(s, t, "m", t->dims[s->n - 2], "k", t->dims[s->n - 1]);

    return te_compute(s->c, "queries", s->dtype, a,
                      prim_cast(s->c, s->dtype, operand_at(s, QUERY, a.at)));
}

static const Prim *query_at(const Attention *s, const Idx *const *at)
{
    return s->queries ? te_at(s->c, s->queries, at) : operand_at(s, QUERY, at);
}

/* A score at [.., m, n], as the softmax sees it. */
static const Prim *masked_at(const Attention *s, const Prim *score, const Idx *const *at)
{
    Ctx        *c = s->c;
    const Prim *x = prim_mul(c, score, prim_num(c, s->dtype, s->a->scale));

    if (s->call->nin <= MASK)
        return x;
    const Prim *m = te_at_bcast(c, s->in[MASK], s->n, at);
    return dtype_is_bool(m->dtype) ? prim_select(c, m, x, prim_num(c, s->dtype, s->a->fill))
                                   : prim_add(c, x, m);
}

static const Tensor *masked_scores(const Attention *s, const Tensor *score)
{
    uint32_t n = s->n;
    Axes a = axes_like(s, s->t[QUERY], "m", s->t[QUERY]->dims[n - 2], "n", s->t[KEY]->dims[n - 2]);

    return te_compute(s->c, "masked", s->dtype, a, masked_at(s, te_at(s->c, score, a.at), a.at));
}

/* ---- keys by chunks ----------------------------------------------------------------------------- */

typedef struct {
    const Attention *s;
    Scan            *k;     /* of chunks, for each row */
    const Idx       *chunk; /* keys of one */
    const Tensor    *keys, *values;
    const Tensor    *max, *sum, *total, *exp, *keep;
} Online;

/* A tensor with so many rounds of cells for each row, or of one number. */
static const Tensor *of_rounds(const Online *o, const char *name, const Idx *rounds,
                               const Idx *cells)
{
    const Idx *extent[TE_MAX_AXES];
    uint32_t   n = o->k->outer.n;

    memcpy(extent, o->k->outer.extent, n * sizeof *extent);
    extent[n++] = rounds;
    if (cells)
        extent[n++] = cells;
    return te_scan_tensor(o->s->c, o->k, name, o->s->dtype, n, extent);
}

/* What is carried from round to round. */
static const Tensor *carried(const Online *o, const char *name, const Idx *cells)
{
    return of_rounds(o, name, idx_addc(o->s->c->arith, o->k->rounds, 1), cells);
}

/* The cell's index, in this round or so many behind it. */
static void round_at(const Online *o, int64_t behind, const Idx *cell, const Idx **at)
{
    uint32_t n = o->k->outer.n;

    memcpy(at, o->k->outer.at, n * sizeof *at);
    at[n++] = idx_addc(o->s->c->arith, o->k->t, behind);
    if (cell)
        at[n] = cell;
}

static const Prim *in_round(const Online *o, const Tensor *t, int64_t behind, const Idx *cell)
{
    const Idx *at[TE_MAX_AXES];

    round_at(o, behind, cell, at);
    return te_at(o->s->c, t, at);
}

static void start(const Online *o, const Tensor *t, Axes own, double value)
{
    const Idx *at[TE_MAX_AXES];
    uint32_t   n = o->k->outer.n;

    round_at(o, 0, own.n ? own.at[0] : NULL, at);
    at[n] = idx_const(o->s->c->arith, 0);
    te_scan_def(o->s->c, o->k, SCAN_START, t, at, own, prim_num(o->s->c, o->s->dtype, value));
}

static void each(const Online *o, const Tensor *t, int64_t behind, Axes own, const Prim *body)
{
    const Idx *at[TE_MAX_AXES];

    round_at(o, behind, own.n ? own.at[0] : NULL, at);
    te_scan_def(o->s->c, o->k, SCAN_EACH, t, at, own, body);
}

static void each_sum(const Online *o, const Tensor *t, Axes own, Combiner comb, Axes r,
                     const Prim *body)
{
    const Idx *at[TE_MAX_AXES];

    round_at(o, 0, own.n ? own.at[0] : NULL, at);
    te_scan_reduce(o->s->c, o->k, SCAN_EACH, t, at, own, comb, r, body);
}

/* The scores of a chunk; keys that are not there count nothing. */
static const Tensor *chunk_scores(const Online *o)
{
    const Attention *s = o->s;
    Ctx             *c = s->c;
    uint32_t         n = s->n;
    const Type      *q = s->t[QUERY];
    const Tensor    *score = of_rounds(o, "score", o->k->rounds, o->chunk),
                 *masked = of_rounds(o, "masked", o->k->rounds, o->chunk);
    Axes       own = reduced(c, "j", o->chunk), k = reduced(c, "k", q->dims[n - 1]);
    const Idx *at[TE_MAX_AXES];
    const Idx *key = idx_add(c->arith, idx_mulc(c->arith, o->k->t, s->a->chunk), own.at[0]);

    memcpy(at, o->k->outer.at, (n - 1) * sizeof *at);
    at[n - 1] = k.at[0];
    each_sum(o, score, own, COMB_SUM, k,
             prim_mul(c, query_at(s, at), cell_of(s, o->keys, &o->k->outer, k.at[0], key)));
    own = reduced(c, "j", o->chunk);
    key = idx_add(c->arith, idx_mulc(c->arith, o->k->t, s->a->chunk), own.at[0]);
    at[n - 1] = key;
    Pred there = pred_and(c->arith, c->arena, PRED_TRUE,
                          idx_sub(c->arith, idx_addc(c->arith, s->t[KEY]->dims[n - 2], -1), key));
    each(o, masked, 0, own,
         prim_select(c, pred_prim(c, there), masked_at(s, in_round(o, score, 0, own.at[0]), at),
                     prim_num(c, s->dtype, -INFINITY)));
    return masked;
}

/* Maximum and sum of a row, and what is left of what was summed before. */
static void update_rows(Online *o, const Tensor *masked)
{
    Ctx          *c = o->s->c;
    const Idx    *rounds = o->k->rounds;
    const Tensor *top = of_rounds(o, "top", rounds, NULL), *part;
    Axes          none = {0}, j = reduced(c, "j", o->chunk);

    each_sum(o, top, none, COMB_MAXNUM, j, in_round(o, masked, 0, j.at[0]));
    const Prim *was = in_round(o, o->max, 0, NULL), *now = in_round(o, top, 0, NULL);
    each(o, o->max, 1, none, prim_select(c, prim_lt(c, was, now), now, was));
    now = in_round(o, o->max, 1, NULL);
    o->keep = of_rounds(o, "keep", rounds, NULL);
    each(o, o->keep, 0, none, prim_math(c, MATH_EXP, prim_sub(c, was, now), NULL));
    o->exp = of_rounds(o, "exp", rounds, o->chunk);
    j = reduced(c, "j", o->chunk);
    each(o, o->exp, 0, j,
         prim_math(c, MATH_EXP, prim_sub(c, in_round(o, masked, 0, j.at[0]), now), NULL));
    part = of_rounds(o, "part", rounds, NULL);
    j = reduced(c, "j", o->chunk);
    each_sum(o, part, none, COMB_SUM, j, in_round(o, o->exp, 0, j.at[0]));
    each(o, o->sum, 1, none,
         prim_add(c, prim_mul(c, in_round(o, o->sum, 0, NULL), in_round(o, o->keep, 0, NULL)),
                  in_round(o, part, 0, NULL)));
}

static void update_total(const Online *o, const Idx *E)
{
    const Attention *s = o->s;
    Ctx             *c = s->c;
    const Tensor    *prod = of_rounds(o, "prod", o->k->rounds, E);
    Axes             own = reduced(c, "e", E), j = reduced(c, "j", o->chunk);
    const Idx       *key = idx_add(c->arith, idx_mulc(c->arith, o->k->t, s->a->chunk), j.at[0]);

    each_sum(o, prod, own, COMB_SUM, j,
             prim_mul(c, in_round(o, o->exp, 0, j.at[0]),
                      cell_of(s, o->values, &o->k->outer, key, own.at[0])));
    own = reduced(c, "e", E);
    each(o, o->total, 1, own,
         prim_add(c,
                  prim_mul(c, in_round(o, o->total, 0, own.at[0]), in_round(o, o->keep, 0, NULL)),
                  in_round(o, prod, 0, own.at[0])));
}

static bool attention_by_chunks(Attention *s, const OpCall *call, const Tensor **out)
{
    Ctx       *c = s->c;
    Arith     *A = c->arith;
    uint32_t   n = s->n;
    const Idx *E = s->t[VALUE]->dims[n - 1], *N = s->t[KEY]->dims[n - 2], *at[TE_MAX_AXES];
    const Idx *rounds = idx_divc(A, idx_addc(A, N, s->a->chunk - 1), s->a->chunk);
    const Idx *all = idx_mulc(A, rounds, s->a->chunk);
    Online     o = {.s = s, .chunk = idx_const(A, s->a->chunk)};
    Axes       none = {0};

    o.keys = copy_of(s, KEY, all);
    o.values = copy_of(s, VALUE, all);
    o.k = te_scan(c, axes_like(s, s->t[QUERY], "m", s->t[QUERY]->dims[n - 2], NULL, NULL), "t",
                  rounds);
    o.max = carried(&o, "max", NULL);
    start(&o, o.max, none, dtype_min(s->dtype));
    o.sum = carried(&o, "sum", NULL);
    start(&o, o.sum, none, 0);
    o.total = carried(&o, "total", E);
    start(&o, o.total, reduced(c, "e", E), 0);
    update_rows(&o, chunk_scores(&o));
    update_total(&o, E);

    Axes       own = reduced(c, "e", E);
    uint32_t   r = o.k->outer.n;
    const Idx *last[TE_MAX_AXES], *cell[TE_MAX_AXES];
    round_at(&o, 0, own.at[0], last);
    last[r] = rounds;
    const Prim *sum = te_at(c, o.sum, last);
    memcpy(cell, o.k->outer.at, r * sizeof *cell);
    cell[r] = own.at[0];
    for (uint32_t i = 0; i < n; i++)
        at[i] = cell[source(s->a->axes_out, i, n)];
    out[0] = te_scan_tensor(c, o.k, "out", s->dtype, n, call->out[0]->dims);
    te_scan_def(c, o.k, SCAN_END, out[0], at, own,
                prim_mul(c, prim_div(c, prim_num(c, s->dtype, 1), sum), te_at(c, o.total, last)));
    return te_scan_done(c, o.k);
}

/* ---- all keys at once --------------------------------------------------------------------------- */

bool te_attention(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const AttentionAttrs *attrs = call->attrs;
    uint32_t              n = call->in[QUERY]->n;
    Attention             s = {c, call, attrs, in, n, call->out[0]->dtype, {0}, NULL};

    for (uint32_t i = 0; i < 3; i++)
        s.t[i] = ordered(c, call->in[i], axes_of_operand(attrs, i));
    if (!dtype_eq(s.dtype, call->in[QUERY]->dtype))
        s.queries = widened_queries(&s);
    if (attrs->chunk)
        return attention_by_chunks(&s, call, out);
    const Type *q = s.t[QUERY];
    const Idx  *M = q->dims[n - 2], *K = q->dims[n - 1], *N = s.t[KEY]->dims[n - 2],
              *E = s.t[VALUE]->dims[n - 1];
    const Tensor *keys = copy_of(&s, KEY, N), *values = copy_of(&s, VALUE, N);
    const Idx    *at[TE_MAX_AXES];

    Axes a = axes_like(&s, q, "m", M, "n", N), r = reduced(c, "k", K);
    for (uint32_t i = 0; i + 1 < n; i++)
        at[i] = a.at[i];
    at[n - 1] = r.at[0];
    const Tensor *score =
        te_reduce(c, "score", s.dtype, a, COMB_SUM, r,
                  prim_mul(c, query_at(&s, at), cell_of(&s, keys, &a, r.at[0], a.at[n - 1])));
    const Tensor *masked = masked_scores(&s, score);

    a = axes_like(&s, q, "m", M, NULL, NULL), r = reduced(c, "n", N);
    const Tensor *max = te_reduce(c, "max", s.dtype, a, COMB_MAXNUM, r,
                                  cell_of(&s, masked, &a, a.at[n - 2], r.at[0]));
    a = axes_like(&s, q, "m", M, "n", N);
    const Prim   *d = prim_sub(c, te_at(c, masked, a.at), cell_of(&s, max, &a, a.at[n - 2], NULL));
    const Tensor *exp = te_compute(c, "exp", s.dtype, a, prim_math(c, MATH_EXP, d, NULL));
    a = axes_like(&s, q, "m", M, NULL, NULL), r = reduced(c, "n", N);
    const Tensor *sum =
        te_reduce(c, "sum", s.dtype, a, COMB_SUM, r, cell_of(&s, exp, &a, a.at[n - 2], r.at[0]));

    a = axes_like(&s, q, "m", M, "e", E), r = reduced(c, "n", N);
    const Tensor *context = te_reduce(c, "context", s.dtype, a, COMB_SUM, r,
                                      prim_mul(c, cell_of(&s, exp, &a, a.at[n - 2], r.at[0]),
                                               cell_of(&s, values, &a, r.at[0], a.at[n - 1])));

    a = te_axes_of(c, call->out[0]);
    for (uint32_t i = 0; i < n; i++)
        at[source(attrs->axes_out, i, n)] = a.at[i];
    /* The sum is used first, and so defined first. */
    const Prim *part = prim_div(c, prim_num(c, s.dtype, 1), te_at(c, sum, at));

    return te_out(c, call, &a, prim_mul(c, part, te_at(c, context, at)), out);
}
