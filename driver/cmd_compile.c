/* tvmcc compile, and tvmcc -c: a model file or a plan in, products out.
 *
 * A compile may be done in steps (docs/design/build.md): the plan is then a product of the first
 * and the input of the others, and --shard= says which part of the object is wanted.  Objects as
 * inputs are linked (cmd_link.c).  What is written follows from --emit or from the suffix of -o; an
 * object brings its header along. Everything is made in memory first, but for the weights where one
 * file has them: these are packed into its temporary (base's FileOut).  Then it is written, in a
 * way that leaves no half file and keeps files whose bytes did not change. */
#include "driver/build.h"
#include "driver/job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    Driver          *driver;
    Job              job;
    Bytes            code;   /* the object without weights */
    BytesList        object; /* with them */
    FileOut         *early;  /* of `early_path`: the weights are in it before the rest is known */
    const char      *early_path;
    const char      *stem;    /* output path without suffix */
    TextList         outputs; /* all paths written, for the depfile */
    const LayoutRow *layout;  /* of archives */
} Build;

static bool write_pieces(Build *b, const char *path, BytesList content)
{
    bool early = b->early && !strcmp(path, b->early_path);

    if (diag_errors(b->driver->diags))
        return false; /* warnings that -Werror made errors */
    if (!strcmp(path, "-"))
        progress_end(b->driver->progress); /* it may go to the same terminal */
    if (early ? !file_out_finish(b->early, content, false)
              : !file_write_pieces(b->driver->diags, path, content))
        return false;
    if (b->driver->opt.verbose)
        fprintf(stderr, "tvmcc: %zu bytes to %s\n", pieces_size(content), path);
    if (strcmp(path, "-"))
        vec_push(b->driver->arena, &b->outputs, path);
    return true;
}

static bool write_out(Build *b, const char *path, Bytes content)
{
    return write_pieces(b, path, (BytesList){1, &content});
}

/* A file that others can lie beside: not standard output, nor a device or a pipe. */
static bool has_place(const char *path)
{
    struct stat st;

    return strcmp(path, "-") && (stat(path, &st) || S_ISREG(st.st_mode));
}

static Bytes text_bytes(StrBuf s)
{
    return (Bytes){(const uint8_t *)s.at, s.n};
}

static bool make_object(Build *b)
{
    Ctx        *c = b->job.c;
    Compiled   *k = &b->job.k;
    AuditReport report;
    AuditRules  rules = {.entry = k->entry,
                         .no_pic = !k->plan->code.pic,
                         .max_code = b->driver->opt.compile.max_code,
                         .no_libm = c->target->no_libm};

    if (b->object.n)
        return true;
    k->o->progress(b->driver, "code", 6, 7);
    return compile_code(c, k, EMIT_OBJECT, &b->code) &&
           audit_object(c->diags, c->arena, b->stem, b->code, &rules, &report) &&
           compile_join(c, k, b->code, &b->object);
}

/* --shard=: one of the pieces that a link puts together. */
static bool make_piece(Build *b, Bytes *out)
{
    Ctx      *c = b->job.c;
    Compiled *k = &b->job.k;

    switch (b->job.piece) {
    case PIECE_ALL: break;
    case PIECE_KERNELS: return compile_units(c, k, b->job.shard, out);
    case PIECE_HOST: return compile_host(c, k, out);
    case PIECE_WEIGHTS: return compile_blob(c, k, out);
    }
    BUG("piece %d", (int)b->job.piece);
}

static Bytes make_header(Build *b)
{
    return header_text(b->job.c->arena, b->job.k.desc);
}

static bool make_library(Build *b, Bytes *out)
{
    const char *member = intern_printf(b->job.c->strings, "%s.o", b->job.k.entry);
    Member      m = {.path = member, .data = pieces_join(b->driver->arena, b->object)};

    return ar_library(b->driver->diags, b->driver->arena, &m, 1, out);
}

/* `object` is of the machine whose code calls the kernels. */
static LinkJob link_job(Build *b, const char *path, const char *soname, const char *const *object)
{
    Ctx        *c = b->job.c;
    const char *triple = c->target->host ? c->target->host->triple : c->target->triple;

    return (LinkJob){.output = path,
                     .soname = soname,
                     .triple = triple,
                     .nobjects = 1,
                     .objects = object,
                     .native =
                         !strcmp(triple, backend_of(KIND_LLVM)->parse_target(c, "llvm")->triple),
                     .verbose = b->driver->opt.verbose};
}

