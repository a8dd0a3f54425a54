/* Expressions of TIR from text (ir/text/parse_tir.h): a recursive descent in which an operand stays
 * an index or a bare literal until an operator needs it as a number.  Types are checked before the
 * makers are called, since the makers take a mismatch for a bug of ours. */
#include "ir/text/parse_tir.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ARMS = 4096 };

/* ---- values -------------------------------------------------------------------------------------- */

static Value parse_value(Parser *p, int prec);

static Value of_idx(const Idx *x)
{
    return (Value){.x = x};
}

static Value of_prim(const Prim *q)
{
    return (Value){.p = q};
}

static Value nothing(Parser *p)
{
    return of_idx(idx_const(p->c->arith, 0));
}

/* The value as a number; an index or literal in type `like` (NULL: i64, f32). */
static const Prim *as_prim(Parser *p, Value v, const DType *like)
{
    DType   t = like ? dtype_lanes(*like, 1) : v.x ? DT_I64 : DT_F32;
    int64_t n;

    if (v.p)
        return v.p;
    if (v.literal) {
        if (dtype_is_float(t))
            return prim_float(p->c, t, v.num);
        parse_fail(p, "expected a number of type %s", dtype_text(p->c, t));
        return prim_num(p->c, t, 0);
    }
    if (dtype_is_int(t))
        return prim_index(p->c, t, v.x);
    if (dtype_is_float(t) && idx_is_const(v.x, &n))
        return prim_float(p->c, t, (double)n);
    parse_fail(p, "expected a value of type %s", dtype_text(p->c, t));
    return prim_num(p->c, t, 0);
}

static bool fits(DType a, DType b)
{
    return a.code == b.code && a.bits == b.bits &&
           (a.lanes == b.lanes || a.lanes == 1 || b.lanes == 1);
}

/* Operands as prims of one type (lanes may be 1). */
static bool same_type(Parser *p, uint32_t n, Value *v)
{
    const DType *like = NULL;
    uint16_t     lanes = 1;
    DType        f32 = DT_F32;
    bool         literal = false;

    for (uint32_t i = 0; i < n; i++) {
        if (v[i].p && (!like || v[i].p->dtype.lanes > lanes)) {
            like = &v[i].p->dtype;
            lanes = like->lanes;
        }
        literal = literal || v[i].literal;
    }
    if (!like && literal)
        like = &f32;
    for (uint32_t i = 0; i < n; i++)
        v[i] = of_prim(as_prim(p, v[i], like));
    for (uint32_t i = 0; i < n && !p->failed; i++)
        if (!fits(v[i].p->dtype, like ? *like : v[i].p->dtype))
            parse_fail(p, "operands of types %s and %s", dtype_text(p->c, *like),
                       dtype_text(p->c, v[i].p->dtype));
    return !p->failed;
}

static Value binary(Parser *p, PrimKind k, Value a, Value b)
{
    Arith *A = p->c->arith;
    Value  v[2] = {a, b};
    bool   bits = k == PRIM_AND || k == PRIM_OR || k == PRIM_XOR || k == PRIM_SHL || k == PRIM_SHR;

    if (p->failed)
        return nothing(p);
    if (a.x && b.x && k == PRIM_ADD)
        return of_idx(idx_add(A, a.x, b.x));
    if (a.x && b.x && k == PRIM_SUB)
        return of_idx(idx_sub(A, a.x, b.x));
    if (a.x && b.x && k == PRIM_MUL)
        return of_idx(idx_mul(A, a.x, b.x));
    if (a.x && b.x && k == PRIM_MIN)
        return of_idx(idx_min(A, a.x, b.x));
    if (a.x && b.x && k == PRIM_MAX)
        return of_idx(idx_max(A, a.x, b.x));
    if (!same_type(p, 2, v))
        return nothing(p);
    if (bits && dtype_is_float(v[0].p->dtype)) {
        parse_fail(p, "bits of a float");
        return nothing(p);
    }
    return of_prim(prim_bin(p->c, k, v[0].p, v[1].p));
}

