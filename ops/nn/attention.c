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
 * for schedules to lay out as the products read them. */
#include "ops/common.h"

enum { QUERY, KEY, VALUE, MASK };

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

    if (!rel_tensors(c, loc, in, nin))
        return NULL;
    uint32_t n = in[QUERY]->n;
    if (n < 2 || n > TE_MAX_AXES - 1 || !dtype_is_float(in[QUERY]->dtype))
        return error_at(c, E_TYPE, loc, "attention of %s", type_text(c, in[QUERY]));
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
    const Type *scores = rel_tensor(c, loc, in[QUERY]->dtype, n, dims);
    if (!scores || (nin > MASK && !mask_fits(c, loc, in[MASK], scores)))
        return NULL;
    dims[n - 1] = t[VALUE]->dims[n - 1];
    const Type *out = rel_tensor(c, loc, in[QUERY]->dtype, n, dims);
    return out ? ordered(c, out, a->axes_out) : NULL;
}

typedef struct {
    Ctx                  *c;
    const OpCall         *call;
    const AttentionAttrs *a;
    const Tensor *const  *in;
    uint32_t              n; /* dimensions */
    DType                 dtype;
    const Type           *t[3]; /* of the operands, in order */
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

/* A copy of keys (k before n) or values (n before e). */
static const Tensor *copy_of(const Attention *s, uint32_t i)
{
    const Type *t = s->t[i];
    uint32_t    n = s->n;
    bool        key = i == KEY;
    Axes        a = axes_like(s, t, key ? "k" : "n", t->dims[key ? n - 1 : n - 2], key ? "n" : "e",
                              t->dims[key ? n - 2 : n - 1]);
    const Idx  *at[TE_MAX_AXES];

    for (uint32_t d = 0; d < n; d++)
        at[d] = a.at[d];
    if (key)
        at[n - 2] = a.at[n - 1], at[n - 1] = a.at[n - 2];
    return te_compute(s->c, key ? "keys" : "values", s->dtype, a, operand_at(s, i, at));
}

static const Tensor *masked_scores(const Attention *s, const Tensor *score)
{
    Ctx     *c = s->c;
    uint32_t n = s->n;
    Axes a = axes_like(s, s->t[QUERY], "m", s->t[QUERY]->dims[n - 2], "n", s->t[KEY]->dims[n - 2]);
    const Prim *x = prim_mul(c, te_at(c, score, a.at), prim_num(c, s->dtype, s->a->scale));

    if (s->call->nin > MASK) {
        const Prim *m = te_at_bcast(c, s->in[MASK], n, a.at);
        x = dtype_is_bool(m->dtype) ? prim_select(c, m, x, prim_num(c, s->dtype, s->a->fill))
                                    : prim_add(c, x, m);
    }
    return te_compute(c, "masked", s->dtype, a, x);
}

bool te_attention(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const AttentionAttrs *attrs = call->attrs;
    uint32_t              n = call->in[QUERY]->n;
    Attention             s = {c, call, attrs, in, n, call->in[QUERY]->dtype, {0}};

    for (uint32_t i = 0; i < 3; i++)
        s.t[i] = ordered(c, call->in[i], axes_of_operand(attrs, i));
    const Type *q = s.t[QUERY];
    const Idx  *M = q->dims[n - 2], *K = q->dims[n - 1], *N = s.t[KEY]->dims[n - 2],
              *E = s.t[VALUE]->dims[n - 1];
    const Tensor *keys = copy_of(&s, KEY), *values = copy_of(&s, VALUE);
    const Idx    *at[TE_MAX_AXES];

    Axes a = axes_like(&s, q, "m", M, "n", N), r = reduced(c, "k", K);
    for (uint32_t i = 0; i + 1 < n; i++)
        at[i] = a.at[i];
    at[n - 1] = r.at[0];
    const Tensor *score = te_reduce(
        c, "score", s.dtype, a, COMB_SUM, r,
        prim_mul(c, operand_at(&s, QUERY, at), cell_of(&s, keys, &a, r.at[0], a.at[n - 1])));
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
