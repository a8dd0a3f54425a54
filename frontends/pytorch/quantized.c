/* Quantized tensors (cells.c): integers with a scale and a zero point, as TorchScript has them, and
 * the same written out as PyTorch's newer exporters do (quantized_decomposed).
 *
 *     ops.quantized.conv2d_relu(x, packed, 0.017, 0)
 *         qnn.quantize(nn.relu(nn.conv2d(qnn.dequantize(x), qnn.dequantize(w)) + b), 0.017, 0)
 *
 * Operators are what they are of the numbers that the integers stand for; passes make arithmetic of
 * integers of it, as of any model that is quantized in this form.
 *
 * Packed parameters are tuples: weight, bias, and of convolutions stride, padding, output padding,
 * dilation, groups, and whether it is transposed. */
#include "frontends/pytorch/pytorch.h"

#include <math.h>
#include <string.h>

/* ---- scales ---------------------------------------------------------------------------------------------- */

const PtScale *pt_scale(const Build *b, double scale, int64_t zero, DType t)
{
    PtScale *s = NEW(b->c->arena, PtScale);

    s->scale = expr_scalar(b->c, DT_F32, scale);
    s->zero = expr_scalar(b->c, t, (double)zero);
    s->axis = -1;
    return s;
}

const Expr *pt_dequantized(const Build *b, const Expr *x, const PtScale *s)
{
    DequantizeAttrs *a = ATTRS(b, DequantizeAttrs);

    a->axis = s->axis;
    return build3(b, "qnn.dequantize", x, s->scale, s->zero, a);
}

const Expr *pt_quantized(const Build *b, const Expr *x, const PtScale *s, DType t)
{
    QuantizeAttrs *a = ATTRS(b, QuantizeAttrs);

    a->out_dtype = t;
    a->axis = s->axis;
    return build3(b, "qnn.quantize", build_cast(b, x, DT_F32), s->scale, s->zero, a);
}

static bool done(PtNode *n, const Expr *e, const PtScale *s)
{
    if (!pt_done(n, e))
        return false;
    if (n->nout) {
        n->out[0].t->cells = PT_QUANTIZED;
        n->out[0].t->scale = s;
    }
    return true;
}

/* A number, or a tensor of numbers, as a constant where it is one; t: the type it should have. */
static const Expr *param(PtNode *n, const char *name, DType t)
{
    const Build *b = &n->b;
    PtOperand    v;
    const Expr  *e, *k;

    if (!pt_operand(n, name, &v) || !(e = pt_as(n, &v, t)))
        return NULL;
    if (expr_rank(e) > 1)
        return pt_error(n, E_IMPORT, "argument '%s' is %s", name, type_text(b->c, e->type));
    k = build_fold(b, e);
    return k ? k : e;
}

static const PtScale *scale_of(PtNode *n, const char *scale, const char *zero, DType t)
{
    PtScale *s = NEW(n->b.c->arena, PtScale);

    s->axis = -1;
    if (!(s->scale = param(n, scale, DT_F32)) || !(s->zero = param(n, zero, t)))
        return NULL;
    if (!expr_single(s->scale) || !expr_single(s->zero))
        return pt_error(n, E_IMPORT, "scale and zero point are no numbers");
    s->scale = build_reshape(&n->b, s->scale, 0, NULL);
    s->zero = build_reshape(&n->b, s->zero, 0, NULL);
    return s->scale && s->zero ? s : NULL;
}

static const PtScale *scales_of(PtNode *n, const Expr *x, DType t)
{
    PtScale *s = NEW(n->b.c->arena, PtScale);
    uint32_t axis;

    if (!(s->scale = param(n, "scales", DT_F32)) || !(s->zero = param(n, "zero_points", t)) ||
        !pt_axis(n, pt_int(n, "axis", 0), expr_rank(x), &axis))
        return NULL;
    if (expr_rank(x) < 1 || expr_rank(s->scale) != 1 ||
        expr_form(s->scale, 0) != expr_form(x, axis) ||
        !expr_has_forms(s->zero, 1, expr_forms(s->scale).at))
        return pt_error(n, E_IMPORT, "scales are %s for %s", type_text(n->b.c, s->scale->type),
                        type_text(n->b.c, x->type));
    s->axis = axis;
    return s;
}

