/* A manifest's tree as structs, by the tables of schema.c.
 *
 * `fill_record` walks a mapping and the record's fields side by side.  Nothing is passed over: a
 * key that the schema does not have, or has only for later versions, is an error, and so is one
 * given twice, be it in one file or in two that include each other.  After an error the walk goes
 * on, so that one run names all of them.  It nests as deep as the schema, not as the text.
 */
#include "manifest/tree.h"

#include <string.h>
#include <sys/stat.h>

enum { MAX_FILES = 64, MAX_ERRORS = 100, MERGE_DEPTH = 16 };

typedef struct {
    const Node *key, *value;
} Entry;

typedef VEC(Entry) Entries;

typedef struct {
    const char *path;
    dev_t       device;
    ino_t       inode;
    bool        open; /* its reading has not ended: an include of it is a cycle */
} File;

typedef struct {
    Values    v;
    Manifest *m;
    ManFiles *files; /* NULL: no includes */
    VEC(File) seen;
    Refs     refs;
    uint32_t before; /* errors */
    bool     included;
} Read;

static bool fill_record(Read *r, const Record *rec, const char *what, const Node *n, void *out);
static bool read_file(Read *r, const char *path, Loc loc);

static bool too_many(const Read *r)
{
    return diag_errors(r->v.d) - r->before >= MAX_ERRORS;
}

/* ---- entries of a mapping, with `<<` written out ----------------------------------------------- */

static void add_entries(Read *r, const Node *map, unsigned depth, Map *seen, Entries *out);

static void merge(Read *r, const Node *n, unsigned depth, Map *seen, Entries *out)
{
    const Node *source = node_of(n);

    if (source->kind == NODE_MAP && depth < MERGE_DEPTH) {
        add_entries(r, source, depth + 1, seen, out);
        return;
    }
    if (source->kind == NODE_LIST && depth < MERGE_DEPTH) {
        for (uint32_t i = 0; i < source->nkids; i++)
            merge(r, source->kids[i], depth + 1, seen, out);
        return;
    }
    if (depth >= MERGE_DEPTH)
        diag_error(r->v.d, E_MANIFEST_LIMIT, n->loc, "'<<' is nested more than %d times",
                   MERGE_DEPTH);
    else
        diag_error(r->v.d, E_MANIFEST_SYNTAX, n->loc, "'<<' takes a mapping or a list of mappings");
}

static bool is_merge(const Node *key)
{
    return key->kind == NODE_SCALAR && key->plain && strcmp(key->text, "<<") == 0;
}

/* Own keys first, they count; then those of `<<`, of which the first mapping counts. */
static void add_entries(Read *r, const Node *map, unsigned depth, Map *seen, Entries *out)
{
    Map *own = map_new(r->v.a);

    for (uint32_t i = 0; i + 1 < map->nkids; i += 2) {
        const Node *key = node_of(map->kids[i]), *first;

        if (is_merge(key) || !value_key(&r->v, key))
            continue;
        if ((first = map_get(own, PTR_KEY(key->text)))) {
            if (depth == 0) {
                diag_error(r->v.d, E_MANIFEST_KEY, key->loc, "'%s' is given twice", key->text);
                diag_note(r->v.d, first->loc, "the first one is here");
            }
            continue;
        }
        map_put(own, PTR_KEY(key->text), (void *)map->kids[i]);
        if (!map_get(seen, PTR_KEY(key->text))) {
            map_put(seen, PTR_KEY(key->text), (void *)key);
            vec_push(r->v.a, out, ((Entry){map->kids[i], map->kids[i + 1]}));
        }
    }
    for (uint32_t i = 0; i + 1 < map->nkids; i += 2) {
        if (is_merge(node_of(map->kids[i])))
            merge(r, map->kids[i + 1], depth, seen, out);
    }
}

static Entries entries(Read *r, const Node *map)
{
    Entries out = {0};

    add_entries(r, map, 0, map_new(r->v.a), &out);
    return out;
}

/* ---- lists ------------------------------------------------------------------------------------------ */

static const Node *list_of(Read *r, const Field *f, const Node *n)
{
    n = node_of(n);
    if (n->kind == NODE_LIST)
        return n;
    diag_error(r->v.d, E_MANIFEST_VALUE, n->loc, "'%s' is a list", f->key);
    if (n->kind == NODE_SCALAR && n->plain && *n->text && strlen(n->text) < 60)
        diag_hint(r->v.d, "write [%s]", n->text);
    return NULL;
}

