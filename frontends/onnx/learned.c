/* Models and encoders of ai.onnx.ml that are no trees: linear models, scaling, features put
 * together. */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

const Expr *onnx_floats(const Build *b, int64_t rows, int64_t columns, const double *v)
{
    int64_t n = columns ? rows * columns : rows;
    float  *at = NEW_ARRAY(b->c->arena, float, (size_t)n + 1);

    for (int64_t i = 0; i < n; i++)
        at[i] = (float)v[i];
    return build_const(b, DT_F32, columns ? 2 : 1, (int64_t[]){rows, columns}, at);
}

const Expr *onnx_data_rows(Node *n)
{
    const Expr *x;

    if (!node_need_rank(n, 0, 1, 2))
        return NULL;
    x = build_cast(&n->b, n->in[0], DT_F32);
    return expr_rank(x) == 1 ? build_expand_dims(&n->b, x, 0, 1) : x;
}

bool convert_array_feature_extractor(Node *n)
{
    const Build *b = &n->b;
    TakeAttrs   *a = ATTRS(b, TakeAttrs);
    const Expr  *x, *at;

    if (!node_need_rank(n, 0, 1, MAX_RANK) || !node_need_rank(n, 1, 0, MAX_RANK))
        return false;
    x = expr_rank(n->in[0]) == 1 ? build_expand_dims(b, n->in[0], 0, 1) : n->in[0];
    at = build_reshape(b, n->in[1], 1, (int64_t[]){build_elems(b, n->in[1])});
    a->axis = (int64_t)expr_rank(x) - 1;
    return node_done(n, build2(b, "take", x, at, a));
}

bool convert_binarizer(Node *n)
{
    const Build *b = &n->b;
    const Expr  *y;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    y = build_by(b, "greater", n->in[0], node_float(n, "threshold", 0));
    return y && node_done(n, build_cast(b, y, expr_dtype(n->in[0])));
}

/* (x - offset) * scale, for each feature or all */
bool convert_scaler(Node *n)
{
    const Build  *b = &n->b;
    const char   *names[] = {"offset", "scale"};
    const Expr   *x;
    const double *v;
    uint32_t      count;

    if (!node_need_rank(n, 0, 1, MAX_RANK))
        return false;
    x = build_cast(b, n->in[0], DT_F32);
    for (uint32_t i = 0; i < 2 && x; i++) {
        if (!node_numbers(n, names[i], &count, &v))
            return false;
        if (count == 0)
            continue;
        if (count != 1 && count != build_dim(b, x, expr_rank(x) - 1))
            return node_error(n, E_IMPORT, "%s has %u numbers for %lld features", names[i], count,
                              (long long)build_dim(b, x, expr_rank(x) - 1));
        x = build2(b, i ? "multiply" : "subtract", x, onnx_floats(b, count, 0, v), NULL);
    }
    return node_done(n, x);
}

/* Each row by its largest cell, its sum of magnitudes or its length; a row of zeros stays. */
bool convert_normalizer(Node *n)
{
    static const char *const norms[] = {"MAX", "L1", "L2", NULL};
    const Build             *b = &n->b;
    const char              *norm;
    const Expr              *x, *s;
    int64_t                  last;

    if (!node_need_rank(n, 0, 1, 2) || !node_choice(n, "norm", norms, &norm))
        return false;
    x = build_cast(b, n->in[0], DT_F32);
    last = (int64_t)expr_rank(x) - 1;
    if (norm[1] == '2')
        s = build_reduce(b, "sum", build2(b, "multiply", x, x, NULL), 1, &last, true);
    else if (norm[1] == '1')
        s = build_reduce(b, "sum", build1(b, "abs", x, NULL), 1, &last, true);
    else
        s = build_reduce(b, "max", x, 1, &last, true);
    if (s && norm[1] == '2')
        s = build1(b, "sqrt", s, NULL);
    if (!s)
        return false;
    s = build_where(b, build_by(b, "equal", s, 0), build_scalar(b, s, 1), s);
    return node_done(n, build2(b, "divide", x, s, NULL));
}

