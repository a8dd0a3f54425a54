/* nn.lstm, as ONNX has it (gates in the order i, o, f, c; sigmoid and tanh; no peepholes).
 *
 *     %6 = nn.lstm(%x, %w, %r, %b, %h0, %c0, direction="bidirectional");        // (y, h, c)
 *
 * What does not depend on the step before is one matrix product for all steps; only the recurrent
 * part is sequential.  For each direction d:
 *
 *     %xw = x * w[d]' + (b[d][:4H] + b[d][4H:])                    [T, N, 4H]: nn.dense
 *     %3  = nn.lstm_recurrent(%xw, packed r[d], h0[d], c0[d])      (y, h, c)
 *
 * nn.lstm_recurrent is a statement of TIR.  The recurrent weights come packed, [tiles, H, tile]
 * with tiles * tile = 4H: as many gates as registers hold at once, and for these all weights in the
 * order in which they are read.  A step is bound by that reading. */

#include "ops/common.h"

#include <string.h>

enum { MAX_TILE = 128 };

static int64_t vector_lanes(const Ctx *c, DType t)
{
    int64_t lanes = (c->target ? c->target->vector_bytes : 32) / dtype_bytes(t);

    return lanes < 1 ? 1 : lanes > MAX_TILE / 8 ? MAX_TILE / 8 : lanes;
}

static bool directions(Ctx *c, Loc loc, const LstmAttrs *a, int64_t *n)
{
    *n = !strcmp(a->direction, "bidirectional") ? 2 : 1;
    if (*n == 2 || !strcmp(a->direction, "forward") || !strcmp(a->direction, "reverse"))
        return true;
    return error_at(c, E_TYPE, loc, "direction '%s' is not forward, reverse or bidirectional",
                    a->direction);
}

const Type *rel_lstm(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    static const char *const what[] = {"data", "weight",      "recurrent weight",
                                       "bias", "first state", "first cell"};
    static const uint32_t    rank[] = {3, 3, 3, 2, 3, 3};
    const LstmAttrs         *a = attrs;
    int64_t                  d, h, n, units, nd[3];

    if (!rel_tensors(c, loc, in, nin) || !directions(c, loc, a, &d))
        return NULL;
    for (uint32_t i = 0; i < nin; i++)
        if (!rel_rank(c, loc, in[i], rank[i], what[i]) || !rel_same_dtype(c, loc, in[0], in[i]))
            return NULL;
    if (!dtype_is_float(in[0]->dtype))
        return error_at(c, E_TYPE, loc, "an LSTM of %s", dtype_text(c, in[0]->dtype));
    for (uint32_t i = 0; i < 3; i++)
        if (!rel_dim(c, loc, in[0], i, &nd[i]))
            return NULL;
    if (!rel_dim(c, loc, in[2], 2, &h) || !rel_dim(c, loc, in[0], 1, &n))
        return NULL;
    units = a->hidden_size ? a->hidden_size : h;
    if (h != units || h < 1 || h > INT32_MAX / 8)
        return error_at(c, E_TYPE, loc, "hidden_size is %lld, the recurrent weight is %s",
                        (long long)units, type_text(c, in[2]));
    const Type *want[6] = {in[0],
                           type_tensor_i64(c, in[0]->dtype, 3, (int64_t[]){d, 4 * h, nd[2]}),
                           type_tensor_i64(c, in[0]->dtype, 3, (int64_t[]){d, 4 * h, h}),
                           type_tensor_i64(c, in[0]->dtype, 2, (int64_t[]){d, 8 * h}),
                           type_tensor_i64(c, in[0]->dtype, 3, (int64_t[]){d, n, h}),
                           type_tensor_i64(c, in[0]->dtype, 3, (int64_t[]){d, n, h})};

    for (uint32_t i = 1; i < nin; i++)
        if (want[i] != in[i])
            return error_at(c, E_TYPE, loc, "the %s must be %s, not %s", what[i],
                            type_text(c, want[i]), type_text(c, in[i]));
    const Idx  *y[4] = {in[0]->dims[0], idx_const(c->arith, d), in[0]->dims[1],
                        idx_const(c->arith, h)};
    const Type *fields[3] = {rel_tensor(c, loc, in[0]->dtype, 4, y), in[4], in[5]};

    return fields[0] ? type_tuple(c, 3, fields) : NULL;
}

/* Part d of the first dimension, without it. */
static const Expr *direction(Ctx *c, const Expr *x, int d, Loc loc)
{
    StridedSliceAttrs *s = NEW_ATTRS(c, StridedSliceAttrs);
    SqueezeAttrs      *q = NEW_ATTRS(c, SqueezeAttrs);

    s->begin = ints_of(c, 1, d);
    s->end = ints_of(c, 1, d + 1);
    q->axis = ints_of(c, 1, 0);
    return call1(c, "squeeze", call1(c, "strided_slice", x, s, loc), q, loc);
}

