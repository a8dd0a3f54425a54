/* Relay's makers, walk and rewrite.
 *
 * A maker allocates the node and gives it a type at once when its operands are typed: operator
 * calls through the operator's relation, the rest by the rules below.  An untyped operand leaves
 * the type NULL for infer_type.  Halos are a property of one value's memory, so relations and
 * comparisons see types without them.
 *
 * Walks use an explicit stack of (node, next kid); variables bound by patterns count as further
 * kids of a match, so that a rewrite reaches them too. */
#include "ir/relay/relay.h"
#include "ir/te/te.h"

#include <string.h>

static Expr *node_new(Ctx *c, ExprKind kind, uint32_t n, const Expr *const *kids, Loc loc)
{
    Expr *e = NEW(c->arena, Expr);

    e->kind = kind;
    e->id = c->next_expr++;
    e->loc = loc;
    e->nkids = n;
    e->kids = n ? DUP_ARRAY(c->arena, kids, n) : NULL;
    return e;
}

/* Known: has a type, free of type variables. */
static bool type_known(const Type *t)
{
    if (!t || t->kind == TYPE_VAR)
        return false;
    if (t->kind != TYPE_TENSOR)
        for (uint32_t i = 0; i < t->n; i++)
            if (!type_known(t->parts[i]))
                return false;
    return !t->ret || type_known(t->ret);
}

/* ---- constants ------------------------------------------------------------------------------- */

const Const *const_new(Ctx *c, const char *name, const Type *type, Bytes data)
{
    Const  *k = NEW(c->arena, Const);
    int64_t n;

    if (!type_elems(type, &n) || (uint64_t)n * dtype_bytes(type->dtype) != data.n)
        BUG("constant '%s' of type %s has %zu bytes", name ? name : "", type_text(c, type), data.n);
    k->name = name ? intern(c->strings, name) : NULL;
    k->type = type_plain(c, type);
    k->data = data;
    return k;
}

const Expr *expr_const(Ctx *c, const Const *k, Loc loc)
{
    Expr *e = node_new(c, EXPR_CONST, 0, NULL, loc);

    e->u.constant = k;
    e->type = k->type;
    return e;
}

const Expr *expr_scalar(Ctx *c, DType t, double v)
{
    void *p = arena_alloc(c->arena, dtype_bytes(t));

    dtype_put_f(t, p, v);
    return expr_const(c, const_new(c, NULL, type_tensor(c, t, 0, NULL), (Bytes){p, dtype_bytes(t)}),
                      NO_LOC);
}

const Expr *expr_const_i64s(Ctx *c, const int64_t *v, uint32_t n)
{
    int64_t dim = n;
    void   *p = arena_dup(c->arena, v, n * sizeof *v);

    return expr_const(
        c, const_new(c, NULL, type_tensor_i64(c, DT_I64, 1, &dim), (Bytes){p, n * sizeof *v}),
        NO_LOC);
}

bool expr_ints(Ctx *c, const Expr *e, Ints *out)
{
    const Const *k;
    int64_t      n, *v;

    if (!e || e->kind != EXPR_CONST)
        return false;
    k = e->u.constant;
    if (!type_elems(k->type, &n) || n > UINT32_MAX)
        return false;
    v = NEW_ARRAY(c->arena, int64_t, n ? (size_t)n : 1);
    for (int64_t i = 0; i < n; i++)
        v[i] = dtype_get_i(k->type->dtype, k->data.at + (size_t)i * dtype_bytes(k->type->dtype));
    *out = (Ints){(uint32_t)n, v};
    return true;
}

bool expr_const_f(const Expr *e, double *v)
{
    const Const *k;
    uint32_t     size;

    if (e->kind != EXPR_CONST)
        return false;
    k = e->u.constant;
    size = dtype_bytes(k->type->dtype);
    if (k->data.n < size)
        return false;
    for (size_t i = size; i < k->data.n; i += size)
        if (memcmp(k->data.at, k->data.at + i, size) != 0)
            return false;
    *v = dtype_get_f(k->type->dtype, k->data.at);
    return true;
}

/* ---- leaves --------------------------------------------------------------------------------- */

