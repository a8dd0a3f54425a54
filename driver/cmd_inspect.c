/* tvmcc inspect: what a model file asks for and gives, or what a product says about itself. */
#include "driver/job.h"

#include <string.h>
#include <tvmcc/runtime.h>

static void show_tensors(Driver *driver, const char *what, const tvmcc_tensor_info *t, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        StrBuf s = strbuf(driver->arena);
        for (uint32_t j = 0; j < t[i].ndim; j++)
            str_printf(&s, "%s%lld", j ? ", " : "", (long long)t[i].dims[j]);
        say(driver, "%s %s: (%s), %s%u, %zu bytes\n", what, t[i].name, s.at ? s.at : "",
            t[i].code == TVMCC_FLOAT  ? "f"
            : t[i].code == TVMCC_UINT ? "u"
            : t[i].code == TVMCC_BOOL ? "bool"
                                      : "i",
            t[i].bits, t[i].bytes);
    }
}

static void inspect_product(Driver *driver, const char *path)
{
    tvmrt_model m;

    if (tvmrt_model_open(&m, path, driver->opt.entry)) {
        diag_error(driver->diags, E_RUN, (Loc){.file = path}, "%s", m.error);
        return;
    }
    const tvmcc_model_info *info = m.info;
    say(driver, "%s: ABI %u, %s, %s\n", info->name, info->abi, info->toolchain, info->targets);
    show_tensors(driver, "input ", info->inputs, info->ninputs);
    show_tensors(driver, "output", info->outputs, info->noutputs);
    say(driver, "arena %zu bytes and %zu a thread, aligned to %u\n", info->arena_shared,
        info->arena_private, info->arena_align);
    for (uint32_t i = 0; i < info->nweights; i++)
        say(driver, "weights %zu bytes, %s\n", info->weights[i].bytes,
            info->weights[i].mode == TVMCC_WEIGHTS_EMBED ? "in the object" : "in a file");
    tvmrt_model_close(&m);
}

/* Operators of main, with how often each occurs, in order of first use. */
static void show_ops(Driver *driver, Ctx *c, const Expr *f)
{
    ExprList  list = expr_post_order(c, f);
    uint32_t *n = NEW_ARRAY(c->arena, uint32_t, c->ops.n + 1);

    for (uint32_t i = 0; i < list.n; i++)
        if (call_op(list.at[i]))
            n[call_op(list.at[i])->id]++;
    for (uint32_t i = 0; i < c->ops.n; i++)
        if (n[i])
            say(driver, "%6u %s\n", n[i], c->ops.at[i].text);
}

int cmd_inspect(Driver *driver)
{
    Job job;

    if (driver->opt.inputs.n == 1 && job_is_product(driver->opt.inputs.at[0])) {
        inspect_product(driver, driver->opt.inputs.at[0]);
        return 0;
    }
    if (!job_start(driver, &job, "llvm") || !compile_target(job.c, &job.k) ||
        !compile_import(job.c, &job.k))
        return 0;
    const Module *m = job.k.imported;
    const Expr   *f = module_func(m, "main");
    for (uint32_t i = 0; i < func_nparams(f); i++)
        say(driver, "input  %s: %s\n", func_param(f, i)->u.var.name,
            type_text(job.c, func_param(f, i)->type));
    const Type *t = func_body(f)->type;
    for (uint32_t i = 0; i < m->noutputs; i++)
        say(driver, "output %s: %s\n", m->output_names[i],
            type_text(job.c, t->kind == TYPE_TUPLE ? t->parts[i] : t));
    show_ops(driver, job.c, f);
    return 0;
}
