/* Sparse matrices: rows of cells (CSR), or of blocks of cells (BSR), as values, their columns, and
 * where each row begins.  Columns and beginnings are constants; the products are those of the dense
 * matrix. */
#include "frontends/tvm/tvm.h"

#include <string.h>

typedef struct {
    uint32_t    n, rows;    /* blocks, rows of blocks */
    int64_t     high, wide; /* of a block */
    int64_t    *row, *col;  /* of each block */
    const Expr *cells;      /* [n], or [n, high, wide] */
} Sparse;

/* Operands at, at + 1, at + 2. */
static bool read_sparse(TvNode *n, uint32_t at, Sparse *s)
{
    const Build *b = &n->b;
    const Expr  *cells = n->in[at];
    TvValue      col, from;
    uint32_t     rank = expr_rank(cells), row = 0;

    *s = (Sparse){.cells = cells, .high = 1, .wide = 1};
    if (!tv_constant(n, at + 1, &col) || !tv_constant(n, at + 2, &from))
        return false;
    if ((rank != 1 && rank != 3) || col.kind != TV_LIST || from.kind != TV_LIST || from.n < 2 ||
        build_dim(b, cells, 0) != col.n)
        return tv_error(n, E_IMPORT, "a sparse matrix of %s, %s and %s",
                        type_text(b->c, cells->type), type_text(b->c, n->in[at + 1]->type),
                        type_text(b->c, n->in[at + 2]->type));
    if (rank == 3)
        s->high = build_dim(b, cells, 1), s->wide = build_dim(b, cells, 2);
    s->n = col.n, s->rows = from.n - 1;
    s->row = NEW_ARRAY(b->c->arena, int64_t, s->n + 1);
    s->col = NEW_ARRAY(b->c->arena, int64_t, s->n + 1);
    for (uint32_t i = 0; i < from.n; i++) {
        int64_t was = i ? from.list[i - 1].i : 0, is = from.list[i].i;

        if (is < was || (i == 0 && is) || is > s->n || (i == s->rows && is != s->n))
            return tv_error(n, E_IMPORT, "row %u of a sparse matrix begins at %lld of %u", i,
                            (long long)is, s->n);
    }
    for (uint32_t i = 0; i < s->n; i++) {
        while (i >= from.list[row + 1].i)
            row++;
        s->row[i] = row, s->col[i] = col.list[i].i;
        if (s->col[i] < 0)
            return tv_error(n, E_IMPORT, "column %lld of a sparse matrix", (long long)s->col[i]);
    }
    return true;
}

/* As a tensor [rows * high, columns]. */
static const Expr *dense_of(TvNode *n, const Sparse *s, int64_t columns)
{
    const Build *b = &n->b;
    int64_t      each = s->high * s->wide, count, cells, *at;
    const Expr  *zeros, *y, *known;

    if (!checked_mul(s->n, each, &count) || !checked_mul(s->rows * s->high, columns, &cells) ||
        cells > INT32_MAX || count > INT32_MAX)
        return tv_error(n, E_UNSUPPORTED, "a sparse matrix of %u rows and %lld columns", s->rows,
                        (long long)columns);
    at = arena_array(b->c->arena, (size_t)(2 * count) + 1, sizeof *at);
    for (int64_t i = 0; i < count; i++) {
        int64_t block = i / each, cell = i % each;

        at[i] = s->row[block] * s->high + cell / s->wide;
        at[count + i] = s->col[block] * s->wide + cell % s->wide;
        if (at[count + i] >= columns)
            return tv_error(n, E_IMPORT, "column %lld of %lld", (long long)at[count + i],
                            (long long)columns);
    }
    zeros = build_zeros(b, expr_dtype(s->cells), 2, (int64_t[]){s->rows * s->high, columns});
    y = build3(b, "scatter_nd", zeros, build_const(b, DT_I64, 2, (int64_t[]){2, count}, at),
               build_reshape(b, s->cells, 1, &count), NULL);
    known = y ? build_fold(b, y) : NULL;
    return known ? known : y;
}

/* data [M, K] times the transposed matrix [N, K]; sparse_lhs: the matrix [M, K] times data [N, K].
 */
const Expr *tv_sparse_dense(TvNode *n)
{
    const Build *b = &n->b;
    bool         first = tv_bool(n, "sparse_lhs", false);
    const Expr  *w;
    Sparse       s;

    if (expr_rank(n->in[0]) != 2)
        return tv_error(n, E_IMPORT, "data %s", type_text(b->c, n->in[0]->type));
    if (!read_sparse(n, 1, &s) || !(w = dense_of(n, &s, build_dim(b, n->in[0], 1))))
        return NULL;
    return first ? build2(b, "nn.dense", w, n->in[0], NULL)
                 : build2(b, "nn.dense", n->in[0], w, NULL);
}

const Expr *tv_sparse_add(TvNode *n)
{
    Sparse      s;
    const Expr *w;

    if (expr_rank(n->in[0]) != 2)
        return tv_error(n, E_IMPORT, "data %s", type_text(n->b.c, n->in[0]->type));
    if (!read_sparse(n, 1, &s) || !(w = dense_of(n, &s, build_dim(&n->b, n->in[0], 1))))
        return NULL;
    return build_add(&n->b, n->in[0], w);
}

