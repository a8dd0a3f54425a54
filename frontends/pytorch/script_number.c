/* Functions of numbers.
 *
 * Integers are forms over dimensions as long as that is possible.  A number that a run decides is a
 * tensor without dimensions; what is computed from it are operators of tensors. */
#include "frontends/pytorch/script.h"

#include <math.h>
#include <string.h>

#define BUILTIN(name, least, most, fn) {name, least, most, fn},
static const struct {
    const char *name;
    uint32_t    least, most;
    TsBuiltin  *fn;
} builtins[] = {
#include "frontends/pytorch/script.def"
};
#undef BUILTIN

TsBuiltin *ts_builtin(const char *name, uint32_t n)
{
    for (uint32_t i = 0; i < COUNT(builtins); i++)
        if (!strcmp(builtins[i].name, name) && n >= builtins[i].least && n <= builtins[i].most)
            return builtins[i].fn;
    return NULL;
}

/* ---- what all of them need ---------------------------------------------------------------------------- */

static bool done(TsCall *k, TsValue v)
{
    *k->out = v;
    return true;
}

static bool pass(TsCall *k)
{
    k->pass = true;
    return true;
}

static bool numbers(const TsCall *k)
{
    for (uint32_t i = 0; i < k->n; i++)
        if (!ts_is_number(&k->at[i]))
            return false;
    return true;
}

/* Numbers, among tensors of one cell that are known: what sizes become where a module was traced.
 */
static bool known_tensor(TsCall *k, TsValue *v)
{
    Build       b = {.c = k->f->s->c, .loc = k->f->s->loc, .what = "number"};
    const Expr *e = v->kind == TS_TENSOR ? v->t->e : NULL, *fold;

    if (!e || expr_rank(e) != 0 || !(fold = build_fold(&b, e)))
        return false;
    *v = ts_number(k->f->s, fold);
    return true;
}

static bool as_numbers(TsCall *k)
{
    TsValue *at = DUP_ARRAY(k->f->s->c->arena, k->at, k->n + 0u);
    bool     any = false;

    if (numbers(k))
        return true;
    for (uint32_t i = 0; i < k->n; i++)
        any |= ts_is_number(&at[i]);
    for (uint32_t i = 0; i < k->n; i++)
        if (!any || (!ts_is_number(&at[i]) && !known_tensor(k, &at[i])))
            return false;
    k->at = at;
    return true;
}

/* By the operator of tensors; the result is a number. */
static bool by_run(TsCall *k, const char *target)
{
    TsValue     v;
    const Expr *e;

    if (!ts_operator(k->f, target, k->n, k->at, k->names, &v))
        return false;
    if (v.kind != TS_TENSOR)
        return done(k, v);
    return (e = ts_read(k->f, &v)) && done(k, ts_number(k->f->s, e));
}

static const char *op_name(const TsCall *k)
{
    return strrchr(k->name, '.') + 1;
}

static const char *aten_name(TsCall *k)
{
    const char *op = op_name(k);

    return !strcmp(op, "floordiv") ? "aten.floor_divide"
                                   : intern_printf(k->f->s->c->strings, "aten.%s", op);
}

/* ---- arithmetic --------------------------------------------------------------------------------------- */

/* NULL: it is none, or not known. */
static const Idx *form_arithmetic(TsCall *k, const char *op)
{
    Arith     *A = k->f->s->c->arith;
    const Idx *x = k->at[0].form, *y = k->at[1].form;
    int64_t    a, b, r = 1;

    if (!strcmp(op, "add"))
        return idx_add(A, x, y);
    if (!strcmp(op, "sub"))
        return idx_sub(A, x, y);
    if (!strcmp(op, "mul"))
        return idx_mul(A, x, y);
    if (str_starts(op, "floor"))
        return y->lo > 0 ? idx_div(A, x, y) : NULL;
    if (!strcmp(op, "remainder"))
        return y->lo > 0 ? idx_mod(A, x, y) : NULL;
    if (!strcmp(op, "pow") && idx_is_const(x, &a) && idx_is_const(y, &b) && b >= 0 && b < 64) {
        for (int64_t i = 0; i < b; i++)
            if (!checked_mul(r, a, &r))
                return NULL;
        return idx_const(A, r);
    }
    return NULL;
}

