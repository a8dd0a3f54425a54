/* Runs one compiled model for `tvmcc run` and `tvmcc verify` on another machine, or under its
 * emulator: C99, no library but libc and what the model itself asks for.
 *
 *     runner info OUT                        what goes in and out, as text
 *     runner run IN OUT [WEIGHTS [BUCKET]]   raw bytes of the inputs, one after the other, give
 *                                            those of the outputs; WEIGHTS: a weights file, or
 *                                            empty; BUCKET: which shape bucket, the last unless
 *                                            given
 *     runner steps IN OUT [WEIGHTS]          the same, but OUT gets what every step of the model
 *                                            changed in the arena and in the outputs
 *
 * `-` is standard input or output.  Built with -DTVMCC_INFO=<entry>_info and linked with the
 * product.  The exit status is 0, or 1 after a message on standard error. */
#ifndef TVMCC_ABI
#include "tvmcc/abi.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const tvmcc_model_info *TVMCC_INFO(void);

static int complain(const char *what, const char *which)
{
    fprintf(stderr, "runner: %s '%s'\n", what, which);
    return 1;
}

static void *aligned(size_t bytes)
{
    char *p = malloc(bytes + 128);

    return p ? p + (64 - (size_t)p % 64) : NULL;
}

static FILE *open_file(const char *path, int writing)
{
    if (strcmp(path, "-") == 0)
        return writing ? stdout : stdin;
    return fopen(path, writing ? "wb" : "rb");
}

static void describe(FILE *f, const char *side, const tvmcc_tensor_info *t)
{
    unsigned i;

    fprintf(f, "%s %u %u %u %lu %lu", side, (unsigned)t->code, (unsigned)t->bits, (unsigned)t->ndim,
            (unsigned long)t->bytes, (unsigned long)strlen(t->name));
    for (i = 0; i < t->ndim; i++)
        fprintf(f, " %ld", (long)t->dims[i]);
    fprintf(f, " %s\n", t->name);
}

static void tensors(FILE *f, const tvmcc_model_info *m)
{
    unsigned i;

    for (i = 0; i < m->ninputs; i++)
        describe(f, "in", &m->inputs[i]);
    for (i = 0; i < m->noutputs; i++)
        describe(f, "out", &m->outputs[i]);
}

static int info(const char *path)
{
    const tvmcc_model_info *m = TVMCC_INFO();
    FILE                   *f = open_file(path, 1);
    unsigned                i, k;

    if (!f)
        return complain("cannot write", path);
    fprintf(f, "tvmcc-runner 1 %u %u %u %lu %u\n", (unsigned)m->abi, (unsigned)m->ninputs,
            (unsigned)m->noutputs, (unsigned long)m->arena_shared + (unsigned long)m->arena_private,
            (unsigned)(m->nweights && m->weights[0].mode == TVMCC_WEIGHTS_FILE));
    tensors(f, m);
    if (m->struct_bytes >= offsetof(tvmcc_model_info, ntargets) && m->nbuckets) {
        fprintf(f, "buckets %u %u\n", (unsigned)m->nbuckets, (unsigned)m->nbucket_dims);
        for (k = 0; k < m->nbucket_dims; k++)
            fprintf(f, "%lu %s\n", (unsigned long)strlen(m->bucket_dims[k]), m->bucket_dims[k]);
        for (i = 0; i < m->nbuckets; i++) {
            for (k = 0; k < m->nbucket_dims; k++)
                fprintf(f, " %ld", (long)m->bucket_sizes[i * m->nbucket_dims + k]);
            fprintf(f, "\n");
            tensors(f, m->buckets[i]);
        }
    }
    fprintf(f, "targets %lu %s\n", (unsigned long)strlen(m->targets), m->targets);
    return fclose(f) != 0;
}

/* The data of a weights file, behind its header. */
static int read_weights(const char *path, tvmcc_params *params)
{
    tvmcc_weights_header h;
    FILE                *f = open_file(path, 0);
    size_t               bytes = 0;
    void                *p;
    int                  i;

    if (!f || fread(&h, sizeof h, 1, f) != 1 || memcmp(h.magic, TVMCC_WEIGHTS_MAGIC, 8) != 0)
        return complain("not a weights file", path);
    for (i = (int)sizeof(size_t) - 1; i >= 0; i--)
        bytes = bytes << 8 | h.data_bytes[i];
    p = aligned(bytes);
    if (!p || fread(p, 1, bytes, f) != bytes)
        return complain("cannot read", path);
    params->weights = p;
    params->weights_bytes = bytes;
    return fclose(f) != 0;
}

/* ---- steps: records of four 32-bit words and, for the first two kinds, bytes ---------------- */

enum { RECORD_WEIGHTS = 1, RECORD_CHANGE = 2, RECORD_STEP = 3, BLOCK = 64 };

typedef struct {
    FILE    *f;
    unsigned n; /* arena, then outputs */
    size_t  *bytes;
    char   **at, **before; /* what the model sees; a copy from before the step */
} Trace;

static void record(FILE *f, uint32_t kind, uint32_t region, size_t offset, size_t bytes,
                   const void *data)
{
    uint32_t head[4];

    head[0] = kind;
    head[1] = region;
    head[2] = (uint32_t)offset;
    head[3] = (uint32_t)bytes;
    fwrite(head, sizeof head, 1, f);
    if (data)
        fwrite(data, 1, bytes, f);
}