const Expr *expr_var(Ctx *c, const char *name, const Type *annotation, Loc loc)
{
    Expr *e = node_new(c, EXPR_VAR, 0, NULL, loc);

    e->u.var = (VarData){intern(c->strings, name), annotation};
    e->type = annotation;
    return e;
}

const Expr *expr_global(Ctx *c, const char *name, const Type *type, Loc loc)
{
    Expr *e = node_new(c, EXPR_GLOBAL, 0, NULL, loc);

    e->u.name = intern(c->strings, name);
    e->type = type;
    return e;
}

const Expr *expr_op(Ctx *c, const Op *op)
{
    Expr *e = node_new(c, EXPR_OP, 0, NULL, NO_LOC);

    e->u.op = op;
    return e;
}

const Expr *expr_ctor(Ctx *c, const Ctor *k)
{
    Expr *e = node_new(c, EXPR_CTOR, 0, NULL, NO_LOC);

    e->u.ctor = k;
    return e;
}

/* ---- tuples --------------------------------------------------------------------------------- */

const Expr *expr_tuple(Ctx *c, uint32_t n, const Expr *const *fields, Loc loc)
{
    Expr        *e = node_new(c, EXPR_TUPLE, n, fields, loc);
    const Type **t = NEW_ARRAY(c->scratch, const Type *, n ? n : 1);

    for (uint32_t i = 0; i < n; i++)
        if (!(t[i] = fields[i]->type))
            return e;
    e->type = type_tuple(c, n, t);
    return e;
}

const Expr *expr_proj(Ctx *c, const Expr *tuple, uint32_t index, Loc loc)
{
    Expr       *e = node_new(c, EXPR_PROJ, 1, &tuple, loc);
    const Type *t = tuple->type;

    e->u.index = index;
    if (!t || t->kind == TYPE_VAR)
        return e;
    if (t->kind != TYPE_TUPLE)
        return error_at(c, E_TYPE, loc, "'.%u' needs a tuple, this is %s", index, type_text(c, t));
    if (index >= t->n)
        return error_at(c, E_TYPE, loc, "'.%u' is past the end of %s", index, type_text(c, t));
    e->type = t->parts[index];
    return e;
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* Operands that kernels can have; relations keep their dimensions in arrays of TE_MAX_AXES. */
static bool check_ranks(Ctx *c, Loc loc, const Type *t)
{
    for (uint32_t i = 0; t->kind == TYPE_TUPLE && i < t->n; i++)
        if (!check_ranks(c, loc, t->parts[i]))
            return false;
    return t->kind != TYPE_TENSOR || t->n <= TE_MAX_AXES ||
           error_at(c, E_TYPE, loc, "a tensor of %u dimensions; at most %u are supported", t->n,
                    TE_MAX_AXES);
}

const Type *op_rel(Ctx *c, const Op *op, Loc loc, const void *attrs, const Type *const *in,
                   uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!check_ranks(c, loc, in[i]))
            return NULL;
    return op->rel(c, loc, attrs, in, n);
}

const Expr *expr_call(Ctx *c, const Op *op, uint32_t n, const Expr *const *args, const void *attrs,
                      Loc loc)
{
    const Expr **kids = NEW_ARRAY(c->scratch, const Expr *, n + 1);
    const Type **in = NEW_ARRAY(c->scratch, const Type *, n ? n : 1);
    bool         known = true;
    Expr        *e;

    if (n < op->min_in || n > op->max_in) {
        if (op->min_in == op->max_in)
            return error_at(c, E_TYPE, loc, "'%s' takes %u operand%s, not %u", op->text, op->min_in,
                            op->min_in == 1 ? "" : "s", n);
        return error_at(c, E_TYPE, loc, "'%s' takes %u to %u operands, not %u", op->text,
                        op->min_in, op->max_in, n);
    }
    kids[0] = expr_op(c, op);
    for (uint32_t i = 0; i < n; i++) {
        kids[i + 1] = args[i];
        known &= type_known(args[i]->type);
        if (known)
            in[i] = type_plain(c, args[i]->type);
    }
    if (!attrs && op->attrs)
        attrs = attrs_new(c, op->attrs);
    e = node_new(c, EXPR_CALL, n + 1, kids, loc);
    e->u.attrs = attrs;
    if (known && op->rel && !(e->type = op_rel(c, op, loc, attrs, in, n)))
        return NULL;
    return e;
}

