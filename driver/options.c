/* The command line as a struct Options.
 *
 * Words are matched against options.def (compile/options.c).  Response files
 * (`@file`) are put in the place of their word first, so that everything after sees one list.
 * All mistakes are reported, not only the first.
 */
#include "driver/driver.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RESPONSE_DEPTH = 8, MAX_WORDS = 1 << 16 };

typedef struct {
    Diags   *d;
    Arena   *a;
    Options *o;
    TextList words;
    TextList foreign; /* words that are for other compilers too */
} Parser;

const Command command_table[] = {
#define COMMAND(name, letter, function, arguments, about) \
    {name, letter, function, arguments, about},
#include "driver/commands.def"
#undef COMMAND
    {NULL, 0, NULL, NULL, NULL},
};
const uint32_t command_count = COUNT(command_table) - 1;

const Command *command_find(const char *name)
{
    for (uint32_t i = 0; i < command_count; i++) {
        if (strcmp(command_table[i].name, name) == 0)
            return &command_table[i];
    }
    return NULL;
}

/* ---- setters: `field` is where the row says -------------------------------------------------- */

static bool set_real(OptionParser *p, const Option *row, void *field, const char *argument)
{
    char  *end;
    double v = strtod(argument, &end);

    if (end == argument || *end || !(v >= 0) || isinf(v))
        return option_wrong(p, row, argument, "a number from 0");
    *(double *)field = v;
    return true;
}

static bool set_show(UNUSED OptionParser *p, const Option *row, void *field,
                     UNUSED const char *argument)
{
    *(Show *)field = (Show)row->value;
    return true;
}

static bool set_topic(OptionParser *p, UNUSED const Option *row, void *field, const char *argument)
{
    ((Options *)p->filled)->show = SHOW_HELP;
    *(const char **)field = argument;
    return true;
}

static bool set_ops_of(OptionParser *p, UNUSED const Option *row, void *field, const char *argument)
{
    ((Options *)p->filled)->show = SHOW_OPS;
    *(const char **)field = argument;
    return true;
}

static bool add_product(OptionParser *p, UNUSED const Option *row, void *field, const char *text)
{
    Product product;

    if (!product_find(p->d, text, &product))
        return false;
    *(uint32_t *)field |= 1u << product;
    return true;
}

static bool set_emit(OptionParser *p, const Option *row, void *field, const char *argument)
{
    return option_each(p, row, field, argument, add_product);
}

/* -S -emit-llvm is LLVM IR, in whatever order they come. */
static bool set_emit_only(UNUSED OptionParser *p, const Option *row, void *field,
                          UNUSED const char *argument)
{
    uint32_t ll = 1u << PRODUCT_LL, other = (1u << PRODUCT_ASM) | (1u << PRODUCT_OBJECT);
    uint32_t all = *(uint32_t *)field | 1u << row->value;

    *(uint32_t *)field = all & ll ? all & ~other : all;
    return true;
}

/* tvmc's names of kinds are taken as well. */
static bool add_dump(OptionParser *p, UNUSED const Option *row, void *field, const char *text)
{
    Product product;

    text = strcmp(text, "asm") == 0 ? "s" : text;
    if (!product_find(p->d, text, &product))
        return false;
    vec_push(p->a, (TextList *)field, text);
    return true;
}

static bool set_words(OptionParser *p, const Option *row, void *field, const char *argument)
{
    return option_each(p, row, field, argument, add_dump);
}

static bool set_fill(OptionParser *p, const Option *row, void *field, const char *argument)
{
    static const char *const names[] = {"random", "zeros", "ones"}; /* FillMode from 1 on */

    for (int i = 0; i < (int)COUNT(names); i++) {
        if (strcmp(argument, names[i]) == 0) {
            *(FillMode *)field = (FillMode)(i + 1);
            return true;
        }
    }
    return option_wrong(p, row, argument, "'random', 'zeros' or 'ones'");
}

