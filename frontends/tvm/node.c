/* What converters ask of a call.  Attributes that the operator does not have are errors, and so are
 * those whose only value is not the one given. */
#include "frontends/tvm/tvm.h"

#include <stdlib.h>
#include <string.h>

const TvValue *tv_attr(const TvNode *n, const char *name)
{
    for (uint32_t i = 0; i < n->nattrs; i++)
        if (!strcmp(n->attrs[i].name, name))
            return n->attrs[i].value.kind == TV_NONE ? NULL : &n->attrs[i].value;
    return NULL;
}

int64_t tv_int(const TvNode *n, const char *name, int64_t fallback)
{
    const TvValue *v = tv_attr(n, name);

    if (v && v->kind == TV_LIST && v->n == 1)
        v = v->list;
    if (!v || v->kind == TV_INT || v->kind == TV_BOOL)
        return v ? v->i : fallback;
    tv_error(n, E_IMPORT, "'%s' is no whole number", name);
    return fallback;
}

bool tv_bool(const TvNode *n, const char *name, bool fallback)
{
    return tv_int(n, name, fallback) != 0;
}

double tv_float(const TvNode *n, const char *name, double fallback)
{
    const TvValue *v = tv_attr(n, name);

    if (!v || v->kind == TV_FLOAT || v->kind == TV_INT)
        return v ? v->f : fallback;
    tv_error(n, E_IMPORT, "'%s' is no number", name);
    return fallback;
}

const char *tv_text(const TvNode *n, const char *name, const char *fallback)
{
    const TvValue *v = tv_attr(n, name);

    if (!v || v->kind == TV_STRING)
        return v ? v->text : fallback;
    tv_error(n, E_IMPORT, "'%s' is no text", name);
    return fallback;
}

typedef VEC(int64_t) IntList;

/* Values are nested as deep as the parser lets them be. */
static bool flatten(Ctx *c, const TvValue *v, IntList *out)
{
    if (v->kind == TV_INT || v->kind == TV_BOOL)
        vec_push(c->arena, out, v->i);
    for (uint32_t i = 0; v->kind == TV_LIST && i < v->n; i++)
        if (!flatten(c, &v->list[i], out))
            return false;
    return v->kind == TV_INT || v->kind == TV_BOOL || v->kind == TV_LIST;
}

bool tv_ints(const TvNode *n, const char *name, Ints *out)
{
    const TvValue *v = tv_attr(n, name);
    IntList        list = {0};

    if (v && !flatten(n->b.c, v, &list))
        return tv_error(n, E_IMPORT, "'%s' is no list of numbers", name);
    *out = (Ints){list.n, list.at};
    return true;
}

bool tv_sizes(const TvNode *n, const char *name, uint32_t count, int64_t fallback, int64_t *out)
{
    Ints v;

    if (!tv_ints(n, name, &v))
        return false;
    if (v.n > 1 && v.n != count)
        return tv_error(n, E_IMPORT, "'%s' has %u numbers for %u dimensions", name, v.n, count);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = !v.n ? fallback : v.at[v.n == 1 ? 0 : i];
        if (out[i] < 0 || out[i] > INT32_MAX)
            return tv_error(n, E_IMPORT, "'%s' has %lld", name, (long long)out[i]);
    }
    return true;
}

bool tv_padding(const TvNode *n, uint32_t count, int64_t *begin, int64_t *end)
{
    Ints v;

    if (!tv_ints(n, "padding", &v))
        return false;
    if (v.n > 1 && v.n != count && v.n != 2 * count)
        return tv_error(n, E_IMPORT, "'padding' has %u numbers for %u dimensions", v.n, count);
    for (uint32_t i = 0; i < count; i++) {
        begin[i] = !v.n ? 0 : v.at[v.n == 1 ? 0 : i];
        end[i] = v.n == 2 * count ? v.at[count + i] : begin[i];
        if (begin[i] < 0 || begin[i] > INT32_MAX || end[i] < 0 || end[i] > INT32_MAX)
            return tv_error(n, E_IMPORT, "'padding' is below 0, or too large");
    }
    return true;
}

