/* Order along an axis by what many threads can do side by side: a network of comparisons sorts
 * chunks of a row, and runs are merged in pairs.
 *
 * In each round of the network every cell is compared with one other, and the one of the two that
 * comes first lies before the other behind it.  It is Batcher's bitonic one, all of whose
 * comparisons point the same way: the first round of a stage meets cell j with j ^ (2^(s+1) - 1),
 * the others with j ^ 2^q, q < s.  So cells beyond the end of a row, which would come last, need
 * not be there.  Keys are integers (sort.c); of equal ones positions decide, so that the order is
 * stable.
 *
 *     scan t<R [i<4, b<2] {
 *       %mask[i,b,u] = ..  %key[i,b,0,j] = ..  %position[i,b,0,j] = b*1024 + j
 *       each { %met[i,b,t,j] = %key[i,b,t,j ^ %mask[i,b,t]]  %met_at[i,b,t,j] = ..
 *              %takes[i,b,t,j] = whether the cell becomes that one
 *              %key[i,b,t+1,j] = ..  %position[i,b,t+1,j] = .. }
 *       %run[i,b,p] = %key[i,b,R,p]  %place[i,b,p] = %position[i,b,R,p] }
 *
 * A merge finds for each cell of its result how many of the first run stand before it, by halves:
 *
 *     scan t<11 [i<4, b<1, p<2048] { %first[i,b,p,0] = 0
 *       each { %first[i,b,p,t+1] = .. }  %run.1[i,b,p] = .. }
 *
 * Where the first k of a row are wanted no run is longer, and where they are few those of several
 * chunks are sorted like a row, not merged. */
#include "ops/reduce/sort.h"

#include <string.h>

enum { FEW_KEPT = 4 }; /* chunks of which runs are so many times as short are sorted again */

typedef struct {
    Ctx            *c;
    const SortRows *s;
    uint32_t        rows; /* dimensions but for the axis */
    int64_t         n, k; /* cells of a row; wanted */
    DType           type; /* of keys */
    uint32_t       step; /* the number of the scan that is made: its axes have names of their own */
    const Tensor **out;
} Network;

/* What is sorted so far; no tensors: the operand's cells as they are. */
typedef struct {
    SortRuns      of;
    const Tensor *key, *position;
} Runs;

static const Prim *number(const Network *w, int64_t v)
{
    return prim_int(w->c, DT_I32, v);
}

static const Prim *as_number(const Network *w, const Idx *x)
{
    return prim_index(w->c, DT_I32, x);
}

/* A computed place in [0, n). */
static const Idx *place(const Network *w, const Prim *at, int64_t n)
{
    return idx_load(w->c->arith, at, 0, n - 1);
}

static const char *axis_name(const Network *w, const char *name)
{
    return w->step ? intern_printf(w->c->strings, "%s.%u", name, w->step) : name;
}

/* Axes over the rows, then `more` others. */
static Axes row_axes(const Network *w, uint32_t more, const int64_t *extent,
                     const char *const *names)
{
    const Type *t = w->s->type;
    const Idx  *extents[TE_MAX_AXES];
    const char *all[TE_MAX_AXES];
    uint32_t    n = 0;

    for (uint32_t i = 0; i < t->n; i++)
        if (i != w->s->axis) {
            extents[n] = t->dims[i];
            all[n++] = axis_name(w, intern_printf(w->c->strings, "i%u", i));
        }
    for (uint32_t i = 0; i < more; i++) {
        extents[n] = idx_const(w->c->arith, extent[i]);
        all[n++] = axis_name(w, names[i]);
    }
    return te_axes(w->c, n, extents, all);
}

static Axes own_axis(const Network *w, const char *name, int64_t n)
{
    const Idx *extent = idx_const(w->c->arith, n);

    return te_axes(w->c, 1, &extent, &name);
}

/* A tensor of a scan, whose last dimensions come behind those of its outer axes. */
static const Tensor *scan_tensor(const Network *w, Scan *k, const char *name, DType t,
                                 uint32_t more, const int64_t *extent)
{
    const Idx *extents[TE_MAX_AXES];
    uint32_t   n = k->outer.n;

    memcpy(extents, k->outer.extent, n * sizeof *extents);
    for (uint32_t i = 0; i < more; i++)
        extents[n++] = idx_const(w->c->arith, extent[i]);
    return te_scan_tensor(w->c, k, name, t, n, extents);
}

