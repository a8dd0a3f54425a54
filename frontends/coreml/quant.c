/* Numbers that stand for others: quantized values, and weights that are unpacked when the model is
 * compiled (constexpr_*). */
#include "frontends/coreml/coreml.h"

#include <string.h>

/* ---- values ------------------------------------------------------------------------------------------ */

/* A number for all, or those of an axis. */
static const Expr *along_axis(CmlNode *n, const char *name, const Expr *x)
{
    const Expr *e;
    uint32_t    axis;

    if (!cml_maybe(n, name, &e) || !e)
        return e;
    if (expr_rank(e) == 0 || expr_rank(x) == 0)
        return build_reshape(&n->b, e, 0, NULL);
    if (!cml_axis(n, cml_int(n, "axis", 0), expr_rank(x), &axis))
        return NULL;
    return expr_rank(e) == 1
               ? build_along(&n->b, e, expr_rank(x), axis)
               : cml_error(n, E_IMPORT, "its input '%s' is %s", name, type_text(n->b.c, e->type));
}

/* (q - zero point) * scale */
static const Expr *dequantized(CmlNode *n, const char *data)
{
    const Build *b = &n->b;
    const Expr  *q = cml_x(n, data), *scale = q ? along_axis(n, "scale", q) : NULL, *zero;
    uint32_t     before = diag_errors(b->c->diags);

    if (!scale)
        return NULL;
    zero = along_axis(n, "zero_point", q);
    if (diag_errors(b->c->diags) != before)
        return NULL;
    q = build_cast(b, q, expr_dtype(scale));
    if (zero)
        q = build_sub(b, q, build_cast(b, zero, expr_dtype(scale)));
    return build_mul(b, q, scale);
}

bool cml_dequantize(CmlNode *n)
{
    (void)cml_arg(n, "axis");
    return cml_done(n, dequantized(n, "input"));
}

/* clip(round(x / scale) + zero point) */
bool cml_quantize(CmlNode *n)
{
    const Build *b = &n->b;
    const char  *type = cml_text(n, "output_dtype", "int8");
    const Expr  *x = cml_x(n, "input"), *scale = x ? along_axis(n, "scale", x) : NULL, *zero;
    bool         below = !strcmp(type, "int8");
    DType        t;

    (void)cml_arg(n, "axis");
    if (!scale)
        return false;
    if (!cml_dtype_named(type, &t) || t.bits != 8)
        return cml_error(n, E_UNSUPPORTED, "output_dtype '%s'", type);
    x = build1(b, "round", build_div(b, x, build_cast(b, scale, expr_dtype(x))), NULL);
    if (cml_arg(n, "zero_point")) {
        if (!(zero = along_axis(n, "zero_point", x)))
            return false;
        x = build_add(b, x, build_cast(b, zero, expr_dtype(x)));
    }
    return cml_done(n, build_cast(b, build_clip(b, x, below ? -128 : 0, below ? 127 : 255), t));
}

/* ---- weights ------------------------------------------------------------------------------------------- */

/* The cells of a constant operand; false with an error. */
static bool constant(CmlNode *n, const char *name, const Expr **out, Bytes *data)
{
    const Expr *e = cml_x(n, name);

    if (e && e->kind != EXPR_CONST)
        e = build_fold(&n->b, e);
    if (!(*out = e))
        return cml_error(n, E_UNSUPPORTED, "its input '%s' has to be known when it is compiled",
                         name);
    *data = e->u.constant->data;
    return true;
}

/* A part of a tensor: its cells, which are bytes of `size` each. */
static const Expr *made(CmlNode *n, DType t, Ints shape, Bytes data)
{
    return expr_const(n->b.c,
                      const_new(n->b.c, cml_name(n, "values"),
                                type_tensor_i64(n->b.c, t, shape.n, shape.at), data),
                      n->b.loc);
}

