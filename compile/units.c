/* Kernels to machine code, one by one.
 *
 * A kernel's canonical text is all its code depends on, beside target, options and compiler; so the
 * hash of these finds its object in the cache, and what is not there is made by any thread from the
 * text alone, each with a Ctx of its own.  Objects name nothing of the model: merging gives each
 * its name, `<entry>__<kernel>`.
 *
 *     kernel -> text -> hash -> cache hit ---------------------------> object -+
 *                          \--> parse, code passes, backend (any thread) ------+-> merge */
#include "compile/compile.h"

#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* ---- the key ------------------------------------------------------------------------------------ */

typedef struct {
    Bytes       id;
    const char *path; /* where it has none */
} OwnFile;

static bool is_own(const struct dl_phdr_info *info)
{
    static const char here; /* in the file that this code is in: a program, or libtvmcc */
    const uintptr_t   at = (uintptr_t)&here;

    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];

        if (p->p_type == PT_LOAD && at - (info->dlpi_addr + p->p_vaddr) < p->p_memsz)
            return true;
    }
    return false;
}

static int find_build_id(struct dl_phdr_info *info, UNUSED size_t size, void *out)
{
    OwnFile *own = out;

    if (!is_own(info))
        return 0;
    own->path = *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        const uint8_t *at = (const uint8_t *)(info->dlpi_addr + p->p_vaddr);

        for (size_t left = p->p_type == PT_NOTE ? p->p_memsz : 0; left > sizeof(ElfW(Nhdr));) {
            const ElfW(Nhdr) *n = (const void *)at;
            size_t name = (n->n_namesz + 3u) & ~3u, bytes = sizeof *n + name;

            bytes += (n->n_descsz + 3u) & ~3u;
            if (bytes > left)
                break;
            if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4) {
                own->id = (Bytes){at + sizeof *n + name, n->n_descsz};
                return 1;
            }
            at += bytes;
            left -= bytes;
        }
    }
    return 1;
}

/* What tells this compiler from any other: its build id, or its own bytes. */
static bool add_compiler(Ctx *c, Sha256Ctx *h)
{
    OwnFile own = {.path = "/proc/self/exe"};

    dl_iterate_phdr(find_build_id, &own);
    if (!own.id.n && !file_map(c->diags, own.path, &own.id))
        return false;
    sha256_add(h, compiler_version(), strlen(compiler_version()) + 1);
    sha256_add(h, own.id.at, own.id.n);
    return true;
}

/* The state after all that is common to the kernels of a plan. */
static bool key_start(Ctx *c, const Plan *p, const PassOptions *o, Sha256Ctx *h)
{
    const char *text = arena_printf(c->scratch, "kernel 1\n%s\n-O%u %d\n%s\n", p->target->text,
                                    p->code.opt_level, p->code.pic, o->passes ? o->passes : "");

    sha256_init(h);
    sha256_add(h, text, strlen(text));
    return add_compiler(c, h);
}

/* ---- making ------------------------------------------------------------------------------------- */

typedef struct {
    const Func *func;
    const char *name; /* in the product */
    const Plan *plan;
    Bytes       text; /* canonical */
    Sha256      key;
    Bytes       object;
    bool        cached;
} Unit;

typedef struct {
    const Backend        *backend;
    const CodegenOptions *o;
    const PassOptions    *passes;
    OpTable               ops;
    const CompileOptions *compile; /* whom to tell how far it is */
    Unit                **todo;    /* the longest first */
    uint32_t              n, all;  /* all: with those that the cache had */
    atomic_uint           next, failed, done;
} Work;

/* `u` is made; NULL: nothing is yet. */
static void tell(Work *w, const Unit *u)
{
    uint32_t    done = atomic_fetch_add(&w->done, u != NULL) + (u != NULL);
    const char *name = u ? u->func->name : NULL;

    if (w->compile->progress_count)
        w->compile->progress_count(w->compile->progress_user, name, done, w->all);
}

