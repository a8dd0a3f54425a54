/* Functions of lists and texts, and what tensors tell of themselves. */
#include "frontends/pytorch/script.h"

#include <string.h>

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

/* ---- tensors -------------------------------------------------------------------------------------- */

bool ts_length(TsCall *k)
{
    const TsValue *x = &k->at[0];
    Dims           dims;

    if (x->items)
        return done(k, ts_int(k->f->s, x->items->list.n / (x->kind == TS_DICT ? 2 : 1)));
    if (x->kind == TS_STRING)
        return done(k, ts_int(k->f->s, (int64_t)strlen(x->text)));
    if (x->kind == TS_OBJECT) {
        const TsFunction *fn = ts_method(x->object->class, "__len__");

        if (fn)
            return ts_call_function(k->f, fn, x->object, 0, NULL, NULL, k->out);
    }
    if (!ts_dims(k->f, x, &dims))
        return false;
    if (dims.n == 0)
        return ts_error(k->f, E_IMPORT, "the length of a scalar");
    return done(k, ts_form(dims.at[0]));
}

bool ts_size(TsCall *k)
{
    int64_t at, rank;
    Dims    dims;

    if (!ts_dims(k->f, &k->at[0], &dims))
        return false;
    rank = dims.n;
    if (k->n == 1) {
        *k->out = ts_items(k->f->s, TS_LIST, 0, NULL);
        for (uint32_t i = 0; i < rank; i++)
            vec_push(k->f->s->c->arena, &k->out->items->list, ts_form(dims.at[i]));
        return true;
    }
    if (!ts_known_int(&k->at[1], &at) || at < -rank || at >= rank)
        return ts_error(k->f, E_IMPORT, "a dimension that a tensor of %lld does not have",
                        (long long)rank);
    return done(k, ts_form(dims.at[at < 0 ? at + rank : at]));
}

bool ts_rank(TsCall *k)
{
    Dims dims;

    return ts_dims(k->f, &k->at[0], &dims) && done(k, ts_int(k->f->s, dims.n));
}

bool ts_cells(TsCall *k)
{
    const Idx *cells = idx_const(k->f->s->c->arith, 1);
    Dims       dims;

    if (!ts_dims(k->f, &k->at[0], &dims))
        return false;
    for (uint32_t i = 0; i < dims.n; i++)
        cells = idx_mul(k->f->s->c->arith, cells, dims.at[i]);
    return done(k, ts_form(cells));
}

static bool has_cells(const TsValue *v, PtCells cells)
{
    return v->kind == TS_TENSOR && v->t->cells == cells;
}

bool ts_is_complex(TsCall *k)
{
    return done(k, ts_bool(k->f->s, has_cells(&k->at[0], PT_COMPLEX)));
}

bool ts_is_quantized(TsCall *k)
{
    return done(k, ts_bool(k->f->s, has_cells(&k->at[0], PT_QUANTIZED)));
}

bool ts_dtype(TsCall *k)
{
    const Expr *e = ts_read(k->f, &k->at[0]);
    DType       t;

    for (int64_t i = 0; e && i < 64; i++)
        if (ts_scalar_type(i, &t) && dtype_eq(t, expr_dtype(e)))
            return done(k, ts_int(k->f->s, i));
    return false;
}

bool ts_is_float(TsCall *k)
{
    const Expr *e;

    if (has_cells(&k->at[0], PT_COMPLEX) || has_cells(&k->at[0], PT_QUANTIZED))
        return ts_no(k);
    return (e = ts_read(k->f, &k->at[0])) &&
           done(k, ts_bool(k->f->s, dtype_is_float(expr_dtype(e))));
}

bool ts_device(TsCall *k)
{
    return done(k, (TsValue){.kind = TS_DEVICE});
}

bool ts_device_type(TsCall *k)
{
    return done(k, ts_text("cpu"));
}

bool ts_zero(TsCall *k)
{
    return done(k, ts_int(k->f->s, 0));
}

bool ts_no(TsCall *k)
{
    return done(k, ts_bool(k->f->s, false));
}

bool ts_yes(TsCall *k)
{
    return done(k, ts_bool(k->f->s, true));
}

bool ts_nothing(TsCall *k)
{
    return done(k, ts_none());
}

/* Texts are for messages: what would be in them is not needed. */
bool ts_nothing_text(TsCall *k)
{
    return done(k, k->at[0].kind == TS_STRING ? k->at[0] : ts_text(""));
}

