/* Order along an axis: sort, argsort, topk.
 *
 *     %1 = topk(%0, k=5, axis=-1, dtype=i64);              // (values, indices)
 *
 * A statement of TIR: a stable merge sort of the positions of each row, bottom up, between two
 * buffers.  NaN comes after all numbers when ascending, before them when descending, as if it were
 * the largest.
 *
 *     pos[0][r] = r
 *     for each width w = 1, 2, 4, ..: for each pair of runs: merge from one buffer into the other
 *
 * Of a row without a limit there are widths for the longest that a run can have, two by two, of
 * which those are left out that such a row does not need.
 *
 * Where only the first k are asked for, no run is longer.  Few of many are kept in order instead:
 * a cell that does not come before the last of them costs one comparison.
 *
 *     for r < n { if r < k or %x[r] comes before the last: for j < k: exchange where it comes
 * before }
 *
 * More of them are a heap with the last on top, which a cell passes in log k steps; element and
 * position are one number, so a step is one comparison. */
#include "ops/reduce/sort.h"

#include <string.h>

/* ---- type relations ------------------------------------------------------------------------------ */

/* How rows are sorted. */
static bool rel_network(Ctx *c, Loc loc, const char *algorithm, int64_t chunk)
{
    if (!rel_algorithm(c, loc, algorithm, 1, (const char *[]){"network"}))
        return false;
    return chunk >= 0 || error_at(c, E_TYPE, loc, "chunks of %lld cells", (long long)chunk);
}

static bool rel_row(Ctx *c, Loc loc, const Type *const *in, uint32_t nin, int64_t axis, DType index,
                    const Idx **n)
{
    uint32_t at;

    if (!rel_tensors(c, loc, in, nin) || !rel_number(c, loc, in[0]) ||
        !rel_axis(c, loc, axis, in[0]->n, &at))
        return false;
    if (!dtype_is_int(index))
        return error_at(c, E_TYPE, loc, "indices of type %s", dtype_text(c, index));
    *n = in[0]->dims[at];
    if (idx_usual(*n) > 1 << 24)
        return error_at(c, E_TYPE, loc, "sorting rows of %s", dim_text(c, *n));
    return true;
}

const Type *rel_sort(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const SortAttrs *a = attrs;
    const Idx       *n;

    return rel_network(c, loc, a->algorithm, a->chunk) &&
                   rel_row(c, loc, in, nin, a->axis, DT_I32, &n)
               ? in[0]
               : NULL;
}

const Type *rel_argsort(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const SortAttrs *a = attrs;
    const Idx       *n;

    if (!rel_network(c, loc, a->algorithm, a->chunk) ||
        !rel_row(c, loc, in, nin, a->axis, a->dtype, &n))
        return NULL;
    return rel_tensor(c, loc, a->dtype, in[0]->n, in[0]->dims);
}

static bool wants(const TopKAttrs *a, const char *what)
{
    return !strcmp(a->ret_type, what) || !strcmp(a->ret_type, "both");
}

const Type *rel_topk(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const TopKAttrs *a = attrs;
    const Idx       *dims[TE_MAX_AXES], *n;

    if (!rel_network(c, loc, a->algorithm, a->chunk) ||
        !rel_row(c, loc, in, nin, a->axis, a->dtype, &n))
        return NULL;
    if (a->k < 0 || a->k > n->lo)
        return error_at(c, E_TYPE, loc, "the first %lld of %s", (long long)a->k, dim_text(c, n));
    if (!wants(a, "values") && !wants(a, "indices"))
        return error_at(c, E_TYPE, loc, "ret_type '%s' is not both, values or indices",
                        a->ret_type);
    for (uint32_t i = 0; i < in[0]->n; i++)
        dims[i] = i == axis_of(a->axis, in[0]->n) ? idx_const(c->arith, a->k) : in[0]->dims[i];
    const Type *fields[2] = {rel_tensor(c, loc, in[0]->dtype, in[0]->n, dims),
                             rel_tensor(c, loc, a->dtype, in[0]->n, dims)};

    if (!fields[0] || !fields[1])
        return NULL;
    if (!strcmp(a->ret_type, "both"))
        return type_tuple(c, 2, fields);
    return wants(a, "values") ? fields[0] : fields[1];
}

