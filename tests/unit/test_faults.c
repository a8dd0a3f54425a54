/* Faults that kernels of devices can have, put into those that schedules make: each is an error of
 * the interpreter, or other numbers.
 *
 *   missing barrier     each barrier in turn is taken out
 *   divergent barrier   .. is for the first of its threads only
 *   divergent warp      the last thread does not come to what those of its warp combine
 *   wrong swizzle       neighbouring cells of what is copied to shared memory change places
 *   stale stage         of the stages of a shared tile that of another round is read
 *   early               what is copied past the registers is waited for a round later
 *   early sums          .. and products of four warps
 *   overflow            shared memory is stored to behind its end
 *   halo off by one     what a tile is filled with lies a cell further on
 *
 * A barrier that may go unnoticed is one that need not be there. */
#include "tests/unit/check.h"
#include "tests/unit/launches.h"

#include "ir/tir/intrin.h"
#include "passes/tir/util.h"

typedef enum { MISSING, DIVERGENT, PARTED, SWIZZLE, STALE, EARLY, SUMS, OVERFLOW, HALO } Fault;

static const struct {
    const char *name, *message; /* a part of the error; NULL: other numbers will do */
} faults[] = {{"missing barrier", "no barrier between them"},
              {"divergent barrier", "a barrier that only some threads of the block come to"},
              {"divergent warp", "which only some threads of a warp come to"},
              {"wrong swizzle", NULL},
              {"stale stage", NULL},
              {"early", "that a copy is on its way to"},
              {"early sums", NULL},
              {"overflow", "is outside"},
              {"halo off by one", NULL}};

static const struct {
    const char *warps;   /* a target: 16 bits, by its instructions of warps */
    const char *machine; /* figures of one, or NULL */
    const char *text;
} networks[] = {
    /* a halo, tiles in chunks, two of them in turns; copies past the registers; rows by threads */
    {NULL, NULL,
     "fn @main(%x: Tensor[(1, 16, 9, 10), f32], %w: Tensor[(12, 16, 3, 3), f32]) {\n"
     "  nn.conv2d(%x, %w, padding=[1, 1, 1, 1])\n}\n"},
    {"cuda", NULL,
     "fn @main(%x: Tensor[(40, 128), f32], %w: Tensor[(24, 128), f32]) { nn.dense(%x, %w) }\n"},
    {"cuda -arch=sm_90a", "tests/backends/four_warps.machine",
     "fn @main(%x: Tensor[(64, 128), f32], %w: Tensor[(64, 128), f32]) { nn.dense(%x, %w) }\n"},
    /* .. of two rounds on their way */
    {"cuda -arch=sm_90a", "tests/backends/four_warps.machine",
     "fn @main(%x: Tensor[(64, 320), f32], %w: Tensor[(16, 320), f32]) { nn.dense(%x, %w) }\n"},
    {NULL, NULL, "fn @main(%x: Tensor[(3, 300), f32]) { nn.softmax(%x) }\n"},
    /* .. whose sums warps combine */
    {"cuda", NULL, "fn @main(%x: Tensor[(3, 300), f32]) { nn.softmax(%x) }\n"},
    {NULL, NULL,
     "fn @main(%q: Tensor[(1, 24, 16), f32], %k: Tensor[(1, 70, 16), f32]) {\n"
     "  nn.attention(%q, %k, %k, chunk=32)\n}\n"},
};

typedef struct {
    Fault           fault;
    uint32_t        site, seen; /* which of those that there are */
    const LoopData *loop;       /* around what is looked at: of threads, of chunks */
    bool            moved;      /* something in that loop */
    Map            *rounds;     /* awaits of loops' rounds; those before only end a group */
} Plant;

static bool here(Plant *p)
{
    return p->seen++ == p->site;
}

/* Of a store or a load, with dimension d at x. */
static const Idx *const *moved(Ctx *c, uint32_t n, const Idx *const *index, uint32_t d,
                               const Idx *x)
{
    const Idx **at = NEW_ARRAY(c->arena, const Idx *, n + 1);

    for (uint32_t i = 0; i < n; i++)
        at[i] = i == d ? x : index[i];
    return at;
}

static const Prim *a_cell_further(Ctx *c, void *user, const Prim *p)
{
    bool *done = user;

    if (p->kind != PRIM_LOAD || p->u.load.buffer->scope != SCOPE_ARENA || !p->u.load.n)
        return p;
    uint32_t last = p->u.load.n - 1;
    *done = true;
    return prim_load(
        c, p->u.load.buffer,
        moved(c, p->u.load.n, p->u.load.index, last, idx_addc(c->arith, p->u.load.index[last], 1)));
}

