/* Networks lowered for a device, and run launch by launch in the interpreter. */
#ifndef TVMCC_TESTS_LAUNCHES_H
#define TVMCC_TESTS_LAUNCHES_H

#include "tests/unit/net.h"

#include "compile/compile.h"

enum { MOST = 32 }; /* inputs and results of a network */

static inline size_t type_bytes(const Type *t)
{
    int64_t elems = 0;

    type_elems(t, &elems);
    return (size_t)elems * dtype_bytes(t->dtype);
}

/* What is wrong, or NULL: the plan is x->plan.  `warps`: a target whose warps have instructions,
 * for which products take 16 bits; NULL: OpenCL.  `machine`: a file of figures, or NULL. */
static inline const char *compile_launches(Ctx *c, const Module *m, uint32_t level,
                                           const char *warps, const char *machine, Compiled *x)
{
    static CompileOptions       o;
    static const MixedPrecision f16 = {.type = DT_F16};

    o = (CompileOptions){
        .path = "model", .target = warps ? warps : "opencl", .machine = machine, .entry = "model"};
    o.passes.opt_level = level;
    o.passes.jobs = 1;
    o.weights_mode = WEIGHTS_FILE;
    o.passes.mixed = warps ? &f16 : NULL;
    compile_start(c, x, &o);
    x->imported = m;
    if (!compile_target(c, x) || !compile_graph(c, x) || !compile_plan(c, x) ||
        !compile_weights(c, x))
        return "does not compile";
    for (uint32_t i = 0; i < diag_count(c->diags); i++)
        if (diag_at(c->diags, i).id == W_SCHEDULE_REFUSED)
            return diag_at(c->diags, i).text;
    return NULL;
}

/* The same of the module's last function, the plan's host, or of one that was made of it, with
 * dimensions of these sizes: the results, one for each of the plan's, are stored in `out`. */
static inline const char *run_sizes(Ctx *c, const Compiled *x, const TirModule *m,
                                    const int64_t *sizes, uint32_t nin, const Const *const *in,
                                    void *const *out)
{
    const Plan *p = x->plan;
    void       *args[2 * MOST + 4];
    uint32_t    n = 0;

    for (uint32_t i = 0; i < nin; i++)
        args[n++] = (void *)(uintptr_t)in[i]->data.at;
    for (uint32_t i = 0; i < p->nout; i++)
        args[n++] = out[i];
    args[n++] = memory(c, p->arena_bytes + p->private_bytes);
    args[n++] = (void *)(uintptr_t)x->weights.at;
    if (p->mixed) {
        args[n++] = memory(c, p->here_bytes);
        args[n++] = (void *)(uintptr_t)x->weights.at;
    }
    return tir_eval(c, m, m->funcs[m->nfuncs - 1], n, args, p->symbols.n, sizes) ? NULL
                                                                                 : "does not run";
}

/* ... without such dimensions: the results are in `out`. */
static inline const char *run_launches(Ctx *c, const Compiled *x, const TirModule *m, uint32_t nin,
                                       const Const *const *in, uint32_t most, const Const **out)
{
    const Plan *p = x->plan;
    void       *result[MOST];
    const char *wrong;

    if (p->nout > most || p->nout > MOST || nin > MOST)
        return "another number of results";
    for (uint32_t i = 0; i < p->nout; i++)
        result[i] = memory(c, type_bytes(p->out[i].type));
    if ((wrong = run_sizes(c, x, m, NULL, nin, in, result)))
        return wrong;
    for (uint32_t i = 0; i < p->nout; i++)
        out[i] = const_new(c, NULL, p->out[i].type, (Bytes){result[i], type_bytes(p->out[i].type)});
    return NULL;
}

#endif
