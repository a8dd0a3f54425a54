/* A model as one file of C99 (docs/design/c.md): what it says of itself, the weights, helpers,
 * kernels as functions of the file, and the functions that its header declares.
 *
 * All but those are `static`.  What nothing leads to from there is left out, so that compilers have
 * nothing to complain of.  A function that the header declares has the header's own types and calls
 * the one that TIR has, since addresses of that are given as tvmcc_run_fn. */
#include "backends/c/c.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

static const char *name_of(Source *s, const char *name)
{
    return intern(s->c->strings, name);
}

/* ---- names ------------------------------------------------------------------------------------- */

/* Kernels are net__relu_1f2e3d4c; net_run_ex is net__run_ex here. */
const char *c_symbol(Source *s, const char *name)
{
    const Func *f = map_get(s->funcs, PTR_KEY(name_of(s, name)));
    const Data *d = map_get(s->data, PTR_KEY(name_of(s, name)));
    const char *entry = s->o->entry;
    char       *text;

    if (d && d->exported && c_has_weights(s))
        return arena_printf(s->c->arena, "&%s", name);
    if (f && f->kind != FUNC_ENTRY)
        text = arena_printf(s->c->arena, "%s__%s", entry, name);
    else if (f && f->exported)
        text = arena_printf(s->c->arena, "%s_%s", entry, name + strlen(entry));
    else
        text = arena_printf(s->c->arena, "%s", name);
    for (char *p = text; *p; p++)
        if (!isalnum((unsigned char)*p))
            *p = '_';
    return text;
}

static const char *symbol(void *user, const char *name)
{
    return c_symbol(user, name);
}

static const char *record(void *user, const AbiRecord *r)
{
    Source *s = user;

    return strcmp(r->name, "run") ? arena_printf(s->c->arena, "tvmcc_%s", r->name)
                                  : arena_printf(s->c->arena, "struct %s__run", s->o->entry);
}

static const char *cells(void *user, const char *data)
{
    Source     *s = user;
    const Data *d = map_get(s->data, PTR_KEY(name_of(s, data)));

    return d ? c_cells(s, d) : NULL;
}

/* ---- what is there ----------------------------------------------------------------------------- */

static void know(Source *s, const TirModule *m)
{
    for (uint32_t i = 0; i < m->nfuncs; i++)
        if (m->funcs[i]->kind != FUNC_HOST)
            map_put(s->funcs, PTR_KEY(name_of(s, m->funcs[i]->name)),
                    (void *)(uintptr_t)m->funcs[i]);
    for (uint32_t i = 0; i < m->ndata; i++)
        map_put(s->data, PTR_KEY(name_of(s, m->data[i].name)), (void *)(uintptr_t)&m->data[i]);
}

static void reach(Source *s, const char *name);

static void reach_prim(void *user, const Prim *p)
{
    if (p->kind == PRIM_SYMBOL)
        reach(user, p->u.symbol);
}

static bool reach_stmt(void *user, const Stmt *st)
{
    if (st->kind == STMT_CALL)
        reach(user, st->u.call.callee);
    return true;
}

/* A chain is as long as functions and tables lie within each other: a few. */
static void reach(Source *s, const char *name)
{
    const char *key = name_of(s, name);
    const Func *f = map_get(s->funcs, PTR_KEY(key));
    const Data *d = map_get(s->data, PTR_KEY(key));
    TirVisit    v = {.user = s, .enter = reach_stmt, .prim = reach_prim};

    if (map_get(s->live, PTR_KEY(key)))
        return;
    map_put(s->live, PTR_KEY(key), s);
    if (f)
        stmt_visit(f->body, &v);
    for (uint32_t i = 0; d && i < d->nitems; i++)
        if (d->items[i].symbol)
            reach(s, d->items[i].symbol);
}

static bool is_live(Source *s, const Func *f)
{
    return map_get(s->live, PTR_KEY(name_of(s, f->name))) != NULL;
}

/* Without weights in the file or beside it that the linker finds, net_run has none. */
static bool is_exported(const Source *s, const Func *f)
{
    return f->exported && (s->o->embed_weights ||
                           strcmp(f->name, arena_printf(s->c->scratch, "%s_run", s->o->entry)));
}

