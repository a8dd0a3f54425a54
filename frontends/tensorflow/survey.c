/* A look at all nodes that the outputs need before anything is built.
 *
 * Which have no row in ops.def, take other inputs than their operator does, or have attributes that
 * it does not: all of it is reported at once, each fault once with the first node that has it.
 * Nodes that only come before others are looked at, too: none may change a variable. */
#include "frontends/tensorflow/tensorflow.h"

#include <string.h>

typedef struct {
    TfImport      *im;
    const TfGraph *g;
    const TfOp    *p;
    uint32_t       ordinal; /* 0: in a function */
    Findings       findings;
} Survey;

static void found(Survey *s, DiagId id, const char *hint, const char *fmt, ...) PRINTF_LIKE(4, 5);
static void found(Survey *s, DiagId id, const char *hint, const char *fmt, ...)
{
    Finding f = {.id = id,
                 .op = id == E_UNSUPPORTED_OP ? NULL : s->p->op,
                 .hint = hint,
                 .first = tf_node_name(s->im, s->g, s->p),
                 .ordinal = s->ordinal};
    va_list ap;

    va_start(ap, fmt);
    finding_addv(s->im->c, &s->findings, f, fmt, ap);
    va_end(ap);
}

static bool changes_state(const char *op)
{
    static const char *const ops[] = {"Assign",
                                      "AssignAdd",
                                      "AssignSub",
                                      "AssignVariableOp",
                                      "AssignAddVariableOp",
                                      "AssignSubVariableOp",
                                      "ScatterUpdate",
                                      "ScatterAdd",
                                      "ResourceScatterUpdate",
                                      "ResourceScatterAdd"};

    for (uint32_t i = 0; i < COUNT(ops); i++)
        if (!strcmp(ops[i], op))
            return true;
    return str_starts(op, "ResourceApply") || str_starts(op, "Apply");
}

/* ---- nodes ------------------------------------------------------------------------------------------ */

static const char *closest_attr(Survey *s, const char *name)
{
    const char *at = s->p->row->schema->attrs;
    VEC(const char *) names = {0};
    TfAttrSpec  a;
    const char *near;

    while (tf_next_attr(&at, &a))
        vec_push(s->im->c->scratch, &names,
                 intern_n(s->im->c->strings, (const char *)a.name.at, a.name.n));
    near = str_closest(name, names.at, names.n);
    return near ? arena_printf(s->im->c->arena, "did you mean '%s'?", near) : NULL;
}

/* Those that begin with `_` are notes of TensorFlow's own. */
static void check_attrs(Survey *s)
{
    const TfSchema *schema = s->p->row->schema;
    const char     *at = schema->attrs;
    TfAttrSpec      a;

    for (uint32_t i = 0; i < s->p->def->attr.n; i++) {
        const TfAttr *x = s->p->def->attr.at[i];

        if (!x->key || *x->key == '_')
            continue;
        if (!tf_attr_spec(schema, x->key, &a))
            found(s, W_UNKNOWN_ATTRIBUTE, closest_attr(s, x->key), "attribute '%s' is not known",
                  x->key);
        else if (x->value && x->value->placeholder)
            found(s, E_UNSUPPORTED, NULL, "attribute '%s' is that of a function", x->key);
    }
    while (tf_next_attr(&at, &a)) {
        const char *name = intern_n(s->im->c->strings, (const char *)a.name.at, a.name.n);

        if (!a.fallback.at && !tf_attr(s->p, name))
            found(s, E_IMPORT, NULL, "attribute '%s' is missing", name);
    }
}

static void check_inputs(Survey *s)
{
    const char *at = s->p->row->schema->inputs;
    uint32_t    want = 0;
    TfArgSpec   a;

    while (tf_next_arg(&at, &a))
        want += tf_arg_count(s->im->model, s->p, &a);
    if (s->p->nin != want)
        found(s, E_IMPORT, NULL, "%u input%s, but it takes %u", s->p->nin,
              s->p->nin == 1 ? "" : "s", want);
}

static void check_function(Survey *s, const char *name)
{
    uint32_t before = diag_errors(s->im->c->diags);

    if (!tf_function(s->im->model, name) && diag_errors(s->im->c->diags) == before)
        found(s, E_IMPORT, NULL, "function '%s' does not exist", name);
}

static void check_functions(Survey *s)
{
    for (uint32_t i = 0; i < s->p->def->attr.n; i++) {
        const TfAttr *a = s->p->def->attr.at[i];

        if (!a->key || !a->value || *a->key == '_')
            continue;
        if (a->value->func)
            check_function(s, a->value->func->name ? a->value->func->name : "");
        for (uint32_t k = 0; a->value->list && k < a->value->list->func.n; k++) {
            const TfFunc *f = a->value->list->func.at[k];

            check_function(s, f->name ? f->name : "");
        }
    }
}

static void survey_node(void *user, const TfGraph *g, const TfOp *p, bool order)
{
    Survey  *s = user;
    uint32_t before = diag_errors(s->im->c->diags);

    s->g = g;
    s->p = p;
    s->ordinal = g->name ? 0 : (uint32_t)(p - g->op) + 1;
    if (changes_state(p->op)) {
        found(s, E_UNSUPPORTED, "export the model for inference",
              "it changes a variable from run to run");
    } else if (!order && p->row) {
        check_inputs(s);
        check_attrs(s);
        check_functions(s);
    } else if (!order && !tf_function(s->im->model, p->op) &&
               diag_errors(s->im->c->diags) == before) {
        found(s, E_UNSUPPORTED_OP, !strncmp(p->op, "Parse", 5) ? TF_NO_STRINGS : NULL,
              "operator %s is not supported", p->op);
    }
}

bool tf_survey(TfImport *im)
{
    Survey   s = {.im = im, .findings = {.path = im->path, .noun = "node"}};
    uint32_t before = diag_errors(im->c->diags);

    tf_walk(im->model, survey_node, &s);
    findings_report(im->c, &s.findings);
    return diag_errors(im->c->diags) == before;
}
