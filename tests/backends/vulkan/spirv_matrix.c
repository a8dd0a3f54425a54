/* Cooperative matrices (SPV_KHR_cooperative_matrix): loads, stores and products, which the threads
 * of a subgroup carry out together once all have come to the instruction.
 *
 * Which elements a thread has is nobody's business, so they are dealt out as no device does: from
 * the last thread to the first, row after row. */
#include "tests/backends/vulkan/spirv.h"

#include <string.h>

enum { ROW_MAJOR = 0, COLUMN_MAJOR = 1 };
enum { USE_A = 0, USE_B = 1, USE_SUM = 2 };
enum { SIGNED_A = 1, SIGNED_B = 2, SIGNED_ALL = 15 };

uint32_t matrix_share(uint32_t rows, uint32_t cols)
{
    return (rows * cols + SPIRV_SUBGROUP - 1) / SPIRV_SUBGROUP;
}

bool matrix_has(Opcode op)
{
    return op == OpCooperativeMatrixLoadKHR || op == OpCooperativeMatrixStoreKHR ||
           op == OpCooperativeMatrixMulAddKHR;
}

/* An element of the value with that id, by its number in the order of rows. */
static uint64_t *element(Run *r, Thread *first, uint32_t id, uint32_t e)
{
    Thread *t = first + SPIRV_SUBGROUP - 1 - e % SPIRV_SUBGROUP;

    return value_at(r, t, id) + e / SPIRV_SUBGROUP;
}

static const Type *matrix_of(Run *r, uint32_t id)
{
    static const Type none = {.op = OpTypeCooperativeMatrixKHR};
    const Type       *t = type_of(r, id);

    if (t->op == OpTypeCooperativeMatrixKHR)
        return t;
    run_fail(r, "%%%u is no matrix", id);
    return &none;
}

/* ---- memory -------------------------------------------------------------------------------------- */

/* Where a matrix lies: operands of a load, or of a store, from `pointer` and `layout` on. */
typedef struct {
    uint32_t pointer, layout;
    bool     writes;
} Place;

/* Threads agree on where it lies. */
static void check_uniform(Run *r, Thread *first, const Place *p)
{
    const uint64_t *pointer = value_at(r, first, operand(r, p->pointer));
    const uint64_t *stride = value_at(r, first, operand(r, p->layout + 1));

    for (uint32_t i = 1; i < SPIRV_SUBGROUP && !r->error; i++) {
        Thread         *t = first + i;
        const uint64_t *own = value_at(r, t, operand(r, p->pointer));
        const uint64_t  steps = *value_at(r, t, operand(r, p->layout + 1));

        r->now = t;
        if (own[0] != pointer[0] || own[1] != pointer[1])
            run_fail(r, "another pointer than thread %u has, %lld bytes from it", first->number,
                     (long long)(own[0] - pointer[0]));
        else if (steps != *stride)
            run_fail(r, "another stride than thread %u has: %llu, not %llu", first->number,
                     (unsigned long long)steps, (unsigned long long)*stride);
    }
    r->now = first;
}

/* Vulkan: pointer and stride are multiples of 16 bytes, or of what a row takes if that is less. */
static void check_border(Run *r, uint64_t address, uint64_t stride, uint64_t row)
{
    const uint64_t border = row < 16 ? row : 16;

    if (address % border)
        run_fail(r, "address %#llx of a matrix is no multiple of %llu bytes",
                 (unsigned long long)address, (unsigned long long)border);
    else if (stride % border)
        run_fail(r, "a stride of %llu bytes is no multiple of %llu", (unsigned long long)stride,
                 (unsigned long long)border);
}

static bool is_place(Run *r, const Type *pointer, const Type *what, const Place *p)
{
    const uint32_t id = operand(r, p->pointer), layout = constant_at(r, operand(r, p->layout));
    const bool     shared = pointer->storage == STORAGE_WORKGROUP;

    if (pointer->op != OpTypePointer || !component_of(what)->bits || !what->bytes ||
        what->op == OpTypeCooperativeMatrixKHR)
        run_fail(r, "%%%u does not point to a number or a vector", id);
    else if (!shared && pointer->storage != STORAGE_PHYSICAL)
        run_fail(r, "a matrix in memory of storage class %u", pointer->storage);
    else if (r->m.ids[id].op != OpAccessChain)
        run_fail(r, "%%%u does not point into an array", id);
    else if (layout != ROW_MAJOR && layout != COLUMN_MAJOR)
        run_fail(r, "layout %u", layout);
    else if (operand_count(r) < p->layout + 2)
        run_fail(r, "a matrix in memory without a stride");
    else if (type_of(r, operand(r, p->layout + 1))->op != OpTypeInt)
        run_fail(r, "a stride that is no whole number");
    return !r->error;
}

