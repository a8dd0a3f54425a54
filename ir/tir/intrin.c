/* Instructions of targets: the table as values, their prims, a prim written out.
 *
 *     dot4(%a[0 : 4], %b[0 : 16], %s[0 : 4])
 *       ->  %s[0 : 4] + i32(splat(%a[0], 4)) * i32(shuffle(%b[0 : 16]; 0, 4, 8, 12)) + ..
 *
 * The descriptions are read with a Ctx of their own, so that no compile depends on them. */
#include "ir/tir/intrin.h"
#include "ir/te/te.h"
#include "ir/tir/prim_node.h"

#include <string.h>

/* ---- the table -------------------------------------------------------------------------------------- */

struct Intrins {
    Ctx   *c; /* of the descriptions */
    Intrin row[INTRIN_COUNT];
};

static const struct {
    const char *text, *te;
    bool        warp, group, lanes;
    LayoutId    layout;
} rows[INTRIN_COUNT] = {
#define INTRIN(id, text, te) {text, te, false, false, false, 0},
#define WARP(id, text, layout, te) {text, te, true, false, false, LAYOUT_##layout},
#define GROUP(id, text, te) {text, te, true, true, false, LAYOUT_NVIDIA},
#define LANES(id, text, layout, te) {text, te, true, false, true, LAYOUT_##layout},
#include "ir/tir/intrin.def"
#undef INTRIN
};

static IntrinBox box_of(const Buffer *b)
{
    IntrinBox box = {.buffer = b, .dtype = b->dtype, .cells = 1};
    int64_t   extent = 1;

    for (uint32_t i = 0; i < b->ndim && idx_is_const(b->extent[i], &extent); i++)
        box.cells *= (uint32_t)extent;
    return box;
}

static void add_operand(Intrin *row, const Buffer *b)
{
    if (row->n == INTRIN_OPERANDS)
        BUG("%s has more than %d operands", row->text, INTRIN_OPERANDS);
    row->operand[row->n++] = box_of(b);
}

static IntrinBox *box_named(Intrin *row, const Buffer *b)
{
    for (uint32_t i = 0; i < row->n; i++)
        if (row->operand[i].buffer == b)
            return &row->operand[i];
    return &row->result;
}

/* How a box is walked: each of its indices is an axis. */
static void set_walk(const Tensor *t, IntrinBox *box, uint32_t n, const Idx *const *index)
{
    int64_t step = 1, extent;

    for (uint32_t d = n; d-- > 0;) {
        const Idx *x = index[d];
        uint32_t   i = 0;

        if (x->nterms != 1 || x->t[0].coef != 1 || x->c0)
            BUG("an index of '%s' is no axis", box->buffer->name);
        while (i < t->naxis + t->nreduce &&
               x->t[0].atom != (i < t->naxis ? t->axis[i] : t->raxis[i - t->naxis]))
            i++;
        box->by[i] = step;
        if (idx_is_const(box->buffer->extent[d], &extent))
            step *= extent;
    }
}

typedef struct {
    Intrin       *row;
    const Tensor *t;
} Describe;

static void see_load(void *user, const Prim *p)
{
    Describe *d = user;

    if (p->kind == PRIM_LOAD)
        set_walk(d->t, box_named(d->row, p->u.load.buffer), p->u.load.n, p->u.load.index);
}

static void describe(Ctx *c, IntrinId id, Intrin *row)
{
    const char   *te = rows[id].te;
    const TeFunc *f = te_parse(c, "intrin.def", (Bytes){(const uint8_t *)te, strlen(te)});
    const Idx    *at[INTRIN_AXES];

    if (!f || f->nouts != 1 || f->outs[0]->naxis + f->outs[0]->nreduce > INTRIN_AXES)
        BUG("the description of %s", rows[id].text);
    const Tensor *t = f->outs[0];
    Describe      d = {row, t};

    *row = (Intrin){.id = id,
                    .text = rows[id].text,
                    .result = box_of(t->buffer),
                    .sums = t->kind == TENSOR_REDUCE,
                    .warp = rows[id].warp ? warp_layout(rows[id].layout) : NULL,
                    .group = rows[id].group,
                    .lanes = rows[id].lanes,
                    .naxis = t->naxis,
                    .nreduce = t->nreduce,
                    .step = t->body};
    for (uint32_t i = 0; i < t->naxis; i++) {
        at[i] = idx_atom(c->arith, t->axis[i]);
        row->extent[i] = t->axis[i]->hi + 1;
    }
    for (uint32_t i = 0; i < t->nreduce; i++)
        row->extent[t->naxis + i] = t->raxis[i]->hi + 1;
    for (uint32_t i = 0; i < f->nparams; i++)
        add_operand(row, f->params[i]->buffer);
    set_walk(t, &row->result, t->naxis, at);
    if (row->sums) {
        add_operand(row, t->buffer);
        row->step = comb_apply(c, t->comb, prim_load(c, t->buffer, at), t->body);
    }
    prim_visit(row->step, &(TirVisit){.user = &d, .prim = see_load});
}

