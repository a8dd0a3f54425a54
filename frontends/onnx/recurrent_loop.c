/* Recurrent layers as loops: of lengths that each row has its own of, of perhaps no step, with
 * peepholes, limits, or other activations than those of Relay's operators.
 *
 *     xw[t] = x[t] W + b        of all steps at once
 *     h, c  = cell(xw[t], h, c)    a round each
 *
 * A sequence that is shorter keeps its states and gives zeros from its end on.  In reverse it is
 * read, and what comes of it written, from its own end. */
#include "frontends/onnx/onnx.h"

#include <string.h>

/* One direction. */
typedef struct {
    const OnnxRecurrent *k;
    const char *const   *f;        /* its activations */
    const Expr          *xw;       /* [T, N, G*H] */
    const Expr          *r, *rb;   /* [G*H, H], [G*H] */
    const Expr          *peephole; /* [3*H]: of the gates i, o, f; or NULL */
} Direction;

/* Part i of the last dimension, of H cells. */
static const Expr *part(const Build *b, const Direction *d, const Expr *x, int64_t i, int64_t n)
{
    int64_t H = d->k->H;

    return x ? build_slice(b, x, expr_rank(x) - 1, i * H, (i + n) * H) : NULL;
}

static const Expr *activated(const Build *b, const Direction *d, uint32_t f, const Expr *x)
{
    if (d->k->clip > 0)
        x = build_clip(b, x, -d->k->clip, d->k->clip);
    return build1(b, d->f[f], x, NULL);
}

/* h times the weights of n gates from `i` on, plus their bias. */
static const Expr *recurrent(const Build *b, const Direction *d, const Expr *h, int64_t i,
                             int64_t n)
{
    int64_t     H = d->k->H;
    const Expr *w = n == d->k->gates ? d->r : build_slice(b, d->r, 0, i * H, (i + n) * H);

    return build_add(b, build2(b, "nn.dense", h, w, NULL), part(b, d, d->rb, i, n));
}

static const Expr *through(const Build *b, const Direction *d, const Expr *gate, const Expr *c,
                           int64_t i)
{
    return d->peephole ? build_add(b, gate, build_mul(b, c, part(b, d, d->peephole, i, 1))) : gate;
}

/* Gates i, o, f and what goes into the state. */
static void lstm(const Build *b, const Direction *d, const Expr *x, const Expr *const *state,
                 const Expr **next)
{
    const Expr *g = build_add(b, x, recurrent(b, d, state[0], 0, 4)), *in, *forget, *c, *o;

    c = state[1];
    in = activated(b, d, 0, through(b, d, part(b, d, g, 0, 1), c, 0));
    if (d->k->input_forget)
        forget = in ? build_sub(b, build_scalar(b, in, 1), in) : NULL;
    else
        forget = activated(b, d, 0, through(b, d, part(b, d, g, 2, 1), c, 2));
    c = build_add(b, build_mul(b, forget, c),
                  build_mul(b, in, activated(b, d, 1, part(b, d, g, 3, 1))));
    o = activated(b, d, 0, through(b, d, part(b, d, g, 1, 1), c, 1));
    next[0] = build_mul(b, o, build1(b, d->f[2], c, NULL));
    next[1] = c;
}

/* Gates z and r, and h = (1 - z) * c + z * h. */
static void gru(const Build *b, const Direction *d, const Expr *x, const Expr *const *state,
                const Expr **next)
{
    const Expr *h = state[0], *g, *z, *r, *c;
    bool        linear = d->k->linear_before_reset;
    int64_t     first = linear ? 3 : 2;

    g = recurrent(b, d, h, 0, first);
    z = activated(b, d, 0, build_add(b, part(b, d, x, 0, 1), part(b, d, g, 0, 1)));
    r = activated(b, d, 0, build_add(b, part(b, d, x, 1, 1), part(b, d, g, 1, 1)));
    c = linear ? build_mul(b, r, part(b, d, g, 2, 1)) : recurrent(b, d, build_mul(b, r, h), 2, 1);
    c = activated(b, d, 1, build_add(b, part(b, d, x, 2, 1), c));
    next[0] = z ? build_add(b, build_mul(b, build_sub(b, build_scalar(b, z, 1), z), c),
                            build_mul(b, z, h))
                : NULL;
}

static bool step(Node *n, void *user, const Expr *i, const Expr *const *state, const Expr **next,
                 const Expr **piece)
{
    const Direction *d = user;
    const Build     *b = &n->b;
    const Expr      *x = build_take(b, d->xw, i, 0), *on;

    if (d->k->gates == 4)
        lstm(b, d, x, state, next);
    else if (d->k->gates == 3)
        gru(b, d, x, state, next);
    else
        next[0] = activated(b, d, 0, build_add(b, x, recurrent(b, d, state[0], 0, 1)));
    piece[0] = next[0];
    if (!next[0] || !d->k->lens)
        return next[0] != NULL;
    on = build_along(b, build_less(b, i, d->k->lens), 2, 0);
    piece[0] = build_where(b, on, next[0], build_scalar(b, next[0], 0));
    for (uint32_t s = 0; s < (d->k->gates == 4 ? 2 : 1); s++)
        next[s] = build_where(b, on, next[s], state[s]);
    return piece[0] != NULL;
}

