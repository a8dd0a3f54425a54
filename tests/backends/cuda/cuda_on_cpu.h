// What CUDA C has beside C++.
#include "../mock/kernel_on_cpu.h"

#define __global__
#define __device__
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define threadIdx mock_thread
// What a launch gives a block (mock_cuda.c sees that it is as much as the kernel was granted).
unsigned char given_memory[227 << 10] __attribute__((aligned(1024), visibility("hidden")));
#define blockIdx mock_block
#define __syncthreads() mock_barrier()

#define FROM_BITS(name, to, from)         \
    static inline to name(from v)         \
    {                                     \
        return __builtin_bit_cast(to, v); \
    }
FROM_BITS(__int_as_float, float, int)
FROM_BITS(__uint_as_float, float, unsigned)
FROM_BITS(__longlong_as_double, double, long long)
FROM_BITS(__float_as_int, int, float)
FROM_BITS(__float_as_uint, unsigned, float)
FROM_BITS(__double_as_longlong, long long, double)

// Cells that come and go at once: on a border of their own.
#define VECTOR2(name, t)                                              \
    struct __attribute__((aligned(2 * sizeof(t)), may_alias)) name##2 \
    {                                                                 \
        t x, y;                                                       \
    };                                                                \
    static inline name##2 make_##name##2(t x, t y)                    \
    {                                                                 \
        return {x, y};                                                \
    }
#define VECTOR4(name, t)                                              \
    struct __attribute__((aligned(4 * sizeof(t)), may_alias)) name##4 \
    {                                                                 \
        t x, y, z, w;                                                 \
    };                                                                \
    static inline name##4 make_##name##4(t x, t y, t z, t w)          \
    {                                                                 \
        return {x, y, z, w};                                          \
    }
VECTOR4(char, signed char)
VECTOR4(uchar, unsigned char)
VECTOR4(short, short)
VECTOR4(ushort, unsigned short)
VECTOR4(int, int)
VECTOR4(uint, unsigned)
VECTOR4(float, float)
VECTOR2(char, signed char)
VECTOR2(uchar, unsigned char)
VECTOR2(short, short)
VECTOR2(ushort, unsigned short)
VECTOR2(int, int)
VECTOR2(uint, unsigned)
VECTOR2(float, float)
VECTOR2(longlong, long long)
VECTOR2(ulonglong, unsigned long long)
VECTOR2(double, double)

static inline int min(int a, int b)
{
    return a < b ? a : b;
}
static inline int max(int a, int b)
{
    return a > b ? a : b;
}
static inline long long min(long long a, long long b)
{
    return a < b ? a : b;
}
static inline long long max(long long a, long long b)
{
    return a > b ? a : b;
}

extern "C" {
#define UNARY(name)                 \
    float  name##f(float) noexcept; \
    double name(double) noexcept
#define BINARY(name)                       \
    float  name##f(float, float) noexcept; \
    double name(double, double) noexcept
UNARY(exp);
UNARY(log);
UNARY(tanh);
UNARY(erf);
UNARY(sqrt);
UNARY(fabs);
UNARY(floor);
UNARY(ceil);
UNARY(trunc);
UNARY(rint);
UNARY(sin);
UNARY(cos);
UNARY(tan);
UNARY(asin);
UNARY(acos);
UNARY(atan);
UNARY(sinh);
UNARY(cosh);
UNARY(asinh);
UNARY(acosh);
UNARY(atanh);
BINARY(copysign);
BINARY(pow);
BINARY(fmod);
BINARY(atan2);
}
static inline float fma(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}
static inline double fma(double a, double b, double c)
{
    return __builtin_fma(a, b, c);
}

// What the threads of a warp compute together.
static unsigned mock_words[1024][6];
static unsigned mock_rows[1024][4];

// Copies that a thread has started, in groups: until it has waited for one there is nothing of use.
struct MockCopies {
    unsigned n, group;
    struct {
        void    *to;
        char     value[16];
        unsigned group;
    } at[256];
};
static MockCopies mock_copies[1024];

// Of zeros where `from` is none.
static inline void warp_async_copy(void *to, const void *from)
{
    MockCopies *own = &mock_copies[mock_number];

    if (((size_t)to | (size_t)from) % 16 || own->n == 256)
        __builtin_trap();
    own->at[own->n].to = to;
    own->at[own->n].group = own->group;
    __builtin_memset(own->at[own->n].value, 0, 16);
    if (from)
        __builtin_memcpy(own->at[own->n].value, from, 16);
    own->n++;
    __builtin_memset(to, 0xff, 16);
}

