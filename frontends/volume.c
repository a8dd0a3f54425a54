/* Convolution and pooling of volumes, [N, C, D, H, W], as those of pictures.
 *
 * A tap at depth k sees every stride-th slice from k on; the slices it sees are pictures of one
 * batch, [N*D', C, H, W].  Taps are added, or their largest taken:
 *     y[d'] = sum over k of conv2d(x[d'*stride + k*dilation - begin], w[k])
 *
 * Convolutions without groups are one of more channels for each slice of the result instead:
 *     y[d'] = conv2d(x[.. the slices that taps meet ..] as [N, taps*C, H, W], w as [O, taps*C, ..])
 *
 * Two neighbouring dimensions that a window moves through cell by cell are one, without a copy: of
 * a kernel of 3x1x1 height and width, of 1x1x3 depth and height.  A pool of one slice has those of
 * all channels as pictures of more channels. */
#include "frontends/calls.h"

#include <math.h>
#include <string.h>

/* Slices of a result that are convolutions of their own; weights that take as long to read as a
 * cell to copy; slices and padding among which are chosen those that are read. */
enum { MOST_SLICES = 64, COPIED_CELL = 8, MOST_CHOICE = 65536 };

typedef struct {
    const Build *b;
    const Expr  *data, *x; /* [N, D, C, H, W], as it is and padded */
    int64_t      out;      /* D' */
    int64_t      stride, dilation, taps;
    BuildWindow  plane; /* of height and width */
} Volume;

/* Of pictures with two of the three dimensions. */
static BuildWindow plane_of(const BuildWindow *w, uint32_t height, uint32_t width)
{
    BuildWindow r = {0};

    for (uint32_t i = 0; i < 2; i++) {
        uint32_t from = i ? width : height;

        r.kernel[i] = w->kernel[from];
        r.stride[i] = w->stride[from];
        r.dilation[i] = w->dilation[from];
        r.begin[i] = w->begin[from];
        r.end[i] = w->end[from];
    }
    return r;
}

static bool volume(const Build *b, const Expr *x, const BuildWindow *w, double fill, bool ceil_mode,
                   Volume *v)
{
    int64_t pads[10] = {0}, span = (w->kernel[0] - 1) * w->dilation[0] + 1;
    int64_t cells = build_dim(b, x, 2) + w->begin[0] + w->end[0] - span, out, need;

    *v = (Volume){.b = b, .stride = w->stride[0], .dilation = w->dilation[0], .taps = w->kernel[0]};
    v->plane = plane_of(w, 1, 2);
    if (cells < 0 || v->taps > 1024)
        return build_error(b, E_IMPORT, "a window of %lld for a depth of %lld", (long long)span,
                           (long long)build_dim(b, x, 2));
    out = cells / v->stride + 1;
    /* The last window of ceil_mode has to begin inside the data or the padding before them. */
    if (ceil_mode && cells % v->stride && out * v->stride < build_dim(b, x, 2) + w->begin[0])
        out++;
    need = (out - 1) * v->stride + span;
    pads[2] = w->begin[0];
    pads[3] = need - build_dim(b, x, 2) - w->begin[0];
    v->out = out;
    v->data = build_transpose(b, x, 5, (int64_t[]){0, 2, 1, 3, 4});
    v->x = v->data ? build_pad(b, v->data, pads, fill, "constant") : NULL;
    return v->x != NULL;
}

/* [.., a, b, ..] -> [.., a*b, ..], dimension `at` and the next, of five. */
static const Expr *joined(const Build *b, const Expr *x, uint32_t at)
{
    const Idx *dims[4];

    if (!x)
        return NULL;
    for (uint32_t i = 0; i < 4; i++)
        dims[i] = expr_form(x, i <= at ? i : i + 1);
    dims[at] = idx_mul(b->c->arith, dims[at], expr_form(x, at + 1));
    return build_reshape_to(b, x, 4, dims);
}

/* [N, D, C, H, W] -> [N*D, C, H, W] */
static const Expr *one_batch(const Build *b, const Expr *x)
{
    return joined(b, x, 0);
}

/* [N*D, C, H, W] -> [N, D, C, H, W] */
static const Expr *many_batches(const Build *b, const Expr *y, const Idx *N, int64_t D)
{
    const Idx *dims[5] = {N, idx_const(b->c->arith, D)};

    if (!y)
        return NULL;
    for (uint32_t i = 1; i < 4; i++)
        dims[i + 1] = expr_form(y, i);
    return build_reshape_to(b, y, 5, dims);
}

