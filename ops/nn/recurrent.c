/* nn.recurrent: the sequential part of an LSTM, a GRU or an RNN, for all directions.
 *
 *     %5 = nn.recurrent(%xw, %r, %h0, %c0, cell="lstm", direction="bidirectional");
 *
 * %xw [T, N, D * gates * H] holds what does not depend on the step before (rnn.c); what does is a
 * scan over the steps:
 *
 *     cell         gates     in r   further operand     a step
 *     lstm         i o f c   all    c0 [D, N, H]        c = f*c + i*g(c~); h = o*g(c)
 *     gru          z r h     z r    rc [D, H, H]        h~ = g(x + (r*h) rc); h = (1-z)*h~ + z*h
 *     gru_linear   z r h     all    rb [D, H]           h~ = g(x + r*(h rc + rb))
 *     rnn          one       all                        h = f(x + h r)
 *
 * r is [D, H, gates, H]: from units of the state to gates of units.  Its products are definitions
 * of their own, which schedules/cpu/recurrent.c cuts into tiles. */
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
    int64_t               h, d;

    if (!rel_tensors(c, loc, in, nin) || !cell_kind(c, loc, a->cell, &k) ||
        !known_activation(c, loc, a->f) || !known_activation(c, loc, a->g) ||
        !rel_direction(c, loc, a->direction, &d))
        return NULL;
    if (nin != cells[k].operands)
        return error_at(c, E_TYPE, loc, "cell '%s' has %u operands, not %u", a->cell,
                        cells[k].operands, nin);
    if (!rel_rank(c, loc, in[0], 3, "projected data") || !rel_rank(c, loc, in[2], 3, "state") ||
        !rel_dim(c, loc, in[2], 2, &h))
        return NULL;
    DType dt = in[0]->dtype;
    if (!dtype_is_float(dt) || h < 1 || h > INT32_MAX / 8)
        return error_at(c, E_TYPE, loc, "a recurrent cell of %s with %lld units", dtype_text(c, dt),
                        (long long)h);
    const Idx  *xw[3] = {in[0]->dims[0], in[0]->dims[1],
                         idx_const(c->arith, d * cells[k].gates * h)};
    const Idx  *y[4] = {xw[0], idx_const(c->arith, d), xw[1], in[2]->dims[2]};
    const Type *state = type_tensor(c, dt, 3, y + 1);
    const Type *want[4] = {type_tensor(c, dt, 3, xw),
                           type_tensor_i64(c, dt, 4, (int64_t[]){d, h, cells[k].sums, h}), state,
                           k == CELL_LSTM  ? state
                           : k == CELL_GRU ? type_tensor_i64(c, dt, 3, (int64_t[]){d, h, h})
                                           : type_tensor_i64(c, dt, 2, (int64_t[]){d, h})};

    for (uint32_t i = 0; i < nin; i++)
        if (want[i] != in[i])
            return error_at(c, E_TYPE, loc, "operand %u must be %s, not %s", i,
                            type_text(c, want[i]), type_text(c, in[i]));
    const Type *fields[3] = {rel_tensor(c, loc, dt, 4, y), state, state};

    return fields[0] ? type_tuple(c, cells[k].results, fields) : NULL;
}

/* ---- compute ------------------------------------------------------------------------------------- */

typedef struct {
    Ctx          *c;
    Scan         *k;
    CellKind      kind;
    const char   *f, *g;
    const Tensor *xw, *r, *more;
    const Tensor *state;
    int64_t       H;
    const Idx    *step, *N; /* the step as it is stored; rows of a batch */
} Cell;

/* A tensor of the scan and its extents: of a direction, a step (`more` cells beside those of the
 * rounds), a row, and unit; gates before the units where there are any. */
static const Tensor *of_steps(const Cell *s, const char *name, int64_t more, int64_t gates)
{
    Arith     *A = s->c->arith;
    const Idx *extent[5] = {s->k->outer.extent[0], idx_addc(A, s->k->rounds, more), s->N};
    uint32_t   n = 3;

    if (gates)
        extent[n++] = idx_const(A, gates);
    extent[n++] = idx_const(A, s->H);
    return te_scan_tensor(s->c, s->k, name, s->xw->buffer->dtype, n, extent);
}

