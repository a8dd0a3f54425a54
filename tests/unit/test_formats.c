/* formats/: protobuf, zip, NumPy; what is written is read back, and broken input only ever fails.
 */
#include "formats/formats.h"
#include "tests/unit/check.h"

#include <stdlib.h>

static Arena *arena;
static Diags *diags;

static Bytes bytes(const void *p, size_t n)
{
    return (Bytes){p, n};
}

static const char *said(void)
{
    StrBuf s = strbuf(arena);

    diag_print(diags, DIAG_TEXT, &s);
    return s.at ? s.at : "";
}

static void fresh(void)
{
    diags = diags_new(arena);
}

/* A copy that ends where the heap block ends, so that sanitizers see one byte too many. */
static uint8_t *tight(const void *p, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);

    if (n)
        memcpy(copy, p, n);
    return copy;
}

/* ---- protobuf ------------------------------------------------------------------------------------- */

typedef struct Item Item;
struct Item {
    int64_t     number;
    bool        has_number;
    float       f;
    double      d;
    const char *text;
    Bytes       blob;
    Item       *sub;
    PbInts      ints;
    PbPacked    floats, doubles;
    PbTexts     texts;
    PbBlobs     blobs;
    PbMsgs      items;
};

static const PbMessage item_message;
static const PbEnum    item_words[] = {{"SEVEN", 7}, {NULL, 0}};
static const PbField   item_fields[] = {
    {1, PB_INT, offsetof(Item, number), offsetof(Item, has_number), NULL, "number", item_words},
    {2, PB_FLOAT, offsetof(Item, f), 0, NULL, "f", NULL},
    {3, PB_DOUBLE, offsetof(Item, d), 0, NULL, "d", NULL},
    {4, PB_TEXT, offsetof(Item, text), 0, NULL, "text", NULL},
    {5, PB_BYTES, offsetof(Item, blob), 0, NULL, "blob", NULL},
    {6, PB_MSG, offsetof(Item, sub), 0, &item_message, "sub", NULL},
    {7, PB_INTS, offsetof(Item, ints), 0, NULL, "ints", NULL},
    {8, PB_FLOATS, offsetof(Item, floats), 0, NULL, "floats", NULL},
    {9, PB_DOUBLES, offsetof(Item, doubles), 0, NULL, "doubles", NULL},
    {10, PB_TEXTS, offsetof(Item, texts), 0, NULL, "texts", NULL},
    {11, PB_BLOBS, offsetof(Item, blobs), 0, NULL, "blobs", NULL},
    {12, PB_MSGS, offsetof(Item, items), 0, &item_message, "items", NULL},
};
static const PbMessage item_message = {"Item", sizeof(Item), COUNT(item_fields), item_fields};

static bool read_item(const void *p, size_t n, Item *out)
{
    fresh();
    *out = (Item){0};
    return pb_read(diags, arena, (Loc){.file = "x.pb"}, &item_message, bytes(p, n), out);
}

static const uint8_t all_fields[] = {
    0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, /* 1: -1 */
    0x15, 0x00, 0x00, 0x80, 0x3f,                                     /* 2: 1.0f */
    0x19, 0,    0,    0,    0,    0,    0,    0,    0x40,             /* 3: 2.0 */
    0x22, 2,    'h',  'i',                                            /* 4 */
    0x2a, 3,    1,    2,    3,                                        /* 5 */
    0x32, 2,    0x08, 7,                                              /* 6: {1: 7} */
    0x32, 2,    0x22, 0,                                              /* 6 merged: {4: ""} */
    0x3a, 3,    1,    0xac, 0x02,                                     /* 7 packed: 1, 300 */
    0x38, 5,                                                          /* 7: 5 */
    0x42, 4,    0,    0,    0,    0x40,                               /* 8 packed: 2.0f */
    0x45, 0,    0,    0x80, 0x3f, 0x45, 0,    0,    0,    0,          /* 8: 1.0f, 0.0f */
    0x49, 0,    0,    0,    0,    0,    0,    0xf0, 0x3f,             /* 9: 1.0 */
    0x52, 1,    'a',  0x52, 1,    'b',                                /* 10 */
    0x5a, 1,    9,                                                    /* 11 */
    0x62, 0,    0x62, 2,    0x08, 3,                                  /* 12: {}, {1: 3} */
    0xa3, 0x06, 0x08, 1,    0xab, 0x06, 0xac, 0x06, 0xa4, 0x06,       /* 100: group, skipped */
    0xf8, 0x06, 1,                                                    /* 111: unknown */
};

