/* One step of a recurrent network, from the state before it:
 *
 *     lstm_cell   i, f, g, o = split(x Wi + bi + h Wh + bh);  c' = s(f) c + s(i) tanh(g);  h' =
 * s(o) tanh(c') gru_cell    r, z, n by parts;  n = tanh(nx + s(r) nh);  h' = n + s(z) (h - n)
 *     rnn_..      tanh or relu of x Wi + bi + h Wh + bh */
#include "frontends/pytorch/pytorch.h"

#include <string.h>

typedef struct {
    const Expr *x, *h;       /* input and state */
    const Expr *of_x, *of_h; /* their products with the weights, of all gates */
    int64_t     size;        /* of a gate */
    uint32_t    axis;
} Cell;

/* The products; `gates` of them lie side by side. */
static bool products(PtNode *n, uint32_t gates, Cell *k)
{
    const Build *b = &n->b;
    const Expr  *wi = pt_tensor(n, "w_ih"), *wh = wi ? pt_tensor(n, "w_hh") : NULL, *bi, *bh;
    int64_t      rows;

    if (!wh || !pt_maybe(n, "b_ih", &bi) || !pt_maybe(n, "b_hh", &bh))
        return false;
    if (expr_rank(wi) != 2 || expr_rank(wh) != 2 || expr_rank(k->x) < 1 ||
        expr_rank(k->x) != expr_rank(k->h))
        return pt_error(n, E_IMPORT, "the weights are %s and %s for %s", type_text(b->c, wi->type),
                        type_text(b->c, wh->type), type_text(b->c, k->x->type));
    rows = build_dim(b, wi, 0);
    k->size = rows / gates;
    k->axis = expr_rank(k->x) - 1;
    if (rows % gates || rows != build_dim(b, wh, 0))
        return pt_error(n, E_IMPORT, "weights of %lld rows for %u gates", (long long)rows, gates);
    return (k->of_x = pt_linear(n, k->x, wi, bi)) && (k->of_h = pt_linear(n, k->h, wh, bh));
}

static const Expr *gate(PtNode *n, const Cell *k, const Expr *of, uint32_t i)
{
    return build_slice(&n->b, of, k->axis, i * k->size, (i + 1) * k->size);
}

static const Expr *apply(PtNode *n, const char *op, const Expr *x)
{
    return build1(&n->b, op, x, NULL);
}

bool aten_lstm_cell(PtNode *n)
{
    const Build *b = &n->b;
    Cell         k = {.x = pt_tensor(n, "input")};
    const Expr **hx, *all, *c, *kept, *added;
    uint32_t     count;

    if (!k.x || !pt_tensors(n, "hx", &count, &hx))
        return false;
    if (count != 2 || !hx[0] || !hx[1])
        return pt_error(n, E_IMPORT, "a state of %u tensors", count);
    k.h = hx[0];
    if (!products(n, 4, &k) || !(all = build_add(b, k.of_x, k.of_h)))
        return false;
    kept = build_mul(b, apply(n, "sigmoid", gate(n, &k, all, 1)), hx[1]);
    added = build_mul(b, apply(n, "sigmoid", gate(n, &k, all, 0)),
                      apply(n, "tanh", gate(n, &k, all, 2)));
    c = build_add(b, kept, added);
    return pt_done_at(
               n, 0, build_mul(b, apply(n, "sigmoid", gate(n, &k, all, 3)), apply(n, "tanh", c))) &&
           pt_done_at(n, 1, c);
}

bool aten_gru_cell(PtNode *n)
{
    const Build *b = &n->b;
    Cell         k = {.x = pt_tensor(n, "input")};
    const Expr  *r, *z, *g;

    if (!k.x || !(k.h = pt_tensor(n, "hx")) || !products(n, 3, &k))
        return false;
    r = apply(n, "sigmoid", build_add(b, gate(n, &k, k.of_x, 0), gate(n, &k, k.of_h, 0)));
    z = apply(n, "sigmoid", build_add(b, gate(n, &k, k.of_x, 1), gate(n, &k, k.of_h, 1)));
    g = apply(n, "tanh",
              build_add(b, gate(n, &k, k.of_x, 2), build_mul(b, r, gate(n, &k, k.of_h, 2))));
    return pt_done(n, build_add(b, g, build_mul(b, z, build_sub(b, k.h, g))));
}

bool aten_rnn_cell(PtNode *n)
{
    Cell k = {.x = pt_tensor(n, "input")};

    return k.x && (k.h = pt_tensor(n, "hx")) && products(n, 1, &k) &&
           pt_done(n, apply(n, strstr(n->p->target, "relu") ? "nn.relu" : "tanh",
                            build_add(&n->b, k.of_x, k.of_h)));
}
