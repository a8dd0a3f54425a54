/* plan_views: concatenations and slices become parts of one memory.
 *
 *   %2 = concatenate((%0, %1), axis=1);  %3 = split(%2, sections=2, axis=1);  nn.relu(%3.1)
 *     -> %2 = concatenate((%0, %1), axis=1, view=true);
 *        %3 = strided_slice(%2, begin=[8], end=[16], axes=[1], view=true);  nn.relu(%3)
 *
 * A view is no kernel: what makes %0 and %1 writes into the memory of %2, and what reads %3 reads
 * there (docs/design/views.md).  It is possible where each part is one range of the whole, so all
 * dimensions before the axis are 1: channels, also blocked ones, of one image; the first dimension
 * of anything.  A value lies in one whole only.  So
 *
 *   - fields that begin with all those of an earlier concatenation are taken to be that one and
 *     the rest: DenseNet's features become one memory that grows;
 *   - a field that lies elsewhere already, or that no kernel makes (a parameter, a slice), is
 *     copied.  If more than half of the result would be copies, one kernel does it all.
 *
 * Kernels of devices move 16 bytes at a time, and count on tensors to begin on such a border, so a
 * part that does not is no view there.
 *
 * A slice of a value that is only elementwise work is left to fusion, which then computes just the
 * part.  Results of main stay what they are: they have memory of their own.  Runs before borders
 * are planned, which parts and whole share.  Cost: one walk; concatenations with the same first
 * field are compared with each other. */
#include "passes/graph/graph.h"

#include <string.h>

#define MAX_CHAIN 16 /* elementwise calls looked through */

typedef struct Join {
    const Expr        *e;
    GraphScope        *scope;
    uint32_t           axis, n;
    const Expr *const *fields; /* as the model has them, rewritten */
    const Expr *const *was;    /* ... not rewritten */
    bool               result; /* of main */
    struct Join       *next;   /* of the same first field */
} Join;

typedef struct {
    Map *info;    /* node of the old graph to NodeInfo */
    Map *uses;    /* ... to the number of its uses */
    Map *results; /* ... of main, and what is in tuples and reshapes of those */
    Map *inner;   /* nodes within primitive functions */
    Map *placed;  /* node of the new graph that lies in another one's memory */
    Map *first;   /* node of the new graph to the latest Join that begins with it */
} Views;

/* ---- what may lie where --------------------------------------------------------------------- */

static bool leads(const Type *t, uint32_t axis)
{
    int64_t n;

    for (uint32_t i = 0; i < axis; i++)
        if (!type_dim(t, i, &n) || n != 1)
            return false;
    return true;
}

/* May a part begin at that position of a dimension? */
static bool on_border(Ctx *c, const Type *whole, uint32_t axis, const Idx *at)
{
    enum { BORDER = 16 }; /* of copies past the registers, which threads of a block make */
    int64_t rest;

    if (!c->target || c->target->max_threads <= 1)
        return true;
    for (uint32_t i = axis + 1; i < whole->n; i++)
        at = idx_mul(c->arith, at, whole->dims[i]);
    at = idx_mulc(c->arith, at, (int64_t)dtype_bytes(whole->dtype));
    return idx_is_const(idx_modc(c->arith, at, BORDER), &rest) && rest == 0;
}

static bool fields_on_border(Ctx *c, const Type *whole, uint32_t axis, uint32_t n,
                             const Expr *const *fields)
{
    const Idx *at = idx_const(c->arith, 0);

    for (uint32_t i = 0; i < n; i++) {
        if (!on_border(c, whole, axis, at))
            return false;
        at = idx_add(c->arith, at, fields[i]->type->dims[axis]);
    }
    return true;
}

static bool some_cells(const Expr *e)
{
    int64_t n;

    return expr_is_tensor(e) && type_elems(e->type, &n) && n > 0;
}

/* What owns the memory of e. */
static const Expr *owner(const Expr *e)
{
    while (is_view(e))
        e = call_arg(e, 0);
    return e;
}

/* Does a kernel write all of e's memory, or do its parts? */
static bool can_be_placed(const Views *v, const Expr *e)
{
    const Expr *o = owner(e);

    if (map_get(v->placed, PTR_KEY(o)) || !expr_is_tensor(o))
        return false;
    if (is_part_view(o))
        return call_is(o, "concatenate");
    if (o->kind == EXPR_PROJ)
        return call_op(o->kids[0]) != NULL;
    return call_op(o) != NULL;
}

/* ---- concatenations ------------------------------------------------------------------------- */

static bool begins_with(const Join *j, const Expr *const *fields, uint32_t n)
{
    return j->n <= n && !memcmp(j->fields, fields, j->n * sizeof *fields);
}

