/* Modules that tvm.ir.save_json wrote: a list of nodes, each with the numbers of others, as the
 * tokens that their text would have; the parser takes it from there.
 *
 *     {"type_key": "relay.Call", "attrs": {"op": "4", "args": "5", "attrs": "0", ..}}
 *         ->  %3 = nn.relu(%x);
 *
 * A node's tokens are said to be on the line of its number.  What a function, or a branch of it, is
 * made of is bound to names %NUMBER in front of its result, each node behind what it needs;
 * branches bind again what only another branch had bound.  Nodes are walked with a stack; functions
 * and branches lie within each other as deep as the parser lets them. */
#include "frontends/tvm/tvm.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_NODES = 1 << 20, MAX_TOKENS = 1 << 24, MAX_NESTED = 200 };
/* A call with its attributes comes to a few dozen for each of its nodes: what comes to many more is
 * made of parts that are made of parts, each twice. */
enum { TOKENS_OF_NODE = 64, TOKENS_BESIDE = 1 << 16 };

/* OPEN: it waits for what it needs. */
typedef enum { NODE_NEW, NODE_OPEN, NODE_BOUND } NodeState;
typedef VEC(uint32_t) NodeList;
typedef struct {
    Ctx          *c;
    const char   *path;
    const json_t *nodes;
    uint32_t      n, line, depth, most; /* most: tokens */
    uint8_t      *state;
    uint32_t     *same;  /* a let: its body */
    const char  **names; /* of parameters of main, by the numbers of what they are known by */
    Map          *taken; /* those names; their values: how many parameters are called so */
    NodeList      bound; /* in the order in which they were */
    TvTokens     *out;
} Graph;

static bool bad(const Graph *g, DiagId id, const char *what)
{
    Loc loc = {.file = g->path, .line = g->line};

    return error_at(g->c, id, loc, "node %u: %s", g->line, what);
}

/* ---- nodes ------------------------------------------------------------------------------------------ */

static const json_t *node_at(const Graph *g, uint32_t i)
{
    return json_array_get(g->nodes, i);
}

static const char *kind_of(const Graph *g, uint32_t i)
{
    const char *key = json_string_value(json_object_get(node_at(g, i), "type_key"));
    const char *dot = key ? strrchr(key, '.') : NULL;

    return dot ? dot + 1 : key ? key : "";
}

static bool is_kind(const Graph *g, uint32_t i, const char *kind)
{
    return !strcmp(kind_of(g, i), kind);
}

static const char *attr_of(const Graph *g, uint32_t i, const char *name)
{
    return json_string_value(json_object_get(json_object_get(node_at(g, i), "attrs"), name));
}

static uint32_t number_of(const Graph *g, const char *text)
{
    char         *end;
    unsigned long v = text && *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;

    return v && !*end && v < g->n ? (uint32_t)v : 0;
}

/* The node that a field names; 0: none. */
static uint32_t field(const Graph *g, uint32_t i, const char *name)
{
    return number_of(g, attr_of(g, i, name));
}

static uint32_t count_of(const Graph *g, uint32_t list)
{
    return list ? (uint32_t)json_array_size(json_object_get(node_at(g, list), "data")) : 0;
}

static uint32_t item(const Graph *g, uint32_t list, uint32_t k)
{
    const json_t *v = json_array_get(json_object_get(node_at(g, list), "data"), k);
    json_int_t    i = json_is_integer(v) ? json_integer_value(v) : 0;

    return i > 0 && i < (json_int_t)g->n ? (uint32_t)i : 0;
}

/* Text as such, or as a node of its own. */
static const char *text_of(const Graph *g, const char *text)
{
    uint32_t    i = number_of(g, text);
    const char *repr = json_string_value(json_object_get(node_at(g, i), "repr_str"));

    return i && is_kind(g, i, "String") ? repr ? repr : "" : text ? text : "";
}

/* ---- tokens ----------------------------------------------------------------------------------------- */

static bool put(Graph *g, TvKind kind, const char *text)
{
    TvToken t = {.kind = kind, .line = g->line, .text = intern(g->c->strings, text)};

    if (g->out->n == g->most)
        return bad(g, E_UNSUPPORTED, "the module is too large");
    vec_push(g->c->arena, g->out, t);
    return true;
}

