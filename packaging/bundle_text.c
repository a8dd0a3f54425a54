/* bundle_text.c: the text files of a deployment archive.
 *
 *   lib/cmake/<name>/<name>Config.cmake     find_package(<name>) gives <name>::<entry>
 *   lib/pkgconfig/<entry>.pc                pkg-config --cflags --libs <entry>
 *   sbom.spdx.json                          SPDX 2.3: what it was made of, and by what
 *   reports/{coverage,memory,size}.json     what people ask before they deploy
 *   manifest.json                           all models and files, with hashes
 *
 * Paths are relative to the file that holds them, so an archive works wherever it is unpacked.
 */
#include "packaging/packaging.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static Bytes text_bytes(const StrBuf *s)
{
    return (Bytes){(const uint8_t *)s->at, s->n};
}

static const char *version_of(const Bundle *b)
{
    return b->version ? b->version : "0";
}

static const char *name_of(const Bundle *b)
{
    return b->name ? b->name : b->parts[0].desc->entry;
}

bool bundle_several_triples(const Bundle *b)
{
    for (uint32_t i = 1; i < b->nparts; i++)
        if (strcmp(b->parts[i].desc->triple, b->parts[0].desc->triple) != 0)
            return true;
    return false;
}

/* The first part of its entry: things about a model are said once. */
static bool first_of_entry(const Bundle *b, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(b->parts[k].desc->entry, b->parts[i].desc->entry) == 0)
            return false;
    return true;
}

static bool first_of_triple(const Bundle *b, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(b->parts[k].desc->triple, b->parts[i].desc->triple) == 0)
            return false;
    return true;
}

/* ---- CMake -------------------------------------------------------------------------------------- */

/* CMake's conditions for a triple: its system, its processor by all its names (where there is no
 * system, a project may not name it), and the size of a pointer: the compiler may have a -m32. */
static void add_condition(StrBuf *s, const char *triple, bool alone)
{
    static const struct {
        const char *prefix, *names;
        int         pointer;
    } cpus[] = {{"x86_64", "x86_64|AMD64|amd64", 8},
                {"aarch64", "aarch64|arm64|ARM64", 8},
                {"arm64", "aarch64|arm64|ARM64", 8},
                {"arm", "arm.*|ARM|cortex.*", 4},
                {"thumb", "arm.*|thumb.*|cortex.*", 4},
                {"riscv64", "riscv64", 8},
                {"riscv32", "riscv32", 4},
                {"i", "i.86|x86|x86_64|AMD64|amd64", 4},
                {"wasm32", "wasm32|x86", 4}};
    static const struct {
        const char *part, *name;
    } systems[] = {{"android", "Android"}, {"linux", "Linux"},           {"apple", "Darwin|iOS"},
                   {"windows", "Windows"}, {"emscripten", "Emscripten"}, {"", "Generic|WASI|.*"}};
    size_t c = 0, y = 0;

    while (c < COUNT(cpus) && !str_starts(triple, cpus[c].prefix))
        c++;
    while (y + 1 < COUNT(systems) && !strstr(triple, systems[y].part))
        y++;
    str_printf(s, "CMAKE_SYSTEM_NAME MATCHES \"^(%s)$\"", systems[y].name);
    if (c == COUNT(cpus))
        return;
    str_printf(s, "\n        AND (%sCMAKE_SYSTEM_PROCESSOR MATCHES \"^(%s)$\")",
               alone ? "NOT CMAKE_SYSTEM_PROCESSOR OR " : "", cpus[c].names);
    str_printf(s, "\n        AND (NOT CMAKE_SIZEOF_VOID_P OR CMAKE_SIZEOF_VOID_P EQUAL %d)",
               cpus[c].pointer);
}

