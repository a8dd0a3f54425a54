/* hoist_products: products of what a loop reads row by row are computed for all rows before it.
 *
 *   fn @loop(%go, %i, %h, %x: [20, 1, 16]) {
 *     .. nn.bias_add(add(nn.dense(take(%x, %i), const @w), nn.dense(%h, const @r)), const @b) ..
 *   }
 *     -> fn @loop(%go, %i, %h, %y: [20, 1, 128]) { .. add(take(%y, %i), nn.dense(%h, const @r)) ..
 * } %y = reshape(nn.bias_add(nn.dense(reshape(%x, [20, 16]), const @w), const @b), [20, 1, 128])
 *
 * One product of 20 rows reads the matrix once, and fills registers that one row leaves empty; so
 * do convolutions.  The loop is one whose counter goes over all rows (simplify_loops), and what is
 * multiplied is row %i of a tensor that is the same in all rounds, seen or changed cell by cell.
 * Of a sum the row's products go along, and the numbers that are added: sums are rounded in another
 * order.  What follows stays: it may be cut into parts, which would be copied.
 * Cost: two walks of each loop, one rewrite. */
#include "passes/graph/graph.h"

#include <string.h>

enum { MAX_TERMS = 16, MAX_DIMS = 8, MAX_CHAIN = 64 };

/* What a sum is now: the row of a tensor that is computed before the loop, and other terms. */
typedef struct {
    const Expr *row;
    uint32_t    n;
    const Expr *rest[MAX_TERMS];
} Split;

typedef struct {
    Ctx        *c;
    const char *name;
    const Expr *f, *call, *i;
    LoopForm    form;
    int64_t     rounds;
    Map        *rows;  /* nodes of one row alone */
    Map        *all;   /* such a node: the same of all rows */
    Map        *uses;  /* how often a node is used in the loop */
    Map        *inner; /* nodes that are part of a sum */
    Map        *split; /* a sum, or a product: its Split */
    Map        *done;  /* node of the loop: what it has become */
    VEC(const Expr *) params, args;
} Hoist;

static const Expr *first_of(const Hoist *h, const Expr *param)
{
    for (uint32_t k = 0; k < func_nparams(h->f); k++)
        if (func_param(h->f, k) == param)
            return call_arg(h->call, k);
    return NULL;
}

static bool is_passed_on(const Hoist *h, const Expr *e)
{
    for (uint32_t k = 0; k < func_nparams(h->f); k++)
        if (func_param(h->f, k) == e)
            return passes_on(h->f, &h->form, k);
    return false;
}

/* ---- what hangs on one row alone ------------------------------------------------------------------- */

static bool first_dim(const Expr *e, int64_t *n)
{
    return expr_is_tensor(e) && e->type->n && e->type->n < MAX_DIMS && type_dim(e->type, 0, n) &&
           *n > 0;
}

/* Row i of a tensor that is the same in all rounds, as many rows as there are rounds. */
static bool is_row(const Hoist *h, const Expr *e)
{
    const TakeAttrs *a;
    int64_t          rows, n;

    if (!call_is(e, "take") || call_arg(e, 1) != h->i || !is_passed_on(h, call_arg(e, 0)))
        return false;
    a = ATTRS_OF(TakeAttrs, e);
    return expr_is_tensor(call_arg(e, 0)) && first_dim(e, &n) && !a->batch_dims &&
           axis_from_front(a->axis, call_arg(e, 0)->type->n) == 0 &&
           type_dim(call_arg(e, 0)->type, 0, &rows) && rows == h->rounds;
}

static bool is_product(const Expr *e)
{
    return call_is(e, "nn.dense") || call_is(e, "nn.conv2d") || call_is(e, "nn.conv1d") ||
           call_is(e, "nn.conv3d");
}

static bool is_same(const Hoist *h, const Expr *e)
{
    return is_constant(e) || is_passed_on(h, e);
}