/* The object of a kernel; false with errors recorded in c. */
static bool make(Ctx *c, const Work *w, const Unit *u, const TirModule *m, Bytes *out)
{
    c->target = u->plan->target;
    m = m ? run_tir_passes(c, m, w->passes, TIR_TO_CODE) : NULL;
    return m && w->backend->unit(c, m, c->target, w->o, out);
}

static bool asks_to_stop(const Work *w)
{
    const Cancel *cancel = &w->compile->cancel;

    return cancel->asked && cancel->asked(cancel->user);
}

/* Objects stay in the worker's arena. */
static void *work(Work *w, Arena *keep)
{
    uint32_t i;

    while ((i = atomic_fetch_add(&w->next, 1)) < w->n && !asks_to_stop(w)) {
        Arena *a = arena_new(NULL);
        Ctx   *c = ctx_new(a, diags_new(a), w->ops);
        Bytes  out;

        Unit *u = w->todo[i];
        c->cancel = w->compile->cancel.asked ? &w->compile->cancel : NULL;
        c->target = u->plan->target; /* parsing asks for it, too */
        if (make(c, w, u, tir_parse(c, u->name, u->text), &out))
            u->object = (Bytes){arena_dup(keep, out.at, out.n), out.n};
        else
            atomic_store(&w->failed, i + 1);
        ctx_free(c);
        arena_free(a);
        tell(w, u);
    }
    return NULL;
}

typedef struct {
    Work     *work;
    Arena    *keep;
    pthread_t thread;
} Worker;

static void *start(void *user)
{
    Worker *k = user;

    return work(k->work, k->keep);
}

enum { MAX_WORKERS = 64 };

/* All of w->todo, by `jobs` threads; false with errors recorded in c. */
static bool make_all(Ctx *c, Work *w, uint32_t jobs)
{
    Worker   worker[MAX_WORKERS];
    uint32_t n = 0, bad;

    while (n + 1 < jobs && n + 1 < w->n && n < MAX_WORKERS) {
        worker[n] = (Worker){.work = w, .keep = arena_new(NULL)};
        if (pthread_create(&worker[n].thread, NULL, start, &worker[n])) {
            arena_free(worker[n].keep);
            break;
        }
        n++;
    }
    work(w, c->arena);
    for (uint32_t i = 0; i < n; i++)
        pthread_join(worker[i].thread, NULL);
    for (uint32_t i = 0; i < w->n; i++) /* no worker's memory outlives it */
        if (w->todo[i]->object.n)
            w->todo[i]->object.at =
                arena_dup(c->arena, w->todo[i]->object.at, w->todo[i]->object.n);
    while (n)
        arena_free(worker[--n].keep);
    if (ctx_cancelled(c))
        return false;
    if (!(bad = atomic_load(&w->failed)))
        return true;
    const Unit *u = w->todo[bad - 1];
    Bytes       out; /* once more, under its own name, for the messages */
    if (make(c, w, u, tirmod_new(c, 1, &u->func), &out))
        BUG("code of %s fails only now and then", u->name);
    return false;
}

static void sort_by_length(Unit **u, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k && u[k]->text.n > u[k - 1]->text.n; k--) {
            Unit *swap = u[k];
            u[k] = u[k - 1];
            u[k - 1] = swap;
        }
}

/* ---- a shard ------------------------------------------------------------------------------------ */

static uint32_t shard_of(Sha256 hash, uint32_t shards)
{
    uint32_t first = (uint32_t)hash.b[0] | (uint32_t)hash.b[1] << 8 | (uint32_t)hash.b[2] << 16 |
                     (uint32_t)hash.b[3] << 24;

    return first % shards;
}

typedef VEC(Unit) Units;

