/* What a net takes and gives as its files say it, for `tvmcc inspect`. */
#include "frontends/caffe2/caffe2.h"

bool caffe2_describe(Ctx *c, const char *path, Bytes file, ModelSignature *out)
{
    C2Import         im = {.c = c, .path = path};
    ImportFiles      files = {0};
    Map             *index = map_new(c->scratch);
    SignatureTensor *in, *results;
    OpTally         *ops;

    if (!c2_read_net(c, path, file, &im.net) || !c2_open_init(&im, NULL, &files))
        return false;
    in = NEW_ARRAY(c->arena, SignatureTensor, im.net.input.n + 1);
    results = NEW_ARRAY(c->arena, SignatureTensor, im.net.output.n + 1);
    ops = NEW_ARRAY(c->arena, OpTally, im.net.op.n + 1);
    for (uint32_t i = 0; i < im.net.input.n; i++) {
        const char    *name = intern(c->strings, im.net.input.at[i]);
        InputDim      *dims = NEW_ARRAY(c->arena, InputDim, MAX_RANK);
        const C2OpDef *fill;

        if (c2_is_input(&im, name, &fill))
            in[out->ninputs++] =
                (SignatureTensor){name, "f32", c2_fill_shape(fill, dims), dims, SIGNATURE_TENSOR};
    }
    for (uint32_t i = 0; i < im.net.output.n; i++)
        results[out->noutputs++] = (SignatureTensor){intern(c->strings, im.net.output.at[i]), "?",
                                                     UINT32_MAX, NULL, SIGNATURE_TENSOR};
    for (uint32_t i = 0; i < im.net.op.n; i++) {
        const C2OpDef *op = im.net.op.at[i];

        signature_count(c, index, out, ops, intern(c->strings, op->type ? op->type : ""));
    }
    out->inputs = in;
    out->outputs = results;
    out->ops = ops;
    return true;
}
