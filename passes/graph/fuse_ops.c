/* fuse_ops: group calls into primitive functions, one kernel each.
 *
 *   %0 = nn.conv2d(%x, const @w);  %1 = nn.bias_add(%0, const @b);  %2 = nn.relu(%1)
 *     -> %0 = fn primitive (%x, %w, %b) { %1 = nn.conv2d(%x, %w);  %2 = nn.bias_add(%1, %b);
 *                                         nn.relu(%2) }(%x, const @w, const @b)
 *
 * As in the classic pass, a node is joined with its immediate post-dominator v, the first node that
 * all its uses lead to, together with everything on the paths between, if the fusion kinds
 * (`fusion` in ops.def) allow it:
 *   OUT_FUSABLE  (conv2d, dense, pooling) takes the elementwise and broadcast calls behind it that
 *                keep its shape; so a residual add joins the convolution that comes last; on GPUs
 *                transpositions and other layouts, too; on CPUs interpolation in blocks of
 *                channels is of this kind
 *   up to INJECTIVE joins elementwise, broadcast and injective calls, and a reduction behind it;
 *                also the calls behind an OUT_FUSABLE, if it is elementwise itself
 *   COMM_REDUCE  of rows takes what reads the rows, or their results, cell by cell; on CPUs
 *                the last dimensions together are a row, too
 *   OPAQUE       takes nothing
 *
 * A producer is not joined to a consumer that reads its cells more than once (broadcasting,
 * resize): they would be computed as often.  Concatenations stand alone, or stay outside if
 * plan_views made them views; reshape, squeeze and expand_dims stay outside too (sink_views has
 * them behind what may join a product).  Where kernels of the target have so many tensors at most,
 * no group has more.  What a device's code cannot have is in no group with what it can: it will be
 * the host's (keep_on_host).
 *
 * What widens 8-bit integers (qnn.dequantize) or 16-bit floats (cast) to f32 is not the last call
 * of a kernel if the next one can begin with it, as less bytes are stored then; each reader has a
 * copy of it.
 *
 * Since every use of a member leads to the group's last node, a group has one result and no cycle
 * can arise.  Nodes of different scopes are never joined.  Scalars are part of the kernel, other
 * constants are parameters.
 *
 * Cost: linear, but for the least common ancestors.  Paper: TVM (OSDI 2018), section 3. */
#include "passes/graph/graph.h"

#include <string.h>

#define MAX_GROUP 64 /* calls in one kernel */

typedef struct Node {
    const Expr *e;
    uint32_t    order;  /* in post order */
    bool        groups; /* an operator call that may become part of a kernel */
    bool        lacks;  /* the device's code cannot have it */
    FusionKind  kind;
    GraphScope *scope;
    VEC(struct Node *) users;
    bool         escapes; /* used by something that is no operator call of the same scope */
    struct Node *dom;     /* immediate post-dominator */
    uint32_t     depth;   /* in the tree of dominators */
    /* union-find; the following hold for roots */
    struct Node *parent;
    uint32_t     size, args; /* calls; their operands, those from one to another too */
    FusionKind   group_kind; /* the most demanding of the members */
    struct Node *anchor;     /* the first member of that kind, if it is a reduction or heavy */
    struct Node *last;       /* the member that gives the group's result */
    uint32_t     visit;
} Node;

typedef VEC(Node *) NodeVec;

typedef struct {
    Ctx     *c;
    ExprList list;
    Node    *nodes; /* in post order */
    Map     *index; /* expression to Node */
    uint32_t visits;
    /* building */
    Map     *done;    /* node of the old graph to the new */
    NodeVec *members; /* by order of the group's root */
} Fuse;

static Node *find(Node *n)
{
    while (n->parent != n) {
        n->parent = n->parent->parent;
        n = n->parent;
    }
    return n;
}

static Node *node_of(const Fuse *f, const Expr *e)
{
    return map_get(f->index, PTR_KEY(e));
}

