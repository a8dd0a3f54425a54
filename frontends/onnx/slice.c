/* Parts of tensors, and repeating or padding them. */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

bool convert_concat(Node *n)
{
    const Expr **xs = NEW_ARRAY(n->b.c->arena, const Expr *, n->nin + 1);
    uint32_t     axis, k = 0;

    for (uint32_t i = 0; i < n->nin || i == 0; i++) {
        if (!node_need_rank(n, i, 1, MAX_RANK))
            return false;
        /* An empty piece adds nothing; it may have another rank in old models. */
        if (expr_elems(n->in[i]) > 0)
            xs[k++] = n->in[i];
    }
    if (k == 0) /* none has cells: the result has a shape nevertheless */
        memcpy(xs, n->in, (k = n->nin) * sizeof *xs);
    return node_axis(n, node_int(n, "axis", n->opset < 4 ? 1 : 0), expr_rank(xs[0]), &axis) &&
           node_done(n, build_concat(&n->b, k, xs, axis));
}

bool convert_split(Node *n)
{
    const Build *b = &n->b;
    SplitAttrs  *a = ATTRS(b, SplitAttrs);
    int64_t     *at = NEW_ARRAY(b->c->arena, int64_t, n->nout + 1), sum = 0, extent;
    bool         given;
    const Expr  *parts;
    uint32_t     axis;
    Ints         v = {0};

    if (!node_need_rank(n, 0, 1, MAX_RANK) ||
        !node_axis(n, node_int(n, "axis", 0), expr_rank(n->in[0]), &axis))
        return false;
    extent = expr_dim(n->in[0], axis);
    given = node_ints(n, "split", &v);
    if (node_has(n, 1)) {
        if (!node_const_ints(n, 1, &v))
            return false;
        given = true;
    }
    if (n->nout == 0 || (given && v.n != n->nout))
        return node_error(n, E_IMPORT, "%u sizes for %u outputs", v.n, n->nout);
    if (node_int(n, "num_outputs", n->nout) != n->nout)
        return node_error(n, E_IMPORT, "num_outputs is %lld, but it has %u outputs",
                          (long long)node_int(n, "num_outputs", 0), n->nout);
    for (uint32_t i = 0; i < n->nout; i++) {
        /* Equal parts, the last one smaller if it does not divide. */
        int64_t part = given ? v.at[i] : (extent + n->nout - 1) / n->nout;

        if (part < 0 || part > extent)
            return node_error(n, E_IMPORT, "part %u has %lld of %lld", i, (long long)part,
                              (long long)extent);
        if (!given && part > extent - sum)
            part = extent - sum;
        sum += part;
        at[i] = sum;
    }
    if (sum != extent)
        return node_error(n, E_IMPORT, "the parts hold %lld of %lld", (long long)sum,
                          (long long)extent);
    if (n->nout == 1)
        return node_done(n, n->in[0]);
    a->axis = axis;
    a->indices = dims_of_i64(b->c, at, n->nout - 1);
    parts = build1(b, "split", n->in[0], a);
    for (uint32_t i = 0; i < n->nout; i++)
        if (!(n->out[i] = build_proj(b, parts, i)))
            return false;
    return true;
}

static bool slice(Node *n, Ints starts, Ints ends, Ints axes, Ints steps)
{
    const Build       *b = &n->b;
    StridedSliceAttrs *a = ATTRS(b, StridedSliceAttrs);
    int64_t            ax[MAX_RANK], begin[MAX_RANK], end[MAX_RANK];
    bool               all = true;
    const Expr        *x = n->in[0];

    if (starts.n != ends.n || starts.n != axes.n || starts.n != steps.n)
        return node_error(n, E_IMPORT, "starts, ends, axes and steps differ in number");
    if (!node_axes(n, axes, expr_rank(x), ax))
        return false;
    for (uint32_t i = 0; i < starts.n; i++) {
        int64_t d = expr_dim(x, (uint32_t)ax[i]), step = steps.at[i];
        int64_t from = starts.at[i], to = ends.at[i];

        if (step == 0 || step < -INT32_MAX || step > INT32_MAX)
            return node_error(n, E_IMPORT, "step %lld", (long long)step);
        from = from < -d ? -d : from;
        from = from < 0 ? from + d : from;
        to = to < -d - 1 ? -d - 1 : to;
        to = to < 0 ? to + d : to; /* -1: before the first, for negative steps */
        if (step > 0) {
            from = from > d ? d : from;
            to = to > d ? d : to < 0 ? 0 : to;
            to = to < from ? from : to;
            all &= from == 0 && to == d && step == 1;
        } else {
            if (starts.at[i] < -d)
                from = 0;
            from = from > d - 1 ? d - 1 : from;
            to = to > d - 1 ? d - 1 : to;
            if (ends.at[i] < -d)
                to = -1;
            all = false;
        }
        begin[i] = from;
        end[i] = to < 0 ? -d - 1 : to;
    }
    if (all)
        return node_done(n, x);
    a->axes = ints_dup(b->c, ax, starts.n);
    a->begin = dims_of_i64(b->c, begin, starts.n);
    a->end = dims_of_i64(b->c, end, starts.n);
    a->strides = ints_dup(b->c, steps.at, steps.n);
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
    return slice(n, starts, ends, axes, counting(n->b.c, starts.n, 1, 0));
}

