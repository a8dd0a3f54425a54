/* What converters ask of an operator: its arguments, its operands, how images lie. */
#include "frontends/caffe2/caffe2.h"

#include <string.h>

/* ---- arguments -------------------------------------------------------------------------------------- */

const C2Arg *c2_arg_of(const C2OpDef *op, const char *name)
{
    for (uint32_t i = 0; i < op->arg.n; i++) {
        const C2Arg *a = op->arg.at[i];

        if (a->name && !strcmp(a->name, name))
            return a;
    }
    return NULL;
}

bool c2_has(const C2Node *n, const char *name)
{
    return c2_arg_of(n->op, name) != NULL;
}

/* The argument, if it is of the kind that is read, with an error if it is of another; NULL: there
 * is none. */
static const C2Arg *typed(const C2Node *n, const char *name, bool (*is)(const C2Arg *),
                          const char *kind)
{
    const C2Arg *a = c2_arg_of(n->op, name);

    if (!a || is(a))
        return a;
    return c2_error(n, E_IMPORT, "argument '%s' is not %s", name, kind);
}

static bool is_int(const C2Arg *a)
{
    return a->has_i;
}

static bool is_number(const C2Arg *a)
{
    return a->has_f || a->has_i;
}

static bool is_text(const C2Arg *a)
{
    return a->has_s;
}

/* One without numbers has nothing at all. */
static bool is_ints(const C2Arg *a)
{
    return a->ints.n || !(a->has_i || a->has_f || a->has_s || a->floats.data.n || a->strings.n);
}

int64_t c2_int(const C2Node *n, const char *name, int64_t fallback)
{
    const C2Arg *a = typed(n, name, is_int, "a whole number");

    return a ? a->i : fallback;
}

double c2_float(const C2Node *n, const char *name, double fallback)
{
    const C2Arg *a = typed(n, name, is_number, "a number");

    return a ? a->has_f ? (double)a->f : (double)a->i : fallback;
}

const char *c2_text(const C2Node *n, const char *name, const char *fallback)
{
    const C2Arg *a = typed(n, name, is_text, "text");

    return a ? intern_n(n->b.c->strings, (const char *)a->s.at, a->s.n) : fallback;
}

Ints c2_ints(const C2Node *n, const char *name)
{
    const C2Arg *a = typed(n, name, is_ints, "a list of whole numbers");

    return a ? (Ints){a->ints.n, a->ints.at} : (Ints){0};
}

bool c2_sizes(const C2Node *n, const char *one, const char *all, uint32_t count,
              const char *const *each, int64_t least, int64_t fallback, int64_t *out)
{
    Ints v = c2_ints(n, all);

    if (v.n && v.n != count)
        return c2_error(n, E_IMPORT, "'%s' has %u numbers, not %u", all, v.n, count);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = v.n                          ? v.at[i]
                 : each && c2_has(n, each[i]) ? c2_int(n, each[i], fallback)
                                              : c2_int(n, one, fallback);
        if (out[i] < least || out[i] > INT32_MAX)
            return c2_error(n, E_IMPORT, "'%s' is %lld", v.n ? all : one, (long long)out[i]);
    }
    return true;
}

/* ---- operands and results --------------------------------------------------------------------------- */

bool c2_rank(const C2Node *n, uint32_t i, uint32_t least, uint32_t most)
{
    uint32_t rank = expr_rank(n->in[i]);

    return (rank >= least && rank <= most) ||
           c2_error(n, E_IMPORT, "operand %u has %u dimensions", i, rank);
}

bool c2_axis(const C2Node *n, int64_t axis, uint32_t rank, uint32_t *out)
{
    return build_axis(&n->b, axis, rank, 0, out);
}

bool c2_put(C2Node *n, uint32_t i, const Expr *y)
{
    if (i < n->nout)
        n->out[i] = y;
    return y != NULL;
}

bool c2_done(C2Node *n, const Expr *y)
{
    return c2_put(n, 0, y);
}

/* ---- images ----------------------------------------------------------------------------------------- */

bool c2_channels_last(const C2Node *n, bool *ok)
{
    const char *order = c2_text(n, "order", n->order);
    bool        last = !strcmp(order, "NHWC");

    *ok = last || !strcmp(order, "NCHW") || c2_error(n, E_UNSUPPORTED, "order is '%s'", order);
    return last;
}

const Expr *c2_image(C2Node *n, uint32_t i, uint32_t least, uint32_t most)
{
    bool ok, last = c2_channels_last(n, &ok);

    if (!ok || !c2_rank(n, i, least, most))
        return NULL;
    return last && expr_rank(n->in[i]) > 2 ? build_channels_first(&n->b, n->in[i]) : n->in[i];
}

bool c2_image_done(C2Node *n, const Expr *y)
{
    bool ok, last = c2_channels_last(n, &ok);

    return ok && y && c2_done(n, last && expr_rank(y) > 2 ? build_channels_last(&n->b, y) : y);
}

bool c2_window(const C2Node *n, uint32_t dims, BuildWindow *w)
{
    static const char *const        kernel[] = {"kernel_h", "kernel_w"},
                             *const stride[] = {"stride_h", "stride_w"},
                             *const dilation[] = {"dilation_h", "dilation_w"},
                             *const pad[] = {"pad_t", "pad_l", "pad_b", "pad_r"};
    bool                            two = dims == 2;
    int64_t                         pads[6];

    if (!c2_sizes(n, "kernel", "kernels", dims, two ? kernel : NULL, 1, 0, w->kernel) ||
        !c2_sizes(n, "stride", "strides", dims, two ? stride : NULL, 1, 1, w->stride) ||
        !c2_sizes(n, "dilation", "dilations", dims, two ? dilation : NULL, 1, 1, w->dilation) ||
        !c2_sizes(n, "pad", "pads", 2 * dims, two ? pad : NULL, 0, 0, pads))
        return false;
    for (uint32_t i = 0; i < dims; i++) {
        w->begin[i] = pads[i];
        w->end[i] = pads[dims + i];
    }
    return true;
}
