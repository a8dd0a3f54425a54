/* The program: JSON by the schema of torch.export, as structs.
 *
 * What is not understood of an argument is kept by its name in the file (PT_OTHER), so that the
 * node that has it can be named; what is missing or of another kind than the schema says is an
 * error. */
#include "base/json.h"
#include "frontends/pytorch/pytorch.h"

#include <math.h>
#include <string.h>

typedef struct {
    Ctx        *c;
    Loc         loc;
    const char *fault; /* the first one, NULL: none */
    uint32_t    depth;
} Reading;

static bool bad(Reading *r, const char *what)
{
    r->fault = r->fault ? r->fault : what;
    return false;
}

static const char *text_of(Reading *r, const json_t *x, const char *what)
{
    if (json_is_string(x))
        return intern(r->c->strings, json_string_value(x));
    bad(r, what);
    return "";
}

static uint32_t count_of(Reading *r, const json_t *list, const char *what)
{
    if (json_is_array(list) && json_array_size(list) < UINT32_MAX)
        return (uint32_t)json_array_size(list);
    bad(r, what);
    return 0;
}

/* The member of a union: {"as_int": 3}; the schema of version 1 has the others, too, as null. */
static const char *member(const json_t *x, const json_t **value)
{
    const char *key, *only = NULL;
    json_t     *v;

    *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)x, key, v)
    {
        if (json_is_null(v) && json_object_size(x) > 1)
            continue;
        if (only)
            return NULL;
        only = key;
        *value = v;
    }
    return only;
}

/* ---- arguments -------------------------------------------------------------------------------------- */

static bool read_graph(Reading *r, const json_t *g, PtGraph *out);

static PtArg number(double v)
{
    return (PtArg){.kind = PT_FLOAT, .f = v, .i = fabs(v) < 0x1p53 ? (int64_t)v : 0};
}

/* JSON has no word for these. */
static PtArg float_of(Reading *r, const json_t *x)
{
    const char *word = json_string_value(x);

    if (json_is_number(x))
        return number(json_number_value(x));
    if (word && !strcmp(word, "Infinity"))
        return number(INFINITY);
    if (word && !strcmp(word, "-Infinity"))
        return number(-INFINITY);
    if (!word || strcmp(word, "NaN") != 0)
        bad(r, "a float");
    return number(NAN);
}

static PtArg int_of(Reading *r, const json_t *x, PtKind kind)
{
    if (!json_is_integer(x))
        bad(r, "an integer");
    return (PtArg){.kind = kind, .i = json_integer_value(x), .f = (double)json_integer_value(x)};
}

static PtArg bool_of(Reading *r, const json_t *x)
{
    if (!json_is_boolean(x))
        bad(r, "a bool");
    return (PtArg){.kind = PT_BOOL, .i = json_is_true(x), .f = json_is_true(x)};
}

static PtArg named(Reading *r, const json_t *x, PtKind kind)
{
    return (PtArg){.kind = kind, .text = text_of(r, json_object_get(x, "name"), "a name")};
}

static PtArg arg_of(Reading *r, const json_t *x);

/* An element of a list, whose members are called like those of arguments. */
static PtArg element_of(Reading *r, const char *of, const json_t *x)
{
    if (!strcmp(of, "as_tensors"))
        return named(r, x, PT_TENSOR);
    if (!strcmp(of, "as_ints"))
        return int_of(r, x, PT_INT);
    if (!strcmp(of, "as_floats"))
        return float_of(r, x);
    if (!strcmp(of, "as_bools"))
        return bool_of(r, x);
    if (!strcmp(of, "as_strings"))
        return (PtArg){.kind = PT_STRING, .text = text_of(r, x, "a string")};
    return arg_of(r, x);
}

static PtArg list_of(Reading *r, const char *of, const json_t *list)
{
    uint32_t n = count_of(r, list, "a list");
    PtArg    a = {.kind = PT_LIST, .n = n, .at = NEW_ARRAY(r->c->arena, PtArg, n + 1)};

    for (uint32_t i = 0; i < n; i++)
        a.at[i] = element_of(r, of, json_array_get(list, i));
    return a;
}

