/* Loops, and branches that values of the run decide.
 *
 *     if cond:                  %1 = if %cond { (%a1, %b1) } else { (%a2, %b2) }
 *       a, b = ..               a = %1.0, b = %1.1
 *     else:
 *       a, b = ..
 *
 * Both branches are run, each on what was there before; names and attributes that one of them gives
 * a value are then what the condition says.  A branch that raises an exception is taken not to be
 * run.  Rounds of a loop are written out as long as it is known that there is another one; when
 * values of the run decide, the rest is a loop whose states are the names that its body gives
 * values,
 *
 *     while go:                 %1 = @while0(%go, %a)
 *       a = ..                  a = %1.0 */
#include "frontends/pytorch/script.h"

#include <string.h>

/* ---- names that a block gives values ------------------------------------------------------------------- */

typedef VEC(const char *) Names;

static void add_name(Ctx *c, Names *names, const char *name)
{
    for (uint32_t i = 0; i < names->n; i++)
        if (names->at[i] == name)
            return;
    vec_push(c->arena, names, name);
}

static void assigned(Ctx *c, Names *names, TsBlock block)
{
    for (uint32_t i = 0; i < block.n; i++) {
        const TsStatement *st = &block.at[i];

        for (uint32_t k = 0; k < st->ntargets; k++)
            if (st->targets[k]->kind == TS_X_NAME)
                add_name(c, names, st->targets[k]->text);
        assigned(c, names, st->body);
        assigned(c, names, st->other);
    }
}

/* ---- what two branches come to -------------------------------------------------------------------------- */

/* Tensors are joined by one `if` of a tuple: the first pass collects them, the second hands out
 * what came of them. */
typedef struct {
    Frame      *f;
    const Expr *cond, *result;
    bool        second;
    uint32_t    at;
    VEC(const Expr *) yes;
    VEC(const Expr *) no;
} Join;

static bool join(Join *j, const char *name, const TsValue *a, const TsValue *b, TsValue *out);

static bool differ(Join *j, const char *name, const TsValue *a, const TsValue *b)
{
    Script *s = j->f->s;

    return ts_error(j->f, E_UNSUPPORTED,
                    "'%s' is %s or %s, and values of the run decide which of them", name,
                    ts_kind_text(s, a), ts_kind_text(s, b));
}

static bool join_cells(Join *j, const char *name, const TsValue *a, const TsValue *b,
                       const Expr **out)
{
    Build       build = {.c = j->f->s->c, .loc = j->f->s->loc, .what = "if"};
    const Expr *x, *y;
    DType       t;

    if (j->second) {
        *out = j->yes.n == 1 ? j->result : build_proj(&build, j->result, j->at++);
        return *out != NULL;
    }
    if (!(x = ts_read(j->f, a)) || !(y = ts_read(j->f, b)))
        return false;
    if (a->kind != TS_TENSOR) {
        t = pt_join(expr_dtype(x), expr_dtype(y));
        x = build_cast(&build, x, t);
        y = build_cast(&build, y, t);
    }
    if (x->type != y->type)
        return differ(j, name, a, b);
    vec_push(build.c->arena, &j->yes, x);
    vec_push(build.c->arena, &j->no, y);
    *out = x;
    return true;
}

static bool join_items(Join *j, const char *name, const TsValue *a, const TsValue *b, TsValue *out)
{
    Script *s = j->f->s;

    if (a->kind != b->kind || a->items->list.n != b->items->list.n || a->kind == TS_DICT)
        return differ(j, name, a, b);
    *out = ts_items(s, a->kind, 0, NULL);
    out->class = a->class;
    for (uint32_t i = 0; i < a->items->list.n; i++) {
        TsValue v;

        if (!join(j, name, &a->items->list.at[i], &b->items->list.at[i], &v))
            return false;
        vec_push(s->c->arena, &out->items->list, v);
    }
    return true;
}

static bool join(Join *j, const char *name, const TsValue *a, const TsValue *b, TsValue *out)
{
    const Expr *e;

    *out = a->kind == TS_NOTHING || b->kind == TS_UNKNOWN ? *b : *a;
    if (a->kind == TS_NOTHING || b->kind == TS_NOTHING || a->kind == TS_UNKNOWN ||
        b->kind == TS_UNKNOWN || ts_same(a, b))
        return true;
    if (a->items && b->items)
        return join_items(j, name, a, b, out);
    if ((a->kind != TS_TENSOR || b->kind != TS_TENSOR) && (!ts_is_number(a) || !ts_is_number(b)))
        return differ(j, name, a, b);
    if (!join_cells(j, name, a, b, &e))
        return false;
    *out = a->kind == TS_TENSOR ? ts_tensor(j->f->s, e) : ts_number(j->f->s, e);
    return true;
}

