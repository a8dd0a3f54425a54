/* TE from text (ir/text/print_te.c shows it), with the expressions and statements of TIR's parser.
 */
#include "ir/te/te.h"
#include "ir/text/parse_tir.h"

#include <string.h>

enum { MAX_TENSORS = 4096 };

static const char *const comb_names[] = {
    [COMB_SUM] = "sum[", [COMB_PROD] = "prod[", [COMB_MAX] = "max[", [COMB_MAXNUM] = "maxnum[",
    [COMB_MIN] = "min[", [COMB_ANY] = "any[",   [COMB_ALL] = "all["};

/* A tensor that is visible, by its buffer. */
typedef struct {
    Parser *p;
    VEC(const Tensor *) tensors;
} Defs;

static void declare_tensor(Defs *d, const char *name, const Tensor *t)
{
    declare_buffer(d->p, name, t->buffer);
    vec_push(d->p->c->scratch, &d->tensors, t);
}

static const Tensor *parse_tensor_name(Defs *d)
{
    const Buffer *b = parse_buffer_name(d->p);

    for (uint32_t i = d->tensors.n; b && i-- > 0;)
        if (d->tensors.at[i]->buffer == b)
            return d->tensors.at[i];
    parse_fail(d->p, "this is no tensor");
    return NULL;
}

static const char *percent_name(Parser *p)
{
    return parse_expect(p, "%") ? parse_word(p) : "";
}

/* A tensor's size is known before any of its cells: it is of numbers and dims, no axis and nothing
 * read from memory. */
static bool of_dims(const Parser *p, const Idx *x)
{
    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;

        if (a->kind == ATOM_LOAD || (a->kind == ATOM_VAR && !is_dim(p->c, a)) ||
            (a->a && !of_dims(p, a->a)) || (a->b && !of_dims(p, a->b)))
            return false;
    }
    return true;
}

static void check_extent(Parser *p, const char *at, const char *name, const Idx *x)
{
    if (p->failed || of_dims(p, x))
        return;
    p->at = at;
    parse_fail(p, "the extent of '%s' depends on more than dims", name);
}

/* A buffer's text as a type; NULL: failed. */
static const Type *parse_type(Parser *p, const char *name, Scope *scope)
{
    const char   *at = p->at;
    const Buffer *b = parse_buffer(p, name);

    for (uint32_t i = 0; b && i < b->ndim; i++)
        check_extent(p, at, name, b->extent[i]);
    if (p->failed)
        return NULL;
    *scope = b->scope;
    if (b->ndim > TE_MAX_AXES) {
        parse_fail(p, "'%s' has more than %d dimensions", name, TE_MAX_AXES);
        return NULL;
    }
    const Type *t = type_tensor(p->c, b->dtype, b->ndim, b->extent);

    return b->halo ? type_with_halo(p->c, t, b->halo) : t;
}

/* `n<1,c<8]`, after the bracket; the names become visible. */
static Axes parse_axes(Parser *p)
{
    const Idx  *extent[TE_MAX_AXES];
    const char *name[TE_MAX_AXES];
    uint32_t    n = 0;

    while (!p->failed && !parse_accept(p, "]")) {
        if (n == TE_MAX_AXES) {
            parse_fail(p, "more than %d axes", TE_MAX_AXES);
            break;
        }
        name[n] = parse_word(p);
        parse_expect(p, "<");
        const char *at = p->at;
        extent[n] = parse_idx(p);
        check_extent(p, at, name[n], extent[n]);
        if (!p->failed && extent[n]->lo < 0)
            parse_fail(p, "the extent of '%s' may be negative", name[n]);
        n++;
        parse_accept(p, ",");
    }
    if (p->failed)
        return (Axes){0};
    Axes a = te_axes(p->c, n, extent, name);

    for (uint32_t i = 0; i < n; i++)
        declare_var(p, name[i], true, a.at[i]);
    return a;
}

/* What a cell is: `: f32 = sum[k<8] body`. */
typedef struct {
    DType       dtype;
    uint32_t    comb; /* COUNT(comb_names): no reduction */
    Axes        raxes;
    const Prim *body;
} CellValue;

