/* The compiler of CUDA C: NVRTC, a library that is opened when it is needed, so that neither the
 * build nor the start of the driver depends on it; else the program nvcc.
 *
 * TVMCC_NVRTC names either.  Without it the library is looked for where the system looks for
 * libraries, in the toolkit's folder (CUDA_PATH, CUDA_HOME, /usr/local/cuda), and among the
 * packages of the virtual environment of Python at hand (VIRTUAL_ENV), whose nvidia-cuda-nvrtc has
 * it alone. */
#include "backends/cuda/cuda.h"

#include <dlfcn.h>
#include <glob.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The calls that we need, by NVRTC's documented prototypes. */
typedef struct {
    int (*nvrtcVersion)(int *major, int *minor);
    int (*nvrtcGetNumSupportedArchs)(int *n);
    int (*nvrtcGetSupportedArchs)(int *archs);
    int (*nvrtcCreateProgram)(void **program, const char *text, const char *name, int nheaders,
                              const char *const *headers, const char *const *names);
    int (*nvrtcDestroyProgram)(void **program);
    int (*nvrtcCompileProgram)(void *program, int n, const char *const *options);
    int (*nvrtcGetProgramLogSize)(void *program, size_t *bytes);
    int (*nvrtcGetProgramLog)(void *program, char *log);
    int (*nvrtcGetCUBINSize)(void *program, size_t *bytes);
    int (*nvrtcGetCUBIN)(void *program, char *code);
    int (*nvrtcGetPTXSize)(void *program, size_t *bytes);
    int (*nvrtcGetPTX)(void *program, char *text);
} NvrtcCalls;

typedef struct {
    NvrtcCalls  nvrtc; /* all NULL: nvcc is used */
    const char *nvcc;
    const char *version; /* "NVRTC 13.0, 109338064 bytes": what tells compilers apart */
    const char *archs;   /* that it makes code for, "sm_75, sm_80"; NULL: it does not say */
} CudaCompiler;

static const struct {
    const char *name;
    size_t      at;
    bool        optional;
} calls[] = {
#define CALL(name, optional) {#name, offsetof(NvrtcCalls, name), optional}
    CALL(nvrtcVersion, false),
    CALL(nvrtcGetNumSupportedArchs, true), /* from 11.2 on */
    CALL(nvrtcGetSupportedArchs, true),
    CALL(nvrtcCreateProgram, false),
    CALL(nvrtcDestroyProgram, false),
    CALL(nvrtcCompileProgram, false),
    CALL(nvrtcGetProgramLogSize, false),
    CALL(nvrtcGetProgramLog, false),
    CALL(nvrtcGetCUBINSize, false), /* from 11.1 on */
    CALL(nvrtcGetCUBIN, false),
    CALL(nvrtcGetPTXSize, false),
    CALL(nvrtcGetPTX, false)
#undef CALL
};

/* What is the same for all architectures: rounding is what TIR says. */
static const char *const options[] = {"-fmad=false", "--std=c++17"};

/* ---- NVRTC -------------------------------------------------------------------------------------- */

static bool open_library(const char *path, CudaCompiler *k)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    for (size_t i = 0; library && i < COUNT(calls); i++) {
        void *call = dlsym(library, calls[i].name);

        if (!call && !calls[i].optional) {
            memset(&k->nvrtc, 0, sizeof k->nvrtc);
            return false;
        }
        memcpy((char *)&k->nvrtc + calls[i].at, &call, sizeof call);
    }
    return library != NULL;
}

/* The files that the pattern fits, the last name first: later versions. */
static bool open_pattern(const char *pattern, CudaCompiler *k)
{
    glob_t found = {0};
    bool   ok = false;

    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = found.gl_pathc; i-- > 0 && !ok;)
            ok = open_library(found.gl_pathv[i], k);
    globfree(&found);
    return ok;
}

