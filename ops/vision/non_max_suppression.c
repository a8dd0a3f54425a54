/* vision.non_max_suppression: boxes one after another, less those that overlap one before.
 *
 *     %order = argsort(%scores, is_ascend=false, dtype=i64);
 *     %3 = vision.non_max_suppression(%boxes, %scores, %order, %most, %overlap, room=[100]);
 *
 * boxes [N, B, 4]: two opposite corners (y, x, y, x), or centers and sizes (x, y, width, height);
 * scores and order [N, C, B]; most, an i64: how many are wanted; overlap: of the area that both
 * cover, the share up to which boxes stand side by side; with one operand more, boxes are
 * considered whose score is above it.  The result [N, C, room], i64, has the boxes that are left in
 * order, -1 behind them.
 *
 * How many there are to compare with the run knows, so that it is a statement of TIR:
 *
 *     for i < B { box = order[i]; if no list[j], j < count, overlaps it { list[count++] = box } }
 */
#include "ops/common.h"

const Type *rel_non_max_suppression(Ctx *c, Loc loc, const void *attrs, const Type *const *in,
                                    uint32_t nin)
{
    const NonMaxSuppressionAttrs *a = attrs;
    int64_t                       four;

    if (!rel_tensors(c, loc, in, nin) || !rel_rank(c, loc, in[0], 3, "boxes") ||
        !rel_rank(c, loc, in[1], 3, "scores") || !rel_rank(c, loc, in[2], 3, "order") ||
        !rel_int_dtype(c, loc, in[2], "order") || !rel_int_dtype(c, loc, in[3], "most") ||
        !rel_dim(c, loc, in[0], 2, &four) ||
        !rel_dims_equal(c, loc, in[0]->dims[0], in[1]->dims[0], "boxes and scores") ||
        !rel_dims_equal(c, loc, in[0]->dims[1], in[1]->dims[2], "boxes and scores"))
        return NULL;
    for (uint32_t i = 0; i < 3; i++)
        if (!rel_dims_equal(c, loc, in[1]->dims[i], in[2]->dims[i], "scores and order"))
            return NULL;
    for (uint32_t i = 3; i < nin; i++)
        if (!rel_rank(c, loc, in[i], 0, i == 3 ? "most" : "the threshold"))
            return NULL;
    for (uint32_t i = 0; i < nin; i++)
        if (i != 2 && i != 3 && !dtype_is_float(in[i]->dtype))
            return error_at(c, E_TYPE, loc, "operand %u of type %s", i, type_text(c, in[i]));
    if (four != 4)
        return error_at(c, E_TYPE, loc, "boxes %s", type_text(c, in[0]));
    const Idx *boxes = in[0]->dims[1];

    if (a->room.n != 1)
        return error_at(c, E_TYPE, loc, "room is %u dimensions, not one", a->room.n);
    const Idx *room = a->room.at[0];

    if (room->lo < 0 || room->hi > boxes->hi || idx_usual(boxes) > 1 << 24)
        return error_at(c, E_TYPE, loc, "the first %s of %s boxes", dim_text(c, room),
                        dim_text(c, boxes));
    return rel_tensor(c, loc, DT_I64, 3, (const Idx *[]){in[1]->dims[0], in[1]->dims[1], room});
}

/* ---- compute -------------------------------------------------------------------------------------- */

typedef struct {
    Ctx                 *c;
    bool                 center;
    const Tensor *const *in;
    const Idx           *picture, *boxes;
    const Idx           *room;
    const Buffer        *list;  /* i32[room]: boxes that are left */
    const Buffer        *state; /* i32[2] */
} Nms;

enum { COUNT, APART }; /* of the list; does no box of it overlap? */

static const Prim *state(const Nms *s, int what)
{
    const Idx *at = idx_const(s->c->arith, what);

    return prim_load(s->c, s->state, &at);
}

static const Stmt *set_state(const Nms *s, int what, const Prim *v)
{
    const Idx *at = idx_const(s->c->arith, what);

    return stmt_store(s->c, s->state, &at, v);
}

static const Prim *f32_of(const Nms *s, uint32_t operand)
{
    return prim_cast(s->c, DT_F32, te_at(s->c, s->in[operand], NULL));
}

typedef struct {
    const Prim *lo[2], *hi[2], *area;
} Box;

static Box box_at(const Nms *s, const Idx *at)
{
    Ctx        *c = s->c;
    const Prim *v[4];
    Box         box;

    for (int i = 0; i < 4; i++) {
        const Idx *where[3] = {s->picture, at, idx_const(c->arith, i)};

        v[i] = prim_cast(c, DT_F32, te_at(c, s->in[0], where));
    }
    for (int i = 0; i < 2; i++) {
        const Prim *half = prim_mul(c, v[2 + i], prim_float(c, DT_F32, 0.5));

        box.lo[i] = s->center ? prim_sub(c, v[i], half) : prim_min(c, v[i], v[2 + i]);
        box.hi[i] = s->center ? prim_add(c, v[i], half) : prim_max(c, v[i], v[2 + i]);
    }
    box.area = prim_mul(c, prim_sub(c, box.hi[0], box.lo[0]), prim_sub(c, box.hi[1], box.lo[1]));
    return box;
}

