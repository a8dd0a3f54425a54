/* A model: its inputs, one call after another, its outputs. */
#include "frontends/keras/keras.h"

#include <string.h>

int keras_bid(const char *path, Bytes file)
{
    bool named = str_ends(path, ".keras") || str_ends(path, ".h5") || str_ends(path, ".hdf5");

    return keras_is_file(file) ? 90 : named && h5_is(file) ? 40 : str_ends(path, ".keras") ? 20 : 0;
}

/* Of each layer the results of its calls. */
struct KerasRun {
    KerasImport *im;
    Map         *values; /* layer -> KerasValues[calls] */
};

static KerasValues *results(const KerasRun *run, const KerasLayer *l, uint32_t call)
{
    KerasValues *all = map_get(run->values, PTR_KEY(l));

    if (!all) {
        all = NEW_ARRAY(run->im->c->arena, KerasValues, l->calls.n + 1);
        map_put(run->values, PTR_KEY(l), all);
    }
    return &all[call];
}

/* ---- arguments -------------------------------------------------------------------------------------- */

/* Cells of nested lists of numbers, in order; false: they are uneven, or no numbers. */
static bool read_cells(const json_t *x, uint32_t depth, uint32_t rank, const int64_t *dims,
                       double *at, int64_t *next, int64_t cells)
{
    if (depth == rank) {
        if (!(json_is_number(x) || json_is_boolean(x)) || *next == cells)
            return false;
        at[(*next)++] = json_is_boolean(x) ? json_is_true(x) : json_number_value(x);
        return true;
    }
    if (!json_is_array(x) || (int64_t)json_array_size(x) != dims[depth])
        return false;
    for (size_t i = 0; i < json_array_size(x); i++)
        if (!read_cells(json_array_get(x, i), depth + 1, rank, dims, at, next, cells))
            return false;
    return true;
}

/* A number, or {"class_name": "__numpy__" or "__tensor__", "config": {"value", "dtype"}}. */
static const Expr *constant(const KerasNode *n, const json_t *x)
{
    const json_t *config = json_object_get(x, "config"), *first;
    const char   *dtype = json_string_value(json_object_get(config, "dtype"));
    int64_t       dims[MAX_RANK], cells = 1, next = 0;
    uint32_t      rank = 0, size;
    DType         t = n->dtype;
    double       *v;
    uint8_t      *at;

    if (config)
        x = json_object_get(config, "value");
    for (first = x; json_is_array(first) && rank < MAX_RANK; first = json_array_get(first, 0)) {
        dims[rank] = (int64_t)json_array_size(first);
        cells *= dims[rank++];
        if (cells > JSON_BYTES)
            return keras_error(n, E_IMPORT, "a constant of too many numbers");
    }
    if (json_is_boolean(first))
        t = DT_BOOL;
    else if (json_is_integer(first) && !dtype_is_float(t))
        t = dtype_is_int(t) ? t : DT_I32;
    else if (!dtype_is_float(t))
        t = DT_F32;
    if (dtype && !keras_dtype(dtype, &t))
        return keras_error(n, E_UNSUPPORTED, "a constant of type %s", dtype);
    size = dtype_bytes(t);
    v = NEW_ARRAY(n->b.c->scratch, double, (size_t)cells + 1);
    if (!read_cells(x, 0, rank, dims, v, &next, cells) || next != cells)
        return keras_error(n, E_UNSUPPORTED, "a constant that is no tensor of numbers");
    at = arena_array(n->b.c->arena, (size_t)cells + 1, size);
    for (int64_t i = 0; i < cells; i++)
        dtype_put_f(t, at + i * size, v[i]);
    return build_const(&n->b, t, rank, dims, at);
}

bool keras_value(const KerasNode *n, const KerasArg *a, KerasValue *out)
{
    *out = (KerasValue){0};
    if (a->kind == KERAS_TENSOR && n->run) {
        KerasValues *v = results(n->run, a->from, (uint32_t)a->call);

        if ((uint64_t)a->tensor >= v->n)
            return keras_error(n, E_IMPORT, "it takes result %lld of '%s', which has %u",
                               (long long)a->tensor, a->layer, v->n);
        *out = v->at[a->tensor];
        return true;
    }
    if (a->kind == KERAS_JSON && a->json)
        out->e = constant(n, a->json);
    else
        keras_error(n, E_UNSUPPORTED, "several tensors where one is taken");
    return out->e != NULL;
}