/* Which folder of lib/ is this build's: the compiler's triple, else its processor and system. */
static void add_choice(StrBuf *s, const Bundle *b)
{
    const char *name = name_of(b);
    bool        alone = !bundle_several_triples(b), any = false;

    str_add(s, "unset(_triple)\n");
    for (uint32_t i = 0; i < b->nparts; i++)
        if (first_of_triple(b, i) && !b->parts[i].source.n)
            str_printf(s,
                       "if(CMAKE_C_COMPILER_TARGET STREQUAL \"%s\" OR CMAKE_CXX_COMPILER_TARGET "
                       "STREQUAL \"%s\")\n    set(_triple \"%s\")\nendif()\n",
                       b->parts[i].desc->triple, b->parts[i].desc->triple,
                       b->parts[i].desc->triple);
    for (uint32_t i = 0; i < b->nparts; i++) {
        any = any || b->parts[i].source.n;
        if (!first_of_triple(b, i) || b->parts[i].source.n)
            continue;
        str_add(s, "if(NOT _triple AND ");
        add_condition(s, b->parts[i].desc->triple, alone);
        str_printf(s, ")\n    set(_triple \"%s\")\nendif()\n", b->parts[i].desc->triple);
    }
    if (any) { /* C is for all that have no library */
        str_add(s, "if(NOT _triple)\n    set(_triple \"any\")\nendif()\n");
        return;
    }
    str_printf(s,
               "if(NOT _triple)\n    set(_bits \"\")\n    if(CMAKE_SIZEOF_VOID_P)\n"
               "        math(EXPR _bits \"8 * ${CMAKE_SIZEOF_VOID_P}\")\n"
               "        set(_bits \" with ${_bits} bits\")\n    endif()\n"
               "    set(%s_FOUND FALSE)\n    set(%s_NOT_FOUND_MESSAGE \"no library for "
               "${CMAKE_SYSTEM_NAME} on ${CMAKE_SYSTEM_PROCESSOR}${_bits} in it; it has",
               name, name);
    for (uint32_t i = 0, n = 0; i < b->nparts; i++)
        if (first_of_triple(b, i))
            str_printf(s, "%s %s", n++ ? "," : "", b->parts[i].desc->triple);
    str_add(s, "\")\n    return()\nendif()\n");
}

static void add_target(StrBuf *s, const Bundle *b, const BundlePart *p, const char *include)
{
    const char *e = p->desc->entry, *name = name_of(b);
    bool        both = p->library.n && p->shared.n;

    for (int shared = p->library.n ? 0 : 1; shared < (p->shared.n ? 2 : 1); shared++) {
        const char *suffix = shared && both ? "-shared" : "";

        str_printf(s, "if(NOT TARGET %s::%s%s)\n    add_library(%s::%s%s %s IMPORTED)\n", name, e,
                   suffix, name, e, suffix, shared ? "SHARED" : "STATIC");
        str_printf(s, "    set_target_properties(%s::%s%s PROPERTIES\n", name, e, suffix);
        str_printf(s, "        IMPORTED_LOCATION \"${_root}/lib/${_triple}/lib%s.%s\"\n", e,
                   shared ? "so" : "a");
        if (shared)
            str_printf(s, "        IMPORTED_SONAME \"lib%s.so\"\n", e);
        if (bundle_wants(b, CONTENT_HEADER))
            str_printf(s, "        INTERFACE_INCLUDE_DIRECTORIES \"%s\"\n", include);
        str_add(s, "        INTERFACE_LINK_LIBRARIES \"$<$<NOT:$<PLATFORM_ID:Windows>>:m>\")\n"
                   "endif()\n");
    }
}

