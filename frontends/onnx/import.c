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

static bool scope_put(OnnxScope *s, const char *name, const Expr *value)
{
    name = intern(s->im->c->strings, name);
    if (map_get(s->values, PTR_KEY(name)))
        return false;
    map_put(s->values, PTR_KEY(name), (void *)value);
    return true;
}

static const Expr *scope_get(const OnnxScope *s, const char *name)
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

        if (!*name || (n->in[i] = scope_get(n->scope, name)))
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

/* Dimensions as numbers, as Shape and Size make them. */
static bool is_sizes(const Expr *v)
{
    return call_is(call_is(v, "reshape") ? call_arg(v, 0) : v, "dim_values");
}

/* What is computed from sizes and constants: sizes, too, if their forms are known.  Floats on the
 * way stay calls. */
static const Expr *fold_sizes(Node *n, const Expr *v)
{
    bool        sizes = false, closed = true;
    const Expr *folded;

    for (uint32_t i = 0; i < n->nin; i++) {
        bool size = n->in[i] && map_get(n->im->sizes, PTR_KEY(n->in[i]));

        sizes |= size;
        closed &= size || !n->in[i] || n->in[i]->kind == EXPR_CONST;
    }
    if (!expr_is_tensor(v) || v->kind == EXPR_CONST || (!(sizes && closed) && !is_sizes(v)))
        return v;
    if ((folded = build_fold_forms(&n->b, v)))
        v = folded;
    if (v->kind != EXPR_CONST)
        map_put(n->im->sizes, PTR_KEY(v), (void *)(uintptr_t)v);
    return v;
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
            !rounds_between(n->b.c, v) && (folded = build_fold(&n->b, v)))
            v = folded;
        v = fold_sizes(n, v);
        if (!scope_put(s, name, v))
            return node_error(n, E_IMPORT, "its output '%s' is computed twice", name);
        check_declared(n, s, name, v->type);
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
        if (node_has(n, i) && !scope_put(&s, f->input.at[i], n->in[i]))
            return node_error(n, E_IMPORT, "function parameter '%s' is there twice",
                              f->input.at[i]);
    if (!import_nodes(&s, &f->node, false))
        return false;
    for (uint32_t i = 0; i < n->nout && i < f->output.n; i++)
        n->out[i] = scope_get(&s, f->output.at[i]);
    return true;
}

static bool convert(Node *n)
{
    const char         *domain = onnx_domain(n->p->domain), *op = onnx_op(n->p);
    const OnnxFunction *f = onnx_function_of(n->im, domain, op);
    const OnnxRow      *row, *other;
    const OnnxSchema   *schema;

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
    return row->convert(n) && node_check_read(n, schema);
}

static bool import_nodes(OnnxScope *s, const PbMsgs *nodes, bool top)
{
    Import *im = s->im;
    Ctx    *c = im->c;

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

        /* Strings serve only operators that are not supported; leave them out. */
        if (t->data_type == ONNX_STRING)
            continue;
        if (!(v = onnx_constant(s->im, t, loc)))
            return false;
        if (!scope_put(s, onnx_text(t->name), v))
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

        if (!scope_put(&s, onnx_text(v->name), inputs[i]))
            return node_error(n, E_IMPORT, "input '%s' of its graph is there twice",
                              onnx_text(v->name));
    }
    if (!import_constants(&s, g, n->b.loc) || !import_nodes(&s, &g->node, false))
        return false;
    for (uint32_t i = 0; i < g->output.n; i++) {
        const OnnxValue *v = g->output.at[i];

        if (!(out[i] = scope_get(&s, onnx_text(v->name))))
            return node_error(n, E_IMPORT, "output '%s' of its graph is not computed",
                              onnx_text(v->name));
    }
    return true;
}

/* The dimensions of an input as the model has them; UINT32_MAX: it does not say how many. */
static uint32_t input_dims(Import *im, const OnnxValue *v, InputDim dims[MAX_RANK])
{
    const OnnxTensorType *t = v->type ? v->type->tensor : NULL;

    for (uint32_t i = 0; t && t->shape && i < t->shape->dims.n && i < MAX_RANK; i++) {
        const OnnxDim *d = t->shape->dims.at[i];
        bool           named = !d->has_value && d->param && *d->param;

        dims[i].value = d->has_value && d->value >= 0 ? d->value : -1;
        dims[i].name = named ? intern(im->c->strings, d->param) : NULL;
    }
    return t && t->shape ? t->shape->dims.n : UINT32_MAX;
}

/* One input of the model as a parameter of main. */
static const Expr *import_input(Import *im, Shapes *shapes, const OnnxValue *v, Loc loc)
{
    Ctx            *c = im->c;
    OnnxTensorType *t = v->type ? v->type->tensor : NULL;
    InputDim        dims[MAX_RANK];
    const Type     *type;
    DType           dtype;

    if (!t)
        return error_at(c,
                        v->type && (v->type->sequence || v->type->map || v->type->optional)
                            ? E_UNSUPPORTED
                            : E_IMPORT,
                        loc, "input '%s' is no tensor", v->name);
    if (!onnx_dtype(t->elem_type, &dtype))
        return error_at(c, E_UNSUPPORTED, loc,
                        "input '%s' has element type %s, which is not supported", v->name,
                        onnx_dtype_text(t->elem_type));
    type = shapes_input(shapes, loc, v->name, dtype, input_dims(im, v, dims), dims);
    return type ? expr_var(c, v->name, type, loc) : NULL;
}

