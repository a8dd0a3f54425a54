/* Memory: offsets for all values in one arena.
 *
 * Each slot is live from the first to the last position of the program that touches it.  A slot
 * with others in it (docs/design/views.md) is placed as one, but occupies memory part by part: a
 * part from when it is written until the last use of anything that covers it, so that a part not
 * yet there, or no longer needed, leaves its place to others.  Slots go one by one to the lowest
 * 64-byte aligned offset where their parts are free of every placed part with an overlapping life
 * (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020), in the
 * best of three orders: largest first, longest in the way first, as they come.  The lower bound is
 * the largest sum of parts alive at one position.  Cost: quadratic in the number of slots.
 *
 * Of an open program sizes are forms over dimensions without a bound, of which no order is known.
 * Slots whose sizes are multiples of one form share memory among themselves, as above, with that
 * form as the unit; one such area lies behind the other:
 *
 *     T*3072, T*12288, T*3072   in units of T*64: 48, 192, 48; places 0, 48, 0; an area of T*15360
 *     T*T*48                    one of T*T*48, at T*15360 */
#include "passes/lower/lower.h"

#include <stdlib.h>

enum { ARENA_ALIGN = 64 };

/* What lies in one piece: a slot of its own and the slots in it.  Its bytes and places are counted
 * in 64ths of `unit` where that is given, as if it were 64 bytes. */
typedef struct {
    Slot      *root;
    const Idx *unit; /* of an open program, else NULL */
    uint64_t   bytes, offset;
    VEC(Slot *) slots; /* written on their own: they do not overlap */
    VEC(Slot *) views; /* other slots that cover some of them */
} Piece;

/* Memory that is taken at a time: where it lies in its piece, or in the arena. */
typedef struct {
    uint64_t lo, hi;
    uint32_t first, last;
} Area;

typedef VEC(Area) AreaVec;

static const Piece *piece_of(const void *piece)
{
    return *(Piece *const *)piece;
}

static int by_size(const void *a, const void *b)
{
    const Piece *x = piece_of(a), *y = piece_of(b);

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    if (x->root->first != y->root->first)
        return x->root->first < y->root->first ? -1 : 1;
    return 0;
}

/* Bytes times positions, so that what is long in the way is placed early. */
static int by_stay(const void *a, const void *b)
{
    const Piece *x = piece_of(a), *y = piece_of(b);
    double       p = (double)x->bytes * (x->root->last - x->root->first + 1.0),
           q = (double)y->bytes * (y->root->last - y->root->first + 1.0);

    return p != q ? (p < q ? 1 : -1) : by_size(a, b);
}

/* What is placed by time fits what is there when it comes. */
static int by_time(const void *a, const void *b)
{
    const Slot *x = piece_of(a)->root, *y = piece_of(b)->root;

    return x->first != y->first ? (x->first < y->first ? -1 : 1) : by_size(a, b);
}

bool slot_is_part(const Slot *s)
{
    return s->kind == SLOT_OWN || s->kind == SLOT_PART || s->kind == SLOT_CARRIED;
}

static void to_root(Program *p, Slot *s)
{
    const Idx *way = slot_way(p->c, s), *far = idx_const(p->c->arith, 0);
    uint64_t   at, step = 0;

    for (const Slot *x = s; x; x = x->in) {
        step += x->step;
        far = x->open.step ? idx_add(p->c->arith, far, x->open.step) : far;
    }
    s->in = slot_root(s, &at);
    s->at = at;
    s->step = step;
    if (p->open) {
        s->open.at = way;
        s->open.step = far;
    }
}

/* Every slot in another one directly within its root.  Wholes are made after their parts, slices
 * after what they are cut from. */
static void resolve(Program *p)
{
    for (uint32_t i = p->slots.n; i-- > 0;)
        if (p->slots.at[i]->in && p->slots.at[i]->kind != SLOT_SLICE)
            to_root(p, p->slots.at[i]);
    for (uint32_t i = 0; i < p->slots.n; i++)
        if (p->slots.at[i]->in && p->slots.at[i]->kind == SLOT_SLICE)
            to_root(p, p->slots.at[i]);
}

/* Parts live as long as what covers them. */
static void extend_lives(Piece *x)
{
    for (uint32_t i = 0; i < x->views.n; i++)
        for (uint32_t j = 0; j < x->slots.n; j++) {
            const Slot *v = x->views.at[i];
            Slot       *s = x->slots.at[j];
            if (v->at < s->at + s->bytes && s->at < v->at + v->bytes && v->last > s->last)
                s->last = v->last;
        }
}

