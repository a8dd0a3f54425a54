/* Indices as text.  `e - k*Div(e,k)` prints as `e%k`, `Div(u,k) - m*Div(u,k*m)` as `u//k%m`.  Terms
 * are printed by falling size of coefficient, then by text, the constant last: the order does not
 * depend on when atoms were made, so printing what was parsed gives the same bytes. */
#include "ir/arith/arith_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- print
 * --------------------------------------------------------------------------------------- */

typedef struct {
    int64_t     coef;
    const char *text;
} Part;

typedef VEC(Part) Parts;

static void print_to(const Idx *x, const IdxPrinter *p, StrBuf *out);

static char *text_of(const Idx *x, const IdxPrinter *p, Arena *a)
{
    StrBuf s = strbuf(a);
    print_to(x, p, &s);
    return s.at ? s.at : arena_printf(a, "%s", "");
}

/* x as an operand of `//`, `%` or `*` on the left: one atom needs no parentheses. */
static char *operand(const Idx *x, const IdxPrinter *p, Arena *a)
{
    bool plain = (x->nterms == 1 && !x->c0 && x->t[0].coef == 1) || (!x->nterms && x->c0 >= 0);
    return plain ? text_of(x, p, a) : arena_printf(a, "(%s)", text_of(x, p, a));
}

static const char *atom_text(const Atom *v, const IdxPrinter *p, Arena *a);

/* Factors by their texts.  On the right of `*` a division is in parentheses: `a*b//2` would be
 * `(a*b)//2`. */
static void print_product(const Atom *v, const IdxPrinter *p, Arena *a, StrBuf *out)
{
    const Atom *f[MAX_FACTORS];
    const char *text[MAX_FACTORS];
    uint32_t    n = factors_of(v, 0, f);

    for (uint32_t i = 0; i < n; i++) {
        const Atom *atom = f[i];
        const char *t = atom_text(atom, p, a);
        uint32_t    at = i;

        for (; at && strcmp(text[at - 1], t) > 0; at--) {
            text[at] = text[at - 1];
            f[at] = f[at - 1];
        }
        text[at] = t;
        f[at] = atom;
    }
    str_add(out, text[0]);
    for (uint32_t i = 1; i < n; i++) {
        bool divides = f[i]->kind == ATOM_DIV || f[i]->kind == ATOM_SYMDIV;

        str_printf(out, divides ? "*(%s)" : "*%s", text[i]);
    }
}

static const char *atom_text(const Atom *v, const IdxPrinter *p, Arena *a)
{
    StrBuf s = strbuf(a);
    switch (v->kind) {
    case ATOM_VAR:
        if (p && p->name)
            str_add(&s, p->name(p->user, v));
        else
            str_printf(&s, "%%%s", v->name);
        break;
    case ATOM_DIV: str_printf(&s, "%s//%" PRId64, operand(v->a, p, a), v->k); break;
    case ATOM_PROD: print_product(v, p, a, &s); break;
    case ATOM_SYMDIV: str_printf(&s, "%s//(%s)", operand(v->a, p, a), text_of(v->b, p, a)); break;
    case ATOM_MIN:
    case ATOM_MAX: {
        const char *x = text_of(v->a, p, a), *y = text_of(v->b, p, a);
        bool        swap = strcmp(x, y) > 0;
        str_printf(&s, "%s(%s, %s)", v->kind == ATOM_MIN ? "min" : "max", swap ? y : x,
                   swap ? x : y);
        break;
    }
    case ATOM_LOAD:
        if (p && p->load)
            p->load(p->user, &s, v->load);
        else
            str_printf(&s, "load.%u", v->id);
        break;
    }
    return s.at;
}

/* A term list that shrinks as groups are recognised.  Which are tried first depends on texts, not
 * on the order of atoms: the same index must print the same wherever it was made. */
typedef struct {
    int64_t           c0;
    uint32_t          n;
    IdxTerm          *t;
    const IdxPrinter *p;
    Arena            *a;
    Map              *texts; /* of atoms that were asked for, by id + 1 */
} Left;

static const char *left_text(Left *left, const Atom *v)
{
    const char *text = map_get(left->texts, v->id + 1u);

    if (!text) {
        text = atom_text(v, left->p, left->a);
        map_put(left->texts, v->id + 1u, (void *)(uintptr_t)text);
    }
    return text;
}

