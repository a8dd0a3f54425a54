/* Sorts and running sums on a GPU: a block of threads goes through the rounds of a row, or of a
 * chunk of it, or of several short rows.
 *
 *     reverse_compute_at key %takes.j     a round of a network as one loop
 *     reverse_compute_at position %takes.j
 *     compute_at met %takes.j;  set_scope met reg
 *     split i0 by 2 tail=if -> rb, ry     rows of a block, each statement for all of them
 *     distribute ry;  bind rb blockIdx.x;  bind ry threadIdx.y
 *     split takes.j by 512 tail=if -> r, x;  reorder x, r;  bind x threadIdx.x
 *     set_scope key shared;  set_scope position shared
 *
 * What is carried lies in memory that the block shares, two of it by turns, so that threads meet
 * once a round (passes/tir/fold_storage.c, thread_sync.c).  Where no dimension but the axis of the
 * rows lies behind it, neighbouring threads have neighbouring cells, else rows.  Merges of sorted
 * runs, and sums of columns, are a thread's each.  Each scan is a launch. */
#include "schedules/gpu/gpu.h"

#include <math.h>
#include <string.h>

enum { MAX_PARTS = 32 };

/* A scan of the kernel, or what is computed cell by cell. */
typedef struct {
    const Stmt  *seq;   /* the loop over its rounds; NULL: there is none */
    Loops        outer; /* around it */
    const char  *lanes; /* the block that has the cells of a round, NULL: each thread its own */
    DeviceRounds of;
    int64_t      rows, threads; /* of a block; of each row */
    bool         along;         /* cells lie along rows */
    uint32_t     together;      /* the outer loop of which a block has several rounds */
} Part;

typedef struct {
    uint32_t n;
    Part     at[MAX_PARTS];
} Parts;

/* Its name is that, or that and a number, or the start of it. */
static bool is_called(const char *block, const char *name)
{
    size_t n = strlen(name);

    return !strncmp(block, name, n) && (!block[n] || block[n] == '.');
}

/* ---- what there is ------------------------------------------------------------------------------- */

static const Stmt *seq_in(const Stmt *s)
{
    const Stmt *found = s->kind == STMT_FOR && s->u.loop.kind == LOOP_SEQ ? s : NULL;

    for (uint32_t i = 0; i < s->nkids && !found; i++)
        found = seq_in(s->kids[i]);
    return found;
}

static const char *block_in(const Stmt *s, const char *name)
{
    const char *found =
        s->kind == STMT_BLOCK && is_called(s->u.block.name, name) ? s->u.block.name : NULL;

    for (uint32_t i = 0; i < s->nkids && !found && s->kind != STMT_BLOCK; i++)
        found = block_in(s->kids[i], name);
    return found;
}

typedef struct {
    const Atom *along;
    bool        found;
} Last;

static void find_last(void *user, const Prim *p)
{
    Last *l = user;

    if (p->kind == PRIM_LOAD && p->u.load.n)
        l->found = l->found || idx_uses(p->u.load.index[p->u.load.n - 1], l->along);
}

/* What a start reads lies along its own axis. */
static bool is_along(const Stmt *block)
{
    Last l = {block->u.block.iter[block->u.block.nspatial - 1], false};

    stmt_visit(block, &(TirVisit){.user = &l, .prim = find_last});
    return l.found;
}

/* Sizes of a scan whose rounds have the block's cells; false: it is none of ours. */
static bool measure(const Sched *s, Part *p)
{
    const char *state = block_in(p->seq, "key"), *init;
    bool        sort = state != NULL;

    state = sort ? state : p->lanes;
    init = arena_printf(s->c->scratch, "%s.init", state);
    const Stmt      *b = sched_block(s, p->lanes), *start = sched_block(s, init);
    const Buffer    *cells = start ? start->kids[0]->u.store.buffer : NULL;
    const BlockData *d = &b->u.block;
    int64_t          rounds, lanes;

    if (!cells || !idx_is_const(p->seq->u.loop.extent, &rounds) ||
        !idx_is_const(cells->extent[cells->ndim - 1], &lanes) || d->nspatial != cells->ndim)
        return false;
    int64_t rows = p->outer.n ? p->outer.cells : 1, bytes = dtype_bytes(cells->dtype);

    p->of = sort ? device_network(rows, lanes, rounds, bytes)
                 : device_doubling(rows, lanes, rounds, bytes);
    p->of.open = p->outer.open;
    p->along = is_along(start);
    /* Neighbours where a row's cells are none, else the most. */
    for (uint32_t i = 1; i < p->outer.n; i++) {
        const Idx *most = sched_loop_form(s, p->outer.at[p->together]),
                  *here = sched_loop_form(s, p->outer.at[i]);
        if (p->along ? idx_usual(here) > idx_usual(most) : i + 1 < p->outer.n && here->hi > 1)
            p->together = i;
    }
    p->of.together = p->outer.n ? idx_usual(sched_loop_form(s, p->outer.at[p->together])) : 1;
    return true;
}

