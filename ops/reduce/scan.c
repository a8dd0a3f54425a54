/* cumsum: running sums along an axis.                      %1 = cumsum(%0, axis=1);
 *
 * A statement of TIR.  Along the last axis a row's sum stays in a register:
 *
 *     for i { %sum = 0;  for k { %sum = %sum + %x[i, k];  %out[i, k] = %sum } }
 *
 * Along another one a row of the result is the row before plus a row of the operand, as vectors. */
#include "ops/common.h"

const Type *rel_scan(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const ScanAttrs *a = attrs;
    uint32_t         axis;

    if (!rel_tensors(c, loc, in, nin) || !rel_number(c, loc, in[0]) ||
        !rel_axis(c, loc, a->axis, in[0]->n, &axis))
        return NULL;
    return in[0];
}

typedef struct {
    Ctx          *c;
    const Tensor *x, *y;
    const Type   *t;
    uint32_t      axis;
    bool          exclusive;
    const Atom   *var[TE_MAX_AXES];
    const Idx    *at[TE_MAX_AXES];
} Scan;

static Scan scan_of(Ctx *c, const OpCall *call, const Tensor *x)
{
    const ScanAttrs *a = call->attrs;
    Scan             s = {.c = c, .x = x, .t = call->out[0], .exclusive = a->exclusive};

    s.axis = axis_of(a->axis, s.t->n);
    s.y = te_extern_out(c, "out", s.t);
    for (uint32_t i = 0; i < s.t->n; i++) {
        s.var[i] = te_loop_var(c, i == s.axis ? "k" : "i", s.t->dims[i]);
        s.at[i] = idx_atom(c->arith, s.var[i]);
    }
    return s;
}

/* The sum starts from -0, to which any number can be added unchanged; an exclusive one is seen. */
static const Stmt *scan_row(const Scan *s)
{
    Ctx          *c = s->c;
    const Idx    *one = idx_const(c->arith, 1), *at = idx_const(c->arith, 0);
    const Buffer *sum = buffer_new(c, intern(c->strings, "sum"), s->t->dtype, SCOPE_REG, 1, &one);
    bool          zero = s->exclusive || !dtype_is_float(s->t->dtype);
    const Prim   *was = prim_load(c, sum, &at), *x = te_at(c, s->x, s->at);
    const Stmt   *add = stmt_store(c, sum, &at, prim_add(c, was, x));
    const Stmt   *put = stmt_store(c, s->y->buffer, s->at, was);
    const Stmt   *step[2] = {s->exclusive ? put : add, s->exclusive ? add : put};
    const Stmt   *kids[2] = {
        stmt_store(c, sum, &at, prim_num(c, s->t->dtype, zero ? 0.0 : -0.0)),
        loop_stmt(c, s->var[s->axis], s->t->dims[s->axis], 0, stmt_seq(c, 2, step))};

    return stmt_alloc(c, sum, stmt_seq(c, 2, kids));
}

/* One cell at `k` of the axis: the first, or from the one before. */
static const Stmt *scan_cell(const Scan *s, const Idx *const *where, const Idx *k)
{
    Ctx        *c = s->c;
    const Idx  *at[TE_MAX_AXES], *before[TE_MAX_AXES];
    const Prim *v = prim_num(c, s->t->dtype, 0);

    for (uint32_t i = 0; i < s->t->n; i++)
        before[i] = at[i] = where[i];
    at[s->axis] = k ? k : idx_const(c->arith, 0);
    before[s->axis] = idx_addc(c->arith, at[s->axis], -1);
    if (k)
        v = prim_add(c, prim_load(c, s->y->buffer, before),
                     te_at(c, s->x, s->exclusive ? before : at));
    else if (!s->exclusive)
        v = te_at(c, s->x, at);
    return stmt_store(c, s->y->buffer, at, v);
}

/* All cells at `k` of the dimensions behind the axis; the last in vectors and what is left. */
static const Stmt *scan_cells(const Scan *s, const Idx *k)
{
    Ctx          *c = s->c;
    Arith        *A = c->arith;
    const Idx    *at[TE_MAX_AXES];
    uint32_t      last = s->t->n - 1, n = 0;
    int64_t       cells = 0, lanes = 1;
    const Stmt   *kids[2];
    const Target *t = c->target;

    for (uint32_t i = 0; i <= last; i++)
        at[i] = s->at[i];
    if (idx_is_const(s->t->dims[last], &cells) && t &&
        cells >= t->vector_bytes / dtype_bytes(s->t->dtype))
        lanes = t->vector_bytes / dtype_bytes(s->t->dtype);
    if (lanes > 1) {
        const Atom *v = te_loop_var(c, "v", idx_const(A, cells / lanes));
        const Atom *l = te_loop_var(c, "l", idx_const(A, lanes));

        at[last] = idx_add(A, idx_mulc(A, idx_atom(A, v), lanes), idx_atom(A, l));
        kids[n++] =
            loop_stmt(c, v, idx_const(A, cells / lanes), 0,
                      loop_stmt(c, l, idx_const(A, lanes), MARK_VECTOR, scan_cell(s, at, k)));
    }
    if (lanes <= 1 || cells % lanes) {
        int64_t     first = lanes > 1 ? cells / lanes * lanes : 0;
        const Atom *j = te_loop_var(c, "j", idx_addc(A, s->t->dims[last], -first));

        at[last] = idx_addc(A, idx_atom(A, j), first);
        kids[n++] = loop_stmt(c, j, idx_addc(A, s->t->dims[last], -first), 0, scan_cell(s, at, k));
    }
    const Stmt *body = stmt_seq(c, n, kids);
    for (uint32_t i = last; i-- > s->axis + 1;)
        body = loop_stmt(c, s->var[i], s->t->dims[i], 0, body);
    return body;
}

bool te_cumsum(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    Scan        s = scan_of(c, call, in[0]);
    const Stmt *body;
    int64_t     cells = 1;

    if (s.axis + 1 == s.t->n) {
        body = scan_row(&s);
    } else if (idx_is_const(s.t->dims[s.axis], &cells) && !cells) {
        const Atom *k = te_loop_var(c, "k", s.t->dims[s.axis]); /* there is no first cell */

        body = loop_stmt(c, k, s.t->dims[s.axis], 0, scan_cells(&s, idx_atom(c->arith, k)));
    } else {
        const Idx  *more = idx_addc(c->arith, s.t->dims[s.axis], -1);
        const Atom *k = te_loop_var(c, "k", more);
        const Stmt *kids[2] = {
            scan_cells(&s, NULL),
            loop_stmt(c, k, more, 0, scan_cells(&s, idx_addc(c->arith, idx_atom(c->arith, k), 1)))};

        body = stmt_seq(c, 2, kids);
    }
    for (uint32_t i = s.axis; i-- > 0;)
        body = loop_stmt(c, s.var[i], s.t->dims[i], 0, body);
    out[0] = s.y;
    te_extern(c, 1, in, 1, out, body);
    return true;
}
