/* Relay: the text of a module.  Data of large constants lie beside it: net.relay has
 * net.relay.consts. */
#include "frontends/common.h"
#include "ops/ops.h"

#include <string.h>
#include <unistd.h>

typedef VEC(const char *) TextNames;
typedef struct {
    TextNames names;
    VEC(const Expr *) values;
} Results;

int relay_bid(const char *path, Bytes file)
{
    static const char *const first[] = {"fn @",  "const @", "outputs \"", "products ",
                                        "type ", "dim ",    "//"};
    size_t                   i = 0;

    if (str_ends(path, ".relay"))
        return 90;
    while (i < file.n && (file.at[i] == ' ' || file.at[i] == '\n'))
        i++;
    for (uint32_t k = 0; k < COUNT(first); k++) {
        size_t n = strlen(first[k]);

        if (file.n - i >= n && !memcmp(file.at + i, first[k], n))
            return 60;
    }
    return 0;
}

/* ---- tensors inside a module as results ---- */

/* Nodes of main that always run, by the name that `let` or loc("file":3 "name") gives them; of
 * several with one name the last, which is what the model's node computes. */
static Map *named_nodes(Ctx *c, const Expr *main_func, TextNames *names)
{
    Map *found = map_new(c->scratch), *seen = map_new(c->scratch);
    VEC(const Expr *) todo = {0};
    ExprList order = expr_post_order(c, func_body(main_func));

    vec_push(c->scratch, &todo, func_body(main_func));
    while (todo.n) {
        const Expr *e = todo.at[--todo.n];
        uint32_t    n = e->kind == EXPR_IF || e->kind == EXPR_MATCH ? 1 : e->nkids;

        if (map_get(seen, PTR_KEY(e)))
            continue;
        map_put(seen, PTR_KEY(e), (void *)1);
        for (uint32_t i = 0; i < n && e->kind != EXPR_FUNC; i++)
            vec_push(c->scratch, &todo, e->kids[i]);
    }
    for (uint32_t i = 0; i < order.n; i++) {
        const Expr *e = order.at[i];
        const char *name = e->kind == EXPR_VAR ? e->u.var.name : e->loc.name;

        if (!name || !*name || !map_get(seen, PTR_KEY(e)) || !expr_is_tensor(e))
            continue;
        name = intern(c->strings, name);
        if (!map_get(found, PTR_KEY(name)))
            vec_push(c->scratch, names, name);
        map_put(found, PTR_KEY(name), (void *)(uintptr_t)e);
    }
    return found;
}

static bool add_tensor(Ctx *c, const char *file, const char *name, Map *nodes, TextNames *names,
                       Results *out)
{
    const Expr *e = map_get(nodes, PTR_KEY(intern(c->strings, name)));

    for (uint32_t i = 0; i < out->names.n; i++)
        if (!strcmp(out->names.at[i], name))
            return true;
    if (!e)
        return no_tensor(c, ((Loc){.file = file}), name, names->n, names->at);
    vec_push(c->scratch, &out->values, e);
    vec_push(c->arena, &out->names, intern(c->strings, name));
    return true;
}