const Expr *expr_call_name(Ctx *c, const char *op, uint32_t n, const Expr *const *args,
                           const void *attrs, Loc loc)
{
    const Op *row = op_find(c, op);

    if (!row)
        BUG("there is no operator '%s'", op);
    return expr_call(c, row, n, args, attrs, loc);
}

/* Bind the type variables of `want` so that it equals `have`; `bound` is indexed like adt->vars. */
static bool match_type(Ctx *c, const Adt *adt, const Type *want, const Type *have,
                       const Type **bound)
{
    if (want->kind == TYPE_VAR) {
        for (uint32_t i = 0; i < adt->nvars; i++)
            if (adt->vars[i] == want) {
                if (!bound[i])
                    bound[i] = have;
                return bound[i] == have;
            }
        return want == have;
    }
    if (want == have)
        return true;
    if (want->kind != have->kind || want->n != have->n || want->name != have->name ||
        want->kind == TYPE_TENSOR)
        return false;
    for (uint32_t i = 0; i < want->n; i++)
        if (!match_type(c, adt, want->parts[i], have->parts[i], bound))
            return false;
    return !want->ret || match_type(c, adt, want->ret, have->ret, bound);
}

static bool type_ctor_call(Ctx *c, const Ctor *k, uint32_t n, const Expr *const *args, Loc loc,
                           const Type **out)
{
    const Type **bound = NEW_ARRAY(c->scratch, const Type *, k->adt->nvars ? k->adt->nvars : 1);

    *out = NULL;
    if (n != k->nfields)
        return error_at(c, E_TYPE, loc, "'%s' takes %u field%s, not %u", k->name, k->nfields,
                        k->nfields == 1 ? "" : "s", n);
    for (uint32_t i = 0; i < n; i++)
        if (!type_known(args[i]->type))
            return true;
    for (uint32_t i = 0; i < n; i++)
        if (!match_type(c, k->adt, k->fields[i], type_plain(c, args[i]->type), bound))
            return error_at(c, E_TYPE, loc, "field %u of '%s' does not take %s", i, k->name,
                            type_text(c, args[i]->type));
    for (uint32_t i = 0; i < k->adt->nvars; i++)
        if (!bound[i])
            return true;
    *out = type_adt(c, k->adt->name, k->adt->nvars, bound);
    return true;
}

static bool type_apply(Ctx *c, const Type *f, uint32_t n, const Expr *const *args, Loc loc,
                       const Type **out)
{
    *out = NULL;
    if (!f || f->kind == TYPE_VAR)
        return true;
    if (f->kind != TYPE_FUNC)
        return error_at(c, E_TYPE, loc, "%s is called like a function", type_text(c, f));
    if (f->n != n)
        return error_at(c, E_TYPE, loc, "a function of %u parameters is called with %u", f->n, n);
    for (uint32_t i = 0; i < n; i++) {
        const Type *have = args[i]->type;

        if (type_known(have) && type_known(f->parts[i]) &&
            type_plain(c, have) != type_plain(c, f->parts[i]))
            return error_at(c, E_TYPE, loc, "argument %u is %s, the parameter %s", i,
                            type_text(c, have), type_text(c, f->parts[i]));
    }
    if (type_known(f->ret))
        *out = f->ret;
    return true;
}

const Expr *expr_apply(Ctx *c, const Expr *callee, uint32_t n, const Expr *const *args, Loc loc)
{
    const Expr **kids;
    const Type  *t;
    Expr        *e;

    if (callee->kind == EXPR_OP)
        return expr_call(c, callee->u.op, n, args, NULL, loc);
    if (callee->kind == EXPR_CTOR ? !type_ctor_call(c, callee->u.ctor, n, args, loc, &t)
                                  : !type_apply(c, callee->type, n, args, loc, &t))
        return NULL;
    kids = NEW_ARRAY(c->scratch, const Expr *, n + 1);
    kids[0] = callee;
    for (uint32_t i = 0; i < n; i++)
        kids[i + 1] = args[i];
    e = node_new(c, EXPR_CALL, n + 1, kids, loc);
    e->type = t;
    return e;
}