bool tv_type(const TvNode *n, const char *name, DType *t)
{
    const char *text = tv_text(n, name, "");

    return !*text || tv_dtype(text, t) ||
           tv_error(n, E_UNSUPPORTED, "'%s' is %s", name, text) != NULL;
}

/* ---- operands that stand for attributes -------------------------------------------------------------- */

bool tv_constant(const TvNode *n, uint32_t i, TvValue *out)
{
    Ctx         *c = n->b.c;
    const Expr  *e = n->in[i]->kind == EXPR_CONST ? n->in[i] : build_fold(&n->b, n->in[i]);
    const Const *k = e ? e->u.constant : NULL;
    int64_t      cells;
    TvValue     *list;

    if (!k || !type_elems(k->type, &cells) || cells > INT32_MAX)
        return tv_error(n, E_UNSUPPORTED, "operand %u is no constant", i) != NULL;
    list = NEW_ARRAY(c->arena, TvValue, (size_t)cells + 1);
    for (int64_t at = 0; at < cells; at++) {
        DType          t = k->type->dtype;
        const uint8_t *cell = k->data.at + (size_t)at * dtype_bytes(t);

        list[at].kind = dtype_is_float(t) ? TV_FLOAT : TV_INT;
        list[at].i = dtype_is_float(t) ? 0 : dtype_get_i(t, cell);
        list[at].f = dtype_is_float(t) ? dtype_get_f(t, cell) : (double)list[at].i;
    }
    *out =
        k->type->n == 0 ? list[0] : (TvValue){.kind = TV_LIST, .n = (uint32_t)cells, .list = list};
    return true;
}

/* ---- records ---------------------------------------------------------------------------------------- */

static void add_value(Ctx *c, const TvValue *v, StrBuf *out)
{
    DType t;

    switch (v->kind) {
    case TV_INT: str_printf(out, "%lld", (long long)v->i); break;
    case TV_BOOL: str_printf(out, "%s", v->i ? "true" : "false"); break;
    case TV_FLOAT: str_printf(out, "%.17g", v->f); break;
    case TV_STRING:
        str_printf(out, "%s", tv_dtype(v->text, &t) ? dtype_text(c, t) : v->text);
        break;
    case TV_LIST:
        for (uint32_t i = 0; i < v->n; i++) {
            str_printf(out, "%s", i ? ", " : "");
            add_value(c, &v->list[i], out);
        }
        break;
    case TV_NONE: break;
    }
}

/* As attrs_set_text reads it: a number is a list of one where one is wanted, and the other way. */
static const char *text_for(Ctx *c, const TvValue *v, AttrType type)
{
    bool   list = type == ATTR_INTS || type == ATTR_DIMS || type == ATTR_FLOATS;
    StrBuf s = strbuf(c->arena);

    if (type == ATTR_BOOL && v->kind == TV_INT)
        return v->i ? "true" : "false";
    str_printf(&s, "%s", list ? "[" : "");
    add_value(c, v, &s);
    str_printf(&s, "%s", list ? "]" : "");
    return s.at;
}

static bool set_field(const TvNode *n, const AttrRecord *r, void *record, const char *field,
                      const TvAttr *a)
{
    for (uint32_t i = 0; r && i < r->nfields; i++)
        if (!strcmp(r->fields[i].name, field)) {
            const char *text = text_for(n->b.c, &a->value, r->fields[i].type);

            return attrs_set_text(n->b.c, r, record, field, text, NULL) ||
                   tv_error(n, E_IMPORT, "'%s' cannot be %s", a->name, text) != NULL;
        }
    BUG("ops.def: the operator has no attribute '%s'", field);
}

