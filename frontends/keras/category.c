/* Layers that turn numbers into categories: by their value, by boundaries, by a vocabulary. */
#include "frontends/keras/keras.h"

#include <string.h>

static const Expr *one_hot(const Build *b, const Expr *x, int64_t depth, DType t)
{
    OneHotAttrs *a = ATTRS(b, OneHotAttrs);

    a->depth = depth;
    a->dtype = t;
    return build3(b, "one_hot", x, expr_scalar(b->c, t, 1), expr_scalar(b->c, t, 0), a);
}

/* x as categories below `depth`: one_hot, multi_hot: the largest of them all, or count: their sum.
 */
static bool encoded(KerasNode *n, const Expr *x, int64_t depth, const char *mode, DType t)
{
    const Build *b = &n->b;
    const Expr  *y;
    int64_t      axis;

    if (depth < 1 || depth > INT32_MAX || keras_bool(n, "sparse", false))
        return keras_error(n, E_UNSUPPORTED, "%lld categories, or a sparse result",
                           (long long)depth);
    if (!dtype_is_int(expr_dtype(x)))
        x = build_cast(b, x, DT_I32);
    y = one_hot(b, x, depth, t);
    if (!y)
        return false;
    if (!strcmp(mode, "one_hot")) {
        if (expr_rank(x) >= 1 && expr_form(x, expr_rank(x) - 1) == idx_const(b->c->arith, 1)) {
            const Idx *dims[MAX_RANK];

            for (uint32_t i = 0; i + 1 < expr_rank(x); i++)
                dims[i] = expr_form(x, i);
            dims[expr_rank(x) - 1] = idx_const(b->c->arith, depth);
            y = build_reshape_to(b, y, expr_rank(x), dims);
        }
        return keras_done(n, y);
    }
    axis = expr_rank(y) - 2;
    if (strcmp(mode, "multi_hot") != 0 && strcmp(mode, "count") != 0)
        return keras_error(n, E_UNSUPPORTED, "output_mode '%s'", mode);
    if (expr_rank(x) == 0)
        return keras_done(n, y);
    return keras_done(n,
                      build_reduce(b, !strcmp(mode, "count") ? "sum" : "max", y, 1, &axis, false));
}

bool keras_category_encoding(KerasNode *n)
{
    const Expr *x = keras_in(n);

    return x && encoded(n, x, keras_int(n, "num_tokens", 0),
                        keras_text(n, "output_mode", "multi_hot"), n->dtype);
}

/* How many of the boundaries are not above it. */
bool keras_discretization(KerasNode *n)
{
    const Build *b = &n->b;
    KerasArg     list = {.kind = KERAS_JSON, .json = keras_json(n, "bin_boundaries")};
    const Expr  *x = keras_in(n);
    int64_t      axis;
    KerasValue   v;

    if (!x || strcmp(keras_text(n, "output_mode", "int"), "int") != 0)
        return x &&
               keras_error(n, E_UNSUPPORTED, "output_mode '%s'", keras_text(n, "output_mode", ""));
    if (!list.json || !keras_value(n, &list, &v))
        return keras_error(n, E_IMPORT, "it has no bin_boundaries");
    axis = expr_rank(x);
    x = build_expand_dims(b, build_cast(b, x, n->dtype), axis, 1);
    x = x ? build2(b, "greater_equal", x, build_cast(b, v.e, n->dtype), NULL) : NULL;
    x = x ? build_cast(b, x, n->im->major < 3 ? DT_I64 : DT_I32) : NULL;
    return x && keras_done(n, build_reduce(b, "sum", x, 1, &axis, false));
}

/* ---- vocabularies ----------------------------------------------------------------------------------- */

/* What stands for what: first the number that is left out (mask), if it leads, then `strangers`
 * numbers for those that are not in the vocabulary, then its own. */
typedef struct {
    bool     mask, leads, several; /* several: strangers are told apart */
    int64_t  masked, stranger, strangers, n;
    int64_t *tokens;
} Vocabulary;

static int64_t specials(const Vocabulary *v)
{
    return v->leads + v->strangers;
}

static bool is_special(const Vocabulary *v, int64_t at, int64_t token)
{
    return v->leads && at == 0 ? token == v->masked : token == v->stranger;
}

