/* What work costs on this machine, by small kernels of our own code generator.
 *
 *   clock    a chain of integer operations of one cycle each, beside as many multiply-adds of
 *            vectors as keep the units busy: cycles, at the clock that such code leaves
 *   peak     sums in registers, nothing loaded             fma_bytes, macs_ns
 *   chain    one sum                                       latency
 *   read     what lies in L1, L2, L3 or memory, in order   loads, l2_rate, l3_rate, memory_rate
 *   product  a register tile, weights from there           l2_shows, l3_shows, memory_shows
 *   store    to L2, L3 or memory, in order                 l2_store, l3_store, memory_store
 *   copy     from L2 to L2                                 stream_ns
 *   barrier, launch: the pool of the runtime               sync_ns, launch_ns
 *
 * Others work on the machine too, so each kernel is a fraction of a millisecond, all of them take
 * turns for a second or two, and of each the shortest run counts.  What is to come from memory is a
 * piece of a block that no cache holds, another one each time.  Those that store have turns of
 * their own: reading would wait until L3 has sent away what was stored. */
#include "driver/measure.h"

#include "driver/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    CLOCK,
    PEAK,
    CHAIN,
    READ_L1,
    READ_L2,
    READ_L3,
    READ_MEMORY,
    PRODUCT_L1,
    PRODUCT_L2,
    PRODUCT_L3,
    PRODUCT_MEMORY,
    STORE_L2,
    STORE_L3,
    STORE_MEMORY,
    COPY,
    KERNELS
};

enum {
    STEPS = 2000,      /* of the loops of clock, peak and chain */
    LINKS = 32,        /* cycles of a step of `clock` */
    TALL = 2,          /* vectors of weights in a step of `product` */
    DEPTH = 32,        /* steps of it whose data stay in L1 */
    DATA = DEPTH * 32, /* numbers, of at most 32 for a step */
    ROUNDS = 1000      /* runs of each kernel */
};

typedef void Kernel(void *const *buffers, const int64_t *scalars);

typedef struct {
    Driver       *driver;
    Ctx          *c;
    const Target *t;
    uint32_t      lanes, sums;
    int64_t       bytes[KERNELS], rounds[KERNELS]; /* of those that read */
    int64_t       block;                           /* that no cache holds */
    Kernel       *run[KERNELS];
    double        least[KERNELS]; /* nanoseconds */
    float        *memory;         /* operands, then results */
    Jit          *jit;
    /* threads; 0: none, or not measured */
    double sync_ns, launch_ns;
} Bench;

static const char *const names[KERNELS] = {
    "clock",          "peak",        "chain",      "read_l1",      "read_l2",
    "read_l3",        "read_memory", "product_l1", "product_l2",   "product_l3",
    "product_memory", "store_l2",    "store_l3",   "store_memory", "copy"};

/* ---- kernels ------------------------------------------------------------------------------------ */

/* So many sums in registers, which begin with a vector of the first tensor. */
static void open_sums(const Bench *b, StrBuf *s, uint32_t sums)
{
    str_printf(s, "  alloc %%a: f32[%u,%u] @reg {\n", sums, b->lanes);
    str_printf(s, "    for %%i < %u unroll { for %%j < %u vector { %%a[%%i,%%j] = %%x[%%j] } }\n",
               sums, b->lanes);
}

/* .. end in the result. */
static void close_sums(const Bench *b, StrBuf *s, uint32_t sums)
{
    str_printf(s,
               "    for %%i2 < %u unroll { for %%j2 < %u vector { %%y[%%i2,%%j2] = "
               "%%a[%%i2,%%j2] } }\n  }\n",
               sums, b->lanes);
}

/* `sums` vectors in registers, each of which takes a multiply-add a step; with `clock`, beside a
 * chain of additions and exclusive ors that no compiler shortens. */