static PtArg union_of(Reading *r, const char *key, const json_t *v)
{
    static const char *const lists[] = {"as_tensors",   "as_ints",       "as_floats",
                                        "as_bools",     "as_strings",    "as_sym_ints",
                                        "as_sym_bools", "as_sym_floats", "as_optional_tensors"};
    const json_t            *inner;
    PtArg                    a = {.kind = PT_OTHER, .text = intern(r->c->strings, key)};

    for (uint32_t i = 0; i < COUNT(lists); i++)
        if (!strcmp(key, lists[i]))
            return list_of(r, key, v);
    if (!strcmp(key, "as_none"))
        return (PtArg){.kind = PT_NONE};
    if (!strcmp(key, "as_tensor"))
        return named(r, v, PT_TENSOR);
    if (!strcmp(key, "as_int"))
        return int_of(r, v, PT_INT);
    if (!strcmp(key, "as_float"))
        return float_of(r, v);
    if (!strcmp(key, "as_bool"))
        return bool_of(r, v);
    if (!strcmp(key, "as_string"))
        return (PtArg){.kind = PT_STRING, .text = text_of(r, v, "a string")};
    if (!strcmp(key, "as_name"))
        return (PtArg){.kind = PT_SYMBOL, .text = text_of(r, v, "a name")};
    if (!strcmp(key, "as_sym_int") || !strcmp(key, "as_sym_float") || !strcmp(key, "as_sym_bool") ||
        !strcmp(key, "as_optional_tensor"))
        return arg_of(r, v);
    if (!strcmp(key, "as_scalar_type"))
        return int_of(r, v, PT_DTYPE);
    if (!strcmp(key, "as_memory_format"))
        return int_of(r, v, PT_FORMAT);
    if (!strcmp(key, "as_layout"))
        return int_of(r, v, PT_LAYOUT);
    if (!strcmp(key, "as_device"))
        return (PtArg){.kind = PT_DEVICE};
    if (!strcmp(key, "as_graph") && (inner = json_object_get(v, "graph"))) {
        a = named(r, v, PT_GRAPH);
        a.graph = NEW(r->c->arena, PtGraph);
        read_graph(r, inner, a.graph);
    }
    return a;
}

static PtArg arg_of(Reading *r, const json_t *x)
{
    const json_t *v;
    const char   *key = member(x, &v);
    PtArg         a = {.kind = PT_NONE};

    if (!key || ++r->depth > PT_MAX_NESTING) {
        bad(r, "an argument");
        return a;
    }
    a = union_of(r, key, v);
    r->depth--;
    return a;
}

/* ---- graphs ----------------------------------------------------------------------------------------- */

static PtArg *args_of(Reading *r, const json_t *list, uint32_t *n)
{
    PtArg *at = NEW_ARRAY(r->c->arena, PtArg, (*n = count_of(r, list, "arguments")) + 1);

    for (uint32_t i = 0; i < *n; i++)
        at[i] = arg_of(r, json_array_get(list, i));
    return at;
}

static InputDim dim_of(Reading *r, const json_t *x)
{
    const json_t *v, *text;
    const char   *key = member(x, &v), *name;

    if (key && !strcmp(key, "as_int") && json_is_integer(v) && json_integer_value(v) >= 0)
        return (InputDim){json_integer_value(v), NULL};
    text = json_object_get(v, "expr_str");
    if (!key || strcmp(key, "as_expr") != 0 || !json_is_string(text)) {
        bad(r, "a size");
        return (InputDim){-1, NULL};
    }
    name = pt_symbol_text(r->c->arena, json_string_value(text));
    return (InputDim){-1, name ? intern(r->c->strings, name) : NULL};
}

static PtMeta *meta_of(Reading *r, const json_t *x)
{
    const json_t *inner = json_object_get(x, "meta"), /* of version 1 */
        *sizes = json_object_get(inner ? inner : x, "sizes"),
                 *dtype = json_object_get(inner ? inner : x, "dtype");
    PtMeta *m = NEW(r->c->arena, PtMeta);

    x = inner ? inner : x;
    if (!json_is_integer(dtype))
        bad(r, "the type of a tensor");
    m->dtype_number = json_integer_value(dtype);
    m->known = pt_dtype(m->dtype_number, &m->dtype) &&
               json_integer_value(json_object_get(x, "layout")) == 7;
    m->ndim = count_of(r, sizes, "the sizes of a tensor");
    m->dims = NEW_ARRAY(r->c->arena, InputDim, m->ndim + 1);
    for (uint32_t i = 0; i < m->ndim; i++)
        m->dims[i] = dim_of(r, json_array_get(sizes, i));
    return m;
}

