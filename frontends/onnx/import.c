/* A model: its graphs, one node after another.
 *
 * Values live in scopes, by name; a subgraph sees the scopes around it.  Before anything is built,
 * survey.c looks at all nodes of all graphs.  A node whose operands are constants is folded at
 * once, so shapes are numbers wherever they can be. Model-local functions are inlined. */
#include "frontends/onnx/onnx.h"

#include <string.h>

/* ---- bid -------------------------------------------------------------------------------------- */

int onnx_bid(const char *path, Bytes file)
{
    Reader r = reader(file);
    PbItem it;
    bool   graph = false, opset = false, version = false, known = file.n > 0;
    int    by_name = str_ends(path, ".onnx") ? 20 : 0;

    while (known && pb_next(&r, &it)) {
        bool number = it.number == 1 || it.number == 5;

        known = it.number <= 8 || it.number == 14 || it.number == 20 || it.number == 25 ||
                it.number == 26;
        known &= it.wire == (number ? PB_WIRE_VARINT : PB_WIRE_LEN);
        graph |= it.number == 7;
        opset |= it.number == 8;
        version |= it.number == 1;
    }
    if (!known || r.bad || !graph)
        return by_name;
    return (opset || version ? 70 : 40) + by_name;
}

/* ---- scopes ----------------------------------------------------------------------------------- */

bool onnx_scope_put(OnnxScope *s, const char *name, const Expr *value)
{
    name = intern(s->im->c->strings, name);
    if (map_get(s->values, PTR_KEY(name)))
        return false;
    map_put(s->values, PTR_KEY(name), (void *)value);
    return true;
}

const Expr *onnx_scope_get(const OnnxScope *s, const char *name)
{
    name = intern(s->im->c->strings, name);
    for (; s; s = s->up) {
        const Expr *v = map_get(s->values, PTR_KEY(name));

        if (v)
            return v;
    }
    return NULL;
}

static OnnxScope scope_new(Import *im, const OnnxScope *up, Map *declared)
{
    OnnxScope s = {.im = im, .up = up, .values = map_new(im->c->arena), .declared = declared};

    s.depth = up ? up->depth + 1 : 0;
    s.function = up ? up->function : NULL;
    s.body = up ? up->body : NULL;
    return s;
}

/* ---- nodes ------------------------------------------------------------------------------------ */

/* What stands for a function's attribute stands for nothing outside a function. */
static bool check_attributes(Node *n)
{
    for (uint32_t i = 0; i < n->p->attribute.n && !n->scope->function; i++) {
        const OnnxAttr *a = n->p->attribute.at[i];

        if (a->ref && *a->ref)
            return node_error(n, E_IMPORT,
                              "attribute '%s' is to be '%s' of a function, but the node is in none",
                              onnx_text(a->name), a->ref);
    }
    return true;
}

static bool import_nodes(OnnxScope *s, const PbMsgs *nodes, bool top);

/* Is `name` an output of some node of the list? */
static const OnnxNode *producer_of(const PbMsgs *nodes, const char *name)
{
    for (uint32_t i = 0; i < nodes->n; i++) {
        const OnnxNode *p = nodes->at[i];

        for (uint32_t k = 0; k < p->output.n; k++)
            if (!strcmp(p->output.at[k], name))
                return p;
    }
    return NULL;
}

static bool find_inputs(Node *n, const PbMsgs *nodes)
{
    n->nin = n->p->input.n;
    n->in = NEW_ARRAY(n->b.c->arena, const Expr *, n->nin + 1);
    for (uint32_t i = 0; i < n->nin; i++) {
        const char     *name = n->p->input.at[i];
        const OnnxNode *by;

        if (!*name || (n->in[i] = onnx_scope_get(n->scope, name)))
            continue;
        node_error(n, E_IMPORT, "its input '%s' is not computed before it", name);
        if ((by = producer_of(nodes, name)))
            diag_hint(n->b.c->diags,
                      "'%s' is an output of %s '%s': the nodes are not in order, or "
                      "form a cycle",
                      name, onnx_op(by), onnx_node_name(by));
        return false;
    }
    while (n->nin && !n->in[n->nin - 1])
        n->nin--; /* trailing inputs that are left out */
    return true;
}

