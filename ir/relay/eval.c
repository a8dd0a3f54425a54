/* The interpreter of Relay: slow, obvious, the oracle; and the default Evaluator of passes.
 *
 * An operator is evaluated by its own compute function: tensor expressions, lowered to the first
 * nest and run by tir_eval; one without compute is expanded first.  Control flow, functions,
 * references and ADTs are values of this file.
 *
 * Every activation of a function is a Frame, which remembers the value of each node evaluated in
 * it, so that a shared node runs once, when first needed, and that of each dimension which its
 * parameters or bind_dims decide.  Pending nodes lie on a stack; calls are limited in depth. */
#include "ir/relay/relay.h"
#include "ir/te/te.h"

#include <string.h>

#define MAX_CALL_DEPTH 20000
#define MAX_MAPS 4 /* map_batch within functions that are mapped */

typedef enum { VAL_TENSOR, VAL_TUPLE, VAL_CLOSURE, VAL_REF, VAL_ADT, VAL_OP, VAL_CTOR } ValueKind;

typedef struct Value Value;
typedef struct Frame Frame;

struct Value {
    ValueKind     kind;
    const Const  *tensor; /* TENSOR */
    uint32_t      n;      /* TUPLE, ADT: fields */
    const Value **fields;
    const Expr   *func; /* CLOSURE */
    const Frame  *frame;
    const Value  *content; /* REF: changes */
    const Ctor   *ctor;    /* ADT, CTOR */
    const Op     *op;      /* OP */
};

struct Frame {
    Map         *memo;  /* node to value */
    const Frame *outer; /* where the closure was made; NULL for global functions */
    uint32_t     depth;
};

/* A node under way in a frame. */
typedef struct {
    const Expr *e;
    Frame      *frame;
    uint32_t    next;  /* kids evaluated so far, or the state of a control node */
    Frame      *inner; /* the activation whose result this node takes, once called */
    const Expr *body;  /* ... and the node that gives it */
} Task;

/* A call's kernel, made for the operand types it had last. */
typedef struct {
    uint32_t     nin;
    const Type **in;
    const void  *attrs;
    const Func  *func;
    const Type  *out;
} Kernel;

typedef struct {
    Ctx          *c;
    const Module *m; /* NULL: no globals */
    VEC(Task) stack;
    Frame   *main;    /* NULL: an expression alone is evaluated */
    Map     *kernels; /* call node to Kernel */
    uint32_t maps;    /* map_batch under way */
} Eval;

/* ---- values --------------------------------------------------------------------------------- */

static Value *value_new(Eval *ev, ValueKind kind)
{
    Value *v = NEW(ev->c->scratch, Value);

    v->kind = kind;
    return v;
}

static const Value *value_tensor(Eval *ev, const Const *k)
{
    Value *v = value_new(ev, VAL_TENSOR);

    v->tensor = k;
    return v;
}

static const Value *value_tuple(Eval *ev, uint32_t n, const Value **fields)
{
    Value *v = value_new(ev, VAL_TUPLE);

    v->n = n;
    v->fields = fields;
    return v;
}

/* The type of a value made of tensors; NULL for others. */
static const Type *value_type(Ctx *c, const Value *v)
{
    const Type **t;

    if (v->kind == VAL_TENSOR)
        return v->tensor->type;
    if (v->kind != VAL_TUPLE)
        return NULL;
    t = NEW_ARRAY(c->scratch, const Type *, v->n ? v->n : 1);
    for (uint32_t i = 0; i < v->n; i++)
        if (!(t[i] = value_type(c, v->fields[i])))
            return NULL;
    return type_tuple(c, v->n, t);
}

