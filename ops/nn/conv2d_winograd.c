/* Winograd's convolution: kernels of 1 to 7 each way, stride 1, with fewer multiplications.
 *
 *     %u = nn.contrib_conv2d_winograd_weight_transform(%w, tile_size=4);        // folded:
 * constants %y = nn.contrib_conv2d_winograd_without_weight_transform(%d, %u, tile_size=4,
 * padding=..);
 *
 * The output is cut into tiles of m by m, each of a = tile_size + 2 cells of input each way, of
 * which a kernel of k leaves m = a + 1 - k outputs: a 3x3 kernel tiles of 4x4 or 2x2, one of 5x5
 * tiles of 2x2 with the same transform of the input.  A tile_size of 6 is for kernels of 4 to 7;
 * the other way a kernel of less has 6 cells.  Where the kernel is 1, so are a and m, and nothing
 * is transformed.  With h and w a tile's row, of all images, and column:
 *
 *     %v1[c, h, w, r, q, i] = case(q; B' rows over k of %pad[n, c, h*m + r, w*m + k, i])
 *     %v[r, q, c, h, w, i] = case(r; B' rows over k of %v1[c, h, w, k, q, i])
 *     %m[r, q, h, w, o] = sum[c, i] %v[r, q, c, h, w, i] * %u[r, q, o, c*8 + i]
 *     %y1[h, w, a, q, o] = case(a; A' rows over k of %m[k, q, h, w, o])
 *     %y[n, o, y, x, j] = case(x % m; A' rows over k of %y1[y // m, x // m, y % m, k, o*8 + j])
 *
 * Short tiles: of the last row and column of several only e outputs may be wanted, for which e + 2
 * products are enough (of a 3x3 kernel).  These are the first ones of the tile's, whose points are
 * 0, 1, -1, 2, -2 and infinity: one output less needs the last one no more, and 3 and 4 products
 * have transforms of their own for the same weights.  Cells after these are computed by nobody who
 * leaves out what is not read (`skip_unread`).
 *
 * Where a run decides height or width, the tiles of all rows are one line, h = 0, of which tile w
 * is that of row w // tw and column w % tw: parts of a line are as many tiles as is best, whatever
 * the width.  Behind the last one lie some more, fewer than WINOGRAD_OPEN_TILES, so that parts of
 * up to so many are whole.
 *
 * In groups the sum of o is over the channels of its group.  Where a block holds whole groups, all
 * first channels lie side by side in %v, then all second ones, and in %m the outputs likewise: a
 * number for each group, read over and over, is then what a vector of outputs takes of %v.
 *
 * The transforms keep their factored forms: unrolled arms of one case share their sums.  The
 * weights are transformed in double precision.  Error: the products are exact to rounding, but the
 * transforms grow numbers by up to 4*5*5/4 for m = 4: about 1e-6 of the largest output, measured on
 * whole networks.  Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016.
 *
 * 8-bit integers, of 3x3 kernels, are exact: data are transformed in i16, which holds 255 * 10 * 10
 * (m = 4; 255 * 4 for m = 2), weights by G whose rows are multiplied by what makes them whole: 2G
 * for m = 2, and for m = 4 by 4, 6, 6, 24, 24 and 1, which transform_int_output makes 24 of all; so
 * the sums are 4 and 24 * 24 = 9 * 64 times the result.  Sums wrap: multiplied by the inverse of 9
 * modulo 2^32, they are 64 times the result, and only that need fit into 32 bits.  For m = 2 any
 * weights of few enough channels let it, for m = 4 `conv2d_winograd` looks at them. */
#include "ops/nn/winograd.h"

#include <string.h>

enum { TILES = -1 }; /* as many as there are rows or columns of tiles */
enum { MAX_INT_CHANNELS = (1 << 29) / (255 * 128 * 9) };

/* Tiles of 4x4: results within 26 bits; 9 * INVERSE_OF_9 = 1 modulo 2^32. */
enum { MAX_INT4_SUM = (1 << 25) - 1, INVERSE_OF_9 = 0x38e38e39 };

