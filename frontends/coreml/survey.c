/* A look at all layers and operators before anything is built.
 *
 * Kinds of models that are not read, layers and operators without a row, fields and inputs that are
 * not known: all of it is reported at once, each fault once with the first that has it. */
#include "frontends/coreml/coreml.h"

#include <string.h>

typedef struct {
    CmlImport  *im;
    const char *op, *name;
    uint32_t    ordinal, depth;
    Findings    findings;
} Survey;

static void found(Survey *s, DiagId id, const char *hint, const char *fmt, ...) PRINTF_LIKE(4, 5);
static void found(Survey *s, DiagId id, const char *hint, const char *fmt, ...)
{
    Finding f = {.id = id,
                 .op = id == E_UNSUPPORTED_OP ? NULL : s->op,
                 .hint = hint,
                 .first = s->name,
                 .ordinal = s->ordinal};
    va_list ap;

    va_start(ap, fmt);
    finding_addv(s->im->c, &s->findings, f, fmt, ap);
    va_end(ap);
}

/* ---- layers --------------------------------------------------------------------------------------- */

static PbWire wire_of(const CmlField *f)
{
    switch (f->kind) {
    case CML_INT:
    case CML_BOOL: return PB_WIRE_VARINT;
    case CML_FLOAT: return PB_WIRE_I32;
    case CML_DOUBLE: return PB_WIRE_I64;
    case CML_TEXT:
    case CML_BYTES:
    case CML_RECORD: return PB_WIRE_LEN;
    }
    return PB_WIRE_LEN;
}

/* Numbers that are packed end with a whole one. */
static bool whole(const CmlField *f, Bytes packed)
{
    Reader r = reader(packed);

    if (f->kind == CML_FLOAT || f->kind == CML_DOUBLE)
        return packed.n % (f->kind == CML_FLOAT ? 4 : 8) == 0;
    while (reader_left(&r) && !r.bad)
        (void)read_varint(&r);
    return !r.bad;
}

static bool survey_layers(Survey *s, const CmlNetwork *net);

static bool survey_network(Survey *s, Bytes bytes)
{
    CmlNetwork net = {0};
    bool       ok;

    if (++s->depth > CML_MAX_NESTING)
        return error_at(s->im->c, E_UNSUPPORTED, ((Loc){.file = s->im->path}),
                        "networks are nested more than %d deep", CML_MAX_NESTING);
    ok = pb_read(s->im->c->diags, s->im->c->arena, (Loc){.file = s->im->path}, &cml_network, bytes,
                 &net) &&
         survey_layers(s, &net);
    s->depth--;
    return ok;
}

/* All fields of a message are known and parse, and so do those of the messages in it. */
static bool survey_message(Survey *s, const CmlRecord *record, Bytes bytes)
{
    Reader r = reader(bytes);
    PbItem it;

    while (pb_next(&r, &it)) {
        CmlField f;

        if (!cml_field_numbered(record, it.number, &f)) {
            found(s, W_UNKNOWN_ATTRIBUTE, "the file is of a newer version of the format",
                  "field %u of its %s is not known", it.number, record->name);
            continue;
        }
        if (it.wire != wire_of(&f) && !(f.many && it.wire == PB_WIRE_LEN && whole(&f, it.bytes)))
            return error_at(s->im->c, E_PARSE_MODEL, ((Loc){.file = s->im->path}),
                            "'%s': field %u of its %s is broken", s->name, it.number, record->name);
        if (f.kind == CML_RECORD &&
            !(f.record ? survey_message(s, f.record, it.bytes) : survey_network(s, it.bytes)))
            return false;
    }
    return !r.bad || error_at(s->im->c, E_PARSE_MODEL, ((Loc){.file = s->im->path}),
                              "'%s': its %s ends early or is not protobuf", s->name, record->name);
}

static void survey_inputs(Survey *s, const CmlRow *row, uint32_t n)
{
    uint32_t least = 0, most = 0;
    CmlWord  w;

    for (uint32_t i = 0; cml_word(cml_inputs(row), i, &w); i++) {
        least += !w.maybe;
        most = w.many ? UINT32_MAX : most + 1;
    }
    if (n < least)
        found(s, E_IMPORT, NULL, "%u input%s, but it takes %u", n, n == 1 ? "" : "s", least);
    else if (n > most)
        found(s, W_SURPLUS_INPUTS, NULL, "%u input%s, but it takes %u", n, n == 1 ? "" : "s", most);
}

static bool survey_layers(Survey *s, const CmlNetwork *net)
{
    for (uint32_t i = 0; i < net->layers.n; i++) {
        Ctx     *c = s->im->c;
        CmlLayer l;

        if (s->depth == 0)
            s->ordinal++;
        if (!cml_read_layer(c, (Loc){.file = s->im->path}, net->layers.at[i], &l))
            return false;
        s->name = l.head.name;
        s->op = l.row ? l.row->name : "layer";
        if (!l.row) {
            const char *hint, *kind = cml_layer_kind(c, l.number, &hint);

            found(s, E_UNSUPPORTED_OP, hint, "layer %s is not supported", kind);
            continue;
        }
        survey_inputs(s, l.row, l.head.in.n);
        if (!survey_message(s, l.row->record, l.message.bytes))
            return false;
    }
    return true;
}

