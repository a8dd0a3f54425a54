/* tvmcc inspect: what a model file asks for and gives, or what a product says about itself. */
#include "base/json.h"
#include "driver/html.h"

#include <string.h>
#include <sys/stat.h>
#include <tvmcc/runtime.h>

static const char *dtype_name(Arena *a, uint8_t code, uint32_t bits)
{
    DType t = {code, (uint8_t)bits, 1};

    return code == TVMCC_BOOL ? "bool"
                              : arena_printf(a, "%s%u",
                                             dtype_is_float(t)    ? "f"
                                             : code == TVMCC_UINT ? "u"
                                                                  : "i",
                                             bits);
}

static const char *dims_text(Arena *a, uint32_t n, const int64_t *dims)
{
    StrBuf s = strbuf(a);

    for (uint32_t j = 0; j < n; j++)
        str_printf(&s, "%s%lld", j ? ", " : "", (long long)dims[j]);
    return s.n ? s.at : "";
}

static void show_tensors(Driver *driver, const char *what, const tvmcc_tensor_info *t, uint32_t n,
                         const tvmcc_model_info *info)
{
    for (uint32_t i = 0; i < n; i++)
        say(driver, "%s %s: (%s), %s, %zu bytes%s%s%s%s\n", what, t[i].name,
            dims_text(driver->arena, t[i].ndim, t[i].dims),
            dtype_name(driver->arena, t[i].code, t[i].bits), t[i].bytes,
            t[i].layout ? ", layout " : "", t[i].layout ? t[i].layout : "",
            t[i].state_input ? ", state of input " : "",
            t[i].state_input ? info->inputs[t[i].state_input - 1].name : "");
}

/* "N=4, S=128" */
static const char *bucket_text(Arena *a, const tvmcc_model_info *info, uint32_t b)
{
    StrBuf s = strbuf(a);

    for (uint32_t k = 0; k < info->nbucket_dims; k++)
        str_printf(&s, "%s%s=%lld", k ? ", " : "", info->bucket_dims[k],
                   (long long)info->bucket_sizes[b * info->nbucket_dims + k]);
    return s.at;
}

static void json_tensor(StrBuf *s, bool first, const char *name, const char *dims,
                        const char *dtype)
{
    str_add(s, first ? "" : ", ");
    str_add(s, "{\"name\": ");
    str_add_json(s, name);
    str_printf(s, ", \"shape\": [%s], \"dtype\": \"%s\"}", dims, dtype);
}

static void json_tensors(StrBuf *s, const char *what, const tvmcc_tensor_info *t, uint32_t n)
{
    str_printf(s, ", \"%s\": [", what);
    for (uint32_t i = 0; i < n; i++)
        json_tensor(s, i == 0, t[i].name, dims_text(s->arena, t[i].ndim, t[i].dims),
                    dtype_name(s->arena, t[i].code, t[i].bits));
    str_add(s, "]");
}

static const char *mode_name(const tvmcc_weight_info *w)
{
    return w->mode == TVMCC_WEIGHTS_EMBED    ? "embed"
           : w->mode == TVMCC_WEIGHTS_EXTERN ? "extern"
                                             : "file";
}

static void product_json(Driver *driver, const tvmcc_model_info *info)
{
    StrBuf s = strbuf(driver->arena);

    str_add(&s, "{\"model\": ");
    str_add_json(&s, info->name);
    str_printf(&s, ", \"abi\": %u, \"toolchain\": ", info->abi);
    str_add_json(&s, info->toolchain);
    str_add(&s, ", \"targets\": ");
    str_add_json(&s, info->targets);
    json_tensors(&s, "inputs", info->inputs, info->ninputs);
    json_tensors(&s, "outputs", info->outputs, info->noutputs);
    str_printf(&s,
               ", \"arena\": {\"shared\": %zu, \"private\": %zu, \"align\": %u}, \"weights\": [",
               info->arena_shared, info->arena_private, info->arena_align);
    for (uint32_t i = 0; i < info->nweights; i++)
        str_printf(&s, "%s{\"bytes\": %zu, \"mode\": \"%s\"}", i ? ", " : "",
                   info->weights[i].bytes, mode_name(&info->weights[i]));
    str_add(&s, "]");
    for (uint32_t b = 0, n = tvmrt_buckets(info); b < n; b++) {
        str_add(&s, b ? ", {" : ", \"buckets\": [{");
        for (uint32_t k = 0; k < info->nbucket_dims; k++) {
            str_add(&s, k ? ", " : "");
            str_add_json(&s, info->bucket_dims[k]);
            str_printf(&s, ": %lld", (long long)info->bucket_sizes[b * info->nbucket_dims + k]);
        }
        str_add(&s, b + 1 == n ? "}]" : "}");
    }
    say(driver, "%s}\n", s.at);
}