// Ends a group, and waits for all but the last n.
static inline void warp_async_await(unsigned n)
{
    MockCopies *own = &mock_copies[mock_number];
    unsigned    left = 0;

    own->group++;
    for (unsigned i = 0; i < own->n; i++)
        if (own->at[i].group + n < own->group)
            __builtin_memcpy(own->at[i].to, own->at[i].value, 16);
        else
            own->at[left++] = own->at[i];
    own->n = left;
}

MOCK_TOGETHER void warp_ldmatrix(unsigned *r, const void *row, int matrices)
{
    const unsigned lane = mock_number % 32, warp = mock_number - lane;

    if (lane < 8u * matrices) // before the others have come: what they store then is not there yet
        __builtin_memcpy(mock_rows[mock_number], row, 16);
    mock_meet(32, "ldmatrix");
    for (int i = 0; i < matrices; i++)
        r[i] = mock_rows[warp + 8 * i + lane / 4][lane % 4];
    mock_meet(32, "ldmatrix");
}
MOCK_TOGETHER void warp_ldmatrix4(unsigned *r, const void *row)
{
    warp_ldmatrix(r, row, 4);
}
MOCK_TOGETHER void warp_ldmatrix2(unsigned *r, const void *row)
{
    warp_ldmatrix(r, row, 2);
}

// What another thread of the warp has.
template <unsigned warp, class T> MOCK_TOGETHER T mock_shuffle(T own, unsigned from)
{
    T other;

    if (from >= warp)
        __builtin_trap();
    __builtin_memcpy(mock_words[mock_number], &own, sizeof own);
    mock_meet(warp, "shuffle");
    __builtin_memcpy(&other, mock_words[mock_number - mock_number % warp + from], sizeof other);
    mock_meet(warp, "shuffle");
    return other;
}
template <class T> MOCK_TOGETHER T __shfl_xor_sync(unsigned mask, T own, int with)
{
    return mask == ~0u ? mock_shuffle<32>(own, mock_number % 32 ^ with) : (__builtin_trap(), own);
}
template <class T> MOCK_TOGETHER T __shfl_sync(unsigned mask, T own, int from)
{
    return mask == ~0u ? mock_shuffle<32>(own, from) : (__builtin_trap(), own);
}

// Thread 4*y + x: words 0..3 are a's rows y and y + 8, then the same of the second half of the sum;
// 4, 5 b's column.
template <class A, class B, class C>
MOCK_TOGETHER void warp_product(C *c, const unsigned *a, const unsigned *b)
{
    const int      each = 4 / sizeof(A);
    const unsigned lane = mock_number % 32, warp = mock_number - lane;

    for (int i = 0; i < 4; i++)
        mock_words[mock_number][i] = a[i];
    mock_words[mock_number][4] = b[0], mock_words[mock_number][5] = b[1];
    mock_meet(32, "mma");
    for (unsigned e = 0; e < 4; e++)
        for (unsigned w = 0; w < 8; w++) {
            A x[each];
            B y[each];
            __builtin_memcpy(x, &mock_words[warp + lane / 4 * 4 + w % 4][e / 2 + 2 * (w / 4)], 4);
            __builtin_memcpy(y, &mock_words[warp + 4 * (2 * (lane % 4) + e % 2) + w % 4][4 + w / 4],
                             4);
            for (int i = 0; i < each; i++)
                c[e] += (C)x[i] * (C)y[i];
        }
    mock_meet(32, "mma");
}
#define WARP_PRODUCT(name, A, B, C)                                            \
    MOCK_TOGETHER void warp_##name(C *c, const unsigned *a, const unsigned *b) \
    {                                                                          \
        warp_product<A, B, C>(c, a, b);                                        \
    }
WARP_PRODUCT(mma_f16, MockF16, MockF16, float)
WARP_PRODUCT(mma_bf16, MockBf16, MockBf16, float)
WARP_PRODUCT(mma_s8, signed char, signed char, int)
WARP_PRODUCT(mma_u8, unsigned char, unsigned char, int)
WARP_PRODUCT(mma_u8s8, unsigned char, signed char, int)
WARP_PRODUCT(mma_s8u8, signed char, unsigned char, int)