/* left -= q*(e - k*d) if that makes it shorter. */
static bool take(Left *left, int64_t q, uint32_t ne, const IdxTerm *e, int64_t e0, int64_t k,
                 const Atom *d)
{
    Arena   *a = left->a;
    IdxTerm *both = NEW_ARRAY(a, IdxTerm, ne + 1), *rest = NEW_ARRAY(a, IdxTerm, left->n + ne + 1);
    IdxTerm  minus = {-k, d};
    bool     ok, ok2;
    int64_t  c, c0;
    uint32_t n = terms_add(ne, e, 1, 1, &minus, 1, both, &ok);
    uint32_t m = terms_add(left->n, left->t, 1, n, both, -q, rest, &ok2);
    if (!ok || !ok2 || m >= left->n || !checked_mul(e0, q, &c) || !checked_sub(left->c0, c, &c0))
        return false;
    left->c0 = c0;
    left->n = m;
    left->t = rest;
    return true;
}

/* Of the divisors of d that are divisions of the same, the one by the most: at most `below`. */
static const Atom *inner_division(const Left *left, const Atom *d, int64_t below)
{
    const Atom *best = NULL;

    for (uint32_t j = 0; j < left->n; j++) {
        const Atom *z = left->t[j].atom;

        if (z->kind == ATOM_DIV && z != d && z->a == d->a && d->k % z->k == 0 && z->k < below &&
            (!best || z->k > best->k))
            best = z;
    }
    return best;
}

/* The remainder that d, with a coefficient c, is a part of. */
static bool take_mod_of(Left *left, const Atom *d, int64_t c, Part *part)
{
    if (c == INT64_MIN)
        return false;
    if (c % d->k == 0 && take(left, -c / d->k, d->a->nterms, d->a->t, d->a->c0, d->k, d)) {
        char *text = arena_printf(left->a, "%s%%%" PRId64, operand(d->a, left->p, left->a), d->k);
        *part = (Part){-c / d->k, text};
        return true;
    }
    for (const Atom *z = inner_division(left, d, d->k); z; z = inner_division(left, d, z->k)) {
        int64_t m = d->k / z->k;
        IdxTerm one = {1, z};

        if (c % m || !take(left, -c / m, 1, &one, 0, m, d))
            continue;
        char *text = arena_printf(left->a, "%s%%%" PRId64, left_text(left, z), m);
        *part = (Part){-c / m, text};
        return true;
    }
    return false;
}

/* The longest first: what it divides may have remainders in it. */
static bool divides_later(Left *left, const Atom *a, const Atom *b)
{
    const char *x = left_text(left, a), *y = left_text(left, b);
    size_t      nx = strlen(x), ny = strlen(y);

    return nx != ny ? nx < ny : strcmp(x, y) > 0;
}

static bool take_mod(Left *left, Parts *parts)
{
    IdxTerm *divs = NEW_ARRAY(left->a, IdxTerm, left->n + 1);
    uint32_t n = 0;
    Part     part;

    for (uint32_t i = 0; i < left->n; i++) {
        if (left->t[i].atom->kind != ATOM_DIV)
            continue;
        divs[n] = left->t[i];
        for (uint32_t k = n++; k && divides_later(left, divs[k - 1].atom, divs[k].atom); k--) {
            IdxTerm swap = divs[k];
            divs[k] = divs[k - 1];
            divs[k - 1] = swap;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!take_mod_of(left, divs[i].atom, divs[i].coef, &part))
            continue;
        vec_push(left->a, parts, part);
        return true;
    }
    return false;
}

static int by_size(const void *x, const void *y)
{
    const Part *a = x, *b = y;
    uint64_t    ca = a->coef < 0 ? 0 - (uint64_t)a->coef : (uint64_t)a->coef;
    uint64_t    cb = b->coef < 0 ? 0 - (uint64_t)b->coef : (uint64_t)b->coef;
    if (ca != cb)
        return ca < cb ? 1 : -1;
    return strcmp(a->text, b->text);
}

/* Remainders that came of two divisions are one term, or none. */
static void merge_parts(Parts *parts)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < parts->n; i++) {
        uint32_t k = 0;
        int64_t  sum;

        while (k < n && strcmp(parts->at[k].text, parts->at[i].text) != 0)
            k++;
        if (k < n && checked_add(parts->at[k].coef, parts->at[i].coef, &sum) && sum != INT64_MIN)
            parts->at[k].coef = sum;
        else
            parts->at[n++] = parts->at[i];
    }
    parts->n = 0;
    for (uint32_t i = 0; i < n; i++)
        if (parts->at[i].coef)
            parts->at[parts->n++] = parts->at[i];
}

