/* Complex numbers (cells.c), and the Fourier transforms that make them: frontends/complex.c and
 * fourier.c. */
#include "frontends/pytorch/pytorch.h"

#include <math.h>
#include <string.h>

static const Expr *im_or_zero(const Build *b, const BuildComplex *x)
{
    return x->im ? x->im : build_by(b, "multiply", x->re, 0);
}

static bool pair_of(PtNode *n, const char *name, BuildComplex *out)
{
    const PtArg    *a = pt_arg(n, name);
    const PtTensor *t = a ? pt_given(n, a) : NULL;
    const Expr     *e;
    PtOperand       v;

    *out = (BuildComplex){0};
    if (t && t->cells == PT_COMPLEX) {
        e = n->self == t ? t->e : pt_read(n, (PtTensor *)t);
        out->re = e ? build_complex_part(&n->b, e, 0) : NULL;
        out->im = e ? build_complex_part(&n->b, e, 1) : NULL;
        return out->re && out->im;
    }
    if (!pt_operand(n, name, &v))
        return false;
    out->re = v.e ? v.e : pt_as(n, &v, DT_F32);
    return out->re != NULL;
}

static bool complex_of(PtNode *n, const char *name, BuildComplex *out)
{
    return pair_of(n, name, out) &&
           (out->im || pt_error(n, E_IMPORT, "argument '%s' is not complex", name));
}

static bool done(PtNode *n, BuildComplex x)
{
    const Expr *e = build_complex_pairs(&n->b, x);

    if (!pt_done(n, e))
        return false;
    if (n->nout)
        n->out[0].t->cells = PT_COMPLEX;
    return true;
}

static bool give(PtNode *n, const BuildComplex *x)
{
    return x->im ? done(n, *x) : pt_done(n, x->re);
}

/* ---- parts -------------------------------------------------------------------------------------------- */

bool aten_view_as_real(PtNode *n)
{
    BuildComplex x;

    return complex_of(n, "self", &x) && pt_done(n, build_complex_pairs(&n->b, x));
}

bool aten_view_as_complex(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");

    if (x && (expr_rank(x) < 1 || build_dim(&n->b, x, expr_rank(x) - 1) != 2))
        return pt_error(n, E_IMPORT, "pairs of floats are %s", type_text(n->b.c, x->type));
    return x && done(n, (BuildComplex){build_complex_part(&n->b, x, 0),
                                       build_complex_part(&n->b, x, 1)});
}

bool aten_real(PtNode *n)
{
    BuildComplex x;

    return pair_of(n, "self", &x) && pt_done(n, x.re);
}

bool aten_imag(PtNode *n)
{
    BuildComplex x;

    return complex_of(n, "self", &x) && pt_done(n, x.im);
}

bool aten_conj(PtNode *n)
{
    BuildComplex x;

    if (!pair_of(n, "self", &x))
        return false;
    x.im = x.im ? build1(&n->b, "negative", x.im, NULL) : NULL;
    return give(n, &x);
}

/* A cast to complex numbers, or of them to none others. */
bool pt_makes_complex(PtNode *n)
{
    const PtArg    *type = pt_arg(n, "dtype"), *a = pt_arg(n, "self");
    const PtTensor *t = a ? pt_given(n, a) : NULL;

    if (type && type->kind != PT_NONE)
        return type->i == (n->im->script ? TS_COMPLEX64 : PT_COMPLEX64);
    return t && t->cells == PT_COMPLEX && !pt_has(n, "other");
}

bool pt_to_complex(PtNode *n)
{
    BuildComplex x;

    if (!pair_of(n, "self", &x))
        return false;
    x.re = build_cast(&n->b, x.re, DT_F32);
    x.im = im_or_zero(&n->b, &x);
    return done(n, x);
}

/* complex numbers that were conjugated are so at once */
bool aten_resolved(PtNode *n)
{
    BuildComplex x;

    return pair_of(n, "self", &x) && give(n, &x);
}

