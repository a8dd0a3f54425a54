/* macho.c: sections and symbols of Mach-O objects, 64 bits.
 *
 *   | header | load commands: segments with their sections, symbol table | bytes ... |
 */
#include "objects/objects.h"

#include <string.h>

enum {
    LC_SYMTAB = 2,
    LC_SEGMENT_64 = 0x19,
    SECTION_BYTES = 80,
    NLIST_BYTES = 16,
    S_MOD_INIT = 9,
    S_MOD_TERM = 10,
    S_THREAD_FIRST = 0x11,
    S_THREAD_LAST = 0x15,
    N_STAB = 0xe0,
    N_PEXT = 0x10,
    N_TYPE = 0x0e,
    N_EXT = 1,
    N_WEAK_REF = 0x40,
    N_WEAK_DEF = 0x80
};

static bool broken(Diags *d, const char *file)
{
    return diag_error(d, E_PACK, (Loc){.file = file}, "not a valid Mach-O file");
}

static Reader at_offset(Bytes b, uint64_t offset)
{
    return reader(offset <= b.n ? (Bytes){b.at + offset, b.n - offset} : (Bytes){0});
}

static const char *name16(Arena *a, Reader *r)
{
    Bytes b = read_bytes(r, 16);

    return b.n ? arena_printf(a, "%.*s", 16, (const char *)b.at) : "";
}

static ObjectSection section(Arena *a, Reader r)
{
    const char   *name = name16(a, &r), *segment = name16(a, &r);
    ObjectSection s = {.name = arena_printf(a, "%s,%s", segment, name), .type = 1};
    uint32_t      flags, type;

    read_u64(&r); /* address */
    s.size = read_u64(&r);
    read_u32(&r); /* offset */
    s.align = (uint64_t)1 << (read_u32(&r) & 31);
    read_u64(&r); /* relocations */
    flags = read_u32(&r);
    type = flags & 255;
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
        s.type = SECTION_INIT;
    return s;
}

static bool symbols(Diags *d, Arena *a, const char *file, Bytes b, Reader r, Object *out)
{
    uint32_t at = read_u32(&r), n = read_u32(&r), strings = read_u32(&r), bytes = read_u32(&r);

    if (at > b.n || n > (b.n - at) / NLIST_BYTES || strings > b.n || bytes > b.n - strings)
        return broken(d, file);
    out->symbols = NEW_ARRAY(a, ObjectSymbol, n + 1);
    out->nsymbols = 1; /* the first of ELF is no symbol */
    for (uint32_t i = 0; i < n; i++) {
        Reader       e = at_offset(b, at + (uint64_t)i * NLIST_BYTES);
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
        s.visibility = type & N_PEXT ? SYMBOL_HIDDEN : 0;
        out->symbols[out->nsymbols++] = s;
    }
    return true;
}

bool macho_read(Diags *d, Arena *a, const char *file, Bytes object, Object *out)
{
    Reader   r = at_offset(object, 4);
    uint32_t cpu = read_u32(&r), ncommands, type;
    uint64_t at = 32;
    VEC(ObjectSection) all = {0};

    read_u32(&r); /* subtype */
    type = read_u32(&r);
    ncommands = read_u32(&r);
    *out = (Object){.target = {.bits = 64, .machine = cpu == 0x0100000c ? 183 : 62},
                    .type = type == 1 ? 1 : 3,
                    .underscore = true};
    vec_push(a, &all, (ObjectSection){.name = ""});
    for (uint32_t i = 0; i < ncommands; i++) {
        Reader   c = at_offset(object, at);
        uint32_t kind = read_u32(&c), bytes = read_u32(&c);

        if (bytes < 8 || at > object.n || bytes > object.n - at)
            return broken(d, file);
        if (kind == LC_SEGMENT_64) {
            Reader   n = at_offset(object, at + 64);
            uint32_t sections = read_u32(&n);

            if (bytes < 72 || sections > (bytes - 72) / SECTION_BYTES)
                return broken(d, file);
            for (uint32_t k = 0; k < sections; k++)
                vec_push(a, &all,
                         section(a, at_offset(object, at + 72 + (uint64_t)k * SECTION_BYTES)));
        } else if (kind == LC_SYMTAB && !symbols(d, a, file, object, c, out))
            return false;
        at += bytes;
    }
    out->sections = all.at;
    out->nsections = all.n;
    return true;
}
