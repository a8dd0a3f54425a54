/* A model: its values and inputs, one node after another, its results. */
#include "frontends/mxnet/mxnet.h"

#include <ctype.h>
#include <string.h>

#define MX_MAX_NODES 1000000 /* converted, as bodies are converted again */

/* {"nodes" and "op" somewhere, or as MXNet writes it. */
int mxnet_bid(const char *path, Bytes file)
{
    size_t at = 0;
    bool   arg_nodes;

    while (at < file.n && isspace(file.at[at]))
        at++;
    if (at == file.n || file.at[at] != '{')
        return 0;
    while (++at < file.n && isspace(file.at[at]))
        ;
    if (file.n - at < 7 || memcmp(file.at + at, "\"nodes\"", 7) != 0)
        return str_ends(path, "-symbol.json") ? 30 : 0;
    arg_nodes = memmem(file.at, file.n, "\"arg_nodes\"", 11) != NULL;
    return arg_nodes ? 90 : 40;
}

/* ---- which nodes ------------------------------------------------------------------------------------ */

bool *mx_needed(Ctx *c, const MxGraph *g, uint32_t n, const MxPort *more)
{
    bool *needed = NEW_ARRAY(c->arena, bool, g->n + 1);

    for (uint32_t i = 0; i < g->nheads; i++)
        needed[g->heads[i].node] |= more == NULL;
    for (uint32_t i = 0; i < n; i++)
        needed[more[i].node] = true;
    for (uint32_t i = g->n; i-- > 0;) {
        const MxOp *p = &g->op[i];
        uint32_t    nin = p->row && p->row->how == MX_FIRST && p->nin ? 1 : p->nin;

        for (uint32_t k = 0; needed[i] && k < nin; k++)
            needed[p->in[k].node] = true;
    }
    return needed;
}

/* ---- one node --------------------------------------------------------------------------------------- */

static bool take_operands(MxNode *n)
{
    for (uint32_t i = 0; i < n->nin; i++) {
        MxPort          p = n->op->in[i];
        const MxValues *v = &n->scope->values[p.node];

        if (!v->out || !(n->in[i] = v->out[p.port])) {
            if (n->row->how == MX_FIRST && i > 0)
                continue;
            return mx_error(n, E_UNSUPPORTED, "operand %u, output %u of '%s', is not computed", i,
                            p.port, n->scope->g->op[p.node].name);
        }
    }
    return true;
}

static bool convert(MxScope *s, uint32_t at)
{
    Ctx        *c = s->im->c;
    const MxOp *p = &s->g->op[at];
    uint32_t    before = diag_errors(c->diags);
    const char *name = s->within ? intern_printf(c->strings, "%s/%s", s->within, p->name) : p->name;
    MxNode      n = {.im = s->im,
                     .scope = s,
                     .op = p,
                     .row = p->row,
                     .nin = p->nin,
                     .nout = p->nout,
                     .in = NEW_ARRAY(c->arena, const Expr *, p->nin + 1),
                     .out = NEW_ARRAY(c->arena, const Expr *, p->nout + 1)};

    n.b = (Build){c, {s->im->path, s->within ? 0 : at + 1, 0, name}, p->op};
    if (++s->im->converted > MX_MAX_NODES)
        return error_at(c, E_UNSUPPORTED, (Loc){.file = s->im->path},
                        "the model comes to more than %d nodes", MX_MAX_NODES);
    if (!take_operands(&n) || !n.row->convert(&n) || diag_errors(c->diags) != before) {
        diag_drop(c->diags, before + 1); /* what follows from the first */
        if (diag_errors(c->diags) == before)
            BUG("%s '%s' failed to import without an error", p->op, name);
        return false;
    }
    s->values[at].out = n.out;
    return true;
}

static void set_variable(MxScope *s, uint32_t at, const Expr *v)
{
    s->values[at].out = NEW_ARRAY(s->im->c->arena, const Expr *, s->g->op[at].nout + 1);
    s->values[at].out[0] = v;
}

static const Expr *value_at(const MxScope *s, MxPort p)
{
    return s->values[p.node].out ? s->values[p.node].out[p.port] : NULL;
}

