/* so.c: shared libraries, through the linker of the machine.
 *
 * The compiler driver is preferred because it knows where the C library of its target is: this
 * machine's, the Android NDK's, a cross gcc, or clang with a C library under /usr/<triple>. Without
 * one, lld does it alone.  So that the library still says which others it needs (an Android loader
 * resolves symbols through NEEDED entries only), libc and libm are then stood in for by libraries
 * made on the spot, which define the names asked for and nothing else.  The linker writes beside
 * the output; the result then gets its name, unless the file has these bytes already. No start
 * files: a model has no constructors.
 */
#include "packaging/packaging.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    Diags         *d;
    Arena         *a;
    const LinkJob *job;
    ToolArgs       args;
    bool           driver; /* a compiler, not a bare linker */
    ToolArgs       stubs;  /* temporary files */
} Link;

bool shared_possible(const char *triple)
{
    return !strstr(triple, "windows") && !strstr(triple, "apple") && !str_starts(triple, "wasm") &&
           (!strstr(triple, "-none-") || strstr(triple, "linux"));
}

static bool is_linker(const char *path)
{
    const char *slash = strrchr(path, '/');

    return str_starts(slash ? slash + 1 : path, "ld");
}

static bool use_driver(Link *l, const char *cc)
{
    tool_words(l->a, &l->args, cc);
    l->driver = true;
    vec_push(l->a, &l->args, "-nostartfiles");
    return true;
}

/* The command up to the linker's options.  False: no tool on this machine. */
static bool choose_tool(Link *l)
{
    static const char *const natives[] = {"cc", "gcc", "clang", "clang-19"};
    static const char *const clangs[] = {"clang-19", "clang"};
    static const char *const linkers[] = {"ld.lld-19", "ld.lld", "ld"};
    const LinkJob           *job = l->job;
    const char              *triple = tool_triple(l->a, job->triple), *tool, *lld;

    if (job->cc) {
        tool =
            file_find_tool(l->a, arena_printf(l->a, "%.*s", (int)strcspn(job->cc, " "), job->cc));
        if (tool && !is_linker(tool))
            return use_driver(l, job->cc);
        if (tool)
            tool_words(l->a, &l->args, job->cc);
        return tool != NULL;
    }
    if (job->native && (tool = tool_find_any(l->a, natives, COUNT(natives))) != NULL)
        return use_driver(l, tool);
    if ((tool = tool_ndk_clang(l->a, job->triple)) != NULL)
        return use_driver(l, tool);
    if (!job->native && (tool = file_find_tool(l->a, arena_printf(l->a, "%s-gcc", triple))) != NULL)
        return use_driver(l, tool);
    lld = tool_find_any(l->a, linkers, COUNT(linkers) - !job->native);
    tool = tool_find_any(l->a, clangs, COUNT(clangs));
    if (tool && lld && !access(arena_printf(l->a, "/usr/%s/lib/libc.so", triple), R_OK)) {
        use_driver(l, tool);
        vec_push(l->a, &l->args, arena_printf(l->a, "--target=%s", triple));
        vec_push(l->a, &l->args, arena_printf(l->a, "-fuse-ld=%s", lld));
        return true;
    }
    if (lld)
        vec_push(l->a, &l->args, lld);
    return lld != NULL;
}

static void add_option(Link *l, const char *option, const char *value)
{
    const char *pass = l->driver ? "-Wl," : "";

    vec_push(l->a, &l->args,
             value ? arena_printf(l->a, "%s%s%c%s", pass, option, l->driver ? ',' : '=', value)
                   : arena_printf(l->a, "%s%s", pass, option));
}

static void add_z(Link *l, const char *keyword)
{
    if (l->driver) {
        add_option(l, "-z", keyword);
    } else {
        vec_push(l->a, &l->args, "-z");
        vec_push(l->a, &l->args, keyword);
    }
}

static void add_options(Link *l, const char *output)
{
    const LinkJob *job = l->job;
    const char    *slash = strrchr(job->output, '/');

    vec_push(l->a, &l->args, "-shared");
    add_option(l, "-soname", job->soname ? job->soname : slash ? slash + 1 : job->output);
    if (l->driver) /* -Wl,--build-id,none is not taken */
        vec_push(l->a, &l->args, "-Wl,--build-id=none");
    else
        add_option(l, "--build-id", "none");
    /* Android before 6 reads only the older table. */
    add_option(l, "--hash-style", strstr(job->triple, "android") ? "both" : "gnu");
    add_option(l, "--gc-sections", NULL);
    add_z(l, "now");
    add_z(l, "noexecstack");
    if (strstr(job->triple, "android")) /* pages of 16 KiB since Android 15 */
        add_z(l, "max-page-size=16384");
    vec_push(l->a, &l->args, "-o");
    vec_push(l->a, &l->args, output);
    for (uint32_t i = 0; i < job->nobjects; i++)
        vec_push(l->a, &l->args, job->objects[i]);
    if (l->driver)
        vec_push(l->a, &l->args, "-lm");
}

/* ---- libraries that stand in for libc and libm ---------------------------------------------- */

typedef struct {
    ObjectTarget target;
    ToolArgs     libm, libc; /* names that the objects ask for */
} Wanted;

