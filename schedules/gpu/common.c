/* What the rules for GPUs share: what stands before and behind a block, lists of loops. */
#include "schedules/gpu/gpu.h"

#include <string.h>

enum { LONG_TAPS = 32 }; /* of a sum that is written out */

void loops_add(const Sched *s, Loops *l, const char *name)
{
    const Idx *rounds = sched_loop_form(s, name);

    if (l->n == MAX_LOOPS || !rounds)
        return;
    l->cells = (l->n ? l->cells : 1) * idx_usual(rounds);
    if (!idx_is_const(rounds, NULL))
        l->open = (l->open ? l->open : 1) * idx_usual(rounds);
    l->at[l->n++] = intern(s->c->strings, name);
}

const char *loops_text(const Sched *s, uint32_t n, const Loops *const *lists)
{
    StrBuf text = strbuf(s->c->arena);

    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < lists[i]->n; k++)
            str_printf(&text, text.n ? ", %%%s" : "%%%s", lists[i]->at[k]);
    return text.n ? text.at : "";
}

void open_first(const Sched *s, Loops *l)
{
    const Loops was = *l;
    int64_t     n;

    *l = (Loops){0};
    for (int known = 0; known < 2; known++)
        for (uint32_t i = 0; i < was.n; i++)
            if (sched_loop_extent(s, was.at[i], &n) == known)
                loops_add(s, l, was.at[i]);
}

void loops_fuse(Sched *s, Loops *l, const char *name)
{
    const Loops *one = l;
    bool         open = false; /* inside of another */
    int64_t      n;

    if (l->n < 2)
        return;
    for (uint32_t i = 1; i < l->n; i++)
        open = open || !sched_loop_extent(s, l->at[i], &n);
    step(s, "fuse %s%s -> %%%s", loops_text(s, 1, &one), open ? " extents=any" : "", name);
    l->at[0] = intern(s->c->strings, name);
    l->n = 1;
}

void loops_bind(Sched *s, Loops *l, const char *name, const char *axis)
{
    loops_fuse(s, l, name);
    if (l->n)
        step(s, "bind %%%s %s", l->at[0], axis);
}

void bind_blocks(Sched *s, Loops *l, const char *name)
{
    static const char *const axis[] = {"blockIdx.y", "blockIdx.z"};
    Loops                    along = {0};
    uint32_t                 open = 0, n = 0;
    int64_t                  known;

    for (uint32_t i = 0; i < l->n; i++)
        open += !sched_loop_extent(s, l->at[i], &known);
    for (uint32_t i = 0; i < l->n; i++) {
        const int64_t most = sched_loop_form(s, l->at[i])->hi;
        if (!along.n && open > 1 && n < COUNT(axis) && !sched_loop_extent(s, l->at[i], &known) &&
            most <= s->target->max_blocks[1 + n]) {
            step(s, "bind %%%s %s", l->at[i], axis[n++]);
            open--;
        } else {
            loops_add(s, &along, l->at[i]);
        }
    }
    *l = along;
    loops_bind(s, l, name, "blockIdx.x");
}

int64_t sum_rounds(const Sched *s, const char *block)
{
    const BlockData *b = &sched_block(s, block)->u.block;
    int64_t          rounds = 1;

    for (uint32_t i = b->nspatial; i < b->nspatial + b->nreduce; i++)
        if (!checked_mul(rounds, atom_usual(b->iter[i]), &rounds))
            return INT64_MAX;
    return rounds;
}

/* Of what is computed several times once, but once in each arm, which keeps what it has. */
static int64_t written(Sched *s, const Prim *p, Map *seen)
{
    int64_t n = 1;

    if (map_get(seen, p->id))
        return 0;
    map_put(seen, p->id, s);
    for (uint32_t i = 0; i < p->nkids; i++)
        n += written(s, p->kids[i], p->kind == PRIM_CASE ? map_new(s->c->scratch) : seen);
    return n;
}

int64_t written_operations(Sched *s, const char *block)
{
    const Stmt *b = sched_block(s, block), *store = b->kids[b->nkids - 1];

    return store->kind == STMT_STORE ? written(s, store->u.store.value, map_new(s->c->scratch)) : 1;
}

/* How many rounds of the sum are written out. */
static int64_t most_taps(Sched *s, const char *block)
{
    const Machine m = machine_of(s->target);
    int64_t       most = limit_gpu_operations(&m) / written_operations(s, block);

    return most < LONG_TAPS ? most : LONG_TAPS;
}

void write_short_sum(Sched *s, const char *block)
{
    const BlockData *b = &sched_block(s, block)->u.block;

    if (sum_rounds(s, block) > most_taps(s, block))
        return;
    for (uint32_t i = b->nspatial; i < b->nspatial + b->nreduce; i++)
        if (b->iter[i]->hi > b->iter[i]->lo)
            try_step(s, "unroll %%%s.%s", block, b->iter[i]->name);
}

void write_inner_sum(Sched *s, const char *block)
{
    const BlockData *b = &sched_block(s, block)->u.block;
    int64_t          taps = 1, most = most_taps(s, block);

    for (uint32_t i = b->nspatial + b->nreduce; i-- > b->nspatial;) {
        const Atom *v = b->iter[i];
        if (v->hi > v->lo && atom_usual(v) > most / taps)
            return;
        taps *= atom_usual(v);
        if (v->hi > v->lo)
            try_step(s, "unroll %%%s.%s", block, v->name);
    }
}

const char *only_follower(Sched *s, const char *block, bool *alone)
{
    const char *names[MAX_BLOCKS], *follow = NULL;
    uint32_t    n = sched_blocks(s, names, MAX_BLOCKS), at = 0;

    while (at < n && strcmp(names[at], block) != 0)
        at++;
    for (uint32_t i = at + 1; i + 1 < n; i++)
        try_step(s, "compute_inline %s", names[i]);
    n = sched_blocks(s, names, MAX_BLOCKS);
    *alone = at + 2 >= n;
    if (at + 2 == n)
        follow = names[at + 1];
    return follow;
}

void copy_cells(Sched *s, const char *tensor, const char *scope, const char *block,
                const Loops *sum, const Loops *thread, const char *at)
{
    const Loops *lists[] = {sum, thread};

    step(s, "cache_read %%%s %s %s %s at %%%s", tensor, block, scope, loops_text(s, 2, lists), at);
    if (strcmp(block, tensor) != 0 && sched_block(s, tensor))
        step(s, "compute_inline %s", tensor);
}

void transpose_copy(Sched *s, const char *tensor, uint32_t nsum, const Loops *thread, int64_t quad,
                    int64_t numbers, bool fours)
{
    StrBuf         across = strbuf(s->c->scratch);
    int64_t        banks = 32, by = thread->cells < banks ? thread->cells : banks;
    const uint32_t outside = thread->n - fours;

    step(s, "storage_align %%%s.shared dim=%u by %lld offset=%lld", tensor, nsum - 1,
         (long long)(numbers * (by > quad ? by : 2 * quad)), (long long)(numbers * quad));
    for (uint32_t n = 0; n < outside; n++)
        str_printf(&across, "%%%s.shared.a%u, ", tensor, nsum + n);
    for (uint32_t n = 0; n < nsum; n++)
        str_printf(&across, n ? ", %%%s.shared.a%u" : "%%%s.shared.a%u", tensor, n);
    if (fours)
        str_printf(&across, ", %%%s.shared.a%u", tensor, nsum + outside);
    step(s, "reorder %s", across.at);
    if (fours)
        step(s, "unroll %%%s.shared.a%u", tensor, nsum + outside);
}