/* As an expression of constants, their data copied to the arena; NULL for closures and the like. */
static const Expr *value_expr(Ctx *c, const Value *v, bool copy, Loc loc)
{
    const Expr **fields;

    if (v->kind == VAL_TENSOR) {
        const Const *k = v->tensor;
        Bytes        data = k->data;

        if (copy)
            data.at = arena_dup(c->arena, data.at, data.n);
        return expr_const(c, copy ? const_new(c, k->name, k->type, data) : k, loc);
    }
    if (v->kind != VAL_TUPLE)
        return NULL;
    fields = NEW_ARRAY(c->scratch, const Expr *, v->n ? v->n : 1);
    for (uint32_t i = 0; i < v->n; i++)
        if (!(fields[i] = value_expr(c, v->fields[i], copy, loc)))
            return NULL;
    return expr_tuple(c, v->n, fields, loc);
}

typedef VEC(const Const *) ConstVec;

static bool value_flatten(Ctx *c, const Value *v, ConstVec *out)
{
    if (v->kind == VAL_TENSOR) {
        vec_push(c->scratch, out, v->tensor);
        return true;
    }
    if (v->kind != VAL_TUPLE)
        return false;
    for (uint32_t i = 0; i < v->n; i++)
        if (!value_flatten(c, v->fields[i], out))
            return false;
    return true;
}

static const Value *lookup(const Frame *f, const Expr *e)
{
    for (; f; f = f->outer) {
        const Value *v = map_get(f->memo, PTR_KEY(e));

        if (v)
            return v;
    }
    return NULL;
}

static void remember(Frame *f, const Expr *e, const Value *v)
{
    map_put(f->memo, PTR_KEY(e), (void *)(uintptr_t)v);
}

static Frame *frame_new(Eval *ev, const Frame *outer, uint32_t depth)
{
    Frame *f = NEW(ev->c->scratch, Frame);

    f->memo = map_new(ev->c->scratch);
    f->outer = outer;
    f->depth = depth;
    return f;
}

/* ---- dimensions ----------------------------------------------------------------------------- */

static void remember_dim(Eval *ev, Frame *f, const Atom *dim, int64_t v)
{
    map_put(f->memo, PTR_KEY(dim), arena_dup(ev->c->scratch, &v, sizeof v));
}

typedef struct {
    const Eval  *ev;
    const Frame *frame;
    const Atom  *unknown; /* one that has no value, or NULL */
} DimEnv;

static int64_t dim_value(void *user, const Atom *dim)
{
    DimEnv        *env = user;
    const int64_t *v = NULL;

    for (const Frame *f = env->frame; f && !v; f = f->outer)
        v = map_get(f->memo, PTR_KEY(dim));
    if (!v && env->ev->main)
        v = map_get(env->ev->main->memo, PTR_KEY(dim));
    if (!v)
        env->unknown = dim;
    return v ? *v : dim->lo;
}

/* Attributes without names of dimensions. */
static bool attrs_now(Eval *ev, const Expr *e, const Op *op, const Frame *f, const void **out)
{
    DimEnv env = {.ev = ev, .frame = f};
    IdxEnv how = {.var = dim_value, .user = &env};

    *out = e->u.attrs;
    if (!attrs_static(op->attrs, e->u.attrs))
        *out = attrs_at(ev->c, op->attrs, e->u.attrs, &how);
    return !env.unknown ||
           error_at(ev->c, E_RUN, e->loc, "dimension '%s' has no value here", env.unknown->name);
}

/* The cells of v become dimensions of the frame. */
static bool bind_dims(Eval *ev, const Expr *e, Dims dims, const Value *v, Frame *f)
{
    IdxEnv how = {.var = dim_value, .user = &(DimEnv){.ev = ev, .frame = f}};

    for (uint32_t i = 0; i < dims.n; i++) {
        const Idx  *x = dims.at[i];
        const Atom *dim = NULL;
        long long   n = dtype_get_i(DT_I64, v->tensor->data.at + (size_t)i * dtype_bytes(DT_I64));
        long long   most = idx_eval(idx_is_atom(x, &dim) ? atom_most(ev->c->arith, dim) : x, &how);
        if (n < x->lo || n > most)
            return error_at(ev->c, E_RUN, e->loc, "dimension %s is %lld, not in %lld..%lld",
                            dim_text(ev->c, x), n, (long long)x->lo, most);
        if (dim)
            remember_dim(ev, f, dim, n);
    }
    return true;
}

