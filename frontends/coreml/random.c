/* Random numbers: constants by the seed, by frontends/random.c, since the format does not say how
 * they are made; every run has the same. */
#include "frontends/coreml/coreml.h"

#include <string.h>

static bool shape_of(CmlNode *n, const char *name, Ints *out)
{
    const Expr *like = cml_arg(n, "like") ? cml_x(n, "like") : NULL;
    int64_t    *at;
    Dims        d;

    if (like)
        d = expr_forms(like);
    else if (cml_arg(n, "like") || !cml_forms(n, name, &d))
        return false;
    at = NEW_ARRAY(n->b.c->arena, int64_t, d.n + 1);
    for (uint32_t i = 0; i < d.n; i++)
        if (!idx_is_const(d.at[i], &at[i]))
            return cml_error(n, E_UNSUPPORTED, "random numbers for %s cells of a dimension",
                             dim_text(n->b.c, d.at[i]));
    *out = (Ints){d.n, at};
    return true;
}

static Philox philox_of(CmlNode *n)
{
    return philox_new((uint64_t)cml_int(n, "seed", -1), 0);
}

/* What the program says that the result is; of layers floats. */
static DType declared(const CmlNode *n)
{
    const CmlNamed      *out = n->operation && n->nout ? n->operation->out.at[0] : NULL;
    const CmlTensorType *t = out && out->type ? out->type->tensor : NULL;
    DType                type = DT_F32;

    return t && cml_dtype(t->type, &type) ? type : DT_F32;
}

static bool scaled(CmlNode *n, bool flat, double scale, double offset)
{
    const Build *b = &n->b;
    const Expr  *x;
    Ints         shape;

    if (!shape_of(n, n->layer && !cml_arg(n, "shape") ? "output_shape" : "shape", &shape) ||
        !(x = build_random(b, philox_of(n), flat, shape)))
        return false;
    x = build_by(b, "add", build_by(b, "multiply", x, scale), offset);
    return x && cml_done(n, build_cast(b, x, declared(n)));
}

bool cml_random_uniform(CmlNode *n)
{
    const char *low = n->layer ? "min_val" : "low", *high = n->layer ? "max_val" : "high";
    double      from = cml_float(n, low, 0);

    return scaled(n, true, cml_float(n, high, n->layer ? 0 : 1) - from, from);
}

bool cml_random_normal(CmlNode *n)
{
    const char *name = n->layer ? "std_dev" : "stddev";
    double      spread = cml_float(n, name, n->layer ? 0 : 1);

    return scaled(n, false, spread, cml_float(n, "mean", 0));
}

/* 1 so often. */
bool cml_random_bernoulli(CmlNode *n)
{
    const Build *b = &n->b;
    double       prob = cml_float(n, "prob", n->layer ? 0 : 0.5);
    const Expr  *x;
    Ints         shape;

    if (!shape_of(n, n->layer && !cml_arg(n, "shape") ? "output_shape" : "shape", &shape) ||
        !(x = build_random(b, philox_of(n), true, shape)))
        return false;
    x = build_by(b, "less", x, prob);
    return x && cml_done(n, build_cast(b, x, declared(n)));
}

/* x [.., classes]: for each sample the first class up to which the probabilities sum up to more
 * than a random number. */
bool cml_random_categorical(CmlNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = cml_x(n, "x"), *p, *u, *y;
    bool         logits = n->layer ? cml_bool(n, "is_logits", false)
                                   : !strcmp(cml_text(n, "mode", "logits"), "logits");
    int64_t size = cml_int(n, n->layer ? "num_samples" : "size", 1), dims[MAX_RANK], last, axis;
    double  temperature = n->layer ? cml_float(n, "temperature", 1) : 1;
    SoftmaxAttrs *a = ATTRS(b, SoftmaxAttrs);
    uint32_t      rank;

    if (!x)
        return false;
    rank = expr_rank(x);
    if (n->layer)
        (void)cml_float(n, "eps", 0); /* keeps probabilities of 0 from logarithms */
    if (rank < 1 || rank + 1 > MAX_RANK || size < 1 || !(temperature > 0))
        return cml_error(n, E_IMPORT, "%lld samples of %s", (long long)size,
                         type_text(b->c, x->type));
    last = rank - 1, axis = rank;
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i < last ? build_dim(b, x, i) : size;
    p = build_cast(b, x, DT_F32);
    if (!logits && temperature != 1)
        p = build1(b, "log", p, NULL);
    if (temperature != 1)
        p = build_by(b, "multiply", p, 1 / temperature);
    a->axis = last;
    p = logits || temperature != 1 ? build1(b, "nn.softmax", p, a)
                                   : build_div(b, p, build_reduce(b, "sum", p, 1, &last, true));
    p = build_expand_dims(b, build_scan(b, "cumsum", p, last, false, false), last, 1);
    u = build_random(b, philox_of(n), true, (Ints){rank, dims});
    y = u ? build2(b, "less_equal", p, build_expand_dims(b, u, axis, 1), NULL) : NULL;
    y = y ? build_reduce(b, "sum", build_cast(b, y, DT_I32), 1, &axis, false) : NULL;
    y = y ? build_by(b, "minimum", y, (double)(build_dim(b, x, (uint32_t)last) - 1)) : NULL;
    return y && cml_done(n, build_cast(b, y, declared(n)));
}
