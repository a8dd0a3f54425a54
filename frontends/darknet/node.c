/* What converters ask of a layer: its keys, results of other layers, activations, states. */
#include "frontends/darknet/darknet.h"

#include <stdlib.h>
#include <string.h>

/* ---- keys ----------------------------------------------------------------------------------------- */

static const DarknetPair *given(const DarknetNode *n, const char *key)
{
    const DarknetPair *found = NULL;

    for (uint32_t i = 0; i < n->s->npairs && !found; i++) /* the first one counts */
        if (!strcmp(n->s->pairs[i].key, key))
            found = &n->s->pairs[i];
    return found;
}

bool darknet_has(const DarknetNode *n, const char *key)
{
    return given(n, key) != NULL;
}

const char *darknet_text(const DarknetNode *n, const char *key)
{
    const DarknetPair *p = given(n, key);
    const DarknetKey  *k = darknet_key(n->s->row ? n->s->row->name : "net", key);

    if (!k)
        BUG("[%s] has no key '%s'", n->s->name, key);
    return p ? p->value : k->fallback;
}

int64_t darknet_int(const DarknetNode *n, const char *key)
{
    int64_t v = 0;

    darknet_parse_int(darknet_text(n, key), &v);
    return v;
}

double darknet_float(const DarknetNode *n, const char *key)
{
    double v = 0;

    darknet_parse_float(darknet_text(n, key), &v);
    return v;
}

bool darknet_size(const DarknetNode *n, const char *key, int64_t least, int64_t *out)
{
    *out = darknet_int(n, key);
    return (*out >= least && *out <= INT32_MAX) ||
           darknet_error(n, E_IMPORT, "'%s' is %lld", key, (long long)*out);
}

uint32_t darknet_input(const DarknetNode *net, InputDim dims[4])
{
    static const char *const keys[] = {"channels", "height", "width"};
    bool                     picture = true;

    dims[0] = (InputDim){1, NULL};
    for (uint32_t i = 0; i < COUNT(keys); i++) {
        dims[1 + i] = (InputDim){darknet_int(net, keys[i]), NULL};
        picture &= dims[1 + i].value != 0;
    }
    if (!picture)
        dims[1].value = darknet_int(net, "inputs");
    return picture ? 4 : 2;
}

bool darknet_float_list(const DarknetNode *n, const char *key, uint32_t *count, double **out)
{
    const char *at = darknet_text(n, key);
    uint32_t    most = 1;

    for (const char *p = at; *p; p++)
        most += *p == ',';
    *out = NEW_ARRAY(n->b.c->arena, double, most);
    for (*count = 0; *at; at += *at == ',') {
        char *end;

        (*out)[*count] = strtod(at, &end);
        if (end == at || (*end && *end != ',') || (*out)[*count] - (*out)[*count] != 0)
            return darknet_error(n, E_IMPORT, "'%s' cannot be '%s'", key, darknet_text(n, key));
        ++*count;
        at = end;
    }
    return true;
}

bool darknet_ints(const DarknetNode *n, const char *key, Ints *out)
{
    uint32_t count;
    double  *v;
    int64_t *at;

    if (!darknet_float_list(n, key, &count, &v))
        return false;
    at = NEW_ARRAY(n->b.c->arena, int64_t, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        if (!(v[i] > -2e9 && v[i] < 2e9) || v[i] != (double)(int64_t)v[i])
            return darknet_error(n, E_IMPORT, "'%s' cannot be '%s'", key, darknet_text(n, key));
        at[i] = (int64_t)v[i];
    }
    *out = (Ints){count, at};
    return true;
}

const Expr *darknet_layer(const DarknetNode *n, int64_t layer)
{
    int64_t at = layer < 0 ? (int64_t)n->index + layer : layer;

    if (at < 0 || at >= (int64_t)n->index)
        return darknet_error(n, E_IMPORT, "layer %lld is not one before it", (long long)layer);
    return n->im->out[at];
}

/* ---- values --------------------------------------------------------------------------------------- */

bool darknet_done(DarknetNode *n, const Expr *y)
{
    n->y = y;
    return y != NULL;
}

