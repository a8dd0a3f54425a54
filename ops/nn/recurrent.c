/* nn.recurrent: the sequential part of an LSTM, a GRU or an RNN, for all directions.
 *
 *     %5 = nn.recurrent(%xw, %r, %h0, %c0, cell="lstm", direction="bidirectional", units=32);
 *
 * %xw holds what does not depend on the step before (rnn.c).  Units of the hidden state are cut
 * into tiles; a tile has all gates of its units, so that one pass over its weights ends in new
 * values of the state:
 *
 *     for step { for tile { sums = xw[t]  for k { sums += h[k] * r[tile, k] }  h', y[t] =
 * gates(sums) } }
 *
 * xw [T, N, D * tiles * gates * units], r [D, tiles, H, gates * units]: what a tile needs lies
 * together, in the order in which it is read.  A step is bound by the stream of the weights.
 *
 *     cell         gates     in r   further operand          a step
 *     lstm         i o f c   all    c0 [D, N, H]             c = f*c + i*g(c~); h = o*g(c)
 *     gru          z r h     z r    rc [D, tiles, H, units]  h~ = g(x + (r*h) rc); h = (1-z)*h~ +
 * z*h gru_linear   z r h     all    rb [D, tiles * units]    h~ = g(x + r*(h rc + rb)) rnn one all
 * h = f(x + h r)
 *
 * Threads divide the tiles and meet after each step (twice in a step of `gru`, whose h~ needs r*h
 * of all units), or take one direction each where a step is too short for that: `algorithm` says
 * which. */
#include "machine/machine.h"
#include "ops/common.h"

#include <string.h>

typedef enum { CELL_LSTM, CELL_GRU, CELL_GRU_LINEAR, CELL_RNN, CELL_COUNT } CellKind;

static const struct {
    const char *name;
    int64_t     gates, sums; /* of xw, of r */
    uint32_t    operands, results;
} cells[CELL_COUNT] = {
    {"lstm", 4, 4, 4, 3}, {"gru", 3, 2, 4, 2}, {"gru_linear", 3, 3, 4, 2}, {"rnn", 1, 1, 3, 2}};

static bool cell_kind(Ctx *c, Loc loc, const char *name, CellKind *out)
{
    for (uint32_t i = 0; i < CELL_COUNT; i++)
        if (!strcmp(name, cells[i].name)) {
            *out = (CellKind)i;
            return true;
        }
    return error_at(c, E_TYPE, loc, "cell '%s' is not lstm, gru, gru_linear or rnn", name);
}

static bool known_activation(Ctx *c, Loc loc, const char *f)
{
    if (!strcmp(f, "sigmoid") || !strcmp(f, "tanh") || !strcmp(f, "relu"))
        return true;
    return error_at(c, E_TYPE, loc, "activation '%s' is not sigmoid, tanh or relu", f);
}

typedef enum { SERIAL, BY_DIRECTION, BY_UNITS, DIVISIONS } Division; /* among threads */
static const char *const divisions[] = {"direct", "directions", "units"};

static bool division_of(Ctx *c, Loc loc, const char *algorithm, Division *by)
{
    for (*by = SERIAL; *by < DIVISIONS; (*by)++)
        if (!strcmp(algorithm, divisions[*by]))
            return true;
    return error_at(c, E_TYPE, loc, "algorithm '%s' is not direct, directions or units", algorithm);
}

bool rel_direction(Ctx *c, Loc loc, const char *direction, int64_t *n)
{
    *n = !strcmp(direction, "bidirectional") ? 2 : 1;
    if (*n == 2 || !strcmp(direction, "forward") || !strcmp(direction, "reverse"))
        return true;
    return error_at(c, E_TYPE, loc, "direction '%s' is not forward, reverse or bidirectional",
                    direction);
}

