/* header.c: the generated C header of a model, and its metadata as JSON.
 *
 * The header is all a caller needs: sizes as macros, so that memory can be static; typed pointers
 * in the order of the model; prototypes.  Names of tensors come from the model and may be anything,
 * so they are sanitised, and two that become equal are refused rather than numbered: a number would
 * change with the order of the graph.
 *
 * No value of the weights is in it, so another checkpoint compiles no caller again.  The functions
 * are renamed to names that end in a hash of all that is declared, and the object has these names
 * too (backends/llvm): what was compiled against the header of another interface does not link.
 */
#include "packaging/packaging.h"

#include <inttypes.h>
#include <string.h>

/* ---- names ------------------------------------------------------------------------------------
 */

static bool name_tensors(Diags *d, Arena *a, const char *what, TensorDesc *tensors, uint32_t n)
{
    Map *seen = map_new(a);
    bool ok = true;

    for (uint32_t i = 0; i < n; i++) {
        TensorDesc *t = &tensors[i], *other;
        uint64_t    key;

        t->c_name = c_identifier(a, t->name);
        key = hash_bytes(t->c_name, strlen(t->c_name), 0);
        other = map_get(seen, key);
        map_put(seen, key, t);
        if (!other || strcmp(other->c_name, t->c_name) != 0)
            continue;
        diag_error(d, E_PACK, NO_LOC, "the %ss '%s' and '%s' have the same name in C: '%s'", what,
                   other->name, t->name, t->c_name);
        diag_hint(d, "rename one of them in the model");
        ok = false;
    }
    return ok;
}

/* Dimensions of shape buckets become macros. */
static bool name_dims(Diags *d, Arena *a, const ModelDesc *m)
{
    for (uint32_t i = 0; i < m->nbucket_dims; i++)
        for (uint32_t k = 0; k < i; k++) {
            const char *name = c_identifier(a, m->bucket_dims[i]);

            if (strcmp(name, c_identifier(a, m->bucket_dims[k])) == 0)
                return diag_error(d, E_PACK, NO_LOC,
                                  "the dimensions '%s' and '%s' have the same name in C: '%s'",
                                  m->bucket_dims[k], m->bucket_dims[i], name);
        }
    return true;
}

bool desc_finish(Diags *d, Arena *a, ModelDesc *m)
{
    bool in, out;

    m->entry = c_identifier(a, m->entry);
    m->upper = str_upper(a, m->entry);
    in = name_tensors(d, a, "input", m->in, m->nin);
    out = name_tensors(d, a, "output", m->out, m->nout);
    return name_dims(d, a, m) && in && out;
}

/* ---- the header --------------------------------------------------------------------------------
 */

/* The C type of an element; 16-bit floats travel as their bits. */
static const char *c_type(const TensorDesc *t)
{
    bool is_signed = t->code == 0;

    if (t->code == 2 && t->bits == 32)
        return "float";
    if (t->code == 2 && t->bits == 64)
        return "double";
    switch (t->bits) {
    case 16: return is_signed ? "int16_t" : "uint16_t";
    case 32: return is_signed ? "int32_t" : "uint32_t";
    case 64: return is_signed ? "int64_t" : "uint64_t";
    default: return is_signed ? "int8_t" : "uint8_t";
    }
}

const char *small_float_name(uint8_t code)
{
    switch (code) {
    case TVMCC_FLOAT8_E4M3FN: return "float8_e4m3fn";
    case TVMCC_FLOAT8_E4M3FNUZ: return "float8_e4m3fnuz";
    case TVMCC_FLOAT8_E5M2: return "float8_e5m2";
    case TVMCC_FLOAT8_E5M2FNUZ: return "float8_e5m2fnuz";
    case TVMCC_FLOAT8_E8M0FNU: return "float8_e8m0fnu";
    case TVMCC_FLOAT4_E2M1FN: return "float4_e2m1fn";
    }
    return "opaque";
}

static const char *dtype_name(Arena *a, const TensorDesc *t)
{
    const char *base = "opaque";

    switch (t->code) {
    case 0: base = "int"; break;
    case 1: base = "uint"; break;
    case 2: base = "float"; break;
    case 4: base = "bfloat"; break;
    case 6: return "bool";
    default: return small_float_name(t->code);
    }
    return t->lanes > 1 ? arena_printf(a, "%s%ux%u", base, t->bits, t->lanes)
                        : arena_printf(a, "%s%u", base, t->bits);
}