/* ---- the graph of operator calls ------------------------------------------------------------ */

static bool one_tensor(const Type *t)
{
    return t && t->kind == TYPE_TENSOR;
}

/* Interpolation in blocks of channels: on CPUs vectors as they lie, which it would not be where it
 * is computed cell by cell for a result that lies otherwise. */
static bool interpolates(const Ctx *c, const Expr *e)
{
    return !stores_apart(c->target) && call_is(e, "image.resize2d") && e->type->n == 5 &&
           strcmp(ATTRS_OF(Resize2dAttrs, e)->method, "nearest_neighbor");
}

/* Operators that stand alone whatever their kind: their operands or results are tuples. */
static FusionKind kind_of(const Ctx *c, const Expr *e)
{
    if (!one_tensor(e->type))
        return FUSE_OPAQUE;
    for (uint32_t i = 0; i < call_nargs(e); i++)
        if (!one_tensor(call_arg(e, i)->type))
            return FUSE_OPAQUE;
    return interpolates(c, e) ? FUSE_OUT_FUSABLE : call_op(e)->fusion;
}

/* Nodes inside functions that are primitive already. */
static Map *primitive_nodes(Ctx *c, ExprList list)
{
    Map *inside = map_new(c->scratch);

    for (uint32_t i = 0; i < list.n; i++) {
        ExprList body;

        if (list.at[i]->kind != EXPR_FUNC || !list.at[i]->u.func.primitive)
            continue;
        body = expr_post_order(c, func_body(list.at[i]));
        for (uint32_t k = 0; k < body.n; k++)
            map_put(inside, PTR_KEY(body.at[k]), inside);
    }
    return inside;
}

/* Casts between a call that the device lacks and narrower numbers go with it, so that these are
 * copied: those that it alone reads, and those that alone read it. */
static void mark_casts(Fuse *f)
{
    for (uint32_t i = 0; i < f->list.n; i++) {
        Node *n = &f->nodes[i], *from;
        bool  all = n->users.n && !n->escapes;

        if (!n->groups || !call_is(n->e, "cast"))
            continue;
        from = node_of(f, call_arg(n->e, 0));
        if (n->e->type->dtype.bits < call_arg(n->e, 0)->type->dtype.bits) {
            n->lacks = n->lacks || (from->lacks && from->users.n == 1 && !from->escapes);
            continue;
        }
        for (uint32_t k = 0; k < n->users.n; k++)
            all = all && n->users.at[k]->lacks;
        n->lacks = n->lacks || all;
    }
}

static bool make_nodes(Fuse *f, const Expr *func)
{
    Ctx *c = f->c;
    Map *info = map_new(c->scratch), *primitive;

    scopes_of(c, func, info);
    primitive = primitive_nodes(c, f->list);
    f->nodes = NEW_ARRAY(c->scratch, Node, f->list.n + 1);
    f->index = map_new(c->scratch);
    for (uint32_t i = 0; i < f->list.n; i++) {
        const Expr     *e = f->list.at[i];
        const NodeInfo *at = map_get(info, PTR_KEY(e));
        Node           *n = &f->nodes[i];

        *n = (Node){.e = e, .order = i, .size = 1, .args = call_op(e) ? call_nargs(e) : 0};
        n->parent = n->last = n;
        n->scope = at ? at->scope : NULL;
        n->groups = call_op(e) && e->type && !is_view(e) && !is_part_view(e) && !is_map(e) &&
                    !is_update(e) && !is_bind(e) && !map_get(primitive, PTR_KEY(e));
        n->kind = n->group_kind = n->groups ? kind_of(c, e) : FUSE_OPAQUE;
        n->anchor = n->kind > FUSE_INJECTIVE ? n : NULL;
        n->escapes = e == func_body(func);
        if (n->groups && !call_lacking(c, e, &n->lacks))
            return false;
        map_put(f->index, PTR_KEY(e), n);
    }
    for (uint32_t i = 0; i < f->list.n; i++) {
        Node *user = &f->nodes[i];

        for (uint32_t k = 0; k < user->e->nkids; k++) {
            Node *n = node_of(f, user->e->kids[k]);

            if (user->groups && n->scope == user->scope)
                vec_push(c->scratch, &n->users, user);
            else
                n->escapes = true;
        }
    }
    mark_casts(f);
    return true;
}

