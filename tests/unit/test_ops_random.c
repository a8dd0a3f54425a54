/* Operators under random operands and attributes.  A type relation must answer with a type or an
 * error, whatever it is asked; what it accepts must have a tensor expression that verifies, and
 * that runs without leaving a buffer (the interpreter checks every access), also from its text.
 * Numbers are test_ops.c's concern.
 *
 * The generator is biased to values that fit together, so that every operator accepts some cases;
 * one that accepts none fails the test. */
#include "tests/unit/check.h"

#include "ir/relay/relay.h"
#include "ops/ops.h"

#include <stdlib.h>

enum { MAX_OPERANDS = 8, MAX_CELLS = 3000 };

static uint64_t state = 88172645463325252u;

static uint32_t rnd(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 20) % n);
}

static bool chance(uint32_t percent)
{
    return rnd(100) < percent;
}

/* ---- generators --------------------------------------------------------------------------------------- */

static int64_t some_int(void)
{
    static const int64_t wild[] = {INT64_MIN, INT64_MAX, INT32_MAX, -INT32_MAX, 1 << 20, 7, -9};

    return chance(3) ? wild[rnd(COUNT(wild))] : chance(80) ? rnd(4) : (int64_t)rnd(10) - 3;
}

static const char *some_word(void)
{
    static const char *const words[] = {
        "",       "NCHW",          "NCHW4c",           "NCHW8c",        "OIHW",       "f32",
        "clip",   "wrap",          "update",           "add",           "max",        "constant",
        "edge",   "reflect",       "forward",          "reverse",       "both",       "values",
        "linear", "cubic",         "nearest_neighbor", "floor",         "half_pixel", "asymmetric",
        "NHWC",   "bidirectional", "indices",          "align_corners", "x7c",        "i32",
        "ceil",   "mul",           "gated_delta",      "avg",           "average"};

    return words[rnd(COUNT(words))];
}

static Ints some_ints(Ctx *c)
{
    uint32_t n = rnd(5);
    int64_t  v[5];

    for (uint32_t i = 0; i < n; i++)
        v[i] = some_int();
    return ints_dup(c, v, n);
}

static DType some_dtype(void)
{
    static const DType t[] = {{DT_FLOAT, 32, 1}, {DT_FLOAT, 32, 1}, {DT_FLOAT, 32, 1},
                              {DT_INT, 64, 1},   {DT_INT, 32, 1},   {DT_INT, 8, 1},
                              {DT_UINT, 8, 1},   {DT_BOOLEAN, 8, 1}};

    return t[rnd(COUNT(t))];
}

static void *some_attrs(Ctx *c, const AttrRecord *r)
{
    char *a = attrs_new(c, r);

    for (uint32_t i = 0; i < r->nfields; i++) {
        const AttrField *f = &r->fields[i];
        void            *at = a + f->offset;

        if (f->fallback && chance(70))
            continue;
        switch (f->type) {
        case ATTR_INT: *(int64_t *)at = some_int(); break;
        case ATTR_BOOL: *(bool *)at = chance(50); break;
        case ATTR_FLOAT: *(double *)at = (double)some_int() / 2; break;
        case ATTR_STR: *(const char **)at = intern(c->strings, some_word()); break;
        case ATTR_DTYPE: *(DType *)at = some_dtype(); break;
        case ATTR_INTS: *(Ints *)at = some_ints(c); break;
        case ATTR_DIMS: {
            Ints v = some_ints(c);

            *(Dims *)at = dims_of_i64(c, v.at, v.n);
            break;
        }
        case ATTR_FLOATS: {
            double   v[2] = {(double)(1 + rnd(5)) / 2, (double)(1 + rnd(5)) / 2};
            uint32_t n = chance(50) ? 0 : chance(90) ? 2 : 1;

            *(Floats *)at = (Floats){n, n ? DUP_ARRAY(c->arena, v, 2) : NULL};
            break;
        }
        }
    }
    return a;
}

