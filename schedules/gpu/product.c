/* Matrix products and convolutions on a GPU: tiles in shared memory, or in registers alone
 * (direct.c); cells in registers.
 *
 *     %conv[n,o,y,x] = sum[c,kh,kw] %pad[n,c,kh+y,kw+x] * %w[o,c,kh,kw]
 *
 * is a product of m = (n, y, x), which choose cells of the data alone, by n = (o), which choose
 * weights alone; what chooses both (batches, groups) counts products.
 *
 *     fuse n, y, x -> m;  split m by 64 -> mb, mi;  split mi by 4 -> mt, mr;  the same for n
 *     split c by 8 -> ko, c.i                a chunk of the sum: the inner loops, and a part of one
 *     reorder mb, nb, mt, nt, ko, c.i, kh, kw, mr, nr
 *     fuse mb, nb -> blk;  bind blk blockIdx.x, mt threadIdx.x, nt threadIdx.y
 *     cache_write conv reg at nt             tm by tn sums in registers
 *     cache_read pad shared c.i, kh, kw, mt, mr at ko     implicit GEMM: the tile's columns lie
 *     cache_read w shared c.i, kh, kw, nt, nr at ko       side by side, wherever they come from
 *     compute_inline pad                     zeros are chosen where the copy is made
 *     unguard conv                           tiles hang over the edges; only stores ask
 *
 * Behind a depthwise convolution, each number of the tile is made where it would be copied:
 * compute_at conv at the innermost loop of the copy.
 *
 * Where a tile has too few cells for threads, groups of them have the whole tile and a part of each
 * chunk, and what they have at the end is added up through shared memory, in order:
 *
 *     split c.i by 2 -> kz, kj;  reorder mb, nb, kz, mt, nt, ko, kj, ..
 *     rfactor kz at blk;  set_scope conv.rf shared;  bind kz threadIdx.z
 *
 * Where a long sum has few results, blocks of threads have parts of it (`rfactor`), and a second
 * launch adds these up in order.
 *
 * Bytes are multiplied four a step where the target adds four products (dot4): a word is what a
 * number is otherwise, its bytes neighbouring steps of the sum.
 *
 *     split c by 4 -> kc, kd;  tensorize kd with @dot4;  vectorize the copies' bytes
 *     transform_layout w (o, c, kh, kw) -> (c//4, kh, kw, o, c%4)
 *
 * So strides, dilation, groups, batches, transposed operands and sizes that no tile divides are all
 * one nest.  What is computed before the operands is inlined where they are copied.  Sums are made
 * in the order of the formula.  Operands of 16 and 8 bits are multiplied by instructions of warps
 * where the target has them (tensor.c).  A product with a single row is a reduction of each row of
 * the other side (rows.c). */
#include "ir/tir/intrin.h"
#include "schedules/gpu/gpu.h"

#include <math.h>
#include <string.h>

/* ---- what is multiplied -------------------------------------------------------------------------- */

static void note_load(void *user, const Prim *p)
{
    Operand *o = user;

    if (p->kind != PRIM_LOAD)
        return;
    bool same = !o->loads || o->tensor == p->u.load.buffer;
    for (uint32_t d = 0; same && o->loads && d < p->u.load.n; d++)
        same = o->index[d] == p->u.load.index[d];
    o->alike = same && (!o->loads || o->alike);
    o->tensor = p->u.load.buffer;
    o->index = p->u.load.index;
    o->loads++;
}

static Operand operand(const Prim *p)
{
    Operand o = {0};

    prim_visit(p, &(TirVisit){&o, NULL, NULL, note_load, NULL});
    return o;
}

/* sum = sum + a * b, or fma(a, b, sum). */
static bool find_operands(const Stmt *block, Product *p)
{
    const Stmt *store = block->kids[block->nkids - 1];
    const Prim *v = store->kind == STMT_STORE ? store->u.store.value : NULL;

    if (v && v->kind == PRIM_ADD && v->kids[1]->kind == PRIM_MUL)
        v = v->kids[1];
    else if (!v || v->kind != PRIM_FMA)
        return false;
    p->a = operand(v->kids[0]);
    p->b = operand(v->kids[1]);
    return p->a.alike && p->b.alike && p->a.tensor != p->b.tensor;
}

static bool chooses(const Operand *o, const Atom *v)
{
    for (uint32_t d = 0; d < o->tensor->ndim; d++)
        if (idx_uses(o->index[d], v))
            return true;
    return false;
}

