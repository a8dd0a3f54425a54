/* Control flow of TensorFlow 1, as branches and loops.
 *
 *     Switch(x, p) -> no, yes .. Merge(no, yes)       if p { .. } else { .. }
 *     Enter -> Merge -> Switch(_, LoopCond) -> body -> NextIteration -> Merge;  Switch -> Exit
 *                                                     while cond { body }
 *
 * A Merge of a branch looks back for the Switch that its inputs come from.  An Exit converts its
 * whole frame: variables of the loop are the Merges that a NextIteration leads back to; within the
 * frame they have the values of a round, and what enters the frame as a constant is what it is
 * outside. */
#include "frontends/tensorflow/tensorflow.h"

#include <string.h>

static bool is(const TfOp *p, const char *op)
{
    return !strcmp(p->op, op);
}

static const TfOp *op_at(const TfGraph *g, TfPort p)
{
    return p.node < g->n ? &g->op[p.node] : NULL;
}

static bool is_loop_merge(const TfGraph *g, const TfOp *p)
{
    for (uint32_t i = 0; is(p, "Merge") && i < p->nin; i++) {
        const TfOp *in = op_at(g, p->in[i]);

        if (in && is(in, "NextIteration"))
            return true;
    }
    return false;
}

/* Both outputs are the data: which of them counts, the Merge says. */
bool tf_switch(TfNode *n)
{
    for (uint32_t i = 0; i < n->nout; i++)
        n->out[i] = n->given[0];
    return true;
}

/* ---- branches --------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t node, depth;
} Step;

/* The Switch that a value comes from, past whole branches and loops within; false: from none. */
static bool find_switch(TfImport *im, const TfGraph *g, TfPort from, TfPort *out)
{
    VEC(Step) todo = {0};
    Map *seen = map_new(im->c->scratch);

    vec_push(im->c->scratch, &todo, ((Step){from.node, 0}));
    out->port = from.port;
    while (todo.n) {
        Step        s = todo.at[--todo.n];
        const TfOp *p;

        if (s.node >= g->n || map_get(seen, ((uint64_t)s.depth << 32) + s.node + 1))
            continue;
        map_put(seen, ((uint64_t)s.depth << 32) + s.node + 1, im);
        p = &g->op[s.node];
        if (is(p, "Switch") && s.depth == 0) {
            out->node = s.node;
            return true;
        }
        if (is(p, "Switch") || (is(p, "Enter") && s.depth > 0))
            s.depth--;
        else if (is(p, "Merge") || is(p, "Exit"))
            s.depth++;
        for (uint32_t i = 0; i < p->nin + p->nctrl && s.depth < 64; i++) {
            uint32_t at = i < p->nin ? p->in[i].node : p->ctrl[i - p->nin];
            bool     ends = s.depth == 0 && at < g->n && is(&g->op[at], "Switch");

            if (ends && i >= p->nin)
                continue; /* which of its outputs, nothing says */
            if (ends)
                out->port = p->in[i].port;
            vec_push(im->c->scratch, &todo, ((Step){at, s.depth}));
            if (ends)
                break;
        }
    }
    return false;
}

/* The condition, and which inputs are of its branches; false with an error. */
typedef struct {
    TfPort   pred;
    uint32_t input[2]; /* of "no", of "yes" */
} Branches;

static bool find_branches(TfNode *n, Branches *out)
{
    const TfGraph *g = n->scope->g;

    if (n->nin != 2)
        return tf_error(n, E_UNSUPPORTED, "%u values that meet", n->nin);
    for (uint32_t i = 0; i < 2; i++) {
        TfPort s;

        if (!find_switch(n->im, g, n->op->in[i], &s) || g->op[s.node].nin != 2 || s.port > 1)
            continue;
        out->pred = g->op[s.node].in[1];
        out->input[s.port] = i;
        out->input[!s.port] = !i;
        return true;
    }
    return tf_error(n, E_UNSUPPORTED, "its inputs come from no Switch");
}

