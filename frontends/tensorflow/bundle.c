/* The checkpoint of a SavedModel: names to tensors.
 *
 *     variables/variables.index                a sorted table: "" to a header, names to entries
 *     variables/variables.data-00000-of-00001  the cells, as an entry says: shard, offset, size */
#include "frontends/tensorflow/tensorflow.h"

#include <string.h>

enum { MAX_SHARDS = 4096 };

struct TfBundle {
    Ctx         *c;
    const char  *stem; /* ".../variables/variables" */
    ImportFiles *files;
    uint32_t     n;
    SsEntry     *at; /* by key */
    uint32_t     shards;
    Bytes       *data; /* at NULL: not mapped yet */
};

static bool entry_is(const SsEntry *e, const char *key)
{
    return !strcmp(e->key, key);
}

TfBundle *tf_bundle_open(Ctx *c, const char *path, ImportFiles *files)
{
    TfBundle      *t = NEW(c->arena, TfBundle);
    const char    *slash = strrchr(path, '/');
    int            n = slash ? (int)(slash - path) + 1 : 0;
    const char    *index;
    TfBundleHeader h = {0};
    Bytes          file;
    Loc            loc;

    t->c = c;
    t->files = files;
    t->stem = arena_printf(c->arena, "%.*svariables/variables", n, path);
    index = intern_printf(c->strings, "%s.index", t->stem);
    loc = (Loc){.file = index};
    if (!file_map(c->diags, index, &file) ||
        !sstable_read(c->diags, c->arena, loc, file, &t->n, &t->at))
        return NULL;
    vec_push(c->arena, files, index);
    if (t->n == 0 || !entry_is(&t->at[0], "") ||
        !pb_read(c->diags, c->arena, loc, &tf_bundle_header, t->at[0].value, &h))
        return error_at(c, E_PARSE_MODEL, loc, "the checkpoint has no header");
    if (h.endianness != 0 || h.shards < 1 || h.shards > MAX_SHARDS)
        return error_at(c, E_UNSUPPORTED, loc, "a checkpoint of %lld shards, byte order %lld",
                        (long long)h.shards, (long long)h.endianness);
    t->shards = (uint32_t)h.shards;
    t->data = NEW_ARRAY(c->arena, Bytes, t->shards);
    return t;
}

static const SsEntry *find_entry(const TfBundle *t, const char *key)
{
    for (uint32_t i = 1; i < t->n; i++)
        if (entry_is(&t->at[i], key))
            return &t->at[i];
    return NULL;
}

/* The cells of an entry, a view. */
static bool cells_of(TfBundle *t, const TfBundleEntry *e, const char *key, Bytes *out)
{
    Ctx   *c = t->c;
    Bytes *shard;
    Loc    loc = {.file = intern_printf(c->strings, "%s.index", t->stem)};

    if (e->shard < 0 || e->shard >= t->shards || e->offset < 0 || e->size < 0)
        return error_at(c, E_PARSE_MODEL, loc, "tensor '%s' is in shard %lld of %u", key,
                        (long long)e->shard, t->shards);
    shard = &t->data[e->shard];
    loc.file =
        intern_printf(c->strings, "%s.data-%05u-of-%05u", t->stem, (uint32_t)e->shard, t->shards);
    if (!shard->at) {
        if (!file_map(c->diags, loc.file, shard))
            return false;
        vec_push(c->arena, t->files, loc.file);
    }
    if ((uint64_t)e->offset > shard->n || (uint64_t)e->size > shard->n - (uint64_t)e->offset)
        return error_at(c, E_PARSE_MODEL, loc, "tensor '%s' leads out of the file", key);
    *out = (Bytes){shard->at + e->offset, (size_t)e->size};
    return true;
}

const Expr *tf_bundle_tensor(TfBundle *t, const char *key, const char *name, Loc loc)
{
    Ctx           *c = t->c;
    const SsEntry *at = find_entry(t, key);
    TfBundleEntry  e = {0};
    int64_t        dims[MAX_RANK], cells = 1;
    uint32_t       rank;
    Bytes          data;
    DType          d;

    if (!at)
        return error_at(c, E_IMPORT, loc, "the checkpoint has no tensor '%s'", key);
    if (!pb_read(c->diags, c->arena, loc, &tf_bundle_entry, at->value, &e))
        return NULL;
    rank = e.shape ? e.shape->dim.n : 0;
    if (!tf_dtype(e.dtype, &d) || e.slices.n || rank > MAX_RANK)
        return error_at(c, E_UNSUPPORTED, loc, "tensor '%s' is %s", key,
                        e.slices.n ? "in slices" : tf_dtype_name(c, e.dtype));
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = ((const TfDim *)e.shape->dim.at[i])->size;
        if (dims[i] < 0 || !checked_mul(cells, dims[i], &cells) || cells > MAX_ELEMS)
            return error_at(c, E_PARSE_MODEL, loc, "tensor '%s': dimension %u is %lld", key, i,
                            (long long)dims[i]);
    }
    if (!cells_of(t, &e, key, &data))
        return NULL;
    if (data.n != (size_t)cells * dtype_bytes(d))
        return error_at(c, E_PARSE_MODEL, loc,
                        "tensor '%s' has %zu bytes, but its shape needs %lld", key, data.n,
                        (long long)cells * dtype_bytes(d));
    for (size_t i = 0; dtype_is_bool(d) && i < data.n; i++)
        if (data.at[i] > 1)
            return error_at(c, E_PARSE_MODEL, loc, "tensor '%s': a bool is %u", key, data.at[i]);
    return expr_const(c, const_new(c, name, type_tensor_i64(c, d, rank, dims), data), loc);
}
