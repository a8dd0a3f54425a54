/* Calls: functions of numbers and lists, methods and functions of the archive, aten operators.
 *
 * An operator is called by the places of its arguments.  The alternatives of its rows (ops.def) are
 * tried in turn; the first in which all arguments have a place gives them their names, and from
 * there on the call is a node like those of torch.export. */
#include "frontends/pytorch/script.h"

#include <math.h>
#include <string.h>

enum { MOST_OUTPUTS = 8, MOST_CALLS = 200 };

/* ---- functions of the archive ------------------------------------------------------------------------ */

static bool bind(Frame *callee, const TsFunction *fn, uint32_t i, const TsValue *v)
{
    const char *name = fn->params[i];
    TsValue     value;

    if (map_get(callee->values, PTR_KEY(name)))
        return ts_error(callee, E_IMPORT, "argument '%s' is given twice", name);
    if (!v && !fn->defaults[i])
        return ts_error(callee, E_IMPORT, "argument '%s' is missing", name);
    if (v)
        value = *v;
    else if (!ts_eval(callee, fn->defaults[i], &value))
        return false;
    map_put(callee->values, PTR_KEY(name), DUP_ARRAY(callee->s->c->arena, &value, 1));
    return true;
}

static bool bind_all(Frame *callee, const TsFunction *fn, TsObject *self, uint32_t n,
                     const TsValue *args, const char *const *names)
{
    uint32_t at = 0;

    if (self && !bind(callee, fn, at++, &(TsValue){.kind = TS_OBJECT, .object = self}))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t to = at;

        if (names && names[i])
            for (to = 0; to < fn->nparams && strcmp(fn->params[to], names[i]) != 0;)
                to++;
        else
            at++;
        if (to >= fn->nparams)
            return ts_error(callee, E_IMPORT, "it is called with an argument more than it has");
        if (!bind(callee, fn, to, &args[i]))
            return false;
    }
    for (uint32_t i = 0; i < fn->nparams; i++)
        if (!map_get(callee->values, PTR_KEY(fn->params[i])) && !bind(callee, fn, i, NULL))
            return false;
    return true;
}

bool ts_call_function(Frame *f, const TsFunction *fn, TsObject *self, uint32_t n,
                      const TsValue *args, const char *const *names, TsValue *out)
{
    Frame callee = {.s = f->s, .function = fn, .path = self ? self->path : f->path};

    callee.values = map_new(f->s->c->arena);
    callee.result = ts_none();
    if (self && !fn->nparams)
        return ts_error(f, E_IMPORT, "method '%s' has no self", fn->name);
    if (!bind_all(&callee, fn, self, n, args, names) || !ts_run(&callee, fn->body))
        return false;
    f->raised |= callee.raised;
    *out = callee.result;
    return true;
}

static bool construct(Frame *f, const TsClass *class, uint32_t n, const TsValue *args, TsValue *out)
{
    if (class->tuple) {
        *out = ts_items(f->s, TS_TUPLE, n, args);
        out->class = class;
        return true;
    }
    *out = (TsValue){.kind = TS_OBJECT, .object = NEW(f->s->c->arena, TsObject)};
    out->object->class = class;
    out->object->scope = f->s->im.scope;
    return true;
}

static bool call_value(Frame *f, const TsValue *callee, uint32_t n, const TsValue *args,
                       const char *const *names, TsValue *out)
{
    TsBuiltin *builtin;

    if (callee->kind == TS_UNKNOWN) {
        *out = *callee;
        return true;
    }
    if (callee->kind != TS_CALLABLE)
        return ts_error(f, E_IMPORT, "%s is called", ts_kind_text(f->s, callee));
    if (callee->function && !callee->object &&
        (builtin = ts_builtin(
             arena_printf(f->s->c->arena, "%s.%s", callee->function->where, callee->function->name),
             n)))
        return builtin(&(TsCall){f, callee->function->name, n,
                                 DUP_ARRAY(f->s->c->arena, args, n + 0u), names, out, false});
    if (callee->function)
        return ts_call_function(f, callee->function, callee->object, n, args, names, out);
    return construct(f, callee->class, n, args, out);
}

/* ---- operators ----------------------------------------------------------------------------------------- */

