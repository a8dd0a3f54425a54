/* A look at all nodes of all graphs before anything is built.
 *
 * Which operators have no row in ops.def, and what nodes have that their operators do not, as
 * schema.def says: all of it is reported at once, each fault once with the first node that has it.
 */
#include "frontends/onnx/onnx.h"

#include <string.h>

/* ---- names and versions ------------------------------------------------------------------------- */

const char *onnx_text(const char *s)
{
    return s ? s : "";
}

const char *onnx_domain(const char *domain)
{
    return !domain || !strcmp(domain, "ai.onnx") ? "" : domain;
}

const char *onnx_op(const OnnxNode *p)
{
    return onnx_text(p->op_type);
}

const char *onnx_node_name(const OnnxNode *p)
{
    if (p->name && *p->name)
        return p->name;
    for (uint32_t i = 0; i < p->output.n; i++)
        if (*p->output.at[i])
            return p->output.at[i];
    return "";
}

const OnnxFunction *onnx_function_of(const Import *im, const char *domain, const char *op)
{
    for (uint32_t i = 0; i < im->model->functions.n; i++) {
        const OnnxFunction *f = im->model->functions.at[i];

        if (!strcmp(onnx_text(f->name), op) && !strcmp(onnx_domain(f->domain), domain))
            return f;
    }
    return NULL;
}

static int64_t listed(const PbMsgs *imports, const char *domain)
{
    for (uint32_t i = 0; i < imports->n; i++) {
        const OnnxOpset *o = imports->at[i];

        if (!strcmp(onnx_domain(o->domain), domain))
            return o->version;
    }
    return 0;
}

/* Contributed domains are often not imported by name, and before IR version 3 none was; their rows
 * start at 1. */
int64_t onnx_opset_of(const Import *im, const OnnxFunction *body, const char *domain)
{
    int64_t version = body ? listed(&body->opset_import, domain) : 0;

    if (version == 0)
        version = listed(&im->model->opset_import, domain);
    if (version == 0 && (*domain || (im->model->ir_version < 3 && !im->model->opset_import.n)))
        version = 1;
    return version;
}

/* ---- what was found -------------------------------------------------------------------------------- */

typedef struct {
    Import  *im;
    Findings missing, findings; /* operators without a row; faults of nodes */
    /* the node that is looked at */
    const OnnxFunction *body; /* the function that it is of, NULL: of the model's graphs */
    const OnnxNode     *node;
    uint32_t            ordinal; /* of the top-level node that it is in, 0: it is of a function */
} Survey;

static void found(Survey *s, DiagId id, const char *hint, const char *fmt, ...) PRINTF_LIKE(4, 5);
static void found(Survey *s, DiagId id, const char *hint, const char *fmt, ...)
{
    Finding f = {.id = id,
                 .op = onnx_op(s->node),
                 .hint = hint,
                 .first = onnx_node_name(s->node),
                 .ordinal = s->ordinal};
    va_list ap;

    va_start(ap, fmt);
    finding_addv(s->im->c, &s->findings, f, fmt, ap);
    va_end(ap);
}

/* `other`: the row of another version, NULL: there is none. */
static void no_row(Survey *s, const char *domain, int64_t version, const OnnxRow *other)
{
    Ctx        *c = s->im->c;
    const char *op = onnx_op(s->node);
    StrBuf      text = strbuf(c->arena);
    Finding f = {.id = E_UNSUPPORTED_OP, .first = onnx_node_name(s->node), .ordinal = s->ordinal};

    str_printf(&text, "operator %s%s%s is not supported", domain, *domain ? "." : "", op);
    if (other)
        str_printf(&text, " in opset %lld", (long long)version);
    f.text = text.at;
    if (other && version < other->lo)
        f.hint = arena_printf(c->arena, "it is from opset %lld on", (long long)other->lo);
    else if (!*domain && !strcmp(op, "ImageDecoder"))
        f.hint = "compiled models hold no decoders: begin the model behind it, with pixels as an "
                 "input (--input-image)";
    finding_add(c, &s->missing, f);
}

/* ---- a node against its schema --------------------------------------------------------------------- */

