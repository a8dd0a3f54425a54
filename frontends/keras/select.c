/* Functions of keras.ops that put cells in another order, choose among them, or put some around. */
#include "frontends/keras/keras.h"

#include <string.h>

static bool axis_of(KerasNode *n, const Expr *x, int64_t fallback, uint32_t *out)
{
    Ints list;

    if (!keras_list(n, "axis", &list))
        return false;
    if (list.n > 1)
        return keras_error(n, E_UNSUPPORTED, "several axes");
    return keras_axis(n, list.n ? list.at[0] : fallback, expr_rank(x), out);
}

/* ---- order ------------------------------------------------------------------------------------------ */

bool keras_op_moveaxis(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);
    int64_t     from[MAX_RANK], to[MAX_RANK], axes[MAX_RANK];
    uint32_t    count, as_many, rank, next = 0;
    Ints        source, destination;

    if (!x || !keras_list(n, "source", &source) || !keras_list(n, "destination", &destination) ||
        !build_axes(&n->b, source, expr_rank(x), 0, &count, from) ||
        !build_axes(&n->b, destination, expr_rank(x), 0, &as_many, to))
        return false;
    if (count != as_many)
        return keras_error(n, E_IMPORT, "%u axes move to %u", count, as_many);
    rank = expr_rank(x);
    for (uint32_t i = 0; i < rank; i++) {
        bool placed = false;

        for (uint32_t k = 0; k < count; k++)
            if (to[k] == i) {
                axes[i] = from[k];
                placed = true;
            }
        for (bool taken = !placed; taken;) { /* the next one that does not move */
            taken = false;
            for (uint32_t k = 0; k < count; k++)
                taken |= from[k] == next;
            if (!taken)
                axes[i] = next;
            next++;
        }
    }
    return keras_done(n, build_transpose(&n->b, x, rank, axes));
}

bool keras_op_ravel(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);
    const Idx  *cells = x ? type_cells(n->b.c, x->type) : NULL;

    return x && keras_done(n, build_reshape_to(&n->b, x, 1, &cells));
}

bool keras_op_unstack(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0), **parts;
    uint32_t    axis;
    int64_t     count;

    if (!x || !keras_axis(n, keras_int(n, "axis", 0), expr_rank(x), &axis))
        return false;
    count = build_dim(&n->b, x, axis);
    if (count < 1 || count > 1 << 16)
        return keras_error(n, E_UNSUPPORTED, "%lld parts", (long long)count);
    parts = NEW_ARRAY(n->b.c->arena, const Expr *, (size_t)count);
    if (!build_unstack(&n->b, x, axis, (uint32_t)count, parts))
        return false;
    for (int64_t i = 0; i < count; i++)
        if (!keras_done(n, parts[i]))
            return false;
    return true;
}

/* Sort, Argsort */
bool keras_op_sort(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);
    SortAttrs  *a = ATTRS(&n->b, SortAttrs);
    uint32_t    axis;

    if (!x || !axis_of(n, x, -1, &axis))
        return false;
    a->axis = axis;
    a->dtype = DT_I32;
    return keras_done(n, build1(&n->b, n->row->relay, x, a));
}

/* Cells go `shift` further along an axis, those behind the end come first. */
bool keras_op_roll(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_op_arg(n, 0), *parts[2];
    uint32_t     axis;
    int64_t      cells, shift = keras_int(n, "shift", 0);

    if (!x || !keras_json(n, "axis"))
        return x && keras_error(n, E_UNSUPPORTED, "no axis");
    if (!axis_of(n, x, 0, &axis) || (cells = build_dim(b, x, axis)) < 1)
        return false;
    shift = ((shift % cells) + cells) % cells;
    parts[0] = build_slice(b, x, axis, cells - shift, cells);
    parts[1] = build_slice(b, x, axis, 0, cells - shift);
    return keras_done(n, shift ? build_concat(b, 2, parts, axis) : x);
}

