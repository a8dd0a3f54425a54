/* What converters ask of a node: arguments by name, operands as PyTorch promotes them. */
#include "frontends/pytorch/pytorch.h"

#include <math.h>
#include <string.h>

void *pt_error(const PtNode *n, DiagId id, const char *fmt, ...)
{
    StrBuf  s = strbuf(n->b.c->arena);
    va_list ap;

    str_printf(&s, "%s '%s': ", n->p->target, n->p->name);
    va_start(ap, fmt);
    str_vprintf(&s, fmt, ap);
    va_end(ap);
    return diag_error(n->b.c->diags, id, n->b.loc, "%s", s.at);
}

/* The first error of a node says it all. */
static bool failed(const PtNode *n)
{
    return diag_errors(n->b.c->diags) > n->errors;
}

static const PtArg *find(PtNode *n, const char *name)
{
    for (uint32_t i = 0; i < n->p->nin; i++)
        if (!strcmp(n->p->names[i], name)) {
            n->read[i] = true;
            return &n->p->in[i];
        }
    return NULL;
}

const PtArg *pt_arg(PtNode *n, const char *name)
{
    const PtArg *a = find(n, name);

    return a && a->kind != PT_NONE ? a : NULL;
}

bool pt_for_training(PtNode *n)
{
    pt_error(n, E_UNSUPPORTED, "it is for training");
    diag_hint(n->b.c->diags, "call model.eval() before the export");
    return false;
}

bool pt_has(PtNode *n, const char *name)
{
    return pt_arg(n, name) != NULL;
}

static void *missing(PtNode *n, const char *name, const char *what)
{
    if (!failed(n))
        pt_error(n, E_IMPORT, "argument '%s' should be %s", name, what);
    return NULL;
}

static const PtValue *value_of(PtNode *n, const PtArg *a)
{
    const PtValue *v = pt_value_of(n->im, a);

    if (v && (v->t || v->form || v->e))
        return v;
    if (!failed(n) && v)
        pt_error(n, E_UNSUPPORTED, "its argument '%s' is an output that is not supported", a->text);
    else if (!failed(n))
        pt_error(n, E_IMPORT, "its argument '%s' is not computed before it", a->text);
    return NULL;
}

/* ---- tensors ------------------------------------------------------------------------------------------ */

static bool scalar_of(PtNode *n, const PtArg *a, const char *name, PtOperand *out);

/* A number where a tensor belongs is one without dimensions. */
static const Expr *number_tensor(PtNode *n, const PtArg *a, const char *name)
{
    PtOperand v;

    return scalar_of(n, a, name, &v) ? pt_as(n, &v, pt_promoted(1, &v)) : NULL;
}

static const Expr *tensor_of(PtNode *n, const PtArg *a, const char *name)
{
    const PtValue *v;
    const Expr    *e;

    if (n->self && n->p->nin && a == &n->p->in[0])
        return pt_meant(n, n->self, n->self->e);
    if (a->kind == PT_INT || a->kind == PT_FLOAT || a->kind == PT_BOOL || a->kind == PT_SYMBOL)
        return number_tensor(n, a, name);
    if (a->kind != PT_TENSOR)
        return missing(n, name, "a tensor");
    if (!(v = value_of(n, a)))
        return NULL;
    if (!v->t)
        return missing(n, name, "a tensor");
    return (e = pt_read(n, v->t)) ? pt_meant(n, v->t, e) : NULL;
}

const Expr *pt_tensor(PtNode *n, const char *name)
{
    const PtArg *a = pt_arg(n, name);

    return a ? tensor_of(n, a, name) : missing(n, name, "a tensor");
}

bool pt_maybe(PtNode *n, const char *name, const Expr **out)
{
    const PtArg *a = pt_arg(n, name);

    *out = a ? tensor_of(n, a, name) : NULL;
    return !a || *out;
}