/* Of single characters. */
static bool put_signs(Graph *g, const char *signs)
{
    for (const char *p = signs; *p; p++)
        if (!put(g, TV_SIGN, (char[]){*p, 0}))
            return false;
    return true;
}

static bool put_number(Graph *g, uint32_t i)
{
    const char *v = attr_of(g, i, "value");

    return v && put(g, TV_NUMBER, v);
}

/* Of a variable: the number that all nodes of it share; of others their own. */
static uint32_t identity(const Graph *g, uint32_t i)
{
    uint32_t id = field(g, i, "vid");

    return id ? id : i;
}

/* Numbers, with a mark behind them where a parameter of main is called so. */
static const char *name_of(const Graph *g, uint32_t i)
{
    uint32_t    id = identity(g, i);
    const char *name = g->names[id];

    if (name || is_kind(g, i, "GlobalVar"))
        return name ? name : text_of(g, attr_of(g, i, "name_hint"));
    for (name = intern_printf(g->c->strings, "%u", id); map_get(g->taken, PTR_KEY(name));)
        name = intern_printf(g->c->strings, "%s'", name);
    return name;
}

/* A parameter's own name; of several that have one, "x", "x1" .., as TVM writes them. */
static const char *parameter_name(Graph *g, uint32_t v)
{
    const char *hint =
        intern(g->c->strings, text_of(g, attr_of(g, field(g, v, "vid"), "name_hint")));
    const char *name = hint;
    uintptr_t   count = (uintptr_t)map_get(g->taken, PTR_KEY(hint));

    while (map_get(g->taken, PTR_KEY(name)))
        name = intern_printf(g->c->strings, "%s%u", hint, (uint32_t)count++);
    map_put(g->taken, PTR_KEY(hint), (void *)(count ? count : 1));
    if (name != hint)
        map_put(g->taken, PTR_KEY(name), (void *)(uintptr_t)1);
    return name;
}

/* The items of a list, with commas between. */
static bool put_list(Graph *g, bool (*one)(Graph *g, uint32_t i), uint32_t list)
{
    for (uint32_t k = 0; k < count_of(g, list); k++)
        if ((k && !put_signs(g, ",")) || !one(g, item(g, list, k)))
            return false;
    return true;
}

/* ---- types ------------------------------------------------------------------------------------------ */

static bool put_type(Graph *g, uint32_t i);

static bool put_tensor_type(Graph *g, uint32_t i)
{
    uint32_t    shape = field(g, i, "shape");
    const char *t = attr_of(g, i, "dtype");

    if (!t || !put(g, TV_WORD, "Tensor") || !put_signs(g, "[("))
        return false;
    for (uint32_t k = 0; k < count_of(g, shape); k++) {
        uint32_t d = item(g, shape, k);

        if ((k && !put_signs(g, ",")) ||
            !(is_kind(g, d, "IntImm") ? put_number(g, d) : put_signs(g, "?")))
            return false;
    }
    return put_signs(g, "),") && put(g, TV_WORD, t) && put_signs(g, "]");
}

/* [A, B], if there are any */
static bool put_brackets(Graph *g, uint32_t list)
{
    return !count_of(g, list) ||
           (put_signs(g, "[") && put_list(g, put_type, list) && put_signs(g, "]"));
}

static bool put_name(Graph *g, uint32_t i)
{
    return put(g, TV_WORD, text_of(g, attr_of(g, i, "name_hint")));
}

static bool put_type_of(Graph *g, uint32_t i)
{
    if (is_kind(g, i, "TensorType"))
        return put_tensor_type(g, i);
    if (is_kind(g, i, "TupleType"))
        return put_signs(g, "(") && put_list(g, put_type, field(g, i, "fields")) &&
               put_signs(g, ")");
    if (is_kind(g, i, "FuncType"))
        return put(g, TV_WORD, "fn") && put_brackets(g, field(g, i, "type_params")) &&
               put_signs(g, "(") && put_list(g, put_type, field(g, i, "arg_types")) &&
               put_signs(g, ")") && put(g, TV_ARROW, "->") && put_type(g, field(g, i, "ret_type"));
    if (is_kind(g, i, "TypeVar") || is_kind(g, i, "GlobalTypeVar"))
        return put_name(g, i);
    if (is_kind(g, i, "TypeCall"))
        return put_type(g, field(g, i, "func")) && put_brackets(g, field(g, i, "args"));
    if (is_kind(g, i, "RefType"))
        return put(g, TV_WORD, "ref") && put_signs(g, "(") && put_type(g, field(g, i, "value")) &&
               put_signs(g, ")");
    if (is_kind(g, i, "IncompleteType"))
        return put(g, TV_WORD, "_");
    return bad(g, E_UNSUPPORTED,
               "a type that is not known; relay.transform.InferType() before the "
               "module is saved fills it in");
}

