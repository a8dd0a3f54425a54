/* Any bytes as a model of one format: imported, and what comes is verified and printed.
 *
 * What the user may say of inputs and dimensions is drawn for the names that the model has, by a
 * hash of its bytes: the same file is always the same case. */
#ifndef TVMCC_TESTS_FUZZ_MODEL_H
#define TVMCC_TESTS_FUZZ_MODEL_H

#include "frontends/frontends.h"

enum { FUZZ_MOST = 8 };

typedef struct {
    uint64_t      seed;
    ImportShape   shapes[FUZZ_MOST];
    ImportDim     dims[FUZZ_MOST];
    ImportValue   values[FUZZ_MOST];
    ImportOptions options;
} FuzzOptions;

uint32_t fuzz_draw(FuzzOptions *o, uint32_t n); /* a number below n */
/* Bounds for a dimension; a shape or a value for an input of that rank: or nothing. */
void fuzz_dim(FuzzOptions *o, const char *name);
void fuzz_input(Ctx *c, FuzzOptions *o, const char *name, uint32_t rank);

/* What stands before the first `mark` of n bytes, and what stands behind it: a model in two files.
 */
Bytes fuzz_split(Bytes data, const char *mark, size_t n, Bytes *behind);

/* A row of the table of formats, which would ask for all of them. */
#define FUZZ_FORMAT(id) \
    (&(const Frontend){.bid = id##_bid, .import = id##_import, .describe = id##_describe})

/* `draw` is called for half of the files. */
int fuzz_model(const Frontend *f, const char *path, Bytes file,
               void (*draw)(Ctx *c, Bytes file, FuzzOptions *o));

#endif
