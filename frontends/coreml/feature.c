/* What a description says of inputs and results: their element types, and dimensions, which may be
 * bounds or a list of shapes. */
#include "frontends/coreml/coreml.h"

#include <string.h>

/* A dimension that a run decides, if its bounds differ. */
static InputDim bounded(CmlImport *im, Loc loc, const char *input, uint32_t i, int64_t lo,
                        int64_t hi)
{
    hi = hi < 0 || hi > DIM_OPEN ? DIM_OPEN : hi;
    if (lo == hi)
        return (InputDim){lo, NULL};
    shapes_bound(&im->shapes, loc, intern_printf(im->c->strings, "%s.%u", input, i), lo, hi);
    return (InputDim){-1, NULL};
}

/* Bounds of dimension i of shapes that are listed. */
static void listed(const CmlShapes *list, uint32_t i, bool images, int64_t *lo, int64_t *hi)
{
    for (uint32_t k = 0; k < list->list.n; k++) {
        const CmlSize  *size = list->list.at[k];
        const CmlShape *shape = list->list.at[k];
        int64_t         v = images               ? i == 0 ? size->height : size->width
                            : i < shape->shape.n ? shape->shape.at[i]
                                                 : 1;

        *lo = k && *lo < v ? *lo : v;
        *hi = k && *hi > v ? *hi : v;
    }
}

static uint32_t array_dims(CmlImport *im, Loc loc, const char *name, const CmlArrayType *t,
                           InputDim *dims)
{
    uint32_t n = t->shape.n;

    if (t->range && t->range->list.n > n)
        n = t->range->list.n;
    for (uint32_t i = 0; i < n && i < MAX_RANK; i++) {
        int64_t lo = i < t->shape.n ? t->shape.at[i] : -1, hi = lo;

        if (t->range && i < t->range->list.n) {
            const CmlRange *r = t->range->list.at[i];

            lo = r->lo;
            hi = r->hi;
        } else if (t->enumerated && t->enumerated->list.n) {
            listed(t->enumerated, i, false, &lo, &hi);
        }
        dims[i] = bounded(im, loc, name, i, lo, hi);
    }
    return n ? n : UINT32_MAX;
}

static uint32_t image_dims(CmlImport *im, Loc loc, const char *name, const CmlImageType *t,
                           InputDim *dims)
{
    bool     grey = cml_is_grey(t);
    uint32_t at = grey ? 0 : 1;

    dims[0] = (InputDim){3, NULL};
    for (uint32_t i = 0; i < 2; i++) {
        int64_t         lo = i == 0 ? t->height : t->width, hi = lo;
        const CmlRange *r = !t->range ? NULL : i == 0 ? t->range->height : t->range->width;

        if (r) {
            lo = r->lo;
            hi = r->hi;
        } else if (t->enumerated && t->enumerated->list.n) {
            listed(t->enumerated, i, true, &lo, &hi);
        }
        dims[at + i] = bounded(im, loc, name, at + i, lo, hi);
    }
    return at + 2;
}

bool cml_is_grey(const CmlImageType *t)
{
    return t->color == CML_GREY || t->color == CML_GREY_F16;
}

bool cml_feature_dtype(const CmlFeatureType *t, DType *out)
{
    *out = t->image && t->image->color == CML_GREY_F16 ? DT_F16 : t->integer ? DT_I64 : DT_F32;
    return t->image || t->integer || t->number ||
           (t->array && (!t->array->type || cml_array_dtype(t->array->type, out)));
}

uint32_t cml_feature_dims(CmlImport *im, Loc loc, const CmlFeature *f, InputDim *dims)
{
    if (f->type->image)
        return image_dims(im, loc, f->name, f->type->image, dims);
    if (f->type->array)
        return array_dims(im, loc, f->name, f->type->array, dims);
    dims[0] = (InputDim){1, NULL};
    return 1;
}