/* ---- the statement ------------------------------------------------------------------------------- */

enum {
    FEW = 64,
    MANY = 4,  /* kept in order: at most so many, of a row so many times as long */
    LIST = 16, /* a heap where more are wanted .. */
    HALF = 2   /* .. of a row so many times as long */
};

typedef struct {
    Ctx          *c;
    const Tensor *x;
    uint32_t      ndim, axis;
    const Idx    *cells;            /* of the row */
    int64_t       n, k;             /* the most of them; wanted */
    bool          ascend, open;     /* there is no most */
    const Atom   *var[TE_MAX_AXES]; /* of the row; [axis] unused */
    const Idx    *at[TE_MAX_AXES];
    const Buffer *pos[2]; /* i32[n]: positions, sorted in runs */
    const Buffer *cursor; /* i32[3]: next of the left and of the right run; a heap's, below */
    const Buffer *keys;   /* i64[k + 1]: a heap */
    const Buffer *best;   /* of the row's type: the first k in order, and two more */
} Sort;

static const Prim *cursor(const Sort *s, int side)
{
    const Idx *at = idx_const(s->c->arith, side);

    return prim_load(s->c, s->cursor, &at);
}

static const Stmt *set_cursor(const Sort *s, int side, const Prim *v)
{
    const Idx *at = idx_const(s->c->arith, side);

    return stmt_store(s->c, s->cursor, &at, v);
}

/* A number of a buffer that is known to lie in [0, n). */
static const Idx *as_index(const Sort *s, const Prim *load)
{
    return idx_load(s->c->arith, load, 0, s->n - 1);
}

/* The row's element at a position. */
static const Prim *element(const Sort *s, const Idx *position)
{
    const Idx *at[TE_MAX_AXES];

    memcpy(at, s->at, sizeof at);
    at[s->axis] = position;
    return te_at(s->c, s->x, at);
}

/* Must b come before a?  Strictly, so that equal elements keep their order. */
static const Prim *overtakes(const Sort *s, const Prim *a, const Prim *b)
{
    Ctx        *c = s->c;
    const Prim *before = s->ascend ? prim_lt(c, b, a) : prim_lt(c, a, b);

    if (!dtype_is_float(a->dtype))
        return before;
    const Prim *na = te_is_nan(c, a), *nb = te_is_nan(c, b);

    return prim_or(c, before,
                   s->ascend ? prim_and(c, na, prim_not(c, nb)) : prim_and(c, nb, prim_not(c, na)));
}

