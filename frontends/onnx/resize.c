/* Resize and its ancestor Upsample.
 *
 * Interpolation is separable, so a tensor of any rank is resized an axis at a time, as a picture of
 * [cells before, 1, this axis, cells after]; the usual case, height and width, in one go. */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

typedef struct {
    const char *method, *coordinates, *rounding;
    double      cubic;
    bool        by_size; /* the scale is size / input, exactly */
    bool        antialias, exclude_outside;
    double      extrapolation;
    double      roi[2 * MAX_RANK]; /* of tf_crop_and_resize: from, to of each axis */
} Mode;

static const Expr *resize2d(Node *n, const Mode *m, const Expr *x, const Idx *const size[2],
                            const double scale[2])
{
    Resize2dAttrs *a = ATTRS(&n->b, Resize2dAttrs);

    a->size = dims_dup(n->b.c, size, 2);
    if (!m->by_size)
        a->scales = (Floats){2, arena_dup(n->b.c->arena, scale, 2 * sizeof *scale)};
    a->method = m->method;
    a->coordinate_transformation_mode = m->coordinates;
    a->rounding_method = m->rounding;
    a->cubic_alpha = m->cubic;
    return build1(&n->b, "image.resize2d", x, a);
}

static bool needs_weights(const Mode *m)
{
    return m->antialias || m->exclude_outside || !strcmp(m->coordinates, "tf_crop_and_resize");
}

static OnnxResizeForm form_of(const Mode *m)
{
    return (OnnxResizeForm){.method = m->method,
                            .coordinates = m->coordinates,
                            .rounding = m->rounding,
                            .cubic = m->cubic,
                            .extrapolation = m->extrapolation,
                            .antialias = m->antialias,
                            .exclude_outside = m->exclude_outside};
}

/* With scales, sizes or a crop that the run gives. */
static bool at_run(Node *n, const Mode *m, uint32_t scales, const char *policy, const int64_t *axes,
                   uint32_t k)
{
    OnnxResizeForm f = form_of(m);

    return onnx_resize_at_run(n, &f, scales, policy, axes, k);
}

static const Expr *by_weights(Node *n, const Mode *m, const Expr *x, const Idx *const *size,
                              const double *scale)
{
    OnnxResizeForm f = form_of(m);
    OnnxResizeAxis axes[MAX_RANK];

    for (uint32_t i = 0; i < expr_rank(x); i++) {
        axes[i] = (OnnxResizeAxis){
            build_dim(&n->b, x, i), 0, scale[i], {m->roi[2 * i], m->roi[2 * i + 1]}};
        if (!idx_is_const(size[i], &axes[i].out))
            return node_error(n, E_UNSUPPORTED,
                              "antialias, exclude_outside or tf_crop_and_resize "
                              "to a size that only the run knows");
        if (m->by_size && axes[i].in)
            axes[i].scale = (double)axes[i].out / (double)axes[i].in;
    }
    return onnx_resize_by_weights(n, &f, x, axes);
}

static const Expr *resize(Node *n, const Mode *m, const Expr *x, const Idx *const *size,
                          const double *scale)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    uint32_t     rank = expr_rank(x);
    const Idx   *dims[MAX_RANK], *out[MAX_RANK], *one = idx_const(A, 1);

    memcpy(dims, x->type->dims, rank * sizeof *dims);
    for (uint32_t i = 0; i < rank; i++)
        if (size[i]->hi == 0)
            return build_zeros_of(b, expr_dtype(x), rank, size);
    if (needs_weights(m))
        return by_weights(n, m, x, size, scale);
    for (uint32_t i = 0; i < rank && x; i++) {
        bool       pair = i + 2 == rank;
        const Idx *before = one, *after = one, *channels = one;

        if (scale[i] == 1 && size[i] == dims[i] && !(pair && scale[i + 1] != 1))
            continue;
        for (uint32_t k = 0; k < rank; k++) {
            out[k] = dims[k];
            if (k < i)
                before = idx_mul(A, before, dims[k]);
            else if (k > i)
                after = idx_mul(A, after, dims[k]);
        }
        if (rank == 4 && pair) {
            before = dims[0];
            channels = dims[1];
        }
        x = build_reshape_to(b, x, 4, (const Idx *[]){before, channels, dims[i], after});
        x = resize2d(n, m, x, (const Idx *[]){size[i], pair ? size[i + 1] : after},
                     (double[]){scale[i], pair ? scale[i + 1] : 1});
        out[i] = dims[i] = size[i];
        if (pair)
            out[i + 1] = dims[i + 1] = size[i + 1];
        x = build_reshape_to(b, x, rank, out);
        if (pair)
            break;
    }
    return x;
}

