/* HDF5: heaps.  A global heap holds strings of any length, each by its collection's address and a
 * number.  A fractal heap holds the links or attributes of one object: a table of blocks of which
 * every row but the first two has blocks twice as large as the one before,
 *
 *     row 0    S    S    S    S          S: bytes of the smallest
 *     row 1    S    S    S    S
 *     row 2   2S   2S   2S   2S
 *
 * and rows of blocks larger than a limit hold such tables again. */
#include "formats/hdf5.h"

#include <string.h>

/* ---- global heaps ----------------------------------------------------------------------------------- */

bool h5_global(H5File *f, uint64_t address, uint32_t index, Bytes *out)
{
    uint64_t size;
    Reader   r;

    if (!h5_block(f, address, "GCOL", &r))
        return false;
    read_u32(&r); /* version */
    size = h5_length(f, &r);
    if (r.bad || size < 8 + f->length || size > reader_left(&r) + 8 + f->length)
        return h5_bad(f, "a heap of strings leads out of the file");
    r.end = r.start + size;
    while (reader_left(&r) >= 8 + f->length) {
        uint32_t is = read_u16(&r);
        uint64_t bytes;

        read_bytes(&r, 6);
        bytes = h5_length(f, &r);
        if (is == 0 || bytes > reader_left(&r))
            break; /* the free space behind the last */
        *out = read_bytes(&r, bytes);
        if (is == index)
            return true;
        read_bytes(&r, align_up(bytes, 8) - bytes);
    }
    return h5_bad(f, "object %u is not in its heap", index);
}

/* ---- fractal heaps ---------------------------------------------------------------------------------- */

static uint32_t log2_of(uint64_t n)
{
    uint32_t bits = 0;

    while (n >>= 1)
        bits++;
    return bits;
}

bool h5_heap(H5File *f, uint64_t address, H5Heap *out)
{
    uint64_t most_object;
    uint32_t bits;
    Reader   r;

    if (!h5_block(f, address, "FRHP", &r))
        return false;
    *out = (H5Heap){0};
    read_u8(&r);
    out->id_bytes = read_u16(&r);
    out->filtered = read_u16(&r) != 0;
    read_u8(&r);
    most_object = read_u32(&r);
    h5_length(f, &r); /* the next huge object's number */
    out->huge = h5_address(f, &r);
    read_bytes(&r, 9 * (uint64_t)f->length + f->offset); /* free space, counts of objects */
    out->width = read_u16(&r);
    out->start = h5_length(f, &r);
    out->most_direct = h5_length(f, &r);
    bits = read_u16(&r);
    out->start_rows = read_u16(&r);
    out->root = h5_address(f, &r);
    out->rows = read_u16(&r);
    if (r.bad || out->width == 0 || out->start == 0 || (out->start & (out->start - 1)) ||
        out->most_direct < out->start || out->most_direct > 1u << 30 || bits == 0 || bits > 64 ||
        out->rows > 64 || out->width > 4096)
        return h5_bad(f, "a heap of %u columns of %llu bytes is broken", out->width,
                      (unsigned long long)out->start);
    if (out->filtered)
        return h5_unsupported(f, "a heap of its links or attributes is packed");
    out->offset_bytes = (bits + 7) / 8;
    out->length_bytes = (log2_of(out->most_direct) + 7) / 8;
    if (out->length_bytes > log2_of(most_object) / 8 + 1)
        out->length_bytes = log2_of(most_object) / 8 + 1;
    out->huge_bytes = out->id_bytes > 0 ? out->id_bytes - 1 : 0;
    return true;
}

/* Bytes of one block of a row, and where the row begins in its table. */
static uint64_t row_bytes(const H5Heap *h, uint32_t row)
{
    return row == 0 ? h->start : row > 40 ? UINT64_MAX / 2 : h->start << (row - 1);
}

static uint64_t row_begin(const H5Heap *h, uint32_t row)
{
    uint64_t begin;

    return row == 0                                                                  ? 0
           : row > 40 || !checked_mul(row_bytes(h, row), (uint64_t)h->width, &begin) ? UINT64_MAX
                                                                                     : begin;
}

