/* Pieces of pictures, of one to three spatial dimensions: Col2Im puts columns of them together,
 * MaxUnpool puts cells back to where MaxPool found them, and MaxPool tells where; boxes as grids of
 * one size, RoiAlign, and which of them are left, NonMaxSuppression. */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

#define MAX_SPATIAL 3
#define MAX_TAPS 1024
#define MAX_TABLES (1 << 26) /* cells of constants that say where windows are */

/* Tap number t of a kernel, a position in each dimension. */
static void tap_at(int64_t t, uint32_t dims, const int64_t *kernel, int64_t *at)
{
    for (uint32_t i = dims; i-- > 0; t /= kernel[i])
        at[i] = t % kernel[i];
}

static bool count_taps(Node *n, const OnnxWindow *w, uint32_t dims, int64_t *taps)
{
    *taps = 1;
    for (uint32_t i = 0; i < dims; i++)
        if (!checked_mul(*taps, w->kernel[i], taps) || *taps > MAX_TAPS)
            return node_error(n, E_UNSUPPORTED, "a kernel of more than %d cells", MAX_TAPS);
    return true;
}

/* ---- Col2Im ---------------------------------------------------------------------------------------- */

/* x [rows, blocks ..] of tap `at`: each cell to its place in the picture, zeros elsewhere. */
static const Expr *spread(const Build *b, const Expr *x, uint32_t dims, const OnnxWindow *w,
                          const int64_t *at, const int64_t *size)
{
    int64_t apart[1 + 2 * MAX_SPATIAL], pads[2 * (1 + 2 * MAX_SPATIAL)] = {0},
                                                          flat[1 + MAX_SPATIAL];

    flat[0] = apart[0] = build_dim(b, x, 0);
    for (uint32_t i = 0; i < dims; i++) {
        int64_t cells = build_dim(b, x, 1 + i);

        apart[1 + 2 * i] = cells;
        apart[2 + 2 * i] = 1;
        pads[2 * (2 + 2 * i) + 1] = w->stride[i] - 1; /* behind each cell */
        flat[1 + i] = cells * w->stride[i];
    }
    x = build_pad(b, build_reshape(b, x, 1 + 2 * dims, apart), pads, 0, "constant");
    x = build_reshape(b, x, 1 + dims, flat);
    memset(pads, 0, sizeof pads);
    for (uint32_t i = 0; i < dims; i++) {
        int64_t first = at[i] * w->dilation[i] - w->begin[i];
        int64_t lo = first < 0 ? -first : 0;
        int64_t hi = size[i] - first < flat[1 + i] ? size[i] - first : flat[1 + i];

        /* Pads that cut off are slices. */
        if (hi <= lo)
            return build_zeros(b, expr_dtype(x), 1 + dims,
                               (int64_t[]){flat[0], size[0], size[1], size[2]});
        x = build_slice(b, x, 1 + i, lo, hi);
        pads[2 * (1 + i)] = first + lo;
        pads[2 * (1 + i) + 1] = size[i] - first - hi;
    }
    return build_pad(b, x, pads, 0, "constant");
}

/* Sizes that the run gives: each cell is added to the one that it is of, or to one behind them all.
 */
