/* Layout of the rows of record.def: members one after the other, each aligned to its own size, as
 * every C ABI lays out structs without integers of 64 bits. */
#include "ir/tir/record.h"

#include <string.h>

#define RECORD(name) static const AbiMember name##_members[] = {
#define MEMBER(record, name, type) {#name, ABI_##type},
#define END(name) \
    }             \
    ;
#include "ir/tir/record.def"
#undef RECORD
#undef MEMBER
#undef END

#define RECORD(name)
#define MEMBER(record, name, type)
#define END(name) {#name, COUNT(name##_members), name##_members},
static const AbiRecord records[] = {
#include "ir/tir/record.def"
};
#undef RECORD
#undef MEMBER
#undef END

#define SIGNATURE(name, result, ...) {#name, result, {__VA_ARGS__}},
static const Signature signatures[] = {
#include "ir/tir/record.def"
};
#undef SIGNATURE

const AbiRecord *record_find(const char *name)
{
    for (size_t i = 0; i < COUNT(records); i++)
        if (!strcmp(records[i].name, name))
            return &records[i];
    return NULL;
}

const Signature *signature_find(const char *name)
{
    for (size_t i = 0; i < COUNT(signatures); i++)
        if (!strcmp(signatures[i].name, name))
            return &signatures[i];
    return NULL;
}

const AbiMember *record_member(const AbiRecord *r, const char *name)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (!strcmp(r->members[i].name, name))
            return &r->members[i];
    return NULL;
}

uint32_t signature_params(const Signature *s)
{
    uint32_t n = 0;

    while (n < MAX_SIGNATURE && s->param[n] != ABI_NONE)
        n++;
    return n;
}

uint32_t abi_bytes(AbiType t, uint32_t pointer_bits)
{
    switch (t) {
    case ABI_NONE: return 0;
    case ABI_U8: return 1;
    case ABI_U16: return 2;
    case ABI_U32:
    case ABI_I32:
    case ABI_SHARED:
    case ABI_F32: return 4;
    case ABI_I64: return 8;
    case ABI_SIZE:
    case ABI_HANDLE: return pointer_bits / 8;
    case ABI_SHA: return 32;
    }
    BUG("type %d of the ABI", (int)t);
}

uint32_t abi_align(AbiType t, uint32_t pointer_bits)
{
    return t == ABI_SHA || t == ABI_NONE ? 1 : abi_bytes(t, pointer_bits);
}

DType abi_dtype(AbiType t)
{
    switch (t) {
    case ABI_U8: return DT_U8;
    case ABI_U16: return DT_U16;
    case ABI_U32: return DT_U32;
    case ABI_I32:
    case ABI_SHARED: return DT_I32;
    case ABI_F32: return DT_F32;
    case ABI_I64: return DT_I64;
    case ABI_SIZE: return DT_U64;
    case ABI_HANDLE: return DT_HANDLE;
    case ABI_NONE:
    case ABI_SHA: break;
    }
    BUG("no value of type %d of the ABI", (int)t);
}

/* The offset of member m, or, m NULL, the end of the last one. */
static uint32_t offset_of(const AbiRecord *r, const AbiMember *m, uint32_t pointer_bits,
                          uint32_t *align)
{
    uint32_t at = 0;

    *align = 1;
    for (uint32_t i = 0; i < r->n; i++) {
        uint32_t own = abi_align(r->members[i].type, pointer_bits);

        at = (at + own - 1) / own * own;
        *align = own > *align ? own : *align;
        if (&r->members[i] == m)
            return at;
        at += abi_bytes(r->members[i].type, pointer_bits);
    }
    return at;
}

uint32_t record_offset(const AbiRecord *r, const AbiMember *m, uint32_t pointer_bits)
{
    uint32_t align;

    return offset_of(r, m, pointer_bits, &align);
}

uint32_t record_bytes(const AbiRecord *r, uint32_t pointer_bits)
{
    uint32_t align, end = offset_of(r, NULL, pointer_bits, &align);

    return (end + align - 1) / align * align;
}