static bool float_arithmetic(const char *op, double x, double y, double *out)
{
    if (!strcmp(op, "add"))
        *out = x + y;
    else if (!strcmp(op, "sub"))
        *out = x - y;
    else if (!strcmp(op, "mul"))
        *out = x * y;
    else if (!strcmp(op, "div") && y != 0)
        *out = x / y;
    else if (str_starts(op, "floor") && y != 0)
        *out = floor(x / y);
    else if (!strcmp(op, "remainder") && y != 0)
        *out = x - floor(x / y) * y;
    else if (!strcmp(op, "pow"))
        *out = pow(x, y);
    else
        return false;
    return true;
}

bool ts_arithmetic(TsCall *k)
{
    const char *op = op_name(k);
    const Idx  *form;
    double      x, y, r;
    bool        ints;

    if (!as_numbers(k))
        return pass(k);
    if (k->n != 2)
        return by_run(k, aten_name(k));
    ints = k->at[0].form && k->at[1].form;
    if (ints && (form = form_arithmetic(k, op)))
        return done(k, ts_form(form));
    if (ts_known_float(&k->at[0], &x) && ts_known_float(&k->at[1], &y)) {
        if (!float_arithmetic(op, x, y, &r))
            return ts_error(k->f, E_IMPORT, "%s of %g and %g", k->name, x, y);
        if (ints && strcmp(op, "div") != 0 && strcmp(op, "pow") != 0)
            return done(k, ts_int(k->f->s, (int64_t)r));
        return done(k, ts_float(r));
    }
    return by_run(k, aten_name(k));
}

/* Of lists, too, and of texts. */
bool ts_add(TsCall *k)
{
    const TsValue *x = &k->at[0], *y = &k->at[1];
    Script        *s = k->f->s;

    if (x->kind == TS_STRING && y->kind == TS_STRING)
        return done(k, ts_text(intern_printf(s->c->strings, "%s%s", x->text, y->text)));
    if (!x->items || !y->items || x->kind != y->kind)
        return ts_arithmetic(k);
    *k->out = ts_items(s, x->kind, x->items->list.n, x->items->list.at);
    for (uint32_t i = 0; i < y->items->list.n; i++)
        vec_push(s->c->arena, &k->out->items->list, y->items->list.at[i]);
    return true;
}

enum { MOST_REPEATED = 1 << 16 };

/* [x] * n */
bool ts_mul(TsCall *k)
{
    const TsValue *x = &k->at[0];
    int64_t        n;

    if (x->kind != TS_LIST)
        return ts_arithmetic(k);
    if (!ts_known_int(&k->at[1], &n) || n * (int64_t)x->items->list.n > MOST_REPEATED ||
        n > MOST_REPEATED)
        return ts_error(k->f, E_UNSUPPORTED, "a list that is repeated very often");
    *k->out = ts_items(k->f->s, TS_LIST, 0, NULL);
    for (int64_t r = 0; r < n; r++)
        for (uint32_t i = 0; i < x->items->list.n; i++)
            vec_push(k->f->s->c->arena, &k->out->items->list, x->items->list.at[i]);
    return true;
}

bool ts_negative(TsCall *k)
{
    const TsValue *x = &k->at[0];

    if (!ts_is_number(x))
        return pass(k);
    if (x->form)
        return done(k, ts_form(idx_mulc(k->f->s->c->arith, x->form, -1)));
    return x->e ? by_run(k, "aten.neg") : done(k, ts_float(-x->f));
}

