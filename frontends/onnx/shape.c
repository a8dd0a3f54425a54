/* Making tensors and moving their cells: constants, shapes, slices, pads. */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

/* ---- making ------------------------------------------------------------------------------------- */

bool convert_constant(Node *n)
{
    const Build    *b = &n->b;
    const OnnxAttr *a;
    int64_t         one;

    if ((a = node_attr(n, "value")) && a->t)
        return node_done(n, onnx_constant(n->im, a->t, b->loc));
    if ((a = node_attr(n, "value_float")))
        return node_done(n, build_const(b, DT_F32, 0, NULL, &a->f));
    if ((a = node_attr(n, "value_int")))
        return node_done(n, build_const(b, DT_I64, 0, NULL, &a->i));
    if ((a = node_attr(n, "value_floats"))) {
        one = (int64_t)(a->floats.data.n / 4);
        return node_done(n, build_const(b, DT_F32, 1, &one, a->floats.data.at));
    }
    if ((a = node_attr(n, "value_ints")))
        return node_done(n, build_i64s(b, a->ints.n, a->ints.at));
    return node_error(n, E_UNSUPPORTED, "a constant that is no dense tensor of numbers");
}

/* A list of dimensions from input i: none below 0, not too large together. */
static bool const_shape(Node *n, uint32_t i, Ints *out)
{
    int64_t elems = 1;

    if (!node_const_ints(n, i, out))
        return false;
    if (out->n > MAX_RANK)
        return node_error(n, E_UNSUPPORTED, "a shape of %u dimensions", out->n);
    for (uint32_t k = 0; k < out->n; k++) {
        if (out->at[k] < 0)
            return node_error(n, E_DIM, "dimension %u of the shape is %lld", k,
                              (long long)out->at[k]);
        if (!checked_mul(elems, out->at[k], &elems) || elems > MAX_ELEMS)
            return node_error(n, E_DIM, "the shape is too large");
    }
    return true;
}

/* Above this many bytes a filled tensor is a call that fills it, not a constant. */
#define FILL_BYTES (1 << 18)

static const Expr *filled(const Build *b, const Expr *value, Ints shape)
{
    DType    t = expr_dtype(value);
    uint32_t size = dtype_bytes(t);
    int64_t  elems = 1;
    uint8_t *cells;

    for (uint32_t i = 0; i < shape.n; i++)
        elems *= shape.at[i];
    if (elems * size > FILL_BYTES) {
        InitAttrs *a = ATTRS(b, InitAttrs);

        a->shape = ints_dup(b->c, shape.at, shape.n);
        a->dtype = t;
        return build1(b, "full", value, a);
    }
    cells = arena_array(b->c->arena, (size_t)elems + 1, size);
    for (int64_t i = 0; i < elems; i++)
        memcpy(cells + i * size, value->u.constant->data.at, size);
    return build_const(b, t, shape.n, shape.at, cells);
}

bool convert_constant_of_shape(Node *n)
{
    const Build    *b = &n->b;
    const OnnxAttr *a = node_attr(n, "value");
    const Expr     *value;
    Ints            shape;

    if (!const_shape(n, 0, &shape))
        return false;
    value = a && a->t ? onnx_constant(n->im, a->t, b->loc) : build_zeros(b, DT_F32, 0, NULL);
    if (!value)
        return false;
    if (expr_elems(value) != 1)
        return node_error(n, E_IMPORT, "value should be one number");
    value = build_const(b, expr_dtype(value), 0, NULL, value->u.constant->data.at);
    return node_done(n, filled(b, value, shape));
}

/* The cells start .. end of a shape; negative numbers count from the end. */
bool convert_shape(Node *n)
{
    int64_t rank, start = node_int(n, "start", 0), end;
    Ints    d;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    d = expr_dims(n->b.c, n->in[0]);
    rank = d.n;
    end = node_int(n, "end", rank);
    start = start < -rank ? 0 : start < 0 ? start + rank : start > rank ? rank : start;
    end = end < -rank ? 0 : end < 0 ? end + rank : end > rank ? rank : end;
    if (end < start)
        end = start;
    return node_done(n, build_i64s(&n->b, (uint32_t)(end - start), d.at + start));
}

bool convert_size(Node *n)
{
    int64_t elems;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    elems = expr_elems(n->in[0]);
    return node_done(n, build_const(&n->b, DT_I64, 0, NULL, &elems));
}

#define RANGE_MAX (1 << 24)

