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
 * Every reader has a cast to f32 of its own: fuse_ops lets kernels begin with it.  Products that
 * round the same value share the cast, which is a kernel of its own where others read the value,
 * too.  Norms, whose kernels begin and end with no casts, take and give both types (`out_dtype`).
 * Weights are rounded at compile time.  With --mixed-precision-accumulate=float16 the sums of
 * products are of 16 bits, too, but not those of attention.
 *
 * A model whose products all take 16 bits already (widen_half made them f32) is treated so where
 * the target has instructions of warps for them; --mixed-precision-calculation-type=float32 keeps
 * f32.
 *
 * Cost: a walk and a rewrite.  PRODUCT, FOLLOW and MOVE are the roles of TVM's ToMixedPrecision. */
#include "passes/graph/graph.h"
#include "schedules/schedules.h"

#include <string.h>

typedef enum { NEVER, PRODUCT, ATTENTION, NORM, FOLLOW, MOVE } Role;

/* What calls that read a value, or views of it, become. */
typedef struct {
    bool product; /* one takes 16 bits, */
    bool kept;    /* one f32 alone, or it is a result */
} Readers;

typedef struct {
    const MixedPrecision *x;
    Map                  *uses;    /* of nodes of the old graph */
    Map                  *readers; /* node of the old graph to Readers */
    Map                  *rounded; /* node of the new graph to the cast of it */
} State;

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

static bool is_product(Role r)
{
    return r == PRODUCT || r == ATTENTION;
}

bool mixed_is_product(const Expr *call)
{
    return call_op(call) && is_product(role_of(call_op(call)->text));
}

/* May the command line name it? */
static bool is_chosen(Role r)
{
    return is_product(r) || r == NORM;
}

bool mixed_precision_check(Ctx *c, const MixedPrecision *x)
{
    StrBuf can = strbuf(c->scratch);

    for (size_t i = 0; i < COUNT(roles); i++)
        if (is_chosen(roles[i].role))
            str_printf(&can, "%s%s", can.n ? ", " : "", roles[i].op);
    for (uint32_t i = 0; i < x->nops; i++) {
        if (is_chosen(role_of(x->ops[i])))
            continue;
        error_at(c, E_USAGE, NO_LOC, "'%s' is no operator that takes 16 bits", x->ops[i]);
        diag_hint(c->diags, "those of --mixed-precision are %s", can.at);
        return false;
    }
    return true;
}

/* Attention is named by the products that it is made of, too. */
static bool is_named(const MixedPrecision *x, const char *op)
{
    for (uint32_t i = 0; i < x->nops; i++)
        if (!strcmp(x->ops[i], op) ||
            (role_of(op) == ATTENTION && !strcmp(x->ops[i], "nn.batch_matmul")))
            return true;
    return x->nops == 0;
}

static bool is_tensor_of(const Expr *e, DType t)
{
    return e && e->type && e->type->kind == TYPE_TENSOR && dtype_eq(e->type->dtype, t);
}

