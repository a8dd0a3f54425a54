/* Models as C, and a program that runs them and compares: for compilers and boards that have
 * neither the driver nor files.
 *
 *     write_goldens [-O0] [-Os] [--target=T] [--atol=A] [--rtol=R] [--most=N] FOLDER PROGRAM
 * MODEL...
 *
 * A MODEL is an operator, whose cases (the first N) are in tests/ops/, or a file NAME.onnx with
 * what goes in and out beside it: NAME.in.npz and NAME.out.npz, or NAME.npz with in.X and out.X.
 * FOLDER gets m0.c, m0.h and so on, and PROGRAM.c, which includes golden.h; its arrays hold the
 * values. */
#include "tests/unit/cases.h"

#include "compile/compile.h"
#include "formats/formats.h"
#include "frontends/frontends.h"

#include <inttypes.h>
#include <unistd.h>

typedef struct {
    const char         *name;
    const Plan         *plan;
    uint32_t            nin, nout;
    const Const *const *in, *const *out;
    const Const *const *allow; /* f32, of each number of an output, or NULL there */
    double              atol, rtol;
} Golden;

static const char    *folder;
static CompileOptions options;
static double         atol_given, rtol_given;
static uint32_t       count, most = UINT32_MAX;
static Arena         *kept; /* of the program's text */
static StrBuf         program, table, headers;

/* ---- values ------------------------------------------------------------------------------------ */

static const char *cell_type(DType t)
{
    static const char *const whole[2][4] = {{"int8_t", "int16_t", "int32_t", "int64_t"},
                                            {"uint8_t", "uint16_t", "uint32_t", "uint64_t"}};
    const int                width = t.bits == 8 ? 0 : t.bits == 16 ? 1 : t.bits == 32 ? 2 : 3;

    if (dtype_is_float(t) && t.bits > 16)
        return t.bits == 32 ? "float" : "double";
    return whole[t.code != DT_INT][width];
}

static void print_number(StrBuf *s, DType t, const uint8_t *at)
{
    double v = dtype_is_float(t) ? dtype_get_f(t, at) : 0;

    if (dtype_is_half(t))
        str_printf(s, "0x%02x%02x", at[1], at[0]);
    else if (dtype_is_float(t) && v - v != 0)
        str_add(s, v != v ? "NAN" : v < 0 ? "-INFINITY" : "INFINITY");
    else if (dtype_is_float(t))
        str_printf(s, t.bits == 32 ? "%af" : "%a", v);
    else if (t.code == DT_INT && t.bits == 64)
        str_printf(s, "(int64_t)UINT64_C(%" PRIu64 ")", (uint64_t)dtype_get_i(t, at));
    else if (t.code == DT_INT && t.bits == 32)
        str_printf(s, "(int32_t)%" PRIu32 "u", (uint32_t)dtype_get_i(t, at));
    else if (t.bits == 64)
        str_printf(s, "UINT64_C(%" PRIu64 ")", (uint64_t)dtype_get_i(t, at));
    else
        str_printf(s, "%" PRId64 "%s", dtype_get_i(t, at), t.bits == 32 ? "u" : "");
}

static void print_array(const Const *k, const char *name)
{
    const DType    t = k->type->dtype;
    const uint32_t size = dtype_bytes(t);

    str_printf(&program, "static const %s m%u_%s[] = {", cell_type(t), count, name);
    for (size_t i = 0; i < k->data.n / size; i++) {
        str_add(&program, !i ? "" : i % 8 ? ", " : ",\n    ");
        print_number(&program, t, k->data.at + i * size);
    }
    str_add(&program, k->data.n ? "};\n" : "0};\n");
}

static void print_list(const char *what, const char *type, uint32_t n, const Const *const *of)
{
    StrBuf names = strbuf(kept);

    for (uint32_t i = 0; i < n; i++) {
        const char *name = arena_printf(kept, "%s%u", what, i);

        if (of[i]) {
            print_array(of[i], name);
            str_printf(&names, "m%u_%s, ", count, name);
        } else {
            str_add(&names, "NULL, ");
        }
    }
    str_printf(&program, "static const %s *const m%u_%s[] = {%sNULL};\n", type, count, what,
               names.n ? names.at : "");
}

/* Of the tensors of which the run decides the dimensions. */
static void print_dims(const char *what, uint32_t n, const PlanIO *io, const Const *const *of)
{
    StrBuf names = strbuf(kept);

    for (uint32_t i = 0; i < n; i++) {
        const Type *t = of[i]->type;
        int64_t     v = 0;

        if (type_static(io[i].type)) {
            str_add(&names, "NULL, ");
            continue;
        }
        str_printf(&names, "m%u_%s%u_dims, ", count, what, i);
        str_printf(&program, "static const int64_t m%u_%s%u_dims[] = {", count, what, i);
        for (uint32_t d = 0; d < t->n && type_dim(t, d, &v); d++)
            str_printf(&program, "%" PRId64 ", ", v);
        str_add(&program, "-1};\n");
    }
    str_printf(&program, "static const int64_t *const m%u_%s_dims[] = {%sNULL};\n", count, what,
               names.n ? names.at : "");
}