static bool check_value(Node *n, uint32_t i)
{
    const Expr *v = n->out[i];
    int64_t     elems;

    if (!v->type)
        return node_error(n, E_IMPORT, "the type of output %u is not known", i);
    if (v->type->kind != TYPE_TENSOR)
        return true;
    if (v->type->n > MAX_RANK)
        return node_error(n, E_UNSUPPORTED, "output %u has %u dimensions, more than %d", i,
                          v->type->n, MAX_RANK);
    if (arith_overflow(n->b.c->arith) || !type_elems_most(v->type, &elems) || elems > MAX_ELEMS)
        return node_error(n, E_DIM, "output %u is too large", i);
    for (uint32_t k = 0; k < v->type->n; k++)
        if (expr_form(v, k)->lo < 0)
            return node_error(n, E_DIM, "dimension %u of output %u is below 0", k, i);
    return true;
}

static void check_declared(const Node *n, const OnnxScope *s, const char *name, const Type *is)
{
    Ctx                  *c = n->b.c;
    const OnnxTensorType *t = map_get(s->declared, PTR_KEY(intern(c->strings, name)));

    if (t)
        onnx_check_declared(
            n->im, n->b.loc,
            arena_printf(c->arena, "%s '%s': its output '%s'", onnx_op(n->p), n->b.loc.name, name),
            t, is);
}

static bool is_half(const Expr *e)
{
    return expr_has_shape(e) && dtype_is_float(expr_dtype(e)) && expr_dtype(e).bits < 32;
}

/* Would v, folded now, be rounded to 16 bits on the way?  Passes compute halves in f32 and round
 * once, so what sums or takes several steps is left to them. */
static bool rounds_between(Ctx *c, const Expr *v)
{
    ExprList list = expr_post_order(c, v);
    uint32_t steps = 0;

    for (uint32_t i = 0; i < list.n; i++) {
        const Expr *e = list.at[i];
        const Op   *op = call_op(e);
        bool        half = false;

        if (!op || op->fusion == FUSE_INJECTIVE || call_is(e, "cast"))
            continue;
        for (uint32_t k = 0; k < call_nargs(e); k++)
            half |= is_half(call_arg(e, k));
        if (half && (++steps > 1 || (op->fusion != FUSE_ELEMWISE && op->fusion != FUSE_BROADCAST)))
            return true;
    }
    return false;
}

typedef struct {
    const Expr *of, *value; /* NULL: it cannot be folded */
} Folded;

/* Many nodes may compute the same of the same constants, such as a transposed weight for each of
 * its uses: they have one constant. */
static const Expr *fold_once(Node *n, const Expr *v)
{
    Import  *im = n->im;
    uint64_t hash = expr_hash(n->b.c, v, im->hashes);
    Folded  *f = map_get(im->folds, hash);

    if (f && expr_same(n->b.c, f->of, v))
        return f->value;
    f = NEW(n->b.c->arena, Folded);
    *f = (Folded){v, build_fold(&n->b, v)};
    map_put(im->folds, hash, f);
    return f->value;
}

static bool store_outputs(Node *n, OnnxScope *s)
{
    bool closed = true;

    for (uint32_t i = 0; i < n->nin; i++)
        closed &= !n->in[i] || n->in[i]->kind == EXPR_CONST;
    for (uint32_t i = 0; i < n->nout; i++) {
        const char *name = n->p->output.at[i];
        const Expr *v = n->out[i], *folded;

        if (!*name)
            continue;
        if (!v)
            return node_error(n, E_UNSUPPORTED, "its output %u ('%s') is not supported", i, name);
        if (!check_value(n, i))
            return false;
        /* quantized_to_integer wants to see the integers. */
        if (closed && v->kind != EXPR_CONST && !call_is(v, "qnn.dequantize") &&
            !rounds_between(n->b.c, v) && (folded = fold_once(n, v)))
            v = onnx_is_string(n->im, v) ? onnx_string(n->im, folded) : folded;
        v = build_fold_sizes(&n->b, n->im->sizes, n->nin, n->in, v);
        if (!onnx_scope_put(s, name, v))
            return node_error(n, E_IMPORT, "its output '%s' is computed twice", name);
        check_declared(n, s, name, onnx_value_type(n->im, v));
    }
    return true;
}

