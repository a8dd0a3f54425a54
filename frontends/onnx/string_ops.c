/* Operators that look at what strings say (docs/design/strings.md). */
#include "frontends/onnx/onnx.h"
#include "frontends/onnx/regex.h"

#include <string.h>

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

static bool one_of_strings(Node *n)
{
    return (node_has(n, 0) && onnx_is_string(n->im, n->in[0])) ||
           node_error(n, E_IMPORT, "input 0 is no tensor of strings");
}

/* In the shape of input 0, and behind it `more` dimensions of x. */
static const Expr *shaped_as(Node *n, const Expr *x, uint32_t more)
{
    uint32_t   rank = expr_rank(n->in[0]) - 1;
    const Idx *dims[MAX_RANK + 2];

    if (!x)
        return NULL;
    if (rank + more > MAX_RANK)
        return node_error(n, E_UNSUPPORTED, "strings of %u dimensions", rank);
    for (uint32_t i = 0; i < rank + more; i++)
        dims[i] = expr_form(i < rank ? n->in[0] : x, i < rank ? i : i - rank + 1);
    return build_reshape_to(&n->b, x, rank + more, dims);
}

bool convert_regex_full_match(Node *n)
{
    const Build    *b = &n->b;
    const OnnxAttr *pattern = node_attr(n, "pattern");
    const Expr     *x, *state;
    const char     *why;
    Regex           r;

    if (!one_of_strings(n))
        return false;
    if (!pattern)
        return node_error(n, E_IMPORT, "attribute 'pattern' is missing");
    if (!regex_compile(b->c->arena, pattern->s, &r, &why))
        return node_error(n, E_UNSUPPORTED, "the pattern '%.*s'%s is not supported: %s",
                          (int)(pattern->s.n < 60 ? pattern->s.n : 60), (const char *)pattern->s.at,
                          pattern->s.n > 60 ? " .." : "", why);
    StringAutomaton a = {(int32_t)r.states, (int32_t)r.classes, REGEX_START, r.class_of, r.next};
    x = string_rows(b, n->in[0]);
    if (expr_empty(x))
        return node_done(n, shaped_as(n, build_zeros_of(b, DT_BOOL, 1, expr_forms(x).at), 0));
    state = string_walk(n, string_ended(b, x), &a, false);
    return state && node_done(n, shaped_as(n, build_by(b, "equal", state, REGEX_WHOLE), 0));
}

/* ---- StringSplit ------------------------------------------------------------------------------------ */

static const Expr *both(const Build *b, const Expr *x, const Expr *y)
{
    return build2(b, "logical_and", x, y, NULL);
}

static const Expr *sum_along(const Build *b, const Expr *flags, int64_t axis)
{
    return flags ? build_reduce(b, "sum", build_cast(b, flags, DT_I64), 1, &axis, false) : NULL;
}

static const Expr *count_up(const Build *b, const Expr *flags)
{
    ScanAttrs *a = ATTRS(b, ScanAttrs);

    a->axis = 1;
    return flags ? build1(b, "cumsum", build_cast(b, flags, DT_I64), a) : NULL;
}

/* [N, W] or [N] as [N, W, 1], [N, 1, 1] */
static const Expr *third(const Build *b, const Expr *x)
{
    return x ? build_expand_dims(b, x, expr_rank(x), 3 - expr_rank(x)) : NULL;
}

/* Where the delimiter ends, [N, W]: found from the left, none in another. */
static const Expr *delimiter_ends(Node *n, const Expr *rows, Bytes d)
{
    const Build *b = &n->b;
    int32_t     *next, L = (int32_t)d.n, fall = 0;
    uint8_t     *class_of;
    const Expr  *at;

    if (d.n == 1)
        return build_by(b, "equal", rows, d.at[0]);
    if (d.n > 256)
        return node_error(n, E_UNSUPPORTED, "a delimiter of %zu bytes", d.n);
    next = NEW_ARRAY(b->c->arena, int32_t, (d.n + 1) * 256);
    class_of = NEW_ARRAY(b->c->arena, uint8_t, 256);
    for (uint32_t c = 0; c < 256; c++)
        class_of[c] = (uint8_t)c;
    /* State i: its first i bytes are there; where byte i is another, as from the state `fall`. */
    next[d.at[0]] = 1;
    for (int32_t i = 1; i < L; i++) {
        memcpy(next + i * 256, next + fall * 256, 256 * sizeof *next);
        next[i * 256 + d.at[i]] = i + 1;
        fall = next[fall * 256 + d.at[i]];
    }
    memcpy(next + L * 256, next, 256 * sizeof *next); /* and from the beginning */
    StringAutomaton a = {L + 1, 256, 0, class_of, next};
    at = string_walk(n, rows, &a, true);
    return at ? build_by(b, "equal", at, L) : NULL;
}

