/* The figures of a machine: what is known of it, and rules for the rest (machine.def).
 *
 * A file that was measured says most (file.c); a target without one is known by its CPU's name
 * (cpus.def) or its GPU's (gpus.def), its caches better still where it is the machine of the
 * compile.  Where nobody knows, small cores are taken: blocks that are too small for a cache cost a
 * few per cent, blocks that are too large leave it. */
#include "machine/machine.h"

#include <string.h>

enum { SMALL_L1 = 32768, SMALL_L2 = 262144 };

/* Instructions of warps: no target has others of them, but not those of f16. */
static const IntrinId of_warps[] = {
#define INTRIN(id, text, te)
#define WARP(id, text, layout, te) INTRIN_##id,
#include "ir/tir/intrin.def"
#undef INTRIN
};

static bool has_matrix_unit(const Target *t)
{
    for (uint32_t i = 0; i < COUNT(of_warps); i++)
        if (t->intrin_ops[of_warps[i]])
            return true;
    return false;
}

static const struct {
    const char *arch, *name;
    Machine     m; /* 0: not known */
} cpus[] = {
#define CPU(arch, name, l1_kib, l2_kib, l3_kib, ...) \
    {#arch, name, {.l1 = l1_kib << 10, .l2 = l2_kib << 10, .l3 = l3_kib##ll << 10, __VA_ARGS__}},
#include "machine/cpus.def"
#undef CPU
};

static const struct {
    const char *name;
    Machine     m; /* 0: not known */
} gpus[] = {
#define GPU(name, cores, macs, threads, regs, ...) \
    {name,                                         \
     {.units = cores,                              \
      .unit_macs = macs,                           \
      .unit_threads = threads,                     \
      .unit_regs = regs,                           \
      __VA_ARGS__}},
#include "machine/gpus.def"
#undef GPU
};

const Figure figure_table[] = {
#define MACHINE(type, name, of, unit, least, most, rule, about) \
    {#name,                                                     \
     unit,                                                      \
     about,                                                     \
     FIGURE_OF_##of,                                            \
     offsetof(Machine, name),                                   \
     _Generic((type)0, int64_t: true, default: false),          \
     least,                                                     \
     most},
#include "machine/machine.def"
#undef MACHINE
};

bool figure_counts(const Figure *f, const Target *t)
{
    return f->of == FIGURE_OF_FEATURES || (f->of == FIGURE_OF_GPU) == (t->cls == CLASS_GPU);
}

double figure_get(const Machine *m, uint32_t figure)
{
    const Figure *f = &figure_table[figure];
    const char   *at = (const char *)m + f->offset;

    return f->whole ? (double)*(const int64_t *)at : *(const double *)at;
}

void figure_set(Machine *m, uint32_t figure, double value, Origin from)
{
    const Figure *f = &figure_table[figure];
    char         *at = (char *)m + f->offset;

    if (f->whole)
        *(int64_t *)at = (int64_t)value;
    else
        *(double *)at = value;
    m->from[figure] = (uint8_t)from;
}

static const Machine *known_cpu(const Target *t)
{
    for (size_t i = 0; t->cpu && i < COUNT(cpus); i++)
        if (!strcmp(cpus[i].arch, t->arch) && !strcmp(cpus[i].name, t->cpu))
            return &cpus[i].m;
    return NULL;
}

static const Machine *known_gpu(const Target *t)
{
    for (size_t i = 0; t->gpu && i < COUNT(gpus); i++)
        if (!strcmp(gpus[i].name, t->gpu))
            return &gpus[i].m;
    return NULL;
}

/* What `better` knows takes the place of what is there. */
static void learn(Machine *m, const Machine *better, Origin from)
{
    for (uint32_t i = 0; i < FIGURE_COUNT; i++)
        if (figure_get(better, i) != 0)
            figure_set(m, i, figure_get(better, i), from);
}

static void by_rule(Machine *m, const Target *t)
{
#define MACHINE(type, name, of, unit, least, most, rule, about)      \
    if (FIGURE_OF_##of == FIGURE_OF_FEATURES)                        \
        figure_set(m, FIGURE_##name, (double)(rule), FROM_FEATURES); \
    else if (m->name == 0)                                           \
        figure_set(m, FIGURE_##name, (double)(rule), FROM_RULE);
#include "machine/machine.def"
#undef MACHINE
}

Machine machine_of(const Target *t)
{
    static const Target none = {0};
    Machine             m = {0};

    t = t ? t : &none;
    const Machine *cpu = known_cpu(t), *gpu = known_gpu(t),
                  here = {.l1 = t->l1_bytes, .l2 = t->l2_bytes, .l3 = t->l3_bytes};
    if (cpu)
        learn(&m, cpu, FROM_CPU);
    if (gpu)
        learn(&m, gpu, FROM_GPU);
    learn(&m, &here, FROM_SYSTEM);
    if (t->machine)
        learn(&m, t->machine, FROM_FILE);
    by_rule(&m, t);
    /* A CPU may have more than a target's features make use of. */
    if (m.fma_bytes > 2 * m.vector_bytes)
        m.fma_bytes = 2 * m.vector_bytes;
    /* ... and a GPU more than a target lets a block have. */
    if (t->max_threads && m.block_threads > t->max_threads)
        m.block_threads = t->max_threads;
    if (t->shared_bytes && m.shared_bytes > t->shared_bytes)
        m.shared_bytes = t->shared_bytes;
    m.small = t->small;
    return m;
}

bool has_vectors(const Target *t)
{
    return t && t->vector_bytes >= 16;
}

bool fills_borders(const Target *t)
{
    return !t || t->cls != CLASS_GPU;
}

bool stores_apart(const Target *t)
{
    return t && t->cls == CLASS_GPU;
}

bool shares_rows(const Target *t)
{
    return stores_apart(t) && t->shared_bytes > 0;
}

double fma_rate(const Machine *m, int64_t lanes)
{
    double rate = (double)m->fma_bytes / (double)(lanes * 4);

    return rate > 2 ? 2 : rate > 0 ? rate : 1;
}