/* ---- files ------------------------------------------------------------------------------------- */

static bool put(Ctx *c, const char *stem, const char *end, Bytes text)
{
    return file_write(c->diags, arena_printf(c->arena, "%s/%s.%s", folder, stem, end), text);
}

/* Its text and header. */
static bool write_model(Ctx *c, Compiled *x)
{
    Bytes text;

    return compile_target(c, x) && (x->imported || compile_import(c, x)) && compile_graph(c, x) &&
           compile_plan(c, x) && compile_weights(c, x) && compile_desc(c, x) &&
           compile_code(c, x, EMIT_SOURCE, &text) && put(c, x->entry, "c", text) &&
           put(c, x->entry, "h", header_text(c->arena, x->desc));
}

/* Its values, in the program. */
static void add_golden(const Golden *g)
{
    print_list("in", "void", g->nin, g->in);
    print_list("out", "void", g->nout, g->out);
    print_dims("in", g->nin, g->plan->in, g->in);
    print_dims("out", g->nout, g->plan->out, g->out);
    if (g->allow)
        print_list("allow", "float", g->nout, g->allow);
    str_printf(&headers, "#include \"m%u.h\"\n", count);
    str_printf(&table,
               "    {\"%s\", m%u_info, m%u_in, m%u_out, m%u_in_dims, m%u_out_dims, %s, %a, %a},\n",
               g->name, count, count, count, count, count,
               g->allow ? arena_printf(kept, "m%u_allow", count) : "NULL", g->atol, g->rtol);
    count++;
}

static CompileOptions options_of(const char *path)
{
    CompileOptions o = options;

    o.path = path;
    o.entry = arena_printf(kept, "m%u", count);
    return o;
}

/* ---- operators --------------------------------------------------------------------------------- */

/* The numbers of an output of a case, rounded to its type. */
static const Const *wanted(Ctx *c, const Type *t, const char *text)
{
    uint32_t size = dtype_bytes(t->dtype);
    int64_t  n = 0;

    type_elems(t, &n);
    uint8_t *data = arena_array(c->arena, (size_t)n + 1, size);
    for (int64_t i = 0; i < n; i++)
        put_number(t->dtype, data + i * size, &text);
    return const_new(c, NULL, t, (Bytes){data, (size_t)n * size});
}

static void write_case(const Case *k)
{
    const Const   *out[MAX_OPERANDS];
    Golden         g = {.in = k->in, .out = out, .nin = k->nin, .nout = k->nout};
    CompileOptions o = options_of(k->file);
    Compiled       x;

    check_count++;
    compile_start(k->c, &x, &o);
    x.imported = k->m;
    if (!write_model(k->c, &x) || x.plan->nin != k->nin || x.plan->nout != k->nout) {
        failed(k, "as C", "does not compile, or has another number of tensors");
        return;
    }
    g.plan = x.plan;
    g.name = arena_printf(kept, "%s, case %u", k->file, k->number);
    for (uint32_t i = 0; i < k->nout; i++) {
        out[i] = wanted(k->c, x.plan->out[i].type, k->out[i]);
        if (dtype_is_float(out[i]->type->dtype)) /* whole numbers are equal */
            g.atol = g.rtol = k->tol;
    }
    add_golden(&g);
}

/* ---- models ------------------------------------------------------------------------------------ */

typedef struct {
    uint32_t    n;
    Array      *at;
    const char *prefix;
} Arrays;

/* NAME<suffix> if there is such a file, else NAME.npz with `prefix` before each name. */
static bool read_arrays(Ctx *c, const char *model, const char *suffix, const char *prefix,
                        Arrays *a)
{
    const char *stem = arena_printf(c->arena, "%.*s", (int)strlen(model) - 5, model);
    const char *path = arena_printf(c->arena, "%s%s", stem, suffix);
    Bytes       file;

    a->prefix = "";
    if (access(path, R_OK)) {
        path = arena_printf(c->arena, "%s.npz", stem);
        a->prefix = prefix;
    }
    return file_map(c->diags, path, &file) &&
           npz_read(c->diags, c->arena, (Loc){.file = path}, file, &a->n, &a->at);
}

/* The array of that name as cells of a type, with its own dimensions where the run decides them;
 * NULL: there is none, or of another size. */
