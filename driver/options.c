/* The command line as a struct Options.
 *
 * Words are matched against options.def; a row's setter stores the argument.  Response files
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

enum { RESPONSE_DEPTH = 8, MAX_WORDS = 1 << 16, MAX_DIMS = 32 };

struct Parser {
    Diags   *d;
    Arena   *a;
    Options *o;
    TextList words;
    TextList foreign; /* words that are for other compilers too */
};

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

static bool wrong(Parser *p, const Option *row, const char *argument, const char *expected)
{
    return diag_error(p->d, E_USAGE, NO_LOC, "'%s' takes %s, not '%s'", row->text, expected,
                      argument);
}

/* ---- setters: `field` is where the row says -------------------------------------------------- */

static bool set_true(UNUSED Parser *p, UNUSED const Option *row, void *field,
                     UNUSED const char *argument)
{
    return *(bool *)field = true;
}

static bool set_false(UNUSED Parser *p, UNUSED const Option *row, void *field,
                      UNUSED const char *argument)
{
    *(bool *)field = false;
    return true;
}

static bool set_text(UNUSED Parser *p, UNUSED const Option *row, void *field, const char *argument)
{
    *(const char **)field = argument;
    return true;
}

static bool set_list(Parser *p, UNUSED const Option *row, void *field, const char *argument)
{
    vec_push(p->a, (TextList *)field, argument);
    return true;
}

static bool parse_int(const char *text, int64_t low, int64_t high, int64_t *out)
{
    char     *end;
    long long v;

    errno = 0;
    v = strtoll(text, &end, 10);
    *out = v;
    return *text && !*end && !errno && !isspace((unsigned char)*text) && v >= low && v <= high;
}

/* `value` is the smallest number. */
static bool set_number(Parser *p, const Option *row, void *field, const char *argument)
{
    int64_t v;

    if (!parse_int(argument, row->value, 1 << 30, &v))
        return wrong(p, row, argument, row->value ? "a number from 1" : "a number");
    *(uint32_t *)field = (uint32_t)v;
    return true;
}

static bool set_int64(Parser *p, const Option *row, void *field, const char *argument)
{
    if (!parse_int(argument, row->value, INT64_MAX, field))
        return wrong(p, row, argument, "a number");
    return true;
}

static bool set_bytes(Parser *p, const Option *row, void *field, const char *argument)
{
    return parse_bytes(argument, field) ||
           wrong(p, row, argument, "a size such as 65536, 64KiB or 2MiB");
}

static bool set_real(Parser *p, const Option *row, void *field, const char *argument)
{
    char  *end;
    double v = strtod(argument, &end);

    if (end == argument || *end || !(v >= 0) || isinf(v))
        return wrong(p, row, argument, "a number from 0");
    *(double *)field = v;
    return true;
}

/* Functions and headers bear this name as it stands. */
static bool set_entry(Parser *p, const Option *row, void *field, const char *argument)
{
    const char *would = c_identifier(p->a, argument);

    if (strcmp(would, argument) != 0) {
        diag_error(p->d, E_USAGE, NO_LOC, "'%s' takes a C identifier in lower case, not '%s'",
                   row->text, argument);
        diag_hint(p->d, "'%s' would do", would);
        return false;
    }
    *(const char **)field = argument;
    return true;
}

static bool set_winograd(Parser *p, const Option *row, void *field, UNUSED const char *argument)
{
    *(bool *)field = row->value;
    return p->o->winograd_given = true;
}

static bool set_opt_level(Parser *p, const Option *row, void *field, const char *argument)
{
    int64_t v = 1; /* -O alone, as for C compilers */

    p->o->size = strcmp(argument, "s") == 0;
    if (p->o->size)
        v = 2;
    else if (*argument && !parse_int(argument, 0, 3, &v))
        return wrong(p, row, argument, "a level from 0 to 3, or 's'");
    *(int *)field = (int)v;
    p->o->opt_level_given = true;
    return true;
}

