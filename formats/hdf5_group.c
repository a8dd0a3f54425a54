/* HDF5: the links of a group, in one of three ways: a tree of symbol nodes with the names in a
 * local heap (old groups), messages of the header, or a fractal heap with an index. */
#include "formats/hdf5.h"

#include <string.h>

typedef struct {
    H5Links      *links;
    Bytes         names; /* of a local heap */
    const H5Heap *heap;
    uint32_t      skip; /* bytes of a record before the reference into it */
} Group;

static bool add(H5File *f, H5Links *l, Bytes name, uint64_t address)
{
    H5LinkTo to = {.address = address};
    char    *text;

    if (!name.n || memchr(name.at, 0, name.n) || !(text = (char *)h5_make(f, name.n + 1)))
        return h5_bad(f, "one of its links has no readable name");
    memcpy(text, name.at, name.n);
    to.name = text;
    vec_push(f->arena, &l->all, to);
    return true;
}

/* ---- old groups ------------------------------------------------------------------------------------- */

static bool visit_symbols(H5File *f, void *user, Bytes key, uint64_t child)
{
    Group   *g = user;
    uint32_t n;
    Reader   r;

    (void)key;
    if (!h5_block(f, child, "SNOD", &r))
        return false;
    read_u16(&r);
    n = read_u16(&r);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t name = h5_number(&r, f->offset), address = h5_address(f, &r);
        uint32_t kind = read_u32(&r);
        Bytes    text;

        read_bytes(&r, 4 + 16);
        if (r.bad || name >= g->names.n)
            return h5_bad(f, "one of its links leads out of the file");
        text = (Bytes){g->names.at + name, g->names.n - name};
        if (!memchr(text.at, 0, text.n))
            return h5_bad(f, "one of its links has no readable name");
        text.n = strlen((const char *)text.at);
        if (!add(f, g->links, text, kind == 2 ? H5_NOWHERE : address)) /* 2: a symbolic link */
            return false;
    }
    return true;
}

static bool old_group(H5File *f, Bytes message, H5Links *links)
{
    Group    g = {.links = links};
    Reader   r = reader(message), h;
    uint64_t tree = h5_address(f, &r), heap = h5_address(f, &r), size, data;

    if (r.bad || !h5_block(f, heap, "HEAP", &h))
        return h5_bad(f, "the names of its links are nowhere");
    read_u32(&h); /* version */
    size = h5_length(f, &h);
    h5_length(f, &h);
    data = h5_address(f, &h);
    if (h.bad || !h5_window(f, data, size, &h))
        return h5_bad(f, "the names of its links lead out of the file");
    g.names = read_bytes(&h, size);
    return h5_tree1(f, tree, 0, f->length, visit_symbols, &g);
}

/* ---- new groups ------------------------------------------------------------------------------------- */

static bool read_link(H5File *f, Bytes message, H5Links *links)
{
    enum { HARD = 0, WITH_TYPE = 8, WITH_ORDER = 4, WITH_CHARSET = 16 };
    Reader   r = reader(message);
    uint32_t version = read_u8(&r), flags = read_u8(&r), type = HARD;
    uint64_t n;
    Bytes    name;

    if (version != 1)
        return h5_bad(f, "one of its links is of version %u", version);
    if (flags & WITH_TYPE)
        type = read_u8(&r);
    if (flags & WITH_ORDER)
        read_u64(&r);
    if (flags & WITH_CHARSET)
        read_u8(&r);
    n = h5_number(&r, 1u << (flags & 3));
    name = read_bytes(&r, n);
    n = type == HARD ? h5_address(f, &r) : H5_NOWHERE;
    return r.bad ? h5_bad(f, "one of its links leads out of its message") : add(f, links, name, n);
}

static bool visit_link(H5File *f, void *user, Bytes record, uint64_t child)
{
    Group *g = user;
    Bytes  message;

    (void)child;
    if (record.n < g->skip)
        return h5_bad(f, "the index of its links is broken");
    return h5_heap_object(f, g->heap, (Bytes){record.at + g->skip, record.n - g->skip}, &message) &&
           read_link(f, message, g->links);
}

static bool dense_group(H5File *f, Bytes info, H5Links *links)
{
    Group    g = {.links = links, .skip = 4}; /* the hash of the name */
    Reader   r = reader(info);
    uint32_t type;
    uint64_t at, tree;
    H5Heap   heap;

    read_u8(&r);
    if (read_u8(&r) & 1)
        read_u64(&r);
    at = h5_address(f, &r);
    tree = h5_address(f, &r);
    if (r.bad)
        return h5_bad(f, "the place of its links ends too early");
    if (at == H5_NOWHERE || tree == H5_NOWHERE)
        return true;
    g.heap = &heap;
    return h5_heap(f, at, &heap) && h5_tree2(f, tree, &type, visit_link, &g);
}

static bool read_links(H5File *f, const H5Header *h, H5Links *out)
{
    bool  group = false;
    Bytes m;

    if (h5_only(f, h, H5_SYMBOLS, &m))
        return old_group(f, m, out);
    for (uint32_t i = 0; h5_message(f, h, H5_LINK, &i, &m); group = true)
        if (!read_link(f, m, out))
            return false;
    if (!f->failed && h5_only(f, h, H5_LINK_INFO, &m))
        return dense_group(f, m, out);
    return (group && !f->failed) || h5_bad(f, "it is no group");
}

const H5Links *h5_links(H5File *f, uint64_t address)
{
    H5Links        *l = map_get(f->links, address);
    const H5Header *h;

    if (l)
        return l;
    l = NEW(f->arena, H5Links);
    if (!(h = h5_header(f, address)) || !read_links(f, h, l))
        return NULL;
    l->index = map_new(f->arena);
    for (uint32_t i = 0; i < l->all.n; i++)
        map_put(l->index, hash_bytes(l->all.at[i].name, strlen(l->all.at[i].name), 0),
                &l->all.at[i]);
    map_put(f->links, address, l);
    return l;
}