/* A cell of such a tensor: `a`, and `b` if it is not NULL, behind the outer axes. */
static void cell_at(const Scan *k, const Idx *a, const Idx *b, const Idx **at)
{
    memcpy(at, k->outer.at, k->outer.n * sizeof *at);
    at[k->outer.n] = a;
    at[k->outer.n + 1] = b;
}

static const Prim *at_cell(const Network *w, const Scan *k, const Tensor *t, const Idx *a,
                           const Idx *b)
{
    const Idx *at[TE_MAX_AXES];

    cell_at(k, a, b, at);
    return te_at(w->c, t, at);
}

static void define(const Network *w, Scan *k, ScanPart part, const Tensor *t, const Idx *a,
                   const Idx *b, Axes own, const Prim *value)
{
    const Idx *at[TE_MAX_AXES];

    cell_at(k, a, b, at);
    te_scan_def(w->c, k, part, t, at, own, value);
}

/* Cell `at` of the operand's row that the scan's outer axes say. */
static const Prim *element(const Network *w, const Scan *k, const Idx *at)
{
    const Idx *cell[TE_MAX_AXES];
    uint32_t   n = 0;

    for (uint32_t i = 0; i < w->s->type->n; i++)
        cell[i] = i == w->s->axis ? at : k->outer.at[n++];
    return te_at(w->c, w->s->x, cell);
}

/* Cell `p` of a run, its key or its position. */
static const Prim *of_run(const Network *w, const Scan *k, const Tensor *t, const Idx *run,
                          const Idx *p)
{
    const Idx *at[TE_MAX_AXES];

    memcpy(at, k->outer.at, w->rows * sizeof *at);
    at[w->rows] = run;
    at[w->rows + 1] = p;
    return te_at(w->c, t, at);
}

/* The results, cell r of a row: the element at that position, and the position. */
static void define_results(const Network *w, Scan *k, const Idx *r, Axes own, const Prim *position)
{
    const SortRows *s = w->s;
    const Type     *types[2] = {s->values, s->indices};
    uint32_t        n = 0, outs = 0;
    const Idx      *at[TE_MAX_AXES];

    for (uint32_t i = 0; i < s->type->n; i++)
        at[i] = i == s->axis ? r : k->outer.at[n++];
    for (int i = 0; i < 2; i++) {
        const char   *name = i ? s->index_name : s->value_name;
        const Tensor *t =
            types[i] ? te_scan_tensor(w->c, k, name, types[i]->dtype, types[i]->n, types[i]->dims)
                     : NULL;

        if (t)
            te_scan_def(w->c, k, SCAN_END, t, at, own,
                        i ? prim_cast(w->c, t->buffer->dtype, position)
                          : element(w, k, place(w, position, w->n)));
        if (t)
            w->out[outs++] = t;
    }
}

/* ---- networks ------------------------------------------------------------------------------------ */

/* The stage of round u: how many have begun after the first one. */
static const Prim *stage_of(const Network *w, int64_t stages, const Idx *u)
{
    Ctx        *c = w->c;
    const Prim *stage = number(w, 0);

    for (int64_t s = 1; s < stages; s++)
        stage =
            prim_add(c, stage,
                     prim_cast(c, DT_I32, prim_le(c, number(w, s * (s + 1) / 2), as_number(w, u))));
    return stage;
}

/* By which bits cells that meet in round u, of that stage, differ. */
static const Prim *mask_of(const Network *w, const Prim *stage, const Idx *u)
{
    Ctx        *c = w->c;
    const Prim *one = number(w, 1), *next = prim_add(c, stage, one);
    const Prim *first = prim_div(c, prim_mul(c, stage, next), number(w, 2));
    const Prim *bit = prim_sub(c, prim_add(c, stage, first), as_number(w, u));
    const Prim *turned = prim_sub(c, prim_bin(c, PRIM_SHL, number(w, 2), stage), one);

    return prim_select(c, prim_eq(c, bit, stage), turned, prim_bin(c, PRIM_SHL, one, bit));
}

/* Does the cell with key a, at position p, come before the one with b, at q? */
static const Prim *comes_before(const Network *w, const Prim *a, const Prim *p, const Prim *b,
                                const Prim *q)
{
    Ctx *c = w->c;

    return prim_or(c, prim_lt(c, a, b), prim_and(c, prim_eq(c, a, b), prim_lt(c, p, q)));
}

