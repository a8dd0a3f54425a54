/* Attribute records: one description (AttrRecord) gives defaults, text, equality and hash.
 *
 * The record itself is a plain C struct; a field is reached through its offset.  Text forms are
 * those of `.relay`: 3, true, 1e-05, "NCHW", f32, [1, 2], [N, 2*N+1]. */
#include "ir/core.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Ints ints_dup(Ctx *c, const int64_t *at, uint32_t n)
{
    return (Ints){n, n ? DUP_ARRAY(c->arena, at, n) : NULL};
}

Ints ints_of(Ctx *c, uint32_t n, ...)
{
    int64_t *v = NEW_ARRAY(c->arena, int64_t, n ? n : 1);
    va_list  ap;

    va_start(ap, n);
    for (uint32_t i = 0; i < n; i++)
        v[i] = va_arg(ap, int);
    va_end(ap);
    return (Ints){n, v};
}

bool ints_all(Ints v, int64_t want)
{
    for (uint32_t i = 0; i < v.n; i++)
        if (v.at[i] != want)
            return false;
    return true;
}

Dims dims_dup(Ctx *c, const Idx *const *at, uint32_t n)
{
    return (Dims){n, n ? DUP_ARRAY(c->arena, at, n) : NULL};
}

Dims dims_of_i64(Ctx *c, const int64_t *at, uint32_t n)
{
    const Idx **v = NEW_ARRAY(c->arena, const Idx *, n ? n : 1);

    for (uint32_t i = 0; i < n; i++)
        v[i] = idx_const(c->arith, at[i]);
    return (Dims){n, v};
}

/* ---- text to value ------------------------------------------------------------------------- */

static const char *skip_space(const char *s)
{
    while (*s == ' ' || *s == '\t' || *s == '\n' || *s == '\r')
        s++;
    return s;
}

static bool take_int(const char **s, int64_t *v)
{
    char *end;

    errno = 0;
    *v = strtoll(*s, &end, 10);
    if (end == *s || errno == ERANGE)
        return false;
    *s = skip_space(end);
    return true;
}

static bool take_float(const char **s, double *v)
{
    char *end;

    *v = strtod(*s, &end);
    if (end == *s)
        return false;
    *s = skip_space(end);
    return true;
}

/* `[a, b, ..]` or `(a, b, ..)`, elements of 8 bytes taken by `ints` or as doubles. */
static bool take_list(Ctx *c, const char *s, bool ints, uint32_t *n, const void **at)
{
    VEC(int64_t) vi = {0};
    VEC(double) vf = {0};
    char close = *s == '[' ? ']' : *s == '(' ? ')' : '\0';

    if (!close)
        return false;
    s = skip_space(s + 1);
    while (*s != close) {
        int64_t i = 0;
        double  f = 0;

        if (ints ? !take_int(&s, &i) : !take_float(&s, &f))
            return false;
        if (ints)
            vec_push(c->arena, &vi, i);
        else
            vec_push(c->arena, &vf, f);
        if (*s == ',')
            s = skip_space(s + 1);
        else if (*s != close)
            return false;
    }
    if (*skip_space(s + 1))
        return false;
    *n = ints ? vi.n : vf.n;
    *at = ints ? (const void *)vi.at : (const void *)vf.at;
    return true;
}

static const Idx *no_name(UNUSED void *user, UNUSED const char *name, UNUSED size_t n)
{
    return NULL;
}

/* `[N, 2*N+1, 768]` */
static bool take_dims(Ctx *c, const char *s, const IdxParser *names, Dims *out)
{
    static const IdxParser numbers = {.name = no_name};
    VEC(const Idx *) v = {0};
    char close = *s == '[' ? ']' : *s == '(' ? ')' : '\0';

    if (!close)
        return false;
    for (s = skip_space(s + 1); *s != close;) {
        const Idx *x = idx_parse(c->arith, &s, names ? names : &numbers);

        if (!x)
            return false;
        vec_push(c->arena, &v, x);
        s = skip_space(s);
        if (*s == ',')
            s = skip_space(s + 1);
        else if (*s != close)
            return false;
    }
    *out = (Dims){v.n, v.at};
    return !*skip_space(s + 1);
}