/* ---- kernels ----------------------------------------------------------------------------------- */

static const PlanKernel *kernel_of(const Source *s, const char *name, uint64_t *calls)
{
    const PlanKernel *found = NULL;

    for (const Plan *p = s->plans; p; p = p->next)
        for (uint32_t i = 0; i < p->nkernels; i++)
            if (!strcmp(p->kernels[i].func->name, name)) {
                found = &p->kernels[i];
                *calls += found->calls;
            }
    return found;
}

/* Text for a comment, on one line. */
static const char *plain(Source *s, const char *text)
{
    StrBuf out = strbuf(s->c->arena);

    for (const char *p = text; *p; p++)
        str_addc(&out, *p < ' ' || *p > '~' || (*p == '/' && p > text && p[-1] == '*') ||
                               (*p == '*' && p > text && p[-1] == '/')
                           ? '?'
                           : *p);
    return out.n ? out.at : "";
}

/* Nothing that is not in the plan's text, such as names of layers: a build in steps has the same.
 */
static void comment(Source *s, const Func *f, StrBuf *out)
{
    uint64_t          calls = 0;
    const PlanKernel *k = kernel_of(s, f->name, &calls);

    if (f->kind == FUNC_TILE) {
        str_printf(out, "/* A part of the next kernel, which its loops call. */\n");
        return;
    }
    str_printf(out, "/* %.*s", (int)strcspn(f->name, "."), f->name);
    if (k && calls > 1)
        str_printf(out, ", %" PRIu64 " calls", calls);
    if (k && k->macs > 0)
        str_printf(out, "; %" PRId64 " multiply-adds", k->macs);
    str_add(out, ". */\n");
}

/* With -fno-libm, nothing of libm may be called. */
static bool check_libm(Source *s, const Func *f, const char *text)
{
    bool ok = true;

    for (int fn = 0; fn < MATH_COUNT; fn++)
        for (int wide = 0; wide < 2; wide++) {
            const char *name = c_dialect.math((MathFn)fn, wide ? DT_F64 : DT_F32);
            uint32_t    i = 0;

            if (!name || clike_is_helper(name) ||
                !(clike_calls(text, name) || c_calls_lanes(text, name)))
                continue;
            while (i < s->libm.n && strcmp(s->libm.at[i], name))
                i++;
            if (i == s->libm.n)
                vec_push(s->c->arena, &s->libm, name);
            if (!f->target->no_libm)
                continue;
            error_at(s->c, E_CODEGEN, f->loc, "kernel '%s' calls '%s' of libm", f->name, name);
            diag_hint(s->c->diags, "leave '-fno-libm' out, and link the program with libm");
            ok = false;
        }
    return ok;
}

static bool functions(Source *s, const TirModule *m, StrBuf *heads, StrBuf *out)
{
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        const Func *f = m->funcs[i];
        StrBuf      head = strbuf(s->c->arena), text = strbuf(s->c->arena);

        if (f->kind == FUNC_HOST || !is_live(s, f) ||
            map_get(s->program.funcs, PTR_KEY(name_of(s, f->name))))
            continue; /* another shape bucket has it too */
        if (!clike_function(&s->program, f, &head, &text) || !check_libm(s, f, text.at))
            return false;
        if (f->kind == FUNC_ENTRY)
            str_printf(heads, "static %s;\n", head.at);
        else
            comment(s, f, out);
        str_printf(out, "static %s\n", text.at);
    }
    return true;
}

/* ---- what the header declares ------------------------------------------------------------------ */