/* qint8, quint8, qint32 */
bool pt_quantized_type(int64_t number, DType *out)
{
    *out = number == 12 ? DT_I8 : number == 13 ? DT_U8 : DT_I32;
    return number >= 12 && number <= 14;
}

static bool quantized_type(PtNode *n, DType *t)
{
    int64_t number = pt_int(n, "dtype", 0);

    return pt_quantized_type(number, t) ||
           pt_error(n, E_UNSUPPORTED, "quantized element type %lld is not supported",
                    (long long)number);
}

bool aten_quantize(PtNode *n)
{
    const Expr    *x = pt_tensor(n, "self");
    const PtScale *s;
    DType          t;

    if (!x || !quantized_type(n, &t))
        return false;
    s = pt_has(n, "scales") ? scales_of(n, x, t) : scale_of(n, "scale", "zero_point", t);
    return s && done(n, pt_quantized(&n->b, x, s, t), s);
}

/* An argument that is quantized, as the numbers that it stands for; *of: it itself. */
static const Expr *meant(PtNode *n, const char *name, const PtTensor **of)
{
    const PtArg *a = pt_arg(n, name);
    const Expr  *e;

    if (!a || !(*of = pt_given(n, a)) || (*of)->cells != PT_QUANTIZED)
        return pt_error(n, E_IMPORT, "argument '%s' is not quantized", name);
    e = *of == n->self ? (*of)->e : pt_read(n, (PtTensor *)*of);
    return e ? pt_dequantized(&n->b, e, (*of)->scale) : NULL;
}

bool aten_dequantize(PtNode *n)
{
    const PtArg    *a = pt_arg(n, "self");
    const PtTensor *x = a ? pt_given(n, a) : NULL;

    if (x && x->cells == PT_REAL)
        return pt_done(n, build_cast(&n->b, pt_tensor(n, "self"), DT_F32));
    return pt_done(n, meant(n, "self", &x));
}

bool aten_int_repr(PtNode *n)
{
    const PtTensor *x;

    return meant(n, "self", &x) && pt_done(n, x->e);
}

/* q_scale, q_zero_point and their sisters of channels */
bool aten_q_param(PtNode *n)
{
    const char     *op = n->p->row->name;
    bool            zero = strstr(op, "zero") != NULL, channels = strstr(op, "channel") != NULL;
    const PtTensor *x;

    if (!meant(n, "self", &x))
        return false;
    if (channels != (x->scale->axis >= 0))
        return pt_error(n, E_IMPORT, "its scale is %s",
                        channels ? "one number" : "one of each channel");
    if (strstr(op, "axis"))
        return pt_done_form(n, idx_const(n->b.c->arith, x->scale->axis));
    if (channels)
        return pt_done(n, zero ? build_cast(&n->b, x->scale->zero, DT_I64)
                               : build_cast(&n->b, x->scale->scale, DT_F64));
    n->out[0] = (PtValue){.e = zero ? build_cast(&n->b, x->scale->zero, DT_I64)
                                    : build_cast(&n->b, x->scale->scale, DT_F64)};
    return n->out[0].e != NULL;
}

bool pt_knows_quantized(PtConvert *fn)
{
    static PtConvert *const all[] = {aten_dequantize, aten_int_repr, aten_q_param, q_conv,
                                     q_linear,        q_binary,      q_scalar,     q_cat,
                                     q_unary,         q_norm,        q_matmul};

    for (uint32_t i = 0; i < COUNT(all); i++)
        if (all[i] == fn)
            return true;
    return false;
}

