/* product.c: the promises of docs/archive.md for whatever can be delivered.
 *
 *   object            as audit.c says
 *   static library    each member; and no name is defined twice, none of ours is missing
 *   shared library    needs no library but libc and libm, has no text relocations, no constructors
 *   metadata          arena and stack within their limits
 *   archive           SHA256SUMS, and everything that is in it
 *
 * The entries of the models are found in the files themselves: who defines `net_info` and
 * `net_run_ex` is the model `net`; an object of kernels has hidden names like `net__conv2d.a6`.
 */
#include "base/json.h"
#include "packaging/packaging.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef VEC(const char *) Names;
typedef VEC(AuditFile) Files;

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted, each once. */
static AuditNames unique(Names *names)
{
    uint32_t n = 0;

    if (names->n)
        qsort(names->at, names->n, sizeof *names->at, by_text);
    for (uint32_t i = 0; i < names->n; i++)
        if (n == 0 || strcmp(names->at[n - 1], names->at[i]) != 0)
            names->at[n++] = names->at[i];
    return (AuditNames){n, names->at};
}

static bool has(AuditNames names, const char *name)
{
    return names.n && bsearch(&name, names.at, names.n, sizeof *names.at, by_text) != NULL;
}

static void add_all(Arena *a, Names *to, AuditNames from)
{
    for (uint32_t i = 0; i < from.n; i++)
        vec_push(a, to, from.at[i]);
}

/* ---- whose models these are -------------------------------------------------------------------- */

/* The model of a symbol: before "_info" or "_weights" when it can be called, before "__" when it is
 * hidden; NULL: this name tells nothing. */
static const char *entry_of(Arena *a, const ObjectSymbol *s)
{
    static const char *const ends[] = {"_info", "_weights"};
    const char              *inner = strstr(s->name, "__");

    if (s->section == 0 || s->bind == SYMBOL_LOCAL)
        return NULL;
    if (s->hidden)
        return inner > s->name ? arena_printf(a, "%.*s", (int)(inner - s->name), s->name) : NULL;
    for (size_t i = 0; i < COUNT(ends); i++)
        if (str_ends(s->name, ends[i]) && strlen(s->name) > strlen(ends[i]))
            return arena_printf(a, "%.*s", (int)(strlen(s->name) - strlen(ends[i])), s->name);
    return NULL;
}

static void find_entries(Arena *a, Bytes object, Names *out)
{
    Diags *quiet = diags_new(a);
    Object f;

    if (object_format(object) != OBJECT_ELF || !elf_read(quiet, a, "", object, &f))
        return;
    for (uint32_t i = 1; i < f.nsymbols; i++) {
        ObjectSymbol s = f.symbols[i];
        const char  *entry;

        s.name += f.underscore && *s.name == '_';
        entry = entry_of(a, &s);

        if (entry && (out->n == 0 || strcmp(out->at[out->n - 1], entry) != 0))
            vec_push(a, out, entry);
    }
}

/* ---- shared libraries --------------------------------------------------------------------------- */

/* What the dynamic linker is told. */
static void audit_dynamic(Diags *d, Loc loc, const Object *f, AuditReport *out)
{
    out->textrels += f->textrels;
    if (f->textrels)
        diag_error(d, E_PACK, loc, "the library has text relocations");
    for (uint32_t i = 0; i < f->nneeded; i++)
        if (!str_starts(f->needed[i], "libc.") && !str_starts(f->needed[i], "libm.") &&
            !str_starts(f->needed[i], "ld-linux"))
            diag_error(d, E_PACK, loc, "the library needs '%s'", f->needed[i]);
}

static bool is_relro(const ObjectSection *s)
{
    return strcmp(s->name, ".dynamic") == 0 || str_starts(s->name, ".got") ||
           str_starts(s->name, ".data.rel.ro") || strcmp(s->name, ".relro_padding") == 0;
}

static void audit_image(Diags *d, Loc loc, const Object *f, AuditReport *out)
{
    audit_dynamic(d, loc, f, out);
    for (uint32_t i = 1; i < f->nsections; i++) {
        const ObjectSection *s = &f->sections[i];

        if (!(s->flags & SECTION_ALLOC) || s->size == 0)
            continue;
        if (s->flags & SECTION_TLS) {
            out->tls += s->size;
            diag_error(d, E_PACK, loc, "the library has thread-local memory in '%s'", s->name);
        } else if (s->kind == SECTION_INIT || strcmp(s->name, ".init") == 0 ||
                   strcmp(s->name, ".fini") == 0) {
            out->constructors += s->size;
            diag_error(d, E_PACK, loc, "the library has constructors in '%s'", s->name);
        } else if (s->flags & SECTION_EXEC) {
            out->code += s->size;
        } else if (!(s->flags & SECTION_WRITE) || is_relro(s)) {
            out->rodata += s->size;
        } else {
            out->writable += s->size;
            diag_error(d, E_PACK, loc, "the library has writable memory in '%s'", s->name);
        }
    }
}

