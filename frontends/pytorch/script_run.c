/* Statements of a function, one after another. */
#include "frontends/pytorch/script.h"

#include <string.h>

enum { MOST_STEPS = 1 << 22 };

/* ---- assignments ---------------------------------------------------------------------------------- */

static bool assign_attribute(Frame *f, const TsExpr *target, TsValue v)
{
    Script  *s = f->s;
    TsField *had;
    TsValue  of, was;

    if (!ts_eval(f, target->kids[0], &of))
        return false;
    if (of.kind != TS_OBJECT)
        return ts_error(f, E_IMPORT, "attribute '%s' of %s", target->text, ts_kind_text(s, &of));
    had = ts_field(of.object, target->text);
    if (had && ts_same(&had->value, &v))
        return true;
    was = had ? had->value : (TsValue){0};
    if (of.object->scope < s->im.scope)
        vec_push(s->c->arena, &s->journal, ((TsJournal){of.object, target->text, was}));
    ts_put_field(s, of.object, target->text, v);
    had = ts_field(of.object, target->text);
    if (of.object->path && !had->changed && !s->loading) {
        had->changed = true;
        vec_push(s->c->arena, &s->changed, ((TsJournal){of.object, had->name, was}));
    }
    return true;
}

bool ts_assign(Frame *f, const TsExpr *target, TsValue v)
{
    if (target->kind == TS_X_NAME) {
        map_put(f->values, PTR_KEY(target->text), DUP_ARRAY(f->s->c->arena, &v, 1));
        return true;
    }
    if (target->kind == TS_X_ATTR)
        return assign_attribute(f, target, v);
    return ts_error(f, E_UNSUPPORTED, "an assignment to something else than a name");
}

static bool unpack(Frame *f, const TsStatement *st, const TsValue *v)
{
    TsValue unknown = {.kind = v->kind};

    if (v->kind == TS_TENSOR) { /* of an operator whose other results are not made */
        if (!ts_assign(f, st->targets[0], *v))
            return false;
        for (uint32_t i = 1; i < st->ntargets; i++)
            if (!ts_assign(f, st->targets[i], (TsValue){.kind = TS_NOTHING}))
                return false;
        return true;
    }
    if (v->kind == TS_UNKNOWN || v->kind == TS_NOTHING) {
        for (uint32_t i = 0; i < st->ntargets; i++)
            if (!ts_assign(f, st->targets[i], unknown))
                return false;
        return true;
    }
    if ((v->kind != TS_TUPLE && v->kind != TS_LIST) || v->items->list.n < st->ntargets)
        return ts_error(f, E_IMPORT, "%s is no %u values", ts_kind_text(f->s, v), st->ntargets);
    for (uint32_t i = 0; i < st->ntargets; i++)
        if (!ts_assign(f, st->targets[i], v->items->list.at[i]))
            return false;
    return true;
}

static bool assign(Frame *f, const TsStatement *st)
{
    TsValue v;

    f->target = st->targets[0]->text;
    if (!ts_eval(f, st->value, &v))
        return false;
    f->target = NULL;
    if (f->raised)
        return true;
    return st->unpack ? unpack(f, st, &v) : ts_assign(f, st->targets[0], v);
}

/* ---- statements ----------------------------------------------------------------------------------- */

static bool branch(Frame *f, const TsStatement *st)
{
    TsValue v;
    bool    yes;

    if (!ts_eval(f, st->value, &v) || !ts_truth(f, &v))
        return false;
    if (f->raised)
        return true;
    if (ts_known_bool(&v, &yes))
        return ts_run(f, yes ? st->body : st->other);
    return ts_if(f, st, &v);
}

static bool give_back(Frame *f, const TsStatement *st)
{
    f->result = ts_none();
    if (st->value && !ts_eval(f, st->value, &f->result))
        return false;
    f->returned = !f->raised;
    return true;
}

static bool run_one(Frame *f, const TsStatement *st)
{
    TsValue v;

    f->line = st->line;
    switch (st->kind) {
    case TS_ASSIGN: return assign(f, st);
    case TS_EVAL: return ts_eval(f, st->value, &v);
    case TS_IF: return branch(f, st);
    case TS_WHILE:
    case TS_FOR: return ts_loop(f, st);
    case TS_WITH: return ts_eval(f, st->value, &v) && ts_run(f, st->body);
    case TS_RETURN: return give_back(f, st);
    case TS_PASS: break;
    }
    return true;
}

bool ts_run(Frame *f, TsBlock block)
{
    for (uint32_t i = 0; i < block.n && !f->returned && !f->raised; i++) {
        if (++f->s->steps > MOST_STEPS)
            return ts_error(f, E_UNSUPPORTED, "more than %d statements are run", MOST_STEPS);
        if (!run_one(f, &block.at[i]))
            return false;
    }
    return true;
}
