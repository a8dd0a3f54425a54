/* Parts of tensors, and repeating or padding them. */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

bool convert_concat(Node *n)
{
    const Expr **xs = NEW_ARRAY(n->b.c->arena, const Expr *, n->nin + 1);
    int64_t      along = node_int(n, "axis", n->opset < 4 ? 1 : 0);
    uint32_t     axis, k = 0;

    for (uint32_t i = 0; i < n->nin || i == 0; i++)
        if (!node_need_rank(n, i, 1, MAX_RANK))
            return false;
    if (along >= -(int64_t)expr_rank(n->in[0]) &&
        !node_agree_beside(n, (uint32_t)(along < 0 ? along + expr_rank(n->in[0]) : along)))
        return false;
    for (uint32_t i = 0; i < n->nin; i++) {
        /* An empty piece adds nothing; it may have another rank in old models. */
        if (!expr_empty(n->in[i]))
            xs[k++] = n->in[i];
    }
    if (k == 0) /* none has cells: the result has a shape nevertheless */
        memcpy(xs, n->in, (k = n->nin) * sizeof *xs);
    return node_axis(n, along, expr_rank(xs[0]), &axis) &&
           node_done(n, build_concat(&n->b, k, xs, axis));
}

/* Where the parts after the first begin: sizes that are given, or equal ones, the last one smaller
 * if they do not divide. */
static bool split_at(Node *n, const Idx *extent, bool given, Dims sizes, const Idx **at)
{
    Arith     *A = n->b.c->arith;
    const Idx *sum = idx_const(A, 0);

    for (uint32_t i = 0; i < n->nout; i++) {
        const Idx *left = idx_sub(A, extent, sum);
        const Idx *part =
            given ? sizes.at[i] : idx_divc(A, idx_addc(A, extent, n->nout - 1), n->nout);

        if (part->lo < 0 || part->lo > extent->hi)
            return node_error(n, E_IMPORT, "part %u has %s of %s", i, dim_text(n->b.c, part),
                              dim_text(n->b.c, extent));
        if (!given)
            part = i + 1 == n->nout ? left : idx_min(A, part, left);
        at[i] = sum = idx_add(A, sum, part);
    }
    return sum == extent || node_error(n, E_IMPORT, "the parts hold %s of %s",
                                       dim_text(n->b.c, sum), dim_text(n->b.c, extent));
}

bool convert_split(Node *n)
{
    const Build *b = &n->b;
    SplitAttrs  *a = ATTRS(b, SplitAttrs);
    const Idx  **at = NEW_ARRAY(b->c->arena, const Idx *, n->nout + 1);
    bool         given;
    const Expr  *parts;
    uint32_t     axis;
    Ints         v = {0};
    Dims         sizes;

    if (!node_need_rank(n, 0, 1, MAX_RANK) ||
        !node_axis(n, node_int(n, "axis", 0), expr_rank(n->in[0]), &axis))
        return false;
    if (!node_known(n, 1))
        return split_at_run(n, axis);
    given = node_ints(n, "split", &v);
    sizes = dims_of_i64(b->c, v.at, v.n);
    if (node_has(n, 1)) {
        if (!node_forms(n, 1, &sizes))
            return false;
        given = true;
    }
    if (n->nout == 0 || (given && sizes.n != n->nout))
        return node_error(n, E_IMPORT, "%u sizes for %u outputs", sizes.n, n->nout);
    if (node_int(n, "num_outputs", n->nout) != n->nout)
        return node_error(n, E_IMPORT, "num_outputs is %lld, but it has %u outputs",
                          (long long)node_int(n, "num_outputs", 0), n->nout);
    if (!split_at(n, expr_form(n->in[0], axis), given, sizes, at))
        return false;
    if (n->nout == 1)
        return node_done(n, n->in[0]);
    a->axis = axis;
    a->indices = dims_dup(b->c, at, n->nout - 1);
    parts = build1(b, "split", n->in[0], a);
    for (uint32_t i = 0; i < n->nout; i++)
        if (!(n->out[i] = build_proj(b, parts, i)))
            return false;
    return true;
}

/* Position x of a dimension: from its end if it is below 0, then clamped; NULL with an error if it
 * may be either. */
static const Idx *position(Node *n, const Idx *x, const Idx *dim, const Idx *lo, const Idx *hi)
{
    Arith  *A = n->b.c->arith;
    int64_t v, far = INT64_C(1) << 40;

    if (idx_is_const(x, &v) && (v < -far || v > far))
        x = idx_const(A, v < 0 ? -far : far);
    if (x->lo < 0 && x->hi >= 0)
        return node_error(n, E_DIM, "position %s may be below 0 or not", dim_text(n->b.c, x));
    return idx_max(A, lo, idx_min(A, x->hi < 0 ? idx_add(A, x, dim) : x, hi));
}