typedef struct {
    int64_t    k[2], m[2], a[2]; /* the kernel; output and input cells of a tile */
    int64_t    block;            /* 0: plain */
    int64_t    in_c, out_c;
    int64_t    groups, group_in, group_out; /* channels of one */
    bool       within;                      /* groups lie within a block */
    int64_t    n;                           /* images: one where a run decides sizes */
    const Idx *th, *tw;                     /* rows and columns of tiles of an image */
    const Idx *rows, *cols;                 /* ... of all images; in line: 1, and all tiles */
    bool       in_line;                     /* a run decides how many there are */
    int64_t    edge[2];                     /* outputs of the last row's, the last column's tiles */
    int64_t    pad_lo[2], pad_hi[2], pad_value;
    DType      data, sum; /* types of the transformed data and of the products' sums */
} Winograd;

/* ---- type relations ---------------------------------------------------------------------------------- */

static bool is_small_int(DType t)
{
    return dtype_is_int(t) && t.bits == 8 && t.lanes == 1;
}

int64_t winograd_cells(int64_t tile, const int64_t k[2], uint32_t axis)
{
    int64_t cells = tile + 2, most = k[0] > k[1] ? k[0] : k[1];

    if (k[axis] < 1 || most > tile + 1 || (tile == 6 && most < 4))
        return 0;
    return k[axis] == 1 ? 1 : tile == 6 && k[axis] < 4 ? 6 : cells;
}

static bool has_tiles(int64_t tile, const int64_t k[2])
{
    return winograd_cells(tile, k, 0) && winograd_cells(tile, k, 1) && k[0] * k[1] > 1;
}

/* Sizes of a tile. */
static bool tile_sizes(Ctx *c, Loc loc, int64_t tile, Ints kernel, Winograd *w)
{
    if (tile != 2 && tile != 4 && tile != 6)
        return error_at(c, E_TYPE, loc, "tile_size is %lld, not 2, 4 or 6", (long long)tile);
    if (!rel_ints(c, loc, "kernel_size", kernel, 2, 1))
        return false;
    if (!has_tiles(tile, kernel.at))
        return error_at(c, E_TYPE, loc, "a tile_size of %lld for a kernel of %lldx%lld",
                        (long long)tile, (long long)kernel.at[0], (long long)kernel.at[1]);
    for (uint32_t i = 0; i < 2; i++) {
        w->k[i] = kernel.at[i];
        w->a[i] = winograd_cells(tile, kernel.at, i);
        w->m[i] = w->a[i] + 1 - w->k[i];
    }
    return true;
}

const Type *rel_winograd_weight(Ctx *c, Loc loc, const void *attrs, const Type *const *in,
                                uint32_t nin)
{
    const WinogradWeightAttrs *a = attrs;
    int64_t                    k[2];
    Winograd                   w;

    if (!rel_tensors(c, loc, in, nin) || !tile_sizes(c, loc, a->tile_size, a->kernel_size, &w) ||
        !rel_rank(c, loc, in[0], 4, "weight") || !rel_dim(c, loc, in[0], 2, &k[0]) ||
        !rel_dim(c, loc, in[0], 3, &k[1]))
        return NULL;
    DType t = dtype_eq(in[0]->dtype, DT_I8) ? DT_I16 : in[0]->dtype;

    if (k[0] != w.k[0] || k[1] != w.k[1] ||
        !(dtype_is_float(t) || (dtype_eq(t, DT_I16) && k[0] == 3 && k[1] == 3)))
        return error_at(c, E_TYPE, loc,
                        "the weight must be floats of %lldx%lld or i8 of 3x3, not %s",
                        (long long)w.k[0], (long long)w.k[1], type_text(c, in[0]));
    const Idx *dims[4] = {idx_const(c->arith, w.a[0]), idx_const(c->arith, w.a[1]), in[0]->dims[0],
                          in[0]->dims[1]};

    return rel_tensor(c, loc, t, 4, dims);
}

/* A group is whole blocks on both sides, or blocks hold whole groups. */
static bool are_blocks(const Winograd *w)
{
    return w->groups == 1 || !w->block || w->within ||
           (w->group_in % w->block == 0 && w->group_out % w->block == 0);
}

