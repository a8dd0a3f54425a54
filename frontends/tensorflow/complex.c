/* Complex numbers, of which there are real and imaginary parts (TF_COMPLEX), and the transforms
 * that make them (frontends/fourier.c). */
#include "frontends/tensorflow/tensorflow.h"

#include <string.h>

static bool done(TfNode *n, const Expr *re, const Expr *im)
{
    n->out[0] = (TfValue){.kind = TF_COMPLEX, .e = re, .im = im};
    return re && im;
}

static BuildComplex number(const TfNode *n, uint32_t i)
{
    return (BuildComplex){n->given[i].e, n->given[i].im};
}

/* What is computed of numbers as a whole; NULL: their parts are two tensors to it. */
static BuildComplexBinary *whole(const TfNode *n)
{
    const char *op = n->row->relay ? n->row->relay : "";

    return !strcmp(op, "multiply") ? build_complex_product
           : !strcmp(op, "divide") ? build_complex_quotient
                                   : NULL;
}

static bool of_two(TfNode *n, BuildComplexBinary *fn)
{
    BuildComplex y;

    if (n->nin != 2 || n->given[0].kind != TF_COMPLEX || n->given[1].kind != TF_COMPLEX)
        return tf_error(n, E_IMPORT, "one of its inputs is not complex");
    return fn(&n->b, number(n, 0), number(n, 1), &y) && done(n, y.re, y.im);
}

/* e^a (cos b + i sin b) */
static bool exponential(TfNode *n)
{
    BuildComplex x = number(n, 0), y;

    return build_polar(&n->b, build1(&n->b, "exp", x.re, NULL), x.im, &y) && done(n, y.re, y.im);
}

/* ---- part by part ------------------------------------------------------------------------------- */

static bool goes_by_parts(const TfNode *n)
{
    static TfConvert *const all[] = {
        tf_reshape,   tf_squeeze,   tf_expand_dims, tf_transpose, tf_concat,       tf_concat_v2,
        tf_pack,      tf_unpack,    tf_split,       tf_split_v,   tf_slice,        tf_strided_slice,
        tf_pad,       tf_tile,      tf_reverse,     tf_roll,      tf_broadcast_to, tf_gather,
        tf_gather_v2, tf_gather_nd, tf_add_n};

    for (uint32_t i = 0; i < COUNT(all); i++)
        if (n->row->convert == all[i])
            return true;
    return n->row->relay && (!strcmp(n->row->relay, "add") || !strcmp(n->row->relay, "subtract") ||
                             !strcmp(n->row->relay, "negative"));
}

bool tf_has_complex(const TfNode *n)
{
    for (uint32_t i = 0; i < n->nin; i++)
        if (n->given[i].kind == TF_COMPLEX)
            return n->row->how != TF_VALUES && n->row->how != TF_FLOW;
    return false;
}

bool tf_parts(TfNode *n, TfConvert *convert)
{
    const TfValue *given = n->given;
    TfValue       *part = NEW_ARRAY(n->b.c->arena, TfValue, n->nin + 1);
    const Expr   **re = NEW_ARRAY(n->b.c->arena, const Expr *, n->nout + 1);

    if (whole(n))
        return of_two(n, whole(n));
    if (n->row->relay && !strcmp(n->row->relay, "exp"))
        return exponential(n);
    if (!goes_by_parts(n))
        return tf_error(n, E_UNSUPPORTED, "complex numbers");
    for (uint32_t i = 0; i < n->nin; i++)
        if (given[i].kind == TF_TENSOR && dtype_is_float(expr_dtype(given[i].e)))
            return tf_error(n, E_IMPORT, "input %u is not complex, another one is", i);
    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < n->nin; i++) {
            part[i] = given[i];
            if (part[i].kind == TF_COMPLEX)
                part[i] = tf_tensor_value(k ? given[i].im : given[i].e);
        }
        n->given = part;
        n->moved = false;
        if (!convert(n))
            return false;
        for (uint32_t i = 0; i < n->nout && k == 0; i++)
            re[i] = n->out[i].e;
    }
    for (uint32_t i = 0; i < n->nout; i++)
        n->out[i] = (TfValue){.kind = TF_COMPLEX, .e = re[i], .im = n->out[i].e};
    n->given = given;
    return true;
}

/* ---- parts -------------------------------------------------------------------------------------- */

static bool is_complex(TfNode *n)
{
    return (n->nin > 0 && n->given[0].kind == TF_COMPLEX) ||
           tf_error(n, E_UNSUPPORTED, "its input is no complex number");
}