static const Expr *bias_sum(Ctx *c, const Expr *b, int64_t h, Loc loc)
{
    SplitAttrs *s = NEW_ATTRS(c, SplitAttrs);

    (void)h;
    s->sections = 2;
    const Expr *halves = call1(c, "split", b, s, loc);

    return halves ? call2(c, "add", expr_proj(c, halves, 0, loc), expr_proj(c, halves, 1, loc),
                          NULL, loc)
                  : NULL;
}

/* r [4H, H] as [tiles, H, tile]; the tile is a power of two, at most eight vectors. */
static const Expr *packed(Ctx *c, const Expr *r, int64_t h, Loc loc)
{
    int64_t         tile = 8 * vector_lanes(c, r->type->dtype);
    TransposeAttrs *a = NEW_ATTRS(c, TransposeAttrs);

    while (4 * h % tile)
        tile /= 2;
    a->axes = ints_of(c, 3, 0, 2, 1);
    return call1(c, "transpose", call_reshape(c, r, 3, (int64_t[]){4 * h / tile, tile, h}, loc), a,
                 loc);
}

/* One direction: (y [T, N, H], h [N, H], c [N, H]). */
static const Expr *one_direction(Ctx *c, const Expr *e, int d, bool reverse)
{
    const Expr *x = call_arg(e, 0), *b = direction(c, call_arg(e, 3), d, e->loc);
    int64_t     t = dim_of(x->type, 0), n = dim_of(x->type, 1), in = dim_of(x->type, 2);
    int64_t     h = dim_of(call_arg(e, 2)->type, 2);
    const Expr *w = direction(c, call_arg(e, 1), d, e->loc);
    const Expr *r = direction(c, call_arg(e, 2), d, e->loc);
    const Expr *rows = call_reshape(c, x, 2, (int64_t[]){t * n, in}, e->loc);
    const Expr *xw = call2(c, "nn.dense", rows, w, NULL, e->loc);

    xw = call2(c, "nn.bias_add", xw, b ? bias_sum(c, b, h, e->loc) : NULL, NULL, e->loc);
    if (!xw || !r)
        return NULL;
    const Expr         *args[4] = {call_reshape(c, xw, 3, (int64_t[]){t, n, 4 * h}, e->loc),
                                   packed(c, r, h, e->loc), direction(c, call_arg(e, 4), d, e->loc),
                                   direction(c, call_arg(e, 5), d, e->loc)};
    LstmRecurrentAttrs *a = NEW_ATTRS(c, LstmRecurrentAttrs);

    for (int i = 0; i < 4; i++)
        if (!args[i])
            return NULL;
    a->reverse = reverse;
    return expr_call_name(c, "nn.lstm_recurrent", 4, args, a, e->loc);
}

const Expr *expand_lstm(Ctx *c, const Expr *e)
{
    const LstmAttrs *a = ATTRS(LstmAttrs, e);
    const Expr      *parts[2], *fields[3];
    int64_t          nd;

    if (!directions(c, e->loc, a, &nd))
        return NULL;
    for (int d = 0; d < nd; d++)
        if (!(parts[d] = one_direction(c, e, d, d == 1 || !strcmp(a->direction, "reverse"))))
            return NULL;
    for (uint32_t i = 0; i < 3; i++) {
        const Expr *of[2];
        StackAttrs *s = NEW_ATTRS(c, StackAttrs);

        for (int d = 0; d < nd; d++)
            of[d] = expr_proj(c, parts[d], i, e->loc);
        s->axis = i == 0 ? 1 : 0;
        fields[i] = call1(c, "stack", expr_tuple(c, (uint32_t)nd, of, e->loc), s, e->loc);
        if (!fields[i])
            return NULL;
    }
    return expr_tuple(c, 3, fields, e->loc);
}

/* ---- nn.lstm_recurrent --------------------------------------------------------------------------- */