static Node *dom_join(Node *a, Node *b)
{
    while (a != b) {
        if (!a || !b)
            return NULL;
        if (a->depth >= b->depth)
            a = a->dom;
        else
            b = b->dom;
    }
    return a;
}

/* Users come later in post order, so from the end each node's users are done. */
static void find_dominators(Fuse *f)
{
    for (uint32_t i = f->list.n; i-- > 0;) {
        Node *n = &f->nodes[i], *d = NULL;

        for (uint32_t k = 0; k < n->users.n && !n->escapes; k++) {
            d = k ? dom_join(d, n->users.at[k]) : n->users.at[k];
            if (!d)
                break;
        }
        n->dom = d;
        n->depth = d ? d->depth + 1 : 0;
    }
}

/* ---- what may be joined --------------------------------------------------------------------- */

/* All nodes on paths from n to `to`, without n, with `to`. */
static void path_nodes(Fuse *f, Node *n, Node *to, NodeVec *out)
{
    NodeVec todo = {0};

    f->visits++;
    vec_push(f->c->scratch, &todo, n);
    while (todo.n) {
        Node *at = todo.at[--todo.n];

        for (uint32_t i = 0; i < at->users.n; i++) {
            Node *u = at->users.at[i];

            if (u->visit == f->visits)
                continue;
            u->visit = f->visits;
            vec_push(f->c->scratch, out, u);
            if (u != to)
                vec_push(f->c->scratch, &todo, u);
        }
    }
}

static int64_t elems_at_most(const Type *t)
{
    int64_t n = 1;

    for (uint32_t i = 0; i < t->n; i++)
        if (!checked_mul(n, idx_usual(t->dims[i]), &n))
            return INT64_MAX;
    return n;
}

/* Does `user` read cells of n more than once? */
static bool reads_again(const Node *n, const Node *user)
{
    return user->kind != FUSE_COMM_REDUCE && !call_is(user->e, "layout_transform") &&
           elems_at_most(user->e->type) > elems_at_most(n->e->type);
}

/* Threads of CPUs divide rows alone: of several dimensions there are as many as they need. */
static bool may_share_rows(const Fuse *f, const Expr *e)
{
    const Target *t = f->c->target;

    if (!t || stores_apart(t))
        return false;
    Machine m = machine_of(t);
    return elems_at_most(e->type) >= limit_least_parts(&m);
}

/* A reduction of the last dimension, kept as 1; on CPUs of the last ones, as of an image. */
static bool reduces_rows(const Fuse *f, const Expr *e)
{
    const Type *in = call_arg(e, 0)->type, *out = e->type;
    uint32_t    first = 0;
    int64_t     v;

    if (in->n != out->n || in->n == 0 || !type_dim(out, out->n - 1, &v) || v != 1)
        return false;
    while (first + 1 < in->n && in->dims[first] == out->dims[first])
        first++;
    for (uint32_t i = first; i < in->n; i++)
        if (!type_dim(out, i, &v) || v != 1)
            return false;
    return first + 1 == in->n || may_share_rows(f, e);
}

/* Behind a heavy call: cell by cell, and no second heavy call in the kernel.  A transposition, or
 * another layout, is one of its own on CPUs, where its tiles are transposed in registers. */