static void add_hex(StrBuf *s, Sha256 sha)
{
    char hex[65];

    sha256_hex(sha, hex);
    str_add(s, hex);
}

/* Text inside a C string literal or comment: nothing that could end either. */
static void add_plain(StrBuf *s, const char *text)
{
    for (; *text; text++) {
        unsigned char ch = (unsigned char)*text;

        if (ch < 32 || ch > 126 || ch == '"' || ch == '\\' || (ch == '/' && text[1] == '*') ||
            (ch == '*' && text[1] == '/') || (ch == '?' && text[1] == '?'))
            str_addc(s, '.');
        else
            str_addc(s, (char)ch);
    }
}

/* `[1, 16]`, and how many elements these are. */
static uint64_t add_dims(StrBuf *s, const TensorDesc *t)
{
    uint64_t elems = 1;

    str_add(s, "[");
    for (uint32_t i = 0; i < t->ndim; i++) {
        str_printf(s, "%s%" PRId64, i ? ", " : "", t->dims[i]);
        elems *= (uint64_t)t->dims[i];
    }
    str_add(s, "]");
    return elems;
}

static void tensor_macros(Arena *a, StrBuf *s, const ModelDesc *m, const char *side,
                          const TensorDesc *t, uint32_t index)
{
    const char *prefix = arena_printf(a, "%s_%s_%s", m->upper, side, str_upper(a, t->c_name));
    uint64_t    elems = 1;

    str_addc(s, '\n');
    str_printf(s, "/* ");
    add_plain(s, t->name);
    str_printf(s, ": %s ", dtype_name(a, t));
    if (t->shape)
        str_add(s, t->shape);
    else
        elems = add_dims(s, t);
    str_printf(s, " */\n");
    str_printf(s, "#define %s_INDEX %u\n", prefix, index);
    str_printf(s, "#define %s_NDIM %u\n", prefix, t->ndim);
    for (uint32_t i = 0; i < t->ndim; i++)
        if (t->dims[i] < 0 && t->most[i] >= 0)
            str_printf(s, "#define %s_DIM%u_MAX %" PRId64 "\n", prefix, i, t->most[i]);
        else if (t->dims[i] >= 0)
            str_printf(s, "#define %s_DIM%u %" PRId64 "\n", prefix, i, t->dims[i]);
    if (!t->shape)
        str_printf(s, "#define %s_ELEMS %" PRIu64 "\n", prefix, elems);
    if (!t->shape || t->bytes)
        str_printf(s, "#define %s_BYTES%s %" PRIu64 "\n", prefix, t->shape ? "_MAX" : "", t->bytes);
    str_printf(s, "#define %s_DTYPE \"%s\"\n", prefix, dtype_name(a, t));
    str_printf(s, "#define %s_ALIGN %u\n", prefix, t->align);
    if (t->layout) {
        str_printf(s, "#define %s_LAYOUT \"", prefix);
        add_plain(s, t->layout);
        str_add(s, "\"\n");
    }
    if (t->state) /* may lie in the memory of that input */
        str_printf(s, "#define %s_STATE_INPUT %u\n", prefix, t->state - 1);
    if (t->quantized) {
        str_printf(s, "#define %s_SCALE %.9gf\n", prefix, t->scale);
        str_printf(s, "#define %s_ZERO_POINT (%d)\n", prefix, (int)t->zero_point);
    }
}

/* What a caller may print, and does not depend on. */
static void about_macros(StrBuf *s, const ModelDesc *m)
{
    const char *u = m->upper;

    str_printf(s, "#define %s_TOOLCHAIN \"", u);
    add_plain(s, m->toolchain);
    str_printf(s, "\"\n#define %s_MACS %" PRId64 "\n", u, m->macs);
}

static void arena_macros(StrBuf *s, const ModelDesc *m)
{
    const char *u = m->upper;

    str_printf(s, "#define %s_ARENA_SHARED_BYTES %" PRIu64 "\n", u, m->arena_shared);
    str_printf(s, "#define %s_ARENA_PRIVATE_BYTES %" PRIu64 "\n", u, m->arena_private);
    str_printf(s,
               "#define %s_ARENA_BYTES(threads) \\\n"
               "    (TVMCC_SIZE_OF(%s_ARENA_SHARED_BYTES) + TVMCC_SIZE_OF(threads) * "
               "%s_ARENA_PRIVATE_BYTES)\n",
               u, u, u);
}