/* ---- operators ------------------------------------------------------------------------------ */

typedef VEC(const Type *) TypeVec;

static void flatten_type(Ctx *c, const Type *t, TypeVec *out)
{
    if (t->kind == TYPE_TUPLE)
        for (uint32_t i = 0; i < t->n; i++)
            flatten_type(c, t->parts[i], out);
    else
        vec_push(c->scratch, out, t);
}

static const Func *make_kernel(Ctx *c, const Op *op, const void *attrs, const TypeVec *in,
                               const TypeVec *out, Loc loc)
{
    OpCall         call = {op, attrs, in->n, out->n, in->at, out->at, loc, false};
    const Tensor **params = NEW_ARRAY(c->arena, const Tensor *, in->n ? in->n : 1);
    const Tensor **outs = NEW_ARRAY(c->arena, const Tensor *, out->n ? out->n : 1);
    TeFunc         te = {intern(c->strings, "eval"), in->n, out->n, params, outs, loc};

    for (uint32_t i = 0; i < in->n; i++)
        params[i] = te_param(c, intern_printf(c->strings, "p%u", i), in->at[i], false, NULL);
    if (!te_of_call(c, &call, params, outs))
        return NULL;
    return te_lower(c, &te, c->target);
}

/* The kernel of a call whose operands have these types: the one made last time, or a new one. */
static const Kernel *kernel_of(Eval *ev, const Expr *e, const Op *op, const void *attrs,
                               uint32_t nargs, const Type **in)
{
    Ctx    *c = ev->c;
    Kernel *k = map_get(ev->kernels, PTR_KEY(e));
    TypeVec fin = {0}, fout = {0};

    if (k && k->nin == nargs && !memcmp(k->in, in, nargs * sizeof *in) &&
        (k->attrs == attrs || attrs_equal(op->attrs, k->attrs, attrs)))
        return k;
    k = NEW(c->scratch, Kernel);
    k->nin = nargs;
    k->in = in;
    k->attrs = attrs;
    if (!(k->out = op_rel(c, op, e->loc, attrs, in, nargs)))
        return NULL;
    for (uint32_t i = 0; i < nargs; i++)
        flatten_type(c, in[i], &fin);
    flatten_type(c, k->out, &fout);
    for (uint32_t i = 0; i < fout.n; i++)
        if (!type_static(fout.at[i]))
            return error_at(c, E_RUN, e->loc, "the size of the result of '%s' is not known: %s",
                            op->text, type_text(c, fout.at[i]));
    if (!(k->func = make_kernel(c, op, attrs, &fin, &fout, e->loc)))
        return NULL;
    map_put(ev->kernels, PTR_KEY(e), k);
    return k;
}

static const Value *unflatten(Eval *ev, const Type *t, const Const *const **at)
{
    const Value **fields;

    if (t->kind != TYPE_TUPLE)
        return value_tensor(ev, *(*at)++);
    fields = NEW_ARRAY(ev->c->scratch, const Value *, t->n ? t->n : 1);
    for (uint32_t i = 0; i < t->n; i++)
        fields[i] = unflatten(ev, t->parts[i], at);
    return value_tuple(ev, t->n, fields);
}

