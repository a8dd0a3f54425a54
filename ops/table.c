/* The operator table and the attribute records, from ops.def and attrs.def.
 *
 * `none` in a column is NULL.  Functions are declared here, from the rows themselves, so that an
 * operator is added in one place. */
#include "ops/ops.h"

/* ---- attribute records --------------------------------------------------------------------- */

#define RECORD(name) static const AttrField fields_##name[] = {
#define FIELD(record, name, type, fallback) {#name, ATTR_##type, offsetof(record, name), fallback},
#define END(name) \
    }             \
    ;
#include "ops/attrs.def"
#undef RECORD
#undef FIELD
#undef END

#define RECORD(name) \
    const AttrRecord attrs_##name = {#name, sizeof(name), COUNT(fields_##name), fields_##name};
#define FIELD(record, name, type, fallback)
#define END(name)
#include "ops/attrs.def"
#undef RECORD
#undef FIELD
#undef END

/* &attrs_none is NULL: C11 6.5.3.2 takes & and * away together. */
#define attrs_none (*(const AttrRecord *)NULL)

/* ---- operators ------------------------------------------------------------------------------- */

/* DECLARE(RelFn, rel_same) declares it; DECLARE(RelFn, none) is empty, because PROBE_none brings a
 * second argument of its own. */
#define PROBE_none ~,
#define SECOND(a, b, ...) b
#define PICK(...) SECOND(__VA_ARGS__)
#define DECLARE(type, f) PICK(PROBE_##f, type f;, ~)

#define OP(id, text, min, max, attrs, rel, fusion, compute, expand, block, macs) \
    DECLARE(RelFn, rel)                                                          \
    DECLARE(ComputeFn, compute)                                                  \
    DECLARE(ExpandFn, expand) DECLARE(BlockFn, block) DECLARE(MacsFn, macs)
#include "ops/ops.def"
#undef OP

#define none NULL
#define OP(id, text, min, max, attrs, rel, fusion, compute, expand, block, macs) \
    {OP_##id, text, min, max, &attrs_##attrs, rel, FUSE_##fusion, compute, expand, block, macs},
static const Op rows[] = {
#include "ops/ops.def"
};
#undef OP
#undef none

const OpTable op_table = {COUNT(rows), rows};

const Expr *op_expand(Ctx *c, const Expr *e)
{
    const Op   *op = call_op(e);
    const Expr *to;

    if (e->kind == EXPR_PROJ && e->kids[0]->kind == EXPR_TUPLE)
        return e->kids[0]->kids[e->u.index];
    if (!op || !op->expand || !e->type)
        return e;
    to = op->expand(c, e);
    return to || diag_errors(c->diags) ? to : e;
}
