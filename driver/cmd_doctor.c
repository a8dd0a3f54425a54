/* tvmcc doctor: what is on this machine, what is missing and which Debian package brings it.
 *
 *     processor   znver4: 64-byte vectors, FMA; caches 32 KiB, 1 MiB, 32 MiB
 *     cache       /home/me/.cache/tvmcc: 312 kernels, 4.1 MiB of 2048 MiB
 *     ninja       /usr/bin/ninja
 *     node        -                     running WebAssembly: apt-get install nodejs
 *
 * It only looks (doctor.def) and never fails: nothing of it is needed to make an object file. */
#include "backends/backend.h"
#include "base/cache.h"
#include "driver/driver.h"
#include "machine/machine.h"
#include "ops/ops.h"
#include "packaging/packaging.h"
#include "tvmcc/runtime.h"

#include <string.h>
#include <unistd.h>

typedef struct {
    const char *name, *programs, *purpose, *packages;
} ToolRow;

typedef struct {
    const char *triple, *library, *emulators, *packages;
} MachineRow;

static const ToolRow tools[] = {
#define TOOL(name, programs, purpose, packages) {name, programs, purpose, packages},
#define MACHINE(triple, library, emulators, packages)
#include "driver/doctor.def"
#undef TOOL
#undef MACHINE
};

static const MachineRow machines[] = {
#define TOOL(name, programs, purpose, packages)
#define MACHINE(triple, library, emulators, packages) {triple, library, emulators, packages},
#include "driver/doctor.def"
#undef TOOL
#undef MACHINE
};

static const char *find_first(Arena *a, const char *programs)
{
    ToolArgs    names = {0};
    const char *found = NULL;

    tool_words(a, &names, programs);
    for (uint32_t i = 0; i < names.n && !found; i++)
        found = file_find_tool(a, names.at[i]);
    return found;
}

/* ---- devices ---------------------------------------------------------------------------------------- */

enum { MAX_DEVICES = 32 };

typedef struct {
    const Backend *backend;
    uint32_t       n;
    const char   **names;
    const char    *why; /* there is none */
} Devices;

typedef VEC(Devices) DevicesVec;

/* Its name, and its memory where that is known. */
static const char *device_text(Arena *a, const tvmrt_device_info *d)
{
    double gib = (double)d->memory_bytes / (1 << 30);

    return d->memory_bytes ? arena_printf(a, "%s, %.1f GiB", d->name, gib)
                           : arena_printf(a, "%s", d->name);
}

/* Of one kind, as the run-time library finds them. */
static Devices find_devices(Arena *a, const Backend *b)
{
    Devices            out = {.backend = b, .names = NEW_ARRAY(a, const char *, MAX_DEVICES)};
    tvmrt_device_info *all = NEW_ARRAY(a, tvmrt_device_info, MAX_DEVICES);

    out.n = tvmrt_devices(b->device->kind, MAX_DEVICES, all, &out.why);
    if (out.n > MAX_DEVICES)
        out.n = MAX_DEVICES;
    for (uint32_t i = 0; i < out.n; i++)
        out.names[i] = device_text(a, &all[i]);
    return out;
}

/* Several backends may make code for one kind. */
static bool has_kind(const DevicesVec *v, uint32_t kind)
{
    for (uint32_t i = 0; i < v->n; i++)
        if (v->at[i].backend->device->kind == kind)
            return true;
    return false;
}

static void find_all_devices(Arena *a, DevicesVec *out)
{
    const Backend *b;

    for (uint32_t i = 0; (b = backend_at(i, NULL)); i++)
        if (b->device && !has_kind(out, b->device->kind))
            vec_push(a, out, find_devices(a, b));
}

/* ---- compilers of kernels that are not ours ---------------------------------------------------------- */

typedef struct {
    const char *target, *version, *hint; /* version: "" if there is none */
} Compiler;

typedef VEC(Compiler) Compilers;

/* Neighbours may have the same. */
static void find_compilers(Ctx *c, Compilers *out)
{
    const Backend *b;
    const char *(*last)(Ctx *, const Target *) = NULL;

    for (uint32_t i = 0; (b = backend_at(i, NULL)); i++) {
        const Device *d = b->device;

        if (!d || !d->compiler || d->compiler == last)
            continue;
        last = d->compiler;
        vec_push(c->arena, out, ((Compiler){b->name, d->compiler(c, NULL), d->compiler_hint}));
    }
}

/* ---- what was found --------------------------------------------------------------------------------- */

