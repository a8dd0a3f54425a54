/* What detects: the layer's own result, as the programs leave it, and layer<i>_boxes, [N, boxes, 5
 * + classes], place by place and there anchor by anchor: centre x and y, width and height as shares
 * of the picture, how sure it is that something is there, and that times the probability of each
 * class. */
#include "frontends/darknet/darknet.h"

#include <math.h>
#include <string.h>

/* [N, anchors, fields, H, W] */
typedef struct {
    int64_t     anchors, classes, fields, height, width;
    const Expr *at;
} Grid;

static const Expr *sigmoid(const Build *b, const Expr *x)
{
    return build1(b, "sigmoid", x, NULL);
}

static const Expr *fields(const Build *b, const Grid *g, int64_t from, int64_t n)
{
    return build_slice(b, g->at, 2, from, from + n);
}

static bool read_grid(DarknetNode *n, int64_t anchors, int64_t box, Grid *g)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    const Expr  *x = darknet_image(n, n->x);

    g->anchors = anchors;
    if (!darknet_size(n, "classes", 0, &g->classes))
        return false;
    g->fields = box + 1 + g->classes;
    if (anchors < 1 || build_dim(b, x, 1) != anchors * g->fields)
        return darknet_error(
            n, E_IMPORT, "%lld anchors with %lld numbers each, but %lld channels before it",
            (long long)anchors, (long long)g->fields, (long long)build_dim(b, x, 1));
    g->height = build_dim(b, x, 2);
    g->width = build_dim(b, x, 3);
    g->at = build_reshape_to(b, x, 5,
                             (const Idx *[]){expr_form(x, 0), idx_const(A, anchors),
                                             idx_const(A, g->fields), expr_form(x, 2),
                                             expr_form(x, 3)});
    return g->at != NULL;
}

/* The widths and heights of the anchors that are used, divided by those of `whole`; [anchors, 2, 1,
 * 1]. */
static const Expr *anchors_of(DarknetNode *n, const Grid *g, const Ints *mask, double across,
                              double down)
{
    float   *v = NEW_ARRAY(n->b.c->arena, float, (size_t)(2 * g->anchors));
    uint32_t count;
    double  *all;

    if (!darknet_float_list(n, "anchors", &count, &all))
        return NULL;
    for (int64_t i = 0; i < g->anchors; i++) {
        int64_t at = mask ? mask->at[i] : i;

        if (count && (at < 0 || 2 * at + 1 >= (int64_t)count))
            return darknet_error(n, E_IMPORT, "anchor %lld of %u", (long long)at, count / 2);
        v[2 * i] = (float)((count ? all[2 * at] : 0.5) / across);
        v[2 * i + 1] = (float)((count ? all[2 * at + 1] : 0.5) / down);
    }
    return build_const(&n->b, DT_F32, 4, (int64_t[]){g->anchors, 2, 1, 1}, v);
}

/* Centres: where they are in their cell, plus the cell. */
static const Expr *centres(DarknetNode *n, const Grid *g, const Expr *xy)
{
    size_t  cells = (size_t)(g->height * g->width);
    float  *at = NEW_ARRAY(n->b.c->arena, float, 2 * cells + 1);
    float   whole[2] = {1 / (float)g->width, 1 / (float)g->height};
    int64_t dims[3] = {2, g->height, g->width};

    for (size_t i = 0; i < cells; i++) {
        at[i] = (float)(i % (size_t)g->width);
        at[cells + i] = (float)(i / (size_t)g->width);
    }
    return build_mul(&n->b, build_add(&n->b, xy, build_const(&n->b, DT_F32, 3, dims, at)),
                     build_const(&n->b, DT_F32, 3, (int64_t[]){2, 1, 1}, whole));
}

/* Parts of [N, anchors, .., H, W] as rows. */
static void boxes(DarknetNode *n, const Grid *g, const Expr *xy, const Expr *wh, const Expr *sure,
                  const Expr *classes)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    const Expr  *parts[] = {centres(n, g, xy), wh, sure, build_mul(b, classes, sure)};
    const Expr  *y = build_transpose(b, build_concat(b, g->classes ? 4 : 3, parts, 2), 5,
                                     (int64_t[]){0, 3, 4, 1, 2});

    if (y)
        darknet_tensor(
            n, "boxes",
            build_reshape_to(b, y, 3,
                             (const Idx *[]){expr_form(y, 0),
                                             idx_const(A, g->height * g->width * g->anchors),
                                             idx_const(A, 5 + g->classes)}));
}

/* The layer's own result, in the form of its input. */
static bool done(DarknetNode *n, uint32_t count, const Expr *const *parts)
{
    const Expr *x = darknet_image(n, n->x);
    Dims        dims = expr_forms(x);

    return darknet_done(n,
                        build_reshape_to(&n->b, build_concat(&n->b, count, parts, 2), 4, dims.at));
}

