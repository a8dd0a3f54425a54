/* What converters ask of a node: its attributes, and inputs that have to be constants. */
#include "frontends/onnx/onnx.h"

#include <stdlib.h>
#include <string.h>

void *node_error(const Node *n, DiagId id, const char *fmt, ...)
{
    StrBuf  s = strbuf(n->b.c->arena);
    va_list ap;

    str_printf(&s, "%s '%s': ", n->p->op_type, n->b.loc.name);
    va_start(ap, fmt);
    str_vprintf(&s, fmt, ap);
    va_end(ap);
    return diag_error(n->b.c->diags, id, n->b.loc, "%s", s.at);
}

static uint32_t find_attr(const PbMsgs *list, const char *name)
{
    for (uint32_t i = 0; i < list->n; i++) {
        const OnnxAttr *a = list->at[i];

        if (a->name && !strcmp(a->name, name))
            return i;
    }
    return UINT32_MAX;
}

/* In the body of a function an attribute may stand for one of the call, or else the function's
 * default; elsewhere import_nodes refuses it. */
static const OnnxAttr *resolved(const Node *n, const OnnxAttr *a)
{
    const OnnxScope *s = n->scope;
    const OnnxAttr  *given;
    uint32_t         i;

    if (!a->ref || !*a->ref)
        return a;
    given = s->function ? node_attr(s->function, a->ref) : NULL;
    if (given || !s->body)
        return given;
    i = find_attr(&s->body->attribute_proto, a->ref);
    return i < UINT32_MAX ? s->body->attribute_proto.at[i] : NULL;
}

const OnnxAttr *node_attr(const Node *n, const char *name)
{
    uint32_t i = find_attr(&n->p->attribute, name);

    if (i == UINT32_MAX)
        return NULL;
    n->read[i] = true;
    return resolved(n, n->p->attribute.at[i]);
}

void node_ignore(const Node *n, const char *name)
{
    (void)node_attr(n, name);
}

/* The same, of this kind; once an error is recorded the value does not matter.  Files of the first
 * version do not say what kind their attributes are. */
static const OnnxAttr *attr_of(const Node *n, const char *name, OnnxAttrType type, const char *what)
{
    const OnnxAttr *a = node_attr(n, name);

    if (!a || !a->type || a->type == (int64_t)type)
        return a;
    if (diag_errors(n->b.c->diags) == n->errors)
        node_error(n, E_IMPORT, "attribute '%s' should be %s", name, what);
    return NULL;
}

int64_t node_int(const Node *n, const char *name, int64_t fallback)
{
    const OnnxAttr *a = attr_of(n, name, ONNX_ATTR_INT, "an integer");

    return a ? a->i : fallback;
}

double node_float(const Node *n, const char *name, double fallback)
{
    const OnnxAttr *a = attr_of(n, name, ONNX_ATTR_FLOAT, "a float");

    return a ? (double)a->f : fallback;
}

const char *node_str(const Node *n, const char *name, const char *fallback)
{
    const OnnxAttr *a = attr_of(n, name, ONNX_ATTR_STRING, "a string");

    return a ? intern_n(n->b.c->strings, a->s.n ? (const char *)a->s.at : "", a->s.n) : fallback;
}

bool node_choice(Node *n, const char *name, const char *const *allowed, const char **out)
{
    const char *value = node_str(n, name, *allowed);
    StrBuf      all = strbuf(n->b.c->scratch);

    for (uint32_t i = 0; allowed[i]; i++) {
        if (!strcmp(value, allowed[i]))
            return (*out = allowed[i]) != NULL;
        str_printf(&all, "%s'%s'", i ? ", " : "", allowed[i]);
    }
    node_error(n, E_UNSUPPORTED, "%s is '%s'", name, value);
    diag_hint(n->b.c->diags, "it can be %s", all.at);
    return false;
}

bool node_ints(const Node *n, const char *name, Ints *out)
{
    const OnnxAttr *a = attr_of(n, name, ONNX_ATTR_INTS, "a list of integers");

    if (!a)
        return false;
    *out = (Ints){a->ints.n, a->ints.at};
    return true;
}

