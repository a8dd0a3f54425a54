/* batch_loop: batches picture by picture, where the values of all leave the caches.
 *
 *   fn @main(%x: (32, 3, 224, 224)) { .. nn.dense(%features, const @w) }
 *     -> fn @main.batch0(%x: (1, 3, 224, 224)) { .. }
 *        fn @main(%x: (32, 3, 224, 224)) { nn.dense(map_batch(@main.batch0, %x), const @w) }
 *
 * What one operator stores the next one loads again.  One picture's values often stay in L2, those
 * of 32 do not even stay in L3.  On the other hand, weights are loaded once a round: for a whole
 * batch that is cheaper, most of all in the last layers, with few pixels and many weights, and
 * products want some rows at a time.  So
 * main's calls, in the order of the program, are cut into runs; a run becomes a function of some
 * pictures that is mapped over the batch, or stays as it is.  The runs and their pictures a round
 * are those which save most cycles, by a cost of bytes moved (`Cost`), found by dynamic
 * programming.  Later passes then see a network of these few pictures.  Only calls that work on
 * each picture alone may be in a run (batch_local.c).  Cost: one walk, and a square of the calls in
 * a run, which is at most MAX_RUN long.
 *
 * Of a batch whose size a run decides, a round takes one picture, all of whose sizes are numbers:
 *
 *   fn @main(%x: (N, 3, 224, 224))  ->  fn @main.batch0(%x: (1, 3, 224, 224)), mapped over N
 */
#include "passes/graph/graph.h"

#include <math.h>
#include <string.h>

enum { MAX_RUN = 1024, MAX_IN = 16, MAX_CHOICES = 8 };

typedef struct {
    const Expr *e;
    bool        in_run;  /* may be: it is local, or holds nothing */
    bool        outside; /* a parameter or a constant, never in a run */
    double      weights; /* bytes of constants that it loads */
    double      again;   /* cycles for them in each round of one picture; */
    double      fixed;   /* ... that it saves since its sizes are numbers: of a symbolic batch */
    int64_t     rows;    /* of a product with weights: of one picture, */
    const Type *matrix;  /* and these; or NULL */
    double      bytes;   /* of its result for one picture, */
    double      reads;   /* which is read so often */
    bool        stored;  /* else it is a part of a kernel with its reader */
    bool        kernel;
    uint32_t    last; /* the last node that reads it; the number of nodes: a result */
} Node;

typedef struct {
    Ctx       *c;
    Machine    machine;
    const Idx *size; /* of the batch, */
    int64_t    n;    /* at most */
    ExprList   list;
    Node      *node;
    Map       *index; /* expression to its number, plus one */
    uint32_t   nchoices;
    int64_t    choice[MAX_CHOICES]; /* pictures a round */
} Batch;

/* A run of nodes, and its pictures a round. */
typedef struct {
    uint32_t from, to;
    int64_t  pictures;
} Run;

static Node *node_of(const Batch *b, const Expr *e)
{
    uintptr_t i = (uintptr_t)map_get(b->index, PTR_KEY(e));

    return i ? &b->node[i - 1] : NULL;
}

/* ---- what a node costs -------------------------------------------------------------------------- */

/* Cycles to store and to load a picture's values, while those of `pictures` are in use. */
static double value_cycles(const Batch *b, const Node *x, int64_t pictures)
{
    double n = x->bytes;

    return time_traffic(moved_time(&b->machine, x->reads * n, n, 2 * n * (double)pictures));
}

static bool is_symbolic(const Batch *b)
{
    return !idx_is_const(b->size, NULL);
}

static double bytes_of(const Batch *b, const Type *t)
{
    int64_t n = 0;
    double  sum = 0;

    if (t->kind == TYPE_TENSOR)
        return (is_symbolic(b) ? type_elems_most(t, &n) : type_elems(t, &n))
                   ? (double)n * dtype_bytes(t->dtype)
                   : 0;
    for (uint32_t i = 0; t->kind == TYPE_TUPLE && i < t->n; i++)
        sum += bytes_of(b, t->parts[i]);
    return sum;
}

/* Work that a kernel does while it stores another one's results, or that is none. */
static bool joins(const Expr *e)
{
    const Op *op = call_op(e);

    return !op || is_view(e) || op->fusion == FUSE_ELEMWISE || op->fusion == FUSE_BROADCAST;
}

/* A kernel of a symbolic batch takes the pictures one by one as well, so weights come as often;
 * what counts is the time that they take beyond that of the products of one picture, since rows of
 * a product would share them. */
