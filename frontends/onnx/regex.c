/* Regular expressions, in RE2's syntax, to automata over the bytes of UTF-8.
 *
 *     a(b|é)    0 dead, 1 whole, 2 start:   2 -a-> 3, 3 -b-> 5, 3 -C3-> 4, 4 -A9-> 5, 5 -end-> 1
 *
 * The pattern becomes a tree, the tree a program of byte ranges, and sets of the program's places
 * states.  Places that look around (^ $ \b) stay in a set until the byte behind them is known, so a
 * state also knows what was before it.  A zero byte is the string's end.  What takes too many
 * states or steps is refused, as is what no automaton can do. */
#include "frontends/onnx/regex.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PROGRAM = 20000, MAX_STATES = 10000, MAX_STEPS = 50000000 };

/* ---- the program ------------------------------------------------------------------------------------ */

typedef enum { OP_BYTES, OP_FORK, OP_LOOK, OP_END } OpKind;
typedef struct {
    OpKind    kind;
    uint8_t   lo, hi;
    RegexLook look;
    uint32_t  next, other; /* of a fork: UINT32_MAX none */
} Op;

typedef struct {
    Arena *a;
    VEC(Op) ops;
    bool looks;
} Program;

static uint32_t emit(Program *g, Op op)
{
    if (g->ops.n < MAX_PROGRAM)
        vec_push(g->a, &g->ops, op);
    return g->ops.n - 1;
}

static uint32_t encode(uint32_t v, uint8_t out[4])
{
    if (v < 0x80)
        return out[0] = (uint8_t)v, 1;
    uint32_t more = v < 0x800 ? 1 : v < 0x10000 ? 2 : 3;
    for (uint32_t i = more; i > 0; i--, v >>= 6)
        out[i] = (uint8_t)(0x80 | (v & 0x3f));
    out[0] = (uint8_t)((0xff00u >> (more + 1) & 0xff) | v);
    return more + 1;
}

/* Code points lo..hi, as sequences of byte ranges that end at `next`; a fork of them and `other`.
 */
static uint32_t emit_range(Program *g, uint32_t lo, uint32_t hi, uint32_t next, uint32_t other)
{
    static const uint32_t ends[] = {0x7f, 0x7ff, 0xd7ff, 0xdfff, 0xffff};
    uint8_t               a[4], b[4];
    uint32_t              n;

    lo = lo ? lo : 1;
    if (lo > hi || (lo >= 0xd800 && hi <= 0xdfff))
        return other;
    for (uint32_t i = 0; i < COUNT(ends); i++)
        if (lo <= ends[i] && hi > ends[i])
            return emit_range(g, lo, ends[i], next, emit_range(g, ends[i] + 1, hi, next, other));
    for (uint32_t i = 1; i < 4; i++) {
        uint32_t m = (1u << (6 * i)) - 1;

        if (hi < 0x80 || (lo & ~m) == (hi & ~m))
            continue;
        if (lo & m)
            return emit_range(g, lo, lo | m, next, emit_range(g, (lo | m) + 1, hi, next, other));
        if ((hi & m) != m)
            return emit_range(g, lo, (hi & ~m) - 1, next, emit_range(g, hi & ~m, hi, next, other));
    }
    n = encode(lo, a);
    encode(hi, b);
    while (n-- > 0)
        next = emit(g, (Op){.kind = OP_BYTES, .lo = a[n], .hi = b[n], .next = next});
    return other == UINT32_MAX ? next
                               : emit(g, (Op){.kind = OP_FORK, .next = next, .other = other});
}

