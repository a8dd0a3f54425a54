/* Words of the command line as options of a compile.
 *
 * A word is matched against a table of rows (options.def, or all rows of the command line); the
 * setter of the row that fits best stores its argument.
 */
#include "compile/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIMS = 32 };

const Option compile_option_table[] = {
#define COMPILE_OPTION(text, form, argument, commands, group, setter, field, value, help) \
    {text, form, argument, commands, group, setter, offsetof(CompileOptions, field), value, help},
#include "compile/options.def"
#undef COMPILE_OPTION
};
const uint32_t compile_option_count = COUNT(compile_option_table);

CompileOptions compile_defaults(void)
{
    return (CompileOptions){
        .pic = true, .winograd = true, .libm = true, .cpu_check = true, .passes = {.opt_level = 3}};
}

bool option_wrong(OptionParser *p, const Option *row, const char *argument, const char *expected)
{
    return diag_error(p->d, E_USAGE, NO_LOC, "'%s' takes %s, not '%s'", row->text, expected,
                      argument);
}

/* ---- setters: `field` is where the row says -------------------------------------------------- */

bool set_true(UNUSED OptionParser *p, UNUSED const Option *row, void *field,
              UNUSED const char *argument)
{
    return *(bool *)field = true;
}

bool set_false(UNUSED OptionParser *p, UNUSED const Option *row, void *field,
               UNUSED const char *argument)
{
    *(bool *)field = false;
    return true;
}

bool set_text(UNUSED OptionParser *p, UNUSED const Option *row, void *field, const char *argument)
{
    *(const char **)field = argument;
    return true;
}

bool set_list(OptionParser *p, UNUSED const Option *row, void *field, const char *argument)
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
bool set_number(OptionParser *p, const Option *row, void *field, const char *argument)
{
    int64_t v;

    if (!parse_int(argument, row->value, 1 << 30, &v))
        return option_wrong(p, row, argument, row->value ? "a number from 1" : "a number");
    *(uint32_t *)field = (uint32_t)v;
    return true;
}

/* What the header of a tar member holds: to the year 2242. */
bool set_epoch(OptionParser *p, const Option *row, void *field, const char *argument)
{
    return parse_int(argument, 0, (1LL << 33) - 1, field) ||
           option_wrong(p, row, argument, "seconds since 1970, at most 8589934591");
}

bool set_bytes(OptionParser *p, const Option *row, void *field, const char *argument)
{
    return parse_bytes(argument, field) ||
           option_wrong(p, row, argument, "a size such as 65536, 64KiB or 2MiB");
}

/* Functions and headers bear this name as it stands. */
bool set_entry(OptionParser *p, const Option *row, void *field, const char *argument)
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

bool set_winograd(OptionParser *p, const Option *row, void *field, UNUSED const char *argument)
{
    *(bool *)field = row->value;
    return p->compile->winograd_given = true;
}

bool set_opt_level(OptionParser *p, const Option *row, void *field, const char *argument)
{
    int64_t v = 1; /* -O alone, as for C compilers */

    p->compile->size = strcmp(argument, "s") == 0;
    if (p->compile->size)
        v = 2;
    else if (*argument && !parse_int(argument, 0, 3, &v))
        return option_wrong(p, row, argument, "a level from 0 to 3, or 's'");
    *(int *)field = (int)v;
    p->compile->opt_level_given = true;
    return true;
}

bool option_each(OptionParser *p, const Option *row, void *field, const char *list,
                 OptionSetter *one)
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

bool set_weights(OptionParser *p, const Option *row, void *field, const char *argument)
{
    for (WeightsMode m = WEIGHTS_EMBED; m < WEIGHTS_MODES; m++) {
        if (strcmp(argument, weights_mode_names[m]) == 0) {
            *(WeightsMode *)field = m;
            return true;
        }
    }
    return option_wrong(p, row, argument, "'embed', 'extern', 'file' or 'section'");
}

bool set_float_type(OptionParser *p, const Option *row, void *field, const char *argument)
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
    return option_wrong(p, row, argument, "'float32', 'float16' or 'bfloat16'");
}

bool set_mixed_ops(OptionParser *p, const Option *row, void *field, const char *argument)
{
    p->compile->mixed = true;
    return set_names(p, row, field, argument);
}

bool set_policy(OptionParser *p, const Option *row, void *field, const char *argument)
{
    static const char *const names[] = {"prefer", "ignore", "require"}; /* as TuningPolicy */

    for (int i = 0; i < (int)COUNT(names); i++) {
        if (strcmp(argument, names[i]) == 0) {
            *(TuningPolicy *)field = (TuningPolicy)i;
            return true;
        }
    }
    return option_wrong(p, row, argument, "'ignore', 'prefer' or 'require'");
}

bool set_percent(OptionParser *p, const Option *row, void *field, const char *argument)
{
    int64_t v;

    if (!parse_int(argument, 0, 100, &v))
        return option_wrong(p, row, argument, "a number from 0 to 100");
    *(uint32_t *)field = (uint32_t)v;
    return true;
}