/* Arguments were read KERAS_MAX_NESTING deep at most. */
static bool flatten(const KerasNode *n, const KerasArg *a, KerasValues *out)
{
    KerasValue v;

    for (uint32_t i = 0; i < a->n; i++)
        if (!flatten(n, &a->at[i], out))
            return false;
    if (a->kind == KERAS_LIST)
        return true;
    if (!keras_value(n, a, &v))
        return false;
    vec_push(n->b.c->arena, out, v);
    return true;
}

/* Masks that are arguments go before those that came with the values: one for each value, in the
 * same order. */
static bool take_masks(KerasNode *n)
{
    const KerasArg *a = keras_arg(n, UINT32_MAX, "mask");
    uint32_t        count = a && a->kind == KERAS_LIST ? a->n : a ? 1 : 0;
    KerasValue     *in = NEW_ARRAY(n->b.c->arena, KerasValue, n->nin + 1), v;

    if (n->nin)
        memcpy(in, n->in, n->nin * sizeof *in);
    for (uint32_t i = 0; i < count && i < n->nin; i++) {
        const KerasArg *m = a->kind == KERAS_LIST ? &a->at[i] : a;

        if (m->kind == KERAS_JSON && json_is_null(m->json))
            continue;
        if (!keras_value(n, m, &v))
            return false;
        in[i].mask = build_cast(&n->b, v.e, DT_BOOL);
    }
    n->in = in;
    return true;
}

/* ---- calls ------------------------------------------------------------------------------------------ */

static bool run_model(KerasImport *im, KerasLayer *l, uint32_t nin, const KerasValue *in,
                      KerasValues *out, KerasRun *run);

/* The type in which a layer computes, by its policy. */
static DType compute_type(const KerasNode *n)
{
    const json_t *x = json_object_get(n->layer->config, "dtype");
    const char   *name = json_string_value(x);
    DType         t = DT_F32;

    for (uint32_t i = n->nin; i-- > 0;)
        if (dtype_is_float(expr_dtype(n->in[i].e)))
            t = expr_dtype(n->in[i].e);
    if (!name)
        name = json_string_value(json_object_get(json_object_get(x, "config"), "name"));
    if (name && keras_dtype(name, &t) && !dtype_is_float(t))
        t = DT_F32;
    return t;
}

static bool call_layer(KerasImport *im, KerasLayer *l, const KerasCall *call, const KerasRun *run,
                       uint32_t nin, const KerasValue *in, KerasValues *out)
{
    uint32_t  before = diag_errors(im->c->diags);
    KerasNode n = {
        .im = im, .layer = l, .row = l->row, .call = call, .run = run, .nin = nin, .in = in};

    n.b = (Build){im->c, {im->path, l->ordinal, 0, l->name}, l->class_name};
    n.read = NEW_ARRAY(im->c->arena, bool, call ? call->n + 1 : 1);
    if (++im->calls > KERAS_MAX_CALLS)
        return keras_error(&n, E_UNSUPPORTED, "the model comes to more than %d calls",
                           KERAS_MAX_CALLS);
    n.dtype = compute_type(&n);
    if (call && call->n && !l->row->operation && !call->args[0].name) {
        KerasValues first = {0};

        if (!flatten(&n, &call->args[0], &first))
            return false;
        n.read[0] = true;
        n.nin = first.n;
        n.in = first.at;
        n.dtype = compute_type(&n);
        if (!take_masks(&n))
            return false;
    } else if (call && l->row->operation && call->n) {
        KerasValue v;

        for (uint32_t i = 0; i < call->n; i++)
            if (call->args[i].kind == KERAS_TENSOR && keras_value(&n, &call->args[i], &v)) {
                n.dtype = expr_dtype(v.e);
                break;
            }
    }
    if (!keras_prepare(&n) || !l->row->convert(&n) || !keras_finish(&n) ||
        diag_errors(im->c->diags) != before) {
        diag_drop(im->c->diags, before + 1); /* what follows from the first */
        if (diag_errors(im->c->diags) == before)
            BUG("%s '%s' failed to import without an error", l->class_name, l->name);
        return false;
    }
    *out = n.out;
    return true;
}

