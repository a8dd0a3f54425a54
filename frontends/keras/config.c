/* The configuration as layers, their calls, and models within models.
 *
 * Calls have had two forms.  In the older one a call is a list of [layer, call, result, {names}],
 *
 *     "inbound_nodes": [[["conv", 0, 0, {}], ["skip", 0, 0, {}]]]
 *
 * (or only one such, of functions of TensorFlow), in that of Keras 3 it has arguments in which a
 * tensor says whose result it is:
 *
 *     "inbound_nodes": [{"args": [{"class_name": "__keras_tensor__",
 *                                  "config": {"keras_history": ["conv", 0, 0], ..}}],
 *                        "kwargs": {}}] */
#include "frontends/keras/keras.h"

#include <string.h>

static const char *text_at(KerasReading *r, const json_t *at, const char *key)
{
    const char *text = json_string_value(json_object_get(at, key));

    return text ? intern(r->c->strings, text) : NULL;
}

static bool bad(KerasReading *r, const char *name, const char *what)
{
    return error_at(r->c, E_PARSE_MODEL, (Loc){.file = r->path},
                    "the configuration of '%s' has something else where %s should be", name, what);
}

/* ---- arguments of calls ---------------------------------------------------------------------------- */

static bool read_arg(KerasReading *r, const char *who, const json_t *x, KerasArg *out);

static bool read_history(KerasReading *r, const char *who, const json_t *x, KerasArg *out)
{
    const json_t *layer = json_array_get(x, 0), *call = json_array_get(x, 1),
                 *tensor = json_array_get(x, 2);

    if (!json_is_string(layer) || !json_is_integer(call) || !json_is_integer(tensor))
        return bad(r, who, "a tensor");
    *out = (KerasArg){.kind = KERAS_TENSOR,
                      .layer = intern(r->c->strings, json_string_value(layer)),
                      .call = json_integer_value(call),
                      .tensor = json_integer_value(tensor),
                      .json = x};
    return true;
}

/* ["conv", 0, 0], perhaps with a dictionary behind it. */
static bool is_history(const json_t *x)
{
    size_t n = json_array_size(x);

    return (n == 3 || n == 4) && json_is_string(json_array_get(x, 0)) &&
           json_is_integer(json_array_get(x, 1)) && json_is_integer(json_array_get(x, 2));
}

static bool has_tensor(const json_t *x, uint32_t depth)
{
    const json_t *v;
    const char *class = json_string_value(json_object_get(x, "class_name"));
    size_t i;

    if (depth > KERAS_MAX_NESTING)
        return false;
    if (class)
        return !strcmp(class, "__keras_tensor__") ||
               (!strcmp(class, "__tuple__") && has_tensor(json_object_get(x, "items"), depth + 1));
    if (is_history(x))
        return true;
    json_array_foreach((json_t *)(uintptr_t)x, i, v) if (has_tensor(v, depth + 1)) return true;
    return false;
}

static bool read_list(KerasReading *r, const char *who, const json_t *x, KerasArg *out)
{
    uint32_t n = (uint32_t)json_array_size(x);
    bool     ok = true;

    if (++r->depth > KERAS_MAX_NESTING)
        return bad(r, who, "an argument");
    *out = (KerasArg){
        .kind = KERAS_LIST, .n = n, .at = NEW_ARRAY(r->c->arena, KerasArg, n + 1), .json = x};
    for (uint32_t i = 0; i < n && ok; i++)
        ok = read_arg(r, who, json_array_get(x, i), &out->at[i]);
    r->depth--;
    return ok;
}

static bool read_arg(KerasReading *r, const char *who, const json_t *x, KerasArg *out)
{
    const char *class = json_string_value(json_object_get(x, "class_name"));

    if (class && !strcmp(class, "__keras_tensor__"))
        return read_history(r, who, json_object_get(json_object_get(x, "config"), "keras_history"),
                            out);
    if (class && !strcmp(class, "__tuple__") && has_tensor(x, 0))
        return read_list(r, who, json_object_get(x, "items"), out);
    if (is_history(x))
        return read_history(r, who, x, out);
    if (json_is_array(x) && has_tensor(x, 0))
        return read_list(r, who, x, out);
    *out = (KerasArg){.kind = KERAS_JSON, .json = x};
    return true;
}

