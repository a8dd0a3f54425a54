/* ML programs: the operators of a function's block, and of the blocks in them. */
#include "frontends/coreml/coreml.h"

#include <string.h>

/* The function that is the model, or NULL with an error. */
const CmlFunction *cml_main_function(Ctx *c, Loc loc, const CmlModel *m)
{
    const CmlDescription *d = m->description;
    const char           *name = d && d->main && *d->main ? d->main : "main";

    for (uint32_t i = 0; i < m->program->functions.n; i++) {
        const CmlFunctionEntry *e = m->program->functions.at[i];

        if (e->key && e->value && !strcmp(e->key, name))
            return e->value;
    }
    return error_at(c, E_IMPORT, loc, "the program has no function '%s'", name);
}

/* The block for the operators' version that the function says. */
const CmlBlock *cml_function_block(Ctx *c, Loc loc, const CmlFunction *f)
{
    for (uint32_t i = 0; i < f->blocks.n; i++) {
        const CmlBlockEntry *e = f->blocks.at[i];

        if (e->key && e->value && f->opset && !strcmp(e->key, f->opset))
            return e->value;
    }
    return error_at(c, E_IMPORT, loc, "the function has no block for '%s'",
                    f->opset ? f->opset : "");
}

static const CmlLiteral *attribute(const CmlOperation *p, const char *name)
{
    for (uint32_t i = 0; i < p->attributes.n; i++) {
        const CmlAttribute *a = p->attributes.at[i];

        if (a->key && !strcmp(a->key, name))
            return a->value;
    }
    return NULL;
}

bool cml_is_operand(const CmlAttribute *a)
{
    return a->key && a->value && strcmp(a->key, "name") != 0;
}

const char *cml_operation_name(const CmlOperation *p)
{
    const char     *name = cml_literal_text(attribute(p, "name"));
    const CmlNamed *out = p->out.n ? p->out.at[0] : NULL;

    return out && out->name ? out->name : name ? name : "";
}

/* ---- constants ------------------------------------------------------------------------------------ */

static bool is_tensor(const CmlLiteral *v)
{
    return v && v->type && v->type->tensor && v->type->tensor->type != CML_STRING;
}

static bool literal_value(CmlImport *im, const CmlLiteral *v, const char *name, Loc loc,
                          CmlValue *out)
{
    *out = (CmlValue){.literal = v};
    return !is_tensor(v) || (out->e = cml_literal(im, v, name, loc)) != NULL;
}

static bool import_const(CmlScope *s, const CmlOperation *p, Loc loc)
{
    const CmlLiteral *v = attribute(p, "val");
    const CmlNamed   *out = p->out.n ? p->out.at[0] : NULL;
    CmlValue          value;

    if (!v || !out || !out->name)
        return error_at(s->im->c, E_IMPORT, loc, "const '%s' has no value", loc.name);
    if (!literal_value(s->im, v, out->name, loc, &value))
        return false;
    cml_put(s, out->name, value);
    return true;
}

/* ---- operators ------------------------------------------------------------------------------------ */

static bool read_input(CmlNode *n, const CmlInputEntry *e, CmlArg *a)
{
    uint32_t count = e->value ? e->value->list.n : 0;

    a->name = e->key ? e->key : "";
    a->at = NEW_ARRAY(n->b.c->arena, CmlValue, count + 1);
    for (; a->n < count; a->n++) {
        const CmlBinding *v = e->value->list.at[a->n];
        const CmlValue   *known = v->name ? cml_find(n->scope, v->name) : NULL;

        if (v->name && !known)
            return cml_error(n, E_IMPORT, "its input '%s' is not computed before it", v->name);
        if (known)
            a->at[a->n] = *known;
        else if (!v->value ||
                 !literal_value(n->im, v->value, cml_name(n, a->name), n->b.loc, &a->at[a->n]))
            return v->value ? false : cml_error(n, E_IMPORT, "its input '%s' is empty", a->name);
    }
    return true;
}

/* The first operators that unpack weights have their operands as attributes. */
static bool read_attributes(CmlNode *n)
{
    for (uint32_t i = 0; i < n->operation->attributes.n; i++) {
        const CmlAttribute *a = n->operation->attributes.at[i];
        CmlArg             *arg = &n->args[n->nargs];

        if (!cml_is_operand(a))
            continue;
        *arg = (CmlArg){.name = a->key, .n = 1, .at = NEW_ARRAY(n->b.c->arena, CmlValue, 1)};
        if (!literal_value(n->im, a->value, cml_name(n, a->key), n->b.loc, arg->at))
            return false;
        n->nargs++;
    }
    return true;
}

static bool import_operation(CmlScope *s, const CmlOperation *p, Loc loc)
{
    Ctx    *c = s->im->c;
    CmlNode n = {.im = s->im, .scope = s, .operation = p, .nout = p->out.n, .b = {c, loc, p->type}};

    n.row = cml_program_row(p->type);
    n.out = NEW_ARRAY(c->arena, CmlValue, n.nout + 1);
    n.args = NEW_ARRAY(c->arena, CmlArg, p->in.n + p->attributes.n + 1);
    for (; n.nargs < p->in.n; n.nargs++)
        if (!read_input(&n, p->in.at[n.nargs], &n.args[n.nargs]))
            return false;
    if (!read_attributes(&n) || !cml_convert(&n))
        return false;
    for (uint32_t i = 0; i < n.nout; i++) {
        const CmlNamed *out = p->out.at[i];

        if (!out->name)
            return cml_error(&n, E_IMPORT, "its output %u has no name", i);
        cml_put(s, out->name, n.out[i]);
    }
    return true;
}

bool cml_import_block(CmlScope *s, const CmlBlock *b)
{
    CmlImport *im = s->im;

    for (uint32_t i = 0; i < b->operations.n; i++) {
        const CmlOperation *p = b->operations.at[i];
        Loc                 loc;

        if (!s->depth)
            im->ordinal++;
        loc = (Loc){im->path, im->ordinal, 0, intern(im->c->strings, cml_operation_name(p))};
        if (!strcmp(p->type, "const") ? !import_const(s, p, loc) : !import_operation(s, p, loc))
            return false;
    }
    return true;
}
