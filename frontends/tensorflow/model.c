/* The file: a GraphDef, or a SavedModel; as bytes, or as text.
 *
 * A GraphDef does not say what its inputs and outputs are.  Inputs are the placeholders that the
 * outputs need; outputs are the nodes whose values nothing takes.  A SavedModel has signatures: the
 * one that is asked for, else `serving_default` or the only one. */
#include "frontends/tensorflow/tensorflow.h"

#include <string.h>

/* ---- bids ------------------------------------------------------------------------------------------- */

static bool is_name(Bytes b)
{
    for (size_t i = 0; i < b.n; i++)
        if (b.at[i] < 32 || b.at[i] > 126)
            return false;
    return b.n > 0;
}

/* A node: its name, its operator. */
static bool is_node(Bytes b)
{
    Reader r = reader(b);
    PbItem it;

    if (!pb_next(&r, &it) || it.number != 1 || it.wire != PB_WIRE_LEN || !is_name(it.bytes))
        return false;
    return pb_next(&r, &it) && it.number == 2 && it.wire == PB_WIRE_LEN && is_name(it.bytes) &&
           ((it.bytes.at[0] >= 'A' && it.bytes.at[0] <= 'Z') || it.bytes.at[0] == '_');
}

static bool is_graph(Bytes b)
{
    Reader r = reader(b);
    PbItem it;

    while (pb_next(&r, &it)) {
        if (it.wire != PB_WIRE_LEN && it.number != 3)
            return false;
        if (it.number == 1)
            return is_node(it.bytes);
    }
    return false;
}

/* The version, then graphs with what is said about them. */
static bool is_saved_model(Bytes b)
{
    Reader r = reader(b), in;
    PbItem it;

    if (!pb_next(&r, &it) || it.number != 1 || it.wire != PB_WIRE_VARINT || it.value != 1 ||
        !pb_next(&r, &it) || it.number != 2 || it.wire != PB_WIRE_LEN)
        return false;
    in = reader(it.bytes);
    while (pb_next(&in, &it))
        if (it.number == 2 && it.wire == PB_WIRE_LEN)
            return is_graph(it.bytes) || it.bytes.n == 0;
    return false;
}

static bool by_text(const char *path, Bytes file, bool *saved)
{
    *saved = pb_looks_like_text(&tf_saved_model, file) ||
             (str_ends(path, "saved_model.pbtxt") && !pb_looks_like_text(&tf_graph_def, file));
    return str_ends(path, ".pbtxt") && (*saved || pb_looks_like_text(&tf_graph_def, file));
}

int tensorflow_bid(const char *path, Bytes file)
{
    bool saved;

    if (is_saved_model(file))
        return 90;
    if (is_graph(file))
        return 85;
    return by_text(path, file, &saved) ? 80 : str_ends(path, ".pbtxt") ? 20 : 0;
}

/* ---- signatures ------------------------------------------------------------------------------------- */

static bool add_ports(TfModel *m, const PbMsgs *list, bool output)
{
    for (uint32_t i = 0; i < list->n; i++) {
        const TfPortEntry *e = list->at[i];
        TfPortal           p = {.name = intern(m->c->strings, e->key ? e->key : "")};
        const char        *text = e->value && e->value->name ? e->value->name : "";

        if (!tf_find_port(m, text, &p.port))
            return error_at(m->c, E_IMPORT, ((Loc){.file = m->path}),
                            "%s '%s' of its signature is '%s', which does not exist",
                            output ? "output" : "input", p.name, text);
        p.dtype = e->value->dtype;
        p.shape = e->value->shape;
        if (output)
            vec_push(m->c->arena, &m->out, p);
        else
            vec_push(m->c->arena, &m->in, p);
    }
    return true;
}

/* Entries of maps come in no order; by name they are the same in each file. */
static void sort_ports(TfPortal *at, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        TfPortal p = at[i];
        uint32_t k = i;

        for (; k && strcmp(at[k - 1].name, p.name) > 0; k--)
            at[k] = at[k - 1];
        at[k] = p;
    }
}

