/* Variables: what CALL_ONCE gives them is known when the model is compiled.  One that the main
 * graph reads and then assigns lives from run to run: a state, which is an input (state_input), and
 * what is in it at the end the result <name>_out. */
#include "frontends/tflite/tflite.h"

/* The number of the variable of that name, perhaps a new one. */
static uint32_t number_of(TfliteImport *im, const char *name)
{
    TfliteVariable *v;

    name = intern(im->c->strings, name);
    for (uint32_t i = 0; i < im->variables.n; i++)
        if (im->variables.at[i]->name == name)
            return i;
    v = NEW(im->c->arena, TfliteVariable);
    v->name = name;
    vec_push(im->c->arena, &im->variables, v);
    return im->variables.n - 1;
}

/* Is it the operator of that converter? */
static bool is_operator(const TfliteImport *im, const TfliteOperator *p, TfliteConvert *convert)
{
    const TfliteRow *row = tflite_row(tflite_opcode(im->model, p));

    return row && row->convert == convert;
}

/* The handles of a graph: VAR_HANDLE by 1 + the tensor that it makes. */
static Map *handles_of(TfliteImport *im, const TfliteGraph *g)
{
    Map *handles = map_new(im->c->scratch);

    for (uint32_t i = 0; i < g->operators.n; i++) {
        const TfliteOperator *p = g->operators.at[i];

        if (is_operator(im, p, tflite_var_handle) && p->out.n == 1)
            map_put(handles, (uint64_t)tflite_out_index(p, 0) + 1, (void *)p);
    }
    return handles;
}

/* The variable that an operator of that converter reads or assigns; NULL: none, or not known. */
static TfliteVariable *variable_of(TfliteImport *im, const Map *handles, const TfliteOperator *p,
                                   TfliteConvert *convert)
{
    TfliteNode n = {.b.c = im->c, .im = im};
    uint32_t   at;

    if (!is_operator(im, p, convert) || p->in.n == 0 ||
        !(n.p = map_get(handles, (uint64_t)tflite_in_index(p, 0) + 1)))
        return NULL;
    n.row = tflite_row(tflite_opcode(im->model, n.p));
    at = number_of(im, tflite_text(&n, "shared_name"));
    return im->variables.at[at];
}

/* What a graph assigns to variables that have no first tensor yet. */
static void find_first(TfliteImport *im, const TfliteGraph *g)
{
    const Map *handles = handles_of(im, g);

    for (uint32_t i = 0; i < g->operators.n; i++) {
        const TfliteOperator *p = g->operators.at[i];
        TfliteVariable       *v = variable_of(im, handles, p, tflite_assign_variable);

        if (v && !v->first && p->in.n == 2 && tflite_in_index(p, 1) >= 0)
            v->first = tflite_tensor(g, tflite_in_index(p, 1));
    }
}

/* The input that a variable begins a run with, as the tensor is that it is read to. */
static bool add_state(TfliteImport *im, TfliteVariable *v, const TfliteTensor *t, Loc loc,
                      NamedValues *params)
{
    int64_t dims[MAX_RANK];
    DType   type;

    if (!tflite_dtype(t->type, &type) || t->shape.n > MAX_RANK)
        return error_at(im->c, E_UNSUPPORTED, loc, "the model changes '%s', which is of %s",
                        v->name, tflite_dtype_name(t->type));
    for (uint32_t i = 0; i < t->shape.n; i++)
        if ((dims[i] = fb_int_at(t->shape, FB_I32, i)) < 0)
            return error_at(im->c, E_UNSUPPORTED, loc,
                            "the model changes '%s', whose size is not known", v->name);
    v->state = state_input(im->c, &im->shapes, loc, v->name,
                           type_tensor_i64(im->c, type, t->shape.n, dims),
                           v->first ? tflite_constant(im, v->first, loc) : NULL, params);
    v->value = v->state;
    return v->state != NULL;
}

