/* tvmcc opt: text of a module in, passes, text out.  What golden tests of passes run.
 *
 *     tvmcc opt --passes=fold_constant,fuse_ops net.relay
 *     tvmcc opt -O2 net.relay                      the whole graph pipeline
 *     tvmcc opt net.relay                          none: the canonical text
 *     tvmcc opt --passes=alter_layout --target="llvm -mcpu=haswell" net.relay
 *
 *     tvmcc opt --steps="split %x by 4 -> %a, %b" conv.te     a schedule of one kernel
 *     tvmcc opt --sched=net.sched net.te                      of all, as a compile printed them
 *     tvmcc opt --space --target=.. conv.te                   what its rule chooses among
 *     tvmcc opt --decisions="tile=4x3" --target=.. conv.te    what its rule makes of that
 *
 * The module is Relay, TE if the file is called *.te or -x te says so, or TIR if it is called
 * *.tir, -x tir says so, or the first pass is one over TIR. */
#include "driver/job.h"
#include "schedules/schedules.h"

#include <string.h>

/* The first of --passes; NULL after an error or if there is none. */
static const Pass *first_pass(Driver *driver)
{
    const char *list = driver->opt.compile.passes.passes;
    char       *name;

    if (!list || !*list)
        return NULL;
    name = arena_printf(driver->arena, "%.*s", (int)strcspn(list, ","), list);
    return pass_find(name);
}

static bool is_tir(Driver *driver, const char *path)
{
    const Pass *pass = first_pass(driver);

    if (driver->opt.compile.format)
        return strcmp(driver->opt.compile.format, "tir") == 0;
    return pass ? pass->level == LEVEL_TIR : str_ends(path, ".tir");
}

static bool is_te(const Options *o, const char *path)
{
    return o->compile.format ? strcmp(o->compile.format, "te") == 0 : str_ends(path, ".te");
}

/* Whether any pass is asked for; without one the module is only parsed and printed. */
static bool wants_passes(const Options *o)
{
    return o->compile.passes.passes || o->compile.opt_level_given;
}

static bool opt_tir(Ctx *c, const Options *o, const char *path, Bytes text, StrBuf *out)
{
    const TirModule *m = tir_parse(c, path, text);

    if (m && wants_passes(o))
        m = run_tir_passes(c, m, &o->compile.passes, TIR_TO_BOTH);
    if (m)
        tir_print(c, m, out);
    return m != NULL;
}

static bool opt_relay(Ctx *c, const Options *o, const char *path, Bytes text, StrBuf *out)
{
    ImportFiles   files = {0};
    const Module *m = relay_read(c, path, text, o->compile.weights, &files);
    Bytes         consts;

    if (m && wants_passes(o))
        m = run_graph_passes(c, m, &o->compile.passes);
    if (!m)
        return false;
    relay_print(c, m, (RelayPrint){0}, out);
    if (!o->output || !strcmp(o->output, "-"))
        return true;
    consts = relay_consts(c, m);
    return !consts.n ||
           file_write(c->diags, arena_printf(c->scratch, "%s.consts", o->output), consts);
}

/* Steps for the functions of a te text: of the command line, then of a file. */
static bool apply_steps(Ctx *c, const Options *o, uint32_t n, Sched *const *scheds)
{
    const char *steps = o->steps ? o->steps : "";
    Bytes       text;

    if (!sched_parse_all(c, "--steps", (Bytes){(const uint8_t *)steps, strlen(steps)}, n, scheds))
        return false;
    return !o->sched_file || (file_map(c->diags, o->sched_file, &text) &&
                              sched_parse_all(c, o->sched_file, text, n, scheds));
}

/* --kernel: no other one. */
static bool choose_kernel(Ctx *c, const Options *o, const char *path, TeFuncs *te)
{
    const char **names = NEW_ARRAY(c->arena, const char *, te->n + 1), *near;
    const char  *name = o->kernel && *o->kernel == '@' ? o->kernel + 1 : o->kernel;

    for (uint32_t i = 0; name && i < te->n; i++)
        names[i] = te->at[i]->name;
    for (uint32_t i = 0; name && i < te->n; i++)
        if (strcmp(names[i], name) == 0) {
            te->at[0] = te->at[i];
            te->n = 1;
            return true;
        }
    if (!name)
        return true;
    near = str_closest(name, names, te->n);
    return diag_error(c->diags, E_USAGE, (Loc){.file = path},
                      near ? "there is no kernel '%s', did you mean '%s'?"
                           : "there is no kernel '%s'",
                      name, near);
}

/* What the rules of the kernels choose among. */
static bool spaces(Ctx *c, const TeFuncs *te, StrBuf *out)
{
    for (uint32_t i = 0; i < te->n; i++)
        if (!space_print(c, te->at[i], c->target, schedule_of_te(c, te->at[i], c->target), out))
            return false;
    return true;
}

