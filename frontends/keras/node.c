/* What converters ask of a layer and its call: settings, weights, arguments, and how images lie. */
#include "frontends/keras/keras.h"

#include <math.h>
#include <string.h>

/* ---- arguments of the call -------------------------------------------------------------------------- */

/* Is it one of the names "x2|y"? */
static bool is_name(const char *name, const char *names)
{
    size_t n = strlen(name);

    for (const char *p = names; p; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL)
        if (!strncmp(p, name, n) && (p[n] == '|' || !p[n]))
            return true;
    return false;
}

const KerasArg *keras_arg(const KerasNode *n, uint32_t place, const char *name)
{
    const KerasArg *found = NULL;
    uint32_t        k = 0;

    for (uint32_t i = 0; n->call && i < n->call->n; i++) {
        const KerasArg *a = &n->call->args[i];
        bool            here = a->name ? is_name(a->name, name) : k++ == place;

        if (!here)
            continue;
        n->read[i] = true;
        if (!(a->kind == KERAS_JSON && json_is_null(a->json)))
            found = a;
    }
    return found;
}

bool keras_operand(KerasNode *n, uint32_t place, const char *name, bool maybe, KerasValue *out)
{
    const KerasArg *a = keras_arg(n, place, name);

    *out = (KerasValue){0};
    if (!a)
        return maybe || keras_error(n, E_IMPORT, "argument '%s' is missing", name);
    if (!keras_value(n, a, out))
        return false;
    if (n->moved && expr_rank(out->e) == n->rank)
        out->e = build_channels_first(&n->b, out->e);
    return out->e != NULL;
}

/* ---- settings --------------------------------------------------------------------------------------- */

const json_t *keras_json(const KerasNode *n, const char *name)
{
    const json_t   *x = keras_setting(n->layer->config, name);
    const KerasArg *a;

    if (!x && n->row && n->row->operation && (a = keras_arg(n, UINT32_MAX, name)) && a->json)
        x = a->json;
    return x && !json_is_null(x) ? x : NULL;
}

bool json_int(const json_t *x, int64_t *out)
{
    double v;

    if (json_is_integer(x)) {
        *out = json_integer_value(x);
        return true;
    }
    v = json_is_real(x) ? json_real_value(x) : NAN;
    *out = v == floor(v) && fabs(v) < 1e15 ? (int64_t)v : 0;
    return v == floor(v) && fabs(v) < 1e15;
}

int64_t keras_int(const KerasNode *n, const char *name, int64_t fallback)
{
    const json_t *x = keras_json(n, name);
    int64_t       v = fallback;

    if (x && !json_int(x, &v))
        keras_error(n, E_IMPORT, "setting '%s' is no whole number", name);
    return v;
}

double keras_float(const KerasNode *n, const char *name, double fallback)
{
    const json_t *x = keras_json(n, name);

    if (json_is_object(x) && json_object_get(x, "config")) /* a number of NumPy */
        x = json_object_get(json_object_get(x, "config"), "value");
    if (x && !json_is_number(x))
        keras_error(n, E_IMPORT, "setting '%s' is no number", name);
    return x ? json_number_value(x) : fallback;
}

double keras_number(DType t, double v)
{
    return dtype_eq(t, DT_F64) ? v : (float)v;
}

bool keras_bool(const KerasNode *n, const char *name, bool fallback)
{
    const json_t *x = keras_json(n, name);

    if (json_is_integer(x))
        return json_integer_value(x) != 0;
    if (x && !json_is_boolean(x))
        keras_error(n, E_IMPORT, "setting '%s' is neither true nor false", name);
    return x ? json_is_true(x) : fallback;
}

const char *keras_text(const KerasNode *n, const char *name, const char *fallback)
{
    const json_t *x = keras_json(n, name);

    if (x && !json_is_string(x))
        keras_error(n, E_IMPORT, "setting '%s' is no text", name);
    return json_is_string(x) ? intern(n->b.c->strings, json_string_value(x)) : fallback;
}

bool keras_ints(const KerasNode *n, const char *name, uint32_t count, int64_t fallback,
                int64_t least, int64_t *out)
{
    const json_t *x = keras_json(n, name), *items = json_object_get(x, "items");
    size_t        given;

    x = items ? items : x;
    given = json_array_size(x);
    if (json_is_array(x) && given != count && given != 1)
        return keras_error(n, E_IMPORT, "setting '%s' has %zu numbers, not %u", name, given, count);
    for (uint32_t i = 0; i < count; i++) {
        const json_t *v = json_is_array(x) ? json_array_get(x, given == 1 ? 0 : i) : x;

        out[i] = fallback;
        if (v && (!json_int(v, &out[i]) || out[i] < least || out[i] > INT32_MAX))
            return keras_error(n, E_IMPORT,
                               "setting '%s' has something else than numbers from %lld", name,
                               (long long)least);
    }
    return true;
}