/* What a chunk begins with: cell j of chunk b of all valid ones. */
static void define_start(const Network *w, Scan *k, const Runs *from, int64_t chunk,
                         const Tensor *key, const Tensor *position)
{
    Ctx   *c = w->c;
    Arith *A = c->arith;

    for (int i = 0; i < 2; i++) {
        Axes        own = own_axis(w, "j", chunk);
        const Idx  *at = idx_add(A, idx_mulc(A, k->outer.at[w->rows], chunk), own.at[0]);
        const Prim *v;

        at = idx_min(A, at, idx_const(A, from->of.valid - 1));
        if (from->key)
            v = of_run(w, k, i ? from->position : from->key, idx_divc(A, at, from->of.width),
                       idx_modc(A, at, from->of.width));
        else
            v = i ? as_number(w, at) : sort_key(c, element(w, k, at), w->s->ascend);
        define(w, k, SCAN_START, i ? position : key, idx_const(A, 0), own.at[0], own, v);
    }
}

/* A cell of a round: itself, and the one that it meets. */
typedef struct {
    Axes        own;
    const Idx  *j;
    const Prim *me, *other;
} Meeting;

static Meeting meeting(const Network *w, const Scan *k, int64_t chunk, const Tensor *mask)
{
    Meeting x = {.own = own_axis(w, "j", chunk)};

    x.j = x.own.at[0];
    x.me = as_number(w, x.j);
    x.other = prim_bin(w->c, PRIM_XOR, x.me, at_cell(w, k, mask, k->t, NULL));
    return x;
}

/* A round: each cell meets another one, and becomes that or stays. */
static void define_round(const Network *w, Scan *k, const Runs *from, int64_t chunk,
                         const Tensor *mask, const Tensor *key, const Tensor *position)
{
    Ctx          *c = w->c;
    Arith        *A = c->arith;
    const Tensor *state[2] = {key, position}, *met[2], *takes;
    int64_t       size[2] = {k->rounds->hi, chunk};
    bool          whole = (chunk & (chunk - 1)) == 0; /* all cells have one to meet */
    Meeting       x;

    for (int i = 0; i < 2; i++) {
        x = meeting(w, k, chunk, mask);
        const Idx *there =
            place(w, whole ? x.other : prim_min(c, x.other, number(w, chunk - 1)), chunk);

        met[i] = scan_tensor(w, k, i ? "met_at" : "met", state[i]->buffer->dtype, 2, size);
        define(w, k, SCAN_EACH, met[i], k->t, x.j, x.own, at_cell(w, k, state[i], k->t, there));
    }
    x = meeting(w, k, chunk, mask);
    const Idx *left =
        idx_sub(A, idx_const(A, from->of.valid), idx_mulc(A, k->outer.at[w->rows], chunk));
    const Prim *exists = prim_lt(c, x.other, as_number(w, idx_min(A, left, idx_const(A, chunk))));
    const Prim *first =
        comes_before(w, at_cell(w, k, met[0], k->t, x.j), at_cell(w, k, met[1], k->t, x.j),
                     at_cell(w, k, key, k->t, x.j), at_cell(w, k, position, k->t, x.j));
    const Prim *take = prim_eq(c, first, prim_lt(c, x.me, x.other));

    if (!whole || from->of.valid % chunk)
        take = prim_and(c, exists, take);
    takes = scan_tensor(w, k, "takes", DT_BOOL, 2, size);
    define(w, k, SCAN_EACH, takes, k->t, x.j, x.own, take);
    for (int i = 0; i < 2; i++) {
        x = meeting(w, k, chunk, mask);
        define(w, k, SCAN_EACH, state[i], idx_addc(A, k->t, 1), x.j, x.own,
               prim_select(c, at_cell(w, k, takes, k->t, x.j), at_cell(w, k, met[i], k->t, x.j),
                           at_cell(w, k, state[i], k->t, x.j)));
    }
}

