/* Ensembles of decision trees (ai.onnx.ml): TreeEnsembleRegressor, TreeEnsembleClassifier, and
 * TreeEnsemble of version 5.
 *
 * All become a Forest: questions whose ways lead to other questions or, below 0, to leaf -1 - way.
 * For tree_ensemble each question is `x <= split`, in f32 or f64: x < s is x <= the number before
 * s, x = s are two questions, a set of values is a chain of them. */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NODES 10000000

typedef enum { LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, LEAF } Mode;

typedef struct {
    Mode    mode;
    int64_t feature;
    double  split;
    int64_t yes, no;
    bool    nan_yes;
} Question;

typedef struct {
    int64_t leaf, target;
    double  weight;
} Share;

typedef struct {
    VEC(Question) questions;
    VEC(int64_t) roots;
    VEC(Share) shares;
    int64_t leaves, targets;
    double *members; /* of questions MEMBER: their sets, NaN behind each */
    int64_t nmembers;
} Forest;

/* ---- as tables ------------------------------------------------------------------------------------ */

/* The number before v in the type of the data; of -inf there is none. */
static double before(DType t, double v)
{
    if (v == -INFINITY)
        return NAN;
    return dtype_eq(t, DT_F64) ? nextafter(v, -INFINITY) : nextafterf((float)v, -INFINITY);
}

/* A question as tree_ensemble has them. */
typedef struct {
    int64_t feature, way[3]; /* no, yes, of NaN */
    double  split;
} Step;

typedef VEC(Step) Steps;

static int64_t add_step(Ctx *c, Steps *s, int64_t feature, double split, int64_t no, int64_t yes,
                        int64_t of_nan)
{
    vec_push(c->arena, s, ((Step){feature, {no, yes, of_nan}, split}));
    return (int64_t)s->n - 1;
}

/* x = v: x <= v, but not x <= what is before v. */
static int64_t add_equal(Ctx *c, Steps *s, DType t, int64_t feature, double v, int64_t no,
                         int64_t yes, int64_t of_nan)
{
    int64_t above = add_step(c, s, feature, before(t, v), yes, no, of_nan);

    return add_step(c, s, feature, v, no, above, of_nan);
}

/* Question i in the place `at`, which its ways may lead to by then; further ones come behind. */
static void write_question(Ctx *c, Forest *f, DType t, const Question *q, int64_t at,
                           int64_t *member, Steps *s)
{
    int64_t of_nan = q->nan_yes || q->mode == NEQ ? q->yes : q->no, last = q->no;
    Step    step = {q->feature, {q->no, q->yes, of_nan}, q->split};

    switch (q->mode) {
    case LEQ: break;
    case LT: step.split = before(t, q->split); break;
    case GTE:
    case GT:
        step.split = q->mode == GTE ? before(t, q->split) : q->split;
        step.way[0] = q->yes;
        step.way[1] = q->no;
        break;
    case EQ:
        step.way[1] = add_step(c, s, q->feature, before(t, q->split), q->yes, q->no, of_nan);
        break;
    case NEQ:
        step.way[0] = q->yes;
        step.way[1] = add_step(c, s, q->feature, before(t, q->split), q->no, q->yes, of_nan);
        break;
    case MEMBER: /* backwards, each leading to the one behind it */
        step = (Step){q->feature, {q->no, q->no, of_nan}, 0};
        for (int64_t i = *member; i < f->nmembers && !isnan(f->members[i]); i++)
            *member = i + 1;
        for (int64_t i = *member; i-- > 0 && !isnan(f->members[i]);)
            last = add_equal(c, s, t, q->feature, f->members[i], last, q->yes, of_nan);
        *member += *member < f->nmembers;
        if (last != q->no)
            step = s->at[last];
        break;
    case LEAF: break;
    }
    s->at[at] = step;
}

