/* Arrays as TVM saves them: files of parameters, and constants of a text's metadata.
 *
 *     params   0xF7E58D4F05049CB7, 0, count, names.., count, arrays..       numbers of 64 bits
 *     array    0xDD5E40F096B4A13F, 0, device (2 x 32), rank (32), type (8, 8, 16), dimensions,
 * bytes, cells name     length (64), letters */
#include "base/json.h"
#include "frontends/tvm/tvm.h"

#include <stdlib.h>
#include <string.h>

#define PARAMS_MAGIC 0xF7E58D4F05049CB7u
#define ARRAY_MAGIC 0xDD5E40F096B4A13Fu

bool tv_dtype(const char *name, DType *out)
{
    static const struct {
        const char *name;
        DType       t;
    } types[] = {{"float32", {2, 32, 1}},  {"float64", {2, 64, 1}}, {"float16", {2, 16, 1}},
                 {"bfloat16", {4, 16, 1}}, {"int8", {0, 8, 1}},     {"int16", {0, 16, 1}},
                 {"int32", {0, 32, 1}},    {"int64", {0, 64, 1}},   {"uint8", {1, 8, 1}},
                 {"uint16", {1, 16, 1}},   {"uint32", {1, 32, 1}},  {"uint64", {1, 64, 1}},
                 {"bool", {6, 8, 1}}};

    for (uint32_t i = 0; i < COUNT(types); i++)
        if (!strcmp(types[i].name, name)) {
            *out = types[i].t;
            return true;
        }
    return false;
}

static const Const *read_array(Ctx *c, Loc loc, const char *name, Reader *r)
{
    uint64_t magic = read_u64(r), bytes;
    uint32_t rank;
    DType    t;
    int64_t  dims[MAX_RANK], cells = 1;
    Bytes    data;

    read_u64(r);
    read_u64(r); /* the device that it was on */
    rank = read_u32(r);
    t.code = read_u8(r);
    t.bits = read_u8(r);
    t.lanes = read_u16(r);
    if (r->bad || magic != ARRAY_MAGIC) {
        error_at(c, E_PARSE_MODEL, loc, "'%s' is no array of TVM", name);
        return NULL;
    }
    if (t.code == DT_UINT && t.bits == 1)
        t = DT_BOOL;
    if (rank > MAX_RANK || t.lanes != 1 || !dtype_known(t) || dtype_stored(t)) {
        error_at(c, E_UNSUPPORTED, loc, "'%s' has %u dimensions, type %u of %u bits and %u lanes",
                 name, rank, t.code, t.bits, t.lanes);
        return NULL;
    }
    for (uint32_t i = 0; i < rank; i++) {
        uint64_t d = read_u64(r);

        if (d > (uint64_t)MAX_ELEMS || !checked_mul(cells, (int64_t)d, &cells) ||
            cells > MAX_ELEMS) {
            error_at(c, E_PARSE_MODEL, loc, "'%s' is too large", name);
            return NULL;
        }
        dims[i] = (int64_t)d;
    }
    bytes = read_u64(r);
    if (r->bad || bytes != (uint64_t)cells * dtype_bytes(t) || bytes > reader_left(r)) {
        error_at(c, E_PARSE_MODEL, loc, "the cells of '%s' are not as many as its shape says",
                 name);
        return NULL;
    }
    data = read_bytes(r, bytes);
    if ((uintptr_t)data.at % dtype_bytes(t))
        data.at = arena_dup(c->arena, data.at, data.n);
    return const_new(c, name, type_tensor_i64(c, t, rank, dims), data);
}

bool tv_is_params(Bytes file)
{
    Reader r = reader(file);

    return read_u64(&r) == PARAMS_MAGIC && !r.bad;
}

bool tv_read_params(Ctx *c, const char *path, Bytes file, TvParams *out)
{
    Loc      loc = {.file = path};
    Reader   r = reader(file);
    uint64_t magic = read_u64(&r), count;
    TextList names = {0};

    *out = (TvParams){.path = path, .index = map_new(c->arena)};
    read_u64(&r);
    count = read_u64(&r);
    if (r.bad || magic != PARAMS_MAGIC)
        return error_at(c, E_PARSE_MODEL, loc, "these are no parameters of TVM");
    if (count > reader_left(&r) / 8)
        return error_at(c, E_PARSE_MODEL, loc, "%llu names in %zu bytes", (unsigned long long)count,
                        reader_left(&r));
    for (uint64_t i = 0; i < count; i++) {
        Bytes text = read_bytes(&r, read_u64(&r));

        if (r.bad || memchr(text.at, 0, text.n))
            return error_at(c, E_PARSE_MODEL, loc, "name %llu is not in the file",
                            (unsigned long long)i);
        vec_push(c->arena, &names, intern_n(c->strings, (const char *)text.at, text.n));
    }
    if (read_u64(&r) != count || r.bad)
        return error_at(c, E_PARSE_MODEL, loc, "not as many arrays as names");
    out->n = (uint32_t)count;
    out->at = NEW_ARRAY(c->arena, const Const *, count + 1);
    for (uint32_t i = 0; i < out->n; i++) {
        if (map_get(out->index, PTR_KEY(names.at[i])))
            return error_at(c, E_PARSE_MODEL, loc, "'%s' is there twice", names.at[i]);
        if (!(out->at[i] = read_array(c, loc, names.at[i], &r)))
            return false;
        map_put(out->index, PTR_KEY(names.at[i]), (void *)(uintptr_t)out->at[i]);
    }
    return true;
}

