// Kernels that run on the CPU, in any language that is nearly C++: a kernel is a function of this
// process, which block.c calls once for each thread of a block; shared memory is static, since one
// block runs at a time.
typedef __SIZE_TYPE__ size_t;

struct MockIndex {
    unsigned x, y, z;
};

struct MockMeeting {
    const void *place;
    const char *what;
    size_t      x, y;
    unsigned    threads;
};

// Filled in before a thread goes on; the number is the thread's in its block.
extern "C" {
MockIndex mock_thread, mock_block;
unsigned  mock_number;
void (*mock_barrier)();
void (*mock_group)(const MockMeeting *meeting);
}

// What the threads of a group (a warp, a SIMD-group) do together: all of them have to come to this
// very call, with equal x and y.  Each leaves what it has where the others find it, and waits.
#define MOCK_TOGETHER static inline __attribute__((always_inline))
__attribute__((noinline, convergent, nomerge, not_tail_called)) static void
mock_meet(unsigned threads, const char *what, size_t x = 0, size_t y = 0)
{
    const MockMeeting meeting = {__builtin_return_address(0), what, x, y, threads};

    mock_group(&meeting);
}

// Numbers of 16 bits, which are computed with as floats; of integers, since compilers call
// functions of their own for _Float16.
struct MockF16 {
    unsigned short v;
    MockF16() = default;
    MockF16(float f)
    {
        const unsigned bits = __builtin_bit_cast(unsigned, f), size = bits & 0x7fffffff;
        unsigned       rounded;

        if (size > 0x7f800000) // not a number
            rounded = 0x7e00;
        else if (size >= 0x477ff000) // too large
            rounded = 0x7c00;
        else if (size >= 0x38800000)
            rounded = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
        else // without exponent: the addition rounds
            rounded = __builtin_bit_cast(unsigned, __builtin_fabsf(f) + 0.5f) - 0x3f000000;
        v = (unsigned short)(bits >> 16 & 0x8000 | rounded);
    }
    operator float() const
    {
        const unsigned size = v & 0x7fff;
        const float    f = size < 0x7c00
                               ? __builtin_bit_cast(float, size << 13) * 0x1p112f
                               : __builtin_bit_cast(float, 0x7f800000 | (size & 0x3ff) << 13);

        return v & 0x8000 ? -f : f;
    }
};
struct MockBf16 {
    unsigned short v;
    MockBf16() = default;
    MockBf16(float f)
    {
        const unsigned bits = __builtin_bit_cast(unsigned, f);

        v = f != f ? 0x7fc0 : (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
    operator float() const
    {
        return __builtin_bit_cast(float, (unsigned)v << 16);
    }
};

// A kernel called with the addresses of its arguments, as the driver gets them.
template <size_t... I> struct MockList {
};
template <size_t N, size_t... I> struct MockCount : MockCount<N - 1, N - 1, I...> {
};
template <size_t... I> struct MockCount<0, I...> {
    typedef MockList<I...> list;
};
template <class... A, size_t... I> static void mock_call(void (*f)(A...), void **a, MockList<I...>)
{
    f(*(A *)a[I]...);
}
template <class... A> static void mock_call(void (*f)(A...), void **a)
{
    mock_call(f, a, typename MockCount<sizeof...(A)>::list());
}
template <class... A> static constexpr int mock_count(void (*)(A...))
{
    return (int)sizeof...(A);
}
#define MOCK_KERNEL(name, threads, barriers)                  \
    extern "C" void mock_run_##name(void **a)                 \
    {                                                         \
        mock_call(name, a);                                   \
    }                                                         \
    extern "C" const int mock_threads_##name = threads;       \
    extern "C" const int mock_args_##name = mock_count(name); \
    extern "C" const int mock_barriers_##name = barriers;