static bool join_built(Join *j)
{
    Ctx *c = j->f->s->c;
    Loc  loc = j->f->s->loc;

    j->second = true;
    if (j->yes.n == 0)
        return true;
    j->result = j->yes.n == 1 ? expr_if(c, j->cond, j->yes.at[0], j->no.at[0], loc)
                              : expr_if(c, j->cond, expr_tuple(c, j->yes.n, j->yes.at, loc),
                                        expr_tuple(c, j->no.n, j->no.at, loc), loc);
    return j->result != NULL;
}

/* ---- branches --------------------------------------------------------------------------------------------- */

/* What a branch leaves behind: of the names that are assigned in either, and of attributes. */
typedef struct {
    const TsValue **values; /* NULL: none */
    VEC(TsJournal) fields;  /* `was`: what it is after the branch */
    bool raised;
} Branch;

static void take_fields(Script *s, uint32_t from, Branch *out)
{
    for (uint32_t i = s->journal.n; i-- > from;) {
        TsJournal *entry = &s->journal.at[i];
        TsJournal  now = *entry;
        bool       had = false;

        for (uint32_t k = 0; k < out->fields.n; k++)
            had |=
                out->fields.at[k].object == entry->object && out->fields.at[k].name == entry->name;
        now.was = ts_field(entry->object, entry->name)->value;
        if (!had)
            vec_push(s->c->arena, &out->fields, now);
        ts_put_field(s, entry->object, entry->name, entry->was);
    }
    s->journal.n = from;
}

static bool run_branch(Frame *f, TsBlock block, const Names *names, Branch *out)
{
    Script         *s = f->s;
    uint32_t        scope = s->im.scope, from = s->journal.n;
    const TsValue **before = NEW_ARRAY(s->c->arena, const TsValue *, names->n + 1);
    bool            ok;

    *out = (Branch){.values = NEW_ARRAY(s->c->arena, const TsValue *, names->n + 1)};
    for (uint32_t i = 0; i < names->n; i++)
        before[i] = map_get(f->values, PTR_KEY(names->at[i]));
    s->im.scope = ++s->im.scopes;
    ok = ts_run(f, block);
    s->im.scope = scope;
    if (ok && f->returned)
        return ts_error(f, E_UNSUPPORTED, "a function returns where values of the run decide it");
    out->raised = f->raised;
    f->raised = false;
    for (uint32_t i = 0; i < names->n; i++) {
        out->values[i] = map_get(f->values, PTR_KEY(names->at[i]));
        if (before[i])
            map_put(f->values, PTR_KEY(names->at[i]), (void *)(uintptr_t)before[i]);
        else
            map_del(f->values, PTR_KEY(names->at[i]));
    }
    take_fields(s, from, out);
    return ok;
}

static void keep(Frame *f, const Names *names, const Branch *b)
{
    for (uint32_t i = 0; i < names->n; i++)
        if (b->values[i])
            map_put(f->values, PTR_KEY(names->at[i]), (void *)(uintptr_t)b->values[i]);
    for (uint32_t i = 0; i < b->fields.n; i++)
        ts_put_field(f->s, b->fields.at[i].object, b->fields.at[i].name, b->fields.at[i].was);
}

static const TsValue *field_after(const Branch *b, const TsJournal *field)
{
    for (uint32_t i = 0; i < b->fields.n; i++)
        if (b->fields.at[i].object == field->object && b->fields.at[i].name == field->name)
            return &b->fields.at[i].was;
    return &ts_field(field->object, field->name)->value;
}

/* Names are put when both have a value; others are of the branch alone. */
static bool join_names(Join *j, const Names *names, const Branch *yes, const Branch *no,
                       TsValue *out)
{
    for (uint32_t i = 0; i < names->n; i++)
        if (yes->values[i] && no->values[i] &&
            !join(j, names->at[i], yes->values[i], no->values[i], &out[i]))
            return false;
    return true;
}

static bool join_fields(Join *j, const Branch *of, const Branch *yes, const Branch *no,
                        TsValue *out)
{
    for (uint32_t i = 0; i < of->fields.n; i++) {
        const TsJournal *field = &of->fields.at[i];

        if (!join(j, field->name, field_after(yes, field), field_after(no, field), &out[i]))
            return false;
    }
    return true;
}