static const Module *with_tensors(Ctx *c, const Module *m, const ImportOptions *o)
{
    const Expr *f = module_func(m, "main"), *body = f ? func_body(f) : NULL;
    Results     r = {0};
    TextNames   names = {0};
    VEC(const Expr *) lets = {0};
    Module like = *m;
    Map   *nodes;

    if (!o->ntensors || !f)
        return m;
    for (; body->kind == EXPR_LET; body = let_body(body))
        vec_push(c->scratch, &lets, body);
    nodes = named_nodes(c, f, &names);
    for (uint32_t i = 0, n = body->type && body->type->kind == TYPE_TUPLE ? body->type->n : 1;
         i < n; i++) {
        bool        tuple = body->type && body->type->kind == TYPE_TUPLE;
        const char *name =
            i < m->noutputs ? m->output_names[i] : intern_printf(c->strings, "output%u", i);
        const Expr *e = !tuple                     ? body
                        : body->kind == EXPR_TUPLE ? body->kids[i]
                                                   : expr_proj(c, body, i, body->loc);

        map_put(nodes, PTR_KEY(intern(c->strings, name)), (void *)(uintptr_t)e);
        vec_push(c->scratch, &names, name);
        if (!o->only_tensors && !add_tensor(c, m->file, name, nodes, &names, &r))
            return NULL;
    }
    for (uint32_t i = 0; i < o->ntensors; i++)
        if (!add_tensor(c, m->file, o->tensors[i], nodes, &names, &r))
            return NULL;
    body = r.values.n == 1 ? r.values.at[0] : expr_tuple(c, r.values.n, r.values.at, f->loc);
    for (uint32_t i = lets.n; body && i-- > 0;)
        body = expr_let(c, let_var(lets.at[i]), let_value(lets.at[i]), body, lets.at[i]->loc);
    f = body ? expr_func(c, func_nparams(f), f->kids, body, f->u.func, f->loc) : NULL;
    if (!f)
        return NULL;
    like.noutputs = r.names.n;
    like.output_names = r.names.at;
    return module_with_func(c, module_new(c, &like, m->nfuncs, m->funcs), "main", f);
}

const Module *relay_read(Ctx *c, const char *path, Bytes file, const char *weights,
                         ImportFiles *files)
{
    Bytes       data = {0};
    const char *beside =
        weights ? intern(c->strings, weights) : intern_printf(c->strings, "%s.consts", path);

    if (weights || access(beside, R_OK) == 0) {
        if (!file_map(c->diags, beside, &data))
            return NULL;
        vec_push(c->arena, files, beside);
    }
    return relay_parse(c, path, file, data);
}

/* --value: such inputs are parameters no more. */
static const Module *with_values(Ctx *c, const Module *m, const ImportOptions *o)
{
    const Expr  *f = module_func(m, "main"), *body;
    uint32_t     n = f ? func_nparams(f) : 0, kept = 0, bound = 0;
    const Expr **params = NEW_ARRAY(c->arena, const Expr *, n + 1);
    const Expr **vars = NEW_ARRAY(c->arena, const Expr *, n + 1);
    const Expr **values = NEW_ARRAY(c->arena, const Expr *, n + 1);

    for (uint32_t i = 0; i < n; i++) {
        const Expr        *x = func_param(f, i);
        const ImportValue *v = value_given(o, x->u.var.name);

        if (!v) {
            params[kept++] = x;
            continue;
        }
        vars[bound] = x;
        if (!(values[bound++] = value_expr(c, (Loc){.file = m->file}, v, x->type)))
            return NULL;
    }
    if (!bound)
        return m;
    body = expr_bind(c, func_body(f), bound, vars, values);
    f = body ? expr_func(c, kept, params, body, f->u.func, f->loc) : NULL;
    return f ? relay_infer(c, module_with_func(c, m, "main", f)) : NULL;
}

const Module *relay_import(Ctx *c, const char *path, Bytes file, const ImportOptions *o,
                           ImportFiles *files)
{
    const Module *m = relay_read(c, path, file, o->weights, files);

    if (m)
        m = relay_infer(c, m);
    if (!m || !shapes_check_module(c, m, o, (Loc){.file = path}) || !(m = with_values(c, m, o)))
        return NULL;
    return with_tensors(c, m, o);
}

/* All sizes are in the text: the module says it. */
bool relay_describe(Ctx *c, const char *path, Bytes file, const ImportOptions *o,
                    ModelSignature *out)
{
    (void)c;
    (void)path;
    (void)file;
    (void)o;
    (void)out;
    return false;
}

void relay_list_ops(StrBuf *out)
{
    for (uint32_t i = 0; i < op_table.n; i++)
        str_printf(out, "%s\n", op_table.at[i].text);
}
