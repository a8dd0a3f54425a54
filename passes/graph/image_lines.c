/* image_lines: what is computed of lines, as they come of images of height 1, is computed of these
 * images; so is what is computed of volumes that show an image's cells in other dimensions.
 *
 *   %1 = squeeze(nn.conv2d(%0, const @w), axis=[2]);  nn.relu(nn.bias_add(%1, const @b))
 *     -> reshape(nn.relu(nn.bias_add(nn.conv2d(%0, const @w), const @b)))
 *   nn.pad(reshape(transpose(%1: [1, 8, 1, 30], [0, 2, 3, 1])), pad_width=[0, 0, 2, 0, 0, 0])
 *     -> reshape(transpose(nn.pad(%1, pad_width=[0, 0, 0, 0, 0, 0, 2, 0]), [0, 2, 3, 1]))
 *   nn.bias_add(reshape(nn.conv2d(%0, const @w), newshape=[1, 8, 3, 4, 5]), const @b)
 *     -> reshape(nn.bias_add(nn.conv2d(%0, const @w), const @b), newshape=[1, 8, 3, 4, 5])
 *
 * A convolution of lines is one of images (ops/nn/conv1d.c), one of volumes may be, too
 * (frontends/volume.c).  Views and transposes around it move nothing or move it back, but one
 * between a kernel and what follows keeps them two kernels, and blocks of channels end at it.  So
 * they go behind bias, activation and sum, those of lines behind border and reduction, too, where
 * they meet those of the next convolution and are gone.  The dimensions of lines come in any order,
 * as frameworks have them.  Operands that come otherwise are seen as images, too. */
#include "passes/graph/graph.h"

#include <string.h>

enum { MAX_IN = 3 };
enum { NONE = -1, BATCH, CHANNELS, HEIGHT, WIDTH, IMAGE, LINES = IMAGE - 1 }; /* axes, ranks */

/* Lines, which show an image N C 1 W. */
typedef struct {
    const Expr *image;
    int         axis[LINES]; /* the image's, of each dimension; NONE: of one cell */
} Lines;

/* A volume N C .., which shows an image N C H W. */
typedef struct {
    const Expr *image;
    const Type *type;
} Volume;

static bool is_one(const Type *t, uint32_t i)
{
    int64_t v;

    return type_dim(t, i, &v) && v == 1;
}

static bool lines_of(Ctx *c, const Expr *e, Lines *l)
{
    ViewAxes v;

    if (!expr_has_shape(e) || e->type->n != LINES || !view_axes(c, e, &v) || v.of == e ||
        v.of->type->n != IMAGE || !is_one(v.of->type, HEIGHT))
        return false;
    *l = (Lines){v.of, {NONE, NONE, NONE}};
    for (uint32_t i = 0; i < v.n; i++) {
        const AxisPart *p = &v.part[i];

        if (p->size != v.of->type->dims[p->from] || l->axis[p->dim] != NONE)
            return false; /* cut, or two in one */
        l->axis[p->dim] = (int)p->from;
    }
    return true;
}

/* What is behind the channels may come in dimensions that are not the image's. */
static bool volume_of(const Expr *e, Volume *v)
{
    *v = (Volume){e, e->type};
    while (is_view(v->image))
        v->image = call_arg(v->image, 0);
    return v->image != e && expr_has_shape(e) && expr_has_shape(v->image) && e->type->n >= LINES &&
           v->image->type->n == IMAGE && e->type->dims[BATCH] == v->image->type->dims[BATCH] &&
           e->type->dims[CHANNELS] == v->image->type->dims[CHANNELS];
}

static bool is_elementwise(const Op *op)
{
    return op && (op->fusion == FUSE_ELEMWISE || op->fusion == FUSE_BROADCAST);
}

/* It computes images in blocks of channels: convolutions, pools, and what follows them. */
static bool is_computed(const Map *made, const Expr *image)
{
    const Op *op = call_op(image);

    return map_get(made, PTR_KEY(image)) || (op && op->block && !is_elementwise(op));
}

/* ---- there and back ------------------------------------------------------------------------------ */