static bool put_type(Graph *g, uint32_t i)
{
    bool ok = g->depth < MAX_NESTED || bad(g, E_UNSUPPORTED, "types within types, too deep");

    g->depth++;
    ok = ok && put_type_of(g, i);
    g->depth--;
    return ok;
}

/* ---- attributes ------------------------------------------------------------------------------------- */

static bool is_reference(const char *record, const char *name)
{
    static const char *const rows[][2] = {
#define TV_REFERENCE(field, records) {field, records},
#include "frontends/tvm/fields.def"
#undef TV_REFERENCE
    };
    const char *end = strstr(record, "Attrs");
    size_t      n = end ? (size_t)(end - record) : strlen(record);

    for (uint32_t i = 0; i < COUNT(rows); i++) {
        const char *at = rows[i][1];

        if (strcmp(rows[i][0], name) != 0)
            continue;
        if (!*at)
            return true;
        for (; *at; at += strcspn(at, " "), at += *at == ' ')
            if (strcspn(at, " ") == n && !memcmp(at, record, n))
                return true;
    }
    return false;
}

static bool is_value(const Graph *g, uint32_t i)
{
    return is_kind(g, i, "IntImm") || is_kind(g, i, "FloatImm") || is_kind(g, i, "String") ||
           is_kind(g, i, "Array");
}

static bool put_value(Graph *g, uint32_t i)
{
    bool ok = true;

    if (is_kind(g, i, "IntImm"))
        return put_number(g, i);
    if (is_kind(g, i, "FloatImm"))
        return attr_of(g, i, "value") &&
               put(g, TV_NUMBER, intern_printf(g->c->strings, "%sf64", attr_of(g, i, "value")));
    if (is_kind(g, i, "String"))
        return put(g, TV_TEXT, text_of(g, intern_printf(g->c->strings, "%u", i)));
    if (!is_kind(g, i, "Array") || g->depth >= MAX_NESTED)
        return bad(g, E_UNSUPPORTED, "an attribute that is no number, text or list");
    g->depth++;
    ok = put_signs(g, "[");
    for (uint32_t k = 0; ok && k < count_of(g, i); k++)
        ok = (!k || put_signs(g, ",")) && put_value(g, item(g, i, k));
    g->depth--;
    return ok && put_signs(g, "]");
}

/* A number as such, or text. */
static bool put_plain(Graph *g, const char *text)
{
    char *end;
    bool  number = *text && (strtod(text, &end), !*end) && strcmp(text, "nan") != 0;

    if (!number)
        return put(g, TV_TEXT, text_of(g, text));
    /* Text may be a node, and no text is a number. */
    if (is_kind(g, number_of(g, text), "String"))
        return put(g, TV_TEXT, text_of(g, text));
    if (!strcmp(text, "inf"))
        return put(g, TV_WORD, "inff");
    return put(g, TV_NUMBER,
               text[strspn(text, "-0123456789")] ? intern_printf(g->c->strings, "%sf64", text)
                                                 : text);
}

/* Fields that are empty, and those that TVM's tuners fill in, are left out. */
static bool put_attrs(Graph *g, uint32_t i, bool comma)
{
    const json_t *attrs = json_object_get(node_at(g, i), "attrs"), *v;
    const char   *name;

    json_object_foreach((json_t *)(uintptr_t)attrs, name, v)
    {
        const char *text = json_string_value(v);
        bool        reference = is_reference(kind_of(g, i), name);
        uint32_t    to = number_of(g, text);

        if (!text || !*text || !strcmp(name, "meta_schedule_original_shape") ||
            (reference && (!to || !is_value(g, to))))
            continue;
        if (is_kind(g, to, "String") && !*text_of(g, text) && strcmp(name, "rounding_method") != 0)
            continue;
        if ((comma && !put_signs(g, ",")) || !put(g, TV_WORD, name) || !put_signs(g, "=") ||
            !(reference ? put_value(g, to) : put_plain(g, text)))
            return false;
        comma = true;
    }
    return true;
}