static void product_text(Driver *driver, const tvmcc_model_info *info)
{
    say(driver, "%s: ABI %u, %s, %s\n", info->name, info->abi, info->toolchain, info->targets);
    show_tensors(driver, "input ", info->inputs, info->ninputs, info);
    show_tensors(driver, "output", info->outputs, info->noutputs, info);
    say(driver, "arena %zu bytes and %zu a thread, aligned to %u\n", info->arena_shared,
        info->arena_private, info->arena_align);
    for (uint32_t i = 0; i < info->nweights; i++)
        say(driver, "weights %zu bytes, %s\n", info->weights[i].bytes,
            info->weights[i].mode == TVMCC_WEIGHTS_EMBED    ? "in the object"
            : info->weights[i].mode == TVMCC_WEIGHTS_EXTERN ? "of the caller"
                                                            : "in a file");
    for (uint32_t b = 0; b < tvmrt_buckets(info); b++)
        say(driver, "bucket %u: %s, arena %zu bytes and %zu a thread\n", b,
            bucket_text(driver->arena, info, b), info->buckets[b]->arena_shared,
            info->buckets[b]->arena_private);
}

/* ---- archives that are not for this machine, or compressed ---- */

static const char *text_of(json_t *o, const char *key)
{
    json_t *v = json_object_get(o, key);

    return json_is_string(v) ? json_string_value(v) : "?";
}

static void say_manifest(Driver *driver, Bytes text)
{
    json_t *root = json_read(text, NULL);
    json_t *item;
    size_t  i;

    say(driver, "%s %s\n", text_of(root, "name"), text_of(root, "version"));
    json_array_foreach(json_object_get(root, "models"), i, item)
        say(driver, "model %s, of %s, for %s\n", text_of(item, "entry"), text_of(item, "model"),
            text_of(item, "targets"));
    json_array_foreach(json_object_get(root, "files"), i, item)
    {
        json_t *bytes = json_object_get(item, "bytes");

        say(driver, "%12.0f %s\n", json_number_value(bytes), text_of(item, "path"));
    }
    json_decref(root);
}