static bool check_shape(CmlNode *n, Ints shape, int64_t *cells)
{
    *cells = 1;
    if (shape.n > MAX_RANK)
        return cml_error(n, E_UNSUPPORTED, "a tensor of %u dimensions", shape.n);
    for (uint32_t i = 0; i < shape.n; i++)
        if (shape.at[i] < 0 || !checked_mul(*cells, shape.at[i], cells) || *cells > 1 << 30)
            return cml_error(n, E_IMPORT, "its shape is too large or has a dimension below 0");
    return true;
}

bool cml_constexpr_affine(CmlNode *n)
{
    const Expr *y = dequantized(n, "quantized_data");

    (void)cml_arg(n, "axis");
    return cml_done(n, y);
}

bool cml_constexpr_cast(CmlNode *n)
{
    const char *type = cml_text(n, "output_dtype", "");
    DType       t;

    if (!cml_dtype_named(type, &t))
        return cml_error(n, E_UNSUPPORTED, "output_dtype '%s'", type);
    return cml_done(n, build_cast(&n->b, cml_x(n, "source_val"), t));
}

/* Each number of x is for a block of y along each dimension. */
static const Expr *over_blocks(CmlNode *n, const Expr *x, const Expr *like)
{
    const Build *b = &n->b;

    if (!x || expr_rank(x) != expr_rank(like))
        return cml_error(n, E_IMPORT, "blocks of %s for %s", x ? type_text(b->c, x->type) : "none",
                         type_text(b->c, like->type));
    for (uint32_t i = 0; x && i < expr_rank(like); i++) {
        int64_t      cells = build_dim(b, like, i), blocks = build_dim(b, x, i);
        RepeatAttrs *a = ATTRS(b, RepeatAttrs);

        if (blocks < 1 || cells % blocks)
            return cml_error(n, E_IMPORT, "%lld blocks of %lld", (long long)blocks,
                             (long long)cells);
        if (blocks == 1 || blocks == cells)
            continue; /* it broadcasts */
        a->axis = i;
        a->repeats = cells / blocks;
        x = build1(b, "repeat", x, a);
    }
    return x;
}

/* scale * (data - offset), in blocks */
static const Expr *shifted(CmlNode *n, const Expr *data)
{
    const Build *b = &n->b;
    const Expr  *scale, *offset;

    if (!data || !(scale = over_blocks(n, cml_x(n, "scale"), data)) ||
        !cml_maybe(n, "offset", &offset))
        return NULL;
    data = build_cast(b, data, expr_dtype(scale));
    if (offset) {
        if (!(offset = over_blocks(n, offset, data)))
            return NULL;
        data = build_sub(b, data, build_cast(b, offset, expr_dtype(scale)));
    }
    return build_mul(b, data, scale);
}

bool cml_constexpr_blockwise(CmlNode *n)
{
    return cml_done(n, shifted(n, cml_x(n, "data")));
}

/* Cells where the mask's bits are set, one after another, zeros elsewhere. */
static const Expr *spread(CmlNode *n, const Expr *cells, Bytes from, const uint8_t *mask,
                          Ints shape)
{
    DType    t = expr_dtype(cells);
    uint32_t size = dtype_bytes(t);
    int64_t  total;
    uint8_t *out;
    size_t   at = 0;

    if (!check_shape(n, shape, &total))
        return NULL;
    out = arena_alloc(n->b.c->arena, (size_t)total * size + 1);
    for (int64_t i = 0; i < total; i++) {
        if (!mask[i])
            continue;
        if (at + size > from.n)
            return cml_error(n, E_IMPORT, "its mask has more cells than there are values");
        memcpy(out + (size_t)i * size, from.at + at, size);
        at += size;
    }
    return made(n, t, shape, (Bytes){out, (size_t)total * size});
}

/* A mask of bits in bytes, the low ones first, with a shape beside it; or a tensor of numbers. */
static const uint8_t *mask_of(CmlNode *n, const char *name, bool packed, Ints *shape)
{
    const Expr *mask;
    Bytes       bits;
    int64_t     cells;

    if (!constant(n, name, &mask, &bits))
        return NULL;
    if (!packed) {
        *shape = build_dims(&n->b, mask);
        return expr_dtype(mask).bits == 8
                   ? bits.at
                   : cml_error(n, E_IMPORT, "its mask is %s", type_text(n->b.c, mask->type));
    }
    if (!cml_ints(n, "shape", shape) || !check_shape(n, *shape, &cells))
        return NULL;
    if (expr_dtype(mask).bits != 8 || bits.n != ((size_t)cells + 7) / 8)
        return cml_error(n, E_IMPORT, "its mask has %zu bytes for %lld cells", bits.n,
                         (long long)cells);
    return cml_unpacked(n->b.c->arena, bits, cells, 1, false).at;
}