bool convert_range(Node *n)
{
    const Build *b = &n->b;
    const Expr  *k[3];
    double       v[3], count;
    int64_t      iv[3] = {0}, cells;
    uint8_t     *at;
    DType        t;

    for (uint32_t i = 0; i < 3; i++) {
        if (!node_need_rank(n, i, 0, 1) || !node_const_float(n, i, &v[i]))
            return false;
        k[i] = build_fold(b, n->in[i]);
        iv[i] = dtype_get_i(expr_dtype(k[i]), k[i]->u.constant->data.at);
    }
    t = expr_dtype(n->in[0]);
    if (!dtype_eq(t, expr_dtype(n->in[1])) || !dtype_eq(t, expr_dtype(n->in[2])) || v[2] == 0)
        return node_error(n, E_IMPORT,
                          "start, limit and delta have to be of one type, delta not 0");
    count = ceil((v[1] - v[0]) / v[2]);
    if (!(count <= RANGE_MAX))
        return node_error(n, E_DIM, "the range has %g numbers", count);
    cells = count > 0 ? (int64_t)count : 0;
    at = arena_array(b->c->arena, (size_t)cells + 1, dtype_bytes(t));
    for (int64_t i = 0; i < cells; i++) {
        void *p = at + i * dtype_bytes(t);

        if (dtype_is_float(t))
            dtype_put_f(t, p, v[0] + (double)i * v[2]);
        else
            dtype_put_i(t, p, (int64_t)((uint64_t)iv[0] + (uint64_t)i * (uint64_t)iv[2]));
    }
    return node_done(n, build_const(b, t, 1, &cells, at));
}

bool convert_eye_like(Node *n)
{
    const Build *b = &n->b;
    int64_t      k = node_int(n, "k", 0), rows, columns;
    uint8_t     *at;
    DType        t;
    Ints         d;

    if (!node_need_rank(n, 0, 2, 2))
        return false;
    d = expr_dims(b->c, n->in[0]);
    rows = d.at[0];
    columns = d.at[1];
    t = expr_dtype(n->in[0]);
    if (node_attr(n, "dtype") && !onnx_dtype(node_int(n, "dtype", 0), &t))
        return node_error(n, E_UNSUPPORTED, "element type %s",
                          onnx_dtype_text(node_int(n, "dtype", 0)));
    if (expr_elems(n->in[0]) > RANGE_MAX || k < -RANGE_MAX || k > RANGE_MAX)
        return node_error(n, E_UNSUPPORTED, "a matrix of %lld x %lld", (long long)rows,
                          (long long)columns);
    at = arena_array(b->c->arena, (size_t)(rows * columns) + 1, dtype_bytes(t));
    for (int64_t i = 0; i < rows; i++)
        if (i + k >= 0 && i + k < columns)
            dtype_put_f(t, at + (i * columns + i + k) * dtype_bytes(t), 1);
    return node_done(n, build_const(b, t, 2, d.at, at));
}

/* ---- the same cells in another shape ---------------------------------------------------------------- */

/* 0 takes the input's dimension unless allowzero, -1 is what is left. */
bool convert_reshape(Node *n)
{
    bool        zero = node_int(n, "allowzero", 0);
    int64_t     dims[MAX_RANK], known = 1, total;
    int32_t     left = -1;
    const Expr *x;
    Ints        v;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    if (n->opset < 5) {
        if (!node_ints(n, "shape", &v))
            return node_error(n, E_IMPORT, "attribute 'shape' is missing");
    } else if (!node_const_ints(n, 1, &v)) {
        return false;
    }
    x = n->in[0];
    total = expr_elems(x);
    if (v.n > MAX_RANK)
        return node_error(n, E_UNSUPPORTED, "a shape of %u dimensions", v.n);
    for (uint32_t i = 0; i < v.n; i++) {
        dims[i] = v.at[i];
        if (dims[i] == 0 && !zero) {
            if (i >= expr_rank(x))
                return node_error(n, E_IMPORT, "dimension %u is to be copied, the input has %u", i,
                                  expr_rank(x));
            dims[i] = expr_dim(x, i);
        }
        if (dims[i] == -1 && left < 0) {
            left = (int32_t)i;
            continue;
        }
        if (dims[i] < 0 || !checked_mul(known, dims[i], &known))
            return node_error(n, E_IMPORT, "dimension %u of the shape is %lld", i,
                              (long long)dims[i]);
    }
    if (left >= 0) {
        if (known == 0 || total % known)
            return node_error(n, E_IMPORT, "%lld cells do not fill a shape with -1 and %lld else",
                              (long long)total, (long long)known);
        dims[left] = total / known;
        known = total;
    }
    if (known != total) {
        node_error(n, E_IMPORT, "%lld cells do not fit a shape of %lld", (long long)total,
                   (long long)known);
        diag_note(n->b.c->diags, n->b.loc, "the input is %s", type_text(n->b.c, x->type));
        return false;
    }
    return node_done(n, build_reshape(&n->b, x, v.n, dims));
}