static const Type *some_tensor(Ctx *c, DType t)
{
    static const int64_t dims[] = {1, 2, 3, 4, 4, 5, 8, 0};
    int64_t              d[5];
    uint32_t             n = rnd(6);

    for (uint32_t i = 0; i < n; i++)
        d[i] = dims[rnd(chance(5) ? 8 : 7)];
    return type_tensor_i64(c, t, n, d);
}

/* Often like the operand before it, or a vector along one of its dimensions. */
static const Type *like(Ctx *c, const Type *t)
{
    const Idx *dims[8];
    DType      dtype = chance(60) ? t->dtype : some_dtype();
    uint32_t   n = t->n;

    if (t->kind != TYPE_TENSOR || chance(30))
        return some_tensor(c, dtype);
    for (uint32_t i = 0; i < n; i++)
        dims[i] = chance(80) ? t->dims[i] : idx_const(c->arith, 1 + rnd(4));
    if (n && chance(30))
        return type_tensor(c, dtype, 1, &dims[rnd(n)]);
    if (chance(10))
        n = 0;
    return type_tensor(c, dtype, n, dims);
}

static bool tied_tables(Ctx *c, OpId op, const Type **in, uint32_t *n)
{
    int64_t a = 1 + rnd(3), b = 1 + rnd(2), d = 1 + rnd(4), e = 1 + rnd(4);

    if (op == OP_NN_LINEAR_ATTENTION) {
        in[0] = type_tensor_i64(c, DT_F32, 5, (int64_t[]){b, a, 2, 1 + rnd(2), d});
        in[1] = type_tensor_i64(c, DT_F32, 4, (int64_t[]){b, a, 2, d});
        in[2] = type_tensor_i64(c, DT_F32, 4, (int64_t[]){b, a, 2, e});
        in[3] = type_tensor_i64(c, DT_F32, 4, (int64_t[]){b, 2, d, e});
        in[4] = type_tensor_i64(c, DT_F32, 4, (int64_t[]){b, a, 2, chance(50) ? d : 1});
        in[5] = type_tensor_i64(c, DT_F32, 3, (int64_t[]){b, a, chance(50) ? 2 : 1});
        *n = chance(50) ? 6 : 4;
    } else if (op == OP_VISION_ROI_ALIGN) {
        in[0] = type_tensor_i64(c, DT_F32, 4, (int64_t[]){b, d, 1 + rnd(6), 1 + rnd(6)});
        in[1] = type_tensor_i64(c, DT_F32, 2, (int64_t[]){a, 4});
        in[2] = type_tensor_i64(c, chance(50) ? DT_I64 : DT_I32, 1, &a);
        *n = 3;
    } else if (op == OP_VISION_NON_MAX_SUPPRESSION) {
        in[0] = type_tensor_i64(c, DT_F32, 3, (int64_t[]){b, d, 4});
        in[1] = type_tensor_i64(c, DT_F32, 3, (int64_t[]){b, a, d});
        in[2] = type_tensor_i64(c, DT_I64, 3, (int64_t[]){b, a, d});
        in[3] = type_tensor_i64(c, DT_I64, 0, NULL);
        in[4] = in[5] = type_tensor_i64(c, DT_F32, 0, NULL);
        *n = chance(50) ? 6 : 5;
    } else if (op == OP_TREE_ENSEMBLE) { /* d nodes, e leaves, b trees */
        in[0] = type_tensor_i64(c, DT_F32, 2, (int64_t[]){a, 1 + rnd(3)});
        in[1] = type_tensor_i64(c, DT_I32, 1, &d);
        in[2] = type_tensor_i64(c, DT_F32, 1, &d);
        in[3] = type_tensor_i64(c, DT_I32, 2, (int64_t[]){d, 2 + rnd(2)});
        in[4] = type_tensor_i64(c, DT_I32, 1, &b);
        in[5] = type_tensor_i64(c, DT_I32, 2, (int64_t[]){e, 1 + rnd(2)});
        in[6] = type_tensor(c, DT_F32, 2, in[5]->dims);
        *n = 7;
    } else {
        return false;
    }
    return true;
}