static bool col2im_at_run(Node *n)
{
    const Build          *b = &n->b;
    Arith                *A = b->c->arith;
    ScatterElementsAttrs *to = ATTRS(b, ScatterElementsAttrs);
    const Expr           *x = n->in[0], *block = node_cells(n, 2), *taps = cell_number(b, 1), *at,
               *blocks = taps, *inside = NULL, *flat = NULL, *one = taps, *cell;
    const Idx *many[2 + 2 * MAX_SPATIAL], *dims[2 + MAX_SPATIAL], *step = idx_const(A, 1);
    RunDim     d[2 * MAX_SPATIAL + 1];
    OnnxWindow w;
    Dims       image;
    uint32_t   k;

    if (!block || !node_sizes(n, 1, 1, 2, &image))
        return false;
    k = image.n;
    if (k < 1 || k > MAX_SPATIAL || build_elems(b, block) != k)
        return node_error(n, E_UNSUPPORTED, "%u dimensions of pictures, %lld of blocks", k,
                          (long long)build_elems(b, block));
    if (!onnx_window(n, x, (int64_t[]){1, 1, 1}, k, &w))
        return false;
    for (uint32_t i = 0; i < k; i++) {
        const Expr *size = cell_of(b, block, i), *reach, *count;

        reach = build_by(b, "multiply", build_sub(b, size, one), (double)w.dilation[i]);
        count = cell_form(b, idx_addc(A, image.at[i], w.begin[i] + w.end[i] - 1));
        count = build2(b, "floor_divide", build_sub(b, count, reach), cell_number(b, w.stride[i]),
                       NULL);
        d[i] = (RunDim){size, 1, expr_form(x, 1), 2 + i, 1};
        d[k + i] = (RunDim){build_add(b, count, one), 1, expr_form(x, 2), 2 + i, 1};
        taps = build_mul(b, taps, size);
        blocks = build_mul(b, blocks, d[k + i].cell);
    }
    cell = build2(b, "maximum", taps, one, NULL);
    cell = build2(b, "floor_divide", cell_form(b, expr_form(x, 1)), cell, NULL);
    d[2 * k] = (RunDim){cell, 0, expr_form(x, 1), 1, 1};
    if (!onnx_require(n, build_sub(b, build_mul(b, taps, cell), cell_form(b, expr_form(x, 1))),
                      "the data are no columns of blocks of that size") ||
        !onnx_require(n, build_sub(b, blocks, cell_form(b, expr_form(x, 2))),
                      "the data have another number of blocks") ||
        !onnx_bind(n, 0, 2 * k + 1, d, many + 1))
        return false;
    /* [rows, taps .., blocks ..] */
    dims[0] = expr_form(x, 0), dims[1] = many[1 + 2 * k];
    many[0] = idx_mul(A, dims[0], dims[1]);
    for (uint32_t i = k; i-- > 0; step = idx_mul(A, step, image.at[i])) {
        const Expr *tap = build_along(b, build_arange(b, many[1 + i], DT_I64), 2 * k, i);
        const Expr *in, *last = cell_form(b, idx_addc(A, image.at[i], -1));

        at = build_along(b, build_arange(b, many[1 + k + i], DT_I64), 2 * k, k + i);
        at = build_add(b, build_by(b, "multiply", at, (double)w.stride[i]),
                       build_by(b, "multiply", tap, (double)w.dilation[i]));
        at = build_by(b, "subtract", at, (double)w.begin[i]);
        in = build2(b, "equal", at, cell_clamp(b, at, cell_number(b, 0), last), NULL);
        inside = inside ? build2(b, "logical_and", inside, in, NULL) : in;
        at = build_mul(b, at, cell_form(b, step));
        flat = flat ? build_add(b, flat, at) : at;
        dims[2 + i] = image.at[i];
    }
    at = build_where(b, inside, flat, cell_form(b, step));
    at = build_broadcast_to(b, at, 1 + 2 * k, many);
    x = in_shape_at_run(n, x, 1 + 2 * k, many);
    if (!x || !at)
        return false;
    for (uint32_t i = 2; i < 1 + 2 * k; i++)
        many[1] = idx_mul(A, many[1], many[i]);
    x = build_reshape_to(b, x, 2, many);
    at = build_reshape_to(b, at, 2, many);
    to->axis = 1;
    to->reduction = "add";
    many[1] = idx_addc(A, step, 1);
    x = build3(b, "scatter_elements", build_zeros_of(b, expr_dtype(x), 2, many), at, x, to);
    x = build_slice_to(b, x, 1, idx_const(A, 0), step);
    return node_done(n, build_reshape_to(b, x, 2 + k, dims));
}

/* Blocks of the picture, the cells of each a column, [N, C * taps, blocks]: where they overlap
 * they are added. */
