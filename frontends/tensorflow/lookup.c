/* Lookup tables of numbers: what each key stands for.
 *
 * What is in a table the model says beside what its outputs need: a node that fills it, in the main
 * graph (TensorFlow 1) or in a function that gets its handle (TensorFlow 2).
 *
 *     find x      take(const @values ++ default, where(any(x == const @keys), argmax(..), count))
 */
#include "frontends/tensorflow/tensorflow.h"

#include <string.h>

/* ---- what fills a table ------------------------------------------------------------------------------ */

/* What an operand is in the end: behind nodes that hand it on, and in the main graph if the node
 * that calls the function gives it.  *g: the graph that the result is of. */
static TfPort origin(const TfModel *m, const TfGraph **g, const TfOp *call, TfPort p)
{
    for (uint32_t i = 0; i < 16; i++) {
        if (p.node == TF_ARGUMENT && *g != &m->graph && call && p.port < call->nin) {
            p = call->in[p.port];
            *g = &m->graph;
        } else if (p.node < (*g)->n && !strcmp((*g)->op[p.node].op, "Identity") &&
                   (*g)->op[p.node].nin > 0) {
            p = (*g)->op[p.node].in[0];
        } else {
            break;
        }
    }
    return p;
}

static bool fills(const TfOp *p)
{
    static const char *const names[] = {"LookupTableImportV2", "LookupTableImport",
                                        "InitializeTableV2", "InitializeTable"};

    for (uint32_t i = 0; i < COUNT(names); i++)
        if (!strcmp(p->op, names[i]))
            return p->nin > 2;
    return false;
}

/* The constant that an operand is; NULL with an error. */
static const Expr *constant(TfNode *n, const TfGraph *g, const TfOp *call, TfPort p)
{
    const TfValueDef *v;

    p = origin(n->im->model, &g, call, p);
    v = p.node < g->n && !strcmp(g->op[p.node].op, "Const") ? tf_attr(&g->op[p.node], "value")
                                                            : NULL;
    if (!v || !v->tensor)
        return tf_error(n, E_UNSUPPORTED, "its table is filled with what is no constant");
    return tf_constant(n->im, v->tensor, g->op[p.node].name, n->b.loc);
}

typedef struct {
    const Expr *keys, *values; /* [n] */
    int64_t     n;
} Table;

typedef enum { NOT_THIS, FILLED, BROKEN } Filling;

/* Does node p of g fill that table?  BROKEN with an error. */
static Filling filling(TfNode *n, uint32_t table, const TfGraph *g, const TfOp *call, const TfOp *p,
                       Table *t)
{
    const TfGraph *of = g;
    TfPort         to;
    int64_t        all;

    if (!fills(p))
        return NOT_THIS;
    to = origin(n->im->model, &of, call, p->in[0]);
    if (of != &n->im->model->graph || to.node != table)
        return NOT_THIS;
    if (!(t->keys = constant(n, g, call, p->in[1])) ||
        !(t->values = constant(n, g, call, p->in[2])))
        return BROKEN;
    if (!type_elems(t->keys->type, &t->n) || !type_elems(t->values->type, &all) || all != t->n ||
        t->n < 1) {
        tf_error(n, E_IMPORT, "a table of %s and %s", type_text(n->b.c, t->keys->type),
                 type_text(n->b.c, t->values->type));
        return BROKEN;
    }
    t->keys = build_reshape(&n->b, t->keys, 1, &t->n);
    t->values = build_reshape(&n->b, t->values, 1, &t->n);
    return t->keys && t->values ? FILLED : BROKEN;
}

/* What is in the table that node number `table` of the main graph is. */
static bool find_filling(TfNode *n, uint32_t table, Table *t)
{
    const TfGraph *top = &n->im->model->graph;

    for (uint32_t i = 0; i < top->n; i++) {
        const TfOp       *p = &top->op[i];
        const TfValueDef *f = tf_attr(p, "f");
        const TfGraph    *body = NULL;
        Filling           found = filling(n, table, top, NULL, p, t);

        if (f && f->func && f->func->name)
            body = tf_function(n->im->model, f->func->name);
        for (uint32_t k = 0; body && found == NOT_THIS && k < body->n; k++)
            found = filling(n, table, body, p, &body->op[k], t);
        if (found != NOT_THIS)
            return found == FILLED;
    }
    return tf_error(n, E_UNSUPPORTED, "nothing in the model fills its table");
}

/* ---- converters ------------------------------------------------------------------------------------- */

bool tf_hash_table(TfNode *n)
{
    if (n->scope->g != &n->im->model->graph)
        return tf_error(n, E_UNSUPPORTED, "a table within a function");
    n->out[0] = (TfValue){.kind = TF_TABLE_OF, .variable = n->at};
    return true;
}

/* The table of input 0. */
static bool table_of(TfNode *n, Table *t)
{
    if (n->given[0].kind != TF_TABLE_OF)
        return tf_error(n, E_IMPORT, "its input is no table");
    return find_filling(n, n->given[0].variable, t);
}

/* Inputs: the table, keys, the value of those that it has not. */
bool tf_lookup_find(TfNode *n)
{
    const Build    *b = &n->b;
    ArgReduceAttrs *first = ATTRS(b, ArgReduceAttrs);
    const Expr     *x, *other, *hit, *at;
    int64_t         last, one = 1;
    Table           t;

    if (!table_of(n, &t) || !tf_is_tensor(n, &n->given[1], "input 1") ||
        !tf_is_tensor(n, &n->given[2], "input 2"))
        return false;
    x = n->given[1].e;
    other = n->given[2].e;
    if (!dtype_eq(expr_dtype(x), expr_dtype(t.keys)) ||
        !dtype_eq(expr_dtype(other), expr_dtype(t.values)) || !expr_single(other))
        return tf_error(n, E_IMPORT, "keys are %s, the default is %s, its table has %s and %s",
                        type_text(b->c, x->type), type_text(b->c, other->type),
                        type_text(b->c, t.keys->type), type_text(b->c, t.values->type));
    last = first->axis = expr_rank(x);
    first->dtype = DT_I64;
    hit = build2(b, "equal", build_expand_dims(b, x, last, 1), t.keys, NULL);
    at = build1(b, "argmax", build_cast(b, hit, DT_I32), first);
    at = build_where(b, hit ? build_reduce(b, "any", hit, 1, &last, false) : NULL, at,
                     build_const(b, DT_I64, 0, NULL, &t.n));
    other = build_concat(b, 2, (const Expr *[]){t.values, build_reshape(b, other, 1, &one)}, 0);
    return tf_done(n, at ? build_take(b, other, at, 0) : NULL);
}

bool tf_lookup_size(TfNode *n)
{
    Table t;

    return table_of(n, &t) && tf_done(n, build_const(&n->b, DT_I64, 0, NULL, &t.n));
}
