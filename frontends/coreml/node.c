/* What converters ask of a layer or operator: its operands, its settings, how its values lie. */
#include "frontends/coreml/coreml.h"

#include <string.h>

/* ---- operands ------------------------------------------------------------------------------------- */

CmlArg *cml_arg(CmlNode *n, const char *name)
{
    for (uint32_t i = 0; i < n->nargs; i++)
        if (!strcmp(n->args[i].name, name)) {
            n->args[i].read = true;
            return n->args[i].n ? &n->args[i] : NULL;
        }
    return NULL;
}

bool cml_has(CmlNode *n, const char *name)
{
    CmlField f;

    if (n->layer && cml_field(n->layer->message.record, name, &f))
        return cml_read_has(&n->layer->message, name);
    return cml_arg(n, name) != NULL;
}

const Expr *cml_plain(const Build *b, CmlValue v)
{
    Arith     *A = b->c->arith;
    const Idx *dims[5], *seq;

    if (!v.e || v.seq == 0)
        return v.e;
    seq = idx_const(A, v.seq);
    dims[0] = seq;
    dims[1] = idx_div_exact(A, expr_form(v.e, 0), seq);
    if (!dims[1])
        return build_error(b, E_IMPORT, "%s is no whole number of sequences",
                           type_text(b->c, v.e->type));
    for (uint32_t i = 1; i < 4; i++)
        dims[1 + i] = expr_form(v.e, i);
    return build_reshape_to(b, v.e, 5, dims);
}

/* A value as the row takes it. */
static const Expr *taken(CmlNode *n, const char *name, CmlValue v)
{
    if (!v.e)
        return cml_error(n, E_IMPORT, "its input '%s' is no tensor", name);
    return n->row->how == CML_CELLS && n->seq ? v.e : cml_plain(&n->b, v);
}

const Expr *cml_x(CmlNode *n, const char *name)
{
    CmlArg *a = cml_arg(n, name);

    if (!a || a->n != 1)
        return cml_error(n, E_IMPORT, a ? "its input '%s' is several" : "its input '%s' is missing",
                         name);
    return taken(n, name, a->at[0]);
}

bool cml_maybe(CmlNode *n, const char *name, const Expr **out)
{
    *out = NULL;
    return !cml_arg(n, name) || (*out = cml_x(n, name));
}

uint32_t cml_all(CmlNode *n, const char *name, const Expr ***out)
{
    CmlArg *a = cml_arg(n, name);

    if (!a) {
        cml_error(n, E_IMPORT, "its input '%s' is missing", name);
        return 0;
    }
    *out = NEW_ARRAY(n->b.c->arena, const Expr *, a->n + 1);
    for (uint32_t i = 0; i < a->n; i++)
        if (!((*out)[i] = taken(n, name, a->at[i])))
            return 0;
    return a->n;
}

/* [S, B, C, ..] as [S * B, C, ..] and back. */
static const Expr *merged(const Build *b, const Expr *x)
{
    const Idx *dims[MAX_RANK];
    Dims       d = expr_forms(x);

    dims[0] = idx_mul(b->c->arith, d.at[0], d.at[1]);
    for (uint32_t i = 2; i < d.n; i++)
        dims[i - 1] = d.at[i];
    return build_reshape_to(b, x, d.n - 1, dims);
}

const Expr *cml_image(CmlNode *n, const char *name, uint32_t spatial)
{
    const Build *b = &n->b;
    CmlArg      *a = cml_arg(n, name);
    const Expr  *x;
    uint32_t     rank;

    if (!a || a->n != 1 || !a->at[0].e)
        return cml_error(n, E_IMPORT, "its input '%s' is missing", name);
    n->image = spatial + 2;
    if (a->at[0].seq && spatial == 2) {
        n->lead = a->at[0].seq;
        return a->at[0].e;
    }
    if (!(x = cml_plain(b, a->at[0])))
        return NULL;
    n->image = rank = expr_rank(x);
    if (rank == spatial + 2)
        return x;
    if (rank == spatial + 1)
        return build_expand_dims(b, x, 0, 1);
    if (rank != 5 || spatial != 2)
        return cml_error(n, E_IMPORT, "its input '%s' is %s", name, type_text(b->c, x->type));
    n->lead = build_dim(b, x, 0);
    return merged(b, x);
}

