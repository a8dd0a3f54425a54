/* Target strings of devices: which model, how many threads a block may have, what the device's
 * backend knows beside that, and the CPU that drives it. */
#include "backends/common/device.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* What is a number, within bounds of the device. */
typedef struct {
    const char *name, *has, *unit; /* "a block has", "threads" */
    uint32_t    least, most;
    uint32_t   *value;
} Limit;

enum { LIMITS = 4, MOST_WARP = 128, MOST_DIMS = 16 };

static void limits_of(Target *t, Limit out[LIMITS])
{
    const Device *d = t->backend->device;
    Limit         threads = {"-max_threads_per_block", "a block has",  "threads", 1,
                             d->most_threads,          &t->max_threads};

    out[0] = out[1] = threads;
    out[1].name = "-max_num_threads"; /* of TVM, as all of these */
    out[2] = (Limit){"-max_shared_memory_per_block",
                     "a block shares",
                     "bytes",
                     1024,
                     d->most_shared ? d->most_shared : d->models->shared_bytes,
                     &t->shared_bytes};
    out[3] = (Limit){"-thread_warp_size",
                     "a warp has",
                     "threads",
                     d->one_warp ? d->models->warp : 1,
                     d->one_warp ? d->models->warp : MOST_WARP,
                     &t->warp};
}

/* By TVM's names.  A device without what the target says refuses the product at open, so a plain
 * one may stand behind it. */
static const struct {
    const char *name;
    uint32_t    has;
} switches[] = {{"-supports_float16", HAS_HALF},
                {"-supports_integer_dot_product", HAS_DOTS},
                {"-supports_cooperative_matrix", HAS_MATRICES},
                {"-supports_float64", HAS_F64}};

static bool set_switch(Ctx *c, Target *t, uint32_t has, const char *word, const char *value)
{
    if (strcmp(value, "0") && strcmp(value, "1"))
        return error_at(c, E_TARGET, NO_LOC, "'%s': it is 0 or 1", word);
    t->has = *value == '1' ? t->has | has : t->has & ~has;
    return true;
}

/* Those that are not as the model has them. */
static void say_switches(const Target *t, const DeviceModel *model, StrBuf *text)
{
    for (size_t i = 0; i < COUNT(switches); i++)
        if ((t->has ^ model->has) & t->backend->device->switches & switches[i].has)
            str_printf(text, " %s=%d", switches[i].name, (t->has & switches[i].has) != 0);
}

static bool has_models(const Device *d)
{
    return d->models[1].warp > 0;
}

