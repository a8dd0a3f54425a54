/* object.c: sections and symbols of an object of any kind, told by its first bytes.
 *
 * The audit and the reports ask the same questions of ELF, Mach-O, COFF and WebAssembly: which
 * sections take memory and may be written or executed, which symbols are defined, asked for, weak
 * or hidden.  The readers answer in the terms of ELF (Object), which has all of them; elf.c,
 * macho.c, coff.c and wasm.c know one format each.
 */
#include "objects/objects.h"

#include <string.h>

bool object_read(Diags *d, Arena *a, const char *file, Bytes object, Object *out)
{
    static const uint16_t coff_machines[] = {0x14c, 0x8664, 0x1c0, 0x1c4, 0xaa64};

    if (object.n >= 4 && memcmp(object.at, "\0asm", 4) == 0)
        return wasm_read(d, a, file, object, out);
    if (object.n >= 4 && memcmp(object.at, "\xcf\xfa\xed\xfe", 4) == 0)
        return macho_read(d, a, file, object, out);
    for (size_t i = 0; object.n >= 20 && i < COUNT(coff_machines); i++)
        if (object.at[0] == (coff_machines[i] & 255) && object.at[1] == coff_machines[i] >> 8)
            return coff_read(d, a, file, object, out);
    return elf_read(d, a, file, object, out);
}
