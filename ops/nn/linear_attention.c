/* nn.linear_attention: attention by a state instead of all keys, which each step decays and adds
 * to.
 *
 *     %6 = nn.linear_attention(%q, %k, %v, %state, %decay, %beta, rule="gated_delta");
 *
 * Heads h of keys and values, each for a group g of queries; q [N, T, h, g, d], k [N, T, h, d],
 * v [N, T, h, j], state [N, h, d, j].  decay is [N, T, h, d] or [N, T, h, 1], beta [N, T, h] or
 * [N, T, 1]; the rules `linear` and `delta` have no decay, `linear` and `gated` no beta.  A step is
 *
 *     found[j] = sum[d] k[d] * decay[d] * state[d,j]            what the state holds for this key
 *     state[d,j] = decay[d] * state[d,j] + k[d] * beta * (v[j] - found[j])
 *     y[g,j] = sum[d] q[g,d] * state[d,j]
 *
 * without beta, k[d] * v[j] is added.  The result is (y, state). */
#include "ops/common.h"

#include <string.h>

typedef struct {
    bool decays, corrects;
} Rule;

static bool rule_of(Ctx *c, Loc loc, const char *name, Rule *out)
{
    static const struct {
        const char *name;
        Rule        rule;
    } rules[] = {{"linear", {false, false}},
                 {"gated", {true, false}},
                 {"delta", {false, true}},
                 {"gated_delta", {true, true}}};

    for (uint32_t i = 0; i < COUNT(rules); i++)
        if (!strcmp(name, rules[i].name)) {
            *out = rules[i].rule;
            return true;
        }
    return error_at(c, E_TYPE, loc, "rule '%s' is not linear, gated, delta or gated_delta", name);
}

/* Dimensions of an operand; one that is 1 of `ones` may stand for all. */
static bool has_dims(Ctx *c, Loc loc, const Type *t, uint32_t n, const Idx *const *dims,
                     bool last_may_be_one, const char *what)
{
    if (!rel_rank(c, loc, t, n, what))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!(last_may_be_one && i + 1 == n && t->dims[i] == idx_const(c->arith, 1)) &&
            !rel_dims_equal(c, loc, t->dims[i], dims[i], what))
            return false;
    return true;
}

const Type *rel_linear_attention(Ctx *c, Loc loc, const void *attrs, const Type *const *in,
                                 uint32_t nin)
{
    const LinearAttentionAttrs *a = attrs;
    int64_t                     d;
    Rule                        r;

    if (!rel_tensors(c, loc, in, nin) || !rule_of(c, loc, a->rule, &r))
        return NULL;
    if (nin != 4u + r.decays + r.corrects)
        return error_at(c, E_TYPE, loc, "rule '%s' has %u operands, not %u", a->rule,
                        4u + r.decays + r.corrects, nin);
    for (uint32_t i = 0; i < nin; i++)
        if (!dtype_is_float(in[i]->dtype) || !rel_same_dtype(c, loc, in[0], in[i]))
            return error_at(c, E_TYPE, loc, "the operands must be floats of one type");
    if (!rel_rank(c, loc, in[0], 5, "queries") || !rel_rank(c, loc, in[2], 4, "values") ||
        !rel_dim(c, loc, in[0], 4, &d))
        return NULL;
    const Idx *const *q = in[0]->dims, *j = in[2]->dims[3];

    if (!has_dims(c, loc, in[1], 4, (const Idx *[]){q[0], q[1], q[2], q[4]}, false, "keys") ||
        !has_dims(c, loc, in[2], 4, (const Idx *[]){q[0], q[1], q[2], j}, false, "values") ||
        !has_dims(c, loc, in[3], 4, (const Idx *[]){q[0], q[2], q[4], j}, false, "state") ||
        (r.decays &&
         !has_dims(c, loc, in[4], 4, (const Idx *[]){q[0], q[1], q[2], q[4]}, true, "decay")) ||
        (r.corrects && !has_dims(c, loc, in[nin - 1], 3, q, true, "beta")))
        return NULL;
    const Type *fields[2] = {
        type_tensor(c, in[0]->dtype, 5, (const Idx *[]){q[0], q[1], q[2], q[3], j}), in[3]};

    return type_tuple(c, 2, fields);
}

/* ---- compute -------------------------------------------------------------------------------------- */

typedef struct {
    Ctx          *c;
    Scan         *k;
    const Tensor *key, *decay, *state;
    const Idx    *d, *j; /* extents */
} Steps;

/* Cell (d, j) of the state before this step, `after` steps behind. */
static const Prim *state_at(const Steps *s, int64_t after, const Idx *d, const Idx *j)
{
    const Idx *at[5] = {s->k->outer.at[0], s->k->outer.at[1], idx_addc(s->c->arith, s->k->t, after),
                        d, j};

    return te_at(s->c, s->state, at);
}

/* The same, decayed. */
static const Prim *decayed(const Steps *s, const Idx *d, const Idx *j)
{
    const Idx *at[4] = {s->k->outer.at[0], s->k->t, s->k->outer.at[1], d};

    return s->decay ? prim_mul(s->c, te_at_bcast(s->c, s->decay, 4, at), state_at(s, 0, d, j))
                    : state_at(s, 0, d, j);
}

static const Prim *key_at(const Steps *s, const Idx *d)
{
    return te_at(s->c, s->key, (const Idx *[]){s->k->outer.at[0], s->k->t, s->k->outer.at[1], d});
}

