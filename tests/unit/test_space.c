/* The spaces of schedule rules: random points of each are legal and compute what the nest does as
 * it came, checked by the interpreter; the text of the decisions gives the same steps again. */
#include "tests/unit/points.h"

/* Nothing is too short for a second thread, so that loops are divided. */
static const Machine cheap_threads = {.fma_bytes = 64, .macs_ns = 0.01, .sync_ns = 1};

static const Target targets[] = {
    {.text = "small caches, 32 bytes",
     .vector_bytes = 32,
     .machine = &cheap_threads,
     .vector_regs = 16,
     .has_fma = true,
     .intrin_ops = {[INTRIN_DOT4_UI] = 4},
     .l1_bytes = 2048,
     .l2_bytes = 8192,
     .max_threads = 1},
    {.text = "large caches, 64 bytes",
     .vector_bytes = 64,
     .machine = &cheap_threads,
     .vector_regs = 32,
     .has_fma = true,
     .fma_mem_splat = true,
     .intrin_ops = {[INTRIN_DOT4_UI] = 1},
     .l1_bytes = 32768,
     .l2_bytes = 1 << 20,
     .max_threads = 1},
};

/* ---- running ------------------------------------------------------------------------------------- */

/* The output, with constants repacked as the schedule wants them. */
static Mem run_kernel(const Func *f, const Func *first, const Sched *s)
{
    void *at[8];
    Mem   out = {0};

    for (uint32_t i = 0; i < f->nparams; i++) {
        const Buffer *b = f->params[i].buffer, *was = first->params[i].buffer;

        out = mem_of(was);
        fill(was, out, 77 + i);
        for (uint32_t k = 0; s && k < s->prepacks.n; k++) {
            if (s->prepacks.at[k].param != i)
                continue;
            Mem packed = mem_of(b);
            for (int64_t n = 0; n < packed.n; n++)
                set(b, packed, n, 99); /* rubbish that must go */
            void *io[2] = {out.at, packed.at};
            CHECK(tir_eval(c, NULL, s->prepacks.at[k].prepack, 2, io, 0, NULL));
            out = packed;
        }
        at[i] = out.at;
    }
    CHECK(tir_eval(c, NULL, f, f->nparams, at, 0, NULL));
    return out;
}

/* ---- points --------------------------------------------------------------------------------------- */

static bool offers(const Sched *s)
{
    for (uint32_t i = 0; i < s->decisions.n; i++)
        if (s->decisions.at[i].n > 1)
            return true;
    return false;
}

/* SPACE_POINTS=200: so many points of each space.  `chosen`: rules that had a choice. */
static bool check_kernel(const TeFunc *te, const Target *t, uint64_t number, Map *chosen)
{
    const ScheduleRow *row = schedule_of_te(c, te, t);
    Sched             *best = point_of(te, t, row, NULL);
    const Func        *first = sched_new(c, t, te)->f;
    const Buffer      *out = first->params[first->nparams - 1].buffer;
    Mem                want = run_kernel(first, first, NULL);
    const char        *more = getenv("SPACE_POINTS");
    uint32_t           points = more ? (uint32_t)atoi(more) : 4;

    for (uint32_t i = 0; i < points && !best->refusal; i++) {
        seed = number * 1000 + i;
        Sched      *s = i ? point_of(te, t, row, any) : best;
        const char *text = point_text(s);
        bool        ok = !s->refusal && same(out, want, run_kernel(s->f, first, s));
        Sched      *again = sched_new(c, t, te);

        if (!ok)
            printf("@%s for %s: %s\n%s%s\n", te->name, t->text, text,
                   s->refusal ? s->refusal : "another result\n", steps_of(s));
        CHECK(ok);
        CHECK(sched_replay(again, row->rule, text));
        CHECK_STR(steps_of(again), steps_of(s));
    }
    if (!best->refusal && offers(best))
        map_put(chosen, PTR_KEY(intern(c->strings, row->name)), chosen);
    return !best->refusal && best->decisions.n > 0;
}

/* No rule of a CPU computes one number: each has a kernel here for which it has a choice. */
static void check_rules(const Map *chosen)
{
    for (uint32_t i = 0; i < schedule_count; i++) {
        const ScheduleRow *row = &schedule_table[i];

        if (row->cls != CLASS_CPU)
            continue;
        if (!map_get(chosen, PTR_KEY(intern(c->strings, row->name))))
            printf("%s offers no choice\n", row->name);
        CHECK(map_get(chosen, PTR_KEY(intern(c->strings, row->name))) != NULL);
    }
}

static void test_points(void)
{
    Bytes   text;
    TeFuncs te = {0};
    Map    *chosen = map_new(arena);

    CHECK(file_map(c->diags, "tests/schedules/space/kernels.te", &text));
    CHECK(te_parse_all(c, "kernels.te", text, &te));
    for (uint32_t i = 0; i < te.n; i++) {
        uint32_t decided = 0; /* Winograd's blocks, a pair's sizes fit one of the targets only */

        for (uint32_t k = 0; k < COUNT(targets); k++) {
            c->target = &targets[k];
            decided += check_kernel(te.at[i], &targets[k], i * COUNT(targets) + k, chosen);
            arena_reset(c->scratch);
        }
        CHECK(decided > 0);
    }
    check_rules(chosen);
}

int main(void)
{
    arena = arena_new(NULL);
    c = ctx_new(arena, diags_new(arena), (OpTable){0});
    RUN(test_points);
    ctx_free(c);
    arena_free(arena);
    return check_result();
}