/* A square matrix; values, columns and beginnings of the transposed one. */
const Expr *tv_sparse_transpose(TvNode *n)
{
    const Build *b = &n->b;
    int64_t     *order, cells, rows;
    int32_t     *col, *from;
    const Expr  *out[3];
    Sparse       s;
    uint32_t     k = 0;

    if (!read_sparse(n, 0, &s))
        return NULL;
    if (s.high != 1 || s.wide != 1)
        return tv_error(n, E_UNSUPPORTED, "a matrix in blocks");
    cells = s.n, rows = s.rows + 1;
    order = NEW_ARRAY(b->c->arena, int64_t, s.n + 1);
    col = NEW_ARRAY(b->c->arena, int32_t, s.n + 1);
    from = NEW_ARRAY(b->c->arena, int32_t, s.rows + 1);
    for (uint32_t i = 0; i < s.n; i++) {
        if (s.col[i] >= s.rows)
            return tv_error(n, E_IMPORT, "column %lld of %u", (long long)s.col[i], s.rows);
        from[s.col[i] + 1]++;
    }
    for (uint32_t r = 0; r < s.rows; r++)
        from[r + 1] += from[r];
    { /* rows are in order, so each column's cells are */
        int32_t *next = DUP_ARRAY(b->c->arena, from, s.rows + 1);

        for (; k < s.n; k++) {
            int32_t to = next[s.col[k]]++;

            order[to] = k;
            col[to] = (int32_t)s.row[k];
        }
    }
    out[0] = build_take(b, s.cells, build_const(b, DT_I64, 1, &cells, order), 0);
    out[1] = build_const(b, DT_I32, 1, &cells, col);
    out[2] = build_const(b, DT_I32, 1, &rows, from);
    return out[0] ? expr_tuple(b->c, 3, out, b->loc) : NULL;
}

/* A convolution by single cells, whose weights [O, C] are sparse. */
const Expr *tv_sparse_conv2d(TvNode *n)
{
    const Build *b = &n->b;
    bool         last = !strcmp(tv_text(n, "layout", "NHWC"), "NHWC");
    int64_t      kernel[2], dims[4] = {0, 0, 1, 1};
    BuildConv    k = {.dims = 2, .groups = 1};
    Sparse       s;
    const Expr  *y;

    if (expr_rank(n->in[0]) != 4 || !tv_sizes(n, "kernel_size", 2, 1, kernel))
        return tv_error(n, E_IMPORT, "data %s", type_text(b->c, n->in[0]->type));
    if (kernel[0] != 1 || kernel[1] != 1)
        return tv_error(n, E_UNSUPPORTED, "sparse weights of %lld x %lld cells",
                        (long long)kernel[0], (long long)kernel[1]);
    k.x = last ? build_channels_first(b, n->in[0]) : n->in[0];
    if (!k.x || !read_sparse(n, 1, &s) || !(k.w = dense_of(n, &s, build_dim(b, k.x, 1))))
        return NULL;
    dims[0] = build_dim(b, k.w, 0), dims[1] = build_dim(b, k.w, 1);
    k.w = build_reshape(b, k.w, 4, dims);
    for (uint32_t i = 0; i < 2; i++)
        k.window.kernel[i] = k.window.stride[i] = k.window.dilation[i] = 1;
    y = build_conv(b, &k);
    return last ? build_channels_last(b, y) : y;
}

/* Positions [cells, rank] in one shape as those in another: positions and the shape. */
const Expr *tv_sparse_reshape(TvNode *n)
{
    const Build *b = &n->b;
    TvValue      from, to;
    int64_t      dims[MAX_RANK], *step, cells = 1, rest = 1, count;
    uint32_t     left = MAX_RANK;
    const Expr  *at, *out[2];
    DType        t = expr_dtype(n->in[0]);

    if (!tv_constant(n, 1, &from) || !tv_constant(n, 2, &to))
        return NULL;
    if (from.kind != TV_LIST || to.kind != TV_LIST || !to.n || to.n > MAX_RANK ||
        from.n > MAX_RANK || expr_rank(n->in[0]) != 2 || build_dim(b, n->in[0], 1) != from.n)
        return tv_error(n, E_IMPORT, "positions %s in %u dimensions, and in %u",
                        type_text(b->c, n->in[0]->type), from.n, to.n);
    step = NEW_ARRAY(b->c->arena, int64_t, from.n + 1);
    for (uint32_t i = from.n; i-- > 0;) {
        step[i] = cells;
        if (from.list[i].i < 1 || !checked_mul(cells, from.list[i].i, &cells))
            return tv_error(n, E_IMPORT, "a shape that has %lld", (long long)from.list[i].i);
    }
    for (uint32_t i = 0; i < to.n; i++) {
        dims[i] = to.list[i].i;
        if (dims[i] == -1 && left == MAX_RANK)
            left = i;
        else if (dims[i] < 1 || !checked_mul(rest, dims[i], &rest) || rest > cells)
            return tv_error(n, E_IMPORT, "a shape that has %lld", (long long)dims[i]);
    }
    if (cells % rest || (left == MAX_RANK && rest != cells))
        return tv_error(n, E_IMPORT, "%lld cells in a shape of %lld", (long long)cells,
                        (long long)rest);
    if (left < MAX_RANK)
        dims[left] = cells / rest;
    count = from.n;
    at = build_mul(b, build_cast(b, n->in[0], DT_I64), build_const(b, DT_I64, 1, &count, step));
    count = 1;
    at = build_reduce(b, "sum", at, 1, &count, false);
    at = build_unravel_index(b, at, (Ints){to.n, dims});
    out[0] = build_cast(b, build_transpose(b, at, 2, (int64_t[]){1, 0}), t);
    out[1] = build_cast(b, build_i64s(b, to.n, dims), expr_dtype(n->in[2]));
    return out[0] && out[1] ? expr_tuple(b->c, 2, out, b->loc) : NULL;
}
