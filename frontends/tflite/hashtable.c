/* Tables of keys and values, which CALL_ONCE fills, and their strings.
 *
 *     HASHTABLE_FIND(table, x, default)    take([values, default], the first key that x is, else K)
 *
 * Keys are constants when the model is compiled, so that a table is a comparison with all of them.
 * Its handle is its number.  Strings are rows of bytes (frontends/strings.c); in the file, the
 * strings of a tensor are
 *
 *     their number, where each begins, where the last one ends, the bytes of all */
#include "frontends/tflite/tflite.h"

#include <string.h>

#define MAX_KEYS 100000

/* ---- strings ---------------------------------------------------------------------------------------- */

bool tflite_is_string(const TfliteTensor *t)
{
    return t->type == TFLITE_STRING;
}

static bool split_strings(Bytes data, int64_t n, Bytes *out)
{
    Reader   r = reader(data);
    uint64_t begin, end;

    if ((int64_t)read_u32(&r) != n || r.bad)
        return false;
    begin = read_u32(&r);
    for (int64_t i = 0; i < n && !r.bad; i++, begin = end) {
        end = read_u32(&r);
        if (begin > end || end > data.n)
            return false;
        out[i] = (Bytes){data.at + begin, (size_t)(end - begin)};
    }
    return !r.bad;
}

const Expr *tflite_strings(Ctx *c, const TfliteTensor *t, Bytes data, int64_t n, Loc loc)
{
    int64_t dims[MAX_RANK];
    Bytes  *each, cells;

    if (t->shape.n >= MAX_RANK || n > (int64_t)data.n / 4)
        return error_at(c, E_IMPORT, loc, "tensor '%s' has %lld strings in %zu bytes", t->name,
                        (long long)n, data.n);
    each = NEW_ARRAY(c->scratch, Bytes, (size_t)n + 1);
    if (!split_strings(data, n, each))
        return error_at(c, E_IMPORT, loc, "the strings of tensor '%s' lead out of its data",
                        t->name);
    for (uint32_t i = 0; i < t->shape.n; i++)
        dims[i] = fb_int_at(t->shape, FB_I32, i);
    if (!text_cells(c->diags, c->arena, loc, (size_t)n, each, &dims[t->shape.n], &cells))
        return NULL;
    return expr_const(
        c, const_new(c, t->name, type_tensor_i64(c, DT_U8, t->shape.n + 1, dims), cells), loc);
}

/* ---- tables ----------------------------------------------------------------------------------------- */

bool tflite_hashtable(TfliteNode *n)
{
    int64_t id = tflite_int(n, "table_id");

    for (uint32_t i = 0; i < n->im->tables.n; i++)
        if (n->im->tables.at[i].id == id)
            return tflite_done(n, expr_scalar(n->b.c, DT_I32, i));
    vec_push(n->b.c->arena, &n->im->tables, ((TfliteTable){.id = id}));
    return tflite_done(n, expr_scalar(n->b.c, DT_I32, n->im->tables.n - 1));
}

/* The table of a handle; NULL with an error. */
static TfliteTable *table(TfliteNode *n)
{
    double v;

    if (tflite_in(n, 0)->type != TFLITE_RESOURCE || !expr_const_f(n->in[0], &v) || v < 0 ||
        v >= n->im->tables.n)
        return tflite_error(n, E_UNSUPPORTED, "a table that is not known when it is compiled");
    return &n->im->tables.at[(uint32_t)v];
}

/* .. which has been filled. */
static TfliteTable *filled(TfliteNode *n)
{
    TfliteTable *t = table(n);

    if (t && !t->keys)
        return tflite_error(n, E_UNSUPPORTED, "table %lld is empty before the first run",
                            (long long)t->id);
    return t;
}

/* Numbers [n], strings [n, room]. */
static const Expr *in_a_row(const TfliteNode *n, uint32_t i)
{
    const Expr *x = n->in[i];
    const Idx  *dims[2] = {idx_const(n->b.c->arith, 1)};
    bool        text = tflite_is_string(tflite_in(n, i));

    for (uint32_t k = 0; k + text < expr_rank(x); k++)
        dims[0] = idx_mul(n->b.c->arith, dims[0], expr_form(x, k));
    if (text)
        dims[1] = string_room(x);
    x = build_reshape_to(&n->b, x, text ? 2 : 1, dims);
    return x && x->kind != EXPR_CONST && build_fold(&n->b, x) ? build_fold(&n->b, x) : x;
}