static bool slice(Node *n, Dims starts, Dims ends, Ints axes, Ints steps)
{
    const Build       *b = &n->b;
    Arith             *A = b->c->arith;
    StridedSliceAttrs *a = ATTRS(b, StridedSliceAttrs);
    int64_t            ax[MAX_RANK];
    const Idx         *begin[MAX_RANK], *end[MAX_RANK];
    bool               all = true;
    const Expr        *x = n->in[0];

    if (starts.n != ends.n || starts.n != axes.n || starts.n != steps.n)
        return node_error(n, E_IMPORT, "starts, ends, axes and steps differ in number");
    if (!node_axes(n, axes, expr_rank(x), ax))
        return false;
    for (uint32_t i = 0; i < starts.n; i++) {
        const Idx *d = expr_form(x, (uint32_t)ax[i]), *last = idx_addc(A, d, -1);
        const Idx *none = idx_const(A, -1), *first = idx_const(A, 0);
        int64_t    step = steps.at[i];
        bool       up = step > 0;

        if (step == 0 || step < -INT32_MAX || step > INT32_MAX)
            return node_error(n, E_IMPORT, "step %lld", (long long)step);
        if (!(begin[i] = position(n, starts.at[i], d, first, up ? d : last)) ||
            !(end[i] = position(n, ends.at[i], d, up ? first : none, up ? d : last)))
            return false;
        if (up)
            end[i] = idx_max(A, begin[i], end[i]);
        all &= begin[i] == first && end[i] == d && step == 1;
        if (end[i] == none) /* before the first, which -1 does not say */
            end[i] = idx_sub(A, none, d);
        else if (end[i]->lo < 0)
            return node_error(n, E_DIM, "position %s may be below 0 or not",
                              dim_text(b->c, end[i]));
    }
    if (all)
        return node_done(n, x);
    a->axes = ints_dup(b->c, ax, starts.n);
    a->begin = dims_dup(b->c, begin, starts.n);
    a->end = dims_dup(b->c, end, starts.n);
    a->strides = build_steps(b, steps.at, steps.n);
    return node_done(n, build1(b, "strided_slice", x, a));
}

static Ints counting(Ctx *c, uint32_t n, int64_t from, int64_t step)
{
    int64_t *v = NEW_ARRAY(c->arena, int64_t, n + 1);

    for (uint32_t i = 0; i < n; i++)
        v[i] = from + i * step;
    return (Ints){n, v};
}

bool convert_slice_attr(Node *n)
{
    Ints starts, ends, axes;

    if (!node_need_rank(n, 0, 1, MAX_RANK))
        return false;
    if (!node_ints(n, "starts", &starts) || !node_ints(n, "ends", &ends))
        return node_error(n, E_IMPORT, "starts or ends are missing");
    if (!node_ints(n, "axes", &axes))
        axes = counting(n->b.c, starts.n, 0, 1);
    return slice(n, dims_of_i64(n->b.c, starts.at, starts.n), dims_of_i64(n->b.c, ends.at, ends.n),
                 axes, counting(n->b.c, starts.n, 1, 0));
}

bool convert_slice(Node *n)
{
    Dims starts, ends;
    Ints axes, steps;

    if (!node_need_rank(n, 0, 1, MAX_RANK))
        return false;
    for (uint32_t i = 1; i < 5; i++)
        if (!node_known(n, i))
            return slice_at_run(n);
    if (!node_forms(n, 1, &starts) || !node_forms(n, 2, &ends))
        return false;
    axes = counting(n->b.c, starts.n, 0, 1);
    steps = counting(n->b.c, starts.n, 1, 0);
    if ((node_has(n, 3) && !node_const_ints(n, 3, &axes)) ||
        (node_has(n, 4) && !node_const_ints(n, 4, &steps)))
        return false;
    return slice(n, starts, ends, axes, steps);
}

bool convert_trilu(Node *n)
{
    TriluAttrs *a = ATTRS(&n->b, TriluAttrs);

    if (!node_need_rank(n, 0, 2, MAX_RANK))
        return false;
    a->upper = node_int(n, "upper", 1);
    if (!node_known(n, 1))
        return trilu_at_run(n, a->upper);
    if (node_has(n, 1)) {
        if (!node_const_int(n, 1, &a->k))
            return false;
    }
    return node_done(n, build1(&n->b, "trilu", n->in[0], a));
}

