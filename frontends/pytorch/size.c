/* Sizes and numbers that nodes compute: forms over dimensions, which never become code. */
#include "frontends/pytorch/pytorch.h"

#include <string.h>

bool aten_sym_size(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    uint32_t    axis;

    return x && pt_axis(n, pt_int(n, "dim", 0), expr_rank(x), &axis) && axis < expr_rank(x) &&
           pt_done_form(n, expr_form(x, axis));
}

bool aten_sym_numel(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");

    return x && pt_done_form(n, type_cells(n->b.c, x->type));
}

bool aten_shape_as_tensor(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    int64_t     rank = x ? expr_rank(x) : 0;

    return x && pt_done(n, build_values(&n->b, type_tensor_i64(n->b.c, DT_I64, 1, &rank),
                                        expr_forms(x)));
}

/* Where the cells of a tensor lie that is no view of another. */
static const Expr *in_rows(PtNode *n)
{
    const PtArg   *a = pt_arg(n, "self");
    const PtValue *v = a && a->kind == PT_TENSOR ? pt_value_of(n->im, a) : NULL;

    if (v && v->t && v->t->base)
        return pt_error(n, E_UNSUPPORTED, "of a view");
    return pt_tensor(n, "self");
}

bool aten_sym_stride(PtNode *n)
{
    const Expr *x = in_rows(n);
    const Idx  *stride = idx_const(n->b.c->arith, 1);
    uint32_t    axis;

    if (!x || !pt_axis(n, pt_int(n, "dim", 0), expr_rank(x), &axis))
        return false;
    for (uint32_t i = axis + 1; i < expr_rank(x); i++)
        stride = idx_mul(n->b.c->arith, stride, expr_form(x, i));
    return pt_done_form(n, stride);
}

bool aten_sym_storage_offset(PtNode *n)
{
    return in_rows(n) && pt_done_form(n, idx_const(n->b.c->arith, 0));
}

bool aten_sym_is_contiguous(PtNode *n)
{
    return in_rows(n) && pt_done_form(n, idx_const(n->b.c->arith, 1));
}

static bool two_forms(PtNode *n, const Idx *v[2])
{
    if (n->p->nin != 2)
        return pt_error(n, E_IMPORT, "it has %u arguments, not 2", n->p->nin);
    return (v[0] = pt_form(n, n->p->names[0], NULL)) && (v[1] = pt_form(n, n->p->names[1], NULL));
}

bool aten_form(PtNode *n)
{
    Arith      *A = n->b.c->arith;
    const char *op = strchr(n->p->target, '.') + 1;
    const Idx  *v[2];

    if (!two_forms(n, v))
        return false;
    if (!strcmp(op, "add"))
        return pt_done_form(n, idx_add(A, v[0], v[1]));
    if (!strcmp(op, "sub"))
        return pt_done_form(n, idx_sub(A, v[0], v[1]));
    if (!strcmp(op, "mul"))
        return pt_done_form(n, idx_mul(A, v[0], v[1]));
    if (!strcmp(op, "sym_min"))
        return pt_done_form(n, idx_min(A, v[0], v[1]));
    if (!strcmp(op, "sym_max"))
        return pt_done_form(n, idx_max(A, v[0], v[1]));
    if (v[1]->lo <= 0)
        return pt_error(n, E_UNSUPPORTED, "a division by %s", dim_text(n->b.c, v[1]));
    return pt_done_form(n, !strcmp(op, "mod") ? idx_mod(A, v[0], v[1]) : idx_div(A, v[0], v[1]));
}

/* Of two numbers, a bool, which conditions are; asserts that ask for it are not carried out. */
bool aten_compare_forms(PtNode *n)
{
    PtOperand   v[2];
    const Expr *e;

    if (n->p->nin != 2)
        return pt_error(n, E_IMPORT, "it has %u arguments, not 2", n->p->nin);
    for (uint32_t i = 0; i < 2; i++)
        if (!pt_operand(n, n->p->names[i], &v[i]))
            return false;
    DType t = pt_promoted(2, v);

    e = build2(&n->b, n->relay, pt_as(n, &v[0], t), pt_as(n, &v[1], t), NULL);
    n->out[0] = (PtValue){.e = e};
    return e != NULL;
}

bool aten_negative_form(PtNode *n)
{
    const Idx *x = n->p->nin == 1 ? pt_form(n, n->p->names[0], NULL) : NULL;

    return x ? pt_done_form(n, idx_mulc(n->b.c->arith, x, -1))
             : pt_error(n, E_IMPORT, "it has %u arguments, not 1", n->p->nin) != NULL;
}

/* A number out of a tensor. */
bool aten_item(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self"), *k = x ? build_fold(&n->b, x) : NULL;
    Ints        v;

    if (!x)
        return false;
    if (!expr_single(x))
        return pt_error(n, E_IMPORT, "it has %s, not one cell", type_text(n->b.c, x->type));
    if (k && expr_ints(n->b.c, k, &v) && v.n == 1)
        return pt_done_form(n, idx_const(n->b.c->arith, v.at[0]));
    n->out[0] = (PtValue){.e = build_reshape(&n->b, x, 0, NULL)};
    return n->out[0].e != NULL;
}

/* What the exporter asserts of sizes and types was true when it ran. */
bool aten_nothing(PtNode *n)
{
    for (uint32_t i = 0; i < n->p->nin; i++)
        n->read[i] = true;
    return true;
}
