/* Control flow.  A condition that is a constant chooses at import; another becomes Relay's `if`.
 * Loops are functions of the module (loop.c); short ones, and those whose values change their sizes
 * from round to round, are written out if the number of rounds is known. */
#include "frontends/onnx/onnx.h"

#include <string.h>

#define MAX_TRIPS 1024
#define UNROLLED_NODES 64 /* of all rounds of a short loop */

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

/* One branch, as the tensors that hold what either gives. */
static const Expr *branch_tuple(Node *n, OnnxPack *const *packs, const Expr *const *out,
                                const OnnxBinds *binds)
{
    const Build *b = &n->b;
    OnnxParts    parts = {0};

    for (uint32_t i = 0; i < n->nout; i++)
        pack_value(n->im, b, packs[i], out[i], &parts);
    for (uint32_t i = 0; i < parts.n; i++)
        if (!parts.at[i])
            return NULL;
    return onnx_binds_around(
        n->im, binds, parts.n == 1 ? parts.at[0] : expr_tuple(b->c, parts.n, parts.at, b->loc));
}

/* Of outputs that differ in their sizes: what holds both. */
static bool join_branches(Node *n, const Expr **const *out, const Map *const *inner,
                          OnnxPack **packs, bool *ranks)
{
    const Build *b = &n->b;

    for (uint32_t i = 0; i < n->nout; i++) {
        bool noted = onnx_has_ranks(n->im, out[0][i]) || onnx_has_ranks(n->im, out[1][i]);

        ranks[i] = onnx_join_ranks(n, &out[0][i], &out[1][i]) || noted;
        packs[i] = pack_join(b->c, pack_of(n->im, out[0][i], inner[0]),
                             pack_of(n->im, out[1][i], inner[1]));
        if (packs[i])
            continue;
        node_error(n, E_UNSUPPORTED, "output %u has another type in each branch", i);
        diag_note(b->c->diags, b->loc, "%s, or else %s", type_text(b->c, out[0][i]->type),
                  type_text(b->c, out[1][i]->type));
        return false;
    }
    return true;
}

bool convert_if(Node *n)
{
    const Build     *b = &n->b;
    const OnnxGraph *g[2] = {node_graph(n, "then_branch"), node_graph(n, "else_branch")};
    const Expr     **out[2], *cond, *both[2], *result;
    const Map       *inner[2];
    OnnxBinds        binds[2];
    OnnxPack       **packs = NEW_ARRAY(b->c->arena, OnnxPack *, n->nout + 1);
    OnnxParts        parts = {0};
    bool            *ranks = NEW_ARRAY(b->c->arena, bool, n->nout + 1);
    uint32_t         bound = n->im->binds.n, count;
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
            return build_no_branch(b, n->im->shapes, cond, i ? NO_ELSE_BRANCH : NO_THEN_BRANCH);
        inner[i] = onnx_bound_since(n->im, bound);
        binds[i] = onnx_binds_taken(n->im, bound);
    }
    if (!join_branches(n, out, inner, packs, ranks))
        return build_no_branch(b, n->im->shapes, cond, BRANCHES_DIFFER);
    for (uint32_t i = 0; i < 2; i++)
        if (!(both[i] = branch_tuple(n, packs, out[i], &binds[i])))
            return false;
    cond = build_reshape(b, cond, 0, NULL);
    result = cond ? expr_if(b->c, cond, both[0], both[1], b->loc) : NULL;
    if (!result)
        return false;
    count = result->type->kind == TYPE_TUPLE ? result->type->n : 1;
    for (uint32_t i = 0; i < count; i++)
        vec_push(b->c->arena, &parts,
                 result->type->kind == TYPE_TUPLE ? build_proj(b, result, i) : result);
    const Expr *const *at = parts.at;
    for (uint32_t i = 0; i < n->nout; i++) {
        if (!(n->out[i] = pack_back(n, packs[i], &at, i)))
            return false;
        if (ranks[i])
            onnx_note_ranks(n->im, n->out[i]);
    }
    return true;
}

