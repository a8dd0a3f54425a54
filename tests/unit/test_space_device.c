/* The spaces of schedule rules of GPUs: random points of each become text of the device, no pass
 * refuses them, and their launches compute what the nest does as it came, checked by the
 * interpreter, which runs them thread by thread and reports races, barriers that not all threads
 * come to and accesses out of bounds.
 *
 *     test_space_device [kernel | random | FILE.te]
 *
 * SPACE_POINTS says how many points of each there are, SPACE_KERNELS how many random kernels, from
 * number SPACE_FROM on; each SPACE_EVERY-th point is run; 0: none, for kernels of models, as
 * --emit=te writes them.
 *
 * Kernels are those of tests/schedules/space/, and random ones: convolutions with borders, strides,
 * dilation, groups, behind a depthwise one; products of matrices, and batches of them. */
#include "backends/backend.h"
#include "passes/lower/lower.h"
#include "tests/unit/points.h"

enum { MOST_PARAMS = 16, MOST_LAUNCHES = 64 };

static const char *const targets[] = {"opencl", "cuda -arch=sm_80", "cuda -arch=sm_90", "vulkan",
                                      "opencl -device=mali"};
static const char *const files[] = {"tests/schedules/space/kernels.te",
                                    "tests/schedules/space/device.te"};

static bool     had_choice[128]; /* rows of schedule_table */
static uint32_t points;

/* ---- a context a kernel, which keeps nothing -------------------------------------------------- */

static void begin(void)
{
    arena = arena_new(NULL);
    c = ctx_new(arena, diags_new(arena), (OpTable){0});
}

static void end(void)
{
    ctx_free(c);
    arena_free(arena);
}

static const char *errors(void)
{
    StrBuf text = strbuf(c->scratch);

    diag_print(c->diags, DIAG_TEXT, &text);
    return text.n ? text.at : "";
}

/* ---- running ------------------------------------------------------------------------------------- */

/* The same numbers each time, also where results will be. */
static void fill_params(const Func *first, Mem *m, void **at)
{
    for (uint32_t i = 0; i < first->nparams; i++) {
        m[i] = mem_of(first->params[i].buffer);
        fill(first->params[i].buffer, m[i], 77 + i);
        at[i] = m[i].at;
    }
}

static bool same_results(const Func *first, const Mem *want, const Mem *got)
{
    for (uint32_t i = 0; i < first->nparams; i++)
        if (!same(first->params[i].buffer, want[i], got[i]))
            return false;
    return true;
}

/* Constants as the schedule wants them. */
static bool repack(const Sched *s, const Func *first, void **at)
{
    for (uint32_t k = 0; k < s->prepacks.n; k++) {
        uint32_t      i = s->prepacks.at[k].param;
        const Buffer *b = s->f->params[i].buffer;
        Mem           packed = mem_of(b);
        void         *io[2] = {at[i], packed.at};

        for (int64_t n = 0; n < packed.n; n++)
            set(b, packed, n, 99); /* rubbish that must go */
        if (i >= first->nparams || !tir_eval(c, NULL, s->prepacks.at[k].prepack, 2, io, 0, NULL))
            return false;
        at[i] = packed.at;
    }
    return true;
}

/* All functions of the module, one launch after the other. */
static const TirModule *with_host(const TirModule *m)
{
    const Func *all[MOST_LAUNCHES + 1], *f = m->funcs[0];
    const Stmt *launch[MOST_LAUNCHES];
    Arg         args[MOST_PARAMS] = {{0}};
    Func        host = *f;

    for (uint32_t i = 0; i < f->nparams; i++)
        args[i] = (Arg){.buffer = f->params[i].buffer, .offset = idx_const(c->arith, 0)};
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        all[i] = m->funcs[i];
        launch[i] = launch_stmt(c, all[i], args, NO_LOC);
    }
    host.kind = FUNC_HOST;
    host.name = "host";
    host.body = stmt_seq(c, m->nfuncs, launch);
    all[m->nfuncs] = func_new(c, host);
    return tirmod_new(c, m->nfuncs + 1, all);
}

/* What is wrong with the point on its way to text of the device, or NULL. */
static const char *code_of(const Sched *s, const Target *t, const TirModule **m)
{
    static const PassOptions o = {.opt_level = 3, .verify_each = true, .jobs = 1};
    StrBuf                   text = strbuf(c->scratch);
    Func                     f = *s->f;

    if (s->refusal)
        return s->refusal;
    f.kind = FUNC_DEVICE;
    f.name = "kernel";
    f.target = t;
    const Func *one = func_new(c, f);
    *m = run_tir_passes(c, tirmod_new(c, 1, &one), &o, TIR_TO_BOTH);
    if (!*m)
        return "a pass refuses it";
    return t->backend->device->source(c, *m, &text) && text.n ? NULL : "it has no text";
}

