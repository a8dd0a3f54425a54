/* A model, or the models of a pipeline one after another.  Between them, and to the outside, values
 * are features: arrays of the shapes that the descriptions say, images as [H, W] if they are grey
 * and as [3, H, W] if they have colours. */
#include "frontends/coreml/coreml.h"

#include <string.h>

int coreml_bid(const char *path, Bytes file)
{
    bool     named = str_ends(path, ".mlmodel");
    uint32_t last = 0;
    Reader   r = reader(file);
    PbItem   it;
    bool     version = false, described = false, kind = false;

    if (cml_is_manifest(file))
        return 90;
    /* Version, description, and a kind of model, whose numbers nobody else has. */
    while (pb_next(&r, &it) && it.number <= 3000) {
        version |= it.number == 1 && it.wire == PB_WIRE_VARINT && it.value && it.value < 100;
        described |= it.number == 2 && it.wire == PB_WIRE_LEN;
        kind |= it.number >= 200 && it.wire == PB_WIRE_LEN;
        if (it.number < last || (it.number > 2 && it.number < 10))
            return named ? 20 : 0;
        last = it.number;
    }
    if (version && described && kind && !r.bad)
        return 80;
    return named ? 20 : 0;
}

/* ---- inputs: the model's, from outside -------------------------------------------------------------- */

/* The rank that the user's shape has: batches and sequences may come with it. */
static uint32_t rank_given(const ImportOptions *o, const char *name, uint32_t rank)
{
    for (uint32_t i = 0; i < o->nshapes; i++)
        if (!*o->shapes[i].name || !strcmp(o->shapes[i].name, name))
            return o->shapes[i].ndim;
    return rank;
}

static bool import_input(CmlImport *im, CmlScope *features, const CmlFeature *f)
{
    const ImportOptions *o = im->options;
    Ctx                 *c = im->c;
    Loc                  loc = {.file = im->path};
    const char          *name = intern(c->strings, f->name);
    const ImportValue   *value = value_given(o, name);
    InputDim             dims[MAX_RANK + 1];
    const Type          *type;
    const Expr          *x;
    uint32_t             rank;
    DType                t;

    rank = cml_feature_dims(im, loc, f, dims);
    if (!cml_feature_dtype(f->type, &t))
        return error_at(c, E_UNSUPPORTED, loc, "input '%s' is neither array nor image nor number",
                        name);
    if (rank_given(o, name, rank) != rank)
        rank = UINT32_MAX;
    vec_push(c->arena, &im->params.names, name);
    if (!(type = shapes_input(&im->shapes, loc, name, t, rank, dims)))
        return true; /* what is missing is said at once */
    x = value ? value_expr(c, loc, value, type) : expr_var(c, name, type, loc);
    if (!value)
        vec_push(c->arena, &im->params.at, x);
    cml_put(features, name, (CmlValue){.e = x});
    return x != NULL;
}

static bool check_features(CmlImport *im, const PbMsgs *list)
{
    Map *seen = map_new(im->c->scratch);

    for (uint32_t i = 0; i < list->n; i++) {
        const CmlFeature *f = list->at[i];
        const char       *name;

        if (!f->name || !*f->name || !f->type)
            return error_at(im->c, E_IMPORT, ((Loc){.file = im->path}),
                            "input or output %u has no name or no type", i);
        name = intern(im->c->strings, f->name);
        if (map_get(seen, PTR_KEY(name)))
            return error_at(im->c, E_IMPORT, ((Loc){.file = im->path}), "'%s' is there twice",
                            name);
        map_put(seen, PTR_KEY(name), im);
    }
    return true;
}

