/* tvmcc compile, and tvmcc -c: a model file or a plan in, products out.
 *
 * A compile may be done in steps (docs/design/build.md): the plan is then a product of the first
 * and the input of the others, and --shard= says which part of the object is wanted.  Objects as
 * inputs are linked (cmd_link.c).  What is written follows from --emit or from the suffix of -o; an
 * object brings its header along.  compile/products.c makes and writes it. */
#include "compile/products.h"
#include "driver/build.h"
#include "driver/job.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    Driver  *driver;
    Job      job;
    Products products;
} Build;

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

static bool emit(Build *b, Product kind, const char *path)
{
    Bytes piece = {0};

    if (b->job.piece == PIECE_ALL)
        return product_write(&b->products, kind, path);
    return make_piece(b, &piece) && product_put(&b->products, path, (BytesList){1, &piece});
}

static bool write_depfile(Build *b)
{
    const Options *o = &b->driver->opt;
    const char    *path = o->depfile_path;
    Deps deps = {b->products.outputs.n, b->job.k.files.n, b->products.outputs.at, b->job.k.files.at,
                 o->depfile_phony};

    if (!path)
        path = arena_printf(b->driver->arena, "%s.d", b->products.stem);
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
        if (set >> p & 1 && product_needs_object((Product)p))
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
    const Product  source = product_of_source(b->job.options.target);

    *set = o->emit;
    if (!*set) {
        if (out && by == PRODUCT_COUNT) {
            diag_error(c->diags, E_USAGE, NO_LOC,
                       "the suffix of '%s' names no product; say which with --emit=", out);
            diag_hint(c->diags, "usual ones are .o, .a, .so and .tar; --help=emit lists all");
            return false;
        }
        *set = 1u << (out ? by : o->compile.layout ? PRODUCT_TAR : PRODUCT_OBJECT);
    }
    /* Where nobody says -o FILE.o, an object is what the target has for one. */
    if (*set == 1u << PRODUCT_OBJECT && source != PRODUCT_COUNT && by != PRODUCT_OBJECT)
        *set = 1u << source;
    b->products.c = c;
    b->products.k = &b->job.k;
    b->products.layout = &layout_table[0];
    if (o->compile.layout &&
        !(b->products.layout = layout_find(c->diags, "--layout", o->compile.layout)))
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
        b->products.stem = intern_n(c->strings, file, strcspn(file, "."));
    } else if (by != PRODUCT_COUNT) {
        b->products.stem =
            intern_n(c->strings, out, strlen(out) - strlen(product_table[by].suffix));
    } else {
        b->products.stem = out;
    }
    if (out && !product_has_place(out)) {
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
    if (o->compile.max_code && !b->job.piece && (!makes_object(*set) || source != PRODUCT_COUNT))
        return diag_error(c->diags, E_USAGE, NO_LOC,
                          "'--max-code' does nothing where no machine code is made");
    if ((o->compile.max_weights || o->compile.max_arena) && !(*set & ~(1u << PRODUCT_RELAY)))
        return diag_error(c->diags, E_USAGE, NO_LOC, "'%s' does nothing where no code is planned",
                          o->compile.max_weights ? "--max-weights" : "--max-arena");
    if (o->compile.epoch && !(*set >> PRODUCT_TAR))
        return diag_error(c->diags, E_USAGE, NO_LOC,
                          "'--epoch' does nothing where no archive is made");
    return products_fit(c->diags, &b->job.options, *set);
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
               : intern_printf(b->job.c->strings, "%s%s", b->products.stem,
                               product_table[p].suffix);
}

static bool same_file(const char *x, const char *y)
{
    struct stat sx, sy;

    return !stat(x, &sx) && !stat(y, &sy) && sx.st_dev == sy.st_dev && sx.st_ino == sy.st_ino;
}

/* The file that will have the weights and nothing before WEIGHTS_AT but headers, if there is one
 * and only one, for them to be packed straight into it; for an archive one beside it, which goes
 * again, so that memory holds no weights. */
