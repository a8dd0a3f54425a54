/* objects: object files and static libraries, read and written.
 *
 *   object.c      any object, told by its first bytes or by a triple
 *   elf.c         ELF: sections, symbols, what the dynamic linker is told
 *   elf_layout.c  ... the bytes of its tables
 *   elf_write.c   ... objects for read-only data
 *   elf_merge.c   ... several objects as one, without a linker
 *   code_object.c ... an object for an AMD GPU as a shared file
 *   relocs.c      relocations, of ELF and by format
 *   macho.c       Mach-O (macOS, iOS), both ways
 *   coff.c        COFF (Windows), both ways
 *   wasm.c        WebAssembly, both ways
 *   blob.c        an object for data, of any format
 *   ar.c          static libraries
 *
 * Nothing outside this room knows a format's bytes.  Readers answer in the terms of ELF, which has
 * what the others have.  Input is hostile: sizes and numbers are bounded; names and data are views.
 * Makers are pure: same input, same bytes, on every machine.
 */
#ifndef TVMCC_OBJECTS_H
#define TVMCC_OBJECTS_H

#include "base/base.h"

/* ---- object.c: any object -------------------------------------------------------------------- */

typedef enum { OBJECT_NONE, OBJECT_ELF, OBJECT_MACHO, OBJECT_COFF, OBJECT_WASM } ObjectFormat;

enum { /* ObjectTarget.machine, as ELF numbers them; 0: none of these */
       MACHINE_X86 = 3,
       MACHINE_PPC64 = 21,
       MACHINE_ARM = 40,
       MACHINE_X86_64 = 62,
       MACHINE_AARCH64 = 183,
       MACHINE_AMDGPU = 224,
       MACHINE_RISCV = 243
};

typedef struct {
    uint32_t bits; /* 32 or 64 */
    bool     big_endian;
    uint16_t machine;
    uint32_t flags; /* of the file header */
} ObjectTarget;

typedef struct {
    const char *name;
    uint64_t    value, size;
    uint32_t    section; /* 0: undefined */
    enum { SYMBOL_LOCAL, SYMBOL_GLOBAL, SYMBOL_WEAK } bind;
    uint8_t type;   /* the format's number, to tell two apart */
    bool    place;  /* names a section or a source file, not code or data */
    bool    hidden; /* seen by what it is linked with, but not outside a shared library */
} ObjectSymbol;

typedef enum {
    SECTION_BYTES, /* code and data, and what has no name here */
    SECTION_ZEROS,
    SECTION_INIT, /* what runs before or after main */
    SECTION_SYMBOLS,
    SECTION_STRINGS,
    SECTION_RELOCS
} SectionKind;

enum { SECTION_WRITE = 1, SECTION_ALLOC = 2, SECTION_EXEC = 4, SECTION_TLS = 0x400 };

typedef struct {
    const char *name;
    SectionKind kind;
    uint32_t    type;  /* the format's number, to tell two apart */
    uint64_t    flags; /* of SECTION_x, among others */
    uint64_t    size, align;
    Bytes       data;       /* empty for .bss, and where a format was not asked for it */
    uint32_t    link, info; /* other sections, as the type says */
    uint64_t    offset;     /* in the file */
    uint64_t    address;    /* 0 in relocatable files, save Mach-O's, whose symbols count from 0 */
    Bytes       relocs;     /* of it, where they are no section of their own */
} ObjectSection;

typedef struct {
    ObjectFormat   format;
    ObjectTarget   target;
    bool           relocatable;         /* no library or program yet */
    bool           underscore;          /* C names have one in front (Mach-O, 32-bit COFF) */
    uint32_t       nsections, nsymbols; /* those numbered 0 are none */
    ObjectSection *sections;
    ObjectSymbol  *symbols;
    uint32_t       nnumbers; /* symbols as relocations count them, where some are left out here */
    uint32_t      *numbers;
    uint32_t       ndynamic; /* what a shared library offers and asks for */
    ObjectSymbol  *dynamic;
    const char    *soname; /* what the dynamic linker looks for; NULL: not said */
    uint32_t       nneeded;
    const char   **needed;   /* libraries */
    uint32_t       textrels; /* how often it is told that it must write into code */
} Object;

/* By the first bytes: OBJECT_NONE is no object. */
ObjectFormat object_format(Bytes file);
/* Of objects for a triple. */
ObjectFormat object_format_of(const char *triple);
/* An ELF shared library, or a program that can be loaded anywhere. */
bool object_is_shared(Bytes file);
/* Sections and symbols of an object of any format; what is none of them is read as ELF.  Error with
 * `file` in it: E_PACK. */
