/* A model: its inputs and outputs, and before each node what it needs. */
#include "frontends/tensorflow/tensorflow.h"

#include <string.h>

/* ---- scopes ----------------------------------------------------------------------------------------- */

TfScope tf_scope(TfImport *im, const TfGraph *g, uint32_t depth)
{
    Arena *a = im->c->arena;

    return (TfScope){.im = im,
                     .g = g,
                     .depth = depth,
                     .values = NEW_ARRAY(a, TfValue *, g->n + 1),
                     .open = NEW_ARRAY(a, bool, g->n + 1),
                     .frames = map_new(a)};
}

static bool exists(const TfScope *s, TfPort p)
{
    return p.node == TF_ARGUMENT ? p.port < s->g->nargs
                                 : p.node != TF_NOWHERE && p.port < s->g->op[p.node].nout;
}

const TfValue *tf_value_at(const TfScope *s, TfPort p)
{
    if (!exists(s, p))
        return NULL;
    return p.node == TF_ARGUMENT ? &s->args[p.port]
           : s->values[p.node]   ? &s->values[p.node][p.port]
                                 : NULL;
}

/* ---- one node --------------------------------------------------------------------------------------- */

const char *tf_node_name(TfImport *im, const TfGraph *g, const TfOp *p)
{
    return g->name ? intern_printf(im->c->strings, "%s/%s", g->name, p->name) : p->name;
}

/* Nodes whose operator is the name of a function. */
static const TfSchema call_schema = {"", "", "", ""};
static const TfRow    call_row = {"", TF_VALUES, NULL, tf_call_by_name, &call_schema};

static TfNode node_of(TfScope *s, uint32_t at)
{
    const TfOp *p = &s->g->op[at];
    Loc         loc = {s->im->path, s->im->ordinal, 0, tf_node_name(s->im, s->g, p)};
    TfNode      n = {.im = s->im,
                     .scope = s,
                     .op = p,
                     .row = p->row ? p->row : &call_row,
                     .at = at,
                     .nin = p->nin,
                     .nout = p->nout};

    n.b = (Build){s->im->c, loc, p->op};
    return n;
}

/* Values that follow from constants and sizes alone are known at once. */
static const Expr *known_value(TfNode *n, const Expr *v, bool closed)
{
    const Expr *k;

    if (closed && expr_has_shape(v) && v->kind != EXPR_CONST && (k = build_fold(&n->b, v)))
        v = k;
    for (uint32_t i = 0; i < n->nin; i++)
        if (n->given[i].kind != TF_TENSOR)
            return v;
    return expr_has_shape(v) ? build_fold_sizes(&n->b, n->im->sizes, n->nin, n->in, v) : v;
}

static bool store(TfNode *n)
{
    bool closed = true;

    for (uint32_t i = 0; i < n->nin; i++)
        closed &= n->given[i].kind == TF_NONE ||
                  (n->given[i].kind == TF_TENSOR && n->given[i].e->kind == EXPR_CONST);
    for (uint32_t i = 0; i < n->nin; i++)
        n->in[i] = n->given[i].e;
    for (uint32_t i = 0; i < n->nout; i++)
        if (n->out[i].kind == TF_TENSOR)
            n->out[i].e = known_value(n, n->out[i].e, closed);
    n->scope->values[n->at] = n->out;
    return true;
}

static bool convert_real(TfNode *n)
{
    return tf_prepare(n) && n->row->convert(n) && tf_finish(n);
}

static bool convert(TfNode *n)
{
    Arena   *a = n->b.c->arena;
    uint32_t before = diag_errors(n->b.c->diags);
    TfValue *given = NEW_ARRAY(a, TfValue, n->nin + 1);

    if (++n->im->converted > TF_MAX_NODES)
        return error_at(n->b.c, E_UNSUPPORTED, (Loc){.file = n->im->path},
                        "the model comes to more than %d nodes", TF_MAX_NODES);
    for (uint32_t i = 0; i < n->nin; i++) {
        const TfValue *v = tf_value_at(n->scope, n->op->in[i]);

        given[i] = v ? *v : (TfValue){0};
    }
    n->given = given;
    n->in = NEW_ARRAY(a, const Expr *, n->nin + 1);
    n->out = NEW_ARRAY(a, TfValue, n->nout + 1);
    if (!(tf_has_complex(n) ? tf_parts(n, convert_real) : convert_real(n)) ||
        diag_errors(n->b.c->diags) != before) {
        diag_drop(n->b.c->diags, before + 1); /* what follows from the first */
        if (diag_errors(n->b.c->diags) == before)
            BUG("%s '%s' failed to import without an error", n->b.what, n->b.loc.name);
        return false;
    }
    return store(n);
}

/* ---- what it needs before --------------------------------------------------------------------------- */

