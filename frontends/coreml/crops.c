/* Boxes of images, each as an image of one size.
 *
 * Boxes are four numbers in one of four orders, perhaps as shares of the image, and with the number
 * of the image in front; cells lie in a box as they do in an image that is resized (CmlGrid). */
#include "frontends/coreml/coreml.h"

#include <string.h>

typedef struct {
    bool    size;    /* middle and size, not two corners */
    bool    columns; /* columns come first */
    bool    shares;  /* of the image without its last row and column */
    double  scale;
    CmlGrid grid;
} Boxes;

/* [R, 1]: where a box begins along rows (0) or columns (1), in cells, and how long it is. */
static bool extent(const Build *b, const Expr *boxes, const Boxes *k, uint32_t i, int64_t cells,
                   const Expr **from, const Expr **length)
{
    uint32_t    at = k->columns ? 1 - i : i;
    const Expr *first = build_slice(b, boxes, 1, at, at + 1),
               *second = build_slice(b, boxes, 1, at + 2, at + 3);
    double scale = k->shares ? k->scale * (double)(cells - 1) : k->scale;

    first = build_by(b, "multiply", first, scale);
    second = build_by(b, "multiply", second, scale);
    *length = k->size ? second : build_sub(b, second, first);
    *from = k->size ? build_sub(b, first, build_by(b, "multiply", second, 0.5)) : first;
    return *length && *from;
}

/* [R, count]: how far from where it begins, of boxes that long. */
static const Expr *within(const Build *b, CmlGrid grid, const Expr *length, int64_t count)
{
    const Expr *at = build_arange(b, idx_const(b->c->arith, count), DT_F32);
    const Expr *most = length, *d;

    switch (grid) {
    case CML_GRID_ALIGN:
    case CML_GRID_ALIGN_MIDDLE:
        if (count == 1)
            return build_by(b, "multiply", length, grid == CML_GRID_ALIGN ? 0 : 0.5);
        return build_mul(b, length, build_by(b, "multiply", at, 1 / (double)(count - 1)));
    case CML_GRID_ASYMMETRIC:
    case CML_GRID_HALF: length = build_by(b, "add", length, 1); break;
    case CML_GRID_OFFSET: length = build_by(b, "maximum", length, 1); break;
    }
    if (grid != CML_GRID_ASYMMETRIC)
        at = build_by(b, "add", at, 0.5);
    d = build_mul(b, length, build_by(b, "multiply", at, 1 / (double)count));
    if (grid == CML_GRID_HALF)
        d = build_by(b, "maximum", build_by(b, "add", d, -0.5), 0);
    return d && most ? build2(b, "minimum", d, most, NULL) : NULL;
}

/* Of images [B, C, H, W], boxes [R, 4] and the image of each [R]. */
static const Expr *cropped(CmlNode *n, const Expr *x, const Expr *boxes, const Expr *which,
                           const Boxes *k, const BuildCrops *crops)
{
    const Build *b = &n->b;
    DType        t = expr_dtype(x);
    const Expr  *places[2];

    if (crops->size[0] < 1 || crops->size[1] < 1 || crops->size[0] > 1 << 15 ||
        crops->size[1] > 1 << 15)
        return cml_error(n, E_IMPORT, "a size of %lld by %lld", (long long)crops->size[0],
                         (long long)crops->size[1]);
    boxes = build_cast(b, boxes, DT_F32);
    for (uint32_t i = 0; i < 2; i++) {
        const Expr *from, *length;

        if (!boxes || !extent(b, boxes, k, i, build_dim(b, x, 2 + i), &from, &length))
            return NULL;
        places[i] = build_add(b, from, within(b, k->grid, length, crops->size[i]));
    }
    x = build_crops_at(b, build_cast(b, x, DT_F32), places, which, crops);
    return x ? build_cast(b, x, t) : NULL;
}

/* 0, 1 .. each `times`, `rounds` of them */
static const Expr *numbers(const Build *b, int64_t rounds, int64_t count, int64_t times)
{
    int64_t  n = rounds * count * times;
    int64_t *v = arena_array(b->c->arena, (size_t)n + 1, sizeof *v);

    for (int64_t i = 0; i < n; i++)
        v[i] = i / times % count;
    return build_const(b, DT_I64, 1, &n, v);
}

/* Regions [N, 1, 4, 1, 1] are of all B images, [N, 1, 5, 1, 1] each of one: [N, B or 1, C, h, w].
 */