/* ---- operators ---------------------------------------------------------------------------------------------- */

/* The result, through ReLU if the operator's name says so, in the type of x. */
static bool finished(PtNode *n, const Expr *y, const PtTensor *x, const char *scale,
                     const char *zero)
{
    DType          t = expr_dtype(x->e);
    const PtScale *s = y ? scale_of(n, scale, zero, t) : NULL;

    if (y && strstr(n->p->row->name, "_relu") && !strstr(n->p->row->name, "leaky_relu"))
        y = build1(&n->b, "nn.relu", y, NULL);
    return s && y && done(n, pt_quantized(&n->b, y, s, t), s);
}

/* A node of another row, whose arguments are these. */
typedef struct {
    const char *row;
    uint32_t    n;
    const char *names[12];
    PtArg       args[12];
} Call;

static void pass(Call *k, const char *name, PtArg a)
{
    k->names[k->n] = name;
    k->args[k->n++] = a;
}

static void pass_tensor(PtNode *n, Call *k, const char *name, const Expr *e)
{
    PtValue v = pt_tensor_value(n->b.c, e);

    pass(k, name,
         (PtArg){.kind = PT_TENSOR, .text = "", .value = arena_dup(n->b.c->arena, &v, sizeof v)});
}

/* An argument of the node, under another name. */
static void pass_on(PtNode *n, Call *k, const char *name, const char *as)
{
    const PtArg *a = pt_arg(n, name);

    if (a)
        pass(k, as, *a);
}

/* The first result; NULL with an error. */
static const Expr *called(PtNode *n, const Call *k)
{
    PtOp  *op = arena_dup(n->b.c->arena, n->p, sizeof *n->p);
    PtNode m;

    op->nin = k->n;
    op->nout = 1;
    op->in_place = false;
    op->in = arena_dup(n->b.c->arena, k->args, k->n * sizeof *k->args);
    op->names = arena_dup(n->b.c->arena, k->names, k->n * sizeof *k->names);
    op->row = NULL;
    for (uint32_t i = 0; i < pt_nrows && !op->row; i++)
        if (!strcmp(pt_rows[i].name, k->row))
            op->row = &pt_rows[i];
    m = pt_node(n->im, op);
    return pt_convert(&m) && m.out[0].t ? m.out[0].t->e : NULL;
}

/* Item i of packed parameters. */
static const PtArg *packed(PtNode *n, const char *name, uint32_t items, uint32_t i)
{
    const PtArg *a = pt_arg(n, name);

    if (!a || a->kind != PT_LIST || a->n != items)
        return pt_error(n, E_IMPORT, "argument '%s' should be packed parameters", name);
    return &a->at[i];
}

/* The weight as the numbers that it stands for. */
static const Expr *weight_of(PtNode *n, const PtArg *a)
{
    const PtTensor *w = pt_given(n, a);
    const Expr     *e = w ? pt_read(n, (PtTensor *)w) : NULL;

    if (!e)
        return pt_error(n, E_IMPORT, "the weight is no tensor");
    return w->cells == PT_QUANTIZED ? pt_dequantized(&n->b, e, w->scale) : e;
}

/* conv1d to conv3d, transposed ones, with ReLU or without */
bool q_conv(PtNode *n)
{
    static const char *const parts[] = {"bias",     "stride", "padding",   "output_padding",
                                        "dilation", "groups", "transposed"};
    const PtTensor          *x;
    Call                     k = {.row = "aten.convolution"};
    const Expr              *e = meant(n, "qx", &x), *w;
    const PtArg             *a;

    if (!e || !(a = packed(n, "packed_weight", PT_PACKED_CONV, 0)) || !(w = weight_of(n, a)))
        return false;
    pass_tensor(n, &k, "input", e);
    pass_tensor(n, &k, "weight", w);
    for (uint32_t i = 0; i < COUNT(parts); i++)
        pass(&k, parts[i], *packed(n, "packed_weight", PT_PACKED_CONV, 1 + i));
    return finished(n, called(n, &k), x, "output_scale", "output_zero_point");
}

