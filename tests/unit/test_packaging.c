/* Packaging: headers, metadata, objects, libraries, archives, depfiles.  What the project writes is
 * read back by our own readers and, where they are installed, by the tools of the machine. */
#include "formats/formats.h"
#include "packaging/packaging.h"
#include "tests/unit/check.h"

#include <stdlib.h>
#include <unistd.h>

static Arena *arena;
static Diags *diags;
static char   folder[] = "/tmp/tvmccXXXXXX";

static bool same(Bytes a, Bytes b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.at, b.at, a.n) == 0);
}

static Bytes bytes(const char *text)
{
    return (Bytes){(const uint8_t *)text, strlen(text)};
}

static const char *put_file(const char *name, Bytes b)
{
    const char *path = arena_printf(arena, "%s/%s", folder, name);

    CHECK(file_write(diags, path, b));
    return path;
}

/* Runs a command in the folder: its exit status. */
static int shell(const char *command)
{
    int rc = system(arena_printf(arena, "cd %s && { %s; } >out 2>err", folder, command));

    if (rc != 0 && system(arena_printf(arena, "cat %s/out %s/err", folder, folder)))
        return -1;
    return rc;
}

static bool have(const char *tool)
{
    bool found = system(arena_printf(arena, "command -v %s >/dev/null 2>&1", tool)) == 0;

    if (!found)
        printf("SKIP (no %s)\n", tool);
    return found;
}

static const char *messages(Diags *d)
{
    StrBuf s = strbuf(arena);

    diag_print(d, DIAG_TEXT, &s);
    return s.at;
}

/* ---- header.c ----------------------------------------------------------------------------- */

static const int64_t image[4] = {1, 3, 32, 32}, classes[2] = {1, 10};

static ModelDesc *model(const char *in0, const char *in1)
{
    ModelDesc *m = NEW(arena, ModelDesc);

    *m = (ModelDesc){
        .entry = "Res-Net",
        .model = "net.onnx",
        .nin = 2,
        .nout = 1,
        .in = NEW_ARRAY(arena, TensorDesc, 2),
        .out = NEW_ARRAY(arena, TensorDesc, 1),
        .arena_shared = 4096,
        .arena_private = 64,
        .arena_align = 64,
        .weights_bytes = 64,
        .triple = "x86_64-unknown-linux-gnu",
        .targets = "llvm -mcpu=x86-64",
        .toolchain = "tvmcc 0.1.0",
        .macs = 123456,
        .pointer_bits = 64,
    };
    m->in[0] = (TensorDesc){.name = in0,
                            .code = 2,
                            .bits = 32,
                            .lanes = 1,
                            .ndim = 4,
                            .dims = image,
                            .bytes = 12288,
                            .align = 4};
    m->in[1] = (TensorDesc){.name = in1,
                            .code = 0,
                            .bits = 8,
                            .lanes = 1,
                            .ndim = 2,
                            .dims = classes,
                            .bytes = 10,
                            .align = 1,
                            .quantized = true,
                            .scale = 0.5,
                            .zero_point = -3};
    m->out[0] = (TensorDesc){.name = "class",
                             .code = 2,
                             .bits = 32,
                             .lanes = 1,
                             .ndim = 2,
                             .dims = classes,
                             .bytes = 40,
                             .align = 4};
    return m;
}

static void test_names(void)
{
    CHECK_STR(c_identifier(arena, "serving_default_x:0"), "serving_default_x_0");
    CHECK_STR(c_identifier(arena, "/a//b.c"), "a_b_c");
    CHECK_STR(c_identifier(arena, "ResNet-50"), "resnet_50");
    CHECK_STR(c_identifier(arena, "123"), "t123");
    CHECK_STR(c_identifier(arena, ""), "t");
    CHECK_STR(c_identifier(arena, "\xc3\xa4"), "t");
    CHECK_STR(c_identifier(arena, "Class"), "class_");
}