bool cml_constexpr_sparse(CmlNode *n)
{
    const Expr    *cells;
    Bytes          from;
    Ints           shape;
    const uint8_t *mask = mask_of(n, "mask", cml_has(n, "shape"), &shape);

    return mask && constant(n, "nonzero_data", &cells, &from) &&
           cml_done(n, spread(n, cells, from, mask, shape));
}

/* The cells of y where the mask is set, [k]. */
static const Expr *kept(CmlNode *n, const Expr *y, const uint8_t *mask)
{
    const Build *b = &n->b;
    int64_t      cells = build_elems(b, y), k = 0, *at;

    at = NEW_ARRAY(b->c->arena, int64_t, (size_t)cells + 1);
    for (int64_t i = 0; i < cells; i++)
        if (mask[i])
            at[k++] = i;
    y = build_reshape(b, y, 1, &cells);
    return cml_folded(n, "values", build_take(b, y, build_const(b, DT_I64, 1, &k, at), 0));
}

bool cml_constexpr_sparse_blockwise(CmlNode *n)
{
    const Expr    *cells, *y;
    Bytes          from;
    Ints           shape;
    const uint8_t *mask = mask_of(n, "data_mask", false, &shape);

    if (!mask || !constant(n, "nonzero_data", &cells, &from) ||
        !(y = shifted(n, spread(n, cells, from, mask, shape))))
        return false;
    return cml_done_at(n, 0, cml_x(n, "data_mask")) && cml_done_at(n, 1, kept(n, y, mask));
}

/* ---- tables -------------------------------------------------------------------------------------------- */

/* One table for all: lut [k], indices of log2(k) bits without gaps, the low bits first. */
static bool lut_packed(CmlNode *n)
{
    const Expr *lut, *at;
    Bytes       table, bits, q;
    Ints        shape;
    int64_t     cells;
    uint32_t    size, width = 0;
    uint8_t    *out;

    if (!constant(n, "lut", &lut, &table) || !constant(n, "indices", &at, &bits) ||
        !cml_ints(n, "shape", &shape) || !check_shape(n, shape, &cells))
        return false;
    size = dtype_bytes(expr_dtype(lut));
    while (((size_t)1 << width) * size < table.n)
        width++;
    if (width < 1 || width > 8 || ((size_t)1 << width) * size != table.n ||
        bits.n != ((size_t)cells * width + 7) / 8)
        return cml_error(n, E_IMPORT, "%zu bytes of indices into a table of %zu bytes", bits.n,
                         table.n);
    q = cml_unpacked(n->b.c->arena, bits, cells, width, false);
    out = arena_alloc(n->b.c->arena, (size_t)cells * size + 1);
    for (int64_t i = 0; i < cells; i++)
        memcpy(out + (size_t)i * size, table.at + (size_t)q.at[i] * size, size);
    return cml_done(n, made(n, expr_dtype(lut), shape, (Bytes){out, (size_t)cells * size}));
}