/* ---- repeating, padding --------------------------------------------------------------------------------- */

/* numpy's broadcast of the input's shape and the given one. */
bool convert_expand(Node *n)
{
    const Idx  *dims[MAX_RANK], *one = idx_const(n->b.c->arith, 1);
    const Expr *x;
    uint32_t    rank, r;
    Dims        v;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    if (!node_known(n, 1))
        return expand_at_run(n);
    if (!node_shape(n, 1, &v))
        return false;
    x = n->in[0];
    r = expr_rank(x);
    rank = v.n > r ? v.n : r;
    for (uint32_t i = 0; i < rank; i++) {
        const Idx *a = i + r >= rank ? expr_form(x, i + r - rank) : one;
        const Idx *b = i + v.n >= rank ? v.at[i + v.n - rank] : one;

        if (a != b && a != one && b != one)
            return node_error(n, E_IMPORT, "%s does not broadcast to %s", dim_text(n->b.c, a),
                              dim_text(n->b.c, b));
        dims[i] = a == one ? b : a;
    }
    return node_done(n, build_broadcast_to(&n->b, x, rank, dims));
}

bool convert_tile(Node *n)
{
    TileAttrs *a = ATTRS(&n->b, TileAttrs);
    bool       once = true;
    Dims       v;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    if (!node_known(n, 1))
        return tile_at_run(n);
    if (!node_forms(n, 1, &v))
        return false;
    if (v.n != expr_rank(n->in[0]))
        return node_error(n, E_IMPORT, "%u repeats for %u dimensions", v.n, expr_rank(n->in[0]));
    for (uint32_t i = 0; i < v.n; i++) {
        if (v.at[i]->lo < 0 || idx_usual(v.at[i]) > INT32_MAX)
            return node_error(n, E_IMPORT, "repeat %u is %s", i, dim_text(n->b.c, v.at[i]));
        once &= v.at[i] == idx_const(n->b.c->arith, 1);
    }
    a->reps = v;
    return node_done(n, once ? n->in[0] : build1(&n->b, "tile", n->in[0], a));
}

static const Expr *repeated(const Build *b, const Expr *x, uint32_t axis, int64_t times)
{
    TileAttrs *a = ATTRS(b, TileAttrs);
    int64_t    reps[MAX_RANK];

    if (times == 1)
        return x;
    for (uint32_t i = 0; i < expr_rank(x); i++)
        reps[i] = i == axis ? times : 1;
    a->reps = dims_of_i64(b->c, reps, expr_rank(x));
    return build1(b, "tile", x, a);
}

/* Periodic padding of what is not cut off: a piece of its end, it as often as it fits, a piece of
 * its beginning. */
static const Expr *pad_wrap(Node *n, const Expr *x, const int64_t *pads)
{
    const Build *b = &n->b;
    uint32_t     rank = expr_rank(x);

    for (uint32_t i = 0; i < rank && x; i++) {
        int64_t     lo = pads[2 * i], hi = pads[2 * i + 1], d;
        const Expr *parts[3];
        uint32_t    k = 0;

        if (!lo && !hi)
            continue;
        d = build_dim(b, x, i);
        if (lo < 0 || hi < 0)
            x = build_slice(b, x, i, lo < 0 ? -lo : 0, hi < 0 ? d + hi : d);
        lo = lo > 0 ? lo : 0;
        hi = hi > 0 ? hi : 0;
        if (!x || (!lo && !hi))
            continue;
        d = build_dim(b, x, i);
        if (!d)
            return node_error(n, E_DIM, "nothing is left of dimension %u to pad it with", i);
        if (lo % d)
            parts[k++] = build_slice(b, x, i, d - lo % d, d);
        parts[k++] = repeated(b, x, i, 1 + lo / d + hi / d);
        if (hi % d)
            parts[k++] = build_slice(b, x, i, 0, hi % d);
        x = build_concat(b, k, parts, i);
    }
    return x;
}

/* Padding with a number that is not known, or that a double does not hold. */
static const Expr *pad_with(Node *n, const Expr *x, const int64_t *pads, const Expr *value)
{
    const Build *b = &n->b;
    const Expr  *ones = expr_scalar(b->c, DT_U8, 1), *inside;

    ones = build_broadcast_to(b, ones, expr_rank(x), expr_forms(x).at);
    inside = ones ? build_pad(b, ones, pads, 0, "constant") : NULL;
    if (!inside)
        return NULL;
    return build_where(b, build_cast(b, inside, DT_BOOL), build_pad(b, x, pads, 0, "constant"),
                       build_reshape(b, value, 0, NULL));
}