static bool import_inputs(CmlImport *im, CmlScope *features, const PbMsgs *list)
{
    uint32_t before = diag_errors(im->c->diags);
    Loc      loc = {.file = im->path};
    InputDim dims[MAX_RANK + 1];

    im->shapes = shapes_new(im->c, im->options);
    for (uint32_t i = 0; i < list->n; i++) {
        const CmlFeature *f = list->at[i];
        uint32_t          rank = cml_feature_dims(im, loc, f, dims);

        if (rank > MAX_RANK && rank != UINT32_MAX)
            return error_at(im->c, E_UNSUPPORTED, loc, "input '%s' has %u dimensions, more than %d",
                            f->name, rank, MAX_RANK);
        shapes_see(&im->shapes, intern(im->c->strings, f->name), rank, dims);
    }
    for (uint32_t i = 0; i < im->options->ndims; i++)
        im->shapes.later[i] = str_ends(im->options->dims[i].name, ".0");
    for (uint32_t i = 0; i < list->n; i++)
        if (!import_input(im, features, list->at[i]))
            return false;
    return shapes_check(&im->shapes, loc, im->params.names.n, im->params.names.at) &&
           diag_errors(im->c->diags) == before;
}

/* ---- one model -------------------------------------------------------------------------------------- */

static bool is_named(const CmlFeature *f, const char *name)
{
    return name && !strcmp(f->name, name);
}

static const CmlFeature *feature_named(const PbMsgs *list, const char *name)
{
    for (uint32_t i = 0; i < list->n; i++) {
        const CmlFeature *f = list->at[i];

        if (is_named(f, name))
            return f;
    }
    return NULL;
}

static const Expr *reshaped(const Build *b, const Expr *x, uint32_t drop, uint32_t more)
{
    const Idx *dims[MAX_RANK + 4];
    uint32_t   n = 0;

    for (uint32_t i = 0; i < more; i++)
        dims[n++] = idx_const(b->c->arith, 1);
    for (uint32_t i = drop; i < expr_rank(x); i++)
        dims[n++] = expr_form(x, i);
    return build_reshape_to(b, x, n, dims);
}

/* An image as [N, C, H, W], whatever of it was given. */
static const Expr *image_in(const Build *b, const Expr *x, const CmlImageType *t)
{
    uint32_t   rank = expr_rank(x);
    const Idx *dims[4];

    if (rank < 2 || rank > 5)
        return build_error(b, E_DIM, "an image is %s", type_text(b->c, x->type));
    if (cml_is_grey(t) && rank == 3 && expr_form(x, 0) != idx_const(b->c->arith, 1)) {
        dims[0] = expr_form(x, 0), dims[1] = idx_const(b->c->arith, 1);
        dims[2] = expr_form(x, 1), dims[3] = expr_form(x, 2);
        return build_reshape_to(b, x, 4, dims); /* a batch */
    }
    return rank < 4 ? reshaped(b, x, 0, 4 - rank) : x;
}

static const Expr *channels(const Build *b, uint32_t n, const float *v)
{
    int64_t dims[3] = {n, 1, 1};

    return build_const(b, DT_F32, 3, dims, v);
}

static const Expr *preprocessed(const Build *b, const Expr *x, const CmlPreprocessing *p,
                                const CmlImageType *t)
{
    const CmlScaler *s = p->scaler;
    bool             bgr = t && t->color == CML_BGR, grey = t && cml_is_grey(t);
    int64_t          dims[3];

    if (s) {
        float bias[3] = {grey ? s->gray : bgr ? s->blue : s->red, s->green, bgr ? s->red : s->blue};

        if (s->scale != 0 && s->scale != 1)
            x = build_by(b, "multiply", x, s->scale);
        return bias[0] != 0 || (!grey && (bias[1] != 0 || bias[2] != 0))
                   ? build_add(b, x, channels(b, grey ? 1 : 3, bias))
                   : x;
    }
    if (!p->mean || !x)
        return x;
    for (uint32_t i = 0; i < 3; i++)
        dims[i] = build_dim(b, x, 1 + i);
    if (p->mean->cells.data.n != (size_t)(dims[0] * dims[1] * dims[2]) * sizeof(float))
        return build_error(b, E_IMPORT, "the mean image has %zu cells, the image is %s",
                           p->mean->cells.data.n / sizeof(float), type_text(b->c, x->type));
    return build_sub(b, x, build_const(b, DT_F32, 3, dims, p->mean->cells.data.at));
}

