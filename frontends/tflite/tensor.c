/* Tensors that have a value in the file, and quantization.
 *
 * Cells are views of the mapped file; integers of 4 bits are unpacked, and sparse ones filled up.
 */
#include "frontends/tflite/tflite.h"

#include <math.h>
#include <string.h>

#define MOST_DENSE \
    ((int64_t)1 << 30) /* bytes that a sparse constant may have when it is filled up */

enum { INT4 = 17 };

/* ---- sparse tensors ------------------------------------------------------------------------------- */

/* The levels of a sparse tensor from the outside in.  A level stands for a dimension of the tensor,
 * or of the blocks that its last dimensions are cut into; it lists the positions that are there
 * (segments[i] .. segments[i + 1] of indices, i being the position among those of the level
 * before), or has all. */
typedef struct {
    Ctx        *c;
    Loc         loc;
    const char *name;
    uint32_t    rank, levels;
    bool        listed[2 * MAX_RANK];
    int64_t     size[2 * MAX_RANK]; /* of a level with all */
    FbVector    segments[2 * MAX_RANK], indices[2 * MAX_RANK];
    FbKind      segments_kind[2 * MAX_RANK], indices_kind[2 * MAX_RANK];
    int64_t     order[2 * MAX_RANK]; /* the dimension of a level */
    int64_t     dims[MAX_RANK];
    int64_t     block[MAX_RANK], block_of[2 * MAX_RANK]; /* its size; the dimension it is of */
    uint32_t    cell;
    Bytes       data;
    uint8_t    *dense;
    int64_t     left; /* steps */
} Sparse;

static bool bad_sparse(const Sparse *s)
{
    return error_at(s->c, E_IMPORT, s->loc, "sparse tensor '%s' is not what its shape says",
                    s->name);
}

/* A vector of a union of tables with one field. */
static bool sparse_vector(const FbTable *t, int64_t type, FbVector *v, FbKind *kind)
{
    static const FbKind kinds[] = {FB_I32, FB_U16, FB_U8};

    if (type < 1 || type > 3 || !t->file.at)
        return false;
    *kind = kinds[type - 1];
    return fb_vector(t, 0, *kind, v);
}

static bool sparse_levels(Sparse *s, const TfliteTensor *t)
{
    const TfliteSparsity *p = t->sparsity;

    s->rank = t->shape.n;
    s->levels = s->rank + p->blocks.n;
    if (p->blocks.n > s->rank || p->order.n != s->levels || p->dims.n != s->levels)
        return bad_sparse(s);
    for (uint32_t i = 0; i < s->rank; i++) {
        s->dims[i] = fb_int_at(t->shape, FB_I32, i);
        s->block[i] = 1;
    }
    for (uint32_t l = 0; l < s->levels; l++) {
        const TfliteSparseDim *d = p->dims.at[l];

        s->order[l] = fb_int_at(p->order, FB_I32, l);
        s->listed[l] = d->format == 1;
        s->size[l] = d->dense_size;
        if (s->order[l] < 0 || s->order[l] >= s->levels ||
            (s->listed[l] &&
             (!sparse_vector(&d->segments, d->segments_type, &s->segments[l],
                             &s->segments_kind[l]) ||
              !sparse_vector(&d->indices, d->indices_type, &s->indices[l], &s->indices_kind[l]))))
            return bad_sparse(s);
        for (uint32_t k = 0; k < l; k++)
            if (s->order[k] == s->order[l])
                return bad_sparse(s);
    }
    for (uint32_t i = 0; i < p->blocks.n; i++) {
        int64_t of = fb_int_at(p->blocks, FB_I32, i);

        if (of < 0 || of >= s->rank || s->block[of] != 1)
            return bad_sparse(s);
        s->block_of[s->rank + i] = of;
        for (uint32_t l = 0; l < s->levels; l++)
            if (s->order[l] == s->rank + i)
                s->block[of] = s->size[l];
        if (s->block[of] < 1)
            return bad_sparse(s);
    }
    return true;
}

/* Cell `from` of the data stands at these positions. */
static bool sparse_cell(Sparse *s, const int64_t *position, int64_t from)
{
    int64_t at[MAX_RANK], offset = 0;

    for (uint32_t i = 0; i < s->rank; i++)
        at[i] = position[i] * s->block[i];
    for (uint32_t i = s->rank; i < s->levels; i++)
        at[s->block_of[i]] += position[i];
    for (uint32_t i = 0; i < s->rank; i++) {
        if (at[i] < 0 || at[i] >= s->dims[i])
            return bad_sparse(s);
        offset = offset * s->dims[i] + at[i];
    }
    if ((size_t)(from + 1) * s->cell > s->data.n)
        return bad_sparse(s);
    memcpy(s->dense + offset * s->cell, s->data.at + from * s->cell, s->cell);
    return true;
}

