/* dilated_conv2d: a convolution of images of every n-th cell each is a dilated one.
 *
 *   %0 = transpose(reshape(nn.pad(%x: [1, 32, 200], ..4 before the cells), ..), ..)  // [2, 32, 1,
 * 102] %1 = nn.conv2d(%0, const @w, kernel_size=[1, 3]);                         // [2, 32, 1, 100]
 *   reshape(transpose(reshape(%1, ..), ..), ..)                               // [1, 32, 200]
 *     -> reshape(nn.conv2d(reshape(%x), const @w, dilation=[1, 2], padding=[0, 4, 0, 0]))
 *
 * TensorFlow writes dilations as SpaceToBatchND, a convolution, BatchToSpaceND: the cells at
 * positions 0, n, 2n, .. are one image of a batch, those at 1, n+1, .. the next.  Two cells that a
 * kernel takes from one of these images are n times as far apart in the whole.  Rows and columns
 * may have different n.  view_axes tells which dimensions of what is convolved the batch, rows and
 * columns are of; views and transposes in any order are read, and what stands for the whole is put
 * together from the same parts.  A border of zeros becomes padding, and cells that are cut off
 * behind (crops, by which the border fills up to whole blocks) are not computed: padding less.
 * Cost: a walk up from each view. */
#include "passes/graph/graph.h"

#include <string.h>

enum { BATCH, CHANNELS, HEIGHT, WIDTH, IMAGE }; /* axes, rank */
enum { NONE = -1 };

/* What a convolution reads: image dimension `axis` is dimension from[axis] of a tensor (NONE: of
 * one cell), of which it takes every block[axis]-th cell.  order: batch, rows and columns as they
 * make up the batch, the outer first, and how many cells each has there. */
typedef struct {
    const Expr *of;
    int         from[IMAGE];
    int64_t     block[IMAGE], part[IMAGE];
    int         order[IMAGE];
    uint32_t    n;
} Phases;

typedef struct {
    Map *uses;
    Map *made; /* convolutions that this pass made */
} Dilated;

static bool image_of_numbers(const Expr *e)
{
    return expr_is_tensor(e) && e->type->n == IMAGE;
}

static bool may_dilate(const Expr *e)
{
    return call_is(e, "nn.conv2d") && image_of_numbers(e) && image_of_numbers(call_arg(e, 0)) &&
           !strcmp(ATTRS_OF(Conv2dAttrs, e)->data_layout, "NCHW");
}

/* Part i of the batch: cells of rows or columns, whose outer part stands just before it in what is
 * convolved; else images. */
static int role_of(const ViewAxes *v, uint32_t i)
{
    for (uint32_t k = 0; k < v->n; k++)
        if (v->part[k].dim >= HEIGHT && v->part[k].from == v->part[i].from &&
            v->part[k].place + 1 == v->part[i].place)
            return (int)v->part[k].dim;
    return BATCH;
}

/* Every dimension of what is convolved but those of 1 is one of the image's, whole. */
static bool whole_dims(const Expr *of, const Phases *p, const int64_t *size)
{
    int64_t d;

    for (uint32_t i = 0; i < of->type->n; i++) {
        int axis = NONE;

        if (!type_dim(of->type, i, &d) || d < 1)
            return false;
        for (int a = 0; a < IMAGE; a++)
            if (p->from[a] == (int)i) {
                if (axis != NONE || d != size[a] * p->block[a])
                    return false;
                axis = a;
            }
        if (axis == NONE && d != 1)
            return false;
    }
    return true;
}

static bool phases_of(Ctx *c, const Expr *conv, Phases *p)
{
    const Conv2dAttrs *a = ATTRS_OF(Conv2dAttrs, conv);
    int64_t            size[IMAGE] = {1, 1, 1, 1}, cells;
    ViewAxes           v;

    *p = (Phases){.from = {NONE, NONE, NONE, NONE}, .block = {1, 1, 1, 1}};
    if (!view_axes(c, call_arg(conv, 0), &v) || v.of == call_arg(conv, 0) || !expr_is_tensor(v.of))
        return false;
    p->of = v.of;
    for (uint32_t i = 0; i < v.n; i++) {
        int axis = (int)v.part[i].dim, role = axis == BATCH ? role_of(&v, i) : axis;

        if (!idx_is_const(v.part[i].size, &cells))
            return false;
        if (axis == BATCH) {
            if (p->n == IMAGE)
                return false;
            p->order[p->n] = role;
            p->part[p->n++] = cells;
        }
        if (axis == BATCH && role != BATCH) {
            if (p->block[role] != 1 || a->strides.at[role - HEIGHT] != 1)
                return false;
            p->block[role] = cells;
            continue;
        }
        if (p->from[role] != NONE)
            return false;
        p->from[role] = (int)v.part[i].from;
        size[role] = cells;
    }
    return p->block[HEIGHT] * p->block[WIDTH] > 1 && whole_dims(v.of, p, size);
}