static bool find_wanted(Link *l, Wanted *w)
{
    for (uint32_t i = 0; i < l->job->nobjects; i++) {
        Bytes  b;
        Object f;

        if (!file_map(l->d, l->job->objects[i], &b) ||
            !elf_read(l->d, l->a, l->job->objects[i], b, &f))
            return false;
        w->target = f.target;
        for (uint32_t k = 1; k < f.nsymbols; k++) {
            const char *name = f.symbols[k].name;

            if (f.symbols[k].section || !*name)
                continue;
            if (symbol_is_libm(name))
                vec_push(l->a, &w->libm, name);
            else if (str_starts(name, "mem"))
                vec_push(l->a, &w->libc, name);
        }
    }
    return true;
}

/* Whether a linker that failed could have written the library; if not, that is the error.  What it
 * left is gone, and it is about as large as its objects. */
static bool has_room(Link *l)
{
    uint64_t    bytes = 64 << 10; /* its own tables, and the rest of pages */
    struct stat st;

    for (uint32_t i = 0; i < l->job->nobjects; i++)
        bytes += stat(l->job->objects[i], &st) == 0 ? (uint64_t)st.st_size : 0;
    return file_room(l->d, l->a, l->job->output, bytes);
}

/* A shared library that defines these names; it joins the command. */
static bool add_stub(Link *l, const Wanted *w, const ToolArgs *names, const char *soname)
{
    Member     *m = NEW_ARRAY(l->a, Member, names->n + 1);
    const char *library = file_temporary(l->d, l->a, l->job->output, 0666);
    const char *shared = file_temporary(l->d, l->a, l->job->output, 0777);
    ToolArgs    args = {0};
    Bytes       bytes;
    int         status = 0;

    if (!library || !shared)
        return false;
    vec_push(l->a, &l->stubs, library);
    vec_push(l->a, &l->stubs, shared);
    for (uint32_t i = 0; i < names->n; i++)
        m[i] = (Member){.path = arena_printf(l->a, "%u.o", i),
                        .data = elf_blob(l->a, &w->target, names->at[i], (Bytes){0})};
    m[names->n] =
        (Member){.path = "stub.o", .data = elf_blob(l->a, &w->target, "tvmcc_stub", (Bytes){0})};
    if (!ar_library(l->d, l->a, m, names->n + 1, &bytes) || !file_write(l->d, library, bytes))
        return false;
    vec_push(l->a, &args, l->args.at[0]);
    tool_words(l->a, &args, "-shared --whole-archive");
    vec_push(l->a, &args, arena_printf(l->a, "-soname=%s", soname));
    vec_push(l->a, &args, "-o");
    vec_push(l->a, &args, shared);
    vec_push(l->a, &args, library);
    if (!tool_run(l->d, l->a, &args, l->job->verbose, &status))
        return false;
    vec_push(l->a, &l->args, shared);
    return status == 0 ||
           (has_room(l) &&
            diag_error(l->d, E_PACK, NO_LOC, "'%s' could not link '%s'", args.at[0], soname));
}

/* libm where it is asked for; libc always on Android, whose loader wants it named. */
static bool add_stubs(Link *l)
{
    bool   android = strstr(l->job->triple, "android") != NULL;
    Wanted w = {0};

    if (l->driver || !strstr(l->job->triple, "linux"))
        return true;
    return find_wanted(l, &w) &&
           (!w.libm.n || add_stub(l, &w, &w.libm, android ? "libm.so" : "libm.so.6")) &&
           ((!android && !w.libc.n) || add_stub(l, &w, &w.libc, android ? "libc.so" : "libc.so.6"));
}

static bool can_link(Link *l)
{
    const LinkJob *job = l->job;

    if (!shared_possible(job->triple)) {
        diag_error(l->d, E_PACK, NO_LOC, "shared libraries for '%s' are not made here",
                   job->triple);
        diag_hint(l->d, "make an object (-c) or a static library (.a)");
        return false;
    }
    if (!choose_tool(l)) {
        diag_error(l->d, E_NO_TOOL, NO_LOC, "no linker for '%s' is on this machine",
                   job->cc ? job->cc : job->triple);
        diag_hint(l->d, "install a C compiler or ld.lld, or make an object (-c) "
                        "and link it elsewhere");
        return false;
    }
    return true;
}

bool link_command(Diags *d, Arena *a, const LinkJob *job, ToolArgs *out)
{
    Link l = {.d = d, .a = a, .job = job};

    if (!can_link(&l))
        return false;
    add_options(&l, job->output);
    *out = l.args;
    return true;
}

/* Linkers make what they write executable for all; nobody else shall write it. */
static bool set_mode(Diags *d, const char *temporary, const char *path)
{
    int         fd = open(temporary, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    bool        ok = fd >= 0 && fstat(fd, &st) == 0 && fchmod(fd, st.st_mode & 0755) == 0;

    if (!ok)
        diag_error(d, E_IO, NO_LOC, "cannot write '%s': %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

bool link_shared(Diags *d, Arena *a, const LinkJob *job)
{
    Link        l = {.d = d, .a = a, .job = job};
    const char *output;
    int         status = 0;
    bool        ok;

    if (!can_link(&l))
        return false;
    if (!(output = file_temporary(d, a, job->output, 0777)))
        return false;
    add_options(&l, output);
    ok = add_stubs(&l) && tool_run(d, a, &l.args, job->verbose, &status);
    if (ok && status) {
        file_drop(output);
        ok = has_room(&l) &&
             diag_error(d, E_PACK, NO_LOC, "'%s' could not link the library", l.args.at[0]);
    }
    ok = ok && set_mode(d, output, job->output);
    if (!ok)
        file_drop(output);
    ok = ok && file_commit(d, output, job->output);
    for (uint32_t i = 0; i < l.stubs.n; i++)
        file_drop(l.stubs.at[i]);
    return ok;
}
