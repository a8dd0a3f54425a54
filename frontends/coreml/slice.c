/* Parts, borders, and what is turned round. */
#include "frontends/coreml/coreml.h"

#include <string.h>

/* ---- parts -------------------------------------------------------------------------------------------- */

/* Bit i is of position i. */
static int64_t bits_of(Ints v)
{
    int64_t bits = 0;

    for (uint32_t i = 0; i < v.n && i < MAX_RANK; i++)
        bits |= (int64_t)(v.at[i] != 0) << i;
    return bits;
}

typedef struct {
    Dims begin, end;
    Ints stride, begin_mask, end_mask, squeeze_mask;
} Slice;

static const Expr *sliced(CmlNode *n, const Expr *x, const Slice *s)
{
    StrideMasks m = {.begin = bits_of(s->begin_mask),
                     .end = bits_of(s->end_mask),
                     .shrink = bits_of(s->squeeze_mask)};
    Ints        step = s->stride;
    int64_t     ones[MAX_RANK];

    for (uint32_t i = 0; i < MAX_RANK; i++)
        ones[i] = 1;
    if (s->begin.n > MAX_RANK || s->begin.n != expr_rank(x))
        return cml_error(n, E_IMPORT, "%u positions in %s", s->begin.n, type_text(n->b.c, x->type));
    if (!step.n)
        step = ints_dup(n->b.c, ones, s->begin.n);
    return build_strides(&n->b, x, s->begin, s->end, step, &m);
}

bool cml_slice_by_index(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    Slice       s;

    return x && cml_forms(n, "begin", &s.begin) && cml_forms(n, "end", &s.end) &&
           cml_ints(n, "stride", &s.stride) && cml_ints(n, "begin_mask", &s.begin_mask) &&
           cml_ints(n, "end_mask", &s.end_mask) && cml_ints(n, "squeeze_mask", &s.squeeze_mask) &&
           cml_done(n, sliced(n, x, &s));
}

/* Where a slice of one step lies along dimension i. */
static bool range_of(CmlNode *n, const Expr *x, const Slice *s, uint32_t i, const Idx **from,
                     const Idx **to)
{
    Arith     *A = n->b.c->arith;
    const Idx *cells = expr_form(x, i);
    int64_t    v;

    *from = bits_of(s->begin_mask) >> i & 1 ? idx_const(A, 0) : s->begin.at[i];
    *to = bits_of(s->end_mask) >> i & 1 ? cells : s->end.at[i];
    if (idx_is_const(*from, &v) && v < 0)
        *from = idx_addc(A, cells, v);
    if (idx_is_const(*to, &v) && v < 0)
        *to = idx_addc(A, cells, v);
    if (bits_of(s->squeeze_mask) >> i & 1)
        *to = idx_addc(A, *from, 1);
    if (s->stride.n && s->stride.at[i] != 1)
        return cml_error(n, E_UNSUPPORTED, "a stride of %lld", (long long)s->stride.at[i]);
    return true;
}

/* The part grows, from the last dimension on, by what lies before and behind it. */
bool cml_slice_update(CmlNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = cml_x(n, "x"), *y = x ? cml_x(n, "update") : NULL;
    const Idx   *from[MAX_RANK], *to[MAX_RANK], *cells[MAX_RANK], *none = idx_const(b->c->arith, 0);
    uint32_t     rank = x ? expr_rank(x) : 0;
    Slice        s;

    if (!y || !cml_forms(n, "begin", &s.begin) || !cml_forms(n, "end", &s.end) ||
        !cml_ints(n, "stride", &s.stride) || !cml_ints(n, "begin_mask", &s.begin_mask) ||
        !cml_ints(n, "end_mask", &s.end_mask) || !cml_ints(n, "squeeze_mask", &s.squeeze_mask))
        return false;
    if (s.begin.n != rank || s.end.n != rank || (s.stride.n && s.stride.n != rank))
        return cml_error(n, E_IMPORT, "%u positions in %s", s.begin.n, type_text(b->c, x->type));
    for (uint32_t i = 0; i < rank; i++) {
        if (!range_of(n, x, &s, i, &from[i], &to[i]))
            return false;
        cells[i] = idx_sub(b->c->arith, to[i], from[i]);
    }
    y = build_reshape_to(b, y, rank, cells);
    for (uint32_t i = rank; y && i-- > 0;) {
        const Expr *around = x, *parts[3];
        uint32_t    count = 0;

        for (uint32_t k = 0; around && k < i; k++)
            around = build_slice_to(b, around, k, from[k], to[k]);
        if (!around)
            return false;
        if (from[i] != none)
            parts[count++] = build_slice_to(b, around, i, none, from[i]);
        parts[count++] = y;
        if (to[i] != expr_form(x, i))
            parts[count++] = build_slice_to(b, around, i, to[i], expr_form(x, i));
        y = count > 1 ? build_concat(b, count, parts, i) : y;
    }
    return cml_done(n, y);
}