bool convert_slice(Node *n)
{
    Ints starts, ends, axes, steps;

    if (!node_need_rank(n, 0, 1, MAX_RANK) || !node_const_ints(n, 1, &starts) ||
        !node_const_ints(n, 2, &ends))
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
    int64_t     dims[MAX_RANK];
    const Expr *x;
    uint32_t    rank, r;
    Ints        v;

    if (!node_need_rank(n, 0, 0, MAX_RANK) || !node_const_shape(n, 1, &v))
        return false;
    x = n->in[0];
    r = expr_rank(x);
    rank = v.n > r ? v.n : r;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t a = i + r >= rank ? expr_dim(x, i + r - rank) : 1;
        int64_t b = i + v.n >= rank ? v.at[i + v.n - rank] : 1;

        if (a != b && a != 1 && b != 1)
            return node_error(n, E_IMPORT, "%lld does not broadcast to %lld", (long long)a,
                              (long long)b);
        dims[i] = a == 1 ? b : a;
    }
    return node_done(n, build_broadcast(&n->b, x, rank, dims));
}

bool convert_tile(Node *n)
{
    TileAttrs *a = ATTRS(&n->b, TileAttrs);
    bool       once = true;
    Ints       v;

    if (!node_need_rank(n, 0, 0, MAX_RANK) || !node_const_ints(n, 1, &v))
        return false;
    if (v.n != expr_rank(n->in[0]))
        return node_error(n, E_IMPORT, "%u repeats for %u dimensions", v.n, expr_rank(n->in[0]));
    for (uint32_t i = 0; i < v.n; i++) {
        if (v.at[i] < 0 || v.at[i] > INT32_MAX)
            return node_error(n, E_IMPORT, "repeat %u is %lld", i, (long long)v.at[i]);
        once &= v.at[i] == 1;
    }
    a->reps = dims_of_i64(n->b.c, v.at, v.n);
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
        int64_t     lo = pads[2 * i], hi = pads[2 * i + 1], d = expr_dim(x, i);
        const Expr *parts[3];
        uint32_t    k = 0;

        if (lo < 0 || hi < 0)
            x = build_slice(b, x, i, lo < 0 ? -lo : 0, hi < 0 ? d + hi : d);
        lo = lo > 0 ? lo : 0;
        hi = hi > 0 ? hi : 0;
        if (!x || (!lo && !hi))
            continue;
        d = expr_dim(x, i);
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

    ones = build_broadcast(b, ones, expr_rank(x), expr_dims(b->c, x).at);
    inside = ones ? build_pad(b, ones, pads, 0, "constant") : NULL;
    if (!inside)
        return NULL;
    return build3(b, "where", build_cast(b, inside, DT_BOOL), build_pad(b, x, pads, 0, "constant"),
                  build_reshape(b, value, 0, NULL), NULL);
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
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = i;
    if (n->opset < 11) {
        if (!node_ints(n, "pads", &v) && !node_ints(n, "paddings", &v))
            return node_error(n, E_IMPORT, "attribute 'pads' is missing");
    } else {
        if (!node_const_ints(n, 1, &v) || (node_has(n, 2) && !node_need_rank(n, 2, 0, 1)))
            return false;
        if (node_has(n, 2) && expr_elems(n->in[2]) != 1)
            return node_error(n, E_IMPORT, "input 2 ('%s') should be one number",
                              n->p->input.at[2]);
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
            expr_dim(x, i) + lo + hi < 0)
            return node_error(n, E_DIM, "pads %lld and %lld of dimension %u", (long long)lo,
                              (long long)hi, i);
    }
    if (!strcmp(mode, "wrap"))
        return node_done(n, pad_wrap(n, x, pads));
    if (strcmp(mode, "constant") && strcmp(mode, "edge") && strcmp(mode, "reflect"))
        return node_error(n, E_UNSUPPORTED, "mode '%s'", mode);
    if (n->opset >= 11 && node_has(n, 2) && !strcmp(mode, "constant") && !is_double(n, 2, &value))
        return node_done(n, pad_with(n, x, pads, n->in[2]));
    return node_done(n, build_pad(&n->b, x, pads, value, mode));
}

/* Crop or pad around the middle. */
bool convert_center_crop_pad(Node *n)
{
    int64_t     axes[MAX_RANK], pads[2 * MAX_RANK] = {0};
    const Expr *x;
    Ints        v, ax;

    if (!node_need_rank(n, 0, 0, MAX_RANK) || !node_const_shape(n, 1, &v))
        return false;
    x = n->in[0];
    if (!node_ints(n, "axes", &ax))
        ax = counting(n->b.c, expr_rank(x), 0, 1);
    if (ax.n != v.n)
        return node_error(n, E_IMPORT, "%u numbers for %u axes", v.n, ax.n);
    if (!node_axes(n, ax, expr_rank(x), axes))
        return false;
    for (uint32_t i = 0; i < v.n; i++) {
        int64_t more = v.at[i] - expr_dim(x, (uint32_t)axes[i]), before = floor_div(more, 2);

        if (more < 0)
            before = -(-more / 2);
        pads[2 * axes[i]] = before;
        pads[2 * axes[i] + 1] = more - before;
    }
    return node_done(n, build_pad(&n->b, x, pads, 0, "constant"));
}
