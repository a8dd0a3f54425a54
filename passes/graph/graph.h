/* What graph passes share (util.c): calls by name, attributes, questions about constants. */
#ifndef TVMCC_PASSES_GRAPH_H
#define TVMCC_PASSES_GRAPH_H

#include "ops/ops.h"
#include "passes/passes.h"

const Expr *make1(Ctx *c, const char *op, const Expr *x, const void *attrs, Loc loc);
const Expr *make2(Ctx *c, const char *op, const Expr *x, const Expr *y, const void *attrs, Loc loc);
const Expr *make_reshape(Ctx *c, const Expr *x, uint32_t n, const int64_t *dims, Loc loc);

/* Attributes of a call as its operator's struct; a fresh record with defaults; a copy to change. */
#define ATTRS_OF(T, e) ((const T *)(e)->u.attrs)
#define ATTRS_NEW(c, T) ((T *)attrs_new((c), &attrs_##T))
#define ATTRS_COPY(c, T, e) ((T *)arena_dup((c)->arena, (e)->u.attrs, sizeof(T)))

/* fold_constant, but calls of the operator `keep` stay as they are. */
const Module *fold_constant_but(Ctx *c, const Module *m, const char *keep);

/* The target is known, and a CPU with vectors. */
bool has_vectors(const Ctx *c);

/* How often each node is used in the functions of a module, by node. */
Map     *count_uses(Ctx *c, const Module *m);
uint32_t uses_of(const Map *uses, const Expr *e);

/* A constant, or calls of operators on such (not yet folded), nested at most a few deep. */
bool     is_constant(const Expr *e);
bool     same_dims(const Type *a, const Type *b);
bool     is_float(const Expr *e);
uint32_t axis_from_front(int64_t axis, uint32_t ndim);
/* reshape, squeeze, expand_dims: another type for the same bytes. */
bool is_view(const Expr *e);
/* A concatenation or slice that plan_views made a view: no kernel, its operands' memory. */
bool is_part_view(const Expr *e);

#endif
