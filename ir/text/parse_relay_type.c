/* Relay from text: characters, types, places, numbers. */
#include "ir/text/parse_relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- characters ----------------------------------------------------------------------------- */

Loc rp_here(const Parser *p)
{
    return (Loc){p->file, p->line, (uint32_t)(p->at - p->line_start) + 1, NULL};
}

void rp_skip(Parser *p)
{
    for (;; p->at++) {
        if (*p->at == '\n') {
            p->line++;
            p->line_start = p->at + 1;
        } else if (p->at[0] == '/' && p->at[1] == '/') {
            while (*p->at && *p->at != '\n')
                p->at++;
            p->at--;
        } else if (*p->at != ' ' && *p->at != '\t' && *p->at != '\r') {
            return;
        }
    }
}

bool rp_peek(Parser *p, const char *token)
{
    rp_skip(p);
    return str_starts(p->at, token);
}

bool rp_accept(Parser *p, const char *token)
{
    if (!rp_peek(p, token))
        return false;
    p->at += strlen(token);
    return true;
}

/* What stands here, for messages. */
const char *rp_found(Parser *p)
{
    const char *s;
    size_t      n = 0;

    rp_skip(p);
    s = p->at;
    if (!*s)
        return "the end of the text";
    if (name_char(*s))
        while (name_char(s[n]) && n < 30)
            n++;
    else
        n = 1;
    return arena_printf(p->c->scratch, "'%.*s'", (int)n, s);
}

bool rp_expect(Parser *p, const char *token)
{
    if (rp_accept(p, token))
        return true;
    return FAIL(p, "expected '%s', found %s", token, rp_found(p));
}

/* A keyword: not the beginning of a longer name. */
bool rp_peek_word(Parser *p, const char *word)
{
    return rp_peek(p, word) && !name_char(p->at[strlen(word)]);
}

bool rp_accept_word(Parser *p, const char *word)
{
    if (!rp_peek_word(p, word))
        return false;
    p->at += strlen(word);
    return true;
}

const char *rp_ident(Parser *p)
{
    const char *s;

    rp_skip(p);
    s = p->at;
    if (!name_start(*s))
        return FAIL(p, "expected a name, found %s", rp_found(p));
    while (name_char(*p->at))
        p->at++;
    return intern_n(p->c->strings, s, (size_t)(p->at - s));
}

static int hex_digit(char ch)
{
    return ch >= '0' && ch <= '9'   ? ch - '0'
           : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10
           : ch >= 'A' && ch <= 'F' ? ch - 'A' + 10
                                    : -1;
}

const char *rp_string(Parser *p)
{
    StrBuf s = strbuf(p->c->scratch);

    if (!rp_expect(p, "\""))
        return NULL;
    for (; *p->at != '"'; p->at++) {
        if (!*p->at || *p->at == '\n')
            return FAIL(p, "the string does not end on its line");
        if (*p->at == '\\' && p->at[1] == 'x' && hex_digit(p->at[2]) >= 0 &&
            hex_digit(p->at[3]) >= 0) {
            int ch = hex_digit(p->at[2]) * 16 + hex_digit(p->at[3]);

            if (!ch)
                return FAIL(p, "a string cannot hold a zero byte");
            str_addc(&s, (char)ch);
            p->at += 3;
        } else if (*p->at == '\\' && p->at[1] == 'n') {
            str_addc(&s, '\n');
            p->at++;
        } else {
            if (*p->at == '\\' && p->at[1] && p->at[1] != '\n')
                p->at++;
            str_addc(&s, *p->at);
        }
    }
    p->at++;
    return intern(p->c->strings, s.at ? s.at : "");
}

/* After the sigil: `name` or `"any text"`. */
const char *rp_name(Parser *p)
{
    return *p->at == '"' ? rp_string(p) : rp_ident(p);
}

bool rp_u64(Parser *p, uint64_t *v)
{
    char *end;

    rp_skip(p);
    errno = 0;
    if (*p->at < '0' || *p->at > '9')
        return FAIL(p, "expected a number, found %s", rp_found(p));
    *v = strtoull(p->at, &end, 10);
    if (errno == ERANGE)
        return FAIL(p, "the number is too large");
    p->at = end;
    return true;
}