/* The longest earlier concatenation that fields begin with, if it can lie here. */
static const Join *prefix(const Views *v, const Join *here)
{
    const Join *best = NULL;

    for (const Join *j = map_get(v->first, PTR_KEY(here->fields[0])); j; j = j->next)
        if (!j->result && j->axis == here->axis && j->scope == here->scope && j->n < here->n &&
            (!best || j->n > best->n) && !map_get(v->placed, PTR_KEY(j->e)) &&
            begins_with(j, here->fields, here->n))
            best = j;
    return best;
}

/* Fields of the view, with copies where there is no other way; NULL: not worth it. */
static const Expr *place_fields(Ctx *c, const Views *v, const Expr *e, const Join *j)
{
    const Join  *p = prefix(v, j);
    uint32_t     n = 0, from = 0;
    const Expr **at = NEW_ARRAY(c->scratch, const Expr *, j->n + 1), *was;
    bool        *copied = NEW_ARRAY(c->scratch, bool, j->n + 1);
    Map         *here = map_new(c->scratch);
    int64_t      all = 0, cells = 0, copies = 0;

    if (p)
        at[n++] = p->e, from = p->n;
    for (uint32_t i = from; i < j->n; i++)
        at[n++] = j->fields[i];
    type_elems(e->type, &all);
    for (uint32_t i = 0; i < n; i++) {
        const Expr *o = owner(at[i]);

        if (!some_cells(at[i]))
            return NULL;
        was = p && i == 0 ? NULL : j->was[p ? i - 1 + from : i];
        copied[i] = !can_be_placed(v, at[i]) || map_get(here, PTR_KEY(o)) ||
                    (was && map_get(v->results, PTR_KEY(was)));
        map_put(here, PTR_KEY(o), here);
        if (copied[i] && type_elems(at[i]->type, &cells))
            copies += cells;
    }
    if (copies > all / 2)
        return NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (copied[i] && !(at[i] = make1(c, "copy", at[i], NULL, e->loc)))
            return NULL;
        map_put(v->placed, PTR_KEY(owner(at[i])), v->placed);
    }
    return expr_tuple(c, n, at, call_arg(e, 0)->loc);
}

static const Expr *join(Ctx *c, Views *v, const Expr *was, const Expr *e)
{
    const Expr     *fields = call_arg(e, 0), *now;
    const NodeInfo *info = map_get(v->info, PTR_KEY(was));
    uint32_t        axis = axis_from_front(ATTRS_OF(ConcatenateAttrs, e)->axis, e->type->n);

    if (fields->kind != EXPR_TUPLE || !info || !some_cells(e) || !leads(e->type, axis) ||
        !fields_on_border(c, e->type, axis, fields->nkids, fields->kids))
        return e;
    Join *j = NEW(c->scratch, Join);
    *j = (Join){.scope = info->scope,
                .axis = axis,
                .n = fields->nkids,
                .fields = fields->kids,
                .was = call_arg(was, 0)->kids,
                .result = map_get(v->results, PTR_KEY(was)) != NULL};
    if (!(fields = place_fields(c, v, e, j)))
        return e;
    ConcatenateAttrs *a = ATTRS_COPY(c, ConcatenateAttrs, e);
    a->view = true;
    if (!(now = make1(c, "concatenate", fields, a, e->loc)))
        return NULL;
    j->e = now;
    j->next = map_get(v->first, PTR_KEY(j->fields[0]));
    map_put(v->first, PTR_KEY(j->fields[0]), j);
    return now;
}

/* ---- slices --------------------------------------------------------------------------------- */

/* Are the cells one range: single positions, then a part of a dimension, then whole ones? */
static bool is_range(const Type *whole, const Type *part)
{
    uint32_t k = 0;
    int64_t  n;

    while (k < part->n && type_dim(part, k, &n) && n == 1)
        k++;
    for (k++; k < part->n; k++)
        if (whole->dims[k] != part->dims[k])
            return false;
    return true;
}

/* Is x there as a whole anyway?  Elementwise work for one reader, with nothing heavy before it that
 * it would join, need not be. */
static bool whole_is_needed(const Views *v, const Expr *x)
{
    if (!call_op(x) || uses_of(v->uses, x) > 1)
        return true;
    for (uint32_t steps = 0; steps < MAX_CHAIN; steps++) {
        const Op *op = call_op(x);

        if (!op || (op->fusion >= FUSE_OPAQUE && steps))
            return false;
        if (op->fusion > FUSE_INJECTIVE || call_is(x, "concatenate"))
            return true;
        if (op->fusion == FUSE_INJECTIVE && !is_view(x))
            return false;
        x = call_arg(x, 0);
    }
    return false;
}

