/* Packed parameters of quantized layers, as quantized.c takes them: tuples of the weight, the bias,
 * and of convolutions stride, padding, output padding, dilation, groups, and whether it is
 * transposed.
 *
 *     ops.quantized.conv2d_prepack(w, b, [1, 1], [0, 0], [1, 1], 1)      made by code
 *     __torch__.torch.classes.quantized.LinearPackedParamsBase, (w, b)   pickled
 *     __torch__.torch.classes.quantized.Conv2dPackedParamsBase, ("2", [numbers, w], [b])
 *         version 2; the numbers are a tensor: dimensions, stride, padding, dilation, output
 * padding, groups, and whether it is transposed
 *     .. (3, [dimensions, stride .., transposed], [None, w, b])          version 3 */
#include "frontends/pytorch/script.h"

#include <string.h>

static bool done(TsCall *k, TsValue v)
{
    *k->out = v;
    return true;
}

bool ts_pack_linear(TsCall *k)
{
    return done(
        k, ts_items(k->f->s, TS_TUPLE, 2, (TsValue[]){k->at[0], k->n > 1 ? k->at[1] : ts_none()}));
}

/* weight, bias, stride, padding, (output padding of transposed ones,) dilation, groups */
bool ts_pack_conv(TsCall *k)
{
    bool           transposed = k->n == 7;
    const TsValue *rest = k->at + 4 + transposed;
    TsValue        none = ts_items(k->f->s, TS_LIST, 0, NULL);

    if (k->at[3].items)
        for (uint32_t i = 0; i < k->at[3].items->list.n; i++)
            vec_push(k->f->s->c->arena, &none.items->list, ts_int(k->f->s, 0));
    return done(k, ts_items(k->f->s, TS_TUPLE, PT_PACKED_CONV,
                            (TsValue[]){k->at[0], k->at[1], k->at[2], k->at[3],
                                        transposed ? k->at[4] : none, rest[0], rest[1],
                                        ts_bool(k->f->s, transposed)}));
}

bool ts_unpack(TsCall *k)
{
    const TsValue *x = &k->at[0];

    if (x->kind != TS_TUPLE || x->items->list.n < 2)
        return ts_error(k->f, E_IMPORT, "%s is unpacked", ts_kind_text(k->f->s, x));
    return done(k, ts_items(k->f->s, TS_TUPLE, 2, x->items->list.at));
}

/* ---- pickled ------------------------------------------------------------------------------------------- */

static bool items_of(const TsValue *v, uint32_t least, TsValue **out)
{
    if (!v->items || v->items->list.n < least)
        return false;
    *out = v->items->list.at;
    return true;
}

/* Numbers in a list, or in a tensor. */
static bool numbers_of(Script *s, const TsValue *v, uint32_t *n, int64_t *out)
{
    Ints all;

    if (v->kind == TS_TENSOR) {
        Build       b = {.c = s->c, .loc = s->loc, .what = "packed parameters"};
        const Expr *e = build_fold(&b, build_cast(&b, v->t->e, DT_I64));

        if (!e || !expr_ints(s->c, e, &all) || all.n > 32)
            return false;
        *n = all.n;
        memcpy(out, all.at, all.n * sizeof *out);
        return true;
    }
    if (!v->items || v->items->list.n > 32)
        return false;
    *n = v->items->list.n;
    for (uint32_t i = 0; i < *n; i++)
        if (!ts_known_int(&v->items->list.at[i], &out[i]))
            return false;
    return true;
}

static bool conv_state(Script *s, const TsValue *state, TsValue *out)
{
    static const uint32_t place[] = {2, 3, 5, 4}; /* of stride, padding, dilation, output padding */
    TsValue              *top, *second, *third, all[PT_PACKED_CONV];
    int64_t               v[32];
    uint32_t              n, dims;

    if (!items_of(state, 3, &top) || top[1].kind == TS_STRING || !top[1].items || !top[2].items)
        return false;
    if (top[0].kind == TS_STRING) { /* version 2 */
        if (strcmp(top[0].text, "2") != 0 || !items_of(&top[1], 2, &second) ||
            !items_of(&top[2], 1, &third) || !numbers_of(s, &second[0], &n, v))
            return false;
        all[0] = second[1], all[1] = third[0];
    } else {
        if (!items_of(&top[2], 3, &third) || !numbers_of(s, &top[1], &n, v))
            return false;
        all[0] = third[1], all[1] = third[2];
    }
    if (n < 1 || v[0] < 1 || v[0] > 3 || n < 4 * v[0] + 3)
        return false;
    dims = (uint32_t)v[0];
    for (uint32_t i = 0; i < COUNT(place); i++) {
        all[place[i]] = ts_items(s, TS_LIST, 0, NULL);
        for (uint32_t k = 0; k < dims; k++)
            vec_push(s->c->arena, &all[place[i]].items->list, ts_int(s, v[1 + i * dims + k]));
    }
    all[6] = ts_int(s, v[1 + 4 * dims]);
    all[7] = ts_bool(s, v[2 + 4 * dims] & 1);
    *out = ts_items(s, TS_TUPLE, PT_PACKED_CONV, all);
    return true;
}

bool ts_packed(Script *s, const char *class, const TsValue *state, const char *path, TsValue *out)
{
    const char *name = strrchr(class, '.') + 1;
    TsValue    *at;

    if (!strcmp(name, "LinearPackedParamsBase") && items_of(state, 2, &at)) {
        *out = ts_items(s, TS_TUPLE, 2, at);
        return true;
    }
    if ((!strcmp(name, "Conv2dPackedParamsBase") || !strcmp(name, "Conv3dPackedParamsBase")) &&
        conv_state(s, state, out))
        return true;
    return error_at(s->c, E_UNSUPPORTED, s->loc, "'%s' is of class %s, whose state is not known",
                    path, class);
}
