/* Control flow of networks: layers with networks in them, which give values to names around them.
 *
 * Such a network gets a scope.  What is in it in the end is merged into the scope around it: by
 * `if` where a name has a value in either case, or as variables of a loop.  A round that may be
 * over in its middle sets a flag, and the layers behind are a branch of their own. */
#include "frontends/coreml/coreml.h"

/* ---- which names networks take and give ----------------------------------------------------------- */

typedef struct {
    CmlImport *im;
    Map       *reads; /* by interned name, how many layers take it */
    Map       *known; /* names that are given */
    TextList   given;
} Uses;

static uintptr_t reads_of(const Map *reads, const char *name)
{
    return (uintptr_t)map_get(reads, PTR_KEY(name));
}

static void count_read(Uses *u, const char *name)
{
    name = intern(u->im->c->strings, name);
    map_put(u->reads, PTR_KEY(name), (void *)(reads_of(u->reads, name) + 1));
}

static bool read_network(CmlImport *im, Bytes bytes, CmlNetwork *out)
{
    *out = (CmlNetwork){0};
    return pb_read(im->c->diags, im->c->arena, (Loc){.file = im->path}, &cml_network, bytes, out);
}

/* survey.c has seen how deep they are. */
static bool add_uses(Uses *u, const CmlNetwork *net)
{
    CmlImport *im = u->im;

    for (uint32_t i = 0; i < net->layers.n; i++) {
        CmlLayer   l;
        CmlNetwork inner;
        CmlField   f;
        PbItem     it;

        if (!cml_read_layer(im->c, (Loc){.file = im->path}, net->layers.at[i], &l))
            return false;
        for (uint32_t k = 0; k < l.head.in.n; k++)
            count_read(u, l.head.in.at[k]);
        for (uint32_t k = 0; k < l.head.out.n; k++) {
            const char *name = intern(im->c->strings, l.head.out.at[k]);

            if (!map_get(u->known, PTR_KEY(name)))
                vec_push(im->c->arena, &u->given, name);
            map_put(u->known, PTR_KEY(name), u);
        }
        for (Reader r = reader(l.message.bytes); pb_next(&r, &it);)
            if (cml_field_numbered(l.message.record, it.number, &f) && f.kind == CML_RECORD &&
                !f.record && (!read_network(im, it.bytes, &inner) || !add_uses(u, &inner)))
                return false;
    }
    return true;
}

static Uses uses_of(CmlImport *im)
{
    return (Uses){im, map_new(im->c->arena), map_new(im->c->arena), {0}};
}

bool cml_count_reads(CmlImport *im, const CmlModel *m)
{
    const CmlNetwork *net = cml_network_of(m);
    Uses              u = uses_of(im);

    for (uint32_t i = 0; i < m->description->out.n; i++)
        count_read(&u, ((const CmlFeature *)m->description->out.at[i])->name);
    if (net->scores)
        count_read(&u, net->scores);
    im->reads = u.reads;
    return add_uses(&u, net);
}

/* ---- scopes --------------------------------------------------------------------------------------- */

static const Expr *flag_of(const CmlScope *s, uint32_t k)
{
    while (s && !s->flag[k])
        s = s->outer;
    return s ? s->flag[k] : NULL;
}

static const Expr *known_bool(const Build *b, bool v)
{
    return expr_scalar(b->c, DT_BOOL, v);
}

static void lower_flags(const Build *b, CmlScope *s)
{
    for (uint32_t k = 0; k < CML_FLAGS; k++)
        s->flag[k] = known_bool(b, false);
}

static const Expr *negated(const Build *b, const Expr *e)
{
    return e ? build_condition(b, build1(b, "logical_not", e, NULL)) : NULL;
}

static const Expr *both(const Build *b, const Expr *x, const Expr *y)
{
    return x && y ? build_condition(b, build2(b, "logical_and", x, y, NULL)) : NULL;
}

/* What `inner` has, from now on also in s. */
static void move_out(CmlScope *s, const CmlScope *inner)
{
    for (uint32_t i = 0; i < inner->names.n; i++)
        cml_put(s, inner->names.at[i], *cml_find(inner, inner->names.at[i]));
    for (uint32_t k = 0; k < CML_FLAGS; k++)
        if (inner->flag[k])
            s->flag[k] = inner->flag[k];
}

/* ---- branches ------------------------------------------------------------------------------------- */

typedef struct {
    TextList names;
    VEC(uint32_t) flags;
    VEC(const Expr *) yes, no;
    VEC(int64_t) seq;
} Merge;