bool keras_list(const KerasNode *n, const char *name, Ints *out)
{
    const json_t *x = keras_json(n, name), *items = json_object_get(x, "items");
    size_t        count;
    int64_t      *at;

    x = items ? items : x;
    count = json_is_array(x) ? json_array_size(x) : x ? 1 : 0;
    at = NEW_ARRAY(n->b.c->arena, int64_t, count + 1);
    if (count > MAX_RANK)
        return keras_error(n, E_UNSUPPORTED, "setting '%s' has %zu numbers", name, count);
    for (size_t i = 0; i < count; i++)
        if (!json_int(json_is_array(x) ? json_array_get(x, i) : x, &at[i]))
            return keras_error(n, E_IMPORT, "setting '%s' has something else than numbers", name);
    *out = (Ints){(uint32_t)count, at};
    return true;
}

/* ---- weights ---------------------------------------------------------------------------------------- */

static const KerasWeight *find_weight(const KerasNode *n, const char *name)
{
    for (uint32_t i = 0; i < n->layer->weights.n; i++)
        if (!strcmp(n->layer->weights.at[i].name, name))
            return &n->layer->weights.at[i];
    return NULL;
}

/* Part i of a weight of Keras 1 (names.def). */
static const KerasWeight *find_part(const KerasNode *n, const char *name, uint32_t i)
{
    return find_weight(n, arena_printf(n->b.c->scratch, "%s.%u", name, i));
}

bool keras_has_weight(const KerasNode *n, const char *name)
{
    return find_weight(n, name) || find_part(n, name, 0);
}

static bool type_of(const H5Value *v, DType *out)
{
    static const struct {
        H5Kind   kind;
        uint32_t bits;
        DType    dtype;
    } types[] = {
        {H5_INT, 8, DT_I8},     {H5_INT, 16, DT_I16},   {H5_INT, 32, DT_I32},
        {H5_INT, 64, DT_I64},   {H5_UINT, 8, DT_U8},    {H5_UINT, 16, DT_U16},
        {H5_UINT, 32, DT_U32},  {H5_UINT, 64, DT_U64},  {H5_FLOAT, 16, DT_F16},
        {H5_FLOAT, 32, DT_F32}, {H5_FLOAT, 64, DT_F64}, {H5_BFLOAT, 16, DT_BF16},
    };

    for (uint32_t i = 0; i < COUNT(types); i++)
        if (types[i].kind == v->kind && types[i].bits == v->bits) {
            *out = types[i].dtype;
            return true;
        }
    return false;
}

static const Expr *constant(const KerasNode *n, const KerasWeight *w)
{
    enum { SMALL = 64 << 10 };
    Ctx           *c = n->b.c;
    const H5Value *v = &w->value;
    const uint8_t *at = v->data.at;
    DType          t;

    if (!type_of(v, &t))
        return keras_error(n, E_UNSUPPORTED,
                           "its weight '%s' has an element type that is not supported", w->path);
    if (v->ndim > MAX_RANK)
        return keras_error(n, E_UNSUPPORTED, "its weight '%s' has %u dimensions", w->path, v->ndim);
    if (v->data.n == 0)
        at = arena_alloc(c->arena, 1);
    else if (v->data.n < SMALL &&
             (uintptr_t)at % dtype_bytes(t)) /* larger ones are read anywhere */
        at = arena_dup(c->arena, at, v->data.n);
    return expr_const(c,
                      const_new(c, intern(c->strings, w->path + (*w->path == '/')),
                                type_tensor_i64(c, t, v->ndim, v->dims), (Bytes){at, v->data.n}),
                      n->b.loc);
}

const Expr *keras_folded(const KerasNode *n, const char *name, const Expr *e)
{
    const KerasWeight *whole = find_weight(n, name), *w = whole ? whole : find_part(n, name, 0);
    const Expr        *k = !e || e->kind == EXPR_CONST ? NULL : build_fold(&n->b, e);
    Ctx               *c = n->b.c;

    if (!k || !w)
        return k ? k : e;
    return expr_const(
        c,
        const_new(c, intern(c->strings, w->path + (*w->path == '/')), k->type, k->u.constant->data),
        n->b.loc);
}