/* A shared library is linked from an object on disk, beside the output. */
static bool link_so(Build *b, const char *path, const char *soname)
{
    Ctx        *c = b->job.c;
    bool        early = b->early && !strcmp(path, b->early_path);
    FileOut    *out = early ? b->early : file_out_new(c->diags, c->arena, path);
    bool        ok = out && file_out_finish(out, b->object, true);
    const char *object = ok ? file_out_temporary(out) : NULL;
    LinkJob     job = link_job(b, path, soname, &object);

    ok = ok && link_shared(c->diags, c->arena, &job);
    file_out_drop(out);
    return ok;
}

static bool make_bundle(Build *b, Product kind, Bytes *out)
{
    Ctx       *c = b->job.c;
    Compiled  *k = &b->job.k;
    StrBuf     relay = strbuf(c->arena);
    Member    *members;
    uint32_t   n;
    BundlePart part = {.desc = k->desc, .metadata = metadata_text(c->arena, k->desc)};
    Bundle     bundle = {.nparts = 1, .parts = &part, .epoch = b->driver->opt.compile.epoch};
    static const PackFormat formats[] = {[PRODUCT_TAR] = PACK_TAR,
                                         [PRODUCT_TGZ] = PACK_TGZ,
                                         [PRODUCT_TZST] = PACK_TZST,
                                         [PRODUCT_TXZ] = PACK_TXZ,
                                         [PRODUCT_ZIP] = PACK_ZIP};

    part.header = make_header(b);
    if (!make_library(b, &part.library))
        return false;
    if (shared_possible(k->desc->triple) && k->plan->code.weights != WEIGHTS_EXTERN) {
        const char *so = file_temporary(c->diags, c->arena, b->stem, 0666);
        if (!so)
            return false;
        bool ok = link_so(b, so, intern_printf(c->strings, "lib%s.so", k->entry)) &&
                  file_read(c->diags, c->arena, so, &part.shared);
        file_drop(so);
        if (!ok)
            return false;
    }
    if (!weights_inside(k->plan->code.weights))
        part.weights = weights_file(c->arena, k->weights, k->desc->weights_sha);
    relay_print(c, k->imported, (RelayPrint){0},
                &relay); /* places would name folders of this machine */
    part.relay = text_bytes(relay);
    part.labels = labels_text(c->arena, k->desc);
    if (!b->layout->members(c->diags, c->arena, &bundle, &members, &n))
        return false;
    return pack_archive(c->diags, c->arena, formats[kind], b->driver->opt.compile.epoch, members, n,
                        out);
}

/* Kernel by kernel: what it computes, or how its loops were arranged; `tvmcc opt` reads both.
 * Alternatives of a model share kernels, which stand there once. */