/* The nests of the kernel, in order; false: there are others than ours. */
static bool find_parts(Sched *s, const Stmt *f, Parts *all)
{
    if (f->kind == STMT_ALLOC || f->kind == STMT_SEQ) {
        for (uint32_t i = 0; i < f->nkids; i++)
            if (!find_parts(s, f->kids[i], all))
                return false;
        return true;
    }
    if (all->n == MAX_PARTS || f->kind != STMT_FOR)
        return false;
    Part       *p = &all->at[all->n++];
    const Stmt *body = f;

    *p = (Part){.seq = seq_in(f)};
    for (; body->kind == STMT_FOR && body->u.loop.kind == LOOP_SPATIAL; body = body->kids[0])
        loops_add(s, &p->outer, body->u.loop.var->name);
    if (!p->seq)
        return true;
    const char *sort = block_in(p->seq, "takes"), *sum = block_in(p->seq, "total");

    if (sum && sched_block(s, sum)->u.block.nspatial <= p->outer.n + 1)
        sum = NULL;
    p->lanes = sort ? sort : sum;
    return p->lanes ? measure(s, p) : block_in(p->seq, "first") || block_in(p->seq, "total");
}

/* ---- what is chosen ------------------------------------------------------------------------------ */

static void decide_rounds(Sched *s, void *plan)
{
    static const char *const names[] = {"block", "second", "third", "fourth"};
    Parts                   *all = plan;
    Machine                  m = machine_of(s->target);
    uint32_t                 scans = 0;
    int64_t                  threads;

    for (uint32_t i = 0; i < all->n; i++) {
        Part      *p = &all->at[i];
        Candidates k = candidates(s);

        if (!p->lanes)
            continue;
        for (int64_t each = 0; (threads = device_rounds_threads(&m, &p->of, each)) != 0; each++)
            for (int64_t rows = 1; threads > 0 && device_rounds_fit(&m, &p->of, rows, threads);
                 rows *= 2)
                candidate(&k, rows, threads, device_rounds_cycles(&m, &p->of, rows, threads));
        p->threads = 0;
        if (!k.of.n || scans == COUNT(names))
            return;
        const Candidate *best = pick_tile(s, names[scans++], &k);
        p->rows = best->v[0];
        p->threads = best->v[1];
    }
}

/* ---- what is made of it -------------------------------------------------------------------------- */

/* The cells of a block, along its own axis, by the threads of a row. */
static void cells_by_threads(Sched *s, const Part *p, const char *block)
{
    const BlockData *d = &sched_block(s, block)->u.block;
    const Atom      *own = d->iter[d->nspatial - 1];

    if (own->lo == own->hi) /* everybody's */
        return;
    step(s, "split %%%s.%s by %lld tail=if -> %%%s.r, %%%s.x", block, own->name,
         (long long)p->threads, block, block);
    step(s, "reorder %%%s.x, %%%s.r", block, block);
    step(s, "bind %%%s.x threadIdx.%s", block, p->along ? "x" : "y");
}

/* So many rounds of a loop around a scan, side by side in all of its statements. */
static void rows_by_threads(Sched *s, Part *p, const char *row)
{
    Loops rest = {0}, thread = {0}, *lists[] = {&rest, &thread};

    step(s, "split %%%s by %lld tail=if -> %%%s.b, %%%s.y", p->outer.at[p->together],
         (long long)p->rows, row, row);
    p->outer.at[p->together] = intern_printf(s->c->strings, "%s.b", row);
    loops_add(s, &thread, arena_printf(s->c->scratch, "%s.y", row));
    for (uint32_t i = p->together + 1; i < p->outer.n; i++)
        loops_add(s, &rest, p->outer.at[i]);
    if (rest.n)
        step(s, "reorder %s", loops_text(s, 2, (const Loops *const *)lists));
    step(s, "distribute %%%s.y", row);
}

