/* A network: its input, one layer after another, its results. */
#include "frontends/darknet/darknet.h"

#include <string.h>

int darknet_bid(const char *path, Bytes file)
{
    static const char *const first[] = {"[net]", "[network]"};

    /* Comments and blank lines may come before. */
    while (file.n && (strchr(" \t\r\n", file.at[0]) || strchr("#;", file.at[0]))) {
        const uint8_t *end = strchr("#;", file.at[0]) ? memchr(file.at, '\n', file.n) : file.at;
        size_t         n = end ? (size_t)(end - file.at) + 1 : file.n;

        if (!file.at[0])
            return 0;
        file = (Bytes){file.at + n, file.n - n};
    }
    for (uint32_t i = 0; i < COUNT(first); i++)
        if (file.n >= strlen(first[i]) && !memcmp(file.at, first[i], strlen(first[i])))
            return 90;
    return str_ends(path, ".cfg") ? 20 : 0;
}

/* ---- input ---------------------------------------------------------------------------------------- */

#define INPUT "data"

/* One picture, or one row of numbers; NULL with an error. */
static const Expr *import_input(DarknetImport *im, const ImportOptions *o)
{
    static const char *const keys[] = {"channels", "height", "width", "inputs"};
    Ctx                     *c = im->c;
    DarknetNode        net = {.b = {c, {im->path, im->config.sections[0].line, 0, "net"}, "net"},
                              .im = im,
                              .s = &im->config.sections[0]};
    const ImportValue *value = value_given(o, INPUT);
    InputDim           dims[4];
    uint32_t           rank;
    int64_t            size;
    const Type        *type;
    const Expr        *x;

    for (uint32_t i = 0; i < COUNT(keys); i++)
        if (!darknet_size(&net, keys[i], 0, &size))
            return NULL;
    rank = darknet_input(&net, dims);
    if (!dims[1].value)
        return darknet_error(&net, E_IMPORT,
                             "it has neither width, height and channels nor inputs");
    im->shapes = shapes_new(c, o);
    shapes_see(&im->shapes, INPUT, rank, dims);
    vec_push(c->arena, &im->params.names, INPUT);
    type = shapes_input(&im->shapes, net.b.loc, INPUT, DT_F32, rank, dims);
    if (!type)
        return NULL;
    x = value ? value_expr(c, net.b.loc, value, type)
              : expr_var(c, intern(c->strings, INPUT), type, net.b.loc);
    if (!x)
        return NULL;
    if (!value)
        vec_push(c->arena, &im->params.at, x);
    im->height = rank == 4 ? build_dim(&net.b, x, 2) : 0;
    im->width = rank == 4 ? build_dim(&net.b, x, 3) : 0;
    return x;
}

/* ---- layers --------------------------------------------------------------------------------------- */

static bool import_layer(DarknetImport *im, uint32_t i, const Expr *x)
{
    const DarknetSection *s = &im->config.sections[1 + i];
    uint32_t              before = diag_errors(im->c->diags);
    DarknetNode           n = {
                  .im = im, .s = s, .index = i, .label = darknet_label(im->c, &im->config, i), .x = x};

    n.b = (Build){im->c, {im->path, s->line, 0, n.label}, s->name};
    if (!s->row->convert(&n) || !n.y || diag_errors(im->c->diags) != before) {
        diag_drop(im->c->diags, before + 1); /* what follows from the first */
        if (diag_errors(im->c->diags) == before)
            BUG("%s '%s' failed to import without an error", s->name, n.label);
        return false;
    }
    im->out[i] = n.y;
    return result_add(im->c, &im->tensors, n.label, n.y, n.b.loc) &&
           (!s->row->detects || result_add(im->c, &im->results, n.label, n.y, n.b.loc));
}

/* The last layer's, unless that only says how far off it is; what detects before it, too. */
static bool add_last(DarknetImport *im)
{
    uint32_t last = im->config.n - 2;

    while (last && im->config.sections[1 + last].row == darknet_row("cost"))
        last--;
    return im->config.sections[1 + last].row->detects ||
           result_add(im->c, &im->results, darknet_label(im->c, &im->config, last), im->out[last],
                      (Loc){.file = im->path});
}

/* ---- results -------------------------------------------------------------------------------------- */

static const Module *finish(DarknetImport *im, const ImportOptions *o)
{
    NamedValues r = o->only_tensors ? (NamedValues){0} : im->results;
    GlobalDefs  functions = {0};
    Loc         loc = {.file = im->path};

    for (uint32_t i = 0; i < im->states.names.n; i++)
        if (!result_add(im->c, &im->tensors, im->states.names.at[i], im->states.at.at[i], loc))
            return NULL;
    if (!results_ask(im->c, &r, o, &im->tensors, loc))
        return NULL;
    for (uint32_t i = 0; i < im->states.names.n && !o->only_tensors; i++)
        if (!result_have(&r, im->states.names.at[i]) &&
            !result_add(im->c, &r, im->states.names.at[i], im->states.at.at[i], loc))
            return NULL;
    return build_module(im->c, im->path, &im->params, &r, 0, NULL, &functions);
}

const Module *darknet_import(Ctx *c, const char *path, Bytes file, const ImportOptions *o,
                             ImportFiles *files)
{
    DarknetImport im = {.c = c, .path = path};
    const Expr   *x;

    if (!darknet_read(c, path, file, &im.config) || !darknet_survey(&im) ||
        !darknet_open_weights(&im, o->weights, files) || !(x = import_input(&im, o)))
        return NULL;
    im.out = NEW_ARRAY(c->arena, const Expr *, im.config.n);
    for (uint32_t i = 0; i + 1 < im.config.n; i++) {
        if (!import_layer(&im, i, x))
            return NULL;
        x = im.out[i];
    }
    if (!darknet_check_weights(&im) ||
        !shapes_check(&im.shapes, (Loc){.file = path}, im.params.names.n, im.params.names.at) ||
        !shapes_check_dims(&im.shapes, (Loc){.file = path}) || !add_last(&im))
        return NULL;
    return finish(&im, o);
}