bool aten_complex(PtNode *n)
{
    const Expr *re = pt_tensor(n, "real"), *im = re ? pt_tensor(n, "imag") : NULL;
    Dims        dims;

    return im && build_broadcast_dims(&n->b, expr_forms(re), expr_forms(im), &dims) &&
           done(n, (BuildComplex){build_broadcast_to(&n->b, re, dims.n, dims.at),
                                  build_broadcast_to(&n->b, im, dims.n, dims.at)});
}

bool aten_polar(PtNode *n)
{
    const Expr  *size = pt_tensor(n, "abs"), *at = size ? pt_tensor(n, "angle") : NULL;
    BuildComplex x;

    return at && build_polar(&n->b, size, at, &x) && done(n, x);
}

bool aten_abs(PtNode *n)
{
    BuildComplex x;

    return pair_of(n, "self", &x) && pt_done(n, build_complex_abs(&n->b, x));
}

bool aten_angle(PtNode *n)
{
    BuildComplex x;

    return pair_of(n, "self", &x) && pt_done(n, build_complex_angle(&n->b, x));
}

/* ---- arithmetic ------------------------------------------------------------------------------------------ */

static bool both_of(PtNode *n, BuildComplex *x, BuildComplex *y)
{
    const Build  *b = &n->b;
    BuildComplex *of[] = {x, y};
    DType         t = DT_F32;

    if (!pair_of(n, "self", x) || !pair_of(n, "other", y))
        return false;
    for (uint32_t i = 0; i < 2; i++)
        if (of[i]->im)
            t = expr_dtype(of[i]->im);
    for (uint32_t i = 0; i < 2; i++)
        of[i]->re = build_cast(b, of[i]->re, t);
    return x->re && y->re;
}

bool pt_complex_sum(PtNode *n)
{
    const Build *b = &n->b;
    const char  *op = strstr(n->p->target, "sub") ? "subtract" : "add";
    double       alpha = pt_float(n, "alpha", 1);
    BuildComplex x, y, was;
    Dims         dims;

    if (!both_of(n, &x, &y))
        return false;
    if (alpha != 1) {
        y.re = build_by(b, "multiply", y.re, alpha);
        y.im = y.im ? build_by(b, "multiply", y.im, alpha) : NULL;
    }
    if (n->p->row->convert == aten_rsub)
        was = x, x = y, y = was;
    if (!build_broadcast_dims(b, expr_forms(x.re), expr_forms(y.re), &dims))
        return false;
    x.im = build2(b, op, im_or_zero(b, &x), im_or_zero(b, &y), NULL);
    x.re = build2(b, op, x.re, y.re, NULL);
    x.im = build_broadcast_to(b, x.im, dims.n, dims.at);
    return done(n, x);
}

static bool of_both(PtNode *n, BuildComplexBinary *fn)
{
    BuildComplex x, y;

    return both_of(n, &x, &y) && fn(&n->b, x, y, &x) && done(n, x);
}

bool pt_complex_product(PtNode *n)
{
    return of_both(n, build_complex_product);
}

bool pt_complex_quotient(PtNode *n)
{
    if (pt_has(n, "rounding_mode"))
        return pt_error(n, E_IMPORT, "complex numbers are not rounded");
    return of_both(n, build_complex_quotient);
}

/* What an operator of numbers is of complex ones. */
static const struct {
    PtConvert *of, *complex;
} arithmetic[] = {{aten_sum_of, pt_complex_sum},
                  {aten_rsub, pt_complex_sum},
                  {aten_mul, pt_complex_product},
                  {aten_div, pt_complex_quotient}};

PtConvert *pt_complex_form(PtConvert *fn)
{
    for (uint32_t i = 0; i < COUNT(arithmetic); i++)
        if (arithmetic[i].of == fn)
            return arithmetic[i].complex;
    return NULL;
}

