/* attention: products, softmax and products again become nn.attention, so that the scores never
 * are a tensor.
 *
 *   %0 = nn.batch_matmul(%q, %k);  %1 = multiply(%0, 0.125);  %2 = add(%1, %mask)
 *   %3 = nn.softmax(%2, axis=-1);  %4 = nn.batch_matmul(%3, %v, transpose_b=false)
 *     -> nn.attention(%q, %k, %v, %mask, scale=0.125)
 *
 * Between the two products may stand, each with one user: multiplications and divisions by numbers,
 * one mask (numbers that are added, or where(%mask, scores, number)), and views that leave the last
 * two dimensions.  Numbers that queries or keys are multiplied by go into the scale as well.
 * Transposes of operands and of the result become axes, those too that move 1s besides: the kernel
 * reads and writes any order as fast, as long as columns of queries and of the result lie together.
 *
 * Any dimension may be symbolic.  Keys are copied once a head, which only many rows of queries
 * repay: fewer than `limit_attention_queries` are left alone.  On a device the keys come by chunks
 * of which the scores fit what a block of threads shares.  Rounding differs from that of the
 * separate operators: rows are divided by their sum after the second product.  Cost: one walk and
 * one rewrite. */
#include "passes/graph/graph.h"

#include <math.h>
#include <string.h>

enum { MAX_DIMS = 6 };

typedef struct {
    const Map *uses; /* of nodes of the old graph */
    Map       *old;  /* node of the new graph to the one it stands for */
} State;

typedef struct {
    uint32_t   n; /* dimensions of the scores: batch, rows, columns */
    const Idx *dims[MAX_DIMS];
} Shape;

static bool shape_of(const Type *t, Shape *s)
{
    if (!t || t->kind != TYPE_TENSOR || t->n < 2 || t->n > MAX_DIMS)
        return false;
    s->n = t->n;
    for (uint32_t i = 0; i < t->n; i++) {
        s->dims[i] = t->dims[i];
        if (t->dims[i]->lo < 1)
            return false;
    }
    return true;
}

static bool same_shape(const Shape *a, const Shape *b)
{
    return a->n == b->n && !memcmp(a->dims, b->dims, a->n * sizeof *a->dims);
}

static const Idx *row_dim(const Shape *s)
{
    return s->dims[s->n - 2];
}

static const Idx *column_dim(const Shape *s)
{
    return s->dims[s->n - 1];
}

/* A view of the same matrices: only leading dimensions are put together or apart. */
static bool is_batch_view(const Expr *e)
{
    Shape a, b;

    return is_view(e) && shape_of(e->type, &a) && shape_of(call_arg(e, 0)->type, &b) &&
           row_dim(&a) == row_dim(&b) && column_dim(&a) == column_dim(&b);
}

/* x times a number: the other operand. */
static const Expr *times_number(const Expr *e, double *scale)
{
    bool     divides = call_is(e, "divide");
    double   v;
    uint32_t x;

    if (!divides && !call_is(e, "multiply"))
        return NULL;
    if (expr_const_f(call_arg(e, 1), &v))
        x = 0;
    else if (!divides && expr_const_f(call_arg(e, 0), &v))
        x = 1;
    else
        return NULL;
    if (!same_dims(call_arg(e, x)->type, e->type) || !isfinite(v) || v == 0)
        return NULL;
    *scale = divides ? *scale / v : *scale * v;
    return call_arg(e, x);
}

/* ---- operands ------------------------------------------------------------------------------- */

/* Dimension i of a transpose's result comes from this one of its operand. */
static uint32_t source(const Expr *transpose, uint32_t i)
{
    const TransposeAttrs *a = ATTRS_OF(TransposeAttrs, transpose);
    uint32_t              n = transpose->type->n;

    return a->axes.n ? axis_from_front(a->axes.at[i], n) : n - 1 - i;
}

/* A view of what e is a view of. */
static const Expr *viewed(Ctx *c, const Expr *e, uint32_t n, const Idx *const *dims, Loc loc)
{
    while (is_view(e) && expr_has_shape(call_arg(e, 0)))
        e = call_arg(e, 0);
    return make_reshape_to(c, e, n, dims, loc);
}

/* A transpose whose result is as wanted but for 1s, as one of an operand with the 1s in front
 * that are wanted; else NULL. */