/* A product that takes 16 bits. */
static bool is_taken(const MixedPrecision *x, const Expr *e)
{
    if (!mixed_is_product(e) || !is_tensor_of(e, DT_F32) || !is_named(x, call_op(e)->text))
        return false;
    for (uint32_t i = 0; i < (role_of(call_op(e)->text) == ATTENTION ? 3 : 2); i++)
        if (!is_tensor_of(call_arg(e, i), DT_F32))
            return false;
    return true;
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

static const Expr *narrowed(Ctx *c, const State *s, const Expr *x)
{
    const Expr *n = narrow_of(x, s->x->type);

    if (n || (n = map_get(s->rounded, PTR_KEY(x))))
        return n;
    n = cast_to(c, x, s->x->type, true);
    if (x->kind != EXPR_CONST) /* functions may share those */
        map_put(s->rounded, PTR_KEY(x), (void *)(uintptr_t)n);
    return n;
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

/* The first n operands in 16 bits, sums in f32 unless that is asked for otherwise. */
static const Expr *product(Ctx *c, const State *s, const Expr *e, uint32_t n, bool narrow_sums)
{
    const AttrRecord *r = call_op(e)->attrs;
    void             *attrs = arena_dup(c->arena, e->u.attrs, r->size);
    const Expr      **args = DUP_ARRAY(c->scratch, e->kids + 1, call_nargs(e)), *now;

    for (uint32_t i = 0; i < n; i++)
        if (!(args[i] = narrowed(c, s, args[i])))
            return NULL;
    if (!narrow_sums && !attrs_set_text(c, r, attrs, "out_dtype", "f32", NULL))
        BUG("%s has no out_dtype", call_op(e)->text);
    if (!(now = expr_call(c, call_op(e), call_nargs(e), args, attrs, e->loc)))
        return NULL;
    return widened(c, narrow_sums ? now : cast_to(c, now, s->x->type, true));
}

/* What x was before it was rounded for memory; NULL: others read it so, or it was not. */
static const Expr *unrounded(const State *s, const Expr *was, const Expr *narrow)
{
    return uses_of(s->uses, was) == 1 && call_is(narrow, "cast") &&
                   ATTRS_OF(CastAttrs, narrow)->stored && is_tensor_of(call_arg(narrow, 0), DT_F32)
               ? call_arg(narrow, 0)
               : NULL;
}

/* A norm reads numbers of 16 bits as they are, and gives such where nobody takes f32 alone.  What
 * it alone reads is not rounded: differences from the mean are smaller. */
static const Expr *norm(Ctx *c, const State *s, const Expr *was, const Expr *e)
{
    const Readers *readers = map_get(s->readers, PTR_KEY(was));
    const Expr    *narrow = narrow_of(call_arg(e, 0), s->x->type);
    const Expr    *exact = narrow ? unrounded(s, call_arg(was, 0), narrow) : NULL;
    bool           stored = is_named(s->x, call_op(e)->text) && readers && !readers->kept &&
                  (narrow || readers->product);
    const AttrRecord *r = call_op(e)->attrs;
    void             *attrs = arena_dup(c->arena, e->u.attrs, r->size);
    const Expr      **args = DUP_ARRAY(c->scratch, e->kids + 1, call_nargs(e)), *now;

    if (!narrow && !stored)
        return e;
    if (narrow)
        args[0] = exact ? exact : narrow;
    const char *type = stored ? dtype_text(c, s->x->type) : narrow && !exact ? "f32" : "";
    if (!attrs_set_text(c, r, attrs, "out_dtype", type, NULL))
        BUG("%s has no out_dtype", call_op(e)->text);
    now = expr_call(c, call_op(e), call_nargs(e), args, attrs, e->loc);
    return now && stored ? widened(c, now) : now;
}

/* Operands that are 16 bits wide in memory have a cast for this reader alone. */
static const Expr *follow(Ctx *c, DType t, const Expr *e, uint32_t nnarrow)
{
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

static const Expr *move(Ctx *c, DType t, const Expr *e)
{
    const Expr *x = call_arg(e, 0), *narrow;

    if (call_nargs(e) != 1)
        return e;
    narrow = x->kind == EXPR_TUPLE ? narrow_fields(c, x, t) : narrow_of(x, t);
    return narrow ? widened(c, expr_call(c, call_op(e), 1, &narrow, e->u.attrs, e->loc)) : e;
}

static const Expr *mix(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const State *s = user;
    uint32_t     n = 0, narrow = 0;

    if (now->kind == EXPR_PROJ && now->kids[0]->kind == EXPR_TUPLE)
        return now->kids[0]->kids[now->u.index];
    if (!call_op(now) || !was->type)
        return now;
    for (uint32_t i = 0; i < call_nargs(now); i++) {
        n += is_tensor_of(call_arg(now, i), DT_F32);
        narrow += narrow_of(call_arg(now, i), s->x->type) != NULL;
    }
    if (is_taken(s->x, was)) {
        bool sums = role_of(call_op(now)->text) == PRODUCT;
        return product(c, s, now, sums ? 2 : 3, sums && s->x->narrow_sums);
    }
    switch (role_of(call_op(now)->text)) {
    case NEVER:
    case PRODUCT:
    case ATTENTION: return now;
    case NORM: return n == call_nargs(now) ? norm(c, s, was, now) : now;
    case FOLLOW: return n == call_nargs(now) ? follow(c, s->x->type, now, narrow) : now;
    case MOVE: return move(c, s->x->type, now);
    }
    return now;
}

/* From the last call to the first, so that what becomes of a view's readers is known. */
static void find_readers(Ctx *c, State *s, const Expr *func)
{
    static const Readers other = {.kept = true};
    ExprList             list = expr_post_order(c, func);

    for (uint32_t i = list.n; i-- > 0;) {
        const Expr    *e = list.at[i];
        Role           role = call_op(e) ? role_of(call_op(e)->text) : NEVER;
        bool           view = role == MOVE || e->kind == EXPR_TUPLE || e->kind == EXPR_PROJ;
        const Readers *own = map_get(s->readers, PTR_KEY(e));
        Readers        is = view && own ? *own : other;

        if (is_taken(s->x, e))
            is = (Readers){.product = true};
        else if (role == FOLLOW || role == NORM)
            is = (Readers){0};
        for (uint32_t k = 0; k < e->nkids; k++) {
            Readers *had = map_get(s->readers, PTR_KEY(e->kids[k]));
            if (!had) {
                had = NEW(c->scratch, Readers);
                *had = (Readers){0};
                map_put(s->readers, PTR_KEY(e->kids[k]), had);
            }
            had->product |= is.product;
            had->kept |= is.kept;
        }
    }
}

/* What was asked for, or the model's own 16 bits where warps multiply such numbers; NULL: f32. */
static const MixedPrecision *mixed_of(Ctx *c, const Module *m, MixedPrecision *own)
{
    const MixedPrecision *x = c->choices.mixed;
    const DType           t = m->products;

    if (x)
        return dtype_is_half(x->type) ? x : NULL;
    *own = (MixedPrecision){.type = t};
    return t.bits && c->target && gpu_steps(c, t, t, DT_F32) ? own : NULL;
}

/* Instructions of warps sum in f32. */
static void say_narrow_sums(Ctx *c, const MixedPrecision *x)
{
    const char *text = c->target ? c->target->text : "";

    if (!x->narrow_sums || !c->target || !gpu_steps(c, x->type, x->type, DT_F32))
        return;
    diag_warn(c->diags, W_NARROW_SUMS, NO_LOC,
              "sums of %s are no instruction's of the warps of '%.*s', which sum in f32: threads "
              "multiply one by one",
              dtype_text(c, x->type), (int)strcspn(text, ","), text);
    diag_hint(c->diags, "without --mixed-precision-accumulate=float16 they do it together");
}

const Module *to_mixed_precision(Ctx *c, const Module *m)
{
    MixedPrecision own;
    State          s = {.x = mixed_of(c, m, &own)};

    if (!s.x)
        return m;
    say_narrow_sums(c, s.x);
    s.uses = count_uses(c, m);
    s.readers = map_new(c->scratch);
    s.rounded = map_new(c->scratch);
    for (uint32_t i = 0; i < m->nfuncs; i++)
        find_readers(c, &s, m->funcs[i].func);
    const Module *now = module_rewrite(c, m, mix, &s);
    return now && now != m ? fold_constant(c, now) : now;
}
