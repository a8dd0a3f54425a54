/* Names for values that are used more than once.
 *
 * Prims are interned, so a value used twice is one node; it gets a name at its first use in a
 * statement (`const float t3 = ..`).  What reads memory and stands only in an arm of a select must
 * not be evaluated early: such a select becomes an `if` with a block for each arm, in which the
 * values that the arm alone needs have their names:
 *
 *     float t3;  if (c) { const float t4 = b0[i0]; t3 = t4 * t4; } else { t3 = 0; } */
#include "backends/clike/impl.h"

#include <string.h>

/* Only one of the operands from here on is computed: the last one if nothing says another. */
static uint32_t first_arm(const Prim *p)
{
    if (p->kind == PRIM_SELECT && p->kids[0]->dtype.lanes == 1)
        return 1; /* lanes of both arms are computed where lanes choose */
    return p->kind == PRIM_CASE ? 0 : p->nkids;
}

static void add_loads(Clike *x, const Idx *at, PrimList *out)
{
    for (uint32_t i = 0; i < at->nterms; i++) {
        const Atom *a = at->t[i].atom;

        if (a->a)
            add_loads(x, a->a, out);
        if (a->b)
            add_loads(x, a->b, out);
        if (a->kind == ATOM_LOAD)
            vec_push(x->c->arena, out, (const Prim *)a->load);
    }
}

/* All that is computed when p is, but for its arms: operands, and loads within its indices. */
static PrimList operands(Clike *x, const Prim *p)
{
    PrimList out = {0};

    for (uint32_t i = 0; i < first_arm(p); i++)
        vec_push(x->c->arena, &out, p->kids[i]);
    if (p->kind == PRIM_INDEX || p->kind == PRIM_CASE)
        add_loads(x, p->u.index, &out);
    for (uint32_t i = 0; p->kind == PRIM_LOAD && i < p->u.load.n; i++)
        add_loads(x, p->u.load.index[i], &out);
    return out;
}

static void count_uses(Clike *x, const Prim *p)
{
    uintptr_t n = (uintptr_t)map_get(x->uses, p->id) + 1;

    if (p->kind == PRIM_INT || p->kind == PRIM_FLOAT || dtype_is_handle(p->dtype))
        return;
    map_put(x->uses, p->id, (void *)n);
    if (n == 2 && p->kind != PRIM_INDEX) {
        vec_push(x->c->arena, &x->shared, p);
        map_put(x->bits, p->id, (void *)(uintptr_t)x->shared.n);
    }
    if (n > 1)
        return;
    PrimList of = operands(x, p);
    for (uint32_t i = 0; i < of.n; i++)
        count_uses(x, of.at[i]);
    if (p->kind == PRIM_SHUFFLE) /* once a lane */
        count_uses(x, p->kids[0]);
    for (uint32_t i = first_arm(p); i < p->nkids; i++)
        count_uses(x, p->kids[i]);
}

static const uint64_t *sure(Clike *x, const Prim *p)
{
    uint32_t  words = x->shared.n / 64 + 1;
    uint64_t *set = map_get(x->sure, p->id);
    uintptr_t bit = (uintptr_t)map_get(x->bits, p->id);
    PrimList  of = {0};

    if (set)
        return set;
    set = NEW_ARRAY(x->c->arena, uint64_t, words);
    memset(set, 0, words * sizeof *set);
    map_put(x->sure, p->id, set);
    of = operands(x, p);
    for (uint32_t i = 0; i < of.n; i++) {
        const uint64_t *k = sure(x, of.at[i]);
        for (uint32_t w = 0; w < words; w++)
            set[w] |= k[w];
    }
    for (uint32_t w = 0; w < words && first_arm(p) < p->nkids; w++) {
        uint64_t all = ~UINT64_C(0); /* in every arm */
        for (uint32_t i = first_arm(p); i < p->nkids; i++)
            all &= sure(x, p->kids[i])[w];
        set[w] |= all;
    }
    if (bit)
        set[(bit - 1) / 64] |= UINT64_C(1) << (bit - 1) % 64;
    return set;
}

/* Has p shared values without a name? */
static bool hides(Clike *x, const Prim *p, Map *seen)
{
    if (map_get(x->temps, p->id) || map_get(seen, p->id))
        return false;
    if (map_get(x->bits, p->id))
        return true;
    map_put(seen, p->id, x);
    PrimList of = operands(x, p);
    for (uint32_t i = 0; i < of.n; i++)
        if (hides(x, of.at[i], seen))
            return true;
    for (uint32_t i = first_arm(p); i < p->nkids; i++)
        if (hides(x, p->kids[i], seen))
            return true;
    return false;
}

