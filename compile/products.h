/* What comes out of a compile: kinds (emit.def), contents, files. */
#ifndef TVMCC_COMPILE_PRODUCTS_H
#define TVMCC_COMPILE_PRODUCTS_H

#include "compile/compile.h"

typedef struct {
    Ctx             *c;
    Compiled        *k;
    const char      *stem;   /* path without suffix of what is written; NULL: nothing is */
    const LayoutRow *layout; /* of archives */
    FileOut         *early;  /* of `early_path`: the weights are in it before the rest is known */
    const char      *early_path;
    TextList         outputs;             /* all paths written, for the depfile */
    Bytes            code;                /* the object without weights, made when it is wanted */
    BytesList        object;              /* with them */
    BytesList        made[PRODUCT_COUNT]; /* contents that were asked for */
} Products;

/* All steps that the products of the set need: of the graph's text alone, import and named passes.
 * `o` is k->o, which becomes that of the largest alternative then. */
bool compile_model(Ctx *c, Compiled *k, CompileOptions *o, uint32_t set);
/* Can they be made of a model with these options?  Errors are recorded. */
bool products_fit(Diags *d, const CompileOptions *o, uint32_t set);
/* The object, which libraries and archives are made of. */
bool product_object(Products *p);
/* In memory, without what would lie beside it. */
bool product_content(Products *p, Product kind, BytesList *out);
/* To a file, with what lies beside it. */
bool product_write(Products *p, Product kind, const char *path);
/* Any bytes as one of the outputs. */
bool product_put(Products *p, const char *path, BytesList content);

bool product_needs_object(Product kind);
/* Can other files lie beside it?  Not beside standard output, nor a device or a pipe. */
bool product_has_place(const char *path);
/* For what belongs to a shared library, where the runtime looks for it; without suffix. */
const char *product_beside(Products *p, const char *library);
/* `object` is of the machine whose code calls the kernels. */
LinkJob product_link_job(Products *p, const char *path, const char *soname,
                         const char *const *object);

#endif
