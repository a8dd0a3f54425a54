/* Sizes and rates of a target.  Where a target does not say how large its caches are, those of
 * small cores are taken: blocks that are too small for a cache cost a few per cent, blocks that are
 * too large leave it. */
#include "machine/machine.h"

enum { SMALL_L1 = 32768, SMALL_L2 = 262144, L2_IN_L3 = 8 };

/* Two vectors a cycle at 2 to 4 GHz; wide vectors are often two halves, or run slower. */
static double macs_ns(int64_t vector_bytes)
{
    return vector_bytes >= 32 ? 50 : vector_bytes >= 16 ? 25 : 5;
}

Machine machine_of(const Target *t)
{
    static const Target none = {0};
    Machine             m;

    t = t ? t : &none;
    m = (Machine){.vector_bytes = t->vector_bytes,
                  .fma_bytes = t->fma_bytes,
                  .regs = t->vector_regs ? t->vector_regs : 16,
                  .fma_mem_splat = t->fma_mem_splat,
                  .l1 = t->l1_bytes ? t->l1_bytes : SMALL_L1,
                  .l2 = t->l2_bytes ? t->l2_bytes : SMALL_L2,
                  .l3 = t->l3_bytes,
                  .macs_ns = macs_ns(t->vector_bytes),
                  .stream_ns = 80,
                  .sync_ns = t->sync_ns};
    m.l3 = m.l3 ? m.l3 : L2_IN_L3 * m.l2;
    return m;
}

bool has_vectors(const Target *t)
{
    return t && t->vector_bytes >= 16;
}

double fma_rate(const Machine *m, int64_t lanes)
{
    double rate = (double)m->fma_bytes / (double)(lanes * 4);

    return rate > 2 ? 2 : rate > 0 ? rate : 1;
}
