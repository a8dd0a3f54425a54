/* What a model declares of its values, against what they are.
 *
 * Outputs of graphs, value_info, and constants that are listed as inputs carry a type.  A dimension
 * that is a name, negative or not there fits every number; where the user gave an input another
 * size than the model's, only element types and ranks are compared. */
#include "frontends/onnx/onnx.h"

#include <string.h>

Map *onnx_declared(Import *im, const PbMsgs *values, const PbMsgs *outputs)
{
    Map *m = map_new(im->c->arena);

    for (uint32_t i = 0; i < values->n + (outputs ? outputs->n : 0); i++) {
        const OnnxValue *v = i < values->n ? values->at[i] : outputs->at[i - values->n];
        const char      *name = intern(im->c->strings, onnx_text(v->name));

        if (v->type && v->type->tensor)
            map_put(m, PTR_KEY(name), v->type->tensor);
    }
    return m;
}

static bool dim_fits(const Import *im, const OnnxDim *d, const Type *is, uint32_t i)
{
    int64_t have;

    return im->reshaped || !d->has_value || d->value < 0 || !type_dim(is, i, &have) ||
           d->value == have;
}

/* One number, of whatever rank?  PaddlePaddle's exporter does not tell [] from [1]. */
static bool single(const OnnxTensorType *t, const Type *is)
{
    int64_t cells;

    for (uint32_t i = 0; i < t->shape->dims.n; i++) {
        const OnnxDim *d = t->shape->dims.at[i];
        if (!d->has_value || d->value != 1)
            return false;
    }
    return type_elems(is, &cells) && cells == 1;
}

static bool fits(const Import *im, const OnnxTensorType *t, const Type *is)
{
    DType dtype;
    bool  same = !onnx_dtype(t->elem_type, &dtype) || dtype_eq(dtype, is->dtype);

    if (t->shape && t->shape->dims.n != is->n)
        return same && single(t, is);
    for (uint32_t i = 0; same && t->shape && i < is->n; i++)
        same = dim_fits(im, t->shape->dims.at[i], is, i);
    return same;
}

/* "Tensor[(2, N, ?), f32]" */
static const char *declared_text(Ctx *c, const OnnxTensorType *t)
{
    StrBuf s = strbuf(c->arena);
    DType  dtype;

    str_add(&s, "Tensor[(");
    for (uint32_t i = 0; t->shape && i < t->shape->dims.n; i++) {
        const OnnxDim *d = t->shape->dims.at[i];

        str_add(&s, i ? ", " : "");
        if (d->has_value && d->value >= 0)
            str_printf(&s, "%lld", (long long)d->value);
        else
            str_add(&s, d->param && *d->param ? d->param : "?");
    }
    str_printf(&s, "%s), %s]", t->shape ? "" : "..",
               onnx_dtype(t->elem_type, &dtype) ? dtype_text(c, dtype)
                                                : onnx_dtype_text(t->elem_type));
    return s.at;
}

void onnx_check_declared(Import *im, Loc loc, const char *what, const OnnxTensorType *t,
                         const Type *is)
{
    if (!t || is->kind != TYPE_TENSOR || fits(im, t, is) ||
        map_find(im->contradicted, PTR_KEY(t), NULL))
        return;
    map_put(im->contradicted, PTR_KEY(t), NULL);
    diag_warn(im->c->diags, W_DECLARED_SHAPE, loc, "%s is %s, but declared as %s", what,
              type_text(im->c, is), declared_text(im->c, t));
}
