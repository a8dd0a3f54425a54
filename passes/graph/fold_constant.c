/* fold_constant: calls whose arguments are constant are evaluated now.
 *
 *   fn @main(%x: ..) { %0 = sqrt(add(const @var, 1e-05)); divide(%x, %0) }
 *     -> fn @main(%x: ..) { divide(%x, const @var) }
 *
 * A node is foldable if it is a constant, or a call, tuple or field of foldable ones; the pass
 * evaluates the largest foldable expressions, all of a module in one call of the evaluator
 * (c->eval), so that a compiling evaluator compiles once, and equal ones once: a weight may be
 * transposed for each of its uses.  A result that is much larger than what
 * it was computed from (zeros, tile) is left as a call, because it would only fill the weights
 * (Winograd's weights are worth it, bytes that become words of 32 bits, quantized ones that floats
 * are multiplied by, and padded ones up to four times as large). `shape_of` is `dim_values` of the
 * operand's type, a constant if that is static; `if` on a constant is its branch.
 *
 * Cost: two walks, and the evaluation. */
#include "passes/graph/graph.h"

#include <string.h>

#define SMALL_RESULT (64 * 1024)

/* What is known of a node. */
typedef struct {
    bool        foldable;
    bool        wanted; /* used by something that is not evaluated */
    uint64_t    bytes;  /* of the constants it is computed from */
    const char *name;   /* of the largest of them */
    uint64_t    largest;
} Known;

/* A node that computes what root number `of` does. */
typedef struct {
    const Expr *e;
    uint32_t    of;
} Again;

typedef struct {
    Map        *known;  /* node to Known */
    Map        *values; /* node to the constant that replaces it */
    const char *keep;   /* calls of this operator stay; NULL: none */
    Map        *hashes; /* of expr_hash */
    Map        *first;  /* of a hash: the first root that has it, plus one */
    VEC(const Expr *) roots;
    VEC(Again) again;
} Fold;

static uint64_t type_bytes(const Type *t)
{
    uint64_t sum = 0, one;
    int64_t  n;

    if (t->kind == TYPE_TENSOR)
        return type_elems(t, &n) && checked_mul((uint64_t)n, (uint64_t)dtype_bytes(t->dtype), &one)
                   ? one
                   : UINT64_MAX;
    for (uint32_t i = 0; i < t->n; i++)
        if (!checked_add(sum, type_bytes(t->parts[i]), &sum))
            return UINT64_MAX;
    return sum;
}

static bool can_evaluate(const Fold *f, const Expr *e)
{
    const Op *op = call_op(e);

    if (!e->type || !type_static(e->type) || (f->keep && call_is(e, f->keep)) ||
        (op && !attrs_static(op->attrs, e->u.attrs)))
        return false;
    return e->kind == EXPR_TUPLE || e->kind == EXPR_PROJ || (op && (op->compute || op->expand));
}

static void know(Ctx *c, Fold *f, const Expr *e)
{
    Known *k = NEW(c->scratch, Known);

    map_put(f->known, PTR_KEY(e), k);
    if (e->kind == EXPR_CONST) {
        k->foldable = true;
        k->bytes = k->largest = e->u.constant->data.n;
        if (e->u.constant->type->dtype.bits == 8 && k->bytes <= UINT64_MAX / 2)
            k->bytes *= 2; /* products take them as words */
        k->name = e->u.constant->name;
        return;
    }
    k->foldable = can_evaluate(f, e);
    for (uint32_t i = 0; i < e->nkids; i++) {
        const Known *kid = map_get(f->known, PTR_KEY(e->kids[i]));

        if (e->kids[i]->kind == EXPR_OP && i == 0 && e->kind == EXPR_CALL)
            continue;
        k->foldable &= kid->foldable;
        k->bytes = k->bytes > UINT64_MAX / 4 ? k->bytes : k->bytes + kid->bytes;
        if (kid->name && (!k->name || kid->largest > k->largest)) {
            k->name = kid->name;
            k->largest = kid->largest;
        }
    }
    if (call_is(e, "nn.pad") && k->bytes <= UINT64_MAX / 2)
        k->bytes *= 2; /* two dimensions filled up to whole vectors: at most four times as much */
}

static void add_root(Ctx *c, Fold *f, const Expr *e)
{
    uint64_t  hash = expr_hash(c, e, f->hashes);
    uintptr_t at = (uintptr_t)map_get(f->first, hash);

    if (at && expr_same(c, f->roots.at[at - 1], e)) {
        vec_push(c->scratch, &f->again, ((Again){e, (uint32_t)at - 1}));
        return;
    }
    vec_push(c->scratch, &f->roots, e);
    if (!at)
        map_put(f->first, hash, (void *)(uintptr_t)f->roots.n);
}