static bool set_show(UNUSED Parser *p, const Option *row, void *field, UNUSED const char *argument)
{
    *(Show *)field = (Show)row->value;
    return true;
}

static bool set_topic(Parser *p, UNUSED const Option *row, void *field, const char *argument)
{
    p->o->show = SHOW_HELP;
    *(const char **)field = argument;
    return true;
}

static bool set_ops_of(Parser *p, UNUSED const Option *row, void *field, const char *argument)
{
    p->o->show = SHOW_OPS;
    *(const char **)field = argument;
    return true;
}

/* Calls `one` for each part between commas. */
static bool each_word(Parser *p, const Option *row, void *field, const char *list,
                      bool (*one)(Parser *, const Option *, void *, const char *))
{
    bool ok = true;

    for (;;) {
        size_t n = strcspn(list, ",");

        ok = one(p, row, field, arena_printf(p->a, "%.*s", (int)n, list)) && ok;
        if (!list[n])
            return ok;
        list += n + 1;
    }
}

static bool find_product(Parser *p, const char *text, Product *out)
{
    const char *names[PRODUCT_COUNT], *closest;

    for (int i = 0; i < PRODUCT_COUNT; i++) {
        names[i] = product_table[i].text;
        if (strcmp(names[i], text) == 0) {
            *out = (Product)i;
            return true;
        }
    }
    diag_error(p->d, E_USAGE, NO_LOC, "there is no kind of product called '%s'", text);
    if ((closest = str_closest(text, names, PRODUCT_COUNT)))
        diag_hint(p->d, "did you mean '%s'?", closest);
    else
        diag_hint(p->d, "--help=emit lists them");
    return false;
}

static bool add_product(Parser *p, UNUSED const Option *row, void *field, const char *text)
{
    Product product;

    if (!find_product(p, text, &product))
        return false;
    *(uint32_t *)field |= 1u << product;
    return true;
}

static bool set_emit(Parser *p, const Option *row, void *field, const char *argument)
{
    return each_word(p, row, field, argument, add_product);
}

/* -S -emit-llvm is LLVM IR, in whatever order they come. */
static bool set_emit_only(UNUSED Parser *p, const Option *row, void *field,
                          UNUSED const char *argument)
{
    uint32_t ll = 1u << PRODUCT_LL, other = (1u << PRODUCT_ASM) | (1u << PRODUCT_OBJECT);
    uint32_t all = *(uint32_t *)field | 1u << row->value;

    *(uint32_t *)field = all & ll ? all & ~other : all;
    return true;
}

/* tvmc's names of kinds are taken as well. */
static bool add_dump(Parser *p, UNUSED const Option *row, void *field, const char *text)
{
    Product product;

    text = strcmp(text, "asm") == 0 ? "s" : text;
    if (!find_product(p, text, &product))
        return false;
    vec_push(p->a, (TextList *)field, text);
    return true;
}

static bool set_words(Parser *p, const Option *row, void *field, const char *argument)
{
    return each_word(p, row, field, argument, add_dump);
}

static bool set_weights(Parser *p, const Option *row, void *field, const char *argument)
{
    for (WeightsMode m = WEIGHTS_EMBED; m < WEIGHTS_MODES; m++) {
        if (strcmp(argument, weights_mode_names[m]) == 0) {
            *(WeightsMode *)field = m;
            return true;
        }
    }
    return wrong(p, row, argument, "'embed', 'extern', 'file' or 'section'");
}

static bool set_weights_dtype(Parser *p, const Option *row, void *field, const char *argument)
{
    static const struct {
        const char *text;
        DType       t;
    } all[] = {{"float32", DT_F32}, {"float16", DT_F16}, {"bfloat16", DT_BF16}};

    for (size_t i = 0; i < COUNT(all); i++)
        if (strcmp(argument, all[i].text) == 0) {
            *(DType *)field = all[i].t;
            return true;
        }
    return wrong(p, row, argument, "'float32', 'float16' or 'bfloat16'");
}

