/* What the files about ELF share: its numbers, and the layout of its two classes in both byte
 * orders. */
#ifndef TVMCC_OBJECTS_ELF_H
#define TVMCC_OBJECTS_ELF_H

#include "objects/objects.h"

enum { SHDR_MOST = 64, SYM_MOST = 24 }; /* bytes of an entry */

enum {
    ET_REL = 1,
    ET_DYN = 3,
    SHT_NULL = 0,
    SHT_PROGBITS = 1,
    SHT_SYMTAB = 2,
    SHT_STRTAB = 3,
    SHT_RELA = 4,
    SHT_DYNAMIC = 6,
    SHT_NOBITS = 8,
    SHT_REL = 9,
    SHT_DYNSYM = 11,
    SHT_INIT_ARRAY = 14,
    SHT_FINI_ARRAY = 15,
    SHT_PREINIT_ARRAY = 16,
    SHT_GROUP = 17,
    SHT_ADDRSIG = 0x6fff4c03, /* LLVM's list of symbols whose address counts: symbol numbers */
    SHF_ALLOC = 2,
    SHF_EXECINSTR = 4,
    SHF_LINK_ORDER = 0x80,
    SHF_X86_64_LARGE = 0x10000000, /* may lie beyond the 2 GiB that code reaches */
    STB_GLOBAL = 1,
    STT_OBJECT = 1,
    STT_FILE = 4,
    SHN_LORESERVE = 0xff00
};

typedef struct {
    bool     wide, big;             /* 64 bits; big endian */
    uint32_t ehdr, shdr, sym, word; /* sizes */
} ElfLayout;

typedef struct {
    uint32_t name, type, link, info;
    uint64_t flags, offset, size, align, entsize, address;
} ElfShdr;

typedef struct {
    uint32_t name;
    uint8_t  info, other; /* info: binding << 4 | type */
    uint16_t section;
    uint64_t value, size;
} ElfSym;

ElfLayout elf_layout(bool wide, bool big);
void      elf_put(uint8_t *at, const ElfLayout *l, uint64_t value, uint32_t bytes);
uint64_t  elf_get(const uint8_t *at, const ElfLayout *l, uint32_t bytes);
void      elf_put_shdr(uint8_t *p, const ElfLayout *l, const ElfShdr *s);
void      elf_put_sym(uint8_t *p, const ElfLayout *l, const ElfSym *s);
ElfSym    elf_get_sym(const uint8_t *p, const ElfLayout *l);
/* Fields of the file header: where the section headers are, how many, and which has their names. */
void elf_put_sections(uint8_t *ehdr, const ElfLayout *l, uint64_t at, uint32_t n, uint32_t names);
void elf_put_flags(uint8_t *ehdr, const ElfLayout *l, uint32_t flags);
uint32_t elf_get_flags(const uint8_t *ehdr, const ElfLayout *l);
uint16_t elf_get_machine(const uint8_t *ehdr, const ElfLayout *l);

/* A file whose section headers were read: what they name lies in it, and links are numbers of
 * sections. */
typedef struct {
    ElfLayout l;
    Bytes     b;
    uint32_t  n, names;
    ElfShdr  *s;
} ElfRaw;

bool  elf_open(Arena *a, Bytes b, ElfRaw *r); /* false: it is no such file */
Bytes elf_bytes(const ElfRaw *r, uint32_t section);
/* A string of a string table, a view; NULL if there is none. */
const char *elf_string(const ElfRaw *r, uint32_t table, uint64_t offset);
/* The name of a section, "" if it has none. */
const char *elf_section_name(const ElfRaw *r, uint32_t section);
/* The symbol table of that type, 0 if there is none; how many symbols it has, and the i-th. */
uint32_t elf_table(const ElfRaw *r, uint32_t type);
uint32_t elf_table_count(const ElfRaw *r, uint32_t table);
ElfSym   elf_table_at(const ElfRaw *r, uint32_t table, uint32_t i);

/* ---- elf_write.c ------------------------------------------------------------------------------ */

/* The flags of a section of read-only data: linkers put large ones of x86-64 behind everything
 * else, so that code still reaches what is not large. */
uint64_t elf_data_flags(uint16_t machine, const char *section);
/* The target for another -mabi=; "" is the usual one. */
void elf_target_abi(ObjectTarget *t, const char *abi);
/* elf_blob in a section of that name instead of .rodata.<symbol>. */
Bytes elf_blob_in(Arena *a, const ObjectTarget *t, const char *section, const char *symbol,
                  Bytes data);

#endif
