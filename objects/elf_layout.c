/* elf_layout.c: the bytes of ELF's tables, and a file's section headers.
 *
 * 32 and 64 bits, both byte orders.  Nothing is taken on trust: files are bounded like any other
 * input.
 */
#include "objects/elf.h"

#include <string.h>

/* ---- the two classes -------------------------------------------------------------------------- */

ElfLayout elf_layout(bool wide, bool big)
{
    return wide ? (ElfLayout){true, big, 64, 64, 24, 8} : (ElfLayout){false, big, 52, 40, 16, 4};
}

void elf_put(uint8_t *at, const ElfLayout *l, uint64_t value, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        at[l->big ? bytes - 1 - i : i] = (uint8_t)(value >> 8 * i);
}

uint64_t elf_get(const uint8_t *at, const ElfLayout *l, uint32_t bytes)
{
    uint64_t value = 0;

    for (uint32_t i = 0; i < bytes; i++)
        value |= (uint64_t)at[l->big ? bytes - 1 - i : i] << 8 * i;
    return value;
}

void elf_put_shdr(uint8_t *p, const ElfLayout *l, const ElfShdr *s)
{
    uint32_t w = l->word;

    elf_put(p, l, s->name, 4);
    elf_put(p + 4, l, s->type, 4);
    elf_put(p + 8, l, s->flags, w);
    elf_put(p + 8 + w, l, s->address, w);
    elf_put(p + 8 + 2 * w, l, s->offset, w);
    elf_put(p + 8 + 3 * w, l, s->size, w);
    elf_put(p + 8 + 4 * w, l, s->link, 4);
    elf_put(p + 12 + 4 * w, l, s->info, 4);
    elf_put(p + 16 + 4 * w, l, s->align, w);
    elf_put(p + 16 + 5 * w, l, s->entsize, w);
}

static ElfShdr elf_get_shdr(const uint8_t *p, const ElfLayout *l)
{
    uint32_t w = l->word;

    return (ElfShdr){
        .name = (uint32_t)elf_get(p, l, 4),
        .type = (uint32_t)elf_get(p + 4, l, 4),
        .flags = elf_get(p + 8, l, w),
        .address = elf_get(p + 8 + w, l, w),
        .offset = elf_get(p + 8 + 2 * w, l, w),
        .size = elf_get(p + 8 + 3 * w, l, w),
        .link = (uint32_t)elf_get(p + 8 + 4 * w, l, 4),
        .info = (uint32_t)elf_get(p + 12 + 4 * w, l, 4),
        .align = elf_get(p + 16 + 4 * w, l, w),
        .entsize = elf_get(p + 16 + 5 * w, l, w),
    };
}

void elf_put_sym(uint8_t *p, const ElfLayout *l, const ElfSym *s)
{
    elf_put(p, l, s->name, 4);
    p[l->wide ? 4 : 12] = s->info;
    p[l->wide ? 5 : 13] = s->other;
    elf_put(p + (l->wide ? 6 : 14), l, s->section, 2);
    elf_put(p + (l->wide ? 8 : 4), l, s->value, l->word);
    elf_put(p + (l->wide ? 16 : 8), l, s->size, l->word);
}

ElfSym elf_get_sym(const uint8_t *p, const ElfLayout *l)
{
    return (ElfSym){
        .name = (uint32_t)elf_get(p, l, 4),
        .info = p[l->wide ? 4 : 12],
        .other = p[l->wide ? 5 : 13],
        .section = (uint16_t)elf_get(p + (l->wide ? 6 : 14), l, 2),
        .value = elf_get(p + (l->wide ? 8 : 4), l, l->word),
        .size = elf_get(p + (l->wide ? 16 : 8), l, l->word),
    };
}