/* An array for the items in `out`, which is given from now on. */
static void *items(Read *r, const Node *n, size_t size, void *out)
{
    ManSeq *s = out;

    s->given = true;
    s->loc = n->loc;
    s->at = arena_array(r->v.a, n->nkids, size);
    return s->at;
}

static bool fill_texts(Read *r, const Field *f, const Node *n, ManTexts *out)
{
    bool     ok = true;
    ManText *at;
    Map     *seen = map_new(r->v.a);

    if (!(n = list_of(r, f, n)))
        return false;
    at = items(r, n, sizeof *at, out);
    for (uint32_t i = 0; i < n->nkids && !too_many(r); i++) {
        ManText        t;
        const ManText *first;

        if (!value_text(&r->v, f, n->kids[i], &t)) {
            ok = false;
            continue;
        }
        if (f->kind != KIND_TEXTS && (first = map_get(seen, PTR_KEY(t.text)))) {
            diag_error(r->v.d, E_MANIFEST_KEY, t.loc, "'%s' is listed twice", t.text);
            diag_note(r->v.d, first->loc, "the first one is here");
            ok = false;
            continue;
        }
        at[out->n] = t;
        map_put(seen, PTR_KEY(t.text), &at[out->n++]);
        if (f->kind == KIND_REFS)
            vec_push(r->v.a, &r->refs, ((Ref){f->arg, t}));
    }
    return ok;
}

static bool fill_ints(Read *r, const Field *f, const Node *n, ManInts *out)
{
    bool    ok = true;
    ManInt *at;

    if (!(n = list_of(r, f, n)))
        return false;
    at = items(r, n, sizeof *at, out);
    for (uint32_t i = 0; i < n->nkids && !too_many(r); i++)
        ok = value_int(&r->v, f, n->kids[i], &at[out->n++]) && ok;
    return ok;
}

static bool fill_reals(Read *r, const Field *f, const Node *n, ManReals *out)
{
    bool     ok = true;
    ManReal *at;

    if (!(n = list_of(r, f, n)))
        return false;
    at = items(r, n, sizeof *at, out);
    for (uint32_t i = 0; i < n->nkids && !too_many(r); i++)
        ok = value_real(&r->v, f, n->kids[i], &at[out->n++]) && ok;
    return ok;
}

static bool fill_shape(Read *r, const Field *f, const Node *n, ManShape *out)
{
    bool       ok = true;
    ManExtent *at;

    if (!(n = list_of(r, f, n)))
        return false;
    at = items(r, n, sizeof *at, out);
    for (uint32_t i = 0; i < n->nkids && !too_many(r); i++)
        ok = value_extent(&r->v, f, n->kids[i], &at[out->n++]) && ok;
    return ok;
}

static bool fill_many(Read *r, const Field *f, const Node *n, ManSeq *out)
{
    const Record *rec = f->type();
    bool          ok = true;
    char         *at;

    if (!(n = list_of(r, f, n)))
        return false;
    at = items(r, n, rec->size, out);
    for (uint32_t i = 0; i < n->nkids && !too_many(r); i++) {
        const char *what = arena_printf(r->v.a, "entry %u of '%s'", i + 1, f->key);

        ok = fill_record(r, rec, what, n->kids[i], at + rec->size * out->n++) && ok;
    }
    return ok;
}

/* ---- mappings --------------------------------------------------------------------------------------- */

static const Node *map_of(Read *r, const char *what, const Node *n)
{
    n = node_of(n);
    if (n->kind == NODE_MAP)
        return n;
    if (n->kind == NODE_SCALAR && n->plain && (!*n->text || strcmp(n->text, "~") == 0)) {
        diag_error(r->v.d, E_MANIFEST_VALUE, n->loc, "%s has no value; it is a mapping", what);
        diag_hint(r->v.d, "{} is an empty one");
        return NULL;
    }
    return diag_error(r->v.d, E_MANIFEST_VALUE, n->loc, "%s is a mapping, not a %s", what,
                      n->kind == NODE_LIST ? "list" : "plain value");
}