/* Bytes of words, which spaces are between. */
static const Expr *word_bytes(const Build *b, const Expr *rows)
{
    const Expr *space =
        both(b, build_by(b, "greater_equal", rows, '\t'), build_by(b, "less_equal", rows, '\r'));

    space = build2(b, "logical_or", space, build_by(b, "equal", rows, ' '), NULL);
    return both(b, build_by(b, "not_equal", rows, 0), build1(b, "logical_not", space, NULL));
}

/* The first byte of each word. */
static const Expr *word_begins(const Build *b, const Expr *word)
{
    const Idx *n = expr_form(word, 0), *one = idx_const(b->c->arith, 1),
              *zero = idx_const(b->c->arith, 0);
    const Expr *before = build_zeros_of(b, DT_BOOL, 2, (const Idx *[]){n, one});

    before = build_concat(b, 2, (const Expr *[]){before, word}, 1);
    before = build_slice_to(b, before, 1, zero, expr_form(word, 1));
    return both(b, word, build1(b, "logical_not", before, NULL));
}

/* As many parts as the string with most of them has, as a dimension. */
static bool bind_parts(Node *n, const Expr *count, int64_t most, uint32_t at, const Idx **parts)
{
    const Build *b = &n->b;
    int64_t      axis = 0;
    const Expr  *all = build_concat(b, 2, (const Expr *[]){count, cell_number(b, 0)}, 0);
    RunDim d = {build_reduce(b, "max", all, 1, &axis, true), 0, idx_const(b->c->arith, most), at,
                1};

    return onnx_bind(n, 0, 1, &d, parts);
}

bool convert_string_split(Node *n)
{
    const Build    *b = &n->b;
    Arith          *A = b->c->arith;
    const OnnxAttr *given = node_attr(n, "delimiter");
    Bytes           d = given ? given->s : (Bytes){0};
    int64_t         limit = node_attr(n, "maxsplit") ? node_int(n, "maxsplit", -1) : -1, most;
    const Expr     *rows, *marks, *number, *count, *length, *k, *from, *to, *word = NULL, *last;
    const Idx      *parts;

    if (!one_of_strings(n))
        return false;
    rows = string_rows(b, n->in[0]);
    if (expr_empty(rows)) {
        const Idx *dims[] = {expr_form(rows, 0), idx_const(A, 0), string_room(rows)};

        n->out[1] = shaped_as(n, build_zeros_of(b, DT_I64, 1, dims), 0);
        return node_done(n, onnx_string(n->im, shaped_as(n, build_zeros_of(b, DT_U8, 3, dims), 2)));
    }
    word = d.n ? NULL : word_bytes(b, rows);
    marks = d.n ? delimiter_ends(n, rows, d) : word_begins(b, word);
    if (!(count = sum_along(b, marks, 1)))
        return false;
    most = string_room(rows)->hi;
    most = d.n ? most / (int64_t)d.n + 1 : (most + 1) / 2;
    if (d.n) /* one part more than delimiters */
        count = build_by(b, "add", count, 1);
    if (limit >= 0 && limit < most) {
        most = limit + 1;
        count = build2(b, "minimum", count, cell_number(b, most), NULL);
    }
    if (!bind_parts(n, count, most, expr_rank(n->in[0]) - 1, &parts))
        return false;
    /* As many bytes are before mark k as have fewer marks up to them. */
    number = third(b, count_up(b, marks));
    length = third(b, build_reshape_to(b, string_length(b, rows), 1, expr_forms(rows).at));
    k = build_arange(b, parts, DT_I64); /* [K] */
    last = build_by(b, "add", k, 1);
    if (d.n) {
        from = build_by(b, "add", sum_along(b, build_less(b, number, k), 1), 1);
        from = build_where(b, build_by(b, "equal", k, 0), build_scalar(b, k, 0), from);
        to = build_by(b, "subtract", sum_along(b, build_less(b, number, last), 1), (double)d.n - 1);
        to = third(b, to);
        last = build2(
            b, "equal", last,
            build_reshape_to(b, count, 2, (const Idx *[]){expr_form(rows, 0), idx_const(A, 1)}),
            NULL);
    } else {
        from = sum_along(b, build_less(b, number, last), 1);
        to = sum_along(b, both(b, build2(b, "equal", number, last, NULL), third(b, word)), 1);
        to = third(b, build_add(b, from, to));
        last = build_by(b, "equal", k, limit >= 0 ? (double)limit : -1);
    }
    from = third(b, from);
    last = third(b, build_broadcast_to(b, last, 2, expr_forms(from).at));
    to = build_where(b, last, length, to);
    /* There are no parts from the count on. */
    to = build_where(b, build_less(b, build_expand_dims(b, k, 1, 1), third(b, count)), to, from);
    n->out[1] = shaped_as(n, count, 0);
    rows = string_parts(b, rows, from, build_sub(b, to, from));
    return n->out[1] && node_done(n, onnx_string(n->im, shaped_as(n, rows, 2)));
}

