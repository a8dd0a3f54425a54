/* Windows over any dimensions, and cells set apart. */
#include "frontends/tflite/tflite.h"

#include <math.h>
#include <string.h>

#define MOST_CELLS ((int64_t)1 << 24) /* of which the numbers are constants */

/* Of each dimension. */
typedef struct {
    int64_t window, stride, dilation;
} Along;

/* `between` cells of that value between two along a dimension. */
static const Expr *apart(const Build *b, const Expr *x, uint32_t axis, int64_t between,
                         double value)
{
    int64_t  pads[2 * (MAX_RANK + 1)] = {0}, dims[MAX_RANK + 1];
    uint32_t rank = expr_rank(x);
    Ints     d = build_dims(b, x);

    if (between == 0 || d.at[axis] < 2)
        return x;
    for (uint32_t i = 0; i <= rank; i++)
        dims[i] = i <= axis ? d.at[i] : i == axis + 1 ? 1 : d.at[i - 1];
    pads[2 * (axis + 1) + 1] = between;
    x = build_pad(b, build_reshape(b, x, rank + 1, dims), pads, value, "constant");
    memcpy(dims, d.at, rank * sizeof *dims);
    dims[axis] *= between + 1;
    x = build_reshape(b, x, rank, dims);
    return build_slice(b, x, axis, 0, dims[axis] - between);
}

/* Apart by `between`, then `low` before and `high` behind, each of all dimensions; below 0 cells
 * are cut off. */
static const Expr *padded(TfliteNode *n, const Expr *x, Ints low, Ints high, Ints between,
                          double value)
{
    const Build *b = &n->b;
    int64_t      pads[2 * MAX_RANK], all = 1;
    uint32_t     rank = expr_rank(x);

    if (low.n != rank || high.n != rank || between.n != rank)
        return tflite_error(n, E_IMPORT, "%u, %u and %u numbers for %u dimensions", low.n, high.n,
                            between.n, rank);
    for (uint32_t i = 0; i < rank; i++) {
        int64_t cells = build_dim(b, x, i), most = INT32_MAX, wide;

        if (between.at[i] < 0 || between.at[i] > most || low.at[i] < -most || low.at[i] > most ||
            high.at[i] < -most || high.at[i] > most)
            return tflite_error(n, E_IMPORT, "dimension %u: %lld before, %lld between, %lld behind",
                                i, (long long)low.at[i], (long long)between.at[i],
                                (long long)high.at[i]);
        if (!checked_mul(cells, between.at[i] + 1, &wide) || wide > MAX_ELEMS)
            return tflite_error(n, E_IMPORT, "dimension %u becomes one of %lld times %lld", i,
                                (long long)cells, (long long)between.at[i] + 1);
        cells = (cells > 0 ? wide - between.at[i] : 0) + low.at[i] + high.at[i];
        if (cells < 0 || !checked_mul(all, cells, &all) || all > MAX_ELEMS)
            return tflite_error(n, E_IMPORT, "dimension %u becomes one of %lld", i,
                                (long long)cells);
        pads[2 * i] = low.at[i];
        pads[2 * i + 1] = high.at[i];
    }
    for (uint32_t i = 0; x && i < rank; i++)
        x = apart(b, x, i, between.at[i], value);
    return x ? build_pad(b, x, pads, value, "constant") : NULL;
}

static bool padding_value(TfliteNode *n, uint32_t i, double *v)
{
    if (expr_single(n->in[i]) && expr_const_f(n->in[i], v))
        return true;
    return tflite_error(n, E_UNSUPPORTED, "input %u has to be known when it is compiled", i);
}

static Ints all_of(const Build *b, uint32_t n, int64_t v)
{
    int64_t *at = NEW_ARRAY(b->c->arena, int64_t, n + 1);

    for (uint32_t i = 0; i < n; i++)
        at[i] = v;
    return (Ints){n, at};
}

/* Every second number of a list from `first` on. */
static Ints every_second(const Build *b, Ints list, uint32_t first)
{
    int64_t *at = NEW_ARRAY(b->c->arena, int64_t, list.n / 2 + 1);

    for (uint32_t i = 0; i < list.n / 2; i++)
        at[i] = list.at[2 * i + first];
    return (Ints){list.n / 2, at};
}

