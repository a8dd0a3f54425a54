/* wasm.c: sections and symbols of WebAssembly objects, and objects for data.
 *
 * Names and kinds of symbols stand in the custom section "linking"; a function that is only
 * declared has the name of its import.  Data segments count as sections: whether one is read-only
 * is told by its name, since WebAssembly's memory has no such thing.
 */
#include "objects/format.h"

#include <string.h>

enum {
    ID_CUSTOM = 0,
    ID_IMPORT = 2,
    ID_CODE = 10,
    ID_DATA = 11,
    ID_DATA_COUNT = 12,
    SUB_SEGMENTS = 5,
    SUB_INITS = 6,
    SUB_SYMBOLS = 8,
    SYM_FUNCTION = 0,
    SYM_DATA = 1,
    SYM_SECTION = 3,
    FLAG_WEAK = 1,
    FLAG_LOCAL = 2,
    FLAG_HIDDEN = 4,
    FLAG_UNDEFINED = 0x10,
    FLAG_NAMED = 0x40,
    MAX_COUNT = 1 << 20
};

typedef VEC(const char *) Names;
typedef VEC(ObjectSection) Sections;
typedef VEC(ObjectSymbol) Symbols;

typedef struct {
    Arena   *a;
    Names    imports[5]; /* by kind: function, table, memory, global, tag */
    Sections sections;
    Symbols  symbols;
} Wasm;

static bool broken(Diags *d, const char *file)
{
    return diag_error(d, E_PACK, (Loc){.file = file}, "not a valid WebAssembly object");
}

static const char *name_of(Wasm *w, Reader *r)
{
    uint64_t n = read_varint(r);
    Bytes    b = n <= reader_left(r) ? read_bytes(r, n) : (Bytes){0};

    return b.n ? arena_printf(w->a, "%.*s", (int)b.n, (const char *)b.at) : "";
}

/* A count that the bytes left can hold. */
static uint64_t count_of(Reader *r)
{
    uint64_t n = read_varint(r);

    return n <= reader_left(r) && n < MAX_COUNT ? n : 0;
}

static void limits(Reader *r)
{
    uint8_t flags = read_u8(r);

    read_varint(r);
    if (flags & 1)
        read_varint(r);
}

static void imports(Wasm *w, Reader r)
{
    for (uint64_t n = count_of(&r); n; n--) {
        const char *name;
        uint8_t     kind;

        name_of(w, &r);
        name = name_of(w, &r);
        kind = read_u8(&r);
        if (kind > 4)
            return;
        vec_push(w->a, &w->imports[kind], name);
        if (kind == 0)
            read_varint(&r);
        else if (kind == 1) {
            read_u8(&r);
            limits(&r);
        } else if (kind == 2)
            limits(&r);
        else
            read_u16(&r); /* type and mutability, or attribute and type */
    }
}

static void symbol(Wasm *w, Reader *r)
{
    static const uint8_t import_kind[] = {[0] = 0, [2] = 3, [4] = 4, [5] = 1};
    uint8_t              kind = read_u8(r);
    uint64_t             flags = read_varint(r), index;
    bool                 undefined = flags & FLAG_UNDEFINED;
    ObjectSymbol         s = {.name = "", .section = undefined ? 0 : 1};

    if (kind == SYM_DATA) {
        s.name = name_of(w, r);
        if (!undefined) {
            s.section = (uint32_t)read_varint(r) + 2; /* behind the empty one and the code */
            s.value = read_varint(r);
            s.size = read_varint(r);
        }
    } else {
        index = read_varint(r);
        if (kind == SYM_SECTION)
            return;
        if (!undefined || flags & FLAG_NAMED)
            s.name = name_of(w, r);
        else if (kind < COUNT(import_kind) && index < w->imports[import_kind[kind]].n)
            s.name = w->imports[import_kind[kind]].at[index];
    }
    s.bind = flags & FLAG_LOCAL ? SYMBOL_LOCAL : flags & FLAG_WEAK ? SYMBOL_WEAK : SYMBOL_GLOBAL;
    s.hidden = flags & FLAG_HIDDEN;
    s.type = kind == SYM_FUNCTION ? 2 : 1;
    vec_push(w->a, &w->symbols, s);
}

static void segment(Wasm *w, Reader *r)
{
    ObjectSection s = {.name = name_of(w, r), .type = 1, .flags = SECTION_ALLOC};
    uint64_t      flags;

    s.align = (uint64_t)1 << (read_varint(r) & 31);
    flags = read_varint(r);
    if (!str_starts(s.name, ".rodata") && !str_starts(s.name, ".data.rel.ro"))
        s.flags |= SECTION_WRITE;
    if (flags & 2)
        s.flags |= SECTION_TLS;
    vec_push(w->a, &w->sections, s);
}

static bool linking(Wasm *w, Reader r)
{
    if (read_varint(&r) != 2)
        return false;
    while (reader_left(&r)) {
        uint8_t  id = read_u8(&r);
        uint64_t size = read_varint(&r);
        Bytes    body;
        Reader   sub;
        uint64_t n;

        if (size > reader_left(&r))
            return false;
        body = read_bytes(&r, size);
        sub = reader(body);
        n = count_of(&sub);
        if (id == SUB_INITS && n)
            vec_push(w->a, &w->sections,
                     ((ObjectSection){.name = "init functions",
                                      .kind = SECTION_INIT,
                                      .flags = SECTION_ALLOC,
                                      .size = size}));
        for (; n && reader_left(&sub) && id == SUB_SYMBOLS; n--)
            symbol(w, &sub);
        for (; n && reader_left(&sub) && id == SUB_SEGMENTS; n--)
            segment(w, &sub);
    }
    return true;
}

