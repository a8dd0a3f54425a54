/* The two nets as one model: what init_net fills are its weights, one operator of predict_net after
 * another. */
#include "frontends/caffe2/caffe2.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

/* ---- files ------------------------------------------------------------------------------------------ */

/* An operator has its type as field 4, a word, and results as field 2. */
static bool is_op(Bytes b)
{
    Reader r = reader(b);
    PbItem x;
    bool   type = false, output = false;

    while (pb_next(&r, &x)) {
        if (x.number < 1 || x.number > 11)
            return false;
        output |= x.number == 2 && x.wire == PB_WIRE_LEN;
        if (x.number != 4)
            continue;
        if (x.wire != PB_WIRE_LEN || !x.bytes.n || !isupper(x.bytes.at[0]))
            return false;
        for (size_t i = 0; i < x.bytes.n; i++)
            if (!isalnum(x.bytes.at[i]) && x.bytes.at[i] != '_')
                return false;
        type = true;
    }
    return !r.bad && type && output;
}

/* A name and operators. */
static bool is_net(Bytes file)
{
    Reader r = reader(file);
    PbItem x;

    for (uint32_t i = 0; i < 4 && pb_next(&r, &x); i++) {
        if (x.wire != PB_WIRE_LEN && x.number != 4)
            return false;
        if (x.number == 2)
            return is_op(x.bytes);
        if (x.number != 1 && x.number != 3 && x.number != 4)
            return false;
    }
    return false;
}

static bool is_text(Bytes file)
{
    return pb_looks_like_text(&c2_net, file) && memmem(file.at, file.n, "op", 2) != NULL &&
           memmem(file.at, file.n, "type:", 5) != NULL && !memmem(file.at, file.n, "node", 4);
}

int caffe2_bid(const char *path, Bytes file)
{
    if (is_net(file))
        return 88;
    if (is_text(file))
        return 82;
    return strstr(path, "predict_net.pb") ? 25 : 0;
}

bool c2_read_net(Ctx *c, const char *path, Bytes file, C2Net *out)
{
    Loc loc = {.file = path};

    memset(out, 0, sizeof *out);
    return is_text(file) ? pb_read_text(c->diags, c->arena, loc, &c2_net, file, out)
                         : pb_read(c->diags, c->arena, loc, &c2_net, file, out);
}

/* "net/predict_net.pb" has "net/init_net.pb"; what Detectron writes, "net/model.pb", has
 * "net/model_init.pb". */
static const char *beside(Ctx *c, const char *path)
{
    static const char word[] = "predict_net";
    const char       *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    const char       *at = strstr(file, word), *end = strrchr(file, '.');

    if (at)
        return intern_printf(c->strings, "%.*sinit_net%s", (int)(at - path), path,
                             at + strlen(word));
    return end ? intern_printf(c->strings, "%.*s_init%s", (int)(end - path), path, end) : NULL;
}

bool c2_open_init(C2Import *im, const char *given, ImportFiles *files)
{
    Ctx  *c = im->c;
    Bytes file;

    im->filled = map_new(c->arena);
    im->init_path = given ? intern(c->strings, given) : beside(c, im->path);
    if (!given && im->init_path && access(im->init_path, F_OK))
        im->init_path = NULL;
    if (!im->init_path)
        return true;
    if (!file_map(c->diags, im->init_path, &file))
        return false;
    vec_push(c->arena, files, im->init_path);
    if (!c2_read_net(c, im->init_path, file, &im->init))
        return false;
    for (uint32_t i = 0; i < im->init.op.n; i++) {
        C2OpDef *op = im->init.op.at[i];

        if (op->output.n)
            map_put(im->filled, PTR_KEY(intern(c->strings, op->output.at[0])), op);
    }
    return true;
}

/* ---- names ------------------------------------------------------------------------------------------ */

/* What the first operator that takes it takes it as, a letter of ops.def; 0: no operator does. */
static char role_of(const C2Import *im, const char *name)
{
    C2Ops ops = {0};

    c2_all_ops(im->c->scratch, &im->net, &ops);
    for (uint32_t i = 0; i < ops.n; i++) {
        const C2OpDef *op = ops.at[i];
        const C2Row   *r = c2_row(op->type ? op->type : "");

        for (uint32_t k = 0; r && r->convert != c2_if && k < op->input.n; k++)
            if (!strcmp(op->input.at[k], name))
                return c2_role(r, k);
    }
    return 0;
}

