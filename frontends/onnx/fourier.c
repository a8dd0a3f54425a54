/* Fourier transforms, DFT and STFT (frontends/fourier.c).
 *
 * Where the run says how long signals, frames and transforms are, or along which axis they lie, a
 * row has as many points as bind_dims says. */
#include "frontends/onnx/onnx.h"

/* ---- transforms ---------------------------------------------------------------------------------- */

/* x [rows, points, parts] -> [rows, bins, 2], of half: [rows, bins, 1] */
static const Expr *transformed(Node *n, const BuildSpectrum *f, const Expr *x)
{
    if (f->half && f->parts != 2)
        return node_error(n, E_IMPORT, "the last dimension of a spectrum should be 2");
    return build_spectrum(&n->b, f, x);
}

/* A signal as [before, points, after, parts], and its axis; `is`: which of the dimensions that is,
 * Tensor[(1), bool] each, where the run says it. */
typedef struct {
    uint32_t    rank, axis;
    const Expr *is[MAX_RANK];
    bool        at_run;
    const Idx  *before, *points, *after;
} Signal;

static bool signal_at_run(Node *n, Signal *s)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *axis = node_cells(n, 2), *zero = cell_number(b, 0), *any = NULL,
               *one = cell_number(b, 1), *size[3] = {one, one, one}, *past = zero;
    const Idx *dims[3];
    const Idx *unit = idx_const(b->c->arith, 1), *most[3] = {unit, unit, unit};
    RunDim     d[3];

    if (!axis || !expr_single(axis))
        return axis && node_error(n, E_IMPORT, "the axis is not one number");
    s->at_run = true;
    past = build_cast(b, past, DT_BOOL);
    for (uint32_t i = 0; i + 1 < s->rank; i++) {
        const Expr *cells = cell_form(b, expr_form(x, i));
        const Idx  *extent = expr_form(x, i);

        if (expr_form(x, i)->lo < 1)
            return node_error(n, E_UNSUPPORTED, "dimension %u may be empty", i);
        s->is[i] = axis_flag(b, axis, i, s->rank);
        any = any ? build2(b, "logical_or", any, s->is[i], NULL) : s->is[i];
        size[1] = build_where(b, s->is[i], cells, size[1]);
        size[2] = build_where(b, past, build_mul(b, size[2], cells), size[2]);
        past = build2(b, "logical_or", past, s->is[i], NULL);
        size[0] = build_where(b, past, size[0], build_mul(b, size[0], cells));
        most[0] = idx_mul(b->c->arith, most[0], extent);
        if (idx_usual(most[0]) > MAX_ELEMS)
            return node_error(n, E_UNSUPPORTED, "a signal of more than %lld cells",
                              (long long)MAX_ELEMS);
        most[1] = idx_max(b->c->arith, extent, most[1]);
        most[2] = most[0];
    }
    for (uint32_t i = 0; i < 3; i++)
        d[i] = (RunDim){size[i], 1, most[i], 0, 1};
    if (!onnx_require(n, build_where(b, any, zero, one), "there is no such axis") ||
        !onnx_bind(n, 0, 3, d, dims))
        return false;
    s->before = dims[0], s->points = dims[1], s->after = dims[2];
    return true;
}

static bool read_signal(Node *n, Signal *s)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    const Expr  *x = n->in[0];
    int64_t      axis = node_int(n, "axis", n->opset >= 20 ? -2 : 1);

    *s = (Signal){.rank = expr_rank(x), .before = idx_const(A, 1), .after = idx_const(A, 1)};
    if (!node_known(n, 2))
        return signal_at_run(n, s);
    if ((node_has(n, 2) && !node_const_int(n, 2, &axis)) || !node_axis(n, axis, s->rank, &s->axis))
        return false;
    if (s->axis + 1 == s->rank)
        return node_error(n, E_IMPORT, "the last dimension is that of real and imaginary");
    s->points = expr_form(x, s->axis);
    for (uint32_t i = 0; i + 1 < s->rank; i++) {
        if (i < s->axis)
            s->before = idx_mul(A, s->before, expr_form(x, i));
        if (i > s->axis)
            s->after = idx_mul(A, s->after, expr_form(x, i));
    }
    return true;
}

/* How many results a row has, from its length or that of the transform. */
static bool read_length(Node *n, const Signal *s, bool inverse, bool onesided, BuildSpectrum *f)
{
    const Build *b = &n->b;
    bool         given = node_has(n, 1);
    const Expr  *bins;
    const Idx   *most = s->points;

    f->half = inverse && onesided;
    if (f->half)
        most = idx_mulc(b->c->arith, idx_addc(b->c->arith, most, -1), 2);
    f->length = given ? node_cells(n, 1) : cell_form(b, s->points);
    if (given && f->length && !expr_single(f->length))
        return node_error(n, E_IMPORT, "the length is not one number");
    if (!given && f->half)
        f->length = build_by(b, "multiply", build_by(b, "subtract", f->length, 1), 2);
    bins = f->length;
    if (onesided && !inverse) {
        bins = build_by(b, "add", build2(b, "floor_divide", bins, cell_number(b, 2), NULL), 1);
        most = idx_addc(b->c->arith, idx_divc(b->c->arith, most, 2), 1);
    }
    RunDim d = {bins, 1, given ? NULL : most, s->axis, 1};
    return onnx_bind(n, 0, 1, &d, &f->bins);
}

