/* Values that share memory (docs/design/views.md): random networks of concatenations, splits,
 * slices, reshapes, convolutions, pools and sums, whose values are read again long after they were
 * made, are lowered at -O3 and run by the interpreter in memory full of NaN; the results are those
 * of the graph itself.  On a target with tiny caches batches become loops over their pictures.  The
 * memory plan is checked by its slots: two that live at one time lie apart, and what a plan with
 * and without views needs is told. */
#include "tests/unit/check.h"
#include "tests/unit/net.h"

#include "machine/machine.h"
#include "ops/ops.h"
#include "passes/passes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- layers ----------------------------------------------------------------------------------- */

static const Expr *some(Net *n)
{
    return n->pool.at[pick(n, n->pool.n)];
}

static const Expr *conv(Net *n, const Expr *x)
{
    static const int64_t widths[] = {4, 8, 8, 16, 11};
    Conv2dAttrs         *a = attrs_new(n->c, &attrs_Conv2dAttrs);
    int64_t              in = dim(x, 1), k = pick(n, 2) ? 3 : 1, out = widths[pick(n, 5)];
    bool                 depthwise = pick(n, 5) == 0;

    if (dim(x, 2) < 3 || dim(x, 3) < 3)
        k = 1;
    if (depthwise)
        out = in;
    a->groups = depthwise ? in : 1;
    a->padding = k == 3 ? ints_of(n->c, 4, 1, 1, 1, 1) : a->padding;
    const int64_t w[] = {out, depthwise ? 1 : in, k, k};
    const Const  *weight = float_noise(n, type_tensor_i64(n->c, DT_F32, 4, w), -0.3, 0.3);
    return call(n, "nn.conv2d", x, expr_const(n->c, weight, NO_LOC), a);
}

static const Expr *pool(Net *n, const Expr *x)
{
    Pool2dAttrs *a = attrs_new(n->c, &attrs_Pool2dAttrs);

    a->pool_size = ints_of(n->c, 2, 3, 3);
    a->padding = ints_of(n->c, 4, 1, 1, 1, 1);
    a->count_include_pad = pick(n, 2);
    return call(n, pick(n, 2) ? "nn.max_pool2d" : "nn.avg_pool2d", x, NULL, a);
}

/* Two to four values that differ along one axis at most. */
static const Expr *join(Net *n)
{
    const Expr       *part[4] = {some(n)};
    ConcatenateAttrs *a = attrs_new(n->c, &attrs_ConcatenateAttrs);
    uint32_t          parts = 1, want = 2 + pick(n, 3), axis = pick(n, 8) ? 1 : 2;

    for (uint32_t tries = 0; tries < 12 && parts < want; tries++) {
        const Expr *x = some(n);
        bool        fits = true;

        for (uint32_t i = 0; i < 4; i++)
            fits &= i == axis || dim(x, i) == dim(part[0], i);
        if (fits)
            part[parts++] = x;
    }
    a->axis = axis;
    return call(n, "concatenate", expr_tuple(n->c, parts, part, NO_LOC), NULL, a);
}

static const Expr *cut(Net *n, const Expr *x)
{
    StridedSliceAttrs *a = attrs_new(n->c, &attrs_StridedSliceAttrs);
    SplitAttrs        *s = attrs_new(n->c, &attrs_SplitAttrs);
    int                axis = pick(n, 6) ? 1 : 2;
    int64_t            size = dim(x, (uint32_t)axis), from, to;

    if (size < 2)
        return x;
    if (pick(n, 2)) {
        from = 1 + pick(n, (uint32_t)size - 1);
        s->indices = dims_of_i64(n->c, &from, 1);
        s->axis = axis;
        return expr_proj(n->c, call(n, "split", x, NULL, s), pick(n, 2), NO_LOC);
    }
    from = pick(n, (uint32_t)size - 1);
    to = from + 1 + pick(n, (uint32_t)(size - from));
    a->begin = dims_of_i64(n->c, &from, 1);
    a->end = dims_of_i64(n->c, &to, 1);
    a->axes = ints_of(n->c, 1, axis);
    return call(n, "strided_slice", x, NULL, a);
}

static const Expr *turned(Net *n, const Expr *x)
{
    ReshapeAttrs *a = attrs_new(n->c, &attrs_ReshapeAttrs);

    a->newshape = dims_of_i64(n->c, (int64_t[]){dim(x, 0), dim(x, 1), dim(x, 3), dim(x, 2)}, 4);
    return call(n, "reshape", x, NULL, a);
}