/* Values are given in the file; what is filled with one number is a place to put them in, unless it
 * is a weight. */
bool c2_is_input(const C2Import *im, const char *name, const C2OpDef **fill)
{
    const C2OpDef *op = map_get(im->filled, PTR_KEY(name));

    *fill = op;
    return !op || (op->type && !strcmp(op->type, "ConstantFill") && role_of(im, name) != 'w');
}

bool c2_input_is_bytes(const C2Import *im, const char *name)
{
    return role_of(im, name) == 'b';
}

/* Exporters fill an input with one cell if they do not know its shape. */
uint32_t c2_fill_shape(const C2OpDef *fill, InputDim *dims)
{
    const C2Arg *a = fill ? c2_arg_of(fill, "shape") : NULL;

    if (!a || a->ints.n < 1 || a->ints.n > MAX_RANK || (a->ints.n == 1 && a->ints.at[0] == 1))
        return UINT32_MAX;
    for (uint32_t i = 0; i < a->ints.n; i++)
        dims[i] = (InputDim){a->ints.at[i] > 0 ? a->ints.at[i] : -1, NULL};
    return a->ints.n;
}

/* ---- one operator ----------------------------------------------------------------------------------- */

static const Expr *value_of(const C2Import *im, const char *name)
{
    return map_get(im->values, PTR_KEY(intern(im->c->strings, name)));
}

static bool takes_bytes(const C2Row *r)
{
    return !strncmp(r->name, "Int8", 4) && r->convert != c2_int8_quantize;
}

/* Operands whose cells count one by one, images of one shape that are seen with their channels
 * last, as they lie: the result is seen so, instead of them. */
static bool unmoved(C2Node *n)
{
    for (uint32_t i = 0; i < n->nin; i++)
        if (c2_role(n->row, i) != 'c' || !build_is_moved(n->in[i]) ||
            n->in[i]->type != n->in[0]->type)
            return false;
    for (uint32_t i = 0; i < n->nin; i++)
        n->in[i] = build_channels_first(&n->b, n->in[i]);
    return n->nin > 0;
}

/* `ordinal` 0: of init_net. */
static bool convert(C2Import *im, const C2OpDef *op, const C2Row *row, uint32_t ordinal)
{
    Ctx        *c = im->c;
    uint32_t    before = diag_errors(c->diags);
    const char *name = intern(c->strings, op->output.n ? op->output.at[0] : "");
    C2Node      n = {.im = im,
                     .op = op,
                     .row = row,
                     .nin = op->input.n,
                     .nout = op->output.n,
                     .order = "NCHW",
                     .scales = NEW_ARRAY(c->arena, const C2Scale *, op->input.n + 1),
                     .in = NEW_ARRAY(c->arena, const Expr *, op->input.n + 1),
                     .out = NEW_ARRAY(c->arena, const Expr *, op->output.n + 1)};
    bool        ok = true, moved;

    n.b = (Build){c, {ordinal ? im->path : im->init_path, ordinal, 0, name}, row->name};
    for (uint32_t i = 0; i < n.nin && ok; i++) {
        n.scales[i] = map_get(im->scales, PTR_KEY(intern(c->strings, op->input.at[i])));
        if (!(n.in[i] = value_of(im, op->input.at[i])))
            ok = c2_error(&n, E_IMPORT, "operand '%s' has no value", op->input.at[i]);
        else if (!n.scales[i] == takes_bytes(row))
            ok = c2_error(&n, E_IMPORT, "operand '%s' is %s", op->input.at[i],
                          n.scales[i] ? "of bytes with a scale" : "not of bytes with a scale");
    }
    moved = ok && unmoved(&n);
    if (!ok || !row->convert(&n) ||
        (moved && !c2_put(&n, 0, build_channels_last(&n.b, n.out[0]))) ||
        diag_errors(c->diags) != before) {
        diag_drop(c->diags, before + 1); /* what follows from the first */
        if (diag_errors(c->diags) == before)
            BUG("%s '%s' failed to import without an error", row->name, name);
        return false;
    }
    for (uint32_t i = 0; i < n.nout; i++)
        map_put(im->scales, PTR_KEY(intern(c->strings, op->output.at[i])), i ? NULL : n.gives);
    for (uint32_t i = 0; i < n.nout; i++)
        if (n.out[i])
            map_put(im->values, PTR_KEY(intern(c->strings, op->output.at[i])),
                    (void *)(uintptr_t)n.out[i]);
    return true;
}

