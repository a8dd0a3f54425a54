/* What is said about the command line elsewhere than in --help, from the same tables:
 *
 *     cmddoc man  <file>     the manual page tvmcc.1
 *     cmddoc bash <file>     completion for bash
 *     cmddoc zsh  <file>     completion for zsh
 *
 * Only tables are included, nothing is linked.  How an argument is completed follows from what the
 * help calls it: `<file>`, `<pass>`, `a|b|c`, ... (`words_of`). */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

typedef enum { ARG_NONE, ARG_JOIN, ARG_SHORT, ARG_LONG } ArgForm;

typedef struct {
    const char *text;
    ArgForm     form;
    const char *argument, *commands, *group, *help;
} Option;

typedef struct {
    const char *name;
    char        letter;
    const char *arguments, *about;
} Command;

typedef struct {
    const char *name, *about;
} Word;

static const Option options[] = {
#define OPTION(text, form, argument, commands, group, setter, field, value, help) \
    {text, form, argument, commands, group, help},
#define COMPILE_OPTION OPTION
#include "driver/options.def"
#undef COMPILE_OPTION
#undef OPTION
};

static const Command commands[] = {
#define COMMAND(name, letter, function, arguments, about) {name, letter, arguments, about},
#include "driver/commands.def"
#undef COMMAND
};

static const Word products[] = {
#define EMIT(id, text, suffix, about) {text, about},
#include "compile/emit.def"
#undef EMIT
};

static const Word passes[] = {
#define GRAPH_PASS(name, opt, about) {#name, about},
#define TIR_PASS(name, opt, about) {#name, about},
#define PROGRAM_PASS(name, opt, about) {#name, about},
#define CODE_PASS(name, opt, about) {#name, about},
#define ALGORITHM(name, opt, about) {#name, about},
#include "passes/passes.def"
#undef GRAPH_PASS
#undef TIR_PASS
#undef PROGRAM_PASS
#undef CODE_PASS
#undef ALGORITHM
};

static const Word backends[] = {
#define BACKEND(name, about) {#name, about},
#define DEVICE(name, about, product, text, suffix, what) {#name, about},
#define SIBLING(name, about, product) {#name, about},
#define SOURCE(name, about, product, text, suffix, what) {#name, about},
#include "backends/backends.def"
};

static const Word frontends[] = {
#define FRONTEND(id, name, endings, inside, bid, import, describe, list_ops, weights, signatures, \
                 text)                                                                            \
    {name, text},
#include "frontends/frontends.def"
#undef FRONTEND
};

static const Word variables[] = {
#define VARIABLE(name, about) {name, about},
#include "driver/environment.def"
#undef VARIABLE
};

typedef struct {
    const char *code, *flag, *text;
    int         status;
} Diagnostic;

static const Diagnostic diagnostics[] = {
#define none NULL
#define DIAG(id, code, status, flag, text) {code, flag, text, status},
#include "base/diag.def"
#undef DIAG
#undef none
};

/* ---- the manual page ----------------------------------------------------------------------------- */

/* Text of roff: a leading dot or quote would be a request, a minus a hyphen. */
static void roff(FILE *f, const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", f);
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", f);
        else if (*text == '-')
            fputs("\\-", f);
        else
            fputc(*text, f);
    }
}

static void spelling(FILE *f, const Option *o)
{
    fputs("\\fB", f);
    roff(f, o->text);
    fputs("\\fR", f);
    if (o->argument) {
        fputs(o->form == ARG_LONG ? "=" : o->form == ARG_SHORT ? " " : "", f);
        fputs("\\fI", f);
        roff(f, o->argument);
        fputs("\\fR", f);
    }
}

static bool takes(const Option *o, const Command *c)
{
    return o->commands[0] == '*' || strchr(o->commands, c->letter);
}

/* "compile, run": who takes the option, unless all do. */
static void takers(FILE *f, const Option *o)
{
    const char *sep = "";

    if (o->commands[0] == '*')
        return;
    fputs(" (", f);
    for (size_t i = 0; i < COUNT(commands); i++) {
        if (takes(o, &commands[i])) {
            fprintf(f, "%s%s", sep, commands[i].name);
            sep = ", ";
        }
    }
    fputs(")", f);
}

