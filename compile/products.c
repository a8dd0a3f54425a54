/* What comes out of a compile, in memory and in files.
 *
 * Everything is made in memory first, but for the weights where one file has them: these are packed
 * into its temporary (base's FileOut).  Then it is written, in a way that leaves no half file and
 * keeps files whose bytes did not change.  Some files lie beside others: the header beside the
 * object, weights and labels where the runtime looks for them. */
#include "compile/products.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool product_has_place(const char *path)
{
    struct stat st;

    return strcmp(path, "-") && (stat(path, &st) || S_ISREG(st.st_mode));
}

bool product_put(Products *p, const char *path, BytesList content)
{
    bool early = p->early && !strcmp(path, p->early_path);

    if (diag_errors(p->c->diags) || ctx_cancelled(p->c))
        return false; /* warnings that -Werror made errors, too */
    if (!strcmp(path, "-"))
        compile_tell(p->k, NULL, 0, 0); /* it may go to the same terminal */
    if (early ? !file_out_finish(p->early, content, false)
              : !file_write_pieces(p->c->diags, path, content))
        return false;
    if (p->k->o->verbose)
        fprintf(stderr, "tvmcc: %zu bytes to %s\n", pieces_size(content), path);
    if (strcmp(path, "-"))
        vec_push(p->c->arena, &p->outputs, path);
    return true;
}

static bool write_out(Products *p, const char *path, Bytes content)
{
    return product_put(p, path, (BytesList){1, &content});
}

static Bytes text_bytes(StrBuf s)
{
    return (Bytes){(const uint8_t *)s.at, s.n};
}

/* Whose machine code objects have. */
static const Target *object_target(const Ctx *c)
{
    return c->target->host ? c->target->host : c->target;
}

bool product_object(Products *p)
{
    Ctx        *c = p->c;
    Compiled   *k = p->k;
    AuditReport report;
    AuditRules  rules = {.entry = k->entry,
                         .no_pic = !k->plan->code.pic,
                         .max_code = p->k->o->max_code,
                         .no_libm = object_target(c)->no_libm};

    if (p->object.n)
        return true;
    compile_tell(k, "code", 6, 7);
    return compile_code(c, k, EMIT_OBJECT, &p->code) &&
           audit_object(c->diags, c->arena, p->stem, p->code, &rules, &report) &&
           compile_join(c, k, p->code, &p->object);
}

static Bytes make_header(Products *p)
{
    return header_text(p->c->arena, p->k->desc);
}

static bool make_library(Products *p, Bytes *out)
{
    const char *member = intern_printf(p->c->strings, "%s.o", p->k->entry);
    Member      m = {.path = member, .data = pieces_join(p->c->arena, p->object)};

    return ar_library(p->c->diags, p->c->arena, &m, 1, out);
}

LinkJob product_link_job(Products *p, const char *path, const char *soname,
                         const char *const *object)
{
    Ctx        *c = p->c;
    const char *triple = object_target(c)->triple;

    return (LinkJob){.output = path,
                     .soname = soname,
                     .triple = triple,
                     .nobjects = 1,
                     .objects = object,
                     .native = !strcmp(triple, backend_cpu()->parse_target(c, "llvm")->triple),
                     .verbose = p->k->o->verbose};
}

/* A shared library is linked from an object on disk, beside the output. */
static bool link_so(Products *p, const char *path, const char *soname)
{
    Ctx        *c = p->c;
    bool        early = p->early && !strcmp(path, p->early_path);
    FileOut    *out = early ? p->early : file_out_new(c->diags, c->arena, path);
    bool        ok = out && file_out_finish(out, p->object, true);
    const char *object = ok ? file_out_temporary(out) : NULL;
    LinkJob     job = product_link_job(p, path, soname, &object);

    ok = ok && link_shared(c->diags, c->arena, &job);
    file_out_drop(out);
    return ok;
}

