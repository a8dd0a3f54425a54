/* Plans from files: S.plan, S.id, S.weights (docs/design/build.md).
 *
 * S.id is what of a product depends on the values of its weights, and what nothing but people ask
 * for:
 *
 *     tvmcc id 1
 *     plan 6f0c..         hash of S.plan, so that files of two compiles are not mixed
 *     model 9c0f..        of the model's file
 *     weights 51aa.. 102228160
 *     build 77d1..        of all that can change bytes
 *     op nn.conv2d 52     a line for each operator of the graph */
#include "compile/compile.h"

#include "tvmcc/abi.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ID_LIMIT = 1 << 16 };

Sha256 compile_plan_hash(Ctx *c, const Plan *p)
{
    StrBuf s = strbuf(c->scratch);

    plan_print(c, p, &s);
    return sha256((Bytes){(const uint8_t *)s.at, s.n});
}

Bytes compile_id_text(Ctx *c, const Compiled *k)
{
    StrBuf s = strbuf(c->arena);
    char   hex[65];

    str_add(&s, "tvmcc id 1\n");
    sha256_hex(k->desc->plan_sha, hex);
    str_printf(&s, "plan %s\n", hex);
    sha256_hex(k->desc->model_sha, hex);
    str_printf(&s, "model %s\n", hex);
    sha256_hex(k->desc->weights_sha, hex);
    str_printf(&s, "weights %s %" PRIu64 "\n", hex, k->plan->weights_bytes);
    sha256_hex(k->desc->build_id, hex);
    str_printf(&s, "build %s\n", hex);
    for (uint32_t i = 0; i < k->desc->nops; i++)
        str_printf(&s, "op %s %u\n", k->desc->ops[i].name, k->desc->ops[i].count);
    return (Bytes){(const uint8_t *)s.at, s.n};
}

/* Plans of one product may be for several backends. */
static const Target *parse_any_target(Ctx *c, const char *text)
{
    const Backend *b = backend_find(intern_n(c->strings, text, strcspn(text, " ,")));

    return (b ? b : backend_cpu())->parse_target(c, text);
}

bool compile_plan_text(Ctx *c, Compiled *k, const char *path, Bytes text)
{
    const char *target, *kind;

    target = arena_printf(c->scratch, "%.*s", (int)(text.n > 4096 ? 4096 : text.n),
                          (const char *)text.at);
    target = strstr(target, "\ntarget \"");
    kind = target ? target + strlen("\ntarget \"") : "llvm";
    k->backend = backend_find(intern_n(c->strings, kind, strcspn(kind, " ,\"")));
    if (!k->backend)
        k->backend = backend_cpu();
    vec_push(c->arena, &k->files, path);
    c->eval = &eval_jit;
    if (!(k->plan = plan_read(c, path, text, parse_any_target)))
        return false;
    k->entry = k->plan->name;
    return true;
}

bool compile_read_plan(Ctx *c, Compiled *k, const char *path)
{
    Bytes text;

    return file_map(c->diags, path, &text) && compile_plan_text(c, k, path, text);
}

static bool read_hash(const char **at, const char *word, Sha256 *out)
{
    size_t n = strlen(word);

    if (strncmp(*at, word, n) || (*at)[n] != ' ')
        return false;
    *at += n + 1;
    for (int i = 0; i < 32; i++) {
        unsigned v;
        if (strspn(*at, "0123456789abcdef") < 2 || sscanf(*at, "%2x", &v) != 1)
            return false;
        out->b[i] = (uint8_t)v;
        *at += 2;
    }
    *at += **at == '\n';
    return true;
}

/* Absent in ids of plans that came without their graph. */
static bool read_operators(Ctx *c, const char *at, Identity *id)
{
    VEC(OpCount) ops = {0};
    char     name[64];
    unsigned count;
    int      n;

    while (sscanf(at, "op %63[a-zA-Z0-9_.] %9u%n", name, &count, &n) == 2 && at[n] == '\n') {
        vec_push(c->arena, &ops, ((OpCount){arena_printf(c->arena, "%s", name), count}));
        at += n + 1;
    }
    id->nops = ops.n;
    id->ops = ops.at;
    return !*at;
}

bool identity_parse(Ctx *c, const char *path, Bytes text, Identity *id)
{
    const char *at, *first = "tvmcc id 1\n";
    int         n = 0;

    at = arena_printf(c->scratch, "%.*s", (int)(text.n > ID_LIMIT ? ID_LIMIT : text.n),
                      text.n ? (const char *)text.at : "");
    if (!str_starts(at, first))
        return error_at(c, E_PARSE_TEXT, (Loc){.file = path},
                        str_starts(at, "tvmcc id ")
                            ? "an id of another version of tvmcc; make it anew"
                            : "this is no id of a plan");
    at += strlen(first);
    if (!read_hash(&at, "plan", &id->plan) || !read_hash(&at, "model", &id->model) ||
        !read_hash(&at, "weights", &id->weights) ||
        sscanf(at, "%" SCNu64 "\n%n", &id->weights_bytes, &n) != 1)
        return error_at(c, E_PARSE_TEXT, (Loc){.file = path}, "this id of a plan is damaged");
    at += n;
    return (read_hash(&at, "build", &id->build) && read_operators(c, at, id)) ||
           error_at(c, E_PARSE_TEXT, (Loc){.file = path}, "this id of a plan is damaged");
}

bool compile_read_id(Ctx *c, Compiled *k, const char *path)
{
    Identity *id = NEW(c->arena, Identity);
    Bytes     text;
    Sha256    plan = compile_plan_hash(c, k->plan);

    if (!file_map(c->diags, path, &text) || !identity_parse(c, path, text, id))
        return false;
    if (memcmp(&plan, &id->plan, sizeof plan) || id->weights_bytes != k->plan->weights_bytes)
        return error_at(c, E_PACK, (Loc){.file = path}, "this id is of another plan than '%s'",
                        k->files.n ? k->files.at[0] : k->entry);
    k->id = id;
    vec_push(c->arena, &k->files, path);
    return compile_desc(c, k);
}

bool compile_read_weights(Ctx *c, Compiled *k, const char *path)
{
    Bytes                file;
    tvmcc_weights_header h;
    uint64_t             n = 0;

    if (!file_map(c->diags, path, &file))
        return false;
    if (file.n < sizeof h || memcmp(file.at, TVMCC_WEIGHTS_MAGIC, sizeof h.magic))
        return error_at(c, E_PARSE_MODEL, (Loc){.file = path}, "this is no weights file");
    memcpy(&h, file.at, sizeof h);
    for (int i = 7; i >= 0; i--)
        n = n << 8 | h.data_bytes[i];
    if (n != file.n - sizeof h)
        return error_at(c, E_PARSE_MODEL, (Loc){.file = path},
                        "this weights file should have %llu bytes of data, it has %zu",
                        (unsigned long long)n, file.n - sizeof h);
    if (n != k->plan->weights_bytes || (k->id && memcmp(h.sha256, k->id->weights.b, 32)))
        return error_at(c, E_PACK, (Loc){.file = path}, "these weights are of another plan");
    k->weights = (Bytes){file.at + sizeof h, file.n - sizeof h};
    vec_push(c->arena, &k->files, path);
    return true;
}
