/* layout.c: the two historic layouts of TVM, for tools that read them.
 *
 *   Model Library Format (MLF)            what `tvmc compile` packs (TVMC)
 *     metadata.json     version 7           mod.so       the shared library
 *     codegen/host/lib/lib0.o ..            mod.json     a graph of one operator, <entry>_run
 *       (src/lib0.c of target c)
 *     codegen/host/include/net.h            mod.params   the constants
 *     parameters/net.params
 *     src/net.relay
 *
 * Parameters are TVM's list of arrays: two magic numbers, names, then for each array its device,
 * shape and bytes, all little-endian.  Our kernels want their constants packed as one block, so
 * there is one array of bytes, `<entry>_weights`.
 */
#include "packaging/packaging.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

typedef VEC(Member) Members;

enum { CPU = 1 }; /* kDLCPU */

static Bytes text_bytes(const StrBuf *s)
{
    return (Bytes){(const uint8_t *)s->at, s->n};
}

static void add(Arena *a, Members *m, const char *path, Bytes data)
{
    if (data.n)
        vec_push(a, m, ((Member){.path = path, .data = data}));
}

/* ---- parameters ---------------------------------------------------------------------------------- */

static void add_le(StrBuf *s, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        str_addc(s, (char)(value >> 8 * i));
}

/* The constants of a product: the data of its weights file, or of its object's section. */
static Bytes constants_of(Arena *a, const BundlePart *p)
{
    enum { HEADER = 64 }; /* of a weights file */
    const char *section = p->desc->weights_section
                              ? p->desc->weights_section
                              : arena_printf(a, ".rodata.%s_weights", p->desc->entry);
    Diags      *quiet = diags_new(a);
    Member     *m;
    uint32_t    n;

    if (p->weights.n > HEADER)
        return (Bytes){p->weights.at + HEADER, p->weights.n - HEADER};
    if (!p->library.n || !ar_members(quiet, a, "", p->library, &m, &n))
        return (Bytes){0};
    for (uint32_t i = 0; i < n; i++) {
        Object f;

        if (!elf_read(quiet, a, "", m[i].data, &f))
            continue;
        for (uint32_t k = 1; k < f.nsections; k++)
            if (strcmp(f.sections[k].name, section) == 0)
                return f.sections[k].data;
    }
    return (Bytes){0};
}

static Bytes params_of(Arena *a, const BundlePart *p)
{
    Bytes       data = constants_of(a, p);
    const char *name = arena_printf(a, "%s_weights", p->desc->entry);
    StrBuf      s = strbuf(a);
    uint64_t    count = data.n != 0;

    add_le(&s, UINT64_C(0xf7e58d4f05049cb7), 8); /* list of arrays */
    add_le(&s, 0, 8);
    add_le(&s, count, 8);
    if (count) {
        add_le(&s, strlen(name), 8);
        str_add(&s, name);
    }
    add_le(&s, count, 8);
    if (count) {
        add_le(&s, UINT64_C(0xdd5e40f096b4a13f), 8); /* array */
        add_le(&s, 0, 8);
        add_le(&s, CPU, 4);
        add_le(&s, 0, 4);
        add_le(&s, 1, 4); /* dimensions */
        add_le(&s, 1, 1); /* unsigned */
        add_le(&s, 8, 1);
        add_le(&s, 1, 2);
        add_le(&s, data.n, 8);
        add_le(&s, data.n, 8);
        str_addn(&s, (const char *)data.at, data.n);
    }
    return text_bytes(&s);
}

/* ---- Model Library Format ------------------------------------------------------------------------ */

static const char *mlf_dtype(Arena *a, const TensorDesc *t)
{
    static const char *const names[] = {"int", "uint", "float", "handle", "bfloat"};

    if (t->code > 6)
        return small_float_name(t->code);
    return t->code == 6 ? "bool"
                        : arena_printf(a, "%s%u", names[t->code < 5 ? t->code : 3], t->bits);
}

static uint64_t bytes_of(const TensorDesc *t, uint32_t n)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += t[i].bytes;
    return sum;
}