static void man_words(FILE *f, const char *title, const Word *words, size_t n)
{
    fprintf(f, ".SH %s\n", title);
    for (size_t i = 0; i < n; i++) {
        fputs(".TP\n.B ", f);
        roff(f, words[i].name);
        fputs("\n", f);
        roff(f, words[i].about);
        fputs("\n", f);
    }
}

/* Groups come in the order of their first rows. */
static bool begins_group(size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (!strcmp(options[k].group, options[i].group))
            return false;
    return true;
}

static void man_group(FILE *f, const char *group)
{
    fputs(".SS ", f);
    for (const char *c = group; *c; c++)
        fputc(c == group && *c >= 'a' && *c <= 'z' ? *c - 32 : *c, f);
    fputs("\n", f);
    for (size_t i = 0; i < COUNT(options); i++) {
        const Option *o = &options[i];
        size_t        k = i;

        if (!o->help || strcmp(o->group, group) != 0)
            continue;
        fputs(".TP\n", f);
        spelling(f, o);
        while (k + 1 < COUNT(options) && !options[k + 1].help) {
            fputs(", ", f);
            spelling(f, &options[++k]);
        }
        fputs("\n", f);
        roff(f, o->help);
        takers(f, o);
        fputs("\n", f);
    }
}

static void man_options(FILE *f)
{
    for (size_t i = 0; i < COUNT(options); i++)
        if (begins_group(i))
            man_group(f, options[i].group);
}

static void man(FILE *f)
{
    static const char *const statuses[][2] = {
        {"0", "all went well"},
        {"1", "the model parses but is wrong, or the options do not fit it"},
        {"2", "the command line is wrong"},
        {"3", "an operator or a feature is not supported"},
        {"4", "the bytes of a file do not parse"},
        {"5", "the manifest or its lock is wrong"},
        {"6", "the product is larger than its limits allow"},
        {"7", "outputs differ from what was expected"},
        {"8", "the tuning logs cover less than asked for"},
        {"9", "a part of the toolchain is missing"},
        {"10", "a product is not reproducible"},
        {"11", "a compile was cancelled, by a program that uses the library"},
        {"70", "an error of the compiler itself"},
        {"74", "a file cannot be read or written"},
    };

    fprintf(
        f,
        ".\\\" Made from driver/options.def and its sisters by tools/cmddoc.c.\n"
        ".TH TVMCC 1 \"\" \"tvmcc %s\" \"User Commands\"\n"
        ".SH NAME\ntvmcc \\- compile trained models to machine code\n"
        ".SH SYNOPSIS\n.B tvmcc\n[\\fIcommand\\fR] [\\fIoptions\\fR] \\fIfile\\fR...\n"
        ".SH DESCRIPTION\n"
        ".B tvmcc\nis to a neural network what a C compiler is to a C file: a model goes in, an\n"
        "object file and a C header come out.  Without a command,\n.B compile\nis meant.\n"
        ".PP\nA word\n.BI @ file\nstands for the words in that file; after\n.B \\-\\-\n"
        "all words are files.  Products go to files or, as\n.BR \"\\-o \\-\" ,\n"
        "to standard output; messages go to standard error.\n"
        ".SH COMMANDS\n",
        TVMCC_VERSION);
    for (size_t i = 0; i < COUNT(commands); i++) {
        fprintf(f, ".TP\n\\fB%s\\fR \\fI", commands[i].name);
        roff(f, commands[i].arguments);
        fputs("\\fR\n", f);
        roff(f, commands[i].about);
        fputs("\n", f);
    }
    fputs(".SH OPTIONS\nIn parentheses are the commands that take an option; without, all do.\n",
          f);
    man_options(f);
    man_words(f, "PRODUCTS", products, COUNT(products));
    man_words(f, "MODEL FORMATS", frontends, COUNT(frontends));
    man_words(f, "TARGETS", backends, COUNT(backends));
    man_words(f, "PASSES", passes, COUNT(passes));
    fputs(".SH EXIT STATUS\n", f);
    for (size_t i = 0; i < COUNT(statuses); i++) {
        fprintf(f, ".TP\n.B %s\n", statuses[i][0]);
        roff(f, statuses[i][1]);
        fputs("\n", f);
    }
    fputs(".SH DIAGNOSTICS\nA message ends with its code;\n.BI \\-\\-help= code\nsays more.\n", f);
    for (size_t i = 0; i < COUNT(diagnostics); i++) {
        const Diagnostic *d = &diagnostics[i];

        fprintf(f, ".TP\n\\fB%s\\fR", d->code);
        if (d->flag) {
            fputs(" \\fB\\-W", f);
            roff(f, d->flag);
            fputs("\\fR", f);
        } else {
            fprintf(f, " status %d", d->status);
        }
        fputs("\n", f);
        roff(f, d->text);
        fputs("\n", f);
    }
    man_words(f, "ENVIRONMENT", variables, COUNT(variables));
    fputs(".SH EXAMPLES\n"
          ".TP\nAn object file and a header, digits.o and digits.h\n"
          ".B tvmcc \\-c digits.onnx \\-o digits.o\n"
          ".TP\nThe same for a board\n"
          ".B tvmcc \\-c digits.onnx \\-\\-target=aarch64\\-linux\\-gnu \\-mcpu=cortex\\-a53\n"
          ".TP\nRun it\n.B tvmcc run digits.onnx \\-\\-print\\-top 3\n"
          ".SH SEE ALSO\n.BR cc (1),\n.BR ninja (1),\n.BR cmake (1)\n",
          f);
}

