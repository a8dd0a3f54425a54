/* Boxes of which the best are kept. */
#include "frontends/tflite/tflite.h"

#include <math.h>
#include <string.h>

static const Expr *number(TfliteNode *n, uint32_t i)
{
    return expr_single(n->in[i])
               ? build_reshape(&n->b, n->in[i], 0, NULL)
               : tflite_error(n, E_IMPORT, "input %u is %s", i, type_text(n->b.c, n->in[i]->type));
}

/* Boxes, scores, how many at most, overlap, least score; of version 5 how much scores fade, which
 * is only known as 0. */
bool tflite_non_max_suppression(TfliteNode *n)
{
    const Build *b = &n->b;
    bool         fades = !strcmp(n->row->name, "NON_MAX_SUPPRESSION_V5");
    const Expr  *overlap, *least, *at, *there, *count;
    int64_t      axis = 0;
    double       sigma = 0;
    Dims         most;

    if (!tflite_rank(n, 0, 2, 2) || !tflite_rank(n, 1, 1, 1) || !tflite_forms(n, 2, &most) ||
        !(overlap = number(n, 3)) || !(least = number(n, 4)))
        return false;
    if (fades && (!expr_const_f(n->in[5], &sigma) || sigma != 0))
        return tflite_error(n, E_UNSUPPORTED, "scores that fade");
    if (most.n != 1 || most.at[0]->hi < 1 || idx_usual(most.at[0]) > INT32_MAX)
        return tflite_error(n, E_IMPORT, "the best %s",
                            most.n == 1 ? dim_text(b->c, most.at[0]) : "of no number");
    at = build_best_padded(b, &n->im->shapes, n->in[0], n->in[1], most.at[0], overlap, least);
    there = at ? build2(b, "greater_equal", at, build_scalar(b, at, 0), NULL) : NULL;
    count = there ? build_reduce(b, "sum", build_cast(b, there, DT_I32), 1, &axis, false) : NULL;
    if (!count)
        return false;
    n->out[0] = build_cast(b, build_by(b, "maximum", at, 0), DT_I32);
    if (n->nout > 1)
        n->out[1] = fades ? build_picked(b, n->in[1], at, there) : count;
    if (n->nout > 2 && fades)
        n->out[2] = count;
    return n->out[0] != NULL;
}

/* ---- TFLite_Detection_PostProcess ----------------------------------------------------------------- */

/* Its options are a map of FlexBuffers: the root is the last bytes, value type, width. */
typedef struct {
    Bytes    b;
    size_t   at, keys;
    uint32_t n, width, keys_width;
} FlexMap;

static uint64_t flex_uint(Bytes b, size_t at, uint32_t width)
{
    uint64_t v = 0;

    for (uint32_t i = width; at + width <= b.n && i-- > 0;)
        v = v << 8 | b.at[at + i];
    return v;
}

/* What the number at `at` refers to, which lies before it. */
static bool flex_before(Bytes b, size_t at, uint32_t width, size_t *to)
{
    uint64_t by = flex_uint(b, at, width);

    if (at + width > b.n || by > at)
        return false;
    *to = at - (size_t)by;
    return true;
}

static bool flex_root(Bytes b, FlexMap *m)
{
    uint32_t width;

    if (b.n < 3)
        return false;
    width = b.at[b.n - 1];
    *m = (FlexMap){.b = b, .width = 1u << (b.at[b.n - 2] & 3)};
    if (b.at[b.n - 2] >> 2 != 9 || (width != 1 && width != 2 && width != 4 && width != 8) ||
        b.n < 2 + (size_t)width || !flex_before(b, b.n - 2 - width, width, &m->at) ||
        m->at < 3 * (size_t)m->width ||
        !flex_before(b, m->at - 3 * (size_t)m->width, m->width, &m->keys))
        return false;
    m->n = (uint32_t)flex_uint(b, m->at - m->width, m->width);
    m->keys_width = (uint32_t)flex_uint(b, m->at - 2 * (size_t)m->width, m->width);
    return (m->keys_width == 1 || m->keys_width == 2 || m->keys_width == 4 || m->keys_width == 8) &&
           m->n < 1024 && m->at + (size_t)m->n * (m->width + 1) <= b.n;
}

/* A number or bool of the map; `fallback`: it has none of that name. */
static double flex_number(const FlexMap *m, const char *name, double fallback)
{
    for (uint32_t i = 0; i < m->n; i++) {
        size_t   key, at = m->at + (size_t)i * m->width;
        uint8_t  type = m->b.at[m->at + (size_t)m->n * m->width + i] >> 2;
        uint64_t bits = flex_uint(m->b, at, m->width);
        uint32_t four = (uint32_t)bits, shift = 64 - 8 * m->width;
        float    f;
        double   d;

        if (!flex_before(m->b, m->keys + (size_t)i * m->keys_width, m->keys_width, &key) ||
            strlen(name) >= m->b.n - key || strcmp((const char *)m->b.at + key, name) != 0)
            continue;
        switch (type) {
        case 1: return (double)((int64_t)(bits << shift) >> shift);
        case 2:
        case 26: return (double)bits;
        case 3:
            memcpy(&f, &four, sizeof f);
            memcpy(&d, &bits, sizeof d);
            return m->width == 8 ? d : m->width == 4 ? (double)f : fallback;
        default: return fallback;
        }
    }
    return fallback;
}