bool convert_col2im(Node *n)
{
    const Build *b = &n->b;
    const Expr  *x, *sum = NULL;
    int64_t      N, C, taps, blocks = 1, at[MAX_SPATIAL], dims[2 + MAX_SPATIAL];
    int64_t      size[MAX_SPATIAL] = {1, 1, 1};
    OnnxWindow   w;
    Ints         image, block;
    uint32_t     k;

    if (!node_need_rank(n, 0, 3, 3))
        return false;
    if (!node_known(n, 1) || !node_known(n, 2))
        return col2im_at_run(n);
    if (!node_const_shape(n, 1, &image) || !node_const_shape(n, 2, &block))
        return false;
    x = n->in[0];
    k = image.n;
    if (k < 1 || k > MAX_SPATIAL || block.n != k)
        return node_error(n, E_UNSUPPORTED, "%u dimensions of pictures, %u of blocks", k, block.n);
    if (!onnx_window(n, x, block.at, k, &w) || !count_taps(n, &w, k, &taps))
        return false;
    N = dims[0] = build_dim(b, x, 0);
    C = dims[1] = build_dim(b, x, 1) / taps;
    for (uint32_t i = 0; i < k; i++) {
        size[i] = image.at[i];
        dims[2 + i] = (size[i] + w.begin[i] + w.end[i] - (w.kernel[i] - 1) * w.dilation[i] - 1) /
                          w.stride[i] +
                      1;
        if (dims[2 + i] < 1 || !checked_mul(blocks, dims[2 + i], &blocks))
            return node_error(n, E_IMPORT, "a block is larger than the picture");
    }
    if (build_dim(b, x, 1) != C * taps || build_dim(b, x, 2) != blocks)
        return node_error(n, E_IMPORT, "the data are %s, not columns of %lld for %lld blocks",
                          type_text(b->c, x->type), (long long)taps, (long long)blocks);
    if (expr_empty(x) || image.at[0] == 0)
        return node_error(n, E_UNSUPPORTED, "an empty tensor");
    x = build_reshape(b, x, 3, (int64_t[]){N * C, taps, blocks});
    dims[1] = N * C;
    for (int64_t t = 0; t < taps; t++) {
        const Expr *part = build_reshape(b, build_slice(b, x, 1, t, t + 1), 1 + k, dims + 1);

        tap_at(t, k, w.kernel, at);
        if (!part || !(part = spread(b, part, k, &w, at, size)))
            return false;
        sum = sum ? build2(b, "add", sum, part, NULL) : part;
    }
    dims[1] = C;
    memcpy(dims + 2, size, k * sizeof *size);
    return node_done(n, build_reshape(b, sum, 2 + k, dims));
}

/* ---- MaxPool's indices ------------------------------------------------------------------------------- */

/* v[0 .. count) along spatial dimension i of `dims`. */
static const Expr *along(const Build *b, DType t, uint32_t dims, uint32_t i, int64_t count,
                         const void *v)
{
    int64_t shape[2 + MAX_SPATIAL];

    for (uint32_t k = 0; k < 2 + dims; k++)
        shape[k] = k == 2 + i ? count : 1;
    return build_const(b, t, 2 + dims, shape, v);
}

typedef struct {
    Node       *n;
    OnnxWindow *w;
    uint32_t    dims;
    const Expr *x;                                 /* padded */
    int64_t     in[MAX_SPATIAL], out[MAX_SPATIAL]; /* of the data, of the result */
} Found;

/* The cells of all windows at a tap. */
static const Expr *cells_at(const Found *f, const int64_t *tap)
{
    const Build       *b = &f->n->b;
    StridedSliceAttrs *a = ATTRS(b, StridedSliceAttrs);
    int64_t            begin[MAX_SPATIAL], end[MAX_SPATIAL], axes[MAX_SPATIAL];

    for (uint32_t i = 0; i < f->dims; i++) {
        axes[i] = 2 + i;
        begin[i] = tap[i] * f->w->dilation[i];
        end[i] = begin[i] + (f->out[i] - 1) * f->w->stride[i] + 1;
    }
    a->begin = dims_of_i64(b->c, begin, f->dims);
    a->end = dims_of_i64(b->c, end, f->dims);
    a->strides = ints_dup(b->c, f->w->stride, f->dims);
    a->axes = ints_dup(b->c, axes, f->dims);
    return build1(b, "strided_slice", f->x, a);
}

/* Is the tap inside the data, window by window; NULL: everywhere. */
static const Expr *inside(const Found *f, const int64_t *tap)
{
    const Build *b = &f->n->b;
    const Expr  *all = NULL, *v;

    for (uint32_t i = 0; i < f->dims; i++) {
        bool *at = NEW_ARRAY(b->c->arena, bool, (size_t)f->out[i] + 1), every = true;

        for (int64_t o = 0; o < f->out[i]; o++) {
            int64_t p = o * f->w->stride[i] + tap[i] * f->w->dilation[i] - f->w->begin[i];

            at[o] = p >= 0 && p < f->in[i];
            every &= at[o];
        }
        if (every)
            continue;
        v = along(b, DT_BOOL, f->dims, i, f->out[i], at);
        all = all ? build2(b, "logical_and", all, v, NULL) : v;
    }
    return all;
}