/* Values of one name in both cases; in networks all numbers are floats. */
static bool add_values(const Build *b, Merge *m, CmlValue yes, CmlValue no)
{
    int64_t seq = yes.seq == no.seq ? yes.seq : 0;

    if (!seq && (!(yes.e = cml_plain(b, yes)) || !(no.e = cml_plain(b, no))))
        return false;
    if (!dtype_eq(expr_dtype(yes.e), expr_dtype(no.e))) {
        yes.e = build_cast(b, yes.e, DT_F32);
        no.e = build_cast(b, no.e, DT_F32);
    }
    vec_push(b->c->arena, &m->yes, yes.e);
    vec_push(b->c->arena, &m->no, no.e);
    vec_push(b->c->arena, &m->seq, seq);
    return yes.e && no.e;
}

/* Names that `from` gives; those that have no value in the other case have none behind it. */
static bool add_names(const Build *b, Merge *m, const CmlScope *from, const CmlScope *yes,
                      const CmlScope *no)
{
    for (uint32_t i = 0; i < from->names.n; i++) {
        const char     *name = from->names.at[i];
        const CmlValue *y = cml_find(yes, name), *n = cml_find(no, name);

        if (!y || !n || !y->e || !n->e || y->e == n->e ||
            (from == no && map_get(yes->values, PTR_KEY(name))))
            continue;
        vec_push(b->c->arena, &m->names, name);
        if (!add_values(b, m, *y, *n))
            return false;
    }
    return true;
}

/* Names and flags as the one scope has them or the other, in s. */
static bool merge(const Build *b, CmlScope *s, const Expr *cond, const CmlScope *yes,
                  const CmlScope *no)
{
    Merge        m = {0};
    const Expr **out;

    if (!add_names(b, &m, yes, yes, no) || !add_names(b, &m, no, yes, no))
        return false;
    for (uint32_t k = 0; k < CML_FLAGS; k++) {
        const Expr *y = flag_of(yes, k), *n = flag_of(no, k);

        if (y == n)
            continue;
        vec_push(b->c->arena, &m.flags, k);
        if (!add_values(b, &m, (CmlValue){.e = y}, (CmlValue){.e = n}))
            return false;
    }
    if (!m.yes.n)
        return true;
    out = NEW_ARRAY(b->c->arena, const Expr *, m.yes.n);
    if (!build_choose(b, cond, m.yes.n, m.yes.at, m.no.at, out))
        return false;
    for (uint32_t i = 0; i < m.names.n; i++)
        cml_put(s, m.names.at[i], (CmlValue){.e = out[i], .seq = m.seq.at[i]});
    for (uint32_t i = 0; i < m.flags.n; i++)
        s->flag[m.flags.at[i]] = out[m.names.n + i];
    return true;
}

static bool check_depth(const Build *b, const CmlScope *s)
{
    return s->depth < CML_MAX_NESTING ||
           build_error(b, E_UNSUPPORTED, "branches and loops are nested more than %d deep",
                       CML_MAX_NESTING);
}

/* The network of a field; layers NULL: there is none. */
static bool network_of(CmlNode *n, const char *field, CmlNetwork *out)
{
    CmlMessage m;

    *out = (CmlNetwork){0};
    if (!cml_message(n, field, &m))
        return true;
    if (!read_network(n->im, m.bytes, out))
        return false;
    return !out->preprocessing.n || cml_error(n, E_UNSUPPORTED, "preprocessing in its '%s'", field);
}

bool cml_branch(CmlNode *n)
{
    const Build *b = &n->b;
    const Expr  *cond = build_condition(b, cml_x(n, "cond"));
    CmlScope     yes = cml_scope(n->im, n->scope), no = cml_scope(n->im, n->scope);
    CmlNetwork   nets[2];
    double       v;

    if (!cond || !check_depth(b, n->scope) || !network_of(n, "if_branch", &nets[0]) ||
        !network_of(n, "else_branch", &nets[1]))
        return false;
    if (expr_const_f(cond, &v)) {
        if (!cml_import_layers(&yes, &nets[v == 0], 0))
            return false;
        move_out(n->scope, &yes);
        return true;
    }
    if (!cml_import_layers(&yes, &nets[0], 0))
        return build_no_branch(b, &n->im->shapes, cond, NO_THEN_BRANCH);
    if (!cml_import_layers(&no, &nets[1], 0))
        return build_no_branch(b, &n->im->shapes, cond, NO_ELSE_BRANCH);
    return merge(b, n->scope, cond, &yes, &no) ||
           build_no_branch(b, &n->im->shapes, cond, BRANCHES_DIFFER);
}

