/* Attention: softmax(Q K' scale + mask) V, with weights of its own or without. */
#include "frontends/keras/keras.h"

#include <math.h>
#include <string.h>

/* ---- masks ------------------------------------------------------------------------------------------ */

static const Expr *both(const Build *b, const Expr *x, const Expr *y)
{
    return !x ? y : !y ? x : build2(b, "logical_and", x, y, NULL);
}

/* [T, S]: the key is not behind the query. */
static const Expr *causal(const Build *b, const Idx *T, const Idx *S)
{
    const Expr *q = build_expand_dims(b, build_arange(b, T, DT_I64), 1, 1);

    return build2(b, "less_equal", build_arange(b, S, DT_I64), q, NULL);
}

/* Scores where the mask is false become far below all others. */
static const Expr *masked(const Build *b, const Expr *s, const Expr *mask)
{
    double far = expr_dtype(s).bits == 16 && dtype_eq(expr_dtype(s), DT_F16) ? -3e4 : -1e9;

    if (!mask || !s)
        return s;
    return build_add(b, s, build_where(b, mask, build_scalar(b, s, 0), build_scalar(b, s, far)));
}

/* The mask that goes with an argument, or is given as another one; [N, T] of bools. */
static bool mask_of(KerasNode *n, const KerasValue *v, const char *name, const Expr **out)
{
    KerasValue given;

    if (!keras_operand(n, UINT32_MAX, name, true, &given))
        return false;
    *out = given.e ? build_cast(&n->b, given.e, DT_BOOL) : v->mask;
    return true;
}

static bool flag(const KerasNode *n, uint32_t place, const char *name)
{
    const KerasArg *a = keras_arg(n, place, name);

    return a && a->kind == KERAS_JSON && json_is_true(a->json);
}

/* ---- heads ------------------------------------------------------------------------------------------ */

typedef struct {
    KerasNode  *n;
    KerasValue  q, k, v;
    const Expr *mask;               /* [N, 1, T, S], as far as it is there */
    int64_t     heads, shared, key; /* shared: heads of keys and values */
    double      scale;
    bool        scores;
} Heads;

/* [N, T, D] by weights [D, h, d] to [N, h, T, d]. */
static const Expr *split_heads(Heads *h, const char *part, const Expr *x, int64_t heads)
{
    KerasNode   *n = h->n;
    const Build *b = &n->b;
    const char  *kernel = intern_printf(b->c->strings, "%s/kernel", part);
    const char  *bias = intern_printf(b->c->strings, "%s/bias", part);
    const Expr  *w = keras_weight(n, kernel), *c = NULL;
    int64_t      d, all;

    if (!w || !keras_rank(n, x, 3, 3))
        return NULL;
    if (expr_rank(w) != 3 || build_dim(b, w, 1) != heads)
        return keras_error(n, E_IMPORT, "its weight '%s' is %s for %lld heads", kernel,
                           type_text(b->c, w->type), (long long)heads);
    d = build_dim(b, w, 2);
    all = heads * d;
    w = build_transpose(b, build_reshape(b, w, 2, (int64_t[]){build_dim(b, w, 0), all}), 2,
                        (int64_t[]){1, 0});
    w = keras_folded(n, kernel, w);
    if (keras_has_weight(n, bias)) {
        if (!(c = keras_weight(n, bias)))
            return NULL;
        if (build_elems(b, c) != all)
            return keras_error(n, E_IMPORT, "its bias is %s", type_text(b->c, c->type));
        c = keras_folded(n, bias, build_reshape(b, c, 1, &all));
    }
    x = keras_dense(n, build_cast(b, x, n->dtype), w, c);
    if (!x)
        return NULL;
    x = build_reshape_to(b, x, 4,
                         (const Idx *[]){expr_form(x, 0), expr_form(x, 1),
                                         idx_const(b->c->arith, heads), idx_const(b->c->arith, d)});
    return build_transpose(b, x, 4, (int64_t[]){0, 2, 1, 3});
}