/* --decisions: the rule's schedule with these. */
static bool apply_decisions(Ctx *c, const Options *o, Sched *s)
{
    const ScheduleRow *row = o->decisions ? schedule_of_te(c, s->te, c->target) : NULL;

    return !row || sched_replay(s, row->rule, o->decisions) ||
           error_at(c, E_SCHEDULE, s->te->loc, "kernel '%s': %s", s->te->name, s->refusal);
}

/* The first nest of each te function, or what steps make of it. */
static bool opt_te(Ctx *c, const Options *o, const char *path, Bytes text, StrBuf *out)
{
    TeFuncs te;
    VEC(Sched *) scheds = {0};
    VEC(const Func *) funcs = {0};

    if (wants_passes(o)) {
        diag_error(c->diags, E_USAGE, NO_LOC,
                   "te text takes --steps; passes run on what that prints, with -x tir");
        return false;
    }
    if (!te_parse_all(c, path, text, &te) || !choose_kernel(c, o, path, &te))
        return false;
    if ((o->space || o->decisions) && !c->target)
        return diag_error(c->diags, E_USAGE, NO_LOC, "schedule rules need a target, --target=..");
    if (o->space)
        return spaces(c, &te, out);
    for (uint32_t i = 0; i < te.n; i++) {
        vec_push(c->arena, &scheds, sched_new(c, c->target, te.at[i]));
        if (!apply_decisions(c, o, scheds.at[i]))
            return false;
    }
    if (!apply_steps(c, o, scheds.n, scheds.at))
        return false;
    for (uint32_t i = 0; i < scheds.n; i++) {
        const Sched *s = scheds.at[i];

        vec_push(c->arena, &funcs, s->f);
        for (uint32_t k = 0; k < s->prepacks.n; k++) {
            Func pack = *s->prepacks.at[k].prepack;
            if (te.n > 1) /* its name is its own among those of one kernel only */
                pack.name = intern_printf(c->strings, "%s.%s", s->f->name, pack.name);
            vec_push(c->arena, &funcs, func_new(c, pack));
        }
    }
    tir_print(c, tirmod_new(c, funcs.n, funcs.at), out);
    return true;
}

/* --target; without one passes that depend on it change nothing. */
static bool choose_target(Ctx *c, Driver *driver)
{
    const char *text = job_target(driver, driver->opt.compile.machine ? "llvm" : "");

    if (!*text)
        return true;
    c->target = target_with(c, text, driver->opt.compile.machine, NULL);
    return c->target != NULL;
}

int cmd_opt(Driver *driver)
{
    const Options *o = &driver->opt;
    const char    *path = o->inputs.at[0];
    StrBuf         out = strbuf(driver->arena);
    Ctx           *c;
    Bytes          text;
    bool           ok;

    if (o->inputs.n != 1)
        diag_error(driver->diags, E_USAGE, NO_LOC, "'opt' takes one module, not %u", o->inputs.n);
    if (o->compile.format && strcmp(o->compile.format, "tir") != 0 &&
        strcmp(o->compile.format, "relay") != 0 && strcmp(o->compile.format, "te") != 0)
        diag_error(driver->diags, E_USAGE, NO_LOC,
                   "'-x' takes 'relay', 'te' or 'tir' here, not '%s'", o->compile.format);
    if ((o->steps || o->space || o->decisions || o->kernel) && !is_te(o, path))
        diag_error(driver->diags, E_USAGE, NO_LOC, "'%s' is for kernels as te text, not '%s'",
                   o->steps       ? "--steps"
                   : o->space     ? "--space"
                   : o->decisions ? "--decisions"
                                  : "--kernel",
                   path);
    const Pass *pass = first_pass(driver);
    if (pass && pass->level == LEVEL_PROGRAM)
        diag_error(driver->diags, E_USAGE, NO_LOC,
                   "pass '%s' works on what calls the kernels, which 'opt' has none of",
                   pass->name);
    if (diag_errors(driver->diags) || !file_map(driver->diags, path, &text))
        return 1;
    diag_source(driver->diags, path, text);
    c = driver->c = ctx_new(driver->arena, driver->diags, op_table);
    ok = choose_target(c, driver);
    if (ok && is_te(o, path))
        ok = opt_te(c, o, path, text, &out);
    else if (ok)
        ok = is_tir(driver, path) ? opt_tir(c, o, path, text, &out)
                                  : opt_relay(c, o, path, text, &out);
    if (ok)
        ok = file_write(driver->diags, o->output ? o->output : "-",
                        (Bytes){(const uint8_t *)out.at, out.n});
    return ok ? 0 : 1;
}