bool pt_knows_complex(PtConvert *fn)
{
    static PtConvert *const all[] = {aten_view_as_real, aten_to,       aten_real,     aten_imag,
                                     aten_conj,         aten_resolved, aten_abs,      aten_angle,
                                     aten_fft_raw,      aten_fft,      aten_fft_many, aten_istft};

    for (uint32_t i = 0; i < COUNT(all); i++)
        if (all[i] == fn)
            return true;
    return pt_complex_form(fn) != NULL;
}

/* ---- transforms ------------------------------------------------------------------------------------------ */

typedef enum { TO_COMPLEX, BETWEEN, TO_REAL } Transform;

/* Along one dimension: of `length` points, times `scale` beside 1 / length of inverse ones.
 * onesided: TO_COMPLEX, the first half. */
typedef struct {
    Transform kind;
    int64_t   axis, length;
    bool      inverse, onesided;
    double    scale;
} Along;

static bool transformed(PtNode *n, const Along *f, BuildComplex *x)
{
    const Build *b = &n->b;
    uint32_t     axis;
    BuildFourier of = {
        .length = f->length, .bins = f->length, .inverse = f->inverse, .half = f->kind == TO_REAL};

    if (!pt_axis(n, f->axis, expr_rank(x->re), &axis))
        return false;
    if (!dtype_eq(expr_dtype(x->re), DT_F32))
        return pt_error(n, E_UNSUPPORTED, "a transform of %s", type_text(b->c, x->re->type));
    if (f->onesided)
        of.bins = f->length / 2 + 1;
    if (!build_fourier(b, &of, axis, x))
        return false;
    if (f->scale == 1)
        return true;
    x->re = build_by(b, "multiply", x->re, f->scale);
    x->im = x->im ? build_by(b, "multiply", x->im, f->scale) : NULL;
    return x->re != NULL;
}

/* By how much, beside what build_fourier does: how 0: not at all, 1: by the root, 2: by the length.
 */
static double scale_by(int64_t how, bool inverse, int64_t length)
{
    double want = how == 1 ? 1 / sqrt((double)length) : how == 2 ? 1 / (double)length : 1;

    return inverse ? want * (double)length : want;
}

/* Along several dimensions; the one that is real on one side comes first going there, last coming
 * back. */
static bool transform_all(PtNode *n, Transform kind, bool inverse, bool onesided, int64_t how,
                          Ints axes, const int64_t *lengths, BuildComplex *x)
{
    for (uint32_t i = 0; i < axes.n; i++) {
        uint32_t at = kind == TO_REAL ? i : axes.n - 1 - i, odd = axes.n - 1;
        Along    f = {at == odd ? kind : BETWEEN,
                   axes.at[at],
                   lengths[at],
                   inverse,
                   at == odd && onesided,
                   scale_by(how, inverse, lengths[at])};

        if (f.length < 1)
            return pt_error(n, E_IMPORT, "a transform of %lld points", (long long)f.length);
        if (!transformed(n, &f, x))
            return false;
    }
    return true;
}

static bool same_length(PtNode *n, const BuildComplex *x, Ints axes, int64_t *lengths)
{
    for (uint32_t i = 0; i < axes.n; i++) {
        uint32_t axis;

        if (!pt_axis(n, axes.at[i], expr_rank(x->re), &axis))
            return false;
        lengths[i] = build_dim(&n->b, x->re, axis);
    }
    return true;
}

/* _fft_r2c, _fft_c2r, _fft_c2c */
bool aten_fft_raw(PtNode *n)
{
    const char  *op = n->p->row->name;
    Transform    kind = strstr(op, "r2c") ? TO_COMPLEX : strstr(op, "c2r") ? TO_REAL : BETWEEN;
    bool         inverse = kind == TO_REAL || !pt_bool(n, "forward", true);
    int64_t      how = pt_int(n, "normalization", 0), lengths[MAX_RANK];
    bool         onesided = kind == TO_COMPLEX && pt_bool(n, "onesided", true);
    BuildComplex x;
    Ints         axes;

    if (!pair_of(n, "self", &x) || !pt_ints(n, "dim", &axes))
        return false;
    if (axes.n < 1 || axes.n > expr_rank(x.re) || !same_length(n, &x, axes, lengths))
        return pt_error(n, E_IMPORT, "%u dimensions of %u", axes.n, expr_rank(x.re));
    if (kind == TO_REAL)
        lengths[axes.n - 1] = pt_int(n, "last_dim_size", 0);
    return transform_all(n, kind, inverse, onesided, how, axes, lengths, &x) && give(n, &x);
}