/* .. and with what its launches compute. */
static const char *run_code(const Sched *s, const TirModule *m, const Func *first, const Mem *want)
{
    const Func *last = m->funcs[m->nfuncs - 1];
    void       *at[MOST_PARAMS];
    Mem         got[MOST_PARAMS];

    if (last->nparams > MOST_PARAMS || m->nfuncs > MOST_LAUNCHES)
        return "more parameters or launches than this test takes";
    fill_params(first, got, at);
    for (uint32_t i = first->nparams; i < last->nparams; i++)
        at[i] = mem_of(last->params[i].buffer).at;
    if (!repack(s, first, at))
        return "weights are not repacked";
    m = with_host(m);
    if (!tir_eval(c, m, m->funcs[m->nfuncs - 1], last->nparams, at, 0, NULL))
        return "it does not run";
    return same_results(first, want, got) ? NULL : "another result";
}

/* ---- kernels --------------------------------------------------------------------------------------- */

static uint32_t number_of(const char *variable, uint32_t usual)
{
    const char *s = getenv(variable);

    return s ? (uint32_t)atoi(s) : usual;
}

static void note_choice(const Sched *s, const ScheduleRow *row)
{
    for (uint32_t i = 0; i < s->decisions.n; i++)
        if (s->decisions.at[i].n > 1)
            had_choice[row - schedule_table] = true;
}

static void check_kernel(const TeFunc *te, const Target *t, uint64_t number, uint32_t n)
{
    const ScheduleRow *row = schedule_of_te(c, te, t);
    const Func        *first = sched_new(c, t, te)->f;
    Sched             *best = point_of(te, t, row, NULL);
    void              *at[MOST_PARAMS];
    Mem                want[MOST_PARAMS];
    const char        *why;
    const TirModule   *m;
    uint32_t           every = number_of("SPACE_EVERY", 2);

    if (best->refusal) /* no kernel for that rule */
        return;
    note_choice(best, row);
    if (every) {
        fill_params(first, want, at);
        CHECK(tir_eval(c, NULL, first, first->nparams, at, 0, NULL));
    }
    for (uint32_t i = 0; i < n; i++) {
        seed = number * 1000 + i;
        Sched *s = i ? point_of(te, t, row, any) : best;

        check_count++;
        why = code_of(s, t, &m);
        points++;
        if (!why && every && points % every == 0)
            why = run_code(s, m, first, want);
        if (!why)
            continue;
        check_failures++;
        printf("@%s for %s, %s: %s: %s\n%s%s\n", te->name, t->text, row->name, point_text(s), why,
               errors(), getenv("SPACE_STEPS") ? steps_of(s) : "");
        return; /* the error stays with the context */
    }
}

/* ---- random kernels -------------------------------------------------------------------------------- */

static int64_t one_of(uint32_t n, const int64_t *of)
{
    return of[rnd(n)];
}
#define ONE_OF(...) one_of(COUNT(((int64_t[]){__VA_ARGS__})), (int64_t[]){__VA_ARGS__})

typedef struct {
    int64_t kernel, stride, dilation, before, cells; /* of the data */
    int64_t out;
} Side;

static Side random_side(void)
{
    Side s = {.kernel = ONE_OF(1, 1, 2, 3, 3, 5), .stride = ONE_OF(1, 1, 2), .dilation = 1};

    if (s.kernel < 5)
        s.dilation = ONE_OF(1, 1, 1, 2);
    int64_t reach = (s.kernel - 1) * s.dilation + 1;
    s.before = s.kernel > 1 ? rnd(3) : 0;
    s.cells = reach + rnd(14);
    s.out = (s.cells + 2 * s.before - reach) / s.stride + 1;
    return s;
}

/* %pad of %p0, if there is a border; what is read then. */
static const char *print_pad(StrBuf *b, const char *type, int64_t n, int64_t c0, const Side *y,
                             const Side *x)
{
    if (!y->before && !x->before)
        return "p0";
    str_printf(
        b,
        "  %%pad[n<%lld,c<%lld,y<%lld,x<%lld]: %s = select(%lld <= y && y < %lld && %lld <= x "
        "&& x < %lld, %%p0[n,c,y-%lld,x-%lld], %s(0.0))\n",
        (long long)n, (long long)c0, (long long)(y->cells + 2 * y->before),
        (long long)(x->cells + 2 * x->before), type, (long long)y->before,
        (long long)(y->before + y->cells), (long long)x->before, (long long)(x->before + x->cells),
        (long long)y->before, (long long)x->before, type);
    return "pad";
}