static void cost_of_picture(const Batch *b, Node *x)
{
    const Op *op = call_op(x->e);
    int64_t   lanes = b->c->target->vector_bytes / 4;
    double    macs = op && op->macs ? (double)op->macs(x->e) / (double)b->n : 0;
    double    alone = dense_cycles(&b->machine, macs, 0, lanes);

    x->again = dense_cycles(&b->machine, macs, x->weights / 4, lanes) - alone;
    x->fixed = alone * limit_fixed_share(&b->machine);
}

static void find_product(const Batch *b, Node *x)
{
    const Expr *y = call_is(x->e, "nn.dense") ? call_arg(x->e, 1) : NULL;

    if (!y || y->kind != EXPR_CONST || is_symbolic(b))
        return;
    x->matrix = y->type;
    x->rows = 1;
    for (uint32_t i = 1; i + 1 < x->e->type->n; i++)
        x->rows *= x->e->type->dims[i]->lo;
}

/* Cycles a picture of a product that takes so many pictures at a time. */
static double product_cycles(const Batch *b, const Node *x, int64_t pictures)
{
    return x->matrix ? (double)x->rows * product_row_cycles(&b->machine, x->rows * pictures,
                                                            (double)x->matrix->dims[0]->lo,
                                                            (double)x->matrix->dims[1]->lo)
                     : 0;
}

/* A product reads its operand for each panel of columns. */
static double reads_of(const Batch *b, const Node *x)
{
    double usual = limit_value_reads(&b->machine);
    double panel = (double)(limit_tile_most_vectors(&b->machine) * b->machine.vector_bytes / 4);

    return x->matrix ? fmin(usual, ceil((double)x->matrix->dims[0]->lo / panel)) : usual;
}

static void cost_nodes(Batch *b)
{
    uint32_t *readers = NEW_ARRAY(b->c->scratch, uint32_t, b->list.n + 1);
    bool     *alone = NEW_ARRAY(b->c->scratch, bool, b->list.n + 1);

    for (uint32_t i = 0; i < b->list.n; i++) {
        Node *x = &b->node[i];
        for (uint32_t k = 0; k < x->e->nkids; k++) {
            Node *y = node_of(b, x->e->kids[k]);
            y->last = i;
            readers[y - b->node]++;
            alone[y - b->node] |= !joins(x->e);
            if (x->e->kind == EXPR_CALL && x->e->kids[k]->kind == EXPR_CONST)
                x->weights += bytes_of(b, x->e->kids[k]->type);
        }
        x->kernel = call_op(x->e) && !joins(x->e);
        if (is_symbolic(b))
            cost_of_picture(b, x);
        find_product(b, x);
        for (uint32_t k = 0; k < x->e->nkids; k++) {
            Node *y = node_of(b, x->e->kids[k]);
            y->reads = fmax(y->reads, reads_of(b, x));
        }
    }
    for (uint32_t i = 0; i < b->list.n; i++) {
        Node *x = &b->node[i];
        x->reads = x->reads > 0 ? x->reads : limit_value_reads(&b->machine);
        x->bytes = x->outside ? 0 : bytes_of(b, x->e->type) / (double)b->n;
        x->stored = x->e->kind == EXPR_CALL && !is_view(x->e) && (alone[i] || readers[i] > 1);
    }
}

/* ---- which nodes may be in a run ------------------------------------------------------------------ */

static bool has_pictures(const Batch *b, const Type *t)
{
    if (!t)
        return false;
    for (uint32_t i = 0; t->kind == TYPE_TUPLE && i < t->n; i++)
        if (!has_pictures(b, t->parts[i]))
            return false;
    return t->kind == TYPE_TUPLE || (t->kind == TYPE_TENSOR && t->n && t->dims[0] == b->size);
}

/* Operands that are cut are values of the batch; others are constants. */
static bool may_run(Batch *b, const Expr *e)
{
    bool *cut = NEW_ARRAY(b->c->scratch, bool, e->nkids + 1);

    if (!is_symbolic(b) && !type_static(e->type))
        return false;
    if (e->kind == EXPR_TUPLE || e->kind == EXPR_PROJ)
        return has_pictures(b, e->type);
    if (!batch_local(b->c, e, b->size, cut))
        return false;
    for (uint32_t i = 0; i < call_nargs(e); i++)
        if (cut[i] ? !has_pictures(b, call_arg(e, i)->type) : call_arg(e, i)->kind != EXPR_CONST)
            return false;
    return true;
}