static const struct {
    OnnxAttrType type;
    const char  *kind, *text;
} kinds[] = {
    {ONNX_ATTR_FLOAT, "float", "a float"},
    {ONNX_ATTR_INT, "int", "an integer"},
    {ONNX_ATTR_STRING, "string", "a string"},
    {ONNX_ATTR_TENSOR, "tensor", "a tensor"},
    {ONNX_ATTR_GRAPH, "graph", "a graph"},
    {ONNX_ATTR_FLOATS, "floats", "a list of floats"},
    {ONNX_ATTR_INTS, "ints", "a list of integers"},
    {ONNX_ATTR_STRINGS, "strings", "a list of strings"},
    {ONNX_ATTR_TENSORS, "tensors", "a list of tensors"},
    {ONNX_ATTR_GRAPHS, "graphs", "a list of graphs"},
    {ONNX_ATTR_SPARSE_TENSOR, "sparse_tensor", "a sparse tensor"},
    {ONNX_ATTR_SPARSE_TENSORS, "sparse_tensors", "a list of sparse tensors"},
    {ONNX_ATTR_TYPE, "type_proto", "a type"},
    {ONNX_ATTR_TYPES, "type_protos", "a list of types"},
};

static const char *kind_text(const char *kind, int64_t type)
{
    for (uint32_t i = 0; i < COUNT(kinds); i++)
        if (kind ? !strcmp(kinds[i].kind, kind) : kinds[i].type == type)
            return kinds[i].text;
    return "unknown";
}

/* Files of the first version do not say of what kind their attributes are. */
static void check_kind(Survey *s, const OnnxAttr *a, const char *kind)
{
    const char *is = kind_text(NULL, a->type), *wanted = kind_text(kind, 0);

    if (a->type && is != wanted)
        found(s, E_IMPORT, NULL, "attribute '%s' is %s, but should be %s", a->name, is, wanted);
}

typedef VEC(const char *) Names;

static void check_unknown(Survey *s, const char *name, const Names *known, const char *where)
{
    Ctx        *c = s->im->c;
    const char *near = str_closest(name, known->at, known->n), *hint;
    StrBuf      all = strbuf(c->arena);

    for (uint32_t i = 0; i < known->n; i++)
        str_printf(&all, "%s%s", i ? ", " : "", known->at[i]);
    hint = near       ? arena_printf(c->arena, "did you mean '%s'?", near)
           : known->n ? arena_printf(c->arena, "its attributes are %s", all.at)
                      : "it has no attributes";
    found(s, W_UNKNOWN_ATTRIBUTE, hint, "there is no attribute '%s'%s", name, where);
}

static bool has_attribute(const OnnxNode *p, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(onnx_text(((const OnnxAttr *)p->attribute.at[i])->name), name))
            return true;
    return false;
}

/* Names that begin with "__" are the exporter's own, as in onnx's checker. */
static void check_attributes(Survey *s, const char *list, const char *where)
{
    const OnnxNode *p = s->node;
    Names           names = {0};
    VEC(OnnxWord) words = {0};
    Arena   *a = s->im->c->arena;
    OnnxWord w;

    while (onnx_next_word(a, &list, &w)) {
        vec_push(a, &words, w);
        vec_push(a, &names, w.name);
    }
    for (uint32_t i = 0; i < p->attribute.n; i++) {
        const OnnxAttr *at = p->attribute.at[i];
        const char     *name = onnx_text(at->name);
        uint32_t        k = 0;

        while (k < names.n && strcmp(names.at[k], name) != 0)
            k++;
        if (k < names.n && words.at[k].kind)
            check_kind(s, at, words.at[k].kind);
        else if (k == names.n && !str_starts(name, "__"))
            check_unknown(s, name, &names, where);
        if (has_attribute(p, i, name))
            found(s, E_IMPORT, NULL, "attribute '%s' is there twice", name);
    }
    for (uint32_t k = 0; k < words.n; k++)
        if (words.at[k].mark == '!' && !has_attribute(p, p->attribute.n, words.at[k].name))
            found(s, E_IMPORT, NULL, "attribute '%s' is missing", words.at[k].name);
}