static void access_matrix(Run *r, Thread *first, uint32_t id, const Place *p)
{
    const Type    *m = matrix_of(r, id), *pointer = type_of(r, operand(r, p->pointer));
    const Type    *what = pointer->op == OpTypePointer ? pointer->of : pointer;
    const uint64_t bytes = m->of ? m->of->bytes : 0;

    if (r->error || !is_place(r, pointer, what, p))
        return;
    check_uniform(r, first, p);
    const bool      rows = constant_at(r, operand(r, p->layout)) == ROW_MAJOR;
    const uint64_t *at = value_at(r, first, operand(r, p->pointer));
    const uint64_t  stride = *value_at(r, first, operand(r, p->layout + 1)) * what->bytes;
    check_border(r, at[0], stride, (rows ? m->cols : m->rows) * bytes);
    if (!access_allowed(r, pointer, at[0], p->layout + 2))
        return;
    for (uint32_t e = 0; e < m->rows * m->cols && !r->error; e++) {
        const uint32_t i = e / m->cols, j = e % m->cols, line = rows ? i : j, in = rows ? j : i;
        const uint64_t one[2] = {at[0] + line * stride + in * bytes, at[1]};
        uint8_t       *cell = region_at(r, one, bytes, p->writes);
        uint64_t      *v = element(r, first, id, e);

        if (cell && p->writes)
            memcpy(cell, v, bytes);
        else if (cell)
            *v = 0, memcpy(v, cell, bytes);
    }
}

/* ---- products ------------------------------------------------------------------------------------ */

static bool is_number(const Type *t, Opcode op, uint32_t bits)
{
    return t->op == op && t->bits == bits;
}

static bool is_product(Run *r, const Type *a, const Type *b, const Type *c, uint32_t flags)
{
    if (a->use != USE_A || b->use != USE_B || c->use != USE_SUM) {
        run_fail(r, "matrices of uses %u, %u and %u", a->use, b->use, c->use);
        return false;
    }
    if (a->rows != c->rows || b->cols != c->cols || a->cols != b->rows) {
        run_fail(r, "a product of %u x %u and %u x %u, added to %u x %u", a->rows, a->cols, b->rows,
                 b->cols, c->rows, c->cols);
        return false;
    }
    const bool real = is_number(a->of, OpTypeFloat, 16) && is_number(b->of, OpTypeFloat, 16) &&
                      c->of->op == OpTypeFloat && c->of->bits <= 32;
    const bool whole = is_number(a->of, OpTypeInt, 8) && is_number(b->of, OpTypeInt, 8) &&
                       is_number(c->of, OpTypeInt, 32);
    if (!real && !whole)
        run_fail(r, "a product of numbers of %u, %u and %u bits", a->of->bits, b->of->bits,
                 c->of->bits);
    else if (flags & ~(uint32_t)SIGNED_ALL || (real && flags))
        run_fail(r, "operands %#x of a product", flags);
    return !r->error;
}

static int64_t byte_of(uint64_t v, bool is_signed)
{
    return is_signed ? signed_of(8, v) : (int64_t)v;
}

/* Sums of floats are rounded once, as the interpreter of TIR has them (ir/tir/fragment.c). */
static void multiply(Run *r, Thread *first)
{
    const uint32_t ids[] = {operand(r, 2), operand(r, 3), operand(r, 4), operand(r, 1)};
    const uint32_t flags = operand(r, 5);
    const Type    *a = matrix_of(r, ids[0]), *b = matrix_of(r, ids[1]), *c = matrix_of(r, ids[2]);

    if (matrix_of(r, ids[3]) != c)
        run_fail(r, "a sum of another type than what is added to");
    if (r->error || !is_product(r, a, b, c, flags))
        return;
    for (uint32_t e = 0; e < c->rows * c->cols; e++) {
        const uint32_t i = e / c->cols, j = e % c->cols, bits = c->of->bits;
        const uint64_t sum = *element(r, first, ids[2], e);
        double         real = 0;
        uint64_t       whole = sum;

        for (uint32_t k = 0; k < a->cols; k++) {
            const uint64_t x = *element(r, first, ids[0], i * a->cols + k);
            const uint64_t y = *element(r, first, ids[1], k * b->cols + j);
            if (c->of->op == OpTypeFloat)
                real += real_of(16, x) * real_of(16, y);
            else
                whole += (uint64_t)(byte_of(x, flags & SIGNED_A) * byte_of(y, flags & SIGNED_B));
        }
        *element(r, first, ids[3], e) = c->of->op == OpTypeFloat
                                            ? of_real(bits, real + real_of(bits, sum))
                                            : cut_to(bits, whole);
    }
}

void matrix_step(Run *r, Thread *first)
{
    r->now = first;
    switch (r->m.words[r->at] & 0xffff) {
    case OpCooperativeMatrixLoadKHR:
        access_matrix(r, first, operand(r, 1), &(Place){.pointer = 2, .layout = 3});
        return;
    case OpCooperativeMatrixStoreKHR:
        access_matrix(r, first, operand(r, 1), &(Place){.layout = 2, .writes = true});
        return;
    default: multiply(r, first);
    }
}
