/* What converters ask of an operator: its options, its values, and how images lie. */
#include "frontends/tflite/tflite.h"

#include <string.h>

const TfliteTensor *tflite_in(const TfliteNode *n, uint32_t i)
{
    return tflite_tensor(n->scope->g, tflite_in_index(n->p, i));
}

const TfliteTensor *tflite_out(const TfliteNode *n, uint32_t i)
{
    static const TfliteTensor none = {.name = ""}; /* of an operator without outputs */

    if (i >= n->nout)
        return &none;
    return tflite_tensor(n->scope->g, tflite_out_index(n->p, i));
}

bool tflite_has(const TfliteNode *n, uint32_t i)
{
    return i < n->nin && n->in[i];
}

/* ---- options -------------------------------------------------------------------------------------- */

/* The field and the table that it is in, which is absent where the options are those of another
 * operator: survey.c said so. */
static TfliteField field_of(const TfliteNode *n, const char *name, const FbTable **t)
{
    static const FbTable absent = {0};
    TfliteField          f;
    int64_t              type;

    if (!n->row->options || !tflite_field(n->row->options, name, &f))
        BUG("%s has no option '%s'", n->row->name, name);
    *t = tflite_options_of(n->p, n->row->options->set, &type);
    if (type != n->row->options->type)
        *t = &absent;
    return f;
}

int64_t tflite_int(const TfliteNode *n, const char *name)
{
    const FbTable *t;
    TfliteField    f = field_of(n, name, &t);
    int64_t        v;

    fb_int(t, f.slot, f.kind, (int64_t)f.fallback, &v);
    return v;
}

double tflite_float(const TfliteNode *n, const char *name)
{
    const FbTable *t;
    TfliteField    f = field_of(n, name, &t);
    double         v;

    fb_float(t, f.slot, f.fallback, &v);
    return v;
}

Ints tflite_int_list(const TfliteNode *n, const char *name)
{
    const FbTable *t;
    TfliteField    f = field_of(n, name, &t);
    FbVector       v;
    int64_t       *at;

    fb_vector(t, f.slot, f.kind, &v);
    at = NEW_ARRAY(n->b.c->arena, int64_t, v.n + 1);
    for (uint32_t i = 0; i < v.n; i++)
        at[i] = fb_int_at(v, f.kind, i);
    return (Ints){v.n, at};
}

const char *tflite_text(const TfliteNode *n, const char *name)
{
    const FbTable *t;
    TfliteField    f = field_of(n, name, &t);
    FbVector       v;

    fb_vector(t, f.slot, FB_U8, &v);
    return v.n ? intern_n(n->b.c->strings, (const char *)v.at, v.n) : "";
}

const float *tflite_float_list(const TfliteNode *n, const char *name, int64_t *count)
{
    const FbTable *t;
    TfliteField    f = field_of(n, name, &t);
    FbVector       v;
    float         *at;

    fb_vector(t, f.slot, f.kind, &v);
    at = NEW_ARRAY(n->b.c->arena, float, v.n + 1);
    for (uint32_t i = 0; i < v.n; i++)
        at[i] = (float)fb_float_at(v, i);
    *count = v.n;
    return at;
}

/* ---- axes, values ------------------------------------------------------------------------------- */

/* Where an axis lies now. */
static int64_t lies(const TfliteNode *n, int64_t axis, uint32_t rank)
{
    return moved_axis(axis, rank, n->moved ? IMAGE_RANK : 0);
}

bool tflite_axis(const TfliteNode *n, int64_t axis, uint32_t rank, uint32_t *out)
{
    return build_axis(&n->b, axis, rank, n->moved ? IMAGE_RANK : 0, out);
}

const Expr *tflite_folded(const TfliteNode *n, uint32_t i, const Expr *e)
{
    const Expr *k = !e || e->kind == EXPR_CONST ? NULL : build_fold(&n->b, e);

    return k ? expr_const(n->b.c,
                          const_new(n->b.c, tflite_in(n, i)->name, k->type, k->u.constant->data),
                          n->b.loc)
             : e;
}

static const Expr *cells_moved(const TfliteNode *n, uint32_t i)
{
    const Expr *x = build_cells_moved(&n->b, n->in[i]);

    return n->in[i]->kind == EXPR_CONST && x != n->in[i] ? tflite_folded(n, i, x) : x;
}