typedef struct {
    Driver       *driver;
    Arena        *a;
    const Target *cpu; /* NULL if LLVM does not know it */
    const char   *cache;
    uint32_t      cache_entries;
    uint64_t      cache_bytes, cache_max;
    DevicesVec    devices; /* by kind */
    Compilers     compilers;
} Report;

static void look_at_cache(Report *r)
{
    Cache      *cache = compile_cache(r->driver->diags, r->driver->arena, &r->driver->opt.compile);
    CacheEntry *entries;

    if (!cache)
        return;
    r->cache = cache_dir(cache);
    r->cache_max = cache_max_bytes(cache);
    cache_list(cache, r->a, &entries, &r->cache_entries);
    for (uint32_t i = 0; i < r->cache_entries; i++)
        r->cache_bytes += entries[i].bytes;
}

static bool machine_library(const MachineRow *m)
{
    return !*m->library || access(m->library, R_OK) == 0;
}

/* ---- for people ------------------------------------------------------------------------------------ */

static void row(Columns *t, const char *name, const char *text)
{
    columns_add(t, "%s", name);
    columns_add(t, "%s", text);
}

static void line(Arena *a, Columns *t, const char *name, const char *found, const char *purpose,
                 const char *packages)
{
    const char *hint = packages ? arena_printf(a, "apt-get install %s", packages)
                                : "there is none for this system";

    row(t, name, found ? found : arena_printf(a, "-  %s: %s", purpose, hint));
}

static void heading(Columns *t, const char *name, const char *text)
{
    row(t, "", "");
    row(t, name, text);
}

static void add_machine(Arena *a, Columns *t, const MachineRow *m)
{
    const char *emulator = find_first(a, m->emulators);
    bool        library = machine_library(m);

    row(t, m->triple,
        library && emulator ? arena_printf(a, "yes, by %s", emulator)
                            : arena_printf(a, "%s: apt-get install %s",
                                           library    ? "no emulator"
                                           : emulator ? "no C library"
                                                      : "neither C library nor emulator",
                                           m->packages));
}

static void add_here(const Report *r, Columns *table)
{
    Arena        *a = r->a;
    const Target *t = r->cpu;
    Machine       m = machine_of(t);

    row(table, "tvmcc", TVMCC_VERSION ", LLVM " TVMCC_LLVM_VERSION);
    if (t) {
        row(table, "processor",
            arena_printf(a, "%s of %s: %u-byte vectors%s; caches of %lld, %lld and %lld KiB",
                         t->mcpu, t->triple, t->vector_bytes, t->has_fma ? ", FMA" : "",
                         (long long)m.l1 >> 10, (long long)m.l2 >> 10, (long long)m.l3 >> 10));
        if (*t->features)
            row(table, "features", t->features);
    }
    row(table, "processors", arena_printf(a, "%ld", sysconf(_SC_NPROCESSORS_ONLN)));
    row(table, "cache",
        r->cache
            ? arena_printf(a, "%s: %u kernels, %.1f MiB of %.0f MiB", r->cache, r->cache_entries,
                           (double)r->cache_bytes / (1 << 20), (double)r->cache_max / (1 << 20))
            : "-  no folder: HOME, XDG_CACHE_HOME and TVMCC_CACHE_DIR are not set");
    for (uint32_t k = 0; k < r->devices.n; k++) {
        const Devices *d = &r->devices.at[k];
        const Device  *kind = d->backend->device;

        for (uint32_t i = 0; i < d->n; i++)
            row(table, kind->title, d->names[i]);
        if (!d->n)
            line(a, table, kind->title, NULL, d->why, kind->packages);
    }
}

static void show(Report *r)
{
    Columns *table = columns_new(r->a, "ll");

    add_here(r, table);
    heading(table, "tools", "");
    for (size_t i = 0; i < COUNT(tools); i++)
        line(r->a, table, tools[i].name, find_first(r->a, tools[i].programs), tools[i].purpose,
             tools[i].packages);
    line(r->a, table, "Android NDK", tool_ndk_clang(r->a, "aarch64-linux-android21"),
         "its clang, found by ANDROID_NDK (optional)", "google-android-ndk-installer");
    for (uint32_t i = 0; i < r->compilers.n; i++) {
        const Compiler *k = &r->compilers.at[i];

        row(table, arena_printf(r->a, "for %s", k->target),
            *k->version ? k->version : arena_printf(r->a, "-  its compiler: %s", k->hint));
    }
    heading(table, "other machines", "link, run");
    for (size_t i = 0; i < COUNT(machines); i++)
        add_machine(r->a, table, &machines[i]);
    say_table(r->driver, table);
}

