/* nn.conv1d is nn.conv2d of height one.              %2 = nn.conv1d(%0, %1, strides=[2]);
 *
 * Data are NCW, weights OIW.  The reshapes around it move nothing, and the convolution gets the
 * layouts and schedules of the larger one. */
#include "ops/common.h"

#include <string.h>

static Conv2dAttrs *as_2d(Ctx *c, const Conv1dAttrs *a)
{
    Conv2dAttrs *b = NEW_ATTRS(c, Conv2dAttrs);

    b->strides = ints_of(c, 2, 1, (int)a->strides.at[0]);
    b->dilation = ints_of(c, 2, 1, (int)a->dilation.at[0]);
    b->padding = ints_of(c, 4, 0, (int)a->padding.at[0], 0, (int)a->padding.at[1]);
    b->kernel_size = ints_of(c, 2, a->kernel_size.at[0] ? 1 : 0, (int)a->kernel_size.at[0]);
    b->groups = a->groups;
    b->channels = a->channels;
    b->out_dtype = a->out_dtype;
    return b;
}

/* A dimension of 1 before the last. */
static const Type *taller(Ctx *c, const Type *t)
{
    const Idx *dims[4] = {t->dims[0], t->dims[1], idx_const(c->arith, 1), t->dims[2]};

    return type_tensor(c, t->dtype, 4, dims);
}

const Type *rel_conv1d(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const Conv1dAttrs *a = attrs;
    const Type        *in2[2], *t;

    if (!rel_tensors(c, loc, in, nin) || !rel_rank(c, loc, in[0], 3, "data") ||
        !rel_rank(c, loc, in[1], 3, "weight") || !rel_ints(c, loc, "strides", a->strides, 1, 1) ||
        !rel_ints(c, loc, "dilation", a->dilation, 1, 1) ||
        !rel_ints(c, loc, "padding", a->padding, 2, 0) ||
        !rel_ints(c, loc, "kernel_size", a->kernel_size, 1, 0))
        return NULL;
    if (strcmp(a->data_layout, "NCW") || strcmp(a->kernel_layout, "OIW"))
        return error_at(c, E_TYPE, loc, "layouts '%s' and '%s' are not NCW and OIW", a->data_layout,
                        a->kernel_layout);
    in2[0] = taller(c, in[0]);
    in2[1] = taller(c, in[1]);
    t = op_table.at[OP_NN_CONV2D].rel(c, loc, as_2d(c, a), in2, 2);
    if (!t)
        return NULL;
    return rel_tensor(c, loc, t->dtype, 3, (const Idx *[]){t->dims[0], t->dims[1], t->dims[3]});
}

const Expr *expand_conv1d(Ctx *c, const Expr *e)
{
    ExpandDimsAttrs *high = NEW_ATTRS(c, ExpandDimsAttrs);
    SqueezeAttrs    *flat = NEW_ATTRS(c, SqueezeAttrs);

    high->axis = 2;
    flat->axis = ints_of(c, 1, 2);
    const Expr *x = call1(c, "expand_dims", call_arg(e, 0), high, e->loc);
    const Expr *w = call1(c, "expand_dims", call_arg(e, 1), high, e->loc);
    const Expr *y = call2(c, "nn.conv2d", x, w, as_2d(c, ATTRS(Conv1dAttrs, e)), e->loc);

    return call1(c, "squeeze", y, flat, e->loc);
}