/* Where tap 0 of each window is, in the whole tensor. */
static const Expr *bases(const Found *f, const int64_t *step)
{
    const Build *b = &f->n->b;
    int64_t      N = build_dim(b, f->x, 0), C = build_dim(b, f->x, 1), picture = 1, *at;
    int64_t      shape[2 + MAX_SPATIAL] = {N, C, 1, 1, 1};
    const Expr  *sum;

    for (uint32_t i = 0; i < f->dims; i++)
        picture *= f->in[i];
    at = NEW_ARRAY(b->c->arena, int64_t, (size_t)(N * C) + 1);
    for (int64_t i = 0; i < N * C; i++)
        at[i] = i * picture;
    sum = build_const(b, DT_I64, 2 + f->dims, shape, at);
    for (uint32_t i = 0; i < f->dims; i++) {
        at = NEW_ARRAY(b->c->arena, int64_t, (size_t)f->out[i] + 1);
        for (int64_t o = 0; o < f->out[i]; o++)
            at[o] = (o * f->w->stride[i] - f->w->begin[i]) * step[i];
        sum = build2(b, "add", sum, along(b, DT_I64, f->dims, i, f->out[i], at), NULL);
    }
    return sum;
}

/* y is the largest of each window: the first tap that has its value, as a place in the flat tensor;
 * by storage_order 1 the first spatial dimension is the innermost. */
