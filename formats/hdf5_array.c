/* HDF5: arrays of chunks' addresses.
 *
 * A fixed array has one data block, of pages if it is large.  An extensible array begins in its
 * index block: a few elements, then addresses of data blocks, then of secondary blocks, which have
 * addresses of data blocks.  Level u has 2^(u/2) data blocks of 2^((u+1)/2) times the least
 * elements.  An element is an address or, of packed chunks, address, size and filters left out. */
#include "formats/hdf5_chunk.h"

#include <string.h>

typedef struct {
    const H5Chunks *k;
    uint32_t        element, page_bits;
    uint64_t        elements; /* that were ever set */
    bool            filtered, growing_first;
    /* of an extensible array */
    uint32_t offset_bytes, in_index, least, least_pointers, levels;
    uint64_t next; /* number of the first element of the next data block */
} Elements;

void h5_chunk_place(const H5Chunks *k, uint64_t i, bool growing_first, uint64_t *place)
{
    uint32_t order[ARRAY_MAX_DIMS], n = 0, slow = 0;

    while (growing_first && slow < k->rank && !(k->grows >> slow & 1))
        slow++;
    if (growing_first && slow < k->rank)
        order[n++] = slow;
    for (uint32_t d = 0; d < k->rank; d++)
        if (!n || !growing_first || d != slow)
            order[n++] = d;
    for (uint32_t at = k->rank; at-- > 0;) {
        uint32_t d = order[at];
        uint64_t chunk = at == 0 ? i : i % k->grid[d];

        i /= k->grid[d];
        if (!checked_mul(chunk, k->dims[d], &place[d]))
            place[d] = UINT64_MAX;
    }
}

static bool read_element(H5File *f, const Elements *e, Reader *r, uint64_t i)
{
    uint64_t address = h5_address(f, r), packed = e->k->bytes, place[ARRAY_MAX_DIMS];
    uint32_t mask = 0;

    if (e->filtered) {
        packed = h5_number(r, e->element - f->offset - 4);
        mask = read_u32(r);
    }
    if (r->bad)
        return h5_bad(f, "the index of its chunks leads out of the file");
    h5_chunk_place(e->k, i, e->growing_first, place);
    return h5_put_chunk(f, e->k, place, address, packed, mask);
}

/* `n` elements from number `first` on, in pages if there are more than fit into one; `set` has a
 * bit for each page that was ever written. */
static bool read_elements(H5File *f, const Elements *e, Reader *r, uint64_t first, uint64_t n,
                          Bytes set)
{
    uint64_t page = (uint64_t)1 << e->page_bits;

    for (uint64_t i = 0; i < n; i++) {
        uint64_t number = i / page;

        if (i % page == 0 && set.n && !(set.at[number / 8] >> (7 - number % 8) & 1)) {
            read_bytes(r, page * e->element + 4);
            i += page - 1;
            continue;
        }
        if (first + i >= e->elements)
            return true;
        if (!read_element(f, e, r, first + i))
            return false;
        if (set.n && i % page == page - 1)
            read_u32(r); /* a page's checksum */
    }
    return true;
}

static bool check_element(H5File *f, Elements *e, Reader *r)
{
    if (r->bad || e->page_bits > 31 ||
        (e->filtered ? e->element < f->offset + 5 || e->element > f->offset + 12
                     : e->element != f->offset) ||
        e->filtered != (e->k->nfilters > 0))
        return h5_bad(f, "the index of its chunks is broken");
    return true;
}

bool h5_fixed_array(H5File *f, uint64_t address, const H5Chunks *k)
{
    Elements e = {.k = k};
    uint64_t block, pages;
    Bytes    set = {0};
    Reader   r;

    if (!h5_block(f, address, "FAHD", &r))
        return false;
    read_u8(&r);
    e.filtered = read_u8(&r);
    e.element = read_u8(&r);
    e.page_bits = read_u8(&r);
    e.elements = h5_length(f, &r);
    block = h5_address(f, &r);
    if (!check_element(f, &e, &r))
        return false;
    if (block == H5_NOWHERE)
        return true;
    if (!h5_block(f, block, "FADB", &r))
        return false;
    read_bytes(&r, 2 + f->offset);
    pages = e.elements >> e.page_bits;
    if (pages && (e.elements & (((uint64_t)1 << e.page_bits) - 1)))
        pages++;
    if (pages > 1 || e.elements > (uint64_t)1 << e.page_bits) {
        set = read_bytes(&r, (pages + 7) / 8);
        read_u32(&r);
        if (r.bad)
            return h5_bad(f, "the index of its chunks leads out of the file");
    }
    return read_elements(f, &e, &r, 0, e.elements, set);
}

