/* elf_write.c: relocatable objects for read-only data.
 *
 * Weights reach a program as an object file with one section, written here byte by byte: C text
 * would be six times their size.
 */
#include "objects/elf.h"

#include <string.h>

/* ---- targets ------------------------------------------------------------------------------ */

bool elf_target(Diags *d, const char *triple, ObjectTarget *out)
{
    /* Flags are those of the objects LLVM makes for the triple's usual ABI. */
    static const struct {
        const char  *prefix;
        ObjectTarget target;
    } rows[] = {
        {"x86_64", {64, false, MACHINE_X86_64, 0}},
        {"i386", {32, false, MACHINE_X86, 0}},
        {"i486", {32, false, MACHINE_X86, 0}},
        {"i586", {32, false, MACHINE_X86, 0}},
        {"i686", {32, false, MACHINE_X86, 0}},
        {"aarch64", {64, false, MACHINE_AARCH64, 0}},
        {"arm64", {64, false, MACHINE_AARCH64, 0}},
        {"arm", {32, false, MACHINE_ARM, 0x5000000}},
        {"thumb", {32, false, MACHINE_ARM, 0x5000000}},
        {"riscv64", {64, false, MACHINE_RISCV, 5}},
        {"riscv32", {32, false, MACHINE_RISCV, 1}},
        {"powerpc64le", {64, false, MACHINE_PPC64, 2}},
    };

    for (size_t i = 0; i < COUNT(rows) && object_format_of(triple) == OBJECT_ELF; i++)
        if (str_starts(triple, rows[i].prefix)) {
            *out = rows[i].target;
            return true;
        }
    return diag_error(d, E_PACK, NO_LOC, "objects for '%s' are not ELF files", triple);
}

void elf_target_abi(ObjectTarget *t, const char *abi)
{
    enum { FLOAT_ABI = 6, SINGLE = 2, DOUBLE = 4 };

    if (t->machine != MACHINE_RISCV || !*abi)
        return;
    t->flags = (t->flags & ~(uint32_t)FLOAT_ABI) | (str_ends(abi, "d")   ? DOUBLE
                                                    : str_ends(abi, "f") ? SINGLE
                                                                         : 0);
}

/* ---- data ----------------------------------------------------------------------------------- */

/* The file header, but for what elf_put_sections adds. */
static void put_ehdr(uint8_t *p, const ObjectTarget *t, const ElfLayout *l)
{
    memcpy(p, "\177ELF", 4);
    p[4] = l->wide ? 2 : 1;
    p[5] = l->big ? 2 : 1;
    p[6] = 1;
    elf_put(p + 16, l, ET_REL, 2);
    elf_put(p + 18, l, t->machine, 2);
    elf_put(p + 20, l, 1, 4);
    elf_put_flags(p, l, t->flags);
    elf_put(p + 28 + 3 * l->word, l, l->ehdr, 2);
    elf_put(p + 34 + 3 * l->word, l, l->shdr, 2);
}

/* Adds a name with its NUL, gives its offset. */
static uint32_t add_name(StrBuf *s, const char *name)
{
    uint32_t at = (uint32_t)s->n;

    str_addn(s, name, strlen(name) + 1);
    return at;
}

uint64_t elf_data_flags(uint16_t machine, const char *section)
{
    return SHF_ALLOC |
           (machine == MACHINE_X86_64 && str_starts(section, ".lrodata") ? SHF_X86_64_LARGE : 0);
}

Bytes elf_blob(Arena *a, const ObjectTarget *t, const char *symbol, Bytes data)
{
    return elf_blob_in(a, t, arena_printf(a, ".rodata.%s", symbol), symbol, data);
}

Bytes elf_blob_in(Arena *a, const ObjectTarget *t, const char *section, const char *symbol,
                  Bytes data)
{
    enum { DATA = 1, STACK, SYMTAB, STRTAB, SHSTRTAB, NSECTIONS };
    ElfLayout l = elf_layout(t->bits == 64, t->big_endian);
    StrBuf    names = strbuf(a), strings = strbuf(a);
    ElfShdr   s[NSECTIONS] = {{0}};
    uint64_t  at, total;
    uint8_t  *p;
    ElfSym    sym = {.info = STB_GLOBAL << 4 | STT_OBJECT, .section = DATA, .size = data.n};

    str_addc(&names, 0);
    str_addc(&strings, 0);
    sym.name = add_name(&strings, symbol);
    s[DATA] = (ElfShdr){.name = add_name(&names, section),
                        .type = SHT_PROGBITS,
                        .flags = elf_data_flags(t->machine, section),
                        .size = data.n,
                        .align = DATA_ALIGN};
    s[STACK] =
        (ElfShdr){.name = add_name(&names, ".note.GNU-stack"), .type = SHT_PROGBITS, .align = 1};
    s[SYMTAB] = (ElfShdr){.name = add_name(&names, ".symtab"),
                          .type = SHT_SYMTAB,
                          .link = STRTAB,
                          .info = 1,
                          .size = 2 * l.sym,
                          .align = l.word,
                          .entsize = l.sym};
    s[STRTAB] = (ElfShdr){.name = add_name(&names, ".strtab"), .type = SHT_STRTAB, .align = 1};
    s[SHSTRTAB] = (ElfShdr){.name = add_name(&names, ".shstrtab"), .type = SHT_STRTAB, .align = 1};
    s[STRTAB].size = strings.n;
    s[SHSTRTAB].size = names.n;
    at = l.ehdr;
    for (uint32_t i = 1; i < NSECTIONS; i++) {
        s[i].offset = at = align_up(at, s[i].align);
        at += s[i].size;
    }
    at = align_up(at, l.word);
    total = at + (uint64_t)NSECTIONS * l.shdr;

    p = arena_alloc(a, total);
    put_ehdr(p, t, &l);
    elf_put_sections(p, &l, at, NSECTIONS, SHSTRTAB);
    if (data.n)
        memcpy(p + s[DATA].offset, data.at, data.n);
    elf_put_sym(p + s[SYMTAB].offset + l.sym, &l, &sym);
    memcpy(p + s[STRTAB].offset, strings.at, strings.n);
    memcpy(p + s[SHSTRTAB].offset, names.at, names.n);
    for (uint32_t i = 0; i < NSECTIONS; i++)
        elf_put_shdr(p + at + i * l.shdr, &l, &s[i]);
    return (Bytes){p, total};
}
