/* Runs one case of the ONNX node suite in the interpreter.
 *
 *     onnx_case MODEL INPUTS OUTPUTS
 *
 * INPUTS holds input_0.pb, input_1.pb .. (a TensorProto each); OUTPUTS gets output_0.pb and so on.
 * Dimensions that the model leaves open are those of the inputs.  Shapes are fixed when a model is
 * compiled, so a case whose result's shape hangs on an input's values is compiled for these values:
 * first integers become constants, then all inputs but the first, then all. */
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
    Import      im = {
             .c = c, .path = path, .files = NEW(c->arena, ImportFiles), .mapped = map_new(c->arena)};
    const Expr *e;
    Bytes       file;

    if (access(path, R_OK) || !file_map(c->diags, path, &file) ||
        !pb_read(c->diags, c->arena, (Loc){.file = path}, &onnx_tensor, file, &t) ||
        t.data_type == ONNX_INT4 || t.data_type == ONNX_UINT4)
        return NULL;
    e = onnx_constant(&im, &t, (Loc){.file = path});
    return e ? e->u.constant : NULL;
}

static void varint(StrBuf *s, uint64_t v)
{
    for (; v > 127; v >>= 7)
        str_addc(s, (char)(v | 128));
    str_addc(s, (char)v);
}

/* A TensorProto: dims, data_type, raw_data. */
static bool write_pb(const char *folder, uint32_t i, const Const *k)
{
    StrBuf  s = strbuf(c->arena);
    int64_t v, type = 1;
    DType   t;

    for (uint32_t d = 0; d < k->type->n; d++) {
        type_dim(k->type, d, &v);
        str_addc(&s, 1 << 3);
        varint(&s, (uint64_t)v);
    }
    while (!onnx_dtype(type, &t) || !dtype_eq(t, k->type->dtype))
        type++;
    str_addc(&s, 2 << 3);
    varint(&s, (uint64_t)type);
    str_addc(&s, 9 << 3 | 2);
    varint(&s, k->data.n);
    str_addn(&s, (const char *)k->data.at, k->data.n);
    return file_write(c->diags, arena_printf(c->arena, "%s/output_%u.pb", folder, i),
                      (Bytes){(const uint8_t *)s.at, s.n});
}

typedef struct {
    VEC(ImportShape) shapes;
    VEC(ImportValue) inputs; /* all, by name */
} Inputs;

static void read_inputs(const char *path, const char *folder, Inputs *in)
{
    OnnxModel model = {0};
    Bytes     file;
    Map      *constants = map_new(c->arena);

    if (!file_map(c->diags, path, &file) ||
        !pb_read(c->diags, c->arena, (Loc){.file = path}, &onnx_model, file, &model) ||
        !model.graph)
        return;
    for (uint32_t i = 0; i < model.graph->initializer.n; i++) {
        const OnnxTensor *t = model.graph->initializer.at[i];

        map_put(constants, PTR_KEY(intern(c->strings, t->name ? t->name : "")), (void *)t);
    }
    for (uint32_t i = 0, file_index = 0; i < model.graph->input.n; i++) {
        const OnnxValue *v = model.graph->input.at[i];
        const char      *name = intern(c->strings, v->name ? v->name : "");
        int64_t         *dims = NEW_ARRAY(c->arena, int64_t, MAX_RANK);
        const Const     *k;

        if (map_get(constants, PTR_KEY(name)) || !(k = input(folder, file_index++)))
            continue;
        for (uint32_t d = 0; d < k->type->n; d++)
            type_dim(k->type, d, &dims[d]);
        vec_push(c->arena, &in->shapes,
                 ((ImportShape){.name = name, .ndim = k->type->n, .dims = dims}));
        vec_push(c->arena, &in->inputs, ((ImportValue){.name = name, .value = k}));
    }
}

/* Import with some inputs as constants: 0 none, 1 integers, 2 all but the first, 3 all. */
static const Module *import(const char *path, const Inputs *in, int how)
{
    VEC(ImportValue) bound = {0};
    VEC(ImportShape) shapes = {0};
    ImportOptions o;

    for (uint32_t i = 0; i < in->inputs.n; i++) {
        bool number = !dtype_is_float(in->inputs.at[i].value->type->dtype);

        if ((how == 1 && number) || (how == 2 && i > 0) || how == 3)
            vec_push(c->arena, &bound, in->inputs.at[i]);
        else
            vec_push(c->arena, &shapes, in->shapes.at[i]);
    }
    o = (ImportOptions){
        .nshapes = shapes.n, .shapes = shapes.at, .nvalues = bound.n, .values = bound.at};
    return frontend_import(c, path, "onnx", &o, NULL);
}

static int run(char **argv)
{
    const Module       *m = NULL;
    const Const        *in[64] = {0};
    const Const *const *out;
    const Expr         *main;
    Inputs              given = {0};
    uint32_t            nout;

    read_inputs(argv[1], argv[2], &given);
    diag_drop(c->diags, 0); /* inputs that are no tensors: the import says it better */
    for (int how = 0; how < 4; how++) {
        if ((m = import(argv[1], &given, how)) || diag_status(c->diags) != 3 || how == 3)
            break;
        diag_drop(c->diags, 0);
    }
    if (!m)
        return finish(0);
    main = module_func(m, "main");
    for (uint32_t i = 0; i < func_nparams(main) && i < COUNT(in); i++) {
        for (uint32_t k = 0; k < given.inputs.n; k++)
            if (!strcmp(given.inputs.at[k].name, func_param(main, i)->u.var.name))
                in[i] = given.inputs.at[k].value;
        if (!in[i])
            return finish(1);
    }
    if (!relay_eval(c, m, func_nparams(main), in, &nout, &out))
        return finish(1);
    for (uint32_t i = 0; i < nout; i++)
        if (!write_pb(argv[3], i, out[i]))
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
