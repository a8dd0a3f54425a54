/* Keys and values by lists, of numbers or strings: LabelEncoder, CategoryMapper, OneHotEncoder, and
 * the labels of classes.
 *
 * Which key a cell is, is found by comparing it with all of them. */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

#define MAX_KEYS (1 << 16)

/* The list NAME_int64s, NAME_floats, NAME_strings or NAME_tensor; NULL: there is none. */
static const Expr *list_of_attr(Node *n, const char *name)
{
    const char     *kinds[] = {"int64s", "floats", "strings", "tensor"};
    const Build    *b = &n->b;
    const Expr     *list = NULL;
    const OnnxAttr *a;

    for (uint32_t j = 0; j < COUNT(kinds); j++) {
        if (!(a = node_attr(n, arena_printf(b->c->arena, "%s_%s", name, kinds[j]))) || list)
            continue;
        if (j == 0)
            list = build_i64s(b, a->ints.n, a->ints.at);
        else if (j == 1)
            list =
                build_const(b, DT_F32, 1, (int64_t[]){(int64_t)(a->floats.data.n / sizeof(float))},
                            arena_dup(b->c->arena, a->floats.data.at, a->floats.data.n));
        else if (j == 2)
            list = onnx_strings_of(n, a->strings.n, a->strings.at);
        else
            list = a->t ? onnx_constant(n->im, a->t, b->loc) : NULL;
    }
    return list;
}

/* Which of the keys [K] each cell of x is, [.., K]. */
static const Expr *key_hits(Node *n, const Expr *x, const Expr *keys)
{
    const Build *b = &n->b;
    bool         text = onnx_is_string(n->im, x);
    const Expr  *hit;

    if (text != onnx_is_string(n->im, keys))
        return node_error(n, E_IMPORT, "strings are compared with numbers");
    if (text)
        return string_equal(b, build_expand_dims(b, x, expr_rank(x) - 1, 1), keys);
    x = build_expand_dims(b, x, expr_rank(x), 1);
    keys = build_cast(b, keys, expr_dtype(x));
    hit = build2(b, "equal", x, keys, NULL);
    if (dtype_is_float(expr_dtype(x)))
        hit = build2(b, "logical_or", hit,
                     build2(b, "logical_and", build1(b, "isnan", x, NULL),
                            build1(b, "isnan", keys, NULL), NULL),
                     NULL);
    return hit;
}

/* The value [K] of the key that a cell is, or the fallback [1]. */
static const Expr *value_of_key(Node *n, const Expr *x, const Expr *keys, const Expr *values,
                                const Expr *fallback)
{
    const Build    *b = &n->b;
    ArgReduceAttrs *first = ATTRS(b, ArgReduceAttrs);
    const Expr     *hit = key_hits(n, x, keys), *at, *both[2] = {values, fallback};
    bool            text = onnx_is_string(n->im, values);
    int64_t         count, last;

    if (!hit)
        return NULL;
    count = build_dim(b, hit, expr_rank(hit) - 1);
    last = first->axis = (int64_t)expr_rank(hit) - 1;
    first->dtype = DT_I64;
    at = build1(b, "argmax", build_cast(b, hit, DT_I32), first);
    at = build_where(b, build_reduce(b, "any", hit, 1, &last, false), at,
                     build_const(b, DT_I64, 0, NULL, &count));
    for (uint32_t i = 0; text && i < 2; i++)
        both[i] =
            string_fitted(b, both[i], string_common_room(b, 2, (const Expr *[]){values, fallback}));
    x = at ? build_take(b, build_concat(b, 2, both, 0), at, 0) : NULL;
    return text ? onnx_string(n->im, x) : x;
}

static bool same_length(Node *n, const Expr *keys, const Expr *values)
{
    if (!keys || !values || onnx_value_type(n->im, keys)->n != 1 ||
        onnx_value_type(n->im, values)->n != 1 ||
        build_dim(&n->b, keys, 0) != build_dim(&n->b, values, 0))
        return node_error(n, E_IMPORT, "keys or values are missing, or not as many");
    if (build_dim(&n->b, keys, 0) < 1 || build_dim(&n->b, keys, 0) > MAX_KEYS)
        return node_error(n, E_UNSUPPORTED, "%lld keys; 1 to %d are supported",
                          (long long)build_dim(&n->b, keys, 0), MAX_KEYS);
    return true;
}

/* default_string as [1] */
static const Expr *default_string(Node *n)
{
    const OnnxAttr *a = node_attr(n, "default_string");
    Bytes           text = a ? a->s : (Bytes){(const uint8_t *)"_Unused", 7};

    return onnx_strings_of(n, 1, &text);
}

