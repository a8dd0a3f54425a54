/* audit.c: does an object keep the promises of the ABI?
 *
 * Generated code may call memcpy, memset, memmove and libm, and what compilers call behind every
 * program's back (conversions of 16-bit floats, integer division on small CPUs); nothing else.  It
 * has no constructors, no writable or thread-local memory, no weak symbols, and exports nothing
 * without the entry's prefix.  A breach would surface only when somebody links the object into a
 * program without an operating system, so it is an error here.
 */
#include "packaging/packaging.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Without the suffix f or l. */
static const char *const libm[] = {
    "acos",  "acosh",     "asin",  "asinh", "atan",      "atan2",  "atanh",   "cbrt",
    "ceil",  "copysign",  "cos",   "cosh",  "erf",       "erfc",   "exp",     "exp10",
    "exp2",  "expm1",     "fabs",  "fdim",  "floor",     "fma",    "fmax",    "fmin",
    "fmod",  "frexp",     "hypot", "ldexp", "lgamma",    "llrint", "llround", "log",
    "log10", "log1p",     "log2",  "logb",  "lrint",     "lround", "modf",    "nearbyint",
    "pow",   "remainder", "rint",  "round", "roundeven", "scalbn", "sin",     "sincos",
    "sinh",  "sqrt",      "tan",   "tanh",  "tgamma",    "trunc",
};

/* Exact names, a '?' for any letter, or prefixes ending in '*'.  The last ones: what Windows and
 * WebAssembly have every object refer to. */
static const char *const support[] = {
    "memcpy",
    "memmove",
    "memset",
    "_GLOBAL_OFFSET_TABLE_",
    "__aeabi_*",
    "__truncsfhf2",
    "__truncdfhf2",
    "__truncsfbf2",
    "__truncdfbf2",
    "__extendhfsf2",
    "__gnu_f2h_ieee",
    "__gnu_h2f_ieee",
    "__div*",
    "__udiv*",
    "__mod*",
    "__umod*",
    "__mul*",
    "__fix*",
    "__float*",
    "__ashl*",
    "__ashr*",
    "__lshr*",
    "__popcount*",
    "__clz*",
    "__ctz*",
    "__add*",
    "__sub*",
    "__neg*",
    "__eq?f2",
    "__ne?f2",
    "__lt?f2",
    "__le?f2",
    "__gt?f2",
    "__ge?f2",
    "__unord?f2",
    "__extendsfdf2",
    "_fltused",
    "__chkstk",
    "__stack_pointer",
    "__memory_base",
    "__table_base",
    "__linear_memory",
    "__indirect_function_table",
};

static bool matches(const char *name, const char *pattern)
{
    size_t n = strlen(pattern);

    if (pattern[n - 1] == '*')
        return strncmp(name, pattern, n - 1) == 0;
    for (; *name && (*pattern == *name || *pattern == '?'); name++)
        pattern++;
    return !*name && !*pattern;
}

static bool is_support(const char *name)
{
    for (size_t i = 0; i < COUNT(support); i++)
        if (matches(name, support[i]))
            return true;
    return false;
}

bool symbol_is_libm(const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < COUNT(libm); i++) {
        size_t k = strlen(libm[i]);

        if (n >= k && n - k <= 1 && memcmp(name, libm[i], k) == 0 &&
            (n == k || name[k] == 'f' || name[k] == 'l'))
            return true;
    }
    return false;
}

bool audit_may_call(const char *name, const AuditRules *rules)
{
    return is_support(name) || (symbol_is_libm(name) && !rules->no_libm);
}

static bool has_prefix(const char *name, const char *entry)
{
    size_t n = strlen(entry);

    return strncmp(name, entry, n) == 0 && (name[n] == 0 || name[n] == '_');
}

