/* Neighbouring cells of a thread come and go at once: in 16 bytes, in 4 cells of narrower numbers,
 * in 2 where there are no more.
 *
 *     %y[4*i] = f(%x[4*i]);  %y[4*i+1] = f(%x[4*i+1]);  ..
 *       -> alloc %w: f32x4 @reg
 *          %w[] = %x[4*i : 4]
 *          %y[4*i : 4] = vec(f(lane 0 of %w[]), f(lane 1 of %w[]), ..)
 *
 * Rules write the cells of a thread out (schedules/gpu); what becomes one access is found
 * here, where all that is known of indices has been made of them.  Stores one after the other, to
 * cells side by side from a border on, as memory of devices and each tensor in it lie on one; loads
 * of such cells that are made in any case, of memory that a block shares, too.  Where all cells
 * choose by one condition, it chooses among stores; what stands one behind the other under one
 * condition does so together.  Arithmetic stays that of single numbers, so no
 * bit changes. */
#include "backends/common/plain.h"

enum { BORDER = 16, MOST_GROUPS = 8, MOST_PAIRS = 4, MOST_WIDE = 256 };

bool is_on_border(Ctx *c, const Buffer *b, const Idx *const *index, int64_t bytes)
{
    int64_t cells = bytes / (int64_t)dtype_bytes(dtype_lanes(b->dtype, 1)), rest = 1;

    return b->ndim == 1 && idx_is_const(idx_modc(c->arith, index[0], cells), &rest) && rest == 0;
}

typedef struct {
    Ctx        *c;
    const Func *f;
    HasWideFn  *has;
    const void *user;
} Wide;

typedef struct {
    Wide       *x;
    uint16_t    most;            /* cells of an access */
    const Prim *seen[MOST_WIDE]; /* loads of single cells that are made anyway */
    uint32_t    nseen;
    Map        *walked;  /* prims that were looked at */
    Map        *lane_of; /* load's id -> the lane that takes its place */
    Map        *done;    /* prim id -> the same with those */
    struct {
        const Buffer *reg;
        const Prim   *load;
    } at[MOST_WIDE / 2];
    uint32_t n;
} Loads;

bool is_param_of(const Func *f, const Buffer *b)
{
    for (uint32_t i = 0; i < f->nparams; i++)
        if (f->params[i].buffer == b)
            return true;
    return false;
}

uint16_t access_lanes(const Buffer *b, uint16_t most, HasWideFn *has, const void *user)
{
    uint32_t bytes = dtype_bytes(b->dtype);
    uint16_t lanes = bytes > BORDER / WIDE_LANES ? (uint16_t)(BORDER / bytes) : WIDE_LANES;

    if (lanes > most)
        lanes = most;
    return lanes > 1 && has(user, dtype_lanes(b->dtype, lanes), b->scope) ? lanes : 1;
}

/* Cells of memory that one access moves, at most so many; 1: none do. */
static uint16_t lanes_of(const Wide *x, const Buffer *b, uint16_t most)
{
    bool fits = b->ndim == 1 && b->dtype.lanes == 1 && !dtype_is_bool(b->dtype) &&
                (b->scope == SCOPE_SHARED || is_param_of(x->f, b));

    return fits ? access_lanes(b, most, x->has, x->user) : 1;
}

/* ---- loads ----------------------------------------------------------------------------------------- */

uint32_t sure_kids(const Prim *p)
{
    if ((p->kind == PRIM_AND || p->kind == PRIM_OR) && dtype_is_bool(p->dtype))
        return 1;
    return p->kind == PRIM_SELECT ? 1 : p->kind == PRIM_CASE ? 0 : p->nkids;
}

static void find_loads(Loads *l, const Prim *p)
{
    if (map_get(l->walked, p->id))
        return;
    map_put(l->walked, p->id, l);
    if (p->kind == PRIM_LOAD && p->u.load.n == 1 && !p->u.load.mask && p->dtype.lanes == 1 &&
        l->nseen < MOST_WIDE && lanes_of(l->x, p->u.load.buffer, l->most) > 1)
        l->seen[l->nseen++] = p;
    for (uint32_t i = 0; i < sure_kids(p); i++)
        find_loads(l, p->kids[i]);
}

static const Prim *seen_at(const Loads *l, const Buffer *b, const Idx *at)
{
    for (uint32_t i = 0; i < l->nseen; i++)
        if (l->seen[i]->u.load.buffer == b && l->seen[i]->u.load.index[0] == at)
            return l->seen[i];
    return NULL;
}

