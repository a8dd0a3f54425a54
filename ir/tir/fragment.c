/* Instructions of a warp: which part of a product each of its threads has (a fragment of each
 * matrix), and what they compute together.
 *
 * A thread of the warp is (x, y), number x + y * (threads along x).  What it gives or gets is a few
 * pieces of a matrix, which lie side by side in its registers: numbers of the result, of an operand
 * as many bytes of the sum as divide an instruction's evenly among the pieces.  A layout says of
 * each matrix which digit of a row's, column's or piece's number is whose:
 *
 *     rows {OWN, 2, 2}, {BY_Y, 1, 8}     row = 8 * (own / 2 % 2) + y % 8
 *
 * A matrix that has no digit of x or y is with all threads that differ in it alone. */
#include "ir/tir/intrin.h"

#include <string.h>

/* NVIDIA (PTX manual, mma.m16n8k16 and its kin): pieces are words of 32 bits.  AMD's CDNA (v_mfma_*
 * of 16x16, the instruction sets' guides): of 64 threads, pieces are all that a thread has of a
 * side.  RDNA 3 (v_wmma_*): both halves of a warp have all rows, pieces are half of a row's 16
 * steps. RDNA 4: each half has one of these.
 *
 * Opaque: SIMD-groups of Metal, which have 8x8 numbers, and cooperative matrices of Vulkan's
 * subgroups of 32.  Devices keep who has what to themselves, so instructions load, fill and store
 * whole matrices; these are parts that lie side by side in memory, so that what threads do by them
 * is that. */
static const WarpLayout layouts[] = {
    [LAYOUT_NVIDIA] = {4,
                       8,
                       true,
                       false,
                       {{{{OWN, 1, 2}, {BY_Y, 1, 8}}, {{OWN, 2, 2}, {BY_X, 1, 4}}},
                        {{{BY_Y, 1, 8}, {OWN, 1, 1}}, {{OWN, 1, 2}, {BY_X, 1, 4}}},
                        {{{OWN, 2, 2}, {BY_Y, 1, 8}}, {{BY_X, 1, 4}, {OWN, 1, 2}}}}},
    [LAYOUT_CDNA] = {16,
                     4,
                     false,
                     false,
                     {{{{BY_X, 1, 16}, {OWN, 1, 1}}, {{BY_Y, 1, 4}, {OWN, 1, 1}}},
                      {{{BY_X, 1, 16}, {OWN, 1, 1}}, {{BY_Y, 1, 4}, {OWN, 1, 1}}},
                      {{{BY_Y, 1, 4}, {OWN, 1, 4}}, {{BY_X, 1, 16}, {OWN, 1, 1}}}}},
    [LAYOUT_RDNA3] = {16,
                      2,
                      false,
                      false,
                      {{{{BY_X, 1, 16}, {OWN, 1, 1}}, {{OWN, 1, 2}, {OWN, 1, 1}}},
                       {{{BY_X, 1, 16}, {OWN, 1, 1}}, {{OWN, 1, 2}, {OWN, 1, 1}}},
                       {{{OWN, 1, 8}, {BY_Y, 1, 2}}, {{BY_X, 1, 16}, {OWN, 1, 1}}}}},
    [LAYOUT_RDNA4] = {16,
                      2,
                      false,
                      false,
                      {{{{BY_X, 1, 16}, {OWN, 1, 1}}, {{BY_Y, 1, 2}, {OWN, 1, 1}}},
                       {{{BY_X, 1, 16}, {OWN, 1, 1}}, {{BY_Y, 1, 2}, {OWN, 1, 1}}},
                       {{{BY_Y, 1, 2}, {OWN, 1, 8}}, {{BY_X, 1, 16}, {OWN, 1, 1}}}}},
    [LAYOUT_SIMDGROUP] = {4,
                          8,
                          false,
                          true,
                          {{{{BY_Y, 1, 8}, {OWN, 1, 1}}, {{BY_X, 1, 4}, {OWN, 1, 1}}},
                           {{{BY_Y, 1, 8}, {OWN, 1, 1}}, {{BY_X, 1, 4}, {OWN, 1, 1}}},
                           {{{BY_Y, 1, 8}, {OWN, 1, 1}}, {{BY_X, 1, 4}, {OWN, 1, 2}}}}},
    [LAYOUT_COOPERATIVE] =
        {2,
         16,
         false,
         true,
         {{{{BY_Y, 1, 16}, {OWN, 1, 1}}, {{BY_X, 1, 2}, {OWN, 1, 1}}},
          {{{BY_Y, 1, 16}, {OWN, 1, 1}}, {{BY_X, 1, 2}, {OWN, 1, 1}}},
          {{{BY_Y, 1, 16}, {OWN, 1, 1}}, {{BY_X, 1, 2}, {OWN, 1, 8}}}}},
    [LAYOUT_LANES32] = {.x = 32, .y = 1},
    [LAYOUT_LANES64] = {.x = 64, .y = 1},
};

const WarpLayout *warp_layout(LayoutId id)
{
    return &layouts[id];
}