/* Length of the longest way from each step, by which no way leads in a circle. */
static bool measure(Node *n, const Steps *s, const Forest *f, int64_t *depth)
{
    uint32_t *length = NEW_ARRAY(n->b.c->scratch, uint32_t, s->n + 1);
    uint8_t  *seen = NEW_ARRAY(n->b.c->scratch, uint8_t, s->n + 1);
    VEC(int64_t) open = {0};

    *depth = 0;
    for (uint32_t r = 0; r < f->roots.n; r++) {
        if (f->roots.at[r] < 0)
            continue;
        vec_push(n->b.c->scratch, &open, f->roots.at[r]);
        while (open.n) {
            int64_t i = open.at[open.n - 1];
            bool    ready = true;

            if (seen[i] == 2) {
                open.n--;
                continue;
            }
            seen[i] = 1;
            length[i] = 1;
            for (int k = 0; k < 3; k++) {
                int64_t to = s->at[i].way[k];

                if (to < 0)
                    continue;
                if (seen[to] == 1)
                    return node_error(n, E_IMPORT, "a tree leads in a circle");
                if (!seen[to]) {
                    vec_push(n->b.c->scratch, &open, to);
                    ready = false;
                    break;
                }
                length[i] = length[to] + 1 > length[i] ? length[to] + 1 : length[i];
            }
            if (ready) {
                seen[i] = 2;
                open.n--;
            }
        }
        if (length[f->roots.at[r]] > *depth)
            *depth = length[f->roots.at[r]];
    }
    return true;
}

static const Expr *table(const Build *b, DType t, int64_t rows, int64_t columns, const double *v)
{
    uint8_t *at =
        arena_array(b->c->arena, (size_t)(rows * (columns ? columns : 1)) + 1, dtype_bytes(t));

    for (int64_t i = 0; i < rows * (columns ? columns : 1); i++)
        if (dtype_is_float(t))
            dtype_put_f(t, at + i * dtype_bytes(t), v[i]);
        else
            dtype_put_i(t, at + i * dtype_bytes(t), (int64_t)v[i]);
    return build_const(b, t, columns ? 2 : 1, (int64_t[]){rows, columns}, at);
}

/* What leaves give: as many columns as the one with the most. */
static bool leaf_tables(Node *n, const Forest *f, DType t, bool extremes, const Expr **targets,
                        const Expr **weights)
{
    Ctx     *c = n->b.c;
    int64_t *count = NEW_ARRAY(c->scratch, int64_t, (size_t)f->leaves + 1), most = 1;
    double  *target, *weight;

    for (uint32_t i = 0; i < f->shares.n; i++) {
        int64_t k = ++count[f->shares.at[i].leaf];

        most = k > most ? k : most;
    }
    if (most * f->leaves > MAX_NODES)
        return node_error(n, E_UNSUPPORTED, "%lld leaves with up to %lld targets",
                          (long long)f->leaves, (long long)most);
    target = NEW_ARRAY(c->arena, double, (size_t)(most * f->leaves) + 1);
    weight = NEW_ARRAY(c->arena, double, (size_t)(most * f->leaves) + 1);
    memset(count, 0, (size_t)f->leaves * sizeof *count);
    for (uint32_t i = 0; i < f->shares.n; i++) {
        const Share *s = &f->shares.at[i];
        int64_t      at = s->leaf * most + count[s->leaf]++;

        target[at] = (double)s->target;
        weight[at] = s->weight;
    }
    for (int64_t l = 0; l < f->leaves && extremes; l++) {
        if (!count[l])
            return node_error(n, E_UNSUPPORTED, "MIN or MAX of a leaf without a weight");
        for (int64_t k = count[l]; k < most; k++) { /* the same again changes nothing */
            target[l * most + k] = target[l * most];
            weight[l * most + k] = weight[l * most];
        }
    }
    *targets = table(&n->b, DT_I32, f->leaves, most, target);
    *weights = table(&n->b, t, f->leaves, most, weight);
    return true;
}

