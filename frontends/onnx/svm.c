/* Support vector machines of ai.onnx.ml.  A kernel compares each row with each support vector:
 *
 *     k[n, s] = x[n] . v[s],  (gamma k + coef0)^degree,  exp(-gamma |x - v|^2),  tanh(gamma k +
 * coef0)
 *
 * SVMRegressor adds them up by its coefficients.  SVMClassifier does so for each pair of classes,
 * over the vectors of both, and the class that wins most pairs is the label. */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

typedef struct {
    const char   *kernel;
    double        gamma, coef0, degree;
    const double *vectors, *weights, *rho;
    uint32_t      nvectors, nweights, nrho;
    const Expr   *x; /* [N, F] */
    int64_t       F;
} Machine;

static bool read_machine(Node *n, Machine *m)
{
    static const char *const kernels[] = {"LINEAR", "POLY", "RBF", "SIGMOID", NULL};
    const double            *p;
    uint32_t                 np;

    if (!(m->x = onnx_data_rows(n)) || !node_choice(n, "kernel_type", kernels, &m->kernel) ||
        !node_numbers(n, "support_vectors", &m->nvectors, &m->vectors) ||
        !node_numbers(n, "coefficients", &m->nweights, &m->weights) ||
        !node_numbers(n, "rho", &m->nrho, &m->rho) || !node_numbers(n, "kernel_params", &np, &p))
        return false;
    m->F = build_dim(&n->b, m->x, 1);
    if (np && np != 3)
        return node_error(n, E_IMPORT, "kernel_params has %u numbers, not 3", np);
    if (np)
        m->gamma = p[0], m->coef0 = p[1], m->degree = p[2];
    return m->F > 0 || node_error(n, E_IMPORT, "data without features");
}

/* The kernel of each row with `count` vectors, [N, count]. */
static const Expr *kernels_of(Node *n, const Machine *m, int64_t count)
{
    const Build *b = &n->b;
    const Expr  *vectors = onnx_floats(b, count, m->F, m->vectors), *s;
    int64_t      last = 2;

    if (*m->kernel == 'R') { /* as |x|^2 - 2 x v + |v|^2 it would cancel */
        s = build2(b, "subtract", build_expand_dims(b, m->x, 1, 1), vectors, NULL);
        s = build_reduce(b, "sum", build2(b, "multiply", s, s, NULL), 1, &last, false);
        return build1(b, "exp", s ? build_by(b, "multiply", s, -m->gamma) : NULL, NULL);
    }
    s = build2(b, "nn.dense", m->x, vectors, NULL);
    if (!s || *m->kernel == 'L')
        return s;
    s = build_by(b, "add", build_by(b, "multiply", s, m->gamma), m->coef0);
    if (*m->kernel == 'S')
        return build1(b, "tanh", s, NULL);
    return s ? build_by(b, "power", s, m->degree) : NULL;
}

bool convert_svm_regressor(Node *n)
{
    const Build *b = &n->b;
    const char  *after;
    int64_t      count = node_int(n, "n_supports", 0);
    Machine      m = {0};
    const Expr  *y;

    if (!read_machine(n, &m) || !node_choice(n, "post_transform", onnx_post_transforms, &after))
        return false;
    if (m.nrho != 1 ||
        (count > 0 ? m.nweights != count || m.nvectors % m.F || m.nvectors / m.F != count
                   : m.nweights != m.F))
        return node_error(n, E_IMPORT,
                          "%u coefficients, %u numbers of %lld support vectors, %u "
                          "rho",
                          m.nweights, m.nvectors, (long long)count, m.nrho);
    y = count > 0 ? kernels_of(n, &m, count) : m.x;
    y = build2(b, "nn.dense", y, onnx_floats(b, 1, m.nweights, m.weights), NULL);
    if (!(y = y ? build_by(b, "add", y, m.rho[0]) : NULL))
        return false;
    if (node_int(n, "one_class", 0))
        y = build_where(b, build_by(b, "greater", y, 0), build_scalar(b, y, 1),
                        build_scalar(b, y, -1));
    return node_done(n, onnx_post_transform(n, after, y));
}

/* ---- SVMClassifier ---------------------------------------------------------------------------------- */

#define MAX_CLASSES 128

/* Row i < j, in order, is the pair of classes i and j. */
typedef struct {
    int64_t classes, pairs, vectors;
} Pairs;

/* The scores of all pairs, [N, pairs], above 0 where the first of both wins. */
static const Expr *pair_scores(Node *n, const Machine *m, const Pairs *p, Ints per)
{
    const Build *b = &n->b;
    double      *w = NEW_ARRAY(b->c->arena, double, (size_t)(p->pairs * p->vectors) + 1);
    int64_t      from[MAX_CLASSES + 1] = {0}, row = 0;
    const Expr  *s;

    for (int64_t i = 0; i < p->classes; i++)
        from[i + 1] = from[i] + per.at[i];
    for (int64_t i = 0; i < p->classes; i++)
        for (int64_t j = i + 1; j < p->classes; j++, row++) {
            for (int64_t k = from[i]; k < from[i + 1]; k++)
                w[row * p->vectors + k] = m->weights[(j - 1) * p->vectors + k];
            for (int64_t k = from[j]; k < from[j + 1]; k++)
                w[row * p->vectors + k] = m->weights[i * p->vectors + k];
        }
    s = build2(b, "nn.dense", kernels_of(n, m, p->vectors), onnx_floats(b, p->pairs, p->vectors, w),
               NULL);
    return build2(b, "add", s, onnx_floats(b, p->pairs, 0, m->rho), NULL);
}

