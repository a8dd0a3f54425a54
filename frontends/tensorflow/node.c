/* What converters ask of a node: its attributes, its values, and how images lie. */
#include "frontends/tensorflow/tensorflow.h"

#include <stdlib.h>
#include <string.h>

/* ---- attributes ------------------------------------------------------------------------------------- */

static TfAttrSpec spec_of(const TfNode *n, const char *name)
{
    TfAttrSpec s;

    if (!tf_attr_spec(n->row->schema, name, &s))
        BUG("%s has no attribute '%s'", n->row->name, name);
    return s;
}

/* The fallback as text of its own; NULL: there is none. */
static const char *fallback_of(const TfNode *n, const char *name)
{
    TfAttrSpec s = spec_of(n, name);

    return s.fallback.at ? intern_n(n->b.c->strings, (const char *)s.fallback.at, s.fallback.n)
                         : NULL;
}

bool tf_has_attr(const TfNode *n, const char *name)
{
    return tf_attr(n->op, name) != NULL;
}

int64_t tf_int(const TfNode *n, const char *name)
{
    const TfValueDef *v = tf_attr(n->op, name);
    const char       *text = fallback_of(n, name);

    if (v)
        return v->has_b ? v->b != 0 : v->has_type ? v->type : v->i;
    if (!text)
        return 0; /* survey.c said so */
    return !strcmp(text, "true") ? 1 : strtoll(text, NULL, 10);
}

double tf_float(const TfNode *n, const char *name)
{
    const TfValueDef *v = tf_attr(n->op, name);
    const char       *text = fallback_of(n, name);

    return v ? (double)v->f : text ? strtod(text, NULL) : 0;
}

const char *tf_text(const TfNode *n, const char *name)
{
    const TfValueDef *v = tf_attr(n->op, name);
    const char       *text = fallback_of(n, name);

    if (v)
        return tf_string(n->b.c, v->s);
    return text ? text : "";
}

Ints tf_int_list(const TfNode *n, const char *name)
{
    const TfValueDef *v = tf_attr(n->op, name);
    const char       *text = fallback_of(n, name);
    VEC(int64_t) list = {0};
    char *end;

    if (v)
        return v->list ? (Ints){v->list->i.n, v->list->i.at} : (Ints){0};
    while (text && *text) {
        vec_push(n->b.c->arena, &list, strtoll(text, &end, 10));
        text = *end == ',' ? end + 1 : "";
    }
    return (Ints){list.n, list.at};
}

bool tf_type(const TfNode *n, const char *name, DType *out)
{
    int64_t t = tf_int(n, name);

    return tf_dtype(t, out) ||
           tf_error(n, E_UNSUPPORTED, "%s is %s", name, tf_dtype_name(n->b.c, t));
}

/* ---- images ----------------------------------------------------------------------------------------- */

bool tf_channels_first(TfNode *n, bool *ok)
{
    const char *format = tf_text(n, "data_format");

    *ok = !strcmp(format, "NHWC") || !strcmp(format, "NCHW") || !strcmp(format, "NDHWC") ||
          !strcmp(format, "NCDHW") || tf_error(n, E_UNSUPPORTED, "data_format is '%s'", format);
    return *ok && format[1] == 'C';
}

const Expr *tf_image(TfNode *n, uint32_t i)
{
    bool ok, first = tf_channels_first(n, &ok);

    if (!ok || !tf_rank(n, i, IMAGE_RANK, IMAGE_RANK))
        return NULL;
    return first ? n->in[i] : build_channels_first(&n->b, n->in[i]);
}

bool tf_image_done(TfNode *n, const Expr *y)
{
    bool ok, first = tf_channels_first(n, &ok);

    return ok && tf_done(n, y && !first ? build_channels_last(&n->b, y) : y);
}

/* ---- values ----------------------------------------------------------------------------------------- */

const Expr *tf_folded(const TfNode *n, uint32_t i, const Expr *e)
{
    const Expr *k = !e || e->kind == EXPR_CONST ? NULL : build_fold(&n->b, e);
    const Expr *like = n->in[i];

    if (!k || like->kind != EXPR_CONST)
        return k ? k : e;
    return expr_const(
        n->b.c, const_new(n->b.c, like->u.constant->name, k->type, k->u.constant->data), n->b.loc);
}

bool tf_is_tensor(TfNode *n, const TfValue *v, const char *what)
{
    static const char *const kinds[] = {"nothing", "a tensor", "a variable", "a list of tensors",
                                        "of complex numbers"};

    return v->kind == TF_TENSOR ||
           tf_error(n, E_UNSUPPORTED, "%s is %s, not a tensor", what, kinds[v->kind]);
}