/* The body is calls of operators, tuples, their fields, parameters and constants: all of main's. */
static bool make_nodes(Batch *b, const Expr *main)
{
    Ctx *c = b->c;

    b->list = expr_post_order(c, func_body(main));
    b->node = NEW_ARRAY(c->scratch, Node, b->list.n + 1);
    b->index = map_new(c->scratch);
    for (uint32_t i = 0; i < b->list.n; i++) {
        const Expr *e = b->list.at[i];
        Node       *x = &b->node[i];

        *x = (Node){.e = e, .last = i};
        map_put(b->index, PTR_KEY(e), (void *)(uintptr_t)(i + 1));
        switch (e->kind) {
        case EXPR_VAR:
        case EXPR_OP:
        case EXPR_CONST: x->in_run = x->outside = true; break;
        case EXPR_CALL:
            if (!call_op(e))
                return false;
            /* fall through */
        case EXPR_TUPLE:
        case EXPR_PROJ: x->in_run = may_run(b, e); break;
        case EXPR_GLOBAL:
        case EXPR_CTOR:
        case EXPR_LET:
        case EXPR_IF:
        case EXPR_FUNC:
        case EXPR_REF_NEW:
        case EXPR_REF_READ:
        case EXPR_REF_WRITE:
        case EXPR_MATCH: return false;
        }
    }
    cost_nodes(b);
    b->node[b->list.n - 1].last = b->list.n;
    if (func_body(main)->kind == EXPR_TUPLE) { /* its fields are results */
        b->node[b->list.n - 1].in_run = false;
        for (uint32_t k = 0; k < func_body(main)->nkids; k++)
            node_of(b, func_body(main)->kids[k])->last = b->list.n;
    }
    return true;
}

/* ---- the best runs ---------------------------------------------------------------------------------- */

/* Cycles saved a picture if nodes from..to run for so many pictures a round. */
typedef struct {
    double saved[MAX_CHOICES]; /* by values that stay within */
    double weights;            /* bytes */
    double again, fixed;       /* of a symbolic batch */
    double kernels;
    double across; /* cycles lost where values cross the ends of the run */
} Gain;

static double gain_of(const Batch *b, const Gain *g, uint32_t choice)
{
    double rounds = 1.0 / (double)b->choice[choice] - 1.0 / (double)b->n;
    double weights = is_symbolic(b)
                         ? g->again
                         : time_traffic(moved_time(&b->machine, g->weights, 0, g->weights));

    return g->saved[choice] + g->fixed - g->across -
           rounds * (weights + g->kernels * b->machine.again_cycles);
}

/* A value from one run to another, or to main, is stored though its reader could have been fused,
 * and its layout is the plain one: images are transformed, which is one more load and store. */
static double crossing(const Batch *b, const Node *x)
{
    double cost = 0;

    if (!x->stored)
        cost += value_cycles(b, x, b->n);
    if (x->e->type->kind == TYPE_TENSOR && x->e->type->n == 4)
        cost += value_cycles(b, x, 1);
    return cost;
}

static void dies_within(const Batch *b, const Node *x, Gain *g)
{
    g->across -= crossing(b, x);
    for (uint32_t k = 0; x->stored && k < b->nchoices; k++)
        g->saved[k] += value_cycles(b, x, b->n) - value_cycles(b, x, b->choice[k]);
}

static void add_node(const Batch *b, uint32_t from, const Node *x, Gain *g)
{
    g->weights += x->weights;
    g->again += x->again;
    g->fixed += x->fixed;
    g->kernels += x->kernel;
    g->across += crossing(b, x); /* until it dies */
    for (uint32_t k = 0; x->matrix && k < b->nchoices; k++)
        g->saved[k] += product_cycles(b, x, b->n) - product_cycles(b, x, b->choice[k]);
    for (uint32_t k = 0; k < x->e->nkids; k++) {
        const Node *y = node_of(b, x->e->kids[k]);
        if (y < b->node + from && !y->outside)
            g->across += crossing(b, y);
    }
}

typedef struct {
    double   gain;
    uint32_t from, choice; /* of the run that ends here; from == to: none does */
} Best;

