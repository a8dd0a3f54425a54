/* Indices, and the names of what they are made of. */
#include "backends/clike/impl.h"

#include <string.h>

/* ---- names ------------------------------------------------------------------------------------- */

const char *clike_name(Clike *x, const char *wanted)
{
    const char *base = c_identifier(x->c->arena, wanted);
    const char *name = intern(x->c->strings, base);

    for (uint32_t n = 1; map_get(x->taken, PTR_KEY(name)) || x->d->taken(name); n++)
        name = intern_printf(x->c->strings, "%s_%u", base, n);
    map_put(x->taken, PTR_KEY(name), x);
    return name;
}

void clike_forget(Clike *x, const Atom *a)
{
    const char *name = map_get(x->names, a->id | ATOM_KEY);

    if (!name || !x->d->taken)
        return;
    map_del(x->taken, PTR_KEY(name));
    map_del(x->names, a->id | ATOM_KEY);
}

static const char *name_of(Clike *x, uint64_t key, const char *name, char letter, uint32_t *next)
{
    const char *text = map_get(x->names, key);

    if (text)
        return text;
    text = x->d->taken && name ? clike_name(x, name)
                               : intern_printf(x->c->strings, "%c%u", letter, (*next)++);
    map_put(x->names, key, (void *)(uintptr_t)text);
    return text;
}

const char *clike_var(Clike *x, const Atom *a)
{
    const char *name = name_of(x, a->id | ATOM_KEY, a->name, 'i', &x->next_var);

    if (!map_get(x->order, a->id))
        map_put(x->order, a->id, (void *)(uintptr_t)(map_count(x->order) + 1));
    return name;
}

const char *clike_buffer(Clike *x, const Buffer *b)
{
    return name_of(x, b->id, b->name, 'b', &x->next_buffer);
}

/* ---- indices ----------------------------------------------------------------------------------- */

static DType index_dtype(const Clike *x)
{
    return x->narrow ? DT_I32 : DT_I64;
}

static void print_atom(Clike *x, const Atom *a, StrBuf *s)
{
    switch (a->kind) {
    case ATOM_VAR: str_add(s, clike_var(x, a)); break;
    case ATOM_DIV:
    case ATOM_SYMDIV: {
        bool safe = a->a->lo >= 0; /* C truncates: the same from 0 on */
        if (safe)
            str_add(s, "(");
        else
            str_printf(s, "%s(", clike_helper(x->c, "floordiv", index_dtype(x)));
        clike_index(x, a->a, s);
        str_add(s, safe ? "/" : ", ");
        if (a->kind == ATOM_DIV)
            str_printf(s, "%lld", (long long)a->k);
        else
            clike_index(x, idx_divisor(x->c->arith, a), s);
        str_add(s, ")");
        break;
    }
    case ATOM_PROD:
        str_add(s, "(");
        clike_index(x, a->a, s);
        str_add(s, "*");
        clike_index(x, a->b, s);
        str_add(s, ")");
        break;
    case ATOM_MIN:
    case ATOM_MAX: {
        const char *fn = a->kind == ATOM_MIN ? "min" : "max";
        str_printf(s, "%s((%s)", x->d->promotes ? clike_helper(x->c, fn, index_dtype(x)) : fn,
                   x->index);
        clike_index(x, a->a, s);
        str_printf(s, ", (%s)", x->index);
        clike_index(x, a->b, s);
        str_add(s, ")");
        break;
    }
    case ATOM_LOAD:
        str_printf(s, "(%s)", x->index);
        clike_prim(x, a->load, s);
        break;
    }
}

typedef struct {
    int64_t     coef;
    const char *text;
    uint32_t    depth;
} Term;

/* How late the last variable that a was made of was declared, 0 where a is a number in the end; of
 * what is loaded it does not say. */
static uint32_t depth_of(const Clike *x, const Atom *a)
{
    uint32_t most = (uint32_t)(uintptr_t)map_get(x->order, a->id);

    if (a->kind == ATOM_LOAD)
        return UINT32_MAX;
    if (map_get(x->unrolled, a->id))
        return 0;
    for (int side = 0; side < 2; side++) {
        const Idx *i = side ? a->b : a->a;

        for (uint32_t n = 0; i && n < i->nterms; n++) {
            uint32_t depth = depth_of(x, i->t[n].atom);

            most = depth > most ? depth : most;
        }
    }
    return most;
}

