/* Inside passes/product: edits of main before the graph passes.
 *
 *   product.c  the results of main as a list; selection and states; the order of the edits
 *   image.c    inputs that take pictures
 *   outputs.c  softmax, argmax and top-k behind results */
#ifndef TVMCC_PASSES_PRODUCT_H
#define TVMCC_PASSES_PRODUCT_H

#include "ops/ops.h"
#include "passes/passes.h"

typedef struct {
    const char *name;
    const Expr *value;
} Result;

/* Main taken apart: parameters, lets around the body, results in order. */
typedef struct {
    Ctx          *c;
    const Module *m;
    Loc           loc;
    uint32_t      nparams;
    const Expr  **params; /* what replaces each, the same unless an edit changed it */
    const char  **layouts;
    VEC(const Expr *) lets; /* outermost first */
    VEC(Result) results;
} Product;

bool product_image(Product *p, const ProductImage *image);
/* Behind the result `base`, NULL: the first. */
bool          product_add(Product *p, const ProductAdd *add, const char *base);
const char   *product_added_name(Ctx *c, ProductAddKind kind, const char *base);
const Result *product_result(const Product *p, const char *name); /* NULL: none of this name */
/* "the model has no <what> <name>", with the closest of those there are. */
bool         product_unknown(Product *p, const char *what, const char *name, uint32_t n,
                             const char *const *all);
const char **product_result_names(const Product *p);

#endif
