/* macho.c: sections and symbols of Mach-O objects, 64 bits, and objects for data.
 *
 *   | header | load commands: segments with their sections, symbol table | bytes ... |
 */
#include "objects/format.h"

#include <stdlib.h>
#include <string.h>

enum {
    X86_64 = 0x01000007,
    ARM64 = 0x0100000c,
    LC_SYMTAB = 2,
    LC_SEGMENT_64 = 0x19,
    LC_BUILD_VERSION = 0x32,
    SEGMENT_BYTES = 72,
    SHDR_BYTES = 80,
    NLIST_BYTES = 16,
    S_ZEROFILL = 1,
    S_GB_ZEROFILL = 12,
    S_THREAD_ZEROFILL = 0x12,
    S_MOD_INIT = 9,
    S_MOD_TERM = 10,
    S_THREAD_FIRST = 0x11,
    S_THREAD_LAST = 0x15,
    N_STAB = 0xe0,
    N_PEXT = 0x10,
    N_TYPE = 0x0e,
    N_SECT = 0x0e,
    N_EXT = 1,
    N_WEAK_REF = 0x40,
    N_WEAK_DEF = 0x80
};

static bool broken(Diags *d, const char *file)
{
    return diag_error(d, E_PACK, (Loc){.file = file}, "not a valid Mach-O file");
}

static const char *name16(Arena *a, Reader *r)
{
    Bytes b = read_bytes(r, 16);

    return b.n ? arena_printf(a, "%.*s", 16, (const char *)b.at) : "";
}

static ObjectSection section(Arena *a, Bytes file, Reader r)
{
    const char   *name = name16(a, &r), *segment = name16(a, &r);
    ObjectSection s = {.name = arena_printf(a, "%s,%s", segment, name), .type = 1};
    uint32_t      flags, type, relocs, nrelocs;

    s.address = read_u64(&r);
    s.size = read_u64(&r);
    s.offset = read_u32(&r);
    s.align = (uint64_t)1 << (read_u32(&r) & 31);
    relocs = read_u32(&r);
    nrelocs = read_u32(&r);
    flags = read_u32(&r);
    type = flags & 255;
    if (type != S_ZEROFILL && type != S_GB_ZEROFILL && type != S_THREAD_ZEROFILL)
        s.data = part_at(file, s.offset, s.size);
    s.relocs = part_at(file, relocs, (uint64_t)nrelocs * MACHO_RELOC_BYTES);
    if (!strcmp(segment, "__DWARF") || !strcmp(segment, "__LD"))
        return s;
    s.flags = SECTION_ALLOC;
    if (flags & 0x80000400) /* instructions, all or some */
        s.flags |= SECTION_EXEC;
    if (!strcmp(segment, "__DATA") && strcmp(name, "__const"))
        s.flags |= SECTION_WRITE;
    if (type >= S_THREAD_FIRST && type <= S_THREAD_LAST)
        s.flags |= SECTION_TLS;
    if (type == S_MOD_INIT || type == S_MOD_TERM)
        s.kind = SECTION_INIT;
    return s;
}

static bool symbols(Diags *d, Arena *a, const char *file, Bytes b, Reader r, Object *out)
{
    uint32_t at = read_u32(&r), n = read_u32(&r), strings = read_u32(&r), bytes = read_u32(&r);

    if (at > b.n || n > (b.n - at) / NLIST_BYTES || strings > b.n || bytes > b.n - strings)
        return broken(d, file);
    out->symbols = NEW_ARRAY(a, ObjectSymbol, n + 1);
    out->nsymbols = 1; /* the first of ELF is no symbol */
    out->numbers = NEW_ARRAY(a, uint32_t, n + 1);
    out->nnumbers = n;
    for (uint32_t i = 0; i < n; i++) {
        Reader       e = reader_at(b, at + (uint64_t)i * NLIST_BYTES);
        uint32_t     name = read_u32(&e), type = read_u8(&e), sect = read_u8(&e);
        uint32_t     desc = read_u16(&e);
        const char  *text = (const char *)b.at + strings + name;
        ObjectSymbol s = {.value = read_u64(&e)};

        if (type & N_STAB)
            continue;
        if (name >= bytes || !memchr(text, 0, bytes - name))
            return broken(d, file);
        s.name = text;
        s.section = (type & N_TYPE) == 0 ? 0 : sect ? sect : UINT16_MAX;
        s.bind = !(type & N_EXT)                                ? 0
                 : desc & (s.section ? N_WEAK_DEF : N_WEAK_REF) ? SYMBOL_WEAK
                                                                : SYMBOL_GLOBAL;
        s.hidden = type & N_PEXT;
        out->numbers[i] = out->nsymbols;
        out->symbols[out->nsymbols++] = s;
    }
    return true;
}