/* ---- completion: what an argument can be ---------------------------------------------------------- */

typedef enum { FILES, WORDS, ANYTHING } ArgKind;

/* The parts of `words` that are literal: "random|zeros|ones", "<pass>|all", "softmax|topk=<k>". */
static void literals(FILE *f, const char *words)
{
    while (*words) {
        size_t n = strcspn(words, "|"), plain = strcspn(words, "|<[");

        if (plain)
            fprintf(f, " %.*s", (int)plain, words);
        words += n + (words[n] == '|');
    }
}

/* The first words of "stat|clean|export <file>". */
static void verbs(FILE *f, const char *words)
{
    while (*words) {
        size_t n = strcspn(words, "|");

        fprintf(f, " %.*s", (int)strcspn(words, "| "), words);
        words += n + (words[n] == '|');
    }
}

/* The words that the help lists behind its colon. */
static void listed(FILE *f, const char *help)
{
    for (const char *p = strchr(help, ':'); p; p = strchr(p, ','))
        fprintf(f, " %.*s", (int)strcspn(p + 2, ","), p + 2), p++;
}

static void names(FILE *f, const Word *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fprintf(f, " %s", words[i].name);
}

static void flags(FILE *f)
{
    for (size_t i = 0; i < COUNT(diagnostics); i++) {
        if (diagnostics[i].flag)
            fprintf(f, " %s no-%s", diagnostics[i].flag, diagnostics[i].flag);
    }
    fputs(" error", f);
}

static void topics(FILE *f)
{
    fputs(" emit warnings environment", f);
    for (size_t i = 0; i < COUNT(commands); i++)
        fprintf(f, " %s", commands[i].name);
    for (size_t i = 0; i < COUNT(options); i++) {
        if (begins_group(i))
            fprintf(f, " %s", options[i].group);
    }
    for (size_t i = 0; i < COUNT(diagnostics); i++)
        fprintf(f, " %s", diagnostics[i].code);
}

/* Writes the words that the argument can be (a blank before each) where it is one of a set. */
static ArgKind words_of(FILE *f, const Option *o)
{
    const char *a = o->argument;

    if (strstr(a, "file") || strstr(a, "folder") || strstr(a, "manifest"))
        return strstr(a, "embed") ? (literals(f, a), WORDS) : FILES;
    if (strstr(a, "<kind>"))
        names(f, products, COUNT(products));
    else if (strstr(a, "<pass>") || strcmp(o->text, "--passes") == 0)
        names(f, passes, COUNT(passes)), literals(f, a);
    else if (strstr(a, "<part>"))
        listed(f, o->help);
    else if (strstr(a, "<format>"))
        names(f, frontends, COUNT(frontends));
    else if (strstr(a, "<target>") && strncmp(o->text, "--", 2) == 0)
        names(f, backends, COUNT(backends));
    else if (strstr(a, "<warning>"))
        flags(f);
    else if (strstr(a, "<topic>"))
        topics(f);
    else if (strcmp(a, "<0..3>") == 0)
        fputs(" 0 1 2 3", f);
    else if (strcmp(o->text, "-mcpu") == 0)
        fputs(" native $(_tvmcc_cpus)", f);
    else if (strcmp(o->text, "-mtriple") == 0)
        fputs(" $(_tvmcc_triples)", f);
    else if (strchr(a, '|'))
        literals(f, a);
    else
        return ANYTHING;
    return WORDS;
}

