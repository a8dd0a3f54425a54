/* Expressions. */
#include "frontends/pytorch/script.h"

#include <stdlib.h>
#include <string.h>

static bool eval_list(Frame *f, const TsExpr *x, TsKind kind, TsValue *out)
{
    *out = ts_items(f->s, kind, 0, NULL);
    for (uint32_t i = 0; i < x->n; i++) {
        TsValue v;

        if (!ts_eval(f, x->kids[i], &v))
            return false;
        vec_push(f->s->c->arena, &out->items->list, v);
    }
    return true;
}

/* CONSTANTS.c3 */
static bool constant(Frame *f, const TsExpr *x, TsValue *out)
{
    char         *end;
    unsigned long at = x->text[0] == 'c' ? strtoul(x->text + 1, &end, 10) : UINT32_MAX;

    if (at >= f->s->constants->list.n)
        return ts_error(f, E_IMPORT, "the archive has no constant '%s'", x->dotted);
    *out = f->s->constants->list.at[at];
    return true;
}

static bool attribute_of(Frame *f, const TsValue *of, const char *name, TsValue *out)
{
    const TsField *field;
    const TsClass *class = of->kind == TS_OBJECT ? of->object->class : of->class;

    if (of->kind == TS_UNKNOWN) {
        *out = *of;
        return true;
    }
    if (of->kind == TS_OBJECT && (field = ts_field(of->object, name))) {
        *out = field->value;
        return true;
    }
    for (uint32_t i = 0; class && of->kind == TS_TUPLE && i < class->nfields; i++)
        if (!strcmp(class->fields[i], name) && i < of->items->list.n) {
            *out = of->items->list.at[i];
            return true;
        }
    for (uint32_t i = 0; class && of->kind == TS_OBJECT && i < class->nfields; i++)
        if (!strcmp(class->fields[i], name) && class->values[i])
            return ts_eval(f, class->values[i], out);
    *out = (TsValue){.kind = TS_CALLABLE, .object = of->object, .function = ts_method(class, name)};
    return (of->kind == TS_OBJECT && out->function) ||
           ts_error(f, E_IMPORT, "%s has no '%s'", ts_kind_text(f->s, of), name);
}

/* A function or a class of the archive, or a method of that. */
static bool named(Frame *f, const char *name, TsValue *out)
{
    Script  *s = f->s;
    uint32_t before = diag_errors(s->c->diags);
    char    *owner = arena_printf(s->c->arena, "%s", name), *dot = strrchr(owner, '.');

    *out = (TsValue){.kind = TS_CALLABLE};
    if ((out->function = ts_function(s, name)) || (out->class = ts_class(s, name)))
        return true;
    if (dot && diag_errors(s->c->diags) == before) {
        *dot = 0;
        out->class = ts_class(s, owner);
        if (out->class &&
            (!strcmp(dot + 1, "__new__") || (out->function = ts_method(out->class, dot + 1))))
            return true;
    }
    return diag_errors(s->c->diags) == before &&
           ts_error(f, E_IMPORT, "the archive has no '%s'", name);
}

static bool local(const Frame *f, const TsExpr *x, TsValue *out)
{
    const TsValue *v = map_get(f->values, PTR_KEY(x->text));

    if (v)
        *out = *v;
    return v != NULL;
}

static bool attribute(Frame *f, const TsExpr *x, TsValue *out)
{
    TsValue of;

    if (x->dotted && str_starts(x->dotted, "CONSTANTS."))
        return constant(f, x, out);
    if (x->dotted && str_starts(x->dotted, "__torch__."))
        return named(f, x->dotted, out);
    return ts_eval(f, x->kids[0], &of) && attribute_of(f, &of, x->text, out);
}

/* getattr(self, "0") */
static bool named_attribute(Frame *f, const TsExpr *x, TsValue *out)
{
    TsValue of;

    if (x->n != 3 || x->kids[2]->kind != TS_X_TEXT)
        return ts_error(f, E_IMPORT, "getattr() without a name");
    return ts_eval(f, x->kids[1], &of) && attribute_of(f, &of, x->kids[2]->text, out);
}

static bool pick(Frame *f, const TsExpr *x, TsValue *out)
{
    TsValue v;
    bool    yes;

    if (!ts_eval(f, x->kids[1], &v) || !ts_truth(f, &v))
        return false;
    if (!ts_known_bool(&v, &yes))
        return ts_error(f, E_UNSUPPORTED, "values of the run decide between two expressions");
    return ts_eval(f, x->kids[yes ? 0 : 2], out);
}