/* Pieces of a scan output, with a new dimension at `axis`. */
typedef VEC(const Expr *) Pieces;

static const Expr *stack(Node *n, const Pieces *p, int64_t axis, bool reverse)
{
    const Build *b = &n->b;
    const Expr **xs = NEW_ARRAY(b->c->arena, const Expr *, p->n + 1), *all;
    const Idx   *room;
    int64_t      rank;
    bool         text;

    if (p->n == 0)
        return node_error(n, E_UNSUPPORTED, "a loop that never runs has a scan output");
    text = onnx_is_string(n->im, p->at[0]);
    room = text ? string_common_room(b, p->n, p->at) : NULL;
    rank = expr_rank(p->at[0]) + 1 - text;
    if (axis < -rank || axis >= rank)
        return node_error(n, E_IMPORT, "scan output axis %lld", (long long)axis);
    axis = axis < 0 ? axis + rank : axis;
    for (uint32_t i = 0; i < p->n; i++) {
        const Expr *x = text ? string_fitted(b, p->at[i], room) : p->at[i];

        if (!x)
            return NULL;
        xs[reverse ? p->n - 1 - i : i] = build_expand_dims(b, x, axis, 1);
    }
    all = build_concat(b, p->n, xs, axis);
    return text ? onnx_string(n->im, all) : all;
}

/* ---- loops --------------------------------------------------------------------------------------- */

static uint64_t count_nodes(const OnnxGraph *g)
{
    uint64_t n = g->node.n;

    for (uint32_t i = 0; i < g->node.n; i++) {
        const OnnxNode *p = g->node.at[i];

        for (uint32_t k = 0; k < p->attribute.n; k++) {
            const OnnxAttr *a = p->attribute.at[k];
            n += a->g ? count_nodes(a->g) : 0;
        }
    }
    return n;
}

/* What is computed across rounds counts for more than what each of them costs in itself. */
static bool is_short(const OnnxGraph *g, int64_t trips)
{
    return trips <= 1 || (trips <= MAX_TRIPS && (uint64_t)trips * count_nodes(g) <= UNROLLED_NODES);
}

typedef bool Unroll(Node *n, const OnnxLoop *l, int64_t trips);

/* As a function, or written out: first as suits its length, then the other way; of errors what the
 * function's are.  `trips`: INT64_MAX if not known. */
static bool convert_rounds(Node *n, const OnnxLoop *l, int64_t trips, Unroll *unroll)
{
    Import  *im = n->im;
    Diags   *d = n->b.c->diags;
    uint32_t begin = diag_count(d), first, functions = im->functions.n, bound = im->binds.n;
    bool     is_known = trips != INT64_MAX, brief = is_known && is_short(l->g, trips);

    /* Elements of a sequence keep their own shapes where it is written out. */
    for (uint32_t i = 0; is_known && trips <= MAX_TRIPS && i < l->states; i++)
        brief |= is_sequence(im, l->first[i]);

    if (brief ? unroll(n, l, trips) : onnx_loop(n, l, n->out))
        return true;
    if (!is_known || trips > MAX_TRIPS)
        return false;
    first = diag_count(d);
    im->functions.n = functions;
    im->binds.n = bound;
    if (brief ? onnx_loop(n, l, n->out) : unroll(n, l, trips)) {
        diag_cut(d, begin, first);
        return true;
    }
    diag_cut(d, brief ? begin : first, brief ? first : diag_count(d));
    return false;
}

/* ---- Loop: (round, condition, state ..) -> (condition, state .., scan outputs ..) ---------------- */