/* x * scale - (scale - 1) / 2: centres may lie a little outside of their cells. */
static const Expr *scaled(const DarknetNode *n, const Expr *x)
{
    double scale = darknet_float(n, "scale_x_y");

    return scale == 1
               ? x
               : build_by(&n->b, "add", build_by(&n->b, "multiply", x, scale), -0.5 * (scale - 1));
}

/* The anchors of this scale; without a mask all. */
static bool read_mask(DarknetNode *n, Ints *mask)
{
    int64_t num, *all;

    if (!darknet_ints(n, "mask", mask) || !darknet_size(n, "num", 1, &num))
        return false;
    if (mask->n)
        return true;
    if (num > 1024)
        return darknet_error(n, E_IMPORT, "%lld anchors", (long long)num);
    all = NEW_ARRAY(n->b.c->arena, int64_t, (size_t)num);
    for (int64_t i = 0; i < num; i++)
        all[i] = i;
    *mask = (Ints){(uint32_t)num, all};
    return true;
}

bool darknet_yolo(DarknetNode *n)
{
    const Build *b = &n->b;
    bool         raw = darknet_int(n, "new_coords");
    const Expr  *xy, *wh, *size, *rest, *anchors;
    Ints         mask;
    Grid         g;

    if (!read_mask(n, &mask) || !read_grid(n, mask.n, 4, &g) ||
        !(anchors = anchors_of(n, &g, &mask, (double)n->im->width, (double)n->im->height)))
        return false;
    xy = fields(b, &g, 0, 2);
    wh = fields(b, &g, 2, 2);
    rest = fields(b, &g, 4, 1 + g.classes);
    xy = scaled(n, raw ? xy : sigmoid(b, xy));
    rest = raw ? rest : sigmoid(b, rest);
    size = raw ? build_by(b, "multiply", build_mul(b, wh, wh), 4) : build1(b, "exp", wh, NULL);
    boxes(n, &g, xy, build_mul(b, size, anchors), build_slice(b, rest, 2, 0, 1),
          build_slice(b, rest, 2, 1, 1 + g.classes));
    return done(n, 3, (const Expr *[]){xy, wh, rest});
}

/* Each number of a box with its uncertainty: x, sx, y, sy, w, sw, h, sh. */
bool darknet_gaussian_yolo(DarknetNode *n)
{
    const Build *b = &n->b;
    const char  *point = darknet_text(n, "yolo_point");
    double      side = !strcmp(point, "left_top") ? 0.5 : !strcmp(point, "right_bottom") ? -0.5 : 0;
    const Expr *part[9], *sums, *xy, *wh, *rest, *anchors, *classes;
    Ints        mask;
    Grid        g;

    if (side == 0 && strcmp(point, "center"))
        return darknet_error(n, E_IMPORT, "'yolo_point' is '%s'", point);
    if (!read_mask(n, &mask) || !read_grid(n, mask.n, 8, &g) ||
        !(anchors = anchors_of(n, &g, &mask, (double)n->im->width, (double)n->im->height)))
        return false;
    for (uint32_t i = 0; i < 8; i++) {
        part[i] = fields(b, &g, i, 1);
        if (i != 4 && i != 6) /* widths and heights stay as they are */
            part[i] = sigmoid(b, part[i]);
        if (i == 0 || i == 2)
            part[i] = scaled(n, part[i]);
    }
    rest = part[8] = sigmoid(b, fields(b, &g, 8, 1 + g.classes));
    wh = build_concat(b, 2, (const Expr *[]){part[4], part[6]}, 2);
    wh = build_mul(b, build1(b, "exp", wh, NULL), anchors);
    xy = build_concat(b, 2, (const Expr *[]){part[0], part[2]}, 2);
    if (side) { /* boxes hang on a corner: half a box away, in cells */
        float whole[2] = {(float)g.width, (float)g.height};

        xy = build_add(b, xy,
                       build_mul(b, build_by(b, "multiply", wh, side),
                                 build_const(b, DT_F32, 3, (int64_t[]){2, 1, 1}, whole)));
    }
    sums = build_add(b, build_add(b, part[1], part[3]), build_add(b, part[5], part[7]));
    classes = build_mul(b, build_slice(b, rest, 2, 1, 1 + g.classes),
                        build_by(b, "add", build_by(b, "multiply", sums, -0.25), 1));
    boxes(n, &g, xy, wh, build_slice(b, rest, 2, 0, 1), classes);
    return done(n, 9, part);
}

