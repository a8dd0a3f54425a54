/* Nests for tests: small definitions, memory for their buffers, and random lists of steps.  Shared
 * by test_sched.c (the steps) and test_tir_passes.c (what the passes make of the result). */
#ifndef TVMCC_TESTS_NESTS_H
#define TVMCC_TESTS_NESTS_H

#include "ir/sched/sched.h"
#include "tests/unit/check.h"

#include <stdlib.h>

static Arena       *arena;
static Ctx         *c;
static const Target cpu = {
    .text = "llvm", .vector_bytes = 32, .vector_regs = 16, .has_fma = true, .max_threads = 1};

/* ---- definitions -------------------------------------------------------------------------------- */

static inline const Idx *K(int64_t v)
{
    return idx_const(c->arith, v);
}
static inline const Idx *plus(const Idx *a, const Idx *b)
{
    return idx_add(c->arith, a, b);
}
static inline const Idx *times(const Idx *a, int64_t k)
{
    return idx_mulc(c->arith, a, k);
}
static inline const Idx *offset(const Idx *a, int64_t k)
{
    return idx_addc(c->arith, a, k);
}
static inline const Prim *num(double v)
{
    return prim_num(c, DT_F32, v);
}

static inline const Tensor *param(const char *name, bool constant, const Halo *halo, uint32_t n,
                                  const int64_t *dims)
{
    const Type *t = type_tensor_i64(c, DT_F32, n, dims);
    return te_param(c, name, halo ? type_with_halo(c, t, halo) : t, constant, NULL);
}

static inline Axes axes(uint32_t n, const int64_t *dims, const char *const *names)
{
    const Idx *e[8];
    for (uint32_t i = 0; i < n; i++)
        e[i] = K(dims[i]);
    return te_axes(c, n, e, names);
}

static inline const Prim *inside(const Prim *p, const Idx *x, int64_t n)
{
    Pred q = pred_and(c->arith, c->arena, PRED_TRUE, x);
    q = pred_and(c->arith, c->arena, q, idx_sub(c->arith, K(n - 1), x));
    return p ? prim_and(c, p, pred_prim(c, q)) : pred_prim(c, q);
}

static inline const TeFunc *func(const char *name, uint32_t np, const Tensor *const *params,
                                 const Tensor *out)
{
    TeFunc *f = NEW(c->arena, TeFunc);
    *f = (TeFunc){.name = name, .nparams = np, .nouts = 1};
    f->params = arena_dup(c->arena, params, np * sizeof *params);
    f->outs = arena_dup(c->arena, &out, sizeof out);
    return f;
}

typedef struct {
    int64_t c8, o8, h, w;
    bool    halo;
} ConvShape;

/* pad, conv, bias, relu over NCHW8c. */
static inline const TeFunc *conv_relu(ConvShape z)
{
    static const uint32_t one[5] = {0, 0, 1, 1, 0};
    static const Halo     halo = {5, 0.0, one, one};
    int64_t               dd[] = {1, z.c8, z.h, z.w, 8}, wd[] = {z.o8 * 8, z.c8 * 8, 3, 3};
    int64_t               pd[] = {1, z.c8, z.h + 2, z.w + 2, 8}, bd[] = {z.o8 * 8};
    int64_t               od[] = {1, z.o8, z.h, z.w, 8}, rd[] = {z.c8, 3, 3, 8};
    const Tensor         *d = param("d", false, z.halo ? &halo : NULL, 5, dd);
    const Tensor         *w = param("w", true, NULL, 4, wd), *b = param("b", true, NULL, 1, bd);

    Axes          a = axes(5, pd, (const char *[]){"n", "c", "y", "x", "i"});
    const Idx    *y = offset(a.at[2], -1), *x = offset(a.at[3], -1);
    const Prim   *in = inside(inside(NULL, y, z.h), x, z.w);
    const Prim   *v = te_at(c, d, (const Idx *[]){a.at[0], a.at[1], y, x, a.at[4]});
    const Tensor *pad = te_compute(c, "pad", DT_F32, a, prim_select(c, in, v, num(0)));

    a = axes(5, od, (const char *[]){"n", "o", "y", "x", "j"});
    Axes       r = te_raxes(c, 4, rd, (const char *[]){"c", "kh", "kw", "i"});
    const Idx *pi[] = {a.at[0], r.at[0], plus(a.at[2], r.at[1]), plus(a.at[3], r.at[2]), r.at[3]};
    const Idx *wi[] = {plus(times(a.at[1], 8), a.at[4]), plus(times(r.at[0], 8), r.at[3]), r.at[1],
                       r.at[2]};
    const Tensor *conv = te_reduce(c, "conv", DT_F32, a, COMB_SUM, r,
                                   prim_mul(c, te_at(c, pad, pi), te_at(c, w, wi)));
    a = axes(5, od, (const char *[]){"n", "o", "y", "x", "j"});
    const Idx    *bi[] = {plus(times(a.at[1], 8), a.at[4])};
    const Tensor *bias =
        te_compute(c, "bias", DT_F32, a, prim_add(c, te_at(c, conv, a.at), te_at(c, b, bi)));
    a = axes(5, od, (const char *[]){"n", "o", "y", "x", "j"});
    const Tensor *relu =
        te_compute(c, "relu", DT_F32, a, prim_max(c, te_at(c, bias, a.at), num(0)));
    return func("conv_relu", 3, (const Tensor *[]){d, w, b}, relu);
}