static Ints less_one(const Build *b, Ints list)
{
    int64_t *at = NEW_ARRAY(b->c->arena, int64_t, list.n + 1);

    for (uint32_t i = 0; i < list.n; i++)
        at[i] = list.at[i] - 1;
    return (Ints){list.n, at};
}

/* Inputs: cells, by how much each dimension grows, what is between. */
bool tflite_dilate(TfliteNode *n)
{
    Ints   times, none = all_of(&n->b, expr_rank(n->in[0]), 0);
    double v;

    return tflite_ints(n, 1, &times) && padding_value(n, 2, &v) &&
           tflite_done(n, padded(n, n->in[0], none, none, less_one(&n->b, times), v));
}

bool tflite_stablehlo_pad(TfliteNode *n)
{
    double v;

    return padding_value(n, 1, &v) &&
           tflite_done(n, padded(n, n->in[0], tflite_int_list(n, "edge_padding_low"),
                                 tflite_int_list(n, "edge_padding_high"),
                                 tflite_int_list(n, "interior_padding"), v));
}

/* ---- reductions of windows ------------------------------------------------------------------------ */

typedef struct {
    const char *reduce, *both; /* of many cells, of two */
} Reducer;

static const Reducer reducers[] = {{NULL, NULL},         {"sum", "add"},     {"prod", "multiply"},
                                   {"min", "minimum"},   {"max", "maximum"}, {"all", "logical_and"},
                                   {"any", "logical_or"}};

/* One dimension: the cells of a window side by side, then one of them. */
static const Expr *reduced_along(TfliteNode *n, const Expr *x, uint32_t axis, const Along *w,
                                 const char *how)
{
    const Build *b = &n->b;
    int64_t      cells = build_dim(b, x, axis), span, out, across = axis + 1, *at;

    if (w->window < 1 || w->stride < 1 || w->dilation < 1 || w->window > INT32_MAX ||
        w->dilation > INT32_MAX || w->stride > INT32_MAX)
        return tflite_error(n, E_IMPORT, "a window of %lld, stride %lld and dilation %lld",
                            (long long)w->window, (long long)w->stride, (long long)w->dilation);
    span = (w->window - 1) * w->dilation + 1;
    out = cells < span ? 0 : (cells - span) / w->stride + 1;
    if (out == 0)
        return tflite_error(n, E_UNSUPPORTED, "a window of %lld over %lld cells", (long long)span,
                            (long long)cells);
    if (w->window == 1 && w->stride == 1)
        return x;
    if (out > MOST_CELLS / w->window)
        return tflite_error(n, E_UNSUPPORTED, "windows of %lld cells", (long long)w->window);
    at = NEW_ARRAY(b->c->arena, int64_t, (size_t)(out * w->window));
    for (int64_t i = 0; i < out; i++)
        for (int64_t k = 0; k < w->window; k++)
            at[i * w->window + k] = i * w->stride + k * w->dilation;
    x = build_take(b, x, build_const(b, DT_I64, 2, (int64_t[]){out, w->window}, at), axis);
    return build_reduce(b, how, x, 1, &across, false);
}

/* All dimensions one after the other, and with the first value. */
static const Expr *reduced(TfliteNode *n, const Expr *x, const Expr *first, const Along *w,
                           const Reducer *how)
{
    uint32_t rank = expr_rank(x);

    if (!expr_single(first))
        return tflite_error(n, E_IMPORT, "the first value is %s", type_text(n->b.c, first->type));
    for (uint32_t i = 0; x && i < rank; i++)
        x = reduced_along(n, x, i, &w[i], how->reduce);
    return build2(&n->b, how->both, x, build_reshape(&n->b, first, 0, NULL), NULL);
}

static bool read_windows(TfliteNode *n, Ints size, Ints stride, Ints dilation, Along *w)
{
    uint32_t rank = expr_rank(n->in[0]);

    if (size.n != rank || stride.n != rank || dilation.n != rank)
        return tflite_error(n, E_IMPORT, "windows of %u, %u and %u numbers for %u dimensions",
                            size.n, stride.n, dilation.n, rank);
    for (uint32_t i = 0; i < rank; i++)
        w[i] = (Along){size.at[i], stride.at[i], dilation.at[i]};
    return true;
}