/* Sizes; `out` gets the dimensions of the result. */
static bool winograd_sizes(Ctx *c, Loc loc, const Conv2dWinogradAttrs *a, const Type *data,
                           const Type *u, Winograd *w, const Idx **out)
{
    Arith  *A = c->arith;
    int64_t d[2], ud[4], cells;
    bool    open = false;

    if (!tile_sizes(c, loc, a->tile_size, a->kernel_size, w) ||
        !rel_ints(c, loc, "padding", a->padding, 4, 0) ||
        !rel_layout(c, loc, a->data_layout, "NCHW", &w->block) ||
        !rel_rank(c, loc, data, w->block ? 5 : 4, "data") ||
        !rel_rank(c, loc, u, 4, "transformed weight"))
        return false;
    for (uint32_t i = 0; i < 4; i++)
        if ((i < 2 && !rel_dim(c, loc, data, i, &d[i])) || !rel_dim(c, loc, u, i, &ud[i]))
            return false;
    w->pad_value = a->pad_value;
    w->data = is_small_int(data->dtype) ? DT_I16 : data->dtype;
    w->sum = is_small_int(data->dtype) ? DT_I32 : data->dtype;
    w->n = d[0];
    w->in_c = d[1] * (w->block ? w->block : 1);
    w->out_c = ud[2];
    w->group_in = ud[3];
    w->groups = a->groups;
    if (ud[0] != w->a[0] || ud[1] != w->a[1] || w->groups < 1 || w->group_in < 1 ||
        w->in_c / w->group_in != w->groups || w->in_c % w->group_in || w->out_c < 1 ||
        w->in_c < 1 || w->n < 1 || w->out_c % w->groups || (w->block && w->out_c % w->block))
        return error_at(c, E_TYPE, loc, "a transformed weight %s for data %s", type_text(c, u),
                        type_text(c, data));
    w->group_out = w->out_c / w->groups;
    w->within = w->groups > 1 && conv2d_groups_within(w->group_in, w->group_out, w->block);
    if (!are_blocks(w))
        return error_at(c, E_TYPE, loc, "blocks of %lld and groups of %lld to %lld channels",
                        (long long)w->block, (long long)w->group_in, (long long)w->group_out);
    for (uint32_t i = 0; i < 2; i++) {
        w->pad_lo[i] = a->padding.at[i];
        w->pad_hi[i] = a->padding.at[i + 2];
        out[i + 2] = idx_addc(A, data->dims[i + 2], w->pad_lo[i] + w->pad_hi[i] + 1 - w->k[i]);
        open |= !idx_is_const(out[i + 2], &cells);
        if (out[i + 2]->lo < 1)
            return error_at(c, E_TYPE, loc, "a kernel of %lld does not fit into dimension %u of %s",
                            (long long)w->k[i], i + 2, type_text(c, data));
    }
    w->th = idx_divc(A, idx_addc(A, out[2], w->m[0] - 1), w->m[0]);
    w->tw = idx_divc(A, idx_addc(A, out[3], w->m[1] - 1), w->m[1]);
    w->in_line = open;
    w->rows = open ? idx_const(A, 1) : idx_mulc(A, w->th, w->n);
    w->cols = open ? idx_addc(A, idx_mul(A, w->th, w->tw), WINOGRAD_OPEN_TILES - 1) : w->tw;
    for (uint32_t i = 0; i < 2; i++) {
        int64_t rest = 0;

        if (a->short_tiles && idx_is_const(out[i + 2], &cells) && cells > w->m[i])
            rest = cells % w->m[i];
        w->edge[i] = rest ? rest : w->m[i];
    }
    if ((a->short_tiles && dtype_is_int(data->dtype)) || ((a->short_tiles || open) && w->n != 1))
        return error_at(c, E_TYPE, loc, "%s are for one image%s, not %s",
                        a->short_tiles ? "short tiles" : "sizes that a run decides",
                        a->short_tiles ? " of floats" : "", type_text(c, data));
    out[0] = idx_const(A, w->n);
    out[1] = idx_const(A, w->block ? w->out_c / w->block : w->out_c);
    out[4] = idx_const(A, w->block);
    return true;
}

