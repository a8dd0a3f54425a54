/* The signature, and one node after another. */
#include "frontends/pytorch/pytorch.h"
#include "frontends/pytorch/script.h"

#include <string.h>

int pytorch_bid(const char *path, Bytes file)
{
    return (pt_is_archive(file) || ts_is_archive(file) ? 75 : 0) +
           (str_ends(path, ".pt2") || str_ends(path, ".pt") ? 20 : 0);
}

/* ---- values ------------------------------------------------------------------------------------------- */

PtValue *pt_value(PtImport *im, const char *name)
{
    return map_get(im->values, PTR_KEY(name));
}

PtValue *pt_value_of(PtImport *im, const PtArg *a)
{
    return a->value ? a->value : pt_value(im, a->text);
}

static void put_value(PtImport *im, const char *name, PtValue v)
{
    map_put(im->values, PTR_KEY(name), DUP_ARRAY(im->c->arena, &v, 1));
}

/* ---- nodes -------------------------------------------------------------------------------------------- */

PtNode pt_node(PtImport *im, const PtOp *p)
{
    PtNode n = {.im = im, .p = p, .nout = p->nout, .relay = p->row->relay};

    n.b.c = im->c;
    n.b.what = p->target;
    n.b.loc = (Loc){im->path, p->ordinal, 0, intern(im->c->strings, p->name)};
    n.out = NEW_ARRAY(im->c->arena, PtValue, p->nout + 1);
    n.read = NEW_ARRAY(im->c->arena, bool, p->nin + 1);
    n.errors = diag_errors(im->c->diags);
    return n;
}

static bool check_read(const PtNode *n)
{
    for (uint32_t i = 0; i < n->p->nin; i++) {
        bool ignored;

        if (!n->read[i] && n->p->in[i].kind != PT_NONE &&
            !(pt_row_has(n->p->row, n->p->names[i], &ignored) && ignored))
            return pt_error(n, E_UNSUPPORTED, "argument '%s' is not supported", n->p->names[i]);
    }
    return true;
}

bool pt_convert(PtNode *n)
{
    Ctx *c = n->b.c;

    if ((pt_has_cells(n) ? pt_convert_cells(n) : n->p->row->convert(n)) &&
        diag_errors(c->diags) == n->errors && check_read(n))
        return true;
    diag_drop(c->diags, n->errors + 1); /* what follows from the first */
    if (diag_errors(c->diags) == n->errors)
        BUG("%s '%s' failed to import without an error", n->p->target, n->p->name);
    return false;
}

/* A tensor against what the program says of it. */
static bool check_tensor(PtNode *n, const char *name, const Expr *e)
{
    const PtMeta *m = map_get(n->im->metas, PTR_KEY(name));
    int64_t       elems, v;

    if (!expr_has_shape(e))
        return pt_error(n, E_UNSUPPORTED, "its output '%s' is no tensor", name);
    if (e->type->n > MAX_RANK)
        return pt_error(n, E_UNSUPPORTED, "output '%s' has %u dimensions, more than %d", name,
                        e->type->n, MAX_RANK);
    if (arith_overflow(n->b.c->arith) || !type_elems_most(e->type, &elems) || elems > MAX_ELEMS)
        return pt_error(n, E_DIM, "output '%s' is too large", name);
    for (uint32_t i = 0; i < e->type->n; i++)
        if (expr_form(e, i)->lo < 0)
            return pt_error(n, E_DIM, "dimension %u of output '%s' is below 0", i, name);
    if (!m || !m->known)
        return true;
    if (!dtype_eq(m->dtype, e->type->dtype) || m->ndim != e->type->n)
        return pt_error(n, E_IMPORT, "output '%s' is %s, but the program says %u dimensions of %s",
                        name, type_text(n->b.c, e->type), m->ndim, dtype_text(n->b.c, m->dtype));
    for (uint32_t i = 0; i < m->ndim && !n->im->shapes.reshaped; i++)
        if (m->dims[i].value >= 0 && type_dim(e->type, i, &v) && v != m->dims[i].value)
            return pt_error(n, E_IMPORT, "output '%s' is %s, but dimension %u should be %lld", name,
                            type_text(n->b.c, e->type), i, (long long)m->dims[i].value);
    return true;
}

