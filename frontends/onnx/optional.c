/* Optional values: Optional, OptionalGetElement, OptionalHasElement.
 *
 * A value that is certainly there is itself.  Another one is a pair of a bool and what it would be;
 * taking it where it is not there ends the run. */
#include "frontends/onnx/onnx.h"

const Expr *onnx_optional_new(Import *im, Loc loc, OnnxOptional o)
{
    const Expr *parts[] = {o.given, o.value}, *e = expr_tuple(im->c, o.value ? 2 : 1, parts, loc);

    map_put(im->optionals, PTR_KEY(e), DUP_ARRAY(im->c->arena, &o, 1));
    return e;
}

const OnnxOptional *onnx_optional(const Import *im, const Expr *e)
{
    return map_get(im->optionals, PTR_KEY(e));
}

bool convert_optional(Node *n)
{
    uint8_t no = 0;

    node_ignore(n, "type"); /* what a value that is there has */
    if (node_has(n, 0))
        return node_done(n, n->in[0]);
    OnnxOptional none = {build_const(&n->b, DT_BOOL, 0, NULL, &no), NULL};
    return node_done(n, onnx_optional_new(n->im, n->b.loc, none));
}

bool convert_get_element(Node *n)
{
    const Build        *b = &n->b;
    const OnnxOptional *o = node_has(n, 0) ? onnx_optional(n->im, n->in[0]) : NULL;
    int64_t             one = 1;
    const Idx          *there;

    if (!node_has(n, 0))
        return node_error(n, E_IMPORT, "input 0 is missing");
    if (!o)
        return node_done(n, n->in[0]);
    if (!o->value) {
        node_error(n, E_DIM, "nothing says the shape of the optional value");
        diag_hint(b->c->diags, "of an input it is given by --shape '%s:[..]'", n->p->input.at[0]);
        return false;
    }
    RunDim d = {build_reshape(b, build_cast(b, o->given, DT_I64), 1, &one), 1,
                idx_const(b->c->arith, 1), 0, 1};
    return onnx_bind(n, 0, 1, &d, &there) && node_done(n, o->value);
}

bool convert_has_element(Node *n)
{
    const OnnxOptional *o = node_has(n, 0) ? onnx_optional(n->im, n->in[0]) : NULL;
    uint8_t             yes = node_has(n, 0);

    return node_done(n, o ? o->given : build_const(&n->b, DT_BOOL, 0, NULL, &yes));
}
