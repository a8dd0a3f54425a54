/* Multiply-adds of a model: the products that its operators stand for.
 *
 *     %1 = nn.conv2d(%x: (1, 16, 8, 8), const @w: (32, 16, 3, 3), padding=[1, 1, 1, 1])
 *         -> 32*8*8 results of 16*3*3 products: 294912
 *
 * Counted on the graph as it was imported, so that the number says what the model is, not how it is
 * compiled: the same with Winograd's or Strassen's algorithm, at every -O, and for a batch that is
 * walked in a loop; of a function's body for each of its calls, of a loop's for each round.
 * Convolutions count products with their padding too, transposed ones the
 * products of their data; what is made of constants alone costs a run nothing.  Kernels have counts
 * of their own (te_macs). */
#include "ops/common.h"

#include <string.h>

static int64_t times(int64_t a, int64_t b)
{
    int64_t v;

    return checked_mul(a, b, &v) ? v : INT64_MAX;
}

/* Of a dynamic dimension: at most. */
static int64_t dim(const Type *t, uint32_t i)
{
    return t->kind == TYPE_TENSOR && i < t->n && t->dims[i]->hi > 0 ? idx_usual(t->dims[i]) : 0;
}

static int64_t cells(const Type *t)
{
    int64_t n = t->kind == TYPE_TENSOR;

    for (uint32_t i = 0; n && i < t->n; i++)
        n = times(n, dim(t, i));
    return n;
}

static const Type *operand(const Expr *call, uint32_t i)
{
    return call_arg(call, i)->type;
}

/* All dimensions but the first: what one output channel of OIHW takes, or one input channel of
 * IOHW gives. */
static int64_t cells_of_channel(const Type *weight)
{
    int64_t n = 1;

    for (uint32_t i = 1; i < weight->n; i++)
        n = times(n, dim(weight, i));
    return n;
}

int64_t macs_conv(const Expr *call)
{
    return times(cells(call->type), cells_of_channel(operand(call, 1)));
}

int64_t macs_conv_transpose(const Expr *call)
{
    return times(cells(operand(call, 0)), cells_of_channel(operand(call, 1)));
}

/* The transformed weight is [a, a, O, I of a group]. */
int64_t macs_winograd(const Expr *call)
{
    Ints k = ATTRS(Conv2dWinogradAttrs, call)->kernel_size;

    return times(cells(call->type), times(dim(operand(call, 1), 3), k.at[0] * k.at[1]));
}

int64_t macs_dense(const Expr *call)
{
    const Type *x = operand(call, 0);

    return times(cells(call->type), x->n ? dim(x, x->n - 1) : 0);
}

int64_t macs_matmul(const Expr *call)
{
    return times(cells(call->type), dim(operand(call, 0), !ATTRS(MatmulAttrs, call)->transpose_a));
}

int64_t macs_batch_matmul(const Expr *call)
{
    const Type *x = operand(call, 0);
    bool        across = ATTRS(BatchMatmulAttrs, call)->transpose_a;

    return x->n < 2 ? 0 : times(cells(call->type), dim(x, x->n - (across ? 2 : 1)));
}

/* Each row of q meets each of k, and its scores each of v. */
int64_t macs_attention(const Expr *call)
{
    Ints        axes = ATTRS(AttentionAttrs, call)->axes_k;
    const Type *q = operand(call, 0), *k = operand(call, 1);
    int64_t     both, row = (int64_t)k->n - 2;

    if (axes.n && axes.n == k->n)
        row = axes.at[row] < 0 ? axes.at[row] + (int64_t)k->n : axes.at[row];
    if (!checked_add(cells(q), cells(call->type), &both))
        both = INT64_MAX;
    return times(both, dim(k, (uint32_t)row));
}

/* Every weight once a step and sequence. */
int64_t macs_rnn(const Expr *call)
{
    const Type *x = operand(call, 0);
    int64_t     both;

    if (!checked_add(cells(operand(call, 1)), cells(operand(call, 2)), &both))
        both = INT64_MAX;
    return times(times(dim(x, 0), dim(x, 1)), both);
}

