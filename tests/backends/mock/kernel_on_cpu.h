// Kernels that run on the CPU, in any language that is nearly C++: a kernel is a function of this
// process, which block.c calls once for each thread of a block; shared memory is static, since one
// block runs at a time.
typedef __SIZE_TYPE__ size_t;

struct MockIndex {
    unsigned x, y, z;
};

// Filled in before a thread goes on.
extern "C" {
MockIndex mock_thread, mock_block;
void (*mock_barrier)();
}

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