static void add_sums(const Bench *b, StrBuf *s, const char *name, uint32_t sums, bool clock)
{
    uint32_t n = b->lanes;

    str_printf(s, "func @%s kind(kernel) target(\"%s\") (%%x: f32[%u], ", name, b->t->text, n);
    str_printf(s, "%%seed: i32[2], %%y: f32[%u,%u] written, %%z: i32[1] written) {\n", sums, n);
    str_add(s, "  alloc %c: i32[1] @reg {\n    %c[0] = %seed[0]\n");
    open_sums(b, s, sums);
    str_printf(s, "    for %%k < %d seq {\n", STEPS);
    str_printf(s, "      for %%i1 < %u unroll { for %%j1 < %u vector {\n", sums, n);
    str_printf(s, "        %%a[%%i1,%%j1] = %s\n      } }\n",
               b->t->has_fma ? "fma(%a[%i1,%j1], %x[%j1], %x[%j1])"
                             : "%a[%i1,%j1] * %x[%j1] + %x[%j1]");
    for (int i = 0; clock && i < LINKS / 2; i++)
        str_add(s, "      %c[0] = xor(%c[0] + %seed[0], %seed[1])\n");
    str_add(s, "    }\n    %z[0] = %c[0]\n");
    close_sums(b, s, sums);
    str_add(s, "  }\n}\n");
}

/* Sums of what lies in so many bytes, read again and again; enough of them side by side that none
 * is waited for. */
static void add_read(const Bench *b, StrBuf *s, int kernel)
{
    uint32_t  n = b->lanes, sums = b->sums;
    long long steps = b->bytes[kernel] / (4 * sums * n);

    str_printf(s,
               "func @%s kind(kernel) target(\"%s\") (%%x: f32[%lld], %%y: f32[%u,%u] written) {\n",
               names[kernel], b->t->text, steps * sums * n, sums, n);
    open_sums(b, s, sums);
    str_printf(s, "    for %%r < %lld seq { for %%k < %lld seq {\n", (long long)b->rounds[kernel],
               steps);
    str_printf(s, "      for %%i1 < %u unroll { for %%j1 < %u vector {\n", sums, n);
    str_printf(s, "        %%a[%%i1,%%j1] = %%a[%%i1,%%j1] + %%x[%%k*%u+%%i1*%u+%%j1]\n", sums * n,
               n);
    str_add(s, "      } }\n    } }\n");
    close_sums(b, s, sums);
    str_add(s, "}\n");
}

/* A tile of `sums` vectors, as products of matrices have them: data from L1, of which each number
 * is spread for TALL vectors of weights, which are read in order. */
static void add_product(const Bench *b, StrBuf *s, int kernel)
{
    uint32_t  n = b->lanes, sums = b->sums, wide = sums / TALL;
    long long steps = b->bytes[kernel] / (4 * TALL * n) / DEPTH;

    str_printf(s, "func @%s kind(kernel) target(\"%s\") (%%x: f32[%lld], ", names[kernel],
               b->t->text, steps * DEPTH * TALL * n);
    str_printf(s, "%%data: f32[%u], %%y: f32[%u,%u] written) {\n", DEPTH * wide, sums, n);
    open_sums(b, s, sums);
    str_printf(s, "    for %%r < %lld seq { for %%k < %lld seq { for %%d < %d seq {\n",
               (long long)b->rounds[kernel], steps, DEPTH);
    str_printf(s, "      for %%i1 < %u unroll { for %%v < %d unroll { for %%j1 < %u vector {\n",
               wide, TALL, n);
    str_printf(s, "        %%a[%%i1*%d+%%v,%%j1] = ", TALL);
    str_printf(s,
               b->t->has_fma ? "fma(%%a[%%i1*%d+%%v,%%j1], %%data[%%d*%u+%%i1], "
                             : "%%a[%%i1*%d+%%v,%%j1] + (%%data[%%d*%u+%%i1] * ",
               TALL, wide);
    str_printf(s, "%%x[((%%k*%d+%%d)*%d+%%v)*%u+%%j1])\n", DEPTH, TALL, n);
    str_add(s, "      } } }\n    } } }\n");
    close_sums(b, s, sums);
    str_add(s, "}\n");
}

static void add_stores(const Bench *b, StrBuf *s, int kernel)
{
    uint32_t  n = b->lanes;
    long long steps = b->bytes[kernel] / (4 * n);

    str_printf(s,
               "func @%s kind(kernel) target(\"%s\") (%%x: f32[%u], %%y: f32[%lld] written) {\n"
               "  for %%r < %lld seq { for %%k < %lld seq { for %%j < %u vector {\n"
               "    %%y[%%k*%u+%%j] = %%x[%%j]\n  } } }\n}\n",
               names[kernel], b->t->text, n, steps * n, (long long)b->rounds[kernel], steps, n, n);
}

