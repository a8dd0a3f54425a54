/* Types: interned, so that equal types are the same pointer.
 *
 * A maker describes the type on its stack; `type_intern` finds the equal one or copies it into the
 * arena.  The parts of a type are interned already, so equality looks at pointers only. */
#include "ir/intern.h"
#include "ir/text/relay_text.h"

#include <string.h>

static bool halo_equal(const Halo *a, const Halo *b)
{
    if (a == b)
        return true;
    if (!a || !b)
        return false;
    return a->ndim == b->ndim && !memcmp(&a->value, &b->value, sizeof a->value) &&
           !memcmp(a->lo, b->lo, a->ndim * sizeof *a->lo) &&
           !memcmp(a->hi, b->hi, a->ndim * sizeof *a->hi);
}

static bool ptrs_equal(const void *a, const void *b, uint32_t n)
{
    return n == 0 || !memcmp(a, b, n * sizeof(void *));
}

static bool type_equal(const void *node, const void *key)
{
    const Type *a = node, *b = key;

    if (a->kind != b->kind || a->n != b->n || a->ret != b->ret || a->name != b->name)
        return false;
    if (a->kind == TYPE_TENSOR)
        return dtype_eq(a->dtype, b->dtype) && ptrs_equal(a->dims, b->dims, a->n) &&
               halo_equal(a->halo, b->halo);
    return ptrs_equal(a->parts, b->parts, a->n);
}

static uint64_t type_hash(const Type *t)
{
    uint64_t h = hash_mix((uint64_t)t->kind, t->n);

    h = hash_mix(h, (uint64_t)t->dtype.code << 32 | (uint64_t)t->dtype.bits << 16 | t->dtype.lanes);
    h = hash_mix(h, PTR_KEY(t->ret));
    h = hash_mix(h, PTR_KEY(t->name));
    if (t->kind == TYPE_TENSOR)
        h = hash_bytes(t->dims, t->n * sizeof *t->dims, h);
    else
        h = hash_bytes(t->parts, t->n * sizeof *t->parts, h);
    if (t->halo) {
        h = hash_bytes(t->halo->lo, t->halo->ndim * sizeof *t->halo->lo, h);
        h = hash_bytes(t->halo->hi, t->halo->ndim * sizeof *t->halo->hi, h);
    }
    return h;
}

static const Type *type_intern(Ctx *c, Type key)
{
    uint64_t    h = type_hash(&key);
    const Type *was = intern_find(c->nodes, NODE_TYPE, h, type_equal, &key);
    Type       *t;

    if (was)
        return was;
    t = NEW(c->arena, Type);
    *t = key;
    t->id = intern_count(c->nodes, NODE_TYPE);
    if (key.kind == TYPE_TENSOR)
        t->dims = key.n ? DUP_ARRAY(c->arena, key.dims, key.n) : NULL;
    else
        t->parts = key.n ? DUP_ARRAY(c->arena, key.parts, key.n) : NULL;
    if (key.halo) {
        Halo *halo = arena_dup(c->arena, key.halo, sizeof *halo);

        halo->lo = DUP_ARRAY(c->arena, key.halo->lo, key.halo->ndim);
        halo->hi = DUP_ARRAY(c->arena, key.halo->hi, key.halo->ndim);
        t->halo = halo;
    }
    intern_add(c->nodes, NODE_TYPE, h, t);
    return t;
}

const Type *type_tensor(Ctx *c, DType t, uint32_t ndim, const Idx *const *dims)
{
    return type_intern(c, (Type){.kind = TYPE_TENSOR, .dtype = t, .n = ndim, .dims = dims});
}

const Type *type_tensor_i64(Ctx *c, DType t, uint32_t ndim, const int64_t *dims)
{
    const Idx **x = NEW_ARRAY(c->scratch, const Idx *, ndim ? ndim : 1);

    for (uint32_t i = 0; i < ndim; i++)
        x[i] = idx_const(c->arith, dims[i]);
    return type_tensor(c, t, ndim, x);
}

static bool halo_is_empty(const Halo *h)
{
    for (uint32_t i = 0; i < h->ndim; i++)
        if (h->lo[i] || h->hi[i])
            return false;
    return true;
}

const Type *type_with_halo(Ctx *c, const Type *t, const Halo *halo)
{
    Type key = *t;

    if (t->kind != TYPE_TENSOR)
        return t;
    key.halo = halo && !halo_is_empty(halo) ? halo : NULL;
    return type_intern(c, key);
}