/* From manifest.json; in other layouts, the members. */
static void say_members(Driver *driver, const Member *m, uint32_t n)
{
    if (driver->opt.html) {
        diag_error(driver->diags, E_USAGE, NO_LOC,
                   "there is no page for an archive that is not for this machine");
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        const char *slash = strchr(m[i].path, '/');

        if (strcmp(slash ? slash + 1 : m[i].path, "manifest.json") != 0)
            continue;
        if (driver->opt.json)
            say(driver, "%.*s", (int)m[i].data.n, (const char *)m[i].data.at);
        else
            say_manifest(driver, m[i].data);
        return;
    }
    if (driver->opt.json) {
        StrBuf s = strbuf(driver->arena);

        str_add(&s, "{\"files\": [");
        for (uint32_t i = 0; i < n; i++) {
            str_printf(&s, "%s{\"bytes\": %zu, \"path\": ", i ? ", " : "", m[i].data.n);
            str_add_json(&s, m[i].path);
            str_add(&s, "}");
        }
        say(driver, "%s]}\n", s.at);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        say(driver, "%12zu %s\n", m[i].data.n, m[i].path);
}

/* ---- products: nothing of them is run ---- */

static bool is_wanted(Driver *driver, const tvmcc_model_info *info)
{
    return !driver->opt.compile.entry || !strcmp(driver->opt.compile.entry, info->name);
}

static void say_info(Driver *driver, const tvmcc_model_info *info)
{
    if (driver->opt.html)
        html_product(driver, info, driver->opt.html);
    else
        (driver->opt.json ? product_json : product_text)(driver, info);
}

static void say_infos(Driver *driver, const char *path, const ModelInfos *infos)
{
    uint32_t wanted = 0;

    for (uint32_t i = 0; i < infos->n; i++)
        wanted += is_wanted(driver, infos->at[i]);
    if (driver->opt.html && wanted > 1)
        diag_error(driver->diags, E_USAGE, (Loc){.file = path},
                   "there are several models in it, and a page is of one: --entry chooses");
    else if (!wanted)
        diag_error(driver->diags, E_PACK, (Loc){.file = path}, "it has no model '%s'",
                   driver->opt.compile.entry);
    for (uint32_t i = 0; i < infos->n; i++) {
        if (!wanted || (driver->opt.html && wanted > 1))
            diag_note(driver->diags, NO_LOC, "it has '%s'", infos->at[i]->name);
        else if (is_wanted(driver, infos->at[i]))
            say_info(driver, infos->at[i]);
    }
}

/* The library of an archive for this machine, if it has one and no more. */
static const Member *own_library(Driver *driver, const Member *m, uint32_t n)
{
    Ctx          *c = ctx_new(driver->arena, diags_new(driver->arena), op_table);
    const Target *here = backend_cpu()->parse_target(c, "llvm");
    const Member *found = NULL;
    ObjectTarget  own;
    Object        f;

    bool known = here && elf_target(c->diags, here->triple, &own);

    ctx_free(c);
    for (uint32_t i = 0; known && i < n; i++) {
        if (!strstr(m[i].path, "lib/") || !str_ends(m[i].path, ".so") ||
            !elf_read(diags_new(driver->arena), driver->arena, m[i].path, m[i].data, &f) ||
            f.target.machine != own.machine || f.target.bits != own.bits)
            continue;
        if (found)
            return NULL;
        found = &m[i];
    }
    return found;
}

static void inspect_members(Driver *driver, const char *path, const Member *m, uint32_t n)
{
    const Member *library;
    ModelInfos    infos = {0};

    if (!n)
        diag_error(driver->diags, E_PACK, (Loc){.file = path}, "nothing is in it");
    else if (pack_format(path) != PACK_NONE && pack_format(path) != PACK_TAR) {
        say_members(driver, m, n);
    } else if (!(library = own_library(driver, m, n))) {
        say_members(driver, m, n);
    } else if (model_infos(driver->diags, driver->arena,
                           arena_printf(driver->arena, "%s(%s)", path, library->path),
                           library->data, &infos)) {
        say_infos(driver, path, &infos);
    }
}

static void inspect_product(Driver *driver, const char *path)
{
    Diags      *d = driver->diags;
    ModelInfos  infos = {0};
    struct stat st;
    Bytes       file;
    SourceInfo  source;
    Member     *m;
    uint32_t    n;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        if (bundle_read(d, driver->arena, path, (Bytes){0}, &m, &n))
            inspect_members(driver, path, m, n);
    } else if (file_map(d, path, &file)) {
        if (pack_means(path, file)) {
            if (bundle_read(d, driver->arena, path, file, &m, &n))
                inspect_members(driver, path, m, n);
        } else if (source_read(driver->arena, file, &source)) {
            diag_error(d, E_UNSUPPORTED, (Loc){.file = path},
                       "this is the model '%s' as C, for '%s'", source.entry, source.target);
            diag_hint(d, "its header lists inputs and outputs; its archive, or an object that a "
                         "compiler makes of it, can be inspected");
        } else if (model_infos(d, driver->arena, path, file, &infos)) {
            say_infos(driver, path, &infos);
        }
    }
}

/* ---- models ---- */

static uint32_t count_outputs(const Module *m)
{
    const Type *t = func_body(module_func(m, "main"))->type;

    return t->kind == TYPE_TUPLE ? t->n : 1;
}

/* Outputs without names are counted, as lowering does. */
static const char *output_name(Arena *a, const Module *m, uint32_t i)
{
    return i < m->noutputs ? m->output_names[i] : arena_printf(a, "output%u", i);
}

static const Type *output_type(const Module *m, uint32_t i)
{
    const Type *t = func_body(module_func(m, "main"))->type;

    return t->kind == TYPE_TUPLE ? t->parts[i] : t;
}

/* Of models that have several: which this is. */
static void say_signatures(Driver *driver, const ModelSignature *m)
{
    if (m->nnames < 2)
        return;
    say(driver, "signature %s of", m->name ? m->name : "(none)");
    for (uint32_t i = 0; i < m->nnames; i++)
        say(driver, "%s %s", i ? "," : "", m->names[i]);
    say(driver, "\n");
}