static bool join_branches(Join *j, const Names *names, const Branch *yes, const Branch *no)
{
    Arena   *a = j->f->s->c->arena;
    TsValue *values = NEW_ARRAY(a, TsValue, names->n + 1),
            *fields = NEW_ARRAY(a, TsValue, yes->fields.n + 1),
            *others = NEW_ARRAY(a, TsValue, no->fields.n + 1);

    for (uint32_t round = 0; round < 2; round++)
        if (!join_names(j, names, yes, no, values) || !join_fields(j, yes, yes, no, fields) ||
            !join_fields(j, no, yes, no, others) || (round == 0 && !join_built(j)))
            return false;
    for (uint32_t i = 0; i < names->n; i++)
        if (yes->values[i] && no->values[i])
            map_put(j->f->values, PTR_KEY(names->at[i]), DUP_ARRAY(a, &values[i], 1));
    for (uint32_t i = 0; i < yes->fields.n; i++)
        ts_put_field(j->f->s, yes->fields.at[i].object, yes->fields.at[i].name, fields[i]);
    for (uint32_t i = 0; i < no->fields.n; i++)
        ts_put_field(j->f->s, no->fields.at[i].object, no->fields.at[i].name, others[i]);
    return true;
}

/* Is it a tensor that has no cells where `size` is 0, or (NULL) that may have none? */
static bool empty_tensor(Frame *f, const TsValue *v, const Idx *size)
{
    const Idx *cells = idx_const(f->s->c->arith, 1);
    Dims       dims;

    if (!v || v->kind != TS_TENSOR || !ts_dims(f, v, &dims))
        return false;
    for (uint32_t i = 0; i < dims.n; i++) {
        if (size ? dims.at[i] == size || dims.at[i]->hi == 0 : dims.at[i]->lo == 0)
            return true;
        cells = idx_mul(f->s->c->arith, cells, dims.at[i]);
    }
    return size && cells == size;
}

/* `if boxes.numel() == 0: keep = torch.empty([0]) else: keep = nms(boxes)`: a branch for a tensor
 * that is empty, which makes empty tensors or keeps them, stands for what some operators cannot do;
 * ours can, and the other branch makes them, too.  *done: it is such a branch, and the other one
 * was run. */
static bool past_guard(Frame *f, const TsStatement *st, const TsValue *cond, const Names *names,
                       bool *done)
{
    TsBlock guard = cond->empty ? st->body : st->other, rest = cond->empty ? st->other : st->body;
    const TsValue **before = NEW_ARRAY(f->s->c->arena, const TsValue *, names->n + 1);
    Branch          empty;

    *done = false;
    if (!guard.n || !rest.n || !names->n)
        return true;
    if (!run_branch(f, guard, names, &empty))
        return false;
    for (uint32_t i = 0; i < names->n; i++) {
        before[i] = map_get(f->values, PTR_KEY(names->at[i]));
        if (empty.values[i] && empty.values[i] != before[i] &&
            !empty_tensor(f, empty.values[i], cond->size))
            return true;
    }
    if (empty.raised || empty.fields.n)
        return true;
    *done = true;
    if (!ts_run(f, rest))
        return false;
    for (uint32_t i = 0; i < names->n; i++) {
        const TsValue *now = map_get(f->values, PTR_KEY(names->at[i]));

        /* what the guard leaves alone may only change from empty to empty */
        if (empty.values[i] && now != empty.values[i] &&
            !(empty_tensor(f, empty.values[i], NULL) && empty_tensor(f, now, NULL)))
            return ts_error(
                f, E_UNSUPPORTED,
                "what '%s' is depends on whether a tensor is empty, which a run decides",
                names->at[i]);
    }
    return true;
}

bool ts_if(Frame *f, const TsStatement *st, const TsValue *cond)
{
    Build  b = {.c = f->s->c, .loc = f->s->loc, .what = "if"};
    Join   j = {.f = f, .cond = cond->e};
    Names  names = {0};
    Branch yes, no;
    bool   done = false;

    if (!j.cond)
        return ts_error(f, E_UNSUPPORTED, "sizes that a run decides choose a branch");
    assigned(f->s->c, &names, st->body);
    assigned(f->s->c, &names, st->other);
    if (cond->size && !past_guard(f, st, cond, &names, &done))
        return false;
    if (done)
        return true;
    if (!run_branch(f, st->body, &names, &yes))
        return build_no_branch(&b, &f->s->im.shapes, j.cond, NO_THEN_BRANCH);
    if (!run_branch(f, st->other, &names, &no))
        return build_no_branch(&b, &f->s->im.shapes, j.cond, NO_ELSE_BRANCH);
    f->raised = yes.raised && no.raised;
    if (yes.raised || no.raised) {
        keep(f, &names, yes.raised ? &no : &yes);
        return true;
    }
    return join_branches(&j, &names, &yes, &no) ||
           build_no_branch(&b, &f->s->im.shapes, j.cond, BRANCHES_DIFFER);
}