static bool unroll_loop(Node *n, const OnnxLoop *l, int64_t trips)
{
    const Build *b = &n->b;
    int64_t      go = 1;
    uint32_t     nout = l->g->output.n;
    const Expr **in = NEW_ARRAY(b->c->arena, const Expr *, l->states + 2);
    const Expr **out = NEW_ARRAY(b->c->arena, const Expr *, nout + 1);
    Pieces      *pieces = NEW_ARRAY(b->c->arena, Pieces, nout + 1);

    if (l->go && !known(n, l->go, &go))
        return node_error(n, E_UNSUPPORTED, "a loop whose condition is known only at run time");
    for (uint32_t i = 0; i < l->states; i++)
        in[i + 2] = l->first[i];
    for (int64_t t = 0; t < trips && go; t++) {
        uint8_t yes = 1;

        in[0] = build_const(b, DT_I64, 0, NULL, &t);
        in[1] = build_const(b, DT_BOOL, 0, NULL, &yes);
        if (!onnx_subgraph(n, l->g, l->states + 2, in, out))
            return false;
        if (!known(n, out[0], &go))
            return node_error(n, E_UNSUPPORTED, "a loop whose condition is known only at run time");
        for (uint32_t i = 0; i < l->states; i++)
            in[i + 2] = out[1 + i];
        for (uint32_t i = 1 + l->states; i < nout; i++)
            vec_push(b->c->arena, &pieces[i], out[i]);
    }
    for (uint32_t i = 0; i < n->nout; i++) {
        n->out[i] = i < l->states ? in[i + 2] : stack(n, &pieces[i + 1], 0, false);
        if (!n->out[i])
            return false;
    }
    return true;
}

/* The number of rounds, as a form if it is made of dimensions. */
static const Idx *trips_form(const Build *b, const Expr *limit)
{
    Dims d;

    return limit && build_forms(b, limit, &d) && d.n == 1 ? d.at[0] : NULL;
}

bool convert_loop(Node *n)
{
    const Build *b = &n->b;
    OnnxLoop     l = {.g = node_graph(n, "body"), .states = n->nin > 2 ? n->nin - 2 : 0};
    int64_t      trips = INT64_MAX, go;
    uint32_t     nout;

    if (!l.g)
        return false;
    nout = l.g->output.n;
    if (nout < l.states + 1 || n->nout > nout - 1)
        return node_error(n, E_IMPORT, "its body has %u outputs for %u states", nout, l.states);
    for (uint32_t i = 0; i < l.states; i++)
        if (!node_has(n, i + 2))
            return node_error(n, E_IMPORT, "input %u is missing", i + 2);
    for (uint32_t i = 0; i < 2; i++)
        if (node_has(n, i) && (!expr_has_shape(n->in[i]) || !expr_single(n->in[i])))
            return node_error(n, E_IMPORT, "input %u is %s, not one number", i,
                              type_text(b->c, n->in[i]->type));
    l.first = n->in + 2;
    l.pieces = n->nout > l.states ? n->nout - l.states : 0;
    l.go = node_has(n, 1) ? n->in[1] : NULL;
    if (node_has(n, 0)) {
        l.limit = build_reshape(b, n->in[0], 0, NULL);
        l.trips = trips_form(b, n->in[0]);
        if (known(n, n->in[0], &trips) && trips < 0)
            trips = 0;
    }
    if (l.go && known(n, l.go, &go) && !go)
        trips = 0;
    return l.limit || !node_has(n, 0) ? convert_rounds(n, &l, trips, unroll_loop) : false;
}

/* ---- Scan: (state .., slice of each scan input ..) -> (state .., piece of each scan output ..) --- */

static int64_t at_or(Ints v, bool given, uint32_t i, int64_t fallback)
{
    return given && i < v.n ? v.at[i] : fallback;
}

