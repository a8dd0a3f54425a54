/* One layout for a constant that several kernels read.
 *
 *   take(@w, %ids)       reads rows of @w as it is        @w as it is, 154 MB
 *   nn.dense(%x, @w)     reads @w in panels               and @w as (n//48, k, n%48), 154 MB
 *     -> take(..)        reads the cells of its rows in the panels; @w is stored once
 *
 * As a language model has it whose first and last matrices are one.  A kernel that reads only a few
 * cells of a large constant takes the layout of the one that reads all of it, if by the clock that
 * costs next to nothing beside that kernel: its schedule ends in one more `transform_layout`. */
#include "passes/lower/lower.h"

#include "machine/machine.h"

typedef struct {
    const Expr *call;
    Kernel     *kernel;
    uint32_t    param;
    const char *map; /* that the kernel's schedule chose; NULL: none */
} User;

typedef struct {
    const Const *data;
    VEC(User) users;
} Shared;

typedef struct {
    Kernels *k;
    Map     *found; /* the constant's memory -> Shared * */
    VEC(Shared *) all;
} Search;

static const char *map_of(const Kernel *k, uint32_t param)
{
    for (uint32_t i = 0; k->sched && i < k->sched->prepacks.n; i++)
        if (k->sched->prepacks.at[i].param == param)
            return k->sched->prepacks.at[i].map;
    return NULL;
}

static void note_operands(Search *x, const Expr *call)
{
    uint32_t param = 0;

    for (uint32_t i = 0; i < call_nargs(call); i++) {
        const Expr  *a = call_arg(call, i);
        const Const *data = a->kind == EXPR_CONST ? a->u.constant : NULL;
        Machine      m = machine_of(x->k->target);
        if (data && data->data.n >= (size_t)limit_shared_bytes(&m)) {
            Shared *s = map_get(x->found, PTR_KEY(data->data.at));
            if (!s) {
                s = NEW(x->k->c->arena, Shared);
                s->data = data;
                map_put(x->found, PTR_KEY(data->data.at), s);
                vec_push(x->k->c->arena, &x->all, s);
            }
            vec_push(x->k->c->arena, &s->users, ((User){call, NULL, param, NULL}));
        }
        param += data ? 1 : type_tensors(a->type);
    }
}

/* ---- what a kernel reads of it ------------------------------------------------------------------- */

typedef struct {
    const Buffer *b;
    double        rounds, reads;
} Reads;

static bool enter(void *user, const Stmt *s)
{
    Reads *x = user;

    if (s->kind == STMT_FOR)
        x->rounds *= (double)(s->u.loop.extent->hi > 1 ? s->u.loop.extent->hi : 1);
    return true;
}

static void leave(void *user, const Stmt *s)
{
    Reads *x = user;

    if (s->kind == STMT_FOR)
        x->rounds /= (double)(s->u.loop.extent->hi > 1 ? s->u.loop.extent->hi : 1);
}

static void load(void *user, const Prim *p)
{
    Reads *x = user;

    if (p->kind == PRIM_LOAD && p->u.load.buffer == x->b)
        x->reads += x->rounds * (p->dtype.lanes > 1 ? p->dtype.lanes : 1);
}

static double cells_read(const Kernel *k, uint32_t param)
{
    const Func *f = k->nest;
    Reads       x = {f->params[func_dims(f) + param].buffer, 1, 0};

    stmt_visit(f->body, &(TirVisit){&x, enter, leave, load, NULL});
    return x.reads;
}

/* Each cell lies in a line of its own then. */
static bool costs_little(const Kernels *k, const User *few, const User *all, const Const *data)
{
    Machine m = machine_of(k->target);
    double  lines = cells_read(few->kernel, few->param) * CACHE_LINE;
    Time    t = level_time(&m, LEVEL_MEMORY, (double)data->data.n);

    t.compute = (double)all->kernel->macs / ((double)m.fma_bytes / dtype_bytes(data->type->dtype));
    return time_cycles(&m, level_time(&m, LEVEL_MEMORY, lines)) <=
           limit_shared_share(&m) * time_cycles(&m, t);
}

/* ---- the choice -------------------------------------------------------------------------------- */

static bool choose(Kernels *k, Shared *s)
{
    const User *packed = NULL;
    AtomList    dims;

    for (uint32_t i = 0; i < s->users.n; i++) {
        User *u = &s->users.at[i];
        if (!(u->kernel = kernel_of_call(k, u->call, false, &dims)))
            return false;
        u->map = map_of(u->kernel, u->param);
        if (u->map && (!packed || u->kernel->macs > packed->kernel->macs))
            packed = u;
    }
    for (uint32_t i = 0; packed && i < s->users.n; i++) {
        const User *u = &s->users.at[i];
        if (!u->map && costs_little(k, u, packed, s->data))
            map_put(k->layouts, u->call->id,
                    DUP_ARRAY(k->c->arena, &((TakenLayout){u->param, packed->map}), 1));
    }
    return true;
}

bool share_layouts(Kernels *k, const Module *m)
{
    Search x = {.k = k, .found = map_new(k->c->arena)};

    if (!k->target || k->target->host) /* the clock knows nothing of lines there */
        return true;
    for (uint32_t i = 0; k->o->opt_level > 0 && i < m->nfuncs; i++) {
        ExprList list = expr_post_order(k->c, func_body(m->funcs[i].func));
        for (uint32_t j = 0; j < list.n; j++)
            if (is_kernel_call(list.at[j]))
                note_operands(&x, list.at[j]);
    }
    k->looking = true;
    for (uint32_t i = 0; i < x.all.n && k->looking; i++)
        k->looking = x.all.at[i]->users.n < 2 || choose(k, x.all.at[i]);
    bool ok = k->looking;
    k->looking = false;
    return ok;
}
