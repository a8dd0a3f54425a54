/* Options that would do nothing.
 *
 * What is accepted has an effect; else the user believes in one.  An option may need another one
 * (needs.def), and what says how a model is compiled comes too late for a product, a plan or an
 * object.  Options that only say how the work is done, such as -j and -v, fit everything. */
#include "driver/driver.h"
#include "packaging/packaging.h"

#include <string.h>

/* The row whose other spelling `row` is, or itself. */
static const Option *spelt_first(const Option *row)
{
    while (!row->help)
        row--;
    return row;
}

static const Option *given(const Options *o, const char *text)
{
    for (uint32_t i = 0; i < o->given.n; i++)
        if (strcmp(spelt_first(o->given.at[i])->text, text) == 0)
            return o->given.at[i];
    return NULL;
}

void options_check(Diags *d, const Options *o)
{
    static const struct {
        const char *option, *commands, *other;
    } rows[] = {
#define NEEDS(option, commands, other) {option, commands, other},
#include "driver/needs.def"
#undef NEEDS
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const Option *row = given(o, rows[i].option);

        if (row && strchr(rows[i].commands, o->command->letter) && !given(o, rows[i].other))
            diag_error(d, E_USAGE, NO_LOC, "'%s' does nothing without '%s'", row->text,
                       rows[i].other);
    }
}

/* `-fweights`, without what joins its argument. */
static const char *name_of(const Diags *d, const Option *row)
{
    size_t n = strlen(row->text);

    return arena_printf(diag_arena(d), "%.*s", (int)(n - (row->text[n - 1] == '=')), row->text);
}

static bool among(const char *text, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(*list, text) == 0)
            return true;
    return false;
}

/* Errors for what is of one of the groups or among `more`, but not among `but`. */
static bool none_of(Diags *d, const Options *o, const char *const *groups, const char *const *more,
                    const char *const *but, const char *fmt, const char *input, const char *hint)
{
    bool ok = true;

    for (uint32_t i = 0; i < o->given.n; i++) {
        const Option *row = o->given.at[i];
        const char   *text = spelt_first(row)->text;

        if ((!among(row->group, groups) && !among(text, more)) || among(text, but))
            continue;
        ok = diag_error(d, E_USAGE, NO_LOC, fmt, name_of(d, row), input);
    }
    if (!ok)
        diag_hint(d, "%s", hint);
    return ok;
}

bool options_fit_product(Diags *d, const Options *o, const char *input)
{
    static const char *const groups[] = {"model", "target", "optimisation", "tuning", "passes",
                                         "cache", NULL};
    static const char *const more[] = {"-fweights-dtype=", NULL};
    static const char *const but[] = {"--labels", "-j", NULL};
    static const char *const but_text[] = {"--labels", "-j", "-mtriple", NULL};
    const bool               text = str_ends(input, ".c") || pack_format(input) != PACK_NONE;

    return none_of(d, o, groups, more, text ? but_text : but,
                   "'%s' does nothing for '%s', which is compiled already", input,
                   "give the model in its place, or compile it like that");
}

bool options_fit_plan(Diags *d, const Options *o, const char *input)
{
    static const char *const groups[] = {"model", "target", "optimisation", "tuning", NULL};
    static const char *const more[] = {"--entry",           "-fweights=",   "-fweights-dtype=",
                                       "--weights-section", "-frefit",      "-fpass=",
                                       "-fno-pass=",        "--check-args", NULL};
    static const char *const but[] = {"-j", NULL};

    return none_of(d, o, groups, more, but, "'%s' comes too late for '%s'", input,
                   "give it to the command that makes the plan");
}

bool options_fit_objects(Diags *d, const Options *o, const char *input)
{
    static const char *const groups[] = {"output",       "model",        "target",
                                         "optimisation", "tuning",       "passes",
                                         "cache",        "dependencies", NULL};
    static const char *const more[] = {NULL};
    static const char *const but[] = {"-o", "-c", "-###", "-j", "--target", "-mtriple", NULL};

    return none_of(d, o, groups, more, but, "'%s' does nothing for '%s', which is only linked",
                   input, "give it to the command that makes the object");
}
