/* packaging: what gets deployed.
 *
 *   desc.c      a ModelDesc from a plan
 *   header.c    the generated C header and the metadata, from a ModelDesc
 *   audit.c     does an object keep the promises of docs/archive.md?
 *   product.c   the same promises of libraries, shared libraries, archives and folders
 *   archive.c   .tar .tar.gz .tar.zst .tar.xz .zip through libarchive, both ways
 *   folder.c    archives as folders on disk
 *   bundle.c    the layout of a deployment archive; bundle_text.c: its text files
 *   gather.c    which files belong to which model of a bundle
 *   layout.c    the layouts of TVM: Model Library Format, tvmc's package
 *   metadata.c  the metadata of a product, read again
 *   model_info.c  what object code says of its models, without running it
 *   diff.c      where two products differ first
 *   release.c   what a release says about itself; changes.c, changes_text.c: and two of them
 *   refit.c     other weights in finished products
 *   source.c    what a model as C says of itself
 *   so.c        shared libraries, through the toolchain's linker
 *   tool.c      compilers, linkers and emulators: where they are, and running them
 *   depfile.c   what a build system must watch
 *
 * Makers return bytes in the caller's arena and are pure: same input, same bytes, on every machine.
 * The driver writes them with file_write, which keeps files whose bytes did not change.
 */
#ifndef TVMCC_PACKAGING_H
#define TVMCC_PACKAGING_H

#include "base/base.h"
#include "ir/plan/plan.h"
#include "objects/objects.h"

#include <tvmcc/abi.h>

/* ---- header.c: what callers compile against ----------------------------------------------- */

typedef struct {
    const char    *name;       /* as in the model */
    const char    *c_name;     /* set by desc_finish */
    uint8_t        code, bits; /* DLPack */
    uint16_t       lanes;      /* 1 */
    uint32_t       ndim;
    const int64_t *dims;  /* -1: known at run time */
    const int64_t *most;  /* ... then at most, or -1; NULL where that is not known */
    const char    *shape; /* `[N, 16], N in 1..64` of a tvmcc_value; NULL: dims say it */
    uint64_t       bytes; /* at most; 0: there is no bound */
    uint32_t       align;
    bool           quantized;
    double         scale;
    int32_t        zero_point;
    const char    *layout; /* NULL: unknown */
    uint32_t       state;  /* outputs: 1 + the input that may lie in the same memory; else 0 */
} TensorDesc;

/* An operator of the graph as it was imported, and how often it is there. */
typedef struct {
    const char *name;
    uint32_t    count;
} OpCount;

/* A step of the host program.  Multiply-adds and bytes of operands and results are of one call. */
typedef enum { WORK_OTHER, WORK_PRODUCTS, WORK_WINOGRAD, WORK_KINDS } WorkKind;
extern const char *const work_kind_names[WORK_KINDS];
enum { WORK_LONG_REDUCTION = 96 }; /* WORK_PRODUCTS add up so many, and use weights again */
typedef struct {
    const char *kernel;
    bool        known; /* what it does */
    uint32_t    calls; /* of a run; 0: a later phase of the step before */
    uint64_t    macs, bytes;
    WorkKind    kind;
} StepDesc;

/* One of the plans of a product with CPU variants or shape buckets. */
typedef struct {
    const char    *target;
    const int64_t *sizes; /* of the bucket's dimensions */
    TensorDesc    *in, *out;
    uint64_t       arena_shared, arena_private, weights_bytes; /* weights that it uses */
} AltDesc;

