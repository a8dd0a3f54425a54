/* HDF5: the superblock, and what the file holds by name. */
#include "formats/hdf5.h"

#include <string.h>

static const uint8_t signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

enum { VISITS = 4, LEAST_VISITS = 4096 }; /* bytes of the file for each; at least so many */

/* ---- errors, windows, numbers ---------------------------------------------------------------------- */

static bool fail(H5File *f, DiagId id, const char *fmt, va_list ap)
{
    StrBuf s = strbuf(f->arena);

    str_vprintf(&s, fmt, ap);
    if (!f->failed)
        diag_error(f->diags, id, f->loc, "HDF5 object '%s': %s", f->object, s.at);
    f->failed = true;
    return false;
}

bool h5_bad(H5File *f, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fail(f, E_PARSE_MODEL, fmt, ap);
    va_end(ap);
    return false;
}

bool h5_unsupported(H5File *f, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fail(f, E_UNSUPPORTED, fmt, ap);
    va_end(ap);
    return false;
}

bool h5_failed(const H5File *f)
{
    return f->failed;
}

bool h5_window(H5File *f, uint64_t address, uint64_t bytes, Reader *out)
{
    if (address > f->file.n || bytes > f->file.n - address)
        return h5_bad(f, "address %llu leads out of the file", (unsigned long long)address);
    *out = reader((Bytes){f->file.at + address, bytes});
    return true;
}

bool h5_step(H5File *f)
{
    if (f->steps == 0)
        return h5_bad(f, "the structures of the file lead back to themselves");
    f->steps--;
    return true;
}

bool h5_block(H5File *f, uint64_t address, const char *letters, Reader *out)
{
    size_t n = strlen(letters);

    if (!h5_step(f) || !h5_window(f, address, address < f->file.n ? f->file.n - address : 0, out))
        return false;
    if (reader_left(out) < n || memcmp(out->at, letters, n) != 0)
        return h5_bad(f, "there is no %s at address %llu", letters, (unsigned long long)address);
    read_bytes(out, n);
    return true;
}

uint8_t *h5_make(H5File *f, uint64_t bytes)
{
    if (bytes > f->bytes) {
        h5_bad(f, "its content is too large for a file of %zu bytes", f->file.n);
        return NULL;
    }
    f->bytes -= bytes;
    return arena_alloc(f->arena, bytes ? bytes : 1);
}

uint64_t h5_number(Reader *r, uint32_t bytes)
{
    uint64_t v = 0;

    for (uint32_t i = 0; i < bytes; i++)
        v |= (uint64_t)read_u8(r) << (8 * i);
    return v;
}

uint64_t h5_address(const H5File *f, Reader *r)
{
    uint64_t v = h5_number(r, f->offset);

    return f->offset < 8 && v == ((uint64_t)1 << (8 * f->offset)) - 1 ? H5_NOWHERE : v;
}

uint64_t h5_length(const H5File *f, Reader *r)
{
    return h5_number(r, f->length);
}

uint32_t h5_width(uint64_t most)
{
    uint32_t bytes = 1;

    while (bytes < 8 && most >> (8 * bytes))
        bytes++;
    return bytes;
}

/* ---- the superblock -------------------------------------------------------------------------------- */

/* At 0, 512, 1024, 2048 .. */
static bool find_superblock(Bytes file, uint64_t *at)
{
    for (*at = 0; *at + sizeof signature <= file.n; *at = *at ? *at * 2 : 512)
        if (!memcmp(file.at + *at, signature, sizeof signature))
            return true;
    return false;
}

bool h5_is(Bytes file)
{
    uint64_t at;

    return find_superblock(file, &at);
}

static bool read_superblock(H5File *f)
{
    Reader   r = reader(f->file);
    uint32_t version;

    read_bytes(&r, sizeof signature);
    version = read_u8(&r);
    if (version > 3)
        return h5_unsupported(f, "the superblock is of version %u; the newest known is 3", version);
    if (version < 2)
        read_bytes(&r, 4); /* versions of other parts */
    f->offset = read_u8(&r);
    f->length = read_u8(&r);
    if ((f->offset != 2 && f->offset != 4 && f->offset != 8) ||
        (f->length != 2 && f->length != 4 && f->length != 8))
        return h5_bad(f, "addresses of %u bytes, lengths of %u", f->offset, f->length);
    read_bytes(&r, version < 2 ? 1 + 4 + 4 : 1); /* ranks of trees, flags */
    if (version == 1)
        read_bytes(&r, 4);
    read_bytes(&r, 3 * (uint64_t)f->offset); /* where it is itself, and what is not used */
    if (version < 2) {
        h5_address(f, &r);
        h5_length(f, &r); /* of the root's name */
    }
    f->root = h5_address(f, &r);
    return !r.bad || h5_bad(f, "the superblock ends too early");
}

