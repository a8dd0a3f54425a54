/* What the files of the LLVM backend share.  Only this folder sees LLVM's headers.
 *
 *   target.c        target strings
 *   cpus.c          CPUs, features and what they can do: cpu.def, feature.def
 *   native.c        caches of this machine
 *   cpuid.c cpuid.def  what code needs of an x86 CPU, and how it asks
 *   codegen.c       functions and statements
 *   codegen_idx.c   indices and addresses
 *   codegen_prim.c  scalar and vector expressions
 *   codegen_arith.c  their arithmetic; math.def: which function each MATH is
 *   codegen_memory.c  loads, stores and prefetches
 *   codegen_half.c  f16 and bf16
 *   codegen_mask.c  parts of vectors: masks, odd numbers of lanes
 *   codegen_near.c  vectors of scalars that lie near each other
 *   codegen_transpose.c  tiles of memory transposed in registers
 *   codegen_pack.c  results rounded to bytes
 *   codegen_lookup.c  bytes from tables of 256; lookup.def: which writes them, and where
 *   codegen_intrin.c  instructions of ir/tir/intrin.def; intrin.def: which writes each, and where
 *   write_x86.c, write_arm.c, write_nvptx.c, write_amdgpu.c  how
 *   codegen_weave.c  long formulas of neighbouring stores by turns
 *   codegen_record.c  what host functions have: structs, symbols, calls by address, data
 *   codegen_kernel.c  kernels of GPUs
 *   build.c         target machine, optimisation, emission, units; the Backend struct
 *   jit.c           code loaded into this process
 *   gpu.c           kernels as text of LLVM IR, and that text as code; gpu.def: the GPUs
 *   nvptx.c, rocm.c  the Backend structs of NVIDIA's and AMD's
 *
 * Everything made while generating code lives in one `Gen`; LLVM's own objects hang in its context
 * and go with it. */
#ifndef TVMCC_BACKENDS_LLVM_H
#define TVMCC_BACKENDS_LLVM_H

#include "backends/llvm/gpu.h"
#include "ir/tir/intrin.h"

#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

/* ---- target.c -------------------------------------------------------------------------------- */

typedef enum {
    ARCH_X86,
    ARCH_AARCH64,
    ARCH_ARM,
    ARCH_RISCV,
    ARCH_WASM,
    ARCH_NVPTX,
    ARCH_AMDGPU,
    ARCH_NONE
} Arch;

/* What code generation asks of a CPU; bits of cpu.def and feature.def. */
enum {
    CAP_SSE41 = 1, /* x86: rounding instructions */
    CAP_AVX = 2,
    CAP_AVX2 = 4,
    CAP_FMA = 8,      /* fused multiply-add, scalar and vector */
    CAP_F16C = 16,    /* conversions between f16 and f32 */
    CAP_F16D = 32,    /* ... and between f16 and f64 */
    CAP_AVX512 = 64,  /* F, VL, BW, DQ */
    CAP_VEC = 128,    /* vectors of 16 bytes: NEON, simd128, RVV */
    CAP_F64 = 256,    /* arm: double precision in hardware */
    CAP_FP = 512,     /* floats in hardware */
    CAP_ROUND = 1024, /* floor, ceil, trunc, nearest as instructions */
    CAP_VEC32 = 2048, /* riscv: vectors of 32 bytes (zvl256b), of 64 bytes (zvl512b) */
    CAP_VEC64 = 4096,
    CAP_DOT = 8192,    /* dot products of bytes: avx512vnni, dotprod of aarch64, GPUs */
    CAP_DOT32 = 16384, /* ... in vectors of at most 32 bytes: avxvnni */
    CAP_I8MM = 32768,  /* aarch64: products of 2x8 matrices of bytes */
    CAP_BF16 = 65536,  /* sums of two products of bf16: avx512bf16 */
    CAP_AMX = 131072,  /* x86: tile registers, products of bytes */
    CAP_WARP = 262144, /* nvptx: products of warps, copies to shared memory (sm_80) */
    CAP_VBMI = 524288, /* x86: bytes from anywhere in two registers (avx512vbmi) */
    CAP_BW = 1 << 20,  /* x86: the parts of CAP_AVX512, which is there where all of these are */
    CAP_DQ = 1 << 21,
    CAP_VL = 1 << 22,
    CAP_DOT_SIGNS = 1 << 23, /* amdgpu: dot products of bytes, each side signed or not */
    CAP_MFMA = 1 << 24,      /* .. products of warps of 64, of f16 and f32 */
    CAP_MFMA_BF16 = 1 << 25, /* .. of bf16, 16 steps */
    CAP_MFMA_K16 = 1 << 26,  /* .. of bytes, 16 steps or 32 */
    CAP_MFMA_K32 = 1 << 27,
    CAP_WMMA3 = 1 << 28, /* .. of warps of 32, as RDNA 3 has them, or RDNA 4 */
    CAP_WMMA4 = 1 << 29,
};

