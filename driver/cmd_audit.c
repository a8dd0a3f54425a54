/* tvmcc audit: do products keep the promises of docs/archive.md?
 *
 *     tvmcc audit net.a --max-code=64KiB --stamp=net.audited
 *
 * Objects, static and shared libraries, metadata, archives and unpacked folders.  One error for
 * each breach, a line or JSON about each file; the stamp is written only if there is no error, and
 * always anew, so that a build system sees that the audit was done.
 */
#include "driver/driver.h"
#include "packaging/packaging.h"

#include <fcntl.h>
#include <sys/stat.h>

static bool audit_path(Driver *driver, const char *path, const AuditRules *rules, AuditFile *out)
{
    Diags      *d = driver->diags;
    Arena      *a = driver->arena;
    Bytes       content;
    struct stat st;
    Member     *m;
    uint32_t    n;

    *out = (AuditFile){.path = path, .kind = "object"};
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return folder_read(d, a, path, &m, &n) && audit_folder(d, a, path, m, n, rules, out);
    return file_map(d, path, &content) && audit_file(d, a, path, content, rules, out);
}

static void say_file(Driver *driver, const AuditFile *f)
{
    const AuditReport *r = &f->report;

    if (f->nparts && r->code == 0 && r->rodata == 0) {
        for (uint32_t i = 0; i < f->nparts; i++)
            say_file(driver, &f->parts[i]);
        return;
    }
    if (r->code || r->rodata)
        say(driver, "%s: %s, code %llu bytes, constants %llu, calls %u functions, exports %u\n",
            f->path, f->kind, (unsigned long long)r->code, (unsigned long long)r->rodata,
            r->undefined.n, r->exported.n);
    else
        say(driver, "%s: %s\n", f->path, f->kind);
}

void write_stamp(Driver *driver)
{
    const char *stamp = driver->opt.stamp;

    if (stamp && !diag_errors(driver->diags) && file_write(driver->diags, stamp, (Bytes){0}))
        utimensat(AT_FDCWD, stamp, NULL, 0);
}

int cmd_audit(Driver *driver)
{
    const Options *o = &driver->opt;
    StrBuf         json = strbuf(driver->arena);
    AuditRules     rules = {.entry = o->compile.entry,
                            .no_libm = !o->compile.libm,
                            .no_pic = !o->compile.pic,
                            .extern_weights = o->compile.weights_mode == WEIGHTS_EXTERN,
                            .max_code = o->compile.max_code,
                            .max_weights = o->compile.max_weights,
                            .max_arena = o->compile.max_arena,
                            .max_stack = o->max_stack};

    for (uint32_t i = 0; i < o->inputs.n; i++) {
        AuditFile f;
        bool      ok = audit_path(driver, o->inputs.at[i], &rules, &f);

        if (o->json) {
            str_add(&json, i ? ",\n " : "[");
            audit_json(&f, &json);
        } else if (ok && !o->stamp) {
            say_file(driver, &f);
        }
    }
    if (o->json)
        say(driver, "%s]\n", json.at);
    write_stamp(driver);
    return 0;
}
