/* Dense layers, tables, masks, and layers that do nothing when a model is run. */
#include "frontends/keras/keras.h"

#include <string.h>

/* An input that the model's list of inputs does not have. */
bool keras_no_input(KerasNode *n)
{
    return keras_error(n, E_IMPORT, "it is not among the inputs of its model");
}

bool keras_same_value(KerasNode *n)
{
    return keras_done(n, keras_in(n));
}

/* Weights [k, units].  Of an image whose channels lie first it is a convolution by one cell. */
bool keras_dense_layer(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_in(n), *w, *bias = NULL, *y;
    KerasWindow  one = {.dims = 2, .at = {.kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}}};
    bool         image = x && build_is_moved(x) && expr_rank(x) == 4;

    if (!x || !(w = keras_weight_moved(n, "kernel", 2, (int64_t[]){1, 0})) ||
        (keras_has_weight(n, "bias") && !(bias = keras_weight(n, "bias"))))
        return false;
    x = build_cast(b, x, n->dtype);
    if (image) {
        int64_t dims[4] = {build_dim(b, w, 0), build_dim(b, w, 1), 1, 1};

        y = keras_conv(n, build_channels_first(b, x),
                       keras_folded(n, "kernel", build_reshape(b, w, 4, dims)), &one, 1);
        y = y && bias ? build2(b, "nn.bias_add", y, bias, NULL) : y;
        return keras_done(n,
                          build_channels_last(b, keras_activated(n, "activation", "linear", y, 1)));
    }
    y = keras_dense(n, x, w, bias);
    return y && keras_done(n, keras_activated(n, "activation", "linear", y, expr_rank(y) - 1));
}

/* ---- EinsumDense ------------------------------------------------------------------------------------ */

static const char *written_out(const Build *b, const char *equation, uint32_t count,
                               const Expr *const *xs)
{
    const char *arrow = strstr(equation, "->"), *p = equation;
    uint32_t    most = 0, operand = 0;
    char        letters[MAX_RANK + 1] = {0};
    StrBuf      s = strbuf(b->c->arena);

    for (char c = 'A'; c <= 'z' && strlen(letters) < MAX_RANK; c++)
        if ((c <= 'Z' || c >= 'a') && !strchr(equation, c))
            letters[strlen(letters)] = c;
    for (; *p; p++) {
        uint32_t named = 0, n;

        if (strncmp(p, "...", 3) != 0) {
            operand += *p == ',';
            str_addc(&s, *p);
            continue;
        }
        for (const char *q = p; q > equation && q[-1] != ',' && q[-1] != '>'; q--)
            named += q[-1] != ' ' && q[-1] != '.';
        for (const char *q = p + 3; *q && *q != ',' && *q != '-'; q++)
            named += *q != ' ';
        n = arrow && p > arrow                                   ? most
            : operand < count && expr_rank(xs[operand]) >= named ? expr_rank(xs[operand]) - named
                                                                 : 0;
        if (n > strlen(letters))
            return build_error(b, E_UNSUPPORTED, "the equation '%s'", equation);
        most = n > most ? n : most;
        str_add(&s, letters + strlen(letters) - n);
        p += 2;
    }
    return s.at ? s.at : "";
}

static const Expr *product(const Build *b, void *user, const Expr *x, const Expr *y)
{
    (void)b;
    return keras_matmul(user, x, y, false);
}

bool keras_einsum_dense(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_in(n), *xs[2], *y, *bias;
    BuildEinsum  e = {.n = 2, .x = xs, .product = product, .user = n};

    if (!x || !(xs[1] = keras_weight(n, "kernel")) || !(xs[0] = build_cast(b, x, n->dtype)))
        return false;
    if (!(e.equation = written_out(b, keras_text(n, "equation", ""), 2, xs)))
        return false;
    y = build_einsum(b, &e);
    if (y && keras_has_weight(n, "bias")) {
        if (!(bias = keras_weight(n, "bias")))
            return false;
        y = build_add(b, y, bias); /* with ones where the axes are not its own */
    }
    return y && keras_done(n, keras_activated(n, "activation", "linear", y, expr_rank(y) - 1));
}