static bool read_layer_slice(CmlNode *n, Slice *s)
{
    return cml_ints(n, "strides", &s->stride) && cml_ints(n, "begin_masks", &s->begin_mask) &&
           cml_ints(n, "end_masks", &s->end_mask) && cml_ints(n, "squeeze_masks", &s->squeeze_mask);
}

bool cml_layer_slice_static(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    Slice       s;

    return x && read_layer_slice(n, &s) && cml_forms(n, "begin_ids", &s.begin) &&
           cml_forms(n, "end_ids", &s.end) && cml_done(n, sliced(n, x, &s));
}

/* What is no operand is a field. */
bool cml_layer_slice_dynamic(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    Slice       s;

    if (!x || !read_layer_slice(n, &s) || !cml_operand_forms(n, "begin", &s.begin))
        return false;
    if (cml_arg(n, "end") ? !cml_operand_forms(n, "end", &s.end) : !cml_forms(n, "end_ids", &s.end))
        return false;
    (void)cml_has(n, "end_ids");
    return (!cml_arg(n, "stride") || cml_ints(n, "stride", &s.stride)) &&
           (!cml_arg(n, "begin_mask") || cml_ints(n, "begin_mask", &s.begin_mask)) &&
           (!cml_arg(n, "end_mask") || cml_ints(n, "end_mask", &s.end_mask)) &&
           (!cml_arg(n, "squeeze_mask") || cml_ints(n, "squeeze_mask", &s.squeeze_mask)) &&
           cml_done(n, sliced(n, x, &s));
}

/* Positions below 0 count from the end. */
static Dims from_end(CmlNode *n, const Expr *x, Dims v)
{
    const Idx **at = NEW_ARRAY(n->b.c->arena, const Idx *, v.n + 1);

    for (uint32_t i = 0; i < v.n; i++)
        at[i] = v.at[i]->hi < 0 && i < expr_rank(x)
                    ? idx_add(n->b.c->arith, v.at[i], expr_form(x, i))
                    : v.at[i];
    return (Dims){v.n, at};
}

bool cml_slice_by_size(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    Dims        begin, size;

    return x && cml_forms(n, "begin", &begin) && cml_forms(n, "size", &size) &&
           cml_done(n, build_part(&n->b, x, from_end(n, x, begin), size));
}

/* Along one axis, from where a number of the run says. */
bool cml_layer_slice_by_size(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    const Idx  *begin[MAX_RANK], *size[MAX_RANK];
    int64_t     cells = cml_int(n, "size", 0);
    uint32_t    axis;
    Dims        at;

    if (!x || !cml_axis(n, cml_int(n, "axis", 0), expr_rank(x), &axis) ||
        !cml_operand_forms(n, "begin", &at))
        return false;
    if (at.n != 1)
        return cml_error(n, E_IMPORT, "it begins at %u positions", at.n);
    for (uint32_t i = 0; i < expr_rank(x); i++) {
        begin[i] = i == axis ? at.at[0] : idx_const(n->b.c->arith, 0);
        size[i] = i == axis ? idx_const(n->b.c->arith, cells) : expr_form(x, i);
    }
    return cml_done(n, build_part(&n->b, x, from_end(n, x, (Dims){expr_rank(x), begin}),
                                  (Dims){expr_rank(x), size}));
}

bool cml_layer_slice(CmlNode *n)
{
    const Expr *x = cml_image(n, "x", 2);
    int64_t     axis = cml_int(n, "axis", 0), begin = cml_int(n, "start_index", 0);
    int64_t     end = cml_int(n, "end_index", 0), step = cml_int(n, "stride", 1);
    const Idx  *from[4], *to[4];
    int64_t     steps[4] = {1, 1, 1, 1};
    StrideMasks all = {0};

    if (!x)
        return false;
    if (axis < 0 || axis > 2)
        return cml_error(n, E_UNSUPPORTED, "axis %lld", (long long)axis);
    for (uint32_t i = 0; i < 4; i++)
        from[i] = to[i] = idx_const(n->b.c->arith, 0);
    axis++;
    from[axis] = idx_const(n->b.c->arith, begin);
    to[axis] = idx_const(n->b.c->arith, end);
    steps[axis] = step < 1 ? 1 : step;
    all.begin = all.end = 15 & ~((int64_t)1 << axis);
    return cml_done_image(n, build_strides(&n->b, x, (Dims){4, from}, (Dims){4, to},
                                           ints_dup(n->b.c, steps, 4), &all));
}