/* Every stride-th of the slices of x [N, D, C, H, W] from `begin` on, n of them. */
static const Expr *slices(const Build *b, const Expr *x, int64_t begin, int64_t n, int64_t stride)
{
    StridedSliceAttrs *a = ATTRS(b, StridedSliceAttrs);
    int64_t            end = begin + (n - 1) * stride + 1;

    a->axes = ints_dup(b->c, (int64_t[]){1}, 1);
    a->begin = dims_of_i64(b->c, &begin, 1);
    a->end = dims_of_i64(b->c, &end, 1);
    a->strides = ints_dup(b->c, &stride, 1);
    return build1(b, "strided_slice", x, a);
}

static const Expr *pictures(const Volume *v, int64_t k)
{
    return one_batch(v->b, slices(v->b, v->x, k * v->dilation, v->out, v->stride));
}

/* Is one of the slices that tap k sees not padding, of which there are `before` before the data? */
static bool is_live(const Volume *v, int64_t k, int64_t before, int64_t depth)
{
    return conv_tap_is_live(k * v->dilation - before, v->stride, depth, v->out);
}

/* [N*D', C, H, W] -> [N, C, D', H, W] */
static const Expr *stacked(const Volume *v, const Expr *y)
{
    y = many_batches(v->b, y, expr_form(v->x, 0), v->out);
    return y ? build_transpose(v->b, y, 5, (int64_t[]){0, 2, 1, 3, 4}) : NULL;
}

static Ints pads_of(const Build *b, const BuildWindow *w)
{
    return ints_of(b->c, 4, (int)w->begin[0], (int)w->begin[1], (int)w->end[0], (int)w->end[1]);
}

/* The first tap that meets data for slice `at` of the result, and how many do. */
static int64_t live_taps(const Volume *v, int64_t at, int64_t before, int64_t depth, int64_t *n)
{
    int64_t first = 0;

    *n = 0;
    for (int64_t k = 0; k < v->taps; k++) {
        int64_t from = at * v->stride + k * v->dilation - before;

        if (from < 0 || from >= depth)
            continue;
        first = *n ? first : k;
        ++*n;
    }
    return first;
}

/* Do all slices of the result see data, none of them padding alone? */
static bool all_see_data(const Volume *v, int64_t before, int64_t depth)
{
    int64_t n;

    for (int64_t i = 0; i < v->out; i++)
        if (live_taps(v, i, before, depth, &n), !n)
            return false;
    return true;
}

/* [N, runs, C * taps, H, W]: what `n` taps see for `run` slices of the result, the first of them
 * from slice `begin` of the data on; of one slice these lie as they are. */
static const Expr *seen(const Volume *v, int64_t begin, int64_t n, int64_t run)
{
    const Build *b = v->b;
    const Expr **at = NEW_ARRAY(b->c->arena, const Expr *, n), *x = v->data;
    int64_t      parts = run > 1 ? n : 1;
    const Idx   *dims[5] = {expr_form(x, 0), idx_const(b->c->arith, run), NULL, expr_form(x, 3),
                            expr_form(x, 4)};

    dims[2] = idx_mulc(b->c->arith, expr_form(x, 2), n / parts);
    for (int64_t i = 0; i < parts; i++) {
        at[i] = run > 1 ? slices(b, x, begin + i * v->dilation, run, v->stride)
                        : slices(b, x, begin, n, v->dilation);
        if (!at[i] || !(at[i] = build_reshape_to(b, at[i], 5, dims)))
            return NULL;
    }
    return build_concat(b, (uint32_t)parts, at, 2);
}

/* Slices of the result by themselves: those that its taps see are channels of one picture, so the
 * taps are one sum, none of which is padding.  Small pictures do not fill the register tiles, and
 * all weights are read for each: slices with the same taps are a batch then, for which pictures are
 * copied.  128 to 128, 3x3x3 on 4x7x7 took 580 us as batches, 735 by themselves; 64 to 64 on
 * 8x14x14 1,290 and 1,020, 96 to 10, 5x5x5 by 2 on 7x7x7 164 and 155 (Zen 4). */