/* A border of zeros around rows and columns: how wide, as padding has it. */
static bool border_of(const Expr *e, const Phases *p, int64_t pad[4])
{
    const PadAttrs *w = ATTRS_OF(PadAttrs, e);

    if (!call_is(e, "nn.pad") || strcmp(w->pad_mode, "constant") || w->pad_value != 0 ||
        w->pad_width.n != 2 * e->type->n || !is_float(e))
        return false;
    for (uint32_t i = 0; i < w->pad_width.n; i++) {
        int dim = (int)i / 2;
        int axis = dim == p->from[HEIGHT] ? HEIGHT : dim == p->from[WIDTH] ? WIDTH : NONE;

        if (w->pad_width.at[i] < 0 || (axis == NONE && w->pad_width.at[i]))
            return false;
        if (axis != NONE)
            pad[axis - HEIGHT + 2 * (i % 2)] += w->pad_width.at[i];
    }
    return true;
}

/* The tensor as an image. */
static const Expr *as_image(Ctx *c, const Expr *x, const Phases *p, Loc loc)
{
    TransposeAttrs *t = ATTRS_NEW(c, TransposeAttrs);
    int64_t         dims[IMAGE], axes[IMAGE];
    bool            moved = false;
    uint32_t        n = 0;

    for (int from = NONE; from < (int)x->type->n; from++)
        for (int a = 0; a < IMAGE; a++)
            if (p->from[a] == from) {
                dims[n] = 1;
                if (from != NONE && !type_dim(x->type, (uint32_t)from, &dims[n]))
                    return NULL;
                moved |= n != (uint32_t)a;
                axes[a] = n++;
            }
    const Expr *image = make_reshape(c, x, n, dims, loc);

    x = image && image->type == x->type ? x : image;
    t->axes = ints_dup(c, axes, IMAGE);
    return moved ? make1(c, "transpose", x, t, loc) : x;
}

static const Expr *dilated(Ctx *c, const Expr *conv, const Phases *p)
{
    Conv2dAttrs *a = ATTRS_COPY(c, Conv2dAttrs, conv);
    int64_t      pad[4], dilation[2], border[4] = {0};
    const Expr  *x = p->of;

    if (call_is(x, "nn.pad") && a->pad_value == 0 && border_of(x, p, border))
        x = call_arg(x, 0);
    for (int i = 0; i < 4; i++)
        pad[i] = a->padding.at[i] * p->block[HEIGHT + i % 2] + (x == p->of ? 0 : border[i]);
    for (int i = 0; i < 2; i++)
        dilation[i] = a->dilation.at[i] * p->block[HEIGHT + i];
    a->padding = ints_dup(c, pad, 4);
    a->dilation = ints_dup(c, dilation, 2);
    return make2(c, "nn.conv2d", as_image(c, x, p, conv->loc), call_arg(conv, 1), a, conv->loc);
}

/* Does e show what is dilated, each of its dimensions at most one of the image's?  `at`: which of
 * the image's, in order, without those of one cell. */
static bool whole_of(const Expr *conv, const ViewAxes *v, const Phases *p, int at[IMAGE],
                     uint32_t *n)
{
    int64_t  cells, d;
    uint32_t batch = 0;

    /* The parts of the result's batch are those of what is read, in their order. */
    int role[MAX_PARTS];
    for (uint32_t place = 0; place < v->n; place++)
        for (uint32_t i = 0; i < v->n; i++)
            if (v->part[i].place == place) {
                role[i] = (int)v->part[i].from;
                if (role[i] != BATCH)
                    continue;
                if (batch == p->n || !idx_is_const(v->part[i].size, &cells) ||
                    cells != p->part[batch])
                    return false;
                role[i] = p->order[batch++];
            }
    *n = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        bool inner = v->part[i].from == BATCH && role[i] != BATCH, outer = role[i] >= HEIGHT;

        if (inner) { /* behind its rows or columns, unless there is one of them */
            if (i && role[i - 1] == role[i] && v->part[i - 1].from != BATCH &&
                v->part[i - 1].dim == v->part[i].dim)
                continue;
            if (!type_dim(conv->type, (uint32_t)role[i], &d) || d != 1)
                return false;
        } else if (outer && p->block[role[i]] > 1 &&
                   (i + 1 == v->n || role[i + 1] != role[i] || v->part[i + 1].from != BATCH)) {
            return false;
        }
        for (uint32_t k = 0; k < *n; k++)
            if (at[k] == role[i])
                return false;
        at[(*n)++] = role[i];
    }
    return batch == p->n;
}

/* The image with its dimensions `at` in that order, as a tensor of type t. */
static const Expr *from_image(Ctx *c, const Expr *e, const int *at, uint32_t n, const Type *t)
{
    TransposeAttrs *a = ATTRS_NEW(c, TransposeAttrs);
    int64_t         axes[IMAGE];
    uint32_t        k = 0;
    bool            moved = false, named[IMAGE] = {false};

    for (uint32_t i = 0; i < n; i++)
        named[at[i]] = true;
    for (int i = 0; i < IMAGE; i++)
        if (!named[i])
            axes[k++] = i;
    for (uint32_t i = 0; i < n; i++) {
        moved |= i && at[i] < at[i - 1];
        axes[k++] = at[i];
    }
    a->axes = ints_dup(c, axes, IMAGE);
    e = e && moved ? make1(c, "transpose", e, a, e->loc) : e;
    return !e || e->type == t ? e : make_reshape_to(c, e, t->n, t->dims, e->loc);
}