/* ---- function forms -------------------------------------------------------------------------------- */

static const struct {
    const char *text;
    PrimKind    kind;
    uint32_t    n;
} forms[] = {
    {"rem", PRIM_REM, 2},       {"min", PRIM_MIN, 2},       {"max", PRIM_MAX, 2},
    {"minnum", PRIM_MINNUM, 2}, {"maxnum", PRIM_MAXNUM, 2}, {"fma", PRIM_FMA, 3},
    {"and", PRIM_AND, 2},       {"or", PRIM_OR, 2},         {"xor", PRIM_XOR, 2},
    {"shl", PRIM_SHL, 2},       {"shr", PRIM_SHR, 2},       {"not", PRIM_NOT, 1},
    {"select", PRIM_SELECT, 3},
};

static const struct {
    const char *text;
    MathFn      fn;
    uint32_t    n;
} functions[] = {
#define MATH(id, text, n) {text, MATH_##id, n},
#include "ir/tir/math.def"
#undef MATH
};

static Value parse_form(Parser *p, PrimKind k, uint32_t n)
{
    Value v[3] = {{0}};

    for (uint32_t i = 0; i < n; i++) {
        if (i)
            parse_expect(p, ",");
        v[i] = parse_value(p, 0);
    }
    if (!parse_expect(p, ")"))
        return nothing(p);
    if (k == PRIM_SELECT) {
        const Prim *cond = as_prim(p, v[0], NULL);
        if (!dtype_is_bool(cond->dtype))
            parse_fail(p, "the condition of select is no bool");
        if (!same_type(p, 2, v + 1))
            return nothing(p);
        uint16_t lanes =
            v[1].p->dtype.lanes > v[2].p->dtype.lanes ? v[1].p->dtype.lanes : v[2].p->dtype.lanes;
        if (lanes > 1 && cond->dtype.lanes > 1 && cond->dtype.lanes != lanes)
            parse_fail(p, "condition and arms of select differ in lanes");
        return p->failed ? nothing(p) : of_prim(prim_select(p->c, cond, v[1].p, v[2].p));
    }
    if (n == 2)
        return binary(p, k, v[0], v[1]);
    if (!same_type(p, n, v))
        return nothing(p);
    if (k == PRIM_FMA)
        return of_prim(prim_fma(p->c, v[0].p, v[1].p, v[2].p));
    if (dtype_is_float(v[0].p->dtype)) {
        parse_fail(p, "bits of a float");
        return nothing(p);
    }
    return of_prim(prim_not(p->c, v[0].p));
}

/* dot4(a, b, c): a row of ir/tir/intrin.def, which the types of the operands choose. */
static Value parse_intrin(Parser *p, const char *text)
{
    const Prim *kid[INTRIN_OPERANDS];
    DType       type[INTRIN_OPERANDS];
    uint32_t    n = 0;
    StrBuf      types = strbuf(p->c->scratch);

    do {
        kid[n] = as_prim(p, parse_value(p, 0), NULL);
        type[n] = kid[n]->dtype;
        str_printf(&types, "%s%s", n ? ", " : "", dtype_text(p->c, type[n]));
        n++;
    } while (parse_accept(p, ",") && n < INTRIN_OPERANDS);
    if (!parse_expect(p, ")"))
        return nothing(p);
    const Intrin *row = intrin_find(p->c, text, n, type);

    if (!row || !intrin_fits(row, n, kid)) {
        parse_fail(p, "there is no %s of %s", text, types.at);
        return nothing(p);
    }
    return of_prim(prim_intrin(p->c, row, kid));
}

static Value parse_math(Parser *p, MathFn fn, uint32_t n)
{
    Value v[2] = {{0}};

    for (uint32_t i = 0; i < n; i++) {
        if (i)
            parse_expect(p, ",");
        v[i] = parse_value(p, 0);
    }
    if (!parse_expect(p, ")") || !same_type(p, n, v))
        return nothing(p);
    if (!dtype_is_float(v[0].p->dtype) && fn != MATH_ABS) {
        parse_fail(p, "'%s' of a value that is no float", math_text(fn));
        return nothing(p);
    }
    return of_prim(prim_math(p->c, fn, v[0].p, n > 1 ? v[1].p : NULL));
}