/* Does a run begin there, be it another than this one? */
static bool is_entry(const TfliteModel *m, uint32_t graph)
{
    for (uint32_t i = 0; i < m->signatures.n; i++)
        if (((const TfliteSignature *)m->signatures.at[i])->graph == graph)
            return true;
    return graph == 0;
}

bool tflite_states(TfliteImport *im, const TfliteGraph *g, Loc loc, NamedValues *params)
{
    const Map *handles = handles_of(im, g);

    for (uint32_t i = 0; i < g->operators.n; i++) {
        TfliteVariable *v = variable_of(im, handles, g->operators.at[i], tflite_assign_variable);

        if (v && !v->assigned)
            v->assigned = i + 1;
    }
    for (uint32_t i = 0; i < im->model->graphs.n; i++)
        if (!is_entry(im->model, i))
            find_first(im, im->model->graphs.at[i]);
    for (uint32_t i = 0; i < g->operators.n; i++) {
        const TfliteOperator *p = g->operators.at[i];
        TfliteVariable       *v = variable_of(im, handles, p, tflite_read_variable);

        if (v && i + 1 < v->assigned && !v->state && p->out.n == 1 &&
            !add_state(im, v, tflite_tensor(g, tflite_out_index(p, 0)), loc, params))
            return false;
    }
    return true;
}

/* Handles are numbers of variables. */
bool tflite_var_handle(TfliteNode *n)
{
    return tflite_done(
        n, expr_scalar(n->b.c, DT_I32, number_of(n->im, tflite_text(n, "shared_name"))));
}

/* The variable of a handle; NULL with an error. */
static TfliteVariable *variable(TfliteNode *n)
{
    double v;

    if (tflite_in(n, 0)->type != TFLITE_RESOURCE || !expr_const_f(n->in[0], &v) || v < 0 ||
        v >= n->im->variables.n)
        return tflite_error(n, E_UNSUPPORTED, "a handle that is not known when it is compiled");
    return n->im->variables.at[(uint32_t)v];
}

bool tflite_read_variable(TfliteNode *n)
{
    TfliteVariable *v = variable(n);

    if (v && v->assigned && n->scope->depth > 0)
        return tflite_error(n, E_UNSUPPORTED, "the state '%s' is read in a graph of its own",
                            v->name);
    if (v && !v->value)
        return tflite_error(n, E_UNSUPPORTED, "variable '%s' has no value before the first run",
                            v->name);
    return v && tflite_done(n, v->value);
}

bool tflite_assign_variable(TfliteNode *n)
{
    TfliteVariable *v = variable(n);

    if (v && !n->im->once && n->scope->depth > 0)
        return tflite_error(n, E_UNSUPPORTED, "the state '%s' changes in a graph of its own",
                            v->name);
    if (v && (!n->im->once || !v->state))
        v->value = n->in[1];
    return v != NULL;
}

bool tflite_states_end(TfliteImport *im, Loc loc, NamedValues *r)
{
    Ctx *c = im->c;

    for (uint32_t i = 0; i < im->variables.n; i++) {
        const TfliteVariable *v = im->variables.at[i];

        if (!v->state)
            continue;
        if (v->value->type != v->state->type)
            return error_at(c, E_UNSUPPORTED, loc, "the state '%s' is %s, and %s after a run",
                            v->name, type_text(c, v->state->type), type_text(c, v->value->type));
        if (!result_add(c, r, state_result(c, v->name), v->value, loc))
            return false;
    }
    return true;
}

bool tflite_call_once(TfliteNode *n)
{
    const Expr       **out;
    int64_t            at = tflite_int(n, "init_subgraph_index");
    const TfliteGraph *g = tflite_graph(n, at);
    bool               had = n->im->once;

    if (!g)
        return false;
    out = NEW_ARRAY(n->b.c->arena, const Expr *, g->out.n + 1);
    n->im->once = true;
    if (!tflite_subgraph(n, at, 0, NULL, out))
        return false;
    n->im->once = had;
    return true;
}
