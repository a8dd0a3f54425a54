/* Several ELF objects as one, without a linker.
 *
 * Kernels are compiled apart and have to come out as one relocatable object, each under the name it
 * has in the model.  All sections are kept side by side, as an object may have many of one name;
 * only the symbol tables become one, so symbol numbers in relocations and section numbers change.
 * Both classes, little endian, as LLVM and packaging write them.
 *
 *     file header | large data (weights) | other sections | .symtab | .strtab | section headers
 *
 * Large data come first and are not copied: the result is a list of pieces, one of which is where
 * they lie already.  So their place in the file does not depend on the code, and a compile can
 * write weights before it knows any. */
#include "backends/llvm/llvm.h"

#include <elf.h>
#include <string.h>

enum { MAX_ALIGN = 1 << 16, LARGE = 1 << 20 };
enum { ADDRSIG = 0x6fff4c03 }; /* LLVM's list of symbols whose address counts: symbol numbers */

typedef struct {
    const char    *name;
    uint32_t       type, link, info;
    uint64_t       flags, align, entry, size, offset;
    const uint8_t *data; /* NULL: none in the file */
    uint32_t       out;  /* number in the result, 0: left out */
} Section;

typedef struct {
    const char *name;
    uint8_t     info, other;
    uint16_t    section; /* own numbers, SHN_ABS and the like as they are */
    uint64_t    value, size;
    uint32_t    out;
} Symbol;

typedef struct {
    bool        wide;
    uint16_t    machine;
    uint32_t    flags, nsections, nsymbols, nlocals;
    Section    *s;
    Symbol     *sym;
    const char *kernel; /* what its symbol `f` is called from now on; NULL: so */
} Object;

typedef struct {
    Ctx     *c;
    uint32_t n;
    Object  *in;
    StrBuf   head, file, names; /* head: the file header */
    uint64_t base;              /* where `file` begins: behind head and large data */
    VEC(Bytes) large;
    VEC(Symbol) symbols; /* sections are numbers of the result */
    uint32_t    nlocals, nsections;
    const char *twice; /* a symbol that two objects define */
} Merge;

/* ---- reading: nothing is taken on trust; objects are inputs of a link ------------------------------ */

static bool inside(Bytes b, uint64_t offset, uint64_t n)
{
    return offset <= b.n && n <= b.n - offset;
}

static const char *name_at(Bytes table, uint64_t at)
{
    return at < table.n && memchr(table.at + at, 0, table.n - at) ? (const char *)table.at + at
                                                                  : "";
}

static bool read_section(Bytes b, bool wide, uint64_t at, Section *s, uint32_t *name)
{
    if (wide) {
        Elf64_Shdr h;

        if (!inside(b, at, sizeof h))
            return false;
        memcpy(&h, b.at + at, sizeof h);
        *name = h.sh_name;
        *s = (Section){.type = h.sh_type,
                       .link = h.sh_link,
                       .info = h.sh_info,
                       .flags = h.sh_flags,
                       .align = h.sh_addralign,
                       .entry = h.sh_entsize,
                       .size = h.sh_size,
                       .offset = h.sh_offset};
    } else {
        Elf32_Shdr h;

        if (!inside(b, at, sizeof h))
            return false;
        memcpy(&h, b.at + at, sizeof h);
        *name = h.sh_name;
        *s = (Section){.type = h.sh_type,
                       .link = h.sh_link,
                       .info = h.sh_info,
                       .flags = h.sh_flags,
                       .align = h.sh_addralign,
                       .entry = h.sh_entsize,
                       .size = h.sh_size,
                       .offset = h.sh_offset};
    }
    return s->align <= MAX_ALIGN && (s->type == SHT_NOBITS || inside(b, s->offset, s->size));
}

