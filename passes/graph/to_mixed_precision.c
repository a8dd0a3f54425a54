/* to_mixed_precision: products take 16 bits, and what lies between them is stored so.
 *
 *   nn.relu(nn.conv2d(%x, const @w))                                     // --mixed-precision
 *     -> %0 = nn.conv2d(cast(%x, f16), const @w, out_dtype="f32");
 *        cast(cast(nn.relu(cast(cast(%0, f16), f32)), f16), f32)
 *
 * mixed.def says what becomes of which operator; the products are those that --mixed-precision
 * names.  Each call takes and gives f32 as before, so that functions, tuples and outputs stay what
 * they are; what it gives is the f32 of a number of 16 bits, and a call that can use that number
 * takes it from behind the cast.  Casts to 16 bits that are made here are marked `stored`: they say
 * how a value lies in memory, not what it is, so where both casts come into one kernel keep_floats
 * leaves them out, and what is computed in a kernel is f32 throughout.
 *
 * Every reader has a cast to f32 of its own: fuse_ops lets kernels begin with it.  Weights are
 * rounded at compile time.  With --mixed-precision-accumulate=float16 the sums are of 16 bits, too.
 *
 * Cost: one rewrite.  The three roles are those of TVM's ToMixedPrecision. */
#include "passes/graph/graph.h"

#include <string.h>

typedef enum { NEVER, PRODUCT, FOLLOW, MOVE } Role;

static const struct {
    const char *op;
    Role        role;
} roles[] = {
#define MIXED(op, role) {op, role},
#include "passes/graph/mixed.def"
#undef MIXED
};

static Role role_of(const char *op)
{
    for (size_t i = 0; i < COUNT(roles); i++)
        if (!strcmp(roles[i].op, op))
            return roles[i].role;
    return NEVER;
}

bool mixed_precision_check(Ctx *c, const MixedPrecision *x)
{
    StrBuf can = strbuf(c->scratch);

    for (size_t i = 0; i < COUNT(roles); i++)
        if (roles[i].role == PRODUCT)
            str_printf(&can, "%s%s", can.n ? ", " : "", roles[i].op);
    for (uint32_t i = 0; i < x->nops; i++) {
        if (role_of(x->ops[i]) == PRODUCT)
            continue;
        error_at(c, E_USAGE, NO_LOC, "'%s' is no operator that takes 16 bits", x->ops[i]);
        diag_hint(c->diags, "those of --mixed-precision are %s", can.at);
        return false;
    }
    return true;
}

static bool is_named(const MixedPrecision *x, const char *op)
{
    for (uint32_t i = 0; i < x->nops; i++)
        if (!strcmp(x->ops[i], op))
            return true;
    return x->nops == 0;
}

static bool is_tensor_of(const Expr *e, DType t)
{
    return e && e->type && e->type->kind == TYPE_TENSOR && dtype_eq(e->type->dtype, t);
}

static const Expr *cast_to(Ctx *c, const Expr *x, DType t, bool stored)
{
    CastAttrs *a = ATTRS_NEW(c, CastAttrs);

    a->dtype = t;
    a->stored = stored;
    return make1(c, "cast", x, a, x->loc);
}

/* The number of 16 bits that x is the f32 of; NULL: it is none. */
static const Expr *narrow_of(const Expr *x, DType t)
{
    return call_is(x, "cast") && is_tensor_of(x, DT_F32) && is_tensor_of(call_arg(x, 0), t)
               ? call_arg(x, 0)
               : NULL;
}

static const Expr *narrowed(Ctx *c, const Expr *x, DType t)
{
    const Expr *n = narrow_of(x, t);

    return n ? n : cast_to(c, x, t, true);
}

/* What came out in 16 bits, as f32; all of a tuple's. */
static const Expr *widened(Ctx *c, const Expr *x)
{
    if (!x || x->type->kind != TYPE_TUPLE)
        return x ? cast_to(c, x, DT_F32, false) : NULL;
    const Expr **fields = NEW_ARRAY(c->scratch, const Expr *, x->type->n + 1);

    for (uint32_t i = 0; i < x->type->n; i++)
        if (!(fields[i] = cast_to(c, expr_proj(c, x, i, x->loc), DT_F32, false)))
            return NULL;
    return expr_tuple(c, x->type->n, fields, x->loc);
}