bool set_threads(OptionParser *p, const Option *row, void *field, const char *argument)
{
    *(bool *)field = strcmp(argument, "none") == 0;
    p->compile->threads_given = true;
    return *(bool *)field || strcmp(argument, "caller") == 0 || strcmp(argument, "pool") == 0 ||
           option_wrong(p, row, argument, "'none', 'caller' or 'pool'");
}

/* Warnings are kept by the Diags, not in Options. */
bool set_warning(OptionParser *p, UNUSED const Option *row, UNUSED void *field,
                 const char *argument)
{
    if (diag_flag(p->d, arena_printf(p->a, "-W%s", argument)))
        return true;
    diag_error(p->d, E_UNKNOWN_OPTION, NO_LOC, "there is no warning behind '-W%s'", argument);
    diag_hint(p->d, "--help=warnings lists them");
    return false;
}

bool set_quiet(OptionParser *p, UNUSED const Option *row, UNUSED void *field,
               UNUSED const char *argument)
{
    return diag_flag(p->d, "-w");
}

/* `:i64` behind a shape. */
static bool parse_cells(OptionParser *p, const char **text, ImportShape *out)
{
    size_t n = **text == ':' ? strcspn(*text + 1, " ,") : 0;

    out->typed = n > 0;
    if (n && !dtype_parse(arena_printf(p->a, "%.*s", (int)n, *text + 1), &out->dtype))
        return false;
    *text += n ? n + 1 : 0;
    return true;
}

/* One `name:[1,3,?,2*N]:f32` at *text, which is moved behind it. */
static bool parse_shape(OptionParser *p, const char **text, ImportShape *out)
{
    const char *open = strchr(*text, '['), *at = open ? open + 1 : NULL;
    const char *forms[MAX_DIMS] = {NULL};
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
        } else if (strspn(at, "0123456789 ") < strcspn(at, ",]")) {
            end = (char *)at + strcspn(at, ",]");
            forms[out->ndim] = arena_printf(p->a, "%.*s", (int)(end - at), at);
            dims[out->ndim++] = -1;
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
    out->forms = DUP_ARRAY(p->a, forms, out->ndim);
    *text = at + 1;
    return parse_cells(p, text, out);
}

bool set_shapes(OptionParser *p, const Option *row, UNUSED void *field, const char *argument)
{
    const char *text = argument + strspn(argument, " ,");

    do {
        ImportShape shape = {0};

        if (!parse_shape(p, &text, &shape))
            return option_wrong(p, row, argument, "shapes such as 'data:[1,3,224,224]'");
        for (uint32_t i = 0; i < p->compile->shapes.n; i++)
            if (*shape.name && strcmp(p->compile->shapes.at[i].name, shape.name) == 0)
                return diag_error(p->d, E_USAGE, NO_LOC, "'%s' gives '%s' two shapes", row->text,
                                  shape.name);
        vec_push(p->a, &p->compile->shapes, shape);
        text += strspn(text, " ,");
    } while (*text);
    return true;
}

/* `8`, or the bounds `1..64`, `1..` */
static bool parse_size(OptionParser *p, const char *text, ImportDim *out)
{
    const char *dots = strstr(text, "..");
    const char *first = dots ? arena_printf(p->a, "%.*s", (int)(dots - text), text) : text;

    if (dots && !dots[2]) {
        out->hi = DIM_OPEN;
        return parse_int(first, 0, DIM_OPEN - 1, &out->lo);
    }
    return parse_int(first, dots ? 0 : 1, INT64_MAX, &out->lo) &&
           parse_int(dots ? dots + 2 : first, out->lo, dots ? INT32_MAX : INT64_MAX, &out->hi);
}

static const char *size_text(OptionParser *p, const ImportDim *d)
{
    return d->lo == d->hi ? arena_printf(p->a, "%lld", (long long)d->lo)
                          : arena_printf(p->a, "%lld..%lld", (long long)d->lo, (long long)d->hi);
}

bool set_dim(OptionParser *p, const Option *row, UNUSED void *field, const char *argument)
{
    const char *equals = strrchr(argument, '=');
    ImportDim   dim = {NULL, 0, 0};

    if (!equals || equals == argument || !parse_size(p, equals + 1, &dim)) {
        option_wrong(p, row, argument,
                     "a name and a value from 1, such as 'N=8', or bounds, such as 'N=1..64' or "
                     "'N=1..'");
        return false;
    }
    dim.name = arena_printf(p->a, "%.*s", (int)(equals - argument), argument);
    for (uint32_t i = 0; i < p->compile->dims.n; i++) {
        const ImportDim *was = &p->compile->dims.at[i];

        if (strcmp(was->name, dim.name) == 0)
            return (was->lo == dim.lo && was->hi == dim.hi) ||
                   diag_error(p->d, E_USAGE, NO_LOC, "'%s' gives '%s' two values, %s and %s",
                              row->text, dim.name, size_text(p, was), size_text(p, &dim));
    }
    vec_push(p->a, &p->compile->dims, dim);
    return true;
}

