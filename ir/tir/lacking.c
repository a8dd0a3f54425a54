/* What code of a target cannot have: f64, or functions of it.  Backends say so in their target. */
#include "ir/tir/tir.h"

_Static_assert(MATH_COUNT <= 32, "a bit each");

static const char *const math_names[] = {
#define MATH(id, text, n) text,
#include "ir/tir/math.def"
#undef MATH
};

/* The remainder of floats is that function, too. */
static bool is_math(const Prim *p, MathFn *fn)
{
    *fn = p->kind == PRIM_MATH ? p->u.math : MATH_FMOD;
    return p->kind == PRIM_MATH || p->kind == PRIM_REM;
}

const char *prim_lacking(Ctx *c, const Target *t, const Prim *p)
{
    MathFn fn;

    if (!t || !dtype_eq(dtype_lanes(p->dtype, 1), DT_F64))
        return NULL;
    if (t->no_f64)
        return "f64";
    return is_math(p, &fn) && (t->no_f64_math & MATH_BIT(fn))
               ? arena_printf(c->arena, "%s of f64", math_names[fn])
               : NULL;
}

typedef struct {
    Ctx          *c;
    const Target *t;
    const char   *first;
} Lacking;

static void look(void *user, const Prim *p)
{
    Lacking *x = user;

    if (!x->first)
        x->first = prim_lacking(x->c, x->t, p);
}

const char *func_lacking(Ctx *c, const Target *t, const Func *f)
{
    Lacking x = {c, t, NULL};

    if (t && (t->no_f64 || t->no_f64_math))
        stmt_visit(f->body, &(TirVisit){.user = &x, .prim = look});
    return x.first;
}