/* ---- choice ----------------------------------------------------------------------------------------- */

bool keras_op_take_along_axis(KerasNode *n)
{
    const Expr  *x = keras_op_arg(n, 0), *at = x ? keras_op_arg(n, 1) : NULL;
    GatherAttrs *a = ATTRS(&n->b, GatherAttrs);
    uint32_t     axis;

    if (!at || !keras_json(n, "axis"))
        return at && keras_error(n, E_UNSUPPORTED, "no axis");
    if (!axis_of(n, x, 0, &axis))
        return false;
    a->axis = axis;
    return keras_done(n, build2(&n->b, "gather", x, at, a));
}

/* The largest of the last axis, and where they are. */
bool keras_op_top_k(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_op_arg(n, 0), *all;
    TopKAttrs   *a = ATTRS(b, TopKAttrs);
    int64_t      k = keras_int(n, "k", 1);

    (void)keras_bool(n, "sorted", true);
    if (!x)
        return false;
    if (expr_rank(x) < 1 || k < 1 || k > build_dim(b, x, expr_rank(x) - 1))
        return keras_error(n, E_IMPORT, "the largest %lld of %s", (long long)k,
                           type_text(b->c, x->type));
    a->k = k;
    a->axis = expr_rank(x) - 1;
    a->dtype = DT_I32;
    all = build1(b, "topk", x, a);
    return all && keras_done(n, build_proj(b, all, 0)) && keras_done(n, build_proj(b, all, 1));
}

/* Tril, Triu */
bool keras_op_triangle(KerasNode *n)
{
    const Expr *x = keras_op_arg(n, 0);
    TriluAttrs *a = ATTRS(&n->b, TriluAttrs);

    a->upper = !strcmp(n->row->name, "Triu");
    a->k = keras_int(n, "k", 0);
    return x && keras_done(n, build1(&n->b, "trilu", x, a));
}

/* ---- around ----------------------------------------------------------------------------------------- */

/* pad_width: a number, two for all, or two for each dimension. */
static bool read_pads(const KerasNode *n, uint32_t rank, int64_t *pads)
{
    const json_t *all = keras_json(n, "pad_width");

    for (uint32_t i = 0; i < 2 * rank; i++) {
        const json_t *of = json_is_array(all) && json_is_array(json_array_get(all, 0))
                               ? json_array_get(all, json_array_size(all) == 1 ? 0 : i / 2)
                               : all;
        const json_t *x =
            json_is_array(of) ? json_array_get(of, json_array_size(of) == 1 ? 0 : i % 2) : of;

        if (!json_int(x, &pads[i]) || pads[i] < 0 || pads[i] > INT32_MAX)
            return keras_error(n, E_IMPORT, "pad_width is not two numbers for each dimension");
    }
    return true;
}

bool keras_op_pad(KerasNode *n)
{
    const Expr     *x = keras_op_arg(n, 0);
    const KerasArg *value = keras_arg(n, 1, "constant_values");
    const char     *mode = keras_text(n, "mode", "constant");
    double          v = 0;
    int64_t         pads[2 * MAX_RANK];

    if (!x || !read_pads(n, expr_rank(x), pads))
        return false;
    if (value && value->kind == KERAS_JSON && json_is_number(value->json))
        v = json_number_value(value->json);
    else if (value && !(value->kind == KERAS_JSON && json_is_null(value->json)))
        return keras_error(n, E_UNSUPPORTED, "constant_values is no number");
    if (!strcmp(mode, "reflect") || !strcmp(mode, "symmetric"))
        return keras_done(n, build_mirror_pad(&n->b, x, pads, *mode == 's'));
    if (strcmp(mode, "constant") != 0)
        return keras_error(n, E_UNSUPPORTED, "mode '%s'", mode);
    return keras_done(n, build_pad(&n->b, x, pads, v, "constant"));
}
