/* Images of other sizes. */
#include "frontends/coreml/coreml.h"

#include <math.h>
#include <string.h>

static const Expr *resized(const Build *b, const Expr *x, const char *method, CmlGrid grid,
                           Dims size)
{
    static const char *const modes[] = {"asymmetric", "align_corners", "align_corners",
                                        "half_pixel"};
    Resize2dAttrs           *a = ATTRS(b, Resize2dAttrs);

    a->size = size;
    a->method = method;
    a->coordinate_transformation_mode = modes[grid];
    a->rounding_method = "floor";
    return build1(b, "image.resize2d", x, a);
}

static double place(CmlGrid grid, int64_t i, int64_t in, int64_t out)
{
    double x = (double)in, n = (double)out, at = (double)i, v = 0;

    switch (grid) {
    case CML_GRID_ASYMMETRIC: v = at * x / n; break;
    case CML_GRID_ALIGN: v = out > 1 ? at * (x - 1) / (n - 1) : 0; break;
    case CML_GRID_ALIGN_MIDDLE: v = out > 1 ? at * (x - 1) / (n - 1) : (x - 1) / 2; break;
    case CML_GRID_HALF: v = (at + 0.5) * x / n - 0.5; break;
    case CML_GRID_OFFSET: v = (at + 0.5) * (in > 1 ? x - 1 : 1) / n; break;
    }
    return v < 0 ? 0 : v > x - 1 ? x - 1 : v;
}

/* [out, in]: how much of each cell is in each of the result. */
static const Expr *weights(CmlNode *n, DType t, CmlGrid grid, int64_t in, int64_t out)
{
    int64_t dims[2] = {out, in}, cells;
    float  *w;

    if (!checked_mul(in, out, &cells) || cells > 1 << 24)
        return cml_error(n, E_UNSUPPORTED, "%lld cells from %lld", (long long)out, (long long)in);
    w = NEW_ARRAY(n->b.c->arena, float, (size_t)cells + 1);
    for (int64_t i = 0; i < out; i++) {
        double  at = place(grid, i, in, out);
        int64_t lo = (int64_t)at;

        w[i * in + lo] += (float)(1 - (at - (double)lo));
        if (lo + 1 < in)
            w[i * in + lo + 1] += (float)(at - (double)lo);
    }
    return build_cast(&n->b, build_const(&n->b, DT_F32, 2, dims, w), t);
}

/* By products with matrices, for grids that resize2d does not have. */
static const Expr *by_products(CmlNode *n, const Expr *x, CmlGrid grid, const int64_t *size)
{
    const Build *b = &n->b;
    const Expr  *rows, *columns;
    int64_t      h = build_dim(b, x, 2), w = build_dim(b, x, 3);

    rows = weights(n, expr_dtype(x), grid, h, size[0]);
    columns = rows ? weights(n, expr_dtype(x), grid, w, size[1]) : NULL;
    x = cml_matmul(n, x, columns, false, true); /* [N, C, h, W] */
    x = x ? build_transpose(b, x, 4, (int64_t[]){0, 1, 3, 2}) : NULL;
    x = cml_matmul(n, x, rows, false, true);
    return x ? build_transpose(b, x, 4, (int64_t[]){0, 1, 3, 2}) : NULL;
}

static bool linear(CmlNode *n, const Expr *x, CmlGrid grid, const int64_t *size)
{
    if (!x)
        return false;
    if (size[0] < 1 || size[1] < 1 || size[0] > INT32_MAX || size[1] > INT32_MAX)
        return cml_error(n, E_IMPORT, "a size of %lld by %lld", (long long)size[0],
                         (long long)size[1]);
    if (grid == CML_GRID_OFFSET ||
        (grid == CML_GRID_ALIGN_MIDDLE && (size[0] == 1 || size[1] == 1)))
        return cml_done_image(n, by_products(n, x, grid, size));
    return cml_done_image(n, resized(&n->b, x, "linear", grid, dims_of_i64(n->b.c, size, 2)));
}

