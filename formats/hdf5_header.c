/* HDF5: object headers, lists of messages in one or more blocks.
 *
 *     version 1   | 1 | . | messages 2 | references 4 | size 4 | . 4 | messages ..
 *     version 2   | OHDR | 2 | flags | times .. | size 1 2 4 8 | messages .. | checksum 4
 *
 * A message may say where the list goes on, or that another object's header has it (shared). */
#include "formats/hdf5.h"

#include <string.h>

enum { SHARED = 2, MAX_MESSAGES = 1 << 16, MAX_SHARED = 8 };

typedef struct {
    uint64_t address, bytes;
} Piece;

typedef struct {
    H5File   *f;
    H5Header *h;
    bool      first, ordered; /* first version; messages have the order of their making */
    VEC(Piece) rest;
} Reading;

static bool read_messages(Reading *g, Reader r)
{
    size_t least = g->first ? 8 : g->ordered ? 6 : 4;

    while (reader_left(&r) >= least) {
        H5Message m;
        uint64_t  size;
        uint32_t  flags;

        m.type = g->first ? read_u16(&r) : read_u8(&r);
        size = read_u16(&r);
        flags = read_u8(&r);
        read_bytes(&r, least - (g->first ? 5 : 4));
        m.shared = flags & SHARED;
        m.data = read_bytes(&r, size);
        if (r.bad)
            return h5_bad(g->f, "a message of its header leads out of it");
        if (m.type == H5_CONTINUED) {
            Reader at = reader(m.data);
            Piece  p = {h5_address(g->f, &at), h5_length(g->f, &at)};

            vec_push(g->f->arena, &g->rest, p);
        } else if (m.type) {
            vec_push(g->f->arena, g->h, m);
        }
        if (g->h->n > MAX_MESSAGES || g->rest.n > MAX_MESSAGES)
            return h5_bad(g->f, "its header has more than %d messages", MAX_MESSAGES);
    }
    return true;
}

static bool read_rest(Reading *g)
{
    for (uint32_t i = 0; i < g->rest.n; i++) {
        Piece  p = g->rest.at[i];
        Reader r;

        if (!h5_step(g->f) || !h5_window(g->f, p.address, p.bytes, &r))
            return false;
        if (!g->first) {
            Bytes letters = read_bytes(&r, 4);

            if (p.bytes < 8 || memcmp(letters.at, "OCHK", 4) != 0)
                return h5_bad(g->f, "its header does not go on where it says");
            r.end -= 4; /* the checksum */
        }
        if (!read_messages(g, r))
            return false;
    }
    return true;
}

static bool read_header(H5File *f, uint64_t address, H5Header *out)
{
    Reading  g = {.f = f, .h = out};
    uint64_t size;
    uint32_t flags;
    Reader   r;

    if (!h5_step(f) || !h5_window(f, address, 16, &r))
        return false;
    g.first = memcmp(r.at, "OHDR", 4) != 0;
    if (g.first) {
        if (read_u8(&r) != 1)
            return h5_bad(f, "there is no object at address %llu", (unsigned long long)address);
        read_bytes(&r, 7);
        size = read_u32(&r);
        return h5_window(f, address + 16, size, &r) && read_messages(&g, r) && read_rest(&g);
    }
    if (!h5_block(f, address, "OHDR", &r))
        return false;
    if (read_u8(&r) != 2)
        return h5_unsupported(f, "its header is of a version that is not known");
    flags = read_u8(&r);
    g.ordered = flags & 4;
    if (flags & 0x20)
        read_bytes(&r, 16); /* times */
    if (flags & 0x10)
        read_u32(&r); /* when attributes become dense */
    size = h5_number(&r, 1u << (flags & 3));
    if (r.bad || size > reader_left(&r))
        return h5_bad(f, "its header leads out of the file");
    r.end = r.at + size;
    return read_messages(&g, r) && read_rest(&g);
}

const H5Header *h5_header(H5File *f, uint64_t address)
{
    H5Header *h = map_get(f->headers, address);

    if (h)
        return h;
    h = NEW(f->arena, H5Header);
    if (!read_header(f, address, h))
        return NULL;
    map_put(f->headers, address, h);
    return h;
}

/* A committed type is the message of an object of its own. */
bool h5_shared(H5File *f, uint32_t type, Bytes reference, Bytes *out)
{
    for (uint32_t depth = 0; depth < MAX_SHARED; depth++) {
        Reader          r = reader(reference);
        uint32_t        version = read_u8(&r), kind = read_u8(&r), i;
        const H5Header *h;

        if (version == 3 && kind != 2)
            return h5_unsupported(f, "a message is shared by the whole file");
        if (version == 1)
            read_bytes(&r, 6);
        if (version < 1 || version > 3 || !(h = h5_header(f, h5_address(f, &r))))
            return h5_bad(f, "a shared message is nowhere");
        for (i = 0; i < h->n && h->at[i].type != type;)
            i++;
        if (i == h->n)
            return h5_bad(f, "a shared message is not where it says");
        if (!h->at[i].shared) {
            *out = h->at[i].data;
            return true;
        }
        reference = h->at[i].data;
    }
    return h5_bad(f, "a shared message leads to others without end");
}

bool h5_message(H5File *f, const H5Header *h, uint32_t type, uint32_t *from, Bytes *out)
{
    for (; *from < h->n; (*from)++) {
        const H5Message *m = &h->at[*from];

        if (m->type != type)
            continue;
        (*from)++;
        if (m->shared)
            return h5_shared(f, type, m->data, out);
        *out = m->data;
        return true;
    }
    return false;
}

bool h5_only(H5File *f, const H5Header *h, uint32_t type, Bytes *out)
{
    uint32_t from = 0;

    return h5_message(f, h, type, &from, out);
}
