/* choose_algorithms: for each convolution, product, pooling, sort and running sum the algorithm
 * with the least time.
 *
 *   nn.conv2d(%x, const @w, padding=[1, 1, 1, 1], data_layout="NCHW16c")
 *     -> nn.contrib_conv2d_winograd_without_weight_transform(%x, const @w.u, tile_size=4, ..)
 *   nn.dense(%x, %y)  ->  nn.dense(%x, %y, algorithm="panel")
 *
 * algorithms.def lists what there is for an operator, and passes.def from which -O on.  What an
 * algorithm computes is written in the call, as its attribute `algorithm` or as an operator of its
 * own, so compute functions (ops/) know nothing of the target.  A call whose attribute is not
 * "direct" was chosen by whoever wrote it, and stays.  Runs on blocked layouts, before borders are
 * planned.  Transformed weights are folded here.  --explain tells the times of all.  Cost: one
 * walk, and the evaluation of the transforms. */
#include "passes/graph/choose_algorithms.h"

#include <math.h>
#include <string.h>

#define none NULL
#define ALGORITHM(op, name, tile, time, make) {op, #name, tile, time, make},
static const Algorithm algorithms[] = {
#include "passes/graph/algorithms.def"
};
#undef ALGORITHM
#undef none

const char *algorithm_of(const Expr *call)
{
    const AttrRecord *r = call_op(call)->attrs;

    for (uint32_t i = 0; r && i < r->nfields; i++)
        if (!strcmp(r->fields[i].name, "algorithm"))
            return *(const char *const *)(const void *)((const char *)call->u.attrs +
                                                        r->fields[i].offset);
    return NULL;
}

double algorithm_cycles(Ctx *c, const Expr *call)
{
    const char *name = algorithm_of(call);

    for (size_t i = 0; name && i < COUNT(algorithms); i++)
        if (call_is(call, algorithms[i].op) && !strcmp(algorithms[i].name, name))
            return algorithms[i].time(c, call, &algorithms[i]);
    return NAN;
}

static const Expr *with_attribute(Ctx *c, const Expr *call, const char *name, const char *value)
{
    const AttrRecord *r = call_op(call)->attrs;
    void             *attrs = arena_dup(c->arena, call->u.attrs, r->size);

    if (!attrs_set_text(c, r, attrs, name, value, NULL))
        BUG("%s has no attribute '%s'", call_op(call)->text, name);
    return expr_call(c, call_op(call), call_nargs(call), call->kids + 1, attrs, call->loc);
}

const Expr *set_algorithm(Ctx *c, const Expr *call, const Algorithm *a)
{
    return with_attribute(c, call, "algorithm", a->name);
}

const Expr *set_chunk(Ctx *c, const Expr *call, int64_t chunk)
{
    return with_attribute(c, call, "chunk", arena_printf(c->scratch, "%lld", (long long)chunk));
}

/* -O and -fno-pass= allow it. */
static bool is_allowed(const Ctx *c, const Algorithm *a)
{
    const Pass *p = pass_find(a->name);

    return !p || !(c->choices.without & p->algorithm);
}

static const char *text_of(Ctx *c, const Algorithm *a)
{
    return a->tile ? intern_printf(c->strings, "%s %lldx%lld", a->name, (long long)a->tile,
                                   (long long)a->tile)
                   : a->name;
}

/* `net.onnx:3:conv1: nn.conv2d: winograd 4x4 takes 512345 cycles, direct 1203344`. */
static void say(Ctx *c, const Expr *call, const Algorithm *best, const double *time)
{
    StrBuf *out = c->choices.said;

    str_printf(out, "%s:%u:%s%s %s: %s takes %.0f cycles", call->loc.file ? call->loc.file : "",
               call->loc.line, call->loc.name ? call->loc.name : "", call->loc.name ? ":" : "",
               call_op(call)->text, text_of(c, best), time[best - algorithms]);
    for (uint32_t i = 0; i < COUNT(algorithms); i++)
        if (time[i] < NEVER && &algorithms[i] != best)
            str_printf(out, ", %s %.0f", text_of(c, &algorithms[i]), time[i]);
    str_printf(out, "\n");
}

static const Expr *choose(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const Op        *op = call_op(now);
    const Algorithm *best = NULL;
    const char      *given;
    double           time[COUNT(algorithms)];

    (void)was;
    if (!op || !now->type)
        return now;
    for (uint32_t i = 0; i < COUNT(algorithms); i++) {
        const Algorithm *a = &algorithms[i];

        time[i] = !strcmp(a->op, op->text) && is_allowed(c, a) ? a->time(c, now, a) : NEVER;
        if (time[i] < (best ? time[best - algorithms] : NEVER))
            best = a;
    }
    if (!best || ((given = algorithm_of(now)) && strcmp(given, "direct")))
        return now;
    if (c->choices.said)
        say(c, now, best, time);
    if (!best->make)
        return now;
    *(bool *)user |= best->make != set_algorithm;
    return best->make(c, now, best);
}

const Module *choose_algorithms(Ctx *c, const Module *m)
{
    bool          fold = false;
    const Module *next = module_rewrite(c, m, choose, &fold);

    return next && fold ? fold_constant(c, next) : next;
}
