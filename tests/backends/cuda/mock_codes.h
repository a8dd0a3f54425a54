/* What a driver's error codes are and mean, and what it reads of machine code. */
#ifndef MOCK_CODES_H
#define MOCK_CODES_H

#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OK = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    NO_BINARY_FOR_GPU = 209,
    INVALID_PTX = 218,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    LAUNCH_FAILED = 719,
    CAPTURE_UNSUPPORTED = 900
};

static const char *text_of(int code)
{
    static const struct {
        int         code;
        const char *text;
    } texts[] = {{INVALID_VALUE, "invalid argument"},
                 {OUT_OF_MEMORY, "out of memory"},
                 {INVALID_CONTEXT, "invalid device context"},
                 {NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"},
                 {INVALID_PTX, "a PTX JIT compilation failed"},
                 {INVALID_HANDLE, "invalid resource handle"},
                 {NOT_FOUND, "named symbol not found"},
                 {NOT_READY, "device not ready"},
                 {LAUNCH_FAILED, "unspecified launch failure"},
                 {CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"}};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].code == code)
            return texts[i].text;
    return NULL;
}

static size_t elf_bytes(const void *image)
{
    const Elf64_Ehdr *e = image;

    return e->e_shoff + (size_t)e->e_shnum * e->e_shentsize;
}

#ifdef MOCK_HIP
enum { EM_AMD_GPU = 224, MACH = 0xff, VERSION_4 = 2 };

/* The one GPU that a code object is for.  HIP of ROCm 5.2 takes versions 3 and 4, later ones 4. */
static int check_code_object(const Elf64_Ehdr *e)
{
    const char *given = getenv("MOCK_HIP_MACH");
    unsigned    mach = given ? (unsigned)strtoul(given, NULL, 16) : 0x3f;

    return e->e_type == ET_DYN && e->e_machine == EM_AMD_GPU && (e->e_flags & MACH) == mach &&
                   e->e_ident[EI_ABIVERSION] == VERSION_4
               ? OK
               : NO_BINARY_FOR_GPU;
}
#endif

/* The descriptor of a kernel among the symbols of a code object. */
static bool has_descriptor(const char *code, const char *name)
{
    const Elf64_Ehdr *e = (const void *)code;
    const Elf64_Shdr *s = (const void *)(code + e->e_shoff);
    char              wanted[300];

    snprintf(wanted, sizeof wanted, "%s.kd", name);
    for (int i = 0; i < e->e_shnum; i++) {
        const Elf64_Sym *y = (const void *)(code + s[i].sh_offset);

        for (size_t k = 0; s[i].sh_type == SHT_DYNSYM && k < s[i].sh_size / sizeof *y; k++)
            if (!strcmp(code + s[s[i].sh_link].sh_offset + y[k].st_name, wanted) &&
                y[k].st_size == 64 && y[k].st_value % 64 == 0)
                return true;
    }
    return false;
}

#endif
