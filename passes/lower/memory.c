/* Memory: offsets for all values in one arena.
 *
 * Each slot is live from the first to the last position of the program that touches it.  Slots are
 * placed largest first, each at the lowest 64-byte aligned offset that is free of every placed slot
 * with an overlapping life (greedy by size; Pisarchyk and Lee, "Efficient Memory Management for
 * Deep Neural Net Inference", 2020).  The lower bound is the largest sum of slots alive at one
 * position. Cost: quadratic in the number of slots. */
#include "passes/lower/lower.h"

#include <stdlib.h>

enum { ARENA_ALIGN = 64 };

static int by_size(const void *a, const void *b)
{
    const Slot *x = *(Slot *const *)a, *y = *(Slot *const *)b;

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : 0;
}

static bool overlaps(const Slot *a, const Slot *b)
{
    return a->first <= b->last && b->first <= a->last;
}

uint64_t memory_plan(Program *p, uint64_t *floor)
{
    Ctx     *c = p->c;
    uint32_t n = 0;
    Slot   **s = NEW_ARRAY(c->arena, Slot *, p->slots.n + 1);
    uint64_t top = 0;

    for (uint32_t i = 0; i < p->slots.n; i++)
        if (p->slots.at[i]->place == PLACE_ARENA)
            s[n++] = p->slots.at[i];
    uint64_t *live = NEW_ARRAY(c->arena, uint64_t, (size_t)p->at + 2);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t t = s[i]->first; t <= s[i]->last && t <= p->at; t++)
            live[t] += align_up(s[i]->bytes, ARENA_ALIGN);
    *floor = 0;
    for (uint32_t t = 0; t <= p->at; t++)
        if (live[t] > *floor)
            *floor = live[t];

    qsort(s, n, sizeof *s, by_size);
    /* Placed slots sorted by offset, so that one sweep finds the first gap. */
    Slot **placed = NEW_ARRAY(c->arena, Slot *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t at = 0, want = align_up(s[i]->bytes, ARENA_ALIGN);
        for (uint32_t j = 0; j < i; j++) {
            if (!overlaps(placed[j], s[i]))
                continue;
            if (at + want <= placed[j]->offset)
                break;
            uint64_t end = placed[j]->offset + align_up(placed[j]->bytes, ARENA_ALIGN);
            if (end > at)
                at = end;
        }
        s[i]->offset = at;
        if (at + want > top)
            top = at + want;
        uint32_t j = i;
        for (; j > 0 && placed[j - 1]->offset > at; j--)
            placed[j] = placed[j - 1];
        placed[j] = s[i];
    }
    return top;
}
