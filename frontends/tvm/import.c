/* Inputs, values and results of a module of TVM's; the archives that it is in. */
#include "frontends/tvm/tvm.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- archives ------------------------------------------------------------------------------------------ */

/* A member of a tar at *at, which goes on to the next; false: there is none. */
static bool next_member(Bytes tar, size_t *at, const char **name, size_t *length, Bytes *data)
{
    const char *head = (const char *)tar.at + *at;
    uint64_t    size = 0;

    if (tar.n - *at < 512 || !*head)
        return false;
    for (uint32_t i = 124; i < 136 && head[i] >= '0' && head[i] <= '7'; i++)
        size = size * 8 + (uint64_t)(head[i] - '0');
    if (size > tar.n - *at - 512)
        return false;
    *name = head;
    *length = strnlen(head, 100);
    *data = (Bytes){tar.at + *at + 512, size};
    size = (size + 511) / 512 * 512;
    *at = size > tar.n - *at - 512 ? tar.n : *at + 512 + size;
    return true;
}

static bool ends(const char *name, size_t n, const char *ending)
{
    size_t k = strlen(ending);

    return n >= k && !memcmp(name + n - k, ending, k);
}

static bool is_text(const char *name, size_t n)
{
    return ends(name, n, "src/relay.txt") || ends(name, n, ".relay");
}

/* Of Model Library Format: metadata.json is at its top, with or without ./ before it.  *ours: of
 * tvmcc's own products, or without any text. */
static bool is_library_format(Bytes tar, bool *ours)
{
    const char *name;
    size_t      at = 0, n;
    Bytes       data;
    bool        found = false;

    *ours = true;
    while (next_member(tar, &at, &name, &n, &data)) {
        found |= (n == 13 && ends(name, n, "metadata.json")) ||
                 (n == 15 && ends(name, n, "./metadata.json"));
        if (is_text(name, n))
            *ours &= data.n < 2 || memcmp(data.at, "#[", 2) != 0;
    }
    return found;
}

/* ---- what a file is --------------------------------------------------------------------------------- */

/* PRODUCT: an archive in the same layout, but not of TVM */
typedef enum {
    FILE_OTHER,
    FILE_TEXT,
    FILE_GRAPH,
    FILE_JSON,
    FILE_PARAMS,
    FILE_ARCHIVE,
    FILE_PRODUCT
} FileKind;

static bool has(Bytes file, const char *text)
{
    return memmem(file.at, file.n, text, strlen(text)) != NULL;
}

static FileKind kind_of(Bytes file)
{
    size_t i = 0;
    bool   ours;

    if (file.n > 512 && !memcmp(file.at + 257, "ustar", 5))
        return !is_library_format(file, &ours) ? FILE_OTHER : ours ? FILE_PRODUCT : FILE_ARCHIVE;
    if (tv_is_params(file))
        return FILE_PARAMS;
    while (i < file.n && isspace(file.at[i]))
        i++;
    if (file.n - i > 2 && !memcmp(file.at + i, "#[", 2))
        return FILE_TEXT;
    if (i == file.n || file.at[i] != '{')
        return FILE_OTHER;
    if (has(file, "\"tvm_op\"") && has(file, "\"func_name\""))
        return FILE_GRAPH;
    return has(file, "\"tvm_version\"") && has(file, "\"type_key\"") ? FILE_JSON : FILE_OTHER;
}

int tvm_bid(const char *path, Bytes file)
{
    FileKind kind = kind_of(file);

    (void)path;
    return kind == FILE_OTHER ? 0 : kind == FILE_PRODUCT ? 20 : 95;
}

/* The text and the values in an archive of Model Library Format. */
static bool open_archive(Ctx *c, const char *path, Bytes tar, Bytes *text, Bytes *params)
{
    const char *name;
    size_t      at = 0, n;
    Bytes       data;

    *text = *params = (Bytes){0};
    while (next_member(tar, &at, &name, &n, &data)) {
        if (is_text(name, n) && text->n)
            return error_at(c, E_UNSUPPORTED, (Loc){.file = path}, "an archive of several modules");
        if (is_text(name, n))
            *text = data;
        else if (ends(name, n, ".params"))
            *params = data;
    }
    return text->n || error_at(c, E_IMPORT, (Loc){.file = path},
                               "the archive has no Relay text, src/relay.txt");
}

