/* manifest/: what the goldens of tests/manifest/ do not see, the structs that other rooms get. */
#include "manifest/manifest.h"

#include "tests/unit/check.h"

static const char text[] =
    "schema: tvm-manifest/1\n"
    "project: {name: p, version: '2.1'}\n"
    "hosts: {a: aarch64-linux-gnu, b: {triple: x86_64-linux-gnu, mcpu: haswell}}\n"
    "targets: {cpu: llvm, own: 'llvm -mcpu=skylake', gpu: {kind: opencl}}\n"
    "pairs:\n"
    "  a: {host: a, target: cpu}\n"
    "  b: {host: b, target: own}\n"
    "  g: {host: b, target: gpu}\n"
    "defaults:\n"
    "  opt_level: 2\n"
    "  tuning: {logs: [all.log, {path: '${target}.log', pairs: [a]}]}\n"
    "  limits: {arena: 1MiB, code: 2KiB}\n"
    "models:\n"
    "  Net-1:\n"
    "    source: 'm/${model}-${version}.onnx'\n"
    "    pairs: [b, a]\n"
    "    inputs: {x: [N, 3, on2]}\n"
    "    limits: {arena: 5}\n"
    "  n2: {source: n2.onnx, pairs: [a, g], opt_level: 0}\n"
    "bundles: {r: {models: [Net-1, n2]}}\n";

static void test_builds(void)
{
    Arena          *a = arena_new(NULL);
    Diags          *d = diags_new(a);
    const Manifest *m =
        manifest_parse(d, a, "sub/m.yaml", (Bytes){(const uint8_t *)text, strlen(text)}, NULL);
    ManBuilds builds;
    ManTexts  pairs;

    CHECK(m && !diag_errors(d));
    if (!m)
        return;
    builds = manifest_builds(m, a);
    CHECK_INT(builds.n, 4);
    CHECK_STR(builds.at[0].name, "Net-1.b");
    CHECK_STR(builds.at[0].entry, "net_1");
    CHECK_STR(builds.at[0].model->source.path.text, "sub/m/Net-1-2.1.onnx");
    CHECK_STR(m->models.at[0].source.path.text, "sub/m/${model}-${version}.onnx");
    CHECK_INT(builds.at[0].limits.arena.value, 5);
    CHECK_INT(builds.at[0].limits.code.value, 2048);
    CHECK_INT(builds.at[0].opt_level.value, 2);
    CHECK_INT(builds.at[0].tuning.logs.n, 1);
    CHECK_STR(builds.at[0].model->inputs.at[0].shape.at[0].name, "N");
    CHECK_INT(builds.at[0].model->inputs.at[0].shape.at[1].value, 3);
    CHECK_INT(builds.at[1].tuning.logs.n, 2);
    CHECK_STR(builds.at[1].tuning.logs.at[1].path.text, "sub/a.log");
    CHECK_INT(builds.at[2].opt_level.value, 0);
    CHECK_STR(manifest_target_text(a, builds.at[0].host, builds.at[0].target),
              "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell -mcpu=skylake");
    CHECK_STR(manifest_target_text(a, builds.at[3].host, builds.at[3].target),
              "opencl, llvm -mtriple=x86_64-linux-gnu -mcpu=haswell");
    pairs = manifest_bundle_pairs(m, a, manifest_bundle(m, "r"));
    CHECK_INT(pairs.n, 1);
    CHECK_STR(pairs.at[0].text, "a");
    CHECK(!manifest_model(m, "n3"));
    arena_free(a);
}

static void test_lock(void)
{
    Arena *a = arena_new(NULL);
    Diags *d = diags_new(a);
    StrBuf s = strbuf(a), again = strbuf(a);
    Lock   l = {0}, read;

    lock_add(a, &l, "versions", "tvmcc", "1");
    lock_add(a, &l, "inputs", "b\xff", "2");
    lock_add(a, &l, "inputs", "a", "3");
    lock_print(&l, &s);
    CHECK(lock_parse(d, a, "x.lock", (Bytes){(const uint8_t *)s.at, s.n}, &read));
    CHECK_INT(read.rows.n, 3);
    CHECK_STR(read.rows.at[0].key, "a");
    CHECK(lock_compare(d, "x.lock", &l, &read));
    lock_print(&read, &again);
    CHECK_STR(again.at, s.at);
    read.rows.at[0].value = "4";
    CHECK(!lock_compare(d, "x.lock", &l, &read));
    CHECK_INT(diag_errors(d), 1);
    CHECK_INT(diag_status(d), 5);
    arena_free(a);
}

/* As large as a file may be, and shaped to be slow. */
static void test_large(void)
{
    Arena *a = arena_new(NULL);
    Diags *d = diags_new(a);
    StrBuf s = strbuf(a), out = strbuf(a);

    str_add(&s, "schema: tvm-manifest/1\nmodels: {");
    for (int i = 0; i < 12000; i++)
        str_printf(&s, "m%d: {source: a, pairs: [p]}, ", i);
    str_add(&s, "}\n");
    CHECK(!manifest_parse(d, a, "m.yaml", (Bytes){(const uint8_t *)s.at, s.n}, NULL));
    CHECK(manifest_format(d, a, "m.yaml", (Bytes){(const uint8_t *)s.at, s.n}, &out));
    s = strbuf(a);
    for (int i = 0; i < 600000; i++)
        str_add(&s, "[");
    CHECK(!manifest_parse(d, a, "m.yaml", (Bytes){(const uint8_t *)s.at, s.n}, NULL));
    arena_free(a);
}

int main(void)
{
    RUN(test_builds);
    RUN(test_lock);
    RUN(test_large);
    return check_result();
}