/* The class that wins most pairs, the first of those, [N]. */
static const Expr *most_votes(const Build *b, const Pairs *p, const Expr *s)
{
    ArgReduceAttrs *top = ATTRS(b, ArgReduceAttrs);
    double         *wins = NEW_ARRAY(b->c->arena, double, (size_t)(p->classes * p->pairs) + 1);
    double         *losses = NEW_ARRAY(b->c->arena, double, (size_t)(p->classes * p->pairs) + 1);
    int64_t         row = 0;
    const Expr     *won = build_by(b, "greater", s, 0), *votes;

    for (int64_t i = 0; i < p->classes; i++)
        for (int64_t j = i + 1; j < p->classes; j++, row++)
            wins[i * p->pairs + row] = losses[j * p->pairs + row] = 1;
    votes = build2(b, "nn.dense", build_cast(b, won, DT_F32),
                   onnx_floats(b, p->classes, p->pairs, wins), NULL);
    won = build_cast(b, build1(b, "logical_not", won, NULL), DT_F32);
    votes = build2(b, "add", votes,
                   build2(b, "nn.dense", won, onnx_floats(b, p->classes, p->pairs, losses), NULL),
                   NULL);
    top->axis = 1;
    top->dtype = DT_I64;
    return build1(b, "argmax", votes, top);
}

typedef struct {
    const Expr *Q; /* [N, K, K] */
    int64_t     K;
} Coupling;

/* A step towards the probabilities of all classes that fit those of the pairs: one class after the
 * other, unless they fit already. */
static bool couple(Node *n, void *user, const Expr *i, const Expr *const *state, const Expr **next,
                   const Expr **piece)
{
    const Build    *b = &n->b;
    const Coupling *c = user;
    const Expr     *p = state[0], *Qp, *pQp, *error, *done;
    int64_t         last = 1;

    (void)i, (void)piece;
    Qp = build2(b, "multiply", c->Q, build_expand_dims(b, p, 1, 1), NULL);
    Qp = build_reduce(b, "sum", Qp, 1, (int64_t[]){2}, false);
    pQp = build_reduce(b, "sum", build2(b, "multiply", p, Qp, NULL), 1, &last, true);
    error = build1(b, "abs", build2(b, "subtract", Qp, pQp, NULL), NULL);
    error = build_reduce(b, "max", error, 1, &last, true);
    done = error ? build_by(b, "less", error, 0.005 / (double)c->K) : NULL;
    for (int64_t t = 0; t < c->K && p && Qp; t++) {
        const Expr *row = build_reshape_to(b, build_slice(b, c->Q, 1, t, t + 1), 2,
                                           (const Idx *[]){expr_form(p, 0), expr_form(p, 1)});
        const Expr *own = build_slice(b, row, 1, t, t + 1), *at = build_slice(b, Qp, 1, t, t + 1);
        const Expr *diff = build2(b, "divide", build2(b, "subtract", pQp, at, NULL), own, NULL);
        const Expr *whole, *here;
        double     *unit = NEW_ARRAY(b->c->arena, double, (size_t)c->K);

        unit[t] = 1;
        here = onnx_floats(b, c->K, 0, unit);
        whole = diff ? build_by(b, "add", diff, 1) : NULL;
        at = at ? build_by(b, "multiply", at, 2) : NULL;
        at = build2(b, "add", build2(b, "multiply", diff, own, NULL), at, NULL);
        pQp = build2(b, "add", pQp, build2(b, "multiply", diff, at, NULL), NULL);
        pQp = build2(b, "divide", build2(b, "divide", pQp, whole, NULL), whole, NULL);
        Qp = build2(b, "add", Qp, build2(b, "multiply", diff, row, NULL), NULL);
        Qp = build2(b, "divide", Qp, whole, NULL);
        p = build2(b, "add", p, build2(b, "multiply", here, diff, NULL), NULL);
        p = build2(b, "divide", p, whole, NULL);
    }
    next[0] = done && p ? build_where(b, done, state[0], p) : NULL;
    return next[0] != NULL;
}

/* Probabilities of the classes, [N, K], from those of pairs by a sigmoid of each score (Wu, Lin and
 * Weng, Probability estimates for multi-class classification by pairwise coupling, 2004). */