/* Axes of a definition: a row of the batch, a gate if there are several, a unit. */
static Axes own_axes(const Cell *s, int64_t gates)
{
    const Idx  *extent[3] = {s->N, idx_const(s->c->arith, gates), NULL};
    const char *names[3] = {"n", "g", "j"};

    if (!gates)
        names[1] = "j";
    extent[gates ? 2 : 1] = idx_const(s->c->arith, s->H);
    return te_axes(s->c, gates ? 3 : 2, extent, names);
}

/* Cell (n, j) of a tensor of steps, `after` rounds behind this one; a gate of it if gate >= 0. */
static const Prim *at_step(const Cell *s, const Tensor *t, int64_t after, const Idx *n,
                           int64_t gate, const Idx *j)
{
    Arith     *A = s->c->arith;
    const Idx *at[5] = {s->k->outer.at[0], idx_addc(A, s->k->t, after), n};

    at[3] = gate < 0 ? j : idx_const(A, gate);
    at[4] = j;
    return te_at(s->c, t, at);
}

static const Prim *activation(Ctx *c, const char *f, const Prim *x)
{
    if (!strcmp(f, "relu"))
        return te_at_least(c, x, prim_num(c, x->dtype, 0));
    return prim_math(c, !strcmp(f, "tanh") ? MATH_TANH : MATH_SIGMOID, x, NULL);
}

/* What the input gives to a gate. */
static const Prim *projected(const Cell *s, const Idx *gate, const Idx *n, const Idx *j)
{
    Arith     *A = s->c->arith;
    int64_t    width = cells[s->kind].gates * s->H;
    const Idx *at[3] = {s->step, n, idx_add(A, idx_mulc(A, gate, s->H), j)};

    at[2] = idx_add(A, at[2], idx_mulc(A, s->k->outer.at[0], width));
    return te_at(s->c, s->xw, at);
}

/* sum[d,t,n,g,j] = sum[k] %h[d,t,n,k] * w[d,k,g,j]; no g where gates is 0, gate 1 of an h that has
 * gates. */
static const Tensor *product(const Cell *s, const char *name, const Tensor *h, const Tensor *w,
                             int64_t gates)
{
    Ctx          *c = s->c;
    Axes          own = own_axes(s, gates);
    Axes          k = te_raxes(c, 1, &s->H, (const char *[]){"k"});
    const Idx    *at[5] = {s->k->outer.at[0], s->k->t, own.at[0], own.at[1], own.at[own.n - 1]};
    const Idx    *from[5] = {s->k->outer.at[0], s->k->t, own.at[0], k.at[0], k.at[0]};
    const Idx    *wat[4] = {s->k->outer.at[0], k.at[0], own.at[1], own.at[own.n - 1]};
    const Tensor *sum = of_steps(s, name, 0, gates);

    if (!gates && w->buffer->ndim == 4)
        wat[2] = idx_const(c->arith, 0);
    if (h->buffer->ndim == 5)
        from[3] = idx_const(c->arith, 1);
    te_scan_reduce(c, s->k, SCAN_EACH, sum, at, own, COMB_SUM, k,
                   prim_mul(c, te_at(c, h, from), te_at(c, w, wat)));
    return sum;
}

/* Gates from `first` on before their activations: a product, and what is there before the step,
 * which the sums can start from: the input's part, or [D, H] `last` for the last of them. */
static const Tensor *gates_of(const Cell *s, const char *name, const Tensor *sum, int64_t first,
                              int64_t gates, const Tensor *last)
{
    Ctx        *c = s->c;
    Arith      *A = c->arith;
    Axes        own = own_axes(s, gates);
    const Idx  *d = s->k->outer.at[0], *j = own.at[own.n - 1];
    const Idx  *at[5] = {d, s->k->t, own.at[0], own.at[1], j};
    const Prim *x =
        projected(s, idx_addc(A, gates ? own.at[1] : idx_const(A, 0), first), own.at[0], j);
    const Tensor *t = of_steps(s, name, 0, gates);

    if (last)
        x = prim_select(c, te_between(c, idx_const(A, 0), own.at[1], idx_const(A, gates - 1)), x,
                        te_at(c, last, (const Idx *[]){d, j}));
    te_scan_def(c, s->k, SCAN_EACH, t, at, own, prim_add(c, te_at(c, sum, at), x));
    return t;
}

