/* manifest: tvm-manifest/1, the file that says what a project's models are built for.
 *
 *   schema.def                   every key: the structs below, the reader, fmt, docs/manifest.md
 *   tree.c                       text to a tree, from libyaml's events: aliases, merge keys, limits
 *   read.c value.c               tree to structs: types, names, defaults, includes
 *   refs.c                       names that point at entries; builds: a model for a pair
 *   json.c                       the structs as JSON, for CMake
 *   fmt.c                        canonical order and style, comments kept
 *   lock.c                       manifest.lock: hashes of all that a build depends on
 *
 * Nothing here knows what a target or a model is; the driver checks that (driver/cmd_manifest.c).
 */
#ifndef TVMCC_MANIFEST_H
#define TVMCC_MANIFEST_H

#include "base/base.h"

/* ---- values: `given` is false and the rest zero where the manifest says nothing ---------------- */

typedef struct {
    bool        given;
    Loc         loc;
    const char *text; /* NULL if not given */
} ManText;

typedef struct {
    bool    given;
    Loc     loc;
    int64_t value;
} ManInt; /* numbers and sizes */

typedef struct {
    bool   given;
    Loc    loc;
    double value;
} ManReal;

typedef struct {
    bool given;
    Loc  loc;
    bool value;
} ManBool;

typedef struct {
    Loc         loc;
    const char *name;  /* NULL: a number */
    int64_t     value; /* of a number */
} ManExtent;

typedef struct {
    Loc         loc;
    const char *key, *text;
} ManKeyText;

typedef struct {
    bool     given;
    Loc      loc;
    ManText *at;
    uint32_t n;
} ManTexts;

typedef struct {
    bool     given;
    Loc      loc;
    ManInt  *at;
    uint32_t n;
} ManInts;

typedef struct {
    bool     given;
    Loc      loc;
    ManReal *at;
    uint32_t n;
} ManReals;

typedef struct {
    bool       given;
    Loc        loc;
    ManExtent *at;
    uint32_t   n;
} ManShape;

typedef struct {
    bool        given;
    Loc         loc;
    ManKeyText *at;
    uint32_t    n;
} ManTable;

/* ---- records, from schema.def: `ManModel { given, loc, key, source, format, ... }` ------------- */

/* `key` is the name of an entry of a map, NULL elsewhere; `loc` the place where it stands. */
#define RECORD(T, short, about) \
    typedef struct T T;         \
    typedef struct {            \
        bool     given;         \
        Loc      loc;           \
        T       *at;            \
        uint32_t n;             \
    } T##List;                  \
    struct T {                  \
        bool        given;      \
        Loc         loc;        \
        const char *key;
#define END(T) \
    }          \
    ;
#define FIELD(key, kind, arg, need, help) MAN_C_##kind(arg) key;
#define LATER(key, why)
#define MAN_C_TEXT(arg) ManText
#define MAN_C_CHOICE(arg) ManText
#define MAN_C_PATH(arg) ManText
#define MAN_C_REF(arg) ManText
#define MAN_C_BOOL(arg) ManBool
#define MAN_C_INT(arg) ManInt
#define MAN_C_SIZE(arg) ManInt
#define MAN_C_REAL(arg) ManReal
#define MAN_C_SHAPE(arg) ManShape
#define MAN_C_TEXTS(arg) ManTexts
#define MAN_C_CHOICES(arg) ManTexts
#define MAN_C_PATHS(arg) ManTexts
#define MAN_C_REFS(arg) ManTexts
#define MAN_C_INTS(arg) ManInts
#define MAN_C_REALS(arg) ManReals
#define MAN_C_TABLE(arg) ManTable
#define MAN_C_ONE(arg) arg
#define MAN_C_MANY(arg) arg##List
#define MAN_C_MAP(arg) arg##List
#include "manifest/schema.def"
#undef RECORD
#undef END
#undef FIELD
#undef LATER

/* ---- read.c, refs.c ------------------------------------------------------------------------------- */

/* The files that were read, the manifest first: what depends on the manifest depends on these. */
typedef VEC(const char *) ManFiles;

/* The manifest at `path` ("-" is stdin) with its includes, checked as far as it can be without the
 * files it names: NULL after errors, all of them recorded (E_MANIFEST..., status 5). */