/* An array that the user gave for an input; it has to fit what the model says. */
static const Expr *import_array(Import *im, const OnnxValue *v, const ImportValue *value, Loc loc)
{
    OnnxTensorType *t = v->type ? v->type->tensor : NULL;
    const Type     *given = value->value->type;
    DType           dtype;
    bool            fits = t && given->n <= MAX_RANK && onnx_dtype(t->elem_type, &dtype) &&
                dtype_eq(dtype, given->dtype) && (!t->shape || t->shape->dims.n == given->n);

    for (uint32_t k = 0; fits && t->shape && k < given->n; k++) {
        const OnnxDim *d = t->shape->dims.at[k];
        int64_t        have;

        fits = type_dim(given, k, &have) && (!d->has_value || d->value < 0 || d->value == have);
    }
    if (!fits)
        return error_at(im->c, E_DIM, loc,
                        "the value given for input '%s' is %s, which does not fit", v->name,
                        type_text(im->c, given));
    return expr_const(im->c, value->value, loc);
}

/* May --dim NAME be of a dimension that nodes make?  By its place in a tensor, or as the model
 * calls it. */
static bool is_made(Import *im, const OnnxScope *s, const OnnxGraph *g, const char *name)
{
    const char *dot = strrchr(name, '.');
    const char *tensor = dot ? intern_n(im->c->strings, name, (size_t)(dot - name)) : NULL;

    for (uint32_t i = 0; i < g->node.n; i++) {
        const OnnxNode *p = g->node.at[i];

        for (uint32_t k = 0; k < p->output.n; k++) {
            const char           *made = intern(im->c->strings, p->output.at[k]);
            const OnnxTensorType *t = map_get(s->declared, PTR_KEY(made));

            if (made == tensor)
                return true;
            for (uint32_t d = 0; t && t->shape && d < t->shape->dims.n; d++) {
                const OnnxDim *dim = t->shape->dims.at[d];

                if (dim->param && !strcmp(dim->param, name))
                    return true;
            }
        }
    }
    return false;
}

/* What is to be given for the inputs is said of all of them at once. */
static bool import_inputs(Import *im, OnnxScope *s, const OnnxGraph *g, const ImportOptions *o,
                          Loc loc, const Expr **params, uint32_t *nparams)
{
    Ctx         *c = im->c;
    const char **names = NEW_ARRAY(c->arena, const char *, g->input.n + 1);
    Shapes      *shapes = NEW(c->arena, Shapes);
    const Expr  *had;
    InputDim     dims[MAX_RANK];

    const ImportValue *value;
    uint32_t           n = 0, nnames = 0;

    *shapes = shapes_new(c, o);
    im->shapes = shapes;
    for (uint32_t i = 0; i < g->input.n; i++) {
        OnnxValue *v = g->input.at[i];
        uint32_t   ndim = input_dims(im, v, dims);

        v->name = intern(c->strings, onnx_text(v->name));
        shapes_see(shapes, v->name, ndim, dims);
    }
    for (uint32_t i = 0; i < g->input.n; i++) {
        OnnxValue *v = g->input.at[i];

        if ((had = map_get(s->values, PTR_KEY(v->name)))) {
            if (had->kind == EXPR_VAR)
                return error_at(c, E_IMPORT, loc, "input '%s' is there twice", v->name);
            /* A constant that is listed as an input too, as before IR version 4. */
            onnx_check_declared(im, loc, arena_printf(c->arena, "constant '%s'", v->name),
                                v->type ? v->type->tensor : NULL, had->type);
            continue;
        }
        value = value_given(o, v->name);
        if (value && value->value) {
            if (!(had = import_array(im, v, value, loc)))
                return false;
            scope_put(s, v->name, had);
            continue;
        }
        names[nnames++] = v->name;
        if (!(params[n] = import_input(im, shapes, v, loc)))
            continue;
        if (!value) {
            scope_put(s, v->name, params[n++]);
            continue;
        }
        nnames--;
        if (!(had = value_expr(c, loc, value, params[n]->type)))
            return false;
        scope_put(s, v->name, had);
    }
    *nparams = n;
    im->reshaped = shapes->reshaped;
    for (uint32_t i = 0; i < n; i++)
        type_mentions(params[i]->type, onnx_note_dim, im);
    for (uint32_t i = 0; i < o->ndims; i++)
        shapes->later[i] = is_made(im, s, g, o->dims[i].name);
    return shapes_check(shapes, loc, nnames, names) && n == nnames;
}