/* As deep as there are levels. */
static bool sparse_fill(Sparse *s, uint32_t level, int64_t *position, int64_t before)
{
    int64_t from = 0, to;
    bool    listed;

    if (before > INT32_MAX)
        return bad_sparse(s);
    if (level == s->levels)
        return sparse_cell(s, position, before);
    listed = s->listed[level];
    to = s->size[level];
    if (listed) {
        if (before + 1 >= s->segments[level].n)
            return bad_sparse(s);
        from = fb_int_at(s->segments[level], s->segments_kind[level], (uint32_t)before);
        to = fb_int_at(s->segments[level], s->segments_kind[level], (uint32_t)before + 1);
        if (from < 0 || to > s->indices[level].n)
            return bad_sparse(s);
    }
    for (int64_t i = from; i < to; i++) {
        int64_t at = listed ? fb_int_at(s->indices[level], s->indices_kind[level], (uint32_t)i) : i;

        if (s->left-- <= 0 || at < 0)
            return bad_sparse(s);
        position[s->order[level]] = at;
        if (!sparse_fill(s, level + 1, position, listed ? i : before * s->size[level] + i))
            return false;
    }
    return true;
}

static bool fill_up(Ctx *c, Loc loc, const TfliteTensor *t, DType type, int64_t n, Bytes *data)
{
    int64_t position[2 * MAX_RANK] = {0};
    Sparse  s = {.c = c, .loc = loc, .name = t->name, .cell = dtype_bytes(type), .data = *data};

    if (n > MOST_DENSE / s.cell)
        return error_at(c, E_IMPORT, loc, "sparse tensor '%s' is too large", t->name);
    if (!sparse_levels(&s, t))
        return false;
    s.dense = arena_alloc(c->arena, (size_t)n * s.cell + 1);
    s.left = 4 * n + 1024;
    *data = (Bytes){s.dense, (size_t)n * s.cell};
    return sparse_fill(&s, 0, position, 0);
}

/* ---- constants ------------------------------------------------------------------------------------ */

static const TfliteBuffer *buffer_of(const TfliteModel *m, const TfliteTensor *t)
{
    return t->buffer < (int64_t)m->buffers.n ? m->buffers.at[t->buffer] : NULL;
}

bool tflite_is_constant(const TfliteModel *m, const TfliteTensor *t)
{
    const TfliteBuffer *b = buffer_of(m, t);

    for (uint32_t i = 0; i < t->shape.n; i++)
        if (fb_int_at(t->shape, FB_I32, i) == 0)
            return t->buffer > 0 && b; /* without cells there are no bytes */
    return t->buffer > 0 && b && b->data.n > 0;
}

static bool size_of(Ctx *c, Loc loc, const TfliteTensor *t, int64_t *dims, int64_t *n)
{
    *n = 1;
    for (uint32_t i = 0; i < t->shape.n; i++) {
        dims[i] = fb_int_at(t->shape, FB_I32, i);
        if (dims[i] < 0 || !checked_mul(*n, dims[i], n) || *n > MAX_ELEMS)
            return error_at(c, E_IMPORT, loc, "tensor '%s' is too large or has a dimension below 0",
                            t->name);
    }
    return true;
}

const Expr *tflite_constant(TfliteImport *im, const TfliteTensor *t, Loc loc)
{
    Ctx                *c = im->c;
    const TfliteBuffer *b = buffer_of(im->model, t);
    int64_t             dims[MAX_RANK], n;
    Bytes               data;
    DType               type;

    if (!tflite_is_constant(im->model, t))
        return NULL;
    if (tflite_is_string(t))
        return size_of(c, loc, t, dims, &n) ? tflite_strings(c, t, b->data, n, loc) : NULL;
    if (!tflite_dtype(t->type, &type))
        return error_at(c, E_UNSUPPORTED, loc, "tensor '%s' is of %s", t->name,
                        tflite_dtype_name(t->type));
    if (!size_of(c, loc, t, dims, &n))
        return NULL;
    data = b->data;
    if (t->type == INT4 && data.n == ((size_t)n + 1) / 2) {
        Array   packed = {.code = DT_INT, .bits = 4, .ndim = 1, .dims = &n, .data = data};
        Bytes   cells = array_unpacked(c->arena, &packed);
        int8_t *wide = arena_alloc(c->arena, cells.n + 1);

        for (size_t i = 0; i < cells.n; i++)
            wide[i] = (int8_t)((cells.at[i] & 15) - ((cells.at[i] & 8) << 1));
        data = (Bytes){(const uint8_t *)wide, cells.n};
    }
    if (t->sparsity && !fill_up(c, loc, t, type, n, &data))
        return NULL;
    if (data.n != (size_t)n * dtype_bytes(type))
        return error_at(c, E_IMPORT, loc,
                        "tensor '%s' has %zu bytes of data, but its shape needs %lld", t->name,
                        data.n, (long long)n * dtype_bytes(type));
    for (size_t i = 0; dtype_is_bool(type) && i < data.n; i++)
        if (data.at[i] > 1)
            return error_at(c, E_IMPORT, loc, "tensor '%s': a bool is %u", t->name, data.at[i]);
    return expr_const(c, const_new(c, t->name, type_tensor_i64(c, type, t->shape.n, dims), data),
                      loc);
}