/* ---- for scripts ------------------------------------------------------------------------------------ */

static void json_text(StrBuf *s, const char *key, const char *text)
{
    str_printf(s, "\"%s\": ", key);
    if (text)
        str_add_json(s, text);
    else
        str_add(s, "null");
}

static void show_json(Report *r)
{
    StrBuf        s = strbuf(r->a);
    const Target *t = r->cpu;
    Machine       m = machine_of(t);

    str_printf(&s, "{\"version\": \"%s\", \"llvm\": \"%s\",\n \"processor\": ", TVMCC_VERSION,
               TVMCC_LLVM_VERSION);
    if (t) {
        str_addc(&s, '{');
        json_text(&s, "name", t->mcpu);
        str_add(&s, ", ");
        json_text(&s, "triple", t->triple);
        str_add(&s, ", ");
        json_text(&s, "features", t->features);
        str_printf(&s,
                   ", \"vector_bytes\": %u, \"fma\": %s, \"l1_bytes\": %lld, "
                   "\"l2_bytes\": %lld, \"l3_bytes\": %lld, \"count\": %ld}",
                   t->vector_bytes, t->has_fma ? "true" : "false", (long long)m.l1, (long long)m.l2,
                   (long long)m.l3, sysconf(_SC_NPROCESSORS_ONLN));
    } else {
        str_add(&s, "null");
    }
    str_add(&s, ",\n \"cache\": {");
    json_text(&s, "dir", r->cache);
    str_printf(&s, ", \"entries\": %u, \"bytes\": %llu, \"max_bytes\": %llu},\n", r->cache_entries,
               (unsigned long long)r->cache_bytes, (unsigned long long)r->cache_max);
    for (uint32_t k = 0; k < r->devices.n; k++) {
        const Devices *d = &r->devices.at[k];

        str_printf(&s, " \"%s\": [", d->backend->name);
        for (uint32_t i = 0; i < d->n; i++) {
            str_add(&s, i ? ", " : "");
            str_add_json(&s, d->names[i]);
        }
        str_add(&s, "],\n");
    }
    str_add(&s, " \"tools\": [");
    for (size_t i = 0; i < COUNT(tools); i++) {
        str_add(&s, i ? ",\n  {" : "\n  {");
        json_text(&s, "name", tools[i].name);
        str_add(&s, ", ");
        json_text(&s, "path", find_first(r->a, tools[i].programs));
        str_add(&s, ", ");
        json_text(&s, "for", tools[i].purpose);
        str_add(&s, ", ");
        json_text(&s, "packages", tools[i].packages);
        str_addc(&s, '}');
    }
    str_add(&s, "],\n \"compilers\": [");
    for (uint32_t i = 0; i < r->compilers.n; i++) {
        const Compiler *k = &r->compilers.at[i];

        str_add(&s, i ? ",\n  {" : "\n  {");
        json_text(&s, "target", k->target);
        str_add(&s, ", ");
        json_text(&s, "version", *k->version ? k->version : NULL);
        str_add(&s, ", ");
        json_text(&s, "hint", k->hint);
        str_addc(&s, '}');
    }
    str_add(&s, "],\n \"machines\": [");
    for (size_t i = 0; i < COUNT(machines); i++) {
        const MachineRow *m = &machines[i];

        str_add(&s, i ? ",\n  {" : "\n  {");
        json_text(&s, "triple", m->triple);
        str_printf(&s, ", \"library\": %s, ", machine_library(m) ? "true" : "false");
        json_text(&s, "emulator", find_first(r->a, m->emulators));
        str_add(&s, ", ");
        json_text(&s, "packages", m->packages);
        str_addc(&s, '}');
    }
    str_add(&s, "]}\n");
    say(r->driver, "%s", s.at);
}

int cmd_doctor(Driver *driver)
{
    Report r = {.driver = driver, .a = driver->arena};
    Diags *quiet =
        diags_new(driver->arena); /* a processor that LLVM does not know is no error here */
    Ctx *c = ctx_new(driver->arena, quiet, op_table);

    if (driver->opt.inputs.n) {
        diag_error(driver->diags, E_USAGE, NO_LOC, "doctor takes no file, not '%s'",
                   driver->opt.inputs.at[0]);
        ctx_free(c);
        return 0;
    }
    r.cpu = backend_cpu()->parse_target(c, "llvm -mcpu=native");
    find_compilers(c, &r.compilers);
    find_all_devices(driver->arena, &r.devices);
    look_at_cache(&r);
    if (driver->opt.json)
        show_json(&r);
    else
        show(&r);
    ctx_free(c);
    return 0;
}
