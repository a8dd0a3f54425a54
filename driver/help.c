/* --help and the -print-... options: the tables, laid out for people. */
#include "backends/backend.h"
#include "driver/driver.h"
#include "ops/ops.h"

#include <stdlib.h>
#include <string.h>

enum { HELP_COLUMN = 28, WIDTH = 96 };

/* The text from column `from` on, wrapped; the line has `column` columns already. */
static void add_wrapped_at(StrBuf *out, size_t column, size_t from, const char *text)
{
    size_t at = column;

    if (at >= from) {
        str_addc(out, '\n');
        at = 0;
    }
    while (at++ < from)
        str_addc(out, ' ');
    at = from;
    while (*text) {
        size_t n = strcspn(text, " ");

        if (at + n > WIDTH) {
            str_addc(out, '\n');
            for (at = 0; at < from; at++)
                str_addc(out, ' ');
        }
        str_addn(out, text, n);
        at += n + 1;
        text += n;
        if (*text && at + strcspn(++text, " ") <= WIDTH)
            str_addc(out, ' ');
    }
    str_addc(out, '\n');
}

static void add_wrapped(StrBuf *out, size_t column, const char *text)
{
    add_wrapped_at(out, column, HELP_COLUMN, text);
}

static void add_spelling(StrBuf *out, const Option *row)
{
    str_add(out, row->text);
    if (row->argument)
        str_printf(out, "%s%s",
                   row->form == ARG_JOIN   ? ""
                   : row->form == ARG_LONG ? "="
                                           : " ",
                   row->argument);
}

/* Rows of a group that fit; other spellings follow their row on the same line. */
static void add_group(StrBuf *out, const char *group, const Command *command)
{
    bool headed = false;

    for (uint32_t i = 0; i < option_count; i++) {
        const Option *row = &option_table[i];
        size_t        start;

        if (strcmp(row->group, group) != 0 || !row->help || !option_fits(row, command))
            continue;
        if (!headed)
            str_printf(out, "\n%s\n", group);
        headed = true;
        start = out->n;
        str_add(out, "  ");
        add_spelling(out, row);
        for (uint32_t k = i + 1; k < option_count && !option_table[k].help; k++)
            str_printf(out, ", %s", option_table[k].text);
        add_wrapped(out, out->n - start, row->help);
    }
}

static void add_usage(StrBuf *out, const Command *command)
{
    if (command)
        str_printf(out, "usage: tvmcc %s%s%s\n       %s\n",
                   command->letter == 'c' ? "[compile]" : command->name,
                   command->arguments[0] ? " " : "", command->arguments, command->about);
    else
        str_add(out, "usage: tvmcc [options] <model>\n");
}

static void add_options(StrBuf *out, const Command *command)
{
    for (uint32_t i = 0; i < option_count; i++) {
        uint32_t first = 0; /* row of the group */

        while (strcmp(option_table[first].group, option_table[i].group) != 0)
            first++;
        if (first == i)
            add_group(out, option_table[i].group, command);
    }
}

static void add_commands(StrBuf *out)
{
    if (command_count)
        str_add(out, "\ncommands\n");
    for (uint32_t i = 0; i < command_count; i++) {
        size_t start = out->n;

        str_printf(out, "  %s", command_table[i].name);
        add_wrapped(out, out->n - start, command_table[i].about);
    }
}

static void add_products(StrBuf *out)
{
    for (int i = 0; i < PRODUCT_COUNT; i++) {
        size_t start = out->n;

        str_printf(out, "  %s", product_table[i].text);
        add_wrapped(out, out->n - start, product_table[i].about);
    }
}

static void add_warnings(StrBuf *out)
{
    static const struct {
        const char *flag, *text;
        int         status;
    } rows[] = {
#define none NULL
#define DIAG(id, code, status, flag, text) {flag, text, status},
#include "base/diag.def"
#undef DIAG
#undef none
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t start = out->n;
        StrBuf text = strbuf(out->arena);

        if (!rows[i].flag)
            continue;
        str_printf(out, "  -W%s", rows[i].flag);
        str_printf(&text, "%s%s", rows[i].text,
                   rows[i].status ? "; an error unless -Wno-error= names it" : "");
        add_wrapped(out, out->n - start, text.at);
    }
}

/* Cause and remedy of an error or a warning, with an example. */
static void add_code(StrBuf *out, const char *code, const char *text)
{
    const DiagHelp *h = diag_explain(code);

    str_printf(out, "%s: %s\n\n  why", code, text);
    add_wrapped_at(out, 5, 8, h->why);
    str_add(out, "\n  do");
    add_wrapped_at(out, 4, 8, h->remedy);
    str_printf(out, "\n  as in\n        $ %s\n        %s\n", h->command, h->message);
}

static void add_environment(StrBuf *out)
{
    static const struct {
        const char *name, *about;
    } rows[] = {
#define VARIABLE(name, about) {name, about},
#include "driver/environment.def"
#undef VARIABLE
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t start = out->n;

        str_printf(out, "  %s", rows[i].name);
        add_wrapped(out, out->n - start, rows[i].about);
    }
}