/* How many keys there are, each once. */
static int64_t distinct(Ctx *c, const Const *keys, int64_t count)
{
    Map    *seen = map_new(c->scratch);
    size_t  size = keys->data.n / (size_t)count;
    int64_t n = 0;

    for (int64_t i = 0; i < count; i++) {
        const char *key = intern_n(c->strings, (const char *)keys->data.at + i * size, size);

        n += !map_get(seen, PTR_KEY(key));
        map_put(seen, PTR_KEY(key), seen);
    }
    return n;
}

/* Inputs: the table, keys, their values.  A table that has been filled stays as it is. */
bool tflite_hashtable_import(TfliteNode *n)
{
    TfliteTable *t = table(n);
    const Expr  *keys = in_a_row(n, 1), *values = in_a_row(n, 2);
    int64_t      count;

    if (!t || !keys || !values)
        return false;
    if (!n->im->once)
        return tflite_error(n, E_UNSUPPORTED, "table %lld is filled in a run", (long long)t->id);
    if (t->keys)
        return true;
    count = build_dim(&n->b, keys, 0);
    if (count != build_dim(&n->b, values, 0) || count < 1)
        return tflite_error(n, E_IMPORT, "%lld keys for %lld values", (long long)count,
                            (long long)build_dim(&n->b, values, 0));
    if (count > MAX_KEYS)
        return tflite_error(n, E_UNSUPPORTED, "%lld keys, of which there may be %d",
                            (long long)count, MAX_KEYS);
    if (keys->kind != EXPR_CONST)
        return tflite_error(n, E_UNSUPPORTED, "keys that are not known when it is compiled");
    t->keys = keys;
    t->values = values;
    t->distinct = distinct(n->b.c, keys->u.constant, count);
    t->text_keys = tflite_is_string(tflite_in(n, 1));
    t->text_values = tflite_is_string(tflite_in(n, 2));
    return true;
}

/* Which of the keys [K] each cell of input 1 is, [.., K]. */
static const Expr *key_hits(const TfliteNode *n, const TfliteTable *t)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[1];

    if (t->text_keys)
        return string_equal(b, build_expand_dims(b, x, expr_rank(x) - 1, 1), t->keys);
    return build2(b, "equal", build_expand_dims(b, x, expr_rank(x), 1), t->keys, NULL);
}

/* Inputs: the table, keys, the value of those that it has not. */
bool tflite_hashtable_find(TfliteNode *n)
{
    const Build       *b = &n->b;
    const TfliteTable *t = filled(n);
    ArgReduceAttrs    *first = ATTRS(b, ArgReduceAttrs);
    const Expr        *hit, *at, *both[2];
    int64_t            last, count;

    if (!t)
        return false;
    if (t->text_keys != tflite_is_string(tflite_in(n, 1)) ||
        t->text_values != tflite_is_string(tflite_in(n, 2)) ||
        (!t->text_keys && !dtype_eq(expr_dtype(t->keys), expr_dtype(n->in[1]))) ||
        !dtype_eq(expr_dtype(t->values), expr_dtype(n->in[2])))
        return tflite_error(n, E_IMPORT, "its keys or values are of another type than its table's");
    both[0] = t->values;
    both[1] = in_a_row(n, 2);
    if (!both[1] || build_dim(b, both[1], 0) != 1)
        return tflite_error(n, E_IMPORT, "its default is %s", type_text(b->c, n->in[2]->type));
    for (uint32_t i = 0; t->text_values && i < 2; i++)
        both[i] = string_fitted(
            b, both[i], string_common_room(b, 2, (const Expr *[]){t->values, in_a_row(n, 2)}));
    if (!(hit = key_hits(n, t)))
        return false;
    last = first->axis = (int64_t)expr_rank(hit) - 1;
    first->dtype = DT_I64;
    count = build_dim(b, t->keys, 0);
    at = build1(b, "argmax", build_cast(b, hit, DT_I32), first);
    at = build_where(b, build_reduce(b, "any", hit, 1, &last, false), at,
                     build_const(b, DT_I64, 0, NULL, &count));
    return tflite_done(n, at ? build_take(b, build_concat(b, 2, both, 0), at, 0) : NULL);
}

bool tflite_hashtable_size(TfliteNode *n)
{
    const TfliteTable *t = filled(n);
    int64_t            one = 1;

    return t && tflite_done(n, build_const(&n->b, DT_I64, 1, &one, &t->distinct));
}