static bool set_policy(Parser *p, const Option *row, void *field, const char *argument)
{
    static const char *const names[] = {"prefer", "ignore", "require"}; /* as TuningPolicy */

    for (int i = 0; i < (int)COUNT(names); i++) {
        if (strcmp(argument, names[i]) == 0) {
            *(TuningPolicy *)field = (TuningPolicy)i;
            return true;
        }
    }
    return wrong(p, row, argument, "'ignore', 'prefer' or 'require'");
}

static bool set_percent(Parser *p, const Option *row, void *field, const char *argument)
{
    int64_t v;

    if (!parse_int(argument, 0, 100, &v))
        return wrong(p, row, argument, "a number from 0 to 100");
    *(uint32_t *)field = (uint32_t)v;
    return true;
}

static bool set_threads(Parser *p, const Option *row, void *field, const char *argument)
{
    *(bool *)field = strcmp(argument, "none") == 0;
    return *(bool *)field || strcmp(argument, "caller") == 0 || strcmp(argument, "pool") == 0 ||
           wrong(p, row, argument, "'none', 'caller' or 'pool'");
}

static bool set_fill(Parser *p, const Option *row, void *field, const char *argument)
{
    static const char *const names[] = {"random", "zeros", "ones"}; /* as FillMode */

    for (int i = 0; i < (int)COUNT(names); i++) {
        if (strcmp(argument, names[i]) == 0) {
            *(FillMode *)field = (FillMode)i;
            return true;
        }
    }
    return wrong(p, row, argument, "'random', 'zeros' or 'ones'");
}

static bool set_diag_format(Parser *p, const Option *row, void *field, const char *argument)
{
    static const char *const names[] = {"text", "json", "sarif"}; /* as DiagFormat */

    for (int i = 0; i < (int)COUNT(names); i++) {
        if (strcmp(argument, names[i]) == 0) {
            *(DiagFormat *)field = (DiagFormat)i;
            return true;
        }
    }
    return wrong(p, row, argument, "'text', 'json' or 'sarif'");
}

static bool set_color(Parser *p, const Option *row, void *field, const char *argument)
{
    static const char *const names[] = {"auto", "always", "never"}; /* as ColorMode */

    for (int i = 0; i < (int)COUNT(names); i++) {
        if (strcmp(argument, names[i]) == 0) {
            *(ColorMode *)field = (ColorMode)i;
            return true;
        }
    }
    return wrong(p, row, argument, "'auto', 'always' or 'never'");
}

static bool set_color_mode(UNUSED Parser *p, const Option *row, void *field,
                           UNUSED const char *argument)
{
    *(ColorMode *)field = (ColorMode)row->value;
    return true;
}

/* Warnings are kept by the Diags, not in Options. */
static bool set_warning(Parser *p, UNUSED const Option *row, UNUSED void *field,
                        const char *argument)
{
    if (diag_flag(p->d, arena_printf(p->a, "-W%s", argument)))
        return true;
    diag_error(p->d, E_UNKNOWN_OPTION, NO_LOC, "there is no warning behind '-W%s'", argument);
    diag_hint(p->d, "--help=warnings lists them");
    return false;
}

/* One `name:[1,3,?]` at *text, which is moved behind it. */
static bool parse_shape(Parser *p, const char **text, ImportShape *out)
{
    const char *open = strchr(*text, '['), *at = open ? open + 1 : NULL;
    int64_t     dims[MAX_DIMS];
    size_t      n;

    if (!open || (open > *text && open[-1] != ':'))
        return false;
    n = open > *text ? (size_t)(open - *text) - 1 : 0;
    out->name = arena_printf(p->a, "%.*s", (int)n, *text);
    for (out->ndim = 0;;) {
        char *end = (char *)at;

        at += strspn(at, " ");
        if (*at == ']' && out->ndim == 0)
            break;
        if (out->ndim == MAX_DIMS)
            return false;
        errno = 0;
        if (*at == '?') {
            dims[out->ndim++] = -1;
            end = (char *)at + 1;
        } else if (isdigit((unsigned char)*at)) {
            dims[out->ndim++] = strtoll(at, &end, 10);
        }
        if (end == at || errno)
            return false;
        at = end + strspn(end, " ");
        if (*at != ',')
            break;
        at++;
    }
    if (*at != ']')
        return false;
    out->dims = DUP_ARRAY(p->a, dims, out->ndim);
    *text = at + 1;
    return true;
}

