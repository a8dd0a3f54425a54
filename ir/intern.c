/* The intern table of nodes (ir/intern.h): open addressing over (hash, tag, node), at most two
 * thirds full.  Nodes are never removed, so probing needs no tombstones. */
#include "ir/intern.h"

typedef struct {
    uint64_t    hash;
    const void *node; /* NULL: free */
    NodeTag     tag;
} Slot;

struct Interner {
    Arena   *arena;
    Slot    *slots;
    uint32_t cap, n; /* cap is a power of two */
    uint32_t count[NODE_TAG_COUNT];
};

Interner *interner_new(Arena *a)
{
    Interner *in = NEW(a, Interner);

    in->arena = a;
    in->cap = 256;
    in->slots = NEW_ARRAY(a, Slot, in->cap);
    return in;
}

const void *intern_find(const Interner *in, NodeTag tag, uint64_t hash,
                        bool (*eq)(const void *node, const void *key), const void *key)
{
    uint32_t mask = in->cap - 1;

    for (uint32_t i = (uint32_t)hash & mask; in->slots[i].node; i = (i + 1) & mask) {
        const Slot *s = &in->slots[i];
        if (s->hash == hash && s->tag == tag && eq(s->node, key))
            return s->node;
    }
    return NULL;
}

static void put(Slot *slots, uint32_t mask, Slot s)
{
    uint32_t i = (uint32_t)s.hash & mask;

    while (slots[i].node)
        i = (i + 1) & mask;
    slots[i] = s;
}

void intern_add(Interner *in, NodeTag tag, uint64_t hash, const void *node)
{
    if ((in->n + 1) * 3ull > in->cap * 2ull) {
        uint32_t cap = in->cap * 2;
        Slot    *slots = NEW_ARRAY(in->arena, Slot, cap);

        for (uint32_t i = 0; i < in->cap; i++)
            if (in->slots[i].node)
                put(slots, cap - 1, in->slots[i]);
        in->slots = slots;
        in->cap = cap;
    }
    put(in->slots, in->cap - 1, (Slot){hash, node, tag});
    in->n++;
    in->count[tag]++;
}

uint32_t intern_count(const Interner *in, NodeTag tag)
{
    return in->count[tag];
}