/* A shared library as bytes, by way of a temporary file; it is called lib<entry>.so. */
static bool make_shared(Products *p, Bytes *out)
{
    Ctx        *c = p->c;
    const char *stem = p->stem, *folder = NULL, *so = NULL;

    if (stem && !product_has_place(stem)) /* "-" */
        stem = NULL;
    if (!stem && (folder = file_temporary_folder(c->diags, c->arena)))
        stem = arena_printf(c->arena, "%s/%s", folder, p->k->entry);
    if (stem)
        so = file_temporary(c->diags, c->arena, stem, 0666);
    bool ok = so && link_so(p, so, intern_printf(c->strings, "lib%s.so", p->k->entry)) &&
              file_read(c->diags, c->arena, so, out);
    if (so)
        file_drop(so);
    if (folder)
        file_drop_folder(folder);
    return ok;
}

/* As a weights file; where they were packed into a file, the header goes before them there. */
static bool whole_weights(const Products *p, Bytes *out)
{
    const Compiled *k = p->k;
    Sha256          sha = k->desc->weights_sha;

    if (!k->o->weights_out || !k->weights.n) {
        *out = weights_file(p->c->arena, k->weights, sha);
        return true;
    }
    *out = (Bytes){k->weights.at - WEIGHTS_AT, WEIGHTS_AT + k->weights.n};
    return file_out_put(k->o->weights_out, 0, weights_pieces(p->c->arena, k->weights, sha).at[0]);
}

static bool make_bundle(Products *p, Product kind, BytesList *out)
{
    Ctx                    *c = p->c;
    Compiled               *k = p->k;
    StrBuf                  relay = strbuf(c->arena);
    Member                 *members;
    uint32_t                n;
    BundlePart              part = {.desc = k->desc, .metadata = metadata_text(c->arena, k->desc)};
    Bundle                  bundle = {.nparts = 1, .parts = &part, .epoch = p->k->o->epoch};
    static const PackFormat formats[] = {[PRODUCT_TAR] = PACK_TAR,
                                         [PRODUCT_TGZ] = PACK_TGZ,
                                         [PRODUCT_TZST] = PACK_TZST,
                                         [PRODUCT_TXZ] = PACK_TXZ,
                                         [PRODUCT_ZIP] = PACK_ZIP};

    part.header = make_header(p);
    if (k->backend->is_source ? !compile_code(c, k, EMIT_SOURCE, &part.source)
                              : !make_library(p, &part.library))
        return false;
    if (!k->backend->is_source && shared_possible(k->desc->triple) &&
        k->plan->code.weights != WEIGHTS_EXTERN && !make_shared(p, &part.shared))
        return false;
    if (!weights_inside(k->plan->code.weights) && !whole_weights(p, &part.weights))
        return false;
    relay_print(c, k->imported, (RelayPrint){0},
                &relay); /* places would name folders of this machine */
    part.relay = text_bytes(relay);
    part.labels = labels_text(c->arena, k->desc);
    if (!p->layout->members(c->diags, c->arena, &bundle, &members, &n))
        return false;
    return pack_archive(c->diags, c->arena, formats[kind], p->k->o->epoch, members, n, out);
}

/* Kernel by kernel: what it computes, or how its loops were arranged; `tvmcc opt` reads both.
 * Alternatives of a model share kernels, which stand there once. */
