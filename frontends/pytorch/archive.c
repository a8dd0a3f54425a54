/* The archive: where the program is, and the payloads by their names.
 *
 * torch before 2.8 wrote another one, whose weights are archives that lie in it (saved.c):
 *
 *     serialized_exported_program.json
 *     serialized_state_dict.pt, serialized_constants.pt    (.json until 2.3) */
#include "base/json.h"
#include "frontends/pytorch/pytorch.h"

#include <string.h>

static bool name_ends(Bytes name, const char *end)
{
    size_t n = strlen(end);

    return name.n >= n && !memcmp(name.at + name.n - n, end, n);
}

/* "NAME/models/NAME.json" */
static bool is_program(Bytes name)
{
    static const char models[] = "models/";

    for (size_t i = 0; name_ends(name, ".json") && i + sizeof models <= name.n; i++)
        if (!memcmp(name.at + i, models, sizeof models - 1) && (!i || name.at[i - 1] == '/'))
            return !memchr(name.at + i + sizeof models - 1, '/', name.n - i - sizeof models + 1);
    return false;
}

/* An entry whose name, without its folder, begins so. */
static bool is_named(Bytes name, const char *begin)
{
    size_t n = strlen(begin), from = name.n;

    while (from && name.at[from - 1] != '/')
        from--;
    return name.n - from >= n && !memcmp(name.at + from, begin, n);
}

/* Of torch before 2.8. */
static bool is_old_program(Bytes name)
{
    return is_named(name, "serialized_exported_program.json");
}

bool pt_is_archive(Bytes file)
{
    ZipDir    d;
    ZipMember m;

    if (file.n < 4 || memcmp(file.at, "PK\3\4", 4) || !zip_open(file, &d))
        return false;
    for (bool format = false, program = false; zip_next(&d, &m);) {
        format |= name_ends(m.name, "archive_format");
        program |= is_program(m.name);
        if ((format && program) || is_old_program(m.name))
            return true;
    }
    return false;
}

/* ---- payloads ----------------------------------------------------------------------------------------- */

typedef struct {
    Ctx       *c;
    Loc        loc;
    Map       *entries; /* interned path -> ZipMember */
    Map       *unpacked;
    PtArchive *out;
} Archive;

typedef struct {
    int64_t number;
    DType   dtype;
} NumberedType;

static bool find_type(uint32_t n, const NumberedType *all, int64_t number, DType *out)
{
    for (uint32_t i = 0; i < n; i++)
        if (all[i].number == number) {
            *out = all[i].dtype;
            return true;
        }
    return false;
}

bool pt_dtype(int64_t number, DType *out)
{
    static const NumberedType types[] = {
        {1, DT_U8},   {2, DT_I8},   {3, DT_I16},  {4, DT_I32},   {5, DT_I64},
        {6, DT_F16},  {7, DT_F32},  {8, DT_F64},  {12, DT_BOOL}, {13, DT_BF16},
        {28, DT_U16}, {34, DT_U32}, {35, DT_U64},
    };

    return find_type(COUNT(types), types, number, out);
}

bool ts_scalar_type(int64_t number, DType *out)
{
    static const NumberedType types[] = {
        {0, DT_U8},   {1, DT_I8},   {2, DT_I16},  {3, DT_I32},   {4, DT_I64},
        {5, DT_F16},  {6, DT_F32},  {7, DT_F64},  {11, DT_BOOL}, {15, DT_BF16},
        {27, DT_U16}, {28, DT_U32}, {29, DT_U64},
    };

    return find_type(COUNT(types), types, number, out);
}

/* "sizes": [{"as_int": 3}, ..] */
static bool read_sizes(Ctx *c, const json_t *list, Ints *out)
{
    size_t   n = json_array_size(list);
    int64_t *v = NEW_ARRAY(c->arena, int64_t, n + 1);

    if (!json_is_array(list) || n > MAX_RANK)
        return false;
    for (size_t i = 0; i < n; i++) {
        const json_t *x = json_object_get(json_array_get(list, i), "as_int");

        if (!json_is_integer(x) || json_integer_value(x) < 0)
            return false;
        v[i] = json_integer_value(x);
    }
    *out = (Ints){(uint32_t)n, v};
    return true;
}

static bool wrong(const Archive *a, const char *name)
{
    return error_at(a->c, E_IMPORT, a->loc, "the archive does not say what '%s' is", name);
}

static bool read_data(Archive *a, const char *folder, PtPayload *p)
{
    const char *path = intern_printf(a->c->strings, "%s%s", folder, p->path);
    Bytes      *had = map_get(a->unpacked, PTR_KEY(path));
    ZipMember  *m = map_get(a->entries, PTR_KEY(path));

    if (!had) {
        if (!m)
            return error_at(a->c, E_IMPORT, a->loc, "'%s' should be in the archive as '%s'",
                            p->name, path);
        had = NEW(a->c->arena, Bytes);
        if (!zip_data(a->c->diags, a->c->arena, a->loc, m, had))
            return false;
        map_put(a->unpacked, PTR_KEY(path), had);
    }
    p->data = *had;
    return true;
}

