/* A compile as the command line asks for it. */
#ifndef TVMCC_DRIVER_JOB_H
#define TVMCC_DRIVER_JOB_H

#include "compile/compile.h"
#include "driver/driver.h"
#include "ops/ops.h"

/* --shard=: the part of an object that is wanted. */
typedef enum { PIECE_ALL, PIECE_KERNELS, PIECE_HOST, PIECE_WEIGHTS } Piece;

typedef struct {
    Ctx           *c;
    CompileOptions options;
    Compiled       k;
    /* of a plan */
    Piece       piece;
    Shard       shard;        /* PIECE_KERNELS */
    const char *id, *weights; /* files beside the plan; NULL: not given */
} Job;

/* From the command line; `target` is what counts when it names none. */
bool job_start(Driver *driver, Job *job, const char *target);
/* job->options from the command line, but for the target. */
void job_options(Driver *driver, Job *job);
/* The same for S.plan [S.id] [S.weights]: what is to be made of them ... */
bool job_start_plan(Driver *driver, Job *job);
/* ... and their contents, as far as products of the set need them. */
bool job_read_plan(Job *job, uint32_t set);
/* Objects to a library or to one object. */
int link_objects(Driver *driver);
/* -###: the command of the linker, on standard error. */
bool show_link(Driver *driver, const LinkJob *job);
/* The target string of the command line, `fallback` if it says nothing about the target. */
const char *job_target(Driver *driver, const char *fallback);
/* The value of a word such as `-mtriple=` in a target string; NULL: it is not there. */
const char *job_target_word(Arena *a, const char *target, const char *word);
/* A library or an archive, rather than a model file. */
bool job_is_product(Arena *a, const char *path);
/* Prefix of the functions of a product: --entry, or of a shared library with one model that
 * model's; NULL: the runtime goes by the file's name. */
const char *job_product_entry(Driver *driver, const char *path);
/* Whether a product is there at all; else E_IO. */
bool job_readable(Driver *driver, const char *path);
/* --explain, on standard error: which algorithm each call got, and the times of the others; which
 * rule each kernel got, and why others did not fit. */
void job_explain(const Job *job);
/* Bytes of machine code of a shared library or archive; 0: not found. */
size_t job_product_code_bytes(Driver *driver, const char *path);
/* Bytes of machine code, by compiling once more to an object. */
size_t job_code_bytes(Job *job);
double job_seconds(const Job *job); /* of all steps so far */
/* `"inputs": [..], "outputs": [..]` of an imported model. */
void job_signature_json(Job *job, StrBuf *s);
/* --check-args: what a build system wants to know of a model before it writes its rules. */
int check_args(Driver *driver, Job *job);
/* Into how many pieces code generation of an imported model is best cut; 0: not at all. */
uint32_t shards_for(Ctx *c, const Compiled *k);

#endif