/* v chooses only by v//g. */
static bool chooses_group(const Operand *o, const Atom *v, int64_t *g)
{
    *g = 0;
    for (uint32_t d = 0; d < o->tensor->ndim; d++)
        for (uint32_t i = 0; i < o->index[d]->nterms; i++) {
            const Atom *a = o->index[d]->t[i].atom, *of;
            bool        div = a->kind == ATOM_DIV && idx_is_atom(a->a, &of) && of == v;
            if (div && (!*g || *g == a->k))
                *g = a->k;
            else if (div || a == v || (a->kind != ATOM_VAR && idx_uses(a->a, v)))
                return false;
        }
    return *g > 0;
}

static bool uses_sum(const BlockData *b, const Idx *i)
{
    for (uint32_t k = b->nspatial; k < b->nspatial + b->nreduce; k++)
        if (idx_uses(i, b->iter[k]))
            return true;
    return false;
}

/* Cells of the operand that lie side by side are steps of the sum. */
static bool lies_along(const Operand *o, const BlockData *b)
{
    for (uint32_t d = o->tensor->ndim; d-- > 0;) {
        if (idx_is_const(o->index[d], NULL))
            continue;
        for (uint32_t k = 0; k < b->nspatial; k++)
            if (idx_uses(o->index[d], b->iter[k]))
                return false; /* a row of an image, too */
        return uses_sum(b, o->index[d]);
    }
    return false;
}

/* Which loops choose what. */
static bool find_loops(const Sched *s, Product *p)
{
    const BlockData *b = &sched_block(s, p->block)->u.block;
    bool             m_last = false;

    for (uint32_t i = 0; i < b->nspatial + b->nreduce; i++) {
        const Atom *v = b->iter[i];
        const char *loop = arena_printf(s->c->scratch, "%s.%s", p->block, v->name);
        bool        of_a = chooses(&p->a, v), of_b = chooses(&p->b, v);
        const Idx  *extent = sched_loop_form(s, loop);
        if (!extent)
            return false;
        const int64_t rounds = idx_usual(extent);
        if (i >= b->nspatial) {
            loops_add(s, &p->k, loop);
        } else if (of_a && of_b && !p->group && chooses_group(&p->a, v, &p->group)) {
            p->grouped = v;
            p->groups = intern(s->c->strings, loop);
            loops_add(s, &p->n, loop);
            m_last = false;
        } else if (of_a == of_b) {
            loops_add(s, &p->both, loop);
            p->beside = p->beside || rounds > 1;
        } else {
            loops_add(s, of_a ? &p->m : &p->n, loop);
            m_last = rounds > 1 ? of_a : m_last;
            p->beside = p->beside && rounds < 2;
        }
    }
    p->m_inner = m_last;
    p->a_along_k = lies_along(&p->a, b);
    p->b_along_k = lies_along(&p->b, b);
    return p->k.n > 0;
}

/* 16 bytes of its numbers can be copied at a time: the target has such copies, and one loop of the
 * tile's side walks the last dimension, or the last that is not the sum's where this is moved. */
static bool comes_wide(const Sched *s, const Product *p, const Operand *o, const Loops *side,
                       bool along_k, bool moved)
{
    const BlockData *b = &sched_block(s, p->block)->u.block;
    uint32_t         d = o->tensor->ndim;
    const Atom      *v;

    if (!gpu_copies(s->c, s->target, o->tensor->dtype) || side->n != 1 || p->group || along_k)
        return false;
    while (d && (idx_is_const(o->index[d - 1], NULL) || (moved && uses_sum(b, o->index[d - 1]))))
        d--;
    return d && idx_is_atom(o->index[d - 1], &v) && v->kind == ATOM_VAR;
}

