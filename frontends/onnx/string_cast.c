/* Casts of strings to numbers, and of integers to strings.
 *
 * Whether all strings are numbers an automaton says first; one that is none ends the run.  Then the
 * digits of all are weighed at once, by how many come behind:
 *
 *     "-1.25e2"   mantissa 1 2 5 . 100 10 1   less 2 behind the dot   exponent 2     -125 *
 * 10^(2-2)
 */
#include "frontends/onnx/onnx.h"
#include "frontends/onnx/regex.h"

#include <math.h>
#include <string.h>

#define POWERS 309 /* of ten, that are f64 */

static const Expr *both(const Build *b, const Expr *x, const Expr *y)
{
    return build2(b, "logical_and", x, y, NULL);
}

static const Expr *none_of(const Build *b, const Expr *x)
{
    return build1(b, "logical_not", x, NULL);
}

/* Rows c of i64: which cells are one of these letters; is any? */
static const Expr *letter(const Build *b, const Expr *c, char one, char other)
{
    return build2(b, "logical_or", build_by(b, "equal", c, one), build_by(b, "equal", c, other),
                  NULL);
}

static const Expr *any_of(const Build *b, const Expr *flags)
{
    int64_t last = 1;

    return build_reduce(b, "any", flags, 1, &last, true);
}

static const Expr *sum_of(const Build *b, const Expr *x)
{
    int64_t last = 1;

    return build_reduce(b, "sum", x, 1, &last, true);
}

/* How many flags there are up to each cell. */
static const Expr *up_to(const Build *b, const Expr *flags)
{
    ScanAttrs *a = ATTRS(b, ScanAttrs);

    a->axis = 1;
    return flags ? build1(b, "cumsum", build_cast(b, flags, DT_I64), a) : NULL;
}

/* 10^k, of cells k below `count`, or of the last. */
static const Expr *power(const Build *b, DType t, int64_t count, const Expr *k)
{
    uint8_t *at = arena_array(b->c->arena, (size_t)count, dtype_bytes(t));
    uint64_t whole = 1;

    for (int64_t i = 0; i < count; i++, whole *= 10) {
        if (dtype_is_float(t))
            dtype_put_f(t, at + i * dtype_bytes(t), pow(10, (double)i));
        else
            dtype_put_i(t, at + i * dtype_bytes(t), (int64_t)whole);
    }
    k = k ? build_clip(b, build_cast(b, k, DT_F64), 0, (double)count - 1) : NULL;
    return build_take(b, build_const(b, t, 1, &count, at), k ? build_cast(b, k, DT_I64) : NULL, 0);
}

/* The number that the flagged digits of c make, [N, 1] of t. */
static const Expr *weighed(const Build *b, const Expr *c, const Expr *digits, DType t,
                           int64_t powers)
{
    const Expr *seen = up_to(b, digits), *behind, *v;

    if (!seen)
        return NULL;
    behind = build2(b, "subtract", sum_of(b, build_cast(b, digits, DT_I64)), seen, NULL);
    v = build_cast(b, build_by(b, "subtract", c, '0'), t);
    v = build2(b, "multiply", v, power(b, t, powers, behind), NULL);
    return v ? sum_of(b, build_where(b, digits, v, build_scalar(b, v, 0))) : NULL;
}

/* All rows match the pattern, or the run ends. */
static bool all_match(Node *n, const Expr *rows, const char *pattern)
{
    const Build *b = &n->b;
    const char  *why;
    Regex        r;
    const Expr  *wrong;
    int64_t      axis = 0, one = 1;

    if (!regex_compile(b->c->arena, (Bytes){(const uint8_t *)pattern, strlen(pattern)}, &r, &why))
        BUG("the pattern of numbers: %s", why);
    StringAutomaton a = {(int32_t)r.states, (int32_t)r.classes, REGEX_START, r.class_of, r.next};
    wrong = string_walk(n, string_ended(b, rows), &a, false);
    wrong = wrong ? build_cast(b, build_by(b, "not_equal", wrong, REGEX_WHOLE), DT_I64) : NULL;
    wrong =
        build_reshape(b, wrong ? build_reduce(b, "sum", wrong, 1, &axis, false) : NULL, 1, &one);
    return onnx_require(n, wrong, "a string is no number");
}

static const Expr *integer(Node *n, const Expr *rows, const Expr *c, const Expr *digits)
{
    const Build *b = &n->b;
    const Expr  *v;

    if (!all_match(n, rows, " *[+-]?[0-9]+ *"))
        return NULL;
    v = weighed(b, c, digits, DT_I64, 19);
    return build_where(b, any_of(b, build_by(b, "equal", c, '-')), build1(b, "negative", v, NULL),
                       v);
}