static void add_tensors(Arena *a, StrBuf *s, const char *key, const TensorDesc *t, uint32_t n)
{
    str_printf(s, ",\n              \"%s\": {", key);
    for (uint32_t i = 0; i < n; i++) {
        str_printf(s, "%s\n                ", i ? "," : "");
        str_add_json(s, t[i].name);
        str_printf(s, ": {\"dtype\": \"%s\", \"size\": %" PRIu64 "}", mlf_dtype(a, &t[i]),
                   t[i].bytes);
    }
    str_add(s, n ? "\n              }" : "}");
}

static void add_module(Arena *a, StrBuf *s, const ModelDesc *m, const char *time, bool first)
{
    str_printf(s,
               "%s\n    \"%s\": {\n      \"executors\": [\"aot\"],\n      \"export_datetime\": "
               "\"%s\",\n      \"memory\": {\n        \"functions\": {\n          \"main\": [\n"
               "            {\n              \"constants_size_bytes\": %" PRIu64
               ",\n              \"device\": %d",
               first ? "" : ",", m->entry, time, m->weights_bytes, CPU);
    add_tensors(a, s, "inputs", m->in, m->nin);
    str_printf(s, ",\n              \"io_size_bytes\": %" PRIu64,
               bytes_of(m->in, m->nin) + bytes_of(m->out, m->nout));
    add_tensors(a, s, "outputs", m->out, m->nout);
    str_printf(s,
               ",\n              \"workspace_size_bytes\": %" PRIu64
               "\n            }\n          ],\n          \"operator_functions\": []\n        }\n"
               "      },\n      \"model_name\": \"%s\",\n      \"style\": \"full-model\",\n"
               "      \"target\": [",
               m->arena_shared + m->arena_private, m->entry);
    str_add_json(s, m->targets);
    str_add(s, "]\n    }");
}

static Bytes mlf_metadata(Arena *a, const Bundle *b)
{
    time_t    epoch = (time_t)b->epoch;
    struct tm utc = {0};
    char      time[32];
    StrBuf    s = strbuf(a);

    gmtime_r(&epoch, &utc);
    strftime(time, sizeof time, "%Y-%m-%d %H:%M:%SZ", &utc);
    str_add(&s, "{\n  \"modules\": {");
    for (uint32_t i = 0; i < b->nparts; i++)
        add_module(a, &s, b->parts[i].desc, time, i == 0);
    str_add(&s, "\n  },\n  \"version\": 7\n}\n");
    return text_bytes(&s);
}

bool mlf_members(Diags *d, Arena *a, const Bundle *b, Member **members, uint32_t *n)
{
    Members  m = {0};
    uint32_t objects = 0, sources = 0;

    for (uint32_t i = 0; i < b->nparts; i++) {
        const BundlePart *p = &b->parts[i];
        const char       *e = p->desc->entry;
        Member           *o;
        uint32_t          count;

        for (uint32_t k = 0; k < i; k++)
            if (strcmp(b->parts[k].desc->entry, e) == 0)
                return diag_error(d, E_PACK, NO_LOC, "the layout holds '%s' once, for one triple",
                                  e);
        if (p->source.n)
            add(a, &m, arena_printf(a, "codegen/host/src/lib%u.c", sources++), p->source);
        else if (!p->library.n)
            return diag_error(d, E_PACK, NO_LOC, "the layout needs the static library of '%s'", e);
        else if (!ar_members(d, a, e, p->library, &o, &count))
            return false;
        else
            for (uint32_t k = 0; k < count; k++)
                add(a, &m, arena_printf(a, "codegen/host/lib/lib%u.o", objects++), o[k].data);
        add(a, &m, arena_printf(a, "codegen/host/include/%s.h", e), p->header);
        add(a, &m, arena_printf(a, "parameters/%s.params", e), params_of(a, p));
        add(a, &m, arena_printf(a, "src/%s.relay", e), p->relay);
    }
    add(a, &m, "codegen/host/include/tvmcc/abi.h", abi_header());
    add(a, &m, "metadata.json", mlf_metadata(a, b));
    *members = m.at;
    *n = m.n;
    return true;
}

/* ---- the package of tvmc ------------------------------------------------------------------------- */

static void add_shape(StrBuf *s, const TensorDesc *t)
{
    str_add(s, "[");
    for (uint32_t i = 0; i < t->ndim; i++)
        str_printf(s, "%s%" PRId64, i ? ", " : "", t->dims[i]);
    str_add(s, "]");
}