void *tv_record(const TvNode *n, const char *op)
{
    const AttrRecord *r = op_find(n->b.c, op)->attrs;
    void             *record = r ? attrs_new(n->b.c, r) : NULL;
    const char       *at = n->row->attrs;
    TvAttrSpec        s;

    while (tv_next_attr(n->b.c, &at, &s))
        for (uint32_t i = 0; s.use == TV_SAME && i < n->nattrs; i++)
            if (n->attrs[i].name == s.name && n->attrs[i].value.kind != TV_NONE &&
                !set_field(n, r, record, s.other, &n->attrs[i]))
                return NULL;
    /* What has no default has to be there. */
    for (uint32_t i = 0; r && i < r->nfields; i++) {
        bool given = r->fields[i].fallback != NULL;

        at = n->row->attrs;
        while (!given && tv_next_attr(n->b.c, &at, &s))
            given = !strcmp(s.other, r->fields[i].name) &&
                    (s.use == TV_READ || tv_attr(n, s.name) != NULL);
        if (!given) {
            tv_error(n, E_IMPORT, "attribute '%s' is missing", r->fields[i].name);
            return NULL;
        }
    }
    return record ? record : arena_alloc(n->b.c->arena, 1);
}

/* ---- checks ----------------------------------------------------------------------------------------- */

static bool check_attr(const TvNode *n, const TvAttr *a)
{
    const char *at = n->row->attrs, *hint;
    uint32_t    before = diag_errors(n->b.c->diags);
    TvAttrSpec  s;

    while (tv_next_attr(n->b.c, &at, &s)) {
        StrBuf text = strbuf(n->b.c->arena);

        if (s.name != a->name)
            continue;
        if (s.use != TV_FIXED || a->value.kind == TV_NONE)
            return true;
        /* JSON has 0 and 1 for both. */
        if (a->value.kind == TV_INT && (!strcmp(s.other, "true") || !strcmp(s.other, "false")))
            str_printf(&text, "%s", a->value.i ? "true" : "false");
        else
            add_value(n->b.c, &a->value, &text);
        return !strcmp(text.n ? text.at : "", s.other) ||
               tv_error(n, E_UNSUPPORTED, "'%s' is %s", a->name, text.n ? text.at : "") != NULL;
    }
    diag_warn(n->b.c->diags, W_UNKNOWN_ATTRIBUTE, n->b.loc, "%s '%s': attribute '%s' is not known",
              n->b.what, n->b.loc.name, a->name);
    if ((hint = tv_unknown_attr(n->b.c, n->row, a->name)))
        diag_hint(n->b.c->diags, "%s", hint);
    return diag_errors(n->b.c->diags) == before;
}

static bool check_operands(const TvNode *n)
{
    if (n->nin < n->row->least || n->nin > n->row->most)
        return tv_error(n, E_IMPORT, "%u operand%s, but it takes %u", n->nin,
                        n->nin == 1 ? "" : "s", n->row->least);
    for (uint32_t i = 0; n->row->takes != TV_MIXED && i < n->nin; i++) {
        const Type *t = n->in[i]->type;
        bool        tuple = t && t->kind == TYPE_TUPLE;

        for (uint32_t k = 0; tuple && k < t->n; k++)
            tuple = t->parts[k]->kind == TYPE_TENSOR;
        if (n->row->takes == TV_TUPLE ? !tuple || !t->n : !t || t->kind != TYPE_TENSOR)
            return tv_error(n, E_IMPORT, "operand %u is no %s", i,
                            n->row->takes == TV_TUPLE ? "tuple of tensors" : "tensor");
    }
    return true;
}

/* ---- images with their channels last ------------------------------------------------------------------ */

/* Convolutions see data in NHWC as NCHW, moved back behind them.  What works on cells, or along one
 * axis, does so before they are moved back, so that the moves of neighbours cancel. */

/* The rank of operands that are moved; 0: none is, or others do not go with it. */
static uint32_t moved_rank(const TvNode *n)
{
    uint32_t rank = 0;

    for (uint32_t i = 0; i < n->nin; i++)
        if (expr_is_tensor(n->in[i]) && build_is_moved(n->in[i]))
            rank = expr_rank(n->in[i]);
    for (uint32_t i = 0; rank && i < n->nin; i++) {
        uint32_t r = expr_rank(n->in[i]);

        if (r > rank || (r < rank && r && rank != IMAGE_RANK))
            return 0;
    }
    return rank;
}

