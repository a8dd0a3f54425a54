/* What a function does with matrices of scope frag: where each lies in memory is read off what
 * thread (x, y) loads and stores of it, in line y from piece x on. */
#include "backends/common/matrices.h"

struct Matrices {
    Ctx        *c;
    const Func *f;
    const Idx  *axis[AXIS_COUNT];
    Map        *row, *of; /* buffer's id -> its instruction; which operand of it, plus 1 */
    Map        *op;       /* store -> MatrixOp */
    bool        failed;
};

typedef struct {
    const LoopData *thread[2]; /* of x and y, around what is looked at */
    bool            together;  /* all threads of a warp come to it */
} Place;

const Intrin *matrix_row(const Matrices *m, const Buffer *b, Matrix *of)
{
    *of = (Matrix)((uintptr_t)map_get(m->of, b->id) - 1);
    return map_get(m->row, b->id);
}

bool has_matrices(const Matrices *m)
{
    return map_count(m->row) > 0;
}

/* Numbers that a thread has of a matrix. */
static int64_t own_numbers(const Intrin *row, Matrix of)
{
    int64_t pieces = warp_pieces(row->warp, of);

    return of == MATRIX_C
               ? pieces
               : pieces * warp_piece_bytes(row, of) / dtype_bytes(row->operand[of].dtype);
}

int64_t matrix_count(const Matrices *m, const Buffer *b)
{
    int64_t       numbers = 0;
    Matrix        of;
    const Intrin *row = matrix_row(m, b, &of);

    idx_is_const(b->extent[0], &numbers);
    return numbers / own_numbers(row, of);
}

const MatrixOp *matrix_op(const Matrices *m, const StoreData *d)
{
    return map_get(m->op, (uint64_t)(uintptr_t)d);
}

static bool find_buffer(void *user, const Stmt *s)
{
    bool *found = user;

    *found = *found || (s->kind == STMT_ALLOC && s->u.buffer->scope == SCOPE_FRAG);
    return !*found;
}

bool uses_matrices(const Func *f)
{
    bool found = false;

    stmt_visit(f->body, &(TirVisit){.user = &found, .enter = find_buffer});
    return found;
}

/* ---- which matrices there are -------------------------------------------------------------------- */

static void note(Matrices *m, const Buffer *b, const Intrin *row, Matrix of)
{
    map_put(m->row, b->id, (void *)(uintptr_t)row);
    map_put(m->of, b->id, (void *)(uintptr_t)(of + 1));
}

static bool find_product(void *user, const Stmt *s)
{
    Matrices *m = user;

    if (!is_warp_store(s) || !s->u.store.value->u.intrin->warp->opaque)
        return true;
    const Prim *p = s->u.store.value;
    for (uint32_t i = MATRIX_A; i <= MATRIX_B; i++)
        note(m, p->kids[i]->u.load.buffer, p->u.intrin, (Matrix)i);
    note(m, s->u.store.buffer, p->u.intrin, MATRIX_C);
    return true;
}

/* ---- what is done with them ---------------------------------------------------------------------- */

/* The matrix whose part those cells are. */
static bool whole(const Matrices *m, const Buffer *b, const Idx *at, uint32_t lanes, MatrixRef *out)
{
    int64_t       first;
    Matrix        of;
    const Intrin *row = matrix_row(m, b, &of);

    if (!row || !idx_is_const(at, &first) || lanes != own_numbers(row, of) || first % lanes)
        return false;
    *out = (MatrixRef){b, first / lanes};
    return true;
}

/* The place of what thread (x, y) moves. */
static const Idx *place_of(const Matrices *m, const Place *p, const Idx *at, int64_t x, int64_t y)
{
    Arith    *A = m->c->arith;
    IdxSubst *sub = subst_new(A, m->c->scratch);

    subst_bind(sub, p->thread[0]->var, idx_const(A, x));
    subst_bind(sub, p->thread[1]->var, idx_const(A, y));
    return idx_subst(sub, at);
}

/* Lines lie equally far apart, and pieces of a line side by side. */
static bool find_lines(const Matrices *m, const Place *p, const Idx *at, int64_t own,
                       const WarpLayout *l, MatrixOp *out)
{
    Arith  *A = m->c->arith;
    int64_t step, last;

    out->first = place_of(m, p, at, 0, 0);
    return idx_is_const(idx_sub(A, place_of(m, p, at, 0, 1), out->first), &out->apart) &&
           idx_is_const(idx_sub(A, place_of(m, p, at, 1, 0), out->first), &step) && step == own &&
           idx_is_const(idx_sub(A, place_of(m, p, at, l->x - 1, l->y - 1), out->first), &last) &&
           last == (l->x - 1) * own + (l->y - 1) * out->apart;
}

/* All threads of the block along that axis, which are those of a warp. */
static bool is_thread(const Matrices *m, const LoopData *l, int64_t threads)
{
    int64_t lo, n;

    return l && idx_is_const(l->lo, &lo) && lo == 0 && l->extent == m->axis[l->bind] &&
           idx_is_const(l->extent, &n) && n == threads;
}