static Bytes kernels_text(Products *p, Product kind)
{
    Ctx   *c = p->c;
    StrBuf s = strbuf(c->arena);
    Map   *calls = map_new(c->scratch);

    for (const Plan *plan = p->k->plan; plan; plan = plan->next)
        for (uint32_t i = 0; i < plan->nkernels; i++) {
            const char *name = intern(c->strings, plan->kernels[i].func->name);
            uintptr_t   n = (uintptr_t)map_get(calls, PTR_KEY(name)) + plan->kernels[i].calls;
            map_put(calls, PTR_KEY(name), (void *)n);
        }
    for (const Plan *plan = p->k->plan; plan; plan = plan->next)
        for (uint32_t i = 0; i < plan->nkernels; i++) {
            const PlanKernel *k = &plan->kernels[i];
            const char       *name = intern(c->strings, k->func->name);
            uintptr_t         n = (uintptr_t)map_get(calls, PTR_KEY(name));
            if (!n)
                continue;
            map_del(calls, PTR_KEY(name));
            str_printf(&s, kind == PRODUCT_TE ? "// @%s, %llu calls\n" : "@%s // %llu calls\n",
                       name, (unsigned long long)n);
            if (kind == PRODUCT_TE && k->te) {
                TeFunc te = *k->te;
                te.name = name;
                te_print(c, &te, &s);
            } else if (kind != PRODUCT_TE) {
                str_add(&s, k->schedule);
            }
            str_add(&s, "\n");
        }
    return text_bytes(s);
}

bool product_needs_object(Product p)
{
    return p == PRODUCT_OBJECT || p == PRODUCT_STATIC || p == PRODUCT_SHARED || p >= PRODUCT_TAR;
}

/* With -fweights=file and extern: the weights, beside the code. */
static bool write_weights(Products *p, const char *stem)
{
    Ctx            *c = p->c;
    const Compiled *k = p->k;

    return weights_inside(k->plan->code.weights) ||
           product_put(p, intern_printf(c->strings, "%s.weights", stem),
                       weights_pieces(c->arena, k->weights, k->desc->weights_sha));
}

const char *product_beside(Products *p, const char *library)
{
    const char *slash = strrchr(library, '/');

    return intern_printf(p->c->strings, "%.*s%s", (int)(slash ? slash + 1 - library : 0), library,
                         p->k->entry);
}

static bool make_text(Products *p, Product kind, Bytes *out)
{
    Ctx      *c = p->c;
    Compiled *k = p->k;
    StrBuf    s = strbuf(c->arena);

    if (product_is_program(kind))
        return compile_code(c, k, EMIT_SOURCE, out);
    switch (kind) {
    case PRODUCT_RELAY: relay_print(c, k->module, (RelayPrint){.locs = true}, &s); break;
    case PRODUCT_TE:
    case PRODUCT_SCHED: *out = kernels_text(p, kind); return true;
    case PRODUCT_LOG: *out = tuning_records(c, k->plan); return true;
    case PRODUCT_TIR:
        if (!compile_tir(c, k, &s))
            return false;
        break;
    case PRODUCT_ID: *out = compile_id_text(c, k); return true;
    case PRODUCT_PLAN: plan_print(c, k->plan, &s); break;
    case PRODUCT_LL: return compile_code(c, k, EMIT_LL, out);
    case PRODUCT_ASM: return compile_code(c, k, EMIT_ASM, out);
    case PRODUCT_HEADER: *out = make_header(p); return true;
    case PRODUCT_META: *out = metadata_text(c->arena, k->desc); return true;
    default: BUG("product %d is no text", (int)kind);
    }
    *out = text_bytes(s);
    return true;
}

static bool make_content(Products *p, Product kind, BytesList *out)
{
    Ctx      *c = p->c;
    Compiled *k = p->k;
    Bytes    *one = NEW(c->arena, Bytes);

    *out = (BytesList){1, one};
    if (product_needs_object(kind) && !k->backend->is_source && !product_object(p))
        return false;
    switch (kind) {
    case PRODUCT_OBJECT: *out = p->object; return true;
    case PRODUCT_WEIGHTS:
        *out = weights_pieces(c->arena, k->weights, k->desc->weights_sha);
        return true;
    case PRODUCT_STATIC: return make_library(p, one);
    case PRODUCT_SHARED: return make_shared(p, one);
    case PRODUCT_TAR:
    case PRODUCT_TGZ:
    case PRODUCT_TZST:
    case PRODUCT_TXZ:
    case PRODUCT_ZIP: return make_bundle(p, kind, out);
    case PRODUCT_RELAY:
    case PRODUCT_TE:
    case PRODUCT_SCHED:
    case PRODUCT_LOG:
    case PRODUCT_TIR:
    case PRODUCT_PLAN:
    case PRODUCT_ID:
    case PRODUCT_LL:
    case PRODUCT_ASM:
#define DEVICE(name, about, product, text, suffix, what) case PRODUCT_##product:
#define SOURCE(name, about, product, text, suffix, what) case PRODUCT_##product:
#include "backends/backends.def"
    case PRODUCT_HEADER:
    case PRODUCT_META: return make_text(p, kind, one);
    case PRODUCT_COUNT: break;
    }
    BUG("product %d", (int)kind);
}

