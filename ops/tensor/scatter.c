/* Cells written where index tensors say: scatter_elements, scatter_nd.
 *
 *     %3 = scatter_elements(%0, %ids, %updates, axis=1, reduction="add");
 *     %3 = scatter_nd(%0, %ids, %updates);             // ids [M, ..]: the first M coordinates
 *     %3 = scatter_nd(%0, %ids, %updates, axes=[2]);   // .. or those of these dimensions
 *
 * No tensor expression states this, so it is a statement of TIR: copy the data, unless they lie
 * where the result does, then go through the updates in order.  Of several updates of one cell the
 * last wins, or all are combined.  Indices wrap, so that no write leaves the tensor. */
#include "ops/common.h"

#include <string.h>

typedef const Prim *CombineFn(Ctx *c, const Prim *was, const Prim *update);

static const Prim *replace(Ctx *c, const Prim *was, const Prim *update)
{
    (void)c;
    (void)was;
    return update;
}

static CombineFn *combine_fn(Ctx *c, Loc loc, const char *name)
{
    static const struct {
        const char *name;
        CombineFn  *fn;
    } rows[] = {{"update", replace},
                {"add", prim_add},
                {"mul", prim_mul},
                {"min", prim_min},
                {"max", prim_max}};

    for (uint32_t i = 0; i < COUNT(rows); i++)
        if (!strcmp(name, rows[i].name))
            return rows[i].fn;
    error_at(c, E_TYPE, loc, "there is no reduction '%s'", name);
    return NULL;
}

static bool rel_operands(Ctx *c, Loc loc, const Type *const *in, uint32_t nin)
{
    return rel_tensors(c, loc, in, nin) && rel_int_dtype(c, loc, in[1], "indices") &&
           rel_same_dtype(c, loc, in[0], in[2]);
}

/* ---- statements --------------------------------------------------------------------------------- */

/* Loops over all cells of a type; at[i] are their variables. */
typedef struct {
    Ctx        *c;
    const Type *t;
    const Atom *var[TE_MAX_AXES];
    const Idx  *at[TE_MAX_AXES];
} Cells;

static Cells cells_of(Ctx *c, const Type *t)
{
    Cells s = {.c = c, .t = t};

    for (uint32_t i = 0; i < t->n; i++) {
        s.var[i] = te_loop_var(c, "i", t->dims[i]);
        s.at[i] = idx_atom(c->arith, s.var[i]);
    }
    return s;
}

static const Stmt *for_cells(const Cells *s, const Stmt *body)
{
    for (uint32_t i = s->t->n; i-- > 0;)
        body = loop_stmt(s->c, s->var[i], s->t->dims[i], body);
    return body;
}

/* Copy, unless the data lie there, then one store for each cell of `updates` at the index that the
 * caller made. */
static bool scatter(Ctx *c, const OpCall *call, CombineFn *fn, const Cells *updates,
                    const Idx *const *to, const Tensor *const *in, const Tensor **out)
{
    const Tensor *y = te_extern_out(c, "out", call->out[0]);
    Cells         all = cells_of(c, call->out[0]);
    const Prim   *update = te_at(c, in[2], updates->at);
    const Type   *t = call->out[0];
    Pred          cells = PRED_TRUE; /* to be indexed */
    const Stmt   *kids[2];
    uint32_t      at = call->in_place; /* the first of them */

    if (!call->in_place)
        kids[0] = for_cells(&all, stmt_store(c, y->buffer, all.at, te_at(c, in[0], all.at)));
    kids[1] = for_cells(updates,
                        stmt_store(c, y->buffer, to, fn(c, prim_load(c, y->buffer, to), update)));
    for (uint32_t i = 0; i < t->n; i++)
        cells = pred_and(c->arith, c->arena, cells, idx_addc(c->arith, t->dims[i], -1));
    if (cells.n)
        kids[1] = stmt_if(c, pred_prim(c, cells), kids[1], NULL);
    out[0] = y;
    te_extern(c, 3 - at, in + at, 1, out, stmt_seq(c, 2 - at, kids + at));
    return true;
}

/* ---- scatter_elements ---------------------------------------------------------------------------- */