/* dtype(..): a literal, an index or a cast. */
static Value parse_typed(Parser *p, DType t)
{
    Value       v;
    const Prim *q;
    const char *at;

    skip_blank(p);
    for (at = p->at + (*p->at == '-'); isdigit((unsigned char)*at);)
        at++;
    if (!dtype_is_float(t) && *at == ')') {
        int64_t n = parse_int(p);
        return parse_expect(p, ")") ? of_prim(prim_int(p->c, t, n)) : nothing(p);
    }
    v = parse_value(p, 0);
    if (!parse_expect(p, ")"))
        return nothing(p);
    if (v.literal && dtype_is_float(t))
        return of_prim(prim_float(p->c, t, v.num));
    if (v.x && dtype_is_int(t))
        return of_prim(prim_index(p->c, t, v.x));
    q = as_prim(p, v, NULL);
    if (q->dtype.lanes != t.lanes && q->dtype.lanes != 1)
        parse_fail(p, "cast of %s to %s", dtype_text(p->c, q->dtype), dtype_text(p->c, t));
    return p->failed ? nothing(p) : of_prim(prim_cast(p->c, t, q));
}

static Value parse_case(Parser *p)
{
    const Idx *which = parse_idx(p);
    VEC(Value) arms = {0};
    const Prim **prims;

    parse_expect(p, ";");
    do
        vec_push(p->c->scratch, &arms, parse_value(p, 0));
    while (parse_accept(p, ",") && arms.n < MAX_ARMS);
    if (!parse_expect(p, ")") || !same_type(p, arms.n, arms.at))
        return nothing(p);
    prims = NEW_ARRAY(p->c->scratch, const Prim *, arms.n);
    for (uint32_t i = 0; i < arms.n; i++)
        prims[i] = arms.at[i].p;
    for (uint32_t i = 1; i < arms.n; i++)
        if (!dtype_eq(prims[i]->dtype, prims[0]->dtype))
            parse_fail(p, "arms of a case differ in type");
    return p->failed ? nothing(p) : of_prim(prim_case(p->c, which, arms.n, prims));
}

static Value parse_vec(Parser *p)
{
    VEC(Value) at = {0};
    const Prim **prims;

    do
        vec_push(p->c->scratch, &at, parse_value(p, 0));
    while (parse_accept(p, ",") && at.n < MAX_LANES);
    if (!parse_expect(p, ")") || !same_type(p, at.n, at.at))
        return nothing(p);
    prims = NEW_ARRAY(p->c->scratch, const Prim *, at.n);
    for (uint32_t i = 0; i < at.n; i++) {
        prims[i] = at.at[i].p;
        if (prims[i]->dtype.lanes != 1)
            parse_fail(p, "a lane of a vector is a vector");
    }
    return p->failed ? nothing(p) : of_prim(prim_vec(p->c, at.n, prims));
}

static Value parse_splat(Parser *p)
{
    const Prim *q = as_prim(p, parse_value(p, 0), NULL);
    int64_t     lanes = 0;

    if (parse_expect(p, ","))
        lanes = parse_int(p);
    if (!p->failed && (lanes < 1 || lanes > MAX_LANES || q->dtype.lanes != 1))
        parse_fail(p, "splat of %u lanes to %lld", q->dtype.lanes, (long long)lanes);
    if (!parse_expect(p, ")"))
        return nothing(p);
    return of_prim(prim_splat(p->c, q, (uint16_t)lanes));
}

static Value parse_shuffle(Parser *p)
{
    const Prim *v = as_prim(p, parse_value(p, 0), NULL);
    uint16_t    from[MAX_LANES];
    int64_t     lane;
    uint32_t    n = 0;

    parse_expect(p, ";");
    do {
        lane = parse_int(p);
        if (!p->failed && (lane < 0 || lane >= v->dtype.lanes))
            parse_fail(p, "lane %lld of %u", (long long)lane, v->dtype.lanes);
        from[n++] = (uint16_t)lane;
    } while (parse_accept(p, ",") && n < MAX_LANES);
    if (!parse_expect(p, ")"))
        return nothing(p);
    return of_prim(prim_shuffle(p->c, v, (uint16_t)n, from));
}