static void add_copy(const Bench *b, StrBuf *s)
{
    uint32_t  n = b->lanes;
    long long steps = b->bytes[COPY] / 2 / (4 * n), cells = steps * n;

    str_printf(s,
               "func @copy kind(kernel) target(\"%s\") (%%x: f32[%lld], %%y: f32[%lld] written) {\n"
               "  for %%r < %lld seq { for %%k < %lld seq { for %%j < %u vector {\n"
               "    %%y[%%k*%u+%%j] = %%x[%%k*%u+%%j] * 0.5\n  } } }\n}\n",
               b->t->text, cells, cells, (long long)b->rounds[COPY], steps, n, n, n);
}

static bool from_memory(int kernel)
{
    return kernel == READ_MEMORY || kernel == PRODUCT_MEMORY || kernel == STORE_MEMORY;
}

/* Half of a cache is read, or of what is left of L3 beside L2; of memory what no cache holds. */
static void choose_sizes(Bench *b, const Machine *m)
{
    enum { LEAST = 1 << 16, MOST_MEMORY = 192 << 20, RUN_BYTES = 4 << 20, PIECE = 1 << 20 };
    int64_t l3 = m->l3 / 4 > 4 * m->l2   ? 4 * m->l2 /* others have L3 too */
                 : m->l3 / 4 > 2 * m->l2 ? m->l3 / 4
                                         : (m->l2 + m->l3) / 2;
    int64_t memory = 4 * m->l3 > MOST_MEMORY ? MOST_MEMORY : 4 * m->l3;

    b->block = memory < LEAST ? LEAST : memory;

    b->bytes[READ_L1] = m->l1 / 2;
    b->bytes[READ_L2] = m->l2 / 2;
    b->bytes[READ_L3] = l3;
    b->bytes[READ_MEMORY] = b->block < PIECE ? b->block : PIECE;
    b->bytes[COPY] = m->l2 / 2;
    for (int i = PRODUCT_L1; i <= PRODUCT_MEMORY; i++)
        b->bytes[i] = b->bytes[READ_L1 + i - PRODUCT_L1];
    for (int i = STORE_L2; i <= STORE_MEMORY; i++)
        b->bytes[i] = b->bytes[READ_L2 + i - STORE_L2];
    for (int i = READ_L1; i < KERNELS; i++) {
        bool    product = i >= PRODUCT_L1 && i <= PRODUCT_MEMORY;
        int64_t block = 4 * (int64_t)(product ? DEPTH * TALL : b->sums * 2) * b->lanes;

        b->bytes[i] = b->bytes[i] < block ? block : b->bytes[i] / block * block;
        b->rounds[i] =
            from_memory(i) ? 1 : ceil_div(product ? RUN_BYTES / 4 : RUN_BYTES, b->bytes[i]);
    }
}

static bool make_kernels(Bench *b)
{
    const Backend *backend = b->t->backend;
    PassOptions    o = {.passes = "flatten,unroll,vectorize,promote", .jobs = 1};
    StrBuf         s = strbuf(b->c->arena);

    add_sums(b, &s, "clock", b->sums, true);
    add_sums(b, &s, "peak", b->sums, false);
    add_sums(b, &s, "chain", 1, false);
    for (int i = READ_L1; i <= READ_MEMORY; i++)
        add_read(b, &s, i);
    for (int i = PRODUCT_L1; i <= PRODUCT_MEMORY; i++)
        add_product(b, &s, i);
    for (int i = STORE_L2; i <= STORE_MEMORY; i++)
        add_stores(b, &s, i);
    add_copy(b, &s);
    const TirModule *m = tir_parse(b->c, "measure", (Bytes){(const uint8_t *)s.at, s.n});
    if (!m || !(m = run_tir_passes(b->c, m, &o, TIR_TO_BOTH)) ||
        !(b->jit = backend->jit(b->c, m, b->t)))
        return false;
    for (int i = 0; i < KERNELS; i++) {
        void *sym = backend->jit_symbol(b->jit, names[i]);

        if (!sym)
            BUG("a kernel was lost");
        memcpy(&b->run[i], &sym, sizeof sym);
    }
    return true;
}

/* ---- runs --------------------------------------------------------------------------------------- */

