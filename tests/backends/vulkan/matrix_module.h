/* A module with cooperative matrices, put together word by word, as it should be or with a fault.
 *
 * A workgroup is two subgroups.  Each multiplies a tile of its own by two that both have, adds that
 * to a number, doubles it, and leaves it in shared memory, from where the other one's threads copy
 * it:
 *
 *     out[s][i][16 t + j] = 2 (start[t] + sum over k of a[s][i][k] b[t][k][j])
 *
 * Push constants are the addresses of a, b and out.  Tiles of `a` are in memory of numbers of 16
 * bits, those of `b` in memory of pairs of words, so that strides count other things than elements.
 */
#ifndef TVMCC_TESTS_MATRIX_MODULE_H
#define TVMCC_TESTS_MATRIX_MODULE_H

#include <stdbool.h>
#include <stdint.h>

enum { SIDE = 16, SUBGROUPS = 2, TILES = 2, TILE_BYTES = SIDE * 32, MODULE_WORDS_MOST = 3072 };

typedef enum {
    NO_FAULT,
    STAYS_AWAY,    /* a thread goes around a load */
    LEAVES,        /* .. or has returned */
    OTHER_STRIDE,  /* a thread has another one */
    OTHER_POINTER, /* .. */
    OFF_BORDER,    /* a pointer to the second number */
    ODD_STRIDE,    /* no multiple of 16 bytes */
    NO_STRIDE,     /* the operand is left out */
    NO_ALIGNED,    /* an access by an address does not say how that is aligned */
    OTHER_USES,    /* b a */
    OTHER_MODEL,   /* memory model GLSL450 */
    PRIVATE,       /* a store to shared memory is not NonPrivatePointer */
    WEAK_BARRIER,  /* it makes nothing visible */
    DIVERGENT,     /* some threads have returned before the barrier */
    HALF_STORED,   /* what nobody has stored to shared memory is read */
    SHORT,         /* the last tile of `b` ends behind its memory */
    NARROW,        /* subgroups of 16 threads */
    ENDLESS,       /* a loop that counts by 0 */
    UNKNOWN,       /* an instruction that no table has */
    UNENDED,       /* the last words are missing */
    FAULTS
} Fault;

/* What is multiplied. */
typedef struct {
    bool     bytes;     /* of 8 bits, 32 steps, summed in 32 bits; else floats of 16, 16 steps */
    uint32_t layout[2]; /* of a, of b: 0 by rows, 1 by columns */
    uint32_t signs;     /* which of a, 1, and b, 2, has signs */
    Fault    fault;
} Variant;

/* What sums begin with; products of f16 are rounded to f16 once they are doubled. */
static inline double module_start(bool bytes, uint32_t tile)
{
    return bytes ? (tile ? 3 : 5) : tile ? 0.25 : 0.5;
}

/* The module's words; how many. */
uint32_t module_build(const Variant *v, uint32_t out[MODULE_WORDS_MOST]);

#endif
