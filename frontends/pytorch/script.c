/* The module's forward(): its inputs, what it makes of them, its outputs.
 *
 * Code says of its inputs that they are tensors, not of which shape or element type: a shape is
 * given
 * (--shape), cells are floats unless something else is said.  Tuples, lists and dictionaries of
 * tensors are inputs x.0, x.1 ..  Numbers are inputs without dimensions, which --value makes known
 * while the module is compiled, as sizes need to be. */
#include "frontends/pytorch/script.h"

#include <string.h>

/* ---- inputs ------------------------------------------------------------------------------------- */

static bool is_type(const TsExpr *type, const char *name)
{
    return type && type->kind == TS_X_NAME && !strcmp(type->text, name);
}

/* List[T], Optional[T], Tuple[A, B]: its arguments. */
static bool is_made_of(const TsExpr *type, const char *name)
{
    return type && type->kind == TS_X_INDEX && is_type(type->kids[0], name);
}

static bool number_type(const TsExpr *type, DType *out)
{
    *out = is_type(type, "int")     ? DT_I64
           : is_type(type, "bool")  ? DT_BOOL
           : is_type(type, "float") ? DT_F64
                                    : DT_F32;
    return is_type(type, "int") || is_type(type, "float") || is_type(type, "bool");
}

static bool read_input(Script *s, const ImportOptions *o, const char *name, const TsExpr *type,
                       NamedValues *params, TsValue *out);

static bool read_tuple(Script *s, const ImportOptions *o, const char *name, const TsExpr *type,
                       NamedValues *params, TsValue *out)
{
    bool     one = type->kids[1]->kind != TS_X_TUPLE;
    uint32_t n = one ? 1 : type->kids[1]->n;

    *out = ts_items(s, TS_TUPLE, 0, NULL);
    for (uint32_t i = 0; i < n; i++) {
        TsValue v;

        if (!read_input(s, o, intern_printf(s->c->strings, "%s.%u", name, i),
                        one ? type->kids[1] : type->kids[1]->kids[i], params, &v))
            return false;
        vec_push(s->c->arena, &out->items->list, v);
    }
    return true;
}

/* Does an option say something of input "x.0", or of one whose name begins with "x.0."? */
static bool says(const ImportOptions *o, const char *name)
{
    size_t n = strlen(name);

    for (uint32_t i = 0; i < o->nshapes; i++)
        if (!strncmp(o->shapes[i].name, name, n) &&
            (!o->shapes[i].name[n] || o->shapes[i].name[n] == '.'))
            return true;
    return false;
}

/* As many members as shapes are given for; one at least. */
static bool read_list(Script *s, const ImportOptions *o, const char *name, const TsExpr *type,
                      NamedValues *params, TsValue *out)
{
    *out = ts_items(s, TS_LIST, 0, NULL);
    for (uint32_t i = 0;; i++) {
        const char *member = intern_printf(s->c->strings, "%s.%u", name, i);
        TsValue     v;

        if (i > 0 && !says(o, member))
            return true;
        shapes_see(&s->im.shapes, member, 0, NULL);
        if (!read_input(s, o, member, type->kids[1], params, &v))
            return false;
        vec_push(s->c->arena, &out->items->list, v);
    }
}

/* Dict[str, T]: the keys that shapes are given for, "x.key". */
static bool read_dict(Script *s, const ImportOptions *o, const char *name, const TsExpr *type,
                      NamedValues *params, TsValue *out)
{
    size_t n = strlen(name);

    *out = ts_items(s, TS_DICT, 0, NULL);
    if (type->kids[1]->kind != TS_X_TUPLE || type->kids[1]->n != 2 ||
        !is_type(type->kids[1]->kids[0], "str"))
        return error_at(s->c, E_UNSUPPORTED, s->loc,
                        "argument '%s' of forward() is a dictionary whose keys are no texts", name);
    for (uint32_t i = 0; i < o->nshapes; i++) {
        const char *given = o->shapes[i].name;
        TsValue     v;

        if (strncmp(given, name, n) != 0 || given[n] != '.' || !given[n + 1])
            continue;
        given = intern(s->c->strings, given);
        if (!read_input(s, o, given, type->kids[1]->kids[1], params, &v))
            return false;
        vec_push(s->c->arena, &out->items->list, ts_text(given + n + 1));
        vec_push(s->c->arena, &out->items->list, v);
    }
    if (out->items->list.n)
        return true;
    error_at(s->c, E_DIM, s->loc, "argument '%s' of forward() is a dictionary without a key", name);
    diag_hint(s->c->diags, "give a shape for each key: --shape '%s.key:[1,..]'", name);
    return false;
}

