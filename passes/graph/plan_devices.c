/* plan_devices: kernels that the CPU does better, which drives the device.
 *
 *   fn primitive (%x) { argsort(%x) }(%0)  ->  fn primitive host (%x) { argsort(%x) }(%0)
 *
 * A suppression of boxes, or a sort of rows of any length, is one thread's on a device, which is
 * slow as threads go; on the CPU it costs two copies, and less where what makes its operands or
 * reads its results runs there too.  Each kernel is a node with two choices, the estimates of
 * machine/ its costs; an edge costs a copy where its ends differ, with the launch that it is and,
 * to the host, the wait for all before it.  The least sum of both is found by pbqp.c, as that of
 * layouts is: exact for chains and trees, which these graphs are but for a few nodes.  A value that
 * several kernels of the other side read is copied once, though its edges count for each.
 *
 * Nothing changes where no kernel is one thread's: small models stay on the device that was asked
 * for.  Inputs lie on the host; results go there in any case; what leaves or enters an `if` or a
 * function lies on the device. */
#include "passes/graph/graph.h"
#include "schedules/schedules.h"

#include <math.h>
#include <string.h>

enum { DEVICE, HOST, SIDES };

#define NEVER 1e18 /* nanoseconds */

typedef struct {
    Ctx    *c;
    Machine device, cpu;
    Map    *here; /* calls of kernels that are the host's */
    bool    any;  /* some kernel is one thread's */
} Sides;

/* A rule for its class knows how to divide it among threads. */
static bool has_rule(const Target *t, const Op *op)
{
    for (uint32_t i = 0; i < schedule_count; i++)
        if (strcmp(schedule_table[i].op, "*") && schedule_takes(&schedule_table[i], t, op))
            return true;
    return false;
}

static bool is_one_thread(const Target *t, const Expr *call)
{
    const Op   *op = call_op(call);
    const char *algorithm = algorithm_of(call);

    return (op->fusion == FUSE_OPAQUE || op->fusion == FUSE_UPDATE) &&
           (!has_rule(t, op) || (algorithm && !strcmp(algorithm, "direct")));
}

static double type_cells_most(const Type *t, double *bytes)
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

/* Nanoseconds of a kernel on either side; one that is the host's already stays there. */
static void kernel_ns(Sides *x, const Expr *call, double ns[SIDES])
{
    ExprList list = expr_post_order(x->c, func_body(call->kids[0]));

    ns[DEVICE] = placed_device_start_ns(&x->device);
    ns[HOST] = placed_cpu_start_ns(&x->cpu);
    for (uint32_t i = 0; i < list.n; i++) {
        const Expr *e = list.at[i];
        const Op   *op = call_op(e);
        PlacedWork  w = {0};

        if (!op)
            continue;
        w.cells = type_cells_most(e->type, &w.bytes);
        for (uint32_t k = 0; k < call_nargs(e); k++)
            w.cells = fmax(w.cells, type_cells_most(call_arg(e, k)->type, &w.bytes));
        w.macs = op->macs ? (double)op->macs(e) : 0;
        w.one_thread = is_one_thread(x->c->target, e);
        x->any = x->any || w.one_thread;
        ns[HOST] += placed_cpu_ns(&x->cpu, &w);
        ns[DEVICE] += placed_device_ns(&x->device, &w);
    }
    if (call->kids[0]->u.func.host)
        ns[DEVICE] = NEVER;
}

/* Copying a value from one side to the other. */
static void copy_ns(const Sides *x, const Type *t, double ns[SIDES * SIDES])
{
    double bytes = 0;

    type_cells_most(t, &bytes);
    memset(ns, 0, SIDES * SIDES * sizeof *ns);
    ns[HOST * SIDES + DEVICE] = placed_copy_ns(&x->device, bytes, false);
    ns[DEVICE * SIDES + HOST] = placed_copy_ns(&x->device, bytes, true);
}

/* What lies on one side whatever the choices, or costs nothing on either. */
static void other_ns(const Expr *e, bool is_main, double ns[SIDES])
{
    bool passes = is_view(e) || is_part_view(e) || e->kind == EXPR_TUPLE || e->kind == EXPR_PROJ ||
                  e->kind == EXPR_LET || is_bind(e);

    ns[DEVICE] = ns[HOST] = 0;
    if (is_main && e->kind == EXPR_VAR)
        ns[DEVICE] = NEVER;
    else if (!passes)
        ns[HOST] = NEVER;
}

