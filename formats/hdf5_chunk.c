/* HDF5: datasets in chunks of one shape, each perhaps packed, found through an index.
 *
 * Old files have a tree whose keys are the chunks' places.  Newer ones choose: one chunk, chunks
 * one behind the other, an array of addresses of fixed size or one that grows (hdf5_array.c), or a
 * tree of version 2.  Whatever it is, each chunk is unpacked and its cells are put where they are
 * in the whole. */
#include "formats/hdf5_chunk.h"

#include <string.h>
#include <zlib.h>

enum { DEFLATE = 1, SHUFFLE = 2, FLETCHER32 = 3 };
enum { SINGLE = 1, IMPLICIT, FIXED, EXTENSIBLE, TREE2 };

/* ---- filters -------------------------------------------------------------------------------------- */

static bool read_filters(H5File *f, Bytes message, H5Chunks *k)
{
    Reader   r = reader(message);
    uint32_t version = read_u8(&r);

    k->nfilters = read_u8(&r);
    if (version < 1 || version > 2 || k->nfilters > COUNT(k->filters))
        return h5_bad(f, "its filters are of version %u, and %u", version, k->nfilters);
    if (version == 1)
        read_bytes(&r, 6);
    for (uint32_t i = 0; i < k->nfilters; i++) {
        uint32_t id = read_u16(&r), name = version == 1 || id >= 256 ? read_u16(&r) : 0, values;

        read_u16(&r);
        values = read_u16(&r);
        read_bytes(&r, version == 1 ? align_up(name, 8) : name);
        read_bytes(&r, 4 * (uint64_t)(values + (version == 1 && values % 2)));
        if (r.bad)
            return h5_bad(f, "its filters end too early");
        if (id < DEFLATE || id > FLETCHER32)
            return h5_unsupported(f,
                                  "its cells are packed by filter %u; deflate, shuffle and "
                                  "fletcher32 are known",
                                  id);
        k->filters[i] = (uint8_t)id;
    }
    return true;
}

/* Sums of 16-bit words as they stand, modulo 65535. */
static uint32_t fletcher32(Bytes b)
{
    uint32_t one = 0, two = 0;
    size_t   i = 0;

    for (; i + 1 < b.n; i += 2) {
        one = (one + ((uint32_t)b.at[i] << 8 | b.at[i + 1])) % 65535;
        two = (two + one) % 65535;
    }
    if (i < b.n) {
        one = (one + ((uint32_t)b.at[i] << 8)) % 65535;
        two = (two + one) % 65535;
    }
    return two << 16 | one;
}

static bool check_sum(H5File *f, Bytes *b)
{
    Reader   r;
    uint32_t is;

    if (b->n < 4)
        return h5_bad(f, "a chunk is shorter than its checksum");
    b->n -= 4;
    r = reader((Bytes){b->at + b->n, 4});
    is = fletcher32(*b);
    return read_u32(&r) == is || h5_bad(f, "the checksum of a chunk is wrong");
}

static bool inflated(H5File *f, const H5Chunks *k, Bytes *b)
{
    uint64_t room = k->bytes + 4; /* and perhaps a checksum */
    uint8_t *at = h5_make(f, room);
    uLongf   n = room;

    if (!at)
        return false;
    if (uncompress(at, &n, b->at, b->n) != Z_OK)
        return h5_bad(f, "the packed data of a chunk are broken");
    WRITTEN_BY_LIBRARY(at, (size_t)n);
    *b = (Bytes){at, n};
    return true;
}

/* First bytes of all cells, second bytes of all cells .. */
static bool unshuffled(H5File *f, const H5Chunks *k, Bytes *b)
{
    size_t   size = k->type->size, n = b->n / size;
    uint8_t *at = h5_make(f, b->n);

    if (!at)
        return false;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < size; j++)
            at[i * size + j] = b->at[j * n + i];
    memcpy(at + n * size, b->at + n * size, b->n - n * size);
    *b = (Bytes){at, b->n};
    return true;
}

static bool unfiltered(H5File *f, const H5Chunks *k, uint32_t mask, Bytes *b)
{
    for (uint32_t i = k->nfilters; i-- > 0;) {
        bool ok = true;

        if (mask >> i & 1)
            continue;
        switch (k->filters[i]) {
        case DEFLATE: ok = inflated(f, k, b); break;
        case SHUFFLE: ok = unshuffled(f, k, b); break;
        case FLETCHER32: ok = check_sum(f, b); break;
        }
        if (!ok)
            return false;
    }
    return true;
}

/* ---- one chunk -------------------------------------------------------------------------------------- */

