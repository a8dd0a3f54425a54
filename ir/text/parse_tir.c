/* TIR from text: statements, functions, modules; the language is at the top of print_tir.c.
 * Expressions are in parse_prim.c. */
#include "ir/text/parse_tir.h"

#include <string.h>

enum { MAX_ITERS = 32 };

static const Stmt *parse_stmts(Parser *p);
static const Stmt *parse_store(Parser *p);

static FuncKind parse_func_kind(Parser *p)
{
    const char *words[FUNC_ENTRY + 1];
    uint32_t    i;

    for (i = 0; i < COUNT(words); i++)
        words[i] = func_kind_text((FuncKind)i);
    i = parse_one_of(p, words, COUNT(words), "kind of function");
    return i < COUNT(words) ? (FuncKind)i : FUNC_KERNEL;
}

static const char *local_name(Parser *p)
{
    return parse_expect(p, "%") ? parse_word(p) : "";
}

/* lo..hi, inclusive */
static void parse_range(Parser *p, int64_t *lo, int64_t *hi)
{
    *lo = parse_int(p);
    parse_expect(p, "..");
    *hi = parse_int(p);
    if (!p->failed && *lo > *hi)
        parse_fail(p, "the range %lld..%lld is empty", (long long)*lo, (long long)*hi);
    if (p->failed)
        *lo = *hi = 0;
}

/* lo..most, where that may be a form over dimensions. */
static void parse_bounds(Parser *p, int64_t *lo, const Idx **most)
{
    *lo = parse_int(p);
    parse_expect(p, "..");
    *most = parse_idx(p);
    if (!p->failed && *lo > (*most)->hi)
        parse_fail(p, "the range %lld..%lld is empty", (long long)*lo, (long long)(*most)->hi);
    if (!p->failed && !is_dim_bound(*most))
        parse_fail(p, "a bound is a form over dimensions whose bounds are numbers");
    if (p->failed)
        *lo = 0, *most = idx_const(p->c->arith, 0);
}

static const Atom *bounded_var(Parser *p, const char *name)
{
    const Idx *most;
    int64_t    lo;

    parse_bounds(p, &lo, &most);
    return most->nterms ? atom_within(p->c->arith, name, lo, most)
                        : atom_var(p->c->arith, name, lo, most->c0);
}

Loc parse_loc(Parser *p)
{
    Loc loc = NO_LOC;

    if (!parse_accept(p, "loc"))
        return loc;
    parse_expect(p, "(");
    loc.file = parse_string(p);
    if (parse_accept(p, ":"))
        loc.line = (uint32_t)parse_int(p);
    if (parse_accept(p, ":"))
        loc.col = (uint32_t)parse_int(p);
    skip_blank(p);
    if (*p->at == '"')
        loc.name = parse_string(p);
    parse_expect(p, ")");
    return loc;
}

/* ---- statements ----------------------------------------------------------------------------------------- */

static const Stmt *nothing(Parser *p)
{
    return stmt_seq(p->c, 0, NULL);
}

const Stmt *parse_braces(Parser *p)
{
    uint32_t    mark = p->names.n;
    const Stmt *s;

    if (!parse_expect(p, "{"))
        return nothing(p);
    s = parse_stmts(p);
    parse_expect(p, "}");
    p->names.n = mark;
    return s;
}

static const Stmt *parse_for(Parser *p)
{
    LoopData    l = {.kind = LOOP_SPATIAL};
    Arith      *A = p->c->arith;
    const char *name = local_name(p);
    uint32_t    mark = p->names.n;
    const Idx  *end;
    int64_t     lo, hi;
    Loc         loc;
    const Stmt *body;

    l.lo = idx_const(A, 0);
    if (parse_accept(p, "in")) {
        l.lo = parse_idx(p);
        parse_expect(p, "..");
    } else {
        parse_expect(p, "<");
    }
    end = parse_idx(p);
    l.extent = idx_sub(A, end, l.lo);
    lo = l.lo->lo;
    hi = loop_last(end, l.lo);
    bool ranged = parse_accept(p, ":");
    if (ranged)
        parse_range(p, &lo, &hi);
    l.var = !ranged && idx_is_const(l.lo, NULL) && !lo ? atom_upto(A, name, l.extent)
                                                       : atom_var(A, name, lo, hi);
    if (parse_accept(p, "reduce"))
        l.kind = LOOP_REDUCE;
    else if (parse_accept(p, "seq"))
        l.kind = LOOP_SEQ;
    parse_marks(p, &loop_mark_table, &l);
    loc = parse_loc(p);
    declare_var(p, name, false, idx_atom(A, l.var));
    body = parse_braces(p);
    p->names.n = mark;
    return p->failed ? body : stmt_for(p->c, l, body, loc);
}