/* The scale and zero point, of type t, by which the smallest and the largest number of x, and 0,
 * lie within lo to hi; even: the same on both sides of 0. */
static const PtScale *chosen(const Build *b, const Expr *x, double lo, double hi, bool even,
                             double eps, DType t)
{
    PtScale    *s = NEW(b->c->arena, PtScale);
    const Expr *least = build_by(b, "minimum", build_reduce(b, "min", x, 0, NULL, false), 0);
    const Expr *most = build_by(b, "maximum", build_reduce(b, "max", x, 0, NULL, false), 0), *zero;

    s->axis = -1;
    if (even) {
        most = build2(b, "maximum", build1(b, "negative", least, NULL), most, NULL);
        s->scale = build_by(b, "maximum", build_by(b, "multiply", most, 2 / (hi - lo)), eps);
        s->zero = expr_scalar(b->c, t, t.code == DT_UINT ? (double)(1 << (t.bits - 1)) : 0);
        return s->scale ? s : NULL;
    }
    s->scale =
        build_by(b, "maximum", build_by(b, "divide", build_sub(b, most, least), hi - lo), eps);
    zero = build1(b, "round", build_div(b, least, s->scale), NULL);
    zero = zero ? build_clip(b, build_sub(b, build_scalar(b, zero, lo), zero), lo, hi) : NULL;
    s->zero = build_cast(b, zero, t);
    return s->scale && s->zero ? s : NULL;
}

/* A product; of floats ("dynamic") by the scale of their smallest and largest number, of 7 bits if
 * the range is reduced. */
bool q_linear(PtNode *n)
{
    const char     *op = n->p->row->name;
    bool            dynamic = strstr(op, "dynamic") != NULL, half = strstr(op, "fp16") != NULL;
    const PtTensor *x = NULL;
    Call            k = {.row = "aten.linear"};
    const Expr     *e = dynamic ? pt_tensor(n, "X") : meant(n, "X", &x), *w;
    const PtArg    *a;
    const PtScale  *s;

    if (!e || !(a = packed(n, "W_prepack", PT_PACKED_LINEAR, 0)) || !(w = weight_of(n, a)))
        return false;
    if (dynamic && !half) {
        double hi = pt_bool(n, "reduce_range", false) ? 127 : 255;

        if (!(s = chosen(&n->b, e, 0, hi, false, 0x1p-126, DT_U8)))
            return false;
        e = pt_dequantized(&n->b, build_clip(&n->b, pt_quantized(&n->b, e, s, DT_U8), 0, hi), s);
    }
    if (!e)
        return false;
    pass_tensor(n, &k, "input", e);
    pass_tensor(n, &k, "weight", build_cast(&n->b, w, expr_dtype(e)));
    pass(&k, "bias", *packed(n, "W_prepack", PT_PACKED_LINEAR, 1));
    e = called(n, &k);
    if (!dynamic)
        return finished(n, e, x, "Y_scale_i", "Y_zero_point_i");
    return pt_done(n, e && strstr(op, "_relu") ? build1(&n->b, "nn.relu", e, NULL) : e);
}

/* add, mul */
bool q_binary(PtNode *n)
{
    const PtTensor *x, *y;
    const Expr     *a, *b;

    if (!pt_has(n, "qb"))
        return q_scalar(n);
    a = meant(n, "qa", &x);
    b = a ? meant(n, "qb", &y) : NULL;
    return b && finished(n, build2(&n->b, n->relay, a, b, NULL), x, "scale", "zero_point");
}

bool q_matmul(PtNode *n)
{
    const PtTensor *x, *y;
    const Expr     *a = meant(n, "qa", &x), *b = a ? meant(n, "qb", &y) : NULL;

    return b && finished(n, pt_matmul(n, a, b), x, "scale", "zero_point");
}