/* factor times the rows and columns, rounded down. */
static bool scaled(CmlNode *n, const Expr *x, const char *method, CmlGrid grid,
                   const double *factor)
{
    Arith     *A = n->b.c->arith;
    const Idx *size[2];

    if (!x)
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        const Idx *d = expr_form(x, 2 + i);
        int64_t    v;

        if (!(factor[i] > 0 && factor[i] < 1 << 15))
            return cml_error(n, E_IMPORT, "factor %g", factor[i]);
        if (factor[i] == floor(factor[i]))
            size[i] = idx_mulc(A, d, (int64_t)factor[i]);
        else if (idx_is_const(d, &v) && floor((double)v * factor[i]) >= 1)
            size[i] = idx_const(A, (int64_t)floor((double)v * factor[i] + 1e-6));
        else
            return cml_error(n, E_UNSUPPORTED, "%g times %s", factor[i],
                             type_text(n->b.c, x->type));
    }
    return cml_done_image(n, resized(&n->b, x, method, grid, dims_dup(n->b.c, size, 2)));
}

/* ---- layers ------------------------------------------------------------------------------------------ */

static bool factors(CmlNode *n, double *out)
{
    Bytes fractions = cml_read_floats(&n->layer->message, "fractional_scaling_factor");
    Ints  v;

    if (!cml_ints(n, "scaling_factor", &v))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        float f;

        out[i] = v.n == 2 ? (double)v.at[i] : 1;
        if (fractions.n == 2 * sizeof f) {
            memcpy(&f, fractions.at + i * sizeof f, sizeof f);
            out[i] = (double)f;
        }
    }
    return true;
}

bool cml_layer_upsample(CmlNode *n)
{
    static const CmlGrid grids[] = {CML_GRID_ASYMMETRIC, CML_GRID_ALIGN, CML_GRID_HALF};
    int64_t              mode = cml_int(n, "mode", 0), how = cml_int(n, "linear_upsample_mode", 0);
    const Expr          *x = cml_image(n, "x", 2);
    double               factor[2];

    if (mode < 0 || mode > 1 || how < 0 || how > 2)
        return cml_error(n, E_UNSUPPORTED, "mode %lld", (long long)(mode > 1 ? mode : how));
    return factors(n, factor) && scaled(n, x, mode ? "linear" : "nearest_neighbor",
                                        mode ? grids[how] : CML_GRID_ASYMMETRIC, factor);
}

bool cml_grid(CmlNode *n, CmlGrid *grid)
{
    static const CmlGrid grids[] = {CML_GRID_ALIGN, CML_GRID_ALIGN_MIDDLE, CML_GRID_ASYMMETRIC,
                                    CML_GRID_OFFSET};
    CmlMessage           m;
    int64_t mode = cml_message(n, "mode", &m) ? cml_read_int(&m, "sampling_method") : 0;

    if (mode < 0 || mode >= (int64_t)COUNT(grids))
        return cml_error(n, E_UNSUPPORTED, "sampling method %lld", (long long)mode);
    *grid = grids[mode];
    return true;
}

bool cml_layer_resize(CmlNode *n)
{
    int64_t size[2];
    CmlGrid grid;

    return cml_numbers(n, "target_size", 2, 1, 1, size) && cml_grid(n, &grid) &&
           linear(n, cml_image(n, "x", 2), grid, size);
}

/* ---- operators --------------------------------------------------------------------------------------- */

bool cml_grid_named(CmlNode *n, const char *fallback, CmlGrid *grid)
{
    static const struct {
        const char *name;
        CmlGrid     grid;
    } grids[] = {{"DEFAULT", CML_GRID_ASYMMETRIC},
                 {"STRICT_ALIGN_CORNERS", CML_GRID_ALIGN},
                 {"ALIGN_CORNERS", CML_GRID_ALIGN_MIDDLE},
                 {"UNALIGN_CORNERS", CML_GRID_HALF},
                 {"OFFSET_CORNERS", CML_GRID_OFFSET}};
    const char *name = cml_text(n, "sampling_mode", fallback);

    for (uint32_t i = 0; i < COUNT(grids); i++)
        if (!strcmp(grids[i].name, name)) {
            *grid = grids[i].grid;
            return true;
        }
    return cml_error(n, E_UNSUPPORTED, "sampling_mode '%s'", name);
}