/* Nodes read for the last time by node i: dying[start[i]..start[i+1]). */
static void by_last(const Batch *b, uint32_t *start, uint32_t *dying)
{
    for (uint32_t i = 0; i < b->list.n; i++)
        start[b->node[i].last + 1]++;
    for (uint32_t i = 0; i <= b->list.n; i++)
        start[i + 1] += start[i];
    for (uint32_t i = b->list.n; i-- > 0;)
        dying[--start[b->node[i].last + 1]] = i;
    for (uint32_t i = 0; i <= b->list.n; i++)
        start[i] = start[i + 1];
}

static Best *best_runs(const Batch *b)
{
    Ctx      *c = b->c;
    uint32_t  n = b->list.n;
    Best     *best = NEW_ARRAY(c->scratch, Best, n + 1);
    uint32_t *start = NEW_ARRAY(c->scratch, uint32_t, n + 3);
    uint32_t *dying = NEW_ARRAY(c->scratch, uint32_t, n + 1);

    by_last(b, start, dying);
    for (uint32_t i = 0; i <= n; i++)
        best[i] = (Best){0, i, 0};
    for (uint32_t from = 0; from < n; from++) {
        Gain g = {.across = 0};
        if (best[from + 1].gain < best[from].gain)
            best[from + 1] = (Best){best[from].gain, from + 1, 0};
        if (b->node[from].outside)
            continue;
        for (uint32_t i = from; i < n && i - from < MAX_RUN && b->node[i].in_run; i++) {
            if (!b->node[i].outside)
                add_node(b, from, &b->node[i], &g);
            for (uint32_t k = start[i]; k < start[i + 1]; k++)
                if (dying[k] >= from && !b->node[dying[k]].outside)
                    dies_within(b, &b->node[dying[k]], &g);
            for (uint32_t k = 0; k < b->nchoices; k++) {
                double gain = best[from].gain + gain_of(b, &g, k);
                if (gain > best[i + 1].gain * (1 + 1e-9) + 1e-9)
                    best[i + 1] = (Best){gain, from, k};
            }
        }
    }
    return best;
}

/* ---- building --------------------------------------------------------------------------------------- */

typedef VEC(const Expr *) Exprs;

typedef struct {
    Batch        *b;
    const Module *m;
    Map          *now; /* node of the old main to the new */
    uint32_t      made;
} Build;

/* The value for one round: of the run itself, a constant, or a parameter. */
static const Expr *within(Build *w, Map *inner, const Expr *kid, int64_t pictures, Exprs *params,
                          Exprs *args)
{
    Ctx        *c = w->b->c;
    const Expr *v = map_get(inner, PTR_KEY(kid));
    const Type *t;

    if (v || kid->kind == EXPR_CONST || kid->kind == EXPR_OP)
        return v ? v : kid;
    t = type_with_first(c, kid->type, idx_const(c->arith, pictures));
    if (!t || params->n == MAX_IN)
        return NULL;
    v = expr_var(c, kid->kind == EXPR_VAR ? kid->u.var.name : "x", t, kid->loc);
    map_put(inner, PTR_KEY(kid), (void *)(uintptr_t)v);
    vec_push(c->scratch, params, v);
    vec_push(c->scratch, args, map_get(w->now, PTR_KEY(kid)));
    return v;
}

/* A function of a run's nodes, mapped over the batch; false: this run cannot be made, and main
 * keeps its nodes. */
static bool build_run(Build *w, Run run)
{
    Batch *b = w->b;
    Ctx   *c = b->c;
    Map   *inner = map_new(c->scratch);
    Exprs  params = {0}, args = {0}, outs = {0}, results = {0};

    vec_push(c->scratch, &args, NULL); /* the function */
    for (uint32_t i = run.from; i < run.to; i++) {
        const Expr  *e = b->node[i].e, *now;
        const Expr **kids = NEW_ARRAY(c->scratch, const Expr *, e->nkids + 1);
        if (b->node[i].outside)
            continue;
        for (uint32_t k = 0; k < e->nkids; k++)
            if (!(kids[k] = within(w, inner, e->kids[k], run.pictures, &params, &args)))
                return false;
        if (!(now = batch_resized(c, e, kids, b->size, run.pictures)))
            return false;
        map_put(inner, PTR_KEY(e), (void *)(uintptr_t)now);
        if (b->node[i].last >= run.to) {
            if (e->type->kind != TYPE_TENSOR)
                return false;
            vec_push(c->scratch, &outs, e);
            vec_push(c->scratch, &results, now);
        }
    }
    if (!outs.n || !params.n)
        return false;
    const Expr *body =
        outs.n == 1 ? results.at[0] : expr_tuple(c, results.n, results.at, results.at[0]->loc);
    const char *name = intern_printf(c->strings, "main.batch%u", w->made++);
    const Expr *f = expr_func(c, params.n, params.at, body, (FuncData){0}, body->loc);
    args.at[0] = expr_global(c, name, f->type, f->loc);
    const Expr *call = expr_call_name(c, "map_batch", args.n, args.at, NULL, body->loc);
    if (!call)
        return false;
    w->m = module_with_func(c, w->m, name, f);
    for (uint32_t i = 0; i < outs.n; i++) {
        const Expr *v = outs.n == 1 ? call : expr_proj(c, call, i, call->loc);
        map_put(w->now, PTR_KEY(outs.at[i]), (void *)(uintptr_t)v);
    }
    return true;
}

