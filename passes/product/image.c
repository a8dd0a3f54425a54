/* Inputs that take pictures: bytes in the order of a decoder, instead of normalised floats.
 *
 *     model's value = (picture * scale - mean[c]) / std[c]      c: the model's channel
 *
 * computed as (float(picture) - mean[c] / scale) * (scale / std[c]): nothing cancels, and with
 * neither scale nor deviation it is one exact subtraction.  Transposition, cast and arithmetic are
 * injective calls, which fuse_ops makes one kernel, together with the layout that the first
 * convolution wants and its padding. */
#include "passes/graph/graph.h"
#include "passes/product/product.h"

#include <string.h>

/* Letters n, c, h, w, each at most once, as many as the tensor has dimensions; c, h and w are
 * there. */
static bool valid_layout(const char *layout, uint32_t ndim)
{
    if (strlen(layout) != ndim || strspn(layout, "NCHW") != ndim || !strchr(layout, 'C'))
        return false;
    for (uint32_t i = 0; i < ndim; i++)
        if (strchr(layout + i + 1, layout[i]))
            return false;
    return true;
}

static bool pictures(int64_t channels)
{
    return channels == 1 || channels == 3 || channels == 4;
}

/* Where the channels are, from what pictures have: NULL if that does not tell. */
static const char *guess_layout(const Type *t)
{
    int64_t first = 0, last = 0;
    bool    batch = t->n == 4;

    if (t->n != 3 && t->n != 4)
        return NULL;
    type_dim(t, t->n - 3, &first);
    type_dim(t, t->n - 1, &last);
    if (pictures(first) == pictures(last))
        return NULL;
    return pictures(first) ? batch ? "NCHW" : "CHW" : batch ? "NHWC" : "HWC";
}

/* The same layout without what the model has no axis for: NHWC for CHW is HWC. */
static const char *fit_layout(Ctx *c, const char *layout, const char *model)
{
    char     out[8];
    uint32_t n = 0;

    for (uint32_t i = 0; layout[i] && n < sizeof out - 1; i++)
        if (layout[i] != 'N' || strchr(model, 'N'))
            out[n++] = layout[i];
    return intern_n(c->strings, out, n);
}

/* One number for each channel, or one for all; along the model's channel axis. */
static const Expr *along(Product *p, uint32_t n, const double *v, int64_t channels, uint32_t after)
{
    Ctx    *c = p->c;
    int64_t dims[4] = {n == 1 ? 1 : channels, 1, 1, 1};
    float  *data = arena_alloc(c->arena, sizeof(float) * (n ? n : 1));

    if (n == 1)
        return expr_scalar(c, DT_F32, v[0]);
    for (uint32_t i = 0; i < n; i++)
        data[i] = (float)v[i];
    return expr_const(c,
                      const_new(c, NULL, type_tensor_i64(c, DT_F32, after + 1, dims),
                                (Bytes){(const uint8_t *)data, n * sizeof(float)}),
                      p->loc);
}

static const Expr *normalise(Product *p, const ProductImage *im, const Expr *x, int64_t channels,
                             uint32_t after)
{
    Ctx     *c = p->c;
    double   scale = im->scale ? im->scale : 1;
    uint32_t n = im->nstd > 1 ? im->nstd : 1;
    double  *mean = NEW_ARRAY(c->arena, double, im->nmean + 1);
    double  *factor = NEW_ARRAY(c->arena, double, n);
    bool     moves = false, grows = false;

    for (uint32_t i = 0; i < im->nmean; i++) {
        mean[i] = im->mean[i] / scale;
        moves = moves || mean[i] != 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        factor[i] = im->nstd ? scale / im->std[i] : scale;
        grows = grows || factor[i] != 1;
    }
    if (moves)
        x = make2(c, "subtract", x, along(p, im->nmean, mean, channels, after), NULL, p->loc);
    if (grows)
        x = make2(c, "multiply", x, along(p, n, factor, channels, after), NULL, p->loc);
    return x;
}

static const Expr *cast_to(Product *p, const Expr *x, DType t)
{
    CastAttrs *a = ATTRS_NEW(p->c, CastAttrs);

    if (!x || dtype_eq(x->type->dtype, t))
        return x;
    a->dtype = t;
    return make1(p->c, "cast", x, a, p->loc);
}