static void read_op(Reading *r, const json_t *x, PtOp *out)
{
    const json_t *in = json_object_get(x, "inputs"), *name = json_object_get(x, "name");
    const char   *target = text_of(r, json_object_get(x, "target"), "an operator's name");

    out->target = str_starts(target, "torch.ops.") ? target + strlen("torch.ops.") : target;
    out->nin = count_of(r, in, "arguments");
    out->names = NEW_ARRAY(r->c->arena, const char *, out->nin + 1);
    out->in = NEW_ARRAY(r->c->arena, PtArg, out->nin + 1);
    for (uint32_t i = 0; i < out->nin; i++) {
        const json_t *a = json_array_get(in, i);

        out->names[i] = text_of(r, json_object_get(a, "name"), "an argument's name");
        out->in[i] = arg_of(r, json_object_get(a, "arg"));
    }
    out->out = args_of(r, json_object_get(x, "outputs"), &out->nout);
    out->name = json_is_string(name)            ? text_of(r, name, "a name")
                : out->nout && out->out[0].text ? out->out[0].text
                                                : "";
}

static bool read_graph(Reading *r, const json_t *g, PtGraph *out)
{
    const json_t *nodes = json_object_get(g, "nodes"), *values;
    json_t       *x;
    const char   *name;

    if (++r->depth > PT_MAX_NESTING)
        return bad(r, "a graph: they are nested too deep");
    out->in = args_of(r, json_object_get(g, "inputs"), &out->nin);
    out->out = args_of(r, json_object_get(g, "outputs"), &out->nout);
    out->nops = count_of(r, nodes, "a list of nodes");
    out->ops = NEW_ARRAY(r->c->arena, PtOp, out->nops + 1);
    for (uint32_t i = 0; i < out->nops; i++) {
        read_op(r, json_array_get(nodes, i), &out->ops[i]);
        out->ops[i].ordinal = i + 1;
    }
    out->metas = map_new(r->c->arena);
    values = json_object_get(g, "tensor_values");
    if (!json_is_object(values))
        bad(r, "the types of tensors");
    json_object_foreach((json_t *)(uintptr_t)values, name, x)
        map_put(out->metas, PTR_KEY(intern(r->c->strings, name)), meta_of(r, x));
    r->depth--;
    return true;
}

/* ---- the signature ---------------------------------------------------------------------------------- */

static PtInput input_of(Reading *r, const json_t *x)
{
    const json_t *v;
    const char   *kind = member(x, &v);
    PtInput       in = {.kind = PT_UNKNOWN, .name = kind ? intern(r->c->strings, kind) : ""};

    static const struct {
        const char *kind, *name;
        PtInputKind is;
    } payloads[] = {{"parameter", "parameter_name", PT_PARAMETER},
                    {"buffer", "buffer_name", PT_BUFFER},
                    {"tensor_constant", "tensor_constant_name", PT_PARAMETER}};

    if (!kind) {
        bad(r, "an input of the signature");
        return in;
    }
    if (!strcmp(kind, "user_input")) {
        in.kind = PT_USER;
        in.arg = arg_of(r, json_object_get(v, "arg"));
    } else if (!strcmp(kind, "constant_input")) {
        in.kind = PT_UNUSED; /* it was a number or text; the graph does not use it */
    }
    for (uint32_t i = 0; i < COUNT(payloads); i++)
        if (!strcmp(kind, payloads[i].kind)) {
            in.kind = payloads[i].is;
            in.arg = named(r, json_object_get(v, "arg"), PT_TENSOR);
            in.name = text_of(r, json_object_get(v, payloads[i].name), "the name of a parameter");
        }
    return in;
}

