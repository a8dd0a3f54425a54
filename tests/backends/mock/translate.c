/* C++ text to a shared library by clang.  MOCK_FLAG and MOCK_PATH say where the language's words
 * are defined: "-include" and a header, or "-I" and a folder. */
#include "mock.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

void *mock_read(const char *path, size_t *bytes)
{
    FILE       *f = fopen(path, "rb");
    struct stat st;
    char       *out = NULL;

    if (f && fstat(fileno(f), &st) == 0 && (out = malloc((size_t)st.st_size + 1))) {
        *bytes = fread(out, 1, (size_t)st.st_size, f);
        out[*bytes] = 0;
    }
    if (f)
        fclose(f);
    return out;
}

static int run(const char *const *words, const char *log)
{
    posix_spawn_file_actions_t files;
    pid_t                      pid;
    int                        status = 1;

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 2, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (posix_spawn(&pid, words[0], &files, NULL, (char *const *)(size_t)words, environ) == 0)
        waitpid(pid, &status, 0);
    posix_spawn_file_actions_destroy(&files);
    return status;
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    if (f) {
        fputs(text, f);
        fclose(f);
    }
}

void *mock_compile(const char *text, const char *ir, const char *more, size_t *bytes, char **log)
{
    enum { FILES = 5 };
    static const char *const names[FILES] = {"k.cpp", "k.so", "log", "k.ll", "more.ll"};
    char                     folder[] = "/tmp/mock-XXXXXX", path[FILES][64];
    void                    *code = NULL;
    size_t                   n;

    *log = NULL;
    if (!mkdtemp(folder))
        return NULL;
    for (int i = 0; i < FILES; i++)
        snprintf(path[i], sizeof path[i], "%s/%s", folder, names[i]);
    put(path[0], text);
    if (ir) {
        put(path[3], ir);
        put(path[4], more);
    }
    const char *words[] = {MOCK_CLANG,
                           "-std=c++17",
                           "-w",
                           ir ? "-O0" : "-O1", /* IR has been optimized */
                           "-ffp-contract=off",
                           "-fno-exceptions",
                           "-fno-rtti",
                           "-fPIC",
                           "-shared",
                           "-nostdlib",
                           "-fuse-ld=lld",
                           MOCK_FLAG,
                           MOCK_PATH,
                           path[0],
                           "-o",
                           path[1],
                           "-lm",
                           ir ? path[3] : NULL,
                           path[4],
                           NULL};
    if (run(words, path[2]) == 0)
        code = mock_read(path[1], bytes);
    else
        *log = mock_read(path[2], &n);
    for (int i = 0; i < FILES; i++)
        unlink(path[i]);
    rmdir(folder);
    return code;
}

void *mock_translate(const char *text, size_t *bytes, char **log)
{
    return mock_compile(text, NULL, NULL, bytes, log);
}

/* The loader tells files apart by their names. */
void *mock_load(const void *image, size_t bytes)
{
    char  path[] = "/tmp/mock-library-XXXXXX";
    int   fd = mkstemp(path);
    void *library = NULL;

    if (fd >= 0 && write(fd, image, bytes) == (ssize_t)bytes) {
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            fprintf(stderr, "mock: %s\n", dlerror());
    }
    unlink(path);
    close(fd);
    return library;
}