const Type *rel_lstm_recurrent(Ctx *c, Loc loc, const void *attrs, const Type *const *in,
                               uint32_t nin)
{
    int64_t t, n, h, tile;

    (void)attrs;
    if (!rel_tensors(c, loc, in, nin) || !rel_rank(c, loc, in[0], 3, "projected data") ||
        !rel_rank(c, loc, in[1], 3, "recurrent weight") || !rel_dim(c, loc, in[0], 0, &t) ||
        !rel_dim(c, loc, in[0], 1, &n) || !rel_dim(c, loc, in[1], 1, &h) ||
        !rel_dim(c, loc, in[1], 2, &tile))
        return NULL;
    if (h < 1 || h > INT32_MAX / 8 || tile < 1 || tile > MAX_TILE || 4 * h % tile)
        return error_at(c, E_TYPE, loc, "recurrent weights packed as %s", type_text(c, in[1]));
    DType       dt = in[0]->dtype;
    const Type *want[4] = {type_tensor_i64(c, dt, 3, (int64_t[]){t, n, 4 * h}),
                           type_tensor_i64(c, dt, 3, (int64_t[]){4 * h / tile, h, tile}),
                           type_tensor_i64(c, dt, 2, (int64_t[]){n, h}),
                           type_tensor_i64(c, dt, 2, (int64_t[]){n, h})};

    for (uint32_t i = 0; i < 4; i++)
        if (want[i] != in[i] || !dtype_is_float(dt))
            return error_at(c, E_TYPE, loc, "operand %u must be %s, not %s", i,
                            type_text(c, want[i]), type_text(c, in[i]));
    const Type *fields[3] = {type_tensor_i64(c, dt, 3, (int64_t[]){t, n, h}), in[2], in[3]};

    return type_tuple(c, 3, fields);
}

typedef struct {
    Ctx          *c;
    const Tensor *xw, *r, *h0, *c0;
    const Buffer *y, *h, *cell, *gates;
    int64_t       T, N, H, lanes, tile;
    const Idx    *t, *n; /* the step as stored, the row */
} Cell;

/* for %i < n of `body`, left out if it is one round. */
static const Stmt *along(const Cell *s, const Atom *var, int64_t n, uint32_t marks,
                         const Stmt *body)
{
    return loop_stmt(s->c, var, idx_const(s->c->arith, n), marks, body);
}

static const Atom *var(const Cell *s, const char *name, int64_t n)
{
    return te_loop_var(s->c, name, idx_const(s->c->arith, n));
}

/* The gates of tile g of row n: their sums stay in registers while k runs over h. */
static const Stmt *gate_tile(const Cell *s, const Idx *g)
{
    Ctx          *c = s->c;
    Arith        *A = c->arith;
    const Idx    *size = idx_const(A, s->tile);
    const Buffer *acc =
        buffer_new(c, intern(c->strings, "acc"), s->gates->dtype, SCOPE_REG, 1, &size);
    int64_t     lanes = s->lanes, groups = s->tile / lanes;
    const Stmt *part[3];

    for (int i = 0; i < 3; i++) {
        const Atom *u = var(s, "u", groups), *l = var(s, "l", lanes), *k = var(s, "k", s->H);
        const Idx  *in = idx_add(A, idx_mulc(A, idx_atom(A, u), lanes), idx_atom(A, l));
        const Idx  *gate = idx_add(A, idx_mulc(A, g, s->tile), in);
        const Idx  *row[2] = {s->n, idx_atom(A, k)}, *wat[3] = {g, idx_atom(A, k), in};
        const Idx  *xat[3] = {s->t, s->n, gate};
        const Stmt *st;

        if (i == 0) {
            st = stmt_store(c, acc, &in, te_at(c, s->xw, xat));
        } else if (i == 1) {
            const Prim *h = prim_load(c, s->h, row), *w = te_at(c, s->r, wat);
            const Prim *sum = prim_load(c, acc, &in);
            bool        fma = c->target && c->target->has_fma;

            st = stmt_store(c, acc, &in,
                            fma ? prim_fma(c, h, w, sum) : prim_add(c, sum, prim_mul(c, h, w)));
        } else {
            st = stmt_store(c, s->gates, &gate, prim_load(c, acc, &in));
        }
        st = along(s, u, groups, MARK_UNROLL, along(s, l, lanes, lanes > 1 ? MARK_VECTOR : 0, st));
        part[i] = i == 1 ? along(s, k, s->H, 0, st) : st;
    }
    return stmt_alloc(c, acc, stmt_seq(c, 3, part));
}

/* All gates of row n. */
static const Stmt *all_gates(const Cell *s)
{
    int64_t     tiles = 4 * s->H / s->tile;
    const Atom *g = var(s, "g", tiles);

    return along(s, g, tiles, 0, gate_tile(s, idx_atom(s->c->arith, g)));
}

static const Prim *gate(const Cell *s, int which, const Idx *j)
{
    const Idx *at = idx_addc(s->c->arith, j, which * s->H);

    return prim_load(s->c, s->gates, &at);
}

