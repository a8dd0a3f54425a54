/* Buffers from text: `f32[1,8] halo(0:0+1)=0.0 @const`. */
#include "ir/text/parse_tir.h"

#include <string.h>

enum { MAX_HALO = 1 << 24 };

/* One of n words, by its place; n after an error. */
uint32_t parse_one_of(Parser *p, const char *const *words, uint32_t n, const char *what)
{
    const char *at, *word;

    skip_blank(p);
    at = p->at;
    word = parse_word(p);
    for (uint32_t i = 0; i < n && !p->failed; i++)
        if (!strcmp(word, words[i]))
            return i;
    if (!p->failed) {
        const char *best = str_closest(word, words, n);
        p->at = at;
        parse_fail(p, "'%s' is no %s", word, what);
        if (best)
            diag_hint(p->c->diags, "did you mean '%s'?", best);
    }
    return n;
}

static Scope parse_scope(Parser *p)
{
    const char *words[SCOPES];
    uint32_t    i;

    for (i = 0; i < COUNT(words); i++)
        words[i] = scope_text((Scope)i);
    i = parse_one_of(p, words, COUNT(words), "scope");
    return i < COUNT(words) ? (Scope)i : SCOPE_ARENA;
}

static const Halo *parse_halo(Parser *p, uint32_t ndim)
{
    Halo     *h = NEW(p->c->arena, Halo);
    uint32_t *lo = NEW_ARRAY(p->c->arena, uint32_t, ndim + 1);
    uint32_t *hi = NEW_ARRAY(p->c->arena, uint32_t, ndim + 1);

    while (!p->failed && !parse_accept(p, ")")) {
        int64_t d = parse_int(p), a, b;
        parse_expect(p, ":");
        a = parse_int(p);
        parse_expect(p, "+");
        b = parse_int(p);
        if (!p->failed && (d < 0 || d >= ndim))
            parse_fail(p, "a halo of dimension %lld of %u", (long long)d, ndim);
        if (!p->failed && (a < 0 || b < 0 || a > MAX_HALO || b > MAX_HALO))
            parse_fail(p, "a halo of %lld+%lld cells", (long long)a, (long long)b);
        if (p->failed)
            break;
        lo[d] = (uint32_t)a;
        hi[d] = (uint32_t)b;
        parse_accept(p, ",");
    }
    parse_expect(p, "=");
    *h = (Halo){ndim, parse_double(p), lo, hi};
    return h;
}

static const Idx *const *parse_list(Parser *p, const char *close, uint32_t *n)
{
    VEC(const Idx *) v = {0};

    if (!parse_accept(p, close)) {
        do
            vec_push(p->c->arena, &v, parse_idx(p));
        while (parse_accept(p, ",") && v.n < MAX_NDIM);
        parse_expect(p, close);
    }
    *n = v.n;
    return v.at;
}

const Buffer *parse_buffer(Parser *p, const char *name)
{
    Buffer   b = {.name = name, .dtype = DT_U8};
    uint32_t n;

    if (!(b.record = parse_record(p)))
        b.dtype = parse_dtype(p);

    if (!parse_expect(p, "["))
        return NULL;
    b.extent = parse_list(p, "]", &b.ndim);
    for (uint32_t i = 0; i < b.ndim && !p->failed; i++)
        /* Of a product of dimensions that was multiplied out the least is not known. */
        if (b.extent[i]->hi < 0)
            parse_fail(p, "extent %u of '%s' is negative", i, name);
    if (parse_accept(p, "halo("))
        b.halo = parse_halo(p, b.ndim);
    if (parse_accept(p, "strides(")) {
        b.stride = parse_list(p, ")", &n);
        if (!p->failed && n != b.ndim)
            parse_fail(p, "%u strides for %u dimensions", n, b.ndim);
        if (n == 0) /* packed, as far as there is anything */
            b.stride = NULL;
    }
    parse_marks(p, &buffer_mark_table, &b);
    if (!p->failed && b.pitch && b.pitch->dim >= b.ndim)
        parse_fail(p, "a pitch of dimension %u of %u", b.pitch->dim, b.ndim);
    if (parse_accept(p, "alias(")) {
        b.alias = parse_buffer_name(p);
        parse_expect(p, ")");
    }
    if (parse_accept(p, "@"))
        b.scope = parse_scope(p);
    return p->failed ? NULL : buffer_copy(p->c, &b, b);
}
