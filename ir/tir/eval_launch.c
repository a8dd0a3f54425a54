/* A launch in the interpreter: every statement of a device function is run by all threads of all
 * blocks, as on a device.
 *
 * Blocks run one after another.  The threads of a block run statement by statement where a barrier
 * lies inside: all threads finish what is before it before one goes on.  What has no barrier inside
 * is run by one thread to its end, then by the next.  Each order that a device may choose gives the
 * same result unless two threads meet in a cell with nothing that orders them, and that is an error
 * here: each cell remembers who touched it last, so it need not happen that a value comes out
 * wrong.
 *
 *   race        two threads of a block, no barrier between them, or two blocks; one of them stores
 *               (threads that store equal values agree: that is how all of them set a cell)
 *   divergence  a barrier that only a part of the block's threads comes to
 *
 * A loop bound to a number of the launch is a condition here, `number < extent`, as in the code of
 * devices.  Memory allocated with scope `shared` is the block's; all other is a thread's own.
 * What a thread copies past itself arrives when it waits for it (eval_copy.c).
 * What a warp's threads compute together (warp.c) waits for all of them, as a barrier does; what
 * one passes to another that way is no race.  Cost: a lookup for each access. */
#include "ir/tir/eval.h"

#include <inttypes.h>
#include <string.h>

enum { SEVERAL = UINT32_MAX, PAGE = 64, NEAR = 256 };

/* Who touched a cell last.  Blocks, meetings (what lies between two barriers of a block) and
 * threads count from 1; 0 is nobody. */
typedef struct {
    uint32_t block, meeting, thread;
} Who;

typedef struct {
    Who reader, writer;
} Cell;

/* PAGE bytes of memory, each of which may be where a cell begins. */
typedef struct {
    uintptr_t number; /* of pages from address 0 */
    Cell     *cells;
} Page;

typedef struct {
    Names   n;
    int64_t number[3];
    bool    left;
} Thread;

struct Launch {
    Who      now;       /* what runs */
    int64_t  number[3]; /* of the block */
    uint32_t n;         /* threads of a block */
    Thread  *threads;
    bool    *on;         /* those that run what is run by all */
    uint8_t *memory;     /* of the block, where buffers have places in it */
    Map     *pages;      /* their numbers -> Cell[PAGE] */
    Page     near[NEAR]; /* of these, found last */
    Map     *together;   /* statements with a barrier or shared memory inside */
};

/* ---- races ------------------------------------------------------------------------------------- */

static Cell *cell_at(Eval *e, const uint8_t *at)
{
    Launch   *l = e->launch;
    uintptr_t number = (uintptr_t)at / PAGE;
    Page     *page = &l->near[number % NEAR];

    if (page->number != number) {
        Cell *cells = map_get(l->pages, number);
        if (!cells) {
            cells = NEW_ARRAY(e->arena, Cell, PAGE);
            map_put(l->pages, number, cells);
        }
        *page = (Page){number, cells};
    }
    return &page->cells[(uintptr_t)at % PAGE];
}

/* Another one, and nothing that orders it and what runs now. */
static bool meets(Who now, Who was)
{
    return was.block &&
           (was.block != now.block || (was.meeting == now.meeting && was.thread != now.thread));
}

static void add(Who *to, Who now)
{
    if (to->block && to->block != now.block)
        to->block = SEVERAL;
    else if (to->block && to->meeting == now.meeting && to->thread != now.thread)
        to->thread = SEVERAL;
    else
        *to = now;
}

static void race(Eval *e, const Buffer *b, const char *does, const char *did, Who was)
{
    Who now = e->launch->now;

    if (was.block == now.block && was.thread != SEVERAL)
        eval_fail(e, "thread %u %s a cell of '%s' that thread %u %s, with no barrier between them",
                  now.thread - 1, does, b->name, was.thread - 1, did);
    else if (was.block == now.block)
        eval_fail(e, "thread %u %s a cell of '%s' that others %s, with no barrier between them",
                  now.thread - 1, does, b->name, did);
    else
        eval_fail(e, "block %u %s a cell of '%s' that another block %s in the same launch",
                  now.block - 1, does, b->name, did);
}