static bool fits_heavy(const Fuse *f, const Node *n, Node *p)
{
    bool transposed = (call_is(p->e, "transpose") || call_is(p->e, "layout_transform")) &&
                      stores_apart(f->c->target);

    return (transposed || (p->kind <= FUSE_BROADCAST && same_dims(p->e->type, n->e->type))) &&
           (find(p) == find((Node *)n) ||
            find(p)->group_kind <= (transposed ? FUSE_INJECTIVE : FUSE_BROADCAST));
}

/* Behind the reduction r. */
static bool fits_reduction(const Fuse *f, const Expr *r, Node *group, Node *p)
{
    const Type *rows = call_arg(r, 0)->type;
    Node       *root = find(p);
    bool        row = reduces_rows(f, r);

    if (root != group && root->group_kind == FUSE_COMM_REDUCE)
        row &=
            reduces_rows(f, root->anchor->e) && same_dims(call_arg(root->anchor->e, 0)->type, rows);
    else if (root != group && root->group_kind > FUSE_BROADCAST)
        return false;
    if (p->kind == FUSE_COMM_REDUCE)
        return row && reduces_rows(f, p->e) && same_dims(call_arg(p->e, 0)->type, rows);
    return p->kind <= FUSE_BROADCAST &&
           (root == group || root->group_kind <= FUSE_BROADCAST || row) &&
           (same_dims(p->e->type, r->type) || (row && same_dims(p->e->type, rows)));
}

/* A call of the group g that is at most injective, towards p on the way to its post-dominator. */
static bool fits_light(const Node *n, FusionKind g, Node *p)
{
    Node *root = find(p);

    if (p->kind > FUSE_INJECTIVE && !(p == n->dom && p->kind == FUSE_COMM_REDUCE))
        return false;
    if (reads_again(n, p))
        return false;
    /* Into what stands behind a heavy call or a reduction only what is read cell by cell. */
    if (root->anchor && p->order > root->anchor->order)
        return p->kind <= FUSE_BROADCAST && g <= FUSE_BROADCAST &&
               same_dims(p->e->type, n->e->type);
    return true;
}

/* It makes floats of numbers that take less memory. */
static bool is_widening(const Expr *e)
{
    return (call_is(e, "qnn.dequantize") && call_arg(e, 0)->type->dtype.bits <= 8) ||
           (call_is(e, "cast") && dtype_is_half(call_arg(e, 0)->type->dtype) &&
            dtype_eq(e->type->dtype, DT_F32));
}

/* ... and the kernel of its reader can take it. */
static bool widens(const Node *p)
{
    return is_widening(p->e) && p->dom && p->dom->groups && p->dom->kind <= FUSE_INJECTIVE &&
           !reads_again(p, p->dom);
}

/* May the group of n, whose kind is g, take the path to n's post-dominator? */
static bool path_fits(const Fuse *f, Node *n, FusionKind g, const NodeVec *path)
{
    for (uint32_t i = 0; i < path->n; i++) {
        Node *p = path->at[i];

        if (p->lacks != n->lacks)
            return false;
        if (g == FUSE_OUT_FUSABLE   ? !fits_heavy(f, n, p)
            : g == FUSE_COMM_REDUCE ? !fits_reduction(f, find(n)->anchor->e, find(n), p)
                                    : !fits_light(n, g, p))
            return false;
    }
    return true;
}

static void join(Node *a, Node *b)
{
    Node *x = find(a), *y = find(b);

    if (x == y)
        return;
    y->size += x->size;
    y->args += x->args;
    if (x->group_kind > y->group_kind)
        y->group_kind = x->group_kind;
    if (x->anchor && (!y->anchor || x->anchor->order < y->anchor->order))
        y->anchor = x->anchor;
    if (x->last->order > y->last->order)
        y->last = x->last;
    x->parent = y;
}

