/* compiler.h: compile models from a program.  libtvmcc is the compiler that `tvmcc` is the command
 * line of: the same options, the same messages, the same bytes.
 *
 *     const char *const words[] = {"-O3", "-mcpu=haswell", "--dim=N=4"};
 *     tvmcc_session    *session = tvmcc_session_new();
 *     tvmcc_compiled   *net = NULL;
 *
 *     if (!tvmcc_session_options(session, 3, words) &&
 *         !tvmcc_compile(session, "net.onnx", "o", NULL, &net))
 *         tvmcc_compiled_write(net, "o", "net.o");    and net.h beside it
 *     tvmcc_compiled_free(net);
 *     tvmcc_session_free(session);
 *
 * Ownership.  What a function returns belongs to the handle it came from and lives as long as that;
 * arguments are copied, but for the bytes of tvmcc_compile_memory.  The two _free functions take
 * NULL.
 *
 * Threads.  There is no global state.  Any number of compiles may run at once, of one session too,
 * as long as nobody gives the session options meanwhile; a tvmcc_compiled is for one thread at a
 * time.  A compile starts threads of its own (-j) and has ended them when the function returns.
 *
 * Errors.  Functions that can fail return a status: 0, or what `tvmcc` would exit with
 * (docs/exit-status.md).  The reasons are diagnostics of the handle.  Nothing is printed.  Two
 * things end the process, with a message on standard error: a fault of the compiler (status 70),
 * and the end of memory (abort).  Handles may not be NULL where nothing else is said.
 *
 * Structs only grow at the end; a program says by struct_bytes which one it knows. */
#ifndef TVMCC_COMPILER_H
#define TVMCC_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define TVMCC_API
#else
#define TVMCC_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface: raised when a program would have to be compiled again. */
#define TVMCC_COMPILER_ABI 0
TVMCC_API uint32_t tvmcc_compiler_abi(void);
/* Of the compiler, "0.1.0". */
TVMCC_API const char *tvmcc_compiler_version(void);

/* Those that programs ask for; docs/exit-status.md has all. */
typedef enum tvmcc_status {
    TVMCC_STATUS_OK = 0,
    TVMCC_STATUS_WRONG = 1,       /* the model is wrong, or options do not fit it */
    TVMCC_STATUS_USAGE = 2,       /* options or arguments are wrong */
    TVMCC_STATUS_UNSUPPORTED = 3, /* the model uses what is not supported */
    TVMCC_STATUS_PARSE = 4,       /* bytes or text do not parse */
    TVMCC_STATUS_BUDGET = 6,      /* larger than --max-code, --max-weights or --max-arena */
    TVMCC_STATUS_TUNING = 8,      /* tuning logs cover less than was asked for */
    TVMCC_STATUS_NO_TOOL = 9,     /* there is no linker for a shared library */
    TVMCC_STATUS_CANCELLED = 11,
    TVMCC_STATUS_IO = 74
} tvmcc_status;

/* ---- messages --------------------------------------------------------------------------------- */

typedef enum tvmcc_severity {
    TVMCC_SEVERITY_ERROR,
    TVMCC_SEVERITY_WARNING,
    TVMCC_SEVERITY_NOTE /* about the error or warning before it */
} tvmcc_severity;

typedef struct tvmcc_diagnostic {
    tvmcc_severity severity;
    const char    *code;      /* "E0304"; "" for notes */
    const char    *flag;      /* of a warning, as in -Wno-<flag>; else "" */
    const char    *file;      /* NULL: it is not about a place in a file */
    uint32_t    line, column; /* from 1; 0: not known.  Of a model the line is the node's place */
    const char *node;         /* its name, or NULL */
    const char *message;      /* one clause in English, without a full stop */
    const char *hint;         /* what would help, lines if there are several; or NULL */
} tvmcc_diagnostic;

/* ---- a session: what compiles have in common ----------------------------------------------------- */

typedef struct tvmcc_session tvmcc_session;

