/* Inputs that are given a value when the model is compiled: they become constants.
 *
 *     --value sr=16000       every cell; of whole numbers, floats or bool as the model says
 *     --value mask=@m.npy    of the type and shape that the model says
 *
 * What is computed from them alone is folded then, and may decide shapes. */
#include "frontends/common.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One cell of type t; false: the text is no such number. */
static bool parse_cell(DType t, const char *text, uint8_t *cell)
{
    bool  yes = !strcmp(text, "true"), no = !strcmp(text, "false");
    char *end;

    errno = 0;
    if (!*text || *text == ' ')
        return false;
    if (dtype_is_bool(t)) {
        yes |= !strcmp(text, "1");
        *cell = yes;
        return yes || no || !strcmp(text, "0");
    }
    if (dtype_is_float(t)) {
        double v = strtod(text, &end);

        dtype_put_f(t, cell, v);
        return !*end && isfinite(v) == isfinite(dtype_get_f(t, cell));
    }
    if (t.code == DT_UINT && t.bits == 64) {
        unsigned long long v = strtoull(text, &end, 10);

        dtype_put_i(t, cell, (int64_t)v);
        return !*end && !errno && *text != '-';
    }
    long long v = strtoll(text, &end, 10);

    dtype_put_i(t, cell, v);
    return !*end && !errno && dtype_get_i(t, cell) == v;
}

#define MOST_BYTES ((int64_t)1 << 30) /* of a number for all cells */

static const Const *filled(Ctx *c, Loc loc, const ImportValue *v, const Type *t)
{
    uint32_t size = dtype_bytes(t->dtype);
    int64_t  n;
    uint8_t  cell[16], *data;

    if (!type_elems(t, &n) || n > MOST_BYTES / size)
        return error_at(c, E_DIM, loc, "input '%s' is too large for a value", v->name);
    if (!parse_cell(t->dtype, v->text, cell)) {
        error_at(c, E_DIM, loc, "'%s' is no value of input '%s', which is %s", v->text, v->name,
                 type_text(c, t));
        diag_hint(c->diags, "a number for all of its cells, or @ and the name of a .npy file");
        return NULL;
    }
    data = arena_alloc(c->arena, (size_t)n * size + 1);
    for (int64_t i = 0; i < n; i++)
        memcpy(data + (size_t)i * size, cell, size);
    return const_new(c, v->name, t, (Bytes){data, (size_t)n * size});
}

const ImportValue *value_given(const ImportOptions *o, const char *input)
{
    for (uint32_t i = 0; i < o->nvalues; i++)
        if (!strcmp(o->values[i].name, input))
            return &o->values[i];
    return NULL;
}

const Expr *value_expr(Ctx *c, Loc loc, const ImportValue *v, const Type *t)
{
    const Const *k = v->value;

    if (!k && !(k = filled(c, loc, v, t)))
        return NULL;
    if (k->type != t) /* equal ones are one */
        return error_at(c, E_DIM, loc, "the value given for input '%s' is %s, not %s", v->name,
                        type_text(c, k->type), type_text(c, t));
    return expr_const(c, k, loc);
}
