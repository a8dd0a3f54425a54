/* Sizes that values of the run decide (docs/design/shapes.md).
 *
 *     y = Slice(x, [0], k)
 *
 *     let %y.0 = bind_dims(minimum(maximum(%k, 0), 24), dims=[y_0]);
 *     strided_slice(%x, begin=[0], end=[y_0])
 *
 * A converter computes such a size as a cell of i64, with operators of the graph, and asks for the
 * dimension.  Its bounds are what the converter proves and what --dim says of it; else the model
 * may declare a number, which the cell then has to be, or it is an error that asks for bounds.
 * What was bound stands around what is made of it as `let`, in the order of the nodes. */
#include "frontends/onnx/onnx.h"

#include <string.h>

/* ---- cells ------------------------------------------------------------------------------------ */

bool node_known(const Node *n, uint32_t i)
{
    return !node_has(n, i) || map_get(n->im->sizes, PTR_KEY(n->in[i])) ||
           build_fold(&n->b, n->in[i]);
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
static const Idx *new_dim(Import *im, const char *name, int64_t lo, int64_t hi)
{
    Ctx *c = im->c;

    for (;; name = arena_printf(c->arena, "%s_", name)) {
        const Idx  *x = dim_var(c, name, lo, hi);
        const Atom *a;

        if (!idx_is_atom(x, &a))
            return x;
        if (map_get(im->dim_names, PTR_KEY(a->name)))
            continue;
        map_put(im->dim_names, PTR_KEY(a->name), im);
        return x;
    }
}

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

/* The bounds of what the run decides, so that dimension d->at of the output is d->times as much. */
static bool find_bounds(Node *n, uint32_t out, const RunDim *d, const char **name, int64_t *lo,
                        int64_t *hi)
{
    const OnnxDim *said = declared(n, out, d->at);
    const char    *place = arena_printf(n->b.c->arena, "%s.%u", n->p->output.at[out], d->at);
    int64_t        low = d->lo, high = d->hi, most;
    bool           named = said && !said->has_value && !shapes_placeholder(said->param), given;

    if (d->lo == d->hi) { /* it is no dimension, but has to be that */
        *name = "", *lo = *hi = d->lo;
        return true;
    }
    *name = named ? said->param : place;
    given = (named && shapes_given(n->im->shapes, said->param, &low, &high)) ||
            shapes_given(n->im->shapes, place, &low, &high);
    if (!given && d->hi == INT64_MAX && said && said->has_value && said->value % d->times == 0)
        low = high = said->value / d->times;
    else if (!given && d->hi == INT64_MAX)
        given = shapes_given(n->im->shapes, "*", &low, &high);
    *lo = low > d->lo ? low : d->lo;
    *hi = high < d->hi ? high : d->hi;
    if (*hi == INT64_MAX) {
        node_error(n, E_DIM, "values of the run decide dimension %u of output '%s'", d->at,
                   n->p->output.at[out]);
        diag_hint(n->b.c->diags, "give it bounds: --dim %s=0..64", *name);
        return false;
    }
    if (*lo > *hi || !checked_mul(*hi, d->times, &most) || most > MAX_ELEMS)
        return node_error(n, E_DIM, "dimension %u of output '%s' cannot be %lld to %lld", d->at,
                          n->p->output.at[out], (long long)low, (long long)high);
    return true;
}

bool onnx_bind(Node *n, uint32_t out, uint32_t count, const RunDim *d, const Idx **dims)
{
    const Build *b = &n->b;
    const Expr **cells = NEW_ARRAY(b->c->arena, const Expr *, count + 1), *call;
    const Idx  **bound = NEW_ARRAY(b->c->arena, const Idx *, count + 1);
    uint32_t     k = 0;

    for (uint32_t i = 0; i < count; i++) {
        const char *name;
        const Atom *atom;
        int64_t     lo, hi;
        Dims        form;

        if (!d[i].cell)
            return false;
        if (build_forms(b, d[i].cell, &form)) {
            bool inside = form.at[0]->lo >= d[i].lo && form.at[0]->hi <= d[i].hi;

            if (!inside && !onnx_decided(n->im, form.at[0]))
                return node_error(n, E_DIM, "dimension %u of output '%s' is %s", d[i].at,
                                  n->p->output.at[out], dim_text(b->c, form.at[0]));
            dims[i] = form.at[0];
            if (inside)
                continue;
        }
        if (!find_bounds(n, out, &d[i], &name, &lo, &hi))
            return false;
        dims[i] = bound[k] = new_dim(n->im, name, lo, hi);
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
    vec_push(b->c->arena, &n->im->binds, call);
    return true;
}

const Expr *onnx_bound_around(Import *im, uint32_t from, const Expr *e)
{
    while (e && im->binds.n > from) {
        const Expr *bind = im->binds.at[--im->binds.n];

        e = expr_let(im->c, expr_var(im->c, "dims", bind->type, bind->loc), bind, e, bind->loc);
    }
    return e;
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
    RunDim d = {total, 0, cells->hi, at, 1};
    if (!onnx_bind(n, out, 1, &d, &k))
        return NULL;
    number = build_arange(b, cells, DT_I64);
    sum = build_by(b, "subtract", sum, 1);
    if (rank)
        *rank = sum;
    /* Those without a flag go behind the end. */
    to = build_where(b, flags, sum, cell_form(b, cells));
    all = build3(b, "scatter_elements", build_zeros_of(b, DT_I64, 1, &room), to, number, first);
    return build_slice_to(b, all, 0, idx_const(A, 0), k);
}

/* ---- operands that broadcast ------------------------------------------------------------------ */

/* Dimension `at`, counted from the end, of what the operands broadcast to; rather one that the
 * caller or the model says than one that values decide.  NULL: it is 1, or there is none. */
static const Idx *common_dim(const Node *n, uint32_t at)
{
    const Idx *best = NULL;

    for (uint32_t i = 0; i < n->nin; i++) {
        uint32_t   rank = expr_rank(n->in[i]);
        const Idx *d = at < rank ? expr_form(n->in[i], rank - 1 - at) : NULL;
        int64_t    v;

        if (d && !(idx_is_const(d, &v) && v == 1) &&
            (!best || (onnx_decided(n->im, best) && !onnx_decided(n->im, d))))
            best = d;
    }
    return best;
}

bool node_agree(Node *n)
{
    const Build *b = &n->b;
    const Idx   *common[MAX_RANK], *none[MAX_RANK];

    for (uint32_t i = 0; i < MAX_RANK; i++)
        common[i] = common_dim(n, i);
    for (uint32_t i = 0; i < n->nin; i++) {
        uint32_t   rank = expr_rank(n->in[i]), k = 0;
        RunDim     d[MAX_RANK];
        const Idx *dims[MAX_RANK];

        for (uint32_t j = 0; j < rank; j++) {
            const Idx *want = common[rank - 1 - j];
            int64_t    v;

            dims[j] = expr_form(n->in[i], j);
            if (!want || dims[j] == want || (idx_is_const(dims[j], &v) && v == 1) ||
                (!onnx_decided(n->im, dims[j]) && !onnx_decided(n->im, want)))
                continue;
            d[k++] = (RunDim){
                build2(b, "subtract", cell_form(b, dims[j]), cell_form(b, want), NULL), 0, 0, j, 1};
            dims[j] = want;
        }
        if (k && (!onnx_bind(n, 0, k, d, none) ||
                  !(n->in[i] = in_shape_at_run(n, n->in[i], rank, dims))))
            return false;
    }
    return true;
}