/* The body of a model-local function in the place of its call. */
static bool inline_function(Node *n, const OnnxFunction *f)
{
    OnnxScope s = scope_new(n->im, NULL, onnx_declared(n->im, &f->value_info, NULL));

    s.depth = n->scope->depth + 1;
    s.function = n;
    s.body = f;
    if (s.depth > ONNX_MAX_NESTING)
        return node_error(n, E_UNSUPPORTED, "functions are nested more than %d deep",
                          ONNX_MAX_NESTING);
    for (uint32_t i = 0; i < f->input.n; i++)
        if (node_has(n, i) && !onnx_scope_put(&s, f->input.at[i], n->in[i]))
            return node_error(n, E_IMPORT, "function parameter '%s' is there twice",
                              f->input.at[i]);
    if (!import_nodes(&s, &f->node, false))
        return false;
    for (uint32_t i = 0; i < n->nout && i < f->output.n; i++)
        n->out[i] = onnx_scope_get(&s, f->output.at[i]);
    return true;
}

static bool convert(Node *n)
{
    const char         *domain = onnx_domain(n->p->domain), *op = onnx_op(n->p);
    const OnnxFunction *f = onnx_function_of(n->im, domain, op);
    const OnnxRow      *row, *other;
    const OnnxSchema   *schema;
    bool                ranks;

    if (f)
        return inline_function(n, f);
    n->opset = onnx_opset_of(n->im, n->scope->body, domain);
    row = onnx_row(domain, op, n->opset, &other);
    if (!row)
        return node_error(n, E_UNSUPPORTED_OP, "the operator is not supported");
    schema = onnx_schema(domain, op, n->opset);
    if (n->im->surplus) { /* and only warned of */
        uint32_t most = onnx_count_inputs(schema);

        n->nin = n->nin < most ? n->nin : most;
    }
    n->relay = row->relay;
    node_ignore(n, "consumed_inputs"); /* of the first opsets, about memory */
    if (!node_ranks(n, row->relay, &ranks) ||
        !(onnx_takes_strings(n) ? onnx_convert_strings(n, row) : row->convert(n)) ||
        !node_check_read(n, schema))
        return false;
    for (uint32_t i = 0; ranks && i < n->nout; i++)
        onnx_note_ranks(n->im, n->out[i]);
    return true;
}

static bool import_nodes(OnnxScope *s, const PbMsgs *nodes, bool top)
{
    Import *im = s->im;
    Ctx    *c = im->c;

    s->nodes = s->nodes ? s->nodes : nodes;
    for (uint32_t i = 0; i < nodes->n; i++) {
        const OnnxNode *p = nodes->at[i];
        uint32_t        before = diag_errors(c->diags);
        Node n = {.b.c = c, .im = im, .scope = s, .p = p, .nout = p->output.n, .errors = before};

        if (top)
            im->ordinal = i + 1;
        n.b.what = onnx_op(p);
        n.b.loc = (Loc){im->path, im->ordinal, 0, intern(c->strings, onnx_node_name(p))};
        n.out = NEW_ARRAY(c->arena, const Expr *, n.nout < 4 ? 4 : n.nout);
        n.read = NEW_ARRAY(c->arena, bool, p->attribute.n + 1);
        if (++im->converted > ONNX_MAX_NODES)
            return node_error(&n, E_UNSUPPORTED, "the model unrolls to more than %d nodes",
                              ONNX_MAX_NODES);
        if (!find_inputs(&n, nodes) || !check_attributes(&n))
            return false;
        if (!convert(&n) || diag_errors(c->diags) != before || !store_outputs(&n, s)) {
            diag_drop(c->diags, before + 1); /* what follows from the first */
            if (diag_errors(c->diags) == before)
                BUG("%s '%s' failed to import without an error", onnx_op(p), n.b.loc.name);
            return false;
        }
    }
    return true;
}

/* ---- graphs ----------------------------------------------------------------------------------- */

static bool import_constants(OnnxScope *s, const OnnxGraph *g, Loc loc)
{
    if (g->sparse.n)
        return error_at(s->im->c, E_UNSUPPORTED, loc, "sparse constants are not supported");
    for (uint32_t i = 0; i < g->initializer.n; i++) {
        const OnnxTensor *t = g->initializer.at[i];
        const Expr       *v;

        if (!(v = onnx_constant(s->im, t, loc)))
            return false;
        if (!onnx_scope_put(s, onnx_text(t->name), v))
            return error_at(s->im->c, E_IMPORT, loc, "constant '%s' is there twice",
                            onnx_text(t->name));
    }
    return true;
}

