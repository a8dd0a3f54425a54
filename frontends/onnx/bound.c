/* Sizes that values of the run decide (docs/design/shapes.md).
 *
 *     y = Slice(x, [0], k)
 *
 *     let %y.0 = bind_dims(minimum(maximum(%k, 0), 24), dims=[y_0]);
 *     strided_slice(%x, begin=[0], end=[y_0])
 *
 * A converter computes such a size as a cell of i64, with operators of the graph, and asks for the
 * dimension.  Its bounds are what the converter proves and what --dim says of it; else the model
 * may declare a number, which the cell then has to be, or it is as large as the largest dimension
 * in sight, with a warning.  Equal cells are one dimension. What was bound stands around what is
 * made of it as `let`, in the order of the nodes. */
#include "frontends/onnx/onnx.h"

#include <string.h>

/* ---- cells ------------------------------------------------------------------------------------ */

bool node_constant(const Node *n, uint32_t i)
{
    return !node_has(n, i) || build_fold(&n->b, n->in[i]);
}

bool node_known(const Node *n, uint32_t i)
{
    Dims forms;

    return node_constant(n, i) ||
           (map_get(n->im->sizes, PTR_KEY(n->in[i])) && build_forms(&n->b, n->in[i], &forms));
}

const Expr *node_cells(Node *n, uint32_t i)
{
    int64_t cells;

    if (!node_need_rank(n, i, 0, 1))
        return NULL;
    if (!type_elems(n->in[i]->type, &cells))
        return node_error(n, E_UNSUPPORTED, "input %u ('%s') has no fixed number of cells", i,
                          n->p->input.at[i]);
    return build_reshape(&n->b, build_cast(&n->b, n->in[i], DT_I64), 1, &cells);
}

const Expr *cell_of(const Build *b, const Expr *cells, uint32_t i)
{
    return build_slice(b, cells, 0, i, (int64_t)i + 1);
}

const Expr *cell_form(const Build *b, const Idx *x)
{
    int64_t one = 1;

    return build_values(b, type_tensor_i64(b->c, DT_I64, 1, &one), (Dims){1, &x});
}

const Expr *cell_f64(const Build *b, const Idx *x)
{
    return build_cast(b, cell_form(b, x), DT_F64);
}

const Expr *cell_number(const Build *b, int64_t v)
{
    return build_i64s(b, 1, &v);
}

const Expr *cell_clamp(const Build *b, const Expr *x, const Expr *lo, const Expr *hi)
{
    return build2(b, "maximum", lo, build2(b, "minimum", x, hi, NULL), NULL);
}

/* ---- dimensions ------------------------------------------------------------------------------- */

/* A dimension with a name of its own. */
static const Idx *new_dim(Import *im, const char *name, int64_t lo, const Idx *most)
{
    Ctx *c = im->c;

    for (;; name = arena_printf(c->arena, "%s_", name)) {
        const Idx  *x = dim_within(c, name, lo, most);
        const Atom *a;

        if (!idx_is_atom(x, &a))
            return x;
        if (map_get(im->dim_names, PTR_KEY(a->name)))
            continue;
        map_put(im->dim_names, PTR_KEY(a->name), im);
        return x;
    }
}

typedef struct {
    const Import *im;
    AtomSet      *in;
} Decided;

static void look(void *user, const Atom *dim)
{
    const Import **im = user;

    if (*im && map_get((*im)->decided, PTR_KEY(dim)))
        *im = NULL;
}

bool onnx_decided(const Import *im, const Idx *x)
{
    form_mentions(x, look, &im);
    return !im;
}

void onnx_note_dim(void *user, const Atom *dim)
{
    Import *im = user;

    map_put(im->dim_names, PTR_KEY(dim->name), im);
}

