/* Control flow of programs, and what is kept from run to run. */
#include "frontends/coreml/coreml.h"

#include <string.h>

/* ---- states ----------------------------------------------------------------------------------------- */

bool cml_state(CmlImport *im, CmlScope *s, const CmlNamed *in)
{
    Ctx                 *c = im->c;
    Loc                  loc = {.file = im->path};
    const CmlType       *of = in->type->state->type;
    const CmlTensorType *t = of ? of->tensor : NULL;
    const char          *name = intern(c->strings, in->name);
    int64_t              dims[MAX_RANK];
    DType                type;
    const Expr          *x;

    if (!t || !cml_dtype(t->type, &type) || t->dims.n > MAX_RANK)
        return error_at(c, E_UNSUPPORTED, loc, "state '%s' is no tensor", name);
    for (uint32_t i = 0; i < t->dims.n; i++) {
        const CmlDim *d = t->dims.at[i];

        if (!d->constant || d->constant->size < 1)
            return error_at(c, E_UNSUPPORTED, loc, "the size of state '%s' is not known", name);
        dims[i] = d->constant->size;
    }
    x = expr_var(c, name, type_tensor_i64(c, type, t->dims.n, dims), loc);
    vec_push(c->arena, &im->params.names, name);
    vec_push(c->arena, &im->params.at, x);
    vec_push(c->arena, &im->next.names, name);
    vec_push(c->arena, &im->next.at, x);
    cml_put(s, name, (CmlValue){.e = x});
    return x != NULL;
}

bool cml_read_state(CmlNode *n)
{
    return cml_done(n, cml_x(n, "input"));
}

/* From here on the state is what is written. */
bool cml_write_state(CmlNode *n)
{
    const CmlInputEntry *e = NULL;
    const Expr          *x = cml_x(n, "data"), *was = x ? cml_x(n, "input") : NULL;
    const CmlBinding    *v;

    for (uint32_t i = 0; i < n->operation->in.n; i++) {
        e = n->operation->in.at[i];
        if (e->key && !strcmp(e->key, "input"))
            break;
    }
    v = e && e->value && e->value->list.n == 1 ? e->value->list.at[0] : NULL;
    if (!was || !v || !v->name)
        return was ? cml_error(n, E_IMPORT, "it names no state") : false;
    for (uint32_t i = 0; i < n->im->next.names.n; i++) {
        if (strcmp(n->im->next.names.at[i], v->name) != 0 || n->scope->outer)
            continue;
        if (was->type != x->type)
            return cml_error(n, E_IMPORT, "the state is %s, not %s", type_text(n->b.c, was->type),
                             type_text(n->b.c, x->type));
        n->im->next.at.at[i] = x;
        cml_put(n->scope, v->name, (CmlValue){.e = x});
        return true;
    }
    return cml_error(n, E_UNSUPPORTED, "there is no state '%s' here", v->name);
}

bool cml_states_end(CmlImport *im)
{
    for (uint32_t i = 0; i < im->next.names.n; i++)
        im->next.names.at[i] = state_result(im->c, im->next.names.at[i]);
    return true;
}

const Idx *cml_bound(void *user, const Expr *total, const Idx *most)
{
    CmlNode    *n = user;
    const Expr *bind;
    const Idx  *d =
        build_bound_dim(&n->b, &n->im->shapes,
                        intern_printf(n->b.c->strings, "%s.0", n->b.loc.name), total, most, &bind);

    if (d)
        vec_push(n->b.c->arena, &n->im->binds, bind);
    return d;
}

/* ---- branches ---------------------------------------------------------------------------------------- */

static bool check_depth(const CmlNode *n)
{
    return n->scope->depth < CML_MAX_NESTING ||
           cml_error(n, E_UNSUPPORTED, "blocks are nested more than %d deep", CML_MAX_NESTING);
}

/* A block of the operator with its inputs being these; its outputs as tensors. */
static bool run_block(CmlNode *n, uint32_t at, uint32_t nin, const Expr *const *in, uint32_t nout,
                      const Expr **out)
{
    const CmlBlock *block = n->operation->blocks.at[at];
    CmlScope        s = cml_scope(n->im, n->scope);

    if (block->in.n != nin || block->out.n != nout)
        return cml_error(n, E_IMPORT, "a block of %u inputs and %u outputs, not %u and %u",
                         block->in.n, block->out.n, nin, nout);
    for (uint32_t i = 0; i < nin; i++) {
        const CmlNamed *name = block->in.at[i];

        if (!name->name)
            return cml_error(n, E_IMPORT, "an input of a block has no name");
        cml_put(&s, name->name, (CmlValue){.e = in[i]});
    }
    if (!cml_import_block(&s, block))
        return false;
    for (uint32_t i = 0; i < nout; i++) {
        const CmlValue *v = cml_find(&s, block->out.at[i]);

        if (!v || !(out[i] = cml_plain(&n->b, *v)))
            return cml_error(n, E_IMPORT, "output '%s' of a block is not computed",
                             block->out.at[i]);
    }
    return true;
}