typedef struct {
    const char *entry; /* prefix of the functions: a C identifier; desc_finish sanitises it */
    const char *upper; /* set by desc_finish: prefix of the macros */
    const char *model; /* file name of the model, without its folder */
    uint32_t    nin, nout;
    TensorDesc *in, *out;
    uint64_t    arena_shared, arena_private; /* arena = shared + threads * private */
    /* Of an open plan these are 0: forms over the dimensions that <entry>_arena_bytes takes. */
    const char        *shared_form, *private_form; /* NULL: numbers */
    uint32_t           nopen_dims;
    const char *const *open_dims;
    uint32_t           arena_align;
    uint64_t    state_bytes; /* 0: runs without a device; else the arena lies in its memory */
    uint64_t    weights_bytes;
    Sha256      weights_sha;
    WeightsMode weights_mode;
    const char *weights_section; /* of WEIGHTS_SECTION; else NULL */
    Sha256      model_sha, build_id;
    const char *header;    /* what header_hash gives */
    const char *triple;    /* of the object */
    const char *targets;   /* target strings, joined by "; " */
    const char *toolchain; /* "tvmcc 0.1.0, LLVM 19.1.7" */
    const char *machine;   /* SHA-256, in hex, of the figures of --machine; NULL: none */
    int64_t     macs;
    uint32_t    pointer_bits; /* 32 or 64; 0: source text, for any */
    bool        big_endian;
    uint64_t    arena_floor;      /* for the metadata; 0: unknown */
    uint32_t    nalts, nvariants; /* buckets of the first variant first; 0: there is one plan */
    AltDesc    *alts;             /* the description is of the largest bucket; its arena of all */
    uint32_t    nbucket_dims;     /* 0: no buckets */
    const char *const *bucket_dims;
    bool               cpu_tested;
    uint32_t           kernels, kernels_tuned; /* different ones; those with steps from a log */
    uint32_t           nlabels;                /* of the classes, for people */
    const char *const *labels;
    Sha256   plan_sha; /* of all that code depends on, and the names of its kernels, which */
    uint32_t level, nkernel_names; /* hold hashes: for refit.c; -O level */
    const char *const *kernel_names;
    uint32_t           nops; /* in the order of the table; 0: not known */
    const OpCount     *ops;
    uint32_t           nsteps; /* of the host program; 0: of several, or not known */
    const StepDesc    *steps;
    uint32_t           abi; /* set by metadata_read; 0: that of this compiler */
} ModelDesc;

/* What a plan knows, finished; hashes, weights mode and toolchain are the caller's to add.  NULL
 * with an error recorded. */
struct Ctx;
struct Plan;
ModelDesc *desc_of_plan(struct Ctx *c, const struct Plan *p);
/* steps.c */
const StepDesc *desc_steps(struct Ctx *c, const struct Plan *p, uint32_t *n);
/* Fills entry, upper and c_name.  Error: two tensors of one side get the same name. */
bool  desc_finish(Diags *d, Arena *a, ModelDesc *m);
Bytes header_text(Arena *a, const ModelDesc *m);
/* Of what the header declares, without the weights' values: ends the names it gives functions. */
const char *header_hash(Arena *a, const ModelDesc *m);
Bytes       metadata_text(Arena *a, const ModelDesc *m); /* JSON, sorted keys */
Bytes       labels_text(Arena *a, const ModelDesc *m);   /* a line each; empty without labels */

/* ---- audit.c: promises of an object ----------------------------------------------------------- */

typedef struct {
    uint32_t           n;
    const char *const *at; /* sorted, each once */
} AuditNames;

typedef struct {
    const char *entry;   /* only <entry>_* may be exported; NULL: see entries */
    AuditNames  entries; /* of several models; none and no entry: product.c finds out */
    bool        no_libm; /* calls of libm count as breach */
    bool        no_pic;  /* relocations may be those of a fixed address */
    uint64_t    max_code, max_weights; /* bytes; 0: no limit.  Status 6 when exceeded */
    uint64_t    max_arena, max_stack;  /* these of the metadata */
    bool extern_weights; /* libraries have no weights: <entry>_weights comes from the caller */
    AuditNames supplied; /* ... these symbols do */
} AuditRules;

typedef struct {
    uint64_t   code, rodata, writable, tls, constructors; /* bytes */
    uint64_t   textrels; /* addresses that the dynamic linker would have to write */
    AuditNames undefined, exported, hidden; /* hidden: defined, for the same library */
} AuditReport;

/* One error per breach.  The report is filled in either way. */
bool audit_object(Diags *d, Arena *a, const char *file, Bytes object, const AuditRules *rules,
                  AuditReport *out);