/* Is it of that type?  What a type is made of, its values do not say. */
static bool is_of(const TsValue *v, const TsExpr *type)
{
    static const struct {
        const char *name;
        TsKind      kind;
    } types[] = {{"Tensor", TS_TENSOR}, {"int", TS_INT},    {"float", TS_FLOAT},
                 {"bool", TS_BOOL},     {"str", TS_STRING}, {"NoneType", TS_NONE},
                 {"list", TS_LIST},     {"List", TS_LIST},  {"tuple", TS_TUPLE},
                 {"Tuple", TS_TUPLE},   {"dict", TS_DICT},  {"Dict", TS_DICT}};

    if (type->kind == TS_X_TUPLE) {
        for (uint32_t i = 0; i < type->n; i++)
            if (is_of(v, type->kids[i]))
                return true;
        return false;
    }
    if (type->kind == TS_X_INDEX)
        type = type->kids[0];
    for (uint32_t i = 0; type->kind == TS_X_NAME && i < COUNT(types); i++)
        if (!strcmp(type->text, types[i].name))
            return v->kind == types[i].kind;
    return v->kind == TS_OBJECT && type->dotted && !strcmp(v->object->class->name, type->dotted);
}

/* Functions whose arguments are types or names. */
static bool special(Frame *f, const TsExpr *x, TsValue *out, bool *known)
{
    const char *name = x->kids[0]->dotted;

    *known = true;
    if (!strcmp(name, "annotate") || !strcmp(name, "unchecked_cast"))
        return (x->n == 3 || ts_error(f, E_IMPORT, "%s() of %u values", name, x->n - 1)) &&
               ts_eval(f, x->kids[2], out);
    if (!strcmp(name, "uninitialized")) {
        *out = (TsValue){.kind = TS_NOTHING};
        return true;
    }
    if (!strcmp(name, "getattr"))
        return named_attribute(f, x, out);
    if (!strcmp(name, "isinstance")) {
        TsValue v;

        if (x->n != 3 || !ts_eval(f, x->kids[1], &v))
            return x->n == 3 ? false
                             : ts_error(f, E_IMPORT, "isinstance() of %u values", x->n - 1) != NULL;
        *out = ts_bool(f->s, is_of(&v, x->kids[2]));
        return true;
    }
    *known = false;
    return true;
}

static bool eval(Frame *f, const TsExpr *x, TsValue *out)
{
    bool known = false, ok;

    switch (x->kind) {
    case TS_X_INT: *out = ts_int(f->s, x->i); return true;
    case TS_X_FLOAT: *out = ts_float(x->f); return true;
    case TS_X_TEXT: *out = ts_text(x->text); return true;
    case TS_X_TRUE: *out = ts_bool(f->s, true); return true;
    case TS_X_FALSE: *out = ts_bool(f->s, false); return true;
    case TS_X_NONE: *out = ts_none(); return true;
    case TS_X_LIST: return eval_list(f, x, TS_LIST, out);
    case TS_X_TUPLE: return eval_list(f, x, TS_TUPLE, out);
    case TS_X_DICT: return eval_list(f, x, TS_DICT, out);
    case TS_X_NAME: return local(f, x, out) || ts_error(f, E_IMPORT, "'%s' has no value", x->text);
    case TS_X_ATTR: return attribute(f, x, out);
    case TS_X_PICK: return pick(f, x, out);
    case TS_X_CALL:
        if (x->kids[0]->kind == TS_X_NAME && !local(f, x->kids[0], out)) {
            ok = special(f, x, out, &known);
            if (known)
                return ok;
        }
        return ts_call(f, x, out);
    case TS_X_INDEX:
    case TS_X_SLICE:
    case TS_X_NEGATIVE: return ts_call(f, x, out);
    }
    return false;
}

bool ts_eval(Frame *f, const TsExpr *x, TsValue *out)
{
    bool ok;

    if (++f->s->depth > TS_MAX_DEPTH * 4)
        return ts_error(f, E_UNSUPPORTED, "calls and values are nested too deep");
    *out = (TsValue){.kind = TS_NOTHING};
    ok = eval(f, x, out);
    f->s->depth--;
    return ok;
}