static Symbol read_symbol(bool wide, const uint8_t *p, Bytes names)
{
    if (wide) {
        Elf64_Sym y;

        memcpy(&y, p, sizeof y);
        return (Symbol){
            name_at(names, y.st_name), y.st_info, y.st_other, y.st_shndx, y.st_value, y.st_size, 0};
    }
    Elf32_Sym y;

    memcpy(&y, p, sizeof y);
    return (Symbol){
        name_at(names, y.st_name), y.st_info, y.st_other, y.st_shndx, y.st_value, y.st_size, 0};
}

static bool read_symbols(Ctx *c, Bytes b, Object *o, const Section *table)
{
    uint64_t size = o->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
    Bytes    names = {0};

    if (table->link >= o->nsections || o->s[table->link].type != SHT_STRTAB)
        return false;
    names.at = b.at + o->s[table->link].offset;
    names.n = o->s[table->link].size;
    o->nsymbols = (uint32_t)(table->size / size);
    o->nlocals = table->info;
    o->sym = NEW_ARRAY(c->scratch, Symbol, o->nsymbols + 1);
    for (uint32_t i = 0; i < o->nsymbols; i++)
        o->sym[i] = read_symbol(o->wide, b.at + table->offset + i * size, names);
    return o->nlocals <= o->nsymbols;
}

static bool read_object(Ctx *c, Bytes b, Object *o)
{
    uint64_t  at, step;
    uint32_t  names_index;
    uint32_t *name;
    Bytes     names;

    if (b.n < sizeof(Elf64_Ehdr) || memcmp(b.at, ELFMAG, SELFMAG) || b.at[EI_DATA] != ELFDATA2LSB)
        return false;
    o->wide = b.at[EI_CLASS] == ELFCLASS64;
    if (o->wide) {
        Elf64_Ehdr h;

        memcpy(&h, b.at, sizeof h);
        *o = (Object){true, h.e_machine, h.e_flags, h.e_shnum, 0, 0, NULL, NULL, o->kernel};
        at = h.e_shoff;
        names_index = h.e_shstrndx;
        step = sizeof(Elf64_Shdr);
    } else {
        Elf32_Ehdr h;

        memcpy(&h, b.at, sizeof h);
        *o = (Object){false, h.e_machine, h.e_flags, h.e_shnum, 0, 0, NULL, NULL, o->kernel};
        at = h.e_shoff;
        names_index = h.e_shstrndx;
        step = sizeof(Elf32_Shdr);
    }
    o->s = NEW_ARRAY(c->scratch, Section, o->nsections + 1);
    name = NEW_ARRAY(c->scratch, uint32_t, o->nsections + 1);
    for (uint32_t i = 0; i < o->nsections; i++) {
        if (!read_section(b, o->wide, at + i * step, &o->s[i], &name[i]))
            return false;
        if (o->s[i].type != SHT_NOBITS)
            o->s[i].data = b.at + o->s[i].offset;
    }
    if (names_index >= o->nsections || o->s[names_index].type != SHT_STRTAB)
        return false;
    names = (Bytes){b.at + o->s[names_index].offset, o->s[names_index].size};
    for (uint32_t i = 0; i < o->nsections; i++)
        o->s[i].name = name_at(names, name[i]);
    for (uint32_t i = 0; i < o->nsections; i++)
        if (o->s[i].type == SHT_SYMTAB && !read_symbols(c, b, o, &o->s[i]))
            return false;
    return true;
}

/* ---- one symbol table ----------------------------------------------------------------------------- */

/* Sections of which a product has one. */
static bool once_only(const char *name)
{
    return str_starts(name, ".note.") || str_ends(name, ".attributes") || !strcmp(name, ".comment");
}

static bool is_empty(const Object *o, uint32_t section)
{
    if (o->s[section].size)
        return false;
    for (uint32_t k = 0; k < o->nsymbols; k++)
        if (o->sym[k].section == section)
            return false;
    return true;
}