static bool moves(const Matrices *m, const Place *p, const Buffer *memory, const Idx *at,
                  MatrixOp *op)
{
    Matrix        of;
    const Intrin *row = matrix_row(m, op->it.buffer, &of);

    op->memory = memory;
    return p->together && memory->scope == SCOPE_SHARED && memory->ndim == 1 &&
           is_thread(m, p->thread[0], row->warp->x) && is_thread(m, p->thread[1], row->warp->y) &&
           find_lines(m, p, at, own_numbers(row, of), row->warp, op);
}

static bool factors(const Matrices *m, const Prim *p, MatrixOp *op)
{
    op->kind = MATRIX_MULTIPLY;
    for (uint32_t i = MATRIX_A; i <= MATRIX_B; i++) {
        const Prim *k = p->kids[i];
        if (k->kind != PRIM_LOAD ||
            !whole(m, k->u.load.buffer, k->u.load.index[0], k->dtype.lanes, &op->factor[i]))
            return false;
    }
    return true;
}

static bool find_op(const Matrices *m, const Place *p, const StoreData *d, MatrixOp *op)
{
    const Prim     *v = d->value;
    const LoadData *from = &v->u.load;

    if (d->mask || d->n != 1)
        return false;
    if (d->buffer->scope != SCOPE_FRAG) {
        op->kind = MATRIX_STORE;
        return !from->mask && whole(m, from->buffer, from->index[0], v->dtype.lanes, &op->it) &&
               moves(m, p, d->buffer, d->index[0], op);
    }
    if (!whole(m, d->buffer, d->index[0], v->dtype.lanes, &op->it))
        return false;
    if (v->kind == PRIM_INTRIN)
        return p->together && factors(m, v, op);
    if (v->kind == PRIM_LOAD) {
        op->kind = MATRIX_LOAD;
        return !from->mask && from->n == 1 && moves(m, p, from->buffer, from->index[0], op);
    }
    op->kind = MATRIX_FILL;
    op->value = v->kind == PRIM_SPLAT ? v->kids[0] : NULL; /* that all cells get */
    return p->together && op->value;
}

typedef struct {
    const Matrices *m;
    const Place    *p;
    const Buffer   *matrix; /* that is read */
    bool            loads, parts;
} Look;

static void look_prim(void *user, const Prim *p)
{
    Look *l = user;

    l->loads = l->loads || p->kind == PRIM_LOAD;
    if (p->kind == PRIM_LOAD && p->u.load.buffer->scope == SCOPE_FRAG)
        l->matrix = p->u.load.buffer;
}

static void look_idx(void *user, const Idx *i)
{
    Look *l = user;

    for (uint32_t a = 0; a < COUNT(l->p->thread); a++)
        l->parts = l->parts || (l->p->thread[a] && idx_uses(i, l->p->thread[a]->var));
}

static void fail(Matrices *m, Loc loc, const Buffer *b)
{
    if (!m->failed) {
        error_at(m->c, E_CODEGEN, loc,
                 "@%s: %%%s holds matrices, of which threads see no part: they are filled, loaded, "
                 "multiplied and stored whole",
                 m->f->name, b->name);
        diag_hint(m->c->diags, "store the sums by way of shared memory: `cache_write .. shared`");
    }
    m->failed = true;
}

static void see_store(Matrices *m, const Stmt *s, const Place *p)
{
    const StoreData *d = &s->u.store;
    MatrixOp         op = {0};
    Look             l = {.m = m, .p = p};

    if (is_matrix_store(d)) {
        if (find_op(m, p, d, &op))
            map_put(m->op, (uint64_t)(uintptr_t)d, DUP_ARRAY(m->c->arena, &op, 1));
        else
            fail(m, s->loc, d->buffer->scope == SCOPE_FRAG ? d->buffer : d->value->u.load.buffer);
        return;
    }
    prim_visit(d->value, &(TirVisit){.user = &l, .prim = look_prim});
    if (l.matrix)
        fail(m, s->loc, l.matrix);
}

static void see(Matrices *m, const Stmt *s, Place p)
{
    if (s->kind == STMT_STORE) {
        see_store(m, s, &p);
        return;
    }
    if (s->kind == STMT_FOR && (s->u.loop.bind == AXIS_THREAD_X || s->u.loop.bind == AXIS_THREAD_Y))
        p.thread[s->u.loop.bind - AXIS_THREAD_X] = &s->u.loop;
    if (s->kind == STMT_IF || s->kind == STMT_WHILE || s->kind == STMT_FOR) {
        Look     l = {.m = m, .p = &p};
        TirVisit v = {.user = &l, .prim = look_prim, .idx = look_idx};
        if (s->kind == STMT_FOR) {
            idx_visit(s->u.loop.lo, &v);
            idx_visit(s->u.loop.extent, &v);
        } else {
            prim_visit(s->u.cond, &v);
        }
        p.together = p.together && !l.parts && !l.loads; /* which may differ by thread */
    }
    for (uint32_t i = 0; i < s->nkids; i++)
        see(m, s->kids[i], p);
}

const Matrices *find_matrices(Ctx *c, const Func *f)
{
    Matrices *m = NEW(c->arena, Matrices);

    *m = (Matrices){
        .c = c, .f = f, .row = map_new(c->arena), .of = map_new(c->arena), .op = map_new(c->arena)};
    func_axes(c, f, m->axis);
    stmt_visit(f->body, &(TirVisit){.user = m, .enter = find_product});
    see(m, f->body, (Place){.together = true});
    return m->failed ? NULL : m;
}