bool rp_i64(Parser *p, int64_t *v)
{
    bool     minus = rp_accept(p, "-");
    uint64_t u;

    if (!rp_u64(p, &u))
        return false;
    if (u > (uint64_t)INT64_MAX)
        return FAIL(p, "the number is too large");
    *v = minus ? -(int64_t)u : (int64_t)u;
    return true;
}

bool rp_sha(Parser *p, Sha256 *out)
{
    if (!rp_expect(p, "sha256:"))
        return false;
    for (int i = 0; i < 32; i++, p->at += 2) {
        int hi = hex_digit(p->at[0]), lo = hi < 0 ? -1 : hex_digit(p->at[1]);

        if (lo < 0)
            return FAIL(p, "a sha256 has 64 hexadecimal digits");
        out->b[i] = (uint8_t)(hi * 16 + lo);
    }
    return true;
}

bool rp_enter(Parser *p)
{
    if (p->nest++ < MAX_NEST)
        return true;
    return FAIL(p, "the text nests deeper than %d", MAX_NEST);
}

/* ---- types ---------------------------------------------------------------------------------- */

static const Idx *dim_by_name(void *user, const char *name, size_t n)
{
    Parser *p = user;

    return map_get(p->dims, PTR_KEY(intern_n(p->c->strings, name, n)));
}

IdxParser rp_dims(Parser *p)
{
    return (IdxParser){.name = dim_by_name, .user = p};
}

const Idx *rp_form(Parser *p)
{
    IdxParser   how = rp_dims(p);
    const Idx  *x;
    const char *was;

    rp_skip(p);
    was = p->at;
    x = idx_parse(p->c->arith, &p->at, &how);
    if (!x || x->lo < 0) {
        p->at = was;
        return FAIL(p, "expected a dimension, a number or declared with 'dim', found %s",
                    rp_found(p));
    }
    return x;
}

bool rp_dtype(Parser *p, DType *t)
{
    const char *was, *name;

    rp_skip(p);
    was = p->at;
    if (!(name = rp_ident(p)))
        return false;
    if (dtype_parse(name, t) && t->lanes == 1)
        return true;
    p->at = was;
    return FAIL(p, "'%s' is no element type", name);
}

bool rp_u32(Parser *p, uint32_t *v)
{
    uint64_t u;

    if (!rp_u64(p, &u))
        return false;
    if (u > INT32_MAX)
        return FAIL(p, "the number is too large");
    *v = (uint32_t)u;
    return true;
}

/* `halo(2:1+1, 3:1+1) = 0.0` */
static const Type *parse_halo(Parser *p, const Type *t)
{
    uint32_t *lo = NEW_ARRAY(p->c->scratch, uint32_t, t->n + 1);
    uint32_t *hi = NEW_ARRAY(p->c->scratch, uint32_t, t->n + 1), i;
    Halo      h = {.ndim = t->n, .lo = lo, .hi = hi};
    char     *end;

    do {
        if (!rp_u32(p, &i))
            return NULL;
        if (i >= t->n)
            return FAIL(p, "there is no dimension %u", i);
        if (!rp_expect(p, ":") || !rp_u32(p, &lo[i]) || !rp_expect(p, "+") || !rp_u32(p, &hi[i]))
            return NULL;
    } while (rp_accept(p, ","));
    if (!rp_expect(p, ")") || !rp_expect(p, "="))
        return NULL;
    rp_skip(p);
    h.value = strtod(p->at, &end);
    if (end == p->at)
        return FAIL(p, "expected the halo's value, found %s", rp_found(p));
    p->at = end;
    return type_with_halo(p->c, t, &h);
}

