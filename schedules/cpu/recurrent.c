/* Recurrent cells: nn.recurrent, a scan over steps.
 *
 *   cell, state, y as one nest of tiles     units of the state with all of their gates
 *   fold_init gate -> sum                   sums start from the input's part
 *   %p1 (d, k, g, j) -> (d, j//32, k, g, j%32)     what a tile reads of the weights lies together
 *   compute_at sum %cell.nb; cache_write sum reg   a tile's sums, for as many rows as registers
 *   outline %sum.rows -> @cell                     hold, a function of their own: what the cell's
 *                                                  functions need would stay in registers, too
 *
 * A step is bound by the stream of the weights.  Threads take one direction each where half of L2
 * holds its weights, so that they need not meet; else they divide the tiles of each step. */
#include "schedules/cpu/cpu.h"

#include <math.h>

/* Of a part: gates that its product has, units of a tile, rows together. */
typedef struct {
    int64_t gates, tile, together;
} PartPlan;

typedef enum { DIVIDE_NOTHING, DIVIDE_DIRECTIONS, DIVIDE_UNITS, DIVISIONS } Division;

typedef struct {
    const RecurrentPart *parts;
    Machine              machine;
    int64_t  steps, directions, rows, units, bytes; /* bytes: of the weights of a direction */
    int64_t  lanes, dtype;
    int64_t  sums; /* of all products of a step */
    Division by;
    PartPlan of[2];
} RecurrentPlan;

/* What is reused of a product stays in registers: vectors of weights where rows go outside of them,
 * or the numbers of the rows.  A rest that is no vector is a loop of its own, which no loop over
 * vectors can lie outside of. */
static bool rows_outside(const RecurrentPlan *p, int64_t vectors, int64_t rows)
{
    return rows >= vectors || p->units % p->lanes;
}

/* The most rows of the batch whose sums with so many vectors stay there, too. */
static int64_t rows_of(const RecurrentPlan *p, int64_t vectors)
{
    int64_t regs = tile_regs(&p->machine, p->lanes, vectors), rows = p->rows;

    while (rows > 1 &&
           (p->rows % rows ||
            rows * vectors + (rows_outside(p, vectors, rows) ? vectors : rows) + 1 > regs))
        rows--;
    return rows < 1 ? 1 : rows;
}

/* Cycles of a step of the sums of a tile of n units. */
static double one_tile(const RecurrentPlan *p, int64_t gates, int64_t n)
{
    int64_t vectors = ceil_div(n, p->lanes) * gates, rows = n ? rows_of(p, vectors) : 1;

    return n ? state_step_cycles(&p->machine, vectors, rows, p->lanes * p->dtype) / (double)rows
             : 0;
}

/* Cycles of all steps of a product, by tiles of so many units. */
static double tile_cycles(const RecurrentPlan *p, int64_t gates, int64_t units)
{
    int64_t full = p->units / units;
    double  tile = one_tile(p, gates, units), left = one_tile(p, gates, p->units % units),
           cycles = (double)full * tile + left;

    if (p->by == DIVIDE_UNITS)
        cycles = halves_cycles(full, tile, left);
    return cycles * (double)(p->steps * p->directions * p->units * p->rows);
}

/* May a tile have so many units? */
static bool may_tile(const RecurrentPlan *p, int64_t gates, int64_t units)
{
    return units <= p->units - (p->by == DIVIDE_UNITS) &&
           (units / p->lanes * gates <= limit_recurrent_sums(&p->machine) || units == p->lanes);
}

static int64_t most_units(const RecurrentPlan *p)
{
    return limit_recurrent_units(&p->machine) / p->lanes * p->lanes;
}

/* Cycles of all steps of a product by its best tiles. */
static double product_cycles(const RecurrentPlan *p, int64_t gates)
{
    double best = INFINITY;

    for (int64_t n = most_units(p); n > 0; n -= p->lanes)
        if (may_tile(p, gates, n))
            best = fmin(best, tile_cycles(p, gates, n));
    return isinf(best) ? tile_cycles(p, gates, p->units) : best;
}

