/* A machine's figures as text, a line each:
 *
 *     tvmcc-machine 1
 *     arch x86
 *     cpu cascadelake
 *     l2_rate 41.5      # bytes/cycle: what a core reads in order from L2
 *
 * `#` begins a remark.  What a file leaves open is as without it.  Files come from other machines
 * and are edited by hand: whatever is not understood is an error that names the line. */
#include "machine/machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 1, MOST_BYTES = 1 << 16 };

typedef struct {
    Diags       *d;
    Arena       *a;
    const char  *path;
    MachineFile *out;
    uint32_t     line;
    bool         begun; /* the first line was there */
    uint32_t     at[FIGURE_COUNT], arch_at;
} MachineText;

static Loc here(const MachineText *r)
{
    return (Loc){.file = r->path, .line = r->line};
}

static bool wrong(const MachineText *r, const char *what, const char *word)
{
    return diag_error(r->d, E_MACHINE, here(r), what, word);
}

static bool unknown(const MachineText *r, const char *name)
{
    const char *names[FIGURE_COUNT + 2] = {"arch", "cpu"}, *near;

    for (uint32_t i = 0; i < FIGURE_COUNT; i++)
        names[i + 2] = figure_table[i].name;
    wrong(r, "'%s' is no figure of a machine", name);
    if ((near = str_closest(name, names, COUNT(names))))
        diag_hint(r->d, "did you mean '%s'?", near);
    return false;
}

static bool read_figure(MachineText *r, const char *name, const char *text)
{
    uint32_t i = 0;
    char    *end;
    double   v = strtod(text, &end);

    while (i < FIGURE_COUNT && strcmp(figure_table[i].name, name))
        i++;
    if (i == FIGURE_COUNT)
        return unknown(r, name);
    const Figure *f = &figure_table[i];
    if (f->of == FIGURE_OF_FEATURES)
        return wrong(r, "'%s' follows from -mcpu and -mattr, files do not say it", name);
    if (r->at[i])
        return diag_error(r->d, E_MACHINE, here(r), "'%s' stands in line %u already", name,
                          r->at[i]);
    if (text[strspn(text, "0123456789.eE+-")] || end == text || *end || !isfinite(v))
        return diag_error(r->d, E_MACHINE, here(r), "'%s' is a number, not '%s'", name, text);
    if (f->whole && v != floor(v))
        return diag_error(r->d, E_MACHINE, here(r), "'%s' is a whole number, not '%s'", name, text);
    if (v < f->least || v > f->most)
        return diag_error(r->d, E_MACHINE, here(r), "'%s' is %.15g to %.15g%s%s, not %s", name,
                          f->least, f->most, *f->unit ? " " : "", f->unit, text);
    r->at[i] = r->line;
    figure_set(&r->out->m, i, v, FROM_FILE);
    return true;
}

static bool read_line(MachineText *r, char *line)
{
    static const char blanks[] = " \t\r";
    char             *name, *value, *rest;

    line[strcspn(line, "#")] = 0;
    name = line + strspn(line, blanks);
    if (!*name)
        return true;
    value = name + strcspn(name, blanks);
    if (*value)
        *value++ = 0;
    value += strspn(value, blanks);
    rest = value + strcspn(value, blanks);
    if (*rest)
        *rest++ = 0;
    if (!r->begun) {
        r->begun = true;
        if (strcmp(name, "tvmcc-machine"))
            return wrong(r, "a file of machine figures begins with 'tvmcc-machine 1', not '%s'",
                         name);
        return !strcmp(value, "1") ||
               wrong(r, "version '%s' of such files is not known; 1 is", value);
    }
    if (!*value)
        return wrong(r, "'%s' has no value", name);
    if (rest[strspn(rest, blanks)])
        return wrong(r, "'%s' has one value", name);
    if (!strcmp(name, "arch") || !strcmp(name, "cpu")) {
        const char **out = *name == 'a' ? &r->out->arch : &r->out->cpu;

        if (*out)
            return wrong(r, "'%s' is there twice", name);
        *out = arena_printf(r->a, "%s", value);
        r->arch_at = *name == 'a' ? r->line : r->arch_at;
        return true;
    }
    return read_figure(r, name, value);
}

bool machine_read(Diags *d, Arena *a, const char *path, Bytes text, MachineFile *out)
{
    MachineText r = {.d = d, .a = a, .path = path, .out = out};
    uint32_t    errors = diag_errors(d);

    *out = (MachineFile){.path = path};
    if (text.n > MOST_BYTES || (text.n && memchr(text.at, 0, text.n)))
        return diag_error(d, E_MACHINE, here(&r), "this is no file of machine figures");
    for (size_t at = 0; at < text.n && (r.begun || diag_errors(d) == errors);) {
        const char *from = (const char *)text.at + at;
        const char *nl = memchr(from, '\n', text.n - at);
        size_t      n = nl ? (size_t)(nl - from) : text.n - at;

        r.line++;
        bool first = !r.begun;
        if (!read_line(&r, arena_printf(a, "%.*s", (int)n, from)) && first)
            return false;
        at += n + 1;
    }
    if (!r.begun)
        return diag_error(d, E_MACHINE, here(&r), "this file of machine figures is empty");
    if (diag_errors(d) == errors && !out->arch)
        diag_error(d, E_MACHINE, here(&r), "'arch' is missing: the architecture of the machine");
    out->arch_line = r.arch_at;
    return diag_errors(d) == errors;
}

/* As short as says the same: files are for people. */
static const char *number(Arena *a, double v)
{
    for (int digits = 3; digits < 17; digits++) {
        const char *text = arena_printf(a, "%.*g", digits, v);

        if (strtod(text, NULL) == v && !strchr(text, 'e'))
            return text;
    }
    return arena_printf(a, "%.17g", v);
}

const char *figure_text(Arena *a, const Machine *m, uint32_t figure)
{
    return number(a, figure_get(m, figure));
}

void machine_print(Arena *a, const MachineFile *f, StrBuf *out)
{
    str_printf(out, "tvmcc-machine %d\narch %s\n", VERSION, f->arch);
    if (f->cpu)
        str_printf(out, "cpu %s\n", f->cpu);
    for (uint32_t i = 0; i < FIGURE_COUNT; i++) {
        const Figure *x = &figure_table[i];

        if (f->m.from[i] == FROM_FILE)
            str_printf(out, "%-13s %-11s # %s%s%s\n", x->name, figure_text(a, &f->m, i), x->unit,
                       *x->unit ? ": " : "", x->about);
    }
}

/* ---- for a target ------------------------------------------------------------------------------- */

static const char *arch_of(const Target *t)
{
    return t->arch ? t->arch : "gpu";
}

const Target *machine_for(Ctx *c, const Target *t, const MachineFile *f)
{
    Target own = *t;

    if (!strcmp(arch_of(t), f->arch)) {
        own.machine = &f->m;
    } else if (t->host && !strcmp(arch_of(t->host), f->arch)) {
        own.host = machine_for(c, t->host, f);
    } else {
        return error_at(c, E_MACHINE, ((Loc){.file = f->path, .line = f->arch_line}),
                        "this machine is '%s', the target '%s'", f->arch, arch_of(t));
    }
    return DUP_ARRAY(c->arena, &own, 1);
}