/* The graph executor's JSON: inputs, and one operator that is the whole model. */
static Bytes graph_json(Arena *a, const ModelDesc *m)
{
    StrBuf s = strbuf(a), shapes = strbuf(a), types = strbuf(a), storage = strbuf(a);

    str_add(&s, "{\n  \"nodes\": [");
    for (uint32_t i = 0; i < m->nin; i++) {
        str_printf(&s, "%s\n    {\"op\": \"null\", \"name\": ", i ? "," : "");
        str_add_json(&s, m->in[i].name);
        str_add(&s, ", \"inputs\": []}");
    }
    str_printf(
        &s,
        "%s\n    {\"op\": \"tvm_op\", \"name\": \"%s\", \"attrs\": {\"num_outputs\": \"%u\", "
        "\"num_inputs\": \"%u\", \"flatten_data\": \"0\", \"func_name\": \"%s_run\"}, "
        "\"inputs\": [",
        m->nin ? "," : "", m->entry, m->nout, m->nin, m->entry);
    for (uint32_t i = 0; i < m->nin; i++)
        str_printf(&s, "%s[%u, 0, 0]", i ? ", " : "", i);
    str_add(&s, "]}\n  ],\n  \"arg_nodes\": [");
    for (uint32_t i = 0; i < m->nin; i++)
        str_printf(&s, "%s%u", i ? ", " : "", i);
    str_add(&s, "],\n  \"heads\": [");
    for (uint32_t i = 0; i < m->nout; i++)
        str_printf(&s, "%s[%u, %u, 0]", i ? ", " : "", m->nin, i);
    str_add(&s, "],\n  \"node_row_ptr\": [");
    for (uint32_t i = 0; i <= m->nin; i++)
        str_printf(&s, "%u, ", i);
    str_printf(&s, "%u],\n", m->nin + m->nout);
    for (uint32_t i = 0; i < m->nin + m->nout; i++) {
        const TensorDesc *t = i < m->nin ? &m->in[i] : &m->out[i - m->nin];

        str_add(&shapes, i ? ", " : "");
        add_shape(&shapes, t);
        str_printf(&types, "%s\"%s\"", i ? ", " : "", mlf_dtype(a, t));
        str_printf(&storage, "%s%u", i ? ", " : "", i);
    }
    str_printf(&s,
               "  \"attrs\": {\n    \"dltype\": [\"list_str\", [%s]],\n    \"shape\": "
               "[\"list_shape\", [%s]],\n    \"storage_id\": [\"list_int\", [%s]]\n  }\n}\n",
               types.at, shapes.at, storage.at);
    return text_bytes(&s);
}

bool tvmc_members(Diags *d, Arena *a, const Bundle *b, Member **members, uint32_t *n)
{
    Members           m = {0};
    const BundlePart *p = b->parts;

    if (b->nparts != 1)
        return diag_error(d, E_PACK, NO_LOC, "the layout holds one model, not %u", b->nparts);
    if (!p->shared.n)
        return diag_error(d, E_PACK, NO_LOC, "the layout needs the shared library of '%s'",
                          p->desc->entry);
    add(a, &m, "mod.json", graph_json(a, p->desc));
    add(a, &m, "mod.params", params_of(a, p));
    vec_push(a, &m, ((Member){.path = "mod.so", .data = p->shared, .executable = true}));
    *members = m.at;
    *n = m.n;
    return true;
}

/* ---- all of them ----------------------------------------------------------------------------------- */

const LayoutRow layout_table[LAYOUTS] = {
    {"bundle", bundle_members}, {"mlf", mlf_members}, {"tvmc", tvmc_members}};

const LayoutRow *layout_find(Diags *d, const char *option, const char *name)
{
    const char *names[LAYOUTS], *closest;

    for (uint32_t i = 0; i < LAYOUTS; i++) {
        if (strcmp(layout_table[i].name, name) == 0)
            return &layout_table[i];
        names[i] = layout_table[i].name;
    }
    diag_error(d, E_USAGE, NO_LOC, "'%s' takes no '%s'", option, name);
    if ((closest = str_closest(name, names, LAYOUTS)))
        diag_hint(d, "did you mean '%s'?", closest);
    return NULL;
}