void elf_put_sections(uint8_t *ehdr, const ElfLayout *l, uint64_t at, uint32_t n, uint32_t names)
{
    uint32_t w = l->word;

    elf_put(ehdr + 24 + 2 * w, l, at, w);
    elf_put(ehdr + 36 + 3 * w, l, n, 2);
    elf_put(ehdr + 38 + 3 * w, l, names, 2);
}

void elf_put_flags(uint8_t *ehdr, const ElfLayout *l, uint32_t flags)
{
    elf_put(ehdr + 24 + 3 * l->word, l, flags, 4);
}

uint32_t elf_get_flags(const uint8_t *ehdr, const ElfLayout *l)
{
    return (uint32_t)elf_get(ehdr + 24 + 3 * l->word, l, 4);
}

uint16_t elf_get_machine(const uint8_t *ehdr, const ElfLayout *l)
{
    return (uint16_t)elf_get(ehdr + 18, l, 2);
}

/* ---- section headers of a file ------------------------------------------------------------------ */

static bool in_file(Bytes b, uint64_t offset, uint64_t size)
{
    return offset <= b.n && size <= b.n - offset;
}

bool elf_open(Arena *a, Bytes b, ElfRaw *r)
{
    uint64_t at;
    uint32_t w;

    if (b.n < 52 || object_format(b) != OBJECT_ELF || b.at[4] < 1 || b.at[4] > 2 || b.at[5] < 1 ||
        b.at[5] > 2)
        return false;
    *r = (ElfRaw){.l = elf_layout(b.at[4] == 2, b.at[5] == 2), .b = b};
    w = r->l.word;
    if (b.n < r->l.ehdr)
        return false;
    at = elf_get(b.at + 24 + 2 * w, &r->l, w);
    r->n = (uint32_t)elf_get(b.at + 36 + 3 * w, &r->l, 2);
    r->names = (uint32_t)elf_get(b.at + 38 + 3 * w, &r->l, 2);
    if (r->n == 0 || r->names >= r->n || elf_get(b.at + 34 + 3 * w, &r->l, 2) != r->l.shdr ||
        !in_file(b, at, (uint64_t)r->n * r->l.shdr))
        return false;
    r->s = NEW_ARRAY(a, ElfShdr, r->n);
    for (uint32_t i = 0; i < r->n; i++) {
        ElfShdr *s = &r->s[i];

        *s = elf_get_shdr(b.at + at + (uint64_t)i * r->l.shdr, &r->l);
        if ((s->type != SHT_NOBITS && !in_file(b, s->offset, s->size)) || s->link >= r->n)
            return false;
    }
    return r->s[r->names].type == SHT_STRTAB;
}

Bytes elf_bytes(const ElfRaw *r, uint32_t section)
{
    const ElfShdr *s = &r->s[section];

    return s->type == SHT_NOBITS ? (Bytes){0} : (Bytes){r->b.at + s->offset, s->size};
}

const char *elf_string(const ElfRaw *r, uint32_t table, uint64_t offset)
{
    Bytes b = elf_bytes(r, table);

    if (r->s[table].type != SHT_STRTAB || offset >= b.n || !memchr(b.at + offset, 0, b.n - offset))
        return NULL;
    return (const char *)b.at + offset;
}

const char *elf_section_name(const ElfRaw *r, uint32_t section)
{
    const char *name = section ? elf_string(r, r->names, r->s[section].name) : NULL;

    return name ? name : "";
}

uint32_t elf_table(const ElfRaw *r, uint32_t type)
{
    for (uint32_t i = 1; i < r->n; i++)
        if (r->s[i].entsize == r->l.sym && r->s[i].type == type)
            return i;
    return 0;
}

uint32_t elf_table_count(const ElfRaw *r, uint32_t table)
{
    return table ? (uint32_t)(r->s[table].size / r->l.sym) : 0;
}

ElfSym elf_table_at(const ElfRaw *r, uint32_t table, uint32_t i)
{
    return elf_get_sym(r->b.at + r->s[table].offset + (uint64_t)i * r->l.sym, &r->l);
}