/* A tensor anywhere in the graph: by its name, or by that of the node that computes it. */
static const Expr *find_tensor(Import *im, OnnxScope *s, const OnnxGraph *g, const char *name,
                               Loc loc)
{
    const Expr *v = scope_get(s, intern(im->c->strings, name));
    VEC(const char *) names = {0};
    const char *near;

    for (uint32_t i = 0; !v && i < g->node.n; i++) {
        const OnnxNode *p = g->node.at[i];

        if (p->name && !strcmp(p->name, name) && p->output.n)
            v = scope_get(s, intern(im->c->strings, p->output.at[0]));
        for (uint32_t k = 0; k < p->output.n; k++)
            vec_push(im->c->scratch, &names, p->output.at[k]);
    }
    if (!v) {
        error_at(im->c, E_IMPORT, loc, "the model has no tensor '%s'", name);
        if ((near = str_closest(name, names.at, names.n)))
            diag_hint(im->c->diags, "did you mean '%s'?", near);
    }
    return v;
}

/* The results that the options ask for, after those that are there. */
static bool import_tensors(Import *im, OnnxScope *s, const OnnxGraph *g, const ImportOptions *o,
                           Loc loc, uint32_t *n, const Expr **outs, const char **names)
{
    for (uint32_t i = 0; i < o->ntensors; i++) {
        bool have = false;

        for (uint32_t k = 0; k < *n; k++)
            have = have || !strcmp(names[k], o->tensors[i]);
        if (have)
            continue;
        names[*n] = intern(im->c->strings, o->tensors[i]);
        if (!(outs[*n] = find_tensor(im, s, g, o->tensors[i], loc)))
            return false;
        if (!expr_has_shape(outs[*n]))
            return error_at(im->c, E_UNSUPPORTED, loc, "'%s' is no tensor", o->tensors[i]);
        ++*n;
    }
    return true;
}

static const Module *import_graph(Import *im, const OnnxGraph *g, const ImportOptions *o)
{
    Ctx         *c = im->c;
    Loc          loc = {.file = im->path};
    OnnxScope    s = scope_new(im, NULL, onnx_declared(im, &g->value_info, &g->output));
    const Expr **params = NEW_ARRAY(c->arena, const Expr *, g->input.n + 1);
    const Expr **outs = NEW_ARRAY(c->arena, const Expr *, g->output.n + o->ntensors + 1);
    const char **names = NEW_ARRAY(c->arena, const char *, g->output.n + o->ntensors + 1);
    const Expr  *body, *func;
    Map         *seen = map_new(c->scratch);
    uint32_t     nparams, n = 0, before = diag_errors(c->diags);
    Module       like = {.file = im->path, .output_names = names};

    if (!import_constants(&s, g, loc) || !import_inputs(im, &s, g, o, loc, params, &nparams) ||
        !import_nodes(&s, &g->node, true))
        return NULL;
    if (g->output.n == 0)
        return error_at(c, E_IMPORT, loc, "the model has no outputs");
    for (; n < g->output.n && !o->only_tensors; n++) {
        const OnnxValue *v = g->output.at[n];

        names[n] = intern(c->strings, onnx_text(v->name));
        if (!(outs[n] = scope_get(&s, names[n])))
            return error_at(c, E_IMPORT, loc, "output '%s' is not computed", names[n]);
        if (!expr_has_shape(outs[n]))
            return error_at(c, E_UNSUPPORTED, loc, "output '%s' is no tensor", names[n]);
        onnx_check_declared(im, loc, arena_printf(c->arena, "output '%s'", names[n]),
                            v->type ? v->type->tensor : NULL, outs[n]->type);
        if (map_find(seen, PTR_KEY(names[n]), NULL))
            return error_at(c, E_IMPORT, loc, "output '%s' is there twice", names[n]);
        map_put(seen, PTR_KEY(names[n]), (void *)names[n]);
    }
    if (!import_tensors(im, &s, g, o, loc, &n, outs, names))
        return NULL;
    if (diag_errors(c->diags) != before)
        return NULL;
    like.noutputs = n;
    if (!shapes_check_dims(im->shapes, loc))
        return NULL;
    body = onnx_bound_around(im, 0, n == 1 ? outs[0] : expr_tuple(c, n, outs, loc));
    func = expr_func(c, nparams, params, body, (FuncData){0}, loc);
    if (!func)
        return NULL;
    vec_push(c->arena, &im->functions, ((GlobalDef){intern(c->strings, "main"), func}));
    return module_new(c, &like, im->functions.n, im->functions.at);
}

const Module *onnx_import(Ctx *c, const char *path, Bytes file, const ImportOptions *o,
                          ImportFiles *files)
{
    OnnxModel model = {0};
    Import    im = {.c = c, .path = path, .model = &model, .files = files};
    Loc       loc = {.file = path};

    if (!pb_read(c->diags, c->arena, loc, &onnx_model, file, &model))
        return NULL;
    if (!model.graph)
        return error_at(c, E_PARSE_MODEL, loc, "the file holds no ONNX graph");
    im.sizes = map_new(c->arena);
    im.dim_names = map_new(c->arena);
    im.decided = map_new(c->arena);
    im.contradicted = map_new(c->arena);
    return onnx_survey(&im) ? import_graph(&im, model.graph, o) : NULL;
}
