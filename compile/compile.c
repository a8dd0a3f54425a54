/* From a model file to code, step by step.  Every command goes through these functions; what is
 * printed, written or run is the command's own business. */
#include "compile/compile.h"
#include "formats/formats.h"
#include "ops/ops.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

const ProductRow product_table[] = {
#define EMIT(id, text, suffix, about) {text, suffix, about},
#include "compile/emit.def"
#undef EMIT
};

bool product_find(Diags *d, const char *text, Product *out)
{
    const char *names[PRODUCT_COUNT], *closest;

    for (int i = 0; i < PRODUCT_COUNT; i++) {
        names[i] = product_table[i].text;
        if (strcmp(names[i], text) == 0) {
            *out = (Product)i;
            return true;
        }
    }
    diag_error(d, E_USAGE, NO_LOC, "there is no kind of product called '%s'", text);
    if ((closest = str_closest(text, names, PRODUCT_COUNT)))
        diag_hint(d, "did you mean '%s'?", closest);
    else
        diag_hint(d, "--help=emit lists them");
    return false;
}

Product product_of_source(const char *target)
{
    const char *name = target ? target : "";
    size_t      n = strcspn(name, " ,");

#define SOURCE(backend, about, product, text, suffix, what)   \
    if (strlen(#backend) == n && !strncmp(name, #backend, n)) \
        return PRODUCT_##product;
#include "backends/backends.def"
    return PRODUCT_COUNT;
}

uint32_t product_sources(void)
{
    return 0
#define SOURCE(name, about, product, text, suffix, what) | 1u << PRODUCT_##product
#include "backends/backends.def"
        ;
}

const char *product_owner(Product p)
{
#define DEVICE(name, about, product, text, suffix, what) \
    if (p == PRODUCT_##product)                          \
        return #name;
#define SOURCE(name, about, product, text, suffix, what) \
    if (p == PRODUCT_##product)                          \
        return #name;
#include "backends/backends.def"
    return NULL;
}

bool product_fits(Product p, const char *target)
{
    size_t n = strcspn(target, " ,");

#define SIBLING(name, about, product)                                               \
    if (p == PRODUCT_##product && strlen(#name) == n && !strncmp(#name, target, n)) \
        return true;
#define DEVICE(name, about, product, text, suffix, what) SIBLING(name, about, product)
#define SOURCE(name, about, product, text, suffix, what) SIBLING(name, about, product)
#include "backends/backends.def"
    return !product_is_program(p);
}

bool product_is_program(Product p)
{
    return product_owner(p) != NULL;
}

Product product_of_path(const char *path)
{
    Product best = PRODUCT_COUNT;

    for (int i = 0; i < PRODUCT_COUNT; i++) {
        if (str_ends(path, product_table[i].suffix) &&
            (best == PRODUCT_COUNT ||
             strlen(product_table[i].suffix) > strlen(product_table[best].suffix)))
            best = (Product)i;
    }
    return best;
}

/* Of the machine that the host program is for. */
static const Target *host_of(const Target *t)
{
    return t->host ? t->host : t;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

bool compile_target(Ctx *c, Compiled *k)
{
    const char *text = k->o->target ? k->o->target : "llvm";

    c->target = target_with(c, text, k->o->machine, &k->backend);
    c->eval = &eval_jit;
    return c->target != NULL;
}

static ProductOptions product_options(const CompileOptions *o)
{
    return (ProductOptions){.nimages = o->images.n,
                            .images = o->images.at,
                            .nadds = o->adds.n,
                            .adds = o->adds.at,
                            .noutputs = o->tensors.n,
                            .outputs = o->tensors.at,
                            .nstates = o->states.n,
                            .states = o->states.at};
}

/* The inputs of --state. */
static const char *const *kept_states(Ctx *c, const CompileOptions *o, uint32_t *n)
{
    const char **names = NEW_ARRAY(c->arena, const char *, o->states.n + 1);

    for (*n = 0; *n < o->states.n; ++*n)
        names[*n] = o->states.at[*n].in;
    return names;
}

/* The arrays of --value are read; numbers wait for the types that the model has. */
static bool read_values(Ctx *c, Compiled *k, ImportOptions *import)
{
    const CompileOptions *o = k->o;
    ImportValue          *values = NEW_ARRAY(c->arena, ImportValue, o->values.n + 1);
    const char           *path;
    Array                 v;
    Bytes                 file;
    DType                 t;

    for (uint32_t i = 0; i < o->values.n; i++) {
        values[i] = o->values.at[i];
        if (*values[i].text != '@')
            continue;
        path = intern(c->strings, values[i].text + 1);
        if (!file_map(c->diags, path, &file) ||
            !npy_read(c->diags, c->arena, (Loc){.file = path}, file, &v))
            return false;
        vec_push(c->arena, &k->files, path);
        t = (DType){v.code == ARRAY_OPAQUE ? DT_BFLOAT : v.code, v.bits, 1};
        if (!dtype_known(t))
            return error_at(c, E_DIM, (Loc){.file = path}, "elements of %u bytes without a type",
                            v.bits / 8);
        values[i].value =
            const_new(c, values[i].name, type_tensor_i64(c, t, v.ndim, v.dims), v.data);
    }
    import->nvalues = o->values.n;
    import->values = values;
    return true;
}

static ImportOptions import_options(const CompileOptions *o)
{
    return (ImportOptions){.nshapes = o->shapes.n,
                           .ndims = o->dims.n,
                           .shapes = o->shapes.at,
                           .dims = o->dims.at,
                           .weights = o->weights,
                           .signature = o->signature};
}

bool compile_describe(Ctx *c, const CompileOptions *o, ModelSignature *out)
{
    const ImportOptions import = import_options(o);

    return frontend_describe(c, o->path, o->format, &import, out);
}

bool compile_import(Ctx *c, Compiled *k)
{
    const CompileOptions *o = k->o;
    const ProductOptions  product = product_options(o);
    ImportOptions         import = import_options(o);
    double                from = now();

    if (!read_values(c, k, &import))
        return false;
    import.kept = kept_states(c, o, &import.nkept);
    import.tensors = product_tensors(c, &product, &import.ntensors, &import.only_tensors);
    k->imported = frontend_import(c, o->path, o->format, &import, &k->files);
    if (k->imported)
        k->imported = product_edit(c, k->imported, &product);
    if (k->imported && !module_func(k->imported, "main"))
        k->imported =
            error_at(c, E_IMPORT, (Loc){.file = k->o->path}, "the module has no function 'main'");
    k->seconds[0] = now() - from;
    return k->imported != NULL;
}

/* The model's multiply-adds, before passes choose how they are done. */
static bool count_macs(Ctx *c, Compiled *k)
{
    const Module *typed = relay_infer(c, k->imported);

    if (!typed)
        return false;
    k->macs = relay_macs(c, typed);
    arena_reset(c->scratch);
    return true;
}

bool compile_graph(Ctx *c, Compiled *k)
{
    double from = now();

    if (!count_macs(c, k))
        return false;
    k->module = run_graph_passes(c, k->imported, &k->o->passes);
    k->seconds[1] = now() - from;
    return k->module != NULL;
}

static const char *base_name(const char *path)
{
    return strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
}

/* What all large floats of the model are stored as, if that is one type of 16 bits: the weights of
 * the product then are, too. */
static DType weights_type(Ctx *c, const Module *m)
{
    enum { LARGE = 1024 };
    DType      found = {0};
    int64_t    n;
    GlobalList reached = module_reached(c, m);

    for (uint32_t k = 0; k < reached.n; k++) {
        ExprList list = expr_post_order(c, reached.at[k].func);

        for (uint32_t i = 0; i < list.n; i++) {
            const Expr *e = list.at[i];

            if (e->kind != EXPR_CONST || !dtype_is_float(e->type->dtype) ||
                !type_elems(e->type, &n) || n < LARGE)
                continue;
            if (e->type->dtype.bits != 16 || (found.bits && !dtype_eq(found, e->type->dtype)))
                return DT_F32;
            found = e->type->dtype;
        }
    }
    return found;
}

/* Said before they are packed, and by us: linkers only count relocations that do not reach. */
static bool weights_fit(Ctx *c, const Plan *p)
{
    const char *triple = host_of(p->target)->triple;
    uint64_t    most = weights_inside(p->code.weights) ? object_blob_most(triple) : UINT64_MAX;

    if (p->weights_bytes <= most)
        return true;
    error_at(c, E_PACK, NO_LOC, "programs for '%s' hold at most %llu bytes of weights, not %llu",
             triple, (unsigned long long)most, (unsigned long long)p->weights_bytes);
    diag_hint(c->diags, "-fweights=file keeps them in a file of their own");
    return false;
}

bool compile_plan(Ctx *c, Compiled *k)
{
    double      from = now();
    PassOptions passes = k->o->passes;
    const Plan *p;
    Plan       *own;

    if (!passes.weights.bits && !c->target->host)
        passes.weights = weights_type(c, k->imported);
    if (!tuning_start(c, k, &passes))
        return false;
    p = lower(c, k->module, k->entry, &passes);
    k->seconds[2] = now() - from;
    if (!p || !tuning_covers(c, k, p))
        return false;
    own = DUP_ARRAY(c->arena, p, 1);
    own->model = base_name(k->o->path);
    own->macs = k->macs;
    if (k->o->labels) {
        TextList labels = {0};

        if (!product_labels(c->diags, c->arena, k->o->labels, &labels))
            return false;
        vec_push(c->arena, &k->files, k->o->labels);
        own->nlabels = labels.n;
        own->labels = labels.at;
    }
    if (k->o->machine)
        vec_push(c->arena, &k->files, k->o->machine);
    own->code = (PlanCode){.opt_level = (uint32_t)k->o->passes.opt_level,
                           .pic = k->o->pic,
                           .weights = k->o->weights_mode,
                           .machine = target_machine(c, own->target)};
    if (k->o->weights_mode == WEIGHTS_SECTION) {
        if (object_format_of(host_of(own->target)->triple) != OBJECT_ELF)
            return diag_error(c->diags, E_USAGE, NO_LOC,
                              "weights have sections of their own in ELF files only");
        own->code.section = k->o->weights_section ? k->o->weights_section : ".tvmcc_weights";
    } else if (k->o->weights_mode == WEIGHTS_EMBED && !k->backend->is_source &&
               object_data_is_large(host_of(own->target)->triple, own->weights_bytes)) {
        own->code.weights = WEIGHTS_SECTION;
        own->code.section = intern_printf(c->strings, ".lrodata.%s_weights", k->entry);
    }
    k->plan = own;
    return weights_fit(c, own);
}

/* ---- description ---- */

/* Everything that can change the bytes of the product. */
static Sha256 build_id(Ctx *c, const Compiled *k)
{
    Sha256Ctx h;

    sha256_init(&h);
    sha256_add(&h, compiler_version(), strlen(compiler_version()));
    for (const Plan *p = k->plan; p; p = p->next) {
        const Device *device = p->target->backend->device;
        const char   *compiler = device && device->compiler ? device->compiler(c, p->target) : "";

        sha256_add(&h, compiler, strlen(compiler));
    }
    sha256_add(&h, k->desc->plan_sha.b, sizeof k->desc->plan_sha.b);
    sha256_add(&h, k->desc->weights_sha.b, sizeof k->desc->weights_sha.b);
    sha256_add(&h, k->desc->model_sha.b, sizeof k->desc->model_sha.b);
    return sha256_end(&h);
}

void compile_start(Ctx *c, Compiled *k, const CompileOptions *o)
{
    const char *file = base_name(o->path);
    size_t      stem = strcspn(file, ".");

    *k = (Compiled){.o = o};
    c->cancel = o->cancel.asked ? &o->cancel : NULL;
    c->npath_maps = o->path_maps.n;
    c->path_maps = o->path_maps.at;
    k->entry = c_identifier(c->arena, o->entry ? o->entry : intern_n(c->strings, file, stem));
}

/* Of much memory, little of which stays with this process when it is a file's. */
static Sha256 sha256_of_much(Ctx *c, Bytes all)
{
    enum { SLICE = 4 << 20 };
    Sha256Ctx h;

    sha256_init(&h);
    for (size_t at = 0; at < all.n; at += SLICE) {
        Bytes slice = {all.at + at, all.n - at < SLICE ? all.n - at : SLICE};

        sha256_add(&h, slice.at, slice.n);
        file_forget(c->diags, slice);
    }
    return sha256_end(&h);
}

/* Zero unless it is asked for: hashing takes a while. */
static Sha256 model_sha(Ctx *c, const Compiled *k)
{
    Bytes  file;
    Sha256 none = {{0}};

    return k->o->hash_model && k->files.n && file_map(c->diags, k->files.at[0], &file)
               ? sha256_of_much(c, file)
               : none;
}

/* The operators of main as it was imported, in order of the table. */
static void list_operators(Ctx *c, const Module *m, ModelDesc *d)
{
    uint32_t *n = count_operators(c, m);
    OpCount  *ops = NEW_ARRAY(c->arena, OpCount, c->ops.n + 1);

    for (uint32_t i = 0; i < c->ops.n; i++)
        if (n[i])
            ops[d->nops++] = (OpCount){c->ops.at[i].text, n[i]};
    d->ops = ops;
}

bool compile_desc(Ctx *c, Compiled *k)
{
    ModelDesc *d = k->desc = desc_of_plan(c, k->plan);

    if (!d)
        return false;
    d->model = k->plan->model;
    d->weights_mode = k->plan->code.weights;
    d->weights_section = k->plan->code.section;
    d->toolchain = compiler_version();
    d->plan_sha = k->id ? k->id->plan : compile_plan_hash(c, k->plan);
    d->level = (uint32_t)k->plan->code.opt_level;
    d->machine = k->plan->code.machine;
    if (k->id) { /* hashes are known from there */
        d->weights_sha = k->id->weights;
        d->model_sha = k->id->model;
        d->build_id = k->id->build;
        d->nops = k->id->nops;
        d->ops = k->id->ops;
    } else {
        d->weights_sha = sha256_of_much(c, k->weights);
        d->model_sha = model_sha(c, k);
        d->build_id = build_id(c, k);
        if (k->imported)
            list_operators(c, k->imported, d);
    }
    memcpy(k->info.model_sha, d->model_sha.b, sizeof d->model_sha.b);
    memcpy(k->info.build_id, d->build_id.b, sizeof d->build_id.b);
    memcpy(k->info.weights_sha, d->weights_sha.b, sizeof d->weights_sha.b);
    k->info.header = d->header = header_hash(c->arena, d);
    return true;
}

/* ---- code ---- */

CodegenOptions compile_code_options(const Compiled *k)
{
    return (CodegenOptions){.entry = k->entry,
                            .header = k->header,
                            .opt_level = k->plan->code.opt_level,
                            .pic = k->plan->code.pic,
                            .embed_weights = k->plan->code.weights != WEIGHTS_FILE,
                            .extern_weights = k->plan->code.weights == WEIGHTS_EXTERN,
                            .weights_section = k->backend->is_source ? "" : k->plan->code.section,
                            .cache = k->o->passes.print_after ? NULL : k->o->cache,
                            .jobs = k->o->passes.jobs};
}

/* As the steps of a build read them.  What code passes and backends make of an index depends on the
 * order in which its parts came to be; so code is made of the text, here as there. */
static const TirModule *functions_as_read(Ctx *c, const Plan *p)
{
    StrBuf text = strbuf(c->arena);

    tir_print(c, p->tir, &text);
    return tir_parse(c, intern_printf(c->strings, "%s.plan", p->name),
                     (Bytes){(const uint8_t *)text.at, text.n});
}

bool compile_flat(Ctx *c, const Compiled *k, Plan *out)
{
    PassOptions o = k->o->passes;
    bool        ok = true;

    o.opt_level = (int)k->plan->code.opt_level;
    for (const Plan *p = k->plan; p && ok; p = p->next) {
        *out = *p;
        c->target = p->target;
        out->tir = functions_as_read(c, p);
        if (out->tir)
            out->tir = run_tir_passes(c, out->tir, &o, TIR_TO_CODE);
        ok = out->tir != NULL;
        if (p->next)
            out->next = NEW(c->arena, Plan);
        out = (Plan *)(uintptr_t)out->next;
    }
    c->target = k->plan->target;
    return ok;
}

bool compile_has_units(const Compiled *k, const Target *t)
{
    return k->backend->unit && !t->host && object_format_of(t->triple) == OBJECT_ELF;
}

static bool has_units(const Compiled *k)
{
    return compile_has_units(k, k->plan->target);
}

/* The entry functions of flat plans.  Those of a device's embed its code, and what is left to
 * compile is the plan of its host. */
static bool add_entry(Ctx *c, const CodegenInfo *info, Plan *first, CodegenOptions *o)
{
    for (Plan *p = first; p; p = (Plan *)(uintptr_t)p->next) {
        if (!p->target->host)
            continue;
        DeviceCode *code = NEW(c->arena, DeviceCode);
        c->target = p->target;
        if (!p->target->backend->device_code(c, p, o, code))
            return false;
        *p = plan_of_host(c, p, code);
    }
    o->host = entry_functions(c, first, o, info);
    return true;
}

/* A text of the device's kernels has none of the host's; one warning, about the first. */
static void warn_of_host_kernels(Ctx *c, const TirModule *m)
{
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        const Func *f = m->funcs[i];

        if (f->kind != FUNC_KERNEL || !f->loc.file)
            continue;
        diag_warn(c->diags, W_HOST_KERNELS, f->loc,
                  "kernel '%.*s' is the host's, so this text lacks it", (int)strcspn(f->name, "."),
                  f->name);
        diag_hint(c->diags, "--explain says why; an object or a library has all kernels");
        return;
    }
}

/* The whole plan through the backend at once. */
static bool whole(Ctx *c, Compiled *k, EmitKind kind, Bytes *out)
{
    CodegenOptions o = compile_code_options(k);
    Plan           flat;

    if (k->backend->is_source || object_format_of(host_of(k->plan->target)->triple) != OBJECT_ELF)
        o.weights = k->weights; /* else they are an object of their own */
    if (!compile_flat(c, k, &flat))
        return false;
    if (kind == EMIT_SOURCE && flat.target->host) {
        StrBuf text = strbuf(c->arena);
        bool   ok = k->backend->device->source(c, flat.tir, &text);

        warn_of_host_kernels(c, flat.tir);

        *out = (Bytes){(const uint8_t *)text.at, text.n};
        return ok;
    }
    return add_entry(c, &k->info, &flat, &o) &&
           flat.target->backend->codegen(c, &flat, &o, &k->info, kind, out);
}

bool compile_tir(Ctx *c, const Compiled *k, StrBuf *out)
{
    static const CodegenInfo nameless; /* equal programs have equal texts */
    CodegenOptions           o = compile_code_options(k);
    Plan                     flat;
    VEC(const Func *) funcs = {0};

    o.device_text = true;
    if (!compile_flat(c, k, &flat))
        return false;
    const TirModule *kernels = flat.tir;
    if (!add_entry(c, &nameless, &flat, &o))
        return false;
    for (uint32_t i = 0; i < kernels->nfuncs; i++)
        vec_push(c->arena, &funcs, kernels->funcs[i]);
    for (uint32_t i = 0; i < o.host->nfuncs; i++)
        vec_push(c->arena, &funcs, o.host->funcs[i]);
    tir_print(c, tirmod_data(c, tirmod_new(c, funcs.n, funcs.at), o.host->ndata, o.host->data),
              out);
    return true;
}

bool compile_host(Ctx *c, Compiled *k, Bytes *out)
{
    CodegenOptions o = compile_code_options(k);

    if (!has_units(k))
        return whole(c, k, EMIT_OBJECT, out);
    o.host_only = true;
    o.host = entry_functions(c, k->plan, &o, &k->info);
    o.opt_level = host_level(o.host, o.opt_level);
    return k->backend->codegen(c, k->plan, &o, &k->info, EMIT_OBJECT, out);
}

/* What was asked to be shown of the code passes: units run them unseen, in other threads. */
static bool show_passes(Ctx *c, const Compiled *k)
{
    const PassOptions *o = &k->o->passes;
    Plan               flat;

    return !(o->print_after || o->time_passes || o->verify_each) || compile_flat(c, k, &flat);
}

bool compile_code(Ctx *c, Compiled *k, EmitKind kind, Bytes *out)
{
    double    from = now();
    Bytes     part[2];
    BytesList object;
    bool      ok;

    if (kind != EMIT_OBJECT || !has_units(k))
        ok = whole(c, k, kind, out);
    else {
        ok = show_passes(c, k) && compile_units(c, k, (Shard){0, 1}, &part[0]) &&
             compile_host(c, k, &part[1]) &&
             elf_merge(c->diags, c->arena, 2, part, NULL, NULL, &object);
        if (ok)
            *out = pieces_join(c->arena, object);
    }
    k->seconds[3] = now() - from;
    return ok;
}

bool compile_join(Ctx *c, Compiled *k, Bytes code, BytesList *out)
{
    const char *symbol = intern_printf(c->strings, "%s_weights", k->entry);
    const char *section = k->plan->code.section;

    if (!weights_inside(k->plan->code.weights) || !k->weights.n ||
        object_format_of(host_of(k->plan->target)->triple) != OBJECT_ELF) { /* has them already */
        *out = (BytesList){1, DUP_ARRAY(c->arena, &code, 1)};
        return true;
    }
    if (!section)
        section = intern_printf(c->strings, ".rodata.%s", symbol);
    return elf_join(c->diags, c->arena, code, section, symbol, k->weights, out);
}

bool compile_blob(Ctx *c, Compiled *k, Bytes *out)
{
    const CodegenOptions o = compile_code_options(k);
    const Target        *cpu = host_of(k->plan->target);

    if (!weights_inside(k->plan->code.weights) || !k->plan->weights_bytes)
        return backend_cpu()->unit(c, tirmod_new(c, 0, NULL), cpu, &o, out);
    return object_blob(c->diags, c->arena, cpu->triple, cpu->abi, k->plan->code.section,
                       intern_printf(c->strings, "%s_weights", k->entry), k->weights, out);
}

void compile_tell(const Compiled *k, const char *step, uint32_t done, uint32_t total)
{
    if (k->o->progress)
        k->o->progress(k->o->progress_user, step, done, total);
}

typedef struct {
    const char *name;
    bool (*run)(Ctx *c, Compiled *k);
} CompileStep;

static bool run_steps(Ctx *c, Compiled *k, uint32_t n, const CompileStep *steps)
{
    for (uint32_t i = 0; i < n; i++) {
        compile_tell(k, steps[i].name, i, n + 1);
        if (ctx_cancelled(c) || !steps[i].run(c, k) || diag_errors(c->diags))
            return false;
    }
    return true;
}

bool compile_all(Ctx *c, Compiled *k)
{
    static const CompileStep alone[] = {
        {"target", compile_target}, {"import", compile_import},   {"graph passes", compile_graph},
        {"kernels", compile_plan},  {"weights", compile_weights}, {"description", compile_desc}};
    static const CompileStep several[] = {{"alternatives", compile_alternatives},
                                          {"description", compile_desc}};

    if (k->o->variants.n || k->o->buckets.n || k->o->fallbacks.n)
        return run_steps(c, k, COUNT(several), several);
    return run_steps(c, k, COUNT(alone), alone);
}

const char *compiler_version(void)
{
    return "tvmcc " TVMCC_VERSION;
}