/* The piece of a block that no cache holds, behind what others touch again and again; what a
 * product reads lies half a block from what is only read. */
static float *piece(const Bench *b, float *x, int kernel, int round)
{
    int64_t pieces = b->block / b->bytes[kernel];

    return x + b->bytes[READ_L3] / 4 +
           (round + (kernel == PRODUCT_MEMORY ? pieces / 2 : 0)) % pieces * (b->bytes[kernel] / 4);
}

static void run_one(Bench *b, int kernel, int round)
{
    int32_t *ints = (int32_t *)b->memory;                           /* a line */
    float   *y = b->memory + 16, *data = y + 64 * (size_t)b->lanes; /* of at most 64 vectors */
    float   *x = data + DATA;
    float   *at = from_memory(kernel) ? piece(b, x, kernel, round) : x;
    size_t   half = (size_t)b->bytes[COPY] / 8;
    void    *sums[4] = {x, ints, y, ints + 2}, *reads[2] = {at, y}, *product[3] = {at, data, y},
         *stores[2] = {y, at}, *copy[2] = {x, x + half};
    void *const *args = kernel <= CHAIN            ? sums
                        : kernel <= READ_MEMORY    ? reads
                        : kernel <= PRODUCT_MEMORY ? product
                        : kernel == COPY           ? copy
                                                   : stores;

    double from = session_now();
    b->run[kernel](args, NULL);
    double ns = (session_now() - from) * 1e9;

    if (!b->least[kernel] || ns < b->least[kernel])
        b->least[kernel] = ns;
}

static bool run_kernels(Bench *b)
{
    size_t floats = (size_t)b->block / 4;

    for (int i = READ_L1; i < KERNELS; i++)
        floats = (size_t)b->bytes[i] / 4 > floats ? (size_t)b->bytes[i] / 4 : floats;
    floats += (size_t)b->bytes[READ_L3] / 4 + 64 * (size_t)b->lanes + DATA + 64;
    if (!(b->memory = aligned_alloc(64, (floats * 4 + 63) / 64 * 64)))
        return diag_error(b->driver->diags, E_IO, NO_LOC, "there is no memory to measure");
    for (size_t i = 0; i < floats; i++)
        b->memory[i] = 0.5f;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < STORE_L2; i++)
            run_one(b, i, round);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = STORE_L2; i < KERNELS; i++)
            run_one(b, i, round);
    return true;
}

/* ---- threads ------------------------------------------------------------------------------------ */

/* Where others hold the second processor no thread comes at hand: what takes longer than a thread
 * that sleeps takes to wake says nothing. */
enum { MEETINGS = 64, LAUNCHES = 20000, ASLEEP_NS = 20000 };
#define THREADS_SECONDS 1.0

typedef struct {
    tvmrt_pool *pool;
    bool        meet;
    uint32_t    came;  /* parts of the last launch */
    double      least; /* nanoseconds of the meetings */
} Gang;

static void part_runs(void *ctx, uint32_t part, uint32_t parts)
{
    Gang  *g = ctx;
    double from;

    if (part == 0)
        g->came = parts;
    if (parts < 2 || !g->meet)
        return;
    tvmrt_barrier(g->pool, part);
    from = session_now();
    for (int i = 0; i < MEETINGS; i++)
        tvmrt_barrier(g->pool, part);
    if (part == 0) {
        double ns = (session_now() - from) * 1e9 / MEETINGS;

        g->least = !g->least || ns < g->least ? ns : g->least;
    }
}

/* Two threads, as the estimates of machine/threads.c are about. */
static void run_threads(Bench *b)
{
    size_t      bytes = tvmrt_pool_bytes(2);
    void       *memory = tvmrt_cpu_count() > 1 ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
    tvmrt_pool *pool = memory ? tvmrt_pool_new(memory, bytes, 2) : NULL;
    Gang        g = {pool, true, 0, 0};

    double end = session_now() + THREADS_SECONDS;

    for (int i = 0; pool && i < LAUNCHES && session_now() < end; i++) {
        double from = session_now();
        g.meet = i % 2;
        tvmrt_launch(pool, part_runs, &g, 2);
        double ns = (session_now() - from) * 1e9;
        if (!g.meet && g.came == 2 && (!b->launch_ns || ns < b->launch_ns))
            b->launch_ns = ns;
    }
    if (b->launch_ns > ASLEEP_NS)
        b->launch_ns = 0;
    b->sync_ns = b->launch_ns ? g.least : 0;
    tvmrt_pool_free(pool);
    free(memory);
}