const Type *rel_conv2d_winograd(Ctx *c, Loc loc, const void *attrs, const Type *const *in,
                                uint32_t nin)
{
    const Idx *out[5];
    Winograd   w;

    if (!rel_tensors(c, loc, in, nin) ||
        !(is_small_int(in[0]->dtype) || rel_same_dtype(c, loc, in[0], in[1])) ||
        !winograd_sizes(c, loc, attrs, in[0], in[1], &w, out))
        return NULL;
    if (!dtype_eq(w.data, in[1]->dtype) ||
        (dtype_is_int(w.data) && (w.in_c > MAX_INT_CHANNELS || w.k[0] != 3 || w.k[1] != 3)))
        return error_at(c, E_TYPE, loc, "a transformed weight %s for data %s", type_text(c, in[1]),
                        type_text(c, in[0]));
    return rel_tensor(c, loc, w.sum, w.block ? 5 : 4, out);
}

/* ---- compute: the weights ---------------------------------------------------------------------------- */

bool te_winograd_weight(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    static const char *const   names[] = {"r", "q", "o", "c"};
    const WinogradWeightAttrs *attrs = call->attrs;
    Axes                       a = te_axes(c, 4, call->out[0]->dims, names);
    DType                      t = dtype_is_int(call->out[0]->dtype) ? DT_I16 : DT_F64;
    const Prim *g[WINOGRAD_MOST_KERNEL], *row[WINOGRAD_MOST_KERNEL][WINOGRAD_MOST_CELLS],
        *rows[WINOGRAD_MOST_CELLS], *cell[WINOGRAD_MOST_CELLS];
    Winograd w;

    if (!tile_sizes(c, call->loc, attrs->tile_size, attrs->kernel_size, &w))
        return false;
    /* G w of each column of the kernel, then G of those rows; double precision throughout. */
    for (int64_t x = 0; x < w.k[1]; x++) {
        for (int64_t y = 0; y < w.k[0]; y++) {
            const Idx *at[4] = {a.at[2], a.at[3], idx_const(c->arith, y), idx_const(c->arith, x)};

            g[y] = prim_cast(c, t, te_at(c, in[0], at));
        }
        winograd_weight(c, w.a[0], w.k[0], g, row[x]);
    }
    for (int64_t r = 0; r < w.a[0]; r++) {
        for (int64_t x = 0; x < w.k[1]; x++)
            g[x] = row[x][r];
        winograd_weight(c, w.a[1], w.k[1], g, cell);
        rows[r] = prim_case(c, a.at[1], (uint32_t)w.a[1], cell);
    }
    const Prim *u = prim_case(c, a.at[0], (uint32_t)w.a[0], rows);

    out[0] = te_compute(c, "u", call->out[0]->dtype, a, prim_cast(c, call->out[0]->dtype, u));
    return true;
}

/* ---- compute: the convolution ------------------------------------------------------------------------ */

/* The data with whole tiles around them. */
static const Tensor *padded(Ctx *c, const Winograd *w, const Tensor *d)
{
    static const char *const names[] = {"n", "c", "y", "x", "i"};
    Arith                   *A = c->arith;
    const Idx               *dims[5], *at[5];
    uint32_t                 nd = d->buffer->ndim;
    const Idx               *tiles[2] = {w->th, w->tw};
    Pred                     inside = PRED_TRUE;

    for (uint32_t i = 0; i < nd; i++)
        dims[i] = i == 2 || i == 3
                      ? idx_addc(A, idx_mulc(A, tiles[i - 2], w->m[i - 2]), w->k[i - 2] - 1)
                      : d->buffer->extent[i];
    if (dims[2] == d->buffer->extent[2] && dims[3] == d->buffer->extent[3] && !w->pad_lo[0] &&
        !w->pad_lo[1])
        return d;
    Axes a = te_axes(c, nd, dims, names);

    for (uint32_t i = 0; i < nd; i++) {
        at[i] = a.at[i];
        if (i != 2 && i != 3)
            continue;
        at[i] = idx_addc(A, a.at[i], -w->pad_lo[i - 2]);
        inside = pred_and(A, c->arena, inside, at[i]);
        inside =
            pred_and(A, c->arena, inside, idx_addc(A, idx_sub(A, d->buffer->extent[i], at[i]), -1));
    }
    DType t = d->buffer->dtype;

    return te_compute(c, "pad", t, a,
                      prim_select(c, pred_prim(c, inside), te_at(c, d, at),
                                  prim_num(c, t, (double)w->pad_value)));
}