/* | address | symbol or section: 24, relative: 1, length: 2, symbol: 1, type: 4 | */
ObjectReloc macho_reloc(const Object *o, const ObjectSection *s, uint32_t i)
{
    enum { UNSIGNED = 0, BYTES_8 = 3 };
    Reader      r = reader_at(s->relocs, (uint64_t)i * MACHO_RELOC_BYTES);
    ObjectReloc out = {.at = read_u32(&r)};
    uint32_t    word = read_u32(&r), number = word & 0xffffff;

    out.type = word >> 28;
    if (out.type != UNSIGNED || (word >> 25 & 3) != BYTES_8 || word >> 24 & 1)
        return out;
    if (word >> 27 & 1) {
        out.kind = RELOC_SYMBOL;
        out.symbol = number < o->nnumbers ? o->numbers[number] : 0;
    } else if (number < o->nsections) {
        out.kind = RELOC_SECTION;
        out.symbol = number;
        out.addend = -o->sections[number].address;
    }
    return out;
}

bool macho_read(Diags *d, Arena *a, const char *file, Bytes object, Object *out)
{
    Reader   r = reader_at(object, 4);
    uint32_t cpu = read_u32(&r), ncommands, type;
    uint64_t at = 32;
    VEC(ObjectSection) all = {0};

    read_u32(&r); /* subtype */
    type = read_u32(&r);
    ncommands = read_u32(&r);
    *out =
        (Object){.format = OBJECT_MACHO,
                 .target = {.bits = 64, .machine = cpu == ARM64 ? MACHINE_AARCH64 : MACHINE_X86_64},
                 .relocatable = type == 1,
                 .underscore = true};
    vec_push(a, &all, (ObjectSection){.name = ""});
    for (uint32_t i = 0; i < ncommands; i++) {
        Reader   c = reader_at(object, at);
        uint32_t kind = read_u32(&c), bytes = read_u32(&c);

        if (bytes < 8 || at > object.n || bytes > object.n - at)
            return broken(d, file);
        if (kind == LC_SEGMENT_64) {
            Reader   n = reader_at(object, at + 64);
            uint32_t sections = read_u32(&n);

            if (bytes < SEGMENT_BYTES || sections > (bytes - SEGMENT_BYTES) / SHDR_BYTES)
                return broken(d, file);
            for (uint32_t k = 0; k < sections; k++)
                vec_push(a, &all,
                         section(a, object,
                                 reader_at(object, at + SEGMENT_BYTES + (uint64_t)k * SHDR_BYTES)));
        } else if (kind == LC_SYMTAB && !symbols(d, a, file, object, c, out))
            return false;
        at += bytes;
    }
    out->sections = all.at;
    out->nsections = all.n;
    return true;
}

/* ---- writing ------------------------------------------------------------------------------------ */

/* What the linker holds against that of other objects: system and least version. */
typedef struct {
    uint32_t platform, version; /* major << 16 | minor << 8; 0: not said */
} Build;

static Build build_of(const char *triple)
{
    static const struct {
        const char *name;
        uint32_t    device, simulator;
    } rows[] = {{"-macosx", 1, 1}, {"-macos", 1, 1},   {"-darwin", 1, 1}, {"-ios", 2, 7},
                {"-tvos", 3, 8},   {"-watchos", 4, 9}, {"-xros", 11, 12}, {"-visionos", 11, 12}};
    enum { CATALYST = 6 };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const char   *at = strstr(triple, rows[i].name);
        char         *end;
        unsigned long major, minor;

        if (!at)
            continue;
        major = strtoul(at + strlen(rows[i].name), &end, 10);
        minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
        if (!strcmp(rows[i].name, "-darwin") && major) { /* of the kernel */
            minor = major < 20 ? major - 4 : 0;
            major = major < 20 ? 10 : major - 9;
        }
        return (Build){strstr(triple, "-macabi")      ? CATALYST
                       : strstr(triple, "-simulator") ? rows[i].simulator
                                                      : rows[i].device,
                       (uint32_t)((major & 0xffff) << 16 | (minor & 0xff) << 8)};
    }
    return (Build){0};
}