bool c2_run(C2Import *im, const C2Net *net, const bool *needed, uint32_t ordinal)
{
    for (uint32_t i = 0; i < net->op.n; i++) {
        const C2OpDef *op = net->op.at[i];

        if (needed[i] && !convert(im, op, c2_row(op->type), ordinal ? ordinal : i + 1))
            return false;
    }
    return true;
}

/* ---- inputs and weights ----------------------------------------------------------------------------- */

static bool is_given(const ImportOptions *o, const char *name)
{
    for (uint32_t i = 0; i < o->nshapes; i++)
        if (!strcmp(o->shapes[i].name, name))
            return true;
    return value_given(o, name) != NULL;
}

static bool import_input(C2Import *im, const char *name, const C2OpDef *fill,
                         const ImportOptions *o)
{
    Ctx               *c = im->c;
    Loc                loc = {.file = im->path};
    const ImportValue *value = value_given(o, name);
    InputDim           dims[MAX_RANK];
    uint32_t           rank = c2_fill_shape(fill, dims);
    DType              given = c2_input_is_bytes(im, name) ? DT_U8 : DT_F32;
    const Type        *type;
    const Expr        *x;

    vec_push(c->arena, &im->inputs.names, name);
    if (!fill && !is_given(o, name) && role_of(im, name) == 'w') {
        error_at(c, E_IMPORT, loc, "'%s' has no value%s%s%s", name, im->init_path ? " in '" : "",
                 im->init_path ? im->init_path : "", im->init_path ? "'" : "");
        diag_hint(c->diags,
                  im->init_path ? "--shape '%s:[..]' makes it an input"
                                : "init_net.pb, which fills '%s', would be beside "
                                  "predict_net.pb: --weights names another",
                  name);
        return true; /* what else is missing is said, too */
    }
    if (!(type = shapes_input(&im->shapes, loc, name, shapes_dtype(&im->shapes, name, given), rank,
                              dims)))
        return true;
    x = value ? value_expr(c, loc, value, type) : expr_var(c, name, type, loc);
    if (x && !value)
        vec_push(c->arena, &im->inputs.at, x);
    map_put(im->values, PTR_KEY(name), (void *)(uintptr_t)x);
    return x != NULL;
}

static bool import_weight(C2Import *im, const C2OpDef *fill)
{
    const C2Row *r = c2_row(fill->type ? fill->type : "");

    uint32_t least, most;

    if (r)
        c2_operands(r, &least, &most);
    if (!r || least > 0)
        return error_at(im->c, E_UNSUPPORTED, (Loc){.file = im->init_path},
                        "'%s' is filled by %s, which is no value in the file", fill->output.at[0],
                        fill->type ? fill->type : "nothing");
    return convert(im, fill, r, 0);
}

/* Names that have to have a value before the net runs, in the order in which operators take them.
 */
static void outer_names(C2Import *im, const TextList *before, const TextList *results,
                        TextList *out)
{
    Ctx  *c = im->c;
    Map  *wanted = map_new(c->scratch);
    C2Ops ops = {0};

    c2_all_ops(c->scratch, &im->net, &ops);
    for (uint32_t i = 0; i < before->n; i++)
        map_put(wanted, PTR_KEY(before->at[i]), wanted);
    for (uint32_t i = 0; i <= ops.n; i++) {
        uint32_t           count = i < ops.n ? ops.at[i]->input.n : results->n;
        const char *const *names = i < ops.n ? ops.at[i]->input.at : results->at;

        for (uint32_t k = 0; k < count; k++) {
            const char *name = intern(c->strings, names[k]);

            if (map_get(wanted, PTR_KEY(name)))
                vec_push(c->arena, out, name);
            map_put(wanted, PTR_KEY(name), NULL);
        }
    }
    for (uint32_t i = 0; i < before->n; i++) /* what a branch leaves as it was */
        if (map_get(wanted, PTR_KEY(before->at[i])))
            vec_push(c->arena, out, before->at[i]);
}