bool object_read(Diags *d, Arena *a, const char *file, Bytes object, Object *out);
bool elf_read(Diags *d, Arena *a, const char *file, Bytes object, Object *out);
bool macho_read(Diags *d, Arena *a, const char *file, Bytes object, Object *out);
bool coff_read(Diags *d, Arena *a, const char *file, Bytes object, Object *out);
bool wasm_read(Diags *d, Arena *a, const char *file, Bytes object, Object *out);
/* What an object says of its machine, as a triple of Linux or WASI; NULL. */
const char *object_triple(const Object *o);
/* Code for Cortex-M, where no dynamic linker runs. */
bool object_is_microcontroller(const Object *o);
/* A number of `bytes` bytes in the order of the target. */
uint64_t object_number(const ObjectTarget *t, const uint8_t *at, uint32_t bytes);
/* A name as linkers of every format take it: others than letters, digits, '_' and '.' become '_'.
 */
const char *object_symbol(Arena *a, const char *prefix, const char *name);

/* ---- blob.c, elf_write.c: objects for data ---------------------------------------------------- */

enum { DATA_ALIGN = 64 };

/* Data so large are to lie in a section that begins with .lrodata, where there are such. */
bool object_data_is_large(const char *triple, uint64_t n);
/* The most bytes of data that a program for that triple can hold in an object: what the format
 * counts, and what code reaches from anywhere. */
uint64_t object_blob_most(const char *triple);
/* A relocatable object with one read-only symbol of these bytes, aligned to DATA_ALIGN.  `abi` is
 * that of -mabi=, "" the usual one; `section` is ELF's, NULL: .rodata.<symbol>. */
bool object_blob(Diags *d, Arena *a, const char *triple, const char *abi, const char *section,
                 const char *symbol, Bytes data, Bytes *out);
/* The header fields objects of that triple have.  Error: no ELF target. */
bool elf_target(Diags *d, const char *triple, ObjectTarget *out);
/* The same for fields of a header that was read. */
Bytes elf_blob(Arena *a, const ObjectTarget *t, const char *symbol, Bytes data);

/* ---- elf_merge.c: several objects as one ------------------------------------------------------ */

/* The symbol `f` of object i gets the name names[i] (names NULL: all stay).  An error names
 * files[i] (NULL: the objects are our own). */
bool elf_merge(Diags *d, Arena *a, uint32_t n, const Bytes *objects, const char *const *names,
               const char *const *files, BytesList *out);
/* An object of code and data of the caller, which it knows as `symbol`: as if the data were an
 * elf_blob_in.  Large data are a piece of their own, the same memory. */
bool elf_join(Diags *d, Arena *a, Bytes code, const char *section, const char *symbol, Bytes data,
              BytesList *out);
/* Whether bytes that were kept somewhere are an object that can be merged, whose only global symbol
 * is `f`, for the machine of `like`. */
bool elf_unit_fits(Arena *a, Bytes object, Bytes like);

/* ---- code_object.c ---------------------------------------------------------------------------- */

/* A relocatable object for an AMD GPU, whose code calls nothing outside, as the shared file that
 * the GPU's driver loads.  E_PACK: it is none, or needs what only a linker or a loader can do. */
bool elf_code_object(Diags *d, Arena *a, Bytes object, Bytes *out);

/* ---- relocs.c ---------------------------------------------------------------------------------- */

typedef enum {
    RELOC_OTHER,
    RELOC_RELATIVE, /* data: an address in the same file */
    RELOC_SYMBOL,   /* data: the address of a symbol */
    RELOC_SECTION   /* data: an address in the section `symbol` */
} RelocKind;

typedef struct {
    uint64_t  at; /* in the section `info`, or that which has them, or an address */
    uint64_t  type, symbol, addend;
    bool      has_addend; /* else what stands where the address goes is added */
    RelocKind kind;
} ObjectReloc;

uint32_t    reloc_count(const Object *o, const ObjectSection *s); /* 0 if they are no relocations */
ObjectReloc reloc_at(const Object *o, const ObjectSection *s, uint32_t i);
/* What a relocation that needs the final address is called; NULL: it needs a distance, which a
 * shared library can keep. */
const char *reloc_absolute(const Object *o, const ObjectReloc *r);

/* ---- ar.c: static libraries ---------------------------------------------------------------------- */

/* A member of a library or an archive. */
typedef struct {
    const char *path; /* relative, '/' between parts */
    Bytes       data;
    bool        executable;
    int64_t     time;               /* set by pack_read, for those who compare */
    uint32_t    mode, owner, group; /* also these */
} Member;

/* A static library in the GNU format, with its symbol index. */
bool ar_library(Diags *d, Arena *a, const Member *members, uint32_t n, Bytes *out);
bool ar_is_library(Bytes file);
/* The members of a library in the GNU or BSD format, in its order, without its tables; views. */
bool ar_members(Diags *d, Arena *a, const char *file, Bytes library, Member **members, uint32_t *n);

#endif
