/* driver: the command line, and the commands behind it.
 *
 *   main.c                       arguments in, exit status out
 *   options.c options.def        the command line as a struct Options
 *   option_check.c needs.def     options that would do nothing
 *   commands.def                 what can be asked for
 *   help.c                       --help and the -print-... options, from the tables
 *   progress.c                   one line on a terminal while something takes long
 */
#ifndef TVMCC_DRIVER_H
#define TVMCC_DRIVER_H

#include "compile/compile.h"

typedef struct Driver   Driver;
typedef struct Progress Progress;

/* ---- what can be asked for ------------------------------------------------------------------- */

typedef struct {
    const char *name;
    char        letter;         /* how options.def names it */
    int (*run)(Driver *driver); /* exit status; what it recorded in diags counts too */
    const char *arguments, *about;
} Command;

extern const Command  command_table[];
extern const uint32_t command_count;
const Command        *command_find(const char *name);

#define COMMAND(name, letter, function, arguments, about) int function(Driver *driver);
#include "driver/commands.def"
#undef COMMAND

/* ---- options.c --------------------------------------------------------------------------------- */

typedef enum { FILL_UNSAID, FILL_RANDOM, FILL_ZEROS, FILL_ONES } FillMode; /* UNSAID: RANDOM */

typedef enum { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } ColorMode;

/* What the help options ask for: printed by help.c instead of running a command. */
typedef enum {
    SHOW_NOTHING,
    SHOW_HELP,
    SHOW_VERSION,
    SHOW_TARGETS,
    SHOW_TRIPLES,
    SHOW_MACHINE,
    SHOW_OPS,
    SHOW_PASSES,
    SHOW_DIRS,
} Show;

typedef struct {
    const Command *command;
    VEC(const Option *) given; /* in order */
    TextList    inputs;
    Show        show;
    const char *topic; /* of --help=topic, the format of -print-ops=; or NULL */

    CompileOptions compile;
    bool           measure; /* --measure */
    bool           predict; /* --predict */

    /* how */
    const char *steps;      /* --steps */
    const char *sched_file; /* --sched */
    const char *decisions;  /* --decisions */
    const char *kernel;     /* --kernel */
    bool        space;      /* --space */
    const char *html;       /* --html */

    /* what comes out, and where */
    uint32_t    emit; /* set of 1u << PRODUCT_x; 0: what the suffix of the output says */
    const char *output, *shard;
    TextList    dump_code;  /* --dump-code: products beside the output */
    const char *save_temps; /* folder of what lies between model and code; "": beside the output */
    bool        dry_run;    /* -### */

    /* for the build system */
    bool        depfile, depfile_phony; /* -MD, -MP */
    const char *foreign_options;        /* --foreign-options */
    const char *depfile_path;           /* -MF; NULL: beside the output */
    TextList    depfile_targets;        /* -MT */
    bool        check_args;             /* --check-args */

    /* manifests */
    const char *manifest; /* -m; NULL: manifest.yaml */
    bool        check, update_lock;
    const char *build_dir, *launcher, *ninja; /* NULL: the defaults */

    /* running */
    const char *in_path, *out_path, *expect_path;
    double      rtol, atol;
    bool        judge_mean; /* --mean */
    const char *emulator, *cc;
    const char *device_number;
    bool        per_layer;
    const char *plan; /* --plan, of a product */
    FillMode    fill;
    uint32_t    print_top, number, threads;
    uint32_t    repeat; /* 0: as many as the command likes */
    bool        print_time, device_memory, json;

    /* auditing, archives */
    bool        force, verify;
    bool        bytes; /* --bytes, of diff */
    uint64_t    max_stack, max_size;
    const char *stamp;
    const char *contents, *pack_name, *pack_version, *license, *bundle, *pair, *top;
    TextList    additions; /* path=file */

    /* messages */
    DiagFormat diag_format;
    ColorMode  color;
    bool       verbose, explain;
} Options;

/* words.c: splits the text of a file as a shell does; false with an error. */
bool words_split(Diags *d, Arena *a, const char *path, Bytes text, TextList *out);
/* Fills `o` from the arguments after the program's name; `o->command` stays NULL when there is no
 * command in the table for them.  False after errors (E_USAGE, E_UNKNOWN_OPTION). */
bool options_parse(Diags *d, Arena *a, int argc, const char *const *argv, Options *o);

/* ---- option_check.c: options that would do nothing are errors ------------------------------------- */

/* What can be told from the command line alone. */
void options_check(Diags *d, const Options *o);
/* Errors for options that say how a model is compiled: `input` is compiled already. */
bool options_fit_product(Diags *d, const Options *o, const char *input);
/* The same for a plan: what decides how it looks was given when it was made; and for objects, which
 * are only linked. */
bool options_fit_plan(Diags *d, const Options *o, const char *input);
bool options_fit_objects(Diags *d, const Options *o, const char *input);

/* ---- help.c --------------------------------------------------------------------------------------- */

extern const Option   option_table[];
extern const uint32_t option_count;
bool                  option_fits(const Option *row, const Command *command);

/* The text that `o->show` asks for.  False: there is no such topic. */
bool help_print(Diags *d, const Options *o, StrBuf *out);

/* ---- progress.c ------------------------------------------------------------------------------------ */

/* Whether stderr is a terminal that can rewrite a line, and have colours. */
bool stderr_is_terminal(void);
/* What --color, NO_COLOR, CLICOLOR_FORCE and the terminal come to. */
bool color_wanted(ColorMode mode);

/* A line on stderr that says what is going on: `[6/7] code 31/57  1.2 s`.  Silent unless stderr is
 * a terminal that can rewrite a line.  Not for two threads at once, but for progress_count. */
Progress *progress_new(Arena *a);
/* `total` 0: not known.  `step` is kept, not copied. */
void progress_step(Progress *p, const char *step, uint32_t done, uint32_t total);
/* How much of the step is done, and what was done last, which is kept; from any thread. */
void progress_count(Progress *p, uint32_t done, uint32_t total, const char *what);
void progress_end(Progress *p); /* wipes the line */

/* ---- cmd_cache.c ----------------------------------------------------------------------------------- */

/* --stamp, of commands that judge: the file is written anew, but not after errors (cmd_audit.c). */
void write_stamp(Driver *driver);

/* Results for people and scripts, on standard output (messages go to the Diags). */
void say(Driver *driver, const char *fmt, ...) PRINTF_LIKE(2, 3);
void say_table(Driver *driver, const Columns *table);

/* ---- the driver ------------------------------------------------------------------------------------ */

struct Driver {
    Arena    *arena;
    Diags    *diags;
    Options   opt;
    Progress *progress;
    Ctx      *c; /* of the command; NULL until job_start */
};

#endif