/* Extents that are TILES are rows of tiles, of all images, and columns, in this order. */
static Axes axes(Ctx *c, const Winograd *w, uint32_t n, const int64_t *extents,
                 const char *const *names)
{
    const Idx *tiles[2] = {w->rows, w->cols}, *dims[TE_MAX_AXES];
    uint32_t   k = 0;

    for (uint32_t i = 0; i < n; i++)
        dims[i] = extents[i] == TILES && k < 2 ? tiles[k++] : idx_const(c->arith, extents[i]);
    return te_axes(c, n, dims, names);
}

/* Of the tiles of all images, one below the other: the row in its image. */
static const Idx *row_of(Ctx *c, const Winograd *w, const Idx *at)
{
    return w->n == 1 ? at : idx_mod(c->arith, at, w->th);
}

/* Places of a block that are groups of n channels, by the channels' order in their groups, and
 * back.
 */
static const Idx *beside(Ctx *c, const Winograd *w, const Idx *at, int64_t n)
{
    Arith *A = c->arith;

    if (n >= w->block || n < 1)
        return at;
    return idx_add(A, idx_mulc(A, idx_modc(A, at, n), w->block / n), idx_divc(A, at, n));
}

/* `whole`, of the last tile of an axis `last`. */
static const Prim *of_tile(Ctx *c, const Idx *at, const Idx *tiles, const Prim *whole,
                           const Prim *last)
{
    return prim_case(c, idx_divc(c->arith, at, tiles->hi - 1), 2, (const Prim *[]){whole, last});
}

/* Those from `n` on, which nobody reads. */
static void no_cells(Ctx *c, DType t, const Prim **at, int64_t n)
{
    for (int64_t i = n; i < WINOGRAD_MOST_CELLS; i++)
        at[i] = prim_num(c, t, 0);
}

int64_t winograd_short_cells(int64_t a, int64_t k, int64_t edge)
{
    int64_t cells = edge + k - 1;

    return a == 8 ? 7 : cells < 3 && a > 3 ? 3 : cells;
}

/* Cells of the last tile of an axis: as many as its outputs need. */
static int64_t short_cells(const Winograd *w, uint32_t axis)
{
    return winograd_short_cells(w->a[axis], w->k[axis], w->edge[axis]);
}

/* One transform of the input: cells along k by `at[along]`, the result's place by `which`, of the
 * tile `tile` of axis `axis`. */
static const Prim *input_rows(Ctx *c, const Winograd *w, const Tensor *x, const Idx **at,
                              uint32_t along, const Idx *first, const Idx *which, uint32_t axis,
                              const Idx *tile)
{
    const Prim *d[WINOGRAD_MOST_CELLS], *v[WINOGRAD_MOST_CELLS], *whole;
    int64_t     a = w->a[axis], cells = short_cells(w, axis);

    for (int64_t k = 0; k < a; k++) {
        at[along] = idx_addc(c->arith, first, k);
        d[k] = prim_cast(c, w->data, te_at(c, x, at));
    }
    winograd_input(c, a, d, v);
    whole = prim_case(c, which, (uint32_t)a, v);
    if (a != 6 || cells > 4)
        return whole;
    no_cells(c, w->data, v, cells);
    winograd_short_input(c, cells, d, v);
    return of_tile(c, tile, axis ? w->tw : w->th, whole, prim_case(c, which, (uint32_t)a, v));
}