/* c = f * c + i * tanh(g);  h = o * tanh(c), for `lanes` cells from j0 on. */
static const Stmt *update(const Cell *s, const Idx *j0, int64_t lanes)
{
    Ctx        *c = s->c;
    const Atom *l = var(s, "l", lanes);
    const Idx  *j = idx_add(c->arith, j0, idx_atom(c->arith, l));
    const Idx  *at[2] = {s->n, j}, *yat[3] = {s->t, s->n, j};
    const Prim *i = prim_math(c, MATH_SIGMOID, gate(s, 0, j), NULL);
    const Prim *o = prim_math(c, MATH_SIGMOID, gate(s, 1, j), NULL);
    const Prim *f = prim_math(c, MATH_SIGMOID, gate(s, 2, j), NULL);
    const Prim *g = prim_math(c, MATH_TANH, gate(s, 3, j), NULL);
    const Prim *cell = prim_add(c, prim_mul(c, f, prim_load(c, s->cell, at)), prim_mul(c, i, g));
    const Prim *h = prim_mul(c, o, prim_math(c, MATH_TANH, prim_load(c, s->cell, at), NULL));
    const Stmt *kids[3] = {stmt_store(c, s->cell, at, cell), stmt_store(c, s->h, at, h),
                           stmt_store(c, s->y, yat, prim_load(c, s->h, at))};

    return along(s, l, lanes, lanes > 1 ? MARK_VECTOR : 0, stmt_seq(c, 3, kids));
}

static const Stmt *all_cells(const Cell *s)
{
    int64_t     whole = s->H / s->lanes;
    const Stmt *kids[2];
    uint32_t    n = 0;

    if (whole) {
        const Atom *j = var(s, "j", whole);
        const Idx  *j0 = idx_mulc(s->c->arith, idx_atom(s->c->arith, j), s->lanes);

        kids[n++] = along(s, j, whole, 0, update(s, j0, s->lanes));
    }
    if (whole * s->lanes < s->H) {
        int64_t     rest = s->H - whole * s->lanes;
        const Atom *j = var(s, "j", rest);
        const Idx  *j0 = idx_addc(s->c->arith, idx_atom(s->c->arith, j), whole * s->lanes);

        kids[n++] = along(s, j, rest, 0, update(s, j0, 1));
    }
    return stmt_seq(s->c, n, kids);
}

/* h = h0, c = c0 */
static const Stmt *begin(const Cell *s)
{
    Ctx        *c = s->c;
    const Atom *n = var(s, "n", s->N), *j = var(s, "j", s->H);
    const Idx  *at[2] = {idx_atom(c->arith, n), idx_atom(c->arith, j)};
    const Stmt *kids[2] = {stmt_store(c, s->h, at, te_at(c, s->h0, at)),
                           stmt_store(c, s->cell, at, te_at(c, s->c0, at))};

    return along(s, n, s->N, 0, along(s, j, s->H, 0, stmt_seq(c, 2, kids)));
}

bool te_lstm_recurrent(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const LstmRecurrentAttrs *a = call->attrs;
    static const char *const  names[] = {"y", "h", "c"};
    Cell                      s = {.c = c, .xw = in[0], .r = in[1], .h0 = in[2], .c0 = in[3]};

    s.T = dim_of(call->in[0], 0);
    s.N = dim_of(call->in[0], 1);
    s.H = dim_of(call->in[1], 1);
    s.tile = dim_of(call->in[1], 2);
    for (uint32_t i = 0; i < 3; i++)
        out[i] = te_extern_out(c, names[i], call->out[i]);
    s.y = out[0]->buffer;
    s.h = out[1]->buffer;
    s.cell = out[2]->buffer;
    s.lanes = vector_lanes(c, call->in[0]->dtype);
    while (s.tile % s.lanes)
        s.lanes /= 2;
    const Idx *gates = idx_const(c->arith, 4 * s.H);

    s.gates =
        buffer_new(c, intern(c->strings, "gates"), call->in[0]->dtype, SCOPE_PRIVATE, 1, &gates);
    const Atom *t = var(&s, "t", s.T), *n = var(&s, "n", s.N);

    s.t = idx_atom(c->arith, t);
    if (a->reverse)
        s.t = idx_sub(c->arith, idx_const(c->arith, s.T - 1), s.t);
    s.n = idx_atom(c->arith, n);
    const Stmt *row[2] = {all_gates(&s), all_cells(&s)};
    const Stmt *steps = along(&s, t, s.T, 0, along(&s, n, s.N, 0, stmt_seq(c, 2, row)));
    const Stmt *kids[2] = {begin(&s), steps};

    te_extern(c, 4, in, 3, out, stmt_alloc(c, s.gates, stmt_seq(c, 2, kids)));
    return true;
}
