// What CUDA C has beside C++.
#include "../mock/kernel_on_cpu.h"

#define __global__
#define __device__
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define threadIdx mock_thread
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