const Type *rel_recurrent(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const RecurrentAttrs *a = attrs;
    CellKind              k;
    Division              by;
    int64_t               t, n, h, d, units = a->units, tiles;

    if (!rel_tensors(c, loc, in, nin) || !cell_kind(c, loc, a->cell, &k) ||
        !known_activation(c, loc, a->f) || !known_activation(c, loc, a->g) ||
        !rel_direction(c, loc, a->direction, &d) || !division_of(c, loc, a->algorithm, &by))
        return NULL;
    if (nin != cells[k].operands)
        return error_at(c, E_TYPE, loc, "cell '%s' has %u operands, not %u", a->cell,
                        cells[k].operands, nin);
    if (!rel_rank(c, loc, in[0], 3, "projected data") || !rel_rank(c, loc, in[2], 3, "state") ||
        !rel_dim(c, loc, in[0], 0, &t) || !rel_dim(c, loc, in[0], 1, &n) ||
        !rel_dim(c, loc, in[2], 2, &h))
        return NULL;
    DType dt = in[0]->dtype;
    if (!dtype_is_float(dt) || h < 1 || h > INT32_MAX / 8 || units < 1 || units > 128)
        return error_at(c, E_TYPE, loc, "a recurrent cell of %s with %lld units, %lld in a tile",
                        dtype_text(c, dt), (long long)h, (long long)units);
    tiles = (h + units - 1) / units;
    const Type *state = type_tensor_i64(c, dt, 3, (int64_t[]){d, n, h});
    const Type *want[4] = {
        type_tensor_i64(c, dt, 3, (int64_t[]){t, n, d * tiles * cells[k].gates * units}),
        type_tensor_i64(c, dt, 4, (int64_t[]){d, tiles, h, cells[k].sums * units}), state,
        k == CELL_LSTM  ? state
        : k == CELL_GRU ? type_tensor_i64(c, dt, 4, (int64_t[]){d, tiles, h, units})
                        : type_tensor_i64(c, dt, 2, (int64_t[]){d, tiles * units})};

    for (uint32_t i = 0; i < nin; i++)
        if (want[i] != in[i])
            return error_at(c, E_TYPE, loc, "operand %u must be %s, not %s", i,
                            type_text(c, want[i]), type_text(c, in[i]));
    const Type *fields[3] = {type_tensor_i64(c, dt, 4, (int64_t[]){t, d, n, h}), state, state};

    return type_tuple(c, cells[k].results, fields);
}

/* ---- compute ------------------------------------------------------------------------------------- */

typedef struct {
    Ctx          *c;
    CellKind      kind;
    const char   *f, *g, *direction;
    const Tensor *xw, *r, *h0, *more;
    const Buffer *y, *h, *cell;   /* results */
    const Buffer *state, *z, *rh; /* [D, 2, N, H]: h of even and odd steps; [D, N, H] of `gru` */
    const Buffer *sums;           /* [rows, sums * units] of the tile at hand */
    int64_t       T, N, D, H, tiles, units, lanes, rows;
    /* where it is: direction, step, the step as stored, tile, first row of the block, row in it */
    const Idx *d, *step, *t, *tile, *n0, *n;
} Cell;

static const Idx *num(const Cell *s, int64_t v)
{
    return idx_const(s->c->arith, v);
}

static const Stmt *along(const Cell *s, const Atom *var, int64_t n, uint32_t marks,
                         const Stmt *body)
{
    return loop_stmt(s->c, var, num(s, n), marks, body);
}

static const Atom *var(const Cell *s, const char *name, int64_t n)
{
    return te_loop_var(s->c, name, num(s, n));
}

static const Stmt *lanes_of(const Cell *s, const Atom *l, const Stmt *body)
{
    return along(s, l, s->lanes, s->lanes > 1 ? MARK_VECTOR : 0, body);
}

static const Buffer *scratch(const Cell *s, const char *name, Scope scope, uint32_t n,
                             const int64_t *dims)
{
    const Idx *extent[4];

    for (uint32_t i = 0; i < n; i++)
        extent[i] = num(s, dims[i]);
    return buffer_new(s->c, intern(s->c->strings, name), s->y->dtype, scope, n, extent);
}

static const Prim *activation(Ctx *c, const char *f, const Prim *x)
{
    if (!strcmp(f, "relu"))
        return te_at_least(c, x, prim_num(c, x->dtype, 0));
    return prim_math(c, !strcmp(f, "tanh") ? MATH_TANH : MATH_SIGMOID, x, NULL);
}

/* h before the step (after = 0) or after it. */
static const Prim *state_at(const Cell *s, int64_t after, const Idx *j)
{
    const Idx *at[4] = {s->d, idx_modc(s->c->arith, idx_addc(s->c->arith, s->step, after), 2), s->n,
                        j};

    return prim_load(s->c, s->state, at);
}