/* ---- import ----------------------------------------------------------------------------------------- */

typedef struct {
    Ctx          *c;
    const char   *path;
    Bytes         text, archived; /* values in the archive */
    TvParser      parser;
    TvParams      params;
    const TvFunc *main;
    Shapes        shapes;
    NamedValues   inputs, results;
    GlobalDefs    functions;
} TvImport;

static bool open_file(Ctx *c, const char *path, Bytes file, Bytes *text, Bytes *params)
{
    switch (kind_of(file)) {
    case FILE_GRAPH:
        error_at(
            c, E_UNSUPPORTED, (Loc){.file = path},
            "a graph for TVM's executor, which has names of compiled functions, not operators");
        diag_hint(c->diags, "give the Relay text that it was built from, or a Model Library "
                            "Format archive, which has it as src/relay.txt");
        return false;
    case FILE_PARAMS:
        error_at(c, E_UNSUPPORTED, (Loc){.file = path},
                 "the values of a module's parameters alone");
        diag_hint(c->diags,
                  "give the Relay text; --weights names this file, if it is not beside it "
                  "by the same name");
        return false;
    case FILE_PRODUCT:
    case FILE_ARCHIVE: return open_archive(c, path, file, text, params);
    case FILE_JSON:
    case FILE_TEXT:
    case FILE_OTHER: break;
    }
    *text = file;
    *params = (Bytes){0};
    return true;
}

/* model.relay, model.txt: model.params, if it is there. */
static const char *beside(Ctx *c, const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    size_t      n = dot ? (size_t)(dot - path) : strlen(path);
    const char *name = intern_printf(c->strings, "%.*s.params", (int)n, path);

    return access(name, F_OK) ? NULL : name;
}

static bool open_params(TvImport *im, const ImportOptions *o, ImportFiles *files)
{
    Ctx        *c = im->c;
    const char *path = o->weights       ? intern(c->strings, o->weights)
                       : im->archived.n ? im->path
                                        : beside(c, im->path);
    Bytes       file = im->archived;

    im->params.index = map_new(c->arena);
    if (!path)
        return true;
    if (path != im->path) {
        if (!file_map(c->diags, path, &file))
            return false;
        vec_push(c->arena, files, path);
    }
    return tv_read_params(c, path, file, &im->params);
}

/* Values of parameters that there are not: those of another module. */
static bool check_params(TvImport *im)
{
    uint32_t before = diag_errors(im->c->diags);

    for (uint32_t i = 0; i < im->params.n; i++) {
        bool found = false;

        for (uint32_t k = 0; k < im->main->params.n; k++)
            found |= im->main->params.at[k].name == im->params.at[i]->name;
        if (found)
            continue;
        error_at(im->c, E_IMPORT, (Loc){.file = im->params.path}, "'%s' is no parameter of @main",
                 im->params.at[i]->name);
        diag_hint(im->c->diags,
                  im->archived.n
                      ? "TVM's passes named what the archive has: --weights names the file "
                        "of the values as they were given to relay.build"
                      : "these are the values of another module, or of one that TVM's "
                        "passes changed");
        break;
    }
    return diag_errors(im->c->diags) == before;
}

static const Expr *main_param(TvImport *im, const TvParam *x, const ImportOptions *o)
{
    Ctx               *c = im->c;
    const Const       *k = map_get(im->params.index, PTR_KEY(x->name));
    const ImportValue *value = value_given(o, x->name);
    const Type        *type;
    const Expr        *e;

    if (!x->tensor) {
        error_at(c, E_UNSUPPORTED, x->loc, "'%%%s' is no tensor, or its type is not written",
                 x->name);
        diag_hint(c->diags, "relay.transform.InferType() before the module is written fills types "
                            "in; data has to be made of tensors in @main");
        return NULL;
    }
    if (k && !value) {
        if (x->type && k->type != x->type)
            return error_at(c, E_IMPORT, x->loc, "'%%%s' is %s, and %s in '%s'", x->name,
                            type_text(c, x->type), type_text(c, k->type), im->params.path);
        return expr_const(c, k, x->loc);
    }
    vec_push(c->arena, &im->inputs.names, x->name);
    if (!(type = shapes_input(&im->shapes, x->loc, x->name, x->dtype, x->rank, x->dims)))
        return NULL;
    e = value ? value_expr(c, x->loc, value, type) : expr_var(c, x->name, type, x->loc);
    if (e && !value)
        vec_push(c->arena, &im->inputs.at, e);
    return e;
}