/* Parameters with the header's types, and what the function of the file gets of them. */
static void export_params(Source *s, const Func *f, StrBuf *params, StrBuf *args)
{
    for (uint32_t i = 0; i < f->nparams; i++) {
        const Buffer *b = f->params[i].buffer;
        const char   *name = b ? b->name : f->params[i].scalar->name;
        bool          list = b && dtype_is_handle(b->dtype);

        str_add(params, i ? ", " : "");
        if (list)
            str_printf(params, "const %s_%s *%s", s->o->entry, name, name);
        else if (b && b->record)
            str_printf(params, "const tvmcc_%s *%s", b->record->name, name);
        else if (b && b->dtype.bits == 64)
            str_printf(params, "const int64_t *%s", name);
        else
            str_printf(params, b ? "void *%s" : "uint32_t %s", name);
        str_add(args, i ? ", " : "");
        if (list)
            str_add(args, "(void *const *)");
        else if (b && !b->record && b->dtype.bits == 64)
            str_printf(args, "(const %s *)", c_type(b->dtype));
        str_add(args, name);
    }
    if (!f->nparams)
        str_add(params, "void");
}

static const char *export_type(Source *s, const Signature *sig)
{
    const AbiRecord *to = clike_result(sig);

    return to ? arena_printf(s->c->arena, "const tvmcc_%s *", to->name)
              : arena_printf(s->c->arena, "%s ", c_type(abi_dtype(sig->result)));
}

static void exports(Source *s, const TirModule *host, StrBuf *out)
{
    for (uint32_t i = 0; i < host->nfuncs; i++) {
        const Func *f = host->funcs[i];
        StrBuf      params = strbuf(s->c->arena), args = strbuf(s->c->arena);
        const char *type;

        if (!is_exported(s, f))
            continue;
        type = export_type(s, f->sig);
        export_params(s, f, &params, &args);
        for (int named = 0; named <= (s->header != NULL); named++) {
            const char *name =
                named ? arena_printf(s->c->arena, "%s_header_%s", f->name, s->header) : f->name;

            if (named)
                str_printf(out, "%s%s(%s);\n", type, name, params.at);
            str_printf(out, "%s%s(%s)\n{\n    return %s(%s);\n}\n\n", type, name, params.at,
                       c_symbol(s, f->name), args.n ? args.at : "");
        }
    }
}

/* ---- the file ---------------------------------------------------------------------------------- */

/* `run`, with the types of what is stored in it; the other handles are those of a device's host. */
static void run_struct(Source *s, StrBuf *out)
{
    static const struct {
        const char *name, *type;
    } types[] = {{"params", "const tvmcc_params *"}, {"inputs", "void *const *"},
                 {"outputs", "void *const *"},       {"arena", "void *"},
                 {"weights", "const void *"},        {"dims", "int64_t *"}};
    const AbiRecord *r = record_find("run");

    str_printf(out, "/* What the parts of one run share. */\nstruct %s__run {\n", s->o->entry);
    for (uint32_t i = 0; i < r->n; i++) {
        const char *type = NULL;

        for (size_t k = 0; k < COUNT(types); k++)
            if (!strcmp(types[k].name, r->members[i].name))
                type = types[k].type;
        if (type)
            str_printf(out, "    %s%s;\n", type, r->members[i].name);
        else if (r->members[i].type != ABI_HANDLE)
            str_printf(out, "    %s %s;\n", c_type(abi_dtype(r->members[i].type)),
                       r->members[i].name);
    }
    str_add(out, "};\n\n");
}

/* What compilers have to be told of vectors, and the macro that says that they were. */
typedef struct {
    const char *arch;
    uint32_t    bytes;
    const char *macro, *option;
    bool        always; /* every processor has them */
} VectorNeed;

static const VectorNeed *vector_need(const Target *t)
{
    static const VectorNeed rows[] = {{"x86", 64, "__AVX512F__", "-mavx512f", false},
                                      {"x86", 32, "__AVX2__", "-mavx2", false},
                                      {"arm", 16, "__ARM_NEON", "-mfpu=neon", false},
                                      {"aarch64", 16, "__ARM_NEON", "-march=", true},
                                      {"wasm", 16, "__wasm_simd128__", "-msimd128", false}};

    for (size_t i = 0; i < COUNT(rows); i++)
        if (!strcmp(rows[i].arch, t->arch) && rows[i].bytes == t->vector_bytes)
            return &rows[i];
    return NULL;
}

static bool needs_fma(const Target *t)
{
    return t->has_fma && t->vector_bytes > 4 && !strcmp(t->arch, "x86");
}