static void test_pb_fields(void)
{
    Item v;

    CHECK(read_item(all_fields, sizeof all_fields, &v));
    CHECK_STR(said(), "");
    CHECK(v.number == -1 && v.has_number && v.f == 1 && v.d == 2);
    CHECK_STR(v.text, "hi");
    CHECK(v.blob.n == 3 && v.blob.at[2] == 3);
    CHECK(v.blob.at > all_fields && v.blob.at < all_fields + sizeof all_fields);
    CHECK(v.sub && v.sub->number == 7 && v.sub->text && !*v.sub->text);
    CHECK(v.ints.n == 3 && v.ints.at[1] == 300 && v.ints.at[2] == 5);
    CHECK(v.floats.data.n == 12 && v.floats.data.at[3] == 0x40 && v.floats.data.at[7] == 0x3f);
    CHECK(v.doubles.data.n == 8);
    CHECK(v.texts.n == 2 && !strcmp(v.texts.at[1], "b"));
    CHECK(v.blobs.n == 1 && v.blobs.at[0].at[0] == 9);
    CHECK(v.items.n == 2 && ((Item *)v.items.at[1])->number == 3);
}

/* Packed data in one piece are not copied. */
static void test_pb_view(void)
{
    static const uint8_t in[] = {0x42, 8, 1, 2, 3, 4, 5, 6, 7, 8};
    Item                 v;

    CHECK(read_item(in, sizeof in, &v));
    CHECK(v.floats.data.at == in + 2 && v.floats.data.n == 8);
}

static bool read_item_text(const char *text, Item *out)
{
    fresh();
    *out = (Item){0};
    return pb_read_text(diags, arena, (Loc){.file = "x.pbtxt"}, &item_message,
                        bytes(text, strlen(text)), out);
}

static void test_pb_text(void)
{
    Item v;

    CHECK(read_item_text("number: SEVEN  # seven\n f: -1.5f d: 2e3 text: 'a' \"b\"\n"
                         "blob: \"\\001\\x41\\n\" sub { number: 3 text: \"in\" }\n"
                         "ints: [1, -2] ints: 0x10 floats: 1 floats: inf texts: \"x\";\n"
                         "items < number: 1 > items: {} other { ints: [1, 2] name: \"q\" }\n"
                         "unknown: WORD",
                         &v));
    CHECK_STR(said(), "");
    CHECK(v.number == 7 && v.f == -1.5f && v.d == 2000);
    CHECK_STR(v.text, "ab");
    CHECK(v.blob.n == 3 && v.blob.at[0] == 1 && v.blob.at[1] == 'A' && v.blob.at[2] == '\n');
    CHECK(v.sub && v.sub->number == 3 && !strcmp(v.sub->text, "in"));
    CHECK(v.ints.n == 3 && v.ints.at[1] == -2 && v.ints.at[2] == 16);
    CHECK(v.floats.data.n == 8 && v.texts.n == 1 && v.items.n == 2);
    CHECK(pb_looks_like_text(&item_message, bytes(" # no\n number: 1", 16)));
    CHECK(!pb_looks_like_text(&item_message, bytes("name: 1", 7)));
    CHECK(!read_item_text("number: 1\nsub {", &v));
    CHECK_STR(said(), "x.pbtxt: error: line 2: a message does not end [E0301]\n");
    CHECK(!read_item_text("number: x", &v));
    CHECK(!read_item_text("text: \"a", &v));
    CHECK(!read_item_text("ints: [1", &v));
}

