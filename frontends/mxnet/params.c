/* The values: a list of arrays with their names, each a header and its cells.
 *
 *     0x112, 0, count, arrays.., count, names..          numbers of 64 bits
 *     0xF993FAC9, storage, rank, dimensions (64 bits each), device (two numbers), type, cells
 *
 * Arrays of the first versions have no number before them (and dimensions of 32 bits), those of the
 * second no storage.  Names are "arg:fc_weight" and "aux:bn_moving_mean". */
#include "frontends/mxnet/mxnet.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

enum { LIST_MAGIC = 0x112, MAX_DIMS = 32 };
#define MAGIC_V1 0xF993FAC8u /* no storage */
#define MAGIC_V2 0xF993FAC9u
#define MAGIC_V3 0xF993FACAu /* scalars are arrays, too */

bool mx_dtype(int64_t number, DType *out)
{
    static const DType types[] = {DT_F32,  DT_F64, DT_F16, DT_U8,  DT_I32, DT_I8,  DT_I64,
                                  DT_BOOL, DT_I16, DT_U16, DT_U32, DT_U64, DT_BF16};

    if (number < 0 || number >= (int64_t)COUNT(types))
        return false;
    *out = types[number];
    return true;
}

bool mx_dtype_name(const char *name, DType *out)
{
    static const char *const names[] = {"float32", "float64", "float16", "uint8", "int32",
                                        "int8",    "int64",   "bool",    "int16", "uint16",
                                        "uint32",  "uint64",  "bfloat16"};

    for (uint32_t i = 0; i < COUNT(names); i++)
        if (!strcmp(names[i], name))
            return mx_dtype(i, out);
    return false;
}

/* ---- arrays ----------------------------------------------------------------------------------------- */

typedef struct {
    Ctx     *c;
    Loc      loc;
    Reader   r;
    uint32_t at; /* which array */
} Reading;

static bool bad(const Reading *r, const char *what)
{
    return error_at(r->c, E_PARSE_MODEL, r->loc, "array %u: %s", r->at, what);
}

static bool read_dims(Reading *r, uint32_t magic, MxArray *out)
{
    bool     legacy = magic != MAGIC_V1 && magic != MAGIC_V2 && magic != MAGIC_V3;
    uint32_t rank = legacy ? magic : read_u32(&r->r);
    int64_t *dims;

    if (magic == MAGIC_V3 && rank == UINT32_MAX)
        return bad(r, "it has no shape");
    if (rank > MAX_DIMS)
        return bad(r, "it is no array of MXNet");
    out->rank = rank;
    out->dims = dims = NEW_ARRAY(r->c->arena, int64_t, rank + 1);
    for (uint32_t i = 0; i < rank; i++) {
        uint64_t d = legacy ? read_u32(&r->r) : read_u64(&r->r);

        if (d > (uint64_t)MAX_ELEMS)
            return bad(r, "a dimension is too large");
        dims[i] = (int64_t)d;
    }
    return true;
}

static bool read_cells(Reading *r, MxArray *out)
{
    int64_t cells = 1, bytes;

    read_u32(&r->r); /* the device that it was on */
    read_u32(&r->r);
    if (!mx_dtype((int32_t)read_u32(&r->r), &out->dtype))
        return bad(r, r->r.bad ? "the file ends" : "its type is not known");
    for (uint32_t i = 0; i < out->rank; i++)
        if (!checked_mul(cells, out->dims[i], &cells) || cells > MAX_ELEMS)
            return bad(r, "it is too large");
    bytes = cells * (int64_t)dtype_bytes(out->dtype);
    if ((uint64_t)bytes > reader_left(&r->r))
        return bad(r, "the file ends");
    out->data = read_bytes(&r->r, (uint64_t)bytes);
    return true;
}

static bool read_array(Reading *r, MxArray *out)
{
    uint32_t magic = read_u32(&r->r);

    if (magic == MAGIC_V2 || magic == MAGIC_V3) {
        int32_t storage = (int32_t)read_u32(&r->r);

        if (storage != 0)
            return error_at(r->c, E_UNSUPPORTED, r->loc,
                            "array %u is sparse: save it as a dense one", r->at);
    }
    if (!read_dims(r, magic, out))
        return false;
    if (r->r.bad)
        return bad(r, "the file ends");
    /* Without dimensions, there was nothing to save in the older forms. */
    return (out->rank == 0 && magic != MAGIC_V3) || read_cells(r, out);
}