static void json_signatures(StrBuf *s, const ModelSignature *m)
{
    if (m->nnames == 0)
        return;
    str_add(s, "\"signature\": ");
    if (m->name)
        str_add_json(s, m->name);
    else
        str_add(s, "null");
    for (uint32_t i = 0; i < m->nnames; i++) {
        str_add(s, i ? ", " : ", \"signatures\": [");
        str_add_json(s, m->names[i]);
    }
    str_add(s, "], ");
}

static void json_value(Job *job, StrBuf *s, bool first, const char *name, const Type *t)
{
    StrBuf dims = strbuf(job->c->arena);

    for (uint32_t i = 0; t->kind == TYPE_TENSOR && i < t->n; i++) {
        int64_t v = 0;
        if (type_dim(t, i, &v))
            str_printf(&dims, "%s%lld", i ? ", " : "", (long long)v);
        else
            str_printf(&dims, "%snull", i ? ", " : "");
    }
    json_tensor(s, first, name, dims.n ? dims.at : "",
                t->kind == TYPE_TENSOR ? dtype_text(job->c, t->dtype) : type_text(job->c, t));
}

void job_signature_json(Job *job, StrBuf *s)
{
    const Module *m = job->k.imported;
    const Expr   *f = module_func(m, "main");

    str_add(s, "\"inputs\": [");
    for (uint32_t i = 0; i < func_nparams(f); i++)
        json_value(job, s, i == 0, func_param(f, i)->u.var.name, func_param(f, i)->type);
    str_add(s, "], \"outputs\": [");
    for (uint32_t i = 0; i < count_outputs(m); i++)
        json_value(job, s, i == 0, output_name(job->c->arena, m, i), output_type(m, i));
    str_add(s, "]");
}

/* ---- models with open dimensions: as the file has them ---- */

/* "N, 3, ?", in JSON "N" in quotes and null. */
static const char *open_dims(Arena *a, const SignatureTensor *t, bool json)
{
    StrBuf s = strbuf(a);

    for (uint32_t i = 0; t->ndim != UINT32_MAX && i < t->ndim; i++) {
        const InputDim *d = &t->dims[i];

        str_add(&s, i ? ", " : "");
        if (d->value >= 0)
            str_printf(&s, "%lld", (long long)d->value);
        else if (d->name && json)
            str_add_json(&s, d->name);
        else
            str_add(&s, d->name ? d->name : json ? "null" : "?");
    }
    return s.n ? s.at : "";
}

static void say_open_tensors(Driver *driver, const char *what, const SignatureTensor *t, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (t[i].ndim == UINT32_MAX)
            say(driver, "%s %s: %s of any shape\n", what, t[i].name, t[i].type);
        else
            say(driver, "%s %s: Tensor[(%s), %s]\n", what, t[i].name,
                open_dims(driver->arena, &t[i], false), t[i].type);
}

/* Names of the inputs' dimensions, each once, as the options that give them a value. */
static void say_open_names(Driver *driver, Ctx *c, const ModelSignature *m)
{
    StrBuf names = strbuf(driver->arena), shapes = strbuf(driver->arena);
    Map   *had = map_new(driver->arena);

    for (uint32_t i = 0; i < m->ninputs; i++) {
        const SignatureTensor *t = &m->inputs[i];
        bool                   nameless = t->ndim == UINT32_MAX;

        for (uint32_t k = 0; t->ndim != UINT32_MAX && k < t->ndim; k++) {
            const char *name = t->dims[k].name ? intern(c->strings, t->dims[k].name) : NULL;

            nameless |= t->dims[k].value < 0 && !name;
            if (!name || map_get(had, PTR_KEY(name)))
                continue;
            map_put(had, PTR_KEY(name), (void *)(uintptr_t)name);
            str_printf(&names, " --dim %s=..", name);
        }
        if (t->kind == SIGNATURE_SEQUENCE || t->kind == SIGNATURE_OPTIONAL_SEQUENCE)
            str_printf(&names, " --dim %s=..", t->name);
        else if (nameless)
            str_printf(&shapes, " --shape '%s:[..]'", t->name);
    }
    say(driver, "open:%s%s\n", names.n ? names.at : "", shapes.n ? shapes.at : "");
}