bool keras_call(KerasImport *im, KerasLayer *l, uint32_t nin, const KerasValue *in,
                KerasValues *out)
{
    KerasRun run = {im, map_new(im->c->arena)};

    *out = (KerasValues){0};
    return l->model ? run_model(im, l, nin, in, out, &run)
                    : call_layer(im, l, NULL, NULL, nin, in, out);
}

static bool run_step(KerasRun *run, KerasStep s)
{
    const KerasCall *call = &s.layer->calls.at[s.call];
    KerasImport     *im = run->im;
    KerasValues     *out = results(run, s.layer, s.call), in = {0};
    KerasNode        n = {.im = im, .layer = s.layer, .run = run, .dtype = DT_F32};

    if (out->n)
        return true; /* an input */
    if (!s.layer->model)
        return call_layer(im, s.layer, call, run, 0, NULL, out);
    n.b = (Build){im->c, {im->path, s.layer->ordinal, 0, s.layer->name}, s.layer->class_name};
    for (uint32_t i = 0; i < call->n; i++) {
        const KerasArg *a = &call->args[i];

        if (a->name && a->kind == KERAS_JSON &&
            (json_is_null(a->json) || json_is_false(a->json) || !strcmp(a->name, "training")))
            continue;
        if (!flatten(&n, a, &in))
            return false;
    }
    return keras_call(im, s.layer, in.n, in.at, out);
}

static bool run_sequential(KerasRun *run, KerasLayer *l, KerasValues in, KerasValues *out)
{
    for (uint32_t i = 0; i < l->kids.n; i++) {
        KerasLayer *kid = l->kids.at[i];
        KerasValues next;

        if (i == 0 && !strcmp(kid->class_name, "InputLayer"))
            next = in;
        else if (!keras_call(run->im, kid, in.n, in.at, &next))
            return false;
        *results(run, kid, 0) = next;
        in = next;
    }
    *out = in;
    return true;
}

static bool run_model(KerasImport *im, KerasLayer *l, uint32_t nin, const KerasValue *in,
                      KerasValues *out, KerasRun *run)
{
    KerasValues all = {0};
    KerasPorts  ports = {0};
    KerasNode   n = {.im = im, .layer = l, .run = run, .dtype = DT_F32};
    bool        ok = true;

    n.b = (Build){im->c, {im->path, l->ordinal, 0, l->name}, l->class_name};
    if (++im->depth > KERAS_MAX_NESTING)
        return keras_error(&n, E_UNSUPPORTED, "models are nested more than %d deep",
                           KERAS_MAX_NESTING);
    for (uint32_t i = 0; i < nin; i++)
        vec_push(im->c->arena, &all, in[i]);
    if (l->model->sequential) {
        ok = run_sequential(run, l, all, out);
    } else {
        keras_ports(im->c, &l->model->in, &ports);
        if (ports.n != nin)
            return keras_error(&n, E_IMPORT, "it has %u inputs, and is called with %u", ports.n,
                               nin);
        for (uint32_t i = 0; i < nin; i++) {
            KerasValues *v = results(run, ports.at[i].arg->from, 0);

            v->n = 0;
            vec_push(im->c->arena, v, in[i]);
        }
        for (uint32_t i = 0; i < l->model->order.n && ok; i++)
            ok = run_step(run, l->model->order.at[i]);
        ok = ok && flatten(&n, &l->model->out, out);
    }
    im->depth--;
    return ok;
}

/* ---- inputs and outputs ------------------------------------------------------------------------------ */

static bool import_input(KerasImport *im, const KerasPort *p, const ImportOptions *o, Loc loc,
                         NamedValues *params, KerasValues *values)
{
    const ImportValue *value = value_given(o, p->name);
    InputDim           dims[MAX_RANK];
    const Type        *type;
    const Expr        *x;
    uint32_t           rank;
    DType              t;

    if (!keras_dtype(p->dtype, &t))
        return error_at(im->c, E_UNSUPPORTED, loc, "input '%s' is of %s", p->name, p->dtype);
    keras_shape(p, &rank, dims);
    vec_push(im->c->arena, &params->names, p->name);
    if (!(type = shapes_input(&im->shapes, loc, p->name, t, rank, dims)))
        return true; /* what is missing is said at once */
    if (value) {
        x = value_expr(im->c, loc, value, type);
    } else {
        x = expr_var(im->c, p->name, type, loc);
        vec_push(im->c->arena, &params->at, x);
    }
    vec_push(im->c->arena, values, ((KerasValue){x, NULL}));
    return x != NULL;
}