static const TfValue *known(const TfScope *s, TfPort p)
{
    return p.node == TF_ARGUMENT ? &s->args[p.port]
           : s->values[p.node]   ? &s->values[p.node][p.port]
                                 : NULL;
}

/* The condition, then the branch that it picks, or both. */
static bool merge_needs(TfNode *n, TfPorts *out)
{
    Branches       b;
    const TfValue *pred;
    const Expr    *cond;
    double         v;

    if (is_loop_merge(n->scope->g, n->op))
        return tf_error(n, E_UNSUPPORTED, "a value of a loop is used outside of it");
    if (!find_branches(n, &b))
        return false;
    vec_push(n->b.c->arena, out, b.pred);
    if (!(pred = known(n->scope, b.pred)))
        return true;
    if (!tf_is_tensor(n, pred, "its condition") || !(cond = tf_condition(n, pred->e)))
        return false;
    for (uint32_t k = 0; k < 2; k++)
        if (!expr_const_f(cond, &v) || (v != 0) == k)
            vec_push(n->b.c->arena, out, n->op->in[b.input[k]]);
    return true;
}

/* The second output says which input it was. */
bool tf_merge(TfNode *n)
{
    Branches    b;
    const Expr *cond;
    TfValue     out[2], yes[2], no[2];
    double      v;

    if (!find_branches(n, &b) || !(cond = tf_condition(n, known(n->scope, b.pred)->e)))
        return false;
    yes[1] = tf_tensor_value(expr_scalar(n->b.c, DT_I32, b.input[1]));
    no[1] = tf_tensor_value(expr_scalar(n->b.c, DT_I32, b.input[0]));
    yes[0] = n->given[b.input[1]];
    no[0] = n->given[b.input[0]];
    if (expr_const_f(cond, &v))
        memcpy(out, v != 0 ? yes : no, sizeof out);
    else if (!tf_choose(n, cond, 1, yes, no, out) ||
             !tf_choose(n, cond, 1, yes + 1, no + 1, out + 1))
        return false;
    for (uint32_t i = 0; i < n->nout; i++)
        n->out[i] = out[i];
    return true;
}

/* ---- loops ------------------------------------------------------------------------------------------ */

typedef struct {
    uint32_t    n;
    const char *name;
    uint32_t   *merge;        /* nodes */
    TfPort     *enter, *next; /* what comes in, what a round hands on */
    TfPort      cond;
    VEC(TfPort) outside; /* all that enters */
    TfScope *scope;      /* around it */
    TfValue *result;
} Frame;

static const char *frame_name(TfImport *im, const TfOp *enter)
{
    const TfValueDef *v = tf_attr(enter, "frame_name");

    return v ? intern_n(im->c->strings, (const char *)v->s.at, v->s.n) : "";
}

typedef struct {
    TfNode *n;
    Frame  *f;
    VEC(uint32_t) todo;
    bool *seen;
    VEC(uint32_t) merges;
} Search;

static void look_at(Search *s, TfPort p)
{
    if (p.node < s->n->scope->g->n)
        vec_push(s->n->b.c->scratch, &s->todo, p.node);
}

/* The loop variables that the condition, the exits and the rounds need, and all that enters. */
static bool search(Search *s)
{
    const TfGraph *g = s->n->scope->g;
    Arena         *a = s->n->b.c->scratch;

    while (s->todo.n) {
        uint32_t    at = s->todo.at[--s->todo.n];
        const TfOp *p = &g->op[at];

        if (s->seen[at])
            continue;
        s->seen[at] = true;
        if (is(p, "Enter") && frame_name(s->n->im, p) == s->f->name) {
            if (p->nin != 1)
                return tf_error(s->n, E_IMPORT, "an Enter has %u inputs", p->nin);
            vec_push(s->n->b.c->arena, &s->f->outside, p->in[0]);
            continue;
        }
        if (is_loop_merge(g, p)) {
            const TfOp *enter = op_at(g, p->in[0]);

            if (enter && is(enter, "NextIteration"))
                enter = op_at(g, p->in[1]);
            if (enter && is(enter, "Enter") && frame_name(s->n->im, enter) == s->f->name)
                vec_push(a, &s->merges, at);
        }
        for (uint32_t i = 0; i < p->nin; i++)
            look_at(s, p->in[i]);
    }
    return true;
}

