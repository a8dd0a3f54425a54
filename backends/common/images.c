/* Machine code of all kernels for each GPU that a target names, by a compiler of their text.
 *
 * A kernel's text is all that its code depends on, beside architecture and compiler; so the hash of
 * these finds it in the cache, and what is not there is compiled by several threads.  Names in the
 * text tell nothing of the model but the kernel's own, so networks share what is equal. */
#include "backends/common/device.h"
#include "base/cache.h"
#include "tvmcc/abi.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

typedef struct {
    const Func *func; /* NULL: all of them */
    const char *arch, *text, *log;
    Sha256      key;
    Bytes       code;
    bool        cached;
} Job;

typedef VEC(Job) Jobs;

typedef struct {
    const DeviceCompiler *compiler;
    Job                 **todo;
    uint32_t              n;
    atomic_uint           next;
} Work;

typedef struct {
    Work     *work;
    Arena    *keep;
    pthread_t thread;
} Worker;

enum { MAX_WORKERS = 64 };

static void *work(void *user)
{
    Worker  *w = user;
    uint32_t i;

    while ((i = atomic_fetch_add(&w->work->next, 1)) < w->work->n) {
        Job                  *j = w->work->todo[i];
        const DeviceCompiler *k = w->work->compiler;

        if (!k->compile(k->user, w->keep, j->arch, j->text, &j->code, &j->log))
            j->code.n = 0;
    }
    return NULL;
}

/* What the threads made is copied to c's arena. */
static void make_all(Ctx *c, Work *w, uint32_t jobs)
{
    Worker   worker[MAX_WORKERS];
    uint32_t n = 0;

    while (n < MAX_WORKERS && n < (jobs ? jobs : 1) && n < w->n) {
        worker[n] = (Worker){.work = w, .keep = arena_new(NULL)};
        if (n && pthread_create(&worker[n].thread, NULL, work, &worker[n])) {
            arena_free(worker[n].keep);
            break;
        }
        n++;
    }
    if (n)
        work(&worker[0]);
    for (uint32_t i = 1; i < n; i++)
        pthread_join(worker[i].thread, NULL);
    for (uint32_t i = 0; i < w->n; i++) {
        Job *j = w->todo[i];

        if (j->code.n)
            j->code.at = arena_dup(c->arena, j->code.at, j->code.n);
        else
            j->log = arena_printf(c->arena, "%s", j->log);
    }
    for (uint32_t i = 0; i < n; i++)
        arena_free(worker[i].keep);
}

static Sha256 key_of(const DeviceCompiler *k, const Job *j)
{
    Sha256Ctx   h;
    const char *parts[] = {k->name, k->version, j->arch, j->text};

    sha256_init(&h);
    for (size_t i = 0; i < COUNT(parts); i++)
        sha256_add(&h, parts[i], strlen(parts[i]) + 1);
    return sha256_end(&h);
}

static const char *arch_at(Ctx *c, const Target *t, uint32_t i)
{
    const char *arch = device_arch(c, t, i);

    return arch || i ? arch : intern(c->strings, "");
}

static void add_jobs(Ctx *c, const Target *t, const Func *f, const char *text, Jobs *jobs)
{
    const char *arch;

    for (uint32_t k = 0; (arch = arch_at(c, t, k)); k++)
        vec_push(c->arena, jobs, ((Job){.func = f, .arch = arch, .text = text}));
}

static bool find_jobs(Ctx *c, const DeviceCompiler *compiler, const TirModule *m, const Target *t,
                      Jobs *jobs)
{
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        const Func *f = m->funcs[i];
        StrBuf      text = strbuf(c->arena);

        if (f->kind != FUNC_DEVICE)
            continue;
        if (!(compiler->program ? compiler->program(c, m, &text)
                                : compiler->text(c, compiler->user, t, f, &text)))
            return false;
        add_jobs(c, t, compiler->program ? NULL : f, text.at, jobs);
        if (compiler->program)
            break;
    }
    return true;
}

static bool not_compiled(Ctx *c, const DeviceCompiler *compiler, const Job *j)
{
    const char *what = j->func ? arena_printf(c->scratch, "kernel '%s' is", j->func->name)
                               : "the kernels are",
               *to = *j->arch ? " for " : "";

    return (!compiler->knows || compiler->knows(c, compiler->user, j->arch)) &&
           error_at(c, E_CODEGEN, j->func ? j->func->loc : NO_LOC, "%s not compiled%s%s: %.*s",
                    what, to, j->arch, (int)strcspn(j->log, "\n"), j->log);
}

bool device_images(Ctx *c, const DeviceCompiler *compiler, const TirModule *m, const Target *t,
                   const CodegenOptions *o, DeviceImages *out)
{
    Jobs        jobs = {0};
    const char *arch;
    Work        w = {.compiler = compiler};

    if (!find_jobs(c, compiler, m, t, &jobs))
        return false;
    w.todo = NEW_ARRAY(c->arena, Job *, jobs.n + 1);
    for (uint32_t i = 0; i < jobs.n; i++) {
        Job *j = &jobs.at[i];

        j->key = key_of(compiler, j);
        j->cached = o->cache && cache_get(o->cache, c->arena, j->key, &j->code);
        if (!j->cached)
            w.todo[w.n++] = j;
    }
    atomic_init(&w.next, 0);
    make_all(c, &w, o->jobs);
    for (uint32_t i = 0; i < w.n; i++) {
        const Job *j = w.todo[i];

        if (!j->code.n)
            return not_compiled(c, compiler, j);
        if (o->cache)
            cache_put(o->cache, j->key, j->code);
    }
    for (uint32_t k = 0; (arch = arch_at(c, t, k)); k++) {
        bool        text = compiler->is_text && compiler->is_text(compiler->user, arch);
        DeviceImage image = {.form = text ? TVMCC_CODE_SOURCE : TVMCC_CODE_BINARY, .target = arch};
        Bytes      *parts = NEW_ARRAY(c->arena, Bytes, jobs.n + 1);

        for (uint32_t i = 0; i < jobs.n; i++)
            if (jobs.at[i].arch == arch)
                parts[image.parts.n++] = jobs.at[i].code;
        image.parts.at = parts;
        vec_push(c->arena, out, image);
    }
    return true;
}
