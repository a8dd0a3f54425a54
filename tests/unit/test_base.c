/* base/: memory, containers, text, hashes, diagnostics. */
#include "base/base.h"
#include "tests/unit/check.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static Bytes text_bytes(const char *s)
{
    return (Bytes){(const uint8_t *)s, strlen(s)};
}

static uint64_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void test_arena(void)
{
    Arena *a = arena_new(NULL);

    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 3000; i++) {
            size_t   n = i % 7 == 0 ? i * 5 : i % 97;
            uint8_t *p = arena_alloc(a, n);
            bool     zero = true;

            for (size_t k = 0; k < n; k++)
                zero &= p[k] == 0;
            CHECK(zero && (uintptr_t)p % 16 == 0);
            memset(p, 0xff, n);
        }
        CHECK(arena_used(a) > 3000 * 16);
        arena_reset(a);
        CHECK_INT(arena_used(a), 0);
    }
    CHECK(arena_alloc(a, 0) != arena_alloc(a, 0));
    CHECK_STR(arena_printf(a, "%d-%s", 7, "x"), "7-x");
    arena_free(a);
    arena_free(NULL);
}

static void test_divisors(void)
{
    static const int64_t sizes[] = {INT32_MAX, INT64_C(1) << 40,           INT64_C(4294967291),
                                    INT64_MAX, INT64_C(1000003) * 1000033, INT64_C(3) * 1431655751};

    for (int64_t n = 1; n < 400; n++)
        for (int64_t x = 0; x < 402; x++) {
            int64_t below = 1, above = n;

            for (int64_t d = 1; d <= n; d++) {
                below = n % d == 0 && d <= x ? d : below;
                above = n % (n + 1 - d) == 0 && n + 1 - d >= x ? n + 1 - d : above;
            }
            CHECK(divisor_upto(n, x) == below && divisor_from(n, x) == above);
        }
    /* Large ones: what divides, at once. */
    for (uint32_t i = 0; i < COUNT(sizes); i++)
        for (int64_t x = 1; x < sizes[i] / 3; x = x * 3 + 1) {
            int64_t below = divisor_upto(sizes[i], x), above = divisor_from(sizes[i], x);

            CHECK(sizes[i] % below == 0 && below <= x && sizes[i] % above == 0 && above >= x);
        }
    CHECK(divisor_from(INT32_MAX, 2) == INT32_MAX && divisor_upto(INT32_MAX, INT32_MAX - 1) == 1);
    CHECK(divisor_upto(INT64_C(4294967291), 65536) == 1);
    CHECK(divisor_from(INT64_C(65537) * 65521, 65522) == 65537);
}

static void test_out_of_memory(void)
{
    jmp_buf         oom;
    Arena          *a = arena_new(&oom);
    volatile int    jumps = 0;
    volatile size_t huge = SIZE_MAX / 2;

    if (setjmp(oom) == 0)
        arena_array(a, huge, 4);
    else
        jumps++;
    if (setjmp(oom) == 0)
        arena_alloc(a, SIZE_MAX);
    else
        jumps++;
    CHECK_INT(jumps, 2);
    arena_free(a);
}

static void test_vec(void)
{
    Arena *a = arena_new(NULL);
    VEC(int) v = {0};

    for (int i = 0; i < 1000; i++)
        vec_push(a, &v, i * 3);
    CHECK_INT(v.n, 1000);
    for (int i = 0; i < 1000; i++)
        CHECK(v.at[i] == i * 3);
    arena_free(a);
}

/* Against an array that is searched from one end to the other. */
static void test_map(void)
{
    enum { N = 300 };
    Arena   *a = arena_new(NULL);
    Map     *m = map_new(a);
    void    *want[N] = {0};
    uint64_t state = 1, count = 0;
    int      values[N];
    void    *value;

    for (int i = 0; i < 20000; i++) {
        uint64_t key = random_next(&state) % N;

        if (random_next(&state) % 3 == 0) {
            count -= want[key] != NULL;
            want[key] = NULL;
            map_del(m, key * 4096);
        } else {
            count += want[key] == NULL;
            want[key] = &values[random_next(&state) % N];
            map_put(m, key * 4096, want[key]);
        }
        CHECK(map_count(m) == count);
    }
    for (uint64_t key = 0; key < N; key++)
        CHECK(map_get(m, key * 4096) == want[key]);
    map_put(m, 5, NULL);
    CHECK(map_find(m, 5, &value) && value == NULL && !map_find(m, 6, &value));
    arena_free(a);
}

