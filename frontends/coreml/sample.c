/* Images sampled at computed places. */
#include "frontends/coreml/coreml.h"

#include <math.h>
#include <string.h>

/* How cells between cells and outside of the image are made. */
static bool read_sampling(CmlNode *n, BuildSampling *how)
{
    const char *mode = cml_text(n, "sampling_mode", "bilinear"),
               *edge = cml_text(n, "padding_mode", "constant");

    how->align = cml_bool(n, "align_corners", false);
    how->mode = !strcmp(mode, "bilinear") ? "linear" : mode;
    how->padding = !strcmp(edge, "constant") ? "zeros" : edge;
    if (strcmp(how->mode, "linear") != 0 && strcmp(how->mode, "nearest") != 0)
        return cml_error(n, E_UNSUPPORTED, "sampling_mode '%s'", mode);
    return !strcmp(how->padding, "zeros") || !strcmp(how->padding, "border") ||
           !strcmp(how->padding, "reflection") ||
           cml_error(n, E_UNSUPPORTED, "padding_mode '%s'", edge);
}

/* x and y of `coordinates`, [N, h, w, 2], from -1 to 1. */
static const Expr *from_ends(CmlNode *n, const Expr *x, const Expr *at, const char *mode,
                             bool *align)
{
    const Build *b = &n->b;
    float        scale[2];

    if (!strcmp(mode, "normalized_minus_one_to_one"))
        return at;
    if (!strcmp(mode, "normalized_zero_to_one"))
        return build_by(b, "add", build_by(b, "multiply", at, 2), -1);
    if (strcmp(mode, "unnormalized") != 0)
        return cml_error(n, E_UNSUPPORTED, "coordinates_mode '%s'", mode);
    *align = true; /* cells by their numbers */
    for (uint32_t i = 0; i < 2; i++) {
        int64_t cells = build_dim(b, x, 3 - i);

        if (cells < 2)
            return cml_error(n, E_UNSUPPORTED, "an image of %s", type_text(b->c, x->type));
        scale[i] = 2 / (float)(cells - 1);
    }
    at = build_mul(b, at,
                   build_cast(b, build_const(b, DT_F32, 1, (int64_t[]){2}, scale), expr_dtype(at)));
    return build_by(b, "add", at, -1);
}

static bool sampled(CmlNode *n, const Expr *x, const Expr *at)
{
    const char   *mode = cml_text(n, "coordinates_mode", "");
    double        around = cml_float(n, "padding_value", 0);
    BuildSampling how;

    if (!x || !at || !read_sampling(n, &how))
        return false;
    if (strcmp(how.padding, "zeros") != 0)
        around = 0;
    if (!isfinite(around))
        return cml_error(n, E_UNSUPPORTED, "padding_value %g", around);
    if (expr_rank(x) != 4 || expr_rank(at) != 4 || build_dim(&n->b, at, 3) != 2)
        return cml_error(n, E_IMPORT, "images %s at %s", type_text(n->b.c, x->type),
                         type_text(n->b.c, at->type));
    at = build_cast(&n->b, at, expr_dtype(x));
    at = at ? from_ends(n, x, at, mode, &how.align) : NULL;
    if (!at || around == 0)
        return at && cml_done(n, build_grid_sample(&n->b, x, at, &how));
    x = build_by(&n->b, "add", x, -around); /* so that zeros stand for it */
    x = x ? build_grid_sample(&n->b, x, at, &how) : NULL;
    return cml_done(n, x ? build_by(&n->b, "add", x, around) : NULL);
}

bool cml_resample(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");

    return x && sampled(n, x, cml_x(n, "coordinates"));
}

/* The middles of `cells` from -1 to 1, or of the outer ones -1 and 1. */
static const Expr *line(CmlNode *n, DType t, int64_t cells, bool align, uint32_t axis)
{
    int64_t dims[3] = {1, 1, 1};
    float  *at = NEW_ARRAY(n->b.c->arena, float, (size_t)cells + 1);

    for (int64_t i = 0; i < cells; i++)
        at[i] = !align      ? (float)(2 * i + 1) / (float)cells - 1
                : cells > 1 ? 2 * (float)i / (float)(cells - 1) - 1
                            : -1;
    dims[axis] = cells;
    return build_cast(&n->b, build_const(&n->b, DT_F32, 3, dims, at), t);
}

/* At the places of an image of this size, each times a matrix [2, 3]. */
bool cml_affine(CmlNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = cml_x(n, "x"), *m = x ? cml_x(n, "transform_matrix") : NULL, *h, *w, *at[2];
    int64_t      size[2] = {cml_int(n, "output_height", 0), cml_int(n, "output_width", 0)}, N;
    bool         align = cml_bool(n, "align_corners", false);

    if (!m)
        return false;
    if (expr_rank(x) != 4 || expr_rank(m) != 2 || build_dim(b, m, 1) != 6 || size[0] < 1 ||
        size[1] < 1 || size[0] > 1 << 15 || size[1] > 1 << 15)
        return cml_error(n, E_IMPORT, "matrices %s for %lld by %lld cells of %s",
                         type_text(b->c, m->type), (long long)size[0], (long long)size[1],
                         type_text(b->c, x->type));
    if (strcmp(cml_text(n, "coordinates_mode", ""), "normalized_minus_one_to_one") != 0)
        return cml_error(n, E_UNSUPPORTED, "coordinates_mode '%s'",
                         cml_text(n, "coordinates_mode", ""));
    N = build_dim(b, x, 0);
    if (build_dim(b, m, 0) == 1 && N != 1)
        m = build_broadcast(b, m, 2, (int64_t[]){N, 6});
    h = line(n, expr_dtype(x), size[0], align, 1);
    w = line(n, expr_dtype(x), size[1], align, 2);
    for (int64_t i = 0; i < 2; i++) {
        const Expr *part[3];

        for (int64_t k = 0; k < 3; k++)
            part[k] = build_expand_dims(b, build_slice(b, m, 1, 3 * i + k, 3 * i + k + 1), 2, 1);
        at[i] = build_add(b, build_mul(b, part[0], w), build_mul(b, part[1], h));
        at[i] = build_expand_dims(b, build_add(b, at[i], part[2]), 3, 1);
    }
    return sampled(n, x, build_concat(b, 2, at, 3));
}
