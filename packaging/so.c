/* so.c: shared libraries, through the linker of the machine.
 *
 * The compiler driver is preferred because it knows where the C library of its target is; without
 * one, lld makes a library whose few calls of libc and libm are resolved by the program that loads
 * it.  The linker writes beside the output; the result is then written like every other product, so
 * equal bytes leave the file alone.  No start files: a model has no constructors.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* posix_spawnp, access */
#endif
#include "packaging/packaging.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

typedef VEC(const char *) Args;

static bool executable(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* As the shell would find it: NULL if no folder of PATH has it. */
static const char *find_tool(Arena *a, const char *name)
{
    const char *path = getenv("PATH");

    if (strchr(name, '/'))
        return executable(name) ? name : NULL;
    while (path && *path) {
        size_t      n = strcspn(path, ":");
        const char *full = arena_printf(a, "%.*s/%s", (int)n, path, name);

        if (n && executable(full))
            return full;
        path += n + (path[n] == ':');
    }
    return NULL;
}

static bool starts_with_tool(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');

    return str_starts(slash ? slash + 1 : path, name);
}

static void add_cc(Arena *a, Args *args, const char *cc)
{
    vec_push(a, args, cc);
    vec_push(a, args, "-nostartfiles");
}

/* The command up to the linker's options.  False: no tool on this machine. */
static bool choose_tool(Arena *a, const LinkJob *job, Args *args, bool *driver)
{
    static const char *const natives[] = {"cc", "gcc", "clang", "clang-19"};
    static const char *const clangs[] = {"clang-19", "clang"};
    static const char *const linkers[] = {"ld.lld-19", "ld.lld", "ld"};
    const char              *tool;

    *driver = true;
    if (job->cc) {
        tool = find_tool(a, job->cc);
        *driver = tool && !starts_with_tool(tool, "ld");
        if (tool && *driver)
            add_cc(a, args, tool);
        else if (tool)
            vec_push(a, args, tool);
        return tool != NULL;
    }
    for (size_t i = 0; job->native && i < COUNT(natives); i++)
        if ((tool = find_tool(a, natives[i])) != NULL) {
            add_cc(a, args, tool);
            return true;
        }
    if (!job->native && (tool = find_tool(a, arena_printf(a, "%s-gcc", job->triple))) != NULL) {
        add_cc(a, args, tool);
        return true;
    }
    *driver = false;
    for (size_t i = 0; i < COUNT(linkers) - !job->native; i++)
        if ((tool = find_tool(a, linkers[i])) != NULL) {
            vec_push(a, args, tool);
            return true;
        }
    *driver = true;
    for (size_t i = 0; i < COUNT(clangs); i++)
        if ((tool = find_tool(a, clangs[i])) != NULL) {
            add_cc(a, args, tool);
            vec_push(a, args, arena_printf(a, "--target=%s", job->triple));
            return true;
        }
    return false;
}

static const char *linker_option(Arena *a, bool driver, const char *option, const char *value)
{
    if (!driver)
        return value ? arena_printf(a, "%s=%s", option, value) : option;
    return value ? arena_printf(a, "-Wl,%s=%s", option, value) : arena_printf(a, "-Wl,%s", option);
}

static void add_z(Arena *a, Args *args, bool driver, const char *keyword)
{
    if (driver) {
        vec_push(a, args, arena_printf(a, "-Wl,-z,%s", keyword));
    } else {
        vec_push(a, args, "-z");
        vec_push(a, args, keyword);
    }
}

static void add_options(Arena *a, const LinkJob *job, Args *args, bool driver, const char *output)
{
    const char *slash = strrchr(job->output, '/');
    const char *soname = job->soname ? job->soname : slash ? slash + 1 : job->output;

    vec_push(a, args, "-shared");
    vec_push(a, args, linker_option(a, driver, "-soname", soname));
    vec_push(a, args, linker_option(a, driver, "--build-id", "none"));
    vec_push(a, args, linker_option(a, driver, "--hash-style", "gnu"));
    vec_push(a, args, linker_option(a, driver, "--gc-sections", NULL));
    add_z(a, args, driver, "now");
    add_z(a, args, driver, "noexecstack");
    if (strstr(job->triple, "android")) /* pages of 16 KiB since Android 15 */
        add_z(a, args, driver, "max-page-size=16384");
    vec_push(a, args, "-o");
    vec_push(a, args, output);
    for (uint32_t i = 0; i < job->nobjects; i++)
        vec_push(a, args, job->objects[i]);
    if (driver)
        vec_push(a, args, "-lm");
}

static bool run_tool(Diags *d, Arena *a, Args *args, bool verbose)
{
    pid_t pid;
    int   status = 0, rc;

    if (verbose) {
        for (uint32_t i = 0; i < args->n; i++)
            fprintf(stderr, "%s%s", i ? " " : "", args->at[i]);
        fputc('\n', stderr);
    }
    vec_push(a, args, (const char *)NULL);
    rc = posix_spawn(&pid, args->at[0], NULL, NULL, (char *const *)(uintptr_t)args->at, environ);
    if (rc)
        return diag_error(d, E_NO_TOOL, NO_LOC, "cannot run '%s': %s", args->at[0], strerror(rc));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return diag_error(d, E_PACK, NO_LOC, "'%s' could not link the library", args->at[0]);
    return true;
}

bool link_shared(Diags *d, Arena *a, const LinkJob *job)
{
    const char *output = NULL;
    Args        args = {0};
    bool        driver, ok;
    Bytes       bytes;

    if (!choose_tool(a, job, &args, &driver)) {
        diag_error(d, E_NO_TOOL, NO_LOC, "no linker for '%s' is on this machine",
                   job->cc ? job->cc : job->triple);
        diag_hint(d, "install a C compiler or ld.lld, or make an object (-c) "
                     "and link it elsewhere");
        return false;
    }
    if (!(output = file_temporary(d, a, job->output, 0777)))
        return false;
    add_options(a, job, &args, driver, output);
    ok = run_tool(d, a, &args, job->verbose) && file_read(d, a, output, &bytes) &&
         file_write_mode(d, job->output, bytes, 0755);
    file_drop(output);
    return ok;
}