/* Memory of its own no other thread can see. */
static bool is_own(Eval *e, const Buffer *b)
{
    Mem *m = eval_mem(e, b);

    return !m || m->one;
}

void launch_read(Eval *e, const Buffer *b, const uint8_t *at)
{
    if (is_own(e, b))
        return;
    Cell *cell = cell_at(e, at);

    if (copies_reach(e->copies, at))
        eval_fail(e, "thread %u reads a cell of '%s' that a copy is on its way to",
                  e->launch->now.thread - 1, b->name);
    else if (meets(e->launch->now, cell->writer))
        race(e, b, "reads", "stores", cell->writer);
    add(&cell->reader, e->launch->now);
}

void launch_write(Eval *e, const Buffer *b, const uint8_t *at, const uint8_t *value, uint32_t n)
{
    if (is_own(e, b))
        return;
    Cell *cell = cell_at(e, at);

    if (copies_reach(e->copies, at))
        eval_fail(e, "thread %u stores to a cell of '%s' that a copy is on its way to",
                  e->launch->now.thread - 1, b->name);
    else if (products_read(e->products, at))
        eval_fail(e, "thread %u stores to a cell of '%s' that products on their way read",
                  e->launch->now.thread - 1, b->name);
    else if (meets(e->launch->now, cell->reader))
        race(e, b, "stores to", "reads", cell->reader);
    else if (meets(e->launch->now, cell->writer) && memcmp(at, value, n))
        race(e, b, "stores to", "stores another value to", cell->writer);
    add(&cell->writer, e->launch->now);
}

uint8_t *launch_memory(const Eval *e)
{
    return e->launch->memory;
}

void launch_await(Eval *e, AwaitData what)
{
    if (what.products)
        products_await(e, what.groups);
    else
        copies_await(e, what.groups);
}

/* Fresh memory, which the block before may have had: nobody touched it. */
static Mem *forget(Eval *e, Mem *m, uint32_t cell)
{
    for (const uint8_t *at = m->first; at < m->end; at += cell)
        *cell_at(e, at) = (Cell){0};
    return m;
}

/* ---- threads ------------------------------------------------------------------------------------- */

static bool note_together(void *user, const Stmt *s)
{
    bool *found = user;

    *found = *found || s->kind == STMT_BARRIER || is_warp_store(s) ||
             (s->kind == STMT_ALLOC && s->u.buffer->scope == SCOPE_SHARED);
    return !*found;
}

static bool is_together(Launch *l, const Stmt *s)
{
    void *known;
    bool  found = false;

    if (map_find(l->together, PTR_KEY(s), &known))
        return known != NULL;
    stmt_visit(s, &(TirVisit){&found, note_together, NULL, NULL, NULL});
    map_put(l->together, PTR_KEY(s), found ? l : NULL);
    return found;
}

/* Thread i goes on: its names are the ones that count. */
void launch_enter(Eval *e, uint32_t i)
{
    e->n = e->launch->threads[i].n;
    e->launch->now.thread = i + 1;
    copies_of_thread(e->copies, i);
    products_of_thread(e->products, i);
    e->left = false;
    e->stamp++;
}

/* The threads that are on and have not left, one by one. */
static bool next(const Launch *l, const bool *on, uint32_t *i)
{
    while (*i < l->n && (!on[*i] || l->threads[*i].left))
        ++*i;
    return *i < l->n;
}

static void together(Eval *e, const Stmt *s, const bool *on);

static void divergent(Eval *e, const char *what)
{
    eval_fail(e, "a barrier that only some threads of the block come to: %s", what);
}

