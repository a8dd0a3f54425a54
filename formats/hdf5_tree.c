/* HDF5: B-trees.  Of version 1 the keys stand between the children's addresses, and the leaves'
 * children are what is looked for; those of version 2 have records, in inner nodes too. */
#include "formats/hdf5.h"

#include <string.h>

enum { MAX_LEVELS = 32 };

/* ---- version 1 -------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t address;
    uint32_t level;
} Node;
typedef VEC(Node) Nodes;

/* The children of one node: pushed in reverse, so that the first is the next. */
static bool node1(H5File *f, Node n, bool top, uint32_t type, uint32_t key, Nodes *todo,
                  H5Visit *fn, void *user, bool *more)
{
    uint32_t level, entries;
    Node    *kids;
    Reader   r;

    if (!h5_block(f, n.address, "TREE", &r))
        return false;
    if (read_u8(&r) != type)
        return h5_bad(f, "a tree is of another kind");
    level = read_u8(&r);
    entries = read_u16(&r);
    read_bytes(&r, 2 * (uint64_t)f->offset); /* the nodes beside it */
    if ((top ? level >= MAX_LEVELS : level != n.level))
        return h5_bad(f, "a tree has wrong levels");
    kids = NEW_ARRAY(f->arena, Node, level ? entries + 1 : 1);
    for (uint32_t i = 0; i < entries && *more; i++) {
        Bytes    k = read_bytes(&r, key);
        uint64_t child = h5_address(f, &r);

        if (r.bad)
            return h5_bad(f, "a tree leads out of the file");
        if (level)
            kids[i] = (Node){child, level - 1};
        else
            *more = fn(f, user, k, child);
    }
    for (uint32_t i = entries; level && i-- > 0;)
        vec_push(f->arena, todo, kids[i]);
    return !f->failed;
}

bool h5_tree1(H5File *f, uint64_t address, uint32_t type, uint32_t key, H5Visit *fn, void *user)
{
    Nodes todo = {0};
    bool  more = true;

    if (!node1(f, (Node){address, 0}, true, type, key, &todo, fn, user, &more))
        return false;
    while (todo.n && more)
        if (!node1(f, todo.at[--todo.n], false, type, key, &todo, fn, user, &more))
            return false;
    return true;
}

/* ---- version 2 -------------------------------------------------------------------------------------- */

typedef struct {
    H5File  *f;
    uint32_t type, record, depth;
    uint64_t node_bytes;
    uint32_t count_bytes, total_bytes[MAX_LEVELS]; /* of a child's records, of all below it */
    H5Visit *fn;
    void    *user;
    bool     more;
} Tree2;

typedef struct {
    uint64_t address;
    uint32_t records, level;
} Node2;
typedef VEC(Node2) Nodes2;

static bool records2(Tree2 *t, Reader *r, uint32_t n)
{
    for (uint32_t i = 0; i < n && t->more; i++) {
        Bytes record = read_bytes(r, t->record);

        if (r->bad)
            return h5_bad(t->f, "a tree leads out of the file");
        t->more = t->fn(t->f, t->user, record, H5_NOWHERE);
    }
    return !t->f->failed;
}

/* Those of an inner node come before those of its children; nobody here needs their order. */
static bool node2(Tree2 *t, Node2 n, Nodes2 *todo)
{
    Reader r;

    if (!h5_block(t->f, n.address, n.level ? "BTIN" : "BTLF", &r))
        return false;
    read_u8(&r);
    if (read_u8(&r) != t->type)
        return h5_bad(t->f, "a tree is of another kind");
    if (!records2(t, &r, n.records) || !t->more)
        return !t->f->failed;
    for (uint32_t i = 0; n.level && i <= n.records; i++) {
        Node2 kid = {.level = n.level - 1};

        kid.address = h5_address(t->f, &r);
        kid.records = (uint32_t)h5_number(&r, t->count_bytes);
        h5_number(&r, n.level > 1 ? t->total_bytes[n.level - 1] : 0);
        if (r.bad)
            return h5_bad(t->f, "a tree leads out of the file");
        vec_push(t->f->arena, todo, kid);
    }
    return true;
}

/* How wide the numbers in inner nodes are follows from how many records nodes have room for. */
static bool widths(Tree2 *t)
{
    enum { AROUND = 10 }; /* letters, version, type, checksum */
    uint64_t room = t->node_bytes - AROUND, most = room / t->record, total = most;

    if (t->node_bytes <= AROUND || most == 0 || t->depth >= MAX_LEVELS)
        return false;
    t->count_bytes = h5_width(most);
    for (uint32_t level = 1; level <= t->depth; level++) {
        uint64_t pointer =
            t->f->offset + t->count_bytes + (level > 1 ? t->total_bytes[level - 1] : 0);

        if (room < pointer + t->record)
            return false;
        most = (room - pointer) / (t->record + pointer);
        if (!checked_mul(total, most + 1, &total) || !checked_add(total, most, &total))
            total = UINT64_MAX;
        t->total_bytes[level] = h5_width(total);
    }
    return true;
}

bool h5_tree2(H5File *f, uint64_t address, uint32_t *type, H5Visit *fn, void *user)
{
    Tree2    t = {.f = f, .fn = fn, .user = user, .more = true};
    Nodes2   todo = {0};
    uint64_t root;
    uint32_t records;
    Reader   r;

    if (!h5_block(f, address, "BTHD", &r))
        return false;
    read_u8(&r);
    *type = t.type = read_u8(&r);
    t.node_bytes = read_u32(&r);
    t.record = read_u16(&r);
    t.depth = read_u16(&r);
    read_u16(&r);
    root = h5_address(f, &r);
    records = read_u16(&r);
    if (r.bad || t.record == 0 || !widths(&t))
        return h5_bad(f, "a tree of records of %u bytes is broken", t.record);
    if (root == H5_NOWHERE)
        return true;
    vec_push(f->arena, &todo, ((Node2){root, records, t.depth}));
    while (todo.n && t.more)
        if (!node2(&t, todo.at[--todo.n], &todo))
            return false;
    return !f->failed;
}