static bool slice_on_border(Ctx *c, const Type *whole, const int64_t *begin)
{
    for (uint32_t i = 0; i < whole->n; i++)
        if (!on_border(c, whole, i, idx_const(c->arith, begin[i])))
            return false;
    return true;
}

static const Expr *slice_view(Ctx *c, const Expr *slice)
{
    StridedSliceAttrs *a = ATTRS_COPY(c, StridedSliceAttrs, slice);

    a->view = true;
    return make1(c, "strided_slice", call_arg(slice, 0), a, slice->loc);
}

static const Expr *slice(Ctx *c, const Views *v, const Expr *was, const Expr *e)
{
    const Expr *x = call_arg(e, 0);
    int64_t     begin[TE_MAX_AXES];

    if (!some_cells(e) || !expr_is_tensor(x) || owner(x)->kind == EXPR_CONST ||
        map_get(v->results, PTR_KEY(was)) || !slice_begin(c, e, begin) ||
        !slice_on_border(c, x->type, begin) || !is_range(x->type, e->type) ||
        !whole_is_needed(v, call_arg(was, 0)))
        return e;
    return slice_view(c, e);
}

/* A field of a split is a slice. */
static const Expr *field(Ctx *c, const Views *v, const Expr *was, const Expr *e)
{
    const Expr        *s = e->kids[0], *x = call_arg(s, 0);
    StridedSliceAttrs *a;
    int64_t            lo, hi, axis;

    if (!some_cells(e) || !expr_is_tensor(x) || owner(x)->kind == EXPR_CONST ||
        map_get(v->results, PTR_KEY(was)) || map_get(v->results, PTR_KEY(was->kids[0])) ||
        !is_range(x->type, e->type) || !split_range(c, s, e->u.index, &lo, &hi))
        return e;
    axis = axis_from_front(ATTRS_OF(SplitAttrs, s)->axis, e->type->n);
    if (!on_border(c, x->type, (uint32_t)axis, idx_const(c->arith, lo)))
        return e;
    a = ATTRS_NEW(c, StridedSliceAttrs);
    a->begin = dims_of_i64(c, &lo, 1);
    a->end = dims_of_i64(c, &hi, 1);
    a->axes = ints_dup(c, &axis, 1);
    a->view = true;
    return make1(c, "strided_slice", x, a, s->loc);
}

/* ---- the walk ------------------------------------------------------------------------------- */

static const Expr *choose(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    Views *v = user;

    if (!now->type || map_get(v->inner, PTR_KEY(was)) || is_part_view(now))
        return now;
    if (call_is(now, "concatenate"))
        return join(c, v, was, now);
    if (call_is(now, "strided_slice"))
        return slice(c, v, was, now);
    if (now->kind == EXPR_PROJ && call_is(now->kids[0], "split"))
        return field(c, v, was, now);
    return now;
}

static void find_results(Ctx *c, Map *results, const Expr *e)
{
    VEC(const Expr *) todo = {0};

    vec_push(c->scratch, &todo, e);
    while (todo.n) {
        e = todo.at[--todo.n];
        if (map_get(results, PTR_KEY(e)))
            continue;
        map_put(results, PTR_KEY(e), results);
        if (e->kind == EXPR_TUPLE)
            for (uint32_t i = 0; i < e->nkids; i++)
                vec_push(c->scratch, &todo, e->kids[i]);
        else if (is_view(e))
            vec_push(c->scratch, &todo, call_arg(e, 0));
    }
}

const Module *plan_views(Ctx *c, const Module *m)
{
    Views v = {.info = map_new(c->scratch),
               .uses = count_uses(c, m),
               .results = map_new(c->scratch),
               .inner = map_new(c->scratch),
               .placed = map_new(c->scratch),
               .first = map_new(c->scratch)};

    for (uint32_t i = 0; i < m->nfuncs; i++) {
        ExprList list = expr_post_order(c, m->funcs[i].func);

        scopes_of(c, m->funcs[i].func, v.info);
        find_results(c, v.results, func_body(m->funcs[i].func));
        for (uint32_t k = 0; k < list.n; k++) {
            if (list.at[k]->kind != EXPR_FUNC || !list.at[k]->u.func.primitive)
                continue;
            ExprList body = expr_post_order(c, func_body(list.at[k]));
            for (uint32_t j = 0; j < body.n; j++)
                map_put(v.inner, PTR_KEY(body.at[j]), v.inner);
        }
    }
    return module_rewrite(c, m, choose, &v);
}