static void use_model(Target *t, const DeviceModel *m)
{
    t->vector_regs = m->registers;
    t->shared_bytes = m->shared_bytes;
    t->warp = m->warp;
    t->has = m->has & t->backend->device->switches;
    t->gpu = m->name;
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
            t->shared_bytes = 0;
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

static bool set_limit(Ctx *c, const Limit *l, const char *word, const char *value)
{
    char         *end;
    unsigned long v = strtoul(value, &end, 10);

    if (isdigit((unsigned char)*value) && !*end && v >= l->least && v <= l->most) {
        *l->value = (uint32_t)v;
        return true;
    }
    const char *to = l->least < l->most ? arena_printf(c->scratch, "%u to ", l->least) : "";
    return error_at(c, E_TARGET, NO_LOC, "'%s': %s %s%u %s", word, l->has, to, l->most, l->unit);
}

/* Models come first: limits that are given change them. */
static bool option(Ctx *c, Target *t, const char *word, bool models, const DeviceModel **model)
{
    const Device *d = t->backend->device;
    const char   *eq = strchr(word, '='), *near;
    const char   *name = intern_n(c->strings, word, eq ? (size_t)(eq - word) : strlen(word));
    TextList      known = {0};
    Limit         limits[LIMITS];

    limits_of(t, limits);
    bool is_model = eq && !strcmp(name, "-device") && has_models(d);
    if (is_model != models)
        return true;
    if (is_model)
        return choose_model(c, t, word, eq + 1, model);
    if (has_models(d))
        vec_push(c->scratch, &known, "-device");
    for (int i = 0; i < LIMITS; i++) {
        if (eq && !strcmp(name, limits[i].name))
            return set_limit(c, &limits[i], word, eq + 1);
        vec_push(c->scratch, &known, limits[i].name);
    }
    for (size_t i = 0; i < COUNT(switches); i++) {
        if (!(d->switches & switches[i].has))
            continue;
        if (eq && !strcmp(name, switches[i].name))
            return set_switch(c, t, switches[i].has, word, eq + 1);
        vec_push(c->scratch, &known, switches[i].name);
    }
    for (uint32_t i = 0; d->words && d->words[i]; i++) {
        if (eq && !strcmp(name, d->words[i]))
            return d->word(c, t, name, eq + 1);
        vec_push(c->scratch, &known, d->words[i]);
    }
    error_at(c, E_TARGET, NO_LOC, "unknown option '%s' of target '%s'", word, t->backend->name);
    if ((near = str_closest(name, known.at, known.n)))
        diag_hint(c->diags, "did you mean '%s='?", near);
    return false;
}

/* The words before the comma. */
static bool options(Ctx *c, Target *t, const char *text, bool models, const DeviceModel **model)
{
    bool first = true;

    for (size_t i = 0, n, end = strcspn(text, ","); i < end; i += n) {
        if (!(n = strcspn(text + i, " \t\n,"))) {
            n = 1;
            continue;
        }
        const char *word = intern_n(c->strings, text + i, n);
        if (*word == '-' && !option(c, t, word, models, model))
            return false;
        if (*word != '-' && (!first || strcmp(word, t->backend->name) != 0))
            return error_at(c, E_TARGET, NO_LOC, "unexpected word '%s' in target '%s'", word, text);
        first = false;
    }
    return true;
}

/* Products of the same signs are quicker where there are no others. */
static DotData dot_data(const Target *t)
{
    uint8_t one = t->intrin_ops[INTRIN_DOT4_II], mixed = t->intrin_ops[INTRIN_DOT4_UI];

    return mixed && mixed <= one ? DOTS_EITHER : DOTS_SIGNED;
}

/* Each is two arguments, with its offset; dimensions are the others. */
static uint32_t most_buffers(const Device *d)
{
    return d->most_buffers ? d->most_buffers : d->most_args ? (d->most_args - MOST_DIMS) / 2 : 0;
}

const Target *device_parse_target(Ctx *c, const Backend *b, const char *text)
{
    const char        *comma = strchr(text, ',');
    StrBuf             canon = strbuf(c->arena);
    Target             t = {.backend = b,
                            .cls = CLASS_GPU,
                            .triple = "",
                            .mcpu = "",
                            .features = "",
                            .abi = "",
                            .vector_bytes = 4,
                            .has_fma = true,
                            .has_math = !b->device->no_math,
                            .no_f64_math = b->device->no_f64_math,
                            .max_threads = b->device->threads,
                            .max_args = b->device->most_args,
                            .max_buffers = most_buffers(b->device)};
    const DeviceModel *model = b->device->models;

    use_model(&t, model);
    t.shared_bytes = 0; /* not said */
    memcpy(t.max_blocks, b->device->most_blocks, sizeof t.max_blocks);
    if (!options(c, &t, text, true, &model) || !options(c, &t, text, false, &model))
        return NULL;
    const uint32_t usual =
                       b->device->shared ? b->device->shared(c, &t, false) : model->shared_bytes,
                   most = b->device->shared ? b->device->shared(c, &t, true) : UINT32_MAX;
    if (t.shared_bytes > most) {
        error_at(c, E_TARGET, NO_LOC, "'%s': a block of these GPUs shares %u bytes at most", text,
                 most);
        return NULL;
    }
    t.shared_bytes = t.shared_bytes ? t.shared_bytes : usual;
    if (!(t.host =
              backend_cpu()->parse_target(c, comma ? comma + 1 + strspn(comma + 1, " ") : "llvm")))
        return NULL;
    t.pointer_bits = t.host->pointer_bits; /* of the object */
    str_add(&canon, b->name);
    if (model->name)
        str_printf(&canon, " -device=%s", model->name);
    if (t.max_threads != b->device->threads)
        str_printf(&canon, " -max_threads_per_block=%u", t.max_threads);
    if (t.shared_bytes != usual)
        str_printf(&canon, " -max_shared_memory_per_block=%u", t.shared_bytes);
    if (t.warp != model->warp)
        str_printf(&canon, " -thread_warp_size=%u", t.warp);
    if (b->device->canonical && !b->device->canonical(c, &t, &canon))
        return NULL;
    say_switches(&t, model, &canon);
    t.dots = dot_data(&t);
    t.no_f64 = b->device->no_f64 || (b->device->switches & HAS_F64 && !(t.has & HAS_F64));
    str_printf(&canon, ", %s", t.host->text);
    t.text = intern(c->strings, canon.at);
    return DUP_ARRAY(c->arena, &t, 1);
}

void device_list_target(StrBuf *out, const char *name, const char *about)
{
    str_printf(out, "%-11s %s; the CPU that drives it may follow a comma\n", name, about);
}