/* Pieces of the host's memory or the other, of every thread's own or not. */
static uint32_t find_pieces(Program *p, bool here, bool own, Piece **out)
{
    Ctx     *c = p->c;
    Map     *of = map_new(c->arena);
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->slots.n; i++) {
        Slot *s = p->slots.at[i], *root = s->in ? s->in : s;
        if (root->place != PLACE_ARENA || root->here != here || root->own != own)
            continue;
        Piece *piece = map_get(of, PTR_KEY(root));
        if (!piece) {
            piece = NEW(c->arena, Piece);
            *piece = (Piece){.root = root, .bytes = root->bytes};
            map_put(of, PTR_KEY(root), piece);
            out[n++] = piece;
        }
        if (slot_is_part(s))
            vec_push(c->arena, &piece->slots, s);
        else
            vec_push(c->arena, &piece->views, s);
    }
    for (uint32_t i = 0; i < n; i++)
        extend_lives(out[i]);
    return n;
}

/* Bytes that a part takes: its own, but all of the last cache line if nothing lies behind it. */
static uint64_t need(const Slot *part)
{
    return part->in ? part->bytes : align_up(part->bytes, ARENA_ALIGN);
}

/* What the parts of a piece take in it.  Where places are forms, the parts are one. */
static AreaVec areas_of(const Program *p, const Piece *x)
{
    AreaVec out = {0};
    bool    whole = x->unit && !idx_is_const(x->unit, NULL);

    for (uint32_t i = 0; i < x->slots.n; i++) {
        const Slot *s = x->slots.at[i];
        Area        a = {s->at, s->at + need(s), s->first, s->last};

        if (whole)
            a.lo = 0, a.hi = x->bytes;
        if (!whole || !i) {
            vec_push(p->c->arena, &out, a);
            continue;
        }
        out.at[0].first = a.first < out.at[0].first ? a.first : out.at[0].first;
        out.at[0].last = a.last > out.at[0].last ? a.last : out.at[0].last;
    }
    return out;
}

