/* A product as a program: which machine it is for, a compiler that links for it, an emulator that
 * runs it, and raw files for what goes in and out.
 *
 *     product --(cc + runner.c)--> program
 *     program info OUT             tensors as text, read into a tvmcc_model_info
 *     program run IN OUT [WEIGHTS [BUCKET]]
 *
 * Compilers are tried in this order: --cc, this machine's own, the Android NDK's, <triple>-gcc,
 * clang with the C library that Debian's cross packages put under /usr/<triple>.  Code for Android
 * runs under a GNU C library where there is no NDK: models call nothing that differs.  Everything
 * written lies in a folder that nobody else may enter and that goes when the run ends. */
#include "driver/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern const unsigned char runner_text[]; /* share/tvmcc/runner.c */
extern const size_t        runner_text_bytes;

enum { PROGRAM_BYTES = 2 << 20 }; /* a C library and the runner, without the model */

struct Remote {
    Driver          *driver;
    const char      *product; /* the file that is linked */
    const char      *triple;  /* as Debian's packages are called */
    const char      *entry;
    const char      *folder;             /* of our own, for temporary files */
    const char      *program, *in, *out; /* such files */
    const char      *weights;            /* a weights file, or NULL */
    bool             shared, native;
    bool             source;  /* the product is C, with all that it includes */
    const char      *options; /* that its compiler needs */
    tvmcc_model_info info;
    TextList         temporary;
};

static Remote *remote_new(Driver *driver)
{
    Remote *r = NEW(driver->arena, Remote);

    r->driver = driver;
    r->triple = driver->opt.compile.mtriple;
    return r;
}

/* ---- files ---- */

static const char *temporary(Remote *r, unsigned mode)
{
    Diags      *d = r->driver->diags;
    Arena      *a = r->driver->arena;
    const char *path;

    if (!r->folder && !(r->folder = file_temporary_folder(d, a)))
        return NULL;
    if ((path = file_temporary(d, a, arena_printf(a, "%s/run", r->folder), mode)))
        vec_push(r->driver->arena, &r->temporary, path);
    return path;
}

static const char *temporary_with(Remote *r, Bytes content)
{
    const char *path = temporary(r, 0666);

    return path && file_write(r->driver->diags, path, content) ? path : NULL;
}

static bool exists(const char *path)
{
    return access(path, R_OK) == 0;
}

/* ---- machines ---- */

static const char *own_triple(Ctx *c)
{
    return backend_cpu()->parse_target(c, "llvm")->triple;
}

static bool same_machine(Arena *a, const char *x, const char *y)
{
    x = tool_triple(a, x);
    y = tool_triple(a, y);
    return strcspn(x, "-") == strcspn(y, "-") && !strncmp(x, y, strcspn(x, "-")) &&
           !strstr(x, "android") == !strstr(y, "android") &&
           !strstr(x, "linux") == !strstr(y, "linux");
}

bool remote_is_foreign(Ctx *c, const Target *t)
{
    return !t->host && !same_machine(c->arena, t->triple, own_triple(c));
}

/* ---- the parts of a product ---- */

static bool no(Remote *r, const char *file, const char *what)
{
    return diag_error(r->driver->diags, E_RUN, (Loc){.file = file}, "%s", what);
}

/* Linked against Android's C library, which is libc.so and not libc.so.6. */
static bool wants_bionic(const Object *f)
{
    for (uint32_t i = 0; i < f->nneeded; i++)
        if (!strcmp(f->needed[i], "libc.so"))
            return true;
    return false;
}

