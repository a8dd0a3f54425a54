/* What a network takes and gives as its file says it, for `tvmcc inspect`. */
#include "frontends/darknet/darknet.h"

#include <string.h>

bool darknet_describe(Ctx *c, const char *path, Bytes file, UNUSED const ImportOptions *o,
                      ModelSignature *out)
{
    DarknetConfig    config;
    DarknetNode      net = {.b.c = c};
    Map             *index = map_new(c->scratch);
    InputDim        *dims = NEW_ARRAY(c->arena, InputDim, 4);
    SignatureTensor *in = NEW_ARRAY(c->arena, SignatureTensor, 1), *results;
    OpTally         *ops;

    if (!darknet_read(c, path, file, &config))
        return false;
    net.s = &config.sections[0];
    *in = (SignatureTensor){"data", "f32", darknet_input(&net, dims), dims, SIGNATURE_TENSOR};
    out->ninputs = 1;
    out->inputs = in;
    ops = NEW_ARRAY(c->arena, OpTally, config.n);
    results = NEW_ARRAY(c->arena, SignatureTensor, config.n);
    for (uint32_t i = 0; i + 1 < config.n; i++) {
        const DarknetSection *s = &config.sections[1 + i];

        signature_count(c, index, out, ops, s->row ? s->row->name : s->name);
        if (i + 2 == config.n || (s->row && s->row->detects))
            results[out->noutputs++] = (SignatureTensor){darknet_label(c, &config, i), "f32",
                                                         UINT32_MAX, NULL, SIGNATURE_TENSOR};
    }
    out->outputs = results;
    return true;
}