static const Expr *probabilities(Node *n, const Pairs *p, const Expr *s, const double *A,
                                 const double *B)
{
    const Build *b = &n->b;
    int64_t      K = p->classes, row = 0, kk = K * K;
    int64_t     *at = NEW_ARRAY(b->c->arena, int64_t, (size_t)kk + 1);
    double      *eye = NEW_ARRAY(b->c->arena, double, (size_t)kk + 1);
    const Idx   *N = expr_form(s, 0), *k = idx_const(b->c->arith, K);
    const Expr  *r, *other, *zero, *rt, *Q, *start, *out[1];
    Coupling     c = {.K = K};
    int64_t      axis = 1;

    r = build2(b, "multiply", s, onnx_floats(b, p->pairs, 0, A), NULL);
    r = build2(b, "add", r, onnx_floats(b, p->pairs, 0, B), NULL);
    r = build1(b, "sigmoid", build1(b, "negative", r, NULL), NULL);
    r = r ? build_clip(b, r, 1e-7, 1 - 1e-7) : NULL;
    other = r ? build2(b, "subtract", build_scalar(b, r, 1), r, NULL) : NULL;
    if (!other)
        return NULL;
    for (int64_t i = 0; i < K; i++) {
        for (int64_t j = i + 1; j < K; j++, row++) {
            at[i * K + j] = row;
            at[j * K + i] = p->pairs + row;
        }
        at[i * K + i] = 2 * p->pairs; /* 0 */
        eye[i * K + i] = 1;
    }
    zero = build_zeros_of(b, DT_F32, 2, (const Idx *[]){N, idx_const(b->c->arith, 1)});
    r = build_concat(b, 3, (const Expr *[]){r, other, zero}, 1);
    r = build_take(b, r, build_i64s(b, (uint32_t)kk, at), 1);
    r = build_reshape_to(b, r, 3, (const Idx *[]){N, k, k});
    rt = build_transpose(b, r, 3, (int64_t[]){0, 2, 1});
    Q = build_reduce(b, "sum", build2(b, "multiply", r, r, NULL), 1, &axis, true);
    Q = build2(b, "multiply", Q, onnx_floats(b, K, K, eye), NULL);
    c.Q = build2(b, "subtract", Q, build2(b, "multiply", r, rt, NULL), NULL);
    start =
        build_broadcast_to(b, expr_scalar(b->c, DT_F32, 1 / (double)K), 2, (const Idx *[]){N, k});
    return c.Q && start &&
                   onnx_rounds(n, idx_const(b->c->arith, 100), 1, &start, 0, couple, &c, out)
               ? out[0]
               : NULL;
}

/* Two classes with one score: the other has the opposite one. */
static const Expr *both_scores(Node *n, const Expr *s, const char *after)
{
    if (strcmp(after, "NONE") && strcmp(after, "LOGISTIC"))
        return node_error(n, E_UNSUPPORTED, "post_transform '%s' of one score", after);
    s = build_concat(&n->b, 2, (const Expr *[]){build1(&n->b, "negative", s, NULL), s}, 1);
    return onnx_post_transform(n, after, s);
}

bool convert_svm_classifier(Node *n)
{
    const Build  *b = &n->b;
    const char   *after;
    const double *A, *B;
    uint32_t      na, nb;
    Machine       m = {0};
    Pairs         p = {0};
    Ints          per;
    const Expr   *labels, *s, *at;
    bool          fits;

    if (!read_machine(n, &m) || !node_choice(n, "post_transform", onnx_post_transforms, &after) ||
        !(labels = onnx_class_labels(n, "classlabels_ints", &p.classes)) ||
        !node_numbers(n, "prob_a", &na, &A) || !node_numbers(n, "prob_b", &nb, &B))
        return false;
    if (!node_ints(n, "vectors_per_class", &per) || per.n != p.classes || p.classes < 2 ||
        p.classes > MAX_CLASSES)
        return node_error(n, E_UNSUPPORTED, "%lld classes, of which %u have support vectors",
                          (long long)p.classes, per.n);
    p.pairs = p.classes * (p.classes - 1) / 2;
    for (uint32_t i = 0; i < per.n; i++) {
        if (per.at[i] < 0 || per.at[i] > 1 << 20)
            return node_error(n, E_IMPORT, "%lld support vectors of a class", (long long)per.at[i]);
        p.vectors += per.at[i];
    }
    fits = m.nvectors % m.F == 0 && m.nvectors / m.F == p.vectors &&
           m.nweights == (p.classes - 1) * p.vectors && m.nrho == p.pairs && na == nb &&
           (na == 0 || na == p.pairs);
    if (!fits || p.vectors < 1)
        return node_error(n, E_IMPORT,
                          "%u coefficients, %u numbers of %lld support vectors, %u rho, %u "
                          "prob_a, %u prob_b",
                          m.nweights, m.nvectors, (long long)p.vectors, m.nrho, na, nb);
    s = pair_scores(n, &m, &p, per);
    if (!s || !(at = most_votes(b, &p, s)))
        return false;
    if (na)
        s = onnx_post_transform(n, after, probabilities(n, &p, s, A, B));
    else
        s = p.classes == 2 ? both_scores(n, s, after) : onnx_post_transform(n, after, s);
    n->out[1] = s;
    return s && node_done(n, onnx_labelled(n, labels, at));
}