static void put_cells(const H5Chunks *k, const uint64_t *place, const uint8_t *from)
{
    uint64_t at[ARRAY_MAX_DIMS] = {0}, size = k->type->size, row = 0;
    uint32_t rank = k->rank, last = rank - 1;

    if (place[last] < k->space->dims[last])
        row = k->space->dims[last] - place[last];
    row = row < k->dims[last] ? row : k->dims[last];
    for (;;) {
        uint64_t to = 0, source = 0;
        bool     inside = true;
        uint32_t d = last;

        for (uint32_t i = 0; i < rank; i++) {
            inside &= place[i] + at[i] < k->space->dims[i];
            to = to * k->space->dims[i] + place[i] + at[i];
            source = source * k->dims[i] + at[i];
        }
        if (inside)
            memcpy(k->out + to * size, from + source * size, row * size);
        while (d-- > 0 && ++at[d] == k->dims[d])
            at[d] = 0;
        if (d == UINT32_MAX)
            return;
    }
}

bool h5_put_chunk(H5File *f, const H5Chunks *k, const uint64_t *place, uint64_t address,
                  uint64_t packed, uint32_t mask)
{
    bool     partial = false;
    uint64_t n = k->nfilters ? packed : k->bytes;
    Bytes    b;
    Reader   r;

    if (!h5_step(f))
        return false;
    for (uint32_t i = 0; i < k->rank; i++) {
        if (place[i] >= k->space->dims[i])
            return true; /* the dataset was larger once */
        partial |= k->dims[i] > k->space->dims[i] - place[i];
    }
    if (address == H5_NOWHERE)
        return true; /* never written */
    if (partial && k->plain_edges)
        n = k->bytes;
    if (!h5_window(f, address, n, &r))
        return false;
    b = read_bytes(&r, n);
    if (!(partial && k->plain_edges) && !unfiltered(f, k, mask, &b))
        return false;
    if (b.n != k->bytes)
        return h5_bad(f, "a chunk has %zu bytes, not %llu", b.n, (unsigned long long)k->bytes);
    put_cells(k, place, b.at);
    return true;
}

/* ---- indices ---------------------------------------------------------------------------------------- */

/* packed size 4, filters left out 4, place 8 each and one more */
static bool visit_key(H5File *f, void *user, Bytes key, uint64_t child)
{
    const H5Chunks *k = user;
    Reader          r = reader(key);
    uint32_t        packed = read_u32(&r), mask = read_u32(&r);
    uint64_t        place[ARRAY_MAX_DIMS];

    for (uint32_t i = 0; i < k->rank; i++)
        place[i] = read_u64(&r);
    return h5_put_chunk(f, k, place, child, packed, mask);
}

/* address, of filtered ones size and filters left out, place in chunks 8 each */
static bool visit_record(H5File *f, void *user, Bytes record, uint64_t child)
{
    const H5Chunks *k = user;
    Reader          r = reader(record);
    uint64_t        address = h5_address(f, &r), packed = k->bytes, place[ARRAY_MAX_DIMS];
    uint64_t        tail = f->offset + 4 + 8 * (uint64_t)k->rank;
    uint32_t        mask = 0;

    (void)child;
    if (k->nfilters) {
        if (record.n <= tail || record.n - tail > 8)
            return h5_bad(f, "the index of its chunks is broken");
        packed = h5_number(&r, (uint32_t)(record.n - tail));
        mask = read_u32(&r);
    }
    for (uint32_t i = 0; i < k->rank; i++)
        if (!checked_mul(read_u64(&r), k->dims[i], &place[i]))
            return h5_bad(f, "a chunk is outside its dataset");
    return r.bad ? h5_bad(f, "the index of its chunks is broken")
                 : h5_put_chunk(f, k, place, address, packed, mask);
}

static bool all_behind_another(H5File *f, const H5Chunks *k, uint64_t address)
{
    uint64_t place[ARRAY_MAX_DIMS];

    for (uint64_t i = 0; i < k->all; i++) {
        h5_chunk_place(k, i, false, place);
        if (!h5_put_chunk(f, k, place, address + i * k->bytes, k->bytes, 0))
            return false;
    }
    return true;
}