static bool by_regions(CmlNode *n, const Boxes *k, const BuildCrops *crops)
{
    const Build *b = &n->b;
    const Expr  *x = cml_x(n, "x"), *roi = x ? cml_x(n, "roi") : NULL, *which;
    int64_t      N, B, C, all;

    if (!roi)
        return false;
    if (expr_rank(x) == 5 && build_dim(b, x, 0) == 1)
        x = build_squeeze(b, x, 1, (int64_t[]){0});
    if (!x || expr_rank(x) != 4 || expr_rank(roi) != 5 || build_dim(b, roi, 1) != 1 ||
        (build_dim(b, roi, 2) != 4 && build_dim(b, roi, 2) != 5) || build_dim(b, roi, 3) != 1 ||
        build_dim(b, roi, 4) != 1)
        return cml_error(n, E_IMPORT, "regions %s", type_text(b->c, roi->type));
    N = build_dim(b, roi, 0), B = build_dim(b, x, 0), C = build_dim(b, x, 1);
    roi = build_reshape(b, roi, 2, (int64_t[]){N, build_dim(b, roi, 2)});
    if (build_dim(b, roi, 1) == 5) {
        which = build_cast(b, build_reshape(b, build_slice(b, roi, 1, 0, 1), 1, (int64_t[]){N}),
                           DT_I64);
        roi = build_slice(b, roi, 1, 1, 5);
        B = 1;
    } else {
        if (!checked_mul(N, B, &all) || all > 1 << 20)
            return cml_error(n, E_UNSUPPORTED, "%lld regions of %lld images", (long long)N,
                             (long long)B);
        which = numbers(b, N, B, 1);
        roi = build_take(b, roi, numbers(b, 1, N, B), 0);
    }
    x = roi && which ? cropped(n, x, roi, which, k, crops) : NULL;
    return x && cml_done(n, build_reshape(b, x, 5,
                                          (int64_t[]){N, B, C, crops->size[0], crops->size[1]}));
}

bool cml_layer_crop_resize(CmlNode *n)
{
    CmlMessage m;
    int64_t    mode = cml_message(n, "box_indices_mode", &m) ? cml_read_int(&m, "box_mode") : 0;
    Boxes      k = {.size = mode >= 2,
                    .columns = mode % 2 == 1,
                    .shares = cml_bool(n, "normalized_coordinates", false),
                    .scale = cml_float(n, "spatial_scale", 0)};
    BuildCrops crops = {0};

    if (mode < 0 || mode > 3)
        return cml_error(n, E_UNSUPPORTED, "box mode %lld", (long long)mode);
    if (k.scale == 0) /* coremltools always writes it */
        return cml_error(n, E_IMPORT, "a spatial scale of 0");
    return cml_numbers(n, "target_size", 2, 1, 1, crops.size) && cml_grid(n, &k.grid) &&
           by_regions(n, &k, &crops);
}

bool cml_crop_resize(CmlNode *n)
{
    static const char *const modes[] = {"CORNERS_HEIGHT_FIRST", "CORNERS_WIDTH_FIRST",
                                        "CENTER_SIZE_HEIGHT_FIRST", "CENTER_SIZE_WIDTH_FIRST"};
    const char              *mode = cml_text(n, "box_coordinate_mode", modes[0]);
    const Build             *b = &n->b;
    uint32_t                 at = 0;
    Boxes                    k = {.shares = cml_bool(n, "normalized_coordinates", false),
                                  .scale = cml_float(n, "spatial_scale", 1)};
    BuildCrops  crops = {.size = {cml_int(n, "target_height", 1), cml_int(n, "target_width", 1)},
                         .fill = cml_float(n, "pad_value", 0)};
    const Expr *x, *boxes, *which = NULL;

    while (at < COUNT(modes) && strcmp(modes[at], mode) != 0)
        at++;
    if (at == COUNT(modes))
        return cml_error(n, E_UNSUPPORTED, "box_coordinate_mode '%s'", mode);
    k.size = at >= 2;
    k.columns = at % 2 == 1;
    if (!cml_grid_named(n, "DEFAULT", &k.grid))
        return false;
    if (cml_has(n, "roi"))
        return by_regions(n, &k, &crops);
    if (!(x = cml_x(n, "x")) || !(boxes = cml_x(n, "boxes")) ||
        (cml_has(n, "box_indices") && !(which = cml_x(n, "box_indices"))))
        return false;
    if (expr_rank(x) != 4 || expr_rank(boxes) != 2 || build_dim(b, boxes, 1) != 4 ||
        (which && (expr_rank(which) != 1 || build_dim(b, which, 0) != build_dim(b, boxes, 0))))
        return cml_error(n, E_IMPORT, "boxes %s of images %s", type_text(b->c, boxes->type),
                         type_text(b->c, x->type));
    which = which ? which : numbers(b, 1, build_dim(b, boxes, 0), 1);
    return cml_done(n, cropped(n, x, boxes, which, &k, &crops));
}