static const Const *array(Ctx *c, const Arrays *a, const char *name, const Type *t)
{
    const char *full = arena_printf(c->arena, "%s%s", a->prefix, name);

    for (uint32_t i = 0; i < a->n; i++) {
        const Array *x = &a->at[i];
        const Type  *own =
            type_static(t) || x->ndim != t->n ? t : type_tensor_i64(c, t->dtype, t->n, x->dims);
        int64_t n = 0;

        if (!strcmp(x->name, full) && x->bits == dtype_bytes(t->dtype) * 8 && type_elems(own, &n) &&
            x->data.n == (uint64_t)n * dtype_bytes(t->dtype))
            return const_new(c, NULL, own, x->data);
    }
    return NULL;
}

static const Const **each(Ctx *c, const Arrays *a, const char *form, uint32_t n, const PlanIO *io,
                          bool bounds, bool *all)
{
    const Const **of = NEW_ARRAY(c->arena, const Const *, n + 1);

    *all = true;
    for (uint32_t i = 0; i < n; i++) {
        const Type *t = io[i].type;

        of[i] = array(c, a, arena_printf(c->arena, form, io[i].name),
                      bounds ? type_tensor(c, DT_F32, t->n, t->dims) : t);
        *all = *all && of[i];
    }
    return of;
}

static bool write_onnx(Ctx *c, const char *path)
{
    CompileOptions o = options_of(path);
    Golden         g = {.name = path, .atol = atol_given, .rtol = rtol_given};
    Arrays         in, out;
    Compiled       x;
    bool           all_in, all_out, all_allowed;

    compile_start(c, &x, &o);
    if (!read_arrays(c, path, ".in.npz", "in.", &in) ||
        !read_arrays(c, path, ".out.npz", "out.", &out) || !write_model(c, &x))
        return false;
    g.plan = x.plan;
    g.nin = x.plan->nin;
    g.nout = x.plan->nout;
    g.in = each(c, &in, "%s", g.nin, x.plan->in, false, &all_in);
    g.out = each(c, &out, "%s", g.nout, x.plan->out, false, &all_out);
    g.allow = each(c, &out, "allow.%s", g.nout, x.plan->out, true, &all_allowed);
    if (!all_in || !all_out)
        return diag_error(c->diags, E_RUN, (Loc){.file = path}, "it has no values for a tensor");
    add_golden(&g);
    return true;
}

static void write_file(const char *path)
{
    Arena *arena = arena_new(NULL);
    Ctx   *c = ctx_new(arena, diags_new(arena), op_table);
    StrBuf s = strbuf(arena);

    check_count++;
    if (!write_onnx(c, path)) {
        diag_print(c->diags, DIAG_TEXT, &s);
        printf("%s\n%s", path, s.at ? s.at : "");
        check_failures++;
    }
    ctx_free(c);
    arena_free(arena);
}

/* ---- the program ------------------------------------------------------------------------------- */

static bool write_program(const char *name)
{
    Ctx   *c = ctx_new(kept, diags_new(kept), op_table);
    StrBuf all = strbuf(kept);
    bool   ok;

    str_printf(&all,
               "%s#include \"golden.h\"\n\n%s\nstatic const struct golden all[] = {\n%s};\n\n"
               "int main(void)\n{\n    return golden_run_all(all, %u);\n}\n",
               headers.at, program.at, table.at, count);
    ok = put(c, name, "c", (Bytes){(const uint8_t *)all.at, all.n});
    ctx_free(c);
    return ok;
}

int main(int argc, char **argv)
{
    int at = 1;

    options = compile_defaults();
    options.target = "c";
    for (; at < argc && *argv[at] == '-'; at++) {
        if (str_starts(argv[at], "-O"))
            options.passes.opt_level = argv[at][2] - '0';
        else if (str_starts(argv[at], "--target="))
            options.target = argv[at] + strlen("--target=");
        else if (str_starts(argv[at], "--atol="))
            atol_given = atof(argv[at] + strlen("--atol="));
        else if (str_starts(argv[at], "--rtol="))
            rtol_given = atof(argv[at] + strlen("--rtol="));
        else if (str_starts(argv[at], "--most="))
            most = (uint32_t)atoi(argv[at] + strlen("--most="));
        else
            return 2;
    }
    if (at + 2 >= argc)
        return 2;
    kept = arena_new(NULL);
    headers = strbuf(kept), program = strbuf(kept), table = strbuf(kept);
    folder = argv[at];
    for (int i = at + 2; i < argc; i++)
        if (str_ends(argv[i], ".onnx"))
            write_file(argv[i]);
        else
            run_file(argv[i], most, write_case);
    if (count && !write_program(argv[at + 1]))
        return 1;
    arena_free(kept);
    return check_result();
}