/* Its two inputs: what enters, and what a round hands on. */
static bool merge_inputs(TfNode *n, const TfOp *merge, TfPort *enter, TfPort *next)
{
    const TfGraph *g = n->scope->g;

    for (uint32_t i = 0; i < 2; i++) {
        const TfOp *p = merge->nin == 2 ? op_at(g, merge->in[i]) : NULL;
        const TfOp *q = merge->nin == 2 ? op_at(g, merge->in[!i]) : NULL;

        if (p && q && is(p, "Enter") && is(q, "NextIteration") && p->nin == 1 && q->nin == 1) {
            *enter = p->in[0];
            *next = q->in[0];
            return true;
        }
    }
    return tf_error(n, E_UNSUPPORTED, "a loop variable is no Enter and NextIteration");
}

/* The Switch before an Exit, its Merge, and the frame; false with an error. */
static bool find_loop(TfNode *n, uint32_t *merge, const char **name, TfPort *cond)
{
    const TfGraph *g = n->scope->g;
    const TfOp    *s = n->nin == 1 ? op_at(g, n->op->in[0]) : NULL, *m, *c;

    if (!s || !is(s, "Switch") || s->nin != 2 || !(m = op_at(g, s->in[0])) ||
        !is_loop_merge(g, m) || m->nin != 2)
        return tf_error(n, E_UNSUPPORTED, "it does not leave a loop");
    *merge = s->in[0].node;
    c = op_at(g, s->in[1]);
    if (!c || !is(c, "LoopCond") || c->nin != 1)
        return tf_error(n, E_UNSUPPORTED, "a loop without LoopCond");
    *cond = c->in[0];
    for (uint32_t i = 0; i < 2; i++) {
        const TfOp *e = op_at(g, m->in[i]);

        if (e && is(e, "Enter")) {
            *name = frame_name(n->im, e);
            return true;
        }
    }
    return tf_error(n, E_UNSUPPORTED, "a loop that nothing enters");
}

static Frame *frame_of(TfNode *n)
{
    const TfGraph *g = n->scope->g;
    Arena         *a = n->b.c->arena;
    Search         s = {.n = n, .seen = NEW_ARRAY(n->b.c->scratch, bool, g->n + 1)};
    const char    *name;
    uint32_t       merge;
    TfPort         cond;
    Frame         *f;

    if (!find_loop(n, &merge, &name, &cond))
        return NULL;
    if ((f = map_get(n->scope->frames, PTR_KEY(name))))
        return f;
    f = s.f = NEW(a, Frame);
    f->name = name;
    f->cond = cond;
    f->scope = n->scope;
    /* Whatever leaves it. */
    look_at(&s, cond);
    for (uint32_t i = 0; i < g->n; i++)
        if (is(&g->op[i], "Exit") && g->op[i].nin == 1) {
            TfNode      x = *n;
            const char *other;
            uint32_t    at;
            TfPort      c;

            x.op = &g->op[i];
            x.nin = 1;
            if (find_loop(&x, &at, &other, &c) && other == name)
                look_at(&s, x.op->in[0]);
            else if (diag_errors(n->b.c->diags))
                return NULL;
        }
    if (!search(&s))
        return NULL;
    f->n = s.merges.n;
    f->merge = DUP_ARRAY(a, s.merges.at, s.merges.n);
    f->enter = NEW_ARRAY(a, TfPort, f->n + 1);
    f->next = NEW_ARRAY(a, TfPort, f->n + 1);
    for (uint32_t i = 0; i < f->n; i++)
        if (!merge_inputs(n, &g->op[f->merge[i]], &f->enter[i], &f->next[i]))
            return NULL;
    map_put(n->scope->frames, PTR_KEY(name), f);
    return f;
}