static void test_clash(void)
{
    Diags *d = diags_new(arena);

    CHECK(!desc_finish(d, arena, model("x:0", "x.0")));
    CHECK_STR(messages(d),
              "tvmcc: error: the inputs 'x:0' and 'x.0' have the same name in C: 'x_0' [E0802]\n"
              "hint: rename one of them in the model\n");
    CHECK_INT(diag_status(d), 1);

    static const char *const dims[] = {"N", "n"};
    ModelDesc               *m = model("x", "y");
    d = diags_new(arena);
    m->nbucket_dims = 2;
    m->bucket_dims = dims;
    CHECK(!desc_finish(d, arena, m));
    CHECK_STR(messages(d), "tvmcc: error: the dimensions 'N' and 'n' have the same name in C: 'n' "
                           "[E0802]\n");
}

static const char user[] =
    "#include \"res_net.h\"\n"
    "RES_NET_DEFINE_ARENA(memory);\n"
    "RES_NET_DEFINE_ARENA_FOR(more, 3);\n"
    "int use(const float *x, const int8_t *q, float *y);\n"
    "int use(const float *x, const int8_t *q, float *y)\n"
    "{\n"
    "    res_net_inputs in = {0, 0};\n"
    "    res_net_outputs out = {0};\n"
    "    in.x_0 = x; in.q = q; out.class_ = y;\n"
    "    return sizeof memory == RES_NET_ARENA_BYTES(1) && sizeof more == 4096 + 3 * 64 &&\n"
    "           RES_NET_ARENA_BYTES(in.x_0 ? 1 : 2) < sizeof more && !more[0] &&\n"
    "           tvmcc_strerror(-3)[0] == 'a' &&\n"
    "           RES_NET_IN_X_0_ELEMS == 3072 && RES_NET_IN_Q_ZERO_POINT == -3 &&\n"
    "           RES_NET_OUT_CLASS__DIM1 == 10 && res_net_run(&in, &out, memory) == 0;\n"
    "}\n";

/* Clean under what careful projects ask for. */
static const struct {
    const char *name, *suffix, *more, *stds[5];
} compilers[] = {
    {"cc", "c", "-Wstrict-prototypes -Wcast-qual", {"c99", "c11", "c17"}},
    {"clang-19", "c", "-Wstrict-prototypes -Wcast-qual", {"c99", "c11", "c23"}},
    {"c++", "cc", "-Wold-style-cast -Wuseless-cast", {"c++11", "c++17", "c++20"}},
    {"c++", "cc", "-Wold-style-cast -Wno-long-long -Wno-variadic-macros", {"c++98"}},
    {"clang++-19", "cc", "-Wold-style-cast", {"c++98", "c++11", "c++17", "c++20"}},
};

static void test_header(void)
{
    ModelDesc *m = model("x:0", "q");
    Bytes      h;

    CHECK(desc_finish(diags, arena, m));
    CHECK_STR(m->entry, "res_net");
    CHECK_STR(m->upper, "RES_NET");
    h = header_text(arena, m);
    CHECK(same(h, header_text(arena, m)));
    CHECK(same(metadata_text(arena, m), metadata_text(arena, m)));
    put_file("res_net.h", h);
    put_file("res_net.json", metadata_text(arena, m));
    put_file("user.c", bytes(user));
    put_file("user.cc", bytes(user));
    put_file("abi.h", abi_header());
    CHECK_INT(shell("mkdir -p tvmcc && mv abi.h tvmcc/"), 0);
    for (size_t i = 0; i < COUNT(compilers); i++)
        if (have(compilers[i].name))
            for (const char *const *std = compilers[i].stds; *std; std++)
                CHECK_INT(shell(arena_printf(arena,
                                             "%s -std=%s -Wall -Wextra -Wconversion "
                                             "-Wsign-conversion -Wshadow -Wundef -pedantic "
                                             "-Werror %s -I. -c user.%s -o user.o",
                                             compilers[i].name, *std, compilers[i].more,
                                             compilers[i].suffix)),
                          0);
    if (have("python3"))
        CHECK_INT(shell("python3 -c \"import json; m = json.load(open('res_net.json')); "
                        "assert m['inputs'][1]['zero_point'] == -3 and "
                        "m['arena']['shared'] == 4096\""),
                  0);
}

static const char *hash_with(void (*change)(ModelDesc *))
{
    ModelDesc *m = model("x:0", "q");

    change(m);
    CHECK(desc_finish(diags, arena, m));
    return header_hash(arena, m);
}