static bool find_library(Ctx *c, CudaCompiler *k)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                                        "libnvrtc.so"};
    const char *const tools[] = {getenv("CUDA_PATH"), getenv("CUDA_HOME"), "/usr/local/cuda"};
    const char       *python = getenv("VIRTUAL_ENV");

    for (size_t i = 0; i < COUNT(names); i++)
        if (open_library(names[i], k))
            return true;
    for (size_t i = 0; i < COUNT(tools); i++)
        if (tools[i] &&
            open_pattern(arena_printf(c->scratch, "%s/lib64/libnvrtc.so.[0-9]*", tools[i]), k))
            return true;
    return python &&
           open_pattern(
               arena_printf(c->scratch,
                            "%s/lib/python3*/site-packages/nvidia/c*/lib/libnvrtc.so.[0-9]*",
                            python),
               k);
}

static void know_archs(Ctx *c, CudaCompiler *k)
{
    enum { MOST = 256 };
    int    n = 0, archs[MOST];
    StrBuf s = strbuf(c->arena);

    if (!k->nvrtc.nvrtcGetNumSupportedArchs || !k->nvrtc.nvrtcGetSupportedArchs ||
        k->nvrtc.nvrtcGetNumSupportedArchs(&n) || n < 1 || n > MOST ||
        k->nvrtc.nvrtcGetSupportedArchs(archs))
        return;
    for (int i = 0; i < n; i++)
        str_printf(&s, "%ssm_%d", i ? ", " : "", archs[i]);
    k->archs = s.at;
}

/* Two builds of one version differ in the bytes of the library. */
static void know_version(Ctx *c, CudaCompiler *k)
{
    int         major = 0, minor = 0;
    Dl_info     in;
    void       *call;
    struct stat st = {0};

    memcpy(&call, &k->nvrtc.nvrtcVersion, sizeof call);
    k->nvrtc.nvrtcVersion(&major, &minor);
    if (dladdr(call, &in) && in.dli_fname)
        stat(in.dli_fname, &st);
    k->version =
        arena_printf(c->arena, "NVRTC %d.%d, %lld bytes", major, minor, (long long)st.st_size);
}

static bool compile_by_library(const NvrtcCalls *n, Arena *a, const char *arch, const char *text,
                               Bytes *out, const char **log)
{
    const bool  ptx = nvidia_is_ptx(arch);
    const char *words[COUNT(options) + 1];
    void       *program = NULL;
    size_t      bytes = 0;
    char       *code = NULL;

    words[0] = arena_printf(a, "--gpu-architecture=%s", arch);
    memcpy(words + 1, options, sizeof options);
    *log = "no memory";
    if (n->nvrtcCreateProgram(&program, text, "kernel.cu", 0, NULL, NULL))
        return false;
    int rc = n->nvrtcCompileProgram(program, (int)COUNT(words), words);
    if (rc) {
        *log = arena_printf(a, "error %d", rc);
        if (!n->nvrtcGetProgramLogSize(program, &bytes) && bytes > 1) {
            code = arena_array(a, bytes + 1, 1);
            if (!n->nvrtcGetProgramLog(program, code))
                *log = code;
        }
    } else if (!(ptx ? n->nvrtcGetPTXSize(program, &bytes)
                     : n->nvrtcGetCUBINSize(program, &bytes))) {
        code = arena_array(a, bytes + 1, 1);
        rc = ptx ? n->nvrtcGetPTX(program, code) : n->nvrtcGetCUBIN(program, code);
        *out =
            (Bytes){(const uint8_t *)code, bytes - (ptx && bytes)}; /* a text's size counts its 0 */
    }
    n->nvrtcDestroyProgram(&program);
    return rc == 0 && out->n;
}

/* ---- nvcc --------------------------------------------------------------------------------------- */

static const char *find_nvcc(Ctx *c, const char *own)
{
    const char *const tools[] = {getenv("CUDA_PATH"), getenv("CUDA_HOME"), "/usr/local/cuda"};

    return own ? device_find_program(c, own, NULL, 0)
               : device_find_program(c, "nvcc", tools, COUNT(tools));
}

