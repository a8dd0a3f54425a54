/* Einsum: operands are multiplied two at a time.  The labels of a pair are batch (in both and still
 * wanted), contracted (in both, no longer wanted), and free of either; transposed and reshaped to
 *     [batch, free of x, contracted] * [batch, contracted, free of y]
 * this is one batched matrix product.  "..." stands for labels of its own. */
#include "frontends/onnx/onnx.h"

#include <ctype.h>
#include <string.h>

#define MAX_LABELS 16

/* A tensor with a label for each dimension. */
typedef struct {
    const Expr *x;
    uint32_t    n;
    int         at[MAX_LABELS];
} Term;

static bool has(const Term *t, int label)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (t->at[i] == label)
            return true;
    return false;
}

/* The labels of one term up to ',' or "->" or the end; `dots` is how many dimensions "..." has. */
static bool read_term(Node *n, const char **s, uint32_t rank, bool operand, uint32_t *dots, Term *t)
{
    t->n = 0;
    for (; **s && **s != ',' && **s != '-'; (*s)++) {
        if (**s == ' ')
            continue;
        if (!strncmp(*s, "...", 3)) {
            uint32_t letters = 0;

            for (const char *p = *s + 3; *p && *p != ',' && *p != '-'; p++)
                letters += isalpha((unsigned char)*p) != 0;
            if (operand) {
                uint32_t m = rank - t->n - letters;

                if (t->n + letters > rank)
                    return node_error(n, E_IMPORT, "more labels than dimensions");
                if (m > *dots)
                    *dots = m;
                /* Aligned at the end, as numpy broadcasts: 1001 is the last. */
                for (uint32_t i = 0; i < m && t->n < MAX_LABELS; i++)
                    t->at[t->n++] = 1000 + (int)(m - i);
            } else {
                for (uint32_t i = 0; i < *dots && t->n < MAX_LABELS; i++)
                    t->at[t->n++] = 1000 + (int)(*dots - i);
            }
            *s += 2;
            continue;
        }
        if (!isalpha((unsigned char)**s) || t->n == MAX_LABELS)
            return node_error(n, E_IMPORT, "equation: '%c' is no label", **s);
        if (!operand && has(t, **s))
            return node_error(n, E_IMPORT, "equation: label '%c' twice in the result", **s);
        t->at[t->n++] = **s;
    }
    if (operand && t->n != rank)
        return node_error(n, E_IMPORT, "equation: %u labels for %u dimensions", t->n, rank);
    return true;
}

/* Dimensions of one label become one, its diagonal: they are moved behind the others and taken as a
 * line of cells, of which it is every (extent + 1)-th. */
static bool diagonal(Node *n, Term *t)
{
    const Build *b = &n->b;

    for (uint32_t i = 0; i < t->n; i++)
        for (uint32_t j = i + 1; j < t->n; j++) {
            StridedSliceAttrs *a = ATTRS(b, StridedSliceAttrs);
            int64_t            axes[MAX_LABELS], extent, begin = 0, step, end;
            const Idx         *dims[MAX_LABELS];
            int                label = t->at[i];
            uint32_t           k = 0;

            if (t->at[j] != label)
                continue;
            extent = build_dim(b, t->x, i);
            if (build_dim(b, t->x, j) != extent)
                return node_error(n, E_IMPORT, "label '%c' is %lld and %lld", label,
                                  (long long)extent, (long long)build_dim(b, t->x, j));
            for (uint32_t r = 0; r < t->n; r++)
                if (r != i && r != j) {
                    dims[k] = expr_form(t->x, r);
                    t->at[k] = t->at[r];
                    axes[k++] = r;
                }
            axes[k] = i;
            axes[k + 1] = j;
            end = extent * extent;
            dims[k] = idx_const(b->c->arith, end);
            t->x = build_reshape_to(b, build_transpose(b, t->x, t->n, axes), k + 1, dims);
            step = extent + 1;
            a->begin = dims_of_i64(b->c, &begin, 1);
            a->end = dims_of_i64(b->c, &end, 1);
            a->strides = ints_dup(b->c, &step, 1);
            a->axes = ints_dup(b->c, (int64_t[]){k}, 1);
            if (!(t->x = build1(b, "strided_slice", t->x, a)))
                return false;
            t->at[k] = label;
            t->n = k + 1;
            return diagonal(n, t);
        }
    return true;
}