/* Parents first: what is wanted as a value, and worth it, is a root; the rest wants its kids. */
static void choose(Ctx *c, Fold *f, const Expr *e)
{
    Known *k = map_get(f->known, PTR_KEY(e));

    if (k->foldable && !k->wanted)
        return;
    if (k->foldable && e->kind == EXPR_CONST)
        return;
    if (k->foldable && e->kind != EXPR_TUPLE) {
        uint64_t bytes = type_bytes(e->type);

        if (bytes <= SMALL_RESULT || bytes / 2 <= k->bytes ||
            call_is(e, "nn.contrib_conv2d_winograd_weight_transform") ||
            call_is(e, "qnn.dequantize")) {
            add_root(c, f, e);
            return;
        }
    }
    for (uint32_t i = 0; i < e->nkids; i++)
        ((Known *)map_get(f->known, PTR_KEY(e->kids[i])))->wanted = true;
}

static const Expr *rename_const(Ctx *c, const Expr *e, const char *name, Loc loc)
{
    const Expr **fields;

    if (e->kind == EXPR_CONST)
        return expr_const(c, const_new(c, name, e->u.constant->type, e->u.constant->data), loc);
    fields = NEW_ARRAY(c->scratch, const Expr *, e->nkids ? e->nkids : 1);
    for (uint32_t i = 0; i < e->nkids; i++)
        fields[i] = rename_const(c, e->kids[i], name, loc);
    return expr_tuple(c, e->nkids, fields, loc);
}

/* Values of all roots at once. */
static bool evaluate(Ctx *c, Fold *f)
{
    const Expr *all, *values;

    if (!f->roots.n)
        return true;
    all = expr_tuple(c, f->roots.n, f->roots.at, NO_LOC);
    if (!(values = c->eval->eval(c->eval, c, all)))
        return false;
    for (uint32_t i = 0; i < f->roots.n; i++) {
        const Expr  *e = f->roots.at[i];
        const Known *k = map_get(f->known, PTR_KEY(e));

        map_put(f->values, PTR_KEY(e),
                (void *)(uintptr_t)rename_const(c, values->kids[i], k->name, e->loc));
    }
    for (uint32_t i = 0; i < f->again.n; i++) {
        const Expr *root = f->roots.at[f->again.at[i].of];

        map_put(f->values, PTR_KEY(f->again.at[i].e), map_get(f->values, PTR_KEY(root)));
    }
    return true;
}

static const Expr *replace(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const Fold *f = user;
    const Expr *v = map_get(f->values, PTR_KEY(was));
    double      cond;

    (void)c;
    if (v)
        return v;
    if (now->kind == EXPR_PROJ && now->kids[0]->kind == EXPR_TUPLE)
        return now->kids[0]->kids[now->u.index];
    if (now->kind == EXPR_IF && expr_const_f(now->kids[0], &cond))
        return now->kids[cond != 0 ? 1 : 2];
    return now;
}

/* shape_of needs no operand. */
static const Expr *fold_shape(Ctx *c, UNUSED void *user, UNUSED const Expr *was, const Expr *now)
{
    const Type     *t;
    DimValuesAttrs *a;

    if (!call_is(now, "shape_of") || !now->type || !(t = call_arg(now, 0)->type) ||
        t->kind != TYPE_TENSOR)
        return now;
    a = ATTRS_NEW(c, DimValuesAttrs);
    a->dims = (Dims){t->n, t->dims};
    a->dtype = now->type->dtype;
    return expr_call_name(c, "dim_values", 0, NULL, a, now->loc);
}

const Module *fold_constant_but(Ctx *c, const Module *m, const char *keep)
{
    Fold f = {.known = map_new(c->scratch),
              .values = map_new(c->scratch),
              .keep = keep,
              .hashes = map_new(c->scratch),
              .first = map_new(c->scratch)};

    if (!(m = module_rewrite(c, m, fold_shape, NULL)))
        return NULL;
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        ExprList list = expr_post_order(c, m->funcs[i].func);

        for (uint32_t k = 0; k < list.n; k++)
            if (!map_get(f.known, PTR_KEY(list.at[k])))
                know(c, &f, list.at[k]);
        for (uint32_t k = list.n; k-- > 0;)
            choose(c, &f, list.at[k]);
    }
    if (!evaluate(c, &f))
        return NULL;
    return module_rewrite(c, m, replace, &f);
}

const Module *fold_constant(Ctx *c, const Module *m)
{
    return fold_constant_but(c, m, NULL);
}
