/* A model: its inputs and outputs, one operator after another. */
#include "frontends/tflite/tflite.h"

#include <string.h>

int tflite_bid(const char *path, Bytes file)
{
    FbTable root;
    bool    named = file.n >= 8 && !memcmp(file.at + 4, "TFL3", 4);

    if (named)
        return 90;
    /* The first files have no name in them; a version, and tables of codes, graphs and buffers. */
    if (str_ends(path, ".tflite"))
        return fb_root(file, &root) && fb_has(&root, 1) && fb_has(&root, 2) && fb_has(&root, 4)
                   ? 60
                   : 20;
    return 0;
}

/* ---- operators -------------------------------------------------------------------------------------- */

static bool find_inputs(TfliteNode *n)
{
    n->nin = n->p->in.n;
    while (n->nin && tflite_in_index(n->p, n->nin - 1) < 0)
        n->nin--;
    n->in = NEW_ARRAY(n->b.c->arena, const Expr *, n->nin + 1);
    for (uint32_t i = 0; i < n->nin; i++) {
        int64_t             at = tflite_in_index(n->p, i);
        const TfliteTensor *t;

        if (at < 0 && n->row->most == UINT32_MAX)
            return tflite_error(n, E_IMPORT, "input %u is missing", i);
        if (at < 0)
            continue;
        t = tflite_in(n, i);
        n->in[i] = n->scope->values[at];
        if (!n->in[i] && !tflite_is_constant(n->im->model, t)) {
            if (t->is_variable && i >= n->row->least)
                continue; /* a state, which the converter begins */
            return tflite_error(n, E_IMPORT, "its input '%s' is not computed before it", t->name);
        }
        if (!n->in[i] && !(n->in[i] = tflite_constant(n->im, t, n->b.loc)))
            return false;
        n->scope->values[at] = n->in[i];
    }
    return true;
}

/* What the model says of an output, against what it is. */
static void check_declared(TfliteNode *n, const TfliteTensor *t, const Expr *y)
{
    FbVector shape = t->signature.n == t->shape.n ? t->signature : t->shape;
    bool     same = expr_rank(y) == shape.n + tflite_is_string(t);

    if (n->im->shapes.reshaped || !expr_has_shape(y) || t->type == TFLITE_RESOURCE ||
        (shape.n == 0 && !t->has_rank))
        return;
    for (uint32_t i = 0; same && i < shape.n; i++) {
        int64_t v, said = fb_int_at(shape, FB_I32, i);

        same = said < 0 || !type_dim(y->type, i, &v) || v == said;
    }
    if (same)
        return;
    diag_warn(n->b.c->diags, W_DECLARED_SHAPE, n->b.loc,
              "%s '%s': its output '%s' is %s, which the model declares otherwise", n->b.what,
              n->b.loc.name, t->name, type_text(n->b.c, y->type));
}

static bool store_outputs(TfliteNode *n, const Expr *const *in)
{
    bool closed = true;

    for (uint32_t i = 0; i < n->nin; i++)
        closed &= !in[i] || in[i]->kind == EXPR_CONST;
    for (uint32_t i = 0; i < n->nout; i++) {
        const Expr *v = n->out[i], *k;
        int64_t     at = tflite_out_index(n->p, i);

        /* quantized_to_integer wants to see the integers. */
        if (expr_has_shape(v) && closed && v->kind != EXPR_CONST && !call_is(v, "qnn.dequantize") &&
            (k = build_fold(&n->b, v)))
            v = k;
        if (expr_has_shape(v))
            v = build_fold_sizes(&n->b, n->im->sizes, n->nin, in, v);
        if (n->scope->values[at])
            return tflite_error(n, E_IMPORT, "its output '%s' is computed twice",
                                tflite_out(n, i)->name);
        check_declared(n, tflite_out(n, i), v);
        n->scope->values[at] = v;
    }
    return true;
}

static bool convert_real(TfliteNode *n)
{
    return tflite_prepare(n) && n->row->convert(n) && tflite_finish(n);
}

static bool convert(TfliteNode *n)
{
    TfliteHow    how = n->row->how;
    bool         complex = false;
    const Expr **in;

    if (!find_inputs(n))
        return false;
    for (uint32_t i = 0; i < n->nin && how != TFLITE_STRINGS; i++)
        if (n->in[i] && tflite_is_string(tflite_in(n, i)))
            return tflite_error(n, E_UNSUPPORTED, "input %u is one of strings", i);
    in = DUP_ARRAY(n->b.c->arena, n->in, n->nin);
    for (uint32_t i = 0; i < n->nin && how != TFLITE_PAIRS; i++)
        complex |= tflite_is_complex(in[i]);
    if (complex && how != TFLITE_MOVES && how != TFLITE_RESHAPE)
        return tflite_error(n, E_UNSUPPORTED, "complex numbers");
    return (complex ? tflite_parts(n, convert_real) : convert_real(n)) && store_outputs(n, in);
}