/* Merge pos[from][lo..left) and [mid..end) into the other buffer, for pair number `pair`. */
static const Stmt *merge(const Sort *s, int from, int64_t width, const Idx *pair)
{
    Ctx        *c = s->c;
    Arith      *A = c->arith;
    const Idx  *n = s->cells;
    const Idx  *lo = idx_mulc(A, pair, 2 * width);
    int64_t     run = width < s->k ? width : s->k, out = 2 * width < s->k ? 2 * width : s->k;
    const Idx  *mid = idx_min(A, idx_addc(A, lo, width), n);
    const Idx  *left_end = idx_min(A, idx_addc(A, lo, run), n);
    const Idx  *end = idx_min(A, idx_addc(A, lo, width + run), n);
    const Atom *t = te_loop_var(c, "t", idx_const(A, out));
    const Idx  *to = idx_add(A, lo, idx_atom(A, t));
    const Prim *i = cursor(s, 0), *j = cursor(s, 1);
    const Idx  *ii = as_index(s, i), *jj = as_index(s, j);
    const Prim *left = prim_load(c, s->pos[from], &ii), *right = prim_load(c, s->pos[from], &jj);
    const Prim *left_done = prim_le(c, prim_index(c, DT_I32, left_end), i);
    const Prim *right_done = prim_le(c, prim_index(c, DT_I32, end), j);
    const Prim *swap = overtakes(s, element(s, as_index(s, left)), element(s, as_index(s, right)));
    const Prim *one = prim_int(c, DT_I32, 1);

    /* A run that is used up is not read; ifs, because the cursor may stand past the row. */
    const Stmt *take_left[] = {stmt_store(c, s->pos[!from], &to, left),
                               set_cursor(s, 0, prim_add(c, i, one))};
    const Stmt *take_right[] = {stmt_store(c, s->pos[!from], &to, right),
                                set_cursor(s, 1, prim_add(c, j, one))};
    const Stmt *l = stmt_seq(c, 2, take_left), *r = stmt_seq(c, 2, take_right);
    const Stmt *step = stmt_if(c, left_done, r, stmt_if(c, right_done, l, stmt_if(c, swap, r, l)));
    Pred        within = pred_and(A, c->arena, PRED_TRUE, idx_addc(A, idx_sub(A, n, to), -1));

    if (within.n)
        step = stmt_if(c, pred_prim(c, within), step, NULL);
    const Stmt *kids[] = {set_cursor(s, 0, prim_index(c, DT_I32, lo)),
                          set_cursor(s, 1, prim_index(c, DT_I32, mid)),
                          loop_stmt(c, t, idx_const(A, out), step)};

    return stmt_seq(c, 3, kids);
}

/* All pairs of runs of a width. */
static const Stmt *merged(const Sort *s, int from, int64_t width)
{
    Ctx        *c = s->c;
    const Idx  *pairs = idx_divc(c->arith, idx_addc(c->arith, s->cells, 2 * width - 1), 2 * width);
    const Atom *pair = te_loop_var(c, "pair", pairs);

    return loop_stmt(c, pair, pairs, merge(s, from, width, idx_atom(c->arith, pair)));
}

/* Positions in order, in pos[*last]. */
static const Stmt *sorted(const Sort *s, int *last)
{
    Ctx        *c = s->c;
    const Idx  *n = s->cells;
    const Atom *r = te_loop_var(c, "r", n);
    const Idx  *at = idx_atom(c->arith, r);
    VEC(const Stmt *) stmts = {0};
    int from = 0;

    vec_push(c->scratch, &stmts,
             loop_stmt(c, r, n, stmt_store(c, s->pos[0], &at, prim_index(c, DT_I32, at))));
    for (int64_t width = 1; width < s->n; width *= s->open ? 4 : 2) {
        const Stmt *two[2] = {merged(s, from, width), merged(s, !from, 2 * width)};
        const Prim *more = prim_lt(c, prim_int(c, DT_I64, width), prim_index(c, DT_I64, n));

        vec_push(c->scratch, &stmts,
                 s->open ? stmt_if(c, more, stmt_seq(c, 2, two), NULL) : two[0]);
        from = s->open ? from : !from;
    }
    *last = from;
    return stmt_seq(c, stmts.n, stmts.at);
}

/* The element and its position that go through the list, and places of the list. */
typedef struct {
    const Prim *value, *position;
    const Idx  *at;
} Place;

static Place place(const Sort *s, const Idx *at)
{
    return (Place){prim_load(s->c, s->best, &at), prim_load(s->c, s->pos[0], &at), at};
}

static const Stmt *put(const Sort *s, const Place *to, const Place *what)
{
    const Stmt *kids[] = {stmt_store(s->c, s->best, &to->at, what->value),
                          stmt_store(s->c, s->pos[0], &to->at, what->position)};

    return stmt_seq(s->c, 2, kids);
}

/* Element r into the list of `n` cells in order: what it displaces goes on to the next cell.  The
 * list has two cells more, for what is carried and for exchanging. */
