/* Tensors from nothing. */
#include "frontends/pytorch/pytorch.h"

#include <math.h>
#include <string.h>

static const Expr *full(PtNode *n, Dims size, DType t, const PtOperand *v)
{
    return build_broadcast_to(&n->b, pt_as(n, v, t), size.n, size.at);
}

/* A number that a row's name says. */
static PtOperand number_of(const PtNode *n)
{
    int64_t v = strstr(n->p->target, "ones") != NULL;

    return (PtOperand){.scalar = true, .kind = 2, .i = v, .v = (double)v};
}

bool aten_full(PtNode *n)
{
    PtOperand v;
    Dims      size;
    DType     t;

    if (!pt_forms(n, "size", &size) || !build_check_shape(&n->b, size) ||
        !pt_operand(n, "fill_value", &v) ||
        !pt_type(n, "dtype",
                 v.kind == 2 ? DT_F32
                 : v.kind    ? DT_I64
                             : DT_BOOL,
                 &t))
        return false;
    return pt_done(n, full(n, size, t, &v));
}

/* zeros, ones; empty is zeros, too */
bool aten_filled(PtNode *n)
{
    PtOperand v = number_of(n);
    Dims      size;
    DType     t;

    return pt_forms(n, "size", &size) && build_check_shape(&n->b, size) &&
           pt_type(n, "dtype", DT_F32, &t) && pt_done(n, full(n, size, t, &v));
}

bool aten_filled_like(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    PtOperand   v = number_of(n);
    DType       t;

    return x && (!pt_has(n, "fill_value") || pt_operand(n, "fill_value", &v)) &&
           pt_type(n, "dtype", expr_dtype(x), &t) && pt_done(n, full(n, expr_forms(x), t, &v));
}

bool aten_new_filled(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    PtOperand   v = number_of(n);
    Dims        size;
    DType       t;

    return x && pt_forms(n, "size", &size) && build_check_shape(&n->b, size) &&
           (!pt_has(n, "fill_value") || pt_operand(n, "fill_value", &v)) &&
           pt_type(n, "dtype", expr_dtype(x), &t) && pt_done(n, full(n, size, t, &v));
}

bool aten_scalar_tensor(PtNode *n)
{
    PtOperand v;
    DType     t;

    return pt_operand(n, "s", &v) &&
           pt_type(n, "dtype",
                   v.kind == 2 ? DT_F32
                   : v.kind    ? DT_I64
                               : DT_BOOL,
                   &t) &&
           pt_done(n, pt_as(n, &v, t));
}

/* start + step * (0, 1, ..), of integers by forms over dimensions. */
bool aten_arange(PtNode *n)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    PtOperand    v[3] = {{.scalar = true, .kind = 1},
                         {.scalar = true, .kind = 1},
                         {.scalar = true, .kind = 1, .i = 1, .v = 1}};
    const Idx   *from = idx_const(A, 0), *to, *cells;
    DType        t;
    const Expr  *x;
    double       count;

    if ((pt_has(n, "start") && !pt_operand(n, "start", &v[0])) || !pt_operand(n, "end", &v[1]) ||
        (pt_has(n, "step") && !pt_operand(n, "step", &v[2])))
        return false;
    bool ints = v[0].kind < 2 && v[1].kind < 2 && v[2].kind < 2;
    if (!pt_type(n, "dtype", ints ? DT_I64 : DT_F32, &t))
        return false;
    if (v[2].e || v[2].v == 0)
        return pt_error(n, E_UNSUPPORTED, "a step that is 0 or no number");
    if (ints) {
        if ((pt_has(n, "start") && !(from = pt_form(n, "start", NULL))) ||
            !(to = pt_form(n, "end", NULL)))
            return false;
        cells = build_range_cells(A, from, to, v[2].i);
    } else {
        count = ceil((v[1].v - v[0].v) / v[2].v);
        if (v[0].e || v[1].e || !(count >= 0) || count > 0x1p31)
            return pt_error(n, E_UNSUPPORTED, "from %g to %g by %g", v[0].v, v[1].v, v[2].v);
        cells = idx_const(A, (int64_t)count);
    }
    x = build_arange(b, cells, ints && pt_dtype_kind(t) == 2 ? DT_I64 : t);
    if (x && v[2].v != 1)
        x = build_mul(b, x, pt_as(n, &v[2], expr_dtype(x)));
    if (x && (v[0].e || v[0].v != 0))
        x = build_add(b, x, pt_as(n, &v[0], expr_dtype(x)));
    return pt_done(n, build_cast(b, x, t));
}

bool aten_linspace(PtNode *n)
{
    double  from = pt_float(n, "start", 0), to = pt_float(n, "end", 0);
    int64_t steps = pt_int(n, "steps", 100);
    DType   t;

    if (!pt_type(n, "dtype", DT_F32, &t))
        return false;
    if (steps < 0 || steps > 1 << 24 || pt_dtype_kind(t) != 2)
        return pt_error(n, E_UNSUPPORTED, "%lld steps of %s", (long long)steps,
                        dtype_text(n->b.c, t));
    uint8_t *at = arena_array(n->b.c->arena, (size_t)steps + 1, dtype_bytes(t));
    double   by = steps > 1 ? (to - from) / (double)(steps - 1) : 0;

    for (int64_t i = 0; i < steps; i++) /* from both ends, as PyTorch does */
        dtype_put_f(t, at + i * dtype_bytes(t),
                    i < steps / 2 ? from + by * (double)i : to - by * (double)(steps - 1 - i));
    if (steps == 1)
        dtype_put_f(t, at, from);
    return pt_done(n, build_const(&n->b, t, 1, &steps, at));
}

/* 1 where the row is the column. */
bool aten_eye(PtNode *n)
{
    const Build *b = &n->b;
    const Idx   *rows = pt_form(n, "n", NULL), *columns = rows ? pt_form(n, "m", rows) : NULL;
    DType        t;
    const Expr  *r;

    if (!columns || !pt_type(n, "dtype", DT_F32, &t))
        return false;
    r = build_expand_dims(b, build_arange(b, rows, DT_I64), 1, 1);
    return pt_done(n,
                   build_cast(b, build2(b, "equal", r, build_arange(b, columns, DT_I64), NULL), t));
}