bool convert_flatten(Node *n)
{
    int64_t     axis = node_int(n, "axis", 1), dims[2] = {1, 1};
    const Expr *x;
    int64_t     rank;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    x = n->in[0];
    rank = expr_rank(x);
    if (axis < -rank || axis > rank)
        return node_error(n, E_IMPORT, "axis %lld is outside a tensor of %lld dimensions",
                          (long long)axis, (long long)rank);
    if (axis < 0)
        axis += rank;
    for (int64_t i = 0; i < rank; i++)
        dims[i >= axis] *= expr_dim(x, (uint32_t)i);
    return node_done(n, build_reshape(&n->b, x, 2, dims));
}

bool convert_squeeze(Node *n)
{
    int64_t     axes[MAX_RANK], dims[MAX_RANK];
    uint32_t    naxes = 0, rank, k = 0;
    const Expr *x;
    bool        given, bad;
    Ints        v;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    x = n->in[0];
    rank = expr_rank(x);
    given = node_axes_arg(n, 1, &v, &bad);
    if (bad)
        return false;
    if (given) {
        if (!node_axes(n, v, rank, axes))
            return false;
        naxes = v.n;
    }
    for (uint32_t i = 0; i < rank; i++) {
        bool out = !given && expr_dim(x, i) == 1;

        for (uint32_t j = 0; j < naxes; j++)
            out |= axes[j] == i;
        if (out && expr_dim(x, i) != 1)
            return node_error(n, E_IMPORT, "dimension %u is %lld, not 1", i,
                              (long long)expr_dim(x, i));
        if (!out)
            dims[k++] = expr_dim(x, i);
    }
    return node_done(n, build_reshape(&n->b, x, k, dims));
}

bool convert_unsqueeze(Node *n)
{
    int64_t     axes[MAX_RANK], dims[MAX_RANK];
    uint32_t    rank, k = 0;
    const Expr *x;
    bool        bad;
    Ints        v;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    if (!node_axes_arg(n, 1, &v, &bad))
        return bad ? false : node_error(n, E_IMPORT, "axes are missing") != NULL;
    x = n->in[0];
    if (v.n > MAX_RANK - expr_rank(x))
        return node_error(n, E_UNSUPPORTED, "a tensor of more than %d dimensions", MAX_RANK);
    rank = expr_rank(x) + v.n;
    if (!node_axes(n, v, rank, axes))
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        bool in = false;

        for (uint32_t j = 0; j < v.n; j++)
            in |= axes[j] == i;
        dims[i] = in ? 1 : expr_dim(x, k++);
    }
    return node_done(n, build_reshape(&n->b, x, rank, dims));
}

bool convert_transpose(Node *n)
{
    int64_t  axes[MAX_RANK];
    uint32_t rank;
    Ints     v;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    rank = expr_rank(n->in[0]);
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = rank - 1 - i;
    if (node_ints(n, "perm", &v)) {
        if (v.n != rank)
            return node_error(n, E_IMPORT, "perm has %u numbers for %u dimensions", v.n, rank);
        if (!node_axes(n, v, rank, axes))
            return false;
    }
    return node_done(n, build_transpose(&n->b, n->in[0], rank, axes));
}

/* ---- parts -------------------------------------------------------------------------------------------- */

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
    if (k == 0)
        xs[k++] = n->in[0];
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
    a->indices = ints_dup(b->c, at, n->nout - 1);
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
    a->begin = ints_dup(b->c, begin, starts.n);
    a->end = ints_dup(b->c, end, starts.n);
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
    Ints        k;

    if (!node_need_rank(n, 0, 2, MAX_RANK))
        return false;
    a->upper = node_int(n, "upper", 1);
    if (node_has(n, 1)) {
        if (!node_const_ints(n, 1, &k) || k.n != 1)
            return false;
        a->k = k.at[0];
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

    if (!node_need_rank(n, 0, 0, MAX_RANK) || !const_shape(n, 1, &v))
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
    a->reps = v;
    return node_done(n, once ? n->in[0] : build1(&n->b, "tile", n->in[0], a));
}