static const Stmt *insert(const Sort *s, const Idx *r, const Idx *n)
{
    Ctx        *c = s->c;
    Arith      *A = c->arith;
    const Atom *j = te_loop_var(c, "j", n);
    Place       here = place(s, idx_atom(A, j)), carried = place(s, idx_const(A, s->k));
    Place       spare = place(s, idx_const(A, s->k + 1));
    Place       element_r = {element(s, r), prim_index(c, DT_I32, r), NULL};
    const Stmt *exchange[] = {put(s, &spare, &here), put(s, &here, &carried),
                              put(s, &carried, &spare)};
    /* What was displaced comes before its equals, which it stood before. */
    const Prim *equal = prim_and(c, prim_lt(c, carried.position, here.position),
                                 prim_not(c, overtakes(s, carried.value, here.value)));
    const Prim *first = prim_or(c, overtakes(s, here.value, carried.value), equal);
    const Stmt *step = stmt_if(c, first, stmt_seq(c, 3, exchange), NULL);
    const Stmt *kids[] = {put(s, &carried, &element_r), loop_stmt(c, j, n, step)};

    return stmt_seq(c, 2, kids);
}

/* The first k in order, in best and pos[0]. */
static const Stmt *kept(const Sort *s)
{
    Ctx        *c = s->c;
    Arith      *A = c->arith;
    const Idx  *k = idx_const(A, s->k), *rest = idx_addc(A, s->cells, -s->k);
    const Atom *first = te_loop_var(c, "f", k), *more = te_loop_var(c, "r", rest);
    const Idx  *r0 = idx_atom(A, first), *r = idx_addc(A, idx_atom(A, more), s->k);
    Place       carried = place(s, k), next = place(s, r0), last = place(s, idx_const(A, s->k - 1));
    const Stmt *fill[] = {insert(s, r0, r0), put(s, &next, &carried)};
    const Prim *x = element(s, r);
    /* One comparison turns most away; NaN and the like pass it. */
    const Prim *behind = s->ascend ? prim_le(c, last.value, x) : prim_le(c, x, last.value);
    const Stmt *try = stmt_if(c, overtakes(s, last.value, x), insert(s, r, k), NULL);

    try = stmt_if(c, prim_not(c, behind), try, NULL);
    const Stmt *kids[] = {loop_stmt(c, first, k, stmt_seq(c, 2, fill)),
                          loop_stmt(c, more, rest, try)};

    return stmt_seq(c, 2, kids);
}

/* ---- keys ---------------------------------------------------------------------------------------- */

DType sort_key_type(DType t)
{
    if (dtype_is_float(t))
        return t.bits <= 32 ? DT_I32 : DT_I64;
    return t.bits < 32 ? DT_I32 : t;
}

/* Negative numbers of floats count backwards. */
const Prim *sort_key(Ctx *c, const Prim *x, bool ascend)
{
    DType       t = sort_key_type(x->dtype);
    const Prim *k = NULL;

    if (dtype_is_float(x->dtype)) {
        bool        narrow = dtype_eq(t, DT_I32);
        const DType f = narrow ? DT_F32 : DT_F64;

        x = prim_cast(c, f, x);
        const Prim *zero = prim_num(c, f, 0);
        const Prim *nan = prim_int(c, t, narrow ? 0x7fc00000 : 0x7ff8000000000000);
        const Prim *b = prim_bits(c, t, prim_select(c, prim_eq(c, x, zero), zero, x));
        const Prim *m = prim_bin(c, PRIM_SHR, b, prim_int(c, t, narrow ? 31 : 63));
        m = prim_bin(c, PRIM_AND, m, prim_int(c, t, narrow ? INT32_MAX : INT64_MAX));
        k = prim_select(c, te_is_nan(c, x), nan, prim_bin(c, PRIM_XOR, b, m));
    } else {
        k = prim_cast(c, t, x);
    }
    return ascend ? k : prim_bin(c, PRIM_XOR, k, prim_int(c, t, -1));
}

/* ---- a heap of the first k ----------------------------------------------------------------------- */

