/* The cases of tests/ops/: read from <operator>.case files (record.py there writes them), and what
 * came out compared with what they say. */
#ifndef TVMCC_TESTS_CASES_H
#define TVMCC_TESTS_CASES_H

#include "tests/unit/check.h"

#include "ir/relay/relay.h"
#include "ops/ops.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_OPERANDS = 8 };

typedef struct {
    Ctx          *c;
    Diags        *diags;
    const char   *file;
    uint32_t      number; /* of the case in its file */
    const Module *m;
    uint32_t      nin, nout;
    const Const  *in[MAX_OPERANDS];
    const char   *out[MAX_OPERANDS]; /* expected values, as text */
    double        tol;
} Case;

static bool failed(const Case *k, const char *how, const char *what)
{
    StrBuf s = strbuf(k->c->scratch);

    diag_print(k->diags, DIAG_TEXT, &s);
    printf("%s, case %u, %s: %s\n%s", k->file, k->number, how, what, s.at ? s.at : "");
    check_failures++;
    return false;
}

/* ---- reading a case --------------------------------------------------------------------------------- */

/* The formula of record.py's `rand`. */
static double rand_value(uint64_t i, uint64_t seed, double lo, double hi)
{
    uint64_t x = i + seed * 1000003;

    x = (x * 2654435761u + 40503) & 0xFFFFFFFF;
    x ^= x >> 15;
    x = (x * 2246822519u) & 0xFFFFFFFF;
    x ^= x >> 13;
    return lo + (hi - lo) * ((double)(x >> 8) / 16777216.0);
}

static void put_number(DType t, void *p, const char **text)
{
    char *end;

    if (dtype_is_real(t))
        dtype_put_f(t, p, strtod(*text, &end));
    else
        dtype_put_i(t, p, strtoll(*text, &end, 10));
    *text = end;
}

static const Const *operand(Ctx *c, const Type *t, const char *spec)
{
    uint32_t size = dtype_bytes(t->dtype);
    int64_t  n;
    double   lo, hi;
    unsigned seed;

    if (!type_elems(t, &n))
        return NULL;
    uint8_t *data = arena_array(c->arena, (size_t)n + 1, size);
    bool     random = sscanf(spec, "rand %lf %lf %u", &lo, &hi, &seed) == 3;

    for (int64_t i = 0; i < n; i++) {
        if (!random) {
            if (!i)
                spec += strlen("vals");
            put_number(t->dtype, data + i * size, &spec);
            continue;
        }
        double v = rand_value((uint64_t)i, seed, lo, hi);

        if (dtype_is_real(t->dtype))
            dtype_put_f(t->dtype, data + i * size, v);
        else
            dtype_put_i(t->dtype, data + i * size, (int64_t)floor(v));
    }
    return const_new(c, NULL, t, (Bytes){data, (size_t)n * size});
}

/* `text`: the lines of one case, changed in place. */
static bool read_case(Case *k, char *text)
{
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        if (!strncmp(line, "fn ", 3)) {
            Bytes b = {(const uint8_t *)line, strlen(line)};

            if (!(k->m = relay_parse(k->c, k->file, b, (Bytes){0})))
                return failed(k, "parse", line);
        } else if (!strncmp(line, "in ", 3) && k->m && k->nin < MAX_OPERANDS) {
            const Expr *f = module_func(k->m, "main");

            if (k->nin >= func_nparams(f))
                return failed(k, "parse", "too many operands");
            k->in[k->nin] = operand(k->c, func_param(f, k->nin)->type, line + 3);
            k->nin++;
        } else if (!strncmp(line, "out", 3) && k->nout < MAX_OPERANDS) {
            k->out[k->nout++] = line + 3;
        } else if (!strncmp(line, "tol ", 4)) {
            k->tol = atof(line + 4);
        } else if (*line != '#') {
            return failed(k, "parse", line);
        }
    }
    return k->m && k->nout ? true : failed(k, "parse", "not a whole case");
}

/* ---- comparing ----------------------------------------------------------------------------------------- */

/* Nine digits name an f32, but are not one. */
static double rounded(DType t, double v)
{
    uint8_t p[8];

    dtype_put_f(t, p, v);
    return dtype_get_f(t, p);
}

static bool close_enough(double got, double want, double tol)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    return got == want || fabs(got - want) <= tol + tol * fabs(want);
}

static inline bool same_numbers(const Case *k, const char *how, uint32_t o, const Const *got)
{
    const char *text = k->out[o];
    DType       t = got->type->dtype;
    int64_t     n, i;
    char        what[200];

    type_elems(got->type, &n);
    for (i = 0; i < n; i++) {
        const uint8_t *p = got->data.at + (size_t)i * dtype_bytes(t);
        char          *end;

        if (dtype_is_real(t)) {
            double want = rounded(t, strtod(text, &end)), v = dtype_get_f(t, p);

            snprintf(what, sizeof what, "result %u, number %lld is %.9g, not %.9g", o, (long long)i,
                     v, want);
            if (end == text || !close_enough(v, want, k->tol))
                return failed(k, how, what);
        } else {
            int64_t want = strtoll(text, &end, 10), v = dtype_get_i(t, p);

            snprintf(what, sizeof what, "result %u, number %lld is %lld, not %lld", o, (long long)i,
                     (long long)v, (long long)want);
            if (end == text || v != want)
                return failed(k, how, what);
        }
        text = end;
    }
    return text[strspn(text, " ")] ? failed(k, how, "fewer numbers than expected") : true;
}

/* ---- all cases ----------------------------------------------------------------------------------------- */

static void run_case(const char *file, uint32_t number, char *text, void (*fn)(const Case *k))
{
    Arena *arena = arena_new(NULL);
    Diags *diags = diags_new(arena);
    Ctx   *c = ctx_new(arena, diags, op_table);
    Case   k = {.c = c, .diags = diags, .file = file, .number = number};

    if (read_case(&k, text))
        fn(&k);
    ctx_free(c);
    arena_free(arena);
}

/* map_batch and gradient take functions; test_views.c and test_gradient.c have their cases. */
static inline bool on_tensors(const Op *op)
{
    return (op->compute || op->expand) && op->id != OP_GRADIENT;
}

/* All cases of an operator, each in an arena of its own; at most `most` of them. */
typedef void CaseFn(const Case *k);
static void  run_file(const char *op, uint32_t most, CaseFn *fn)
{
    Arena *arena = arena_new(NULL);
    Diags *diags = diags_new(arena);
    char  *path = arena_printf(arena, "tests/ops/%s.case", op), *text, *next;
    Bytes  b;

    check_count++;
    if (!file_read(diags, arena, path, &b)) {
        printf("operator %s has no case: %s\n", op, path);
        check_failures++;
        arena_free(arena);
        return;
    }
    text = arena_alloc(arena, b.n + 1);
    memcpy(text, b.at, b.n);
    for (uint32_t i = 1; text && i <= most; i++, text = next) {
        if ((next = strstr(text, "----\n"))) {
            *next = '\0';
            next += strlen("----\n");
        }
        run_case(path, i, text, fn);
    }
    arena_free(arena);
}

#endif