/* Column `in` of gate `gate` of this tile in xw. */
static const Prim *projected(const Cell *s, int64_t gate, const Idx *in)
{
    Arith     *A = s->c->arith;
    int64_t    width = cells[s->kind].gates * s->units;
    const Idx *tile = idx_add(A, idx_mulc(A, s->d, s->tiles), s->tile);
    const Idx *at[3] = {s->t, s->n,
                        idx_add(A, idx_mulc(A, tile, width), idx_addc(A, in, gate * s->units))};

    return te_at(s->c, s->xw, at);
}

/* What sum `u` of the tile begins with: the input's part; of gru_linear's last gate the bias. */
static const Prim *start(const Cell *s, int64_t first, int64_t gate, const Idx *in)
{
    Arith *A = s->c->arith;

    if (s->kind == CELL_GRU_LINEAR && gate == 2) {
        const Idx *at[2] = {s->d, idx_add(A, idx_mulc(A, s->tile, s->units), in)};
        return te_at(s->c, s->more, at);
    }
    return projected(s, first + gate, in);
}

/* Row n0 + r of the block at hand. */
static Cell row_of(const Cell *s, const Idx *r)
{
    Cell at = *s;

    at.n = idx_add(s->c->arith, s->n0, r);
    return at;
}

/* acc = start; over k: acc += h[k] * w[k]; sums = acc.  `w` has `gates` gates of the tile, whose
 * columns of xw begin at gate `first`; `left`, with no step, is read in place of the state. */
static const Stmt *sums_of(const Cell *s, const Tensor *w, int64_t first, int64_t gates,
                           const Buffer *left)
{
    Ctx          *c = s->c;
    Arith        *A = c->arith;
    int64_t       per = s->units / s->lanes, dims[2] = {s->rows, gates * s->units};
    const Buffer *acc = scratch(s, "acc", SCOPE_REG, 2, dims);
    bool          fma = c->target && c->target->has_fma;
    const Stmt   *part[8];
    uint32_t      n = 0;

    for (int64_t gate = 0; gate < gates; gate++) {
        const Atom *r = var(s, "r", s->rows), *u = var(s, "u", per), *l = var(s, "l", s->lanes);
        const Idx  *in = idx_add(A, idx_mulc(A, idx_atom(A, u), s->lanes), idx_atom(A, l));
        const Idx  *at[2] = {idx_atom(A, r), idx_addc(A, in, gate * s->units)};
        Cell        row = row_of(s, idx_atom(A, r));
        const Stmt *st = stmt_store(c, acc, at, start(&row, first, gate, in));

        part[n++] =
            along(s, u, per, MARK_UNROLL, along(s, r, s->rows, MARK_UNROLL, lanes_of(s, l, st)));
    }
    for (int copy = 0; copy < 2; copy++) {
        const Atom *r = var(s, "r", s->rows), *u = var(s, "u", gates * per),
                   *l = var(s, "l", s->lanes), *k = var(s, "k", s->H);
        const Idx  *in = idx_add(A, idx_mulc(A, idx_atom(A, u), s->lanes), idx_atom(A, l));
        const Idx  *at[2] = {idx_atom(A, r), in};
        const Idx  *wat[4] = {s->d, s->tile, idx_atom(A, k), in};
        Cell        row = row_of(s, idx_atom(A, r));
        const Idx  *from[3] = {s->d, row.n, idx_atom(A, k)};
        const Prim *x = left ? prim_load(c, left, from) : state_at(&row, 0, idx_atom(A, k));
        const Prim *sum = prim_load(c, acc, at), *weight = te_at(c, w, wat);
        const Prim *next =
            fma ? prim_fma(c, x, weight, sum) : prim_add(c, sum, prim_mul(c, x, weight));
        const Stmt *st = copy ? stmt_store(c, s->sums, at, sum) : stmt_store(c, acc, at, next);

        st = along(s, u, gates * per, MARK_UNROLL,
                   along(s, r, s->rows, MARK_UNROLL, lanes_of(s, l, st)));
        part[n++] = copy ? st : along(s, k, s->H, 0, st);
    }
    return stmt_alloc(c, acc, stmt_seq(c, n, part));
}

