/* What a kernel is as work, for a device and for the CPU that drives it.
 *
 * Most operators give threads enough: a cell each, or as their rule of schedules/gpu/ divides them.
 * Without a rule what is no cell by cell computation gets the threads that the pass `launches` and
 * the rule for all kernels find for it: each statement of the nest those of the loops that it
 * begins with.
 *
 *     for %row < 64 { for %k < 1000 seq { .. } }      64 threads, 1000 steps
 *     for %r < 6000 seq { .. }                        one, 6000
 *     for %i < 10 { for %k < 9000 reduce { .. } }     10, a sum of 9000 */
#include "passes/graph/device_work.h"

#include "schedules/schedules.h"

#include <math.h>
#include <string.h>

/* A sort or a running sum by rounds, whose algorithm says what it takes; "direct" is one thread's.
 */
static const char *rounds_of(const Expr *call)
{
    return call_op(call)->fusion == FUSE_OPAQUE ? algorithm_of(call) : NULL;
}

/* A rule for its class knows how to divide it among threads, by the algorithm that was chosen. */
static bool has_rule(const Target *t, const Expr *call)
{
    const Op   *op = call_op(call);
    const char *algorithm = rounds_of(call);

    if (algorithm && !strcmp(algorithm, "direct"))
        return false;
    for (uint32_t i = 0; i < schedule_count; i++)
        if (strcmp(schedule_table[i].op, "*") && schedule_takes(&schedule_table[i], t, op))
            return true;
    return false;
}

double type_cells_most(const Type *t, double *bytes)
{
    double  cells = 0;
    int64_t n = 0;

    if (!t)
        return 0;
    if (t->kind == TYPE_TUPLE) {
        for (uint32_t i = 0; i < t->n; i++)
            cells += type_cells_most(t->parts[i], bytes);
        return cells;
    }
    if (t->kind != TYPE_TENSOR || !type_elems_most(t, &n))
        return 0;
    *bytes += (double)n * dtype_bytes(t->dtype);
    return (double)n;
}

/* ---- what no rule divides ------------------------------------------------------------------------ */

static double rounds(const Stmt *loop)
{
    return fmax(0, (double)loop->u.loop.extent->hi);
}

/* Statements that a thread carries out, the longer arm of each condition. */
static double steps_of(const Stmt *s)
{
    double sum = s->kind == STMT_STORE, most = 0;

    for (uint32_t i = 0; i < s->nkids; i++) {
        double steps = steps_of(s->kids[i]);

        sum += steps;
        most = fmax(most, steps);
    }
    if (s->kind == STMT_BLOCK && s->u.block.nreduce)
        return 1; /* its sums begin once */
    return s->kind == STMT_IF ? most : s->kind == STMT_FOR ? rounds(s) * sum : sum;
}

static bool has_sum(const Stmt *s)
{
    if (s->kind == STMT_BLOCK)
        return s->u.block.nreduce > 0;
    for (uint32_t i = 0; i < s->nkids; i++)
        if (has_sum(s->kids[i]))
            return true;
    return false;
}

static void part_of(const Stmt *s, bool opaque, DeviceWork *w)
{
    PlacedPart p = {.threads = 1, .sums = !opaque && has_sum(s)};

    for (; s->kind == STMT_FOR && s->u.loop.kind == LOOP_SPATIAL; s = s->kids[0])
        p.threads *= rounds(s);
    p.steps = steps_of(s);
    if (!opaque && !p.sums && s->kind == STMT_BLOCK)
        return; /* a cell a thread */
    w->sequential = w->sequential || placed_is_sequential(w->device, &p);
    w->on_device += placed_part_ns(w->device, &p);
    if (!p.sums) /* sums are multiply-adds */
        w->on_cpu += placed_part_cpu_ns(w->cpu, &p);
}

static void parts_of(const Stmt *s, bool opaque, DeviceWork *w)
{
    bool is_opaque = s->kind == STMT_BLOCK && s->u.block.opaque;

    if (s->kind != STMT_ALLOC && s->kind != STMT_SEQ && !is_opaque) {
        part_of(s, opaque, w);
        return;
    }
    for (uint32_t i = 0; i < s->nkids; i++)
        parts_of(s->kids[i], opaque || is_opaque, w);
}

/* Does the kernel reduce, or worse, and no rule knows how? */
static bool without_rule(Ctx *c, const ExprList *list)
{
    bool some = false;

    for (uint32_t i = 0; i < list->n; i++) {
        const Op *op = call_op(list->at[i]);

        if (!op || op->fusion <= FUSE_INJECTIVE)
            continue;
        if (has_rule(c->target, list->at[i]))
            return false;
        some = true;
    }
    return some;
}

bool device_work(Ctx *c, const Expr *primitive, DeviceWork *w)
{
    ExprList      list = expr_post_order(c, func_body(primitive));
    bool          divided, steps = false;
    DeviceWork    parts = {.device = w->device, .cpu = w->cpu};
    const TeFunc *te;

    w->on_device = placed_device_start_ns(w->device);
    w->on_cpu = placed_cpu_start_ns(w->cpu);
    w->sequential = false;
    for (uint32_t i = 0; i < list.n; i++) {
        const Expr *e = list.at[i];
        const Op   *op = call_op(e);
        PlacedWork  one = {0};

        if (!op)
            continue;
        one.cells = type_cells_most(e->type, &one.bytes);
        for (uint32_t k = 0; k < call_nargs(e); k++)
            one.cells = fmax(one.cells, type_cells_most(call_arg(e, k)->type, &one.bytes));
        one.macs = op->macs ? (double)op->macs(e) : 0;
        w->on_cpu += placed_cpu_ns(w->cpu, &one);
        double cycles = rounds_of(e) && has_rule(c->target, e) ? algorithm_cycles(c, e) : NAN;
        steps = steps || !isnan(cycles);
        w->on_device +=
            isnan(cycles) ? placed_device_ns(w->device, &one) : cycles / w->device->device_ghz;
    }
    divided = !without_rule(c, &list);
    if (divided && !steps)
        return true;
    if (!(te = te_of_func(c, primitive, NULL, false, "kernel")))
        return false;
    parts_of(te_lower(c, te, c->target)->body, false, &parts);
    w->on_cpu += parts.on_cpu;
    if (divided)
        return true;
    w->on_device += parts.on_device;
    w->sequential = parts.sequential;
    return true;
}