const Expr *onnx_pool_indices(Node *n, const Expr *x, const Expr *y, OnnxWindow *w)
{
    const Build *b = &n->b;
    Found        f = {.n = n, .w = w, .dims = expr_rank(x) - 2, .x = x};
    DType        t = expr_dtype(x);
    int64_t      taps, at[MAX_SPATIAL], pads[2 * (2 + MAX_SPATIAL)] = {0}, step[MAX_SPATIAL];
    int64_t      pictures, cells = 0; /* of the tables that tell where windows are */
    bool         columns = node_int(n, "storage_order", 0) != 0;
    const Expr  *offset = NULL;

    if (!count_taps(n, w, f.dims, &taps))
        return NULL;
    if (expr_empty(y))
        return build_zeros_of(b, DT_I64, expr_rank(y), expr_forms(y).at);
    for (uint32_t i = 0; i < f.dims; i++) {
        int64_t reach;

        f.in[i] = build_dim(b, x, 2 + i);
        f.out[i] = build_dim(b, y, 2 + i);
        cells += f.out[i];
        reach = (f.out[i] - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1;
        pads[2 * (2 + i)] = w->begin[i];
        pads[2 * (2 + i) + 1] = reach > w->begin[i] + f.in[i] ? reach - w->begin[i] - f.in[i] : 0;
    }
    for (uint32_t i = 0, k; i < f.dims; i++)
        for (k = columns ? 0 : i + 1, step[i] = 1; k < (columns ? i : f.dims); k++)
            step[i] *= f.in[k];
    if (!checked_mul(build_dim(b, x, 0), build_dim(b, x, 1), &pictures) || pictures > MAX_TABLES ||
        !checked_mul(cells, taps, &cells) || cells > MAX_TABLES)
        return node_error(n, E_UNSUPPORTED, "indices of so many windows in %s",
                          type_text(b->c, x->type));
    f.x = build_pad(b, x, pads, dtype_is_float(t) ? -INFINITY : dtype_min(t), "constant");
    for (int64_t k = taps; f.x && k-- > 0;) {
        const Expr *hit, *in;
        int64_t     far = 0;

        tap_at(k, f.dims, w->kernel, at);
        for (uint32_t i = 0; i < f.dims; i++)
            far += at[i] * w->dilation[i] * step[i];
        hit = build2(b, "equal", cells_at(&f, at), y, NULL);
        if ((in = inside(&f, at)))
            hit = build2(b, "logical_and", hit, in, NULL);
        offset = build_where(b, hit, expr_scalar(b->c, DT_I64, (double)far),
                             offset ? offset : build_zeros(b, DT_I64, 0, NULL));
        if (!offset)
            return NULL;
    }
    return build2(b, "add", offset, bases(&f, step), NULL);
}

/* ---- MaxUnpool --------------------------------------------------------------------------------------- */

/* y with zeros behind it, up to the size that the run gives. */
static bool enlarged_at_run(Node *n, const Expr *y)
{
    const Build *b = &n->b;
    const Expr  *size = node_cells(n, 2), *zero = cell_number(b, 0), *less = NULL;

    if (!size || build_elems(b, size) != expr_rank(y))
        return size && node_error(n, E_IMPORT, "output_shape is of another rank");
    for (uint32_t i = 0; y && i < expr_rank(y); i++) {
        const Expr *more = build_sub(b, cell_of(b, size, i), cell_form(b, expr_form(y, i)));

        less = i < 2 ? more : build2(b, "minimum", more, zero, NULL);
        if (!onnx_require(n, less, "output_shape is less than what the window gives"))
            return false;
        y = i < 2 ? y : padded_at_run(n, y, i, zero, more);
    }
    return node_done(n, y);
}

/* Cells to the places that their indices name in a tensor of zeros; output_shape may be larger:
 * more zeros at the end of each dimension. */
bool convert_max_unpool(Node *n)
{
    const Build          *b = &n->b;
    ScatterElementsAttrs *a = ATTRS(b, ScatterElementsAttrs);
    int64_t               shape[MAX_RANK], cells = 1, count, pads[2 * MAX_RANK] = {0};
    const Expr           *x, *y;
    uint32_t              dims, rank;
    OnnxWindow            w;
    Ints                  v;

    if (!node_need_rank(n, 0, 3, 2 + MAX_SPATIAL) || !node_need_rank(n, 1, 3, 2 + MAX_SPATIAL))
        return false;
    x = n->in[0];
    rank = expr_rank(x);
    dims = rank - 2;
    if (!node_ints(n, "kernel_shape", &v) || v.n != dims)
        return node_error(n, E_IMPORT, "kernel_shape is missing or not of %u numbers", dims);
    if (!onnx_window(n, x, v.at, dims, &w))
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        shape[i] = build_dim(b, x, i);
        if (expr_rank(n->in[1]) != rank || build_dim(b, n->in[1], i) != shape[i])
            return node_error(n, E_IMPORT, "the indices are %s for data %s",
                              type_text(b->c, n->in[1]->type), type_text(b->c, x->type));
        if (i >= 2)
            shape[i] =
                (shape[i] - 1) * w.stride[i - 2] - w.begin[i - 2] - w.end[i - 2] + w.kernel[i - 2];
        if (shape[i] < 1 || !checked_mul(cells, shape[i], &cells) || cells > MAX_ELEMS)
            return node_error(n, E_IMPORT, "dimension %u of the result is %lld", i,
                              (long long)shape[i]);
    }
    count = build_elems(b, x);
    a->axis = 0;
    y = build3(b, "scatter_elements", build_zeros(b, expr_dtype(x), 1, &cells),
               build_reshape(b, n->in[1], 1, &count), build_reshape(b, x, 1, &count), a);
    y = build_reshape(b, y, rank, shape);
    if (!node_has(n, 2))
        return node_done(n, y);
    if (!node_known(n, 2))
        return enlarged_at_run(n, y);
    if (!node_const_shape(n, 2, &v))
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        if (v.n != rank || v.at[i] < shape[i] || (i < 2 && v.at[i] != shape[i]))
            return node_error(
                n, E_UNSUPPORTED,
                "output_shape is less than what the window gives, or of another rank");
        pads[2 * i + 1] = v.at[i] - shape[i];
    }
    return node_done(n, build_pad(b, y, pads, 0, "constant"));
}

/* ---- RoiAlign ----------------------------------------------------------------------------------------- */

/* Before opset 16 boxes were not moved by half a cell. */
bool convert_roi_align(Node *n)
{
    static const char *const coordinates[] = {"half_pixel", "output_half_pixel", NULL};
    static const char *const modes[] = {"avg", "max", NULL};
    const Build             *b = &n->b;
    RoiAlignAttrs           *a = ATTRS(b, RoiAlignAttrs);
    const char              *how;
    int64_t size[2] = {node_int(n, "output_height", 1), node_int(n, "output_width", 1)};

    if (!node_need_rank(n, 0, 4, 4) || !node_need_rank(n, 1, 2, 2) || !node_need_rank(n, 2, 1, 1) ||
        !node_choice(n, "mode", modes, &a->mode) ||
        !node_choice(n, "coordinate_transformation_mode", coordinates, &how))
        return false;
    n->in[2] = onnx_agreed(n, n->in[2], 0, expr_form(n->in[1], 0));
    if (!n->in[2])
        return false;
    a->aligned = n->opset >= 16 && *how == 'h';
    a->pooled_size = ints_dup(b->c, size, 2);
    a->spatial_scale = node_float(n, "spatial_scale", 1);
    a->sample_ratio = node_int(n, "sampling_ratio", 0);
    return node_done(n, build3(b, n->relay, n->in[0], n->in[1], n->in[2], a));
}