/* floor and ceil of a number are integers. */
bool ts_function_of(TsCall *k)
{
    const char *op = op_name(k);
    double      x, r;

    if (!as_numbers(k))
        return pass(k);
    if (!ts_known_float(&k->at[0], &x))
        return by_run(k, aten_name(k));
    r = !strcmp(op, "abs")     ? fabs(x)
        : !strcmp(op, "floor") ? floor(x)
        : !strcmp(op, "ceil")  ? ceil(x)
        : !strcmp(op, "round") ? nearbyint(x)
        : !strcmp(op, "sqrt")  ? sqrt(x)
        : !strcmp(op, "exp")   ? exp(x)
        : !strcmp(op, "log")   ? log(x)
        : !strcmp(op, "sin")   ? sin(x)
                               : cos(x);
    if ((!strcmp(op, "floor") || !strcmp(op, "ceil") || (!strcmp(op, "abs") && k->at[0].form)) &&
        fabs(r) < 0x1p53)
        return done(k, ts_int(k->f->s, (int64_t)r));
    return done(k, ts_float(r));
}

static bool extreme(TsCall *k, bool least, const TsValue *x, const TsValue *y, TsValue *out)
{
    Arith *A = k->f->s->c->arith;
    double a, b;

    if (x->form && y->form)
        *out = ts_form(least ? idx_min(A, x->form, y->form) : idx_max(A, x->form, y->form));
    else if (ts_known_float(x, &a) && ts_known_float(y, &b))
        *out = ts_float(least ? fmin(a, b) : fmax(a, b));
    else
        return ts_error(k->f, E_UNSUPPORTED, "%s of numbers that a run decides", k->name);
    return true;
}

bool ts_extreme(TsCall *k)
{
    bool           least = str_ends(k->name, "min");
    uint32_t       n = k->n;
    const TsValue *at = k->at;

    if (n == 1 && at->items) {
        n = at->items->list.n;
        at = at->items->list.at;
    }
    for (uint32_t i = 0; i < n; i++)
        if (!ts_is_number(&at[i]))
            return ts_error(k->f, E_UNSUPPORTED, "%s of %s", k->name,
                            ts_kind_text(k->f->s, &at[i]));
    if (n == 0)
        return ts_error(k->f, E_IMPORT, "%s of nothing", k->name);
    *k->out = at[0];
    for (uint32_t i = 1; i < n; i++)
        if (!extreme(k, least, k->out, &at[i], k->out))
            return false;
    return true;
}

/* Numbers, or tensors that the row of that name takes. */
bool ts_extreme_of(TsCall *k)
{
    k->pass = !numbers(k);
    return k->pass || ts_extreme(k);
}

/* ---- comparisons --------------------------------------------------------------------------------------- */

/* -1, 0, 1: always; 2: that hangs on dimensions. */
static int order(TsCall *k, const TsValue *x, const TsValue *y)
{
    const Idx *d = idx_sub(k->f->s->c->arith, x->form, y->form);

    return d->hi < 0 ? -1 : d->lo > 0 ? 1 : d->lo == 0 && d->hi == 0 ? 0 : 2;
}

static bool holds(const char *op, int order)
{
    return !strcmp(op, "eq")   ? order == 0
           : !strcmp(op, "ne") ? order != 0
           : !strcmp(op, "lt") ? order < 0
           : !strcmp(op, "le") ? order <= 0
           : !strcmp(op, "gt") ? order > 0
                               : order >= 0;
}

/* Bounds may decide what the difference does not: 1 <= n decides n >= 0. */
static bool decided(TsCall *k, const char *op, bool *out)
{
    const Idx *d = idx_sub(k->f->s->c->arith, k->at[0].form, k->at[1].form);
    bool low = holds(op, d->lo < 0 ? -1 : d->lo > 0), high = holds(op, d->hi < 0 ? -1 : d->hi > 0);
    bool between = d->lo < 0 && d->hi > 0 ? holds(op, 0) : low;

    *out = low;
    return low == high && between == low;
}

