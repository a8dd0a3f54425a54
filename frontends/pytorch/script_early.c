/* Archives of torch 1.0 to 1.2: the tree of modules is JSON, beside which there is code.
 *
 *     NAME/model.json       {"mainModule": {"name", "torchscriptArena": {"key": "code/NAME.py"},
 *                           "parameters": [{"name": "w", "tensorId": "0"}], "attributes": [{"name":
 *                           "training", "id": "0"}], "submodules": [..]}, "tensors": [{"dims":
 *                           ["5"], "strides": ["1"], "dataType": "FLOAT", "data": {"key":
 *                           "tensors/0"}}]}
 *     NAME/attributes.pkl   values of attributes, a list; tensors in it are positions in "tensors"
 *     NAME/code/NAME.py     functions, the methods of one module; CONSTANTS.c0 is a tensor, too
 *     NAME/libs/..          classes
 *
 * A module becomes an object whose class has these methods. */
#include "base/json.h"
#include "frontends/pytorch/script.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_NESTED = 64 };

typedef struct {
    Script        *s;
    const TsItems *attributes; /* NULL: none */
    uint32_t       depth;
} Early;

static bool wrong(const Script *s, const char *what)
{
    return error_at(s->c, E_PARSE_MODEL, s->loc, "'%smodel.json' does not say %s", s->root, what);
}

/* Integers of 64 bits are texts; what is left out is 0. */
static bool number(const json_t *x, int64_t *out)
{
    const char *text = json_string_value(x);
    char       *end;

    *out = json_integer_value(x);
    if (!x || json_is_integer(x))
        return true;
    *out = text ? strtoll(text, &end, 10) : -1;
    return text && *text && !*end;
}

static bool numbers(Ctx *c, const json_t *list, Ints *out)
{
    size_t   n = json_array_size(list);
    int64_t *v = NEW_ARRAY(c->arena, int64_t, n + 1);

    if (n > MAX_RANK)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!number(json_array_get(list, i), &v[i]) || v[i] < 0)
            return false;
    *out = (Ints){(uint32_t)n, v};
    return true;
}

/* ---- tensors -------------------------------------------------------------------------------------- */

static bool cell_type(const char *name, DType *out)
{
    static const struct {
        const char *name;
        DType       dtype;
    } types[] = {{"FLOAT", DT_F32}, {"DOUBLE", DT_F64}, {"FLOAT16", DT_F16}, {"INT8", DT_I8},
                 {"UINT8", DT_U8},  {"INT16", DT_I16},  {"INT32", DT_I32},   {"INT64", DT_I64},
                 {"BYTE", DT_U8},   {"BOOL", DT_BOOL}};

    for (uint32_t i = 0; name && i < COUNT(types); i++)
        if (!strcmp(name, types[i].name)) {
            *out = types[i].dtype;
            return true;
        }
    return false;
}

static bool read_tensor(Script *s, const json_t *x, const char *name, TsValue *out)
{
    const char *type = json_string_value(json_object_get(x, "dataType")),
               *key = json_string_value(json_object_get(json_object_get(x, "data"), "key"));
    PtPayload   is = {.name = name, .known = true};
    const Expr *e;

    if (!key || !numbers(s->c, json_object_get(x, "dims"), &is.sizes) ||
        !numbers(s->c, json_object_get(x, "strides"), &is.strides) || is.sizes.n != is.strides.n ||
        !number(json_object_get(x, "offset"), &is.offset))
        return wrong(s, arena_printf(s->c->arena, "what '%s' is", name));
    if (!cell_type(type, &is.dtype) || json_is_true(json_object_get(x, "isQuantized")))
        return error_at(s->c, E_UNSUPPORTED, s->loc,
                        "'%s' has cells of %s, which are not supported", name,
                        type ? type : "no type");
    if (!ts_entry(s, key, &is.data) || !(e = pt_constant(s->c, s->loc, &is)))
        return false;
    *out = ts_tensor(s, e);
    out->t->constant = name;
    return true;
}

static bool read_tensors(Script *s, const json_t *list)
{
    s->constants = ts_items(s, TS_TUPLE, 0, NULL).items;
    for (size_t i = 0; i < json_array_size(list); i++) {
        TsValue v;

        if (!read_tensor(s, json_array_get(list, i), intern_printf(s->c->strings, "tensors.%zu", i),
                         &v))
            return false;
        vec_push(s->c->arena, &s->constants->list, v);
    }
    return true;
}

