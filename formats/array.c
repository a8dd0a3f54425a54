/* Arrays: elements of less than 8 bits, packed and not.
 *
 * Packed, as ONNX stores them, a byte holds two or four, the first in the low bits; not packed, as
 * ml_dtypes stores them, it holds one, in its low bits. */
#include "formats/formats.h"

static size_t elements(const Array *v)
{
    size_t n = 1;

    for (uint32_t i = 0; i < v->ndim; i++)
        n *= (size_t)v->dims[i];
    return n;
}

Bytes array_unpacked(Arena *a, const Array *v)
{
    size_t   n = elements(v), in_byte = 8u / v->bits;
    uint8_t *out;

    if (v->bits >= 8)
        return v->data;
    out = arena_array(a, n + 1, 1);
    for (size_t i = 0; i < n; i++)
        out[i] = v->data.at[i / in_byte] >> (i % in_byte * v->bits) & ((1 << v->bits) - 1);
    return (Bytes){out, n};
}

Bytes array_packed(Arena *a, Bytes cells, uint8_t bits)
{
    size_t   in_byte = 8u / bits, n = (cells.n + in_byte - 1) / in_byte;
    uint8_t *out = arena_array(a, n + 1, 1);

    for (size_t i = 0; i < cells.n; i++)
        out[i / in_byte] |= (uint8_t)((cells.at[i] & ((1 << bits) - 1)) << (i % in_byte * bits));
    return (Bytes){out, n};
}
