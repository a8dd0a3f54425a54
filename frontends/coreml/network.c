/* Neural networks: layers one after another, which name what they take and give. */
#include "frontends/coreml/coreml.h"

#include <string.h>

enum { FIRST_KIND = 100 }; /* of the fields that say what a layer is */

bool cml_read_layer(Ctx *c, Loc loc, Bytes bytes, CmlLayer *out)
{
    Reader r = reader(bytes);
    PbItem it;

    *out = (CmlLayer){.message.arena = c->arena};
    if (!pb_read(c->diags, c->arena, loc, &cml_layer_head, bytes, &out->head))
        return false;
    while (pb_next(&r, &it))
        if (it.number >= FIRST_KIND && it.wire == PB_WIRE_LEN) {
            out->number = it.number;
            out->message.bytes = it.bytes;
        }
    out->row = cml_layer_row(out->number);
    if (out->row)
        out->message.record = out->row->record;
    if (!out->head.name || !*out->head.name)
        out->head.name = out->head.out.n ? out->head.out.at[0] : "layer";
    return true;
}

/* ---- scopes --------------------------------------------------------------------------------------- */

CmlScope cml_scope(CmlImport *im, const CmlScope *outer)
{
    return (CmlScope){.im = im,
                      .outer = outer,
                      .values = map_new(im->c->arena),
                      .depth = outer ? outer->depth + 1 : 0};
}

CmlValue *cml_find(const CmlScope *s, const char *name)
{
    name = intern(s->im->c->strings, name);
    for (; s; s = s->outer) {
        CmlValue *v = map_get(s->values, PTR_KEY(name));

        if (v)
            return v;
    }
    return NULL;
}

void cml_put(CmlScope *s, const char *name, CmlValue v)
{
    Ctx *c = s->im->c;

    name = intern(c->strings, name);
    if (!map_get(s->values, PTR_KEY(name)))
        vec_push(c->arena, &s->names, name);
    map_put(s->values, PTR_KEY(name), DUP_ARRAY(c->arena, &v, 1));
    if (s->outer || !v.e || !expr_has_shape(v.e))
        return;
    vec_push(c->arena, &s->im->tensors.names, name);
    vec_push(c->arena, &s->im->tensors.at, v.e);
}

/* ---- layers --------------------------------------------------------------------------------------- */

/* The layer's inputs by the names that its row has for them. */
static bool name_inputs(CmlNode *n, const CmlLayerHead *head)
{
    CmlWord  w;
    uint32_t at = 0;

    n->args = NEW_ARRAY(n->b.c->arena, CmlArg, head->in.n + 1);
    for (uint32_t i = 0; cml_word(cml_inputs(n->row), i, &w) && at < head->in.n; i++) {
        CmlArg *a = &n->args[n->nargs++];

        a->name = intern_n(n->b.c->strings, w.name, w.n);
        a->at = NEW_ARRAY(n->b.c->arena, CmlValue, head->in.n);
        do {
            const CmlValue *v = cml_find(n->scope, head->in.at[at]);

            if (!v)
                return cml_error(n, E_IMPORT, "its input '%s' is not computed before it",
                                 head->in.at[at]);
            a->at[a->n++] = *v;
        } while (++at < head->in.n && w.many);
    }
    return true;
}

/* Fields of the message that no converter asked for would be ignored. */
static bool check_fields(CmlNode *n)
{
    const CmlMessage *m = &n->layer->message;
    Reader            r = reader(m->bytes);
    PbItem            it;
    CmlField          f;

    while (pb_next(&r, &it))
        if (cml_field_numbered(m->record, it.number, &f) && !(*m->read >> f.place & 1))
            return cml_error(n, E_UNSUPPORTED, "'%.*s' is not supported", (int)f.n, f.name);
    return true;
}

static bool import_layer(CmlScope *s, CmlLayer *l)
{
    Ctx     *c = s->im->c;
    uint64_t read = 0;
    CmlNode  n = {.im = s->im, .scope = s, .row = l->row, .layer = l, .nout = l->head.out.n};

    l->message.read = &read;
    n.b = (Build){
        c, {s->im->path, s->im->ordinal, 0, intern(c->strings, l->head.name)}, l->row->name};
    n.out = NEW_ARRAY(c->arena, CmlValue, n.nout + 1);
    if (!name_inputs(&n, &l->head) || !cml_convert(&n) || !check_fields(&n))
        return false;
    for (uint32_t i = 0; i < n.nout; i++)
        cml_put(s, l->head.out.at[i], n.out[i]);
    return true;
}

bool cml_import_layers(CmlScope *s, const CmlNetwork *net, uint32_t from)
{
    CmlImport *im = s->im;

    for (uint32_t i = from; i < net->layers.n; i++) {
        const Expr *flags = s->flag[CML_STOPS];
        CmlLayer    l;

        if (!s->depth)
            im->ordinal++;
        if (!cml_read_layer(im->c, (Loc){.file = im->path}, net->layers.at[i], &l) ||
            !import_layer(s, &l))
            return false;
        if (s->flag[CML_STOPS] != flags)
            return cml_import_rest(s, net, i + 1);
    }
    return true;
}