/* Plain, in groups, or depthwise with one of 1x1 behind it. */
static void random_conv(StrBuf *b)
{
    bool        half = rnd(2), pair = rnd(4) == 0, fixed = rnd(2);
    const char *type = half ? "f16" : "f32", *read;
    int64_t     n = ONE_OF(1, 1, 2), groups = pair ? ONE_OF(5, 12, 32) : ONE_OF(1, 1, 1, 2, 3);
    int64_t ci = pair ? 1 : ONE_OF(1, 3, 4, 8, 16, 20, 32), co = pair ? 1 : ONE_OF(1, 4, 7, 16, 24);
    int64_t o = groups * co, last = pair ? ONE_OF(4, 13, 20) : o;
    Side    y = random_side(), x = random_side();
    const char *constant = fixed ? " @const" : "";

    str_printf(b,
               "te @conv(%%p0: %s[%lld,%lld,%lld,%lld], %%w: %s[%lld,%lld,%lld,%lld]%s, %%p2: "
               "f32[%lld]",
               type, (long long)n, (long long)(groups * ci), (long long)y.cells, (long long)x.cells,
               type, (long long)o, (long long)ci, (long long)y.kernel, (long long)x.kernel,
               constant, (long long)o);
    if (pair)
        str_printf(b, ", %%w2: %s[%lld,%lld,1,1]%s", type, (long long)last, (long long)o, constant);
    str_printf(b, ") -> (%%%s) {\n", pair ? "out.2" : "out.1");
    read = print_pad(b, type, n, groups * ci, &y, &x);
    str_printf(b, "  %%conv[n<%lld,o<%lld,y<%lld,x<%lld]: f32 = sum[", (long long)n, (long long)o,
               (long long)y.out, (long long)x.out);
    if (!pair)
        str_printf(b, "c<%lld,", (long long)ci);
    str_printf(b, "kh<%lld,kw<%lld] f32(%%%s[n,", (long long)y.kernel, (long long)x.kernel, read);
    if (pair)
        str_add(b, "o");
    else if (groups > 1)
        str_printf(b, "o//%lld*%lld+c", (long long)co, (long long)ci);
    else
        str_add(b, "c");
    str_printf(b, ",y*%lld+kh*%lld,x*%lld+kw*%lld]) * f32(%%w[o,%s,kh,kw])\n", (long long)y.stride,
               (long long)y.dilation, (long long)x.stride, (long long)x.dilation, pair ? "0" : "c");
    char axes[80];
    snprintf(axes, sizeof axes, "i0<%lld,i1<%lld,i2<%lld,i3<%lld", (long long)n, (long long)o,
             (long long)y.out, (long long)x.out);
    str_printf(b, "  %%bias[%s]: f32 = %%conv[i0,i1,i2,i3] + %%p2[i1]\n", axes);
    str_printf(b,
               "  %%out[%s]: f32 = select(%%bias[i0,i1,i2,i3] < 0.0, 0.0, %%bias[i0,i1,i2,i3])\n",
               axes);
    str_printf(b, "  %%out.1[%s]: %s = %s(%%out[i0,i1,i2,i3])\n", axes, type, type);
    if (pair)
        str_printf(
            b,
            "  %%conv.1[n<%lld,o<%lld,y<%lld,x<%lld]: f32 = sum[c<%lld,kh<1,kw<1] "
            "f32(%%out.1[n,c,y,x]) * f32(%%w2[o,c,0,0])\n"
            "  %%out.2[i0<%lld,i1<%lld,i2<%lld,i3<%lld]: f32 = %%conv.1[i0,i1,i2,i3] * 2.0\n",
            (long long)n, (long long)last, (long long)y.out, (long long)x.out, (long long)o,
            (long long)n, (long long)last, (long long)y.out, (long long)x.out);
    str_add(b, "}\n");
}

