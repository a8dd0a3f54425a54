/* Loops over values, for those of TensorFlow 1 and 2: functions that call themselves
 * (frontends/loops.c).
 *
 * States that a round hands on as they came stay constants or sizes, if they are such before the
 * loop.  A list of tensors is its elements, one on top of the other; what shape they have is seldom
 * said before the first is written, so that the body is converted once to find out. */
#include "frontends/tensorflow/tensorflow.h"

#include <string.h>

enum { MOST_TRIES = 4 };

typedef struct {
    TfNode       *n;
    const TfLoop *l;
    TfValue      *first, *state, *next;
    const Expr   *first_go, *next_go;
} Rounds;

static const char *loop_name(TfNode *n)
{
    return intern_printf(n->b.c->strings, "while%u", n->im->loops++);
}

/* Is it a variable of the loop's function?  That sees nothing else but constants and sizes. */
static bool varies(const Rounds *r, uint32_t i)
{
    const Expr *e = r->first[i].e;

    return e && !(r->l->fixed[i] && (e->kind == EXPR_CONST || call_is(e, "dim_values")));
}

static void begin_states(Rounds *r)
{
    for (uint32_t i = 0; i < r->l->n; i++) {
        r->state[i] = r->first[i];
        if (varies(r, i))
            r->state[i].e = expr_var(r->n->b.c, "state", r->first[i].e->type, r->n->b.loc);
    }
}

/* A list that got its shape in the round begins as zeros of it. */
static bool shape_list(Rounds *r, uint32_t i)
{
    const Expr *e = r->next[i].e;
    Dims        d = expr_forms(e);

    r->first[i].dtype = expr_dtype(e);
    r->first[i].room = r->next[i].room;
    r->first[i].e = build_zeros_of(&r->n->b, expr_dtype(e), d.n, d.at);
    return r->first[i].e != NULL;
}

/* *again: the states begin otherwise than they did. */
static bool check_states(Rounds *r, bool *again)
{
    TfNode      *n = r->n;
    const Build *b = &n->b;

    for (uint32_t i = 0; i < r->l->n; i++) {
        const TfValue *was = &r->state[i], *is = &r->next[i];

        if (was->kind == TF_LIST && is->kind == TF_LIST && !was->e && is->e) {
            if (!shape_list(r, i))
                return false;
            *again = true;
            continue;
        }
        if (is->kind == TF_COMPLEX)
            return tf_error(n, E_UNSUPPORTED, "state %u is complex", i);
        if (was->kind != is->kind || was->variable != is->variable || !was->e != !is->e)
            return tf_error(n, E_UNSUPPORTED, "state %u is of another kind after a round", i);
        if (was->e && was->e->type != is->e->type) {
            tf_error(n, E_UNSUPPORTED, "state %u has another type after a round", i);
            diag_note(b->c->diags, b->loc, "%s before it, %s after it",
                      type_text(b->c, was->e->type), type_text(b->c, is->e->type));
            return false;
        }
    }
    return true;
}

static bool convert_round(Rounds *r)
{
    TfNode *n = r->n;

    for (uint32_t i = 0; i < MOST_TRIES; i++) {
        uint32_t functions = n->im->functions.n;
        bool     again = false;

        begin_states(r);
        if (!r->l->round(n, r->l->user, r->state, r->next))
            return false;
        for (uint32_t k = 0; k < r->l->n; k++)
            if (r->l->fixed[k])
                r->next[k] = r->state[k];
        if (!check_states(r, &again))
            return false;
        if (!again)
            return r->l->go(n, r->l->user, r->first, &r->first_go) &&
                   r->l->go(n, r->l->user, r->next, &r->next_go);
        n->im->functions.n = functions;
    }
    return tf_error(n, E_UNSUPPORTED, "its states change their shapes in each round");
}

bool tf_loop(TfNode *n, const TfLoop *l, TfValue *out)
{
    Arena       *a = n->b.c->arena;
    Rounds       r = {.n = n, .l = l};
    const Expr **var = NEW_ARRAY(a, const Expr *, l->n + 1),
               **first = NEW_ARRAY(a, const Expr *, l->n + 1),
               **next = NEW_ARRAY(a, const Expr *, l->n + 1), *last;
    uint32_t *at = NEW_ARRAY(a, uint32_t, l->n + 1), k = 0;
    double    v;

    r.first = DUP_ARRAY(a, l->first, l->n);
    r.state = NEW_ARRAY(a, TfValue, l->n + 1);
    r.next = NEW_ARRAY(a, TfValue, l->n + 1);
    if (!convert_round(&r))
        return false;
    memcpy(out, r.first, l->n * sizeof *out);
    if (expr_const_f(r.first_go, &v) && v == 0)
        return true;
    if (expr_const_f(r.next_go, &v) && v != 0)
        return tf_error(n, E_IMPORT, "a loop without an end");
    for (uint32_t i = 0; i < l->n; i++)
        if (varies(&r, i)) {
            var[k] = r.state[i].e;
            first[k] = r.first[i].e;
            next[k] = r.next[i].e;
            at[k++] = i;
        }
    if (k == 0)
        return true;
    BuildLoop b = {loop_name(n), k, var, first, next, r.first_go, r.next_go, false};

    if (!(last = build_while(&n->b, &b, &n->im->functions)))
        return false;
    for (uint32_t i = 0; i < k; i++)
        if (!(out[at[i]].e = build_proj(&n->b, last, i)))
            return false;
    return true;
}

bool tf_rounds(TfNode *n, const Idx *count, uint32_t nstates, const Expr *const *first,
               BuildRound *fn, void *user, const Expr **out)
{
    return build_rounds(&n->b, loop_name(n), count, nstates, first, fn, user, out,
                        &n->im->functions);
}