static const Expr *layer(Net *n)
{
    static const char *const unary[] = {"nn.relu", "tanh", "sigmoid", "copy"};
    const Expr              *x = some(n), *y;

    switch (pick(n, 13)) {
    case 0:
    case 1:
    case 2: return join(n);
    case 3:
    case 4: return cut(n, x);
    case 5:
    case 6:
    case 7: return conv(n, x);
    case 8: return pool(n, x);
    case 9: return turned(n, x);
    case 10:
    case 11:
        for (uint32_t i = 0; i < n->pool.n; i++)
            if ((y = n->pool.at[i]) != x && y->type == x->type)
                return call(n, "add", x, y, NULL);
        return call(n, "multiply", x, x, NULL);
    default: return call(n, unary[pick(n, 4)], x, NULL, NULL);
    }
}

static const Module *random_net(Net *n, bool large)
{
    const int64_t dims[] = {large        ? 2 + 2 * pick(n, 2)
                            : pick(n, 6) ? 1
                                         : 2,
                            large || pick(n, 2) ? 8 : 4, large ? 12 : 4 + pick(n, 3), 5};
    const Expr *x, *out[3];
    GlobalDef   def;

    x = expr_var(n->c, "x", type_tensor_i64(n->c, DT_F32, 4, dims), NO_LOC);
    vec_push(n->c->arena, &n->pool, x);
    for (uint32_t i = 0, layers = 6 + pick(n, 9); i < layers; i++) {
        const Expr *e = layer(n);
        int64_t     cells = 0;

        if (type_elems(e->type, &cells) && cells <= 3000)
            vec_push(n->c->arena, &n->pool, e);
    }
    for (uint32_t i = 0; i < 3; i++)
        out[i] = n->pool.at[n->pool.n - 1 - (i < n->pool.n ? i : 0)];
    def = (GlobalDef){
        "main", expr_func(n->c, 1, &x, expr_tuple(n->c, 3, out, NO_LOC), (FuncData){0}, NO_LOC)};
    return module_new(n->c, NULL, 1, &def);
}

/* ---- running a plan --------------------------------------------------------------------------- */

/* main of the plan; its results as constants. */
static bool run_plan(Ctx *c, const Plan *p, const Const *in, const Const **out)
{
    void    *args[8];
    uint32_t n = 0;

    args[n++] = (void *)(uintptr_t)in->data.at;
    for (uint32_t i = 0; i < p->nout; i++) {
        int64_t cells = 0;

        type_elems(p->out[i].type, &cells);
        args[n] = memory(c, (uint64_t)cells * 4);
        out[i] = const_new(c, "y", p->out[i].type, (Bytes){args[n++], (size_t)cells * 4});
    }
    args[n++] = memory(c, p->arena_bytes + p->private_bytes);
    args[n++] = memory(c, p->weights_bytes);
    return fill_weights(c, p, args[n - 1]) &&
           tir_eval(c, p->tir, p->tir->funcs[p->tir->nfuncs - 1], n, args, 0, NULL);
}

static bool slots_apart(const Plan *p)
{
    for (uint32_t i = 0; i < p->nslots; i++)
        for (uint32_t j = 0; j < i; j++) {
            const PlanSlot *a = &p->slots[i], *b = &p->slots[j];

            if (a->first <= b->last && b->first <= a->last && a->offset < b->offset + b->bytes &&
                b->offset < a->offset + a->bytes)
                return false;
        }
    return p->arena_floor <= p->arena_bytes;
}

/* Barriers of these targets cost nothing: where a kernel is divided, threads run the host, also
 * when the kernel stands in a loop. */
static bool threads_run(const Plan *p)
{
    const Func *host = p->tir->funcs[p->tir->nfuncs - 1];
    bool        divided = false;

    for (uint32_t i = 0; i < p->tir->nfuncs; i++)
        for (uint32_t k = 0; k < p->tir->funcs[i]->nparams; k++) {
            const Atom *scalar = p->tir->funcs[i]->params[k].scalar;
            divided |= scalar && !strcmp(scalar->name, "tid");
        }
    return !divided || host->body->kind == STMT_REGION;
}

static bool close_enough(const Const *a, const Const *b)
{
    if (a->data.n != b->data.n)
        return false;
    for (size_t i = 0; i < a->data.n; i += 4) {
        double x = dtype_get_f(DT_F32, a->data.at + i), y = dtype_get_f(DT_F32, b->data.at + i);

        if (!(fabs(x - y) <= 1e-4 + 1e-4 * fabs(x)))
            return false;
    }
    return true;
}

static void report(Ctx *c, const Module *m, uint32_t seed, const char *what)
{
    StrBuf text = strbuf(c->arena);

    diag_print(c->diags, DIAG_TEXT, &text);
    if (m)
        relay_print(c, m, (RelayPrint){.types = true}, &text);
    printf("seed %u: %s\n%s\n", seed, what, text.at ? text.at : "");
    check_failures++;
}

typedef struct {
    uint64_t views, with, without; /* arena bytes with views and without */
    uint64_t loops;
} Totals;