static CellValue parse_cell_value(Parser *p)
{
    CellValue v = {0};

    parse_expect(p, ":");
    v.dtype = parse_dtype(p);
    parse_expect(p, "=");
    while (v.comb < COUNT(comb_names) && !parse_accept(p, comb_names[v.comb]))
        v.comb++;
    if (v.comb < COUNT(comb_names))
        v.raxes = parse_axes(p);
    v.body = parse_prim(p, &v.dtype);
    return v;
}

/* The body has the type of the definition's cells, and the combiner takes it. */
static bool has_type(Parser *p, const char *name, const CellValue *v)
{
    bool logical = v->comb == COMB_ANY || v->comb == COMB_ALL;

    if (!dtype_eq(v->body->dtype, v->dtype))
        parse_fail(p, "'%%%s' is %s, its cells are %s", name, dtype_text(p->c, v->dtype),
                   dtype_text(p->c, v->body->dtype));
    else if (v->comb < COUNT(comb_names) && dtype_is_bool(v->dtype) != logical)
        parse_fail(p, "'%%%s' is %s", name, dtype_text(p->c, v->dtype));
    return !p->failed;
}

static void parse_def(Defs *d)
{
    Parser     *p = d->p;
    const char *name = percent_name(p);
    uint32_t    mark = p->names.n;
    Axes        axes = {0};

    if (parse_expect(p, "["))
        axes = parse_axes(p);
    CellValue v = parse_cell_value(p);

    p->names.n = mark;
    if (p->failed || !has_type(p, name, &v))
        return;
    declare_tensor(d, name,
                   v.comb < COUNT(comb_names)
                       ? te_reduce(p->c, name, v.dtype, axes, (Combiner)v.comb, v.raxes, v.body)
                       : te_compute(p->c, name, v.dtype, axes, v.body));
}

/* ---- scans ---- */

static bool is_scan_axis(const Scan *k, ScanPart part, const char *name)
{
    for (uint32_t i = 0; i < k->outer.n; i++)
        if (k->outer.atom[i]->name == name)
            return true;
    return part == SCAN_EACH && k->round->name == name;
}

/* A dimension: `j<8`, an axis of the definition's own, or an index over axes that are there. */
static const Idx *parse_scan_dim(Parser *p, const Scan *k, ScanPart part, Axes *own,
                                 const Idx **extent)
{
    const char *at = p->at, *name = is_word(*at) && !starts_number(at) ? parse_word(p) : NULL;
    bool        fresh = name && *p->at == '<' && !is_scan_axis(k, part, name);
    const Idx  *x = NULL;

    if (!fresh) {
        p->at = at;
        x = parse_idx(p);
        name = "it";
    }
    parse_expect(p, "<");
    at = p->at;
    *extent = parse_idx(p);
    check_extent(p, at, name, *extent);
    if (!p->failed && (*extent)->lo < 0)
        parse_fail(p, "the extent of '%s' may be negative", name);
    if (p->failed || !fresh)
        return x;
    Axes a = te_axes(p->c, 1, extent, &name);

    own->atom[own->n] = a.atom[0];
    own->at[own->n] = a.at[0];
    own->extent[own->n++] = *extent;
    declare_var(p, name, true, a.at[0]);
    return a.at[0];
}

/* The tensor of that name that the scan has begun, with this type; else a new one. */
static const Tensor *parse_scan_tensor(Defs *d, Scan *k, const char *name, DType t, uint32_t n,
                                       const Idx *const *extent)
{
    Parser          *p = d->p;
    const ParseName *known = find_name(p, name, false);

    for (uint32_t i = 0; known && known->buffer && i < k->out.n; i++) {
        const Buffer *b = k->out.at[i]->buffer;
        bool          same = b->ndim == n && dtype_eq(b->dtype, t);

        if (b != known->buffer)
            continue;
        for (uint32_t j = 0; same && j < n; j++)
            same = b->extent[j] == extent[j];
        if (!same)
            parse_fail(p, "'%%%s' has another type above", name);
        return k->out.at[i];
    }
    return te_scan_tensor(p->c, k, name, t, n, extent);
}