/* Can it be compiled?  What initializes the model has a name of its own. */
static bool is_signature(const TfEntry *e)
{
    return e->key && e->value && e->value->output.n && strcmp(e->key, "__saved_model_init_op") != 0;
}

/* Their names, in order. */
static void list_signatures(TfModel *m, const TfMetaGraph *g)
{
    const char **names = NEW_ARRAY(m->c->arena, const char *, g->entry.n + 1);
    uint32_t     at;

    for (uint32_t i = 0; i < g->entry.n; i++) {
        const TfEntry *e = g->entry.at[i];

        if (!is_signature(e))
            continue;
        for (at = m->nsignatures++; at && strcmp(names[at - 1], e->key) > 0; at--)
            names[at] = names[at - 1];
        names[at] = intern(m->c->strings, e->key);
    }
    m->signatures = names;
}

/* What is asked for, or else the only one, or the default. */
static const TfEntryDef *find_entry(TfModel *m, const TfMetaGraph *g)
{
    list_signatures(m, g);
    if (!m->signature)
        m->signature = m->nsignatures == 1 ? m->signatures[0] : "serving_default";
    for (uint32_t i = 0; i < g->entry.n; i++) {
        const TfEntry *e = g->entry.at[i];

        if (is_signature(e) && !strcmp(e->key, m->signature))
            return e->value;
    }
    (void)no_signature(m->c, (Loc){.file = m->path}, m->signature, m->nsignatures, m->signatures);
    if (!m->nsignatures)
        diag_hint(m->c->diags, "save it with signatures=, or Keras's model.export");
    return NULL;
}

static const TfMetaGraph *find_meta(const TfSavedModel *s)
{
    for (uint32_t i = 0; i < s->meta.n; i++) {
        const TfMetaGraph *g = s->meta.at[i];

        for (uint32_t k = 0; g->info && k < g->info->tags.n; k++)
            if (!strcmp(g->info->tags.at[k], "serve"))
                return g;
    }
    return s->meta.n == 1 ? s->meta.at[0] : NULL;
}

static bool read_saved(TfModel *m, const TfSavedModel *s)
{
    const TfMetaGraph *g = find_meta(s);
    const TfEntryDef  *e;

    if (!g || !g->graph)
        return error_at(m->c, E_IMPORT, ((Loc){.file = m->path}), "no graph has the tag 'serve'");
    m->saved = true;
    m->library = g->graph->library;
    m->restore = g->saver ? g->saver->restore : NULL;
    if (!tf_read_graph(m, &g->graph->node, &m->graph))
        return false;
    if (!(e = find_entry(m, g)) || !add_ports(m, &e->input, false) ||
        !add_ports(m, &e->output, true))
        return false;
    sort_ports(m->in.at, m->in.n);
    sort_ports(m->out.at, m->out.n);
    return true;
}

/* ---- frozen graphs ---------------------------------------------------------------------------------- */

/* Files of pictures are not read: the picture is the input. */
static bool is_picture(const TfOp *p)
{
    return !strcmp(p->op, "DecodeJpeg") || !strcmp(p->op, "DecodePng");
}

static bool is_input(const TfOp *p)
{
    return is_picture(p) || !strcmp(p->op, "Placeholder") || !strcmp(p->op, "PlaceholderV2") ||
           !strcmp(p->op, "PlaceholderWithDefault");
}

/* [height, width, channels] */
static const TfShape *picture_shape(Ctx *c, const TfOp *p)
{
    const TfValueDef *channels = tf_attr(p, "channels");
    TfShape          *s = NEW(c->arena, TfShape);

    for (uint32_t i = 0; i < 3; i++) {
        TfDim *d = NEW(c->arena, TfDim);

        d->size = i == 2 && channels && channels->i > 0 ? channels->i : -1;
        vec_push(c->arena, &s->dim, d);
    }
    return s;
}

