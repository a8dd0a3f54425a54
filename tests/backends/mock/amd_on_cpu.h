// Products of the warps of AMD's GPUs (retarget.c), as the guides of the instruction sets have
// their operands, of thread x + 16 * y of a warp.
struct MockSides {
    unsigned char a[32], b[32];
};
static MockSides mock_sides[1024];

// CDNA: 64 threads, EACH steps of row x, those from EACH * y on; of the result rows 4 * y + i.
template <int EACH> struct MockCdna {
    enum { THREADS = 64, NUMBERS = 4, HAS = EACH, STEPS = 4 * EACH };
    static int row(int y, int i)
    {
        return 4 * y + i;
    }
    static int owner(int k, int) // of step k, which of its rows of threads
    {
        return k / EACH;
    }
    static int at(int k)
    {
        return k % EACH;
    }
};
// RDNA 3: 32 threads, all steps of row x in both halves; rows 2 * i + y.
struct MockRdna3 {
    enum { THREADS = 32, NUMBERS = 8, HAS = 16, STEPS = 16 };
    static int row(int y, int i)
    {
        return 2 * i + y;
    }
    static int owner(int, int y)
    {
        return y;
    }
    static int at(int k)
    {
        return k;
    }
};
// RDNA 4: 32 threads, each half has 8 steps of row x; rows 8 * y + i.
struct MockRdna4 {
    enum { THREADS = 32, NUMBERS = 8, HAS = 8, STEPS = 16 };
    static int row(int y, int i)
    {
        return 8 * y + i;
    }
    static int owner(int k, int)
    {
        return k / 8;
    }
    static int at(int k)
    {
        return k % 8;
    }
};

template <class How, class A, class B, class C>
MOCK_TOGETHER void mock_warp_product(C *c, const void *a, const void *b, const char *what)
{
    const unsigned lane = mock_number % How::THREADS, warp = mock_number - lane;
    const unsigned x = lane % 16, y = lane / 16;
    MockSides     *own = &mock_sides[mock_number];

    __builtin_memcpy(own->a, a, How::HAS * sizeof(A));
    __builtin_memcpy(own->b, b, How::HAS * sizeof(B));
    mock_meet(How::THREADS, what);
    if (How::HAS == How::STEPS && // both halves have to have the same
        (__builtin_memcmp(own->a, mock_sides[warp + x].a, How::HAS * sizeof(A)) ||
         __builtin_memcmp(own->b, mock_sides[warp + x].b, How::HAS * sizeof(B))))
        __builtin_trap();
    for (int i = 0; i < How::NUMBERS; i++)
        for (int k = 0; k < How::STEPS; k++) {
            const unsigned from = warp + 16 * How::owner(k, y);
            A              p;
            B              q;
            __builtin_memcpy(&p, mock_sides[from + How::row(y, i)].a + How::at(k) * sizeof p,
                             sizeof p);
            __builtin_memcpy(&q, mock_sides[from + x].b + How::at(k) * sizeof q, sizeof q);
            c[i] += (C)p * (C)q;
        }
    mock_meet(How::THREADS, what);
}

#define AMD_PRODUCT(name, How, A, B, C)                                 \
    extern "C" void mock_amd_##name(C *c, const void *a, const void *b) \
    {                                                                   \
        mock_warp_product<How, A, B, C>(c, a, b, #name);                \
    }
AMD_PRODUCT(mfma_f16, MockCdna<4>, MockF16, MockF16, float)
AMD_PRODUCT(mfma_bf16, MockCdna<4>, MockBf16, MockBf16, float)
AMD_PRODUCT(mfma_s8k32, MockCdna<8>, signed char, signed char, int)
AMD_PRODUCT(mfma_s8, MockCdna<4>, signed char, signed char, int)
#define AMD_PRODUCTS(n)                                                         \
    AMD_PRODUCT(wmma##n##_f16, MockRdna##n, MockF16, MockF16, float)            \
    AMD_PRODUCT(wmma##n##_bf16, MockRdna##n, MockBf16, MockBf16, float)         \
    AMD_PRODUCT(wmma##n##_s8s8, MockRdna##n, signed char, signed char, int)     \
    AMD_PRODUCT(wmma##n##_u8u8, MockRdna##n, unsigned char, unsigned char, int) \
    AMD_PRODUCT(wmma##n##_u8s8, MockRdna##n, unsigned char, signed char, int)   \
    AMD_PRODUCT(wmma##n##_s8u8, MockRdna##n, signed char, unsigned char, int)
AMD_PRODUCTS(3)
AMD_PRODUCTS(4)

// Whose bytes are signed is an operand.
#define AMD_BYTES(n)                                                                        \
    extern "C" void mock_amd_wmma##n##_bytes(int *c, const void *a, const void *b, bool sa, \
                                             bool sb)                                       \
    {                                                                                       \
        (sa ? (sb ? mock_amd_wmma##n##_s8s8 : mock_amd_wmma##n##_s8u8)                      \
            : (sb ? mock_amd_wmma##n##_u8s8 : mock_amd_wmma##n##_u8u8))(c, a, b);           \
    }
AMD_BYTES(3)
AMD_BYTES(4)
