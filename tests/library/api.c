/* api <model> <folder>: what include/tvmcc/compiler.h promises, and what it says where that fails.
 *
 * Two threads compile at once, each to contents of every kind, which go to <folder>/<thread>.<kind>
 * for the caller to compare with the driver's; a third is cancelled wherever it can be. */
#include <tvmcc/compiler.h>

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                                  \
    do {                                                                             \
        if (!(what)) {                                                               \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #what); \
            exit(1);                                                                 \
        }                                                                            \
    } while (0)

static const char *const kinds[] = {"relay", "te", "sched", "tir",     "plan", "id",  "ll", "s",
                                    "o",     "h",  "json",  "weights", "a",    "tar", "so"};
enum { KINDS = sizeof kinds / sizeof *kinds };
static const char all_kinds[] = "relay,te,sched,tir,plan,id,ll,s,o,h,json,weights,a,tar,so";

static void save(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");

    CHECK(f && fwrite(data, 1, bytes, f) == bytes && fclose(f) == 0);
}

/* ---- two at once ------------------------------------------------------------------------------- */

typedef struct {
    const tvmcc_session *session;
    const char          *model, *folder;
    int                  number;
    int                  steps;
    atomic_int           kernels;
    pthread_t            thread;
} Job;

static void on_step(void *user, const char *name, uint32_t done, uint32_t total)
{
    Job *job = user;

    CHECK(*name && done < total);
    job->steps++;
}

static void on_kernel(void *user, const char *name, uint32_t done, uint32_t total)
{
    Job *job = user;

    CHECK((!name || *name) && done <= total);
    atomic_fetch_add(&job->kernels, name != NULL);
}

static void *compile_all(void *user)
{
    Job                  *job = user;
    const tvmcc_callbacks callbacks = {
        .struct_bytes = sizeof callbacks, .user = job, .step = on_step, .kernel = on_kernel};
    tvmcc_compiled *net;

    CHECK(tvmcc_compile(job->session, job->model, all_kinds, &callbacks, &net) == 0);
    CHECK(tvmcc_compiled_status(net) == 0 && !tvmcc_compiled_diagnostic(net, 0));
    CHECK(strcmp(tvmcc_compiled_entry(net), "digits") == 0);
    CHECK(strcmp(tvmcc_compiled_input(net, 0), job->model) == 0 && !tvmcc_compiled_input(net, 1));
    CHECK(job->steps > 5 && atomic_load(&job->kernels) > 3);
    for (int i = 0; i < KINDS; i++) {
        const void *data, *again;
        size_t      bytes, same;
        char        path[4096];

        CHECK(tvmcc_compiled_content(net, kinds[i], &data, &bytes) == 0 && data && bytes);
        CHECK(tvmcc_compiled_content(net, kinds[i], &again, &same) == 0);
        CHECK(again == data && same == bytes);
        snprintf(path, sizeof path, "%s/%d.%s", job->folder, job->number, kinds[i]);
        save(path, data, bytes);
    }
    tvmcc_compiled_free(net);
    return NULL;
}

static void two_at_once(const char *model, const char *folder)
{
    const char *const words[] = {"-mcpu=haswell", "-j", "2", "-fno-cache"};
    tvmcc_session    *session = tvmcc_session_new();
    Job               job[2];

    CHECK(tvmcc_session_options(session, 4, words) == 0);
    for (int i = 0; i < 2; i++) {
        job[i] = (Job){.session = session, .model = model, .folder = folder, .number = i};
        CHECK(pthread_create(&job[i].thread, NULL, compile_all, &job[i]) == 0);
    }
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(job[i].thread, NULL) == 0);
    tvmcc_session_free(session);
}

/* ---- given up ---------------------------------------------------------------------------------- */

static int count_down(void *user)
{
    return atomic_fetch_sub((atomic_int *)user, 1) <= 0;
}

static int files_in(const char *folder)
{
    DIR *list = opendir(folder);
    int  n = 0;

    CHECK(list);
    for (struct dirent *e; (e = readdir(list));)
        n += e->d_name[0] != '.';
    closedir(list);
    return n;
}

/* At every place where it is asked whether to go on. */
static void cancelled(const char *model, const char *folder)
{
    const char *const words[] = {"-mcpu=haswell", "-fno-cache", "-j2"};
    tvmcc_session    *session = tvmcc_session_new();
    int               before = files_in(folder), status = TVMCC_STATUS_CANCELLED, stops = 0;

    CHECK(tvmcc_session_options(session, 3, words) == 0);
    for (int n = 0; status == TVMCC_STATUS_CANCELLED; n += 1 + n / 4) {
        atomic_int            left = n;
        const tvmcc_callbacks callbacks = {
            .struct_bytes = sizeof callbacks, .user = &left, .cancelled = count_down};
        tvmcc_compiled         *net;
        const tvmcc_diagnostic *d;
        char                    path[4096];

        snprintf(path, sizeof path, "%s/given_up.o", folder);
        status = tvmcc_compile(session, model, "o", &callbacks, &net);
        CHECK(status == tvmcc_compiled_status(net));
        if (status) {
            d = tvmcc_compiled_diagnostic(net, 0);
            CHECK(status == TVMCC_STATUS_CANCELLED && d && !tvmcc_compiled_diagnostic(net, 1));
            if (!stops)
                printf("error: %s [%s]\n", d->message, d->code);
            CHECK(tvmcc_compiled_write(net, "o", path) == TVMCC_STATUS_CANCELLED);
            CHECK(!tvmcc_compiled_output(net, 0));
            stops++;
        }
        tvmcc_compiled_free(net);
        CHECK(files_in(folder) == before);
    }
    CHECK(status == 0 && stops > 5);
    tvmcc_session_free(session);
}