/* ---- operators ------------------------------------------------------------------------------------ */

static bool given(const CmlOperation *p, const CmlWord *w)
{
    for (uint32_t i = 0; i < p->in.n; i++) {
        const CmlInputEntry *e = p->in.at[i];

        if (e->key && strlen(e->key) == w->n && !strncmp(e->key, w->name, w->n))
            return true;
    }
    for (uint32_t i = 0; i < p->attributes.n; i++) {
        const CmlAttribute *a = p->attributes.at[i];

        if (cml_is_operand(a) && strlen(a->key) == w->n && !strncmp(a->key, w->name, w->n))
            return true;
    }
    return false;
}

static bool has_word(const char *inputs, const char *name)
{
    CmlWord w;

    for (uint32_t i = 0; cml_word(inputs, i, &w); i++)
        if (strlen(name) == w.n && !strncmp(name, w.name, w.n))
            return true;
    return false;
}

static const char *closest(Survey *s, const char *inputs, const char *name)
{
    Arena      *a = s->im->c->arena;
    TextList    names = {0};
    const char *near;
    CmlWord     w;

    for (uint32_t i = 0; cml_word(inputs, i, &w); i++)
        vec_push(a, &names, arena_printf(a, "%.*s", (int)w.n, w.name));
    near = str_closest(name, names.at, names.n);
    return near ? arena_printf(a, "did you mean '%s'?", near) : NULL;
}

static void survey_operands(Survey *s, const CmlRow *row, const CmlOperation *p)
{
    const char *inputs = cml_inputs(row);
    CmlWord     w;

    for (uint32_t i = 0; cml_word(inputs, i, &w); i++)
        if (!w.maybe && !given(p, &w))
            found(s, E_IMPORT, NULL, "input '%.*s' is missing", (int)w.n, w.name);
    for (uint32_t i = 0; i < p->in.n; i++) {
        const CmlInputEntry *e = p->in.at[i];

        if (!has_word(inputs, e->key ? e->key : ""))
            found(s, W_UNKNOWN_ATTRIBUTE, e->key ? closest(s, inputs, e->key) : NULL,
                  "it has no input '%s'", e->key ? e->key : "");
    }
    for (uint32_t i = 0; i < p->attributes.n; i++) {
        const CmlAttribute *a = p->attributes.at[i];

        if (cml_is_operand(a) && !has_word(inputs, a->key))
            found(s, W_UNKNOWN_ATTRIBUTE, closest(s, inputs, a->key), "it has no attribute '%s'",
                  a->key);
    }
}

static bool survey_block(Survey *s, const CmlBlock *b)
{
    for (uint32_t i = 0; i < b->operations.n; i++) {
        const CmlOperation *p = b->operations.at[i];
        const CmlRow       *row = p->type ? cml_program_row(p->type) : NULL;

        if (s->depth == 0)
            s->ordinal++;
        s->name = cml_operation_name(p);
        s->op = p->type ? p->type : "operator";
        if (!row)
            found(s, E_UNSUPPORTED_OP, cml_program_refusal(s->op), "operator %s is not supported",
                  s->op);
        else if (strcmp(p->type, "const") != 0)
            survey_operands(s, row, p);
        s->depth++;
        for (uint32_t k = 0; k < p->blocks.n; k++)
            survey_block(s, p->blocks.at[k]);
        s->depth--;
    }
    return true;
}

static bool survey_program(Survey *s, const CmlModel *m)
{
    Loc                loc = {.file = s->im->path};
    const CmlFunction *f = cml_main_function(s->im->c, loc, m);
    const CmlBlock    *b = f ? cml_function_block(s->im->c, loc, f) : NULL;

    return b && survey_block(s, b);
}

/* ---- models --------------------------------------------------------------------------------------- */

bool cml_survey(CmlImport *im, uint32_t n, const CmlModel *const *models)
{
    uint32_t before = diag_errors(im->c->diags);
    Loc      loc = {.file = im->path};

    for (uint32_t i = 0; i < n; i++) {
        const CmlModel   *m = models[i];
        Survey            s = {.im = im, .findings = {.path = im->path}};
        const CmlNetwork *net = cml_network_of(m);

        if (m->version > CML_MAX_VERSION)
            diag_warn(im->c->diags, W_MODEL_VERSION, loc,
                      "the model is of version %lld of the format; the newest known is %d",
                      (long long)m->version, CML_MAX_VERSION);
        s.findings.noun = net ? "layer" : "operator";
        if (m->suppression)
            continue;
        if (!net && !m->program)
            error_at(im->c, E_UNSUPPORTED, loc, "a model of the kind %s is not supported",
                     cml_kind(m));
        else if (!(net ? survey_layers(&s, net) : survey_program(&s, m)))
            return false;
        findings_report(im->c, &s.findings);
    }
    return diag_errors(im->c->diags) == before;
}