static void json_open_tensors(StrBuf *s, const char *what, const SignatureTensor *t, uint32_t n)
{
    str_printf(s, "\"%s\": [", what);
    for (uint32_t i = 0; i < n; i++) {
        str_add(s, i ? ", {\"name\": " : "{\"name\": ");
        str_add_json(s, t[i].name);
        str_add(s, ", \"shape\": ");
        if (t[i].ndim == UINT32_MAX)
            str_add(s, "null");
        else
            str_printf(s, "[%s]", open_dims(s->arena, &t[i], true));
        str_printf(s, ", \"dtype\": \"%s\"}", t[i].type);
    }
    str_add(s, "]");
}

/* ---- the other signatures of a model ---- */

/* Signature i, if it is another one than `m` and there is more to say of it than that it failed. */
static bool describe_other(Job *job, const ModelSignature *m, uint32_t i, ModelSignature *out)
{
    CompileOptions o = *job->k.o;
    Diags         *d = job->c->diags;
    uint32_t       before = diag_errors(d);

    *out = (ModelSignature){0};
    if (o.signature || (m->name && !strcmp(m->names[i], m->name)))
        return false;
    o.signature = m->names[i];
    if (compile_describe(job->c, &o, out))
        return true;
    diag_drop(d, before);
    return false;
}

/* What they take and give as the file has them; none if one was asked for. */
static void say_others(Driver *driver, Job *job, const ModelSignature *m)
{
    ModelSignature other;

    for (uint32_t i = 0; i < m->nnames; i++) {
        if (!describe_other(job, m, i, &other))
            continue;
        say(driver, "signature %s\n", m->names[i]);
        say_open_tensors(driver, "input ", other.inputs, other.ninputs);
        say_open_tensors(driver, "output", other.outputs, other.noutputs);
    }
}

static void json_others(Job *job, StrBuf *s, const ModelSignature *m)
{
    ModelSignature other;
    bool           first = true;

    for (uint32_t i = 0; i < m->nnames; i++) {
        if (!describe_other(job, m, i, &other))
            continue;
        str_add(s, first ? ", \"others\": [{\"signature\": " : ", {\"signature\": ");
        str_add_json(s, m->names[i]);
        str_add(s, ", ");
        json_open_tensors(s, "inputs", other.inputs, other.ninputs);
        str_add(s, ", ");
        json_open_tensors(s, "outputs", other.outputs, other.noutputs);
        str_add(s, "}");
        first = false;
    }
    str_add(s, first ? "" : "]");
}

static void say_open(Driver *driver, Job *job, const ModelSignature *m)
{
    say_signatures(driver, m);
    say_open_tensors(driver, "input ", m->inputs, m->ninputs);
    say_open_tensors(driver, "output", m->outputs, m->noutputs);
    say_open_names(driver, job->c, m);
    for (uint32_t i = 0; i < m->nops; i++)
        say(driver, "%6u %s\n", m->ops[i].count, m->ops[i].name);
    say_others(driver, job, m);
}

static void say_open_json(Driver *driver, Job *job, const ModelSignature *m)
{
    StrBuf s = strbuf(driver->arena);

    str_add(&s, "{");
    json_signatures(&s, m);
    json_open_tensors(&s, "inputs", m->inputs, m->ninputs);
    str_add(&s, ", ");
    json_open_tensors(&s, "outputs", m->outputs, m->noutputs);
    str_add(&s, ", \"operators\": {");
    for (uint32_t i = 0; i < m->nops; i++) {
        str_add(&s, i ? ", " : "");
        str_add_json(&s, m->ops[i].name);
        str_printf(&s, ": %u", m->ops[i].count);
    }
    str_add(&s, "}");
    json_others(job, &s, m);
    say(driver, "%s}\n", s.at);
}

/* A size that no import would take for a batch of 1. */
static bool is_open(const ModelSignature *m)
{
    for (uint32_t i = 0; i < m->ninputs; i++) {
        const SignatureTensor *t = &m->inputs[i];

        if (t->ndim == UINT32_MAX)
            return true;
        for (uint32_t k = 1; k < t->ndim; k++)
            if (t->dims[k].value < 0)
                return true;
    }
    return false;
}