static void number_sections(Merge *m)
{
    m->nsections = 1;
    for (uint32_t i = 0; i < m->n; i++)
        for (uint32_t k = 1; k < m->in[i].nsections; k++) {
            Section *s = &m->in[i].s[k];

            if (s->type == SHT_NULL || s->type == SHT_SYMTAB || s->type == SHT_STRTAB ||
                s->type == ADDRSIG || (i && (once_only(s->name) || is_empty(&m->in[i], k))))
                continue;
            s->out = m->nsections++;
        }
}

static uint16_t out_section(const Object *o, uint16_t section)
{
    if (section == SHN_UNDEF || section >= SHN_LORESERVE)
        return section;
    return section < o->nsections ? (uint16_t)o->s[section].out : SHN_UNDEF;
}

static uint32_t add_symbol(Merge *m, const Object *o, const Symbol *y)
{
    Symbol own = *y;

    own.section = out_section(o, y->section);
    vec_push(m->c->scratch, &m->symbols, own);
    return m->symbols.n - 1;
}

/* Locals of all objects, then globals, each once and defined where any object defines it. */
static void number_symbols(Merge *m)
{
    Map *globals = map_new(m->c->scratch);

    vec_push(m->c->scratch, &m->symbols, (Symbol){.name = ""});
    for (uint32_t i = 0; i < m->n; i++) {
        Object *o = &m->in[i];

        for (uint32_t k = 1; k < o->nlocals; k++) {
            Symbol *y = &o->sym[k];

            if (ELF64_ST_TYPE(y->info) != STT_FILE || i == 0)
                y->out = add_symbol(m, o, y);
        }
    }
    m->nlocals = m->symbols.n;
    for (uint32_t i = 0; i < m->n; i++) {
        Object *o = &m->in[i];

        for (uint32_t k = o->nlocals ? o->nlocals : 1; k < o->nsymbols; k++) {
            Symbol *y = &o->sym[k];
            if (o->kernel && !strcmp(y->name, "f"))
                y->name = o->kernel;
            uint64_t key = PTR_KEY(intern(m->c->strings, y->name));
            uint32_t at = (uint32_t)(uintptr_t)map_get(globals, key);

            if (!at) {
                at = add_symbol(m, o, y);
                map_put(globals, key, (void *)(uintptr_t)at);
            } else if (m->symbols.at[at].section == SHN_UNDEF && y->section != SHN_UNDEF) {
                m->symbols.at[at] = *y;
                m->symbols.at[at].section = out_section(o, y->section);
            } else if (y->section != SHN_UNDEF) {
                m->twice = y->name;
            }
            y->out = at;
        }
    }
}

/* Relocations with the symbol numbers of the result, as a copy; NULL if one is wrong. */
static const uint8_t *renumber(Ctx *c, const Object *o, const Section *s)
{
    uint8_t *data = arena_dup(c->scratch, s->data, s->size);
    uint64_t most = o->wide ? sizeof(Elf64_Rel) : sizeof(Elf32_Rel);

    if (s->entry < most)
        return NULL;
    for (uint64_t at = 0; at + s->entry <= s->size; at += s->entry) {
        uint64_t info, k;

        if (o->wide) {
            memcpy(&info, data + at + 8, 8);
            if ((k = info >> 32) >= o->nsymbols)
                return NULL;
            info = (uint64_t)o->sym[k].out << 32 | (uint32_t)info;
            memcpy(data + at + 8, &info, 8);
        } else {
            uint32_t narrow;

            memcpy(&narrow, data + at + 4, 4);
            if ((k = narrow >> 8) >= o->nsymbols)
                return NULL;
            narrow = o->sym[k].out << 8 | (narrow & 0xff);
            memcpy(data + at + 4, &narrow, 4);
        }
    }
    return data;
}

/* ---- writing ---------------------------------------------------------------------------------------- */

static void pad(Merge *m, uint64_t align)
{
    while (align > 1 && (m->base + m->file.n) % align)
        str_addc(&m->file, 0);
}

