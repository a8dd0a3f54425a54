/* elf.c: sections and symbols of an ELF file that anybody wrote, and what its dynamic section tells
 * the dynamic linker.
 */
#include "objects/elf.h"

#include <string.h>

enum {
    STB_WEAK = 2,
    STT_SECTION = 3,
    STV_INTERNAL = 1,
    STV_HIDDEN = 2,
    DT_NEEDED = 1,
    DT_SONAME = 14,
    DT_TEXTREL = 22,
    DT_FLAGS = 30,
    DF_TEXTREL = 4
};

static SectionKind kind_of(uint32_t type)
{
    switch (type) {
    case SHT_NOBITS: return SECTION_ZEROS;
    case SHT_INIT_ARRAY:
    case SHT_FINI_ARRAY:
    case SHT_PREINIT_ARRAY: return SECTION_INIT;
    case SHT_SYMTAB: return SECTION_SYMBOLS;
    case SHT_STRTAB: return SECTION_STRINGS;
    case SHT_RELA:
    case SHT_REL: return SECTION_RELOCS;
    default: return SECTION_BYTES; /* any number that a linker knows */
    }
}

static bool read_symbols(Arena *a, const ElfRaw *r, uint32_t table, ObjectSymbol **out, uint32_t *n)
{
    *n = elf_table_count(r, table);
    *out = NEW_ARRAY(a, ObjectSymbol, *n ? *n : 1);
    for (uint32_t i = 0; i < *n; i++) {
        ElfSym      s = elf_table_at(r, table, i);
        const char *name = elf_string(r, r->s[table].link, s.name);
        uint32_t    bind = s.info >> 4, type = s.info & 15, seen = s.other & 3;

        if (!name)
            return false;
        (*out)[i] = (ObjectSymbol){.name = name,
                                   .value = s.value,
                                   .size = s.size,
                                   .section = s.section,
                                   .bind = bind == STB_WEAK ? SYMBOL_WEAK
                                           : bind           ? SYMBOL_GLOBAL
                                                            : SYMBOL_LOCAL,
                                   .type = (uint8_t)type,
                                   .place = type == STT_SECTION || type == STT_FILE,
                                   .hidden = seen == STV_HIDDEN || seen == STV_INTERNAL};
    }
    return true;
}

/* The pairs of tag and value that the dynamic linker reads. */
static void read_dynamic(Arena *a, const ElfRaw *r, uint32_t section, Object *out)
{
    Bytes    b = elf_bytes(r, section);
    uint32_t w = r->l.word;
    VEC(const char *) needed = {0};

    for (uint64_t at = 0; b.n >= 2 * w && at <= b.n - 2 * w; at += 2 * w) {
        uint64_t    tag = elf_get(b.at + at, &r->l, w), value = elf_get(b.at + at + w, &r->l, w);
        const char *text = elf_string(r, r->s[section].link, value);

        if (tag == 0)
            break;
        if (tag == DT_TEXTREL || (tag == DT_FLAGS && value & DF_TEXTREL))
            out->textrels++;
        if (tag == DT_SONAME && text && !out->soname)
            out->soname = text;
        if (tag == DT_NEEDED && text)
            vec_push(a, &needed, text);
    }
    if (!needed.n)
        return;
    out->needed = needed.at;
    out->nneeded = needed.n;
}

bool elf_read(Diags *d, Arena *a, const char *file, Bytes object, Object *out)
{
    ElfRaw r;

    *out = (Object){.format = OBJECT_ELF};
    if (!elf_open(a, object, &r))
        return diag_error(d, E_PACK, (Loc){.file = file}, "not a valid ELF file");
    out->target = (ObjectTarget){.bits = r.l.wide ? 64 : 32,
                                 .big_endian = r.l.big,
                                 .machine = elf_get_machine(object.at, &r.l),
                                 .flags = elf_get_flags(object.at, &r.l)};
    out->relocatable = elf_get(object.at + 16, &r.l, 2) == ET_REL;
    out->nsections = r.n;
    out->sections = NEW_ARRAY(a, ObjectSection, r.n);
    out->sections[0].name = "";
    for (uint32_t i = 1; i < r.n; i++) {
        const ElfShdr *s = &r.s[i];

        out->sections[i] = (ObjectSection){.name = elf_section_name(&r, i),
                                           .kind = kind_of(s->type),
                                           .type = s->type,
                                           .flags = s->flags,
                                           .size = s->size,
                                           .align = s->align,
                                           .data = elf_bytes(&r, i),
                                           .link = s->link,
                                           .info = s->info,
                                           .offset = s->offset,
                                           .address = out->relocatable ? 0 : s->address};
        if (s->type == SHT_DYNAMIC)
            read_dynamic(a, &r, i, out);
    }
    /* A shared library may have lost .symtab. */
    uint32_t dynamic = elf_table(&r, SHT_DYNSYM), table = elf_table(&r, SHT_SYMTAB);

    if (!read_symbols(a, &r, table ? table : dynamic, &out->symbols, &out->nsymbols) ||
        !read_symbols(a, &r, dynamic, &out->dynamic, &out->ndynamic))
        return diag_error(d, E_PACK, (Loc){.file = file}, "not a valid ELF file");
    return true;
}