/* ---- sorted tables -------------------------------------------------------------------------------- */

/* One block with the keys "a" and "ab", then the block that says where it is. */
static const uint8_t table[] = {
    0, 1, 2, 'a', 7, 8,        /* nothing shared, 1 byte, 2 of a value */
    1, 1, 1, 'b', 9,           /* 1 shared */
    0, 0, 0, 0,   1, 0,  0, 0, /* where it can be begun, how often */
    0, 0, 0, 0,   0,           /* not compressed, a checksum */
    0, 1, 2, 'z', 0, 19,       /* offset 0, 19 bytes */
    0, 0, 0, 0,   1, 0,  0, 0, /* .. */
    0, 0, 0, 0,   0,           /* .. */
};

static size_t sstable_of(uint8_t *out)
{
    static const uint8_t magic[] = {0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb};

    memcpy(out, table, sizeof table);
    memset(out + sizeof table, 0, 40);
    out[sizeof table + 2] = 24; /* the second handle: offset 24, 14 bytes */
    out[sizeof table + 3] = 14;
    memcpy(out + sizeof table + 40, magic, sizeof magic);
    return sizeof table + 48;
}

static void test_sstable(void)
{
    uint8_t  file[sizeof table + 48];
    size_t   size = sstable_of(file);
    SsEntry *at;
    uint32_t n;

    fresh();
    CHECK(sstable_read(diags, arena, (Loc){.file = "x.index"}, bytes(file, size), &n, &at));
    CHECK_STR(said(), "");
    CHECK(n == 2 && !strcmp(at[0].key, "a") && !strcmp(at[1].key, "ab"));
    CHECK(at[0].value.n == 2 && at[1].value.n == 1 && at[1].value.at[0] == 9);
    for (size_t i = 0; i < size; i++) { /* whatever is damaged, nothing is read outside */
        uint8_t *copy = tight(file, size);

        copy[i] ^= 0xff;
        sstable_read(diags, arena, (Loc){.file = "x.index"}, bytes(copy, size), &n, &at);
        sstable_read(diags, arena, (Loc){.file = "x.index"}, bytes(copy + i, size - i), &n, &at);
        free(copy);
    }
}

/* Many handles of one block: few bytes, a lot of entries. */
static void test_sstable_overlap(void)
{
    enum { BLOCK = 904, ENTRIES = 300, INDEX = 6 * ENTRIES + 4, SIZE = BLOCK + INDEX + 10 + 48 };
    static const uint8_t entry[] = {0, 0, 3, 0, BLOCK % 128 + 128, BLOCK / 128},
                         handles[] = {0,
                                      0,
                                      (BLOCK + 5) % 128 + 128,
                                      (BLOCK + 5) / 128,
                                      INDEX % 128 + 128,
                                      INDEX / 128},
                         magic[] = {0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb};
    static uint8_t file[SIZE];
    SsEntry       *at;
    uint32_t       n;

    fresh();
    for (size_t i = 0; i < ENTRIES; i++)
        memcpy(file + BLOCK + 5 + i * sizeof entry, entry, sizeof entry);
    memcpy(file + SIZE - 48, handles, sizeof handles);
    memcpy(file + SIZE - 8, magic, sizeof magic);
    CHECK(!sstable_read(diags, arena, (Loc){.file = "x.index"}, bytes(file, SIZE), &n, &at));
    CHECK_STR(said(), "x.index: error: the blocks of the table overlap [E0301]\n");
}

static void test_pb_truncated(void)
{
    uint32_t fine = 0;

    for (size_t n = 0; n < sizeof all_fields; n++) {
        uint8_t *copy = tight(all_fields, n);
        Item     v;

        fine += read_item(copy, n, &v);
        CHECK(diag_errors(diags) <= 1);
        free(copy);
    }
    CHECK(fine > 5 && fine < 25); /* whole fields are a message too */
}