static bool read_named(KerasReading *r, const char *who, const json_t *dict, KerasArg *at)
{
    const char *name;
    json_t     *x;
    uint32_t    i = 0;

    json_object_foreach((json_t *)(uintptr_t)dict, name, x)
    {
        if (!read_arg(r, who, x, &at[i]))
            return false;
        at[i++].name = intern(r->c->strings, name);
    }
    return true;
}

/* [["conv", 0, 0, {}], ..], or one of them. */
static bool read_old_call(KerasReading *r, const char *who, const json_t *x, KerasCall *out)
{
    bool          alone = json_is_string(json_array_get(x, 0));
    uint32_t      n = alone ? 1 : (uint32_t)json_array_size(x);
    const json_t *names = json_array_get(alone ? x : json_array_get(x, 0), 3);
    uint32_t      nnames = (uint32_t)json_object_size(names);
    KerasArg     *list = NEW_ARRAY(r->c->arena, KerasArg, n + 1);

    out->n = 1 + nnames;
    out->args = NEW_ARRAY(r->c->arena, KerasArg, out->n);
    for (uint32_t i = 0; i < n; i++) {
        const json_t *t = alone ? x : json_array_get(x, i);

        if (is_history(t)) {
            if (!read_history(r, who, t, &list[i]))
                return false;
        } else if (json_array_size(t) >= 3 && json_is_string(json_array_get(t, 0)) &&
                   !strcmp(json_string_value(json_array_get(t, 0)), "_CONSTANT_VALUE")) {
            list[i] = (KerasArg){.kind = KERAS_JSON, .json = json_array_get(t, 2)};
        } else {
            return bad(r, who, "a call");
        }
    }
    out->args[0] = n == 1 ? list[0] : (KerasArg){.kind = KERAS_LIST, .n = n, .at = list, .json = x};
    return read_named(r, who, names, out->args + 1);
}

static bool read_call(KerasReading *r, const char *who, const json_t *x, KerasCall *out)
{
    const json_t *args = json_object_get(x, "args"), *names = json_object_get(x, "kwargs");
    const json_t *items = json_object_get(args, "items"); /* of a tuple */
    uint32_t      n;

    if (json_is_array(x))
        return read_old_call(r, who, x, out);
    args = items ? items : args;
    n = (uint32_t)json_array_size(args);
    if (!json_is_array(args) || !json_is_object(names))
        return bad(r, who, "a call");
    out->n = n + (uint32_t)json_object_size(names);
    out->args = NEW_ARRAY(r->c->arena, KerasArg, out->n + 1);
    for (uint32_t i = 0; i < n; i++)
        if (!read_arg(r, who, json_array_get(args, i), &out->args[i]))
            return false;
    return read_named(r, who, names, out->args + n);
}

/* ---- layers ----------------------------------------------------------------------------------------- */

static bool is_model(const char *class)
{
    return !strcmp(class, "Functional") || !strcmp(class, "Model") || !strcmp(class, "Sequential");
}

/* A function of keras.ops; .h5 files do not name the module. */
static bool is_operation(const KerasReading *r, const char *module, const json_t *config)
{
    if (module)
        return strstr(module, ".ops.") != NULL;
    return r->major >= 3 && json_object_get(config, "name") &&
           !json_object_get(config, "trainable") && !json_object_get(config, "dtype") &&
           !json_object_get(config, "layers");
}

static bool read_model(KerasReading *r, KerasLayer *l, const json_t *config);