bool call_is(const Expr *e, const char *op)
{
    const Op *o = call_op(e);

    return o && !strcmp(o->text, op);
}

/* ---- control flow, functions, references, matching ------------------------------------------ */

const Expr *expr_let(Ctx *c, const Expr *var, const Expr *value, const Expr *body, Loc loc)
{
    const Expr *kids[] = {var, value, body};
    Expr       *e;

    if (type_known(var->type) && type_known(value->type) &&
        type_plain(c, var->type) != type_plain(c, value->type))
        return error_at(c, E_TYPE, loc, "'%s' is declared as %s, its value is %s", var->u.var.name,
                        type_text(c, var->type), type_text(c, value->type));
    e = node_new(c, EXPR_LET, 3, kids, loc);
    e->type = body->type;
    return e;
}

/* The common type of two arms; false with an error if they differ. */
static bool type_join(Ctx *c, const Type *a, const Type *b, Loc loc, const Type **out)
{
    *out = NULL;
    if (!type_known(a) || !type_known(b))
        return true;
    if (type_plain(c, a) != type_plain(c, b))
        return error_at(c, E_TYPE, loc, "one branch gives %s, another %s", type_text(c, a),
                        type_text(c, b));
    *out = a == b ? a : type_plain(c, a);
    return true;
}

const Expr *expr_if(Ctx *c, const Expr *cond, const Expr *then, const Expr *other, Loc loc)
{
    const Expr *kids[] = {cond, then, other};
    const Type *t;
    Expr       *e;

    if (type_known(cond->type) && (cond->type->kind != TYPE_TENSOR || cond->type->n != 0 ||
                                   !dtype_eq(cond->type->dtype, DT_BOOL)))
        return error_at(c, E_TYPE, loc, "a condition is Tensor[(), bool], this is %s",
                        type_text(c, cond->type));
    if (!type_join(c, then->type, other->type, loc, &t))
        return NULL;
    e = node_new(c, EXPR_IF, 3, kids, loc);
    e->type = t;
    return e;
}

const Expr *expr_func(Ctx *c, uint32_t nparams, const Expr *const *params, const Expr *body,
                      FuncData data, Loc loc)
{
    const Expr **kids = NEW_ARRAY(c->scratch, const Expr *, nparams + 1);
    const Type **t = NEW_ARRAY(c->scratch, const Type *, nparams ? nparams : 1);
    const Type  *ret = data.ret ? data.ret : body->type;
    bool         known = ret != NULL;
    Expr        *e;

    if (type_known(data.ret) && type_known(body->type) &&
        type_plain(c, data.ret) != type_plain(c, body->type))
        return error_at(c, E_TYPE, loc, "the function is declared to give %s, its body gives %s",
                        type_text(c, data.ret), type_text(c, body->type));
    for (uint32_t i = 0; i < nparams; i++) {
        kids[i] = params[i];
        t[i] = params[i]->type;
        known &= t[i] != NULL;
    }
    kids[nparams] = body;
    e = node_new(c, EXPR_FUNC, nparams + 1, kids, loc);
    e->u.func = data;
    if (known)
        e->type = type_func(c, nparams, t, ret);
    return e;
}

const Expr *expr_ref_new(Ctx *c, const Expr *value, Loc loc)
{
    Expr *e = node_new(c, EXPR_REF_NEW, 1, &value, loc);

    if (value->type)
        e->type = type_ref(c, type_plain(c, value->type));
    return e;
}

static bool check_ref(Ctx *c, const Expr *ref, Loc loc)
{
    if (ref->type && ref->type->kind != TYPE_REF && ref->type->kind != TYPE_VAR)
        return error_at(c, E_TYPE, loc, "a reference is needed, this is %s",
                        type_text(c, ref->type));
    return true;
}