static Axes columns(const Steps *s)
{
    return te_axes(s->c, 1, &s->j, (const char *[]){"j"});
}

static Axes cells(const Steps *s)
{
    return te_axes(s->c, 2, (const Idx *[]){s->d, s->j}, (const char *[]){"d", "j"});
}

/* A tensor of [N, h, T, j], defined at each step. */
static const Tensor *of_columns(const Steps *s, const char *name)
{
    const Idx *extent[4] = {s->k->outer.extent[0], s->k->outer.extent[1], s->k->rounds, s->j};

    return te_scan_tensor(s->c, s->k, name, s->key->buffer->dtype, 4, extent);
}

/* beta * (v[j] - found[j]), as a tensor */
static const Tensor *correction(const Steps *s, const Tensor *v, const Tensor *beta)
{
    Ctx          *c = s->c;
    const Tensor *found = of_columns(s, "found"), *change = of_columns(s, "change");
    Axes          own = columns(s), now = columns(s);
    int64_t       n;
    const Idx    *at[4] = {s->k->outer.at[0], s->k->outer.at[1], s->k->t, own.at[0]};
    const Idx    *to[4] = {at[0], at[1], at[2], now.at[0]};

    idx_is_const(s->d, &n);
    Axes d = te_raxes(c, 1, &n, (const char *[]){"d"});
    te_scan_reduce(c, s->k, SCAN_EACH, found, at, own, COMB_SUM, d,
                   prim_mul(c, key_at(s, d.at[0]), decayed(s, d.at[0], own.at[0])));
    const Prim *far = prim_sub(c, te_at(c, v, (const Idx *[]){at[0], at[2], at[1], now.at[0]}),
                               te_at(c, found, to));
    te_scan_def(c, s->k, SCAN_EACH, change, to, now,
                prim_mul(c, te_at_bcast(c, beta, 3, (const Idx *[]){at[0], at[2], at[1]}), far));
    return change;
}

static void begin_state(Steps *s, const Tensor *from)
{
    Ctx       *c = s->c;
    const Idx *extent[5] = {s->k->outer.extent[0], s->k->outer.extent[1],
                            idx_addc(c->arith, s->k->rounds, 1), s->d, s->j};
    Axes       own = cells(s);
    const Idx *in[4] = {s->k->outer.at[0], s->k->outer.at[1], own.at[0], own.at[1]};
    const Idx *at[5] = {in[0], in[1], idx_const(c->arith, 0), in[2], in[3]};

    s->state = te_scan_tensor(c, s->k, "state", from->buffer->dtype, 5, extent);
    te_scan_def(c, s->k, SCAN_START, s->state, at, own, te_at(c, from, in));
}

static void update_state(const Steps *s, const Tensor *v, const Tensor *change)
{
    Ctx        *c = s->c;
    Axes        own = cells(s);
    const Idx  *n = s->k->outer.at[0], *h = s->k->outer.at[1], *t = s->k->t;
    const Idx  *at[5] = {n, h, idx_addc(c->arith, t, 1), own.at[0], own.at[1]};
    const Prim *add = change ? te_at(c, change, (const Idx *[]){n, h, t, own.at[1]})
                             : te_at(c, v, (const Idx *[]){n, t, h, own.at[1]});

    te_scan_def(
        c, s->k, SCAN_EACH, s->state, at, own,
        prim_add(c, decayed(s, own.at[0], own.at[1]), prim_mul(c, key_at(s, own.at[0]), add)));
}

bool te_linear_attention(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const LinearAttentionAttrs *a = call->attrs;
    const Idx *const           *q = call->in[0]->dims;
    Steps                       s = {.c = c, .key = in[1], .d = q[4], .j = call->in[2]->dims[3]};
    const Tensor               *change = NULL;
    int64_t                     n = dim_of(call->in[0], 4);
    Rule                        r;

    if (!rule_of(c, call->loc, a->rule, &r))
        return false;
    s.decay = r.decays ? in[4] : NULL;
    s.k = te_scan(c, te_axes(c, 2, (const Idx *[]){q[0], q[2]}, (const char *[]){"n", "h"}), "t",
                  q[1]);
    begin_state(&s, in[3]);
    if (r.corrects)
        change = correction(&s, in[2], in[4 + r.decays]);
    update_state(&s, in[2], change);

    Axes       own = te_axes(c, 2, (const Idx *[]){q[3], s.j}, (const char *[]){"g", "j"});
    Axes       d = te_raxes(c, 1, &n, (const char *[]){"d"});
    const Idx *at[5] = {s.k->outer.at[0], s.k->t, s.k->outer.at[1], own.at[0], own.at[1]};
    const Idx *from[5] = {at[0], at[1], at[2], at[3], d.at[0]};
    out[0] = te_scan_tensor(c, s.k, "y", call->out[0]->dtype, 5, call->out[0]->dims);
    te_scan_reduce(c, s.k, SCAN_EACH, out[0], at, own, COMB_SUM, d,
                   prim_mul(c, te_at(c, in[0], from), state_at(&s, 1, d.at[0], own.at[1])));

    Axes       end = cells(&s);
    const Idx *to[4] = {at[0], at[2], end.at[0], end.at[1]};
    const Idx *last[5] = {at[0], at[2], s.k->rounds, end.at[0], end.at[1]};
    out[1] = te_scan_tensor(c, s.k, "last", call->out[1]->dtype, 4, call->out[1]->dims);
    te_scan_def(c, s.k, SCAN_END, out[1], to, end, te_at(c, s.state, last));
    return te_scan_done(c, s.k);
}
