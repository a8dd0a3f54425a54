/* Growing arrays: VEC(T) keeps a pointer, a count and a capacity; this doubles the capacity.
 * The old array stays in the arena: with doubling that wastes at most as much as is used. */
#include "base/base.h"

#include <string.h>

void *vec_grow(Arena *a, void *at, uint32_t *cap, size_t size, uint32_t n)
{
    uint32_t grown = *cap ? *cap * 2 : 8;
    void    *p;

    if (grown <= *cap) /* 2^31 elements: the last doubling */
        grown = UINT32_MAX;
    if (grown == n)
        arena_array(a, SIZE_MAX, 2); /* full: out of memory */
    p = arena_array(a, grown, size);
    if (n)
        memcpy(p, at, n * size);
    *cap = grown;
    return p;
}