static bool import_outer(C2Import *im, const TextList *names, const ImportOptions *o)
{
    uint32_t       before = diag_errors(im->c->diags);
    const C2OpDef *fill;
    InputDim       dims[MAX_RANK];

    im->shapes = shapes_new(im->c, o);
    for (uint32_t i = 0; i < names->n; i++)
        if (c2_is_input(im, names->at[i], &fill)) {
            uint32_t rank = c2_fill_shape(fill, dims);

            shapes_see(&im->shapes, names->at[i], rank, dims);
        }
    for (uint32_t i = 0; i < names->n; i++) {
        bool input = c2_is_input(im, names->at[i], &fill) || value_given(o, names->at[i]);

        if (!(input ? import_input(im, names->at[i], fill, o) : import_weight(im, fill)))
            return false;
    }
    return shapes_check(&im->shapes, (Loc){.file = im->path}, im->inputs.names.n,
                        im->inputs.names.at) &&
           diag_errors(im->c->diags) == before;
}

/* ---- results ---------------------------------------------------------------------------------------- */

/* Those that the net says, or else what its last operator gives; then those that are asked for
 * besides. */
static bool choose_results(C2Import *im, const ImportOptions *o, TextList *out)
{
    Ctx           *c = im->c;
    const C2OpDef *last = im->net.op.n ? im->net.op.at[im->net.op.n - 1] : NULL;

    for (uint32_t i = 0; i < im->net.output.n && !o->only_tensors; i++)
        vec_push(c->arena, out, intern(c->strings, im->net.output.at[i]));
    if (!im->net.output.n && last && last->output.n && !o->only_tensors)
        vec_push(c->arena, out, intern(c->strings, last->output.at[0]));
    for (uint32_t i = 0; i < o->ntensors; i++) {
        const char *name = intern(c->strings, o->tensors[i]);
        bool        have = false;

        for (uint32_t k = 0; k < out->n; k++)
            have |= out->at[k] == name;
        if (!have)
            vec_push(c->arena, out, name);
    }
    return out->n > 0 || error_at(c, E_IMPORT, (Loc){.file = im->path}, "the net has no outputs");
}

static bool add_results(C2Import *im, const TextList *names, NamedValues *r)
{
    Ctx *c = im->c;
    Loc  loc = {.file = im->path};

    for (uint32_t i = 0; i < names->n; i++) {
        const Expr *v = value_of(im, names->at[i]);

        if (!v)
            return error_at(c, E_UNSUPPORTED, loc, "output '%s' is not computed", names->at[i]);
        if (!result_add(c, r, names->at[i], v, loc))
            return false;
    }
    return true;
}

/* A name that no operator gives and no net lists is no tensor. */
static bool check_results(C2Import *im, const TextList *names)
{
    Ctx     *c = im->c;
    Map     *known = map_new(c->scratch);
    TextList all = {0};

    for (uint32_t i = 0; i < im->net.op.n; i++) {
        const C2OpDef *op = im->net.op.at[i];

        for (uint32_t k = 0; k < op->output.n + op->input.n; k++)
            vec_push(c->scratch, &all,
                     intern(c->strings,
                            k < op->output.n ? op->output.at[k] : op->input.at[k - op->output.n]));
    }
    for (uint32_t i = 0; i < all.n; i++)
        map_put(known, PTR_KEY(all.at[i]), known);
    for (uint32_t i = 0; i < names->n; i++)
        if (!map_get(known, PTR_KEY(names->at[i])))
            return no_tensor(c, ((Loc){.file = im->path}), names->at[i], all.n, all.at);
    return true;
}

const Module *caffe2_import(Ctx *c, const char *path, Bytes file, const ImportOptions *o,
                            ImportFiles *files)
{
    C2Import im = {.c = c, .path = path, .values = map_new(c->arena), .scales = map_new(c->arena)};
    TextList results = {0}, outer = {0};
    NamedValues r = {0};
    GlobalDefs  functions = {0};
    TextList    before = {0};
    bool       *needed;

    if (!c2_read_net(c, path, file, &im.net) || !choose_results(&im, o, &results) ||
        !check_results(&im, &results))
        return NULL;
    needed = c2_needed(c, &im.net, &results, &before);
    if (!c2_survey(&im, needed) || !c2_open_init(&im, o->weights, files))
        return NULL;
    outer_names(&im, &before, &results, &outer);
    if (!import_outer(&im, &outer, o) || !c2_run(&im, &im.net, needed, 0))
        return NULL;
    if (!add_results(&im, &results, &r) || !shapes_check_dims(&im.shapes, (Loc){.file = path}))
        return NULL;
    return build_module(c, path, &im.inputs, &r, im.binds.n, im.binds.at, &functions);
}