/* The model that an object defines: <entry>_info. */
static bool read_object(Remote *r, const char *file, Bytes b)
{
    const char *wanted = r->driver->opt.compile.entry;
    Object      f;

    if (!object_read(r->driver->diags, r->driver->arena, file, b, &f))
        return false;
    if (wants_bionic(&f)) {
        diag_error(r->driver->diags, E_UNSUPPORTED, (Loc){.file = file},
                   "a shared library for Android runs on Android only");
        diag_hint(r->driver->diags, "the object and the static library (.o, .a) of the same model "
                                    "run here");
        return false;
    }
    if (!r->triple)
        r->triple = object_triple(&f);
    for (uint32_t i = 1; i < f.nsymbols; i++) {
        const char *name = f.symbols[i].name;

        if (!f.symbols[i].section || f.symbols[i].bind != SYMBOL_GLOBAL || !str_ends(name, "_info"))
            continue;
        name = arena_printf(r->driver->arena, "%.*s", (int)strlen(name) - 5, name);
        if (wanted && strcmp(name, wanted))
            continue;
        if (r->entry && strcmp(r->entry, name))
            return no(r, file, "it holds several models: say with --entry which one");
        r->entry = name;
    }
    return true;
}

static bool read_code(Remote *r, const char *file, Bytes b)
{
    Member  *m;
    uint32_t n;

    if (!ar_is_library(b))
        return read_object(r, file, b);
    if (!ar_members(r->driver->diags, r->driver->arena, file, b, &m, &n))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!read_object(r, arena_printf(r->driver->arena, "%s(%s)", file, m[i].path), m[i].data))
            return false;
    return true;
}

/* A model as C.  It runs anywhere, unless it has vectors. */
static bool read_source(Remote *r, const char *file, Bytes text)
{
    SourceInfo info;

    if (!source_read(r->driver->arena, text, &info))
        return no(r, file, "this is no model that '--target=c' wrote");
    r->source = true;
    r->entry = info.entry;
    r->options = info.options;
    if (!r->triple && strstr(info.target, " -mattr="))
        r->triple = job_target_word(r->driver->arena, info.target, "-mtriple=");
    if (!r->triple)
        r->triple = own_triple(r->driver->c);
    return true;
}

/* Text that includes its header, with the header in front. */
static Bytes with_header(Arena *a, Bytes header, Bytes text)
{
    StrBuf s = strbuf(a);

    str_add(&s, "#define TVMCC_PLAIN_NAMES\n");
    str_addn(&s, (const char *)header.at, header.n);
    str_addn(&s, (const char *)text.at, text.n);
    return (Bytes){(const uint8_t *)s.at, s.n};
}

/* A weights file in the archive. */
static bool read_weights(Remote *r, const Member *m, uint32_t n)
{
    for (uint32_t i = 0; i < n && r->product; i++)
        if (r->entry &&
            str_ends(m[i].path, arena_printf(r->driver->arena, "/%s.weights", r->entry)) &&
            !(r->weights = temporary_with(r, m[i].data)))
            return false;
    return r->product != NULL;
}

/* `net/src/net.c` and its header. */
static bool read_archived_source(Remote *r, const char *file, const Member *m, uint32_t n)
{
    Arena        *a = r->driver->arena;
    const Member *source = NULL, *header = NULL;
    bool          shared = false;

    for (uint32_t i = 0; i < n; i++) {
        shared |= str_ends(m[i].path, ".so");
        if (!str_ends(m[i].path, ".c") || !strstr(m[i].path, "src/"))
            continue;
        if (source)
            return no(r, file, "it holds several models: give one of their C files");
        source = &m[i];
    }
    if (!source)
        return no(r, file, shared ? "it holds no static library" : "no model is in it");
    if (!read_source(r, file, source->data))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (strstr(m[i].path, "include/") &&
            str_ends(m[i].path, arena_printf(a, "/%s.h", r->entry)))
            header = &m[i];
    if (!header)
        return no(r, file, "the header of its model is not in it");
    r->product = temporary_with(r, with_header(a, header->data, source->data));
    return read_weights(r, m, n);
}