/* The columns of the parts, one after the other. */
static const Expr *joined(const KerasNode *n, const char *name)
{
    const Expr        *all[4], *first;
    const KerasWeight *w;
    uint32_t           count = 0, last;

    while (count < COUNT(all) && (w = find_part(n, name, count)))
        if (!(all[count++] = constant(n, w)))
            return NULL;
    first = all[0];
    last = expr_rank(first) - 1;
    for (uint32_t i = 0; i < count; i++)
        if (expr_rank(first) == 0 || all[i]->type != first->type)
            return keras_error(n, E_IMPORT, "the parts of its weight '%s' do not fit", name);
    return keras_folded(n, name, build_concat(&n->b, count, all, last));
}

const Expr *keras_weight(KerasNode *n, const char *name)
{
    const KerasWeight *w = find_weight(n, name);
    const Expr        *e;

    if (!keras_has_weight(n, name))
        return keras_error(n, E_IMPORT, "its weight '%s' is not in the file", name);
    e = w ? constant(n, w) : joined(n, name);
    return e && dtype_is_float(expr_dtype(e)) ? build_cast(&n->b, e, n->dtype) : e;
}

uint32_t keras_weight_rank(const KerasNode *n, const char *name)
{
    const KerasWeight *w = find_weight(n, name);

    return w ? w->value.ndim : 0;
}

const Expr *keras_weight_moved(KerasNode *n, const char *name, uint32_t rank, const int64_t *axes)
{
    const Expr *w = keras_weight(n, name);

    if (!w)
        return NULL;
    if (expr_rank(w) != rank)
        return keras_error(n, E_IMPORT, "its weight '%s' is %s", name, type_text(n->b.c, w->type));
    return keras_folded(n, name, build_transpose(&n->b, w, rank, axes));
}

const Expr *keras_kernel(KerasNode *n, const char *name, uint32_t spatial, const int64_t *axes)
{
    const Expr *w = keras_weight_moved(n, name, spatial + 2, axes);

    for (uint32_t i = 0; w && n->im->flipped && i < spatial; i++)
        w = keras_folded(n, name, build_reverse(&n->b, w, 1, (int64_t[]){2 + i}));
    return w;
}

/* ---- values ----------------------------------------------------------------------------------------- */

const Expr *keras_in(const KerasNode *n)
{
    if (n->nin != 1)
        return keras_error(n, E_IMPORT, "%u inputs, not 1", n->nin);
    return n->in[0].e;
}

bool keras_count(const KerasNode *n, uint32_t least, uint32_t most)
{
    return (n->nin >= least && n->nin <= most) ||
           keras_error(n, E_IMPORT, "%u inputs, but it takes %u", n->nin,
                       n->nin < least ? least : most);
}

bool keras_rank(const KerasNode *n, const Expr *x, uint32_t least, uint32_t most)
{
    uint32_t rank = x ? expr_rank(x) : 0;

    return x && ((rank >= least && rank <= most) ||
                 keras_error(n, E_IMPORT, "its input is %s", type_text(n->b.c, x->type)));
}

bool keras_done_masked(KerasNode *n, const Expr *y, const Expr *mask)
{
    if (y)
        vec_push(n->b.c->arena, &n->out, ((KerasValue){y, mask}));
    return y != NULL;
}

bool keras_done(KerasNode *n, const Expr *y)
{
    return keras_done_masked(n, y, NULL);
}

bool keras_rounds(KerasNode *n, const Idx *count, uint32_t nstates, const Expr *const *first,
                  BuildRound *fn, void *user, const Expr **out)
{
    KerasImport *im = n->im;

    return build_rounds(&n->b, intern_printf(n->b.c->strings, "loop%u", im->loops++), count,
                        nstates, first, fn, user, out, &im->functions);
}

/* ---- layout ----------------------------------------------------------------------------------------- */

bool keras_channels_first(const KerasNode *n)
{
    const char *format = keras_text(n, "data_format", "channels_last");

    return !strcmp(format, "channels_first") || !strcmp(format, "th");
}

const Expr *keras_image(KerasNode *n, uint32_t spatial)
{
    const Expr *x = keras_in(n);

    if (!keras_rank(n, x, spatial + 2, spatial + 2))
        return NULL;
    return keras_channels_first(n) ? x : build_channels_first(&n->b, x);
}

bool keras_image_done(KerasNode *n, const Expr *y)
{
    return keras_done(
        n, keras_channels_first(n) || !y || expr_rank(y) < 3 ? y : build_channels_last(&n->b, y));
}