/* "<entry>_..." or "<entry>" itself, of any of the entries. */
bool audit_is_ours(const char *name, const AuditRules *rules);
/* memcpy and its kin, libm, and what compilers call behind every program's back. */
bool audit_may_call(const char *name, const AuditRules *rules);
bool symbol_is_libm(const char *name);

/* ---- product.c: promises of all that can be delivered ------------------------------------------ */

typedef struct AuditFile AuditFile;
struct AuditFile {
    const char *path, *kind; /* "object", "static library", "shared library", "archive", ... */
    AuditReport report;      /* of all parts together */
    AuditNames  entries;     /* models that were found */
    uint32_t    nparts, breaches;
    AuditFile  *parts;
};

/* An object, a static or shared library, metadata or an archive, by its bytes.  Without entries in
 * the rules those that the file defines are taken. */
bool audit_file(Diags *d, Arena *a, const char *file, Bytes content, const AuditRules *rules,
                AuditFile *out);
/* An archive that was unpacked. */
bool audit_folder(Diags *d, Arena *a, const char *file, const Member *members, uint32_t n,
                  const AuditRules *rules, AuditFile *out);
void audit_json(const AuditFile *f, StrBuf *out);

/* ---- archive.c ---------------------------------------------------------------------------- */

typedef enum { PACK_TAR, PACK_TGZ, PACK_TZST, PACK_TXZ, PACK_ZIP, PACK_NONE } PackFormat;

PackFormat  pack_format(const char *path); /* by suffix; PACK_NONE if it is none of these */
bool        pack_looks(Bytes file);        /* by its first bytes, is it one of these? */
bool        pack_means(const char *path, Bytes file); /* ... or by its suffix, if it is broken */
const char *pack_stem(Arena *a, const char *path);    /* file name without folder and suffix */
/* Members in any order; folders are added.  `epoch` is the time of all (SOURCE_DATE_EPOCH or 0).
 * Pieces may be those of the members' content, which has to stay. */
bool pack_archive(Diags *d, Arena *a, PackFormat format, int64_t epoch, const Member *members,
                  uint32_t n, BytesList *out);
#define PACK_LIMIT ((uint64_t)64 << 30) /* bytes of content, where nobody said */
/* All regular files of an archive in any of the formats; at most `limit` bytes of content.  Errors:
 * paths that leave the archive, links, devices, names that are there twice or differ only in case,
 * and, where the limit is PACK_LIMIT, more than formats/unpack.c allows for so small a file.  What
 * is not compressed lies in `archive`, which has to stay. */
bool pack_read(Diags *d, Arena *a, const char *file, Bytes archive, uint64_t limit,
               Member **members, uint32_t *n);
/* False, with an error: a manifest.json in it is of another version (docs/compatibility.md). */
enum { ARCHIVE_VERSION = 1 };
bool pack_is_known(Diags *d, Arena *a, const char *file, const Member *members, uint32_t n);
const Member *pack_find(const Member *members, uint32_t n, const char *path); /* or NULL */

/* ---- folder.c: archives as folders on disk ---------------------------------------------------- */

/* All regular files below `root`, mapped, in byte order of their paths; anything that is neither
 * file nor folder is an error. */
bool folder_read(Diags *d, Arena *a, const char *root, Member **members, uint32_t *n);
/* A folder of these members appears at `path`, whole or not at all; paths are those pack_read let
 * pass.  What is there is an error, or replaced with `force`. */
bool folder_write(Diags *d, Arena *a, const char *path, const Member *members, uint32_t n,
                  bool force);

/* ---- bundle.c, bundle_text.c: layout BUNDLE ----------------------------------------------------- */

/* One product: a model for a triple. */
typedef struct {
    const ModelDesc *desc;
    Bytes            library, shared; /* lib<m>.a, lib<m>.so; may be empty */
    Bytes            source;          /* <m>.c, in their place */
    Bytes            header, metadata;
    Bytes            weights; /* a weights file; empty when embedded */
    Bytes            relay;   /* text of the model; may be empty */
    Bytes            labels;  /* names of the classes, a line each; may be empty */
} BundlePart;