static void nothing(UNUSED ModelDesc *m)
{
}

/* Another checkpoint, another processor, another compiler. */
static void other_build(ModelDesc *m)
{
    m->model = "epoch2.onnx";
    m->model_sha.b[0] = m->build_id.b[0] = m->weights_sha.b[0] = 1;
    m->targets = "llvm -mcpu=haswell";
    m->toolchain = "tvmcc 0.2.0";
}

static void other_size(ModelDesc *m)
{
    static const int64_t larger[4] = {4, 3, 32, 32};

    m->in[0].dims = larger;
}

static void other_type(ModelDesc *m)
{
    m->in[1].code = 1;
}

static void other_arena(ModelDesc *m)
{
    m->arena_shared += 64;
}

static void other_weights(ModelDesc *m)
{
    m->weights_mode = WEIGHTS_FILE;
}

static void test_interface(void)
{
    ModelDesc  *a = model("x:0", "q"), *b = model("x:0", "q");
    const char *hash = hash_with(nothing), *line;

    CHECK_INT(strlen(hash), 8);
    CHECK_STR(hash_with(other_build), hash);
    CHECK(strcmp(hash_with(other_size), hash) && strcmp(hash_with(other_type), hash));
    CHECK(strcmp(hash_with(other_arena), hash) && strcmp(hash_with(other_weights), hash));
    other_build(b);
    b->toolchain = a->toolchain;
    CHECK(desc_finish(diags, arena, a) && desc_finish(diags, arena, b));
    CHECK(same(header_text(arena, a), header_text(arena, b)));
    line = arena_printf(arena, "#define res_net_run res_net_run_header_%s\n", hash);
    CHECK(strstr((const char *)header_text(arena, a).at, line));
    line = arena_printf(arena, "\"header\": \"%s\"", hash);
    CHECK(strstr((const char *)metadata_text(arena, a).at, line));
}

static void test_hostile_names(void)
{
    ModelDesc *m = model("*/ int evil; /*\"\n", "q\\");
    StrBuf     s = strbuf(arena);

    CHECK(desc_finish(diags, arena, m));
    CHECK(!strstr((const char *)header_text(arena, m).at, "*/ int"));
    str_add_json(&s, "a\"b\\c\n\x7f");
    CHECK_STR(s.at, "\"a\\\"b\\\\c\\u000a\\u007f\"");
}

/* ---- elf.c -------------------------------------------------------------------------------- */

static const char *const triples[] = {
    "x86_64-linux-gnu",  "aarch64-linux-android29", "armv7a-linux-gnueabihf",
    "riscv64-linux-gnu", "i686-linux-gnu",
};

static void test_blob(void)
{
    Bytes        data = bytes("0123456789 weights");
    ObjectTarget t;

    for (size_t i = 0; i < COUNT(triples); i++) {
        Object f;
        Bytes  o;

        CHECK(elf_target(diags, triples[i], &t));
        o = elf_blob(arena, &t, "net_weights", data);
        CHECK(same(o, elf_blob(arena, &t, "net_weights", data)));
        CHECK(elf_read(diags, arena, "blob.o", o, &f));
        CHECK(f.target.machine == t.machine && f.target.bits == t.bits &&
              f.target.flags == t.flags);
        CHECK_INT(f.nsections, 6);
        CHECK_STR(f.sections[1].name, ".rodata.net_weights");
        CHECK_INT(f.sections[1].align, 64);
        CHECK(same(f.sections[1].data, data));
        CHECK_INT(f.nsymbols, 2);
        CHECK_STR(f.symbols[1].name, "net_weights");
        CHECK_INT(f.symbols[1].section, 1);
        CHECK_INT(f.symbols[1].size, data.n);
        put_file(arena_printf(arena, "blob%zu.o", i), o);
    }
    if (have("readelf"))
        CHECK_INT(shell("for i in 0 1 2 3 4; do readelf -a -W blob$i.o || exit 1; done; "
                        "test -z \"$(readelf -a -W blob[0-4].o 2>&1 >/dev/null)\""),
                  0);
    CHECK(!elf_target(diags_new(arena), "x86_64-apple-macos13", &t));
    CHECK(!elf_target(diags_new(arena), "wasm32", &t));
}