/* ... of all products, divided so. */
static double step_cycles(RecurrentPlan *p, Division by)
{
    double cycles = 0;

    p->by = by;
    for (uint32_t i = 0; p->parts[i].host; i++)
        cycles += product_cycles(p, p->of[i].gates);
    return cycles;
}

static void decide_tile(Sched *s, RecurrentPlan *p, PartPlan *of, const char *name)
{
    enum { FEW_TILES = 4 };
    double     few = limit_recurrent_few_tiles(&p->machine);
    Candidates tiles = candidates(s);

    for (int64_t n = most_units(p); n > 0; n -= p->lanes)
        if (may_tile(p, of->gates, n))
            candidate(&tiles, n, 0,
                      tile_cycles(p, of->gates, n) * (p->units < FEW_TILES * n ? few : 1));
    if (!tiles.of.n)
        candidate(&tiles, p->units, 0, NAN);
    of->tile = pick_factor(s, name, &tiles);
    of->together = rows_of(p, ceil_div(of->tile, p->lanes) * of->gates);
}

static void decide_recurrent(Sched *s, void *plan)
{
    static const char *const words[] = {"nothing", "directions", "units"};
    static const char *const tile[] = {"units", "candidates"};
    RecurrentPlan           *p = plan;
    const Machine           *m = &p->machine;
    int64_t                  meets = p->parts[1].host ? 2 : 1;
    double                   cycles, steps = (double)(p->directions * p->steps);
    bool                     divides = !s->target->no_threads;
    bool                     near = p->directions > 1 && p->bytes <= room_weights(m);
    Candidates               by = candidates(s);

    cycles = step_cycles(p, DIVIDE_NOTHING);
    candidate(&by, DIVIDE_NOTHING, 0, cycles);
    if (divides && near)
        candidate(&by, DIVIDE_DIRECTIONS, 0, shared_cycles(m, cycles, apart_ns(m)));
    if (divides && !near && p->units >= 2 * p->lanes)
        candidate(&by, DIVIDE_UNITS, 0,
                  shared_cycles(m, step_cycles(p, DIVIDE_UNITS), steps * meeting_ns(m, meets)));
    p->by = (Division)pick_order(s, "divide", &by, words);
    for (uint32_t i = 0; p->parts[i].host; i++)
        decide_tile(s, p, &p->of[i], tile[i]);
}

static int64_t gates_of(Sched *s, const char *block)
{
    int64_t n = iter_extent(s, block, "g");

    return n > 0 ? n : 1;
}

/* The product of a tile: its sums in registers, all that a unit of its reduction makes written out.
 */
static void product_tile(Sched *s, const RecurrentPlan *p, const PartPlan *of, const char *product,
                         const char *at)
{
    bool        gates = loop_extent(s, intern_printf(s->c->strings, "%s.g", product)) > 0;
    bool        outside = rows_outside(p, of->gates * ceil_div(of->tile, p->lanes), of->together);
    const char *inner = !gates ? "" : intern_printf(s->c->strings, ", %%%s.g", product);
    const char *row = intern_printf(s->c->strings, ", %%%s.row", product);

    step(s, "compute_at %s %%%s", product, at);
    step(s, "split %%%s.n by %lld -> %%%s.rows, %%%s.row", product, (long long)of->together,
         product, product);
    step(s, "reorder %%%s.rows, %%%s.k%s%s, %%%s.j", product, product, outside ? row : inner,
         outside ? inner : row, product);
    sums_in_registers(s, product, intern_printf(s->c->strings, "%s.rows", product));
    step(s, "split %%%s.j by %lld tail=peel -> %%%s.v, %%%s.l", product, (long long)p->lanes,
         product, product);
    if (!outside)
        try_step(s, "reorder %%%s.v, %%%s.row, %%%s.l", product, product, product);
    step(s, "vectorize %%%s.l", product);
    step(s, "unroll %%%s.v, %%%s.row", product, product);
    if (gates)
        step(s, "unroll %%%s.g", product);
    step(s, "outline %%%s.rows -> @cell", product);
}