/* What the file says; false: nothing. */
static bool describe_model(Job *job, ModelSignature *m)
{
    Diags   *d = job->c->diags;
    uint32_t before = diag_errors(d);

    if (compile_describe(job->c, job->k.o, m))
        return true;
    diag_drop(d, before); /* import says it */
    *m = (ModelSignature){0};
    return false;
}

/* Sizes are missing, and nobody gave any: what the file says is the answer.  `failed`: an import
 * said what else is wrong, after the first `errors`. */
static bool inspect_open(Driver *driver, Job *job, const ModelSignature *m, bool failed,
                         uint32_t errors)
{
    const CompileOptions *o = job->k.o;
    Diags                *d = job->c->diags;

    if (driver->opt.html || o->shapes.n || o->dims.n || o->values.n)
        return false;
    if (!failed && !is_open(m))
        return false;
    if (failed && diag_all_are(d, errors, E_DIM))
        diag_drop(d, errors);
    if (driver->opt.json)
        say_open_json(driver, job, m);
    else
        say_open(driver, job, m);
    return true;
}

/* ---- a model ---- */

static void model_json(Driver *driver, Job *job, const ModelSignature *is)
{
    uint32_t         *n = count_operators(job->c, job->k.imported);
    StrBuf            s = strbuf(driver->arena);
    bool              first = true;
    const WeightCount w = count_weights(job->c, job->k.imported);

    str_add(&s, "{");
    json_signatures(&s, is);
    job_signature_json(job, &s);
    str_add(&s, ", \"operators\": {");
    for (uint32_t i = 0; i < job->c->ops.n; i++) {
        if (!n[i])
            continue;
        str_printf(&s, "%s\"%s\": %u", first ? "" : ", ", job->c->ops.at[i].text, n[i]);
        first = false;
    }
    str_printf(&s,
               "}, \"weights\": {\"constants\": %u, \"numbers\": %lld, \"bytes\": %lld}, "
               "\"multiply_adds\": %lld",
               w.n, (long long)w.cells, (long long)w.bytes,
               (long long)relay_macs(job->c, job->k.imported));
    json_others(job, &s, is);
    say(driver, "%s}\n", s.at);
}

static void model_text(Driver *driver, Job *job, const ModelSignature *is)
{
    const Module *m = job->k.imported;
    const Expr   *f = module_func(m, "main");
    uint32_t     *n = count_operators(job->c, m);
    WeightCount   w = count_weights(job->c, m);

    say_signatures(driver, is);
    for (uint32_t i = 0; i < func_nparams(f); i++)
        say(driver, "input  %s: %s\n", func_param(f, i)->u.var.name,
            type_text(job->c, func_param(f, i)->type));
    for (uint32_t i = 0; i < count_outputs(m); i++)
        say(driver, "output %s: %s\n", output_name(driver->arena, m, i),
            type_text(job->c, output_type(m, i)));
    say(driver, "weights %lld in %u constants, %lld bytes; %lld multiply-adds\n",
        (long long)w.cells, w.n, (long long)w.bytes, (long long)relay_macs(job->c, m));
    for (uint32_t i = 0; i < job->c->ops.n; i++)
        if (n[i])
            say(driver, "%6u %s\n", n[i], job->c->ops.at[i].text);
    say_others(driver, job, is);
}

int cmd_inspect(Driver *driver)
{
    const TextList *in = &driver->opt.inputs;
    Job             job;
    uint32_t        errors;
    ModelSignature  says;
    bool            described;

    if (in->n == 1 && job_is_product(driver->arena, in->at[0]) &&
        !options_fit_product(driver->diags, &driver->opt, in->at[0]))
        return 0;
    if (driver->opt.inputs.n == 1 && job_is_product(driver->arena, driver->opt.inputs.at[0])) {
        inspect_product(driver, driver->opt.inputs.at[0]);
        return 0;
    }
    if (!job_start(driver, &job, "llvm") || !compile_target(job.c, &job.k))
        return 0;
    errors = diag_errors(job.c->diags);
    described = describe_model(&job, &says);
    if (described && inspect_open(driver, &job, &says, false, errors))
        return 0;
    if (!compile_import(job.c, &job.k)) {
        if (described)
            inspect_open(driver, &job, &says, true, errors);
        return 0;
    }
    if (driver->opt.html)
        html_model(driver, &job, driver->opt.html);
    else if (driver->opt.json)
        model_json(driver, &job, &says);
    else
        model_text(driver, &job, &says);
    return 0;
}
