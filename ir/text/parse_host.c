/* What host functions of TIR have beside loops and kernels, from text: members of structs, calls by
 * address, constant data.  The language is at the top of print_tir.c. */
#include "ir/text/parse_tir.h"

#include <string.h>

const char *parse_symbol(Parser *p)
{
    return parse_expect(p, "@") ? parse_word(p) : "";
}

/* ---- statements -------------------------------------------------------------------------------- */

const AbiRecord *parse_record(Parser *p)
{
    const char      *at;
    const AbiRecord *r;

    skip_blank(p);
    at = p->at;
    r = is_word(*at) ? record_find(parse_word(p)) : NULL;
    if (!r)
        p->at = at;
    return r;
}

/* What stands behind `sizeof(`: params) */
const AbiRecord *parse_sizeof(Parser *p)
{
    const AbiRecord *r = parse_record(p);

    if (!p->failed && !r)
        parse_fail(p, "expected a struct of the ABI");
    parse_expect(p, ")");
    return r;
}

/* .member = prim */
const Stmt *parse_put(Parser *p, const Buffer *b, const Idx *const *index)
{
    const AbiMember *m = parse_member(p, b, false);
    const Prim      *value;
    DType            t;

    if (!m || !parse_expect(p, "="))
        return stmt_seq(p->c, 0, NULL);
    t = abi_dtype(m->type);
    value = parse_prim(p, &t);
    if (!p->failed && !dtype_eq(value->dtype, t))
        parse_fail(p, "a value of type %s for '%s' of %s", dtype_text(p->c, value->dtype), m->name,
                   dtype_text(p->c, t));
    return p->failed ? stmt_seq(p->c, 0, NULL) : stmt_put(p->c, b, index, m, value);
}

const Signature *parse_signature(Parser *p)
{
    const char      *at, *name;
    const Signature *sig;

    skip_blank(p);
    at = p->at;
    name = parse_word(p);
    sig = signature_find(name);
    if (!p->failed && !sig) {
        p->at = at;
        parse_fail(p, "there is no signature '%s'", name);
    }
    return sig;
}

/* launch @f(prim, ..) or launch %p[].launch(prim, ..) */
const Stmt *parse_invoke(Parser *p, const Buffer *result)
{
    InvokeData  d = {.sig = parse_signature(p), .result = result};
    const Prim *args[MAX_SIGNATURE];

    d.args = args;
    skip_blank(p);
    if (p->failed)
        return stmt_seq(p->c, 0, NULL);
    d.fn = *p->at == '@' ? prim_symbol(p->c, parse_symbol(p)) : parse_prim(p, NULL);
    parse_expect(p, "(");
    for (uint32_t n = signature_params(d.sig); d.nargs < n && !p->failed; d.nargs++) {
        DType t = abi_dtype(d.sig->param[d.nargs]);
        if (d.nargs)
            parse_expect(p, ",");
        args[d.nargs] = parse_prim(p, &t);
    }
    parse_expect(p, ")");
    return p->failed ? stmt_seq(p->c, 0, NULL) : stmt_invoke(p->c, d);
}

const Stmt *parse_switch(Parser *p)
{
    const Prim *value = parse_prim(p, NULL);
    VEC(int64_t) end = {0};
    VEC(const Stmt *) arm = {0};

    parse_expect(p, "{");
    while (!p->failed && parse_accept(p, "<")) {
        int64_t n = parse_int(p);
        if (!p->failed && n <= (end.n ? end.at[end.n - 1] : 0))
            parse_fail(p, "an arm for no value");
        vec_push(p->c->scratch, &end, n);
        vec_push(p->c->scratch, &arm, parse_braces(p));
    }
    parse_expect(p, "}");
    return p->failed ? stmt_seq(p->c, 0, NULL) : stmt_switch(p->c, value, arm.n, end.at, arm.at);
}

/* (prim), or nothing */
const Stmt *parse_return(Parser *p)
{
    const Prim *value = NULL;

    if (parse_accept(p, "(")) {
        value = parse_prim(p, NULL);
        parse_expect(p, ")");
    }
    return p->failed ? stmt_seq(p->c, 0, NULL) : stmt_return(p->c, value);
}

/* ---- data --------------------------------------------------------------------------------------- */

static int hex_digit(char ch)
{
    return ch >= '0' && ch <= '9' ? ch - '0' : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

/* The digits after `hex`. */
static Bytes parse_hex(Parser *p)
{
    VEC(uint8_t) bytes = {0};

    skip_blank(p);
    while (!p->failed && hex_digit(p->at[0]) >= 0 && hex_digit(p->at[1]) >= 0) {
        uint8_t b = (uint8_t)(hex_digit(p->at[0]) << 4 | hex_digit(p->at[1]));
        vec_push(p->c->arena, &bytes, b);
        p->at += 2;
    }
    return (Bytes){bytes.at, bytes.n};
}

static DataItem parse_item(Parser *p)
{
    static const AbiType numbers[] = {ABI_U8,  ABI_U16, ABI_U32, ABI_I32,
                                      ABI_F32, ABI_I64, ABI_SIZE};
    const char          *text;

    skip_blank(p);
    if (*p->at == '@')
        return (DataItem){.type = ABI_HANDLE, .symbol = parse_symbol(p)};
    if (*p->at == '"') {
        text = parse_string(p);
        return (DataItem){.bytes = {(const uint8_t *)text, p->failed ? 0 : strlen(text) + 1}};
    }
    if (parse_accept(p, "null"))
        return (DataItem){.type = ABI_HANDLE};
    if (parse_accept(p, "hex"))
        return (DataItem){.bytes = parse_hex(p)};
    for (size_t i = 0; i < COUNT(numbers); i++) {
        AbiType t = numbers[i];
        if (!parse_accept(p, t == ABI_SIZE ? "size" : dtype_text(p->c, abi_dtype(t))))
            continue;
        if (parse_accept(p, "sizeof("))
            return (DataItem){.type = t, .size_of = parse_sizeof(p)};
        return (DataItem){.type = t, .i = parse_int(p)};
    }
    parse_fail(p, "expected an item of data");
    return (DataItem){0};
}

Data parse_data(Parser *p)
{
    Data d = {.name = parse_symbol(p)};
    VEC(DataItem) items = {0};

    if (parse_accept(p, ":") && !(d.record = parse_record(p)))
        parse_fail(p, "expected a struct of the ABI");
    d.exported = parse_accept(p, "exported");
    if (parse_accept(p, "align")) {
        int64_t align = parse_int(p);
        if (!p->failed && (align < 1 || align > 4096 || (align & (align - 1))))
            parse_fail(p, "an alignment of %lld", (long long)align);
        d.align = (uint32_t)align;
    }
    parse_expect(p, "{");
    if (!parse_accept(p, "}")) {
        do
            vec_push(p->c->arena, &items, parse_item(p));
        while (parse_accept(p, ",") && !p->failed);
        parse_expect(p, "}");
    }
    if (!p->failed && d.record && items.n % d.record->n)
        parse_fail(p, "%u values for structs of %u members", items.n, d.record->n);
    d.nitems = items.n;
    d.items = items.at;
    return d;
}
