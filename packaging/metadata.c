/* metadata.c: the metadata of a product, read again.
 *
 * Packing and refitting start from files, not from a compile; what they must know of a product is
 * in its JSON.  Text is bounded and every key is checked for its type, as files may come from
 * anywhere.
 */
#include "packaging/packaging.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TENSORS = 4096, MAX_NDIM = 32, MAX_KERNELS = 1 << 20 };

typedef struct {
    Diags      *d;
    Arena      *a;
    const char *file;
    bool        ok;
} Read;

static void wrong(Read *r, const char *key)
{
    if (r->ok)
        diag_error(r->d, E_PACK, (Loc){.file = r->file},
                   "this is not the metadata of a model: '%s' is missing or wrong", key);
    r->ok = false;
}

static const cJSON *get(const cJSON *o, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(o, key);
}

static const char *text_of(Read *r, const cJSON *o, const char *key)
{
    const cJSON *v = get(o, key);

    if (!cJSON_IsString(v)) {
        wrong(r, key);
        return "";
    }
    return arena_printf(r->a, "%s", v->valuestring);
}

static uint64_t number_of(Read *r, const cJSON *o, const char *key)
{
    const cJSON *v = get(o, key);

    if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0) || v->valuedouble > 9e15) {
        wrong(r, key);
        return 0;
    }
    return (uint64_t)v->valuedouble;
}

static uint64_t number_if(const cJSON *o, const char *key)
{
    const cJSON *v = get(o, key);

    return cJSON_IsNumber(v) && v->valuedouble >= 0 && v->valuedouble <= 9e15
               ? (uint64_t)v->valuedouble
               : 0;
}

static Sha256 sha_of(Read *r, const cJSON *o, const char *key)
{
    const char *hex = text_of(r, o, key);
    Sha256      sha = {{0}};

    if (strlen(hex) != 64 || strspn(hex, "0123456789abcdef") != 64) {
        wrong(r, key);
        return sha;
    }
    for (int i = 0; i < 32; i++) {
        char byte[3] = {hex[2 * i], hex[2 * i + 1], 0};

        sha.b[i] = (uint8_t)strtoul(byte, NULL, 16);
    }
    return sha;
}

static void dtype_of(Read *r, const cJSON *o, TensorDesc *t)
{
    static const struct {
        const char *base;
        uint8_t     code;
    } rows[] = {{"int", 0}, {"uint", 1}, {"float", 2}, {"bfloat", 4}};
    const char *text = text_of(r, o, "dtype");

    t->lanes = 1;
    if (strcmp(text, "bool") == 0) {
        t->code = 6;
        t->bits = 8;
        return;
    }
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t n = strlen(rows[i].base);

        if (str_starts(text, rows[i].base) && text[n] >= '1' && text[n] <= '9') {
            t->code = rows[i].code;
            t->bits = (uint8_t)atoi(text + n);
            return;
        }
    }
    wrong(r, "dtype");
}

static TensorDesc *tensors_of(Read *r, const cJSON *o, const char *key, uint32_t *n)
{
    const cJSON *list = get(o, key), *item;
    TensorDesc  *out;
    int          count = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : -1;

    *n = 0;
    if (count < 0 || count > MAX_TENSORS) {
        wrong(r, key);
        return NULL;
    }
    out = NEW_ARRAY(r->a, TensorDesc, count ? (size_t)count : 1);
    cJSON_ArrayForEach(item, list)
    {
        TensorDesc  *t = &out[(*n)++];
        const cJSON *dims = get(item, "dims"), *dim;
        int64_t     *values;

        t->name = text_of(r, item, "name");
        t->c_name = text_of(r, item, "c_name");
        t->bytes = number_of(r, item, "bytes");
        t->align = (uint32_t)number_of(r, item, "align");
        t->layout = cJSON_IsString(get(item, "layout")) ? text_of(r, item, "layout") : NULL;
        t->quantized = cJSON_IsNumber(get(item, "scale"));
        if (t->quantized) {
            const cJSON *zero = get(item, "zero_point");

            t->scale = get(item, "scale")->valuedouble;
            t->zero_point = cJSON_IsNumber(zero) ? zero->valueint : 0;
        }
        if (get(item, "state_input"))
            t->state = 1 + (uint32_t)number_of(r, item, "state_input");
        dtype_of(r, item, t);
        if (!cJSON_IsArray(dims) || cJSON_GetArraySize(dims) > MAX_NDIM) {
            wrong(r, "dims");
            return out;
        }
        values = NEW_ARRAY(r->a, int64_t, MAX_NDIM);
        cJSON_ArrayForEach(dim, dims)
        {
            if (!cJSON_IsNumber(dim) || dim->valuedouble < -1 || dim->valuedouble > 9e15)
                wrong(r, "dims");
            else
                values[t->ndim++] = (int64_t)dim->valuedouble;
        }
        t->dims = values;
    }
    return out;
}