static bool fill_table(Read *r, const Field *f, const Node *n, ManTable *out)
{
    bool        ok = true;
    Entries     e;
    ManKeyText *at;

    if (!(n = map_of(r, arena_printf(r->v.a, "'%s'", f->key), n)))
        return false;
    e = entries(r, n);
    out->given = true;
    out->loc = n->loc;
    out->at = at = NEW_ARRAY(r->v.a, ManKeyText, e.n);
    for (uint32_t i = 0; i < e.n && !too_many(r); i++) {
        const Node *key = node_of(e.at[i].key), *value = node_of(e.at[i].value);

        if (value->kind != NODE_SCALAR) {
            ok =
                diag_error(r->v.d, E_MANIFEST_VALUE, value->loc, "'%s' has a plain value, not a %s",
                           key->text, value->kind == NODE_LIST ? "list" : "mapping");
            continue;
        }
        at[out->n++] = (ManKeyText){key->loc, key->text, value->text};
    }
    return ok;
}

/* "models" -> "model" */
static const char *singular(const Read *r, const char *map)
{
    return arena_printf(r->v.a, "%.*s", (int)strlen(map) - 1, map);
}

static bool fill_map(Read *r, const Field *f, const Node *n, ManSeq *out, bool top)
{
    const Record *rec = f->type();
    bool          ok = true;
    uint32_t      had = out->n;
    Entries       e;
    char         *at;

    if (!(n = map_of(r, arena_printf(r->v.a, "'%s'", f->key), n)))
        return false;
    e = entries(r, n);
    at = arena_array(r->v.a, (size_t)had + e.n, rec->size);
    if (had)
        memcpy(at, out->at, had * rec->size);
    if (!out->given)
        out->loc = n->loc;
    out->given = true;
    out->at = at;
    for (uint32_t i = 0; i < e.n && !too_many(r); i++) {
        const Node      *key = node_of(e.at[i].key);
        const ManRecord *first = NULL;
        ManRecord       *entry = (ManRecord *)(void *)(at + rec->size * out->n);

        for (uint32_t k = 0; k < had && !first; k++) {
            const ManRecord *other = (const ManRecord *)(const void *)(at + rec->size * k);

            first = other->key == key->text ? other : NULL;
        }
        if (first) {
            diag_error(r->v.d, E_MANIFEST_KEY, key->loc, "%s '%s' is given twice",
                       singular(r, f->key), key->text);
            diag_note(r->v.d, first->loc, "the first one is here");
            ok = false;
            continue;
        }
        if (top && !name_ok(key->text)) {
            ok = diag_error(r->v.d, E_MANIFEST_KEY, key->loc,
                            "the name of a %s has letters, digits, '-', '_' and '+', at most 64",
                            singular(r, f->key));
            continue;
        }
        ok = fill_record(r, rec, arena_printf(r->v.a, "%s '%s'", singular(r, f->key), key->text),
                         e.at[i].value, entry) &&
             ok;
        entry->given = true;
        entry->key = key->text;
        entry->loc = key->loc;
        out->n++;
    }
    return ok;
}

/* ---- fields and records ------------------------------------------------------------------------------- */

static bool fill_field(Read *r, const Field *f, Loc key, const Node *n, void *slot, bool top)
{
    ManAny     *any = slot;
    const char *closed = f->kind == KIND_ONE || f->kind == KIND_MAP ? NULL : f->key;
    bool        ok;

    if (f->kind == KIND_LATER)
        return diag_error(r->v.d, E_MANIFEST_LATER, key, "'%s': %s", f->key, f->help);
    if (any->given && closed) {
        diag_error(r->v.d, E_MANIFEST_KEY, key, "'%s' is given twice", f->key);
        diag_note(r->v.d, any->loc, "the first one is here");
        return false;
    }
    switch (f->kind) {
    case KIND_TEXT:
    case KIND_CHOICE:
    case KIND_PATH: return value_text(&r->v, f, n, slot);
    case KIND_REF:
        if ((ok = value_text(&r->v, f, n, slot)))
            vec_push(r->v.a, &r->refs, ((Ref){f->arg, *(ManText *)slot}));
        return ok;
    case KIND_BOOL: return value_bool(&r->v, f, n, slot);
    case KIND_INT: return value_int(&r->v, f, n, slot);
    case KIND_SIZE: return value_size(&r->v, f, n, slot);
    case KIND_REAL: return value_real(&r->v, f, n, slot);
    case KIND_SHAPE: return fill_shape(r, f, n, slot);
    case KIND_TEXTS:
    case KIND_CHOICES:
    case KIND_PATHS:
    case KIND_REFS: return fill_texts(r, f, n, slot);
    case KIND_INTS: return fill_ints(r, f, n, slot);
    case KIND_REALS: return fill_reals(r, f, n, slot);
    case KIND_TABLE: return fill_table(r, f, n, slot);
    case KIND_ONE: return fill_record(r, f->type(), arena_printf(r->v.a, "'%s'", f->key), n, slot);
    case KIND_MANY: return fill_many(r, f, n, slot);
    case KIND_MAP: return fill_map(r, f, n, slot, top);
    case KIND_LATER: break;
    }
    return false;
}

