/* code_object.c: a relocatable object for an AMD GPU as a code object, the shared ELF file that the
 * GPU's driver loads.
 *
 * A linker's work, as far as an object needs it whose code calls nothing outside:
 *
 *     headers  .note .rodata .dynsym .hash .dynstr     a segment that is read
 *     .text                                            one that is executed
 *     .dynamic                                         what says where the tables are
 *     .symtab .strtab .shstrtab, section headers       not loaded
 *
 * Each segment begins on a page of its own, at its offset in the file and as many pages on. Source:
 * the System V ABI; LLVM's User Guide for the AMDGPU Backend, "Code Object".
 */
#include "objects/elf.h"

#include <string.h>

enum {
    PAGE = 4096,
    PHDR = 56, /* bytes of an entry */
    DYN = 16,
    SHT_NOTE = 7,
    SHT_HASH = 5,
    STT_FUNC = 2,
    STV_PROTECTED = 3,
    PT_LOAD = 1,
    PT_DYNAMIC = 2,
    PT_NOTE = 4,
    PT_PHDR = 6,
    PF_X = 1,
    PF_W = 2,
    PF_R = 4,
    DT_HASH = 4,
    DT_STRTAB = 5,
    DT_SYMTAB = 6,
    DT_STRSZ = 10,
    DT_SYMENT = 11,
    R_AMDGPU_REL32 = 4,
    R_AMDGPU_REL64 = 5,
    R_AMDGPU_REL32_LO = 10,
    R_AMDGPU_REL32_HI = 11,
    NPHDRS = 6,
    MOST_BYTES = 1 << 28
};

/* A section of the file. */
typedef struct {
    const char *name;
    ElfShdr     h; /* link by name, until all are known */
    const char *linked;
    uint32_t    of;    /* the object's; 0: made here */
    uint8_t    *bytes; /* h.size of them */
} Part;

typedef struct {
    Diags        *d;
    Arena        *a;
    const Object *o;
    ElfLayout     l;
    VEC(Part) parts;
    VEC(uint32_t) symbols; /* of the object that others see */
    uint32_t *part_of;     /* section of the object -> part; 0: none */
} Link;

static bool refuse(Link *k, const char *what)
{
    return diag_error(k->d, E_PACK, NO_LOC, "a code object cannot be made: %s", what);
}

/* ---- what there is ------------------------------------------------------------------------------- */

static uint32_t add(Link *k, Part p)
{
    vec_push(k->a, &k->parts, p);
    return k->parts.n - 1;
}

/* Sections of the object that are loaded: notes, other data, or code. */
static bool add_sections(Link *k, bool code, bool notes)
{
    for (uint32_t i = 1; i < k->o->nsections; i++) {
        const ObjectSection *s = &k->o->sections[i];
        bool                 exec = s->flags & SECTION_EXEC, note = s->type == SHT_NOTE;

        if (!(s->flags & SECTION_ALLOC) || !s->size || exec != code || (!code && note != notes))
            continue;
        if (s->flags & SECTION_WRITE || s->kind != SECTION_BYTES || s->data.n != s->size)
            return refuse(k, "it has data that is written");
        k->part_of[i] =
            add(k, (Part){.name = s->name,
                          .h = {.type = s->type,
                                .flags = SHF_ALLOC | (exec ? (uint32_t)SHF_EXECINSTR : 0),
                                .size = s->size,
                                .align = s->align ? s->align : 1},
                          .of = i,
                          .bytes = arena_dup(k->a, s->data.at, s->size)});
    }
    return true;
}

static void find_symbols(Link *k)
{
    for (uint32_t i = 1; i < k->o->nsymbols; i++) {
        const ObjectSymbol *s = &k->o->symbols[i];

        if (s->bind != SYMBOL_LOCAL && s->section && s->section < k->o->nsections && !s->place &&
            k->o->sections[s->section].flags & SECTION_ALLOC)
            vec_push(k->a, &k->symbols, i);
    }
}