static const Expr *real(Node *n, const Expr *rows, const Expr *c, const Expr *digits)
{
    const Build *b = &n->b;
    const Expr  *late, *early, *exponent, *v, *dot, *minus, *less;

    if (!all_match(n, rows,
                   " *[+-]?(([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?|"
                   "[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN]) *"))
        return NULL;
    late = up_to(b, letter(b, c, 'e', 'E'));
    late = late ? build_by(b, "greater", late, 0) : NULL;
    early = none_of(b, late);
    dot = up_to(b, build_by(b, "equal", c, '.'));
    dot = dot ? build_by(b, "greater", dot, 0) : NULL;
    minus = build_by(b, "equal", c, '-');
    exponent = weighed(b, c, both(b, digits, late), DT_I64, 5);
    exponent = build_where(b, any_of(b, both(b, minus, late)),
                           build1(b, "negative", exponent, NULL), exponent);
    less = both(b, both(b, digits, early), dot);
    less = less ? sum_of(b, build_cast(b, less, DT_I64)) : NULL;
    exponent = build2(b, "subtract", exponent, less, NULL);
    v = weighed(b, c, both(b, digits, early), DT_F64, POWERS);
    for (int64_t i = 0; i < 2 && exponent; i++) { /* what one power has not, the next has */
        const Expr *over = build_by(b, "subtract", exponent, (double)(i * (POWERS - 1)));
        const Expr *under = build_by(b, "subtract", build1(b, "negative", exponent, NULL),
                                     (double)(i * (POWERS - 1)));

        v = build2(b, "multiply", v, power(b, DT_F64, POWERS, over), NULL);
        v = build2(b, "divide", v, power(b, DT_F64, POWERS, under), NULL);
    }
    v = v ? build_where(b, any_of(b, letter(b, c, 'a', 'A')), build_scalar(b, v, NAN), v) : NULL;
    v = v ? build_where(b, any_of(b, letter(b, c, 'i', 'I')), build_scalar(b, v, INFINITY), v)
          : NULL;
    return build_where(b, any_of(b, both(b, minus, early)), build1(b, "negative", v, NULL), v);
}

bool onnx_cast_string(Node *n, DType t)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *rows = string_rows(b, x), *c, *v;
    uint32_t     rank = expr_rank(x) - 1;

    if (dtype_is_bool(t) || dtype_stored(t))
        return node_error(n, E_UNSUPPORTED, "a cast of strings to %s", dtype_text(b->c, t));
    if (rows && expr_empty(rows))
        return node_done(n, build_zeros_of(b, t, rank, expr_forms(x).at));
    if (!(c = rows ? build_cast(b, rows, DT_I64) : NULL))
        return false;
    v = both(b, build_by(b, "greater_equal", c, '0'), build_by(b, "less_equal", c, '9'));
    v = dtype_is_float(t) ? real(n, rows, c, v) : integer(n, rows, c, v);
    return node_done(n,
                     build_reshape_to(b, v ? build_cast(b, v, t) : NULL, rank, expr_forms(x).at));
}

/* Digits from the last to the first by division, then turned round, behind a minus. */
bool onnx_cast_to_string(Node *n)
{
    const Build *b = &n->b;
    const Expr  *x, *neg, *size, *digits, *count, *j, *at, *in, *powers, *text;
    const Idx   *one = idx_const(b->c->arith, 1), *room, *dims[MAX_RANK + 1];
    uint32_t     rank;
    int64_t      most = 20; /* characters of 64 bits */
    TakeAttrs   *take = ATTRS(b, TakeAttrs);

    if (!node_need_rank(n, 0, 0, MAX_RANK - 1))
        return false;
    x = n->in[0];
    rank = expr_rank(x);
    if (!dtype_is_int(expr_dtype(x)) && !dtype_is_bool(expr_dtype(x)))
        return node_error(n, E_UNSUPPORTED, "a cast of %s to strings",
                          dtype_text(b->c, expr_dtype(x)));
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = expr_form(x, i);
    room = dims[rank] = idx_const(b->c->arith, most);
    if (expr_empty(x))
        return node_done(n, onnx_string(n->im, build_zeros_of(b, DT_U8, rank + 1, dims)));
    neg = expr_dtype(x).code == DT_INT ? build_by(b, "less", x, 0) : NULL;
    x = build_reshape_to(b, x, 2, (const Idx *[]){type_cells(b->c, x->type), one});
    size = build_cast(b, x, expr_dtype(x).code == DT_INT ? DT_I64 : DT_U64);
    if (neg) {
        neg = build_reshape_to(b, neg, 2, expr_forms(x).at);
        size = build_where(b, neg, build1(b, "negative", size, NULL), size);
    }
    size = build_cast(b, size, DT_U64);
    powers = power(b, DT_U64, most, build_arange(b, room, DT_I64));
    digits = build2(b, "floor_divide", size, powers, NULL);
    digits = digits ? build_by(b, "floor_mod", digits, 10) : NULL;
    count = build2(b, "greater_equal", size, powers, NULL);
    count = count ? sum_of(b, build_cast(b, count, DT_I64)) : NULL;
    count = count ? build_by(b, "maximum", count, 1) : NULL;
    j = build_arange(b, room, DT_I64);
    at = neg ? build2(b, "subtract", j, build_cast(b, neg, DT_I64), NULL) : j;
    in = build2(b, "less", at, count, NULL);
    in = neg ? both(b, in, build_by(b, "greater_equal", at, 0)) : in;
    at = build2(b, "subtract", count ? build_by(b, "subtract", count, 1) : NULL, at, NULL);
    at = build2(b, "maximum", at, at ? build_scalar(b, at, 0) : NULL, NULL);
    at = at ? build_by(b, "minimum", at, (double)most - 1) : NULL;
    take->axis = take->batch_dims = 1;
    take->mode = "clip";
    text = build_cast(b, build2(b, "take", digits, at, take), DT_U8);
    text = text ? build_by(b, "add", text, '0') : NULL;
    text = text ? build_where(b, in, text, build_scalar(b, text, 0)) : NULL;
    if (neg && text)
        text = build_where(b, both(b, neg, build_by(b, "equal", j, 0)), build_scalar(b, text, '-'),
                           text);
    return node_done(n, onnx_string(n->im, build_reshape_to(b, text, rank + 1, dims)));
}