static bool store(PtNode *n, const PtArg *to, PtValue v);

static bool store_list(PtNode *n, const PtArg *to, PtValue v)
{
    if (!v.list || v.n != to->n)
        return pt_error(n, E_IMPORT, "it gives %u tensors, not %u", v.list ? v.n : 1, to->n);
    for (uint32_t i = 0; i < to->n; i++)
        if (!store(n, &to->at[i], v.at[i]))
            return false;
    return true;
}

static bool store(PtNode *n, const PtArg *to, PtValue v)
{
    if (to->kind == PT_NONE)
        return true;
    if (to->kind == PT_LIST)
        return store_list(n, to, v);
    if ((to->kind != PT_TENSOR && to->kind != PT_SYMBOL) || !*to->text)
        return pt_error(n, E_UNSUPPORTED, "an output of the kind %s",
                        to->kind == PT_OTHER ? to->text : "that it has");
    if (pt_value(n->im, to->text))
        return pt_error(n, E_IMPORT, "its output '%s' is computed twice", to->text);
    if (!v.t && !v.form && !v.e && !v.list) { /* whoever reads it finds nothing */
        put_value(n->im, to->text, v);
        return true;
    }
    if ((to->kind == PT_TENSOR) != (v.t != NULL))
        return pt_error(n, E_IMPORT, "its output '%s' is %s", to->text,
                        v.t ? "a tensor" : "no tensor");
    if (v.t && !check_tensor(n, to->text, v.t->e))
        return false;
    put_value(n->im, to->text, v);
    return true;
}

/* The result becomes its first argument, with whose name it is the same tensor. */
static bool in_place(PtNode *n)
{
    const PtValue *v =
        n->p->nin && n->p->in[0].kind == PT_TENSOR ? pt_value_of(n->im, &n->p->in[0]) : NULL;
    const Expr *was, *e;

    if (!v || !v->t || !n->out[0].t || v->t->cells != n->out[0].t->cells ||
        v->t->scale != n->out[0].t->scale)
        return pt_error(n, E_UNSUPPORTED, "it changes something else than a tensor of its kind");
    if (!(was = pt_read(n, v->t)))
        return false;
    e = build_cast(&n->b, n->out[0].t->e, expr_dtype(was));
    if (e && !expr_has_forms(e, expr_rank(was), expr_forms(was).at) &&
        (v->t->base || n->p->row->convert != aten_resize))
        return pt_error(n, E_IMPORT, "it makes %s of %s", type_text(n->b.c, e->type),
                        type_text(n->b.c, was->type));
    n->out[0] = *v;
    return e && pt_write(n, v->t, e);
}

/* What the node does, but for its results. */
static bool run(PtNode *n)
{
    if (!pt_convert(n))
        return false;
    if (n->p->in_place)
        return in_place(n);
    pt_note_views(n);
    return true;
}

static bool check_value(PtNode *n, const PtValue *v)
{
    for (uint32_t i = 0; i < v->n; i++)
        if (!check_value(n, &v->at[i]))
            return false;
    return !v->t || check_tensor(n, n->p->name, v->t->e);
}

bool pt_run(PtImport *im, const PtOp *p, PtValue *out)
{
    PtNode n = pt_node(im, p);
    bool   ok = run(&n);

    for (uint32_t i = 0; i < n.nout && ok; i++)
        ok = check_value(&n, &n.out[i]);
    memcpy(out, n.out, n.nout * sizeof *out);
    diag_drop(im->c->diags, n.errors + 1);
    return ok && diag_errors(im->c->diags) == n.errors;
}

static bool import_op(PtImport *im, const PtOp *p)
{
    PtNode   n = pt_node(im, p);
    uint32_t before = n.errors;

    if (run(&n))
        for (uint32_t i = 0; i < n.nout; i++)
            if (!store(&n, &p->out[i], n.out[i]))
                break;
    diag_drop(im->c->diags, before + 1);
    return diag_errors(im->c->diags) == before;
}