/* `moved`: the weights lie as transpose_weights has left them. */
static DeviceTile shape_of(Sched *s, const Product *p, bool moved)
{
    Machine     m = machine_of(s->target);
    int64_t     groups = p->group ? (p->grouped->hi + 1) / p->group : 1;
    const Stmt *block = sched_block(s, p->block), *store = block->kids[block->nkids - 1];
    DeviceTile  t = {.m = p->m.cells,
                     .n = p->n.cells / groups,
                     .k = p->k.cells,
                     .batch = (p->both.n ? p->both.cells : 1) * groups,
                     .bytes = p->words ? WORD : dtype_bytes(p->a.tensor->dtype),
                     .sum_bytes = dtype_bytes(store->u.store.buffer->dtype),
                     .open = {p->m.open, p->n.open, p->k.open, p->both.open}};

    t.wide = device_quad(&m, t.bytes);
    if (!p->words) {
        t.load_m = direct_load(s, p, &p->a, &p->m, false);
        t.load_n = direct_load(s, p, &p->b, &p->n, moved);
    }
    t.keeps_m = !comes_wide(s, p, &p->a, &p->m, p->a_along_k, false);
    t.keeps_n = !comes_wide(s, p, &p->b, &p->n, p->b_along_k && !moved, moved);
    if (p->words)
        t.keeps_m = t.keeps_n = true;
    return t;
}

/* ---- the steps ----------------------------------------------------------------------------------- */

/* What the operands' producers are made of, in them: they are made where they are copied. */
static void inline_before(Sched *s, const Product *p)
{
    const char *names[MAX_BLOCKS];
    uint32_t    n = sched_blocks(s, names, MAX_BLOCKS);

    for (uint32_t i = 0; i < n && strcmp(names[i], p->block) != 0; i++)
        if (strcmp(names[i], p->a.tensor->name) != 0 && strcmp(names[i], p->b.tensor->name) != 0)
            try_step(s, "compute_inline %s", names[i]);
}

/* The sum's loops: those around the chunk, and those in it. */
static void split_sum(Sched *s, const Product *p, const TilePlan *plan, Loops *outer, Loops *inner)
{
    for (uint32_t i = 0; i < p->k.n; i++) {
        if (i < plan->level)
            loops_add(s, outer, p->k.at[i]);
        if (i > plan->level)
            loops_add(s, inner, p->k.at[i]);
        if (i != plan->level)
            continue;
        step(s, "split %%%s by %lld tail=if -> %%ko, %%ki", p->k.at[i], (long long)plan->part);
        loops_add(s, outer, "ko");
        if (plan->groups > 1)
            step(s, "split %%ki by %lld -> %%kz, %%kj", (long long)(plan->part / plan->groups));
        loops_add(s, inner, plan->groups > 1 ? "kj" : "ki");
    }
}

/* %m -> %mb, %mt and the cells of a thread: four side by side, which it loads at once, and more of
 * these as far apart as the threads are many. */
static void split_side(Sched *s, const Loops *side, char name, int64_t block, int64_t cells,
                       int64_t quad, Loops *rows)
{
    step(s, "split %%%s by %lld tail=if -> %%%cb, %%%ci", side->at[0], (long long)block, name,
         name);
    if (cells > quad) {
        step(s, "split %%%ci by %lld -> %%%ch, %%%cj", name, (long long)(block / (cells / quad)),
             name, name);
        step(s, "split %%%cj by %lld -> %%%ct, %%%cr", name, (long long)quad, name, name);
        loops_add(s, rows, arena_printf(s->c->scratch, "%ch", name));
    } else {
        step(s, "split %%%ci by %lld -> %%%ct, %%%cr", name, (long long)cells, name, name);
    }
    loops_add(s, rows, arena_printf(s->c->scratch, "%cr", name));
}

/* A constant's cells lie as they are fetched: the sum's dimensions first, or last; of words the
 * bytes side by side. */
static bool transpose_weights(Sched *s, const Product *p, bool sum_last)
{
    const BlockData *b = &sched_block(s, p->block)->u.block;
    StrBuf was = strbuf(s->c->scratch), first = strbuf(s->c->scratch), last = strbuf(s->c->scratch);
    const Atom *v;
    int64_t     n;
    uint32_t    byte = p->b.tensor->ndim; /* the dimension whose cells words are made of */

    for (uint32_t d = 0; d < p->b.tensor->ndim; d++) {
        bool sum = uses_sum(b, p->b.index[d]);
        bool fours = p->word && idx_is_atom(p->b.index[d], &v) && v == p->word &&
                     idx_is_const(p->b.tensor->extent[d], &n) && n % WORD == 0;
        byte = fours ? d : byte;
        str_printf(&was, was.n ? ", d%u" : "d%u", d);
        str_printf(sum ? &first : &last, fours ? "d%u//4, " : "d%u, ", d);
    }
    if (!first.n || !last.n || (p->word && byte == p->b.tensor->ndim))
        return false;
    if (sum_last)
        str_printf(&last, "%.*s", (int)first.n - 2, first.at), first = last;
    else
        str_printf(&first, "%.*s", (int)last.n - 2, last.at);
    if (p->word)
        str_printf(&first, ", d%u%%4", byte);
    return try_step(s, "transform_layout %%%s (%s) -> (%s)", p->b.tensor->name, was.at, first.at);
}

