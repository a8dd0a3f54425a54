/* The LLVM backend against the interpreter: flat functions, written by hand and at random, give the
 * same bits compiled and interpreted; objects come out for every architecture; a plan keeps the
 * promises of include/tvmcc/abi.h; target strings are understood or refused. */
#include "backends/backend.h"
#include "ir/scalar.h"
#include "ir/tir/intrin.h"
#include "tests/unit/context.h"

#include <math.h>
#include <stdlib.h>

static const Target *target(const char *text)
{
    const Target *t = backend_llvm.parse_target(c, text);

    CHECK(t != NULL);
    return t;
}

/* ---- small makers ------------------------------------------------------------------------------ */

static const Idx *num(int64_t v)
{
    return idx_const(c->arith, v);
}

static const Idx *var(const Atom *a)
{
    return idx_atom(c->arith, a);
}

static const Idx *times(const Idx *x, int64_t k)
{
    return idx_mulc(c->arith, x, k);
}

static const Idx *plus(const Idx *x, const Idx *y)
{
    return idx_add(c->arith, x, y);
}

static const Buffer *buf(const char *name, DType t, int64_t n)
{
    const Idx *e = num(n);

    return buffer_new(c, name, t, SCOPE_ARENA, 1, &e);
}

static const Buffer *reg(const char *name, DType t)
{
    return buffer_new(c, name, t, SCOPE_REG, 0, NULL);
}

static const Prim *load(const Buffer *b, const Idx *at)
{
    return prim_load(c, b, &at);
}

static const Prim *loadv(const Buffer *b, const Idx *at, uint16_t lanes)
{
    return lanes == 1 ? load(b, at) : prim_loadv(c, b, &at, lanes, NULL);
}

static const Stmt *store(const Buffer *b, const Idx *at, const Prim *v)
{
    return v->dtype.lanes > 1 ? stmt_storev(c, b, &at, v, NULL) : stmt_store(c, b, &at, v);
}

static const Stmt *set(const Buffer *b, const Prim *v)
{
    return stmt_store(c, b, NULL, v);
}

static const Stmt *loop(const Atom *v, const Idx *lo, const Idx *n, const Stmt *body)
{
    LoopData l = {.var = v, .lo = lo, .extent = n, .kind = LOOP_SPATIAL};

    return stmt_for(c, l, body, NO_LOC);
}

static const Stmt *seq(uint32_t n, const Stmt **kids)
{
    return stmt_seq(c, n, kids);
}

/* All parameters but the last are read only. */
static const Func *func(const char *name, FuncKind kind, uint32_t n, const Buffer *const *bufs,
                        const Stmt *body)
{
    Param *p = NEW_ARRAY(arena, Param, n + 1);
    Func   f = {.name = intern(c->strings, name), .kind = kind, .nparams = n, .params = p};

    for (uint32_t i = 0; i < n; i++)
        p[i] = (Param){.buffer = bufs[i], .written = i + 1 == n};
    f.body = body;
    return func_new(c, f);
}

/* ---- compiled against interpreted ------------------------------------------------------------------ */

static uint64_t seed = 88172645463325252ull;