bool pt_region(PtNode *n, const PtGraph *g, uint32_t nin, PtValue *const *in, PtValue *out)
{
    PtImport *im = n->im;
    Map      *values = im->values, *metas = im->metas;
    bool      ok = g->nin == nin && im->depth < PT_MAX_NESTING;

    if (!ok)
        return pt_error(n, E_IMPORT, "its graph has %u inputs, not %u", g->nin, nin);
    im->values = map_new(im->c->arena);
    im->metas = g->metas;
    im->depth++;
    for (uint32_t i = 0; i < nin && ok; i++) {
        ok = g->in[i].kind == PT_TENSOR || pt_error(n, E_UNSUPPORTED, "an input of its graph");
        if (ok)
            map_put(im->values, PTR_KEY(g->in[i].text), in[i]);
    }
    for (uint32_t i = 0; i < g->nops && ok; i++)
        ok = import_op(im, &g->ops[i]);
    for (uint32_t i = 0; i < g->nout && ok; i++) {
        const PtValue *v = g->out[i].kind == PT_TENSOR ? pt_value(im, g->out[i].text) : NULL;

        ok = v || pt_error(n, E_UNSUPPORTED, "output %u of its graph", i);
        if (v)
            out[i] = *v;
    }
    im->depth--;
    im->values = values;
    im->metas = metas;
    return ok;
}

/* ---- inputs ------------------------------------------------------------------------------------------- */

static const PtMeta *meta_of(PtImport *im, const PtArg *a, Loc loc)
{
    const PtMeta *m =
        a->kind == PT_TENSOR ? map_get(im->program->graph.metas, PTR_KEY(a->text)) : NULL;

    if (!m && a->kind == PT_TENSOR)
        error_at(im->c, E_IMPORT, loc, "the program does not say what input '%s' is", a->text);
    else if (!m)
        error_at(im->c, E_UNSUPPORTED, loc, "an input of the program is no tensor");
    else if (!m->known)
        error_at(im->c, E_UNSUPPORTED, loc,
                 "input '%s' has element type %lld or a layout that is not supported", a->text,
                 (long long)m->dtype_number);
    else
        return m;
    return NULL;
}

/* Numbers and texts that export took for constants are in the graph. */
static bool is_literal(const PtArg *a)
{
    return a->kind != PT_TENSOR && a->kind != PT_SYMBOL && a->kind != PT_OTHER;
}

static bool put_input(PtImport *im, const char *name, const Expr *e, const PtPayload *constant,
                      Loc loc)
{
    PtValue v = pt_tensor_value(im->c, e);

    v.t->constant = constant ? constant->name : NULL;
    v.t->cells = constant && constant->complex ? PT_COMPLEX : PT_REAL;
    if (pt_value(im, name))
        return error_at(im->c, E_IMPORT, loc, "input '%s' is there twice", name);
    put_value(im, name, v);
    return true;
}

static bool take_input(PtImport *im, const PtInput *in, const ImportOptions *o, Loc loc,
                       NamedValues *params)
{
    Ctx               *c = im->c;
    const char        *name = in->arg.text;
    const PtMeta      *m = meta_of(im, &in->arg, loc);
    const ImportValue *value = m ? value_given(o, name) : NULL;
    const Type        *t;
    const Expr        *e;

    if (!m)
        return false;
    vec_push(c->arena, &params->names, name);
    if (!(t = shapes_input(&im->shapes, loc, name, m->dtype, m->ndim, m->dims)))
        return true; /* shapes_check says what is missing */
    if (!(e = value ? value_expr(c, loc, value, t) : expr_var(c, name, t, loc)))
        return false;
    if (!value)
        vec_push(c->arena, &params->at, e);
    return put_input(im, name, e, NULL, loc);
}

static bool take_parameter(PtImport *im, const PtInput *in, Map *payloads, Loc loc)
{
    const PtPayload *p = map_get(payloads, PTR_KEY(in->name));
    const Expr      *e;

    if (!p)
        return error_at(im->c, E_IMPORT, loc, "the archive has no '%s'", in->name);
    return (e = pt_constant(im->c, loc, p)) && put_input(im, in->arg.text, e, p, loc);
}

