/* Sorted tables of keys and values, as LevelDB writes them: the index of a TensorFlow checkpoint.
 *
 *     blocks of entries .. index block | footer: where the index is, a magic number
 *     entry: bytes shared with the key before, bytes of its own, bytes of the value; key, value
 *
 * Keys are made whole in the arena, values are views of the file. */
#include "formats/formats.h"

#include <string.h>

#define MAGIC 0xdb4775248b80fb57ull

enum { FOOTER = 48, TRAILER = 5, MAX_KEY = 1 << 16 };

typedef struct {
    Diags   *d;
    Arena   *a;
    Loc      loc;
    Bytes    file;
    uint64_t keys; /* bytes of them so far */
} Table;

typedef VEC(SsEntry) Entries;

static bool wrong(const Table *t, const char *what)
{
    return diag_error(t->d, E_PARSE_MODEL, t->loc, "%s", what);
}

/* The block at a handle (offset, size), without what ends it. */
static bool read_block(const Table *t, Reader *handle, Bytes *out)
{
    uint64_t at = read_varint(handle), n = read_varint(handle);

    if (handle->bad || at > t->file.n || n > t->file.n - at || t->file.n - at - n < TRAILER)
        return wrong(t, "a block leads out of the table");
    if (t->file.at[at + n] != 0)
        return wrong(t, "the table is compressed");
    *out = (Bytes){t->file.at + at, (size_t)n};
    return true;
}

static bool read_entries(Table *t, Bytes block, Entries *out)
{
    Reader   r;
    uint32_t restarts = 0;
    Bytes    last = {0};

    if (block.n >= 4) {
        r = reader((Bytes){block.at + block.n - 4, 4});
        restarts = read_u32(&r);
    }
    if (block.n < 4 || restarts > (block.n - 4) / 4)
        return wrong(t, "a block of the table ends early");
    r = reader((Bytes){block.at, block.n - 4 - 4 * (size_t)restarts});
    while (reader_left(&r)) {
        uint64_t shared = read_varint(&r), own = read_varint(&r), n = read_varint(&r);
        Bytes    rest, value;
        uint8_t *key;

        if (r.bad || shared > last.n || own > MAX_KEY || shared + own > MAX_KEY)
            return wrong(t, "a key of the table is wrong");
        rest = read_bytes(&r, own);
        value = read_bytes(&r, n);
        if (r.bad || (t->keys += shared + own) > 64 * (uint64_t)t->file.n + MAX_KEY)
            return wrong(t, "an entry of the table leads out of its block");
        if (out->n >= t->file.n) /* which are three bytes at least */
            return wrong(t, "the blocks of the table overlap");
        key = arena_alloc(t->a, (size_t)(shared + own) + 1);
        if (shared)
            memcpy(key, last.at, (size_t)shared);
        if (own)
            memcpy(key + shared, rest.at, (size_t)own);
        last = (Bytes){key, (size_t)(shared + own)};
        vec_push(t->a, out, ((SsEntry){(const char *)key, value}));
    }
    return true;
}

bool sstable_read(Diags *d, Arena *a, Loc loc, Bytes file, uint32_t *n, SsEntry **out)
{
    Table   t = {.d = d, .a = a, .loc = loc, .file = file};
    Entries blocks = {0}, all = {0};
    Reader  r;
    Bytes   index;

    if (file.n < FOOTER)
        return wrong(&t, "the table ends early");
    r = reader((Bytes){file.at + file.n - 8, 8});
    if (read_u64(&r) != MAGIC)
        return wrong(&t, "not a table of keys and values");
    r = reader((Bytes){file.at + file.n - FOOTER, FOOTER - 8});
    read_varint(&r); /* where the index of other blocks is, which nothing needs */
    read_varint(&r);
    if (!read_block(&t, &r, &index) || !read_entries(&t, index, &blocks))
        return false;
    for (uint32_t i = 0; i < blocks.n; i++) {
        Reader handle = reader(blocks.at[i].value);
        Bytes  block;

        if (!read_block(&t, &handle, &block) || !read_entries(&t, block, &all))
            return false;
    }
    *n = all.n;
    *out = all.at;
    return true;
}