static void test_link_blob(void)
{
    static const char program[] =
        "extern const unsigned char net_weights[];\n"
        "int main(void) { unsigned s = 0; for (int i = 0; i < 18; i++) s = s * 31 + "
        "net_weights[i];\n"
        "  return !(s == SUM && (unsigned long)net_weights % 64 == 0); }\n";
    const char  *text = "0123456789 weights";
    unsigned     sum = 0;
    ObjectTarget t;

    for (const char *p = text; *p; p++)
        sum = sum * 31 + (unsigned char)*p;
    if (!have("cc") || !elf_target(diags, "x86_64-linux-gnu", &t))
        return;
    put_file("program.c", bytes(program));
    CHECK_INT(shell(arena_printf(arena, "cc -DSUM=%uu -c program.c -o program.o", sum)), 0);
    CHECK_INT(shell("cc program.o blob0.o -o program && ./program"), 0);
}

/* Every truncation and many single changes: an error or a result, never a crash. */
static void test_hostile_objects(void)
{
    Diags       *d = diags_new(arena);
    ObjectTarget t;
    Bytes        o;
    Object       f;
    uint8_t     *p;

    CHECK(elf_target(diags, "x86_64-linux-gnu", &t));
    o = elf_blob(arena, &t, "net_weights", bytes("data"));
    p = arena_dup(arena, o.at, o.n);
    for (size_t n = 0; n < o.n; n++)
        CHECK(!elf_read(d, arena, "o", (Bytes){p, n}, &f));
    for (size_t i = 0; i < o.n; i++)
        for (int k = 0; k < 3; k++) {
            uint8_t old = p[i];

            p[i] = (uint8_t[]){0, 0xff, 0x7f}[k];
            elf_read(d, arena, "o", (Bytes){p, o.n}, &f);
            p[i] = old;
        }
}

/* ---- audit.c ------------------------------------------------------------------------------ */

static Bytes compile(const char *source, const char *options)
{
    Bytes o = {0};

    put_file("unit.c", bytes(source));
    CHECK_INT(shell(arena_printf(arena, "cc -O1 -ffreestanding -fno-builtin %s -c unit.c -o unit.o",
                                 options)),
              0);
    CHECK(file_read(diags, arena, arena_printf(arena, "%s/unit.o", folder), &o));
    return o;
}

static const char *audit(const char *source, const char *options, const AuditRules *rules)
{
    Diags      *d = diags_new(arena);
    AuditReport r;
    Bytes       o = compile(source, options);

    CHECK(audit_object(d, arena, "unit.o", o, rules, &r) == (diag_errors(d) == 0));
    return diag_errors(d) ? messages(d) : "";
}

static void test_audit(void)
{
    AuditRules rules = {.entry = "net"}, strict = {.entry = "net", .no_libm = true},
               small = {.entry = "net", .max_code = 1};
    static const char good[] = "float expf(float); void *memset(void *, int, unsigned long);\n"
                               "extern const char net_weights[];\n"
                               "float net_run(float x) { return expf(x) + net_weights[0]; }\n";

    if (!have("cc"))
        return;
    CHECK_STR(audit(good, "", &rules), "");
    CHECK_STR(audit(good, "-fPIC", &rules), "");
    CHECK_STR(audit(good, "-g", &rules), "");
    CHECK_STR(audit(good, "", &strict), "unit.o: error: the object calls 'expf' [E0802]\n");
    CHECK(strstr(audit(good, "", &small), "[E0803]"));
    CHECK_STR(
        audit("void *malloc(unsigned long); void *net_run(void) { return malloc(4); }", "", &rules),
        "unit.o: error: the object calls 'malloc' [E0802]\n");
    CHECK_STR(audit("int net_run(void) { static int n; return ++n; }", "", &rules),
              "unit.o: error: the object has writable memory in '.bss' [E0802]\n");
    CHECK_STR(
        audit("int helper(void) { return 1; }", "", &rules),
        "unit.o: error: the object exports 'helper', which has not the prefix 'net_' [E0802]\n");
    CHECK(strstr(
        audit(
            "volatile int net_x; __attribute__((constructor)) void net_start(void) { net_x = 1; }",
            "", &rules),
        "the object has constructors"));
    CHECK(strstr(audit("__attribute__((weak)) int net_f(void) { return 0; }", "", &rules),
                 "weak symbol 'net_f'"));
    CHECK(strstr(audit("_Thread_local int net_t = 1;", "", &rules), "thread-local"));
    CHECK_STR(audit("static int f(void){return 1;} int (*const net_table[])(void) = {f};", "-fPIC",
                    &rules),
              "");
}

