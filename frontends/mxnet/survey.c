/* A look at all nodes that are needed before anything is built.
 *
 * Which have no row in ops.def, take other operands than their operator does, have attributes that
 * it does not, or values that these cannot be: all of it is reported at once, each fault once with
 * the first node that has it. */
#include "frontends/mxnet/mxnet.h"

#include <string.h>

typedef struct {
    Ctx        *c;
    const MxOp *p;
    uint32_t    ordinal; /* 0: in a graph within a node */
    Findings    findings;
} Survey;

static void found(Survey *s, DiagId id, const char *hint, const char *fmt, ...) PRINTF_LIKE(4, 5);
static void found(Survey *s, DiagId id, const char *hint, const char *fmt, ...)
{
    Finding f = {.id = id,
                 .op = id == E_UNSUPPORTED_OP ? NULL : s->p->op,
                 .hint = hint,
                 .first = s->p->name,
                 .ordinal = s->ordinal};
    va_list ap;

    va_start(ap, fmt);
    finding_addv(s->c, &s->findings, f, fmt, ap);
    va_end(ap);
}

static const char *closest(Survey *s, const char *name)
{
    TextList    names = {0};
    const char *near;

    mx_attr_names(s->c, s->p->row->schema, &names);
    near = str_closest(name, names.at, names.n);
    return near ? arena_printf(s->c->arena, "did you mean '%s'?", near) : NULL;
}

/* What users and trainers note at a node, which says nothing of what it computes: __shape__, and in
 * older files names without the underscores, also with a role before them, weight_lr_mult. */
static bool is_note(const char *key)
{
    static const char *const words[] = {"ctx_group", "lr_mult", "wd_mult", "force_mirroring",
                                        "mirror_stage"};

    for (uint32_t i = 0; i < COUNT(words); i++)
        if (str_ends(key, words[i]))
            return true;
    return str_starts(key, "__");
}

static void check_attrs(Survey *s)
{
    const MxSchema *schema = s->p->row->schema;
    const char     *at = schema->attrs;
    MxAttrSpec      a;

    for (uint32_t i = 0; i < s->p->nattrs; i++) {
        const MxPair *x = &s->p->attrs[i];

        if (is_note(x->key))
            continue;
        if (!mx_attr_spec(schema, x->key, &a)) {
            found(s, W_UNKNOWN_ATTRIBUTE, closest(s, x->key), "attribute '%s' is not known",
                  x->key);
        } else if (!mx_check_value(s->c, &a, x->value)) {
            const char *hint = NULL;

            if (a.words.n)
                hint = arena_printf(s->c->arena, "it is one of %.*s", (int)a.words.n,
                                    (const char *)a.words.at);
            found(s, E_IMPORT, hint, "attribute '%s' cannot be '%s'", x->key, x->value);
        }
    }
    while (mx_next_attr(&at, &a)) {
        const char *name = intern_n(s->c->strings, (const char *)a.name.at, a.name.n);

        if (!a.fallback.at && !mx_attr(s->p, name))
            found(s, E_IMPORT, NULL, "attribute '%s' is missing", name);
    }
}

static void check_operands(Survey *s)
{
    const char *at = s->p->row->schema->inputs;
    uint32_t    want = 0, needed = 0;
    MxArgSpec   a;

    while (mx_next_arg(&at, &a)) {
        want += mx_arg_count(s->c, s->p, &a);
        needed = needed ? needed : want;
    }
    /* Labels may have been left out. */
    if (s->p->nin != want && !(s->p->row->how == MX_FIRST && s->p->nin == needed))
        found(s, E_IMPORT, NULL, "%u operand%s, but it takes %u", s->p->nin,
              s->p->nin == 1 ? "" : "s", want);
}

/* Graphs were read MX_MAX_NESTING deep at most. */
static void survey_graph(Survey *s, const MxGraph *g, const bool *needed, bool within)
{
    for (uint32_t i = 0; i < g->n; i++) {
        const MxOp *p = &g->op[i];

        if (!p->op || (needed && !needed[i]))
            continue;
        s->p = p;
        s->ordinal = within ? 0 : i + 1;
        if (!p->row) {
            found(s, E_UNSUPPORTED_OP, NULL, "operator %s is not supported", p->op);
            continue;
        }
        check_attrs(s);
        check_operands(s);
        for (uint32_t k = 0; k < p->nsub; k++)
            survey_graph(s, &p->sub[k], NULL, true);
    }
}

bool mx_survey(Ctx *c, const char *path, const MxGraph *g, const bool *needed)
{
    Survey   s = {.c = c, .findings = {.path = path, .noun = "node"}};
    uint32_t before = diag_errors(c->diags);

    survey_graph(&s, g, needed, false);
    findings_report(c, &s.findings);
    return diag_errors(c->diags) == before;
}
