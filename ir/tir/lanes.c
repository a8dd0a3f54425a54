/* Instructions by which the threads of a warp combine a number of each to one that all of them get:
 *
 *     for %l < 32 reduce { %r[] = %r[] + %part[%w, %l] }  ->  %r[] = warp32_sum(%part[%w, %x],
 * %r[])
 *
 * Thread %x gives the cell of the round %x.  The nest is run by all threads of the warp alike, so
 * each of them would have come to every cell; now each comes to one, which often is its own (the
 * pass warp_reduce).
 *
 * The order is a tree: thread t combines what it has with what thread t + n/2 has, then with that
 * of t + n/4, up to t + 1; the first thread's result is everyone's.  A device may do the same by
 * exchanges, t with t ^ n/2, where either order of two numbers gives the same. */
#include "ir/scalar.h"
#include "ir/tir/intrin.h"

/* The row's step (comb_apply) of two numbers. */
static Scalar combine(const Intrin *row, Scalar a, Scalar b)
{
    const DType t = row->result.dtype;

    if (row->step->kind != PRIM_SELECT)
        return scalar_bin(row->step->kind, t, a, b);
    return scalar_bin(PRIM_LT, t, a, b).i ? b : a;
}

void lanes_compute(const Intrin *row, uint8_t (*const *kid)[WARP_PART], uint8_t (*out)[WARP_PART])
{
    const DType    t = row->result.dtype;
    const uint32_t threads = warp_threads(row->warp);
    Scalar         has[WARP_MOST];

    for (uint32_t i = 0; i < threads; i++)
        has[i] = scalar_get(t, kid[0][i]);
    for (uint32_t half = threads / 2; half; half /= 2)
        for (uint32_t i = 0; i < half; i++)
            has[i] = combine(row, has[i], has[i + half]);
    for (uint32_t i = 0; i < threads; i++)
        scalar_put(t, out[i], combine(row, scalar_get(t, kid[1][i]), has[0]));
}
