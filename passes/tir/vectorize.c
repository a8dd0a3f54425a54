/* vectorize: loops marked `vector` become the lanes of vector prims.
 *
 *   for %j<8 vector { %y[%i*8+%j] = select(0 > %x[%i*8+%j], 0, %x[%i*8+%j]) }
 *     -> %y[%i*8] = select(splat(0) > load f32x8 %x[%i*8], splat(0), load f32x8 %x[%i*8])
 *
 * Runs on flattened buffers, so one coefficient tells a load's form: 1 contiguous, 0 splat of a
 * scalar, lanes that read here and there in one aligned block a shuffle of it, anything else a
 * vector built of scalar loads.  An `if` or `select` that depends on the
 * lane becomes a mask on the loads and stores under it; one that does not stays scalar.  Devices
 * have no masks: there each lane chooses, and a lane's `if` stays one.  A statement that has no
 * vector form (a call, a loop whose bounds depend on the lane) makes the loop serial again. Cost:
 * one walk. */
#include "ir/tir/intrin.h"
#include "passes/passes.h"

enum { MOST_LANES = 64 };

typedef struct {
    Ctx        *c;
    const Atom *var;
    const Idx  *lo;
    uint16_t    lanes;
    bool        failed, masks; /* the target has masks */
    Map        *legal; /* loads that happen anyway: prim id -> the mask they happen under, or ALL */
} Vec1;

#define ALL ((void *)1)

static const Idx *at_lane(Vec1 *v, const Idx *x, int64_t lane)
{
    IdxSubst *s = subst_new(v->c->arith, v->c->arena);

    subst_bind(s, v->var, idx_addc(v->c->arith, v->lo, lane));
    return idx_subst(s, x);
}

static const Prim *prim_at_lane(Vec1 *v, const Prim *p, int64_t lane)
{
    IdxSubst *s = subst_new(v->c->arith, v->c->arena);

    subst_bind(s, v->var, idx_addc(v->c->arith, v->lo, lane));
    return prim_subst(v->c, p, s);
}

static bool depends(const Prim *p, const Atom *a)
{
    if (p->kind == PRIM_INDEX || p->kind == PRIM_RAMP || p->kind == PRIM_CASE)
        if (idx_uses(p->u.index, a))
            return true;
    if (p->kind == PRIM_LOAD) {
        for (uint32_t i = 0; i < p->u.load.n; i++)
            if (idx_uses(p->u.load.index[i], a))
                return true;
        if (p->u.load.mask && depends(p->u.load.mask, a))
            return true;
    }
    for (uint32_t i = 0; i < p->nkids; i++)
        if (depends(p->kids[i], a))
            return true;
    return false;
}

/* The step of x from lane to lane if it is the same between all lanes. */
static bool lane_step(Vec1 *v, const Idx *x, int64_t *stepp)
{
    if (v->lanes == 1)
        return *stepp = 0, true;
    bool linear = true;
    *stepp = 0;
    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;
        if (a == v->var)
            *stepp = x->t[i].coef;
        else if (a->kind != ATOM_VAR)
            linear = linear && !idx_uses(idx_atom(v->c->arith, a), v->var);
    }
    if (linear)
        return true;
    const Idx *first = at_lane(v, x, 0);
    const Idx *d = idx_sub(v->c->arith, at_lane(v, x, 1), first);
    if (!idx_is_const(d, stepp))
        return false;
    for (int64_t i = 2; i < v->lanes; i++) {
        int64_t now;
        if (!idx_is_const(idx_sub(v->c->arith, at_lane(v, x, i), first), &now) || now != i * *stepp)
            return false;
    }
    return true;
}

static const Prim *lane_by_lane(Vec1 *v, const Prim *p)
{
    const Prim **s = NEW_ARRAY(v->c->arena, const Prim *, v->lanes);

    for (uint16_t i = 0; i < v->lanes; i++)
        s[i] = prim_at_lane(v, p, i);
    return prim_vec(v->c, v->lanes, s);
}

static const Prim *both(Vec1 *v, const Prim *a, const Prim *b)
{
    return !a ? b : !b ? a : prim_and(v->c, a, b);
}

static const Prim *vec_prim(Vec1 *v, const Prim *p, const Prim *mask);

typedef VEC(uint64_t) Noted;

/* The loads that computing p under `mask` makes for certain: the arms of a select that computes p
 * first need no narrower mask for them (ReLU: select(x < 0, 0, x)). */
