/* Branches: nets as arguments of If, which run among the values of the net around them.
 *
 * What a branch leaves as it was has the value from before; a net that the file does not have
 * leaves everything so. */
#include "frontends/caffe2/caffe2.h"

void c2_all_ops(Arena *a, const C2Net *net, C2Ops *out)
{
    for (uint32_t i = 0; i < net->op.n; i++) {
        const C2OpDef *op = net->op.at[i];

        vec_push(a, out, op);
        for (uint32_t k = 0; k < op->arg.n; k++) {
            const C2Arg *arg = op->arg.at[k];

            if (arg->net) /* the reader limits how deep they are */
                c2_all_ops(a, arg->net, out);
        }
    }
}

/* ---- which operators are needed --------------------------------------------------------------------- */

typedef struct {
    Ctx     *c;
    Map     *live; /* names whose value is wanted from here on */
    TextList seen;
} Liveness;

static void want(Liveness *l, const char *name)
{
    vec_push(l->c->scratch, &l->seen, name);
    map_put(l->live, PTR_KEY(name), l);
}

static bool is_wanted(const Liveness *l, const char *name)
{
    return map_get(l->live, PTR_KEY(name)) != NULL;
}

const C2Net *c2_branch(const C2OpDef *op, bool yes)
{
    const C2Arg *a = c2_arg_of(op, yes ? "then_net" : "else_net");

    return a ? a->net : NULL;
}

/* What is wanted before the operator, which gives some of what is wanted behind it. */
static void step_back(Liveness *l, const C2OpDef *op, const TextList *gives)
{
    bool has_nets = c2_branch(op, true) || c2_branch(op, false);

    for (uint32_t k = 0; k < op->output.n; k++)
        map_put(l->live, PTR_KEY(intern(l->c->strings, op->output.at[k])), NULL);
    for (uint32_t yes = 0; has_nets && yes < 2; yes++) {
        const C2Net *net = c2_branch(op, yes);
        TextList     before = {0};

        if (net)
            c2_needed(l->c, net, gives, &before);
        for (uint32_t k = 0; k < (net ? before.n : gives->n); k++)
            want(l, net ? before.at[k] : gives->at[k]);
    }
    for (uint32_t k = 0; k < op->input.n; k++)
        want(l, intern(l->c->strings, op->input.at[k]));
}

bool *c2_needed(Ctx *c, const C2Net *net, const TextList *results, TextList *before)
{
    Liveness l = {.c = c, .live = map_new(c->scratch)};
    bool    *needed = NEW_ARRAY(c->arena, bool, net->op.n + 1);

    for (uint32_t i = 0; i < results->n; i++)
        want(&l, results->at[i]);
    for (uint32_t i = net->op.n; i-- > 0;) {
        const C2OpDef *op = net->op.at[i];
        TextList       gives = {0};

        for (uint32_t k = 0; k < op->output.n; k++) {
            const char *name = intern(c->strings, op->output.at[k]);

            if (is_wanted(&l, name))
                vec_push(c->scratch, &gives, name);
        }
        needed[i] = gives.n > 0;
        if (needed[i])
            step_back(&l, op, &gives);
    }
    for (uint32_t i = 0; before && i < l.seen.n; i++)
        if (is_wanted(&l, l.seen.at[i])) {
            vec_push(c->arena, before, l.seen.at[i]);
            map_put(l.live, PTR_KEY(l.seen.at[i]), NULL); /* once */
        }
    return needed;
}

/* ---- operators -------------------------------------------------------------------------------------- */

bool c2_is_empty(C2Node *n)
{
    const Build *b = &n->b;
    const Idx   *cells = type_cells(b->c, n->in[0]->type);
    const Expr  *size = build_values(b, type_tensor(b->c, DT_I64, 0, NULL), (Dims){1, &cells});

    return c2_done(n, size ? build_by(b, "equal", size, 0) : NULL);
}

/* The results that are asked for, as a net leaves them (NULL: as they were). */
static bool branch(C2Node *n, const C2Net *net, const Expr **out)
{
    Ctx     *c = n->b.c;
    Map     *values = n->im->values, *scales = n->im->scales;
    TextList results = {0}, written = {0};
    void   **was[2];
    bool     ok;

    for (uint32_t i = 0; i < n->nout; i++)
        vec_push(c->scratch, &results, intern(c->strings, n->op->output.at[i]));
    for (uint32_t i = 0; net && i < net->op.n; i++) {
        const C2OpDef *op = net->op.at[i];

        for (uint32_t k = 0; k < op->output.n; k++)
            vec_push(c->scratch, &written, intern(c->strings, op->output.at[k]));
    }
    for (uint32_t k = 0; k < 2; k++)
        was[k] = NEW_ARRAY(c->arena, void *, written.n + 1);
    for (uint32_t i = 0; i < written.n; i++) {
        was[0][i] = map_get(values, PTR_KEY(written.at[i]));
        was[1][i] = map_get(scales, PTR_KEY(written.at[i]));
    }
    ok = !net || c2_run(n->im, net, c2_needed(c, net, &results, NULL), n->b.loc.line);
    for (uint32_t i = 0; i < n->nout && ok; i++) {
        out[i] = map_get(values, PTR_KEY(results.at[i]));
        if (!out[i])
            ok = c2_error(n, E_IMPORT, "'%s' has no value where its condition %s", results.at[i],
                          net == c2_branch(n->op, true) ? "holds" : "does not hold");
        else if (map_get(scales, PTR_KEY(results.at[i])))
            ok = c2_error(n, E_UNSUPPORTED, "'%s' is of bytes with a scale", results.at[i]);
    }
    for (uint32_t i = written.n; i-- > 0;) {
        map_put(values, PTR_KEY(written.at[i]), was[0][i]);
        map_put(scales, PTR_KEY(written.at[i]), was[1][i]);
    }
    return ok;
}

bool c2_if(C2Node *n)
{
    const Build *b = &n->b;
    const Expr  *cond = build_condition(b, n->in[0]), **out[2];
    double       v;

    if (!cond)
        return false;
    if (expr_const_f(cond, &v))
        return branch(n, c2_branch(n->op, v != 0), n->out);
    for (uint32_t i = 0; i < 2; i++)
        out[i] = NEW_ARRAY(b->c->arena, const Expr *, n->nout + 1);
    if (!branch(n, c2_branch(n->op, true), out[0]))
        return build_no_branch(b, &n->im->shapes, cond, NO_THEN_BRANCH);
    if (!branch(n, c2_branch(n->op, false), out[1]))
        return build_no_branch(b, &n->im->shapes, cond, NO_ELSE_BRANCH);
    return build_choose(b, cond, n->nout, out[0], out[1], n->out) ||
           build_no_branch(b, &n->im->shapes, cond, BRANCHES_DIFFER);
}