static bool read_input(Script *s, const ImportOptions *o, const char *name, const TsExpr *type,
                       NamedValues *params, TsValue *out)
{
    const ImportValue *value = value_given(o, name);
    DType              t;
    bool               number = number_type(type, &t);
    const Type        *is;
    const Expr        *e;

    *out = (TsValue){.kind = TS_NOTHING};
    if (is_made_of(type, "Optional"))
        return read_input(s, o, name, type->kids[1], params, out);
    if (is_made_of(type, "Tuple"))
        return read_tuple(s, o, name, type, params, out);
    if (is_made_of(type, "List"))
        return read_list(s, o, name, type, params, out);
    if (is_made_of(type, "Dict"))
        return read_dict(s, o, name, type, params, out);
    if (!number && !is_type(type, "Tensor"))
        return error_at(s->c, E_UNSUPPORTED, s->loc, "argument '%s' of forward() is no tensor",
                        name);
    t = number ? t : shapes_dtype(&s->im.shapes, name, t);
    vec_push(s->c->arena, &params->names, name);
    if (!(is = shapes_input(&s->im.shapes, s->loc, name, t, number ? 0 : UINT32_MAX, NULL)))
        return true; /* shapes_check says what is missing */
    if (!(e = value ? value_expr(s->c, s->loc, value, is) : expr_var(s->c, name, is, s->loc)))
        return false;
    if (!value)
        vec_push(s->c->arena, &params->at, e);
    *out = number ? ts_number(s, e) : ts_tensor(s, e);
    return true;
}

/* The arguments behind self that have no default, and those with one that are given. */
static bool read_inputs(Script *s, const ImportOptions *o, const TsFunction *forward,
                        TsObject *self, NamedValues *params, TsValue *args, const char **names,
                        uint32_t *n)
{
    uint32_t before = diag_errors(s->c->diags);

    *n = 0;
    for (uint32_t i = 1; i < forward->nparams; i++)
        if (!forward->defaults[i])
            shapes_see(&s->im.shapes, forward->params[i], 0, NULL);
    for (uint32_t i = 1; i < forward->nparams; i++) {
        if (forward->defaults[i])
            continue;
        names[*n] = forward->params[i];
        if (!read_input(s, o, forward->params[i], forward->types[i], params, &args[(*n)++]))
            return false;
    }
    return ts_take_states(s, self, params) && ts_check_shapes(s, self, params) &&
           diag_errors(s->c->diags) == before;
}

/* ---- outputs ------------------------------------------------------------------------------------- */

static bool add_output(Frame *f, NamedValues *r, const char *name, const TsValue *v);

static bool add_items(Frame *f, NamedValues *r, const char *name, const TsValue *v)
{
    Strings *strings = f->s->c->strings;
    const TsClass *class = v->class;
    uint32_t by = v->kind == TS_DICT ? 2 : 1;

    for (uint32_t i = 0; i + by <= v->items->list.n; i += by) {
        const TsValue *key = &v->items->list.at[i];
        const char    *part = v->kind == TS_DICT && key->kind == TS_STRING ? key->text
                              : class && i < class->nfields                ? class->fields[i]
                                                                           : NULL;

        if (!part)
            part = intern_printf(strings, *name ? "%u" : "output_%u", i / by);
        if (*name)
            part = intern_printf(strings, "%s.%s", name, part);
        if (!add_output(f, r, part, &v->items->list.at[i + by - 1]))
            return false;
    }
    return true;
}

