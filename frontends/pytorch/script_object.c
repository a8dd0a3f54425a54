/* Pickles as values: the module with its attributes, and the constants of its code.
 *
 *     __torch__.a.B(), state {..}             an object of a class of the archive
 *     torch._utils._rebuild_tensor_v2(storage, offset, sizes, strides, ..)
 *                                             a tensor; the storage is ("storage",
 * torch.FloatStorage, "0", "cpu", cells), cells of the entry data/0
 *     torch.jit._pickle.build_intlist([..])   a list, and so on
 *
 * Values that the pickle shares are one: attributes that are the same tensor stay the same. */
#include "frontends/pytorch/script.h"

#include <string.h>

enum { MOST_NESTED = 64 };

typedef struct {
    Script     *s;
    const char *folder; /* of the storages: "data/" */
    Map        *values; /* id of a Pickle -> TsValue; NULL: it is being made */
    uint32_t    depth;
} Loader;

static bool make(Loader *l, const Pickle *p, const char *path, TsValue *out);

static bool wrong(Loader *l, const char *path, const char *what)
{
    return error_at(l->s->c, E_IMPORT, l->s->loc, "'%s' is no proper %s", path, what);
}

/* ---- tensors -------------------------------------------------------------------------------------- */

/* (torch.per_tensor_affine, scale, zero), or (torch.per_channel_affine, scales, zeros, axis) */
static bool make_scale(Loader *l, const Pickle *p, const char *path, DType t, Ints sizes,
                       const PtScale **out)
{
    Script  *s = l->s;
    Build    b = {.c = s->c, .loc = s->loc, .what = path};
    PtScale *scale = NEW(s->c->arena, PtScale);
    TsValue  of, zero;
    int64_t  axis;

    if (p->kind != PICKLE_TUPLE || p->items.n < 3 || p->items.at[0]->kind != PICKLE_GLOBAL)
        return wrong(l, path, "quantized tensor");
    if (!make(l, p->items.at[1], path, &of) || !make(l, p->items.at[2], path, &zero))
        return false;
    if (!strcmp(p->items.at[0]->text, "torch.per_tensor_affine")) {
        double  v;
        int64_t z;

        if (!ts_known_float(&of, &v) || !ts_known_int(&zero, &z))
            return wrong(l, path, "quantized tensor");
        *out = pt_scale(&b, v, z, t);
        return true;
    }
    if (strcmp(p->items.at[0]->text, "torch.per_channel_affine") != 0)
        return error_at(s->c, E_UNSUPPORTED, s->loc,
                        "'%s' is quantized by %s, which is not supported", path,
                        p->items.at[0]->text);
    if (p->items.n < 4 || p->items.at[3]->kind != PICKLE_INT || of.kind != TS_TENSOR ||
        zero.kind != TS_TENSOR)
        return wrong(l, path, "quantized tensor");
    axis = p->items.at[3]->i;
    if (axis < 0 || axis >= sizes.n || expr_rank(of.t->e) != 1 || expr_rank(zero.t->e) != 1 ||
        build_dim(&b, of.t->e, 0) != sizes.at[axis] ||
        build_dim(&b, zero.t->e, 0) != sizes.at[axis])
        return wrong(l, path, "quantized tensor");
    scale->axis = axis;
    scale->scale = build_fold(&b, build_cast(&b, of.t->e, DT_F32));
    scale->zero = build_fold(&b, build_cast(&b, zero.t->e, t));
    *out = scale;
    return (scale->scale && scale->zero) || wrong(l, path, "quantized tensor");
}

/* A tensor; of _rebuild_qtensor the fifth argument says its scale. */
static bool make_tensor(Loader *l, const Pickle *p, const char *path, TsValue *out)
{
    Script       *s = l->s;
    const Pickle *args = p->args;
    PtPayload     is = {.name = path};
    const Expr   *e;
    bool          scaled = str_ends(p->text, "qtensor");

    if (!pt_pickled_tensor(s->c, s->loc, p, &is))
        return false;
    if (scaled != is.scaled || (scaled && args->items.n < 5))
        return wrong(l, path, "tensor");
    if (!ts_entry(s, arena_printf(s->c->arena, "%s%s", l->folder, is.path), &is.data) ||
        !(e = pt_constant(s->c, s->loc, &is)))
        return false;
    *out = ts_tensor(s, e);
    out->t->constant = path;
    out->t->cells = scaled ? PT_QUANTIZED : is.complex ? PT_COMPLEX : PT_REAL;
    return !scaled || make_scale(l, args->items.at[4], path, is.dtype, is.sizes, &out->t->scale);
}