static bool target(CmlNode *n, const Expr *x, int64_t *size)
{
    static const char *const names[] = {"target_size_height", "target_size_width"};

    for (uint32_t i = 0; x && i < 2; i++)
        size[i] = cml_has(n, names[i]) ? cml_int(n, names[i], 1) : build_dim(&n->b, x, 2 + i);
    return x != NULL;
}

bool cml_resize_bilinear(CmlNode *n)
{
    const Expr *x = cml_image(n, "x", 2);
    int64_t     size[2];
    CmlGrid     grid;

    return target(n, x, size) && cml_grid_named(n, "DEFAULT", &grid) && linear(n, x, grid, size);
}

bool cml_resize_nearest(CmlNode *n)
{
    const Expr *x = cml_image(n, "x", 2);
    int64_t     size[2];

    if (!target(n, x, size))
        return false;
    if (size[0] < 1 || size[1] < 1 || size[0] > INT32_MAX || size[1] > INT32_MAX)
        return cml_error(n, E_IMPORT, "a size of %lld by %lld", (long long)size[0],
                         (long long)size[1]);
    return cml_done_image(n, resized(&n->b, x, "nearest_neighbor", CML_GRID_ASYMMETRIC,
                                     dims_of_i64(n->b.c, size, 2)));
}

/* Of the last dimensions, to sizes that are given; 0: as it is. */
bool cml_resize(CmlNode *n)
{
    const Expr *x = cml_image(n, "x", 2);
    const char *method = cml_text(n, "interpolation_mode", "LINEAR");
    int64_t     dims = cml_int(n, "resized_dims", 2), size[2];
    CmlGrid     grid;
    Dims        d;

    if (!x || !cml_forms(n, "shape", &d) || !cml_grid_named(n, "DEFAULT", &grid))
        return false;
    if (dims < 0 || dims > 2 || d.n < dims)
        return cml_error(n, E_UNSUPPORTED, "%lld dimensions to %u sizes", (long long)dims, d.n);
    for (int64_t i = 0; i < 2; i++) {
        const Idx *to = i < 2 - dims ? NULL : d.at[d.n - 2 + (uint32_t)i];

        size[i] = 0;
        if (to && !idx_is_const(to, &size[i]))
            return cml_error(n, E_UNSUPPORTED, "a size of %s", dim_text(n->b.c, to));
        if (size[i] == 0)
            size[i] = build_dim(&n->b, x, 2 + (uint32_t)i);
    }
    if (!strcmp(method, "LINEAR"))
        return linear(n, x, grid, size);
    if (strcmp(method, "NEAREST_NEIGHBOR") != 0 || grid == CML_GRID_OFFSET)
        return cml_error(n, E_UNSUPPORTED, "interpolation_mode '%s'", method);
    return cml_done_image(
        n, resized(&n->b, x, "nearest_neighbor", grid, dims_of_i64(n->b.c, size, 2)));
}

static bool upsampled(CmlNode *n, const char *method, CmlGrid grid)
{
    double factor[2] = {cml_float(n, "scale_factor_height", 1),
                        cml_float(n, "scale_factor_width", 1)};

    return scaled(n, cml_image(n, "x", 2), method, grid, factor);
}

bool cml_upsample_nearest(CmlNode *n)
{
    return upsampled(n, "nearest_neighbor", CML_GRID_ASYMMETRIC);
}

bool cml_upsample_bilinear(CmlNode *n)
{
    bool align = cml_bool(n, "align_corners", true);
    bool half = cml_bool(n, "half_pixel_centers", !align);

    return upsampled(n, "linear",
                     align  ? CML_GRID_ALIGN
                     : half ? CML_GRID_HALF
                            : CML_GRID_ASYMMETRIC);
}