const Expr *darknet_image(const DarknetNode *n, const Expr *x)
{
    const Idx *one = idx_const(n->b.c->arith, 1);

    if (!x || expr_rank(x) == 4)
        return x;
    return build_reshape_to(&n->b, x, 4,
                            (const Idx *[]){expr_form(x, 0), expr_form(x, 1), one, one});
}

const Expr *darknet_vector(const DarknetNode *n, const Expr *x)
{
    return !x || expr_rank(x) == 2 ? x : build_matrix(&n->b, x, 1);
}

void darknet_tensor(DarknetNode *n, const char *role, const Expr *value)
{
    result_add(n->b.c, &n->im->tensors,
               intern_printf(n->b.c->strings, "layer%u_%s", n->index, role), value, n->b.loc);
}

const Expr *darknet_state(DarknetNode *n, const char *role, uint32_t rank, const Idx *const *dims)
{
    Ctx        *c = n->b.c;
    const char *name = intern_printf(c->strings, "layer%u_%s", n->index, role);
    const Type *type, *want = type_tensor(c, DT_F32, rank, dims);
    InputDim    in[MAX_RANK];
    const Expr *x;

    for (uint32_t i = 0; i < rank; i++)
        if (!idx_is_const(dims[i], &in[i].value))
            in[i] = (InputDim){-1, dim_text(c, dims[i])};
        else
            in[i].name = NULL;
    vec_push(c->arena, &n->im->params.names, name);
    if (!(type = shapes_input(&n->im->shapes, n->b.loc, name, DT_F32, rank, in)))
        return NULL;
    if (type != want)
        return darknet_error(n, E_DIM, "its state '%s' is %s, not %s", name, type_text(c, want),
                             type_text(c, type));
    x = expr_var(c, name, type, n->b.loc);
    vec_push(c->arena, &n->im->params.at, x);
    return x;
}

void darknet_state_next(DarknetNode *n, const char *role, const Expr *value)
{
    result_add(n->b.c, &n->im->states,
               intern_printf(n->b.c->strings, "layer%u_%s_out", n->index, role), value, n->b.loc);
}

/* ---- activations ---------------------------------------------------------------------------------- */

typedef const Expr *Activation(const Build *b, const Expr *x);

static const Expr *linear(const Build *b, const Expr *x)
{
    (void)b;
    return x;
}

static const Expr *logistic(const Build *b, const Expr *x)
{
    return build1(b, "sigmoid", x, NULL);
}

static const Expr *loggy(const Build *b, const Expr *x)
{
    return build_by(b, "add", build_by(b, "multiply", logistic(b, x), 2), -1);
}

static const Expr *relu(const Build *b, const Expr *x)
{
    return build1(b, "nn.relu", x, NULL);
}

static const Expr *relu6(const Build *b, const Expr *x)
{
    return build_clip(b, x, 0, 6);
}

static const Expr *elu(const Build *b, const Expr *x)
{
    return build_elu(b, x, 1, 1);
}

static const Expr *selu(const Build *b, const Expr *x)
{
    return build_selu(b, x, 1.6732, 1.0507);
}

static const Expr *leaky_by(const Build *b, const Expr *x, double slope)
{
    LeakyReluAttrs *a = ATTRS(b, LeakyReluAttrs);

    a->alpha = slope;
    return build1(b, "nn.leaky_relu", x, a);
}

static const Expr *leaky(const Build *b, const Expr *x)
{
    return leaky_by(b, x, 0.1);
}

static const Expr *relie(const Build *b, const Expr *x)
{
    return leaky_by(b, x, 0.01);
}

static const Expr *ramp(const Build *b, const Expr *x)
{
    return build_add(b, relu(b, x), build_by(b, "multiply", x, 0.1));
}

static const Expr *tanh_of(const Build *b, const Expr *x)
{
    return build1(b, "tanh", x, NULL);
}

static const Expr *gelu(const Build *b, const Expr *x)
{
    return build_gelu(b, x, true);
}

static const Expr *swish(const Build *b, const Expr *x)
{
    return build_swish(b, x, 1);
}