/* ---- loops that a run ends ------------------------------------------------------------------------------ */

/* A loop whose body is run once, on variables; i counts the rounds of a `for`. */
typedef struct {
    Frame             *f;
    const TsStatement *st;
    Names              names, states; /* that are assigned; that have a value before, too */
    const Expr       **var, **first, **next;
    const Expr        *i, *limit; /* of a `for` */
} Rounds;

static Build build_of(const Frame *f)
{
    return (Build){.c = f->s->c, .loc = f->s->loc, .what = "while"};
}

static TsValue like(Rounds *r, const char *name, const Expr *e)
{
    const TsValue *was = map_get(r->f->values, PTR_KEY(name));

    return was->kind == TS_TENSOR ? ts_tensor(r->f->s, e) : ts_number(r->f->s, e);
}

static void put(Rounds *r, const char *name, TsValue v)
{
    map_put(r->f->values, PTR_KEY(name), DUP_ARRAY(r->f->s->c->arena, &v, 1));
}

static bool begin_states(Rounds *r)
{
    Script *s = r->f->s;

    for (uint32_t i = 0; i < r->names.n; i++) {
        const TsValue *v = map_get(r->f->values, PTR_KEY(r->names.at[i]));

        if (!v)
            continue;
        if (v->kind != TS_TENSOR && !ts_is_number(v))
            return ts_error(r->f, E_UNSUPPORTED,
                            "'%s' is %s, and a run decides how often it changes", r->names.at[i],
                            ts_kind_text(s, v));
        vec_push(s->c->arena, &r->states, r->names.at[i]);
    }
    r->var = NEW_ARRAY(s->c->arena, const Expr *, r->states.n + 2);
    r->first = NEW_ARRAY(s->c->arena, const Expr *, r->states.n + 2);
    r->next = NEW_ARRAY(s->c->arena, const Expr *, r->states.n + 2);
    for (uint32_t i = 0; i < r->states.n; i++) {
        const char *name = r->states.at[i];

        if (!(r->first[i] = ts_read(r->f, map_get(r->f->values, PTR_KEY(name)))))
            return false;
        r->var[i] = expr_var(s->c, name, r->first[i]->type, s->loc);
        put(r, name, like(r, name, r->var[i]));
    }
    return true;
}

/* The states after a round, and whether there is another one. */
static bool run_round(Rounds *r, const Expr **go)
{
    Frame   *f = r->f;
    uint32_t scope = f->s->im.scope;
    Build    b = build_of(f);
    Branch   after;
    TsValue  v;

    if (r->i && !ts_assign(f, r->st->targets[0], ts_number(f->s, r->i)))
        return false;
    if (!run_branch(f, r->st->body, &r->names, &after))
        return false;
    if (after.raised || after.fields.n)
        return ts_error(f, E_UNSUPPORTED, "a loop that a run ends %s",
                        after.raised ? "raises an exception" : "changes attributes");
    for (uint32_t i = 0; i < r->states.n; i++) {
        const char    *name = r->states.at[i];
        const TsValue *now = map_get(f->values, PTR_KEY(name));

        for (uint32_t k = 0; k < r->names.n; k++)
            if (r->names.at[k] == name && after.values[k])
                now = after.values[k];
        if (!(r->next[i] = ts_read(f, now)))
            return false;
        if (r->next[i]->type != r->var[i]->type)
            return ts_error(f, E_UNSUPPORTED, "'%s' is %s, and %s after a round", name,
                            type_text(b.c, r->var[i]->type), type_text(b.c, r->next[i]->type));
    }
    if (r->i) {
        r->next[r->states.n] = build_by(&b, "add", r->i, 1);
        *go = build_less(&b, r->next[r->states.n], r->limit);
        return *go != NULL;
    }
    keep(f, &r->names, &after);
    f->s->im.scope = ++f->s->im.scopes;
    bool ok = ts_eval(f, r->st->value, &v) && ts_truth(f, &v) && (*go = ts_read(f, &v));

    f->s->im.scope = scope;
    return ok;
}