/* Sizes of the data segments, which come before their names. */
static void data_sizes(Wasm *w, Reader r)
{
    uint32_t i = 2; /* behind the empty one and the code */

    for (uint64_t n = count_of(&r); n; n--, i++) {
        uint64_t kind = read_varint(&r), size;

        if (kind == 2)
            read_varint(&r);
        if (kind != 1)
            while (reader_left(&r) && read_u8(&r) != 0x0b) { /* an expression ends in 0x0b */
            }
        size = read_varint(&r);
        if (size > reader_left(&r))
            return;
        read_bytes(&r, size);
        if (i < w->sections.n)
            w->sections.at[i].size = size;
    }
}

bool wasm_read(Diags *d, Arena *a, const char *file, Bytes object, Object *out)
{
    Reader r = reader(object);
    Wasm   w = {.a = a};
    Bytes  data = {0};

    read_u64(&r); /* magic and version */
    vec_push(a, &w.sections, (ObjectSection){.name = ""});
    vec_push(a, &w.sections,
             ((ObjectSection){
                 .name = "code", .type = 1, .flags = SECTION_ALLOC | SECTION_EXEC, .align = 1}));
    vec_push(a, &w.symbols, (ObjectSymbol){.name = ""});
    while (reader_left(&r)) {
        uint8_t  id = read_u8(&r);
        uint64_t size = read_varint(&r);
        Bytes    body;
        Reader   s;

        if (size > reader_left(&r))
            return broken(d, file);
        body = read_bytes(&r, size);
        s = reader(body);
        if (id == ID_IMPORT)
            imports(&w, s);
        else if (id == ID_CODE)
            w.sections.at[1].size = size;
        else if (id == ID_DATA)
            data = body;
        else if (id == ID_CUSTOM && !strcmp(name_of(&w, &s), "linking") && !linking(&w, s))
            return broken(d, file);
    }
    data_sizes(&w, reader(data));
    *out = (Object){.format = OBJECT_WASM,
                    .target = {.bits = 32},
                    .relocatable = true,
                    .nsections = w.sections.n,
                    .nsymbols = w.symbols.n,
                    .sections = w.sections.at,
                    .symbols = w.symbols.at};
    return true;
}

/* ---- writing ------------------------------------------------------------------------------------ */

static void add_varint(StrBuf *s, uint64_t n)
{
    for (; n >= 0x80; n >>= 7)
        str_addc(s, (char)(n | 0x80));
    str_addc(s, (char)n);
}

static void add_name(StrBuf *s, const char *name)
{
    add_varint(s, strlen(name));
    str_add(s, name);
}

/* A section, or part of "linking": a number, a size and what was written. */
static void add_part(StrBuf *s, uint8_t id, const StrBuf *body)
{
    str_addc(s, (char)id);
    add_varint(s, body->n);
    str_addn(s, body->at, body->n);
}

static StrBuf linking_of(Arena *a, const char *symbol, uint64_t bytes)
{
    enum { VERSION = 2, ALIGN_64 = 6 };
    StrBuf s = strbuf(a), symbols = strbuf(a), segments = strbuf(a);

    add_varint(&symbols, 1);
    add_varint(&symbols, SYM_DATA);
    add_varint(&symbols, 0); /* flags: seen by all */
    add_name(&symbols, symbol);
    add_varint(&symbols, 0); /* segment and offset */
    add_varint(&symbols, 0);
    add_varint(&symbols, bytes);
    add_varint(&segments, 1);
    add_name(&segments, arena_printf(a, ".rodata.%s", symbol));
    add_varint(&segments, ALIGN_64);
    add_varint(&segments, 0);
    add_name(&s, "linking");
    add_varint(&s, VERSION);
    add_part(&s, SUB_SYMBOLS, &symbols);
    add_part(&s, SUB_SEGMENTS, &segments);
    return s;
}

bool wasm_blob(Arena *a, const char *symbol, Bytes data, Bytes *out)
{
    enum { I32_CONST = 0x41, END = 0x0b, MEMORY = 2 };
    StrBuf s = strbuf(a), imports = strbuf(a), count = strbuf(a), head = strbuf(a);
    StrBuf linking = linking_of(a, symbol, data.n);

    str_addn(&s, "\0asm\1\0\0\0", 8);
    add_varint(&imports, 1);
    add_name(&imports, "env");
    add_name(&imports, "__linear_memory");
    add_varint(&imports, MEMORY);
    add_varint(&imports, 0); /* no most; at least so many pages: */
    add_varint(&imports, align_up(data.n, 65536) / 65536);
    add_part(&s, ID_IMPORT, &imports);
    add_varint(&count, 1);
    add_part(&s, ID_DATA_COUNT, &count);
    add_varint(&head, 1);
    add_varint(&head, 0); /* at a place that an expression gives: 0 */
    str_addc(&head, I32_CONST);
    add_varint(&head, 0);
    str_addc(&head, END);
    add_varint(&head, data.n);
    str_addc(&s, ID_DATA);
    add_varint(&s, head.n + data.n);
    str_addn(&s, head.at, head.n);
    str_addn(&s, (const char *)data.at, data.n);
    add_part(&s, ID_CUSTOM, &linking);
    *out = (Bytes){(const uint8_t *)s.at, s.n};
    return true;
}
