/* A driver that also runs where the C library is older than the one it was linked with.
 *
 * A function of glibc has a version, that of the release that last changed it, and a program linked
 * with a newer glibc asks for the newest: pthread_create@GLIBC_2.34.  The older version is still
 * there, under the same name, for old programs.  So for each function that changed after 2.31 this
 * file has a wrapper that calls the older version by name; portable.cmake has the linker send all
 * calls here (--wrap), those of LLVM and of libstdc++ too.  What 2.31 lacks altogether is written
 * out here.  `scripts/package` checks that nothing newer is left.
 *
 * Rows that portable.cmake reads begin with WRAP( in the first column. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#define FIRST "GLIBC_2.2.5" /* of this architecture */
#define SINCE(x86) x86
#define STAT_VERSION 1
#elif defined(__aarch64__)
#define FIRST "GLIBC_2.17"
#define SINCE(x86) "GLIBC_2.17"
#define STAT_VERSION 0
#else
#error "the versions of this architecture's glibc are not known here"
#endif

/* The function `name` of that version, under the name old_<name> here. */
#define WRAP(type, name, version, parameters, ...)        \
    extern type old_##name parameters;                    \
    __asm__(".symver old_" #name ", " #name "@" version); \
    type __wrap_##name parameters;                        \
    type __wrap_##name parameters                         \
    {                                                     \
        return old_##name(__VA_ARGS__);                   \
    }

/* clang-format off */
WRAP(void *, dlopen, FIRST, (const char *file, int mode), file, mode)
WRAP(void *, dlsym, FIRST, (void *handle, const char *name), handle, name)
WRAP(int, dlclose, FIRST, (void *handle), handle)
WRAP(char *, dlerror, FIRST, (void))
WRAP(int, dladdr, FIRST, (const void *at, Dl_info *out), at, out)
WRAP(int, pthread_create, FIRST, (pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *x), t, a, f, x)
WRAP(int, pthread_join, FIRST, (pthread_t t, void **result), t, result)
WRAP(int, pthread_detach, FIRST, (pthread_t t), t)
WRAP(int, pthread_once, FIRST, (pthread_once_t *once, void (*f)(void)), once, f)
WRAP(int, pthread_key_create, FIRST, (pthread_key_t *key, void (*f)(void *)), key, f)
WRAP(int, __pthread_key_create, FIRST, (pthread_key_t *key, void (*f)(void *)), key, f)
WRAP(int, pthread_key_delete, FIRST, (pthread_key_t key), key)
WRAP(void *, pthread_getspecific, FIRST, (pthread_key_t key), key)
WRAP(int, pthread_setspecific, FIRST, (pthread_key_t key, const void *x), key, x)
WRAP(int, pthread_kill, FIRST, (pthread_t t, int sig), t, sig)
WRAP(int, pthread_setname_np, SINCE("GLIBC_2.12"), (pthread_t t, const char *name), t, name)
WRAP(int, pthread_attr_setstacksize, FIRST, (pthread_attr_t *a, size_t n), a, n)
WRAP(int, pthread_mutex_trylock, FIRST, (pthread_mutex_t *m), m)
WRAP(int, pthread_condattr_setclock, SINCE("GLIBC_2.3.3"), (pthread_condattr_t *a, clockid_t c), a, c)
WRAP(int, pthread_rwlock_rdlock, FIRST, (pthread_rwlock_t *l), l)
WRAP(int, pthread_rwlock_wrlock, FIRST, (pthread_rwlock_t *l), l)
WRAP(int, pthread_rwlock_unlock, FIRST, (pthread_rwlock_t *l), l)
WRAP(int, pthread_sigmask, FIRST, (int how, const sigset_t *set, sigset_t *old), how, set, old)
/* clang-format on */

/* ---- stat and its sisters: functions of a number and the arguments before 2.33 ------------------ */

int __xstat(int version, const char *path, struct stat *out);
int __fxstat(int version, int fd, struct stat *out);
int __lxstat(int version, const char *path, struct stat *out);
int __fxstatat(int version, int fd, const char *path, struct stat *out, int flags);
int __xmknod(int version, const char *path, mode_t mode, dev_t *dev);

#define SELF(type, name, parameters, call) \
    type __wrap_##name parameters;         \
    type __wrap_##name parameters          \
    {                                      \
        return call;                       \
    }

/* clang-format off */
#undef WRAP
#define WRAP SELF
WRAP(int, stat, (const char *path, struct stat *out), __xstat(STAT_VERSION, path, out))
WRAP(int, stat64, (const char *path, struct stat *out), __xstat(STAT_VERSION, path, out))
WRAP(int, fstat, (int fd, struct stat *out), __fxstat(STAT_VERSION, fd, out))
WRAP(int, fstat64, (int fd, struct stat *out), __fxstat(STAT_VERSION, fd, out))
WRAP(int, lstat, (const char *path, struct stat *out), __lxstat(STAT_VERSION, path, out))
WRAP(int, lstat64, (const char *path, struct stat *out), __lxstat(STAT_VERSION, path, out))
WRAP(int, fstatat, (int fd, const char *path, struct stat *out, int flags), __fxstatat(STAT_VERSION, fd, path, out, flags))
WRAP(int, fstatat64, (int fd, const char *path, struct stat *out, int flags), __fxstatat(STAT_VERSION, fd, path, out, flags))
WRAP(int, mknod, (const char *path, mode_t mode, dev_t dev), __xmknod(0, path, mode, &dev))
/* clang-format on */

/* ---- what came later --------------------------------------------------------------------------- */

static void random_bytes(void *out, size_t n)
{
    uint8_t *at = out;

    while (n) {
        ssize_t got = getrandom(at, n < 256 ? n : 256, 0);

        if (got < 0 && errno != EINTR)
            abort();
        if (got > 0) {
            at += got;
            n -= (size_t)got;
        }
    }
}

static uint32_t random_word(void)
{
    uint32_t word;

    random_bytes(&word, sizeof word);
    return word;
}

/* Sizes of 2 GiB and more wrap; LLVM's statistics are all that asks. */
static struct mallinfo2 malloc_sizes(void)
{
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    struct mallinfo m = mallinfo();

    return (struct mallinfo2){.arena = (unsigned)m.arena,
                              .hblkhd = (unsigned)m.hblkhd,
                              .uordblks = (unsigned)m.uordblks,
                              .fordblks = (unsigned)m.fordblks};
}

typedef struct {
    uintptr_t              address;
    struct dl_find_object *out;
    int                    found;
} Search;

static int look(struct dl_phdr_info *info, size_t size, void *data)
{
    Search   *s = data;
    uintptr_t first = UINTPTR_MAX, last = 0, frames = 0;
    int       inside = 0;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t at = (uintptr_t)info->dlpi_addr + p->p_vaddr;

        if (p->p_type == DLFO_EH_SEGMENT_TYPE)
            frames = at;
        if (p->p_type != PT_LOAD)
            continue;
        first = at < first ? at : first;
        last = at + p->p_memsz > last ? at + p->p_memsz : last;
        inside |= s->address >= at && s->address - at < p->p_memsz;
    }
    if (!inside || !frames)
        return 0;
    *s->out = (struct dl_find_object){.dlfo_map_start = (void *)first,
                                      .dlfo_map_end = (void *)last,
                                      .dlfo_eh_frame = (void *)frames};
    s->found = 1;
    return 1;
}

