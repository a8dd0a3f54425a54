/* Operators that look at what strings say (docs/design/strings.md). */
#include "frontends/onnx/onnx.h"

/* The shape, without the room, in which the strings x and y broadcast; its rank to *rank. */
static bool common_shape(Node *n, const Expr *x, const Expr *y, uint32_t *rank, const Idx **dims)
{
    const Expr *of[2] = {x, y};
    int64_t     v;

    *rank = (expr_rank(x) > expr_rank(y) ? expr_rank(x) : expr_rank(y)) - 1;
    for (uint32_t k = 0; k < *rank; k++) { /* from the last one */
        const Idx **d = &dims[*rank - 1 - k];

        *d = NULL;
        for (uint32_t i = 0; i < 2; i++) {
            uint32_t   have = expr_rank(of[i]) - 1;
            const Idx *is = k < have ? expr_form(of[i], have - 1 - k) : NULL;

            if (!is || (*d && idx_is_const(is, &v) && v == 1))
                continue;
            if (*d && *d != is && !(idx_is_const(*d, &v) && v == 1))
                return node_error(n, E_IMPORT, "%s and %s do not broadcast",
                                  type_text(n->b.c, onnx_value_type(n->im, x)),
                                  type_text(n->b.c, onnx_value_type(n->im, y)));
            *d = is;
        }
    }
    return true;
}

static const Expr *broadcast(const Build *b, const Expr *x, uint32_t rank, const Idx **dims)
{
    dims[rank] = string_room(x);
    return build_broadcast_to(b, x, rank + 1, dims);
}

static bool two_strings(Node *n)
{
    return (node_has(n, 0) && node_has(n, 1) && onnx_is_string(n->im, n->in[0]) &&
            onnx_is_string(n->im, n->in[1])) ||
           node_error(n, E_IMPORT, "it takes two tensors of strings");
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

bool convert_strings_equal(Node *n, OnnxConvert *as_numbers)
{
    const Idx *dims[MAX_RANK];
    uint32_t   rank;

    (void)as_numbers;
    return two_strings(n) && common_shape(n, n->in[0], n->in[1], &rank, dims) &&
           node_done(n, string_equal(&n->b, n->in[0], n->in[1]));
}

/* One behind the other: cell j is that of x as long as it goes, then j - length(x) of y. */
bool convert_string_concat(Node *n)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    const Expr  *x, *y, *j, *both, *length, *at, *zero;
    const Idx   *dims[MAX_RANK], *room[2], *all;
    GatherAttrs *a = ATTRS(b, GatherAttrs);
    uint32_t     rank;

    if (!two_strings(n) || !common_shape(n, n->in[0], n->in[1], &rank, dims))
        return false;
    x = broadcast(b, n->in[0], rank, dims);
    y = broadcast(b, n->in[1], rank, dims);
    if (!x || !y)
        return false;
    room[0] = string_room(x);
    room[1] = string_room(y);
    all = idx_add(A, room[0], room[1]);
    length = string_length(b, x);
    dims[rank] = idx_const(A, 1);
    zero = build_zeros_of(b, DT_U8, rank + 1, dims);
    both = build_concat(b, 3, (const Expr *[]){x, y, zero}, rank);
    j = build_arange(b, all, DT_I64);
    at = build_add(b, build_sub(b, j, length), cell_form(b, room[0]));
    at = build_where(b, build_less(b, j, length), j,
                     build2(b, "minimum", at, cell_form(b, all), NULL));
    dims[rank] = all;
    at = build_broadcast_to(b, at, rank + 1, dims);
    a->axis = rank;
    return node_done(n, onnx_string(n->im, build2(b, "gather", both, at, a)));
}
