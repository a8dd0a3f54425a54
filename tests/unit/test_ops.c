/* Every operator against recorded numbers: tests/ops/<operator>.case, written by record.py there.
 *
 * A case runs up to five ways, always through the interpreter: as it stands; as tensor expressions
 * whose operands are known numbers (compute functions may look at them); as tensor expressions that
 * were printed and parsed; and, where the operator has a blocked form, on layouts NCHW4c and
 * NCHW8c, where surplus lanes must come out as zero.  An operator of the table without a case is a
 * failure. */
#include "tests/unit/cases.h"

static uint32_t blocked_runs, blocked_refusals;

static bool run(const Case *k, const char *how, const Expr *func, uint32_t nin,
                const Const *const *in)
{
    GlobalDef           def = {"main", func};
    const Module       *m = module_new(k->c, k->m, 1, &def);
    uint32_t            nout;
    const Const *const *out;

    check_count++;
    if (!relay_eval(k->c, m, nin, in, &nout, &out))
        return failed(k, how, "does not run");
    if (nout != k->nout)
        return failed(k, how, "another number of results");
    for (uint32_t i = 0; i < nout; i++)
        if (!same_numbers(k, how, i, out[i]))
            return false;
    return true;
}

/* ---- the ways to run -------------------------------------------------------------------------------------- */

static void flatten(const Type *t, uint32_t *n, const Type **out)
{
    if (t->kind == TYPE_TENSOR && *n < MAX_OPERANDS)
        out[(*n)++] = t;
    for (uint32_t i = 0; t->kind == TYPE_TUPLE && i < t->n; i++)
        flatten(t->parts[i], n, out);
}

/* Lower and run; `results` are the types of what comes out. */
static bool run_te(const Case *k, const char *how, const TeFunc *te, const Type *const *results)
{
    void   *buffers[2 * MAX_OPERANDS];
    Const   got[MAX_OPERANDS];
    int64_t n;

    for (uint32_t i = 0; i < k->nin; i++)
        buffers[i] = arena_dup(k->c->arena, k->in[i]->data.at, k->in[i]->data.n);
    for (uint32_t i = 0; i < te->nouts; i++) {
        type_elems(results[i], &n);
        uint32_t size = dtype_bytes(results[i]->dtype);

        buffers[k->nin + i] = arena_array(k->c->arena, (size_t)n + 1, size);
        got[i] = (Const){.type = results[i], .data = {buffers[k->nin + i], (size_t)n * size}};
    }
    const Func *f = te_lower(k->c, te, NULL);
    TirModule   m = {.nfuncs = 1, .funcs = &f};

    check_count++;
    if (!tir_verify(k->c, &m, TIR_NEST))
        return failed(k, how, "does not verify");
    if (!tir_eval(k->c, NULL, f, k->nin + te->nouts, buffers, 0, NULL))
        return failed(k, how, "does not run");
    for (uint32_t i = 0; i < te->nouts; i++)
        if (!same_numbers(k, how, i, &got[i]))
            return false;
    return true;
}

/* The operands of the call are main's parameters, not further calls. */
static bool is_alone(const Expr *e)
{
    for (uint32_t i = 0; i < e->nkids; i++)
        if (e->kids[i]->kind == EXPR_CALL || !is_alone(e->kids[i]))
            return false;
    return true;
}

/* The call by itself, its operands known; then the same from its text. */
static bool run_alone(const Case *k, const Expr *f)
{
    Ctx          *c = k->c;
    const Expr   *call = func_body(f);
    const Op     *op = call_op(call);
    const Type   *in[MAX_OPERANDS], *out[MAX_OPERANDS];
    const Tensor *params[MAX_OPERANDS], *outs[MAX_OPERANDS];
    TeFunc        te = {.name = "f", .params = params, .outs = outs};
    OpCall        oc = {.op = op, .in = in, .out = out};

    if (!op || !op->compute || !is_alone(call))
        return true;
    oc.attrs = call->u.attrs;
    for (uint32_t i = 0; i < call_nargs(call); i++)
        flatten(call_arg(call, i)->type, &oc.nin, in);
    flatten(call->type, &oc.nout, out);
    for (uint32_t i = 0; i < oc.nin; i++)
        params[i] = te_param(c, intern_printf(c->strings, "p%u", i), in[i], true, k->in[i]);
    te.nparams = oc.nin;
    te.nouts = oc.nout;
    if (!op->compute(c, &oc, params, outs))
        return failed(k, "alone", "has no tensor expression");
    if (!run_te(k, "alone", &te, out))
        return false;
    StrBuf text = strbuf(c->arena), again = strbuf(c->arena);

    te_print(c, &te, &text);
    const TeFunc *read = te_parse(c, k->file, (Bytes){(const uint8_t *)text.at, text.n});

    if (!read)
        return failed(k, "as text", text.at);
    te_print(c, read, &again);
    CHECK_STR(again.at, text.at);
    return run_te(k, "as text", read, out);
}