static Value parse_ramp(Parser *p)
{
    DType      t = parse_dtype(p);
    const Idx *x = parse_expect(p, ",") ? parse_idx(p) : NULL;

    if (!p->failed && !dtype_is_int(t))
        parse_fail(p, "a ramp of %s", dtype_text(p->c, t));
    if (!parse_expect(p, ")"))
        return nothing(p);
    return of_prim(prim_ramp(p->c, dtype_lanes(t, 1), x, t.lanes));
}

static Value parse_bits(Parser *p)
{
    DType       t = parse_dtype(p);
    const Prim *q = parse_expect(p, ",") ? as_prim(p, parse_value(p, 0), NULL) : NULL;

    if (!parse_expect(p, ")"))
        return nothing(p);
    if (q->dtype.bits != t.bits || q->dtype.lanes != t.lanes) {
        parse_fail(p, "bits of %s as %s", dtype_text(p->c, q->dtype), dtype_text(p->c, t));
        return nothing(p);
    }
    return of_prim(prim_bits(p->c, t, q));
}

/* read(integer, lo, hi): a number of memory in an index. */
static Value parse_read(Parser *p)
{
    const Prim *q = as_prim(p, parse_value(p, 0), NULL);
    int64_t     lo = parse_expect(p, ",") ? parse_int(p) : 0,
            hi = parse_expect(p, ",") ? parse_int(p) : 0;

    if (!p->failed && (!dtype_is_int(q->dtype) || q->dtype.lanes != 1))
        parse_fail(p, "an index of type %s", dtype_text(p->c, q->dtype));
    if (!p->failed && lo > hi)
        parse_fail(p, "the range %lld..%lld is empty", (long long)lo, (long long)hi);
    if (!parse_expect(p, ")"))
        return nothing(p);
    return of_idx(idx_load(p->c->arith, q, lo, hi));
}

/* addr(@symbol), addr(%b[..]), addr(%b[..].member) */
static Value parse_offsetof(Parser *p)
{
    const AbiRecord *r = parse_record(p);
    const AbiMember *m = r && parse_expect(p, ",") ? record_member(r, parse_word(p)) : NULL;

    if (!p->failed && !m)
        parse_fail(p, "expected a struct of the ABI and a member of it");
    return parse_expect(p, ")") ? of_prim(prim_offsetof(p->c, r, m)) : nothing(p);
}

static Value parse_addr(Parser *p)
{
    const Prim *q;

    skip_blank(p);
    if (*p->at == '@') {
        p->at++;
        q = prim_symbol(p->c, parse_word(p));
    } else {
        const Buffer     *b = parse_buffer_name(p);
        uint16_t          lanes;
        const Idx *const *index = b ? parse_cell(p, b, &lanes) : NULL;
        if (!b)
            return nothing(p);
        const AbiMember *m = *p->at == '.' ? parse_member(p, b, true) : NULL;
        if (!p->failed && lanes != b->dtype.lanes)
            parse_fail(p, "an address has no lanes");
        if (p->failed)
            return nothing(p);
        q = prim_addr(p->c, b, index, m);
    }
    return parse_expect(p, ")") ? of_prim(q) : nothing(p);
}

/* handle(0) */
static Value parse_null(Parser *p)
{
    if (!p->failed && parse_int(p) != 0)
        parse_fail(p, "a handle that is written down is 0");
    return parse_expect(p, ")") ? of_prim(prim_null(p->c)) : nothing(p);
}