/* Absent in metadata of older compilers: such products cannot be refitted. */
static void read_plan(Read *r, const cJSON *plan, ModelDesc *out)
{
    const cJSON *list = get(plan, "names"), *name;
    const char **names;
    int          n = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;

    if (!plan || n > MAX_KERNELS)
        return;
    out->plan_sha = sha_of(r, plan, "sha256");
    out->level = (uint32_t)number_of(r, plan, "level");
    out->kernel_names = names = NEW_ARRAY(r->a, const char *, n ? (size_t)n : 1);
    cJSON_ArrayForEach(name, list) if (cJSON_IsString(name)) names[out->nkernel_names++] =
        arena_printf(r->a, "%s", name->valuestring);
}

/* Absent in metadata of older compilers. */
static void read_operators(Read *r, const cJSON *root, ModelDesc *out)
{
    const cJSON *list = get(root, "operators"), *item;
    int          n = cJSON_IsObject(list) ? cJSON_GetArraySize(list) : 0;
    OpCount     *ops = NEW_ARRAY(r->a, OpCount, n ? (size_t)n : 1);

    cJSON_ArrayForEach(item, list) if (cJSON_IsNumber(item) && item->valueint > 0)
        ops[out->nops++] =
            (OpCount){arena_printf(r->a, "%s", item->string), (uint32_t)item->valueint};
    out->ops = ops;
}

static WeightsMode mode_of(const char *name)
{
    WeightsMode m = WEIGHTS_EMBED;

    while (m < WEIGHTS_MODES && strcmp(weights_mode_names[m], name) != 0)
        m++;
    return m < WEIGHTS_MODES ? m : WEIGHTS_EMBED;
}

static void read_all(Read *r, const cJSON *root, ModelDesc *out)
{
    const cJSON *arena = get(root, "arena"), *weights = get(root, "weights");

    *out = (ModelDesc){
        .entry = text_of(r, root, "entry"),
        .model = text_of(r, root, "model"),
        .arena_shared = number_of(r, arena, "shared"),
        .arena_private = number_of(r, arena, "private"),
        .arena_align = (uint32_t)number_of(r, arena, "align"),
        .arena_floor = number_if(arena, "floor"),
        .weights_bytes = number_of(r, weights, "bytes"),
        .weights_sha = sha_of(r, weights, "sha256"),
        .weights_mode = mode_of(text_of(r, weights, "mode")),
        .model_sha = sha_of(r, root, "model_sha256"),
        .build_id = sha_of(r, root, "build_id"),
        .header = text_of(r, root, "header"),
        .triple = text_of(r, root, "triple"),
        .targets = text_of(r, root, "targets"),
        .toolchain = text_of(r, root, "toolchain"),
        .macs = (int64_t)number_if(root, "macs"),
        .kernels = (uint32_t)number_if(get(root, "kernels"), "count"),
        .kernels_tuned = (uint32_t)number_if(get(root, "kernels"), "tuned"),
    };
    if (out->weights_mode == WEIGHTS_SECTION)
        out->weights_section = text_of(r, weights, "section");
    out->abi = (uint32_t)number_if(root, "abi");
    read_plan(r, get(root, "plan"), out);
    read_operators(r, root, out);
    out->in = tensors_of(r, root, "inputs", &out->nin);
    out->out = tensors_of(r, root, "outputs", &out->nout);
    /* these become paths, CMake and pkg-config text */
    if (r->ok && strcmp(out->entry, c_identifier(r->a, out->entry)) != 0)
        wrong(r, "entry");
    if (r->ok &&
        (strspn(out->triple, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "_-.") != strlen(out->triple) ||
         out->triple[0] == '.' || !out->triple[0]))
        wrong(r, "triple");
}

bool metadata_read(Diags *d, Arena *a, const char *file, Bytes text, ModelDesc *out)
{
    Read   r = {d, a, file, true};
    cJSON *root = text.n <= 64 << 20 ? cJSON_ParseWithLength((const char *)text.at, text.n) : NULL;

    *out = (ModelDesc){0};
    if (!root)
        return diag_error(d, E_PACK, (Loc){.file = file}, "this is not JSON");
    read_all(&r, root, out);
    cJSON_Delete(root);
    return r.ok;
}
