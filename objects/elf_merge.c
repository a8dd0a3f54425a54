/* elf_merge.c: several ELF objects as one, without a linker.
 *
 * Kernels are compiled apart and have to come out as one relocatable object, each under the name it
 * has in the model.  All sections are kept side by side, as an object may have many of one name;
 * only the symbol tables become one, so symbol numbers in relocations and section numbers change.
 * Both classes, both byte orders.
 *
 *     file header | large data (weights) | other sections | .symtab | .strtab | section headers
 *
 * Large data come first and are not copied: the result is a list of pieces, one of which is where
 * they lie already.  So their place in the file does not depend on the code, and a compile can
 * write weights before it knows any. */
#include "objects/elf.h"

#include <string.h>

enum { MAX_ALIGN = 1 << 16, LARGE = 1 << 20 };

typedef struct {
    ElfShdr        h;
    const char    *name;
    const uint8_t *data; /* NULL: none in the file */
    uint32_t       out;  /* number in the result, 0: left out */
} Section;

typedef struct {
    ElfSym      y; /* its section: own numbers, SHN_ABS and the like as they are */
    const char *name;
    uint32_t    out;
} Symbol;

typedef struct {
    ElfLayout   l;
    Bytes       header; /* of the file */
    uint32_t    nsections, nsymbols, nlocals;
    Section    *s;
    Symbol     *sym;
    const char *kernel; /* what its symbol `f` is called from now on; NULL: so */
} Input;

typedef struct {
    Diags   *d;
    Arena   *a, *scratch; /* of the result; of what is dropped with merge_end */
    uint32_t n;
    Input   *in;
    StrBuf   head, file, names; /* head: the file header */
    uint64_t base;              /* where `file` begins: behind head and large data */
    VEC(Bytes) large;
    VEC(Symbol) symbols; /* sections are numbers of the result */
    uint32_t    nlocals, nsections;
    const char *twice; /* a symbol that two objects define */
} Merge;

/* ---- reading: nothing is taken on trust; objects are inputs of a link ------------------------------ */

static bool read_symbols(Arena *a, const ElfRaw *r, Input *o)
{
    uint32_t table = elf_table(r, SHT_SYMTAB);

    o->nsymbols = elf_table_count(r, table);
    o->nlocals = table ? r->s[table].info : 0;
    o->sym = NEW_ARRAY(a, Symbol, o->nsymbols + 1);
    for (uint32_t i = 0; i < o->nsymbols; i++) {
        o->sym[i].y = elf_table_at(r, table, i);
        o->sym[i].name = elf_string(r, r->s[table].link, o->sym[i].y.name);
        if (!o->sym[i].name)
            return false;
    }
    return o->nlocals <= o->nsymbols;
}

static bool read_input(Arena *a, Bytes b, Input *o)
{
    ElfRaw r;

    if (!elf_open(a, b, &r))
        return false;
    o->l = r.l;
    o->header = (Bytes){b.at, r.l.ehdr};
    o->nsections = r.n;
    o->s = NEW_ARRAY(a, Section, r.n);
    for (uint32_t i = 0; i < r.n; i++) {
        if (r.s[i].align > MAX_ALIGN)
            return false;
        o->s[i] = (Section){.h = r.s[i],
                            .name = elf_section_name(&r, i),
                            .data = r.s[i].type == SHT_NOBITS ? NULL : elf_bytes(&r, i).at};
    }
    return read_symbols(a, &r, o);
}

/* ---- one symbol table ----------------------------------------------------------------------------- */

/* Sections of which a product has one. */
static bool once_only(const char *name)
{
    return str_starts(name, ".note.") || str_ends(name, ".attributes") || !strcmp(name, ".comment");
}

static bool is_empty(const Input *o, uint32_t section)
{
    if (o->s[section].h.size)
        return false;
    for (uint32_t k = 0; k < o->nsymbols; k++)
        if (o->sym[k].y.section == section)
            return false;
    return true;
}

static void number_sections(Merge *m)
{
    m->nsections = 1;
    for (uint32_t i = 0; i < m->n; i++)
        for (uint32_t k = 1; k < m->in[i].nsections; k++) {
            Section *s = &m->in[i].s[k];

            if (s->h.type == SHT_NULL || s->h.type == SHT_SYMTAB || s->h.type == SHT_STRTAB ||
                s->h.type == SHT_ADDRSIG || (i && (once_only(s->name) || is_empty(&m->in[i], k))))
                continue;
            s->out = m->nsections++;
        }
}