static bool import_operators(TfliteScope *s, bool top)
{
    TfliteImport *im = s->im;
    Ctx          *c = im->c;

    for (uint32_t i = 0; i < s->g->operators.n; i++) {
        const TfliteOperator *p = s->g->operators.at[i];
        const TfliteOpcode   *code = tflite_opcode(im->model, p);
        uint32_t              before = diag_errors(c->diags);
        TfliteNode            n = {.b.c = c, .im = im, .scope = s, .p = p, .nout = p->out.n};

        if (p->left_out)
            continue;
        if (top)
            im->ordinal = i + 1;
        if (++im->converted > TFLITE_MAX_OPERATORS)
            return error_at(c, E_UNSUPPORTED, (Loc){.file = im->path},
                            "the model comes to more than %d operators", TFLITE_MAX_OPERATORS);
        n.row = p->sets_item ? &tflite_item_row : tflite_row(code);
        n.b.what = tflite_op_name(c, code);
        n.b.loc = (Loc){im->path, im->ordinal, 0, intern(c->strings, tflite_node_name(s->g, p))};
        n.out = NEW_ARRAY(c->arena, const Expr *, n.nout < 4 ? 4 : n.nout);
        if (!convert(&n) || diag_errors(c->diags) != before) {
            diag_drop(c->diags, before + 1); /* what follows from the first */
            if (diag_errors(c->diags) == before)
                BUG("%s '%s' failed to import without an error", n.b.what, n.b.loc.name);
            return false;
        }
    }
    return true;
}

static TfliteScope scope_new(TfliteImport *im, const TfliteGraph *g, uint32_t depth)
{
    return (TfliteScope){im, g, NEW_ARRAY(im->c->arena, const Expr *, g->tensors.n + 1), depth};
}

/* The value of an output of the graph. */
static const Expr *output_of(TfliteScope *s, int64_t at, Loc loc)
{
    const TfliteTensor *t = tflite_tensor(s->g, at);
    const Expr         *v = s->values[at];

    if (!v && tflite_is_constant(s->im->model, t))
        return s->values[at] = tflite_constant(s->im, t, loc);
    return v ? v : error_at(s->im->c, E_IMPORT, loc, "output '%s' is not computed", t->name);
}

const TfliteGraph *tflite_graph(TfliteNode *n, int64_t graph)
{
    const TfliteModel *m = n->im->model;

    if (graph < 1 || graph >= (int64_t)m->graphs.n)
        return tflite_error(n, E_IMPORT, "it names graph %lld of %u", (long long)graph,
                            m->graphs.n);
    return m->graphs.at[graph];
}

bool tflite_subgraph(TfliteNode *n, int64_t graph, uint32_t nin, const Expr *const *in,
                     const Expr **out)
{
    const TfliteGraph *g = tflite_graph(n, graph);
    TfliteScope        s;

    if (!g)
        return false;
    s = scope_new(n->im, g, n->scope->depth + 1);
    if (s.depth > TFLITE_MAX_NESTING)
        return tflite_error(n, E_UNSUPPORTED, "graphs are nested more than %d deep",
                            TFLITE_MAX_NESTING);
    if (nin != g->in.n)
        return tflite_error(n, E_IMPORT, "its graph has %u inputs, not %u", g->in.n, nin);
    for (uint32_t i = 0; i < nin; i++)
        s.values[fb_int_at(g->in, FB_I32, i)] = in[i];
    if (!import_operators(&s, false))
        return false;
    for (uint32_t i = 0; i < g->out.n; i++)
        if (!(out[i] = output_of(&s, fb_int_at(g->out, FB_I32, i), n->b.loc)))
            return false;
    return true;
}

/* ---- inputs --------------------------------------------------------------------------------------- */

/* How many there are. */
static uint32_t dims_of(TfliteImport *im, const TfliteTensor *t, const char *name, InputDim *dims)
{
    FbVector v = t->signature.n == t->shape.n ? t->signature : t->shape;

    for (uint32_t i = 0; i < v.n; i++)
        dims[i] = (InputDim){fb_int_at(v, FB_I32, i), NULL};
    if (!tflite_is_string(t) || v.n >= MAX_RANK)
        return v.n;
    dims[v.n] = string_room_dim(&im->shapes, name, v.n);
    return v.n + 1;
}

static bool import_input(TfliteImport *im, TfliteScope *s, int64_t at, const ImportOptions *o,
                         Loc loc, NamedValues *params)
{
    const TfliteTensor *t = tflite_tensor(s->g, at);
    const char         *name = tflite_port_name(im->c, im->model, at, false);
    const ImportValue  *value = value_given(o, name);
    InputDim            dims[MAX_RANK];
    const Type         *type;
    const Expr         *x;
    uint32_t            rank;
    DType               d;

    if (s->values[at])
        return error_at(im->c, E_IMPORT, loc, "input '%s' is there twice", name);
    if (tflite_is_string(t) && t->shape.n < MAX_RANK)
        d = DT_U8;
    else if (!tflite_dtype(t->type, &d))
        return error_at(im->c, E_UNSUPPORTED, loc, "input '%s' is of %s", name,
                        tflite_dtype_name(t->type));
    rank = dims_of(im, t, name, dims);
    vec_push(im->c->arena, &params->names, name);
    if (!(type = shapes_input(&im->shapes, loc, name, d, rank, dims)))
        return true; /* what is missing is said at once */
    if (tflite_is_string(t) && !string_check_room(&im->shapes, loc, name, type, false))
        return false;
    if (value) {
        x = value_expr(im->c, loc, value, type);
    } else {
        x = expr_var(im->c, name, type, loc);
        vec_push(im->c->arena, &params->at, x);
    }
    if (x && tflite_is_string(t))
        x = string_input(&(Build){im->c, loc, "string"}, x);
    s->values[at] = x;
    return x != NULL;
}