/* ---- ar.c --------------------------------------------------------------------------------- */

static void test_library(void)
{
    ObjectTarget t;
    Member       m[3];
    Bytes        lib, again;

    CHECK(elf_target(diags, "x86_64-linux-gnu", &t));
    m[0] = (Member){.path = "net.o", .data = elf_blob(arena, &t, "net_one", bytes("1"))};
    m[1] = (Member){.path = "a/kernel_with_a_long_name.o",
                    .data = elf_blob(arena, &t, "net_two", bytes("22"))};
    m[2] = (Member){.path = "another_quite_long_name.o",
                    .data = elf_blob(arena, &t, "net_three", bytes("333"))};
    CHECK(ar_library(diags, arena, m, 3, &lib));
    CHECK(ar_library(diags, arena, m, 3, &again));
    CHECK(same(lib, again));
    put_file("libnet.a", lib);
    if (have("ar"))
        CHECK_INT(
            shell("test \"$(ar t libnet.a | tr '\\n' ' ')\" = \"net.o kernel_with_a_long_name.o "
                  "another_quite_long_name.o \" && ar p libnet.a another_quite_long_name.o >x.o && "
                  "nm x.o | grep -q 'R net_three' && nm -s libnet.a | grep -q 'net_two in kernel'"),
            0);
    if (have("cc")) {
        put_file("main.c",
                 bytes("extern const char net_two[], net_three[];"
                       "int main(void) { return net_two[0] != '2' || net_three[2] != '3'; }"));
        CHECK_INT(shell("cc main.c -L. -lnet -o main && ./main"), 0);
    }
    m[1].data = bytes("not an object");
    CHECK(!ar_library(diags_new(arena), arena, m, 3, &lib));
    CHECK(ar_library(diags, arena, m, 0, &lib));
}

/* ---- archive.c, bundle.c ------------------------------------------------------------------ */

static const Member some[] = {
    {.path = "net/z.txt", .data = {(const uint8_t *)"zz", 2}},
    {.path = "net/lib/x/libnet.so", .data = {(const uint8_t *)"\177ELF", 4}, .executable = true},
    {.path = "net/lib.txt", .data = {(const uint8_t *)"", 0}},
    {.path = "net/lib/a", .data = {(const uint8_t *)"aaaa", 4}},
};

static const struct {
    const char *name, *list;
} formats[] = {
    {"x.tar", "tar tf"},
    {"x.tar.gz", "tar tzf"},
    {"x.tar.zst", "tar --zstd -tf"},
    {"x.tar.xz", "tar tJf"},
    {"x.zip", "python3 -m zipfile -t"},
};

static bool packed(PackFormat f, const Member *m, uint32_t n, Bytes *out)
{
    BytesList pieces;
    bool      ok = pack_archive(diags, arena, f, 0, m, n, &pieces);

    *out = ok ? pieces_join(arena, pieces) : (Bytes){0};
    return ok;
}