/* Does the call give each image of a batch what it gives it alone? */
static bool image_by_image(const Hoist *h, const Expr *e)
{
    const Expr *x = call_op(e) && call_nargs(e) ? call_arg(e, 0) : NULL;
    int64_t     n, was;

    if (!x || !map_get(h->rows, PTR_KEY(x)) || !first_dim(e, &n) || !first_dim(x, &was) || n != was)
        return false;
    if (is_product(e))
        return x->type->n > 1 && is_same(h, call_arg(e, 1));
    if (is_view(e))
        return true;
    if (call_is(e, "nn.bias_add"))
        return is_constant(call_arg(e, 1)) &&
               axis_from_front(ATTRS_OF(BiasAddAttrs, e)->axis, e->type->n) > 0;
    if (call_is(e, "transpose")) {
        const TransposeAttrs *a = ATTRS_OF(TransposeAttrs, e);

        return a->axes.n && axis_from_front(a->axes.at[0], e->type->n) == 0;
    }
    if (call_is(e, "nn.pad"))
        return ATTRS_OF(PadAttrs, e)->pad_width.n > 1 && !ATTRS_OF(PadAttrs, e)->pad_width.at[0] &&
               !ATTRS_OF(PadAttrs, e)->pad_width.at[1];
    return call_nargs(e) == 1 && call_op(e)->fusion == FUSE_ELEMWISE && same_dims(e->type, x->type);
}

/* A row of all rows: [rows * n, ..]. */
static const Expr *all_rows(Hoist *h, const Expr *e, const Idx *images)
{
    const Expr *x = first_of(h, call_arg(e, 0));
    const Idx  *dims[MAX_DIMS];

    memcpy(dims, e->type->dims, e->type->n * sizeof *dims);
    dims[0] = images;
    while (is_view(x) && expr_is_tensor(call_arg(x, 0)))
        x = call_arg(x, 0);
    return x->type == type_tensor(h->c, e->type->dtype, e->type->n, dims)
               ? x
               : make_reshape_to(h->c, x, e->type->n, dims, e->loc);
}

/* A step of x, which is what it is of in all rows. */
static const Expr *step_of_all(Hoist *h, const Expr *e, const Expr *x, const Idx *images)
{
    const Expr *args[2] = {x};
    const Idx  *dims[MAX_DIMS];

    if (is_view(e)) {
        memcpy(dims, e->type->dims, e->type->n * sizeof *dims);
        dims[0] = images;
        return make_reshape_to(h->c, x, e->type->n, dims, e->loc);
    }
    if (call_nargs(e) > 1)
        args[1] = is_constant(call_arg(e, 1)) ? call_arg(e, 1) : first_of(h, call_arg(e, 1));
    return expr_call(h->c, call_op(e), call_nargs(e), args, e->u.attrs, e->loc);
}

/* The same of all rows: [rows * n, ..]. */
static const Expr *of_all_rows(Hoist *h, const Expr *e)
{
    const Expr *chain[MAX_CHAIN], *x;
    uint32_t    n = 0;
    int64_t     images;

    if (!first_dim(e, &images) || !checked_mul(images, h->rounds, &images))
        return NULL;
    for (; !map_get(h->all, PTR_KEY(e)) && !is_row(h, e); e = call_arg(e, 0)) {
        if (n == MAX_CHAIN)
            return NULL;
        chain[n++] = e;
    }
    x = map_get(h->all, PTR_KEY(e));
    x = x ? x : all_rows(h, e, idx_const(h->c->arith, images));
    while (n-- && x) {
        x = step_of_all(h, chain[n], x, idx_const(h->c->arith, images));
        map_put(h->all, PTR_KEY(chain[n]), (void *)(uintptr_t)x);
    }
    return x;
}

/* Is there a product among the steps from a row to e? */
static bool has_product(const Hoist *h, const Expr *e)
{
    bool found = false;

    for (uint32_t n = 0; !is_row(h, e); e = call_arg(e, 0)) {
        found |= is_product(e);
        if (n++ == MAX_CHAIN)
            return false;
    }
    return found;
}

/* ---- sums ---------------------------------------------------------------------------------------- */

/* One term: x itself, or numbers that `by`, an addition, adds to its first or other operand. */
typedef struct {
    const Expr *x, *by;
} Term;

typedef struct {
    uint32_t n;
    Term     at[MAX_TERMS];
} Sum;

/* Numbers that are the same for each image. */
static bool is_for_all(const Expr *e, const Expr *k)
{
    int64_t n;

    return is_constant(k) && expr_is_tensor(k) &&
           (k->type->n < e->type->n || (type_dim(k->type, 0, &n) && n == 1));
}

/* What an addition adds to its first operand: the tensor that its second shows, or itself. */
static const Expr *added(const Expr *e)
{
    const Expr *y = call_arg(e, 1), *x = y;

    while (is_view(x) && x->type != e->type)
        x = call_arg(x, 0);
    return x->type == e->type ? x : y;
}