/* ---- settings ------------------------------------------------------------------------------------- */

/* The field of a layer's message that has the setting; false: it is none of a layer's. */
static bool has_field(const CmlNode *n, const char *name, CmlField *f)
{
    return n->layer && cml_field(n->layer->message.record, name, f);
}

/* A constant that a setting is; NULL: it is not given, or, with an error, not known. */
static const Expr *constant_of(CmlNode *n, const char *name)
{
    CmlArg     *a = cml_arg(n, name);
    const Expr *k;

    if (!a)
        return NULL;
    k = a->n == 1 ? a->at[0].e : NULL;
    if (k && k->kind != EXPR_CONST)
        k = build_fold(&n->b, k);
    if (!k)
        cml_error(n, E_UNSUPPORTED, "its input '%s' has to be known when it is compiled", name);
    return k;
}

int64_t cml_int(CmlNode *n, const char *name, int64_t fallback)
{
    const Expr *k;
    CmlField    f;
    Ints        v;

    if (has_field(n, name, &f))
        return cml_read_int(&n->layer->message, name);
    if (!(k = constant_of(n, name)))
        return fallback;
    if (!expr_ints(n->b.c, k, &v) || v.n != 1) {
        cml_error(n, E_IMPORT, "its input '%s' is %s, no whole number", name,
                  type_text(n->b.c, k->type));
        return fallback;
    }
    return v.at[0];
}

double cml_float(CmlNode *n, const char *name, double fallback)
{
    const Expr *k;
    CmlField    f;
    double      v;

    if (has_field(n, name, &f))
        return cml_read_float(&n->layer->message, name);
    if (!(k = constant_of(n, name)))
        return fallback;
    if (!expr_single(k) || !expr_const_f(k, &v)) {
        cml_error(n, E_IMPORT, "its input '%s' is %s, no number", name, type_text(n->b.c, k->type));
        return fallback;
    }
    return v;
}

bool cml_bool(CmlNode *n, const char *name, bool fallback)
{
    const Expr *k;
    CmlField    f;
    double      v;

    if (has_field(n, name, &f))
        return cml_read_int(&n->layer->message, name);
    if (!(k = constant_of(n, name)))
        return fallback;
    if (!expr_single(k) || !dtype_is_bool(expr_dtype(k)) || !expr_const_f(k, &v)) {
        cml_error(n, E_IMPORT, "its input '%s' is %s, no bool", name, type_text(n->b.c, k->type));
        return fallback;
    }
    return v != 0;
}

const char *cml_text(CmlNode *n, const char *name, const char *fallback)
{
    CmlArg     *a = cml_arg(n, name);
    const char *text = a && a->n == 1 ? cml_literal_text(a->at[0].literal) : NULL;
    CmlField    f;

    if (has_field(n, name, &f))
        return cml_read_text(&n->layer->message, name);
    if (a && !text)
        cml_error(n, E_IMPORT, "its input '%s' is no text", name);
    return text ? text : fallback;
}

/* The numbers of an input that is several values, as one constant. */
static const Expr *several(CmlNode *n, const CmlArg *a)
{
    const Expr **parts = NEW_ARRAY(n->b.c->arena, const Expr *, a->n), *k;

    for (uint32_t i = 0; i < a->n; i++)
        parts[i] = a->at[i].e ? build_reshape(&n->b, a->at[i].e, 1, (int64_t[]){1}) : NULL;
    k = build_concat(&n->b, a->n, parts, 0);
    k = k && k->kind != EXPR_CONST ? build_fold(&n->b, k) : k;
    return k ? k
             : cml_error(n, E_UNSUPPORTED, "its input '%s' has to be known when it is compiled",
                         a->name);
}

