/* Compiles a model for several processors at once, through libtvmcc.
 *
 *     compile <model> <folder> <cpu>...
 *
 * Each processor has a thread of its own and becomes <folder>/<cpu>.o with its header.  Where one
 * fails the others are given up. */
#include <tvmcc/compiler.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_CPUS = 8 };

typedef struct {
    const char  *model, *folder, *cpu;
    atomic_bool *stop; /* of all */
    int          status;
    pthread_t    thread;
} Job;

static int is_stopped(void *user)
{
    const Job *job = user;

    return atomic_load(job->stop);
}

/* What the library has to say, as a compiler would print it. */
static void print(const tvmcc_diagnostic *d)
{
    static const char *const names[] = {"error", "warning", "note"};

    fprintf(stderr, "%s: %s: %s%s%s%s\n", d->file ? d->file : "compile", names[d->severity],
            d->message, *d->code ? " [" : "", d->code, *d->code ? "]" : "");
    if (d->hint)
        fprintf(stderr, "hint: %s\n", d->hint);
}

static void *run(void *user)
{
    Job                  *job = user;
    const char *const     words[] = {"-O3", "-mcpu", job->cpu};
    const tvmcc_callbacks callbacks = {
        .struct_bytes = sizeof callbacks, .user = job, .cancelled = is_stopped};
    tvmcc_session          *session = tvmcc_session_new();
    tvmcc_compiled         *net = NULL;
    const tvmcc_diagnostic *d;
    char                    path[4096];

    job->status = tvmcc_session_options(session, 3, words);
    for (size_t i = 0; (d = tvmcc_session_diagnostic(session, i)); i++)
        print(d);
    if (!job->status) {
        snprintf(path, sizeof path, "%s/%s.o", job->folder, job->cpu);
        job->status = tvmcc_compile(session, job->model, "o", &callbacks, &net);
        if (!job->status)
            job->status = tvmcc_compiled_write(net, "o", path);
        for (size_t i = 0; (d = tvmcc_compiled_diagnostic(net, i)); i++)
            print(d);
    }
    if (job->status)
        atomic_store(job->stop, true);
    tvmcc_compiled_free(net);
    tvmcc_session_free(session);
    return NULL;
}

int main(int argc, char **argv)
{
    Job         jobs[MAX_CPUS];
    atomic_bool stop = false;
    int         n = argc - 3, status = 0;

    if (n < 1 || n > MAX_CPUS) {
        fprintf(stderr, "usage: %s <model> <folder> <cpu>...\n", argv[0]);
        return TVMCC_STATUS_USAGE;
    }
    for (int i = 0; i < n; i++) {
        jobs[i] = (Job){.model = argv[1], .folder = argv[2], .cpu = argv[3 + i], .stop = &stop};
        if (pthread_create(&jobs[i].thread, NULL, run, &jobs[i]))
            abort();
    }
    for (int i = 0; i < n; i++) {
        pthread_join(jobs[i].thread, NULL);
        if (jobs[i].status && (!status || status == TVMCC_STATUS_CANCELLED))
            status = jobs[i].status;
    }
    return status;
}