static const Prim *output_rows(Ctx *c, const Winograd *w, const Tensor *x, const Idx **at,
                               uint32_t along, const Idx *which, uint32_t axis, const Idx *tile)
{
    const Prim *p[WINOGRAD_MOST_CELLS], *y[WINOGRAD_MOST_CELLS], *whole;
    int64_t     a = w->a[axis], m = w->m[axis], edge = w->edge[axis];

    for (int64_t k = 0; k < a; k++) {
        at[along] = idx_const(c->arith, k);
        p[k] = te_at(c, x, at);
    }
    winograd_output(c, a, m, p, y);
    whole = prim_case(c, which, (uint32_t)m, y);
    if (edge == m)
        return whole;
    no_cells(c, w->sum, y, edge);
    if (a == 6 && short_cells(w, axis) <= 4)
        winograd_short_output(c, short_cells(w, axis), edge, p, y);
    return of_tile(c, tile, axis ? w->tw : w->th, whole, prim_case(c, which, (uint32_t)m, y));
}

static const Tensor *transformed_input(Ctx *c, const Winograd *w, const Tensor *d)
{
    static const char *const first[] = {"c", "h", "w", "r", "q", "i"};
    static const char *const second[] = {"r", "q", "c", "h", "w", "i"};
    Arith                   *A = c->arith;
    const Tensor            *x = padded(c, w, d);
    uint32_t                 nd = w->block ? 6 : 5;
    int64_t                  blocks = w->block ? w->in_c / w->block : w->in_c;
    Axes a = axes(c, w, nd, (int64_t[]){blocks, TILES, TILES, w->a[0], w->a[1], w->block}, first);
    const Idx *ty = row_of(c, w, a.at[1]), *tx = a.at[2];
    const Idx *n = w->n == 1 ? idx_const(A, 0) : idx_div(A, a.at[1], w->th);

    if (w->in_line) { /* what lies behind the last one is read from the last row, and not used */
        ty = idx_min(A, idx_div(A, a.at[2], w->tw), idx_addc(A, w->th, -1));
        tx = idx_mod(A, a.at[2], w->tw);
    }
    const Idx *at[5] = {n, a.at[0], idx_add(A, idx_mulc(A, ty, w->m[0]), a.at[3]), NULL, a.at[5]};

    if (w->within)
        at[4] = beside(c, w, a.at[5], w->block / w->group_in);
    const Tensor *v1 =
        te_compute(c, "v1", w->data, a,
                   input_rows(c, w, x, at, 3, idx_mulc(A, tx, w->m[1]), a.at[4], 1, a.at[2]));

    a = axes(c, w, nd, (int64_t[]){w->a[0], w->a[1], blocks, TILES, TILES, w->block}, second);
    const Idx *vat[6] = {a.at[2], a.at[3], a.at[4], NULL, a.at[1], a.at[5]};

    return te_compute(
        c, "v", w->data, a,
        input_rows(c, w, v1, vat, 3, idx_const(A, 0), a.at[0], 0, row_of(c, w, a.at[3])));
}

static const Tensor *products(Ctx *c, const Winograd *w, const Tensor *v, const Tensor *u)
{
    static const char *const names[] = {"r", "q", "h", "w", "o", "l"}, *const rnames[] = {"c", "i"};
    Arith     *A = c->arith;
    int64_t    block = w->block, o = w->within ? w->out_c / block : w->out_c;
    int64_t    cells[] = {w->a[0], w->a[1], TILES, TILES, o, block};
    Axes       a = axes(c, w, w->within ? 6 : 5, cells, names);
    bool       blocks = w->block && !w->within;
    Axes       k = axes(c, w, blocks ? 2 : 1,
                        (int64_t[]){blocks ? w->group_in / w->block : w->group_in, w->block},
                        rnames + w->within);
    const Idx *ch = blocks ? idx_add(A, idx_mulc(A, k.at[0], w->block), k.at[1]) : k.at[0];
    const Idx *out = a.at[4];

    if (w->within) /* each lane's channel */
        out = idx_add(A, idx_mulc(A, a.at[4], block), beside(c, w, a.at[5], block / w->group_out));
    const Idx *group = idx_divc(A, out, w->group_out);
    const Idx *uat[4] = {a.at[0], a.at[1], out, ch};
    const Idx *vat[6] = {a.at[0], a.at[1], NULL, a.at[2], a.at[3]};

    if (w->within) {
        int64_t n = w->block / w->group_in; /* groups of a block */

        vat[2] = idx_divc(A, group, n);
        vat[5] = idx_add(A, idx_mulc(A, ch, n), idx_modc(A, group, n));
    } else if (w->block) {
        vat[2] = idx_add(A, idx_mulc(A, group, w->group_in / w->block), k.at[0]);
        vat[5] = k.at[1];
    } else {
        vat[2] = idx_add(A, idx_mulc(A, group, w->group_in), ch);
    }

    return te_reduce(c, "m", w->sum, a, COMB_SUM, k,
                     prim_mul(c, prim_cast(c, w->sum, te_at(c, v, vat)),
                              prim_cast(c, w->sum, te_at(c, u, uat))));
}