/* Dimension `at` of output `out` as the model declares it, or NULL. */
static const OnnxDim *declared(const Node *n, uint32_t out, uint32_t at)
{
    const char           *name = intern(n->b.c->strings, n->p->output.at[out]);
    const OnnxTensorType *t = map_get(n->scope->declared, PTR_KEY(name));

    return t && t->shape && at < t->shape->dims.n ? t->shape->dims.at[at] : NULL;
}

int64_t node_declared(const Node *n, uint32_t out, uint32_t at)
{
    const OnnxDim *d = out < n->nout ? declared(n, out, at) : NULL;

    return d && d->has_value ? d->value : -1;
}

static void add_decided(void *user, const Atom *dim)
{
    Decided *d = user;

    if (map_get(d->im->decided, PTR_KEY(dim)))
        atomset_add(d->in, dim);
}

const Idx *onnx_most(const Import *im, const Idx *x)
{
    Decided    d = {im, atomset_new(im->c->scratch)};
    const Idx *most = x;

    if (idx_is_open(x)) {
        form_mentions(x, add_decided, &d);
        most = idx_most(im->c->arith, x, d.in);
    }
    return idx_is_open(most) ? most : idx_const(im->c->arith, most->hi);
}

static const Idx *larger_of_dims(const Import *im, const Idx *most, const Expr *x)
{
    for (uint32_t k = 0; x && expr_has_shape(x) && k < expr_rank(x); k++)
        if (expr_is_tensor(x) || idx_is_open(expr_form(x, k)))
            most = idx_max(im->c->arith, most, onnx_most(im, expr_form(x, k)));
    return most;
}

/* The largest dimension of the model's inputs and outputs, and of what the node works on. */
static const Idx *largest_in_sight(const Node *n)
{
    const Import    *im = n->im;
    const OnnxGraph *g = im->model->graph;
    const OnnxScope *all = n->scope;
    Arith           *A = im->c->arith;
    const Idx       *largest;
    int64_t          most = 1;

    for (uint32_t side = 0; side < 2; side++) {
        const PbMsgs *values = side ? &g->output : &g->input;

        for (uint32_t i = 0; i < values->n; i++) {
            const OnnxValue *v = values->at[i];
            const OnnxShape *shape = v->type && v->type->tensor ? v->type->tensor->shape : NULL;

            for (uint32_t k = 0; shape && k < shape->dims.n; k++) {
                const OnnxDim *d = shape->dims.at[k];

                most = d->has_value && d->value > most ? d->value : most;
            }
        }
    }
    for (uint32_t i = 0; i < im->shapes->dims.n; i++) {
        const Idx *dim = im->shapes->dims.at[i].value;

        if (!idx_is_open(dim)) /* of these only what an input has is known to a run */
            most = dim->hi > most ? dim->hi : most;
    }
    largest = idx_const(A, most);
    while (all->up)
        all = all->up;
    for (uint32_t i = 0; i < g->input.n; i++) {
        const OnnxValue *v = g->input.at[i];
        const char      *name = intern(im->c->strings, v->name);

        largest = larger_of_dims(im, largest, map_get(all->values, PTR_KEY(name)));
    }
    for (uint32_t i = 0; i < n->nin; i++)
        largest = larger_of_dims(im, largest, n->in[i]);
    return largest;
}

typedef struct {
    const char *name;
    int64_t     lo;
    const Idx  *most;    /* onnx_most */
    bool        guessed; /* nothing says what they are */
} Bounds;