bool cml_import_rest(CmlScope *s, const CmlNetwork *net, uint32_t from)
{
    Build       b = {s->im->c, {.file = s->im->path, .line = s->im->ordinal}, "loop"};
    const Expr *over = flag_of(s, CML_STOPS);
    CmlScope    yes = cml_scope(s->im, s), no = cml_scope(s->im, s);
    double      v;

    if (expr_const_f(over, &v) && v == 0)
        return cml_import_layers(s, net, from);
    if (expr_const_f(over, &v) || from == net->layers.n)
        return true;
    if (!check_depth(&b, s))
        return false;
    lower_flags(&b, &yes);
    return cml_import_layers(&yes, net, from) && merge(&b, s, negated(&b, over), &yes, &no);
}

/* ---- loops ---------------------------------------------------------------------------------------- */

static bool raise_flags(CmlNode *n, bool leaves)
{
    if (!flag_of(n->scope, CML_STOPS))
        return cml_error(n, E_IMPORT, "it is in no loop");
    n->scope->flag[CML_STOPS] = known_bool(&n->b, true);
    if (leaves)
        n->scope->flag[CML_LEAVES] = n->scope->flag[CML_STOPS];
    return true;
}

bool cml_loop_break(CmlNode *n)
{
    return raise_flags(n, true);
}

bool cml_loop_continue(CmlNode *n)
{
    return raise_flags(n, false);
}

typedef struct {
    CmlNode    *n;
    CmlNetwork  condition, body;
    const char *go;    /* the name that the condition gives */
    const Expr *limit; /* rounds, i64; NULL: any number */
    TextList    names; /* of the variables, but for the number of the round */
    VEC(const Expr *) var, first, next;
} Loop;

/* What the condition's network says, after which s has what it gives. */
static const Expr *goes_on(const Loop *l, CmlScope *s)
{
    const Build    *b = &l->n->b;
    CmlScope        in = cml_scope(l->n->im, s);
    const CmlValue *v;
    const Expr     *before;

    if (!l->condition.layers.n)
        return known_bool(b, true);
    lower_flags(b, &in);
    before = in.flag[CML_STOPS];
    if (!cml_import_layers(&in, &l->condition, 0))
        return NULL;
    if (in.flag[CML_STOPS] != before)
        return build_error(b, E_IMPORT, "its condition leaves the loop");
    for (uint32_t k = 0; k < CML_FLAGS; k++)
        in.flag[k] = NULL;
    if (!(v = cml_find(&in, l->go)) || !v->e)
        return build_error(b, E_IMPORT, "its condition '%s' is not computed", l->go);
    move_out(s, &in);
    return build_condition(b, cml_plain(b, *v));
}

/* The same behind a round, which may have left the loop. */
static const Expr *goes_on_after(const Loop *l, CmlScope *round)
{
    const Build *b = &l->n->b;
    const Expr  *left = round->flag[CML_LEAVES], *never = known_bool(b, false), *go, *out;
    CmlScope     yes = cml_scope(l->n->im, round), no = cml_scope(l->n->im, round);
    double       v;

    if (expr_const_f(left, &v))
        return v != 0 ? never : goes_on(l, round);
    if (!(go = goes_on(l, &yes)) || !(left = negated(b, left)) || !merge(b, round, left, &yes, &no))
        return NULL;
    if (expr_const_f(go, &v))
        return v != 0 ? left : go;
    return build_choose(b, left, 1, &go, &never, &out) ? out : NULL;
}

static void add_variable(Loop *l, const char *name, const Expr *first)
{
    Arena *a = l->n->b.c->arena;

    vec_push(a, &l->names, name);
    vec_push(a, &l->first, first);
    vec_push(a, &l->var, expr_var(l->n->b.c, "state", first->type, l->n->b.loc));
}

/* Names that have a value before the loop and get others in it. */
static bool begin_round(Loop *l, const TextList *given, CmlScope *round)
{
    const Build *b = &l->n->b;

    for (uint32_t i = 0; i < given->n; i++) {
        const CmlValue *v = cml_find(l->n->scope, given->at[i]);
        const Expr     *e;

        if (!v || !v->e)
            continue;
        e = cml_plain(b, *v);
        if (e && !dtype_is_float(expr_dtype(e)))
            e = build_cast(b, e, DT_F32); /* as all numbers in networks */
        if (!e)
            return false;
        add_variable(l, given->at[i], e);
        cml_put(round, given->at[i], (CmlValue){.e = l->var.at[l->var.n - 1]});
    }
    lower_flags(b, round);
    return true;
}