/* Would the kernel of n and the path be too large? */
static bool too_large(Fuse *f, Node *n, const NodeVec *path)
{
    const Target *t = f->c->target;
    uint32_t      size = find(n)->size, args = find(n)->args;

    f->visits++;
    find(n)->visit = f->visits;
    for (uint32_t i = 0; i < path->n; i++) {
        Node *root = find(path->at[i]);

        if (root->visit == f->visits)
            continue;
        root->visit = f->visits;
        size += root->size;
        args += root->args;
    }
    /* All but the last are operands within; and there is the result. */
    return size > MAX_GROUP || (t && t->max_buffers && args - (size - 1) + 1 > t->max_buffers);
}

/* Join n with its post-dominator and what lies between; false if that is not allowed. */
static bool try_join(Fuse *f, Node *n, FusionKind g)
{
    NodeVec path = {0};

    if (!n->groups || !n->dom)
        return false;
    path_nodes(f, n, n->dom, &path);
    if (widens(n->dom))
        path_nodes(f, n->dom, n->dom->dom, &path);
    if (!path_fits(f, n, g, &path) || too_large(f, n, &path))
        return false;
    for (uint32_t i = 0; i < path.n; i++)
        join(n, path.at[i]);
    return true;
}

static void make_groups(Fuse *f)
{
    /* Heavy calls first, the last one first, as far as they get; then reductions in order. */
    for (uint32_t i = f->list.n; i-- > 0;) {
        Node *n = &f->nodes[i];

        if (n->groups && n->kind == FUSE_OUT_FUSABLE)
            while (try_join(f, n, FUSE_OUT_FUSABLE))
                n = n->dom;
    }
    for (uint32_t i = 0; i < f->list.n; i++) {
        Node *n = &f->nodes[i];

        if (n->groups && n->kind == FUSE_COMM_REDUCE)
            while (try_join(f, n, FUSE_COMM_REDUCE))
                n = n->dom;
    }
    for (uint32_t i = 0; i < f->list.n; i++) {
        Node *n = &f->nodes[i];

        if (n->groups && n->kind <= FUSE_INJECTIVE && find(n)->group_kind <= FUSE_INJECTIVE)
            try_join(f, n, find(n)->group_kind);
    }
}

/* ---- the new graph -------------------------------------------------------------------------- */

typedef struct {
    VEC(const Expr *) args, params;
    Map *inside; /* node of the old graph to the node within the function */
} Build;

/* An operand from outside the group: a parameter, or the scalar itself. */
static const Expr *outside(Fuse *f, Build *b, const Expr *kid)
{
    const Expr *now = map_get(f->done, PTR_KEY(kid)), *v;
    const char *name = "x";

    if (kid->kind == EXPR_OP || is_inline_scalar(now))
        return now;
    if (now->kind == EXPR_CONST)
        name = now->u.constant->name ? now->u.constant->name : "w";
    v = expr_var(f->c, name, now->type, now->loc);
    vec_push(f->c->scratch, &b->args, now);
    vec_push(f->c->scratch, &b->params, v);
    return v;
}

static const Expr *build_group(Fuse *f, Node *root)
{
    NodeVec    *members = &f->members[root->order];
    Build       b = {.inside = map_new(f->c->scratch)};
    const Expr *func, *call, *e = NULL;

    for (uint32_t i = 0; i < members->n; i++) { /* in post order */
        const Expr  *was = members->at[i]->e;
        const Expr **kids = NEW_ARRAY(f->c->scratch, const Expr *, was->nkids);

        for (uint32_t k = 0; k < was->nkids; k++) {
            const Expr *kid = was->kids[k];

            if (!(kids[k] = map_get(b.inside, PTR_KEY(kid)))) {
                kids[k] = outside(f, &b, kid);
                map_put(b.inside, PTR_KEY(kid), (void *)(uintptr_t)kids[k]);
            }
        }
        if (!(e = expr_with_kids(f->c, was, kids)))
            return NULL;
        /* The halo belongs to the value outside, the call of the kernel. */
        if (e->type->kind == TYPE_TENSOR)
            e = expr_with_type(f->c, e, type_plain(f->c, e->type));
        map_put(b.inside, PTR_KEY(was), (void *)(uintptr_t)e);
    }
    func = expr_func(f->c, b.params.n, b.params.at, e, (FuncData){.primitive = true},
                     root->last->e->loc);
    if (!func || !(call = expr_apply(f->c, func, b.args.n, b.args.at, root->last->e->loc)))
        return NULL;
    return expr_with_type(f->c, call, root->last->e->type);
}

