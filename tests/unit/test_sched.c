/* Schedule steps: each keeps what the nest computes, checked by the interpreter; each refuses what
 * it must; worked examples; random lists of steps on random definitions. */
#include "tests/unit/nests.h"

#include <math.h>

/* The schedule computes what the first nest does: bit for bit if all steps say so. */
static bool same_result(Sched *s)
{
    const Func *first = sched_new(c, &cpu, s->te)->f;
    Mem         want = run_func(first, first, NULL), got = run_func(s->f, first, s);
    bool        same = same_values(s, want, got);
    if (!same)
        printf("differs after:\n%s%s\n", steps_of(s), text_of(s->f));
    return same;
}

static void take(Sched *s, const char *steps)
{
    Bytes b = {(const uint8_t *)steps, strlen(steps)};
    bool  ok = sched_parse(c, "steps", b, s);
    if (!ok)
        printf("%s\n", s->refusal);
    diag_drop(c->diags, 0);
    CHECK(ok);
}

/* ---- a convolution, all the way ------------------------------------------------------------------------ */

static void test_conv_example(void)
{
    const TeFunc *te = conv_relu((ConvShape){4, 4, 14, 28, true});
    Sched        *s = sched_new(c, &cpu, te);
    take(s, "elide_pad pad; fold_init bias -> conv; contract conv\n"
            "transform_layout %w (o,c,h,v) -> (o//16, c//8, h, v, c%8, o%16)\n"
            "split %conv.o by 2 -> %oc, %ov; split %conv.y by 7 -> %yb, %g\n"
            "split %conv.c by 2 -> %kc, %cb // two chunks\n"
            "reorder %yb, %oc, %kc, %g, %conv.x, %cb, %kh, %kw, %i, %ov, %conv.j\n"
            "split %conv.x by 6 tail=even -> %t, %p\n"
            "reorder %cb, %kh, %kw, %i, %p, %ov, %conv.j\n");
    take(s, "cache_write conv reg at %t; reverse_compute_at relu %t; inplace %conv -> %relu\n"
            "vectorize %j; unroll %i, %p, %ov; parallel %yb; outline %t -> @tile\n");
    CHECK(same_result(s));
}

static bool has(const Sched *s, const char *part)
{
    bool found = strstr(text_of(s->f), part) != NULL;
    if (!found)
        printf("no '%s' in\n%s", part, text_of(s->f));
    return found;
}

/* 14x14: a tile spans rows, registers are indexed by pixels. */
static void test_wrapped_groups(void)
{
    Sched *s = sched_new(c, &cpu, conv_relu((ConvShape){1, 2, 4, 14, true}));
    take(s, "elide_pad pad; fold_init bias -> conv\n"
            "split %conv.y by 2 -> %g, %r; split %conv.o by 2 -> %oc, %ov\n"
            "reorder %oc, %g, %r, %conv.x, %conv.c, %kh, %kw, %i, %ov, %conv.j\n"
            "fuse %r, %conv.x -> %px; split %px by 6 tail=even -> %t, %p\n"
            "reorder %conv.c, %kh, %kw, %i, %p, %ov, %conv.j; cache_write conv reg at %t\n"
            "reverse_compute_at relu %t; unroll %t, %i, %p, %ov; vectorize %conv.j\n");
    CHECK(same_result(s));
    CHECK(has(s, "alloc %conv.reg: f32[6,2,8] @reg"));
    CHECK(has(s, "alloc %conv.reg: f32[5,2,8] @reg"));
    CHECK(has(s, "y<4=%g*2+(%t*6+%p)//14, x<14=(%t*6+%p)%14"));
    CHECK(!strstr(text_of(s->f), "where")); /* even tiles: no conditions anywhere */
    CHECK(!strstr(text_of(s->f), "alloc %conv:"));
}

/* Plain NCHW for the GPU: y[o,y,x] over a padded input, then relu. */
static const TeFunc *conv_nchw(int64_t cin, int64_t o, int64_t h, int64_t w)
{
    static const uint32_t one[3] = {0, 1, 1};
    static const Halo     halo = {3, 0.0, one, one};
    const Tensor         *d = param("d", false, &halo, 3, (int64_t[]){cin, h, w});
    const Tensor         *f = param("w", true, NULL, 4, (int64_t[]){o, cin, 3, 3});
    Axes                  a = axes(3, (int64_t[]){o, h, w}, (const char *[]){"o", "y", "x"});
    Axes          r = te_raxes(c, 3, (int64_t[]){cin, 3, 3}, (const char *[]){"c", "kh", "kw"});
    const Idx    *di[] = {r.at[0], offset(plus(a.at[1], r.at[1]), -1),
                          offset(plus(a.at[2], r.at[2]), -1)};
    const Idx    *wi[] = {a.at[0], r.at[0], r.at[1], r.at[2]};
    const Tensor *conv =
        te_reduce(c, "conv", DT_F32, a, COMB_SUM, r, prim_mul(c, te_at(c, d, di), te_at(c, f, wi)));
    a = axes(3, (int64_t[]){o, h, w}, (const char *[]){"p", "q", "r"});
    return func("conv_nchw", 2, (const Tensor *[]){d, f},
                te_compute(c, "relu", DT_F32, a, prim_max(c, te_at(c, conv, a.at), num(0))));
}

static void test_gpu_example(void)
{
    Sched *s = sched_new(c, &cpu, conv_nchw(8, 8, 8, 14));
    take(s, "split %y by 4 -> %yb, %yi; split %x by 7 -> %xb, %tx; split %o by 4 -> %ty, %oi\n"
            "split %c by 4 -> %kc, %ki; reorder %yb, %xb, %ty, %tx, %kc, %ki, %kh, %kw, %yi, %oi\n"
            "bind %yb blockIdx.y; bind %xb blockIdx.x; bind %ty threadIdx.y; bind %tx threadIdx.x\n"
            "cache_write conv reg at %tx; reverse_compute_at relu %tx\n"
            "cache_read %d conv shared at %kc; cache_read %w conv shared at %kc\n"
            "fuse %d.shared.a0, %d.shared.a1, %d.shared.a2 -> %f; split %f by 4 -> %fo, %f4\n"
            "unroll %ki, %kh, %kw, %yi, %oi\n");
    CHECK(same_result(s));
    CHECK(has(s, "alloc %d.shared: f32[4,6,9] @shared"));
    CHECK(has(s, "alloc %w.shared: f32[8,4,3,3] @shared"));
    CHECK(has(s, "alloc %conv.reg: f32[4,4] @reg"));
}

