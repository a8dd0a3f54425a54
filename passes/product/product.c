/* What a product does beside the model: edits of main, right after the import.
 *
 *   fn @main(%data: Tensor[(1, 3, 224, 224), f32]) { f(%data) }        outputs "logits"
 *     -> fn @main(%data: Tensor[(1, 224, 224, 3), u8]) {
 *          %0 = transpose(%data);  %1 = cast(%0);  %2 = subtract(%1, @mean);  %3 = multiply(%2,
 * @std) %4 = f(%3);  %5 = nn.softmax(%4);  (%4, %5) }               outputs "logits",
 * "logits_softmax"
 *
 * Pictures come first, as they only change parameters; then what is added behind results; then the
 * choice of results; states last, as they speak of what is left.  All later passes see an ordinary
 * module, so fusion, layouts and memory planning treat the additions like the model's own nodes. */
#include "passes/product/product.h"

#include <string.h>

/* ---- main, taken apart and put together -------------------------------------------------------- */

static bool add_results(Product *p, const Expr *e, uint32_t depth)
{
    Ctx *c = p->c;

    if (!e->type)
        return error_at(c, E_PASS, p->loc, "the results of 'main' have no types yet");
    if (e->type->kind != TYPE_TUPLE) {
        uint32_t    i = p->results.n;
        const char *name =
            i < p->m->noutputs ? p->m->output_names[i] : intern_printf(c->strings, "output%u", i);
        Result r = {name, e};

        vec_push(c->arena, &p->results, r);
        return true;
    }
    if (depth == 8)
        return error_at(c, E_UNSUPPORTED, p->loc, "the results of 'main' are nested too deeply");
    for (uint32_t i = 0; i < e->type->n; i++) {
        const Expr *field = e->kind == EXPR_TUPLE ? e->kids[i] : expr_proj(c, e, i, e->loc);

        if (!field || !add_results(p, field, depth + 1))
            return false;
    }
    return true;
}

static bool take_apart(Product *p, Ctx *c, const Module *m)
{
    const Expr *f = module_func(m, "main"), *body;

    *p = (Product){.c = c, .m = m};
    if (!f)
        return error_at(c, E_PASS, NO_LOC, "the module has no function 'main'");
    p->loc = f->loc;
    p->nparams = func_nparams(f);
    p->params = NEW_ARRAY(c->arena, const Expr *, p->nparams + 1);
    p->layouts = NEW_ARRAY(c->arena, const char *, p->nparams + 1);
    for (uint32_t i = 0; i < p->nparams; i++) {
        p->params[i] = func_param(f, i);
        p->layouts[i] = m->in_info ? m->in_info[i].layout : NULL;
    }
    for (body = func_body(f); body->kind == EXPR_LET; body = let_body(body))
        vec_push(c->arena, &p->lets, body);
    return add_results(p, body, 0);
}

/* A parameter that an edit replaced stands for itself behind the edit: { new parameter, value }. */
static const Module *put_together(Product *p, const ModuleIO *out_info)
{
    Ctx          *c = p->c;
    const Expr   *f = module_func(p->m, "main"), *body;
    uint32_t      n = p->results.n, changed = 0;
    const Expr  **fields = NEW_ARRAY(c->arena, const Expr *, n + 1);
    const char  **names = NEW_ARRAY(c->arena, const char *, n + 1);
    const Expr  **params = NEW_ARRAY(c->arena, const Expr *, p->nparams + 1);
    const Expr  **from = NEW_ARRAY(c->arena, const Expr *, p->nparams + 1);
    const Expr  **to = NEW_ARRAY(c->arena, const Expr *, p->nparams + 1);
    ModuleIO     *in_info = NEW_ARRAY(c->arena, ModuleIO, p->nparams + 1);
    Module        like = *p->m;
    const Module *m;

    for (uint32_t i = 0; i < n; i++) {
        fields[i] = p->results.at[i].value;
        names[i] = p->results.at[i].name;
    }
    body = n == 1 ? fields[0] : expr_tuple(c, n, fields, p->loc);
    for (uint32_t i = p->lets.n; body && i-- > 0;) {
        const Expr *let = p->lets.at[i];

        body = expr_let(c, let_var(let), let_value(let), body, let->loc);
    }
    for (uint32_t i = 0; i < p->nparams; i++) {
        const Expr *was = func_param(f, i), *now = p->params[i], *var = now;

        while (var->kind != EXPR_VAR) /* the chain of image.c: first arguments down to it */
            var = call_arg(var, 0);
        params[i] = var;
        in_info[i].layout = p->layouts[i];
        if (now != was) {
            from[changed] = was;
            to[changed++] = now;
        }
    }
    if (body && changed)
        body = expr_bind(c, body, changed, from, to);
    f = body ? expr_func(c, p->nparams, params, body, f->u.func, f->loc) : NULL;
    if (!f)
        return NULL;
    like.noutputs = n;
    like.output_names = names;
    like.in_info = in_info;
    like.out_info = out_info;
    m = module_new(c, &like, p->m->nfuncs, p->m->funcs);
    return module_with_func(c, m, "main", f);
}