/* ---- metadata --------------------------------------------------------------------------------------- */

typedef struct {
    Ctx          *c;
    Loc           loc;
    const json_t *nodes, *arrays;
} Meta;

static bool bad(const Meta *m, const char *what)
{
    return error_at(m->c, E_PARSE_MODEL, m->loc, "the metadata: %s", what);
}

/* base64; false: it is none. */
static bool decode(Arena *a, const char *text, Bytes *out)
{
    size_t   n = strlen(text), at = 0;
    uint8_t *to = arena_alloc(a, n / 4 * 3 + 8);
    uint32_t bits = 0, have = 0;

    while (n && text[n - 1] == '=')
        n--;
    for (size_t i = 0; i < n; i++) {
        static const char letters[] =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const char *p = strchr(letters, text[i]);

        if (text[i] == '\n')
            continue;
        if (!p)
            return false;
        bits = bits << 6 | (uint32_t)(p - letters);
        if ((have += 6) >= 8)
            to[at++] = (uint8_t)(bits >> (have -= 8));
    }
    *out = (Bytes){to, at};
    return true;
}

static const json_t *node(const Meta *m, const json_t *index)
{
    const char *text = json_string_value(index);
    json_int_t  i = text                     ? strtoll(text, NULL, 10)
                    : json_is_integer(index) ? json_integer_value(index)
                                             : -1;

    return i < 0 ? NULL : json_array_get(m->nodes, (size_t)i);
}

static bool is_kind(const json_t *n, const char *kind)
{
    const char *key = json_string_value(json_object_get(n, "type_key"));

    return key && !strcmp(key, kind);
}

/* A text of base64 as an array; NULL: it is none. */
static const Const *read_encoded(Ctx *c, Loc loc, const char *name, const json_t *text)
{
    Bytes  data;
    Reader r;

    if (!json_is_string(text) || !decode(c->arena, json_string_value(text), &data))
        return error_at(c, E_PARSE_MODEL, loc, "'%s' is no array in base64", name);
    r = reader(data);
    return read_array(c, loc, name, &r);
}

bool tv_read_arrays(Ctx *c, const char *path, const json_t *list, uint32_t *n, const Const ***out)
{
    *n = (uint32_t)json_array_size(list);
    *out = NEW_ARRAY(c->arena, const Const *, *n + 1);
    for (uint32_t i = 0; i < *n; i++)
        if (!((*out)[i] =
                  read_encoded(c, (Loc){.file = path}, intern_printf(c->strings, "constant%u", i),
                               json_array_get(list, i))))
            return false;
    return true;
}

static const Const *read_constant(Meta *m, const json_t *n, uint32_t i)
{
    const char *at = json_string_value(json_object_get(json_object_get(n, "attrs"), "data"));

    if (!is_kind(n, "relay.Constant") || !at) {
        error_at(m->c, E_PARSE_MODEL, m->loc, "the metadata: constant %u has no value", i);
        return NULL;
    }
    return read_encoded(m->c, m->loc, intern_printf(m->c->strings, "constant%u", i),
                        json_array_get(m->arrays, (size_t)strtoull(at, NULL, 10)));
}

static bool read_constants(Meta *m, const json_t *list, uint32_t *n, const Const ***out)
{
    const json_t *data = json_object_get(list, "data");

    if (!is_kind(list, "Array") || !json_is_array(data))
        return bad(m, "'relay.Constant' is no list");
    *n = (uint32_t)json_array_size(data);
    *out = NEW_ARRAY(m->c->arena, const Const *, *n + 1);
    for (uint32_t i = 0; i < *n; i++)
        if (!((*out)[i] = read_constant(m, node(m, json_array_get(data, i)), i)))
            return false;
    return true;
}

static bool read_root(Meta *m, const json_t *top, uint32_t *n, const Const ***out)
{
    const json_t *root = node(m, json_object_get(top, "root"));
    const json_t *keys = json_object_get(root, "keys"), *data = json_object_get(root, "data");

    if (!json_is_array(m->nodes) || !json_is_array(keys) || !json_is_array(data))
        return bad(m, "it is no map");
    for (size_t i = 0; i < json_array_size(keys); i++) {
        const char *key = json_string_value(json_array_get(keys, i));

        if (key && !strcmp(key, "relay.Constant"))
            return read_constants(m, node(m, json_array_get(data, i)), n, out);
    }
    return true;
}

bool tv_read_metadata(Ctx *c, const char *path, Bytes json, uint32_t *n, const Const ***out)
{
    Meta    m = {.c = c, .loc = {.file = path}};
    json_t *top = json_read(json, NULL);
    bool    ok;

    if (!top)
        return bad(&m, "it is no JSON, or too long: constants are better parameters of @main");
    m.nodes = json_object_get(top, "nodes");
    m.arrays = json_object_get(top, "b64ndarrays");
    ok = read_root(&m, top, n, out);
    json_decref(top);
    return ok;
}