static void note_legal(Vec1 *v, const Prim *p, const Prim *mask, Noted *noted)
{
    uint32_t n = p->kind == PRIM_CASE ? 0 : p->kind == PRIM_SELECT ? 1 : p->nkids;

    if (p->kind == PRIM_LOAD && !map_get(v->legal, p->id)) {
        map_put(v->legal, p->id, mask ? (void *)mask : ALL);
        vec_push(v->c->arena, noted, p->id);
    }
    for (uint32_t i = 0; i < n; i++)
        note_legal(v, p->kids[i], mask, noted);
}

static void forget(Vec1 *v, Noted *noted)
{
    while (noted->n)
        map_del(v->legal, noted->at[--noted->n]);
}

/* The address of a plain load of which neighbouring lanes read cells `step` apart; NULL: none. */
static const Idx *first_of(Vec1 *v, const Prim *p, int64_t step)
{
    const LoadData *l = &p->u.load;
    int64_t         s;

    if (p->kind != PRIM_LOAD || l->mask || l->n != 1 || !lane_step(v, l->index[0], &s) || s != step)
        return NULL;
    return at_lane(v, l->index[0], 0);
}

/* `cells` cells a lane: the same ones in every lane, or lanes one after the other; or cells in
 * steps, each the neighbour of the next lane's. */
static const Prim *vec_cells(Vec1 *v, const Prim *p, uint16_t cells)
{
    const Prim **cell;
    const Idx   *at;

    if (!depends(p, v->var))
        return p;
    if (p->kind != PRIM_VEC) {
        if ((at = first_of(v, p, cells)))
            return prim_loadv(v->c, p->u.load.buffer, &at, (uint16_t)(cells * v->lanes), NULL);
        v->failed = true;
        return p;
    }
    cell = NEW_ARRAY(v->c->arena, const Prim *, (size_t)cells * v->lanes);
    for (uint16_t k = 0; k < cells; k++) {
        v->failed |= !first_of(v, p->kids[k], 1);
        for (uint16_t i = 0; i < v->lanes && !v->failed; i++)
            cell[i * cells + k] = prim_at_lane(v, p->kids[k], i);
    }
    return v->failed ? p : prim_vec(v->c, (uint32_t)cells * v->lanes, cell);
}

/* As many units as lanes, each of one result. */
static const Prim *vec_intrin(Vec1 *v, const Prim *p, const Prim *mask)
{
    const Intrin *row = p->u.intrin;
    const Prim   *kid[INTRIN_OPERANDS];

    v->failed |= mask || row->result.cells > 1;
    for (uint32_t i = 0; i < p->nkids && !v->failed; i++)
        kid[i] = row->operand[i].cells == 1
                     ? vec_prim(v, p->kids[i], NULL)
                     : vec_cells(v, p->kids[i], (uint16_t)row->operand[i].cells);
    return v->failed ? p : prim_intrin(v->c, row, kid);
}

/* A thread's own small buffer, of which all lanes from `at` on are cells: sums of a row's last
 * vector.  They need no mask, so that they stay in registers. */
static bool own_lanes(const Vec1 *v, const Buffer *b, const Idx *at)
{
    int64_t n;

    return b->scope == SCOPE_STACK && !b->halo && b->ndim == 1 && idx_is_const(b->extent[0], &n) &&
           at->lo >= 0 && at->hi + v->lanes <= n;
}

/* All cells of the buffer lie in whole blocks of n, counted from cell 0. */
static bool whole_blocks(const Buffer *b, int64_t n)
{
    int64_t cells;

    return b->scope != SCOPE_REG && b->ndim == 1 && idx_is_const(b->extent[0], &cells) &&
           cells % n == 0 && (!b->halo || (b->halo->lo[0] % n == 0 && b->halo->hi[0] % n == 0));
}

/* How far behind the begin of its block of n cells x lies, if that is always the same; else -1. */
static int64_t place_in_block(const Idx *x, int64_t n)
{
    for (uint32_t i = 0; i < x->nterms; i++)
        if (x->t[i].coef % n)
            return -1;
    return (x->c0 % n + n) % n;
}

/* Lanes that read here and there in one block of cells, no longer than the vector: those of a group
 * of channels.  Where one cell of a block can be loaded, all can. */
