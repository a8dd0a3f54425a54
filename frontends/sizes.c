/* Sizes that operators are given. */
#include "frontends/calls.h"

#undef build_error
void *build_error(const Build *b, DiagId id, const char *fmt, ...)
{
    StrBuf  s = strbuf(b->c->arena);
    va_list ap;

    str_printf(&s, "%s '%s': ", b->what, b->loc.name);
    va_start(ap, fmt);
    str_vprintf(&s, fmt, ap);
    va_end(ap);
    return diag_error(b->c->diags, id, b->loc, "%s", s.at);
}
#define build_error(...) null_of(build_error(__VA_ARGS__))

bool build_check_shape(const Build *b, Dims shape)
{
    int64_t cells = 1;

    if (shape.n > MAX_RANK)
        return build_error(b, E_UNSUPPORTED, "a shape of %u dimensions", shape.n);
    for (uint32_t i = 0; i < shape.n; i++) {
        if (shape.at[i]->lo < 0)
            return build_error(b, E_DIM, "dimension %u of the shape is %s", i,
                               dim_text(b->c, shape.at[i]));
        if (!checked_mul(cells, idx_usual(shape.at[i]), &cells) || cells > MAX_ELEMS)
            return build_error(b, E_DIM, "the shape is too large");
    }
    return true;
}

bool build_broadcast_dims(const Build *b, Dims x, Dims y, Dims *out)
{
    const Idx *dims[MAX_RANK], *one = idx_const(b->c->arith, 1);

    if (x.n < y.n) {
        Dims other = x;

        x = y;
        y = other;
    }
    if (!build_check_shape(b, x) || !build_check_shape(b, y))
        return false;
    for (uint32_t i = 0; i < x.n; i++) {
        const Idx *d = i < x.n - y.n ? one : y.at[i - (x.n - y.n)];

        dims[i] = x.at[i] == one ? d : x.at[i];
        if (d != one && d != dims[i])
            return build_error(b, E_IMPORT, "%s and %s do not broadcast", dim_text(b->c, dims[i]),
                               dim_text(b->c, d));
    }
    *out = dims_dup(b->c, dims, x.n);
    return true;
}