/* Functions of both shells. */
static void helpers(FILE *f, const char *program)
{
    fprintf(f,
            "# What this tvmcc knows.\n"
            "_tvmcc_cpus() {\n"
            "    %s -print-targets 2>/dev/null | sed -n 's/.* -mcpu=\\([^ ]*\\).*/\\1/p'\n"
            "}\n\n"
            "_tvmcc_triples() { %s -print-triples 2>/dev/null; }\n\n",
            program, program);
}

static bool is_list(const Option *o)
{
    return strstr(o->argument, ",") != NULL && !strchr(o->argument, ':');
}

/* ---- bash ----------------------------------------------------------------------------------------- */

static bool same_text(const Option *a, const Option *b)
{
    return strcmp(a->text, b->text) == 0;
}

/* A later row of the same text, for other commands. */
static bool repeated(size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (same_text(&options[k], &options[i]))
            return true;
    }
    return false;
}

static bool ambiguous(size_t i)
{
    for (size_t k = 0; k < COUNT(options); k++) {
        if (k != i && same_text(&options[k], &options[i]))
            return true;
    }
    return false;
}

/* The pattern for `command:option`. */
static void bash_pattern(FILE *f, size_t i)
{
    const char *sep = "";

    if (!ambiguous(i)) {
        fprintf(f, "*:%s", options[i].text);
        return;
    }
    for (size_t c = 0; c < COUNT(commands); c++) {
        if (takes(&options[i], &commands[c])) {
            fprintf(f, "%s%s:%s", sep, commands[c].name, options[i].text);
            sep = " | ";
        }
    }
}

/* `a | b | c` of the options that `want`. */
static void bash_any(FILE *f, bool (*want)(const Option *o))
{
    const char *sep = "";

    for (size_t i = 0; i < COUNT(options); i++) {
        if (want(&options[i]) && !repeated(i)) {
            fprintf(f, "%s%s", sep, options[i].text);
            sep = " | ";
        }
    }
}

static bool takes_list(const Option *o)
{
    return o->argument && is_list(o);
}

static bool takes_next(const Option *o)
{
    return o->form == ARG_SHORT || o->form == ARG_LONG;
}

/* Lists are completed behind their last comma.  bash splits words at = and :, so the word under the
 * cursor is put together again from COMP_LINE. */