static const Prim *vec_block(Vec1 *v, const Prim *p)
{
    const LoadData *l = &p->u.load;
    uint16_t        from[MOST_LANES];
    const Idx      *first = at_lane(v, l->index[0], 0);
    int64_t         lo = 0, hi = 0, d[MOST_LANES], n, at;

    for (uint16_t i = 0; i < v->lanes; i++) {
        if (!idx_is_const(idx_sub(v->c->arith, at_lane(v, l->index[0], i), first), &d[i]))
            return NULL;
        lo = d[i] < lo ? d[i] : lo;
        hi = d[i] > hi ? d[i] : hi;
    }
    for (n = 2; n <= v->lanes; n *= 2) {
        at = place_in_block(first, n);
        if (at < 0 || !whole_blocks(l->buffer, n))
            return NULL;
        if (at + lo >= 0 && at + hi < n)
            break;
    }
    if (n > v->lanes)
        return NULL;
    for (uint16_t i = 0; i < v->lanes; i++)
        from[i] = (uint16_t)(at + d[i]);
    first = idx_addc(v->c->arith, first, -at);
    return prim_shuffle(v->c, prim_loadv(v->c, l->buffer, &first, (uint16_t)n, NULL), v->lanes,
                        from);
}

static const Prim *vec_load(Vec1 *v, const Prim *p, const Prim *mask)
{
    const LoadData *l = &p->u.load;
    const void     *legal = map_get(v->legal, p->id);
    int64_t         s;

    if (legal)
        mask = legal == ALL ? NULL : legal;
    if (l->n == 1 && lane_step(v, l->index[0], &s) && s == 1) {
        const Idx *at = at_lane(v, l->index[0], 0);
        return prim_loadv(v->c, l->buffer, &at, v->lanes,
                          own_lanes(v, l->buffer, at) ? NULL : mask);
    }
    if (!mask) {
        const Prim *block = l->n == 1 ? vec_block(v, p) : NULL;

        return block ? block : lane_by_lane(v, p);
    }
    v->failed = true; /* a guarded gather: leave it to a scalar loop */
    return p;
}

/* Every load of p is legal for all values of the variables. */
static bool loads_in_range(const Prim *p)
{
    if (p->kind == PRIM_LOAD && p->u.load.n) {
        const Buffer *b = p->u.load.buffer;
        const Idx    *at = p->u.load.index[0];
        int64_t       n, before = b->halo ? b->halo->lo[0] : 0;
        if (p->u.load.n > 1 || !idx_is_const(b->extent[0], &n) || at->lo < -before || at->hi >= n)
            return false;
    }
    for (uint32_t i = 0; i < p->nkids; i++)
        if (!loads_in_range(p->kids[i]))
            return false;
    return true;
}

/* Every lane takes an arm that is known now: surplus channels of the last block. */
static bool arms_known(Vec1 *v, const Prim *cond)
{
    for (uint16_t i = 0; i < v->lanes; i++)
        if (prim_at_lane(v, cond, i)->kind != PRIM_INT)
            return false;
    return true;
}

/* Lanes that take one arm together, or each an arm that is known now. */
static const Prim *vec_case(Vec1 *v, const Prim *p, const Prim *mask)
{
    const Prim **arms = NEW_ARRAY(v->c->arena, const Prim *, p->nkids);

    if (mask) {
        v->failed = true;
    } else if (!idx_uses(p->u.index, v->var)) {
        for (uint32_t i = 0; i < p->nkids; i++)
            arms[i] = vec_prim(v, p->kids[i], NULL);
        return v->failed ? p : prim_case(v->c, p->u.index, p->nkids, arms);
    }
    for (uint16_t i = 0; i < v->lanes && !v->failed; i++)
        v->failed = !idx_is_const(at_lane(v, p->u.index, i), NULL);
    return v->failed ? p : lane_by_lane(v, p);
}