/* first_go: whether there is a first round. */
static bool run_rounds(Rounds *r, const Expr *first_go)
{
    Frame          *f = r->f;
    Build           b = build_of(f);
    BuildLoop       l = {.first_go = first_go, .lifts = true};
    const Expr     *all;
    Arith          *A = f->s->c->arith;
    const TsValue **was;

    assigned(f->s->c, &r->names, r->st->body);
    if (!begin_states(r))
        return false;
    was = NEW_ARRAY(b.c->arena, const TsValue *, r->states.n + 1);
    for (uint32_t i = 0; i < r->states.n; i++)
        was[i] = map_get(f->values, PTR_KEY(r->states.at[i]));
    l.n = r->states.n;
    if (r->i) {
        r->var[l.n] = r->i;
        r->first[l.n++] = build_values(&b, r->i->type, (Dims){1, &(const Idx *){idx_const(A, 0)}});
    }
    if (!run_round(r, &l.next_go))
        return false;
    l.name = pt_loop_name(&f->s->im, "while");
    l.var = r->var, l.first = r->first, l.next = r->next;
    if (!(all = build_while(&b, &l, &f->s->im.functions)))
        return false;
    for (uint32_t i = 0; i < r->names.n; i++) /* those of the body alone end with it */
        map_del(f->values, PTR_KEY(r->names.at[i]));
    for (uint32_t i = 0; i < r->states.n; i++) {
        const Expr *e = build_proj(&b, all, i);

        if (!e)
            return false;
        put(r, r->states.at[i],
            was[i]->kind == TS_TENSOR ? ts_tensor(f->s, e) : ts_number(f->s, e));
    }
    return true;
}

static bool while_run(Frame *f, const TsStatement *st, const TsValue *go)
{
    Rounds r = {.f = f, .st = st};

    if (!go->e)
        return ts_error(f, E_UNSUPPORTED, "a loop that sizes of the run end");
    return run_rounds(&r, go->e);
}

/* count: how many rounds */
static bool for_run(Frame *f, const TsStatement *st, const TsValue *count)
{
    Rounds      r = {.f = f, .st = st};
    Build       b = build_of(f);
    const Expr *first;

    if (!(r.limit = ts_read(f, count)) || !(r.limit = build_cast(&b, r.limit, DT_I64)))
        return false;
    r.i = expr_var(b.c, "i", r.limit->type, b.loc);
    first = build_less(&b, build_scalar(&b, r.limit, 0), r.limit);
    return first && run_rounds(&r, first);
}

/* ---- loops ------------------------------------------------------------------------------------------------- */

static bool round_of(Frame *f, const TsStatement *st, const TsValue *v)
{
    return ts_assign(f, st->targets[0], *v) && ts_run(f, st->body);
}

static bool for_loop(Frame *f, const TsStatement *st)
{
    const TsExpr *x = st->value;
    bool          counted = x->kind == TS_X_CALL && x->kids[0]->kind == TS_X_NAME &&
                   !strcmp(x->kids[0]->text, "range") && x->n == 2;
    TsValue v;
    int64_t n;

    if (st->ntargets != 1 || st->unpack)
        return ts_error(f, E_UNSUPPORTED, "a loop over several names");
    if (!ts_eval(f, counted ? x->kids[1] : x, &v))
        return false;
    if (!counted && v.kind != TS_LIST)
        return ts_error(f, E_UNSUPPORTED, "a loop over %s", ts_kind_text(f->s, &v));
    if (counted && !ts_known_int(&v, &n))
        return for_run(f, st, &v);
    n = counted ? n : (int64_t)v.items->list.n;
    for (int64_t i = 0; i < n && !f->returned && !f->raised; i++) {
        TsValue at = counted ? ts_int(f->s, i) : v.items->list.at[i];

        if (!round_of(f, st, &at))
            return false;
    }
    return true;
}

bool ts_loop(Frame *f, const TsStatement *st)
{
    TsValue v;
    bool    yes = true;

    if (st->kind == TS_FOR)
        return for_loop(f, st);
    while (yes && !f->returned && !f->raised) {
        if (!ts_eval(f, st->value, &v) || !ts_truth(f, &v))
            return false;
        if (!ts_known_bool(&v, &yes))
            return while_run(f, st, &v);
        if (yes && !ts_run(f, st->body))
            return false;
    }
    return true;
}
