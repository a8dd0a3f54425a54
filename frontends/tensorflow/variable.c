/* Variables: each has the value that the checkpoint gives it.
 *
 * Which tensor that is the graph itself says: an assignment of what RestoreV2 reads, in the main
 * graph (TensorFlow 1) or in a function that gets handles of the variables (TensorFlow 2). */
#include "frontends/tensorflow/tensorflow.h"

#include <string.h>

static uint32_t variable_named(TfImport *im, const char *name)
{
    uintptr_t at;

    name = intern(im->c->strings, name);
    if (!(at = (uintptr_t)map_get(im->variable_index, PTR_KEY(name)))) {
        vec_push(im->c->arena, &im->variables, ((TfVariable){name, NULL, NULL}));
        at = im->variables.n;
        map_put(im->variable_index, PTR_KEY(name), (void *)at);
    }
    return (uint32_t)(at - 1);
}

/* Handles of one shared name are the same variable. */
static const char *name_of(TfImport *im, const TfOp *p)
{
    const TfValueDef *v = tf_attr(p, "shared_name");

    return v && v->s.n ? tf_string(im->c, v->s) : p->name;
}

/* ---- where values come from ------------------------------------------------------------------------- */

static bool is_variable(const TfOp *p)
{
    return !strcmp(p->op, "VarHandleOp") || !strcmp(p->op, "VariableV2") ||
           !strcmp(p->op, "Variable");
}

/* Behind nodes that hand on what they get. */
static TfPort origin(const TfGraph *g, TfPort p)
{
    for (uint32_t i = 0; i < 16 && p.node < g->n; i++) {
        const TfOp *op = &g->op[p.node];

        if (strcmp(op->op, "Identity") != 0 || op->nin < 1)
            break;
        p = op->in[0];
    }
    return p;
}

/* Name number i of what a RestoreV2 reads; NULL: not known. */
static const char *restored_name(TfImport *im, const TfGraph *g, const TfOp *restore, uint32_t i)
{
    TfPort            p = restore->nin > 1 ? origin(g, restore->in[1]) : (TfPort){TF_NOWHERE, 0};
    const TfValueDef *v = p.node < g->n ? tf_attr(&g->op[p.node], "value") : NULL;
    const PbBlobs    *s = v && v->tensor ? &v->tensor->string_val : NULL;

    if (!s || s->n == 0)
        return NULL;
    i = i < s->n ? i : s->n - 1;
    return tf_string(im->c, s->at[i]);
}

/* Assignments of what is restored in a graph; call: the node that calls it, NULL: the main one. */
static void find_assignments(TfImport *im, const TfGraph *g, const TfOp *call)
{
    const TfGraph *top = &im->model->graph;

    for (uint32_t i = 0; i < g->n; i++) {
        const TfOp *p = &g->op[i];
        TfPort      from, to;
        const char *key;

        if ((strcmp(p->op, "Assign") != 0 && strcmp(p->op, "AssignVariableOp") != 0) || p->nin < 2)
            continue;
        to = origin(g, p->in[0]);
        from = origin(g, p->in[1]);
        if (call && to.node == TF_ARGUMENT && to.port < call->nin)
            to = origin(top, call->in[to.port]);
        else if (call)
            continue;
        if (to.node >= top->n || !is_variable(&top->op[to.node]) || from.node >= g->n ||
            strcmp(g->op[from.node].op, "RestoreV2") != 0)
            continue;
        if ((key = restored_name(im, g, &g->op[from.node], from.port))) {
            uint32_t v = variable_named(im, name_of(im, &top->op[to.node]));

            im->variables.at[v].key = key;
        }
    }
}

static void find_keys(TfImport *im)
{
    const TfGraph *g = &im->model->graph;

    im->restored = true;
    find_assignments(im, g, NULL);
    for (uint32_t i = 0; i < g->n; i++) {
        const TfOp       *p = &g->op[i];
        const TfValueDef *f = tf_attr(p, "f");
        const TfGraph    *body;

        if (im->model->restore && strcmp(p->name, im->model->restore) != 0)
            continue;
        if (f && f->func && f->func->name && (body = tf_function(im->model, f->func->name)))
            find_assignments(im, body, p);
    }
}

const Expr *tf_variable(TfNode *n, uint32_t number)
{
    TfImport   *im = n->im;
    TfVariable *v = &im->variables.at[number];

    if (v->value)
        return v->value;
    if (!im->model->saved) {
        tf_error(n, E_UNSUPPORTED, "variable '%s' has no value in this file", v->name);
        diag_hint(im->c->diags, "freeze the graph, or give the folder of a SavedModel");
        return NULL;
    }
    if (!im->restored)
        find_keys(im);
    v = &im->variables.at[number];
    if (!im->bundle && !(im->bundle = tf_bundle_open(im->c, im->path, im->files)))
        return NULL;
    return v->value = tf_bundle_tensor(im->bundle, v->key ? v->key : v->name, v->name, n->b.loc);
}

/* ---- converters ------------------------------------------------------------------------------------- */

bool tf_var_handle(TfNode *n)
{
    n->out[0] =
        (TfValue){.kind = TF_VARIABLE_OF, .variable = variable_named(n->im, name_of(n->im, n->op))};
    return true;
}

bool tf_read_variable(TfNode *n)
{
    if (n->given[0].kind != TF_VARIABLE_OF)
        return tf_error(n, E_IMPORT, "its input is no variable");
    return tf_done(n, tf_variable(n, n->given[0].variable));
}

/* A variable of TensorFlow 1 is its value wherever it is taken. */
bool tf_variable_ref(TfNode *n)
{
    return tf_done(n, tf_variable(n, variable_named(n->im, name_of(n->im, n->op))));
}