/* floor(d * scale) in f32, in which 0.7 times 10 is 7; of a form, by a fraction that is exact. */
static const Idx *scaled(Node *n, const Idx *d, double scale)
{
    Arith  *A = n->b.c->arith;
    int64_t v, q = 1;

    if (idx_is_const(d, &v)) {
        double size = floor((double)((float)v * (float)scale));

        return scale > 0 && size >= 0 && size < INT32_MAX ? idx_const(A, (int64_t)size) : NULL;
    }
    while (q < 1 << 12 && scale * (double)q != floor(scale * (double)q))
        q *= 2;
    if (!(scale > 0 && scale < 1 << 12) || scale * (double)q != floor(scale * (double)q) ||
        idx_usual(d) > 1 << 24)
        return NULL;
    return idx_divc(A, idx_mulc(A, d, (int64_t)(scale * (double)q)), q);
}

/* Sizes of the result from scales; *known: no form is missing. */
static bool sizes_of(Node *n, const Expr *x, const double *scale, const Idx **size, bool *known)
{
    int64_t v;

    *known = true;
    for (uint32_t i = 0; i < expr_rank(x); i++) {
        const Idx *d = expr_form(x, i);

        size[i] = scale[i] == 1 ? d : scaled(n, d, scale[i]);
        if (!size[i] && (idx_is_const(d, &v) || !(scale[i] > 0)))
            return node_error(n, E_IMPORT, "scale %g of dimension %u, which is %s", scale[i], i,
                              dim_text(n->b.c, d));
        *known &= size[i] != NULL;
    }
    return true;
}

static bool const_floats(Node *n, uint32_t i, uint32_t count, double *out)
{
    const Expr *k = node_has(n, i) ? build_fold(&n->b, n->in[i]) : NULL;

    if (!k)
        return node_error(n, E_UNSUPPORTED, "input %u has to be a constant", i);
    if (build_elems(&n->b, k) != count)
        return node_error(n, E_IMPORT, "input %u holds %lld numbers, not %u", i,
                          (long long)build_elems(&n->b, k), count);
    for (uint32_t j = 0; j < count; j++)
        out[j] = dtype_get_f(expr_dtype(k),
                             k->u.constant->data.at + (size_t)j * dtype_bytes(expr_dtype(k)));
    return true;
}

static bool method(Node *n, Mode *m)
{
    const char *mode = node_str(n, "mode", "nearest");

    m->cubic = node_float(n, "cubic_coeff_a", -0.75);
    if (!strcmp(mode, "nearest"))
        m->method = "nearest_neighbor";
    else if (!strcmp(mode, "linear") || !strcmp(mode, "bilinear"))
        m->method = "linear";
    else if (!strcmp(mode, "cubic"))
        m->method = "cubic";
    else
        return node_error(n, E_UNSUPPORTED, "mode '%s'", mode);
    return true;
}

static bool all_at_run(Node *n, const Mode *m)
{
    int64_t axes[MAX_RANK];

    for (uint32_t i = 0; i < expr_rank(n->in[0]); i++)
        axes[i] = i;
    return at_run(n, m, 1, "stretch", axes, expr_rank(n->in[0]));
}