static void bash(FILE *f)
{
    fputs("# Completion for tvmcc, made from its option table by tools/cmddoc.c.\n\n", f);
    helpers(f, "\"${given[0]:-tvmcc}\"");
    fputs("# The words that the argument of `command:option` can be; status 1 if it is a file.\n"
          "_tvmcc_argument() {\n    case $1 in\n",
          f);
    for (size_t i = 0; i < COUNT(options); i++) {
        const Option *o = &options[i];

        if (!o->argument)
            continue;
        fputs("        ", f);
        bash_pattern(f, i);
        fputs(") set --", f);
        if (words_of(f, o) == FILES)
            fputs("; return 1", f);
        fputs(" ;;\n", f);
    }
    fputs("        *) set -- ;;\n    esac\n    printf '%s\\n' \"$@\"\n}\n\n"
          "_tvmcc_options() {\n    case $1 in\n",
          f);
    for (size_t c = 0; c < COUNT(commands); c++) {
        fprintf(f, "        %s) echo '", commands[c].name);
        for (size_t i = 0; i < COUNT(options); i++) {
            if (takes(&options[i], &commands[c]))
                fprintf(f, "%s%s ", options[i].text, options[i].form == ARG_LONG ? "=" : "");
        }
        fputs("' ;;\n", f);
    }
    fputs("    esac\n}\n\n# The words after a command that are no files.\n"
          "_tvmcc_verbs() {\n    case $1 in\n",
          f);
    for (size_t c = 0; c < COUNT(commands); c++) {
        if (!strchr("<[", commands[c].arguments[0])) {
            fprintf(f, "        %s) echo", commands[c].name);
            verbs(f, commands[c].arguments);
            fputs(" ;;\n", f);
        }
    }
    fputs("    esac\n}\n\n"
          "_tvmcc_files() {\n"
          "    local IFS=$'\\n'\n"
          "    compopt -o filenames 2>/dev/null\n"
          "    COMPREPLY=($(compgen -f -- \"$1\"))\n"
          "}\n\n"
          "# Completes $2, the argument of option $1; what comes before it in the word is $3.\n"
          "_tvmcc_value() {\n"
          "    local words list= typed=$2\n"
          "    if ! words=$(_tvmcc_argument \"$command:$1\"); then\n"
          "        _tvmcc_files \"$typed\"\n"
          "        [ -z \"$3\" ] || [ \"${COMP_WORDBREAKS/=/}\" != \"$COMP_WORDBREAKS\" ] ||\n"
          "            COMPREPLY=(\"${COMPREPLY[@]/#/$3}\")\n"
          "        return\n"
          "    fi\n"
          "    case $1 in\n        ",
          f);
    bash_any(f, takes_list);
    fputs(")\n"
          "            case $typed in *,*) list=${typed%,*},; typed=${typed##*,} ;; esac ;;\n"
          "    esac\n"
          "    case $3 in\n"
          "        *=) [ \"${COMP_WORDBREAKS/=/}\" != \"$COMP_WORDBREAKS\" ] || list=$3$list ;;\n"
          "        *) list=$3$list ;;\n"
          "    esac\n"
          "    COMPREPLY=($(compgen -P \"$list\" -W \"$words\" -- \"$typed\"))\n"
          "}\n\n"
          "_tvmcc() {\n"
          "    local line=${COMP_LINE:0:COMP_POINT} word before= command=compile i option\n"
          "    local -a given\n"
          "    COMPREPLY=()\n"
          "    read -ra given <<<\"$line\"\n"
          "    case $line in *[[:space:]]) given+=(\"\") ;; esac\n"
          "    word=${given[${#given[@]} - 1]}\n"
          "    [ ${#given[@]} -lt 3 ] || before=${given[${#given[@]} - 2]}\n"
          "    if [ ${#given[@]} -gt 2 ] && [ -n \"$(_tvmcc_options \"${given[1]}\")\" ]; then\n"
          "        command=${given[1]}\n"
          "    fi\n"
          "    case $before in\n        ",
          f);
    bash_any(f, takes_next);
    fputs(")\n"
          "            _tvmcc_value \"$before\" \"$word\" \"\"\n"
          "            return ;;\n"
          "    esac\n"
          "    case $word in\n"
          "        @*)\n"
          "            _tvmcc_files \"${word#@}\"\n"
          "            COMPREPLY=(\"${COMPREPLY[@]/#/@}\") ;;\n",
          f);
    for (size_t i = 0; i < COUNT(options); i++) {
        const Option *o = &options[i];
        size_t        n = strlen(o->text);

        if (o->form == ARG_JOIN && !repeated(i) && n > 2)
            fprintf(f, "        %s*) _tvmcc_value %s \"${word#%s}\" %s ;;\n", o->text, o->text,
                    o->text, o->text);
    }
    fputs("        --*=* | -m*=*) _tvmcc_value \"${word%%=*}\" \"${word#*=}\" \"${word%%=*}=\" ;;\n"
          "        -W*) _tvmcc_value -W \"${word#-W}\" -W ;;\n"
          "        -O*) _tvmcc_value -O \"${word#-O}\" -O ;;\n"
          "        -*)\n"
          "            COMPREPLY=($(compgen -W \"$(_tvmcc_options $command)\" -- \"$word\"))\n"
          "            case ${COMPREPLY[0]} in *=) compopt -o nospace 2>/dev/null ;; esac ;;\n"
          "        *)\n"
          "            _tvmcc_files \"$word\"\n"
          "            if [ ${#given[@]} -eq 3 ] && [ -n \"$(_tvmcc_verbs $command)\" ]; then\n"
          "                COMPREPLY=($(compgen -W \"$(_tvmcc_verbs $command)\" -- \"$word\"))\n"
          "            elif [ ${#given[@]} -eq 2 ]; then\n"
          "                COMPREPLY=($(compgen -W \"",
          f);
    for (size_t c = 0; c < COUNT(commands); c++)
        fprintf(f, "%s%s", c ? " " : "", commands[c].name);
    fputs("\" -- \"$word\") \"${COMPREPLY[@]}\")\n"
          "            fi ;;\n"
          "    esac\n"
          "}\n"
          "complete -F _tvmcc tvmcc\n",
          f);
}