/* The sum of a gate for unit `in` of the tile, row r of the block. */
static const Prim *sum_at(const Cell *s, int64_t gate, const Idx *r, const Idx *in)
{
    const Idx *at[2] = {r, idx_addc(s->c->arith, in, gate * s->units)};

    return prim_load(s->c, s->sums, at);
}

/* h' and y[t] of unit j. */
static const Stmt *new_state(const Cell *s, const Idx *j, const Prim *h)
{
    Ctx        *c = s->c;
    const Idx  *at[4] = {s->d, idx_modc(c->arith, idx_addc(c->arith, s->step, 1), 2), s->n, j};
    const Idx  *yat[4] = {s->t, s->d, s->n, j};
    const Stmt *kids[2] = {stmt_store(c, s->state, at, h),
                           stmt_store(c, s->y, yat, prim_load(c, s->state, at))};

    return stmt_seq(c, 2, kids);
}

/* (1 - z) * h~ + z * h */
static const Prim *blend(const Cell *s, const Prim *z, const Prim *fresh, const Idx *j)
{
    Ctx        *c = s->c;
    const Prim *rest = prim_sub(c, prim_num(c, z->dtype, 1), z);

    return prim_add(c, prim_mul(c, rest, fresh), prim_mul(c, z, state_at(s, 0, j)));
}

/* What follows from the sums: unit `in` of the tile, which is unit j of the state. */
static const Stmt *finish_unit(const Cell *s, bool second, const Idx *r, const Idx *in,
                               const Idx *j)
{
    Ctx        *c = s->c;
    const Idx  *at[3] = {s->d, s->n, j};
    const Prim *a = activation(c, s->f, sum_at(s, 0, r, in));

    switch (s->kind) {
    case CELL_LSTM: {
        const Prim *o = activation(c, s->f, sum_at(s, 1, r, in)),
                   *f = activation(c, s->f, sum_at(s, 2, r, in)),
                   *g = activation(c, s->g, sum_at(s, 3, r, in));
        const Prim *cell =
            prim_add(c, prim_mul(c, f, prim_load(c, s->cell, at)), prim_mul(c, a, g));
        const Prim *h = prim_mul(c, o, activation(c, s->g, prim_load(c, s->cell, at)));
        const Stmt *kids[2] = {stmt_store(c, s->cell, at, cell), new_state(s, j, h)};
        return stmt_seq(c, 2, kids);
    }
    case CELL_GRU: {
        if (second)
            return new_state(
                s, j,
                blend(s, prim_load(c, s->z, at), activation(c, s->g, sum_at(s, 0, r, in)), j));
        const Prim *reset = activation(c, s->f, sum_at(s, 1, r, in));
        const Stmt *kids[2] = {stmt_store(c, s->z, at, a),
                               stmt_store(c, s->rh, at, prim_mul(c, reset, state_at(s, 0, j)))};
        return stmt_seq(c, 2, kids);
    }
    case CELL_GRU_LINEAR: {
        const Prim *reset = activation(c, s->f, sum_at(s, 1, r, in));
        const Prim *x = prim_add(c, projected(s, 2, in), prim_mul(c, reset, sum_at(s, 2, r, in)));
        return new_state(s, j, blend(s, a, activation(c, s->g, x), j));
    }
    case CELL_RNN:
    case CELL_COUNT: break;
    }
    return new_state(s, j, a);
}

/* All units of the tile, for the rows of the block: vectors, then single units where the last
 * vector of the state is not full. */
static const Stmt *finish_tile(const Cell *s, bool second)
{
    Ctx        *c = s->c;
    Arith      *A = c->arith;
    const Atom *r = var(s, "r", s->rows), *v = var(s, "v", s->units / s->lanes);
    const Atom *l = var(s, "l", s->lanes);
    const Idx  *in0 = idx_mulc(A, idx_atom(A, v), s->lanes), *in = idx_add(A, in0, idx_atom(A, l));
    const Idx  *tile = idx_mulc(A, s->tile, s->units), *j0 = idx_add(A, tile, in0);
    Cell        row = row_of(s, idx_atom(A, r));
    const Stmt *st =
        lanes_of(s, l, finish_unit(&row, second, idx_atom(A, r), in, idx_add(A, tile, in)));

    if (s->tiles * s->units != s->H) {
        const Atom *one = var(s, "j", s->lanes);
        const Idx  *at = idx_add(A, in0, idx_atom(A, one)), *j = idx_add(A, tile, at);
        const Stmt *single = stmt_if(c, te_between(c, num(s, 0), j, num(s, s->H)),
                                     finish_unit(&row, second, idx_atom(A, r), at, j), NULL);
        single = s->H % s->lanes ? along(s, one, s->lanes, 0, single) : NULL;
        st = stmt_if(c, te_between(c, num(s, 0), idx_addc(A, j0, s->lanes - 1), num(s, s->H)), st,
                     single);
    }
    return along(s, r, s->rows, 0, along(s, v, s->units / s->lanes, 0, st));
}