/* ---- others ----------------------------------------------------------------------------------------- */

static bool make_items(Loader *l, const Pickle *p, TsKind kind, const char *path, TsValue *out)
{
    Script *s = l->s;

    *out = ts_items(s, kind, 0, NULL);
    for (uint32_t i = 0; i < p->items.n; i++) {
        TsValue v;

        if (!make(l, p->items.at[i], intern_printf(s->c->strings, "%s.%u", path, i), &v))
            return false;
        vec_push(s->c->arena, &out->items->list, v);
    }
    return true;
}

/* What torch.jit._pickle makes of a list, and of a value whose type is said. */
static bool make_tagged(Loader *l, const Pickle *p, const char *path, TsValue *out)
{
    const Pickle *first = p->args->items.n ? p->args->items.at[0] : NULL;
    const char   *fn = p->text + strlen("torch.jit._pickle.");

    if (!first)
        return wrong(l, path, "list");
    if (!strcmp(fn, "build_tensor_from_id")) {
        uint32_t n = l->s->constants ? l->s->constants->list.n : 0;

        if (first->kind != PICKLE_INT || first->i < 0 || first->i >= n)
            return wrong(l, path, "tensor");
        *out = l->s->constants->list.at[first->i];
        return true;
    }
    if (!strcmp(fn, "restore_type_tag") || str_starts(fn, "build_"))
        return make(l, first, path, out);
    return error_at(l->s->c, E_UNSUPPORTED, l->s->loc, "'%s' is made by %s, which is not known",
                    path, p->text);
}

static bool make_call(Loader *l, const Pickle *p, const char *path, TsValue *out)
{
    Script *s = l->s;

    if (!strcmp(p->text, "torch._utils._rebuild_tensor_v2") ||
        !strcmp(p->text, "torch._utils._rebuild_tensor") ||
        !strcmp(p->text, "torch._utils._rebuild_qtensor"))
        return make_tensor(l, p, path, out);
    if (str_starts(p->text, "torch._utils._rebuild_parameter") && p->args->items.n)
        return make(l, p->args->items.at[0], path, out);
    if (!strcmp(p->text, "collections.OrderedDict"))
        return make_items(l, p, TS_DICT, path, out);
    if (!strcmp(p->text, "torch.device")) {
        *out = (TsValue){.kind = TS_DEVICE};
        return true;
    }
    if (str_starts(p->text, "torch.jit._pickle."))
        return make_tagged(l, p, path, out);
    error_at(s->c, E_UNSUPPORTED, s->loc, "'%s' is made by %s, which is not known", path, p->text);
    diag_hint(s->c->diags,
              "nothing in a pickle is run; tensors, lists and the classes in the archive "
              "are read");
    return false;
}

/* What the class's own code makes of a state; it is run as the code of forward() is. */
static bool set_state(Loader *l, TsObject *o, const Pickle *p)
{
    Script           *s = l->s;
    const TsFunction *fn = ts_method(o->class, "__setstate__");
    Frame             f = {.s = s, .function = fn, .path = o->path};
    TsValue           state, none;

    f.values = map_new(s->c->arena);
    if (!make(l, p, o->path, &state))
        return false;
    s->loading++;
    bool ok = ts_call_function(&f, fn, o, 1, &state, NULL, &none);

    s->loading--;
    return ok;
}

