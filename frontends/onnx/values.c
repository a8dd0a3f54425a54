/* Inputs and outputs of a model.
 *
 * What a compiled model takes and gives are tensors.  A sequence is as many as it has elements,
 * `x.0`, `x.1`, ..; an optional value is a bool, `x.given`, and what it would be.  How many
 * elements an input has is for --dim to say, or for the values of a run. */
#include "frontends/onnx/onnx.h"

#include <string.h>

#define MAX_ELEMENTS 4096 /* of an input, each a parameter of its own */

/* A tensor that main takes. */
typedef struct {
    const char           *name;
    const OnnxTensorType *type; /* NULL: nothing is said of it */
    bool                  element;
    const Expr           *value; /* NULL: it cannot be had */
} Leaf;
typedef VEC(Leaf) Leaves;

/* ---- what an input is made of --------------------------------------------------------------------- */

/* The dimensions of an input as the model has them; UINT32_MAX: it does not say how many.  Names in
 * elements of a sequence are not those of one size: each element has its own. */
static uint32_t leaf_dims(Import *im, const Leaf *l, InputDim dims[MAX_RANK])
{
    const OnnxTensorType *t = l->type;
    uint32_t              n = t && t->shape ? t->shape->dims.n : UINT32_MAX;

    for (uint32_t i = 0; t && t->shape && i < t->shape->dims.n && i < MAX_RANK; i++) {
        const OnnxDim *d = t->shape->dims.at[i];
        bool           named = !d->has_value && d->param && *d->param && !l->element;

        dims[i].value = d->has_value && d->value >= 0 ? d->value : -1;
        dims[i].name = named ? intern(im->c->strings, d->param) : NULL;
    }
    if (n == UINT32_MAX || t->elem_type != ONNX_STRING)
        return n;
    if (n < MAX_RANK)
        dims[n] = string_room_dim(im->shapes, l->name, n);
    return n + 1;
}

/* How many elements an input has. */
static bool count_elements(Import *im, const char *name, Loc loc, uint32_t *count)
{
    int64_t lo, hi;

    if (!shapes_given(im->shapes, name, &lo, &hi)) {
        error_at(im->c, E_DIM, loc, "the number of elements of sequence '%s' is not known", name);
        diag_hint(im->c->diags, "give it: --dim %s=3", name);
        return false;
    }
    if (lo != hi)
        return error_at(im->c, E_UNSUPPORTED, loc,
                        "sequence '%s' has %lld to %lld elements: only a fixed number is supported",
                        name, (long long)lo, (long long)hi);
    if (lo < 0 || lo > MAX_ELEMENTS)
        return error_at(im->c, E_DIM, loc, "%lld elements for sequence '%s'", (long long)lo, name);
    *count = (uint32_t)lo;
    return true;
}

static const OnnxTensorType bool_type = {ONNX_BOOL, &(OnnxShape){0}};

/* An optional tensor of which nothing says the shape is no more than its flag. */
static bool has_shape(const ImportOptions *o, const char *name, const OnnxTensorType *t)
{
    for (uint32_t i = 0; i < o->nshapes; i++)
        if (!strcmp(o->shapes[i].name, name))
            return true;
    return t->shape != NULL;
}

/* The tensors of an input, in order. */
static bool add_leaves(Import *im, const ImportOptions *o, Leaves *out, const char *name,
                       const OnnxType *t, bool element, Loc loc)
{
    Ctx        *c = im->c;
    const char *given = intern_printf(c->strings, "%s.given", name);
    uint32_t    count;

    if (t && t->tensor) {
        vec_push(c->arena, out, ((Leaf){name, t->tensor, element, NULL}));
        return true;
    }
    if (t && t->optional && t->optional->type && !t->optional->type->optional) {
        vec_push(c->arena, out, ((Leaf){given, &bool_type, false, NULL}));
        t = t->optional->type;
        return (t->tensor && !has_shape(o, name, t->tensor)) ||
               add_leaves(im, o, out, name, t, element, loc);
    }
    if (t && t->sequence && t->sequence->type && t->sequence->type->tensor) {
        if (!count_elements(im, name, loc, &count))
            return false;
        for (uint32_t i = 0; i < count; i++)
            add_leaves(im, o, out, intern_printf(c->strings, "%s.%u", name, i), t->sequence->type,
                       true, loc);
        return true;
    }
    return error_at(c, t && (t->sequence || t->optional || t->map) ? E_UNSUPPORTED : E_IMPORT, loc,
                    "input '%s' is no tensor", name);
}