const Target *llvm_parse_target(Ctx *c, const char *text);
void          llvm_list_targets(StrBuf *out);
Arch          target_arch(const Target *t);
uint32_t      target_caps(const Target *t);

/* ---- native.c -------------------------------------------------------------------------------- */

/* l1 data, l2 and l3 of the first core, where the system says so. */
void native_caches(Target *t);

/* ---- cpuid.c ----------------------------------------------------------------------------------- */

/* ecx of leaf 1; ebx, ecx and edx of leaf 7; eax and edx of its part 1; ecx of leaf 0x80000001; and
 * what the operating system keeps. */
enum {
    CPUID_1C,
    CPUID_7B,
    CPUID_7C,
    CPUID_7D,
    CPUID_71A,
    CPUID_71D,
    CPUID_XC,
    CPUID_XCR0,
    CPUID_WORDS
};

typedef struct {
    uint32_t word[CPUID_WORDS];
} CpuNeeds;

/* What code for t needs beyond x86-64; nothing on other architectures, where a program without
 * libraries cannot ask. */
CpuNeeds target_needs(const Target *t);
bool     needs_nothing(const CpuNeeds *needs);
/* Is it among the features asked for, and does LLVM's `cpu` of x86 have it? */
bool cpu_has(const char *cpu, const char *feature);

/* ---- codegen.c --------------------------------------------------------------------------------- */

/* A function of the module and how it is called. */
typedef struct {
    const Func  *f;
    LLVMValueRef fn;
    LLVMTypeRef  type;
    bool        *written; /* by parameter: the function stores through it */
} GenFunc;

/* Values known at a point of the code: dropped when the block that defines them ends. */
typedef struct {
    Map *map;
    VEC(uint64_t) keys;
} GenMemo;

typedef struct Gen {
    Ctx             *c;
    Arena           *a;
    const Target    *t;
    const TirModule *tir;
    const char      *prefix; /* of hidden symbols */
    Arch             arch;
    uint32_t         caps;
    bool             in_process; /* for jit(): regions run as one part, in line */
    bool             host_only;  /* kernels are declared, not defined */

    char                *complaint; /* of LLVM: the first error */
    LLVMTargetMachineRef tm;
    LLVMContextRef       lc;
    LLVMModuleRef        mod;
    LLVMBuilderRef       b;
    LLVMTypeRef          i1, i8, i16, i32, i64, f32, f64, ptr, size, none;
    Map                 *funcs; /* interned name -> GenFunc */

    /* the function at hand */
    const char       *name;
    LLVMValueRef      fn;
    LLVMBasicBlockRef entry;  /* of allocas */
    Map              *bufs;   /* buffer id -> pointer */
    Map              *atoms;  /* atom id -> value, in the width of its range */
    Map              *depths; /* atom id -> number of loops around it */
    uint32_t          depth;
    GenMemo           block;        /* indices and addresses without loads */
    GenMemo           stmt;         /* prims, and indices that load */
    LLVMValueRef      mask;         /* lanes that may load (arms of a vector select); NULL: all */
    LLVMValueRef      nowhere;      /* zeros to load from instead */
    LLVMValueRef      shared;       /* memory of a block, where all its buffers lie in one, .. */
    int64_t           shared_bytes; /* .. and what they have had of it */
    const Prim *step; /* the store at hand makes this step of a reduction: an extremum, a sum in a
                         register */
    const StoreData *begun;  /* the sum whose step was the first of a round; NULL: none yet */
    bool             narrow; /* a kernel of a GPU whose indices have 32 bits */
    const Idx       *axis[AXIS_COUNT]; /* ... extents of its launch */
} Gen;

/* An empty module for the functions of `tir`; NULL with an error recorded. */
Gen *gen_new(Ctx *c, const TirModule *tir, const Target *t, const char *name, const char *prefix,
             uint32_t opt_level, bool pic);
void gen_free(Gen *g);
bool gen_functions(Gen *g);
bool gen_thunks(Gen *g);

