/* Putting tensors together and taking them apart: concatenate, stack, split.
 *
 *     %2 = concatenate((%0, %1), axis=1);        %3 = split(%2, sections=2, axis=1);   // %3.0,
 * %3.1
 *
 * A cell of the result picks its operand by a chain of comparisons on the axis; the planner lets
 * producers write into the result directly where it can.  Many operands of open sizes are picked by
 * tables instead, since each comparison would be with a sum of all sizes before it:
 *
 *     %part[i], %cell[i]                       written operand by operand, for each i of the axis
 *     %out[i, j] = case(%part[i]; %0[%cell[i], j], %1[%cell[i], j], ..)
 */
#include "ops/common.h"

/* ---- type relations
 * ------------------------------------------------------------------------------ */

/* The fields of a tuple of tensors with one element type and rank. */
static bool rel_fields(Ctx *c, Loc loc, const Type *t)
{
    if (t->kind != TYPE_TUPLE || !t->n)
        return error_at(c, E_TYPE, loc, "the operand must be a tuple of tensors, not %s",
                        type_text(c, t));
    if (!rel_tensors(c, loc, t->parts, t->n))
        return false;
    for (uint32_t i = 1; i < t->n; i++)
        if (!rel_same_dtype(c, loc, t->parts[0], t->parts[i]) ||
            !rel_rank(c, loc, t->parts[i], t->parts[0]->n, "tensors"))
            return false;
    return true;
}

static bool rel_others_equal(Ctx *c, Loc loc, const Type *t, uint32_t except)
{
    for (uint32_t i = 1; i < t->n; i++)
        for (uint32_t k = 0; k < t->parts[0]->n; k++)
            if (k != except && !rel_dims_equal(c, loc, t->parts[0]->dims[k], t->parts[i]->dims[k],
                                               "dimensions of the tensors"))
                return false;
    return true;
}

const Type *rel_concatenate(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const ConcatenateAttrs *a = attrs;
    const Idx              *dims[TE_MAX_AXES];
    uint32_t                axis;

    (void)nin;
    if (!rel_fields(c, loc, in[0]))
        return NULL;
    const Type *first = in[0]->parts[0];

    if (!rel_axis(c, loc, a->axis, first->n, &axis) || !rel_others_equal(c, loc, in[0], axis))
        return NULL;
    for (uint32_t i = 0; i < first->n; i++)
        dims[i] = first->dims[i];
    for (uint32_t i = 1; i < in[0]->n; i++)
        dims[axis] = idx_add(c->arith, dims[axis], in[0]->parts[i]->dims[axis]);
    return rel_tensor(c, loc, first->dtype, first->n, dims);
}

const Type *rel_stack(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const StackAttrs *a = attrs;
    const Idx        *dims[TE_MAX_AXES + 1];
    uint32_t          axis;

    (void)nin;
    if (!rel_fields(c, loc, in[0]))
        return NULL;
    const Type *first = in[0]->parts[0];

    if (!rel_axis(c, loc, a->axis, first->n + 1, &axis) ||
        !rel_others_equal(c, loc, in[0], UINT32_MAX))
        return NULL;
    for (uint32_t i = 0; i <= first->n; i++)
        dims[i] = i == axis ? idx_const(c->arith, in[0]->n) : first->dims[i < axis ? i : i - 1];
    return rel_tensor(c, loc, first->dtype, first->n + 1, dims);
}

/* Begin of part i and of the one after it, in a dimension of n; `one`: of each of equal parts. */
static void part(Ctx *c, const SplitAttrs *a, const Idx *n, const Idx *one, uint32_t i,
                 const Idx **lo, const Idx **hi)
{
    if (a->sections) {
        *lo = idx_mulc(c->arith, one, i);
        *hi = idx_mulc(c->arith, one, i + 1);
        return;
    }
    *lo = i ? a->indices.at[i - 1] : idx_const(c->arith, 0);
    *hi = i < a->indices.n ? a->indices.at[i] : n;
}

/* NULL: the parts that it asks for are not equal. */
static const Idx *equal_part(Ctx *c, const SplitAttrs *a, const Idx *n)
{
    return a->sections ? idx_div_exact(c->arith, n, idx_const(c->arith, a->sections)) : n;
}

bool split_range(Ctx *c, const Expr *split, uint32_t i, int64_t *lo, int64_t *hi)
{
    const SplitAttrs *a = ATTRS(SplitAttrs, split);
    const Type       *t = call_arg(split, 0)->type;
    const Idx        *n = t->dims[axis_of(a->axis, t->n)], *begin, *end;

    part(c, a, n, equal_part(c, a, n), i, &begin, &end);
    return idx_is_const(begin, lo) && idx_is_const(end, hi);
}