static bool together(const Area *a, const Area *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The lowest base from `at` on where this part of a piece meets no placed area.  These are sorted
 * by their begin, so that one sweep finds the first gap. */
static uint64_t fit(const AreaVec *placed, const Area *part, uint64_t at)
{
    for (uint32_t i = 0; i < placed->n; i++) {
        const Area *a = &placed->at[i];
        if (!together(a, part) || a->hi <= at + part->lo)
            continue;
        if (at + part->hi <= a->lo)
            break;
        at = align_up(a->hi - part->lo, ARENA_ALIGN);
    }
    return at;
}

static void place(const Program *p, Piece *x, uint64_t begin, AreaVec *placed)
{
    AreaVec  parts = areas_of(p, x);
    uint64_t at = begin, before;

    do {
        before = at;
        for (uint32_t i = 0; i < parts.n; i++)
            at = fit(placed, &parts.at[i], at);
    } while (at != before);
    x->offset = at;
    for (uint32_t i = 0; i < parts.n; i++) {
        Area     a = parts.at[i];
        uint32_t j = placed->n;

        a.lo += at;
        a.hi += at;
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
        for (uint32_t j = 0; j < piece[i]->slots.n; j++) {
            const Slot *s = piece[i]->slots.at[j];
            for (uint32_t t = s->first; t <= s->last && t <= p->at; t++)
                live[t] += need(s);
        }
    for (uint32_t t = 0; t <= p->at; t++)
        if (live[t] > most)
            most = live[t];
    return most;
}

/* Offsets from `begin` on for all pieces in this order; returns the end. */
static uint64_t place_all(const Program *p, Piece *const *piece, uint32_t n, uint64_t begin)
{
    AreaVec  placed = {0};
    uint64_t top = begin;

    for (uint32_t i = 0; i < n; i++) {
        place(p, piece[i], begin, &placed);
        uint64_t end = piece[i]->offset + align_up(piece[i]->bytes, ARENA_ALIGN);
        if (end > top)
            top = end;
    }
    return top;
}

/* ... in the best order; none is better than `floor`. */
static uint64_t place_best(const Program *p, Piece **piece, uint32_t n, uint64_t begin,
                           uint64_t floor)
{
    static int (*const orders[])(const void *, const void *) = {by_size, by_stay, by_time};
    uint64_t least = 0;
    uint32_t best = 0;

    for (uint32_t i = 0; i < COUNT(orders); i++) {
        qsort(piece, n, sizeof *piece, orders[i]);
        uint64_t top = place_all(p, piece, n, begin);
        if (i == 0 || top < least)
            least = top, best = i;
        if (least == floor)
            return least;
    }
    qsort(piece, n, sizeof *piece, orders[best]);
    return place_all(p, piece, n, begin);
}

/* ---- open programs ----------------------------------------------------------------------------- */

const Idx *arena_aligned(Ctx *c, const Idx *bytes)
{
    const Idx *lines = idx_divc(c->arith, idx_addc(c->arith, bytes, ARENA_ALIGN - 1), ARENA_ALIGN);

    return idx_mulc(c->arith, lines, ARENA_ALIGN);
}

static int64_t common_factor(const Idx *x)
{
    int64_t n = x->c0;

    for (uint32_t i = 0; i < x->nterms; i++)
        n = gcd_i64(n, x->t[i].coef);
    return n;
}

/* Sizes in units: 64 bytes, 64 of what the cells of a row are, or all of the value. */
static void find_unit(Ctx *c, Piece *x)
{
    const Idx *bytes = arena_aligned(c, x->root->open.bytes);
    int64_t    n = common_factor(bytes);

    x->unit = bytes;
    x->bytes = ARENA_ALIGN;
    if (n && n % ARENA_ALIGN == 0) {
        x->unit = idx_mulc(c->arith, idx_divc(c->arith, bytes, n), ARENA_ALIGN);
        x->bytes = (uint64_t)n;
    }
}

/* The pieces of one unit, which are moved to the front of what is left; gives their number. */
static uint32_t with_unit(Piece **piece, uint32_t n, const Idx *unit)
{
    uint32_t k = 0;

    for (uint32_t i = 0; i < n; i++)
        if (piece[i]->unit == unit) {
            Piece *x = piece[i];
            for (uint32_t j = i; j > k; j--)
                piece[j] = piece[j - 1];
            piece[k++] = x;
        }
    return k;
}

/* So many 64ths of a unit; the numbers of pieces are multiples of 64. */
static const Idx *in_units(Ctx *c, const Idx *unit, uint64_t n)
{
    return idx_mulc(c->arith, idx_divc(c->arith, unit, ARENA_ALIGN), (int64_t)n);
}

/* Area behind area, that of numbers first. */
static const Idx *place_open(Program *p, Piece **piece, uint32_t n)
{
    Ctx       *c = p->c;
    const Idx *unit = idx_const(c->arith, ARENA_ALIGN), *end = idx_const(c->arith, 0);
    uint64_t   begin = p->arena_first;

    for (uint32_t i = 0; i < n; i++)
        find_unit(c, piece[i]);
    for (uint32_t i = 0, k; i < n || begin; i += k, begin = 0) {
        k = with_unit(piece + i, n - i, unit);
        uint64_t top = place_best(p, piece + i, k, begin, 0);
        for (uint32_t j = i; j < i + k; j++)
            piece[j]->root->open.offset =
                idx_add(c->arith, end, in_units(c, unit, piece[j]->offset));
        end = idx_add(c->arith, end, in_units(c, unit, top));
        unit = i + k < n ? piece[i + k]->unit : NULL;
    }
    for (uint32_t i = 0; i < n; i++)
        piece[i]->root->offset = (uint64_t)idx_usual(piece[i]->root->open.offset);
    return end;
}

uint64_t memory_plan(Program *p, bool here, uint64_t *floor, const Idx **form)
{
    Piece  **piece = NEW_ARRAY(p->c->arena, Piece *, p->slots.n + 1);
    uint32_t n;
    uint64_t top;

    resolve(p);
    n = find_pieces(p, here, false, piece);
    *floor = p->arena_first + lower_bound(p, piece, n);
    *form = p->open ? place_open(p, piece, n) : NULL;
    if (p->open)
        return (uint64_t)idx_usual(*form);
    top = place_best(p, piece, n, p->arena_first, *floor);
    for (uint32_t i = 0; i < n; i++)
        piece[i]->root->offset = piece[i]->offset;
    return top;
}

uint64_t memory_plan_own(Program *p, uint64_t begin)
{
    Piece  **piece = NEW_ARRAY(p->c->arena, Piece *, p->slots.n + 1);
    uint32_t n = find_pieces(p, false, true, piece);
    uint64_t top = place_best(p, piece, n, begin, begin + lower_bound(p, piece, n));

    for (uint32_t i = 0; i < n; i++)
        piece[i]->root->offset = piece[i]->offset;
    return top;
}