bool product_content(Products *p, Product kind, BytesList *out)
{
    BytesList fresh;

    if (!p->made[kind].n) {
        if (ctx_cancelled(p->c) || !make_content(p, kind, &fresh))
            return false;
        p->made[kind] = fresh;
    }
    *out = p->made[kind];
    return true;
}

/* With what the loader looks for beside it. */
static bool write_shared(Products *p, const char *path)
{
    Ctx        *c = p->c;
    const char *beside = product_beside(p, path);

    if (!product_object(p) || diag_errors(c->diags) || !link_so(p, path, NULL) ||
        !write_weights(p, beside))
        return false;
    if (p->k->desc->nlabels && !write_out(p, intern_printf(c->strings, "%s.labels", beside),
                                          labels_text(c->arena, p->k->desc)))
        return false;
    vec_push(c->arena, &p->outputs, path);
    return true;
}

/* Code as text, which a header and a weights file lie beside, as beside an object. */
static bool is_source(const Products *p, Product kind)
{
    return p->k->backend->is_source && kind == product_of_source(p->k->plan->target->text);
}

bool product_write(Products *p, Product kind, const char *path)
{
    Ctx      *c = p->c;
    BytesList content;
    Bytes     consts;

    if (kind == PRODUCT_SHARED && product_has_place(path))
        return write_shared(p, path);
    if (is_source(p, kind) && product_has_place(path)) {
        const char *slash = strrchr(p->stem, '/');
        p->k->header = intern_printf(c->strings, "%s.h", slash ? slash + 1 : p->stem);
    }
    if (!product_content(p, kind, &content))
        return false;
    if (kind == PRODUCT_RELAY && product_has_place(path)) {
        consts = relay_consts(c, p->k->module);
        if (consts.n && !write_out(p, intern_printf(c->strings, "%s.consts", path), consts))
            return false;
    }
    if ((kind == PRODUCT_OBJECT || is_source(p, kind)) && product_has_place(path) &&
        !write_out(p, intern_printf(c->strings, "%s.h", p->stem), make_header(p)))
        return false;
    if ((kind == PRODUCT_OBJECT || kind == PRODUCT_STATIC || is_source(p, kind)) &&
        product_has_place(path) && !write_weights(p, p->stem))
        return false;
    return product_put(p, path, content);
}

/* `16-byte vectors, fma`, as -print-targets says it. */
static const char *abilities(Ctx *c, const Target *t)
{
    const char *vectors = t->vector_bytes > 4
                              ? intern_printf(c->strings, "%u-byte vectors", t->vector_bytes)
                              : "no vectors";

    return intern_printf(c->strings, "%s, %s", vectors, t->has_fma ? "fma" : "no fma");
}