static bool arg_of(Frame *f, const TsValue *v, PtArg *out);

static bool list_of(Frame *f, const TsValue *v, PtArg *out)
{
    *out = (PtArg){.kind = PT_LIST, .n = v->items->list.n, .text = ""};
    out->at = NEW_ARRAY(f->s->c->arena, PtArg, out->n + 1);
    for (uint32_t i = 0; i < out->n; i++)
        if (!arg_of(f, &v->items->list.at[i], &out->at[i]))
            return false;
    return true;
}

static PtArg valued(Frame *f, PtKind kind, PtValue v)
{
    return (PtArg){.kind = kind, .text = "", .value = DUP_ARRAY(f->s->c->arena, &v, 1)};
}

static bool number_of(Frame *f, const TsValue *v, PtArg *out)
{
    double d;

    if (v->e)
        *out = valued(f, PT_SYMBOL, (PtValue){.e = v->e});
    else if (!ts_known_float(v, &d))
        *out = valued(f, PT_SYMBOL, (PtValue){.form = v->form});
    else if (v->kind == TS_FLOAT)
        *out = (PtArg){.kind = PT_FLOAT, .f = d, .i = fabs(d) < 0x1p53 ? (int64_t)d : 0};
    else {
        *out = (PtArg){.kind = v->kind == TS_INT ? PT_INT : PT_BOOL, .f = d};
        ts_known_int(v, &out->i);
    }
    return true;
}

static bool arg_of(Frame *f, const TsValue *v, PtArg *out)
{
    switch (v->kind) {
    case TS_NONE: *out = (PtArg){.kind = PT_NONE}; return true;
    case TS_TENSOR: *out = valued(f, PT_TENSOR, (PtValue){.t = v->t}); return true;
    case TS_BOOL:
    case TS_INT:
    case TS_FLOAT: return number_of(f, v, out);
    case TS_STRING: *out = (PtArg){.kind = PT_STRING, .text = v->text}; return true;
    case TS_DEVICE: *out = (PtArg){.kind = PT_DEVICE}; return true;
    case TS_LIST:
    case TS_TUPLE: return list_of(f, v, out);
    case TS_NOTHING:
    case TS_UNKNOWN:
    case TS_DICT:
    case TS_OBJECT:
    case TS_CALLABLE: break;
    }
    return ts_error(f, E_UNSUPPORTED, "%s as an argument of an operator", ts_kind_text(f->s, v));
}

static bool unknown_among(uint32_t n, const TsValue *at)
{
    for (uint32_t i = 0; i < n; i++)
        if (at[i].kind == TS_UNKNOWN || (at[i].kind != TS_DICT && at[i].items &&
                                         unknown_among(at[i].items->list.n, at[i].items->list.at)))
            return true;
    return false;
}

static TsValue value_of(Frame *f, const PtValue *v)
{
    TsValue list;

    if (v->t)
        return (TsValue){.kind = TS_TENSOR, .t = v->t};
    if (v->form)
        return ts_form(v->form);
    if (v->e)
        return ts_number(f->s, v->e);
    list = ts_items(f->s, TS_LIST, 0, NULL);
    for (uint32_t i = 0; i < v->n; i++)
        vec_push(f->s->c->arena, &list.items->list, value_of(f, &v->at[i]));
    return list;
}

static bool no_operator(Frame *f, const PtOp *op, bool known, TsValue *out)
{
    Script     *s = f->s;
    const char *target = op->target;

    finding_add(
        s->c, &s->findings,
        (Finding){.id = E_UNSUPPORTED_OP,
                  .text = known ? arena_printf(s->c->arena,
                                               "operator %s is not supported with these "
                                               "arguments",
                                               target)
                                : arena_printf(s->c->arena, "operator %s is not supported", target),
                  .hint = known ? NULL : pt_instead_of(target),
                  .first = op->name,
                  .ordinal = op->ordinal});
    *out = (TsValue){.kind = TS_UNKNOWN};
    return true;
}