static KerasLayer *read_layer(KerasReading *r, KerasLayer *outside, const json_t *at,
                              const char *part)
{
    const json_t *config = json_object_get(at, "config"),
                 *id = json_object_get(at, "shared_object_id");
    const char *class = text_at(r, at, "class_name"), *module = text_at(r, at, "module");
    const char *registered = text_at(r, at, "registered_name");
    const char *function = text_at(r, config, "function");
    KerasLayer *l = NEW(r->c->arena, KerasLayer);

    if (!class || !(json_is_object(config) || json_is_array(config))) {
        bad(r, outside ? outside->name : "the model", "a layer");
        return NULL;
    }
    l->class_name = intern(r->c->strings, keras_class_now(class));
    l->written = class;
    l->name = text_at(r, at, "name");
    if (!l->name && !(l->name = text_at(r, config, "name")))
        l->name = part ? intern(r->c->strings, part) : l->class_name;
    l->part = part;
    l->config = config;
    l->outside = outside;
    l->ordinal = r->ordinal;
    l->trainable = !json_is_false(json_object_get(config, "trainable"));
    l->shared = json_integer_value(id);
    l->operation = is_operation(r, module, config);
    if (function && !module)
        module = "keras";
    if (!strcmp(class, "TFOpLambda") || !strcmp(class, "SlicingOpLambda")) {
        l->operation = true;
        l->class_name = intern(
            r->c->strings,
            keras_class_now(intern_printf(r->c->strings, "tf.%s", function ? function : "?")));
        registered = NULL;
    }
    l->foreign = strchr(class, '>') || (registered && module && !str_starts(module, "keras") &&
                                        !str_starts(module, "tf_keras"));
    if (++r->depth > KERAS_MAX_NESTING) {
        error_at(r->c, E_UNSUPPORTED, (Loc){.file = r->path}, "layers are nested more than %d deep",
                 KERAS_MAX_NESTING);
        return NULL;
    }
    if (!l->foreign && is_model(class)) {
        if (!read_model(r, l, config))
            return NULL;
    } else if (!l->foreign) {
        l->row = keras_row(l->class_name, l->operation);
    }
    r->depth--;
    return l;
}

static bool add_inside(KerasReading *r, KerasLayer *l, const json_t *at, const char *part)
{
    KerasLayer *kid = json_is_object(at) ? keras_read_inside(r, l, at, part) : NULL;

    if (!kid)
        return !json_is_object(at) && bad(r, l->name, part);
    vec_push(r->c->arena, &l->kids, kid);
    return true;
}

/* A setting that is a list of layers; their parts are numbered by class: "cells/lstm_cell_1". */
static bool add_list(KerasReading *r, KerasLayer *l, const char *setting)
{
    Map          *used = map_new(r->c->scratch);
    const json_t *x;
    size_t        i;

    json_array_foreach((json_t *)(uintptr_t)json_object_get(l->config, setting), i, x)
    {
        const char *class = json_string_value(json_object_get(x, "class_name")), *part;
        const char *snake = intern(r->c->strings, keras_snake(r->c->scratch, class ? class : ""));
        uintptr_t   n = (uintptr_t)map_get(used, PTR_KEY(snake));

        map_put(used, PTR_KEY(snake), (void *)(n + 1));
        part = n ? intern_printf(r->c->strings, "%s/%s_%llu", setting, snake, (unsigned long long)n)
                 : intern_printf(r->c->strings, "%s/%s", setting, snake);
        if (!add_inside(r, l, x, part))
            return false;
    }
    return true;
}

/* Layers in settings: what is wrapped, the cells of recurrent layers. */
static bool read_insides(KerasReading *r, KerasLayer *l)
{
    const json_t *layer = json_object_get(l->config, "layer");
    const json_t *backward = json_object_get(l->config, "backward_layer");

    if (!l->row || l->operation)
        return true;
    if (!strcmp(l->class_name, "Bidirectional"))
        return add_inside(r, l, layer, "forward_layer") &&
               add_inside(r, l, json_is_object(backward) ? backward : layer, "backward_layer");
    if (!strcmp(l->class_name, "RNN"))
        return add_inside(r, l, json_object_get(l->config, "cell"), "cell");
    if (!strcmp(l->class_name, "Pipeline"))
        return add_list(r, l, "layers");
    if (!strcmp(l->class_name, "StackedRNNCells"))
        return add_list(r, l, "cells");
    return !layer || add_inside(r, l, layer, "layer");
}

KerasLayer *keras_read_inside(KerasReading *r, KerasLayer *outside, const json_t *at,
                              const char *part)
{
    KerasLayer *l = read_layer(r, outside, at, part);

    return l && (l->model || read_insides(r, l)) ? l : NULL;
}