/* ---- modules -------------------------------------------------------------------------------------- */

static bool read_module(Early *l, const json_t *m, const char *path, TsValue *out);

static const TsClass *class_of(Script *s, const json_t *m)
{
    const char *key =
        json_string_value(json_object_get(json_object_get(m, "torchscriptArena"), "key"));
    TsClass *class = NEW(s->c->arena, TsClass);
    const char *slash = key ? strrchr(key, '/') : NULL;
    size_t      n = slash ? strlen(slash + 1) : 0;
    TsFile      file;
    Bytes       text;

    class->name = "a module";
    if (!key)
        return class;
    n = n > 3 && !strcmp(slash + 1 + n - 3, ".py") ? n - 3 : n;
    class->name = slash ? intern_n(s->c->strings, slash + 1, n) : intern(s->c->strings, key);
    if (!ts_entry(s, key, &text) || !ts_parse(s->c, s->loc, class->name, text, &file))
        return NULL;
    class->nmethods = file.nfunctions;
    class->methods = file.functions;
    return class;
}

/* Its name; NULL with an error. */
static const char *name_of(Script *s, const json_t *x)
{
    const char *name = json_string_value(json_object_get(x, "name"));

    if (!name || !*name)
        wrong(s, "what a part of a module is called");
    return name ? intern(s->c->strings, name) : NULL;
}

static const char *path_of(Script *s, const char *path, const char *name)
{
    return *path ? intern_printf(s->c->strings, "%s.%s", path, name) : name;
}

/* Parameters are tensors, attributes members of the pickle. */
static bool read_values(Early *l, TsObject *o, const json_t *list, const char *id,
                        const TsItems *of)
{
    Script *s = l->s;

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *x = json_array_get(list, i);
        const char   *name = name_of(s, x);
        int64_t       at;
        TsValue       v;

        if (!name)
            return false;
        if (!number(json_object_get(x, id), &at) || at < 0 || !of || at >= of->list.n)
            return wrong(s, arena_printf(s->c->arena, "what '%s' is", path_of(s, o->path, name)));
        v = of->list.at[at];
        if (v.kind == TS_TENSOR && str_starts(v.t->constant ? v.t->constant : "", "tensors."))
            v.t->constant = path_of(s, o->path, name);
        ts_put_field(s, o, name, v);
    }
    return true;
}

static bool read_parts(Early *l, TsObject *o, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *x = json_array_get(list, i);
        const char   *name = name_of(l->s, x);
        TsValue       v;

        if (!name || !read_module(l, x, path_of(l->s, o->path, name), &v))
            return false;
        ts_put_field(l->s, o, name, v);
    }
    return true;
}

static bool read_module(Early *l, const json_t *m, const char *path, TsValue *out)
{
    Script   *s = l->s;
    TsObject *o = NEW(s->c->arena, TsObject);
    bool      ok;

    if (!json_is_object(m) || ++l->depth > MOST_NESTED)
        return wrong(s, "what its modules are");
    *out = (TsValue){.kind = TS_OBJECT, .object = o};
    o->path = path;
    ok = (o->class = class_of(s, m)) &&
         read_values(l, o, json_object_get(m, "parameters"), "tensorId", s->constants) &&
         read_values(l, o, json_object_get(m, "attributes"), "id", l->attributes) &&
         read_parts(l, o, json_object_get(m, "submodules"));
    l->depth--;
    return ok;
}

bool ts_is_early(Script *s)
{
    return map_get(s->entries, PTR_KEY(intern_printf(s->c->strings, "%smodel.json", s->root)));
}

bool ts_load_early(Script *s, TsValue *out)
{
    Early   l = {.s = s};
    json_t *root = NULL;
    TsValue list = {.kind = TS_LIST};
    Bytes   text;
    bool    ok;

    if (!ts_entry(s, "model.json", &text))
        return false;
    if (!(root = json_read(text, NULL)))
        return wrong(s, "anything that can be read");
    ok = read_tensors(s, json_object_get(root, "tensors"));
    if (ok &&
        map_get(s->entries, PTR_KEY(intern_printf(s->c->strings, "%sattributes.pkl", s->root)))) {
        ok = ts_load_pickle(s, "attributes.pkl", "tensors/", "attributes", &list) &&
             (list.items || wrong(s, "the values of its attributes"));
        l.attributes = list.items;
    }
    ok = ok && read_module(&l, json_object_get(root, "mainModule"), "", out);
    json_decref(root);
    return ok;
}