/* Names that get their first values in a round, where layers behind the loop take them. */
static bool add_new(Loop *l, const Uses *u, const CmlScope *round)
{
    const Build *b = &l->n->b;

    for (uint32_t i = 0; i < u->given.n; i++) {
        const char     *name = u->given.at[i];
        const CmlValue *v = map_get(round->values, PTR_KEY(name));
        const Expr     *e;

        if (cml_find(l->n->scope, name) || !v || !v->e ||
            reads_of(l->n->im->reads, name) == reads_of(u->reads, name))
            continue;
        if (!(e = cml_plain(b, *v)) ||
            !(e = build_filled(b, build_cast(b, e, DT_F32), 0, expr_forms(e))))
            return false;
        add_variable(l, name, e);
    }
    return true;
}

static bool end_round(Loop *l, const CmlScope *round)
{
    const Build *b = &l->n->b;

    for (uint32_t i = 0; i < l->var.n; i++) {
        const Expr *e = cml_plain(b, *cml_find(round, l->names.at[i]));

        if (e && expr_has_shape(e))
            e = build_cast(b, e, expr_dtype(l->var.at[i]));
        if (!e)
            return false;
        if (e->type != l->var.at[i]->type)
            return cml_error(l->n, E_UNSUPPORTED, "'%s' is %s before a round and %s behind it",
                             l->names.at[i], type_text(b->c, l->var.at[i]->type),
                             type_text(b->c, e->type));
        vec_push(b->c->arena, &l->next, e);
    }
    return true;
}

/* A round's number is a variable behind the others. */
static bool count_rounds(Loop *l, const Expr **first_go, const Expr **next_go)
{
    const Build *b = &l->n->b;
    const Expr  *zero = expr_scalar(b->c, DT_I64, 0), *i;

    if (!l->limit)
        return true;
    i = expr_var(b->c, "i", zero->type, b->loc);
    vec_push(b->c->arena, &l->var, i);
    vec_push(b->c->arena, &l->first, zero);
    vec_push(b->c->arena, &l->next, build_by(b, "add", i, 1));
    *first_go = both(b, *first_go, build_less(b, zero, l->limit));
    *next_go = both(b, *next_go, build_less(b, l->next.at[l->next.n - 1], l->limit));
    return *first_go && *next_go;
}

static bool read_loop(CmlNode *n, Loop *l)
{
    const Build *b = &n->b;
    int64_t      most = cml_int(n, "max_loop_iterations", 0); /* without a sign */
    const Expr  *limit;

    most = most < 0 ? INT64_MAX : most;
    *l = (Loop){.n = n, .go = cml_text(n, "condition_var", "")};
    if (!network_of(n, "condition_network", &l->condition) ||
        !network_of(n, "body_network", &l->body) || !cml_maybe(n, "most", &limit))
        return false;
    if (limit && !expr_single(limit))
        return cml_error(n, E_IMPORT, "the number of rounds is %s", type_text(b->c, limit->type));
    if (limit)
        limit = cml_folded(n, "most", build_cast(b, build_reshape(b, limit, 0, NULL), DT_I64));
    else if (most || !l->condition.layers.n)
        limit = build_const(b, DT_I64, 0, NULL, &most);
    l->limit = limit;
    return true;
}

bool cml_loop(CmlNode *n)
{
    const Build *b = &n->b;
    Uses         u = uses_of(n->im);
    CmlScope     round = cml_scope(n->im, n->scope);
    const Expr  *first_go, *next_go, *all;
    BuildLoop    loop;
    Loop         l;
    double       v;

    if (!check_depth(b, n->scope) || !read_loop(n, &l) || !add_uses(&u, &l.condition) ||
        !add_uses(&u, &l.body) || !(first_go = goes_on(&l, n->scope)) ||
        !begin_round(&l, &u.given, &round) || !cml_import_layers(&round, &l.body, 0))
        return false;
    round.flag[CML_STOPS] = known_bool(b, false);
    if (!(next_go = goes_on_after(&l, &round)) || !add_new(&l, &u, &round) ||
        !end_round(&l, &round) || !count_rounds(&l, &first_go, &next_go))
        return false;
    if (expr_const_f(next_go, &v) && v != 0)
        return cml_error(n, E_IMPORT, "a loop without an end");
    loop = (BuildLoop){.name = intern_printf(b->c->strings, "loop%u", n->im->loops++),
                       .n = l.var.n,
                       .var = l.var.at,
                       .first = l.first.at,
                       .next = l.next.at,
                       .first_go = first_go,
                       .next_go = next_go,
                       .lifts = true};
    if (!(all = build_while(b, &loop, &n->im->functions)))
        return false;
    for (uint32_t i = 0; i < l.names.n; i++) {
        const Expr *e = build_proj(b, all, i);

        if (!e)
            return false;
        cml_put(n->scope, l.names.at[i], (CmlValue){.e = e});
    }
    return true;
}
