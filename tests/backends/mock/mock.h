/* What libraries that stand for a device's driver share: text of a device language is compiled for
 * this machine, and a kernel is a function that is called once for each thread of each block. */
#ifndef MOCK_H
#define MOCK_H

#include <stdbool.h>
#include <stddef.h>

enum { MOCK_THREADS = 1024 }; /* of a block, at most */

/* ---- translate.c: text that has MOCK_KERNEL (kernel_on_cpu.h) behind it ---------------------------- */

/* A shared library of this machine, malloc'd; NULL with messages in `log`, malloc'd. */
void *mock_translate(const char *text, size_t *bytes, char **log);
/* ... of such text and two modules of LLVM IR, or NULL. */
void *mock_compile(const char *text, const char *ir, const char *more, size_t *bytes, char **log);
void *mock_read(const char *path, size_t *bytes); /* malloc'd, with a 0 behind; NULL: cannot */
void *mock_load(const void *image, size_t bytes); /* for dlsym; NULL, said on stderr: cannot */

/* ---- retarget.c: kernels as LLVM IR of a GPU ------------------------------------------------------- */

void *mock_retarget(const char *text, size_t *bytes, char **log); /* as mock_translate */

/* ---- block.c --------------------------------------------------------------------------------------- */

typedef struct {
    unsigned x, y, z;
} MockIndex;

/* Where the threads of a group wait for each other: all have to come to one place with equal x and
 * y.  The same in kernel_on_cpu.h. */
typedef struct {
    const void *place;
    const char *what;
    size_t      x, y;
    unsigned    threads; /* of a group, which begins at a multiple of them */
} MockMeeting;

typedef struct {
    void (*run)(void **args);
    MockIndex *thread, *block; /* where the kernel finds its numbers */
    unsigned  *number;
    void (**barrier)(void);
    void (**group)(const MockMeeting *meeting);
    int threads, barriers, nargs;
} MockKernel;

/* One of a library that mock_load gave; false: no such kernel. */
bool mock_find(void *library, const char *name, MockKernel *out);
/* All blocks of a launch; args holds the address of each argument.  Threads of a block that has
 * barriers are fibers, which go on in turn from one to the next; so do groups of them that compute
 * together.  False: not all of them came. */
bool mock_run(const MockKernel *k, MockIndex grid, MockIndex block, void **args);

/* Until the end of the function no other thread gets past one of these. */
#define MOCK_ALONE int mock_alone __attribute__((cleanup(mock_leave), unused)) = mock_enter()
int  mock_enter(void);
void mock_leave(const int *alone);

/* Filled with ones, a mark before and behind it; `who` has the process ended if it was written. */
void *mock_alloc(size_t bytes);
void  mock_free(void *memory, const char *who);

#endif