static void test_intern(void)
{
    Arena      *a = arena_new(NULL);
    Strings    *s = strings_new(a);
    const char *first[2000];
    char        name[32], long_text[600];

    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "name%d", i);
        first[i] = intern(s, name);
        CHECK_STR(first[i], name);
    }
    for (int i = 0; i < 2000; i++)
        CHECK(intern_printf(s, "name%d", i) == first[i]);
    CHECK(intern(s, "") == intern_n(s, "abc", 0));
    CHECK(intern_n(s, "ab\0cd", 5) == intern(s, "ab"));
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    CHECK(intern_printf(s, "%s", long_text) == intern(s, long_text));
    arena_free(a);
}

static void test_text(void)
{
    static const char *const words[] = {"nn.relu", "nn.conv2d", "fuse_ops", "-O"};

    Arena      *a = arena_new(NULL);
    StrBuf      s = strbuf(a);
    const char *part;
    size_t      n;

    for (int i = 0; i < 100; i++)
        str_printf(&s, "%d,", i);
    CHECK(s.n == strlen(s.at) && s.n == 290 && str_ends(s.at, "98,99,"));
    CHECK(str_starts("nn.relu", "nn.") && !str_starts("nn", "nn."));
    CHECK(str_ends("a.relay", ".relay") && !str_ends("y", ".relay"));
    CHECK(str_star("h_out", "*_out", &part, &n) && n == 1 && *part == 'h');
    CHECK(str_star("_out", "*_out", &part, &n) && n == 0);
    CHECK(str_star("past.3.k", "past.*.k", &part, &n) && n == 1 && *part == '3');
    CHECK(!str_star("a_a", "a_*_a", &part, &n) && !str_star("h_out", "h_out", &part, &n));
    CHECK(!str_star("h_in", "*_out", &part, &n) && !str_star("out", "*_out", &part, &n));
    CHECK_STR(str_closest("nn.rleu", words, 4), "nn.relu");
    CHECK_STR(str_closest("fuse_op", words, 4), "fuse_ops");
    CHECK(!str_closest("completely", words, 4) && !str_closest("", words, 4));
    CHECK(!str_closest("z", words, 4));
    arena_free(a);
}

static void test_hash(void)
{
    int64_t sum;

    CHECK(hash_bytes("a", 1, 0) != hash_bytes("b", 1, 0));
    CHECK(hash_bytes("a", 1, 0) != hash_bytes("a\0", 2, 0));
    CHECK(gcd_i64(-12, 18) == 6 && gcd_i64(0, 5) == 5 && gcd_i64(0, 0) == 0);
    CHECK(floor_div(-7, 2) == -4 && floor_mod(-7, 2) == 1 && floor_div(7, 2) == 3);
    CHECK(floor_mod(-8, 4) == 0 && floor_div(INT64_MIN, 1) == INT64_MIN);
    CHECK(!checked_add(INT64_MAX, (int64_t)1, &sum) && checked_mul(3, 4, &sum) && sum == 12);
}

/* What `d` prints, and nothing left of it. */
static const char *printed(Arena *a, const Diags *d, DiagFormat format)
{
    StrBuf s = strbuf(a);

    diag_print(d, format, &s);
    return s.at;
}