const Type *type_plain(Ctx *c, const Type *t)
{
    const Type **parts;
    bool         changed = false;

    if (t->kind == TYPE_TENSOR)
        return t->halo ? type_with_halo(c, t, NULL) : t;
    if (!t->n && !t->ret)
        return t;
    parts = NEW_ARRAY(c->scratch, const Type *, t->n ? t->n : 1);
    for (uint32_t i = 0; i < t->n; i++) {
        parts[i] = type_plain(c, t->parts[i]);
        changed |= parts[i] != t->parts[i];
    }
    if (t->kind == TYPE_FUNC) {
        const Type *ret = type_plain(c, t->ret);

        return changed || ret != t->ret ? type_func(c, t->n, parts, ret) : t;
    }
    if (!changed)
        return t;
    return type_intern(c, (Type){.kind = t->kind, .n = t->n, .parts = parts, .name = t->name});
}

const Type *type_tuple(Ctx *c, uint32_t n, const Type *const *fields)
{
    return type_intern(c, (Type){.kind = TYPE_TUPLE, .n = n, .parts = fields});
}

const Type *type_func(Ctx *c, uint32_t n, const Type *const *params, const Type *ret)
{
    return type_intern(c, (Type){.kind = TYPE_FUNC, .n = n, .parts = params, .ret = ret});
}

const Type *type_ref(Ctx *c, const Type *t)
{
    return type_intern(c, (Type){.kind = TYPE_REF, .n = 1, .parts = &t});
}

const Type *type_adt(Ctx *c, const char *name, uint32_t n, const Type *const *args)
{
    return type_intern(
        c, (Type){.kind = TYPE_ADT, .n = n, .parts = args, .name = intern(c->strings, name)});
}

const Type *type_var(Ctx *c, const char *name)
{
    return type_intern(c, (Type){.kind = TYPE_VAR, .name = intern(c->strings, name)});
}

/* ---- questions ------------------------------------------------------------------------------- */

const Type *type_with_first(Ctx *c, const Type *t, const Idx *n)
{
    if (t->kind != TYPE_TENSOR || !t->n)
        return NULL;
    const Idx **dims = DUP_ARRAY(c->scratch, t->dims, t->n);
    dims[0] = n;
    return type_tensor(c, t->dtype, t->n, dims);
}

const Idx *type_rounds(Ctx *c, const Type *whole, const Type *part)
{
    int64_t n;

    if (whole->kind != TYPE_TENSOR || part->kind != TYPE_TENSOR || !whole->n ||
        !type_dim(part, 0, &n) || n < 1)
        return NULL;
    return idx_div_exact(c->arith, whole->dims[0], part->dims[0]);
}

bool type_dim(const Type *t, uint32_t i, int64_t *v)
{
    return i < t->n && idx_is_const(t->dims[i], v);
}

bool type_static(const Type *t)
{
    switch (t->kind) {
    case TYPE_TENSOR:
        for (uint32_t i = 0; i < t->n; i++)
            if (!idx_is_const(t->dims[i], NULL))
                return false;
        return true;
    case TYPE_TUPLE:
    case TYPE_FUNC:
    case TYPE_REF:
    case TYPE_ADT:
        for (uint32_t i = 0; i < t->n; i++)
            if (!type_static(t->parts[i]))
                return false;
        return !t->ret || type_static(t->ret);
    case TYPE_VAR: return false;
    }
    return false;
}

bool type_elems_most(const Type *t, int64_t *n)
{
    int64_t v = 1;

    if (t->kind != TYPE_TENSOR)
        return false;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->dims[i]->hi < 0 || !checked_mul(v, idx_usual(t->dims[i]), &v))
            return false;
    *n = v;
    return true;
}

const Idx *type_cells(Ctx *c, const Type *t)
{
    const Idx *n = idx_const(c->arith, 1);

    for (uint32_t i = 0; i < t->n; i++)
        n = idx_mul(c->arith, n, t->dims[i]);
    return n;
}

bool type_elems(const Type *t, int64_t *n)
{
    int64_t v = 1, d;

    if (t->kind != TYPE_TENSOR)
        return false;
    for (uint32_t i = 0; i < t->n; i++)
        if (!type_dim(t, i, &d) || d < 0 || !checked_mul(v, d, &v))
            return false;
    *n = v;
    return true;
}

/* ---- text ----------------------------------------------------------------------------------- */

static void print_halo(const Halo *h, StrBuf *out)
{
    const char *sep = "";

    str_add(out, " halo(");
    for (uint32_t i = 0; i < h->ndim; i++)
        if (h->lo[i] || h->hi[i]) {
            str_printf(out, "%s%u:%u+%u", sep, i, h->lo[i], h->hi[i]);
            sep = ", ";
        }
    str_add(out, ") = ");
    if (h->value > -1e15 && h->value < 1e15 && h->value == (double)(int64_t)h->value)
        str_printf(out, "%.1f", h->value);
    else
        str_printf(out, "%.17g", h->value);
}

static void print_list(Ctx *c, uint32_t n, const Type *const *parts, StrBuf *out)
{
    for (uint32_t i = 0; i < n; i++) {
        str_add(out, i ? ", " : "");
        type_print(c, parts[i], out);
    }
}