static const Expr *default_of(Node *n, const Expr *values)
{
    const Build    *b = &n->b;
    const OnnxAttr *a = node_attr(n, "default_tensor");
    bool            text = onnx_is_string(n->im, values);
    const Expr     *string = default_string(n), *y, *cell;
    int64_t         i = node_int(n, "default_int64", -1), one = 1;
    double          f = node_float(n, "default_float", -0.0);
    DType           t = expr_dtype(values);

    if (a && a->t) {
        if (!(y = onnx_constant(n->im, a->t, b->loc)))
            return NULL;
        cell = text ? string_rows(b, y) : build_reshape(b, y, 1, &one);
        if (onnx_is_string(n->im, y) != text || !cell || build_dim(b, cell, 0) != 1)
            return node_error(n, E_IMPORT, "default_tensor is %s", type_text(b->c, y->type));
        return cell;
    }
    if (text)
        return string;
    y = expr_scalar(b->c, t, dtype_is_float(t) ? f : (double)i);
    return build_reshape(b, y, 1, &one);
}

bool convert_label_encoder(Node *n)
{
    const Expr *keys = list_of_attr(n, "keys"), *values = list_of_attr(n, "values"), *fallback;

    return node_need_rank(n, 0, 0, MAX_RANK - 1) && same_length(n, keys, values) &&
           (fallback = default_of(n, values)) &&
           node_done(n, value_of_key(n, n->in[0], keys, values, fallback));
}

/* Strings to numbers, or numbers to strings. */
bool convert_category_mapper(Node *n)
{
    const Expr     *numbers, *strings, *text = default_string(n), *number;
    int64_t         i = node_int(n, "default_int64", -1);
    Ints            v = {0};
    const OnnxAttr *a = node_attr(n, "cats_strings");

    node_ints(n, "cats_int64s", &v);
    numbers = build_i64s(&n->b, v.n, v.at);
    strings = onnx_strings_of(n, a ? a->strings.n : 0, a ? a->strings.at : NULL);
    number = build_i64s(&n->b, 1, &i);
    if (!node_need_rank(n, 0, 0, MAX_RANK - 1) || !same_length(n, numbers, strings) || !text)
        return false;
    return node_done(n, onnx_is_string(n->im, n->in[0])
                            ? value_of_key(n, n->in[0], strings, numbers, number)
                            : value_of_key(n, n->in[0], numbers, strings, text));
}

/* [..] -> [.., categories] */
bool convert_ml_one_hot(Node *n)
{
    const Build *b = &n->b;
    const Expr  *cats = list_of_attr(n, "cats"), *y;

    if (!node_int(n, "zeros", 1))
        return node_error(n, E_UNSUPPORTED,
                          "zeros 0: a category that is not there would be an "
                          "error of the run");
    if (!node_need_rank(n, 0, 0, MAX_RANK - 1) || !cats)
        return cats || node_error(n, E_IMPORT, "there are no categories");
    y = onnx_is_string(n->im, cats) ? n->in[0] : build_cast(b, n->in[0], DT_I64);
    y = key_hits(n, y, cats);
    return y && node_done(n, build_cast(b, y, DT_F32));
}

/* ---- labels of classes ------------------------------------------------------------------------------ */

const Expr *onnx_class_labels(Node *n, const char *numbers, int64_t *count)
{
    const OnnxAttr *a = node_attr(n, "classlabels_strings");
    const Expr     *labels;
    Ints            v;

    if (node_ints(n, numbers, &v) && v.n)
        labels = build_i64s(&n->b, v.n, v.at);
    else if (a && a->strings.n)
        labels = onnx_strings_of(n, a->strings.n, a->strings.at);
    else
        return node_error(n, E_IMPORT, "the labels of the classes are missing");
    *count = labels ? build_dim(&n->b, labels, 0) : 0;
    return labels;
}

const Expr *onnx_labelled(Node *n, const Expr *labels, const Expr *at)
{
    const Expr *y = labels && at ? build_take(&n->b, labels, at, 0) : NULL;

    return onnx_is_string(n->im, labels) ? onnx_string(n->im, y) : y;
}

/* A map from labels to scores for each row.  A product has no maps, and the labels are constants of
 * the model: the scores in their order are the result, [N, K]. */
bool convert_zip_map(Node *n)
{
    node_ignore(n, "classlabels_int64s");
    node_ignore(n, "classlabels_strings");
    return node_need_rank(n, 0, 1, 2) && node_done(n, n->in[0]);
}