/* A bare word: a form, a function, a type, an iterator. */
static Value parse_named(Parser *p)
{
    const char      *at = p->at, *word = parse_word(p);
    const ParseName *name;
    DType            t;

    if (!strcmp(word, "true") || !strcmp(word, "false"))
        return of_prim(prim_int(p->c, DT_BOOL, word[0] == 't'));
    if (!parse_accept(p, "(")) {
        if (!(name = find_name(p, word, true))) {
            p->at = at;
            unknown_name(p, word, true);
            return nothing(p);
        }
        return of_idx(name->value);
    }
    for (uint32_t i = 0; i < COUNT(forms); i++)
        if (!strcmp(word, forms[i].text))
            return parse_form(p, forms[i].kind, forms[i].n);
    for (uint32_t i = 0; i < COUNT(functions); i++)
        if (!strcmp(word, functions[i].text))
            return parse_math(p, functions[i].fn, functions[i].n);
    if (!strcmp(word, "case"))
        return parse_case(p);
    if (!strcmp(word, "vec"))
        return parse_vec(p);
    if (!strcmp(word, "splat"))
        return parse_splat(p);
    if (!strcmp(word, "shuffle"))
        return parse_shuffle(p);
    if (!strcmp(word, "ramp"))
        return parse_ramp(p);
    if (!strcmp(word, "bits"))
        return parse_bits(p);
    if (!strcmp(word, "read"))
        return parse_read(p);
    if (!strcmp(word, "addr"))
        return parse_addr(p);
    if (!strcmp(word, "sizeof")) {
        const AbiRecord *r = parse_sizeof(p);
        return p->failed ? nothing(p) : of_prim(prim_sizeof(p->c, r));
    }
    if (!strcmp(word, "offsetof"))
        return parse_offsetof(p);
    if (!strcmp(word, "handle"))
        return parse_null(p);
    if (dtype_parse(word, &t) && t.lanes > 0 && t.lanes <= MAX_LANES)
        return parse_typed(p, t);
    if (intrin_find(p->c, word, 0, NULL))
        return parse_intrin(p, word);
    p->at = at;
    parse_fail(p, "there is no function '%s'", word);
    return nothing(p);
}

const Idx *const *parse_cell(Parser *p, const Buffer *b, uint16_t *lanes)
{
    const Idx **at = NEW_ARRAY(p->c->scratch, const Idx *, b->ndim + 1);
    int64_t     n = b->dtype.lanes;

    parse_expect(p, "[");
    for (uint32_t i = 0; i < b->ndim; i++) {
        if (i)
            parse_expect(p, ",");
        at[i] = parse_idx(p);
    }
    if (parse_accept(p, ":"))
        n = parse_int(p);
    if (!p->failed && n != b->dtype.lanes &&
        (n < 1 || n > MAX_LANES || b->dtype.lanes != 1 || b->ndim == 0))
        parse_fail(p, "%lld lanes of '%s'", (long long)n, b->name);
    parse_expect(p, "]");
    *lanes = (uint16_t)n;
    return at;
}

/* .member, which can be read and written */
const AbiMember *parse_member(Parser *p, const Buffer *b, bool address)
{
    const char      *at = p->at, *name;
    const AbiMember *m = NULL;

    if (b->record && *p->at == '.') {
        p->at++;
        name = parse_word(p);
        m = record_member(b->record, name);
    }
    if (!p->failed && (!m || (m->type == ABI_SHA && !address))) {
        p->at = at;
        parse_fail(p, "'%s' of %s is followed by '.' and a member", b->name,
                   b->record ? b->record->name : dtype_text(p->c, b->dtype));
    }
    return p->failed ? NULL : m;
}

