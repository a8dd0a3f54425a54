/* Values as tensors of one type, wherever they come from (docs/design/sequences.md).
 *
 *     if c { x [2, 3] } else { y [4, 3] }
 *
 *     %0 = if c { (x padded to [4, 3], [2, 3]) } else { (y, [4, 3]) }
 *     let %dims = bind_dims(%0.1, dims=[K]); // dim K in 2..4
 *     strided_slice(%0.0, begin=[0], end=[K])
 *
 * The branches of an If, the rounds of a Loop and the elements of a list give values whose sizes
 * differ.  They leave it with the room of the largest and, if a dimension is open, their own sizes;
 * outside, those are dimensions of the run. */
#include "frontends/onnx/onnx.h"

#include <string.h>

/* ---- dimensions that are not known outside --------------------------------------------------------- */

static void note(void *names, const Atom *dim)
{
    map_put(names, PTR_KEY(dim->name), names);
}

void onnx_note_bound(Map *names, const Expr *e)
{
    Dims d;

    for (uint32_t k = 0; expr_binds(e, &d) && k < d.n; k++)
        form_mentions(d.at[k], note, names);
}

Map *onnx_bound_since(Import *im, uint32_t from)
{
    Map *inner = map_new(im->c->arena);

    for (uint32_t i = from; i < im->binds.n; i++)
        onnx_note_bound(inner, im->binds.at[i]);
    return inner;
}

void onnx_note_mention(void *mention, const Atom *dim)
{
    OnnxMention *m = mention;

    m->found |= map_get(m->names, PTR_KEY(dim->name)) != NULL;
}

/* Is it another one elsewhere?  `inner` NULL: every one that is no number may be. */
static bool is_inner(const Map *inner, const Idx *x)
{
    OnnxMention m = {inner, false};

    if (!inner || idx_is_const(x, NULL))
        return !idx_is_const(x, NULL);
    form_mentions(x, onnx_note_mention, &m);
    return m.found;
}

/* ---- packs ------------------------------------------------------------------------------------------ */

static OnnxPack *of_tensor(Import *im, const Expr *e, const Map *inner)
{
    Ctx        *c = im->c;
    const Type *t = e->type;
    OnnxPack   *p = NEW(c->arena, OnnxPack);

    *p = (OnnxPack){
        .kind = PACK_TENSOR, .string = onnx_is_string(im, e), .dtype = t->dtype, .n = t->n};
    for (uint32_t i = 0; i < t->n; i++) {
        p->open[i] = is_inner(inner, t->dims[i]);
        p->least[i] = t->dims[i]->lo;
        p->room[i] = p->open[i] ? onnx_most(im, t->dims[i]) : t->dims[i];
    }
    return p;
}

OnnxPack *pack_of(Import *im, const Expr *e, const Map *inner)
{
    Ctx                *c = im->c;
    const OnnxOptional *o = onnx_optional(im, e);
    const OnnxList     *l = onnx_list(im, e);
    OnnxPack           *p = NEW(c->arena, OnnxPack);
    Build               b = {c, e->loc, "sequence"};

    if (o) {
        *p =
            (OnnxPack){.kind = PACK_OPTIONAL, .of = o->value ? pack_of(im, o->value, inner) : NULL};
    } else if (l) {
        *p = (OnnxPack){.kind = PACK_LIST, .of = l->element, .most = l->most};
    } else if (e->type->kind == TYPE_TUPLE) {
        *p = (OnnxPack){.kind = PACK_SEQUENCE, .n = e->type->n};
        p->at = NEW_ARRAY(c->arena, OnnxPack *, p->n + 1);
        for (uint32_t i = 0; i < p->n; i++)
            p->at[i] = pack_of(im, sequence_element(&b, e, i), inner);
    } else {
        return of_tensor(im, e, inner);
    }
    return p;
}

static OnnxPack *join_tensors(Ctx *c, const OnnxPack *a, const OnnxPack *b)
{
    OnnxPack *p = DUP_ARRAY(c->arena, a, 1);

    if (a->n != b->n || a->string != b->string || !dtype_eq(a->dtype, b->dtype))
        return NULL;
    for (uint32_t i = 0; i < a->n; i++) {
        const Idx *x = a->room[i], *y = b->room[i];

        if (x == y && !a->open[i] && !b->open[i])
            continue;
        p->open[i] = true;
        p->least[i] = a->least[i] < b->least[i] ? a->least[i] : b->least[i];
        if (a->grows[i] && y->hi - x->hi > a->grows[i])
            return NULL;
        if (a->grows[i])
            continue;
        p->room[i] = idx_const(c->arith, x->hi > y->hi ? x->hi : y->hi);
    }
    return p;
}