static bool check_port(TfNode *n, TfPort p, const char *text)
{
    const TfScope *s = n->scope;

    if (p.node == TF_NOWHERE)
        return tf_error(n, E_IMPORT, "its input '%s' does not exist", text);
    if (p.node == TF_ARGUMENT)
        return p.port < s->g->nargs ||
               tf_error(n, E_IMPORT, "its input is argument %u of %u", p.port, s->g->nargs);
    return p.port < s->g->op[p.node].nout ||
           tf_error(n, E_IMPORT, "its input '%s' is output %u of a node with %u", text, p.port,
                    s->g->op[p.node].nout);
}

static bool needs_of(TfNode *n, TfPorts *out)
{
    for (uint32_t i = 0; i < n->nin; i++) {
        if (!check_port(n, n->op->in[i], n->op->edges[i]))
            return false;
        if (n->row->how != TF_FLOW)
            vec_push(n->b.c->arena, out, n->op->in[i]);
    }
    return n->row->how != TF_FLOW || tf_flow_needs(n, out);
}

typedef VEC(uint32_t) Stack;

/* Puts on the stack what a node still needs; *ready: nothing. */
static bool push_needs(TfNode *n, Stack *todo, bool *ready)
{
    TfScope *s = n->scope;
    TfPorts  needs = {0};

    *ready = true;
    if (!needs_of(n, &needs))
        return false;
    for (uint32_t i = 0; i < needs.n; i++) {
        TfPort p = needs.at[i];

        if (n->row->how == TF_FLOW && !exists(s, p))
            return tf_error(n, E_IMPORT, "what its control flow depends on does not exist");
        if (p.node == TF_ARGUMENT || s->values[p.node])
            continue;
        if (s->open[p.node])
            return tf_error(n, E_IMPORT, "it needs its own result, through '%s'",
                            s->g->op[p.node].name);
        vec_push(s->im->c->scratch, todo, p.node);
        *ready = false;
    }
    return true;
}

const TfValue *tf_evaluate(TfScope *s, TfPort p, Loc loc)
{
    Stack todo = {0};
    bool  top = !s->g->name && !s->outer;

    if (!exists(s, p))
        return error_at(s->im->c, E_IMPORT, loc, "an output of the graph does not exist");
    if (p.node != TF_ARGUMENT)
        vec_push(s->im->c->scratch, &todo, p.node);
    while (todo.n) {
        uint32_t at = todo.at[todo.n - 1];
        TfNode   n;
        bool     ready;

        if (s->values[at]) {
            todo.n--;
            continue;
        }
        if (top)
            s->im->ordinal = at + 1;
        n = node_of(s, at);
        s->open[at] = true;
        if (!push_needs(&n, &todo, &ready))
            return NULL;
        if (!ready)
            continue;
        todo.n--;
        s->open[at] = false;
        if (!convert(&n))
            return NULL;
    }
    return tf_value_at(s, p);
}

/* ---- inputs ----------------------------------------------------------------------------------------- */

static uint32_t rank_of(const TfShape *s)
{
    return !s || s->unknown_rank || s->dim.n > MAX_RANK ? UINT32_MAX : s->dim.n;
}

static void dims_of(const TfShape *s, InputDim *dims)
{
    for (uint32_t i = 0; rank_of(s) != UINT32_MAX && i < s->dim.n; i++) {
        const TfDim *d = s->dim.at[i];

        dims[i] = (InputDim){d->size < 0 ? -1 : d->size, d->name && *d->name ? d->name : NULL};
    }
}

static bool import_input(TfImport *im, TfScope *s, const TfPortal *p, const ImportOptions *o,
                         NamedValues *params)
{
    Ctx               *c = im->c;
    Loc                loc = {.file = im->path};
    const ImportValue *value = value_given(o, p->name);
    InputDim           dims[MAX_RANK];
    const Type        *type;
    const Expr        *x;
    TfValue           *v;
    DType              d;

    if (p->port.port >= s->g->op[p->port.node].nout)
        return error_at(c, E_IMPORT, loc, "input '%s' does not exist", p->name);
    if (!tf_dtype(p->dtype, &d)) {
        error_at(c, E_UNSUPPORTED, loc, "input '%s' is of %s", p->name, tf_dtype_name(c, p->dtype));
        if (!strcmp(tf_dtype_name(c, p->dtype), "string"))
            diag_hint(c->diags, TF_NO_STRINGS);
        return false;
    }
    dims_of(p->shape, dims);
    vec_push(c->arena, &params->names, p->name);
    if (!(type = shapes_input(&im->shapes, loc, p->name, d, rank_of(p->shape), dims)))
        return true; /* what is missing is said at once */
    if (value) {
        x = value_expr(c, loc, value, type);
    } else {
        x = expr_var(c, p->name, type, loc);
        vec_push(c->arena, &params->at, x);
    }
    if (!(v = s->values[p->port.node]))
        v = s->values[p->port.node] = NEW_ARRAY(c->arena, TfValue, s->g->op[p->port.node].nout);
    if (v[p->port.port].kind != TF_NONE)
        return error_at(c, E_IMPORT, loc, "input '%s' is that of another name", p->name);
    v[p->port.port] = tf_tensor_value(x);
    return x != NULL;
}

