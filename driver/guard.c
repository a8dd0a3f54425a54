/* Memory between pages that cannot be touched.
 *
 *     | guard | slack, memory of n bytes | guard |
 *
 * The memory ends at the second guard, so that a store or load one byte behind it is a signal at
 * once; its start is aligned, and the slack before it is less than a page and holds a pattern that
 * is looked at in the end.  `tvmcc run` gives models their arena, inputs and outputs this way, so
 * that every run is a test of bounds. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#endif
#include "driver/guard.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PATTERN = 0xa5 };

/* Its end is the guard where its size is a multiple of `align`; else less than `align` bytes, with
 * the pattern, lie between. */
bool guard_new(Guarded *g, size_t n, size_t align)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), inside, total;

    *g = (Guarded){0};
    if (n > SIZE_MAX / 2)
        return false;
    inside = (n + align - 1) / align * align;
    inside = (inside + page - 1) / page * page;
    total = inside + 2 * page;
    uint8_t *map = mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return false;
    if (inside && mprotect(map + page, inside, PROT_READ | PROT_WRITE)) {
        munmap(map, total);
        return false;
    }
    g->map = map;
    g->total = total;
    g->first = map + page;
    g->end = map + page + inside;
    g->n = n;
    g->at = g->end - (n + align - 1) / align * align;
    memset(g->first, PATTERN, (size_t)(g->at - g->first));
    memset(g->at + n, PATTERN, (size_t)(g->end - g->at) - n);
    return true;
}

bool guard_intact(const Guarded *g)
{
    for (const uint8_t *p = g->first; p < g->at; p++)
        if (*p != PATTERN)
            return false;
    for (const uint8_t *p = g->at + g->n; p < g->end; p++)
        if (*p != PATTERN)
            return false;
    return true;
}

void guard_free(Guarded *g)
{
    if (g->map)
        munmap(g->map, g->total);
    *g = (Guarded){0};
}
