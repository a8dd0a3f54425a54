/* Control flow, and what is kept from run to run. */
#include "frontends/coreml/coreml.h"

#include <string.h>

/* ---- states ----------------------------------------------------------------------------------------- */

bool cml_state(CmlImport *im, CmlScope *s, const CmlNamed *in)
{
    Ctx                 *c = im->c;
    Loc                  loc = {.file = im->path};
    const CmlType       *of = in->type->state->type;
    const CmlTensorType *t = of ? of->tensor : NULL;
    const char          *name = intern(c->strings, in->name);
    int64_t              dims[MAX_RANK];
    DType                type;
    const Expr          *x;

    if (!t || !cml_dtype(t->type, &type) || t->dims.n > MAX_RANK)
        return error_at(c, E_UNSUPPORTED, loc, "state '%s' is no tensor", name);
    for (uint32_t i = 0; i < t->dims.n; i++) {
        const CmlDim *d = t->dims.at[i];

        if (!d->constant || d->constant->size < 1)
            return error_at(c, E_UNSUPPORTED, loc, "the size of state '%s' is not known", name);
        dims[i] = d->constant->size;
    }
    x = expr_var(c, name, type_tensor_i64(c, type, t->dims.n, dims), loc);
    vec_push(c->arena, &im->params.names, name);
    vec_push(c->arena, &im->params.at, x);
    vec_push(c->arena, &im->next.names, name);
    vec_push(c->arena, &im->next.at, x);
    cml_put(s, name, (CmlValue){.e = x});
    return x != NULL;
}

bool cml_states_end(CmlImport *im)
{
    for (uint32_t i = 0; i < im->next.names.n; i++)
        im->next.names.at[i] = intern_printf(im->c->strings, "%s_out", im->next.names.at[i]);
    return true;
}

const Idx *cml_bound(void *user, const Expr *total, int64_t most)
{
    CmlNode    *n = user;
    const Expr *bind;
    const Idx  *d =
        build_bound_dim(&n->b, &n->im->shapes,
                        intern_printf(n->b.c->strings, "%s.0", n->b.loc.name), total, most, &bind);

    if (d)
        vec_push(n->b.c->arena, &n->im->binds, bind);
    return d;
}