H5File *h5_open(Diags *d, Arena *a, Loc loc, const char *what, Bytes file)
{
    H5File  *f = NEW(a, H5File);
    uint64_t at;

    *f = (H5File){.diags = d, .arena = a, .loc = loc, .object = *what ? what : "/"};
    if (!find_superblock(file, &at))
        return diag_error(d, E_PARSE_MODEL, loc, "%s%sno HDF5 file", what, *what ? ": " : "");
    f->file = (Bytes){file.at + at, file.n - at};
    f->steps = f->file.n / VISITS + LEAST_VISITS;
    if (!checked_mul(f->file.n, (uint64_t)UNPACK_RATIO, &f->bytes))
        f->bytes = UINT64_MAX;
    f->bytes = f->bytes < UNPACK_FREE ? UNPACK_FREE : f->bytes;
    f->headers = map_new(a);
    f->links = map_new(a);
    return read_superblock(f) ? f : NULL;
}

/* ---- objects by name -------------------------------------------------------------------------------- */

H5Object h5_root(H5File *f)
{
    return (H5Object){f, f->root, "/"};
}

static const H5LinkTo *find_link(const H5Links *links, const char *name, size_t n)
{
    const H5LinkTo *l = map_get(links->index, hash_bytes(name, n, 0));

    if (l && strlen(l->name) == n && !memcmp(l->name, name, n))
        return l;
    for (uint32_t i = 0; l && i < links->all.n; i++) /* another name has the same hash */
        if (strlen(links->all.at[i].name) == n && !memcmp(links->all.at[i].name, name, n))
            return &links->all.at[i];
    return NULL;
}

bool h5_find(const H5Object *from, const char *path, H5Object *out)
{
    H5File *f = from->file;

    *out = *from;
    for (path += strspn(path, "/"); *path; path += strspn(path, "/")) {
        size_t          n = strcspn(path, "/");
        const H5Links  *links;
        const H5LinkTo *l;

        f->object = out->path;
        if (f->failed || !(links = h5_links(f, out->at)) || !(l = find_link(links, path, n)))
            return false;
        out->path = arena_printf(f->arena, "%s%s%.*s", out->path,
                                 str_ends(out->path, "/") ? "" : "/", (int)n, path);
        f->object = out->path;
        if (l->address == H5_NOWHERE)
            return h5_unsupported(f, "it is a link to another name or file");
        out->at = l->address;
        path += n;
    }
    return true;
}

bool h5_is_group(const H5Object *o)
{
    const H5Header *h;
    H5File         *f = o->file;
    Bytes           m;

    f->object = o->path;
    return !f->failed && (h = h5_header(f, o->at)) &&
           (h5_only(f, h, H5_SYMBOLS, &m) || h5_only(f, h, H5_LINK, &m) ||
            h5_only(f, h, H5_LINK_INFO, &m));
}

bool h5_names(const H5Object *group, TextList *out)
{
    H5File        *f = group->file;
    const H5Links *links;

    f->object = group->path;
    if (f->failed || !(links = h5_links(f, group->at)))
        return false;
    for (uint32_t i = 0; i < links->all.n; i++)
        vec_push(f->arena, out, links->all.at[i].name);
    return true;
}

/* ---- attributes ------------------------------------------------------------------------------------- */

typedef struct {
    const char   *name;
    H5Value      *out;
    const H5Heap *heap;
    bool found, order; /* order: the records are those of the order in which they were made */
} Wanted;

static uint64_t padded(uint64_t n, bool pad)
{
    return pad ? align_up(n, 8) : n;
}

/* The message of an attribute; *found: it has that name. */
static bool read_attribute(H5File *f, Bytes message, const char *name, bool *found, H5Value *out)
{
    Reader   r = reader(message);
    uint32_t version = read_u8(&r), flags = read_u8(&r);
    uint64_t nname = read_u16(&r), ntype = read_u16(&r), nspace = read_u16(&r);
    Bytes    text, type, space;
    H5Type   t;
    H5Space  s;

    if (version < 1 || version > 3)
        return h5_bad(f, "an attribute of version %u", version);
    if (version == 3)
        read_u8(&r); /* how the name is encoded */
    text = read_bytes(&r, padded(nname, version == 1));
    type = read_bytes(&r, padded(ntype, version == 1));
    space = read_bytes(&r, padded(nspace, version == 1));
    if (r.bad || nname == 0 || !memchr(text.at, 0, nname))
        return h5_bad(f, "an attribute leads out of its message");
    *found = !strcmp((const char *)text.at, name);
    if (!*found)
        return true;
    if (version > 1 && (flags & 1) && !h5_shared(f, H5_DATATYPE, type, &type))
        return false;
    if (version > 1 && (flags & 2) && !h5_shared(f, H5_SPACE, space, &space))
        return false;
    return h5_type(f, type, &t) && h5_space(f, space, &s) &&
           h5_value(f, &t, &s, read_bytes(&r, reader_left(&r)), out);
}

