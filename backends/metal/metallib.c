/* The compiler of Metal's language: Apple's tools metal and metallib, which xcrun finds.
 *
 *     xcrun -sdk macosx metal -c .. kernel.metal -o kernel.air
 *     xcrun -sdk macosx metallib kernel.air -o kernel.metallib
 *
 * The language's version is that of the least system, since no -std is given.  What a tool writes
 * may have the names of files in it, so it runs in their folder, where these are the same each
 * time.  TVMCC_XCRUN names another xcrun than the one in PATH. */
#include "backends/metal/metal.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *xcrun;
    const char *version; /* "Apple metal version 32023.155 (metalfe-32023.155)" */
} MetalTools;

/* The first line with that word; else the first one. */
static const char *line_with(Arena *a, const char *text, const char *word)
{
    const char *at = strstr(text, word);

    if (!at)
        at = text;
    while (at > text && at[-1] != '\n')
        at--;
    return arena_printf(a, "%.*s", (int)strcspn(at, "\n"), at);
}

/* Runs a tool there; all that it says, or why it does not run, in `said`. */
static bool run(Arena *a, const char *folder, const char *const *words, const char **said)
{
    Bytes log = {0};
    int   status = 0, error = file_run_tool_in(folder, "log", words, &status);

    *said = strerror(error);
    if (error)
        return false;
    file_read(diags_new(a), a, arena_printf(a, "%s/log", folder), &log);
    *said = log.n ? arena_printf(a, "%.*s", (int)log.n, (const char *)log.at)
                  : arena_printf(a, "status %d", status);
    return status == 0;
}

static bool compile_there(const MetalTools *tools, Arena *a, const char *folder, const char *arch,
                          const char *text, Bytes *out, const char **said)
{
    const char     *version, *result = arena_printf(a, "%s/kernel.metallib", folder);
    const MetalSdk *sdk = metal_sdk(arch, &version);
    const char     *least = arena_printf(a, "%s%s", sdk->option, version);
    Diags          *d = diags_new(a);
    /* rounding is what TIR says */
    const char *metal[] = {
        tools->xcrun,        "-sdk", sdk->name,      "metal", "-c",         least, "-fno-fast-math",
        "-ffp-contract=off", "-w",   "kernel.metal", "-o",    "kernel.air", NULL};
    const char *metallib[] = {tools->xcrun, "-sdk", sdk->name,         "metallib",
                              "kernel.air", "-o",   "kernel.metallib", NULL};

    *said = "the temporary folder cannot be written";
    if (!file_write(d, arena_printf(a, "%s/kernel.metal", folder),
                    (Bytes){(const uint8_t *)text, strlen(text)}) ||
        !run(a, folder, metal, said) || !run(a, folder, metallib, said))
        return false;
    *said = "metallib has written nothing";
    return file_read(d, a, result, out) && out->n;
}

/* One text for one system, in any thread. */
static bool compile(const void *user, Arena *a, const char *arch, const char *text, Bytes *out,
                    const char **log)
{
    const char *folder = file_temporary_folder(diags_new(a), a), *said;

    *out = (Bytes){0};
    *log = "no temporary folder";
    if (!folder)
        return false;
    bool ok = compile_there(user, a, folder, arch, text, out, &said);
    *log = line_with(a, said, "error");
    file_drop_folder(folder);
    return ok;
}

/* ---- the tools of this machine -------------------------------------------------------------------- */

static const char *own_xcrun(void)
{
    const char *own = getenv("TVMCC_XCRUN");

    return own && *own ? own : NULL;
}

static const char *find_xcrun(Ctx *c)
{
    const char *name = own_xcrun() ? own_xcrun() : "xcrun";
    const char *found = device_find_program(c, name, NULL, 0);

    return found ? found : name;
}

/* False with what stands in the way in `said`. */
static bool find_tools(Ctx *c, const MetalSdk *sdk, MetalTools *out, const char **said)
{
    const char *folder = file_temporary_folder(diags_new(c->arena), c->arena);

    *said = "no temporary folder";
    if (!folder)
        return false;
    *out = (MetalTools){.xcrun = find_xcrun(c)};
    const char *words[] = {out->xcrun, "-sdk", sdk->name, "metal", "--version", NULL};
    bool        ok = run(c->arena, folder, words, said);
    file_drop_folder(folder);
    out->version = line_with(c->arena, *said, "version");
    return ok;
}

const char *metal_compiler_version(Ctx *c, const Target *t)
{
    MetalTools  tools;
    const char *version, *said;

    if (t && !*t->mcpu)
        return "";
    return find_tools(c, metal_sdk(t ? t->mcpu : "macosx", &version), &tools, &said) ? tools.version
                                                                                     : "";
}

/* False with E_NO_TOOL recorded. */
static bool tools_for(Ctx *c, const Target *t, MetalTools *out)
{
    const char     *version, *said;
    const MetalSdk *sdk = metal_sdk(t->mcpu, &version);

    if (find_tools(c, sdk, out, &said))
        return true;
    error_at(c, E_NO_TOOL, NO_LOC,
             "metallibs are made by Apple's tools, but '%s -sdk %s metal' does not run: %s",
             out->xcrun, sdk->name, line_with(c->arena, said, "error"));
    diag_hint(c->diags, own_xcrun()
                            ? "TVMCC_XCRUN names another xcrun than the one in PATH"
                            : "Xcode has them, from version 26 on after xcodebuild "
                              "-downloadComponent MetalToolchain; without '-metallib=' the device "
                              "compiles the text when the model is opened");
    return false;
}

/* ---- all kernels ---------------------------------------------------------------------------------- */

static bool text(Ctx *c, const void *user, const Target *t, const Func *f, StrBuf *out)
{
    (void)user, (void)t;
    return metal_kernel(c, f, out);
}

bool metal_libraries(Ctx *c, const TirModule *m, const Target *t, const CodegenOptions *o,
                     DeviceImages *out)
{
    MetalTools     tools;
    DeviceCompiler all = {.name = "metallib 1", .user = &tools, .text = text, .compile = compile};

    if (!tools_for(c, t, &tools))
        return false;
    all.version = tools.version;
    return device_images(c, &all, m, t, o, out);
}