TfValue tf_tensor_value(const Expr *e)
{
    return (TfValue){.kind = e ? TF_TENSOR : TF_NONE, .e = e};
}

bool tf_prepare(TfNode *n)
{
    TfHow how = n->row->how;

    for (uint32_t i = 0; i < n->nin; i++) {
        if (how == TF_PLAIN || how == TF_CELLS || how == TF_AXES)
            if (!tf_is_tensor(n, &n->given[i], arena_printf(n->b.c->arena, "input %u", i)))
                return false;
        n->in[i] = n->given[i].kind == TF_TENSOR ? n->given[i].e : NULL;
    }
    if (how != TF_CELLS && how != TF_AXES)
        return true;
    for (uint32_t i = 0; i < n->nin; i++)
        n->moved |= expr_rank(n->in[i]) == IMAGE_RANK && build_is_moved(n->in[i]);
    for (uint32_t i = 0; i < n->nin && how == TF_CELLS; i++)
        n->moved &= expr_rank(n->in[i]) <= IMAGE_RANK;
    for (uint32_t i = 0; i < n->nin && n->moved; i++) {
        const Expr *x = n->in[i];

        if (how == TF_CELLS)
            x = build_cells_moved(&n->b, x);
        else if (expr_rank(x) == IMAGE_RANK)
            x = build_channels_first(&n->b, x);
        if (x && x != n->in[i] && n->in[i]->kind == EXPR_CONST)
            x = tf_folded(n, i, x);
        if (!(n->in[i] = x))
            return false;
    }
    return true;
}

bool tf_put(TfNode *n, uint32_t i, const Expr *y)
{
    if (i < n->nout)
        n->out[i] = tf_tensor_value(y);
    return y != NULL;
}

bool tf_done(TfNode *n, const Expr *y)
{
    return tf_put(n, 0, y);
}

bool tf_finish(TfNode *n)
{
    for (uint32_t i = 0; i < n->nout && n->moved; i++)
        if (n->out[i].kind == TF_TENSOR && expr_rank(n->out[i].e) == IMAGE_RANK &&
            !(n->out[i].e = build_channels_last(&n->b, n->out[i].e)))
            return false;
    return true;
}

/* ---- what has to be known --------------------------------------------------------------------------- */

bool tf_rank(const TfNode *n, uint32_t i, uint32_t least, uint32_t most)
{
    uint32_t rank = expr_rank(n->in[i]);

    return (rank >= least && rank <= most) ||
           tf_error(n, E_IMPORT, "input %u has %u dimensions", i, rank);
}

bool tf_axis(const TfNode *n, int64_t axis, uint32_t rank, uint32_t *out)
{
    return build_axis(&n->b, axis, rank, n->moved ? IMAGE_RANK : 0, out);
}

static bool unknown(const TfNode *n, uint32_t i)
{
    return tf_error(n, E_UNSUPPORTED, "input %u ('%s') has to be known when it is compiled", i,
                    i < n->op->nin ? n->op->edges[i] : "");
}

bool tf_ints(const TfNode *n, uint32_t i, Ints *out)
{
    return (dtype_is_int(expr_dtype(n->in[i])) && expr_ints(n->b.c, n->in[i], out)) ||
           unknown(n, i);
}

bool tf_number(const TfNode *n, uint32_t i, int64_t *out)
{
    Ints v;

    if (!tf_ints(n, i, &v))
        return false;
    if (v.n != 1)
        return tf_error(n, E_IMPORT, "input %u has %u numbers, not 1", i, v.n);
    *out = v.at[0];
    return true;
}

bool tf_forms(const TfNode *n, uint32_t i, Dims *out)
{
    return (dtype_is_int(expr_dtype(n->in[i])) && build_forms(&n->b, n->in[i], out)) ||
           unknown(n, i);
}

const Idx *tf_bound_dim(TfNode *n, uint32_t i, const Expr *total, const Idx *most)
{
    const char *name = intern_printf(n->b.c->strings, "%s.%u", n->op->name, i);
    const Expr *bind;
    const Idx  *k;

    if (n->scope->looped)
        return tf_error(n, E_UNSUPPORTED, "in a branch or loop");
    if ((k = build_bound_dim(&n->b, &n->im->shapes, name, total, most, &bind)))
        vec_push(n->b.c->arena, &n->im->binds, bind);
    return k;
}