/* All tiles: sums, then what follows from them. */
static const Stmt *all_tiles(const Cell *of, bool second, Division by)
{
    Ctx        *c = of->c;
    Arith      *A = c->arith;
    Cell        s = *of;
    int64_t     sums = second ? 1 : cells[s.kind].sums, dims[2] = {s.rows, sums * s.units};
    const Atom *tile = var(&s, "tile", s.tiles), *nb = var(&s, "nb", s.N / s.rows);
    const Stmt *kids[2];

    s.tile = idx_atom(A, tile);
    s.n0 = idx_mulc(A, idx_atom(A, nb), s.rows);
    s.sums = scratch(&s, "sums", SCOPE_PRIVATE, 2, dims);
    kids[0] = sums_of(&s, second ? s.more : s.r, second ? 2 : 0, sums, second ? s.rh : NULL);
    kids[1] = finish_tile(&s, second);
    return along(&s, tile, s.tiles, by == BY_UNITS ? MARK_PARALLEL : 0,
                 along(&s, nb, s.N / s.rows, 0, stmt_alloc(c, s.sums, stmt_seq(c, 2, kids))));
}

static const Stmt *one_step(const Cell *s, Division by)
{
    const Stmt *kids[2] = {all_tiles(s, false, by), NULL};

    if (s->kind != CELL_GRU)
        return kids[0];
    kids[1] = all_tiles(s, true, by);
    return stmt_seq(s->c, 2, kids);
}

/* Before the first step h and c are given, after the last h is a result: for all rows and units of
 * direction s->d. */
static const Stmt *edge(const Cell *of, bool first)
{
    Ctx        *c = of->c;
    Arith      *A = c->arith;
    Cell        s = *of;
    int64_t     lanes = s.H % s.lanes ? 1 : s.lanes;
    const Atom *n = var(&s, "n", s.N), *v = var(&s, "v", s.H / lanes), *l = var(&s, "l", lanes);
    const Idx  *j = idx_add(A, idx_mulc(A, idx_atom(A, v), lanes), idx_atom(A, l));
    const Idx  *at[3] = {s.d, idx_atom(A, n), j};
    const Idx  *sat[4] = {s.d, num(&s, 0), idx_atom(A, n), j};
    const Stmt *kids[2] = {stmt_store(c, s.state, sat, te_at(c, s.h0, at)), NULL};
    uint32_t    count = 1;

    s.n = idx_atom(A, n);
    s.step = num(&s, s.T);
    if (!first)
        kids[0] = stmt_store(c, s.h, at, state_at(&s, 0, j));
    else if (s.kind == CELL_LSTM)
        kids[count++] = stmt_store(c, s.cell, at, te_at(c, s.more, at));
    return along(&s, n, s.N, 0,
                 along(&s, v, s.H / lanes, 0,
                       along(&s, l, lanes, lanes > 1 ? MARK_VECTOR : 0, stmt_seq(c, count, kids))));
}

/* Step `i` of D * T, one direction after the other: which direction, which step of it, and where
 * it is stored.  The second direction goes backwards: min(i, 2T - 1 - i). */
static void place_step(Cell *s, const Idx *i)
{
    Arith *A = s->c->arith;

    s->d = idx_divc(A, i, s->T);
    s->step = idx_modc(A, i, s->T);
    if (!strcmp(s->direction, "forward"))
        s->t = s->step;
    else if (!strcmp(s->direction, "reverse"))
        s->t = idx_sub(A, num(s, s->T - 1), s->step);
    else
        s->t = idx_min(A, i, idx_sub(A, num(s, 2 * s->T - 1), i));
}

