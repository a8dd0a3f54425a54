/* Lists of tensors of one shape: a tensor with one dimension more in front, as long as the list is
 * when it is made. */
#include "frontends/coreml/coreml.h"

static const Expr *list_of(CmlNode *n)
{
    const Expr *ls = cml_x(n, "ls");

    return ls && !expr_rank(ls) ? cml_error(n, E_IMPORT, "its list is a number") : ls;
}

/* Positions from the end are below 0. */
static const Expr *places(CmlNode *n, const char *name, const Expr *ls, uint32_t rank)
{
    const Build *b = &n->b;
    const Expr  *at = cml_x(n, name), *length;

    if (!at)
        return NULL;
    if (expr_rank(at) != rank)
        return cml_error(n, E_IMPORT, "its input '%s' is %s", name, type_text(b->c, at->type));
    at = build_cast(b, at, DT_I64);
    length = expr_scalar(b->c, DT_I64, (double)build_dim(b, ls, 0));
    return build_where(b, build_by(b, "less", at, 0), build_add(b, at, length), at);
}

bool cml_make_list(CmlNode *n)
{
    int64_t length = cml_int(n, "init_length", 1), dims[MAX_RANK];
    CmlArg *shape = cml_arg(n, "elem_shape");
    DType   t = DT_F32;
    Ints    v;

    if (cml_bool(n, "dynamic_length", true))
        return cml_error(n, E_UNSUPPORTED,
                         "a list that grows: dynamic_length=False makes one of "
                         "init_length");
    if (!shape || !cml_ints(n, "elem_shape", &v) ||
        !cml_dtype_named(cml_text(n, "dtype", "fp32"), &t))
        return cml_error(n, E_UNSUPPORTED, "the shape or the type of its elements is not known");
    if (length < 1 || length > INT32_MAX || v.n + 1 > MAX_RANK)
        return cml_error(n, E_IMPORT, "a list of %lld tensors of %u dimensions", (long long)length,
                         v.n);
    dims[0] = length;
    for (uint32_t i = 0; i < v.n; i++) {
        dims[1 + i] = v.at[i];
        if (v.at[i] < 0)
            return cml_error(n, E_UNSUPPORTED, "elements of %lld cells", (long long)v.at[i]);
    }
    return build_check_shape(&n->b, dims_of_i64(n->b.c, dims, v.n + 1)) &&
           cml_done(n, build_zeros(&n->b, t, v.n + 1, dims));
}

bool cml_list_length(CmlNode *n)
{
    const Expr *ls = list_of(n);

    return ls && cml_done(n, expr_scalar(n->b.c, DT_I32, (double)build_dim(&n->b, ls, 0)));
}

bool cml_list_read(CmlNode *n)
{
    const Expr *ls = list_of(n), *at = ls ? places(n, "index", ls, 0) : NULL;

    return at && cml_done(n, build_take(&n->b, ls, at, 0));
}

bool cml_list_gather(CmlNode *n)
{
    const Expr *ls = list_of(n), *at = ls ? places(n, "indices", ls, 1) : NULL;

    return at && cml_done(n, build_take(&n->b, ls, at, 0));
}

static bool put(CmlNode *n, const char *name, bool many)
{
    const Build *b = &n->b;
    const Expr  *ls = list_of(n), *at = ls ? places(n, name, ls, many) : NULL,
               *v = at ? cml_x(n, "value") : NULL;
    int64_t one = 1;

    if (!v)
        return false;
    at = many ? at : build_reshape(b, at, 1, &one);
    v = many ? v : build_expand_dims(b, v, 0, 1);
    return cml_done(n, build3(b, "scatter_nd", ls, build_expand_dims(b, at, 0, 1), v, NULL));
}

bool cml_list_write(CmlNode *n)
{
    return put(n, "index", false);
}

bool cml_list_scatter(CmlNode *n)
{
    return put(n, "indices", true);
}