static const Expr *transpose_of(Ctx *c, const Expr *e, const Shape *want)
{
    const Idx      *one = idx_const(c->arith, 1), *dims[MAX_DIMS];
    uint32_t        n = e->type->n, at[MAX_DIMS], ones = 0, k = 0;
    int64_t         axes[MAX_DIMS];
    TransposeAttrs *a;

    if (!call_is(e, "transpose") || n > MAX_DIMS)
        return NULL;
    for (uint32_t i = 0; i < want->n; i++)
        ones += want->dims[i] == one;
    for (uint32_t i = 0; i < n; i++) /* where a dimension of the operand comes to stand */
        if (call_arg(e, 0)->type->dims[i] != one) {
            if (ones + k >= want->n)
                return NULL;
            dims[ones + k] = call_arg(e, 0)->type->dims[i];
            at[i] = ones + k++;
        }
    if (ones + k != want->n)
        return NULL;
    for (uint32_t i = 0; i < ones; i++)
        dims[i] = one;
    k = 0;
    for (uint32_t i = 0, next = 0; i < want->n; i++) {
        if (want->dims[i] == one) {
            axes[i] = next++;
            continue;
        }
        while (k < n && e->type->dims[k] == one)
            k++;
        if (k == n || e->type->dims[k] != want->dims[i])
            return NULL;
        axes[i] = at[source(e, k++)];
    }
    a = ATTRS_NEW(c, TransposeAttrs);
    a->axes = ints_dup(c, axes, want->n);
    return make1(c, "transpose", viewed(c, call_arg(e, 0), want->n, dims, e->loc), a, e->loc);
}

/* Leading dimensions as those of the scores: a view of the operand; NULL if they do not fit. */
static const Expr *with_batch(Ctx *c, const Expr *e, const Shape *scores, bool broadcasts)
{
    Shape       s, want = *scores;
    const Idx  *one = idx_const(c->arith, 1), *have = one, *all = one;
    const Expr *transposed;

    while (is_batch_view(e))
        e = call_arg(e, 0);
    if (!shape_of(e->type, &s))
        return NULL;
    for (uint32_t i = 0; i + 2 < s.n; i++)
        have = idx_mul(c->arith, have, s.dims[i]);
    for (uint32_t i = 0; i + 2 < want.n; i++)
        all = idx_mul(c->arith, all, want.dims[i]);
    want.dims[want.n - 2] = row_dim(&s);
    want.dims[want.n - 1] = column_dim(&s);
    if (have != all) {
        if (!broadcasts || (have != one && s.n != want.n))
            return NULL;
        for (uint32_t i = 0; i + 2 < want.n; i++) {
            if (have != one && s.dims[i] != want.dims[i] && s.dims[i] != one)
                return NULL;
            want.dims[i] = have == one ? one : s.dims[i];
        }
    }
    if (same_shape(&s, &want))
        return e;
    for (transposed = e; is_view(transposed);)
        transposed = call_arg(transposed, 0);
    transposed = transpose_of(c, transposed, &want);
    return transposed ? transposed : viewed(c, e, want.n, want.dims, e->loc);
}

static bool swaps_last(const Expr *e)
{
    uint32_t n = e->type ? e->type->n : 0;

    if (!call_is(e, "transpose") || n < 2)
        return false;
    for (uint32_t i = 0; i + 2 < n; i++)
        if (source(e, i) != i)
            return false;
    return source(e, n - 1) == n - 2;
}

/* An operand as the call reads it: dimensions of `e` in the order of `axes`. */
typedef struct {
    const Expr *e;
    uint32_t    axes[MAX_DIMS];
} Operand;

typedef enum { QUERIES, KEYS, VALUES } Role;

/* Keys are copied whichever way they lie; columns of others have to lie together. */
static bool may_lie(const uint32_t *axes, uint32_t n, Role role)
{
    return axes[n - 1] == n - 1 || (role == KEYS && axes[n - 2] == n - 1);
}

/* The operand of a product, `transposed` if its last two dimensions stand the other way round than
 * nn.attention has them.  Numbers that it is multiplied by go to *scale. */
static bool operand_of(Ctx *c, const Expr *e, bool transposed, const Shape *scores, Role role,
                       double *scale, Operand *o)
{
    uint32_t    n = scores->n, axes[MAX_DIMS];
    const Expr *x;

    for (;;) {
        if (role != VALUES && (x = times_number(e, scale)))
            e = x;
        else if (is_batch_view(e))
            e = call_arg(e, 0);
        else if (swaps_last(e))
            e = call_arg(e, 0), transposed = !transposed;
        else
            break;
    }
    if (!(e = with_batch(c, e, scores, role != QUERIES)))
        return false;
    for (uint32_t i = 0; i < n; i++)
        o->axes[i] = i;
    if (transposed)
        o->axes[n - 1] = n - 2, o->axes[n - 2] = n - 1;
    while (call_is(e, "transpose")) {
        for (uint32_t i = 0; i < n; i++)
            axes[i] = source(e, o->axes[i]);
        if (!may_lie(axes, n, role))
            break;
        memcpy(o->axes, axes, n * sizeof *axes);
        e = call_arg(e, 0);
        while (role != VALUES && (x = times_number(e, scale)))
            e = x;
    }
    o->e = e;
    return may_lie(o->axes, n, role);
}