static bool set_shapes(Parser *p, const Option *row, UNUSED void *field, const char *argument)
{
    const char *text = argument + strspn(argument, " ,");

    do {
        ImportShape shape;

        if (!parse_shape(p, &text, &shape))
            return wrong(p, row, argument, "shapes such as 'data:[1,3,224,224]'");
        for (uint32_t i = 0; i < p->o->shapes.n; i++)
            if (*shape.name && strcmp(p->o->shapes.at[i].name, shape.name) == 0)
                return diag_error(p->d, E_USAGE, NO_LOC, "'%s' gives '%s' two shapes", row->text,
                                  shape.name);
        vec_push(p->a, &p->o->shapes, shape);
        text += strspn(text, " ,");
    } while (*text);
    return true;
}

static bool set_dim(Parser *p, const Option *row, UNUSED void *field, const char *argument)
{
    const char *equals = strrchr(argument, '=');
    ImportDim   dim = {NULL, 0};

    if (!equals || equals == argument || !parse_int(equals + 1, 1, INT64_MAX, &dim.value))
        return wrong(p, row, argument, "a name and a value from 1, such as 'N=8'");
    dim.name = arena_printf(p->a, "%.*s", (int)(equals - argument), argument);
    for (uint32_t i = 0; i < p->o->dims.n; i++)
        if (strcmp(p->o->dims.at[i].name, dim.name) == 0)
            return p->o->dims.at[i].value == dim.value ||
                   diag_error(p->d, E_USAGE, NO_LOC, "'%s' gives '%s' two values, %lld and %lld",
                              row->text, dim.name, (long long)p->o->dims.at[i].value,
                              (long long)dim.value);
    vec_push(p->a, &p->o->dims, dim);
    return true;
}

static bool set_path_map(Parser *p, const Option *row, UNUSED void *field, const char *argument)
{
    const char *equals = strchr(argument, '=');

    if (!equals || equals == argument)
        return wrong(p, row, argument, "two prefixes such as '/home/me/=./'");
    vec_push(
        p->a, &p->o->path_maps,
        ((PathMap){arena_printf(p->a, "%.*s", (int)(equals - argument), argument), equals + 1}));
    return true;
}

/* ---- what the product does beside the model ---- */

static bool set_image(Parser *p, const Option *row, UNUSED void *field, const char *argument)
{
    ProductImage image;
    const char  *why;

    if (!product_parse_image(p->a, argument, &image, &why))
        return wrong(p, row, argument, why);
    vec_push(p->a, &p->o->images, image);
    return true;
}

static bool set_add(Parser *p, const Option *row, UNUSED void *field, const char *argument)
{
    ProductAdd  add;
    const char *why;

    if (!product_parse_add(p->a, argument, &add, &why))
        return wrong(p, row, argument, why);
    vec_push(p->a, &p->o->adds, add);
    return true;
}

static bool set_state(Parser *p, const Option *row, UNUSED void *field, const char *argument)
{
    ProductState state;
    const char  *why;

    if (!product_parse_state(p->a, argument, &state, &why))
        return wrong(p, row, argument, why);
    vec_push(p->a, &p->o->states, state);
    return true;
}

static bool add_one_name(Parser *p, const Option *row, void *field, const char *text)
{
    if (!*text)
        return wrong(p, row, text, "names with commas between them");
    vec_push(p->a, (TextList *)field, text);
    return true;
}

static bool set_names(Parser *p, const Option *row, void *field, const char *argument)
{
    return each_word(p, row, field, argument, add_one_name);
}

static bool set_buckets(Parser *p, const Option *row, UNUSED void *field, const char *argument)
{
    BucketDim   dim;
    const char *why;

    if (!product_parse_bucket(p->a, argument, &dim, &why))
        return wrong(p, row, argument, why);
    vec_push(p->a, &p->o->buckets, dim);
    return true;
}