/* The text as a library of the project's own, by its compiler: once, whoever asks first. */
static void add_source(StrBuf *s, const Bundle *b, const BundlePart *p, const char *include)
{
    const char *e = p->desc->entry, *name = name_of(b);
    SourceInfo  info;

    str_printf(s, "if(NOT TARGET %s::%s)\n", name, e);
    str_printf(
        s,
        "    get_property(_languages GLOBAL PROPERTY ENABLED_LANGUAGES)\n"
        "    if(NOT \"C\" IN_LIST _languages)\n"
        "        set(%s_FOUND FALSE)\n"
        "        set(%s_NOT_FOUND_MESSAGE \"the model comes as C, which the project does not "
        "compile: enable_language(C)\")\n"
        "        return()\n    endif()\n    unset(_languages)\n",
        name, name);
    str_printf(s,
               "    add_library(%s_%s_source STATIC EXCLUDE_FROM_ALL \"${_root}/src/%s.c\")\n"
               "    set_target_properties(%s_%s_source PROPERTIES OUTPUT_NAME \"%s\"\n"
               "        POSITION_INDEPENDENT_CODE ON)\n"
               "    target_compile_features(%s_%s_source PRIVATE c_std_99)\n",
               name, e, e, name, e, e, name, e);
    if (source_read(s->arena, p->source, &info) && *info.options) {
        str_printf(s, "    target_compile_options(%s_%s_source PRIVATE ", name, e);
        for (const char *c = info.options; *c; c++)
            str_addc(s, *c == ' ' ? ';' : *c);
        str_add(s, ")\n");
    }
    if (bundle_wants(b, CONTENT_HEADER))
        str_printf(s, "    target_include_directories(%s_%s_source PUBLIC \"%s\")\n", name, e,
                   include);
    str_printf(s,
               "    target_link_libraries(%s_%s_source INTERFACE "
               "\"$<$<NOT:$<PLATFORM_ID:Windows>>:m>\")\n"
               "    add_library(%s::%s ALIAS %s_%s_source)\nendif()\n",
               name, e, name, e, name, e);
}

static void add_weights(StrBuf *s, const Bundle *b, const BundlePart *p, const char *own)
{
    const char *e = p->desc->entry;

    if (p->weights.n && bundle_wants(b, CONTENT_WEIGHTS))
        str_printf(s, "set(%s_WEIGHTS \"${_root}/share/%s/%s%s.weights\")\n", e, e,
                   bundle_several_triples(b) ? own : "", e);
}

/* C is for those machines that the model has no library for. */
static bool begin_source(StrBuf *s, const Bundle *b, const BundlePart *source)
{
    bool found = false;

    for (uint32_t i = 0; i < b->nparts; i++) {
        const ModelDesc *d = b->parts[i].desc;

        if (b->parts[i].source.n || strcmp(d->entry, source->desc->entry) != 0)
            continue;
        str_printf(s, "%sNOT _triple STREQUAL \"%s\"", found ? " AND " : "if(", d->triple);
        found = true;
    }
    str_add(s, found ? ")\n" : "");
    return found;
}

Bytes bundle_cmake(Arena *a, const Bundle *b)
{
    bool        several = bundle_several_triples(b), closed;
    const char *include =
        several ? "${_root}/include/${_triple};${_root}/include" : "${_root}/include";
    StrBuf s = strbuf(a);

    str_printf(&s, "# find_package(%s) gives:", name_of(b));
    for (uint32_t i = 0; i < b->nparts; i++)
        if (first_of_entry(b, i))
            str_printf(&s, " %s::%s", name_of(b), b->parts[i].desc->entry);
    str_add(&s,
            "\nget_filename_component(_root \"${CMAKE_CURRENT_LIST_DIR}/../../..\" ABSOLUTE)\n");
    add_choice(&s, b);
    for (uint32_t i = 0; i < b->nparts; i++) {
        const BundlePart *p = &b->parts[i];

        if (!p->library.n && !p->shared.n)
            continue;
        if (several)
            str_printf(&s, "if(_triple STREQUAL \"%s\")\n", p->desc->triple);
        add_target(&s, b, p, include);
        add_weights(&s, b, p, "${_triple}/");
        if (several)
            str_add(&s, "endif()\n");
    }
    for (uint32_t i = 0; i < b->nparts; i++) {
        const BundlePart *p = &b->parts[i];

        if (!p->source.n)
            continue;
        closed = begin_source(&s, b, p);
        add_source(&s, b, p,
                   several ? "${_root}/include/any;${_root}/include" : "${_root}/include");
        add_weights(&s, b, p, "any/");
        if (closed)
            str_add(&s, "endif()\n");
    }
    str_add(&s, "unset(_root)\nunset(_triple)\n");
    return text_bytes(&s);
}

Bytes bundle_cmake_version(Arena *a, const Bundle *b)
{
    StrBuf s = strbuf(a);

    str_printf(&s,
               "set(PACKAGE_VERSION \"%s\")\n"
               "if(PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)\n"
               "    set(PACKAGE_VERSION_COMPATIBLE FALSE)\n"
               "elseif(PACKAGE_FIND_VERSION_MAJOR STREQUAL \"%.*s\" OR NOT PACKAGE_FIND_VERSION)\n"
               "    set(PACKAGE_VERSION_COMPATIBLE TRUE)\n"
               "    if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)\n"
               "        set(PACKAGE_VERSION_EXACT TRUE)\n"
               "    endif()\n"
               "endif()\n",
               version_of(b), (int)strcspn(version_of(b), "."), version_of(b));
    return text_bytes(&s);
}

