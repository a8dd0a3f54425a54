/* The module of a model: its function main from inputs, results, and what was made on the way. */
#include "frontends/common.h"

bool result_add(Ctx *c, NamedValues *r, const char *name, const Expr *v, Loc loc)
{
    for (uint32_t i = 0; i < r->names.n; i++)
        if (r->names.at[i] == name)
            return error_at(c, E_IMPORT, loc, "output '%s' is there twice", name);
    if (!v || !expr_has_shape(v))
        return v ? error_at(c, E_UNSUPPORTED, loc, "output '%s' is no tensor", name) != NULL
                 : false;
    vec_push(c->arena, &r->names, name);
    vec_push(c->arena, &r->at, v);
    return true;
}

const Module *build_module(Ctx *c, const char *path, const NamedValues *params,
                           const NamedValues *results, uint32_t nbinds, const Expr *const *binds,
                           GlobalDefs *functions)
{
    Loc         loc = {.file = path};
    Module      like = {.file = path};
    const Expr *body, *func;

    body =
        results->at.n == 1 ? results->at.at[0] : expr_tuple(c, results->at.n, results->at.at, loc);
    while (body && nbinds-- > 0) {
        const Expr *bind = binds[nbinds];

        body = expr_let(c, expr_var(c, "dims", bind->type, bind->loc), bind, body, bind->loc);
    }
    if (!body || !(func = expr_func(c, params->at.n, params->at.at, body, (FuncData){0}, loc)))
        return NULL;
    vec_push(c->arena, functions, ((GlobalDef){intern(c->strings, "main"), func}));
    like.output_names = results->names.at;
    like.noutputs = results->names.n;
    return module_new(c, &like, functions->n, functions->at);
}
