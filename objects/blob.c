/* blob.c: an object with one read-only symbol, of whatever format a triple has; small things that
 * the formats share. */
#include "objects/elf.h"
#include "objects/format.h"

Reader reader_at(Bytes b, uint64_t offset)
{
    return reader(offset <= b.n ? (Bytes){b.at + offset, b.n - offset} : (Bytes){0});
}

Bytes part_at(Bytes b, uint64_t offset, uint64_t n)
{
    return offset <= b.n && n <= b.n - offset ? (Bytes){b.at + offset, n} : (Bytes){0};
}

void add_le(StrBuf *s, uint64_t value, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        str_addc(s, (char)(value >> 8 * i));
}

void add_zeros(StrBuf *s, uint64_t n)
{
    while (n--)
        str_addc(s, 0);
}

void add_field(StrBuf *s, const char *name, uint32_t width)
{
    for (uint32_t i = 0; i < width; i++)
        str_addc(s, *name ? *name++ : 0);
}

static bool elf_data(Diags *d, Arena *a, const char *triple, const char *abi, const char *section,
                     const char *symbol, Bytes data, Bytes *out)
{
    ObjectTarget t;

    if (!elf_target(d, triple, &t))
        return false;
    elf_target_abi(&t, abi);
    *out = section ? elf_blob_in(a, &t, section, symbol, data) : elf_blob(a, &t, symbol, data);
    return true;
}

bool object_data_is_large(const char *triple, uint64_t n)
{
    enum { LARGE = 1 << 30 }; /* half of what code reaches: it may not be alone in its program */

    return n >= LARGE && object_format_of(triple) == OBJECT_ELF && str_starts(triple, "x86_64");
}

uint64_t object_blob_most(const char *triple)
{
    static const struct {
        const char *prefix;
        uint64_t    most;
    } rows[] = {{"x86_64", UINT64_MAX}, {"aarch64", 7ull << 29}, {"arm64", 7ull << 29}};

    for (size_t i = 0; i < COUNT(rows) && object_format_of(triple) == OBJECT_ELF; i++)
        if (str_starts(triple, rows[i].prefix))
            return rows[i].most;
    return INT32_MAX;
}

bool object_blob(Diags *d, Arena *a, const char *triple, const char *abi, const char *section,
                 const char *symbol, Bytes data, Bytes *out)
{
    ObjectFormat f = object_format_of(triple);

    if (data.n > object_blob_most(triple))
        return diag_error(d, E_PACK, NO_LOC, "an object for '%s' cannot hold %zu bytes", triple,
                          data.n);
    switch (f) {
    case OBJECT_MACHO: return macho_blob(d, a, triple, symbol, data, out);
    case OBJECT_COFF: return coff_blob(d, a, triple, symbol, data, out);
    case OBJECT_WASM: return wasm_blob(a, symbol, data, out);
    case OBJECT_NONE:
    case OBJECT_ELF: break;
    }
    return elf_data(d, a, triple, abi, section, symbol, data, out);
}