/* A loop whose rounds all threads take at once. */
static void loop_together(Eval *e, const Stmt *s, const bool *on)
{
    const LoopData *l = &s->u.loop;
    Launch         *x = e->launch;
    int64_t         n = -1, own;

    for (uint32_t i = 0; next(x, on, &i); i++) {
        launch_enter(e, i);
        own = eval_idx(e, l->extent);
        own = own < 0 ? 0 : own;
        if (n >= 0 && n != own)
            divergent(e, "their loops have other numbers of rounds");
        n = own;
    }
    for (int64_t k = 0; k < n && !e->bad; k++) {
        for (uint32_t i = 0; next(x, on, &i); i++) {
            launch_enter(e, i);
            eval_set_var(e, l->var, k ? eval_var(e, l->var) + 1 : eval_idx(e, l->lo));
        }
        together(e, s->kids[0], on);
    }
}

static int64_t number_of(const Launch *l, const Thread *t, BindAxis a)
{
    return a >= AXIS_THREAD_X ? t->number[a - AXIS_THREAD_X] : l->number[a - AXIS_BLOCK_X];
}

static void bound_together(Eval *e, const Stmt *s, const bool *on)
{
    const LoopData *l = &s->u.loop;
    Launch         *x = e->launch;
    bool           *in = NEW_ARRAY(e->arena, bool, x->n);

    for (uint32_t i = 0; next(x, on, &i); i++) {
        int64_t at = number_of(x, &x->threads[i], l->bind);
        launch_enter(e, i);
        in[i] = at < eval_idx(e, l->extent);
        if (in[i])
            eval_set_var(e, l->var, eval_idx(e, l->lo) + at);
    }
    together(e, s->kids[0], in);
}

/* The arm that all threads take; -1 for none. */
static int arm_together(Eval *e, const Stmt *s, const bool *on)
{
    int arm = -1, own;

    for (uint32_t i = 0, seen = 0; next(e->launch, on, &i); i++, seen++) {
        launch_enter(e, i);
        own = eval_cond(e, s->u.cond) ? 0 : s->nkids > 1 && s->kind == STMT_IF ? 1 : -1;
        if (seen && own != arm)
            divergent(e, "a condition is true for some of them only");
        arm = own;
    }
    return arm;
}

static void alloc_together(Eval *e, const Stmt *s, const bool *on)
{
    const Buffer *b = s->u.buffer;
    Launch       *x = e->launch;
    Mem          *of_block = NULL;
    uint32_t      at = b->id - x->threads[0].n.buffers.lo;

    for (uint32_t i = 0; next(x, on, &i); i++) {
        launch_enter(e, i);
        if (of_block) {
            e->n.mem[at] = of_block;
            continue;
        }
        eval_alloc(e, b);
        if (b->scope == SCOPE_SHARED)
            of_block = forget(e, e->n.mem[at], dtype_bytes(dtype_lanes(b->dtype, 1)));
    }
    together(e, s->kids[0], on);
}

static void barrier(Eval *e, const bool *on)
{
    Launch  *x = e->launch;
    uint32_t here = 0;

    for (uint32_t i = 0; next(x, on, &i); i++)
        here++;
    if (here && here < x->n)
        divergent(e, "others have left it or do not come this way");
    x->now.meeting++;
}

/* ---- instructions of a warp ---------------------------------------------------------------------- */

/* What each thread of the warp that begins with `first` has for p. */
static void warp_value(Eval *e, const Prim *p, uint32_t first, uint32_t threads,
                       uint8_t (*out)[WARP_PART])
{
    const DType t = dtype_lanes(p->dtype, 1);
    uint8_t     part[INTRIN_OPERANDS][WARP_MOST][WARP_PART], (*kid[INTRIN_OPERANDS])[WARP_PART];

    if (p->kind == PRIM_INTRIN && p->u.intrin->warp) {
        for (uint32_t i = 0; i < p->nkids; i++)
            warp_value(e, p->kids[i], first, threads, kid[i] = part[i]);
        warp_compute(p->u.intrin, kid, out);
        return;
    }
    for (uint32_t i = 0; i < threads && !e->bad; i++) {
        launch_enter(e, first + i);
        for (uint32_t k = 0; k < p->dtype.lanes && dtype_bytes(p->dtype) <= WARP_PART; k++)
            scalar_put(t, out[i] + k * dtype_bytes(t), eval_prim(e, p, k));
    }
}

