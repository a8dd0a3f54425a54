/* Relay from text: what print_relay.c prints, and a little more freely (docs/ir/relay.md).
 *
 * A recursive descent over the characters, in three files (parse_relay.h); this one reads
 * declarations and the side file of large constants.  The first error ends the parse: E_PARSE_TEXT
 * for the grammar (with a caret), E_TYPE from the operators' relations. */
#include "ir/text/parse_relay.h"

#include <string.h>

/* ---- declarations --------------------------------------------------------------------------- */

static bool parse_dim_decl(Parser *p)
{
    const char *name = rp_ident(p), *stored;
    int64_t     lo, k = 1;
    const Idx  *x, *hi;

    if (!name || !rp_expect(p, "in") || !rp_i64(p, &lo) || !rp_expect(p, "..") ||
        !(hi = rp_form(p)))
        return false;
    if (rp_accept_word(p, "multiple") && !rp_i64(p, &k))
        return false;
    if (!is_dim_bound(hi))
        return FAIL(p, "the bound of '%s' is no form over dimensions whose bounds are numbers",
                    name);
    if (lo < 0 || k < 1 || hi->hi < lo || hi->hi / k < (lo + k - 1) / k)
        return FAIL(p, "'%s' has an empty or negative range", name);
    /* A multiple of k is stored as k times another dim, so that arithmetic knows. */
    stored = k == 1 ? name : intern_printf(p->c->strings, "%s.%lld", name, (long long)k);
    x = dim_within(p->c, stored, (lo + k - 1) / k, idx_divc(p->c->arith, hi, k));
    map_put(p->dims, PTR_KEY(stored), (void *)(uintptr_t)x);
    if (k != 1)
        map_put(p->dims, PTR_KEY(name), (void *)(uintptr_t)idx_mulc(p->c->arith, x, k));
    return true;
}

static bool parse_ctor(Parser *p, const Adt *adt, uint32_t tag, const Ctor **out)
{
    const char *name = rp_ident(p);
    TypeVec     fields = {0};
    Ctor       *k = NEW(p->c->arena, Ctor);
    bool        comma;

    if (!name)
        return false;
    if (map_get(p->ctors, PTR_KEY(name)) || op_find(p->c, name))
        return FAIL(p, "the name '%s' is taken", name);
    if (rp_accept(p, "(") && !rp_types(p, ")", &fields, &comma))
        return false;
    *k = (Ctor){name, adt, tag, fields.n, NULL};
    k->fields = fields.n ? DUP_ARRAY(p->c->arena, fields.at, fields.n) : NULL;
    map_put(p->ctors, PTR_KEY(name), k);
    *out = k;
    return true;
}

static bool parse_adt(Parser *p)
{
    const char *name = rp_ident(p);
    Adt        *adt = NEW(p->c->arena, Adt);
    TypeVec     vars = {0};
    VEC(const Ctor *) ctors = {0};

    if (!name)
        return false;
    if (map_get(p->adts, PTR_KEY(name)))
        return FAIL(p, "the type '%s' is declared twice", name);
    p->tvars = map_new(p->c->scratch);
    if (rp_accept(p, "["))
        do {
            const char *v = rp_ident(p);

            if (!v)
                return false;
            vec_push(p->c->scratch, &vars, type_var(p->c, v));
            map_put(p->tvars, PTR_KEY(v), (void *)(uintptr_t)vars.at[vars.n - 1]);
        } while (rp_accept(p, ","));
    if (vars.n && !rp_expect(p, "]"))
        return false;
    adt->name = name;
    adt->nvars = vars.n;
    adt->vars = vars.n ? DUP_ARRAY(p->c->arena, vars.at, vars.n) : NULL;
    map_put(p->adts, PTR_KEY(name), adt);
    if (!rp_expect(p, "{"))
        return false;
    do {
        const Ctor *k;

        if (!parse_ctor(p, adt, ctors.n, &k))
            return false;
        vec_push(p->c->scratch, &ctors, k);
    } while (rp_accept(p, ","));
    adt->nctors = ctors.n;
    adt->ctors = DUP_ARRAY(p->c->arena, ctors.at, ctors.n);
    p->tvars = NULL;
    vec_push(p->c->scratch, &p->adt_list, adt);
    return rp_expect(p, "}");
}

