/* The runner: which passes run, in which order, and what is told about them.
 *
 * The order is that of passes.def; -O<n> leaves out what needs a higher level; --passes names its
 * own list.  --print-after and --time-passes write to stderr, with "unchanged" where a pass gave
 * back its argument.  --verify-each checks the module after each pass.  A pass that records an
 * error ends the run.  Between passes over graphs the scratch arena is emptied. */
#include "passes/lower/lower.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct {
    uint32_t    n;
    const Pass *at[64];
} PassList;

static void *unknown_pass(Ctx *c, const char *name, PassLevel level)
{
    const char *names[64];
    const char *near;
    uint32_t    n = 0;

    for (uint32_t i = 0; i < pass_count && n < COUNT(names); i++)
        if (pass_table[i].level == level)
            names[n++] = pass_table[i].name;
    error_at(c, E_USAGE, NO_LOC, "there is no pass '%s' here", name);
    if ((near = str_closest(name, names, n)))
        diag_hint(c->diags, "did you mean '%s'?", near);
    return NULL;
}

static bool is_algorithm(const Pass *p)
{
    return p->algorithm != 0;
}

static bool names_pass(Ctx *c, const char *name, PassLevel level)
{
    const Pass *p = name ? pass_find(name) : NULL;

    return !name || (p && !is_algorithm(p)) || unknown_pass(c, name, level);
}

static bool listed(const char *name, uint32_t n, const char *const *list)
{
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(list[i], name))
            return true;
    return false;
}

/* -fpass= and -fno-pass= name passes, and leave those alone without which nothing is compiled;
 * mixed precision names operators. */
static bool check_lists(Ctx *c, const PassOptions *o, PassLevel level)
{
    if (o->passes && o->nwith + o->nwithout)
        return error_at(c, E_USAGE, NO_LOC, "--passes names all passes, so there is nothing for %s",
                        o->nwith ? "-fpass" : "-fno-pass");
    for (uint32_t i = 0; i < o->nwith + o->nwithout; i++) {
        const char *name = i < o->nwith ? o->with[i] : o->without[i - o->nwith];

        if (!pass_find(name))
            return unknown_pass(c, name, level);
        if (i < o->nwith && listed(name, o->nwithout, o->without))
            return error_at(c, E_USAGE, NO_LOC, "pass '%s' is asked for and left out", name);
        if (i >= o->nwith && pass_find(name)->opt == NEEDED)
            return error_at(c, E_USAGE, NO_LOC, "nothing is compiled without pass '%s'", name);
    }
    return !o->mixed || mixed_precision_check(c, o->mixed);
}

bool passes_check(Ctx *c, const PassOptions *o)
{
    return check_lists(c, o, LEVEL_GRAPH);
}

/* -O<n>, -fpass= and -fno-pass= take it. */
static bool is_taken(const PassOptions *o, const Pass *p)
{
    return (p->opt <= o->opt_level || listed(p->name, o->nwith, o->with)) &&
           !listed(p->name, o->nwithout, o->without);
}

/* The pipeline of -O at one level. */
static bool pipeline_of(const PassOptions *o, PassLevel level, PassList *out)
{
    for (uint32_t i = 0; i < pass_count && out->n < COUNT(out->at); i++)
        if (pass_table[i].level == level && !is_algorithm(&pass_table[i]) &&
            is_taken(o, &pass_table[i]))
            out->at[out->n++] = &pass_table[i];
    return true;
}

/* Of the list, what belongs to a part of the pipeline, up to --stop-after. */
static void keep_part(const PassOptions *o, TirPart part, PassList *list)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < list->n; i++) {
        const Pass *p = list->at[i];

        if (part & (p->code ? TIR_TO_CODE : TIR_TO_PLAN))
            list->at[n++] = p;
        if (o->stop_after && !strcmp(o->stop_after, p->name))
            break;
    }
    list->n = n;
}

/* What is to run at one level: what --passes names of it, or else its pipeline; false after an
 * error. */
static bool choose(Ctx *c, const PassOptions *o, PassLevel level, PassList *out)
{
    const char *s = o->passes;

    out->n = 0;
    if (!names_pass(c, o->stop_after, level) ||
        (o->print_after && strcmp(o->print_after, "all") && !names_pass(c, o->print_after, level)))
        return false;
    if (!check_lists(c, o, level))
        return false;
    if (!s)
        return pipeline_of(o, level, out);
    while (*s) {
        size_t      n = strcspn(s, ",");
        const char *name = intern_n(c->strings, s, n);
        const Pass *p = n ? pass_find(name) : NULL;

        if (n && (!p || is_algorithm(p)))
            return unknown_pass(c, name, level);
        if (p && p->level == level && out->n == COUNT(out->at))
            return error_at(c, E_USAGE, NO_LOC, "more than %zu passes", COUNT(out->at));
        if (p && p->level == level)
            out->at[out->n++] = p;
        s += n + (s[n] == ',');
    }
    return out->n || pipeline_of(o, level, out);
}

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static bool wanted(const char *option, const char *name)
{
    return option && (!strcmp(option, "all") || !strcmp(option, name));
}

static void tell(const PassOptions *o, const Pass *p, double ms, bool same)
{
    if (o->time_passes)
        fprintf(stderr, "%10.3f ms  %s%s\n", ms, p->name, same ? " (unchanged)" : "");
}

static void show(const Pass *p, bool same, const StrBuf *text)
{
    fprintf(stderr, "// after %s%s\n", p->name, same ? ": unchanged" : "");
    if (!same)
        fputs(text->at ? text->at : "", stderr);
}

