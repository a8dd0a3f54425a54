/* dyn.*: operators whose sizes are operands.  Where these are constants, or follow from the shapes
 * of other tensors, they are the attributes of the operator without dyn. */
#include "frontends/tvm/tvm.h"

#include <string.h>

/* The attributes that operands become, in their order; "-" stays an operand. */
static const struct {
    const char *name, *operands;
} forms[] = {
#define TV_DYNAMIC(name, operands) {name, operands},
#include "frontends/tvm/dynamic.def"
#undef TV_DYNAMIC
};

static const char *operands_of(const TvNode *n)
{
    for (uint32_t i = 0; i < COUNT(forms); i++)
        if (!strcmp(forms[i].name, n->row->name))
            return forms[i].operands;
    BUG("dynamic.def has no %s", n->row->name);
}

const Expr *tv_dynamic(TvNode *n)
{
    Ctx        *c = n->b.c;
    TvNode      fixed = *n;
    const char *at = operands_of(n);
    const Expr *in[4];

    fixed.row = tv_row(n->row->name + strlen("dyn."));
    fixed.in = in;
    fixed.nin = 0;
    fixed.attrs = NEW_ARRAY(c->arena, TvAttr, n->nattrs + n->nin);
    for (uint32_t i = 0; i < n->nattrs; i++)
        fixed.attrs[i] = n->attrs[i];
    for (uint32_t i = 0; i < n->nin; i++) {
        size_t  length = strcspn(at, " ");
        TvAttr *a = &fixed.attrs[fixed.nattrs];

        if (*at == '-') {
            in[fixed.nin++] = n->in[i];
        } else {
            a->name = intern_n(c->strings, at, length);
            if (!tv_constant(n, i, &a->value)) {
                diag_hint(c->diags, "relay.transform.DynamicToStatic() makes it an attribute where "
                                    "it follows from shapes");
                return NULL;
            }
            fixed.nattrs++;
        }
        at += length + (at[length] != 0);
    }
    return tv_convert(&fixed);
}