/* Pairs of floats in the file: a constant [.., 2], or one pair for all. */
bool tf_complex_const(TfNode *n, const TfTensor *t)
{
    const Build *b = &n->b;
    TfTensor     pairs = *t;
    TfShape      shape = {0};
    TfDim        two = {.size = 2};
    int64_t      dims[MAX_RANK], cells = 1;
    uint32_t     rank = t->shape ? t->shape->dim.n : 0;
    const Expr  *both, *part[2];
    bool         one;

    if (rank >= MAX_RANK)
        return tf_error(n, E_UNSUPPORTED, "a constant of %u dimensions", rank);
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = ((const TfDim *)t->shape->dim.at[i])->size;
        if (dims[i] < 0 || !checked_mul(cells, dims[i], &cells))
            return tf_error(n, E_IMPORT, "dimension %u is %lld", i, (long long)dims[i]);
    }
    one = t->content.n == 0 && t->scomplex_val.data.n == 8 && cells > 1;
    if (t->shape)
        shape = *t->shape;
    shape.dim.at = NEW_ARRAY(b->c->arena, void *, rank + 1);
    shape.dim.n = 0;
    for (uint32_t i = 0; i < rank && !one; i++)
        shape.dim.at[shape.dim.n++] = t->shape->dim.at[i];
    shape.dim.at[shape.dim.n++] = &two;
    pairs.dtype = TF_FLOAT;
    pairs.shape = &shape;
    pairs.float_val = t->scomplex_val;
    if (!(both = tf_constant(n->im, &pairs, n->op->name, b->loc)))
        return false;
    for (int64_t i = 0; i < 2; i++) {
        part[i] = build_slice(b, both, expr_rank(both) - 1, i, i + 1);
        part[i] = one ? build_broadcast(b, build_reshape(b, part[i], 0, NULL), rank, dims)
                      : build_reshape(b, part[i], rank, dims);
    }
    return done(n, part[0], part[1]);
}

bool tf_complex(TfNode *n)
{
    return done(n, n->in[0], n->in[1]);
}

bool tf_real(TfNode *n)
{
    return is_complex(n) && tf_put(n, 0, n->given[0].e);
}

bool tf_imag(TfNode *n)
{
    return is_complex(n) && tf_put(n, 0, n->given[0].im);
}

bool tf_conj(TfNode *n)
{
    return is_complex(n) && done(n, n->given[0].e, build1(&n->b, "negative", n->given[0].im, NULL));
}

bool tf_complex_abs(TfNode *n)
{
    return is_complex(n) && tf_put(n, 0, build_complex_abs(&n->b, number(n, 0)));
}

bool tf_angle(TfNode *n)
{
    return is_complex(n) && tf_put(n, 0, build_complex_angle(&n->b, number(n, 0)));
}

/* RFFT, IRFFT, FFT, IFFT: along the last dimension; RFFT2D, .. FFT3D: along as many. */
bool tf_fourier(TfNode *n)
{
    const char  *op = n->row->name;
    bool         real = op[0] == 'R', half = str_starts(op, "IRFFT");
    uint32_t     dims = str_ends(op, "2D") ? 2 : str_ends(op, "3D") ? 3 : 1, rank;
    BuildFourier f[3] = {0};
    BuildComplex x = number(n, 0);
    Ints         length = {0};

    if (real ? !tf_is_tensor(n, &n->given[0], "its input") : !is_complex(n))
        return false;
    rank = expr_rank(x.re);
    if (rank < dims)
        return tf_error(n, E_IMPORT, "a transform of %u dimensions of %s", dims,
                        type_text(n->b.c, x.re->type));
    if (!dtype_eq(expr_dtype(x.re), DT_F32))
        return tf_error(n, E_UNSUPPORTED, "a transform of %s", type_text(n->b.c, x.re->type));
    if ((real || half) && !tf_ints(n, 1, &length))
        return false;
    if ((real || half) && length.n != dims)
        return tf_error(n, E_IMPORT, "%u lengths", length.n);
    for (uint32_t i = 0; i < dims; i++) {
        f[i].inverse = op[0] == 'I';
        f[i].length = real || half ? length.at[i] : build_dim(&n->b, x.re, rank - dims + i);
        f[i].bins = f[i].length;
    }
    f[dims - 1].half = half;
    if (real)
        f[dims - 1].bins = f[dims - 1].length / 2 + 1;
    if (real)
        x.im = NULL;
    if (!build_fouriers(&n->b, dims, f, &x))
        return false;
    return half ? tf_put(n, 0, x.re) : done(n, x.re, x.im);
}
