/* Operators of StableHLO that take windows of cells by their positions.  Most others mean what
 * TensorFlow Lite's own mean, and are rows of ops.def alone. */
#include "frontends/tflite/tflite.h"

#include <string.h>

#define MOST_CELLS ((int64_t)1 << 24) /* of which the numbers are constants */

/* ---- windows by their positions ------------------------------------------------------------------- */

/* Of a tensor of `rank` dimensions; positions are [.., K], a number for each of K dimensions. */
typedef struct {
    const Expr *positions; /* [B, K] */
    uint32_t    rank, nbatch;
    int64_t     B, K, cells, P; /* cells of the tensor, of a window */
    int64_t     dims[MAX_RANK], size[MAX_RANK], batch[MAX_RANK];
    Ints        map; /* the dimension of each number */
} Windows;

/* Position vectors lie along dimension `vector`, which may be one behind the last. */
static bool read_positions(TfliteNode *n, uint32_t i, int64_t vector, Windows *w)
{
    const Build *b = &n->b;
    const Expr  *s = n->in[i];
    int64_t      axes[MAX_RANK];
    uint32_t     rank = expr_rank(s), k = 0;
    Ints         d = build_dims(b, s);

    if (vector < 0 || vector > rank || !dtype_is_int(expr_dtype(s)))
        return tflite_error(n, E_IMPORT, "positions are %s, along dimension %lld",
                            type_text(b->c, s->type), (long long)vector);
    w->K = vector == rank ? 1 : d.at[vector];
    w->B = 1;
    for (uint32_t j = 0; j < rank; j++)
        if (j != vector) {
            w->batch[k] = d.at[j];
            w->B *= d.at[j];
            axes[k++] = j;
        }
    w->nbatch = k;
    if (vector < rank) {
        axes[k] = vector;
        s = build_transpose(b, s, rank, axes);
    }
    if (w->map.n != w->K)
        return tflite_error(n, E_IMPORT, "%lld numbers for %u dimensions", (long long)w->K,
                            w->map.n);
    for (uint32_t j = 0; j < w->map.n; j++)
        if (w->map.at[j] < 0 || w->map.at[j] >= w->rank)
            return tflite_error(n, E_IMPORT, "dimension %lld", (long long)w->map.at[j]);
    w->positions = build_cast(b, build_reshape(b, s, 2, (int64_t[]){w->B, w->K}), DT_I64);
    return w->positions != NULL;
}

static bool read_windows(TfliteNode *n, const Expr *x, const int64_t *size, Windows *w)
{
    Ints d = build_dims(&n->b, x);

    w->cells = w->P = 1;
    for (uint32_t i = 0; i < w->rank; i++) {
        w->dims[i] = d.at[i];
        w->size[i] = size[i];
        if (size[i] < 1 || size[i] > d.at[i])
            return tflite_error(n, E_IMPORT, "windows of %lld along %lld", (long long)size[i],
                                (long long)d.at[i]);
        w->cells *= d.at[i];
        w->P *= size[i];
    }
    return (w->B >= 1 && w->P <= MOST_CELLS / w->B) ||
           tflite_error(n, E_UNSUPPORTED, "windows of %lld cells", (long long)w->P);
}

/* The number of every cell of every window, [B, P]; `inside`: which lie in the tensor, or NULL:
 * windows are moved inside. */
static const Expr *cells_of(TfliteNode *n, const Windows *w, const Expr **inside)
{
    const Build *b = &n->b;
    const Expr  *at = NULL, *ok = NULL;
    int64_t      stride[MAX_RANK], *within = NEW_ARRAY(b->c->arena, int64_t, (size_t)w->P);

    for (uint32_t i = w->rank, s = 0; i-- > 0; s++)
        stride[i] = s == 0 ? 1 : stride[i + 1] * w->dims[i + 1];
    for (int64_t p = 0; p < w->P; p++) {
        int64_t rest = p;

        within[p] = 0;
        for (uint32_t i = w->rank; i-- > 0; rest /= w->size[i])
            within[p] += rest % w->size[i] * stride[i];
    }
    for (uint32_t j = 0; j < w->map.n; j++) {
        int64_t     d = w->map.at[j], most = w->dims[d] - w->size[d];
        const Expr *v = build_slice(b, w->positions, 1, j, j + 1), *low, *high;

        if (inside) {
            low = build2(b, "less_equal", build_scalar(b, w->positions, 0), v, NULL);
            high = build2(b, "less_equal", v, build_scalar(b, w->positions, (double)most), NULL);
            low = build2(b, "logical_and", low, high, NULL);
            ok = ok ? build2(b, "logical_and", ok, low, NULL) : low;
        }
        v = build_by(b, "multiply", build_clip(b, v, 0, (double)most), (double)stride[d]);
        at = at ? build_add(b, at, v) : v;
    }
    if (!at)
        at = build_zeros(b, DT_I64, 2, (int64_t[]){w->B, 1});
    if (inside)
        *inside = ok;
    return build_add(b, at, build_const(b, DT_I64, 2, (int64_t[]){1, w->P}, within));
}

static bool listed(Ints list, int64_t v)
{
    for (uint32_t i = 0; i < list.n; i++)
        if (list.at[i] == v)
            return true;
    return false;
}