static bool move_cells(TvNode *n)
{
    uint32_t     rank = moved_rank(n);
    const Expr **in = NEW_ARRAY(n->b.c->arena, const Expr *, n->nin + 1);

    for (uint32_t i = 0; rank && i < n->nin; i++) {
        in[i] = rank == IMAGE_RANK            ? build_cells_moved(&n->b, n->in[i])
                : expr_rank(n->in[i]) == rank ? build_channels_first(&n->b, n->in[i])
                                              : n->in[i];
        if (!in[i])
            return false;
    }
    if (rank)
        n->in = in;
    return rank != 0;
}

/* The value that `axis` has without being given. */
static int64_t usual_axis(const TvNode *n)
{
    const AttrRecord *r = n->row->relay ? op_find(n->b.c, n->row->relay)->attrs : NULL;

    for (uint32_t i = 0; r && i < r->nfields; i++)
        if (!strcmp(r->fields[i].name, "axis") && r->fields[i].fallback)
            return strtoll(r->fields[i].fallback, NULL, 10);
    return -1;
}

static bool move_axis(TvNode *n)
{
    const Build *b = &n->b;
    bool         tuple = n->row->takes == TV_TUPLE;
    uint32_t     rank, axis, count = tuple ? n->in[0]->type->n : 1;
    const Expr **parts = NEW_ARRAY(b->c->arena, const Expr *, count), **in, *first = NULL;
    TvAttr      *attrs = NEW_ARRAY(b->c->arena, TvAttr, n->nattrs + 1);
    int64_t      given = tv_int(n, "axis", usual_axis(n));
    uint32_t     nattrs = 0;

    for (uint32_t i = 0; i < count; i++) {
        parts[i] = tuple ? build_proj(b, n->in[0], i) : n->in[0];
        if (parts[i] && build_is_moved(parts[i]))
            first = parts[i];
    }
    rank = first ? expr_rank(first) : 0;
    if (!first || given < -(int64_t)rank || given >= (int64_t)rank ||
        !build_axis(b, given, rank, rank, &axis))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!parts[i] || expr_rank(parts[i]) != rank ||
            !(parts[i] = build_channels_first(b, parts[i])))
            return false;
    for (uint32_t i = 0; i < n->nattrs; i++)
        if (strcmp(n->attrs[i].name, "axis") != 0)
            attrs[nattrs++] = n->attrs[i];
    attrs[nattrs++] =
        (TvAttr){intern(b->c->strings, "axis"), {.kind = TV_INT, .i = axis, .f = (double)axis}};
    in = NEW_ARRAY(b->c->arena, const Expr *, n->nin);
    for (uint32_t i = 0; i < n->nin; i++)
        in[i] = n->in[i];
    in[0] = tuple ? expr_tuple(b->c, count, parts, b->loc) : parts[0];
    n->in = in;
    n->attrs = attrs;
    n->nattrs = nattrs;
    return true;
}

/* A tensor, or the first one of a tuple (nn.batch_norm). */
static const Expr *moved_back(const TvNode *n, const Expr *y)
{
    const Build *b = &n->b;
    const Expr **parts;

    if (!y || y->type->kind != TYPE_TUPLE)
        return build_channels_last(b, y);
    parts = NEW_ARRAY(b->c->arena, const Expr *, y->type->n);
    for (uint32_t i = 0; i < y->type->n; i++)
        parts[i] = i ? build_proj(b, y, i) : build_channels_last(b, build_proj(b, y, i));
    return parts[0] ? expr_tuple(b->c, y->type->n, parts, b->loc) : NULL;
}

const Expr *tv_convert(TvNode *n)
{
    uint32_t    before = diag_errors(n->b.c->diags);
    bool        moved;
    const Expr *y;

    for (uint32_t i = 0; i < n->nattrs; i++)
        check_attr(n, &n->attrs[i]);
    if (!check_operands(n) || diag_errors(n->b.c->diags) != before)
        return NULL;
    moved = n->row->moves == TV_CELLS  ? move_cells(n)
            : n->row->moves == TV_AXIS ? move_axis(n)
                                       : false;
    if (diag_errors(n->b.c->diags) != before)
        return NULL;
    y = n->row->convert(n);
    if (diag_errors(n->b.c->diags) != before)
        return NULL;
    return moved ? moved_back(n, y) : y;
}