/* Periodic padding: what lies at the other end, as often as needed. */
static const Expr *pad_wrap(Node *n, const Expr *x, const int64_t *pads)
{
    const Build *b = &n->b;
    uint32_t     rank = expr_rank(x);

    for (uint32_t i = 0; i < rank && x; i++) {
        int64_t     lo = pads[2 * i], hi = pads[2 * i + 1], d = expr_dim(x, i), k = 0;
        const Expr *parts[3];

        if (lo > d || hi > d)
            return node_error(n, E_UNSUPPORTED, "wrap padding of more than the tensor");
        if (lo < 0 || hi < 0)
            x = build_slice(b, x, i, lo < 0 ? -lo : 0, hi < 0 ? d + hi : d);
        if (lo > 0)
            parts[k++] = build_slice(b, x, i, d - lo, d);
        parts[k++] = x;
        if (hi > 0)
            parts[k++] = build_slice(b, x, i, 0, hi);
        x = build_concat(b, (uint32_t)k, parts, i);
    }
    return x;
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
        if (!node_const_ints(n, 1, &v) || (node_has(n, 2) && !node_const_float(n, 2, &value)))
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
            expr_dim(x, i) + lo + hi < 0)
            return node_error(n, E_DIM, "pads %lld and %lld of dimension %u", (long long)lo,
                              (long long)hi, i);
    }
    if (!strcmp(mode, "wrap"))
        return node_done(n, pad_wrap(n, x, pads));
    if (strcmp(mode, "constant") && strcmp(mode, "edge") && strcmp(mode, "reflect"))
        return node_error(n, E_UNSUPPORTED, "mode '%s'", mode);
    return node_done(n, build_pad(&n->b, x, pads, value, mode));
}

/* Crop or pad around the middle. */
bool convert_center_crop_pad(Node *n)
{
    int64_t     axes[MAX_RANK], pads[2 * MAX_RANK] = {0};
    const Expr *x;
    Ints        v, ax;

    if (!node_need_rank(n, 0, 0, MAX_RANK) || !const_shape(n, 1, &v))
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

/* ---- blocks of pixels ---------------------------------------------------------------------------------- */

static bool block_size(Node *n, int64_t *s)
{
    *s = node_int(n, "blocksize", 0);
    if (!node_need_rank(n, 0, 4, 4))
        return false;
    return (*s > 0 && *s < 65536) || node_error(n, E_IMPORT, "blocksize is %lld", (long long)*s);
}

bool convert_depth_to_space(Node *n)
{
    const Build *b = &n->b;
    bool         crd = !strcmp(node_str(n, "mode", "DCR"), "CRD");
    int64_t      s, N, C, H, W;
    const Expr  *x;

    if (!block_size(n, &s))
        return false;
    x = n->in[0];
    N = expr_dim(x, 0), C = expr_dim(x, 1), H = expr_dim(x, 2), W = expr_dim(x, 3);
    if (C % (s * s))
        return node_error(n, E_IMPORT, "%lld channels do not hold blocks of %lld x %lld",
                          (long long)C, (long long)s, (long long)s);
    C /= s * s;
    if (crd)
        x = build_transpose(b, build_reshape(b, x, 6, (int64_t[]){N, C, s, s, H, W}), 6,
                            (int64_t[]){0, 1, 4, 2, 5, 3});
    else
        x = build_transpose(b, build_reshape(b, x, 6, (int64_t[]){N, s, s, C, H, W}), 6,
                            (int64_t[]){0, 3, 4, 1, 5, 2});
    return node_done(n, build_reshape(b, x, 4, (int64_t[]){N, C, H * s, W * s}));
}

bool convert_space_to_depth(Node *n)
{
    const Build *b = &n->b;
    bool         crd = !strcmp(node_str(n, "mode", "DCR"), "CRD");
    int64_t      s, N, C, H, W;
    const Expr  *x;

    if (!block_size(n, &s))
        return false;
    x = n->in[0];
    N = expr_dim(x, 0), C = expr_dim(x, 1), H = expr_dim(x, 2), W = expr_dim(x, 3);
    if (H % s || W % s)
        return node_error(n, E_IMPORT, "%lld x %lld pixels do not divide into blocks of %lld",
                          (long long)H, (long long)W, (long long)s);
    x = build_transpose(b, build_reshape(b, x, 6, (int64_t[]){N, C, H / s, s, W / s, s}), 6,
                        crd ? (int64_t[]){0, 1, 3, 5, 2, 4} : (int64_t[]){0, 3, 5, 1, 2, 4});
    return node_done(n, build_reshape(b, x, 4, (int64_t[]){N, C * s * s, H / s, W / s}));
}