static void test_pb_broken(void)
{
    static const struct {
        const char *bytes;
        size_t      n;
        const char *text;
    } cases[] = {
        {"\x0a\x01x", 3, "x.pb: error: byte 3: field 1 of Item should be a varint [E0301]\n"},
        {"\x22\x7fx", 3, "x.pb: error: byte 0: Item ends early or is not protobuf [E0301]\n"},
        {"\x22\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11,
         "x.pb: error: byte 0: Item ends early or is not protobuf [E0301]\n"},
        {"\x22\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12,
         "x.pb: error: byte 0: Item ends early or is not protobuf [E0301]\n"},
        {"\x00", 1, "x.pb: error: byte 0: Item ends early or is not protobuf [E0301]\n"},
        {"\x0f\x01", 2, "x.pb: error: byte 0: Item ends early or is not protobuf [E0301]\n"},
        {"\x0c", 1, "x.pb: error: byte 0: Item ends early or is not protobuf [E0301]\n"},
        {"\x42\x03xyz", 5, "x.pb: error: byte 2: 3 bytes do not hold whole numbers of 4 [E0301]\n"},
        {"\x3a\x01\x80", 3, "x.pb: error: byte 2: packed numbers end early [E0301]\n"},
        {"\x32\x02\x22\x05", 4,
         "x.pb: error: byte 2: Item ends early or is not protobuf [E0301]\n"},
    };

    for (uint32_t i = 0; i < COUNT(cases); i++) {
        uint8_t *copy = tight(cases[i].bytes, cases[i].n);
        Item     v;

        CHECK(!read_item(copy, cases[i].n, &v));
        CHECK_STR(said(), cases[i].text);
        CHECK_INT(diag_status(diags), 4);
        free(copy);
    }
}

/* Messages in messages: {6: {6: .. }}, and groups in groups. */
static void test_pb_deep(void)
{
    static uint8_t in[1 << 16];
    size_t         at = sizeof in;
    Item           v;

    for (uint32_t i = 0; i < 1000; i++) {
        size_t n = sizeof in - at;

        if (n >= 128)
            in[--at] = (uint8_t)(n >> 7), in[--at] = (uint8_t)(0x80 | (n & 0x7f));
        else
            in[--at] = (uint8_t)n;
        in[--at] = 0x32;
    }
    CHECK(!read_item(in + at, sizeof in - at, &v));
    CHECK(strstr(said(), "nested more than 64 deep") != NULL);
    memset(in, 0xa3, sizeof in); /* each pair of bytes opens group 0x1194 */
    CHECK(!read_item(in, sizeof in, &v));
}

static void test_pb_random(void)
{
    uint64_t seed = 7;
    uint8_t  in[256];
    Item     v;

    for (uint32_t i = 0; i < 20000; i++) {
        size_t n = sizeof all_fields, flips;

        memcpy(in, all_fields, n);
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        flips = 1 + (seed >> 60) % 4;
        for (size_t k = 0; k < flips; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            in[(seed >> 33) % n] = (uint8_t)(seed >> 25);
        }
        read_item(in, n, &v);
        if (i % 1000 == 0)
            arena_reset(arena);
    }
    CHECK(true);
}

/* ---- zip and npy ------------------------------------------------------------------------------------ */

static const float cells[6] = {1, 2, 3, 4, 5, 6};

static Array array(const char *name, uint8_t code, uint8_t bits, uint32_t ndim, const int64_t *dims,
                   const void *data, size_t n)
{
    return (Array){name, code, bits, ndim, dims, {data, n}, NULL, false};
}