/* May --dim NAME be of a dimension that a run decides, NAME.0 of a node? */
static bool is_made(const TfGraph *g, const char *name)
{
    size_t n = strlen(name);

    for (uint32_t i = 0; n > 2 && !strcmp(name + n - 2, ".0") && i < g->n; i++)
        if (strlen(g->op[i].name) == n - 2 && !strncmp(g->op[i].name, name, n - 2))
            return true;
    return false;
}

static bool import_inputs(TfImport *im, TfScope *s, const ImportOptions *o, NamedValues *params)
{
    TfModel *m = im->model;
    uint32_t before = diag_errors(im->c->diags);
    InputDim dims[MAX_RANK];
    Loc      loc = {.file = im->path};

    im->shapes = shapes_new(im->c, o);
    for (uint32_t i = 0; i < m->in.n; i++) {
        dims_of(m->in.at[i].shape, dims);
        shapes_see(&im->shapes, m->in.at[i].name, rank_of(m->in.at[i].shape), dims);
    }
    for (uint32_t i = 0; i < o->ndims; i++)
        im->shapes.later[i] = is_made(s->g, o->dims[i].name);
    for (uint32_t i = 0; i < m->in.n; i++)
        if (!import_input(im, s, &m->in.at[i], o, params))
            return false;
    return shapes_check(&im->shapes, loc, params->names.n, params->names.at) &&
           diag_errors(im->c->diags) == before;
}

/* ---- outputs ---------------------------------------------------------------------------------------- */

/* An output of a node anywhere in the main graph, "x" or "x:1". */
static bool find_tensor(TfImport *im, const char *name, TfPort *out)
{
    const TfGraph *g = &im->model->graph;
    VEC(const char *) names = {0};

    if (tf_find_port(im->model, name, out))
        return true;
    for (uint32_t i = 0; i < g->n; i++)
        vec_push(im->c->scratch, &names, g->op[i].name);
    return no_tensor(im->c, ((Loc){.file = im->path}), name, names.n, names.at);
}

static bool import_output(TfImport *im, TfScope *s, const char *name, TfPort p, NamedValues *r)
{
    Loc            loc = {.file = im->path};
    const TfValue *v = tf_evaluate(s, p, loc);

    if (v && v->kind != TF_TENSOR)
        return error_at(im->c, E_UNSUPPORTED, loc, "output '%s' is no tensor", name);
    return v && result_add(im->c, r, name, v->e, loc);
}

/* What becomes a result: the model's outputs, then those that are asked for besides. */
static bool choose_outputs(TfImport *im, const ImportOptions *o)
{
    TfModel *m = im->model;

    if (o->only_tensors)
        m->out.n = 0;
    for (uint32_t i = 0; i < o->ntensors; i++) {
        TfPortal p = {.name = intern(im->c->strings, o->tensors[i])};
        bool     have = false;

        for (uint32_t k = 0; k < m->out.n; k++)
            have |= m->out.at[k].name == p.name;
        if (have)
            continue;
        if (!find_tensor(im, p.name, &p.port))
            return false;
        vec_push(im->c->arena, &m->out, p);
    }
    return m->out.n > 0 ||
           error_at(im->c, E_IMPORT, (Loc){.file = im->path}, "the model has no outputs");
}

static const Module *import_main(TfImport *im, const ImportOptions *o)
{
    TfModel    *m = im->model;
    TfScope     s = tf_scope(im, &m->graph, 0);
    NamedValues params = {0}, r = {0};
    uint32_t    before = diag_errors(im->c->diags);

    if (!choose_outputs(im, o) || !tf_survey(im) || !import_inputs(im, &s, o, &params))
        return NULL;
    for (uint32_t i = 0; i < m->out.n; i++)
        if (!import_output(im, &s, m->out.at[i].name, m->out.at[i].port, &r))
            return NULL;
    if (diag_errors(im->c->diags) != before ||
        !shapes_check_dims(&im->shapes, (Loc){.file = im->path}))
        return NULL;
    return build_module(im->c, im->path, &params, &r, im->binds.n, im->binds.at, &im->functions);
}

const Module *tensorflow_import(Ctx *c, const char *path, Bytes file, const ImportOptions *o,
                                ImportFiles *files)
{
    TfModel  m;
    TfImport im = {.c = c,
                   .path = path,
                   .model = &m,
                   .files = files,
                   .sizes = map_new(c->arena),
                   .variable_index = map_new(c->arena)};

    return tf_read_model(c, path, file, o->signature, &m) ? import_main(&im, o) : NULL;
}
