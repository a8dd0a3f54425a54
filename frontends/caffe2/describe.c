/* What a net takes and gives as its files say it, for `tvmcc inspect`. */
#include "frontends/caffe2/caffe2.h"

bool caffe2_describe(Ctx *c, const char *path, Bytes file, const ImportOptions *o,
                     ModelSignature *out)
{
    C2Import         im = {.c = c, .path = path};
    ImportFiles      files = {0};
    Map             *index = map_new(c->scratch);
    SignatureTensor *in, *results;
    OpTally         *ops;
    C2Ops            all = {0};

    if (!c2_read_net(c, path, file, &im.net) || !c2_open_init(&im, o->weights, &files))
        return false;
    in = NEW_ARRAY(c->arena, SignatureTensor, im.net.input.n + 1);
    results = NEW_ARRAY(c->arena, SignatureTensor, im.net.output.n + 1);
    c2_all_ops(c->scratch, &im.net, &all);
    ops = NEW_ARRAY(c->arena, OpTally, all.n + 1);
    for (uint32_t i = 0; i < im.net.input.n; i++) {
        const char    *name = intern(c->strings, im.net.input.at[i]);
        InputDim      *dims = NEW_ARRAY(c->arena, InputDim, MAX_RANK);
        const C2OpDef *fill;

        if (c2_is_input(&im, name, &fill))
            in[out->ninputs++] =
                (SignatureTensor){name, c2_input_is_bytes(&im, name) ? "u8" : "f32",
                                  c2_fill_shape(fill, dims), dims, SIGNATURE_TENSOR};
    }
    for (uint32_t i = 0; i < im.net.output.n; i++)
        results[out->noutputs++] = (SignatureTensor){intern(c->strings, im.net.output.at[i]), "?",
                                                     UINT32_MAX, NULL, SIGNATURE_TENSOR};
    for (uint32_t i = 0; i < all.n; i++)
        signature_count(c, index, out, ops,
                        intern(c->strings, all.at[i]->type ? all.at[i]->type : ""));
    out->inputs = in;
    out->outputs = results;
    out->ops = ops;
    return true;
}