const Expr *expr_ref_read(Ctx *c, const Expr *ref, Loc loc)
{
    Expr *e;

    if (!check_ref(c, ref, loc))
        return NULL;
    e = node_new(c, EXPR_REF_READ, 1, &ref, loc);
    if (type_known(ref->type))
        e->type = ref->type->parts[0];
    return e;
}

const Expr *expr_ref_write(Ctx *c, const Expr *ref, const Expr *value, Loc loc)
{
    const Expr *kids[] = {ref, value};
    Expr       *e;

    if (!check_ref(c, ref, loc))
        return NULL;
    if (type_known(ref->type) && type_known(value->type) &&
        ref->type->parts[0] != type_plain(c, value->type))
        return error_at(c, E_TYPE, loc, "%s is written to a %s", type_text(c, value->type),
                        type_text(c, ref->type));
    e = node_new(c, EXPR_REF_WRITE, 2, kids, loc);
    e->type = type_tuple(c, 0, NULL);
    return e;
}

const Expr *expr_match(Ctx *c, const Expr *value, uint32_t n, const Pattern *const *patterns,
                       const Expr *const *bodies, bool complete, Loc loc)
{
    const Expr **kids = NEW_ARRAY(c->scratch, const Expr *, n + 1);
    const Type  *t = n ? bodies[0]->type : NULL;
    Expr        *e;

    kids[0] = value;
    for (uint32_t i = 0; i < n; i++) {
        kids[i + 1] = bodies[i];
        if (i && !type_join(c, t, bodies[i]->type, loc, &t))
            return NULL;
    }
    e = node_new(c, EXPR_MATCH, n + 1, kids, loc);
    e->u.match = (MatchData){complete, n ? DUP_ARRAY(c->arena, patterns, n) : NULL};
    e->type = t;
    return e;
}

/* ---- the same node, changed ----------------------------------------------------------------- */

const Expr *expr_with_type(Ctx *c, const Expr *e, const Type *t)
{
    Expr *copy;

    if (e->type == t)
        return e;
    copy = node_new(c, e->kind, e->nkids, e->kids, e->loc);
    copy->u = e->u;
    copy->type = t;
    return copy;
}

static const Expr *remake(Ctx *c, const Expr *e, const Expr *const *k)
{
    switch (e->kind) {
    case EXPR_CONST:
    case EXPR_VAR:
    case EXPR_GLOBAL:
    case EXPR_OP:
    case EXPR_CTOR: return e;
    case EXPR_TUPLE: return expr_tuple(c, e->nkids, k, e->loc);
    case EXPR_PROJ: return expr_proj(c, k[0], e->u.index, e->loc);
    case EXPR_CALL:
        if (k[0]->kind == EXPR_OP)
            return expr_call(c, k[0]->u.op, e->nkids - 1, k + 1, e->u.attrs, e->loc);
        return expr_apply(c, k[0], e->nkids - 1, k + 1, e->loc);
    case EXPR_LET: return expr_let(c, k[0], k[1], k[2], e->loc);
    case EXPR_IF: return expr_if(c, k[0], k[1], k[2], e->loc);
    case EXPR_FUNC: return expr_func(c, e->nkids - 1, k, k[e->nkids - 1], e->u.func, e->loc);
    case EXPR_REF_NEW: return expr_ref_new(c, k[0], e->loc);
    case EXPR_REF_READ: return expr_ref_read(c, k[0], e->loc);
    case EXPR_REF_WRITE: return expr_ref_write(c, k[0], k[1], e->loc);
    case EXPR_MATCH:
        return expr_match(c, k[0], e->nkids - 1, e->u.match.patterns, k + 1, e->u.match.complete,
                          e->loc);
    }
    return NULL;
}

const Expr *expr_with_kids(Ctx *c, const Expr *e, const Expr *const *kids)
{
    const Expr *n = remake(c, e, kids);

    if (!n || n == e || !e->type)
        return n;
    if (e->type->kind == TYPE_TENSOR && e->type->halo && n->type &&
        n->type == type_plain(c, e->type))
        return expr_with_type(c, n, e->type);
    /* What only inference could find (an empty list's element type) stays. */
    if (!n->type && !call_op(n))
        return expr_with_type(c, n, e->type);
    return n;
}

