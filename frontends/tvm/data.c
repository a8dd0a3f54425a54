/* What is known of values while a module is read: tensors are expressions, and data types,
 * functions and references are structures around them.
 *
 * What a run decides between two values of one form is decided tensor by tensor; between others it
 * is a choice, which is tried both ways where its form is asked for. */
#include "frontends/tvm/tvm.h"

const TvData *tv_data_expr(Ctx *c, const Expr *e)
{
    TvData *d = NEW(c->arena, TvData);

    *d = (TvData){.kind = DATA_EXPR, .expr = e, .size = 1};
    return e ? d : NULL;
}

/* All parts of one tuple, in order, are that tuple. */
static const Expr *parts_of(uint32_t n, const Expr *const *e)
{
    const Expr *whole = n && e[0]->kind == EXPR_PROJ ? e[0]->kids[0] : NULL;

    for (uint32_t i = 0; whole && i < n; i++)
        if (e[i]->kind != EXPR_PROJ || e[i]->kids[0] != whole || e[i]->u.index != i)
            whole = NULL;
    return whole && whole->type->n == n ? whole : NULL;
}

static const Expr *tuple_of(Ctx *c, uint32_t n, const Expr *const *e)
{
    const Expr *whole = parts_of(n, e);

    return whole ? whole : expr_tuple(c, n, e, n ? e[0]->loc : (Loc){0});
}

static const Expr **exprs_of(Ctx *c, uint32_t n, const TvData *const *parts)
{
    const Expr **e = NEW_ARRAY(c->arena, const Expr *, n + 1);

    for (uint32_t i = 0; i < n; i++)
        e[i] = parts[i]->expr;
    return e;
}

const TvData *tv_data_parts(Ctx *c, TvDataKind kind, const TvCtor *ctor, uint32_t n,
                            const TvData *const *parts)
{
    TvData        *d = NEW(c->arena, TvData);
    const TvData **own = NEW_ARRAY(c->arena, const TvData *, n + 1);
    bool           plain = kind == DATA_TUPLE;

    *d = (TvData){.kind = kind, .n = n, .parts = own, .ctor = ctor, .size = 1};
    for (uint32_t i = 0; i < n; i++) {
        own[i] = parts[i];
        plain &= parts[i]->kind == DATA_EXPR;
        d->depth = parts[i]->depth < d->depth ? d->depth : parts[i]->depth + 1;
        d->size = parts[i]->size > UINT32_MAX - d->size ? UINT32_MAX : d->size + parts[i]->size;
    }
    if (plain) {
        d->kind = DATA_EXPR;
        d->depth = 0;
        d->expr = tuple_of(c, n, exprs_of(c, n, own));
        d->n = 0;
    }
    return d;
}

const char *tv_data_text(Ctx *c, const TvData *d)
{
    switch (d->kind) {
    case DATA_EXPR: return type_text(c, d->expr->type);
    case DATA_TUPLE: return "a tuple";
    case DATA_CTOR: return d->ctor->name;
    case DATA_FUNC:
    case DATA_OP:
    case DATA_MAKER: return "a function";
    case DATA_REF: return "a reference";
    case DATA_CHOICE:
        return arena_printf(c->scratch, "%s or %s", tv_data_text(c, d->parts[0]),
                            tv_data_text(c, d->parts[1]));
    case DATA_NOTHING: break;
    }
    return "nothing";
}

static bool is_tuple(const TvData *d)
{
    return d->kind == DATA_EXPR && d->expr->type && d->expr->type->kind == TYPE_TUPLE;
}

const TvData *tv_spread(Ctx *c, const TvData *d)
{
    const Expr    *e = d->expr;
    TvData        *out;
    const TvData **parts;

    if (!is_tuple(d))
        return d;
    out = NEW(c->arena, TvData);
    parts = NEW_ARRAY(c->arena, const TvData *, e->type->n + 1);
    for (uint32_t i = 0; i < e->type->n; i++) {
        TvData *part = NEW(c->arena, TvData);

        *part = *d;
        part->expr = e->kind == EXPR_TUPLE ? e->kids[i] : expr_proj(c, e, i, e->loc);
        parts[i] = part;
    }
    *out = *d;
    out->kind = DATA_TUPLE;
    out->expr = NULL;
    out->n = e->type->n;
    out->parts = parts;
    return out;
}

/* Data is as deep as eval.c lets it be made. */
const Expr *tv_data_tensors(Ctx *c, const TvData *d)
{
    const Expr **e;

    if (d->kind == DATA_EXPR)
        return d->expr;
    if (d->kind != DATA_TUPLE)
        return NULL;
    e = NEW_ARRAY(c->arena, const Expr *, d->n + 1);
    for (uint32_t i = 0; i < d->n; i++)
        if (!(e[i] = tv_data_tensors(c, d->parts[i])))
            return NULL;
    return tuple_of(c, d->n, e);
}

const Expr *tv_pack(Ctx *c, const TvLeaves *leaves)
{
    return leaves->n == 1 ? leaves->at[0] : tuple_of(c, leaves->n, leaves->at);
}

void tv_leaves(Ctx *c, const TvData *d, TvLeaves *out)
{
    d = tv_spread(c, d);
    if (d->expr)
        vec_push(c->arena, out, d->expr);
    for (uint32_t i = 0; i < d->n; i++)
        tv_leaves(c, d->parts[i], out);
}