static const Expr *of_leaf(Import *im, const Leaf *l)
{
    return l->type->elem_type == ONNX_STRING ? onnx_string_input(im, l->value) : l->value;
}

/* What the graph sees of an input whose tensors begin at *at. */
static const Expr *of_leaves(Import *im, const Leaves *l, uint32_t *at, const char *name,
                             const OnnxType *t, Loc loc)
{
    Ctx *c = im->c;
    VEC(const Expr *) elements = {0};
    OnnxOptional o;

    if (t->tensor)
        return of_leaf(im, &l->at[(*at)++]);
    if (t->optional) {
        o.given = l->at[(*at)++].value;
        t = t->optional->type;
        o.value = t->tensor && (*at == l->n || l->at[*at].name != name)
                      ? NULL
                      : of_leaves(im, l, at, name, t, loc);
        return onnx_optional_new(im, loc, o);
    }
    for (; *at < l->n; ++*at) {
        const Leaf *e = &l->at[*at];

        if (!e->element || e->name != intern_printf(c->strings, "%s.%u", name, elements.n))
            break;
        vec_push(c->arena, &elements, of_leaf(im, e));
    }
    return expr_tuple(c, elements.n, elements.at, loc);
}

/* The elements of a tensor, of strings their bytes. */
static bool leaf_dtype(const OnnxTensorType *t, DType *out)
{
    return onnx_dtype(t->elem_type == ONNX_STRING ? ONNX_UINT8 : t->elem_type, out);
}

/* ---- one tensor ----------------------------------------------------------------------------------- */

static const Expr *new_param(Import *im, const Leaf *l, Loc loc)
{
    Ctx        *c = im->c;
    InputDim    dims[MAX_RANK];
    const Type *type;
    DType       dtype;

    if (!leaf_dtype(l->type, &dtype))
        return error_at(c, E_UNSUPPORTED, loc,
                        "input '%s' has element type %s, which is not supported", l->name,
                        onnx_dtype_text(l->type->elem_type));
    uint32_t n = leaf_dims(im, l, dims);
    type = shapes_input(im->shapes, loc, l->name, dtype, n, dims);
    if (!type || l->type->elem_type != ONNX_STRING)
        return type ? onnx_var(im, l->name, type, loc) : NULL;
    if (!string_check_room(im->shapes, loc, l->name, type, n == UINT32_MAX))
        return NULL;
    return onnx_var(im, l->name, type, loc);
}

/* An array that the user gave for an input; it has to fit what the model says. */
static const Expr *import_array(Import *im, const Leaf *l, const ImportValue *value, Loc loc)
{
    const OnnxTensorType *t = l->type;
    const Type           *given = value->value->type;
    DType                 dtype;
    uint32_t              n = given->n - (given->n && t->elem_type == ONNX_STRING);
    bool fits = given->n <= MAX_RANK && leaf_dtype(t, &dtype) && dtype_eq(dtype, given->dtype) &&
                (!t->shape || t->shape->dims.n == n);

    for (uint32_t k = 0; fits && t->shape && k < n; k++) {
        const OnnxDim *d = t->shape->dims.at[k];
        int64_t        have;

        fits = type_dim(given, k, &have) && (!d->has_value || d->value < 0 || d->value == have);
    }
    if (!fits)
        return error_at(im->c, E_DIM, loc,
                        "the value given for input '%s' is %s, which does not fit", l->name,
                        type_text(im->c, given));
    return expr_const(im->c, value->value, loc);
}

/* Nodes of a graph or function, and what it declares of their outputs. */
typedef struct {
    const PbMsgs *nodes;
    const Map    *declared;
} Body;

typedef VEC(Body) Bodies;