/* All elements of a sequence; NULL: there are none, or they have no common form (*bad). */
static OnnxPack *common(Ctx *c, const OnnxPack *p, bool *bad)
{
    OnnxPack *of = p->kind == PACK_LIST ? p->of : NULL;

    for (uint32_t i = 0; p->kind == PACK_SEQUENCE && i < p->n && !*bad; i++) {
        const OnnxPack *e = p->at[i];

        if (e->kind != PACK_TENSOR)
            return *bad = true, NULL;
        of = of ? join_tensors(c, of, e) : DUP_ARRAY(c->arena, e, 1);
        for (uint32_t d = 0; of && d < of->n; d++) /* of the elements, those that are no numbers */
            if (!idx_is_const(of->room[d], NULL)) {
                of->open[d] = true;
                of->room[d] = idx_const(c->arith, of->room[d]->hi);
            }
        *bad |= !of;
    }
    return of;
}

static OnnxPack *join_lists(Ctx *c, const OnnxPack *a, const OnnxPack *b)
{
    OnnxPack *p = NEW(c->arena, OnnxPack);
    bool      bad = false;
    OnnxPack *x = common(c, a, &bad), *y = common(c, b, &bad);
    int64_t   m = a->kind == PACK_LIST ? a->most : a->n, k = b->kind == PACK_LIST ? b->most : b->n;

    *p = (OnnxPack){.kind = PACK_LIST, .most = m > k ? m : k};
    p->of = x && y ? join_tensors(c, x, y) : x ? x : y;
    return bad || !p->of ? NULL : p;
}

OnnxPack *pack_join(Ctx *c, OnnxPack *a, OnnxPack *b)
{
    OnnxPack *p = NEW(c->arena, OnnxPack);

    if (a->kind == PACK_OPTIONAL || b->kind == PACK_OPTIONAL) {
        a = a->kind == PACK_OPTIONAL ? a->of : a;
        b = b->kind == PACK_OPTIONAL ? b->of : b;
        *p = (OnnxPack){.kind = PACK_OPTIONAL, .of = a && b ? pack_join(c, a, b) : a ? a : b};
        return a && b && !p->of ? NULL : p;
    }
    if (a->kind == PACK_TENSOR || b->kind == PACK_TENSOR)
        return a->kind == b->kind ? join_tensors(c, a, b) : NULL;
    if (a->kind == PACK_LIST || b->kind == PACK_LIST || a->n != b->n)
        return join_lists(c, a, b);
    *p = (OnnxPack){
        .kind = PACK_SEQUENCE, .n = a->n, .at = NEW_ARRAY(c->arena, OnnxPack *, a->n + 1)};
    for (uint32_t i = 0; i < a->n; i++)
        if (!(p->at[i] = pack_join(c, a->at[i], b->at[i])))
            return join_lists(c, a, b);
    return p;
}

bool pack_same(const OnnxPack *a, const OnnxPack *b)
{
    if (!a || !b || a->kind != b->kind || a->n != b->n || a->most != b->most)
        return a == b;
    if (a->kind == PACK_TENSOR)
        return dtype_eq(a->dtype, b->dtype) && a->string == b->string &&
               !memcmp(a->room, b->room, a->n * sizeof *a->room) &&
               !memcmp(a->open, b->open, a->n * sizeof *a->open);
    for (uint32_t i = 0; i < a->n; i++)
        if (!pack_same(a->at[i], b->at[i]))
            return false;
    return pack_same(a->of, b->of);
}

/* ---- tensors ---------------------------------------------------------------------------------------- */

bool pack_open(const OnnxPack *p)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->open[i])
            return true;
    return false;
}

const Expr *pack_sizes(const Build *b, const Expr *x)
{
    int64_t rank = x->type->n;

    return build_values(b, type_tensor_i64(b->c, DT_I64, 1, &rank), expr_forms(x));
}

const Expr *pack_padded(const Build *b, const OnnxPack *p, const Expr *x)
{
    for (uint32_t i = 0; x && i < p->n; i++) {
        const Idx  *have = expr_form(x, i), *dims[MAX_RANK];
        const Expr *both[2] = {x};

        if (!p->open[i] || have == p->room[i])
            continue;
        if (have->hi > p->room[i]->hi) { /* of a state that has grown beyond it */
            have = idx_min(b->c->arith, have, p->room[i]);
            both[0] = x = build_slice_to(b, x, i, idx_const(b->c->arith, 0), have);
            if (!x)
                return NULL;
            have = expr_form(x, i);
        }
        for (uint32_t d = 0; d < p->n; d++)
            dims[d] = expr_form(x, d);
        dims[i] = idx_sub(b->c->arith, p->room[i], have);
        both[1] = build_zeros_of(b, p->dtype, p->n, dims);
        if (have->hi != 0) {
            x = build_concat(b, 2, both, i);
            continue;
        }
        dims[i] = p->room[i];
        x = build_zeros_of(b, p->dtype, p->n, dims);
    }
    return x;
}