/* x with its dimensions in the order of `at`; those that it names NONE come first. */
static const Expr *ordered(Ctx *c, const Expr *x, const int *at, Loc loc)
{
    TransposeAttrs *a;
    uint32_t        order[IMAGE], n = x->type->n, k = 0;
    int64_t         axes[IMAGE];
    int             last = NONE;
    bool            moved = false;

    for (int to = NONE; to < IMAGE; to++)
        for (uint32_t i = 0; i < n; i++)
            if (at[i] == to)
                order[k++] = i;
    for (uint32_t i = 0; i < n; i++) {
        axes[i] = order[i];
        moved |= at[i] != NONE && at[i] < last;
        last = at[i] != NONE ? at[i] : last;
    }
    if (!moved)
        return x;
    a = ATTRS_NEW(c, TransposeAttrs);
    a->axes = ints_dup(c, axes, n);
    return make1(c, "transpose", x, a, loc);
}

/* The same numbers beside the image: what broadcasts to lines broadcasts to it. */
static const Expr *beside_image(Ctx *c, const Lines *l, const Expr *x)
{
    const Idx *dims[IMAGE], *one = idx_const(c->arith, 1);
    int        at[LINES] = {NONE, NONE, NONE}, first = IMAGE;
    Lines      other;
    uint32_t   n = x->type->n;

    if (lines_of(c, x, &other) && !memcmp(other.axis, l->axis, sizeof l->axis))
        return other.image;
    for (uint32_t i = 0; i < IMAGE; i++)
        dims[i] = one;
    for (uint32_t i = 0; i < n; i++)
        if (!is_one(x->type, i)) {
            at[i] = l->axis[LINES - n + i];
            dims[at[i]] = x->type->dims[i];
            first = at[i] < first ? at[i] : first;
        }
    if (first == IMAGE || (n == 1 && first == WIDTH))
        return x; /* one number, or one for each cell of a line, wherever it stands */
    x = ordered(c, x, at, x->loc);
    return make_reshape_to(c, x, (uint32_t)(IMAGE - first), dims + first, x ? x->loc : (Loc){0});
}

/* Behind channels a volume's operand has all its cells; or one. */
static bool has_all_cells(const Volume *v, const Expr *x)
{
    uint32_t before = v->type->n - x->type->n;

    for (uint32_t i = HEIGHT; i < v->type->n; i++)
        if (i < before || x->type->dims[i - before] != v->type->dims[i])
            return false;
    return true;
}

static bool has_one_cell(const Volume *v, const Expr *x)
{
    uint32_t before = v->type->n - x->type->n;

    for (uint32_t i = HEIGHT; i < v->type->n; i++)
        if (i >= before && !is_one(x->type, i - before))
            return false;
    return true;
}

/* The same numbers beside a volume's image. */
static const Expr *beside_volume(Ctx *c, const Volume *v, const Expr *x)
{
    const Idx *dims[IMAGE], *one = idx_const(c->arith, 1);
    uint32_t   n = x->type->n, before = v->type->n - n, first = IMAGE;
    bool       all = has_all_cells(v, x);
    Volume     other;

    if (volume_of(x, &other) && same_dims(x->type, v->type) &&
        same_dims(other.image->type, v->image->type))
        return other.image;
    for (uint32_t i = 0; i < IMAGE; i++) {
        if (i < HEIGHT)
            dims[i] = i < before ? one : x->type->dims[i - before];
        else
            dims[i] = all ? v->image->type->dims[i] : one;
        first = dims[i] != one && i < first ? i : first;
    }
    if (first == IMAGE && n < IMAGE)
        return x; /* one number */
    first = first == IMAGE ? WIDTH : first;
    return make_reshape_to(c, x, IMAGE - first, dims + first, x->loc);
}

/* What was made of the image, as lines, or as a volume, of type t. */
static const Expr *as_lines(Ctx *c, Map *made, const Lines *l, const Expr *image, const Type *t)
{
    int at[IMAGE] = {NONE, NONE, NONE, NONE};

    if (!image)
        return NULL;
    map_put(made, PTR_KEY(image), made);
    for (int i = 0; l && i < LINES; i++)
        if (l->axis[i] != NONE)
            at[l->axis[i]] = i;
    return make_reshape_to(c, ordered(c, image, at, image->loc), t->n, t->dims, image->loc);
}