/* name<n=bind or name in lo..hi=bind; iterators are visible in the body only */
static const Atom *parse_iter(Parser *p, const Idx **bind)
{
    const char *name = parse_word(p);
    const Idx  *end = NULL;
    int64_t     lo = 0, hi = 0;

    if (parse_accept(p, "in")) {
        parse_range(p, &lo, &hi);
    } else if (parse_expect(p, "<")) {
        end = parse_idx(p);
        if (!p->failed && end->hi < 1)
            parse_fail(p, "iterator '%s' has no values", name);
    }
    parse_expect(p, "=");
    *bind = parse_idx(p);
    return end && !p->failed ? atom_upto(p->c->arith, name, end)
                             : atom_var(p->c->arith, name, lo, p->failed ? lo : hi);
}

static const Stmt *parse_block(Parser *p)
{
    BlockData   b = {.name = parse_word(p)};
    const Atom *iter[MAX_ITERS];
    const Idx  *bind[MAX_ITERS];
    uint32_t    n = 0, part = 0, mark = p->names.n;
    uint32_t   *count[] = {&b.nspatial, &b.nreduce, &b.nseq};
    Loc         loc;
    VEC(const Stmt *) kids = {0};

    parse_expect(p, "[");
    while (!p->failed && !parse_accept(p, "]")) {
        if (parse_accept(p, ";")) {
            if (++part > 2)
                parse_fail(p, "a block has spatial; reduce; sequential iterators");
            continue;
        }
        if (n == MAX_ITERS) {
            parse_fail(p, "more than %d iterators", MAX_ITERS);
            break;
        }
        iter[n] = parse_iter(p, &bind[n]);
        n++;
        ++*count[part];
        parse_accept(p, ",");
    }
    b.redundant = parse_accept(p, "redundant");
    b.opaque = parse_accept(p, "opaque");
    if (parse_accept(p, "where"))
        b.where = parse_pred(p);
    loc = parse_loc(p);
    for (uint32_t i = 0; i < n; i++)
        declare_var(p, iter[i]->name, true, idx_atom(p->c->arith, iter[i]));
    parse_expect(p, "{");
    if (parse_accept(p, "init")) {
        const Stmt *init;
        skip_blank(p);
        init = *p->at == '{' ? parse_braces(p) : parse_store(p);
        b.has_init = true;
        vec_push(p->c->scratch, &kids, init);
    }
    const Stmt *rest = parse_stmts(p);
    parse_expect(p, "}");
    p->names.n = mark;
    if (p->failed)
        return rest;
    if (rest->kind == STMT_SEQ && !b.opaque)
        for (uint32_t i = 0; i < rest->nkids; i++)
            vec_push(p->c->scratch, &kids, rest->kids[i]);
    else
        vec_push(p->c->scratch, &kids, rest);
    b.iter = iter;
    b.bind = bind;
    return stmt_block(p->c, b, kids.n, kids.at, loc);
}

static Arg parse_arg(Parser *p)
{
    Arg              a = {0};
    const char      *at;
    const ParseName *n = NULL;

    skip_blank(p);
    at = p->at;
    if (*p->at == '%') {
        p->at++;
        n = find_name(p, parse_word(p), false);
        p->at = at;
    }
    if (!n || !n->buffer) {
        a.scalar = parse_idx(p);
        return a;
    }
    a.buffer = parse_buffer_name(p);
    a.offset = parse_accept(p, "+") ? parse_idx(p) : idx_const(p->c->arith, 0);
    return a;
}

static const Arg *parse_args(Parser *p, uint32_t *n)
{
    VEC(Arg) v = {0};

    parse_expect(p, "(");
    if (!parse_accept(p, ")")) {
        do
            vec_push(p->c->arena, &v, parse_arg(p));
        while (parse_accept(p, ",") && !p->failed);
        parse_expect(p, ")");
    }
    *n = v.n;
    return v.at;
}

static const Stmt *parse_call(Parser *p)
{
    const char *callee = parse_symbol(p);
    uint32_t    n;
    const Arg  *args = parse_args(p, &n);
    bool        on0 = parse_accept(p, "on0");
    Loc         loc = parse_loc(p);

    return p->failed ? nothing(p) : stmt_call(p->c, callee, n, args, on0, loc);
}

