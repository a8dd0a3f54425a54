/* Borders of sizes that values of the run say: Pad and CenterCropPad.
 *
 * A dimension of the result is bound (bound.c), its cells are taken from where the border's mode
 * has them: cell i from i - begin, clamped, mirrored or in a period, or the value where that is
 * outside. */
#include "frontends/onnx/onnx.h"

#include <string.h>

typedef struct {
    const char *mode;
    const Expr *value; /* a scalar; mode constant */
} Border;

/* Dimension d with `begin` cells more before it and `end` behind it; below 0: less, before anything
 * is repeated. */
static const Expr *padded(Node *n, const Expr *x, uint32_t d, const Expr *begin, const Expr *end,
                          const Border *border)
{
    const Build *b = &n->b;
    bool         constant = !strcmp(border->mode, "constant");
    const Idx   *extent = expr_form(x, d), *dims[2];
    const Expr *zero = cell_number(b, 0), *one = cell_number(b, 1), *all, *size, *cut, *left, *last;
    const Expr *at, *from, *enough;

    all = cell_form(b, extent);
    size = build2(b, "add", build2(b, "add", all, begin, NULL), end, NULL);
    cut = build2(b, "minimum", begin, zero, NULL);
    left = build2(b, "add", all, cut, NULL);
    left = build2(b, "add", left, build2(b, "minimum", end, zero, NULL), NULL);
    /* Something is left to repeat, or nothing is to be repeated, or the run ends. */
    enough = build2(b, "subtract", one, build2(b, "subtract", size, left, NULL), NULL);
    enough = constant ? build2(b, "minimum", left, zero, NULL)
                      : build2(b, "minimum", build2(b, "maximum", left, enough, NULL), one, NULL);
    RunDim k[2] = {{size, 0, NULL, d, 1},
                   {enough, !constant, idx_const(b->c->arith, !constant), d, 1}};
    if (!onnx_bind(n, 0, 2, k, dims))
        return NULL;
    last = build2(b, "subtract", left, one, NULL);
    at = from = build2(b, "subtract", build_arange(b, dims[0], DT_I64),
                       build2(b, "maximum", begin, zero, NULL), NULL);
    if (!strcmp(border->mode, "wrap")) {
        from = build2(b, "floor_mod", at, build2(b, "maximum", left, one, NULL), NULL);
    } else if (!strcmp(border->mode, "reflect")) { /* there and back, without the ends twice */
        const Expr *period = build2(b, "maximum", build2(b, "add", last, last, NULL), one, NULL);

        from = build2(b, "floor_mod", at, period, NULL);
        from = build2(b, "minimum", from, build2(b, "subtract", period, from, NULL), NULL);
    }
    from = build2(b, "subtract", cell_clamp(b, from, zero, last), cut, NULL);
    if (extent->hi < 1)
        x = with_a_cell(b, x, d, 0);
    from = cell_clamp(b, from, zero, cell_form(b, idx_addc(b->c->arith, extent, -1)));
    x = build_take(b, x, from, d);
    if (!x || !constant)
        return x;
    from = build2(b, "logical_and", build2(b, "less_equal", zero, at, NULL),
                  build2(b, "less", at, left, NULL), NULL);
    return build_where(b, build_along(b, from, expr_rank(x), d), x, border->value);
}

const Expr *padded_at_run(Node *n, const Expr *x, uint32_t d, const Expr *begin, const Expr *end)
{
    Border zeros = {"constant", build_scalar(&n->b, x, 0)};

    return padded(n, x, d, begin, end, &zeros);
}

/* The axes of a list of k: known ones to `axis`, others as cells; false with an error. */
static bool axes_of(Node *n, uint32_t i, uint32_t k, int64_t *axis, const Expr **cells)
{
    uint32_t rank = expr_rank(n->in[0]);
    Ints     v;

    *cells = NULL;
    for (uint32_t j = 0; j < rank; j++)
        axis[j] = j;
    if (!node_has(n, i))
        return k == rank || node_error(n, E_IMPORT, "sizes of %u dimensions, of %u", k, rank);
    if (!node_constant(n, i)) {
        *cells = node_cells(n, i);
        return *cells && (build_elems(&n->b, *cells) == k ||
                          node_error(n, E_IMPORT, "%u axes are expected", k));
    }
    if (!node_const_ints(n, i, &v))
        return false;
    if (v.n != k)
        return node_error(n, E_IMPORT, "%u axes, %u are expected", v.n, k);
    return node_axes(n, v, rank, axis);
}

static bool is_zero(const Build *b, const Expr *cell)
{
    Dims v;

    return cell && build_forms(b, cell, &v) && v.n == 1 && v.at[0]->lo == 0 && v.at[0]->hi == 0;
}

bool pad_at_run(Node *n, const char *mode)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *pads = node_cells(n, 1), *axes, *zero = cell_number(b, 0);
    int64_t      axis[MAX_RANK], cells;
    uint32_t     rank = expr_rank(x), k;
    Border       border = {mode, build_scalar(b, x, 0)};

    if (!pads)
        return false;
    cells = build_elems(b, pads);
    if (cells % 2 || cells > 2 * rank)
        return node_error(n, E_IMPORT, "%lld pads for %u dimensions", (long long)cells, rank);
    k = (uint32_t)cells / 2;
    if (!axes_of(n, 3, k, axis, &axes))
        return false;
    if (node_has(n, 2))
        border.value = build_reshape(b, n->in[2], 0, NULL);
    const Expr *first = build_slice(b, pads, 0, 0, k), *rest = build_slice(b, pads, 0, k, cells);

    for (uint32_t i = 0; i < (axes ? rank : k) && x; i++) {
        uint32_t    d = axes ? i : (uint32_t)axis[i];
        const Expr *is = axes ? axis_matches(b, axes, d, rank) : NULL;
        const Expr *begin = cell_said(b, first, is, i, zero),
                   *end = cell_said(b, rest, is, i, zero);

        if (!is_zero(b, begin) || !is_zero(b, end))
            x = padded(n, x, d, begin, end, &border);
    }
    return node_done(n, x);
}

bool center_crop_pad_at_run(Node *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *sizes = node_cells(n, 1), *two = cell_number(b, 2);
    int64_t      axis[MAX_RANK], k;
    uint32_t     rank = expr_rank(x);
    Ints         axes;

    if (!sizes)
        return false;
    k = build_elems(b, sizes);
    for (uint32_t i = 0; i < rank; i++)
        axis[i] = i;
    if (node_ints(n, "axes", &axes) ? axes.n != k : rank != k)
        return node_error(n, E_IMPORT, "%lld sizes for other axes", (long long)k);
    if (node_attr(n, "axes") && !node_axes(n, axes, rank, axis))
        return false;
    for (uint32_t i = 0; i < k && x; i++) {
        uint32_t    d = (uint32_t)axis[i];
        const Expr *more, *begin;

        more = build2(b, "subtract", cell_of(b, sizes, i), cell_form(b, expr_form(x, d)), NULL);
        begin = build2(b, "divide", more, two, NULL);
        x = padded_at_run(n, x, d, begin, build_sub(b, more, begin));
    }
    return node_done(n, x);
}