int64_t window_steps(const Sched *s, const Product *p)
{
    int64_t steps = 1, rounds;

    for (uint32_t i = 1; i < p->k.n; i++)
        if (sched_loop_extent(s, p->k.at[i], &rounds))
            steps *= rounds;
    return steps > 1 ? steps : 0;
}

/* The steps of a window outside: where channels and cells fill whole rounds of the threads, a
 * thread has the same step as all others, and where its numbers lie differs by constants from round
 * to round. `outer` loops of k are around the channels. */
static void window_first(Sched *s, const char *name, uint32_t outer, const Loops *k,
                         const Loops *thread)
{
    StrBuf order = strbuf(s->c->scratch);

    for (uint32_t i = outer + 1; i < k->n; i++)
        str_printf(&order, "%%%s.shared.a%u, ", name, i);
    for (uint32_t i = 0; i <= outer; i++)
        str_printf(&order, "%%%s.shared.a%u, ", name, i);
    for (uint32_t i = 0; i < thread->n; i++)
        str_printf(&order, i ? ", %%%s.shared.a%u" : "%%%s.shared.a%u", name, k->n + i);
    step(s, "reorder %s", order.at);
}

/* Four cells of the tile's side, which lie side by side in the copy, are a thread's, which stores
 * them at once, where that leaves no thread without. */
static bool takes_fours(Sched *s, const TilePlan *plan, const Loops *thread, const Loops *k)
{
    int64_t last = 0, cells = thread->cells * k->cells;

    return sched_loop_extent(s, thread->at[thread->n - 1], &last) && last == plan->quad &&
           cells % (plan->quad * device_tile_threads(&plan->t)) == 0;
}

/* The operand's part of a chunk in shared memory.  Quad not 0: its steps of the sum lie side by
 * side; `wide`: it comes 16 bytes at a time.  Four bytes that are multiplied together are a word.
 */
static void stage(Sched *s, const Product *p, const TilePlan *plan, const Operand *o,
                  const Loops *k, uint32_t outer, const Loops *rows, char side, int64_t quad,
                  bool wide, const char *at)
{
    const char *name = o->tensor->name;
    Loops       thread = {0}, cells;

    if (rows->n > 1)
        loops_add(s, &thread, rows->at[0]);
    loops_add(s, &thread, arena_printf(s->c->scratch, "%ct", side));
    loops_add(s, &thread, rows->at[rows->n - 1]);
    cells = thread;
    if (p->words)
        loops_add(s, &cells, "kd");
    copy_cells(s, name, "shared", p->block, k, &cells, at);
    if (p->first && o == &p->a) { /* by the thread that stores it */
        step(s, "compute_at %s %%%s.shared.a%u", p->first, name, k->n + thread.n - 1);
        step(s, "cache_write %s reg at %%%s.shared.a%u", p->first, name, k->n + thread.n - 1);
        write_short_sum(s, p->first);
    }
    if (quad)
        transpose_copy(s, name, k->n, &thread, quad, p->words ? WORD : 1,
                       !p->words && takes_fours(s, plan, &thread, k));
    else if (k->n > outer + 1 && !p->words && !(p->first && o == &p->a))
        window_first(s, name, outer, k, &thread);
    if (p->words)
        step(s, "vectorize %%%s.shared.a%u", name, k->n + thread.n);
    if (wide)
        try_step(s, "tensorize %%%s.shared.a%u with @async_copy", name, k->n + thread.n - 1);
}

/* The later one is copied first; what passes no registers comes last, just before its wait. */
static void stage_both(Sched *s, const Product *p, const TilePlan *plan, const Loops *k,
                       uint32_t outer, const Loops *mrows, const Loops *nrows, const char *at)
{
    const bool first_b = plan->t.keeps_m && !plan->t.keeps_n;

    for (int i = 0; i < 2; i++)
        if ((i == 0) != first_b)
            stage(s, p, plan, &p->a, k, outer, mrows, 'm', p->a_along_k ? plan->quad : 0,
                  !plan->t.keeps_m, at);
        else
            stage(s, p, plan, &p->b, k, outer, nrows, 'n', p->b_along_k ? plan->quad : 0,
                  !plan->t.keeps_n, at);
}

