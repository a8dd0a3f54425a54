/* release.c: what a release says about itself, as changes.c compares it.
 *
 * All of it is read from the text files of an archive (docs/archive.md) and from the headers of its
 * libraries; nothing is loaded.  What does not parse is left out: an archive may hold anything, and
 * whoever wants to know whether it is sound asks `tvmcc audit`.
 */
#include "base/json.h"
#include "packaging/packaging.h"

#include <stdlib.h>
#include <string.h>

enum { GRAPH_LIMIT = 64 << 20, MAX_PACKAGES = 4096 };

static json_t *parse(const Member *m)
{
    return m ? json_read(m->data, NULL) : NULL;
}

static const char *text_of(Arena *a, json_t *o, const char *key)
{
    json_t *v = json_object_get(o, key);

    return json_is_string(v) ? arena_printf(a, "%s", json_string_value(v)) : NULL;
}

/* ---- models ---------------------------------------------------------------------------------------- */

/* share/net/net.json, share/net/<triple>/net.json, or metadata on their own. */
static bool may_be_metadata(const Member *m, uint32_t n)
{
    return str_ends(m->path, ".json") && (n == 1 || str_starts(m->path, "share/"));
}

static void add_sizes(Arena *a, const Release *r, ReleasePart *p)
{
    const ModelDesc *d = p->desc;
    const char      *stem = arena_printf(a, "lib/%s/lib%s", d->triple, d->entry);
    const Member    *m = pack_find(r->members, r->n, arena_printf(a, "%s.a", stem));
    AuditRules       rules = {.no_pic = true};
    AuditFile        f;

    if (!m)
        m = pack_find(r->members, r->n, arena_printf(a, "%s.so", stem));
    if (!m && (m = pack_find(r->members, r->n, arena_printf(a, "src/%s.c", d->entry)))) {
        p->library = strcmp(d->triple, "any") == 0 ? m->data.n : 0;
        return;
    }
    if (!m)
        return;
    audit_file(diags_new(a), a, m->path, m->data, &rules, &f);
    p->library = m->data.n;
    p->code = f.report.code;
    p->constants = f.report.rodata;
}

static void add_graph(Arena *a, const Release *r, const char *metadata, ReleasePart *p)
{
    const Member *m = pack_find(
        r->members, r->n,
        arena_printf(a, "%.*smodel.relay", (int)(strrchr(metadata, '/') + 1 - metadata), metadata));

    if (m && m->data.n && m->data.n <= GRAPH_LIMIT)
        p->graph = arena_printf(a, "%.*s", (int)m->data.n, (const char *)m->data.at);
}

static int by_name(const void *a, const void *b)
{
    const ModelDesc *x = ((const ReleasePart *)a)->desc, *y = ((const ReleasePart *)b)->desc;
    int              order = strcmp(x->entry, y->entry);

    return order ? order : strcmp(x->triple, y->triple);
}

static void add_parts(Arena *a, Release *r)
{
    VEC(ReleasePart) parts = {0};

    for (uint32_t i = 0; i < r->n; i++) {
        const Member *m = &r->members[i];
        ModelDesc    *desc = NEW(a, ModelDesc);
        ReleasePart   p = {.desc = desc};

        if (!may_be_metadata(m, r->n) || !metadata_read(diags_new(a), a, m->path, m->data, desc))
            continue;
        add_sizes(a, r, &p);
        if (strrchr(m->path, '/'))
            add_graph(a, r, m->path, &p);
        vec_push(a, &parts, p);
    }
    r->nparts = parts.n;
    r->parts = parts.at;
    if (parts.n)
        qsort(parts.at, parts.n, sizeof *parts.at, by_name);
}

/* ---- the package ------------------------------------------------------------------------------------ */

static void add_packages(Arena *a, Release *r)
{
    json_t *root = parse(pack_find(r->members, r->n, "sbom.spdx.json"));
    json_t *item;
    size_t  i;
    VEC(ReleasePackage) list = {0};

    json_array_foreach(json_object_get(root, "packages"), i, item)
    {
        json_t        *sums = json_object_get(item, "checksums");
        ReleasePackage p = {.name = text_of(a, item, "name"),
                            .version = text_of(a, item, "versionInfo"),
                            .license = text_of(a, item, "licenseDeclared"),
                            .sha = text_of(a, json_array_get(sums, 0), "checksumValue")};

        if (p.name && list.n < MAX_PACKAGES)
            vec_push(a, &list, p);
    }
    json_decref(root);
    r->npackages = list.n;
    r->packages = list.at;
}

void release_read(Arena *a, const char *path, uint64_t bytes, const Member *m, uint32_t n,
                  Release *out)
{
    json_t *root;

    *out = (Release){.path = path, .bytes = bytes, .n = n, .members = members_plain(a, m, n)};
    root = parse(pack_find(out->members, n, "manifest.json"));
    out->name = text_of(a, root, "name");
    out->version = text_of(a, root, "version");
    out->license = text_of(a, root, "license");
    json_decref(root);
    for (uint32_t i = 0; i < n; i++)
        out->content += m[i].data.n;
    add_parts(a, out);
    add_packages(a, out);
}
