/* Indices, and the numbers of what they are made of. */
#include "backends/clike/impl.h"

static uint32_t number(Clike *x, uint64_t key, uint32_t *next)
{
    uintptr_t n = (uintptr_t)map_get(x->numbers, key);

    if (!n) {
        n = ++*next;
        map_put(x->numbers, key, (void *)n);
    }
    return (uint32_t)n - 1;
}

uint32_t clike_var(Clike *x, const Atom *a)
{
    return number(x, a->id, &x->next_var);
}

uint32_t clike_buffer(Clike *x, const Buffer *b)
{
    return number(x, b->id | 1ull << 32, &x->next_buffer);
}

static void print_atom(Clike *x, const Atom *a, StrBuf *s)
{
    switch (a->kind) {
    case ATOM_VAR: str_printf(s, "i%u", clike_var(x, a)); break;
    case ATOM_DIV:
    case ATOM_SYMDIV: {
        bool safe = a->a->lo >= 0; /* C truncates: the same from 0 on */
        str_add(s, safe ? "(" : "floordiv(");
        clike_index(x, a->a, s);
        str_add(s, safe ? "/" : ", ");
        if (a->kind == ATOM_DIV)
            str_printf(s, "%lld", (long long)a->k);
        else
            clike_index(x, a->b, s);
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
    case ATOM_MAX:
        str_printf(s, "%s((%s)", a->kind == ATOM_MIN ? "min" : "max", x->d->index_type);
        clike_index(x, a->a, s);
        str_printf(s, ", (%s)", x->d->index_type);
        clike_index(x, a->b, s);
        str_add(s, ")");
        break;
    case ATOM_LOAD:
        str_printf(s, "(%s)", x->d->index_type);
        clike_prim(x, a->load, s);
        break;
    }
}

void clike_index(Clike *x, const Idx *i, StrBuf *s)
{
    bool one = i->nterms == 1 ? !i->c0 && i->t[0].coef == 1 : !i->nterms && i->c0 >= 0;

    if (!one)
        str_add(s, "(");
    for (uint32_t t = 0; t < i->nterms; t++) {
        int64_t k = i->t[t].coef, most = k < 0 && k != INT64_MIN ? -k : k;
        if (t)
            str_add(s, k < 0 ? " - " : " + ");
        else if (k < 0)
            str_add(s, "-");
        if (most != 1)
            str_printf(s, "%lld*", (long long)most);
        print_atom(x, i->t[t].atom, s);
    }
    if (i->nterms && i->c0)
        str_printf(s, i->c0 < 0 ? " - %llu" : " + %llu",
                   i->c0 < 0 ? -(unsigned long long)i->c0 : (unsigned long long)i->c0);
    else if (!i->nterms)
        str_printf(s, "%lld", (long long)i->c0);
    if (!one)
        str_add(s, ")");
}