/* The second copy of each loop. */
static const char *copies_text(Sched *s, const Loops *l)
{
    StrBuf text = strbuf(s->c->arena);

    for (uint32_t i = 0; i < l->n; i++)
        str_printf(&text, i ? ", %%%s#1" : "%%%s#1", l->at[i]);
    return text.at;
}

/* Groups of threads sum parts of each chunk, in registers; what they have at the end goes through
 * shared memory, neighbouring threads' numbers side by side, and all threads add up cells of it.
 * The block of the partial sums. */
static const char *join_groups(Sched *s, const char *block, const char *blk, const Loops *threads,
                               const Loops *cells, int64_t groups)
{
    const char *part = intern_printf(s->c->strings, "%s.rf", block);
    const char *own = copies_text(s, threads), *all = copies_text(s, cells);
    StrBuf      was = strbuf(s->c->scratch), inside = strbuf(s->c->scratch);

    step(s, "rfactor %%kz at %%%s", blk);
    for (uint32_t i = 0; i < threads->n + cells->n; i++)
        str_printf(i < threads->n ? &was : &inside, ", d%u", i);
    step(s, "transform_layout %%%s (z%s%s) -> (z%s%s)", part, was.at, inside.at, inside.at, was.at);
    step(s, "set_scope %%%s shared", part);
    step(s, "reorder %s, %s", all, own);
    if (cells->n > 1) {
        step(s, "fuse %s -> %%jc", all);
        all = "%jc";
    }
    step(s, "split %s into %lld -> %%jz, %%jj", all, (long long)groups);
    step(s, "reorder %%jz, %s, %%jj", own);
    step(s, "bind %%kz threadIdx.z");
    step(s, "bind %%jz threadIdx.z");
    step(s, "cache_write %s reg at %%%s#1", block, threads->at[1]);
    return part;
}

/* The innermost of the loops that has rounds: so many of them are written out. */
static void hint_rounds(Sched *s, const Loops *loops, int64_t most)
{
    int64_t n = 0;

    for (uint32_t i = loops->n; most > 1 && i-- > 0;)
        if (sched_loop_extent(s, loops->at[i], &n) && n > 1) {
            step(s, "unroll_hint %%%s by %lld", loops->at[i], (long long)(n < most ? n : most));
            return;
        }
}

static void arrange(Sched *s, Product *p, const TilePlan *plan)
{
    Loops outer = {0}, inner = {0}, mrows = {0}, nrows = {0}, blocks = {0}, threads = {0},
          cells = {0}, group = {0};
    Loops *every[] = {&p->both, &p->m, &p->n, &p->k};

    if (p->group) {
        step(s, "split %%%s by %lld -> %%go, %%gi", p->groups, (long long)p->group);
        loops_add(s, &p->both, "go");
        for (uint32_t i = 0; i < p->n.n; i++)
            if (!strcmp(p->n.at[i], p->groups))
                p->n.at[i] = "gi";
    }
    step(s, "reorder %s", loops_text(s, 4, (const Loops *const *)every));
    loops_fuse(s, &p->m, "m");
    loops_fuse(s, &p->n, "n");
    split_side(s, &p->m, 'm', plan->t.bm, plan->t.tm, plan->quad, &mrows);
    split_side(s, &p->n, 'n', plan->t.bn, plan->t.tn, plan->quad, &nrows);
    split_sum(s, p, plan, &outer, &inner);
    for (uint32_t i = 0; i < p->both.n; i++)
        loops_add(s, &blocks, p->both.at[i]);
    loops_add(s, &blocks, "mb");
    loops_add(s, &blocks, "nb");
    open_first(s, &blocks);
    if (plan->groups > 1)
        loops_add(s, &group, "kz");
    loops_add(s, &threads, p->m_inner ? "nt" : "mt");
    loops_add(s, &threads, p->m_inner ? "mt" : "nt");
    for (uint32_t i = 0; i < mrows.n; i++)
        loops_add(s, &cells, mrows.at[i]);
    for (uint32_t i = 0; i < nrows.n; i++)
        loops_add(s, &cells, nrows.at[i]);
    if (s->refusal)
        return;
    const Loops *order[] = {&blocks, &group, &threads, &outer, &inner, &cells};
    step(s, "reorder %s%s", loops_text(s, 6, order), p->words ? ", %kd" : "");
    bind_blocks(s, &blocks, "blk");
    if (plan->t.stages > 1) /* one pipeline for all chunks */
        loops_fuse(s, &outer, "kq");
    const char *sum = p->block, *last = threads.at[1], *after = last;
    if (plan->groups > 1) {
        p->block = join_groups(s, sum, blocks.at[0], &threads, &cells, plan->groups);
        last = intern_printf(s->c->strings, "%s#0", threads.at[1]);
        after = intern_printf(s->c->strings, "%s#1", threads.at[1]);
    }
    step(s, "bind %%%s threadIdx.y", threads.at[0]);
    step(s, "bind %%%s threadIdx.x", threads.at[1]);
    step(s, "cache_write %s reg at %%%s", p->block, last);
    if (p->follow)
        step(s, "reverse_compute_at %s %%%s", p->follow, after);
    const char *at = outer.at[outer.n - 1];
    Loops       copied = group;
    for (uint32_t i = 0; i < inner.n; i++)
        loops_add(s, &copied, inner.at[i]);
    if (plan->t.direct) {
        load_direct(s, p, &p->a, &inner, &mrows, at);
        load_direct(s, p, &p->b, &inner, &nrows, at);
    } else {
        stage_both(s, p, plan, &copied, group.n, &mrows, &nrows, at);
    }
    try_step(s, "unguard %s", p->block);
    try_step(s, "unguard %s.load", p->block);
    if (plan->t.stages > 1)
        try_step(s, "pipeline %%%s by %lld", at, (long long)plan->t.stages);
    const Loops *written[] = {&cells, &inner};
    step(s, "unroll %s", loops_text(s, plan->t.direct ? 2 : 1, written));
    if (p->words)
        step(s, "tensorize %%kd with @%s", p->words);
    if (plan->t.direct)
        hint_rounds(s, &outer, plan->written / inner.cells);
    else
        hint_rounds(s, &inner, plan->written);
}

