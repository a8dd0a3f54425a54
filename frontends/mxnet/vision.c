/* Regions of pictures, and how alike two pictures are. */
#include "frontends/mxnet/mxnet.h"

/* Boxes [R, 5], the first number of which says whose they are. */
static bool read_regions(const MxNode *n, int64_t *size)
{
    if (!mx_rank(n, 0, 4, 4) || !mx_rank(n, 1, 2, 2) || !mx_sizes(n, "pooled_size", 2, 1, 1, size))
        return false;
    if (build_dim(&n->b, n->in[1], 1) != 5)
        return mx_error(n, E_IMPORT, "regions are %s", type_text(n->b.c, n->in[1]->type));
    return true;
}

static const Expr *pictures_of(MxNode *n)
{
    const Expr *at = build_column(&n->b, n->in[1], 0);

    at = build_squeeze(&n->b, at, 1, (int64_t[]){1});
    return at ? build_cast(&n->b, at, DT_I64) : NULL;
}

bool mx_roi_align(MxNode *n)
{
    const Build   *b = &n->b;
    RoiAlignAttrs *a = ATTRS(b, RoiAlignAttrs);
    int64_t        size[2];

    if (!read_regions(n, size))
        return false;
    if (mx_bool(n, "position_sensitive"))
        return mx_error(n, E_UNSUPPORTED, "position_sensitive");
    a->pooled_size = ints_dup(b->c, size, 2);
    a->spatial_scale = mx_float(n, "spatial_scale");
    a->sample_ratio = mx_int(n, "sample_ratio") > 0 ? mx_int(n, "sample_ratio") : 0;
    a->aligned = mx_bool(n, "aligned");
    return mx_done(n, build3(b, "vision.roi_align", n->in[0], build_slice(b, n->in[1], 1, 1, 5),
                             pictures_of(n), a));
}

bool mx_roi_pooling(MxNode *n)
{
    int64_t size[2];

    return read_regions(n, size) && mx_done(n, build_roi_pool(&n->b, n->in[0], n->in[1], size,
                                                              mx_float(n, "spatial_scale")));
}

bool mx_correlation(MxNode *n)
{
    BuildCorrelation k = {.kernel = mx_int(n, "kernel_size"),
                          .most = mx_int(n, "max_displacement"),
                          .stride1 = mx_int(n, "stride1"),
                          .stride2 = mx_int(n, "stride2"),
                          .pad = mx_int(n, "pad_size"),
                          .products = mx_bool(n, "is_multiply")};

    return mx_rank(n, 0, 4, 4) && mx_done(n, build_correlation(&n->b, n->in[0], n->in[1], &k));
}

bool mx_proposal(MxNode *n)
{
    BuildProposals p = {.stride = (double)mx_int(n, "feature_stride"),
                        .threshold = mx_float(n, "threshold"),
                        .least = (double)mx_int(n, "rpn_min_size"),
                        .before = mx_int(n, "rpn_pre_nms_top_n"),
                        .after = mx_int(n, "rpn_post_nms_top_n"),
                        .corners = mx_bool(n, "iou_loss")};
    const Expr    *regions, *best;

    mx_floats(n, "ratios", &p.nratios, &p.ratios);
    mx_floats(n, "scales", &p.nscales, &p.scales);
    if (!build_proposals(&n->b, &p, n->in[0], n->in[1], n->in[2], &regions, &best))
        return false;
    mx_put(n, 1, best);
    return mx_done(n, regions);
}