static const Expr *conv_slices(const Volume *v, const Expr *w, int64_t before, const Conv2dAttrs *a)
{
    const Build *b = v->b;
    int64_t      depth = build_dim(b, v->data, 1), in = build_dim(b, w, 1), n, parts = 0;
    const Expr **y = NEW_ARRAY(b->c->arena, const Expr *, v->out);
    Ints         d = build_dims(b, w);
    bool         batches = COPIED_CELL * expr_form(v->data, 3)->lo * expr_form(v->data, 4)->lo <
                   d.at[0] * d.at[3] * d.at[4];

    w = build_transpose(b, w, 5, (int64_t[]){0, 2, 1, 3, 4});
    for (int64_t i = 0, run; w && i < v->out; i += run) {
        int64_t k = live_taps(v, i, before, depth, &n), more;

        for (run = 1; batches && i + run < v->out; run++)
            if (live_taps(v, i + run, before, depth, &more) != k || more != n)
                break;
        const Expr *taps = build_reshape(b, build_slice(b, w, 1, k, k + n), 4,
                                         (int64_t[]){d.at[0], n * in, d.at[3], d.at[4]});
        const Expr *data = seen(v, i * v->stride + k * v->dilation - before, n, run);

        data = data && taps ? build2(b, "nn.conv2d", one_batch(b, data), taps, a) : NULL;
        y[parts] = many_batches(b, data, expr_form(v->data, 0), run);
        if (!y[parts++])
            return NULL;
    }
    if (!w)
        return NULL;
    const Expr *all = build_concat(b, (uint32_t)parts, y, 1);

    return all ? build_transpose(b, all, 5, (int64_t[]){0, 2, 1, 3, 4}) : NULL;
}

/* Does the window leave dimension i as it is? */
static bool moves_by_cells(const BuildWindow *w, uint32_t i)
{
    return w->kernel[i] == 1 && w->stride[i] == 1 && !w->begin[i] && !w->end[i];
}

/* The first of two neighbouring dimensions, of depth, height, width, that are as good as one; 2:
 * none are. */
static uint32_t joint_of(const BuildWindow *w)
{
    uint32_t at = 0;

    while (at < 2 && !(moves_by_cells(w, at) && moves_by_cells(w, at + 1)))
        at++;
    return at;
}

/* `joined` and back, to what `like` has in their places. */
static const Expr *apart_again(const Build *b, const Expr *y, uint32_t at, const Expr *like)
{
    const Idx *dims[5];

    if (!y)
        return NULL;
    for (uint32_t i = 0; i < 5; i++)
        dims[i] = i == at || i == at + 1 ? expr_form(like, i) : expr_form(y, i < at ? i : i - 1);
    return build_reshape_to(b, y, 5, dims);
}

static Conv2dAttrs *conv_attrs(const Build *b, const BuildWindow *plane, int64_t channels,
                               int64_t group, const char *out_dtype)
{
    Conv2dAttrs *a = ATTRS(b, Conv2dAttrs);

    a->strides = ints_dup(b->c, plane->stride, 2);
    a->dilation = ints_dup(b->c, plane->dilation, 2);
    a->padding = pads_of(b, plane);
    a->groups = group;
    a->channels = channels;
    a->kernel_size = ints_dup(b->c, plane->kernel, 2);
    a->out_dtype = out_dtype;
    return a;
}

/* The slices along depth or height of x that windows read which share none, of 2 by stride 4 from
 * -1 on 0 3 4 7 8 ..; where these are not all, *w becomes the window of what is left. */
static const Expr *slices_read(const Build *b, const Expr *x, BuildWindow *w, uint32_t i)
{
    int64_t taps = w->kernel[i], span = (taps - 1) * w->dilation[i] + 1, size, n = 0;
    int64_t before = 0, behind = 0, windows, *at;

    if (!x || !type_dim(x->type, 2 + i, &size) || w->stride[i] < span || w->stride[i] == taps ||
        size + w->begin[i] + w->end[i] < span || size + w->begin[i] + w->end[i] > MOST_CHOICE)
        return x;
    windows = (size + w->begin[i] + w->end[i] - span) / w->stride[i] + 1;
    at = NEW_ARRAY(b->c->arena, int64_t, size);
    for (int64_t k = 0; k < windows * taps; k++) {
        int64_t from = k / taps * w->stride[i] + k % taps * w->dilation[i] - w->begin[i];

        if (from < 0)
            before++;
        else if (from >= size)
            behind++;
        else
            at[n++] = from;
    }
    if (!n || n == size)
        return x;
    w->begin[i] = before;
    w->end[i] = behind;
    w->stride[i] = taps;
    w->dilation[i] = 1;
    return build_take(b, x, build_i64s(b, (uint32_t)n, at), 2 + i);
}

