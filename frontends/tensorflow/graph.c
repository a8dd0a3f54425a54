/* Nodes of a graph or function, and which outputs their inputs are.
 *
 *     the main graph     "x" or "x:1"     node, number of its output
 *     a function         "x"              an argument
 *                        "x:out:1"        node, name of an output, number within that
 *     both               "^x"             a node that only comes before */
#include "frontends/tensorflow/tensorflow.h"

#include <string.h>

#define MAX_PORT 65536

const char *tf_string(Ctx *c, Bytes text)
{
    return intern_n(c->strings, text.n ? (const char *)text.at : "", text.n);
}

const TfValueDef *tf_attr(const TfOp *p, const char *name)
{
    for (uint32_t i = 0; i < p->def->attr.n; i++) {
        const TfAttr *a = p->def->attr.at[i];

        if (a->key && a->value && !strcmp(a->key, name))
            return a->value;
    }
    return NULL;
}

static const TfFunctionDef *find_function(const TfModel *m, const char *name)
{
    for (uint32_t i = 0; m->library && i < m->library->function.n; i++) {
        const TfFunctionDef *f = m->library->function.at[i];

        if (f->signature && f->signature->name && !strcmp(f->signature->name, name))
            return f;
    }
    return NULL;
}

uint32_t tf_arg_count(const TfModel *m, const TfOp *p, const TfArgSpec *s)
{
    const TfValueDef *v;

    if (!s->count.at)
        return 1;
    v = tf_attr(p, intern_n(m->c->strings, (const char *)s->count.at, s->count.n));
    if (v && v->list)
        return v->list->type.n;
    return v && v->i > 0 && v->i < MAX_PORT ? (uint32_t)v->i : 0;
}

/* ---- ports ------------------------------------------------------------------------------------------ */

static bool read_number(const char *text, uint32_t *out)
{
    uint32_t v = 0;

    if (!*text)
        return false;
    for (; *text >= '0' && *text <= '9' && v < MAX_PORT; text++)
        v = 10 * v + (uint32_t)(*text - '0');
    *out = v;
    return !*text && v < MAX_PORT;
}

/* The first output of that name; false: it has none. */
static bool output_named(const TfModel *m, const TfOp *p, const char *name, size_t n, uint32_t *out)
{
    const TfFunctionDef *f = p->row ? NULL : find_function(m, p->op);
    const char          *at = p->row ? p->row->schema->outputs : "";
    TfArgSpec            spec;

    *out = 0;
    while (tf_next_arg(&at, &spec)) {
        if (spec.name.n == n && !memcmp(spec.name.at, name, n))
            return true;
        *out += tf_arg_count(m, p, &spec);
    }
    for (uint32_t i = 0; f && i < f->signature->output.n; i++) {
        const TfArg *a = f->signature->output.at[i];

        *out = i;
        if (a->name && strlen(a->name) == n && !strncmp(a->name, name, n))
            return true;
    }
    *out = 0;
    return !p->row && !f; /* it is not supported, and that is said if it is needed */
}

static bool find_node(const TfModel *m, const TfGraph *g, const char *name, size_t n, uint32_t *out)
{
    void *at = map_get(g->index, PTR_KEY(intern_n(m->c->strings, name, n)));

    *out = (uint32_t)((uintptr_t)at - 1);
    return at != NULL;
}

static bool find_argument(const TfGraph *g, const char *text, TfPort *out)
{
    for (uint32_t i = 0; i < g->nargs; i++)
        if (!strcmp(g->args[i], text)) {
            *out = (TfPort){TF_ARGUMENT, i};
            return true;
        }
    return false;
}

/* An edge that carries a value; false: it leads nowhere. */
static bool find_port(const TfModel *m, const TfGraph *g, const char *text, TfPort *out)
{
    const char *colon = strchr(text, ':'), *second = colon ? strchr(colon + 1, ':') : NULL;
    uint32_t    base, at = 0;

    *out = (TfPort){TF_NOWHERE, 0};
    if (g->name && !colon && find_argument(g, text, out))
        return true;
    if (!find_node(m, g, text, colon ? (size_t)(colon - text) : strlen(text), &out->node)) {
        out->node = TF_NOWHERE;
        return false;
    }
    if (!colon)
        return true;
    if (!second)
        return read_number(colon + 1, &out->port);
    if (!read_number(second + 1, &at) ||
        !output_named(m, &g->op[out->node], colon + 1, (size_t)(second - colon - 1), &base)) {
        out->node = TF_NOWHERE;
        return false;
    }
    out->port = base + at;
    return true;
}

bool tf_find_port(const TfModel *m, const char *text, TfPort *out)
{
    return find_port(m, &m->graph, text, out);
}

/* ---- nodes ------------------------------------------------------------------------------------------ */