/* "2 inputs (X, W)" */
static const char *operands_text(Arena *a, uint32_t n, const char *what, const Names *names)
{
    StrBuf t = strbuf(a);

    str_printf(&t, "%u %s%s", n, what, n == 1 ? "" : "s");
    for (uint32_t i = 0; names && i < names->n; i++)
        str_printf(&t, "%s%s%s", i ? ", " : " (", names->at[i], i + 1 == names->n ? ")" : "");
    return t.at;
}

static uint32_t given(const PbTexts *names)
{
    uint32_t n = names->n;

    while (n && !*names->at[n - 1])
        n--; /* trailing ones that are left out */
    return n;
}

static void check_inputs(Survey *s, const char *list)
{
    const OnnxNode *p = s->node;
    Arena          *a = s->im->c->arena;
    uint32_t        n = given(&p->input), i = 0;
    bool            many = false;
    Names           names = {0};
    OnnxWord        w;

    for (; onnx_next_word(a, &list, &w); i++) {
        vec_push(a, &names, w.name);
        many |= w.mark == '*' || w.mark == '+';
        if ((w.mark == 0 || w.mark == '+') && (i >= n || !*p->input.at[i]))
            found(s, E_IMPORT, NULL, "input %u ('%s') is missing", i, w.name);
    }
    if (many || n <= i)
        return;
    s->im->surplus = true;
    found(s, W_SURPLUS_INPUTS, NULL, "%s, but it takes %s", operands_text(a, n, "input", NULL),
          operands_text(a, i, "input", &names));
}

static void check_outputs(Survey *s, const char *list)
{
    Arena   *a = s->im->c->arena;
    uint32_t n = given(&s->node->output);
    bool     many = false;
    Names    names = {0};
    OnnxWord w;

    while (onnx_next_word(a, &list, &w)) {
        vec_push(a, &names, w.name);
        many |= w.mark == '*' || w.mark == '+';
    }
    if (s->node->output.n == 0)
        found(s, E_IMPORT, NULL, "it has no outputs");
    else if (!many && n > names.n)
        found(s, E_IMPORT, NULL, "%s, but it gives %s", operands_text(a, n, "output", NULL),
              operands_text(a, names.n, "output", &names));
}

/* A call of a model-local function: what the function lists is its schema. */
static void check_call(Survey *s, const OnnxFunction *f)
{
    Arena *a = s->im->c->arena;
    StrBuf ins = strbuf(a), outs = strbuf(a), attrs = strbuf(a);

    for (uint32_t i = 0; i < f->input.n; i++)
        str_printf(&ins, "%s%s?", i ? " " : "", f->input.at[i]);
    for (uint32_t i = 0; i < f->output.n; i++)
        str_printf(&outs, "%s%s", i ? " " : "", f->output.at[i]);
    for (uint32_t i = 0; i < f->attribute.n; i++)
        str_printf(&attrs, "%s%s", attrs.n ? " " : "", f->attribute.at[i]);
    for (uint32_t i = 0; i < f->attribute_proto.n; i++)
        str_printf(&attrs, "%s%s", attrs.n ? " " : "",
                   onnx_text(((const OnnxAttr *)f->attribute_proto.at[i])->name));
    check_inputs(s, onnx_text(ins.at));
    check_outputs(s, onnx_text(outs.at));
    check_attributes(s, onnx_text(attrs.at), " of this function");
}

static void survey_node(Survey *s)
{
    const OnnxNode     *p = s->node;
    Import             *im = s->im;
    const char         *domain = onnx_domain(p->domain), *op = onnx_op(p);
    int64_t             version = onnx_opset_of(im, s->body, domain);
    const OnnxFunction *f = onnx_function_of(im, domain, op);
    const OnnxRow      *other = NULL;
    const OnnxSchema   *schema;

    if (f) {
        check_call(s, f);
        return;
    }
    if (version > 0 && onnx_row(domain, op, version, &other)) {
        if (!(schema = onnx_schema(domain, op, version)))
            BUG("%s has no schema for opset %lld", op, (long long)version);
        check_inputs(s, schema->inputs);
        check_outputs(s, schema->outputs);
        check_attributes(
            s, schema->attributes,
            *domain ? "" : arena_printf(im->c->arena, " in opset %lld", (long long)version));
        return;
    }
    if (version > 0) /* check_versions says it otherwise */
        no_row(s, domain, version, other);
}