static bool set_field(Ctx *c, const AttrField *f, void *a, const char *text, const IdxParser *dims)
{
    void       *p = (char *)a + f->offset;
    const char *s = skip_space(text);

    switch (f->type) {
    case ATTR_INT: {
        int64_t v;

        if (!take_int(&s, &v) || *s)
            return false;
        *(int64_t *)p = v;
        return true;
    }
    case ATTR_BOOL:
        if (!strcmp(s, "true") || !strcmp(s, "1"))
            *(bool *)p = true;
        else if (!strcmp(s, "false") || !strcmp(s, "0"))
            *(bool *)p = false;
        else
            return false;
        return true;
    case ATTR_FLOAT: {
        double v;

        if (!take_float(&s, &v) || *s)
            return false;
        *(double *)p = v;
        return true;
    }
    case ATTR_STR: *(const char **)p = intern(c->strings, text); return true;
    case ATTR_DTYPE:
        if (!strcmp(s, "none") || !*s) {
            *(DType *)p = (DType){0};
            return true;
        }
        return dtype_parse(s, (DType *)p);
    case ATTR_INTS: {
        Ints v;

        if (!take_list(c, s, true, &v.n, (const void **)&v.at))
            return false;
        *(Ints *)p = v;
        return true;
    }
    case ATTR_FLOATS: {
        Floats v;

        if (!take_list(c, s, false, &v.n, (const void **)&v.at))
            return false;
        *(Floats *)p = v;
        return true;
    }
    case ATTR_DIMS: return take_dims(c, s, dims, p);
    }
    return false;
}

void *attrs_new(Ctx *c, const AttrRecord *r)
{
    void *a = arena_alloc(c->arena, r->size ? r->size : 1);

    for (uint32_t i = 0; i < r->nfields; i++) {
        const AttrField *f = &r->fields[i];

        if (f->fallback && !set_field(c, f, a, f->fallback, NULL))
            BUG("default '%s' of attribute '%s.%s' does not fit its type", f->fallback, r->name,
                f->name);
        if (!f->fallback && f->type == ATTR_STR)
            *(const char **)((char *)a + f->offset) = intern(c->strings, "");
    }
    return a;
}

bool attrs_set_text(Ctx *c, const AttrRecord *r, void *a, const char *field, const char *text,
                    const IdxParser *dims)
{
    for (uint32_t i = 0; r && i < r->nfields; i++)
        if (!strcmp(r->fields[i].name, field))
            return set_field(c, &r->fields[i], a, text, dims);
    return false;
}

Dims attrs_dims(const AttrRecord *r, const void *a, uint32_t i)
{
    const AttrField *f = &r->fields[i];

    return f->type == ATTR_DIMS ? *(const Dims *)((const char *)a + f->offset) : (Dims){0};
}

bool attrs_static(const AttrRecord *r, const void *a)
{
    for (uint32_t i = 0; r && a && i < r->nfields; i++) {
        Dims v = attrs_dims(r, a, i);

        for (uint32_t k = 0; k < v.n; k++)
            if (!idx_is_const(v.at[k], NULL))
                return false;
    }
    return true;
}

const void *attrs_at(Ctx *c, const AttrRecord *r, const void *a, const IdxEnv *env)
{
    char *out = arena_dup(c->arena, a, r->size);

    for (uint32_t i = 0; i < r->nfields; i++) {
        Dims        v = attrs_dims(r, a, i);
        const Idx **at = NEW_ARRAY(c->arena, const Idx *, v.n + 1);

        for (uint32_t k = 0; k < v.n; k++)
            at[k] = idx_const(c->arith, idx_eval(v.at[k], env));
        if (v.n)
            *(Dims *)(out + r->fields[i].offset) = (Dims){v.n, at};
    }
    return out;
}

/* ---- equality, hash, text ------------------------------------------------------------------- */

static bool field_equal(const AttrField *f, const void *a, const void *b)
{
    const void *p = (const char *)a + f->offset, *q = (const char *)b + f->offset;

    switch (f->type) {
    case ATTR_INT: return *(const int64_t *)p == *(const int64_t *)q;
    case ATTR_BOOL: return *(const bool *)p == *(const bool *)q;
    case ATTR_FLOAT: return !memcmp(p, q, sizeof(double));
    case ATTR_STR: {
        const char *s = *(const char *const *)p, *t = *(const char *const *)q;

        return s == t || (s && t && !strcmp(s, t));
    }
    case ATTR_DTYPE: return dtype_eq(*(const DType *)p, *(const DType *)q);
    case ATTR_INTS: {
        const Ints *x = p, *y = q;

        return x->n == y->n && (!x->n || !memcmp(x->at, y->at, x->n * sizeof *x->at));
    }
    case ATTR_FLOATS: {
        const Floats *x = p, *y = q;

        return x->n == y->n && (!x->n || !memcmp(x->at, y->at, x->n * sizeof *x->at));
    }
    case ATTR_DIMS: { /* equal forms are one */
        const Dims *x = p, *y = q;

        return x->n == y->n && (!x->n || !memcmp(x->at, y->at, x->n * sizeof(const Idx *)));
    }
    }
    return false;
}