static bool add_output(Frame *f, NamedValues *r, const char *name, const TsValue *v)
{
    const Expr *e;

    if (v->kind == TS_NONE || v->kind == TS_UNKNOWN)
        return true;
    if (v->items)
        return add_items(f, r, name, v);
    if (v->kind != TS_TENSOR && !ts_is_number(v))
        return error_at(f->s->c, E_UNSUPPORTED, f->s->loc, "forward() returns %s",
                        ts_kind_text(f->s, v));
    f->target = *name ? name : "output_0";
    if (!(e = ts_read(f, v)))
        return false;
    if (v->kind == TS_FLOAT)
        e = build_cast(&(Build){.c = f->s->c, .loc = f->s->loc, .what = "output"}, e, DT_F64);
    vec_push(f->s->c->arena, &r->at, e);
    vec_push(f->s->c->arena, &r->names, *name ? name : intern(f->s->c->strings, "output_0"));
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------------ */

static const Module *run(Script *s, const TsFunction *forward, TsObject *self,
                         const ImportOptions *o)
{
    Arena       *a = s->c->arena;
    NamedValues  params = {0}, r = {0};
    TsValue     *args = NEW_ARRAY(a, TsValue, forward->nparams + 1), out;
    const char **names = NEW_ARRAY(a, const char *, forward->nparams + 1);
    Frame        f = {.s = s, .function = forward, .path = ""};
    uint32_t     n, before = diag_errors(s->c->diags);

    f.values = map_new(a);
    if (!read_inputs(s, o, forward, self, &params, args, names, &n))
        return NULL;
    if (!ts_call_function(&f, forward, self, n, args, names, &out) && !s->findings.list.n)
        return NULL;
    if (s->findings.list.n) {
        diag_drop(s->c->diags, before); /* what follows from them */
        findings_report(s->c, &s->findings);
        return NULL;
    }
    if (!add_output(&f, &r, "", &out) || !ts_find_states(&f))
        return NULL;
    if (map_count(s->im.found))
        return NULL; /* once more, with these as states */
    if (!shapes_check(&s->im.shapes, s->loc, params.names.n, params.names.at) ||
        !shapes_check_dims(&s->im.shapes, s->loc) || !ts_add_states(&f, &r))
        return NULL;
    if (!r.at.n)
        return error_at(s->c, E_IMPORT, s->loc, "the model has no outputs");
    ts_warn_changed(s);
    return build_module(s->c, s->path, &params, &r, s->im.binds.n, s->im.binds.at,
                        &s->im.functions);
}

/* A list is shown by its first member. */
static void describe_input(Script *s, const char *name, const TsExpr *type, SignatureTensor *out)
{
    DType t;
    bool  number;

    while (is_made_of(type, "Optional") || is_made_of(type, "List")) {
        name = is_made_of(type, "List") ? intern_printf(s->c->strings, "%s.0", name) : name;
        type = type->kids[1];
    }
    number = number_type(type, &t);
    *out = (SignatureTensor){.name = name,
                             .type = dtype_text(s->c, t),
                             .ndim = number ? 0 : UINT32_MAX,
                             .kind = number || is_type(type, "Tensor") ? SIGNATURE_TENSOR
                                                                       : SIGNATURE_OTHER};
}

static Script script_of(Ctx *c, const char *path, const ImportOptions *o)
{
    static const PtProgram none = {.major = 0};
    Script                 s = {.c = c, .path = path, .loc = {.file = path}};

    s.im = (PtImport){
        .c = c, .path = path, .program = &none, .shapes = pt_shapes(c, o), .script = true};
    s.im.values = map_new(c->arena);
    s.im.metas = map_new(c->arena);
    s.findings = (Findings){.path = path, .noun = "call"};
    return s;
}

bool ts_describe(Ctx *c, const char *path, Bytes file, const ImportOptions *o, ModelSignature *out)
{
    Script            s = script_of(c, path, o);
    const TsFunction *forward;
    SignatureTensor  *in;
    TsValue           module;

    if (!ts_open(&s, file) || !ts_load_module(&s, &module) ||
        !(forward = ts_method(module.object->class, "forward")))
        return false;
    in = NEW_ARRAY(c->arena, SignatureTensor, forward->nparams + 1);
    for (uint32_t i = 1; i < forward->nparams; i++)
        if (!forward->defaults[i])
            describe_input(&s, forward->params[i], forward->types[i], &in[out->ninputs++]);
    out->inputs = in;
    return true;
}

static const Module *import(Script *s, Bytes file, const ImportOptions *o)
{
    const TsFunction *forward;
    TsValue           module;

    if (!ts_open(s, file) || (!ts_is_early(s) && !ts_load_constants(s)) ||
        !ts_load_module(s, &module))
        return NULL;
    forward = ts_method(module.object->class, "forward");
    if (!forward || !forward->nparams)
        return error_at(s->c, E_IMPORT, s->loc, "class %s has no forward()",
                        module.object->class->name);
    return run(s, forward, module.object, o);
}

static void say_all(Diags *to, const Diags *from)
{
    for (uint32_t i = 0; i < diag_count(from); i++) {
        DiagRecord r = diag_at(from, i);

        switch (r.kind) {
        case DIAG_IS_ERROR: diag_error(to, r.id, r.loc, "%s", r.text); break;
        case DIAG_IS_WARNING: diag_warn(to, r.id, r.loc, "%s", r.text); break;
        case DIAG_IS_NOTE: diag_note(to, r.loc, "%s", r.text); break;
        case DIAG_IS_HINT: diag_hint(to, "%s", r.text); break;
        }
    }
}

/* Each run may find more states; what is said in the last one counts. */
const Module *ts_import(Ctx *c, const char *path, Bytes file, const ImportOptions *o)
{
    Map          *states = map_new(c->arena);
    Diags        *all = c->diags;
    const Module *m;
    uint32_t      before = diag_errors(all);
    bool          more;

    do {
        Script s = script_of(c, path, o);

        s.im.states = states;
        s.im.found = map_new(c->arena);
        c->diags = diags_new(c->arena);
        m = import(&s, file, o);
        more = !diag_errors(c->diags) && map_count(s.im.found);
        if (!more)
            say_all(all, c->diags);
        c->diags = all;
    } while (more);
    return diag_errors(all) == before ? m : NULL;
}