static uint16_t out_section(const Input *o, uint16_t section)
{
    if (section >= SHN_LORESERVE)
        return section;
    return section < o->nsections ? (uint16_t)o->s[section].out : 0;
}

static uint32_t add_symbol(Merge *m, const Input *o, const Symbol *y)
{
    Symbol own = *y;

    own.y.section = out_section(o, y->y.section);
    vec_push(m->scratch, &m->symbols, own);
    return m->symbols.n - 1;
}

/* Locals of all objects, then globals, each once and defined where any object defines it. */
static void number_symbols(Merge *m)
{
    Strings *strings = strings_new(m->scratch);
    Map     *globals = map_new(m->scratch);

    vec_push(m->scratch, &m->symbols, (Symbol){.name = ""});
    for (uint32_t i = 0; i < m->n; i++) {
        Input *o = &m->in[i];

        for (uint32_t k = 1; k < o->nlocals; k++) {
            Symbol *y = &o->sym[k];

            if ((y->y.info & 15) != STT_FILE || i == 0)
                y->out = add_symbol(m, o, y);
        }
    }
    m->nlocals = m->symbols.n;
    for (uint32_t i = 0; i < m->n; i++) {
        Input *o = &m->in[i];

        for (uint32_t k = o->nlocals ? o->nlocals : 1; k < o->nsymbols; k++) {
            Symbol *y = &o->sym[k];
            if (o->kernel && !strcmp(y->name, "f"))
                y->name = o->kernel;
            uint64_t key = PTR_KEY(intern(strings, y->name));
            uint32_t at = (uint32_t)(uintptr_t)map_get(globals, key);

            if (!at) {
                at = add_symbol(m, o, y);
                map_put(globals, key, (void *)(uintptr_t)at);
            } else if (m->symbols.at[at].y.section == 0 && y->y.section != 0) {
                m->symbols.at[at] = *y;
                m->symbols.at[at].y.section = out_section(o, y->y.section);
            } else if (y->y.section != 0) {
                m->twice = y->name;
            }
            y->out = at;
        }
    }
}

static bool is_relocations(const Section *s)
{
    return s->h.type == SHT_REL || s->h.type == SHT_RELA;
}