static Ints axes_ints(Ctx *c, const uint32_t *axes, uint32_t n)
{
    int64_t v[MAX_DIMS];
    bool    moved = false;

    for (uint32_t i = 0; i < n; i++)
        v[i] = axes[i], moved |= axes[i] != i;
    return moved ? ints_dup(c, v, n) : (Ints){0};
}

/* ---- the pattern ---------------------------------------------------------------------------- */

typedef struct {
    const Expr *product, *mask;
    bool        inverted; /* the mask is true where a score is not used */
    double      scale, fill;
    Shape       scores;
} Match;

static bool used_once(const State *s, const Expr *e)
{
    const Expr *was = map_get(s->old, PTR_KEY(e));

    return was && uses_of(s->uses, was) == 1;
}

/* Does e come from a product, without a mask between? */
static bool leads_to_product(const State *s, const Expr *e)
{
    double scale = 1;

    while (e && call_op(e) && used_once(s, e)) {
        if (call_is(e, "nn.batch_matmul"))
            return true;
        e = is_batch_view(e) ? call_arg(e, 0) : times_number(e, &scale);
    }
    return false;
}

/* The scores that a mask is put on, NULL if e does not do that. */
static const Expr *take_mask(const State *s, const Expr *e, Match *m)
{
    const Expr *mask = call_arg(e, 0), *x = call_arg(e, 1);
    Shape       at;

    m->fill = -INFINITY;
    if (call_is(e, "add")) {
        if (leads_to_product(s, mask)) {
            const Expr *t = mask;
            mask = x, x = t;
        }
    } else if (!expr_const_f(call_arg(e, 2), &m->fill)) {
        if (!expr_const_f(x, &m->fill))
            return NULL;
        x = call_arg(e, 2);
        m->inverted = true;
    }
    /* What was multiplied behind the mask would belong to it too. */
    if (m->mask || m->scale != 1 || !leads_to_product(s, x) || !same_dims(x->type, e->type) ||
        !shape_of(x->type, &at) || !mask->type || mask->type->kind != TYPE_TENSOR)
        return NULL;
    m->mask = mask;
    m->scores = at;
    return x;
}

/* From softmax up to the first product. */
static bool find_product(const State *s, const Expr *e, Match *m)
{
    while (is_batch_view(e) && used_once(s, e))
        e = call_arg(e, 0);
    if (!call_is(e, "nn.softmax") || !used_once(s, e) || !e->type ||
        axis_from_front(ATTRS_OF(SoftmaxAttrs, e)->axis, e->type->n) != e->type->n - 1)
        return false;
    const Type *softmax = e->type;
    for (e = call_arg(e, 0); e && call_op(e) && used_once(s, e);) {
        if (call_is(e, "nn.batch_matmul")) {
            m->product = e;
            return m->mask || shape_of(softmax, &m->scores);
        }
        if (is_batch_view(e))
            e = call_arg(e, 0);
        else if (call_is(e, "add") || call_is(e, "where"))
            e = take_mask(s, e, m);
        else
            e = times_number(e, &m->scale);
    }
    return false;
}

static bool is_f32(const Expr *e)
{
    return is_float(e) && e->type->dtype.bits == 32;
}

/* Symbolic rows are not cut into blocks: the loop over heads is what all stages lie in. */
static bool has_heads(const Shape *scores)
{
    bool symbolic = !idx_is_const(row_dim(scores), NULL) || !idx_is_const(column_dim(scores), NULL);

    return !symbolic || scores->n > 2;
}

/* Keys at a time on a device; 0: nothing of that size fits. */
static int64_t chunk_of(Ctx *c, const Shape *scores, const Expr *q, const Expr *v)
{
    Machine         m = machine_of(c->target);
    DeviceAttention a = {.heads = 1, .bytes = dtype_bytes(q->type->dtype)};

    if (!type_dim(q->type, q->type->n - 1, &a.k) || !type_dim(v->type, v->type->n - 1, &a.e))
        return 0;
    a.m = idx_usual(row_dim(scores));
    a.n = idx_usual(column_dim(scores));
    a.open.m = idx_is_const(row_dim(scores), NULL) ? 0 : a.m;
    a.open.n = idx_is_const(column_dim(scores), NULL) ? 0 : a.n;
    for (uint32_t i = 0; i + 2 < scores->n; i++) {
        const int64_t most = idx_usual(scores->dims[i]);
        a.heads *= most;
        if (!idx_is_const(scores->dims[i], NULL))
            a.open.heads = (a.open.heads ? a.open.heads : 1) * most;
    }
    a = device_attention_best(&m, a);
    return a.rows ? a.chunk : 0;
}