bool te_conv2d_winograd(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    static const char *const names[] = {"h", "w", "a", "q", "o"};
    static const char *const out_names[] = {"n", "o", "y", "x", "j"};
    Arith                   *A = c->arith;
    const Type              *type = call->out[0];
    const Idx               *dims[5];
    Winograd                 w;

    if (!winograd_sizes(c, call->loc, call->attrs, call->in[0], call->in[1], &w, dims))
        return false;
    const Tensor *m = products(c, &w, transformed_input(c, &w, in[0]), in[1]);
    Axes          a = axes(c, &w, 5, (int64_t[]){TILES, TILES, w.m[0], w.a[1], w.out_c}, names);
    const Idx    *mat[6] = {NULL, a.at[3], a.at[0], a.at[1], a.at[4]};

    if (w.within) {
        mat[4] = idx_divc(A, a.at[4], w.block);
        mat[5] = beside(c, &w, idx_modc(A, a.at[4], w.block), w.group_out);
    }
    const Tensor *y1 = te_compute(
        c, "y1", type->dtype, a, output_rows(c, &w, m, mat, 0, a.at[2], 0, row_of(c, &w, a.at[0])));

    a = te_axes(c, type->n, type->dims, out_names);
    const Idx *y = a.at[2], *x = a.at[3], *ty = idx_divc(A, y, w.m[0]),
              *tx = idx_divc(A, x, w.m[1]);
    const Idx *row = idx_add(A, idx_mul(A, a.at[0], w.th), ty);
    const Idx *tile = tx;

    if (w.in_line) {
        tile = idx_add(A, idx_mul(A, row, w.tw), tx);
        row = idx_const(A, 0);
    }
    const Idx  *ch = w.block ? idx_add(A, idx_mulc(A, a.at[1], w.block), a.at[4]) : a.at[1];
    const Idx  *yat[5] = {row, tile, idx_modc(A, y, w.m[0]), NULL, ch};
    const Prim *p = output_rows(c, &w, y1, yat, 3, idx_modc(A, x, w.m[1]), 1, tx);

    if (dtype_is_int(w.sum) && w.m[0] == 4)
        p = prim_mul(c, prim_num(c, w.sum, INVERSE_OF_9), p);
    if (dtype_is_int(w.sum))
        p = prim_bin(c, PRIM_SHR, p, prim_num(c, w.sum, w.m[0] == 4 ? 6 : 2));
    out[0] = te_compute(c, "y", type->dtype, a, p);
    return true;
}

/* ---- the variant of a call ----------------------------------------------------------------------------- */

/* No sum of products of 8-bit data and these weights leaves 26 bits. */
static bool sums_are_small(const Expr *weight, const int64_t k[4])
{
    if (weight->kind != EXPR_CONST)
        return false;
    const int8_t *w = (const int8_t *)weight->u.constant->data.at;

    for (int64_t o = 0; o < k[0]; o++) {
        int64_t sum = 0;

        for (int64_t i = 0; i < k[1] * 9; i++)
            sum += w[o * k[1] * 9 + i] < 0 ? -w[o * k[1] * 9 + i] : w[o * k[1] * 9 + i];
        if (sum > MAX_INT4_SUM / 255)
            return false;
    }
    return true;
}