/* ---- graphs --------------------------------------------------------------------------------- */

static const Module *run_graph_pass(Ctx *c, const Module *m, const Pass *p, const PassOptions *o)
{
    uint32_t      errors = diag_errors(c->diags);
    double        start = now_ms();
    const Module *next = p->graph(c, m);

    if (!next && diag_errors(c->diags) == errors)
        BUG("pass %s failed without an error", p->name);
    if (!next || diag_errors(c->diags) != errors)
        return NULL;
    tell(o, p, now_ms() - start, next == m);
    if (wanted(o->print_after, p->name)) {
        StrBuf s = strbuf(c->scratch);

        relay_print(c, next, (RelayPrint){.types = true}, &s);
        show(p, next == m, &s);
    }
    if (o->verify_each && !relay_verify(c, next)) {
        diag_note(c->diags, NO_LOC, "after the pass '%s'", p->name);
        return NULL;
    }
    arena_reset(c->scratch);
    return next;
}

static double constant_bytes(Ctx *c, const Module *m)
{
    Map   *seen = map_new(c->scratch);
    double sum = 0;

    for (uint32_t i = 0; i < m->nfuncs; i++) {
        ExprList list = expr_post_order(c, m->funcs[i].func);

        for (uint32_t k = 0; k < list.n; k++) {
            const Expr *e = list.at[k];

            if (e->kind != EXPR_CONST || map_get(seen, PTR_KEY(e)))
                continue;
            map_put(seen, PTR_KEY(e), (void *)(uintptr_t)e);
            double bytes = dtype_bytes(e->type->dtype);
            for (uint32_t d = 0; d < e->type->n; d++)
                bytes *= (double)e->type->dims[d]->lo;
            sum += bytes;
        }
    }
    arena_reset(c->scratch);
    return sum;
}

const Module *run_graph_passes(Ctx *c, const Module *m, const PassOptions *o)
{
    const Choices was = c->choices; /* evaluators run graph passes inside of passes */
    PassList      list;

    if (!choose(c, o, LEVEL_GRAPH, &list))
        return NULL;
    c->choices.without = 0;
    c->choices.mixed = o->mixed;
    c->choices.weights = constant_bytes(c, m);
    for (uint32_t i = 0; i < pass_count; i++)
        if (is_algorithm(&pass_table[i]) && !is_taken(o, &pass_table[i]))
            c->choices.without |= pass_table[i].algorithm;
    for (uint32_t i = 0; m && i < list.n; i++) {
        m = ctx_cancelled(c) ? NULL : run_graph_pass(c, m, list.at[i], o);
        if (o->stop_after && !strcmp(o->stop_after, list.at[i]->name))
            break;
    }
    c->choices = was;
    return m;
}

/* ---- TIR ------------------------------------------------------------------------------------ */

/* The last pass leaves flat code, the others something between. */
static TirStage stage_after(const Pass *p)
{
    return p == &pass_table[pass_count - 1] ? TIR_FLAT : TIR_LOWERED;
}

/* --print-after and --verify-each of what a pass left; false: it is not right. */
static bool inspect(Ctx *c, const TirModule *m, const Pass *p, const PassOptions *o, bool same)
{
    if (wanted(o->print_after, p->name)) {
        StrBuf s = strbuf(c->scratch);

        tir_print(c, m, &s);
        show(p, same, &s);
    }
    if (!o->verify_each || tir_verify(c, m, stage_after(p)))
        return true;
    diag_note(c->diags, NO_LOC, "after the pass '%s'", p->name);
    return false;
}

static const TirModule *run_tir_pass(Ctx *c, const TirModule *m, const Pass *p,
                                     const PassOptions *o)
{
    uint32_t         errors = diag_errors(c->diags);
    double           start = now_ms();
    const TirModule *next = p->tir(c, m);

    if (!next && diag_errors(c->diags) == errors)
        BUG("pass %s failed without an error", p->name);
    if (!next || diag_errors(c->diags) != errors)
        return NULL;
    if (arith_overflow(c->arith))
        return error_at(c, E_PASS, NO_LOC, "an index does not fit 64 bits in '%s'", p->name);
    tell(o, p, now_ms() - start, next == m);
    return inspect(c, next, p, o, next == m) ? next : NULL;
}

bool run_program_passes(Ctx *c, Program *program, const PassOptions *o)
{
    const Pass *last = o->stop_after ? pass_find(o->stop_after) : NULL;
    PassList    list;

    if (!choose(c, o, LEVEL_PROGRAM, &list))
        return false;
    for (uint32_t i = 0; i < list.n && !(last && last->tir && last < list.at[i]); i++) {
        const Pass *p = list.at[i];
        double      start = now_ms();

        if (ctx_cancelled(c) || !p->program(program))
            return false;
        tell(o, p, now_ms() - start, false);
        if (!inspect(c, kernels_module(program->kernels, 0, NULL), p, o, false))
            return false;
    }
    return true;
}

const TirModule *run_tir_passes(Ctx *c, const TirModule *m, const PassOptions *o, TirPart part)
{
    PassList list;

    if (!choose(c, o, LEVEL_TIR, &list))
        return NULL;
    keep_part(o, part, &list);
    for (uint32_t i = 0; m && i < list.n; i++)
        m = ctx_cancelled(c) ? NULL : run_tir_pass(c, m, list.at[i], o);
    return m;
}
