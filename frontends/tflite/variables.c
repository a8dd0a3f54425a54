/* Variables: what CALL_ONCE gives them is known when the model is compiled.  One that the main
 * graph reads and then assigns lives from run to run: a state, which is an input (state_input), and
 * what is in it at the end the result <name>_out.
 *
 * Variable tensors, which recurrent operators of the main graph change, are states, too, if the
 * operator takes one step (RNN, LSTM, SVDF), or where --state names them.  Layers of sequences
 * begin each run anew otherwise: those that Keras writes are meant so, and their users reset LiteRT
 * before each run. */
#include "frontends/tflite/tflite.h"

#include <string.h>

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

/* ---- what operators keep --------------------------------------------------------------------------- */

static bool is_asked(const ImportOptions *o, const char *name)
{
    const char *part;
    size_t      n;

    for (uint32_t i = 0; i < o->nkept; i++)
        if (!strcmp(o->kept[i], name) || str_star(name, o->kept[i], &part, &n))
            return true;
    return false;
}

/* The name of a tensor, of which there may be several. */
static const char *kept_name(const TfliteScope *s, const TfliteTensor *t, int64_t at,
                             const NamedValues *params)
{
    Ctx *c = s->im->c;

    return result_have(params, t->name)
               ? intern_printf(c->strings, "%s_%lld", t->name, (long long)at)
               : t->name;
}

/* The input that tensor `at` begins a run with: as the file says, else as zeros. */
static bool add_kept(TfliteScope *s, int64_t at, Loc loc, NamedValues *params)
{
    TfliteImport       *im = s->im;
    const TfliteTensor *t = tflite_tensor(s->g, at);
    const char         *name = kept_name(s, t, at, params);
    int64_t             dims[MAX_RANK];
    TfliteVariable     *v;
    const Expr         *first = tflite_constant(im, t, loc);
    DType               type;

    if (!tflite_dtype(t->type, &type))
        return error_at(im->c, E_UNSUPPORTED, loc, "the model changes '%s', which is of %s", name,
                        tflite_dtype_name(t->type));
    for (uint32_t i = 0; i < t->shape.n; i++)
        if ((dims[i] = fb_int_at(t->shape, FB_I32, i)) < 1)
            return error_at(im->c, E_UNSUPPORTED, loc,
                            "the model changes '%s', whose size is not known", name);
    if (!first)
        first = expr_scalar(im->c, type, tflite_is_quantized(t) ? (double)tflite_zero(t, 0) : 0);
    v = NEW(im->c->arena, TfliteVariable);
    *v = (TfliteVariable){.name = name, .tensor = t};
    vec_push(im->c->arena, &im->variables, v);
    v->state = v->value =
        state_input(im->c, &im->shapes, loc, name, type_tensor_i64(im->c, type, t->shape.n, dims),
                    first, params);
    s->values[at] = v->state;
    return v->state != NULL;
}

/* A size that is not the file's is no state's: it begins each run anew. */
static bool find_kept(TfliteScope *s, const TfliteOperator *p, const ImportOptions *o, Loc loc,
                      NamedValues *params)
{
    const TfliteRow *row = tflite_row(tflite_opcode(s->im->model, p));
    bool             one_step;

    if (!row || p->in.n == 0 || tflite_in_index(p, 0) < 0)
        return true;
    one_step = tflite_tensor(s->g, tflite_in_index(p, 0))->shape.n == 2;
    for (uint32_t i = row->least; i < p->in.n; i++) {
        int64_t             at = tflite_in_index(p, i);
        const TfliteTensor *t = at < 0 ? NULL : tflite_tensor(s->g, at);

        if (!t || !t->is_variable || s->values[at] || !(one_step || is_asked(o, t->name)))
            continue;
        if (s->im->shapes.reshaped && !is_asked(o, t->name)) {
            diag_warn(s->im->c->diags, W_STATE_KEPT, loc,
                      "the model keeps '%s' from run to run, here each begins with what is there "
                      "at first: its size is not the file's",
                      t->name);
            continue;
        }
        if (!add_kept(s, at, loc, params))
            return false;
    }
    return true;
}

static TfliteVariable *kept_in(const TfliteNode *n, uint32_t i)
{
    const TfliteImport *im = n->im;

    if (i == 0 || i >= n->p->in.n || tflite_in_index(n->p, i) < 0)
        return NULL;
    for (uint32_t k = 0; k < im->variables.n; k++)
        if (im->variables.at[k]->tensor == tflite_in(n, i))
            return im->variables.at[k];
    return NULL;
}

bool tflite_is_kept(const TfliteNode *n, uint32_t i)
{
    return n->scope->depth == 0 && kept_in(n, i);
}

bool tflite_keep(TfliteNode *n, uint32_t i, const Expr *y)
{
    TfliteVariable *v = n->scope->depth == 0 ? kept_in(n, i) : NULL;

    if (!v)
        return true;
    if (y && tflite_is_quantized(v->tensor) && dtype_is_float(expr_dtype(y)))
        y = tflite_quantize(&n->b, v->tensor, y, -1);
    n->scope->values[tflite_in_index(n->p, i)] = v->value = y;
    return y != NULL;
}

/* ---- states ----------------------------------------------------------------------------------------- */

/* Does a run begin there, be it another than this one? */
static bool is_entry(const TfliteModel *m, uint32_t graph)
{
    for (uint32_t i = 0; i < m->signatures.n; i++)
        if (((const TfliteSignature *)m->signatures.at[i])->graph == graph)
            return true;
    return graph == 0;
}

bool tflite_states(TfliteScope *s, const ImportOptions *o, Loc loc, NamedValues *params)
{
    TfliteImport      *im = s->im;
    const TfliteGraph *g = s->g;
    const Map         *handles = handles_of(im, g);

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
    for (uint32_t i = 0; i < g->operators.n; i++)
        if (!find_kept(s, g->operators.at[i], o, loc, params))
            return false;
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