static void test_archives(void)
{
    for (size_t i = 0; i < COUNT(formats); i++) {
        PackFormat f = pack_format(formats[i].name);
        Bytes      one = {0}, two = {0};
        Member    *m = NULL;
        uint32_t   n = 0;

        CHECK(f != PACK_NONE);
        setenv("TZ", "UTC", 1);
        CHECK(packed(f, some, COUNT(some), &one));
        setenv("TZ", "Asia/Tokyo", 1);
        CHECK(packed(f, some, COUNT(some), &two));
        unsetenv("TZ");
        CHECK(same(one, two));
        CHECK(pack_read(diags, arena, formats[i].name, one, 100, &m, &n));
        CHECK_INT(n, 4);
        if (n == 4) {
            CHECK_STR(m[0].path, "net/lib.txt");
            CHECK_STR(m[1].path, "net/lib/a");
            CHECK_STR(m[2].path, "net/lib/x/libnet.so");
            CHECK(m[2].executable && !m[1].executable);
            CHECK(same(m[3].data, some[0].data));
            CHECK(pack_find(m, n, "net/lib/a") == &m[1]);
        }
        CHECK(!pack_read(diags_new(arena), arena, "x", one, 9, &m, &n)); /* 10 bytes of content */
        for (size_t cut = 0; cut < one.n; cut += one.n / 40 + 1)
            pack_read(diags_new(arena), arena, "x", (Bytes){one.at, cut}, 100, &m, &n);
        put_file(formats[i].name, one);
        if (have("tar") && have("python3"))
            CHECK_INT(shell(arena_printf(arena, "%s %s", formats[i].list, formats[i].name)), 0);
    }
    if (have("tar"))
        CHECK_INT(
            shell("tar tvf x.tar --full-time --utc | head -2 >got && printf '%s\\n%s\\n' "
                  "'drwxr-xr-x 0/0               0 1970-01-01 00:00:00 net/' "
                  "'-rw-r--r-- 0/0               0 1970-01-01 00:00:00 net/lib.txt' | diff got -"),
            0);
    CHECK_STR(pack_stem(arena, "/a/resnet.v1.tar.gz"), "resnet.v1");
    CHECK_STR(pack_stem(arena, "net.onnx"), "net");
    CHECK(pack_format("net.onnx") == PACK_NONE);
}

static bool is_in(Bytes part, Bytes whole)
{
    return part.at >= whole.at && part.at + part.n <= whole.at + whole.n;
}

/* Weights are stored as they are, and may be larger than what is let out of any archive.  No copy
 * of them is made on either way. */
static void test_large_member(void)
{
    Arena    *own = arena_new(NULL);
    Member    w = {.path = "w", .data = {arena_alloc(own, UNPACK_FREE + 1), UNPACK_FREE + 1}}, *m;
    uint32_t  n = 0;
    BytesList pieces;
    Bytes     tar;

    memset((uint8_t *)(uintptr_t)w.data.at, 'w', w.data.n);
    CHECK(pack_archive(diags, own, PACK_TAR, 0, &w, 1, &pieces));
    CHECK(pieces.n == 3 && is_in(pieces.at[1], w.data));
    tar = pieces_join(own, pieces);
    CHECK(tar.n < UNPACK_FREE + 8192);
    CHECK(pack_read(diags, own, "w.tar", tar, PACK_LIMIT, &m, &n));
    CHECK(n == 1 && m->data.n == w.data.n && m->data.at[UNPACK_FREE] == 'w');
    CHECK(is_in(m->data, tar));
    arena_free(own);
}

/* A hole of a file is zeros, at its end, too. */
static void test_sparse_member(void)
{
    Bytes    tar;
    Member  *m;
    uint32_t n = 0;

    if (!have("tar"))
        return;
    CHECK_INT(shell("printf begin >hole && truncate -s 300000 hole && printf middle >>hole && "
                    "truncate -s 500000 hole && tar cSf sparse.tar hole"),
              0);
    CHECK(file_read(diags, arena, arena_printf(arena, "%s/sparse.tar", folder), &tar));
    CHECK(tar.n < 100000);
    CHECK(pack_read(diags, arena, "sparse.tar", tar, PACK_LIMIT, &m, &n));
    CHECK(n == 1 && m->data.n == 500000);
    CHECK(!memcmp(m->data.at, "begin\0", 6) && !memcmp(m->data.at + 299999, "\0middle\0", 8));
    CHECK(m->data.at[499999] == 0);
}

