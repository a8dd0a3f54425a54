/* template.c: a text with names in it, filled in.
 *
 *     @NAME@                  the value of NAME
 *     #@ each products        the lines up to its end, once for each scope of the list
 *     #@ if verify            the lines up to its end, if the value is not empty
 *     #@ end
 *     ## a remark             is left out
 *
 * A name that a scope does not have is looked up in the scope around it.  Templates are ours, so
 * a mistake in one is a BUG. */
#ifndef TVMCC_DRIVER_TEMPLATE_H
#define TVMCC_DRIVER_TEMPLATE_H

#include "base/base.h"

typedef struct TemplateScope TemplateScope;

typedef struct {
    const char *name;
    const char *text; /* NULL: a list */
    VEC(const TemplateScope *) list;
} ScopeValue;

struct TemplateScope {
    const TemplateScope *outer;
    VEC(ScopeValue) values;
};

TemplateScope *scope_new(Arena *a, const TemplateScope *outer);
void           scope_set(Arena *a, TemplateScope *s, const char *name, const char *text);
void           scope_add(Arena *a, TemplateScope *s, const char *list,
                         const TemplateScope *item); /* item NULL: no more */

/* `text` with the values of `s`, behind what `out` has. */
void template_expand(Bytes text, const TemplateScope *s, StrBuf *out);

#endif