/* One line of a configuration. */
static bool read_payload(Archive *a, const char *folder, const char *name, const json_t *is)
{
    const json_t *meta = json_object_get(is, "tensor_meta");
    const char   *path = json_string_value(json_object_get(is, "path_name"));
    const json_t *offset = json_object_get(json_object_get(meta, "storage_offset"), "as_int");
    PtPayload    *p = NEW(a->c->arena, PtPayload);

    p->name = intern(a->c->strings, name);
    p->pickled = json_is_true(json_object_get(is, "use_pickle"));
    if (!path)
        return wrong(a, name);
    p->path = intern(a->c->strings, path);
    vec_push(a->c->arena, &a->out->payloads, p);
    if (p->pickled || !json_is_object(meta)) {
        p->pickled = true;
        return true;
    }
    p->dtype_number = json_integer_value(json_object_get(meta, "dtype"));
    p->complex = p->dtype_number == PT_COMPLEX64;
    p->dtype = DT_F32;
    p->known = (p->complex || pt_dtype(p->dtype_number, &p->dtype)) &&
               json_integer_value(json_object_get(meta, "layout")) == 7;
    if (!read_sizes(a->c, json_object_get(meta, "sizes"), &p->sizes) ||
        !read_sizes(a->c, json_object_get(meta, "strides"), &p->strides) ||
        p->sizes.n != p->strides.n || (offset && !json_is_integer(offset)))
        return wrong(a, name);
    p->offset = json_integer_value(offset);
    return read_data(a, folder, p);
}

static bool read_config(Archive *a, const char *folder, Bytes text)
{
    json_t     *root = json_read(text, NULL), *config = json_object_get(root, "config"), *is;
    const char *name;
    bool        ok = json_is_object(config);

    if (!ok)
        error_at(a->c, E_PARSE_MODEL, a->loc, "the list of what is in '%s' does not parse", folder);
    else
        json_object_foreach(config, name, is) ok = ok && read_payload(a, folder, name, is);
    json_decref(root);
    return ok;
}

/* ---- the whole ---------------------------------------------------------------------------------------- */

static bool add_entry(Ctx *c, Loc loc, const ZipMember *m, Map *out)
{
    const char *name;
    Bytes       order;

    if (!m->name.n || memchr(m->name.at, 0, m->name.n))
        return error_at(c, E_PARSE_MODEL, loc, "an entry of the zip has no readable name");
    name = intern_n(c->strings, (const char *)m->name.at, m->name.n);
    if (map_get(out, PTR_KEY(name)))
        return error_at(c, E_PARSE_MODEL, loc, "entry '%s' of the zip is there twice", name);
    map_put(out, PTR_KEY(name), DUP_ARRAY(c->arena, m, 1));
    if (!strcmp(name, "byteorder") || str_ends(name, "/byteorder")) {
        if (!zip_data(c->diags, c->arena, loc, m, &order))
            return false;
        if (order.n >= 3 && !memcmp(order.at, "big", 3))
            return error_at(c, E_UNSUPPORTED, loc, "the weights are big-endian");
    }
    return true;
}

Map *pt_entries(Ctx *c, Loc loc, Bytes file)
{
    Map      *out = map_new(c->arena);
    ZipDir    d;
    ZipMember m;

    if (!zip_open(file, &d))
        return error_at(c, E_PARSE_MODEL, loc, "not a zip file");
    while (zip_next(&d, &m))
        if (!add_entry(c, loc, &m, out))
            return NULL;
    return d.bad ? error_at(c, E_PARSE_MODEL, loc, "the directory of the zip is broken") : out;
}

/* The text in an entry whose folder is *folder. */
static bool read_text(Archive *a, const ZipMember *m, const char **folder, Bytes *out)
{
    size_t n = m->name.n;

    while (n && m->name.at[n - 1] != '/')
        n--;
    *folder = intern_n(a->c->strings, (const char *)m->name.at, n);
    return zip_data(a->c->diags, a->c->arena, a->loc, m, out);
}

/* One member of the archive; of torch before 2.8, weights are archives of torch.save. */
static bool read_member(Archive *a, const ZipMember *m)
{
    PtArchive  *out = a->out;
    const char *folder;
    Bytes       bytes;

    if (is_program(m->name) || is_old_program(m->name)) {
        if (out->program.at)
            return error_at(a->c, E_UNSUPPORTED, a->loc, "the archive holds several programs");
        return read_text(a, m, &folder, &out->program);
    }
    if (name_ends(m->name, "weights_config.json") || name_ends(m->name, "constants_config.json"))
        return read_text(a, m, &folder, &bytes) && read_config(a, folder, bytes);
    if (is_named(m->name, "serialized_state_dict.") || is_named(m->name, "serialized_constants."))
        return zip_data(a->c->diags, a->c->arena, a->loc, m, &bytes) &&
               pt_read_saved(a->c, a->loc, bytes, out);
    return true;
}

bool pt_read_archive(Ctx *c, Loc loc, Bytes file, PtArchive *out)
{
    Archive   a = {.c = c, .loc = loc, .out = out};
    ZipDir    d;
    ZipMember m;

    a.unpacked = map_new(c->arena);
    if (!(a.entries = pt_entries(c, loc, file)) || !zip_open(file, &d))
        return false;
    while (zip_next(&d, &m))
        if (!read_member(&a, &m))
            return false;
    return out->program.at || error_at(c, E_PARSE_MODEL, loc, "the archive holds no program");
}