/* Upsample, and Resize of opset 10: x_original = x_resized / scale. */
bool convert_upsample(Node *n)
{
    Mode       m = {.coordinates = "asymmetric", .rounding = "floor"};
    double     scale[MAX_RANK];
    const Idx *size[MAX_RANK];
    uint32_t   rank;
    bool       known;

    if (!node_need_rank(n, 0, 1, MAX_RANK) || !method(n, &m))
        return false;
    rank = expr_rank(n->in[0]);
    if (n->opset < 9) {
        const OnnxAttr *a = node_attr(n, "scales");

        if (!a || a->floats.data.n != rank * sizeof(float))
            return node_error(n, E_IMPORT, "scales are missing or not %u", rank);
        for (uint32_t i = 0; i < rank; i++) {
            float f;

            memcpy(&f, a->floats.data.at + i * sizeof f, sizeof f);
            scale[i] = f;
        }
    } else if (!node_known(n, 1)) {
        return all_at_run(n, &m);
    } else if (!const_floats(n, 1, rank, scale)) {
        return false;
    }
    if (!sizes_of(n, n->in[0], scale, size, &known))
        return false;
    if (!known && n->opset >= 9)
        return all_at_run(n, &m);
    return node_done(n, resize(n, &m, n->in[0], size, scale));
}

/* May cell o of the result come from (a*o + b) / d with numbers a, b, d?  Else the run computes
 * where from. */
static bool has_fixed_places(Node *n, const Mode *m, const Idx *want, const Idx *d)
{
    Arith     *A = n->b.c->arith;
    const Idx *k;
    int64_t    v;

    if (idx_is_const(want, &v) && idx_is_const(d, &v))
        return true;
    if (needs_weights(m) || !strcmp(m->coordinates, "align_corners") ||
        !strcmp(m->coordinates, "half_pixel_symmetric") ||
        (!strcmp(m->coordinates, "pytorch_half_pixel") && want->lo <= 1))
        return false;
    return !m->by_size || ((k = idx_div_exact(A, want, d)) && idx_is_const(k, &v)) ||
           ((k = idx_div_exact(A, d, want)) && idx_is_const(k, &v));
}

static bool have_fixed_places(Node *n, const Mode *m, const Idx *const *size)
{
    bool fixed = true;

    for (uint32_t i = 0; i < expr_rank(n->in[0]); i++)
        fixed &= !size[i] || has_fixed_places(n, m, size[i], expr_form(n->in[0], i));
    return fixed;
}

/* `want` of `axes`; of the others scale and size stand already. */
static bool by_sizes(Node *n, Mode *m, const char *policy, const int64_t *axes, double *scale,
                     const Idx **size, Dims want)
{
    const Expr *x = n->in[0];
    double      part[MAX_RANK], all;
    int64_t     to, from;

    m->by_size = !strcmp(policy, "stretch");
    for (uint32_t i = 0; i < want.n; i++) {
        const Idx *d = expr_form(x, (uint32_t)axes[i]);

        if (want.at[i]->lo < 1 || idx_usual(want.at[i]) > INT32_MAX || d->lo < 1)
            return node_error(n, E_IMPORT, "size %s of axis %lld", dim_text(n->b.c, want.at[i]),
                              (long long)axes[i]);
        scale[axes[i]] = want.at[i] == d ? 1 : 2; /* not by scale: only whether it is 1 counts */
        size[axes[i]] = want.at[i];
        if (idx_is_const(want.at[i], &to) && idx_is_const(d, &from))
            scale[axes[i]] = part[i] = (double)to / (double)from;
        else if (!m->by_size)
            return at_run(n, m, 2, policy, axes, want.n);
    }
    if (m->by_size && !have_fixed_places(n, m, size))
        return at_run(n, m, 2, policy, axes, want.n);
    all = part[0];
    for (uint32_t i = 1; i < want.n && !m->by_size; i++)
        all = !strcmp(policy, "not_larger") ? fmin(all, part[i]) : fmax(all, part[i]);
    for (uint32_t i = 0; i < want.n && !m->by_size; i++) {
        scale[axes[i]] = all;
        size[axes[i]] =
            idx_const(n->b.c->arith,
                      (int64_t)floor(all * (double)build_dim(&n->b, x, (uint32_t)axes[i]) + 0.5));
    }
    return node_done(n, resize(n, m, x, size, scale));
}