/* The second version's: anchors in cells, classes by softmax. */
bool darknet_region(DarknetNode *n)
{
    const Build  *b = &n->b;
    SoftmaxAttrs *a = ATTRS(b, SoftmaxAttrs);
    const Expr   *xy, *wh, *sure, *classes, *anchors;
    int64_t       num;
    Grid          g;

    if (!darknet_size(n, "num", 1, &num) || !read_grid(n, num, 4, &g) ||
        !(anchors = anchors_of(n, &g, NULL, (double)g.width, (double)g.height)))
        return false;
    xy = sigmoid(b, fields(b, &g, 0, 2));
    wh = fields(b, &g, 2, 2);
    sure = sigmoid(b, fields(b, &g, 4, 1));
    classes = fields(b, &g, 5, g.classes);
    a->axis = 2;
    classes = darknet_int(n, "softmax") ? build1(b, "nn.softmax", classes, a) : sigmoid(b, classes);
    boxes(n, &g, xy, build_mul(b, build1(b, "exp", wh, NULL), anchors), sure, classes);
    return done(n, 4, (const Expr *[]){xy, wh, sure, classes});
}

/* The first version's: [N, places * classes + places * boxes + places * boxes * 4] of a product. */
bool darknet_detection(DarknetNode *n)
{
    const Build  *b = &n->b;
    Arith        *A = b->c->arith;
    const Expr   *x = darknet_vector(n, n->x), *sure, *box, *classes, *all[3];
    SoftmaxAttrs *softmax = ATTRS(b, SoftmaxAttrs);
    int64_t       side, places, each, count;
    const Idx    *batch;
    Grid          g;

    if (!x || !darknet_size(n, "side", 1, &side) || !darknet_size(n, "num", 1, &each) ||
        !darknet_size(n, "classes", 0, &count))
        return false;
    if (side > 1024 || each > 1024 || count > 1 << 20 ||
        build_dim(b, x, 1) != side * side * (count + 5 * each))
        return darknet_error(n, E_IMPORT,
                             "%lld x %lld places with %lld classes and %lld boxes, of %s",
                             (long long)side, (long long)side, (long long)count, (long long)each,
                             type_text(b->c, x->type));
    places = side * side;
    batch = expr_form(x, 0);
    g = (Grid){.anchors = each, .classes = count, .height = side, .width = side};
    all[0] = build_slice(b, x, 1, 0, places * count);
    all[1] = build_slice(b, x, 1, places * count, places * (count + each));
    all[2] = build_slice(b, x, 1, places * (count + each), places * (count + 5 * each));
    classes = build_reshape_to(b, all[0], 5,
                               (const Idx *[]){batch, idx_const(A, side), idx_const(A, side),
                                               idx_const(A, 1), idx_const(A, count)});
    if (darknet_int(n, "softmax") && count) {
        classes = build1(b, "nn.softmax", classes, softmax);
        all[0] = build_matrix(b, classes, 1);
    }
    sure = build_reshape_to(b, all[1], 5,
                            (const Idx *[]){batch, idx_const(A, side), idx_const(A, side),
                                            idx_const(A, each), idx_const(A, 1)});
    box = build_reshape_to(b, all[2], 5,
                           (const Idx *[]){batch, idx_const(A, side), idx_const(A, side),
                                           idx_const(A, each), idx_const(A, 4)});
    /* [N, side, side, boxes, fields] to [N, boxes, fields, side, side] */
    sure = build_transpose(b, sure, 5, (int64_t[]){0, 3, 4, 1, 2});
    box = build_transpose(b, box, 5, (int64_t[]){0, 3, 4, 1, 2});
    classes = build_transpose(b, classes, 5, (int64_t[]){0, 3, 4, 1, 2});
    if (box) {
        const Expr *wh = build_slice(b, box, 2, 2, 4);

        if (darknet_int(n, "sqrt"))
            wh = build_mul(b, wh, wh);
        boxes(n, &g, build_slice(b, box, 2, 0, 2), wh, sure, classes);
    }
    return darknet_done(n, build_concat(b, 3, all, 1));
}

/* Classes of each pixel, and what tells objects apart as it is. */
bool darknet_iseg(DarknetNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = darknet_image(n, n->x), *first;
    int64_t      classes, ids, all;

    if (!x || !darknet_size(n, "classes", 1, &classes) || !darknet_size(n, "ids", 0, &ids))
        return false;
    all = build_dim(b, x, 1);
    if (classes + ids != all)
        return darknet_error(n, E_IMPORT, "%lld classes and %lld numbers of %lld channels",
                             (long long)classes, (long long)ids, (long long)all);
    first = build1(b, "sigmoid", ids ? build_slice(b, x, 1, 0, classes) : x, NULL);
    return darknet_done(
        n, ids ? build_concat(b, 2, (const Expr *[]){first, build_slice(b, x, 1, classes, all)}, 1)
               : first);
}