/* The processor that nobody named is said once, with what that costs. */
static void note_baseline(Ctx *c, const CompileOptions *o, uint32_t set)
{
    const Target *t = c->target, *here;
    uint32_t      text = 1u << PRODUCT_RELAY | 1u << PRODUCT_TE | 1u << PRODUCT_SCHED |
                    1u << PRODUCT_LOG | 1u << PRODUCT_TIR | 1u << PRODUCT_PLAN;

    if (!(set & ~text) || t->host || t->backend->is_source || o->mcpu || o->mattr || o->targets.n ||
        o->variants.n)
        return;
    diag_warn(c->diags, W_BASELINE_CPU, NO_LOC, "code is for any processor of '%s': %s", t->triple,
              abilities(c, t));
    here = backend_cpu()->parse_target(c, "llvm -mcpu=native");
    if (here && strcspn(here->triple, "-") == strcspn(t->triple, "-") &&
        !strncmp(here->triple, t->triple, strcspn(t->triple, "-")))
        diag_hint(c->diags, "-mcpu=native takes this machine's (%s), -mcpu=%s silences this",
                  abilities(c, here), t->mcpu);
    else
        diag_hint(c->diags,
                  "-mcpu= names one (-print-targets lists them), -mattr= what it has; -mcpu=%s "
                  "silences this",
                  t->mcpu);
}

/* What only another backend writes; and a target whose code is text has no machine code, and places
 * no weights. */
static bool fits_backend(Diags *d, const CompileOptions *o, uint32_t set)
{
    const char   *target = o->target;
    const Product source = product_of_source(target);

    if (!target) /* that of a plan */
        return true;
    const int n = (int)strcspn(target, " ,");
    for (int p = 0; p < PRODUCT_COUNT; p++) {
        if (!(set >> p & 1))
            continue;
        if (!product_fits((Product)p, target)) {
            diag_error(d, E_USAGE, NO_LOC, "'%s' is %s: target '%.*s' has none",
                       product_table[p].text, product_table[p].about, n, target);
            diag_hint(d, "say --target=%s", product_owner((Product)p));
            return false;
        }
        if (source == PRODUCT_COUNT ||
            (p != PRODUCT_LL && p != PRODUCT_ASM && !product_needs_object((Product)p)) ||
            p >= PRODUCT_TAR)
            continue;
        diag_error(d, E_USAGE, NO_LOC, "target '%.*s' gives text for another compiler, no '%s'", n,
                   target, product_table[p].text);
        diag_hint(d,
                  "say '-o <file>%s', and compile that for the machine; in CMake, "
                  "add_tvm_model(.. TARGETS %.*s) does both",
                  product_table[source].suffix, n, target);
        return false;
    }
    if (source == PRODUCT_COUNT || o->weights_mode != WEIGHTS_SECTION)
        return true;
    diag_error(d, E_USAGE, NO_LOC, "'-fweights=section' is for object files");
    diag_hint(d, "the text has a macro for where its weights lie: <ENTRY>_WEIGHTS_PLACE");
    return false;
}

bool products_fit(Diags *d, const CompileOptions *o, uint32_t set)
{
    uint32_t left = o->passes.stop_after ? set & ~(1u << PRODUCT_RELAY | 1u << PRODUCT_TIR) : 0;

    if (!fits_backend(d, o, set))
        return false;
    if (set & 1u << PRODUCT_SHARED && o->weights_mode == WEIGHTS_EXTERN)
        return diag_error(d, E_USAGE, NO_LOC,
                          "-fweights=extern is for objects and static libraries");
    for (int p = 0; p < PRODUCT_COUNT; p++)
        if (left >> p & 1)
            return diag_error(d, E_USAGE, NO_LOC, "no '%s' can be made after --stop-after=%s",
                              product_table[p].text, o->passes.stop_after);
    return true;
}

bool compile_model(Ctx *c, Compiled *k, CompileOptions *o, uint32_t set)
{
    if (set & ~(1u << PRODUCT_RELAY)) {
        if (!compile_all(c, k) || !budget_fits(c, k))
            return false;
        if (!k->o->passes.passes)
            k->module = k->imported;
        note_baseline(c, k->o, set);
        return true;
    }
    /* the graph alone, as it was imported or after the passes that are named */
    if (!compile_largest(c, o, o) || !compile_target(c, k) || !compile_import(c, k))
        return false;
    k->module = k->imported;
    return !(k->o->passes.passes || k->o->passes.stop_after) || compile_graph(c, k);
}