/* x + c and x * c have scales of their own, so that all integers stay within their type. */
bool q_scalar(PtNode *n)
{
    const PtTensor *x;
    const Expr     *a = meant(n, "qa", &x);
    double          c = pt_float(n, "b", 0), scale, zero;
    DType           t;

    if (!a)
        return false;
    t = expr_dtype(x->e);
    if (x->scale->axis >= 0 || !expr_const_f(x->scale->scale, &scale) ||
        !expr_const_f(x->scale->zero, &zero))
        return pt_error(n, E_UNSUPPORTED, "a scale that a run decides, or one of each channel");
    double lo = dtype_min(t), hi = dtype_max(t), y = zero - nearbyint(c / scale);

    if (!strcmp(n->relay, "add")) {
        a = build_by(&n->b, "add", a, c);
        if (y < lo)
            scale *= (hi - y) / (hi - lo), y = lo;
        else if (y > hi)
            scale *= (y - lo) / (hi - lo), y = hi;
    } else {
        a = build_by(&n->b, "multiply", a, c);
        y = c > 0 ? zero : c < 0 ? hi - (zero - lo) : 0;
        scale = c != 0 ? scale * fabs(c) : 1;
    }
    if (!((float)scale > 0 && (float)scale < HUGE_VALF && fabs(y) < HUGE_VAL))
        return pt_error(n, E_IMPORT, "with %g, its scale would be %g", c, scale);
    const PtScale *s = pt_scale(&n->b, scale, (int64_t)y, t);

    if (strstr(n->p->row->name, "_relu"))
        a = build1(&n->b, "nn.relu", a, NULL);
    return a && done(n, pt_quantized(&n->b, a, s, t), s);
}

bool q_cat(PtNode *n)
{
    const PtArg    *a = pt_arg(n, "qx");
    const PtTensor *first = NULL, *x;
    const Expr    **all;
    uint32_t        axis;

    if (!a || a->kind != PT_LIST || a->n < 1)
        return pt_error(n, E_IMPORT, "argument 'qx' should be a list of tensors");
    all = NEW_ARRAY(n->b.c->arena, const Expr *, a->n);
    for (uint32_t i = 0; i < a->n; i++) {
        x = pt_given(n, &a->at[i]);
        first = first ? first : x;
        if (!x || x->cells != PT_QUANTIZED)
            return pt_error(n, E_IMPORT, "tensor %u is not quantized", i);
        all[i] = pt_read(n, (PtTensor *)x);
        if (!all[i] || !(all[i] = pt_dequantized(&n->b, all[i], x->scale)))
            return false;
    }
    return pt_axis(n, pt_int(n, "dim", 0), expr_rank(all[0]), &axis) &&
           finished(n, build_concat(&n->b, a->n, all, axis), first,
                    pt_has(n, "scale") ? "scale" : "output_scale",
                    pt_has(n, "zero_point") ? "zero_point" : "output_zero_point");
}

/* An operator of one tensor and numbers, by the row of its name. */
bool q_unary(PtNode *n)
{
    static const char *const kept[] = {"dim", "negative_slope", "alpha", "scale", "input_scale"};
    const PtTensor          *x;
    Call k = {.row = arena_printf(n->b.c->arena, "aten.%s", strchr(n->p->row->name, '.') + 1)};
    const Expr *e = meant(n, "qx", &x), *y;

    (void)pt_bool(n, "inplace", false);
    if (!e)
        return false;
    pass_tensor(n, &k, "self", e);
    for (uint32_t i = 0; i < COUNT(kept); i++)
        pass_on(n, &k, kept[i], kept[i]);
    y = called(n, &k);
    if (pt_has(n, "output_scale"))
        return finished(n, y, x, "output_scale", "output_zero_point");
    return y && done(n, pt_quantized(&n->b, y, x->scale, expr_dtype(x->e)), x->scale);
}

