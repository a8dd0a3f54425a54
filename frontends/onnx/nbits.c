/* Tables and weights of 2, 4 and 8 bits in blocks with a scale each (domain com.microsoft), as
 * language models have them.  What is constant is unpacked when the model is imported, what is
 * gathered from a table only then. */
#include "frontends/onnx/onnx.h"

/* Cells of `bits` bits, each row of `cells` in whole bytes, as u8. */
static const Expr *unpack(Node *n, uint32_t i, int64_t rows, int64_t cells, int64_t bits)
{
    const Expr    *k = node_has(n, i) ? n->in[i] : NULL;
    int64_t        row = (cells * bits + 7) / 8, per = 8 / bits;
    uint8_t       *out;
    const uint8_t *at;

    if (!k || k->kind != EXPR_CONST || expr_dtype(k).bits != 8)
        return node_error(n, E_UNSUPPORTED, "input %u has to be a constant of bytes", i);
    if (build_elems(&n->b, k) != rows * row)
        return node_error(n, E_IMPORT, "input %u holds %lld bytes, not %lld", i,
                          (long long)build_elems(&n->b, k), (long long)(rows * row));
    out = arena_array(n->b.c->arena, (size_t)rows + 1, (size_t)cells + 1);
    at = k->u.constant->data.at;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cells; c++)
            out[r * cells + c] =
                (uint8_t)(at[r * row + c / per] >> (c % per * bits)) & (uint8_t)((1 << bits) - 1);
    return build_const(&n->b, DT_U8, 2, (int64_t[]){rows, cells}, out);
}

/* The scale or zero point of each cell of [N, blocks, size]: that of its block, or of the group
 * that input 4 names for its column. */
static const Expr *of_blocks(Node *n, const Expr *p, int64_t N, int64_t blocks, int64_t size)
{
    const Build *b = &n->b;
    int64_t      pads[6] = {0};

    if (!p || !node_has(n, 4) || expr_rank(p) == 0)
        return p && expr_rank(p) > 0 ? build_reshape(b, p, 3, (int64_t[]){N, blocks, 1}) : p;
    if (!node_need_rank(n, 4, 1, 1))
        return NULL;
    if (build_dim(b, n->in[4], 0) != node_int(n, "K", 0))
        return node_error(n, E_IMPORT, "groups for %lld columns",
                          (long long)build_dim(b, n->in[4], 0));
    p = build_take(b, build_reshape(b, p, 2, (int64_t[]){N, blocks}), n->in[4], 1);
    pads[3] = p ? blocks * size - build_dim(b, p, 1) : 0;
    return build_reshape(b, p ? build_pad(b, p, pads, 0, "constant") : NULL, 3,
                         (int64_t[]){N, blocks, size});
}