LLVMTypeRef       gen_type(Gen *g, DType t);     /* of a value: bool is i1, f16 and bf16 are i16 */
LLVMTypeRef       gen_mem_type(Gen *g, DType t); /* in memory: bool is i8 */
LLVMValueRef      gen_int(Gen *g, LLVMTypeRef t, int64_t v);
LLVMValueRef      gen_i32(Gen *g, int64_t v);
LLVMValueRef      gen_alloca(Gen *g, LLVMTypeRef t, uint32_t align, const char *name);
LLVMBasicBlockRef gen_bb(Gen *g, const char *name);
void gen_attr(Gen *g, LLVMValueRef fn, LLVMAttributeIndex at, const char *name, uint64_t v);
/* ... of a function, by the name that targets give it. */
void gen_string_attr(Gen *g, LLVMValueRef fn, const char *name, const char *value);
/* A call of an intrinsic, by the types that it is overloaded on: any number, or one. */
LLVMValueRef gen_intrinsic_of(Gen *g, const char *name, size_t nover, LLVMTypeRef *over, uint32_t n,
                              LLVMValueRef *args);
LLVMValueRef gen_intrinsic(Gen *g, const char *name, LLVMTypeRef overload, uint32_t n,
                           LLVMValueRef *args);
/* An index, in 64 bits or, on 32-bit targets, 32 if its range fits; and in exactly `bits`. */
LLVMValueRef gen_idx(Gen *g, const Idx *x);
LLVMValueRef gen_idx_as(Gen *g, const Idx *x, uint32_t bits);
/* The address of a cell and the alignment known of it. */
LLVMValueRef gen_address(Gen *g, const Buffer *b, uint32_t n, const Idx *const *index,
                         uint32_t *align);
void         gen_bind(Gen *g, const Atom *var, LLVMValueRef v); /* v is i64 */
void         gen_stmt(Gen *g, const Stmt *s);
/* Begin and end of a stretch of code whose values hold only there. */
typedef struct {
    uint32_t block, stmt;
} GenMark;
GenMark gen_mark(Gen *g);
void    gen_drop(Gen *g, GenMark m);
/* Start and finish a function: state that belongs to it. */
void  gen_begin(Gen *g, LLVMValueRef fn, const char *name);
void  gen_end(Gen *g);
void *memo_get(const GenMemo *m, uint64_t key);
void  memo_put(Gen *g, GenMemo *m, uint64_t key, void *v);

/* ---- codegen_idx.c ------------------------------------------------------------------------------- */

/* The width of an index in lo..hi: 64 bits or, on 32-bit targets, 32 if that fits. */
uint32_t     gen_idx_width(const Gen *g, int64_t lo, int64_t hi);
LLVMTypeRef  gen_width_type(Gen *g, uint32_t bits);
LLVMValueRef gen_to_width(Gen *g, LLVMValueRef v, uint32_t bits);
/* An index in its own width, and in exactly `bits`. */
LLVMValueRef gen_idx(Gen *g, const Idx *x);
LLVMValueRef gen_idx_as(Gen *g, const Idx *x, uint32_t bits);
void         gen_bind(Gen *g, const Atom *var, LLVMValueRef v); /* v in any width */
/* The pointer of a buffer; base + x elements of type t (base_id: one number for one base and t). */
LLVMValueRef gen_base(Gen *g, const Buffer *b);
LLVMValueRef gen_offset(Gen *g, LLVMValueRef base, uint32_t base_id, LLVMTypeRef t, const Idx *x);
/* The address of a cell and the alignment known of it. */
LLVMValueRef gen_address(Gen *g, const Buffer *b, uint32_t n, const Idx *const *index,
                         uint32_t *align);

/* ---- codegen_half.c ------------------------------------------------------------------------------ */

bool         gen_is_vector(LLVMTypeRef t);
LLVMTypeRef  gen_elem_type(LLVMTypeRef t);
LLVMTypeRef  gen_with_lanes_of(LLVMTypeRef elem, LLVMTypeRef like);
LLVMValueRef gen_splat_int(LLVMTypeRef t, uint64_t v); /* a constant, every lane v */
LLVMValueRef gen_splat_float(Gen *g, LLVMTypeRef t, double v);
LLVMValueRef gen_call1(Gen *g, const char *intrinsic, LLVMTypeRef t, LLVMValueRef a);
LLVMValueRef gen_call2(Gen *g, const char *intrinsic, LLVMTypeRef t, LLVMValueRef a,
                       LLVMValueRef b);
LLVMValueRef gen_widen(Gen *g, LLVMValueRef v, DType t); /* a half to f32; others as they are */
LLVMValueRef gen_round_half(Gen *g, LLVMValueRef f, DType t); /* f32 to the half t; others as is */
/* f64 to f32 rounding to odd: a second rounding to a half then gives what one would have given. */
LLVMValueRef gen_odd_f32(Gen *g, LLVMValueRef d);