bool cml_ints(CmlNode *n, const char *name, Ints *out)
{
    const Expr *k;
    CmlArg     *a;
    CmlField    f;

    *out = (Ints){0};
    if (has_field(n, name, &f)) {
        *out = cml_read_ints(&n->layer->message, name);
        return true;
    }
    if (!(a = cml_arg(n, name)))
        return true;
    k = a->n > 1 ? several(n, a) : constant_of(n, name);
    if (!k)
        return false;
    if (dtype_is_bool(expr_dtype(k)))
        k = build_fold(&n->b, build_cast(&n->b, k, DT_I32));
    return (k && expr_ints(n->b.c, k, out)) ||
           cml_error(n, E_IMPORT, "its input '%s' is no list of whole numbers", name);
}

bool cml_numbers(CmlNode *n, const char *name, uint32_t count, int64_t fallback, int64_t least,
                 int64_t *out)
{
    Ints v;

    if (!cml_ints(n, name, &v))
        return false;
    if (v.n && v.n != count)
        return cml_error(n, E_IMPORT, "'%s' has %u numbers, not %u", name, v.n, count);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = v.n ? v.at[i] : fallback;
        if (out[i] < least || out[i] > INT32_MAX)
            return cml_error(n, E_IMPORT, "'%s' has %lld", name, (long long)out[i]);
    }
    return true;
}

bool cml_forms(CmlNode *n, const char *name, Dims *out)
{
    CmlField f;
    Ints     v;

    if (!has_field(n, name, &f))
        return cml_operand_forms(n, name, out);
    v = cml_read_ints(&n->layer->message, name);
    *out = dims_of_i64(n->b.c, v.at, v.n);
    return true;
}

bool cml_operand_forms(CmlNode *n, const char *name, Dims *out)
{
    CmlArg     *a = cml_arg(n, name);
    const Expr *e;

    if (!a || a->n != 1 || !(e = cml_plain(&n->b, a->at[0])))
        return cml_error(n, E_IMPORT, "its input '%s' is missing", name);
    if (!dtype_is_int(expr_dtype(e)))
        e = build_cast(&n->b, e, DT_I64); /* as networks have shapes */
    return (e && build_forms(&n->b, e, out)) ||
           cml_error(n, E_UNSUPPORTED, "its input '%s' has to be known when it is compiled", name);
}

bool cml_axis(const CmlNode *n, int64_t axis, uint32_t rank, uint32_t *out)
{
    return build_axis(&n->b, axis, rank, 0, out);
}

bool cml_axes(CmlNode *n, const char *name, uint32_t rank, uint32_t *count, int64_t *axes)
{
    Ints v;

    return cml_ints(n, name, &v) && build_axes(&n->b, v, rank, 0, count, axes);
}

bool cml_message(const CmlNode *n, const char *name, CmlMessage *out)
{
    return cml_read_message(&n->layer->message, name, 0, out);
}

const Expr *cml_folded(const CmlNode *n, const char *role, const Expr *e)
{
    const Expr *k = !e || e->kind == EXPR_CONST ? NULL : build_fold(&n->b, e);

    return k ? expr_const(n->b.c,
                          const_new(n->b.c, cml_name(n, role), k->type, k->u.constant->data),
                          n->b.loc)
             : e;
}

/* ---- results -------------------------------------------------------------------------------------- */

bool cml_done_seq(CmlNode *n, uint32_t i, const Expr *y, int64_t seq)
{
    if (i >= n->nout)
        return y != NULL; /* nobody takes it */
    n->out[i] = (CmlValue){.e = y, .seq = seq};
    return y != NULL;
}

bool cml_done_at(CmlNode *n, uint32_t i, const Expr *y)
{
    return cml_done_seq(n, i, y, n->row->how == CML_CELLS ? n->seq : 0);
}

bool cml_done(CmlNode *n, const Expr *y)
{
    return cml_done_at(n, 0, y);
}

bool cml_done_image_at(CmlNode *n, uint32_t i, const Expr *y)
{
    if (!y)
        return false;
    if (n->lead)
        return cml_done_seq(n, i, y, n->lead);
    if (n->image == expr_rank(y))
        return cml_done_seq(n, i, y, 0);
    return cml_done_seq(n, i, build_reshape_to(&n->b, y, expr_rank(y) - 1, expr_forms(y).at + 1),
                        0);
}

bool cml_done_image(CmlNode *n, const Expr *y)
{
    return cml_done_image_at(n, 0, y);
}