/* The tree before the place `next`. */
static uint32_t emit_tree(Program *g, const RegexTree *t, uint32_t next)
{
    uint32_t at = UINT32_MAX;

    if (g->ops.n >= MAX_PROGRAM)
        return next;
    switch (t->kind) {
    case REGEX_SET:
        for (uint32_t i = t->set.n; i-- > 0;)
            at = emit_range(g, t->set.at[i].lo, t->set.at[i].hi, next, at);
        /* of an empty set: a range without a byte */
        return at != UINT32_MAX ? at : emit(g, (Op){.kind = OP_BYTES, .lo = 1, .next = next});
    case REGEX_CAT:
        for (uint32_t i = t->kids.n; i-- > 0;)
            next = emit_tree(g, t->kids.at[i], next);
        return next;
    case REGEX_ALT:
        for (uint32_t i = t->kids.n; i-- > 0;) {
            uint32_t one = emit_tree(g, t->kids.at[i], next);

            at = at == UINT32_MAX ? one : emit(g, (Op){.kind = OP_FORK, .next = one, .other = at});
        }
        return at;
    case REGEX_REPEAT:
        if (t->max == UINT32_MAX) {
            at = emit(g, (Op){.kind = OP_FORK, .next = next, .other = next});
            uint32_t body = emit_tree(g, t->kids.at[0], at);

            g->ops.at[at].next = body;
            next = at;
        }
        for (uint32_t i = t->min; t->max != UINT32_MAX && i < t->max; i++) {
            uint32_t body = emit_tree(g, t->kids.at[0], at == UINT32_MAX ? next : at);

            at = emit(g, (Op){.kind = OP_FORK, .next = body, .other = next});
        }
        next = at == UINT32_MAX ? next : at;
        for (uint32_t i = 0; i < t->min; i++) {
            uint32_t before = g->ops.n;

            next = emit_tree(g, t->kids.at[0], next);
            if (g->ops.n == before) /* of nothing, or no more room */
                break;
        }
        return next;
    case REGEX_LOOK:
        g->looks = true;
        return emit(g, (Op){.kind = OP_LOOK, .look = t->look, .next = next});
    }
    return next;
}

/* ---- states ----------------------------------------------------------------------------------------- */

/* What is on a side of a place. */
typedef enum { SIDE_NONE, SIDE_WORD, SIDE_LINE, SIDE_OTHER } Side;

typedef struct {
    Side            before;
    uint32_t        n;
    const uint32_t *places;
} State;

typedef struct {
    Arena         *a;
    const Program *g;
    uint32_t      *seen, round; /* of places */
    uint32_t      *stack;
    uint64_t       steps;
    VEC(State) states;
    uint32_t *index, room; /* a hash table of numbers of states, plus 1 */
} Build;