static void audit_limits(Diags *d, Loc loc, const AuditRules *rules, const AuditReport *r)
{
    const struct {
        const char *what;
        uint64_t    bytes, limit;
    } rows[] = {{"the code has", r->code, rules->max_code},
                {"constants have", r->rodata, rules->max_weights}};

    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].limit && rows[i].bytes > rows[i].limit)
            diag_error(d, E_BUDGET, loc, "%s %" PRIu64 " bytes, the limit is %" PRIu64,
                       rows[i].what, rows[i].bytes, rows[i].limit);
}

/* The symbols of a shared library judged as those of an object: its .dynsym, without the rest. */
static bool audit_shared(Diags *d, Arena *a, const char *file, Bytes content,
                         const AuditRules *rules, AuditReport *out)
{
    Loc        loc = {.file = file};
    AuditRules no_limits = *rules;
    Object     f;
    Names      undefined = {0}, exported = {0};

    if (!elf_read(d, a, file, content, &f))
        return false;
    audit_image(d, loc, &f, out);
    for (uint32_t i = 1; i < f.ndynamic; i++) {
        const ObjectSymbol *s = &f.dynamic[i];

        if (s->bind == SYMBOL_LOCAL)
            continue;
        vec_push(a, s->section ? &exported : &undefined, s->name);
        if (s->section && !audit_is_ours(s->name, &no_limits))
            diag_error(d, E_PACK, loc, "the library exports '%s', which belongs to no model",
                       s->name);
        else if (!s->section && !audit_may_call(s->name, rules))
            diag_error(d, E_PACK, loc, "the library calls '%s'", s->name);
    }
    out->undefined = unique(&undefined);
    out->exported = unique(&exported);
    audit_limits(d, loc, rules, out);
    return true;
}

/* ---- libraries ------------------------------------------------------------------------------------ */

static void add_report(AuditReport *sum, const AuditReport *r)
{
    sum->code += r->code;
    sum->rodata += r->rodata;
    sum->writable += r->writable;
    sum->tls += r->tls;
    sum->constructors += r->constructors;
    sum->textrels += r->textrels;
}

/* A symbol that the caller of the library defines: the weights of -fweights=extern. */
static bool is_supplied(Arena *a, const char *name, const AuditRules *rules)
{
    if (has(rules->supplied, name))
        return true;
    if (!rules->extern_weights)
        return false;
    if (rules->entry && strcmp(name, arena_printf(a, "%s_weights", rules->entry)) == 0)
        return true;
    for (uint32_t i = 0; i < rules->entries.n; i++)
        if (strcmp(name, arena_printf(a, "%s_weights", rules->entries.at[i])) == 0)
            return true;
    return false;
}

/* What members define together: an error for a name that two define, or that is ours and that
 * nobody defines. */
static void join_symbols(Diags *d, Arena *a, Loc loc, const AuditRules *rules, AuditFile *out)
{
    Names      undefined = {0}, exported = {0}, hidden = {0}, missing = {0};
    AuditNames all, known[2];

    for (uint32_t i = 0; i < out->nparts; i++) {
        add_all(a, &undefined, out->parts[i].report.undefined);
        add_all(a, &exported, out->parts[i].report.exported);
        add_all(a, &hidden, out->parts[i].report.hidden);
    }
    for (int k = 0; k < 2; k++) {
        Names   *defined = k ? &hidden : &exported;
        uint32_t n = defined->n;

        known[k] = unique(defined);
        if (known[k].n != n)
            diag_error(d, E_PACK, loc, "two members define the same %ssymbol", k ? "hidden " : "");
    }
    all = unique(&undefined);
    for (uint32_t i = 0; i < all.n; i++) {
        const char *name = all.at[i];

        if (has(known[0], name) || has(known[1], name))
            continue;
        vec_push(a, &missing, name);
        if (audit_is_ours(name, rules) && !is_supplied(a, name, rules))
            diag_error(d, E_PACK, loc, "no member defines '%s'", name);
    }
    out->report.undefined = unique(&missing);
    out->report.exported = known[0];
    out->report.hidden = known[1];
}