/* The numbers of the steps, [T, 1]: of one step, too. */
static const Expr *steps(const Build *b, const OnnxRecurrent *k)
{
    const Idx *dims[2] = {k->T, idx_const(b->c->arith, 1)};

    return build_reshape_to(b, build_arange(b, k->T, DT_I64), 2, dims);
}

/* x [T, N, ..] from the end of each sequence; what lies behind its end is anything. */
static const Expr *reversed(const Build *b, const OnnxRecurrent *k, const Expr *x)
{
    Arith      *A = b->c->arith;
    const Expr *last = cell_form(b, idx_addc(A, k->T, -1)), *at;
    const Idx  *flat[2] = {idx_mul(A, k->T, k->N), expr_form(x, 2)};

    if (!k->lens)
        return build_take(b, x, build_sub(b, last, build_arange(b, k->T, DT_I64)), 0);
    at = build_sub(b, build_by(b, "subtract", k->lens, 1), steps(b, k));
    at = cell_clamp(b, at, cell_number(b, 0), last); /* [T, N] */
    at = build_add(b, build_mul(b, at, cell_form(b, k->N)), build_arange(b, k->N, DT_I64));
    return build_take(b, build_reshape_to(b, x, 2, flat), at, 0);
}

/* The part of direction d, without the first dimension. */
static const Expr *of_direction(const Build *b, const Expr *x, int64_t d)
{
    if (!x)
        return NULL;
    return build_reshape_to(b, build_slice(b, x, 0, d, d + 1), expr_rank(x) - 1, x->type->dims + 1);
}

/* y [T, N, H], and the last states. */
static bool run(Node *n, const OnnxRecurrent *k, int64_t d, bool reverse, const Expr **out)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    int64_t      GH = k->gates * k->H, count = k->gates == 4 ? 2 : 1;
    const Idx   *rows[2] = {idx_mul(A, k->T, k->N), idx_const(A, k->I)};
    const Idx   *gates[3] = {k->T, k->N, idx_const(A, GH)};
    const Expr  *bias = of_direction(b, k->bias, d), *x = reverse ? reversed(b, k, k->x) : k->x;
    const Expr  *first[2] = {of_direction(b, k->h, d), of_direction(b, k->c, d)}, *y, *on;
    Direction    of = {.k = k,
                       .f = k->f + d * (k->gates == 4   ? 3
                                        : k->gates == 3 ? 2
                                                        : 1),
                       .r = of_direction(b, k->r, d),
                       .rb = bias ? build_slice(b, bias, 0, GH, 2 * GH) : NULL,
                       .peephole = of_direction(b, k->peephole, d)};

    x = build2(b, "nn.dense", build_reshape_to(b, x, 2, rows), of_direction(b, k->w, d), NULL);
    x = build_add(b, x, build_slice(b, bias, 0, 0, GH));
    of.xw = build_reshape_to(b, x, 3, gates);
    if (!of.xw || !of.r || !of.rb || !first[0] || (count == 2 && !first[1]) ||
        !onnx_rounds(n, k->T, (uint32_t)count, first, 1, step, &of, out))
        return false;
    y = out[count];
    if (reverse && (y = reversed(b, k, y)) && k->lens) {
        on = build_expand_dims(b, build_less(b, steps(b, k), k->lens), 2, 1);
        y = build_where(b, on, y, build_scalar(b, y, 0));
    }
    out[count] = y;
    return y != NULL;
}

/* Dimension 0 or 1 is that of directions. */
static const Expr *together(const Build *b, const OnnxRecurrent *k, const Expr *const *x,
                            int64_t axis)
{
    const Expr *all[2] = {NULL};

    for (int64_t d = 0; d < k->D; d++)
        all[d] = x[d] ? build_expand_dims(b, x[d], axis, 1) : NULL;
    return build_concat(b, (uint32_t)k->D, all, axis);
}

bool onnx_recurrent_loop(Node *n, const OnnxRecurrent *k, const Expr **out)
{
    const Build *b = &n->b;
    const Expr  *y[2], *h[2], *c[2];
    bool         lstm_cell = k->gates == 4;

    for (int64_t d = 0; d < k->D; d++) {
        const Expr *made[3];

        if (!run(n, k, d, d == 1 || !strcmp(k->direction, "reverse"), made))
            return false;
        h[d] = made[0];
        c[d] = made[1];
        y[d] = made[lstm_cell ? 2 : 1];
    }
    out[0] = together(b, k, y, 1);
    out[1] = together(b, k, h, 0);
    out[2] = lstm_cell ? together(b, k, c, 0) : NULL;
    return out[0] && out[1];
}