bool onnx_subgraph(Node *n, const OnnxGraph *g, uint32_t ninputs, const Expr *const *inputs,
                   const Expr **out)
{
    OnnxScope s = scope_new(n->im, n->scope, onnx_declared(n->im, &g->value_info, &g->output));

    if (s.depth > ONNX_MAX_NESTING)
        return node_error(n, E_UNSUPPORTED, "graphs are nested more than %d deep",
                          ONNX_MAX_NESTING);
    if (ninputs != g->input.n)
        return node_error(n, E_IMPORT, "its graph has %u inputs, not %u", g->input.n, ninputs);
    for (uint32_t i = 0; i < ninputs; i++) {
        const OnnxValue *v = g->input.at[i];

        if (!onnx_scope_put(&s, onnx_text(v->name), inputs[i]))
            return node_error(n, E_IMPORT, "input '%s' of its graph is there twice",
                              onnx_text(v->name));
    }
    if (!import_constants(&s, g, n->b.loc) || !import_nodes(&s, &g->node, false))
        return false;
    for (uint32_t i = 0; i < g->output.n; i++) {
        const OnnxValue *v = g->output.at[i];

        if (!(out[i] = onnx_scope_get(&s, onnx_text(v->name))))
            return node_error(n, E_IMPORT, "output '%s' of its graph is not computed",
                              onnx_text(v->name));
        if (onnx_has_ranks(n->im, out[i]) && strcmp(onnx_op(n->p), "If"))
            return node_error(n, E_UNSUPPORTED,
                              "the run decides how many dimensions output '%s' of its graph has",
                              onnx_text(v->name));
    }
    return true;
}

bool onnx_again(Node *n, const PbMsgs *nodes, uint32_t count, const char *const *names,
                const Expr *const *values, const char *name, const Expr **out)
{
    OnnxScope s = scope_new(n->im, n->scope, map_new(n->b.c->arena));

    /* Each order of derivatives doubles what is computed. */
    s.depth = n->scope->depth + 3;
    if (s.depth > ONNX_MAX_NESTING)
        return node_error(n, E_UNSUPPORTED, "gradients of gradients are more than %d deep",
                          ONNX_MAX_NESTING / 3);
    s.nodes = n->scope->nodes; /* a Gradient among them looks for its own */
    for (uint32_t i = 0; i < count; i++)
        onnx_scope_put(&s, names[i], values[i]);
    if (!import_nodes(&s, nodes, false))
        return false;
    *out = onnx_scope_get(&s, name);
    return true;
}

/* A tensor anywhere in the graph: by its name, or by that of the node that computes it. */
static const Expr *find_tensor(Import *im, OnnxScope *s, const OnnxGraph *g, const char *name,
                               Loc loc)
{
    const Expr *v = onnx_scope_get(s, intern(im->c->strings, name));
    VEC(const char *) names = {0};

    for (uint32_t i = 0; !v && i < g->node.n; i++) {
        const OnnxNode *p = g->node.at[i];

        if (p->name && !strcmp(p->name, name) && p->output.n)
            v = onnx_scope_get(s, intern(im->c->strings, p->output.at[0]));
        for (uint32_t k = 0; k < p->output.n; k++)
            vec_push(im->c->scratch, &names, p->output.at[k]);
    }
    return v ? v : no_tensor(im->c, loc, name, names.n, names.at);
}

/* The results that the options ask for, after those that are there. */
static bool import_tensors(Import *im, OnnxScope *s, const OnnxGraph *g, const ImportOptions *o,
                           Loc loc, NamedValues *r)
{
    Ctx *c = im->c;

    for (uint32_t i = 0; i < o->ntensors; i++) {
        const Expr *v;
        bool        have = false;

        for (uint32_t k = 0; k < r->names.n; k++)
            have = have || !strcmp(r->names.at[k], o->tensors[i]);
        if (have)
            continue;
        if (!(v = find_tensor(im, s, g, o->tensors[i], loc)))
            return false;
        if (!expr_has_shape(v))
            return error_at(c, E_UNSUPPORTED, loc, "'%s' is no tensor", o->tensors[i]);
        vec_push(c->arena, &r->names, intern(c->strings, o->tensors[i]));
        vec_push(c->arena, &r->at, v);
    }
    return true;
}

