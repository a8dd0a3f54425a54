/* The weights: a header, then the floats of one layer after another, without names or sizes.
 *
 * The header is three numbers of 32 bits, version and revision, and how many pictures were seen, of
 * 64 bits from version 0.2 on.  Versions above 1000 mean that matrices are stored transposed. */
#include "frontends/darknet/darknet.h"

#include <string.h>
#include <unistd.h>

static uint32_t u32_at(Bytes file, size_t at)
{
    const uint8_t *p = file.at + at;

    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static bool read_header(DarknetImport *im, Bytes file)
{
    Loc      loc = {.file = im->weights_path};
    int32_t  major, minor;
    uint32_t size;

    if (file.n < 16)
        return error_at(im->c, E_PARSE_MODEL, loc, "%zu bytes are no weights of Darknet", file.n);
    major = (int32_t)u32_at(file, 0);
    minor = (int32_t)u32_at(file, 4);
    if (major < 0 || minor < 0 || major > 100000 || minor > 100000)
        return error_at(im->c, E_PARSE_MODEL, loc,
                        "no weights of Darknet: they would be of version %d.%d", major, minor);
    size = major * 10 + minor >= 2 ? 20 : 16;
    im->transposed = major > 1000 || minor > 1000;
    im->forked = u32_at(file, 8) >= 5;
    if (file.n < size || (file.n - size) % sizeof(float))
        return error_at(im->c, E_PARSE_MODEL, loc, "its %zu bytes are no header and whole floats",
                        file.n);
    im->weights = (Bytes){file.at + size, file.n - size};
    return true;
}

/* net.cfg has net.weights. */
static const char *beside(Ctx *c, const char *path)
{
    size_t n = strlen(path) - (str_ends(path, ".cfg") ? 4 : 0);

    return intern_printf(c->strings, "%.*s.weights", (int)n, path);
}

bool darknet_open_weights(DarknetImport *im, const char *given, ImportFiles *files)
{
    Bytes file;

    im->weights_path = given ? intern(im->c->strings, given) : beside(im->c, im->path);
    if (!given && access(im->weights_path, F_OK)) {
        error_at(im->c, E_IMPORT, ((Loc){.file = im->path}), "there are no weights '%s'",
                 im->weights_path);
        diag_hint(im->c->diags, "--weights names them");
        return false;
    }
    if (!file_map(im->c->diags, im->weights_path, &file))
        return false;
    vec_push(im->c->arena, files, im->weights_path);
    return read_header(im, file);
}

static bool take(DarknetNode *n, const char *role, int64_t count, Bytes *out)
{
    DarknetImport *im = n->im;
    int64_t        bytes;

    if (!checked_mul(count, (int64_t)sizeof(float), &bytes) || bytes < 0 ||
        (uint64_t)bytes > im->weights.n) {
        darknet_error(n, E_IMPORT, "its %s are %lld floats, but '%s' has only %zu more", role,
                      (long long)count, im->weights_path, im->weights.n / sizeof(float));
        diag_hint(im->c->diags, "are they the weights of this network? --weights names others");
        return false;
    }
    *out = (Bytes){im->weights.at, (size_t)bytes};
    im->weights = (Bytes){im->weights.at + bytes, im->weights.n - (size_t)bytes};
    return true;
}

const Expr *darknet_weights(DarknetNode *n, const char *role, uint32_t rank, const int64_t *dims)
{
    Ctx    *c = n->b.c;
    int64_t count = 1;
    Bytes   data;

    for (uint32_t i = 0; i < rank; i++)
        if (!checked_mul(count, dims[i], &count) || count > MAX_ELEMS)
            return darknet_error(n, E_IMPORT, "its %s are too many", role);
    if (!take(n, role, count, &data))
        return NULL;
    return expr_const(c,
                      const_new(c, intern_printf(c->strings, "%s.%s", n->label, role),
                                type_tensor_i64(c, DT_F32, rank, dims), data),
                      n->b.loc);
}

const float *darknet_floats(DarknetNode *n, const char *role, int64_t count)
{
    Bytes  data;
    float *out;

    if (!take(n, role, count, &data))
        return NULL;
    out = NEW_ARRAY(n->b.c->arena, float, (size_t)count + 1);
    memcpy(out, data.at, data.n);
    return out;
}

bool darknet_check_weights(DarknetImport *im)
{
    if (!im->weights.n)
        return true;
    error_at(im->c, E_IMPORT, ((Loc){.file = im->path}),
             "'%s' has %zu floats more than the network takes", im->weights_path,
             im->weights.n / sizeof(float));
    diag_hint(im->c->diags, "are they the weights of this network? --weights names others");
    return false;
}
