/* All layers of all models before anything is built: classes that are not known, and settings that
 * their row does not have, all at once. */
#include "frontends/keras/keras.h"

#include <string.h>

typedef struct {
    KerasImport *im;
    Findings     findings;
} Survey;

static void found(Survey *s, DiagId id, const KerasLayer *l, const char *hint, const char *fmt, ...)
    PRINTF_LIKE(5, 6);
static void found(Survey *s, DiagId id, const KerasLayer *l, const char *hint, const char *fmt, ...)
{
    Finding f = {.id = id,
                 .op = id == E_UNSUPPORTED_OP ? NULL : l->class_name,
                 .hint = hint,
                 .first = l->name,
                 .ordinal = l->ordinal};
    va_list ap;

    va_start(ap, fmt);
    finding_addv(s->im->c, &s->findings, f, fmt, ap);
    va_end(ap);
}

/* ---- classes ---------------------------------------------------------------------------------------- */

/* Why a class is not in the table, and what to do. */
static const char *hint_of(const KerasLayer *l)
{
    static const struct {
        const char *name, *hint;
    } hints[] = {
        {"Lambda",
         "its Python code cannot be compiled: build the model with functions of keras.ops, "
         "or export it as ONNX"},
        {"TFSMLayer", "name the SavedModel folder that it reads"},
        {"StringLookup", "strings are not compiled: leave it before the model"},
        {"TextVectorization", "strings are not compiled: leave it before the model"},
    };

    for (uint32_t i = 0; i < COUNT(hints); i++)
        if (!strcmp(l->class_name, hints[i].name))
            return hints[i].hint;
    return NULL;
}

static void check_class(Survey *s, const KerasLayer *l)
{
    const char *hint = hint_of(l);

    if (l->foreign) {
        found(s, E_UNSUPPORTED_OP, l,
              "its Python code is not in the file: build it of Keras's layers, or export the model "
              "as ONNX",
              "layer %s is the user's own class", l->class_name);
    } else if (!hint) {
        VEC(const char *) names = {0};
        const char *near;

        for (uint32_t i = 0; i < keras_nrows; i++)
            if (keras_rows[i].operation == l->operation)
                vec_push(s->im->c->scratch, &names, keras_rows[i].name);
        near = str_closest(l->class_name, names.at, names.n);
        if (near)
            hint = arena_printf(s->im->c->arena, "did you mean '%s'?", near);
        found(s, E_UNSUPPORTED_OP, l, hint, "%s %s is not supported",
              l->operation ? "operation" : "layer", l->class_name);
    } else {
        found(s, E_UNSUPPORTED_OP, l, hint, "layer %s is not supported", l->class_name);
    }
}

/* ---- settings --------------------------------------------------------------------------------------- */

static const char *nearest(Survey *s, const KerasRow *row, const char *name)
{
    Arena *a = s->im->c->arena;
    VEC(const char *) names = {0};
    const char *near;

    for (const char *p = row->settings; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");

        vec_push(a, &names, arena_printf(a, "%.*s", (int)(n - (*p == '~')), p + (*p == '~')));
        p += n;
    }
    near = str_closest(name, names.at, names.n);
    return near ? arena_printf(a, "did you mean '%s'?", near) : NULL;
}

/* Quantized layers have other weights. */
static void check_dtype(Survey *s, const KerasLayer *l)
{
    const json_t *x = json_object_get(l->config, "dtype");
    const char   *name = json_string_value(x);

    if (!name)
        name = json_string_value(json_object_get(json_object_get(x, "config"), "name"));
    if (!name)
        name = json_string_value(json_object_get(json_object_get(x, "config"), "mode"));
    if (name && (strstr(name, "_from_") || !strcmp(name, "int8") || !strcmp(name, "int4")) &&
        strcmp(l->class_name, "InputLayer") != 0)
        found(s, E_UNSUPPORTED, l, "convert it to TensorFlow Lite, whose integers are known",
              "it is quantized: %s", name);
}

static void check_layer(Survey *s, const KerasLayer *l)
{
    const char *name;
    json_t     *x;

    if (!l->row) {
        check_class(s, l);
        return;
    }
    if (!l->operation)
        check_dtype(s, l);
    json_object_foreach((json_t *)(uintptr_t)l->config, name, x)
    {
        if (!keras_row_has(l->row, name))
            found(s, W_UNKNOWN_ATTRIBUTE, l, nearest(s, l->row, name), "setting '%s' is not known",
                  name);
    }
}

/* Layers were read KERAS_MAX_NESTING deep at most. */
static void check_all(Survey *s, const KerasLayer *l)
{
    if (!l->model)
        check_layer(s, l);
    for (uint32_t i = 0; i < l->kids.n; i++)
        check_all(s, l->kids.at[i]);
}

bool keras_survey(KerasImport *im)
{
    Survey   s = {.im = im, .findings = {.path = im->path, .noun = "layer"}};
    uint32_t before = diag_errors(im->c->diags);

    check_all(&s, im->model);
    findings_report(im->c, &s.findings);
    return diag_errors(im->c->diags) == before;
}
