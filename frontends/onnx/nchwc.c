/* Operators of com.microsoft.nchwc: what ONNX Runtime's optimizer makes of convolutions at its
 * level
 * 3.  Channels lie in blocks, [N, C/b, H, W, b], where the file says [N, C, H, W]; so here they are
 * what the file says, and only weights are put back in order:
 *
 *     [O/b, I/b, H, W, b of I, b of O]    of operands in blocks
 *     [O/b, I, H, W, b of O]              of pictures with fewer channels than b, and depthwise
 *
 * Channels are filled up to whole blocks, with zeros.  How wide a block is the file does not say:
 * it is the vector of the machine that wrote it, 8 or 16 cells.  Weights that fit one only tell,
 * else
 * --dim nchwc=16 has to. */
#include "frontends/onnx/onnx.h"

#include <string.h>

#define DOMAIN "com.microsoft.nchwc"

/* How many channels in and out weights of a Conv of that domain have. */
static bool weights_of(const Import *im, const OnnxNode *p, int64_t *in, int64_t *out)
{
    const PbMsgs *list = &im->model->graph->initializer;

    if (strcmp(onnx_domain(p->domain), DOMAIN) != 0 || strcmp(onnx_op(p), "Conv") != 0 ||
        p->input.n < 2)
        return false;
    for (uint32_t i = 0; i < list->n; i++) {
        const OnnxTensor *t = list->at[i];

        if (t->name && !strcmp(t->name, onnx_text(p->input.at[1])) && t->dims.n == 4) {
            *out = t->dims.at[0];
            *in = t->dims.at[1];
            return true;
        }
    }
    return false;
}

/* 8 or 16; 0 with an error. */
static int64_t block(Node *n)
{
    const PbMsgs *nodes = &n->im->model->graph->node;
    int64_t       lo, hi, in, out;

    if (shapes_given(n->im->shapes, "nchwc", &lo, &hi)) {
        if (lo == hi && (lo == 8 || lo == 16))
            return lo;
        node_error(n, E_DIM, "--dim nchwc=%lld: blocks have 8 or 16 channels", (long long)hi);
        return 0;
    }
    for (uint32_t i = 0; i < nodes->n; i++) {
        if (!weights_of(n->im, nodes->at[i], &in, &out))
            continue;
        if (out % 16)
            return 8;
        if (in > 8 && in % 8)
            return 16;
    }
    node_error(n, E_DIM, "the file does not say how many channels a block has");
    diag_hint(n->b.c->diags, "--dim nchwc=16 if it was written on a machine with AVX-512 or an ARM "
                             "processor, else --dim nchwc=8; or have it written at level 2");
    return 0;
}

/* Weights in the order of Conv, [O, I, H, W]. */
static const Expr *in_order(Node *n, const Expr *w, int64_t size, bool blocks_in)
{
    const Build *b = &n->b;
    Ints         d = build_dims(b, w);
    int64_t      O = d.at[0] / size, I = d.at[1] / size;

    if (d.at[0] % size || (blocks_in && d.at[1] % size))
        return node_error(n, E_IMPORT, "weights %s in blocks of %lld", type_text(b->c, w->type),
                          (long long)size);
    if (blocks_in) {
        w = build_reshape(b, w, 6, (int64_t[]){O, I, d.at[2], d.at[3], size, size});
        w = build_transpose(b, w, 6, (int64_t[]){0, 5, 1, 4, 2, 3});
    } else {
        w = build_reshape(b, w, 5, (int64_t[]){O, d.at[1], d.at[2], d.at[3], size});
        w = build_transpose(b, w, 5, (int64_t[]){0, 4, 1, 2, 3});
    }
    return build_reshape(b, w, 4, d.at);
}

bool convert_nchwc_conv(Node *n)
{
    int64_t size = block(n), in;

    if (!size || !node_need_rank(n, 0, 4, 4) || !node_need_rank(n, 1, 4, 4))
        return false;
    in = build_dim(&n->b, n->in[1], 1);
    n->in[1] = in_order(n, n->in[1], size, in >= size && (in > 1 || node_int(n, "group", 1) == 1));
    return n->in[1] && convert_fused_conv(n);
}

bool convert_nchwc_reorder_input(Node *n)
{
    const Build *b = &n->b;
    int64_t      size = block(n), pads[8] = {0}, C;
    const Expr  *x;

    if (!size || !node_need_rank(n, 0, 4, 4))
        return false;
    x = n->in[0];
    if (node_int(n, "channels_last", 0))
        x = build_transpose(b, x, 4, (int64_t[]){0, 3, 1, 2});
    C = x ? build_dim(b, x, 1) : 0;
    pads[3] = (C + size - 1) / size * size - C;
    return node_done(n, build_pad(b, x, pads, 0, "constant"));
}

bool convert_nchwc_reorder_output(Node *n)
{
    const Build *b = &n->b;
    int64_t      channels = node_int(n, "channels", 0);
    const Expr  *x;

    if (!node_need_rank(n, 0, 4, 4))
        return false;
    x = n->in[0];
    if (channels < 1 || channels > build_dim(b, x, 1))
        return node_error(n, E_IMPORT, "%lld channels of %s", (long long)channels,
                          type_text(b->c, x->type));
    x = channels < build_dim(b, x, 1) ? build_slice(b, x, 1, 0, channels) : x;
    if (node_int(n, "channels_last", 0))
        x = build_transpose(b, x, 4, (int64_t[]){0, 2, 3, 1});
    return node_done(n, x);
}

bool convert_nchwc_upsample(Node *n)
{
    static const char *const modes[] = {"nearest", "linear", NULL};
    static const char *const places[] = {"asymmetric", "align_corners", "half_pixel", NULL};
    const Build             *b = &n->b;
    Resize2dAttrs           *a = ATTRS(b, Resize2dAttrs);
    const char              *mode;
    const Idx               *size[2];
    double                   by[2];
    Ints                     scales;

    if (!node_need_rank(n, 0, 4, 4) || !node_choice(n, "mode", modes, &mode) ||
        !node_choice(n, "coordinate_transformation_mode", places,
                     &a->coordinate_transformation_mode))
        return false;
    if (!node_ints(n, "scales", &scales) || scales.n != 4 || scales.at[0] != 1 ||
        scales.at[1] != 1 || scales.at[2] < 1 || scales.at[3] < 1)
        return node_error(n, E_IMPORT, "scales are not 1, 1 and two numbers");
    for (uint32_t i = 0; i < 2; i++) {
        size[i] = idx_mulc(b->c->arith, expr_form(n->in[0], 2 + i), scales.at[2 + i]);
        by[i] = (double)scales.at[2 + i];
    }
    a->size = dims_dup(b->c, size, 2);
    a->scales = (Floats){2, arena_dup(b->c->arena, by, sizeof by)};
    a->method = *mode == 'n' ? "nearest_neighbor" : "linear";
    a->rounding_method = "floor";
    return node_done(n, build1(b, "image.resize2d", n->in[0], a));
}