/* ---- running ---------------------------------------------------------------------------------------- */

typedef struct {
    void   *base, *at;
    int64_t n, origin;
} Mem;

static inline Mem mem_of(const Buffer *b)
{
    Mem m;
    if (!buffer_size(c, b, &m.n, &m.origin))
        abort();
    uint32_t bytes = dtype_bytes(b->dtype);
    m.base = arena_alloc(c->scratch, (size_t)(m.n ? m.n : 1) * bytes);
    m.at = (char *)m.base + m.origin * bytes;
    return m;
}

static uint64_t        seed;
static inline uint32_t rnd(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

/* Small whole numbers: sums in any order are exact. */
static inline void fill_in(Mem m, uint64_t s)
{
    seed = s;
    for (int64_t i = 0; i < m.n; i++)
        ((float *)m.base)[i] = (float)((int)rnd(9) - 4);
}

/* The interior cells filled, the halo as it says. */
static inline void fill_param(const Buffer *b, Mem m, uint64_t s)
{
    int64_t    at[8] = {0};
    const Idx *stride[8];
    float     *f = m.base;
    seed = s;
    for (int64_t i = 0; i < m.n; i++)
        f[i] = b->halo ? (float)b->halo->value : 1e30f;
    buffer_strides(c, b, stride);
    for (;;) {
        int64_t off = m.origin;
        for (uint32_t d = 0; d < b->ndim; d++)
            off += at[d] * stride[d]->c0;
        f[off] = (float)((int)rnd(9) - 4);
        uint32_t d = b->ndim;
        while (d > 0 && ++at[d - 1] == b->extent[d - 1]->c0)
            at[--d] = 0;
        if (!d)
            return;
    }
}

/* Runs f on inputs made from fixed seeds; repacks what was repacked.  The output's memory. */
static inline Mem run_func(const Func *f, const Func *first, const Sched *s)
{
    void *at[8];
    Mem   out = {0};
    for (uint32_t i = 0; i < f->nparams; i++) {
        const Buffer *b = f->params[i].buffer, *was = first->params[i].buffer;
        Mem           m = mem_of(was);
        fill_param(was, m, 77 + i);
        for (uint32_t k = 0; s && k < s->prepacks.n; k++) {
            if (s->prepacks.at[k].param != i)
                continue;
            Mem packed = mem_of(b);
            fill_in(packed, 5); /* rubbish that must go */
            void *io[2] = {m.at, packed.at};
            CHECK(tir_eval(c, NULL, s->prepacks.at[k].prepack, 2, io, 0, NULL));
            m = packed;
        }
        at[i] = m.at;
        out = m;
    }
    for (int64_t i = 0; i < out.n; i++)
        ((float *)out.base)[i] = -12345;
    bool ok = tir_eval(c, NULL, f, f->nparams, at, 0, NULL);
    if (!ok) {
        StrBuf text = strbuf(c->scratch);
        diag_print(c->diags, DIAG_TEXT, &text);
        printf("%s", text.at);
        diag_drop(c->diags, 0);
    }
    CHECK(ok);
    return out;
}

static inline const char *text_of(const Func *f)
{
    StrBuf s = strbuf(c->scratch);
    func_print(c, f, &s);
    return s.at;
}

static inline const char *steps_of(const Sched *s)
{
    StrBuf t = strbuf(c->scratch);
    sched_print(s, &t);
    return t.at ? t.at : "";
}

static inline bool same_values(const Sched *s, Mem want, Mem got)
{
    if (want.n != got.n)
        return false;
    if (s->exact)
        return !memcmp(want.base, got.base, (size_t)want.n * 4);
    for (int64_t i = 0; i < want.n; i++)
        if (((float *)want.base)[i] != ((float *)got.base)[i])
            return false;
    return true;
}

/* ---- random steps on random definitions ------------------------------------------------------- */

static inline const TeFunc *matmul(int64_t m, int64_t n, int64_t k, int tail)
{
    const Tensor *a = param("a", false, NULL, 2, (int64_t[]){m, k});
    const Tensor *b = param("b", true, NULL, 2, (int64_t[]){k, n});
    const Tensor *e = param("e", false, NULL, 1, (int64_t[]){n});
    Axes          x = axes(2, (int64_t[]){m, n}, (const char *[]){"m", "n"});
    Axes          r = te_raxes(c, 1, &k, (const char *[]){"k"});
    const Prim   *ab = prim_mul(c, te_at(c, a, (const Idx *[]){x.at[0], r.at[0]}),
                                te_at(c, b, (const Idx *[]){r.at[0], x.at[1]}));
    const Tensor *y = te_reduce(c, "mm", DT_F32, x, COMB_SUM, r, ab);
    if (tail > 0) {
        x = axes(2, (int64_t[]){m, n}, (const char *[]){"m", "n"});
        y = te_compute(c, "bias", DT_F32, x, prim_add(c, te_at(c, y, x.at), te_at(c, e, &x.at[1])));
    }
    if (tail > 1) {
        x = axes(2, (int64_t[]){n, m}, (const char *[]){"q", "r"}); /* transposed */
        const Prim *v = te_at(c, y, (const Idx *[]){x.at[1], x.at[0]});
        y = te_compute(c, "turn", DT_F32, x, prim_max(c, v, num(-1)));
    }
    if (tail > 2) { /* flat */
        int64_t mn = m * n;
        x = axes(1, &mn, (const char *[]){"f"});
        const Idx *at[] = {idx_divc(c->arith, x.at[0], m), idx_modc(c->arith, x.at[0], m)};
        y = te_compute(c, "flat", DT_F32, x, prim_sub(c, te_at(c, y, at), num(2)));
    }
    return func("matmul", 3, (const Tensor *[]){a, b, e}, y);
}

static inline const TeFunc *softmax(int64_t m, int64_t n)
{
    const Tensor *a = param("a", false, NULL, 2, (int64_t[]){m, n});
    Axes          x = axes(1, &m, (const char *[]){"i"});
    Axes          r = te_raxes(c, 1, &n, (const char *[]){"j"});
    const Tensor *mx =
        te_reduce(c, "mx", DT_F32, x, COMB_MAX, r, te_at(c, a, (const Idx *[]){x.at[0], r.at[0]}));
    Axes          z = axes(2, (int64_t[]){m, n}, (const char *[]){"i", "j"});
    const Prim   *v = prim_sub(c, te_at(c, a, z.at), te_at(c, mx, z.at));
    const Tensor *ex = te_compute(c, "ex", DT_F32, z, prim_add(c, prim_mul(c, v, v), num(1)));
    x = axes(1, &m, (const char *[]){"i"});
    r = te_raxes(c, 1, &n, (const char *[]){"j"});
    const Tensor *sum = te_reduce(c, "sum", DT_F32, x, COMB_SUM, r,
                                  te_at(c, ex, (const Idx *[]){x.at[0], r.at[0]}));
    z = axes(2, (int64_t[]){m, n}, (const char *[]){"i", "j"});
    const Tensor *out =
        te_compute(c, "out", DT_F32, z, prim_div(c, te_at(c, ex, z.at), te_at(c, sum, z.at)));
    return func("softmax", 1, &a, out);
}

/* Two stencils with zero borders, the second strided, then a sum over rows. */
static inline const TeFunc *stencil(int64_t h, int64_t w, int64_t stride, bool pool)
{
    const Tensor *a = param("a", false, NULL, 2, (int64_t[]){h, w});
    Axes          x = axes(2, (int64_t[]){h, w}, (const char *[]){"y", "x"});
    const Tensor *s = te_compute(c, "pre", DT_F32, x, prim_mul(c, te_at(c, a, x.at), num(2)));
    x = axes(2, (int64_t[]){h + 2, w + 2}, (const char *[]){"y", "x"});
    const Idx    *at[2] = {offset(x.at[0], -1), offset(x.at[1], -1)};
    const Prim   *in = inside(inside(NULL, at[0], h), at[1], w);
    const Tensor *pad =
        te_compute(c, "pad", DT_F32, x, prim_select(c, in, te_at(c, s, at), num(0)));
    int64_t h2 = (h - 1) / stride + 1, w2 = (w - 1) / stride + 1;
    x = axes(2, (int64_t[]){h2, w2}, (const char *[]){"y", "x"});
    Axes          r = te_raxes(c, 2, (int64_t[]){3, 3}, (const char *[]){"u", "v"});
    const Tensor *st = te_reduce(c, "st", DT_F32, x, pool ? COMB_MAX : COMB_SUM, r,
                                 te_at(c, pad,
                                       (const Idx *[]){plus(times(x.at[0], stride), r.at[0]),
                                                       plus(times(x.at[1], stride), r.at[1])}));
    x = axes(2, (int64_t[]){h2, w2}, (const char *[]){"y", "x"});
    const Prim   *v = te_at(c, st, x.at);
    const Tensor *post = te_compute(c, "post", DT_F32, x, prim_add(c, prim_mul(c, v, v), num(1)));
    x = axes(1, &w2, (const char *[]){"x"});
    r = te_raxes(c, 1, &h2, (const char *[]){"y"});
    const Tensor *cols = te_reduce(c, "cols", DT_F32, x, COMB_SUM, r,
                                   te_at(c, post, (const Idx *[]){r.at[0], x.at[0]}));
    return func("stencil", 1, &a, pool ? post : cols);
}

/* A tensor with two readers, a slice, a row maximum, a broadcast, a strided flattening. */
static inline const TeFunc *diamond(int64_t m, int64_t n)
{
    const Tensor *a = param("a", false, NULL, 2, (int64_t[]){m + 1, n});
    Axes          x = axes(2, (int64_t[]){m + 1, n}, (const char *[]){"i", "j"});
    const Tensor *t = te_compute(c, "t", DT_F32, x, prim_mul(c, te_at(c, a, x.at), num(2)));
    x = axes(2, (int64_t[]){m, n}, (const char *[]){"i", "j"});
    const Idx    *at[] = {offset(x.at[0], 1), x.at[1]};
    const Tensor *u = te_compute(c, "u", DT_F32, x, prim_add(c, te_at(c, t, at), num(1)));
    x = axes(2, (int64_t[]){m, n}, (const char *[]){"i", "j"});
    const Tensor *v =
        te_compute(c, "v", DT_F32, x, prim_mul(c, te_at(c, t, x.at), te_at(c, u, x.at)));
    x = axes(1, &m, (const char *[]){"i"});
    Axes          r = te_raxes(c, 1, &n, (const char *[]){"j"});
    const Tensor *top =
        te_reduce(c, "top", DT_F32, x, COMB_MAX, r, te_at(c, v, (const Idx *[]){x.at[0], r.at[0]}));
    x = axes(2, (int64_t[]){m, n}, (const char *[]){"i", "j"});
    const Tensor *z =
        te_compute(c, "z", DT_F32, x, prim_sub(c, te_at(c, v, x.at), te_at(c, top, x.at)));
    int64_t half = (m * n + 1) / 2;
    x = axes(1, &half, (const char *[]){"f"});
    const Idx *f = times(x.at[0], 2), *zi[] = {idx_divc(c->arith, f, n), idx_modc(c->arith, f, n)};
    return func("diamond", 1, &a, te_compute(c, "half", DT_F32, x, te_at(c, z, zi)));
}

/* A recurrent cell of n units for d directions and T rounds: a product, two tensors that are
 * carried, results in the order of the rounds and, for the second direction, backwards; its input
 * is made before, and what it leaves is read behind. */
static inline const TeFunc *cell(long long d, long long T, long long n)
{
    const char *text = arena_printf(
        arena,
        "te @cell(%%x: f32[%lld,%lld], %%w: f32[%lld,%lld,%lld] @const) -> (%%y, %%last) {\n"
        "  %%p[t<%lld,j<%lld]: f32 = %%x[t,j] + 1.0\n"
        "  scan t<%lld [d<%lld] {\n"
        "    %%h[d<%lld,0<%lld,j<%lld]: f32 = 0.5\n"
        "    %%c[d<%lld,0<%lld,j<%lld]: f32 = %%x[0,j]\n"
        "    each {\n"
        "      %%s[d<%lld,t<%lld,j<%lld]: f32 = sum[k<%lld] %%h[d,t,k] * %%w[d,k,j]\n"
        "      %%g[d<%lld,t<%lld,j<%lld]: f32 = %%s[d,t,j] * 0.25 + "
        "%%p[min(d*%lld+t,%lld-d*%lld-t),j]\n"
        "      %%c[d<%lld,t+1<%lld,j<%lld]: f32 = %%c[d,t,j] * 0.5 + %%g[d,t,j]\n"
        "      %%h[d<%lld,t+1<%lld,j<%lld]: f32 = max(%%c[d,t+1,j], %%h[d,t,j] * 0.5)\n"
        "      %%y[min(d*%lld+t,%lld-d*%lld-t)<%lld,d<%lld,j<%lld]: f32 = %%h[d,t+1,j]\n"
        "    }\n"
        "    %%end[d<%lld,j<%lld]: f32 = %%h[d,%lld,j] + %%c[d,%lld,j]\n"
        "  }\n"
        "  %%last[d<%lld,j<%lld]: f32 = %%end[d,j] * 2.0\n"
        "}\n",
        T, n, d, n, n, T, n, T, d, d, T + 1, n, d, T + 1, n, d, T, n, n, d, T, n, T, 2 * T - 1, T,
        d, T + 1, n, d, T + 1, n, T, 2 * T - 1, T, T, d, n, d, n, T, T, d, n);

    return te_parse(c, "cell.te", (Bytes){(const uint8_t *)text, strlen(text)});
}

/* Running sums over columns of a matrix, and what they add up to. */
static inline const TeFunc *running(long long n, long long m)
{
    const char *text =
        arena_printf(arena,
                     "te @running(%%x: f32[%lld,%lld]) -> (%%out, %%top) {\n"
                     "  scan k<%lld [i<%lld] {\n"
                     "    %%total[0<%lld,i<%lld]: f32 = 0.0\n"
                     "    each {\n"
                     "      %%out[i<%lld,k<%lld]: f32 = %%total[k,i]\n"
                     "      %%total[k+1<%lld,i<%lld]: f32 = %%total[k,i] + %%x[i,k]\n"
                     "    }\n"
                     "    %%top[i<%lld]: f32 = %%total[%lld,i] * 2.0\n"
                     "  }\n"
                     "}\n",
                     n, m, m, n, m + 1, n, n, m, m + 1, n, n, m);

    return te_parse(c, "running.te", (Bytes){(const uint8_t *)text, strlen(text)});
}

/* Each row of a tensor is made of the row before. */
static inline const TeFunc *row_by_row(const char *row)
{
    const char *text = arena_printf(
        arena,
        "te @rows(%%x: f32[2,3]) -> (%%s) {\n  scan k<4 {\n    %%s[0<5,j<3]: f32 = 1.0\n"
        "    each {\n      %%s[k+1<5,j<3]: f32 = %s\n    }\n  }\n}\n",
        row);

    return te_parse(c, "rows.te", (Bytes){(const uint8_t *)text, strlen(text)});
}

/* The last cell reads less than the others. */
static inline const TeFunc *last_cell(void)
{
    static const char text[] = "te @last(%x: f32[3,2]) -> (%s) {\n"
                               "  %v[j<3,k<2]: f32 = %x[j,k] * 2.0\n"
                               "  %s[j<3]: f32 = select(j < 2, %v[j,0] + %v[j,1], %v[j,0])\n}\n";

    return te_parse(c, "last.te", (Bytes){(const uint8_t *)text, strlen(text)});
}

typedef struct {
    const char *loop[200], *block[64], *tensor[64];
    uint32_t    nloops, nblocks, ntensors;
} Names;

static inline void add_name(const char **at, uint32_t *n, uint32_t max, const char *name)
{
    for (uint32_t i = 0; i < *n; i++)
        if (at[i] == name)
            return;
    if (*n < max)
        at[(*n)++] = name;
}

static inline bool gather(void *user, const Stmt *s)
{
    Names *n = user;
    if (s->kind == STMT_FOR)
        add_name(n->loop, &n->nloops, 200, s->u.loop.var->name);
    if (s->kind == STMT_BLOCK)
        add_name(n->block, &n->nblocks, 64, s->u.block.name);
    if (s->kind == STMT_ALLOC)
        add_name(n->tensor, &n->ntensors, 64, s->u.buffer->name);
    return true;
}

#define PICK(list) (list[rnd(COUNT(list))])

static inline void random_step(Sched *s, int serial)
{
    static const char *const tails[] = {"even", "peel", "if", "mask"};
    static const char *const scopes[] = {"reg", "private", "stack", "local"};
    Names                    n = {.nloops = 0};
    stmt_visit(s->f->body, &(TirVisit){.user = &n, .enter = gather});
    for (uint32_t i = 0; i < s->f->nparams; i++)
        add_name(n.tensor, &n.ntensors, 64, s->f->params[i].buffer->name);
    const char *L = n.loop[rnd(n.nloops)], *M = n.loop[rnd(n.nloops)], *N = n.loop[rnd(n.nloops)];
    const char *B = n.block[rnd(n.nblocks)], *D = n.block[rnd(n.nblocks)];
    const char *T = n.tensor[rnd(n.ntensors)], *U = n.tensor[rnd(n.ntensors)];
    switch (rnd(36)) {
    case 0:
    case 1:
    case 2:
    case 3:
        try_step(s, "split %%%s by %u tail=%s -> %%o%d, %%i%d", L, 1 + rnd(6), PICK(tails), serial,
                 serial);
        break;
    case 4:
        try_step(s, "split %%%s into %u tail=%s -> %%o%d, %%i%d", L, 1 + rnd(6), PICK(tails),
                 serial, serial);
        break;
    case 5:
    case 6:
    case 7: try_step(s, "fuse %%%s, %%%s -> %%f%d", L, M, serial); break;
    case 8:
    case 9:
    case 10: try_step(s, "reorder %%%s, %%%s", L, M); break;
    case 11:
    case 12: try_step(s, "reorder %%%s, %%%s, %%%s", L, M, N); break;
    case 13:
    case 14:
    case 15: try_step(s, "compute_at %s %%%s", B, L); break;
    case 16:
    case 17: try_step(s, "reverse_compute_at %s %%%s", B, L); break;
    case 18: try_step(s, "compute_inline %s", B); break;
    case 19: try_step(s, "reverse_compute_inline %s", B); break;
    case 20:
    case 21:
    case 22: try_step(s, "cache_write %s %s at %%%s", B, PICK(scopes), L); break;
    case 23: try_step(s, "cache_read %%%s %s %s at %%%s", T, B, PICK(scopes), L); break;
    case 24: try_step(s, "decompose_reduction %s %%%s", B, L); break;
    case 25: try_step(s, "rfactor %%%s", L); break;
    case 26: try_step(s, "fold_init %s -> %s", B, D); break;
    case 27: try_step(s, "elide_pad %s", B); break;
    case 28:
        if (rnd(2))
            try_step(s, "transform_layout %%%s (a, b) -> (b//%u, a, b%%%u)", T, 1 + rnd(5),
                     1 + rnd(5));
        else
            try_step(s, "transform_layout %%%s (a, b) -> (a//3, b, a%%3)", T);
        break;
    case 29: try_step(s, "inplace %%%s -> %%%s", T, U); break;
    case 30: try_step(s, "partition %%%s at %u", L, 1 + rnd(4)); break;
    case 31: try_step(s, "parallel %%%s", L); break;
    case 32: try_step(s, rnd(2) ? "contract %s" : "set_scope %%%s private", rnd(2) ? B : T); break;
    case 33:
    case 34: try_step(s, "distribute %%%s", L); break;
    default: try_step(s, rnd(2) ? "unroll %%%s" : "vectorize %%%s", L); break;
    }
}

static inline const TeFunc *random_te(void)
{
    switch (rnd(7)) {
    case 6: return cell(1 + rnd(2), 1 + rnd(4), 1 + rnd(5));
    case 5: return running(1 + rnd(4), 1 + rnd(6));
    case 4: return diamond(1 + rnd(5), 1 + rnd(6));
    case 0: return matmul(1 + rnd(7), 1 + rnd(9), 1 + rnd(11), (int)rnd(4));
    case 1: return softmax(1 + rnd(5), 1 + rnd(9));
    case 2: return stencil(2 + rnd(6), 2 + rnd(7), 1 + rnd(2), rnd(2));
    default: return conv_relu((ConvShape){1 + rnd(2), 1 + rnd(2), 1 + rnd(4), 2 + rnd(4), rnd(2)});
    }
}

#endif
