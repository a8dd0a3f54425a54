/* tvmcc --check-args: would this command line compile, and into how many pieces?
 *
 * CMake asks once for each model while it configures.  The options are read, the target is looked
 * up and the model imported, which maps its weights and looks at none; no pass runs, nothing is
 * written.  The answer is a JSON object on standard output, a mistake is an error as in a compile.
 */
#include "driver/job.h"

/* A graph of more nodes than this is worth more than one process. */
enum { SHARD_ABOVE = 64, SHARDS = 4 };

static void pair(StrBuf *s, const char *key, const char *value)
{
    str_printf(s, ", \"%s\": ", key);
    str_add_json(s, value ? value : "");
}

static uint32_t count_nodes(Ctx *c, const Compiled *k, uint64_t *weights)
{
    ExprList list = expr_post_order(c, module_func(k->imported, "main"));
    uint32_t nodes = 0;

    for (uint32_t i = 0; i < list.n; i++) {
        nodes += call_op(list.at[i]) != NULL;
        if (list.at[i]->kind == EXPR_CONST)
            *weights += list.at[i]->u.constant->data.n;
    }
    return nodes;
}

/* Code that cannot be merged kernel by kernel is made in one step. */
static uint32_t shards(const Compiled *k, const Target *t, uint32_t nodes)
{
    return !compile_has_units(k, t) ? 0 : nodes > SHARD_ABOVE ? SHARDS : 1;
}

uint32_t shards_for(Ctx *c, const Compiled *k)
{
    uint64_t weights = 0;

    return shards(k, c->target, count_nodes(c, k, &weights));
}

int check_args(Driver *driver, Job *job)
{
    uint64_t weights = 0;
    StrBuf   s = strbuf(driver->arena);

    if (!passes_check(job->c, &job->options.passes) ||
        !compile_largest(job->c, &job->options, &job->options) ||
        !compile_target(job->c, &job->k) || !compile_import(job->c, &job->k))
        return 0;
    const Target *t = job->c->target;
    uint32_t      nodes = count_nodes(job->c, &job->k, &weights);

    str_add(&s, "{\"entry\": ");
    str_add_json(&s, job->k.entry);
    pair(&s, "target", t->text);
    pair(&s, "triple", t->host ? t->host->triple : t->triple);
    if (t->backend->compiler_options)
        pair(&s, "compiler_options", t->backend->compiler_options(job->c, t));
    str_printf(&s, ", \"device\": %s, \"nodes\": %u, \"shards\": %u, \"weights_bytes\": %llu, ",
               t->host ? "true" : "false", nodes, shards(&job->k, t, nodes),
               (unsigned long long)weights);
    job_signature_json(job, &s);
    str_add(&s, ", \"files\": [");
    for (uint32_t i = 0; i < job->k.files.n; i++) {
        str_add(&s, i ? ", " : "");
        str_add_json(&s, job->k.files.at[i]);
    }
    say(driver, "%s]}\n", s.at);
    return 0;
}