/* [N, targets]: the sums of all trees, or what else `aggregate` names. */
static const Expr *grow(Node *n, Forest *f, const char *aggregate)
{
    Ctx               *c = n->b.c;
    const Build       *b = &n->b;
    TreeEnsembleAttrs *a = ATTRS(b, TreeEnsembleAttrs);
    const Expr        *x, *args[7], *y;
    Steps              s = {0};
    int64_t            member = 0, count = f->questions.n, columns = 2;
    double            *v[3], *roots;
    bool               extremes = *aggregate == 'm';
    DType              t;

    if (!node_need_rank(n, 0, 1, 2))
        return NULL;
    t = dtype_eq(expr_dtype(n->in[0]), DT_F64) ? DT_F64 : DT_F32;
    x = build_cast(b, n->in[0], t);
    if (expr_rank(x) == 1)
        x = build_expand_dims(b, x, 0, 1);
    if (!f->roots.n || !f->leaves || f->targets < 1 || f->targets > MAX_NODES)
        return node_error(n, E_IMPORT, "%u trees with %lld leaves for %lld targets", f->roots.n,
                          (long long)f->leaves, (long long)f->targets);
    for (int64_t i = 0; i < count; i++) {
        const Question *q = &f->questions.at[i];

        if (q->feature < 0 || q->feature >= expr_form(x, 1)->lo || q->yes >= count ||
            q->no >= count || q->yes < -f->leaves || q->no < -f->leaves)
            return node_error(n, E_IMPORT, "node %lld asks for feature %lld, of %s", (long long)i,
                              (long long)q->feature, dim_text(c, expr_form(x, 1)));
        add_step(c, &s, q->feature, q->split, 0, 0, 0);
    }
    for (int64_t i = 0; i < count; i++)
        write_question(c, f, t, &f->questions.at[i], i, &member, &s);
    if (!s.n) /* trees of one leaf each: a question that nobody asks */
        add_step(c, &s, 0, 0, -1, -1, -1);
    if (!measure(n, &s, f, &a->depth))
        return NULL;
    for (uint32_t i = 0; i < s.n; i++)
        columns = s.at[i].way[2] != s.at[i].way[0] ? 3 : columns;
    for (int k = 0; k < 3; k++)
        v[k] = NEW_ARRAY(c->arena, double, s.n * 3 + 1);
    for (uint32_t i = 0; i < s.n; i++) {
        v[0][i] = (double)s.at[i].feature;
        v[1][i] = s.at[i].split;
        for (int64_t k = 0; k < columns; k++)
            v[2][i * columns + k] = (double)s.at[i].way[k];
    }
    roots = NEW_ARRAY(c->arena, double, f->roots.n);
    for (uint32_t i = 0; i < f->roots.n; i++)
        roots[i] = (double)f->roots.at[i];
    args[0] = x;
    args[1] = table(b, DT_I32, s.n, 0, v[0]);
    args[2] = table(b, t, s.n, 0, v[1]);
    args[3] = table(b, DT_I32, s.n, columns, v[2]);
    args[4] = table(b, DT_I32, f->roots.n, 0, roots);
    if (!leaf_tables(n, f, t, extremes, &args[5], &args[6]))
        return NULL;
    a->targets = f->targets;
    a->aggregate = aggregate;
    y = build_call(b, "tree_ensemble", 7, args, a);
    /* A target that no tree names. */
    if (extremes && y)
        y = build_where(b, build1(b, "isinf", y, NULL), build_scalar(b, y, 0), y);
    return y;
}

/* ---- what is done with the scores ------------------------------------------------------------------- */

/* sqrt(2) * erf^-1(2 x - 1), by Winitzki's approximation, as engines have it. */
static const Expr *probit(const Build *b, const Expr *x)
{
    const Expr *u = build_by(b, "subtract", build_by(b, "multiply", x, 2), 1), *l, *v;

    if (!u)
        return NULL;
    l = build2(b, "multiply", build2(b, "subtract", build_scalar(b, u, 1), u, NULL),
               build_by(b, "add", u, 1), NULL);
    l = build1(b, "log", l, NULL);
    v = build_by(b, "add", build_by(b, "multiply", l, 0.5), 2 / (M_PI * 0.147));
    l = build2(b, "subtract", build2(b, "multiply", v, v, NULL),
               build_by(b, "multiply", l, 1 / 0.147), NULL);
    v = build1(b, "sqrt", build2(b, "subtract", build1(b, "sqrt", l, NULL), v, NULL), NULL);
    return build2(b, "multiply", build1(b, "sign", u, NULL), build_by(b, "multiply", v, 1.41421356),
                  NULL);
}