/* The bounds of what the run decides, so that dimension d->at of the output is d->times as much. */
static bool find_bounds(Node *n, uint32_t out, const RunDim *d, Bounds *r)
{
    const OnnxDim *said = declared(n, out, d->at);
    const char    *place = arena_printf(n->b.c->arena, "%s.%u", n->p->output.at[out], d->at);
    const Idx     *proved = d->most ? onnx_most(n->im, d->most) : NULL;
    Arith         *A = n->b.c->arith;
    int64_t        low = d->lo, high = INT64_MAX, most;
    bool           named = said && !said->has_value && !shapes_placeholder(said->param), given;

    if (proved && idx_is_const(proved, &most) && d->lo == most) {
        *r = (Bounds){"", d->lo, proved, false}; /* it is no dimension, but has to be that */
        return true;
    }
    r->name = named ? said->param : place;
    given = (named && shapes_given(n->im->shapes, said->param, &low, &high)) ||
            shapes_given(n->im->shapes, place, &low, &high);
    if (!given && !proved && said && said->has_value && said->value % d->times == 0)
        low = high = said->value / d->times;
    else if (!given && !proved)
        given = shapes_given(n->im->shapes, "*", &low, &high);
    r->lo = low > d->lo ? low : d->lo;
    r->guessed = !proved && high >= DIM_OPEN;
    r->most = proved && proved->hi <= high ? proved : idx_const(A, high);
    if (proved && idx_is_open(proved) && high >= DIM_OPEN)
        r->most = proved;
    if (r->guessed) {
        const Idx *large = idx_divc(A, idx_addc(A, largest_in_sight(n), d->times - 1), d->times);
        if (!given || idx_is_open(large))
            r->most = large->hi > r->lo ? large : idx_const(A, r->lo + 1);
    }
    if (r->most->hi >= DIM_OPEN && !idx_is_open(r->most)) {
        node_error(n, E_DIM,
                   "values of the run decide dimension %u of output '%s', which has no upper bound",
                   d->at, n->p->output.at[out]);
        diag_hint(n->b.c->diags, "give it one, such as --dim %s=%lld..4096", r->name,
                  (long long)r->lo);
        return false;
    }
    if (r->lo > r->most->hi || !checked_mul(idx_usual(r->most), d->times, &most) ||
        most > MAX_ELEMS)
        return node_error(n, E_DIM, "dimension %u of output '%s' cannot be %lld to %lld", d->at,
                          n->p->output.at[out], (long long)low,
                          (long long)(high < INT64_MAX ? high : r->most->hi));
    return true;
}

/* Once, however often the body of a loop is converted. */
static void say_guess(const Node *n, uint32_t out, const RunDim *d, const Bounds *r)
{
    const char *place = intern_printf(n->b.c->strings, "%s.%u", n->p->output.at[out], d->at);

    if (map_get(n->im->guessed, PTR_KEY(place)))
        return;
    map_put(n->im->guessed, PTR_KEY(place), n->im);
    diag_warn(n->b.c->diags, W_DIM_BOUND, n->b.loc,
              "%s '%s': values of the run decide dimension %u of output '%s': at most %s is taken",
              n->p->op_type, onnx_node_name(n->p), d->at, n->p->output.at[out],
              dim_text(n->b.c, r->most));
    diag_hint(n->b.c->diags, "--dim %s=%lld..%lld says what it may be", r->name, (long long)r->lo,
              (long long)idx_usual(r->most));
}

/* Variables of one type hash alike; these, which nothing binds before the end, each have a hash of
 * their own, so that the same of many of them is found at once. */
const Expr *onnx_var(Import *im, const char *name, const Type *type, Loc loc)
{
    const Expr *v = expr_var(im->c, name, type, loc);
    uint64_t   *h = NEW(im->c->arena, uint64_t);

    *h = hash_mix(EXPR_VAR, ++im->vars);
    map_put(im->hashes, PTR_KEY(v), h);
    return v;
}

/* Is dim never more than that? */
static bool keeps_to(const Node *n, const Idx *dim, const Bounds *r)
{
    return dim->lo >= r->lo &&
           (r->guessed || dim->hi <= r->most->hi || idx_sub(n->b.c->arith, r->most, dim)->lo >= 0);
}

/* A cell that was bound, as one of those of im->binds.at[bind], if that is still `call`: what a
 * branch or a loop bound is gone after it. */
typedef struct BoundCell BoundCell;
struct BoundCell {
    BoundCell  *before; /* with the same hash */
    const Expr *cell, *call;
    const Idx  *dim;
    uint32_t    bind;
};