static uint32_t count_outputs(const TfModel *m, const TfOp *p)
{
    const TfFunctionDef *f = p->row ? NULL : find_function(m, p->op);
    const char          *at = p->row ? p->row->schema->outputs : "";
    TfArgSpec            spec;
    uint32_t             n = 0;

    while (tf_next_arg(&at, &spec))
        n += tf_arg_count(m, p, &spec);
    return f ? f->signature->output.n : n;
}

static void read_edges(TfModel *m, TfGraph *g, TfOp *p)
{
    Arena *a = m->c->arena;

    p->in = NEW_ARRAY(a, TfPort, p->def->input.n + 1);
    p->ctrl = NEW_ARRAY(a, uint32_t, p->def->input.n + 1);
    p->edges = NEW_ARRAY(a, const char *, p->def->input.n + 1);
    for (uint32_t i = 0; i < p->def->input.n; i++) {
        const char *text = p->def->input.at[i];
        uint32_t    node;

        if (*text == '^') {
            if (find_node(m, g, text + 1, strlen(text + 1), &node))
                p->ctrl[p->nctrl++] = node;
            continue;
        }
        find_port(m, g, text, &p->in[p->nin]);
        p->edges[p->nin++] = text;
    }
}

bool tf_read_graph(TfModel *m, const PbMsgs *nodes, TfGraph *out)
{
    Ctx *c = m->c;

    out->n = nodes->n;
    out->op = NEW_ARRAY(c->arena, TfOp, nodes->n + 1);
    out->index = map_new(c->arena);
    for (uint32_t i = 0; i < nodes->n; i++) {
        TfOp *p = &out->op[i];
        Loc   loc = {m->path, out->name ? 0 : i + 1, 0, NULL};

        p->def = nodes->at[i];
        if (!p->def->name || !*p->def->name || !p->def->op || !*p->def->op)
            return error_at(c, E_PARSE_MODEL, loc, "a node has no name or no operator");
        p->name = intern(c->strings, p->def->name);
        p->op = intern(c->strings, p->def->op);
        p->row = tf_row(p->op);
        if (map_get(out->index, PTR_KEY(p->name)))
            return error_at(c, E_IMPORT, loc, "node '%s' is there twice", p->name);
        map_put(out->index, PTR_KEY(p->name), (void *)(uintptr_t)(i + 1));
    }
    for (uint32_t i = 0; i < nodes->n; i++)
        out->op[i].nout = count_outputs(m, &out->op[i]);
    for (uint32_t i = 0; i < nodes->n; i++)
        read_edges(m, out, &out->op[i]);
    return true;
}

/* ---- functions -------------------------------------------------------------------------------------- */

static bool read_arguments(TfModel *m, const TfSignatureDef *s, TfGraph *g)
{
    Loc loc = {.file = m->path};

    g->args = NEW_ARRAY(m->c->arena, const char *, s->input.n + 1);
    int64_t *types = NEW_ARRAY(m->c->arena, int64_t, s->input.n + 1);
    for (uint32_t i = 0; i < s->input.n + s->output.n; i++) {
        const TfArg *a = i < s->input.n ? s->input.at[i] : s->output.at[i - s->input.n];

        if (!a->name || (a->number_attr && *a->number_attr) ||
            (a->type_list_attr && *a->type_list_attr))
            return error_at(m->c, E_UNSUPPORTED, loc, "function '%s' has a list as an argument",
                            g->name);
        if (i >= s->input.n)
            continue;
        g->args[i] = a->name;
        types[i] = a->type;
    }
    g->nargs = s->input.n;
    g->arg_types = types;
    return true;
}

static bool read_results(TfModel *m, const TfFunctionDef *f, TfGraph *g)
{
    g->nrets = f->signature->output.n;
    g->rets = NEW_ARRAY(m->c->arena, TfPort, g->nrets + 1);
    for (uint32_t i = 0; i < g->nrets; i++) {
        const TfArg *a = f->signature->output.at[i];
        const char  *text = NULL;

        for (uint32_t k = 0; k < f->ret.n; k++) {
            const TfRet *r = f->ret.at[k];

            if (r->key && r->value && !strcmp(r->key, a->name))
                text = r->value;
        }
        if (!text || !find_port(m, g, text, &g->rets[i]))
            return error_at(m->c, E_IMPORT, ((Loc){.file = m->path}),
                            "function '%s': what its result '%s' is does not exist", g->name,
                            a->name);
    }
    return true;
}

const TfGraph *tf_function(TfModel *m, const char *name)
{
    const TfFunctionDef *f;
    TfGraph             *g;

    name = intern(m->c->strings, name);
    if ((g = map_get(m->functions, PTR_KEY(name))))
        return g;
    if (!(f = find_function(m, name)))
        return NULL;
    g = NEW(m->c->arena, TfGraph);
    g->name = name;
    if (!read_arguments(m, f->signature, g) || !tf_read_graph(m, &f->node, g) ||
        !read_results(m, f, g))
        return NULL;
    map_put(m->functions, PTR_KEY(name), g);
    return g;
}