uint32_t warp_threads(const WarpLayout *l)
{
    return l->x * l->y;
}

uint32_t warp_side(const WarpLayout *l, Matrix m, uint32_t coordinate)
{
    return l->of[m][coordinate][0].size * l->of[m][coordinate][1].size;
}

uint32_t warp_own(const WarpLayout *l, Matrix m, uint32_t coordinate)
{
    uint32_t n = 1;

    for (uint32_t i = 0; i < 2; i++)
        n *= l->of[m][coordinate][i].from == OWN ? l->of[m][coordinate][i].size : 1;
    return n;
}

uint32_t warp_pieces(const WarpLayout *l, Matrix m)
{
    return warp_own(l, m, 0) * warp_own(l, m, 1);
}

uint32_t warp_piece_bytes(const Intrin *row, Matrix m)
{
    return (uint32_t)row->extent[2] * dtype_bytes(row->operand[m].dtype) /
           warp_side(row->warp, m, 1);
}

/* ---- what it computes ------------------------------------------------------------------------------ */

enum { MATRIX_ROWS = 8 }; /* that ldmatrix hands out, of four words */

static void gather_rows(const Intrin *row, uint8_t (*in)[WARP_PART], uint8_t (*out)[WARP_PART])
{
    const uint32_t threads = warp_threads(row->warp), x = row->warp->x;

    for (uint32_t t = 0; t < threads; t++)
        for (uint32_t i = 0; i < row->result.cells / threads; i++)
            memcpy(out[t] + 4 * i, in[MATRIX_ROWS * i + t / x] + 4 * (t % x), 4);
}

/* Who has it: a thread, and which of its pieces. */
typedef struct {
    uint32_t at[3]; /* by WarpFrom */
} Holder;

static void add_digits(const WarpDigit digit[2], uint32_t at, Holder *h, bool *set)
{
    for (uint32_t i = 2; i-- > 0;) {
        const WarpDigit d = digit[i];
        if (d.size > 1 && !set[d.from]) {
            h->at[d.from] = 0;
            set[d.from] = true;
        }
        h->at[d.from] += at % d.size * d.over;
        at /= d.size;
    }
}

/* Whose the piece is; of those that have it alike that one of the threads that has x and y of `by`.
 */
static Holder holder(const WarpLayout *l, Matrix m, uint32_t row, uint32_t column, const Holder *by)
{
    Holder h = {{by ? by->at[BY_X] : 0, by ? by->at[BY_Y] : 0, 0}};
    bool   set[3] = {false};

    add_digits(l->of[m][0], row, &h, set);
    add_digits(l->of[m][1], column, &h, set);
    return h;
}

/* A number of an operand's row or column. */
static const uint8_t *number(const Intrin *row, Matrix m, uint8_t (*part)[WARP_PART], uint32_t at,
                             uint32_t k, const Holder *by)
{
    const uint32_t piece = warp_piece_bytes(row, m), byte = k * dtype_bytes(row->operand[m].dtype);
    const Holder   h = holder(row->warp, m, at, byte / piece, by);

    return part[row->warp->x * h.at[BY_Y] + h.at[BY_X]] + h.at[OWN] * piece + byte % piece;
}

static void multiply(const Intrin *row, uint8_t (*const *kid)[WARP_PART], uint8_t (*out)[WARP_PART])
{
    const DType    a = row->operand[0].dtype, b = row->operand[1].dtype, c = row->result.dtype;
    const uint32_t rows = (uint32_t)row->extent[0], columns = (uint32_t)row->extent[1],
                   nk = (uint32_t)row->extent[2];

    for (uint32_t cell = 0; cell < rows * columns; cell++) {
        const uint32_t i = cell / columns, j = cell % columns;
        const Holder   h = holder(row->warp, MATRIX_C, i, j, NULL);
        const uint32_t t = row->warp->x * h.at[BY_Y] + h.at[BY_X], at = h.at[OWN] * dtype_bytes(c);
        double         real = 0;
        uint32_t       whole = 0;

        for (uint32_t k = 0; k < nk; k++) {
            const uint8_t *x = number(row, MATRIX_A, kid[0], i, k, &h);
            const uint8_t *y = number(row, MATRIX_B, kid[1], j, k, &h);
            if (dtype_is_float(c))
                real += dtype_get_f(a, x) * dtype_get_f(b, y);
            else
                whole += (uint32_t)(dtype_get_i(a, x) * dtype_get_i(b, y));
        }
        if (dtype_is_float(c))
            dtype_put_f(c, out[t] + at, real + dtype_get_f(c, kid[2][t] + at));
        else
            dtype_put_i(c, out[t] + at,
                        (int32_t)(whole + (uint32_t)dtype_get_i(c, kid[2][t] + at)));
    }
}

void warp_compute(const Intrin *row, uint8_t (*const *kid)[WARP_PART], uint8_t (*out)[WARP_PART])
{
    if (row->lanes)
        lanes_compute(row, kid, out);
    else if (row->sums)
        multiply(row, kid, out);
    else
        gather_rows(row, kid[0], out);
}
