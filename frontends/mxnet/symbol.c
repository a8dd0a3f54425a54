/* The graph: nodes as JSON has them.
 *
 *     {"nodes": [{"op": "null", "name": "data", "inputs": []},
 *                {"op": "Activation", "name": "relu", "attrs": {"act_type": "relu"}, "inputs": [[0,
 * 0, 0]]}], "arg_nodes": [0], "heads": [[1, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}}
 *
 * A node comes behind what it needs; operators with bodies have "subgraphs" of the same form.
 * Before 1.0 attributes were called "attr", and those of operators "param"; before 0.9 states of
 * training (moving_mean) were no inputs, which come to be here under the names that they have in
 * the file of values. */
#include "base/json.h"
#include "frontends/mxnet/mxnet.h"

#include <stdlib.h>
#include <string.h>

enum { VERSION_NNVM = 900, VERSION_ARG = 905 }; /* major * 10000 + minor * 100 + patch */

typedef struct {
    Ctx        *c;
    const char *path;
    int64_t     version;
} Reading;

static bool bad(const Reading *r, const char *what)
{
    return error_at(r->c, E_PARSE_MODEL, (Loc){.file = r->path}, "%s is not what it should be",
                    what);
}

/* ---- nodes ------------------------------------------------------------------------------------------ */

static bool read_pairs(Reading *r, const json_t *from, MxOp *p)
{
    const char *key;
    json_t     *value;

    json_object_foreach((json_t *)(uintptr_t)from, key, value)
    {
        if (!json_is_string(value))
            return bad(r, arena_printf(r->c->arena, "attribute '%s' of '%s'", key, p->name));
        p->attrs[p->nattrs++] =
            (MxPair){intern(r->c->strings, key), intern(r->c->strings, json_string_value(value))};
    }
    return true;
}

static bool read_attrs(Reading *r, const json_t *node, MxOp *p)
{
    static const char *const keys[] = {"attrs", "attr", "param"};
    size_t                   n = 0;

    for (uint32_t i = 0; i < COUNT(keys); i++)
        n += json_object_size(json_object_get(node, keys[i]));
    p->attrs = NEW_ARRAY(r->c->arena, MxPair, n + 1);
    for (uint32_t i = 0; i < COUNT(keys); i++)
        if (!read_pairs(r, json_object_get(node, keys[i]), p))
            return false;
    return true;
}

/* [node, output] or [node, output, version] */
static bool read_port(const json_t *at, uint32_t nodes, MxPort *out)
{
    json_int_t node = json_integer_value(json_array_get(at, 0)),
               port = json_integer_value(json_array_get(at, 1));

    if (json_array_size(at) < 2 || !json_is_integer(json_array_get(at, 0)) ||
        !json_is_integer(json_array_get(at, 1)) || node < 0 || node >= nodes || port < 0 ||
        port > 1 << 16)
        return false;
    *out = (MxPort){(uint32_t)node, (uint32_t)port};
    return true;
}

static bool read_ports(Reading *r, const json_t *list, uint32_t before, const char *what,
                       uint32_t *n, MxPort **out)
{
    *n = (uint32_t)json_array_size(list);
    *out = NEW_ARRAY(r->c->arena, MxPort, *n + 1);
    for (uint32_t i = 0; i < *n; i++)
        if (!read_port(json_array_get(list, i), before, &(*out)[i]))
            return bad(r, what);
    return true;
}

static bool read_graph(Reading *r, const json_t *at, uint32_t depth, MxGraph *g);

static bool read_bodies(Reading *r, const json_t *node, uint32_t depth, MxOp *p)
{
    const json_t *list = json_object_get(node, "subgraphs");

    p->nsub = (uint32_t)json_array_size(list);
    p->sub = NEW_ARRAY(r->c->arena, MxGraph, p->nsub + 1);
    for (uint32_t i = 0; i < p->nsub; i++)
        if (!read_graph(r, json_array_get(list, i), depth + 1, &p->sub[i]))
            return false;
    return true;
}

/* The first versions' -1 of these was what None is now. */
static void upgrade(const Reading *r, MxOp *p)
{
    if (r->version >= VERSION_ARG || (strcmp(p->op, "argmax") && strcmp(p->op, "argmin")))
        return;
    for (uint32_t i = 0; i < p->nattrs; i++)
        if (!strcmp(p->attrs[i].key, "axis") && !strcmp(p->attrs[i].value, "-1"))
            p->attrs[i--] = p->attrs[--p->nattrs];
}