bool conv2d_suits_winograd(const Expr *conv, int64_t tile)
{
    const Conv2dAttrs *a = ATTRS(Conv2dAttrs, conv);
    const Type        *data = call_arg(conv, 0)->type, *weight = call_arg(conv, 1)->type;
    int64_t            k[4], block;

    bool ints = data && weight && is_small_int(data->dtype) && dtype_eq(weight->dtype, DT_I8) &&
                dtype_eq(conv->type->dtype, DT_I32);

    if (!data || !weight ||
        !(ints || (dtype_eq(data->dtype, weight->dtype) && dtype_is_float(data->dtype) &&
                   !*a->out_dtype)) ||
        (ints && a->groups != 1) || !layout_block(a->data_layout, "NCHW", &block) ||
        (*a->out_layout && strcmp(a->out_layout, a->data_layout)))
        return false;
    for (uint32_t i = 0; i < 4; i++)
        if (!type_dim(weight, i, &k[i]))
            return false;
    Winograd w = {.block = block,
                  .groups = a->groups,
                  .group_in = k[1],
                  .group_out = k[0] / a->groups,
                  .within = a->groups > 1 && conv2d_groups_within(k[1], k[0] / a->groups, block)};

    if (block && a->groups > 1 && (k[0] % block || k[1] * a->groups % block || !are_blocks(&w)))
        return false;
    if (ints && k[1] > MAX_INT_CHANNELS)
        return false;
    for (uint32_t i = 0; i < data->n; i++)
        if (!type_dim(data, i, &(int64_t){0}) && i != 2 && i != 3)
            return false;
    for (uint32_t i = 0; i < 2; i++)
        if ((ints && k[i + 2] != 3) || a->strides.at[i] != 1 || a->dilation.at[i] != 1)
            return false;
    if (!has_tiles(tile, k + 2))
        return false;
    return !ints || tile != 4 || sums_are_small(call_arg(conv, 1), k);
}

/* With zeros for the surplus lanes of the last blocks. */
static const Expr *whole_blocks(Ctx *c, const Expr *weight, int64_t block)
{
    PadAttrs *a = NEW_ATTRS(c, PadAttrs);
    int64_t   width[8] = {0}, k[2];

    if (!type_dim(weight->type, 0, &k[0]) || !type_dim(weight->type, 1, &k[1]))
        return NULL;
    if (!block || (k[0] % block == 0 && k[1] % block == 0))
        return weight;
    for (uint32_t i = 0; i < 2; i++)
        width[2 * i + 1] = round_up(k[i], block) - k[i];
    a->pad_width = ints_dup(c, width, 8);
    return call1(c, "nn.pad", weight, a, weight->loc);
}

const Expr *conv2d_winograd(Ctx *c, const Expr *conv, int64_t tile, bool short_tiles)
{
    const Conv2dAttrs   *a = ATTRS(Conv2dAttrs, conv);
    const Expr          *weight = call_arg(conv, 1);
    int64_t              block, k[2];
    WinogradWeightAttrs *u = NEW_ATTRS(c, WinogradWeightAttrs);
    Conv2dWinogradAttrs *v = NEW_ATTRS(c, Conv2dWinogradAttrs);

    if (!type_dim(weight->type, 2, &k[0]) || !type_dim(weight->type, 3, &k[1]))
        return NULL;
    u->tile_size = v->tile_size = tile;
    u->kernel_size = v->kernel_size = ints_dup(c, k, 2);
    v->padding = a->padding;
    v->pad_value = a->pad_value;
    v->data_layout = a->data_layout;
    v->groups = a->groups;
    v->short_tiles = short_tiles;
    if (a->groups == 1 && layout_block(a->data_layout, "NCHW", &block))
        weight = whole_blocks(c, weight, block);
    if (!weight)
        return NULL;
    weight = call1(c, "nn.contrib_conv2d_winograd_weight_transform", weight, u, conv->loc);
    return call2(c, "nn.contrib_conv2d_winograd_without_weight_transform", call_arg(conv, 0),
                 weight, v, conv->loc);
}