/* Where the unwinding tables of the code at `address` are. */
static int find_object(void *address, struct dl_find_object *out)
{
    Search s = {(uintptr_t)address, out, 0};

    dl_iterate_phdr(look, &s);
    return s.found ? 0 : -1;
}

/* clang-format off */
WRAP(uint32_t, arc4random, (void), random_word())
WRAP(void, arc4random_buf, (void *out, size_t n), random_bytes(out, n))
WRAP(struct mallinfo2, mallinfo2, (void), malloc_sizes())
WRAP(int, _dl_find_object, (void *address, struct dl_find_object *out), find_object(address, out))
/* clang-format on */

/* A variable: false, "there may be more threads", is always right. */
#undef WRAP
#define WRAP(type, name, value)      \
    extern const type __wrap_##name; \
    const type        __wrap_##name = value;
WRAP(char, __libc_single_threaded, 0)

/* ---- the start -------------------------------------------------------------------------------------
 *
 * Since 2.34 the C library finds a program's constructors itself; before, the program handed it a
 * function that calls them.  One that is handed over is called by either. */

typedef void (*Init)(int, char **, char **);
extern Init __init_array_start[], __init_array_end[];
void        _init(void);

static void call_constructors(int argc, char **argv, char **envp)
{
    _init();
    for (Init *at = __init_array_start; at < __init_array_end; at++)
        (*at)(argc, argv, envp);
}

static void nothing(void)
{
}

typedef int (*Main)(int, char **, char **);
extern int old_start(Main main, int argc, char **argv, Init init, void (*fini)(void),
                     void (*rtld_fini)(void), void *stack_end);
__asm__(".symver old_start, __libc_start_main@" FIRST);

#undef WRAP
#define WRAP(type, name, parameters) type __wrap_##name parameters
WRAP(int, __libc_start_main, (Main, int, char **, Init, void (*)(void), void (*)(void), void *));
int __wrap___libc_start_main(Main main, int argc, char **argv, Init init, void (*fini)(void),
                             void (*rtld_fini)(void), void *stack_end)
{
    return old_start(main, argc, argv, init ? init : call_constructors, fini ? fini : nothing,
                     rtld_fini, stack_end);
}