/* Loads from there on, if all of an access are among those seen. */
static void join_loads(Loads *l, const Prim *first)
{
    Ctx           *c = l->x->c;
    const Buffer  *b = first->u.load.buffer;
    const uint16_t lanes = lanes_of(l->x, b, l->most);
    const Prim    *lane[WIDE_LANES];

    if (!is_on_border(c, b, first->u.load.index, lanes * (int64_t)dtype_bytes(b->dtype)))
        return;
    for (uint16_t k = 0; k < lanes; k++)
        if (!(lane[k] = seen_at(l, b, idx_addc(c->arith, first->u.load.index[0], k))))
            return;
    const Buffer *reg = buffer_new(c, intern_printf(c->strings, "w%u", l->n),
                                   dtype_lanes(b->dtype, lanes), SCOPE_REG, 0, NULL);
    const Prim   *all = prim_load(c, reg, NULL);
    l->at[l->n].reg = reg;
    l->at[l->n++].load = prim_loadv(c, b, first->u.load.index, lanes, NULL);
    for (uint16_t k = 0; k < lanes; k++)
        map_put(l->lane_of, lane[k]->id, (void *)(uintptr_t)prim_shuffle(c, all, 1, &k));
}

/* p with lanes in the place of loads; what indices read stays. */
static const Prim *with_lanes(Loads *l, const Prim *p)
{
    const Prim *now = map_get(l->lane_of, p->id);

    if (now || (now = map_get(l->done, p->id)))
        return now;
    const Prim **kids = NEW_ARRAY(l->x->c->arena, const Prim *, p->nkids + 1);
    bool         same = true;
    for (uint32_t i = 0; i < p->nkids; i++) {
        kids[i] = with_lanes(l, p->kids[i]);
        same = same && kids[i] == p->kids[i];
    }
    now = same ? p : prim_with_kids(l->x->c, p, kids);
    map_put(l->done, p->id, (void *)(uintptr_t)now);
    return now;
}

/* ---- stores ---------------------------------------------------------------------------------------- */

typedef struct {
    const Buffer *of;
    bool          found;
} Reads;

static void find_read(void *user, const Prim *p)
{
    Reads *r = user;

    r->found = r->found || (p->kind == PRIM_LOAD && p->u.load.buffer == r->of);
}

static bool reads(const Prim *p, const Buffer *b)
{
    Reads r = {b, false};

    prim_visit(p, &(TirVisit){.user = &r, .prim = find_read});
    return r.found;
}

/* Stores that become one. */
typedef struct {
    const StoreData *first;
    uint16_t         lanes;
    const Prim      *value[WIDE_LANES];
} Group;

/* Is all of it chosen by one condition? */
static const Prim *choice_of(uint32_t n, const Group *g)
{
    const Prim *first = g->value[0];

    for (uint32_t i = 0; i < n; i++)
        for (uint16_t k = 0; k < g[i].lanes; k++)
            if (g[i].value[k]->kind != PRIM_SELECT || g[i].value[k]->kids[0] != first->kids[0])
                return NULL;
    return first->kids[0];
}

static const Stmt *store_groups(Wide *x, uint32_t n, const Group *g)
{
    Ctx        *c = x->c;
    Loads       l = {.x = x,
                     .most = g->lanes,
                     .walked = map_new(c->scratch),
                     .lane_of = map_new(c->scratch),
                     .done = map_new(c->scratch)};
    const Stmt *s[MOST_WIDE / 2 + MOST_GROUPS], *arm[2];
    const Prim *cond = choice_of(n, g);

    for (uint32_t i = 0; i < 2 && cond; i++) {
        Group *of = DUP_ARRAY(c->scratch, g, n);
        for (uint32_t k = 0; k < n; k++)
            for (uint16_t lane = 0; lane < g[k].lanes; lane++)
                of[k].value[lane] = g[k].value[lane]->kids[1 + i];
        arm[i] = store_groups(x, n, of);
    }
    if (cond)
        return stmt_if(c, cond, arm[0], arm[1]);
    for (uint32_t i = 0; i < n; i++)
        for (uint16_t k = 0; k < g[i].lanes; k++)
            find_loads(&l, g[i].value[k]);
    for (uint32_t i = 0; i < l.nseen; i++)
        join_loads(&l, l.seen[i]);
    for (uint32_t i = 0; i < l.n; i++)
        s[i] = stmt_store(c, l.at[i].reg, NULL, l.at[i].load);
    for (uint32_t i = 0; i < n; i++) {
        const Prim *now[WIDE_LANES];
        for (uint16_t k = 0; k < g[i].lanes; k++)
            now[k] = with_lanes(&l, g[i].value[k]);
        s[l.n + i] =
            stmt_store(c, g[i].first->buffer, g[i].first->index, prim_vec(c, g[i].lanes, now));
    }
    const Stmt *all = stmt_seq(c, l.n + n, s);
    for (uint32_t i = l.n; i-- > 0;)
        all = stmt_alloc(c, l.at[i].reg, all);
    return all;
}