static bool unroll_scan(Node *n, const OnnxLoop *l, int64_t trips)
{
    const Build *b = &n->b;
    uint32_t     nout = l->g->output.n;
    const Expr **in = NEW_ARRAY(b->c->arena, const Expr *, l->states + l->slices + 1);
    const Expr **out = NEW_ARRAY(b->c->arena, const Expr *, nout + 1);
    Pieces      *pieces = NEW_ARRAY(b->c->arena, Pieces, nout + 1);

    for (uint32_t i = 0; i < l->states; i++)
        in[i] = l->first[i];
    for (int64_t t = 0; t < trips; t++) {
        for (uint32_t i = 0; i < l->slices; i++) {
            const Expr *x = l->x[i];
            int64_t     at = l->x_reverse[i] ? trips - 1 - t : t, dims[MAX_RANK];
            uint32_t    k = 0;

            for (uint32_t j = 0; j < expr_rank(x); j++)
                if (j != l->x_axis[i])
                    dims[k++] = build_dim(b, x, j);
            x = build_reshape(b, build_slice(b, x, l->x_axis[i], at, at + 1), k, dims);
            if (!(in[l->states + i] = x))
                return false;
        }
        if (!onnx_subgraph(n, l->g, l->states + l->slices, in, out))
            return false;
        memcpy(in, out, l->states * sizeof *in);
        for (uint32_t i = l->states; i < nout; i++)
            vec_push(b->c->arena, &pieces[i], out[i]);
    }
    for (uint32_t i = 0; i < n->nout; i++) {
        uint32_t k = i - l->states;

        n->out[i] =
            i < l->states ? in[i] : stack(n, &pieces[i], l->piece_axis[k], l->piece_reverse[k]);
        if (!n->out[i])
            return false;
    }
    return true;
}

bool convert_scan(Node *n)
{
    const Build *b = &n->b;
    OnnxLoop     l = {.g = node_graph(n, "body"), .scan = true, .x = n->in, .first = n->in};
    int64_t      scans = node_int(n, "num_scan_inputs", 0), trips = INT64_MAX, *axis;
    uint32_t    *x_axis = NEW_ARRAY(b->c->arena, uint32_t, n->nin + 1), nout;
    bool        *reverse = NEW_ARRAY(b->c->arena, bool, n->nin + 1), *backwards;
    Ints         ia = {0}, id = {0}, oa = {0}, od = {0};
    bool         has_ia = node_ints(n, "scan_input_axes", &ia);
    bool         has_id = node_ints(n, "scan_input_directions", &id);
    bool         has_oa = node_ints(n, "scan_output_axes", &oa);
    bool         has_od = node_ints(n, "scan_output_directions", &od);

    if (!l.g)
        return false;
    if (scans < 1 || scans > n->nin)
        return node_error(n, E_IMPORT, "num_scan_inputs is %lld", (long long)scans);
    l.slices = (uint32_t)scans;
    l.states = n->nin - l.slices;
    nout = l.g->output.n;
    if (nout < l.states || n->nout > nout)
        return node_error(n, E_IMPORT, "its body has %u outputs for %u states", nout, l.states);
    l.x = n->in + l.states;
    for (uint32_t i = 0; i < l.states; i++)
        if (!node_has(n, i))
            return node_error(n, E_IMPORT, "input %u is missing", i);
    for (uint32_t i = 0; i < l.slices; i++) {
        if (!node_need_rank(n, l.states + i, 1, MAX_RANK) ||
            !node_axis(n, at_or(ia, has_ia, i, 0), expr_rank(l.x[i]), &x_axis[i]))
            return false;
        const Idx *length = expr_form(l.x[i], x_axis[i]);
        if (l.trips && length != l.trips)
            return node_error(n, E_IMPORT, "scan inputs differ in length");
        l.trips = length;
        reverse[i] = at_or(id, has_id, i, 0) != 0;
    }
    axis = NEW_ARRAY(b->c->arena, int64_t, nout + 1);
    backwards = NEW_ARRAY(b->c->arena, bool, nout + 1);
    l.pieces = n->nout > l.states ? n->nout - l.states : 0;
    for (uint32_t i = 0; i < l.pieces; i++) {
        axis[i] = at_or(oa, has_oa, i, 0);
        backwards[i] = at_or(od, has_od, i, 0) != 0;
    }
    l.x_axis = x_axis;
    l.x_reverse = reverse;
    l.piece_axis = axis;
    l.piece_reverse = backwards;
    l.limit = build_values(b, type_tensor(b->c, DT_I64, 0, NULL), (Dims){1, &l.trips});
    if (!idx_is_const(l.trips, &trips))
        trips = INT64_MAX;
    return l.limit && convert_rounds(n, &l, trips, unroll_scan);
}