static bool read_node(Reading *r, const json_t *at, uint32_t before, uint32_t depth, MxOp *p)
{
    const char *name = json_string_value(json_object_get(at, "name")),
               *op = json_string_value(json_object_get(at, "op"));

    if (!name || !op)
        return bad(r, arena_printf(r->c->arena, "node %u", before));
    p->name = intern(r->c->strings, name);
    if (strcmp(op, "null") != 0) {
        p->op = intern(r->c->strings, op);
        p->row = mx_row(op);
    }
    if (!read_attrs(r, at, p) ||
        !read_ports(r, json_object_get(at, "inputs"), before,
                    arena_printf(r->c->arena, "an input of '%s'", name), &p->nin, &p->in))
        return false;
    if (!p->op)
        return !p->nin || bad(r, arena_printf(r->c->arena, "variable '%s' with inputs", name));
    upgrade(r, p);
    return read_bodies(r, at, depth, p);
}

/* ---- graphs ----------------------------------------------------------------------------------------- */

/* Operands that were none then, as variables: each called as its node and its role. */
static void add_states(Reading *r, MxGraph *g)
{
    Ctx *c = r->c;
    VEC(MxOp) all = {0};
    uint32_t *now = NEW_ARRAY(c->arena, uint32_t, g->n + 1);

    for (uint32_t i = 0; i < g->n; i++) {
        MxOp p = g->op[i];
        VEC(MxPort) in = {0};
        MxArgSpec a;
        uint32_t  want = 0;

        for (uint32_t k = 0; k < p.nin; k++)
            vec_push(c->arena, &in, ((MxPort){now[p.in[k].node], p.in[k].port}));
        for (const char *at = p.row ? p.row->schema->inputs : ""; mx_next_arg(&at, &a);) {
            want += mx_arg_count(c, &p, &a);
            if (want <= p.nin || a.count.at || a.any)
                continue;
            vec_push(c->arena, &in, ((MxPort){all.n, 0}));
            vec_push(c->arena, &all,
                     ((MxOp){.name = intern_printf(c->strings, "%s_%.*s", p.name, (int)a.name.n,
                                                   (const char *)a.name.at)}));
        }
        p.in = in.at;
        p.nin = in.n;
        now[i] = all.n;
        vec_push(c->arena, &all, p);
    }
    for (uint32_t i = 0; i < g->nheads; i++)
        g->heads[i].node = now[g->heads[i].node];
    g->n = all.n;
    g->op = all.at;
}

static void use(MxGraph *g, uint32_t n, const MxPort *ports)
{
    for (uint32_t i = 0; i < n; i++) {
        MxOp *p = &g->op[ports[i].node];

        p->nout = p->nout > ports[i].port ? p->nout : ports[i].port + 1;
    }
}

static bool read_graph(Reading *r, const json_t *at, uint32_t depth, MxGraph *g)
{
    const json_t *nodes = json_object_get(at, "nodes");

    if (depth > MX_MAX_NESTING)
        return error_at(r->c, E_UNSUPPORTED, (Loc){.file = r->path},
                        "graphs are nested more than %d deep", MX_MAX_NESTING);
    if (!json_is_array(nodes))
        return bad(r, "the graph");
    *g = (MxGraph){.n = (uint32_t)json_array_size(nodes)};
    g->op = NEW_ARRAY(r->c->arena, MxOp, g->n + 1);
    for (uint32_t i = 0; i < g->n; i++)
        if (!read_node(r, json_array_get(nodes, i), i, depth, &g->op[i]))
            return false;
    if (!read_ports(r, json_object_get(at, "heads"), g->n, "heads", &g->nheads, &g->heads))
        return false;
    if (r->version < VERSION_NNVM)
        add_states(r, g);
    g->vars = NEW_ARRAY(r->c->arena, uint32_t, g->n + 1);
    for (uint32_t i = 0; i < g->n; i++) {
        g->op[i].nout = 1;
        if (!g->op[i].op)
            g->vars[g->nvars++] = i;
        use(g, g->op[i].nin, g->op[i].in);
    }
    use(g, g->nheads, g->heads);
    return true;
}