/* ---- conversion ----------------------------------------------------------------------------------- */

/* Cells of one length of sequences stay as they lie. */
static void prepare(CmlNode *n)
{
    int64_t seq = -1;

    for (uint32_t i = 0; i < n->nargs && n->row->how == CML_CELLS; i++)
        for (uint32_t k = 0; k < n->args[i].n; k++) {
            const CmlValue *v = &n->args[i].at[k];

            if (v->e && !(v->seq == 0 && expr_rank(v->e) == 0))
                seq = seq < 0 || seq == v->seq ? v->seq : 0;
        }
    n->seq = seq < 0 ? 0 : seq;
}

/* What nobody asked for would be ignored. */
static bool check_read(CmlNode *n)
{
    for (uint32_t i = 0; i < n->nargs; i++)
        if (!n->args[i].read && n->args[i].n)
            return cml_error(n, E_UNSUPPORTED, "input '%s' is not supported", n->args[i].name);
    return true;
}

/* An output against what the program says of it. */
static bool check_declared(CmlNode *n, const CmlNamed *named, CmlValue *v)
{
    const CmlTensorType *t = named->type ? named->type->tensor : NULL;
    DType                want;
    bool                 same;

    if (!t || !v->e || !expr_has_shape(v->e))
        return true;
    if (!cml_dtype(t->type, &want))
        return cml_error(n, E_UNSUPPORTED, "its output '%s' is of %s", named->name,
                         cml_dtype_name(t->type));
    if (!dtype_is_float(want) && !dtype_is_float(expr_dtype(v->e)))
        v->e = build_cast(&n->b, v->e, want);
    if (v->e && !dtype_eq(want, expr_dtype(v->e)))
        return cml_error(n, E_IMPORT, "its output '%s' is %s, which the program says is %s",
                         named->name, type_text(n->b.c, v->e->type), cml_dtype_name(t->type));
    if (!v->e || n->im->shapes.reshaped || t->rank < 0)
        return v->e != NULL;
    same = expr_rank(v->e) == t->dims.n;
    for (uint32_t i = 0; same && i < t->dims.n; i++) {
        const CmlDim *d = t->dims.at[i];
        int64_t       is;

        same = !d->constant || !type_dim(v->e->type, i, &is) || is == d->constant->size;
    }
    if (!same)
        diag_warn(n->b.c->diags, W_DECLARED_SHAPE, n->b.loc,
                  "%s '%s': its output '%s' is %s, which the program declares otherwise", n->b.what,
                  n->b.loc.name, named->name, type_text(n->b.c, v->e->type));
    return true;
}

static bool finish(CmlNode *n)
{
    VEC(const Expr *) in = {0};

    for (uint32_t i = 0; i < n->nargs; i++)
        for (uint32_t k = 0; k < n->args[i].n; k++)
            if (n->args[i].at[k].e)
                vec_push(n->b.c->arena, &in, n->args[i].at[k].e);
    for (uint32_t i = 0; i < n->nout; i++) {
        CmlValue *v = &n->out[i];

        if (!v->e && !v->literal)
            return cml_error(n, E_UNSUPPORTED, "its output %u is not supported", i);
        if (v->e && expr_has_shape(v->e))
            v->e = build_fold_sizes(&n->b, n->im->sizes, in.n, in.at, v->e);
        if (n->operation && !check_declared(n, n->operation->out.at[i], v))
            return false;
    }
    return true;
}

bool cml_convert(CmlNode *n)
{
    Ctx     *c = n->b.c;
    uint32_t before = diag_errors(c->diags);

    if (++n->im->nodes > CML_MAX_NODES)
        return cml_error(n, E_UNSUPPORTED, "the model comes to more than %d of them",
                         CML_MAX_NODES);
    prepare(n);
    if (n->row->convert(n) && diag_errors(c->diags) == before && check_read(n) && finish(n))
        return true;
    diag_drop(c->diags, before + 1); /* what follows from the first */
    if (diag_errors(c->diags) == before)
        BUG("%s '%s' failed to import without an error", n->b.what, n->b.loc.name);
    return false;
}