/* ---- cell by cell -------------------------------------------------------------------------------- */

/* Its attributes name a dimension. */
static bool names_axis(const Op *op)
{
    for (uint32_t i = 0; op->attrs && i < op->attrs->nfields; i++)
        if (!strcmp(op->attrs->fields[i].name, "axis"))
            return true;
    return false;
}

/* It has a number for each channel. */
static bool is_of_channels(const Expr *e)
{
    return call_is(e, "nn.bias_add") || call_is(e, "nn.prelu");
}

/* The dimension of lines that is the image's channels. */
static int channels_of(const Lines *l)
{
    int i = LINES - 1;

    while (i >= 0 && l->axis[i] != CHANNELS)
        i--;
    return i;
}

/* Cell by cell of lines or a volume with channels in that dimension; NONE: in none. */
static bool is_cellwise(const Expr *e, int channels)
{
    const Op *op = call_op(e);

    if (!is_elementwise(op) || !op->block || call_nargs(e) > MAX_IN)
        return false;
    for (uint32_t i = 0; i < call_nargs(e); i++)
        if (!expr_has_shape(call_arg(e, i)))
            return false;
    if (is_of_channels(e))
        return (int)axis_from_front(ATTRS_OF(BiasAddAttrs, e)->axis, e->type->n) == channels;
    return !names_axis(op);
}

static bool are_beside_volume(const Expr *e, const Volume *v)
{
    for (uint32_t i = 0; i < call_nargs(e) && !is_of_channels(e); i++)
        if (!has_all_cells(v, call_arg(e, i)) && !has_one_cell(v, call_arg(e, i)))
            return false;
    return true;
}

/* Of lines; l NULL: of a volume. */
static const Expr *cells_of_image(Ctx *c, Map *made, const Lines *l, const Volume *v, const Expr *e)
{
    const Expr *args[MAX_IN];
    const void *attrs = e->u.attrs;
    bool        bias = is_of_channels(e);

    for (uint32_t i = 0; i < call_nargs(e); i++) {
        const Expr *x = call_arg(e, i);

        args[i] = bias && i ? x : l ? beside_image(c, l, x) : beside_volume(c, v, x);
        if (!args[i])
            return NULL;
    }
    if (bias) {
        BiasAddAttrs *a = ATTRS_COPY(c, BiasAddAttrs, e);
        a->axis = CHANNELS;
        attrs = a;
    }
    return as_lines(c, made, l, expr_call(c, call_op(e), call_nargs(e), args, attrs, e->loc),
                    e->type);
}

/* ---- borders, reductions --------------------------------------------------------------------- */

static const Expr *border_of_image(Ctx *c, Map *made, const Lines *l, const Expr *e)
{
    PadAttrs *a = ATTRS_COPY(c, PadAttrs, e);
    int64_t   width[2 * IMAGE] = {0};

    if (a->pad_width.n != 2 * LINES)
        return e;
    for (int i = 0; i < LINES; i++) {
        const int64_t *w = a->pad_width.at + 2 * i;

        if (l->axis[i] == NONE && (w[0] || w[1]))
            return e;
        if (l->axis[i] != NONE)
            memcpy(width + 2 * l->axis[i], w, 2 * sizeof *w);
    }
    a->pad_width = ints_dup(c, width, 2 * IMAGE);
    return as_lines(c, made, l, make1(c, "nn.pad", l->image, a, e->loc), e->type);
}

/* Of dimensions that the rest of the lines, in the image's order, does without. */
static const Expr *reduction_of_image(Ctx *c, const Lines *l, const Expr *e)
{
    ReduceAttrs *a = ATTRS_COPY(c, ReduceAttrs, e);
    int          left[LINES], last = NONE;
    int64_t      axes[LINES];
    const Expr  *y;

    if (a->exclude || !a->axis.n || a->axis.n > LINES)
        return e;
    memcpy(left, l->axis, sizeof left);
    for (uint32_t i = 0; i < a->axis.n; i++) {
        uint32_t at = axis_from_front(a->axis.at[i], LINES);

        if ((axes[i] = left[at]) == NONE)
            return e;
        left[at] = NONE;
    }
    for (int i = 0; i < LINES; i++) {
        if (left[i] != NONE && left[i] < last)
            return e;
        last = left[i] != NONE ? left[i] : last;
    }
    a->axis = ints_dup(c, axes, a->axis.n);
    a->keepdims = true;
    y = expr_call(c, call_op(e), 1, &l->image, a, e->loc);
    return y ? make_reshape_to(c, y, e->type->n, e->type->dims, e->loc) : NULL;
}