static void test_bad_paths(void)
{
    static const char *const paths[] = {"/etc/passwd", "../x", "a/../../x", "a//b", "",
                                        "a/",          "./a",  "a\\b"};
    BytesList                out;

    for (size_t i = 0; i < COUNT(paths); i++) {
        Member m = {.path = paths[i]};

        CHECK(!pack_archive(diags_new(arena), arena, PACK_TAR, 0, &m, 1, &out));
    }
    CHECK(!pack_archive(diags_new(arena), arena, PACK_TAR, 0,
                        (Member[]){{.path = "a"}, {.path = "a"}}, 2, &out));
    if (have("tar")) {
        Bytes    evil;
        Member  *m;
        uint32_t n;

        CHECK_INT(
            shell("echo hi >../tvmcc-evil && tar cPf evil.tar ../tvmcc-evil; rm ../tvmcc-evil; "
                  "ln -s /etc/passwd link && tar cf link.tar link"),
            0);
        CHECK(file_read(diags, arena, arena_printf(arena, "%s/evil.tar", folder), &evil));
        CHECK(!pack_read(diags_new(arena), arena, "evil.tar", evil, 1000, &m, &n));
        CHECK(file_read(diags, arena, arena_printf(arena, "%s/link.tar", folder), &evil));
        CHECK(!pack_read(diags_new(arena), arena, "link.tar", evil, 1000, &m, &n));
    }
}

static void test_bundle(void)
{
    ModelDesc   *desc = model("x:0", "q");
    Bytes        data = bytes("the weights"), tar;
    BundlePart   p = {.desc = desc};
    Bundle       b = {.nparts = 1, .parts = &p, .version = "1.2", .epoch = 1000000000};
    Member      *m;
    uint32_t     n;
    ObjectTarget t;

    CHECK(desc_finish(diags, arena, desc));
    CHECK(elf_target(diags, desc->triple, &t));
    p.header = header_text(arena, desc);
    p.metadata = metadata_text(arena, desc);
    p.weights = weights_file(arena, data, sha256(data));
    CHECK_INT(p.weights.n, 64 + data.n);
    CHECK(ar_library(
        diags, arena,
        &(Member){.path = "res_net.o", .data = elf_blob(arena, &t, "res_net_weights", data)}, 1,
        &p.library));
    CHECK(bundle_members(diags, arena, &b, &m, &n));
    CHECK(pack_find(m, n, "res_net/include/res_net.h") != NULL);
    CHECK(pack_find(m, n, "res_net/lib/x86_64-unknown-linux-gnu/libres_net.a") != NULL);
    CHECK(packed(PACK_TAR, m, n, &tar));
    put_file("bundle.tar", tar);
    CHECK(pack_read(diags, arena, "bundle.tar", tar, 1 << 20, &m, &n));
    CHECK(bundle_verify(diags, arena, "bundle.tar", m, n));
    CHECK(!bundle_verify(diags_new(arena), arena, "bundle.tar", m, n - 1));
    m[n - 1].data = bytes("changed");
    CHECK(!bundle_verify(diags_new(arena), arena, "bundle.tar", m, n));
    if (have("tar") && have("sha256sum"))
        CHECK_INT(shell("tar xf bundle.tar && cd res_net && sha256sum -c SHA256SUMS"), 0);
    if (have("python3"))
        CHECK_INT(shell("python3 -c \"import json; m = json.load(open('res_net/manifest.json')); "
                        "assert m['models'][0]['entry'] == 'res_net' and len(m['files']) == 13, m; "
                        "s = json.load(open('res_net/sbom.spdx.json')); "
                        "assert s['creationInfo']['created'] == '2001-09-09T01:46:40Z' and "
                        "s['packages'][1]['name'] == 'net.onnx', s\""),
                  0);
    if (have("pkg-config"))
        CHECK_INT(shell("PKG_CONFIG_PATH=res_net/lib/pkgconfig pkg-config --libs res_net | grep -q "
                        "lres_net"),
                  0);
}

/* ---- so.c --------------------------------------------------------------------------------- */