/* ... as a whole number; -1: it is none of ours. */
static int64_t flex_int(const FlexMap *m, const char *name, double fallback)
{
    double v = flex_number(m, name, fallback);

    return v >= 0 && v <= 1 << 24 ? (int64_t)v : -1;
}

/* Boxes [B, 4] of encodings (y, x, height, width) relative to anchors of the same form. */
static const Expr *decoded(const Build *b, const Expr *x, const Expr *anchors, const FlexMap *m)
{
    static const char *const scales[] = {"y_scale", "x_scale", "h_scale", "w_scale"};
    const Expr              *e[4], *a[4], *corner[4];

    for (uint32_t i = 0; i < 4; i++) {
        e[i] = build_by(b, "divide", build_slice(b, x, 1, i, i + 1), flex_number(m, scales[i], 1));
        a[i] = build_slice(b, anchors, 1, i, i + 1);
    }
    for (uint32_t i = 0; i < 2; i++) {
        const Expr *center = build_add(b, build_mul(b, e[i], a[2 + i]), a[i]);
        const Expr *half =
            build_by(b, "multiply", build_mul(b, build1(b, "exp", e[2 + i], NULL), a[2 + i]), 0.5);

        corner[i] = build_sub(b, center, half);
        corner[2 + i] = build_add(b, center, half);
    }
    return build_concat(b, 4, corner, 1);
}

static const Expr *f32(const Build *b, double v)
{
    return expr_scalar(b->c, DT_F32, v);
}

static const Expr *repeated(const Build *b, const Expr *x, int64_t times)
{
    RepeatAttrs *a = ATTRS(b, RepeatAttrs);

    a->repeats = times;
    return times == 1 ? x : build1(b, "repeat", x, a);
}

/* Encodings [1, B, 4], scores [1, B, classes], anchors [B, 4]: the best boxes, whatever their
 * class, each with the classes of its best scores; the background, if there is one, is class 0 of
 * the scores. */
bool tflite_detection_postprocess(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *boxes, *scores, *top, *at, *there, *classes, *values;
    int64_t      B, C, most, each, axis = 1;
    const Idx   *room;
    TopKAttrs   *k = ATTRS(b, TopKAttrs);
    FlexMap      m;

    if (!tflite_rank(n, 0, 3, 3) || !tflite_rank(n, 1, 3, 3) || !tflite_rank(n, 2, 2, 2))
        return false;
    if (!flex_root(n->p->custom, &m))
        return tflite_error(n, E_IMPORT, "its options are no map");
    if (flex_number(&m, "use_regular_nms", 0) != 0)
        return tflite_error(n, E_UNSUPPORTED, "use_regular_nms");
    B = build_dim(b, n->in[1], 1);
    C = flex_int(&m, "num_classes", 0);
    most = flex_int(&m, "max_detections", 0);
    each = flex_int(&m, "max_classes_per_detection", 1);
    if (C < 1 || C > build_dim(b, n->in[1], 2) || build_dim(b, n->in[1], 2) - C > 1 || each < 1 ||
        each > C || most < 1 || most > B || build_dim(b, n->in[0], 1) != B ||
        build_dim(b, n->in[0], 0) != 1 || build_dim(b, n->in[0], 2) < 4 ||
        build_dim(b, n->in[2], 0) != B || build_dim(b, n->in[2], 1) != 4 || n->nout != 4)
        return tflite_error(n, E_IMPORT, "%lld detections of %lld classes from %s", (long long)most,
                            (long long)C, type_text(b->c, n->in[1]->type));
    boxes = build_slice(b, build_reshape(b, n->in[0], 2, (int64_t[]){B, build_dim(b, n->in[0], 2)}),
                        1, 0, 4);
    if (!(boxes = decoded(b, boxes, n->in[2], &m)))
        return false;
    scores = build_reshape(b, n->in[1], 2, (int64_t[]){B, build_dim(b, n->in[1], 2)});
    scores = build_slice(b, scores, 1, build_dim(b, n->in[1], 2) - C, build_dim(b, n->in[1], 2));
    k->k = each;
    k->dtype = DT_I32;
    top = build1(b, "topk", scores, k);
    values = build_proj(b, top, 0);
    classes = build_proj(b, top, 1);
    room = idx_const(b->c->arith, most);
    at = build_best_boxes(b, boxes, build_reduce(b, "max", scores, 1, &axis, false), room,
                          build_number(b, room), f32(b, flex_number(&m, "nms_iou_threshold", 0.5)),
                          f32(b, flex_number(&m, "nms_score_threshold", 0)));
    if (!at || !values || !classes)
        return false;
    there = build2(b, "greater_equal", at, build_scalar(b, at, 0), NULL);
    there = build_expand_dims(b, there, 1, 1);
    boxes = build_picked(b, boxes, at, there);
    values = build_picked(b, values, at, there);
    classes = build_cast(b, build_picked(b, classes, at, there), DT_F32);
    axis = 0;
    n->out[0] = build_reshape(b, repeated(b, boxes, each), 3, (int64_t[]){1, most * each, 4});
    n->out[1] = build_reshape(b, classes, 2, (int64_t[]){1, most * each});
    n->out[2] = build_reshape(b, values, 2, (int64_t[]){1, most * each});
    n->out[3] = build_reshape(
        b, build_reduce(b, "sum", build_cast(b, there, DT_F32), 2, (int64_t[]){0, 1}, false), 1,
        (int64_t[]){1});
    return n->out[0] && n->out[1] && n->out[2] && n->out[3];
}