static bool import_inputs(KerasImport *im, const ImportOptions *o, Loc loc, NamedValues *params,
                          KerasValues *values)
{
    uint32_t   before = diag_errors(im->c->diags), rank;
    Map       *seen = map_new(im->c->scratch);
    InputDim   dims[MAX_RANK];
    KerasPorts ports = {0};

    keras_inputs(im->c, im->model, &ports);
    im->shapes = shapes_new(im->c, o);
    for (uint32_t i = 0; i < ports.n; i++) {
        const KerasPort *p = &ports.at[i];

        if (map_get(seen, PTR_KEY(p->name)))
            return error_at(im->c, E_IMPORT, loc, "input '%s' is there twice", p->name);
        map_put(seen, PTR_KEY(p->name), seen);
        if (!keras_shape(p, &rank, dims))
            return error_at(im->c, E_IMPORT, loc, "the shape of input '%s' is broken", p->name);
        shapes_see(&im->shapes, p->name, rank, dims);
    }
    for (uint32_t i = 0; i < ports.n; i++)
        if (!import_input(im, &ports.at[i], o, loc, params, values))
            return false;
    return shapes_check(&im->shapes, loc, params->names.n, params->names.at) &&
           diag_errors(im->c->diags) == before;
}

/* What the layers of the outermost model give, by their names. */
static NamedValues all_tensors(const KerasRun *run)
{
    KerasImport *im = run->im;
    NamedValues  all = {0};

    for (uint32_t i = 0; i < im->model->kids.n; i++) {
        KerasLayer        *l = im->model->kids.at[i];
        const KerasValues *v = results(run, l, 0);

        if (!v->n)
            continue;
        vec_push(im->c->scratch, &all.names, l->name);
        vec_push(im->c->scratch, &all.at, v->at[0].e);
    }
    return all;
}

static bool import_outputs(KerasImport *im, const KerasRun *run, const KerasValues *values,
                           const ImportOptions *o, Loc loc, NamedValues *r)
{
    KerasPorts  ports = {0};
    NamedValues all;

    keras_outputs(im->c, im->model, &ports);
    if (values->n == 0)
        return error_at(im->c, E_IMPORT, loc, "the model has no outputs");
    for (uint32_t i = 0; i < values->n && !o->only_tensors; i++) {
        const char *name =
            i < ports.n ? ports.at[i].name : intern_printf(im->c->strings, "output_%u", i);

        if (!result_add(im->c, r, name, values->at[i].e, loc))
            return false;
    }
    all = all_tensors(run);
    return results_ask(im->c, r, o, &all, loc);
}

static const Module *import_main(KerasImport *im, const ImportOptions *o)
{
    Ctx        *c = im->c;
    Loc         loc = {.file = im->path};
    KerasRun    run = {im, map_new(c->arena)};
    KerasValues in = {0}, out = {0};
    NamedValues params = {0}, r = {0};
    uint32_t    before = diag_errors(c->diags);

    if (!import_inputs(im, o, loc, &params, &in) ||
        !run_model(im, im->model, in.n, in.at, &out, &run) ||
        !import_outputs(im, &run, &out, o, loc, &r) || diag_errors(c->diags) != before ||
        !shapes_check_dims(&im->shapes, loc))
        return NULL;
    return build_module(c, im->path, &params, &r, 0, NULL, &im->functions);
}

const Module *keras_import(Ctx *c, const char *path, Bytes file, const ImportOptions *o,
                           ImportFiles *files)
{
    KerasArchive  a;
    KerasImport   im = {.c = c, .path = path};
    const Module *m = NULL;

    (void)files; /* all is in this one */
    if (keras_read_archive(c, (Loc){.file = path}, file, &a)) {
        im.major = a.major;
        im.flipped = a.flipped;
        im.reading = (KerasReading){.c = c, .path = path, .major = a.major};
        if ((im.model = keras_read_config(c, path, &a)) && keras_survey(&im) &&
            keras_read_weights(c, path, &a, im.model))
            m = import_main(&im, o);
    }
    json_decref(a.config);
    return m;
}