/* A product of matrices or of batches, its operands as they are multiplied or transposed. */
static void random_product(StrBuf *b)
{
    bool        half = rnd(2), many = rnd(3) == 0, fixed = rnd(2);
    const char *type = half ? "f16" : "f32", *of = many ? "b," : "";
    char        batch[24] = "", by[24] = "";
    int64_t     m = ONE_OF(1, 2, 5, 16, 17, 33, 64), n = ONE_OF(1, 3, 8, 20, 32, 37, 72);
    int64_t     k = ONE_OF(1, 5, 16, 24, 32, 48, 64, 96);
    bool        a_turned = rnd(4) == 0, b_turned = rnd(2);

    if (many) {
        snprintf(batch, sizeof batch, "b<3,");
        snprintf(by, sizeof by, "3,");
    }
    str_printf(b,
               "te @product(%%p0: %s[%s%lld,%lld], %%w: %s[%s%lld,%lld]%s, %%p2: f32[%lld]) -> "
               "(%%out) {\n",
               type, by, (long long)(a_turned ? k : m), (long long)(a_turned ? m : k), type, by,
               (long long)(b_turned ? k : n), (long long)(b_turned ? n : k), fixed ? " @const" : "",
               (long long)n);
    str_printf(b,
               "  %%dense[%sm<%lld,n<%lld]: f32 = sum[k<%lld] f32(%%p0[%s%s]) * f32(%%w[%s%s])\n",
               batch, (long long)m, (long long)n, (long long)k, of, a_turned ? "k,m" : "m,k", of,
               b_turned ? "k,n" : "n,k");
    str_printf(b, "  %%out[%sm<%lld,n<%lld]: f32 = %%dense[%sm,n] + %%p2[n]\n}\n", batch,
               (long long)m, (long long)n, of);
}

/* ---- the tests ------------------------------------------------------------------------------------- */

static const Target *target_of(const char *text)
{
    const Backend *b = backend_find(intern_n(c->strings, text, strcspn(text, " ")));

    return b ? b->parse_target(c, text) : NULL;
}

/* The i-th kernel of a text, for all targets, each in a context of its own; false: there is none.
 */
static bool check_all(const char *file, Bytes text, uint32_t i, const char *only, uint64_t number)
{
    bool last = false;

    for (uint32_t k = 0; k < COUNT(targets) && !last; k++) {
        TeFuncs te = {0};
        Bytes   all = text;

        begin();
        c->target = target_of(targets[k]);
        CHECK(c->target && (text.at || file_map(c->diags, file, &all)));
        CHECK(te_parse_all(c, file, all, &te));
        last = i >= te.n;
        if (!last && (!only || !strcmp(only, te.at[i]->name)))
            check_kernel(te.at[i], c->target, number * COUNT(targets) + k,
                         number_of("SPACE_POINTS", 3));
        end();
    }
    return !last;
}

static const char *wanted;

static void test_files(void)
{
    if (wanted && str_ends(wanted, ".te")) {
        for (uint32_t i = 0; check_all(wanted, (Bytes){0}, i, NULL, i); i++)
            ;
        return;
    }
    for (uint32_t f = 0; f < COUNT(files); f++)
        for (uint32_t i = 0; check_all(files[f], (Bytes){0}, i, wanted, 1000 * f + i); i++)
            ;
}

static void test_random(void)
{
    uint32_t from = number_of("SPACE_FROM", 0), n = number_of("SPACE_KERNELS", 8);

    for (uint32_t i = from; i < from + n && (!wanted || !strcmp(wanted, "random")); i++) {
        Arena *own = arena_new(NULL);
        StrBuf text = strbuf(own);
        int    before = check_failures;

        seed = 7919 * (uint64_t)i + 1;
        rnd(2);
        if (rnd(3))
            random_conv(&text);
        else
            random_product(&text);
        if (getenv("SPACE_STEPS"))
            printf("%s", text.at), fflush(stdout);
        check_all("random", (Bytes){(const uint8_t *)text.at, text.n}, 0, NULL, 100000 + i);
        if (check_failures > before)
            printf("SPACE_FROM=%u SPACE_KERNELS=1:\n%s\n", i, text.at);
        arena_free(own);
    }
}

/* No rule of a GPU computes one number: each has a kernel here for which it has a choice.  What
 * stands behind the first rule for any kernel is that one's own affair. */
static void test_rules(void)
{
    for (uint32_t i = 0; i < schedule_count && !wanted; i++) {
        const ScheduleRow *row = &schedule_table[i];
        bool               chosen = row->cls != CLASS_GPU;

        for (uint32_t k = 0; k < schedule_count; k++)
            chosen = chosen || (had_choice[k] && schedule_table[k].rule == row->rule);
        if (!chosen)
            printf("%s offers no choice\n", row->name);
        CHECK(chosen);
        if (row->cls == CLASS_GPU && !strcmp(row->def, "*"))
            return;
    }
}

int main(int argc, char **argv)
{
    wanted = argc > 1 ? argv[1] : NULL;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* a BUG ends it */
    RUN(test_files);
    RUN(test_random);
    RUN(test_rules);
    printf("%u points\n", points);
    return check_result();
}
