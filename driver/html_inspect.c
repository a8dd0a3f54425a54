/* The page of `tvmcc inspect --html`: the graph of a model; of a product, which carries none, its
 * inputs, outputs and sizes. */
#include "driver/html.h"

bool html_model(Driver *driver, Job *job, const char *path)
{
    const char *file = driver->opt.inputs.at[0];
    Arena      *a = driver->arena;
    StrBuf      json = strbuf(a);
    HtmlGraph   g;

    html_graph(job->c, job->k.imported, &g);
    html_begin(&json, job->k.entry, 1, &file);
    html_tile(&json, "operators", arena_printf(a, "%u", g.ncalls), NULL);
    html_tile(&json, "inputs", arena_printf(a, "%u", g.ninputs), NULL);
    html_tile(&json, "outputs", arena_printf(a, "%u", g.noutputs), NULL);
    html_tile(&json, "constants", html_bytes(a, g.const_bytes),
              arena_printf(a, "%u of them", g.nconsts));
    html_end_tiles(&json);
    html_graph_json(&g, &json);
    return html_write(driver, path, job->k.entry, &json);
}

/* An input, which reads nothing, or an output, which reads node `from` - 1. */
static void tensor_json(Arena *a, const tvmcc_tensor_info *t, const char *kind, uint32_t from,
                        StrBuf *s)
{
    DType  d = {t->code, (uint8_t)t->bits, 1};
    StrBuf type = strbuf(a);

    str_printf(&type, "%s%u[",
               t->code == TVMCC_BOOL   ? "bool"
               : dtype_is_float(d)     ? "f"
               : t->code == TVMCC_UINT ? "u"
                                       : "i",
               t->bits);
    for (uint32_t k = 0; k < t->ndim; k++)
        str_printf(&type, "%s%lld", k ? ", " : "", (long long)t->dims[k]);
    str_printf(&type, "], %zu bytes", t->bytes);
    str_printf(s, "{\"op\": \"%s\", \"kind\": \"%s\", \"name\": ", kind, kind);
    str_add_json(s, t->name);
    str_add(s, ", \"type\": ");
    str_add_json(s, type.at);
    str_printf(s, from ? ", \"from\": [%u]" : ", \"from\": []", from - 1);
    str_add(s, ", \"constants\": []}");
}

bool html_product(Driver *driver, const tvmcc_model_info *info, const char *path)
{
    Arena      *a = driver->arena;
    StrBuf      s = strbuf(a);
    double      weights = 0;
    const char *about[] = {driver->opt.inputs.at[0], info->targets, info->toolchain};

    for (uint32_t i = 0; i < info->nweights; i++)
        weights += (double)info->weights[i].bytes;
    html_begin(&s, info->name, COUNT(about), about);
    html_tile(&s, "inputs", arena_printf(a, "%u", info->ninputs), NULL);
    html_tile(&s, "outputs", arena_printf(a, "%u", info->noutputs), NULL);
    html_tile(&s, "arena", html_bytes(a, (double)info->arena_shared),
              info->arena_private
                  ? arena_printf(a, "and %s a thread", html_bytes(a, (double)info->arena_private))
                  : NULL);
    html_tile(&s, "weights", html_bytes(a, weights), NULL);
    html_end_tiles(&s);
    str_add(&s, ",\n\"nodes\": [\n");
    for (uint32_t i = 0; i < info->ninputs; i++) {
        tensor_json(a, &info->inputs[i], "input", 0, &s);
        str_add(&s, ",\n");
    }
    str_add(&s, "{\"op\": ");
    str_add_json(&s, info->name);
    str_add(&s, ", \"name\": \"compiled\", \"from\": [");
    for (uint32_t i = 0; i < info->ninputs; i++)
        str_printf(&s, "%s%u", i ? ", " : "", i);
    str_add(&s, "], \"constants\": []}");
    for (uint32_t i = 0; i < info->noutputs; i++) {
        str_add(&s, ",\n");
        tensor_json(a, &info->outputs[i], "output", info->ninputs + 1, &s);
    }
    str_add(&s, "\n]");
    return html_write(driver, path, info->name, &s);
}
