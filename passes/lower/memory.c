/* Memory: offsets for all values in one arena.
 *
 * Each slot is live from the first to the last position of the program that touches it.  A slot
 * with others in it (docs/design/views.md) is placed as one, but occupies memory part by part: a
 * part from when it is written until the last use of anything that covers it, so that a part not
 * yet there, or no longer needed, leaves its place to others.  Slots go one by one to the lowest
 * 64-byte aligned offset where their parts are free of every placed part with an overlapping life
 * (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020), in the
 * best of three orders: largest first, longest in the way first, as they come.  The lower bound is
 * the largest sum of parts alive at one position.  Cost: quadratic in the number of slots. */
#include "passes/lower/lower.h"

#include <stdlib.h>

enum { ARENA_ALIGN = 64 };

/* What lies in one piece: a slot of its own and the slots in it. */
typedef struct {
    Slot *root;
    VEC(Slot *) parts; /* written on their own: they do not overlap */
    VEC(Slot *) views; /* other slots that cover some of them */
} Piece;

typedef struct {
    uint64_t lo, hi; /* in the arena */
    uint32_t first, last;
} Area;

typedef VEC(Area) AreaVec;

static const Slot *root_of(const void *piece)
{
    return (*(Piece *const *)piece)->root;
}

static int by_size(const void *a, const void *b)
{
    const Slot *x = root_of(a), *y = root_of(b);

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : 0;
}

/* Bytes times positions, so that what is long in the way is placed early. */
static int by_stay(const void *a, const void *b)
{
    const Slot *x = root_of(a), *y = root_of(b);
    double      p = (double)x->bytes * (x->last - x->first + 1.0),
           q = (double)y->bytes * (y->last - y->first + 1.0);

    return p != q ? (p < q ? 1 : -1) : by_size(a, b);
}

/* What is placed by time fits what is there when it comes. */
static int by_time(const void *a, const void *b)
{
    const Slot *x = root_of(a), *y = root_of(b);

    return x->first != y->first ? (x->first < y->first ? -1 : 1) : by_size(a, b);
}

bool slot_is_part(const Slot *s)
{
    return s->kind == SLOT_OWN || s->kind == SLOT_PART || s->kind == SLOT_CARRIED;
}

static void to_root(Slot *s)
{
    uint64_t at, step = 0;

    for (const Slot *x = s; x; x = x->in)
        step += x->step;
    s->in = slot_root(s, &at);
    s->at = at;
    s->step = step;
}

/* Every slot in another one directly within its root.  Wholes are made after their parts, slices
 * after what they are cut from. */
static void resolve(Program *p)
{
    for (uint32_t i = p->slots.n; i-- > 0;)
        if (p->slots.at[i]->in && p->slots.at[i]->kind != SLOT_SLICE)
            to_root(p->slots.at[i]);
    for (uint32_t i = 0; i < p->slots.n; i++)
        if (p->slots.at[i]->in && p->slots.at[i]->kind == SLOT_SLICE)
            to_root(p->slots.at[i]);
}

static uint32_t find_pieces(Program *p, Piece **out)
{
    Ctx     *c = p->c;
    Map     *of = map_new(c->arena);
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->slots.n; i++) {
        Slot *s = p->slots.at[i], *root = s->in ? s->in : s;
        if (root->place != PLACE_ARENA)
            continue;
        Piece *piece = map_get(of, PTR_KEY(root));
        if (!piece) {
            piece = NEW(c->arena, Piece);
            *piece = (Piece){.root = root};
            map_put(of, PTR_KEY(root), piece);
            out[n++] = piece;
        }
        if (slot_is_part(s))
            vec_push(c->arena, &piece->parts, s);
        else
            vec_push(c->arena, &piece->views, s);
    }
    return n;
}