/* ---- expressions ------------------------------------------------------------------------------------- */

static bool put_scope(Graph *g, uint32_t root);

static bool put_op(Graph *g, uint32_t i)
{
    const char *name = json_string_value(json_object_get(node_at(g, i), "repr_str"));

    name = name ? name : attr_of(g, i, "name");
    return name && put(g, TV_WORD, name);
}

/* A name, a constant, an operator, a function of the module. */
static bool put_atom(Graph *g, uint32_t i)
{
    while (is_kind(g, i, "Let") && g->same[i])
        i = g->same[i];
    if (is_kind(g, i, "Constant")) {
        const char   *data = attr_of(g, i, "data");
        char         *end = NULL;
        unsigned long at = data && *data >= '0' && *data <= '9' ? strtoul(data, &end, 10) : 0;

        if (!end || *end || at >= MAX_NODES)
            return bad(g, E_PARSE_MODEL, "a constant without its data");
        if (!put(g, TV_META, "relay.Constant"))
            return false;
        g->out->at[g->out->n - 1].number = (uint32_t)at;
        return true;
    }
    if (is_kind(g, i, "GlobalVar"))
        return put(g, TV_GLOBAL, name_of(g, i));
    if (is_kind(g, i, "Constructor"))
        return put_name(g, i);
    if (is_kind(g, i, "Op"))
        return put_op(g, i);
    return put(g, TV_LOCAL, name_of(g, i));
}

static bool put_call(Graph *g, uint32_t i)
{
    uint32_t op = field(g, i, "op"), args = field(g, i, "args"), attrs = field(g, i, "attrs");

    if (!is_kind(g, op, "Op"))
        return put_atom(g, op) && put_signs(g, "(") && put_list(g, put_atom, args) &&
               put_signs(g, ")");
    return put_op(g, op) && put_signs(g, "(") && put_list(g, put_atom, args) &&
           put_attrs(g, attrs, count_of(g, args) > 0) && put_signs(g, ")");
}

/* What is known of the type of a variable; 0: nothing. */
static uint32_t type_of_var(const Graph *g, uint32_t v)
{
    uint32_t t = field(g, v, "type_annotation");

    t = t && !is_kind(g, t, "IncompleteType") ? t : field(g, v, "_checked_type_");
    return is_kind(g, t, "IncompleteType") ? 0 : t;
}

/* [A](%x: type, ..) -> type { .. } */
static bool put_function(Graph *g, uint32_t i, bool entry)
{
    uint32_t      params = field(g, i, "params"), attrs = field(g, i, "attrs"), ret, names = 0;
    uint32_t      type = field(g, i, "_checked_type_"), dict = field(g, attrs, "__dict__");
    const json_t *keys = json_object_get(node_at(g, dict), "keys");

    if (!put_brackets(g, field(g, i, "type_params")) || !put_signs(g, "("))
        return false;
    for (uint32_t k = 0; k < count_of(g, params); k++) {
        uint32_t v = item(g, params, k), t = type_of_var(g, v);

        g->line = v;
        if (!is_kind(g, v, "Var"))
            return bad(g, E_PARSE_MODEL, "a parameter is no variable");
        if (entry)
            g->names[identity(g, v)] = parameter_name(g, v);
        if ((k && !put_signs(g, ",")) || !put(g, TV_LOCAL, name_of(g, v)) ||
            ((t || entry) && (!put_signs(g, ":") || !put_type(g, t))))
            return false;
    }
    for (uint32_t k = 0; k < count_of(g, dict); k++)
        if (!strcmp(json_string_value(json_array_get(keys, k))
                        ? json_string_value(json_array_get(keys, k))
                        : "",
                    "output_tensor_names"))
            names = item(g, dict, k);
    if (names && entry &&
        ((count_of(g, params) && !put_signs(g, ",")) || !put(g, TV_WORD, "output_tensor_names") ||
         !put_signs(g, "=") || !put_value(g, names)))
        return false;
    ret = is_kind(g, type, "FuncType") ? field(g, type, "ret_type") : field(g, i, "ret_type");
    if (!put_signs(g, ")"))
        return false;
    if ((is_kind(g, ret, "TensorType") || is_kind(g, ret, "TupleType")) &&
        (!put(g, TV_ARROW, "->") || !put_type(g, ret)))
        return false;
    return put_signs(g, "{") && put_scope(g, field(g, i, "body")) && put_signs(g, "}");
}