/* What the network does to the image before its layers. */
static const Expr *prepared(const Build *b, const Expr *x, const CmlNetwork *net,
                            const CmlFeature *f, const PbMsgs *inputs)
{
    for (uint32_t i = 0; x && i < net->preprocessing.n; i++) {
        const CmlPreprocessing *p = net->preprocessing.at[i];
        bool                    named = p->feature && *p->feature;

        if (named ? !strcmp(p->feature, f->name) : inputs->n == 1 || f->type->image)
            x = preprocessed(b, x, p, f->type->image);
    }
    return x;
}

/* A feature as layers that have five dimensions take it. */
static bool five_of(const Build *b, const Expr *x, CmlValue *out)
{
    const Idx *dims[5], *one = idx_const(b->c->arith, 1);
    uint32_t   rank = expr_rank(x);
    int64_t    seq;

    *out = (CmlValue){.seq = 1};
    for (uint32_t i = 0; i < 5; i++)
        dims[i] = i < rank ? expr_form(x, i) : one;
    switch (rank) {
    case 1: out->e = build_reshape_to(b, x, 4, (const Idx *[]){one, dims[0], one, one}); break;
    case 3: out->e = reshaped(b, x, 0, 1); break;
    case 4: out->e = x; break;
    case 5:
        out->seq = seq = build_dim(b, x, 0);
        out->e = build_reshape_to(
            b, x, 4,
            (const Idx *[]){idx_mul(b->c->arith, dims[0], dims[1]), dims[2], dims[3], dims[4]});
        return out->e && seq > 0;
    default:
        return build_error(b, E_IMPORT, "a network of five dimensions cannot take %s",
                           type_text(b->c, x->type));
    }
    return out->e != NULL;
}

static bool network_input(CmlImport *im, CmlScope *s, const CmlNetwork *net, const CmlFeature *f,
                          const PbMsgs *inputs, const Expr *x)
{
    const char *name = intern(im->c->strings, f->name);
    Build       b = {im->c, {im->path, 0, 0, name}, "input"};
    bool        exact = f->type->image ? net->exact_images : net->exact_arrays;
    CmlValue    v = {0};

    if (f->type->image)
        x = prepared(&b, build_cast(&b, image_in(&b, x, f->type->image), DT_F32), net, f, inputs);
    else
        x = build_cast(&b, x, DT_F32);
    if (!x || (!exact && !five_of(&b, x, &v)))
        return false;
    if (exact)
        v.e = x;
    cml_put(s, name, v);
    return true;
}

/* Its dimensions are those that the function says, of which images lack some. */
static bool program_input(CmlImport *im, CmlScope *s, const CmlNamed *in, const CmlFeature *f,
                          const Expr *x)
{
    const CmlTensorType *t = in->type ? in->type->tensor : NULL;
    Build                b = {im->c, {im->path, 0, 0, intern(im->c->strings, in->name)}, "input"};
    DType                want;

    if (!t || !cml_dtype(t->type, &want))
        return build_error(&b, E_UNSUPPORTED, "it is %s",
                           t ? cml_dtype_name(t->type) : "no tensor");
    if (f->type->image)
        x = image_in(&b, x, f->type->image);
    x = build_cast(&b, x, want);
    if (!x)
        return false;
    if (expr_rank(x) != t->dims.n)
        return build_error(&b, E_IMPORT, "the program takes %u dimensions, not %s", t->dims.n,
                           type_text(im->c, x->type));
    cml_put(s, in->name, (CmlValue){.e = x});
    return true;
}

/* ---- results of a model ------------------------------------------------------------------------------ */