static PtOutput output_of(Reading *r, const json_t *x)
{
    const json_t *v, *name;
    const char   *kind = member(x, &v);
    PtOutput      out = {.kind = PT_OTHER_OUTPUT, .name = kind ? intern(r->c->strings, kind) : ""};

    if (!kind) {
        bad(r, "an output of the signature");
        return out;
    }
    if (!strcmp(kind, "user_output")) {
        out.kind = PT_RESULT;
        out.arg = arg_of(r, json_object_get(v, "arg"));
        return out;
    }
    if (str_ends(kind, "_mutation")) {
        out.kind = PT_CHANGED;
        out.arg = named(r, json_object_get(v, "arg"), PT_TENSOR);
        if (!(name = json_object_get(v, "buffer_name")) &&
            !(name = json_object_get(v, "parameter_name")))
            name = json_object_get(v, "user_input_name");
        out.name = text_of(r, name, "the name of what is changed");
    }
    return out;
}

/* Version 1: {"inputs_to_parameters": {"arg0_1": "w"}, "buffers_to_mutate": {"add": "s"}, ..}; what
 * changes stands before the results. */
static void read_first_signature(Reading *r, const json_t *s, PtProgram *out)
{
    static const struct {
        const char *list;
        PtInputKind is;
    } payloads[] = {{"inputs_to_parameters", PT_PARAMETER}, {"inputs_to_buffers", PT_BUFFER}};
    const json_t  *changed = json_object_get(s, "buffers_to_mutate");
    const PtGraph *g = &out->graph;
    size_t         nchanged = json_object_size(changed);

    for (uint32_t i = 0; i < g->nin; i++) {
        PtInput in = {.kind = PT_USER, .arg = g->in[i]};

        for (uint32_t k = 0; k < COUNT(payloads) && in.arg.kind == PT_TENSOR; k++) {
            const json_t *name = json_object_get(json_object_get(s, payloads[k].list), in.arg.text);

            if (name) {
                in.kind = payloads[k].is;
                in.name = text_of(r, name, "the name of a parameter");
            }
        }
        vec_push(r->c->arena, &out->inputs, in);
    }
    for (uint32_t i = 0; i < g->nout; i++) {
        PtOutput o = {.kind = i < nchanged ? PT_CHANGED : PT_RESULT, .arg = g->out[i]};

        if (i >= nchanged)
            o.name = intern_printf(r->c->strings, "output_%zu", i - nchanged);
        else if (o.arg.kind == PT_TENSOR)
            o.name =
                text_of(r, json_object_get(changed, o.arg.text), "the name of what is changed");
        else
            bad(r, "a tensor that changes");
        vec_push(r->c->arena, &out->outputs, o);
    }
}

static void read_signature(Reading *r, const json_t *s, PtProgram *out)
{
    const json_t *in = json_object_get(s, "input_specs"), *res = json_object_get(s, "output_specs");
    uint32_t      nin = count_of(r, in, "a signature"), nres = count_of(r, res, "a signature");

    for (uint32_t i = 0; i < nin; i++)
        vec_push(r->c->arena, &out->inputs, input_of(r, json_array_get(in, i)));
    for (uint32_t i = 0, k = 0; i < nres; i++) {
        PtOutput o = output_of(r, json_array_get(res, i));

        if (o.kind == PT_RESULT)
            o.name = intern_printf(r->c->strings, "output_%u", k++);
        vec_push(r->c->arena, &out->outputs, o);
    }
}

/* ---- names of results --------------------------------------------------------------------------------
 * Those in a dictionary have its keys, others their places: output_0, output_1. */

typedef struct {
    Reading    *r;
    PtProgram  *p;
    uint32_t    at; /* of the outputs */
    uint32_t    depth;
    const char *name; /* of the dictionary's entry that is read, NULL: none */
} Leaves;

static void name_leaf(Leaves *l)
{
    while (l->at < l->p->outputs.n && l->p->outputs.at[l->at].kind != PT_RESULT)
        l->at++;
    if (l->at < l->p->outputs.n && l->name && l->p->outputs.at[l->at].arg.kind != PT_NONE)
        l->p->outputs.at[l->at].name = l->name;
    l->at++;
}