static bool cut(CmlNode *n, const Expr *x, const int64_t *begin, const int64_t *end)
{
    return x && cml_done_image(
                    n, build_pad(&n->b, x,
                                 (int64_t[]){0, 0, 0, 0, -begin[0], -end[0], -begin[1], -end[1]}, 0,
                                 "constant"));
}

bool cml_crop(CmlNode *n)
{
    int64_t rows[2], columns[2];

    return cml_numbers(n, "crop_height", 2, 0, 0, rows) &&
           cml_numbers(n, "crop_width", 2, 0, 0, columns) &&
           cut(n, cml_image(n, "x", 2), (int64_t[]){rows[0], columns[0]},
               (int64_t[]){rows[1], columns[1]});
}

/* By borders, or to the size of a second operand. */
bool cml_layer_crop(CmlNode *n)
{
    const Build *b = &n->b;
    const Expr  *like = cml_arg(n, "like") ? cml_image(n, "like", 2) : NULL;
    const Expr  *x = cml_image(n, "x", 2);
    int64_t      begin[2] = {0}, end[2] = {0};
    CmlMessage   m;

    if (!x || !cml_numbers(n, "offset", 2, 0, 0, begin))
        return false;
    for (uint32_t i = 0; like && i < 2; i++)
        end[i] = build_dim(b, x, 2 + i) - build_dim(b, like, 2 + i) - begin[i];
    if (like && (end[0] < 0 || end[1] < 0))
        return cml_error(n, E_IMPORT, "%s cut to %s", type_text(b->c, x->type),
                         type_text(b->c, like->type));
    if (like)
        (void)cml_has(n, "crop_amounts");
    else if (cml_message(n, "crop_amounts", &m) && !cml_edges(n, &m, begin, end))
        return false;
    return cut(n, x, begin, end);
}

/* [.., n, ..] to [.., windows, size, ..]. */
bool cml_sliding_windows(CmlNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = cml_x(n, "x");
    int64_t      size = cml_int(n, n->layer ? "window_size" : "size", 1);
    int64_t      step = cml_int(n, n->layer ? "step" : "stride", 1), cells, count, *at, dims[2];
    uint32_t     axis;

    if (!x || !cml_axis(n, cml_int(n, "axis", 0), expr_rank(x), &axis))
        return false;
    cells = build_dim(b, x, axis);
    if (size < 1 || size > cells || step < 1)
        return cml_error(n, E_IMPORT, "windows of %lld by steps of %lld of %s", (long long)size,
                         (long long)step, type_text(b->c, x->type));
    count = (cells - size) / step + 1;
    if (!checked_mul(count, size, &dims[0]) || dims[0] > 1 << 24)
        return cml_error(n, E_UNSUPPORTED, "%lld windows of %lld", (long long)count,
                         (long long)size);
    at = NEW_ARRAY(b->c->arena, int64_t, (size_t)dims[0]);
    for (int64_t i = 0; i < dims[0]; i++)
        at[i] = i / size * step + i % size;
    dims[0] = count, dims[1] = size;
    return cml_done(n, build_take(b, x, build_const(b, DT_I64, 2, dims, at), axis));
}

/* ---- borders ------------------------------------------------------------------------------------------ */

static const Expr *padded(CmlNode *n, const Expr *x, const int64_t *pads, const char *mode,
                          double value)
{
    const Build *b = &n->b;

    if (!strcmp(mode, "reflect"))
        return build_mirror_pad(b, x, pads, false);
    if (strcmp(mode, "constant") != 0 && strcmp(mode, "replicate") != 0)
        return cml_error(n, E_UNSUPPORTED, "mode '%s'", mode);
    return build_pad(b, x, pads, value, *mode == 'r' ? "edge" : "constant");
}

/* Two numbers for each of the last dimensions. */
static bool last_pads(CmlNode *n, const Expr *x, Ints v, int64_t *pads)
{
    uint32_t rank = expr_rank(x);

    memset(pads, 0, 2 * MAX_RANK * sizeof *pads);
    if (v.n % 2 || v.n > 2 * rank)
        return cml_error(n, E_IMPORT, "%u borders of %s", v.n, type_text(n->b.c, x->type));
    for (uint32_t i = 0; i < v.n; i++) {
        if (v.at[i] < 0 || v.at[i] > INT32_MAX)
            return cml_error(n, E_IMPORT, "a border of %lld", (long long)v.at[i]);
        pads[2 * rank - v.n + i] = v.at[i];
    }
    return true;
}