const char *c_compiler_options(Ctx *c, const Target *t)
{
    const VectorNeed *need = vector_need(t);
    const char       *vectors = need && !need->always ? need->option : "";

    return needs_fma(t) ? intern_printf(c->strings, "%s%s-mfma", vectors, *vectors ? " " : "")
                        : vectors;
}

/* The compiler has been told of the vectors that the loops are arranged for. */
static void needs(Source *s, StrBuf *out)
{
    const Target     *t = s->plans->target;
    const VectorNeed *need = vector_need(t);

    if (t->vector_bytes <= 4)
        return;
    str_add(out,
            "#ifndef __GNUC__\n"
            "#error \"this file has vectors of GNU C: --target=c without -mattr= does without\"\n"
            "#endif\n"
            "#pragma GCC diagnostic ignored \"-Wpsabi\" /* functions of this file alone */\n");
    if (need)
        str_printf(out, "#ifndef %s\n#error \"this file is for vectors of %u bytes: %s\"\n#endif\n",
                   need->macro, t->vector_bytes, need->option);
    if (needs_fma(t))
        str_add(out,
                "#ifndef __FMA__\n#error \"this file has fused multiply-adds: -mfma\"\n#endif\n");
}

static void head(Source *s, StrBuf *out)
{
    const Plan *p = s->plans;
    const char *file = s->o->header ? s->o->header : arena_printf(s->c->arena, "%s.h", s->o->entry);
    const char *options = c_compiler_options(s->c, p->target);

    str_printf(
        out,
        "/* The model %s as C99, for any compiler: made by tvmcc " TVMCC_VERSION " for '%s'.\n"
        " *\n"
        " *     cc -std=c99 -O2%s%s -c <this file>\n"
        " *\n"
        " * %s is how to call it.  A run takes %s of arena, which the caller "
        "brings, and\n"
        " * some of the stack; there are %" PRIu64 " bytes of weights%s.  Nothing is allocated"
        ", nothing is\n"
        " * written but arena and outputs.",
        plain(s, p->model), plain(s, p->target->text), *options ? " " : "", options, file,
        p->arena
            ? arena_printf(s->c->arena, "what %s_arena_bytes tells", s->o->entry)
            : arena_printf(s->c->arena, "%" PRIu64 " bytes", p->arena_bytes + p->private_bytes),
        p->weights_bytes,
        !p->weights_bytes || c_has_weights(s) ? "" : ", which are not in this file");
    if (s->libm.n)
        str_add(out, "\n * It calls of libm:");
    for (uint32_t i = 0; i < s->libm.n; i++)
        str_printf(out, "%s%s", i % 10 == 9 ? "\n *     " : " ", s->libm.at[i]);
    str_add(out, s->libm.n ? ". */\n" : "  No library is needed. */\n");
    str_printf(out,
               "#ifndef TVMCC_PLAIN_NAMES\n#define TVMCC_PLAIN_NAMES\n#endif\n"
               "#ifndef %s_MODEL_H\n#include \"%s\"\n#endif\n%s\n",
               s->upper, file, s->libm.n || s->nans ? "#include <math.h>\n" : "");
    needs(s, out);
    if (!p->target->fast_math)
        str_add(out,
                "#ifdef __FAST_MATH__\n"
                "#error \"this file needs floats as C has them: compile it without -ffast-math\"\n"
                "#endif\n");
    str_add(
        out,
        "#if defined(FLT_EVAL_METHOD) && (FLT_EVAL_METHOD == 1 || FLT_EVAL_METHOD == 2)\n"
        "#error \"float is computed as a wider type: with gcc, -fexcess-precision=fast helps, or "
        "-msse2 -mfpmath=sse\"\n"
        "#endif\n\n"
        "#ifndef TVMCC_RESTRICT /* pointers that nothing else leads to */\n"
        "#if defined(_MSC_VER) || defined(__cplusplus)\n"
        "#define TVMCC_RESTRICT __restrict\n"
        "#else\n"
        "#define TVMCC_RESTRICT restrict\n"
        "#endif\n"
        "#endif\n\n");
}

