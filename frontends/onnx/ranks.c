/* Values of which a run decides how many dimensions they have.
 *
 *     step = If (D_is_one) { 0.0 } else { 2 / (D - 1) }       // [] or [1], as exporters write it
 *
 * A branch may give one cell in fewer dimensions than the other.  Both then have those of the
 * larger rank, 1 each, and the value is noted: what broadcasts it to an operand of at least that
 * rank has the same result either way.  What has not may be broadcast on; anything else that reads
 * such a value, and the outputs of the model, would show a rank that is not its own, and are
 * refused. */
#include "frontends/onnx/onnx.h"

bool onnx_join_ranks(Node *n, const Expr **x, const Expr **y)
{
    const Expr **few = x, *many = *y;

    if (onnx_is_string(n->im, *x) || onnx_is_string(n->im, *y) || !expr_has_shape(*x) ||
        !expr_has_shape(*y) || expr_rank(*x) == expr_rank(*y) || !expr_single(*x) ||
        !expr_single(*y) || !dtype_eq(expr_dtype(*x), expr_dtype(*y)))
        return false;
    if (expr_rank(*x) > expr_rank(*y)) {
        few = y;
        many = *x;
    }
    *few = build_reshape_to(&n->b, *few, expr_rank(many), expr_forms(many).at);
    return true;
}

void onnx_note_ranks(Import *im, const Expr *e)
{
    map_put(im->ranks, PTR_KEY(e), im->ranks);
}

bool onnx_has_ranks(const Import *im, const Expr *e)
{
    return map_get(im->ranks, PTR_KEY(e)) != NULL;
}

bool node_ranks(Node *n, const char *relay, bool *noted)
{
    const Op *op = relay ? op_find(n->b.c, relay) : NULL;
    bool      broadcasts = op && (op->fusion == FUSE_BROADCAST || op->fusion == FUSE_ELEMWISE);
    uint32_t  most = 0, known = 0;

    *noted = false;
    for (uint32_t i = 0; i < n->nin; i++) {
        const Expr *e = n->in[i];
        bool        open = e && onnx_has_ranks(n->im, e);

        if (open && !broadcasts)
            return node_error(n, E_UNSUPPORTED,
                              "the run decides how many dimensions input %u has, at most %u", i,
                              expr_rank(e));
        if (!e || !expr_has_shape(e))
            continue;
        *noted |= open;
        if (open)
            most = expr_rank(e) > most ? expr_rank(e) : most;
        else
            known = expr_rank(e) > known ? expr_rank(e) : known;
    }
    *noted &= most > known;
    return true;
}
