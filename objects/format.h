/* What the files about formats other than ELF share. */
#ifndef TVMCC_OBJECTS_FORMAT_H
#define TVMCC_OBJECTS_FORMAT_H

#include "objects/objects.h"

/* From a place in a file on; of nothing, if that lies outside. */
Reader reader_at(Bytes b, uint64_t offset);
/* `n` bytes from there on; none, if some lie outside. */
Bytes part_at(Bytes b, uint64_t offset, uint64_t n);

ObjectReloc macho_reloc(const Object *o, const ObjectSection *s, uint32_t i);
ObjectReloc coff_reloc(const Object *o, const ObjectSection *s, uint32_t i);
enum { MACHO_RELOC_BYTES = 8, COFF_RELOC_BYTES = 10 };

void add_le(StrBuf *s, uint64_t value, uint32_t bytes); /* little endian */
void add_zeros(StrBuf *s, uint64_t n);
/* A name in a field of that width; longer ones are cut. */
void add_field(StrBuf *s, const char *name, uint32_t width);

/* Objects with one read-only symbol, aligned to DATA_ALIGN.  Data are less than 2 GiB. */
bool macho_blob(Diags *d, Arena *a, const char *triple, const char *symbol, Bytes data, Bytes *out);
bool coff_blob(Diags *d, Arena *a, const char *triple, const char *symbol, Bytes data, Bytes *out);
bool wasm_blob(Arena *a, const char *symbol, Bytes data, Bytes *out);

#endif