/* The value of five dimensions without those that are 1 and that arrays lack. */
static const Expr *array_out(const Build *b, CmlValue v)
{
    const Idx  *one = idx_const(b->c->arith, 1);
    const Expr *e = v.e;

    if (v.seq != 1 || expr_form(e, 0) != one)
        return cml_plain(b, v);
    if (expr_form(e, 2) == one && expr_form(e, 3) == one)
        return build_reshape_to(b, e, 1, (const Idx *[]){expr_form(e, 1)});
    return reshaped(b, e, 1, 0);
}

static const Expr *feature_of(const Build *b, const CmlFeature *f, CmlValue v)
{
    const CmlFeatureType *t = f->type;
    const Expr           *e;
    DType                 want;

    if (t->image) {
        uint32_t rank;

        e = v.e;
        rank = e ? expr_rank(e) : 0;
        if (rank < 2 || rank > 4)
            return build_error(b, E_IMPORT, "output '%s' is no image", f->name);
        for (; e && rank > 2 && expr_form(e, 0) == idx_const(b->c->arith, 1) &&
               (rank == 4 || cml_is_grey(t->image));
             rank--)
            e = reshaped(b, e, 1, 0);
    } else {
        e = v.seq ? array_out(b, v) : v.e;
    }
    if (!e || !cml_feature_dtype(t, &want))
        return e;
    if ((t->integer || t->number) && expr_single(e))
        e = build_reshape(b, e, 1, (int64_t[]){1});
    return build_cast(b, e, want);
}

/* The scores of a classifier as one list. */
static const Expr *scores_of(const Build *b, CmlValue v, uint32_t labels)
{
    const Idx *cells;
    int64_t    n;

    if (!v.e)
        return NULL;
    cells = type_cells(b->c, v.e->type);
    if (!idx_is_const(cells, &n) || n != labels)
        return cml_plain(b, v);
    return build_reshape(b, v.e, 1, &n);
}

static const Expr *label_of(const Build *b, const Expr *scores, const CmlLabels *labels)
{
    ArgReduceAttrs *a = ATTRS(b, ArgReduceAttrs);
    int64_t         n = labels->v.n;

    if (!scores || expr_rank(scores) != 1)
        return NULL;
    a->axis = 0;
    a->keepdims = true;
    a->dtype = DT_I64;
    return build_take(b, build_const(b, DT_I64, 1, &n, labels->v.at),
                      build1(b, "argmax", scores, a), 0);
}

/* Labels that are numbers are a result; texts are for --labels. */
static bool classify(CmlImport *im, CmlScope *s, CmlScope *features, const CmlModel *m)
{
    const CmlNetwork     *net = m->classifier;
    const CmlDescription *d = m->description;
    Build                 b = {im->c, {.file = im->path}, "classifier"};
    const CmlLabels      *labels = net->numbers ? net->numbers : net->texts;
    uint32_t              n = net->numbers ? net->numbers->v.n : net->texts ? net->texts->t.n : 0;
    const char           *name = net->scores && *net->scores ? net->scores : NULL;
    const CmlValue       *v;
    const Expr           *scores, *label;
    CmlLayer              last;

    if (!labels || !n || !net->layers.n)
        return build_error(&b, E_IMPORT, "it has no labels, or no layers");
    if (!name) {
        if (!cml_read_layer(im->c, b.loc, net->layers.at[net->layers.n - 1], &last))
            return false;
        name = last.head.out.n ? last.head.out.at[0] : "";
    }
    if (!(v = cml_find(s, name)))
        return build_error(&b, E_IMPORT, "its scores '%s' are not computed", name);
    if (!(scores = scores_of(&b, *v, n)))
        return false;
    if (d->probabilities && *d->probabilities)
        cml_put(features, d->probabilities, (CmlValue){.e = scores});
    if (net->numbers && d->label && *d->label && (label = label_of(&b, scores, labels)))
        cml_put(features, d->label, (CmlValue){.e = label});
    return true;
}