/* ---- walk ----------------------------------------------------------------------------------- */

typedef VEC(const Expr *) ExprVec;

static void pattern_vars(Ctx *c, const Pattern *p, ExprVec *out)
{
    if (p->kind == PAT_VAR)
        vec_push(c->scratch, out, p->var);
    for (uint32_t i = 0; i < p->nkids; i++)
        pattern_vars(c, p->kids[i], out);
}

/* Kids, for a match the variables of its patterns first. */
static void all_kids(Ctx *c, const Expr *e, uint32_t *n, const Expr *const **kids)
{
    ExprVec v = {0};

    *n = e->nkids;
    *kids = e->kids;
    if (e->kind != EXPR_MATCH)
        return;
    for (uint32_t i = 0; i + 1 < e->nkids; i++)
        pattern_vars(c, e->u.match.patterns[i], &v);
    for (uint32_t i = 0; i < e->nkids; i++)
        vec_push(c->scratch, &v, e->kids[i]);
    *n = v.n;
    *kids = v.at;
}

typedef struct {
    const Expr        *e;
    uint32_t           next, n;
    const Expr *const *kids;
} WalkFrame;

ExprList expr_post_order(Ctx *c, const Expr *root)
{
    VEC(WalkFrame) stack = {0};
    ExprVec list = {0};
    Map    *seen = map_new(c->scratch);

    if (root) {
        WalkFrame f = {.e = root};

        all_kids(c, root, &f.n, &f.kids);
        map_put(seen, PTR_KEY(root), seen);
        vec_push(c->scratch, &stack, f);
    }
    while (stack.n) {
        WalkFrame  *f = &stack.at[stack.n - 1];
        const Expr *kid;

        if (f->next == f->n) {
            vec_push(c->scratch, &list, f->e);
            stack.n--;
            continue;
        }
        kid = f->kids[f->next++];
        if (!map_get(seen, PTR_KEY(kid))) {
            WalkFrame g = {.e = kid};

            all_kids(c, kid, &g.n, &g.kids);
            map_put(seen, PTR_KEY(kid), seen);
            vec_push(c->scratch, &stack, g);
        }
    }
    return (ExprList){list.n, list.at};
}

/* ---- rewrite -------------------------------------------------------------------------------- */

static const Pattern *rewrite_pattern(Ctx *c, const Map *done, const Pattern *p)
{
    Pattern         now = *p;
    const Pattern **kids;
    bool            changed = false;

    if (p->kind == PAT_VAR) {
        now.var = map_get(done, PTR_KEY(p->var));
        changed = now.var != p->var;
    }
    kids = NEW_ARRAY(c->arena, const Pattern *, p->nkids ? p->nkids : 1);
    for (uint32_t i = 0; i < p->nkids; i++) {
        kids[i] = rewrite_pattern(c, done, p->kids[i]);
        changed |= kids[i] != p->kids[i];
    }
    now.kids = kids;
    return changed ? arena_dup(c->arena, &now, sizeof now) : p;
}

/* A match whose patterns bind other variables now. */
static const Expr *with_patterns(Ctx *c, const Map *done, const Expr *e)
{
    uint32_t        n = e->nkids - 1;
    const Pattern **p = NEW_ARRAY(c->arena, const Pattern *, n ? n : 1);
    bool            changed = false;
    Expr           *copy;

    for (uint32_t i = 0; i < n; i++) {
        p[i] = rewrite_pattern(c, done, e->u.match.patterns[i]);
        changed |= p[i] != e->u.match.patterns[i];
    }
    if (!changed)
        return e;
    copy = node_new(c, EXPR_MATCH, e->nkids, e->kids, e->loc);
    copy->u.match = (MatchData){e->u.match.complete, p};
    copy->type = e->type;
    return copy;
}