bool mx_subgraph(MxNode *n, uint32_t sub, const Expr *const *vars, const Expr **heads)
{
    Ctx           *c = n->b.c;
    const MxGraph *g = &n->op->sub[sub];
    MxScope        s = {n->im, g, NEW_ARRAY(c->arena, MxValues, g->n + 1), n->scope->depth + 1,
                        n->b.loc.name};
    bool          *needed = mx_needed(c, g, 0, NULL);

    for (uint32_t i = 0; i < g->nvars; i++)
        set_variable(&s, g->vars[i], vars[i]);
    for (uint32_t i = 0; i < g->n; i++)
        if (g->op[i].op && needed[i] && !convert(&s, i))
            return false;
    for (uint32_t i = 0; i < g->nheads; i++)
        if (!(heads[i] = value_at(&s, g->heads[i])))
            return mx_error(n, E_IMPORT, "result %u of its graph %u is not computed", i, sub);
    return true;
}

/* ---- inputs ----------------------------------------------------------------------------------------- */

static bool is_given(const ImportOptions *o, const char *name)
{
    for (uint32_t i = 0; i < o->nshapes; i++)
        if (!strcmp(o->shapes[i].name, name))
            return true;
    return value_given(o, name) != NULL;
}

/* Values that should be in the file. */
static bool check_trained(MxImport *im, uint32_t at, const ImportOptions *o)
{
    const MxOp *p = &im->graph.op[at], *taker;
    Loc         loc = {im->path, at + 1, 0, p->name};
    uint32_t    operand;

    if (mx_attr(p, "__shape__") || is_given(o, p->name) ||
        !mx_consumer(&im->graph, at, &taker, &operand) ||
        !mx_is_trained(mx_arg_role(im->c, taker, operand)))
        return true;
    if (im->params.path) {
        error_at(im->c, E_IMPORT, loc, "'%s' is not in '%s'", p->name, im->params.path);
        diag_hint(im->c->diags, "--shape '%s:[..]' makes it an input", p->name);
    } else {
        error_at(im->c, E_IMPORT, loc, "there is no file with the value of '%s'", p->name);
        diag_hint(im->c->diags, "it would be beside the graph, as <model>-0000.params of "
                                "<model>-symbol.json: --weights names another");
    }
    return false;
}

static bool import_variable(MxImport *im, MxScope *s, uint32_t at, const ImportOptions *o)
{
    Ctx               *c = im->c;
    const MxOp        *p = &im->graph.op[at];
    const MxArray     *a = mx_param(&im->params, p->name);
    Loc                loc = {im->path, at + 1, 0, p->name};
    const ImportValue *value = value_given(o, p->name);
    InputDim           dims[MAX_RANK];
    uint32_t           rank;
    const Type        *type;
    const Expr        *x;
    DType              t;

    if (a && !value) {
        if (!a->data.at && a->rank == 0)
            return error_at(c, E_IMPORT, loc, "'%s' is empty in '%s'", p->name, im->params.path);
        if (a->rank > MAX_RANK)
            return error_at(c, E_UNSUPPORTED, loc, "'%s' has %u dimensions", p->name, a->rank);
        set_variable(s, at,
                     expr_const(c,
                                const_new(c, p->name,
                                          type_tensor_i64(c, a->dtype, a->rank, a->dims), a->data),
                                loc));
        return true;
    }
    for (uint32_t i = 0; i < im->inputs.names.n; i++)
        if (im->inputs.names.at[i] == p->name)
            return error_at(c, E_IMPORT, loc, "variable '%s' is there twice", p->name);
    vec_push(c->arena, &im->inputs.names, p->name);
    if (!check_trained(im, at, o))
        return true; /* what else is missing is said, too */
    mx_declared(c, &im->graph, &im->params, at, &t, &rank, dims);
    if (!mx_attr(p, "__dtype__"))
        t = shapes_dtype(&im->shapes, p->name, t);
    if (!(type = shapes_input(&im->shapes, loc, p->name, t, rank, dims)))
        return true;
    x = value ? value_expr(c, loc, value, type) : expr_var(c, p->name, type, loc);
    if (x && !value)
        vec_push(c->arena, &im->inputs.at, x);
    set_variable(s, at, x);
    return x != NULL;
}