static bool take_state(PtImport *im, const PtInput *in, Map *payloads, Loc loc, NamedValues *params)
{
    const PtPayload *p = map_get(payloads, PTR_KEY(in->name));
    const Expr      *e = p ? pt_constant(im->c, loc, p) : NULL;

    if (!p)
        return error_at(im->c, E_IMPORT, loc, "the archive has no '%s'", in->name);
    if (e && p->complex)
        return error_at(im->c, E_UNSUPPORTED, loc, "the model changes '%s', which is complex",
                        in->name);
    return e && (e = state_input(im->c, &im->shapes, loc, in->name, e->type, e, params)) &&
           put_input(im, in->arg.text, e, NULL, loc);
}

/* Buffers that are changed in place, themselves or by a view, and those that the signature says. */
static void find_states(PtImport *im)
{
    const PtProgram *p = im->program;
    Map             *of = map_new(im->c->scratch);

    im->states = map_new(im->c->arena);
    for (uint32_t i = 0; i < p->inputs.n; i++)
        if (p->inputs.at[i].kind == PT_BUFFER)
            map_put(of, PTR_KEY(p->inputs.at[i].arg.text), (void *)(uintptr_t)p->inputs.at[i].name);
    for (uint32_t i = 0; i < p->graph.nops; i++) {
        const PtOp *op = &p->graph.ops[i];
        const char *name =
            op->nin && op->in[0].kind == PT_TENSOR ? map_get(of, PTR_KEY(op->in[0].text)) : NULL;

        if (name && op->in_place)
            map_put(im->states, PTR_KEY(name), (void *)(uintptr_t)name);
        if (!name || (!op->in_place && op->row->alias == PLAIN))
            continue;
        for (uint32_t k = 0; k < op->nout; k++)
            for (uint32_t d = 0; d < (op->out[k].kind == PT_LIST ? op->out[k].n : 1); d++) {
                const PtArg *to = op->out[k].kind == PT_LIST ? &op->out[k].at[d] : &op->out[k];

                if (to->kind == PT_TENSOR)
                    map_put(of, PTR_KEY(to->text), (void *)(uintptr_t)name);
            }
    }
    for (uint32_t i = 0; i < p->outputs.n; i++)
        for (uint32_t k = 0; k < p->inputs.n; k++)
            if (p->outputs.at[i].kind == PT_CHANGED && p->inputs.at[k].kind == PT_BUFFER &&
                p->inputs.at[k].name == p->outputs.at[i].name)
                map_put(im->states, PTR_KEY(p->inputs.at[k].name), im);
}

static void see_inputs(PtImport *im, Loc loc)
{
    const PtProgram *p = im->program;

    for (uint32_t i = 0; i < p->inputs.n; i++) {
        const PtArg  *a = &p->inputs.at[i].arg;
        const PtMeta *m = p->inputs.at[i].kind == PT_USER && a->kind == PT_TENSOR
                              ? map_get(p->graph.metas, PTR_KEY(a->text))
                              : NULL;

        if (m)
            shapes_see(&im->shapes, a->text, m->ndim, m->dims);
    }
    for (uint32_t i = 0; i < p->ranges.n; i++)
        shapes_bound(&im->shapes, loc, p->ranges.at[i].name, p->ranges.at[i].lo,
                     p->ranges.at[i].hi);
}