static const Expr *relayout(Ctx *c, const Expr *x, const char *from, const char *to,
                            int64_t channels)
{
    LayoutTransformAttrs *a = attrs_new(c, &attrs_LayoutTransformAttrs);

    a->src_layout = from;
    a->dst_layout = to;
    a->channels = channels;
    return expr_call_name(c, "layout_transform", 1, &x, a, NO_LOC);
}

/* An operand in blocked layout: images and tuples of them; others stay. */
static const Expr *blocked(Ctx *c, const Expr *x, const char *layout)
{
    if (x->type->kind == TYPE_TENSOR && x->type->n == 4)
        return relayout(c, x, "NCHW", layout, 0);
    if (x->kind == EXPR_TUPLE) {
        const Expr *fields[MAX_OPERANDS];

        for (uint32_t i = 0; i < x->nkids && i < MAX_OPERANDS; i++)
            fields[i] = blocked(c, x->kids[i], layout);
        return expr_tuple(c, x->nkids, fields, NO_LOC);
    }
    return x;
}

/* Lanes past the last channel: all of them summed must be zero (a NaN is not). */
static bool surplus_is_zero(const Case *k, const char *how, const Expr *func)
{
    GlobalDef           def = {"main", func};
    const Module       *m = module_new(k->c, k->m, 1, &def);
    const Const *const *out;
    int64_t             d[5], channels;
    uint32_t            nout;

    type_dim(func_body(module_func(k->m, "main"))->type, 1, &channels);
    if (!relay_eval(k->c, m, k->nin, k->in, &nout, &out))
        return failed(k, how, "does not run");
    for (uint32_t i = 0; i < 5; i++)
        type_dim(out[0]->type, i, &d[i]);
    int64_t n = d[0] * d[1] * d[2] * d[3] * d[4];

    for (int64_t i = 0; i < n; i++) {
        int64_t lane = i % d[4], block = i / (d[2] * d[3] * d[4]) % d[1];
        DType   t = out[0]->type->dtype;

        if (block * d[4] + lane >= channels &&
            dtype_get_f(t, out[0]->data.at + (size_t)i * dtype_bytes(t)) != 0)
            return failed(k, how, "a surplus lane is not zero");
    }
    return true;
}

static bool run_blocked(const Case *k, const Expr *f, uint32_t block)
{
    Ctx        *c = k->c;
    const Expr *call = func_body(f), *args[MAX_OPERANDS], *params[MAX_OPERANDS];
    const char *how = intern_printf(c->strings, "blocks of %u", block);
    const char *layout = intern_printf(c->strings, "NCHW%uc", block);
    const Op   *op = call_op(call);
    int64_t     channels;

    if (!op || !op->block || !call->type || call->type->kind != TYPE_TENSOR || call->type->n != 4)
        return true;
    for (uint32_t i = 0; i < k->nin; i++)
        params[i] = func_param(f, i);
    for (uint32_t i = 0; i < call_nargs(call); i++) {
        bool weight = i == 1 && op == &op_table.at[OP_NN_CONV2D];

        args[i] = weight ? call_arg(call, i) : blocked(c, call_arg(call, i), layout);
    }
    uint32_t    errors = diag_errors(k->diags);
    const Expr *now = op->block(c, call, args, block);

    if (!now) {
        blocked_refusals++;
        return diag_errors(k->diags) == errors ? true : failed(k, how, "refused with an error");
    }
    blocked_runs++;
    if (now->type->n != 5)
        return failed(k, how, "the result is not blocked");
    if (!surplus_is_zero(k, how, expr_func(c, k->nin, params, now, (FuncData){0}, NO_LOC)))
        return false;
    type_dim(call->type, 1, &channels);
    now = relayout(c, now, layout, "NCHW", channels);
    return run(k, how, expr_func(c, k->nin, params, now, (FuncData){0}, NO_LOC), k->nin, k->in);
}

static void run_ways(const Case *k)
{
    const Expr *f = module_func(k->m, "main");

    (void)(run(k, "as it stands", f, k->nin, k->in) && run_alone(k, f) && run_blocked(k, f, 8) &&
           run_blocked(k, f, 4));
}

int main(int argc, char **argv)
{
    if (argc > 1) { /* test_ops nn.conv2d .. */
        for (int i = 1; i < argc; i++)
            run_file(argv[i], UINT32_MAX, run_ways);
        return check_result();
    }
    for (uint32_t i = 0; i < op_table.n; i++)
        if (on_tensors(&op_table.at[i]))
            run_file(op_table.at[i].text, UINT32_MAX, run_ways);
    printf("%u blocked runs, %u refused\n", blocked_runs, blocked_refusals);
    CHECK(blocked_runs > 100);
    return check_result();
}