/* `net/lib/<triple>/libnet.a` and `net/share/net/net.weights`. */
static bool read_archive(Remote *r, const char *file, const Member *m, uint32_t n)
{
    Arena        *a = r->driver->arena;
    const Member *library = NULL;

    for (uint32_t i = 0; i < n; i++) {
        const char *slash = strrchr(m[i].path, '/'), *lib = strstr(m[i].path, "lib/");

        if (!str_ends(m[i].path, ".a") || !slash || !lib || lib + 4 > slash)
            continue;
        if (library)
            return no(r, file, "it holds several libraries: give one of them");
        library = &m[i];
        if (!r->triple)
            r->triple = arena_printf(a, "%.*s", (int)(slash - lib - 4), lib + 4);
    }
    if (!library)
        return read_archived_source(r, file, m, n);
    if (!read_code(r, file, library->data))
        return false;
    r->product = temporary_with(r, library->data);
    return read_weights(r, m, n);
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool read_product(Remote *r, const char *path)
{
    Driver  *driver = r->driver;
    Member  *m;
    uint32_t n;
    Bytes    b;

    if (is_folder(path))
        return bundle_read(driver->diags, driver->arena, path, (Bytes){0}, &m, &n) &&
               read_archive(r, path, m, n);
    if (!file_map(driver->diags, path, &b))
        return false;
    if (pack_format(path) != PACK_NONE)
        return bundle_read(driver->diags, driver->arena, path, b, &m, &n) &&
               read_archive(r, path, m, n);
    r->shared = str_ends(path, ".so");
    r->product = path;
    if (str_ends(path, ".c") ? !read_source(r, path, b) : !read_code(r, path, b))
        return false;
    if (r->entry) { /* weights beside it */
        const char *slash = strrchr(path, '/');
        const char *stem = r->shared
                               ? arena_printf(driver->arena, "%.*s%s",
                                              (int)(slash ? slash + 1 - path : 0), path, r->entry)
                               : arena_printf(driver->arena, "%.*s", (int)strlen(path) - 2, path);
        const char *weights = arena_printf(driver->arena, "%s.weights", stem);

        r->weights = exists(weights) ? weights : NULL;
    }
    return true;
}

bool remote_wants(const char *path)
{
    PackFormat f = pack_format(path);

    return str_ends(path, ".o") || str_ends(path, ".a") || str_ends(path, ".c") ||
           (f != PACK_NONE && f != PACK_TAR);
}

bool remote_foreign_product(Driver *driver, const char *path)
{
    Remote  *r = remote_new(driver);
    Object   f;
    Bytes    b;
    uint32_t errors = diag_errors(driver->diags);
    bool     foreign;

    if (str_ends(path, ".so") && file_map(driver->diags, path, &b) &&
        object_read(driver->diags, driver->arena, path, b, &f))
        r->triple = object_triple(&f);
    else if (!str_ends(path, ".so"))
        read_product(r, path);
    foreign = diag_errors(driver->diags) == errors && r->triple &&
              (r->source || !same_machine(driver->arena, r->triple, own_triple(driver->c)));
    remote_close(r);
    return foreign;
}

/* ---- building the program ---- */

static const char *debian_arch(const char *triple)
{
    static const struct {
        const char *prefix, *suffix, *arch;
    } rows[] = {{"aarch64", "", "arm64"},   {"arm", "hf", "armhf"}, {"arm", "", "armel"},
                {"riscv64", "", "riscv64"}, {"i686", "", "i386"},   {"x86_64", "", "amd64"}};

    for (size_t i = 0; i < COUNT(rows); i++)
        if (str_starts(triple, rows[i].prefix) && str_ends(triple, rows[i].suffix))
            return rows[i].arch;
    return NULL;
}

static bool no_compiler(Remote *r)
{
    Diags      *d = r->driver->diags;
    const char *arch = debian_arch(r->triple);

    diag_error(d, E_NO_TOOL, NO_LOC, "no compiler and C library for '%s' is on this machine",
               r->triple);
    if (r->native)
        diag_hint(d, "apt-get install gcc libc6-dev, or name a compiler with --cc");
    else if (str_starts(r->triple, "wasm"))
        diag_hint(d, "apt-get install clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32");
    else if (arch)
        diag_hint(d,
                  "apt-get install clang-19 lld-19 libc6-dev-%s-cross libgcc-12-dev-%s-cross, or "
                  "name a compiler with --cc",
                  arch, arch);
    else
        diag_hint(d, "name a compiler with --cc");
    return false;
}

/* The compiler with what makes it link for the machine. */
static bool choose_compiler(Remote *r, ToolArgs *args)
{
    static const char *const natives[] = {"cc", "gcc", "clang-19", "clang"};
    static const char *const clangs[] = {"clang-19", "clang"};
    static const char *const linkers[] = {"ld.lld-19", "ld.lld"};
    static const char *const wasm_linkers[] = {"wasm-ld-19", "wasm-ld"};
    Arena                   *a = r->driver->arena;
    const char              *cc = r->driver->opt.cc, *clang, *lld;
    bool                     wasm = str_starts(r->triple, "wasm");

    if (!cc && r->native)
        cc = tool_find_any(a, natives, COUNT(natives));
    if (!cc)
        cc = tool_ndk_clang(a, r->triple);
    if (!cc)
        cc = file_find_tool(a, arena_printf(a, "%s-gcc", r->triple));
    if (cc) {
        tool_words(a, args, cc);
        return true;
    }
    clang = tool_find_any(a, clangs, COUNT(clangs));
    lld = wasm ? tool_find_any(a, wasm_linkers, COUNT(wasm_linkers))
               : tool_find_any(a, linkers, COUNT(linkers));
    if (!clang || !lld || r->native ||
        !exists(wasm ? "/usr/include/wasm32-wasi/stdio.h"
                     : arena_printf(a, "/usr/%s/include/stdio.h", r->triple)))
        return no_compiler(r);
    vec_push(a, args, clang);
    vec_push(a, args, arena_printf(a, "--target=%s", r->triple));
    vec_push(a, args, arena_printf(a, "-fuse-ld=%s", lld));
    return true;
}

/* abi.h and the runner as one source. */
static Bytes runner_source(Arena *a)
{
    Bytes  abi = abi_header();
    StrBuf s = strbuf(a);

    str_addn(&s, (const char *)abi.at, abi.n);
    str_addn(&s, (const char *)runner_text, runner_text_bytes);
    return (Bytes){(const uint8_t *)s.at, s.n};
}

static bool build(Remote *r)
{
    Diags      *d = r->driver->diags;
    Arena      *a = r->driver->arena;
    const char *source = temporary_with(r, runner_source(a)), *slash;
    ToolArgs    args = {0};
    int         status = 0;

    r->program = temporary(r, 0777);
    r->in = temporary(r, 0666);
    r->out = temporary(r, 0666);
    if (!source || !r->program || !r->in || !r->out || !choose_compiler(r, &args))
        return false;
    tool_words(a, &args, "-O1 -w");
    if (r->options)
        tool_words(a, &args, r->options);
    vec_push(a, &args, arena_printf(a, "-DTVMCC_INFO=%s_info", r->entry));
    tool_words(a, &args, "-x c");
    vec_push(a, &args, source);
    if (!r->source)
        tool_words(a, &args, "-x none");
    vec_push(a, &args, r->product);
    if (r->source)
        tool_words(a, &args, "-x none");
    if (r->shared) {
        slash = strrchr(r->product, '/');
        vec_push(a, &args,
                 arena_printf(a, "-Wl,-rpath,%s",
                              slash ? arena_printf(a, "%.*s", (int)(slash - r->product), r->product)
                                    : "."));
    } else if (!r->native && !str_starts(r->triple, "wasm")) {
        vec_push(a, &args, "-static");
    }
    tool_words(a, &args, "-lm -o");
    vec_push(a, &args, r->program);
    if (!tool_run(d, a, &args, r->driver->opt.verbose, &status))
        return false;
    return status == 0 || (file_room(d, a, r->program, PROGRAM_BYTES) &&
                           diag_error(d, E_NO_TOOL, NO_LOC, "'%s' could not link '%s' for '%s'",
                                      args.at[0], r->product, r->triple));
}

/* ---- running it ---- */

/* What Node needs to run a WebAssembly program: its system interface, with all files. */
static const char node_launcher[] =
    "const { WASI } = require('node:wasi'), fs = require('node:fs');\n"
    "const args = process.argv.slice(2);\n"
    "const wasi = new WASI({ version: 'preview1', args, preopens: { '/': '/' } });\n"
    "WebAssembly.instantiate(fs.readFileSync(args[0]), wasi.getImportObject())\n"
    "  .then((w) => { process.exitCode = wasi.start(w.instance); });\n";

static bool choose_emulator(Remote *r, ToolArgs *args)
{
    Arena      *a = r->driver->arena;
    const char *given =
        r->driver->opt.emulator ? r->driver->opt.emulator : getenv("TVMCC_EMULATOR");
    const char *arch = arena_printf(a, "%.*s", (int)strcspn(r->triple, "-"), r->triple), *tool;
    bool        wasm = str_starts(r->triple, "wasm");

    if (given && *given) {
        tool_words(a, args, given);
        return true;
    }
    if (r->native)
        return true;
    if (wasm) {
        const char *launcher;

        if ((tool = file_find_tool(a, "wasmtime"))) {
            vec_push(a, args, tool);
            tool_words(a, args, "run --dir=/");
            return true;
        }
        if ((tool = file_find_tool(a, "node"))) {
            launcher = temporary_with(
                r, (Bytes){(const uint8_t *)node_launcher, sizeof node_launcher - 1});
            vec_push(a, args, tool);
            vec_push(a, args, "--no-warnings");
            vec_push(a, args, launcher);
            return launcher != NULL;
        }
    } else {
        const char *name = !strcmp(arch, "i686") ? "i386" : arch;
        const char *names[] = {arena_printf(a, "qemu-%s-static", name),
                               arena_printf(a, "qemu-%s", name)};

        if ((tool = tool_find_any(a, names, COUNT(names)))) {
            vec_push(a, args, tool);
            if (r->shared) {
                vec_push(a, args, "-L");
                vec_push(a, args, arena_printf(a, "/usr/%s", r->triple));
            }
            return true;
        }
    }
    diag_error(r->driver->diags, E_NO_TOOL, NO_LOC, "no emulator for '%s' is on this machine",
               r->triple);
    diag_hint(r->driver->diags, "apt-get install %s, or name one with --emulator",
              wasm ? "nodejs" : "qemu-user-static");
    return false;
}

static bool start(Remote *r, const char *verb, const char *x, const char *y, const char *z,
                  const char *last)
{
    Diags      *d = r->driver->diags;
    Arena      *a = r->driver->arena;
    const char *words[] = {r->program, verb, x, y, z, last};
    ToolArgs    args = {0};
    int         status = 0;

    if (!choose_emulator(r, &args))
        return false;
    for (size_t i = 0; i < COUNT(words) && words[i]; i++)
        vec_push(a, &args, words[i]);
    if (!tool_run(d, a, &args, r->driver->opt.verbose, &status))
        return false;
    if (status > 128)
        return diag_error(d, E_RUN, NO_LOC, "'%s' was ended by signal %d%s", args.at[0],
                          status - 128, r->native ? "" : " under the emulator");
    return status == 0 ||
           diag_error(d, E_RUN, NO_LOC, "'%s' ended with status %d", args.at[0], status);
}

/* ---- what it says of itself ---- */

static bool read_info(Remote *r)
{
    Bytes b;
    bool  weights;

    if (!start(r, "info", r->out, NULL, NULL, NULL) ||
        !file_read(r->driver->diags, r->driver->arena, r->out, &b))
        return false;
    r->info.name = r->entry;
    const char *wrong = remote_parse(r->driver->arena, b, &r->info, &weights);
    if (wrong)
        return no(r, r->product, wrong);
    if (weights && !r->weights)
        return no(r, r->product, "its weights file is not beside it");
    if (!weights)
        r->weights = NULL;
    return true;
}

const tvmcc_model_info *remote_info(const Remote *r)
{
    return &r->info;
}

static bool write_inputs(Remote *r, const tvmcc_model_info *info, void *const *in)
{
    FILE *f = fopen(r->in, "wb");
    bool  ok = f != NULL;

    for (uint32_t i = 0; ok && i < info->ninputs; i++)
        ok = fwrite(in[i], 1, info->inputs[i].bytes, f) == info->inputs[i].bytes;
    if (f)
        ok = fclose(f) == 0 && ok;
    return ok ||
           diag_error(r->driver->diags, E_IO, (Loc){.file = r->in}, "cannot write '%s'", r->in);
}

bool remote_steps(Remote *r, void *const *in, Bytes *out)
{
    return write_inputs(r, &r->info, in) && start(r, "steps", r->in, r->out, r->weights, NULL) &&
           file_read(r->driver->diags, r->driver->arena, r->out, out);
}

bool remote_run(Remote *r, const tvmcc_model_info *info, void *const *in, void *const *out)
{
    FILE       *f;
    bool        ok = true;
    const char *bucket = NULL, *weights = r->weights;

    for (uint32_t b = 0; b < r->info.nbuckets; b++)
        if (r->info.buckets[b] == info)
            bucket = arena_printf(r->driver->arena, "%u", b);
    if (bucket && !weights)
        weights = "";
    if (!write_inputs(r, info, in) || !start(r, "run", r->in, r->out, weights, bucket))
        return false;
    f = fopen(r->out, "rb");
    for (uint32_t i = 0; f && ok && i < info->noutputs; i++)
        ok = fread(out[i], 1, info->outputs[i].bytes, f) == info->outputs[i].bytes;
    ok = ok && f && fgetc(f) == EOF;
    if (f)
        fclose(f);
    return ok || no(r, r->product, "its program wrote too little or too much");
}

void remote_close(Remote *r)
{
    for (uint32_t i = 0; i < r->temporary.n; i++)
        file_drop(r->temporary.at[i]);
    r->temporary.n = 0;
    if (r->folder)
        file_drop_folder(r->folder);
    r->folder = NULL;
}

/* ---- opening ---- */

static Remote *ready(Remote *r)
{
    const char *own = own_triple(r->driver->c);

    if (!r->entry)
        no(r, r->product ? r->product : r->driver->opt.inputs.at[0], "no model is in it");
    else if (!r->triple)
        no(r, r->product, "its machine is unknown: say with -mtriple which one it is for");
    else {
        Arena *a = r->driver->arena;

        r->native = same_machine(a, r->triple, own);
        r->triple = tool_triple(a, r->triple);
        if (strstr(r->triple, "android") && !tool_ndk_clang(a, r->triple) && !r->driver->opt.cc) {
            const char *arch = arena_printf(a, "%.*s", (int)strcspn(r->triple, "-"), r->triple);

            r->triple =
                arena_printf(a, "%s-linux-%s", arch, strcmp(arch, "arm") ? "gnu" : "gnueabi");
            r->native = same_machine(a, r->triple, own);
        }
        if (build(r) && read_info(r))
            return r;
    }
    remote_close(r);
    return NULL;
}

Remote *remote_product(Driver *driver, const char *path)
{
    Remote *r = remote_new(driver);

    if (read_product(r, path))
        return ready(r);
    remote_close(r);
    return NULL;
}

Remote *remote_model(Driver *driver, Job *job)
{
    Remote   *r = remote_new(driver);
    Compiled *k = &job->k;
    Bytes     code;

    r->source = k->backend->is_source;
    if (r->source)
        r->options = k->backend->compiler_options(job->c, k->plan->target);
    if (!r->source)
        r->triple = k->plan->target->triple;
    else if (!r->triple && strstr(k->plan->target->text, " -mattr=")) /* of one machine */
        r->triple = job_target_word(driver->arena, k->plan->target->text, "-mtriple=");
    else if (!r->triple)
        r->triple = own_triple(job->c);
    r->entry = k->entry;
    if (!compile_code(job->c, k, r->source ? EMIT_SOURCE : EMIT_OBJECT, &code))
        return NULL;
    if (r->source)
        code = with_header(driver->arena, header_text(driver->arena, k->desc), code);
    bool ok =
        !k->weights.n || (r->weights = temporary_with(
                              r, weights_file(driver->arena, k->weights, k->desc->weights_sha)));
    if (ok && (r->product = temporary_with(r, code)))
        return ready(r);
    remote_close(r);
    return NULL;
}