/* Those that are None are NULL. */
bool pt_tensors(PtNode *n, const char *name, uint32_t *count, const Expr ***out)
{
    const PtArg *a = pt_arg(n, name);

    *count = 0;
    *out = NEW_ARRAY(n->b.c->arena, const Expr *, a ? a->n + 1 : 1);
    if (!a || a->kind != PT_LIST)
        return missing(n, name, "a list of tensors");
    for (uint32_t i = 0; i < a->n; i++)
        if (a->at[i].kind != PT_NONE && !((*out)[i] = tensor_of(n, &a->at[i], name)))
            return false;
    *count = a->n;
    return true;
}

/* ---- numbers ------------------------------------------------------------------------------------------ */

static const Idx *form_of(PtNode *n, const PtArg *a, const char *name)
{
    const PtValue *v;
    int64_t        k;

    if (a->kind == PT_INT || a->kind == PT_BOOL)
        return idx_const(n->b.c->arith, a->i);
    if (a->kind == PT_SYMBOL && (v = value_of(n, a))) {
        if (v->form)
            return v->form;
        const Expr *fold = v->e ? build_fold(&n->b, v->e) : NULL;
        Ints        one;

        if (fold && expr_ints(n->b.c, fold, &one) && one.n == 1) {
            k = one.at[0];
            return idx_const(n->b.c->arith, k);
        }
        if (!failed(n))
            pt_error(n, E_UNSUPPORTED, "argument '%s' ('%s') hangs on values of the run", name,
                     a->text);
        return NULL;
    }
    if (a->kind == PT_TENSOR && (v = value_of(n, a)) && v->t) {
        const Expr *e = pt_real(n, v->t), *fold = e ? build_fold(&n->b, e) : NULL;
        Ints        one;

        if (fold && expr_ints(n->b.c, fold, &one) && one.n == 1)
            return idx_const(n->b.c->arith, one.at[0]);
    }
    return missing(n, name, "an integer");
}

const Idx *pt_form(PtNode *n, const char *name, const Idx *fallback)
{
    const PtArg *a = pt_arg(n, name);

    if (!a && !fallback)
        return missing(n, name, "an integer");
    return a ? form_of(n, a, name) : fallback;
}

static int64_t number_of(PtNode *n, const PtArg *a, const char *name, int64_t fallback)
{
    const Idx *x = form_of(n, a, name);
    int64_t    v = fallback;

    if (x && !idx_is_const(x, &v) && !failed(n)) {
        pt_error(n, E_DIM, "argument '%s' has to be a number, not %s", name, dim_text(n->b.c, x));
        diag_hint(n->b.c->diags, "give a value instead of bounds: --dim <name>=<number>");
    }
    return v;
}

int64_t pt_int(PtNode *n, const char *name, int64_t fallback)
{
    const PtArg *a = pt_arg(n, name);

    return a ? number_of(n, a, name, fallback) : fallback;
}

double pt_float(PtNode *n, const char *name, double fallback)
{
    const PtArg *a = pt_arg(n, name);

    if (!a)
        return fallback;
    if (a->kind == PT_FLOAT || a->kind == PT_INT || a->kind == PT_BOOL)
        return a->f;
    if (a->kind == PT_SYMBOL)
        return (double)number_of(n, a, name, 0);
    missing(n, name, "a number");
    return fallback;
}

bool pt_bool(PtNode *n, const char *name, bool fallback)
{
    const PtArg *a = pt_arg(n, name);

    if (a && a->kind != PT_BOOL && a->kind != PT_INT)
        missing(n, name, "a bool");
    return a ? a->i != 0 : fallback;
}

const char *pt_string(PtNode *n, const char *name, const char *fallback)
{
    const PtArg *a = pt_arg(n, name);

    if (a && a->kind != PT_STRING)
        missing(n, name, "a string");
    return a && a->kind == PT_STRING ? a->text : fallback;
}

bool pt_forms(PtNode *n, const char *name, Dims *out)
{
    const PtArg *a = pt_arg(n, name);
    const Idx  **at;

    if (!a || a->kind != PT_LIST)
        return missing(n, name, "a list of integers");
    at = NEW_ARRAY(n->b.c->arena, const Idx *, a->n + 1);
    for (uint32_t i = 0; i < a->n; i++)
        if (!(at[i] = form_of(n, &a->at[i], name)))
            return false;
    *out = (Dims){a->n, at};
    return true;
}