static bool import_inputs(PtImport *im, const PtArchive *archive, const ImportOptions *o, Loc loc,
                          NamedValues *params)
{
    const PtProgram *p = im->program;
    Map             *payloads = map_new(im->c->scratch);
    uint32_t         before = diag_errors(im->c->diags);
    bool             ok = true;

    for (uint32_t i = 0; i < archive->payloads.n; i++)
        map_put(payloads, PTR_KEY(archive->payloads.at[i]->name), archive->payloads.at[i]);
    see_inputs(im, loc);
    find_states(im);
    for (uint32_t i = 0; i < p->inputs.n && ok; i++) {
        const PtInput *in = &p->inputs.at[i];

        if (in->kind == PT_BUFFER && map_get(im->states, PTR_KEY(in->name)))
            ok = take_state(im, in, payloads, loc, params);
        else if (in->kind == PT_PARAMETER || in->kind == PT_BUFFER)
            ok = take_parameter(im, in, payloads, loc);
        else if (in->kind == PT_USER && !is_literal(&in->arg))
            ok = take_input(im, in, o, loc, params);
        else if (in->kind == PT_UNKNOWN)
            ok = error_at(im->c, E_UNSUPPORTED, loc, "an input of the kind '%s'", in->name);
    }
    return ok && shapes_check(&im->shapes, loc, params->names.n, params->names.at) &&
           diag_errors(im->c->diags) == before;
}

/* ---- outputs ------------------------------------------------------------------------------------------ */

/* A number that is a result, as a tensor. */
static const Expr *number_result(PtImport *im, const PtArg *a, Loc loc)
{
    Build          b = {.c = im->c, .loc = loc, .what = "output"};
    const PtValue *v;

    switch (a->kind) {
    case PT_INT: return build_const(&b, DT_I64, 0, NULL, &a->i);
    case PT_FLOAT: return build_f64(&b, a->f);
    case PT_BOOL: return build_const(&b, DT_BOOL, 0, NULL, &(uint8_t){a->i != 0});
    case PT_SYMBOL:
        if ((v = pt_value(im, a->text)) && v->e)
            return v->e;
        if (v && v->form)
            return build_values(&b, type_tensor(im->c, DT_I64, 0, NULL), (Dims){1, &v->form});
        break;
    case PT_NONE:
    case PT_TENSOR:
    case PT_STRING:
    case PT_DTYPE:
    case PT_FORMAT:
    case PT_LAYOUT:
    case PT_DEVICE:
    case PT_LIST:
    case PT_GRAPH:
    case PT_OTHER: break;
    }
    return NULL;
}

static const char *new_name(PtImport *im, const NamedValues *r, const char *name)
{
    const char *as = name;

    for (uint32_t i = 0, k = 1; i < r->names.n; i++)
        if (r->names.at[i] == as) {
            as = intern_printf(im->c->strings, "%s.%u", name, k++);
            i = UINT32_MAX; /* from the first on */
        }
    return as;
}

static bool add_result(PtImport *im, NamedValues *r, const char *name, const PtArg *a, Loc loc)
{
    PtOp           none = {.target = "output", .name = name, .row = &pt_rows[0]};
    PtNode         n = pt_node(im, &none);
    const PtValue *v = a->kind == PT_TENSOR ? pt_value(im, a->text) : NULL;
    const Expr    *e = v && v->t ? pt_real(&n, v->t) : number_result(im, a, loc);

    if (!e && diag_errors(im->c->diags) > n.errors)
        return false;
    if (!e)
        return error_at(im->c, v ? E_UNSUPPORTED : E_IMPORT, loc, "output '%s' is not %s", name,
                        v ? "supported" : "computed");
    vec_push(im->c->arena, &r->at, e);
    vec_push(im->c->arena, &r->names, new_name(im, r, name));
    return true;
}

static bool not_kept(PtImport *im, const PtOutput *out, Loc loc)
{
    if (out->kind == PT_OTHER_OUTPUT)
        return error_at(im->c, E_UNSUPPORTED, loc, "an output of the kind '%s'", out->name);
    error_at(im->c, E_UNSUPPORTED, loc, "the model changes '%s', which it keeps from run to run",
             out->name);
    diag_hint(im->c->diags, "make it an input and an output of forward(): --state joins them");
    return false;
}

static bool is_user_input(const PtProgram *p, const char *name)
{
    for (uint32_t i = 0; i < p->inputs.n; i++)
        if (p->inputs.at[i].kind == PT_USER && p->inputs.at[i].arg.text == name)
            return true;
    return false;
}

