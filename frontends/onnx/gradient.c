/* Gradient (ai.onnx.preview.training): derivatives of a tensor of the graph by others, by name.
 *
 *     %7 = gradient(fn (%W: .., %X: ..) { .. }, %w, %x, params=1);      // xs=["W"], zs=["X"],
 * y="Y"
 *
 * The function is what the graph computes for y from the tensors xs and zs: the nodes that lie
 * between them are converted once more, with parameters of the function in their places.  So other
 * values may be given for those tensors, of other sizes too, and what was folded because a weight
 * is a constant is not.  A tensor that depends on none of them is taken as it is.
 *
 * If y has several cells, it is the gradient of their sum. */
#include "frontends/onnx/onnx.h"

#include <string.h>

typedef struct {
    uint32_t           nx, n; /* xs, and zs behind them */
    const char *const *names;
    const char        *y;
} Formula;

static bool formula_of(Node *n, Formula *f)
{
    static const char *const lists[] = {"xs", "zs"};
    Ctx                     *c = n->b.c;
    Map                     *seen = map_new(c->scratch);
    VEC(const char *) names = {0};

    f->y = node_str(n, "y", "");
    for (uint32_t i = 0; i < COUNT(lists); i++) {
        const OnnxAttr *a = node_attr(n, lists[i]);

        for (uint32_t k = 0; a && k < a->strings.n; k++) {
            Bytes       s = a->strings.at[k];
            const char *name = intern_n(c->strings, s.n ? (const char *)s.at : "", s.n);

            if (map_get(seen, PTR_KEY(name)))
                return node_error(n, E_IMPORT, "'%s' is twice in xs and zs", name);
            map_put(seen, PTR_KEY(name), seen);
            vec_push(c->arena, &names, name);
        }
        f->nx = i ? f->nx : names.n;
    }
    f->n = names.n;
    f->names = names.at;
    if (n->nin != f->n)
        return node_error(n, E_IMPORT, "%u inputs, but %u names in xs and zs", n->nin, f->n);
    if (n->nout > f->nx)
        return node_error(n, E_IMPORT, "%u outputs, but %u names in xs", n->nout, f->nx);
    return true;
}

/* A tensor that is there by now; else an error with the closest name. */
static bool check_name(Node *n, const char *name)
{
    VEC(const char *) names = {0};
    const char *near;

    if (onnx_scope_get(n->scope, name))
        return true;
    for (uint32_t i = 0; i < n->scope->nodes->n; i++) {
        const OnnxNode *p = n->scope->nodes->at[i];

        for (uint32_t k = 0; k < p->output.n; k++)
            vec_push(n->b.c->scratch, &names, p->output.at[k]);
    }
    node_error(n, E_IMPORT, "no tensor '%s' is computed before it", name);
    if ((near = str_closest(name, names.at, names.n)))
        diag_hint(n->b.c->diags, "did you mean '%s'?", near);
    return false;
}

/* ---- the nodes between -------------------------------------------------------------------------------- */

typedef VEC(const char *) Names;

/* What a node reads, nodes of its graphs too. */
static Names names_read(Ctx *c, const OnnxNode *node)
{
    VEC(const OnnxNode *) todo = {0};
    Names names = {0};

    vec_push(c->scratch, &todo, node);
    while (todo.n) {
        const OnnxNode *p = todo.at[--todo.n];

        for (uint32_t i = 0; i < p->input.n; i++)
            vec_push(c->scratch, &names, intern(c->strings, p->input.at[i]));
        for (uint32_t i = 0; i < p->attribute.n; i++) {
            const OnnxAttr *a = p->attribute.at[i];

            if (!strcmp(onnx_op(p), "Gradient") && a->name && !strcmp(a->name, "y") && a->s.n)
                vec_push(c->scratch, &names, intern_n(c->strings, (const char *)a->s.at, a->s.n));
            for (uint32_t k = 0; a->g && k < a->g->node.n; k++)
                vec_push(c->scratch, &todo, a->g->node.at[k]);
        }
    }
    return names;
}

static bool any_in(const Map *set, const Names *names)
{
    for (uint32_t i = 0; i < names->n; i++)
        if (map_get(set, PTR_KEY(names->at[i])))
            return true;
    return false;
}

static Names names_written(Ctx *c, const OnnxNode *p)
{
    Names names = {0};

    for (uint32_t i = 0; i < p->output.n; i++)
        if (*p->output.at[i])
            vec_push(c->scratch, &names, intern(c->strings, p->output.at[i]));
    return names;
}