static void test_npz_round_trip(void)
{
    static const int64_t matrix[] = {2, 3}, none[1], empty[] = {0, 4};
    const Array          in[] = {
        array("x:0", TVMCC_FLOAT, 32, 2, matrix, cells, 24),
        array("a/b c", TVMCC_INT, 64, 0, none, "\1\2\3\4\5\6\7\10", 8),
        array("flag", TVMCC_BOOL, 8, 2, matrix, "\1\0\1\0\1\1", 6),
        array("half", TVMCC_FLOAT, 16, 2, matrix, cells, 12),
        array("bf", ARRAY_OPAQUE, 16, 2, matrix, cells, 12),
        array("void", TVMCC_UINT, 8, 2, empty, "", 0),
    };
    Bytes    one = npz_write(arena, COUNT(in), in), two = npz_write(arena, COUNT(in), in);
    Array   *out;
    uint32_t n;

    fresh();
    CHECK(one.n == two.n && !memcmp(one.at, two.at, one.n));
    CHECK(npz_read(diags, arena, (Loc){.file = "x.npz"}, one, &n, &out));
    CHECK_STR(said(), "");
    CHECK_INT(n, COUNT(in));
    for (uint32_t i = 0; i < n && i < COUNT(in); i++) {
        CHECK_STR(out[i].name, in[i].name);
        CHECK(out[i].code == in[i].code && out[i].bits == in[i].bits && out[i].ndim == in[i].ndim);
        CHECK(!memcmp(out[i].dims, in[i].dims, in[i].ndim * sizeof *in[i].dims));
        CHECK(out[i].data.n == in[i].data.n &&
              (!out[i].data.n || !memcmp(out[i].data.at, in[i].data.at, out[i].data.n)));
    }
    for (size_t k = 0; k < one.n; k += 7) {
        uint8_t *copy = tight(one.at, k);

        fresh();
        npz_read(diags, arena, (Loc){.file = "x.npz"}, bytes(copy, k), &n, &out);
        free(copy);
    }
}

static bool read_npy(const char *head, const void *data, size_t n, Array *out)
{
    StrBuf s = strbuf(arena);

    fresh();
    str_addn(&s, "\x93NUMPY\1\0", 8);
    str_addc(&s, (char)(strlen(head) & 0xff));
    str_addc(&s, (char)(strlen(head) >> 8));
    str_add(&s, head);
    str_addn(&s, data, n);
    *out = (Array){0};
    return npy_read(diags, arena, (Loc){.file = "x.npy"}, bytes(s.at, s.n), out);
}

