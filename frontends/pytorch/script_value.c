/* Values of a program that is run while it is compiled. */
#include "frontends/pytorch/script.h"

#include <math.h>
#include <string.h>

void *ts_error(const Frame *f, DiagId id, const char *fmt, ...)
{
    StrBuf  s = strbuf(f->s->c->arena);
    Loc     loc = f->s->loc;
    va_list ap;

    str_printf(&s, "%s.%s, line %u: ", f->function->where, f->function->name, f->line);
    va_start(ap, fmt);
    str_vprintf(&s, fmt, ap);
    va_end(ap);
    return diag_error(f->s->c->diags, id, loc, "%s", s.at);
}

TsValue ts_none(void)
{
    return (TsValue){.kind = TS_NONE};
}

TsValue ts_form(const Idx *form)
{
    return (TsValue){.kind = TS_INT, .form = form};
}

TsValue ts_int(Script *s, int64_t v)
{
    return ts_form(idx_const(s->c->arith, v));
}

TsValue ts_float(double v)
{
    return (TsValue){.kind = TS_FLOAT, .f = v};
}

TsValue ts_bool(Script *s, bool v)
{
    return (TsValue){.kind = TS_BOOL, .form = idx_const(s->c->arith, v)};
}

TsValue ts_text(const char *text)
{
    return (TsValue){.kind = TS_STRING, .text = text};
}

TsValue ts_tensor(Script *s, const Expr *e)
{
    TsValue v = {.kind = TS_TENSOR, .t = pt_tensor_value(s->c, e).t};

    v.t->scope = s->im.scope;
    return v;
}

TsValue ts_number(Script *s, const Expr *e)
{
    Build       b = {.c = s->c, .loc = s->loc, .what = "number"};
    const Expr *k = build_fold(&b, e);
    int         kind = pt_dtype_kind(expr_dtype(e));
    double      v;
    Ints        one;

    if (k && kind == 2 && expr_const_f(k, &v))
        return ts_float(v);
    if (k && kind == 0 && expr_const_f(k, &v))
        return ts_bool(s, v != 0);
    if (k && kind == 1 && expr_ints(s->c, k, &one) && one.n == 1)
        return ts_int(s, one.at[0]);
    return (TsValue){.kind = kind == 2 ? TS_FLOAT : kind ? TS_INT : TS_BOOL, .e = e};
}

TsValue ts_items(Script *s, TsKind kind, uint32_t n, const TsValue *at)
{
    TsValue v = {.kind = kind, .items = NEW(s->c->arena, TsItems)};

    v.items->scope = s->im.scope;
    for (uint32_t i = 0; i < n; i++)
        vec_push(s->c->arena, &v.items->list, at[i]);
    return v;
}

/* ---- what is known -------------------------------------------------------------------------------- */

bool ts_is_number(const TsValue *v)
{
    return v->kind == TS_BOOL || v->kind == TS_INT || v->kind == TS_FLOAT;
}

bool ts_known_int(const TsValue *v, int64_t *out)
{
    return (v->kind == TS_INT || v->kind == TS_BOOL) && v->form && idx_is_const(v->form, out);
}

bool ts_known_float(const TsValue *v, double *out)
{
    int64_t i;

    if (v->kind == TS_FLOAT && !v->e) {
        *out = v->f;
        return true;
    }
    if (!ts_known_int(v, &i))
        return false;
    *out = (double)i;
    return true;
}

bool ts_known_bool(const TsValue *v, bool *out)
{
    int64_t i;

    if (v->kind != TS_BOOL || !ts_known_int(v, &i))
        return false;
    *out = i != 0;
    return true;
}

const char *ts_kind_text(Script *s, const TsValue *v)
{
    switch (v->kind) {
    case TS_NOTHING: return "nothing";
    case TS_UNKNOWN: return "unknown";
    case TS_NONE: return "None";
    case TS_TENSOR: return v->t->e ? type_text(s->c, v->t->e->type) : "a tensor";
    case TS_BOOL: return "a bool";
    case TS_INT: return "an integer";
    case TS_FLOAT: return "a float";
    case TS_STRING: return "a text";
    case TS_DEVICE: return "a device";
    case TS_LIST: return "a list";
    case TS_TUPLE: return "a tuple";
    case TS_DICT: return "a dictionary";
    case TS_OBJECT: return arena_printf(s->c->arena, "an object of %s", v->object->class->name);
    case TS_CALLABLE: return "a function";
    }
    return "";
}

/* ---- as tensors ------------------------------------------------------------------------------------ */

const Expr *ts_number_expr(Frame *f, const TsValue *v)
{
    Script     *s = f->s;
    Build       b = {.c = s->c, .loc = s->loc, .what = "number"};
    DType       t = v->kind == TS_FLOAT ? DT_F64 : v->kind == TS_INT ? DT_I64 : DT_BOOL;
    const Expr *e;

    if (v->e)
        return v->e;
    if (v->kind == TS_FLOAT)
        return expr_scalar(s->c, t, v->f);
    e = build_values(&b, type_tensor(s->c, DT_I64, 0, NULL), (Dims){1, &v->form});
    return build_cast(&b, e, t);
}

/* The node at which a statement reads a tensor. */
static PtNode reading(Frame *f)
{
    PtOp *op = NEW(f->s->c->arena, PtOp);

    op->target = f->function->name;
    op->name = f->target ? f->target : "";
    op->row = &pt_rows[0];
    return pt_node(&f->s->im, op);
}

bool ts_dims(Frame *f, const TsValue *v, Dims *out)
{
    PtNode      n = reading(f);
    const Expr *e = v->kind == TS_TENSOR ? pt_read(&n, v->t) : ts_read(f, v);

    if (!e)
        return false;
    *out = expr_forms(e);
    out->n -= v->kind == TS_TENSOR && v->t->cells == PT_COMPLEX;
    return true;
}

const Expr *ts_read(Frame *f, const TsValue *v)
{
    PtNode n;

    if (ts_is_number(v))
        return ts_number_expr(f, v);
    if (v->kind != TS_TENSOR)
        return ts_error(f, E_IMPORT, "%s where a tensor should be", ts_kind_text(f->s, v));
    n = reading(f);
    return pt_real(&n, v->t);
}

static bool same_items(const TsItems *a, const TsItems *b)
{
    if (a->list.n != b->list.n)
        return false;
    for (uint32_t i = 0; i < a->list.n; i++)
        if (a->list.at[i].items || !ts_same(&a->list.at[i], &b->list.at[i]))
            return a == b;
    return true;
}

bool ts_same(const TsValue *a, const TsValue *b)
{
    if (a->kind != b->kind || a->t != b->t || a->form != b->form || a->e != b->e ||
        a->object != b->object || a->function != b->function || a->class != b->class)
        return false;
    if (a->kind == TS_STRING)
        return !strcmp(a->text, b->text);
    if (a->kind == TS_FLOAT && !a->e)
        return a->f == b->f;
    return !a->items || same_items(a->items, b->items);
}

/* ---- attributes -------------------------------------------------------------------------------------- */

TsField *ts_field(const TsObject *o, const char *name)
{
    for (uint32_t i = 0; i < o->fields.n; i++)
        if (!strcmp(o->fields.at[i].name, name))
            return &o->fields.at[i];
    return NULL;
}

void ts_put_field(Script *s, TsObject *o, const char *name, TsValue v)
{
    TsField *had = ts_field(o, name);

    if (had)
        had->value = v;
    else
        vec_push(s->c->arena, &o->fields, ((TsField){.name = name, .value = v}));
}
