/* coff.c: sections and symbols of COFF objects (Windows), and objects for data.
 *
 *   | header | section headers | bytes ... | symbols | strings |
 *
 * Long names lie in the string table.  COFF has no hidden symbols: what other objects can see is
 * kept apart by the entry's prefix alone.
 */
#include "objects/format.h"

#include <stdlib.h>
#include <string.h>

enum {
    I386 = 0x14c,
    AMD64 = 0x8664,
    ARM64 = 0xaa64,
    ARMNT = 0x1c4,
    HEADER_BYTES = 20,
    SHDR_BYTES = 40,
    SYMBOL_BYTES = 18,
    CNT_CODE = 0x20,
    CNT_ZEROS = 0x80,
    LNK_INFO = 0x200,
    LNK_REMOVE = 0x800,
    LNK_MANY_RELOCS = 0x01000000, /* the first says how many */
    MEM_DISCARDABLE = 0x02000000,
    MEM_EXECUTE = 0x20000000,
    CLASS_EXTERNAL = 2,
    CLASS_WEAK = 105
};
#define MEM_READ 0x40000000u
#define MEM_WRITE 0x80000000u

static bool broken(Diags *d, const char *file)
{
    return diag_error(d, E_PACK, (Loc){.file = file}, "not a valid COFF file");
}

/* A name of the string table; "" if there is none. */
static const char *long_name(Bytes strings, uint64_t at)
{
    return at < strings.n && memchr(strings.at + at, 0, strings.n - at)
               ? (const char *)strings.at + at
               : "";
}

static ObjectSection section(Arena *a, Bytes file, Reader r, Bytes strings)
{
    Bytes         b = read_bytes(&r, 8);
    const char   *name = b.n ? arena_printf(a, "%.*s", 8, (const char *)b.at) : "";
    ObjectSection s = {.type = 1, .align = 1};
    uint32_t      flags, relocs, nrelocs;

    s.name = *name == '/' ? long_name(strings, strtoul(name + 1, NULL, 10)) : name;
    read_u64(&r); /* size and address in memory */
    s.size = read_u32(&r);
    s.offset = read_u32(&r);
    relocs = read_u32(&r);
    read_u32(&r); /* line numbers */
    nrelocs = read_u16(&r);
    read_u16(&r);
    flags = read_u32(&r);
    if (!(flags & CNT_ZEROS))
        s.data = part_at(file, s.offset, s.size);
    if (flags & LNK_MANY_RELOCS && nrelocs == UINT16_MAX) {
        Reader first = reader_at(file, relocs);

        nrelocs = read_u32(&first);
    }
    s.relocs = part_at(file, relocs, (uint64_t)nrelocs * COFF_RELOC_BYTES);
    if (flags & (LNK_INFO | LNK_REMOVE | MEM_DISCARDABLE))
        return s;
    s.flags = SECTION_ALLOC | (flags & (CNT_CODE | MEM_EXECUTE) ? SECTION_EXEC : 0) |
              (flags & MEM_WRITE ? SECTION_WRITE : 0);
    if (str_starts(s.name, ".tls"))
        s.flags |= SECTION_TLS;
    if (str_starts(s.name, ".CRT$"))
        s.kind = SECTION_INIT;
    return s;
}

static const struct {
    const char  *prefix; /* of triples */
    uint16_t     number;
    ObjectTarget target;
} machines[] = {{"x86_64", AMD64, {.bits = 64, .machine = MACHINE_X86_64}},
                {"aarch64", ARM64, {.bits = 64, .machine = MACHINE_AARCH64}},
                {"arm64", ARM64, {.bits = 64, .machine = MACHINE_AARCH64}},
                {"i", I386, {.bits = 32, .machine = MACHINE_X86}},
                {"arm", ARMNT, {.bits = 32, .machine = MACHINE_ARM}},
                {"thumb", ARMNT, {.bits = 32, .machine = MACHINE_ARM}}};

static ObjectTarget target_of(uint32_t number)
{
    for (size_t i = 0; i < COUNT(machines); i++)
        if (machines[i].number == number)
            return machines[i].target;
    return (ObjectTarget){.bits = 32, .machine = MACHINE_ARM}; /* the older ones are Arm */
}

/* 0: none. */
static uint32_t machine_of(const char *triple)
{
    for (size_t i = 0; i < COUNT(machines); i++)
        if (str_starts(triple, machines[i].prefix))
            return machines[i].number;
    return 0;
}

/* Numbers in memory, of which linkers keep one for all objects, and the mark of those with floats:
 * they cannot clash. */
static bool pooled(const char *name)
{
    static const char *const prefixes[] = {"__real@", "__xmm@", "__ymm@", "__zmm@", "_fltused"};

    for (size_t i = 0; i < COUNT(prefixes); i++)
        if (str_starts(name, prefixes[i]) || (*name == '_' && str_starts(name + 1, prefixes[i])))
            return true;
    return false;
}

/* | address | symbol | type | */
ObjectReloc coff_reloc(const Object *o, const ObjectSection *s, uint32_t i)
{
    static const struct {
        uint16_t machine, pointer;
    } rows[] = {{MACHINE_X86_64, 1}, {MACHINE_AARCH64, 14}, {MACHINE_X86, 6}, {MACHINE_ARM, 1}};
    Reader      r = reader_at(s->relocs, (uint64_t)i * COFF_RELOC_BYTES);
    ObjectReloc out = {.at = read_u32(&r)};
    uint32_t    number = read_u32(&r);

    out.symbol = number < o->nnumbers ? o->numbers[number] : 0;
    out.type = read_u16(&r);
    for (size_t k = 0; k < COUNT(rows); k++)
        if (rows[k].machine == o->target.machine && rows[k].pointer == out.type)
            out.kind = RELOC_SYMBOL;
    return out;
}