/* In floats, if the tensor is quantized. */
static const Expr *in_floats(TfliteNode *n, uint32_t i, const Expr *x)
{
    const TfliteTensor *t = tflite_in(n, i);

    if (!x || !tflite_is_quantized(t) || !dtype_is_int(expr_dtype(x)))
        return x;
    return tflite_dequantize(&n->b, t, x, lies(n, t->quant->axis, expr_rank(x)));
}

const Expr *tflite_value(TfliteNode *n, uint32_t i)
{
    return in_floats(n, i, n->in[i]);
}

const Expr *tflite_integer_image(TfliteNode *n, uint32_t i)
{
    if (!tflite_rank(n, i, IMAGE_RANK, IMAGE_RANK))
        return NULL;
    n->moved = true;
    return build_channels_first(&n->b, n->in[i]);
}

const Expr *tflite_image(TfliteNode *n, uint32_t i)
{
    const Expr *x = tflite_integer_image(n, i);

    return x ? in_floats(n, i, x) : NULL;
}

/* All that are quantized are so alike, and integers can stand for them. */
static bool all_alike(const TfliteNode *n)
{
    const TfliteTensor *first = NULL;

    for (uint32_t i = 0; i < n->nin + n->nout; i++) {
        const TfliteTensor *t;

        if (i < n->nin && !n->in[i])
            continue;
        t = i < n->nin ? tflite_in(n, i) : tflite_out(n, i - n->nin);
        if (!tflite_is_quantized(t))
            continue;
        if (first && !tflite_same_quantization(first, t))
            return false;
        first = first ? first : t;
    }
    return true;
}

/* With one scale for all, in 8 or 16 bits, or in 32, too. */
static bool has_steps(const TfliteTensor *t, bool wide)
{
    DType d;

    return tflite_scales(t) == 1 && tflite_scale(t, 0) > 0 && tflite_dtype(t->type, &d) &&
           dtype_is_int(d) && d.bits <= (wide ? 32 : 16);
}

/* All that have a scale, the result too unless it is of bools, are quantized integers of one type;
 * mixed: of any.  Axes and the like, behind the first input, have none. */
static bool all_steps(const TfliteNode *n, bool mixed, bool axes)
{
    int64_t type = tflite_in(n, 0)->type;

    for (uint32_t i = 0; i < n->nin; i++) {
        const TfliteTensor *t = n->in[i] ? tflite_in(n, i) : NULL;

        if (!t || ((!i || !axes || tflite_scales(t)) && (!has_steps(t, mixed) || t->type != type)))
            return false;
    }
    for (uint32_t i = 0; i < n->nout; i++) {
        const TfliteTensor *t = tflite_out(n, i);

        if (t->type != TFLITE_BOOL && (!has_steps(t, mixed) || (!mixed && t->type != type)))
            return false;
    }
    return n->nout > 0;
}

bool tflite_steps_alike(const TfliteNode *n)
{
    return tflite_is_quantized(tflite_in(n, 0)) && all_alike(n);
}

bool tflite_prepare(TfliteNode *n)
{
    TfliteHow how = n->row->how;
    bool      steps = false;

    switch (how) {
    case TFLITE_STEPS:
    case TFLITE_STEP_AXES:
        steps = all_steps(n, false, how == TFLITE_STEP_AXES);
        how = how == TFLITE_STEPS ? TFLITE_CELLS : TFLITE_AXES;
        break;
    case TFLITE_SCALED:
    case TFLITE_SCALED_AXES:
        steps = all_steps(n, true, how == TFLITE_SCALED_AXES);
        how = how == TFLITE_SCALED ? TFLITE_CELLS : TFLITE_AXES;
        break;
    case TFLITE_ALIKE:
        steps = all_alike(n);
        how = TFLITE_CELLS;
        break;
    default: break;
    }
    n->raw = steps || how == TFLITE_AS_IS || how == TFLITE_PAIRS || how == TFLITE_STRINGS ||
             how == TFLITE_IMAGE ||
             ((how == TFLITE_MOVES || how == TFLITE_RESHAPE) && all_alike(n));
    if (how == TFLITE_CELLS || how == TFLITE_AXES || how == TFLITE_MOVES)
        for (uint32_t i = 0; i < n->nin; i++)
            n->moved |= n->in[i] && expr_rank(n->in[i]) == IMAGE_RANK && build_is_moved(n->in[i]);
    for (uint32_t i = 0; i < n->nin; i++) {
        const Expr *x = n->in[i];

        if (!x)
            continue;
        if (n->moved && how == TFLITE_CELLS && expr_rank(x) > IMAGE_RANK)
            return tflite_error(n, E_IMPORT, "input %u has %u dimensions", i, expr_rank(x));
        if (n->moved && how == TFLITE_CELLS)
            x = cells_moved(n, i);
        else if (n->moved && expr_rank(x) == IMAGE_RANK)
            x = tflite_folded(n, i, build_channels_first(&n->b, x));
        if (!(n->in[i] = n->raw ? x : in_floats(n, i, x)))
            return false;
    }
    return true;
}