/* Depths and heights that no window reads are left out first, so that layouts change of that much
 * less; rows stay, of which a copy is quicker than of cells. */
const Expr *build_conv_volume(const Build *b, const Expr *x, const Expr *w, const BuildWindow *all,
                              int64_t group, const char *out_dtype)
{
    Conv2dAttrs *a;
    Ints         d = build_dims(b, w);
    const Expr  *sum = NULL, *whole;
    BuildWindow  left = *all, *win = &left;
    Volume       v;

    for (uint32_t i = 0; i < 2; i++)
        x = slices_read(b, x, win, i);
    if (!x)
        return NULL;
    whole = x;
    uint32_t joint = joint_of(win);
    if (joint < 2) {
        BuildWindow plane = plane_of(win, 0, 2 - joint);

        a = conv_attrs(b, &plane, d.at[0], group, out_dtype);
        x = joined(b, x, 2 + joint);
        w = joined(b, w, 2 + joint);
        return x && w ? apart_again(b, build2(b, "nn.conv2d", x, w, a), 2 + joint, whole) : NULL;
    }
    if (!volume(b, x, win, 0, false, &v))
        return NULL;
    a = conv_attrs(b, &v.plane, d.at[0], group, out_dtype);
    if (group == 1 && v.out <= MOST_SLICES && all_see_data(&v, win->begin[0], build_dim(b, x, 2)))
        return conv_slices(&v, w, win->begin[0], a);
    for (int64_t k = 0; k < v.taps; k++) {
        if (!is_live(&v, k, win->begin[0], build_dim(b, x, 2)) && (sum || k < v.taps - 1))
            continue;

        const Expr *wk = build_reshape(b, build_slice(b, w, 2, k, k + 1), 4,
                                       (int64_t[]){d.at[0], d.at[1], d.at[3], d.at[4]});
        const Expr *y = build2(b, "nn.conv2d", pictures(&v, k), wk, a);

        if (!y)
            return NULL;
        sum = sum ? build2(b, "add", sum, y, NULL) : y;
    }
    return stacked(&v, sum);
}

/* [N, D, C, H, W], the slices apart by `stride`, `before` zeros before and `behind` behind them;
 * cells beyond either end are cut off where these are below 0. */
static const Expr *apart(const Build *b, const Expr *x, int64_t stride, int64_t before,
                         int64_t behind)
{
    int64_t    between[12] = {0, 0, 0, 0, 0, stride - 1}, around[10] = {0}, depth;
    const Idx *dims[6];

    if (!x)
        return NULL;
    depth = build_dim(b, x, 1) * stride;
    for (uint32_t i = 0; i < 6; i++)
        dims[i] = i == 2 ? idx_const(b->c->arith, 1) : expr_form(x, i < 2 ? i : i - 1);
    x = build_pad(b, build_reshape_to(b, x, 6, dims), between, 0, "constant");
    dims[1] = dims[0];
    dims[2] = idx_const(b->c->arith, depth);
    x = build_reshape_to(b, x, 5, dims + 1);
    if (before < 0 || behind < 0)
        x = build_slice(b, x, 1, before < 0 ? -before : 0, behind < 0 ? depth + behind : depth);
    around[2] = before > 0 ? before : 0;
    around[3] = behind > 0 ? behind : 0;
    return build_pad(b, x, around, 0, "constant");
}