/* The product e = softmax(..) * v as nn.attention; e itself if it is none. */
static const Expr *attention_of(Ctx *c, const State *s, const Expr *e)
{
    const BatchMatmulAttrs *second = ATTRS_OF(BatchMatmulAttrs, e);
    Match                   m = {.scale = 1, .fill = -INFINITY};
    Machine                 at = machine_of(c->target);
    Shape                   y;
    Operand                 q, k, v;

    if (second->transpose_a || !is_f32(e) || !shape_of(e->type, &y) ||
        !find_product(s, call_arg(e, 0), &m) || !is_f32(m.product) ||
        row_dim(&m.scores)->hi < limit_attention_queries(&at) ||
        (has_vectors(c->target) && !has_heads(&m.scores)))
        return e;
    const BatchMatmulAttrs *first = ATTRS_OF(BatchMatmulAttrs, m.product);
    if (!operand_of(c, call_arg(m.product, 0), first->transpose_a, &m.scores, QUERIES, &m.scale,
                    &q) ||
        !operand_of(c, call_arg(m.product, 1), !first->transpose_b, &m.scores, KEYS, &m.scale,
                    &k) ||
        !operand_of(c, call_arg(e, 1), second->transpose_b, &m.scores, VALUES, NULL, &v))
        return e;
    AttentionAttrs *a = ATTRS_NEW(c, AttentionAttrs);
    const Expr     *args[4] = {q.e, k.e, v.e, m.mask};
    if (!has_vectors(c->target) && !(a->chunk = chunk_of(c, &m.scores, q.e, v.e)))
        return e;
    if (m.inverted)
        args[3] = make1(c, "logical_not", m.mask, NULL, m.mask->loc);
    a->scale = m.scale;
    a->fill = m.fill;
    a->axes_q = axes_ints(c, q.axes, m.scores.n);
    a->axes_k = axes_ints(c, k.axes, m.scores.n);
    a->axes_v = axes_ints(c, v.axes, m.scores.n);
    const Expr *now = expr_call_name(c, "nn.attention", m.mask ? 4 : 3, args, a, e->loc);
    if (now && now->type != e->type)
        now = make_reshape_to(c, now, y.n, y.dims, e->loc);
    return now;
}

/* transpose(nn.attention(..)): the result is stored in that order. */
static const Expr *stored_transposed(Ctx *c, const State *s, const Expr *e)
{
    const Expr *x = call_arg(e, 0);
    uint32_t    axes[MAX_DIMS], n = e->type ? e->type->n : 0;

    while (is_batch_view(x) && used_once(s, x))
        x = call_arg(x, 0);
    if (!call_is(x, "nn.attention") || !used_once(s, x) || x->type != call_arg(e, 0)->type ||
        ATTRS_OF(AttentionAttrs, x)->axes_out.n || n > MAX_DIMS || source(e, n - 1) != n - 1)
        return e;
    for (uint32_t i = 0; i < n; i++)
        axes[i] = source(e, i);
    AttentionAttrs *a = ATTRS_COPY(c, AttentionAttrs, x);
    const Expr     *args[4];
    for (uint32_t i = 0; i < call_nargs(x); i++)
        args[i] = call_arg(x, i);
    a->axes_out = axes_ints(c, axes, n);
    return expr_call(c, call_op(x), call_nargs(x), args, a, x->loc);
}

static const Expr *match(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    State *s = user;

    if (call_is(now, "nn.batch_matmul"))
        now = attention_of(c, s, now);
    else if (call_is(now, "transpose"))
        now = stored_transposed(c, s, now);
    for (const Expr *e = now; e && !map_get(s->old, PTR_KEY(e));
         e = is_view(e) ? call_arg(e, 0) : NULL)
        map_put(s->old, PTR_KEY(e), (void *)(uintptr_t)was);
    return now;
}

const Module *attention(Ctx *c, const Module *m)
{
    State         s = {count_uses(c, m), map_new(c->scratch)};
    const Module *next = module_rewrite(c, m, match, &s);

    return !next || next == m ? next : fold_constant(c, next);
}