const Manifest *manifest_read(Diags *d, Arena *a, const char *path, ManFiles *files);
/* The same from text; relative paths are those of `path`.  `files` NULL: includes are errors. */
const Manifest *manifest_parse(Diags *d, Arena *a, const char *path, Bytes text, ManFiles *files);

const ManHost   *manifest_host(const Manifest *m, const char *name); /* NULL: none */
const ManTarget *manifest_target(const Manifest *m, const char *name);
const ManPair   *manifest_pair(const Manifest *m, const char *name);
const ManModel  *manifest_model(const Manifest *m, const char *name);
const ManBundle *manifest_bundle(const Manifest *m, const char *name);

/* One product: a model for a pair, with the defaults filled in.  Fields that neither the model nor
 * `defaults` give stay not given, except those that the comments name. */
typedef struct {
    const ManModel  *model;
    const ManPair   *pair;
    const ManHost   *host;
    const ManTarget *target;
    VEC(const ManTarget *) fallbacks; /* behind it, in order */
    const char    *name;              /* "<model>.<pair>": no other build's */
    const char    *entry;             /* product.entry, or the model's name as a C identifier */
    ManInt         opt_level;
    ManBool        fast_math;
    ManTuning      tuning; /* logs: those for this pair */
    ManLimits      limits;
    ManOutput      product;
    ManBool        reproducible;
    ManDiagnostics diagnostics;
} ManBuild;

typedef VEC(ManBuild) ManBuilds;

/* All products in the order of the file, with ${model}, ${target} and ${version} replaced in all
 * texts of `model`, `tuning` and `product`.  ${target} is the name of the pair. */
ManBuilds manifest_builds(const Manifest *m, Arena *a);
/* Each file beside the model's own that a product is built from or compared with, in the order of
 * the manifest: whoever checks, locks or depends on them asks here. */
typedef void ManFileFn(void *user, const ManText *path);
void         manifest_build_files(const ManBuild *b, ManFileFn *fn, void *user);
/* The pairs of a bundle: its own, or those that all of its models have. */
ManTexts manifest_bundle_pairs(const Manifest *m, Arena *a, const ManBundle *b);
/* ---- target.c -------------------------------------------------------------------------------------- */

#define ANY_TRIPLE "any" /* of a host: no machine in particular, for targets that give text */
/* "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a53": host and target as one target string; of a
 * device, the host's follows behind a comma. */
const char *manifest_target_text(Arena *a, const ManHost *h, const ManTarget *t);
/* ".c": of products that are text for another compiler; NULL: they are machine code. */
const char *manifest_source_suffix(const ManTarget *t);

/* ---- json.c: for build systems that read no YAML --------------------------------------------------- */

/* The manifest and its builds, defaults filled in and paths as `manifest_read` made them:
 * {"manifest": {..}, "files": [..], "builds": [..]}.  What is not given is left out.
 * `more`: further members with a comma before each, or "". */
void manifest_json(const Manifest *m, const ManFiles *files, const char *more, StrBuf *out);

/* ---- fmt.c ------------------------------------------------------------------------------------------- */

/* The text in canonical form: keys in the order of schema.def, two blanks a level, comments kept
 * with what they stand before or behind.  False if it does not parse (errors recorded) . */
bool manifest_format(Diags *d, Arena *a, const char *path, Bytes text, StrBuf *out);

/* ---- schema.c ------------------------------------------------------------------------------------------- */

/* The reference of docs/manifest.md, from schema.def. */
void manifest_reference(StrBuf *out);

/* ---- lock.c: manifest.lock ---------------------------------------------------------------------------- */

typedef struct {
    const char *group; /* "inputs", "versions", "targets", "coverage" */
    const char *key, *value;
} LockRow;

/* Rows sorted by group and key; `manifest.lock` is JSON of an object for each group. */
typedef struct {
    VEC(LockRow) rows;
} Lock;

void lock_add(Arena *a, Lock *l, const char *group, const char *key, const char *value);
void lock_sort(Lock *l);               /* of equal keys one stays */
void lock_print(Lock *l, StrBuf *out); /* sorts */
bool lock_parse(Diags *d, Arena *a, const char *path, Bytes text, Lock *out);
/* Errors for all that differs (E_LOCK, each names what), in the order of the rows; both sorted. */
bool lock_compare(Diags *d, const char *path, const Lock *was, const Lock *now);

#endif
