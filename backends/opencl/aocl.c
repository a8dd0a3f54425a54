/* Intel's FPGAs (aocl) and their emulator on the CPU (aocl_sw_emu), named as TVM does: OpenCL's
 * kernels, compiled here by Intel's offline compiler, since no driver of an FPGA compiles.
 *
 * All kernels are one program, as an FPGA is configured for one at a time; the product has one for
 * each board that the target names (-device=), or for the compiler's own choice.
 *
 * The compiler is the program that TVMCC_AOC names, else aoc in PATH or of the SDK's folder
 * (INTELFPGAOCLSDKROOT). */
#include "backends/common/device.h"
#include "backends/opencl/opencl.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *path;
    bool        emulator;
} Aoc;

/* ---- boards: Target.mcpu is their names ----------------------------------------------------------- */

static const char *const words[] = {"-device", NULL};

static bool keeps_order(const char *a, const char *b)
{
    (void)a, (void)b;
    return false;
}

static bool word(Ctx *c, Target *t, const char *name, const char *value)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-.:";

    if (*value && *value != '-' && !value[strspn(value, letters)])
        return device_add_arch(c, t, value, keeps_order);
    error_at(c, E_TARGET, NO_LOC, "'%s=%s' is no name of a board", name, value);
    diag_hint(c->diags, "'aoc -list-boards' lists them, as a10gx");
    return false;
}

static bool canonical(Ctx *c, Target *t, StrBuf *text)
{
    const char *board;

    for (uint32_t i = 0; (board = device_arch(c, t, i)); i++)
        str_printf(text, " -device=%s", board);
    return opencl_canonical(c, t, text);
}

/* ---- the compiler --------------------------------------------------------------------------------- */

static const char *own_compiler(void)
{
    const char *own = getenv("TVMCC_AOC");

    return own && *own ? own : NULL;
}

static const char *find_compiler(Ctx *c)
{
    const char       *own = own_compiler();
    const char *const sdk = getenv("INTELFPGAOCLSDKROOT");

    return own ? device_find_program(c, own, NULL, 0) : device_find_program(c, "aoc", &sdk, 1);
}

static const char *version_of(Ctx *c, const char *path)
{
    return path ? device_program_version(c, "aoc", path) : "";
}

static const char *version(Ctx *c, const Target *t)
{
    (void)t;
    return version_of(c, find_compiler(c));
}

/* The compiler takes no file of the name kernel.cl. */
static bool compile(const void *user, Arena *a, const char *board, const char *text, Bytes *out,
                    const char **log)
{
    const Aoc  *aoc = user;
    const char *all[7];
    uint32_t    n = 0;

    all[n++] = aoc->path;
    if (aoc->emulator)
        all[n++] = "-march=emulator";
    if (*board)
        all[n++] = arena_printf(a, "-board=%s", board);
    all[n++] = "-o";
    all[n++] = "program.aocx";
    all[n++] = "program.cl";
    all[n] = NULL;
    return device_run_program(a, all, "program.cl", text, "program.aocx", out, log);
}

static bool make_images(Ctx *c, const TirModule *m, const Target *t, const CodegenOptions *o,
                        bool emulator, DeviceImages *out)
{
    const char    *own = own_compiler();
    Aoc            aoc = {find_compiler(c), emulator};
    DeviceCompiler all = {.name = emulator ? "aocl_sw_emu 1" : "aocl 1",
                          .version = version_of(c, aoc.path),
                          .user = &aoc,
                          .program = aocl_source,
                          .compile = compile};

    if (aoc.path)
        return device_images(c, &all, m, t, o, out);
    if (own) {
        error_at(c, E_NO_TOOL, NO_LOC, "TVMCC_AOC is '%s', which is no program", own);
        diag_hint(c->diags, "it names the compiler alone; words for it are those of a script, see "
                            "docs/opencl.md");
        return false;
    }
    error_at(c, E_NO_TOOL, NO_LOC,
             "kernels for Intel's FPGAs and their emulator are compiled by Intel's offline "
             "compiler, and there is no 'aoc'");
    diag_hint(c->diags, "%s", t->backend->device->compiler_hint);
    return false;
}

static bool images(Ctx *c, const TirModule *m, const Target *t, const CodegenOptions *o,
                   DeviceImages *out)
{
    return make_images(c, m, t, o, false, out);
}

static bool emulator_images(Ctx *c, const TirModule *m, const Target *t, const CodegenOptions *o,
                            DeviceImages *out)
{
    return make_images(c, m, t, o, true, out);
}

/* ---- the backends --------------------------------------------------------------------------------- */

/* What a group shares is memory blocks of the chip. */
#define AOCL_DEVICE                                                                              \
    .kind = TVMCC_DEVICE_OPENCL, .title = "OpenCL", .options = "", .threads = 256,               \
    .most_threads = 1024, .most_shared = 64 * 1024,                                              \
    .most_blocks = {INT32_MAX, INT32_MAX, INT32_MAX}, .most_args = OPENCL_ARGS, .word = word,    \
    .words = words, .canonical = canonical, .source = aocl_source, .compiler = version,          \
    .compiler_hint = "install Intel's FPGA SDK for OpenCL and put its bin folder into PATH; or " \
                     "INTELFPGAOCLSDKROOT=<its folder>; or TVMCC_AOC=<file>",                    \
    .models = (const DeviceModel[])                                                              \
    {                                                                                            \
        {NULL, 32 * 1024, 64, 32, 0}, {0}                                                        \
    }

static const Device aocl = {AOCL_DEVICE, .images = images};
static const Device aocl_sw_emu = {AOCL_DEVICE, .images = emulator_images};

DEVICE_BACKEND(aocl, "Intel's FPGAs through aoc: -device=a10gx, once for each board")
DEVICE_BACKEND(aocl_sw_emu, "the emulator of Intel's FPGAs through aoc")
