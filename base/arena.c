/* Memory that is freed all at once.
 *
 * An arena is a list of chunks; an allocation takes the next bytes of the newest chunk.  Chunks
 * come zeroed from calloc, and `dirty` remembers how far a chunk was ever used, so that only
 * recycled bytes are cleared again.  A request too large for a chunk gets a chunk of its own,
 * which is put behind the newest one so that its rest stays in use.
 *
 *     arena -> newest chunk -> older chunk -> ... -> NULL
 *              [header|used......|free     ]
 *
 * Weights are arrays of many megabytes: there the system is asked for pages of 2 MiB instead of 4
 * KiB, which saves a quarter of a compile of ResNet-50 that it would spend on page faults.
 *
 * Under AddressSanitizer everything not handed out is poisoned, 16 bytes stay poisoned between
 * neighbours, and a reset poisons all: using a dropped node or running over an array is reported.
 */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if WITH_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n) __asan_poison_memory_region((p), (n))
#define UNPOISON(p, n) __asan_unpoison_memory_region((p), (n))
#define RED_ZONE 16
#else
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#define RED_ZONE 0
#endif

#if WITH_MSAN
/* The heap, arenas aside, is what compiled code writes, which is not instrumented. */
const char *__msan_default_options(void);
const char *__msan_default_options(void)
{
    return "poison_in_malloc=0";
}
#endif

enum { ALIGN = 16, FIRST_CHUNK = 16 << 10, LARGEST_CHUNK = 1 << 20, HUGE_PAGE = 2 << 20 };

typedef struct Chunk Chunk;
struct Chunk {
    Chunk *next;
    size_t size, used, dirty; /* of the bytes behind this header */
};

struct Arena {
    Chunk   *head;
    jmp_buf *oom;
    size_t   total, next_size;
};

static uint8_t *chunk_bytes(Chunk *ch)
{
    return (uint8_t *)ch + ((sizeof(Chunk) + ALIGN - 1) & ~(size_t)(ALIGN - 1));
}

static NORETURN void out_of_memory(Arena *a)
{
    if (a && a->oom)
        longjmp(*a->oom, 1);
    fputs("tvmcc: out of memory\n", stderr);
    abort();
}

/* A hint, whose failure changes nothing.  What calloc took from the system for this request alone
 * has not been touched yet. */
static void ask_for_huge_pages(void *at, size_t bytes)
{
#if defined(MADV_HUGEPAGE) && !WITH_ASAN
    size_t skip = HUGE_PAGE - (uintptr_t)at % HUGE_PAGE;

    if (bytes >= 2 * (size_t)HUGE_PAGE)
        (void)madvise((char *)at + skip, (bytes - skip) / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#else
    (void)at;
    (void)bytes;
#endif
}

static Chunk *chunk_new(Arena *a, size_t size)
{
    size_t bytes;
    Chunk *ch = NULL;

    if (checked_add(size, sizeof(Chunk) + ALIGN, &bytes))
        ch = calloc(1, bytes);
    if (!ch)
        out_of_memory(a);
    ask_for_huge_pages(ch, bytes);
    ch->size = size;
    POISON(chunk_bytes(ch), size);
    return ch;
}

Arena *arena_new(jmp_buf *oom)
{
    Arena *a = calloc(1, sizeof *a);

    if (!a) {
        if (oom)
            longjmp(*oom, 1);
        out_of_memory(NULL);
    }
    a->oom = oom;
    a->next_size = FIRST_CHUNK;
    return a;
}

static void free_chunks(Chunk *ch)
{
    while (ch) {
        Chunk *next = ch->next;

        UNPOISON(chunk_bytes(ch), ch->size);
        free(ch);
        ch = next;
    }
}

void arena_free(Arena *a)
{
    if (!a)
        return;
    free_chunks(a->head);
    free(a);
}

void arena_reset(Arena *a)
{
    Chunk *kept = a->head;

    a->total = 0;
    if (!kept)
        return;
    free_chunks(kept->next);
    kept->next = NULL;
    kept->used = 0;
    POISON(chunk_bytes(kept), kept->size);
}

static void *chunk_take(Chunk *ch, size_t bytes, size_t step)
{
    uint8_t *p = chunk_bytes(ch) + ch->used;
    size_t   end = ch->used + step;

    UNPOISON(p, bytes);
    if (ch->used < ch->dirty) {
        size_t old = ch->dirty - ch->used;

        memset(p, 0, old < bytes ? old : bytes);
    }
    ch->used = end;
    if (ch->dirty < end)
        ch->dirty = end;
    return p;
}

void *arena_alloc(Arena *a, size_t bytes)
{
    size_t step;
    Chunk *ch = a->head;

    if (!checked_add(bytes, (size_t)(ALIGN - 1 + RED_ZONE), &step))
        out_of_memory(a);
    step &= ~(size_t)(ALIGN - 1);
    if (step == 0)
        step = ALIGN; /* distinct addresses, also for empty arrays */
    a->total += step;
    if (ch && ch->size - ch->used >= step)
        return chunk_take(ch, bytes, step);
    if (step > a->next_size / 4) { /* large: a chunk of its own, behind the newest */
        Chunk *own = chunk_new(a, step);

        if (ch) {
            own->next = ch->next;
            ch->next = own;
        } else {
            a->head = own;
        }
        return chunk_take(own, bytes, step);
    }
    ch = chunk_new(a, a->next_size);
    if (a->next_size < LARGEST_CHUNK)
        a->next_size *= 2;
    ch->next = a->head;
    a->head = ch;
    return chunk_take(ch, bytes, step);
}

void *arena_array(Arena *a, size_t n, size_t size)
{
    size_t bytes;

    if (!checked_mul(n, size, &bytes))
        out_of_memory(a);
    return arena_alloc(a, bytes);
}

void *arena_dup(Arena *a, const void *p, size_t bytes)
{
    void *copy = arena_alloc(a, bytes);

    if (bytes)
        memcpy(copy, p, bytes);
    return copy;
}

char *arena_printf(Arena *a, const char *fmt, ...)
{
    va_list ap;
    StrBuf  s = strbuf(a);

    va_start(ap, fmt);
    str_vprintf(&s, fmt, ap);
    va_end(ap);
    return s.at;
}

void arena_forget(Arena *a, void *p, size_t bytes)
{
#if defined(MADV_DONTNEED) && !WITH_ASAN
    enum { PAGE = 64 << 10 }; /* at least, on all systems */
    uintptr_t at = ((uintptr_t)p + PAGE - 1) / PAGE * PAGE,
              end = ((uintptr_t)p + bytes) / PAGE * PAGE;

    for (Chunk *ch = a->head; ch && at < end; ch = ch->next)
        if ((uint8_t *)p >= chunk_bytes(ch) && (uint8_t *)p + bytes <= chunk_bytes(ch) + ch->size) {
            (void)madvise((void *)at, end - at, MADV_DONTNEED);
            return;
        }
#else
    (void)a;
    (void)p;
    (void)bytes;
#endif
}

size_t arena_used(const Arena *a)
{
    return a->total;
}
