/* A look at all operators that are needed before anything is built: those that have no row, take
 * other numbers of operands, or have arguments that are not known are reported at once, each fault
 * once with the first that has it. */
#include "frontends/caffe2/caffe2.h"

#include <string.h>

typedef struct {
    Ctx           *c;
    const C2OpDef *op;
    uint32_t       ordinal;
    Findings       findings;
} Survey;

static void found(Survey *s, DiagId id, const char *hint, const char *fmt, ...) PRINTF_LIKE(4, 5);
static void found(Survey *s, DiagId id, const char *hint, const char *fmt, ...)
{
    Finding f = {.id = id,
                 .op = id == E_UNSUPPORTED_OP ? NULL : s->op->type,
                 .hint = hint,
                 .first = s->op->output.n ? intern(s->c->strings, s->op->output.at[0]) : "",
                 .ordinal = s->ordinal};
    va_list ap;

    va_start(ap, fmt);
    finding_addv(s->c, &s->findings, f, fmt, ap);
    va_end(ap);
}

static void check_args(Survey *s, const C2Row *r)
{
    for (uint32_t i = 0; i < s->op->arg.n; i++) {
        const C2Arg *a = s->op->arg.at[i];
        const char  *name = a->name ? a->name : "", *near;
        TextList     names = {0};

        if (c2_knows(r, name))
            continue;
        c2_arg_names(s->c, r, &names);
        near = str_closest(name, names.at, names.n);
        found(s, W_UNKNOWN_ATTRIBUTE,
              near ? arena_printf(s->c->arena, "did you mean '%s'?", near) : NULL,
              "argument '%s' is not known", name);
    }
}

static void check_nets(Survey *s)
{
    for (uint32_t yes = 0; yes < 2; yes++) {
        const char *name = yes ? "then_net" : "else_net";

        if (!c2_branch(s->op, yes) && (yes || c2_arg_of(s->op, name)))
            found(s, E_IMPORT, NULL, "argument '%s' is not a net", name);
    }
}

static void check_op(Survey *s)
{
    const C2Row *r = c2_row(s->op->type ? s->op->type : "");
    uint32_t     least, most;

    if (!r) {
        found(s, E_UNSUPPORTED_OP, NULL, "operator %s is not supported",
              s->op->type ? s->op->type : "''");
        return;
    }
    check_args(s, r);
    if (r->convert == c2_if)
        check_nets(s);
    c2_operands(r, &least, &most);
    if (s->op->input.n < least || s->op->input.n > most)
        found(s, E_IMPORT, NULL, "%u operand%s, but it takes %s", s->op->input.n,
              s->op->input.n == 1 ? "" : "s", r->operands);
}

bool c2_survey(C2Import *im, const bool *needed)
{
    Survey   s = {.c = im->c, .findings = {.path = im->path, .noun = "node"}};
    uint32_t before = diag_errors(im->c->diags);

    for (uint32_t i = 0; i < im->net.op.n; i++) {
        C2Ops inner = {0};

        if (!needed[i])
            continue;
        s.ordinal = i + 1;
        c2_all_ops(im->c->scratch, &(C2Net){.op = {.n = 1, .at = (void *[]){im->net.op.at[i]}}},
                   &inner);
        for (uint32_t k = 0; k < inner.n; k++) {
            s.op = inner.at[k];
            check_op(&s);
        }
    }
    findings_report(im->c, &s.findings);
    return diag_errors(im->c->diags) == before;
}