static void test_diag_text(void)
{
    Arena *a = arena_new(NULL);
    Diags *d = diags_new(a);
    Loc    conv = {"net.onnx", 12, 0, "Conv_12"}, relu = {"net.onnx", 11, 0, "Relu_11"};
    Loc    text = {"a.relay", 2, 7, NULL};

    diag_source(d, "a.relay", text_bytes("fn @main() {\n\tadd(\x1b, 2)\n}\n"));
    CHECK(diag_status(d) == 0 && diag_errors(d) == 0);
    CHECK(!diag_error(d, E_TYPE, conv, "Conv 'Conv_12' has group %d", 3));
    diag_note(d, relu, "the input comes from here");
    diag_hint(d, "'group' can be 1");
    diag_error(d, E_PARSE_TEXT, text, "expected an operand");
    diag_error(d, E_IO, NO_LOC, "cannot read '\n\x1b[2J'");
    CHECK_STR(printed(a, d, DIAG_TEXT),
              "net.onnx:12:1: error: Conv 'Conv_12' has group 3 [E0401]\n"
              "net.onnx:11:1: note: 'Relu_11': the input comes from here\n"
              "hint: 'group' can be 1\n"
              "a.relay:2:7: error: expected an operand [E0305]\n"
              "     add(?, 2)\n"
              "          ^\n"
              "tvmcc: error: cannot read '\\n\\x1b[2J' [E0903]\n");
    CHECK(diag_errors(d) == 3 && diag_status(d) == 1);
    diag_drop(d, 1);
    CHECK_INT(diag_errors(d), 1);
    CHECK_STR(printed(a, d, DIAG_TEXT),
              "net.onnx:12:1: error: Conv 'Conv_12' has group 3 [E0401]\n"
              "net.onnx:11:1: note: 'Relu_11': the input comes from here\n"
              "hint: 'group' can be 1\n");
    CHECK_STR(diag_code(E_PARSE_MODEL), "E0301");
    CHECK(diag_help("E0301") && !diag_help("E9999"));
    arena_free(a);
}

static void test_diag_places(void)
{
    Arena *a = arena_new(NULL);
    Diags *d = diags_new(a);

    diag_source(d, "t", text_bytes("one"));
    diag_error(d, E_USAGE, (Loc){"t", 1, 99, NULL}, "past the end");
    diag_error(d, E_USAGE, (Loc){"t", 9, 1, NULL}, "no such line");
    diag_error(d, E_USAGE, (Loc){"u", 0, 0, NULL}, "a file");
    CHECK_STR(printed(a, d, DIAG_TEXT), "t:1:99: error: past the end [E0101]\n"
                                        "    one\n"
                                        "       ^\n"
                                        "t:9:1: error: no such line [E0101]\n"
                                        "u: error: a file [E0101]\n");
    CHECK_INT(diag_status(d), 2);
    arena_free(a);
}

static void test_diag_json(void)
{
    Arena *a = arena_new(NULL);
    Diags *d = diags_new(a);

    CHECK_STR(printed(a, d, DIAG_JSON), "[]\n");
    diag_error(d, E_IMPORT, (Loc){"n\"\x01\xff.onnx", 3, 0, "x"}, "Conv 'x' \xc3\xa4");
    diag_note(d, NO_LOC, "one");
    diag_hint(d, "two");
    diag_warn(d, W_BASELINE_CPU, NO_LOC, "slow");
    CHECK_STR(printed(a, d, DIAG_JSON),
              "[{\"kind\": \"error\", \"message\": \"Conv 'x' \xc3\xa4\", \"code\": \"E0304\", "
              "\"locations\": [{\"caret\": {\"file\": \"n\\\"\\u0001\\ufffd.onnx\", \"line\": 3, "
              "\"column\": 1}, \"label\": \"x\"}], \"children\": [{\"kind\": \"note\", "
              "\"message\": \"one\", \"locations\": [], \"children\": []}, {\"kind\": \"hint\", "
              "\"message\": \"two\", \"locations\": [], \"children\": []}]},\n"
              " {\"kind\": \"warning\", \"message\": \"slow\", \"code\": \"W0601\", \"option\": "
              "\"-Wbaseline-cpu\", \"locations\": [], \"children\": []}]\n");
    arena_free(a);
}