const Type *rel_split(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const SplitAttrs *a = attrs;
    const Idx        *dims[TE_MAX_AXES], *n, *one, *lo, *hi;
    uint32_t          axis, parts;

    if (!rel_tensors(c, loc, in, nin) || !rel_axis(c, loc, a->axis, in[0]->n, &axis))
        return NULL;
    n = in[0]->dims[axis];
    if (a->sections < 0 || a->sections > 65536 || !(one = equal_part(c, a, n)))
        return error_at(c, E_TYPE, loc, "%lld parts do not divide %s", (long long)a->sections,
                        dim_text(c, n));
    parts = a->sections ? (uint32_t)a->sections : a->indices.n + 1;
    const Type **t = NEW_ARRAY(c->scratch, const Type *, parts);

    for (uint32_t i = 0; i < in[0]->n; i++)
        dims[i] = in[0]->dims[i];
    for (uint32_t i = 0; i < parts; i++) {
        part(c, a, n, one, i, &lo, &hi);
        bool out = lo->lo < 0 || hi->hi < 0; /* so far out that a difference might overflow */
        if (!out)
            dims[axis] = idx_sub(c->arith, hi, lo);
        if (out || dims[axis]->lo < 0 || idx_sub(c->arith, n, hi)->lo < 0)
            return error_at(c, E_TYPE, loc, "part %u of %s is from %s to %s", i, dim_text(c, n),
                            dim_text(c, lo), dim_text(c, hi));
        if (!(t[i] = rel_tensor(c, loc, in[0]->dtype, in[0]->n, dims)))
            return NULL;
    }
    return type_tuple(c, parts, t);
}

/* ---- compute
 * ------------------------------------------------------------------------------------- */

/* Operands of open sizes that are still compared with.  Rows of 4 to 64 floats take as long by
 * tables from 8 operands on (30 of them: 0.4 of the time); where the cells of a row choose, each
 * vector is put together of all operands, and tables take 0.1 of the time with 2, 0.03 with 4. */
enum { MOST_COMPARED = 7, MOST_COMPARED_IN_ROW = 2 };

static bool by_tables(const OpCall *call, uint32_t axis)
{
    uint32_t open = 0;

    for (uint32_t i = 0; i < call->nin; i++)
        open += !idx_is_const(call->in[i]->dims[axis], NULL);
    return open > (axis + 1 == call->out[0]->n ? MOST_COMPARED_IN_ROW : MOST_COMPARED);
}

/* For each position of the axis which operand it is of, and where it is in that. */
static void part_tables(Ctx *c, const OpCall *call, uint32_t axis, const Tensor **out)
{
    Arith        *A = c->arith;
    const Idx    *n = call->out[0]->dims[axis], *zero = idx_const(A, 0), *one = idx_const(A, 1);
    const Type   *row = type_tensor(c, DT_I64, 1, &n);
    const Buffer *begin = buffer_new(c, "begin", DT_I64, SCOPE_PRIVATE, 1, &one);
    const Idx    *from = idx_load(A, prim_load(c, begin, &zero), 0, n->hi);
    const Stmt  **s = NEW_ARRAY(c->scratch, const Stmt *, 2 * call->nin + 1);

    out[0] = te_extern_out(c, "part", row);
    out[1] = te_extern_out(c, "cell", row);
    s[0] = stmt_store(c, begin, &zero, prim_int(c, DT_I64, 0));
    for (uint32_t i = 0; i < call->nin; i++) {
        const Idx  *size = call->in[i]->dims[axis];
        const Atom *var = te_loop_var(c, "i", size);
        const Idx  *at = idx_add(A, from, idx_atom(A, var));
        const Stmt *put[] = {
            stmt_store(c, out[0]->buffer, &at, prim_int(c, DT_I64, i)),
            stmt_store(c, out[1]->buffer, &at, prim_index(c, DT_I64, idx_atom(A, var)))};

        s[2 * i + 1] = loop_stmt(c, var, size, stmt_seq(c, 2, put));
        s[2 * i + 2] = stmt_store(c, begin, &zero, prim_index(c, DT_I64, idx_add(A, from, size)));
    }
    te_extern(c, 0, NULL, 2, out, stmt_alloc(c, begin, stmt_seq(c, 2 * call->nin + 1, s)));
}