/* Expand 1x1 and depthwise 3x3, fused over channel blocks: the private tensor is given a halo. */
static void test_expand_depthwise(void)
{
    int64_t       cin = 6, mid = 8, h = 5, w = 6;
    const Tensor *d = param("d", false, NULL, 3, (int64_t[]){cin, h, w});
    const Tensor *e = param("e", true, NULL, 2, (int64_t[]){mid, cin});
    const Tensor *f = param("f", true, NULL, 3, (int64_t[]){mid, 3, 3});
    Axes          a = axes(3, (int64_t[]){mid, h, w}, (const char *[]){"m", "y", "x"});
    Axes          r = te_raxes(c, 1, &cin, (const char *[]){"k"});
    const Tensor *expand =
        te_reduce(c, "expand", DT_F32, a, COMB_SUM, r,
                  prim_mul(c, te_at(c, d, (const Idx *[]){r.at[0], a.at[1], a.at[2]}),
                           te_at(c, e, (const Idx *[]){a.at[0], r.at[0]})));
    a = axes(3, (int64_t[]){mid, h + 2, w + 2}, (const char *[]){"m", "y", "x"});
    const Idx    *y = offset(a.at[1], -1), *x = offset(a.at[2], -1);
    const Tensor *pad =
        te_compute(c, "pad", DT_F32, a,
                   prim_select(c, inside(inside(NULL, y, h), x, w),
                               te_at(c, expand, (const Idx *[]){a.at[0], y, x}), num(0)));
    a = axes(3, (int64_t[]){mid, h, w}, (const char *[]){"c", "y", "x"});
    r = te_raxes(c, 2, (int64_t[]){3, 3}, (const char *[]){"kh", "kw"});
    const Idx    *pi[] = {a.at[0], plus(a.at[1], r.at[0]), plus(a.at[2], r.at[1])};
    const Idx    *fi[] = {a.at[0], r.at[0], r.at[1]};
    const Tensor *dw =
        te_reduce(c, "dw", DT_F32, a, COMB_SUM, r, prim_mul(c, te_at(c, pad, pi), te_at(c, f, fi)));
    Sched *s = sched_new(c, &cpu, func("dw", 3, (const Tensor *[]){d, e, f}, dw));
    take(s, "split %dw.c by 2 -> %c, %v; elide_pad pad; compute_at expand %c\n"
            "set_scope %expand private; parallel %c; reorder %v, %dw.y, %dw.x, %kh, %kw\n");
    CHECK(same_result(s));
    CHECK(has(s, "alloc %expand: f32[8,5,6] halo(1:1+1, 2:1+1)=0.0 @private"));
    CHECK(has(s, "%expand[m,y,x] = 0.0"));
    int64_t n;
    CHECK(sched_loop_extent(s, "expand.m", &n) && n == 2);
}

/* Softmax by rows; a long sum by parts. */
static void test_rows_and_parts(void)
{
    Sched *s = sched_new(c, &cpu, softmax(6, 20));
    take(s,
         "compute_at sum %out.i; compute_at ex %out.i; compute_at mx %out.i\n"
         "inplace %ex -> %out; parallel %out.i; split %sum.j by 4 -> %jo, %jl\n"
         "rfactor %jl; vectorize %ex.j; split %out.j by 8 tail=peel -> %v, %w; vectorize %w#0\n");
    if (s->refusal) /* the row sum lies in the parallel loop */
        puts(s->refusal);
    CHECK(same_result(s));
    s = sched_new(c, &cpu, matmul(1, 1, 100, 0));
    take(s, "split %k into 8 tail=if -> %part, %k; rfactor %part; parallel %part\n");
    CHECK(same_result(s) && !s->exact);
}

/* ---- Winograd F(4x4, 3x3) --------------------------------------------------------------------------- */