static bool compare_lists(TsCall *k, const char *op)
{
    const TsItems *x = k->at[0].items, *y = k->at[1].items;
    bool           same = x->list.n == y->list.n;

    for (uint32_t i = 0; same && i < x->list.n; i++) {
        const TsValue *a = &x->list.at[i], *b = &y->list.at[i];

        if (a->kind == TS_INT && b->kind == TS_INT && a->form && b->form) {
            int o = order(k, a, b);

            if (o == 2)
                return ts_error(k->f, E_UNSUPPORTED, "lists of sizes that hang on dimensions");
            same = o == 0;
        } else {
            same = ts_same(a, b);
        }
    }
    return done(k, ts_bool(k->f->s, same == !strcmp(op, "eq")));
}

/* Does it ask whether a size is 0, or above it? */
static void note_size(const char *op, const TsValue *x, const TsValue *y, TsValue *out)
{
    int64_t zero;

    if (out->kind != TS_BOOL || !out->e || !x->form || !y->form || !idx_is_const(y->form, &zero) ||
        zero != 0 || x->form->lo != 0)
        return;
    out->empty = !strcmp(op, "eq") || !strcmp(op, "le");
    if (out->empty || !strcmp(op, "ne") || !strcmp(op, "gt"))
        out->size = x->form;
}

bool ts_compare(TsCall *k)
{
    const char    *op = op_name(k);
    const TsValue *x = &k->at[0], *y = &k->at[1];
    bool           yes, equality = !strcmp(op, "eq") || !strcmp(op, "ne");
    double         a, b;

    if (equality && x->kind == TS_STRING && y->kind == TS_STRING)
        return done(k, ts_bool(k->f->s, !strcmp(x->text, y->text) == !strcmp(op, "eq")));
    if (equality && x->kind == TS_DEVICE)
        return done(k, ts_bool(k->f->s, !strcmp(op, "eq")));
    if (equality && x->items && y->items)
        return compare_lists(k, op);
    if (!as_numbers(k))
        return pass(k);
    x = &k->at[0];
    y = &k->at[1];
    if (x->form && y->form && decided(k, op, &yes))
        return done(k, ts_bool(k->f->s, yes));
    if (ts_known_float(x, &a) && ts_known_float(y, &b))
        return done(k, ts_bool(k->f->s, holds(op, a < b ? -1 : a > b)));
    if (!by_run(k, aten_name(k)))
        return false;
    note_size(op, x, y, k->out);
    return true;
}

bool ts_truth(Frame *f, TsValue *v)
{
    Script *s = f->s;
    TsValue args[2], zero = ts_int(s, 0);
    TsCall  k = {f, "torch.ne", 2, args, NULL, v, false};

    if (v->kind == TS_TENSOR) {
        const Expr *e = ts_read(f, v);
        Build       b = {.c = s->c, .loc = s->loc, .what = "bool"};

        if (!e)
            return false;
        if (!expr_single(e))
            return ts_error(f, E_IMPORT, "a condition is %s", type_text(s->c, e->type));
        *v = ts_number(s, build_reshape(&b, e, 0, NULL));
    }
    if (v->kind == TS_UNKNOWN)
        return ts_error(f, E_UNSUPPORTED, "an operator that is not supported decides what is run");
    if (v->kind == TS_BOOL || f->raised)
        return true;
    if (v->kind == TS_NONE || v->kind == TS_STRING || v->items) {
        *v = ts_bool(s, v->items ? v->items->list.n > 0 : v->kind == TS_STRING && *v->text);
        return true;
    }
    if (!ts_is_number(v))
        return ts_error(f, E_IMPORT, "%s as a condition", ts_kind_text(s, v));
    args[0] = *v;
    args[1] = zero;
    return ts_compare(&k);
}

bool ts_not(TsCall *k)
{
    bool yes;

    if (!ts_truth(k->f, &k->at[0]))
        return false;
    if (ts_known_bool(&k->at[0], &yes))
        return done(k, ts_bool(k->f->s, !yes));
    return by_run(k, "aten.logical_not");
}

