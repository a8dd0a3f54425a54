/* frontends/onnx/schema.def: every operator that has a converter has a schema for each of its
 * opsets, no schema is of another operator, and their words are understood. */
#include "frontends/onnx/onnx.h"
#include "tests/unit/check.h"

#include <stdlib.h>

static void test_rows_have_schemas(void)
{
    for (uint32_t i = 0; i < onnx_nrows; i++) {
        const OnnxRow *r = &onnx_rows[i];

        for (int64_t v = r->lo; v <= (r->hi ? r->hi : onnx_newest(r->domain)); v++)
            if (!onnx_schema(r->domain, r->name, v)) {
                printf("%s has no schema for opset %lld\n", r->name, (long long)v);
                check_failures++;
            }
    }
    CHECK(onnx_nrows > 200 && onnx_newest("") >= 22 && ONNX_IR_KNOWN >= 10);
}

static bool has_row(const OnnxSchema *s)
{
    const OnnxRow *other = NULL;

    /* A schema may begin before the first row: it holds on. */
    return onnx_row(s->domain, s->name, s->since, &other) || other;
}

/* Rows of one operator stand together, oldest first. */
static void test_schemas_are_in_order(void)
{
    for (uint32_t i = 0; i < onnx_nschemas; i++) {
        const OnnxSchema *s = &onnx_schemas[i];

        CHECK(has_row(s));
        for (uint32_t k = 0; k < i; k++)
            if (!strcmp(onnx_schemas[k].name, s->name) &&
                !strcmp(onnx_schemas[k].domain, s->domain))
                CHECK(onnx_schemas[k].since < s->since);
    }
}

static bool is_kind(const char *kind)
{
    static const char *const kinds[] = {"int",  "float",  "string",  "tensor",        "graph",
                                        "ints", "floats", "strings", "sparse_tensor", "type_proto"};

    for (uint32_t i = 0; kind && i < COUNT(kinds); i++)
        if (!strcmp(kinds[i], kind))
            return true;
    return false;
}

/* Defaults are numbers where the attribute is one. */
static bool is_default(const OnnxWord *w)
{
    char *end = NULL;

    if (!w->fallback || !strcmp(w->kind, "string"))
        return true;
    if (!strcmp(w->kind, "int"))
        strtoll(w->fallback, &end, 10);
    else if (!strcmp(w->kind, "float"))
        strtof(w->fallback, &end);
    return end && *w->fallback && !*end;
}

static void test_words(void)
{
    Arena *a = arena_new(NULL);

    for (uint32_t i = 0; i < onnx_nschemas; i++) {
        const char *list = onnx_schemas[i].attributes;
        OnnxWord    w;

        CHECK(*onnx_schemas[i].outputs);
        while (onnx_next_word(a, &list, &w)) {
            CHECK(is_kind(w.kind) && is_default(&w));
            CHECK(w.mark == 0 || (w.mark == '!' && !w.fallback));
        }
    }
    arena_free(a);
}

/* What the table is for, by examples. */
static void test_examples(void)
{
    const OnnxSchema *conv = onnx_schema("", "Conv", 17), *sum = onnx_schema("", "Sum", 8);

    CHECK_STR(conv->inputs, "X W B?");
    CHECK_INT(onnx_count_inputs(conv), 3);
    CHECK(onnx_count_inputs(sum) == UINT32_MAX);
    CHECK_INT(onnx_count_inputs(onnx_schema("", "Constant", 13)), 0);
    CHECK_STR(onnx_schema("", "Softmax", 12)->attributes, "axis:int=1");
    CHECK_STR(onnx_schema("", "Clip", 6)->attributes,
              "max:float=3.4028235e+38 min:float=-3.4028235e+38");
    CHECK_STR(onnx_schema("", "Clip", 11)->inputs, "input min? max?");
    CHECK(!onnx_schema("", "Clip", 0) && !onnx_schema("com.microsoft", "Clip", 1));
}

int main(void)
{
    RUN(test_rows_have_schemas);
    RUN(test_schemas_are_in_order);
    RUN(test_words);
    RUN(test_examples);
    return check_result();
}
