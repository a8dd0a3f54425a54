/* Hash maps from 64-bit keys: open addressing with linear probing, at most 3/4 full.  Deleting
 * moves later entries of the same run back, so there are no tombstones and a map that lives long
 * does not slow down.  Most maps of a compile stay empty or small, so slots are made at the first
 * entry. */
#include "base/base.h"

typedef struct {
    uint64_t key;
    void    *value;
    bool     used;
} Slot;

struct Map {
    Arena   *arena;
    Slot    *slots;
    uint32_t n, cap; /* cap is a power of two */
};

enum { FIRST_CAP = 8 };

static const Slot nothing; /* the one slot of all empty maps: never used, so never written */

static uint32_t home(uint64_t key, uint32_t cap)
{
    return (uint32_t)hash_mix(key, 0x9e3779b97f4a7c15u) & (cap - 1);
}

Map *map_new(Arena *a)
{
    Map *m = NEW(a, Map);

    m->arena = a;
    m->cap = 1;
    m->slots = (Slot *)&nothing;
    return m;
}

/* The slot of `key`, or the free one where it belongs. */
static Slot *find(const Map *m, uint64_t key)
{
    uint32_t i = home(key, m->cap);

    while (m->slots[i].used && m->slots[i].key != key)
        i = (i + 1) & (m->cap - 1);
    return &m->slots[i];
}

bool map_find(const Map *m, uint64_t key, void **value)
{
    const Slot *s = find(m, key);

    if (!s->used)
        return false;
    if (value)
        *value = s->value;
    return true;
}

void *map_get(const Map *m, uint64_t key)
{
    const Slot *s = m->n ? find(m, key) : &nothing;

    return s->used ? s->value : NULL;
}

static void grow(Map *m)
{
    Slot    *old = m->slots;
    uint32_t old_cap = m->cap;

    m->cap = old_cap < FIRST_CAP ? FIRST_CAP : old_cap * 2;
    m->slots = arena_array(m->arena, m->cap, sizeof *m->slots);
    for (uint32_t i = 0; i < old_cap; i++) {
        if (old[i].used)
            *find(m, old[i].key) = old[i];
    }
}

void map_put(Map *m, uint64_t key, void *value)
{
    Slot *s = find(m, key);

    if (!s->used) {
        if ((uint64_t)(m->n + 1) * 4 > (uint64_t)m->cap * 3) {
            grow(m);
            s = find(m, key);
        }
        m->n++;
    }
    *s = (Slot){key, value, true};
}

void map_del(Map *m, uint64_t key)
{
    uint32_t mask = m->cap - 1, hole, i;
    Slot    *s = find(m, key);

    if (!s->used)
        return;
    m->n--;
    hole = (uint32_t)(s - m->slots);
    for (i = (hole + 1) & mask; m->slots[i].used; i = (i + 1) & mask) {
        uint32_t h = home(m->slots[i].key, m->cap);

        if (((i - h) & mask) >= ((i - hole) & mask)) { /* its home is not behind the hole */
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole] = (Slot){0};
}

uint32_t map_count(const Map *m)
{
    return m->n;
}