static void parse_three(Parser *p, const char *word, const Idx **x)
{
    parse_expect(p, word);
    parse_expect(p, "(");
    for (int i = 0; i < 3; i++) {
        if (i)
            parse_expect(p, ",");
        x[i] = parse_idx(p);
    }
    parse_expect(p, ")");
}

static const Stmt *parse_launch(Parser *p)
{
    LaunchData l = {.kernel = parse_symbol(p)};
    Loc        loc;

    parse_three(p, "grid", l.grid);
    parse_three(p, "block", l.block);
    l.args = parse_args(p, &l.nargs);
    loc = parse_loc(p);
    return p->failed ? nothing(p) : stmt_launch(p->c, l, loc);
}

static const Stmt *parse_copy(Parser *p)
{
    static const char *const sides[] = {"device", "host"};
    CopyData                 d = {.src = parse_arg(p)};

    parse_expect(p, "->");
    d.dst = parse_arg(p);
    parse_expect(p, ",");
    d.bytes = parse_idx(p);
    parse_expect(p, "bytes");
    parse_expect(p, "to");
    d.to_device = parse_one_of(p, sides, 2, "side") == 0;
    if (!p->failed && (!d.src.buffer || !d.dst.buffer || d.bytes->lo < 0))
        parse_fail(p, "copy is between buffers");
    return p->failed ? nothing(p) : stmt_copy(p->c, d);
}

static const Stmt *parse_region(Parser *p)
{
    RegionData  r = {0};
    uint32_t    mark = p->names.n;
    const char *tid = local_name(p), *nt;
    const Stmt *body;

    parse_expect(p, "in");
    r.tid = bounded_var(p, tid);
    parse_expect(p, ",");
    nt = local_name(p);
    parse_expect(p, "in");
    r.nt = bounded_var(p, nt);
    declare_var(p, tid, false, idx_atom(p->c->arith, r.tid));
    declare_var(p, nt, false, idx_atom(p->c->arith, r.nt));
    body = parse_braces(p);
    p->names.n = mark;
    return p->failed ? body : stmt_region(p->c, r, body);
}

static const Prim *parse_cond(Parser *p)
{
    const char *at;
    const Prim *cond;

    skip_blank(p);
    at = p->at;
    cond = parse_prim(p, NULL);
    if (!p->failed && !dtype_eq(cond->dtype, DT_BOOL)) {
        p->at = at;
        parse_fail(p, "a condition of type %s", dtype_text(p->c, cond->dtype));
    }
    return cond;
}

static const Stmt *parse_store(Parser *p)
{
    const Buffer     *b = parse_buffer_name(p);
    uint16_t          lanes = 1;
    const Idx *const *index;
    const Prim       *value, *mask = NULL;
    DType             t;
    const char       *at;

    if (!b)
        return nothing(p);
    index = parse_cell(p, b, &lanes);
    if (b->record && !p->failed)
        return parse_put(p, b, index);
    parse_expect(p, "=");
    skip_blank(p);
    at = p->at;
    if (parse_accept(p, "invoke")) {
        if (!p->failed && b->ndim)
            parse_fail(p, "a result goes to a variable, which '%s' is not", b->name);
        return parse_invoke(p, b);
    }
    value = parse_prim(p, &b->dtype);
    if (p->failed)
        return nothing(p);
    t = dtype_lanes(b->dtype, lanes);
    if (value->dtype.lanes == 1)
        value = prim_splat(p->c, value, lanes);
    if (!dtype_eq(value->dtype, t)) {
        p->at = at;
        parse_fail(p, "a value of type %s for '%s' of %s", dtype_text(p->c, value->dtype), b->name,
                   dtype_text(p->c, t));
        return nothing(p);
    }
    if (parse_accept(p, "when")) {
        mask = parse_prim(p, NULL);
        if (!p->failed && (!dtype_is_bool(mask->dtype) || mask->dtype.lanes != lanes))
            parse_fail(p, "the mask is %s, not %u bools", dtype_text(p->c, mask->dtype), lanes);
    }
    return p->failed ? nothing(p) : stmt_storev(p->c, b, index, value, mask);
}

static const Stmt *parse_prefetch(Parser *p)
{
    const Buffer     *b = parse_buffer_name(p);
    uint16_t          lanes = 1;
    const Idx *const *index;
    int64_t           lines;

    if (!b)
        return nothing(p);
    index = parse_cell(p, b, &lanes);
    parse_expect(p, "lines");
    lines = parse_int(p);
    if (!p->failed && (lines < 1 || lines > MAX_LINES || lanes != 1))
        parse_fail(p, "a prefetch is of 1 to %d lines from one cell on", MAX_LINES);
    return p->failed ? nothing(p) : stmt_prefetch(p->c, b, index, (uint32_t)lines);
}