bool tflite_done(TfliteNode *n, const Expr *y)
{
    n->out[0] = y;
    return y != NULL;
}

bool tflite_image_done(TfliteNode *n, const Expr *y)
{
    return tflite_done(n, tflite_activate(n, y));
}

bool tflite_finish(TfliteNode *n)
{
    for (uint32_t i = 0; i < n->nout; i++) {
        const TfliteTensor *t = tflite_out(n, i);
        const Expr         *y = n->out[i];
        DType               want;

        if (!y)
            return tflite_error(n, E_UNSUPPORTED, "its output %u ('%s') is not supported", i,
                                t->name);
        if (!expr_has_shape(y) || t->type == TFLITE_RESOURCE)
            continue;
        if (tflite_is_quantized(t) && dtype_is_float(expr_dtype(y)))
            y = tflite_quantize(&n->b, t, y, lies(n, t->quant->axis, expr_rank(y)));
        if (y && n->moved && expr_rank(y) == IMAGE_RANK)
            y = build_channels_last(&n->b, y);
        if (!y)
            return false;
        if (t->type == TFLITE_COMPLEX64)
            want = DT_F32; /* a part of it */
        else if (tflite_is_string(t))
            want = DT_U8;
        else if (!tflite_dtype(t->type, &want))
            want = DT_HANDLE;
        if (!dtype_eq(want, expr_dtype(y)))
            return tflite_error(n, E_IMPORT,
                                "its output '%s' is %s, which the model declares as %s", t->name,
                                type_text(n->b.c, y->type), tflite_dtype_name(t->type));
        n->out[i] = y;
    }
    return true;
}

const Expr *tflite_activated(const TfliteNode *n, int64_t how, const Expr *y)
{
    switch (y ? how : 0) {
    case 0: return y;
    case 1: return build1(&n->b, "nn.relu", y, NULL);
    case 2: return build_clip(&n->b, y, -1, 1);
    case 3: return build_clip(&n->b, y, 0, 6);
    case 4: return build1(&n->b, "tanh", y, NULL);
    default:
        return tflite_error(n, E_UNSUPPORTED, "fused activation function %lld", (long long)how);
    }
}

const Expr *tflite_activate(TfliteNode *n, const Expr *y)
{
    return tflite_activated(n, tflite_int(n, "fused_activation_function"), y);
}

/* ---- what has to be known ------------------------------------------------------------------------- */

bool tflite_rank(const TfliteNode *n, uint32_t i, uint32_t least, uint32_t most)
{
    uint32_t rank = expr_rank(n->in[i]);

    return (rank >= least && rank <= most) ||
           tflite_error(n, E_IMPORT, "input %u has %u dimensions", i, rank);
}

bool tflite_ints(const TfliteNode *n, uint32_t i, Ints *out)
{
    if (!dtype_is_int(expr_dtype(n->in[i])) || !expr_ints(n->b.c, n->in[i], out))
        return tflite_error(n, E_UNSUPPORTED, "input %u ('%s') has to be known when it is compiled",
                            i, tflite_in(n, i)->name);
    return true;
}

bool tflite_number(const TfliteNode *n, uint32_t i, int64_t *out)
{
    Ints v;

    if (!tflite_ints(n, i, &v))
        return false;
    if (v.n != 1)
        return tflite_error(n, E_IMPORT, "input %u has %u numbers, not 1", i, v.n);
    *out = v.at[0];
    return true;
}

bool tflite_forms(const TfliteNode *n, uint32_t i, Dims *out)
{
    if (!dtype_is_int(expr_dtype(n->in[i])) || !build_forms(&n->b, n->in[i], out))
        return tflite_error(n, E_UNSUPPORTED, "input %u ('%s') has to be known when it is compiled",
                            i, tflite_in(n, i)->name);
    return true;
}
