/* Lists of tensors, which TensorFlow's converter writes as tensors [N, ..].  To replace item i is
 *
 *     CONCATENATION(SLICE(x, [0, 0..], [i, -1..]), item [1, ..], SLICE(x, [i+1, 0..], [-1, -1..]))
 *
 * of parts whose sizes a run decides, and which together are as long as the list.  Before anything
 * is built, the concatenation becomes an operator of (x, item, i), and slices that nothing else
 * reads are left out. */
#include "frontends/tflite/tflite.h"

#include <string.h>

enum { NOBODY = -1 };

typedef struct {
    TfliteImport *im;
    TfliteGraph  *g;
    int64_t      *maker; /* of each tensor: the operator's number */
    uint32_t     *reads; /* .. how many inputs and outputs of the graph it is */
} Lists;

static bool is_made_by(const Lists *l, const TfliteOperator *p, TfliteConvert *convert)
{
    const TfliteRow *row = tflite_row(tflite_opcode(l->im->model, p));

    return row && row->convert == convert;
}

/* NULL: another operator makes it, or none. */
static TfliteOperator *maker_of(const Lists *l, int64_t tensor, TfliteConvert *convert)
{
    TfliteOperator *p;

    if (tensor < 0 || l->maker[tensor] == NOBODY)
        return NULL;
    p = l->g->operators.at[l->maker[tensor]];
    return is_made_by(l, p, convert) ? p : NULL;
}

/* Are all its numbers this one? */
static bool is_all(const Lists *l, int64_t tensor, int64_t v)
{
    const TfliteTensor *t;
    const Expr         *e;
    DType               type;
    Ints                k;

    if (tensor < 0)
        return false;
    t = tflite_tensor(l->g, tensor);
    if (!tflite_is_constant(l->im->model, t) || !tflite_dtype(t->type, &type) ||
        !dtype_is_int(type))
        return false;
    e = tflite_constant(l->im, t, (Loc){.file = l->im->path});
    if (!e || !expr_ints(l->im->c, e, &k) || k.n == 0)
        return false;
    for (uint32_t i = 0; i < k.n; i++)
        if (k.at[i] != v)
            return false;
    return true;
}

static int64_t unshaped(const Lists *l, int64_t tensor)
{
    const TfliteOperator *p;

    for (uint32_t i = 0; i < 4 && (p = maker_of(l, tensor, tflite_reshape)) && p->in.n; i++)
        tensor = tflite_in_index(p, 0);
    return tensor;
}

/* The number k of [k, rest ..]; NOBODY: it is no such vector. */
static int64_t first_of(const Lists *l, int64_t vector, int64_t rest)
{
    const TfliteOperator *p = maker_of(l, vector, tflite_concat);

    if (!p)
        return unshaped(l, vector);
    for (uint32_t i = 1; i < p->in.n; i++)
        if (!is_all(l, tflite_in_index(p, i), rest))
            return NOBODY;
    return p->in.n ? unshaped(l, tflite_in_index(p, 0)) : NOBODY;
}

static bool is_next(const Lists *l, int64_t next, int64_t at)
{
    const TfliteOperator *p = maker_of(l, next, tflite_arithmetic);

    return p && p->in.n == 2 && !strcmp(tflite_row(tflite_opcode(l->im->model, p))->relay, "add") &&
           ((unshaped(l, tflite_in_index(p, 0)) == at && is_all(l, tflite_in_index(p, 1), 1)) ||
            (unshaped(l, tflite_in_index(p, 1)) == at && is_all(l, tflite_in_index(p, 0), 1)));
}

static void read_less(const Lists *l, TfliteOperator *slice)
{
    if (--l->reads[tflite_out_index(slice, 0)] == 0)
        slice->left_out = true;
}

static void put(uint8_t *to, int64_t v)
{
    for (uint32_t i = 0; i < 4; i++)
        to[i] = (uint8_t)(v >> 8 * i);
}

static void see(const Lists *l, TfliteOperator *p)
{
    TfliteOperator *before, *behind;
    int64_t         x, at, next;
    uint8_t        *in;

    if (!is_made_by(l, p, tflite_concat) || p->in.n != 3 ||
        !(before = maker_of(l, tflite_in_index(p, 0), tflite_slice)) || before->in.n != 3 ||
        !(behind = maker_of(l, tflite_in_index(p, 2), tflite_slice)) || behind->in.n != 3)
        return;
    x = tflite_in_index(before, 0);
    at = first_of(l, tflite_in_index(before, 2), -1);
    next = first_of(l, tflite_in_index(behind, 1), 0);
    if (x < 0 || x != tflite_in_index(behind, 0) || !is_all(l, tflite_in_index(before, 1), 0) ||
        !is_all(l, tflite_in_index(behind, 2), -1) || at < 0 || next < 0 || !is_next(l, next, at))
        return;
    in = NEW_ARRAY(l->im->c->arena, uint8_t, 12);
    put(in, x);
    put(in + 4, tflite_in_index(p, 1));
    put(in + 8, at);
    read_less(l, before);
    read_less(l, behind);
    p->in = (FbVector){3, in};
    p->sets_item = true;
}

void tflite_find_lists(TfliteImport *im, TfliteGraph *g)
{
    Arena *a = im->c->arena;
    Lists  l = {im, g, NEW_ARRAY(a, int64_t, g->tensors.n + 1),
                NEW_ARRAY(a, uint32_t, g->tensors.n + 1)};

    for (uint32_t i = 0; i < g->tensors.n; i++)
        l.maker[i] = NOBODY;
    for (uint32_t i = 0; i < g->operators.n; i++) {
        const TfliteOperator *p = g->operators.at[i];

        for (uint32_t k = 0; k < p->out.n; k++)
            l.maker[tflite_out_index(p, k)] = i;
        for (uint32_t k = 0; k < p->in.n; k++)
            if (tflite_in_index(p, k) >= 0)
                l.reads[tflite_in_index(p, k)]++;
    }
    for (uint32_t i = 0; i < g->out.n; i++)
        l.reads[fb_int_at(g->out, FB_I32, i)]++;
    for (uint32_t i = 0; i < g->operators.n; i++)
        see(&l, g->operators.at[i]);
}

static bool set_item(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *item = n->in[1], *at = n->in[2];
    uint32_t     rank = expr_rank(x);

    if (rank == 0 || expr_rank(item) != rank || !expr_single(at) ||
        !expr_has_forms(build_slice(b, x, 0, 0, 1), rank, expr_forms(item).at))
        return tflite_error(n, E_IMPORT, "item %s of %s", type_text(b->c, item->type),
                            type_text(b->c, x->type));
    item = build_reshape_to(b, item, rank - 1, expr_forms(item).at + 1);
    at = build_cast(b, build_reshape(b, at, 0, NULL), DT_I64);
    return tflite_done(n, build3(b, "update_slice", x, item, at, NULL));
}

const TfliteRow tflite_item_row = {.code = 2,
                                   .name = "CONCATENATION",
                                   .least = 3,
                                   .most = 3,
                                   .how = TFLITE_RESHAPE,
                                   .relay = "update_slice",
                                   .convert = set_item};