typedef VEC(const char *) Names;

static void collect_blocks(Sched *s, const Stmt *f, Names *all)
{
    if (f->kind == STMT_BLOCK)
        vec_push(s->c->scratch, all, f->u.block.name);
    for (uint32_t i = 0; i < f->nkids && f->kind != STMT_BLOCK; i++)
        collect_blocks(s, f->kids[i], all);
}

static const Stmt *nest_of(const Stmt *f, const char *block)
{
    if (f->kind == STMT_ALLOC || f->kind == STMT_SEQ) {
        const Stmt *found = NULL;

        for (uint32_t i = 0; i < f->nkids && !found; i++)
            found = nest_of(f->kids[i], block);
        return found;
    }
    return block_in(f, block) ? f : NULL;
}

/* A round of a network as one loop: what a cell meets, whether it becomes that, and what it is. */
static void join_round(Sched *s, const Part *p)
{
    static const char *const behind[] = {"key", "position"}, *const before[] = {"met", "met_at"};

    for (uint32_t i = 0; i < COUNT(behind); i++)
        step(s, "reverse_compute_at %s %%%s.j", block_in(p->seq, behind[i]), p->lanes);
    for (uint32_t i = 0; i < COUNT(before); i++) {
        const char *met = block_in(p->seq, before[i]);
        step(s, "compute_at %s %%%s.j", met, p->lanes);
        step(s, "set_scope %%%s reg", met);
    }
    step(s, "set_scope %%%s reg", p->lanes);
}

static void scan_a_block(Sched *s, Part *p, uint32_t number)
{
    static const char *const shared[] = {"mask", "key", "position", "total"};
    const char              *row = arena_printf(s->c->scratch, "row.%u", number);
    const uint32_t           outer = p->outer.n;
    Names                    blocks = {0};

    if (is_called(p->lanes, "takes")) {
        const Stmt *nest = nest_of(s->f->body, p->lanes);
        const char *stage = block_in(nest, "stage");

        step(s, "compute_at %s %%%s.u", stage, block_in(nest, "mask"));
        step(s, "set_scope %%%s reg", stage);
        join_round(s, p);
    }
    if (p->rows > 1)
        rows_by_threads(s, p, row);
    loops_bind(s, &p->outer, row, "blockIdx.x");
    if (p->rows > 1)
        step(s, "bind %%%s.y threadIdx.%s", row, p->along ? "y" : "x");
    collect_blocks(s, nest_of(s->f->body, p->lanes), &blocks);
    for (uint32_t i = 0; i < blocks.n; i++) {
        const char *b = blocks.at[i];
        for (uint32_t k = 0; k < COUNT(shared); k++)
            if (is_called(b, shared[k]) && !strstr(b, ".init"))
                step(s, "set_scope %%%s shared", b);
        if (!is_called(b, "stage") && (b == p->lanes || !block_in(p->seq, b)) &&
            sched_block(s, b)->u.block.nspatial > outer)
            cells_by_threads(s, p, b);
    }
}

/* A cell, or a column, a thread. */
static void cell_a_thread(Sched *s, Part *p, uint32_t number)
{
    const Machine m = machine_of(s->target);
    const char   *name = arena_printf(s->c->scratch, "row.%u", number);
    const char   *carried = p->seq ? block_in(p->seq, "first") : NULL;

    carried = carried || !p->seq ? carried : block_in(p->seq, "total");
    if (carried)
        try_step(s, "set_scope %%%s reg", carried);
    loops_fuse(s, &p->outer, name);
    if (p->outer.n)
        bind_cells(s, name, p->outer.at[0], limit_gpu_threads(&m));
}

void sched_gpu_rounds(Sched *s)
{
    Parts all = {0};

    if (!find_parts(s, s->f->body, &all)) {
        sched_gpu(s);
        return;
    }
    sched_decide(s, decide_rounds, &all);
    for (uint32_t i = 0; i < all.n; i++)
        if (all.at[i].lanes && !all.at[i].threads) {
            sched_gpu(s);
            return;
        }
    for (uint32_t i = 0; i < all.n; i++) {
        if (all.at[i].lanes)
            scan_a_block(s, &all.at[i], i);
        else
            cell_a_thread(s, &all.at[i], i);
    }
}