static const Stmt *each_direction(const Cell *of, bool first)
{
    Cell        s = *of;
    const Atom *d = var(&s, "d", s.D);

    s.d = idx_atom(s.c->arith, d);
    return along(&s, d, s.D, 0, edge(&s, first));
}

/* One direction after the other. */
static const Stmt *in_turn(const Cell *of, Division by)
{
    Cell        s = *of;
    const Atom *i = var(&s, "step", s.D * s.T);

    place_step(&s, idx_atom(s.c->arith, i));
    const Stmt *kids[3] = {each_direction(of, true), along(&s, i, s.D * s.T, 0, one_step(&s, by)),
                           each_direction(of, false)};
    return stmt_seq(s.c, 3, kids);
}

/* Each direction in a thread of its own. */
static const Stmt *side_by_side(const Cell *of)
{
    Arith      *A = of->c->arith;
    Cell        s = *of;
    const Atom *d = var(&s, "d", s.D), *i = var(&s, "step", s.T);
    const Stmt *kids[3];

    place_step(&s, idx_add(A, idx_mulc(A, idx_atom(A, d), s.T), idx_atom(A, i)));
    s.d = idx_atom(A, d);
    kids[0] = edge(&s, true);
    kids[1] = along(&s, i, s.T, 0, one_step(&s, SERIAL));
    kids[2] = edge(&s, false);
    return along(&s, d, s.D, MARK_PARALLEL, stmt_seq(s.c, 3, kids));
}

int64_t recurrent_rows(const Ctx *c, int64_t n, int64_t vectors)
{
    int64_t regs = c->target && c->target->vector_regs ? c->target->vector_regs : 16;
    int64_t rows = (regs - 2) / vectors < n ? (regs - 2) / vectors : n;

    while (rows > 1 && n % rows)
        rows--;
    return rows < 1 ? 1 : rows;
}

static int64_t lanes_for(const Ctx *c, DType t, int64_t units)
{
    int64_t lanes = (c->target ? c->target->vector_bytes : 32) / dtype_bytes(t);

    while (lanes > 1 && units % lanes)
        lanes /= 2;
    return lanes < 1 ? 1 : lanes;
}

bool te_recurrent(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const RecurrentAttrs    *a = call->attrs;
    static const char *const names[] = {"y", "h", "c"};
    Cell                     s = {.c = c, .f = a->f, .g = a->g, .direction = a->direction};

    Division by;

    if (!cell_kind(c, NO_LOC, a->cell, &s.kind) || !division_of(c, NO_LOC, a->algorithm, &by))
        return false;
    uint32_t nin = cells[s.kind].operands, nout = cells[s.kind].results;
    s.xw = in[0], s.r = in[1], s.h0 = in[2], s.more = nin > 3 ? in[3] : NULL;
    s.T = dim_of(call->in[0], 0);
    s.D = dim_of(call->in[2], 0);
    s.N = dim_of(call->in[2], 1);
    s.H = dim_of(call->in[2], 2);
    s.units = a->units;
    s.tiles = (s.H + s.units - 1) / s.units;
    s.lanes = lanes_for(c, call->in[0]->dtype, s.units);
    for (uint32_t i = 0; i < nout; i++)
        out[i] = te_extern_out(c, names[i], call->out[i]);
    s.y = out[0]->buffer;
    s.h = out[1]->buffer;
    s.cell = nout > 2 ? out[2]->buffer : NULL;
    s.rows = recurrent_rows(c, s.N, cells[s.kind].sums * s.units / s.lanes);
    int64_t dims[4] = {s.D, 2, s.N, s.H}, each[3] = {s.D, s.N, s.H};
    s.state = scratch(&s, "state", SCOPE_PRIVATE, 4, dims);
    s.z = scratch(&s, "z", SCOPE_PRIVATE, 3, each);
    s.rh = scratch(&s, "rh", SCOPE_PRIVATE, 3, each);

    const Stmt *body = by == BY_DIRECTION ? side_by_side(&s) : in_turn(&s, by);
    if (s.kind == CELL_GRU)
        body = stmt_alloc(c, s.z, stmt_alloc(c, s.rh, body));
    te_extern(c, nin, in, nout, out, stmt_alloc(c, s.state, body));
    return true;
}