/* Types up to `close`; `comma` tells whether the last was followed by a comma. */
bool rp_types(Parser *p, const char *close, TypeVec *out, bool *comma)
{
    *comma = false;
    while (!rp_accept(p, close)) {
        const Type *t;

        if (out->n && !*comma)
            return FAIL(p, "expected ',' or '%s', found %s", close, rp_found(p));
        if (!(t = rp_type(p)))
            return false;
        vec_push(p->c->scratch, out, t);
        *comma = rp_accept(p, ",");
    }
    return true;
}

static const Type *parse_tensor(Parser *p)
{
    VEC(const Idx *) dims = {0};
    DType dt;

    if (!rp_expect(p, "[") || !rp_expect(p, "("))
        return NULL;
    while (!rp_accept(p, ")")) {
        const Idx *d;

        if (dims.n && !rp_expect(p, ","))
            return NULL;
        if (dims.n && rp_accept(p, ")"))
            break;
        if (!(d = rp_form(p)))
            return NULL;
        vec_push(p->c->scratch, &dims, d);
    }
    if (!rp_expect(p, ",") || !rp_dtype(p, &dt) || !rp_expect(p, "]"))
        return NULL;
    if (rp_accept(p, "halo("))
        return parse_halo(p, type_tensor(p->c, dt, dims.n, dims.at));
    return type_tensor(p->c, dt, dims.n, dims.at);
}

static const Type *parse_named_type(Parser *p)
{
    const char *was = p->at, *name = rp_ident(p);
    const Adt  *adt;
    TypeVec     args = {0};
    DType       dt;
    bool        comma;

    if (!name)
        return NULL;
    if (dtype_parse(name, &dt) && dt.lanes == 1)
        return type_tensor(p->c, dt, 0, NULL);
    if (p->tvars && map_get(p->tvars, PTR_KEY(name)))
        return map_get(p->tvars, PTR_KEY(name));
    if (!(adt = map_get(p->adts, PTR_KEY(name)))) {
        p->at = was;
        return FAIL(p, "there is no type '%s'", name);
    }
    if (rp_accept(p, "[") && !rp_types(p, "]", &args, &comma))
        return NULL;
    if (args.n != adt->nvars)
        return FAIL(p, "'%s' takes %u type argument%s, not %u", name, adt->nvars,
                    adt->nvars == 1 ? "" : "s", args.n);
    return type_adt(p->c, name, args.n, args.at);
}

const Type *rp_type(Parser *p)
{
    TypeVec     parts = {0};
    const Type *t = NULL;
    bool        comma;

    if (!rp_enter(p))
        return NULL;
    rp_skip(p);
    if (rp_accept_word(p, "Tensor")) {
        t = parse_tensor(p);
    } else if (rp_accept(p, "(")) {
        if (rp_types(p, ")", &parts, &comma))
            t = parts.n == 1 && !comma ? parts.at[0] : type_tuple(p->c, parts.n, parts.at);
    } else if (rp_accept_word(p, "fn")) {
        const Type *ret;

        if (rp_expect(p, "(") && rp_types(p, ")", &parts, &comma) && rp_expect(p, "->") &&
            (ret = rp_type(p)))
            t = type_func(p->c, parts.n, parts.at, ret);
    } else if (rp_accept_word(p, "ref")) {
        if (rp_expect(p, "[") && (t = rp_type(p)))
            t = rp_expect(p, "]") ? type_ref(p->c, t) : NULL;
    } else {
        t = parse_named_type(p);
    }
    p->nest--;
    return t;
}

/* ---- places --------------------------------------------------------------------------------- */

/* `loc("net.onnx":17:Conv_3)`, if it is there; `ok` false after an error. */
Loc rp_loc(Parser *p, Loc otherwise, bool *ok)
{
    Loc l = {0};

    *ok = true;
    if (!rp_accept(p, "loc("))
        return otherwise;
    *ok = false;
    if (!(l.file = rp_string(p)))
        return l;
    while (rp_accept(p, ":")) {
        rp_skip(p);
        if (*p->at >= '0' && *p->at <= '9') {
            if (!rp_u32(p, &l.line))
                return l;
        } else if (!(l.name = rp_name(p))) {
            return l;
        }
    }
    *ok = rp_expect(p, ")");
    return l;
}