static bool is_sum(const Hoist *h, const Expr *e)
{
    int64_t n;

    return (call_is(e, "add") || call_is(e, "nn.bias_add")) && is_float(e) && first_dim(e, &n) &&
           e->type->n > 1 && !map_get(h->inner, PTR_KEY(e));
}

static bool add_term(Sum *s, const Expr *x, const Expr *by)
{
    if (s->n == MAX_TERMS)
        return false;
    s->at[s->n++] = (Term){x, by};
    return true;
}

/* The terms of a sum, from the left; sums within it that are read elsewhere are one. */
static bool find_terms(Hoist *h, const Expr *root, Sum *s)
{
    const Expr *stack[MAX_TERMS + 1];
    uint32_t    n = 0;

    stack[n++] = root;
    while (n) {
        const Expr *e = stack[--n], *x, *y;

        if (!is_sum(h, e) || (e != root && uses_of(h->uses, e) != 1) || e->type != root->type) {
            if (!add_term(s, e, NULL))
                return false;
            continue;
        }
        x = call_arg(e, 0);
        y = added(e);
        if (x->type == e->type && is_for_all(e, call_arg(e, 1)) &&
            (call_is(e, "add") ||
             axis_from_front(ATTRS_OF(BiasAddAttrs, e)->axis, e->type->n) > 0)) {
            if (!add_term(s, call_arg(e, 1), e))
                return false;
            stack[n++] = x;
        } else if (call_is(e, "add") && y->type == e->type && is_for_all(e, x)) {
            if (!add_term(s, x, e))
                return false;
            stack[n++] = y;
        } else if (x->type == e->type && y->type == e->type && n + 2 <= MAX_TERMS) {
            stack[n++] = y;
            stack[n++] = x;
        } else if (!add_term(s, e, NULL)) {
            return false;
        }
        if (e != root)
            map_put(h->inner, PTR_KEY(e), h);
    }
    return true;
}

static const Expr *sum_of(Ctx *c, const Expr *a, const Expr *b, Loc loc)
{
    return !a ? b : make2(c, "add", a, b, NULL, loc);
}

/* A parameter for the tensor x, whose first dimension is all rows' images; its row. */
static const Expr *row_of(Hoist *h, const Expr *x, const Expr *like)
{
    Ctx        *c = h->c;
    const Idx  *dims[MAX_DIMS + 1] = {idx_const(c->arith, h->rounds)};
    const Expr *v;

    memcpy(dims + 1, like->type->dims, like->type->n * sizeof *dims);
    x = x ? make_reshape_to(c, x, like->type->n + 1, dims, like->loc) : NULL;
    if (!x)
        return NULL;
    v = expr_var(c, "x", x->type, like->loc);
    vec_push(c->scratch, &h->params, v);
    vec_push(c->scratch, &h->args, x);
    return make2(c, "take", v, h->i, ATTRS_NEW(c, TakeAttrs), like->loc);
}

/* A product of the row that nothing else reads, or one that stands for itself. */
static bool is_rows_product(const Hoist *h, const Sum *s, uint32_t i)
{
    const Expr *x = s->at[i].x;

    return !s->at[i].by && map_get(h->rows, PTR_KEY(x)) && has_product(h, x) &&
           (s->n == 1 || uses_of(h->uses, x) == 1);
}

/* The sum of all rows and numbers; a bias, where they are of the last dimension. */
static const Expr *with_numbers(Ctx *c, const Expr *all, const Term *t)
{
    uint32_t      last = all->type->n - 1;
    const Expr   *args[2] = {all, t->x};
    BiasAddAttrs *a = ATTRS_NEW(c, BiasAddAttrs);

    if (!call_is(t->by, "add") || !call_is(all, "nn.dense") || t->x->type->n != 1 ||
        t->x->type->dims[0] != all->type->dims[last])
        return expr_call(c, call_op(t->by), 2, args, t->by->u.attrs, t->by->loc);
    a->axis = last;
    return expr_call_name(c, "nn.bias_add", 2, args, a, t->by->loc);
}