static bool no_such(PtImport *im, const char *name, Loc loc)
{
    const PtGraph *g = &im->program->graph;
    VEC(const char *) names = {0};

    for (uint32_t i = 0; i < g->nops; i++)
        for (uint32_t k = 0; k < g->ops[i].nout; k++)
            if (g->ops[i].out[k].kind == PT_TENSOR)
                vec_push(im->c->scratch, &names, g->ops[i].out[k].text);
    return no_tensor(im->c, loc, name, names.n, names.at);
}

static bool import_tensors(PtImport *im, const ImportOptions *o, Loc loc, NamedValues *r)
{
    for (uint32_t i = 0; i < o->ntensors; i++) {
        const char *name = intern(im->c->strings, o->tensors[i]);
        PtArg       a = {.kind = PT_TENSOR, .text = name};

        if (result_have(r, name))
            continue;
        if (!pt_value(im, name) || !pt_value(im, name)->t)
            return no_such(im, name, loc);
        if (!add_result(im, r, name, &a, loc))
            return false;
    }
    return true;
}

/* What states are behind the program. */
static bool import_states(PtImport *im, Loc loc, NamedValues *r)
{
    const PtProgram *p = im->program;

    for (uint32_t i = 0; i < p->inputs.n; i++) {
        const PtInput *in = &p->inputs.at[i];
        PtArg          a = in->arg;

        if (in->kind != PT_BUFFER || !map_get(im->states, PTR_KEY(in->name)))
            continue;
        for (uint32_t k = 0; k < p->outputs.n; k++)
            if (p->outputs.at[k].kind == PT_CHANGED && p->outputs.at[k].name == in->name)
                a = p->outputs.at[k].arg;
        if (!add_result(im, r, state_result(im->c, in->name), &a, loc))
            return false;
    }
    return true;
}

static bool import_outputs(PtImport *im, const ImportOptions *o, Loc loc, NamedValues *r)
{
    const PtProgram *p = im->program;

    for (uint32_t i = 0; i < p->outputs.n; i++) {
        const PtOutput *out = &p->outputs.at[i];

        if (out->kind == PT_CHANGED &&
            (is_user_input(p, out->name) || map_get(im->states, PTR_KEY(out->name))))
            continue; /* the caller's memory stays as it is; states come last */
        if (out->kind != PT_RESULT)
            return not_kept(im, out, loc);
        if (!o->only_tensors && out->arg.kind != PT_NONE &&
            !add_result(im, r, out->name, &out->arg, loc))
            return false;
    }
    return import_tensors(im, o, loc, r) && (o->only_tensors || import_states(im, loc, r)) &&
           (r->at.n > 0 || error_at(im->c, E_IMPORT, loc, "the model has no outputs"));
}

/* ---- the whole ---------------------------------------------------------------------------------------- */

static const Module *import_program(PtImport *im, const PtArchive *archive, const ImportOptions *o,
                                    Loc loc)
{
    const PtGraph *g = &im->program->graph;
    NamedValues    params = {0}, r = {0};

    if (!import_inputs(im, archive, o, loc, &params))
        return NULL;
    for (uint32_t i = 0; i < g->nops; i++)
        if (!import_op(im, &g->ops[i]))
            return NULL;
    if (!import_outputs(im, o, loc, &r) || !shapes_check_dims(&im->shapes, loc))
        return NULL;
    return build_module(im->c, im->path, &params, &r, im->binds.n, im->binds.at, &im->functions);
}

const Module *pytorch_import(Ctx *c, const char *path, Bytes file, const ImportOptions *o,
                             ImportFiles *files)
{
    Loc       loc = {.file = path};
    PtArchive archive = {0};
    PtProgram program;
    PtImport  im = {.c = c, .path = path, .program = &program};

    (void)files; /* the archive holds all */
    if (!pt_is_archive(file) && ts_is_archive(file))
        return ts_import(c, path, file, o);
    if (!pt_read_archive(c, loc, file, &archive) ||
        !pt_read_program(c, loc, archive.program, &program) || !pt_survey(&im, &program.graph))
        return NULL;
    im.shapes = pt_shapes(c, o);
    im.values = map_new(c->arena);
    im.metas = program.graph.metas;
    return import_program(&im, &archive, o, loc);
}