/* Its projection of x is a product of its own. */
int64_t macs_recurrent(const Expr *call)
{
    const Type *x = operand(call, 0);

    return times(times(dim(x, 0), dim(x, 1)), cells(operand(call, 1)));
}

/* What is read for each query, added for each key, and what is found for one where beta is. */
int64_t macs_linear_attention(const Expr *call)
{
    const LinearAttentionAttrs *a = ATTRS(LinearAttentionAttrs, call);
    int64_t                     j = dim(operand(call, 2), 3);
    int64_t keys = times(cells(operand(call, 1)), strstr(a->rule, "delta") ? 2 * j : j);

    return times(cells(operand(call, 0)), j) + keys;
}

static int64_t macs_of_call(const Expr *e)
{
    const Op *op = call_op(e);

    return op && op->macs ? op->macs(e) : 0;
}

static bool is_map(const Expr *e)
{
    return call_op(e) == &op_table.at[OP_MAP_BATCH];
}

/* How many parts of its operands a map_batch gives its function, one after the other. */
static int64_t parts_of_map(const Expr *e)
{
    const Expr *f = call_arg(e, 0);
    int64_t     part = f->kind == EXPR_FUNC && func_nparams(f) ? dim(func_param(f, 0)->type, 0) : 0;

    return part ? dim(operand(e, 1), 0) / part : 1;
}

/* Does its value depend on main's parameters? */
static bool varies(const Map *known, const Expr *e)
{
    if (e->kind == EXPR_VAR || e->kind == EXPR_MATCH || e->kind == EXPR_REF_READ)
        return true;
    for (uint32_t i = e->kind == EXPR_CALL && call_op(e); i < e->nkids; i++)
        if (map_get(known, PTR_KEY(e->kids[i])))
            return true;
    return false;
}

/* How often a run of main evaluates each node: functions of map_batch once for each part. */
static int64_t runs_of(const Map *runs, const Expr *e)
{
    void *n;

    return map_find(runs, PTR_KEY(e), &n) ? (int64_t)(uintptr_t)n : 1;
}

/* ---- loops: functions that call themselves at their end -------------------------------------------- */

static bool is_call_of(const Expr *e, OpId op)
{
    return call_op(e) == &op_table.at[op];
}

static bool number(const Expr *e, double *v)
{
    return e->kind == EXPR_CONST && expr_const_f(e, v);
}

/* Its position among the parameters, or n. */
static uint32_t param_at(const Expr *func, const Expr *e)
{
    uint32_t n = func_nparams(func), i = 0;

    while (i < n && func_param(func, i) != e)
        i++;
    return i;
}

/* The number behind that of `i`. */
static bool counts(const Expr *next, const Expr *i)
{
    double one;

    return is_call_of(next, OP_ADD) && call_arg(next, 0) == i && number(call_arg(next, 1), &one) &&
           one == 1;
}

/* Rounds of a loop that counts up by one to a number, as this call of it begins; else 1.
 *
 *     fn @f(%go, %i, ..) { if %go { @f(less(add(%i, 1), 5), add(%i, 1), ..) } else { .. } }  */
static int64_t rounds_of(const Expr *func, const Expr *call)
{
    const Expr *body = func_body(func), *again = body->kind == EXPR_IF ? body->kids[1] : NULL;
    uint32_t    n = func_nparams(func), go = again ? param_at(func, body->kids[0]) : n;
    double      go_first, first, end;

    if (go == n || again->kind != EXPR_CALL || again->kids[0]->kind != EXPR_GLOBAL ||
        strcmp(again->kids[0]->u.name, call->kids[0]->u.name) != 0 || again->nkids != n + 1 ||
        call->nkids != n + 1)
        return 1;
    const Expr *test = again->kids[1 + go];
    if (!is_call_of(test, OP_LESS) || !is_call_of(call_arg(test, 0), OP_ADD))
        return 1;
    const Expr *next = call_arg(test, 0), *limit = call_arg(test, 1);
    uint32_t    i = param_at(func, call_arg(next, 0)), passed = param_at(func, limit);
    if (i == n || !counts(again->kids[1 + i], func_param(func, i)) ||
        !counts(next, func_param(func, i)))
        return 1;
    if (passed < n)
        limit = again->kids[1 + passed] == limit ? call->kids[1 + passed] : limit;
    if (!number(call->kids[1 + go], &go_first) || go_first == 0 ||
        !number(call->kids[1 + i], &first) || !number(limit, &end) || end - first < 1 ||
        end - first > (double)INT32_MAX)
        return 1;
    return (int64_t)(end - first);
}

