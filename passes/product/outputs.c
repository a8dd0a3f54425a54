/* What is computed behind a result: softmax, argmax, the k largest.
 *
 * The axis is that of the classes: the last one with more than one cell, so that (1, 1000),
 * (1, 1000, 1, 1) and (1000) all do what is meant; in maps of four dimensions the second. */
#include "passes/graph/graph.h"
#include "passes/product/product.h"

#include <string.h>

const char *product_added_name(Ctx *c, ProductAddKind kind, const char *base)
{
    static const char *const suffixes[] = {
        [ADD_SOFTMAX] = "softmax", [ADD_ARGMAX] = "argmax", [ADD_TOPK] = "topk"};

    return intern_printf(c->strings, "%s_%s", base, suffixes[kind]);
}

static bool push(Product *p, const char *name, const Expr *value)
{
    Result r = {name, value};

    if (!value)
        return false;
    if (product_result(p, name))
        return error_at(p->c, E_USAGE, NO_LOC, "the model has an output '%s' already", name);
    vec_push(p->c->arena, &p->results, r);
    return true;
}

static uint32_t class_axis(const Type *t, int64_t *classes)
{
    uint32_t axis = t->n - 1;

    if (t->n == 4 && type_dim(t, 1, classes) && *classes > 1)
        return 1;
    for (uint32_t i = t->n; i-- > 0;) {
        *classes = 1;
        type_dim(t, i, classes);
        if (*classes != 1)
            return i;
    }
    return axis;
}

static bool add_topk(Product *p, const ProductAdd *add, const Expr *x, uint32_t axis,
                     int64_t classes, const char *name)
{
    Ctx        *c = p->c;
    TopKAttrs  *a = ATTRS_NEW(c, TopKAttrs);
    const Expr *both;

    if (add->k > classes)
        return error_at(c, E_DIM, p->loc, "the %lld largest are asked for, there are %lld",
                        (long long)add->k, (long long)classes);
    a->k = add->k;
    a->axis = axis;
    both = make1(c, "topk", x, a, x->loc);
    return both && push(p, name, expr_proj(c, both, 0, x->loc)) &&
           push(p, intern_printf(c->strings, "%s_index", name), expr_proj(c, both, 1, x->loc));
}

bool product_add(Product *p, const ProductAdd *add, const char *base)
{
    Ctx          *c = p->c;
    const Result *r = product_result(p, base);
    const Type   *t;
    const char   *name;
    uint32_t      axis;
    int64_t       classes = 0;

    if (!r)
        return product_unknown(p, "output", base ? base : "", p->results.n,
                               product_result_names(p));
    t = r->value->type;
    name = product_added_name(c, add->kind, r->name);
    if (!expr_is_tensor(r->value) || t->n == 0 || (add->kind == ADD_SOFTMAX && !is_float(r->value)))
        return error_at(c, E_DIM, p->loc, "nothing can be added behind output '%s', which is %s",
                        r->name, type_text(c, t));
    axis = class_axis(t, &classes);
    switch (add->kind) {
    case ADD_SOFTMAX: {
        SoftmaxAttrs *a = ATTRS_NEW(c, SoftmaxAttrs);

        a->axis = axis;
        return push(p, name, make1(c, "nn.softmax", r->value, a, r->value->loc));
    }
    case ADD_ARGMAX: {
        ArgReduceAttrs *a = ATTRS_NEW(c, ArgReduceAttrs);

        a->axis = axis;
        return push(p, name, make1(c, "argmax", r->value, a, r->value->loc));
    }
    case ADD_TOPK: return add_topk(p, add, r->value, axis, classes, name);
    }
    return false;
}