/* ---- NonMaxSuppression: (picture, class, box) of what is left, [K, 3] --------------------------- */

/* Input i as a scalar, `otherwise` if it is left out; NULL with an error. */
static const Expr *one_of(Node *n, uint32_t i, const Expr *otherwise)
{
    if (!node_has(n, i))
        return otherwise;
    if (!node_need_rank(n, i, 0, 1))
        return NULL;
    if (!expr_single(n->in[i]))
        return node_error(n, E_IMPORT, "input %u ('%s') should be one number", i,
                          n->p->input.at[i]);
    return build_reshape(&n->b, n->in[i], 0, NULL);
}

/* Scores in order, NaN as the least of them; lists of boxes for each class, and the cells that are
 * boxes. */
bool convert_non_max_suppression(Node *n)
{
    const Build            *b = &n->b;
    NonMaxSuppressionAttrs *a = ATTRS(b, NonMaxSuppressionAttrs);
    SortAttrs              *by = ATTRS(b, SortAttrs);
    const Expr             *in[6], *scores, *left, *at, *class, *column[3];
    const Idx              *total, *room, *shape[2];
    int64_t                 most;

    if (!node_need_rank(n, 0, 3, 3) || !node_need_rank(n, 1, 3, 3))
        return false;
    n->in[1] = onnx_agreed(n, n->in[1], 2, expr_form(n->in[0], 1));
    if (!n->in[1])
        return false;
    room = onnx_most(n->im, expr_form(n->in[0], 1));
    a->center = node_int(n, "center_point_box", 0) != 0;
    in[0] = n->in[0];
    scores = n->in[1];
    in[3] = one_of(n, 2, expr_scalar(b->c, DT_I64, 0));
    in[4] = one_of(n, 3, expr_scalar(b->c, DT_F32, 0));
    in[5] = one_of(n, 4, in[4]);
    if (!in[3] || !in[4] || !in[5])
        return false;
    if (node_constant(n, 2)) {
        if (node_has(n, 2) && !node_const_int(n, 2, &most))
            return false;
        most = node_has(n, 2) && most > 0 ? most : 0;
        room = idx_const(b->c->arith, most < room->hi ? most : room->hi);
    }
    a->room = dims_dup(b->c, &room, 1);
    scores = build_where(b, build1(b, "isnan", scores, NULL), build_scalar(b, scores, -INFINITY),
                         scores);
    by->axis = -1;
    by->is_ascend = false;
    by->dtype = DT_I64;
    in[1] = scores;
    in[2] = build1(b, "argsort", scores, by);
    if (!in[2])
        return false;
    left = build_call(b, n->relay, node_has(n, 4) ? 6 : 5, in, a);
    if (!left)
        return false;
    total = type_cells(b->c, left->type);
    if (total->hi == 0)
        return node_done(n, build_zeros(b, DT_I64, 2, (int64_t[]){0, 3}));
    left = build_reshape_to(b, left, 1, &total);
    at = onnx_positions(n, build2(b, "less_equal", build_scalar(b, left, 0), left, NULL), 0, 0,
                        NULL);
    if (!at)
        return false;
    shape[0] = expr_form(at, 0);
    shape[1] = idx_const(b->c->arith, 1);
    column[2] = build_take(b, left, at, 0);
    class = build2(b, "floor_divide", at, build_reshape(b, cell_form(b, room), 0, NULL), NULL);
    left = build_reshape(b, cell_form(b, expr_form(scores, 1)), 0, NULL); /* as many classes */
    column[0] = build2(b, "floor_divide", class, left, NULL);
    column[1] = build2(b, "floor_mod", class, left, NULL);
    for (uint32_t i = 0; i < 3; i++)
        column[i] = build_reshape_to(b, column[i], 2, shape);
    return node_done(n, build_concat(b, 3, column, 1));
}