static const Value *run_kernel(Eval *ev, const Kernel *k, const ConstVec *args)
{
    Ctx    *c = ev->c;
    TypeVec out = {0};
    VEC(void *) buffers = {0};
    ConstVec            results = {0};
    const Const *const *at;

    for (uint32_t i = 0; i < args->n; i++)
        vec_push(c->scratch, &buffers, (void *)(uintptr_t)args->at[i]->data.at);
    flatten_type(c, k->out, &out);
    for (uint32_t i = 0; i < out.n; i++) {
        Const   *r = NEW(c->scratch, Const);
        int64_t  n;
        uint64_t bytes;

        if (!type_elems(out.at[i], &n) ||
            !checked_mul((uint64_t)n, (uint64_t)dtype_bytes(out.at[i]->dtype), &bytes) ||
            bytes > (UINT64_C(1) << 36))
            return error_at(c, E_RUN, k->func->loc, "a result of type %s is too large",
                            type_text(c, out.at[i]));
        r->type = out.at[i];
        r->data = (Bytes){arena_alloc(c->scratch, bytes ? bytes : 1), bytes};
        vec_push(c->scratch, &buffers, (void *)(uintptr_t)r->data.at);
        vec_push(c->scratch, &results, r);
    }
    if (!tir_eval(c, NULL, k->func, buffers.n, buffers.at, 0, NULL))
        return NULL;
    at = results.at;
    return unflatten(ev, k->out, &at);
}