static uint64_t random_bits(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static uint32_t below(uint32_t n)
{
    return (uint32_t)(random_bits() >> 33) % n;
}

/* Ordinary values, edges, infinities and NaN. */
static void fill(DType t, void *p, int64_t n)
{
    static const double edges[] = {
        0.0,   -0.0,  1.0,   -1.0,   0.5,    2.5,          3.5,     -2.5,   1e-40,    65504,
        65520, 1e30,  -1e30, 300,    -300,   2147483648.0, 1e-7,    6.1e-5, INFINITY, -INFINITY,
        NAN,   127.5, 255.5, -128.5, 9.3e18, 1.9e19,       65519.9, 5.9e-8, -5.9e-8,  3.0};
    uint8_t *at = p;

    for (int64_t i = 0; i < n; i++, at += t.bits / 8) {
        uint64_t r = random_bits();

        if (dtype_is_bool(t))
            *at = r & 1;
        else if (!dtype_is_float(t))
            dtype_put_i(t, at, below(3) ? (int64_t)(r >> 60) - 8 : (int64_t)r);
        else if (below(3) == 0)
            dtype_put_f(t, at, edges[below(COUNT(edges))]);
        else
            dtype_put_f(t, at, ((double)(r >> 11) / (double)(1ull << 53) - 0.5) * 16);
    }
}

/* Equal bits; any NaN equals any other. */
static bool same_cells(DType t, const void *a, const void *b, int64_t n, int64_t *where)
{
    const uint8_t *x = a, *y = b;
    uint32_t       size = t.bits / 8;

    for (int64_t i = 0; i < n; i++, x += size, y += size) {
        if (!memcmp(x, y, size))
            continue;
        if (dtype_is_float(t) && isnan(dtype_get_f(t, x)) && isnan(dtype_get_f(t, y)))
            continue;
        *where = i;
        return false;
    }
    return true;
}

/* Runs the last function of m both ways on the same random input; out is the last buffer. */
static void compare(const Target *t, const TirModule *m, uint32_t ns, const int64_t *scalars,
                    const char *what)
{
    const Func *f = m->funcs[m->nfuncs - 1];
    void       *a[16], *b[16];
    uint32_t    n = 0;
    Jit        *j = backend_llvm.jit(c, m, t);
    void (*code)(void *const *, const int64_t *);

    CHECK(j != NULL);
    if (!j)
        return;
    *(void **)&code = backend_llvm.jit_symbol(j, f->name);
    CHECK(code != NULL);
    if (!code)
        return;
    for (uint32_t i = 0; i < f->nparams; i++) {
        const Buffer *p = f->params[i].buffer;
        int64_t       elems, origin;
        uint32_t      size;

        if (!p)
            continue;
        CHECK(buffer_size(c, p, &elems, &origin));
        size = dtype_bytes(p->dtype);
        a[n] = arena_alloc(arena, (size_t)elems * size + 64);
        b[n] = arena_alloc(arena, (size_t)elems * size + 64);
        fill(p->dtype, a[n], elems);
        memcpy(b[n], a[n], (size_t)elems * size);
        a[n] = (char *)a[n] + origin * size;
        b[n] = (char *)b[n] + origin * size;
        n++;
    }
    CHECK(tir_eval(c, m, f, n, a, ns, scalars));
    code(b, scalars);
    n = 0;
    for (uint32_t i = 0; i < f->nparams; i++) {
        const Buffer *p = f->params[i].buffer;
        int64_t       elems, origin, at;

        if (!p)
            continue;
        buffer_size(c, p, &elems, &origin);
        if (!same_cells(p->dtype, (char *)a[n] - origin * dtype_bytes(p->dtype),
                        (char *)b[n] - origin * dtype_bytes(p->dtype), elems, &at)) {
            const uint8_t *x = (uint8_t *)a[n] + at * dtype_bytes(p->dtype);
            const uint8_t *y = (uint8_t *)b[n] + at * dtype_bytes(p->dtype);
            StrBuf         text = strbuf(arena);

            printf("%s: %%%s[%lld] of %s: interpreted %.17g %lld, compiled %.17g %lld\n", what,
                   p->name, (long long)at, dtype_text(c, p->dtype), dtype_get_f(p->dtype, x),
                   (long long)dtype_get_i(p->dtype, x), dtype_get_f(p->dtype, y),
                   (long long)dtype_get_i(p->dtype, y));
            func_print(c, f, &text);
            printf("%s\n", text.at);
            CHECK(!"equal bits");
        }
        n++;
    }
    backend_llvm.jit_free(j);
}

static void compare1(const Target *t, const Func *f, const char *what)
{
    compare(t, tirmod_new(c, 1, &f), 0, NULL, what);
}

/* out[i..] = value(in0[i..], in1[i..], in2[i..]) over n cells, `lanes` at a time. */
typedef const Prim *MakePrim(const Prim *const *in, const Idx *at, void *user);

static const Func *elementwise(DType in, DType out, uint16_t lanes, MakePrim *make, void *user)
{
    enum { N = 64 };
    const Buffer *b[4] = {buf("x", in, N), buf("y", in, N), buf("z", in, N), buf("out", out, N)};
    const Atom   *i = atom_var(c->arith, "i", 0, N / lanes - 1);
    const Idx    *at = times(var(i), lanes);
    const Prim   *x[3];

    for (int k = 0; k < 3; k++)
        x[k] = loadv(b[k], at, lanes);
    return func("f", FUNC_KERNEL, 4, b,
                loop(i, num(0), num(N / lanes), store(b[3], at, make(x, at, user))));
}

/* ---- hand-made functions ---------------------------------------------------------------------------- */

static const Prim *make_axpy(const Prim *const *in, const Idx *at, void *user)
{
    (void)at;
    (void)user;
    return prim_fma(c, in[0], in[1], in[2]);
}

static void test_vectors(void)
{
    static const uint16_t lanes[] = {1, 4, 8, 16};

    begin();
    for (size_t k = 0; k < COUNT(lanes); k++) {
        compare1(target("llvm -mcpu=native"),
                 elementwise(DT_F32, DT_F32, lanes[k], make_axpy, NULL), "fma f32");
        compare1(target("llvm -mcpu=native"),
                 elementwise(DT_F64, DT_F64, lanes[k], make_axpy, NULL), "fma f64");
        compare1(target("llvm"), elementwise(DT_I32, DT_I32, lanes[k], make_axpy, NULL), "fma i32");
    }
    end();
}

/* out[i..] += dot4 of bytes; four of x for all lanes, or four for each. */
static const Func *dot4_func(DType ta, DType tb, uint16_t lanes, bool spread, bool extremes)
{
    enum { N = 240 };
    const Buffer *b[3] = {buf("x", ta, 4 * N), buf("y", tb, 4 * N), buf("out", DT_I32, N)};
    const Atom   *i = atom_var(c->arith, "i", 0, N / lanes - 1);
    const Idx    *at = times(var(i), lanes), *four = times(at, 4);
    uint16_t      wide = (uint16_t)(4 * lanes);
    const Prim   *x = loadv(b[0], four, spread ? 4 : wide), *y = loadv(b[1], four, wide);
    const Intrin *dot4 = intrin_find(c, "dot4", 2, (DType[]){ta, tb});

    if (extremes) {
        x = prim_num(c, dtype_lanes(ta, wide), dtype_max(ta));
        y = prim_num(c, dtype_lanes(tb, wide), dtype_min(tb));
    }
    return func("f", FUNC_KERNEL, 3, b,
                loop(i, num(0), num(N / lanes),
                     store(b[2], at,
                           prim_intrin(c, dot4, (const Prim *[]){x, y, loadv(b[2], at, lanes)}))));
}

/* With the instruction, by its parts, in any register; 240 is a multiple of all these lanes. */
static void test_dot4(void)
{
    static const uint16_t    lanes[] = {1, 3, 4, 5, 8, 16, 24};
    static const char *const targets[] = {"llvm -mcpu=native",
                                          "llvm -mcpu=native -mattr=-avx512vnni",
                                          "llvm -mcpu=native -mattr=-avx512f", "llvm"};
    static const struct {
        DType a, b;
    } types[] = {{DT_U8, DT_I8}, {DT_I8, DT_U8}, {DT_I8, DT_I8}, {DT_U8, DT_U8}};

    for (size_t t = 0; t < COUNT(targets); t++) {
        begin();
        /* "-avx512f" is a feature of x86 only; there the others are too */
        if (t && !strstr(target("llvm")->triple, "x86")) {
            end();
            break;
        }
        const Target *cpu = target(targets[t]);
        for (size_t i = 0; cpu && i < COUNT(types) * COUNT(lanes) * 3; i++) {
            size_t      k = i / 3 / COUNT(lanes), l = i / 3 % COUNT(lanes);
            const Func *f = dot4_func(types[k].a, types[k].b, lanes[l], i % 3 == 1, i % 3 == 2);

            compare1(cpu, f, arena_printf(arena, "dot4 of %zu, %u lanes", k, lanes[l]));
        }
        end();
    }
}

/* out[i..] = table[bytes of x, or every other of them, as positions of 0 .. 255]. */
static const Func *lookup_func(DType t, uint16_t lanes, int how)
{
    enum { N = 240 };
    const Buffer *b[3] = {buf("table", DT_I8, 256), buf("x", t, 2 * N), buf("out", DT_I8, N)};
    const Atom   *i = atom_var(c->arith, "i", 0, N / lanes - 1);
    const Prim   *cell[64];

    for (uint16_t k = 0; k < lanes; k++) {
        const Idx *at = times(plus(times(var(i), lanes), num(k)), how == 1 ? 2 : 1);
        const Idx *byte = idx_load(c->arith, load(b[1], at), -128, how == 2 ? 127 : 255);

        at = how == 2 ? plus(byte, num(128)) : idx_modc(c->arith, byte, 256);
        cell[k] = load(b[0], at);
    }
    return func("f", FUNC_KERNEL, 3, b,
                loop(i, num(0), num(N / lanes),
                     store(b[2], times(var(i), lanes), prim_vec(c, lanes, cell))));
}

/* With the table in registers of any size, and by a load for each cell. */
static void test_lookup(void)
{
    static const uint16_t    lanes[] = {3, 4, 8, 16, 20, 30, 40, 48, 60};
    static const char *const targets[] = {"llvm -mcpu=native", "llvm", "llvm -mcpu=x86-64-v3",
                                          "llvm -mcpu=native -mattr=-avx512vbmi"};

    for (size_t k = 0; k < COUNT(targets); k++) {
        begin();
        /* others are of x86 only, and wider vectors than this machine's do not run */
        bool x86 = strstr(target("llvm")->triple, "x86") != NULL;
        if (k > 1 && (!x86 || target("llvm -mcpu=native")->vector_bytes < (k == 2 ? 32 : 64))) {
            end();
            break;
        }
        for (size_t i = 0; i < 3 * COUNT(lanes); i++) {
            const Func *f = lookup_func(i % 3 == 2 ? DT_I8
                                        : i % 2    ? DT_U8
                                                   : DT_I8,
                                        lanes[i / 3], (int)(i % 3));

            compare1(target(targets[k]), f, arena_printf(arena, "lookup of %u", lanes[i / 3]));
        }
        end();
    }
}

/* c[4,16] += a[4,k] * b[k,16] with accumulators in registers, as a tile called from a kernel. */
static void test_tile(void)
{
    enum { P = 4, V = 2, K = 9, L = 8, TILES = 3 };
    const Buffer *a, *b, *o, *ta, *tb, *to, *acc[P][V];
    const Atom   *k, *t, *flag;
    const Stmt   *s[64];
    uint32_t      n = 0;

    begin();
    ta = buf("a", DT_F32, P * K);
    tb = buf("b", DT_F32, K * V * L);
    to = buf("o", DT_F32, P * V * L);
    flag = atom_var(c->arith, "first", 0, 1);
    k = atom_var(c->arith, "k", 0, K - 1);
    for (int p = 0; p < P; p++)
        for (int v = 0; v < V; v++) {
            const Idx *at = num((p * V + v) * L);

            acc[p][v] = reg("acc", dtype_lanes(DT_F32, L));
            s[n++] = stmt_if(
                c, pred_prim(c, pred_and(c->arith, arena, PRED_TRUE, plus(var(flag), num(-1)))),
                set(acc[p][v], prim_splat(c, prim_float(c, DT_F32, 0.25), L)),
                set(acc[p][v], loadv(to, at, L)));
        }
    const Stmt *inner[P * V];
    for (int p = 0; p < P; p++)
        for (int v = 0; v < V; v++) {
            const Prim *x = prim_splat(c, load(ta, plus(var(k), num(p * K))), L);
            const Prim *w = loadv(tb, plus(times(var(k), V * L), num(v * L)), L);

            inner[p * V + v] = set(acc[p][v], prim_fma(c, x, w, prim_load(c, acc[p][v], NULL)));
        }
    s[n++] = loop(k, num(0), num(K), seq(P * V, inner));
    for (int p = 0; p < P; p++)
        for (int v = 0; v < V; v++) {
            const Idx  *at = num((p * V + v) * L);
            const Prim *x = prim_load(c, acc[p][v], NULL);
            const Prim *zero = prim_splat(c, prim_float(c, DT_F32, 0), L);

            s[n++] = store(to, at, prim_select(c, prim_lt(c, x, zero), zero, x));
        }
    const Stmt *body = seq(n, s);
    for (int p = 0; p < P; p++)
        for (int v = 0; v < V; v++)
            body = stmt_alloc(c, acc[p][v], body);
    Param tp[4] = {{ta, NULL, false}, {tb, NULL, false}, {to, NULL, true}, {NULL, flag, false}};
    Func  tile = {.name = "tile.1", .kind = FUNC_TILE, .nparams = 4, .params = tp, .body = body};

    a = buf("a", DT_F32, P * K * TILES);
    b = buf("b", DT_F32, K * V * L);
    o = buf("o", DT_F32, P * V * L * TILES);
    t = atom_var(c->arith, "t", 0, TILES - 1);
    Arg           args[4] = {{a, times(var(t), P * K * 4), NULL},
                             {b, num(0), NULL},
                             {o, times(var(t), P * V * L * 4), NULL},
                             {NULL, NULL, idx_min(c->arith, var(t), num(1))}};
    const Buffer *kb[3] = {a, b, o};
    const Func   *fs[2];
    fs[0] = func_new(c, tile);
    fs[1] = func("kernel", FUNC_KERNEL, 3, kb,
                 loop(t, num(0), num(TILES), stmt_call(c, "tile.1", 4, args, false, NO_LOC)));
    compare(target("llvm -mcpu=native"), tirmod_new(c, 2, fs), 0, NULL, "tile");
    end();
}

/* Long formulas of neighbouring stores are computed by turns, but what one stores another may read:
 * independent ones, one that reads y[0], one that reads a register that another one sets. */
static void test_woven(void)
{
    enum { L = 4, N = 6 };
    static const char *const targets[] = {"llvm -mcpu=native", "llvm -mcpu=x86-64-v4",
                                          "llvm -mcpu=x86-64-v3"};

    for (size_t t = 0; t < COUNT(targets); t++) {
        begin();
        if (t && !strstr(target("llvm")->triple, "x86")) {
            end();
            break;
        }
        const Buffer *b[2] = {buf("x", DT_F32, L * N), buf("y", DT_F32, L * N)};
        const Buffer *acc = reg("acc", dtype_lanes(DT_F32, L));
        const Stmt   *s[2 * N];
        uint32_t      n = 0;

        for (int i = 0; i < N; i++) {
            const Prim *x = i == 3   ? loadv(b[1], num(0), L)
                            : i == 5 ? prim_load(c, acc, NULL)
                                     : loadv(b[0], num(i * L), L);
            const Prim *v = x, *zero = prim_splat(c, prim_float(c, DT_F32, 0), L);

            for (int k = 0; k < 5; k++) {
                v = prim_mul(c, prim_add(c, v, x), prim_splat(c, prim_float(c, DT_F32, .5 + k), L));
                v = prim_select(c, prim_lt(c, v, zero), prim_sub(c, zero, v), v);
            }
            s[n++] = i == 4 ? set(acc, v) : store(b[1], num(i * L), v);
        }
        const Target *cpu = target(targets[t]), *here = target("llvm -mcpu=native");
        if (cpu && here && cpu->vector_bytes <= here->vector_bytes)
            compare1(cpu, func("woven", FUNC_KERNEL, 2, b, stmt_alloc(c, acc, seq(n, s))),
                     targets[t]);
        end();
    }
}

/* Ranges by (tid, nt), division and remainder in indices, a stack buffer, a select around loads. */
static void test_indices(void)
{
    enum { N = 30 };
    const Buffer *x, *y, *tmp;
    const Atom   *tid, *nt, *i;
    const Idx    *from, *to, *e;
    const Prim   *inside;

    begin();
    x = buf("x", DT_I32, N);
    y = buf("y", DT_I32, N);
    e = num(8);
    tmp = buffer_new(c, "tmp", DT_I32, SCOPE_STACK, 1, &e);
    tid = atom_var(c->arith, "tid", 0, 1023);
    nt = atom_var(c->arith, "nt", 1, 1024);
    from = idx_div(c->arith, times(var(tid), N), var(nt));
    to = idx_div(c->arith, times(plus(var(tid), num(1)), N), var(nt));
    i = atom_var(c->arith, "i", 0, N - 1);
    /* x[i-3] where 0 <= i-3 < N, else 7;  y[(i//4)*4 + 3 - i%4 while below N] */
    inside = pred_prim(c, pred_and(c->arith, arena, PRED_TRUE, plus(var(i), num(-3))));
    const Idx  *mod = idx_modc(c->arith, var(i), 8);
    const Stmt *s[3] = {
        store(tmp, mod,
              prim_select(c, inside, load(x, plus(var(i), num(-3))), prim_int(c, DT_I32, 7))),
        store(y, var(i),
              prim_add(c, load(tmp, mod),
                       prim_index(c, DT_I32, idx_divc(c->arith, plus(var(i), num(-11)), 3)))),
    };
    const Idx  *arms = idx_modc(c->arith, var(i), 3);
    const Prim *kids[3] = {load(y, var(i)), prim_int(c, DT_I32, -5), load(x, var(i))};

    s[2] = store(y, var(i), prim_case(c, arms, 3, kids));
    const Stmt *body = stmt_alloc(c, tmp, loop(i, from, idx_sub(c->arith, to, from), seq(3, s)));
    Param       p[4] = {{x, NULL, false}, {y, NULL, true}, {NULL, tid, false}, {NULL, nt, false}};
    Func f = {.name = "ranges", .kind = FUNC_KERNEL, .nparams = 4, .params = p, .body = body};
    const Func *fp = func_new(c, f);

    for (int64_t n = 1; n < 5; n++)
        for (int64_t k = 0; k < n; k++)
            compare(target("llvm"), tirmod_new(c, 1, &fp), 2, (int64_t[]){k, n}, "ranges");
    end();
}

static const Prim *make_gather(const Prim *const *in, const Idx *at, void *user)
{
    const Buffer *table = user;
    const Idx    *k = idx_load(c->arith, prim_and(c, in[0], prim_int(c, DT_I32, 15)), 0, 15);

    (void)at;
    return load(table, k);
}

static void test_loads_in_indices(void)
{
    const Buffer *b[3];
    const Atom   *i;
    const Prim   *in, *v;

    begin();
    b[0] = buf("table", DT_F32, 16);
    b[1] = buf("at", DT_I32, 64);
    b[2] = buf("out", DT_F32, 64);
    i = atom_var(c->arith, "i", 0, 63);
    in = load(b[1], var(i));
    v = make_gather(&in, NULL, (void *)b[0]);
    compare1(target("llvm"),
             func("gather", FUNC_KERNEL, 3, b, loop(i, num(0), num(64), store(b[2], var(i), v))),
             "gather");
    end();
}

/* The last vector masked, and a select whose arms may only read where it holds. */
static void test_masks(void)
{
    enum { N = 21, L = 8 };
    static const char *const targets[] = {"llvm", "llvm -mcpu=native"};
    const Buffer            *b[2];
    const Atom              *i;
    const Idx               *at;
    const Prim              *mask, *lanes;

    begin();
    b[0] = buf("x", DT_F32, N);
    b[1] = buf("y", DT_F32, N);
    i = atom_var(c->arith, "i", 0, 2);
    at = times(var(i), L);
    lanes = prim_ramp(c, dtype_lanes(DT_I32, L), at, L);
    mask = prim_lt(c, lanes, prim_splat(c, prim_int(c, DT_I32, N), L));
    for (size_t k = 0; k < COUNT(targets); k++) {
        const Prim *x = prim_loadv(c, b[0], &at, L, mask);
        const Prim *bare = prim_loadv(c, b[0], &at, L, NULL);
        const Prim *picked = prim_select(c, mask, bare, prim_splat(c, prim_float(c, DT_F32, 2), L));

        compare1(target(targets[k]),
                 func("masked", FUNC_KERNEL, 2, b,
                      loop(i, num(0), num(3), stmt_storev(c, b[1], &at, x, mask))),
                 "masked");
        (void)picked;
    }
    end();
}

/* while (x[0] < 100) x[0] = x[0] * 3 + 1 */
static void test_while(void)
{
    const Buffer *b;
    const Prim   *x;

    begin();
    b = buf("x", DT_U8, 1);
    x = load(b, num(0));
    compare1(target("llvm"),
             func("loop", FUNC_KERNEL, 1, &b,
                  stmt_while(c, prim_lt(c, x, prim_int(c, DT_U8, 100)),
                             store(b, num(0),
                                   prim_add(c, prim_mul(c, x, prim_int(c, DT_U8, 3)),
                                            prim_int(c, DT_U8, 1))))),
             "while");
    end();
}

/* ---- random expressions -------------------------------------------------------------------------------- */

static const DType all_types[] = {DT_BOOL, DT_I8,  DT_I16, DT_I32,  DT_I64, DT_U8, DT_U16,
                                  DT_U32,  DT_U64, DT_F16, DT_BF16, DT_F32, DT_F64};

static bool with_fma;

static const Prim *random_prim(const Prim *const *in, DType t, int depth);

static const Prim *random_bool(const Prim *const *in, DType t, int depth)
{
    const PrimKind kinds[] = {PRIM_EQ, PRIM_NE, PRIM_LT, PRIM_LE};
    const Prim    *a = random_prim(in, t, depth - 1), *b = random_prim(in, t, depth - 1);
    const Prim    *v = prim_bin(c, kinds[below(4)], a, b);

    if (below(4) == 0)
        v = prim_not(c, v);
    return v;
}

static const Prim *random_float(const Prim *const *in, DType t, int depth)
{
    static const MathFn math[] = {MATH_SQRT,  MATH_ABS, MATH_FLOOR, MATH_CEIL,    MATH_TRUNC,
                                  MATH_ROUND, MATH_EXP, MATH_TANH,  MATH_SIGMOID, MATH_SIN};
    const PrimKind      kinds[] = {PRIM_ADD, PRIM_SUB, PRIM_MUL,    PRIM_DIV,
                                   PRIM_MIN, PRIM_MAX, PRIM_MINNUM, PRIM_MAXNUM};
    const Prim         *a = random_prim(in, t, depth - 1), *b = random_prim(in, t, depth - 1);

    switch (below(8)) {
    case 0: return prim_math(c, math[below(COUNT(math))], a, NULL);
    case 1: return prim_select(c, random_bool(in, t, depth - 1), a, b);
    case 2:
        if (with_fma)
            return prim_fma(c, a, b, random_prim(in, t, depth - 1));
        return prim_neg(c, a);
    case 3: return prim_bin(c, PRIM_REM, a, b);
    default: return prim_bin(c, kinds[below(COUNT(kinds))], a, b);
    }
}

static const Prim *random_int(const Prim *const *in, DType t, int depth)
{
    const PrimKind kinds[] = {PRIM_ADD, PRIM_SUB, PRIM_MUL, PRIM_DIV, PRIM_REM, PRIM_MIN,
                              PRIM_MAX, PRIM_AND, PRIM_OR,  PRIM_XOR, PRIM_SHL, PRIM_SHR};
    const Prim    *a = random_prim(in, t, depth - 1), *b = random_prim(in, t, depth - 1);

    switch (below(8)) {
    case 0: return prim_not(c, a);
    case 1: return prim_select(c, random_bool(in, t, depth - 1), a, b);
    case 2: return prim_math(c, MATH_ABS, a, NULL);
    default: return prim_bin(c, kinds[below(COUNT(kinds))], a, b);
    }
}

static const Prim *random_prim(const Prim *const *in, DType t, int depth)
{
    DType other;

    if (depth <= 0 || below(8) == 0) {
        if (below(5))
            return in[below(3)];
        return prim_num(c, t, dtype_is_bool(t) ? below(2) : (double)below(7) - (t.code != DT_UINT));
    }
    if (dtype_is_bool(t)) {
        const PrimKind kinds[] = {PRIM_AND, PRIM_OR, PRIM_XOR};

        return prim_bin(c, kinds[below(3)], random_prim(in, t, depth - 1),
                        random_bool(in, t, depth - 1));
    }
    if (below(6) == 0) { /* there and back through another type */
        other = dtype_lanes(all_types[below(COUNT(all_types))], t.lanes);
        return prim_cast(c, t, prim_cast(c, other, random_prim(in, t, depth - 1)));
    }
    return dtype_is_float(t) ? random_float(in, t, depth) : random_int(in, t, depth);
}

static const Prim *make_random(const Prim *const *in, const Idx *at, void *user)
{
    (void)at;
    return random_prim(in, in[0]->dtype, *(int *)user);
}

static void random_on(const char *text, uint16_t lanes, int rounds)
{
    const Target *t;

    for (size_t k = 0; k < COUNT(all_types); k++)
        for (int r = 0; r < rounds; r++) {
            int depth = 2 + r % 4;

            begin();
            t = target(text);
            with_fma = t->has_fma;
            compare1(t, elementwise(all_types[k], all_types[k], lanes, make_random, &depth), text);
            end();
        }
}

static void test_random(void)
{
    random_on("llvm", 1, 8);
    random_on("llvm", 4, 6);
    random_on("llvm -mcpu=native", 1, 4);
    random_on("llvm -mcpu=native", 8, 8);
}

static const Prim *make_cast(const Prim *const *in, const Idx *at, void *user)
{
    (void)at;
    return prim_cast(c, dtype_lanes(*(DType *)user, in[0]->dtype.lanes), in[0]);
}

static const Prim *make_cast_of_product(const Prim *const *in, const Idx *at, void *user)
{
    (void)at;
    return prim_cast(c, dtype_lanes(*(DType *)user, in[0]->dtype.lanes), prim_mul(c, in[0], in[1]));
}

static const Prim *make_cast_and_back(const Prim *const *in, const Idx *at, void *user)
{
    return prim_cast(c, in[0]->dtype, make_cast_of_product(in, at, user));
}

/* f32 to i64 by shifts, where x86 has no instruction for it; and back, without an i64. */
static void test_wide_casts(void)
{
    static const uint16_t lanes[] = {3, 4, 8, 16, 32};
    DType                 to = DT_I64;

    for (size_t k = 0; k < COUNT(lanes); k++) {
        begin();
        if (strstr(target("llvm")->triple, "x86")) {
            compare1(target("llvm -mcpu=x86-64-v3"),
                     elementwise(DT_F32, to, lanes[k], make_cast, &to), "cast to i64");
            compare1(target("llvm -mcpu=x86-64-v3"),
                     elementwise(DT_F32, to, lanes[k], make_cast_of_product, &to),
                     "cast of products to i64");
            compare1(target("llvm -mcpu=x86-64-v3"),
                     elementwise(DT_F32, DT_F32, lanes[k], make_cast_and_back, &to), "whole part");
        }
        end();
    }
}

static void test_casts(void)
{
    static const char *const targets[] = {"llvm", "llvm -mcpu=native"};

    for (size_t i = 0; i < COUNT(all_types); i++) {
        begin();
        for (size_t k = 0; k < COUNT(all_types); k++) {
            DType to = all_types[k];
            int   way = (int)((i + k) % 2);

            compare1(target(targets[way]),
                     elementwise(all_types[i], to, k % 3 ? 8 : 1, make_cast, &to), "cast");
        }
        end();
    }
}

int main(void)
{
    RUN(test_vectors);
    RUN(test_dot4);
    RUN(test_lookup);
    RUN(test_tile);
    RUN(test_woven);
    RUN(test_indices);
    RUN(test_loads_in_indices);
    RUN(test_masks);
    RUN(test_while);
    RUN(test_casts);
    RUN(test_wide_casts);
    RUN(test_random);
    return check_result();
}
