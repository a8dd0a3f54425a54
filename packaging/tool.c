/* tool.c: the programs of a toolchain, found and run: compilers, linkers, emulators.
 *
 * Names are looked for as a shell would; triples are those of Debian's cross packages
 * (aarch64-linux-gnu), which is what compilers and library folders are called by, while LLVM says
 * aarch64-unknown-linux-gnu.
 */
#include "packaging/packaging.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tool_find_any(Arena *a, const char *const *names, uint32_t n)
{
    const char *found = NULL;

    for (uint32_t i = 0; i < n && !found; i++)
        found = file_find_tool(a, names[i]);
    return found;
}

void tool_words(Arena *a, ToolArgs *args, const char *command)
{
    while (*(command += strspn(command, " "))) {
        size_t n = strcspn(command, " ");

        vec_push(a, args, arena_printf(a, "%.*s", (int)n, command));
        command += n;
    }
}

bool tool_run(Diags *d, Arena *a, const ToolArgs *args, bool verbose, int *status)
{
    ToolArgs all = {0};
    int      rc;

    for (uint32_t i = 0; i < args->n; i++) {
        vec_push(a, &all, args->at[i]);
        if (verbose)
            fprintf(stderr, "%s%s", i ? " " : "", args->at[i]);
    }
    if (verbose)
        fputc('\n', stderr);
    vec_push(a, &all, (const char *)NULL);
    rc = file_run_tool(all.at, status);
    return rc == 0 ||
           diag_error(d, E_NO_TOOL, NO_LOC, "cannot run '%s': %s", all.at[0], strerror(rc));
}

const char *tool_triple(Arena *a, const char *triple)
{
    static const struct {
        const char *prefix, *arch;
    } archs[] = {{"arm64", "aarch64"}, {"aarch64", "aarch64"}, {"armv", "arm"},  {"arm", "arm"},
                 {"thumb", "arm"},     {"i386", "i686"},       {"i486", "i686"}, {"i586", "i686"}};
    size_t      n = strcspn(triple, "-");
    const char *arch = arena_printf(a, "%.*s", (int)n, triple), *rest = triple + n;

    for (size_t i = 0; i < COUNT(archs); i++)
        if (str_starts(arch, archs[i].prefix)) {
            arch = archs[i].arch;
            break;
        }
    if (str_starts(rest, "-unknown-") || str_starts(rest, "-pc-"))
        rest += strcspn(rest + 1, "-") + 1;
    return arena_printf(a, "%s%s", arch, rest);
}

const char *tool_ndk_clang(Arena *a, const char *triple)
{
    static const char *const variables[] = {"ANDROID_NDK", "ANDROID_NDK_ROOT", "ANDROID_NDK_HOME"};
    const char              *environment = strstr(triple, "android"), *level;
    const char              *arch = tool_triple(a, triple), *clang;

    if (!environment)
        return NULL;
    level = environment + strcspn(environment, "0123456789");
    arch = str_starts(arch, "arm")
               ? "armv7a-linux-androideabi"
               : arena_printf(a, "%.*s-linux-android", (int)strcspn(arch, "-"), arch);
    for (size_t i = 0; i < COUNT(variables); i++) {
        const char *ndk = getenv(variables[i]);

        if (!ndk || !*ndk)
            continue;
        clang = arena_printf(a, "%s/toolchains/llvm/prebuilt/linux-x86_64/bin/%s%s-clang", ndk,
                             arch, *level ? level : "21");
        if (file_find_tool(a, clang))
            return clang;
    }
    return NULL;
}