/* ---- models ----------------------------------------------------------------------------------------- */

static bool read_calls(KerasReading *r, KerasLayer *l, const json_t *nodes)
{
    const json_t *x;
    size_t        i;

    if (!strcmp(l->class_name, "InputLayer")) {
        vec_push(r->c->arena, &l->calls, (KerasCall){0});
        return true;
    }
    json_array_foreach((json_t *)(uintptr_t)nodes, i, x)
    {
        KerasCall call;

        if (!read_call(r, l->name, x, &call))
            return false;
        vec_push(r->c->arena, &l->calls, call);
    }
    return true;
}

/* "input_layers" and "output_layers": a tensor, or lists and dictionaries of them. */
static bool read_ports(KerasReading *r, const char *who, const json_t *x, KerasArg *out)
{
    bool ok = true;

    if (is_history(x))
        return read_history(r, who, x, out);
    if (json_is_object(x)) {
        uint32_t    n = (uint32_t)json_object_size(x), i = 0;
        KerasArg   *at = NEW_ARRAY(r->c->arena, KerasArg, n + 1);
        const char *name;
        json_t     *v;

        *out = (KerasArg){.kind = KERAS_LIST, .n = n, .at = at, .json = x};
        json_object_foreach((json_t *)(uintptr_t)x, name, v)
        {
            if (!read_ports(r, who, v, &at[i]))
                return false;
            at[i++].name = intern(r->c->strings, name);
        }
        return true;
    }
    if (!json_is_array(x) || ++r->depth > KERAS_MAX_NESTING)
        return bad(r, who, "its inputs and outputs");
    *out = (KerasArg){.kind = KERAS_LIST, .n = (uint32_t)json_array_size(x), .json = x};
    out->at = NEW_ARRAY(r->c->arena, KerasArg, out->n + 1);
    for (uint32_t i = 0; i < out->n && ok; i++)
        ok = read_ports(r, who, json_array_get(x, i), &out->at[i]);
    r->depth--;
    return ok;
}

static bool read_model(KerasReading *r, KerasLayer *l, const json_t *config)
{
    const json_t *list = json_is_array(config) ? config : json_object_get(config, "layers"), *x;
    bool          outermost = !l->outside;
    KerasModel   *m = l->model = NEW(r->c->arena, KerasModel);
    size_t        i;

    m->self = l;
    m->sequential = !strcmp(l->class_name, "Sequential");
    m->names = map_new(r->c->arena);
    if (!json_is_array(list))
        return bad(r, l->name, "its layers");
    json_array_foreach((json_t *)(uintptr_t)list, i, x)
    {
        KerasLayer *kid;

        if (outermost)
            r->ordinal = (uint32_t)i + 1;
        if (!(kid = keras_read_inside(r, l, x, NULL)))
            return false;
        if (map_get(m->names, PTR_KEY(kid->name)))
            return error_at(r->c, E_IMPORT, (Loc){.file = r->path}, "'%s' has two layers '%s'",
                            l->name, kid->name);
        map_put(m->names, PTR_KEY(kid->name), kid);
        vec_push(r->c->arena, &l->kids, kid);
        if (!m->sequential && !read_calls(r, kid, json_object_get(x, "inbound_nodes")))
            return false;
    }
    return m->sequential ||
           (read_ports(r, l->name, json_object_get(config, "input_layers"), &m->in) &&
            read_ports(r, l->name, json_object_get(config, "output_layers"), &m->out) &&
            keras_order(r, m));
}

KerasLayer *keras_read_config(Ctx *c, const char *path, const KerasArchive *a)
{
    KerasReading r = {.c = c, .path = path, .major = a->major};
    KerasLayer  *l = read_layer(&r, NULL, a->config, NULL);

    if (l && !l->model) {
        error_at(c, E_UNSUPPORTED, (Loc){.file = path},
                 "the model is of class %s, which is Python code and not in the file",
                 l->class_name);
        diag_hint(c->diags,
                  "build it by keras.Model(inputs, outputs) or keras.Sequential, or export it "
                  "as ONNX");
        return NULL;
    }
    return l;
}