static Value parse_percent(Parser *p)
{
    const char      *at = p->at, *name;
    const ParseName *n;

    p->at++;
    name = parse_word(p);
    n = find_name(p, name, false);
    if (p->failed)
        return nothing(p);
    if (!n) {
        p->at = at;
        unknown_name(p, name, false);
        return nothing(p);
    }
    if (n->value)
        return of_idx(n->value);
    uint16_t          lanes;
    const Buffer     *b = n->buffer;
    const Idx *const *index = parse_cell(p, b, &lanes);
    const Prim       *mask = NULL;
    if (b->record && !p->failed) {
        const AbiMember *m = parse_member(p, b, false);
        return m ? of_prim(prim_member(p->c, b, index, m)) : nothing(p);
    }
    if (parse_accept(p, "mask(")) {
        mask = as_prim(p, parse_value(p, 0), NULL);
        parse_expect(p, ")");
        if (!p->failed && (!dtype_is_bool(mask->dtype) || mask->dtype.lanes != lanes))
            parse_fail(p, "the mask is %s, not %u bools", dtype_text(p->c, mask->dtype), lanes);
        if (!p->failed && b->dtype.lanes != 1)
            parse_fail(p, "'%s' cannot be masked", b->name);
        if (!p->failed && b->ndim == 0)
            parse_fail(p, "'%s' cannot be masked", b->name);
    }
    return p->failed ? nothing(p) : of_prim(prim_loadv(p->c, b, index, lanes, mask));
}

/* v gets the next label. */
static Value parse_label(Parser *p, Value v)
{
    const Prim *q = as_prim(p, v, NULL);

    parse_expect(p, "$");
    if (parse_int(p) != p->labels.n)
        parse_fail(p, "expected '$%u', the next label", p->labels.n);
    vec_push(p->c->scratch, &p->labels, q);
    return of_prim(q);
}

static Value parse_labelled(Parser *p)
{
    int64_t n = parse_int(p);

    if (!p->failed && n >= 0 && n < p->labels.n)
        return of_prim(p->labels.at[n]);
    parse_fail(p, "there is no '$%" PRId64 "' before this", n);
    return nothing(p);
}

static Value parse_factor(Parser *p)
{
    Value v;

    skip_blank(p);
    if (p->failed)
        return nothing(p);
    if (*p->at == '%')
        return parse_percent(p);
    if (starts_float(p->at) || (*p->at == '-' && starts_float(p->at + 1)))
        return (Value){.literal = true, .num = parse_double(p)};
    if (starts_number(p->at) || (*p->at == '-' && starts_number(p->at + 1)))
        return of_idx(idx_const(p->c->arith, parse_int(p)));
    if (parse_accept(p, "(")) {
        v = parse_value(p, 0);
        if (parse_accept(p, "as"))
            v = parse_label(p, v);
        parse_expect(p, ")");
        return v;
    }
    if (parse_accept(p, "$"))
        return parse_labelled(p);
    if (parse_accept(p, "!")) {
        const Prim *q = as_prim(p, parse_factor(p), NULL);
        if (!dtype_is_bool(q->dtype))
            parse_fail(p, "'!' of %s", dtype_text(p->c, q->dtype));
        return p->failed ? nothing(p) : of_prim(prim_not(p->c, q));
    }
    if (is_word(*p->at))
        return parse_named(p);
    parse_fail(p, "expected a value");
    return nothing(p);
}

/* `//` and `%` are of indices; the operand follows at once or after blanks. */
static Value divide(Parser *p, Value a, Value b, bool mod)
{
    Arith *A = p->c->arith;

    if (p->failed)
        return nothing(p);
    if (!a.x || !b.x) {
        parse_fail(p, "'%s' is for indices", mod ? "%" : "//");
        return nothing(p);
    }
    if (b.x->hi < 1) {
        parse_fail(p, "a divisor that is never positive");
        return nothing(p);
    }
    return of_idx(mod ? idx_mod(A, a.x, b.x) : idx_div(A, a.x, b.x));
}

static Value parse_product(Parser *p)
{
    Value v = parse_factor(p);

    while (!p->failed) {
        if (p->at[0] == '/' && p->at[1] == '/') {
            p->at += 2;
            v = divide(p, v, parse_factor(p), false);
            continue;
        }
        if (v.x && p->at[0] == '%') {
            p->at++;
            v = divide(p, v, parse_factor(p), true);
            continue;
        }
        skip_blank(p);
        if (v.x && p->at[0] == '%' && (is_blank(p->at[1]) || isdigit((unsigned char)p->at[1]))) {
            p->at++;
            v = divide(p, v, parse_factor(p), true);
        } else if (parse_accept(p, "*")) {
            v = binary(p, PRIM_MUL, v, parse_factor(p));
        } else if (p->at[0] == '/' && p->at[1] != '/') {
            p->at++;
            v = binary(p, PRIM_DIV, v, parse_factor(p));
        } else {
            break;
        }
    }
    return v;
}