static bool set_diag_format(OptionParser *p, const Option *row, void *field, const char *argument)
{
    static const char *const names[] = {"text", "json", "sarif"}; /* as DiagFormat */

    for (int i = 0; i < (int)COUNT(names); i++) {
        if (strcmp(argument, names[i]) == 0) {
            *(DiagFormat *)field = (DiagFormat)i;
            return true;
        }
    }
    return option_wrong(p, row, argument, "'text', 'json' or 'sarif'");
}

static bool set_color(OptionParser *p, const Option *row, void *field, const char *argument)
{
    static const char *const names[] = {"auto", "always", "never"}; /* as ColorMode */

    for (int i = 0; i < (int)COUNT(names); i++) {
        if (strcmp(argument, names[i]) == 0) {
            *(ColorMode *)field = (ColorMode)i;
            return true;
        }
    }
    return option_wrong(p, row, argument, "'auto', 'always' or 'never'");
}

static bool set_color_mode(UNUSED OptionParser *p, const Option *row, void *field,
                           UNUSED const char *argument)
{
    *(ColorMode *)field = (ColorMode)row->value;
    return true;
}

const Option option_table[] = {
#define OPTION(text, form, argument, commands, group, setter, field, value, help) \
    {text, form, argument, commands, group, setter, offsetof(Options, field), value, help},
#define COMPILE_OPTION(text, form, argument, commands, group, setter, field, value, help) \
    OPTION(text, form, argument, commands, group, setter, compile.field, value, help)
#include "driver/options.def"
#undef COMPILE_OPTION
#undef OPTION
};
const uint32_t option_count = COUNT(option_table);

/* ---- matching -------------------------------------------------------------------------------- */

bool option_fits(const Option *row, const Command *command)
{
    return option_takes(row, command ? command->letter : 0);
}

/* Of another command, or of none. */
static void unknown(const OptionParser *p, const Command *command, const char *word)
{
    for (uint32_t i = 0; i < option_count; i++) {
        const Option  *row = &option_table[i];
        const Command *c = command_table;

        if (!option_match(row, word))
            continue;
        while (c->name && !strchr(row->commands, c->letter))
            c++;
        if (!c->name)
            continue;
        diag_error(p->d, E_UNKNOWN_OPTION, NO_LOC, "'%s' has no option '%.*s'",
                   command ? command->name : "tvmcc", (int)strcspn(word, "="), word);
        diag_hint(p->d, "it belongs to '%s'", c->name);
        return;
    }
    option_unknown(p, word);
}

/* Handles the option at words.at[*i]; *i stays on its last word. */
static void one_option(Parser *p, uint32_t *i)
{
    const Command *command = p->o->command;
    OptionParser   parser = {.d = p->d,
                             .a = p->a,
                             .compile = &p->o->compile,
                             .nrows = option_count,
                             .rows = option_table,
                             .filled = p->o,
                             .command = command ? command->letter : 0};
    const char    *word = p->words.at[*i];
    const Option  *row = option_store(&parser, &p->words, i);

    if (row)
        vec_push(p->a, &p->o->given, row);
    else
        unknown(&parser, command, word);
}

/* ---- response files -------------------------------------------------------------------------- */

static bool expand(Parser *p, const char *word, unsigned depth)
{
    TextList inner = {0};
    Bytes    text;
    bool     ok;

    if (p->words.n >= MAX_WORDS)
        return diag_error(p->d, E_USAGE, NO_LOC, "more than %d words", MAX_WORDS);
    if (word[0] != '@' || !word[1]) {
        vec_push(p->a, &p->words, word);
        return true;
    }
    if (depth == RESPONSE_DEPTH)
        return diag_error(p->d, E_USAGE, NO_LOC, "'%s' is nested too deeply", word);
    if (!file_read(p->d, p->a, word + 1, &text) || !words_split(p->d, p->a, word + 1, text, &inner))
        return false;
    ok = true;
    for (uint32_t i = 0; ok && i < inner.n; i++)
        ok = expand(p, inner.at[i], depth + 1);
    return ok;
}

/* ---- options of several compilers --------------------------------------------------------------
 *
 * A build system may give every compiler what was said for all: -Wall, -isystem and a folder. */

