/* The module of a model: its function main from inputs, results, and what was made on the way. */
#include "frontends/common.h"

bool result_have(const NamedValues *r, const char *name)
{
    for (uint32_t i = 0; i < r->names.n; i++)
        if (r->names.at[i] == name)
            return true;
    return false;
}

const char *state_result(Ctx *c, const char *name)
{
    return intern_printf(c->strings, "%s_out", name);
}

const Expr *state_input(Ctx *c, Shapes *s, Loc loc, const char *name, const Type *type,
                        const Expr *first, NamedValues *params)
{
    InputDim    dims[MAX_RANK];
    uint32_t    rank = type->n;
    const Type *is;
    const Expr *e;
    double      v;

    name = intern(c->strings, name);
    if (result_have(params, name))
        return error_at(c, E_UNSUPPORTED, loc,
                        "the model changes '%s', and an input has that name, too", name);
    diag_warn(
        c->diags, W_STATE_KEPT, loc,
        "the model changes '%s', which is an input%s and, as it is then, the result '%s'", name,
        first && expr_const_f(first, &v) ? intern_printf(c->strings, ", %.9g at first,", v) : "",
        state_result(c, name));
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = (InputDim){-1, NULL};
        (void)type_dim(type, i, &dims[i].value);
    }
    is = shapes_input(s, loc, name, type->dtype, rank, dims);
    if (is && is != type)
        return error_at(c, E_DIM, loc, "the model keeps '%s' as %s", name, type_text(c, type));
    if (!is || !(e = expr_var(c, name, is, loc)))
        return NULL;
    vec_push(c->arena, &params->names, name);
    vec_push(c->arena, &params->at, e);
    return e;
}

bool result_add(Ctx *c, NamedValues *r, const char *name, const Expr *v, Loc loc)
{
    if (result_have(r, name))
        return error_at(c, E_IMPORT, loc, "output '%s' is there twice", name);
    if (!v || !expr_has_shape(v))
        return v ? error_at(c, E_UNSUPPORTED, loc, "output '%s' is no tensor", name) != NULL
                 : false;
    vec_push(c->arena, &r->names, name);
    vec_push(c->arena, &r->at, v);
    return true;
}

#undef no_tensor
void *no_tensor(Ctx *c, Loc loc, const char *name, uint32_t n, const char *const *names)
{
    const char *near = str_closest(name, names, n);

    error_at(c, E_IMPORT, loc, "the model has no tensor '%s'", name);
    if (near)
        diag_hint(c->diags, "did you mean '%s'?", near);
    else if (n)
        diag_hint(c->diags, "it has %u tensor%s, %s'%s'", n, n > 1 ? "s" : "",
                  n > 1 ? "the last of them " : "", names[n - 1]);
    return NULL;
}
#define no_tensor(...) null_of(no_tensor(__VA_ARGS__))

#undef no_signature
void *no_signature(Ctx *c, Loc loc, const char *name, uint32_t n, const char *const *names)
{
    const char *near = str_closest(name, names, n);
    StrBuf      s = strbuf(c->arena);

    error_at(c, E_IMPORT, loc, "it has no signature '%s'", name);
    if (near)
        str_printf(&s, "did you mean '%s'? ", near);
    for (uint32_t i = 0; i < n; i++)
        str_printf(&s, "%s'%s'", i ? ", " : "--signature=<name> chooses one of ", names[i]);
    if (n)
        diag_hint(c->diags, "%s", s.at);
    return NULL;
}
#define no_signature(...) null_of(no_signature(__VA_ARGS__))

bool results_ask(Ctx *c, NamedValues *r, const ImportOptions *o, const NamedValues *tensors,
                 Loc loc)
{
    for (uint32_t i = 0; i < o->ntensors; i++) {
        const char *name = intern(c->strings, o->tensors[i]);
        uint32_t    k = 0;

        while (k < tensors->names.n && tensors->names.at[k] != name)
            k++;
        if (result_have(r, name))
            continue;
        if (k == tensors->names.n)
            return no_tensor(c, loc, name, k, tensors->names.at);
        if (!result_add(c, r, name, tensors->at.at[k], loc))
            return false;
    }
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