/* The names of symbols behind each other, each with a NUL; that of symbol i begins at name[i]. */
static StrBuf symbol_names(Link *k, uint32_t *name)
{
    StrBuf s = strbuf(k->a);

    str_addc(&s, 0);
    for (uint32_t i = 0; i < k->symbols.n; i++) {
        const char *text = k->o->symbols[k->symbols.at[i]].name;

        name[i] = (uint32_t)s.n;
        str_addn(&s, text, strlen(text) + 1);
    }
    return s;
}

static uint32_t add_table(Link *k, const char *name, ElfShdr h, const char *linked)
{
    return add(k,
               (Part){.name = name, .h = h, .linked = linked, .bytes = arena_alloc(k->a, h.size)});
}

/* One bucket, so that all symbols are one chain. */
static void add_hash(Link *k)
{
    uint32_t n = k->symbols.n + 1, at;
    uint8_t *p;

    at = add_table(k, ".hash",
                   (ElfShdr){.type = SHT_HASH,
                             .flags = SHF_ALLOC,
                             .size = 4 * (3 + (uint64_t)n),
                             .align = 4,
                             .entsize = 4},
                   ".dynsym");
    p = k->parts.at[at].bytes;
    elf_put(p, &k->l, 1, 4);
    elf_put(p + 4, &k->l, n, 4);
    elf_put(p + 8, &k->l, n - 1, 4);
    for (uint32_t i = 0; i < n; i++)
        elf_put(p + 12 + 4 * i, &k->l, i ? i - 1 : 0, 4);
}

static bool collect(Link *k, uint32_t **name)
{
    const ElfShdr table = {.type = SHT_DYNSYM, .align = 8, .entsize = k->l.sym, .info = 1};
    ElfShdr       h = table;
    StrBuf        names;

    add(k, (Part){.name = ""});
    if (!add_sections(k, false, true))
        return false;
    if (!add_sections(k, false, false))
        return false;
    find_symbols(k);
    *name = NEW_ARRAY(k->a, uint32_t, k->symbols.n + 1);
    names = symbol_names(k, *name);
    h.size = (k->symbols.n + 1) * (uint64_t)k->l.sym;
    h.flags = SHF_ALLOC;
    add_table(k, ".dynsym", h, ".dynstr");
    add_hash(k);
    add(k, (Part){.name = ".dynstr",
                  .h = {.type = SHT_STRTAB, .flags = SHF_ALLOC, .size = names.n, .align = 1},
                  .bytes = (uint8_t *)names.at});
    if (!add_sections(k, true, false))
        return false;
    add_table(k, ".dynamic",
              (ElfShdr){.type = SHT_DYNAMIC,
                        .flags = SHF_ALLOC | SECTION_WRITE,
                        .size = 6 * DYN,
                        .align = 8,
                        .entsize = DYN},
              ".dynstr");
    h.type = SHT_SYMTAB;
    h.flags = 0;
    add_table(k, ".symtab", h, ".strtab");
    add(k, (Part){.name = ".strtab",
                  .h = {.type = SHT_STRTAB, .size = names.n, .align = 1},
                  .bytes = (uint8_t *)names.at});
    return true;
}

/* ---- where it lies ------------------------------------------------------------------------------- */

static Part *part(Link *k, const char *name)
{
    for (uint32_t i = 0; i < k->parts.n; i++)
        if (!strcmp(k->parts.at[i].name, name))
            return &k->parts.at[i];
    return NULL;
}

/* Which segment: 0 is read, 1 executed, 2 written, 3 not loaded. */
static uint32_t segment_of(const Part *p)
{
    return !(p->h.flags & SHF_ALLOC)              ? 3
           : p->h.flags & SHF_EXECINSTR           ? 1
           : p->h.flags & (uint64_t)SECTION_WRITE ? 2
                                                  : 0;
}

/* The end of what lies in the file. */
static uint64_t place(Link *k)
{
    uint64_t at = k->l.ehdr + NPHDRS * PHDR;

    for (uint32_t i = 1; i < k->parts.n; i++) {
        ElfShdr *h = &k->parts.at[i].h;

        h->offset = at = align_up(at, h->align);
        h->address =
            segment_of(&k->parts.at[i]) < 3 ? at + (uint64_t)PAGE * segment_of(&k->parts.at[i]) : 0;
        at += h->size;
    }
    return at;
}