static void parse_scan_def(Defs *d, Scan *k, ScanPart part)
{
    Parser     *p = d->p;
    const char *name = percent_name(p);
    uint32_t    mark = p->names.n, n = 0;
    const Idx  *at[TE_MAX_AXES], *extent[TE_MAX_AXES];
    Axes        own = {0};

    parse_expect(p, "[");
    while (!p->failed && !parse_accept(p, "]")) {
        if (n == TE_MAX_AXES) {
            parse_fail(p, "more than %d axes", TE_MAX_AXES);
            return;
        }
        at[n] = parse_scan_dim(p, k, part, &own, &extent[n]);
        n++;
        parse_accept(p, ",");
    }
    CellValue v = parse_cell_value(p);

    p->names.n = mark;
    if (!p->failed && k->outer.n + own.n + 1 > TE_MAX_AXES)
        parse_fail(p, "more than %d axes", TE_MAX_AXES);
    if (p->failed || !has_type(p, name, &v))
        return;
    uint32_t      tensors = k->out.n;
    const Tensor *x = parse_scan_tensor(d, k, name, v.dtype, n, extent);

    if (v.comb < COUNT(comb_names))
        te_scan_reduce(p->c, k, part, x, at, own, (Combiner)v.comb, v.raxes, v.body);
    else
        te_scan_def(p->c, k, part, x, at, own, v.body);
    if (k->out.n > tensors)
        declare_tensor(d, name, x);
}

/* Axes that were declared since `mark` go; tensors stay, from the one numbered `first` on. */
static void end_axes(Defs *d, uint32_t mark, uint32_t first)
{
    d->p->names.n = mark;
    for (uint32_t i = first; i < d->tensors.n; i++)
        declare_buffer(d->p, d->tensors.at[i]->buffer->name, d->tensors.at[i]->buffer);
}

/* What follows the word `scan`: `t<10 [d<2] { start.. each { .. } end.. }`. */
static void parse_scan(Defs *d)
{
    Parser     *p = d->p;
    uint32_t    mark = p->names.n;
    const char *at = p->at, *name = parse_word(p);
    ScanPart    part = SCAN_START;

    parse_expect(p, "<");
    const char *where = p->at;
    const Idx  *rounds = parse_idx(p);
    check_extent(p, where, name, rounds);
    Axes outer = parse_accept(p, "[") ? parse_axes(p) : (Axes){0};

    if (!p->failed && rounds->lo < 0)
        parse_fail(p, "the extent of '%s' may be negative", name);
    if (!p->failed && outer.n >= TE_MAX_AXES)
        parse_fail(p, "more than %d axes", TE_MAX_AXES);
    if (!parse_expect(p, "{"))
        return;
    Scan    *k = te_scan(p->c, outer, name, rounds);
    uint32_t before = d->tensors.n;
    while (!p->failed && !parse_accept(p, "}")) {
        if (part == SCAN_START && parse_accept(p, "each")) {
            uint32_t inner = p->names.n, first = d->tensors.n;

            declare_var(p, name, true, k->t);
            parse_expect(p, "{");
            while (!p->failed && !parse_accept(p, "}"))
                parse_scan_def(d, k, SCAN_EACH);
            end_axes(d, inner, first);
            part = SCAN_END;
            continue;
        }
        parse_scan_def(d, k, part);
        if (d->tensors.n > MAX_TENSORS)
            parse_fail(p, "more than %d tensors", MAX_TENSORS);
    }
    if (!p->failed && !k->out.n)
        parse_fail(p, "a scan without definitions");
    const char *fault = p->failed ? NULL : te_scan_end(p->c, k);
    if (fault) {
        p->at = at;
        parse_fail(p, "%s", fault);
    }
    end_axes(d, mark, before);
}

/* What follows the word `extern`. */
static void parse_extern(Defs *d)
{
    Parser *p = d->p;
    VEC(const Tensor *) outs = {0}, ins = {0};
    Scope scope;

    do {
        const char *name = percent_name(p);

        parse_expect(p, ":");
        const Type *t = parse_type(p, name, &scope);

        if (!t)
            return;
        const Tensor *x = te_extern_out(p->c, name, t);

        declare_tensor(d, name, x);
        vec_push(p->c->scratch, &outs, x);
    } while (parse_accept(p, ",") && outs.n < MAX_TENSORS);
    parse_expect(p, "from");
    parse_expect(p, "(");
    while (!p->failed && !parse_accept(p, ")")) {
        vec_push(p->c->scratch, &ins, parse_tensor_name(d));
        parse_accept(p, ",");
    }
    for (uint32_t i = 0; !p->failed && i < ins.n; i++)
        for (uint32_t k = 0; k < outs.n; k++)
            if (ins.at[i] == outs.at[k])
                parse_fail(p, "a statement from its own result");
    const Stmt *body = parse_braces(p);

    if (!p->failed)
        te_extern(p->c, ins.n, ins.at, outs.n, outs.at, body);
}