/* What goes in, as in `contents:` of a manifest. */
typedef enum {
    CONTENT_LIB,
    CONTENT_HEADER,
    CONTENT_WEIGHTS,
    CONTENT_METADATA,
    CONTENT_TUNING,
    CONTENT_REPORTS,
    CONTENT_CMAKE,
    CONTENT_PKGCONFIG,
    CONTENT_SBOM,
    CONTENT_LICENSES,
    CONTENT_COUNT
} Content;
extern const char *const content_names[CONTENT_COUNT];

typedef struct {
    const char       *top;      /* top folder; NULL: the name */
    const char       *name;     /* of the package; NULL: the entry of the first part */
    const char       *version;  /* of the bundle; NULL: "0" */
    const char       *license;  /* an SPDX expression about the models; NULL: not known */
    int64_t           epoch;    /* time in the bill of materials */
    uint32_t          contents; /* set of 1 << CONTENT_x; 0: all */
    uint32_t          nparts;
    const BundlePart *parts; /* at most one for each entry and triple */
    uint32_t          nextra;
    const Member     *extra; /* device/..., tuning/..., licenses/...: paths below the top folder */
} Bundle;

/* The texts of a bundle, from what it holds; `several` triples have folders of their own. */
Bytes bundle_cmake(Arena *a, const Bundle *b);
Bytes bundle_cmake_version(Arena *a, const Bundle *b);
Bytes bundle_pkg_config(Arena *a, const Bundle *b, const BundlePart *p); /* NULL: of all models */
Bytes bundle_sbom(Arena *a, const Bundle *b);
Bytes bundle_memory_report(Arena *a, const Bundle *b);
Bytes bundle_size_report(Arena *a, const Bundle *b);
Bytes bundle_coverage_report(Arena *a, const Bundle *b);
Bytes bundle_manifest(Arena *a, const Bundle *b, const Member *members, uint32_t n);
bool  bundle_wants(const Bundle *b, Content c); /* is it in the contents? */
bool  bundle_several_triples(const Bundle *b);

/* An element type of abi.h that is neither integer nor IEEE's float: "float8_e5m2". */
const char *small_float_name(uint8_t code);
/* The text of tvmcc/abi.h this compiler was built with. */
Bytes abi_header(void);
Bytes license_text(void); /* of this compiler, for what it puts into archives */
/* docs/archive.md: libraries, headers, weights, metadata, CMake and pkg-config files,
 * manifest.json and SHA256SUMS. */
bool bundle_members(Diags *d, Arena *a, const Bundle *b, Member **members, uint32_t *n);
/* Re-hash what SHA256SUMS lists; nothing may be missing or extra. */
bool bundle_verify(Diags *d, Arena *a, const char *file, const Member *members, uint32_t n);
/* The same where there is a SHA256SUMS; true without one.  People put files of their own into a
 * folder that they unpacked. */
bool bundle_intact(Diags *d, Arena *a, const char *file, const Member *members, uint32_t n,
                   bool folder);
/* Members of a folder or an archive (`content`; empty: the folder `path`), and true, where they are
 * intact.  Errors name what is not. */
bool bundle_read(Diags *d, Arena *a, const char *path, Bytes content, Member **members,
                 uint32_t *n);
/* Whether there is a SHA256SUMS, at the top or in a top folder: without one nothing is compared. */
bool bundle_has_sums(const Member *members, uint32_t n);
/* Header and data of abi.h's weights file. */
BytesList weights_pieces(Arena *a, Bytes data, Sha256 sha);
Bytes     weights_file(Arena *a, Bytes data, Sha256 sha); /* the same in one */

/* ---- gather.c: a bundle from the files that build steps wrote ------------------------------------- */

/* Fills parts and extra; the order of the files means nothing.  Errors name the file that belongs
 * to no model, or the one that is missing. */
bool bundle_gather(Diags *d, Arena *a, const Member *files, uint32_t n, Bundle *b);

/* ---- diff.c: where two products differ first ------------------------------------------------------- */