/* Of a symbol in what is loaded. */
static uint64_t address_of(const Link *k, const ObjectSymbol *s)
{
    return k->parts.at[k->part_of[s->section]].h.address + s->value;
}

static void put_symbols(Link *k, Part *table, const uint32_t *name)
{
    for (uint32_t i = 0; i < k->symbols.n; i++) {
        const ObjectSymbol *s = &k->o->symbols[k->symbols.at[i]];
        ElfSym              y = {.name = name[i],
                                 .info = (uint8_t)(STB_GLOBAL << 4 | s->type),
                                 .other = s->type == STT_FUNC ? STV_PROTECTED : 0,
                                 .section = (uint16_t)k->part_of[s->section],
                                 .value = address_of(k, s),
                                 .size = s->size};

        elf_put_sym(table->bytes + (i + 1) * (uint64_t)k->l.sym, &k->l, &y);
    }
}

static void put_dynamic(Link *k)
{
    const Part    *names = part(k, ".dynstr");
    const uint64_t rows[][2] = {{DT_SYMTAB, part(k, ".dynsym")->h.address},
                                {DT_SYMENT, k->l.sym},
                                {DT_STRTAB, names->h.address},
                                {DT_STRSZ, names->h.size},
                                {DT_HASH, part(k, ".hash")->h.address},
                                {0, 0}};
    uint8_t       *p = part(k, ".dynamic")->bytes;

    for (uint32_t i = 0; i < COUNT(rows); i++) {
        elf_put(p + i * DYN, &k->l, rows[i][0], 8);
        elf_put(p + i * DYN + 8, &k->l, rows[i][1], 8);
    }
}

/* ---- relocations --------------------------------------------------------------------------------- */

static bool relocate(Link *k, Part *to, const ObjectReloc *r)
{
    const ObjectSymbol *s = r->symbol < k->o->nsymbols ? &k->o->symbols[r->symbol] : NULL;
    uint32_t            bytes = r->type == R_AMDGPU_REL64 ? 8 : 4;
    uint64_t            v;

    if (!s || !s->section || s->section >= k->o->nsections || !k->part_of[s->section])
        return refuse(k, "it needs a symbol that it does not have");
    if (r->type != R_AMDGPU_REL64 && r->type != R_AMDGPU_REL32 && r->type != R_AMDGPU_REL32_LO &&
        r->type != R_AMDGPU_REL32_HI)
        return refuse(k, "it needs addresses that only a loader knows");
    if (r->at > to->h.size || to->h.size - r->at < bytes)
        return refuse(k, "a relocation lies outside its section");
    v = address_of(k, s) + r->addend - (to->h.address + r->at);
    elf_put(to->bytes + r->at, &k->l, r->type == R_AMDGPU_REL32_HI ? v >> 32 : v, bytes);
    return true;
}

static bool relocate_all(Link *k)
{
    for (uint32_t i = 1; i < k->o->nsections; i++) {
        const ObjectSection *s = &k->o->sections[i];
        uint32_t             n = reloc_count(k->o, s);

        if (!n || s->info >= k->o->nsections || !k->part_of[s->info])
            continue; /* of what is not loaded */
        for (uint32_t j = 0; j < n; j++) {
            ObjectReloc r = reloc_at(k->o, s, j);

            if (!relocate(k, &k->parts.at[k->part_of[s->info]], &r))
                return false;
        }
    }
    return true;
}

/* ---- the file ------------------------------------------------------------------------------------ */

static uint8_t *put_phdr(const Link *k, uint8_t *p, uint32_t type, uint32_t flags, uint64_t offset,
                         uint64_t address, uint64_t size, uint64_t align)
{
    const uint64_t words[] = {offset, address, address, size, size, align};

    elf_put(p, &k->l, type, 4);
    elf_put(p + 4, &k->l, flags, 4);
    for (uint32_t i = 0; i < COUNT(words); i++)
        elf_put(p + 8 + 8 * i, &k->l, words[i], 8);
    return p + PHDR;
}