/* ---- views and transposes ------------------------------------------------------------------------ */

/* Lines that were transposed and then seen as an image: an image that is transposed, since that may
 * be done where its border is written, too.  Dimensions of 1 stand before the next of e, or first.
 */
static const Expr *transposed_image(Ctx *c, const ViewAxes *v, const Expr *e)
{
    TransposeAttrs *a = ATTRS_NEW(c, TransposeAttrs);
    const Idx      *dims[IMAGE];
    uint32_t        rank[IMAGE] = {0}, n = 0;
    int64_t         axes[IMAGE];

    for (uint32_t i = 0; i < v->n; i++) {
        const AxisPart *p = &v->part[i];

        if (i && v->part[i - 1].dim == p->dim)
            return e; /* two in one */
        for (uint32_t d = i ? v->part[i - 1].dim + 1 : 0; d <= p->dim; d++)
            rank[d] = d < p->dim && !i ? 0 : p->place + 1;
    }
    for (uint32_t d = v->n ? v->part[v->n - 1].dim + 1 : 0; d < IMAGE; d++)
        rank[d] = v->n + 1;
    for (uint32_t r = 0; r <= v->n + 1; r++)
        for (uint32_t d = 0; d < IMAGE; d++)
            if (rank[d] == r) {
                axes[d] = n;
                dims[n++] = e->type->dims[d];
            }
    a->axes = ints_dup(c, axes, IMAGE);
    return make1(c, "transpose", make_reshape_to(c, v->of, IMAGE, dims, e->loc), a, e->loc);
}

static const Expr *view(Ctx *c, const Expr *e)
{
    ViewAxes v;

    if (!expr_has_shape(e) || !view_axes(c, e, &v))
        return e;
    if (in_order(&v))
        return v.of->type == e->type ? v.of : e;
    return is_view(e) && e->type->n == IMAGE && is_one(e->type, HEIGHT) &&
                   call_arg(e, 0)->type->n == LINES
               ? transposed_image(c, &v, e)
               : e;
}

static const Expr *rewrite(Ctx *c, void *user, const Expr *was, const Expr *e)
{
    Map   *made = user;
    Lines  l;
    Volume v;

    (void)was;
    if (is_view(e) || call_is(e, "transpose"))
        return view(c, e);
    if (is_elementwise(call_op(e)) && call_nargs(e) && is_computed(made, call_arg(e, 0)))
        map_put(made, PTR_KEY(e), made);
    for (uint32_t i = 0; call_op(e) && expr_has_shape(e) && i < call_nargs(e) && i < MAX_IN; i++) {
        bool same = expr_has_shape(call_arg(e, i)) && same_dims(e->type, call_arg(e, i)->type);

        if (!lines_of(c, call_arg(e, i), &l)) {
            if (same && volume_of(call_arg(e, i), &v) && is_computed(made, v.image) &&
                is_cellwise(e, CHANNELS) && are_beside_volume(e, &v))
                return cells_of_image(c, made, NULL, &v, e);
            continue;
        }
        if (!is_computed(made, l.image))
            continue;
        if (same && is_cellwise(e, channels_of(&l)))
            return cells_of_image(c, made, &l, NULL, e);
        if (call_is(e, "nn.pad"))
            return border_of_image(c, made, &l, e);
        if (call_op(e)->attrs == &attrs_ReduceAttrs)
            return reduction_of_image(c, &l, e);
    }
    return e;
}

const Module *image_lines(Ctx *c, const Module *m)
{
    return module_rewrite(c, m, rewrite, map_new(c->scratch));
}
