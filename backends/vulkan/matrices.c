/* Cooperative matrices of a subgroup (SPV_KHR_cooperative_matrix): a variable for each, which is
 * loaded from shared memory, and stored there, whole.
 *
 *     %20 = OpCooperativeMatrixLoadKHR %a16x16 %shared_at %column_major %stride NonPrivatePointer
 */
#include "backends/vulkan/vulkan.h"

/* What the memory holds between lines: rows one behind the other, or columns. */
enum { ROW_MAJOR, COLUMN_MAJOR };

static uint32_t type_of(Gen *g, const Intrin *row, Matrix of)
{
    const DType    t = of == MATRIX_C ? row->result.dtype : row->operand[of].dtype;
    const uint32_t number = dtype_eq(t, DT_F16) ? spv_float16(g->s) : spv_type(g->s, t);
    const int64_t  m = row->extent[0], n = row->extent[1], k = row->extent[2];

    return of == MATRIX_A   ? spv_matrix(g->s, number, m, k, MATRIX_A)
           : of == MATRIX_B ? spv_matrix(g->s, number, k, n, MATRIX_B)
                            : spv_matrix(g->s, number, m, n, MATRIX_C);
}

static uint32_t type_in(Gen *g, const Buffer *b)
{
    Matrix        of;
    const Intrin *row = matrix_row(g->matrices, b, &of);

    return type_of(g, row, of);
}

/* ---- matrices ------------------------------------------------------------------------------------ */

void emit_matrices(Gen *g, const Buffer *b)
{
    Matrix         of;
    const bool     used = matrix_row(g->matrices, b, &of) != NULL;
    const int64_t  n = used ? matrix_count(g->matrices, b) : 0;
    const uint32_t type = n ? spv_pointer(g->s, SpvFunction, type_in(g, b)) : 0;

    for (int64_t i = 0; i < n; i++) { /* ids in a row */
        uint32_t id = spv_id(g->s);
        if (i == 0)
            emit_know(g, BUFFER_KEY(b), id);
        PUT(g->s, &g->vars, OpVariable, type, id, SpvFunction);
    }
}

static uint32_t variable(Gen *g, const MatrixRef *r)
{
    return emit_known(g, BUFFER_KEY(r->buffer)) + (uint32_t)r->at;
}

static uint32_t value(Gen *g, const MatrixRef *r)
{
    return OP1(g, OpLoad, type_in(g, r->buffer), variable(g, r));
}

static uint32_t layout(Gen *g, Matrix of)
{
    return spv_int(g->s, DT_U32, of == MATRIX_B ? COLUMN_MAJOR : ROW_MAJOR);
}

/* In cells of the array. */
static uint32_t apart(Gen *g, const MatrixOp *op)
{
    return spv_int(g->s, DT_U32, op->apart / panel_numbers(g, op->memory));
}

void emit_matrix_op(Gen *g, const MatrixOp *op)
{
    Matrix         of;
    const Intrin  *row = matrix_row(g->matrices, op->it.buffer, &of);
    const uint32_t type = type_of(g, row, of);
    uint32_t       a, b, v = 0;

    switch (op->kind) {
    case MATRIX_FILL: v = OP1(g, OpCompositeConstruct, type, emit_prim(g, op->value)); break;
    case MATRIX_LOAD:
        a = emit_cell(g, op->memory, op->first);
        v = emit_op(g, OpCooperativeMatrixLoadKHR, type, 4,
                    (uint32_t[]){a, layout(g, of), apart(g, op), SpvNonPrivatePointer});
        break;
    case MATRIX_MULTIPLY:
        a = value(g, &op->factor[0]);
        b = value(g, &op->factor[1]);
        v = OP3(g, OpCooperativeMatrixMulAddKHR, type, a, b, value(g, &op->it));
        break;
    case MATRIX_STORE:
        a = emit_cell(g, op->memory, op->first);
        PUT(g->s, &g->code, OpCooperativeMatrixStoreKHR, a, value(g, &op->it), layout(g, of),
            apart(g, op), SpvNonPrivatePointer);
        return;
    }
    PUT(g->s, &g->code, OpStore, variable(g, &op->it), v);
}
