/* What is asked of a compile, and the words that ask for it (options.def), which the command line
 * and the library share.
 *
 *   options.c options.def   words as a struct CompileOptions
 *   product.c               arguments that have a form of their own
 *   settle.c                what they come to together: target, threads, cache */
#ifndef TVMCC_COMPILE_OPTIONS_H
#define TVMCC_COMPILE_OPTIONS_H

#include "base/base.h"
#include "base/cache.h"
#include "frontends/frontends.h"
#include "ir/plan/plan.h"
#include "passes/passes.h"

/* Sizes of a named dimension that code is made for. */
typedef struct {
    const char    *name;
    uint32_t       n;
    const int64_t *sizes;
} BucketDim;

typedef struct {
    /* the model */
    const char *path;
    const char *format;      /* NULL: by the first bytes */
    const char *weights;     /* of a module in Relay text */
    const char *signature;   /* of a model that has several; NULL: the default */
    VEC(ImportShape) shapes; /* `name:[1,3,224,224]`; name "" when only the shape was given */
    VEC(ImportDim) dims;     /* `N=8`, `N=1..64` */
    VEC(ImportValue) values; /* `sr=16000`, `mask=@mask.npy`; text alone */

    /* what the product does beside it */
    VEC(ProductImage) images;
    VEC(ProductAdd) adds;
    VEC(ProductState) states;
    TextList    tensors; /* --outputs: names of tensors */
    const char *labels;  /* file with names of the classes */

    /* what for */
    TextList    targets;
    const char *host, *mtriple, *mcpu, *mattr, *mabi, *mfloat_abi;
    const char *machine;    /* --machine: file of figures, or NULL */
    TextList    variants;   /* --cpu-variants */
    VEC(BucketDim) buckets; /* --shape-buckets */
    const char *target;     /* of all that (compile_settle); NULL: this machine's baseline */
    TextList    fallbacks;  /* of several targets, the first included; none: there is one */

    /* how */
    bool        pic, fast_math, winograd, libm, cpu_check;
    bool        no_threads; /* -fthreads=none */
    bool        opt_level_given, winograd_given, threads_given;
    bool        size;                  /* -Os */
    bool        mixed;                 /* --mixed-precision */
    DType       mixed_type, mixed_sum; /* bits 0: f16, f32 */
    TextList    mixed_ops;             /* none: all that can be */
    TextList    with, without;         /* -fpass=, -fno-pass= */
    PassOptions passes;                /* -O, --passes, --stop-after, ..., -j */
    VEC(PathMap) path_maps;            /* -ffile-prefix-map */

    /* what comes out */
    const char *entry; /* NULL: from the file's name */
    WeightsMode weights_mode;
    const char *weights_section;                  /* of WEIGHTS_SECTION; NULL: .tvmcc_weights */
    FileOut    *weights_out;                      /* where they go, from WEIGHTS_AT on; NULL: into
                                                   * memory */
    uint64_t    max_code, max_weights, max_arena; /* bytes; 0: no limit */
    const char *layout;                           /* of archives */
    int64_t     epoch;                            /* time of their members */
    bool        refit;
    bool        hash_model; /* the product says which file it was made from */

    /* the kernel cache */
    const char *cache_dir;  /* NULL: by the environment */
    uint64_t    cache_size; /* 0: by the environment */
    bool        no_cache;
    Cache      *cache; /* of all that (compile_settle), or NULL */

    /* tuning logs */
    TextList     logs;
    TuningPolicy tuning_policy;
    uint32_t     min_coverage; /* per cent of the kernels */

    /* whom to tell what is going on */
    bool verbose; /* on standard error */
    /* or NULL; `step` NULL: something is printed on standard output */
    void (*progress)(void *user, const char *step, uint32_t done, uint32_t total);
    /* Within a step; from any thread. */
    void (*progress_count)(void *user, const char *what, uint32_t done, uint32_t total);
    void  *progress_user;
    Cancel cancel; /* `asked` NULL: nobody will; what it said once it says for ever */
} CompileOptions;