/* Without "->": labels that occur once, in alphabetic order, after those of "...". */
static void implied(const Term *terms, uint32_t n, uint32_t dots, Term *out)
{
    out->n = 0;
    for (uint32_t i = 0; i < dots; i++)
        out->at[out->n++] = 1000 + (int)(dots - i);
    for (int label = 'A'; label <= 'z' && out->n < MAX_LABELS; label++) {
        uint32_t count = 0;

        for (uint32_t i = 0; i < n; i++)
            for (uint32_t k = 0; k < terms[i].n; k++)
                count += terms[i].at[k] == label;
        if (count == 1)
            out->at[out->n++] = label;
    }
}

/* Sum over what `keep` does not want. */
static bool sum_out(Node *n, Term *t, const Term *const *keep, uint32_t nkeep)
{
    int64_t  axes[MAX_LABELS];
    uint32_t k = 0, left = 0;

    for (uint32_t i = 0; i < t->n; i++) {
        bool want = false;

        for (uint32_t j = 0; j < nkeep; j++)
            want |= has(keep[j], t->at[i]);
        if (want)
            t->at[left++] = t->at[i];
        else
            axes[k++] = i;
    }
    if (k == 0)
        return true;
    t->n = left;
    return (t->x = build_reduce(&n->b, "sum", t->x, k, axes, false)) != NULL;
}

/* The dimensions in the order of `labels`; those the term lacks become 1. */
static const Expr *arrange(Node *n, const Term *t, const Term *order)
{
    int64_t     axes[MAX_LABELS];
    const Idx  *dims[MAX_LABELS];
    uint32_t    k = 0;
    const Expr *x;

    for (uint32_t i = 0; i < order->n; i++)
        for (uint32_t j = 0; j < t->n; j++)
            if (t->at[j] == order->at[i])
                axes[k++] = j;
    x = build_transpose(&n->b, t->x, k, axes);
    if (!x)
        return NULL;
    k = 0;
    for (uint32_t i = 0; i < order->n; i++)
        dims[i] = has(t, order->at[i]) ? expr_form(x, k++) : idx_const(n->b.c->arith, 1);
    return build_reshape_to(&n->b, x, order->n, dims);
}

/* Of a label that the term has. */
static const Idx *extent(const Term *t, int label)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (t->at[i] == label)
            return expr_form(t->x, i);
    return NULL;
}

