/* The graph of a model for a page: main's inputs, calls and outputs, and what each reads.
 *
 * Tuples, their fields and names that `let` binds are no nodes of their own: who reads them reads
 * what they stand for.  Constants are no nodes either but belong to the call that reads them.
 * A node comes after all that it reads, which the layout of the page relies on. */
#include "driver/html.h"

#include <string.h>

typedef VEC(uint32_t) Indices;
typedef VEC(const Expr *) Exprs;

struct HtmlNode {
    const Expr *e;
    const char *op, *name, *kind; /* kind: "input", "output", or NULL */
    const Type *type;
    Loc         loc;
    Indices     from, kernels;
    Exprs       constants;
    double      us;
};

enum { FLAT_TUPLE = 64 }; /* wider ones, and tuples of tuples, are nodes */

static bool is_flat(const Expr *e)
{
    bool flat = e->kind == EXPR_TUPLE && e->nkids <= FLAT_TUPLE;

    for (uint32_t i = 0; flat && i < e->nkids; i++)
        flat = e->kids[i]->kind != EXPR_TUPLE;
    return flat;
}

/* Through names, lets and fields of tuples. */
static const Expr *meaning(const HtmlGraph *g, const Expr *e)
{
    const Expr *to;

    for (;;) {
        if (e->kind == EXPR_LET)
            e = let_body(e);
        else if (e->kind == EXPR_VAR && (to = map_get(g->alias, PTR_KEY(e))))
            e = to;
        else if (e->kind == EXPR_PROJ && e->kids[0]->kind == EXPR_TUPLE)
            e = e->kids[0]->kids[e->u.index];
        else if (e->kind == EXPR_PROJ)
            e = e->kids[0];
        else
            return e;
    }
}

static void add_reads(HtmlGraph *g, HtmlNode *v, const Expr *e)
{
    uintptr_t i;

    e = meaning(g, e);
    if (is_flat(e)) {
        for (uint32_t k = 0; k < e->nkids; k++) {
            const Expr *field = meaning(g, e->kids[k]);
            if (!is_flat(field))
                add_reads(g, v, field);
        }
    } else if (e->kind == EXPR_CONST) {
        vec_push(g->c->arena, &v->constants, e);
    } else if ((i = (uintptr_t)map_get(g->index, PTR_KEY(e)))) {
        vec_push(g->c->arena, &v->from, (uint32_t)i - 1);
    }
}

static const char *op_name(const Expr *e)
{
    switch (e->kind) {
    case EXPR_CALL:
        return call_op(e)                        ? call_op(e)->text
               : e->kids[0]->kind == EXPR_GLOBAL ? e->kids[0]->u.name
                                                 : "call";
    case EXPR_IF: return "if";
    case EXPR_MATCH: return "match";
    case EXPR_FUNC: return "function";
    case EXPR_TUPLE: return "tuple";
    case EXPR_REF_NEW: return "ref";
    case EXPR_REF_READ: return "read";
    case EXPR_REF_WRITE: return "write";
    case EXPR_CONST: return "constant";
    case EXPR_VAR:
    case EXPR_GLOBAL:
    case EXPR_OP:
    case EXPR_CTOR:
    case EXPR_PROJ:
    case EXPR_LET: break;
    }
    return NULL;
}

static void add_node(HtmlGraph *g, HtmlNode v, const Expr *reads)
{
    uint32_t first = reads && reads->kind == EXPR_CALL ? 1 : 0;

    if (reads && v.kind)
        add_reads(g, &v, reads);
    for (uint32_t i = first; reads && !v.kind && i < reads->nkids; i++)
        add_reads(g, &v, reads->kids[i]);
    vec_push(g->c->arena, &g->nodes, v);
    if (v.e)
        map_put(g->index, PTR_KEY(v.e), (void *)(uintptr_t)g->nodes.n);
}

static void add_output(HtmlGraph *g, const Module *m, uint32_t i, const Expr *e, const Type *t)
{
    HtmlNode v = {.op = "output", .kind = "output", .type = t};

    v.name = i < m->noutputs ? m->output_names[i] : arena_printf(g->c->arena, "output%u", i);
    add_node(g, v, e);
    g->noutputs++;
}

static void count_constants(HtmlGraph *g, ExprList all)
{
    for (uint32_t i = 0; i < all.n; i++)
        if (all.at[i]->kind == EXPR_CONST) {
            g->nconsts++;
            g->const_bytes += (double)all.at[i]->u.constant->data.n;
        }
}