static bool audit_library(Diags *d, Arena *a, const char *file, const Member *m, uint32_t n,
                          const AuditRules *rules, AuditFile *out)
{
    AuditRules part = *rules;

    part.max_code = part.max_weights = 0; /* of all together */
    out->parts = NEW_ARRAY(a, AuditFile, n ? n : 1);
    out->nparts = n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t before = diag_errors(d);

        out->parts[i] = (AuditFile){.path = m[i].path, .kind = "object"};
        audit_object(d, a, arena_printf(a, "%s(%s)", file, m[i].path), m[i].data, &part,
                     &out->parts[i].report);
        out->parts[i].breaches = diag_errors(d) - before;
        add_report(&out->report, &out->parts[i].report);
    }
    join_symbols(d, a, (Loc){.file = file}, rules, out);
    audit_limits(d, (Loc){.file = file}, rules, &out->report);
    return true;
}

/* ---- metadata -------------------------------------------------------------------------------------- */

static uint64_t json_bytes(json_t *o, const char *key)
{
    json_t *v = json_object_get(o, key);

    return json_is_number(v) && json_number_value(v) > 0 ? (uint64_t)json_number_value(v) : 0;
}

static bool audit_metadata(Diags *d, Arena *a, const char *file, Bytes content,
                           const AuditRules *rules, AuditFile *out)
{
    json_t *root = json_read(content, NULL);
    json_t *arena = json_object_get(root, "arena");
    json_t *weights = json_object_get(root, "weights");
    json_t *entry = json_object_get(root, "entry");
    Loc     loc = {.file = file};
    Names   names = {0};

    if (!root || !arena || !json_is_string(entry)) {
        json_decref(root);
        return diag_error(d, E_PACK, loc, "this is not the metadata of a model");
    }
    const struct {
        const char *what;
        uint64_t    bytes, limit;
    } rows[] = {
        {"one thread's arena has", json_bytes(arena, "shared") + json_bytes(arena, "private"),
         rules->max_arena},
        {"the weights have", json_bytes(weights, "bytes"), rules->max_weights},
        {"the stack has", json_bytes(root, "stack_bytes"), rules->max_stack},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (!rows[i].limit || rows[i].bytes <= rows[i].limit)
            continue;
        diag_error(d, E_BUDGET, loc, "'%s': %s %" PRIu64 " bytes, the limit is %" PRIu64,
                   json_string_value(entry), rows[i].what, rows[i].bytes, rows[i].limit);
        diag_hint(d, "a compile with the same limit names what is largest");
    }
    vec_push(a, &names, arena_printf(a, "%s", json_string_value(entry)));
    out->entries = unique(&names);
    json_decref(root);
    return true;
}

/* ---- any file -------------------------------------------------------------------------------------- */

static void judge(Diags *d, Arena *a, const char *file, Bytes content, AuditRules rules,
                  AuditFile *out)
{
    Names    entries = {0};
    Member  *m = NULL;
    uint32_t n = 0;
    bool     library = ar_is_library(content);

    if (library && !ar_members(d, a, file, content, &m, &n))
        return;
    for (uint32_t i = 0; i < n; i++)
        find_entries(a, m[i].data, &entries);
    if (!library)
        find_entries(a, content, &entries);
    out->entries = unique(&entries);
    if (!rules.entry && !rules.entries.n)
        rules.entries = out->entries;
    if (library) {
        out->kind = "static library";
        audit_library(d, a, file, m, n, &rules, out);
    } else if (object_is_shared(content)) {
        out->kind = "shared library";
        audit_shared(d, a, file, content, &rules, &out->report);
    } else {
        out->kind = "object";
        audit_object(d, a, file, content, &rules, &out->report);
    }
}

/* All but archives, so one in another is no product, and nothing unpacks for ever. */
static bool audit_one(Diags *d, Arena *a, const char *file, Bytes content, const AuditRules *rules,
                      AuditFile *out)
{
    uint32_t   before = diag_errors(d);
    SourceInfo source;

    *out = (AuditFile){.path = file, .kind = "metadata"};
    if (source_read(a, content, &source)) {
        diag_error(d, E_PACK, (Loc){.file = file},
                   "this is the model '%s' as C, and has no code yet", source.entry);
        diag_hint(d, "audit the object or library that its compiler makes of it");
    } else if (content.n && content.at[0] == '{')
        audit_metadata(d, a, file, content, rules, out);
    else
        judge(d, a, file, content, *rules, out);
    out->breaches = diag_errors(d) - before;
    return out->breaches == 0;
}