static bool is_large(const Section *s)
{
    return s->out && s->data && s->type == SHT_PROGBITS && s->size >= LARGE &&
           !(s->flags & SHF_EXECINSTR);
}

/* A place for each large section, with what keeps it aligned before it. */
static void place_large(Merge *m)
{
    static const uint8_t zeros[MAX_ALIGN];
    size_t               rest = 4096;

    m->base = m->head.n;
    for (uint32_t i = 0; i < m->n; i++)
        for (uint32_t k = 1; k < m->in[i].nsections; k++) {
            Section *s = &m->in[i].s[k];

            rest += is_large(s) || s->type == SHT_NOBITS ? 256 : s->size + 256;
            if (!is_large(s))
                continue;
            s->offset = align_up(m->base, s->align ? s->align : 1);
            vec_push(m->c->arena, &m->large, ((Bytes){zeros, s->offset - m->base}));
            vec_push(m->c->arena, &m->large, ((Bytes){s->data, s->size}));
            m->base = s->offset + s->size;
        }
    str_reserve(&m->file, rest);
}

static uint32_t add_name(Merge *m, const char *name)
{
    size_t at = m->names.n;

    if (!*name)
        return 0;
    str_addn(&m->names, name, strlen(name) + 1);
    return (uint32_t)at;
}

static void add_header(Merge *m, StrBuf *out, const Section *s)
{
    uint32_t name = add_name(m, s->name);

    if (m->in->wide) {
        Elf64_Shdr h = {.sh_name = name,
                        .sh_type = s->type,
                        .sh_flags = s->flags,
                        .sh_offset = s->offset,
                        .sh_size = s->size,
                        .sh_link = s->link,
                        .sh_info = s->info,
                        .sh_addralign = s->align,
                        .sh_entsize = s->entry};

        str_addn(out, (char *)&h, sizeof h);
    } else {
        Elf32_Shdr h = {.sh_name = name,
                        .sh_type = s->type,
                        .sh_flags = (uint32_t)s->flags,
                        .sh_offset = (uint32_t)s->offset,
                        .sh_size = (uint32_t)s->size,
                        .sh_link = s->link,
                        .sh_info = s->info,
                        .sh_addralign = (uint32_t)s->align,
                        .sh_entsize = (uint32_t)s->entry};

        str_addn(out, (char *)&h, sizeof h);
    }
}

static bool add_sections(Merge *m, StrBuf *headers)
{
    for (uint32_t i = 0; i < m->n; i++)
        for (uint32_t k = 1; k < m->in[i].nsections; k++) {
            Object  *o = &m->in[i];
            Section *s = &o->s[k];

            if (!s->out)
                continue;
            if (s->type == SHT_GROUP)
                return false;
            if (s->type == SHT_REL || s->type == SHT_RELA) {
                if (!(s->data = renumber(m->c, o, s)) || s->info >= o->nsections)
                    return false;
                s->link = m->nsections; /* .symtab */
                s->info = o->s[s->info].out;
            } else if (s->flags & SHF_LINK_ORDER)
                s->link = s->link < o->nsections ? o->s[s->link].out : 0;
            if (!is_large(s)) {
                pad(m, s->align);
                s->offset = m->base + m->file.n;
                if (s->data)
                    str_addn(&m->file, (char *)s->data, s->size);
            }
            add_header(m, headers, s);
        }
    return true;
}

static void add_symtab(Merge *m, StrBuf *headers)
{
    Section s = {.name = ".symtab",
                 .type = SHT_SYMTAB,
                 .link = m->nsections + 1,
                 .info = m->nlocals,
                 .align = 8,
                 .entry = m->in->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym)};

    pad(m, 8);
    s.offset = m->base + m->file.n;
    s.size = s.entry * m->symbols.n;
    for (uint32_t i = 0; i < m->symbols.n; i++) {
        Symbol  *y = &m->symbols.at[i];
        uint32_t name = add_name(m, y->name);

        if (m->in->wide) {
            Elf64_Sym w = {name, y->info, y->other, y->section, y->value, y->size};

            str_addn(&m->file, (char *)&w, sizeof w);
        } else {
            Elf32_Sym w = {name,    (uint32_t)y->value, (uint32_t)y->size,
                           y->info, y->other,           y->section};

            str_addn(&m->file, (char *)&w, sizeof w);
        }
    }
    add_header(m, headers, &s);
}

