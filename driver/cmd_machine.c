/* tvmcc machine: what work costs on a machine, as rules and passes see it.
 *
 *     tvmcc machine -mcpu=cortex-a72                  what is known of that CPU
 *     tvmcc machine --measure -o board.machine        this machine, measured (measure.c)
 *     tvmcc -c net.onnx --machine=board.machine       a build for it
 *
 * docs/how-to/machine.md has more. */
#include "compile/compile.h"
#include "driver/job.h"
#include "driver/measure.h"
#include "machine/machine.h"

#include <string.h>

static const char *const origins[] = {
    [FROM_RULE] = "rule", [FROM_FEATURES] = "features", [FROM_CPU] = "cpu",
    [FROM_GPU] = "gpu",   [FROM_SYSTEM] = "system",     [FROM_FILE] = "file",
};

static void print_table(Driver *driver, const Target *t, const Machine *m)
{
    Columns *table = columns_new(driver->arena, "lrlll");

    say(driver, "%s\n", t->text);
    for (uint32_t i = 0; i < FIGURE_COUNT; i++) {
        const Figure *f = &figure_table[i];

        if (!figure_counts(f, t))
            continue;
        columns_add(table, "%s", f->name);
        columns_add(table, "%s", figure_text(driver->arena, m, i));
        columns_add(table, "%s", f->unit);
        columns_add(table, "%s", origins[m->from[i]]);
        columns_add(table, "%s", f->about);
    }
    say_table(driver, table);
}

static void print_json(Driver *driver, const Target *t, const Machine *m)
{
    StrBuf s = strbuf(driver->arena);
    bool   first = true;

    str_add(&s, "{\"target\": ");
    str_add_json(&s, t->text);
    str_add(&s, ", \"figures\": {");
    for (uint32_t i = 0; i < FIGURE_COUNT; i++) {
        const Figure *f = &figure_table[i];

        if (!figure_counts(f, t))
            continue;
        str_printf(&s, "%s\n  \"%s\": {\"value\": %s, \"unit\": \"%s\", \"from\": \"%s\"}",
                   first ? "" : ",", f->name, figure_text(driver->arena, m, i), f->unit,
                   origins[m->from[i]]);
        first = false;
    }
    say(driver, "%s\n}}\n", s.at);
}

/* Machines are measured as they are, so the target has to be this one. */
static bool measure(Driver *driver, const Target *t)
{
    const Options *o = &driver->opt;
    MachineFile    f = {.arch = t->arch, .cpu = t->cpu};
    StrBuf         s = strbuf(driver->arena);

    str_add(&s, "# What work costs on this machine: tvmcc machine --measure\n");
    if (!measure_machine(driver, t, &f.m))
        return false;
    machine_print(driver->arena, &f, &s);
    if (o->output && strcmp(o->output, "-") != 0)
        return file_write(driver->diags, o->output, (Bytes){(const uint8_t *)s.at, s.n});
    say(driver, "%s", s.at);
    return true;
}

int cmd_machine(Driver *driver)
{
    const Options        *o = &driver->opt;
    const CompileOptions *of = &o->compile;
    const Target         *t;

    if (o->inputs.n)
        diag_error(driver->diags, E_USAGE, NO_LOC, "'machine' takes no file, not '%s'",
                   o->inputs.at[0]);
    if (o->measure && o->json)
        diag_error(driver->diags, E_USAGE, NO_LOC, "'--measure' writes a file, not JSON");
    if (o->measure && (of->targets.n || of->mtriple || of->mcpu || of->mattr || of->machine))
        diag_error(driver->diags, E_USAGE, NO_LOC,
                   "'--measure' is about the machine it runs on, and takes no target");
    if (diag_errors(driver->diags))
        return 0;
    driver->c = ctx_new(driver->arena, driver->diags, op_table);
    t = target_with(driver->c, job_target(driver, "llvm -mcpu=native"), of->machine, NULL);
    if (!t)
        return 0;
    if (o->measure) {
        measure(driver, t);
        return 0;
    }
    Machine m = machine_of(t);
    if (o->json)
        print_json(driver, t, &m);
    else
        print_table(driver, t, &m);
    return 0;
}