/* The dimension that stands for an equal cell already, if it keeps these bounds; or NULL. */
static const Idx *bound_already(const Node *n, const Expr *cell, const Bounds *r)
{
    const Import    *im = n->im;
    const BoundCell *x = map_get(im->cells, expr_hash(n->b.c, cell, im->hashes));

    for (; x; x = x->before)
        if (x->bind < im->binds.n && im->binds.at[x->bind] == x->call && keeps_to(n, x->dim, r) &&
            expr_same(n->b.c, cell, x->cell))
            return x->dim;
    return NULL;
}

static void note_bound(Import *im, const Expr *call, uint32_t n, const Expr *const *cells,
                       const Idx *const *dims)
{
    for (uint32_t i = 0; i < n; i++) {
        uint64_t   hash = expr_hash(im->c, cells[i], im->hashes);
        BoundCell *x = NEW(im->c->arena, BoundCell);

        *x = (BoundCell){map_get(im->cells, hash), cells[i], call, dims[i], im->binds.n};
        map_put(im->cells, hash, x);
    }
    vec_push(im->c->arena, &im->binds, call);
}

/* What a cell comes to, if that is known when compiling; or NULL. */
static const Idx *known_form(const Build *b, const Expr *cell)
{
    const Expr *k;
    Dims        d;
    Ints        v;

    if (build_forms(b, cell, &d))
        return d.at[0];
    return (k = build_fold(b, cell)) && expr_ints(b->c, k, &v) ? idx_const(b->c->arith, v.at[0])
                                                               : NULL;
}

static bool may_be(const Idx *x, int64_t v)
{
    return x->lo <= v && v <= x->hi;
}

bool onnx_bind(Node *n, uint32_t out, uint32_t count, const RunDim *d, const Idx **dims)
{
    const Build *b = &n->b;
    const Expr **cells = NEW_ARRAY(b->c->arena, const Expr *, count + 1), *call;
    const Idx  **bound = NEW_ARRAY(b->c->arena, const Idx *, count + 1);
    uint32_t     k = 0;

    for (uint32_t i = 0; i < count; i++) {
        int64_t     hi = d[i].most ? d[i].most->hi : INT64_MAX;
        int64_t     most = MAX_ELEMS / d[i].times < hi ? MAX_ELEMS / d[i].times : hi;
        const Idx  *form;
        const Atom *atom;
        Bounds      r;

        if (!d[i].cell)
            return false;
        form = known_form(b, d[i].cell);
        if (form && form->lo >= d[i].lo && form->hi <= hi && idx_usual(form) <= most) {
            dims[i] = form;
            continue;
        }
        if (form && (form->lo > most || form->hi < d[i].lo))
            return node_error(n, E_DIM, "dimension %u of output '%s' is %s", d[i].at,
                              n->p->output.at[out], dim_text(b->c, form));
        if (!find_bounds(n, out, &d[i], &r))
            return false;
        if ((dims[i] = bound_already(n, d[i].cell, &r)))
            continue;
        if (r.guessed)
            say_guess(n, out, &d[i], &r);
        dims[i] = bound[k] = new_dim(n->im, r.name, r.lo, r.most);
        if (idx_is_atom(dims[i], &atom))
            map_put(n->im->decided, PTR_KEY(atom), n->im);
        cells[k++] = d[i].cell;
    }
    if (k == 0)
        return true;
    BindDimsAttrs *a = ATTRS(b, BindDimsAttrs);
    a->dims = (Dims){k, bound};
    if (!(call = build1(b, "bind_dims", k == 1 ? cells[0] : build_concat(b, k, cells, 0), a)))
        return false;
    note_bound(n->im, call, k, cells, bound);
    return true;
}