static bool find_input(Product *p, const ProductImage *im, uint32_t *at)
{
    const char **names = NEW_ARRAY(p->c->arena, const char *, p->nparams + 1);
    const Expr  *f = module_func(p->m, "main");

    for (uint32_t i = 0; i < p->nparams; i++) {
        names[i] = func_param(f, i)->u.var.name;
        if (im->input ? !strcmp(names[i], im->input) : p->nparams == 1) {
            *at = i;
            return p->params[i] == func_param(f, i) ||
                   error_at(p->c, E_USAGE, NO_LOC, "input '%s' takes pictures already", names[i]);
        }
    }
    if (im->input)
        return product_unknown(p, "input", im->input, p->nparams, names);
    return error_at(p->c, E_USAGE, NO_LOC,
                    "the model has %u inputs: say which one takes pictures, such as '%s:nhwc'",
                    p->nparams, p->nparams ? names[0] : "data");
}

static bool check_numbers(Product *p, const char *name, const ProductImage *im, int64_t channels)
{
    const struct {
        const char *what;
        uint32_t    n;
    } lists[] = {{"mean", im->nmean}, {"std", im->nstd}};

    for (uint32_t i = 0; i < COUNT(lists); i++)
        if (lists[i].n > 1 && lists[i].n != channels)
            return error_at(p->c, E_DIM, p->loc, "input '%s' has %lld channels, its %s has %u",
                            name, (long long)channels, lists[i].what, lists[i].n);
    for (uint32_t i = 0; i < im->nstd; i++)
        if (!(im->std[i] > 0))
            return error_at(p->c, E_USAGE, NO_LOC,
                            "a standard deviation of input '%s' is not above 0", name);
    if (im->swap && channels != 3)
        return error_at(p->c, E_DIM, p->loc, "input '%s' has %lld channels: only 3 are RGB or BGR",
                        name, (long long)channels);
    return true;
}

bool product_image(Product *p, const ProductImage *im)
{
    Ctx            *c = p->c;
    TransposeAttrs *ta = ATTRS_NEW(c, TransposeAttrs);
    const char     *model, *layout, *name;
    const Type     *t;
    const Expr     *x;
    int64_t         dims[4], axes[4], channels;
    uint32_t        at = 0, axis;
    bool            moves = false;

    if (!find_input(p, im, &at))
        return false;
    name = p->params[at]->u.var.name;
    t = p->params[at]->type;
    if (!expr_is_tensor(p->params[at]) || !dtype_is_float(t->dtype) || t->n < 3 || t->n > 4)
        return error_at(c, E_DIM, p->loc, "input '%s' takes no pictures: it is %s", name,
                        type_text(c, t));
    model = im->model_layout ? im->model_layout : guess_layout(t);
    if (!model) {
        error_at(c, E_DIM, p->loc,
                 "which axis of input '%s' holds the channels cannot be told from %s", name,
                 type_text(c, t));
        diag_hint(c->diags, "say it: model=nchw or model=nhwc");
        return false;
    }
    layout = fit_layout(c, im->layout ? im->layout : "NHWC", model);
    if (!valid_layout(model, t->n) || !valid_layout(layout, t->n) ||
        strspn(layout, model) != strlen(layout))
        return error_at(c, E_USAGE, NO_LOC,
                        "a picture of layout '%s' does not fit '%s' of input '%s'", layout, model,
                        name);
    axis = (uint32_t)(strchr(model, 'C') - model);
    type_dim(t, axis, &channels);
    if (!check_numbers(p, name, im, channels))
        return false;
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t from = (uint32_t)(strchr(layout, model[i]) - layout);

        axes[i] = from;
        moves = moves || from != i;
        type_dim(t, i, &dims[from]);
    }
    x = expr_var(c, name, type_tensor_i64(c, im->dtype.bits ? im->dtype : DT_U8, t->n, dims),
                 p->loc);
    p->layouts[at] = layout;
    if (moves) {
        ta->axes = ints_dup(c, axes, t->n);
        x = make1(c, "transpose", x, ta, p->loc);
    }
    if (im->swap) {
        ReverseAttrs *ra = ATTRS_NEW(c, ReverseAttrs);

        ra->axis = axis;
        x = make1(c, "reverse", x, ra, p->loc);
    }
    x = cast_to(p, x, DT_F32);
    x = normalise(p, im, x, channels, t->n - 1 - axis);
    p->params[at] = cast_to(p, x, t->dtype);
    return p->params[at] != NULL;
}