static void warp_store(Eval *e, const StoreData *d, const bool *on)
{
    const DType    t = dtype_lanes(d->value->dtype, 1);
    const uint32_t threads = warp_threads(d->value->u.intrin->warp);
    const Launch  *x = e->launch;
    uint8_t        value[WARP_MOST][WARP_PART] = {{0}};

    for (uint32_t first = 0; first < x->n && !e->bad; first += threads) {
        uint32_t here = 0;
        for (uint32_t i = first; i < first + threads && i < x->n; i++)
            here += on[i] && !x->threads[i].left;
        if (!here)
            continue;
        if (here < threads) {
            eval_fail(e, "%s, which only some threads of a warp come to", d->value->u.intrin->text);
            return;
        }
        warp_value(e, d->value, first, threads, value);
        for (uint32_t i = 0; i < threads && !e->bad; i++) {
            launch_enter(e, first + i);
            for (uint32_t k = 0; k < d->value->dtype.lanes; k++) {
                e->lanes[k] = scalar_get(t, value[i] + k * dtype_bytes(t));
                e->on[k] = true;
            }
            eval_store_lanes(e, d);
        }
    }
}

/* ---- instructions of four warps (eval_group.c) ---------------------------------------------------- */

static void group_store(Eval *e, const StoreData *d, const bool *on)
{
    const Launch *x = e->launch;

    for (uint32_t first = 0; first < x->n && !e->bad; first += GROUP_THREADS) {
        uint32_t here = 0;
        for (uint32_t i = first; i < first + GROUP_THREADS && i < x->n; i++)
            here += on[i] && !x->threads[i].left;
        if (here == GROUP_THREADS)
            products_start(e, d, first);
        else if (here)
            eval_fail(e, "%s, which only some threads of a group come to",
                      d->value->u.intrin->text);
    }
}

static void together(Eval *e, const Stmt *s, const bool *on)
{
    Launch *x = e->launch;
    int     arm;

    if (e->bad)
        return;
    if (!is_together(x, s)) {
        for (uint32_t i = 0; next(x, on, &i) && !e->bad; i++) {
            launch_enter(e, i);
            eval_stmt(e, s);
            x->threads[i].left = e->left;
        }
        return;
    }
    switch (s->kind) {
    case STMT_SEQ:
        for (uint32_t i = 0; i < s->nkids; i++)
            together(e, s->kids[i], on);
        return;
    case STMT_FOR:
        if (s->u.loop.bind)
            bound_together(e, s, on);
        else
            loop_together(e, s, on);
        return;
    case STMT_IF:
        if ((arm = arm_together(e, s, on)) >= 0)
            together(e, s->kids[arm], on);
        return;
    case STMT_WHILE:
        while (!e->bad && arm_together(e, s, on) == 0)
            together(e, s->kids[0], on);
        return;
    case STMT_ALLOC: alloc_together(e, s, on); return;
    case STMT_BARRIER: barrier(e, on); return;
    case STMT_STORE:
        if (s->u.store.value->u.intrin->group)
            group_store(e, &s->u.store, on);
        else
            warp_store(e, &s->u.store, on);
        return;
    case STMT_BLOCK:
    case STMT_CALL:
    case STMT_PREFETCH:
    case STMT_AWAIT:
    case STMT_REGION:
    case STMT_LAUNCH:
    case STMT_COPY:
    case STMT_VIEW:
    case STMT_INVOKE:
    case STMT_SWITCH:
    case STMT_RETURN:
    case STMT_FAIL: eval_fail(e, "a barrier or shared memory where no device has them"); return;
    }
}

