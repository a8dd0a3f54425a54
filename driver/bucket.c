/* Shape buckets in `tvmcc run` and `bench`: the smallest bucket that holds the given values, zeros
 * around them, and outputs cut to what was asked for.
 *
 * A dimension of a tensor belongs to dimension k of the buckets if it has its size in every bucket;
 * such dimensions are padded and cut, all others have to be equal. */
#include "driver/session.h"

#include <string.h>

/* Which dimension of the buckets it is; nbucket_dims: none. */
static uint32_t bucket_dim(const tvmcc_model_info *whole, bool input, uint32_t tensor, uint32_t d)
{
    uint32_t nd = whole->nbucket_dims, k = 0;

    for (; k < nd; k++) {
        bool fits = true;

        for (uint32_t b = 0; fits && b < whole->nbuckets; b++) {
            const tvmcc_model_info *m = whole->buckets[b];
            fits =
                (input ? m->inputs : m->outputs)[tensor].dims[d] == whole->bucket_sizes[b * nd + k];
        }
        if (fits)
            break;
    }
    return k;
}

bool session_bucket(Session *s)
{
    const tvmcc_model_info *whole = s->info;
    Arena                  *a = s->driver->arena;
    uint32_t                n = tvmrt_buckets(whole), nd;
    bool                    any = false;
    StrBuf                  text = strbuf(a);

    if (!n)
        return true;
    nd = whole->nbucket_dims;
    s->whole = whole;
    s->wanted = NEW_ARRAY(a, int64_t, nd + 1);
    for (uint32_t i = 0; i < whole->ninputs; i++) {
        const tvmcc_tensor_info *t = &whole->inputs[i];

        for (uint32_t j = 0; j < s->ngiven; j++) {
            const Array *v = &s->given[j];

            if (strcmp(v->name, t->name) != 0 || v->ndim != t->ndim)
                continue;
            for (uint32_t d = 0; d < t->ndim; d++) {
                uint32_t k = bucket_dim(whole, true, i, d);

                if (k < nd && v->dims[d] > s->wanted[k]) {
                    s->wanted[k] = v->dims[d];
                    any = true;
                }
            }
        }
    }
    for (uint32_t k = 0; k < nd; k++) {
        if (!any || !s->wanted[k])
            s->wanted[k] = whole->bucket_sizes[(n - 1) * nd + k];
        str_printf(&text, "%s%s=%lld", k ? ", " : "", whole->bucket_dims[k],
                   (long long)s->wanted[k]);
    }
    if ((s->info = tvmrt_bucket(whole, s->wanted)))
        return true;
    s->info = whole;
    return diag_error(s->driver->diags, E_RUN, NO_LOC, "no bucket holds %s", text.at);
}

/* Between a packed array of `dims` and the corner of one of `whole`: dims <= whole. */
static void copy_corner(uint8_t *to, const uint8_t *from, uint32_t ndim, const int64_t *dims,
                        const int64_t *whole, size_t cell, bool into_whole)
{
    size_t  row = cell * (size_t)(ndim ? dims[ndim - 1] : 1), rows = 1;
    int64_t at[16] = {0};

    for (uint32_t d = 0; d + 1 < ndim; d++)
        rows *= (size_t)dims[d];
    for (size_t r = 0; r < rows; r++) {
        size_t where = 0;

        for (uint32_t d = 0; d < ndim; d++)
            where = where * (size_t)whole[d] + (size_t)at[d];
        memmove(into_whole ? to + where * cell : to + r * row,
                into_whole ? from + r * row : from + where * cell, row);
        for (uint32_t d = ndim ? ndim - 1 : 0; d-- > 0;) {
            if (++at[d] < dims[d])
                break;
            at[d] = 0;
        }
    }
}

bool session_pad(Session *s, uint32_t input, const Array *v, void *to)
{
    const tvmcc_tensor_info *t = &s->info->inputs[input];

    if (!s->whole || v->ndim != t->ndim || t->ndim > 16 || !session_same_type(t, v))
        return false;
    for (uint32_t d = 0; d < t->ndim; d++)
        if (v->dims[d] != t->dims[d] &&
            (v->dims[d] > t->dims[d] ||
             bucket_dim(s->whole, true, input, d) == s->whole->nbucket_dims))
            return false;
    memset(to, 0, t->bytes);
    copy_corner(to, v->data.at, t->ndim, v->dims, t->dims, v->bits / 8u, true);
    return true;
}

void session_cut(Session *s)
{
    Arena             *a = s->driver->arena;
    tvmcc_model_info  *shown;
    tvmcc_tensor_info *out;

    if (!s->whole)
        return;
    shown = arena_dup(a, s->info, sizeof *shown);
    out = NEW_ARRAY(a, tvmcc_tensor_info, shown->noutputs + 1);
    for (uint32_t i = 0; i < shown->noutputs; i++) {
        const tvmcc_tensor_info *t = &s->info->outputs[i];
        size_t                   cell = t->bits / 8u * t->lanes, cells = 1;
        int64_t                 *dims = DUP_ARRAY(a, t->dims, t->ndim);

        for (uint32_t d = 0; d < t->ndim && t->ndim <= 16; d++) {
            uint32_t k = bucket_dim(s->whole, false, i, d);

            if (k < s->whole->nbucket_dims)
                dims[d] = s->wanted[k];
            cells *= (size_t)dims[d];
        }
        out[i] = *t;
        if (t->ndim > 16)
            continue;
        copy_corner(s->out[i], s->out[i], t->ndim, dims, t->dims, cell, false);
        out[i].dims = dims;
        out[i].bytes = cells * cell;
    }
    shown->outputs = out;
    s->info = shown;
}
