/* Algorithms of nn.recurrent: what threads divide.  A step reads all weights of its direction; two
 * threads that divide it gain half of that and pay for meeting.  Two directions need not meet at
 * all, but then each core streams all weights of one: worse if these do not stay in its L2 where
 * half of them does. */
#include "passes/graph/choose_algorithms.h"

#include <string.h>

typedef struct {
    int64_t steps, directions, tiles, meets; /* in a step */
    int64_t bytes, ns;                       /* of weights; of a step on one core */
    bool    divides;
    Machine machine;
} Work;

static Work work_of(const Ctx *c, const Expr *e)
{
    const RecurrentAttrs *a = ATTRS_OF(RecurrentAttrs, e);
    const Type *x = call_arg(e, 0)->type, *r = call_arg(e, 1)->type, *h = call_arg(e, 2)->type;
    bool        twice = !strcmp(a->cell, "gru"); /* h~ needs r*h of all units */
    int64_t     size = h->dims[2]->lo, sums = r->dims[3]->lo / a->units + twice;
    Work        w = {.steps = x->dims[0]->lo,
                     .directions = h->dims[0]->lo,
                     .tiles = r->dims[1]->lo,
                     .meets = twice ? 2 : 1,
                     .bytes = sums * size * size * dtype_bytes(x->dtype)};

    w.ns = state_step_ns(w.bytes, sums * size * size * h->dims[1]->lo);
    w.machine = machine_of(c->target);
    w.divides = c->target && !c->target->no_threads && w.steps > 1;
    return w;
}

static bool stays_near(const Work *w)
{
    return w->directions > 1 && w->bytes <= w->machine.l2 / 2;
}

static double cycles(const Work *w, int64_t step_ns)
{
    return w->machine.ghz * (double)w->directions * (double)w->steps * (double)step_ns;
}

double time_recurrent(Ctx *c, const Expr *call, const Algorithm *a)
{
    Work w = work_of(c, call);

    (void)a;
    return cycles(&w, w.ns);
}

double time_recurrent_directions(Ctx *c, const Expr *call, const Algorithm *a)
{
    Work w = work_of(c, call);

    (void)a;
    return w.divides && stays_near(&w) ? cycles(&w, w.ns) / 2 + w.machine.ghz * APART_NS : NEVER;
}

double time_recurrent_units(Ctx *c, const Expr *call, const Algorithm *a)
{
    Work w = work_of(c, call);

    (void)a;
    if (!w.divides || stays_near(&w) || w.tiles < 2)
        return NEVER;
    return cycles(&w, w.ns - w.ns / 2 + 2 * w.meets * w.machine.sync_ns);
}