/* Operands that a chain of equal dimensions ties together are too rare by chance. */
static bool tied_operands(Ctx *c, OpId op, const Type **in, uint32_t *n)
{
    int64_t t = 1 + rnd(3), b = 1 + rnd(2), x = 1 + rnd(4), h = 2 * (1 + rnd(4)),
            a = 4 + 2 * rnd(2);

    if (op == OP_NN_LSTM || op == OP_NN_GRU || op == OP_NN_RNN) {
        int64_t gates = op == OP_NN_LSTM  ? 4
                        : op == OP_NN_GRU ? 3
                                          : 1,
                dims[6][3] = {{t, b, x},         {1, gates * h, x},
                              {1, gates * h, h}, {1, 2 * gates * h, 0},
                              {1, b, h},         {1, b, h}};

        for (*n = 0; *n < (op == OP_NN_LSTM ? 6 : 5); ++*n)
            in[*n] = type_tensor_i64(c, DT_F32, *n == 3 ? 2 : 3, dims[*n]);
    } else if (op == OP_NN_RECURRENT) { /* an LSTM */
        in[0] = type_tensor_i64(c, DT_F32, 3, (int64_t[]){t, b, 4 * h});
        in[1] = type_tensor_i64(c, DT_F32, 4, (int64_t[]){1, h, 4, h});
        in[2] = in[3] = type_tensor_i64(c, DT_F32, 3, (int64_t[]){1, b, h});
        *n = 4;
    } else if (op == OP_NN_CONV2D_WINOGRAD) {
        in[0] = type_tensor_i64(c, DT_F32, 4, (int64_t[]){b, x, 3 + rnd(5), 3 + rnd(5)});
        in[1] = type_tensor_i64(c, DT_F32, 4, (int64_t[]){a, a, 1 + rnd(4), x});
        *n = 2;
    } else if (op == OP_NN_CONV2D || op == OP_NN_CONV2D_TRANSPOSE) {
        int64_t k = 1 + rnd(3), o = 1 + rnd(4);

        in[0] = type_tensor_i64(c, DT_F32, 4, (int64_t[]){b, x, 3 + rnd(5), 3 + rnd(5)});
        in[1] = type_tensor_i64(
            c, DT_F32, 4,
            (int64_t[]){op == OP_NN_CONV2D ? o : x, op == OP_NN_CONV2D ? x : o, k, k});
        *n = 2;
    } else if (op == OP_NN_DENSE_STRASSEN) {
        in[0] = type_tensor_i64(c, DT_F32, 3, (int64_t[]){b, 1 + rnd(5), 2 * x});
        in[1] = type_tensor_i64(c, DT_F32, 3, (int64_t[]){7, 1 + rnd(4), x});
        *n = 2;
    } else if (op == OP_NN_WINOGRAD_WEIGHT) {
        in[0] = type_tensor_i64(c, DT_F32, 4, (int64_t[]){b, x, 3, 3});
        *n = 1;
    } else if (op == OP_QNN_QUANTIZE || op == OP_QNN_DEQUANTIZE || op == OP_QNN_REQUANTIZE) {
        in[0] = some_tensor(c, op == OP_QNN_QUANTIZE ? DT_F32 : DT_I8);
        for (*n = 1; *n < (op == OP_QNN_REQUANTIZE ? 5 : 3); ++*n) {
            bool vector = in[0]->n && chance(50);

            in[*n] = type_tensor(c, *n % 2 ? DT_F32 : DT_I8, vector,
                                 vector ? &in[0]->dims[in[0]->n - 1] : NULL);
        }
    } else {
        return tied_tables(c, op, in, n);
    }
    return true;
}