/* The key that is spelt nearly so. */
static const char *closest_key(Read *r, const Record *rec, const char *text)
{
    const char **names = NEW_ARRAY(r->v.a, const char *, rec->n);

    for (uint32_t i = 0; i < rec->n; i++)
        names[i] = rec->fields[i].key;
    return str_closest(text, names, rec->n);
}

static bool unknown_key(Read *r, const Record *rec, const char *what, const Node *key)
{
    const char *closest = closest_key(r, rec, key->text);

    diag_error(r->v.d, E_MANIFEST_KEY, key->loc, "%s has no key '%.60s'", what, key->text);
    if (closest) {
        diag_hint(r->v.d, "did you mean '%s'?", closest);
    } else {
        StrBuf all = strbuf(r->v.a);

        for (uint32_t i = 0; i < rec->n; i++)
            str_printf(&all, "%s%s", i ? ", " : "", rec->fields[i].key);
        diag_hint(r->v.d, "it has %s", all.at);
    }
    return false;
}

static bool has_key(const Entries *e, const char *key)
{
    for (uint32_t i = 0; i < e->n; i++) {
        if (strcmp(node_of(e->at[i].key)->text, key) == 0)
            return true;
    }
    return false;
}

/* Is there a key that was taken for a misspelt `key`? */
static bool has_misspelt(Read *r, const Record *rec, const Entries *e, const char *key)
{
    for (uint32_t i = 0; i < e->n; i++) {
        const char *is = node_of(e->at[i].key)->text;

        if (!record_field(rec, is) && closest_key(r, rec, is) == key)
            return true;
    }
    return false;
}

/* A key that is there with a wrong value, or misspelt, had its error. */
static bool missing_keys(Read *r, const Record *rec, const char *what, Loc loc, const Entries *e,
                         const void *out)
{
    bool ok = true;

    for (uint32_t i = 0; i < rec->n; i++) {
        const Field  *f = &rec->fields[i];
        const ManAny *any = (const void *)((const char *)out + f->offset);

        if (f->required && !any->given && !has_key(e, f->key) && !has_misspelt(r, rec, e, f->key))
            ok = diag_error(r->v.d, E_MANIFEST_KEY, loc, "%s has no '%s'", what, f->key);
    }
    return ok;
}

/* One entry of a record.  `schema` and `include` of an included file are its own. */
static bool fill_entry(Read *r, const Record *rec, const char *what, Entry e, void *out)
{
    const Node  *key = node_of(e.key);
    const Field *f = record_field(rec, key->text);
    bool         top = rec == schema_root(), ok;
    ManTexts     own = {0};
    void        *slot;

    if (!f)
        return unknown_key(r, rec, what, key);
    slot = (char *)out + f->offset;
    if (top && r->included && (f->kind == KIND_CHOICE || f->kind == KIND_PATHS))
        slot = &own;
    if (top)
        r->v.substitutes = strcmp(f->key, "models") == 0 || strcmp(f->key, "defaults") == 0;
    ok = fill_field(r, f, key->loc, e.value, slot, top);
    if (top && f->kind == KIND_PATHS) {
        const ManTexts *paths = slot;

        for (uint32_t i = 0; ok && i < paths->n; i++)
            ok = read_file(r, paths->at[i].text, paths->at[i].loc);
    }
    return ok;
}

static bool fill_record(Read *r, const Record *rec, const char *what, const Node *n, void *out)
{
    const char *shorthand = record_shorthand(rec);
    uint32_t    before = diag_errors(r->v.d);
    ManRecord  *head = out;
    Loc         loc = n->loc; /* of an alias, not of what it stands for */
    Entries     e;

    n = node_of(n);
    head->given = true;
    head->loc = loc;
    if (n->kind != NODE_MAP && shorthand && !(n->kind == NODE_SCALAR && n->plain && !*n->text)) {
        const Field *f = record_field(rec, shorthand);

        e = (Entries){0};
        return fill_field(r, f, loc, n, (char *)out + f->offset, false) &&
               missing_keys(r, rec, what, loc, &e, out);
    }
    if (!(n = map_of(r, what, n)))
        return false;
    e = entries(r, n);
    for (uint32_t i = 0; i < e.n && !too_many(r); i++)
        fill_entry(r, rec, what, e.at[i], out);
    if (rec != schema_root())
        missing_keys(r, rec, what, loc, &e, out);
    return diag_errors(r->v.d) == before;
}