/* ---- codegen_prim.c ------------------------------------------------------------------------------ */

LLVMValueRef gen_prim(Gen *g, const Prim *p);
LLVMValueRef gen_load(Gen *g, const LoadData *l, DType t);
LLVMValueRef gen_from_memory(Gen *g, LLVMValueRef v, DType t); /* a bool is a byte there */
bool         gen_known(Gen *g, const Prim *p);                 /* it was computed, or is a number */
void         gen_know(Gen *g, const Prim *p, LLVMValueRef v);  /* v is its value */
/* Computing p now could read memory that only some condition allows to read. */
bool gen_reads(Gen *g, const Prim *p);
/* A vector of loads from near each other, by contiguous loads and shuffles; NULL: it is none. */
LLVMValueRef gen_near(Gen *g, const Prim *p);
/* ... from a table of 256 bytes, each by a byte. */
LLVMValueRef gen_lookup(Gen *g, const Prim *p);
/* n bytes of the table from `first` on. */
LLVMValueRef gen_table_part(Gen *g, LLVMValueRef table, unsigned first, unsigned n);
void         gen_prefetch(Gen *g, const PrefetchData *d);
void         gen_store(Gen *g, const StoreData *s);

/* ---- codegen_arith.c ----------------------------------------------------------------------------- */

LLVMValueRef gen_bin(Gen *g, const Prim *p);
LLVMValueRef gen_fma(Gen *g, const Prim *p);
LLVMValueRef gen_math(Gen *g, const Prim *p);

/* ---- codegen_mask.c ------------------------------------------------------------------------------ */

LLVMValueRef gen_masked_load(Gen *g, LLVMValueRef p, LLVMTypeRef t, uint32_t align,
                             LLVMValueRef mask);
void gen_masked_store(Gen *g, LLVMValueRef v, LLVMValueRef p, uint32_t align, LLVMValueRef mask);
/* The end of a function's own buffer, for which there is room to whole vectors (gen_room: its
 * cells); false, NULL: not that. */
int64_t      gen_room(const Gen *g, const Buffer *b, int64_t cells);
LLVMValueRef gen_end_load(Gen *g, const LoadData *l, LLVMValueRef p, DType t, uint32_t align,
                          LLVMValueRef mask);
bool gen_end_store(Gen *g, const StoreData *s, LLVMValueRef v, LLVMValueRef p, uint32_t align);
/* An odd number of lanes as a part of a whole vector; NULL, false: not on this target. */
LLVMValueRef gen_odd_load(Gen *g, LLVMValueRef p, DType t, uint32_t align);
bool         gen_odd_store(Gen *g, LLVMValueRef v, LLVMValueRef p, DType t, uint32_t align);

/* ---- codegen_intrin.c, write_x86.c, write_arm.c ------------------------------------------------ */

LLVMValueRef gen_instruction(Gen *g, const Prim *p);
LLVMValueRef gen_shuffle(Gen *g, const Prim *p);
/* How many instructions each row takes on a CPU that can do this. */
void set_intrin_ops(Target *t, Arch arch, uint32_t caps);

/* One register of an instruction: operands as vectors of integers that each hold one unit's, the
 * result so far, and how many units. */
typedef struct {
    const Intrin *row;
    LLVMValueRef  operand[INTRIN_OPERANDS];
    unsigned      n;
} GenUnits;

LLVMValueRef gen_as(Gen *g, LLVMValueRef v, LLVMTypeRef elem, unsigned lanes); /* the same bits */
/* Lanes first, first + step, .. of v; those beyond its end are anything. */
LLVMValueRef gen_lanes_of(Gen *g, LLVMValueRef v, unsigned first, unsigned step, unsigned n);
/* Integers in wider lanes. */
LLVMValueRef gen_extended(Gen *g, LLVMValueRef v, bool sign, LLVMTypeRef elem);

bool gen_has_instruction(const Gen *g, IntrinId id);
void gen_async_copy(Gen *g, const StoreData *s); /* its value is one (plain.h) */
/* A group of copies ends; all but the last so many groups have been made. */
void gen_await(Gen *g, uint32_t groups);

/* ---- codegen_kernel.c ---------------------------------------------------------------------------- */

enum { SHARED_ALIGN = 16 }; /* of memory that a block shares */