/* Where a dimension has no upper bound: the order of dims in <entry>_arena_bytes. */
static void open_macros(StrBuf *s, const ModelDesc *m)
{
    str_printf(s, "#define %s_DIMS %u\n", m->upper, m->nopen_dims);
    for (uint32_t i = 0; i < m->nopen_dims; i++)
        str_printf(s, "#define %s_DIM_%s %u\n", m->upper, m->open_dims[i], i);
}

static void open_prototypes(StrBuf *s, const ModelDesc *m)
{
    const char *e = m->entry;

    str_printf(s, "\n/* Bytes of arena of a run where dims[%s_DIMS] are", m->upper);
    for (uint32_t i = 0; i < m->nopen_dims; i++)
        str_printf(s, "%s %s", i ? "," : "", m->open_dims[i]);
    str_printf(s,
               "; a code of\n * tvmcc/abi.h where a run ends with it.  %s_sizes() tells which "
               "sizes of inputs they are. */\n"
               "int64_t %s_arena_bytes(const int64_t *dims, uint32_t threads);\n"
               "const tvmcc_size_info *%s_sizes(void);\n",
               e, e, e);
}

static void model_macros(StrBuf *s, const ModelDesc *m)
{
    const char *u = m->upper;

    str_printf(s, "#define %s_ABI %d\n", u, 1);
    str_printf(s, "#define %s_INPUTS %u\n", u, m->nin);
    str_printf(s, "#define %s_OUTPUTS %u\n", u, m->nout);
    if (m->shared_form)
        open_macros(s, m);
    else
        arena_macros(s, m);
    str_printf(s, "#define %s_ARENA_ALIGN %u\n", u, m->arena_align);
    str_printf(s, "#define %s_WEIGHTS_BYTES %" PRIu64 "\n", u, m->weights_bytes);
    if (m->weights_mode == WEIGHTS_EXTERN)
        str_printf(s, "#define %s_WEIGHTS_ALIGN 64\n", u);
    str_printf(s, "#define %s_STATE_BYTES %" PRIu64 "\n", u, m->state_bytes);
}

/* ---- shape buckets ---- */

static uint32_t buckets_of(const ModelDesc *m)
{
    return m->nbucket_dims ? m->nalts / m->nvariants : 0;
}

static void bucket_tensors(Arena *a, StrBuf *s, const char *bucket, const char *side,
                           const TensorDesc *named, const TensorDesc *tensors, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const TensorDesc *t = &tensors[i];
        const char       *prefix =
            arena_printf(a, "%s_%s_%s", bucket, side, str_upper(a, named[i].c_name));

        for (uint32_t k = 0; k < t->ndim; k++)
            str_printf(s, "#define %s_DIM%u %" PRId64 "\n", prefix, k, t->dims[k]);
        str_printf(s, "#define %s_BYTES %" PRIu64 "\n", prefix, t->bytes);
    }
}

/* Sizes of each bucket; an arena has to do for all variants. */
static void bucket_macros(Arena *a, StrBuf *s, const ModelDesc *m)
{
    uint32_t n = buckets_of(m);

    str_printf(s, "\n/* shape buckets, the smallest first; what stands above is of the last */\n");
    str_printf(s, "#define %s_BUCKETS %u\n#define %s_BUCKET_DIMS %u\n", m->upper, n, m->upper,
               m->nbucket_dims);
    for (uint32_t b = 0; b < n; b++) {
        const char *u = arena_printf(a, "%s_BUCKET%u", m->upper, b);
        uint64_t    shared = 0, own = 0;

        for (uint32_t i = b; i < m->nalts; i += n) {
            shared = m->alts[i].arena_shared > shared ? m->alts[i].arena_shared : shared;
            own = m->alts[i].arena_private > own ? m->alts[i].arena_private : own;
        }
        for (uint32_t k = 0; k < m->nbucket_dims; k++)
            str_printf(s, "#define %s_%s %" PRId64 "\n", u,
                       str_upper(a, c_identifier(a, m->bucket_dims[k])), m->alts[b].sizes[k]);
        str_printf(s,
                   "#define %s_ARENA_BYTES(threads) (TVMCC_SIZE_OF(%" PRIu64
                   ") + TVMCC_SIZE_OF(threads) * %" PRIu64 ")\n",
                   u, shared, own);
        bucket_tensors(a, s, u, "IN", m->in, m->alts[b].in, m->nin);
        bucket_tensors(a, s, u, "OUT", m->out, m->alts[b].out, m->nout);
    }
}