/* Softmax in which a score of 0 stays one. */
static const Expr *softmax_zero(const Build *b, const Expr *x)
{
    int64_t     last = 1;
    const Expr *top = build_reduce(b, "max", x, 1, &last, true), *zero, *e, *s;

    if (!top)
        return NULL;
    zero = build2(b, "less_equal", build1(b, "abs", x, NULL), build_scalar(b, x, 1e-7), NULL);
    e = build1(b, "exp", build2(b, "subtract", x, top, NULL), NULL);
    s = build2(b, "multiply", x, build1(b, "exp", build1(b, "negative", top, NULL), NULL), NULL);
    e = build_where(b, zero, s, e);
    s = build_reduce(b, "sum", e, 1, &last, true);
    if (!e || !s)
        return NULL;
    return build_where(b, build_by(b, "equal", s, 0), build_scalar(b, e, 0.5),
                       build2(b, "divide", e, s, NULL));
}

const Expr *onnx_post_transform(Node *n, const char *how, const Expr *x)
{
    const Build  *b = &n->b;
    SoftmaxAttrs *a = ATTRS(b, SoftmaxAttrs);

    if (!x || !strcmp(how, "NONE"))
        return x;
    a->axis = 1;
    if (!strcmp(how, "SOFTMAX"))
        return build1(b, "nn.softmax", x, a);
    if (!strcmp(how, "SOFTMAX_ZERO"))
        return softmax_zero(b, x);
    return !strcmp(how, "LOGISTIC") ? build1(b, "sigmoid", x, NULL) : probit(b, x);
}

const char *const onnx_post_transforms[] = {"NONE",         "SOFTMAX", "LOGISTIC",
                                            "SOFTMAX_ZERO", "PROBIT",  NULL};

/* ---- attributes of the first versions: nodes by the numbers of tree and node ------------------------- */

typedef struct {
    int64_t tree, node, at;
} Key;