/* Writes what differs from the copy, and brings the copy up to date. */
static void write_changes(Trace *t)
{
    unsigned i;

    for (i = 0; i < t->n; i++) {
        size_t from = 0, to, part;

        while (from < t->bytes[i]) {
            for (to = from; to < t->bytes[i]; to += part) {
                part = t->bytes[i] - to < BLOCK ? t->bytes[i] - to : BLOCK;
                if (memcmp(t->at[i] + to, t->before[i] + to, part) == 0)
                    break;
            }
            if (to > from) {
                record(t->f, RECORD_CHANGE, i, from, to - from, t->at[i] + from);
                memcpy(t->before[i] + from, t->at[i] + from, to - from);
            }
            from = to + BLOCK;
        }
    }
}

static int32_t on_event(void *user, uint32_t event, uint32_t step, uint32_t part)
{
    Trace *t = user;

    if (event == TVMCC_EVENT_END && part == 0) {
        write_changes(t);
        record(t->f, RECORD_STEP, step, 0, 0, NULL);
    }
    return 0;
}

/* The run's memory, all 0, and the weights at once. */
static int begin_trace(Trace *t, const tvmcc_model_info *m, const char *path, void **out,
                       tvmcc_params *params)
{
    unsigned i;

    t->n = m->noutputs + 1;
    t->bytes = calloc(t->n, sizeof *t->bytes);
    t->at = calloc(t->n, sizeof *t->at);
    t->before = calloc(t->n, sizeof *t->before);
    t->f = open_file(path, 1);
    if (!t->bytes || !t->at || !t->before || !t->f)
        return complain("cannot write", path);
    for (i = 0; i < t->n; i++) {
        t->bytes[i] = i ? m->outputs[i - 1].bytes : params->arena_bytes;
        t->at[i] = i ? out[i - 1] : params->arena;
        if (!(t->before[i] = calloc(t->bytes[i] + 1, 1)))
            return complain("no memory for", m->name);
        memset(t->at[i], 0, t->bytes[i]);
    }
    if (params->weights)
        record(t->f, RECORD_WEIGHTS, 0, 0, params->weights_bytes, params->weights);
    else if (m->nweights)
        record(t->f, RECORD_WEIGHTS, 0, 0, m->weights[0].bytes, m->weights[0].data);
    params->instrument = on_event;
    params->instrument_user = t;
    return 0;
}

static int run(const char *in_path, const char *out_path, const char *weights, const char *bucket,
               int steps)
{
    const tvmcc_model_info *m = TVMCC_INFO(); /* as many tensors in every bucket */
    void                  **in = calloc(m->ninputs + 1, sizeof *in);
    void                  **out = calloc(m->noutputs + 1, sizeof *out);
    FILE                   *f;
    tvmcc_params            params;
    int32_t                 rc;
    unsigned                i;
    Trace                   trace;

    if (bucket)
        m = m->buckets[atoi(bucket)];
    memset(&params, 0, sizeof params);
    params.struct_bytes = sizeof params;
    params.threads = 1;
    params.arena_bytes = m->arena_shared + m->arena_private;
    params.arena = aligned(params.arena_bytes);
    if (!in || !out || !params.arena)
        return complain("no memory for", m->name);
    if (weights && *weights && read_weights(weights, &params))
        return 1;
    f = open_file(in_path, 0);
    for (i = 0; i < m->ninputs; i++) {
        in[i] = aligned(m->inputs[i].bytes);
        if (!f || !in[i] || fread(in[i], 1, m->inputs[i].bytes, f) != m->inputs[i].bytes)
            return complain("no value for input", m->inputs[i].name);
    }
    for (i = 0; i < m->noutputs; i++)
        if (!(out[i] = aligned(m->outputs[i].bytes)))
            return complain("no memory for output", m->outputs[i].name);
    if (steps && begin_trace(&trace, m, out_path, out, &params))
        return 1;
    rc = m->run(in, out, &params);
    if (rc) {
        fprintf(stderr, "runner: the run of '%s' ended with status %d\n", m->name, (int)rc);
        return 1;
    }
    if (steps)
        return fclose(trace.f) != 0 ? complain("cannot write", out_path) : 0;
    f = open_file(out_path, 1);
    for (i = 0; f && i < m->noutputs; i++)
        if (fwrite(out[i], 1, m->outputs[i].bytes, f) != m->outputs[i].bytes)
            return complain("cannot write", out_path);
    return !f || fclose(f) != 0 ? complain("cannot write", out_path) : 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "info") == 0)
        return info(argv[2]);
    if (argc >= 4 && argc <= 6 && strcmp(argv[1], "run") == 0)
        return run(argv[2], argv[3], argc > 4 ? argv[4] : NULL, argc > 5 ? argv[5] : NULL, 0);
    if ((argc == 4 || argc == 5) && strcmp(argv[1], "steps") == 0)
        return run(argv[2], argv[3], argv[4], NULL, 1);
    fprintf(stderr, "runner info OUT | runner run|steps IN OUT [WEIGHTS [BUCKET]]\n");
    return 2;
}
