/* All nodes before anything is built: operators that have no row, and arguments that their row does
 * not have, all at once. */
#include "frontends/pytorch/pytorch.h"

#include <string.h>

typedef struct {
    PtImport *im;
    Findings  findings;
} Survey;

static void found(Survey *s, DiagId id, const PtOp *p, const char *text, const char *hint)
{
    finding_add(
        s->im->c, &s->findings,
        (Finding){.id = id, .text = text, .hint = hint, .first = p->name, .ordinal = p->ordinal});
}

static const char *nearest(Survey *s, const PtRow *row, const char *name)
{
    Arena *a = s->im->c->arena;
    VEC(const char *) names = {0};
    StrBuf      all = strbuf(a);
    const char *near;
    PtSlot      slot;

    for (const char *at = row->args; pt_next_slot(&at, &slot);) {
        if (slot.end || slot.named)
            continue;
        str_printf(&all, " %.*s", (int)slot.n, slot.name);
        vec_push(a, &names, arena_printf(a, "%.*s", (int)slot.n, slot.name));
    }
    near = str_closest(name, names.at, names.n);
    return near ? arena_printf(a, "did you mean '%s'?", near)
                : arena_printf(a, "its arguments are%s", all.n ? all.at : " none");
}

static void look_at_all(Survey *s, PtGraph *g);

static void look_at(Survey *s, PtOp *p)
{
    Arena *a = s->im->c->arena;
    bool   ignored;

    p->row = pt_row(p->target, &p->in_place);
    if (!p->row) {
        found(s, E_UNSUPPORTED_OP, p, arena_printf(a, "operator %s is not supported", p->target),
              str_starts(p->target, "aten.") || str_starts(p->target, "_operator.")
                  ? pt_instead_of(p->target)
                  : "only operators of aten are known, which run_decompositions() leaves");
        return;
    }
    if (!strcmp(p->row->args, "*")) { /* they have no names */
        for (uint32_t i = 0; i < p->nin; i++)
            if (p->in[i].kind == PT_GRAPH)
                look_at_all(s, p->in[i].graph);
        return;
    }
    for (uint32_t i = 0; i < p->nin; i++) {
        const char *name = p->names[i];

        if (!pt_row_has(p->row, name, &ignored))
            found(s, E_UNSUPPORTED, p,
                  arena_printf(a, "argument '%s' of %s is not known", name, p->target),
                  nearest(s, p->row, name));
        for (uint32_t k = 0; k < i; k++)
            if (!strcmp(p->names[k], name))
                found(s, E_IMPORT, p,
                      arena_printf(a, "argument '%s' of %s is there twice", name, p->target), NULL);
    }
}

/* Graphs in graphs were read PT_MAX_NESTING deep at most. */
static void look_at_all(Survey *s, PtGraph *g)
{
    for (uint32_t i = 0; i < g->nops; i++)
        look_at(s, &g->ops[i]);
}

bool pt_survey(PtImport *im, PtGraph *g)
{
    Survey s = {.im = im, .findings = {.path = im->path, .noun = "node"}};

    look_at_all(&s, g);
    findings_report(im->c, &s.findings);
    return s.findings.list.n == 0;
}