static uint64_t sha_key(const Sha256 *s)
{
    return hash_bytes(s->b, sizeof s->b, 1);
}

static bool const_bytes(Parser *p, const Type *t, Bytes *out)
{
    uint32_t size = dtype_bytes(t->dtype);
    int64_t  n, bytes;
    uint8_t *data;

    if (t->kind != TYPE_TENSOR || !type_elems(t, &n) || !checked_mul(n, (int64_t)size, &bytes) ||
        bytes > (INT64_C(1) << 36))
        return FAIL(p, "a constant cannot have the type %s", type_text(p->c, t));
    if (rp_peek(p, "sha256:")) {
        const Bytes *side;
        Sha256       sha;

        if (!rp_sha(p, &sha))
            return false;
        if (!(side = map_get(p->side, sha_key(&sha))))
            return FAIL(p, "the side file has no data for this constant");
        if (side->n != (uint64_t)bytes)
            return FAIL(p, "the data have %zu bytes, the type needs %lld", side->n,
                        (long long)bytes);
        *out = *side;
        return true;
    }
    if (rp_accept(p, "splat(")) {
        uint8_t one[16];

        if (!rp_number(p, t->dtype, one) || !rp_expect(p, ")"))
            return false;
        if (bytes > MAX_SPLAT)
            return FAIL(p, "a splat of %lld bytes is too large", (long long)bytes);
        data = arena_alloc(p->c->arena, (size_t)bytes + 1);
        for (int64_t i = 0; i < n; i++)
            memcpy(data + i * size, one, size);
        *out = (Bytes){data, (size_t)bytes};
        return true;
    }
    if (!rp_expect(p, "["))
        return false;
    if (n > p->end - p->at)
        return FAIL(p, "%lld values are needed", (long long)n);
    data = arena_alloc(p->c->arena, (size_t)bytes + 1);
    for (int64_t i = 0; i < n; i++)
        if ((i && !rp_expect(p, ",")) || !rp_number(p, t->dtype, data + i * size))
            return false;
    *out = (Bytes){data, (size_t)bytes};
    return rp_expect(p, "]");
}

static bool parse_const_decl(Parser *p)
{
    const char *name;
    const Type *t;
    Bytes       data;

    if (!rp_expect(p, "@") || !(name = rp_name(p)) || !rp_expect(p, ":") || !(t = rp_type(p)) ||
        !rp_expect(p, "="))
        return false;
    if (map_get(p->consts, PTR_KEY(name)))
        return FAIL(p, "the constant '@%s' is declared twice", name);
    if (!const_bytes(p, t, &data))
        return false;
    map_put(p->consts, PTR_KEY(name), (void *)(uintptr_t)const_new(p->c, name, t, data));
    return true;
}

static bool parse_global(Parser *p)
{
    Loc         loc = rp_here(p);
    const char *name;
    const Expr *f;
    FuncData    data;

    if (!rp_func_head(p, &data) || !rp_expect(p, "@") || !(name = rp_name(p)))
        return false;
    for (uint32_t i = 0; i < p->funcs.n; i++)
        if (p->funcs.at[i].name == name)
            return FAIL(p, "the function '@%s' is defined twice", name);
    if (!(f = rp_func(p, data, name, loc)))
        return false;
    map_put(p->globals, PTR_KEY(name), (void *)(uintptr_t)f->type);
    vec_push(p->c->scratch, &p->funcs, ((GlobalDef){name, f}));
    return true;
}

static bool parse_decl(Parser *p)
{
    if (rp_accept_word(p, "fn"))
        return parse_global(p);
    if (rp_accept_word(p, "const"))
        return parse_const_decl(p);
    if (rp_accept_word(p, "dim"))
        return parse_dim_decl(p);
    if (rp_accept_word(p, "type"))
        return parse_adt(p);
    if (rp_accept_word(p, "source"))
        return rp_sha(p, &p->sha);
    if (rp_accept_word(p, "products"))
        return rp_dtype(p, &p->products);
    if (rp_accept_word(p, "outputs")) {
        do {
            const char *s = rp_string(p);

            if (!s)
                return false;
            vec_push(p->c->scratch, &p->outputs, s);
        } while (rp_accept(p, ","));
        return true;
    }
    return FAIL(p, "expected fn, const, dim, type, outputs, products or source, found %s",
                rp_found(p));
}