/* ---- pkg-config ---------------------------------------------------------------------------------- */

/* Of one model, or of all together through their own files. */
Bytes bundle_pkg_config(Arena *a, const Bundle *b, const BundlePart *p)
{
    bool        several = bundle_several_triples(b);
    const char *triple = p ? p->desc->triple : "";
    StrBuf      s = strbuf(a);

    str_printf(&s, "prefix=${pcfiledir}/../..%s\n", several ? "/.." : "");
    if (p && p->source.n) /* pkg-config --variable=source net */
        str_printf(&s, "source=${prefix}/src/%s.c\n", p->desc->entry);
    str_addc(&s, '\n');
    str_printf(&s, "Name: %s\nDescription: %s compiled by tvmcc\nVersion: %s\n",
               p ? p->desc->entry : name_of(b), p ? "a model" : "models", version_of(b));
    if (p) {
        str_add(&s, "Cflags:");
        if (several)
            str_printf(&s, " -I${prefix}/include/%s", triple);
        str_add(&s, " -I${prefix}/include\nLibs:");
        if (!p->source.n)
            str_printf(&s, " -L${prefix}/lib/%s -l%s", triple, p->desc->entry);
        str_add(&s, " -lm\n");
        return text_bytes(&s);
    }
    str_add(&s, "Requires:");
    for (uint32_t i = 0; i < b->nparts; i++)
        if (first_of_entry(b, i))
            str_printf(&s, " %s", b->parts[i].desc->entry);
    str_addc(&s, '\n');
    return text_bytes(&s);
}

/* ---- SPDX ---------------------------------------------------------------------------------------- */

static void spdx_package(StrBuf *s, const char *id, const char *name, const char *version,
                         const char *license, const char *sha)
{
    str_printf(s, "    {\"SPDXID\": \"SPDXRef-%s\", ", id);
    if (sha)
        str_printf(
            s, "\"checksums\": [{\"algorithm\": \"SHA256\", \"checksumValue\": \"%s\"}],\n     ",
            sha);
    str_add(s, "\"copyrightText\": \"NOASSERTION\", \"downloadLocation\": \"NOASSERTION\", "
               "\"filesAnalyzed\": false,\n     \"licenseConcluded\": \"NOASSERTION\", "
               "\"licenseDeclared\": ");
    str_add_json(s, license ? license : "NOASSERTION");
    str_add(s, ", \"name\": ");
    str_add_json(s, name);
    if (version) {
        str_add(s, ", \"versionInfo\": ");
        str_add_json(s, version);
    }
    str_addc(s, '}');
}

static void spdx_relation(StrBuf *s, const char *from, const char *type, const char *to)
{
    str_printf(s,
               "    {\"relatedSpdxElement\": \"SPDXRef-%s\", \"relationshipType\": \"%s\", "
               "\"spdxElementId\": \"SPDXRef-%s\"}",
               to, type, from);
}

/* Another namespace for other content, the same for the same. */
static void add_namespace(StrBuf *s, const Bundle *b)
{
    Sha256Ctx all;
    char      hex[65];

    sha256_init(&all);
    for (uint32_t i = 0; i < b->nparts; i++)
        sha256_add(&all, b->parts[i].desc->build_id.b, 32);
    sha256_add(&all, name_of(b), strlen(name_of(b)) + 1);
    sha256_add(&all, version_of(b), strlen(version_of(b)) + 1);
    sha256_hex(sha256_end(&all), hex);
    str_printf(s, "  \"documentNamespace\": \"urn:tvmcc:%s\",\n", hex);
}