/* ---- files ---------------------------------------------------------------------------------------------- */

/* Includes come first in effect, wherever they stand: their entries come before the file's own. */
static bool fill_root(Read *r, const char *path, Bytes text)
{
    const Node *root = tree_parse(r->v.d, r->v.a, r->v.names, path, text);
    const char *slash = strrchr(path, '/'), *folder = r->v.folder;
    const char *what = "the manifest";
    Entries     e;

    if (!root || !(root = map_of(r, what, root)))
        return false;
    r->v.folder = slash ? intern_n(r->v.names, path, (size_t)(slash - path) + 1) : "";
    e = entries(r, root);
    for (int own = 0; own < 2; own++) {
        for (uint32_t i = 0; i < e.n && !too_many(r); i++) {
            if ((strcmp(node_of(e.at[i].key)->text, "include") == 0) != own)
                fill_entry(r, schema_root(), what, e.at[i], r->m);
        }
    }
    if (!r->included)
        missing_keys(r, schema_root(), what, root->loc, &e, r->m);
    r->v.folder = folder;
    return true;
}

static bool read_file(Read *r, const char *path, Loc loc)
{
    bool        included = r->included, ok;
    struct stat st;
    Bytes       text;
    uint32_t    index = r->seen.n;

    if (!r->files)
        return diag_error(r->v.d, E_MANIFEST_FILE, loc, "there are no other files here");
    if (stat(path, &st) != 0)
        return diag_error(r->v.d, E_MANIFEST_FILE, loc, "there is no file '%s'", path);
    for (uint32_t i = 0; i < r->seen.n; i++) {
        const File *f = &r->seen.at[i];

        if (f->device != st.st_dev || f->inode != st.st_ino)
            continue;
        return !f->open || /* two files may share a third */
               diag_error(r->v.d, E_MANIFEST_FILE, loc, "'%s' includes itself", path);
    }
    if (!S_ISREG(st.st_mode))
        return diag_error(r->v.d, E_MANIFEST_FILE, loc, "'%s' is not a file", path);
    if (st.st_size > TREE_BYTES || r->seen.n == MAX_FILES)
        return r->seen.n == MAX_FILES
                   ? diag_error(r->v.d, E_MANIFEST_LIMIT, loc, "more than %d files", MAX_FILES)
                   : diag_error(r->v.d, E_MANIFEST_LIMIT, loc,
                                "'%s' has %lld bytes; %d are the most", path, (long long)st.st_size,
                                TREE_BYTES);
    if (!file_read(r->v.d, r->v.a, path, &text))
        return false;
    vec_push(r->v.a, &r->seen, ((File){path, st.st_dev, st.st_ino, true}));
    vec_push(r->v.a, r->files, path);
    r->included = true;
    ok = fill_root(r, path, text);
    r->included = included;
    r->seen.at[index].open = false;
    return ok;
}

static const Manifest *finish(Read *r, bool ok)
{
    if (too_many(r))
        diag_note(r->v.d, NO_LOC, "there are more errors");
    else if (ok)
        refs_check(r->v.d, r->v.a, r->m, &r->refs, diag_errors(r->v.d) == r->before);
    return ok && diag_errors(r->v.d) == r->before ? r->m : NULL;
}

static Read read_new(Diags *d, Arena *a, ManFiles *files)
{
    return (Read){.v = {d, a, strings_new(a), "", false},
                  .m = NEW(a, Manifest),
                  .files = files,
                  .before = diag_errors(d)};
}

const Manifest *manifest_parse(Diags *d, Arena *a, const char *path, Bytes text, ManFiles *files)
{
    Read r = read_new(d, a, files);

    return finish(&r, fill_root(&r, path, text));
}

const Manifest *manifest_read(Diags *d, Arena *a, const char *path, ManFiles *files)
{
    Read        r = read_new(d, a, files);
    struct stat st;
    Bytes       text;

    if (!file_read(d, a, path, &text))
        return NULL;
    if (strcmp(path, "-") == 0) {
        path = "standard input";
    } else if (stat(path, &st) == 0) {
        vec_push(a, &r.seen, ((File){path, st.st_dev, st.st_ino, true}));
        vec_push(a, files, path);
    }
    return finish(&r, fill_root(&r, path, text));
}