static inline bool gen_is_kernel(const Gen *g)
{
    return g->arch == ARCH_NVPTX || g->arch == ARCH_AMDGPU;
}
const char *gen_prelude(Arch arch); /* IR that modules of kernels begin with; NULL: none */
/* A function of kind device; false with an error recorded. */
bool gen_kernel(Gen *g, const Func *f);
void gen_kernel_seq(Gen *g, const Stmt *s);
void gen_bound(Gen *g, const Stmt *s); /* a loop over threads or blocks */
/* Metadata of a loop: to be unrolled by its rounds, or not; NULL: LLVM decides. */
LLVMValueRef gen_kernel_loop(Gen *g, const Stmt *s);
/* .. of so many parts, which begins with itself (codegen.c). */
enum { MAX_LOOP_PARTS = 2 };
LLVMValueRef gen_loop_id(Gen *g, uint32_t n, const LLVMMetadataRef *parts);
void         gen_barrier(Gen *g);
LLVMValueRef gen_shared(Gen *g, const Buffer *b, LLVMTypeRef type);

/* ---- codegen_transpose.c ------------------------------------------------------------------------- */

/* Statements from the first on that store the columns of a tile whose rows lie in memory: how many
 * were done, 0 if these are none. */
uint32_t gen_transposed(Gen *g, uint32_t n, const Stmt *const *s);

/* ---- codegen_pack.c ---------------------------------------------------------------------------- */

/* Statements from s[0] on that store numbers rounded to bytes: how many were done, or 0. */
uint32_t gen_packed(Gen *g, uint32_t n, const Stmt *const *s);

/* ---- codegen_weave.c --------------------------------------------------------------------------- */

/* Statements from s[0] on whose operations are emitted by turns: their number, or 0 and nothing. */
uint32_t gen_woven(Gen *g, uint32_t n, const Stmt *const *s);

/* ---- codegen_record.c -------------------------------------------------------------------------- */

LLVMTypeRef  gen_record(Gen *g, const AbiRecord *r);
LLVMValueRef gen_member_load(Gen *g, const LoadData *l);
void         gen_member_store(Gen *g, const StoreData *s);
LLVMValueRef gen_addr(Gen *g, const Prim *p); /* PRIM_ADDR, PRIM_SYMBOL */
void         gen_invoke(Gen *g, const InvokeData *d);
void         gen_view(Gen *g, const Stmt *s);
void         gen_switch(Gen *g, const Stmt *s);
/* All functions and data of a host; exported functions get the second name that `header` asks for.
 */
void gen_host(Gen *g, const TirModule *host, const char *header);

/* ---- cpuid.c, code ---------------------------------------------------------------------------- */

/* Reads the words of this CPU. */
void gen_cpuid_words(Gen *g, LLVMValueRef word[CPUID_WORDS]);

/* ---- build.c --------------------------------------------------------------------------------------- */

/* Makes LLVM's code generators known, once in this process. */
void llvm_init(void);
/* LLVM's view of a target; NULL with an error recorded. */
LLVMTargetMachineRef llvm_machine(Ctx *c, const Target *t, uint32_t opt_level, bool pic);
/* Optimise the module and write it down. */
bool llvm_emit(Gen *g, uint32_t opt_level, EmitKind kind, Bytes *out);

/* ---- gpu.c, and what gpu.h has -------------------------------------------------------------------------------------- */

/* A row of gpu.def; the one behind the last has no name. */
typedef struct {
    const char *name;
    uint32_t    warp, caps;
} AmdGpu;

/* NULL: the first.  Of another name: the one behind the last. */
const AmdGpu *amd_gpu(const char *name);
uint32_t      gpu_caps(Arch arch, const char *gpu);
/* What kernels for that GPU, the least of a target's, have of functions and instructions. */
void gpu_functions(Ctx *c, Target *t, Arch arch);
/* How kernels for a device become what its driver loads. */
typedef struct {
    const char *name; /* of the way, for the cache: "rocm 1" */
    const char *triple;
    EmitKind    kind; /* EMIT_ASM: text; EMIT_OBJECT: an object, linked as a code object */
} LlvmGpu;
/* All kernels of a device for all of its GPUs (Device.images); as assembly for the best of them,
 * one behind the other (Device.source). */
bool llvm_gpu_images(Ctx *c, const LlvmGpu *g, const TirModule *m, const Target *t,
                     const CodegenOptions *o, DeviceImages *out);
bool llvm_gpu_source(Ctx *c, const LlvmGpu *g, const TirModule *m, StrBuf *out);

/* ---- jit.c ------------------------------------------------------------------------------------------ */

Jit  *llvm_jit(Ctx *c, const TirModule *m, const Target *t);
Jit  *llvm_jit_load(Ctx *c, const Target *t, Bytes object);
void *llvm_jit_symbol(Jit *j, const char *func);
void  llvm_jit_free(Jit *j);

#endif
