/* Structs and functions that compiled code shares with its callers, as rows (record.def): their
 * layout follows from the width of a pointer, so that no backend writes an offset down. */
#ifndef TVMCC_IR_TIR_RECORD_H
#define TVMCC_IR_TIR_RECORD_H

#include "ir/core.h"

typedef enum {
    ABI_NONE, /* no result, no further parameter */
    ABI_U8,
    ABI_U16,
    ABI_U32,
    ABI_I32,
    ABI_SHARED, /* i32 that one thread writes while others read it: relaxed atomic */
    ABI_F32,
    ABI_I64,  /* only in arrays */
    ABI_SIZE, /* size_t; a value of it is u64 */
    ABI_HANDLE,
    ABI_SHA /* 32 bytes; only in data */
} AbiType;

typedef struct {
    const char *name;
    AbiType     type;
} AbiMember;

typedef struct AbiRecord {
    const char      *name; /* "params": tvmcc_params */
    uint32_t         n;
    const AbiMember *members;
} AbiRecord;

enum { MAX_SIGNATURE = 6 };

/* A symbol with the signature `cpuid`, which host backends for CPUs that are asked bring
 * themselves. */
#define HOST_CPUID "tvmcc.cpuid"

typedef struct Signature {
    const char *name;
    AbiType     result;
    AbiType     param[MAX_SIGNATURE];
} Signature;

const AbiRecord *record_find(const char *name); /* NULL: there is none */
const Signature *signature_find(const char *name);
const AbiMember *record_member(const AbiRecord *r, const char *name);
uint32_t         signature_params(const Signature *s); /* how many */

/* Bytes and alignment of one value, on a target whose pointers have that many bits. */
uint32_t abi_bytes(AbiType t, uint32_t pointer_bits);
uint32_t abi_align(AbiType t, uint32_t pointer_bits);
DType    abi_dtype(AbiType t); /* of a value in TIR */

uint32_t record_offset(const AbiRecord *r, const AbiMember *m, uint32_t pointer_bits);
uint32_t record_bytes(const AbiRecord *r, uint32_t pointer_bits);

#endif
