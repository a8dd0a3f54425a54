/* frontends/onnx/schema.def: every operator that has a converter has a schema for each of its
 * opsets, no schema is of another operator, and their words are understood. */
#include "frontends/onnx/onnx.h"
#include "tests/unit/check.h"

static void test_rows_have_schemas(void)
{
    for (uint32_t i = 0; i < onnx_nrows; i++) {
        const OnnxRow *r = &onnx_rows[i];

        for (int64_t v = r->lo; v <= (r->hi ? r->hi : ONNX_NEWEST_OPSET); v++)
            if (!onnx_schema(r->domain, r->name, v)) {
                printf("%s has no schema for opset %lld\n", r->name, (long long)v);
                check_failures++;
            }
    }
    CHECK(onnx_nrows > 200 && ONNX_NEWEST_OPSET >= 22 && ONNX_NEWEST_IR >= 10);
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

static bool is_kind(const char *at, size_t n)
{
    static const char *const kinds[] = {"int",  "float",  "string",  "tensor",        "graph",
                                        "ints", "floats", "strings", "sparse_tensor", "type_proto"};

    for (uint32_t i = 0; i < COUNT(kinds); i++)
        if (strlen(kinds[i]) == n && !memcmp(kinds[i], at, n))
            return true;
    return false;
}

static void test_words(void)
{
    for (uint32_t i = 0; i < onnx_nschemas; i++) {
        const OnnxSchema *s = &onnx_schemas[i];

        CHECK(*s->outputs);
        for (const char *p = s->attributes; *p;) {
            size_t      n = strcspn(p, " ");
            const char *colon = memchr(p, ':', n);

            CHECK(colon && is_kind(colon + 1, n - (size_t)(colon + 1 - p) - (p[n - 1] == '!')));
            p += n + (p[n] == ' ');
        }
    }
}

/* What the table is for, by examples. */
static void test_examples(void)
{
    const OnnxSchema *conv = onnx_schema("", "Conv", 17), *sum = onnx_schema("", "Sum", 8);

    CHECK_STR(conv->inputs, "X W B?");
    CHECK_INT(onnx_count_inputs(conv), 3);
    CHECK(onnx_count_inputs(sum) == UINT32_MAX);
    CHECK_INT(onnx_count_inputs(onnx_schema("", "Constant", 13)), 0);
    CHECK_STR(onnx_schema("", "Softmax", 12)->attributes, "axis:int");
    CHECK_STR(onnx_schema("", "Clip", 6)->attributes, "max:float min:float");
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