static bool open_early(Build *b, uint32_t set)
{
    const Options *o = &b->driver->opt;
    const uint32_t small = 1u << PRODUCT_HEADER | 1u << PRODUCT_META | 1u << PRODUCT_PLAN |
                           1u << PRODUCT_ID | 1u << PRODUCT_LOG;
    const uint32_t one = set & ~small;
    const bool     inside = weights_inside(o->compile.weights_mode);
    const char    *path = NULL;
    bool           stays = true;

    if (o->compile.variants.n || o->compile.buckets.n || b->job.options.fallbacks.n ||
        o->save_temps)
        return true; /* constants of several plans are one pool, in memory */
    if (one == 1u << PRODUCT_OBJECT)
        path = inside ? path_of(b, set, PRODUCT_OBJECT)
                      : intern_printf(b->job.c->strings, "%s.weights", b->products.stem);
    else if (one == 1u << PRODUCT_STATIC && !inside)
        path = intern_printf(b->job.c->strings, "%s.weights", b->products.stem);
    else if (one == (uint32_t)1 << PRODUCT_SHARED) {
        path = path_of(b, set, PRODUCT_SHARED);
        if (!inside)
            path =
                intern_printf(b->job.c->strings, "%s.weights", product_beside(&b->products, path));
    } else if (one == 1u << PRODUCT_WEIGHTS)
        path = path_of(b, set, PRODUCT_WEIGHTS);
    for (int p = PRODUCT_TAR; p <= PRODUCT_ZIP; p++)
        if (one == (uint32_t)1 << p) {
            path = path_of(b, set, p);
            stays = false;
        }
    if (!path || !product_has_place(path))
        return true;
    b->job.options.weights_out = file_out_new(b->driver->diags, b->driver->arena, path);
    if (stays) {
        b->products.early_path = path;
        b->products.early = b->job.options.weights_out;
    }
    return b->job.options.weights_out != NULL;
}

/* -save-temps: beside the product or in a folder; the depfile does not name them. */
static bool save_temps(Build *b, uint32_t set)
{
    static const Product kinds[] = {PRODUCT_RELAY, PRODUCT_TE, PRODUCT_SCHED, PRODUCT_TIR,
                                    PRODUCT_PLAN,  PRODUCT_LL, PRODUCT_ASM};
    const Options       *o = &b->driver->opt;
    const char          *stem = b->products.stem, *slash = strrchr(stem, '/');
    uint32_t             n = b->products.outputs.n;

    if (!o->save_temps)
        return true;
    if (o->compile.passes.stop_after || b->job.piece != PIECE_ALL)
        return diag_error(b->driver->diags, E_USAGE, NO_LOC,
                          "'-save-temps' is for whole compiles, not with '%s'",
                          o->compile.passes.stop_after ? "--stop-after" : "--shard");
    if (o->output && !product_has_place(o->output))
        stem = b->job.k.entry, slash = NULL;
    if (*o->save_temps) {
        if (!file_make_folder(b->driver->diags, o->save_temps))
            return false;
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
    b->products.outputs.n = n;
    return true;
}

/* -###: the target and what would be written, a line each. */
static int show_plan(Build *b, uint32_t set)
{
    const Options *o = &b->driver->opt;
    const Target  *t = b->job.c->target;
    const Product  source = product_of_source(t->text);
    const uint32_t weights = 1u << PRODUCT_OBJECT | 1u << PRODUCT_STATIC | 1u << PRODUCT_SHARED |
                             (source < PRODUCT_COUNT ? 1u << source : 0);
    const char *object = intern_printf(b->job.c->strings, "%s.o", b->products.stem);

    fprintf(stderr, "target: %s\n", t->text);
    for (int p = 0; p < PRODUCT_COUNT; p++) {
        const char *path = path_of(b, set, p);

        if (!(set >> p & 1))
            continue;
        fprintf(stderr, "product: %s\n", path);
        if ((p == PRODUCT_OBJECT || p == (int)source) && b->job.piece == PIECE_ALL &&
            product_has_place(path))
            fprintf(stderr, "product: %s.h\n", b->products.stem);
    }
    if (set & weights && !weights_inside(o->compile.weights_mode))
        fprintf(stderr, "product: %s.weights\n", b->products.stem);
    if (o->depfile)
        fprintf(stderr, "dependencies: %s\n",
                o->depfile_path ? o->depfile_path
                                : intern_printf(b->job.c->strings, "%s.d", b->products.stem));
    for (int p = PRODUCT_SHARED; p < PRODUCT_COUNT; p++) {
        const char *triple = t->host ? t->host->triple : t->triple;
        const char *library = intern_printf(b->job.c->strings, "lib%s.so", b->job.k.entry);
        LinkJob     job = p == PRODUCT_SHARED
                              ? product_link_job(&b->products, path_of(b, set, p), NULL, &object)
                              : product_link_job(&b->products, library, library, &object);

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
    if (open_early(&b, set) && compile_model(b.job.c, &b.job.k, &b.job.options,
                                             o->save_temps ? set | 1u << PRODUCT_TE : set)) {
        if (o->explain)
            job_explain(&b.job);
        emit_all(&b, set);
    }
    file_out_drop(b.job.options.weights_out);
    return 0;
}