bool set_value(OptionParser *p, const Option *row, UNUSED void *field, const char *argument)
{
    const char *equals = strrchr(argument, '=');
    ImportValue value = {0};

    if (!equals || equals == argument || !equals[1] || !strcmp(equals, "=@"))
        return option_wrong(p, row, argument,
                            "an input and a number, or a file, such as 'sr=16000' and "
                            "'mask=@mask.npy'");
    value.name = arena_printf(p->a, "%.*s", (int)(equals - argument), argument);
    value.text = equals + 1;
    for (uint32_t i = 0; i < p->compile->values.n; i++)
        if (strcmp(p->compile->values.at[i].name, value.name) == 0)
            return diag_error(p->d, E_USAGE, NO_LOC, "'%s' gives '%s' two values", row->text,
                              value.name);
    vec_push(p->a, &p->compile->values, value);
    return true;
}

bool set_path_map(OptionParser *p, const Option *row, UNUSED void *field, const char *argument)
{
    const char *equals = strchr(argument, '=');

    if (!equals || equals == argument)
        return option_wrong(p, row, argument, "two prefixes such as '/home/me/=./'");
    vec_push(
        p->a, &p->compile->path_maps,
        ((PathMap){arena_printf(p->a, "%.*s", (int)(equals - argument), argument), equals + 1}));
    return true;
}

/* ---- what the product does beside the model ---- */

bool set_image(OptionParser *p, const Option *row, UNUSED void *field, const char *argument)
{
    ProductImage image;
    const char  *why;

    if (!product_parse_image(p->a, argument, &image, &why))
        return option_wrong(p, row, argument, why);
    vec_push(p->a, &p->compile->images, image);
    return true;
}

bool set_add(OptionParser *p, const Option *row, UNUSED void *field, const char *argument)
{
    ProductAdd  add;
    const char *why;

    if (!product_parse_add(p->a, argument, &add, &why))
        return option_wrong(p, row, argument, why);
    vec_push(p->a, &p->compile->adds, add);
    return true;
}

bool set_state(OptionParser *p, const Option *row, UNUSED void *field, const char *argument)
{
    ProductState state;
    const char  *why;

    if (!product_parse_state(p->a, argument, &state, &why))
        return option_wrong(p, row, argument, why);
    vec_push(p->a, &p->compile->states, state);
    return true;
}

static bool add_one_name(OptionParser *p, const Option *row, void *field, const char *text)
{
    if (!*text)
        return option_wrong(p, row, text, "names with commas between them");
    vec_push(p->a, (TextList *)field, text);
    return true;
}

bool set_names(OptionParser *p, const Option *row, void *field, const char *argument)
{
    return option_each(p, row, field, argument, add_one_name);
}

bool set_buckets(OptionParser *p, const Option *row, UNUSED void *field, const char *argument)
{
    BucketDim   dim;
    const char *why;

    if (!product_parse_bucket(p->a, argument, &dim, &why))
        return option_wrong(p, row, argument, why);
    vec_push(p->a, &p->compile->buckets, dim);
    return true;
}

/* ---- matching -------------------------------------------------------------------------------- */

bool option_takes(const Option *row, char command)
{
    return row->commands[0] == '*' || (command && strchr(row->commands, command));
}

const char *option_match(const Option *row, const char *word)
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

void option_unknown(const OptionParser *p, const char *word)
{
    const char **names = NEW_ARRAY(p->a, const char *, p->nrows), *closest;
    char        *name = arena_printf(p->a, "%.*s", (int)strcspn(word, "="), word);
    uint32_t     n = 0;

    for (uint32_t i = 0; i < p->nrows; i++)
        if (option_takes(&p->rows[i], p->command))
            names[n++] = p->rows[i].text;
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

static const Option *best_match(const OptionParser *p, const char *word, const char **argument)
{
    const Option *best = NULL;

    for (uint32_t k = 0; k < p->nrows; k++) {
        const Option *row = &p->rows[k];
        const char   *at = option_takes(row, p->command) ? option_match(row, word) : NULL;

        if (at && (!best || strlen(row->text) > strlen(best->text))) {
            best = row;
            *argument = at;
        }
    }
    return best;
}

const Option *option_store(OptionParser *p, const TextList *words, uint32_t *i)
{
    const char   *argument = NULL;
    const Option *row = best_match(p, words->at[*i], &argument);

    if (!row)
        return NULL;
    if (!*argument && (row->form == ARG_SHORT || (row->form == ARG_LONG && argument[-1] != '='))) {
        if (*i + 1 == words->n) {
            diag_error(p->d, E_USAGE, NO_LOC, "'%s' needs an argument: %s", row->text,
                       row->argument);
            return row;
        }
        argument = words->at[++*i];
    }
    if (!*argument && row->form != ARG_NONE && !takes_nothing(row))
        diag_error(p->d, E_USAGE, NO_LOC, "'%s' has an empty argument, where %s belongs", row->text,
                   row->argument);
    else
        row->set(p, row, (char *)p->filled + row->field, argument);
    return row;
}