const Expr *onnx_agreed(Node *n, const Expr *x, uint32_t axis, const Idx *want)
{
    const Build *b = &n->b;
    const Idx   *is = expr_form(x, axis), *none;
    RunDim       d = {.most = idx_const(b->c->arith, 0), .at = axis, .times = 1};

    if (is == want || !may_be(idx_sub(b->c->arith, is, want), 0) ||
        (!onnx_decided(n->im, is) && !onnx_decided(n->im, want)))
        return x; /* or the operator says what is wrong */
    d.cell = cell_form(b, idx_sub(b->c->arith, is, want));
    return onnx_bind(n, 0, 1, &d, &none) ? build_take(b, x, build_arange(b, want, DT_I64), axis)
                                         : NULL;
}

bool node_sizes(Node *n, uint32_t i, int64_t lo, uint32_t at, Dims *out)
{
    const Build *b = &n->b;
    const Expr  *list = node_cells(n, i);
    const Idx  **dims = NEW_ARRAY(b->c->arena, const Idx *, MAX_RANK);
    RunDim       d[MAX_RANK];
    int64_t      elems = 1;

    if (!list)
        return false;
    *out = (Dims){(uint32_t)build_elems(b, list), dims};
    if (build_elems(b, list) > MAX_RANK)
        return node_error(n, E_UNSUPPORTED, "a shape of more than %d dimensions", MAX_RANK);
    for (uint32_t j = 0; j < out->n; j++)
        d[j] = (RunDim){cell_of(b, list, j), lo, NULL, at + j, 1};
    if (!onnx_bind(n, 0, out->n, d, dims))
        return false;
    for (uint32_t j = 0; j < out->n; j++)
        if (!checked_mul(elems, idx_usual(dims[j]), &elems) || elems > MAX_ELEMS)
            return node_error(n, E_DIM, "the shape is too large");
    return true;
}

bool onnx_require(Node *n, const Expr *zero, const char *otherwise)
{
    RunDim     d = {zero, 0, idx_const(n->b.c->arith, 0), 0, 1};
    const Idx *k = zero ? known_form(&n->b, zero) : NULL;

    if (k && (k->lo > 0 || k->hi < 0))
        return node_error(n, E_IMPORT, "%s", otherwise);
    return zero && onnx_bind(n, 0, 1, &d, &k);
}

OnnxBinds onnx_binds_taken(Import *im, uint32_t from)
{
    OnnxBinds taken = {0};

    for (uint32_t i = from; i < im->binds.n; i++)
        vec_push(im->c->arena, &taken, im->binds.at[i]);
    im->binds.n = from;
    return taken;
}

const Expr *onnx_binds_around(Import *im, const OnnxBinds *binds, const Expr *e)
{
    for (uint32_t i = binds->n; e && i-- > 0;) {
        const Expr *bind = binds->at[i];

        e = expr_let(im->c, expr_var(im->c, "dims", bind->type, bind->loc), bind, e, bind->loc);
    }
    return e;
}

const Expr *onnx_bound_around(Import *im, uint32_t from, const Expr *e)
{
    OnnxBinds binds = onnx_binds_taken(im, from);

    return onnx_binds_around(im, &binds, e);
}

/* ---- counted cells ---------------------------------------------------------------------------- */

