/* elf.c: relocatable objects for read-only data, and the symbols of objects others wrote.
 *
 * Weights reach a program as an object file with one section, written here byte by byte: C text
 * would be six times their size.  32 and 64 bits, both byte orders.  Input objects are bounded like
 * any other input.
 */
#include "objects/objects.h"

#include <string.h>

enum {
    ET_REL = 1,
    SHT_PROGBITS = 1,
    SHT_SYMTAB = 2,
    SHT_STRTAB = 3,
    SHT_NOBITS = 8,
    SHT_DYNSYM = 11,
    SHF_ALLOC = 2,
    STB_GLOBAL = 1,
    STT_OBJECT = 1,
    SHN_LORESERVE = 0xff00,
    DATA_ALIGN = 64
};

/* ---- layout of the two classes ------------------------------------------------------------------
 */

typedef struct {
    bool     wide, big;
    uint32_t ehdr, shdr, sym, word; /* sizes */
} Layout;

static Layout layout_of(bool wide, bool big)
{
    return wide ? (Layout){true, big, 64, 64, 24, 8} : (Layout){false, big, 52, 40, 16, 4};
}

static void put(uint8_t *at, const Layout *l, uint64_t value, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        at[l->big ? bytes - 1 - i : i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *at, const Layout *l, uint32_t bytes)
{
    uint64_t value = 0;

    for (uint32_t i = 0; i < bytes; i++)
        value |= (uint64_t)at[l->big ? bytes - 1 - i : i] << 8 * i;
    return value;
}

typedef struct {
    uint32_t name, type, link, info;
    uint64_t flags, offset, size, align, entsize, address;
} Shdr;

static void put_shdr(uint8_t *p, const Layout *l, const Shdr *s)
{
    uint32_t w = l->word;

    put(p, l, s->name, 4);
    put(p + 4, l, s->type, 4);
    put(p + 8, l, s->flags, w);
    put(p + 8 + w, l, 0, w); /* address */
    put(p + 8 + 2 * w, l, s->offset, w);
    put(p + 8 + 3 * w, l, s->size, w);
    put(p + 8 + 4 * w, l, s->link, 4);
    put(p + 12 + 4 * w, l, s->info, 4);
    put(p + 16 + 4 * w, l, s->align, w);
    put(p + 16 + 5 * w, l, s->entsize, w);
}

static Shdr get_shdr(const uint8_t *p, const Layout *l)
{
    uint32_t w = l->word;

    return (Shdr){
        .name = (uint32_t)get(p, l, 4),
        .type = (uint32_t)get(p + 4, l, 4),
        .flags = get(p + 8, l, w),
        .address = get(p + 8 + w, l, w),
        .offset = get(p + 8 + 2 * w, l, w),
        .size = get(p + 8 + 3 * w, l, w),
        .link = (uint32_t)get(p + 8 + 4 * w, l, 4),
        .info = (uint32_t)get(p + 12 + 4 * w, l, 4),
        .align = get(p + 16 + 4 * w, l, w),
        .entsize = get(p + 16 + 5 * w, l, w),
    };
}

typedef struct {
    uint32_t name;
    uint8_t  info, other;
    uint16_t section;
    uint64_t value, size;
} Sym;

static void put_sym(uint8_t *p, const Layout *l, const Sym *s)
{
    put(p, l, s->name, 4);
    p[l->wide ? 4 : 12] = s->info;
    p[l->wide ? 5 : 13] = s->other;
    put(p + (l->wide ? 6 : 14), l, s->section, 2);
    put(p + (l->wide ? 8 : 4), l, s->value, l->word);
    put(p + (l->wide ? 16 : 8), l, s->size, l->word);
}

static Sym get_sym(const uint8_t *p, const Layout *l)
{
    return (Sym){
        .name = (uint32_t)get(p, l, 4),
        .info = p[l->wide ? 4 : 12],
        .other = p[l->wide ? 5 : 13],
        .section = (uint16_t)get(p + (l->wide ? 6 : 14), l, 2),
        .value = get(p + (l->wide ? 8 : 4), l, l->word),
        .size = get(p + (l->wide ? 16 : 8), l, l->word),
    };
}

/* ---- targets ------------------------------------------------------------------------------ */

bool elf_target(Diags *d, const char *triple, ObjectTarget *out)
{
    /* Flags are those of the objects LLVM makes for the triple's usual ABI. */
    static const struct {
        const char *prefix;
        uint32_t    bits;
        bool        big;
        uint16_t    machine;
        uint32_t    flags;
    } rows[] = {
        {"x86_64", 64, false, 62, 0},        {"i386", 32, false, 3, 0},
        {"i486", 32, false, 3, 0},           {"i586", 32, false, 3, 0},
        {"i686", 32, false, 3, 0},           {"aarch64", 64, false, 183, 0},
        {"arm64", 64, false, 183, 0},        {"arm", 32, false, 40, 0x5000000},
        {"thumb", 32, false, 40, 0x5000000}, {"riscv64", 64, false, 243, 5},
        {"riscv32", 32, false, 243, 1},      {"powerpc64le", 64, false, 21, 2},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        if (!str_starts(triple, rows[i].prefix) || strstr(triple, "apple") ||
            strstr(triple, "windows"))
            continue;
        *out = (ObjectTarget){rows[i].bits, rows[i].big, rows[i].machine, rows[i].flags};
        return true;
    }
    diag_error(d, E_PACK, NO_LOC, "objects for '%s' are not ELF files", triple);
    return false;
}

void elf_target_abi(ObjectTarget *t, const char *abi)
{
    enum { RISCV = 243, FLOAT_ABI = 6, SINGLE = 2, DOUBLE = 4 };

    if (t->machine != RISCV || !*abi)
        return;
    t->flags = (t->flags & ~(uint32_t)FLOAT_ABI) | (str_ends(abi, "d")   ? DOUBLE
                                                    : str_ends(abi, "f") ? SINGLE
                                                                         : 0);
}

/* ---- writing ------------------------------------------------------------------------------ */

static void put_ident(uint8_t *p, const ObjectTarget *t, uint16_t type)
{
    Layout l = layout_of(t->bits == 64, t->big_endian);

    memcpy(p, "\177ELF", 4);
    p[4] = l.wide ? 2 : 1;
    p[5] = l.big ? 2 : 1;
    p[6] = 1;
    put(p + 16, &l, type, 2);
    put(p + 18, &l, t->machine, 2);
    put(p + 20, &l, 1, 4);
}

/* Everything of the file header that comes after the entry point. */
static void put_ehdr_tail(uint8_t *p, const Layout *l, uint32_t flags, uint64_t shoff,
                          uint32_t shnum, uint32_t shstrndx)
{
    uint32_t w = l->word;

    put(p + 24 + 2 * w, l, shoff, w);
    put(p + 24 + 3 * w, l, flags, 4);
    put(p + 28 + 3 * w, l, l->ehdr, 2);
    put(p + 34 + 3 * w, l, l->shdr, 2);
    put(p + 36 + 3 * w, l, shnum, 2);
    put(p + 38 + 3 * w, l, shstrndx, 2);
}

/* Adds a name with its NUL, gives its offset. */
static uint32_t add_name(StrBuf *s, const char *name)
{
    uint32_t at = (uint32_t)s->n;

    str_add(s, name);
    str_addc(s, 0);
    return at;
}

Bytes elf_blob(Arena *a, const ObjectTarget *t, const char *symbol, Bytes data)
{
    return elf_blob_in(a, t, arena_printf(a, ".rodata.%s", symbol), symbol, data);
}

Bytes elf_blob_in(Arena *a, const ObjectTarget *t, const char *section, const char *symbol,
                  Bytes data)
{
    enum { DATA = 1, STACK, SYMTAB, STRTAB, SHSTRTAB, NSECTIONS };
    Layout   l = layout_of(t->bits == 64, t->big_endian);
    StrBuf   names = strbuf(a), strings = strbuf(a);
    Shdr     s[NSECTIONS] = {{0}};
    uint64_t at, total;
    uint8_t *p;
    Sym      sym = {.info = STB_GLOBAL << 4 | STT_OBJECT, .section = DATA, .size = data.n};

    str_addc(&names, 0);
    str_addc(&strings, 0);
    sym.name = add_name(&strings, symbol);
    s[DATA] = (Shdr){.name = add_name(&names, section),
                     .type = SHT_PROGBITS,
                     .flags = SHF_ALLOC,
                     .size = data.n,
                     .align = DATA_ALIGN};
    s[STACK] =
        (Shdr){.name = add_name(&names, ".note.GNU-stack"), .type = SHT_PROGBITS, .align = 1};
    s[SYMTAB] = (Shdr){.name = add_name(&names, ".symtab"),
                       .type = SHT_SYMTAB,
                       .link = STRTAB,
                       .info = 1,
                       .size = 2 * l.sym,
                       .align = l.word,
                       .entsize = l.sym};
    s[STRTAB] = (Shdr){.name = add_name(&names, ".strtab"), .type = SHT_STRTAB, .align = 1};
    s[SHSTRTAB] = (Shdr){.name = add_name(&names, ".shstrtab"), .type = SHT_STRTAB, .align = 1};
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
    put_ident(p, t, ET_REL);
    put_ehdr_tail(p, &l, t->flags, at, NSECTIONS, SHSTRTAB);
    if (data.n)
        memcpy(p + s[DATA].offset, data.at, data.n);
    put_sym(p + s[SYMTAB].offset + l.sym, &l, &sym);
    memcpy(p + s[STRTAB].offset, strings.at, strings.n);
    memcpy(p + s[SHSTRTAB].offset, names.at, names.n);
    for (uint32_t i = 0; i < NSECTIONS; i++)
        put_shdr(p + at + i * l.shdr, &l, &s[i]);
    return (Bytes){p, total};
}

/* ---- reading ------------------------------------------------------------------------------ */

typedef struct {
    Layout   l;
    Bytes    b;
    uint64_t shoff;
    uint32_t shnum, shstrndx;
    Shdr    *s;
} Raw;

static bool in_file(Bytes b, uint64_t offset, uint64_t size)
{
    return offset <= b.n && size <= b.n - offset;
}

static Bytes section_bytes(const Raw *r, const Shdr *s)
{
    return s->type == SHT_NOBITS ? (Bytes){0} : (Bytes){r->b.at + s->offset, s->size};
}

/* A NUL-terminated string of a string table, NULL if there is none. */
static const char *string_at(const Raw *r, const Shdr *table, uint64_t offset)
{
    Bytes b = section_bytes(r, table);

    if (table->type != SHT_STRTAB || offset >= b.n || !memchr(b.at + offset, 0, b.n - offset))
        return NULL;
    return (const char *)b.at + offset;
}

static bool broken(Diags *d, const char *file)
{
    diag_error(d, E_PACK, (Loc){.file = file}, "not a valid ELF file");
    return false;
}

static bool raw_read(Diags *d, Arena *a, const char *file, Bytes b, Raw *r)
{
    uint32_t w;

    if (b.n < 52 || memcmp(b.at, "\177ELF", 4) != 0 || b.at[4] < 1 || b.at[4] > 2 || b.at[5] < 1 ||
        b.at[5] > 2)
        return broken(d, file);
    r->b = b;
    r->l = layout_of(b.at[4] == 2, b.at[5] == 2);
    w = r->l.word;
    if (b.n < r->l.ehdr)
        return broken(d, file);
    r->shoff = get(b.at + 24 + 2 * w, &r->l, w);
    r->shnum = (uint32_t)get(b.at + 36 + 3 * w, &r->l, 2);
    r->shstrndx = (uint32_t)get(b.at + 38 + 3 * w, &r->l, 2);
    if (r->shnum == 0 || r->shstrndx >= r->shnum || get(b.at + 34 + 3 * w, &r->l, 2) != r->l.shdr ||
        !in_file(b, r->shoff, (uint64_t)r->shnum * r->l.shdr))
        return broken(d, file);
    r->s = NEW_ARRAY(a, Shdr, r->shnum);
    for (uint32_t i = 0; i < r->shnum; i++) {
        r->s[i] = get_shdr(b.at + r->shoff + (uint64_t)i * r->l.shdr, &r->l);
        if (r->s[i].type != SHT_NOBITS && !in_file(b, r->s[i].offset, r->s[i].size))
            return broken(d, file);
        if (r->s[i].link >= r->shnum)
            return broken(d, file);
    }
    if (r->s[r->shstrndx].type != SHT_STRTAB)
        return broken(d, file);
    return true;
}

/* The symbol table of that type, 0 if there is none. */
static uint32_t table_of(const Raw *r, uint32_t type)
{
    for (uint32_t i = 1; i < r->shnum; i++)
        if (r->s[i].entsize == r->l.sym && r->s[i].type == type)
            return i;
    return 0;
}

/* .symtab, or .dynsym of a stripped shared library */
static uint32_t symbol_table(const Raw *r)
{
    uint32_t found = table_of(r, SHT_SYMTAB);

    return found ? found : table_of(r, SHT_DYNSYM);
}

static bool read_symbols(Arena *a, const Raw *r, uint32_t table, ObjectSymbol **out, uint32_t *n)
{
    *n = table ? (uint32_t)(r->s[table].size / r->l.sym) : 0;
    *out = NEW_ARRAY(a, ObjectSymbol, *n ? *n : 1);
    for (uint32_t i = 0; i < *n; i++) {
        Sym         s = get_sym(r->b.at + r->s[table].offset + (uint64_t)i * r->l.sym, &r->l);
        const char *name = string_at(r, &r->s[r->s[table].link], s.name);

        if (!name)
            return false;
        (*out)[i] =
            (ObjectSymbol){name, s.value, s.size, s.section, s.info >> 4, s.info & 15, s.other & 3};
    }
    return true;
}

bool elf_read(Diags *d, Arena *a, const char *file, Bytes object, Object *out)
{
    Raw      r;
    uint32_t w;

    *out = (Object){0};
    if (!raw_read(d, a, file, object, &r))
        return false;
    w = r.l.word;
    out->target = (ObjectTarget){
        .bits = r.l.wide ? 64 : 32,
        .big_endian = r.l.big,
        .machine = (uint16_t)get(object.at + 18, &r.l, 2),
        .flags = (uint32_t)get(object.at + 24 + 3 * w, &r.l, 4),
    };
    out->type = (uint16_t)get(object.at + 16, &r.l, 2);
    out->nsections = r.shnum;
    out->sections = NEW_ARRAY(a, ObjectSection, r.shnum);
    for (uint32_t i = 1; i < r.shnum; i++) {
        const Shdr *s = &r.s[i];
        const char *name = string_at(&r, &r.s[r.shstrndx], s->name);

        out->sections[i] = (ObjectSection){.name = name ? name : "",
                                           .type = s->type,
                                           .flags = s->flags,
                                           .size = s->size,
                                           .align = s->align,
                                           .data = section_bytes(&r, s),
                                           .link = s->link,
                                           .info = s->info,
                                           .offset = s->offset,
                                           .address = s->address};
    }
    out->sections[0].name = "";
    if (!read_symbols(a, &r, symbol_table(&r), &out->symbols, &out->nsymbols) ||
        !read_symbols(a, &r, table_of(&r, SHT_DYNSYM), &out->dynamic, &out->ndynamic))
        return broken(d, file);
    return true;
}