bool coff_read(Diags *d, Arena *a, const char *file, Bytes object, Object *out)
{
    Reader   r = reader(object);
    uint32_t machine = read_u16(&r), nsections = read_u16(&r), at, n;
    uint64_t table, headers;
    Bytes    strings = {0};

    read_u32(&r); /* time */
    at = read_u32(&r);
    n = read_u32(&r);
    headers = HEADER_BYTES + (uint64_t)read_u16(&r);
    table = at + (uint64_t)n * SYMBOL_BYTES;
    if (headers + (uint64_t)nsections * SHDR_BYTES > object.n || table > object.n)
        return broken(d, file);
    if (at)
        strings = (Bytes){object.at + table, object.n - table};
    *out = (Object){.format = OBJECT_COFF,
                    .target = target_of(machine),
                    .relocatable = true,
                    .underscore = machine == I386,
                    .nsections = nsections + 1};
    out->sections = NEW_ARRAY(a, ObjectSection, nsections + 1);
    out->sections[0].name = "";
    for (uint32_t i = 0; i < nsections; i++)
        out->sections[i + 1] =
            section(a, object, reader_at(object, headers + (uint64_t)i * SHDR_BYTES), strings);
    out->symbols = NEW_ARRAY(a, ObjectSymbol, n + 1);
    out->nsymbols = 1;
    out->numbers = NEW_ARRAY(a, uint32_t, n + 1);
    out->nnumbers = n;
    for (uint32_t i = 0; at && i < n; i++) {
        Reader       e = reader_at(object, at + (uint64_t)i * SYMBOL_BYTES), name;
        Bytes        text = read_bytes(&e, 8);
        ObjectSymbol s = {.value = read_u32(&e)};
        int32_t      sect = (int16_t)read_u16(&e);
        uint32_t class, aux;

        read_u16(&e); /* type */
        class = read_u8(&e);
        aux = read_u8(&e);
        name = reader(text);
        s.name = read_u32(&name) == 0 ? long_name(strings, read_u32(&name))
                                      : arena_printf(a, "%.*s", 8, (const char *)text.at);
        s.section = sect > 0 ? (uint32_t)sect : sect ? UINT16_MAX : 0;
        if (pooled(s.name))
            s.hidden = true;
        s.bind = class == CLASS_EXTERNAL ? SYMBOL_GLOBAL
                 : class == CLASS_WEAK   ? SYMBOL_WEAK
                                         : SYMBOL_LOCAL;
        out->numbers[i] = out->nsymbols;
        out->symbols[out->nsymbols++] = s;
        i += aux;
    }
    return true;
}

/* ---- writing ------------------------------------------------------------------------------------ */

/* A symbol whose name is in the string table, or short. */
static void add_symbol(StrBuf *s, const char *name, uint32_t value, uint32_t section,
                       uint32_t class)
{
    if (*name) {
        add_field(s, name, 8);
    } else {
        add_le(s, 0, 4);
        add_le(s, 4, 4); /* behind the table's size */
    }
    add_le(s, value, 4);
    add_le(s, section, 2);
    add_le(s, 0, 2); /* type */
    add_le(s, class, 1);
    add_le(s, 0, 1);
}

bool coff_blob(Diags *d, Arena *a, const char *triple, const char *symbol, Bytes data, Bytes *out)
{
    enum { CNT_DATA = 0x40, ALIGN_64 = 0x700000, CLASS_STATIC = 3, ABSOLUTE = 0xffff };
    enum { SAFE_SEH = 1 }; /* no handler of exceptions is missing in a list of them */
    StrBuf      s = strbuf(a);
    uint32_t    at = HEADER_BYTES + SHDR_BYTES, machine = machine_of(triple);
    const char *name = arena_printf(a, "%s%s", machine == I386 ? "_" : "", symbol);

    if (!machine)
        return diag_error(d, E_PACK, NO_LOC, "no objects for '%s' are known", triple);
    str_reserve(&s, at + data.n + 256 + strlen(name));
    add_le(&s, machine, 2);
    add_le(&s, 1, 2); /* sections */
    add_le(&s, 0, 4);
    add_le(&s, at + data.n, 4); /* symbols */
    add_le(&s, 2, 4);
    add_le(&s, 0, 4);
    add_field(&s, ".rdata", 8);
    add_le(&s, 0, 8);
    add_le(&s, data.n, 4);
    add_le(&s, at, 4);
    add_zeros(&s, 12);
    add_le(&s, CNT_DATA | ALIGN_64 | MEM_READ, 4);
    str_addn(&s, (const char *)data.at, data.n);
    add_symbol(&s, "@feat.00", machine == I386 ? SAFE_SEH : 0, ABSOLUTE, CLASS_STATIC);
    add_symbol(&s, "", 0, 1, CLASS_EXTERNAL);
    add_le(&s, 4 + strlen(name) + 1, 4);
    str_addn(&s, name, strlen(name) + 1);
    *out = (Bytes){(const uint8_t *)s.at, s.n};
    return true;
}