/* A times the transpose of B [N, K], whose rows are blocks of `bits` bits with a scale each. */
bool convert_matmul_nbits(Node *n)
{
    const Build *b = &n->b;
    int64_t      K = node_int(n, "K", 0), N = node_int(n, "N", 0), bits = node_int(n, "bits", 4);
    int64_t      size = node_int(n, "block_size", 0), blocks, dims[3];
    const Expr  *w, *zero, *scale;
    DType        t;

    if (!node_need_rank(n, 0, 1, MAX_RANK) || !node_need_rank(n, 2, 1, 2))
        return false;
    node_ignore(n, "accuracy_level"); /* how inexact it may be */
    if (K < 1 || N < 1 || K > 1 << 24 || N > 1 << 24 || size < 16 || size > 1 << 16 ||
        (bits != 2 && bits != 4 && bits != 8))
        return node_error(n, E_UNSUPPORTED, "K %lld, N %lld, block_size %lld, bits %lld",
                          (long long)K, (long long)N, (long long)size, (long long)bits);
    t = expr_dtype(n->in[0]);
    blocks = (K + size - 1) / size;
    dims[0] = N, dims[1] = blocks, dims[2] = size;
    scale = build_cast(b, of_blocks(n, n->in[2], N, blocks, size), t);
    if (!(w = unpack(n, 1, N * blocks, size, bits)) || !scale)
        return false;
    if (!node_has(n, 3))
        zero = build_scalar(b, n->in[0], (double)(1 << (bits - 1)));
    else if (expr_dtype(n->in[3]).code == DT_UINT)
        zero = unpack(n, 3, N, blocks, bits);
    else
        zero = n->in[3];
    if (!zero || !(zero = of_blocks(n, zero, N, blocks, size)))
        return false;
    w = build_cast(b, build_reshape(b, w, 3, dims), t);
    w = build2(b, "multiply", build2(b, "subtract", w, build_cast(b, zero, t), NULL), scale, NULL);
    w = build_reshape(b, w, 2, (int64_t[]){N, blocks * size});
    if (w && blocks * size != K)
        w = build_slice(b, w, 1, 0, K);
    w = w ? build_transpose(b, w, 2, (int64_t[]){1, 0}) : NULL;
    if (!w || !(w = onnx_matmul(n, n->in[0], w)))
        return false;
    return node_done(n, node_has(n, 5) ? build2(b, "add", w, n->in[5], NULL) : w);
}

/* ---- GatherBlockQuantized ------------------------------------------------------------------------------- */

/* Bytes x, the last dimension packed, low bits first: `cells` cells there (NULL: all), of `bits`
 * bits each. */
static const Expr *spread(const Build *b, const Expr *x, int64_t bits, const Idx *cells)
{
    const Expr *part[4];
    uint32_t    per = (uint32_t)(8 / bits), rank = expr_rank(x);
    const Idx  *dims[MAX_RANK];

    if (per == 1)
        return x;
    for (uint32_t i = 0; i < per; i++) {
        const Expr *y = i ? build_by(b, "right_shift", x, (double)(i * bits)) : x;

        y = y ? build_by(b, "bitwise_and", y, (double)((1 << bits) - 1)) : NULL;
        part[i] = build_expand_dims(b, y, rank, 1);
    }
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = expr_form(x, i);
    dims[rank - 1] = idx_mulc(b->c->arith, dims[rank - 1], per);
    x = build_reshape_to(b, build_concat(b, per, part, rank), rank, dims);
    return x && cells && dims[rank - 1] != cells
               ? build_slice_to(b, x, rank - 1, idx_const(b->c->arith, 0), cells)
               : x;
}

typedef struct {
    const Expr *at;      /* indices, none below 0 */
    const Expr *of;      /* of blocks, where these lie along the axis that is gathered from */
    uint32_t    axis;    /* .. which is */
    uint32_t    blocked; /* the dimension of the result along which blocks lie */
    int64_t     size, bits;
    bool        bytes; /* cells are packed */
} Gather;

/* Scales or zero points of all cells of the result, whose dimension of blocks is `cells`. */
static const Expr *gathered(Node *n, const Gather *g, const Expr *p, const Idx *cells)
{
    const Build *b = &n->b;
    RepeatAttrs *a = ATTRS(b, RepeatAttrs);

    p = build_take(b, p, g->of ? g->of : g->at, g->axis);
    if (!p || g->of)
        return p;
    if (g->bytes && dtype_eq(expr_dtype(p), DT_U8)) {
        const Idx *blocks =
            idx_divc(b->c->arith, idx_addc(b->c->arith, cells, g->size - 1), g->size);

        p = spread(b, p, g->bits, g->blocked + 1 == expr_rank(p) ? blocks : NULL);
    }
    a->repeats = g->size;
    a->axis = g->blocked;
    return build_slice_to(b, build1(b, "repeat", p, a), g->blocked, idx_const(b->c->arith, 0),
                          cells);
}