static const Stmt *plant_store(Ctx *c, Plant *p, const Stmt *s)
{
    Arith           *A = c->arith;
    const StoreData *d = &s->u.store;
    uint32_t         last = d->n - 1;
    const Prim      *value = d->value;
    bool             loads = false;

    if (d->buffer->scope != SCOPE_SHARED || !d->n)
        return s;
    const Idx  *x = d->index[last];
    const Prim *further = prim_map(c, value, &(TirMap){.user = &loads, .prim = a_cell_further});
    if (p->fault == SWIZZLE && loads && here(p))
        x = idx_addc(A, idx_sub(A, x, idx_mulc(A, idx_modc(A, x, 2), 2)), 1);
    else if (p->fault == OVERFLOW && here(p))
        x = idx_addc(A, x, d->buffer->extent[last]->hi);
    else if (p->fault == HALO && loads && here(p))
        value = further;
    return stmt_store(c, d->buffer, moved(c, d->n, d->index, last, x), value);
}

static const Stmt *only_first(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    Plant *p = user;

    (void)was;
    if (now->kind != STMT_BARRIER || !here(p))
        return now;
    const Prim *at = prim_index(c, DT_I64, idx_atom(c->arith, p->loop->var));
    return stmt_if(c, prim_lt(c, at, prim_int(c, DT_I64, 1)), now, NULL);
}

/* ---- stages of a pipeline ---------------------------------------------------------------------- */

static bool find_barrier(void *user, const Stmt *s)
{
    bool *found = user;

    *found = *found || s->kind == STMT_BARRIER;
    return true;
}

/* Of shared memory what the next round of p->loop would read. */
static const Prim *next_stage(Ctx *c, void *user, const Prim *x)
{
    Plant      *p = user;
    const Atom *k = p->loop->var;

    if (x->kind != PRIM_LOAD || x->u.load.buffer->scope != SCOPE_SHARED || !x->u.load.n ||
        !idx_uses(x->u.load.index[0], k))
        return x;
    IdxSubst *next = subst_new(c->arith, c->scratch);
    subst_bind(next, k, idx_addc(c->arith, idx_atom(c->arith, k), 1));
    p->moved = true;
    return prim_load(c, x->u.load.buffer,
                     moved(c, 1, x->u.load.index, 0, idx_subst(next, x->u.load.index[0])));
}

static const Stmt *plant_stage(Ctx *c, Plant *p, const Stmt *s)
{
    bool waits = false;

    if (s->kind != STMT_FOR || s->u.loop.bind || p->moved)
        return s;
    stmt_visit(s, &(TirVisit){&waits, find_barrier, NULL, NULL, NULL});
    if (!waits)
        return s;
    p->loop = &s->u.loop;
    const Stmt *to = stmt_map(c, s, &(TirMap){.user = p, .prim = next_stage});
    if (p->moved && here(p))
        return to;
    p->moved = false;
    return s;
}

/* ---- awaits ------------------------------------------------------------------------------------- */

static bool note_await(void *user, const Stmt *s)
{
    Plant *p = user;

    if (s->kind == STMT_AWAIT)
        map_put(p->rounds, PTR_KEY(s), p);
    return true;
}

static bool note_rounds(void *user, const Stmt *s)
{
    Plant *p = user;

    if (s->kind == STMT_FOR && !s->u.loop.bind)
        stmt_visit(s, &(TirVisit){.user = p, .enter = note_await});
    return true;
}

static bool is_await(const Plant *p, const Stmt *s)
{
    return s->kind == STMT_AWAIT && p->fault == (s->u.await.products ? SUMS : EARLY) &&
           (!s->u.await.groups || map_get(p->rounds, PTR_KEY(s)));
}

/* ---- all of them -------------------------------------------------------------------------------- */