const Type *rel_scatter_elements(Ctx *c, Loc loc, const void *attrs, const Type *const *in,
                                 uint32_t nin)
{
    const ScatterElementsAttrs *a = attrs;
    uint32_t                    axis;

    if (!rel_operands(c, loc, in, nin) || !rel_axis(c, loc, a->axis, in[0]->n, &axis) ||
        !rel_rank(c, loc, in[1], in[0]->n, "indices") ||
        !rel_rank(c, loc, in[2], in[0]->n, "updates") || !combine_fn(c, loc, a->reduction))
        return NULL;
    for (uint32_t i = 0; i < in[0]->n; i++) {
        if (!rel_dims_equal(c, loc, in[1]->dims[i], in[2]->dims[i], "indices and updates"))
            return NULL;
        if ((i != axis && idx_sub(c->arith, in[0]->dims[i], in[1]->dims[i])->lo < 0) ||
            in[0]->dims[i]->hi < 1)
            return error_at(c, E_TYPE, loc, "indices %s reach out of %s", type_text(c, in[1]),
                            type_text(c, in[0]));
    }
    return in[0];
}

bool te_scatter_elements(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const ScatterElementsAttrs *a = call->attrs;
    uint32_t                    axis = axis_of(a->axis, call->in[0]->n);
    Cells                       u = cells_of(c, call->in[2]);
    const Idx                  *to[TE_MAX_AXES];

    for (uint32_t i = 0; i < call->in[0]->n; i++)
        to[i] = u.at[i];
    to[axis] = te_index(c, te_at(c, in[1], u.at), call->in[0]->dims[axis], INDEX_WRAP);
    return scatter(c, call, combine_fn(c, call->loc, a->reduction), &u, to, in, out);
}

/* ---- scatter_nd ------------------------------------------------------------------------------------ */

/* The dimensions of data: those of the m coordinates, then the others in order; false: they are
 * none. */
static bool coordinates(const ScatterNdAttrs *a, uint32_t n, uint32_t m, uint32_t *order)
{
    bool     taken[TE_MAX_AXES] = {false};
    uint32_t k = m;

    if (a->axes.n && a->axes.n != m)
        return false;
    for (uint32_t i = 0; i < m; i++) {
        if (a->axes.n && (a->axes.at[i] < 0 || a->axes.at[i] >= n))
            return false;
        order[i] = a->axes.n ? (uint32_t)a->axes.at[i] : i;
        if (taken[order[i]])
            return false;
        taken[order[i]] = true;
    }
    for (uint32_t i = 0; i < n; i++)
        if (!taken[i])
            order[k++] = i;
    return true;
}

const Type *rel_scatter_nd(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const ScatterNdAttrs *a = attrs;
    int64_t               m;
    uint32_t              order[TE_MAX_AXES];

    if (!rel_operands(c, loc, in, nin) || !combine_fn(c, loc, a->mode))
        return NULL;
    if (!in[1]->n)
        return error_at(c, E_TYPE, loc, "the indices are a scalar");
    if (!rel_dim(c, loc, in[1], 0, &m))
        return NULL;
    if (m < 0 || m > in[0]->n)
        return error_at(c, E_TYPE, loc, "%lld coordinates of %s", (long long)m,
                        type_text(c, in[0]));
    if (!coordinates(a, in[0]->n, (uint32_t)m, order))
        return error_at(c, E_TYPE, loc, "axes are not %lld dimensions of %s", (long long)m,
                        type_text(c, in[0]));
    if (!rel_rank(c, loc, in[2], in[1]->n - 1 + in[0]->n - (uint32_t)m, "updates"))
        return NULL;
    for (uint32_t i = 0; i < in[2]->n; i++) {
        const Idx *want =
            i + 1 < in[1]->n ? in[1]->dims[i + 1] : in[0]->dims[order[i + 1 - in[1]->n + m]];

        if (!rel_dims_equal(c, loc, in[2]->dims[i], want, "updates"))
            return NULL;
    }
    for (uint32_t i = 0; i < in[0]->n; i++)
        if (in[0]->dims[i]->hi < 1)
            return error_at(c, E_TYPE, loc, "dimension %u of %s is empty", i, type_text(c, in[0]));
    return in[0];
}

bool te_scatter_nd(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const ScatterNdAttrs *a = call->attrs;
    const Type           *x = call->in[0], *y = call->in[1];
    uint32_t              m = (uint32_t)dim_of(y, 0), order[TE_MAX_AXES];
    Cells                 u = cells_of(c, call->in[2]);
    const Idx            *to[TE_MAX_AXES], *iat[TE_MAX_AXES];

    coordinates(a, x->n, m, order);
    for (uint32_t i = 1; i < y->n; i++)
        iat[i] = u.at[i - 1];
    for (uint32_t i = 0; i < x->n; i++) {
        iat[0] = idx_const(c->arith, i);
        to[order[i]] = i < m ? te_index(c, te_at(c, in[1], iat), x->dims[order[i]], INDEX_WRAP)
                             : u.at[y->n - 1 + i - m];
    }
    return scatter(c, call, combine_fn(c, call->loc, a->mode), &u, to, in, out);
}