/* Gather, then (cells - zero point) * scale; an index that is outside gives zeros. */
bool convert_gather_block_quantized(Node *n)
{
    const Build *b = &n->b;
    uint32_t     axis, blocked, rank;
    Gather       g = {.size = node_int(n, "block_size", 128), .bits = node_int(n, "bits", 4)};
    const Expr  *x, *at, *scale, *zero = NULL, *there;
    const Idx   *extent, *cells, *dims[MAX_RANK];
    DType        t;

    if (!node_need_rank(n, 0, 1, MAX_RANK) || !node_need_rank(n, 1, 0, MAX_RANK) ||
        !node_need_rank(n, 2, expr_rank(n->in[0]), expr_rank(n->in[0])))
        return false;
    x = n->in[0];
    rank = expr_rank(x);
    g.bytes = dtype_eq(expr_dtype(x), DT_U8);
    if (!node_axis(n, node_int(n, "gather_axis", 0), rank, &axis) ||
        !node_axis(n, node_int(n, "quantize_axis", 1), rank, &blocked))
        return false;
    if (!dtype_is_int(expr_dtype(x)) || g.size < 16 || (g.bytes && (axis != 0 || blocked == 0)) ||
        (g.bits != 2 && g.bits != 4 && g.bits != 8) || rank + expr_rank(n->in[1]) > MAX_RANK)
        return node_error(n, E_UNSUPPORTED, "a table %s in blocks of %lld along axis %u",
                          type_text(b->c, x->type), (long long)g.size, blocked);
    t = expr_dtype(n->in[2]);
    at = build_cast(b, n->in[1], DT_I64);
    extent = expr_form(x, axis);
    there = build2(
        b, "logical_and", build2(b, "less", at, cell_form(b, extent), NULL),
        build2(b, "greater_equal", at, cell_form(b, idx_mulc(b->c->arith, extent, -1)), NULL),
        NULL);
    at = build_where(b, build_by(b, "less", at, 0),
                     build2(b, "add", at, cell_form(b, extent), NULL), at);
    if (!there || !at)
        return false;
    at = build_reshape_to(b, at, expr_rank(n->in[1]), expr_forms(n->in[1]).at);
    g.at = at;
    g.axis = axis;
    g.of = blocked == axis ? build_by(b, "floor_divide", at, (double)g.size) : NULL;
    g.blocked = blocked > axis ? blocked + expr_rank(at) - 1 : blocked;
    cells = expr_form(x, blocked);
    if (g.bytes && blocked + 1 == rank)
        cells = idx_mulc(b->c->arith, cells, 8 / g.bits);
    if (!g.bytes)
        x = build_cast(b, x, dtype_cell(expr_dtype(x)));
    x = build_take(b, x, at, axis);
    if (x && g.bytes)
        x = spread(b, x, g.bits, idx_mulc(b->c->arith, expr_form(x, expr_rank(x) - 1), 8 / g.bits));
    scale = gathered(n, &g, n->in[2], cells);
    if (node_has(n, 3))
        zero = gathered(
            n, &g, g.bytes ? n->in[3] : build_cast(b, n->in[3], dtype_cell(expr_dtype(n->in[3]))),
            cells);
    else if (g.bytes)
        zero = expr_scalar(b->c, t, (double)(1 << (g.bits - 1)));
    x = build_cast(b, x, t);
    if (zero || node_has(n, 3))
        x = build2(b, "subtract", x, build_cast(b, zero, t), NULL);
    x = build2(b, "multiply", x, scale, NULL);
    if (!x || node_constant(n, 1))
        return node_done(n, x);
    for (uint32_t i = 0; i < expr_rank(x); i++)
        dims[i] = i >= axis && i < axis + expr_rank(at) ? expr_form(at, i - axis)
                                                        : idx_const(b->c->arith, 1);
    return node_done(n, build_where(b, build_reshape_to(b, there, expr_rank(x), dims), x,
                                    build_scalar(b, x, 0)));
}