static void bucket_prototypes(StrBuf *s, const ModelDesc *m)
{
    const char *e = m->entry;

    str_printf(s, "\n/* The first bucket that holds dims[%s_BUCKET_DIMS], in the order", m->upper);
    for (uint32_t k = 0; k < m->nbucket_dims; k++) {
        str_add(s, k ? ", " : " ");
        add_plain(s, m->bucket_dims[k]);
    }
    str_printf(s,
               ";\n * or TVMCC_E_SHAPE.  Tensors of a run have the shapes of its bucket. */\n"
               "int32_t %s_select(const int64_t *dims);\n"
               "int32_t %s_run_bucket(uint32_t bucket, const %s_inputs *inputs,\n"
               "%*sconst %s_outputs *outputs, const tvmcc_params *params);\n",
               e, e, e, (int)strlen(e) + 20, "", e);
}

static void asserts(StrBuf *s, const ModelDesc *m)
{
    str_printf(s, "\nTVMCC_STATIC_ASSERT(TVMCC_ABI == %s_ABI, %s_abi);\n", m->upper, m->entry);
    if (m->pointer_bits)
        str_printf(s, "TVMCC_STATIC_ASSERT(sizeof(void *) == %u, %s_pointer);\n",
                   m->pointer_bits / 8, m->entry);
    str_printf(s, "TVMCC_STATIC_ASSERT(sizeof(float) == 4 && FLT_MANT_DIG == 24, %s_float);\n",
               m->entry);
    if (!m->pointer_bits && weights_inside(m->weights_mode))
        return; /* weights have the order of bytes of their compiler */
    str_printf(s,
               "#if defined(__BYTE_ORDER__) && defined(__ORDER_LITTLE_ENDIAN__)\n"
               "TVMCC_STATIC_ASSERT((__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) == %d, "
               "%s_byte_order);\n"
               "#endif\n",
               !m->big_endian, m->entry);
}

static void tensor_struct(StrBuf *s, const ModelDesc *m, bool input)
{
    const TensorDesc *tensors = input ? m->in : m->out;
    uint32_t          n = input ? m->nin : m->nout;

    str_printf(s, "\ntypedef struct %s_%s {\n", m->entry, input ? "inputs" : "outputs");
    for (uint32_t i = 0; i < n; i++)
        str_printf(s, "    %s%s *%s;\n", input ? "const " : "",
                   tensors[i].shape ? "tvmcc_value" : c_type(&tensors[i]), tensors[i].c_name);
    if (n == 0) /* C has no empty structs */
        str_add(s, "    const void *none;\n");
    str_printf(s, "} %s_%s;\n", m->entry, input ? "inputs" : "outputs");
}

