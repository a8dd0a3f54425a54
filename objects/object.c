/* object.c: an object of any kind, told by its first bytes or by the triple it is for.
 *
 * The audit and the reports ask the same questions of ELF, Mach-O, COFF and WebAssembly: which
 * sections take memory and may be written or executed, which symbols are defined, asked for, weak
 * or hidden.
 */
#include "objects/elf.h"

#include <string.h>

ObjectFormat object_format(Bytes file)
{
    static const uint16_t coff_machines[] = {0x14c, 0x8664, 0x1c0, 0x1c4, 0xaa64};

    if (file.n < 4)
        return OBJECT_NONE;
    if (memcmp(file.at, "\177ELF", 4) == 0)
        return OBJECT_ELF;
    if (memcmp(file.at, "\0asm", 4) == 0)
        return OBJECT_WASM;
    if (memcmp(file.at, "\xcf\xfa\xed\xfe", 4) == 0)
        return OBJECT_MACHO;
    for (size_t i = 0; file.n >= 20 && i < COUNT(coff_machines); i++)
        if (file.at[0] == (coff_machines[i] & 255) && file.at[1] == coff_machines[i] >> 8)
            return OBJECT_COFF;
    return OBJECT_NONE;
}

ObjectFormat object_format_of(const char *triple)
{
    return strstr(triple, "windows")    ? OBJECT_COFF
           : strstr(triple, "apple")    ? OBJECT_MACHO
           : str_starts(triple, "wasm") ? OBJECT_WASM
                                        : OBJECT_ELF;
}

bool object_is_shared(Bytes file)
{
    return file.n > 18 && object_format(file) == OBJECT_ELF &&
           file.at[file.at[5] == 2 ? 17 : 16] == ET_DYN;
}

bool object_read(Diags *d, Arena *a, const char *file, Bytes object, Object *out)
{
    switch (object_format(object)) {
    case OBJECT_MACHO: return macho_read(d, a, file, object, out);
    case OBJECT_COFF: return coff_read(d, a, file, object, out);
    case OBJECT_WASM: return wasm_read(d, a, file, object, out);
    case OBJECT_NONE:
    case OBJECT_ELF: break;
    }
    return elf_read(d, a, file, object, out);
}

uint64_t object_number(const ObjectTarget *t, const uint8_t *at, uint32_t bytes)
{
    uint64_t value = 0;

    for (uint32_t i = 0; i < bytes; i++)
        value |= (uint64_t)at[t->big_endian ? bytes - 1 - i : i] << 8 * i;
    return value;
}

const char *object_symbol(Arena *a, const char *prefix, const char *name)
{
    char *s = arena_printf(a, "%s%s", prefix, name);

    for (char *p = s; *p; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                     (*p >= '0' && *p <= '9') || *p == '_' || *p == '.';

        if (!plain)
            *p = '_';
    }
    return s;
}

/* ---- build attributes of Arm ------------------------------------------------------------------- */

/* The next tag: a number, or text that is passed over. */
static bool next_attribute(Bytes b, size_t *at, uint64_t *tag, uint64_t *value)
{
    uint64_t v[2] = {0};

    for (int k = 0; k < 2; k++) {
        bool text = k && (v[0] == 4 || v[0] == 5 || v[0] == 67 || (v[0] > 32 && v[0] % 2));

        for (int shift = 0; *at < b.n; shift += 7) {
            uint8_t byte = b.at[(*at)++];

            if (shift < 64)
                v[k] |= (uint64_t)(byte & 0x7f) << shift;
            if (text ? byte == 0 : byte < 0x80)
                break;
        }
    }
    *tag = v[0];
    *value = v[1];
    return *at < b.n;
}

/* The number of a tag in .ARM.attributes; 0 without. */
static uint64_t arm_attribute(const Object *o, uint64_t tag)
{
    enum { HEADER = 16 }; /* 'A', length, "aeabi", file, length */

    for (uint32_t i = 1; o->target.machine == MACHINE_ARM && i < o->nsections; i++) {
        Bytes    b = o->sections[i].data;
        size_t   at = HEADER;
        uint64_t found, value;

        while (strcmp(o->sections[i].name, ".ARM.attributes") == 0 && at < b.n &&
               next_attribute(b, &at, &found, &value))
            if (found == tag)
                return value;
    }
    return 0;
}

bool object_is_microcontroller(const Object *o)
{
    enum { PROFILE = 7 };

    return arm_attribute(o, PROFILE) == 'M';
}

const char *object_triple(const Object *o)
{
    enum { ABI_VFP_ARGS = 28, HARD = 1 };
    static const struct {
        uint16_t    machine;
        uint32_t    bits;
        const char *triple;
    } rows[] = {{MACHINE_X86_64, 64, "x86_64-linux-gnu"},
                {MACHINE_X86, 32, "i686-linux-gnu"},
                {MACHINE_AARCH64, 64, "aarch64-linux-gnu"},
                {MACHINE_RISCV, 64, "riscv64-linux-gnu"},
                {0, 32, "wasm32-wasi"}};

    if (o->target.machine == MACHINE_ARM)
        return arm_attribute(o, ABI_VFP_ARGS) == HARD ? "arm-linux-gnueabihf" : "arm-linux-gnueabi";
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].machine == o->target.machine && rows[i].bits == o->target.bits)
            return rows[i].triple;
    return NULL;
}