bool keras_axis(const KerasNode *n, int64_t axis, uint32_t rank, uint32_t *out)
{
    return build_axis(&n->b, axis, rank, n->moved ? n->rank : 0, out);
}

/* All tensors have one rank, and one of them its channels first; numbers and what has no dimension
 * lie as they do. */
static void look_at(KerasNode *n, const Expr *x, bool *alike, bool *moved)
{
    uint32_t rank = expr_rank(x);

    if (rank == 0)
        return;
    if (n->rank && n->rank != rank)
        *alike = false;
    n->rank = rank;
    *moved |= build_is_moved(x);
}

static void look_at_arg(KerasNode *n, const KerasArg *a, bool *alike, bool *moved)
{
    KerasValue v;

    if (a->kind == KERAS_TENSOR && keras_value(n, a, &v))
        look_at(n, v.e, alike, moved);
    for (uint32_t i = 0; i < a->n; i++)
        look_at_arg(n, &a->at[i], alike, moved);
    if (a->kind == KERAS_JSON && (json_is_object(a->json) || json_is_array(a->json)))
        *alike = false;
}

bool keras_prepare(KerasNode *n)
{
    KerasValue *in = NEW_ARRAY(n->b.c->arena, KerasValue, n->nin + 1);
    bool        alike = true, moved = false;

    if (n->nin)
        memcpy(in, n->in, n->nin * sizeof *in);
    if (n->row->how == CELLS || n->row->how == AXES) {
        if (n->row->operation)
            for (uint32_t i = 0; n->call && i < n->call->n; i++)
                look_at_arg(n, &n->call->args[i], &alike, &moved);
        for (uint32_t i = 0; i < n->nin; i++)
            look_at(n, in[i].e, &alike, &moved);
        n->moved = alike && moved;
    }
    for (uint32_t i = 0; i < n->nin; i++) {
        if (!n->row->operation && dtype_is_float(expr_dtype(in[i].e)))
            in[i].e = build_cast(&n->b, in[i].e, n->dtype);
        if (n->moved && in[i].e && expr_rank(in[i].e) == n->rank)
            in[i].e = build_channels_first(&n->b, in[i].e);
        if (!in[i].e)
            return false;
    }
    n->in = in;
    return true;
}

bool keras_finish(KerasNode *n)
{
    const Expr *mask = NULL;

    for (uint32_t i = 0; i < n->nin; i++)
        mask = mask ? mask : n->in[i].mask;
    for (uint32_t i = 0; i < n->out.n; i++) {
        KerasValue *v = &n->out.at[i];

        if (n->moved && expr_rank(v->e) == n->rank)
            v->e = build_channels_last(&n->b, v->e);
        if (!v->e)
            return false;
        if (n->row->mask == KEEPS)
            v->mask = mask;
    }
    for (uint32_t i = 0; n->call && i < n->call->n; i++) {
        const KerasArg *a = &n->call->args[i];

        if (n->read[i] ||
            (a->kind == KERAS_JSON && (json_is_null(a->json) || json_is_false(a->json))))
            continue;
        if (a->name && n->row->operation && !strcmp(a->name, "name"))
            continue;
        /* Keras 3 overrides it when a model is called; before, a layer kept what it was given. */
        if (a->name && !strcmp(a->name, "training") &&
            (n->im->major >= 3 || n->row->convert != keras_same_value))
            continue;
        return a->name ? keras_error(n, E_UNSUPPORTED, "argument '%s' of its call", a->name)
                       : keras_error(n, E_UNSUPPORTED, "argument %u of its call", i);
    }
    return true;
}

bool keras_dtype(const char *name, DType *out)
{
    static const struct {
        const char *name;
        DType       dtype;
    } types[] = {{"float16", DT_F16},         {"mixed_float16", DT_F16}, {"bfloat16", DT_BF16},
                 {"mixed_bfloat16", DT_BF16}, {"float32", DT_F32},       {"float", DT_F32},
                 {"float64", DT_F64},         {"double", DT_F64},        {"int8", DT_I8},
                 {"int16", DT_I16},           {"int32", DT_I32},         {"int", DT_I32},
                 {"int64", DT_I64},           {"uint8", DT_U8},          {"uint16", DT_U16},
                 {"uint32", DT_U32},          {"uint64", DT_U64},        {"bool", DT_BOOL}};

    for (uint32_t i = 0; i < COUNT(types); i++)
        if (!strcmp(name, types[i].name)) {
            *out = types[i].dtype;
            return true;
        }
    return false;
}