/* Inputs: cells, the first value, windows, strides, dilations. */
bool tflite_reduce_window(TfliteNode *n)
{
    int64_t how = tflite_int(n, "reduce_function");
    Ints    size, stride, dilation;
    Along   w[MAX_RANK];

    if (how < 1 || how >= (int64_t)COUNT(reducers))
        return tflite_error(n, E_UNSUPPORTED, "reduce_function %lld", (long long)how);
    return tflite_ints(n, 2, &size) && tflite_ints(n, 3, &stride) && tflite_ints(n, 4, &dilation) &&
           read_windows(n, size, stride, dilation, w) &&
           tflite_done(n, reduced(n, n->in[0], n->in[1], w, &reducers[how]));
}

const char *tflite_reducer(TfliteNode *n, int64_t graph)
{
    static const struct {
        const char *op, *both;
    } known[] = {{"ADD", "add"},
                 {"STABLEHLO_ADD", "add"},
                 {"MUL", "multiply"},
                 {"STABLEHLO_MULTIPLY", "multiply"},
                 {"MINIMUM", "minimum"},
                 {"STABLEHLO_MINIMUM", "minimum"},
                 {"MAXIMUM", "maximum"},
                 {"STABLEHLO_MAXIMUM", "maximum"},
                 {"LOGICAL_AND", "logical_and"},
                 {"STABLEHLO_AND", "logical_and"},
                 {"LOGICAL_OR", "logical_or"},
                 {"STABLEHLO_OR", "logical_or"}};
    const TfliteGraph *g = tflite_graph(n, graph);
    const char        *name;

    if (!g)
        return NULL;
    if (g->in.n == 2 && g->out.n == 1 && g->operators.n == 0 &&
        fb_int_at(g->out, FB_I32, 0) == fb_int_at(g->in, FB_I32, 1))
        return "update";
    if (g->operators.n == 1 && g->in.n == 2 && g->out.n == 1) {
        name = tflite_op_name(n->b.c, tflite_opcode(n->im->model, g->operators.at[0]));
        for (uint32_t i = 0; i < COUNT(known); i++)
            if (!strcmp(name, known[i].op))
                return known[i].both;
    }
    return tflite_error(n, E_UNSUPPORTED, "what graph %lld does to two values", (long long)graph);
}

bool tflite_stablehlo_reduce_window(TfliteNode *n)
{
    const Build   *b = &n->b;
    uint32_t       rank = expr_rank(n->in[0]);
    Ints           size = tflite_int_list(n, "window_dimensions"), ones = all_of(b, rank, 1);
    Ints           stride = tflite_int_list(n, "window_strides");
    Ints           dilation = tflite_int_list(n, "window_dilations");
    Ints           base = tflite_int_list(n, "base_dilations");
    Ints           sides = tflite_int_list(n, "padding");
    const char    *both = tflite_reducer(n, tflite_int(n, "body_subgraph_index"));
    const Reducer *how = NULL;
    const Expr    *x;
    Along          w[MAX_RANK];
    double         v;

    if (!both)
        return false;
    for (uint32_t i = 1; i < COUNT(reducers); i++)
        if (!strcmp(reducers[i].both, both))
            how = &reducers[i];
    if (!how)
        return tflite_error(n, E_UNSUPPORTED, "windows of which the last value counts");
    stride = stride.n ? stride : ones;
    dilation = dilation.n ? dilation : ones;
    base = base.n ? base : ones;
    sides = sides.n ? sides : all_of(b, 2 * rank, 0);
    if (sides.n != 2 * rank)
        return tflite_error(n, E_IMPORT, "padding of %u numbers for %u dimensions", sides.n, rank);
    return read_windows(n, size, stride, dilation, w) && padding_value(n, 1, &v) &&
           (x = padded(n, n->in[0], every_second(b, sides, 0), every_second(b, sides, 1),
                       less_one(b, base), v)) &&
           tflite_done(n, reduced(n, x, n->in[1], w, how));
}