/* ---- the side file -------------------------------------------------------------------------- */

static bool read_side(Parser *p, Bytes consts)
{
    Reader   r = reader(consts);
    Loc      loc = {p->file, 0, 0, NULL};
    Bytes    magic;
    uint64_t n;

    if (!consts.n)
        return true;
    magic = read_bytes(&r, 16);
    n = read_u64(&r);
    if (r.bad || memcmp(magic.at, CONSTS_MAGIC, 16) != 0 || n > consts.n / CONSTS_ENTRY)
        return error_at(p->c, E_PARSE_TEXT, loc, "the side file of constants is damaged");
    for (uint64_t i = 0; i < n; i++) {
        Bytes    sha = read_bytes(&r, 32), *b = NEW(p->c->scratch, Bytes);
        uint64_t offset = read_u64(&r), bytes = read_u64(&r);
        Sha256   key;

        if (r.bad || offset > consts.n || bytes > consts.n - offset || offset % 64)
            return error_at(p->c, E_PARSE_TEXT, loc, "the side file of constants is damaged");
        *b = (Bytes){consts.at + offset, bytes};
        memcpy(key.b, sha.at, 32);
        map_put(p->side, sha_key(&key), b);
    }
    return true;
}

/* Calls of functions that are defined further down have no type yet; their names must exist. */
static bool check_globals(Parser *p)
{
    for (uint32_t i = 0; i < p->funcs.n; i++) {
        ExprList list = expr_post_order(p->c, p->funcs.at[i].func);

        for (uint32_t k = 0; k < list.n; k++)
            if (list.at[k]->kind == EXPR_GLOBAL &&
                !map_find(p->globals, PTR_KEY(list.at[k]->u.name), &(void *){0}))
                return error_at(p->c, E_PARSE_TEXT, list.at[k]->loc, "there is no function '@%s'",
                                list.at[k]->u.name);
    }
    return true;
}

const Module *relay_parse(Ctx *c, const char *file, Bytes text, Bytes consts)
{
    Parser  p = {.c = c, .file = intern(c->strings, file), .line = 1};
    Module *m = NEW(c->arena, Module);
    char   *copy = arena_alloc(c->arena, text.n + 1);

    memcpy(copy, text.at, text.n);
    diag_source(c->diags, p.file, text);
    if (text.n && memchr(copy, '\0', text.n))
        return error_at(c, E_PARSE_TEXT, ((Loc){p.file, 1, 1, NULL}), "the text has a zero byte");
    p.start = p.at = p.line_start = copy;
    p.end = copy + text.n;
    p.locals = map_new(c->scratch);
    p.consts = map_new(c->scratch);
    p.dims = map_new(c->scratch);
    p.adts = map_new(c->scratch);
    p.ctors = map_new(c->scratch);
    p.globals = map_new(c->scratch);
    p.side = map_new(c->scratch);
    if (!read_side(&p, consts))
        return NULL;
    for (rp_skip(&p); *p.at; rp_skip(&p))
        if (!parse_decl(&p))
            return NULL;
    if (!check_globals(&p))
        return NULL;
    m->nfuncs = p.funcs.n;
    m->funcs = p.funcs.n ? DUP_ARRAY(c->arena, p.funcs.at, p.funcs.n) : NULL;
    m->nadts = p.adt_list.n;
    m->adts = p.adt_list.n ? DUP_ARRAY(c->arena, p.adt_list.at, p.adt_list.n) : NULL;
    m->noutputs = p.outputs.n;
    m->output_names = p.outputs.n ? DUP_ARRAY(c->arena, p.outputs.at, p.outputs.n) : NULL;
    m->file = p.file;
    m->sha = p.sha;
    m->products = p.products;
    return m;
}