/* All of a block's spatial loops; which of them where there are several by that name. */
static const char *cells_text(Sched *s, const char *block, uint32_t which)
{
    const BlockData *b = &sched_block(s, block)->u.block;
    StrBuf           text = strbuf(s->c->arena);

    for (uint32_t i = 0; i < b->nspatial; i++)
        str_printf(&text, i ? ", %%%s.%s#%u" : "%%%s.%s#%u", block, b->iter[i]->name, which);
    return text.at;
}

/* Parts of the sum become products of their own, and a second nest adds them up. */
static void split_parts(Sched *s, Product *p, int64_t parts)
{
    const char *of = p->block;

    step(s, "split %%%s into %lld -> %%ks, %%kr", p->k.at[0], (long long)parts);
    step(s, "rfactor %%ks");
    step(s, "fuse %%ks#0, %s -> %%starts", cells_text(s, of, 0)); /* which cache_write takes */
    step(s, "fuse %s -> %%%s.f", cells_text(s, of, 1), of);
    if (s->refusal)
        return;
    Machine     m = machine_of(s->target);
    const char *thread =
        bind_cells(s, of, intern_printf(s->c->strings, "%s.f", of), limit_gpu_threads(&m));
    step(s, "cache_write %s reg at %%%s", of, thread);
    write_short_sum(s, of);
    if (p->follow)
        step(s, "reverse_compute_at %s %%%s", p->follow, thread);
    p->k.at[0] = "kr";
    loops_add(s, &p->both, "ks");
    p->follow = NULL;
    p->block = intern_printf(s->c->strings, "%s.rf", of);
}

/* The sum of four products of bytes, where the target adds so many; or NULL. */
static const char *words_of(const Sched *s, const Product *p)
{
    DType         types[] = {p->a.tensor->dtype, p->b.tensor->dtype};
    const Intrin *row = intrin_find(s->c, "dot4", 2, types);

    return row && s->target->intrin_ops[row->id] && !p->first ? row->text : NULL;
}

/* Products of bytes, four a step: a loop of the sum counts words. */
static void take_words(Sched *s, Product *p)
{
    const BlockData *b = &sched_block(s, p->block)->u.block;
    const char      *words = words_of(s, p);
    int64_t          rounds;

    for (uint32_t i = 0; words && i < p->k.n; i++) {
        const Atom *v = b->iter[b->nspatial + i];
        if (!sched_loop_extent(s, p->k.at[i], &rounds) || rounds % WORD ||
            !try_step(s, "split %%%s by %d -> %%kc, %%kd", p->k.at[i], WORD))
            continue;
        p->k.at[i] = "kc";
        p->k.cells /= WORD;
        p->word = v;
        p->words = words;
        return;
    }
}

