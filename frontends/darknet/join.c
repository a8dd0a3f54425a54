/* What takes results of earlier layers. */
#include "frontends/darknet/darknet.h"

#include <math.h>
#include <string.h>

static bool same_places(const DarknetNode *n, const Expr *x, const Expr *y)
{
    return (expr_form(x, 2) == expr_form(y, 2) && expr_form(x, 3) == expr_form(y, 3)) ||
           darknet_error(n, E_IMPORT, "%s and %s are images of different sizes",
                         type_text(n->b.c, x->type), type_text(n->b.c, y->type));
}

/* Channels of several layers, or the part of that number of each. */
bool darknet_route(DarknetNode *n)
{
    const Build *b = &n->b;
    Ints         layers;
    int64_t      groups, part;
    const Expr **xs;

    if (!darknet_ints(n, "layers", &layers) || !darknet_size(n, "groups", 1, &groups) ||
        !darknet_size(n, "group_id", 0, &part))
        return false;
    if (!layers.n || part >= groups)
        return darknet_error(n, E_IMPORT, "part %lld of %lld of %u layers", (long long)part,
                             (long long)groups, layers.n);
    xs = NEW_ARRAY(b->c->arena, const Expr *, layers.n);
    for (uint32_t i = 0; i < layers.n; i++) {
        int64_t channels;

        if (!(xs[i] = darknet_image(n, darknet_layer(n, layers.at[i]))) ||
            !same_places(n, xs[0], xs[i]))
            return false;
        channels = build_dim(b, xs[i], 1);
        if (channels % groups)
            return darknet_error(n, E_IMPORT, "%lld channels in %lld groups", (long long)channels,
                                 (long long)groups);
        if (groups > 1)
            xs[i] = build_slice(b, xs[i], 1, part * (channels / groups),
                                (part + 1) * (channels / groups));
    }
    return darknet_done(n, layers.n == 1 ? xs[0] : build_concat(b, layers.n, xs, 1));
}

/* ---- shortcut ------------------------------------------------------------------------------------- */

/* y with `channels` channels: what is too much is left out, what is missing 0. */
static const Expr *with_channels(const DarknetNode *n, const Expr *y, int64_t channels)
{
    int64_t has = build_dim(&n->b, y, 1);

    if (has == channels)
        return y;
    return build_pad(&n->b, y, (int64_t[]){0, 0, 0, channels - has, 0, 0, 0, 0}, 0, NULL);
}

/* Factors [inputs][count] made to sum up to one over the inputs. */
static bool normalize(const DarknetNode *n, uint32_t inputs, int64_t count, float *w)
{
    const char *how = darknet_text(n, "weights_normalization");
    bool        relu = !strcmp(how, "relu") || !strcmp(how, "avg_relu");

    if (!strcmp(how, "none"))
        return true;
    if (!relu && strcmp(how, "softmax"))
        return darknet_error(n, E_IMPORT, "'weights_normalization' is '%s'", how);
    for (int64_t i = 0; i < count; i++) {
        float most = -INFINITY, sum = 0.0001f;

        for (uint32_t k = 0; k < inputs; k++)
            most = fmaxf(most, w[k * count + i]);
        for (uint32_t k = 0; k < inputs; k++) {
            float *at = &w[k * count + i];

            *at = relu ? fmaxf(*at, 0.001f) : expf(*at - most);
            sum += *at;
        }
        for (uint32_t k = 0; k < inputs; k++)
            w[k * count + i] /= sum;
    }
    return true;
}

/* Sums with factors, learned, for each input or each of its channels. */
bool darknet_shortcut(DarknetNode *n)
{
    const Build *b = &n->b;
    const Expr  *y = darknet_image(n, n->x);
    const char  *type = darknet_text(n, "weights_type");
    int64_t      channels = build_dim(b, y, 1), count = 0;
    float       *w = NULL;
    Ints         from;

    if (!darknet_ints(n, "from", &from))
        return false;
    if (!strcmp(type, "per_feature") || !strcmp(type, "per_layer"))
        count = 1;
    else if (!strcmp(type, "per_channel"))
        count = channels;
    else if (strcmp(type, "none"))
        return darknet_error(n, E_IMPORT, "'weights_type' is '%s'", type);
    if (count && (!(w = (float *)darknet_floats(n, "weights", (from.n + 1) * count)) ||
                  !normalize(n, from.n + 1, count, w)))
        return false;
    for (uint32_t i = 0; i <= from.n; i++) {
        const Expr *x = i ? darknet_image(n, darknet_layer(n, from.at[i - 1])) : y;

        if (!x || !same_places(n, y, x))
            return false;
        x = with_channels(n, x, channels);
        if (w)
            x = build_mul(b, x, build_const(b, DT_F32, 3, (int64_t[]){count, 1, 1}, w + i * count));
        y = i ? build_add(b, y, x) : x;
    }
    return darknet_done(n, darknet_activate(n, darknet_text(n, "activation"), y));
}

/* ---- products ------------------------------------------------------------------------------------- */

/* This layer's x, a number for each channel, or for each place, times another layer. */
bool darknet_scale_channels(DarknetNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = darknet_image(n, n->x), *y;
    bool         places = darknet_int(n, "scale_wh");

    if (!(y = darknet_image(n, darknet_layer(n, darknet_int(n, "from")))))
        return false;
    if (places ? build_dim(b, x, 1) != 1 || !same_places(n, x, y)
               : build_dim(b, x, 1) != build_dim(b, y, 1) || build_dim(b, x, 2) != 1 ||
                     build_dim(b, x, 3) != 1)
        return darknet_error(n, E_IMPORT, "%s cannot scale %s", type_text(b->c, x->type),
                             type_text(b->c, y->type));
    return darknet_done(n, darknet_activate(n, darknet_text(n, "activation"), build_mul(b, y, x)));
}

bool darknet_sam(DarknetNode *n)
{
    const Expr *x = darknet_image(n, n->x);
    const Expr *y = darknet_image(n, darknet_layer(n, darknet_int(n, "from")));

    if (!y || !same_places(n, x, y))
        return false;
    return darknet_done(n,
                        darknet_activate(n, darknet_text(n, "activation"), build_mul(&n->b, x, y)));
}
