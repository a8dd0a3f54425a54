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
