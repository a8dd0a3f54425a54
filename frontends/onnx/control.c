/* Control flow.  A condition that is a constant chooses at import; another becomes Relay's `if`.
 * Loops whose number of trips is known are unrolled, as is Scan, whose length is a dimension. */
#include "frontends/onnx/onnx.h"

#include <string.h>

#define MAX_TRIPS 1024

/* One number of a constant; false if e is none. */
static bool known(Node *n, const Expr *e, int64_t *v)
{
    const Expr *k = build_fold(&n->b, e);
    Ints        at;

    if (!k || !expr_ints(n->b.c, k, &at) || at.n != 1)
        return false;
    *v = at.at[0];
    return true;
}

bool convert_if(Node *n)
{
    const Build     *b = &n->b;
    const OnnxGraph *g[2] = {node_graph(n, "then_branch"), node_graph(n, "else_branch")};
    const Expr     **out[2], *cond, *both[2], *result;
    int64_t          v;

    if (!g[0] || !g[1] || !node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    if (g[0]->output.n < n->nout || g[1]->output.n < n->nout)
        return node_error(n, E_IMPORT, "its branches have %u and %u outputs, not %u",
                          g[0]->output.n, g[1]->output.n, n->nout);
    cond = n->in[0];
    if (!dtype_is_bool(expr_dtype(cond)) || !expr_single(cond))
        return node_error(n, E_IMPORT, "the condition is %s, not one bool",
                          type_text(b->c, cond->type));
    for (uint32_t i = 0; i < 2; i++)
        out[i] = NEW_ARRAY(b->c->arena, const Expr *, g[i]->output.n + 1);
    if (known(n, cond, &v)) {
        if (!onnx_subgraph(n, g[v ? 0 : 1], 0, NULL, out[0]))
            return false;
        memcpy(n->out, out[0], n->nout * sizeof *n->out);
        return true;
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (!onnx_subgraph(n, g[i], 0, NULL, out[i]))
            return false;
        both[i] = n->nout == 1 ? out[i][0] : expr_tuple(b->c, n->nout, out[i], b->loc);
    }
    for (uint32_t i = 0; i < n->nout; i++)
        if (out[0][i]->type != out[1][i]->type) {
            node_error(n, E_UNSUPPORTED, "output %u has another type in each branch", i);
            diag_note(b->c->diags, b->loc, "%s, or else %s", type_text(b->c, out[0][i]->type),
                      type_text(b->c, out[1][i]->type));
            return false;
        }
    cond = build_reshape(b, cond, 0, NULL);
    result = cond ? expr_if(b->c, cond, both[0], both[1], b->loc) : NULL;
    if (!result || n->nout == 1)
        return node_done(n, result);
    for (uint32_t i = 0; i < n->nout; i++)
        if (!(n->out[i] = build_proj(b, result, i)))
            return false;
    return true;
}

/* Pieces of a scan output, with a new dimension at `axis`. */
typedef VEC(const Expr *) Pieces;

static const Expr *stack(Node *n, const Pieces *p, int64_t axis, bool reverse)
{
    const Build *b = &n->b;
    const Expr **xs = NEW_ARRAY(b->c->arena, const Expr *, p->n + 1);
    int64_t      rank;

    if (p->n == 0)
        return node_error(n, E_UNSUPPORTED, "a loop that never runs has a scan output");
    rank = expr_rank(p->at[0]) + 1;
    if (axis < -rank || axis >= rank)
        return node_error(n, E_IMPORT, "scan output axis %lld", (long long)axis);
    for (uint32_t i = 0; i < p->n; i++)
        xs[reverse ? p->n - 1 - i : i] =
            build_expand_dims(b, p->at[i], axis < 0 ? axis + rank : axis, 1);
    return build_concat(b, p->n, xs, axis < 0 ? axis + rank : axis);
}

/* Body: (iteration, condition, state ..) -> (condition, state .., scan outputs ..). */
bool convert_loop(Node *n)
{
    const Build     *b = &n->b;
    const OnnxGraph *g = node_graph(n, "body");
    int64_t          trips = INT64_MAX, go = 1;
    uint32_t         states = n->nin > 2 ? n->nin - 2 : 0, nout;
    const Expr     **in, **out;
    Pieces          *pieces;

    if (!g)
        return false;
    if (node_has(n, 0) && !known(n, n->in[0], &trips)) {
        node_error(n, E_UNSUPPORTED, "a loop whose number of trips is known only at run time");
        return false;
    }
    if (node_has(n, 1) && !known(n, n->in[1], &go))
        return node_error(n, E_UNSUPPORTED, "a loop whose condition is known only at run time");
    nout = g->output.n;
    if (nout < states + 1 || n->nout > nout - 1)
        return node_error(n, E_IMPORT, "its body has %u outputs for %u states", nout, states);
    in = NEW_ARRAY(b->c->arena, const Expr *, states + 2);
    out = NEW_ARRAY(b->c->arena, const Expr *, nout + 1);
    pieces = NEW_ARRAY(b->c->arena, Pieces, nout + 1);
    for (uint32_t i = 0; i < states; i++)
        if (!node_has(n, i + 2))
            return node_error(n, E_IMPORT, "input %u is missing", i + 2);
        else
            in[i + 2] = n->in[i + 2];
    for (int64_t t = 0; t < trips && go; t++) {
        uint8_t yes = 1;

        if (t == MAX_TRIPS)
            return node_error(n, E_UNSUPPORTED, "a loop of more than %d trips", MAX_TRIPS);
        in[0] = build_const(b, DT_I64, 0, NULL, &t);
        in[1] = build_const(b, DT_BOOL, 0, NULL, &yes);
        if (!onnx_subgraph(n, g, states + 2, in, out))
            return false;
        if (!known(n, out[0], &go))
            return node_error(n, E_UNSUPPORTED, "a loop whose condition is known only at run time");
        for (uint32_t i = 0; i < states; i++)
            in[i + 2] = out[1 + i];
        for (uint32_t i = 1 + states; i < nout; i++)
            vec_push(b->c->arena, &pieces[i], out[i]);
    }
    for (uint32_t i = 0; i < n->nout; i++) {
        n->out[i] = i < states ? in[i + 2] : stack(n, &pieces[i + 1], 0, false);
        if (!n->out[i])
            return false;
    }
    return true;
}

static int64_t at_or(Ints v, bool given, uint32_t i, int64_t fallback)
{
    return given && i < v.n ? v.at[i] : fallback;
}

/* Body: (state .., slice of each scan input ..) -> (state .., slice of each scan output ..). */
bool convert_scan(Node *n)
{
    const Build     *b = &n->b;
    const OnnxGraph *g = node_graph(n, "body");
    int64_t          scans = node_int(n, "num_scan_inputs", 0), steps = -1;
    uint32_t         states, nout, axis[MAX_RANK * 4];
    Ints             ia = {0}, id = {0}, oa = {0}, od = {0};
    bool             has_ia = node_ints(n, "scan_input_axes", &ia);
    bool             has_id = node_ints(n, "scan_input_directions", &id);
    bool             has_oa = node_ints(n, "scan_output_axes", &oa);
    bool             has_od = node_ints(n, "scan_output_directions", &od);
    const Expr     **in, **out;
    Pieces          *pieces;

    if (!g)
        return false;
    if (scans < 1 || scans > n->nin || scans > (int64_t)COUNT(axis))
        return node_error(n, E_IMPORT, "num_scan_inputs is %lld", (long long)scans);
    states = n->nin - (uint32_t)scans;
    nout = g->output.n;
    if (nout < states || n->nout > nout)
        return node_error(n, E_IMPORT, "its body has %u outputs for %u states", nout, states);
    for (uint32_t i = 0; i < scans; i++) {
        if (!node_need_rank(n, states + i, 1, MAX_RANK) ||
            !node_axis(n, at_or(ia, has_ia, i, 0), expr_rank(n->in[states + i]), &axis[i]))
            return false;
        if (steps >= 0 && build_dim(b, n->in[states + i], axis[i]) != steps)
            return node_error(n, E_IMPORT, "scan inputs differ in length");
        steps = build_dim(b, n->in[states + i], axis[i]);
    }
    if (steps > MAX_TRIPS)
        return node_error(n, E_UNSUPPORTED, "%lld steps: at most %d are unrolled", (long long)steps,
                          MAX_TRIPS);
    in = NEW_ARRAY(b->c->arena, const Expr *, n->nin + 1);
    out = NEW_ARRAY(b->c->arena, const Expr *, nout + 1);
    pieces = NEW_ARRAY(b->c->arena, Pieces, nout + 1);
    for (uint32_t i = 0; i < states; i++)
        if (!(in[i] = node_has(n, i) ? n->in[i] : NULL))
            return node_error(n, E_IMPORT, "input %u is missing", i);
    for (int64_t t = 0; t < steps; t++) {
        for (uint32_t i = 0; i < scans; i++) {
            const Expr *x = n->in[states + i];
            int64_t     at = at_or(id, has_id, i, 0) ? steps - 1 - t : t, dims[MAX_RANK];
            uint32_t    k = 0;

            for (uint32_t j = 0; j < expr_rank(x); j++)
                if (j != axis[i])
                    dims[k++] = build_dim(b, x, j);
            x = build_reshape(b, build_slice(b, x, axis[i], at, at + 1), k, dims);
            if (!(in[states + i] = x))
                return false;
        }
        if (!onnx_subgraph(n, g, n->nin, in, out))
            return false;
        memcpy(in, out, states * sizeof *in);
        for (uint32_t i = states; i < nout; i++)
            vec_push(b->c->arena, &pieces[i], out[i]);
    }
    for (uint32_t i = 0; i < n->nout; i++) {
        n->out[i] = i < states ? in[i]
                               : stack(n, &pieces[i], at_or(oa, has_oa, i - states, 0),
                                       at_or(od, has_od, i - states, 0) != 0);
        if (!n->out[i])
            return false;
    }
    return true;
}