/* Value of an operator call; for one that must be expanded, `expanded` is set instead. */
static const Value *eval_op(Eval *ev, const Expr *e, const Op *op, uint32_t n, const Value **args,
                            const Frame *f, const Expr **expanded)
{
    Ctx          *c = ev->c;
    const void   *attrs;
    const Type  **in = NEW_ARRAY(c->scratch, const Type *, n ? n : 1);
    const Kernel *k;
    ConstVec      flat = {0};
    bool of_func = n && !op->compute && args[0]->kind == VAL_CLOSURE; /* expanded where it stands */

    if (!attrs_now(ev, e, op, f, &attrs))
        return NULL;
    for (uint32_t i = 0; i < n && !of_func; i++)
        if (!(in[i] = value_type(c, args[i])) || !value_flatten(c, args[i], &flat))
            return error_at(c, E_RUN, e->loc, "operand %u of '%s' is no tensor", i, op->text);
    if (!op->compute) {
        const Expr **kids = NEW_ARRAY(c->scratch, const Expr *, n ? n : 1), *call = e;

        for (uint32_t i = 0; i < n && !of_func; i++)
            kids[i] = value_expr(c, args[i], false, e->loc);
        if (!op->expand || (!of_func && !(call = expr_call(c, op, n, kids, attrs, e->loc))) ||
            !(*expanded = op->expand(c, call)))
            return diag_errors(c->diags)
                       ? NULL
                       : error_at(c, E_RUN, e->loc, "'%s' cannot be evaluated", op->text);
        return NULL;
    }
    k = kernel_of(ev, e, op, attrs, n, in);
    return k ? run_kernel(ev, k, &flat) : NULL;
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static void push(Eval *ev, const Expr *e, Frame *f)
{
    Task t = {.e = e, .frame = f};

    vec_push(ev->c->scratch, &ev->stack, t);
}

static void finish(Eval *ev, const Value *v)
{
    Task *t = &ev->stack.at[ev->stack.n - 1];

    remember(t->frame, t->e, v);
    ev->stack.n--;
}

/* Go on with `body` in `frame`; its value becomes that of the node on top. */
static void delegate(Eval *ev, const Expr *body, Frame *frame)
{
    Task *t = &ev->stack.at[ev->stack.n - 1];

    t->inner = frame;
    t->body = body;
    push(ev, body, frame);
}

static const Value *run(Eval *ev, const Expr *e, Frame *f);

/* Part `round` of `rounds` along the first dimension. */
static const Value *part_of(Eval *ev, const Const *k, const Type *t, int64_t round, int64_t rounds)
{
    size_t n = k->data.n / (size_t)rounds;

    return value_tensor(ev, const_new(ev->c, NULL, t, (Bytes){k->data.at + (size_t)round * n, n}));
}

/* map_batch: the closure for all parts of the operands, one after the other; there is one. */
static const Value *map_value(Eval *ev, const Expr *e, const Value *fn, uint32_t n,
                              const Value *const *args, const Frame *f)
{
    Ctx     *c = ev->c;
    ConstVec flat = {0};
    int64_t  rounds = 0;

    if (fn->kind == VAL_CLOSURE && func_nparams(fn->func) == n && n &&
        args[0]->kind == VAL_TENSOR) {
        const Idx *x = type_rounds(c, args[0]->tensor->type, func_param(fn->func, 0)->type);
        rounds = x ? x->lo : 0;
    }
    if (rounds < 1)
        return error_at(c, E_RUN, e->loc, "this cannot be mapped over the batch");
    if (++ev->maps > MAX_MAPS)
        return error_at(c, E_RUN, e->loc, "maps nest deeper than %d", MAX_MAPS);
    for (int64_t r = 0; r < rounds; r++) {
        Frame *inner = frame_new(ev, fn->frame, f->depth + 1);
        for (uint32_t i = 0; i < n; i++)
            remember(inner, func_param(fn->func, i),
                     part_of(ev, args[i]->tensor, func_param(fn->func, i)->type, r, rounds));
        const Value *v = run(ev, func_body(fn->func), inner);
        if (!v || !value_flatten(c, v, &flat))
            return NULL;
    }
    ev->maps--;
    uint32_t      nout = flat.n / (uint32_t)rounds;
    const Value **fields = NEW_ARRAY(c->scratch, const Value *, nout + 1);
    for (uint32_t i = 0; i < nout; i++) {
        size_t      bytes = flat.at[i]->data.n;
        uint8_t    *at = arena_alloc(c->scratch, bytes * (size_t)rounds + 1);
        const Type *t = flat.at[i]->type;
        for (int64_t r = 0; r < rounds; r++)
            memcpy(at + (size_t)r * bytes, flat.at[(uint32_t)r * nout + i]->data.at, bytes);
        t = type_with_first(c, t, idx_mulc(c->arith, t->dims[0], rounds));
        fields[i] = value_tensor(ev, const_new(c, NULL, t, (Bytes){at, bytes * (size_t)rounds}));
    }
    return e->type->kind == TYPE_TUPLE ? value_tuple(ev, nout, fields) : fields[0];
}

static bool call_value(Eval *ev, const Expr *e, Frame *f)
{
    Ctx          *c = ev->c;
    const Value  *callee = lookup(f, e->kids[0]);
    uint32_t      n = e->nkids - 1;
    const Value **args = NEW_ARRAY(c->scratch, const Value *, n ? n : 1);
    const Expr   *expanded = NULL;
    const Value  *v;
    Value        *adt;
    Frame        *inner;
    Dims          dims;

    for (uint32_t i = 0; i < n; i++)
        args[i] = lookup(f, e->kids[i + 1]);
    switch (callee->kind) {
    case VAL_OP:
        if (call_is(e, "map_batch")) {
            if ((v = map_value(ev, e, args[0], n - 1, args + 1, f)))
                finish(ev, v);
            return v;
        }
        if (expr_binds(e, &dims)) {
            if (args[0]->kind != VAL_TENSOR || !bind_dims(ev, e, dims, args[0], f))
                return false;
            finish(ev, args[0]);
            return true;
        }
        v = eval_op(ev, e, callee->op, n, args, f, &expanded);
        if (expanded)
            delegate(ev, expanded, f);
        else if (v)
            finish(ev, v);
        return v || expanded;
    case VAL_CTOR:
        if (n != callee->ctor->nfields)
            return error_at(c, E_RUN, e->loc, "'%s' takes %u fields", callee->ctor->name,
                            callee->ctor->nfields);
        adt = value_new(ev, VAL_ADT);
        adt->ctor = callee->ctor;
        adt->n = n;
        adt->fields = args;
        finish(ev, adt);
        return true;
    case VAL_CLOSURE:
        if (n != func_nparams(callee->func))
            return error_at(c, E_RUN, e->loc, "a function of %u parameters is called with %u",
                            func_nparams(callee->func), n);
        if (f->depth >= MAX_CALL_DEPTH)
            return error_at(c, E_RUN, e->loc, "calls nest deeper than %d", MAX_CALL_DEPTH);
        inner = frame_new(ev, callee->frame, f->depth + 1);
        for (uint32_t i = 0; i < n; i++)
            remember(inner, func_param(callee->func, i), args[i]);
        delegate(ev, func_body(callee->func), inner);
        return true;
    case VAL_TENSOR:
    case VAL_TUPLE:
    case VAL_REF:
    case VAL_ADT: break;
    }
    return error_at(c, E_RUN, e->loc, "a value that is no function is called");
}

static bool match_pattern(Frame *f, const Pattern *p, const Value *v)
{
    switch (p->kind) {
    case PAT_WILD: return true;
    case PAT_VAR: remember(f, p->var, v); return true;
    case PAT_CTOR:
        if (v->kind != VAL_ADT || v->ctor != p->ctor || v->n != p->nkids)
            return false;
        break;
    case PAT_TUPLE:
        if (v->kind != VAL_TUPLE || v->n != p->nkids)
            return false;
        break;
    }
    for (uint32_t i = 0; i < p->nkids; i++)
        if (!match_pattern(f, p->kids[i], v->fields[i]))
            return false;
    return true;
}

static bool match_value(Eval *ev, const Expr *e, Frame *f)
{
    const Value *v = lookup(f, e->kids[0]);

    for (uint32_t i = 0; i + 1 < e->nkids; i++)
        if (match_pattern(f, e->u.match.patterns[i], v)) {
            delegate(ev, e->kids[i + 1], f);
            return true;
        }
    return error_at(ev->c, E_RUN, e->loc, "no clause of the match fits the value");
}

static bool leaf_value(Eval *ev, const Expr *e, Frame *f)
{
    Value *v;

    switch (e->kind) {
    case EXPR_CONST: finish(ev, value_tensor(ev, e->u.constant)); return true;
    case EXPR_GLOBAL:
        v = value_new(ev, VAL_CLOSURE);
        v->func = ev->m ? module_func(ev->m, e->u.name) : NULL;
        if (!v->func)
            return error_at(ev->c, E_RUN, e->loc, "there is no function '@%s'", e->u.name);
        finish(ev, v);
        return true;
    case EXPR_OP:
        v = value_new(ev, VAL_OP);
        v->op = e->u.op;
        finish(ev, v);
        return true;
    case EXPR_CTOR:
        v = value_new(ev, VAL_CTOR);
        v->ctor = e->u.ctor;
        finish(ev, v);
        return true;
    case EXPR_FUNC:
        v = value_new(ev, VAL_CLOSURE);
        v->func = e;
        v->frame = f;
        finish(ev, v);
        return true;
    case EXPR_VAR:
    case EXPR_TUPLE:
    case EXPR_PROJ:
    case EXPR_CALL:
    case EXPR_LET:
    case EXPR_IF:
    case EXPR_REF_NEW:
    case EXPR_REF_READ:
    case EXPR_REF_WRITE:
    case EXPR_MATCH:
        return error_at(ev->c, E_RUN, e->loc, "'%%%s' has no value here", e->u.var.name);
    }
}

/* All kids have values: compute the node's own. */
static bool strict_value(Eval *ev, const Expr *e, Frame *f)
{
    const Value  *v = e->nkids ? lookup(f, e->kids[0]) : NULL;
    const Value **fields;
    Value        *ref;

    switch (e->kind) {
    case EXPR_TUPLE:
        fields = NEW_ARRAY(ev->c->scratch, const Value *, e->nkids ? e->nkids : 1);
        for (uint32_t i = 0; i < e->nkids; i++)
            fields[i] = lookup(f, e->kids[i]);
        finish(ev, value_tuple(ev, e->nkids, fields));
        return true;
    case EXPR_PROJ:
        if (v->kind != VAL_TUPLE || e->u.index >= v->n)
            return error_at(ev->c, E_RUN, e->loc, "'.%u' of a value without it", e->u.index);
        finish(ev, v->fields[e->u.index]);
        return true;
    case EXPR_REF_NEW:
        ref = value_new(ev, VAL_REF);
        ref->content = v;
        finish(ev, ref);
        return true;
    case EXPR_REF_READ:
    case EXPR_REF_WRITE:
        if (v->kind != VAL_REF)
            return error_at(ev->c, E_RUN, e->loc, "this is no reference");
        if (e->kind == EXPR_REF_READ) {
            finish(ev, v->content);
        } else {
            ((Value *)(uintptr_t)v)->content = lookup(f, e->kids[1]);
            finish(ev, value_tuple(ev, 0, NULL));
        }
        return true;
    case EXPR_CALL: return call_value(ev, e, f);
    case EXPR_CONST:
    case EXPR_VAR:
    case EXPR_GLOBAL:
    case EXPR_OP:
    case EXPR_CTOR:
    case EXPR_LET:
    case EXPR_IF:
    case EXPR_FUNC:
    case EXPR_MATCH: BUG("%d is no strict node", e->kind);
    }
}

/* One step of the task on top; false with an error recorded. */
static bool step(Eval *ev)
{
    Task       *t = &ev->stack.at[ev->stack.n - 1];
    const Expr *e = t->e;
    Frame      *f = t->frame;
    bool        cond;

    if (t->inner) { /* a called body is done */
        finish(ev, lookup(t->inner, t->body));
        return true;
    }
    if (lookup(f, e)) {
        ev->stack.n--;
        return true;
    }
    switch (e->kind) {
    case EXPR_CONST:
    case EXPR_VAR:
    case EXPR_GLOBAL:
    case EXPR_OP:
    case EXPR_CTOR:
    case EXPR_FUNC: return leaf_value(ev, e, f);
    case EXPR_TUPLE:
    case EXPR_PROJ:
    case EXPR_CALL:
    case EXPR_REF_NEW:
    case EXPR_REF_READ:
    case EXPR_REF_WRITE:
        while (t->next < e->nkids)
            if (!lookup(f, e->kids[t->next])) {
                push(ev, e->kids[t->next++], f);
                return true;
            } else {
                t->next++;
            }
        return strict_value(ev, e, f);
    case EXPR_LET:
        if (t->next++ == 0) {
            push(ev, let_value(e), f);
            return true;
        }
        remember(f, let_var(e), lookup(f, let_value(e)));
        delegate(ev, let_body(e), f);
        return true;
    case EXPR_IF:
        if (t->next++ == 0) {
            push(ev, e->kids[0], f);
            return true;
        }
        if (lookup(f, e->kids[0])->kind != VAL_TENSOR)
            return error_at(ev->c, E_RUN, e->loc, "the condition is no scalar");
        cond = lookup(f, e->kids[0])->tensor->data.at[0] != 0;
        delegate(ev, e->kids[cond ? 1 : 2], f);
        return true;
    case EXPR_MATCH:
        if (t->next++ == 0) {
            push(ev, e->kids[0], f);
            return true;
        }
        return match_value(ev, e, f);
    }
    return false;
}

static const Value *run(Eval *ev, const Expr *e, Frame *f)
{
    uint32_t below = ev->stack.n;

    push(ev, e, f);
    while (ev->stack.n > below)
        if (!step(ev))
            return NULL;
    return lookup(f, e);
}

/* ---- entries -------------------------------------------------------------------------------- */

/* A constant fits a parameter: same element type and rank, same numbers where dims are numbers. */
static bool fits(const Type *param, const Type *have)
{
    int64_t a, b;

    if (param->kind != TYPE_TENSOR || !dtype_eq(param->dtype, have->dtype) || param->n != have->n)
        return false;
    for (uint32_t i = 0; i < param->n; i++) {
        if (!type_dim(have, i, &b))
            return false;
        if (type_dim(param, i, &a) ? a != b : b < param->dims[i]->lo || b > param->dims[i]->hi)
            return false;
    }
    return true;
}

/* What the sizes of the inputs say about dimensions; then all have to agree. */
static bool find_dims(Eval *ev, const Expr *main, uint32_t nin, const Const *const *in)
{
    DimEnv env = {.ev = ev, .frame = ev->main};
    IdxEnv how = {.var = dim_value, .user = &env};

    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < nin; i++)
            for (uint32_t k = 0; func_param(main, i)->type && k < in[i]->type->n; k++) {
                const Idx *x = func_param(main, i)->type->dims[k];
                int64_t    n = in[i]->type->dims[k]->lo;

                if (pass == 0 && x->nterms == 1 && x->t[0].atom->kind == ATOM_VAR)
                    remember_dim(ev, ev->main, x->t[0].atom, (n - x->c0) / x->t[0].coef);
                if (pass == 1 && idx_eval(x, &how) != n)
                    return error_at(ev->c, E_RUN, main->loc, "dimension %u of input '%s' is %lld",
                                    k, func_param(main, i)->u.var.name, (long long)n);
            }
    return true;
}