/* ---- mistakes ---------------------------------------------------------------------------------- */

static int option(tvmcc_session *s, const char *word)
{
    return tvmcc_session_options(s, 1, &word);
}

static void wrong_options(void)
{
    tvmcc_session          *s = tvmcc_session_new();
    const tvmcc_diagnostic *d;

    CHECK(option(s, "-mcup=haswell") == TVMCC_STATUS_USAGE);
    d = tvmcc_session_diagnostic(s, 0);
    CHECK(d && d->severity == TVMCC_SEVERITY_ERROR && strcmp(d->code, "E0102") == 0);
    CHECK(strstr(d->message, "'-mcup'") && d->hint && strstr(d->hint, "-mcpu"));
    CHECK(option(s, "-O7") == TVMCC_STATUS_USAGE && option(s, "-mcpu") == TVMCC_STATUS_USAGE);
    CHECK(option(s, "net.onnx") == TVMCC_STATUS_USAGE);
    CHECK(option(s, "-onet.o") == TVMCC_STATUS_USAGE && option(s, "-v") == TVMCC_STATUS_USAGE);
    CHECK(tvmcc_session_diagnostic(s, 5) && !tvmcc_session_diagnostic(s, 6));
    CHECK(option(s, "-O2") == 0);
    tvmcc_session_free(s);
}

static void wrong_compiles(const char *model, const char *folder)
{
    tvmcc_session          *s = tvmcc_session_new();
    tvmcc_compiled         *net;
    const tvmcc_diagnostic *d;
    const void             *data;
    size_t                  bytes;
    char                    path[4096];

    CHECK(tvmcc_compile(s, "missing.onnx", "o", NULL, &net) == TVMCC_STATUS_IO);
    d = tvmcc_compiled_diagnostic(net, 0);
    CHECK(strcmp(d->code, "E0903") == 0 && strcmp(d->file, "missing.onnx") == 0);
    CHECK(tvmcc_compiled_content(net, "o", &data, &bytes) == TVMCC_STATUS_IO && !data && !bytes);
    tvmcc_compiled_free(net);
    CHECK(tvmcc_compile(s, model, "o,oo", NULL, &net) == TVMCC_STATUS_USAGE);
    tvmcc_compiled_free(net);
    CHECK(tvmcc_compile_memory(s, "four.onnx", "none", 4, "o", NULL, &net) == TVMCC_STATUS_PARSE);
    tvmcc_compiled_free(net);

    /* The processor that nobody named; a file that cannot be written, and then one that can. */
    CHECK(tvmcc_compile(s, model, "o,h", NULL, &net) == 0);
    d = tvmcc_compiled_diagnostic(net, 0);
    CHECK(d->severity == TVMCC_SEVERITY_WARNING && strcmp(d->flag, "baseline-cpu") == 0 && d->hint);
    CHECK(tvmcc_compiled_content(net, "so", &data, &bytes) == TVMCC_STATUS_USAGE && !data);
    CHECK(tvmcc_compiled_write(net, "o", "no/such/folder/net.o") == TVMCC_STATUS_IO);
    CHECK(tvmcc_compiled_write(net, "o", "-") == TVMCC_STATUS_USAGE);
    CHECK(!tvmcc_compiled_output(net, 0));
    snprintf(path, sizeof path, "%s/later.o", folder);
    CHECK(tvmcc_compiled_write(net, "o", path) == 0 && tvmcc_compiled_status(net) == 0);
    CHECK(tvmcc_compiled_output(net, 1) && !tvmcc_compiled_output(net, 2));
    tvmcc_compiled_free(net);
    tvmcc_compiled_free(NULL);
    tvmcc_session_free(s);
    tvmcc_session_free(NULL);
}

/* ---- in memory --------------------------------------------------------------------------------- */

static void in_memory(const char *model, const char *folder)
{
    const char *const words[] = {"-mcpu=haswell", "-Wno-dim-default"};
    tvmcc_session    *s = tvmcc_session_new();
    tvmcc_compiled   *net;
    FILE             *f = fopen(model, "rb");
    static char       bytes[1 << 20];
    size_t            n;
    char              path[4096];

    CHECK(f && (n = fread(bytes, 1, sizeof bytes, f)) > 0 && fclose(f) == 0);
    CHECK(tvmcc_session_options(s, 2, words) == 0);
    CHECK(tvmcc_compile_memory(s, "nowhere/digits.onnx", bytes, n, "o", NULL, &net) == 0);
    tvmcc_session_free(s); /* the compile has all it needs */
    snprintf(path, sizeof path, "%s/memory.o", folder);
    CHECK(tvmcc_compiled_write(net, "o", path) == 0);
    tvmcc_compiled_free(net);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3 && tvmcc_compiler_abi() == TVMCC_COMPILER_ABI && *tvmcc_compiler_version());
    two_at_once(argv[1], argv[2]);
    wrong_options();
    wrong_compiles(argv[1], argv[2]);
    in_memory(argv[1], argv[2]);
    cancelled(argv[1], argv[2]);
    return 0;
}