static bool put_features(CmlImport *im, CmlScope *features, const CmlScope *s, const CmlModel *m)
{
    const CmlDescription *d = m->description;

    for (uint32_t i = 0; i < d->out.n; i++) {
        const CmlFeature *f = d->out.at[i];
        Build             b = {im->c, {im->path, 0, 0, intern(im->c->strings, f->name)}, "output"};
        CmlValue         *v = cml_find(s, f->name);

        if (m->classifier && (is_named(f, d->label) || is_named(f, d->probabilities)))
            continue; /* of classify */
        if (is_named(f, d->label) && v && !v->e)
            continue; /* a text */
        if (!v || !v->e)
            return build_error(&b, E_IMPORT, "it is not computed");
        cml_put(features, f->name, (CmlValue){.e = feature_of(&b, f, *v)});
        if (!cml_find(features, f->name)->e)
            return false;
    }
    return true;
}

/* What the network does to images is said of images that it has. */
static bool check_preprocessing(CmlImport *im, const CmlNetwork *net, const PbMsgs *in)
{
    for (uint32_t i = 0; i < net->preprocessing.n; i++) {
        const CmlPreprocessing *p = net->preprocessing.at[i];
        const CmlFeature *f = p->feature && *p->feature ? feature_named(in, p->feature) : NULL;

        if (p->feature && *p->feature && (!f || !f->type->image))
            return error_at(im->c, E_IMPORT, ((Loc){.file = im->path}),
                            "there is preprocessing for '%s', which is no %s of the network",
                            p->feature, f ? "image" : "input");
    }
    return true;
}

static bool network(CmlImport *im, CmlScope *features, const CmlModel *m)
{
    const CmlNetwork *net = cml_network_of(m);
    const PbMsgs     *in = &m->description->in;
    CmlScope          s = cml_scope(im, NULL);

    if (!check_preprocessing(im, net, in) || !cml_count_reads(im, m))
        return false;

    for (uint32_t i = 0; i < in->n; i++) {
        const CmlFeature *f = in->at[i];
        const CmlValue   *v = cml_find(features, f->name);

        if (!v)
            return error_at(im->c, E_IMPORT, ((Loc){.file = im->path}),
                            "input '%s' of a model in the pipeline comes from nowhere", f->name);
        if (!network_input(im, &s, net, f, in, v->e))
            return false;
    }
    if (!cml_import_layers(&s, net, 0) || (m->classifier && !classify(im, &s, features, m)))
        return false;
    return put_features(im, features, &s, m);
}

static bool program(CmlImport *im, CmlScope *features, const CmlModel *m)
{
    Loc                loc = {.file = im->path};
    const CmlFunction *f = cml_main_function(im->c, loc, m);
    const CmlBlock    *b = f ? cml_function_block(im->c, loc, f) : NULL;
    CmlScope           s = cml_scope(im, NULL);

    if (!b)
        return false;
    for (uint32_t i = 0; i < f->in.n; i++) {
        const CmlNamed   *in = f->in.at[i];
        const CmlFeature *feature = feature_named(&m->description->in, in->name);
        const CmlValue   *v = in->name ? cml_find(features, in->name) : NULL;

        if (in->name && in->type && in->type->state) {
            if (!cml_state(im, &s, in))
                return false;
            continue;
        }
        if (!v || !feature)
            return error_at(im->c, E_IMPORT, loc, "input '%s' of the program comes from nowhere",
                            in->name ? in->name : "");
        if (!program_input(im, &s, in, feature, v->e))
            return false;
    }
    return cml_import_block(&s, b) && put_features(im, features, &s, m) && cml_states_end(im);
}

/* ---- results ---------------------------------------------------------------------------------------- */