static void test_diag_sarif(void)
{
    Arena *a = arena_new(NULL);
    Diags *d = diags_new(a);

    diag_error(d, E_IMPORT, (Loc){"/a b/n.onnx", 3, 0, "x"}, "Conv 'x'");
    diag_note(d, (Loc){"c.relay", 0, 0, NULL}, "one");
    diag_note(d, NO_LOC, "two");
    diag_hint(d, "three");
    diag_error(d, E_IMPORT, NO_LOC, "again");
    CHECK_STR(printed(a, d, DIAG_SARIF),
              "{\"version\": \"2.1.0\",\n"
              " \"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\",\n"
              " \"runs\": [{\"tool\": {\"driver\": {\"name\": \"tvmcc\", \"version\": "
              "\"" TVMCC_VERSION "\", \"rules\": [{\"id\": \"E0304\", \"shortDescription\": "
              "{\"text\": \"the model parses but is wrong\"}}]}},\n"
              "  \"results\": [{\"ruleId\": \"E0304\", \"ruleIndex\": 0, \"level\": \"error\", "
              "\"message\": {\"text\": \"Conv 'x'\\u000ahint: three\"}, \"locations\": "
              "[{\"physicalLocation\": {\"artifactLocation\": {\"uri\": "
              "\"file:///a%20b/n.onnx\"}, \"region\": {\"startLine\": 3, \"startColumn\": 1}}, "
              "\"logicalLocations\": [{\"name\": \"x\"}]}], \"relatedLocations\": "
              "[{\"physicalLocation\": {\"artifactLocation\": {\"uri\": \"c.relay\"}}, "
              "\"message\": {\"text\": \"one\"}}, {\"message\": {\"text\": \"two\"}}]},\n"
              "    {\"ruleId\": \"E0304\", \"ruleIndex\": 0, \"level\": \"error\", \"message\": "
              "{\"text\": \"again\"}, \"locations\": []}]}]}\n");
    arena_free(a);
}

static void test_warnings(void)
{
    Arena *a = arena_new(NULL);
    Diags *d = diags_new(a);

    CHECK(!diag_flag(d, "-Wno-such") && !diag_flag(d, "-Werror=nothing") && !diag_flag(d, "-x"));
    diag_warn(d, W_BASELINE_CPU, NO_LOC, "one");
    CHECK(diag_flag(d, "-Wno-baseline-cpu"));
    diag_warn(d, W_BASELINE_CPU, NO_LOC, "two");
    diag_note(d, NO_LOC, "belongs to two");
    CHECK(diag_flag(d, "-Werror=baseline-cpu"));
    diag_warn(d, W_BASELINE_CPU, NO_LOC, "three");
    CHECK(diag_errors(d) == 1 && diag_status(d) == 1);
    CHECK(diag_flag(d, "-Wno-error=baseline-cpu") && diag_flag(d, "-Werror"));
    diag_warn(d, W_BASELINE_CPU, NO_LOC, "four");
    diag_warn(d, W_SCHEDULE_REFUSED, NO_LOC, "five");
    CHECK_STR(printed(a, d, DIAG_TEXT), "tvmcc: warning: one [-Wbaseline-cpu] [W0601]\n"
                                        "tvmcc: error: three [-Werror=baseline-cpu] [W0601]\n"
                                        "tvmcc: warning: four [-Wbaseline-cpu] [W0601]\n"
                                        "tvmcc: error: five [-Werror=schedule-refused] [W0501]\n");
    arena_free(a);
}

/* A warning whose row has a status is an error unless its name is taken from them. */
static void test_fatal_warnings(void)
{
    Arena *a = arena_new(NULL);
    Diags *d = diags_new(a);

    diag_warn(d, W_MODEL_VERSION, NO_LOC, "one");
    diag_note(d, NO_LOC, "of one");
    diag_hint(d, "of one, too");
    CHECK(diag_errors(d) == 1 && diag_status(d) == 3);
    CHECK(diag_flag(d, "-Wno-error") && diag_flag(d, "-Wno-error=unknown-attribute"));
    diag_warn(d, W_MODEL_VERSION, NO_LOC, "two");
    diag_warn(d, W_UNKNOWN_ATTRIBUTE, NO_LOC, "three");
    CHECK(diag_flag(d, "-Werror"));
    diag_warn(d, W_UNKNOWN_ATTRIBUTE, NO_LOC, "four");
    CHECK(diag_flag(d, "-Wno-model-version"));
    diag_warn(d, W_MODEL_VERSION, NO_LOC, "five");
    CHECK_INT(diag_errors(d), 2);
    CHECK_STR(printed(a, d, DIAG_TEXT), "tvmcc: error: one [-Werror=model-version] [W0305]\n"
                                        "note: of one\n"
                                        "hint: of one, too\n"
                                        "hint: -Wno-error=model-version reads it by the newest "
                                        "version that is known\n"
                                        "tvmcc: error: two [-Werror=model-version] [W0305]\n"
                                        "tvmcc: warning: three [-Wunknown-attribute] [W0302]\n"
                                        "tvmcc: warning: four [-Wunknown-attribute] [W0302]\n");
    arena_free(a);
}