static void prototypes(StrBuf *s, const ModelDesc *m)
{
    const char *e = m->entry, *u = m->upper;

    tensor_struct(s, m, true);
    tensor_struct(s, m, false);
    if (m->state_bytes)
        str_printf(s,
                   "\n/* The device of params: state is %s_STATE_BYTES bytes aligned to a pointer; "
                   "it goes into\n"
                   " * the params of every run between the two. */\n"
                   "int32_t %s_open(void *state, const tvmcc_params *params);\n"
                   "void %s_close(void *state, const tvmcc_params *params);\n",
                   u, e, e);
    else if (m->weights_mode != WEIGHTS_FILE) {
        str_printf(
            s,
            "\n/* One thread; arena: %s%s bytes aligned to %s_ARENA_ALIGN. */\n"
            "int32_t %s_run(const %s_inputs *inputs, const %s_outputs *outputs, void *arena);"
            "\n",
            m->shared_form ? e : u, m->shared_form ? "_arena_bytes(dims, 1)" : "_ARENA_BYTES(1)", u,
            e, e, e);
    }
    str_printf(s,
               "\n/* Threads, weights and devices as params say; 0 or a code of tvmcc/abi.h. */\n"
               "int32_t %s_run_ex(const %s_inputs *inputs, const %s_outputs *outputs,\n"
               "%*sconst tvmcc_params *params);\n",
               e, e, e, (int)strlen(e) + 16, "");
    if (m->nbucket_dims)
        bucket_prototypes(s, m);
    if (m->shared_form)
        open_prototypes(s, m);
    if (m->cpu_tested)
        str_printf(
            s,
            "\n/* Each call takes the best code that this CPU can run, or gives TVMCC_E_CPU;\n"
            " * %s_info() gives the model as compiled for it. */\n",
            e);
    str_printf(s, "\nconst tvmcc_model_info *%s_info(void);\n", e);
    if (m->weights_mode == WEIGHTS_EXTERN && m->weights_bytes)
        str_printf(
            s,
            "\n/* The caller defines it: the %s_WEIGHTS_BYTES bytes that follow the header of "
            "64 bytes\n * in %s.weights, aligned to %s_WEIGHTS_ALIGN. */\n"
            "extern const unsigned char %s_weights[%s_WEIGHTS_BYTES];\n",
            u, e, u, e, u);
    else if (m->weights_mode != WEIGHTS_FILE && m->weights_bytes && m->pointer_bits)
        str_printf(s, "\nextern const unsigned char %s_weights[];\n", e);
    if (m->shared_form)
        return;
    str_printf(s,
               "\n/* %s_DEFINE_ARENA(memory); defines a static arena for one thread. */\n"
               "#define %s_DEFINE_ARENA(id) %s_DEFINE_ARENA_FOR(id, 1)\n"
               "#define %s_DEFINE_ARENA_FOR(id, threads) \\\n"
               "    TVMCC_ALIGNED(%u) static unsigned char id[%s_ARENA_BYTES(threads) + %d]\n",
               u, u, u, u, m->arena_align, u, m->arena_shared + m->arena_private ? 0 : 1);
}

/* All that programs depend on. */
static StrBuf interface_text(Arena *a, const ModelDesc *m)
{
    StrBuf s = strbuf(a);

    model_macros(&s, m);
    for (uint32_t i = 0; i < m->nin; i++)
        tensor_macros(a, &s, m, "IN", &m->in[i], i);
    for (uint32_t i = 0; i < m->nout; i++)
        tensor_macros(a, &s, m, "OUT", &m->out[i], i);
    if (m->nbucket_dims)
        bucket_macros(a, &s, m);
    str_add(&s, "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    asserts(&s, m);
    prototypes(&s, m);
    str_add(&s, "\n#ifdef __cplusplus\n}\n#endif\n");
    return s;
}

/* Comments may be put otherwise by another version. */
static const char *hash_of(Arena *a, const StrBuf *text)
{
    Sha256Ctx   h;
    const char *at = text->at, *open;
    char        hex[65];

    sha256_init(&h);
    for (; (open = strstr(at, "/*")); at = strstr(open + 2, "*/") + 2)
        sha256_add(&h, at, (size_t)(open - at));
    sha256_add(&h, at, strlen(at));
    sha256_hex(sha256_end(&h), hex);
    return arena_printf(a, "%.8s", hex);
}

const char *header_hash(Arena *a, const ModelDesc *m)
{
    StrBuf s = interface_text(a, m);

    return hash_of(a, &s);
}

static void renames(StrBuf *s, const ModelDesc *m, const char *hash)
{
    const struct {
        const char *name;
        bool        declared;
    } all[] = {{"run", !m->state_bytes && m->weights_mode != WEIGHTS_FILE},
               {"run_ex", true},
               {"info", true},
               {"open", m->state_bytes != 0},
               {"close", m->state_bytes != 0},
               {"select", m->nbucket_dims != 0},
               {"run_bucket", m->nbucket_dims != 0},
               {"arena_bytes", m->shared_form != NULL},
               {"sizes", m->shared_form != NULL}};

    str_add(
        s,
        "\n/* Names that only a library with this very interface has: with another one a program\n"
        " * does not link.  Libraries have the plain names as well. */\n"
        "#ifndef TVMCC_PLAIN_NAMES\n");
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i].declared)
            str_printf(s, "#define %s_%s %s_%s_header_%s\n", m->entry, all[i].name, m->entry,
                       all[i].name, hash);
    str_add(s, "#endif\n\n");
}

