/* What a program takes and gives as its file says it, for `tvmcc inspect`. */
#include "frontends/pytorch/pytorch.h"
#include "frontends/pytorch/script.h"

#include <string.h>

static SignatureTensor tensor_of(Ctx *c, const PtGraph *g, const PtArg *a, const char *name)
{
    const PtMeta   *m = a->text ? map_get(g->metas, PTR_KEY(a->text)) : NULL;
    SignatureTensor t = {.name = name, .type = "i64", .kind = SIGNATURE_TENSOR};

    if (a->kind == PT_TENSOR && m) {
        t.type = m->known ? dtype_text(c, m->dtype) : "?";
        t.ndim = m->ndim;
        t.dims = m->dims;
    }
    return t;
}

bool pytorch_describe(Ctx *c, const char *path, Bytes file, const ImportOptions *o,
                      ModelSignature *out)
{
    Loc              loc = {.file = path};
    PtArchive        archive = {0};
    PtProgram        p;
    Map             *index = map_new(c->scratch); /* name to number, plus one */
    SignatureTensor *in, *res;
    OpTally         *ops;

    if (!pt_is_archive(file) && ts_is_archive(file))
        return ts_describe(c, path, file, o, out);
    if (!pt_read_archive(c, loc, file, &archive) || !pt_read_program(c, loc, archive.program, &p))
        return false;
    in = NEW_ARRAY(c->arena, SignatureTensor, p.inputs.n + 1);
    res = NEW_ARRAY(c->arena, SignatureTensor, p.outputs.n + 1);
    ops = NEW_ARRAY(c->arena, OpTally, p.graph.nops + 1);
    for (uint32_t i = 0; i < p.inputs.n; i++) {
        const PtInput *x = &p.inputs.at[i];

        if (x->kind == PT_USER && x->arg.kind == PT_TENSOR)
            in[out->ninputs++] = tensor_of(c, &p.graph, &x->arg, x->arg.text);
    }
    for (uint32_t i = 0; i < p.outputs.n; i++) {
        const PtOutput *x = &p.outputs.at[i];

        if (x->kind == PT_RESULT && x->arg.kind == PT_TENSOR)
            res[out->noutputs++] = tensor_of(c, &p.graph, &x->arg, x->name);
    }
    for (uint32_t i = 0; i < p.graph.nops; i++)
        signature_count(c, index, out, ops, p.graph.ops[i].target);
    out->inputs = in;
    out->outputs = res;
    return true;
}