static const TeFunc *parse_func(Parser *p)
{
    Defs    d = {.p = p};
    TeFunc *f = NEW(p->c->arena, TeFunc);
    VEC(const Tensor *) params = {0}, outs = {0};
    VEC(const char *) names = {0};

    parse_expect(p, "@");
    f->name = parse_word(p);
    p->labels.n = 0;
    parse_expect(p, "(");
    while (!p->failed && !parse_accept(p, ")")) {
        const char *name = percent_name(p);
        Scope       scope = SCOPE_ARENA;

        parse_expect(p, ":");
        const Type *t = parse_type(p, name, &scope);

        if (!t)
            return NULL;
        const Tensor *x = te_param(p->c, name, t, scope == SCOPE_CONST, NULL);

        declare_tensor(&d, name, x);
        vec_push(p->c->arena, &params, x);
        parse_accept(p, ",");
    }
    parse_expect(p, "->");
    parse_expect(p, "(");
    while (!p->failed && !parse_accept(p, ")")) {
        vec_push(p->c->scratch, &names, percent_name(p));
        parse_accept(p, ",");
    }
    f->loc = parse_loc(p);
    parse_expect(p, "{");
    while (!p->failed && !parse_accept(p, "}")) {
        if (parse_accept(p, "extern"))
            parse_extern(&d);
        else if (parse_accept(p, "scan"))
            parse_scan(&d);
        else
            parse_def(&d);
        if (d.tensors.n > MAX_TENSORS)
            parse_fail(p, "more than %d tensors", MAX_TENSORS);
    }
    for (uint32_t i = 0; !p->failed && i < names.n; i++) {
        const ParseName *n = find_name(p, names.at[i], false);
        const Tensor    *t = NULL;

        for (uint32_t k = d.tensors.n; n && n->buffer && k-- > 0;)
            if (d.tensors.at[k]->buffer == n->buffer)
                t = d.tensors.at[k];
        if (!t)
            parse_fail(p, "the result '%%%s' is not defined", names.at[i]);
        vec_push(p->c->arena, &outs, t);
    }
    f->nparams = params.n;
    f->params = params.at;
    f->nouts = outs.n;
    f->outs = outs.at;
    return f;
}

static bool parse_funcs(Ctx *c, const char *file, Bytes text, bool one, TeFuncs *out)
{
    const char *copy = arena_printf(c->arena, "%.*s", (int)(text.n > INT32_MAX ? 0 : text.n),
                                    text.n ? (const char *)text.at : "");
    Parser      p = {.c = c, .file = file, .text = copy, .at = copy};
    Map        *names = map_new(c->scratch);

    *out = (TeFuncs){0};
    diag_source(c->diags, file, text);
    for (skip_blank(&p); !p.failed && (one || *p.at); skip_blank(&p)) {
        if (one && out->n) {
            if (*p.at)
                parse_fail(&p, "expected the end of the text");
            break;
        }
        while (parse_accept(&p, "dim"))
            parse_dim(&p);
        if (parse_expect(&p, "te")) {
            uint32_t      mark = p.names.n; /* dims stay, tensors are the function's */
            const TeFunc *f = parse_func(&p);
            p.names.n = mark;
            if (f && map_get(names, PTR_KEY(f->name)))
                parse_fail(&p, "function '@%s' is there twice", f->name);
            else if (f)
                map_put(names, PTR_KEY(f->name), (void *)f);
            vec_push(c->arena, out, f);
        }
    }
    if (!p.failed && (size_t)(p.at - copy) != text.n)
        parse_fail(&p, "expected the end of the text");
    if (!p.failed && arith_overflow(c->arith))
        parse_fail(&p, "an index overflows 64 bits");
    return !p.failed;
}

bool te_parse_all(Ctx *c, const char *file, Bytes text, TeFuncs *out)
{
    return parse_funcs(c, file, text, false, out);
}

const TeFunc *te_parse(Ctx *c, const char *file, Bytes text)
{
    TeFuncs all;

    return parse_funcs(c, file, text, true, &all) ? all.at[0] : NULL;
}