static const Prim *cell_by_tables(Ctx *c, const OpCall *call, uint32_t axis, const Axes *a,
                                  const Tensor *const *in)
{
    const Tensor *table[2];
    const Idx    *at[TE_MAX_AXES], *here = a->at[axis], *which;
    const Prim  **cell = NEW_ARRAY(c->scratch, const Prim *, call->nin);
    int64_t       most = 0;

    part_tables(c, call, axis, table);
    for (uint32_t i = 0; i < a->n; i++)
        at[i] = a->at[i];
    for (uint32_t i = 0; i < call->nin; i++)
        if (most < call->in[i]->dims[axis]->hi - 1)
            most = call->in[i]->dims[axis]->hi - 1;
    which = idx_load(c->arith, te_at(c, table[0], &here), 0, call->nin - 1);
    at[axis] = idx_load(c->arith, te_at(c, table[1], &here), 0, most);
    for (uint32_t i = 0; i < call->nin; i++)
        cell[i] = te_at(c, in[i], at);
    return prim_case(c, which, call->nin, cell);
}

static const Prim *cell_by_comparing(Ctx *c, const OpCall *call, uint32_t axis, const Axes *a,
                                     const Tensor *const *in)
{
    Arith      *A = c->arith;
    const Idx  *end = call->out[0]->dims[axis], *at[TE_MAX_AXES];
    const Prim *x = NULL;

    for (uint32_t i = 0; i < a->n; i++)
        at[i] = a->at[i];
    for (uint32_t i = call->nin; i-- > 0;) {
        const Idx *begin = idx_sub(A, end, call->in[i]->dims[axis]);

        at[axis] = idx_sub(A, a->at[axis], begin);
        const Prim *here = te_at(c, in[i], at);
        Pred        behind =
            pred_and(A, c->arena, PRED_TRUE, idx_addc(A, idx_sub(A, end, a->at[axis]), -1));

        x = x ? prim_select(c, pred_prim(c, behind), here, x) : here;
        end = begin;
    }
    return x;
}

bool te_concatenate(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const ConcatenateAttrs *attrs = call->attrs;
    Axes                    a = te_axes_of(c, call->out[0]);
    uint32_t                axis = axis_of(attrs->axis, a.n);

    return te_out(c, call, &a,
                  by_tables(call, axis) ? cell_by_tables(c, call, axis, &a, in)
                                        : cell_by_comparing(c, call, axis, &a, in),
                  out);
}

bool te_stack(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const StackAttrs *attrs = call->attrs;
    Arith            *A = c->arith;
    Axes              a = te_axes_of(c, call->out[0]);
    uint32_t          axis = axis_of(attrs->axis, a.n);
    const Idx        *at[TE_MAX_AXES];
    const Prim       *x = NULL;

    for (uint32_t i = 0; i + 1 < a.n; i++)
        at[i] = a.at[i < axis ? i : i + 1];
    for (uint32_t i = call->nin; i-- > 0;) {
        const Prim *here = te_at(c, in[i], at);
        Pred behind = pred_and(A, c->arena, PRED_TRUE, idx_sub(A, idx_const(A, i), a.at[axis]));

        x = x ? prim_select(c, pred_prim(c, behind), here, x) : here;
    }
    return te_out(c, call, &a, x, out);
}

bool te_split(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const SplitAttrs *attrs = call->attrs;
    uint32_t          axis = axis_of(attrs->axis, call->in[0]->n);
    const Idx        *n = call->in[0]->dims[axis], *one = equal_part(c, attrs, n), *lo, *hi;

    for (uint32_t i = 0; i < call->nout; i++) {
        Axes       a = te_axes_of(c, call->out[i]);
        const Idx *at[TE_MAX_AXES];

        part(c, attrs, n, one, i, &lo, &hi);
        for (uint32_t k = 0; k < a.n; k++)
            at[k] = k == axis ? idx_add(c->arith, a.at[k], lo) : a.at[k];
        out[i] = te_compute(c, "out", call->out[i]->dtype, a, te_at(c, in[0], at));
    }
    return true;
}

/* ---- blocked layout
 * -------------------------------------------------------------------------------- */

/* Along channels, if every part but the last fills its blocks; along others, always. */
const Expr *block_concatenate(Ctx *c, const Expr *e, const Expr *const *args, uint32_t block)
{
    const ConcatenateAttrs *a = ATTRS(ConcatenateAttrs, e);
    const Type             *t = call_arg(e, 0)->type, *now = args[0]->type;
    uint32_t                axis;

    if (t->kind != TYPE_TUPLE || now->kind != TYPE_TUPLE || t->parts[0]->n != 4)
        return NULL;
    axis = axis_of(a->axis, 4);
    for (uint32_t i = 0; i < t->n; i++) {
        int64_t n;

        if (now->parts[i]->n != 5 || !type_dim(t->parts[i], 1, &n) ||
            (axis == 1 && i + 1 < t->n && n % block))
            return NULL;
    }
    ConcatenateAttrs *b = DUP_ARRAY(c->arena, a, 1);

    b->axis = axis;
    return expr_call(c, call_op(e), 1, args, b, e->loc);
}
