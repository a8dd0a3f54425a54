// Kernels with matrices of SIMD-groups, for matrices_main.c: right ones, and some with a fault each.
#include <metal_stdlib>
using namespace metal;

#define PLACE uint3 at_group [[threadgroup_position_in_grid]], uint3 at_thread [[thread_position_in_threadgroup]]

// c = max(c + a * b^T, 0), 16 x 16 x 16 in blocks of 4 x 8 x 4 threads: operands and sums through shared memory, each SIMD-group a tile.
kernel void product(device const half *a [[buffer(0)]], device const half *b [[buffer(1)]], device float *c [[buffer(2)]],
                    constant long *values [[buffer(3)]], PLACE)
{
    threadgroup half shared_a[16 * 20];
    threadgroup half shared_b[16 * 24];
    threadgroup float shared_c[16 * 18];
    const int warp = (int)at_thread.z, thread_of_block = warp * 32 + (int)at_thread.y * 4 + (int)at_thread.x;
    const ulong2 tile = ulong2(warp % 2 * 8, warp / 2 * 8);
    threadgroup const half *own_a = shared_a + tile.y * 20;
    simdgroup_float8x8 sum;
    simdgroup_half8x8 x, y;

    for (int i = thread_of_block; i < 256; i += 128) {
        shared_a[i / 16 * 20 + i % 16] = a[i];
        shared_b[i / 16 * 24 + i % 16] = b[i];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_load(sum, c + values[0], 16, tile);
    for (int k = 0; k < 16; k += 8) {
        simdgroup_load(x, own_a + k, 20);
        simdgroup_load(y, shared_b + (tile.x * 24 + k), 24, ulong2(0), true);
        simdgroup_multiply_accumulate(sum, x, y, sum);
    }
    simdgroup_store(sum, shared_c + (tile.y * 18 + tile.x), 18);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int i = thread_of_block; i < 256; i += 128)
        c[i] = max(shared_c[i / 16 * 18 + i % 16], 0.0f);
}

// In bfloat, by one SIMD-group: c = 2 a + 1, and its transpose by way of shared memory.
kernel void doubled(device const bfloat *a [[buffer(0)]], device bfloat *c [[buffer(1)]], constant long *values [[buffer(2)]], PLACE)
{
    threadgroup bfloat shared_c[64];
    simdgroup_bfloat8x8 x, two = simdgroup_bfloat8x8(2.0f), one = make_filled_simdgroup_matrix<bfloat, 8, 8>(1.0f);

    simdgroup_load(x, a);
    simdgroup_multiply_accumulate(x, two, x, one);
    simdgroup_store(x, c);
    simdgroup_store(x, shared_c, 8, 0, true);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (int i = (int)at_thread.x; i < 64; i += 32)
        c[64 + i] = shared_c[i];
}

// Only the second of two SIMD-groups has some.
kernel void second(device const float *a [[buffer(0)]], device float *c [[buffer(1)]], constant long *values [[buffer(2)]], PLACE)
{
    if (at_thread.x >= 32) {
        simdgroup_float8x8 x;
        simdgroup_load(x, a);
        simdgroup_store(x, c);
    }
    threadgroup_barrier(mem_flags::mem_device);
    if (at_thread.x < 2)
        c[64 + at_thread.x] = c[at_thread.x * 63];
}

// One thread does not come.
kernel void absent(device const float *a [[buffer(0)]], device float *c [[buffer(1)]], constant long *values [[buffer(2)]], PLACE)
{
    if (at_thread.x == 17)
        return;
    simdgroup_float8x8 x;
    simdgroup_load(x, a);
    simdgroup_store(x, c);
}

// Half of them come to another one, or to the same one in another branch.
kernel void apart(device const float *a [[buffer(0)]], device float *c [[buffer(1)]], constant long *values [[buffer(2)]], PLACE)
{
    simdgroup_float8x8 x;
    if (at_thread.x < 16)
        simdgroup_load(x, a);
    else
        x = make_filled_simdgroup_matrix<float, 8>(0.0f);
    simdgroup_store(x, c);
}
kernel void branches(device const float *a [[buffer(0)]], device float *c [[buffer(1)]], constant long *values [[buffer(2)]], PLACE)
{
    simdgroup_float8x8 x;
    if (at_thread.x < 16)
        simdgroup_load(x, a);
    else
        simdgroup_load(x, a);
    simdgroup_store(x, c);
}

// Each has another address.
kernel void addresses(device const float *a [[buffer(0)]], device float *c [[buffer(1)]], constant long *values [[buffer(2)]], PLACE)
{
    simdgroup_float8x8 x;
    simdgroup_load(x, a + at_thread.x);
    simdgroup_store(x, c);
}

// ... another distance between rows, or direction.
kernel void strides(device const float *a [[buffer(0)]], device float *c [[buffer(1)]], constant long *values [[buffer(2)]], PLACE)
{
    simdgroup_float8x8 x;
    simdgroup_load(x, a, 8 + at_thread.x / 16);
    simdgroup_store(x, c);
}
kernel void directions(device const float *a [[buffer(0)]], device float *c [[buffer(1)]], constant long *values [[buffer(2)]], PLACE)
{
    simdgroup_float8x8 x;
    simdgroup_load(x, a);
    simdgroup_store(x, c, 8, 0, at_thread.x % 2 == 1);
}

// Some wait for the block meanwhile.
kernel void barrier(device const float *a [[buffer(0)]], device float *c [[buffer(1)]], constant long *values [[buffer(2)]], PLACE)
{
    simdgroup_float8x8 x = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    if (at_thread.x < 8)
        threadgroup_barrier(mem_flags::mem_device);
    simdgroup_store(x, c);
}

// No barrier between what threads store and what they load together; nor after a store of all.
kernel void early(device const float *a [[buffer(0)]], device float *c [[buffer(1)]], constant long *values [[buffer(2)]], PLACE)
{
    threadgroup float shared_a[64];
    simdgroup_float8x8 x;
    shared_a[at_thread.x] = a[at_thread.x];
    shared_a[at_thread.x + 32] = a[at_thread.x + 32];
    simdgroup_load(x, shared_a);
    simdgroup_store(x, c);
}
kernel void late(device const float *a [[buffer(0)]], device float *c [[buffer(1)]], constant long *values [[buffer(2)]], PLACE)
{
    simdgroup_float8x8 x;
    simdgroup_load(x, a);
    simdgroup_store(x, c + 64);
    c[at_thread.x] = c[127 - at_thread.x];
}

// Nothing was put into it.
kernel void empty(device const float *a [[buffer(0)]], device float *c [[buffer(1)]], constant long *values [[buffer(2)]], PLACE)
{
    simdgroup_float8x8 x;
    simdgroup_store(x, c);
}