Bytes bundle_sbom(Arena *a, const Bundle *b)
{
    time_t      epoch = (time_t)b->epoch;
    struct tm   utc = {0};
    char        hex[65], created[32];
    const char *tool = b->parts[0].desc->toolchain;
    StrBuf      s = strbuf(a);

    gmtime_r(&epoch, &utc);
    strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", &utc);
    str_printf(&s,
               "{\n  \"SPDXID\": \"SPDXRef-DOCUMENT\",\n  \"creationInfo\": {\"created\": \"%s\", "
               "\"creators\": [",
               created);
    str_add_json(&s, arena_printf(a, "Tool: %s", tool));
    str_add(&s, "]},\n  \"dataLicense\": \"CC0-1.0\",\n");
    add_namespace(&s, b);
    str_add(&s, "  \"name\": ");
    str_add_json(&s, arena_printf(a, "%s-%s", name_of(b), version_of(b)));
    str_add(&s, ",\n  \"packages\": [\n");
    spdx_package(&s, "archive", name_of(b), version_of(b), b->license, NULL);
    for (uint32_t i = 0; i < b->nparts; i++) {
        const ModelDesc *m = b->parts[i].desc;

        if (!first_of_entry(b, i))
            continue;
        str_add(&s, ",\n");
        sha256_hex(m->model_sha, hex);
        spdx_package(&s, arena_printf(a, "model-%u", i), m->model ? m->model : m->entry, NULL, NULL,
                     hex);
    }
    str_add(&s, ",\n");
    spdx_package(&s, "tool", "tvmcc", tool, "Apache-2.0", NULL);
    str_add(&s, "\n  ],\n  \"relationships\": [\n");
    spdx_relation(&s, "DOCUMENT", "DESCRIBES", "archive");
    for (uint32_t i = 0; i < b->nparts; i++) {
        if (!first_of_entry(b, i))
            continue;
        str_add(&s, ",\n");
        spdx_relation(&s, "archive", "GENERATED_FROM", arena_printf(a, "model-%u", i));
    }
    str_add(&s, ",\n");
    spdx_relation(&s, "tool", "BUILD_TOOL_OF", "archive");
    str_add(&s, "\n  ],\n  \"spdxVersion\": \"SPDX-2.3\"\n}\n");
    return text_bytes(&s);
}

/* ---- reports ------------------------------------------------------------------------------------- */

static void begin_model(StrBuf *s, const ModelDesc *m, bool first)
{
    str_printf(s, "%s\n    {\"entry\": \"%s\", \"triple\": \"%s\"", first ? "" : ",", m->entry,
               m->triple);
}

Bytes bundle_memory_report(Arena *a, const Bundle *b)
{
    StrBuf s = strbuf(a);

    str_add(&s, "{\n  \"models\": [");
    for (uint32_t i = 0; i < b->nparts; i++) {
        const ModelDesc *m = b->parts[i].desc;
        uint64_t         in = 0, out = 0;

        for (uint32_t k = 0; k < m->nin; k++)
            in += m->in[k].bytes;
        for (uint32_t k = 0; k < m->nout; k++)
            out += m->out[k].bytes;
        begin_model(&s, m, i == 0);
        str_printf(&s,
                   ",\n     \"arena\": {\"align\": %u, \"floor\": %" PRIu64
                   ", \"private\": %" PRIu64 ", \"shared\": %" PRIu64
                   "},\n     \"inputs\": %" PRIu64 ", \"outputs\": %" PRIu64
                   ", \"weights\": %" PRIu64 "}",
                   m->arena_align, m->arena_floor, m->arena_private, m->arena_shared, in, out,
                   m->weights_bytes);
    }
    str_add(&s, "\n  ],\n  \"schema\": \"tvmcc-memory/1\"\n}\n");
    return text_bytes(&s);
}

static void add_sizes(Arena *a, StrBuf *s, const char *what, Bytes file)
{
    Diags     *quiet = diags_new(a);
    AuditFile  f;
    AuditRules rules = {.no_pic = true};

    if (!file.n)
        return;
    audit_file(quiet, a, what, file, &rules, &f);
    str_printf(s,
               ",\n     \"%s\": {\"bytes\": %" PRIu64 ", \"code\": %" PRIu64
               ", \"constants\": %" PRIu64 "}",
               what, (uint64_t)file.n, f.report.code, f.report.rodata);
}