/* False: one line about the first difference is in `out`. */
bool diff_bytes(Arena *a, Bytes x, Bytes y, StrBuf *out);
/* Of folders, or of a folder and an archive, whose top folder does not count. */
bool diff_members(Arena *a, const Member *x, uint32_t nx, const Member *y, uint32_t ny,
                  StrBuf *out);
/* An archive as a folder has it: without its top folder, in the order of paths, modes 0755 and
 * 0644, no times or owners. */
Member *members_plain(Arena *a, const Member *m, uint32_t n);

/* ---- release.c, changes.c, changes_text.c: two releases in the terms of their users ------------------ */

/* A model for a machine.  Sizes are bytes; 0: not known. */
typedef struct {
    const ModelDesc *desc;
    uint64_t         code, constants, library;
    const char      *graph; /* text of its model.relay; NULL */
} ReleasePart;

typedef struct { /* of the bill of materials */
    const char *name, *version, *license, *sha;
} ReleasePackage;

typedef struct {
    const char     *path, *name, *version, *license; /* NULL: not said */
    uint64_t        bytes, content;                  /* of the archive, 0: none; of all members */
    uint32_t        nparts, npackages, n;
    ReleasePart    *parts; /* by entry and triple; none: this is no release */
    ReleasePackage *packages;
    const Member   *members; /* plain */
} Release;

/* Of an archive's members, a folder's, or metadata alone; nothing is loaded or run. */
void release_read(Arena *a, const char *path, uint64_t bytes, const Member *m, uint32_t n,
                  Release *out);

typedef VEC(const char *) TextVec;

typedef struct {
    const char *name;
    uint64_t    was, now;
} Quantity;

typedef VEC(Quantity) Quantities;

typedef enum { YES, NO, UNKNOWN } Known; /* did it change? */

/* What a program that uses the old one needs: nothing, to be compiled again, to be changed. */
typedef enum { ABI_SAME, ABI_COMPILE, ABI_BROKEN } AbiChange;

/* By how much work there is, not by measuring.  SAME: the same kernels; NEAR: as many multiply-adds
 * within 5 per cent. */
typedef enum { LATENCY_SAME, LATENCY_NEAR, LATENCY_LOWER, LATENCY_HIGHER, LATENCY_UNKNOWN } Latency;

extern const char *const abi_change_names[], *const latency_names[], *const known_names[];

typedef struct {
    const ReleasePart *was, *now; /* NULL: new, gone */
    bool               changed;
    Known              structure, weights;
    AbiChange          abi;
    TextVec            reasons;   /* why it is not ABI_SAME */
    Quantities         operators; /* those whose number changed */
    Quantities         sizes;
    uint32_t           kernels_same;
    TextVec            kernels_new, kernels_gone;
    Latency            latency;
} ModelChange;

typedef struct {
    const Release *was, *now;
    bool           same; /* all members are equal */
    uint32_t       nmodels;
    ModelChange   *models;
    TextVec        packages; /* "+ name 1.0, MIT" and "- .." */
    TextVec        files; /* "+ path", "- path", "~ path": those that tell nothing of the models */
    const char    *first; /* of diff_members */
} Changes;

void changes_find(Arena *a, const Release *was, const Release *now, Changes *out);
void changes_text(const Changes *c, StrBuf *out);
void changes_json(const Changes *c, StrBuf *out);

/* ---- layout.c: the two historic layouts of TVM --------------------------------------------------- */

/* Model Library Format, metadata version 7; has no top folder. */
bool mlf_members(Diags *d, Arena *a, const Bundle *b, Member **members, uint32_t *n);
/* mod.so, mod.json and mod.params of one model. */
bool tvmc_members(Diags *d, Arena *a, const Bundle *b, Member **members, uint32_t *n);

/* All layouts by name: bundle.c's and these. */
typedef struct {
    const char *name;
    bool (*members)(Diags *d, Arena *a, const Bundle *b, Member **members, uint32_t *n);
} LayoutRow;