static const char *dim_name(void *user, const Atom *a)
{
    (void)user;
    return a->name;
}

void dim_print(const Idx *x, StrBuf *out)
{
    static const IdxPrinter plain = {.name = dim_name};

    idx_print(x, &plain, out);
}

const char *dim_text(Ctx *c, const Idx *x)
{
    StrBuf s = strbuf(c->scratch);

    dim_print(x, &s);
    return s.at;
}

void type_print(Ctx *c, const Type *t, StrBuf *out)
{
    switch (t->kind) {
    case TYPE_TENSOR:
        str_add(out, "Tensor[(");
        for (uint32_t i = 0; i < t->n; i++) {
            str_add(out, i ? ", " : "");
            dim_print(t->dims[i], out);
        }
        str_printf(out, "), %s]", dtype_text(c, t->dtype));
        if (t->halo)
            print_halo(t->halo, out);
        break;
    case TYPE_TUPLE:
        str_addc(out, '(');
        print_list(c, t->n, t->parts, out);
        str_add(out, t->n == 1 ? ",)" : ")");
        break;
    case TYPE_FUNC:
        str_add(out, "fn(");
        print_list(c, t->n, t->parts, out);
        str_add(out, ") -> ");
        type_print(c, t->ret, out);
        break;
    case TYPE_REF:
        str_add(out, "ref[");
        type_print(c, t->parts[0], out);
        str_addc(out, ']');
        break;
    case TYPE_ADT:
        str_add(out, t->name);
        if (t->n) {
            str_addc(out, '[');
            print_list(c, t->n, t->parts, out);
            str_addc(out, ']');
        }
        break;
    case TYPE_VAR: str_add(out, t->name); break;
    }
}

const char *type_text(Ctx *c, const Type *t)
{
    StrBuf s = strbuf(c->scratch);

    if (!t)
        return "an unknown type";
    type_print(c, t, &s);
    return s.at;
}

/* ---- symbolic dimensions -------------------------------------------------------------------- */

typedef struct {
    const char *name;
    int64_t     lo;
    const Idx  *most, *dim;
} DimNode;

static bool dim_equal(const void *node, const void *key)
{
    const DimNode *a = node, *b = key;

    return a->name == b->name && a->lo == b->lo && a->most == b->most;
}

/* Models name dims as they like; in text a dim is an identifier. */
static const char *clean_name(Ctx *c, const char *name)
{
    char *s = arena_printf(c->scratch, "%s%s", name_start(name[0]) ? "" : "d", name);

    for (char *p = s; *p; p++)
        if (!name_char(*p))
            *p = '_';
    return intern(c->strings, s);
}

const Idx *dim_var(Ctx *c, const char *name, int64_t lo, int64_t hi)
{
    return dim_within(c, name, lo, idx_const(c->arith, hi));
}

const Idx *dim_within(Ctx *c, const char *name, int64_t lo, const Idx *most)
{
    DimNode        key = {clean_name(c, name), lo, most, NULL};
    uint64_t       h = hash_mix(hash_mix(PTR_KEY(key.name), (uint64_t)lo), PTR_KEY(most));
    const DimNode *was = intern_find(c->nodes, NODE_DIM, h, dim_equal, &key);

    if (was)
        return was->dim;
    key.dim = idx_atom(c->arith, most->nterms ? atom_within(c->arith, key.name, lo, most)
                                              : atom_var(c->arith, key.name, lo, most->c0));
    intern_add(c->nodes, NODE_DIM, h, arena_dup(c->arena, &key, sizeof key));
    return key.dim;
}

bool is_dim(Ctx *c, const Atom *a)
{
    const Atom *dim;

    return idx_is_atom(dim_within(c, a->name, a->lo, atom_most(c->arith, a)), &dim) && dim == a;
}

void form_mentions(const Idx *x, DimFn *fn, void *user)
{
    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;

        if (a->kind == ATOM_VAR)
            fn(user, a);
        if (a->a)
            form_mentions(a->a, fn, user);
        if (a->b)
            form_mentions(a->b, fn, user);
    }
}

void type_mentions(const Type *t, DimFn *fn, void *user)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (t->kind == TYPE_TENSOR)
            form_mentions(t->dims[i], fn, user);
        else
            type_mentions(t->parts[i], fn, user);
    if (t->ret)
        type_mentions(t->ret, fn, user);
}

void attrs_mentions(const AttrRecord *r, const void *attrs, DimFn *fn, void *user)
{
    for (uint32_t i = 0; r && attrs && i < r->nfields; i++) {
        Dims v = attrs_dims(r, attrs, i);

        for (uint32_t k = 0; k < v.n; k++)
            form_mentions(v.at[k], fn, user);
    }
}