/* The graph, what its nodes have within them, and functions. */
static Bodies all_bodies(Import *im, const OnnxScope *s, const OnnxGraph *g)
{
    Arena *a = im->c->arena;
    Bodies all = {0};

    vec_push(a, &all, ((Body){&g->node, s->declared}));
    for (uint32_t i = 0; i < im->model->functions.n; i++) {
        const OnnxFunction *f = im->model->functions.at[i];

        vec_push(a, &all, ((Body){&f->node, onnx_declared(im, &f->value_info, NULL)}));
    }
    for (uint32_t at = 0; at < all.n; at++) {
        const PbMsgs *nodes = all.at[at].nodes;

        for (uint32_t i = 0; i < nodes->n; i++) {
            const OnnxNode *p = nodes->at[i];

            for (uint32_t k = 0; k < p->attribute.n; k++) {
                const OnnxAttr *attr = p->attribute.at[k];

                if (attr->g)
                    vec_push(a, &all,
                             ((Body){&attr->g->node,
                                     onnx_declared(im, &attr->g->value_info, &attr->g->output)}));
            }
        }
    }
    return all;
}

/* May --dim NAME be of a dimension that nodes make?  By its place in a tensor, as the model calls
 * it, or the number of elements of a sequence; or that of blocks of channels (nchwc.c). */
static bool is_made(Import *im, const Body *body, const char *name)
{
    const char *dot = strrchr(name, '.');
    const char *tensor = dot ? intern_n(im->c->strings, name, (size_t)(dot - name)) : NULL;

    if (!strcmp(name, "nchwc") && onnx_opset_of(im, NULL, "com.microsoft.nchwc"))
        return true;
    for (uint32_t i = 0; i < body->nodes->n; i++) {
        const OnnxNode *p = body->nodes->at[i];

        for (uint32_t k = 0; k < p->output.n; k++) {
            const char           *made = intern(im->c->strings, p->output.at[k]);
            const OnnxTensorType *t = map_get(body->declared, PTR_KEY(made));

            if (made == tensor || !strcmp(made, name))
                return true;
            for (uint32_t d = 0; t && t->shape && d < t->shape->dims.n; d++) {
                const OnnxDim *dim = t->shape->dims.at[d];

                if (dim->param && !strcmp(dim->param, name))
                    return true;
            }
        }
    }
    return false;
}

/* ---- inputs ----------------------------------------------------------------------------------------- */

/* As a parameter of main, or as what was given for it; its value stays NULL where sizes are
 * missing.
 */
static bool take_leaf(Import *im, const ImportOptions *o, Leaf *l, Loc loc, NamedValues *params)
{
    const ImportValue *value = value_given(o, l->name);

    if (value && value->value)
        return (l->value = import_array(im, l, value, loc)) != NULL;
    if (!(l->value = new_param(im, l, loc))) {
        vec_push(im->c->arena, &params->names, l->name);
        return true;
    }
    if (value)
        return (l->value = value_expr(im->c, loc, value, l->value->type)) != NULL;
    vec_push(im->c->arena, &params->at, l->value);
    vec_push(im->c->arena, &params->names, l->name);
    return true;
}

/* A constant that is listed as an input too, as before IR version 4. */
static bool is_constant(Import *im, const OnnxScope *s, const OnnxValue *v, Loc loc)
{
    const Expr *had = map_get(s->values, PTR_KEY(v->name));

    if (had)
        onnx_check_declared(im, loc, arena_printf(im->c->arena, "constant '%s'", v->name),
                            v->type ? v->type->tensor : NULL, onnx_value_type(im, had));
    return had != NULL;
}

static bool take_leaves(Import *im, const ImportOptions *o, Leaves *leaves, Loc loc,
                        NamedValues *params)
{
    Ctx     *c = im->c;
    Map     *seen = map_new(c->scratch);
    InputDim dims[MAX_RANK];

    for (uint32_t i = 0; i < leaves->n; i++) {
        const Leaf *l = &leaves->at[i];

        shapes_see(im->shapes, l->name, leaf_dims(im, l, dims), dims);
    }
    for (uint32_t i = 0; i < leaves->n; i++) {
        const char *name = leaves->at[i].name;

        if (map_get(seen, PTR_KEY(name)))
            return error_at(c, E_IMPORT, loc, "input '%s' is there twice", name);
        map_put(seen, PTR_KEY(name), seen);
        if (!take_leaf(im, o, &leaves->at[i], loc, params))
            return false;
    }
    return true;
}

