/* relocs.c: which relocations of an object a shared library could not keep.
 *
 * Code and constants are shared between processes only if the dynamic linker writes nothing into
 * them.  A relocation that stores an absolute address there (R_X86_64_64 in .rodata, a movw/movt
 * pair in .text) makes the static linker refuse, or ask for a "text relocation", which Android and
 * hardened systems refuse in turn.  Addresses in .data.rel.ro are as they should be: that memory is
 * made read-only once it is written.
 */
#include "packaging/packaging.h"

#include <inttypes.h>
#include <string.h>

enum { SHT_RELA = 4, SHT_REL = 9, SHF_WRITE = 1, SHF_ALLOC = 2 };

/* Relocations that need the final address, by machine: ranges of types. */
static const struct {
    uint16_t    machine;
    uint32_t    first, last;
    const char *name;
} absolute[] = {
    {62, 1, 1, "R_X86_64_64"},
    {62, 10, 11, "R_X86_64_32"},
    {62, 12, 12, "R_X86_64_16"},
    {62, 14, 14, "R_X86_64_8"},
    {3, 1, 1, "R_386_32"},
    {3, 20, 20, "R_386_16"},
    {3, 22, 22, "R_386_8"},
    {183, 257, 259, "R_AARCH64_ABS"},
    {183, 263, 272, "R_AARCH64_MOVW"},
    {40, 2, 2, "R_ARM_ABS32"},
    {40, 43, 44, "R_ARM_MOVW_ABS"},
    {40, 47, 48, "R_ARM_THM_MOVW_ABS"},
    {243, 1, 2, "R_RISCV_32"},
    {243, 26, 28, "R_RISCV_HI20"},
};

static uint64_t get(const uint8_t *at, const ObjectTarget *t, uint32_t bytes)
{
    uint64_t value = 0;

    for (uint32_t i = 0; i < bytes; i++)
        value |= (uint64_t)at[t->big_endian ? bytes - 1 - i : i] << 8 * i;
    return value;
}

static const char *absolute_name(uint16_t machine, uint32_t type)
{
    for (size_t i = 0; i < COUNT(absolute); i++)
        if (absolute[i].machine == machine && type >= absolute[i].first && type <= absolute[i].last)
            return absolute[i].name;
    return NULL;
}

/* The next tag of build attributes: a number, or text that is passed over. */
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

bool elf_arm_attribute(const Object *f, uint64_t tag, uint64_t *value)
{
    enum { ARM = 40, HEADER = 16 }; /* 'A', length, "aeabi", file, length */

    for (uint32_t i = 1; f->target.machine == ARM && i < f->nsections; i++) {
        Bytes    b = f->sections[i].data;
        size_t   at = HEADER;
        uint64_t found;

        while (strcmp(f->sections[i].name, ".ARM.attributes") == 0 && at < b.n &&
               next_attribute(b, &at, &found, value))
            if (found == tag)
                return true;
    }
    return false;
}

/* Cortex-M: no dynamic linker runs there. */
static bool is_microcontroller(const Object *f)
{
    enum { PROFILE = 7 };
    uint64_t value;

    return elf_arm_attribute(f, PROFILE, &value) && value == 'M';
}

uint64_t audit_relocs(Diags *d, const char *file, const Object *f, const AuditRules *rules)
{
    uint32_t word = f->target.bits / 8;
    uint64_t count = 0;
    bool     allowed = rules->no_pic || is_microcontroller(f);

    for (uint32_t i = 1; i < f->nsections; i++) {
        const ObjectSection *r = &f->sections[i], *s;
        uint64_t             size = r->type == SHT_RELA ? 3 * word : 2 * word;

        if ((r->type != SHT_RELA && r->type != SHT_REL) || r->info == 0 || r->info >= f->nsections)
            continue;
        s = &f->sections[r->info];
        if (!(s->flags & SHF_ALLOC) || s->flags & SHF_WRITE)
            continue;
        for (uint64_t at = 0; size <= r->data.n && at <= r->data.n - size; at += size) {
            uint64_t    info = get(r->data.at + at + word, &f->target, word);
            uint32_t    type = word == 8 ? (uint32_t)info : (uint32_t)(info & 0xff);
            const char *name = absolute_name(f->target.machine, type);

            if (name && !count++ && !allowed) {
                diag_error(d, E_PACK, (Loc){.file = file},
                           "'%s' at 0x%" PRIx64 " has the absolute address of a symbol (%s, type "
                           "%u), which a shared library cannot hold",
                           s->name, get(r->data.at + at, &f->target, word), name, type);
                diag_hint(d, "compile with -fPIC, or audit with -fno-pic what is never shared");
            }
        }
    }
    return count;
}
