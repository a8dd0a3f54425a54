/* metadata.c: the metadata of a product, read again.
 *
 * Packing and refitting start from files, not from a compile; what they must know of a product is
 * in its JSON.  Text is bounded and every key is checked for its type, as files may come from
 * anywhere.
 */
#include "base/json.h"
#include "packaging/packaging.h"

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

static json_t *get(json_t *o, const char *key)
{
    return json_object_get(o, key);
}

static const char *text_of(Read *r, json_t *o, const char *key)
{
    json_t *v = get(o, key);

    if (!json_is_string(v)) {
        wrong(r, key);
        return "";
    }
    return arena_printf(r->a, "%s", json_string_value(v));
}

static uint64_t number_of(Read *r, json_t *o, const char *key)
{
    json_t *v = get(o, key);

    if (!json_is_number(v) || !(json_number_value(v) >= 0) || json_number_value(v) > 9e15) {
        wrong(r, key);
        return 0;
    }
    return (uint64_t)json_number_value(v);
}

static uint64_t number_if(json_t *o, const char *key)
{
    json_t *v = get(o, key);

    return json_is_number(v) && json_number_value(v) >= 0 && json_number_value(v) <= 9e15
               ? (uint64_t)json_number_value(v)
               : 0;
}

/* The nearest int; 0 of what is no number. */
static int to_int(const json_t *v)
{
    double x = json_number_value(v);

    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int)x;
}

static Sha256 sha_of(Read *r, json_t *o, const char *key)
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

static void dtype_of(Read *r, json_t *o, TensorDesc *t)
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
    for (uint8_t code = TVMCC_FLOAT8_E4M3FN; code <= TVMCC_FLOAT4_E2M1FN; code++)
        if (!strcmp(text, small_float_name(code))) {
            t->code = code;
            t->bits = code == TVMCC_FLOAT4_E2M1FN ? 4 : 8;
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

static TensorDesc *tensors_of(Read *r, json_t *o, const char *key, uint32_t *n)
{
    json_t     *list = get(o, key), *item;
    TensorDesc *out;
    size_t      i, k, count = json_array_size(list);

    *n = 0;
    if (!json_is_array(list) || count > MAX_TENSORS) {
        wrong(r, key);
        return NULL;
    }
    out = NEW_ARRAY(r->a, TensorDesc, count ? count : 1);
    json_array_foreach(list, i, item)
    {
        TensorDesc *t = &out[(*n)++];
        json_t     *dims = get(item, "dims"), *dim;
        int64_t    *values;

        t->name = text_of(r, item, "name");
        t->c_name = text_of(r, item, "c_name");
        t->bytes = number_of(r, item, "bytes");
        t->align = (uint32_t)number_of(r, item, "align");
        t->layout = json_is_string(get(item, "layout")) ? text_of(r, item, "layout") : NULL;
        t->quantized = json_is_number(get(item, "scale"));
        if (t->quantized) {
            json_t *zero = get(item, "zero_point");

            t->scale = json_number_value(get(item, "scale"));
            t->zero_point = to_int(zero);
        }
        if (get(item, "state_input"))
            t->state = 1 + (uint32_t)number_of(r, item, "state_input");
        dtype_of(r, item, t);
        if (!json_is_array(dims) || json_array_size(dims) > MAX_NDIM) {
            wrong(r, "dims");
            return out;
        }
        values = NEW_ARRAY(r->a, int64_t, MAX_NDIM);
        json_array_foreach(dims, k, dim)
        {
            if (!json_is_number(dim) || json_number_value(dim) < -1 ||
                json_number_value(dim) > 9e15)
                wrong(r, "dims");
            else
                values[t->ndim++] = (int64_t)json_number_value(dim);
        }
        t->dims = values;
    }
    return out;
}

/* Absent in metadata of older compilers: such products cannot be refitted. */
static void read_plan(Read *r, json_t *plan, ModelDesc *out)
{
    json_t      *list = get(plan, "names"), *name;
    const char **names;
    size_t       i, n = json_array_size(list);

    if (!plan || n > MAX_KERNELS)
        return;
    out->plan_sha = sha_of(r, plan, "sha256");
    out->level = (uint32_t)number_of(r, plan, "level");
    out->kernel_names = names = NEW_ARRAY(r->a, const char *, n ? n : 1);
    json_array_foreach(list, i, name)
    {
        if (json_is_string(name))
            names[out->nkernel_names++] = arena_printf(r->a, "%s", json_string_value(name));
    }
}

/* Absent in metadata of older compilers, and of products with alternatives. */
static void read_steps(Read *r, json_t *root, ModelDesc *out)
{
    json_t   *list = get(root, "steps"), *item;
    size_t    i, n = json_array_size(list);
    StepDesc *steps = NEW_ARRAY(r->a, StepDesc, n ? n : 1);

    if (n > MAX_KERNELS)
        return;
    json_array_foreach(list, i, item)
    {
        StepDesc   *s = &steps[out->nsteps++];
        const char *kind = json_string_value(get(item, "kind"));

        s->kernel = text_of(r, item, "kernel");
        s->known = get(item, "macs") != NULL;
        s->calls = (uint32_t)number_if(item, "calls");
        s->macs = number_if(item, "macs");
        s->bytes = number_if(item, "bytes");
        for (WorkKind k = WORK_OTHER; kind && k < WORK_KINDS; k++)
            if (strcmp(kind, work_kind_names[k]) == 0)
                s->kind = k;
    }
    out->steps = steps;
}

/* Absent in metadata of older compilers. */
static void read_operators(Read *r, json_t *root, ModelDesc *out)
{
    json_t     *list = get(root, "operators"), *item;
    const char *key;
    size_t      n = json_object_size(list);
    OpCount    *ops = NEW_ARRAY(r->a, OpCount, n ? n : 1);

    json_object_foreach(list, key, item)
    {
        if (to_int(item) > 0)
            ops[out->nops++] = (OpCount){arena_printf(r->a, "%s", key), (uint32_t)to_int(item)};
    }
    out->ops = ops;
}

static WeightsMode mode_of(const char *name)
{
    WeightsMode m = WEIGHTS_EMBED;

    while (m < WEIGHTS_MODES && strcmp(weights_mode_names[m], name) != 0)
        m++;
    return m < WEIGHTS_MODES ? m : WEIGHTS_EMBED;
}

static void read_all(Read *r, json_t *root, ModelDesc *out)
{
    json_t *arena = get(root, "arena"), *weights = get(root, "weights");

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
    if (get(root, "machine"))
        out->machine = text_of(r, root, "machine");
    read_plan(r, get(root, "plan"), out);
    read_operators(r, root, out);
    read_steps(r, root, out);
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
    Read    r = {d, a, file, true};
    json_t *root = json_read(text, NULL);

    *out = (ModelDesc){0};
    if (!root)
        return diag_error(d, E_PACK, (Loc){.file = file}, "this is not JSON");
    read_all(&r, root, out);
    json_decref(root);
    return r.ok;
}
