/* What `program info` says of its model (share/tvmcc/runner.c), read into a tvmcc_model_info:
 *
 *     tvmcc-runner 1 <abi> <inputs> <outputs> <bytes of the arena> <1: needs a weights file>
 *     in <code> <bits> <ndim> <bytes> <length of name> <dims> <name>
 *     out ..
 *     buckets <n> <dims> ..
 *     targets <length> <text> */
#include "driver/remote.h"

#include <stdlib.h>
#include <string.h>

/* The next number of a line; -1 if there is none. */
static int64_t number(char **at)
{
    char     *end;
    long long v = strtoll(*at, &end, 10);

    if (end == *at)
        return -1;
    *at = end;
    return v;
}

/* A space and so many characters; NULL if there are fewer. */
static const char *counted_text(Arena *a, char **at, int64_t length)
{
    const char *text;

    if (length < 0 || **at != ' ' || memchr(*at, 0, (size_t)length + 1))
        return NULL;
    text = arena_printf(a, "%.*s", (int)length, *at + 1);
    *at += 1 + length;
    return text;
}

/* ` <code> <bits> <ndim> <bytes> <length of name> <dims> <name>` */
static bool read_tensor(Arena *a, char **at, tvmcc_tensor_info *t)
{
    int64_t     v[5];
    int64_t    *dims;
    const char *name;

    for (int i = 0; i < 5; i++)
        if ((v[i] = number(at)) < 0)
            return false;
    if (v[0] > TVMCC_BOOL || v[1] > 64 || v[1] < 8 || v[2] > 64)
        return false;
    dims = NEW_ARRAY(a, int64_t, v[2] + 1);
    for (int64_t i = 0; i < v[2]; i++)
        dims[i] = number(at);
    if (!(name = counted_text(a, at, v[4])) || **at != '\n')
        return false;
    ++*at;
    *t = (tvmcc_tensor_info){.name = name,
                             .dims = dims,
                             .bytes = (size_t)v[3],
                             .code = (uint8_t)v[0],
                             .bits = (uint8_t)v[1],
                             .lanes = 1,
                             .ndim = (uint32_t)v[2],
                             .align = 64};
    return true;
}

/* The inputs and outputs of `info`, whose numbers are known. */
static bool read_tensors(Arena *a, char **at, tvmcc_model_info *info)
{
    uint32_t n[2] = {info->ninputs, info->noutputs};

    for (int side = 0; side < 2; side++) {
        tvmcc_tensor_info *t = NEW_ARRAY(a, tvmcc_tensor_info, n[side] + 1);

        for (uint32_t i = 0; i < n[side]; i++) {
            *at += str_starts(*at, side ? "out" : "in") ? 2 + side : 0;
            if (!read_tensor(a, at, &t[i]))
                return false;
        }
        *(side ? &info->outputs : &info->inputs) = t;
    }
    return true;
}

/* `buckets <n> <dims>`, the names of the dimensions, then sizes and tensors of each bucket. */
static bool read_buckets(Arena *a, char **at, tvmcc_model_info *info)
{
    int64_t n, nd;

    if (!str_starts(*at, "buckets "))
        return true;
    *at += strlen("buckets ");
    n = number(at);
    nd = number(at);
    if (n < 1 || n > 4096 || nd < 1 || nd > 4096)
        return false;
    const tvmcc_model_info **all = NEW_ARRAY(a, const tvmcc_model_info *, n);
    const char             **names = NEW_ARRAY(a, const char *, nd);
    int64_t                 *sizes = NEW_ARRAY(a, int64_t, n *nd);

    for (int64_t k = 0; k < nd; k++) {
        if (!(names[k] = counted_text(a, at, number(at))))
            return false;
    }
    for (int64_t b = 0; b < n; b++) {
        tvmcc_model_info *bucket = arena_dup(a, info, sizeof *info);

        for (int64_t k = 0; k < nd; k++)
            sizes[b * nd + k] = number(at);
        *at += **at == '\n';
        if (!read_tensors(a, at, bucket))
            return false;
        all[b] = bucket;
    }
    info->nbuckets = (uint32_t)n;
    info->nbucket_dims = (uint32_t)nd;
    info->buckets = all;
    info->bucket_dims = names;
    info->bucket_sizes = sizes;
    return true;
}

static bool read_targets(Arena *a, char **at, tvmcc_model_info *info)
{
    *at += **at == '\n';
    if (!str_starts(*at, "targets "))
        return false;
    *at += strlen("targets ");
    info->targets = counted_text(a, at, number(at));
    return info->targets != NULL;
}

const char *remote_parse(Arena *a, Bytes text, tvmcc_model_info *info, bool *weights)
{
    char   *at = arena_printf(a, "%.*s", (int)text.n, (const char *)text.at);
    int64_t abi, n[2];

    if (!str_starts(at, "tvmcc-runner 1 "))
        return "its program says nothing of the model";
    at += strlen("tvmcc-runner 1 ");
    abi = number(&at);
    n[0] = number(&at);
    n[1] = number(&at);
    info->arena_shared = (size_t)number(&at);
    *weights = number(&at) != 0;
    if (abi != TVMCC_ABI || n[0] < 0 || n[1] < 0 || n[0] > 4096 || n[1] > 4096)
        return "it was compiled for another version of the ABI";
    at += *at == '\n';
    info->abi = TVMCC_ABI;
    info->struct_bytes = sizeof *info;
    info->device = TVMCC_DEVICE_CPU;
    info->ninputs = (uint32_t)n[0];
    info->noutputs = (uint32_t)n[1];
    return read_tensors(a, &at, info) && read_buckets(a, &at, info) && read_targets(a, &at, info)
               ? NULL
               : "what its program says of the model makes no sense";
}