static const Expr *rebuild(Fuse *f, const Expr *root)
{
    f->done = map_new(f->c->scratch);
    for (uint32_t i = 0; i < f->list.n; i++) {
        Node       *n = &f->nodes[i];
        const Expr *now;

        if (n->groups) {
            if (find(n)->last != n)
                continue; /* built within its group */
            now = build_group(f, find(n));
        } else {
            const Expr **kids = NEW_ARRAY(f->c->scratch, const Expr *, n->e->nkids + 1);
            bool         changed = false;

            for (uint32_t k = 0; k < n->e->nkids; k++) {
                kids[k] = map_get(f->done, PTR_KEY(n->e->kids[k]));
                changed |= kids[k] != n->e->kids[k];
            }
            now = changed ? expr_with_kids(f->c, n->e, kids) : n->e;
        }
        if (!now)
            return NULL;
        map_put(f->done, PTR_KEY(n->e), (void *)(uintptr_t)now);
    }
    return map_get(f->done, PTR_KEY(root));
}

static const Expr *fuse_func(Ctx *c, const Expr *func)
{
    Fuse f = {.c = c, .list = expr_post_order(c, func)};

    if (func->u.func.primitive)
        return func;
    if (!make_nodes(&f, func))
        return NULL;
    find_dominators(&f);
    make_groups(&f);
    f.members = arena_array(c->scratch, f.list.n + 1, sizeof *f.members);
    for (uint32_t i = 0; i < f.list.n; i++)
        if (f.nodes[i].groups)
            vec_push(c->scratch, &f.members[find(&f.nodes[i])->order], &f.nodes[i]);
    return rebuild(&f, func);
}

static uint32_t times_read(const Expr *call, const Expr *x)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < call->nkids; i++)
        n += call->kids[i] == x;
    return n;
}

/* Calls that read what others read too, and widens, get one of their own. */
static const Expr *own_widening(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const Map   *uses = user;
    const Expr **kids = NULL;

    if (!call_op(was) || call_op(was)->fusion > FUSE_COMM_REDUCE)
        return now;
    for (uint32_t i = 1; i < was->nkids; i++) {
        const Expr *x = now->kids[i];

        if (!call_op(x) || !is_widening(x) || x->type->halo ||
            uses_of(uses, was->kids[i]) == times_read(was, was->kids[i]))
            continue;
        if (!kids)
            kids = DUP_ARRAY(c->scratch, now->kids, now->nkids);
        kids[i] = expr_call(c, call_op(x), call_nargs(x), x->kids + 1, x->u.attrs, x->loc);
        if (!kids[i])
            return NULL;
    }
    return kids ? expr_with_kids(c, now, kids) : now;
}

const Module *fuse_ops(Ctx *c, const Module *m)
{
    GlobalDef *defs;
    bool       changed = false;

    if (!(m = module_rewrite(c, m, own_widening, count_uses(c, m))))
        return NULL;
    defs = NEW_ARRAY(c->scratch, GlobalDef, m->nfuncs ? m->nfuncs : 1);

    for (uint32_t i = 0; i < m->nfuncs; i++) {
        defs[i] = m->funcs[i];
        if (!(defs[i].func = fuse_func(c, m->funcs[i].func)))
            return NULL;
        changed |= defs[i].func != m->funcs[i].func;
    }
    return changed ? module_new(c, m, m->nfuncs, defs) : m;
}