const Intrin *intrin_of(Ctx *c, IntrinId id)
{
    if (!c->intrins) {
        c->intrins = NEW(c->arena, struct Intrins);
        c->intrins->c = ctx_new(c->arena, c->diags, (OpTable){0});
        for (uint32_t i = 0; i < INTRIN_COUNT; i++)
            describe(c->intrins->c, (IntrinId)i, &c->intrins->row[i]);
    }
    return &c->intrins->row[id];
}

void intrins_free(Ctx *c)
{
    if (c->intrins)
        ctx_free(c->intrins->c);
}

const char *intrin_text(IntrinId id)
{
    return rows[id].text;
}

const char *intrin_te(IntrinId id)
{
    return rows[id].te;
}

static bool has_text(uint32_t id, const char *text)
{
    return !strcmp(rows[id].text, text);
}

static bool same_element(DType a, DType b)
{
    return dtype_eq(dtype_lanes(a, 1), dtype_lanes(b, 1));
}

bool intrin_copies(const Intrin *row)
{
    return !row->warp && !row->sums && row->naxis == 1 && row->n == 1;
}

bool loop_copies(Ctx *c, const LoopData *l)
{
    const Intrin *row = l->intrin ? intrin_find(c, l->intrin, 0, NULL) : NULL;

    return row && intrin_copies(row);
}

bool loop_is_of_group(Ctx *c, const LoopData *l)
{
    const Intrin *row = l->intrin ? intrin_find(c, l->intrin, 0, NULL) : NULL;

    return row && row->group;
}

const Intrin *intrin_find(Ctx *c, const char *text, uint32_t n, const DType *operand)
{
    for (uint32_t id = 0; id < INTRIN_COUNT; id++) {
        const Intrin *row = has_text(id, text) ? intrin_of(c, (IntrinId)id) : NULL;
        bool          fits = row && n <= row->n;

        for (uint32_t i = 0; fits && (!row->warp || row->lanes) && i < n; i++)
            fits = same_element(operand[i], row->operand[i].dtype);
        if (fits)
            return row;
    }
    return NULL;
}

uint32_t intrin_ops(Ctx *c, const char *text, DType a, DType b)
{
    const Intrin *row = intrin_find(c, text, 2, (DType[]){a, b});

    return row && c->target ? c->target->intrin_ops[row->id] : 0;
}

/* ---- prims ------------------------------------------------------------------------------------------ */

/* How many units the kids hold. */
static uint32_t units_of(const Intrin *row, const Prim *const *kids)
{
    uint32_t units = 1;

    for (uint32_t i = 0; i < row->n; i++)
        if (kids[i]->dtype.lanes / row->operand[i].cells > units)
            units = kids[i]->dtype.lanes / row->operand[i].cells;
    return units;
}

/* A thread's parts: pieces of the operands, numbers of the result; of ldmatrix a row. */
static bool warp_fits(const Intrin *row, uint32_t n, const Prim *const *kids)
{
    if (n != row->n)
        return false;
    if (!row->sums)
        return dtype_bytes(kids[0]->dtype) == WARP_BYTES;
    for (uint32_t i = 0; i + 1 < n; i++)
        if (!same_element(kids[i]->dtype, row->warp->ldmatrix ? DT_U32 : row->operand[i].dtype) ||
            dtype_bytes(kids[i]->dtype) !=
                warp_pieces(row->warp, (Matrix)i) * warp_piece_bytes(row, (Matrix)i))
            return false;
    return same_element(kids[n - 1]->dtype, row->result.dtype) &&
           kids[n - 1]->dtype.lanes == warp_pieces(row->warp, MATRIX_C);
}

/* A thread's cell, and what its result held. */
static bool lanes_fit(const Intrin *row, uint32_t n, const Prim *const *kids)
{
    bool fits = n == row->n;

    for (uint32_t i = 0; fits && i < n; i++)
        fits = dtype_eq(kids[i]->dtype, row->operand[i].dtype);
    return fits;
}

/* Where both sides begin in shared memory, 16 bytes of them; numbers of so many units. */
static bool group_fits(const Intrin *row, uint32_t n, const Prim *const *kids)
{
    uint32_t units = n == row->n ? kids[n - 1]->dtype.lanes / UNIT_NUMBERS : 0;

    for (uint32_t i = 0; units && i + 1 < n; i++)
        if (kids[i]->kind != PRIM_LOAD || kids[i]->u.load.mask || kids[i]->u.load.n != 1 ||
            !same_element(kids[i]->dtype, row->operand[i].dtype) ||
            dtype_bytes(kids[i]->dtype) != WARP_BYTES)
            return false;
    return units && units <= GROUP_UNITS && kids[n - 1]->dtype.lanes % UNIT_NUMBERS == 0 &&
           same_element(kids[n - 1]->dtype, row->result.dtype);
}