static void print_to(const Idx *x, const IdxPrinter *p, StrBuf *out)
{
    Arena *a = out->arena;
    Left   left = {.c0 = x->c0, .n = x->nterms, .p = p, .a = a, .texts = map_new(a)};
    Parts  parts = {0};
    left.t = x->nterms ? DUP_ARRAY(a, x->t, x->nterms) : NULL;
    while (take_mod(&left, &parts)) {
    }
    for (uint32_t i = 0; i < left.n; i++)
        vec_push(a, &parts, ((Part){left.t[i].coef, left_text(&left, left.t[i].atom)}));
    merge_parts(&parts);
    if (parts.n)
        qsort(parts.at, parts.n, sizeof *parts.at, by_size);
    for (uint32_t i = 0; i < parts.n; i++) {
        int64_t c = parts.at[i].coef;
        if (c < 0)
            str_add(out, "-");
        else if (i)
            str_add(out, "+");
        uint64_t size = c < 0 ? 0 - (uint64_t)c : (uint64_t)c;
        str_add(out, parts.at[i].text);
        if (size != 1)
            str_printf(out, "*%" PRIu64, size);
    }
    if (left.c0 || !parts.n)
        str_printf(out, left.c0 >= 0 && parts.n ? "+%" PRId64 : "%" PRId64, left.c0);
}

void idx_print(const Idx *x, const IdxPrinter *p, StrBuf *out)
{
    print_to(x, p, out);
}

/* ---- parse
 * --------------------------------------------------------------------------------------- */

static void skip(const char **at)
{
    while (**at == ' ' || **at == '\t')
        (*at)++;
}

static bool accept(const char **at, const char *token)
{
    skip(at);
    if (!str_starts(*at, token))
        return false;
    *at += strlen(token);
    return true;
}

static bool is_name(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
           ch == '_' || ch == '.';
}

static const Idx *parse_sum(Arith *A, const char **at, const IdxParser *p, int depth);

static const Idx *parse_pair(Arith *A, const char **at, const IdxParser *p, int depth, bool min)
{
    const Idx *x = parse_sum(A, at, p, depth), *y;
    if (!x || !accept(at, ",") || !(y = parse_sum(A, at, p, depth)) || !accept(at, ")"))
        return NULL;
    return min ? idx_min(A, x, y) : idx_max(A, x, y);
}

static const Idx *parse_factor(Arith *A, const char **at, const IdxParser *p, int depth)
{
    if (depth > 64)
        return NULL;
    skip(at);
    if (accept(at, "(")) {
        const Idx *x = parse_sum(A, at, p, depth + 1);
        return x && accept(at, ")") ? x : NULL;
    }
    if (accept(at, "min("))
        return parse_pair(A, at, p, depth + 1, true);
    if (accept(at, "max("))
        return parse_pair(A, at, p, depth + 1, false);
    if (**at >= '0' && **at <= '9') {
        int64_t v = 0;
        for (; **at >= '0' && **at <= '9'; (*at)++)
            if (!checked_mul(v, 10, &v) || !checked_add(v, **at - '0', &v))
                return NULL;
        return idx_const(A, v);
    }
    if (p->load) {
        const char *start = *at;
        const Idx  *x = p->load(p->user, at);
        if (x)
            return x;
        *at = start;
    }
    const char *start = *at, *name = start + (*start == '%'), *end = name;
    while (is_name(*end))
        end++;
    *at = end;
    const Idx *x = end > name ? p->name(p->user, name, (size_t)(end - name)) : NULL;
    if (!x)
        *at = start;
    return x;
}

static const Idx *parse_product(Arith *A, const char **at, const IdxParser *p, int depth)
{
    const Idx *x = parse_factor(A, at, p, depth), *y;
    while (x) {
        skip(at);
        if (accept(at, "*")) {
            x = (y = parse_factor(A, at, p, depth)) ? idx_mul(A, x, y) : NULL;
        } else if (accept(at, "//")) {
            y = parse_factor(A, at, p, depth);
            x = y && y->hi > 0 ? idx_div(A, x, y) : NULL;
        } else if (accept(at, "%")) {
            y = parse_factor(A, at, p, depth);
            x = y && y->hi > 0 ? idx_mod(A, x, y) : NULL;
        } else {
            break;
        }
    }
    return x;
}

static const Idx *parse_sum(Arith *A, const char **at, const IdxParser *p, int depth)
{
    bool       minus = accept(at, "-");
    const Idx *x = parse_product(A, at, p, depth), *y;
    if (x && minus)
        x = idx_mulc(A, x, -1);
    while (x) {
        bool plus = accept(at, "+");
        skip(at);
        if (!plus && str_starts(*at, "->"))
            break; /* the arrow of a map */
        if (!plus && !accept(at, "-"))
            break;
        y = parse_product(A, at, p, depth);
        x = !y ? NULL : plus ? idx_add(A, x, y) : idx_sub(A, x, y);
    }
    return x;
}

const Idx *idx_parse(Arith *A, const char **at, const IdxParser *p)
{
    return parse_sum(A, at, p, 0);
}
