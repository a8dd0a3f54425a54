/* relocs.c: relocations; those of ELF files here, others by format.
 *
 * Those of data are addresses, of a symbol or in the same file.  Code and constants are shared
 * between processes only if the dynamic linker writes nothing into them: what needs the final
 * address (R_X86_64_64 in .rodata, a movw/movt pair in .text) makes the static linker refuse, or
 * ask for a "text relocation", which Android and hardened systems refuse in turn.
 */
#include "objects/elf.h"
#include "objects/format.h"

/* Those that need the final address, by machine: ranges of types. */
static const struct {
    uint16_t    machine;
    uint32_t    first, last;
    const char *name;
} absolute[] = {
    {MACHINE_X86_64, 1, 1, "R_X86_64_64"},
    {MACHINE_X86_64, 10, 11, "R_X86_64_32"},
    {MACHINE_X86_64, 12, 12, "R_X86_64_16"},
    {MACHINE_X86_64, 14, 14, "R_X86_64_8"},
    {MACHINE_X86, 1, 1, "R_386_32"},
    {MACHINE_X86, 20, 20, "R_386_16"},
    {MACHINE_X86, 22, 22, "R_386_8"},
    {MACHINE_AARCH64, 257, 259, "R_AARCH64_ABS"},
    {MACHINE_AARCH64, 263, 272, "R_AARCH64_MOVW"},
    {MACHINE_ARM, 2, 2, "R_ARM_ABS32"},
    {MACHINE_ARM, 43, 44, "R_ARM_MOVW_ABS"},
    {MACHINE_ARM, 47, 48, "R_ARM_THM_MOVW_ABS"},
    {MACHINE_RISCV, 1, 2, "R_RISCV_32"},
    {MACHINE_RISCV, 26, 28, "R_RISCV_HI20"},
};

/* The two that data have: an address in the same file, and that of a symbol. */
static RelocKind kind_of(const ObjectTarget *t, uint64_t type)
{
    static const struct {
        uint16_t machine;
        uint32_t relative, narrow, wide;
    } rows[] = {
        {MACHINE_X86, 8, 1, 1},     {MACHINE_PPC64, 22, 1, 38},        {MACHINE_ARM, 23, 2, 2},
        {MACHINE_X86_64, 8, 10, 1}, {MACHINE_AARCH64, 1027, 258, 257}, {MACHINE_RISCV, 3, 1, 2}};

    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].machine == t->machine)
            return type == rows[i].relative                                  ? RELOC_RELATIVE
                   : type == (t->bits == 64 ? rows[i].wide : rows[i].narrow) ? RELOC_SYMBOL
                                                                             : RELOC_OTHER;
    return RELOC_OTHER;
}

static uint32_t entry_bytes(const Object *o, const ObjectSection *s)
{
    return o->format == OBJECT_MACHO  ? MACHO_RELOC_BYTES
           : o->format == OBJECT_COFF ? COFF_RELOC_BYTES
                                      : (s->type == SHT_RELA ? 3 : 2) * o->target.bits / 8;
}

static Bytes entries(const Object *o, const ObjectSection *s)
{
    if (o->format != OBJECT_ELF)
        return s->relocs;
    return s->kind == SECTION_RELOCS ? s->data : (Bytes){0};
}

uint32_t reloc_count(const Object *o, const ObjectSection *s)
{
    uint64_t n = entries(o, s).n / entry_bytes(o, s);

    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static ObjectReloc elf_reloc(const Object *o, const ObjectSection *s, uint32_t i)
{
    uint32_t       w = o->target.bits / 8;
    const uint8_t *p = s->data.at + (uint64_t)i * entry_bytes(o, s);
    uint64_t       info = object_number(&o->target, p + w, w);
    ObjectReloc    r = {.at = object_number(&o->target, p, w),
                        .type = w == 8 ? info & 0xffffffff : info & 0xff,
                        .symbol = w == 8 ? info >> 32 : info >> 8,
                        .has_addend = s->type == SHT_RELA};

    if (r.has_addend)
        r.addend = object_number(&o->target, p + 2 * w, w);
    r.kind = kind_of(&o->target, r.type);
    return r;
}

ObjectReloc reloc_at(const Object *o, const ObjectSection *s, uint32_t i)
{
    return o->format == OBJECT_MACHO  ? macho_reloc(o, s, i)
           : o->format == OBJECT_COFF ? coff_reloc(o, s, i)
                                      : elf_reloc(o, s, i);
}

const char *reloc_absolute(const Object *o, const ObjectReloc *r)
{
    for (size_t i = 0; o->format == OBJECT_ELF && i < COUNT(absolute); i++)
        if (absolute[i].machine == o->target.machine && r->type >= absolute[i].first &&
            r->type <= absolute[i].last)
            return absolute[i].name;
    return NULL;
}
