/* Tensors whose cells stand for something else: complex numbers, and quantized ones.
 *
 *     PT_COMPLEX     cells [.., 2] of floats: real and imaginary parts
 *     PT_QUANTIZED   integers, with the scale and zero point that all of them have, or each channel
 *
 * Most operators do not know of either.  Some are carried out on the parts of complex numbers one
 * after the other, or on the integers; some on what the integers stand for, whose result is
 * quantized like the first argument (as PyTorch's own kernels do, but for the rounding of what lies
 * between).  Those that know of them are in complex.c and quantized.c.  Any other operator says
 * what it is given. */
#include "frontends/pytorch/pytorch.h"

#include <string.h>

/* ---- what a tensor's cells are ---------------------------------------------------------------------- */

static const char *const kinds[] = {
    [PT_REAL] = "numbers", [PT_COMPLEX] = "complex numbers", [PT_QUANTIZED] = "quantized numbers"};

const PtTensor *pt_given(PtNode *n, const PtArg *a)
{
    const PtValue *v = NULL;

    if (n->self && n->p->nin && a == &n->p->in[0])
        return n->self;
    if (a && a->kind == PT_TENSOR)
        v = pt_value_of(n->im, a);
    return v ? v->t : NULL;
}

static const PtTensor *first_of(PtNode *n, const PtArg *a, PtCells cells)
{
    const PtTensor *t = pt_given(n, a), *found = NULL;

    if (t)
        return t->cells == cells ? t : NULL;
    for (uint32_t i = 0; a->kind == PT_LIST && i < a->n && !found; i++)
        found = first_of(n, &a->at[i], cells);
    return found;
}

static const PtTensor *any_of(PtNode *n, PtCells cells)
{
    const PtTensor *found = NULL;

    for (uint32_t i = 0; i < n->p->nin && !found; i++)
        found = first_of(n, &n->p->in[i], cells);
    return found;
}

bool pt_has_cells(PtNode *n)
{
    return any_of(n, PT_COMPLEX) || any_of(n, PT_QUANTIZED);
}

const Expr *pt_real(PtNode *n, PtTensor *t)
{
    const Expr *e = pt_read(n, t);

    if (!e || t->cells == PT_REAL)
        return e;
    pt_error(n, E_UNSUPPORTED, "%s where numbers should be", kinds[t->cells]);
    diag_hint(n->b.c->diags, "%s",
              t->cells == PT_COMPLEX ? "torch.view_as_real makes pairs of floats of them"
                                     : "dequantize() makes floats of them");
    return NULL;
}

const Expr *pt_meant(PtNode *n, const PtTensor *t, const Expr *e)
{
    if (t->cells == PT_REAL && n->how == PT_IMAGINARY_PARTS && n->mixed)
        return build_broadcast_to(&n->b, build_scalar(&n->b, e, 0), expr_rank(e), expr_forms(e).at);
    if (t->cells == PT_REAL)
        return e;
    if (t->cells == PT_COMPLEX && (n->how == PT_REAL_PARTS || n->how == PT_IMAGINARY_PARTS))
        return build_complex_part(&n->b, e, n->how == PT_IMAGINARY_PARTS);
    if (t->cells == PT_QUANTIZED && n->how == PT_INTEGERS)
        return e;
    if (t->cells == PT_QUANTIZED && n->how == PT_MEANT)
        return pt_dequantized(&n->b, e, t->scale);
    return pt_error(n, E_UNSUPPORTED, "it is given %s", kinds[t->cells]);
}

/* ---- operators that do not know of them -------------------------------------------------------------- */

static bool among(PtConvert *fn, uint32_t n, PtConvert *const *all)
{
    for (uint32_t i = 0; i < n; i++)
        if (all[i] == fn)
            return true;
    return false;
}

/* Does the operator only move cells?  Views do. */
static bool moves_cells(const PtRow *row)
{
    static PtConvert *const all[] = {aten_view,
                                     aten_identity,
                                     aten_squeeze,
                                     aten_unsqueeze,
                                     aten_permute,
                                     aten_slice,
                                     aten_select,
                                     aten_index_select,
                                     aten_index,
                                     aten_gather,
                                     aten_flip,
                                     aten_roll,
                                     aten_repeat,
                                     aten_repeat_interleave,
                                     aten_split,
                                     aten_chunk,
                                     aten_expand,
                                     aten_take,
                                     aten_pixel_shuffle,
                                     aten_pixel_unshuffle,
                                     aten_channel_shuffle,
                                     aten_diagonal};

    return row->alias != PLAIN || among(row->convert, COUNT(all), all);
}

static bool by_parts(const PtRow *row)
{
    static PtConvert *const all[] = {aten_cat, aten_stack, aten_mean, aten_reduce_sum};

    return moves_cells(row) ||
           (among(row->convert, COUNT(all), all) &&
            (!row->relay || strcmp(row->relay, "prod") != 0)) ||
           (row->relay && !strcmp(row->relay, "negative"));
}

/* Operators that keep the order of numbers, of integers too. */
static bool by_integers(const PtRow *row)
{
    static PtConvert *const all[] = {aten_max_pool, aten_adaptive_max_pool, aten_upsample_nearest};

    return moves_cells(row) || among(row->convert, COUNT(all), all);
}