static void add_portal(TfModel *m, bool output, uint32_t node, uint32_t port)
{
    const TfOp       *p = &m->graph.op[node];
    const TfValueDef *dtype = tf_attr(p, "dtype"), *shape = tf_attr(p, "shape");
    TfPortal          x = {intern_printf(m->c->strings, "%s:%u", p->name, port),
                           {node, port},
                  dtype ? dtype->type : 0,
                  shape ? shape->shape : NULL};

    if (is_picture(p)) {
        x.dtype = dtype ? dtype->type : TF_UINT8;
        x.shape = picture_shape(m->c, p);
    }

    if (output)
        vec_push(m->c->arena, &m->out, x);
    else
        vec_push(m->c->arena, &m->in, x);
}

/* All outputs of nodes that no other takes anything of, or waits for.  Exits are variables of loops
 * that nobody asked for, as long as there is anything else. */
static void find_outputs(TfModel *m, bool exits)
{
    const TfGraph *g = &m->graph;
    bool          *taken = NEW_ARRAY(m->c->scratch, bool, g->n + 1);

    for (uint32_t i = 0; i < g->n; i++) {
        for (uint32_t k = 0; k < g->op[i].nin; k++)
            if (g->op[i].in[k].node < g->n)
                taken[g->op[i].in[k].node] = true;
        for (uint32_t k = 0; k < g->op[i].nctrl; k++)
            taken[g->op[i].ctrl[k]] = true;
    }
    for (uint32_t i = 0; i < g->n; i++) {
        const TfOp *p = &g->op[i];

        if (taken[i] || is_input(p) || !strcmp(p->op, "Const") || (p->row && p->nout == 0) ||
            (!exits && !strcmp(p->op, "Exit")))
            continue;
        for (uint32_t k = 0; k < (p->nout ? p->nout : 1); k++)
            add_portal(m, true, i, k);
    }
}

/* The placeholders that outputs need, in the order of the file. */
static void find_inputs(TfModel *m)
{
    const TfGraph *g = &m->graph;
    bool          *seen = NEW_ARRAY(m->c->scratch, bool, g->n + 1);
    VEC(uint32_t) todo = {0};

    for (uint32_t i = 0; i < m->out.n; i++)
        vec_push(m->c->scratch, &todo, m->out.at[i].port.node);
    while (todo.n) {
        uint32_t    at = todo.at[--todo.n];
        const TfOp *p;

        if (at >= g->n || seen[at])
            continue;
        seen[at] = true;
        p = &g->op[at];
        for (uint32_t k = 0; k < p->nin && !is_input(p); k++)
            vec_push(m->c->scratch, &todo, p->in[k].node);
    }
    for (uint32_t i = 0; i < g->n; i++)
        if (seen[i] && is_input(&g->op[i]))
            add_portal(m, false, i, 0);
}

static bool read_frozen(TfModel *m, const TfGraphDef *d)
{
    if (m->signature)
        return error_at(m->c, E_IMPORT, ((Loc){.file = m->path}),
                        "a frozen graph has no signatures; --output-tensors says what it gives");
    m->library = d->library;
    if (!tf_read_graph(m, &d->node, &m->graph))
        return false;
    find_outputs(m, false);
    if (m->out.n == 0)
        find_outputs(m, true);
    find_inputs(m);
    return true;
}

bool tf_read_model(Ctx *c, const char *path, Bytes file, const char *signature, TfModel *out)
{
    TfSavedModel *saved = NEW(c->arena, TfSavedModel);
    TfGraphDef   *graph = NEW(c->arena, TfGraphDef);
    Loc           loc = {.file = path};
    bool          is_saved, text = by_text(path, file, &is_saved);
    bool (*read)(Diags *, Arena *, Loc, const PbMessage *, Bytes, void *) =
        text ? pb_read_text : pb_read;

    *out = (TfModel){.c = c, .path = path, .signature = signature, .functions = map_new(c->arena)};
    if (!text)
        is_saved = is_saved_model(file);
    if (is_saved)
        return read(c->diags, c->arena, loc, &tf_saved_model, file, saved) &&
               read_saved(out, saved);
    return read(c->diags, c->arena, loc, &tf_graph_def, file, graph) && read_frozen(out, graph);
}