/* In a branch that a run decides it is taken not to happen. */
bool ts_raise(TsCall *k)
{
    const char *text = k->at[0].kind == TS_STRING ? k->at[0].text : "";

    if (!k->f->s->im.scope)
        return ts_error(k->f, E_IMPORT, "the model raises an exception: \"%s\"", text);
    k->f->raised = true;
    return done(k, ts_none());
}

/* ---- lists ---------------------------------------------------------------------------------------- */

/* A list that may be changed here. */
static TsItems *changed(TsCall *k)
{
    const TsValue *x = &k->at[0];

    if (!x->items || x->kind == TS_TUPLE)
        return ts_error(k->f, E_IMPORT, "%s of %s", k->name, ts_kind_text(k->f->s, x));
    if (x->items->scope < k->f->s->im.scope)
        return ts_error(k->f, E_UNSUPPORTED,
                        "a list changes where values of the run decide whether it does");
    return x->items;
}

/* A position of a list of n; false with an error. */
static bool position(TsCall *k, const TsValue *v, uint32_t n, uint32_t *out)
{
    int64_t at;

    if (!ts_known_int(v, &at))
        return ts_error(k->f, E_UNSUPPORTED, "a position in a list that a run decides");
    if (at < -(int64_t)n || at >= (int64_t)n)
        return ts_error(k->f, E_IMPORT, "position %lld of a list of %u", (long long)at, n);
    *out = (uint32_t)(at < 0 ? at + n : at);
    return true;
}

bool ts_append(TsCall *k)
{
    TsItems *to = changed(k);

    if (!to)
        return false;
    vec_push(k->f->s->c->arena, &to->list, k->at[1]);
    return done(k, k->at[0]);
}

bool ts_extend(TsCall *k)
{
    TsItems       *to = changed(k);
    const TsItems *from = k->at[1].items;

    if (!to || !from)
        return to && ts_error(k->f, E_IMPORT, "a list is extended by %s",
                              ts_kind_text(k->f->s, &k->at[1]));
    for (uint32_t i = 0, n = from->list.n; i < n; i++)
        vec_push(k->f->s->c->arena, &to->list, from->list.at[i]);
    return done(k, ts_none());
}

/* list += list */
bool ts_add_to(TsCall *k)
{
    if (k->at[0].kind != TS_LIST)
        return pass(k);
    return ts_extend(k) && done(k, k->at[0]);
}

bool ts_insert(TsCall *k)
{
    TsItems *to = changed(k);
    int64_t  at;

    if (!to)
        return false;
    if (!ts_known_int(&k->at[1], &at))
        return ts_error(k->f, E_UNSUPPORTED, "a position in a list that a run decides");
    at = at < 0 ? at + to->list.n : at;
    at = at < 0 ? 0 : at > to->list.n ? to->list.n : at;
    vec_push(k->f->s->c->arena, &to->list, k->at[2]);
    for (uint32_t i = to->list.n - 1; i > at; i--)
        to->list.at[i] = to->list.at[i - 1];
    to->list.at[at] = k->at[2];
    return done(k, ts_none());
}

bool ts_pop(TsCall *k)
{
    TsItems *from = changed(k);
    TsValue  last = ts_int(k->f->s, -1);
    uint32_t at;

    if (!from || !position(k, k->n > 1 ? &k->at[1] : &last, from->list.n, &at))
        return false;
    *k->out = from->list.at[at];
    for (uint32_t i = at; i + 1 < from->list.n; i++)
        from->list.at[i] = from->list.at[i + 1];
    from->list.n--;
    return true;
}

bool ts_reverse(TsCall *k)
{
    TsItems *x = changed(k);

    for (uint32_t i = 0; x && i < x->list.n / 2; i++) {
        TsValue v = x->list.at[i];

        x->list.at[i] = x->list.at[x->list.n - 1 - i];
        x->list.at[x->list.n - 1 - i] = v;
    }
    return x && done(k, ts_none());
}

bool ts_copy(TsCall *k)
{
    const TsValue *x = &k->at[0];

    if (!x->items)
        return ts_error(k->f, E_UNSUPPORTED, "%s of %s", k->name, ts_kind_text(k->f->s, x));
    return done(k, ts_items(k->f->s, x->kind == TS_TUPLE ? TS_LIST : x->kind, x->items->list.n,
                            x->items->list.at));
}

