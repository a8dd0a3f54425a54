/* Control flow of TensorFlow 1, as branches and loops.
 *
 *     Switch(x, p) -> no, yes .. Merge(no, yes)       if p { .. } else { .. }
 *     Enter -> Merge -> Switch(_, LoopCond) -> body -> NextIteration -> Merge;  Switch -> Exit
 *                                                     while cond { body }
 *
 * A Merge of a branch looks back for the Switch that its inputs come from.  An Exit converts its
 * whole frame: variables of the loop are the Merges that a NextIteration leads back to, and what
 * enters the frame as a constant; within the frame they have the values of a round.  _SwitchN is a
 * Switch by a number. */
#include "frontends/tensorflow/tensorflow.h"

#include <string.h>

static bool is(const TfOp *p, const char *op)
{
    return !strcmp(p->op, op);
}

static bool is_switch(const TfOp *p)
{
    return is(p, "Switch") || is(p, "_SwitchN");
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

/* All outputs are the data: which of them counts, the Merge says. */
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
        if (is_switch(p) && s.depth == 0) {
            out->node = s.node;
            return true;
        }
        if (is_switch(p) || (is(p, "Enter") && s.depth > 0))
            s.depth--;
        else if (is(p, "Merge") || is(p, "Exit"))
            s.depth++;
        for (uint32_t i = 0; i < p->nin + p->nctrl && s.depth < 64; i++) {
            uint32_t at = i < p->nin ? p->in[i].node : p->ctrl[i - p->nin];
            bool     ends = s.depth == 0 && at < g->n && is_switch(&g->op[at]);

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

enum { MAX_BRANCHES = 256 };

/* What chooses, a bool or a number, and the input that each output of the Switch leads to. */
typedef struct {
    TfPort   pred;
    uint32_t n, input[MAX_BRANCHES];
} Branches;

static bool find_branches(TfNode *n, Branches *out)
{
    const TfGraph *g = n->scope->g;
    bool           seen[MAX_BRANCHES] = {false};
    uint32_t       found = 0, left = 0;

    if (n->nin < 1 || n->nin > MAX_BRANCHES)
        return tf_error(n, E_UNSUPPORTED, "%u values that meet", n->nin);
    for (uint32_t i = 0; i < n->nin; i++) {
        const TfOp *p;
        TfPort      s;

        left = i;
        if (!find_switch(n->im, g, n->op->in[i], &s))
            continue;
        p = &g->op[s.node];
        if (p->nin != 2 || p->nout != n->nin || s.port >= p->nout || seen[s.port])
            return tf_error(n, E_UNSUPPORTED, "its inputs are no branches of one Switch");
        out->pred = p->in[1];
        out->input[s.port] = i;
        seen[s.port] = true;
        found++;
    }
    /* One that comes from nowhere, a constant, is what is left. */
    for (uint32_t i = 0; found > 0 && found + 1 == n->nin && i < n->nin; i++)
        if (!seen[i]) {
            bool taken[MAX_BRANCHES] = {false};

            for (uint32_t k = 0; k < n->nin; k++)
                if (seen[k])
                    taken[out->input[k]] = true;
            for (left = 0; taken[left]; left++)
                ;
            out->input[i] = left;
            seen[i] = true;
            found++;
        }
    out->n = n->nin;
    return found == n->nin || tf_error(n, E_UNSUPPORTED, "its inputs come from no Switch");
}

/* What chooses; *at: the branch, if it is known, else UINT32_MAX.  NULL with an error. */
static const Expr *chooser(TfNode *n, const Branches *b, uint32_t *at)
{
    const TfValue *pred = tf_value_at(n->scope, b->pred);
    const Expr    *e, *k;
    double         v;

    *at = UINT32_MAX;
    if (!tf_is_tensor(n, pred, "what chooses"))
        return NULL;
    if (dtype_is_bool(expr_dtype(pred->e))) {
        e = tf_condition(n, pred->e);
    } else {
        e = expr_single(pred->e) ? build_reshape(&n->b, pred->e, 0, NULL) : NULL;
        if (!e)
            return tf_error(n, E_IMPORT, "what chooses is %s", type_text(n->b.c, pred->e->type));
        e = (k = build_fold(&n->b, e)) ? k : e;
    }
    if (e && expr_const_f(e, &v))
        *at = v >= 0 && v < b->n ? (uint32_t)v : b->n - 1;
    return e;
}

/* What chooses, then the branch that it picks, or all. */
static bool merge_needs(TfNode *n, TfPorts *out)
{
    Branches b;
    uint32_t at;

    if (is_loop_merge(n->scope->g, n->op))
        return tf_error(n, E_UNSUPPORTED, "a value of a loop is used outside of it");
    if (!find_branches(n, &b))
        return false;
    vec_push(n->b.c->arena, out, b.pred);
    if (!tf_value_at(n->scope, b.pred))
        return true;
    if (!chooser(n, &b, &at))
        return false;
    for (uint32_t k = 0; k < b.n; k++)
        if (at == UINT32_MAX || at == k)
            vec_push(n->b.c->arena, out, n->op->in[b.input[k]]);
    return true;
}

/* The second output says which input it was. */
bool tf_merge(TfNode *n)
{
    Branches    b;
    const Expr *e, *cond;
    TfValue     out[2] = {0}, other[2], rest[2];
    uint32_t    at;
    bool        number;

    if (!find_branches(n, &b) || !(e = chooser(n, &b, &at)))
        return false;
    number = !dtype_is_bool(expr_dtype(e));
    for (uint32_t k = b.n; k-- > 0;) { /* from the last one on, each before those so far */
        other[0] = n->given[b.input[k]];
        other[1] = tf_tensor_value(expr_scalar(n->b.c, DT_I32, b.input[k]));
        if (at != UINT32_MAX ? at == k : k == b.n - 1) {
            memcpy(out, other, sizeof out);
            continue;
        }
        if (at != UINT32_MAX)
            continue;
        memcpy(rest, out, sizeof rest);
        if (number) {
            cond = build2(&n->b, "equal", e, build_scalar(&n->b, e, k), NULL);
            if (!cond || !tf_choose(n, cond, 2, other, rest, out))
                return false;
        } else if (!tf_choose(n, e, 2, rest, other, out)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < n->nout; i++)
        n->out[i] = out[i];
    return true;
}

/* ---- loops ------------------------------------------------------------------------------------------ */

typedef struct {
    uint32_t    n, nvars; /* states; those behind the variables are constants */
    const char *name;
    uint32_t   *node;         /* Merges, then Enters */
    TfPort     *enter, *next; /* what comes in, what a round hands on */
    TfPort      cond;
    TfScope    *scope; /* around it */
    TfValue    *result;
} Frame;

static const char *frame_name(TfImport *im, const TfOp *enter)
{
    const TfValueDef *v = tf_attr(enter, "frame_name");

    return tf_string(im->c, v ? v->s : (Bytes){0});
}

typedef struct {
    TfNode *n;
    Frame  *f;
    VEC(uint32_t) todo;
    bool *seen;
    VEC(uint32_t) merges;
    VEC(uint32_t) enters;
} Search;

static void look_at(Search *s, TfPort p)
{
    if (p.node < s->n->scope->g->n)
        vec_push(s->n->b.c->scratch, &s->todo, p.node);
}

/* The loop variables that the condition, the exits and the rounds need, and what else enters. */
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
            vec_push(a, &s->enters, at);
            continue;
        }
        if (is_loop_merge(g, p)) {
            const TfOp *enter = op_at(g, p->in[0]);

            if (enter && is(enter, "NextIteration"))
                enter = op_at(g, p->in[1]);
            if (enter && is(enter, "Enter") && frame_name(s->n->im, enter) == s->f->name) {
                vec_push(a, &s->merges, at);
                s->seen[enter - g->op] = true;
            }
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
    f->nvars = s.merges.n;
    f->n = f->nvars + s.enters.n;
    f->node = NEW_ARRAY(a, uint32_t, f->n + 1);
    f->enter = NEW_ARRAY(a, TfPort, f->n + 1);
    f->next = NEW_ARRAY(a, TfPort, f->n + 1);
    for (uint32_t i = 0; i < f->n; i++) {
        f->node[i] = i < f->nvars ? s.merges.at[i] : s.enters.at[i - f->nvars];
        if (i >= f->nvars)
            f->enter[i] = g->op[f->node[i]].in[0];
        else if (!merge_inputs(n, &g->op[f->node[i]], &f->enter[i], &f->next[i]))
            return NULL;
    }
    map_put(n->scope->frames, PTR_KEY(name), f);
    return f;
}

/* A scope within the frame, where the loop's variables have these values. */
static TfScope inside(const Frame *f, const TfValue *state)
{
    TfScope s = tf_scope(f->scope->im, f->scope->g, f->scope->depth + 1);

    s.outer = f->scope;
    s.args = f->scope->args;
    s.looped = true;
    for (uint32_t i = 0; i < f->n; i++) {
        TfValue *v = NEW_ARRAY(f->scope->im->c->arena, TfValue, 2);

        v[0] = state[i];
        s.values[f->node[i]] = v;
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

    for (uint32_t i = 0; i < f->nvars; i++) {
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
            first[i] = *tf_value_at(f->scope, f->enter[i]);
            fixed[i] = i >= f->nvars || hands_on(f->scope->g, f->node[i], f->next[i]);
        }
        if (!tf_loop(n, &l, result))
            return false;
        f->result = result;
    }
    for (uint32_t i = 0; i < f->n; i++)
        if (f->node[i] == merge)
            n->out[0] = f->result[i];
    return true;
}

/* What enters a loop has its value before, in the loop's own scope. */
bool tf_enter(TfNode *n)
{
    return tf_error(n, E_UNSUPPORTED, "a value of a loop is used outside of it");
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
    for (uint32_t i = 0; i < f->n; i++)
        vec_push(n->b.c->arena, out, f->enter[i]);
    return true;
}