static int by_key(const void *a, const void *b)
{
    const Key *x = a, *y = b;

    if (x->tree != y->tree)
        return x->tree < y->tree ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* The position of a node in the lists; -1: there is none. */
static int64_t find_node(const Key *keys, uint32_t count, int64_t tree, int64_t node)
{
    Key        key = {tree, node, 0};
    const Key *k = bsearch(&key, keys, count, sizeof *keys, by_key);

    return k ? k->at : -1;
}

static bool mode_of(Node *n, const Bytes *s, Mode *out)
{
    static const char *const names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                        "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};

    for (uint32_t i = 0; i < COUNT(names); i++)
        if (i != MEMBER && s->n == strlen(names[i]) && !memcmp(s->at, names[i], s->n)) {
            *out = (Mode)i;
            return true;
        }
    return node_error(n, E_IMPORT, "there is no mode '%.*s'", (int)s->n,
                      s->n ? (const char *)s->at : "");
}

/* The lists of nodes: `count` of each, in positions of which leaves have none of the questions. */
typedef struct {
    Ints           tree, node, feature, yes, no, missing;
    const double  *split;
    const PbBlobs *mode;
    uint32_t       count;
    Key           *keys;
    int64_t       *place; /* of a node: its question, or -1 - its leaf */
} Listed;

static bool read_lists(Node *n, Listed *l)
{
    const OnnxAttr *modes = node_attr(n, "nodes_modes");
    Ints           *lists[] = {&l->node, &l->feature, &l->yes, &l->no};
    const char     *names[] = {"nodes_nodeids", "nodes_featureids", "nodes_truenodeids",
                               "nodes_falsenodeids"};
    uint32_t        splits = 0;

    if (!node_ints(n, "nodes_treeids", &l->tree) || !modes)
        return node_error(n, E_IMPORT, "nodes_treeids or nodes_modes is missing");
    l->count = l->tree.n;
    l->mode = &modes->strings;
    for (uint32_t i = 0; i < COUNT(lists); i++)
        if (!node_ints(n, names[i], lists[i]) || lists[i]->n != l->count)
            return node_error(n, E_IMPORT, "%s is missing or not of %u numbers", names[i],
                              l->count);
    if (!node_numbers(n, "nodes_values", &splits, &l->split))
        return false;
    if (!node_ints(n, "nodes_missing_value_tracks_true", &l->missing))
        l->missing.n = 0;
    if (l->mode->n != l->count || splits != l->count || l->count > MAX_NODES ||
        (l->missing.n && l->missing.n != l->count))
        return node_error(n, E_IMPORT, "lists of nodes are not of %u each", l->count);
    node_ignore(n, "nodes_hitrates");
    node_ignore(n, "nodes_hitrates_as_tensor");
    l->keys = NEW_ARRAY(n->b.c->arena, Key, l->count + 1);
    l->place = NEW_ARRAY(n->b.c->arena, int64_t, l->count + 1);
    for (uint32_t i = 0; i < l->count; i++)
        l->keys[i] = (Key){l->tree.at[i], l->node.at[i], i};
    qsort(l->keys, l->count, sizeof *l->keys, by_key);
    for (uint32_t i = 1; i < l->count; i++)
        if (!by_key(&l->keys[i - 1], &l->keys[i]))
            return node_error(n, E_IMPORT, "node %lld of tree %lld is there twice",
                              (long long)l->keys[i].node, (long long)l->keys[i].tree);
    return true;
}

/* A tree begins at its only node that no other leads to. */
static bool listed_forest(Node *n, Listed *l, Forest *f)
{
    Ctx     *c = n->b.c;
    bool    *led = NEW_ARRAY(c->scratch, bool, l->count + 1);
    uint32_t questions = 0, roots = 0;

    for (uint32_t i = 0; i < l->count; i++) {
        Mode m;

        if (!mode_of(n, &l->mode->at[i], &m))
            return false;
        l->place[i] = m == LEAF ? -1 - f->leaves++ : (int64_t)questions++;
    }
    for (uint32_t i = 0; i < l->count; i++) {
        Question q = {.feature = l->feature.at[i], .split = l->split[i]};
        int64_t  way[2] = {l->no.at[i], l->yes.at[i]};

        mode_of(n, &l->mode->at[i], &q.mode);
        if (q.mode == LEAF)
            continue;
        for (int k = 0; k < 2; k++) {
            int64_t to = find_node(l->keys, l->count, l->tree.at[i], way[k]);

            if (to < 0)
                return node_error(n, E_IMPORT, "tree %lld has no node %lld",
                                  (long long)l->tree.at[i], (long long)way[k]);
            led[to] = true;
            way[k] = l->place[to];
        }
        q.no = way[0];
        q.yes = way[1];
        q.nan_yes = l->missing.n && l->missing.at[i];
        vec_push(c->arena, &f->questions, q);
    }
    for (uint32_t i = 0; i < l->count; i++) {
        const Key *k = &l->keys[i];

        roots += i == 0 || k->tree != k[-1].tree;
        if (!led[k->at])
            vec_push(c->arena, &f->roots, l->place[k->at]);
    }
    return f->roots.n == roots ||
           node_error(n, E_IMPORT, "%u trees have %u roots", roots, f->roots.n);
}

/* Weights of leaves, from attributes named `prefix`_ids and so on. */
static bool listed_shares(Node *n, const Listed *l, const char *prefix, Forest *f)
{
    Ctx          *c = n->b.c;
    Ints          v[3];
    const char   *names[] = {"treeids", "nodeids", "ids"};
    const double *weight;
    uint32_t      count = 0;

    for (uint32_t i = 0; i < 3; i++)
        if (!node_ints(n, arena_printf(c->arena, "%s_%s", prefix, names[i]), &v[i]) ||
            v[i].n != v[0].n)
            return node_error(n, E_IMPORT, "%s_%s is missing or not of %u numbers", prefix,
                              names[i], v[0].n);
    if (!node_numbers(n, arena_printf(c->arena, "%s_weights", prefix), &count, &weight))
        return false;
    if (count != v[0].n)
        return node_error(n, E_IMPORT, "%u weights for %u leaves", count, v[0].n);
    for (uint32_t i = 0; i < count; i++) {
        int64_t at = find_node(l->keys, l->count, v[0].at[i], v[1].at[i]);

        if (at < 0 || l->place[at] >= 0)
            return node_error(n, E_IMPORT, "node %lld of tree %lld is no leaf",
                              (long long)v[1].at[i], (long long)v[0].at[i]);
        if (v[2].at[i] < 0 || v[2].at[i] >= f->targets)
            return node_error(n, E_IMPORT, "target %lld of %lld", (long long)v[2].at[i],
                              (long long)f->targets);
        vec_push(c->arena, &f->shares, ((Share){-1 - l->place[at], v[2].at[i], weight[i]}));
    }
    return true;
}

/* ... plus base_values, of which there may be none. */
static const Expr *with_base(Node *n, const Expr *y, int64_t targets)
{
    const double *v;
    uint32_t      count = 0;

    if (!y || !node_numbers(n, "base_values", &count, &v))
        return NULL;
    if (count == 0)
        return y;
    if (count != targets)
        return node_error(n, E_UNSUPPORTED, "%u base_values for %lld targets", count,
                          (long long)targets);
    return build2(&n->b, "add", y, table(&n->b, expr_dtype(y), targets, 0, v), NULL);
}

bool convert_tree_regressor(Node *n)
{
    static const char *const aggregates[] = {"SUM", "AVERAGE", "MIN", "MAX", NULL};
    static const char *const ours[] = {"sum", "average", "min", "max"};
    const char              *how, *after;
    Forest                   f = {.targets = node_int(n, "n_targets", 1)};
    Listed                   l;
    uint32_t                 k = 0;
    const Expr              *y;

    if (!node_choice(n, "aggregate_function", aggregates, &how) ||
        !node_choice(n, "post_transform", onnx_post_transforms, &after) || !read_lists(n, &l) ||
        !listed_forest(n, &l, &f) || !listed_shares(n, &l, "target", &f))
        return false;
    while (strcmp(aggregates[k], how))
        k++;
    y = with_base(n, grow(n, &f, ours[k]), f.targets);
    y = onnx_post_transform(n, after, y);
    return y && node_done(n, build_cast(&n->b, y, DT_F32));
}

/* Two classes of which leaves name one only: its score says which, above 0.5 where all weights are
 * probabilities, above 0 otherwise; the other's is its complement. */
static bool one_of_two(Node *n, const Expr *s, bool positive, const char *after, const Expr **label,
                       const Expr **scores)
{
    const Build *b = &n->b;
    const Expr  *other;

    *label = build_by(b, "greater", s, positive ? 0.5 : 0);
    if (positive)
        other = build2(b, "subtract", build_scalar(b, s, 1), s, NULL);
    else
        other = build1(b, "negative", s, NULL);
    *scores = build_concat(b, 2, (const Expr *[]){other, s}, 1);
    if (!positive && !strcmp(after, "LOGISTIC"))
        *scores = build1(b, "sigmoid", *scores, NULL);
    else if (!strcmp(after, "PROBIT"))
        return node_error(n, E_UNSUPPORTED, "PROBIT of one score for two classes");
    *label =
        *label ? build_cast(b, build_reshape_to(b, *label, 1, expr_forms(s).at), DT_I32) : NULL;
    return *label && *scores;
}

bool convert_tree_classifier(Node *n)
{
    const Build    *b = &n->b;
    ArgReduceAttrs *top = ATTRS(b, ArgReduceAttrs);
    const char     *after;
    Forest          f = {0};
    Listed          l;
    const Expr     *y, *labels, *label, *scores;
    bool            positive = true, single = true;

    if (!(labels = onnx_class_labels(n, "classlabels_int64s", &f.targets)) ||
        !node_choice(n, "post_transform", onnx_post_transforms, &after) || !read_lists(n, &l) ||
        !listed_forest(n, &l, &f) || !listed_shares(n, &l, "class", &f))
        return false;
    for (uint32_t i = 0; i < f.shares.n; i++) {
        positive &= f.shares.at[i].weight >= 0;
        single &= f.shares.at[i].target == f.shares.at[0].target;
    }
    single &= f.targets == 2 && f.shares.n;
    for (uint32_t i = 0; i < f.shares.n && single; i++)
        f.shares.at[i].target = 0;
    f.targets = single ? 1 : f.targets;
    if (!(y = with_base(n, grow(n, &f, "sum"), f.targets)))
        return false;
    if (single) {
        if (!one_of_two(n, y, positive, after, &label, &scores))
            return false;
    } else {
        top->axis = 1;
        label = build1(b, "argmax", y, top);
        scores = onnx_post_transform(n, after, y);
    }
    n->out[1] = scores ? build_cast(b, scores, DT_F32) : NULL;
    return label && n->out[1] && node_done(n, onnx_labelled(n, labels, label));
}

/* ---- TreeEnsemble of version 5 ---------------------------------------------------------------------- */

bool convert_tree_ensemble(Node *n)
{
    static const char *const aggregates[] = {"average", "sum", "min", "max"};
    Ctx                     *c = n->b.c;
    Forest                   f = {.targets = node_int(n, "n_targets", 1)};
    Ints                     v[7], missing = {0}, roots;
    const char   *names[] = {"nodes_featureids", "nodes_trueleafs",    "nodes_truenodeids",
                             "nodes_falseleafs", "nodes_falsenodeids", "leaf_targetids",
                             "tree_roots"};
    const double *split, *weight, *mode, *members;
    uint32_t      count[4] = {0};
    int64_t how = node_int(n, "aggregate_function", 1), after = node_int(n, "post_transform", 0);
    const Expr *y;

    for (uint32_t i = 0; i < COUNT(names); i++)
        if (!node_ints(n, names[i], &v[i]))
            return node_error(n, E_IMPORT, "%s is missing", names[i]);
    if (how < 0 || how > 3 || after < 0 || after > 4)
        return node_error(n, E_IMPORT, "aggregate_function %lld, post_transform %lld",
                          (long long)how, (long long)after);
    if (!node_numbers(n, "nodes_splits", &count[0], &split) ||
        !node_numbers(n, "nodes_modes", &count[1], &mode) ||
        !node_numbers(n, "leaf_weights", &count[2], &weight) ||
        !node_numbers(n, "membership_values", &count[3], &members))
        return false;
    node_ignore(n, "nodes_hitrates");
    node_ints(n, "nodes_missing_value_tracks_true", &missing);
    f.members = (double *)(uintptr_t)members;
    f.nmembers = count[3];
    f.leaves = v[5].n;
    roots = v[6];
    for (uint32_t i = 0; i < 5; i++)
        if (v[i].n != v[0].n || count[0] != v[0].n || count[1] != v[0].n || v[0].n > MAX_NODES ||
            (missing.n && missing.n != v[0].n) || count[2] != v[5].n)
            return node_error(n, E_IMPORT, "lists of nodes or leaves are not of one length");
    for (uint32_t i = 0; i < v[0].n; i++) {
        Question q = {(Mode)mode[i], v[0].at[i], split[i],
                      v[2].at[i],    v[4].at[i], missing.n && missing.at[i]};

        if (!(mode[i] >= LEQ && mode[i] <= MEMBER))
            return node_error(n, E_IMPORT, "there is no mode %g", mode[i]);
        if (q.yes < 0 || q.no < 0 || q.yes > MAX_NODES || q.no > MAX_NODES)
            return node_error(n, E_IMPORT, "node %u leads to %lld or %lld", i, (long long)q.yes,
                              (long long)q.no);
        q.yes = v[1].at[i] ? -1 - q.yes : q.yes;
        q.no = v[3].at[i] ? -1 - q.no : q.no;
        vec_push(c->arena, &f.questions, q);
    }
    for (uint32_t i = 0; i < roots.n; i++) {
        if (roots.at[i] < 0 || roots.at[i] >= v[0].n)
            return node_error(n, E_IMPORT, "a tree begins at node %lld", (long long)roots.at[i]);
        vec_push(c->arena, &f.roots, roots.at[i]);
    }
    for (uint32_t i = 0; i < v[5].n; i++) {
        if (v[5].at[i] < 0 || v[5].at[i] >= f.targets)
            return node_error(n, E_IMPORT, "target %lld of %lld", (long long)v[5].at[i],
                              (long long)f.targets);
        vec_push(c->arena, &f.shares, ((Share){i, v[5].at[i], weight[i]}));
    }
    y = grow(n, &f, aggregates[how]);
    return node_done(n, onnx_post_transform(n, onnx_post_transforms[after], y));
}