/* Of a call of a function of the module. */
static int64_t macs_of_global(const Module *m, const Expr *e, const Map *of)
{
    void *macs;

    if (e->kind != EXPR_CALL || e->kids[0]->kind != EXPR_GLOBAL)
        return 0;
    const Expr *f = module_func(m, e->kids[0]->u.name);
    return f && map_find(of, PTR_KEY(f), &macs) ? times((int64_t)(uintptr_t)macs, rounds_of(f, e))
                                                : 0;
}

/* ---- the whole --------------------------------------------------------------------------------------- */

/* Of a function's body; `of` has those of the functions that it calls. */
static int64_t macs_of_func(Ctx *c, const Module *m, const Expr *func, const Map *of)
{
    ExprList list = expr_post_order(c, func);
    Map     *vary = map_new(c->scratch), *runs = map_new(c->scratch);
    int64_t  total = 0;

    for (uint32_t i = 0; i < list.n; i++)
        if (varies(vary, list.at[i]))
            map_put(vary, PTR_KEY(list.at[i]), vary);
    for (uint32_t i = list.n; i-- > 0;) { /* parents before kids */
        const Expr *e = list.at[i];
        int64_t     n = runs_of(runs, e);

        for (uint32_t k = 0; k < e->nkids; k++) {
            int64_t kid = k == 1 && is_map(e) ? times(n, parts_of_map(e)) : n;

            if (kid > runs_of(runs, e->kids[k]))
                map_put(runs, PTR_KEY(e->kids[k]), (void *)(uintptr_t)kid);
        }
        if (map_get(vary, PTR_KEY(e)) &&
            !checked_add(total, times(call_op(e) ? macs_of_call(e) : macs_of_global(m, e, of), n),
                         &total))
            total = INT64_MAX;
    }
    return total;
}

int64_t relay_macs(Ctx *c, const Module *m)
{
    GlobalList reached = module_reached(c, m);
    Map       *of = map_new(c->scratch);
    int64_t    macs = 0;

    for (uint32_t i = 0; i < reached.n; i++) { /* main last */
        macs = macs_of_func(c, m, reached.at[i].func, of);
        map_put(of, PTR_KEY(reached.at[i].func), (void *)(uintptr_t)macs);
    }
    return macs;
}

WeightCount count_weights(Ctx *c, const Module *m)
{
    GlobalList  reached = module_reached(c, m);
    Map        *had = map_new(c->scratch);
    WeightCount w = {0};

    for (uint32_t k = 0; k < reached.n; k++) {
        ExprList list = expr_post_order(c, reached.at[k].func);

        for (uint32_t i = 0; i < list.n; i++) {
            const Expr  *e = list.at[i];
            const Const *value = e->kind == EXPR_CONST ? e->u.constant : NULL;
            int64_t      cells;

            if (!value || !e->type->n || map_get(had, PTR_KEY(value)) ||
                !type_elems(e->type, &cells))
                continue;
            map_put(had, PTR_KEY(value), (void *)(uintptr_t)value);
            w.n++;
            w.cells += cells;
            w.bytes += (int64_t)value->data.n;
        }
    }
    return w;
}

uint32_t *count_operators(Ctx *c, const Module *m)
{
    GlobalList reached = module_reached(c, m);
    uint32_t  *n = NEW_ARRAY(c->arena, uint32_t, c->ops.n + 1);

    for (uint32_t k = 0; k < reached.n; k++) {
        ExprList list = expr_post_order(c, reached.at[k].func);

        for (uint32_t i = 0; i < list.n; i++)
            if (call_op(list.at[i]))
                n[call_op(list.at[i])->id]++;
    }
    return n;
}