bool intrin_fits(const Intrin *row, uint32_t n, const Prim *const *kids)
{
    if (row->group)
        return group_fits(row, n, kids);
    if (row->lanes)
        return lanes_fit(row, n, kids);
    if (row->warp)
        return warp_fits(row, n, kids);

    uint32_t units = n == row->n ? units_of(row, kids) : 0;

    for (uint32_t i = 0; units && i < n; i++) {
        uint32_t lanes = kids[i]->dtype.lanes, cells = row->operand[i].cells;
        bool     result = row->sums && i + 1 == n;

        if (!same_element(kids[i]->dtype, row->operand[i].dtype) ||
            (lanes != cells * units && (result || lanes != cells)))
            return false;
    }
    return units && units * row->result.cells <= UINT16_MAX;
}

const Prim *prim_intrin(Ctx *c, const Intrin *row, const Prim *const *kids)
{
    Prim p = {.kind = PRIM_INTRIN, .nkids = row->n, .kids = kids, .u.intrin = row};

    if (!intrin_fits(row, row->n, kids))
        BUG("operands of %s", row->text);
    p.dtype = dtype_lanes(row->result.dtype,
                          (uint16_t)(row->lanes   ? 1
                                     : row->group ? kids[row->n - 1]->dtype.lanes
                                     : row->warp  ? row->result.cells / warp_threads(row->warp)
                                                  : row->result.cells * units_of(row, kids)));
    return prim_node(c, &p);
}

/* ---- written out ------------------------------------------------------------------------------------- */

typedef struct {
    Ctx          *c;
    const Intrin *row;
    const Prim   *p;
    const Prim   *result; /* so far */
    uint32_t      step;   /* of the sum, counted row-major */
} Expand;

/* The cell of a box at the n axes from `first` on, of which `at` are counted row-major. */
static uint32_t cell_at(const Intrin *row, const IntrinBox *box, uint32_t first, uint32_t n,
                        uint32_t at)
{
    int64_t cell = 0, left = at;

    for (uint32_t i = first + n; i-- > first;) {
        cell += left % row->extent[i] * box->by[i];
        left /= row->extent[i];
    }
    return (uint32_t)cell;
}

/* The lane of an operand's vector that a lane of the result reads in this step. */
static uint16_t lane_of(const Expand *x, uint32_t k, uint32_t lane)
{
    const Intrin    *row = x->row;
    const IntrinBox *box = &row->operand[k];
    uint32_t         unit = lane / row->result.cells;
    uint32_t         cell = cell_at(row, box, 0, row->naxis, lane % row->result.cells) +
                    cell_at(row, box, row->naxis, row->nreduce, x->step);

    return (uint16_t)(cell + (x->p->kids[k]->dtype.lanes > box->cells ? unit * box->cells : 0));
}

/* A part of a step, of all lanes. */
static const Prim *in_lanes(Expand *x, const Prim *p)
{
    Ctx        *c = x->c;
    uint16_t    n = x->p->dtype.lanes;
    const Prim *kid[INTRIN_OPERANDS];
    uint16_t   *from;
    uint32_t    k = 0;

    if (p->kind == PRIM_INT)
        return prim_int(c, dtype_lanes(p->dtype, n), p->u.i);
    if (p->kind == PRIM_FLOAT)
        return prim_float(c, dtype_lanes(p->dtype, n), p->u.f);
    if (p->kind != PRIM_LOAD) {
        if (!p->nkids || p->nkids > INTRIN_OPERANDS)
            BUG("the description of %s", x->row->text);
        for (uint32_t i = 0; i < p->nkids; i++)
            kid[i] = in_lanes(x, p->kids[i]);
        return prim_with_kids(c, p, kid);
    }
    if (x->row->sums && p->u.load.buffer == x->row->result.buffer)
        return x->result;
    while (x->row->operand[k].buffer != p->u.load.buffer)
        k++;
    from = NEW_ARRAY(c->scratch, uint16_t, n);
    for (uint32_t i = 0; i < n; i++)
        from[i] = lane_of(x, k, i);
    return prim_shuffle(c, x->p->kids[k], n, from);
}

const Prim *intrin_expand(Ctx *c, const Prim *p)
{
    const Intrin *row = p->u.intrin;
    Expand        x = {.c = c, .row = row, .p = p};
    int64_t       steps = 1;

    if (row->warp)
        BUG("%s is not of one thread", row->text);
    if (row->sums)
        x.result = p->kids[row->n - 1];
    for (uint32_t i = 0; i < row->nreduce; i++)
        steps *= row->extent[row->naxis + i];
    for (x.step = 0; x.step < steps; x.step++)
        x.result = in_lanes(&x, row->step);
    return x.result;
}

static const Prim *expand_prim(Ctx *c, void *user, const Prim *p)
{
    (void)user;
    return p->kind == PRIM_INTRIN && !p->u.intrin->warp ? intrin_expand(c, p) : p;
}

const Func *intrins_expand(Ctx *c, const Func *f)
{
    return func_with_body(c, f, stmt_map(c, f->body, &(TirMap){.prim = expand_prim}));
}