/* So many stores from there on. */
static bool find_lanes(Wide *x, uint32_t n, const Stmt *const *s, uint16_t lanes, Group *g)
{
    const StoreData *d = &s[0]->u.store;

    *g = (Group){.first = d, .lanes = lanes};
    if (n < lanes || d->buffer->scope == SCOPE_SHARED ||
        !is_on_border(x->c, d->buffer, d->index, g->lanes * (int64_t)dtype_bytes(d->buffer->dtype)))
        return false;
    for (uint16_t k = 0; k < g->lanes; k++) {
        const StoreData *e = &s[k]->u.store;
        if (s[k]->kind != STMT_STORE || e->buffer != d->buffer || e->mask ||
            e->index[0] != idx_addc(x->c->arith, d->index[0], k) ||
            !dtype_eq(e->value->dtype, d->buffer->dtype) || reads(e->value, d->buffer))
            return false;
        g->value[k] = e->value;
    }
    return true;
}

/* The stores from there on, of as many cells as there are, up to so many. */
static bool find_group(Wide *x, uint32_t n, const Stmt *const *s, uint16_t most, Group *g)
{
    if (!n || s[0]->kind != STMT_STORE)
        return false;
    const StoreData *d = &s[0]->u.store;

    if (d->n != 1 || d->value->dtype.lanes != 1)
        return false;
    for (uint16_t lanes = lanes_of(x, d->buffer, most); lanes >= 2; lanes /= 2)
        if (find_lanes(x, n, s, lanes, g))
            return true;
    return false;
}

/* Groups one after the other, of one tensor: what they load comes before the first store, which
 * compilers would keep it behind. */
static uint32_t find_groups(Wide *x, uint32_t n, const Stmt *const *s, Group *g)
{
    uint32_t count = 0, at = 0;

    while (count < (count && g->lanes == 2 ? MOST_PAIRS : MOST_GROUPS) &&
           find_group(x, n - at, s + at, count ? g->lanes : WIDE_LANES, &g[count]) &&
           g[count].lanes == g->lanes && g[count].first->buffer == g->first->buffer &&
           choice_of(1, &g[count]) == choice_of(1, g))
        at += g[count++].lanes;
    return count;
}

/* ---- conditions ------------------------------------------------------------------------------------ */

/* One condition, of indices alone that read no memory, without an else. */
static bool is_guarded(const Stmt *s, Pred *p, Ctx *c)
{
    if (s->kind != STMT_IF || s->nkids != 1 || !prim_pred(c, s->u.cond, p))
        return false;
    for (uint32_t i = 0; i < p->n; i++)
        if (idx_reads_memory(p->ge0[i]))
            return false;
    return true;
}

static bool same_guard(Ctx *c, Pred p, const Stmt *s)
{
    Pred q;

    if (!is_guarded(s, &q, c) || p.n != q.n)
        return false;
    for (uint32_t i = 0; i < p.n; i++)
        if (p.ge0[i] != q.ge0[i])
            return false;
    return true;
}

static const Stmt *wide_stmt(Ctx *c, void *user, const Stmt *was, const Stmt *now);

/* The statements of a sequence, of which neighbours under one condition are one. */
static const Stmt *join_guarded(Ctx *c, void *user, const Stmt *seq)
{
    const Stmt **to = NEW_ARRAY(c->arena, const Stmt *, seq->nkids + 1);
    uint32_t     n = 0;

    for (uint32_t i = 0, end; i < seq->nkids; i = end) {
        const Stmt *first = seq->kids[i];
        VEC(const Stmt *) arms = {0};
        Pred p;
        bool guarded = is_guarded(first, &p, c);
        for (end = i + 1; guarded && end < seq->nkids && same_guard(c, p, seq->kids[end]); end++) {
            if (!arms.n)
                vec_push(c->scratch, &arms, first->kids[0]);
            vec_push(c->scratch, &arms, seq->kids[end]->kids[0]);
        }
        to[n++] = !arms.n ? first
                          : stmt_if(c, first->u.cond,
                                    wide_stmt(c, user, NULL, stmt_seq(c, arms.n, arms.at)), NULL);
    }
    return n == seq->nkids ? seq : stmt_seq(c, n, to);
}

static const Stmt *wide_stmt(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    if (now->kind == STMT_SEQ)
        now = join_guarded(c, user, now);
    Wide        *x = user;
    const Stmt **s = NEW_ARRAY(c->arena, const Stmt *, now->nkids + 1);
    Group        g[MOST_GROUPS];
    uint32_t     n = 0;

    (void)was;
    if (now->kind != STMT_SEQ)
        return now;
    for (uint32_t i = 0, count; i < now->nkids; i += count ? count * g->lanes : 1) {
        count = find_groups(x, now->nkids - i, now->kids + i, g);
        s[n++] = count ? store_groups(x, count, g) : now->kids[i];
    }
    return n == now->nkids ? now : stmt_seq(c, n, s);
}

const Func *plain_wide(Ctx *c, const Func *f, HasWideFn *has, const void *user)
{
    Wide x = {c, f, has, user};

    return func_with_body(c, f, stmt_map(c, f->body, &(TirMap){.user = &x, .stmt = wide_stmt}));
}
