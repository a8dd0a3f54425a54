/* Imports a model for the tests, prints what came, and runs it in the interpreter.
 *
 *     check_import [--format F] [--signature S] [--shape NAME=1,3,8] [--dim N=1] [--print]
 *                  [-Wno-error=..] MODEL
 *                  [--inputs X.npz --outputs Y.npz [--rtol R] [--atol A] [--prefix]]
 *
 * Always: the module is verified, and its text parsed back is the same text.  --print shows the
 * text; otherwise one line says how many nodes, parameters and results there are.  With --prefix
 * the arrays of one .npz are called in.NAME and out.NAME.  Messages go to stdout, as goldens want
 * them. Exit status: that of the import, 7 when outputs differ. */
#include "formats/formats.h"
#include "frontends/frontends.h"
#include "ops/ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *format, *signature, *model, *inputs, *outputs;
    bool        print, prefix;
    double      rtol, atol;
    VEC(ImportShape) shapes;
    VEC(ImportDim) dims;
} Args;

static bool read_args(Ctx *c, int argc, char **argv, Args *a)
{
    *a = (Args){.rtol = 1e-3, .atol = 1e-4};
    for (int i = 1; i < argc; i++) {
        const char *s = argv[i], *eq = i + 1 < argc ? strchr(argv[i + 1], '=') : NULL;

        if (!strcmp(s, "--print")) {
            a->print = true;
        } else if (!strcmp(s, "--prefix")) {
            a->prefix = true;
        } else if (str_starts(s, "-W")) {
            if (!diag_flag(c->diags, s))
                return false;
        } else if (s[0] != '-') {
            a->model = s;
        } else if (i + 1 == argc) {
            return false;
        } else if (!strcmp(s, "--format")) {
            a->format = argv[++i];
        } else if (!strcmp(s, "--signature")) {
            a->signature = argv[++i];
        } else if (!strcmp(s, "--inputs")) {
            a->inputs = argv[++i];
        } else if (!strcmp(s, "--outputs")) {
            a->outputs = argv[++i];
        } else if (!strcmp(s, "--rtol")) {
            a->rtol = atof(argv[++i]);
        } else if (!strcmp(s, "--atol")) {
            a->atol = atof(argv[++i]);
        } else if (!strcmp(s, "--dim") && eq) {
            ImportDim d = {intern_n(c->strings, argv[i + 1], (size_t)(eq - argv[i + 1])),
                           atoll(eq + 1), atoll(eq + 1)};

            vec_push(c->arena, &a->dims, d);
            i++;
        } else if (!strcmp(s, "--shape") && eq) {
            ImportShape v = {.name = intern_n(c->strings, argv[i + 1], (size_t)(eq - argv[i + 1]))};
            int64_t    *at = NEW_ARRAY(c->arena, int64_t, strlen(eq) + 1);
            char       *p = (char *)eq + 1;

            while (*p) {
                at[v.ndim++] = strtoll(p, &p, 10);
                p += *p == ',';
            }
            v.dims = at;
            vec_push(c->arena, &a->shapes, v);
            i++;
        } else {
            return false;
        }
    }
    return a->model != NULL;
}

static void print_diags(Ctx *c)
{
    StrBuf s = strbuf(c->arena);

    diag_print(c->diags, DIAG_TEXT, &s);
    fputs(s.at ? s.at : "", stdout);
}

/* ---- running ------------------------------------------------------------------------------------ */

static bool load(Ctx *c, const char *path, uint32_t *n, Array **out)
{
    Bytes file;

    return file_map(c->diags, path, &file) &&
           npz_read(c->diags, c->arena, (Loc){.file = path}, file, n, out);
}

static const Array *find(Ctx *c, const Args *a, const Array *v, uint32_t n, const char *dot,
                         const char *name)
{
    if (a->prefix)
        name = arena_printf(c->arena, "%s%s", dot, name);
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(v[i].name, name))
            return &v[i];
    printf("no array '%s'\n", name);
    return NULL;
}

static DType dtype_of(const Array *v)
{
    return (DType){v->code == ARRAY_OPAQUE ? DT_BFLOAT : v->code, v->bits, 1};
}

static const Const *as_const(Ctx *c, const Array *v)
{
    void *copy = arena_dup(c->arena, v->data.at, v->data.n);

    return const_new(c, v->name, type_tensor_i64(c, dtype_of(v), v->ndim, v->dims),
                     (Bytes){copy, v->data.n});
}

