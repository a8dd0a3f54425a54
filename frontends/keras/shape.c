/* Shapes: what moves cells, cuts or adds some, or writes them several times. */
#include "frontends/keras/keras.h"

#include <string.h>

/* The order of dimensions after another transposition; none where the two undo each other. */
static const Expr *permuted(const Build *b, const Expr *x, const int64_t *axes)
{
    uint32_t rank = expr_rank(x);
    int64_t  all[MAX_RANK];
    bool     same = true;

    if (call_is(x, "transpose") && ((const TransposeAttrs *)x->u.attrs)->axes.n == rank) {
        const TransposeAttrs *a = x->u.attrs;

        for (uint32_t i = 0; i < rank; i++)
            same &= (all[i] = a->axes.at[axes[i]]) == i;
        return same ? call_arg(x, 0) : build_transpose(b, call_arg(x, 0), rank, all);
    }
    return build_transpose(b, x, rank, axes);
}

/* Cells in the file's order; of channels_first in that of channels_last. */
bool keras_flatten(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_in(n);
    const Idx   *dims[2], *cells;

    if (!x)
        return false;
    if (keras_channels_first(n) && expr_rank(x) >= 3)
        x = build_channels_last(b, x);
    if (expr_rank(x) == 0)
        return keras_done(n, build_reshape(b, x, 1, (int64_t[]){1}));
    cells = idx_const(b->c->arith, 1);
    for (uint32_t i = 1; i < expr_rank(x); i++)
        cells = idx_mul(b->c->arith, cells, expr_form(x, i));
    dims[0] = expr_form(x, 0);
    dims[1] = cells;
    return keras_done(n, build_reshape_to(b, x, 2, dims));
}

/* One of the numbers may be -1: what is left. */
bool keras_reshape(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_in(n);
    const Idx   *dims[MAX_RANK + 1], *rest, *known;
    uint32_t     open = UINT32_MAX;
    Ints         shape;

    if (!x || !keras_list(n, "target_shape", &shape) || !keras_rank(n, x, 1, MAX_RANK))
        return false;
    known = idx_const(b->c->arith, 1);
    rest = known;
    for (uint32_t i = 1; i < expr_rank(x); i++)
        rest = idx_mul(b->c->arith, rest, expr_form(x, i));
    dims[0] = expr_form(x, 0);
    for (uint32_t i = 0; i < shape.n; i++) {
        if (shape.at[i] < -1 || (shape.at[i] == -1 && open != UINT32_MAX))
            return keras_error(n, E_IMPORT, "a target_shape with %lld", (long long)shape.at[i]);
        if (shape.at[i] == -1)
            open = i;
        else
            known = idx_mul(b->c->arith, known, dims[1 + i] = idx_const(b->c->arith, shape.at[i]));
    }
    if (shape.n + 1 > MAX_RANK)
        return keras_error(n, E_UNSUPPORTED, "a target_shape of %u dimensions", shape.n);
    if (open != UINT32_MAX && !(dims[1 + open] = idx_div_exact(b->c->arith, rest, known)))
        return keras_error(n, E_IMPORT, "data %s do not fit the target_shape",
                           type_text(b->c, x->type));
    return keras_done(n, build_reshape_to(b, x, shape.n + 1, dims));
}

bool keras_permute(KerasNode *n)
{
    const Expr *x = keras_in(n);
    bool        seen[MAX_RANK] = {false};
    int64_t     axes[MAX_RANK] = {0};
    Ints        dims;

    if (!x || !keras_list(n, "dims", &dims))
        return false;
    if (dims.n + 1 != expr_rank(x))
        return keras_error(n, E_IMPORT, "dims of %u numbers for data %s", dims.n,
                           type_text(n->b.c, x->type));
    for (uint32_t i = 0; i < dims.n; i++) {
        if (dims.at[i] < 1 || dims.at[i] > dims.n || seen[dims.at[i]])
            return keras_error(n, E_IMPORT, "dims with %lld", (long long)dims.at[i]);
        seen[dims.at[i]] = true;
        axes[1 + i] = dims.at[i];
    }
    return keras_done(n, permuted(&n->b, x, axes));
}

bool keras_repeat_vector(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_in(n);
    int64_t      count = keras_int(n, "n", 1);

    if (!keras_rank(n, x, 2, 2))
        return false;
    if (count < 1 || count > INT32_MAX)
        return keras_error(n, E_IMPORT, "n is %lld", (long long)count);
    return keras_done(
        n, build_broadcast_to(
               b, build_expand_dims(b, x, 1, 1), 3,
               (const Idx *[]){expr_form(x, 0), idx_const(b->c->arith, count), expr_form(x, 1)}));
}