Bytes header_text(Arena *a, const ModelDesc *m)
{
    StrBuf s = strbuf(a), interface = interface_text(a, m);

    str_printf(&s, "/* %s.h: how to call a model, compiled by ", m->entry);
    add_plain(&s, m->toolchain);
    str_printf(&s,
               " */\n#ifndef %s_MODEL_H\n#define %s_MODEL_H\n\n#include <float.h>\n"
               "#include <stddef.h>\n#include <stdint.h>\n\n",
               m->upper, m->upper);
    if (m->pointer_bits)
        str_add(&s, "#include \"tvmcc/abi.h\"\n\n");
    else /* source text and its header are all that a project takes over */
        str_addn(&s, (const char *)abi_header().at, abi_header().n);
    about_macros(&s, m);
    renames(&s, m, hash_of(a, &interface));
    str_addn(&s, interface.at, interface.n);
    str_add(&s, "\n#endif\n");
    return (Bytes){(const uint8_t *)s.at, s.n};
}

/* ---- the metadata ------------------------------------------------------------------------------
 */

static void json_tensors(Arena *a, StrBuf *s, const TensorDesc *tensors, uint32_t n)
{
    str_add(s, "[");
    for (uint32_t i = 0; i < n; i++) {
        const TensorDesc *t = &tensors[i];

        str_printf(s, "%s\n    {\"align\": %u, \"bytes\": %" PRIu64 ", \"c_name\": \"%s\", ",
                   i ? "," : "", t->align, t->bytes, t->c_name);
        str_add(s, "\"dims\": [");
        for (uint32_t k = 0; k < t->ndim; k++)
            str_printf(s, "%s%" PRId64, k ? ", " : "", t->dims[k]);
        str_printf(s, "], \"dtype\": \"%s\", ", dtype_name(a, t));
        if (t->layout) {
            str_add(s, "\"layout\": ");
            str_add_json(s, t->layout);
            str_add(s, ", ");
        }
        str_add(s, "\"name\": ");
        str_add_json(s, t->name);
        if (t->quantized)
            str_printf(s, ", \"scale\": %.9g, \"zero_point\": %d", t->scale, (int)t->zero_point);
        if (t->state)
            str_printf(s, ", \"state_input\": %u", t->state - 1);
        str_addc(s, '}');
    }
    str_add(s, n ? "\n  ]" : "]");
}

Bytes labels_text(Arena *a, const ModelDesc *m)
{
    StrBuf s = strbuf(a);

    for (uint32_t i = 0; i < m->nlabels; i++)
        str_printf(&s, "%s\n", m->labels[i]);
    return (Bytes){(const uint8_t *)s.at, s.n};
}

static void json_pair(StrBuf *s, const char *key, const char *value)
{
    str_printf(s, "  \"%s\": ", key);
    str_add_json(s, value ? value : "");
    str_add(s, ",\n");
}

static void json_sha(StrBuf *s, const char *key, Sha256 sha)
{
    str_printf(s, "  \"%s\": \"", key);
    add_hex(s, sha);
    str_add(s, "\",\n");
}

static void json_alternatives(StrBuf *s, const ModelDesc *m)
{
    str_add(s, "  \"alternatives\": [");
    for (uint32_t i = 0; i < m->nalts; i++) {
        const AltDesc *d = &m->alts[i];

        str_printf(s,
                   "%s\n    {\"arena\": {\"private\": %" PRIu64 ", \"shared\": %" PRIu64
                   "}, \"dims\": {",
                   i ? "," : "", d->arena_private, d->arena_shared);
        for (uint32_t k = 0; k < m->nbucket_dims; k++) {
            str_add(s, k ? ", " : "");
            str_add_json(s, m->bucket_dims[k]);
            str_printf(s, ": %" PRId64, d->sizes[k]);
        }
        str_add(s, "}, \"target\": ");
        str_add_json(s, d->target);
        str_printf(s, ", \"weights_bytes\": %" PRIu64 "}", d->weights_bytes);
    }
    str_add(s, "\n  ],\n");
}

/* What `tvmcc refit` compares. */
static void json_plan(StrBuf *s, const ModelDesc *m)
{
    str_printf(s, "  \"plan\": {\"level\": %u, \"names\": [", m->level);
    for (uint32_t i = 0; i < m->nkernel_names; i++) {
        str_add(s, i ? ",\n    " : "\n    ");
        str_add_json(s, m->kernel_names[i]);
    }
    str_add(s, "], \"sha256\": \"");
    add_hex(s, m->plan_sha);
    str_add(s, "\"},\n");
}