/* A number whose order is that of the elements in a row: the element's key in the upper half, its
 * position in the lower. */
static const Prim *key_of(const Sort *s, const Idx *r)
{
    Ctx        *c = s->c;
    const Prim *k = sort_key(c, element(s, r), s->ascend);

    k = prim_bin(c, PRIM_SHL, prim_cast(c, DT_I64, k), prim_int(c, DT_I64, 32));
    return prim_bin(c, PRIM_OR, k, prim_index(c, DT_I64, r));
}

/* Can an element be a key's upper half? */
static bool has_key(DType t)
{
    return dtype_eq(sort_key_type(t), DT_I32);
}

static const Prim *key_at(const Sort *s, const Idx *i)
{
    return prim_load(s->c, s->keys, &i);
}

static const Stmt *swap_keys(const Sort *s, const Idx *a, const Idx *b)
{
    const Idx  *spare = idx_const(s->c->arith, s->k);
    const Stmt *kids[] = {stmt_store(s->c, s->keys, &spare, key_at(s, a)),
                          stmt_store(s->c, s->keys, &a, key_at(s, b)),
                          stmt_store(s->c, s->keys, &b, key_at(s, spare))};

    return stmt_seq(s->c, 3, kids);
}

/* keys[start] down to its place among the first `end`: no child is above its parent. */
static const Stmt *sift(const Sort *s, const Idx *start, const Idx *end)
{
    Ctx        *c = s->c;
    Arith      *A = c->arith;
    int64_t     levels = 0;
    const Prim *one = prim_int(c, DT_I32, 1), *stop = prim_index(c, DT_I32, end);
    const Prim *child = cursor(s, 1), *next = prim_add(c, child, one);
    const Idx *at = idx_load(A, cursor(s, 0), 0, s->k - 1), *down = idx_load(A, child, 0, s->k - 1);

    while (s->k >> levels)
        levels++;
    const Stmt *larger = stmt_if(c, prim_lt(c, key_at(s, down), key_at(s, idx_addc(A, down, 1))),
                                 set_cursor(s, 1, next), NULL);
    const Stmt *move[] = {swap_keys(s, at, down), set_cursor(s, 0, child)};
    const Stmt *fits[] = {stmt_if(c, prim_lt(c, next, stop), larger, NULL),
                          stmt_if(c, prim_lt(c, key_at(s, at), key_at(s, down)),
                                  stmt_seq(c, 2, move),
                                  set_cursor(s, 0, prim_int(c, DT_I32, s->k)))};
    const Stmt *step[] = {
        set_cursor(s, 1, prim_add(c, prim_add(c, cursor(s, 0), cursor(s, 0)), one)),
        stmt_if(c, prim_lt(c, child, stop), stmt_seq(c, 2, fits), NULL)};
    const Atom *level = te_loop_var(c, "level", idx_const(A, levels));
    const Stmt *kids[] = {set_cursor(s, 0, prim_index(c, DT_I32, start)),
                          loop_stmt(c, level, idx_const(A, levels), stmt_seq(c, 2, step))};

    return stmt_seq(c, 2, kids);
}

static const Prim *key_position(const Sort *s, const Prim *key)
{
    Ctx *c = s->c;

    return prim_cast(c, DT_I32, prim_bin(c, PRIM_AND, key, prim_int(c, DT_I64, (1 << 24) - 1)));
}

/* The last of the list, to compare with: best[0]. */
static const Stmt *note_last(const Sort *s)
{
    Ctx        *c = s->c;
    const Idx  *zero = idx_const(c->arith, 0);
    const Stmt *kids[] = {set_cursor(s, 2, key_position(s, key_at(s, zero))),
                          stmt_store(c, s->best, &zero, element(s, as_index(s, cursor(s, 2))))};

    return stmt_seq(c, 2, kids);
}