static uint64_t most_of(int64_t coef)
{
    return coef < 0 ? 0 - (uint64_t)coef : (uint64_t)coef;
}

static bool comes_before(const Term *a, const Term *b)
{
    if (a->depth != b->depth)
        return a->depth < b->depth;
    if (most_of(a->coef) != most_of(b->coef))
        return most_of(a->coef) > most_of(b->coef);
    return strcmp(a->text, b->text) < 0;
}

/* Of c*a + d*(a/k) the remainder of a where that leaves less of a/k, above all nothing: compilers
 * see that all of it is a multiple of c, and load cells that lie side by side at once. */
static void find_remainders(const Idx *i, int64_t *coef, int64_t *remainder)
{
    for (uint32_t n = 0; n < i->nterms; n++) {
        const Atom *div = i->t[n].atom, *of;

        if (div->kind != ATOM_DIV || div->a->lo < 0 || !idx_is_atom(div->a, &of))
            continue;
        for (uint32_t m = 0; m < i->nterms; m++) {
            int64_t whole, left;
            if (i->t[m].atom != of || remainder[m] || !checked_mul(coef[m], div->k, &whole) ||
                !checked_add(coef[n], whole, &left) || most_of(left) >= most_of(coef[n]))
                continue;
            remainder[m] = div->k;
            coef[n] = left;
        }
    }
}

static bool is_power(int64_t n)
{
    return n > 0 && !(n & (n - 1));
}

/* The order in which atoms were made is not to be seen: for people the largest steps first, for
 * compilers what does not change in the inner loops, which they need not look for then. */
static Term *terms_of(Clike *x, const Idx *i, uint32_t *nterms)
{
    Term    *t = NEW_ARRAY(x->c->arena, Term, i->nterms + 1);
    int64_t *coef = NEW_ARRAY(x->c->scratch, int64_t, i->nterms + 1),
            *remainder = NEW_ARRAY(x->c->scratch, int64_t, i->nterms + 1);
    uint32_t last = 0;

    for (uint32_t n = 0; n < i->nterms; n++)
        coef[n] = i->t[n].coef;
    find_remainders(i, coef, remainder);
    for (uint32_t n = 0; n < i->nterms; n++) {
        StrBuf text = strbuf(x->c->arena);

        if (!coef[n])
            continue;
        str_add(&text, remainder[n] ? "(" : "");
        print_atom(x, i->t[n].atom, &text);
        if (is_power(remainder[n]))
            str_printf(&text, " & %lld)", (long long)remainder[n] - 1);
        else if (remainder[n])
            str_printf(&text, "%%%lld)", (long long)remainder[n]);
        /* What is a number in the end comes last, too: loads and stores add one for nothing. */
        t[last] = (Term){coef[n], text.at, x->d->taken ? 0 : depth_of(x, i->t[n].atom) - 1};
        for (uint32_t k = last++; k && comes_before(&t[k], &t[k - 1]); k--) {
            Term swap = t[k];
            t[k] = t[k - 1];
            t[k - 1] = swap;
        }
    }
    *nterms = last;
    return t;
}

void clike_index(Clike *x, const Idx *i, StrBuf *s)
{
    uint32_t nterms;
    Term    *t = terms_of(x, i, &nterms);
    bool     one = nterms == 1 ? !i->c0 && t[0].coef == 1 : !nterms && i->c0 >= 0;

    if (!one)
        str_add(s, "(");
    for (uint32_t n = 0; n < nterms; n++) {
        if (n)
            str_add(s, t[n].coef < 0 ? " - " : " + ");
        else if (t[n].coef < 0)
            str_add(s, "-");
        if (most_of(t[n].coef) != 1)
            str_printf(s, "%llu*", (unsigned long long)most_of(t[n].coef));
        str_add(s, t[n].text);
    }
    if (nterms && i->c0)
        str_printf(s, i->c0 < 0 ? " - %llu" : " + %llu", (unsigned long long)most_of(i->c0));
    else if (!nterms)
        str_printf(s, "%lld", (long long)i->c0);
    if (!one)
        str_add(s, ")");
}