/* A value, which may be NaN, is replaced: by one number, or one for each feature. */
bool convert_imputer(Node *n)
{
    const Build  *b = &n->b;
    const Expr   *x, *hit, *by;
    const double *v;
    uint32_t      count;
    double        was;
    Ints          k;

    if (!node_need_rank(n, 0, 1, MAX_RANK))
        return false;
    x = n->in[0];
    was = node_float(n, "replaced_value_float", 0);
    if (dtype_is_float(expr_dtype(x))) {
        if (!node_numbers(n, "imputed_value_floats", &count, &v))
            return false;
        by = build_cast(b, onnx_floats(b, count, 0, v), expr_dtype(x));
    } else {
        if (!node_ints(n, "imputed_value_int64s", &k))
            k.n = 0;
        count = k.n;
        was = (double)node_int(n, "replaced_value_int64", 0);
        by = k.n ? build_cast(b, build_i64s(b, k.n, k.at), expr_dtype(x)) : NULL;
    }
    node_ignore(n, "replaced_value_int64"); /* of data of the other kind */
    node_ignore(n, "imputed_value_int64s");
    node_ignore(n, "imputed_value_floats");
    if (count != 1 && count != build_dim(b, x, expr_rank(x) - 1))
        return node_error(n, E_IMPORT, "%u imputed values for %s", count, type_text(b->c, x->type));
    hit = isnan(was) ? build1(b, "isnan", x, NULL) : build_by(b, "equal", x, was);
    return node_done(n, build_where(b, hit, by, x));
}

/* x [N, F] times `targets` rows of coefficients, plus intercepts. */
static const Expr *linear(Node *n, int64_t targets)
{
    const Build  *b = &n->b;
    const Expr   *x = onnx_data_rows(n), *y;
    const double *w, *base;
    uint32_t      count, more;
    int64_t       F;

    if (!x || !node_numbers(n, "coefficients", &count, &w) ||
        !node_numbers(n, "intercepts", &more, &base))
        return NULL;
    F = build_dim(b, x, 1);
    if (targets < 1 || F < 1 || count / F != targets || count % F || (more && more != targets))
        return node_error(n, E_IMPORT,
                          "%u coefficients and %u intercepts for %lld targets of %lld "
                          "features",
                          count, more, (long long)targets, (long long)F);
    y = build2(b, "nn.dense", x, onnx_floats(b, targets, F, w), NULL);
    return more ? build2(b, "add", y, onnx_floats(b, targets, 0, base), NULL) : y;
}

bool convert_linear_regressor(Node *n)
{
    const char *after;

    return node_choice(n, "post_transform", onnx_post_transforms, &after) &&
           node_done(n, onnx_post_transform(n, after, linear(n, node_int(n, "targets", 1))));
}

/* The class of the highest score; of two classes with one score, which side of 0. */
bool convert_linear_classifier(Node *n)
{
    const Build    *b = &n->b;
    ArgReduceAttrs *top = ATTRS(b, ArgReduceAttrs);
    const char     *after;
    const double   *base;
    const Expr     *s, *at, *labels;
    uint32_t        classes;
    int64_t         count;
    bool            single;

    node_ignore(n, "multi_class"); /* how it was trained */
    if (!(labels = onnx_class_labels(n, "classlabels_ints", &count)) ||
        !node_choice(n, "post_transform", onnx_post_transforms, &after) ||
        !node_numbers(n, "intercepts", &classes, &base))
        return false;
    single = count == 2 && classes == 1;
    if (!(s = linear(n, single ? 1 : count)))
        return false;
    if (single) { /* the other class has the opposite score */
        bool logistic = !strcmp(after, "LOGISTIC");

        if (!logistic && strcmp(after, "NONE"))
            return node_error(n, E_UNSUPPORTED, "post_transform '%s' of one score", after);
        at = build_cast(b, build_by(b, "greater", s, 0), DT_I32);
        at = build_reshape_to(b, at, 1, expr_forms(s).at);
        s = build_concat(b, 2, (const Expr *[]){build1(b, "negative", s, NULL), s}, 1);
        s = logistic ? build1(b, "sigmoid", s, NULL) : s;
    } else {
        top->axis = 1;
        at = build1(b, "argmax", s, top);
        s = onnx_post_transform(n, after, s);
    }
    n->out[1] = s;
    return s && node_done(n, onnx_labelled(n, labels, at));
}

bool convert_feature_vectorizer(Node *n)
{
    const Expr **xs = NEW_ARRAY(n->b.c->arena, const Expr *, n->nin + 1);

    node_ignore(n, "inputdimensions"); /* the inputs have them */
    for (uint32_t i = 0; i < n->nin; i++) {
        if (!node_need_rank(n, i, 1, 2))
            return false;
        xs[i] = build_cast(&n->b, n->in[i], DT_F32);
        if (expr_rank(xs[i]) == 1)
            xs[i] = build_expand_dims(&n->b, xs[i], 0, 1);
    }
    if (!n->nin)
        return node_error(n, E_IMPORT, "nothing to put together");
    return node_done(n, build_concat(&n->b, n->nin, xs, 1));
}