const Expr *pack_cut(Node *n, const OnnxPack *p, const Expr *x, uint32_t axis, const Expr *sizes,
                     uint32_t out)
{
    const Build *b = &n->b;
    const Idx   *zero = idx_const(b->c->arith, 0), *size;

    for (uint32_t i = 0; x && i < p->n; i++) {
        RunDim d = {NULL, p->least[i], p->room[i], axis + i, 1};

        if (!p->open[i])
            continue;
        d.cell = cell_of(b, sizes, i);
        if (!onnx_bind(n, out < n->nout ? out : n->nout - 1, 1, &d, &size))
            return NULL;
        x = build_slice_to(b, x, axis + i, zero, size);
    }
    return p->string ? onnx_string(n->im, x) : x;
}

/* ---- any value -------------------------------------------------------------------------------------- */

static const Expr *zeros_of(const Build *b, const OnnxPack *p)
{
    return build_zeros_of(b, p->dtype, p->n, p->room);
}

static void push_list(const Build *b, const OnnxList *l, OnnxParts *out)
{
    vec_push(b->c->arena, out, l->count);
    vec_push(b->c->arena, out, l->cells);
    if (l->sizes)
        vec_push(b->c->arena, out, l->sizes);
}

/* What stands where an optional value is not. */
static void pack_nothing(const Build *b, const OnnxPack *p, OnnxParts *out)
{
    int64_t rank = p->n;

    switch (p->kind) {
    case PACK_TENSOR:
        vec_push(b->c->arena, out, zeros_of(b, p));
        if (pack_open(p)) {
            int64_t *least = DUP_ARRAY(b->c->arena, p->least, p->n);

            vec_push(b->c->arena, out, build_const(b, DT_I64, 1, &rank, least));
        }
        return;
    case PACK_SEQUENCE:
        for (uint32_t i = 0; i < p->n; i++)
            pack_nothing(b, p->at[i], out);
        return;
    case PACK_LIST: {
        OnnxList l = list_of_elements(b, p->of, p->most, 0, NULL);

        push_list(b, &l, out);
        return;
    }
    case PACK_OPTIONAL:
        vec_push(b->c->arena, out, build_const(b, DT_BOOL, 0, NULL, &(uint8_t){0}));
        if (p->of)
            pack_nothing(b, p->of, out);
        return;
    }
}

void pack_value(Import *im, const Build *b, const OnnxPack *p, const Expr *e, OnnxParts *out)
{
    const OnnxOptional *o = onnx_optional(im, e);
    OnnxList            l;

    switch (p->kind) {
    case PACK_TENSOR:
        vec_push(b->c->arena, out, pack_padded(b, p, e));
        if (pack_open(p))
            vec_push(b->c->arena, out, pack_sizes(b, e));
        return;
    case PACK_SEQUENCE:
        for (uint32_t i = 0; i < p->n; i++)
            pack_value(im, b, p->at[i], sequence_element(b, e, i), out);
        return;
    case PACK_LIST:
        l = list_fitted(im, b, p->of, p->most, e);
        push_list(b, &l, out);
        return;
    case PACK_OPTIONAL:
        vec_push(b->c->arena, out, o ? o->given : build_const(b, DT_BOOL, 0, NULL, &(uint8_t){1}));
        if (p->of && o && !o->value)
            pack_nothing(b, p->of, out);
        else if (p->of)
            pack_value(im, b, p->of, o ? o->value : e, out);
        return;
    }
}

const Expr *pack_back(Node *n, const OnnxPack *p, const Expr *const **parts, uint32_t out)
{
    const Build *b = &n->b;
    VEC(const Expr *) elements = {0};

    switch (p->kind) {
    case PACK_TENSOR: {
        const Expr *x = *(*parts)++;

        return pack_cut(n, p, x, 0, pack_open(p) ? *(*parts)++ : NULL, out);
    }
    case PACK_SEQUENCE:
        for (uint32_t i = 0; i < p->n; i++) {
            const Expr *x = pack_back(n, p->at[i], parts, out);

            if (!x)
                return NULL;
            vec_push(b->c->arena, &elements, x);
        }
        return expr_tuple(b->c, elements.n, elements.at, b->loc);
    case PACK_LIST: {
        OnnxList l = {.element = p->of, .most = p->most};

        l.count = *(*parts)++;
        l.cells = *(*parts)++;
        l.sizes = pack_open(p->of) ? *(*parts)++ : NULL;
        return onnx_list_new(n->im, b->loc, l);
    }
    case PACK_OPTIONAL: {
        OnnxOptional o = {*(*parts)++, NULL};

        if (p->of && !(o.value = pack_back(n, p->of, parts, out)))
            return NULL;
        return onnx_optional_new(n->im, b->loc, o);
    }
    }
}