/* Chunks of the valid cells in order; the only one of a row is the result. */
static Runs sort_chunks(const Network *w, const Runs *from, SortRuns next)
{
    Ctx    *c = w->c;
    Arith  *A = c->arith;
    int64_t chunk = next.network, stages = doublings(chunk), rounds = stages * (stages + 1) / 2;
    Runs    to = {.of = next};
    Scan   *k =
        te_scan(c, row_axes(w, 1, &to.of.runs, (const char *[]){"b"}), "t", idx_const(A, rounds));
    Axes u = own_axis(w, "u", rounds), v = own_axis(w, "u", rounds);

    const Tensor *stage = scan_tensor(w, k, "stage", DT_I32, 1, &rounds);
    const Tensor *mask = scan_tensor(w, k, "mask", DT_I32, 1, &rounds);
    const Tensor *key = scan_tensor(w, k, "key", w->type, 2, (int64_t[]){rounds + 1, chunk});
    const Tensor *position =
        scan_tensor(w, k, "position", DT_I32, 2, (int64_t[]){rounds + 1, chunk});

    define(w, k, SCAN_START, stage, v.at[0], NULL, v, stage_of(w, stages, v.at[0]));
    define(w, k, SCAN_START, mask, u.at[0], NULL, u,
           mask_of(w, at_cell(w, k, stage, u.at[0], NULL), u.at[0]));
    define_start(w, k, from, chunk, key, position);
    define_round(w, k, from, chunk, mask, key, position);
    if (to.of.runs == 1) {
        Axes r = own_axis(w, "r", to.of.width);

        define_results(w, k, r.at[0], r, at_cell(w, k, position, k->rounds, r.at[0]));
    } else {
        Axes p = own_axis(w, "p", to.of.width), q = own_axis(w, "p", to.of.width);

        to.key = scan_tensor(w, k, "run", w->type, 1, &to.of.width);
        to.position = scan_tensor(w, k, "place", DT_I32, 1, &to.of.width);
        define(w, k, SCAN_END, to.key, p.at[0], NULL, p, at_cell(w, k, key, k->rounds, p.at[0]));
        define(w, k, SCAN_END, to.position, q.at[0], NULL, q,
               at_cell(w, k, position, k->rounds, q.at[0]));
    }
    te_scan_done(c, k);
    return to;
}

/* ---- merges ---------------------------------------------------------------------------------------- */

/* Cell p of the result of a pair of runs, of which `first` cells of the first one stand before it.
 */
typedef struct {
    const Runs *from;
    const Idx  *run;     /* the first one */
    const Prim *p, *end; /* cells of the first one */
    const Prim *end2;    /* .. of the second */
} Pair;

static const Prim *of_pair(const Network *w, const Scan *k, const Pair *x, bool second,
                           const Tensor *t, const Prim *at)
{
    Ctx        *c = w->c;
    Arith      *A = c->arith;
    int64_t     n = x->from->of.width, last = x->from->of.runs - 1;
    const Idx  *run = second ? idx_min(A, idx_addc(A, x->run, 1), idx_const(A, last)) : x->run;
    const Prim *in = prim_max(c, prim_min(c, at, number(w, n - 1)), number(w, 0));

    return of_run(w, k, t, run, place(w, in, n));
}

/* The second run has no more cells, or the first one's cell a does not come behind the second's b.
 */
static const Prim *takes_first(const Network *w, const Scan *k, const Pair *x, const Prim *a,
                               const Prim *b)
{
    Ctx *c = w->c;

    return prim_or(c, prim_le(c, x->end2, b),
                   prim_le(c, of_pair(w, k, x, false, x->from->key, a),
                           of_pair(w, k, x, true, x->from->key, b)));
}

