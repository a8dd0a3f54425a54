/* What converters ask of a node: its attributes, its operands, how images lie. */
#include "frontends/mxnet/mxnet.h"

#include <string.h>

/* ---- attributes ------------------------------------------------------------------------------------- */

const char *mx_text(const MxNode *n, const char *name)
{
    return mx_attr_text(n->b.c, n->op, name);
}

bool mx_has(const MxNode *n, const char *name)
{
    const char *text = mx_attr(n->op, name);

    return text && !mx_is_none(text);
}

bool mx_is(const MxNode *n, const char *name, const char *word)
{
    return !strcmp(mx_text(n, name), word);
}

int64_t mx_int(const MxNode *n, const char *name)
{
    int64_t v = 0;

    mx_parse_int(mx_text(n, name), &v);
    return v;
}

bool mx_bool(const MxNode *n, const char *name)
{
    bool v = false;

    mx_parse_bool(mx_text(n, name), &v);
    return v;
}

double mx_float(const MxNode *n, const char *name)
{
    double v = 0;

    mx_parse_float(mx_text(n, name), &v);
    return v;
}

Ints mx_ints(const MxNode *n, const char *name)
{
    Ints v = {0};

    mx_parse_ints(n->b.c, mx_text(n, name), &v);
    return v;
}

void mx_floats(const MxNode *n, const char *name, uint32_t *count, double **out)
{
    mx_parse_floats(n->b.c, mx_text(n, name), count, out);
}

bool mx_sizes(const MxNode *n, const char *name, uint32_t count, int64_t least, int64_t fallback,
              int64_t *out)
{
    Ints v = mx_ints(n, name);

    for (uint32_t i = 0; i < count; i++)
        out[i] = fallback;
    if (v.n && v.n != count)
        return mx_error(n, E_IMPORT, "'%s' has %u numbers for %u dimensions", name, v.n, count);
    for (uint32_t i = 0; i < v.n; i++) {
        if (v.at[i] < least || v.at[i] > INT32_MAX)
            return mx_error(n, E_IMPORT, "'%s' is %s", name, mx_text(n, name));
        out[i] = v.at[i];
    }
    return true;
}

bool mx_type(const MxNode *n, const char *name, DType *t)
{
    const char *text = mx_text(n, name);

    return mx_is_none(text) || mx_dtype_name(text, t) ||
           mx_error(n, E_UNSUPPORTED, "'%s' is '%s'", name, text);
}

/* ---- results ---------------------------------------------------------------------------------------- */

bool mx_put(MxNode *n, uint32_t i, const Expr *y)
{
    if (i < n->nout)
        n->out[i] = y;
    return y != NULL;
}

bool mx_done(MxNode *n, const Expr *y)
{
    return mx_put(n, 0, y);
}

/* ---- operands --------------------------------------------------------------------------------------- */

bool mx_rank(const MxNode *n, uint32_t i, uint32_t least, uint32_t most)
{
    uint32_t rank = expr_rank(n->in[i]);

    return (rank >= least && rank <= most) ||
           mx_error(n, E_IMPORT, "operand %u has %u dimensions", i, rank);
}

bool mx_axis(const MxNode *n, int64_t axis, uint32_t rank, uint32_t *out)
{
    return build_axis(&n->b, axis, rank, 0, out);
}

bool mx_channels_last(const MxNode *n, uint32_t rank, bool *ok)
{
    const char *layout = mx_text(n, "layout");
    size_t      size = strlen(layout);

    *ok = true;
    if (mx_is_none(layout))
        return false;
    *ok = size == rank ||
          mx_error(n, E_IMPORT, "layout '%s' of data with %u dimensions", layout, rank);
    return layout[size - 1] == 'C';
}

bool mx_image_done(MxNode *n, bool last, const Expr *y)
{
    return mx_done(n, last ? build_channels_last(&n->b, y) : y);
}