/* y[i*stride + k*dilation - begin] += conv2d_transpose(x[i], w[k]) */
const Expr *build_conv_transpose_volume(const Build *b, const Expr *x, const Expr *w,
                                        const BuildWindow *win, const int64_t *extra, int64_t group)
{
    Ints                  dw = build_dims(b, w);
    const Idx            *N = expr_form(x, 0);
    int64_t               slices = build_dim(b, x, 2);
    Conv2dTransposeAttrs *a = ATTRS(b, Conv2dTransposeAttrs);
    const Expr           *sum = NULL;
    int64_t depth = (slices - 1) * win->stride[0] + (win->kernel[0] - 1) * win->dilation[0] + 1 +
                    extra[0] - win->begin[0] - win->end[0];

    if (depth < 1 || slices < 1 || win->kernel[0] > 1024)
        return build_error(b, E_IMPORT, "the result has a depth of %lld", (long long)depth);
    a->strides = ints_dup(b->c, win->stride + 1, 2);
    a->dilation = ints_dup(b->c, win->dilation + 1, 2);
    a->padding = ints_of(b->c, 4, (int)win->begin[1], (int)win->begin[2], (int)win->end[1],
                         (int)win->end[2]);
    a->output_padding = ints_dup(b->c, extra + 1, 2);
    a->groups = group;
    a->channels = dw.at[1] * group;
    a->kernel_size = ints_dup(b->c, win->kernel + 1, 2);
    x = one_batch(b, build_transpose(b, x, 5, (int64_t[]){0, 2, 1, 3, 4}));
    for (int64_t k = 0; k < win->kernel[0]; k++) {
        int64_t     first = k * win->dilation[0] - win->begin[0];
        const Expr *wk = build_reshape(b, build_slice(b, w, 2, k, k + 1), 4,
                                       (int64_t[]){dw.at[0], dw.at[1], dw.at[3], dw.at[4]});
        const Expr *y = build2(b, "nn.conv2d_transpose", x, wk, a);

        if (!y)
            return NULL;
        if (first >= depth || first + slices * win->stride[0] <= 0)
            continue;
        y = apart(b, many_batches(b, y, N, slices), win->stride[0], first,
                  depth - first - slices * win->stride[0]);
        sum = sum ? build2(b, "add", sum, y, NULL) : y;
    }
    if (!sum)
        return build_error(b, E_UNSUPPORTED, "pads that leave nothing");
    return build_transpose(b, sum, 5, (int64_t[]){0, 2, 1, 3, 4});
}

/* 1 / how many taps of each output slice count, [D', 1, 1]. */
static const Expr *shares(const Volume *v, const Expr *like, int64_t first, int64_t last)
{
    const Build *b = v->b;
    DType        t = expr_dtype(like);
    uint8_t     *at = arena_array(b->c->arena, (size_t)v->out, dtype_bytes(t));

    for (int64_t i = 0; i < v->out; i++) {
        int64_t count = 0;

        for (int64_t k = 0; k < v->taps; k++) {
            int64_t p = i * v->stride + k * v->dilation;

            count += p >= first && p < last;
        }
        dtype_put_f(t, at + i * dtype_bytes(t), count ? 1 / (double)count : 0);
    }
    return build_const(b, t, 3, (int64_t[]){v->out, 1, 1}, at);
}

static void pool_attrs(const Build *b, const BuildWindow *plane, Pool2dAttrs *a)
{
    a->pool_size = ints_dup(b->c, plane->kernel, 2);
    a->strides = ints_dup(b->c, plane->stride, 2);
    a->dilation = ints_dup(b->c, plane->dilation, 2);
    a->padding = pads_of(b, plane);
}

const Expr *build_pool_volume(const Build *b, const char *op, const Expr *x, const BuildWindow *w,
                              BuildPooling how)
{
    bool         largest = strstr(op, "max") != NULL, all = how.count_include_pad;
    DType        t = expr_dtype(x);
    double       fill = !largest ? 0 : dtype_is_float(t) ? -INFINITY : dtype_min(t);
    const Expr  *r = NULL;
    Pool2dAttrs *a = ATTRS(b, Pool2dAttrs);
    Volume       v;

    a->ceil_mode = how.ceil_mode;
    a->count_include_pad = all;
    bool slices = moves_by_cells(w, 0);

    if (slices || joint_of(w) < 2) {
        uint32_t    at = slices ? 1 : 3; /* channels and depth, or height and width */
        BuildWindow plane = slices ? plane_of(w, 1, 2) : plane_of(w, 0, 1);
        const Expr *one = joined(b, x, at);

        pool_attrs(b, &plane, a);
        return one ? apart_again(b, build1(b, op, one, a), at, x) : NULL;
    }
    if (!volume(b, x, w, fill, a->ceil_mode, &v))
        return NULL;
    pool_attrs(b, &v.plane, a);
    for (int64_t k = 0; k < v.taps; k++) {
        const Expr *y = build1(b, op, pictures(&v, k), a);

        r = r ? build2(b, largest ? "maximum" : "add", r, y, NULL) : y;
        if (!r)
            return NULL;
    }
    r = stacked(&v, r);
    if (!r || largest)
        return r;
    return build2(b, "multiply", r,
                  shares(&v, r, all ? 0 : w->begin[0],
                         w->begin[0] + build_dim(b, x, 2) + (all ? w->end[0] : 0)),
                  NULL);
}