bool attrs_equal(const AttrRecord *r, const void *a, const void *b)
{
    if (a == b)
        return true;
    if (!r || !a || !b)
        return false;
    for (uint32_t i = 0; i < r->nfields; i++)
        if (!field_equal(&r->fields[i], a, b))
            return false;
    return true;
}

uint64_t attrs_hash(const AttrRecord *r, const void *a)
{
    uint64_t h = 7;

    for (uint32_t i = 0; r && a && i < r->nfields; i++) {
        const AttrField *f = &r->fields[i];
        const void      *p = (const char *)a + f->offset;

        switch (f->type) {
        case ATTR_INT: h = hash_bytes(p, sizeof(int64_t), h); break;
        case ATTR_BOOL: h = hash_mix(h, *(const bool *)p); break;
        case ATTR_FLOAT: h = hash_bytes(p, sizeof(double), h); break;
        case ATTR_STR: {
            const char *s = *(const char *const *)p;

            h = hash_bytes(s, s ? strlen(s) : 0, h);
            break;
        }
        case ATTR_DTYPE: {
            const DType *t = p;

            h = hash_mix(h, (uint64_t)t->code << 32 | (uint64_t)t->bits << 16 | t->lanes);
            break;
        }
        case ATTR_INTS:
        case ATTR_FLOATS: {
            const Ints *v = p;

            h = hash_mix(hash_bytes(v->at, v->n * sizeof *v->at, h), v->n);
            break;
        }
        case ATTR_DIMS: {
            const Dims *v = p;

            for (uint32_t k = 0; k < v->n; k++)
                h = hash_mix(h, v->at[k]->id);
            h = hash_mix(h, v->n);
            break;
        }
        }
    }
    return h;
}

static void print_float(StrBuf *out, double v)
{
    if (isnan(v))
        str_add(out, "nan");
    else if (isinf(v))
        str_add(out, v < 0 ? "-inf" : "inf");
    else
        str_printf(out, "%.17g", v);
}

/* The shortest text that reads back as the same double. */
static void print_double(StrBuf *out, double v)
{
    char text[40];

    for (int p = 6; p <= 17 && isfinite(v); p++) {
        int n = snprintf(text, sizeof text, "%.*g", p, v);

        if (strtod(text, NULL) == v || p == 17) {
            str_addn(out, text, (size_t)n);
            return;
        }
    }
    print_float(out, v);
}

static void print_string(StrBuf *out, const char *s)
{
    str_addc(out, '"');
    for (; s && *s; s++) {
        if (*s == '"' || *s == '\\')
            str_addc(out, '\\');
        if (*s == '\n')
            str_add(out, "\\n");
        else
            str_addc(out, *s);
    }
    str_addc(out, '"');
}

static void print_field(Ctx *c, const AttrField *f, const void *p, StrBuf *out)
{
    switch (f->type) {
    case ATTR_INT: str_printf(out, "%lld", (long long)*(const int64_t *)p); break;
    case ATTR_BOOL: str_add(out, *(const bool *)p ? "true" : "false"); break;
    case ATTR_FLOAT: print_double(out, *(const double *)p); break;
    case ATTR_STR: print_string(out, *(const char *const *)p); break;
    case ATTR_DTYPE: str_add(out, dtype_text(c, *(const DType *)p)); break;
    case ATTR_INTS: {
        const Ints *v = p;

        str_addc(out, '[');
        for (uint32_t i = 0; i < v->n; i++)
            str_printf(out, "%s%lld", i ? ", " : "", (long long)v->at[i]);
        str_addc(out, ']');
        break;
    }
    case ATTR_FLOATS: {
        const Floats *v = p;

        str_addc(out, '[');
        for (uint32_t i = 0; i < v->n; i++) {
            str_add(out, i ? ", " : "");
            print_double(out, v->at[i]);
        }
        str_addc(out, ']');
        break;
    }
    case ATTR_DIMS: {
        const Dims *v = p;

        str_addc(out, '[');
        for (uint32_t i = 0; i < v->n; i++) {
            str_add(out, i ? ", " : "");
            dim_print(v->at[i], out);
        }
        str_addc(out, ']');
        break;
    }
    }
}

void attrs_print(Ctx *c, const AttrRecord *r, const void *a, StrBuf *out)
{
    const void *defaults;

    if (!r || !a)
        return;
    defaults = attrs_new(c, r);
    for (uint32_t i = 0; i < r->nfields; i++) {
        const AttrField *f = &r->fields[i];

        if (f->fallback && field_equal(f, a, defaults))
            continue;
        str_printf(out, ", %s=", f->name);
        print_field(c, f, (const char *)a + f->offset, out);
    }
}
