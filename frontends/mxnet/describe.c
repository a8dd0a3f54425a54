/* What a model takes and gives as its file says it, for `tvmcc inspect`. */
#include "frontends/mxnet/mxnet.h"

/* Variables whose values are in the file beside the graph are no inputs. */
bool mxnet_describe(Ctx *c, const char *path, Bytes file, const ImportOptions *o,
                    ModelSignature *out)
{
    MxGraph          g;
    MxParams         params;
    ImportFiles      files = {0};
    Map             *index = map_new(c->scratch);
    SignatureTensor *in, *results;
    OpTally         *ops;

    if (!mx_read_symbol(c, path, file, &g) || !mx_open_params(c, path, o->weights, &files, &params))
        return false;
    in = NEW_ARRAY(c->arena, SignatureTensor, g.nvars + 1);
    results = NEW_ARRAY(c->arena, SignatureTensor, g.nheads + 1);
    ops = NEW_ARRAY(c->arena, OpTally, g.n + 1);
    out->inputs = in;
    out->outputs = results;
    out->ops = ops;
    for (uint32_t i = 0; i < g.n; i++) {
        InputDim *dims = NEW_ARRAY(c->arena, InputDim, MAX_RANK);
        uint32_t  rank;
        DType     t;

        if (g.op[i].op) {
            signature_count(c, index, out, ops, g.op[i].row ? g.op[i].row->name : g.op[i].op);
            continue;
        }
        if (mx_param(&params, g.op[i].name))
            continue;
        mx_declared(c, &g, &params, i, &t, &rank, dims);
        in[out->ninputs++] =
            (SignatureTensor){g.op[i].name, dtype_text(c, t), rank, dims, SIGNATURE_TENSOR};
    }
    for (uint32_t i = 0; i < g.nheads; i++)
        results[out->noutputs++] = (SignatureTensor){mx_port_name(c, &g, g.heads[i]), "?",
                                                     UINT32_MAX, NULL, SIGNATURE_TENSOR};
    return true;
}