/* [N, h, T, d] by weights [h, d, D] to [N, T, D]. */
static const Expr *join_heads(Heads *h, const Expr *y)
{
    KerasNode   *n = h->n;
    const Build *b = &n->b;
    const Expr  *w = keras_weight(n, "output_dense/kernel"), *c = NULL;
    int64_t      all;

    if (!w || !y)
        return NULL;
    if (expr_rank(w) != 3)
        return keras_error(n, E_UNSUPPORTED, "its weight 'output_dense' is %s",
                           type_text(b->c, w->type));
    all = build_dim(b, w, 0) * build_dim(b, w, 1);
    w = build_transpose(b, build_reshape(b, w, 2, (int64_t[]){all, build_dim(b, w, 2)}), 2,
                        (int64_t[]){1, 0});
    w = keras_folded(n, "output_dense/kernel", w);
    if (keras_has_weight(n, "output_dense/bias") && !(c = keras_weight(n, "output_dense/bias")))
        return NULL;
    y = build_transpose(b, y, 4, (int64_t[]){0, 2, 1, 3});
    y = y ? build_reshape_to(
                b, y, 3,
                (const Idx *[]){expr_form(y, 0), expr_form(y, 1), idx_const(b->c->arith, all)})
          : NULL;
    return keras_dense(n, y, w, c);
}

static const Expr *repeated(const Build *b, const Expr *x, int64_t times)
{
    RepeatAttrs *a = ATTRS(b, RepeatAttrs);

    a->repeats = times;
    a->axis = 1;
    return times == 1 ? x : build1(b, "repeat", x, a);
}

static bool read_masks(Heads *h, const Idx *T, const Idx *S)
{
    KerasNode   *n = h->n;
    const Build *b = &n->b;
    const Expr  *q, *k, *v, *mask = NULL;
    KerasValue   given;

    if (!keras_operand(n, UINT32_MAX, "attention_mask", true, &given) ||
        !mask_of(n, &h->q, "query_mask", &q) || !mask_of(n, &h->k, "key_mask", &k) ||
        !mask_of(n, &h->v, "value_mask", &v))
        return false;
    k = both(b, k, v);
    if (q) /* [N, 1, T, 1] */
        mask = build_expand_dims(b, build_expand_dims(b, q, 1, 1), 3, 1);
    if (k) /* [N, 1, 1, S] */
        mask = both(b, mask, build_expand_dims(b, k, 1, 2));
    if (flag(n, UINT32_MAX, "use_causal_mask"))
        mask = both(b, mask, causal(b, T, S));
    if (given.e) { /* [N, T, S], or with the heads in it */
        const Expr *m = build_cast(b, given.e, DT_BOOL);

        mask = both(b, mask, m && expr_rank(m) == 3 ? build_expand_dims(b, m, 1, 1) : m);
    }
    h->mask = mask;
    return true;
}

static bool attend(Heads *h)
{
    KerasNode   *n = h->n;
    const Build *b = &n->b;
    const Expr  *q = split_heads(h, "query_dense", h->q.e, h->heads), *k, *v, *s, *y;

    k = q ? split_heads(h, "key_dense", h->k.e, h->shared) : NULL;
    v = k ? split_heads(h, "value_dense", h->v.e, h->shared) : NULL;
    if (!v || !read_masks(h, expr_form(q, 2), expr_form(k, 2)))
        return false;
    k = repeated(b, k, h->heads / h->shared);
    v = repeated(b, v, h->heads / h->shared);
    s = keras_matmul(n, build_by(b, "multiply", q, h->scale), k, true);
    s = masked(b, s, h->mask);
    s = s ? keras_softmax(b, "nn.softmax", s, 3) : NULL;
    y = join_heads(h, keras_matmul(n, s, v, false));
    return keras_done_masked(n, y, h->q.mask) && (!h->scores || keras_done(n, s));
}

static bool read_heads(KerasNode *n, Heads *h)
{
    Ints axes;

    if (!keras_count(n, 1, 1) || !keras_list(n, "attention_axes", &axes))
        return false;
    h->q = n->in[0];
    if (!keras_operand(n, 1, "value", false, &h->v) || !keras_operand(n, 2, "key", true, &h->k))
        return false;
    h->k = h->k.e ? h->k : h->v;
    h->scores = flag(n, UINT32_MAX, "return_attention_scores");
    if (axes.n > 1 || (axes.n == 1 && axes.at[0] != 1) || expr_rank(h->q.e) != 3)
        return keras_error(n, E_UNSUPPORTED, "attention along other axes than the second");
    if (keras_bool(n, "use_gate", false) || keras_json(n, "sliding_window"))
        return keras_error(n, E_UNSUPPORTED, "a gate, or a window that slides");
    return true;
}