static void test_npy_orders(void)
{
    Array v;

    /* [[1, 3, 5], [2, 4, 6]] by columns */
    CHECK(read_npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", cells, 24, &v));
    CHECK(v.ndim == 2 && ((const float *)v.data.at)[1] == 3 && ((const float *)v.data.at)[3] == 2);
    CHECK(
        read_npy("{'shape': (3,), 'fortran_order': False, 'descr': '>u2'}", "\0\1\0\2\1\0", 6, &v));
    CHECK(v.code == TVMCC_UINT && ((const uint16_t *)v.data.at)[1] == 2 &&
          ((const uint16_t *)v.data.at)[2] == 256);
    CHECK(read_npy("{'descr': '|b1', 'fortran_order': False, 'shape': ()}", "\1", 1, &v));
    CHECK(v.ndim == 0 && v.data.n == 1);
}

static void test_npy_broken(void)
{
    static const char *const heads[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (7,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
        "{'descr': '<f4', 'fortran_order': False, }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<U7', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<U99999999999', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f3', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4",
        "{",
        "",
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
         "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}"),
    };
    Array v;

    for (uint32_t i = 0; i < COUNT(heads); i++) {
        CHECK(!read_npy(heads[i], cells, 24, &v));
        CHECK_INT(diag_status(diags), 4);
    }
    fresh();
    CHECK(!npy_read(diags, arena, NO_LOC, bytes("\x93NUMPY\2\0\xff\xff\xff\xff", 12), &v));
}

/* Two entries that claim to hold more than the limit. */
static void test_zip_limit(void)
{
    ZipEntry in[2] = {{"a", bytes(cells, 24)}, {"b", bytes(cells, 24)}}, *out;
    Bytes    file = zip_write(arena, 2, in);
    uint32_t n;

    fresh();
    CHECK(zip_read(diags, arena, NO_LOC, file, 48, &n, &out) && n == 2);
    CHECK(!zip_read(diags, arena, NO_LOC, file, 47, &n, &out));
    CHECK(strstr(said(), "entry 'b' of the zip is too large") != NULL);
    fresh();
    CHECK(zip_read(diags, arena, NO_LOC, zip_write(arena, 0, NULL), 100, &n, &out) && n == 0);
    CHECK(!zip_read(diags, arena, NO_LOC, bytes("not a zip file at all", 21), 100, &n, &out));
    CHECK_INT(diag_status(diags), 4);
}

/* ---- tensors of ONNX ---- */

/* Every type there and back; cells of 4 bits lie in the low bits first. */
static void test_tensor_pb_round_trip(void)
{
    static const int64_t three[] = {1, 3};
    static const struct {
        uint8_t     code, bits;
        const char *data;
        size_t      n;
    } in[] = {{TVMCC_FLOAT, 32, "abcdefghijkl", 12},
              {TVMCC_BOOL, 8, "\1\0\1", 3},
              {TVMCC_INT, 64, "abcdefghijklmnopqrstuvwx", 24},
              {TVMCC_BFLOAT, 16, "abcdef", 6},
              {TVMCC_FLOAT8_E5M2FNUZ, 8, "abc", 3},
              {TVMCC_UINT, 4, "\x21\x03", 2},
              {TVMCC_FLOAT4_E2M1FN, 4, "\x21\x03", 2},
              {TVMCC_INT, 2, "\x39", 1}};
    Array v = {0};

    for (uint32_t i = 0; i < COUNT(in); i++) {
        Array a = {"x:0", in[i].code, in[i].bits, 2, three, bytes(in[i].data, in[i].n),
                   NULL,  false};
        Bytes file = tensor_pb_write(arena, &a);

        fresh();
        CHECK(tensor_pb_read(diags, arena, (Loc){.file = "x.pb"}, file, &v));
        CHECK_STR(said(), "");
        CHECK_STR(v.name, "x:0");
        CHECK_STR(v.file, "x.pb");
        CHECK(v.code == a.code && v.bits == a.bits && v.ndim == 2 && v.dims[1] == 3);
        CHECK(v.data.n == a.data.n && !memcmp(v.data.at, a.data.at, v.data.n));
        for (size_t k = 0; k < file.n; k++) {
            uint8_t *copy = tight(file.at, k);

            fresh();
            CHECK(!tensor_pb_read(diags, arena, NO_LOC, bytes(copy, k), &v));
            free(copy);
        }
    }
    v = (Array){"", TVMCC_INT, 2, 1, (int64_t[]){5}, bytes("\xe4\x01", 2), NULL, false};
    Bytes cells = array_unpacked(arena, &v), packed = array_packed(arena, cells, 2);

    CHECK(cells.n == 5 && !memcmp(cells.at, "\0\1\2\3\1", 5));
    CHECK(packed.n == 2 && !memcmp(packed.at, "\xe4\x01", 2));
}

/* Strings, in .pb and .npy: with room for the longest; code points and bytes, of either order. */
static void test_strings(void)
{
    static const int64_t dims[] = {2, 2};
    static const char    cat[] = "cat\0\0\0f\xc3\xbcnf\0abcdef\0\0\0\0\0\0";
    Array v = {"s", TVMCC_UINT, 8, 3, (int64_t[]){2, 2, 6}, bytes(cat, 24), NULL, true}, w;
    Bytes file[2] = {tensor_pb_write(arena, &v), npy_write(arena, &v)};

    for (uint32_t i = 0; i < 2; i++)
        for (size_t k = 0; k <= file[i].n; k++) {
            uint8_t *copy = tight(file[i].at, k);
            bool     ok = i ? npy_read(diags, arena, NO_LOC, bytes(copy, k), &w)
                            : tensor_pb_read(diags, arena, NO_LOC, bytes(copy, k), &w);

            if (k == file[i].n)
                CHECK(ok && w.text && w.ndim == 3 && !memcmp(w.dims, dims, sizeof dims) &&
                      w.dims[2] == 6 && !memcmp(w.data.at, cat, 24));
            free(copy);
        }
    CHECK(read_npy("{'descr': '>U2', 'fortran_order': True, 'shape': (1, 2)}",
                   "\0\0\0a\0\0\0b\0\0\x20\xac\0\0\0\0", 16, &v));
    CHECK(v.text && v.dims[2] == 3 && !memcmp(v.data.at, "ab\0\xe2\x82\xac", 6));
    CHECK(
        read_npy("{'descr': '|S3', 'fortran_order': False, 'shape': (2,)}", "ab\0\xff\0\0", 6, &v));
    CHECK(v.dims[1] == 2 && !memcmp(v.data.at, "ab\xff\0", 4));
    file[0] = npy_write(arena, &v); /* no UTF-8: bytes again */
    CHECK(memmem(file[0].at, file[0].n, "'|S2'", 5) != NULL);
    CHECK(read_npy("{'descr': '<U0', 'fortran_order': False, 'shape': (2,)}", "", 0, &v));
    CHECK(v.dims[1] == 1 && v.data.n == 2);
    CHECK(
        !read_npy("{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}", "\0\0\x11\0", 4, &v));
    CHECK(!read_npy("{'descr': '|S3', 'fortran_order': False, 'shape': (1,)}", "a\0b", 3, &v));
    CHECK(!read_npy("{'descr': '<U0', 'fortran_order': False, 'shape': (1152921504606846976,)}", "",
                    0, &v));
}

/* Typed fields; and what no tensor may say. */
static void test_tensor_pb_fields(void)
{
    static const struct {
        const char *bytes;
        size_t      n;
        const char *says;
    } broken[] = {
        {"\x8\3\x10\1\x4a\4abcd", 10, "has 4 bytes of data, but its shape needs 12"},
        {"\x8\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\x10\1", 13, "a dimension below 0"},
        {"\x10\x8", 2, "the tensor has 0 strings, but its shape needs 1"},
        {"\x10\x8\x32\3a\0b", 7, "string 0 has a zero byte in it"},
        {"\x10\0", 2, "a tensor of element type UNDEFINED (0)"},
        {"\x10\x63", 2, "a tensor of element type unknown (99)"},
        {"\x10\1\x70\1", 4, "the data of the tensor are in another file"},
        {"\x8\xff\xff\xff\xff\xff\xff\xff\x7f\x8\xff\xff\xff\xff\xff\xff\xff\x7f\x10\1", 20,
         "too large"},
    };
    Array v = {0};

    fresh(); /* dims 3, int8, int32_data -1, 2, 3 */
    CHECK(tensor_pb_read(diags, arena, NO_LOC,
                         bytes("\x8\3\x10\3\x2a\xc\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\2\3", 18),
                         &v));
    CHECK(v.data.n == 3 && !memcmp(v.data.at, "\xff\2\3", 3));
    CHECK(v.ndim == 1 && v.code == TVMCC_INT && v.bits == 8 && !*v.name);
    for (uint32_t i = 0; i < COUNT(broken); i++) {
        fresh();
        CHECK(!tensor_pb_read(diags, arena, NO_LOC, bytes(broken[i].bytes, broken[i].n), &v));
        CHECK(strstr(said(), broken[i].says) != NULL);
    }
}

int main(void)
{
    arena = arena_new(NULL);
    RUN(test_pb_fields);
    RUN(test_pb_view);
    RUN(test_pb_text);
    RUN(test_sstable);
    RUN(test_sstable_overlap);
    RUN(test_pb_truncated);
    RUN(test_pb_broken);
    RUN(test_pb_deep);
    RUN(test_pb_random);
    RUN(test_npz_round_trip);
    RUN(test_npy_orders);
    RUN(test_npy_broken);
    RUN(test_zip_limit);
    RUN(test_tensor_pb_round_trip);
    RUN(test_tensor_pb_fields);
    RUN(test_strings);
    arena_free(arena);
    return check_result();
}
