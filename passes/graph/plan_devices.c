/* plan_devices: kernels that the CPU does better, which drives the device.
 *
 *   fn primitive (%x) { argsort(%x) }(%0)  ->  fn primitive host (%x) { argsort(%x) }(%0)
 *
 * A sort, a running sum or a suppression of boxes is one thread's on a device, or few threads',
 * which are slow as threads go; on the CPU it costs two copies, and less where what makes its
 * operands or reads its results runs there too, as what a device cannot have does (keep_on_host).
 * Each kernel is a node with two choices, the estimates of machine/ (device_work.c) its costs; an
 * edge costs a copy where its ends differ, with the launch that it is and, to the host, the wait
 * for all before it. The least sum of both is found by pbqp.c, as that of layouts is: exact for
 * chains and trees, which these graphs are but for a few nodes.  A value that several kernels of
 * the other side read is copied once, though its edges count for each.
 *
 * Nothing changes where every kernel gives the device threads enough and none is the host's: small
 * models stay on the device that was asked for.  Inputs lie on the host; results go there in any
 * case; what leaves or enters an `if` or a function lies on the device. */
#include "passes/graph/device_work.h"

#include <string.h>

enum { DEVICE, HOST, SIDES };

#define NEVER 1e18 /* nanoseconds */

typedef struct {
    Ctx    *c;
    Machine device, cpu;
    Map    *here; /* calls of kernels that are the host's */
    bool    any;  /* some kernel is sequential, or the host's already */
} Sides;

/* Nanoseconds of a kernel on either side; one that is the host's already stays there. */
static bool kernel_ns(Sides *x, const Expr *call, double ns[SIDES])
{
    DeviceWork  w = {.device = &x->device, .cpu = &x->cpu};
    const Expr *f = call->kids[0];

    if (!device_work(x->c, f, &w))
        return false;
    ns[DEVICE] = f->u.func.host ? NEVER : w.on_device;
    ns[HOST] = w.on_cpu;
    x->any = x->any || f->u.func.host || w.sequential;
    return true;
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

typedef struct {
    double   ns[SIDES];
    uint32_t at; /* in the graph, from 1 on; 0: it is none of the function's */
} Side;

static bool plan_function(Sides *x, const Expr *f, bool is_main)
{
    Ctx      *c = x->c;
    ExprList  list = expr_post_order(c, func_body(f));
    Map      *inner = inner_nodes(c, list), *node = map_new(c->scratch);
    Pbqp     *g = pbqp_new(c->scratch);
    Side     *sides = arena_array(c->scratch, list.n + 1, sizeof *sides);
    double    copy[SIDES * SIDES];
    uint32_t *choice, n = 0;

    x->any = false;
    for (uint32_t i = 0; i < list.n; i++) {
        const Expr *e = list.at[i];
        const Side *from;

        if (map_get(inner, PTR_KEY(e)) || !e->type || e->kind == EXPR_CONST)
            continue;
        if (!is_kernel(e))
            other_ns(e, is_main, sides[i].ns);
        else if (!kernel_ns(x, e, sides[i].ns))
            return false;
        sides[i].at = pbqp_node(g, SIDES, sides[i].ns) + 1;
        map_put(node, PTR_KEY(e), &sides[i]);
        n++;
        for (uint32_t k = 0; k < e->nkids; k++) {
            bool again = false;

            for (uint32_t j = 0; j < k; j++)
                again = again || e->kids[j] == e->kids[k];
            if (again || !(from = map_get(node, PTR_KEY(e->kids[k]))))
                continue;
            copy_ns(x, e->kids[k]->type, copy);
            pbqp_edge(g, from->at - 1, sides[i].at - 1, copy);
        }
    }
    if (!x->any)
        return true;
    choice = NEW_ARRAY(c->scratch, uint32_t, n + 1);
    pbqp_solve(g, choice);
    for (uint32_t i = 0; i < list.n; i++) {
        const Expr *e = list.at[i];

        if (!sides[i].at || !is_kernel(e) || e->kids[0]->u.func.host)
            continue;
        if (c->choices.said)
            say(x, e, choice[sides[i].at - 1], sides[i].ns);
        if (choice[sides[i].at - 1] == HOST)
            map_put(x->here, PTR_KEY(e), (void *)1);
    }
    return true;
}

static const Expr *place(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const Sides *x = user;

    return map_get(x->here, PTR_KEY(was)) ? kernel_on_host(c, now) : now;
}

const Module *plan_devices(Ctx *c, const Module *m)
{
    Sides x = {.c = c, .here = map_new(c->scratch)};

    if (!c->target || !c->target->host)
        return m;
    x.device = machine_of(c->target);
    x.cpu = machine_of(c->target->host);
    for (uint32_t i = 0; i < m->nfuncs; i++)
        if (!plan_function(&x, m->funcs[i].func, !strcmp(m->funcs[i].name, "main")))
            return NULL;
    return map_count(x.here) ? module_rewrite(c, m, place, &x) : m;
}