bool keras_multi_head_attention(KerasNode *n)
{
    Heads h = {.n = n, .heads = keras_int(n, "num_heads", 1), .key = keras_int(n, "key_dim", 1)};

    if (h.heads < 1 || h.key < 1 || h.heads > INT32_MAX || h.key > INT32_MAX)
        return keras_error(n, E_IMPORT, "%lld heads of %lld", (long long)h.heads, (long long)h.key);
    h.shared = h.heads;
    h.scale = 1 / sqrt((double)h.key);
    return read_heads(n, &h) && attend(&h);
}

bool keras_group_query_attention(KerasNode *n)
{
    Heads h = {.n = n,
               .heads = keras_int(n, "num_query_heads", 1),
               .shared = keras_int(n, "num_key_value_heads", 1),
               .key = keras_int(n, "head_dim", 1)};

    if (h.heads < 1 || h.shared < 1 || h.key < 1 || h.heads > INT32_MAX || h.key > INT32_MAX ||
        h.heads % h.shared)
        return keras_error(n, E_IMPORT, "%lld heads of queries, %lld of keys", (long long)h.heads,
                           (long long)h.shared);
    h.scale = 1 / sqrt((double)h.key);
    return read_heads(n, &h) && attend(&h);
}

/* ---- without heads ---------------------------------------------------------------------------------- */

/* sum over the cells of scale * tanh(q + k), for all pairs. */
static const Expr *additive(const Build *b, const Expr *q, const Expr *k, const Expr *scale)
{
    const Expr *t = build_add(b, build_expand_dims(b, q, 2, 1), build_expand_dims(b, k, 1, 1));
    int64_t     last = 3;

    t = build1(b, "tanh", t, NULL);
    return build_reduce(b, "sum", scale ? build_mul(b, t, scale) : t, 1, &last, false);
}

/* Inputs: queries, values and perhaps keys, [N, T, D]. */
bool keras_attention(KerasNode *n)
{
    const Build *b = &n->b;
    bool         plus = !strcmp(n->layer->class_name, "AdditiveAttention");
    bool         concat = !strcmp(keras_text(n, "score_mode", "dot"), "concat");
    const Expr  *scale = keras_has_weight(n, "scale") ? keras_weight(n, "scale") : NULL;
    const Expr  *q, *v, *k, *s, *mask = NULL, *y, *qm, *vm;
    KerasValue   key;

    if (!keras_count(n, 2, 3))
        return false;
    q = n->in[0].e, v = n->in[1].e;
    key = n->in[n->nin - 1];
    k = key.e;
    if (expr_rank(q) != 3 || expr_rank(v) != 3 || expr_rank(k) != 3)
        return keras_error(n, E_UNSUPPORTED, "queries of %s", type_text(b->c, q->type));
    qm = n->in[0].mask, vm = n->in[1].mask;
    if (plus) {
        s = additive(b, q, k, scale);
    } else if (concat) {
        s = scale ? additive(b, build_mul(b, q, scale), build_mul(b, k, scale), NULL)
                  : additive(b, q, k, NULL);
        s = build_mul(b, s, keras_weight(n, "concat_score_weight"));
    } else {
        s = keras_matmul(n, q, k, true);
        s = scale ? build_mul(b, s, scale) : s;
    }
    if (!s)
        return false;
    if (vm)
        mask = build_expand_dims(b, vm, 1, 1);
    if (flag(n, UINT32_MAX, "use_causal_mask") || keras_bool(n, "causal", false))
        mask = both(b, mask, causal(b, expr_form(q, 1), expr_form(k, 1)));
    s = masked(b, s, mask);
    s = s ? keras_softmax(b, "nn.softmax", s, 2) : NULL;
    y = keras_matmul(n, s, v, false);
    if (qm && y)
        y = build_mul(b, y, build_expand_dims(b, build_cast(b, qm, expr_dtype(y)), 2, 1));
    return keras_done_masked(n, y, qm) &&
           (!flag(n, UINT32_MAX, "return_attention_scores") || keras_done(n, s));
}