/* A scope within the frame, where the loop's variables have these values. */
static TfScope inside(const Frame *f, const TfValue *state)
{
    TfScope s = tf_scope(f->scope->im, f->scope->g, f->scope->depth + 1);

    s.outer = f->scope;
    s.frame = f->name;
    s.args = f->scope->args;
    s.looped = true;
    for (uint32_t i = 0; i < f->n; i++) {
        TfValue *v = NEW_ARRAY(f->scope->im->c->arena, TfValue, 2);

        v[0] = state[i];
        s.values[f->merge[i]] = v;
    }
    return s;
}

static bool goes_on(TfNode *n, void *user, const TfValue *state, const Expr **out)
{
    const Frame   *f = user;
    TfScope        s = inside(f, state);
    const TfValue *go = tf_evaluate(&s, f->cond, n->b.loc);

    return go && tf_is_tensor(n, go, "its condition") && (*out = tf_condition(n, go->e)) != NULL;
}

static bool next_round(TfNode *n, void *user, const TfValue *state, TfValue *next)
{
    const Frame *f = user;
    TfScope      s = inside(f, state);

    for (uint32_t i = 0; i < f->n; i++) {
        const TfValue *v = tf_evaluate(&s, f->next[i], n->b.loc);

        if (!v)
            return false;
        next[i] = *v;
    }
    return true;
}

/* Does a round hand it on as it came? */
static bool hands_on(const TfGraph *g, uint32_t merge, TfPort p)
{
    for (uint32_t i = 0; i < 64 && p.node < g->n; i++) {
        const TfOp *op = &g->op[p.node];

        if (p.node == merge)
            return true;
        if ((!is(op, "Identity") && !is(op, "Switch")) || op->nin < 1)
            return false;
        p = op->in[0];
    }
    return false;
}

bool tf_exit(TfNode *n)
{
    Frame      *f = frame_of(n);
    Arena      *a = n->b.c->arena;
    const char *name;
    uint32_t    merge;
    TfPort      cond;

    if (!f || !find_loop(n, &merge, &name, &cond))
        return false;
    if (f->scope->depth > TF_MAX_NESTING)
        return tf_error(n, E_UNSUPPORTED, "loops are nested more than %d deep", TF_MAX_NESTING);
    if (!f->result) {
        TfValue *first = NEW_ARRAY(a, TfValue, f->n + 1), *result = NEW_ARRAY(a, TfValue, f->n + 1);
        bool    *fixed = NEW_ARRAY(a, bool, f->n + 1);
        TfLoop   l = {f->n, first, fixed, f, goes_on, next_round};

        for (uint32_t i = 0; i < f->n; i++) {
            first[i] = *known(f->scope, f->enter[i]);
            fixed[i] = hands_on(f->scope->g, f->merge[i], f->next[i]);
        }
        if (!tf_loop(n, &l, result))
            return false;
        f->result = result;
    }
    for (uint32_t i = 0; i < f->n; i++)
        if (f->merge[i] == merge)
            n->out[0] = f->result[i];
    return true;
}

/* What enters the frame of this scope is known around it; what enters another, before. */
bool tf_enter(TfNode *n)
{
    const TfScope *s = n->scope;
    const char    *name = frame_name(n->im, n->op);
    const TfValue *v;

    if (n->nin != 1 || !s->outer || s->frame != name)
        return tf_error(n, E_UNSUPPORTED, "a value of a loop is used outside of it");
    if (n->op->in[0].node == TF_NOWHERE || !(v = known(s->outer, n->op->in[0])))
        return tf_error(n, E_IMPORT, "what enters the loop is not known before it");
    n->out[0] = *v;
    return true;
}

bool tf_flow_needs(TfNode *n, TfPorts *out)
{
    Frame *f;

    if (is(n->op, "Merge"))
        return merge_needs(n, out);
    if (is(n->op, "Enter"))
        return true;
    if (!(f = frame_of(n)))
        return false;
    for (uint32_t i = 0; i < f->outside.n; i++) {
        if (f->outside.at[i].node == TF_NOWHERE)
            return tf_error(n, E_IMPORT, "what enters the loop does not exist");
        vec_push(n->b.c->arena, out, f->outside.at[i]);
    }
    return true;
}