bool mx_read_symbol(Ctx *c, const char *path, Bytes file, MxGraph *out)
{
    Loc           loc = {.file = path};
    Reading       r = {c, path, 800}; /* that of files that do not say one */
    json_error_t  error;
    json_t       *root = json_read(file, &error);
    const json_t *version;
    bool          ok;

    if (!root) {
        loc.line = error.line > 0 ? (uint32_t)error.line : 0;
        loc.col = error.column > 0 ? (uint32_t)error.column : 0;
        return error_at(c, E_PARSE_MODEL, loc, "%s", error.text);
    }
    version = json_array_get(json_object_get(json_object_get(root, "attrs"), "mxnet_version"), 1);
    if (json_is_integer(version))
        r.version = json_integer_value(version);
    ok = read_graph(&r, root, 0, out);
    if (ok && !out->nheads)
        ok = error_at(c, E_PARSE_MODEL, loc, "the graph has no heads");
    json_decref(root);
    return ok;
}

/* ---- what a node says ------------------------------------------------------------------------------- */

const char *mx_attr(const MxOp *p, const char *name)
{
    for (uint32_t i = 0; i < p->nattrs; i++)
        if (!strcmp(p->attrs[i].key, name))
            return p->attrs[i].value;
    return NULL;
}

const char *mx_attr_text(Ctx *c, const MxOp *p, const char *name)
{
    const char *given = mx_attr(p, name);
    MxAttrSpec  s;

    if (!mx_attr_spec(p->row->schema, name, &s))
        BUG("%s has no attribute '%s'", p->row->name, name);
    if (given)
        return given;
    return s.fallback.at ? intern_n(c->strings, (const char *)s.fallback.at, s.fallback.n) : "";
}

static const char *text_of(Ctx *c, Bytes b)
{
    return intern_n(c->strings, (const char *)b.at, b.n);
}

uint32_t mx_arg_count(Ctx *c, const MxOp *p, const MxArgSpec *s)
{
    const char *text;
    int64_t     count = 0;
    bool        yes;

    if (s->any)
        return p->nin;
    if (s->count.at)
        return mx_parse_int(mx_attr_text(c, p, text_of(c, s->count)), &count) && count > 0 &&
                       count < 1 << 20
                   ? (uint32_t)count
                   : 0;
    if (!s->attr.at)
        return 1;
    text = mx_attr_text(c, p, text_of(c, s->attr));
    if (mx_parse_bool(text, &yes) && s->value.n == 1)
        return yes == (s->value.at[0] == '1');
    return text_of(c, s->value) == intern(c->strings, text);
}

Bytes mx_arg_role(Ctx *c, const MxOp *p, uint32_t i)
{
    uint32_t  at = 0;
    MxArgSpec a;

    for (const char *spec = p->row ? p->row->schema->inputs : ""; mx_next_arg(&spec, &a);)
        if ((at += mx_arg_count(c, p, &a)) > i)
            return a.name;
    return (Bytes){0};
}

/* "num_outputs=1", "ret_typ=indices|mask": the node has one output, which needs no number. */
static bool has_one(Ctx *c, const MxOp *p, const char *when)
{
    const char *equals = strchr(when, '='), *text;
    size_t      n;

    if (!equals)
        return false;
    text = mx_attr_text(c, p, intern_n(c->strings, when, (size_t)(equals - when)));
    for (when = equals + 1; *when; when += n + (when[n] == '|')) {
        n = strcspn(when, "|");
        if (strlen(text) == n && !memcmp(text, when, n))
            return true;
    }
    return false;
}

const char *mx_port_name(Ctx *c, const MxGraph *g, MxPort port)
{
    const MxOp *p = &g->op[port.node];
    const char *spec = p->row ? p->row->schema->outputs : "", *word = "output";
    size_t      n = strlen(word);

    if (!p->op)
        return p->name;
    if (*spec == '#') {
        if (!has_one(c, p, spec + 1))
            return intern_printf(c->strings, "%s_output%u", p->name, port.port);
    } else if (*spec) {
        for (uint32_t i = 0; i < port.port && *spec; i++) {
            spec += strcspn(spec, " ");
            spec += *spec == ' ';
        }
        if (!*spec)
            return intern_printf(c->strings, "%s_output%u", p->name, port.port);
        word = spec;
        n = strcspn(spec, " ");
    }
    return intern_printf(c->strings, "%s_%.*s", p->name, (int)n, word);
}