bool relay_eval(Ctx *c, const Module *m, uint32_t nin, const Const *const *in, uint32_t *nout,
                const Const *const **out)
{
    Eval          ev = {.c = c, .m = m, .kernels = map_new(c->scratch)};
    const Expr   *main = module_func(m, "main");
    Frame        *f = frame_new(&ev, NULL, 0);
    ConstVec      flat = {0};
    const Const **results;
    const Value  *v;

    if (!main)
        return error_at(c, E_RUN, NO_LOC, "the module has no function 'main'");
    if (func_nparams(main) != nin)
        return error_at(c, E_RUN, main->loc, "'main' has %u parameters, %u inputs were given",
                        func_nparams(main), nin);
    for (uint32_t i = 0; i < nin; i++) {
        const Expr *p = func_param(main, i);

        if (p->type && !fits(p->type, in[i]->type))
            return error_at(c, E_RUN, p->loc, "input '%s' is %s, not %s", p->u.var.name,
                            type_text(c, p->type), type_text(c, in[i]->type));
        remember(f, p, value_tensor(&ev, in[i]));
    }
    ev.main = f;
    if (!find_dims(&ev, main, nin, in) || !(v = run(&ev, func_body(main), f)))
        return false;
    if (!value_flatten(c, v, &flat))
        return error_at(c, E_RUN, main->loc, "the result of 'main' is not made of tensors");
    results = NEW_ARRAY(c->arena, const Const *, flat.n ? flat.n : 1);
    for (uint32_t i = 0; i < flat.n; i++) {
        const Const *k = flat.at[i];

        results[i] = const_new(c, k->name, k->type,
                               (Bytes){arena_dup(c->arena, k->data.at, k->data.n), k->data.n});
    }
    *nout = flat.n;
    *out = results;
    return true;
}

static const Expr *interp_eval(const Evaluator *self, Ctx *c, const Expr *e)
{
    Eval         ev = {.c = c, .kernels = map_new(c->scratch)};
    const Value *v = run(&ev, e, frame_new(&ev, NULL, 0));
    const Expr  *x;

    (void)self;
    if (!v)
        return NULL;
    if (!(x = value_expr(c, v, true, e->loc)))
        return error_at(c, E_RUN, e->loc, "the value is not made of tensors");
    return x;
}

const Evaluator eval_interp = {interp_eval, NULL};