/* How "norm" says it: of the direction that is not told, nothing. */
static bool read_norm(PtNode *n, bool inverse, int64_t *how)
{
    const char *norm = pt_string(n, "norm", "backward");

    *how = !strcmp(norm, "ortho") ? 1 : !strcmp(norm, inverse ? "backward" : "forward") ? 2 : 0;
    return *how || !strcmp(norm, "backward") || !strcmp(norm, "forward") ||
           pt_error(n, E_IMPORT, "norm is '%s'", norm);
}

static bool kind_of(const char *op, Transform *kind, bool *inverse)
{
    const char *f = strstr(op, "fft_") + 4; /* "aten.fft_irfft2": "irfft2" */

    *inverse = *f == 'i';
    f += *inverse;
    *kind = *f != 'r' ? BETWEEN : *inverse ? TO_REAL : TO_COMPLEX;
    return true;
}

static bool fft_along(PtNode *n, Ints axes, const Ints *given, BuildComplex *x)
{
    int64_t   lengths[MAX_RANK], how;
    Transform kind;
    bool      inverse;

    kind_of(n->p->row->name, &kind, &inverse);
    if (axes.n < 1 || axes.n > expr_rank(x->re) || (given && given->n != axes.n))
        return pt_error(n, E_IMPORT, "%u dimensions of %u", axes.n, expr_rank(x->re));
    if (!read_norm(n, inverse, &how) || !same_length(n, x, axes, lengths))
        return false;
    if (kind == TO_REAL)
        lengths[axes.n - 1] = 2 * (lengths[axes.n - 1] - 1);
    for (uint32_t i = 0; given && i < axes.n; i++)
        lengths[i] = given->at[i] < 0 ? lengths[i] : given->at[i];
    if (kind == TO_REAL && !x->im)
        x->im = im_or_zero(&n->b, x);
    return transform_all(n, kind, inverse, kind == TO_COMPLEX, how, axes, lengths, x) && give(n, x);
}

bool aten_fft(PtNode *n)
{
    int64_t      axis = pt_int(n, "dim", -1), length;
    Ints         given = {1, &length};
    BuildComplex x;

    if (!pair_of(n, "self", &x))
        return false;
    length = pt_int(n, "n", 0);
    return fft_along(n, (Ints){1, &axis}, pt_has(n, "n") ? &given : NULL, &x);
}

/* Along the last two dimensions, along those of "dim", or along all. */
bool aten_fft_many(PtNode *n)
{
    bool         two = strstr(n->p->row->name, "fft2") != NULL;
    int64_t      all[MAX_RANK];
    Ints         axes = {2, all}, given;
    BuildComplex x;
    uint32_t     rank;

    if (!pair_of(n, "self", &x))
        return false;
    rank = expr_rank(x.re);
    if (pt_has(n, "s") && !pt_ints(n, "s", &given))
        return false;
    axes.n = two ? 2 : pt_has(n, "s") ? given.n : rank;
    for (uint32_t i = 0; i < axes.n && i < MAX_RANK; i++)
        all[i] = (int64_t)i - (int64_t)axes.n;
    if (pt_has(n, "dim") && !pt_ints(n, "dim", &axes))
        return false;
    return fft_along(n, axes, pt_has(n, "s") ? &given : NULL, &x);
}

/* ---- short-time transforms ------------------------------------------------------------------------------- */

typedef struct {
    int64_t     points, hop, width;
    const Expr *window; /* [points]; NULL: ones */
    bool        center, onesided, normalized;
} Frames;