/* x, x * x / 2 + x between -2 and 0, 0. */
static const Expr *hard_mish(const Build *b, const Expr *x)
{
    const Expr *low = build_clip(b, x, -2, 0);

    low = build_add(b, build_by(b, "multiply", build_mul(b, low, low), 0.5), low);
    return build_where(b, build_by(b, "greater", x, 0), x, low);
}

/* Below `lo` a line of a small slope, above `hi` another one. */
static const Expr *with_tails(const Build *b, const Expr *x, const Expr *y, double lo, double hi,
                              double slope)
{
    const Expr *above =
        build_by(b, "add", build_by(b, "multiply", build_by(b, "add", x, -hi), slope), 1);

    y = build_where(b, build_by(b, "greater", x, hi), above, y);
    return build_where(b, build_by(b, "less", x, lo),
                       build_by(b, "multiply", build_by(b, "add", x, -lo), slope), y);
}

static const Expr *plse(const Build *b, const Expr *x)
{
    return with_tails(b, x, build_by(b, "add", build_by(b, "multiply", x, 0.125), 0.5), -4, 4,
                      0.01);
}

static const Expr *lhtan(const Build *b, const Expr *x)
{
    return with_tails(b, x, x, 0, 1, 0.001);
}

static const Expr *hardtan(const Build *b, const Expr *x)
{
    return build_clip(b, x, -1, 1);
}

/* Flat from each even number, up from each odd one. */
static const Expr *stair(const Build *b, const Expr *x)
{
    const Expr *half = build1(b, "floor", build_by(b, "multiply", x, 0.5), NULL);
    const Expr *whole = build1(b, "floor", x, NULL);
    const Expr *even = build2(b, "equal", whole, build_by(b, "multiply", half, 2), NULL);

    return build_where(b, even, half, build_add(b, build_sub(b, x, whole), half));
}

#define CHANNELS 1, (int64_t[]){1}
#define SOME 0.0001 /* in the sums over channels */

static const Expr *normalize_channels(const Build *b, const Expr *x)
{
    const Expr *y = relu(b, x);

    return build_div(b, y, build_by(b, "add", build_reduce(b, "sum", y, CHANNELS, true), SOME));
}

static const Expr *softmax_of(const Build *b, const Expr *x)
{
    const Expr *e = build1(b, "exp", x, NULL);

    return build_div(b, e, build_by(b, "add", build_reduce(b, "sum", e, CHANNELS, true), SOME));
}

static const Expr *normalize_channels_softmax(const Build *b, const Expr *x)
{
    return softmax_of(b, x);
}

static const Expr *normalize_channels_softmax_maxval(const Build *b, const Expr *x)
{
    return softmax_of(b, build_sub(b, x, build_reduce(b, "max", x, CHANNELS, true)));
}

static const struct {
    const char *name;
    Activation *of;
} activations[] = {
    {"linear", linear},
    {"logistic", logistic},
    {"loggy", loggy},
    {"relu", relu},
    {"relu6", relu6},
    {"elu", elu},
    {"selu", selu},
    {"gelu", gelu},
    {"relie", relie},
    {"ramp", ramp},
    {"leaky", leaky},
    {"revleaky", leaky},
    {"tanh", tanh_of},
    {"plse", plse},
    {"stair", stair},
    {"hardtan", hardtan},
    {"lhtan", lhtan},
    {"swish", swish},
    {"mish", build_mish},
    {"hard_mish", hard_mish},
    {"normalize_channels", normalize_channels},
    {"normalize_channels_softmax", normalize_channels_softmax},
    {"normalize_channels_softmax_maxval", normalize_channels_softmax_maxval},
};

const Expr *darknet_activate(const DarknetNode *n, const char *name, const Expr *x)
{
    const char *names[COUNT(activations)], *near;

    for (uint32_t i = 0; i < COUNT(activations); i++) {
        names[i] = activations[i].name;
        if (!strcmp(name, names[i]))
            return x ? activations[i].of(&n->b, x) : NULL;
    }
    darknet_error(n, E_UNSUPPORTED, "activation '%s'", name);
    if ((near = str_closest(name, names, COUNT(names))))
        diag_hint(n->b.c->diags, "did you mean '%s'?", near);
    return NULL;
}