/* ---- numbers -------------------------------------------------------------------------------- */

/* The text of one number: digits, sign, point, exponent, inf, nan, 0x.. */
static const char *number_text(Parser *p)
{
    const char *s, *start;

    rp_skip(p);
    start = s = p->at;
    if (*s == '-' || *s == '+')
        s++;
    if (!strncmp(s, "inf", 3) || !strncmp(s, "nan", 3)) {
        s += 3;
    } else if (s[0] == '0' && s[1] == 'x') {
        for (s += 2; hex_digit(*s) >= 0; s++)
            ;
    } else if ((*s >= '0' && *s <= '9') || *s == '.') {
        for (; (*s >= '0' && *s <= '9') || *s == '.' || *s == 'e' || *s == 'E' ||
               ((*s == '-' || *s == '+') && (s[-1] == 'e' || s[-1] == 'E'));
             s++)
            ;
    } else {
        return FAIL(p, "expected a number, found %s", rp_found(p));
    }
    if (s - start > 60)
        return FAIL(p, "the number is too long");
    p->at = s;
    return arena_printf(p->c->scratch, "%.*s", (int)(s - start), start);
}

static bool put_number(Parser *p, DType t, const char *s, void *out)
{
    char *end;

    errno = 0;
    if (s[0] == '0' && s[1] == 'x') {
        uint64_t bits = strtoull(s, &end, 16);

        if (errno == ERANGE || *end || (t.bits < 64 && bits >> t.bits))
            return FAIL(p, "'%s' does not fit %s", s, dtype_text(p->c, t));
        dtype_put_i((DType){DT_UINT, t.bits, 1}, out, (int64_t)bits);
        return true;
    }
    if (dtype_is_real(t)) {
        double v = strtod(s, &end);

        if (*end)
            return FAIL(p, "'%s' is no number", s);
        dtype_put_f(t, out, v);
        return true;
    }
    if (t.code == DT_UINT) {
        uint64_t v = strtoull(s, &end, 10);

        if (*end || *s == '-' || errno == ERANGE || (t.bits < 64 && v >> t.bits))
            return FAIL(p, "'%s' does not fit %s", s, dtype_text(p->c, t));
        dtype_put_i(t, out, (int64_t)v);
        return true;
    }
    {
        int64_t v = strtoll(s, &end, 10);

        if (*end || errno == ERANGE || (double)v < dtype_min(t) ||
            (t.bits < 64 && (double)v > dtype_max(t)))
            return FAIL(p, "'%s' does not fit %s", s, dtype_text(p->c, t));
        dtype_put_i(t, out, v);
    }
    return true;
}

/* A value of a known type. */
bool rp_number(Parser *p, DType t, void *out)
{
    const char *s;

    if (dtype_is_bool(t)) {
        bool v = rp_accept_word(p, "true");

        if (!v && !rp_accept_word(p, "false"))
            return FAIL(p, "expected true or false, found %s", rp_found(p));
        dtype_put_i(t, out, v);
        return true;
    }
    return (s = number_text(p)) && put_number(p, t, s, out);
}

const Expr *rp_scalar(Parser *p, DType t, const void *at, Loc loc)
{
    Bytes data = {arena_dup(p->c->arena, at, dtype_bytes(t)), dtype_bytes(t)};

    return expr_const(p->c, const_new(p->c, NULL, type_tensor(p->c, t, 0, NULL), data), loc);
}

/* 3, 1.5, 3_i64, 0x7fc00000_f32, -inf */
const Expr *rp_literal(Parser *p)
{
    Loc         loc = rp_here(p);
    const char *s = number_text(p);
    uint64_t    bits = 0;
    DType       t;

    if (!s)
        return NULL;
    t = strpbrk(s, ".eEin") && s[1] != 'x' ? DT_F32 : DT_I32;
    if (*p->at == '_') {
        p->at++;
        if (!rp_dtype(p, &t))
            return NULL;
    }
    return put_number(p, t, s, &bits) ? rp_scalar(p, t, &bits, loc) : NULL;
}