enum { LAYOUTS = 3 };
extern const LayoutRow layout_table[LAYOUTS];
/* NULL, with E_USAGE about `option`: there is no such layout. */
const LayoutRow *layout_find(Diags *d, const char *option, const char *name);

/* ---- metadata.c: what was written is read again ---------------------------------------------------- */

/* A ModelDesc from metadata_text: names, sizes and hashes, without what only C needs. */
bool metadata_read(Diags *d, Arena *a, const char *file, Bytes text, ModelDesc *out);

/* ---- model_info.c: NAME_info() without running it --------------------------------------------------- */

typedef struct {
    tvmcc_model_info info; /* of this machine's layout, without functions, data and pools */
    uint64_t         address;
    uint64_t        *buckets; /* their addresses */
} ModelInfo;

typedef VEC(const tvmcc_model_info *) ModelInfos;

/* Adds the models of an ELF object or library of any machine, or of a static library.  Error: there
 * is none, or the file is broken. */
bool model_infos(Diags *d, Arena *a, const char *file, Bytes content, ModelInfos *out);

/* ---- source.c: a model as C ------------------------------------------------------------------------ */

typedef struct {
    const char *entry;
    const char *target;  /* `c -mtriple=..` */
    const char *options; /* that a compiler with GNU's options needs, or "" */
    Sha256      build_id;
} SourceInfo;

/* False: this is no text that `--target=c` wrote. */
bool source_read(Arena *a, Bytes text, SourceInfo *out);

/* ---- tool.c --------------------------------------------------------------------------------- */

typedef VEC(const char *) ToolArgs;

const char *tool_find_any(Arena *a, const char *const *names, uint32_t n);
/* The words of a command, split at spaces. */
void tool_words(Arena *a, ToolArgs *args, const char *command);
/* Runs it and waits.  False with E_NO_TOOL if it cannot be started; `status` 128+n for signals. */
bool tool_run(Diags *d, Arena *a, const ToolArgs *args, bool verbose, int *status);
/* "armv7a-unknown-linux-gnueabihf" -> "arm-linux-gnueabihf", as Debian calls its cross packages. */
const char *tool_triple(Arena *a, const char *triple);
/* The compiler of the Android NDK that ANDROID_NDK, .._ROOT or .._HOME names; NULL. */
const char *tool_ndk_clang(Arena *a, const char *triple);

/* ---- refit.c: other weights in finished products --------------------------------------------------- */

typedef struct {
    const ModelDesc *was, *now; /* the same plan, other values */
    Bytes            weights;   /* the new data */
} Refit;

/* False: the code would be another; an error names the first kernel that differs. */
bool refit_possible(Diags *d, const char *file, const ModelDesc *was, const ModelDesc *now);
/* A product with other weights and hashes, as a build of the new model would have made it: object,
 * static or shared library, header, metadata or weights file. */
bool refit_file(Diags *d, Arena *a, const char *file, Bytes product, const Refit *r, Bytes *out);

/* ---- so.c --------------------------------------------------------------------------------- */

typedef struct {
    const char        *output;
    const char        *soname; /* NULL: the output's file name */
    const char        *triple;
    bool               native; /* the triple is this machine's */
    const char        *cc;     /* with options, if it needs some; NULL: search */
    uint32_t           nobjects;
    const char *const *objects;
    bool               verbose; /* print the command on stderr */
} LinkJob;

/* Whether systems of that triple have shared libraries that can be linked here. */
bool shared_possible(const char *triple);
/* Links a shared library; it is written only if its bytes change.  Errors: E_NO_TOOL, E_PACK. */
bool link_shared(Diags *d, Arena *a, const LinkJob *job);
/* The command that it would run, with nothing written; what stands in for libraries is left out. */
bool link_command(Diags *d, Arena *a, const LinkJob *job, ToolArgs *out);

/* ---- depfile.c ---------------------------------------------------------------------------- */

typedef struct {
    uint32_t           noutputs, ninputs;
    const char *const *outputs, *const *inputs;
    bool phony; /* -MP: a rule without commands for every input */
} Deps;

Bytes depfile_text(Arena *a, const Deps *deps);

#endif