static const Stmt *parse_await(Parser *p)
{
    bool    products = parse_accept(p, "products");
    int64_t groups = parse_int(p);

    if (!p->failed && (groups < 0 || groups > MAX_STAGES))
        parse_fail(p, "an await is of 0 to %d groups", MAX_STAGES);
    return p->failed ? nothing(p) : stmt_await(p->c, (AwaitData){(uint32_t)groups, products});
}

/* With braces the buffer lives in them, else to the end of those around. */
static const Stmt *parse_alloc(Parser *p, bool view, bool *rest)
{
    const char   *name = local_name(p);
    const Buffer *b;
    const Prim   *at = NULL;
    const Stmt   *body;

    parse_expect(p, ":");
    b = parse_buffer(p, name);
    if (view && parse_expect(p, "="))
        at = parse_prim(p, NULL);
    if (p->failed)
        return nothing(p);
    skip_blank(p);
    *rest = *p->at != '{';
    if (*rest) {
        declare_buffer(p, name, b);
        body = parse_stmts(p);
    } else {
        uint32_t mark = p->names.n;
        declare_buffer(p, name, b);
        body = parse_braces(p);
        p->names.n = mark;
    }
    if (p->failed)
        return body;
    return view ? stmt_view(p->c, b, at, body) : stmt_alloc(p->c, b, body);
}

/* *rest: the statement took all that was left in the braces. */
static const Stmt *parse_stmt(Parser *p, bool *rest)
{
    const Prim *cond;
    const Stmt *body, *other = NULL;

    *rest = false;
    skip_blank(p);
    if (*p->at == '%')
        return parse_store(p);
    if (parse_accept(p, "for"))
        return parse_for(p);
    if (parse_accept(p, "alloc"))
        return parse_alloc(p, false, rest);
    if (parse_accept(p, "view"))
        return parse_alloc(p, true, rest);
    if (parse_accept(p, "block"))
        return parse_block(p);
    if (parse_accept(p, "if")) {
        cond = parse_cond(p);
        body = parse_braces(p);
        if (parse_accept(p, "else"))
            other = parse_braces(p);
        return p->failed ? nothing(p) : stmt_if(p->c, cond, body, other);
    }
    if (parse_accept(p, "while")) {
        cond = parse_cond(p);
        body = parse_braces(p);
        return p->failed ? nothing(p) : stmt_while(p->c, cond, body);
    }
    if (parse_accept(p, "call"))
        return parse_call(p);
    if (parse_accept(p, "prefetch"))
        return parse_prefetch(p);
    if (parse_accept(p, "barrier"))
        return stmt_barrier(p->c);
    if (parse_accept(p, "await"))
        return parse_await(p);
    if (parse_accept(p, "region"))
        return parse_region(p);
    if (parse_accept(p, "launch"))
        return parse_launch(p);
    if (parse_accept(p, "copy"))
        return parse_copy(p);
    if (parse_accept(p, "invoke"))
        return parse_invoke(p, NULL);
    if (parse_accept(p, "switch"))
        return parse_switch(p);
    if (parse_accept(p, "return"))
        return parse_return(p);
    if (parse_accept(p, "fail")) {
        int64_t code = parse_int(p);
        if (!p->failed && (code < INT32_MIN || code > INT32_MAX))
            parse_fail(p, "a code of more than 32 bits");
        return stmt_fail(p->c, (int32_t)code);
    }
    parse_fail(p, "expected a statement");
    return nothing(p);
}

/* To the closing brace, which stays. */
static const Stmt *parse_stmts(Parser *p)
{
    VEC(const Stmt *) all = {0};
    bool rest = false;

    if (!parse_enter(p))
        return nothing(p);
    for (;;) {
        parse_accept(p, ";");
        skip_blank(p);
        if (p->failed || rest || *p->at == '}' || !*p->at)
            break;
        const Stmt *s = parse_stmt(p, &rest);
        vec_push(p->c->scratch, &all, s);
    }
    parse_leave(p);
    return p->failed ? nothing(p) : stmt_seq(p->c, all.n, all.at);
}

/* ---- functions ------------------------------------------------------------------------------------------ */