/* ---- extensible arrays ------------------------------------------------------------------------------ */

static uint64_t level_blocks(uint32_t level)
{
    return (uint64_t)1 << (level / 2);
}

static uint64_t level_elements(const Elements *e, uint32_t level)
{
    return ((uint64_t)1 << ((level + 1) / 2)) * e->least;
}

static bool read_data_block(H5File *f, Elements *e, uint64_t address, uint64_t n, Bytes set)
{
    uint64_t first = e->next;
    Reader   r;

    e->next += n;
    if (address == H5_NOWHERE || first >= e->elements)
        return true;
    if (!h5_block(f, address, "EADB", &r))
        return false;
    read_bytes(&r, 2 + (uint64_t)f->offset + e->offset_bytes + (set.n ? 4 : 0));
    return read_elements(f, e, &r, first, n, set);
}

static bool read_level(H5File *f, Elements *e, uint64_t address, uint32_t level)
{
    uint64_t blocks = level_blocks(level), n = level_elements(e, level);
    uint64_t pages = n > (uint64_t)1 << e->page_bits ? n >> e->page_bits : 0,
             each = (pages + 7) / 8;
    Bytes  sets = {0};
    Reader r;

    if (address == H5_NOWHERE || e->next >= e->elements) {
        e->next += blocks * n;
        return true;
    }
    if (!h5_block(f, address, "EASB", &r))
        return false;
    read_bytes(&r, 2 + f->offset + e->offset_bytes);
    sets = read_bytes(&r, blocks * each);
    for (uint64_t i = 0; i < blocks; i++) {
        uint64_t at = h5_address(f, &r);

        if (r.bad)
            return h5_bad(f, "the index of its chunks leads out of the file");
        if (!read_data_block(f, e, at, n, (Bytes){sets.at + i * each, each}))
            return false;
    }
    return true;
}

static bool read_index_block(H5File *f, Elements *e, uint64_t address)
{
    uint32_t direct = 0, level;
    uint64_t pointers = 2 * ((uint64_t)e->least_pointers - 1);
    Reader   r;

    if (!h5_block(f, address, "EAIB", &r))
        return false;
    read_bytes(&r, 2 + f->offset);
    e->next = e->in_index;
    for (uint64_t i = 0; i < e->in_index; i++)
        if (i >= e->elements)
            read_bytes(&r, e->element);
        else if (!read_element(f, e, &r, i))
            return false;
    for (level = 0; level < e->levels && pointers; level++, direct++)
        for (uint64_t i = 0; i < level_blocks(level) && pointers; i++, pointers--) {
            uint64_t at = h5_address(f, &r);

            if (r.bad || !read_data_block(f, e, at, level_elements(e, level), (Bytes){0}))
                return h5_bad(f, "the index of its chunks leads out of the file");
        }
    for (; level < e->levels && e->next < e->elements; level++) {
        uint64_t at = h5_address(f, &r);

        if (r.bad || !read_level(f, e, at, level))
            return h5_bad(f, "the index of its chunks leads out of the file");
    }
    return true;
}

bool h5_extensible_array(H5File *f, uint64_t address, const H5Chunks *k)
{
    Elements e = {.k = k, .growing_first = true};
    uint32_t bits, least_bits = 0;
    uint64_t block;
    Reader   r;

    if (!h5_block(f, address, "EAHD", &r))
        return false;
    read_u8(&r);
    e.filtered = read_u8(&r);
    e.element = read_u8(&r);
    bits = read_u8(&r);
    e.in_index = read_u8(&r);
    e.least = read_u8(&r);
    e.least_pointers = read_u8(&r);
    e.page_bits = read_u8(&r);
    read_bytes(&r, 4 * (uint64_t)f->length); /* counts and sizes of blocks */
    e.elements = h5_length(f, &r);
    h5_length(f, &r);
    block = h5_address(f, &r);
    if (!check_element(f, &e, &r))
        return false;
    while (e.least >> (least_bits + 1))
        least_bits++;
    if (bits > 48 || bits < least_bits || e.least == 0 || e.least_pointers == 0)
        return h5_bad(f, "the index of its chunks is broken");
    e.offset_bytes = (bits + 7) / 8;
    e.levels = 1 + bits - least_bits;
    return block == H5_NOWHERE || read_index_block(f, &e, block);
}