bool cml_cond(CmlNode *n)
{
    const Expr  *pred = build_condition(&n->b, cml_x(n, "pred"));
    const Expr **out[3];
    double       v;

    for (uint32_t i = 0; i < 3; i++)
        out[i] = NEW_ARRAY(n->b.c->arena, const Expr *, n->nout + 1);
    if (!pred || !check_depth(n))
        return false;
    if (n->operation->blocks.n != 2)
        return cml_error(n, E_IMPORT, "%u blocks, not 2", n->operation->blocks.n);
    if (expr_const_f(pred, &v)) {
        if (!run_block(n, v == 0, 0, NULL, n->nout, out[2]))
            return false;
    } else if (!run_block(n, 0, 0, NULL, n->nout, out[0])) {
        return build_no_branch(&n->b, &n->im->shapes, pred, NO_THEN_BRANCH);
    } else if (!run_block(n, 1, 0, NULL, n->nout, out[1])) {
        return build_no_branch(&n->b, &n->im->shapes, pred, NO_ELSE_BRANCH);
    } else if (!build_choose(&n->b, pred, n->nout, out[0], out[1], out[2])) {
        return build_no_branch(&n->b, &n->im->shapes, pred, BRANCHES_DIFFER);
    }
    for (uint32_t i = 0; i < n->nout; i++)
        if (!cml_done_at(n, i, out[2][i]))
            return false;
    return true;
}

/* ---- loops ------------------------------------------------------------------------------------------- */

/* A loop's function sees its variables and constants.  What else its blocks read from around them
 * is a variable as well, which stays as it is. */
typedef struct {
    uint32_t     own, n; /* variables of the operator come first */
    const Expr **var, **first, **next;
    const char **name; /* of the others */
} Loop;

static void take(CmlNode *n, NamedValues *taken, const char *name)
{
    const CmlValue *v = name ? cml_find(n->scope, name) : NULL;

    name = name ? intern(n->b.c->strings, name) : NULL;
    if (!v || !v->e || v->e->kind == EXPR_CONST || !expr_has_shape(v->e) ||
        result_have(taken, name))
        return;
    vec_push(n->b.c->arena, &taken->names, name);
    vec_push(n->b.c->arena, &taken->at, v->e);
}

/* Names that the block reads and that stand for something around it. */
static void find_read(CmlNode *n, const CmlBlock *b, NamedValues *taken)
{
    for (uint32_t i = 0; i < b->operations.n; i++) {
        const CmlOperation *p = b->operations.at[i];

        for (uint32_t k = 0; k < p->in.n; k++) {
            const CmlInputEntry *e = p->in.at[k];

            for (uint32_t j = 0; e->value && j < e->value->list.n; j++)
                take(n, taken, ((const CmlBinding *)e->value->list.at[j])->name);
        }
        for (uint32_t k = 0; k < p->blocks.n; k++)
            find_read(n, p->blocks.at[k], taken);
    }
    for (uint32_t i = 0; i < b->out.n; i++)
        take(n, taken, b->out.at[i]);
}

static Loop loop_of(CmlNode *n, uint32_t count, const Expr *const *first)
{
    Arena      *a = n->b.c->arena;
    NamedValues taken = {0};
    Loop        l = {.own = count};

    for (uint32_t i = 0; i < 2; i++)
        find_read(n, n->operation->blocks.at[i], &taken);
    l.n = count + taken.names.n;
    l.var = NEW_ARRAY(a, const Expr *, l.n + 1);
    l.first = NEW_ARRAY(a, const Expr *, l.n + 1);
    l.next = NEW_ARRAY(a, const Expr *, l.n + 1);
    l.name = taken.names.at;
    for (uint32_t i = 0; i < l.n; i++) {
        l.first[i] = i < count ? first[i] : taken.at.at[i - count];
        l.var[i] = expr_var(n->b.c, "state", l.first[i]->type, n->b.loc);
    }
    return l;
}