static Value negate(Parser *p, Value v)
{
    if (v.x)
        return of_idx(idx_mulc(p->c->arith, v.x, -1));
    if (v.literal)
        return (Value){.literal = true, .num = -v.num};
    return of_prim(prim_neg(p->c, v.p));
}

static Value parse_sum(Parser *p)
{
    Value v;

    skip_blank(p);
    if (*p->at == '-' && !starts_float(p->at + 1)) {
        p->at++;
        v = negate(p, parse_product(p));
    } else {
        v = parse_product(p);
    }
    while (!p->failed) {
        skip_blank(p);
        if (p->at[0] == '-' && p->at[1] == '>')
            break;
        if (parse_accept(p, "+"))
            v = binary(p, PRIM_ADD, v, parse_product(p));
        else if (parse_accept(p, "-"))
            v = binary(p, PRIM_SUB, v, parse_product(p));
        else
            break;
    }
    return v;
}

static const struct {
    const char *text;
    PrimKind    kind;
    bool        swap;
} comparisons[] = {
    {"==", PRIM_EQ, false}, {"!=", PRIM_NE, false}, {"<=", PRIM_LE, false},
    {">=", PRIM_LE, true},  {"<", PRIM_LT, false},  {">", PRIM_LT, true},
};

static Value parse_comparison(Parser *p)
{
    Value a = parse_sum(p), b;

    for (uint32_t i = 0; i < COUNT(comparisons); i++) {
        if (!parse_accept(p, comparisons[i].text))
            continue;
        b = parse_sum(p);
        return comparisons[i].swap ? binary(p, comparisons[i].kind, b, a)
                                   : binary(p, comparisons[i].kind, a, b);
    }
    return a;
}

static bool need_bool(Parser *p, Value a, Value b)
{
    if (p->failed)
        return false;
    if (!a.p || !b.p || !dtype_is_bool(a.p->dtype) || !dtype_is_bool(b.p->dtype))
        parse_fail(p, "'&&' and '||' are for bools");
    return !p->failed;
}

/* prec 0: all; 1: without `||`. */
static Value parse_value(Parser *p, int prec)
{
    Value v, b;

    if (!parse_enter(p))
        return nothing(p);
    v = prec ? parse_comparison(p) : parse_value(p, 1);
    while (parse_accept(p, prec ? "&&" : "||")) {
        b = prec ? parse_comparison(p) : parse_value(p, 1);
        v = need_bool(p, v, b) ? binary(p, prec ? PRIM_AND : PRIM_OR, v, b) : nothing(p);
    }
    parse_leave(p);
    return v;
}

/* ---- what statements ask for --------------------------------------------------------------------- */

const Idx *parse_idx(Parser *p)
{
    const char *at;
    Value       v;

    skip_blank(p);
    at = p->at;
    v = nothing(p);
    if (parse_enter(p)) {
        v = parse_sum(p);
        parse_leave(p);
    }
    if (!p->failed && !v.x) {
        p->at = at;
        parse_fail(p, "expected an index");
    }
    return v.x ? v.x : idx_const(p->c->arith, 0);
}

const Prim *parse_prim(Parser *p, const DType *like)
{
    return as_prim(p, parse_value(p, 0), like);
}

Pred parse_pred(Parser *p)
{
    Pred        out = PRED_TRUE;
    const char *at;
    const Prim *q;

    skip_blank(p);
    at = p->at;
    q = parse_prim(p, NULL);
    if (!p->failed && (!dtype_is_bool(q->dtype) || !prim_pred(p->c, q, &out))) {
        p->at = at;
        parse_fail(p, "expected comparisons of indices joined by '&&'");
    }
    return out;
}