static bool read_frames(PtNode *n, Frames *f)
{
    const Build *b = &n->b;
    int64_t      pads[2];

    f->points = pt_int(n, "n_fft", 0);
    f->hop = pt_int(n, "hop_length", f->points / 4);
    f->width = pt_int(n, "win_length", f->points);
    f->normalized = pt_bool(n, "normalized", false);
    f->onesided = pt_bool(n, "onesided", true);
    if (!pt_maybe(n, "window", &f->window))
        return false;
    if (f->points < 1 || f->hop < 1 || f->width < 1 || f->width > f->points)
        return pt_error(n, E_IMPORT, "%lld points in frames of %lld every %lld",
                        (long long)f->points, (long long)f->width, (long long)f->hop);
    if (f->points > BUILD_FOURIER_MOST)
        return pt_error(n, E_UNSUPPORTED, "frames of %lld points", (long long)f->points);
    if (f->window && (expr_rank(f->window) != 1 || build_dim(b, f->window, 0) != f->width))
        return pt_error(n, E_IMPORT, "the window is %s", type_text(b->c, f->window->type));
    if (!f->window && f->width < f->points)
        f->window = build_broadcast(b, expr_scalar(b->c, DT_F32, 1), 1, &f->width);
    pads[0] = (f->points - f->width) / 2;
    pads[1] = f->points - f->width - pads[0];
    if (f->window && f->width < f->points)
        f->window = build_pad(b, f->window, pads, 0, NULL);
    return true;
}

/* Numbers of cells: [frames, points], frame i from hop * i on. */
static const Expr *cells_of(const Build *b, const Frames *f, const Idx *frames)
{
    const Expr *at = build_by(b, "multiply", build_arange(b, frames, DT_I64), (double)f->hop);
    const Expr *in = build_arange(b, idx_const(b->c->arith, f->points), DT_I64);

    return build_add(b, build_expand_dims(b, at, 1, 1), in);
}

/* [.., length] -> [.., bins, frames] */
bool aten_stft(PtNode *n)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    const Expr  *x = pt_tensor(n, "self");
    const char  *mode = pt_string(n, "pad_mode", "reflect");
    Frames       f = {0};
    const Idx   *frames;
    int64_t      pads[4] = {0}, order[] = {0, 2, 1};
    uint32_t     rank;
    BuildComplex y;

    f.center = pt_bool(n, "center", false);
    if (pt_bool(n, "align_to_window", false))
        return pt_error(n, E_UNSUPPORTED, "align_to_window");
    if (!x || !read_frames(n, &f))
        return false;
    rank = expr_rank(x);
    if (rank < 1 || rank > 2)
        return pt_error(n, E_IMPORT, "the signal is %s", type_text(b->c, x->type));
    if (rank == 1)
        x = build_expand_dims(b, x, 0, 1);
    pads[2] = pads[3] = f.points / 2;
    if (f.center)
        x = build_pad(b, x, pads, 0,
                      !strcmp(mode, "constant")    ? NULL
                      : !strcmp(mode, "replicate") ? "edge"
                                                   : mode);
    if (!x)
        return false;
    frames = idx_addc(A, idx_divc(A, idx_addc(A, expr_form(x, 1), -f.points), f.hop), 1);
    if (frames->lo < 1)
        return pt_error(n, E_IMPORT, "the signal is shorter than a frame");
    x = build_take(b, x, cells_of(b, &f, frames), 1);
    y = (BuildComplex){f.window ? build_mul(b, x, f.window) : x, NULL};
    if (!y.re || !transformed(n,
                              &(Along){TO_COMPLEX, 2, f.points, false, f.onesided,
                                       f.normalized ? 1 / sqrt((double)f.points) : 1},
                              &y))
        return false;
    y.re = build_transpose(b, y.re, 3, order), y.im = build_transpose(b, y.im, 3, order);
    if (rank == 1 && y.re && y.im) {
        y.re = build_reshape_to(b, y.re, 2, expr_forms(y.re).at + 1);
        y.im = build_reshape_to(b, y.im, 2, expr_forms(y.im).at + 1);
    }
    if (!pt_bool(n, "return_complex", false))
        return pt_done(n, build_complex_pairs(b, y));
    return done(n, y);
}

