/* einsum: a sum of products over named dimensions, as products of matrices.
 *
 *     "bij,bkj->bik"   b in all three: a batch; j only in the operands: summed; i and k: of one of
 * them
 *
 * Operands are taken in from the left, one after another: x becomes [batch, own, summed], y [batch,
 * summed, own], their product is put into the order that is asked for. */
#include "frontends/pytorch/pytorch.h"

#include <string.h>

typedef struct {
    const Expr *e;
    char        names[MAX_RANK + 1]; /* of its dimensions */
} Named;

static bool has(const char *names, char name)
{
    return strchr(names, name) != NULL;
}

static void add_name(char *names, char name)
{
    size_t n = strlen(names);

    if (n < MAX_RANK) {
        names[n] = name;
        names[n + 1] = 0;
    }
}

/* The next operand of the equation, up to a comma or the arrow. */
static bool read_names(PtNode *n, const char **at, char names[MAX_RANK + 1])
{
    uint32_t k = 0;

    for (; **at && **at != ',' && **at != '-'; ++*at) {
        char name = **at;

        if (name == ' ')
            continue;
        if (!((name >= 'a' && name <= 'z') || (name >= 'A' && name <= 'Z')) || k == MAX_RANK)
            return pt_error(n, E_UNSUPPORTED, "'%c' in the equation", name);
        names[k++] = name;
        names[k] = 0;
        if (strchr(names, name) != names + k - 1)
            return pt_error(n, E_UNSUPPORTED, "dimension '%c' is there twice in an operand", name);
    }
    names[k] = 0;
    return true;
}

/* x with these dimensions, in this order; those that are not named are summed. */
static bool arrange(PtNode *n, Named *x, const char *names)
{
    const Build *b = &n->b;
    int64_t      axes[MAX_RANK];
    uint32_t     k = 0;

    for (uint32_t i = 0; x->names[i]; i++)
        if (!has(names, x->names[i]))
            axes[k++] = i;
    if (k) {
        char left[MAX_RANK + 1] = "";

        x->e = build_reduce(b, "sum", x->e, k, axes, false);
        for (uint32_t i = 0; x->names[i]; i++)
            if (has(names, x->names[i]))
                add_name(left, x->names[i]);
        memcpy(x->names, left, sizeof left);
    }
    if (strlen(names) != strlen(x->names))
        return pt_error(n, E_IMPORT, "the result has a dimension that no operand has");
    for (k = 0; names[k]; k++)
        axes[k] = strchr(x->names, names[k]) - x->names;
    x->e = build_transpose(b, x->e, k, axes);
    memmove(x->names, names, k + 1);
    return x->e != NULL;
}

/* The cells of these dimensions of x, which follow each other from *at on. */
static const Idx *cells_of(const Named *x, Arith *A, uint32_t *at, const char *names)
{
    const Idx *cells = idx_const(A, 1);

    for (; *names; names++)
        cells = idx_mul(A, cells, expr_form(x->e, (*at)++));
    return cells;
}

static bool times(PtNode *n, Named *x, Named *y, const char *wanted)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    char         batch[MAX_RANK + 1] = "", sum[MAX_RANK + 1] = "", mine[MAX_RANK + 1] = "";
    char         other[MAX_RANK + 1] = "", order[4 * MAX_RANK + 1];
    const Idx   *dims[3 * MAX_RANK], *m[3];
    uint32_t     d = 0, at = 0;
    const Expr  *e;

    for (const char *p = x->names; *p; p++)
        if (has(y->names, *p))
            add_name(has(wanted, *p) ? batch : sum, *p);
        else if (has(wanted, *p))
            add_name(mine, *p);
    for (const char *p = y->names; *p; p++)
        if (!has(x->names, *p) && has(wanted, *p))
            add_name(other, *p);
    if (strlen(batch) + strlen(mine) + strlen(other) > MAX_RANK)
        return pt_error(n, E_UNSUPPORTED, "more than %d dimensions", MAX_RANK);
    for (const char *p = x->names; *p; p++) {
        const char *q = strchr(y->names, *p);

        if (q &&
            expr_form(x->e, (uint32_t)(p - x->names)) != expr_form(y->e, (uint32_t)(q - y->names)))
            return pt_error(n, E_IMPORT, "dimension '%c' has two sizes", *p);
    }
    if (!arrange(n, x, strcat(strcat(strcpy(order, batch), mine), sum)) ||
        !arrange(n, y, strcat(strcat(strcpy(order, batch), sum), other)))
        return false;
    for (uint32_t i = 0; i < strlen(batch) + strlen(mine); i++)
        dims[d++] = expr_form(x->e, i);
    for (size_t i = strlen(y->names) - strlen(other); i < strlen(y->names); i++)
        dims[d++] = expr_form(y->e, (uint32_t)i);
    m[0] = cells_of(x, A, &at, batch), m[1] = cells_of(x, A, &at, mine),
    m[2] = cells_of(x, A, &at, sum);
    x->e = *batch ? build_reshape_to(b, x->e, 3, m) : build_reshape_to(b, x->e, 2, m + 1);
    at = 0;
    m[0] = cells_of(y, A, &at, batch), m[1] = cells_of(y, A, &at, sum),
    m[2] = cells_of(y, A, &at, other);
    y->e = *batch ? build_reshape_to(b, y->e, 3, m) : build_reshape_to(b, y->e, 2, m + 1);
    e = pt_matmul(n, x->e, y->e);
    x->e = build_reshape_to(b, e, d, dims);
    strcat(strcat(strcpy(order, batch), mine), other);
    memcpy(x->names, order, strlen(order) + 1);
    return x->e != NULL;
}

bool aten_einsum(PtNode *n)
{
    const char *equation = pt_string(n, "equation", ""), *arrow = strstr(equation, "->"), *at, *out;
    const Expr **xs;
    uint32_t     count;
    Named       *v;
    char         result[MAX_RANK + 1] = "";

    if (!pt_tensors(n, "tensors", &count, &xs))
        return false;
    if (!arrow || count < 1)
        return pt_error(n, E_UNSUPPORTED, "the equation '%s'", equation);
    v = NEW_ARRAY(n->b.c->arena, Named, count);
    at = equation;
    for (uint32_t i = 0; i < count; i++) {
        v[i].e = xs[i];
        if (!read_names(n, &at, v[i].names))
            return false;
        if (!xs[i] || strlen(v[i].names) != expr_rank(xs[i]) || (*at != ',' && i + 1 < count))
            return pt_error(n, E_IMPORT, "the equation '%s' does not fit operand %u", equation, i);
        at += *at == ',';
    }
    out = arrow + 2;
    if (at != arrow || !read_names(n, &out, result) || *out)
        return at == arrow && !*out ? false
                                    : pt_error(n, E_IMPORT, "the equation '%s'", equation) != NULL;
    for (uint32_t i = 1; i < count; i++) {
        char wanted[26 * 2 + 1] = ""; /* what is still needed: by the result, by later ones */

        for (char c = 'A'; c <= 'z'; c++) {
            bool later = has(result, c);

            for (uint32_t k = i + 1; k < count; k++)
                later |= has(v[k].names, c);
            if (later && c) {
                size_t k = strlen(wanted);

                wanted[k] = c;
                wanted[k + 1] = 0;
            }
        }
        if (!times(n, &v[0], &v[i], wanted))
            return false;
    }
    return arrange(n, &v[0], result) && pt_done(n, v[0].e);
}