/* What is so unless something else is asked for. */
CompileOptions compile_defaults(void);

/* ---- options.c -------------------------------------------------------------------------------- */

typedef enum {
    ARG_NONE,  /* -c */
    ARG_JOIN,  /* -mcpu=x, -O2: the rest of the word */
    ARG_SHORT, /* -o x, -ox */
    ARG_LONG   /* --output x, --output=x */
} ArgForm;

typedef struct Option       Option;
typedef struct OptionParser OptionParser;

/* Stores in `field`; false after an error. */
typedef bool OptionSetter(OptionParser *p, const Option *row, void *field, const char *argument);

struct Option {
    const char   *text;
    ArgForm       form;
    const char   *argument; /* what the help calls it */
    const char   *commands; /* letters of commands, or "*" */
    const char   *group;
    OptionSetter *set;
    size_t        field; /* offset in the struct that all rows of a table fill */
    int64_t       value; /* for the setter */
    const char   *help;  /* NULL: another spelling of the row above */
};

struct OptionParser {
    Diags          *d;
    Arena          *a;
    CompileOptions *compile;
    uint32_t        nrows;
    const Option   *rows;
    void           *filled; /* what the rows fill: `compile` itself or what it is part of */
    char            command;
};

#define COMPILE_OPTION(text, form, argument, commands, group, setter, field, value, help) \
    OptionSetter setter;
#include "compile/options.def"
#undef COMPILE_OPTION

/* Those rows alone, for the library. */
extern const Option   compile_option_table[];
extern const uint32_t compile_option_count;

bool option_takes(const Option *row, char command);
/* Where the argument of `row` begins in `word`: "" when it is the next word; NULL: no match. */
const char *option_match(const Option *row, const char *word);
/* Stores the option at words->at[*i], and leaves *i on its last word.  The row that fits best, NULL
 * if none does; mistakes in its argument are recorded. */
const Option *option_store(OptionParser *p, const TextList *words, uint32_t *i);
/* E_UNKNOWN_OPTION, with the closest one there is. */
void option_unknown(const OptionParser *p, const char *word);
/* For setters: an error, and the parts between commas. */
bool option_wrong(OptionParser *p, const Option *row, const char *argument, const char *expected);
bool option_each(OptionParser *p, const Option *row, void *field, const char *list,
                 OptionSetter *one);

/* ---- product.c --------------------------------------------------------------------------------- */

/* The arguments of --input-image, --output-add, --shape-buckets and --state.  `why`: what would be
 * right. */
bool product_parse_image(Arena *a, const char *text, ProductImage *out, const char **why);
bool product_parse_add(Arena *a, const char *text, ProductAdd *out, const char **why);
bool product_parse_bucket(Arena *a, const char *text, BucketDim *out, const char **why);
bool product_parse_state(Arena *a, const char *text, ProductState *out, const char **why);
/* The lines of a labels file, without line ends. */
bool product_labels(Diags *d, Arena *a, const char *path, TextList *out);
bool product_label_lines(Diags *d, Arena *a, const char *path, Bytes text, TextList *out);

/* ---- settle.c ---------------------------------------------------------------------------------- */

/* The target string that the options ask for, `fallback` if they say nothing about it. */
const char *compile_target_text(Diags *d, Arena *a, const CompileOptions *o, const char *fallback);
/* The kernel cache that they ask for; NULL: none. */
Cache *compile_cache(Diags *d, Arena *a, const CompileOptions *o);
/* What follows from options together: lists of passes, threads, cache. */
void compile_settle(Diags *d, Arena *a, CompileOptions *o);
/* The same for a model, with its target; false with errors for what does not go together. */
bool compile_settle_model(Diags *d, Arena *a, CompileOptions *o, const char *fallback);

#endif