static bool put_if(Graph *g, uint32_t i)
{
    return put(g, TV_WORD, "if") && put_signs(g, "(") && put_atom(g, field(g, i, "cond")) &&
           put_signs(g, "){") && put_scope(g, field(g, i, "true_branch")) && put_signs(g, "}") &&
           put(g, TV_WORD, "else") && put_signs(g, "{") &&
           put_scope(g, field(g, i, "false_branch")) && put_signs(g, "}");
}

static bool put_pattern(Graph *g, uint32_t i);

static bool put_pattern_of(Graph *g, uint32_t i)
{
    uint32_t list = field(g, i, "patterns");

    if (is_kind(g, i, "PatternWildcard"))
        return put(g, TV_WORD, "_");
    if (is_kind(g, i, "PatternVar"))
        return put(g, TV_LOCAL, name_of(g, field(g, i, "var")));
    if (is_kind(g, i, "PatternConstructor") && !put_name(g, field(g, i, "constructor")))
        return false;
    if (!is_kind(g, i, "PatternConstructor") && !is_kind(g, i, "PatternTuple"))
        return bad(g, E_PARSE_MODEL, "a pattern of no kind that is known");
    return is_kind(g, i, "PatternConstructor") && !count_of(g, list)
               ? true
               : put_signs(g, "(") && put_list(g, put_pattern, list) && put_signs(g, ")");
}

static bool put_pattern(Graph *g, uint32_t i)
{
    bool ok = g->depth < MAX_NESTED || bad(g, E_UNSUPPORTED, "patterns within patterns, too deep");

    g->depth++;
    ok = ok && put_pattern_of(g, i);
    g->depth--;
    return ok;
}

static bool put_match(Graph *g, uint32_t i)
{
    uint32_t clauses = field(g, i, "clauses");

    if (!put(g, TV_WORD, "match") || !put_signs(g, "(") || !put_atom(g, field(g, i, "data")) ||
        !put_signs(g, "){"))
        return false;
    for (uint32_t k = 0; k < count_of(g, clauses); k++) {
        uint32_t clause = item(g, clauses, k);

        if ((k && !put_signs(g, ",")) || !put_pattern(g, field(g, clause, "lhs")) ||
            !put(g, TV_ARROW, "=>") || !put_signs(g, "{") ||
            !put_scope(g, field(g, clause, "rhs")) || !put_signs(g, "}"))
            return false;
    }
    return put_signs(g, "}");
}

/* ref(..), ref_read(..), ref_write(.., ..) */
static bool put_reference(Graph *g, uint32_t i)
{
    bool        write = is_kind(g, i, "RefWrite"), make = is_kind(g, i, "RefCreate");
    const char *word = make ? "ref" : write ? "ref_write" : "ref_read";

    return put(g, TV_WORD, word) && put_signs(g, "(") &&
           put_atom(g, field(g, i, make ? "value" : "ref")) &&
           (!write || (put_signs(g, ",") && put_atom(g, field(g, i, "value")))) &&
           put_signs(g, ")");
}

/* A function in a let may call itself by the name of it. */
static bool is_own(const Graph *g, uint32_t i)
{
    uint32_t value = field(g, i, "value");

    return is_kind(g, i, "Let") && is_kind(g, value, "Function") && g->state[value] != NODE_BOUND;
}