static bool add_results(CmlImport *im, const CmlScope *features, const CmlDescription *d)
{
    Loc loc = {.file = im->path};

    for (uint32_t i = 0; i < d->out.n && !im->options->only_tensors; i++) {
        const CmlFeature *f = d->out.at[i];
        const CmlValue   *v = cml_find(features, f->name);

        if (!v && is_named(f, d->label) && d->probabilities && cml_find(features, d->probabilities))
            continue; /* a text, which the scores stand for */
        if (!v)
            return error_at(im->c, E_IMPORT, loc, "output '%s' is not computed", f->name);
        if (!result_add(im->c, &im->results, intern(im->c->strings, f->name), v->e, loc))
            return false;
    }
    for (uint32_t i = 0; i < im->next.names.n && !im->options->only_tensors; i++)
        if (!result_add(im->c, &im->results, im->next.names.at[i], im->next.at.at[i], loc))
            return false;
    if (!results_ask(im->c, &im->results, im->options, &im->tensors, loc))
        return false;
    return im->results.at.n || error_at(im->c, E_IMPORT, loc, "the model has no outputs");
}

static bool check_models(CmlImport *im, const CmlModel *m, const CmlModels *models)
{
    Loc loc = {.file = im->path};

    if (!models->n)
        return error_at(im->c, E_IMPORT, loc, "the pipeline has no models");
    for (uint32_t i = 0; i < models->n; i++)
        if (!models->at[i]->description)
            return error_at(im->c, E_IMPORT, loc, "the model has no description");
        else if (!check_features(im, &models->at[i]->description->in) ||
                 !check_features(im, &models->at[i]->description->out))
            return false;
    if (!m->description)
        return error_at(im->c, E_IMPORT, loc, "the model has no description");
    return check_features(im, &m->description->in) && check_features(im, &m->description->out);
}

/* Of several functions the one that is meant, as the model. */
static void choose_function(CmlDescription *d)
{
    for (uint32_t i = 0; d && !d->in.n && !d->out.n && i < d->functions.n; i++) {
        const CmlInterface *f = d->functions.at[i];

        if (strcmp(f->name ? f->name : "", d->main && *d->main ? d->main : "main") != 0)
            continue;
        d->in = f->in;
        d->out = f->out;
        d->label = f->label;
        d->probabilities = f->probabilities;
    }
}

bool cml_read(Ctx *c, const char **path, Bytes file, ImportFiles *files, CmlModel *out)
{
    if (cml_is_manifest(file) && !cml_open_package(c, path, &file, files))
        return false;
    *out = (CmlModel){0};
    if (!pb_read(c->diags, c->arena, (Loc){.file = *path}, &cml_model, file, out))
        return false;
    choose_function(out->description);
    return true;
}

const Module *coreml_import(Ctx *c, const char *path, Bytes file, const ImportOptions *o,
                            ImportFiles *files)
{
    CmlImport im = {.c = c, .options = o, .files = files, .sizes = map_new(c->arena)};
    CmlModels models = {0};
    CmlScope  features;
    CmlModel  m;
    uint32_t  before = diag_errors(c->diags);

    if (!cml_read(c, &path, file, files, &m))
        return NULL;
    im.path = path;
    cml_models(c->arena, &m, &models);
    features = cml_scope(&im, NULL);
    if (!check_models(&im, &m, &models) || !cml_survey(&im, models.n, models.at) ||
        !import_inputs(&im, &features, &m.description->in))
        return NULL;
    for (uint32_t i = 0; i < models.n; i++)
        if (models.at[i]->suppression
                ? !cml_suppression_model(&im, &features, models.at[i]->suppression)
            : models.at[i]->program ? !program(&im, &features, models.at[i])
                                    : !network(&im, &features, models.at[i]))
            return NULL;
    if (!add_results(&im, &features, m.description) ||
        !shapes_check_dims(&im.shapes, (Loc){.file = path}) || diag_errors(c->diags) != before)
        return NULL;
    return build_module(c, path, &im.params, &im.results, im.binds.n, im.binds.at, &im.functions);
}