/* Pairs of runs as one; an odd one stays. */
static Runs merge_runs(const Network *w, const Runs *from, SortRuns next)
{
    Ctx    *c = w->c;
    Arith  *A = c->arith;
    int64_t both = 2 * from->of.width, rounds = 0;
    Runs    to = {.of = next};

    while (from->of.width >> rounds)
        rounds++;
    Scan *k =
        te_scan(c, row_axes(w, 2, (int64_t[]){to.of.runs, to.of.width}, (const char *[]){"b", "p"}),
                "t", idx_const(A, rounds));
    const int64_t cells = rounds + 1;
    const Idx    *b = k->outer.at[w->rows], *p = k->outer.at[w->rows + 1];
    const Tensor *first = scan_tensor(w, k, "first", DT_I32, 1, &cells);
    const Idx    *width = idx_const(A, from->of.width), *none = idx_const(A, 0);
    const Idx    *left = idx_sub(A, idx_const(A, from->of.valid), idx_mulc(A, b, both));
    Pair          x = {.from = from,
                       .run = idx_mulc(A, b, 2),
                       .p = as_number(w, p),
                       .end = as_number(w, idx_min(A, left, width)),
                       .end2 = as_number(
                  w, idx_max(A, none, idx_min(A, idx_addc(A, left, -from->of.width), width)))};

    /* As many as can be: by halves, more only if the last of them comes before what of the second
     * run would stand behind it. */
    define(w, k, SCAN_START, first, none, NULL, (Axes){0}, number(w, 0));
    const Prim *so_far = at_cell(w, k, first, k->t, NULL);
    const Prim *step = prim_bin(c, PRIM_SHL, number(w, 1),
                                as_number(w, idx_sub(A, idx_const(A, rounds - 1), k->t)));
    const Prim *more = prim_add(c, so_far, step), *rest = prim_sub(c, x.p, more);
    const Prim *fits = prim_and(c, prim_le(c, more, x.p), prim_le(c, more, x.end));
    const Prim *can = takes_first(w, k, &x, prim_sub(c, more, number(w, 1)), rest);

    define(w, k, SCAN_EACH, first, idx_addc(A, k->t, 1), NULL, (Axes){0},
           prim_select(c, prim_and(c, fits, can), more, so_far));
    const Prim *a = at_cell(w, k, first, k->rounds, NULL), *z = prim_sub(c, x.p, a);
    const Prim *own = prim_and(c, prim_lt(c, a, x.end), takes_first(w, k, &x, a, z));
    const Prim *position = prim_select(c, own, of_pair(w, k, &x, false, from->position, a),
                                       of_pair(w, k, &x, true, from->position, z));

    if (to.of.runs == 1) {
        define_results(w, k, p, (Axes){0}, position);
    } else {
        const Prim *key = prim_select(c, own, of_pair(w, k, &x, false, from->key, a),
                                      of_pair(w, k, &x, true, from->key, z));

        to.key = te_scan_tensor(c, k, "run", w->type, k->outer.n, k->outer.extent);
        to.position = te_scan_tensor(c, k, "place", DT_I32, k->outer.n, k->outer.extent);
        te_scan_def(c, k, SCAN_END, to.key, k->outer.at, (Axes){0}, key);
        te_scan_def(c, k, SCAN_END, to.position, k->outer.at, (Axes){0}, position);
    }
    te_scan_done(c, k);
    return to;
}

bool sort_by_network(Ctx *c, const SortRows *s, int64_t chunk, const Tensor **out)
{
    Network w = {.c = c, .s = s, .rows = s->type->n - 1, .out = out};

    if (!sort_suits_network(s->type, s->axis, s->wanted))
        return false;
    idx_is_const(s->type->dims[s->axis], &w.n);
    idx_is_const(s->wanted, &w.k);
    w.type = sort_key_type(s->type->dtype);
    chunk = chunk < 2 ? w.n : chunk;
    Runs runs = {.of = {.runs = w.n, .width = 1, .valid = w.n}};

    while (runs.of.runs > 1) {
        SortRuns next = sort_next(&runs.of, w.k, chunk);

        runs = next.network ? sort_chunks(&w, &runs, next) : merge_runs(&w, &runs, next);
        w.step++;
    }
    return true;
}

/* ---- what passes ask --------------------------------------------------------------------------- */

bool sort_suits_network(const Type *x, uint32_t axis, const Idx *wanted)
{
    int64_t n, k;

    return x->n + 2 < TE_MAX_AXES && idx_is_const(x->dims[axis], &n) && n > 1 &&
           idx_is_const(wanted, &k) && k > 0;
}

int64_t sort_key_bytes(DType t)
{
    return dtype_bytes(sort_key_type(t));
}

SortRuns sort_next(const SortRuns *from, int64_t k, int64_t chunk)
{
    bool     network = from->width == 1 || FEW_KEPT * from->width <= chunk;
    SortRuns to = {0};

    if (network)
        to.network = from->valid < chunk ? from->valid : chunk;
    int64_t cells = network ? to.network : 2 * from->width;

    to.runs = ceil_div(from->valid, cells);
    to.width = cells < k ? cells : k;
    int64_t last = from->valid - (to.runs - 1) * cells;

    to.valid = (to.runs - 1) * to.width + (last < to.width ? last : to.width);
    return to;
}