static const Stmt *plant(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    Plant *p = user;

    if (p->fault == STALE)
        return plant_stage(c, p, now);
    if (is_await(p, was) && here(p))
        return stmt_await(c, (AwaitData){now->u.await.groups + 1, now->u.await.products});
    if (p->fault == MISSING && now->kind == STMT_BARRIER && here(p))
        return stmt_seq(c, 0, NULL);
    if (p->fault == PARTED && now->kind == STMT_FOR && is_warp_store(now->kids[0]) && here(p)) {
        LoopData less = now->u.loop;
        less.extent = idx_addc(c->arith, less.extent, -1);
        return stmt_for(c, less, now->kids[0], now->loc);
    }
    if (p->fault == DIVERGENT && now->kind == STMT_FOR && now->u.loop.bind == AXIS_THREAD_X) {
        p->loop = &now->u.loop;
        return stmt_map(c, now, &(TirMap){.user = p, .stmt = only_first});
    }
    return now->kind == STMT_STORE && p->fault != SUMS ? plant_store(c, p, now) : now;
}

/* The plan's functions with one fault; NULL: there is no such site. */
static const TirModule *with_fault(Ctx *c, const TirModule *m, Plant *p)
{
    const Func **to = NEW_ARRAY(c->arena, const Func *, m->nfuncs);

    p->rounds = map_new(c->arena);
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        const Func *f = m->funcs[i];
        if (f->kind == FUNC_DEVICE)
            stmt_visit(f->body, &(TirVisit){.user = p, .enter = note_rounds});
        to[i] =
            f->kind == FUNC_DEVICE
                ? func_with_body(c, f, stmt_map(c, f->body, &(TirMap){.user = p, .stmt = plant}))
                : f;
    }
    return p->seen > p->site ? tirmod_new(c, m->nfuncs, to) : NULL;
}

static bool same(uint32_t n, const Const *const *a, const Const *const *b)
{
    for (uint32_t i = 0; i < n; i++)
        if (memcmp(a[i]->data.at, b[i]->data.at, a[i]->data.n) != 0)
            return false;
    return true;
}

static uint32_t sites_of[COUNT(faults)];

typedef struct {
    Ctx         *c;
    const char  *text;
    Compiled     x;
    uint32_t     nin;
    const Const *in[MOST], *right[MOST];
} Network;

/* Is the fault found?  Errors do not outlast it. */
static void check_fault(const Network *n, const TirModule *m, const Plant *p)
{
    const Const *out[MOST];
    const char  *wanted = faults[p->fault].message;
    uint32_t     before = diag_count(n->c->diags);
    const char  *wrong = run_launches(n->c, &n->x, m, n->nin, n->in, MOST, out);
    bool         found = !wrong && !wanted && !same(n->x.plan->nout, out, n->right);

    for (uint32_t i = before; i < diag_count(n->c->diags); i++)
        found = found || !wanted || strstr(diag_at(n->c->diags, i).text, wanted);
    check_count++;
    if (!found) {
        printf("%s\n%s %u is not found\n", n->text, faults[p->fault].name, p->site);
        check_failures++;
    }
}

static void check_network(const char *text, const char *warps, const char *machine)
{
    Arena        *arena = arena_new(NULL);
    Ctx          *c = ctx_new(arena, diags_new(arena), op_table);
    Net           net = {.c = c, .seed = 11};
    Network       n = {.c = c, .text = text};
    const char   *wrong = NULL;
    const Module *m =
        relay_parse(c, "net", (Bytes){(const uint8_t *)text, strlen(text)}, (Bytes){0});
    const Expr *f = module_func(m, "main");

    for (; n.nin < func_nparams(f); n.nin++)
        n.in[n.nin] = float_noise(&net, func_param(f, n.nin)->type, -1, 1);
    wrong = compile_launches(c, m, 3, warps, machine, &n.x);
    if (!wrong)
        wrong = run_launches(c, &n.x, n.x.plan->tir, n.nin, n.in, MOST, n.right);
    CHECK(!wrong);
    for (uint32_t k = 0; !wrong && k < COUNT(faults); k++) {
        uint32_t         sites = 0;
        const TirModule *right = n.x.plan->tir;
        if (k == SUMS) /* which are loops before there is code */
            right = run_tir_passes(c, right, &n.x.o->passes, TIR_TO_CODE);
        for (;; sites++) {
            Plant            p = {.fault = (Fault)k, .site = sites};
            const TirModule *bad = with_fault(c, right, &p);
            if (!bad)
                break;
            check_fault(&n, bad, &p);
        }
        sites_of[k] += sites;
    }
    ctx_free(c);
    arena_free(arena);
}

int main(void)
{
    for (size_t i = 0; i < COUNT(networks); i++)
        check_network(networks[i].text, networks[i].warps, networks[i].machine);
    for (size_t k = 0; k < COUNT(faults); k++)
        CHECK(sites_of[k] > 0);
    return check_result();
}