static bool make_object(Loader *l, const Pickle *p, const char *path, TsValue *out)
{
    Script *s = l->s;
    const TsClass *class = ts_class(s, p->text);
    TsObject *o = NEW(s->c->arena, TsObject);

    if (diag_errors(s->c->diags))
        return false;
    if (p->state && str_starts(p->text, "__torch__.torch.classes.quantized.")) {
        TsValue state;

        return make(l, p->state, path, &state) && ts_packed(s, p->text, &state, path, out);
    }
    if (!class) {
        error_at(s->c, E_UNSUPPORTED, s->loc, "%s is of class %s, which the archive does not have",
                 *path ? arena_printf(s->c->arena, "'%s'", path) : "the model", p->text);
        return false;
    }
    if (p->state && p->state->kind != PICKLE_DICT && !ts_method(class, "__setstate__"))
        return error_at(s->c, E_UNSUPPORTED, s->loc,
                        "'%s' (%s) keeps its state in a way of its own", path, p->text);
    o->class = class;
    o->path = path;
    *out = (TsValue){.kind = TS_OBJECT, .object = o};
    map_put(l->values, (uint64_t)p->id + 1, DUP_ARRAY(s->c->arena, out, 1));
    if (p->state && ts_method(class, "__setstate__"))
        return set_state(l, o, p->state);
    for (uint32_t i = 0; p->state && i + 1 < p->state->items.n; i += 2) {
        const Pickle *key = p->state->items.at[i];
        const char   *name;
        TsValue       v;

        if (key->kind != PICKLE_TEXT)
            return wrong(l, path, "object");
        name = intern(s->c->strings, key->text);
        if (!make(l, p->state->items.at[i + 1],
                  *path ? intern_printf(s->c->strings, "%s.%s", path, name) : name, &v))
            return false;
        ts_put_field(s, o, name, v);
    }
    return true;
}

static bool make_new(Loader *l, const Pickle *p, const char *path, TsValue *out)
{
    Script *s = l->s;

    switch (p->kind) {
    case PICKLE_NONE: *out = ts_none(); return true;
    case PICKLE_BOOL: *out = ts_bool(s, p->i); return true;
    case PICKLE_INT: *out = ts_int(s, p->i); return true;
    case PICKLE_FLOAT: *out = ts_float(p->f); return true;
    case PICKLE_TEXT: *out = ts_text(intern(s->c->strings, p->text)); return true;
    case PICKLE_LIST: return make_items(l, p, TS_LIST, path, out);
    case PICKLE_TUPLE: return make_items(l, p, TS_TUPLE, path, out);
    case PICKLE_DICT: return make_items(l, p, TS_DICT, path, out);
    case PICKLE_CALL: return make_call(l, p, path, out);
    case PICKLE_OBJECT: return make_object(l, p, path, out);
    case PICKLE_GLOBAL:
        return error_at(s->c, E_UNSUPPORTED, s->loc, "'%s' is %s, which is no value", path,
                        p->text);
    case PICKLE_PERSISTENT: break;
    }
    return wrong(l, path, "value");
}

static bool make(Loader *l, const Pickle *p, const char *path, TsValue *out)
{
    TsValue *had;
    bool     ok;

    if (map_find(l->values, (uint64_t)p->id + 1, (void **)&had)) {
        if (!had)
            return wrong(l, path, "value: it contains itself");
        *out = *had;
        return true;
    }
    if (++l->depth > MOST_NESTED)
        return wrong(l, path, "value: it is nested too deep");
    map_put(l->values, (uint64_t)p->id + 1, NULL);
    ok = make_new(l, p, path, out);
    l->depth--;
    if (ok)
        map_put(l->values, (uint64_t)p->id + 1, DUP_ARRAY(l->s->c->arena, out, 1));
    return ok;
}

bool ts_load_pickle(Script *s, const char *pickle, const char *folder, const char *path,
                    TsValue *out)
{
    Loader  l = {.s = s, .folder = folder};
    Bytes   bytes;
    Pickle *p;

    l.values = map_new(s->c->arena);
    return ts_entry(s, pickle, &bytes) &&
           (p = pickle_read(s->c->diags, s->c->arena, s->loc, pickle, bytes)) &&
           make(&l, p, path, out);
}

bool ts_load_module(Script *s, TsValue *out)
{
    if (ts_is_early(s))
        return ts_load_early(s, out);
    return ts_load_pickle(s, "data.pkl", "data/", "", out) &&
           (out->kind == TS_OBJECT ||
            error_at(s->c, E_IMPORT, s->loc, "the archive holds no module, but %s",
                     ts_kind_text(s, out)));
}

bool ts_load_constants(Script *s)
{
    TsValue v;

    if (!map_get(s->entries, PTR_KEY(intern_printf(s->c->strings, "%sconstants.pkl", s->root)))) {
        s->constants = ts_items(s, TS_TUPLE, 0, NULL).items;
        return true;
    }
    if (!ts_load_pickle(s, "constants.pkl", "constants/", "CONSTANTS", &v))
        return false;
    if (v.kind != TS_TUPLE && v.kind != TS_LIST)
        return error_at(s->c, E_IMPORT, s->loc, "the constants of the archive are %s",
                        ts_kind_text(s, &v));
    s->constants = v.items;
    return true;
}