bool ts_logic(TsCall *k)
{
    bool x, y;
    char op = k->name[strlen("torch.__")];

    if (k->at[0].kind != TS_BOOL || k->at[1].kind != TS_BOOL)
        return pass(k);
    if (ts_known_bool(&k->at[0], &x) && ts_known_bool(&k->at[1], &y))
        return done(k, ts_bool(k->f->s, op == 'a' ? x && y : op == 'o' ? x || y : x != y));
    return by_run(k, op == 'a'   ? "aten.logical_and"
                     : op == 'o' ? "aten.logical_or"
                                 : "aten.logical_xor");
}

bool ts_is(TsCall *k)
{
    const TsValue *x = &k->at[0], *y = &k->at[1];
    bool same = x->kind == TS_NONE || y->kind == TS_NONE ? x->kind == y->kind : ts_same(x, y);

    return done(k, ts_bool(k->f->s, same == !strcmp(k->name, "torch.__is__")));
}

/* ---- conversions --------------------------------------------------------------------------------------- */

bool ts_to_bool(TsCall *k)
{
    *k->out = k->at[0];
    return ts_truth(k->f, k->out);
}

/* A number of the kind t out of one cell. */
static bool cell(TsCall *k, DType t)
{
    Script     *s = k->f->s;
    Build       b = {.c = s->c, .loc = s->loc, .what = "number"};
    const Expr *e = ts_read(k->f, &k->at[0]);

    if (!e)
        return false;
    if (!expr_single(e))
        return ts_error(k->f, E_IMPORT, "a number is made of %s", type_text(s->c, e->type));
    e = build_reshape(&b, e, 0, NULL);
    return done(k, ts_number(s, t.bits ? build_cast(&b, e, t) : e));
}

bool ts_to_int(TsCall *k)
{
    const TsValue *x = &k->at[0];

    if (x->kind == TS_FLOAT && !x->e) {
        if (!(fabs(x->f) < 0x1p62))
            return ts_error(k->f, E_IMPORT, "an integer is made of %g", x->f);
        return done(k, ts_int(k->f->s, (int64_t)x->f));
    }
    if (ts_is_number(x) && x->form)
        return done(k, ts_form(x->form));
    return cell(k, DT_I64);
}

bool ts_to_float(TsCall *k)
{
    double v;

    if (k->at[0].kind == TS_STRING)
        return done(k, ts_float(!strcmp(k->at[0].text, "inf")    ? INFINITY
                                : !strcmp(k->at[0].text, "-inf") ? -INFINITY
                                                                 : NAN));
    return ts_known_float(&k->at[0], &v) ? done(k, ts_float(v)) : cell(k, DT_F64);
}

bool ts_to_number(TsCall *k)
{
    return ts_is_number(&k->at[0]) ? done(k, k->at[0]) : cell(k, (DType){0});
}

bool ts_itself(TsCall *k)
{
    return done(k, k->at[0]);
}

/* ---- tensors of numbers ---------------------------------------------------------------------------------- */

/* The cells of nested lists, and their sizes. */
typedef struct {
    VEC(TsValue) cells;
    int64_t  dims[MAX_RANK];
    uint32_t rank;
} Nested;

static bool gather(TsCall *k, Nested *r, const TsValue *v, uint32_t depth)
{
    if (v->kind != TS_LIST) {
        vec_push(k->f->s->c->arena, &r->cells, *v);
        return (ts_is_number(v) && depth == r->rank) ||
               ts_error(k->f, E_UNSUPPORTED, "a tensor is made of %s", ts_kind_text(k->f->s, v));
    }
    if (depth == r->rank) {
        if (r->rank == MAX_RANK || r->cells.n)
            return ts_error(k->f, E_IMPORT, "a tensor is made of lists of several depths");
        r->dims[r->rank++] = v->items->list.n;
    }
    if (r->dims[depth] != v->items->list.n)
        return ts_error(k->f, E_IMPORT, "a tensor is made of lists of several lengths");
    for (uint32_t i = 0; i < v->items->list.n; i++)
        if (!gather(k, r, &v->items->list.at[i], depth + 1))
            return false;
    return true;
}