static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = text; p && (p = strstr(p, word)); p += n)
        if ((p == text || !(isalnum((unsigned char)p[-1]) || p[-1] == '_')) &&
            !(isalnum((unsigned char)p[n]) || p[n] == '_'))
            return true;
    return false;
}

/* Small machines and their compilers' options have doubles of four bytes. */
static void need_doubles(const char *code, const char *weights, StrBuf *out)
{
    if (has_word(code, "double") || has_word(weights, "double"))
        str_add(out, "#include <float.h>\n"
                     "#if DBL_MANT_DIG != 53\n"
                     "#error \"this model computes with numbers of 64 bits, double has fewer here: "
                     "convert it to float32\"\n"
                     "#endif\n\n");
}

/* Code, of which no line is longer than people like: what is too long goes on behind a space. */
static void add_code(StrBuf *out, const char *text)
{
    enum { COLUMNS = 100, FURTHER = 4 };

    while (text && *text) {
        size_t n = strcspn(text, "\n"), blank = strspn(text, " "), at = 0, room = COLUMNS;

        while (n - at > room) {
            size_t to = at + room, comma = to;

            while (comma > at + room / 2 && (text[comma] != ' ' || text[comma - 1] != ','))
                comma--;
            while (to > at + blank && text[to] != ' ')
                to--;
            if (comma > at + room / 2)
                to = comma;
            if (to <= at + blank)
                to = at + room + strcspn(text + at + room, " \n");
            if (to >= n)
                break;
            str_addn(out, text + at, to - at);
            str_printf(out, "\n%*s", (int)blank + FURTHER, "");
            at = to + 1;
            room = COLUMNS - blank - FURTHER;
        }
        str_addn(out, text + at, n - at);
        str_addc(out, '\n');
        text += n + (text[n] == '\n');
    }
}

static Source source_new(Ctx *c, const Plan *p, const CodegenOptions *o, const CodegenInfo *info)
{
    return (Source){.c = c,
                    .plans = p,
                    .o = o,
                    .header = info->header,
                    .upper = str_upper(c->arena, o->entry),
                    .funcs = map_new(c->arena),
                    .data = map_new(c->arena),
                    .live = map_new(c->arena)};
}

/* Types of vectors, functions that stand in for operators, functions of vectors that call them. */
static void prelude(Ctx *c, const char *code, StrBuf *out)
{
    StrBuf vectors = strbuf(c->arena);

    c_vectors(c, code, out, &vectors);
    clike_prelude(c, &c_dialect,
                  vectors.n ? arena_printf(c->arena, "%s%s", vectors.at, code) : code, out);
    str_add(out, vectors.n ? vectors.at : "");
}

bool c_source(Ctx *c, const Plan *p, const CodegenOptions *o, const CodegenInfo *info, StrBuf *out)
{
    Source s = source_new(c, p, o, info);
    StrBuf heads = strbuf(c->arena), code = strbuf(c->arena), data = strbuf(c->arena),
           weights = strbuf(c->arena), exported = strbuf(c->arena);

    s.program = (ClikeProgram){
        c, &c_dialect, &s, symbol, record, cells, map_new(c->arena), p->target->vector_bytes > 4};
    for (const Plan *q = p; q; q = q->next)
        know(&s, q->tir);
    know(&s, o->host);
    for (uint32_t i = 0; i < o->host->nfuncs; i++)
        if (is_exported(&s, o->host->funcs[i]))
            reach(&s, o->host->funcs[i]->name);
    for (const Plan *q = p; q; q = q->next)
        if (!functions(&s, q->tir, &heads, &code))
            return false;
    if (!functions(&s, o->host, &heads, &code) || !c_weights(&s, &weights))
        return false;
    c_data(&s, o->host, &data);
    head(&s, out);
    need_doubles(code.at, weights.at, out);
    run_struct(&s, out);
    str_add(out, weights.n ? weights.at : "");
    prelude(c, code.at, out);
    exports(&s, o->host, &exported);
    str_add(out, "\n");
    add_code(out, heads.at);
    str_printf(out, "\n%s", data.at);
    add_code(out, code.at);
    add_code(out, exported.at);
    return true;
}