/* The results of main, in the order of the model's outputs. */
static bool import_outputs(Import *im, OnnxScope *s, const OnnxGraph *g, const ImportOptions *o,
                           Loc loc, NamedValues *r)
{
    Ctx *c = im->c;
    Map *seen = map_new(c->scratch);

    if (g->output.n == 0)
        return error_at(c, E_IMPORT, loc, "the model has no outputs");
    for (uint32_t i = 0; i < g->output.n && !o->only_tensors; i++) {
        const OnnxValue *v = g->output.at[i];
        const Expr      *value = onnx_scope_get(s, onnx_text(v->name));

        if (!value)
            return error_at(c, E_IMPORT, loc, "output '%s' is not computed", onnx_text(v->name));
        if (!onnx_result(im, s, r, loc, v, value))
            return false;
    }
    if (!import_tensors(im, s, g, o, loc, r))
        return false;
    for (uint32_t i = 0; i < r->at.n; i++)
        if (onnx_has_ranks(im, r->at.at[i]))
            return error_at(c, E_UNSUPPORTED, loc,
                            "the run decides how many dimensions output '%s' has, at most %u",
                            r->names.at[i], expr_rank(r->at.at[i]));
    for (uint32_t i = 0; i < r->names.n; i++) {
        if (map_get(seen, PTR_KEY(r->names.at[i])))
            return error_at(c, E_IMPORT, loc, "output '%s' is there twice", r->names.at[i]);
        map_put(seen, PTR_KEY(r->names.at[i]), seen);
    }
    return r->at.n > 0 || error_at(c, E_UNSUPPORTED, loc, "the outputs are empty sequences");
}

static const Module *import_graph(Import *im, const OnnxGraph *g, const ImportOptions *o)
{
    Ctx        *c = im->c;
    Loc         loc = {.file = im->path};
    OnnxScope   s = scope_new(im, NULL, onnx_declared(im, &g->value_info, &g->output));
    NamedValues params = {0}, r = {0};
    const Expr *body, *func;
    uint32_t    before = diag_errors(c->diags);

    if (!import_constants(&s, g, loc) || !onnx_inputs(im, &s, g, o, loc, &params) ||
        !import_nodes(&s, &g->node, true) || !import_outputs(im, &s, g, o, loc, &r) ||
        diag_errors(c->diags) != before || !shapes_check_dims(im->shapes, loc))
        return NULL;
    body = r.at.n == 1 ? r.at.at[0] : expr_tuple(c, r.at.n, r.at.at, loc);
    func =
        expr_func(c, params.at.n, params.at.at, onnx_bound_around(im, 0, body), (FuncData){0}, loc);
    if (!func)
        return NULL;
    vec_push(c->arena, &im->functions, ((GlobalDef){intern(c->strings, "main"), func}));
    Module like = {.file = im->path, .output_names = r.names.at, .noutputs = r.names.n};
    return module_new(c, &like, im->functions.n, im->functions.at);
}

/* Of protobuf no message is larger than 2 GiB. */
bool onnx_read(Ctx *c, const char *path, Bytes file, OnnxModel *out)
{
    Loc loc = {.file = path};

    *out = (OnnxModel){0};
    if (file.n > INT32_MAX) {
        error_at(c, E_PARSE_MODEL, loc,
                 "the file has %zu bytes, but as protobuf a model has less than 2 GiB", file.n);
        diag_hint(c->diags, "weights go into files beside it: onnx.save(model, path, "
                            "save_as_external_data=True)");
        return false;
    }
    if (!pb_read(c->diags, c->arena, loc, &onnx_model, file, out))
        return false;
    return out->graph || error_at(c, E_PARSE_MODEL, loc, "the file holds no ONNX graph");
}

const Module *onnx_import(Ctx *c, const char *path, Bytes file, const ImportOptions *o,
                          ImportFiles *files)
{
    OnnxModel model;
    Import    im = {.c = c, .path = path, .model = &model, .files = files};

    if (!onnx_read(c, path, file, &model))
        return NULL;
    im.sizes = map_new(c->arena);
    im.optionals = map_new(c->arena);
    im.lists = map_new(c->arena);
    im.strings = map_new(c->arena);
    im.dim_names = map_new(c->arena);
    im.decided = map_new(c->arena);
    im.guessed = map_new(c->arena);
    im.hashes = map_new(c->arena);
    im.contradicted = map_new(c->arena);
    im.ranks = map_new(c->arena);
    im.mapped = map_new(c->arena);
    im.folds = map_new(c->arena);
    im.cells = map_new(c->arena);
    return onnx_survey(&im) ? import_graph(&im, model.graph, o) : NULL;
}