bool audit_is_ours(const char *name, const AuditRules *rules)
{
    if (rules->entry && has_prefix(name, rules->entry))
        return true;
    for (uint32_t i = 0; i < rules->entries.n; i++)
        if (has_prefix(name, rules->entries.at[i]))
            return true;
    return false;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void audit_sections(Diags *d, Loc loc, const Object *f, AuditReport *out)
{
    for (uint32_t i = 1; i < f->nsections; i++) {
        const ObjectSection *s = &f->sections[i];

        if (!(s->flags & SECTION_ALLOC) || s->size == 0)
            continue;
        if (s->flags & SECTION_TLS) {
            out->tls += s->size;
            diag_error(d, E_PACK, loc, "the object has thread-local memory in '%s'", s->name);
        } else if (s->kind == SECTION_INIT || str_starts(s->name, ".ctors") ||
                   str_starts(s->name, ".dtors")) {
            out->constructors += s->size;
            diag_error(d, E_PACK, loc, "the object has constructors in '%s'", s->name);
        } else if (s->flags & SECTION_EXEC) {
            out->code += s->size;
        } else if (!(s->flags & SECTION_WRITE) || str_starts(s->name, ".data.rel.ro")) {
            out->rodata += s->size;
        } else {
            out->writable += s->size;
            diag_error(d, E_PACK, loc, "the object has writable memory in '%s'", s->name);
        }
    }
}

static void audit_symbol(Diags *d, Loc loc, const ObjectSymbol *s, const AuditRules *rules)
{
    if (s->bind == SYMBOL_WEAK && !str_starts(s->name, "__")) {
        diag_error(d, E_PACK, loc, "the object has the weak symbol '%s'", s->name);
    } else if (s->section == 0) {
        if (!audit_may_call(s->name, rules) && !audit_is_ours(s->name, rules))
            diag_error(d, E_PACK, loc, "the object calls '%s'", s->name);
    } else if (!s->hidden && !audit_is_ours(s->name, rules)) {
        diag_error(d, E_PACK, loc, "the object exports '%s', which has not the prefix '%s_'",
                   s->name,
                   rules->entry       ? rules->entry
                   : rules->entries.n ? rules->entries.at[0]
                                      : "<entry>");
    }
}

typedef VEC(const char *) Names;

static AuditNames sorted(Names *names)
{
    if (names->n)
        qsort(names->at, names->n, sizeof *names->at, by_text);
    return (AuditNames){names->n, names->at};
}

static void audit_symbols(Diags *d, Arena *a, Loc loc, const Object *f, const AuditRules *rules,
                          AuditReport *out)
{
    Names undefined = {0}, exported = {0}, hidden = {0};

    for (uint32_t i = 1; i < f->nsymbols; i++) {
        ObjectSymbol s = f->symbols[i];

        if (s.bind != SYMBOL_GLOBAL && s.bind != SYMBOL_WEAK)
            continue;
        s.name += f->underscore && *s.name == '_';
        if (s.section == 0)
            vec_push(a, &undefined, s.name);
        else if (s.hidden)
            vec_push(a, &hidden, s.name);
        else
            vec_push(a, &exported, s.name);
        audit_symbol(d, loc, &s, rules);
    }
    out->undefined = sorted(&undefined);
    out->exported = sorted(&exported);
    out->hidden = sorted(&hidden);
}

/* Two names of one function (packaging/header.c). */
static bool same_function(const ObjectSymbol *a, const ObjectSymbol *b)
{
    return a->section == b->section && a->value == b->value;
}

/* Code and constants are shared between processes only if the dynamic linker writes nothing into
 * them.  Addresses in .data.rel.ro are as they should be: that memory is made read-only once it is
 * written.  An error about the first other one; the number of all. */
static uint64_t audit_relocs(Diags *d, Loc loc, const Object *f, const AuditRules *rules)
{
    uint64_t count = 0;
    bool     allowed = rules->no_pic || object_is_microcontroller(f);

    for (uint32_t i = 1; i < f->nsections; i++) {
        const ObjectSection *list = &f->sections[i], *s;
        uint32_t             n = reloc_count(f, list);

        if (!n || list->info == 0 || list->info >= f->nsections)
            continue;
        s = &f->sections[list->info];
        if (!(s->flags & SECTION_ALLOC) || s->flags & SECTION_WRITE)
            continue;
        for (uint32_t k = 0; k < n; k++) {
            ObjectReloc r = reloc_at(f, list, k);
            const char *name = reloc_absolute(f, &r);

            if (!name || count++ || allowed)
                continue;
            diag_error(d, E_PACK, loc,
                       "'%s' at 0x%" PRIx64 " has the absolute address of a symbol (%s, type "
                       "%" PRIu64 "), which a shared library cannot hold",
                       s->name, r.at, name, r.type);
            diag_hint(d, "compile with -fPIC, or audit with -fno-pic what is never shared");
        }
    }
    return count;
}

/* The largest functions of an object, each by its shortest name. */
static void note_functions(Diags *d, Loc loc, const Object *f)
{
    enum { NAMED = 3 };
    const ObjectSymbol *named[NAMED] = {NULL};

    for (uint32_t n = 0; n < NAMED; n++) {
        for (uint32_t i = 1; i < f->nsymbols; i++) {
            const ObjectSymbol *s = &f->symbols[i];
            bool                taken = !s->size || s->section == 0 || s->section >= f->nsections ||
                         !(f->sections[s->section].flags & SECTION_EXEC);

            for (uint32_t k = 0; k < n; k++)
                taken = taken || same_function(s, named[k]);
            if (taken)
                continue;
            if (!named[n] || s->size > named[n]->size ||
                (same_function(s, named[n]) && strlen(s->name) < strlen(named[n]->name)))
                named[n] = s;
        }
        if (!named[n])
            break;
        diag_note(d, loc, "'%s': %" PRIu64 " bytes", named[n]->name, named[n]->size);
    }
}

bool audit_object(Diags *d, Arena *a, const char *file, Bytes object, const AuditRules *rules,
                  AuditReport *out)
{
    Loc      loc = {.file = file};
    Object   f;
    uint32_t before = diag_errors(d);

    *out = (AuditReport){0};
    if (!object_read(d, a, file, object, &f))
        return false;
    audit_sections(d, loc, &f, out);
    audit_symbols(d, a, loc, &f, rules, out);
    out->textrels = audit_relocs(d, loc, &f, rules);
    if (rules->max_code && out->code > rules->max_code) {
        diag_error(d, E_BUDGET, loc, "the code has %" PRIu64 " bytes, the limit is %" PRIu64,
                   out->code, rules->max_code);
        note_functions(d, loc, &f);
        diag_hint(d, "-Os or a lower level of -O makes less code");
    }
    if (rules->max_weights && out->rodata > rules->max_weights)
        diag_error(d, E_BUDGET, loc, "constants have %" PRIu64 " bytes, the limit is %" PRIu64,
                   out->rodata, rules->max_weights);
    return diag_errors(d) == before;
}