/* A plan's kernels that `seen` does not have: shape buckets share theirs. */
static void units_of(Ctx *c, const Plan *p, const char *entry, Shard shard, const Sha256Ctx *key,
                     Map *seen, Units *out)
{
    for (uint32_t i = 0; i < p->tir->nfuncs; i++) {
        const Func *f = p->tir->funcs[i];
        StrBuf      text = strbuf(c->arena);
        Sha256Ctx   h = *key;

        if (f->kind != FUNC_KERNEL || map_get(seen, PTR_KEY(intern(c->strings, f->name))))
            continue;
        map_put(seen, PTR_KEY(intern(c->strings, f->name)), seen);
        func_canonical(c, f, &text);
        Bytes b = {(const uint8_t *)text.at, text.n};
        if (shard_of(sha256(b), shard.of) != shard.at)
            continue;
        sha256_add(&h, text.at, text.n);
        Unit u = {.func = f,
                  .name = intern_printf(c->strings, "%s__%s", entry, f->name),
                  .plan = p,
                  .text = b,
                  .key = sha256_end(&h)};
        vec_push(c->arena, out, u);
    }
}

/* Of all plans of the product, each once. */
static bool all_units(Ctx *c, const Compiled *k, Shard shard, Units *out)
{
    Map      *seen = map_new(c->scratch);
    Sha256Ctx key;

    for (const Plan *p = k->plan; p; p = p->next) {
        if (!key_start(c, p, &k->o->passes, &key))
            return false;
        units_of(c, p, k->entry, shard, &key, seen, out);
    }
    return true;
}

/* Objects from the cache, which may hold what a broken compiler or a broken disk put there under
 * a hash that fits. */
static bool find_cached(Ctx *c, Compiled *k, const CodegenOptions *o, Unit *u, uint32_t n)
{
    Cache *cache = k->o->passes.print_after ? NULL : k->o->cache;
    Bytes  like = {0};

    for (uint32_t i = 0; cache && i < n; i++) {
        if (!cache_get(cache, c->arena, u[i].key, &u[i].object))
            continue;
        if (!like.n && !k->backend->unit(c, tirmod_new(c, 0, NULL), k->plan->target, o, &like))
            return false;
        u[i].cached = elf_unit_fits(c->scratch, u[i].object, like);
        if (!u[i].cached)
            cache_drop(cache, u[i].key);
    }
    return true;
}

bool compile_units(Ctx *c, Compiled *k, Shard shard, Bytes *out)
{
    const Plan          *p = k->plan;
    const CodegenOptions o = compile_code_options(k);
    Cache               *cache = k->o->passes.print_after ? NULL : k->o->cache;
    Units                all = {0};

    if (!all_units(c, k, shard, &all))
        return false;
    Unit        *u = all.at;
    uint32_t     n = all.n;
    Bytes       *objects = NEW_ARRAY(c->arena, Bytes, n + 1);
    const char **names = NEW_ARRAY(c->arena, const char *, n + 1);
    PassOptions  quiet = {.opt_level = (int)p->code.opt_level, .passes = k->o->passes.passes};
    Work         w = {.backend = k->backend,
                      .o = &o,
                      .passes = &quiet,
                      .compile = k->o,
                      .all = n,
                      .ops = c->ops,
                      .todo = NEW_ARRAY(c->arena, Unit *, n + 1)};

    if (!find_cached(c, k, &o, u, n))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!u[i].cached)
            w.todo[w.n++] = &u[i];
    atomic_init(&w.done, n - w.n);
    tell(&w, NULL);
    sort_by_length(w.todo, w.n);
    bool made = make_all(c, &w, k->o->passes.jobs);
    c->target = p->target;
    if (!made)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (cache && !u[i].cached)
            cache_put(cache, u[i].key, u[i].object);
        objects[i] = u[i].object;
        names[i] = object_symbol(c->scratch, "", u[i].name);
    }
    k->units += n;
    k->units_compiled += w.n;
    if (!n)
        return k->backend->unit(c, tirmod_new(c, 0, NULL), p->target, &o, out);
    BytesList merged;
    if (!elf_merge(c->diags, c->arena, n, objects, names, NULL, &merged))
        return false;
    *out = pieces_join(c->arena, merged);
    return true;
}