/* x [.., points, .., 1 or 2], of which the points are transformed. */
bool convert_dft(Node *n)
{
    const Build  *b = &n->b;
    Arith        *A = b->c->arith;
    bool          inverse = node_int(n, "inverse", 0) != 0, moved;
    bool          onesided = node_int(n, "onesided", 0) != 0;
    int64_t       swap[] = {0, 2, 1, 3};
    const Idx    *dims[MAX_RANK], *four[4], *three[3];
    BuildSpectrum f = {.inverse = inverse};
    const Expr   *x;
    Signal        s;

    if (!node_need_rank(n, 0, 2, MAX_RANK))
        return false;
    x = n->in[0];
    f.parts = build_dim(b, x, expr_rank(x) - 1);
    if (f.parts < 1 || f.parts > 2)
        return node_error(n, E_IMPORT, "the last dimension should be 1 or 2, real and imaginary");
    if (!read_signal(n, &s))
        return false;
    if (expr_empty(x))
        return node_error(n, E_UNSUPPORTED, "an empty signal");
    if (!read_length(n, &s, inverse, onesided, &f))
        return false;
    f.points = s.points;
    moved = s.after != idx_const(A, 1);
    four[0] = s.before, four[1] = s.points, four[2] = s.after, four[3] = idx_const(A, f.parts);
    x = s.at_run ? in_shape_at_run(n, x, 4, four) : build_reshape_to(b, x, 4, four);
    x = moved ? build_transpose(b, x, 4, swap) : x;
    three[0] = idx_mul(A, s.before, s.after), three[1] = s.points, three[2] = four[3];
    if (!(x = build_reshape_to(b, x, 3, three)) || !(x = transformed(n, &f, x)))
        return false;
    four[1] = s.after, four[2] = f.bins, four[3] = expr_form(x, 2);
    x = moved ? build_transpose(b, build_reshape_to(b, x, 4, four), 4, swap) : x;
    for (uint32_t i = 0; i + 1 < s.rank; i++)
        dims[i] = !s.at_run && i == s.axis ? f.bins : expr_form(n->in[0], i);
    dims[s.rank - 1] = four[3];
    if (!s.at_run)
        return node_done(n, build_reshape_to(b, x, s.rank, dims));
    for (uint32_t i = 0; i + 1 < s.rank; i++) {
        const Idx *was = dims[i];
        RunDim     d = {build_where(b, s.is[i], cell_form(b, f.bins), cell_form(b, was)), 1,
                        idx_max(b->c->arith, was, f.bins), i, 1};

        if (!onnx_bind(n, 0, 1, &d, &dims[i]))
            return false;
    }
    return node_done(n, x ? in_shape_at_run(n, x, s.rank, dims) : NULL);
}

/* Frames of the signal [N, length, 1 or 2], each times the window: [N, frames, bins, 2]. */
bool convert_stft(Node *n)
{
    const Build  *b = &n->b;
    Arith        *A = b->c->arith;
    bool          onesided = node_int(n, "onesided", 1) != 0;
    const Expr   *x, *step = node_cells(n, 1), *one = cell_number(b, 1), *count, *at;
    const Idx    *all, *length, *frames, *dims[4];
    BuildSpectrum f = {0};

    if (!node_need_rank(n, 0, 2, 3) || !step)
        return false;
    if (!expr_single(step))
        return node_error(n, E_IMPORT, "the step is not one number");
    x = n->in[0];
    all = expr_form(x, 1);
    f.parts = expr_rank(x) == 3 ? build_dim(b, x, 2) : 1;
    if (f.parts < 1 || f.parts > 2)
        return node_error(n, E_IMPORT, "the last dimension should be 1 or 2, real and imaginary");
    if (node_has(n, 2) && !node_need_rank(n, 2, 1, 1))
        return false;
    RunDim long_d = {node_has(n, 3) ? node_cells(n, 3) : one, 1, all, 2, 1};
    if (node_has(n, 2)) {
        length = expr_form(n->in[2], 0);
        if (node_has(n, 3) && !onnx_require(n, build_sub(b, long_d.cell, cell_form(b, length)),
                                            "the window is not as long as the frames"))
            return false;
    } else if (!node_has(n, 3)) {
        return node_error(n, E_IMPORT, "neither a window nor the length of frames");
    } else if (!onnx_bind(n, 0, 1, &long_d, &length)) {
        return false;
    }
    if (!onnx_require(n, build_sub(b, build2(b, "minimum", step, one, NULL), one),
                      "the step is not above 0"))
        return false;
    count = build_sub(b, cell_form(b, all), cell_form(b, length));
    count = build2(b, "floor_divide", count, build2(b, "maximum", step, one, NULL), NULL);
    RunDim d = {build_add(b, count, one), 1, all, 1, 1};
    if (!onnx_bind(n, 0, 1, &d, &frames))
        return false;
    at = build_mul(b, build_along(b, build_arange(b, frames, DT_I64), 2, 0), step);
    at = build_add(b, at, build_along(b, build_arange(b, length, DT_I64), 2, 1));
    x = build_take(b, x, at, 1);
    dims[0] = expr_form(n->in[0], 0), dims[1] = frames, dims[2] = length;
    dims[3] = idx_const(A, f.parts);
    x = build_reshape_to(b, x, 4, dims);
    if (node_has(n, 2))
        x = build_mul(b, x, build_along(b, n->in[2], 4, 2));
    f.points = length;
    f.length = cell_form(b, length);
    f.bins = onesided ? idx_addc(A, idx_divc(A, length, 2), 1) : length;
    dims[1] = idx_mul(A, dims[0], frames);
    x = build_reshape_to(b, x, 3, (const Idx *[]){dims[1], length, dims[3]});
    if (!x || !(x = transformed(n, &f, x)))
        return false;
    dims[1] = frames, dims[2] = f.bins, dims[3] = idx_const(A, 2);
    return node_done(n, build_reshape_to(b, x, 4, dims));
}