/* Positions of the first k in order, in pos[0]. */
static const Stmt *heaped(const Sort *s)
{
    Ctx       *c = s->c;
    Arith     *A = c->arith;
    const Idx *k = idx_const(A, s->k), *zero = idx_const(A, 0),
              *rest = idx_addc(A, s->cells, -s->k);
    const Idx  *half = idx_const(A, s->k / 2), *sorts = idx_const(A, s->k - 1);
    const Atom *fill = te_loop_var(c, "f", k), *build = te_loop_var(c, "b", half);
    const Atom *more = te_loop_var(c, "r", rest), *sort = te_loop_var(c, "s", sorts);
    const Atom *out = te_loop_var(c, "o", k);
    const Idx  *f = idx_atom(A, fill), *o = idx_atom(A, out);
    const Idx  *r = idx_addc(A, idx_atom(A, more), s->k);
    const Idx  *parent = idx_sub(A, idx_const(A, s->k / 2 - 1), idx_atom(A, build));
    const Idx  *end = idx_sub(A, idx_const(A, s->k - 1), idx_atom(A, sort));
    const Prim *x = element(s, r), *last = prim_load(c, s->best, &zero);
    const Prim *behind = s->ascend ? prim_le(c, last, x) : prim_le(c, x, last);
    /* One comparison turns most away; NaN and the like pass it. */
    const Stmt *enter[] = {stmt_store(c, s->keys, &zero, key_of(s, r)), sift(s, zero, k),
                           note_last(s)};
    const Stmt *take[] = {swap_keys(s, zero, end), sift(s, zero, end)};
    const Stmt *try =
        stmt_if(c, prim_lt(c, key_of(s, r), key_at(s, zero)), stmt_seq(c, 3, enter), NULL);
    const Stmt *kids[] = {
        loop_stmt(c, fill, k, stmt_store(c, s->keys, &f, key_of(s, f))),
        loop_stmt(c, build, half, sift(s, parent, k)),
        note_last(s),
        loop_stmt(c, more, rest, stmt_if(c, prim_not(c, behind), try, NULL)),
        loop_stmt(c, sort, sorts, stmt_seq(c, 2, take)),
        loop_stmt(c, out, k, stmt_store(c, s->pos[0], &o, key_position(s, key_at(s, o))))};

    return stmt_seq(c, 6, kids);
}