const Result *product_result(const Product *p, const char *name)
{
    for (uint32_t i = 0; i < p->results.n; i++)
        if (!name || !strcmp(p->results.at[i].name, name))
            return &p->results.at[i];
    return NULL;
}

/* ---- the choice of results --------------------------------------------------------------------- */

bool product_unknown(Product *p, const char *what, const char *name, uint32_t n,
                     const char *const *all)
{
    const char *near;

    error_at(p->c, E_IMPORT, p->loc, "the model has no %s '%s'", what, name);
    if ((near = str_closest(name, all, n)))
        diag_hint(p->c->diags, "did you mean '%s'?", near);
    else if (n)
        diag_hint(p->c->diags, "its first %s is '%s'", what, all[0]);
    return false;
}

const char **product_result_names(const Product *p)
{
    const char **names = NEW_ARRAY(p->c->arena, const char *, p->results.n + 1);

    for (uint32_t i = 0; i < p->results.n; i++)
        names[i] = p->results.at[i].name;
    return names;
}

/* `added`: results from this one on were added; those that are not named come last. */
static bool choose_results(Product *p, const ProductOptions *o, uint32_t added)
{
    Ctx  *c = p->c;
    bool *used = NEW_ARRAY(c->arena, bool, p->results.n + 1);
    VEC(Result) list = {0};

    for (uint32_t i = 0; i < o->noutputs; i++) {
        const Result *r = product_result(p, o->outputs[i]);

        if (!r)
            return product_unknown(p, "output", o->outputs[i], p->results.n,
                                   product_result_names(p));
        if (used[r - p->results.at])
            return error_at(c, E_USAGE, NO_LOC, "output '%s' is asked for twice", o->outputs[i]);
        used[r - p->results.at] = true;
        vec_push(c->arena, &list, *r);
    }
    for (uint32_t i = added; i < p->results.n; i++)
        if (!used[i])
            vec_push(c->arena, &list, p->results.at[i]);
    p->results.n = list.n;
    p->results.at = list.at;
    return true;
}

/* ---- states --------------------------------------------------------------------------------------- */

/* Has `now` the dimensions of `was`, but for some that are larger? */
static bool grows(Ctx *c, const Type *was, const Type *now)
{
    if (was->kind != TYPE_TENSOR || now->kind != TYPE_TENSOR || was->n != now->n)
        return false;
    for (uint32_t i = 0; i < was->n; i++)
        if (idx_sub(c->arith, now->dims[i], was->dims[i])->lo < 0)
            return false;
    return dtype_eq(was->dtype, now->dtype);
}

static bool add_state(Product *p, const ProductState *s, ModuleIO *out)
{
    Ctx          *c = p->c;
    const Result *r = product_result(p, s->out);
    const char  **names = NEW_ARRAY(c->arena, const char *, p->nparams + 1);
    const Expr   *f = module_func(p->m, "main");
    uint32_t      in = p->nparams;

    for (uint32_t i = 0; i < p->nparams; i++) {
        names[i] = func_param(f, i)->u.var.name;
        if (!strcmp(names[i], s->in))
            in = i;
    }
    if (!r)
        return product_unknown(p, "output", s->out, p->results.n, product_result_names(p));
    if (in == p->nparams)
        return product_unknown(p, "input", s->in, p->nparams, names);
    if (p->params[in] != func_param(f, in))
        return error_at(c, E_USAGE, NO_LOC, "input '%s' takes pictures: it cannot be a state",
                        s->in);
    if (type_plain(c, r->value->type) != type_plain(c, p->params[in]->type)) {
        error_at(c, E_DIM, p->loc, "the state '%s' is %s, but its input '%s' is %s", s->out,
                 type_text(c, r->value->type), s->in, type_text(c, p->params[in]->type));
        if (grows(c, p->params[in]->type, r->value->type))
            diag_hint(c->diags,
                      "a cache that grows with each run cannot stay where it is: make it a "
                      "buffer with room for the longest, whose rows are written by position "
                      "(docs/how-to/pytorch.md), or hand the output on as the next input");
        return false;
    }
    for (uint32_t i = 0; i < p->results.n; i++)
        if (out[i].state == in + 1 || (out[i].state && &p->results.at[i] == r))
            return error_at(c, E_USAGE, NO_LOC, "the state '%s=%s' shares a tensor with another",
                            s->out, s->in);
    out[r - p->results.at].state = in + 1;
    return true;
}

