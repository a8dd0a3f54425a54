/* What a model takes and gives as its file says it, for `tvmcc inspect`. */
#include "frontends/coreml/coreml.h"

#include <string.h>

static const char *type_of(Ctx *c, const CmlFeatureType *t)
{
    DType d;

    if (t && (t->text || t->dictionary || t->sequence))
        return t->text ? "string" : t->dictionary ? "f32" : "sequence";
    return t && cml_feature_dtype(t, &d) ? dtype_text(c, d) : "?";
}

static void describe_feature(CmlImport *im, const CmlFeature *f, SignatureTensor *out)
{
    InputDim *dims = NEW_ARRAY(im->c->arena, InputDim, MAX_RANK + 1);
    uint32_t  n = UINT32_MAX;
    bool      known =
        f->type && (f->type->image || f->type->array || f->type->integer || f->type->number);

    if (known)
        n = cml_feature_dims(im, (Loc){.file = im->path}, f, dims);
    n = n > MAX_RANK ? UINT32_MAX : n;
    *out = (SignatureTensor){f->name ? f->name : "", type_of(im->c, f->type), n, dims,
                             SIGNATURE_TENSOR};
}

static SignatureTensor *describe_list(CmlImport *im, const PbMsgs *list)
{
    SignatureTensor *out = NEW_ARRAY(im->c->arena, SignatureTensor, list->n + 1);

    for (uint32_t i = 0; i < list->n; i++)
        describe_feature(im, list->at[i], &out[i]);
    return out;
}

static bool tally_layers(Ctx *c, const char *path, const CmlNetwork *net, Map *index,
                         ModelSignature *out, OpTally *ops)
{
    for (uint32_t i = 0; i < net->layers.n; i++) {
        CmlLayer    l;
        const char *hint;

        if (!cml_read_layer(c, (Loc){.file = path}, net->layers.at[i], &l))
            return false;
        signature_count(c, index, out, ops, cml_layer_kind(c, l.number, &hint));
    }
    return true;
}

static bool tally_operators(Ctx *c, const char *path, const CmlModel *m, Map *index,
                            ModelSignature *out, OpTally *ops)
{
    const CmlFunction *f = cml_main_function(c, (Loc){.file = path}, m);
    const CmlBlock    *b = f ? cml_function_block(c, (Loc){.file = path}, f) : NULL;

    for (uint32_t i = 0; b && i < b->operations.n; i++) {
        const CmlOperation *p = b->operations.at[i];

        if (!p->type || strcmp(p->type, "const") != 0)
            signature_count(c, index, out, ops, p->type ? p->type : "");
    }
    return b != NULL;
}

static size_t count_nodes(const CmlModels *models)
{
    size_t n = 1;

    for (uint32_t i = 0; i < models->n; i++) {
        const CmlModel   *m = models->at[i];
        const CmlNetwork *net = cml_network_of(m);

        n += net ? net->layers.n : 1;
        for (uint32_t k = 0; m->program && k < m->program->functions.n; k++) {
            const CmlFunctionEntry *f = m->program->functions.at[k];

            for (uint32_t j = 0; f->value && j < f->value->blocks.n; j++) {
                const CmlBlockEntry *e = f->value->blocks.at[j];

                n += e->value ? e->value->operations.n : 0;
            }
        }
    }
    return n;
}

bool coreml_describe(Ctx *c, const char *path, Bytes file, const ImportOptions *o,
                     ModelSignature *out)
{
    CmlImport im = {.c = c};
    CmlModels models = {0};
    CmlModel  m;
    OpTally  *ops;
    Map      *index = map_new(c->scratch);

    if (!cml_read(c, &path, file, NULL, &m) || !m.description)
        return false;
    im.path = path;
    im.shapes = shapes_new(c, o);
    out->ninputs = m.description->in.n;
    out->noutputs = m.description->out.n;
    out->inputs = describe_list(&im, &m.description->in);
    out->outputs = describe_list(&im, &m.description->out);
    cml_models(c->arena, &m, &models);
    ops = NEW_ARRAY(c->arena, OpTally, count_nodes(&models));
    for (uint32_t i = 0; i < models.n; i++) {
        const CmlNetwork *net = cml_network_of(models.at[i]);

        if (net ? !tally_layers(c, path, net, index, out, ops)
                : models.at[i]->program && !tally_operators(c, path, models.at[i], index, out, ops))
            return false;
    }
    return true;
}