static void copy_floats(const PbPacked *from, double *v)
{
    for (size_t i = 0; i < from->data.n / sizeof(float); i++) {
        float f;

        memcpy(&f, from->data.at + i * sizeof f, sizeof f);
        v[i] = f;
    }
}

bool node_numbers(Node *n, const char *name, uint32_t *count, const double **out)
{
    Ctx            *c = n->b.c;
    const OnnxAttr *a = node_attr(n, name), *t;
    const Expr     *k = NULL;
    double         *v;

    if ((!a || !(a->t || a->floats.data.n)) &&
        (t = node_attr(n, arena_printf(c->scratch, "%s_as_tensor", name))))
        a = t;
    if (a && a->t && !(k = onnx_constant(n->im, a->t, n->b.loc)))
        return false;
    *count = (uint32_t)(k   ? build_elems(&n->b, k)
                        : a ? (int64_t)(a->floats.data.n / sizeof(float))
                            : 0);
    *out = v = NEW_ARRAY(c->arena, double, *count + 1);
    for (uint32_t i = 0; i < *count && k; i++) {
        DType          type = expr_dtype(k);
        const uint8_t *at = k->u.constant->data.at + (size_t)i * dtype_bytes(type);

        v[i] = dtype_is_float(type) ? dtype_get_f(type, at) : (double)dtype_get_i(type, at);
    }
    if (a && !k)
        copy_floats(&a->floats, v);
    return true;
}

const OnnxGraph *node_graph(const Node *n, const char *name)
{
    const OnnxAttr *a = node_attr(n, name);

    return a && a->g ? a->g : node_error(n, E_IMPORT, "attribute '%s' should be a graph", name);
}

static bool is_default(const OnnxAttr *a, const OnnxWord *w)
{
    if (!w->fallback)
        return false;
    if (!strcmp(w->kind, "int"))
        return a->i == strtoll(w->fallback, NULL, 10);
    if (!strcmp(w->kind, "float"))
        return a->f == strtof(w->fallback, NULL);
    return !strcmp(w->kind, "string") && a->s.n == strlen(w->fallback) &&
           !memcmp(a->s.at, w->fallback, a->s.n);
}

/* Of attributes that the operator does not have, survey.c warns. */
bool node_check_read(const Node *n, const OnnxSchema *schema)
{
    for (uint32_t i = 0; i < n->p->attribute.n; i++) {
        const OnnxAttr *a = n->p->attribute.at[i];
        const char     *list = schema->attributes;
        OnnxWord        w;
        bool            known = false;

        if (n->read[i] || !(a = resolved(n, a)))
            continue;
        while (!known && onnx_next_word(n->b.c->scratch, &list, &w))
            known = !strcmp(w.name, onnx_text(((const OnnxAttr *)n->p->attribute.at[i])->name));
        if (!known || is_default(a, &w))
            continue;
        node_error(n, E_UNSUPPORTED, "attribute '%s' is not supported", w.name);
        if (w.fallback)
            diag_hint(n->b.c->diags, "it may only be what it is by default, %s",
                      *w.fallback ? w.fallback : "empty");
        return false;
    }
    return true;
}

bool node_has(const Node *n, uint32_t i)
{
    return i < n->nin && n->in[i];
}

static const Expr *need_const(Node *n, uint32_t i)
{
    const Expr *v;

    if (!node_has(n, i))
        return node_error(n, E_IMPORT, "input %u is missing", i);
    v = build_fold(&n->b, n->in[i]);
    if (!v && map_get(n->im->sizes, PTR_KEY(n->in[i]))) {
        node_error(n, E_DIM, "input %u ('%s') depends on dimensions that are left to the run", i,
                   n->p->input.at[i]);
        diag_hint(n->b.c->diags, "give a value instead of bounds: --dim <name>=<number>");
        return NULL;
    }
    if (!v) {
        node_error(n, E_UNSUPPORTED, "input %u ('%s') has to be a constant", i, n->p->input.at[i]);
        diag_hint(n->b.c->diags, "shapes, axes and the like may not depend on the inputs' values");
    }
    return v;
}