const Option option_table[] = {
#define OPTION(text, form, argument, commands, group, setter, field, value, help) \
    {text, form, argument, commands, group, setter, offsetof(Options, field), value, help},
#include "driver/options.def"
#undef OPTION
};
const uint32_t option_count = COUNT(option_table);

/* ---- matching -------------------------------------------------------------------------------- */

bool option_fits(const Option *row, const Command *command)
{
    return row->commands[0] == '*' || (command && strchr(row->commands, command->letter));
}

/* Where the argument of `row` begins in `word`: "" when it is the next word; NULL: no match. */
static const char *match(const Option *row, const char *word)
{
    size_t n = strlen(row->text);

    if (strncmp(word, row->text, n) != 0)
        return NULL;
    switch (row->form) {
    case ARG_NONE: return word[n] ? NULL : word + n;
    case ARG_JOIN:
    case ARG_SHORT: return word + n;
    case ARG_LONG: return !word[n] ? word + n : word[n] == '=' ? word + n + 1 : NULL;
    }
    return NULL;
}

static void unknown_option(Parser *p, const char *word)
{
    const char *names[COUNT(option_table)], *closest;
    char       *name = arena_printf(p->a, "%.*s", (int)strcspn(word, "="), word);
    uint32_t    n = 0;

    for (uint32_t i = 0; i < option_count; i++) {
        const Option *row = &option_table[i];

        if (option_fits(row, p->o->command)) {
            names[n++] = row->text;
        } else if (match(row, word)) {
            const Command *c = command_table;

            while (c->name && !strchr(row->commands, c->letter))
                c++;
            if (!c->name)
                continue;
            diag_error(p->d, E_UNKNOWN_OPTION, NO_LOC, "'%s' has no option '%s'",
                       p->o->command ? p->o->command->name : "tvmcc", name);
            diag_hint(p->d, "it belongs to '%s'", c->name);
            return;
        }
    }
    diag_error(p->d, E_UNKNOWN_OPTION, NO_LOC, "there is no option '%s'", name);
    if ((closest = str_closest(name, names, n)))
        diag_hint(p->d, "did you mean '%s'?", closest);
    else
        diag_hint(p->d, "--help lists all");
}

/* `-O` is a level by itself. */
static bool takes_nothing(const Option *row)
{
    return row->set == set_opt_level;
}

/* Handles the option at words.at[*i]; *i stays on its last word. */
static void one_option(Parser *p, uint32_t *i)
{
    const char   *word = p->words.at[*i], *argument = NULL;
    const Option *best = NULL;

    for (uint32_t k = 0; k < option_count; k++) {
        const Option *row = &option_table[k];
        const char   *at = option_fits(row, p->o->command) ? match(row, word) : NULL;

        if (at && (!best || strlen(row->text) > strlen(best->text))) {
            best = row;
            argument = at;
        }
    }
    if (!best) {
        unknown_option(p, word);
        return;
    }
    if (!*argument &&
        (best->form == ARG_SHORT || (best->form == ARG_LONG && argument[-1] != '='))) {
        if (*i + 1 == p->words.n) {
            diag_error(p->d, E_USAGE, NO_LOC, "'%s' needs an argument: %s", best->text,
                       best->argument);
            return;
        }
        argument = p->words.at[++*i];
    }
    if (!*argument && best->form != ARG_NONE && !takes_nothing(best)) {
        diag_error(p->d, E_USAGE, NO_LOC, "'%s' has an empty argument, where %s belongs",
                   best->text, best->argument);
        return;
    }
    vec_push(p->a, &p->o->given, best);
    best->set(p, best, (char *)p->o + best->field, argument);
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

    *o = (Options){
        .pic = true, .winograd = true, .libm = true, .cpu_check = true, .number = 1, .rtol = 1e-3};
    o->pass.opt_level = 3;
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
    if (o->size && !o->winograd_given)
        o->winograd = false;
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