/* Opset 8: (lengths, state .., x ..), of which each but the first has a batch as its first
 * dimension, and x the steps as its second one. */
static bool scan_element(Node *n, void *user, const Expr *const *in, const Expr **out)
{
    OnnxLoop *l = user;
    int64_t   trips;

    l->first = in;
    l->x = in + l->states;
    for (uint32_t i = 0; i < l->slices; i++) {
        if (expr_rank(l->x[i]) < 1 || (l->trips && expr_form(l->x[i], 0) != l->trips))
            return node_error(n, E_IMPORT, "scan inputs differ in length");
        l->trips = expr_form(l->x[i], 0);
    }
    l->limit = build_values(&n->b, type_tensor(n->b.c, DT_I64, 0, NULL), (Dims){1, &l->trips});
    if (!idx_is_const(l->trips, &trips))
        trips = INT64_MAX;
    if (!l->limit || !convert_rounds(n, l, trips, unroll_scan))
        return false;
    memcpy(out, n->out, (l->states + l->pieces) * sizeof *out);
    return true;
}

bool convert_scan_batches(Node *n)
{
    const Build *b = &n->b;
    OnnxLoop     l = {.g = node_graph(n, "body"), .scan = true};
    int64_t      scans = node_int(n, "num_scan_inputs", 0);
    bool        *reverse = NEW_ARRAY(b->c->arena, bool, n->nin + 1);
    Ints         directions = {0};
    bool         has = node_ints(n, "directions", &directions);
    const Expr **out = NEW_ARRAY(b->c->arena, const Expr *, n->nout + 1);
    uint32_t     all = n->nin - 1;

    if (!l.g)
        return false;
    if (node_has(n, 0))
        return node_error(n, E_UNSUPPORTED, "elements of a batch with lengths of their own");
    if (n->nin < 2 || scans < 1 || scans > all)
        return node_error(n, E_IMPORT, "num_scan_inputs is %lld", (long long)scans);
    l.slices = (uint32_t)scans;
    l.states = all - l.slices;
    if (l.g->output.n < n->nout || n->nout < l.states)
        return node_error(n, E_IMPORT, "its body has %u outputs for %u states", l.g->output.n,
                          l.states);
    l.pieces = n->nout - l.states;
    for (uint32_t i = 1; i < n->nin; i++) {
        if (!node_need_rank(n, i, 1, MAX_RANK))
            return false;
        if (expr_form(n->in[i], 0) != expr_form(n->in[1], 0))
            return node_error(n, E_IMPORT, "inputs differ in their batch");
    }
    for (uint32_t i = 0; i < l.slices; i++)
        reverse[i] = at_or(directions, has, i, 0) != 0;
    l.x_reverse = reverse;
    l.x_axis = NEW_ARRAY(b->c->arena, uint32_t, n->nin + 1);
    l.piece_axis = NEW_ARRAY(b->c->arena, int64_t, l.pieces + 1);
    l.piece_reverse = NEW_ARRAY(b->c->arena, bool, l.pieces + 1);
    if (!onnx_each(n, expr_form(n->in[1], 0), all, n->in + 1, scan_element, &l, n->nout, out))
        return false;
    memcpy(n->out, out, n->nout * sizeof *out);
    return true;
}