TVMCC_API tvmcc_session *tvmcc_session_new(void);
TVMCC_API void           tvmcc_session_free(tvmcc_session *session);
/* Adds words of the command line, each option whole: {"-mcpu=haswell"} or {"-mcpu", "haswell"}.
 * They are those of `tvmcc compile` that say what is compiled, and how; of one given twice the last
 * counts.  What comes out, where it goes and what is printed is not for them: -o, --emit=, -v.
 * After an error none of the words is taken. */
TVMCC_API int tvmcc_session_options(tvmcc_session *session, size_t n, const char *const *words);
/* Messages about options, in order; NULL from the last on. */
TVMCC_API const tvmcc_diagnostic *tvmcc_session_diagnostic(const tvmcc_session *session, size_t i);

/* ---- a compile ----------------------------------------------------------------------------------- */

/* NULL: nobody wants to know. */
typedef struct tvmcc_callbacks {
    size_t struct_bytes; /* sizeof(tvmcc_callbacks) */
    void  *user;
    /* A step of the compile begins, such as "import", "kernels", "code"; `done` of `total` are
     * over. On the thread that called. */
    void (*step)(void *user, const char *name, uint32_t done, uint32_t total);
    /* Code of `done` of `total` kernels is there, that of this one (or NULL) last.  The name is
     * gone when the function returns.  From any thread of the compile, several at once. */
    void (*kernel)(void *user, const char *name, uint32_t done, uint32_t total);
    /* Not 0: give the compile up, which then ends with TVMCC_STATUS_CANCELLED and leaves no half
     * file.  Asked between passes and between kernels, from any thread of the compile, several at
     * once. */
    int (*cancelled)(void *user);
} tvmcc_callbacks;

typedef struct tvmcc_compiled tvmcc_compiled;

/* Compiles a model file to `kinds`, separated by commas: names of `tvmcc --help=emit` such as "o",
 * "h", "so", "tar.gz", "plan", "relay", "ll".  All code is generated here; libraries and archives
 * are put together when they are asked for.  Callbacks may be NULL.  *out is to be freed whatever
 * the status is: it has the diagnostics, and contents after 0 alone. */
TVMCC_API int tvmcc_compile(const tvmcc_session *session, const char *path, const char *kinds,
                            const tvmcc_callbacks *callbacks, tvmcc_compiled **out);
/* The same of a model in memory, which stays there until tvmcc_compiled_free.  `path` is what it is
 * called: in messages, for what lies beside it (weights in files of their own), and its last part
 * for the prefix of the model's functions unless --entry gives one. */
TVMCC_API int  tvmcc_compile_memory(const tvmcc_session *session, const char *path,
                                    const void *model, size_t bytes, const char *kinds,
                                    const tvmcc_callbacks *callbacks, tvmcc_compiled **out);
TVMCC_API void tvmcc_compiled_free(tvmcc_compiled *compiled);

/* Of the last function that was called with it. */
TVMCC_API int tvmcc_compiled_status(const tvmcc_compiled *compiled);
/* Messages of all of them, in order; NULL from the last on. */
TVMCC_API const tvmcc_diagnostic *tvmcc_compiled_diagnostic(const tvmcc_compiled *compiled,
                                                            size_t                i);
/* The prefix of the model's functions. */
TVMCC_API const char *tvmcc_compiled_entry(const tvmcc_compiled *compiled);

/* One of the kinds that were compiled, in memory: the bytes that `tvmcc -o` would write (of a
 * shared library those of lib<entry>.so, which is then its name for loaders). */
TVMCC_API int tvmcc_compiled_content(tvmcc_compiled *compiled, const char *kind, const void **data,
                                     size_t *bytes);
/* The same into a file, whole or not at all, with what belongs beside it: a header beside an
 * object, weights and labels where the runtime looks for them.  A file that has these bytes already
 * is not touched. */
TVMCC_API int tvmcc_compiled_write(tvmcc_compiled *compiled, const char *kind, const char *path);
/* Files that were read for it, for build systems, and those that were written; NULL from the last
 * on. */
TVMCC_API const char *tvmcc_compiled_input(const tvmcc_compiled *compiled, size_t i);
TVMCC_API const char *tvmcc_compiled_output(const tvmcc_compiled *compiled, size_t i);

#ifdef __cplusplus
}
#endif

#endif
