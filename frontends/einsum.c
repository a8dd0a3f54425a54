/* einsum: a sum of products over named dimensions, as products of matrices.
 *
 *     "bij,bkj->bik"   b in all three: a batch; j only in the operands: summed; i and k: of one of
 * them
 *
 * Operands are taken in from the left, one after another: x becomes [batch, own, summed], y [batch,
 * summed, own], their product is put into the order that is asked for. */
#include "frontends/calls.h"

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
static bool read_names(const Build *b, const char **at, char names[MAX_RANK + 1])
{
    uint32_t k = 0;

    for (; **at && **at != ',' && **at != '-'; ++*at) {
        char name = **at;

        if (name == ' ')
            continue;
        if (!((name >= 'a' && name <= 'z') || (name >= 'A' && name <= 'Z')) || k == MAX_RANK)
            return build_error(b, E_UNSUPPORTED, "'%c' in the equation", name);
        names[k++] = name;
        names[k] = 0;
        if (strchr(names, name) != names + k - 1)
            return build_error(b, E_UNSUPPORTED, "dimension '%c' is there twice in an operand",
                               name);
    }
    names[k] = 0;
    return true;
}

/* x with these dimensions, in this order; those that are not named are summed. */
static bool arrange(const Build *b, Named *x, const char *names)
{
    int64_t  axes[MAX_RANK];
    uint32_t k = 0;

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
        return build_error(b, E_IMPORT, "the result has a dimension that no operand has");
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

static bool times(const Build *b, const BuildEinsum *s, Named *x, Named *y, const char *wanted)
{
    Arith      *A = b->c->arith;
    char        batch[MAX_RANK + 1] = "", sum[MAX_RANK + 1] = "", mine[MAX_RANK + 1] = "";
    char        other[MAX_RANK + 1] = "", order[4 * MAX_RANK + 1];
    const Idx  *dims[3 * MAX_RANK], *m[3];
    uint32_t    d = 0, at = 0;
    const Expr *e;

    for (const char *p = x->names; *p; p++)
        if (has(y->names, *p))
            add_name(has(wanted, *p) ? batch : sum, *p);
        else if (has(wanted, *p))
            add_name(mine, *p);
    for (const char *p = y->names; *p; p++)
        if (!has(x->names, *p) && has(wanted, *p))
            add_name(other, *p);
    if (strlen(batch) + strlen(mine) + strlen(other) > MAX_RANK)
        return build_error(b, E_UNSUPPORTED, "more than %d dimensions", MAX_RANK);
    for (const char *p = x->names; *p; p++) {
        const char *q = strchr(y->names, *p);

        if (q &&
            expr_form(x->e, (uint32_t)(p - x->names)) != expr_form(y->e, (uint32_t)(q - y->names)))
            return build_error(b, E_IMPORT, "dimension '%c' has two sizes", *p);
    }
    if (!arrange(b, x, strcat(strcat(strcpy(order, batch), mine), sum)) ||
        !arrange(b, y, strcat(strcat(strcpy(order, batch), sum), other)))
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
    e = s->product(b, s->user, x->e, y->e);
    x->e = build_reshape_to(b, e, d, dims);
    strcat(strcat(strcpy(order, batch), mine), other);
    memcpy(x->names, order, strlen(order) + 1);
    return x->e != NULL;
}

const Expr *build_einsum(const Build *b, const BuildEinsum *s)
{
    const char *arrow = strstr(s->equation, "->"), *at = s->equation, *out;
    Named      *v;
    char        result[MAX_RANK + 1] = "";

    if (!arrow || s->n < 1)
        return build_error(b, E_UNSUPPORTED, "the equation '%s'", s->equation);
    v = NEW_ARRAY(b->c->arena, Named, s->n);
    for (uint32_t i = 0; i < s->n; i++) {
        v[i].e = s->x[i];
        if (!read_names(b, &at, v[i].names))
            return NULL;
        if (!v[i].e || strlen(v[i].names) != expr_rank(v[i].e) || (*at != ',' && i + 1 < s->n))
            return build_error(b, E_IMPORT, "the equation '%s' does not fit operand %u",
                               s->equation, i);
        at += *at == ',';
    }
    out = arrow + 2;
    if (at != arrow || !read_names(b, &out, result) || *out)
        return at == arrow && !*out ? NULL
                                    : build_error(b, E_IMPORT, "the equation '%s'", s->equation);
    for (uint32_t i = 1; i < s->n; i++) {
        char wanted[26 * 2 + 1] = ""; /* what is still needed: by the result, by later ones */

        for (char c = 'A'; c <= 'z'; c++) {
            bool later = has(result, c);

            for (uint32_t k = i + 1; k < s->n; k++)
                later |= has(v[k].names, c);
            if (later && c) {
                size_t k = strlen(wanted);

                wanted[k] = c;
                wanted[k + 1] = 0;
            }
        }
        if (!times(b, s, &v[0], &v[i], wanted))
            return NULL;
    }
    return arrange(b, &v[0], result) ? v[0].e : NULL;
}