/* Lines as CMake writes them: one word each, or several behind "SHELL:". */
static bool read_foreign(Parser *p, const char *path)
{
    Bytes       text;
    const char *at, *end;

    if (!file_read(p->d, p->a, path, &text))
        return false;
    at = arena_printf(p->a, "%.*s", (int)text.n, (const char *)text.at);
    for (; *at; at = end + (*end == '\n')) {
        end = at + strcspn(at, "\n");
        const char *line = arena_printf(p->a, "%.*s", (int)(end - at), at);

        if (!str_starts(line, "SHELL:"))
            vec_push(p->a, &p->foreign, line);
        else if (!words_split(p->d, p->a, path,
                              (Bytes){(const uint8_t *)line + 6, strlen(line) - 6}, &p->foreign))
            return false;
    }
    return true;
}

/* Before any other word is looked at. */
static bool find_foreign(Parser *p)
{
    bool ok = true;

    for (uint32_t i = 0; i < p->words.n; i++)
        if (str_starts(p->words.at[i], "--foreign-options="))
            ok = read_foreign(p, p->words.at[i] + strlen("--foreign-options=")) && ok;
    return ok;
}

/* Is it an option, and one that can be carried out?  The parser stays as it is. */
static bool is_taken(const Parser *p, uint32_t i)
{
    Options options = *p->o;
    Parser  trial = *p;

    trial.o = &options;
    trial.d = diags_new(p->a);
    one_option(&trial, &i);
    return !diag_errors(trial.d);
}

static bool is_left_out(const Parser *p, uint32_t i)
{
    const char *word = p->words.at[i];

    for (uint32_t k = 0; k < p->foreign.n; k++)
        if (strcmp(p->foreign.at[k], word) == 0)
            return word[0] != '-' || !word[1] || !is_taken(p, i);
    return false;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* `tvmcc complie net.onnx`: a first word that is no file but nearly a command. */
static bool misspelt_command(Parser *p, const char *word)
{
    const char *names[COUNT(command_table)], *closest;
    uint32_t    n = 0;

    if (*word == '-' || strpbrk(word, "./") || access(word, F_OK) == 0)
        return false;
    for (; n < command_count && n < COUNT(names); n++)
        names[n] = command_table[n].name;
    if (!(closest = str_closest(word, names, n)))
        return false;
    diag_error(p->d, E_USAGE, NO_LOC, "there is no command '%s'", word);
    diag_hint(p->d, "did you mean '%s'?", closest);
    return true;
}

bool options_parse(Diags *d, Arena *a, int argc, const char *const *argv, Options *o)
{
    uint32_t before = diag_errors(d), i = 0;
    Parser   p = {d, a, o, {0}, {0}};
    bool     only_files = false;

    *o = (Options){.compile = compile_defaults(), .number = 1, .rtol = 1e-3};
    o->command = command_find("compile");
    for (int k = 0; k < argc; k++) {
        if (!expand(&p, argv[k], 0))
            return false;
    }
    if (!find_foreign(&p))
        return false;
    if (p.words.n && command_find(p.words.at[0]))
        o->command = command_find(p.words.at[i++]);
    else if (p.words.n && misspelt_command(&p, p.words.at[0]))
        return false;
    for (; i < p.words.n; i++) {
        const char *word = p.words.at[i];

        if (is_left_out(&p, i))
            continue;
        if (only_files || word[0] != '-' || !word[1])
            vec_push(a, &o->inputs, word);
        else if (strcmp(word, "--") == 0)
            only_files = true;
        else
            one_option(&p, &i);
    }
    o->depfile = o->depfile || o->depfile_path || o->depfile_targets.n || o->depfile_phony;
    if (diag_errors(d) == before && !o->show && o->inputs.n == 0 && o->command->arguments[0] &&
        o->command->arguments[0] != '[') {
        if (o->command->arguments[0] == '<')
            diag_error(d, E_USAGE, NO_LOC, "there is no input file");
        else
            diag_error(d, E_USAGE, NO_LOC, "'%s' needs %s", o->command->name,
                       o->command->arguments);
        diag_hint(d, "--help says what can be asked for");
    }
    if (diag_errors(d) == before && !o->show)
        options_check(d, o);
    return diag_errors(d) == before;
}