/* A command, a group of options, `emit`, `environment`, `warnings`, or a code. */
static bool add_topic(Diags *d, const char *topic, StrBuf *out)
{
    const char *text = diag_help(topic), *closest, *names[64] = {"emit", "warnings", "environment"};
    size_t      before = out->n;
    uint32_t    n = 3;

    if (text) {
        add_code(out, topic, text);
        return true;
    }
    if (command_find(topic)) {
        add_usage(out, command_find(topic));
        add_options(out, command_find(topic));
        return true;
    }
    if (strcmp(topic, "emit") == 0)
        add_products(out);
    if (strcmp(topic, "warnings") == 0)
        add_warnings(out);
    if (strcmp(topic, "environment") == 0)
        add_environment(out);
    for (uint32_t i = 0; i < option_count; i++) {
        const char *group = option_table[i].group;

        if (n < COUNT(names) && strcmp(names[n - 1], group) != 0)
            names[n++] = group;
    }
    for (uint32_t i = 0; i < command_count && n < COUNT(names); i++) {
        add_group(out, topic, &command_table[i]);
        if (out->n > before)
            break;
    }
    if (out->n == before)
        add_group(out, topic, NULL);
    if (out->n > before)
        return true;
    for (uint32_t i = 0; i < command_count && n < COUNT(names); i++)
        names[n++] = command_table[i].name;
    diag_error(d, E_USAGE, NO_LOC, "there is no help about '%s'", topic);
    if ((closest = str_closest(topic, names, n)))
        diag_hint(d, "did you mean '%s'?", closest);
    return false;
}

static void add_targets(StrBuf *out)
{
    const Backend *b;
    const char    *about;

    for (uint32_t i = 0; (b = backend_at(i, &about)); i++) {
        str_printf(out, "%s: %s\n", b->name, about);
        b->list_targets(out);
    }
}

static bool add_machine(Diags *d, StrBuf *out)
{
    Ctx          *c = ctx_new(out->arena, d, op_table);
    const Target *t = backend_cpu()->parse_target(c, "llvm");

    if (t)
        str_printf(out, "%s\n", t->triple);
    ctx_free(c);
    return t != NULL;
}

/* This machine's, and those that `doctor` knows how to link and run. */
static bool add_triples(Diags *d, StrBuf *out)
{
    static const char *const triples[] = {
#define TOOL(name, programs, purpose, packages)
#define MACHINE(triple, library, emulators, packages) triple,
#include "driver/doctor.def"
#undef TOOL
#undef MACHINE
        "aarch64-linux-android21",
        "arm64-apple-macos",
        "x86_64-linux-gnu",
        "x86_64-w64-mingw32",
    };

    for (size_t i = 0; i < COUNT(triples); i++)
        str_printf(out, "%s\n", triples[i]);
    return add_machine(d, out);
}

/* Of Relay unless a model format is named. */
static bool add_ops(Diags *d, const char *format, StrBuf *out)
{
    const Frontend *f = frontend_find(format ? format : "relay");

    if (f) {
        f->list_ops(out);
        return true;
    }
    diag_error(d, E_USAGE, NO_LOC, "there is no model format '%s'", format);
    StrBuf names = strbuf(out->arena);
    for (uint32_t i = 0; i < frontend_count; i++)
        str_printf(&names, "%s%s", i ? ", " : "", frontends[i].name);
    diag_hint(d, "the formats are %s", names.at);
    return false;
}

static const char *environment(const char *const *names, uint32_t n)
{
    const char *found = NULL;

    for (uint32_t i = 0; i < n && !(found && *found); i++)
        found = getenv(names[i]);
    return found && *found ? found : "-";
}

/* As cc prints it: a name, a colon, folders. */
static void add_dirs(const Options *o, StrBuf *out)
{
    static const char *const path[] = {"PATH"}, *const emulator[] = {"TVMCC_EMULATOR"};
    static const char *const ndk[] = {"ANDROID_NDK", "ANDROID_NDK_ROOT", "ANDROID_NDK_HOME"};
    const Cache             *cache = o->compile.no_cache
                                         ? NULL
                                         : cache_open(out->arena, o->compile.cache_dir, o->compile.cache_size);

    str_printf(out, "programs: %s\n", environment(path, COUNT(path)));
    str_printf(out, "android: %s\n", environment(ndk, COUNT(ndk)));
    str_printf(out, "emulator: %s\n", environment(emulator, COUNT(emulator)));
    str_add(out, "libraries: /usr/<triple>/lib\n");
    str_printf(out, "cache: %s\n", cache ? cache_dir(cache) : "-");
    str_printf(out, "temporary: %s\n", file_temporary_place());
    str_add(out, "template: in the compiler\nrunner: in the compiler\n");
}

static void add_passes(StrBuf *out)
{
    static const char *const levels[] = {
        [LEVEL_GRAPH] = "graph", [LEVEL_TIR] = "tir", [LEVEL_PROGRAM] = "program"};
    Columns *table = columns_new(out->arena, "llll");

    for (uint32_t i = 0; i < pass_count; i++) {
        columns_add(table, "%s", pass_table[i].name);
        columns_add(table, "%s", levels[pass_table[i].level]);
        columns_add(table, "-O%d", pass_table[i].opt > 0 ? pass_table[i].opt : 0);
        columns_add(table, "%s", pass_table[i].about);
    }
    columns_print(table, 0, out);
}

bool help_print(Diags *d, const Options *o, StrBuf *out)
{
    switch (o->show) {
    case SHOW_NOTHING: break;
    case SHOW_HELP:
        if (o->topic)
            return add_topic(d, o->topic, out);
        add_usage(out, o->command);
        if (!o->command || o->command->letter == 'c')
            add_commands(out);
        add_options(out, o->command);
        str_add(out, "\n@<file> stands for the words in it; after -- all words are files.  Of an "
                     "option that is "
                     "given twice the last one counts.\n");
        break;
    case SHOW_VERSION: str_printf(out, "tvmcc %s\n", TVMCC_VERSION); break;
    case SHOW_TARGETS: add_targets(out); break;
    case SHOW_TRIPLES: return add_triples(d, out);
    case SHOW_MACHINE: return add_machine(d, out);
    case SHOW_OPS: return add_ops(d, o->topic, out);
    case SHOW_PASSES: add_passes(out); break;
    case SHOW_DIRS: add_dirs(o, out); break;
    }
    return true;
}
