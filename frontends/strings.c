/* Strings (docs/design/strings.md): a tensor of shape S is one of bytes, [S, room], with zeros
 * behind each string.
 *
 *     ["cat", "mouse"]    c a t 0 0
 *                         m o u s e
 *
 * Here is what frontends share of them; which values are strings each knows by itself. */
#include "frontends/calls.h"

#include <string.h>

#define DEFAULT_ROOM 64 /* bytes of a string */

/* Does the user say how many bytes the strings of an input of n dimensions may have? */
static bool room_given(Shapes *s, const char *input, const char *room, uint32_t n)
{
    const char *place = intern_printf(s->c->strings, "%s.%u", input, n);
    int64_t     lo, hi;

    for (uint32_t i = 0; i < s->o->nshapes; i++)
        if (!strcmp(s->o->shapes[i].name, input))
            return true;
    return shapes_given(s, room, &lo, &hi) || shapes_given(s, place, &lo, &hi) ||
           shapes_given(s, "*", &lo, &hi);
}

InputDim string_room_dim(Shapes *s, const char *input, uint32_t n)
{
    const char *name = intern_printf(s->c->strings, "%s.bytes", input);

    return (InputDim){room_given(s, input, name, n) ? -1 : DEFAULT_ROOM, name};
}

bool string_check_room(Shapes *s, Loc loc, const char *input, const Type *t, bool given)
{
    const char *name = intern_printf(s->c->strings, "%s.bytes", input);

    if (t->n == 0 || t->dims[t->n - 1]->lo < 1)
        return error_at(s->c, E_DIM, loc, "the strings of input '%s' need room for 1 byte at least",
                        input);
    if (given || room_given(s, input, name, t->n - 1))
        return true;
    diag_warn(s->c->diags, W_DIM_DEFAULT, loc,
              "how many bytes the strings of input '%s' may have is not known: %d is taken", input,
              DEFAULT_ROOM);
    diag_hint(s->c->diags, "--dim %s=256 gives them more", name);
    return true;
}

const Idx *string_room(const Expr *x)
{
    return expr_form(x, expr_rank(x) - 1);
}

const Expr *string_input(const Build *b, const Expr *x)
{
    const Idx  *room = string_room(x);
    const Expr *j = build_arange(b, room, DT_I32), *end;
    int64_t     one = 1, last = (int64_t)expr_rank(x) - 1;

    end = build_values(b, type_tensor_i64(b->c, DT_I64, 1, &one), (Dims){1, &room});
    end = build_where(b, build_by(b, "equal", x, 0), j, end ? build_cast(b, end, DT_I32) : NULL);
    end = end ? build_reduce(b, "min", end, 1, &last, true) : NULL;
    return build_where(b, build_less(b, j, end), x, build_scalar(b, x, 0));
}

const Expr *string_fitted(const Build *b, const Expr *x, const Idx *room)
{
    const Idx  *had = string_room(x), *dims[MAX_RANK];
    uint32_t    last = expr_rank(x) - 1;
    const Expr *both[2] = {x};

    if (had == room)
        return x;
    for (uint32_t i = 0; i < last; i++)
        dims[i] = expr_form(x, i);
    dims[last] = idx_sub(b->c->arith, room, had);
    both[1] = build_zeros_of(b, DT_U8, last + 1, dims);
    return build_concat(b, 2, both, last);
}

const Idx *string_common_room(const Build *b, uint32_t n, const Expr *const *xs)
{
    const Idx *room = NULL;

    for (uint32_t i = 0; i < n; i++) {
        const Idx *had = string_room(xs[i]);

        if (!room)
            room = had;
        else if (room != had)
            room = idx_const(b->c->arith, room->hi > had->hi ? room->hi : had->hi);
    }
    return room;
}

const Expr *string_equal(const Build *b, const Expr *x, const Expr *y)
{
    const Idx  *room = string_common_room(b, 2, (const Expr *[]){x, y});
    const Expr *same;
    int64_t     last;

    x = string_fitted(b, x, room);
    y = string_fitted(b, y, room);
    if (!(same = build2(b, "equal", x, y, NULL)))
        return NULL;
    last = (int64_t)expr_rank(same) - 1;
    return build_reduce(b, "all", same, 1, &last, false);
}