/* The values of main's parameters; NULL with an error. */
static const Expr **bind_inputs(TvImport *im, const ImportOptions *o)
{
    uint32_t     before = diag_errors(im->c->diags);
    const Expr **args = NEW_ARRAY(im->c->arena, const Expr *, im->main->params.n + 1);

    im->shapes = shapes_new(im->c, o);
    for (uint32_t i = 0; i < im->main->params.n; i++) {
        const TvParam *x = &im->main->params.at[i];

        if (x->tensor && !map_get(im->params.index, PTR_KEY(x->name)))
            shapes_see(&im->shapes, x->name, x->rank, x->dims);
    }
    for (uint32_t i = 0; i < im->main->params.n; i++)
        args[i] = main_param(im, &im->main->params.at[i], o);
    return shapes_check(&im->shapes, (Loc){.file = im->path}, im->inputs.names.n,
                        im->inputs.names.at) &&
                   diag_errors(im->c->diags) == before
               ? args
               : NULL;
}

/* Fields of a tuple are results, as many tuples as there are. */
static bool add_results(TvImport *im, const Expr *e)
{
    Ctx *c = im->c;
    VEC(const Expr *) todo = {0};

    vec_push(c->scratch, &todo, e);
    while (todo.n) {
        uint32_t    i = im->results.at.n;
        const char *name;

        e = todo.at[--todo.n];
        if (e->type && e->type->kind == TYPE_TUPLE) {
            for (uint32_t k = e->type->n; k-- > 0;) {
                const Expr *part = e->kind == EXPR_TUPLE ? e->kids[k] : expr_proj(c, e, k, e->loc);

                vec_push(c->scratch, &todo, part);
            }
            continue;
        }
        name = i < im->parser.results.n ? im->parser.results.at[i]
                                        : intern_printf(c->strings, "output%u", i);
        if (!result_add(c, &im->results, name, e, (Loc){.file = im->path}))
            return false;
    }
    return true;
}

static bool read_tokens(TvImport *im)
{
    TvParser *p = &im->parser;

    if (kind_of(im->text) == FILE_JSON)
        return tv_read_graph(im->c, im->path, im->text, &p->tokens, &p->nconsts, &p->consts);
    return tv_lex(im->c, im->path, im->text, &p->tokens) &&
           (!p->tokens.metadata.n ||
            tv_read_metadata(im->c, im->path, p->tokens.metadata, &p->nconsts, &p->consts));
}

const Module *tvm_import(Ctx *c, const char *path, Bytes file, const ImportOptions *o,
                         ImportFiles *files)
{
    TvImport    im = {.c = c, .path = path, .parser = {.c = c}};
    NamedValues none = {0};
    const Expr *body, **args;

    if (!open_file(c, path, file, &im.text, &im.archived) || !read_tokens(&im) ||
        !(im.main = tv_parse(&im.parser)) || !open_params(&im, o, files) || !check_params(&im) ||
        !(args = bind_inputs(&im, o)) ||
        !(body = tv_eval(&im.parser, im.main, args, &im.functions)))
        return NULL;
    if ((!o->only_tensors && !add_results(&im, body)) ||
        !results_ask(c, &im.results, o, &none, (Loc){.file = path}) ||
        !shapes_check_dims(&im.shapes, (Loc){.file = path}))
        return NULL;
    return build_module(c, path, &im.inputs, &im.results, 0, NULL, &im.functions);
}

/* All sizes are in the text: the module says it. */
bool tvm_describe(Ctx *c, const char *path, Bytes file, const ImportOptions *o, ModelSignature *out)
{
    (void)c;
    (void)path;
    (void)file;
    (void)o;
    (void)out;
    return false;
}