// wgmma: 64 rows by N columns and 64 steps by the threads of four warps, which all have come.  A
// line of shared memory is 128 bytes, the steps of a row or column; bits 4 to 6 of an address have
// bits 7 to 9 added without carry (PTX ISA, "128-Byte swizzle mode").
template <class T> static float mock_step(const void *side, unsigned line, unsigned step)
{
    size_t at = (size_t)side + 128 * line + sizeof(T) * step;
    T      v;

    __builtin_memcpy(&v, (const void *)(at ^ (at >> 7 & 7) << 4), sizeof v);
    return v;
}
template <class T, unsigned n> static void group_product(float *c, const void *a, const void *b)
{
    const unsigned thread = mock_number;

    mock_meet(128, "wgmma", (size_t)a, (size_t)b);
    for (unsigned i = 0; i < n / 2; i++) {
        const unsigned row = thread % 128 / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
        const unsigned column = i / 4 * 8 + thread % 4 * 2 + i % 2;
        for (unsigned k = 0; k < 64; k++)
            c[i] += mock_step<T>(a, row, k) * mock_step<T>(b, column, k);
    }
    mock_meet(128, "wgmma");
}

// A product is made when its thread waits for it: as late as may be.
struct MockProducts {
    unsigned n;
    struct {
        void (*product)(float *c, const void *a, const void *b);
        float      *c;
        const void *a, *b;
    } at[64];
};
static MockProducts mock_products[1024];

static inline void mock_product(void (*product)(float *c, const void *a, const void *b), float *c,
                                const void *a, const void *b)
{
    MockProducts *own = &mock_products[mock_number];

    if (((size_t)a | (size_t)b) % 1024 || own->n == 64)
        __builtin_trap();
    own->at[own->n].product = product;
    own->at[own->n].c = c;
    own->at[own->n].a = a;
    own->at[own->n++].b = b;
}

// Waits for all but the last n.
static inline void group_await(unsigned n)
{
    MockProducts *own = &mock_products[mock_number];
    unsigned      left = 0;

    for (unsigned i = 0; i < own->n; i++)
        if (i + n < own->n)
            own->at[i].product(own->at[i].c, own->at[i].a, own->at[i].b);
        else
            own->at[left++] = own->at[i];
    own->n = left;
}
#define GROUP_PRODUCT(n)                                                             \
    static inline void group_wgmma_f16_n##n(float *c, const void *a, const void *b)  \
    {                                                                                \
        mock_product(group_product<MockF16, n>, c, a, b);                            \
    }                                                                                \
    static inline void group_wgmma_bf16_n##n(float *c, const void *a, const void *b) \
    {                                                                                \
        mock_product(group_product<MockBf16, n>, c, a, b);                           \
    }
#define GROUP_PRODUCTS(a, b, c, d, e, f, g, h) \
    GROUP_PRODUCT(a)                           \
    GROUP_PRODUCT(b)                           \
    GROUP_PRODUCT(c)                           \
    GROUP_PRODUCT(d) GROUP_PRODUCT(e) GROUP_PRODUCT(f) GROUP_PRODUCT(g) GROUP_PRODUCT(h)
GROUP_PRODUCTS(8, 16, 24, 32, 40, 48, 56, 64)
GROUP_PRODUCTS(72, 80, 88, 96, 104, 112, 120, 128)
GROUP_PRODUCTS(136, 144, 152, 160, 168, 176, 184, 192)
GROUP_PRODUCTS(200, 208, 216, 224, 232, 240, 248, 256)

template <class A, class B> static int four_products(unsigned a, unsigned b, int c)
{
    for (int i = 0; i < 32; i += 8)
        c = (int)((unsigned)c + (unsigned)((A)(a >> i) * (B)(b >> i)));
    return c;
}
#define FOUR_PRODUCTS(name, A, B)                                     \
    static inline int warp_dot4_##name(unsigned a, unsigned b, int c) \
    {                                                                 \
        return four_products<A, B>(a, b, c);                          \
    }
FOUR_PRODUCTS(u8_u8, unsigned char, unsigned char)
FOUR_PRODUCTS(u8_i8, unsigned char, signed char)
FOUR_PRODUCTS(i8_u8, signed char, unsigned char)
FOUR_PRODUCTS(i8_i8, signed char, signed char)