/* A tree: {"type": null} is a leaf; a dictionary has its keys in "context". */
static void name_tree(Leaves *l, const json_t *tree)
{
    const json_t *type = json_object_get(tree, "type"), *kids;
    const char   *context = json_string_value(json_object_get(tree, "context")), *up = l->name;
    json_t       *keys = NULL;
    size_t        n;

    if (!json_is_string(type)) {
        name_leaf(l);
        return;
    }
    if (++l->depth > PT_MAX_NESTING)
        return;
    kids = json_object_get(tree, "children_spec");
    n = json_array_size(kids);
    if (context && strcmp(json_string_value(type), "builtins.tuple") != 0)
        keys = json_read((Bytes){(const uint8_t *)context, strlen(context)}, NULL);
    for (size_t i = 0; i < n; i++) {
        const char *key = json_string_value(json_array_get(keys, i));
        Strings    *s = l->r->c->strings;

        if (key && json_array_size(keys) == n)
            l->name = up ? intern_printf(s, "%s.%s", up, key) : intern(s, key);
        else if (up)
            l->name = intern_printf(s, "%s.%zu", up, i);
        name_tree(l, json_array_get(kids, i));
    }
    l->name = up;
    l->depth--;
    json_decref(keys);
}

static void name_results(Reading *r, const json_t *module, PtProgram *p)
{
    const json_t *calls = json_object_get(module, "module_call_graph"),
                 *first = json_object_get(module, "call_spec"), /* of version 1 */
                     *signature = json_object_get(json_array_get(calls, 0), "signature");
    const char *text = json_string_value(json_object_get(first ? first : signature, "out_spec"));
    json_t     *spec = text ? json_read((Bytes){(const uint8_t *)text, strlen(text)}, NULL) : NULL;
    Leaves      l = {.r = r, .p = p};

    if (json_is_array(spec))
        name_tree(&l, json_array_get(spec, 1));
    json_decref(spec);
}

/* ---- the whole ---------------------------------------------------------------------------------------- */

static void read_ranges(Reading *r, const json_t *ranges, PtProgram *out)
{
    const char *name;
    json_t     *x;

    json_object_foreach((json_t *)(uintptr_t)ranges, name, x)
    {
        const json_t *lo = json_object_get(x, "min_val"), *hi = json_object_get(x, "max_val");
        PtRange       range = {intern(r->c->strings, name), 0, INT64_MAX};

        if (json_is_integer(lo))
            range.lo = json_integer_value(lo);
        if (json_is_integer(hi))
            range.hi = json_integer_value(hi);
        vec_push(r->c->arena, &out->ranges, range);
    }
}

static void read_all(Reading *r, const json_t *root, PtProgram *out)
{
    const json_t *module = json_object_get(root, "graph_module");
    const json_t *version = json_object_get(root, "schema_version");

    out->major =
        json_integer_value(json_is_integer(version) ? version : json_object_get(version, "major"));
    out->minor = json_integer_value(json_object_get(version, "minor"));
    if (!json_is_object(module) || out->major < 1) {
        bad(r, "a program of torch.export");
        return;
    }
    read_graph(r, json_object_get(module, "graph"), &out->graph);
    if (json_object_get(json_object_get(module, "signature"), "user_inputs"))
        read_first_signature(r, json_object_get(module, "signature"), out);
    else
        read_signature(r, json_object_get(module, "signature"), out);
    name_results(r, module, out);
    read_ranges(r, json_object_get(root, "range_constraints"), out);
}

bool pt_read_program(Ctx *c, Loc loc, Bytes json, PtProgram *out)
{
    json_error_t error = {.line = 0};
    json_t      *root = json_read(json, &error);
    Reading      r = {.c = c, .loc = loc};

    *out = (PtProgram){0};
    if (!root)
        return error_at(c, E_PARSE_MODEL, loc,
                        "the program in the archive is no JSON, from line %d on", error.line);
    read_all(&r, root, out);
    json_decref(root);
    if (out->major > PT_SCHEMA_MAJOR) {
        error_at(c, E_UNSUPPORTED, loc, "the program is of version %lld.%lld of its schema, not %d",
                 (long long)out->major, (long long)out->minor, PT_SCHEMA_MAJOR);
        diag_hint(c->diags, "a torch that writes version %d, or one before, saves it to be read",
                  PT_SCHEMA_MAJOR);
        return false;
    }
    return !r.fault || error_at(c, E_PARSE_MODEL, loc,
                                "the program in the archive has something else "
                                "where %s should be",
                                r.fault);
}