/* ---- what it says ------------------------------------------------------------------------------- */

static void set(Machine *m, FigureId figure, double v)
{
    const Figure *f = &figure_table[figure];
    double        scale = 1;

    if (!(v > 0))
        return;
    while (!f->whole && v * scale < 100) /* three digits */
        scale *= 10;
    v = round(v * scale) / scale;
    figure_set(m, figure, v < f->least ? f->least : v > f->most ? f->most : v, FROM_FILE);
}

/* Of what the units could do, what kernels of usual sizes reach; macs_ns of machine.def is that of
 * a Zen 4, of whose 77 a nanosecond they reach 50. */
#define USUAL_SHARE 0.65

/* What a product takes longer where its weights come from a level of which reading them alone takes
 * so long, of the shorter of that and its own time; all for a byte. */
static double shows(double product, double reading, double both)
{
    double more = both - fmax(product, reading), share = more / fmin(product, reading);

    return share < 0.01 ? 0.01 : share;
}

static void conclude(const Bench *b, const Machine *known, Machine *m)
{
    double ghz = (double)STEPS * LINKS / b->least[CLOCK];
    double sums = (double)STEPS * b->sums;     /* multiply-adds of vectors */
    double rate = sums / b->least[PEAK] / ghz; /* a cycle */
    double vector = 4.0 * b->lanes, units = rate < 0.75 ? 0.5 : rate < 1.5 ? 1 : 2;
    double per_ns[KERNELS];

    for (int i = READ_L1; i < KERNELS; i++)
        per_ns[i] = (double)(b->bytes[i] * b->rounds[i]) / b->least[i];
    set(m, FIGURE_ghz, ghz);
    set(m, FIGURE_fma_bytes, units * vector);
    /* One sum alone leaves a higher clock: a fraction of a cycle is none of the units'. */
    set(m, FIGURE_latency, round(b->least[CHAIN] * ghz / STEPS));
    set(m, FIGURE_loads, round(2 * per_ns[READ_L1] / ghz / vector) / 2);
    set(m, FIGURE_l1, (double)known->l1);
    set(m, FIGURE_l2, (double)known->l2);
    set(m, FIGURE_l3, (double)known->l3);
    set(m, FIGURE_l2_rate, per_ns[READ_L2] / ghz);
    set(m, FIGURE_l3_rate, per_ns[READ_L3] / ghz);
    set(m, FIGURE_memory_rate, per_ns[READ_MEMORY] / ghz);
    for (int i = 0; i < 3; i++)
        set(m, (FigureId[]){FIGURE_l2_shows, FIGURE_l3_shows, FIGURE_memory_shows}[i],
            shows(1 / per_ns[PRODUCT_L1], 1 / per_ns[READ_L2 + i], 1 / per_ns[PRODUCT_L2 + i]));
    set(m, FIGURE_l2_store, per_ns[STORE_L2] / ghz);
    set(m, FIGURE_l3_store, per_ns[STORE_L3] / ghz);
    set(m, FIGURE_memory_store, per_ns[STORE_MEMORY] / ghz);
    set(m, FIGURE_macs_ns, USUAL_SHARE * b->lanes * sums / b->least[PEAK]);
    set(m, FIGURE_stream_ns, per_ns[COPY]);
    set(m, FIGURE_cores, (double)tvmrt_cpu_count());
    set(m, FIGURE_sync_ns, b->sync_ns);
    set(m, FIGURE_launch_ns, b->launch_ns);
}

bool measure_machine(Driver *driver, const Target *t, Machine *out)
{
    Machine known = machine_of(t);
    Bench   b = {.driver = driver,
                 .c = driver->c,
                 .t = t,
                 .lanes = t->vector_bytes / 4 ? t->vector_bytes / 4 : 1,
                 .sums = known.regs > 16 ? 24 : 12};
    bool    ok;

    choose_sizes(&b, &known);
    ok = make_kernels(&b) && run_kernels(&b);
    if (ok) {
        run_threads(&b);
        conclude(&b, &known, out);
    }
    if (b.jit)
        t->backend->jit_free(b.jit);
    free(b.memory);
    return ok;
}