/* One segment without a name, as objects have it, and its section. */
static void add_segment(StrBuf *s, uint64_t at, uint64_t bytes)
{
    enum { ALL = 7, ALIGN_64 = 6 };

    add_le(s, LC_SEGMENT_64, 4);
    add_le(s, SEGMENT_BYTES + SHDR_BYTES, 4);
    add_zeros(s, 16 + 8);
    add_le(s, bytes, 8);
    add_le(s, at, 8);
    add_le(s, bytes, 8);
    add_le(s, ALL, 4);
    add_le(s, ALL, 4);
    add_le(s, 1, 4); /* sections */
    add_le(s, 0, 4);
    add_field(s, "__const", 16);
    add_field(s, "__TEXT", 16);
    add_le(s, 0, 8);
    add_le(s, bytes, 8);
    add_le(s, at, 4);
    add_le(s, ALIGN_64, 4);
    add_zeros(s, 24);
}

bool macho_blob(Diags *d, Arena *a, const char *triple, const char *symbol, Bytes data, Bytes *out)
{
    enum { HEADER_BYTES = 32, SYMTAB_BYTES = 24, BUILD_BYTES = 24, SUBSECTIONS = 0x2000 };
    bool     arm = str_starts(triple, "arm64-") || str_starts(triple, "aarch64");
    Build    build = build_of(triple);
    uint32_t commands = SEGMENT_BYTES + SHDR_BYTES + SYMTAB_BYTES;
    uint64_t at, symbols, strings = align_up(strlen(symbol) + 3, 8);
    StrBuf   s = strbuf(a);

    if (!arm && !str_starts(triple, "x86_64-"))
        return diag_error(d, E_PACK, NO_LOC, "no objects for '%s' are known", triple);
    commands += build.version ? BUILD_BYTES : 0;
    at = align_up(HEADER_BYTES + commands, DATA_ALIGN);
    symbols = align_up(at + data.n, 8);
    str_reserve(&s, symbols + NLIST_BYTES + strings);
    add_le(&s, 0xfeedfacf, 4);
    add_le(&s, arm ? ARM64 : X86_64, 4);
    add_le(&s, arm ? 0 : 3, 4); /* all of them */
    add_le(&s, 1, 4);           /* an object */
    add_le(&s, build.version ? 3 : 2, 4);
    add_le(&s, commands, 4);
    add_le(&s, SUBSECTIONS, 4);
    add_le(&s, 0, 4);
    add_segment(&s, at, data.n);
    if (build.version) {
        add_le(&s, LC_BUILD_VERSION, 4);
        add_le(&s, BUILD_BYTES, 4);
        add_le(&s, build.platform, 4);
        add_le(&s, build.version, 4);
        add_zeros(&s, 8); /* version of the SDK, tools */
    }
    add_le(&s, LC_SYMTAB, 4);
    add_le(&s, SYMTAB_BYTES, 4);
    add_le(&s, symbols, 4);
    add_le(&s, 1, 4);
    add_le(&s, symbols + NLIST_BYTES, 4);
    add_le(&s, strings, 4);
    add_zeros(&s, at - s.n);
    str_addn(&s, (const char *)data.at, data.n);
    add_zeros(&s, symbols - s.n);
    add_le(&s, 1, 4); /* the name's place, behind an empty one */
    add_le(&s, N_SECT | N_EXT, 1);
    add_le(&s, 1, 1); /* section */
    add_zeros(&s, 10);
    str_addc(&s, 0);
    str_addc(&s, '_');
    add_field(&s, symbol, (uint32_t)strings - 2);
    *out = (Bytes){(const uint8_t *)s.at, s.n};
    return true;
}