/* %i = ..; of a node whose needs are bound. */
static bool put_node(Graph *g, uint32_t i)
{
    bool let = is_kind(g, i, "Let");

    g->line = i;
    if (!put(g, TV_LOCAL, name_of(g, let ? field(g, i, "var") : i)) || !put_signs(g, "="))
        return false;
    if (let) {
        uint32_t value = field(g, i, "value");

        if (!(is_own(g, i) ? put(g, TV_WORD, "fn") && put_function(g, value, false)
                           : put_atom(g, value)))
            return false;
    } else if (is_kind(g, i, "Call")) {
        if (!put_call(g, i))
            return bad(g, E_PARSE_MODEL, "a call without an operator");
    } else if (is_kind(g, i, "Tuple")) {
        uint32_t fields = field(g, i, "fields");

        if (!put_signs(g, "(") || !put_list(g, put_atom, fields) ||
            (count_of(g, fields) == 1 && !put_signs(g, ",")) || !put_signs(g, ")"))
            return false;
    } else if (is_kind(g, i, "TupleGetItem")) {
        const char *at = attr_of(g, i, "index");

        if (!at || !put_atom(g, field(g, i, "tuple_value")) || !put_signs(g, ".") ||
            !put(g, TV_NUMBER, at))
            return false;
    } else if (is_kind(g, i, "If")) {
        if (!put_if(g, i))
            return false;
    } else if (is_kind(g, i, "Function")) {
        if (!put(g, TV_WORD, "fn") || !put_function(g, i, false))
            return false;
    } else if (is_kind(g, i, "Match")) {
        if (!put_match(g, i))
            return false;
    } else if (is_kind(g, i, "RefCreate") || is_kind(g, i, "RefRead") ||
               is_kind(g, i, "RefWrite")) {
        if (!put_reference(g, i))
            return false;
    } else {
        return bad(g, E_UNSUPPORTED,
                   intern_printf(g->c->strings, "'%s' is no expression of Relay", kind_of(g, i)));
    }
    return put_signs(g, ";");
}

static bool is_atom(const Graph *g, uint32_t i)
{
    return is_kind(g, i, "Var") || is_kind(g, i, "Constant") || is_kind(g, i, "GlobalVar") ||
           is_kind(g, i, "Op") || is_kind(g, i, "Constructor");
}

static bool need_one(Graph *g, NodeList *todo, uint32_t i)
{
    if (!i)
        return bad(g, E_PARSE_MODEL, "it needs a node that is not there");
    if (is_atom(g, i) || g->state[i] == NODE_BOUND)
        return true;
    if (g->state[i] == NODE_OPEN)
        return bad(g, E_PARSE_MODEL, "it needs itself");
    vec_push(g->c->scratch, todo, i);
    return true;
}

/* What a node needs bound in front of it goes on the stack; branches and bodies see to themselves.
 */
static bool need(Graph *g, NodeList *todo, uint32_t i)
{
    static const char *const fields[][2] = {
        {"Call", "args"},    {"Tuple", "fields"},    {"TupleGetItem", "tuple_value"},
        {"If", "cond"},      {"Let", "value"},       {"Call", "op"},
        {"Match", "data"},   {"RefCreate", "value"}, {"RefRead", "ref"},
        {"RefWrite", "ref"}, {"RefWrite", "value"}};

    g->line = i;
    for (uint32_t k = 0; k < COUNT(fields); k++) {
        uint32_t at = is_kind(g, i, fields[k][0]) ? field(g, i, fields[k][1]) : 0;

        if (!is_kind(g, i, fields[k][0]) || is_own(g, i))
            continue;
        if (!is_kind(g, at, "Array") && !need_one(g, todo, at))
            return false;
        for (uint32_t j = 0; is_kind(g, at, "Array") && j < count_of(g, at); j++)
            if (!need_one(g, todo, item(g, at, j)))
                return false;
    }
    return true;
}

static bool bind_node(Graph *g, NodeList *todo, uint32_t i)
{
    uint32_t before = todo->n;

    if (g->state[i] == NODE_BOUND) {
        todo->n--;
        return true;
    }
    g->state[i] = NODE_OPEN;
    if (!g->same[i] && !need(g, todo, i))
        return false;
    if (todo->n > before)
        return true; /* these first, then it comes again */
    if (is_kind(g, i, "Let") && !g->same[i]) {
        if (!put_node(g, i) || !(g->same[i] = field(g, i, "body")) ||
            !need_one(g, todo, g->same[i]))
            return false;
        if (todo->n > before)
            return true;
    } else if (!is_kind(g, i, "Let") && !put_node(g, i)) {
        return false;
    }
    g->state[i] = NODE_BOUND;
    vec_push(g->c->arena, &g->bound, i);
    todo->n--;
    return true;
}