static const Expr *product(Ctx *c, const Expr *e)
{
    const MixedPrecision *x = c->choices.mixed;
    const AttrRecord     *r = call_op(e)->attrs;
    void                 *attrs = arena_dup(c->arena, e->u.attrs, r->size);
    const Expr           *args[2], *now;

    for (uint32_t i = 0; i < 2; i++)
        if (!(args[i] = narrowed(c, call_arg(e, i), x->type)))
            return NULL;
    if (!x->narrow_sums && !attrs_set_text(c, r, attrs, "out_dtype", "f32", NULL))
        BUG("%s has no out_dtype", call_op(e)->text);
    if (!(now = expr_call(c, call_op(e), 2, args, attrs, e->loc)))
        return NULL;
    return widened(c, x->narrow_sums ? now : cast_to(c, now, x->type, true));
}

/* Operands that are 16 bits wide in memory have a cast for this reader alone. */
static const Expr *follow(Ctx *c, const Expr *e, uint32_t nnarrow)
{
    const DType  t = c->choices.mixed->type;
    uint32_t     n = call_nargs(e);
    const Expr **args = NEW_ARRAY(c->scratch, const Expr *, n + 1), *now;

    if (!nnarrow)
        return e;
    for (uint32_t i = 0; i < n; i++) {
        const Expr *x = call_arg(e, i), *narrow = narrow_of(x, t);
        if (!(args[i] = narrow ? cast_to(c, narrow, DT_F32, false) : x))
            return NULL;
    }
    if (!(now = expr_call(c, call_op(e), n, args, e->u.attrs, e->loc)))
        return NULL;
    return widened(c, cast_to(c, now, t, true));
}

/* A tuple's fields in 16 bits; NULL: not all of them are. */
static const Expr *narrow_fields(Ctx *c, const Expr *x, DType t)
{
    const Expr **fields = NEW_ARRAY(c->scratch, const Expr *, x->nkids + 1);

    for (uint32_t i = 0; i < x->nkids; i++)
        if (!(fields[i] = narrow_of(x->kids[i], t)))
            return NULL;
    return expr_tuple(c, x->nkids, fields, x->loc);
}

static const Expr *move(Ctx *c, const Expr *e)
{
    const DType t = c->choices.mixed->type;
    const Expr *x = call_arg(e, 0), *narrow;

    if (call_nargs(e) != 1)
        return e;
    narrow = x->kind == EXPR_TUPLE ? narrow_fields(c, x, t) : narrow_of(x, t);
    return narrow ? widened(c, expr_call(c, call_op(e), 1, &narrow, e->u.attrs, e->loc)) : e;
}

static const Expr *mix(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const MixedPrecision *x = c->choices.mixed;
    uint32_t              n = 0, narrow = 0;

    (void)user;
    if (now->kind == EXPR_PROJ && now->kids[0]->kind == EXPR_TUPLE)
        return now->kids[0]->kids[now->u.index];
    if (!call_op(now) || !was->type)
        return now;
    for (uint32_t i = 0; i < call_nargs(now); i++) {
        n += is_tensor_of(call_arg(now, i), DT_F32);
        narrow += narrow_of(call_arg(now, i), x->type) != NULL;
    }
    switch (role_of(call_op(now)->text)) {
    case NEVER: return now;
    case PRODUCT:
        return n == 2 && is_tensor_of(was, DT_F32) && is_named(x, call_op(now)->text)
                   ? product(c, now)
                   : now;
    case FOLLOW: return n == call_nargs(now) ? follow(c, now, narrow) : now;
    case MOVE: return move(c, now);
    }
    return now;
}

const Module *to_mixed_precision(Ctx *c, const Module *m)
{
    const Module *now = c->choices.mixed ? module_rewrite(c, m, mix, NULL) : m;

    return now && now != m ? fold_constant(c, now) : now;
}