static bool import_variables(MxImport *im, MxScope *s, const bool *needed, const ImportOptions *o)
{
    const MxGraph *g = &im->graph;
    uint32_t       before = diag_errors(im->c->diags);

    im->shapes = shapes_new(im->c, o);
    for (uint32_t k = 0; k < g->nvars; k++) {
        InputDim dims[MAX_RANK];
        uint32_t rank;
        DType    t;

        if (!needed[g->vars[k]] || mx_param(&im->params, g->op[g->vars[k]].name))
            continue;
        mx_declared(im->c, g, &im->params, g->vars[k], &t, &rank, dims);
        shapes_see(&im->shapes, g->op[g->vars[k]].name, rank, dims);
    }
    for (uint32_t k = 0; k < g->nvars; k++)
        if (needed[g->vars[k]] && !import_variable(im, s, g->vars[k], o))
            return false;
    return shapes_check(&im->shapes, (Loc){.file = im->path}, im->inputs.names.n,
                        im->inputs.names.at) &&
           diag_errors(im->c->diags) == before;
}

/* ---- results ---------------------------------------------------------------------------------------- */

typedef struct {
    VEC(MxPort) ports;
    TextList names;
} Results;

static bool find_tensor(MxImport *im, const char *name, MxPort *out)
{
    const MxGraph *g = &im->graph;
    TextList       names = {0};

    for (uint32_t i = 0; i < g->n; i++)
        for (uint32_t k = 0; k < g->op[i].nout; k++) {
            *out = (MxPort){i, k};
            vec_push(im->c->scratch, &names, mx_port_name(im->c, g, *out));
            if (names.at[names.n - 1] == name)
                return true;
        }
    return no_tensor(im->c, ((Loc){.file = im->path}), name, names.n, names.at);
}

/* The heads, then what is asked for besides. */
static bool choose_results(MxImport *im, const ImportOptions *o, Results *r)
{
    const MxGraph *g = &im->graph;

    for (uint32_t i = 0; i < g->nheads && !o->only_tensors; i++) {
        vec_push(im->c->arena, &r->ports, g->heads[i]);
        vec_push(im->c->arena, &r->names, mx_port_name(im->c, g, g->heads[i]));
    }
    for (uint32_t i = 0; i < o->ntensors; i++) {
        const char *name = intern(im->c->strings, o->tensors[i]);
        bool        have = false;
        MxPort      p;

        for (uint32_t k = 0; k < r->names.n; k++)
            have |= r->names.at[k] == name;
        if (have)
            continue;
        if (!find_tensor(im, name, &p))
            return false;
        vec_push(im->c->arena, &r->ports, p);
        vec_push(im->c->arena, &r->names, name);
    }
    return true;
}

static bool add_results(MxImport *im, const MxScope *s, const Results *r, NamedValues *out)
{
    for (uint32_t i = 0; i < r->ports.n; i++) {
        MxPort      p = r->ports.at[i];
        Loc         loc = {im->path, p.node + 1, 0, im->graph.op[p.node].name};
        const Expr *v = value_at(s, p);

        if (!v)
            return error_at(im->c, E_UNSUPPORTED, loc, "output '%s' is not computed",
                            r->names.at[i]);
        if (!result_add(im->c, out, r->names.at[i], v, loc))
            return false;
    }
    return true;
}

const Module *mxnet_import(Ctx *c, const char *path, Bytes file, const ImportOptions *o,
                           ImportFiles *files)
{
    MxImport    im = {.c = c, .path = path};
    MxScope     s = {.im = &im, .g = &im.graph};
    Results     r = {0};
    NamedValues results = {0};
    bool       *needed;

    if (!mx_read_symbol(c, path, file, &im.graph) || !choose_results(&im, o, &r))
        return NULL;
    needed = mx_needed(c, &im.graph, r.ports.n, r.ports.at);
    s.values = NEW_ARRAY(c->arena, MxValues, im.graph.n + 1);
    if (!mx_survey(c, path, &im.graph, needed) ||
        !mx_open_params(c, path, o->weights, files, &im.params) ||
        !import_variables(&im, &s, needed, o))
        return NULL;
    for (uint32_t i = 0; i < im.graph.n; i++)
        if (im.graph.op[i].op && needed[i] && !convert(&s, i))
            return NULL;
    if (!add_results(&im, &s, &r, &results) || !shapes_check_dims(&im.shapes, (Loc){.file = path}))
        return NULL;
    return build_module(c, path, &im.inputs, &results, 0, NULL, &im.functions);
}