static void test_shared(void)
{
    const char *object = put_file("net.o", compile("int net_f(void) { return 42; }", "-fPIC"));
    LinkJob     job = {.output = arena_printf(arena, "%s/libnet.so", folder),
                       .triple = "x86_64-unknown-linux-gnu",
                       .native = true,
                       .nobjects = 1,
                       .objects = &object};
    Diags      *d = diags_new(arena);
    Bytes       one, two;
    Object      f;

    if (!have("cc"))
        return;
    CHECK(link_shared(diags, arena, &job));
    CHECK(file_read(diags, arena, job.output, &one));
    CHECK(elf_read(diags, arena, "libnet.so", one, &f));
    CHECK(object_is_shared(one) && !f.relocatable);
    CHECK_INT(
        shell("readelf -d -W libnet.so | grep SONAME | grep -q libnet.so && test -x libnet.so && "
              "! readelf -S libnet.so | grep -q init_array"),
        0);
    CHECK(link_shared(diags, arena, &job));
    CHECK(file_read(diags, arena, job.output, &two));
    CHECK(same(one, two));
    if (have("ld.lld-19")) {
        job.cc = "ld.lld-19";
        CHECK(link_shared(diags, arena, &job));
        CHECK_INT(shell("readelf -d -W libnet.so | grep -q SONAME"), 0);
    }
    job.cc = "no-such-compiler";
    CHECK(!link_shared(d, arena, &job));
    CHECK_INT(diag_status(d), 9);
    job.cc = NULL;
    job.nobjects = 1;
    object = put_file("bad.o", bytes("not an object"));
    d = diags_new(arena);
    CHECK(shell("true") == 0 && freopen("/dev/null", "w", stderr));
    CHECK(!link_shared(d, arena, &job));
    CHECK_INT(diag_status(d), 1);
    CHECK_INT(shell("ls | grep tmp; test $? = 1"), 0);
}

/* For a machine without a compiler here: lld alone, with the page size Android asks for. */
static void test_shared_cross(void)
{
    const char *object = arena_printf(arena, "%s/blob1.o", folder);
    LinkJob     job = {.output = arena_printf(arena, "%s/libarm.so", folder),
                       .triple = "aarch64-linux-android29",
                       .nobjects = 1,
                       .objects = &object};

    if (!have("ld.lld-19") || !have("readelf"))
        return;
    CHECK(link_shared(diags, arena, &job));
    CHECK_INT(shell("readelf -h libarm.so | grep -q AArch64 && "
                    "readelf -lW libarm.so | grep LOAD | grep -q 0x4000"),
              0);
}

/* ---- depfile.c ---------------------------------------------------------------------------- */

static void test_depfile(void)
{
    static const char *const outs[] = {"net.o", "net.h"}, *const ins[] = {"/a b.onnx", "c$d#.bin",
                                                                          "/a b.onnx"};
    Deps deps = {.noutputs = 2, .outputs = outs, .ninputs = 3, .inputs = ins};

    CHECK_STR((const char *)depfile_text(arena, &deps).at,
              "net.o net.h: \\\n  /a\\ b.onnx \\\n  c$$d\\#.bin\n");
    deps.phony = true;
    CHECK_STR((const char *)depfile_text(arena, &deps).at,
              "net.o net.h: \\\n  /a\\ b.onnx \\\n  c$$d\\#.bin\n\n/a\\ b.onnx:\n\nc$$d\\#.bin:\n");
    deps.ninputs = 0;
    CHECK_STR((const char *)depfile_text(arena, &deps).at, "net.o net.h:\n");
}

int main(void)
{
    arena = arena_new(NULL);
    diags = diags_new(arena);
    if (!mkdtemp(folder))
        return 2;
    RUN(test_names);
    RUN(test_clash);
    RUN(test_header);
    RUN(test_interface);
    RUN(test_hostile_names);
    RUN(test_blob);
    RUN(test_link_blob);
    RUN(test_hostile_objects);
    RUN(test_audit);
    RUN(test_library);
    RUN(test_archives);
    RUN(test_large_member);
    RUN(test_sparse_member);
    RUN(test_bad_paths);
    RUN(test_bundle);
    RUN(test_shared_cross);
    RUN(test_depfile);
    RUN(test_shared);
    if (diag_errors(diags))
        printf("%s", messages(diags));
    CHECK_INT(diag_errors(diags), 0);
    if (system(arena_printf(arena, "rm -rf %s", folder)))
        return 2;
    file_unmap_all(diags);
    arena_free(arena);
    return check_result();
}