bool pt_ints(PtNode *n, const char *name, Ints *out)
{
    const PtArg *a = pt_arg(n, name);
    int64_t     *v;

    *out = (Ints){0};
    if (!a)
        return false;
    v = NEW_ARRAY(n->b.c->arena, int64_t, a->n + 1);
    if (a->kind == PT_LIST) {
        for (uint32_t i = 0; i < a->n; i++)
            v[i] = number_of(n, &a->at[i], name, 0);
        *out = (Ints){a->n, v};
    } else {
        v[0] = number_of(n, a, name, 0);
        *out = (Ints){1, v};
    }
    return !failed(n);
}

bool pt_numbers(PtNode *n, const char *name, uint32_t count, int64_t fallback, int64_t *out)
{
    Ints v;

    for (uint32_t i = 0; i < count; i++)
        out[i] = fallback;
    if (!pt_ints(n, name, &v) || v.n == 0)
        return !failed(n);
    if (v.n != 1 && v.n != count)
        return pt_error(n, E_IMPORT, "argument '%s' has %u numbers, not %u", name, v.n, count);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = v.at[v.n == 1 ? 0 : i];
        if (out[i] < INT32_MIN || out[i] > INT32_MAX)
            return pt_error(n, E_IMPORT, "argument '%s' is %lld", name, (long long)out[i]);
    }
    return true;
}

bool pt_type(PtNode *n, const char *name, DType fallback, DType *out)
{
    const PtArg *a = pt_arg(n, name);

    *out = fallback;
    if (!a)
        return true;
    if (a->kind != PT_DTYPE && a->kind != PT_INT)
        return missing(n, name, "an element type");
    return (n->im->script ? ts_scalar_type(a->i, out) : pt_dtype(a->i, out)) ||
           pt_error(n, E_UNSUPPORTED, "element type %lld is not supported", (long long)a->i);
}

bool pt_axis(PtNode *n, int64_t at, uint32_t rank, uint32_t *out)
{
    int64_t most = rank ? rank : 1; /* of a scalar 0 and -1 are allowed */

    if (at < -most || at >= most)
        return pt_error(n, E_IMPORT, "dimension %lld of %u", (long long)at, rank);
    *out = (uint32_t)(at < 0 ? at + most : at);
    return true;
}

bool pt_axes(PtNode *n, Ints v, uint32_t rank, int64_t *out)
{
    if (v.n > (rank ? rank : 1))
        return pt_error(n, E_IMPORT, "%u dimensions of %u", v.n, rank);
    for (uint32_t i = 0; i < v.n; i++) {
        uint32_t at;

        if (!pt_axis(n, v.at[i], rank, &at))
            return false;
        out[i] = at;
        for (uint32_t k = 0; k < i; k++)
            if (out[k] == at)
                return pt_error(n, E_IMPORT, "dimension %u is there twice", at);
    }
    return true;
}

/* ---- results ------------------------------------------------------------------------------------------ */

static PtValue tensor_value(const PtNode *n, const Expr *e)
{
    PtValue v = pt_tensor_value(n->b.c, e);

    v.t->scope = n->im->scope;
    return v;
}

bool pt_done_at(PtNode *n, uint32_t i, const Expr *e)
{
    if (!e || i >= n->nout) /* one that nobody asks for */
        return e != NULL;
    n->out[i] = tensor_value(n, e);
    return true;
}

bool pt_done(PtNode *n, const Expr *e)
{
    return pt_done_at(n, 0, e);
}

bool pt_done_list(PtNode *n, uint32_t count, const Expr *const *es)
{
    PtValue list = {.list = true, .n = count, .at = NEW_ARRAY(n->b.c->arena, PtValue, count + 1)};

    for (uint32_t i = 0; i < count; i++) {
        if (!es[i])
            return false;
        list.at[i] = tensor_value(n, es[i]);
    }
    n->out[0] = list;
    return true;
}