/* Frames [N, frames, points] added up where they overlap: [N, length]. */
static const Expr *overlapped(const Build *b, const Frames *f, const Expr *x, int64_t frames)
{
    ScatterElementsAttrs *a = ATTRS(b, ScatterElementsAttrs);
    int64_t               cells = frames * f->points;
    const Idx            *all[] = {expr_form(x, 0), idx_const(b->c->arith, cells)};
    const Idx  *dims[] = {all[0], idx_const(b->c->arith, (frames - 1) * f->hop + f->points)};
    const Expr *at = build_reshape(b, cells_of(b, f, idx_const(b->c->arith, frames)), 1, &cells);

    a->axis = 1;
    a->reduction = "add";
    return build3(b, "scatter_elements", build_zeros_of(b, expr_dtype(x), 2, dims),
                  build_broadcast_to(b, at, 2, all), build_reshape_to(b, x, 2, all), a);
}

/* The signal whose frames, each times the window, have this spectrum; divided by the sum of the
 * windows' squares. */
bool aten_istft(PtNode *n)
{
    const Build *b = &n->b;
    Frames       f = {0};
    int64_t      order[] = {0, 2, 1}, frames, from, to, length = pt_int(n, "length", -1), one = 1,
            flat[2];
    const Expr  *y, *w;
    uint32_t     rank;
    BuildComplex x;

    f.center = pt_bool(n, "center", true);
    if (!complex_of(n, "self", &x) || !read_frames(n, &f))
        return false;
    rank = expr_rank(x.re);
    if (pt_bool(n, "return_complex", false) || rank < 2 || rank > 3)
        return pt_error(n, E_UNSUPPORTED, "a complex signal, or a spectrum of %u dimensions", rank);
    if (length > MAX_ELEMS)
        return pt_error(n, E_IMPORT, "a signal of %lld cells", (long long)length);
    if (f.hop > f.width ||
        build_dim(b, x.re, rank - 2) != (f.onesided ? f.points / 2 + 1 : f.points))
        return pt_error(n, E_IMPORT, "a spectrum %s of frames of %lld every %lld",
                        type_text(b->c, x.re->type), (long long)f.width, (long long)f.hop);
    if (rank == 2)
        x.re = build_expand_dims(b, x.re, 0, 1), x.im = build_expand_dims(b, x.im, 0, 1);
    x.re = build_transpose(b, x.re, 3, order), x.im = build_transpose(b, x.im, 3, order);
    if (!x.re || !x.im)
        return false;
    frames = build_dim(b, x.re, 1);
    if (!transformed(n,
                     &(Along){f.onesided ? TO_REAL : BETWEEN, 2, f.points, true, false,
                              f.normalized ? sqrt((double)f.points) : 1},
                     &x))
        return false;
    y = f.window ? build_mul(b, x.re, f.window) : x.re;
    flat[0] = frames, flat[1] = f.points;
    w = f.window ? build_mul(b, f.window, f.window) : expr_scalar(b->c, DT_F32, 1);
    w = build_expand_dims(b, build_broadcast(b, w, 2, flat), 0, one);
    if (!y || !w)
        return false;
    y = overlapped(b, &f, y, frames);
    w = overlapped(b, &f, w, frames);
    to = (frames - 1) * f.hop + f.points;
    from = f.center ? f.points / 2 : 0;
    if (length >= 0)
        to = from + length < to ? from + length : to;
    else if (f.center)
        to -= f.points / 2;
    if (!y || !w || to <= from)
        return y && w && pt_error(n, E_IMPORT, "no signal is left");
    y = build_div(b, build_slice(b, y, 1, from, to), build_slice(b, w, 1, from, to));
    if (y && length > to - from)
        y = build_pad(b, y, (int64_t[]){0, 0, 0, length - (to - from)}, 0, NULL);
    return y && pt_done(n, rank == 2 ? build_reshape_to(b, y, 1, expr_forms(y).at + 1) : y);
}
