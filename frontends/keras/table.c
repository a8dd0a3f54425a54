/* The tables of layers and operations. */
#include "frontends/keras/keras.h"

#include <string.h>

#define none NULL
#define LAYER(name, settings, weights, how, mask, relay, convert) \
    {name, false, settings, weights, how, mask, relay, convert},
#define OPERATION(name, settings, args, how, relay, convert) \
    {name, true, settings, args, how, DROPS, relay, convert},
const KerasRow keras_rows[] = {
#include "frontends/keras/layers.def"
#include "frontends/keras/operations.def"
};
#undef LAYER
#undef OPERATION
#undef none

const uint32_t keras_nrows = COUNT(keras_rows);

const KerasRow *keras_row(const char *name, bool operation)
{
    for (uint32_t i = 0; i < keras_nrows; i++)
        if (keras_rows[i].operation == operation && !strcmp(keras_rows[i].name, name))
            return &keras_rows[i];
    return NULL;
}

/* The next word; n bytes. */
static const char *next_word(const char **at, size_t *n)
{
    const char *p = *at + strspn(*at, " ");

    *n = strcspn(p, " ");
    *at = p + *n;
    return *n ? p : NULL;
}

/* ---- settings --------------------------------------------------------------------------------------- */

static bool ends(const char *name, const char *const *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_ends(name, all[i]))
            return true;
    return false;
}

bool keras_row_has(const KerasRow *row, const char *setting)
{
    /* Of all layers: how weights begin and what training does to them, the inputs' shape, and the
     * name of a function of TensorFlow. */
    static const char *const common[] = {"name",        "trainable",           "dtype",
                                         "batch_shape", "batch_input_shape",   "input_shape",
                                         "input_dtype", "input_dim",           "input_length",
                                         "autocast",    "quantization_config", "function"};
    static const char *const endings[] = {"_initializer", "_regularizer", "_constraint", "init"};
    const char              *word, *at = row->settings;
    size_t                   n;

    for (size_t i = 0; i < COUNT(common); i++)
        if (!strcmp(setting, common[i]))
            return true;
    if (ends(setting, endings, COUNT(endings)))
        return true;
    while ((word = next_word(&at, &n))) {
        char name[64];

        if (*word == '~')
            word++, n--;
        snprintf(name, sizeof name, "%.*s", (int)n, word);
        if (!strcmp(setting, name) || keras_setting_old(setting, name))
            return true;
    }
    return false;
}

/* ---- weights ---------------------------------------------------------------------------------------- */

/* "use_bias": is true or absent; "!mean": is null or
 * false; "score_mode=concat": is that text;
 * "mode!=imag": is not. */
static bool holds(const json_t *config, const char *when)
{
    const char *is = strchr(when, '=');
    bool        other = is && is > when && is[-1] == '!';
    char        name[64];

    snprintf(name, sizeof name, "%.*s", (int)(is ? is - other - when : (long)strlen(when)), when);
    if (is) {
        const char *text = json_string_value(keras_setting(config, name));

        return (text && !strcmp(text, is + 1)) != other;
    }
    if (*name == '!') {
        const json_t *x = keras_setting(config, name + 1);

        return !x || json_is_null(x) || json_is_false(x);
    }
    const json_t *x = keras_setting(config, name);
    return !x || !(json_is_false(x) || json_is_null(x));
}

KerasSlots keras_slots(Ctx *c, const KerasRow *row, const json_t *config, int major)
{
    KerasSlots  out = {0};
    const char *word, *at = row && !row->operation ? row->weights : "", *path = "";
    const char *parts = *at ? keras_parts(row->name, config, major) : NULL;
    size_t      n;

    at = parts ? parts : at;
    while ((word = next_word(&at, &n))) {
        const char *text = intern_n(c->strings, word, n), *when = strchr(text, '?');
        KerasSlot   slot = {.path = path, .fixed = *text == '*'};

        if (text[n - 1] == '/') {
            path = intern_n(c->strings, text, n - 1);
            continue;
        }
        if (when && !holds(config, when + 1))
            continue;
        text += slot.fixed;
        n = when ? (size_t)(when - text) : strlen(text);
        slot.name = *path ? intern_printf(c->strings, "%s/%.*s", path, (int)n, text)
                          : intern_n(c->strings, text, n);
        vec_push(c->arena, &out, slot);
    }
    return out;
}

/* -print-ops=keras: class, layer or operation, module, Relay operator. */
void keras_list_ops(StrBuf *out)
{
    for (uint32_t i = 0; i < keras_nrows; i++) {
        const KerasRow *r = &keras_rows[i];

        str_printf(out, "%-32s %-10s %-14s %s\n", r->name, r->operation ? "operation" : "layer",
                   r->operation ? "keras.ops" : "keras.layers", r->relay ? r->relay : "-");
    }
}