/* Block `at` in a round: what it reads from around it is the variables. */
static bool in_round(CmlNode *n, const Loop *l, uint32_t at, const Expr *const *in, uint32_t nout,
                     const Expr **out)
{
    CmlScope  around = cml_scope(n->im, n->scope);
    CmlScope *scope = n->scope;
    bool      ok;

    for (uint32_t i = l->own; i < l->n; i++)
        cml_put(&around, l->name[i - l->own], (CmlValue){.e = l->var[i]});
    n->scope = &around;
    ok = run_block(n, at, l->own, in, nout, out);
    n->scope = scope;
    return ok;
}

static bool goes_on(CmlNode *n, const Loop *l, const Expr *const *in, const Expr **go)
{
    return in_round(n, l, 0, in, 1, go) && (*go = build_condition(&n->b, *go)) != NULL;
}

/* Blocks: the condition, and the body, of the same variables. */
bool cml_while_loop(CmlNode *n)
{
    const Expr **first, *first_go, *next_go, *all;
    uint32_t     count = cml_all(n, "loop_vars", &first);
    Loop         l;
    BuildLoop    loop;
    double       v;

    if (!count || !check_depth(n))
        return false;
    if (n->operation->blocks.n != 2 || n->nout != count)
        return cml_error(n, E_IMPORT, "%u blocks and %u outputs for %u variables",
                         n->operation->blocks.n, n->nout, count);
    l = loop_of(n, count, first);
    if (!run_block(n, 0, count, first, 1, &first_go) ||
        !(first_go = build_condition(&n->b, first_go)) ||
        !in_round(n, &l, 1, l.var, count, l.next) || !goes_on(n, &l, l.next, &next_go))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (l.next[i]->type != l.var[i]->type)
            return cml_error(n, E_UNSUPPORTED, "variable %u is %s before a round and %s behind it",
                             i, type_text(n->b.c, l.var[i]->type),
                             type_text(n->b.c, l.next[i]->type));
    for (uint32_t i = count; i < l.n; i++)
        l.next[i] = l.var[i];
    if (expr_const_f(next_go, &v) && v != 0)
        return cml_error(n, E_IMPORT, "a loop without an end");
    loop = (BuildLoop){.name = intern_printf(n->b.c->strings, "while%u", n->im->loops++),
                       .n = l.n,
                       .var = l.var,
                       .first = l.first,
                       .next = l.next,
                       .first_go = first_go,
                       .next_go = next_go};
    if (!(all = build_while(&n->b, &loop, &n->im->functions)))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!cml_done_at(n, i, build_proj(&n->b, all, i)))
            return false;
    return true;
}

/* ---- classes ----------------------------------------------------------------------------------------- */

/* The label of the likeliest class, if labels are numbers, and the probabilities as they come. */
bool cml_classify(CmlNode *n)
{
    const Build      *b = &n->b;
    const Expr       *x = cml_x(n, "probabilities"), *labels = NULL, *k;
    CmlArg           *a = cml_arg(n, "classes");
    const CmlLiteral *list = a && a->n == 1 ? a->at[0].literal : NULL;
    ArgReduceAttrs   *arg = ATTRS(b, ArgReduceAttrs);
    VEC(int64_t) v = {0};
    int64_t cells;

    if (!x)
        return false;
    cells = build_elems(b, x);
    x = build_reshape(b, x, 1, &cells);
    if (a && a->at[0].e)
        labels = a->at[0].e;
    for (uint32_t i = 0;
         list && list->immediate && list->immediate->list && i < list->immediate->list->list.n;
         i++) {
        const CmlLiteral *one = list->immediate->list->list.at[i];
        Ints              is;

        if (cml_literal_text(one))
            break;
        k = cml_literal(n->im, one, cml_name(n, "class"), b->loc);
        if (!k || !expr_ints(b->c, k, &is) || is.n != 1)
            return k && cml_error(n, E_IMPORT, "a class is %s", type_text(b->c, k->type));
        vec_push(b->c->arena, &v, is.at[0]);
    }
    if (v.n)
        labels = build_i64s(b, v.n, v.at);
    if (n->nout > 0 && labels) {
        if (build_elems(b, labels) != cells)
            return cml_error(n, E_IMPORT, "%lld classes of %lld probabilities",
                             (long long)build_elems(b, labels), (long long)cells);
        arg->axis = 0;
        n->out[0].e = build_take(b, labels, build1(b, "argmax", x, arg), 0);
    } else if (n->nout > 0) {
        n->out[0].literal = list;
    }
    return cml_done_at(n, 1, x);
}
