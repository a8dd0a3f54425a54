/* Runs one case of the ONNX node suite in the interpreter.
 *
 *     onnx_case MODEL INPUTS OUTPUTS
 *
 * INPUTS holds input_0.pb, input_1.pb .. (a TensorProto each); OUTPUTS gets output_0.npy and so on.
 * Dimensions that the model leaves open are those of the inputs.  An input that is not a parameter
 * of the imported module is a constant to it: then input i goes to the parameter of its name. */
#include "frontends/onnx/onnx.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static Ctx *c;

static int finish(int status)
{
    StrBuf s = strbuf(c->arena);

    diag_print(c->diags, DIAG_TEXT, &s);
    fputs(s.at ? s.at : "", stdout);
    return status ? status : diag_status(c->diags);
}

/* input_i.pb as a constant; NULL without an error if there is no such file. */
static const Const *input(const char *folder, uint32_t i)
{
    const char *path = arena_printf(c->arena, "%s/input_%u.pb", folder, i);
    OnnxTensor  t = {0};
    Import      im = {.c = c, .path = path, .files = NEW(c->arena, ImportFiles)};
    const Expr *e;
    Bytes       file;

    if (access(path, R_OK) || !file_map(c->diags, path, &file) ||
        !pb_read(c->diags, c->arena, (Loc){.file = path}, &onnx_tensor, file, &t))
        return NULL;
    e = onnx_constant(&im, &t, (Loc){.file = path});
    return e ? e->u.constant : NULL;
}

static bool write_npy(const char *folder, uint32_t i, const Const *k)
{
    static const char kinds[] = {'i', 'u', 'f', 0, 'V', 0, 'b'};
    int64_t           dims[MAX_RANK] = {0};
    NpyArray          v = {.kind = kinds[k->type->dtype.code], .size = dtype_bytes(k->type->dtype)};

    for (uint32_t d = 0; d < k->type->n; d++)
        type_dim(k->type, d, &dims[d]);
    v.ndim = k->type->n;
    v.dims = dims;
    v.data = k->data;
    return file_write(c->diags, arena_printf(c->arena, "%s/output_%u.npy", folder, i),
                      npy_write(c->arena, &v));
}

/* Shapes for the model's inputs, from the files; the names come from the model itself. */
static ImportOptions shapes(const char *path, const char *folder)
{
    VEC(ImportShape) v = {0};
    OnnxModel model = {0};
    Bytes     file;

    if (!file_map(c->diags, path, &file) ||
        !pb_read(c->diags, c->arena, (Loc){.file = path}, &onnx_model, file, &model) || !model.graph)
        return (ImportOptions){0};
    for (uint32_t i = 0; i < model.graph->input.n; i++) {
        const OnnxValue *in = model.graph->input.at[i];
        const Const     *k = input(folder, i);
        int64_t         *dims = NEW_ARRAY(c->arena, int64_t, MAX_RANK);

        if (!k || !in->name)
            continue;
        for (uint32_t d = 0; d < k->type->n; d++)
            type_dim(k->type, d, &dims[d]);
        vec_push(c->arena, &v, ((ImportShape){in->name, k->type->n, dims}));
    }
    return (ImportOptions){.nshapes = v.n, .shapes = v.at};
}

static int run(char **argv)
{
    ImportOptions       o = shapes(argv[1], argv[2]);
    const Module       *m = frontend_import(c, argv[1], "onnx", &o, NULL);
    const Const        *in[64];
    const Const *const *out;
    const Expr         *main;
    uint32_t            nout;

    if (!m)
        return finish(0);
    main = module_func(m, "main");
    for (uint32_t i = 0; i < func_nparams(main) && i < COUNT(in); i++)
        if (!(in[i] = input(argv[2], i)))
            return finish(1);
    if (!relay_eval(c, m, func_nparams(main), in, &nout, &out))
        return finish(1);
    for (uint32_t i = 0; i < nout; i++)
        if (!write_npy(argv[3], i, out[i]))
            return finish(0);
    return finish(0);
}

int main(int argc, char **argv)
{
    Arena *arena = arena_new(NULL);
    int    status = 2;

    c = ctx_new(arena, diags_new(arena), op_table);
    if (argc == 4)
        status = run(argv);
    ctx_free(c);
    arena_free(arena);
    return status;
}