static bool is_pattern(const ProductState *s)
{
    return strchr(s->out, '*') && strchr(s->in, '*');
}

/* --state '*_out=*': each output whose name is like that, with the input of that name; those
 * without one are no states. */
static bool add_states(Product *p, const ProductState *s, ModuleIO *out)
{
    Ctx        *c = p->c;
    const Expr *f = module_func(p->m, "main");
    const char *star = strchr(s->in, '*'), *part;
    bool        any = false;
    size_t      n;

    for (uint32_t i = 0; i < p->results.n; i++) {
        const char *name = p->results.at[i].name, *in;

        if (!str_star(name, s->out, &part, &n))
            continue;
        in = intern_printf(c->strings, "%.*s%.*s%s", (int)(star - s->in), s->in, (int)n, part,
                           star + 1);
        for (uint32_t k = 0; k < p->nparams; k++) {
            if (strcmp(func_param(f, k)->u.var.name, in) != 0)
                continue;
            if (!add_state(p, &(ProductState){name, in}, out))
                return false;
            any = true;
        }
    }
    return any || error_at(c, E_USAGE, NO_LOC,
                           "--state='%s=%s': no output and input have such names", s->out, s->in);
}

/* ---- all of it ------------------------------------------------------------------------------------ */

/* What an addition stands behind; NULL: the model's first output. */
static const char *base_of(const ProductOptions *o, const ProductAdd *a)
{
    return a->output ? a->output : o->noutputs ? o->outputs[0] : NULL;
}

static bool is_added(Ctx *c, const ProductOptions *o, const char *name)
{
    for (uint32_t i = 0; i < o->nadds; i++) {
        const char *base = base_of(o, &o->adds[i]), *made, *rest;

        if (!base)
            continue;
        made = product_added_name(c, o->adds[i].kind, base);
        rest = name + strlen(made);
        if (!strncmp(name, made, strlen(made)) && (!*rest || !strcmp(rest, "_index")))
            return true;
    }
    return false;
}

typedef VEC(const char *) Names;

static void add_name(Ctx *c, Names *names, const char *name)
{
    for (uint32_t i = 0; i < names->n; i++)
        if (!strcmp(names->at[i], name))
            return;
    vec_push(c->arena, names, name);
}

const char *const *product_tensors(Ctx *c, const ProductOptions *o, uint32_t *n, bool *only)
{
    Names names = {0};

    *only = o->noutputs != 0;
    for (uint32_t i = 0; i < o->noutputs; i++)
        if (!is_added(c, o, o->outputs[i]))
            add_name(c, &names, o->outputs[i]);
    for (uint32_t i = 0; i < o->nadds; i++)
        if (base_of(o, &o->adds[i]))
            add_name(c, &names, base_of(o, &o->adds[i]));
    for (uint32_t i = 0; i < o->nstates && !*only; i++)
        if (!is_pattern(&o->states[i]))
            add_name(c, &names, o->states[i].out);
    *n = names.n;
    return names.at;
}

const Module *product_edit(Ctx *c, const Module *m, const ProductOptions *o)
{
    Product   p;
    ModuleIO *out;
    uint32_t  own;

    if (!o->nimages && !o->nadds && !o->noutputs && !o->nstates)
        return m;
    if (!take_apart(&p, c, m))
        return NULL;
    for (uint32_t i = 0; i < o->nimages; i++)
        if (!product_image(&p, &o->images[i]))
            return NULL;
    own = p.results.n;
    for (uint32_t i = 0; i < o->nadds; i++)
        if (!product_add(&p, &o->adds[i], base_of(o, &o->adds[i])))
            return NULL;
    if (o->noutputs && !choose_results(&p, o, own))
        return NULL;
    out = NEW_ARRAY(c->arena, ModuleIO, p.results.n + 1);
    for (uint32_t i = 0; i < o->nstates; i++)
        if (!(is_pattern(&o->states[i]) ? add_states : add_state)(&p, &o->states[i], out))
            return NULL;
    return put_together(&p, out);
}