static bool compile_by_program(const char *nvcc, Arena *a, const char *arch, const char *text,
                               Bytes *out, const char **log)
{
    const char *words[] = {nvcc,
                           nvidia_is_ptx(arch) ? "-ptx" : "-cubin",
                           arena_printf(a, "-arch=%s", arch),
                           options[0],
                           options[1],
                           "-o",
                           "kernel",
                           "kernel.cu",
                           NULL};

    return device_run_program(a, words, "kernel.cu", text, "kernel", out, log);
}

/* ---- either ------------------------------------------------------------------------------------- */

/* One text for one architecture, in any thread. */
static bool compile(const void *user, Arena *a, const char *arch, const char *text, Bytes *out,
                    const char **log)
{
    const CudaCompiler *k = user;

    *out = (Bytes){0};
    return k->nvcc ? compile_by_program(k->nvcc, a, arch, text, out, log)
                   : compile_by_library(&k->nvrtc, a, arch, text, out, log);
}

/* Nothing is ever unloaded. */
static bool find_compiler(Ctx *c, const char *own, CudaCompiler *out)
{
    *out = (CudaCompiler){0};
    if (own ? open_library(own, out) : find_library(c, out)) {
        know_version(c, out);
        know_archs(c, out);
        return true;
    }
    if (!(out->nvcc = find_nvcc(c, own)))
        return false;
    out->version = device_program_version(c, "nvcc", out->nvcc);
    return true;
}

static const char *own_compiler(void)
{
    const char *own = getenv("TVMCC_NVRTC");

    return own && *own ? own : NULL;
}

const char *cuda_compiler_version(Ctx *c, const Target *t)
{
    CudaCompiler k;

    (void)t;
    return find_compiler(c, own_compiler(), &k) ? k.version : "";
}

/* What there is on this machine; false with E_NO_TOOL recorded. */
static bool compiler(Ctx *c, const Target *t, CudaCompiler *out)
{
    const char *own = own_compiler();

    if (find_compiler(c, own, out))
        return true;
    if (own)
        return error_at(c, E_NO_TOOL, NO_LOC,
                        "TVMCC_NVRTC is '%s', which is neither NVRTC nor nvcc", own);
    error_at(c, E_NO_TOOL, NO_LOC,
             "kernels for CUDA are compiled by NVRTC, and there is neither libnvrtc nor nvcc");
    diag_hint(c->diags, "%s", t->backend->device->compiler_hint);
    return false;
}

/* ---- all kernels ---------------------------------------------------------------------------------- */

static bool knows(Ctx *c, const void *user, const char *arch)
{
    const CudaCompiler *k = user;
    const char         *digits = strchr(arch, '_') + 1;
    const char         *base =
        arena_printf(c->scratch, "sm_%.*s,", (int)strspn(digits, "0123456789"), digits);

    if (!k->archs || strstr(arena_printf(c->scratch, "%s,", k->archs), base))
        return true;
    error_at(c, E_TARGET, NO_LOC, "%.*s makes no code for '%s'", (int)strcspn(k->version, ","),
             k->version, arch);
    diag_hint(c->diags, "it knows %s", k->archs);
    return false;
}

static bool text(Ctx *c, const void *user, const Target *t, const Func *f, StrBuf *out)
{
    (void)user;
    return cuda_kernel(c, t, f, out);
}

static bool is_text(const void *user, const char *arch)
{
    (void)user;
    return nvidia_is_ptx(arch);
}

bool cuda_images(Ctx *c, const TirModule *m, const Target *t, const CodegenOptions *o,
                 DeviceImages *out)
{
    CudaCompiler   k;
    DeviceCompiler all = {.name = "cuda 1",
                          .user = &k,
                          .text = text,
                          .compile = compile,
                          .is_text = is_text,
                          .knows = knows};

    if (!compiler(c, t, &k))
        return false;
    all.version = k.version;
    return device_images(c, &all, m, t, o, out);
}