/* `ordinal` 0: the nodes are those of the model's graph. */
static void survey_nodes(Survey *s, const PbMsgs *nodes, uint32_t ordinal)
{
    for (uint32_t i = 0; i < nodes->n; i++) {
        const OnnxNode *p = nodes->at[i];
        uint32_t        place = ordinal || s->body ? ordinal : i + 1;

        s->node = p;
        s->ordinal = place;
        survey_node(s);
        for (uint32_t k = 0; k < p->attribute.n; k++) {
            const OnnxAttr *a = p->attribute.at[k];

            if (a->g)
                survey_nodes(s, &a->g->node, place);
        }
    }
}

/* ---- versions ---------------------------------------------------------------------------------------- */

static bool uses_default_domain(const PbMsgs *nodes)
{
    for (uint32_t i = 0; i < nodes->n; i++)
        if (!*onnx_domain(((const OnnxNode *)nodes->at[i])->domain))
            return true;
    return false;
}

/* The list of the model, or of its function `body`. */
static void check_opsets(Import *im, const OnnxFunction *body, const char *whose)
{
    const PbMsgs *list = body ? &body->opset_import : &im->model->opset_import;
    Ctx          *c = im->c;
    Loc           loc = {.file = im->path};

    for (uint32_t i = 0; i < list->n; i++) {
        const OnnxOpset *o = list->at[i];
        const char      *domain = onnx_domain(o->domain);
        int64_t          newest = onnx_newest(domain);

        if (o->version < 1)
            error_at(c, E_IMPORT, loc, "%s is of opset %lld", whose, (long long)o->version);
        else if (newest && o->version > newest)
            diag_warn(c->diags, W_MODEL_VERSION, loc,
                      "%s is of opset %lld%s%s; the newest known is %lld", whose,
                      (long long)o->version, *domain ? " of " : "", domain, (long long)newest);
        for (uint32_t k = 0; k < i; k++) {
            const OnnxOpset *had = list->at[k];

            /* The same by both names of a domain is what some exporters write. */
            if (!strcmp(onnx_domain(had->domain), domain) && had->version != o->version)
                diag_warn(c->diags, W_MODEL_VERSION, loc,
                          "%s imports the opset of domain '%s' twice: %lld and %lld", whose,
                          *domain ? domain : "ai.onnx", (long long)had->version,
                          (long long)o->version);
        }
    }
    if (!onnx_opset_of(im, body, "") &&
        uses_default_domain(body ? &body->node : &im->model->graph->node))
        error_at(c, E_IMPORT, loc, "%s does not say of which opset its operators are", whose);
}

static void check_versions(Import *im)
{
    if (im->model->ir_version > ONNX_IR_KNOWN)
        diag_warn(im->c->diags, W_MODEL_VERSION, (Loc){.file = im->path},
                  "the model is of IR version %lld; the newest known is %d",
                  (long long)im->model->ir_version, ONNX_IR_KNOWN);
    check_opsets(im, NULL, "the model");
    for (uint32_t i = 0; i < im->model->functions.n; i++) {
        const OnnxFunction *f = im->model->functions.at[i];

        check_opsets(im, f, arena_printf(im->c->arena, "function '%s'", onnx_text(f->name)));
    }
}

bool onnx_survey(Import *im)
{
    Findings none = {.path = im->path, .noun = "node"};
    Survey   s = {.im = im, .missing = none, .findings = none};
    uint32_t before = diag_errors(im->c->diags);

    check_versions(im);
    survey_nodes(&s, &im->model->graph->node, 0);
    for (uint32_t i = 0; i < im->model->functions.n; i++) {
        s.body = im->model->functions.at[i];
        survey_nodes(&s, &s.body->node, 0);
    }
    findings_report(im->c, &s.missing);
    findings_report(im->c, &s.findings);
    return diag_errors(im->c->diags) == before;
}
