/* Content out of archives, through libarchive, within bounds.
 *
 * A few megabytes can unpack to any number of gigabytes, in one file, in many, or in layers of
 * compressors.  So what comes out is held against what went in while it comes: UNPACK_FREE bytes
 * and UNPACK_RATIO for each byte that was read of the archive so far; a size that an entry declares
 * is held against the whole archive before anything is unpacked.  Memory is asked for once where
 * the size is known. */
#include "formats/formats.h"

#include <archive.h>
#include <archive_entry.h>
#include <string.h>

enum { CHUNK = 1 << 16 };

/* What is stored as it is counts as read only when all of it was: content that is no larger than
 * the archive is always let out. */
static uint64_t most_of(const Unpack *u, uint64_t in)
{
    uint64_t most = UNPACK_FREE + in * UNPACK_RATIO;

    if (most < u->file.n)
        most = u->file.n;
    return u->any_ratio || most > u->limit ? u->limit : most;
}

/* After `more` bytes came out. */
static bool count(Unpack *u, uint64_t more)
{
    int64_t in = archive_filter_bytes(u->archive, -1); /* of the file, below all compressors */

    if (in > 0 && (uint64_t)in > u->in) /* a zip is not read from its begin to its end */
        u->in = (uint64_t)in < u->file.n ? (uint64_t)in : u->file.n;
    u->got += more;
    return u->got <= most_of(u, u->in);
}

/* A part of the file that may stand for the content. */
static bool is_stored(const Unpack *u, const uint8_t *at, uint64_t n)
{
    enum { ALIGNED = 16 };

    return at >= u->file.at && at < u->file.at + u->file.n &&
           n <= (uint64_t)(u->file.at + u->file.n - at) && (uintptr_t)at % ALIGNED == 0;
}

static UnpackResult read_sized(Unpack *u, Arena *a, uint64_t size, Bytes *out)
{
    uint8_t *copy = NULL;
    uint64_t have = 0;
    int      rc = ARCHIVE_OK;

    *out = (Bytes){NULL, size};
    if (u->got > most_of(u, u->file.n) || size > most_of(u, u->file.n) - u->got)
        return UNPACK_LARGE;
    while (rc == ARCHIVE_OK) {
        const void *block = NULL;
        size_t      n = 0;
        la_int64_t  at = (la_int64_t)have; /* at the end that of the content */

        rc = archive_read_data_block(u->archive, &block, &n, &at);
        if (rc != ARCHIVE_OK)
            n = 0;
        if (at < (la_int64_t)have || (uint64_t)at > size || n > size - (uint64_t)at)
            return UNPACK_BROKEN;
        if (!count(u, (uint64_t)at + n - have))
            return UNPACK_LARGE;
        if (n && n == size && is_stored(u, block, n)) {
            out->at = block;
        } else if (!out->at) {
            out->at = copy = arena_alloc(a, size ? size : 1);
        }
        if (copy) {
            memset(copy + have, 0, (uint64_t)at - have); /* a hole of a sparse file */
            WRITTEN_BY_LIBRARY(block, n);
            if (n)
                memcpy(copy + at, block, n);
        }
        have = (uint64_t)at + n;
    }
    return rc == ARCHIVE_EOF && have == size ? UNPACK_DONE : UNPACK_BROKEN;
}

UnpackResult unpack_entry(Unpack *u, Arena *a, struct archive_entry *e, Bytes *out)
{
    uint8_t *at = NULL, chunk[CHUNK];
    uint64_t n = 0, room = 0;
    int64_t  got, size = archive_entry_size_is_set(e) ? archive_entry_size(e) : -1;

    *out = (Bytes){0};
    if (size >= 0)
        return read_sized(u, a, (uint64_t)size, out);
    while ((got = archive_read_data(u->archive, chunk, sizeof chunk)) > 0) {
        WRITTEN_BY_LIBRARY(chunk, (size_t)got);
        if (!count(u, (uint64_t)got))
            return UNPACK_LARGE;
        if (room - n < (uint64_t)got) {
            uint8_t *larger = arena_alloc(a, room = 2 * room + CHUNK);

            if (n)
                memcpy(larger, at, n);
            at = larger;
        }
        memcpy(at + n, chunk, (size_t)got);
        n += (uint64_t)got;
    }
    *out = (Bytes){at, n};
    return got == 0 ? UNPACK_DONE : UNPACK_BROKEN;
}