bool pt_done_form(PtNode *n, const Idx *form)
{
    if (form)
        n->out[0] = (PtValue){.form = form};
    return form != NULL;
}

/* ---- operands ----------------------------------------------------------------------------------------- */

int pt_dtype_kind(DType t)
{
    return dtype_is_bool(t) ? 0 : dtype_is_float(t) ? 2 : 1;
}

DType pt_join(DType a, DType b)
{
    int ka = pt_dtype_kind(a), kb = pt_dtype_kind(b);

    if (ka != kb)
        return ka > kb ? a : b;
    if (dtype_eq(a, b))
        return a;
    if (ka == 2)
        return a.bits == b.bits ? DT_F32 : a.bits > b.bits ? a : b;
    if ((a.code == DT_UINT) == (b.code == DT_UINT))
        return a.bits > b.bits ? a : b;
    if (a.code == DT_UINT) { /* b has a sign */
        DType t = a;

        a = b;
        b = t;
    }
    return a.bits > b.bits ? a : b.bits == 8 ? DT_I16 : b.bits == 16 ? DT_I32 : DT_I64;
}

static bool scalar_of(PtNode *n, const PtArg *a, const char *name, PtOperand *out)
{
    const PtValue *v;
    const Type    *t = type_tensor(n->b.c, DT_I64, 0, NULL);

    *out = (PtOperand){.scalar = true, .v = a->f, .i = a->i};
    out->kind = a->kind == PT_FLOAT ? 2 : a->kind == PT_BOOL ? 0 : 1;
    if (a->kind == PT_INT || a->kind == PT_FLOAT || a->kind == PT_BOOL)
        return true;
    if (a->kind != PT_SYMBOL)
        return missing(n, name, "a tensor or a number");
    if (!(v = value_of(n, a)))
        return false;
    if (v->form && idx_is_const(v->form, &out->i))
        out->v = (double)out->i;
    else if (v->form)
        out->e = build_values(&n->b, t, (Dims){1, &v->form});
    else
        out->e = v->e;
    if (out->e)
        out->kind = pt_dtype_kind(expr_dtype(out->e));
    return out->e || v->form || missing(n, name, "a tensor or a number");
}

bool pt_operand(PtNode *n, const char *name, PtOperand *out)
{
    const PtArg *a = pt_arg(n, name);

    *out = (PtOperand){0};
    if (!a)
        return missing(n, name, "a tensor or a number");
    if (a->kind != PT_TENSOR && !(n->self && a == &n->p->in[0]))
        return scalar_of(n, a, name, out);
    if (!(out->e = tensor_of(n, a, name)))
        return false;
    out->kind = pt_dtype_kind(expr_dtype(out->e));
    return true;
}

/* Tensors with dimensions, those without, and scalars: each later class counts only where its kind
 * is a higher one. */
DType pt_promoted(uint32_t count, const PtOperand *v)
{
    static const DType of_kind[] = {DT_BOOL, DT_I64, DT_F32};
    DType              best = DT_BOOL;
    int                kind = -1;

    for (int pass = 0; pass < 3; pass++) {
        DType join = DT_BOOL;
        bool  any = false;

        for (uint32_t i = 0; i < count; i++) {
            int class = v[i].scalar ? 2 : expr_rank(v[i].e) == 0 ? 1 : 0;
            DType t = v[i].scalar ? of_kind[v[i].kind] : expr_dtype(v[i].e);

            if (class != pass)
                continue;
            join = any ? pt_join(join, t) : t;
            any = true;
        }
        if (any && pt_dtype_kind(join) > kind) {
            best = join;
            kind = pt_dtype_kind(join);
        }
    }
    return best;
}

const Expr *pt_as(PtNode *n, const PtOperand *v, DType t)
{
    if (v->e)
        return build_cast(&n->b, v->e, t);
    if (pt_dtype_kind(t) == 1) {
        uint8_t cell[16] = {0};

        dtype_put_i(t, cell, v->kind == 2 ? (int64_t)v->v : v->i);
        return build_const(&n->b, t, 0, NULL, cell);
    }
    return expr_scalar(n->b.c, t, v->v);
}