/* The address of the child of a table in which `*at` lies, which then counts from its beginning. */
static bool table_child(H5File *f, const H5Heap *h, uint64_t address, uint32_t rows, uint64_t *at,
                        uint64_t *child, uint64_t *bytes)
{
    uint64_t column, entry;
    uint32_t row = 0;
    Reader   r;

    while (row + 1 < rows && *at >= row_begin(h, row + 1))
        row++;
    *bytes = row_bytes(h, row);
    *at -= row_begin(h, row);
    column = *at / *bytes;
    *at %= *bytes;
    entry = (uint64_t)row * h->width + column;
    if (column >= h->width || !h5_block(f, address, "FHIB", &r))
        return h5_bad(f, "an object is not in its heap");
    read_bytes(&r, 1 + f->offset + h->offset_bytes + entry * f->offset);
    *child = h5_address(f, &r);
    return !r.bad || h5_bad(f, "a table of its heap leads out of the file");
}

static bool managed(H5File *f, const H5Heap *h, Reader id, Bytes *out)
{
    uint64_t at = h5_number(&id, h->offset_bytes), n = h5_number(&id, h->length_bytes);
    uint64_t block = h->root, bytes = h->start;
    uint32_t rows = h->rows;
    Reader   r;

    if (id.bad)
        return h5_bad(f, "a reference into its heap is too short");
    while (rows) {
        if (!table_child(f, h, block, rows, &at, &block, &bytes))
            return false;
        rows = bytes > h->most_direct ? log2_of(bytes / h->start / h->width) + 1 : 0;
    }
    if (block == H5_NOWHERE || n > bytes || at > bytes - n || !h5_block(f, block, "FHDB", &r))
        return h5_bad(f, "an object is not in its heap");
    if (!h5_window(f, block, bytes, &r))
        return false;
    read_bytes(&r, at);
    *out = read_bytes(&r, n);
    return true;
}

typedef struct {
    uint64_t number, address, bytes;
    bool     found;
} Huge;

static bool visit_huge(H5File *f, void *user, Bytes record, uint64_t child)
{
    Huge    *h = user;
    Reader   r = reader(record);
    uint64_t address = h5_address(f, &r), bytes = h5_length(f, &r);

    (void)child;
    h->found = h5_length(f, &r) == h->number && !r.bad;
    if (h->found) {
        h->address = address;
        h->bytes = bytes;
    }
    return !h->found;
}

/* In the file itself: where, if that fits into the reference, or by a number in a tree. */
static bool huge(H5File *f, const H5Heap *h, Reader id, Bytes *out)
{
    Huge     want = {0};
    uint32_t type;
    Reader   r;

    if (h->huge_bytes >= f->offset + f->length) {
        want.address = h5_address(f, &id);
        want.bytes = h5_length(f, &id);
    } else {
        want.number = h5_number(&id, h->huge_bytes < f->length ? h->huge_bytes : f->length);
        if (!h5_tree2(f, h->huge, &type, visit_huge, &want))
            return false;
        if (!want.found)
            return h5_bad(f, "a large object is not in its heap");
    }
    if (!h5_window(f, want.address, want.bytes, &r))
        return false;
    *out = read_bytes(&r, want.bytes);
    return true;
}

bool h5_heap_object(H5File *f, const H5Heap *h, Bytes id, Bytes *out)
{
    enum { MANAGED, HUGE_ONE, TINY };
    Reader   r = reader(id);
    uint32_t first = read_u8(&r), n;

    if (r.bad || id.n < h->id_bytes)
        return h5_bad(f, "a reference into its heap is too short");
    switch (first >> 4 & 3) {
    case MANAGED: return managed(f, h, r, out);
    case HUGE_ONE: return huge(f, h, r, out);
    case TINY:
        n = first & 15;
        if (h->id_bytes > 17)
            n = n << 8 | read_u8(&r);
        *out = read_bytes(&r, n + 1);
        return !r.bad || h5_bad(f, "a reference into its heap is too short");
    }
    return h5_bad(f, "a reference into its heap is of a kind that is not known");
}