static void part_tiles(Sched *s, const RecurrentPlan *p, const RecurrentPart *part,
                       const PartPlan *of)
{
    const char *h = part->host, *at = intern_printf(s->c->strings, "%s.nb", h);
    bool        gates = loop_extent(s, intern_printf(s->c->strings, "%s.g", h)) > 0;

    step(s, "fold_init %s -> %s", part->gates, part->product);
    if (s->target->has_fma)
        try_step(s, "contract %s", part->product);
    for (uint32_t i = 0; i < COUNT(part->follow) && part->follow[i]; i++)
        step(s, "reverse_compute_at %s %%%s.j", part->follow[i], h);
    if (gates)
        step(s, "reorder %%%s.j, %%%s.n, %%%s.g", h, h, h);
    else
        step(s, "reorder %%%s.j, %%%s.n", h, h);
    step(s, "split %%%s.j by %lld tail=peel -> %%%s.tile, %%%s.u", h, (long long)of->tile, h, h);
    step(s, "split %%%s.n by %lld -> %%%s.nb, %%%s.r", h, (long long)of->together, h, h);
    if (gates)
        step(s, "reorder %%%s.tile, %%%s.nb, %%%s.r, %%%s.u, %%%s.g", h, h, h, h, h);
    else
        step(s, "reorder %%%s.tile, %%%s.nb, %%%s.r, %%%s.u", h, h, h, h);
    product_tile(s, p, of, part->product, at);
    step(s, "split %%%s.u by %lld tail=peel -> %%%s.v, %%%s.l", h, (long long)p->lanes, h, h);
    if (gates) {
        step(s, "reorder %%%s.g, %%%s.l", h, h);
        step(s, "unroll %%%s.g", h);
    }
    step(s, "vectorize %%%s.l", h);
}

/* What a tile reads of a constant lies together. */
static void pack_weights(Sched *s, const RecurrentPlan *p)
{
    long long w = p->of[0].tile, last = p->of[1].tile;

    try_step(s, "transform_layout %%p1 (d, k, g, j) -> (d, j//%lld, k, g, j%%%lld)", w, w);
    if (p->parts[1].host)
        try_step(s, "transform_layout %%p3 (d, k, j) -> (d, j//%lld, k, j%%%lld)", last, last);
}

void sched_recurrent(Sched *s)
{
    static const char *const edges[] = {"state.init", "cell.init", "h", "c"};
    const Stmt              *state = sched_block(s, "state");
    int64_t                  lanes = cpu_lanes(s);

    if (!state || !iter_extent(s, "state", "t")) {
        s->refusal = "'state' is not that of a recurrent cell";
        return;
    }
    RecurrentPlan p = {.parts = recurrent_parts(s),
                       .machine = machine_of(s->target),
                       .steps = iter_extent(s, "state", "t"),
                       .directions = iter_extent(s, "state", "d"),
                       .rows = iter_extent(s, "state", "n"),
                       .units = iter_extent(s, "state", "j"),
                       .dtype = dtype_bytes(state->kids[0]->u.store.buffer->dtype)};
    for (uint32_t i = 0; p.parts[i].host; i++) {
        p.of[i].gates = gates_of(s, p.parts[i].product);
        p.sums += p.of[i].gates;
    }
    p.bytes = p.sums * p.units * p.units * p.dtype;
    p.lanes = lanes * 4 / p.dtype;
    p.lanes = p.lanes < 1 ? 1 : p.lanes > p.units ? p.units : p.lanes;
    sched_decide(s, decide_recurrent, &p);
    pack_weights(s, &p);
    for (uint32_t i = 0; p.parts[i].host; i++)
        part_tiles(s, &p, &p.parts[i], &p.of[i]);
    for (uint32_t i = 0; i < COUNT(edges); i++)
        if (has_block(s, edges[i]))
            vector_marks(s, edges[i]);
    if (p.by == DIVIDE_DIRECTIONS)
        step(s, "parallel %%d");
    if (p.by != DIVIDE_UNITS)
        return;
    /* One direction after the other: the weights of one stay in L2. */
    for (int64_t d = 1; d < p.directions; d++)
        step(s, "partition %%d at %lld", (long long)d);
    step(s, "distribute %%d");
    for (const RecurrentPart *part = p.parts; part->host; part++)
        step(s, "parallel %%%s.tile", part->host);
}