/* Each warning that is an error from the start says how to go on, once, unless it is an error by
 * the user's own word. */
static void test_offers(void)
{
    Arena *a = arena_new(NULL);

    for (int id = 0; id < DIAG_COUNT; id++) {
        Diags      *d = diags_new(a);
        const char *flag = diag_flag_of(diag_code((DiagId)id)), *option, *error;

        if (!flag)
            continue;
        diag_warn(d, (DiagId)id, NO_LOC, "one");
        diag_warn(d, (DiagId)id, NO_LOC, "two");
        option = arena_printf(a, "-Wno-error=%s", flag);
        if (!diag_errors(d)) {
            CHECK_INT(diag_count(d), 2);
            continue;
        }
        CHECK_INT(diag_count(d), 3);
        CHECK(diag_at(d, 1).kind == DIAG_IS_HINT);
        CHECK(str_starts(diag_at(d, 1).text, option) && diag_at(d, 1).text[strlen(option)] == ' ');
        CHECK(diag_flag(d, option));
        diag_warn(d, (DiagId)id, NO_LOC, "three");
        CHECK(diag_count(d) == 4 && diag_errors(d) == 2);
        diag_drop(d, 0);
        error = arena_printf(a, "-Werror=%s", flag);
        CHECK(diag_flag(d, error));
        diag_warn(d, (DiagId)id, NO_LOC, "four");
        CHECK(diag_count(d) == 1 && diag_errors(d) == 1);
    }
    arena_free(a);
}

static void test_reader(void)
{
    static const uint8_t data[] = {1,  2,  3,  4,  5,  6,  7,    8,    9,
                                   10, 11, 12, 13, 14, 15, 0xac, 0x02, 7};
    static const uint8_t wide[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    static const uint8_t wider[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
    Reader               r = reader((Bytes){data, sizeof data});

    CHECK(read_u8(&r) == 1 && read_u16(&r) == 0x0302 && read_u32(&r) == 0x07060504);
    CHECK(read_u64(&r) == 0x0f0e0d0c0b0a0908 && read_varint(&r) == 300);
    CHECK(reader_left(&r) == 1 && read_u16(&r) == 0 && r.bad && read_u8(&r) == 0);
    r = reader((Bytes){data, 4});
    CHECK(read_bytes(&r, 3).n == 3 && read_bytes(&r, UINT64_MAX).n == 0 && r.bad);
    r = reader((Bytes){wide, sizeof wide});
    CHECK(read_varint(&r) == UINT64_MAX && !r.bad);
    r = reader((Bytes){wider, sizeof wider});
    CHECK(read_varint(&r) == 0 && r.bad);
    r = reader((Bytes){wide, 4});
    CHECK(read_varint(&r) == 0 && r.bad);
    r = reader((Bytes){NULL, 0});
    CHECK(read_u8(&r) == 0 && r.bad);
}

static void test_columns(void)
{
    Arena   *a = arena_new(NULL);
    Columns *c = columns_new(a, "lrrl");
    StrBuf   s = strbuf(a);

    columns_add(c, "kernel");
    columns_add(c, "calls");
    columns_end(c);
    for (int i = 0; i < 2; i++) {
        columns_add(c, i ? "schr\303\266der" : "%s", "a_name_that_is_long\033");
        columns_add(c, "%d", i + 9);
        columns_add(c, "%s", "");
        columns_add(c, "%s", i ? "end" : "");
    }
    columns_print(c, 2, &s);
    CHECK_STR(s.at, "  kernel                calls\n"
                    "  a_name_that_is_long?      9\n"
                    "  schr\303\266der                 10  end\n");
    arena_free(a);
}

int main(void)
{
    RUN(test_arena);
    RUN(test_out_of_memory);
    RUN(test_vec);
    RUN(test_map);
    RUN(test_intern);
    RUN(test_text);
    RUN(test_hash);
    RUN(test_diag_text);
    RUN(test_diag_places);
    RUN(test_diag_json);
    RUN(test_diag_sarif);
    RUN(test_warnings);
    RUN(test_fatal_warnings);
    RUN(test_offers);
    RUN(test_reader);
    RUN(test_divisors);
    RUN(test_columns);
    return check_result();
}