/* Parts live as long as what covers them. */
static void extend_lives(Piece *x)
{
    for (uint32_t i = 0; i < x->views.n; i++)
        for (uint32_t j = 0; j < x->parts.n; j++) {
            const Slot *v = x->views.at[i];
            Slot       *s = x->parts.at[j];
            if (v->at < s->at + s->bytes && s->at < v->at + v->bytes && v->last > s->last)
                s->last = v->last;
        }
}

/* Bytes that a part takes: its own, but all of the last cache line if nothing lies behind it. */
static uint64_t need(const Slot *part)
{
    return part->in ? part->bytes : align_up(part->bytes, ARENA_ALIGN);
}

static bool together(const Area *a, const Slot *s)
{
    return a->first <= s->last && s->first <= a->last;
}

/* The lowest base from `at` on where this part of a piece meets no placed area.  These are sorted
 * by their begin, so that one sweep finds the first gap. */
static uint64_t fit(const AreaVec *placed, const Slot *part, uint64_t at)
{
    for (uint32_t i = 0; i < placed->n; i++) {
        const Area *a = &placed->at[i];
        if (!together(a, part) || a->hi <= at + part->at)
            continue;
        if (at + part->at + need(part) <= a->lo)
            break;
        at = align_up(a->hi - part->at, ARENA_ALIGN);
    }
    return at;
}

static void place(const Program *p, Piece *x, AreaVec *placed)
{
    uint64_t at = p->arena_first, before;

    do {
        before = at;
        for (uint32_t i = 0; i < x->parts.n; i++)
            at = fit(placed, x->parts.at[i], at);
    } while (at != before);
    x->root->offset = at;
    for (uint32_t i = 0; i < x->parts.n; i++) {
        const Slot *s = x->parts.at[i];
        Area        a = {at + s->at, at + s->at + need(s), s->first, s->last};
        uint32_t    j = placed->n;
        vec_push(p->c->arena, placed, a);
        for (; j > 0 && placed->at[j - 1].lo > a.lo; j--)
            placed->at[j] = placed->at[j - 1];
        placed->at[j] = a;
    }
}

static uint64_t lower_bound(Program *p, Piece *const *piece, uint32_t n)
{
    uint64_t *live = NEW_ARRAY(p->c->arena, uint64_t, (size_t)p->at + 2), most = 0;

    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < piece[i]->parts.n; j++) {
            const Slot *s = piece[i]->parts.at[j];
            for (uint32_t t = s->first; t <= s->last && t <= p->at; t++)
                live[t] += need(s);
        }
    for (uint32_t t = 0; t <= p->at; t++)
        if (live[t] > most)
            most = live[t];
    return most;
}

/* Offsets for all pieces in this order; returns the bytes needed. */
static uint64_t place_all(const Program *p, Piece *const *piece, uint32_t n)
{
    AreaVec  placed = {0};
    uint64_t top = p->arena_first;

    for (uint32_t i = 0; i < n; i++) {
        place(p, piece[i], &placed);
        uint64_t end = piece[i]->root->offset + align_up(piece[i]->root->bytes, ARENA_ALIGN);
        if (end > top)
            top = end;
    }
    return top;
}

uint64_t memory_plan(Program *p, uint64_t *floor)
{
    static int (*const orders[])(const void *, const void *) = {by_size, by_stay, by_time};
    Piece  **piece = NEW_ARRAY(p->c->arena, Piece *, p->slots.n + 1);
    uint64_t least = 0;
    uint32_t n, best = 0;

    resolve(p);
    n = find_pieces(p, piece);
    for (uint32_t i = 0; i < n; i++)
        extend_lives(piece[i]);
    *floor = p->arena_first + lower_bound(p, piece, n);
    for (uint32_t i = 0; i < COUNT(orders); i++) {
        qsort(piece, n, sizeof *piece, orders[i]);
        uint64_t top = place_all(p, piece, n);
        if (i == 0 || top < least)
            least = top, best = i;
        if (least == *floor)
            return least;
    }
    qsort(piece, n, sizeof *piece, orders[best]);
    return place_all(p, piece, n);
}