/* A definition for each row and unit, `after` steps behind. */
static void define_units(const Cell *s, const Tensor *t, int64_t after, const Axes *own,
                         const Prim *v)
{
    const Idx *at[4] = {s->k->outer.at[0], idx_addc(s->c->arith, s->k->t, after), own->at[0],
                        own->at[1]};

    te_scan_def(s->c, s->k, SCAN_EACH, t, at, *own, v);
}

/* (1 - z) * h~ + z * h */
static const Prim *blend(const Cell *s, const Prim *z, const Prim *fresh, const Axes *own)
{
    Ctx        *c = s->c;
    const Prim *rest = prim_sub(c, prim_num(c, z->dtype, 1), z);

    return prim_add(c, prim_mul(c, rest, fresh),
                    prim_mul(c, z, at_step(s, s->state, 0, own->at[0], -1, own->at[1])));
}

/* Gate `gate` of those that gates_of gave, activated; -1 of those that have none. */
static const Prim *open_gate(const Cell *s, const char *f, const Tensor *gates, int64_t gate,
                             const Axes *own)
{
    return activation(s->c, f, at_step(s, gates, 0, own->at[0], gate, own->at[1]));
}

static void step_lstm(const Cell *s, const Tensor *cell)
{
    Ctx          *c = s->c;
    const Tensor *gate = gates_of(s, "gate", product(s, "sum", s->state, s->r, 4), 0, 4, NULL);
    Axes          own = own_axes(s, 0), out = own_axes(s, 0);
    const Prim   *i = open_gate(s, s->f, gate, 0, &own), *f = open_gate(s, s->f, gate, 2, &own);
    const Prim   *fresh = open_gate(s, s->g, gate, 3, &own);
    const Prim   *was = at_step(s, cell, 0, own.at[0], -1, own.at[1]);

    define_units(s, cell, 1, &own, prim_add(c, prim_mul(c, f, was), prim_mul(c, i, fresh)));
    const Prim *now = activation(c, s->g, at_step(s, cell, 1, out.at[0], -1, out.at[1]));
    define_units(s, s->state, 1, &out, prim_mul(c, open_gate(s, s->f, gate, 1, &out), now));
}

/* r*h of all units comes before h~ of any: z and r*h as two gates of one tensor, then the rest. */
static void step_gru(const Cell *s)
{
    Ctx          *c = s->c;
    Arith        *A = c->arith;
    const Tensor *gate = gates_of(s, "gate", product(s, "sum", s->state, s->r, 2), 0, 2, NULL);
    const Tensor *reset = of_steps(s, "reset", 0, 2);
    Axes          two = own_axes(s, 2), out = own_axes(s, 0);
    const Idx    *at[5] = {s->k->outer.at[0], s->k->t, two.at[0], two.at[1], two.at[2]};
    const Prim   *z = activation(c, s->f, te_at(c, gate, at));
    const Prim   *rh = prim_mul(c, z, at_step(s, s->state, 0, at[2], -1, at[4]));

    te_scan_def(c, s->k, SCAN_EACH, reset, at, two,
                prim_select(c, te_between(c, idx_const(A, 0), at[3], idx_const(A, 1)), z, rh));
    const Tensor *fresh = product(s, "fresh", reset, s->more, 0);

    fresh = gates_of(s, "candidate", fresh, 2, 0, NULL);
    define_units(s, s->state, 1, &out,
                 blend(s, at_step(s, reset, 0, out.at[0], 0, out.at[1]),
                       open_gate(s, s->g, fresh, -1, &out), &out));
}

static void step_gru_linear(const Cell *s)
{
    Ctx          *c = s->c;
    const Tensor *gate = gates_of(s, "gate", product(s, "sum", s->state, s->r, 3), 0, 3, s->more);
    Axes          own = own_axes(s, 0);
    const Prim   *z = open_gate(s, s->f, gate, 0, &own), *r = open_gate(s, s->f, gate, 1, &own);
    const Prim   *fresh = prim_mul(c, r, at_step(s, gate, 0, own.at[0], 2, own.at[1]));

    fresh = prim_add(c, projected(s, idx_const(c->arith, 2), own.at[0], own.at[1]), fresh);
    define_units(s, s->state, 1, &own, blend(s, z, activation(c, s->g, fresh), &own));
}

