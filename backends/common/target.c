/* Target strings of devices: which model, how many threads a block may have, what the device's
 * backend knows beside that, and the CPU that drives it. */
#include "backends/common/device.h"

#include <stdlib.h>
#include <string.h>

static const char *const options[] = {"-max_threads_per_block", "-max_num_threads", "-device"};

static bool has_models(const Device *d)
{
    return d->models[1].warp > 0;
}

static void use_model(Target *t, const DeviceModel *m)
{
    t->vector_regs = m->registers;
    t->shared_bytes = m->shared_bytes;
    t->warp = m->warp;
}

/* One of several, by its name. */
static bool choose_model(Ctx *c, Target *t, const char *word, const char *name,
                         const DeviceModel **model)
{
    StrBuf all = strbuf(c->scratch);

    for (const DeviceModel *m = t->backend->device->models; m->warp; m++) {
        if (m->name && !strcmp(m->name, name)) {
            *model = m;
            use_model(t, m);
            return true;
        }
        if (m->name)
            str_printf(&all, "%s%s", all.n ? ", " : "", m->name);
    }
    error_at(c, E_TARGET, NO_LOC, "'%s': the target '%s' knows no such device", word,
             t->backend->name);
    diag_hint(c->diags, "one of %s; without the option: any", all.at);
    return false;
}

static bool option(Ctx *c, Target *t, const char *word, const DeviceModel **model)
{
    const char *eq = strchr(word, '=');
    size_t      n = eq ? (size_t)(eq - word) : strlen(word);
    const char *near, *name = intern_n(c->strings, word, n);

    if (eq && !strcmp(name, "-device") && has_models(t->backend->device))
        return choose_model(c, t, word, eq + 1, model);
    if (eq && (!strcmp(name, "-max_threads_per_block") || !strcmp(name, "-max_num_threads"))) {
        char *end;
        long  v = strtol(eq + 1, &end, 10);
        if (end == eq + 1 || *end || v < 1 || v > (long)t->backend->device->most_threads)
            return error_at(c, E_TARGET, NO_LOC, "'%s': a block has 1 to %u threads", word,
                            t->backend->device->most_threads);
        t->max_threads = (uint32_t)v;
        return true;
    }
    const Device *d = t->backend->device;
    for (uint32_t i = 0; eq && d->words && d->words[i]; i++)
        if (!strcmp(name, d->words[i]))
            return d->word(c, t, name, eq + 1);
    error_at(c, E_TARGET, NO_LOC, "unknown option '%s' of target '%s'", word, t->backend->name);
    near = str_closest(name, options, COUNT(options) - !has_models(d));
    for (uint32_t i = 0; !near && d->words && d->words[i]; i++)
        near = str_closest(name, &d->words[i], 1);
    if (near)
        diag_hint(c->diags, "did you mean '%s='?", near);
    return false;
}

const Target *device_parse_target(Ctx *c, const Backend *b, const char *text)
{
    const char        *comma = strchr(text, ',');
    size_t             end = comma ? (size_t)(comma - text) : strlen(text);
    StrBuf             canon = strbuf(c->arena);
    bool               first = true;
    Target             t = {.backend = b,
                            .cls = CLASS_GPU,
                            .triple = "",
                            .mcpu = "",
                            .features = "",
                            .abi = "",
                            .vector_bytes = 4,
                            .has_fma = true,
                            .has_math = !b->device->no_math,
                            .max_threads = b->device->threads,
                            .max_args = b->device->most_args,
                            .max_buffers = b->device->most_buffers};
    const DeviceModel *model = b->device->models;

    use_model(&t, model);
    memcpy(t.max_blocks, b->device->most_blocks, sizeof t.max_blocks);
    for (size_t i = 0; i < end;) {
        size_t n = strcspn(text + i, " \t\n,");
        if (n == 0) {
            i++;
            continue;
        }
        const char *word = intern_n(c->strings, text + i, n);
        i += n;
        if (*word == '-') {
            if (!option(c, &t, word, &model))
                return NULL;
        } else if (!first || strcmp(word, b->name)) {
            return error_at(c, E_TARGET, NO_LOC, "unexpected word '%s' in target '%s'", word, text);
        }
        first = false;
    }
    if (!(t.host =
              backend_cpu()->parse_target(c, comma ? comma + 1 + strspn(comma + 1, " ") : "llvm")))
        return NULL;
    t.pointer_bits = t.host->pointer_bits; /* of the object */
    str_add(&canon, b->name);
    if (model->name)
        str_printf(&canon, " -device=%s", model->name);
    if (t.max_threads != b->device->threads)
        str_printf(&canon, " -max_threads_per_block=%u", t.max_threads);
    if (b->device->canonical)
        b->device->canonical(c, &t, &canon);
    str_printf(&canon, ", %s", t.host->text);
    t.text = intern(c->strings, canon.at);
    return DUP_ARRAY(c->arena, &t, 1);
}