/* ---- zsh ------------------------------------------------------------------------------------------ */

/* In 'option[text]:message:action' of _arguments, brackets, colons and quotes are special. */
static void zsh_text(FILE *f, const char *text)
{
    for (; *text; text++) {
        if (strchr("[]:\\", *text))
            fputc('\\', f);
        if (*text == '\'')
            fputs("'\\'", f);
        fputc(*text, f);
    }
}

static void zsh_option(FILE *f, const Option *o, const char *help)
{
    const char *forms[] = {[ARG_NONE] = "", [ARG_JOIN] = "-", [ARG_SHORT] = "+", [ARG_LONG] = "="};

    fprintf(f, "                '*%s%s[", o->text, forms[o->form]);
    zsh_text(f, help);
    fputs("]", f);
    if (o->argument) {
        fputs(":", f);
        zsh_text(f, o->argument);
        fputs(":{", f);
        fputs(is_list(o) ? "_values -s , word" : "compadd --", f);
        if (words_of(f, o) == FILES)
            fputs("; _files", f);
        fputs("}", f);
    }
    fputs("' \\\n", f);
}

static void zsh(FILE *f)
{
    fputs(
        "#compdef tvmcc\n# Completion for tvmcc, made from its option table by tools/cmddoc.c.\n\n",
        f);
    helpers(f, "tvmcc");
    fputs("_tvmcc() {\n    local command=compile\n    local -a commands\n    commands=(\n", f);
    for (size_t c = 0; c < COUNT(commands); c++) {
        fprintf(f, "        '%s:", commands[c].name);
        zsh_text(f, commands[c].about);
        fputs("'\n", f);
    }
    fputs("    )\n"
          "    if (( CURRENT > 2 )) && (( ${commands[(I)$words[2]:*]} )); then\n"
          "        command=$words[2]\n        shift words\n        (( CURRENT-- ))\n"
          "    elif (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n"
          "        _describe command commands\n        _files\n        return\n    fi\n"
          "    case $command in\n",
          f);
    for (size_t c = 0; c < COUNT(commands); c++) {
        const char *help = "";

        fprintf(f, "        %s)\n            _arguments -S \\\n", commands[c].name);
        for (size_t i = 0; i < COUNT(options); i++) {
            help = options[i].help ? options[i].help : help;
            if (takes(&options[i], &commands[c]))
                zsh_option(f, &options[i], help);
        }
        if (!strchr("<[", commands[c].arguments[0])) {
            fputs("                '1:what:(", f);
            verbs(f, commands[c].arguments);
            fputs(")' \\\n", f);
        }
        fputs("                '*:file:_files' ;;\n", f);
    }
    fputs("    esac\n}\n\n_tvmcc \"$@\"\n", f);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*write)(FILE *f);
    } kinds[] = {{"man", man}, {"bash", bash}, {"zsh", zsh}};
    FILE *f = argc == 3 ? fopen(argv[2], "w") : NULL;

    for (size_t i = 0; f && i < COUNT(kinds); i++) {
        if (strcmp(argv[1], kinds[i].name) == 0) {
            kinds[i].write(f);
            return fclose(f) == 0 ? 0 : 1;
        }
    }
    fprintf(stderr, "usage: cmddoc man|bash|zsh <file>\n");
    return 2;
}
