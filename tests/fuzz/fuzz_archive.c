/* Any bytes as whatever can be delivered: an archive in any format, read within a limit and checked
 * against its list of hashes; a static library; metadata.  What is read is audited, gathered into a
 * bundle again, and compared. */
#include "packaging/packaging.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 1 << 20 };

static void try_members(Arena *a, const Member *m, uint32_t n)
{
    AuditRules rules = {.max_code = 1};
    AuditFile  report;
    Bundle     bundle = {.epoch = 1};
    Member    *again;
    uint32_t   nagain;
    StrBuf     text = strbuf(a);
    Release    was, now;
    Changes    changes;

    bundle_verify(diags_new(a), a, "archive", m, n);
    audit_folder(diags_new(a), a, "archive", m, n, &rules, &report);
    audit_json(&report, &text);
    if (bundle_gather(diags_new(a), a, m, n, &bundle)) {
        bundle_members(diags_new(a), a, &bundle, &again, &nagain);
        mlf_members(diags_new(a), a, &bundle, &again, &nagain);
        tvmc_members(diags_new(a), a, &bundle, &again, &nagain);
    }
    diff_members(a, m, n, m, n ? n - 1 : 0, &text);
    release_read(a, "fuzz.tar", 0, m, n, &was);
    release_read(a, "fuzz.tar", 0, m, n ? n - 1 : 0, &now);
    changes_find(a, &was, &now, &changes);
    changes_text(&changes, &text);
    changes_json(&changes, &text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena     *a = arena_new(NULL);
    Diags     *d = diags_new(a);
    Bytes      file = {data, size}, half = {data, size / 2};
    AuditRules rules = {0};
    AuditFile  report;
    ModelDesc  desc;
    Refit      refit = {&desc, &desc, {data, size / 3}};
    Bytes      out;
    Member    *m;
    uint32_t   n;
    StrBuf     text = strbuf(a);

    if (pack_read(d, a, "archive", file, LIMIT, &m, &n))
        try_members(a, m, n);
    if (ar_members(d, a, "library", file, &m, &n))
        try_members(a, m, n);
    if (metadata_read(d, a, "metadata", file, &desc)) {
        refit_possible(d, "metadata", &desc, &desc);
        refit_file(d, a, "metadata", file, &refit, &out);
        m = &(Member){.path = "net.json", .data = file};
        try_members(a, m, 1);
    }
    if (!pack_looks(file)) /* its limit is larger than what fuzzing can wait for */
        audit_file(d, a, "file", file, &rules, &report);
    diff_bytes(a, pack_looks(file) ? (Bytes){0} : file, half, &text);
    arena_free(a);
    return 0;
}
