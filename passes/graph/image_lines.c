/* image_lines: what is computed cell by cell of lines, as they come of images of height 1, is
 * computed of these images.
 *
 *   %1 = squeeze(nn.conv2d(%0, const @w), axis=[2]);  nn.relu(nn.bias_add(%1, const @b))
 *     -> squeeze(nn.relu(nn.bias_add(nn.conv2d(%0, const @w), const @b)), axis=[2])
 *
 * A convolution of lines is one of images (ops/nn/conv1d.c), and views around it move nothing, but
 * a view between a kernel and what follows keeps them two kernels, and blocks of channels end at
 * it. So views go behind bias, activation and sum, where they meet that of the next convolution.
 * Operands that come otherwise are seen as images, too. */
#include "passes/graph/graph.h"

#include <string.h>

enum { MAX_IN = 2 };

/* The image, N C 1 W, of which lines, N C W, are a view; NULL: they are none. */
static const Expr *image_of(const Expr *lines)
{
    const Type *t = lines->type, *image;
    int64_t     height;

    if (!is_view(lines) || !expr_has_shape(lines) || !expr_has_shape(call_arg(lines, 0)))
        return NULL;
    image = call_arg(lines, 0)->type;
    if (t->n != 3 || image->n != 4 || !type_dim(image, 2, &height) || height != 1 ||
        image->dims[0] != t->dims[0] || image->dims[1] != t->dims[1] ||
        image->dims[3] != t->dims[2])
        return NULL;
    return call_arg(lines, 0);
}

static bool is_elementwise(const Op *op)
{
    return op && (op->fusion == FUSE_ELEMWISE || op->fusion == FUSE_BROADCAST);
}

/* It computes images in blocks of channels: convolutions, pools, or what this pass made of their
 * results. */
static bool is_computed(const Map *made, const Expr *image)
{
    const Op *op = call_op(image);

    return map_get(made, PTR_KEY(image)) || (op && op->block && !is_elementwise(op));
}

/* The same numbers beside an image: lines, and what broadcasts to them, get a height of 1. */
static const Expr *beside_image(Ctx *c, const Expr *x)
{
    const Expr      *image = image_of(x);
    ExpandDimsAttrs *a;

    if (image || x->type->n < 2)
        return image ? image : x;
    a = ATTRS_NEW(c, ExpandDimsAttrs);
    a->axis = (int64_t)x->type->n - 1;
    return make1(c, "expand_dims", x, a, x->loc);
}

/* Its attributes name a dimension. */
static bool names_axis(const Op *op)
{
    for (uint32_t i = 0; op->attrs && i < op->attrs->nfields; i++)
        if (!strcmp(op->attrs->fields[i].name, "axis"))
            return true;
    return false;
}

/* Cell by cell of lines; a bias is one of channels. */
static bool is_cellwise(const Expr *e)
{
    const Op *op = call_op(e);

    if (!is_elementwise(op) || !op->block || !expr_has_shape(e) || e->type->n != 3)
        return false;
    for (uint32_t i = 0; i < call_nargs(e); i++)
        if (!expr_has_shape(call_arg(e, i)))
            return false;
    if (call_is(e, "nn.bias_add"))
        return axis_from_front(ATTRS_OF(BiasAddAttrs, e)->axis, 3) == 1;
    return !names_axis(op);
}

/* The same of images, as lines. */
static const Expr *of_image(Ctx *c, Map *made, const Expr *e)
{
    const Expr   *args[MAX_IN], *image;
    const void   *attrs = e->u.attrs;
    SqueezeAttrs *flat = ATTRS_NEW(c, SqueezeAttrs);

    for (uint32_t i = 0; i < call_nargs(e); i++)
        if (!(args[i] = beside_image(c, call_arg(e, i))))
            return NULL;
    if (call_is(e, "nn.bias_add")) {
        BiasAddAttrs *a = ATTRS_COPY(c, BiasAddAttrs, e);
        a->axis = 1;
        attrs = a;
    }
    image = expr_call(c, call_op(e), call_nargs(e), args, attrs, e->loc);
    if (!image)
        return NULL;
    map_put(made, PTR_KEY(image), made);
    flat->axis = ints_of(c, 1, 2);
    return make1(c, "squeeze", image, flat, e->loc);
}

static const Expr *rewrite(Ctx *c, void *user, const Expr *was, const Expr *e)
{
    Map *made = user;

    (void)was;
    if (!is_cellwise(e) || call_nargs(e) > MAX_IN)
        return e;
    for (uint32_t i = 0; i < call_nargs(e); i++) {
        const Expr *image = image_of(call_arg(e, i));

        if (image && is_computed(made, image))
            return of_image(c, made, e);
    }
    return e;
}

const Module *image_lines(Ctx *c, const Module *m)
{
    return module_rewrite(c, m, rewrite, map_new(c->scratch));
}