/* A node whose outputs are not stored where `given` has them. */
static OnnxNode *but_given(Ctx *c, OnnxNode *p, const Map *given)
{
    OnnxNode *copy;
    Names     names = names_written(c, p);

    if (!any_in(given, &names))
        return p;
    copy = arena_dup(c->arena, p, sizeof *p);
    copy->output.at = arena_dup(c->arena, p->output.at, p->output.n * sizeof *p->output.at);
    for (uint32_t i = 0; i < p->output.n; i++)
        if (map_get(given, PTR_KEY(intern(c->strings, p->output.at[i]))))
            copy->output.at[i] = "";
    return copy;
}

/* Nodes before this one that y needs and that depend on xs or zs, in order. */
static PbMsgs nodes_between(Node *n, const Formula *f)
{
    Ctx          *c = n->b.c;
    const PbMsgs *nodes = n->scope->nodes;
    Map          *given = map_new(c->scratch), *depends = map_new(c->scratch);
    Map          *needed = map_new(c->scratch);
    uint32_t      end = 0;
    PbMsgs        between = {0};

    while (end < nodes->n && nodes->at[end] != n->p)
        end++;
    Names *in = NEW_ARRAY(c->scratch, Names, end + 1), *out = NEW_ARRAY(c->scratch, Names, end + 1);

    for (uint32_t i = 0; i < f->n; i++)
        map_put(given, PTR_KEY(f->names[i]), given);
    for (uint32_t i = 0; i < end; i++) {
        in[i] = names_read(c, nodes->at[i]);
        out[i] = names_written(c, nodes->at[i]);
        if (any_in(given, &in[i]) || any_in(depends, &in[i]))
            for (uint32_t k = 0; k < out[i].n; k++)
                map_put(depends, PTR_KEY(out[i].at[k]), depends);
    }
    map_put(needed, PTR_KEY(f->y), needed);
    bool *wanted = NEW_ARRAY(c->scratch, bool, end + 1);

    for (uint32_t i = end; i-- > 0;) {
        bool makes = false;

        for (uint32_t k = 0; k < out[i].n; k++)
            makes |=
                map_get(needed, PTR_KEY(out[i].at[k])) && !map_get(given, PTR_KEY(out[i].at[k]));
        wanted[i] = makes && any_in(depends, &out[i]);
        for (uint32_t k = 0; makes && k < in[i].n; k++)
            map_put(needed, PTR_KEY(in[i].at[k]), needed);
    }
    for (uint32_t i = 0; i < end; i++)
        if (wanted[i])
            vec_push(c->arena, &between, but_given(c, nodes->at[i], given));
    return between;
}

/* ---- Gradient ------------------------------------------------------------------------------------------- */

bool convert_gradient(Node *n)
{
    const Build   *b = &n->b;
    Formula        f = {0};
    PbMsgs         nodes;
    GradientAttrs *attrs = ATTRS(b, GradientAttrs);
    const Expr   **params, **args, *y, *all;
    uint32_t       binds = n->im->binds.n;

    if (!formula_of(n, &f) || !check_name(n, f.y))
        return false;
    params = NEW_ARRAY(b->c->arena, const Expr *, f.n + 1);
    args = NEW_ARRAY(b->c->arena, const Expr *, f.n + 1);
    for (uint32_t i = 0; i < f.n; i++) {
        if (!check_name(n, f.names[i]) || !node_need_rank(n, i, 0, MAX_RANK))
            return false;
        if (i < f.nx && !dtype_is_float(expr_dtype(n->in[i])))
            return node_error(n, E_IMPORT, "the gradient by '%s', which is %s", f.names[i],
                              type_text(b->c, n->in[i]->type));
        params[i] = expr_var(b->c, f.names[i], n->in[i]->type, b->loc);
        args[i + 1] = n->in[i];
    }
    nodes = nodes_between(n, &f);
    if (!onnx_again(n, &nodes, f.n, f.names, params, f.y, &y))
        return false;
    if (!expr_has_shape(y) || !dtype_is_float(expr_dtype(y)))
        return node_error(n, E_IMPORT, "the gradient of '%s', which is no tensor of floats", f.y);
    if (n->im->binds.n != binds)
        return node_error(n, E_UNSUPPORTED,
                          "the gradient of '%s', where values of the run decide sizes", f.y);
    if (!(args[0] = expr_func(b->c, f.n, params, y, (FuncData){0}, b->loc)))
        return false;
    attrs->params = f.nx == f.n ? 0 : f.nx;
    all = build_call(b, "gradient", f.n + 1, args, attrs);
    for (uint32_t i = 0; i < n->nout; i++)
        if (!(n->out[i] = build_proj(b, all, i)))
            return false;
    return true;
}