/* One cell after the other. */
static void sort_in_order(Ctx *c, const SortRows *rows, const Tensor **out)
{
    const Type *t = rows->type;
    const Idx  *wanted = rows->wanted;
    Sort s = {.c = c, .x = rows->x, .ndim = t->n, .axis = rows->axis, .ascend = rows->ascend};
    const Tensor *values = NULL, *indices = NULL;
    const Idx    *three = idx_const(c->arith, 3), *at[TE_MAX_AXES];
    VEC(const Stmt *) stores = {0};
    uint32_t nouts = 0;
    int      last = 0;

    int64_t k = wanted->hi;

    if (rows->values)
        values = out[nouts++] = te_extern_out(c, rows->value_name, rows->values);
    if (rows->indices)
        indices = out[nouts++] = te_extern_out(c, rows->index_name, rows->indices);

    s.cells = t->dims[s.axis];
    s.n = s.cells->hi;
    s.k = k > 0 ? k : 1;
    s.open = idx_is_open(s.cells);
    bool heap = !s.open && k > LIST && s.n / k >= HALF && has_key(t->dtype);
    bool few = !heap && k > 0 && k <= FEW && idx_usual(s.cells) / k >= MANY;
    for (uint32_t i = 0; i < t->n; i++) {
        s.var[i] = te_loop_var(c, "i", t->dims[i]);
        s.at[i] = idx_atom(c->arith, s.var[i]);
    }
    const Idx *cells = few || heap ? idx_const(c->arith, k + 2)
                       : s.open    ? s.cells
                                   : idx_const(c->arith, s.n);
    s.pos[0] = buffer_new(c, intern(c->strings, "pos0"), DT_I32, SCOPE_PRIVATE, 1, &cells);
    s.pos[1] = buffer_new(c, intern(c->strings, "pos1"), DT_I32, SCOPE_PRIVATE, 1, &cells);
    s.cursor = buffer_new(c, intern(c->strings, "cursor"), DT_I32, SCOPE_PRIVATE, 1, &three);
    s.best = buffer_new(c, intern(c->strings, "best"), t->dtype, SCOPE_PRIVATE, 1, &cells);

    s.keys = buffer_new(c, intern(c->strings, "keys"), DT_I64, SCOPE_PRIVATE, 1, &cells);

    const Stmt *order = heap ? heaped(&s) : few ? kept(&s) : sorted(&s, &last);
    const Atom *r = te_loop_var(c, "r", wanted);
    const Idx  *rank = idx_atom(c->arith, r);
    const Prim *position = prim_load(c, s.pos[last], &rank);

    memcpy(at, s.at, sizeof at);
    at[s.axis] = rank;
    if (values)
        vec_push(
            c->scratch, &stores,
            stmt_store(c, values->buffer, at,
                       few ? prim_load(c, s.best, &rank) : element(&s, as_index(&s, position))));
    if (indices)
        vec_push(
            c->scratch, &stores,
            stmt_store(c, indices->buffer, at, prim_cast(c, indices->buffer->dtype, position)));
    const Stmt *kids[] = {order, loop_stmt(c, r, wanted, stmt_seq(c, stores.n, stores.at))};
    const Stmt *body = s.n ? stmt_seq(c, 2, kids) : stmt_seq(c, 0, NULL);

    for (uint32_t i = t->n; i-- > 0;)
        if (i != s.axis)
            body = loop_stmt(c, s.var[i], t->dims[i], body);
    if (few || heap)
        body = stmt_alloc(c, s.best, body);
    else
        body = stmt_alloc(c, s.pos[1], body);
    if (heap)
        body = stmt_alloc(c, s.keys, body);
    if (!few)
        body = stmt_alloc(c, s.cursor, body);
    body = stmt_alloc(c, s.pos[0], body);
    te_extern(c, 1, &rows->x, nouts, out, body);
}

/* ---- compute ------------------------------------------------------------------------------------- */

static bool sort_rows(Ctx *c, const SortRows *s, const char *algorithm, int64_t chunk,
                      const Tensor **out)
{
    if (strcmp(algorithm, "network") != 0 || !sort_by_network(c, s, chunk, out))
        sort_in_order(c, s, out);
    return true;
}

static SortRows all_of(const OpCall *call, const Tensor *x, const SortAttrs *a)
{
    const Type *t = call->in[0];
    uint32_t    axis = axis_of(a->axis, t->n);

    return (SortRows){.type = t,
                      .x = x,
                      .axis = axis,
                      .wanted = t->dims[axis],
                      .ascend = a->is_ascend,
                      .value_name = "out",
                      .index_name = "out"};
}

bool te_sort(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const SortAttrs *a = call->attrs;
    SortRows         s = all_of(call, in[0], a);

    s.values = call->out[0];
    return sort_rows(c, &s, a->algorithm, a->chunk, out);
}

bool te_argsort(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const SortAttrs *a = call->attrs;
    SortRows         s = all_of(call, in[0], a);

    s.indices = call->out[0];
    return sort_rows(c, &s, a->algorithm, a->chunk, out);
}

bool te_topk(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const TopKAttrs *a = call->attrs;
    const Type      *t = call->in[0];
    SortRows         s = {.type = t,
                          .x = in[0],
                          .axis = axis_of(a->axis, t->n),
                          .wanted = idx_const(c->arith, a->k),
                          .ascend = a->is_ascend,
                          .value_name = "values",
                          .index_name = "indices"};
    uint32_t         n = 0;

    if (wants(a, "values"))
        s.values = call->out[n++];
    if (wants(a, "indices"))
        s.indices = call->out[n];
    return sort_rows(c, &s, a->algorithm, a->chunk, out);
}