/* Members that have promises to keep. */
static bool is_judged(const char *path)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const char *share = strstr(path, "share/");

    return str_ends(name, ".a") || str_ends(name, ".o") || str_ends(name, ".so") ||
           (share && str_ends(name, ".json") && strchr(share + 6, '/'));
}

/* In an archive the metadata say which weights the caller has. */
static AuditNames supplied(Arena *a, const Member *m, uint32_t n)
{
    Names names = {0};

    for (uint32_t i = 0; i < n; i++) {
        ModelDesc desc;

        if (is_judged(m[i].path) && str_ends(m[i].path, ".json") &&
            metadata_read(diags_new(a), a, m[i].path, m[i].data, &desc) &&
            desc.weights_mode == WEIGHTS_EXTERN)
            vec_push(a, &names, arena_printf(a, "%s_weights", desc.entry));
    }
    return unique(&names);
}

static void audit_members(Diags *d, Arena *a, const char *file, const Member *m, uint32_t n,
                          const AuditRules *rules, AuditFile *out)
{
    Files      files = {0};
    uint32_t   before = diag_errors(d);
    AuditRules own = *rules;

    out->kind = "archive";
    own.supplied = supplied(a, m, n);
    for (uint32_t i = 0; i < n; i++)
        if (str_ends(m[i].path, "SHA256SUMS")) {
            bundle_verify(d, a, file, m, n);
            break;
        }
    for (uint32_t i = 0; i < n; i++) {
        AuditFile f;

        if (!is_judged(m[i].path))
            continue;
        audit_one(d, a, arena_printf(a, "%s(%s)", file, m[i].path), m[i].data, &own, &f);
        f.path = m[i].path;
        vec_push(a, &files, f);
    }
    if (files.n == 0)
        diag_error(d, E_PACK, (Loc){.file = file}, "there is no product in the archive");
    out->parts = files.at;
    out->nparts = files.n;
    out->breaches = diag_errors(d) - before;
}

bool audit_folder(Diags *d, Arena *a, const char *file, const Member *members, uint32_t n,
                  const AuditRules *rules, AuditFile *out)
{
    *out = (AuditFile){.path = file};
    audit_members(d, a, file, members, n, rules, out);
    return out->breaches == 0;
}

bool audit_file(Diags *d, Arena *a, const char *file, Bytes content, const AuditRules *rules,
                AuditFile *out)
{
    uint32_t before = diag_errors(d), n;
    Member  *m;

    if (!pack_means(file, content))
        return audit_one(d, a, file, content, rules, out);
    *out = (AuditFile){.path = file, .kind = "archive"};
    if (pack_read(d, a, file, content, PACK_LIMIT, &m, &n))
        audit_members(d, a, file, m, n, rules, out);
    out->breaches = diag_errors(d) - before;
    return out->breaches == 0;
}

/* ---- the report ------------------------------------------------------------------------------------ */

static void json_names(StrBuf *s, const char *key, AuditNames names)
{
    str_printf(s, ", \"%s\": [", key);
    for (uint32_t i = 0; i < names.n; i++) {
        str_add(s, i ? ", " : "");
        str_add_json(s, names.at[i]);
    }
    str_add(s, "]");
}

void audit_json(const AuditFile *f, StrBuf *out)
{
    const AuditReport *r = &f->report;

    str_add(out, "{\"path\": ");
    str_add_json(out, f->path);
    str_printf(out, ", \"kind\": \"%s\", \"breaches\": %u", f->kind, f->breaches);
    if (strcmp(f->kind, "archive") != 0 && strcmp(f->kind, "metadata") != 0) {
        str_printf(out,
                   ", \"code\": %" PRIu64 ", \"constants\": %" PRIu64 ", \"writable\": %" PRIu64
                   ", \"thread_local\": %" PRIu64 ", \"constructors\": %" PRIu64
                   ", \"text_relocations\": %" PRIu64,
                   r->code, r->rodata, r->writable, r->tls, r->constructors, r->textrels);
        json_names(out, "undefined", r->undefined);
        json_names(out, "exported", r->exported);
    }
    json_names(out, "models", f->entries);
    if (f->nparts) {
        str_add(out, ", \"parts\": [");
        for (uint32_t i = 0; i < f->nparts; i++) {
            str_add(out, i ? ", " : "");
            audit_json(&f->parts[i], out);
        }
        str_add(out, "]");
    }
    str_add(out, "}");
}