static uint32_t some_operands(Ctx *c, const Op *op, const Type **in)
{
    uint32_t n = op->min_in + (op->max_in > op->min_in ? rnd(op->max_in - op->min_in + 1) : 0);
    bool     tuple = op->id == OP_CONCATENATE || op->id == OP_STACK;

    if (chance(50) && tied_operands(c, (OpId)op->id, in, &n))
        return n;
    for (uint32_t i = 0; i < n; i++)
        in[i] = i && chance(90) ? like(c, in[i - 1]) : some_tensor(c, some_dtype());
    if (n && (tuple ? chance(95) : chance(2))) {
        const Type *fields[3] = {in[0], like(c, in[0]), like(c, in[0])};

        in[0] = type_tuple(c, rnd(4), fields);
    }
    return n;
}

/* ---- what is accepted must run ---------------------------------------------------------------------------- */

static void flatten(const Type *t, uint32_t *n, const Type **out)
{
    if (t->kind == TYPE_TENSOR && *n < MAX_OPERANDS)
        out[(*n)++] = t;
    for (uint32_t i = 0; t->kind == TYPE_TUPLE && i < t->n; i++)
        flatten(t->parts[i], n, out);
}

static void report(Ctx *c, const Op *op, const Type *const *in, uint32_t n, const void *attrs,
                   const char *what)
{
    StrBuf s = strbuf(c->scratch), d = strbuf(c->scratch);

    str_printf(&s, "%s: %s(", what, op->text);
    for (uint32_t i = 0; i < n; i++)
        str_printf(&s, "%s%s", i ? ", " : "", type_text(c, in[i]));
    if (op->attrs)
        attrs_print(c, op->attrs, attrs, &s);
    diag_print(c->diags, DIAG_TEXT, &d);
    printf("%s)\n%s", s.at, d.at ? d.at : "");
    check_failures++;
}

static const char *runs(Ctx *c, const TeFunc *te)
{
    const Func *f = te_lower(c, te, NULL);
    TirModule   m = {.nfuncs = 1, .funcs = &f};
    void       *buffers[4 * MAX_OPERANDS];

    if (!tir_verify(c, &m, TIR_NEST))
        return "does not verify";
    for (uint32_t i = 0; i < f->nparams; i++) {
        const Buffer *b = f->params[i].buffer;
        int64_t       n, origin;

        if (!buffer_size(c, b, &n, &origin))
            return "has no size";
        uint8_t *p = arena_array(c->arena, (size_t)n + 1, dtype_bytes(b->dtype));

        for (int64_t k = 0; k < n; k++)
            if (dtype_is_float(b->dtype))
                dtype_put_f(b->dtype, p + k * dtype_bytes(b->dtype), (double)rnd(16) / 4 - 2);
            else
                dtype_put_i(b->dtype, p + k * dtype_bytes(b->dtype),
                            dtype_is_bool(b->dtype) ? rnd(2) : (int64_t)rnd(12) - 4);
        buffers[i] = p;
    }
    return tir_eval(c, NULL, f, f->nparams, buffers, 0, NULL) ? NULL : "does not run";
}

