/* Memory between pages that cannot be touched. */
#ifndef TVMCC_DRIVER_GUARD_H
#define TVMCC_DRIVER_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint8_t *at; /* the memory: aligned, zeros */
    size_t   n;
    uint8_t *first, *end; /* what may be touched around it */
    void    *map;
    size_t   total;
} Guarded;

/* `n` bytes, zero, aligned to `align`, a power of two up to a page.  False: no memory. */
bool guard_new(Guarded *g, size_t n, size_t align);
/* Whether the bytes beside the memory are as they were. */
bool guard_intact(const Guarded *g);
void guard_free(Guarded *g);

#endif