static void add_strtab(Merge *m, StrBuf *headers)
{
    Section s = {.name = ".strtab", .type = SHT_STRTAB, .align = 1};
    StrBuf  own = strbuf(m->c->scratch);

    add_header(m, &own, &s); /* enters its own name, so that the size is known */
    s.name = "";
    s.offset = m->base + m->file.n;
    s.size = m->names.n;
    str_addn(&m->file, m->names.at, m->names.n);
    add_header(m, headers, &s);
    memcpy(headers->at + headers->n - (m->in->wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr)),
           own.at, 4);
}

static void set_file_header(Merge *m, uint64_t at)
{
    uint16_t n = (uint16_t)(m->nsections + 2);

    if (m->in->wide) {
        Elf64_Ehdr *h = (void *)m->head.at;

        h->e_shoff = at;
        h->e_shnum = n;
        h->e_shstrndx = n - 1;
    } else {
        Elf32_Ehdr *h = (void *)m->head.at;

        h->e_shoff = (uint32_t)at;
        h->e_shnum = n;
        h->e_shstrndx = n - 1;
    }
}

/* Objects of one machine, read. */
static bool read_all(Merge *m, const Bytes *objects, const char *const *names,
                     const char *const *files)
{
    for (uint32_t i = 0; i < m->n; i++) {
        Object *o = &m->in[i];

        o->kernel = names ? gen_symbol(m->c->scratch, "", names[i]) : NULL;
        if (read_object(m->c, objects[i], o) && o->wide == m->in->wide &&
            o->machine == m->in->machine && o->flags == m->in->flags)
            continue;
        if (!files)
            BUG("object %u of %u cannot be merged", i, m->n);
        return error_at(m->c, E_PACK, (Loc){.file = files[i]},
                        i ? "this is no object for the machine of '%s'" : "this is no ELF object",
                        *files);
    }
    return true;
}

/* Large data and the rest of objects that were read. */
static bool write_all(Merge *m, Bytes first, const char *const *files)
{
    StrBuf  headers = strbuf(m->c->scratch);
    Section none = {.name = ""};

    number_sections(m);
    number_symbols(m);
    if (m->twice)
        return error_at(m->c, E_PACK, files ? (Loc){.file = *files} : NO_LOC,
                        "'%s' is defined twice in what is merged", m->twice);
    if (m->nsections + 2 >= SHN_LORESERVE)
        return error_at(m->c, E_PACK, files ? (Loc){.file = *files} : NO_LOC,
                        "%u sections do not fit into one object", m->nsections);
    str_addn(&m->head, (const char *)first.at,
             m->in->wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr));
    place_large(m);
    add_header(m, &headers, &none);
    if (!add_sections(m, &headers))
        return error_at(m->c, E_PACK, files ? (Loc){.file = *files} : NO_LOC,
                        "objects with groups of sections cannot be merged");
    add_symtab(m, &headers);
    add_strtab(m, &headers);
    pad(m, 8);
    set_file_header(m, m->base + m->file.n);
    str_addn(&m->file, headers.at, headers.n);
    return true;
}