const Expr *onnx_positions(Node *n, const Expr *flags, uint32_t out, uint32_t at, const Expr **rank)
{
    const Build          *b = &n->b;
    Arith                *A = b->c->arith;
    const Idx            *cells = expr_form(flags, 0), *k, *room = idx_addc(A, cells, 1);
    ScatterElementsAttrs *first = ATTRS(b, ScatterElementsAttrs);
    const Expr           *ones, *sum, *total, *to, *all, *number;

    if (cells->hi == 0) /* nothing to count */
        return build_zeros(b, DT_I64, 1, (int64_t[]){0});
    ones = build_cast(b, flags, DT_I64);
    sum = build1(b, "cumsum", ones, NULL);
    /* The sum of all is the last cell, where there is one. */
    total = cells->lo > 0 ? build_slice_to(b, sum, 0, idx_addc(A, cells, -1), cells)
                          : build_reduce(b, "sum", ones, 1, (int64_t[]){0}, true);
    RunDim d = {total, 0, cells, at, 1};
    if (!onnx_bind(n, out, 1, &d, &k))
        return NULL;
    number = build_arange(b, cells, DT_I64);
    sum = build_by(b, "subtract", sum, 1);
    if (rank)
        *rank = sum;
    /* Those without a flag go behind the end. */
    to = build_where(b, flags, sum, cell_form(b, cells));
    all = build3(b, "scatter_elements", build_zeros_of(b, DT_I64, 1, &room), to, number, first);
    /* The first k; a slice would be of min(cells + 1, k). */
    return idx_min(A, room, k) == k ? build_slice_to(b, all, 0, idx_const(A, 0), k)
                                    : build_take(b, all, build_arange(b, k, DT_I64), 0);
}

/* ---- operands that broadcast ------------------------------------------------------------------ */

/* Of dimensions that should be one rather one that the caller or the model says than one that
 * values decide. */
static const Idx *rather(const Node *n, const Idx *best, const Idx *d)
{
    return !best || (onnx_decided(n->im, best) && !onnx_decided(n->im, d)) ? d : best;
}

static bool is_one(const Idx *d)
{
    int64_t v;

    return idx_is_const(d, &v) && v == 1;
}

const Expr *node_sized(Node *n, const Expr *x, const Idx *const *want)
{
    const Build *b = &n->b;
    uint32_t     rank = expr_rank(x), k = 0;
    RunDim       d[MAX_RANK];
    const Idx   *dims[MAX_RANK], *none[MAX_RANK];

    for (uint32_t j = 0; j < rank; j++) {
        dims[j] = expr_form(x, j);
        if (!want[j] || dims[j] == want[j] ||
            (!onnx_decided(n->im, dims[j]) && !onnx_decided(n->im, want[j])))
            continue;
        d[k++] = (RunDim){build_sub(b, cell_form(b, dims[j]), cell_form(b, want[j])), 0,
                          idx_const(b->c->arith, 0), j, 1};
        dims[j] = want[j];
    }
    if (k == 0)
        return x;
    return onnx_bind(n, 0, k, d, none) ? in_shape_at_run(n, x, rank, dims) : NULL;
}

static bool agree(Node *n, uint32_t i, const Idx *const *want)
{
    return (n->in[i] = node_sized(n, n->in[i], want)) != NULL;
}

bool node_agree(Node *n)
{
    const Idx *common[MAX_RANK] = {NULL}; /* from the last dimension; NULL: it is 1 */

    for (uint32_t i = 0; i < n->nin; i++)
        for (uint32_t k = expr_rank(n->in[i]), at = 0; k-- > 0; at++)
            if (!is_one(expr_form(n->in[i], k)))
                common[at] = rather(n, common[at], expr_form(n->in[i], k));
    for (uint32_t i = 0; i < n->nin; i++) {
        uint32_t   rank = expr_rank(n->in[i]);
        const Idx *want[MAX_RANK];

        for (uint32_t k = 0; k < rank; k++)
            want[k] = is_one(expr_form(n->in[i], k)) ? NULL : common[rank - 1 - k];
        if (!agree(n, i, want))
            return false;
    }
    return true;
}

bool node_agree_beside(Node *n, uint32_t axis)
{
    uint32_t   rank = expr_rank(n->in[0]);
    const Idx *common[MAX_RANK] = {NULL};

    for (uint32_t i = 0; i < n->nin; i++)
        for (uint32_t k = 0; k < rank && expr_rank(n->in[i]) == rank; k++)
            if (k != axis)
                common[k] = rather(n, common[k], expr_form(n->in[i], k));
    for (uint32_t i = 0; i < n->nin; i++)
        if (expr_rank(n->in[i]) == rank && !agree(n, i, common))
            return false;
    return true;
}
