// What kernels in LLVM IR call (retarget.c), by the names of LLVM's intrinsics.
#define NUMBER(function, name, value)             \
    extern "C" unsigned function() __asm__(name); \
    extern "C" unsigned function()                \
    {                                             \
        return value;                             \
    }
#define NUMBERS(axis)                                                                       \
    NUMBER(mock_nvvm_tid_##axis, "mock_nvvm.read.ptx.sreg.tid." #axis, mock_thread.axis)    \
    NUMBER(mock_nvvm_ctaid_##axis, "mock_nvvm.read.ptx.sreg.ctaid." #axis, mock_block.axis) \
    NUMBER(mock_amdgcn_item_##axis, "mock_amdgcn.workitem.id." #axis, mock_thread.axis)     \
    NUMBER(mock_amdgcn_group_##axis, "mock_amdgcn.workgroup.id." #axis, mock_block.axis)
NUMBERS(x)
NUMBERS(y)
NUMBERS(z)

#define MEETING(function, name)               \
    extern "C" void function() __asm__(name); \
    extern "C" void function()                \
    {                                         \
        mock_barrier();                       \
    }
MEETING(mock_nvvm_barrier, "mock_nvvm.barrier0")
MEETING(mock_amdgcn_barrier, "mock_amdgcn.s.barrier")

extern "C" void mock_nvvm_wait() __asm__("mock_nvvm.cp.async.wait.all");
extern "C" void mock_nvvm_wait()
{
}

// Of an address within a block's memory, as that of the GPU, the IR has 32 bits: all such memory
// lies near this variable.
static char mock_near;

extern "C" void mock_cp_async(int to, long long from)
{
    warp_async_copy(&mock_near + (to - (int)(size_t)&mock_near), (const void *)from);
}
extern "C" void mock_cp_async_where(int to, long long from, int bytes)
{
    mock_cp_async(to, bytes ? from : 0);
}
extern "C" void mock_nvvm_commit() __asm__("mock_nvvm.cp.async.commit.group");
extern "C" void mock_nvvm_commit()
{
}
extern "C" void mock_nvvm_wait_group(unsigned n) __asm__("mock_nvvm.cp.async.wait.group");
extern "C" void mock_nvvm_wait_group(unsigned n)
{
    warp_async_await(n);
}
extern "C" void mock_ldmatrix4(unsigned *r, const void *row)
{
    warp_ldmatrix4(r, row);
}
extern "C" void mock_ldmatrix2(unsigned *r, const void *row)
{
    warp_ldmatrix2(r, row);
}
#define PRODUCT(name, C)                                                    \
    extern "C" void mock_##name(C *c, const unsigned *a, const unsigned *b) \
    {                                                                       \
        warp_##name(c, a, b);                                               \
    }
PRODUCT(mma_f16, float)
PRODUCT(mma_bf16, float)
PRODUCT(mma_s8, int)
PRODUCT(mma_u8, int)
PRODUCT(mma_u8s8, int)
PRODUCT(mma_s8u8, int)
#define DOT(types)                                                  \
    extern "C" int mock_dot4_##types(unsigned a, unsigned b, int c) \
    {                                                               \
        return warp_dot4_##types(a, b, c);                          \
    }
DOT(u8_u8)
DOT(u8_i8)
DOT(i8_u8)
DOT(i8_i8)

#define EXCHANGE(type, function, name)                                                    \
    extern "C" type mock_##function##_##type(unsigned mask, type own, int at,             \
                                             int last) __asm__(name);                     \
    extern "C" type mock_##function##_##type(unsigned mask, type own, int at, int last)   \
    {                                                                                     \
        return last == 31 ? __##function##_sync(mask, own, at) : (__builtin_trap(), own); \
    }
EXCHANGE(float, shfl_xor, "mock_nvvm.shfl.sync.bfly.f32")
EXCHANGE(float, shfl, "mock_nvvm.shfl.sync.idx.f32")
EXCHANGE(int, shfl_xor, "mock_nvvm.shfl.sync.bfly.i32")
EXCHANGE(int, shfl, "mock_nvvm.shfl.sync.idx.i32")

#include "amd_on_cpu.h"

// From the thread whose number is a quarter of `at`.
extern "C" int mock_bpermute(int at, int own) __asm__("mock_amdgcn.ds.bpermute");
extern "C" int mock_bpermute(int at, int own)
{
    return mock_shuffle<MOCK_WAVE>(own, (unsigned)at / 4);
}

// Of AMD's GPUs; nothing asks for the largest number in the place of one that is too large.
extern "C" int mock_sdot4(unsigned a, unsigned b, int c, bool) __asm__("mock_amdgcn.sdot4");
extern "C" int mock_sdot4(unsigned a, unsigned b, int c, bool)
{
    return warp_dot4_i8_i8(a, b, c);
}
extern "C" int mock_udot4(unsigned a, unsigned b, int c, bool) __asm__("mock_amdgcn.udot4");
extern "C" int mock_udot4(unsigned a, unsigned b, int c, bool)
{
    return warp_dot4_u8_u8(a, b, c);
}
extern "C" int mock_sudot4(bool sa, unsigned a, bool sb, unsigned b, int c,
                           bool) __asm__("mock_amdgcn.sudot4");
extern "C" int mock_sudot4(bool sa, unsigned a, bool sb, unsigned b, int c, bool)
{
    return sa ? (sb ? warp_dot4_i8_i8(a, b, c) : warp_dot4_i8_u8(a, b, c))
              : (sb ? warp_dot4_u8_i8(a, b, c) : warp_dot4_u8_u8(a, b, c));
}