static const Module *build(Batch *b, const Module *m, const Expr *main, uint32_t nruns,
                           const Run *runs)
{
    Ctx  *c = b->c;
    Build w = {b, m, map_new(c->scratch), 0};

    for (uint32_t i = 0, r = 0; i < b->list.n; i++) {
        const Expr  *e = b->node[i].e;
        const Expr **kids = NEW_ARRAY(c->scratch, const Expr *, e->nkids + 1);
        while (r < nruns && runs[r].to <= i)
            r++;
        if (r < nruns && runs[r].from == i) {
            for (uint32_t k = i; k < runs[r].to; k++) /* constants within */
                if (b->node[k].outside)
                    map_put(w.now, PTR_KEY(b->node[k].e), (void *)(uintptr_t)b->node[k].e);
            if (build_run(&w, runs[r])) {
                i = runs[r].to - 1;
                continue;
            }
        }
        for (uint32_t k = 0; k < e->nkids; k++)
            kids[k] = map_get(w.now, PTR_KEY(e->kids[k]));
        const Expr *now = b->node[i].outside ? e : expr_with_kids(c, e, kids);
        if (!now)
            return NULL;
        map_put(w.now, PTR_KEY(e), (void *)(uintptr_t)now);
    }
    if (!w.made)
        return m;
    const Expr **kids = DUP_ARRAY(c->scratch, main->kids, main->nkids);
    kids[main->nkids - 1] = map_get(w.now, PTR_KEY(func_body(main)));
    return module_with_func(c, w.m, "main", expr_with_kids(c, main, kids));
}

/* The batch: the first dimension that all parameters of main share, the only one that may be no
 * number; NULL: there is none. */
static const Idx *pictures_of(const Expr *main)
{
    const Idx *n = NULL;

    for (uint32_t i = 0; i < func_nparams(main); i++) {
        const Type *t = func_param(main, i)->type;
        if (!t || t->kind != TYPE_TENSOR || !t->n || (n && n != t->dims[0]))
            return NULL;
        n = t->dims[0];
        for (uint32_t k = 1; k < t->n; k++)
            if (!idx_is_const(t->dims[k], NULL))
                return NULL;
    }
    return n && n->lo > 0 ? n : NULL;
}

/* Pictures a round that can be tried: divisors of the batch, the least ones; one where it has none.
 */
static void make_choices(Batch *b)
{
    if (is_symbolic(b))
        b->choice[b->nchoices++] = 1;
    else
        for (int64_t k = 1; k < b->n && b->nchoices < MAX_CHOICES; k = divisor_from(b->n, k + 1))
            b->choice[b->nchoices++] = k;
}

const Module *batch_loop(Ctx *c, const Module *m)
{
    const Expr *main = module_func(m, "main");
    Batch       b = {.c = c, .machine = machine_of(c->target)};
    VEC(Run) runs = {0};

    if (!main || !main->type || !has_vectors(c->target) || !(b.size = pictures_of(main)) ||
        (b.n = idx_usual(b.size)) < 2 || !make_nodes(&b, main))
        return m;
    make_choices(&b);
    const Best *best = best_runs(&b);
    for (uint32_t i = b.list.n; i > 0;) {
        if (best[i].from == i) {
            i--;
            continue;
        }
        vec_push(c->scratch, &runs, ((Run){best[i].from, i, b.choice[best[i].choice]}));
        i = best[i].from;
    }
    for (uint32_t i = 0; i < runs.n / 2; i++) {
        Run t = runs.at[i];
        runs.at[i] = runs.at[runs.n - 1 - i];
        runs.at[runs.n - 1 - i] = t;
    }
    return runs.n ? build(&b, m, main, runs.n, runs.at) : m;
}