/* A table for each block: lut [blocks .., k, vector]; the cells of an index lie along an axis. */
static const Expr *looked_up(CmlNode *n, const Expr *indices)
{
    const Build *b = &n->b;
    const Expr  *lut, *e;
    Bytes        table, q;
    uint32_t     rank = expr_rank(indices), size, axis = 0;
    int64_t      dims[MAX_RANK], blocks[MAX_RANK], k, vector, cells = 1, at[MAX_RANK] = {0};
    uint8_t     *out;

    e = indices->kind == EXPR_CONST ? indices : build_fold(b, indices);
    if (!e || expr_dtype(e).bits != 8 || !constant(n, "lut", &lut, &table))
        return cml_error(n, E_UNSUPPORTED, "its indices are %s", type_text(b->c, indices->type));
    q = e->u.constant->data;
    if (rank < 1 || rank + 2 != expr_rank(lut))
        return cml_error(n, E_IMPORT, "a table of %s for %s", type_text(b->c, lut->type),
                         type_text(b->c, e->type));
    k = build_dim(b, lut, rank);
    vector = build_dim(b, lut, rank + 1);
    if (vector > 1 && !cml_axis(n, cml_int(n, "vector_axis", 0), rank, &axis))
        return NULL;
    (void)cml_arg(n, "vector_axis");
    for (uint32_t i = 0; i < rank; i++) {
        blocks[i] = build_dim(b, lut, i);
        if (!checked_mul(build_dim(b, e, i), i == axis ? vector : 1, &dims[i]))
            return cml_error(n, E_IMPORT, "%lld cells for each index of %s", (long long)vector,
                             type_text(b->c, e->type));
        if (blocks[i] < 1 || build_dim(b, e, i) % blocks[i])
            return cml_error(n, E_IMPORT, "%lld blocks of %lld", (long long)blocks[i],
                             (long long)build_dim(b, e, i));
    }
    if (!check_shape(n, (Ints){rank, dims}, &cells))
        return NULL;
    size = dtype_bytes(expr_dtype(lut));
    out = arena_alloc(b->c->arena, (size_t)cells * size + 1);
    for (int64_t i = 0; i < cells; i++) {
        int64_t block = 0, index = 0, part = at[axis] % vector;

        for (uint32_t d = 0; d < rank; d++) {
            int64_t width = build_dim(b, e, d), p = d == axis ? at[d] / vector : at[d];

            block = block * blocks[d] + p / (width / blocks[d]);
            index = index * width + p;
        }
        if (q.at[index] >= k)
            return cml_error(n, E_IMPORT, "index %u of a table of %lld", q.at[index], (long long)k);
        memcpy(out + (size_t)i * size,
               table.at + (size_t)((block * k + q.at[index]) * vector + part) * size, size);
        for (uint32_t d = rank; d-- > 0 && ++at[d] == dims[d];)
            at[d] = 0;
    }
    return made(n, expr_dtype(lut), ints_dup(b->c, dims, rank), (Bytes){out, (size_t)cells * size});
}

bool cml_constexpr_lut(CmlNode *n)
{
    const Expr *at;

    if (cml_has(n, "shape"))
        return lut_packed(n);
    return (at = cml_x(n, "indices")) && cml_done(n, looked_up(n, at));
}

/* The cells that are not 0, by one table. */
bool cml_constexpr_lut_to_sparse(CmlNode *n)
{
    const Expr *lut, *at, *mask = cml_x(n, "indices_mask");
    Bytes       table, q;
    uint32_t    size;
    uint8_t    *out;
    int64_t     k, cells;

    (void)cml_arg(n, "vector_axis");
    if (!mask || !constant(n, "lut", &lut, &table) || !constant(n, "indices_nonzero_data", &at, &q))
        return false;
    size = dtype_bytes(expr_dtype(lut));
    k = (int64_t)(table.n / size);
    if (expr_rank(lut) < 2 || build_dim(&n->b, lut, expr_rank(lut) - 2) != k ||
        expr_dtype(at).bits != 8)
        return cml_error(n, E_UNSUPPORTED, "more than one table, of %s",
                         type_text(n->b.c, lut->type));
    cells = (int64_t)q.n;
    out = arena_alloc(n->b.c->arena, q.n * size + 1);
    for (size_t i = 0; i < q.n; i++) {
        if (q.at[i] >= k)
            return cml_error(n, E_IMPORT, "index %u of a table of %lld", q.at[i], (long long)k);
        memcpy(out + i * size, table.at + (size_t)q.at[i] * size, size);
    }
    return cml_done_at(n, 0, mask) &&
           cml_done_at(n, 1, made(n, expr_dtype(lut), (Ints){1, &cells}, (Bytes){out, q.n * size}));
}