/* x * y; labels of neither `out` nor of the terms still to come are summed. */
static bool multiply(Node *n, Term *x, Term *y, const Term *rest, uint32_t nrest, const Term *out,
                     Term *result)
{
    const Build      *b = &n->b;
    const Term       *keep[32];
    Term              batch = {0}, fx = {0}, fy = {0}, k = {0}, order;
    Arith            *A = b->c->arith;
    const Idx        *dims[MAX_LABELS], *m = idx_const(A, 1), *c = m, *w = m;
    uint32_t          nkeep = 0, r = 0;
    const Expr       *px, *py, *p;
    BatchMatmulAttrs *a = ATTRS(b, BatchMatmulAttrs);

    keep[nkeep++] = out;
    for (uint32_t i = 0; i < nrest && nkeep < 30; i++)
        keep[nkeep++] = &rest[i];
    keep[nkeep] = y;
    if (!sum_out(n, x, keep, nkeep + 1))
        return false;
    keep[nkeep] = x;
    if (!sum_out(n, y, keep, nkeep + 1))
        return false;
    for (uint32_t i = 0; i < x->n; i++) {
        bool wanted = false;

        for (uint32_t j = 0; j < nkeep; j++)
            wanted |= has(keep[j], x->at[i]);
        if (!has(y, x->at[i]))
            fx.at[fx.n++] = x->at[i];
        else if (wanted)
            batch.at[batch.n++] = x->at[i];
        else
            k.at[k.n++] = x->at[i];
    }
    for (uint32_t i = 0; i < y->n; i++)
        if (!has(x, y->at[i]))
            fy.at[fy.n++] = y->at[i];
    if (batch.n + fx.n + k.n + fy.n > MAX_LABELS)
        return node_error(n, E_UNSUPPORTED, "more than %d labels", MAX_LABELS);
    for (uint32_t i = 0; i < k.n; i++)
        if (extent(x, k.at[i]) != extent(y, k.at[i]))
            return node_error(n, E_IMPORT, "label '%c' is %s and %s", k.at[i],
                              dim_text(b->c, extent(x, k.at[i])),
                              dim_text(b->c, extent(y, k.at[i])));
    for (uint32_t i = 0; i < fx.n; i++)
        m = idx_mul(A, m, extent(x, fx.at[i]));
    for (uint32_t i = 0; i < fy.n; i++)
        w = idx_mul(A, w, extent(y, fy.at[i]));
    for (uint32_t i = 0; i < k.n; i++)
        c = idx_mul(A, c, extent(x, k.at[i]));

    order = batch;
    for (uint32_t i = 0; i < fx.n; i++)
        order.at[order.n++] = fx.at[i];
    for (uint32_t i = 0; i < k.n; i++)
        order.at[order.n++] = k.at[i];
    px = arrange(n, x, &order);
    for (uint32_t i = 0; i < batch.n; i++)
        dims[i] = extent(x, batch.at[i]);
    dims[batch.n] = m;
    dims[batch.n + 1] = c;
    px = build_reshape_to(b, px, batch.n + 2, dims);

    order = batch;
    for (uint32_t i = 0; i < k.n; i++)
        order.at[order.n++] = k.at[i];
    for (uint32_t i = 0; i < fy.n; i++)
        order.at[order.n++] = fy.at[i];
    py = arrange(n, y, &order);
    for (uint32_t i = 0; i < batch.n; i++)
        dims[i] = extent(y, batch.at[i]);
    dims[batch.n] = c;
    dims[batch.n + 1] = w;
    py = build_reshape_to(b, py, batch.n + 2, dims);

    a->transpose_b = false;
    p = build2(b, batch.n ? "nn.batch_matmul" : "nn.matmul", px, py, batch.n ? (void *)a : NULL);
    if (!p)
        return false;
    *result = batch;
    for (uint32_t i = 0; i < batch.n; i++)
        dims[r++] = expr_form(p, i);
    for (uint32_t i = 0; i < fx.n; i++) {
        dims[r++] = extent(x, fx.at[i]);
        result->at[result->n++] = fx.at[i];
    }
    for (uint32_t i = 0; i < fy.n; i++) {
        dims[r++] = extent(y, fy.at[i]);
        result->at[result->n++] = fy.at[i];
    }
    return (result->x = build_reshape_to(b, p, r, dims)) != NULL;
}

bool convert_einsum(Node *n)
{
    const char *s = node_str(n, "equation", "");
    Term        terms[16], out, now;
    const Term *keep = &out;
    uint32_t    dots = 0;

    if (n->nin < 1 || n->nin > COUNT(terms))
        return node_error(n, E_UNSUPPORTED, "%u operands", n->nin);
    for (uint32_t i = 0; i < n->nin; i++) {
        if (!node_need_rank(n, i, 0, MAX_LABELS) ||
            !read_term(n, &s, expr_rank(n->in[i]), true, &dots, &terms[i]))
            return false;
        terms[i].x = n->in[i];
        if (i + 1 < n->nin && *s++ != ',')
            return node_error(n, E_IMPORT, "equation has fewer terms than operands");
    }
    if (s[0] == '-' && s[1] == '>') {
        s += 2;
        if (!read_term(n, &s, 0, false, &dots, &out))
            return false;
    } else {
        implied(terms, n->nin, dots, &out);
    }
    if (*s)
        return node_error(n, E_IMPORT, "equation: '%s' is not understood", s);
    for (uint32_t i = 0; i < out.n; i++) {
        bool found = false;

        for (uint32_t k = 0; k < n->nin; k++)
            found |= has(&terms[k], out.at[i]);
        if (!found)
            return node_error(n, E_IMPORT, "equation: label '%c' of the result is unknown",
                              out.at[i]);
    }
    for (uint32_t i = 0; i < n->nin; i++)
        if (!diagonal(n, &terms[i]))
            return false;
    now = terms[0];
    for (uint32_t i = 1; i < n->nin; i++) {
        Term next;

        if (!multiply(n, &now, &terms[i], &terms[i + 1], n->nin - i - 1, &out, &next))
            return false;
        now = next;
    }
    return sum_out(n, &now, &keep, 1) && node_done(n, arrange(n, &now, &out));
}