/* The largest error as a multiple of what is allowed; below 1 is well. */
static double difference(const Args *a, const Const *got, const Array *want, const Const *w)
{
    double   worst = 0;
    uint32_t size = dtype_bytes(got->type->dtype), wsize = want->bits / 8u;

    if (got->type != w->type)
        return INFINITY;
    for (size_t i = 0; i * size < got->data.n; i++) {
        double x = dtype_get_f(got->type->dtype, got->data.at + i * size);
        double y = dtype_get_f(w->type->dtype, w->data.at + i * wsize);
        double d = fabs(x - y) / (a->atol + a->rtol * fabs(y));

        if (x == y || (isnan(x) && isnan(y)))
            continue;
        if (!(d <= worst))
            worst = d;
    }
    return worst;
}

static int run(Ctx *c, const Args *a, const Module *m)
{
    const Expr   *main = module_func(m, "main");
    const Const **in = NEW_ARRAY(c->arena, const Const *, main->nkids), *const * out;
    Array        *x, *y;
    uint32_t      nx, ny, nout;
    int           status = 0;

    if (!load(c, a->inputs, &nx, &x) || !load(c, a->outputs, &ny, &y))
        return 74;
    for (uint32_t i = 0; i < func_nparams(main); i++) {
        const Array *v = find(c, a, x, nx, "in.", func_param(main, i)->u.var.name);

        if (!v)
            return 1;
        in[i] = as_const(c, v);
        if (in[i]->type != func_param(main, i)->type) {
            printf("input '%s' is %s, the model takes %s\n", v->name, type_text(c, in[i]->type),
                   type_text(c, func_param(main, i)->type));
            return 1;
        }
    }
    if (!relay_eval(c, m, func_nparams(main), in, &nout, &out))
        return 1;
    for (uint32_t i = 0; i < nout; i++) {
        const Array *v = find(c, a, y, ny, "out.", m->output_names[i]);
        const Const *w = v ? as_const(c, v) : NULL;
        double       d = v ? difference(a, out[i], v, w) : INFINITY;

        printf("%s %s: %s\n", m->output_names[i], type_text(c, out[i]->type),
               d < 1 ? "as expected" : "DIFFERS");
        if (d >= 1) {
            printf("  by %g times the tolerance; expected %s\n", d,
                   v ? type_text(c, w->type) : "?");
            status = 7;
        }
    }
    return status;
}

/* ---- printing ------------------------------------------------------------------------------------- */

static bool round_trip(Ctx *c, const Module *m, const char *text)
{
    StrBuf        again = strbuf(c->arena);
    const Module *back = relay_parse(
        c, "printed.relay", (Bytes){(const uint8_t *)text, strlen(text)}, relay_consts(c, m));

    if (!back)
        return false;
    relay_print(c, back, (RelayPrint){0}, &again);
    if (!strcmp(text, again.at))
        return true;
    printf("the printed module parsed and printed again differs\n");
    return false;
}

static int check(Ctx *c, const Args *a)
{
    ImportOptions o = {.signature = a->signature,
                       .nshapes = a->shapes.n,
                       .ndims = a->dims.n,
                       .shapes = a->shapes.at,
                       .dims = a->dims.at};
    ImportFiles   files = {0};
    const Module *m = frontend_import(c, a->model, a->format, &o, &files);
    const Expr   *main;
    ExprList      all;
    StrBuf        text = strbuf(c->arena);
    uint32_t      calls = 0;

    if (!m)
        return diag_status(c->diags);
    if (!relay_verify(c, m))
        return diag_status(c->diags);
    main = module_func(m, "main");
    all = expr_post_order(c, main);
    for (uint32_t i = 0; i < all.n; i++) {
        calls += all.at[i]->kind == EXPR_CALL;
        if (!all.at[i]->type && all.at[i]->kind != EXPR_OP) {
            printf("a node has no type: %s\n", expr_text(c, all.at[i]));
            return 70;
        }
    }
    relay_print(c, m, (RelayPrint){0}, &text);
    if (a->print)
        fputs(text.at, stdout);
    else
        printf("%u calls, %u parameters, %u results\n", calls, func_nparams(main), m->noutputs);
    if (!round_trip(c, m, text.at))
        return 70;
    return a->inputs ? run(c, a, m) : 0;
}

int main(int argc, char **argv)
{
    Arena *arena = arena_new(NULL);
    Diags *d = diags_new(arena);
    Ctx   *c = ctx_new(arena, d, op_table);
    Args   a;
    int    status = 2;

    if (read_args(c, argc, argv, &a))
        status = check(c, &a);
    else
        printf("check_import: wrong arguments\n");
    print_diags(c);
    fflush(stdout);
    ctx_free(c);
    arena_free(arena);
    return status;
}
