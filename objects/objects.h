/* objects: object files and static libraries, read and written.
 *
 *   object.c    any object, told by its first bytes; macho.c, coff.c and wasm.c read what is not
 * ELF elf.c       a writer for read-only data, and sections and symbols of what others wrote ar.c
 * static libraries
 *
 * Readers answer in the terms of ELF, which has what the others have.  Input is hostile: sizes and
 * numbers are bounded, names are views.  Makers are pure: same input, same bytes, on every machine.
 */
#ifndef TVMCC_OBJECTS_H
#define TVMCC_OBJECTS_H

#include "base/base.h"

/* ---- members of libraries and archives -------------------------------------------------------- */

typedef struct {
    const char *path; /* relative, '/' between parts */
    Bytes       data;
    bool        executable;
    int64_t     time;               /* set by pack_read, for those who compare */
    uint32_t    mode, owner, group; /* also these */
} Member;

/* ---- elf.c: object files -----------------------------------------------------------------------
 */

typedef struct {
    uint32_t bits; /* 32 or 64 */
    bool     big_endian;
    uint16_t machine;
    uint32_t flags;
} ObjectTarget;

typedef struct {
    const char *name;
    uint64_t    value, size;
    uint32_t    section; /* 0: undefined */
    uint8_t     bind, type, visibility;
} ObjectSymbol;

typedef struct {
    const char *name;
    uint32_t    type;
    uint64_t    flags, size, align;
    Bytes       data;       /* empty for .bss */
    uint32_t    link, info; /* other sections, as the type says */
    uint64_t    offset;     /* in the file */
    uint64_t    address;    /* 0 in relocatable files */
} ObjectSection;

typedef struct {
    ObjectTarget   target;
    uint16_t       type;       /* 1: relocatable, 3: shared */
    bool           underscore; /* C names have one in front (Mach-O, 32-bit COFF) */
    uint32_t       nsections, nsymbols;
    ObjectSection *sections;
    ObjectSymbol  *symbols;
    uint32_t       ndynamic; /* what a shared library offers and asks for */
    ObjectSymbol  *dynamic;
} Object;

/* The header fields objects of that triple have.  Error: no ELF target. */
bool elf_target(Diags *d, const char *triple, ObjectTarget *out);
/* The same for another -mabi=; "" is the usual one. */
void elf_target_abi(ObjectTarget *t, const char *abi);
/* Sections and symbols; names are views.  Error with `file` in it: E_PACK. */
bool elf_read(Diags *d, Arena *a, const char *file, Bytes object, Object *out);
/* A number of .ARM.attributes: 7 is the profile ('A', 'M'), 28 how floats are passed (1: hard). */
bool elf_arm_attribute(const Object *f, uint64_t tag, uint64_t *value);
/* A relocatable object with one read-only section `.rodata.<symbol>`, aligned to 64. */
Bytes elf_blob(Arena *a, const ObjectTarget *t, const char *symbol, Bytes data);
/* The same in a section of that name instead of .rodata.<symbol>. */
Bytes elf_blob_in(Arena *a, const ObjectTarget *t, const char *section, const char *symbol,
                  Bytes data);

/* ---- object.c: any object, in the terms of ELF --------------------------------------------- */

enum { /* ObjectSection.flags, .type; ObjectSymbol.bind, .visibility */
       SECTION_WRITE = 1,
       SECTION_ALLOC = 2,
       SECTION_EXEC = 4,
       SECTION_TLS = 0x400,
       SECTION_INIT = 14,
       SYMBOL_GLOBAL = 1,
       SYMBOL_WEAK = 2,
       SYMBOL_HIDDEN = 2
};

/* ELF, Mach-O, COFF or WebAssembly, by its first bytes. */
bool object_read(Diags *d, Arena *a, const char *file, Bytes object, Object *out);
bool macho_read(Diags *d, Arena *a, const char *file, Bytes object, Object *out);
bool coff_read(Diags *d, Arena *a, const char *file, Bytes object, Object *out);
bool wasm_read(Diags *d, Arena *a, const char *file, Bytes object, Object *out);

/* ---- ar.c ---------------------------------------------------------------------- */

/* A static library in the GNU format, with its symbol index. */
bool ar_library(Diags *d, Arena *a, const Member *members, uint32_t n, Bytes *out);
bool ar_is_library(Bytes file);
/* The members of a library in the GNU or BSD format, in its order, without its tables; views. */
bool ar_members(Diags *d, Arena *a, const char *file, Bytes library, Member **members, uint32_t *n);

#endif