/* A dictionary of another one, or of pairs. */
bool ts_dict(TsCall *k)
{
    const TsValue *x = &k->at[0];

    if (k->n == 0 || x->kind == TS_DICT)
        return done(k, ts_items(k->f->s, TS_DICT, k->n ? x->items->list.n : 0,
                                k->n ? x->items->list.at : NULL));
    *k->out = ts_items(k->f->s, TS_DICT, 0, NULL);
    for (uint32_t i = 0; x->items && i < x->items->list.n; i++) {
        const TsValue *pair = &x->items->list.at[i];

        if (pair->kind != TS_TUPLE || pair->items->list.n != 2)
            return ts_error(k->f, E_IMPORT, "a dictionary of %s", ts_kind_text(k->f->s, pair));
        vec_push(k->f->s->c->arena, &k->out->items->list, pair->items->list.at[0]);
        vec_push(k->f->s->c->arena, &k->out->items->list, pair->items->list.at[1]);
    }
    return x->items || ts_error(k->f, E_IMPORT, "a dictionary of %s", ts_kind_text(k->f->s, x));
}

static bool bound(TsCall *k, uint32_t i, int64_t fallback, int64_t *out)
{
    *out = fallback;
    return i >= k->n || k->at[i].kind == TS_NONE || ts_known_int(&k->at[i], out) ||
           ts_error(k->f, E_UNSUPPORTED, "a part of a list that a run decides");
}

/* A position of a part as Python has it: from the end below 0, then no further than an end. */
static int64_t within(int64_t at, int64_t n, int64_t first, int64_t last)
{
    at = at < 0 && at >= -n ? at + n : at;
    return at < first ? first : at > last ? last : at;
}

bool ts_slice(TsCall *k)
{
    const TsValue *x = &k->at[0];
    int64_t        n, from, to, step;

    if (!x->items)
        return pass(k);
    n = x->items->list.n;
    if (!bound(k, 3, 1, &step))
        return false;
    if (!step)
        return ts_error(k->f, E_IMPORT, "a part of a list in steps of 0");
    if (!bound(k, 1, step > 0 ? 0 : n, &from) || !bound(k, 2, step > 0 ? n : -n - 1, &to))
        return false;
    from = step > 0 ? within(from, n, 0, n) : within(from, n, -1, n - 1);
    to = step > 0 ? within(to, n, 0, n) : within(to, n, -1, n - 1);
    step = within(step, 0, -n - 1, n + 1); /* one is the end of each list */
    *k->out = ts_items(k->f->s, x->kind, 0, NULL);
    for (int64_t i = from; step > 0 ? i < to : i > to; i += step)
        vec_push(k->f->s->c->arena, &k->out->items->list, x->items->list.at[i]);
    return true;
}

/* Is it in there?  -1: a run decides. */
static int equal(TsCall *k, TsValue *x, TsValue *y)
{
    TsValue args[2] = {*x, *y}, v;
    TsCall  eq = {k->f, "torch.eq", 2, args, NULL, &v, false};
    bool    yes;

    if (x->kind != y->kind && !(ts_is_number(x) && ts_is_number(y)))
        return 0;
    if (!ts_is_number(x) && x->kind != TS_STRING)
        return ts_same(x, y);
    return ts_compare(&eq) && ts_known_bool(&v, &yes) ? yes : -1;
}

/* The place of a key of a dictionary; UINT32_MAX: none. */
static uint32_t key_of(TsCall *k, const TsItems *dict, TsValue *key)
{
    for (uint32_t i = 0; i + 1 < dict->list.n; i += 2)
        if (equal(k, &dict->list.at[i], key) == 1)
            return i;
    return UINT32_MAX;
}

bool ts_contains(TsCall *k)
{
    const TsValue *x = &k->at[0];

    if (x->kind == TS_STRING && k->at[1].kind == TS_STRING)
        return done(k, ts_bool(k->f->s, strstr(x->text, k->at[1].text) != NULL));
    if (!x->items)
        return pass(k);
    for (uint32_t i = 0; i < x->items->list.n; i += x->kind == TS_DICT ? 2 : 1) {
        int is = equal(k, &x->items->list.at[i], &k->at[1]);

        if (is < 0)
            return ts_error(k->f, E_UNSUPPORTED, "whether a list has a number that a run decides");
        if (is)
            return done(k, ts_bool(k->f->s, true));
    }
    return done(k, ts_bool(k->f->s, false));
}