void html_graph(Ctx *c, const Module *m, HtmlGraph *g)
{
    const Expr *f = module_func(m, "main"), *body;
    ExprList    all = expr_post_order(c, func_body(f));

    *g = (HtmlGraph){.c = c, .index = map_new(c->arena), .alias = map_new(c->arena)};
    for (uint32_t i = 0; i < all.n; i++)
        if (all.at[i]->kind == EXPR_LET)
            map_put(g->alias, PTR_KEY(let_var(all.at[i])), (void *)(uintptr_t)let_value(all.at[i]));
    for (uint32_t i = 0; i < func_nparams(f); i++) {
        const Expr *p = func_param(f, i);
        add_node(
            g,
            (HtmlNode){
                .e = p, .op = "input", .kind = "input", .name = p->u.var.name, .type = p->type},
            NULL);
    }
    g->ninputs = func_nparams(f);
    body = meaning(g, func_body(f));
    for (uint32_t i = 0; i < all.n; i++) {
        const Expr *e = all.at[i];
        HtmlNode    v = {
               .e = e, .op = op_name(e), .name = e->loc.name, .type = e->type, .loc = e->loc};

        if (!v.op || e->kind == EXPR_CONST || is_flat(e) || (e == body && e->kind == EXPR_TUPLE))
            continue;
        g->ncalls += call_op(e) != NULL;
        add_node(g, v, e);
    }
    count_constants(g, all);
    if (body->kind == EXPR_TUPLE)
        for (uint32_t i = 0; i < body->nkids; i++)
            add_output(g, m, i, body->kids[i], body->kids[i]->type);
    else
        add_output(g, m, 0, body, body->type);
}

void html_graph_time(HtmlGraph *g, uint32_t node, uint32_t kernel, double us)
{
    HtmlNode *v = &g->nodes.at[node];
    bool      seen = false;

    v->us += us;
    for (uint32_t i = 0; i < v->kernels.n; i++)
        seen |= v->kernels.at[i] == kernel;
    if (!seen)
        vec_push(g->c->arena, &v->kernels, kernel);
}

bool html_graph_is_at(const HtmlGraph *g, uint32_t node, Loc loc)
{
    const HtmlNode *v = &g->nodes.at[node];

    return !v->kind && v->loc.file && v->loc.line == loc.line && v->loc.col == loc.col &&
           !strcmp(v->loc.name ? v->loc.name : "", loc.name ? loc.name : "");
}

void html_graph_places(const HtmlGraph *g, Map *at, uint64_t (*key)(Ctx *c, Loc loc))
{
    for (uint32_t i = g->nodes.n; i-- > 0;)
        if (!g->nodes.at[i].kind)
            map_put(at, key(g->c, g->nodes.at[i].loc), (void *)(uintptr_t)(i + 1));
}

/* ---- as JSON ---- */

static void member(StrBuf *s, const char *key, const char *text)
{
    if (!text || !*text)
        return;
    str_printf(s, ", \"%s\": ", key);
    str_add_json(s, text);
}

static void indices(StrBuf *s, const char *key, const Indices *v)
{
    str_printf(s, ", \"%s\": [", key);
    for (uint32_t i = 0; i < v->n; i++)
        str_printf(s, "%s%u", i ? "," : "", v->at[i]);
    str_add(s, "]");
}

static void node_json(Ctx *c, const HtmlNode *v, StrBuf *s)
{
    StrBuf attrs = strbuf(c->scratch);

    str_add(s, "{\"op\": ");
    str_add_json(s, v->op);
    member(s, "name", v->name);
    member(s, "kind", v->kind);
    member(s, "type", v->type ? type_text(c, v->type) : NULL);
    if (v->e && call_op(v->e) && call_op(v->e)->attrs)
        attrs_print(c, call_op(v->e)->attrs, v->e->u.attrs, &attrs);
    member(s, "attributes", attrs.n > 2 ? attrs.at + 2 : NULL); /* it begins with a comma */
    indices(s, "from", &v->from);
    str_add(s, ", \"constants\": [");
    for (uint32_t i = 0; i < v->constants.n; i++) {
        const Const *k = v->constants.at[i]->u.constant;
        str_add(s, i ? ", {\"name\": " : "{\"name\": ");
        str_add_json(s, k->name && *k->name ? k->name : "constant");
        member(s, "type", type_text(c, k->type));
        str_printf(s, ", \"bytes\": %zu}", k->data.n);
    }
    str_add(s, "]");
    if (v->kernels.n) {
        str_printf(s, ", \"us\": %.4f", v->us);
        indices(s, "kernels", &v->kernels);
    }
    str_add(s, "}");
}

void html_graph_nodes_of(const HtmlGraph *g, uint32_t kernel, StrBuf *s)
{
    bool any = false;

    for (uint32_t i = 0; i < g->nodes.n; i++)
        for (uint32_t k = 0; k < g->nodes.at[i].kernels.n; k++)
            if (g->nodes.at[i].kernels.at[k] == kernel) {
                str_printf(s, any ? ", %u" : "%u", i);
                any = true;
            }
}

void html_graph_json(const HtmlGraph *g, StrBuf *s)
{
    str_add(s, ",\n\"nodes\": [");
    for (uint32_t i = 0; i < g->nodes.n; i++) {
        str_add(s, i ? ",\n" : "\n");
        node_json(g->c, &g->nodes.at[i], s);
    }
    str_add(s, "\n]");
}