static const TsValue *named_arg(const TsCall *k, const char *name, uint32_t place)
{
    for (uint32_t i = 0; i < k->n; i++)
        if (k->names && k->names[i] && !strcmp(k->names[i], name))
            return &k->at[i];
    return place < k->n && !(k->names && k->names[place]) ? &k->at[place] : NULL;
}

/* tensor() makes another one of a tensor, as_tensor() only of another type. */
static bool copied(TsCall *k, const TsValue *type)
{
    Build       b = {.c = k->f->s->c, .loc = k->f->s->loc, .what = "tensor"};
    const Expr *e = ts_read(k->f, &k->at[0]);
    int64_t     number;
    DType       t;

    if (!e)
        return false;
    t = expr_dtype(e);
    if (type && ts_known_int(type, &number) && !ts_scalar_type(number, &t))
        return ts_error(k->f, E_UNSUPPORTED, "element type %lld", (long long)number);
    if (!strcmp(k->name, "torch.as_tensor") && dtype_eq(t, expr_dtype(e)))
        return done(k, k->at[0]);
    return (e = build_cast(&b, e, t)) && done(k, ts_tensor(k->f->s, e));
}

bool ts_make_tensor(TsCall *k)
{
    Script        *s = k->f->s;
    Build          b = {.c = s->c, .loc = s->loc, .what = "tensor"};
    Nested         r = {.rank = 0};
    const TsValue *type = named_arg(k, "dtype", 1);
    DType          t = DT_BOOL;
    int64_t        number;
    const Expr   **cells, *e;

    if (k->at[0].kind == TS_TENSOR)
        return copied(k, type);
    if (!gather(k, &r, &k->at[0], 0))
        return false;
    for (uint32_t i = 0; i < r.cells.n; i++)
        t = pt_join(t, r.cells.at[i].kind == TS_FLOAT ? DT_F32
                       : r.cells.at[i].kind == TS_INT ? DT_I64
                                                      : DT_BOOL);
    t = r.cells.n ? t : DT_F32;
    if (type && ts_known_int(type, &number) && !ts_scalar_type(number, &t))
        return ts_error(k->f, E_UNSUPPORTED, "element type %lld", (long long)number);
    cells = NEW_ARRAY(s->c->arena, const Expr *, r.cells.n + 1);
    for (uint32_t i = 0; i < r.cells.n; i++)
        cells[i] = build_reshape(&b, build_cast(&b, ts_number_expr(k->f, &r.cells.at[i]), t), 1,
                                 (int64_t[]){1});
    e = r.cells.n ? build_concat(&b, r.cells.n, cells, 0) : build_zeros(&b, t, 1, (int64_t[]){0});
    e = build_reshape(&b, e, r.rank, r.dims);
    if (e && build_fold(&b, e))
        e = build_fold(&b, e);
    return e && done(k, ts_tensor(s, e));
}

/* ---- ranges ----------------------------------------------------------------------------------------------- */

static bool range(TsCall *k, int64_t *from, int64_t *to, int64_t *step)
{
    return (ts_known_int(&k->at[0], from) && ts_known_int(&k->at[1], to) &&
            ts_known_int(&k->at[2], step) && *step != 0) ||
           ts_error(k->f, E_UNSUPPORTED, "a range whose bounds a run decides");
}

bool ts_range_length(TsCall *k)
{
    int64_t from, to, step, n;

    if (!range(k, &from, &to, &step))
        return false;
    n = step > 0 ? (to > from ? (to - from + step - 1) / step : 0)
                 : (from > to ? (from - to - step - 1) / -step : 0);
    return done(k, ts_int(k->f->s, n));
}

bool ts_derive_index(TsCall *k)
{
    Arith  *A = k->f->s->c->arith;
    int64_t step;

    if (!k->at[0].form || !k->at[1].form || !ts_known_int(&k->at[2], &step))
        return ts_error(k->f, E_UNSUPPORTED, "a range whose bounds a run decides");
    return done(k, ts_form(idx_add(A, k->at[1].form, idx_mulc(A, k->at[0].form, step))));
}