bool cml_pad(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    const char *mode = cml_text(n, "mode", "constant");
    double      value = cml_float(n, "constant_val", 0);
    int64_t     pads[2 * MAX_RANK];
    Ints        v;

    return x && cml_ints(n, "pad", &v) && last_pads(n, x, v, pads) &&
           cml_done(n, padded(n, x, pads, mode, value));
}

bool cml_layer_pad(CmlNode *n)
{
    const Expr *x = cml_image(n, "x", 2);
    CmlMessage  m, kind;
    int64_t     begin[2] = {0}, end[2] = {0};
    bool        reflect = cml_message(n, "reflection", &kind);
    bool        replicate = cml_message(n, "replication", &kind);
    double      value = cml_message(n, "constant", &kind) ? cml_read_float(&kind, "value") : 0;

    if (!x || (cml_message(n, "padding_amounts", &m) && !cml_edges(n, &m, begin, end)))
        return false;
    return cml_done_image(n,
                          padded(n, x, (int64_t[]){0, 0, 0, 0, begin[0], end[0], begin[1], end[1]},
                                 reflect     ? "reflect"
                                 : replicate ? "replicate"
                                             : "constant",
                                 value));
}

/* Pairs for all dimensions, as a field or an operand; or the sizes that are to come out, 0: as
 * they are. */
bool cml_constant_pad(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    double      value = cml_float(n, "value", 0);
    bool        to_size = cml_bool(n, "pad_to_given_output_size_mode", false);
    int64_t     pads[2 * MAX_RANK];
    Ints        v;
    Dims        d;

    if (!x || !cml_ints(n, "pad_amounts", &v))
        return false;
    if (n->nargs > 1) {
        int64_t *at;

        if (!cml_operand_forms(n, "pad", &d))
            return false;
        at = NEW_ARRAY(n->b.c->arena, int64_t, d.n + 1);
        for (uint32_t i = 0; i < d.n; i++)
            if (!idx_is_const(d.at[i], &at[i]))
                return cml_error(n, E_UNSUPPORTED,
                                 "its input 'pad' has to be known when it is compiled");
        v = (Ints){d.n, at};
    }
    if (v.n != 2 * expr_rank(x) || !last_pads(n, x, v, pads))
        return v.n == 2 * expr_rank(x)
                   ? false
                   : cml_error(n, E_IMPORT, "%u borders of %s", v.n, type_text(n->b.c, x->type));
    /* One number of a pair is the size that is to come out, where it says on which side. */
    for (uint32_t i = 0; to_size && i < v.n; i++) {
        int64_t more = pads[i] - build_dim(&n->b, x, i / 2);

        pads[i] = pads[i] && more > 0 ? more : 0;
    }
    return cml_done(n, padded(n, x, pads, "constant", value));
}

/* ---- turned round ---------------------------------------------------------------------------------------- */

bool cml_reverse(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    int64_t     axes[MAX_RANK];
    uint32_t    count;

    if (!x || !cml_axes(n, "axes", expr_rank(x), &count, axes))
        return false;
    for (uint32_t i = 0; !count && i < expr_rank(x); i++)
        axes[i] = i;
    return cml_done(n, build_reverse(&n->b, x, count ? count : expr_rank(x), axes));
}

bool cml_layer_reverse(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    int64_t     axes[MAX_RANK];
    uint32_t    count = 0;
    Ints        v;

    if (!x || !cml_ints(n, "reverse_dim", &v))
        return false;
    if (v.n != expr_rank(x))
        return cml_error(n, E_IMPORT, "%u dimensions of %s", v.n, type_text(n->b.c, x->type));
    for (uint32_t i = 0; i < v.n; i++)
        if (v.at[i])
            axes[count++] = i;
    return cml_done(n, count ? build_reverse(&n->b, x, count, axes) : x);
}

bool cml_reverse_sequence(CmlNode *n)
{
    const Expr *x = cml_x(n, "x"), *lengths = x ? cml_x(n, "lengths") : NULL;
    int64_t     along = cml_int(n, n->layer ? "sequence_axis" : "seq_axis", 0);
    int64_t     batch = cml_int(n, "batch_axis", 0);
    uint32_t    a, b;

    return lengths && cml_axis(n, along, expr_rank(x), &a) &&
           cml_axis(n, batch, expr_rank(x), &b) &&
           cml_done(n, build_reverse_rows(&n->b, x, build_cast(&n->b, lengths, DT_I32), a, b));
}