/* Is input i a number that a double holds? */
static bool is_double(Node *n, uint32_t i, double *v)
{
    const Expr *k = build_fold(&n->b, n->in[i]);

    if (!k || !expr_const_f(k, v))
        return false;
    return dtype_is_float(expr_dtype(k)) || expr_dtype(k).bits < 64 || fabs(*v) < 0x1p53;
}

bool convert_pad(Node *n)
{
    const char *mode = node_str(n, "mode", "constant");
    double      value = node_float(n, "value", 0);
    int64_t     pads[2 * MAX_RANK] = {0}, axes[MAX_RANK];
    const Expr *x;
    uint32_t    rank, k;
    Ints        v, ax;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    x = n->in[0];
    k = rank = expr_rank(x);
    if (strcmp(mode, "constant") && strcmp(mode, "edge") && strcmp(mode, "reflect") &&
        strcmp(mode, "wrap"))
        return node_error(n, E_UNSUPPORTED, "mode '%s'", mode);
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = i;
    if (n->opset < 11) {
        if (!node_ints(n, "pads", &v) && !node_ints(n, "paddings", &v))
            return node_error(n, E_IMPORT, "attribute 'pads' is missing");
    } else {
        if (node_has(n, 2) && !node_need_rank(n, 2, 0, 1))
            return false;
        if (node_has(n, 2) && !expr_single(n->in[2]))
            return node_error(n, E_IMPORT, "input 2 ('%s') should be one number",
                              n->p->input.at[2]);
        if (!node_constant(n, 1) || !node_constant(n, 3))
            return pad_at_run(n, mode);
        if (!node_const_ints(n, 1, &v))
            return false;
        if (node_has(n, 3)) {
            if (!node_const_ints(n, 3, &ax) || !node_axes(n, ax, rank, axes))
                return false;
            k = ax.n;
        }
    }
    if (v.n != 2 * k)
        return node_error(n, E_IMPORT, "%u pads for %u dimensions", v.n, k);
    for (uint32_t i = 0; i < k; i++) {
        pads[2 * axes[i]] = v.at[i];
        pads[2 * axes[i] + 1] = v.at[k + i];
    }
    for (uint32_t i = 0; i < rank; i++) {
        int64_t lo = pads[2 * i], hi = pads[2 * i + 1];

        if (lo < -INT32_MAX || lo > INT32_MAX || hi < -INT32_MAX || hi > INT32_MAX ||
            expr_form(x, i)->hi + lo + hi < 0)
            return node_error(n, E_DIM, "pads %lld and %lld of dimension %u", (long long)lo,
                              (long long)hi, i);
    }
    if (!strcmp(mode, "wrap"))
        return node_done(n, pad_wrap(n, x, pads));
    if (n->opset >= 11 && node_has(n, 2) && !strcmp(mode, "constant") && !is_double(n, 2, &value))
        return node_done(n, pad_with(n, x, pads, n->in[2]));
    return node_done(n, build_pad(&n->b, x, pads, value, mode));
}

/* That of com.microsoft, whatever its version. */
bool convert_pad_by_inputs(Node *n)
{
    n->opset = 11;
    return convert_pad(n);
}

/* Crop or pad around the middle. */
bool convert_center_crop_pad(Node *n)
{
    int64_t     axes[MAX_RANK], pads[2 * MAX_RANK] = {0};
    const Expr *x;
    Ints        v, ax;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    if (!node_constant(n, 1))
        return center_crop_pad_at_run(n);
    if (!node_const_shape(n, 1, &v))
        return false;
    x = n->in[0];
    if (!node_ints(n, "axes", &ax))
        ax = counting(n->b.c, expr_rank(x), 0, 1);
    if (ax.n != v.n)
        return node_error(n, E_IMPORT, "%u numbers for %u axes", v.n, ax.n);
    if (!node_axes(n, ax, expr_rank(x), axes))
        return false;
    for (uint32_t i = 0; i < v.n; i++) {
        int64_t more = v.at[i] - build_dim(&n->b, x, (uint32_t)axes[i]),
                before = floor_div(more, 2);

        if (more < 0)
            before = -(-more / 2);
        pads[2 * axes[i]] = before;
        pads[2 * axes[i] + 1] = more - before;
    }
    return node_done(n, build_pad(&n->b, x, pads, 0, "constant"));
}