/* Estimate of threads that have several cells (cells.c), as those of windows, which have most of
 * what they read in common. */
static double cells_cycles(const Sched *s, const Product *p)
{
    Sched       all = *s;
    const char *names[MAX_BLOCKS];
    uint32_t    n = sched_blocks(&all, names, MAX_BLOCKS);

    for (uint32_t i = 0; i < n && strcmp(names[i], p->block) != 0; i++)
        try_step(&all, "compute_inline %s", names[i]);
    return thread_cells_cycles(&all, p->block);
}

/* Bytes come as words where both factors' lie along the one loop of the sum. */
static void one_row(Sched *s, Product *p)
{
    bool        along = p->b_along_k || transpose_weights(s, p, true);
    const char *words = along && p->a_along_k && p->k.n == 1 && !p->k.open && p->k.cells % WORD == 0
                            ? words_of(s, p)
                            : NULL;
    Sched       was = *s;
    double      cells = cells_cycles(s, p);

    sched_gpu_row_of(s, words, cells);
    if (words && s->refusal) {
        *s = was;
        sched_gpu_row_of(s, NULL, cells);
    }
}

typedef enum { NO_PRODUCT, ONE_ROW, TILES } Form;

static Form find_product(Sched *s, const char *block, const char *first, Product *p)
{
    bool alone;

    *p = (Product){.block = block, .first = first};
    if (!sched_block(s, block))
        return NO_PRODUCT;
    p->follow = only_follower(s, block, &alone);
    if (!alone || !find_operands(sched_block(s, block), p) || !find_loops(s, p))
        return NO_PRODUCT;
    int64_t n = p->group ? p->n.cells / (p->grouped->hi + 1) * p->group : p->n.cells;
    return p->m.n && p->n.n && p->m.cells > 1 && n > 1 ? TILES : ONE_ROW;
}

/* A run decides how many cells there are, or steps of the sum. */
static bool is_open(const DeviceTile *t)
{
    return t->open.m || t->open.n || t->open.k || t->open.batch;
}

static void tiles(Sched *s, Product p, bool words)
{
    TilePlan plan = {0};

    if (words)
        take_words(s, &p);
    bool moved = (p.b_along_k || p.words) && transpose_weights(s, &p, false);
    plan.of = shape_of(s, &p, moved);
    p.b_along_k = p.b_along_k && !moved;
    plan.of.made = p.first ? sum_rounds(s, p.first) : 0;
    plan.whole = p.first || p.group || is_open(&plan.of);
    plan.words = p.words;
    plan.shares = p.first || p.words;
    plan.nsum = p.k.n;
    for (uint32_t i = 0; i < p.k.n; i++) {
        const Idx *rounds = sched_loop_form(s, p.k.at[i]);
        plan.sum[i] = idx_usual(rounds);
        plan.any[i] = !idx_is_const(rounds, NULL);
    }
    plan.first = plan.sum[0];
    plan.of.window = window_steps(s, &p);
    sched_decide(s, decide_tile, &plan);
    if (s->refusal)
        return;
    if (!plan.part) {
        sched_gpu(s);
        return;
    }
    if (plan.parts > 1)
        split_parts(s, &p, plan.parts);
    if (!s->refusal)
        arrange(s, &p, &plan);
}

static void product(Sched *s, const char *block, const char *first)
{
    Product p;

    try_step(s, "contract %s", block);
    if (first)
        try_step(s, "contract %s", first);
    Form form = find_product(s, block, first, &p);
    if (form == NO_PRODUCT || (form == ONE_ROW && p.beside)) {
        sched_gpu(s);
        return;
    }
    if (form == ONE_ROW) {
        one_row(s, &p);
        return;
    }
    inline_before(s, &p);
    if (tensor_product(s, &p))
        return;
    Sched was = *s;
    tiles(s, p, true);
    if (s->refusal) {
        *s = was;
        tiles(s, p, false);
    }
}

void sched_gpu_dense(Sched *s)
{
    product(s, "dense", NULL);
}

void sched_gpu_conv2d(Sched *s)
{
    if (sched_block(s, "conv.1")) /* behind a depthwise one (pair_depthwise) */
        product(s, "conv.1", "conv");
    else
        product(s, "conv", NULL);
}