/* But for where their sections stand; merging takes the header of the first object. */
static bool same_header(Bytes x, Bytes y, bool wide)
{
    if (wide) {
        Elf64_Ehdr a, b;

        memcpy(&a, x.at, sizeof a);
        memcpy(&b, y.at, sizeof b);
        a.e_shoff = b.e_shoff;
        a.e_shnum = b.e_shnum;
        a.e_shstrndx = b.e_shstrndx;
        return memcmp(&a, &b, sizeof a) == 0;
    }
    Elf32_Ehdr a, b;

    memcpy(&a, x.at, sizeof a);
    memcpy(&b, y.at, sizeof b);
    a.e_shoff = b.e_shoff;
    a.e_shnum = b.e_shnum;
    a.e_shstrndx = b.e_shstrndx;
    return memcmp(&a, &b, sizeof a) == 0;
}

/* All that merging could object to, and that it defines `f` and no other global. */
bool llvm_unit_fits(Ctx *c, Bytes object, Bytes like)
{
    Object   o = {0}, other = {0};
    uint32_t kernels = 0;

    if (!read_object(c, object, &o) || !read_object(c, like, &other) || o.wide != other.wide ||
        !same_header(object, like, o.wide))
        return false;
    for (uint32_t i = o.nlocals ? o.nlocals : 1; i < o.nsymbols; i++) {
        if (o.sym[i].section == SHN_UNDEF)
            continue;
        if (strcmp(o.sym[i].name, "f") != 0 || o.sym[i].section >= o.nsections)
            return false;
        kernels++;
    }
    for (uint32_t i = 1; i < o.nsections; i++) {
        const Section *s = &o.s[i];
        bool           relocations = s->type == SHT_REL || s->type == SHT_RELA;

        if (s->type == SHT_GROUP ||
            (relocations && (s->info >= o.nsections || !renumber(c, &o, s))))
            return false;
    }
    return kernels == 1;
}

static BytesList pieces_of(Merge *m)
{
    Bytes   *at = NEW_ARRAY(m->c->arena, Bytes, m->large.n + 2);
    uint32_t n = 0;

    at[n++] = (Bytes){(const uint8_t *)m->head.at, m->head.n};
    for (uint32_t i = 0; i < m->large.n; i++)
        at[n++] = m->large.at[i];
    at[n++] = (Bytes){(const uint8_t *)m->file.at, m->file.n};
    return (BytesList){n, at};
}

static void merge_start(Merge *m, Ctx *c, uint32_t n)
{
    *m = (Merge){.c = c, .n = n, .in = NEW_ARRAY(c->scratch, Object, n + 1)};
    m->head = strbuf(c->arena);
    m->file = strbuf(c->arena);
    m->names = strbuf(c->scratch);
    str_addc(&m->names, 0);
}

bool llvm_merge(Ctx *c, uint32_t n, const Bytes *objects, const char *const *names,
                const char *const *files, BytesList *out)
{
    Merge m;

    merge_start(&m, c, n);
    if (!read_all(&m, objects, names, files) || !write_all(&m, *objects, files))
        return false;
    *out = pieces_of(&m);
    return true;
}

/* As if the second object were one of packaging's elf_blob_in. */
bool llvm_join(Ctx *c, Bytes code, const char *section, const char *symbol, Bytes data,
               BytesList *out)
{
    Merge   m;
    Section sections[] = {{.name = ""},
                          {.name = section,
                           .type = SHT_PROGBITS,
                           .flags = SHF_ALLOC,
                           .align = 64,
                           .size = data.n,
                           .data = data.at}};
    Symbol  symbols[] = {{.name = ""},
                         {.name = symbol,
                          .info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
                          .section = 1,
                          .size = data.n}};

    merge_start(&m, c, 1);
    if (!read_all(&m, &code, NULL, NULL))
        return false;
    m.in[1] = m.in[0];
    m.in[1].nsections = m.in[1].nsymbols = 2;
    m.in[1].nlocals = 1;
    m.in[1].s = sections;
    m.in[1].sym = symbols;
    m.in[1].kernel = NULL;
    m.n = 2;
    if (!write_all(&m, code, NULL))
        return false;
    *out = pieces_of(&m);
    return true;
}