const TvData *tv_with_leaves(Ctx *c, const TvData *d, const Expr *const **next)
{
    TvData        *out = NEW(c->arena, TvData);
    const TvData **parts;

    d = tv_spread(c, d);
    if (!d->n && !d->expr)
        return d;
    *out = *d;
    out->parts = parts = NEW_ARRAY(c->arena, const TvData *, d->n + 1);
    if (d->expr)
        out->expr = *(*next)++;
    for (uint32_t i = 0; i < d->n; i++)
        parts[i] = tv_with_leaves(c, d->parts[i], next);
    return out;
}

/* Both are spread.  Lists of another length are deeper, which saves looking for their ends. */
static bool same_node(const TvData *a, const TvData *b, bool types)
{
    return a->kind == b->kind && a->n == b->n && a->ctor == b->ctor &&
           (a->kind != DATA_CTOR || a->depth == b->depth) && a->func == b->func &&
           a->env == b->env && a->index == b->index && !a->expr == !b->expr &&
           (!a->op || !b->op ? a->op == b->op : a->op->text == b->op->text) &&
           (!types || !a->expr || a->expr->type == b->expr->type);
}

bool tv_same_form(Ctx *c, const TvData *a, const TvData *b, bool types)
{
    a = tv_spread(c, a);
    b = tv_spread(c, b);
    if (a == b)
        return true;
    if (!same_node(a, b, types))
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (!tv_same_form(c, a->parts[i], b->parts[i], types))
            return false;
    return true;
}

/* ---- what a run decides ------------------------------------------------------------------------------ */

static const Expr *join_tensors(Ctx *c, Loc loc, const Expr *cond, const Expr *then,
                                const Expr *other)
{
    if (then->type == other->type)
        return expr_if(c, cond, then, other, loc);
    return error_at(c, E_IMPORT, loc, "a condition of %s, branches of %s and %s",
                    type_text(c, cond->type), type_text(c, then->type), type_text(c, other->type));
}

static const TvData *choice(Ctx *c, const Expr *cond, const TvData *then, const TvData *other)
{
    const TvData *parts[] = {then, other};
    TvData       *d = NEW(c->arena, TvData);

    *d = *tv_data_parts(c, DATA_CHOICE, NULL, 2, parts);
    d->expr = cond;
    return d;
}

/* Both are spread, and alike but for their parts. */
static const TvData *join_parts(Ctx *c, Loc loc, const Expr *cond, const TvData *then,
                                const TvData *other)
{
    const TvData **parts = NEW_ARRAY(c->arena, const TvData *, then->n + 1);

    for (uint32_t i = 0; i < then->n; i++)
        if (!(parts[i] = tv_join(c, loc, cond, then->parts[i], other->parts[i])))
            return NULL;
    return tv_data_parts(c, then->kind, then->ctor, then->n, parts);
}

const TvData *tv_join(Ctx *c, Loc loc, const Expr *cond, const TvData *then, const TvData *other)
{
    TvLeaves           a = {0}, b = {0}, out = {0};
    const Expr *const *next;
    const Expr        *e;

    if (then->kind == DATA_NOTHING || other->kind == DATA_NOTHING)
        return then->kind == DATA_NOTHING ? other : then;
    if (then->kind == DATA_EXPR && other->kind == DATA_EXPR)
        return tv_data_expr(c, then->expr == other->expr
                                   ? then->expr
                                   : join_tensors(c, loc, cond, then->expr, other->expr));
    if (!tv_same_form(c, then, other, false)) {
        const TvData *a0 = tv_spread(c, then), *b0 = tv_spread(c, other);
        bool alike = (a0->kind == DATA_TUPLE || a0->kind == DATA_CTOR) && a0->kind == b0->kind &&
                     a0->n == b0->n && a0->ctor == b0->ctor;

        return alike ? join_parts(c, loc, cond, a0, b0) : choice(c, cond, then, other);
    }
    tv_leaves(c, then, &a);
    tv_leaves(c, other, &b);
    if (!a.n)
        return then;
    if (!(e = join_tensors(c, loc, cond, tv_pack(c, &a), tv_pack(c, &b))))
        return NULL;
    if (a.n == 1)
        vec_push(c->arena, &out, e);
    for (uint32_t i = 0; a.n > 1 && i < a.n; i++) {
        const Expr *part = expr_proj(c, e, i, loc);

        vec_push(c->arena, &out, part);
    }
    next = out.at;
    return tv_with_leaves(c, then, &next);
}

const TvData *tv_replaced(Ctx *c, const TvData *d, const TvData *choice, const TvData *by)
{
    const TvData **parts;
    TvData        *out;
    bool           same = true;

    if (d == choice)
        return by;
    parts = NEW_ARRAY(c->arena, const TvData *, d->n + 1);
    for (uint32_t i = 0; i < d->n; i++) {
        parts[i] = tv_replaced(c, d->parts[i], choice, by);
        same &= parts[i] == d->parts[i];
    }
    if (same)
        return d;
    out = NEW(c->arena, TvData);
    *out = *d;
    out->parts = parts;
    return out;
}