static const char *computes(Ctx *c, const Op *op, const Type *const *in, uint32_t n,
                            const Type *result, const void *attrs)
{
    const Type   *flat[MAX_OPERANDS], *to[MAX_OPERANDS];
    const Tensor *params[MAX_OPERANDS], *outs[MAX_OPERANDS];
    OpCall        call = {.op = op, .attrs = attrs, .in = flat, .out = to};
    StrBuf        text = strbuf(c->arena), again = strbuf(c->arena);
    const char   *fault;

    for (uint32_t i = 0; i < n; i++)
        flatten(in[i], &call.nin, flat);
    flatten(result, &call.nout, to);
    for (uint32_t i = 0; i < call.nin; i++)
        params[i] = te_param(c, intern_printf(c->strings, "p%u", i), flat[i], false, NULL);
    if (!op->compute(c, &call, params, outs))
        return "is not computed";
    for (uint32_t i = 0; i < call.nout; i++)
        if (!dtype_eq(outs[i]->buffer->dtype, to[i]->dtype) || outs[i]->buffer->ndim != to[i]->n ||
            (to[i]->n &&
             memcmp(outs[i]->buffer->extent, to[i]->dims, to[i]->n * sizeof(Idx *)) != 0))
            return "is of another type than its relation says";
    TeFunc te = {"f", call.nin, call.nout, params, outs, NO_LOC};

    if ((fault = runs(c, &te)))
        return fault;
    te_print(c, &te, &text);
    const TeFunc *read = te_parse(c, "f.te", (Bytes){(const uint8_t *)text.at, text.n});

    if (!read)
        return arena_printf(c->arena, "cannot be read\n%s", text.at);
    te_print(c, read, &again);
    return strcmp(again.at, text.at) ? "reads as something else" : NULL;
}

static bool small(const Type *t)
{
    int64_t n;

    if (t->kind == TYPE_TENSOR)
        return type_elems(t, &n) && n < MAX_CELLS;
    for (uint32_t i = 0; i < t->n; i++)
        if (!small(t->parts[i]))
            return false;
    return t->n < MAX_OPERANDS;
}

/* A BUG ends the process: say what was asked. */
static struct {
    Ctx        *c;
    const Op   *op;
    const Type *in[MAX_OPERANDS];
    uint32_t    n;
    const void *attrs;
} current;

/* Returns whether the relation took it. */
static bool try_one(Ctx *c, const Op *op)
{
    const Type *in[MAX_OPERANDS];
    uint32_t    errors = diag_errors(c->diags), n = some_operands(c, op, in);
    const void *attrs = op->attrs ? some_attrs(c, op->attrs) : NULL;
    const char *fault = NULL;

    check_count++;
    current.c = c;
    current.op = op;
    current.n = n;
    current.attrs = attrs;
    memcpy(current.in, in, n * sizeof *in);
    const Type *t = op->rel(c, NO_LOC, attrs, in, n);

    if (!t) {
        if (diag_errors(c->diags) == errors)
            report(c, op, in, n, attrs, "refused without an error");
        diag_drop(c->diags, errors);
        return false;
    }
    if (diag_errors(c->diags) != errors)
        fault = "accepted with an error";
    else if (op->compute && small(t))
        fault = computes(c, op, in, n, t, attrs);
    if (fault)
        report(c, op, in, n, attrs, fault);
    return true;
}

static void at_exit(void)
{
    if (current.c)
        report(current.c, current.op, current.in, current.n, current.attrs, "fault");
}

int main(int argc, char **argv)
{
    atexit(at_exit);
    uint32_t rounds = argc > 1 ? (uint32_t)atoi(argv[1]) : 60;

    if (argc > 2)
        state ^= (uint64_t)atoll(argv[2]) * 2654435761u;
    for (uint32_t i = 0; i < op_table.n; i++) {
        const Op *op = &op_table.at[i];
        uint32_t  taken = 0;

        if ((!op->compute && !op->expand) || op->id == OP_GRADIENT)
            continue; /* it takes a function */
        for (uint32_t k = 0; k < 20 * rounds && taken < rounds; k++) {
            Arena *arena = arena_new(NULL);
            Diags *diags = diags_new(arena);
            Ctx   *c = ctx_new(arena, diags, op_table);

            for (uint32_t once = 0; once < 20; once++)
                taken += try_one(c, op);
            current.c = NULL;
            ctx_free(c);
            arena_free(arena);
            if (check_failures > 20)
                return check_result();
        }
        check_count++;
        if (!taken) {
            printf("%s took no random operands\n", op->text);
            check_failures++;
        }
    }
    return check_result();
}