/* p in all lanes; loads that depend on the lane are under `mask` (NULL: all on). */
static const Prim *vec_prim(Vec1 *v, const Prim *p, const Prim *mask)
{
    Ctx *c = v->c;

    if (p->dtype.lanes > 1) {
        v->failed = true;
        return p;
    }
    if (!depends(p, v->var)) {
        /* One load for all lanes happens even where the mask is off. */
        if (mask && !loads_in_range(p))
            v->failed = true;
        return v->failed ? p : prim_splat(c, p, v->lanes);
    }
    switch (p->kind) {
    case PRIM_LOAD: return vec_load(v, p, mask);
    case PRIM_INTRIN: return vec_intrin(v, p, mask);
    case PRIM_INDEX: {
        int64_t s;
        if (lane_step(v, p->u.index, &s) && s == 1)
            return prim_ramp(c, dtype_lanes(p->dtype, v->lanes), at_lane(v, p->u.index, 0),
                             v->lanes);
        if (!lane_step(v, p->u.index, &s) || p->dtype.bits < 64)
            return lane_by_lane(v, p);
        /* first + s * lane */
        const Prim *first = prim_index(c, p->dtype, at_lane(v, p->u.index, 0));
        const Prim *lane =
            prim_ramp(c, dtype_lanes(p->dtype, v->lanes), idx_const(c->arith, 0), v->lanes);
        first = prim_splat(c, first, v->lanes);
        if (s == -1)
            return prim_sub(c, first, lane);
        return prim_add(c, first,
                        prim_mul(c, lane, prim_splat(c, prim_int(c, p->dtype, s), v->lanes)));
    }
    case PRIM_CASE: return vec_case(v, p, mask);
    case PRIM_SELECT: {
        const Prim *cond = p->kids[0], *yes, *no;
        if (!depends(cond, v->var)) {
            yes = vec_prim(v, p->kids[1], mask);
            no = vec_prim(v, p->kids[2], mask);
            return v->failed ? p : prim_select(c, cond, yes, no);
        }
        if (!v->masks)
            return lane_by_lane(v, p);
        Noted noted = {0};
        note_legal(v, cond, mask, &noted);
        cond = vec_prim(v, cond, mask);
        if (v->failed)
            return p;
        yes = vec_prim(v, p->kids[1], both(v, mask, cond));
        no = vec_prim(v, p->kids[2], both(v, mask, prim_not(c, cond)));
        forget(v, &noted);
        if (v->failed && !mask && arms_known(v, p->kids[0])) {
            v->failed = false;
            return lane_by_lane(v, p);
        }
        return v->failed ? p : prim_select(c, cond, yes, no);
    }
    case PRIM_INT:
    case PRIM_FLOAT:
    case PRIM_ADD:
    case PRIM_SUB:
    case PRIM_MUL:
    case PRIM_DIV:
    case PRIM_REM:
    case PRIM_MIN:
    case PRIM_MAX:
    case PRIM_MINNUM:
    case PRIM_MAXNUM:
    case PRIM_FMA:
    case PRIM_AND:
    case PRIM_OR:
    case PRIM_XOR:
    case PRIM_SHL:
    case PRIM_SHR:
    case PRIM_NOT:
    case PRIM_EQ:
    case PRIM_NE:
    case PRIM_LT:
    case PRIM_LE:
    case PRIM_CAST:
    case PRIM_BITS:
    case PRIM_ADDR:
    case PRIM_SYMBOL:
    case PRIM_SIZEOF:
    case PRIM_MATH:
    case PRIM_SPLAT:
    case PRIM_RAMP:
    case PRIM_VEC:
    case PRIM_SHUFFLE: break;
    }
    const Prim **kids = NEW_ARRAY(c->arena, const Prim *, p->nkids + 1);
    for (uint32_t i = 0; i < p->nkids; i++)
        kids[i] = vec_prim(v, p->kids[i], mask);
    if (v->failed)
        return p;
    if (p->kind == PRIM_CAST)
        return prim_cast(c, dtype_lanes(p->dtype, v->lanes), kids[0]);
    if (p->kind == PRIM_BITS)
        return prim_bits(c, dtype_lanes(p->dtype, v->lanes), kids[0]);
    return prim_with_kids(c, p, kids);
}

static const Stmt *vec_stmt(Vec1 *v, const Stmt *s, const Prim *mask)
{
    Ctx         *c = v->c;
    const Stmt **kids = NEW_ARRAY(c->arena, const Stmt *, s->nkids + 1);
    int64_t      step;

    switch (s->kind) {
    case STMT_STORE: {
        const StoreData *d = &s->u.store;
        if (d->n != 1 || d->value->dtype.lanes > 1 || !lane_step(v, d->index[0], &step) ||
            step == 0 || (step != 1 && mask)) {
            v->failed = true;
            return s;
        }
        const Prim *value = vec_prim(v, d->value, mask);
        if (v->failed)
            return s;
        if (step == 1) {
            const Idx *at = at_lane(v, d->index[0], 0);
            if (mask && own_lanes(v, d->buffer, at)) {
                const Prim *was = prim_loadv(c, d->buffer, &at, v->lanes, NULL);
                value = prim_select(c, mask, value, was);
                mask = NULL;
            }
            return stmt_storev(c, d->buffer, &at, value, mask);
        }
        const Stmt **all = NEW_ARRAY(c->arena, const Stmt *, v->lanes);
        for (uint16_t i = 0; i < v->lanes; i++) {
            const Idx *at = at_lane(v, d->index[0], i);
            all[i] = stmt_store(c, d->buffer, &at, prim_at_lane(v, d->value, i));
        }
        return stmt_seq(c, v->lanes, all);
    }
    case STMT_IF:
        if (!depends(s->u.cond, v->var))
            break;
        if (s->nkids > 1 || !v->masks) {
            v->failed = true;
            return s;
        }
        {
            const Prim *cond = vec_prim(v, s->u.cond, mask);
            return v->failed ? s : vec_stmt(v, s->kids[0], both(v, mask, cond));
        }
    case STMT_FOR:
        if (!idx_uses(s->u.loop.lo, v->var) && !idx_uses(s->u.loop.extent, v->var))
            break;
        v->failed = true;
        return s;
    case STMT_SEQ:
    case STMT_ALLOC: break;
    case STMT_PREFETCH: return stmt_seq(c, 0, NULL); /* what it was for has changed */
    case STMT_WHILE:
    case STMT_BLOCK:
    case STMT_CALL:
    case STMT_BARRIER:
    case STMT_AWAIT:
    case STMT_REGION:
    case STMT_LAUNCH:
    case STMT_COPY:
    case STMT_VIEW:
    case STMT_INVOKE:
    case STMT_SWITCH:
    case STMT_RETURN:
    case STMT_FAIL: v->failed = true; return s;
    }
    for (uint32_t i = 0; i < s->nkids; i++)
        kids[i] = vec_stmt(v, s->kids[i], mask);
    return v->failed ? s : stmt_with_kids(c, s, kids);
}