bool onnx_inputs(Import *im, OnnxScope *s, const OnnxGraph *g, const ImportOptions *o, Loc loc,
                 NamedValues *params)
{
    Ctx     *c = im->c;
    Leaves   leaves = {0};
    Bodies   bodies = {0};
    uint32_t at = 0, before = diag_errors(c->diags);

    im->shapes = NEW(c->arena, Shapes);
    *im->shapes = shapes_new(c, o);
    for (uint32_t i = 0; i < g->input.n; i++) {
        OnnxValue *v = g->input.at[i];

        v->name = intern(c->strings, onnx_text(v->name));
        if (!is_constant(im, s, v, loc))
            add_leaves(im, o, &leaves, v->name, v->type, false, loc);
    }
    if (diag_errors(c->diags) != before || !take_leaves(im, o, &leaves, loc, params))
        return false;
    im->reshaped = im->shapes->reshaped;
    for (uint32_t i = 0; i < params->at.n; i++)
        type_mentions(params->at.at[i]->type, onnx_note_dim, im);
    bodies = o->ndims ? all_bodies(im, s, g) : bodies;
    for (uint32_t i = 0; i < o->ndims; i++)
        for (uint32_t k = 0; k < bodies.n && !im->shapes->later[i]; k++)
            im->shapes->later[i] = is_made(im, &bodies.at[k], o->dims[i].name);
    if (!shapes_check(im->shapes, loc, params->names.n, params->names.at) ||
        diag_errors(c->diags) != before)
        return false;
    for (uint32_t i = 0; i < g->input.n; i++) {
        const OnnxValue *v = g->input.at[i];

        if (!map_get(s->values, PTR_KEY(v->name)))
            onnx_scope_put(s, v->name, of_leaves(im, &leaves, &at, v->name, v->type, loc));
    }
    return true;
}

/* ---- outputs ---------------------------------------------------------------------------------------- */

/* The tensors of an output of the graph, whose scope is s. */
static bool add_result(Node *n, NamedValues *r, const char *name, const OnnxType *t,
                       const Expr *value)
{
    const Build        *b = &n->b;
    Ctx                *c = b->c;
    const OnnxOptional *o = onnx_optional(n->im, value);
    const OnnxList     *l = onnx_list(n->im, value);
    const OnnxType     *inner = t && t->optional ? t->optional->type : t;
    OnnxOptional        there = {NULL, value};
    const Idx          *count, *zero = idx_const(c->arith, 0);

    if (!o && t && t->optional) {
        there.given = build_const(b, DT_BOOL, 0, NULL, &(uint8_t){1});
        o = &there;
    }
    if (o) {
        vec_push(c->arena, &r->names, intern_printf(c->strings, "%s.given", name));
        vec_push(c->arena, &r->at, o->given);
        return !o->value || add_result(n, r, name, inner, o->value);
    }
    if (l) {
        if (!list_count(n, l, 0, &count))
            return false;
        vec_push(c->arena, &r->names, name);
        vec_push(c->arena, &r->at, build_slice_to(b, l->cells, 0, zero, count));
        if (l->sizes) {
            vec_push(c->arena, &r->names, intern_printf(c->strings, "%s.sizes", name));
            vec_push(c->arena, &r->at, build_slice_to(b, l->sizes, 0, zero, count));
        }
        return r->at.at[r->at.n - 1] != NULL;
    }
    if (value->type->kind == TYPE_TUPLE) {
        for (uint32_t i = 0; i < value->type->n; i++)
            if (!add_result(n, r, intern_printf(c->strings, "%s.%u", name, i),
                            t && t->sequence ? t->sequence->type : NULL,
                            sequence_element(b, value, i)))
                return false;
        return true;
    }
    if (!expr_has_shape(value))
        return error_at(c, E_UNSUPPORTED, b->loc, "output '%s' is no tensor", name);
    onnx_check_declared(n->im, b->loc, arena_printf(c->arena, "output '%s'", name),
                        t ? t->tensor : NULL, onnx_value_type(n->im, value));
    vec_push(c->arena, &r->names, name);
    vec_push(c->arena, &r->at, value);
    return true;
}

bool onnx_result(Import *im, const OnnxScope *s, NamedValues *r, Loc loc, const OnnxValue *v,
                 const Expr *value)
{
    const char *name = intern(im->c->strings, onnx_text(v->name));
    OnnxNode    p = {.output = {.n = 1, .at = &name}};
    Node        n = {.b = {im->c, loc, "output"}, .im = im, .scope = s, .p = &p, .nout = 1};

    return add_result(&n, r, name, v->type, value);
}