/* batch_norm, layer_norm, group_norm, instance_norm */
bool q_norm(PtNode *n)
{
    static const char *const kept[] = {
        "weight", "bias", "eps", "running_mean", "running_var", "normalized_shape", "num_groups"};
    const char     *op = strchr(n->p->row->name, '.') + 1;
    const PtTensor *x;
    Call            k = {.row = !strncmp(op, "batch", 5) ? "aten.batch_norm"
                                                         : arena_printf(n->b.c->arena, "aten.%s", op)};
    const Expr     *e = meant(n, "qx", &x);

    if (!e)
        return false;
    pass_tensor(n, &k, "input", e);
    for (uint32_t i = 0; i < COUNT(kept); i++)
        pass_on(n, &k, kept[i], kept[i]);
    return finished(n, called(n, &k), x, "output_scale", "output_zero_point");
}

/* ---- written out: integers are plain tensors ----------------------------------------------------------------- */

/* The numbers that quant_min and quant_max allow, which may be fewer than the type's. */
static const Expr *within(PtNode *n, const Expr *x, DType t)
{
    double lo = pt_float(n, "quant_min", dtype_min(t)), hi = pt_float(n, "quant_max", dtype_max(t));

    if (lo <= dtype_min(t) && hi >= dtype_max(t))
        return x;
    return build_clip(&n->b, x, lo, hi);
}

bool qd_quantize(PtNode *n)
{
    const Expr    *x = pt_tensor(n, "input");
    const PtScale *s;
    DType          t;

    if (!x || !pt_type(n, "dtype", DT_I8, &t))
        return false;
    if (pt_dtype_kind(t) != 1)
        return pt_error(n, E_UNSUPPORTED, "quantized to %s", dtype_text(n->b.c, t));
    s = pt_has(n, "scales") ? scales_of(n, x, t) : scale_of(n, "scale", "zero_point", t);
    return s && pt_done(n, within(n, pt_quantized(&n->b, x, s, t), t));
}

bool qd_dequantize(PtNode *n)
{
    const Expr    *x = pt_tensor(n, "input");
    const PtScale *s;
    DType          t, out;

    if (!x)
        return false;
    t = expr_dtype(x);
    if (!pt_type(n, "dtype", t, &out) || !dtype_eq(t, out))
        return pt_error(n, E_IMPORT, "its integers are %s", dtype_text(n->b.c, t));
    (void)pt_arg(n, "quant_min"), (void)pt_arg(n, "quant_max"); /* it is within them */
    if (!pt_type(n, "out_dtype", DT_F32, &out))
        return false;
    s = pt_has(n, "scales") ? scales_of(n, x, t) : scale_of(n, "scale", "zero_point", t);
    return s && pt_done(n, build_cast(&n->b, pt_dequantized(&n->b, x, s), out));
}

bool qd_choose(PtNode *n)
{
    const Build   *b = &n->b;
    bool           even = strstr(n->p->row->name, "symmetric") != NULL;
    const Expr    *x = pt_tensor(n, "input");
    double         lo = pt_float(n, "quant_min", -128), hi = pt_float(n, "quant_max", 127);
    double         eps = pt_float(n, "eps", 0x1p-23);
    const PtScale *s;
    int64_t        one = 1;
    DType          t;

    if (!x || !pt_type(n, "dtype", DT_I8, &t))
        return false;
    if (hi <= lo || pt_dtype_kind(t) != 1)
        return pt_error(n, E_IMPORT, "from %g to %g", lo, hi);
    s = chosen(b, x, lo, hi, even, eps, t);
    return s && pt_done_at(n, 0, build_reshape(b, build_cast(b, s->scale, DT_F64), 1, &one)) &&
           pt_done_at(n, 1, build_reshape(b, build_cast(b, s->zero, DT_I64), 1, &one));
}