static Side side_of(uint8_t byte)
{
    return byte == 0      ? SIDE_NONE
           : byte == '\n' ? SIDE_LINE
           : byte == '_' || (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
                   (byte >= 'a' && byte <= 'z')
               ? SIDE_WORD
               : SIDE_OTHER;
}

static bool holds(RegexLook look, Side before, Side after)
{
    bool edge = (before == SIDE_WORD) != (after == SIDE_WORD);

    switch (look) {
    case REGEX_AT_BEGIN: return before == SIDE_NONE;
    case REGEX_AT_END: return after == SIDE_NONE;
    case REGEX_AT_LINE: return before == SIDE_NONE || before == SIDE_LINE;
    case REGEX_AT_LINE_END: return after == SIDE_NONE || after == SIDE_LINE;
    case REGEX_AT_WORD: return edge;
    case REGEX_NOT_AT_WORD: return !edge;
    }
    return false;
}

/* Adds the places that are reached from `from` without a byte; through those that look around only
 * with what is on both sides, else they stay. */
static void reach(Build *b, uint32_t from, bool sides, Side before, Side after, uint32_t *n,
                  uint32_t *out)
{
    uint32_t depth = 0;

    b->stack[depth++] = from;
    while (depth) {
        uint32_t  at = b->stack[--depth];
        const Op *op = &b->g->ops.at[at];

        b->steps++;
        if (b->seen[at] == b->round)
            continue;
        b->seen[at] = b->round;
        if (op->kind == OP_FORK) {
            b->stack[depth++] = op->other;
            b->stack[depth++] = op->next;
        } else if (op->kind == OP_LOOK && sides) {
            if (holds(op->look, before, after))
                b->stack[depth++] = op->next;
        } else {
            out[(*n)++] = at;
        }
    }
}

static int by_number(const void *x, const void *y)
{
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

    return a < b ? -1 : a > b;
}

static bool same_state(const State *x, const State *y)
{
    return x->before == y->before && x->n == y->n &&
           !memcmp(x->places, y->places, x->n * sizeof *x->places);
}

/* The number of the state of these places. */
static uint32_t state_of(Build *b, Side before, uint32_t n, uint32_t *places)
{
    State    s = {b->g->looks ? before : SIDE_NONE, n, places};
    uint64_t hash = s.before;
    uint32_t at;

    if (!n)
        return REGEX_DEAD;
    qsort(places, n, sizeof *places, by_number);
    for (uint32_t i = 0; i < n; i++)
        hash = hash_mix(hash, places[i]);
    for (at = (uint32_t)hash % b->room; b->index[at]; at = (at + 1) % b->room)
        if (same_state(&b->states.at[b->index[at] - 1], &s))
            return b->index[at] - 1;
    s.places = arena_dup(b->a, places, n * sizeof *places);
    vec_push(b->a, &b->states, s);
    b->index[at] = b->states.n;
    return b->states.n - 1;
}

/* Bytes that no range tells apart are one class; 0 is one of its own. */
static void find_classes(const Program *g, Regex *r)
{
    bool     begins[257] = {[0] = true, [1] = true};
    uint32_t k = 0;

    for (uint32_t i = 0; i < g->ops.n; i++)
        if (g->ops.at[i].kind == OP_BYTES)
            begins[g->ops.at[i].lo] = begins[g->ops.at[i].hi + 1u] = true;
    for (uint32_t c = 1; g->looks && c < 256; c++)
        begins[c] |= side_of((uint8_t)c) != side_of((uint8_t)(c - 1));
    for (uint32_t c = 0; c < 256; c++)
        r->class_of[c] = (uint8_t)(begins[c] && c ? ++k : k);
    r->classes = k + 1;
}

static bool build_states(Build *b, uint32_t start, Regex *r)
{
    const Program *g = b->g;
    uint32_t      *now = NEW_ARRAY(b->a, uint32_t, g->ops.n + 1), n;
    uint32_t      *then = NEW_ARRAY(b->a, uint32_t, g->ops.n + 1), m;
    VEC(int32_t) next = {0};
    uint8_t byte[256] = {0};

    for (uint32_t c = 256; c-- > 0;)
        byte[r->class_of[c]] = (uint8_t)c;
    vec_push(b->a, &b->states, (State){0}); /* dead, whole */
    vec_push(b->a, &b->states, (State){0});
    n = 0;
    b->round++;
    reach(b, start, false, SIDE_NONE, SIDE_NONE, &n, now);
    state_of(b, SIDE_NONE, n, now);
    for (uint32_t i = 0; i < b->states.n; i++)
        for (uint32_t c = 0; c < r->classes; c++) {
            State    s = b->states.at[i];
            Side     after = side_of(byte[c]);
            uint32_t to = i == REGEX_WHOLE && c == 0 ? REGEX_WHOLE : REGEX_DEAD;

            n = m = 0;
            b->round++;
            for (uint32_t k = 0; k < s.n; k++)
                reach(b, s.places[k], true, s.before, after, &n, now);
            b->round++;
            for (uint32_t k = 0; k < n; k++) {
                const Op *op = &g->ops.at[now[k]];

                if (op->kind == OP_END && c == 0)
                    to = REGEX_WHOLE;
                else if (op->kind == OP_BYTES && op->lo <= byte[c] && byte[c] <= op->hi)
                    reach(b, op->next, false, SIDE_NONE, SIDE_NONE, &m, then);
            }
            to = m ? state_of(b, after, m, then) : to;
            vec_push(b->a, &next, (int32_t)to);
            if (b->states.n > MAX_STATES || b->steps > MAX_STEPS)
                return false;
        }
    r->states = b->states.n;
    r->next = next.at;
    return true;
}

bool regex_compile(Arena *a, Bytes pattern, Regex *out, const char **why)
{
    Program          g = {.a = a};
    Build            b = {.a = a, .g = &g, .room = 4 * MAX_STATES};
    const RegexTree *t = regex_parse(a, pattern, why);
    uint32_t         start;

    if (!t)
        return false;
    start = emit_tree(&g, t, emit(&g, (Op){.kind = OP_END}));
    *why = "it needs too many states";
    if (g.ops.n >= MAX_PROGRAM)
        return false;
    find_classes(&g, out);
    b.seen = NEW_ARRAY(a, uint32_t, g.ops.n + 1);
    b.stack = NEW_ARRAY(a, uint32_t, 3 * (size_t)g.ops.n + 3);
    b.index = NEW_ARRAY(a, uint32_t, b.room);
    return build_states(&b, start, out);
}