/* A loop without a barrier inside: one thread is running. */
void eval_bound(Eval *e, const Stmt *s)
{
    const LoopData *l = &s->u.loop;
    const Launch   *x = e->launch;
    int64_t         at = number_of(x, &x->threads[x->now.thread - 1], l->bind);

    if (at >= eval_idx(e, l->extent))
        return;
    eval_set_var(e, l->var, eval_idx(e, l->lo) + at);
    eval_stmt(e, s->kids[0]);
}

/* ---- a launch ------------------------------------------------------------------------------------- */

/* Threads know what the parameters are, and nothing else. */
static void make_threads(Eval *e, const Func *f, Names ids, const int64_t block[3])
{
    Launch *x = e->launch;
    size_t  nmem = eval_span(ids.buffers);

    x->threads = NEW_ARRAY(e->arena, Thread, x->n);
    x->on = NEW_ARRAY(e->arena, bool, x->n);
    for (uint32_t i = 0; i < x->n; i++) {
        Thread *t = &x->threads[i];
        t->number[0] = i % block[0];
        t->number[1] = i / block[0] % block[1];
        t->number[2] = i / block[0] / block[1];
        t->n = ids;
        t->n.vars = eval_vars(e->arena, ids.atoms);
        t->n.mem = NEW_ARRAY(e->arena, Mem *, nmem);
        x->on[i] = true;
        for (uint32_t k = 0; k < f->nparams; k++) {
            const Param *p = &f->params[k];
            if (p->scalar) {
                uint32_t at = p->scalar->id - ids.atoms.lo;
                t->n.vars.value[at] = eval_var(e, p->scalar);
                t->n.vars.bound[at] = true;
            } else {
                t->n.mem[p->buffer->id - ids.buffers.lo] =
                    e->n.mem[p->buffer->id - e->n.buffers.lo];
            }
        }
    }
}

void eval_launch(Eval *e, const Func *f, const int64_t grid[3], const int64_t block[3])
{
    const Names *ids = map_get(e->measured, PTR_KEY(f));
    Names        outer = e->n;
    Arena       *arena = e->arena;
    uint32_t     most = f->target && f->target->max_threads ? f->target->max_threads : 1;
    Launch       x = {.n = 1};

    for (int i = 0; i < 3; i++) {
        if (grid[i] < 1 || block[i] < 1 || block[i] > most / x.n) {
            eval_fail(e,
                      "a launch of blocks of %" PRId64 " x %" PRId64 " x %" PRId64
                      " threads, where %u fit",
                      block[0], block[1], block[2], most);
            return;
        }
        x.n *= (uint32_t)block[i];
    }
    e->arena = arena_new(NULL);
    e->launch = &x;
    x.pages = map_new(e->arena);
    x.together = map_new(e->arena);
    x.memory = arena_alloc(e->arena, (size_t)func_shared_bytes(e->c, f) + 1);
    e->copies = copies_new(e->arena, x.n);
    e->products = products_new(e->arena, x.n);
    make_threads(e, f, *ids, block);
    for (int64_t i = 0; i < grid[0] * grid[1] * grid[2] && !e->bad; i++) {
        x.number[0] = i % grid[0];
        x.number[1] = i / grid[0] % grid[1];
        x.number[2] = i / grid[0] / grid[1];
        x.now.block++;
        x.now.meeting++;
        for (uint32_t k = 0; k < x.n; k++)
            x.threads[k].left = false;
        copies_drop(e->copies);
        products_drop(e->products);
        together(e, f->body, x.on);
    }
    arena_free(e->arena);
    e->arena = arena;
    e->launch = NULL;
    e->copies = NULL;
    e->products = NULL;
    e->n = outer;
    e->stamp++;
}