/* May --dim NAME be of a dimension that a run decides, NAME.0 of an operator's output? */
static bool is_made(const TfliteGraph *g, const char *name)
{
    size_t n = strlen(name);

    for (uint32_t i = 0; n > 2 && !strcmp(name + n - 2, ".0") && i < g->operators.n; i++) {
        const char *is = tflite_node_name(g, g->operators.at[i]);

        if (strlen(is) == n - 2 && !strncmp(is, name, n - 2))
            return true;
    }
    return false;
}

static bool import_inputs(TfliteImport *im, TfliteScope *s, const ImportOptions *o, Loc loc,
                          NamedValues *params)
{
    uint32_t before = diag_errors(im->c->diags);
    Map     *seen = map_new(im->c->scratch);
    InputDim dims[MAX_RANK];
    uint32_t rank;

    im->shapes = shapes_new(im->c, o);
    for (uint32_t i = 0; i < s->g->in.n; i++) {
        int64_t     at = fb_int_at(s->g->in, FB_I32, i);
        const char *name = tflite_port_name(im->c, im->model, at, false);

        if (map_get(seen, PTR_KEY(name)))
            return error_at(im->c, E_IMPORT, loc, "input '%s' is there twice", name);
        map_put(seen, PTR_KEY(name), seen);
        rank = dims_of(im, tflite_tensor(s->g, at), name, dims);
        shapes_see(&im->shapes, name, rank, dims);
    }
    for (uint32_t i = 0; i < o->ndims; i++)
        im->shapes.later[i] = is_made(s->g, o->dims[i].name);
    for (uint32_t i = 0; i < s->g->in.n; i++)
        if (!import_input(im, s, fb_int_at(s->g->in, FB_I32, i), o, loc, params))
            return false;
    return tflite_states(s, o, loc, params) &&
           shapes_check(&im->shapes, loc, params->names.n, params->names.at) &&
           diag_errors(im->c->diags) == before;
}

/* ---- outputs ---------------------------------------------------------------------------------------- */

/* All that has been computed in the main graph. */
static NamedValues all_tensors(const TfliteScope *s)
{
    Ctx        *c = s->im->c;
    NamedValues all = {0};

    for (uint32_t i = 0; i < s->g->tensors.n; i++) {
        if (!s->values[i])
            continue;
        vec_push(c->scratch, &all.names, intern(c->strings, tflite_tensor(s->g, i)->name));
        vec_push(c->scratch, &all.at, s->values[i]);
    }
    return all;
}

static bool import_outputs(TfliteImport *im, TfliteScope *s, const ImportOptions *o, Loc loc,
                           NamedValues *r)
{
    NamedValues all;

    if (s->g->out.n == 0)
        return error_at(im->c, E_IMPORT, loc, "the model has no outputs");
    for (uint32_t i = 0; i < s->g->out.n && !o->only_tensors; i++) {
        int64_t     at = fb_int_at(s->g->out, FB_I32, i);
        const Expr *v = output_of(s, at, loc);

        if (!v || !result_add(im->c, r, tflite_port_name(im->c, im->model, at, true), v, loc))
            return false;
    }
    all = all_tensors(s);
    return tflite_states_end(im, loc, o->only_tensors ? &all : r) &&
           results_ask(im->c, r, o, &all, loc);
}

static const Module *import_main(TfliteImport *im, const ImportOptions *o)
{
    Ctx        *c = im->c;
    Loc         loc = {.file = im->path};
    TfliteScope s = scope_new(im, im->model->main, 0);
    NamedValues params = {0}, r = {0};
    uint32_t    before = diag_errors(c->diags);

    if (!import_inputs(im, &s, o, loc, &params) || !import_operators(&s, true) ||
        !import_outputs(im, &s, o, loc, &r) || diag_errors(c->diags) != before ||
        !shapes_check_dims(&im->shapes, loc))
        return NULL;
    return build_module(c, im->path, &params, &r, im->binds.n, im->binds.at, &im->functions);
}

const Module *tflite_import(Ctx *c, const char *path, Bytes file, const ImportOptions *o,
                            ImportFiles *files)
{
    TfliteModel  m;
    TfliteImport im = {.c = c, .path = path, .model = &m, .sizes = map_new(c->arena)};

    (void)files; /* all is in this one */
    if (!tflite_read(c, (Loc){.file = path}, file, o->signature, &m) || !tflite_survey(&im))
        return NULL;
    for (uint32_t i = 0; i < m.graphs.n; i++)
        tflite_find_lists(&im, m.graphs.at[i]);
    return import_main(&im, o);
}