static bool read_vocabulary(const KerasNode *n, Vocabulary *v)
{
    const json_t *list = keras_json(n, "vocabulary"), *x;
    int64_t       skip = 0;
    size_t        i;

    if (!json_is_array(list))
        return keras_error(n, E_UNSUPPORTED, "a vocabulary that is not among its settings");
    v->mask = keras_json(n, "mask_token") != NULL;
    v->leads = v->mask && !strcmp(keras_text(n, "output_mode", "int"), "int");
    v->masked = keras_int(n, "mask_token", 0);
    v->stranger = keras_int(n, "oov_token", -1);
    v->strangers = keras_int(n, "num_oov_indices", 1);
    if (v->strangers < 0 || v->strangers > INT32_MAX)
        return keras_error(n, E_IMPORT, "num_oov_indices %lld", (long long)v->strangers);
    v->several = v->strangers > 1;
    if (v->several &&
        (keras_json(n, "salt") || strcmp(keras_text(n, "oov_method", "floormod"), "floormod")))
        return keras_error(n, E_UNSUPPORTED, "several oov indices by a hash");
    v->tokens = NEW_ARRAY(n->b.c->arena, int64_t, json_array_size(list) + 1);
    json_array_foreach(
        (json_t *)(uintptr_t)list, i,
        x) if (!json_int(x, &v->tokens[i])) return keras_error(n, E_IMPORT,
                                                               "its vocabulary has a token that is "
                                                               "no integer");
    v->n = (int64_t)json_array_size(list);
    /* It may begin with what stands for others. */
    while (skip < specials(v) && skip < v->n && is_special(v, skip, v->tokens[skip]))
        skip++;
    if (skip > 0 && skip == specials(v)) {
        v->tokens += skip;
        v->n -= skip;
    }
    return v->n > 0 || keras_error(n, E_IMPORT, "an empty vocabulary");
}

/* The number of each token. */
static const Expr *numbers(const KerasNode *n, const Vocabulary *v, const Expr *x)
{
    const Build *b = &n->b;
    int64_t      axis = expr_rank(x), *place = NEW_ARRAY(b->c->arena, int64_t, (size_t)v->n);
    const Expr  *same, *at, *other, *known;

    for (int64_t i = 0; i < v->n; i++)
        place[i] = specials(v) + i;
    same = build_expand_dims(b, x, axis, 1);
    same =
        same ? build2(b, "equal", same, build_const(b, DT_I64, 1, &v->n, v->tokens), NULL) : NULL;
    at = build_mul(b, build_cast(b, same, DT_I64), build_const(b, DT_I64, 1, &v->n, place));
    at = build_reduce(b, "sum", at, 1, &axis, false);
    known = same ? build_reduce(b, "any", same, 1, &axis, false) : NULL;
    if (!at || !known)
        return NULL;
    other = v->several ? build_by(b, "floor_mod", x, (double)v->strangers)
                       : build_scalar(b, x, v->strangers ? 0 : -1);
    if (v->leads && v->strangers)
        other = build_by(b, "add", other, 1);
    at = build_where(b, known, at, other);
    if (!v->mask || !at)
        return at;
    known = build2(b, "equal", x, build_scalar(b, x, (double)v->masked), NULL);
    /* Beyond all categories, where there are such. */
    return build_where(b, known, build_scalar(b, at, v->leads ? 0 : INT32_MAX), at);
}

/* The token of each number. */
static const Expr *tokens(const KerasNode *n, const Vocabulary *v, const Expr *x)
{
    const Build *b = &n->b;
    int64_t      all = specials(v) + v->n, *table = NEW_ARRAY(b->c->arena, int64_t, (size_t)all);
    const Expr  *y;

    for (int64_t i = 0; i < all; i++)
        table[i] = i >= specials(v)     ? v->tokens[i - specials(v)]
                   : v->leads && i == 0 ? v->masked
                                        : v->stranger;
    y = build_take(b, build_const(b, DT_I64, 1, &all, table), build_clip(b, x, 0, (double)all - 1),
                   0);
    y = build_where(b, build_less(b, x, build_scalar(b, x, (double)all)), y,
                    build_scalar(b, x, (double)v->stranger));
    return build_where(b, build_less(b, x, build_scalar(b, x, 0)),
                       build_scalar(b, x, (double)v->stranger), y);
}

bool keras_integer_lookup(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_in(n), *y;
    const char  *mode = keras_text(n, "output_mode", "int");
    int64_t      depth;
    Vocabulary   v;

    if (!x || !read_vocabulary(n, &v))
        return false;
    x = build_cast(b, x, DT_I64);
    if (keras_bool(n, "invert", false))
        return keras_done(n, tokens(n, &v, x));
    y = numbers(n, &v, x);
    if (!y || !strcmp(mode, "int"))
        return keras_done(n, y);
    depth = keras_bool(n, "pad_to_max_tokens", false) ? keras_int(n, "max_tokens", 0)
                                                      : specials(&v) + v.n;
    return encoded(n, y, depth, mode, DT_I64);
}