static Bytes kernels_text(Build *b, Product kind)
{
    Ctx   *c = b->job.c;
    StrBuf s = strbuf(c->arena);
    Map   *calls = map_new(c->scratch);

    for (const Plan *p = b->job.k.plan; p; p = p->next)
        for (uint32_t i = 0; i < p->nkernels; i++) {
            const char *name = intern(c->strings, p->kernels[i].func->name);
            uintptr_t   n = (uintptr_t)map_get(calls, PTR_KEY(name)) + p->kernels[i].calls;
            map_put(calls, PTR_KEY(name), (void *)n);
        }
    for (const Plan *p = b->job.k.plan; p; p = p->next)
        for (uint32_t i = 0; i < p->nkernels; i++) {
            const PlanKernel *k = &p->kernels[i];
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

static bool needs_object(Product p)
{
    return p == PRODUCT_OBJECT || p == PRODUCT_STATIC || p == PRODUCT_SHARED || p >= PRODUCT_TAR;
}

/* With -fweights=file and extern: the weights, beside the code. */
static bool write_weights(Build *b, const char *stem)
{
    Ctx            *c = b->job.c;
    const Compiled *k = &b->job.k;

    return weights_inside(k->plan->code.weights) ||
           write_pieces(b, intern_printf(c->strings, "%s.weights", stem),
                        weights_pieces(c->arena, k->weights, k->desc->weights_sha));
}

/* For what belongs to a shared library; without suffix. */
static const char *where_the_runtime_looks(Build *b, const char *library)
{
    const char *slash = strrchr(library, '/');

    return intern_printf(b->job.c->strings, "%.*s%s", (int)(slash ? slash + 1 - library : 0),
                         library, b->job.k.entry);
}

static bool emit(Build *b, Product kind, const char *path)
{
    Ctx        *c = b->job.c;
    Compiled   *k = &b->job.k;
    StrBuf      s = strbuf(c->arena);
    Bytes       out = {0};
    Plan        flat;
    const char *slash;

    if (b->job.piece != PIECE_ALL)
        return make_piece(b, &out) && write_out(b, path, out);
    if (needs_object(kind) && !make_object(b))
        return false;
    switch (kind) {
    case PRODUCT_RELAY:
        relay_print(c, k->module, (RelayPrint){.locs = true}, &s);
        out = relay_consts(c, k->module);
        if (out.n && has_place(path) &&
            !write_out(b, intern_printf(c->strings, "%s.consts", path), out))
            return false;
        out = text_bytes(s);
        break;
    case PRODUCT_TE:
    case PRODUCT_SCHED: out = kernels_text(b, kind); break;
    case PRODUCT_LOG: out = tuning_records(c, k->plan); break;
    case PRODUCT_TIR:
        if (!compile_flat(c, k, &flat))
            return false;
        tir_print(c, flat.tir, &s);
        out = text_bytes(s);
        break;
    case PRODUCT_ID: out = compile_id_text(c, k); break;
    case PRODUCT_PLAN:
        plan_print(c, k->plan, &s);
        out = text_bytes(s);
        break;
    case PRODUCT_LL:
        if (!compile_code(c, k, EMIT_LL, &out))
            return false;
        break;
    case PRODUCT_ASM:
        if (!compile_code(c, k, EMIT_ASM, &out))
            return false;
        break;
    case PRODUCT_CL:
        if (!compile_code(c, k, EMIT_SOURCE, &out))
            return false;
        break;
    case PRODUCT_OBJECT:
        if (has_place(path) &&
            !write_out(b, intern_printf(c->strings, "%s.h", b->stem), make_header(b)))
            return false;
        return write_weights(b, b->stem) && write_pieces(b, path, b->object);
    case PRODUCT_HEADER: out = make_header(b); break;
    case PRODUCT_META: out = metadata_text(c->arena, k->desc); break;
    case PRODUCT_WEIGHTS:
        return write_pieces(b, path, weights_pieces(c->arena, k->weights, k->desc->weights_sha));
    case PRODUCT_STATIC:
        if (!make_library(b, &out) || !write_weights(b, b->stem))
            return false;
        break;
    case PRODUCT_SHARED:
        if (diag_errors(c->diags) || !link_so(b, path, NULL))
            return false;
        slash = where_the_runtime_looks(b, path);
        if (!write_weights(b, slash))
            return false;
        if (k->desc->nlabels && !write_out(b, intern_printf(c->strings, "%s.labels", slash),
                                           labels_text(c->arena, k->desc)))
            return false;
        vec_push(c->arena, &b->outputs, path);
        return true;
    case PRODUCT_TAR:
    case PRODUCT_TGZ:
    case PRODUCT_TZST:
    case PRODUCT_TXZ:
    case PRODUCT_ZIP:
        if (!make_bundle(b, kind, &out))
            return false;
        break;
    case PRODUCT_COUNT: return false;
    }
    return write_out(b, path, out);
}

static bool write_depfile(Build *b)
{
    const Options *o = &b->driver->opt;
    const char    *path = o->depfile_path;
    Deps           deps = {b->outputs.n, b->job.k.files.n, b->outputs.at, b->job.k.files.at,
                           o->depfile_phony};

    if (!path)
        path = arena_printf(b->driver->arena, "%s.d", b->stem);
    if (o->depfile_targets.n) {
        deps.noutputs = o->depfile_targets.n;
        deps.outputs = o->depfile_targets.at;
    }
    return file_write(b->driver->diags, path, depfile_text(b->driver->arena, &deps));
}

static uint32_t bits(uint32_t set)
{
    uint32_t n = 0;

    for (; set; set &= set - 1)
        n++;
    return n;
}

static bool makes_object(uint32_t set)
{
    for (int p = 0; p < PRODUCT_COUNT; p++)
        if (set >> p & 1 && needs_object((Product)p))
            return true;
    return false;
}

/* Which products, and the path of each. */
static bool choose(Build *b, uint32_t *set)
{
    const Options *o = &b->driver->opt;
    Ctx           *c = b->job.c;
    const char    *out = o->output;
    Product        by = out ? product_of_path(out) : PRODUCT_COUNT;

    *set = o->emit;
    if (!*set) {
        if (out && by == PRODUCT_COUNT)
            return diag_error(c->diags, E_USAGE, NO_LOC,
                              "the suffix of '%s' names no product; say which with --emit=", out);
        *set = 1u << (out ? by : o->compile.layout ? PRODUCT_TAR : PRODUCT_OBJECT);
    }
    b->layout = &layout_table[0];
    if (o->compile.layout && !(b->layout = layout_find(c->diags, "--layout", o->compile.layout)))
        return false;
    if (o->compile.layout && !(*set >> PRODUCT_TAR))
        return diag_error(c->diags, E_USAGE, NO_LOC,
                          "only archives have a layout: say '-o <file>.tar', or leave '--layout' "
                          "out");
    for (uint32_t i = 0; i < o->dump_code.n; i++)
        for (int p = 0; p < PRODUCT_COUNT; p++)
            if (!strcmp(product_table[p].text, o->dump_code.at[i]))
                *set |= 1u << p;
    if (!out) {
        const char *file =
            strrchr(o->inputs.at[0], '/') ? strrchr(o->inputs.at[0], '/') + 1 : o->inputs.at[0];
        b->stem = intern_n(c->strings, file, strcspn(file, "."));
    } else if (by != PRODUCT_COUNT) {
        b->stem = intern_n(c->strings, out, strlen(out) - strlen(product_table[by].suffix));
    } else {
        b->stem = out;
    }
    if (out && !has_place(out)) {
        if (bits(*set) > 1)
            return diag_error(c->diags, E_USAGE, NO_LOC, "%u products do not fit into '%s'",
                              bits(*set), out);
        if (*set & (1u << PRODUCT_OBJECT | 1u << PRODUCT_STATIC | 1u << PRODUCT_SHARED) &&
            !weights_inside(o->compile.weights_mode))
            return diag_error(c->diags, E_USAGE, NO_LOC, "the weights file cannot lie beside '%s'",
                              out);
        if (o->depfile && !o->depfile_path)
            return diag_error(c->diags, E_USAGE, NO_LOC,
                              "say with -MF where the dependencies of '%s' go", out);
    }
    if (*set & 1u << PRODUCT_SHARED && o->compile.weights_mode == WEIGHTS_EXTERN)
        return diag_error(c->diags, E_USAGE, NO_LOC,
                          "-fweights=extern is for objects and static libraries");
    if (o->compile.max_code && !b->job.piece && !makes_object(*set))
        return diag_error(c->diags, E_USAGE, NO_LOC,
                          "'--max-code' does nothing where no machine code is made");
    if ((o->compile.max_weights || o->compile.max_arena) && !(*set & ~(1u << PRODUCT_RELAY)))
        return diag_error(c->diags, E_USAGE, NO_LOC, "'%s' does nothing where no code is planned",
                          o->compile.max_weights ? "--max-weights" : "--max-arena");
    if (o->compile.epoch && !(*set >> PRODUCT_TAR))
        return diag_error(c->diags, E_USAGE, NO_LOC,
                          "'--epoch' does nothing where no archive is made");
    uint32_t left =
        o->compile.passes.stop_after ? *set & ~(1u << PRODUCT_RELAY | 1u << PRODUCT_TIR) : 0;
    for (int p = 0; p < PRODUCT_COUNT; p++)
        if (left >> p & 1)
            return diag_error(c->diags, E_USAGE, NO_LOC,
                              "no '%s' can be made after --stop-after=%s", product_table[p].text,
                              o->compile.passes.stop_after);
    return true;
}

/* The graph as it was imported, or after the passes that are named. */
static bool compile_relay(Build *b)
{
    Compiled *k = &b->job.k;

    if (!compile_largest(b->job.c, &b->job.options, &b->job.options) ||
        !compile_target(b->job.c, k) || !compile_import(b->job.c, k))
        return false;
    k->module = k->imported;
    return !(k->o->passes.passes || k->o->passes.stop_after) || compile_graph(b->job.c, k);
}

static void explain(Build *b)
{
    for (const Plan *p = b->job.k.plan; p; p = p->next)
        for (uint32_t i = 0; i < p->nkernels; i++)
            job_explain(&p->kernels[i]);
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
static void note_baseline(Build *b, uint32_t set)
{
    const Options *o = &b->driver->opt;
    Ctx           *c = b->job.c;
    const Target  *t = c->target, *here;
    uint32_t       text = 1u << PRODUCT_RELAY | 1u << PRODUCT_TE | 1u << PRODUCT_SCHED |
                    1u << PRODUCT_LOG | 1u << PRODUCT_TIR | 1u << PRODUCT_PLAN;

    if (!(set & ~text) || t->host || o->compile.mcpu || o->compile.mattr || o->compile.targets.n ||
        o->compile.variants.n)
        return;
    diag_warn(c->diags, W_BASELINE_CPU, NO_LOC, "code is for any processor of '%s': %s", t->triple,
              abilities(c, t));
    here = backend_of(KIND_LLVM)->parse_target(c, "llvm -mcpu=native");
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

/* The kernels' way through the cache, for people and for tests of builds. */
static void tell_units(const Build *b)
{
    const Compiled *k = &b->job.k;

    if (b->driver->opt.verbose && k->units)
        fprintf(stderr, "tvmcc: kernels: %u, %u from the cache, %u compiled\n", k->units,
                k->units - k->units_compiled, k->units_compiled);
    if (k->units)
        report_kernels(k->units, k->units_compiled);
}

/* What rounding them to 16 bits did to the weights. */
static void tell_narrowed(const Build *b)
{
    const Compiled *k = &b->job.k;

    if (b->driver->opt.verbose && k->narrowed)
        fprintf(stderr,
                "tvmcc: weights in 16 bits: %llu bytes instead of %llu; largest error %.2g of the "
                "largest value, in '%s'\n",
                (unsigned long long)k->narrowed, 2 * (unsigned long long)k->narrowed,
                k->narrow_error, k->narrow_worst);
}

/* Bytes of all constants, each counted once. */
static uint64_t constant_bytes(Ctx *c, const Module *m)
{
    Map     *seen = map_new(c->scratch);
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < m->nfuncs; i++) {
        ExprList list = expr_post_order(c, m->funcs[i].func);

        for (uint32_t k = 0; k < list.n; k++) {
            const Expr *e = list.at[k];

            if (e->kind != EXPR_CONST || map_get(seen, PTR_KEY(e->u.constant)))
                continue;
            map_put(seen, PTR_KEY(e->u.constant), (void *)(uintptr_t)e);
            bytes += e->u.constant->data.n;
        }
    }
    return bytes;
}

/* How much the weights grew when they were packed, and what the alternatives of a product share. */
static void tell_weights(const Build *b)
{
    const Compiled *k = &b->job.k;
    const Plan     *p = k->plan;
    uint64_t        alone = 0;
    uint32_t        n = 0;

    if (!b->driver->opt.verbose || !p)
        return;
    if (!p->next && k->imported && p->weights_bytes) {
        uint64_t model = constant_bytes(b->job.c, k->imported);

        fprintf(stderr, "tvmcc: weights: %llu bytes packed, %llu in the model%s\n",
                (unsigned long long)p->weights_bytes, (unsigned long long)model,
                p->weights_bytes / 11 > model / 10
                    ? "; fewer products take more weights, -Os goes without"
                    : "");
    }
    if (!p->next)
        return;
    for (const Plan *q = p; q; q = q->next, n++)
        alone += q->weights_alone;
    fprintf(stderr, "tvmcc: weights of %u plans: %llu bytes, %llu if they shared none\n", n,
            (unsigned long long)p->weights_bytes, (unsigned long long)alone);
}

static const char *path_of(const Build *b, uint32_t set, int p)
{
    const char *out = b->driver->opt.output;

    return out && (bits(set) == 1 || product_of_path(out) == (Product)p)
               ? out
               : intern_printf(b->job.c->strings, "%s%s", b->stem, product_table[p].suffix);
}

static bool same_file(const char *x, const char *y)
{
    struct stat sx, sy;

    return !stat(x, &sx) && !stat(y, &sy) && sx.st_dev == sy.st_dev && sx.st_ino == sy.st_ino;
}

/* The file that will have the weights and nothing before WEIGHTS_AT but headers, if there is one
 * and only one, for them to be packed straight into it. */
static bool open_early(Build *b, uint32_t set)
{
    const Options *o = &b->driver->opt;
    const uint32_t small = 1u << PRODUCT_HEADER | 1u << PRODUCT_META | 1u << PRODUCT_PLAN |
                           1u << PRODUCT_ID | 1u << PRODUCT_LOG;
    const uint32_t one = set & ~small;
    const bool     inside = weights_inside(o->compile.weights_mode);
    const char    *path = NULL;

    if (o->compile.variants.n || o->compile.buckets.n || o->save_temps)
        return true; /* constants of several plans are one pool, in memory */
    if (one == 1u << PRODUCT_OBJECT)
        path = inside ? path_of(b, set, PRODUCT_OBJECT)
                      : intern_printf(b->job.c->strings, "%s.weights", b->stem);
    else if (one == 1u << PRODUCT_STATIC && !inside)
        path = intern_printf(b->job.c->strings, "%s.weights", b->stem);
    else if (one == (uint32_t)1 << PRODUCT_SHARED) {
        path = path_of(b, set, PRODUCT_SHARED);
        if (!inside)
            path = intern_printf(b->job.c->strings, "%s.weights", where_the_runtime_looks(b, path));
    } else if (one == 1u << PRODUCT_WEIGHTS)
        path = path_of(b, set, PRODUCT_WEIGHTS);
    if (!path || !has_place(path))
        return true;
    b->early_path = path;
    b->early = b->job.options.weights_out = file_out_new(b->driver->diags, b->driver->arena, path);
    return b->early != NULL;
}

/* -save-temps: beside the product or in a folder; the depfile does not name them. */
static bool save_temps(Build *b, uint32_t set)
{
    static const Product kinds[] = {PRODUCT_RELAY, PRODUCT_TE, PRODUCT_SCHED, PRODUCT_TIR,
                                    PRODUCT_PLAN,  PRODUCT_LL, PRODUCT_ASM};
    const Options       *o = &b->driver->opt;
    const char          *stem = b->stem, *slash = strrchr(stem, '/');
    uint32_t             n = b->outputs.n;

    if (!o->save_temps)
        return true;
    if (o->compile.passes.stop_after || b->job.piece != PIECE_ALL)
        return diag_error(b->driver->diags, E_USAGE, NO_LOC,
                          "'-save-temps' is for whole compiles, not with '%s'",
                          o->compile.passes.stop_after ? "--stop-after" : "--shard");
    if (o->output && !has_place(o->output))
        stem = b->job.k.entry, slash = NULL;
    if (*o->save_temps) {
        if (mkdir(o->save_temps, 0777) && errno != EEXIST)
            return diag_error(b->driver->diags, E_IO, (Loc){.file = o->save_temps},
                              "cannot make the folder '%s': %s", o->save_temps, strerror(errno));
        stem = intern_printf(b->job.c->strings, "%s/%s", o->save_temps, slash ? slash + 1 : stem);
    }
    for (uint32_t i = 0; i < COUNT(kinds); i++) {
        const char *path =
            intern_printf(b->job.c->strings, "%s%s", stem, product_table[kinds[i]].suffix);
        bool text = b->job.k.imported || kinds[i] >= PRODUCT_TIR; /* not of a plan */
        bool code = kinds[i] < PRODUCT_LL || b->job.k.desc;
        bool there = same_file(path, o->inputs.at[0]) ||
                     (!*o->save_temps && (set >> kinds[i] & 1)); /* or will be */

        if (text && code && !there && !emit(b, kinds[i], path))
            return false;
    }
    b->outputs.n = n;
    return true;
}

/* -###: the target and what would be written, a line each. */
static int show_plan(Build *b, uint32_t set)
{
    const Options *o = &b->driver->opt;
    const Target  *t = b->job.c->target;
    const uint32_t weights =
        1u << PRODUCT_OBJECT | 1u << PRODUCT_STATIC | (uint32_t)1 << PRODUCT_SHARED;
    const char *object = intern_printf(b->job.c->strings, "%s.o", b->stem);

    fprintf(stderr, "target: %s\n", t->text);
    for (int p = 0; p < PRODUCT_COUNT; p++) {
        const char *path = path_of(b, set, p);

        if (!(set >> p & 1))
            continue;
        fprintf(stderr, "product: %s\n", path);
        if (p == PRODUCT_OBJECT && b->job.piece == PIECE_ALL && has_place(path))
            fprintf(stderr, "product: %s.h\n", b->stem);
    }
    if (set & weights && !weights_inside(o->compile.weights_mode))
        fprintf(stderr, "product: %s.weights\n", b->stem);
    if (o->depfile)
        fprintf(stderr, "dependencies: %s\n",
                o->depfile_path ? o->depfile_path
                                : intern_printf(b->job.c->strings, "%s.d", b->stem));
    for (int p = PRODUCT_SHARED; p < PRODUCT_COUNT; p++) {
        const char *triple = t->host ? t->host->triple : t->triple;
        const char *library = intern_printf(b->job.c->strings, "lib%s.so", b->job.k.entry);
        LinkJob     job = p == PRODUCT_SHARED ? link_job(b, path_of(b, set, p), NULL, &object)
                                              : link_job(b, library, library, &object);

        if (set >> p & 1 && (p == PRODUCT_SHARED || shared_possible(triple)) &&
            !show_link(b->driver, &job))
            return 0;
    }
    return 0;
}

static bool emit_all(Build *b, uint32_t set)
{
    const Options *o = &b->driver->opt;

    if (!save_temps(b, set))
        return false;
    for (int p = 0; p < PRODUCT_COUNT; p++)
        if (set >> p & 1 && !emit(b, (Product)p, path_of(b, set, p)))
            return false;
    tell_units(b);
    tell_weights(b);
    tell_narrowed(b);
    return !o->depfile || write_depfile(b);
}

static int compile_plan_file(Build *b)
{
    uint32_t set;

    if (!job_start_plan(b->driver, &b->job) || !choose(b, &set) || !job_read_plan(&b->job, set))
        return 0;
    if (b->driver->opt.dry_run)
        return show_plan(b, set);
    if (budget_fits(b->job.c, &b->job.k))
        emit_all(b, set);
    return 0;
}

int cmd_compile(Driver *driver)
{
    Build          b = {.driver = driver};
    const Options *o = &driver->opt;
    uint32_t       set = 0;

    if (o->inputs.n && str_ends(o->inputs.at[0], ".plan"))
        return compile_plan_file(&b);
    if (o->inputs.n && str_ends(o->inputs.at[0], ".o"))
        return link_objects(driver);
    if (!job_start(driver, &b.job, "llvm") || !choose(&b, &set))
        return 0;
    if (o->check_args)
        return check_args(driver, &b.job);
    if (o->dry_run) {
        if (job_readable(driver, o->inputs.at[0]) &&
            compile_largest(b.job.c, &b.job.options, &b.job.options) &&
            compile_target(b.job.c, &b.job.k))
            show_plan(&b, set);
        return 0;
    }
    b.job.options.hash_model = true;
    if (!(set & ~(1u << PRODUCT_RELAY)) && !o->save_temps) {
        if (!compile_relay(&b))
            return 0;
    } else {
        if (!open_early(&b, set))
            return 0;
        if (!compile_all(b.job.c, &b.job.k) || !budget_fits(b.job.c, &b.job.k)) {
            file_out_drop(b.early);
            return 0;
        }
        if (!o->compile.passes.passes)
            b.job.k.module = b.job.k.imported;
        if (o->explain)
            explain(&b);
        note_baseline(&b, set);
    }
    emit_all(&b, set);
    file_out_drop(b.early);
    return 0;
}