const Expr *expr_rewrite(Ctx *c, const Expr *root, RewriteFn *fn, void *user)
{
    ExprList list = expr_post_order(c, root);
    Map     *done = map_new(c->scratch);

    for (uint32_t i = 0; i < list.n; i++) {
        const Expr  *was = list.at[i], *now = was;
        const Expr **kids = NEW_ARRAY(c->scratch, const Expr *, was->nkids ? was->nkids : 1);
        bool         changed = false;

        for (uint32_t k = 0; k < was->nkids; k++) {
            kids[k] = map_get(done, PTR_KEY(was->kids[k]));
            changed |= kids[k] != was->kids[k];
        }
        if (changed)
            now = expr_with_kids(c, was, kids);
        if (now && now->kind == EXPR_MATCH)
            now = with_patterns(c, done, now);
        if (now)
            now = fn(c, user, was, now);
        if (!now)
            return NULL;
        map_put(done, PTR_KEY(was), (void *)(uintptr_t)now);
    }
    return map_get(done, PTR_KEY(root));
}

typedef struct {
    uint32_t           n;
    const Expr *const *vars, *const *values;
    const Map *map;
} BindState;

static const Expr *bind_node(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const BindState *s = user;
    const Expr      *v;

    (void)c;
    if (was->kind == EXPR_VAR && (v = map_get(s->map, PTR_KEY(was))))
        return v;
    return now;
}

const Expr *expr_bind(Ctx *c, const Expr *root, uint32_t n, const Expr *const *vars,
                      const Expr *const *values)
{
    Map      *map = map_new(c->scratch);
    BindState s = {n, vars, values, map};

    for (uint32_t i = 0; i < n; i++)
        map_put(map, PTR_KEY(vars[i]), (void *)(uintptr_t)values[i]);
    return expr_rewrite(c, root, bind_node, &s);
}

/* ---- modules -------------------------------------------------------------------------------- */

const Module *module_new(Ctx *c, const Module *like, uint32_t n, const GlobalDef *funcs)
{
    Module *m = NEW(c->arena, Module);

    if (like)
        *m = *like;
    m->nfuncs = n;
    m->funcs = n ? DUP_ARRAY(c->arena, funcs, n) : NULL;
    return m;
}

const Expr *module_func(const Module *m, const char *name)
{
    for (uint32_t i = 0; i < m->nfuncs; i++)
        if (!strcmp(m->funcs[i].name, name))
            return m->funcs[i].func;
    return NULL;
}

const Module *module_with_func(Ctx *c, const Module *m, const char *name, const Expr *func)
{
    GlobalDef *defs = NEW_ARRAY(c->scratch, GlobalDef, m->nfuncs + 1);
    uint32_t   n = m->nfuncs;

    for (uint32_t i = 0; i < n; i++) {
        defs[i] = m->funcs[i];
        if (!strcmp(defs[i].name, name)) {
            if (defs[i].func == func)
                return m;
            defs[i].func = func;
            name = NULL;
            for (uint32_t k = i + 1; k < n; k++)
                defs[k] = m->funcs[k];
            break;
        }
    }
    if (name)
        defs[n++] = (GlobalDef){intern(c->strings, name), func};
    return module_new(c, m, n, defs);
}

const Module *module_rewrite(Ctx *c, const Module *m, RewriteFn *fn, void *user)
{
    GlobalDef *defs = NEW_ARRAY(c->scratch, GlobalDef, m->nfuncs ? m->nfuncs : 1);
    bool       changed = false;

    for (uint32_t i = 0; i < m->nfuncs; i++) {
        defs[i] = m->funcs[i];
        if (!(defs[i].func = expr_rewrite(c, m->funcs[i].func, fn, user)))
            return NULL;
        changed |= defs[i].func != m->funcs[i].func;
    }
    return changed ? module_new(c, m, m->nfuncs, defs) : m;
}

bool expr_has_shape(const Expr *e)
{
    return e && e->type && e->type->kind == TYPE_TENSOR;
}

bool expr_binds(const Expr *e, Dims *out)
{
    if (!call_is(e, "bind_dims"))
        return false;
    *out = attrs_dims(call_op(e)->attrs, e->u.attrs, 0);
    return true;
}

bool expr_is_tensor(const Expr *e)
{
    return expr_has_shape(e) && type_static(e->type);
}