/* The rows' part of a sum, computed before, and the rest.  False: an error. */
static bool split_sum(Hoist *h, const Expr *root, const Sum *s)
{
    Ctx        *c = h->c;
    const Expr *all = NULL;
    Split      *out = NEW(c->scratch, Split);
    bool        row = map_get(h->rows, PTR_KEY(root)) && has_product(h, root);

    if (row && !(all = of_all_rows(h, root)))
        return false;
    for (uint32_t i = 0; i < s->n; i++) {
        const Term *t = &s->at[i];

        if (t->by)
            continue;
        if (!is_rows_product(h, s, i)) {
            out->rest[out->n++] = t->x;
            continue;
        }
        map_put(h->inner, PTR_KEY(t->x), h);
        if (!row && !(all = sum_of(c, all, of_all_rows(h, t->x), root->loc)))
            return false;
    }
    if (!all)
        return true;
    for (uint32_t i = 0; i < s->n; i++)
        if (!row && s->at[i].by && !(all = with_numbers(c, all, &s->at[i])))
            return false;
    map_put(h->split, PTR_KEY(root), out);
    return (out->row = row_of(h, all, root)) != NULL;
}

/* Sums from the outermost in, and products outside of any. */
static bool choose(Hoist *h)
{
    ExprList list = expr_post_order(h->c, h->form.again);

    for (uint32_t i = 0; i < list.n; i++) {
        const Expr *e = list.at[i];

        for (uint32_t k = 0; k < e->nkids; k++) {
            uintptr_t n = (uintptr_t)map_get(h->uses, PTR_KEY(e->kids[k]));

            map_put(h->uses, PTR_KEY(e->kids[k]), (void *)(n + 1));
        }
        if (is_row(h, e) || image_by_image(h, e))
            map_put(h->rows, PTR_KEY(e), h);
    }
    for (uint32_t i = list.n; i-- > 0;) {
        const Expr *e = list.at[i];
        Sum         s = {0};

        if (map_get(h->inner, PTR_KEY(e)) || (!is_sum(h, e) && !is_product(e)))
            continue;
        if ((is_sum(h, e) ? find_terms(h, e, &s) : add_term(&s, e, NULL)) && !split_sum(h, e, &s))
            return false;
    }
    return true;
}

/* ---- the rewrite --------------------------------------------------------------------------------- */

static const Expr *in_loop(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    Hoist       *h = user;
    const Split *s = map_get(h->split, PTR_KEY(was));
    const Expr  *e = s ? s->row : now, *rest = NULL;

    if (was == h->form.again)
        return loop_call_with(c, h->f, now, h->params.n, h->params.at, h->params.at);
    for (uint32_t i = 0; s && i < s->n; i++)
        if (!(rest = sum_of(c, rest, map_get(h->done, PTR_KEY(s->rest[i])), was->loc)))
            return NULL;
    e = rest ? make2(c, "add", e, rest, NULL, was->loc) : e;
    map_put(h->done, PTR_KEY(was), (void *)(uintptr_t)e);
    return e;
}

static const Expr *in_others(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const Hoist *h = user;

    return was == h->call ? loop_call_with(c, h->f, now, h->params.n, h->params.at, h->args.at)
                          : now;
}

static const Module *hoisted(Ctx *c, const Module *m, uint32_t at)
{
    GlobalDef  *defs = DUP_ARRAY(c->scratch, m->funcs, m->nfuncs);
    Hoist       h = {.c = c, .name = intern(c->strings, m->funcs[at].name), .f = m->funcs[at].func};
    const Expr *body;

    if (!is_loop(c, h.f, h.name, &h.form) || !(h.call = loop_call(c, m, h.name, &h.form, false)))
        return m;
    h.rounds = loop_rounds(c, h.f, &h.form, h.call);
    h.i = loop_index(c, h.f, &h.form, h.call);
    if (h.rounds < 2 || !h.i)
        return m;
    h.rows = map_new(c->scratch);
    h.all = map_new(c->scratch);
    h.uses = map_new(c->scratch);
    h.inner = map_new(c->scratch);
    h.split = map_new(c->scratch);
    h.done = map_new(c->scratch);
    if (!choose(&h))
        return NULL;
    if (!h.params.n)
        return m;
    if (!(body = expr_rewrite(c, func_body(h.f), in_loop, &h)))
        return NULL;
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        defs[i].func = i == at ? loop_with(c, h.f, body, h.params.n, h.params.at)
                               : expr_rewrite(c, defs[i].func, in_others, &h);
        if (!defs[i].func)
            return NULL;
    }
    return module_new(c, m, m->nfuncs, defs);
}

const Module *hoist_products(Ctx *c, const Module *m)
{
    const Module *was = m;

    for (uint32_t i = 0; i < m->nfuncs; i++)
        if (!(m = hoisted(c, m, i)))
            return NULL;
    if (m == was || !(m = simplify_expr(c, m))) /* transposes of rows meet those of all */
        return m;
    return simplify_loops(c, m); /* what was multiplied may be read no more */
}