static const char *read_name(Reading *r)
{
    uint64_t    n = read_u64(&r->r);
    Bytes       text = read_bytes(&r->r, n);
    const char *name;

    if (r->r.bad || memchr(text.at, 0, text.n))
        return NULL;
    name = intern_n(r->c->strings, (const char *)text.at, text.n);
    return str_starts(name, "arg:") || str_starts(name, "aux:") ? intern(r->c->strings, name + 4)
                                                                : name;
}

static bool read_list(Reading *r, MxParams *out)
{
    uint64_t magic = read_u64(&r->r), count;

    read_u64(&r->r);
    count = read_u64(&r->r);
    if (r->r.bad || magic != LIST_MAGIC)
        return error_at(r->c, E_PARSE_MODEL, r->loc, "these are no values of MXNet");
    if (count > reader_left(&r->r) / 8)
        return error_at(r->c, E_PARSE_MODEL, r->loc, "%llu arrays in %zu bytes",
                        (unsigned long long)count, reader_left(&r->r));
    out->n = (uint32_t)count;
    out->at = NEW_ARRAY(r->c->arena, MxArray, out->n + 1);
    for (r->at = 0; r->at < out->n; r->at++)
        if (!read_array(r, &out->at[r->at]))
            return false;
    count = read_u64(&r->r);
    if (r->r.bad || count != out->n)
        return error_at(r->c, E_PARSE_MODEL, r->loc, "%llu names of %u arrays",
                        (unsigned long long)count, out->n);
    for (r->at = 0; r->at < out->n; r->at++) {
        if (!(out->at[r->at].name = read_name(r)))
            return bad(r, "its name is not in the file");
        map_put(out->index, PTR_KEY(out->at[r->at].name), &out->at[r->at]);
    }
    return true;
}

/* ---- where they are --------------------------------------------------------------------------------- */

/* The number of "net-0012.params" for the prefix "net-"; -1: it is another file. */
static int64_t epoch_of(const char *file, const char *prefix)
{
    const char *at = file + strlen(prefix);
    size_t      digits;
    int64_t     epoch = 0;

    if (!str_starts(file, prefix))
        return -1;
    digits = strspn(at, "0123456789");
    if (digits < 1 || digits > 9 || strcmp(at + digits, ".params") != 0)
        return -1;
    for (size_t i = 0; i < digits; i++)
        epoch = epoch * 10 + (at[i] - '0');
    return epoch;
}

/* net-symbol.json has net-0000.params, or that of another epoch: the greatest; net.json net.params.
 */
static const char *beside(Ctx *c, const char *path)
{
    const char    *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int            folder = (int)(name - path);
    size_t         n = strlen(name);
    const char    *prefix, *best = NULL;
    int64_t        newest = -1;
    DIR           *list;
    struct dirent *e;

    n -= str_ends(name, "-symbol.json") ? 12 : str_ends(name, ".json") ? 5 : 0;
    prefix = arena_printf(c->arena, "%.*s-", (int)n, name);
    list = opendir(folder ? arena_printf(c->arena, "%.*s", folder, path) : ".");
    while (list && (e = readdir(list))) {
        int64_t epoch = epoch_of(e->d_name, prefix);

        if (epoch > newest) {
            newest = epoch;
            best = intern_printf(c->strings, "%.*s%s", folder, path, e->d_name);
        }
    }
    if (list)
        closedir(list);
    if (!best) {
        best = intern_printf(c->strings, "%.*s%.*s.params", folder, path, (int)n, name);
        best = access(best, F_OK) ? NULL : best;
    }
    return best;
}

bool mx_open_params(Ctx *c, const char *symbol, const char *given, ImportFiles *files,
                    MxParams *out)
{
    Reading r = {.c = c};
    Bytes   file;

    *out = (MxParams){.index = map_new(c->arena)};
    out->path = given ? intern(c->strings, given) : beside(c, symbol);
    if (!out->path)
        return true;
    if (!file_map(c->diags, out->path, &file))
        return false;
    vec_push(c->arena, files, out->path);
    r.loc = (Loc){.file = out->path};
    r.r = reader(file);
    return read_list(&r, out);
}

const MxArray *mx_param(const MxParams *p, const char *name)
{
    return map_get(p->index, PTR_KEY(name));
}