bool node_const_ints(Node *n, uint32_t i, Ints *out)
{
    const Expr *v = need_const(n, i);

    if (!v)
        return false;
    return expr_ints(n->b.c, v, out) ||
           node_error(n, E_IMPORT, "input %u ('%s') should hold integers", i, n->p->input.at[i]);
}

bool node_const_int(Node *n, uint32_t i, int64_t *out)
{
    Ints v;

    if (!node_const_ints(n, i, &v))
        return false;
    if (v.n != 1)
        return node_error(n, E_IMPORT, "input %u ('%s') should be one number", i,
                          n->p->input.at[i]);
    *out = v.at[0];
    return true;
}

bool node_forms(Node *n, uint32_t i, Dims *out)
{
    Ints v;

    if (node_has(n, i) && map_get(n->im->sizes, PTR_KEY(n->in[i])))
        return build_forms(&n->b, n->in[i], out) ||
               node_error(n, E_UNSUPPORTED,
                          "input %u ('%s') is computed from dimensions, but is no form over them",
                          i, n->p->input.at[i]);
    if (!node_const_ints(n, i, &v))
        return false;
    *out = dims_of_i64(n->b.c, v.at, v.n);
    return true;
}

bool node_shape(Node *n, uint32_t i, Dims *out)
{
    return node_forms(n, i, out) && build_check_shape(&n->b, *out);
}

bool node_const_shape(Node *n, uint32_t i, Ints *out)
{
    Dims v;

    return node_const_ints(n, i, out) && node_shape(n, i, &v);
}

bool node_const_float(Node *n, uint32_t i, double *out)
{
    const Expr *v = need_const(n, i);

    if (!v)
        return false;
    if (!expr_single(v))
        return node_error(n, E_IMPORT, "input %u ('%s') should be one number", i,
                          n->p->input.at[i]);
    return expr_const_f(v, out) ||
           node_error(n, E_IMPORT, "input %u ('%s') should be one number", i, n->p->input.at[i]);
}

bool node_need_rank(Node *n, uint32_t i, uint32_t lo, uint32_t hi)
{
    uint32_t rank;

    if (!node_has(n, i))
        return node_error(n, E_IMPORT, "input %u is missing", i);
    if (!expr_has_shape(n->in[i]))
        return node_error(n, E_IMPORT, "input %u ('%s') should be a tensor", i, n->p->input.at[i]);
    rank = expr_rank(n->in[i]);
    if (rank >= lo && rank <= hi)
        return true;
    if (lo == hi)
        return node_error(n, rank < lo ? E_IMPORT : E_UNSUPPORTED,
                          "input %u ('%s') has %u dimensions, not %u", i, n->p->input.at[i], rank,
                          lo);
    return node_error(n, rank < lo ? E_IMPORT : E_UNSUPPORTED,
                      "input %u ('%s') has %u dimensions, not %u to %u", i, n->p->input.at[i], rank,
                      lo, hi);
}

bool node_axis(Node *n, int64_t axis, uint32_t rank, uint32_t *out)
{
    int64_t r = rank;

    if (axis < -r || axis >= r)
        return node_error(n, E_IMPORT, "axis %lld is outside a tensor of %u dimensions",
                          (long long)axis, rank);
    *out = (uint32_t)(axis < 0 ? axis + r : axis);
    return true;
}

bool node_axes(Node *n, Ints axes, uint32_t rank, int64_t *out)
{
    if (axes.n > rank)
        return node_error(n, E_IMPORT, "%u axes are given for a tensor of %u dimensions", axes.n,
                          rank);
    for (uint32_t i = 0; i < axes.n; i++) {
        uint32_t a;

        if (!node_axis(n, axes.at[i], rank, &a))
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (out[k] == a)
                return node_error(n, E_IMPORT, "axis %u is given twice", a);
        out[i] = a;
    }
    return true;
}

bool node_axes_arg(Node *n, uint32_t i, Ints *out, bool *bad)
{
    *bad = false;
    if (node_has(n, i)) {
        *bad = !node_const_ints(n, i, out);
        return !*bad;
    }
    return node_ints(n, "axes", out);
}

bool node_done(Node *n, const Expr *result)
{
    n->out[0] = result;
    return result != NULL;
}