/* ---- StringNormalizer ------------------------------------------------------------------------------- */

/* Letters of ASCII: those from `first` on, to the other case. */
static const Expr *other_case(const Build *b, const Expr *x, char first)
{
    const Expr *is =
        both(b, build_by(b, "greater_equal", x, first), build_by(b, "less_equal", x, first + 25));

    return build_where(b, is, build_by(b, first == 'A' ? "add" : "subtract", x, 32), x);
}

bool convert_string_normalizer(Node *n)
{
    static const char *const cases[] = {"NONE", "LOWER", "UPPER", NULL};
    const Build             *b = &n->b;
    Arith                   *A = b->c->arith;
    const OnnxAttr          *stop = node_attr(n, "stopwords");
    const char              *to;
    const Expr              *x, *words, *seen, *hit, *at;
    const Idx               *dims[3], *one = idx_const(A, 1);
    uint32_t                 rank;
    int64_t                  v, along = 1;

    node_ignore(n, "locale"); /* letters of ASCII are the same in all */
    if (!one_of_strings(n) || !node_choice(n, "case_change_action", cases, &to))
        return false;
    rank = expr_rank(n->in[0]) - 1;
    if (rank < 1 || rank > 2 ||
        (rank == 2 && !(idx_is_const(expr_form(n->in[0], 0), &v) && v == 1)))
        return node_error(n, E_IMPORT, "input 0 is %s, no row of strings",
                          type_text(b->c, onnx_value_type(n->im, n->in[0])));
    x = string_rows(b, n->in[0]);
    if (stop && stop->strings.n) {
        bool fold = !node_int(n, "is_case_sensitive", 0);

        if (!(words = onnx_strings_of(n, stop->strings.n, stop->strings.at)))
            return false;
        words = fold ? other_case(b, words, 'A') : words;
        seen = build_expand_dims(b, fold ? other_case(b, x, 'A') : x, 1, 1);
        hit = build_reduce(b, "any", string_equal(b, seen, words), 1, &along, true);
        hit = build_reshape_to(b, hit, 1, expr_forms(x).at);
        /* What stays; if nothing does, the empty string behind all. */
        along = 0;
        hit = build_concat(b, 2,
                           (const Expr *[]){build1(b, "logical_not", hit, NULL),
                                            build_reduce(b, "all", hit, 1, &along, true)},
                           0);
        x = build_concat(
            b, 2,
            (const Expr *[]){x, build_zeros_of(b, DT_U8, 2, (const Idx *[]){one, string_room(x)})},
            0);
        if (!hit || !(at = onnx_positions(n, hit, 0, rank - 1, NULL)))
            return false;
        x = build_take(b, x, at, 0);
    } else {
        node_ignore(n, "is_case_sensitive");
    }
    x = *to == 'L' ? other_case(b, x, 'A') : *to == 'U' ? other_case(b, x, 'a') : x;
    if (!x)
        return false;
    dims[0] = one;
    dims[rank - 1] = expr_form(x, 0);
    dims[rank] = string_room(x);
    return node_done(n, onnx_string(n->im, build_reshape_to(b, x, rank + 1, dims)));
}