static const char *new_name(Clike *x)
{
    const char *name = intern_printf(x->c->strings, "t%u", x->next_temp++);

    return x->d->taken ? clike_name(x, name) : name;
}

static void set_name(Clike *x, const Prim *p, const char *name)
{
    map_put(x->temps, p->id, (void *)(uintptr_t)name);
    vec_push(x->c->arena, &x->named, p);
}

static void declare(Clike *x, const Prim *p);

/* Shared values that are computed whenever p is; the last were found deepest, so no arm computes
 * again what is needed anyway. */
static void declare_sure(Clike *x, const Prim *p)
{
    const uint64_t *set = sure(x, p);

    for (uint32_t k = x->shared.n; k-- > 0;)
        if (set[k / 64] >> k % 64 & 1)
            declare(x, x->shared.at[k]); /* but not p, which has been walked */
}

static void print_arm(Clike *x, const Prim *arm, const char *result)
{
    Map     *walked = x->walked;
    uint32_t before = x->named.n;
    StrBuf   s = strbuf(x->c->arena);

    str_add(x->out, "{\n");
    x->depth++;
    x->walked = map_new(x->c->arena);
    declare_sure(x, arm);
    declare(x, arm);
    clike_prim(x, arm, &s);
    clike_indent(x);
    str_printf(x->out, "%s = %s;\n", result, s.n ? s.at : "0");
    while (x->named.n > before)
        map_del(x->temps, x->named.at[--x->named.n]->id);
    x->walked = walked;
    x->depth--;
    clike_indent(x);
    str_add(x->out, "}");
}

/* A select or case as a statement. */
static void declare_choice(Clike *x, const Prim *p)
{
    const char *result = new_name(x);

    clike_indent(x);
    str_printf(x->out, "%s %s;\n", clike_type(x, p->dtype), result);
    clike_indent(x);
    for (uint32_t i = first_arm(p); i + 1 < p->nkids; i++) {
        StrBuf cond = strbuf(x->c->arena);
        if (p->kind == PRIM_SELECT) {
            clike_prim(x, p->kids[0], &cond);
        } else {
            clike_index(x, p->u.index, &cond);
            str_printf(&cond, " == %u", i);
        }
        str_printf(x->out, "if (%s) ", cond.n ? clike_bare(x, cond.at) : "0");
        print_arm(x, p->kids[i], result);
        str_add(x->out, " else ");
    }
    print_arm(x, p->kids[p->nkids - 1], result);
    str_add(x->out, "\n");
    set_name(x, p, result);
}

/* Declare shared values of p, which is computed in any case, operands first. */
static void declare(Clike *x, const Prim *p)
{
    uint32_t first = first_arm(p);
    bool     blocks = false;

    if (p->kind == PRIM_INT || p->kind == PRIM_FLOAT || x->failed || map_get(x->temps, p->id) ||
        map_get(x->walked, p->id))
        return;
    map_put(x->walked, p->id, x);
    PrimList of = operands(x, p);
    for (uint32_t i = 0; i < of.n; i++)
        declare(x, of.at[i]);
    if (first < p->nkids)
        declare_sure(x, p);
    for (uint32_t i = first; i < p->nkids && !blocks; i++)
        blocks = hides(x, p->kids[i], map_new(x->c->arena));
    if (blocks) {
        declare_choice(x, p);
    } else if (map_get(x->bits, p->id)) {
        StrBuf      s = strbuf(x->c->arena);
        const char *name = new_name(x);
        clike_node(x, p, &s);
        clike_indent(x);
        str_printf(x->out, "const %s %s = %s;\n", clike_type(x, p->dtype), name,
                   s.n ? clike_bare(x, s.at) : "0");
        set_name(x, p, name);
    }
}

/* p as text for one statement, its shared values declared before. */
const char *clike_expression(Clike *x, const Prim *p)
{
    StrBuf s = strbuf(x->c->arena);

    count_uses(x, p);
    declare_sure(x, p);
    declare(x, p);
    clike_prim(x, p, &s);
    return s.n ? s.at : "0";
}

void clike_fresh(Clike *x)
{
    x->temps = map_new(x->c->arena);
    x->uses = map_new(x->c->arena);
    x->bits = map_new(x->c->arena);
    x->sure = map_new(x->c->arena);
    x->walked = map_new(x->c->arena);
    x->shared = x->named = (PrimList){0};
}