/* The bindings of a body and its result; they end with it. */
static bool put_scope(Graph *g, uint32_t root)
{
    NodeList todo = {0};
    uint32_t before = g->bound.n;
    bool     ok;

    if (g->depth >= MAX_NESTED)
        return bad(g, E_UNSUPPORTED, "functions and branches within each other, too deep");
    g->depth++;
    ok = need_one(g, &todo, root);
    while (ok && todo.n)
        ok = bind_node(g, &todo, todo.at[todo.n - 1]);
    ok = ok && put_atom(g, root);
    while (g->bound.n > before) {
        uint32_t i = g->bound.at[--g->bound.n];

        g->state[i] = NODE_NEW;
        g->same[i] = 0;
    }
    g->depth--;
    return ok;
}

/* ---- modules ------------------------------------------------------------------------------------------ */

static bool put_def(Graph *g, const char *name, uint32_t i)
{
    g->line = i;
    if (!is_kind(g, i, "Function"))
        return bad(g, E_UNSUPPORTED,
                   intern_printf(g->c->strings, "'@%s' is no function of Relay", name));
    return put(g, TV_WORD, "def") && put(g, TV_GLOBAL, name) &&
           put_function(g, i, !strcmp(name, "main"));
}

/* type List[A] { Cons(A, List[A]), .. } */
static bool put_type_def(Graph *g, uint32_t i)
{
    uint32_t ctors = field(g, i, "constructors");

    g->line = i;
    if (!put(g, TV_WORD, "type") || !put_name(g, field(g, i, "header")) ||
        !put_brackets(g, field(g, i, "type_vars")) || !put_signs(g, "{"))
        return false;
    for (uint32_t k = 0; k < count_of(g, ctors); k++) {
        uint32_t ctor = item(g, ctors, k);

        if ((k && !put_signs(g, ",")) || !put_name(g, ctor) || !put_signs(g, "(") ||
            !put_list(g, put_type, field(g, ctor, "inputs")) || !put_signs(g, ")"))
            return false;
    }
    return put_signs(g, "}");
}

static bool put_module(Graph *g, uint32_t root)
{
    uint32_t map = field(g, root, "functions"), types = field(g, root, "type_definitions");

    if (is_kind(g, root, "Function"))
        return put_def(g, "main", root);
    if (!is_kind(g, root, "IRModule") && !is_kind(g, root, "Module"))
        return bad(g, E_UNSUPPORTED, "it is no module and no function");
    for (uint32_t k = 0; k + 1 < count_of(g, types); k += 2)
        if (!put_type_def(g, item(g, types, k + 1)))
            return false;
    for (uint32_t k = 0; k + 1 < count_of(g, map); k += 2)
        if (!put_def(g, name_of(g, item(g, map, k)), item(g, map, k + 1)))
            return false;
    return true;
}

bool tv_read_graph(Ctx *c, const char *path, Bytes file, TvTokens *out, uint32_t *nconsts,
                   const Const ***consts)
{
    Graph    g = {.c = c, .path = path, .out = out};
    json_t  *top = json_read(file, NULL);
    uint32_t before = diag_errors(c->diags);
    uint32_t root;
    size_t   n;
    bool     ok;

    *out = (TvTokens){.path = path};
    if (!top)
        return error_at(c, E_PARSE_MODEL, (Loc){.file = path},
                        "it is no JSON, or longer than %d MB: constants are better parameters of "
                        "@main",
                        JSON_BYTES >> 20);
    g.nodes = json_object_get(top, "nodes");
    n = json_array_size(g.nodes);
    g.n = n > MAX_NODES ? 0 : (uint32_t)n;
    g.most = TOKENS_BESIDE + TOKENS_OF_NODE * g.n;
    g.most = g.most < MAX_TOKENS ? g.most : MAX_TOKENS;
    g.state = NEW_ARRAY(c->arena, uint8_t, (size_t)g.n + 1);
    g.same = NEW_ARRAY(c->arena, uint32_t, (size_t)g.n + 1);
    g.names = NEW_ARRAY(c->arena, const char *, (size_t)g.n + 1);
    g.taken = map_new(c->arena);
    root = json_is_integer(json_object_get(top, "root"))
               ? number_of(
                     &g, arena_printf(c->arena, "%lld",
                                      (long long)json_integer_value(json_object_get(top, "root"))))
               : 0;
    ok = tv_read_arrays(c, path, json_object_get(top, "b64ndarrays"), nconsts, consts) &&
         put_module(&g, root) && put(&g, TV_END, "");
    if (!ok && diag_errors(c->diags) == before)
        bad(&g, E_PARSE_MODEL, "a field that it should have is missing");
    json_decref(top);
    return ok;
}