/* ---- borders ---------------------------------------------------------------------------------------- */

static uint32_t dims_of(const KerasNode *n)
{
    return strstr(n->layer->class_name, "1D") ? 1 : strstr(n->layer->class_name, "2D") ? 2 : 3;
}

/* A number for all, one for each dimension, or two for each: before and behind. */
static bool read_borders(const KerasNode *n, const char *name, uint32_t dims, int64_t (*out)[2])
{
    const json_t *x = keras_json(n, name), *items = json_object_get(x, "items");
    bool          ok = true;

    x = items ? items : x;
    if (json_is_array(x) && json_array_size(x) != (dims == 1 ? 2 : dims))
        return keras_error(n, E_IMPORT, "setting '%s' has %zu numbers", name, json_array_size(x));
    for (uint32_t i = 0; i < dims; i++) {
        const json_t *d = dims == 1 || !json_is_array(x) ? x : json_array_get(x, i);
        const json_t *pair = json_object_get(d, "items");

        d = pair ? pair : d;
        for (uint32_t k = 0; k < 2; k++) {
            out[i][k] = 1;
            if (d)
                ok = ok && json_int(json_is_array(d) ? json_array_get(d, k) : d, &out[i][k]);
            ok = ok && out[i][k] >= 0 && out[i][k] <= INT32_MAX;
        }
    }
    return ok || keras_error(n, E_IMPORT, "setting '%s' has something else than numbers", name);
}

bool keras_zero_padding(KerasNode *n)
{
    uint32_t    dims = dims_of(n);
    const Expr *x = keras_image(n, dims);
    int64_t     borders[3][2], pads[10] = {0};

    if (!x || !read_borders(n, "padding", dims, borders))
        return false;
    for (uint32_t i = 0; i < dims; i++) {
        pads[4 + 2 * i] = borders[i][0];
        pads[5 + 2 * i] = borders[i][1];
    }
    return keras_image_done(n, build_pad(&n->b, x, pads, 0, "constant"));
}

bool keras_cropping(KerasNode *n)
{
    Arith      *A = n->b.c->arith;
    uint32_t    dims = dims_of(n);
    const Expr *x = keras_image(n, dims);
    int64_t     borders[3][2];

    if (!x || !read_borders(n, "cropping", dims, borders))
        return false;
    for (uint32_t i = 0; x && i < dims; i++) {
        const Idx *end = idx_addc(A, expr_form(x, 2 + i), -borders[i][1]);

        if (idx_addc(A, end, -borders[i][0])->lo < 0)
            return keras_error(n, E_IMPORT, "it cuts more than there is: %s",
                               type_text(n->b.c, x->type));
        if (borders[i][0] || borders[i][1])
            x = build_slice_to(&n->b, x, 2 + i, idx_const(A, borders[i][0]), end);
    }
    return keras_image_done(n, x);
}

/* ---- larger ones ------------------------------------------------------------------------------------ */

static const Expr *repeated(const Build *b, const Expr *x, int64_t axis, int64_t times)
{
    RepeatAttrs *a = ATTRS(b, RepeatAttrs);

    a->repeats = times;
    a->axis = axis;
    return times == 1 ? x : build1(b, "repeat", x, a);
}

bool keras_up_sampling(KerasNode *n)
{
    const Build   *b = &n->b;
    uint32_t       dims = dims_of(n);
    const Expr    *x = keras_image(n, dims);
    const char    *how = keras_text(n, "interpolation", "nearest");
    Resize2dAttrs *a = ATTRS(b, Resize2dAttrs);
    bool           linear = !strcmp(how, "bilinear");
    int64_t        times[3];
    const Idx     *size[2];

    if (!x || !keras_ints(n, "size", dims, 2, 1, times))
        return false;
    if (!linear && strcmp(how, "nearest") != 0)
        return keras_error(n, E_UNSUPPORTED, "interpolation '%s'", how);
    if (dims != 2) {
        for (uint32_t i = 0; x && i < dims; i++)
            x = repeated(b, x, 2 + i, times[i]);
        return keras_image_done(n, x);
    }
    for (uint32_t i = 0; i < 2; i++)
        size[i] = idx_mulc(b->c->arith, expr_form(x, 2 + i), times[i]);
    a->size = dims_dup(b->c, size, 2);
    a->method = linear ? "linear" : "nearest_neighbor";
    a->coordinate_transformation_mode = linear ? "half_pixel" : "asymmetric";
    a->rounding_method = linear ? "round_prefer_floor" : "floor";
    return keras_image_done(n, build1(b, "image.resize2d", x, a));
}