/* From the first section of the segment to the end of its last. */
static uint8_t *put_segment(const Link *k, uint8_t *p, uint32_t segment, uint32_t flags)
{
    uint64_t from = UINT64_MAX, to = 0;

    for (uint32_t i = 1; i < k->parts.n; i++) {
        const ElfShdr *h = &k->parts.at[i].h;

        if (segment_of(&k->parts.at[i]) != segment)
            continue;
        from = h->offset < from ? h->offset : from;
        to = h->offset + h->size;
    }
    from = segment ? from : 0; /* with the headers */
    return put_phdr(k, p, PT_LOAD, flags, from, from + (uint64_t)PAGE * segment, to - from, PAGE);
}

static void put_headers(Link *k, uint8_t *file, Bytes object, uint64_t shdrs)
{
    uint8_t    *p = file + k->l.ehdr;
    const Part *dynamic = part(k, ".dynamic"), *note = part(k, ".note");

    memcpy(file, object.at, k->l.ehdr); /* system, machine and which GPU */
    elf_put(file + 16, &k->l, ET_DYN, 2);
    elf_put(file + 32, &k->l, k->l.ehdr, 8);
    elf_put(file + 54, &k->l, PHDR, 2);
    elf_put(file + 56, &k->l, NPHDRS, 2);
    elf_put_sections(file, &k->l, shdrs, k->parts.n, k->parts.n - 1);
    p = put_phdr(k, p, PT_PHDR, PF_R, k->l.ehdr, k->l.ehdr, NPHDRS * PHDR, 8);
    p = put_segment(k, p, 0, PF_R);
    p = put_segment(k, p, 1, PF_R | PF_X);
    p = put_segment(k, p, 2, PF_R | PF_W);
    p = put_phdr(k, p, PT_DYNAMIC, PF_R | PF_W, dynamic->h.offset, dynamic->h.address,
                 dynamic->h.size, 8);
    put_phdr(k, p, PT_NOTE, PF_R, note->h.offset, note->h.address, note->h.size, note->h.align);
}

/* The table of section names, itself the last. */
static void name_sections(Link *k)
{
    StrBuf s = strbuf(k->a);

    add(k, (Part){.name = ".shstrtab", .h = {.type = SHT_STRTAB, .align = 1}});
    str_addc(&s, 0);
    for (uint32_t i = 1; i < k->parts.n; i++) {
        Part *p = &k->parts.at[i];

        p->h.name = (uint32_t)s.n;
        str_addn(&s, p->name, strlen(p->name) + 1);
        for (uint32_t j = 1; p->linked && j < k->parts.n; j++)
            if (!strcmp(k->parts.at[j].name, p->linked))
                p->h.link = j;
    }
    k->parts.at[k->parts.n - 1].h.size = s.n;
    k->parts.at[k->parts.n - 1].bytes = (uint8_t *)s.at;
}

bool elf_code_object(Diags *d, Arena *a, Bytes object, Bytes *out)
{
    Object    o;
    uint32_t *name;
    Link      k = {.d = d, .a = a, .o = &o, .l = elf_layout(true, false)};

    if (!elf_read(d, a, "code object", object, &o))
        return false;
    k.part_of = NEW_ARRAY(a, uint32_t, o.nsections + 1);
    if (o.target.machine != MACHINE_AMDGPU || o.target.bits != 64 || !o.relocatable ||
        object.n > MOST_BYTES)
        return refuse(&k, "it is no object for an AMD GPU");
    if (!collect(&k, &name))
        return false;
    if (!part(&k, ".note") || !part(&k, ".text"))
        return refuse(&k, "it has no code, or no note about it");
    name_sections(&k);

    uint64_t shdrs = align_up(place(&k), 8), total = shdrs + k.parts.n * (uint64_t)k.l.shdr;
    uint8_t *file = arena_alloc(a, total);

    put_symbols(&k, part(&k, ".dynsym"), name);
    put_symbols(&k, part(&k, ".symtab"), name);
    put_dynamic(&k);
    if (!relocate_all(&k))
        return false;
    put_headers(&k, file, object, shdrs);
    for (uint32_t i = 0; i < k.parts.n; i++) {
        const Part *p = &k.parts.at[i];

        if (p->h.size)
            memcpy(file + p->h.offset, p->bytes, p->h.size);
        elf_put_shdr(file + shdrs + i * (uint64_t)k.l.shdr, &k.l, &p->h);
    }
    *out = (Bytes){file, total};
    return true;
}