/* The code around what is looked at: loops over the threads of a block; that of a device. */
typedef struct {
    const LoopData *thread[3]; /* of x, y, z */
    bool            device;
} Around;

/* The loops of an instruction are one store; if passes before made something else of them, they
 * stay loops. */
static const Stmt *intrin_loops(Ctx *c, const Around *in, LoopData loop, const Stmt *body, Loc loc)
{
    const LoopData *loops[INTRIN_AXES] = {&loop};
    const Stmt     *s = body;
    const char     *text = loop.intrin;
    uint32_t        n = 1;
    IntrinMatch     m;
    WarpMatch       warp;
    const Stmt     *out;

    loop.intrin = NULL;
    for (; s->kind == STMT_FOR && n < INTRIN_AXES; s = s->kids[0])
        loops[n++] = &s->u.loop;
    if (s->kind == STMT_STORE && intrin_match(c, text, n, loops, &s->u.store, &m) && !m.row->lanes)
        return intrin_stmt(c, &m, &s->u.store);
    if (s->kind == STMT_STORE && warp_match(c, text, in->thread, n, loops, &s->u.store, &warp) &&
        (out = warp_stmt(c, &warp, &s->u.store)))
        return out;
    return stmt_for(c, loop, body, loc);
}

static const Stmt *find_vector(Ctx *c, Around in, const Stmt *s)
{
    const Stmt **kids = NEW_ARRAY(c->arena, const Stmt *, s->nkids + 1);
    int64_t      extent;

    if (s->kind == STMT_FOR && s->u.loop.bind >= AXIS_THREAD_X)
        in.thread[s->u.loop.bind - AXIS_THREAD_X] = &s->u.loop;
    for (uint32_t i = 0; i < s->nkids; i++)
        kids[i] = find_vector(c, in, s->kids[i]);
    if (s->kind == STMT_FOR && s->u.loop.intrin)
        return intrin_loops(c, &in, s->u.loop, kids[0], s->loc);
    if (s->kind == STMT_FOR && s->u.loop.vector) {
        LoopData loop = s->u.loop;
        loop.vector = false;
        if (!idx_is_const(loop.extent, &extent) || extent > MOST_LANES)
            return stmt_for(c, loop, kids[0], s->loc);
        Vec1        v = {.c = c,
                         .var = loop.var,
                         .lo = loop.lo,
                         .lanes = (uint16_t)extent,
                         .masks = !in.device,
                         .legal = map_new(c->scratch)};
        const Stmt *out = extent == 1 ? NULL : vec_stmt(&v, kids[0], NULL);
        if (extent == 1) {
            IdxSubst *sub = subst_new(c->arith, c->arena);
            subst_bind(sub, loop.var, loop.lo);
            return stmt_subst(c, kids[0], sub);
        }
        return v.failed ? stmt_for(c, loop, kids[0], s->loc) : out;
    }
    return stmt_with_kids(c, s, kids);
}

static const Func *vectorize_func(Ctx *c, void *user, const Func *f)
{
    (void)user;
    return func_with_body(c, f,
                          find_vector(c, (Around){.device = f->kind == FUNC_DEVICE}, f->body));
}

const TirModule *vectorize(Ctx *c, const TirModule *m)
{
    return tirmod_map(c, m, vectorize_func, NULL);
}