/* keras.ops.einsum: the operands are arguments of their own. */
bool keras_op_einsum(KerasNode *n)
{
    const Build *b = &n->b;
    uint32_t     count = n->call->n;
    const Expr **xs = NEW_ARRAY(b->c->arena, const Expr *, count + 1);
    BuildEinsum  e = {.n = count, .x = xs, .product = product, .user = n};

    for (uint32_t i = 0; i < count; i++) {
        KerasValue v;

        n->read[i] = true;
        if (!keras_value(n, &n->call->args[i], &v))
            return false;
        xs[i] = v.e;
    }
    e.equation = count ? written_out(b, keras_text(n, "subscripts", ""), count, xs) : NULL;
    return e.equation && keras_done(n, build_einsum(b, &e));
}

/* ---- tables, masks, numbers --------------------------------------------------------------------------- */

/* Rows of a table, negative ones from its end; index 0 is what a mask leaves out. */
bool keras_embedding(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_in(n), *w = x ? keras_weight(n, "embeddings") : NULL, *mask = NULL;
    TakeAttrs   *a = ATTRS(b, TakeAttrs);

    if (!w)
        return false;
    if (expr_rank(w) != 2)
        return keras_error(n, E_IMPORT, "its table is %s", type_text(b->c, w->type));
    if (!dtype_is_int(expr_dtype(x)))
        x = build_cast(b, x, DT_I32);
    if (keras_bool(n, "mask_zero", false))
        mask = build2(b, "not_equal", x, build_scalar(b, x, 0), NULL);
    a->mode = "wrap";
    return keras_done_masked(n, build2(b, "take", w, x, a), mask);
}

/* An Embedding, or with reverse=True the product with its table. */
bool keras_reversible_embedding(KerasNode *n)
{
    const Build    *b = &n->b;
    const KerasArg *reverse = keras_arg(n, 1, "reverse");
    bool            tied = keras_bool(n, "tie_weights", true);
    double          cap = keras_float(n, "logit_soft_cap", 0);
    const char     *type = keras_text(n, "reverse_dtype", NULL);
    const Expr     *x, *w;
    DType           t = n->dtype;

    if (!reverse || !json_is_true(reverse->json))
        return keras_embedding(n);
    x = keras_in(n);
    w = x ? keras_weight(n, tied ? "embeddings" : "reverse_embeddings") : NULL;
    if (!w || !keras_rank(n, x, 2, MAX_RANK))
        return false;
    if (type && !keras_dtype(type, &t))
        return keras_error(n, E_UNSUPPORTED, "reverse_dtype '%s'", type);
    x = keras_matmul(n, build_cast(b, x, t), build_cast(b, w, t), tied);
    if (cap)
        x = build_by(b, "multiply", build1(b, "tanh", build_by(b, "divide", x, cap), NULL), cap);
    return keras_done(n, x);
}

/* Steps of which a cell differs from the value; others become zeros. */
bool keras_masking(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_in(n), *any;
    int64_t      last = -1;

    if (!keras_rank(n, x, 2, MAX_RANK))
        return false;
    any = build2(b, "not_equal", x, build_scalar(b, x, keras_float(n, "mask_value", 0)), NULL);
    last = expr_rank(x) - 1;
    any = build_reduce(b, "any", any, 1, &last, true);
    if (!any)
        return false;
    return keras_done_masked(n, build_mul(b, x, build_cast(b, any, expr_dtype(x))),
                             build_reshape_to(b, any, (uint32_t)last, expr_forms(any).at));
}

/* x * scale + offset: numbers, or lists for the channels. */
bool keras_rescaling(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_in(n);
    KerasArg     scale = {.kind = KERAS_JSON, .json = keras_json(n, "scale")},
             offset = {.kind = KERAS_JSON, .json = keras_json(n, "offset")};
    KerasValue s, o;

    x = x ? build_cast(b, x, n->dtype) : NULL;
    if (x && scale.json) {
        if (!keras_value(n, &scale, &s))
            return false;
        x = build_mul(b, x, build_cast(b, s.e, n->dtype));
    }
    if (x && offset.json && !(json_is_number(offset.json) && json_number_value(offset.json) == 0)) {
        if (!keras_value(n, &offset, &o))
            return false;
        x = build_add(b, x, build_cast(b, o.e, n->dtype));
    }
    return keras_done(n, x);
}