static bool is_step_down(const Expr *e)
{
    return is_view(e) || call_is(e, "transpose");
}

/* From e down to a convolution, nothing is read by others. */
static bool is_only_reader(const Dilated *d, const Expr *e)
{
    for (; is_step_down(e) || call_is(e, "strided_slice"); e = call_arg(e, 0))
        if (uses_of(d->uses, call_arg(e, 0)) != 1)
            return false;
    return call_is(e, "nn.conv2d");
}

static const Expr *view(Ctx *c, Dilated *d, const Expr *was, const Expr *e)
{
    const Expr *conv;
    ViewAxes    v;
    Phases      p;
    int         at[IMAGE];
    uint32_t    n;

    if (!expr_is_tensor(e) || !view_axes(c, e, &v) || !may_dilate(v.of) ||
        !phases_of(c, v.of, &p) || !whole_of(v.of, &v, &p, at, &n) || !is_only_reader(d, was))
        return e;
    if (!(conv = dilated(c, v.of, &p)))
        return NULL;
    map_put(d->made, PTR_KEY(conv), d);
    return from_image(c, conv, at, n, e->type);
}

/* ---- crops ---------------------------------------------------------------------------------- */

/* Cells that a slice leaves out before and behind, of each dimension of x. */
static bool left_out(const Expr *e, int64_t *before, int64_t *behind)
{
    const StridedSliceAttrs *a = ATTRS_OF(StridedSliceAttrs, e);
    const Type              *t = call_arg(e, 0)->type;
    int64_t                  n, from, left;

    memset(before, 0, t->n * sizeof *before);
    memset(behind, 0, t->n * sizeof *behind);
    if (!ints_all(a->strides, 1))
        return false;
    for (uint32_t i = 0; i < a->begin.n; i++) {
        uint32_t dim = a->axes.n ? axis_from_front(a->axes.at[i], t->n) : i;

        if (!idx_is_const(a->begin.at[i], &from) || !type_dim(t, dim, &n) ||
            !type_dim(e->type, dim, &left))
            return false;
        from = from < 0 ? from + n : from;
        before[dim] = from < 0 ? 0 : from < n ? from : n;
        behind[dim] = n - left - before[dim];
    }
    return true;
}

/* Cells of the result that are nobody's are not computed: where they look at padding, it is less.
 */
static const Expr *crop(Ctx *c, Dilated *d, const Expr *was, const Expr *e)
{
    const Expr  *x = call_arg(e, 0), *conv;
    int64_t      before[MAX_PARTS], behind[MAX_PARTS], pad[4], n;
    int          at[IMAGE];
    Conv2dAttrs *a;
    ViewAxes     v;

    if (!expr_is_tensor(e) || x->type->n > MAX_PARTS || !view_axes(c, x, &v) ||
        !map_get(d->made, PTR_KEY(v.of)) || !is_only_reader(d, was) || !left_out(e, before, behind))
        return e;
    conv = v.of;
    a = ATTRS_COPY(c, Conv2dAttrs, conv);
    memcpy(pad, a->padding.at, sizeof pad);
    for (uint32_t i = 0; i < v.n; i++) {
        const AxisPart *p = &v.part[i];
        bool            whole = p->size == conv->type->dims[p->from];

        if (!whole || (i && v.part[i - 1].dim == p->dim))
            return e;
        at[i] = (int)p->from;
        if (p->from >= HEIGHT) {
            pad[p->from - HEIGHT] -= before[p->dim];
            pad[p->from - HEIGHT + 2] -= behind[p->dim];
            before[p->dim] = behind[p->dim] = 0;
        }
    }
    for (uint32_t i = 0; i < x->type->n; i++)
        if (before[i] || behind[i])
            return e;
    for (uint32_t i = 0; i < 4; i++)
        if (pad[i] < 0)
            return e;
    for (uint32_t i = 0; i < e->type->n; i++)
        if (!type_dim(e->type, i, &n) || n < 1)
            return e;
    a->padding = ints_dup(c, pad, 4);
    if (!(conv = expr_call(c, call_op(conv), 2, conv->kids + 1, a, conv->loc)))
        return NULL;
    map_put(d->made, PTR_KEY(conv), d);
    return from_image(c, conv, at, v.n, e->type);
}

static const Expr *rewrite(Ctx *c, void *user, const Expr *was, const Expr *e)
{
    Dilated *d = user;

    if (is_step_down(e))
        return view(c, d, was, e);
    if (call_is(e, "strided_slice"))
        return crop(c, d, was, e);
    return e;
}

const Module *dilated_conv2d(Ctx *c, const Module *m)
{
    Dilated d = {count_uses(c, m), map_new(c->scratch)};

    return module_rewrite(c, m, rewrite, &d);
}