/* What `tvmcc profile` holds against the time that a step takes. */
static void json_steps(StrBuf *s, const ModelDesc *m)
{
    str_add(s, "  \"steps\": [");
    for (uint32_t i = 0; i < m->nsteps; i++) {
        const StepDesc *t = &m->steps[i];

        str_add(s, i ? ",\n    {" : "\n    {");
        if (t->known)
            str_printf(s, "\"bytes\": %" PRIu64 ", \"calls\": %u, ", t->bytes, t->calls);
        str_add(s, "\"kernel\": ");
        str_add_json(s, t->kernel);
        if (t->kind != WORK_OTHER)
            str_printf(s, ", \"kind\": \"%s\"", work_kind_names[t->kind]);
        if (t->known)
            str_printf(s, ", \"macs\": %" PRIu64, t->macs);
        str_addc(s, '}');
    }
    str_add(s, "],\n");
}

static void json_operators(StrBuf *s, const ModelDesc *m)
{
    str_add(s, "  \"operators\": {");
    for (uint32_t i = 0; i < m->nops; i++) {
        str_add(s, i ? ", " : "");
        str_add_json(s, m->ops[i].name);
        str_printf(s, ": %u", m->ops[i].count);
    }
    str_add(s, "},\n");
}

Bytes metadata_text(Arena *a, const ModelDesc *m)
{
    StrBuf s = strbuf(a);

    str_add(&s, "{\n  \"abi\": 1,\n");
    if (m->nalts)
        json_alternatives(&s, m);
    str_printf(&s, "  \"arena\": {\"align\": %u, \"floor\": %" PRIu64 ", \"private\": %" PRIu64,
               m->arena_align, m->arena_floor, m->arena_private);
    if (m->shared_form)
        str_printf(&s, ", \"private_form\": \"%s\"", m->private_form);
    str_printf(&s, ", \"shared\": %" PRIu64, m->arena_shared);
    if (m->shared_form)
        str_printf(&s, ", \"shared_form\": \"%s\"", m->shared_form);
    str_add(&s, "},\n");
    json_sha(&s, "build_id", m->build_id);
    json_pair(&s, "entry", m->entry);
    json_pair(&s, "header", header_hash(a, m));
    str_add(&s, "  \"inputs\": ");
    json_tensors(a, &s, m->in, m->nin);
    if (m->kernels)
        str_printf(&s, ",\n  \"kernels\": {\"count\": %u, \"tuned\": %u}", m->kernels,
                   m->kernels_tuned);
    if (m->nlabels) {
        str_add(&s, ",\n  \"labels\": [");
        for (uint32_t i = 0; i < m->nlabels; i++) {
            str_add(&s, i ? ", " : "");
            str_add_json(&s, m->labels[i]);
        }
        str_add(&s, "]");
    }
    if (m->machine)
        str_printf(&s, ",\n  \"machine\": \"%s\"", m->machine);
    str_printf(&s, ",\n  \"macs\": %" PRId64 ",\n", m->macs);
    json_pair(&s, "model", m->model);
    json_sha(&s, "model_sha256", m->model_sha);
    if (m->nops)
        json_operators(&s, m);
    str_add(&s, "  \"outputs\": ");
    json_tensors(a, &s, m->out, m->nout);
    str_add(&s, ",\n");
    json_plan(&s, m);
    if (m->nsteps)
        json_steps(&s, m);
    json_pair(&s, "targets", m->targets);
    json_pair(&s, "toolchain", m->toolchain);
    json_pair(&s, "triple", m->triple);
    str_printf(&s, "  \"weights\": {\"bytes\": %" PRIu64 ", \"mode\": \"%s\"", m->weights_bytes,
               weights_mode_names[m->weights_mode]);
    if (m->weights_section) {
        str_add(&s, ", \"section\": ");
        str_add_json(&s, m->weights_section);
    }
    str_add(&s, ", \"sha256\": \"");
    add_hex(&s, m->weights_sha);
    str_add(&s, "\"}\n}\n");
    return (Bytes){(const uint8_t *)s.at, s.n};
}