Bytes bundle_size_report(Arena *a, const Bundle *b)
{
    StrBuf s = strbuf(a);

    str_add(&s, "{\n  \"models\": [");
    for (uint32_t i = 0; i < b->nparts; i++) {
        const BundlePart *p = &b->parts[i];

        begin_model(&s, p->desc, i == 0);
        str_printf(&s, ", \"macs\": %" PRId64, p->desc->macs);
        add_sizes(a, &s, "library", p->library);
        add_sizes(a, &s, "shared", p->shared);
        if (p->source.n)
            str_printf(&s, ",\n     \"source\": {\"bytes\": %" PRIu64 "}", (uint64_t)p->source.n);
        if (p->weights.n)
            str_printf(&s, ",\n     \"weights\": {\"bytes\": %" PRIu64 "}", (uint64_t)p->weights.n);
        str_addc(&s, '}');
    }
    str_add(&s, "\n  ],\n  \"schema\": \"tvmcc-size/1\"\n}\n");
    return text_bytes(&s);
}

Bytes bundle_coverage_report(Arena *a, const Bundle *b)
{
    StrBuf s = strbuf(a);

    str_add(&s, "{\n  \"models\": [");
    for (uint32_t i = 0; i < b->nparts; i++) {
        const ModelDesc *m = b->parts[i].desc;

        begin_model(&s, m, i == 0);
        str_printf(&s, ", \"kernels\": %u, \"tuned\": %u}", m->kernels, m->kernels_tuned);
    }
    str_add(&s, "\n  ],\n  \"schema\": \"tvmcc-coverage/1\"\n}\n");
    return text_bytes(&s);
}

/* ---- what is inside ------------------------------------------------------------------------------- */

static void add_sha(StrBuf *s, const char *key, Sha256 sha)
{
    char hex[65];

    sha256_hex(sha, hex);
    str_printf(s, "\"%s\": \"%s\"", key, hex);
}

static void add_model(StrBuf *s, const ModelDesc *m, bool first)
{
    str_add(s, first ? "\n    {" : ",\n    {");
    add_sha(s, "build_id", m->build_id);
    str_printf(s, ",\n     \"entry\": \"%s\", \"model\": ", m->entry);
    str_add_json(s, m->model ? m->model : m->entry);
    str_add(s, ",\n     ");
    add_sha(s, "model_sha256", m->model_sha);
    str_add(s, ",\n     \"targets\": ");
    str_add_json(s, m->targets);
    str_add(s, ",\n     \"toolchain\": ");
    str_add_json(s, m->toolchain);
    str_add(s, ", \"triple\": ");
    str_add_json(s, m->triple);
    str_printf(s, ",\n     \"weights\": {\"bytes\": %" PRIu64 ", \"mode\": \"%s\", ",
               m->weights_bytes, weights_mode_names[m->weights_mode]);
    add_sha(s, "sha256", m->weights_sha);
    str_add(s, "}}");
}

Bytes bundle_manifest(Arena *a, const Bundle *b, const Member *members, uint32_t n)
{
    StrBuf s = strbuf(a);

    str_add(&s, "{\n  \"files\": [");
    for (uint32_t i = 0; i < n; i++) {
        str_printf(&s, "%s\n    {\"bytes\": %" PRIu64 ", \"path\": ", i ? "," : "",
                   (uint64_t)members[i].data.n);
        str_add_json(&s, members[i].path);
        str_add(&s, ", ");
        add_sha(&s, "sha256", sha256(members[i].data));
        str_addc(&s, '}');
    }
    str_add(&s, "\n  ],\n");
    if (b->license) {
        str_add(&s, "  \"license\": ");
        str_add_json(&s, b->license);
        str_add(&s, ",\n");
    }
    str_add(&s, "  \"models\": [");
    for (uint32_t i = 0; i < b->nparts; i++)
        add_model(&s, b->parts[i].desc, i == 0);
    str_add(&s, "\n  ],\n  \"name\": ");
    str_add_json(&s, name_of(b));
    str_printf(&s, ",\n  \"schema\": \"tvmcc-archive/%d\",\n  \"version\": ", ARCHIVE_VERSION);
    str_add_json(&s, version_of(b));
    str_add(&s, "\n}\n");
    return text_bytes(&s);
}