/* Results are those of batches, and, at `offset_dims`, windows without the collapsed dimensions. */
bool tflite_stablehlo_gather(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *y;
    Ints         offset = tflite_int_list(n, "offset_dims"),
         collapsed = tflite_int_list(n, "collapsed_slice_dims"),
         size = tflite_int_list(n, "slice_sizes");
    Windows  w = {.rank = expr_rank(x), .map = tflite_int_list(n, "start_index_map")};
    int64_t  dims[2 * MAX_RANK], axes[2 * MAX_RANK];
    uint32_t k, rank, at_batch = 0, at_window = 0;

    if (size.n != w.rank)
        return tflite_error(n, E_IMPORT, "slice_sizes of %u numbers", size.n);
    if (!read_positions(n, 1, tflite_int(n, "index_vector_dim"), &w) ||
        !read_windows(n, x, size.at, &w))
        return false;
    k = w.nbatch;
    memcpy(dims, w.batch, k * sizeof *dims);
    for (uint32_t i = 0; i < w.rank; i++) {
        if (!listed(collapsed, i))
            dims[k++] = size.at[i];
        else if (size.at[i] != 1)
            return tflite_error(n, E_IMPORT, "collapsed dimension %u has %lld cells", i,
                                (long long)size.at[i]);
    }
    rank = k;
    if (rank > MAX_RANK || offset.n != rank - w.nbatch)
        return tflite_error(n, E_IMPORT, "offset_dims of %u numbers", offset.n);
    x = build_reshape(b, x, 1, &w.cells);
    y = build_reshape(b, build_take(b, x, cells_of(n, &w, NULL), 0), rank, dims);
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = listed(offset, i) ? w.nbatch + at_window++ : at_batch++;
    if (at_batch != w.nbatch)
        return tflite_error(n, E_IMPORT, "offset_dims beyond %u dimensions", rank);
    return tflite_done(n, build_transpose(b, y, rank, axes));
}

/* Inputs: cells, positions, updates; windows that do not lie inside are left out. */
bool tflite_stablehlo_scatter(TfliteNode *n)
{
    const Build          *b = &n->b;
    ScatterElementsAttrs *a = ATTRS(b, ScatterElementsAttrs);
    const Expr           *x = n->in[0], *updates = n->in[2], *at, *inside, *y;
    Ints                  window = tflite_int_list(n, "update_window_dims"),
         inserted = tflite_int_list(n, "inserted_window_dims"), d = build_dims(b, updates);
    Windows  w = {.rank = expr_rank(x), .map = tflite_int_list(n, "scatter_dims_to_operand_dims")};
    int64_t  size[MAX_RANK], axes[MAX_RANK], room, all;
    uint32_t k = 0, next = 0, rank = expr_rank(updates);
    const char *both = tflite_reducer(n, tflite_int(n, "update_computation_subgraph_index"));

    if (!both)
        return false;
    a->reduction = !strcmp(both, "multiply")  ? "mul"
                   : !strcmp(both, "minimum") ? "min"
                   : !strcmp(both, "maximum") ? "max"
                                              : both;
    if (!strncmp(both, "logical", 7))
        return tflite_error(n, E_UNSUPPORTED, "an update by %s", both);
    if (!read_positions(n, 1, tflite_int(n, "index_vector_dim"), &w))
        return false;
    for (uint32_t i = 0; i < rank; i++)
        if (!listed(window, i))
            axes[k++] = i;
    if (k != w.nbatch || window.n + inserted.n != w.rank)
        return tflite_error(n, E_IMPORT, "updates are %s", type_text(b->c, updates->type));
    for (uint32_t i = 0; i < rank; i++)
        if (listed(window, i))
            axes[k++] = i;
    if (k != rank)
        return tflite_error(n, E_IMPORT, "updates are %s", type_text(b->c, updates->type));
    for (uint32_t i = 0; i < w.rank; i++) {
        if (!listed(inserted, i) && next >= window.n)
            return tflite_error(n, E_IMPORT, "inserted_window_dims");
        size[i] = listed(inserted, i) ? 1 : d.at[axes[w.nbatch + next++]];
    }
    if (!read_windows(n, x, size, &w))
        return false;
    all = w.B * w.P;
    room = w.cells + 1; /* one cell more for what lies outside */
    at = cells_of(n, &w, &inside);
    if (inside)
        at = build_where(b, inside, at, build_scalar(b, w.positions, (double)w.cells));
    updates = build_transpose(b, updates, rank, axes);
    y = build_concat(b, 2,
                     (const Expr *[]){build_reshape(b, x, 1, &w.cells),
                                      build_zeros(b, expr_dtype(x), 1, (int64_t[]){1})},
                     0);
    y = build3(b, "scatter_elements", y, build_reshape(b, at, 1, &all),
               build_reshape(b, updates, 1, &all), a);
    y = build_slice(b, y, 0, 0, room - 1);
    return tflite_done(n, build_reshape(b, y, w.rank, w.dims));
}

/* ---- cell by cell --------------------------------------------------------------------------------- */

/* "and" and "or", of bools or of the bits of integers. */
bool tflite_stablehlo_logic(TfliteNode *n)
{
    const char *op = intern_printf(n->b.c->strings, "%s_%s",
                                   dtype_is_bool(expr_dtype(n->in[0])) ? "logical" : "bitwise",
                                   strstr(n->row->name, "AND") ? "and" : "or");

    return tflite_done(n, build2(&n->b, op, n->in[0], n->in[1], NULL));
}

/* Inputs: the least, the value, the most. */
bool tflite_stablehlo_clamp(TfliteNode *n)
{
    const Expr *y = build2(&n->b, "maximum", n->in[0], n->in[1], NULL);

    return tflite_done(n, build2(&n->b, "minimum", y, n->in[2], NULL));
}

bool tflite_stablehlo_cbrt(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0];

    return tflite_done(n, build_mul(b, build1(b, "sign", x, NULL),
                                    build_by(b, "power", build1(b, "abs", x, NULL), 1.0 / 3)));
}