bool ts_operator(Frame *f, const char *target, uint32_t n, const TsValue *args,
                 const char *const *names, TsValue *out)
{
    Script     *s = f->s;
    Arena      *a = s->c->arena;
    PtOp       *op = NEW(a, PtOp);
    PtValue     got[MOST_OUTPUTS] = {{0}};
    TsValue     all;
    uint32_t    count = 0;
    bool        known;
    const char *place = f->path && *f->path ? arena_printf(a, "%s.", f->path) : "";

    op->target = target;
    op->ordinal = ++s->ordinal;
    op->name =
        intern_printf(s->c->strings, "%s%s", place, f->target ? f->target : f->function->name);
    op->nin = n;
    op->nout = MOST_OUTPUTS;
    op->in = NEW_ARRAY(a, PtArg, n + 1);
    op->names = NEW_ARRAY(a, const char *, n + 1);
    if (unknown_among(n, args)) {
        *out = (TsValue){.kind = TS_UNKNOWN};
        (void)pt_match(s->c, &(PtOp){.target = target}, &known);
        return known || no_operator(f, op, false, out);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!arg_of(f, &args[i], &op->in[i]))
            return false;
        op->names[i] = names ? names[i] : NULL;
    }
    op->row = pt_match(s->c, op, &known);
    if (!op->row)
        return no_operator(f, op, known, out);
    if (!pt_run(&s->im, op, got))
        return false;
    while (count < MOST_OUTPUTS &&
           (got[count].t || got[count].form || got[count].e || got[count].list))
        count++;
    if (count == 0)
        *out = ts_none();
    else if (count == 1)
        *out = value_of(f, &got[0]);
    else {
        all = ts_items(s, TS_TUPLE, 0, NULL);
        for (uint32_t i = 0; i < count; i++)
            vec_push(a, &all.items->list, value_of(f, &got[i]));
        *out = all;
    }
    return true;
}

/* A function of torchvision as one operator: its code chooses by the number of boxes between two
 * ways to the same result, or makes each by itself, with a size of its own. */
bool ts_vision(TsCall *k)
{
    const char *target = intern_printf(k->f->s->c->strings, "torchvision.%s", k->name);

    return ts_operator(k->f, target, k->n, k->at, k->names, k->out);
}

/* ---- all ------------------------------------------------------------------------------------------------- */

static bool call_named(Frame *f, const char *name, uint32_t n, TsValue *args,
                       const char *const *names, TsValue *out)
{
    TsCall      k = {f, name, n, args, names, out, false};
    TsBuiltin  *builtin = ts_builtin(name, n);
    const char *target;

    if (builtin && unknown_among(n, args)) {
        *out = (TsValue){.kind = TS_UNKNOWN};
        return true;
    }
    if (builtin) {
        if (!builtin(&k))
            return false;
        if (!k.pass)
            return true;
    }
    target = str_starts(name, "torch.") ? intern_printf(f->s->c->strings, "aten.%s", name + 6)
             : str_starts(name, "ops.") ? intern(f->s->c->strings, name + 4)
                                        : name;
    return ts_operator(f, target, n, args, names, out);
}

bool ts_call(Frame *f, const TsExpr *x, TsValue *out)
{
    const TsExpr *callee = x->kind == TS_X_CALL ? x->kids[0] : NULL;
    uint32_t      first = callee ? 1 : 0, n = x->n - first;
    TsValue      *args = NEW_ARRAY(f->s->c->arena, TsValue, n + 1), of;
    const char   *name = x->kind == TS_X_INDEX      ? "torch.__getitem__"
                         : x->kind == TS_X_SLICE    ? "torch.__getslice__"
                         : x->kind == TS_X_NEGATIVE ? "torch.neg"
                                                    : callee->dotted,
               *target = f->target;
    bool by_name = name && (!callee || str_starts(name, "torch.") || str_starts(name, "ops.") ||
                            (callee->kind == TS_X_NAME && !map_get(f->values, PTR_KEY(name))));

    if (!by_name && !ts_eval(f, callee, &of))
        return false;
    f->target = NULL;
    for (uint32_t i = 0; i < n; i++)
        if (!ts_eval(f, x->kids[first + i], &args[i]))
            return false;
    f->target = target;
    if (f->raised)
        return true;
    if (by_name)
        return call_named(f, name, n, args, callee ? x->names + 1 : NULL, out);
    return call_value(f, &of, n, args, x->names + 1, out);
}