static bool visit_attribute(H5File *f, void *user, Bytes record, uint64_t child)
{
    Wanted *w = user;
    Bytes   message;

    (void)child;
    return h5_heap_object(f, w->heap, record, &message) &&
           read_attribute(f, message, w->name, &w->found, w->out) && !w->found;
}

static bool dense_attribute(H5File *f, Bytes info, Wanted *w)
{
    Reader   r = reader(info);
    uint32_t type;
    uint64_t heap_at, tree;
    H5Heap   heap;

    read_u8(&r);
    if (read_u8(&r) & 1)
        read_u16(&r);
    heap_at = h5_address(f, &r);
    tree = h5_address(f, &r);
    if (r.bad)
        return h5_bad(f, "the place of its attributes ends too early");
    if (heap_at == H5_NOWHERE || tree == H5_NOWHERE)
        return false;
    w->heap = &heap;
    return h5_heap(f, heap_at, &heap) && h5_tree2(f, tree, &type, visit_attribute, w);
}

bool h5_attribute(const H5Object *o, const char *name, H5Value *out)
{
    H5File         *f = o->file;
    Wanted          w = {.name = name, .out = out};
    const H5Header *h;
    Bytes           m;

    f->object = o->path;
    if (f->failed || !(h = h5_header(f, o->at)))
        return false;
    for (uint32_t i = 0; h5_message(f, h, H5_ATTRIBUTE, &i, &m);)
        if (!read_attribute(f, m, name, &w.found, out) || w.found)
            return w.found && !f->failed;
    if (!f->failed && h5_only(f, h, H5_ATTRIBUTE_INFO, &m))
        dense_attribute(f, m, &w);
    return w.found && !f->failed;
}

/* ---- datasets --------------------------------------------------------------------------------------- */

/* `bytes` cells in one piece, or none that were ever written. */
static bool contiguous(H5File *f, const H5Header *h, uint64_t address, uint64_t bytes,
                       const H5Type *t, const H5Space *s, Bytes *out)
{
    uint8_t *at;
    Reader   r;

    if (address != H5_NOWHERE && bytes) {
        if (!h5_window(f, address, bytes, &r))
            return false;
        *out = read_bytes(&r, bytes);
        return true;
    }
    if (!(at = h5_make(f, bytes)) || !h5_fill(f, h, t, at, s->cells))
        return false;
    *out = (Bytes){at, bytes};
    return true;
}

static bool read_layout(H5File *f, const H5Header *h, Bytes layout, const H5Type *t,
                        const H5Space *s, Bytes *out)
{
    enum { COMPACT, CONTIGUOUS, CHUNKED };
    Reader   r = reader(layout);
    uint32_t version = read_u8(&r), kind, rank = 0;
    uint64_t bytes, address = H5_NOWHERE, size;

    if (!h5_space_bytes(f, s, t, &bytes))
        return false;
    if (version < 1 || version > 4)
        return h5_unsupported(f, "its layout is of version %u; the newest known is 4", version);
    if (version < 3)
        rank = read_u8(&r);
    kind = read_u8(&r);
    if (kind == CHUNKED)
        return h5_chunks(f, h, layout, t, s, out);
    if (version < 3) {
        read_bytes(&r, 5);
        if (kind == CONTIGUOUS)
            address = h5_address(f, &r);
        read_bytes(&r, 4 * (uint64_t)rank); /* the shape once more */
    } else if (kind == CONTIGUOUS) {
        address = h5_address(f, &r);
    }
    if (kind > CHUNKED)
        return h5_unsupported(f, "its cells are laid out in a way (%u) that is not known", kind);
    if (kind == CONTIGUOUS)
        return r.bad ? h5_bad(f, "its layout ends too early")
                     : contiguous(f, h, address, bytes, t, s, out);
    size = version < 3 ? read_u32(&r) : read_u16(&r);
    *out = read_bytes(&r, size);
    return (!r.bad && size >= bytes) || h5_bad(f, "%llu bytes for cells of %llu",
                                               (unsigned long long)size, (unsigned long long)bytes);
}

bool h5_dataset(const H5Object *o, H5Value *out)
{
    H5File         *f = o->file;
    Bytes           type, space, layout, m, raw;
    const H5Header *h;
    H5Type          t;
    H5Space         s;

    f->object = o->path;
    if (f->failed || !(h = h5_header(f, o->at)))
        return false;
    if (!h5_only(f, h, H5_DATATYPE, &type) || !h5_only(f, h, H5_SPACE, &space) ||
        !h5_only(f, h, H5_LAYOUT, &layout))
        return h5_bad(f, "it is no dataset");
    if (h5_only(f, h, H5_EXTERNAL, &m))
        return h5_unsupported(f, "its cells are in another file");
    return h5_type(f, type, &t) && h5_space(f, space, &s) &&
           read_layout(f, h, layout, &t, &s, &raw) && h5_value(f, &t, &s, raw, out);
}