/* Relocations with the symbol numbers of the result, as a copy; NULL if one is wrong. */
static const uint8_t *renumber(Arena *a, const Input *o, const Section *s)
{
    uint8_t *data = arena_dup(a, s->data, s->h.size);
    uint32_t w = o->l.word, shift = o->l.wide ? 32 : 8;
    uint64_t step = s->h.entsize;

    if (step < 2 * w)
        return NULL;
    for (uint64_t at = 0; step <= s->h.size && at <= s->h.size - step; at += step) {
        uint64_t info = elf_get(data + at + w, &o->l, w), k = info >> shift;

        if (k >= o->nsymbols)
            return NULL;
        info = (uint64_t)o->sym[k].out << shift | (info & (((uint64_t)1 << shift) - 1));
        elf_put(data + at + w, &o->l, info, w);
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
    return s->out && s->data && s->h.type == SHT_PROGBITS && s->h.size >= LARGE &&
           !(s->h.flags & SHF_EXECINSTR);
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

            rest += is_large(s) || s->h.type == SHT_NOBITS ? 256 : s->h.size + 256;
            if (!is_large(s))
                continue;
            s->h.offset = align_up(m->base, s->h.align ? s->h.align : 1);
            vec_push(m->a, &m->large, ((Bytes){zeros, s->h.offset - m->base}));
            vec_push(m->a, &m->large, ((Bytes){s->data, s->h.size}));
            m->base = s->h.offset + s->h.size;
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
    uint8_t bytes[SHDR_MOST];
    ElfShdr h = s->h;

    h.name = add_name(m, s->name);
    elf_put_shdr(bytes, &m->in->l, &h);
    str_addn(out, (char *)bytes, m->in->l.shdr);
}

static bool add_sections(Merge *m, StrBuf *headers)
{
    for (uint32_t i = 0; i < m->n; i++)
        for (uint32_t k = 1; k < m->in[i].nsections; k++) {
            Input   *o = &m->in[i];
            Section *s = &o->s[k];

            if (!s->out)
                continue;
            if (s->h.type == SHT_GROUP)
                return false;
            if (is_relocations(s)) {
                if (!(s->data = renumber(m->scratch, o, s)) || s->h.info >= o->nsections)
                    return false;
                s->h.link = m->nsections; /* .symtab */
                s->h.info = o->s[s->h.info].out;
            } else if (s->h.flags & SHF_LINK_ORDER)
                s->h.link = s->h.link < o->nsections ? o->s[s->h.link].out : 0;
            if (!is_large(s)) {
                pad(m, s->h.align);
                s->h.offset = m->base + m->file.n;
                if (s->data)
                    str_addn(&m->file, (char *)s->data, s->h.size);
            }
            add_header(m, headers, s);
        }
    return true;
}

static void add_symtab(Merge *m, StrBuf *headers)
{
    const ElfLayout *l = &m->in->l;
    Section          s = {.h = {.type = SHT_SYMTAB,
                                .link = m->nsections + 1,
                                .info = m->nlocals,
                                .align = 8,
                                .entsize = l->sym,
                                .size = (uint64_t)l->sym * m->symbols.n},
                          .name = ".symtab"};

    pad(m, 8);
    s.h.offset = m->base + m->file.n;
    for (uint32_t i = 0; i < m->symbols.n; i++) {
        uint8_t bytes[SYM_MOST];
        ElfSym  y = m->symbols.at[i].y;

        y.name = add_name(m, m->symbols.at[i].name);
        elf_put_sym(bytes, l, &y);
        str_addn(&m->file, (char *)bytes, l->sym);
    }
    add_header(m, headers, &s);
}

static void add_strtab(Merge *m, StrBuf *headers)
{
    ElfShdr h = {.type = SHT_STRTAB, .align = 1};
    uint8_t bytes[SHDR_MOST];

    h.name = add_name(m, ".strtab"); /* before the size is taken */
    h.offset = m->base + m->file.n;
    h.size = m->names.n;
    str_addn(&m->file, m->names.at, m->names.n);
    elf_put_shdr(bytes, &m->in->l, &h);
    str_addn(headers, (char *)bytes, m->in->l.shdr);
}

static bool same_machine(const Input *x, const Input *y)
{
    return x->l.wide == y->l.wide && x->l.big == y->l.big &&
           elf_get_machine(x->header.at, &x->l) == elf_get_machine(y->header.at, &y->l) &&
           elf_get_flags(x->header.at, &x->l) == elf_get_flags(y->header.at, &y->l);
}

/* Objects of one machine, read. */
static bool read_all(Merge *m, const Bytes *objects, const char *const *names,
                     const char *const *files)
{
    for (uint32_t i = 0; i < m->n; i++) {
        Input *o = &m->in[i];

        o->kernel = names ? names[i] : NULL;
        if (read_input(m->scratch, objects[i], o) && same_machine(o, m->in))
            continue;
        if (!files)
            BUG("object %u of %u cannot be merged", i, m->n);
        return diag_error(m->d, E_PACK, (Loc){.file = files[i]},
                          i ? "this is no object for the machine of '%s'" : "this is no ELF object",
                          *files);
    }
    return true;
}

/* Large data and the rest of objects that were read. */
static bool write_all(Merge *m, const char *const *files)
{
    StrBuf  headers = strbuf(m->scratch);
    Section none = {.name = ""};
    Loc     loc = files ? (Loc){.file = *files} : NO_LOC;

    number_sections(m);
    number_symbols(m);
    if (m->twice)
        return diag_error(m->d, E_PACK, loc, "'%s' is defined twice in what is merged", m->twice);
    if (m->nsections + 2 >= SHN_LORESERVE)
        return diag_error(m->d, E_PACK, loc, "%u sections do not fit into one object",
                          m->nsections);
    str_addn(&m->head, (const char *)m->in->header.at, m->in->header.n);
    place_large(m);
    add_header(m, &headers, &none);
    if (!add_sections(m, &headers))
        return diag_error(m->d, E_PACK, loc, "objects with groups of sections cannot be merged");
    add_symtab(m, &headers);
    add_strtab(m, &headers);
    pad(m, 8);
    elf_put_sections((uint8_t *)m->head.at, &m->in->l, m->base + m->file.n, m->nsections + 2,
                     m->nsections + 1);
    str_addn(&m->file, headers.at, headers.n);
    return true;
}

/* ---- what the driver asks for ------------------------------------------------------------------------- */

/* But for where their sections stand; merging takes the header of the first object. */
static bool same_header(Arena *a, const Input *x, const Input *y)
{
    uint8_t *copy[2] = {arena_dup(a, x->header.at, x->header.n),
                        arena_dup(a, y->header.at, y->header.n)};

    if (x->header.n != y->header.n)
        return false;
    elf_put_sections(copy[0], &x->l, 0, 0, 0);
    elf_put_sections(copy[1], &x->l, 0, 0, 0);
    return memcmp(copy[0], copy[1], x->header.n) == 0;
}

/* Its only global symbol is `f`, which is in it. */
static bool defines_f(const Input *o)
{
    uint32_t kernels = 0;

    for (uint32_t i = o->nlocals ? o->nlocals : 1; i < o->nsymbols; i++) {
        if (o->sym[i].y.section == 0)
            continue;
        if (strcmp(o->sym[i].name, "f") != 0 || o->sym[i].y.section >= o->nsections)
            return false;
        kernels++;
    }
    return kernels == 1;
}

bool elf_unit_fits(Arena *a, Bytes object, Bytes like)
{
    Input o = {0}, other = {0};

    if (!read_input(a, object, &o) || !read_input(a, like, &other) || !same_header(a, &o, &other))
        return false;
    for (uint32_t i = 1; i < o.nsections; i++) {
        const Section *s = &o.s[i];

        if (s->h.type == SHT_GROUP ||
            (is_relocations(s) && (s->h.info >= o.nsections || !renumber(a, &o, s))))
            return false;
    }
    return defines_f(&o);
}

static void merge_start(Merge *m, Diags *d, Arena *a, uint32_t n)
{
    *m = (Merge){.d = d, .a = a, .scratch = arena_new(NULL), .n = n};
    m->in = NEW_ARRAY(m->scratch, Input, n + 1);
    m->head = strbuf(a);
    m->file = strbuf(a);
    m->names = strbuf(m->scratch);
    str_addc(&m->names, 0);
}

/* The pieces of the result, unless something failed. */
static bool merge_end(Merge *m, bool ok, BytesList *out)
{
    Bytes   *at = NEW_ARRAY(m->a, Bytes, m->large.n + 2);
    uint32_t n = 0;

    at[n++] = (Bytes){(const uint8_t *)m->head.at, m->head.n};
    for (uint32_t i = 0; i < m->large.n; i++)
        at[n++] = m->large.at[i];
    at[n++] = (Bytes){(const uint8_t *)m->file.at, m->file.n};
    if (ok)
        *out = (BytesList){n, at};
    arena_free(m->scratch);
    return ok;
}

bool elf_merge(Diags *d, Arena *a, uint32_t n, const Bytes *objects, const char *const *names,
               const char *const *files, BytesList *out)
{
    Merge m;

    merge_start(&m, d, a, n);
    return merge_end(&m, read_all(&m, objects, names, files) && write_all(&m, files), out);
}

bool elf_join(Diags *d, Arena *a, Bytes code, const char *section, const char *symbol, Bytes data,
              BytesList *out)
{
    Merge   m;
    Section sections[] = {{.name = ""},
                          {.h = {.type = SHT_PROGBITS, .align = DATA_ALIGN, .size = data.n},
                           .name = section,
                           .data = data.at}};
    Symbol  symbols[] = {{.name = ""},
                         {.y = {.info = STB_GLOBAL << 4 | STT_OBJECT, .section = 1, .size = data.n},
                          .name = symbol}};

    merge_start(&m, d, a, 1);
    if (!read_all(&m, &code, NULL, NULL))
        return merge_end(&m, false, out);
    sections[1].h.flags = elf_data_flags(elf_get_machine(m.in->header.at, &m.in->l), section);
    m.in[1] = (Input){.l = m.in->l,
                      .header = m.in->header,
                      .nsections = 2,
                      .nsymbols = 2,
                      .nlocals = 1,
                      .s = sections,
                      .sym = symbols};
    m.n = 2;
    return merge_end(&m, write_all(&m, NULL), out);
}