/* From and to of each axis, as parts of its extent; of the axes that are named, or all. */
static bool crop_of(Node *n, uint32_t rank, const int64_t *axes, uint32_t k, double *roi)
{
    double given[2 * MAX_RANK];

    for (uint32_t i = 0; i < rank; i++) {
        roi[2 * i] = 0;
        roi[2 * i + 1] = 1;
    }
    if (!const_floats(n, 1, 2 * k, given))
        return false;
    for (uint32_t i = 0; i < k; i++) {
        roi[2 * axes[i]] = given[i];
        roi[2 * axes[i] + 1] = given[k + i];
    }
    return true;
}

/* Scales and sizes are for all axes, or those of the attribute `axes`. */
bool convert_resize(Node *n)
{
    static const char *const coordinates[] = {
        "half_pixel",           "pytorch_half_pixel",   "align_corners",      "asymmetric",
        "tf_half_pixel_for_nn", "half_pixel_symmetric", "tf_crop_and_resize", NULL};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil", NULL};
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller", NULL};
    Mode                     m = {0};
    double                   scale[MAX_RANK], part[MAX_RANK];
    const Idx               *size[MAX_RANK];
    int64_t                  axes[MAX_RANK];
    uint32_t                 rank, k;
    const Expr              *x;
    const char              *policy;
    bool                     crop, known;
    Ints                     ax;
    Dims                     v;

    if (!node_need_rank(n, 0, 1, MAX_RANK) || !method(n, &m) ||
        !node_choice(n, "coordinate_transformation_mode", coordinates, &m.coordinates) ||
        !node_choice(n, "nearest_mode", roundings, &m.rounding) ||
        !node_choice(n, "keep_aspect_ratio_policy", policies, &policy))
        return false;
    m.extrapolation = node_float(n, "extrapolation_value", 0);
    m.exclude_outside = node_int(n, "exclude_outside", 0) && *m.method == 'c';
    m.antialias = node_int(n, "antialias", 0) && *m.method != 'n';
    x = n->in[0];
    k = rank = expr_rank(x);
    for (uint32_t i = 0; i < rank; i++) {
        axes[i] = i;
        scale[i] = 1;
        size[i] = expr_form(x, i);
    }
    if (node_ints(n, "axes", &ax)) {
        if (!node_axes(n, ax, rank, axes))
            return false;
        k = ax.n;
    }
    crop = !strcmp(m.coordinates, "tf_crop_and_resize");
    if ((crop && !node_known(n, 1)) || !node_known(n, 2) || !node_known(n, 3))
        return at_run(n, &m, 2, policy, axes, k);
    if (crop && !crop_of(n, rank, axes, k, m.roi))
        return false;
    if (node_has(n, 2) && !expr_empty(n->in[2])) {
        if (!const_floats(n, 2, k, part))
            return false;
        for (uint32_t i = 0; i < k; i++)
            scale[axes[i]] = part[i];
        if (!sizes_of(n, x, scale, size, &known))
            return false;
        if (!known || !have_fixed_places(n, &m, size))
            return at_run(n, &m, 2, policy, axes, k);
        return node_done(n, resize(n, &m, x, size, scale));
    }
    if (!node_forms(n, 3, &v))
        return false;
    if (v.n != k)
        return node_error(n, E_IMPORT, "%u sizes for %u axes", v.n, k);
    return by_sizes(n, &m, policy, axes, scale, size, v);
}