static void step_rnn(const Cell *s)
{
    const Tensor *gate = gates_of(s, "gate", product(s, "sum", s->state, s->r, 0), 0, 0, NULL);
    Axes          own = own_axes(s, 0);

    define_units(s, s->state, 1, &own, open_gate(s, s->f, gate, -1, &own));
}

/* What is carried begins with an operand, [D, N, H]. */
static const Tensor *carried(const Cell *s, const char *name, const Tensor *from)
{
    const Tensor *t = of_steps(s, name, 1, 0);
    Axes          own = own_axes(s, 0);
    const Idx    *in[3] = {s->k->outer.at[0], own.at[0], own.at[1]};
    const Idx    *at[4] = {in[0], idx_const(s->c->arith, 0), in[1], in[2]};

    te_scan_def(s->c, s->k, SCAN_START, t, at, own, te_at(s->c, from, in));
    return t;
}

/* ... and ends as a result. */
static const Tensor *last_of(const Cell *s, const char *name, const Tensor *t)
{
    Axes          own = own_axes(s, 0);
    const Idx    *at[3] = {s->k->outer.at[0], own.at[0], own.at[1]};
    const Idx    *from[4] = {at[0], s->k->rounds, at[1], at[2]};
    const Idx    *extent[3] = {s->k->outer.extent[0], s->N, idx_const(s->c->arith, s->H)};
    const Tensor *out = te_scan_tensor(s->c, s->k, name, t->buffer->dtype, 3, extent);

    te_scan_def(s->c, s->k, SCAN_END, out, at, own, te_at(s->c, t, from));
    return out;
}

/* Where the step is stored: the second direction goes backwards, min(i, 2T - 1 - i) for step i of
 * both, one after the other. */
static const Idx *stored_step(Arith *A, const Scan *k, const char *direction)
{
    const Idx *T = k->rounds, *last = idx_addc(A, T, -1);

    if (!strcmp(direction, "forward"))
        return k->t;
    if (!strcmp(direction, "reverse"))
        return idx_sub(A, last, k->t);
    const Idx *i = idx_add(A, idx_mul(A, k->outer.at[0], T), k->t);
    return idx_min(A, i, idx_sub(A, idx_add(A, T, last), i));
}

bool te_recurrent(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const RecurrentAttrs *a = call->attrs;
    Cell                  s = {.c = c, .f = a->f, .g = a->g, .xw = in[0], .r = in[1]};
    const Tensor         *cell = NULL;

    if (!cell_kind(c, NO_LOC, a->cell, &s.kind))
        return false;
    s.more = cells[s.kind].operands > 3 ? in[3] : NULL;
    s.N = call->in[2]->dims[1];
    s.H = dim_of(call->in[2], 2);
    s.k = te_scan(c, te_axes(c, 1, call->in[2]->dims, (const char *[]){"d"}), "t",
                  call->in[0]->dims[0]);
    s.step = stored_step(c->arith, s.k, a->direction);
    s.state = carried(&s, "state", in[2]);
    if (s.kind == CELL_LSTM)
        cell = carried(&s, "cell", s.more);
    switch (s.kind) {
    case CELL_LSTM: step_lstm(&s, cell); break;
    case CELL_GRU: step_gru(&s); break;
    case CELL_GRU_LINEAR: step_gru_linear(&s); break;
    case CELL_RNN: step_rnn(&s); break;
    case CELL_COUNT: break;
    }
    Axes       own = own_axes(&s, 0);
    const Idx *at[4] = {s.step, s.k->outer.at[0], own.at[0], own.at[1]};

    out[0] = te_scan_tensor(c, s.k, "y", call->out[0]->dtype, 4, call->out[0]->dims);
    te_scan_def(c, s.k, SCAN_EACH, out[0], at, own,
                at_step(&s, s.state, 1, own.at[0], -1, own.at[1]));
    out[1] = last_of(&s, "h", s.state);
    if (cell)
        out[2] = last_of(&s, "c", cell);
    return te_scan_done(c, s.k);
}