static uint32_t count_views(Ctx *c, const Module *m)
{
    ExprList list = expr_post_order(c, module_func(m, "main"));
    uint32_t n = 0;

    for (uint32_t i = 0; i < list.n; i++)
        n += (call_is(list.at[i], "concatenate") &&
              ((const ConcatenateAttrs *)list.at[i]->u.attrs)->view) ||
             (call_is(list.at[i], "strided_slice") &&
              ((const StridedSliceAttrs *)list.at[i]->u.attrs)->view);
    return n;
}

/* The graph with loops over its pictures, interpreted; gives how many there are. */
static uint32_t check_loops(Ctx *c, const Module *m, const Const *in, const Const *const *want,
                            uint32_t seed)
{
    PassOptions         o = {.opt_level = 3, .verify_each = true, .passes = "batch_loop"};
    const Module       *now = run_graph_passes(c, m, &o);
    const Const *const *got;
    uint32_t            n = 0;

    if (!now || !relay_eval(c, now, 1, &in, &n, &got)) {
        report(c, now ? now : m, seed, "the loops are not evaluated");
        return 0;
    }
    for (uint32_t i = 0; i < n; i++)
        if (!close_enough(want[i], got[i]))
            report(c, now, seed, "loops give other values");
    return now->nfuncs - m->nfuncs;
}

static void check_net(uint32_t seed, Totals *sum)
{
    /* Everything is worth a second thread. */
    static const Machine     slow = {.macs_ns = 1e-3, .stream_ns = 1e-3, .sync_ns = 1};
    static const Target      vectors[] = {{.text = "llvm -mcpu=a",
                                           .machine = &slow,
                                           .pointer_bits = 64,
                                           .vector_bytes = 32,
                                           .vector_regs = 16,
                                           .has_fma = true,
                                           .l1_bytes = 32768,
                                           .l2_bytes = 524288,
                                           .l3_bytes = 1 << 23,
                                           .winograd = true},
                                          {.text = "llvm -mcpu=b",
                                           .machine = &slow,
                                           .pointer_bits = 64,
                                           .vector_bytes = 16,
                                           .vector_regs = 32,
                                           .l1_bytes = 32768,
                                           .l2_bytes = 524288,
                                           .l3_bytes = 1 << 23},
                                          {.text = "llvm -mcpu=c",
                                           .machine = &slow,
                                           .pointer_bits = 64,
                                           .vector_bytes = 16,
                                           .vector_regs = 32,
                                           .l1_bytes = 1024,
                                           .l2_bytes = 8192,
                                           .l3_bytes = 8192}};
    static const char *const off[] = {"plan_views"};
    Arena                   *arena = arena_new(NULL);
    Ctx                     *c = ctx_new(arena, diags_new(arena), op_table);
    Net                      n = {.c = c, .seed = seed * 2654435761u};
    const Module            *m = random_net(&n, seed % COUNT(vectors) == 2), *now;
    const Const *in = float_noise(&n, func_param(module_func(m, "main"), 0)->type, -1, 1), *got[8];
    const Const *const *want;
    uint32_t            nwant = 0;

    c->target = &vectors[seed % COUNT(vectors)];
    check_count++;
    if (!relay_eval(c, m, 1, &in, &nwant, &want))
        report(c, m, seed, "the graph is not evaluated");
    else
        sum->loops += check_loops(c, m, in, want, seed);
    for (uint32_t views = 0; views < 2; views++) {
        PassOptions o = {.opt_level = 3, .verify_each = true, .nwithout = !views, .without = off};
        const Plan *p = NULL;

        now = run_graph_passes(c, m, &o);
        if (!now || !(p = lower(c, now, "net", &o))) {
            report(c, now ? now : m, seed, "not lowered");
            break;
        }
        if (views)
            sum->views += count_views(c, now), sum->with += p->arena_bytes;
        else
            sum->without += p->arena_bytes;
        if (!slots_apart(p))
            report(c, now, seed, "slots overlap");
        if (!threads_run(p))
            report(c, now, seed, "a kernel that is divided runs on one thread");
        if (!run_plan(c, p, in, got))
            report(c, now, seed, "does not run");
        else
            for (uint32_t i = 0; i < nwant; i++)
                if (!close_enough(want[i], got[i])) {
                    report(c, now, seed, arena_printf(arena, "result %u has other values", i));
                    break;
                }
    }
    ctx_free(c);
    arena_free(arena);
}

int main(int argc, char **argv)
{
    uint32_t from = argc > 1 ? (uint32_t)atoi(argv[1]) : 1,
             n = argc > 2 ? (uint32_t)atoi(argv[2]) : 150;
    Totals sum = {0};

    for (uint32_t seed = from; seed < from + n && check_failures < 3; seed++)
        check_net(seed, &sum);
    CHECK(sum.views > n / 2); /* the networks have what is tested */
    CHECK(sum.with <= sum.without);
    CHECK(sum.loops > n / 20);
    return check_result();
}