static const int bt4[6][6] = {{4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
                              {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
static const int at4[4][6] = {
    {1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}};

/* case(which; row . t[.., k at dimension dim, ..]) */
static const Prim *rows(const Idx *which, uint32_t n, const int (*m)[6], const Tensor *t,
                        const Idx *const *at, uint32_t dim, const Idx *base)
{
    const Prim *arm[6];
    for (uint32_t r = 0; r < n; r++) {
        arm[r] = NULL;
        for (int k = 0; k < 6; k++) {
            const Idx *i[8];
            if (!m[r][k])
                continue;
            for (uint32_t d = 0; d < t->buffer->ndim; d++)
                i[d] = d == dim ? offset(base, k) : at[d];
            const Prim *x = prim_mul(c, te_at(c, t, i), num(m[r][k]));
            arm[r] = arm[r] ? prim_add(c, arm[r], x) : x;
        }
    }
    return prim_case(c, which, n, arm);
}

static const TeFunc *winograd(int64_t c8, int64_t o8, int64_t th, int64_t tw)
{
    static const uint32_t one[5] = {0, 0, 1, 1, 0};
    static const Halo     halo = {5, 0.0, one, one};
    int64_t               h = th * 4, w = tw * 4, tiles = th * tw;
    const Tensor         *d = param("d", false, &halo, 5, (int64_t[]){1, c8, h, w, 8});
    const Tensor         *u = param("u", true, NULL, 4, (int64_t[]){6, 6, o8 * 8, c8 * 8});
    const Tensor         *b = param("b", true, NULL, 1, (int64_t[]){o8 * 8});

    Axes a =
        axes(5, (int64_t[]){1, c8, h + 2, w + 2, 8}, (const char *[]){"n", "c", "y", "x", "i"});
    const Idx    *y = offset(a.at[2], -1), *x = offset(a.at[3], -1);
    const Prim   *in = inside(inside(NULL, y, h), x, w);
    const Prim   *v0 = te_at(c, d, (const Idx *[]){a.at[0], a.at[1], y, x, a.at[4]});
    const Tensor *pad = te_compute(c, "pad", DT_F32, a, prim_select(c, in, v0, num(0)));
    /* v1[c, t, r, q, i] */
    a = axes(5, (int64_t[]){c8, tiles, 6, 6, 8}, (const char *[]){"c", "t", "r", "q", "i"});
    const Idx    *row = plus(times(idx_divc(c->arith, a.at[1], tw), 4), a.at[2]);
    const Idx    *col = times(idx_modc(c->arith, a.at[1], tw), 4);
    const Idx    *pi[] = {K(0), a.at[0], row, NULL, a.at[4]};
    const Tensor *v1 = te_compute(c, "v1", DT_F32, a, rows(a.at[3], 6, bt4, pad, pi, 3, col));
    /* v[r, q, c, t, i] */
    a = axes(5, (int64_t[]){6, 6, c8, tiles, 8}, (const char *[]){"r", "q", "c", "t", "i"});
    const Idx    *vi[] = {a.at[2], a.at[3], NULL, a.at[1], a.at[4]};
    const Tensor *v = te_compute(c, "v", DT_F32, a, rows(a.at[0], 6, bt4, v1, vi, 2, K(0)));
    /* m[r, q, t, o] */
    a = axes(4, (int64_t[]){6, 6, tiles, o8 * 8}, (const char *[]){"r", "q", "t", "o"});
    Axes        r = te_raxes(c, 2, (int64_t[]){c8, 8}, (const char *[]){"c", "i"});
    const Prim *uv = prim_mul(
        c, te_at(c, v, (const Idx *[]){a.at[0], a.at[1], r.at[0], a.at[2], r.at[1]}),
        te_at(c, u, (const Idx *[]){a.at[0], a.at[1], a.at[3], plus(times(r.at[0], 8), r.at[1])}));
    const Tensor *m = te_reduce(c, "m", DT_F32, a, COMB_SUM, r, uv);
    /* y1[t, o, a, q] */
    a = axes(4, (int64_t[]){tiles, o8 * 8, 4, 6}, (const char *[]){"t", "o", "a", "q"});
    const Idx    *mi[] = {NULL, a.at[3], a.at[0], a.at[1]};
    const Tensor *y1 = te_compute(c, "y1", DT_F32, a, rows(a.at[2], 4, at4, m, mi, 0, K(0)));
    /* y[0, o, y, x, j] */
    a = axes(5, (int64_t[]){1, o8, h, w, 8}, (const char *[]){"n", "o", "y", "x", "j"});
    const Idx  *o = plus(times(a.at[1], 8), a.at[4]);
    const Idx  *t = plus(times(idx_divc(c->arith, a.at[2], 4), tw), idx_divc(c->arith, a.at[3], 4));
    const Idx  *yi[] = {t, o, idx_modc(c->arith, a.at[2], 4), NULL};
    const Prim *out = rows(idx_modc(c->arith, a.at[3], 4), 4, at4, y1, yi, 3, K(0));
    out = prim_max(c, prim_add(c, out, te_at(c, b, &o)), num(0));
    return func("wino", 3, (const Tensor *[]){d, u, b}, te_compute(c, "y", DT_F32, a, out));
}

static void test_winograd(void)
{
    int64_t n;
    Sched  *s = sched_new(c, &cpu, winograd(2, 2, 2, 4));
    take(s, "elide_pad pad; split %y.y by 4 -> %ty, %yy; split %y.x by 4 -> %tx, %xx\n"
            "reorder %ty, %tx, %yy, %xx; fuse %ty, %tx -> %tt; split %tt by 4 -> %blk, %t\n"
            "split %y.o by 2 -> %c, %ov; reorder %blk, %c, %t, %ov, %yy, %xx, %y.j\n"
            "parallel %blk; compute_at y1 %ov; compute_at m %c; compute_at v %blk\n"
            "compute_at v1 %v.t; set_scope %m private; set_scope %v private\n");
    /* The regions come out exactly. */
    CHECK(sched_loop_extent(s, "m.t", &n) && n == 4);
    CHECK(sched_loop_extent(s, "%m.o", &n) && n == 16);
    CHECK(sched_loop_extent(s, "m.r", &n) && n == 6);
    CHECK(sched_loop_extent(s, "v.t", &n) && n == 4);
    CHECK(sched_loop_extent(s, "v1.t", &n) && n == 1);
    CHECK(sched_loop_extent(s, "y1.t", &n) && n == 1);
    CHECK(sched_loop_extent(s, "y1.o", &n) && n == 8);
    CHECK(sched_loop_extent(s, "y1.a", &n) && n == 4);
    CHECK(!strstr(text_of(s->f), "where"));
    take(s, "split %m.o by 8 -> %mo, %ml; split %m.t by 3 tail=even -> %mt, %mp\n"
            "reorder %m.c, %m.i, %mp, %mo, %ml; cache_write m reg at %mt\n"
            "set_scope %v1 reg; set_scope %y1 reg; unroll %mp, %mo; vectorize %ml\n"
            "transform_layout %u (r, q, o, c) -> (o//16, r, q, c, o%16); outline %mt -> @tile\n"
            "unroll %yy, %xx; vectorize %y.j\n");
    CHECK(same_result(s));
}

/* ---- each step, taken and refused ----------------------------------------------------------------------- */

typedef struct {
    char te; /* c conv, m matmul with bias, turn and flat, s softmax, t stencil, r cell, u running,
                v and w rows, l last */
    const char *before; /* steps that are taken */
    const char *step;
    const char *reason; /* NULL: taken, and the result is the same */
} Case;

static const Case cases[] = {
    /* the language */
    {'m', "", "splitt %mm.m by 2 -> %a, %b",
     "refused: splitt %mm.m by 2 -> %a, %b: no step 'splitt', did you mean 'split'?"},
    {'m', "", "split %mm.z by 2 -> %a, %b",
     "refused: split %mm.z by 2 -> %a, %b: there is no loop %mm.z"},
    {'m', "", "split %n by 2 -> %a, %b", "%n could be %mm.n or %bias.n"},
    {'m', "", "split %k by 2 -> %a, %b", NULL},
    {'m', "", "split %mm.m by", "'by' needs a value"},
    {'m', "", "contract !", "'!' is not an argument"},
    {'m', "", "unroll %q#2", "%q has 1 copy, counted from 0"},
    {'m', "split %k by 4 tail=even -> %a, %b", "unroll %b#1", NULL},
    /* split */
    {'m', "", "split %mm.m by 2", "write `split %x by 8 -> %o, %i`"},
    {'m', "", "split %mm.m by 0 -> %a, %b", "the factor must be positive"},
    {'m', "", "split %mm.m by 2 -> %a, %a", "the two new names are the same"},
    {'m', "", "split %mm.m by 2 -> %bias.m, %a", "the name %bias.m is taken"},
    {'m', "", "split %mm.n by 4 tail=short -> %a, %b", "has a known number of rounds"},
    {'m', "", "split %mm.m by 2 tail=shift -> %a, %b",
     "tail is even, each, peel, short, if or mask"},
    {'m', "unroll %mm.m", "split %mm.m by 2 -> %a, %b", "%mm.m is already marked"},
    {'m', "", "split %mm.n by 4 tail=even -> %a, %b", NULL},
    {'m', "", "split %mm.n by 4 tail=peel -> %a, %b", NULL},
    {'m', "", "split %mm.n by 4 tail=if -> %a, %b", NULL},
    {'m', "", "split %mm.n by 4 tail=mask -> %a, %b", NULL},
    {'m', "", "split %mm.n into 3 -> %a, %b", NULL},
    {'m', "", "split %mm.n by 100 -> %mm.n, %b", NULL},
    /* fuse */
    {'m', "", "fuse %mm.m, %k -> %f", "%k is not alone and directly inside %mm.m"},
    {'m', "", "fuse %mm.n, %k -> %f", "%mm.n and %mm.k are loops of different kinds"},
    {'m', "split %mm.n by 4 -> %a, %b", "fuse %mm.m, %a -> %f", "%mm.m has 1 copies, %a 2"},
    {'m', "", "fuse %mm.m, %mm.n -> %f", NULL},
    {'m', "fuse %mm.m, %mm.n -> %f", "split %f by 4 tail=even -> %a, %b", NULL},
    {'m', "split %mm.n by 4 -> %a, %b", "fuse %a, %b -> %f", NULL},
    /* reorder */
    {'m', "", "reorder %mm.m, %mm.m", "%mm.m is named twice"},
    {'m', "", "reorder %mm.m, %bias.n", "%bias.n is not in one chain of loops with %mm.m"},
    {'m', "", "reorder %k, %mm.m, %mm.n", NULL},
    {'m', "split %k by 3 tail=if -> %a, %b; reverse_compute_at bias %mm.m", "reorder %b, %a", NULL},
    {'m', "reverse_compute_at bias %k; split %k by 4 tail=if -> %a, %b", "reorder %b, %a",
     "other blocks wait for the end of the reduction over %b"},
    /* partition */
    {'m', "", "partition %mm.m at 0", "%mm.m runs from 0 to 5"},
    {'m', "", "partition %mm.m at 6", "%mm.m runs from 0 to 5"},
    {'m', "", "partition %k at 2", NULL},
    /* compute_at */
    {'m', "", "compute_at flat %f", "%flat is an output"},
    {'m', "", "compute_at mm %turn.q", "'bias' reads %mm outside %turn.q"},
    {'m', "", "compute_at bias %mm.m", "'bias' runs after %mm.m"},
    {'m', "", "compute_at bias %bias.m", "'bias' lies in %bias.m already"},
    {'m', "", "compute_at bias %turn.r", NULL},
    {'m', "", "compute_at turn %f", NULL},
    {'m', "compute_at mm %bias.n", "compute_at bias %turn.r",
     "%mm is not complete where 'turn' runs"},
    {'m', "compute_at turn %f; compute_at bias %f", "compute_at mm %f", NULL},
    {'t', "compute_at st %post.y", "compute_at pad %st.x", NULL},
    {'t', "compute_at st %post.y; compute_at pad %post.y", "compute_at pre %pad.x", NULL},
    /* reverse_compute_at */
    {'m', "", "reverse_compute_at turn %mm.m", "'turn' reads nothing that is written there"},
    {'m', "", "reverse_compute_at bias %k", NULL},
    {'m', "reverse_compute_at bias %k; reverse_compute_at turn %k", "reverse_compute_at flat %mm.m",
     NULL},
    {'m', "partition %k at 3", "reverse_compute_at bias %k",
     "the reduce loop %mm.k outside is cut in copies"},
    {'s', "", "reverse_compute_at sum %ex.i", "'sum' is a reduction"},
    {'s', "", "reverse_compute_at out %sum.i", NULL},
    {'s', "", "reverse_compute_at ex %mx.i", NULL},
    {'t', "", "reverse_compute_at pad %pre.x", "'pad' has cells that read nothing of %pre"},
    /* inline */
    {'m', "", "compute_inline mm", "'mm' is a reduction"},
    {'m', "", "compute_inline flat", "%flat is an output"},
    {'m', "", "compute_inline turn", NULL},
    {'t', "", "compute_inline pad", NULL},
    {'m', "", "reverse_compute_inline bias", "'mm' is a reduction"},
    {'m', "", "reverse_compute_inline turn", NULL},
    {'s', "", "reverse_compute_inline out", "'out' reads %ex and %sum from there"},
    /* cache_write, cache_read */
    {'m', "", "cache_write mm attic at %mm.m",
     "scopes are arena, private, stack, reg, shared, local and frag"},
    {'m', "", "cache_write mm reg at %bias.m", "%bias.m does not enclose 'mm'"},
    {'m', "", "cache_write mm reg at %mm.m", NULL},
    {'m', "reorder %k, %mm.m", "cache_write mm reg at %k", NULL},
    {'m', "reorder %k, %mm.m", "cache_write mm reg at %mm.m", NULL},
    {'m', "split %k by 3 tail=if -> %a, %b; reorder %a, %mm.m", "cache_write mm reg at %a",
     "a reduce loop outside is guarded"},
    {'m', "split %k by 3 tail=peel -> %a, %b", "cache_write mm reg at %a",
     "the reduce loop %a outside is cut in copies"},
    {'m', "split %mm.n by 3 tail=if -> %a, %b; reorder %k, %mm.m", "cache_write mm reg at %a",
     NULL},
    {'m', "compute_at mm %bias.m", "cache_write mm reg at %bias.m", NULL},
    {'m', "decompose_reduction mm %k", "cache_write mm reg at %mm.n", NULL},
    {'m', "split %k by 5 -> %a, %b; reorder %b, %a; rfactor %b", "cache_write mm.rf reg at %b",
     NULL},
    {'m', "", "cache_read %a mm private at %mm.m", NULL},
    {'m', "", "cache_read %b mm private at %mm.m", NULL},
    {'m', "", "cache_read %e mm private at %mm.m", "'mm' does not only read %e"},
    {'t', "", "cache_read %pad st private at %st.x", NULL},
    {'m', "", "cache_read %a mm private %k at %mm.m", NULL},
    {'m', "", "cache_read %b mm private %mm.n, %k at %mm.m", NULL},
    {'m', "", "cache_read %b mm private %k at %mm.m", "other loops choose the cell of %b, too"},
    {'m', "", "cache_read %a mm private %mm.m at %mm.n",
     "%mm.m is not one of the loops that read the copy"},
    {'m', "", "cache_read %a mm private %bias.n at %mm.m", "%bias.n does not hold 'mm'"},
    {'m', "", "cache_index mm stack %k at %mm.m", "'mm' reads by no position that memory says"},
    {'m', "", "unguard mm", "'mm' does not keep one cell to itself"},
    {'m', "split %mm.n by 3 tail=if -> %p, %q; cache_write mm reg at %mm.m", "unguard mm",
     "%b would be read outside"},
    {'m',
     "split %mm.n by 3 tail=if -> %p, %q; cache_write mm reg at %mm.m; cache_read %b mm local %k, "
     "%p, %q at %mm.m",
     "unguard mm", NULL},
    {'m', "split %mm.n by 3 tail=if -> %p, %q; cache_write mm reg at %mm.m", "unguard mm.load",
     NULL},
    {'m', "cache_write mm reg at %mm.m", "unguard mm.load", "'mm.load' has no condition to drop"},
    {'c', "", "skip_zeros conv", "all rounds of 'conv' may add something"},
    {'c', "", "skip_zeros pad", "'pad' is no sum"},
    {'c', "compute_inline pad; partition %conv.y at 1", "skip_zeros conv", NULL},
    {'c', "compute_inline pad; partition %conv.y at 1; unroll %conv.kh", "skip_zeros conv",
     "%conv.kh is marked"},
    {'c', "compute_inline pad", "guard_zeros conv",
     "'conv' starts its sum itself; cache_write or decompose_reduction first"},
    {'c', "compute_inline pad; cache_write conv reg at %conv.x", "guard_zeros conv", NULL},
    {'c', "cache_write conv reg at %conv.x", "guard_zeros conv",
     "all rounds of 'conv' may add something"},
    {'c', "", "skip_unread conv", "all cells of 'conv' may be read"},
    {'c', "", "skip_unread relu", "'relu' does not compute one tensor of this kernel alone"},
    {'l', "", "skip_unread v", "all cells of 'v' may be read"},
    {'l', "partition %s.j at 2; partition %v.j at 2", "skip_unread v", NULL},
    /* reductions */
    {'m', "", "decompose_reduction bias %bias.m", "'bias' has no start of its own"},
    {'m', "reorder %k, %mm.m", "decompose_reduction mm %mm.m",
     "the reduce loop %mm.k lies outside %mm.m"},
    {'m', "", "decompose_reduction mm %mm.n", NULL},
    {'m', "", "rfactor %mm.m", "it is not a reduce loop"},
    {'m', "split %k by 4 -> %a, %b", "rfactor %b",
     "the reduce loop %a is cut in copies; split with tail=if"},
    {'m', "split %k into 4 tail=if -> %a, %b", "rfactor %a", NULL},
    {'s', "", "rfactor %mx.j", NULL},
    {'m', "", "fold_init bias -> turn", "'turn' is no reduction with a start"},
    {'m', "", "fold_init turn -> mm", "'turn' is not %mm plus something"},
    {'m', "", "fold_init bias -> mm", NULL},
    {'c', "", "fold_init bias -> conv", NULL},
    {'m', "", "contract turn", "'turn' has no a*b+c"},
    {'m', "", "contract mm", NULL},
    /* layout */
    {'c', "", "elide_pad conv", "'conv' is not select(inside, load, constant)"},
    {'c', "", "elide_pad pad", NULL},
    {'t', "", "elide_pad pad", NULL},
    {'t', "elide_pad pad", "compute_at st %post.y", NULL},
    {'m', "", "transform_layout %a (i, j) -> (j, i)", "%a is a parameter and not constant"},
    {'m', "", "transform_layout %b (i) -> (i)", "%b has 2 dimensions"},
    {'m', "", "transform_layout %b (i, j) -> (i, j//2)", "the map does not keep cells apart"},
    {'m', "", "transform_layout %b (i, j) -> (i, zz)", "the map does not parse at 'zz)'"},
    {'m', "", "transform_layout %b (i, j) -> (j//4, i, j%4)", NULL},
    {'m', "", "transform_layout %b (k, n) -> (n//16, k, n%16)", NULL},
    {'m', "", "transform_layout %mm (i, j) -> (i*7+j)", NULL},
    {'m', "transform_layout %b (k, n) -> (n, k)", "transform_layout %b (k, n) -> (n, k)",
     "%b is packed already"},
    {'m', "", "inplace %a -> %flat", "%a is a parameter"},
    {'m', "", "inplace %mm -> %turn", "%mm and %turn are not alike"},
    {'m', "", "inplace %mm -> %bias", NULL},
    {'s', "", "inplace %ex -> %out", NULL},
    {'t', "", "inplace %pre -> %pad", "%pre and %pad are not alike"},
    {'m', "", "set_scope %a private", "%a is a parameter"},
    {'m', "", "set_scope %mm private", NULL},
    {'m', "", "narrow %a type=f16", "%a is a parameter"},
    {'m', "", "narrow %mm type=f16", "'mm' sums in %mm"},
    {'m', "", "narrow %bias type=f64", "%bias is of f32"},
    {'m', "", "narrow %bias type=f16", NULL},
    {'m', "", "storage_align %a dim=0 by 32 offset=16", "%a is a parameter"},
    {'m', "", "storage_align %mm dim=0 by 32 offset=16", NULL},
    {'m', "", "prefetch %b by 0", "bytes up to 65536"},
    {'m', "", "prefetch %b by 4096", NULL},
    {'m', "", "prefetch_next %a at %mm.n over %mm.m", NULL},
    {'m', "", "prefetch_next %mm at %mm.n over %mm.m", "%mm is no parameter"},
    {'m', "parallel %mm.m", "set_scope %mm private", "%mm carries values between threads"},
    /* sequential loops */
    {'r', "", "distribute %d", NULL},
    {'r', "", "distribute %t", "%t is not spatial"},
    {'r', "", "distribute %s.k", "%s.k is not spatial"},
    {'r', "parallel %d", "distribute %d", "%d is already marked"},
    {'u', "", "distribute %i", NULL},
    {'u', "split %i by 2 -> %o, %r; distribute %r", "unroll %r", NULL},
    {'r', "", "reorder %t, %d", "%t is not in one chain of loops with %d"},
    {'r', "distribute %d", "parallel %d", NULL},
    {'w', "", "reorder %s.j, %k", NULL},
    {'w', "reorder %s.j, %k", "vectorize %s.j", NULL},
    {'w', "", "reorder %r, %k", "%s.k is sequential"},
    {'v', "", "reorder %s.j, %k",
     "%s.k is sequential: iterations of %s.j touch the same cells of %s"},
    {'r', "", "parallel %t", "%t is not spatial"},
    {'r', "", "vectorize %t", "it is not spatial"},
    {'r', "", "bind %s.j threadIdx.x", "the sequential loop %t does not lie inside it"},
    {'r', "", "bind %h.init.j threadIdx.x", "the sequential loop %t does not lie inside it"},
    {'r', "", "bind %d threadIdx.x", NULL},
    {'r', "", "parallel %d", NULL},
    {'r', "", "parallel %s.j", NULL},
    {'r', "", "split %t by 2 -> %o, %i", NULL},
    {'r', "", "partition %t at 1", NULL},
    {'r', "", "unroll %t", NULL},
    {'r', "", "compute_at s %c.j", "'g' reads %s outside %c.j"},
    {'r', "compute_inline g", "compute_at s %c.j", NULL},
    {'r', "compute_inline g", "compute_inline s", "'s' is a reduction"},
    {'r', "", "compute_at h %y.j", "'h' does not write a tensor cell by cell"},
    {'r', "", "reverse_compute_at h %c.j", NULL},
    {'r', "reverse_compute_at h %c.j", "reverse_compute_at y %c.j", NULL},
    {'r', "compute_inline g; compute_at s %c.j", "reverse_compute_at h %c.j", NULL},
    {'r', "", "reverse_compute_at c %s.j", "'c' reads nothing that is written there"},
    {'r', "", "reverse_compute_at end %h.j", "'end' also reads %c, which is not complete there"},
    {'r', "", "inplace %c -> %h", "'c.init' uses %c after 'h.init'"},
    {'r', "", "inplace %s -> %g", NULL},
    {'r', "", "compute_at p %g.j", NULL},
    {'r', "", "cache_write h reg at %h.j", "'h' reads other cells of %h"},
    {'r', "", "cache_write s reg at %s.j", NULL},
    {'r', "", "rfactor %s.k", NULL},
    {'r', "", "transform_layout %w (d,k,j) -> (d, j//2, k, j%2)", NULL},
    /* marks */
    {'m', "", "parallel %k", "refused: parallel %k: 'mm' reduces over it; rfactor first"},
    {'m', "parallel %mm.m", "parallel %mm.n", "it lies inside the parallel loop %mm.m"},
    {'m', "parallel %mm.n", "parallel %mm.m", "the parallel loop %mm.n lies inside it"},
    {'t', "compute_at st %post.y", "parallel %post.y", NULL},
    {'m', "", "parallel %f", NULL},
    {'m', "", "vectorize %k", "it is not spatial"},
    {'m', "", "vectorize %bias.n", NULL},
    {'m', "", "unroll %k, %mm.n", NULL},
    {'m', "", "bind %mm.m warpIdx", "there is no axis warpIdx"},
    {'m', "bind %mm.m threadIdx.x", "bind %mm.n threadIdx.x", "%mm.m outside is bound to it"},
    {'m', "", "bind %mm.m blockIdx.x", NULL},
    {'m', "", "outline %mm.m", "write `outline %t -> @tile`"},
    {'m', "outline %mm.n -> @a", "outline %mm.m -> @b", "%mm.n inside is outlined"},
    {'m', "", "outline %mm.n -> @a", NULL},
};

static void test_cases(void)
{
    for (uint32_t i = 0; i < COUNT(cases); i++) {
        const Case   *k = &cases[i];
        const TeFunc *te = k->te == 'c'   ? conv_relu((ConvShape){1, 2, 3, 5, true})
                           : k->te == 'm' ? matmul(6, 7, 10, 3)
                           : k->te == 's' ? softmax(4, 7)
                           : k->te == 'r' ? cell(2, 3, 4)
                           : k->te == 'u' ? running(3, 5)
                           : k->te == 'v' ? row_by_row("sum[r<2] %s[k,j*2-j*2//3*3] * %x[r,j]")
                           : k->te == 'l' ? last_cell()
                           : k->te == 'w' ? row_by_row("sum[r<2] %s[k,j] * %x[r,j]")
                                          : stencil(5, 6, 2, true);
        Sched        *s = sched_new(c, &cpu, te);
        take(s, k->before);
        const Func *was = s->f;
        bool        ok = step(s, "%s", k->step);
        if (ok != !k->reason || (!ok && !strstr(s->refusal, k->reason)))
            printf("case %u: %s\n  got  %s\n  want %s\n", i, k->step, ok ? "taken" : s->refusal,
                   k->reason ? k->reason : "taken");
        CHECK(ok == !k->reason && (ok || strstr(s->refusal, k->reason)));
        CHECK(ok || (s->f == was && !step(s, "unroll %%mm.m")));
        CHECK(!ok || same_result(s));
        arena_reset(c->scratch);
    }
}

/* Steps print as they are written. */
static void test_text(void)
{
    static const char *const steps[] = {"split %mm.n by 4 tail=peel -> %no, %ni",
                                        "split %mm.m into 2 -> %mo, %mi",
                                        "reorder %mo, %no, %mi, %ni",
                                        "cache_write mm reg at %no",
                                        "fold_init bias -> mm",
                                        "unroll %mi, %ni",
                                        "parallel %mo",
                                        "transform_layout %b (k,n) -> (n//4, k, n%4)",
                                        "outline %no -> @tile"};
    Sched                   *s = sched_new(c, &cpu, matmul(6, 7, 10, 1));
    StrBuf                   want = strbuf(c->scratch);
    CHECK(step(s, "fold_init bias -> mm"));
    CHECK(step(s, "transform_layout b (k,n) -> (n//4, k, n%%4)"));
    CHECK_STR(steps_of(s), "fold_init bias -> mm\n"
                           "transform_layout %b (k,n) -> (n//4, k, n%4)\n");
    s = sched_new(c, &cpu, matmul(6, 7, 10, 1));
    for (uint32_t i = 0; i < COUNT(steps); i++)
        if (i != 2 && i != 3)
            str_printf(&want, "%s\n", steps[i]);
    for (uint32_t i = 0; i < COUNT(steps); i++)
        if (i != 2 && i != 3)
            CHECK(step(s, "%s", steps[i]));
    CHECK_STR(steps_of(s), want.at);
    CHECK(same_result(s));
    CHECK(!try_step(s, "parallel %%k") && !s->refusal);

    const char *names[8];
    CHECK_INT(sched_blocks(s, names, 8), 1);
    CHECK(sched_block(s, "mm") && !sched_block(s, "bias"));
    Sched *p = sched_new(c, &cpu, s->te);
    Bytes  bad = {(const uint8_t *)"unroll %mm.m // fine\n\nparallel %mm.k\n", 38};
    CHECK(!sched_parse(c, "net.sched", bad, p));
    StrBuf told = strbuf(c->scratch);
    diag_print(c->diags, DIAG_TEXT, &told);
    CHECK(strstr(told.at, "net.sched:3:1: error: refused: parallel %mm.k: 'mm' reduces over it"));
    diag_drop(c->diags, 0);
}

/* ---- decisions ----------------------------------------------------------------------------------- */

typedef struct {
    int64_t  width, rows;
    uint32_t order;
    bool     ahead;
} Plan;

/* Widths 2, 3, 6 take 8, 4, 4 cycles; so many rows as the width has divisors; two orders. */
static void decide_toy(Sched *s, void *user)
{
    static const char *const orders[] = {"rows.first", "columns.first"};
    Plan                    *plan = user;
    Candidates               width = candidates(s), rows = candidates(s), order = candidates(s);

    candidate(&width, 2, 0, 8);
    candidate(&width, 3, 0, 4);
    candidate(&width, 6, 0, 4);
    plan->width = pick_factor(s, "width", &width);
    for (int64_t r = 1; r <= plan->width; r++)
        if (plan->width % r == 0)
            candidate(&rows, r, plan->width, NAN);
    usual(&rows, plan->width, plan->width);
    plan->rows = pick_tile(s, "tile", &rows)->v[0];
    plan->ahead = pick_bool(s, "ahead", true);
    candidate(&order, 0, 0, 5);
    candidate(&order, 1, 0, 4);
    plan->order = pick_order(s, "order", &order, orders);
}

static Plan toy;

static void toy_rule(Sched *s)
{
    sched_decide(s, decide_toy, &toy);
    step(s, "split %%mm.n by %lld -> %%no, %%ni", (long long)toy.width);
}

static const char *decisions_of(const Sched *s)
{
    StrBuf text = strbuf(c->scratch);

    decisions_print(s, &text);
    return text.at;
}

/* The least estimate is taken, the first of equal ones; or what a rule of thumb says; or what is
 * asked for. */
static void test_decisions(void)
{
    Trail  trail = {.n = 2, .at = {2, 1}};
    Sched *s = sched_new(c, &cpu, matmul(6, 7, 12, 1));

    toy_rule(s);
    CHECK_STR(decisions_of(s), "width=3, tile=3x3, ahead=yes, order=columns.first");
    CHECK_INT(toy.width, 3);
    CHECK(!s->refusal && s->steps.n == 1 && !s->decisions.at[0].usual && s->decisions.at[1].usual);
    s = sched_new(c, &cpu, s->te);
    s->choose = trail_choose;
    s->picker = &trail;
    toy_rule(s);
    CHECK_STR(decisions_of(s), "width=6, tile=2x6, ahead=yes, order=columns.first");
    CHECK_INT(s->decisions.at[1].best, 3);
    CHECK(toy.width == 6 && toy.rows == 2 && toy.ahead && toy.order == 1);
}

/* 2 + 2 + 4 tiles, each ahead or not, in two orders. */
static void test_points(void)
{
    uint64_t points = 0;
    Sched   *s = sched_new(c, &cpu, matmul(6, 7, 12, 1));

    s->points = &points;
    toy_rule(s);
    CHECK_INT(points, (2 + 2 + 4) * 2 * 2);
    CHECK_INT(s->decisions.n, 4);
}

static void test_replay(void)
{
    static const struct {
        const char *text, *refusal; /* NULL: what was decided then is `now` */
        const char *now;
    } cases[] = {
        {"width=6, tile=2x6, ahead=no, order=rows.first", NULL,
         "width=6, tile=2x6, ahead=no, order=rows.first"},
        {"tile=1x3", NULL, "width=3, tile=1x3, ahead=yes, order=columns.first"},
        {" order = rows.first ,width=2", NULL, "width=2, tile=2x2, ahead=yes, order=rows.first"},
        {"", NULL, "width=3, tile=3x3, ahead=yes, order=columns.first"},
        {"width=4", "refused: width=4: it can be 2, 3, 6", NULL},
        {"width=", "refused: width=: it can be 2, 3, 6", NULL},
        {"tile=2x6", "refused: tile=2x6: it can be 1x3, 3x3", NULL},
        {"ahead=1", "refused: ahead=1: it can be no, yes", NULL},
        {"widht=3", "refused: there is no decision 'widht', did you mean 'width'?", NULL},
        {"unroll=3", "refused: there is no decision 'unroll'", NULL},
        {"width=3, width=6", "refused: 'width' is decided twice", NULL},
        {"width=3, 6x2", "refused: '6x2' is no decision, name=value", NULL},
        {"width=3,,tile=1x3", "refused: '' is no decision, name=value", NULL}};

    for (uint32_t i = 0; i < COUNT(cases); i++) {
        Sched *s = sched_new(c, &cpu, matmul(6, 7, 12, 1));
        bool   ok = sched_replay(s, toy_rule, cases[i].text);

        CHECK(ok == !cases[i].refusal);
        CHECK_STR(ok ? decisions_of(s) : s->refusal, ok ? cases[i].now : cases[i].refusal);
    }
}

/* ---- random steps on random definitions ---------------------------------------------------------------- */

/* The text of the steps gives the same nest again. */
static bool replays(const Sched *s)
{
    Sched      *again = sched_new(c, &cpu, s->te);
    const char *text = steps_of(s);
    Bytes       b = {(const uint8_t *)text, strlen(text)};
    bool        ok = sched_parse(c, "replay", b, again) && !strcmp(steps_of(again), text) &&
              !strcmp(text_of(again->f), text_of(s->f));
    if (!ok)
        printf("does not replay (%s):\n%s", again->refusal ? again->refusal : "other nest", text);
    diag_drop(c->diags, 0);
    return ok;
}

/* The nest is valid TIR and survives its text. */
static bool is_valid(const Sched *s)
{
    const TirModule *m = tirmod_new(c, 1, &s->f), *again;
    StrBuf text = strbuf(c->scratch), back = strbuf(c->scratch), told = strbuf(c->scratch);
    bool   ok = tir_verify(c, m, TIR_NEST);
    tir_print(c, m, &text);
    again = ok ? tir_parse(c, "nest", (Bytes){(const uint8_t *)text.at, text.n}) : NULL;
    if (again)
        tir_print(c, again, &back);
    ok = again && !strcmp(text.at, back.at);
    diag_print(c->diags, DIAG_TEXT, &told);
    diag_drop(c->diags, 0);
    if (!ok)
        printf("%s%s%s%s", told.at ? told.at : "", steps_of(s), text.at, again ? back.at : "");
    return ok;
}

static uint32_t taken[STEP_COUNT];

/* The shortest beginning of the list that goes wrong, and its nest. */
static void show_first_wrong(const Sched *s)
{
    Sched      *again = sched_new(c, &cpu, s->te);
    const Func *start = again->f, *before = start;
    for (uint32_t i = 0; i < s->steps.n; i++) {
        before = again->f;
        sched_apply(again, &s->steps.at[i]);
        Mem want = run_func(start, start, NULL), got = run_func(again->f, start, again);
        if (!same_values(again, want, got))
            break;
    }
    printf("%s%s%s%s\n", steps_of(again), text_of(start), text_of(before), text_of(again->f));
}

static void random_lists(uint32_t lists, uint64_t first, bool verbose)
{
    uint32_t bad = 0;
    for (uint32_t k = 0; k < lists && bad < 3; k++) {
        seed = first + k * 7919u;
        rnd(2);
        rnd(2);
        Sched      *s = sched_new(c, &cpu, random_te());
        const Func *start = s->f;
        uint32_t    tries = 8 + rnd(60);
        for (uint32_t i = 0; i < tries; i++)
            random_step(s, (int)i);
        for (uint32_t i = 0; i < s->steps.n; i++)
            taken[s->steps.at[i].kind]++;
        uint64_t keep = seed;
        Mem      want = run_func(start, start, NULL), got = run_func(s->f, start, s);
        bool     ok = same_values(s, want, got) && (k % 8 || (replays(s) && is_valid(s)));
        if (!ok) {
            bad++;
            printf("list %u of seed %llu differs:\n", k, (unsigned long long)first);
            show_first_wrong(s);
        }
        seed = keep;
        arena_reset(c->scratch);
    }
    CHECK_INT(bad, 0);
    for (int i = 0; verbose && i < STEP_COUNT; i++)
        printf("%u:%u ", i, taken[i]);
}

static void test_random(void)
{
    const char *n = getenv("SCHED_LISTS"), *from = getenv("SCHED_SEED");
    random_lists(n ? (uint32_t)atoi(n) : 2000, from ? (uint64_t)atoll(from) : 1, n != NULL);
}

int main(void)
{
    arena = arena_new(NULL);
    Diags *d = diags_new(arena);
    c = ctx_new(arena, d, (OpTable){0});
    RUN(test_conv_example);
    RUN(test_wrapped_groups);
    RUN(test_winograd);
    RUN(test_gpu_example);
    RUN(test_expand_depthwise);
    RUN(test_rows_and_parts);
    RUN(test_cases);
    RUN(test_text);
    RUN(test_decisions);
    RUN(test_points);
    RUN(test_replay);
    RUN(test_random);
    ctx_free(c);
    arena_free(arena);
    return check_result();
}