static bool is_kernel(const Expr *e)
{
    return e->kind == EXPR_CALL && e->kids[0]->kind == EXPR_FUNC && e->kids[0]->u.func.primitive;
}

/* Nodes inside kernels are none of the function's. */
static Map *inner_nodes(Ctx *c, ExprList list)
{
    Map *inner = map_new(c->scratch);

    for (uint32_t i = 0; i < list.n; i++) {
        if (list.at[i]->kind != EXPR_FUNC || !list.at[i]->u.func.primitive)
            continue;
        ExprList in = expr_post_order(c, list.at[i]);
        for (uint32_t k = 0; k < in.n; k++)
            map_put(inner, PTR_KEY(in.at[k]), (void *)1);
    }
    return inner;
}

/* `net.onnx:3:sort1: kernel on the host: 12000 ns, 640000 ns on the device, without copies`. */
static void say(const Sides *x, const Expr *e, uint32_t side, const double ns[SIDES])
{
    StrBuf *out = x->c->choices.said;
    Loc     l = e->loc;

    str_printf(out, "%s:%u:%s%s kernel on the %s: %.0f ns, %.0f ns on the %s, without copies\n",
               l.file ? l.file : "", l.line, l.name ? l.name : "", l.name ? ":" : "",
               side == HOST ? "host" : "device", ns[side], ns[!side],
               side == HOST ? "device" : "host");
}

static void plan_function(Sides *x, const Expr *f, bool is_main)
{
    Ctx      *c = x->c;
    ExprList  list = expr_post_order(c, func_body(f));
    Map      *inner = inner_nodes(c, list), *node = map_new(c->scratch);
    Pbqp     *g = pbqp_new(c->scratch);
    double    ns[SIDES], copy[SIDES * SIDES];
    uint32_t  n = 0, *choice;
    uintptr_t from;

    x->any = false;
    for (uint32_t i = 0; i < list.n; i++) {
        const Expr *e = list.at[i];

        if (map_get(inner, PTR_KEY(e)) || !e->type || e->kind == EXPR_CONST)
            continue;
        if (is_kernel(e))
            kernel_ns(x, e, ns);
        else
            other_ns(e, is_main, ns);
        map_put(node, PTR_KEY(e), (void *)(uintptr_t)(pbqp_node(g, SIDES, ns) + 1));
        n++;
        for (uint32_t k = 0; k < e->nkids; k++) {
            bool again = false;

            for (uint32_t j = 0; j < k; j++)
                again = again || e->kids[j] == e->kids[k];
            if (again || !(from = (uintptr_t)map_get(node, PTR_KEY(e->kids[k]))))
                continue;
            copy_ns(x, e->kids[k]->type, copy);
            pbqp_edge(g, (uint32_t)from - 1, n - 1, copy);
        }
    }
    if (!x->any)
        return;
    choice = NEW_ARRAY(c->scratch, uint32_t, n + 1);
    pbqp_solve(g, choice);
    for (uint32_t i = 0; i < list.n; i++) {
        const Expr *e = list.at[i];

        if (!is_kernel(e) || !(from = (uintptr_t)map_get(node, PTR_KEY(e))))
            continue;
        if (c->choices.said) {
            kernel_ns(x, e, ns);
            say(x, e, choice[from - 1], ns);
        }
        if (choice[from - 1] == HOST)
            map_put(x->here, PTR_KEY(e), (void *)1);
    }
}

static const Expr *place(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const Sides *x = user;
    const Expr  *f, **kids;

    if (!map_get(x->here, PTR_KEY(was)))
        return now;
    f = now->kids[0];
    FuncData data = f->u.func;
    data.host = true;
    kids = DUP_ARRAY(c->scratch, now->kids, now->nkids);
    kids[0] = expr_func(c, func_nparams(f), f->kids, func_body(f), data, f->loc);
    return kids[0] ? expr_with_kids(c, now, kids) : NULL;
}

const Module *plan_devices(Ctx *c, const Module *m)
{
    Sides x = {.c = c, .here = map_new(c->scratch)};

    if (!c->target || !c->target->host)
        return m;
    x.device = machine_of(c->target);
    x.cpu = machine_of(c->target->host);
    for (uint32_t i = 0; i < m->nfuncs; i++)
        plan_function(&x, m->funcs[i].func, !strcmp(m->funcs[i].name, "main"));
    return map_count(x.here) ? module_rewrite(c, m, place, &x) : m;
}