static Param parse_param(Parser *p)
{
    Param       q = {0};
    const char *name = local_name(p);

    if (parse_accept(p, "in")) {
        q.scalar = bounded_var(p, name);
        declare_var(p, name, false, idx_atom(p->c->arith, q.scalar));
    } else {
        parse_expect(p, ":");
        q.buffer = parse_buffer(p, name);
        declare_buffer(p, name, q.buffer);
    }
    q.written = parse_accept(p, "written");
    return q;
}

/* The target of the compile, or what stands for it where none is chosen. */
static const Target *parse_target(Parser *p)
{
    const char *at, *text;
    Target     *t;

    skip_blank(p);
    at = p->at;
    text = parse_string(p);
    if (p->failed)
        return NULL;
    if (p->c->target && !strcmp(p->c->target->text, text))
        return p->c->target;
    if (p->c->target && p->c->target->host && !strcmp(p->c->target->host->text, text))
        return p->c->target->host;
    if (p->c->target) {
        p->at = at;
        parse_fail(p, "the target of this compile is \"%s\"", p->c->target->text);
        return NULL;
    }
    t = NEW(p->c->arena, Target);
    t->text = text;
    return t;
}

static const Func *parse_func(Parser *p)
{
    Func     f = {.name = parse_symbol(p)};
    uint32_t mark = p->names.n;
    VEC(Param) params = {0};

    p->labels.n = 0;
    parse_expect(p, "kind(");
    f.kind = parse_func_kind(p);
    parse_expect(p, ")");
    if (parse_accept(p, "sig(")) {
        f.sig = parse_signature(p);
        parse_expect(p, ")");
    }
    f.exported = parse_accept(p, "exported");
    f.any_cpu = parse_accept(p, "any_cpu");
    if (parse_accept(p, "target(")) {
        f.target = parse_target(p);
        parse_expect(p, ")");
    }
    parse_expect(p, "(");
    if (!parse_accept(p, ")")) {
        do
            vec_push(p->c->scratch, &params, parse_param(p));
        while (parse_accept(p, ",") && !p->failed);
        parse_expect(p, ")");
    }
    if (parse_accept(p, "macs"))
        f.macs = parse_int(p);
    f.loc = parse_loc(p);
    f.nparams = params.n;
    f.params = params.at;
    f.body = parse_braces(p);
    p->names.n = mark;
    return p->failed ? NULL : func_new(p->c, f);
}

const Atom *parse_dim(Parser *p)
{
    const char *name = parse_word(p);
    const Atom *dim = NULL;
    const Idx  *most = NULL;
    int64_t     lo = 0;

    parse_expect(p, "in");
    parse_bounds(p, &lo, &most);
    if (p->failed)
        return NULL;
    const Idx *x = dim_within(p->c, name, lo, most);
    declare_var(p, name, true, x);
    return idx_is_atom(x, &dim) ? dim : NULL;
}

const TirModule *parse_functions(Parser *p)
{
    VEC(const Func *) funcs = {0};
    VEC(Data) data = {0};
    Map *names = map_new(p->c->scratch);

    /* Behind the functions of a plan there may be another plan. */
    for (skip_blank(p); *p->at && !p->failed && !str_starts(p->at, "tvmcc plan"); skip_blank(p)) {
        if (parse_accept(p, "dim")) {
            parse_dim(p);
        } else if (parse_accept(p, "data")) {
            vec_push(p->c->scratch, &data, parse_data(p));
        } else if (parse_expect(p, "func")) {
            const Func *f = parse_func(p);
            if (f && map_get(names, PTR_KEY(f->name)))
                parse_fail(p, "function '@%s' is there twice", f->name);
            if (f)
                map_put(names, PTR_KEY(f->name), (void *)f);
            vec_push(p->c->scratch, &funcs, f);
        }
    }
    if (!p->failed && arith_overflow(p->c->arith))
        parse_fail(p, "an index overflows 64 bits");
    if (p->failed)
        return NULL;
    return tirmod_data(p->c, tirmod_new(p->c, funcs.n, funcs.at), data.n, data.at);
}

const TirModule *tir_parse(Ctx *c, const char *file, Bytes text)
{
    const char *copy = arena_printf(c->arena, "%.*s", (int)(text.n > INT32_MAX ? 0 : text.n),
                                    text.n ? (const char *)text.at : "");
    Parser      p = {.c = c, .file = file, .text = copy, .at = copy};

    diag_source(c->diags, file, text);
    const TirModule *m = parse_functions(&p);
    if (m && *p.at)
        parse_fail(&p, "this is a plan");
    if (m && strlen(copy) != text.n)
        parse_fail(&p, "a zero byte in the text");
    return p.failed ? NULL : m;
}