bool ts_get(TsCall *k)
{
    const TsValue *x = &k->at[0];
    uint32_t       at;

    if (x->kind == TS_DICT) {
        if ((at = key_of(k, x->items, &k->at[1])) == UINT32_MAX)
            return ts_error(k->f, E_IMPORT, "a dictionary does not have what is asked for");
        return done(k, x->items->list.at[at + 1]);
    }
    if (!x->items)
        return ts_error(k->f, E_UNSUPPORTED, "an element of %s", ts_kind_text(k->f->s, x));
    return position(k, &k->at[1], x->items->list.n, &at) && done(k, x->items->list.at[at]);
}

bool ts_get_or(TsCall *k)
{
    const TsValue *x = &k->at[0];
    uint32_t       at;

    if (x->kind != TS_DICT)
        return pass(k);
    at = key_of(k, x->items, &k->at[1]);
    return done(k, at != UINT32_MAX ? x->items->list.at[at + 1] : k->n > 2 ? k->at[2] : ts_none());
}

static void set_key(TsCall *k, TsItems *dict, TsValue *key, const TsValue *v)
{
    uint32_t at = key_of(k, dict, key);

    if (at != UINT32_MAX) {
        dict->list.at[at + 1] = *v;
        return;
    }
    vec_push(k->f->s->c->arena, &dict->list, *key);
    vec_push(k->f->s->c->arena, &dict->list, *v);
}

bool ts_set(TsCall *k)
{
    TsItems *x = changed(k);
    uint32_t at;

    if (!x)
        return false;
    if (k->at[0].kind == TS_DICT)
        set_key(k, x, &k->at[1], &k->at[2]);
    else if (!position(k, &k->at[1], x->list.n, &at))
        return false;
    else
        x->list.at[at] = k->at[2];
    return done(k, ts_none());
}

/* dictionary.update(dictionary) */
bool ts_update(TsCall *k)
{
    TsItems       *to = changed(k);
    const TsItems *from = k->at[1].items;

    if (!to || k->at[0].kind != TS_DICT || k->at[1].kind != TS_DICT)
        return to && ts_error(k->f, E_IMPORT, "%s is updated by %s",
                              ts_kind_text(k->f->s, &k->at[0]), ts_kind_text(k->f->s, &k->at[1]));
    for (uint32_t i = 0, n = from->list.n; i + 1 < n; i += 2)
        set_key(k, to, &from->list.at[i], &from->list.at[i + 1]);
    return done(k, ts_none());
}

/* keys, values, items */
bool ts_entries(TsCall *k)
{
    Script        *s = k->f->s;
    const TsValue *x = &k->at[0];

    if (x->kind != TS_DICT)
        return pass(k);
    *k->out = ts_items(s, TS_LIST, 0, NULL);
    for (uint32_t i = 0; i + 1 < x->items->list.n; i += 2) {
        const TsValue *pair = &x->items->list.at[i];

        vec_push(s->c->arena, &k->out->items->list,
                 str_ends(k->name, "keys")     ? pair[0]
                 : str_ends(k->name, "values") ? pair[1]
                                               : ts_items(s, TS_TUPLE, 2, pair));
    }
    return true;
}

/* sum, all and any of a list. */
bool ts_sum_list(TsCall *k)
{
    const TsValue *x = &k->at[0];
    bool           sum = str_ends(k->name, "sum"), any = str_ends(k->name, "any");

    if (x->kind != TS_LIST)
        return pass(k);
    *k->out = sum ? ts_int(k->f->s, 0) : ts_bool(k->f->s, !any);
    for (uint32_t i = 0; i < x->items->list.n; i++) {
        TsValue args[2] = {*k->out, x->items->list.at[i]};
        TsCall  next = {
            k->f, sum ? "torch.add" : any ? "torch.__or__" : "torch.__and__", 2, args, NULL, k->out,
            false};

        if (!(sum || ts_truth(k->f, &args[1])) || !(sum ? ts_add(&next) : ts_logic(&next)))
            return false;
        if (next.pass)
            return ts_error(k->f, E_UNSUPPORTED, "%s of %s", k->name,
                            ts_kind_text(k->f->s, &args[1]));
    }
    return true;
}