static bool by_meaning(const PtRow *row)
{
    static PtConvert *const all[] = {aten_cat,
                                     aten_stack,
                                     aten_clamp,
                                     aten_relu6,
                                     aten_hardtanh,
                                     aten_leaky_relu,
                                     aten_elu,
                                     aten_hardsigmoid,
                                     aten_hardswish,
                                     aten_avg_pool,
                                     aten_adaptive_avg_pool,
                                     aten_mean,
                                     aten_upsample_linear,
                                     aten_upsample_bicubic,
                                     aten_pad,
                                     aten_threshold,
                                     aten_prelu};

    return among(row->convert, COUNT(all), all) ||
           (row->relay && (!strcmp(row->relay, "nn.relu") || !strcmp(row->relay, "sigmoid") ||
                           !strcmp(row->relay, "tanh")));
}

/* Each of the results, those in a list too, becomes fn of it. */
static bool each_result(PtNode *n, bool (*fn)(PtNode *n, PtTensor *t, void *user), void *user)
{
    for (uint32_t i = 0; i < n->nout; i++) {
        const PtValue *v = &n->out[i];

        for (uint32_t k = 0; k < v->n; k++)
            if (v->at[k].t && !fn(n, v->at[k].t, user))
                return false;
        if (v->t && !fn(n, v->t, user))
            return false;
    }
    return true;
}

typedef struct {
    uint32_t    n;
    const Expr *at[64];
} Parts;

static bool keep_part(PtNode *n, PtTensor *t, void *user)
{
    Parts *parts = user;

    if (parts->n == COUNT(parts->at))
        return pt_error(n, E_UNSUPPORTED, "more than %zu results of complex numbers",
                        COUNT(parts->at));
    parts->at[parts->n++] = t->e;
    return true;
}

static bool join_part(PtNode *n, PtTensor *t, void *user)
{
    Parts *parts = user;

    t->e = build_complex_pairs(&n->b, (BuildComplex){parts->at[parts->n++], t->e});
    t->cells = PT_COMPLEX;
    return t->e != NULL;
}

static bool convert_parts(PtNode *n)
{
    Parts parts = {0};

    n->mixed = !moves_cells(n->p->row);
    n->how = PT_REAL_PARTS;
    if (!n->p->row->convert(n) || !each_result(n, keep_part, &parts))
        return false;
    n->how = PT_IMAGINARY_PARTS;
    parts.n = 0;
    return n->p->row->convert(n) && each_result(n, join_part, &parts);
}

static bool keep_scale(PtNode *n, PtTensor *t, void *user)
{
    (void)n;
    t->cells = PT_QUANTIZED;
    t->scale = user;
    return true;
}

/* max_pool2d_with_indices: the indices are numbers. */
static bool keep_scale_of_same(PtNode *n, PtTensor *t, void *user)
{
    const PtTensor *x = user;

    return !dtype_eq(expr_dtype(t->e), expr_dtype(x->e)) || keep_scale(n, t, (void *)x->scale);
}

static bool quantize_again(PtNode *n, PtTensor *t, void *user)
{
    const PtTensor *x = user;

    if (pt_dtype_kind(expr_dtype(t->e)) != 2)
        return true;
    t->e = pt_quantized(&n->b, t->e, x->scale, expr_dtype(x->e));
    return t->e && keep_scale(n, t, (void *)x->scale);
}

/* Sigmoids end in all of the integers, whatever came before them. */
static const PtTensor *scale_of_result(PtNode *n, const PtTensor *x)
{
    const char *relay = n->p->row->relay;
    bool        tanh = relay && !strcmp(relay, "tanh"), byte = expr_dtype(x->e).code == DT_UINT;
    PtTensor   *t = arena_dup(n->b.c->arena, x, sizeof *x);

    if (!tanh && (!relay || strcmp(relay, "sigmoid") != 0) &&
        n->p->row->convert != aten_hardsigmoid)
        return x;
    t->scale = pt_scale(&n->b, tanh ? 1.0 / 128 : 1.0 / 256,
                        tanh ? (byte ? 128 : 0) : (byte ? 0 : -128), expr_dtype(x->e));
    return t;
}

bool pt_convert_cells(PtNode *n)
{
    const PtRow    *row = n->p->row;
    const PtTensor *x = any_of(n, PT_QUANTIZED);
    PtConvert      *fn;

    if (!pt_knows_complex(row->convert) && !pt_knows_quantized(row->convert)) {
        if (!x && by_parts(row))
            return convert_parts(n);
        if (x && x->scale->axis >= 0 && by_meaning(row))
            return pt_error(n, E_UNSUPPORTED, "it is given numbers with a scale for each channel");
        if (x && by_integers(row)) {
            n->how = PT_INTEGERS;
            return row->convert(n) && each_result(n, keep_scale_of_same, (void *)x);
        }
        if (x && by_meaning(row)) {
            n->how = PT_MEANT;
            return row->convert(n) && each_result(n, quantize_again, (void *)scale_of_result(n, x));
        }
    }
    fn = any_of(n, PT_COMPLEX) ? pt_complex_form(row->convert) : NULL;
    return fn ? fn(n) : row->convert(n);
}