static bool read_index4(H5File *f, Reader *r, uint32_t kind, bool filtered, H5Chunks *k)
{
    uint64_t packed = k->bytes, address, first[ARRAY_MAX_DIMS] = {0};
    uint32_t mask = 0, type;

    if (kind == SINGLE && filtered) {
        packed = h5_length(f, r);
        mask = read_u32(r);
    }
    read_bytes(r, kind == FIXED ? 1 : kind == EXTENSIBLE ? 5 : kind == TREE2 ? 6 : 0);
    address = h5_address(f, r);
    if (r->bad)
        return h5_bad(f, "its layout ends too early");
    if (address == H5_NOWHERE)
        return true;
    switch (kind) {
    case SINGLE: return h5_put_chunk(f, k, first, address, packed, mask);
    case IMPLICIT: return all_behind_another(f, k, address);
    case FIXED: return h5_fixed_array(f, address, k);
    case EXTENSIBLE: return h5_extensible_array(f, address, k);
    case TREE2: return h5_tree2(f, address, &type, visit_record, k);
    }
    return h5_unsupported(f, "the index of its chunks is of a kind (%u) that is not known", kind);
}

/* ---- the whole -------------------------------------------------------------------------------------- */

bool h5_fill(H5File *f, const H5Header *h, const H5Type *t, uint8_t *at, uint64_t cells)
{
    Bytes    m, value = {0};
    uint32_t version, flags;
    bool     has;
    Reader   r;

    if (!h5_only(f, h, H5_FILL, &m))
        return !f->failed;
    r = reader(m);
    version = read_u8(&r);
    flags = read_u8(&r);
    if (version < 3) {
        read_u8(&r);
        has = read_u8(&r) || version == 1;
    } else {
        has = flags & 0x20;
    }
    if (has)
        value = read_bytes(&r, read_u32(&r));
    if (r.bad)
        return h5_bad(f, "the value of its empty cells ends too early");
    for (uint64_t i = 0; value.n == t->size && i < cells; i++)
        memcpy(at + i * t->size, value.at, t->size);
    return true;
}

/* How many chunks there are, and how many there may be along each dimension. */
static bool count_chunks(H5File *f, H5Chunks *k)
{
    k->bytes = k->type->size;
    k->all = 1;
    for (uint32_t i = 0; i < k->rank; i++) {
        uint64_t most = k->space->most[i] == UINT64_MAX ? k->space->dims[i] : k->space->most[i];

        if (k->dims[i] == 0 || !checked_mul(k->bytes, k->dims[i], &k->bytes) ||
            k->bytes > UINT32_MAX)
            return h5_bad(f, "its chunks are broken");
        k->grid[i] = most / k->dims[i] + (most % k->dims[i] > 0);
        k->grid[i] = k->grid[i] ? k->grid[i] : 1;
        k->grows |= k->space->most[i] == UINT64_MAX ? 1u << i : 0;
        if (!checked_mul(k->all, k->grid[i], &k->all))
            return h5_bad(f, "it has too many chunks");
    }
    return true;
}

static bool read_chunks(H5File *f, Bytes layout, H5Chunks *k)
{
    Reader   r = reader(layout);
    uint32_t version = read_u8(&r), rank, flags = 0, width = 4, kind = 0;
    uint64_t address = H5_NOWHERE;

    if (version < 3) {
        rank = read_u8(&r);
        read_bytes(&r, 6);
        address = h5_address(f, &r);
    } else {
        read_u8(&r);
        flags = version == 4 ? read_u8(&r) : 0;
        rank = read_u8(&r);
        width = version == 4 ? read_u8(&r) : 4;
        address = version == 4 ? H5_NOWHERE : h5_address(f, &r);
    }
    if (rank != k->space->ndim + 1 || rank < 2 || width < 1 || width > 8)
        return h5_bad(f, "its chunks have %u dimensions, it has %u", rank - 1, k->space->ndim);
    k->rank = rank - 1;
    for (uint32_t i = 0; i < k->rank; i++)
        k->dims[i] = h5_number(&r, width);
    h5_number(&r, width); /* the bytes of a cell */
    if (version == 4)
        kind = read_u8(&r);
    if (r.bad || !count_chunks(f, k))
        return h5_bad(f, "its layout ends too early");
    k->plain_edges = flags & 1;
    if (version == 4)
        return read_index4(f, &r, kind, flags & 2, k);
    return address == H5_NOWHERE || h5_tree1(f, address, 1, 8 + 8 * rank, visit_key, k);
}

bool h5_chunks(H5File *f, const H5Header *h, Bytes layout, const H5Type *t, const H5Space *s,
               Bytes *out)
{
    H5Chunks k = {.type = t, .space = s};
    uint64_t bytes;
    Bytes    m;

    if (!h5_space_bytes(f, s, t, &bytes) || !(k.out = h5_make(f, bytes)) ||
        !h5_fill(f, h, t, k.out, s->cells))
        return false;
    *out = (Bytes){k.out, bytes};
    if (h5_only(f, h, H5_FILTERS, &m) && !read_filters(f, m, &k))
        return false;
    return s->cells == 0 || read_chunks(f, layout, &k);
}