/* A box without area overlaps none. */
static const Prim *overlap(const Nms *s, const Box *a, const Box *b)
{
    Ctx        *c = s->c;
    const Prim *zero = prim_float(c, DT_F32, 0), *side[2], *both, *all, *is;

    for (int i = 0; i < 2; i++)
        side[i] = prim_sub(c, prim_min(c, a->hi[i], b->hi[i]), prim_max(c, a->lo[i], b->lo[i]));
    both = prim_mul(c, side[0], side[1]);
    all = prim_sub(c, prim_add(c, a->area, b->area), both);
    is = prim_and(c, prim_lt(c, zero, side[0]), prim_lt(c, zero, side[1]));
    is = prim_and(c, is, prim_and(c, prim_lt(c, zero, a->area), prim_lt(c, zero, b->area)));
    return prim_and(c, is, prim_lt(c, f32_of(s, 4), prim_div(c, both, all)));
}

/* Box number `box`, unless one of the list overlaps it. */
static const Stmt *consider(const Nms *s, const Prim *box, const Idx *at)
{
    Ctx        *c = s->c;
    Arith      *A = c->arith;
    const Prim *one = prim_int(c, DT_I32, 1), *none = prim_int(c, DT_I32, 0), *other;
    const Idx  *count = idx_load(A, state(s, COUNT), 0, s->room->hi);
    const Idx  *next = idx_load(A, state(s, COUNT), 0, s->room->hi - 1);
    const Atom *j = te_loop_var(c, "j", count);
    const Idx  *chosen = idx_atom(A, j);

    other = prim_load(c, s->list, &chosen);
    Box         a = box_at(s, at), b = box_at(s, te_index(c, other, s->boxes, INDEX_CLIP));
    const Stmt *compare = stmt_if(c, overlap(s, &a, &b), set_state(s, APART, none), NULL);
    const Stmt *put[] = {stmt_store(c, s->list, &next, box),
                         set_state(s, COUNT, prim_add(c, state(s, COUNT), one))};
    const Stmt *kids[] = {set_state(s, APART, one), loop_stmt(c, j, count, compare),
                          stmt_if(c, prim_eq(c, state(s, APART), one), stmt_seq(c, 2, put), NULL)};

    return stmt_seq(c, 3, kids);
}

bool te_non_max_suppression(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const NonMaxSuppressionAttrs *a = call->attrs;
    Arith                        *A = c->arith;
    const Type                   *t = call->out[0];
    const Idx  *two = idx_const(A, 2), *room = idx_max(A, a->room.at[0], idx_const(A, 1)), *at[3];
    const Idx  *boxes = call->in[0]->dims[1], *box;
    const Atom *var[2], *i = te_loop_var(c, "i", boxes), *k = te_loop_var(c, "k", t->dims[2]);
    const Prim *number, *more;
    Nms         s = {.c = c, .center = a->center, .in = in, .room = a->room.at[0]};

    out[0] = te_extern_out(c, "out", t);
    s.boxes = boxes;
    s.list = buffer_new(c, "list", DT_I32, SCOPE_PRIVATE, 1, &room);
    s.state = buffer_new(c, "state", DT_I32, SCOPE_PRIVATE, 1, &two);
    for (uint32_t d = 0; d < 2; d++) {
        var[d] = te_loop_var(c, d ? "c" : "n", t->dims[d]);
        at[d] = idx_atom(A, var[d]);
    }
    s.picture = at[0];
    const Stmt *body = stmt_seq(c, 0, NULL);

    if (s.room->hi > 0) {
        at[2] = idx_atom(A, i);
        box = te_index(c, te_at(c, in[2], at), boxes, INDEX_CLIP);
        number = prim_index(c, DT_I32, box);
        more = prim_and(c, prim_lt(c, state(&s, COUNT), prim_index(c, DT_I32, s.room)),
                        prim_lt(c, prim_cast(c, DT_I64, state(&s, COUNT)),
                                prim_cast(c, DT_I64, te_at(c, in[3], NULL))));
        body = consider(&s, number, box);
        at[2] = box;
        if (call->nin > 5)
            body = stmt_if(c, prim_lt(c, f32_of(&s, 5), prim_cast(c, DT_F32, te_at(c, in[1], at))),
                           body, NULL);
        body = loop_stmt(c, i, boxes, stmt_if(c, more, body, NULL));
        at[2] = idx_atom(A, k);
        number = prim_select(c, prim_lt(c, prim_index(c, DT_I32, at[2]), state(&s, COUNT)),
                             prim_load(c, s.list, &at[2]), prim_int(c, DT_I32, -1));
        const Stmt *kids[] = {
            set_state(&s, COUNT, prim_int(c, DT_I32, 0)), body,
            loop_stmt(c, k, t->dims[2],
                      stmt_store(c, out[0]->buffer, at, prim_cast(c, DT_I64, number)))};

        body = stmt_seq(c, 3, kids);
        for (uint32_t d = 2; d-- > 0;)
            body = loop_stmt(c, var[d], t->dims[d], body);
    }
    te_extern(c, call->nin, in, 1, out, stmt_alloc(c, s.list, stmt_alloc(c, s.state, body)));
    return true;
}