/* ---- quantization --------------------------------------------------------------------------------- */

int64_t tflite_scales(const TfliteTensor *t)
{
    return t->quant ? t->quant->scale.n : 0;
}

double tflite_scale(const TfliteTensor *t, int64_t i)
{
    return fb_float_at(t->quant->scale, (uint32_t)(t->quant->scale.n == 1 ? 0 : i));
}

int64_t tflite_zero(const TfliteTensor *t, int64_t i)
{
    uint32_t n = t->quant->zero_point.n;

    return n ? fb_int_at(t->quant->zero_point, FB_I64, (uint32_t)(i < n ? i : 0)) : 0;
}

/* Bias vectors of 32 and 64 bits have scales, too; products of others say theirs. */
bool tflite_is_quantized(const TfliteTensor *t)
{
    DType d;

    return tflite_scales(t) > 0 && tflite_dtype(t->type, &d) && dtype_is_int(d) && d.bits <= 16;
}

bool tflite_same_quantization(const TfliteTensor *a, const TfliteTensor *b)
{
    if (!tflite_is_quantized(a) || !tflite_is_quantized(b))
        return tflite_is_quantized(a) == tflite_is_quantized(b);
    return a->type == b->type && tflite_scales(a) == 1 && tflite_scales(b) == 1 &&
           tflite_scale(a, 0) == tflite_scale(b, 0) && tflite_zero(a, 0) == tflite_zero(b, 0);
}

/* Scale and zero point as constants, vectors along an axis of `e`, or numbers. */
static bool params_of(const Build *b, const TfliteTensor *t, const Expr *e, DType type,
                      int64_t axis, const Expr **scale, const Expr **zero, int64_t *along)
{
    Ctx     *c = b->c;
    int64_t  n = tflite_scales(t), cells;
    float   *scales = NEW_ARRAY(c->arena, float, (size_t)n);
    int32_t *zeros = NEW_ARRAY(c->arena, int32_t, (size_t)n);

    *along = -1;
    if (n > 1) {
        if (axis < 0 || axis >= (int64_t)expr_rank(e) ||
            !type_dim(e->type, (uint32_t)axis, &cells) || cells != n)
            return error_at(c, E_IMPORT, b->loc, "tensor '%s': %lld scales along axis %lld of %s",
                            t->name, (long long)n, (long long)axis, type_text(c, e->type));
        *along = axis;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t z = tflite_zero(t, i);

        scales[i] = (float)tflite_scale(t, i);
        if (!(scales[i] >= 0) || !isfinite(scales[i]) || (double)z < dtype_min(type) ||
            (double)z > dtype_max(type))
            return error_at(c, E_IMPORT, b->loc, "tensor '%s' has scale %g and zero point %lld",
                            t->name, (double)scales[i], (long long)z);
        if (scales[i] == 0)
            scales[i] = 1; /* a channel of zeros */
        zeros[i] = (int32_t)z;
    }
    *scale = build_const(b, DT_F32, n > 1, &n, scales);
    *zero = build_cast(b, build_const(b, DT_I32, n > 1, &n, zeros), type);
    if (*zero && build_fold(b, *zero))
        *zero = build_fold(b, *zero);
    return *scale && *zero;
}

const Expr *tflite_dequantize(const Build *b, const TfliteTensor *t, const Expr *q, int64_t axis)
{
    DequantizeAttrs *a = ATTRS(b, DequantizeAttrs);
    const Expr      *scale, *zero;

    if (!q || !params_of(b, t, q, expr_dtype(q), axis, &scale, &zero, &a->axis))
        return NULL;
    return build3(b, "qnn.dequantize", q, scale, zero, a);
}

const Expr *tflite_quantize(const Build *b, const TfliteTensor *t, const Expr *x, int64_t axis)
{
    QuantizeAttrs *a = ATTRS(b, QuantizeAttrs);
    const Expr    *scale, *zero;

    if (!x || !tflite_dtype(t->type, &a->out_dtype) ||
        !params_of(b, t, x, a->out_dtype, axis, &scale, &zero, &a->axis))
        return NULL;
    return build3(b, "qnn.quantize", x, scale, zero, a);
}
