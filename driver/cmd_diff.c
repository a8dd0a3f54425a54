/* tvmcc diff: what changed from one release to the next; or the first place where two files differ.
 *
 *     $ tvmcc diff vision-1.0.tar.zst vision-1.1.tar.zst
 *     vision 1.0 -> 1.1
 *     ..
 *     $ tvmcc diff one/net.a two/net.a
 *     net.o: section '.text', 'net_run' + 0x12: 0x48, 0x49
 *
 * Archives, unpacked folders and metadata are compared in the terms of their users
 * (packaging/changes.c); everything else, and all of it with --bytes, by its bytes: archives by
 * member, libraries by object, objects by section and symbol, text by line (packaging/diff.c).
 * Status as diff(1): 0 the same, 1 not, 2 trouble.
 */
#include "driver/driver.h"
#include "packaging/packaging.h"

#include <sys/stat.h>

typedef struct {
    const char *path;
    bool        folder, members; /* a folder; a folder or an archive */
    Bytes       file;            /* else */
    Member     *m;
    uint32_t    n;
} Side;

static bool side_read(Driver *driver, const char *path, Side *out)
{
    uint64_t    limit = driver->opt.max_size ? driver->opt.max_size : PACK_LIMIT;
    struct stat st;

    *out = (Side){.path = path};
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        out->folder = out->members = true;
        return folder_read(driver->diags, driver->arena, path, &out->m, &out->n);
    }
    if (!file_map(driver->diags, path, &out->file))
        return false;
    out->members = pack_looks(out->file) && !driver->opt.bytes;
    return !out->members ||
           pack_read(driver->diags, driver->arena, path, out->file, limit, &out->m, &out->n);
}

/* What is compared by content must be what its SHA256SUMS says; bytes are compared as they are. */
static bool side_open(Driver *driver, const char *path, Side *out)
{
    return side_read(driver, path, out) &&
           (driver->opt.bytes || !out->members ||
            bundle_intact(driver->diags, driver->arena, path, out->m, out->n, !out->file.n));
}

/* Members of the archive that a folder is compared with, byte by byte. */
static bool side_members(Driver *driver, Side *s)
{
    uint64_t limit = driver->opt.max_size ? driver->opt.max_size : PACK_LIMIT;

    return s->members ||
           pack_read(driver->diags, driver->arena, s->path, s->file, limit, &s->m, &s->n);
}

static bool side_release(Driver *driver, const Side *s, Release *out)
{
    Member alone = {.path = s->path, .data = s->file};

    release_read(driver->arena, s->path, s->members ? s->file.n : 0, s->members ? s->m : &alone,
                 s->members ? s->n : 1, out);
    return out->nparts > 0;
}

static int say_changes(Driver *driver, const Release *was, const Release *now)
{
    StrBuf  out = strbuf(driver->arena);
    Changes c;

    changes_find(driver->arena, was, now, &c);
    if (driver->opt.json)
        changes_json(&c, &out);
    else if (!c.same)
        changes_text(&c, &out);
    if (out.n)
        say(driver, "%s", out.at);
    return !c.same;
}

static int say_bytes(Driver *driver, Side *x, Side *y)
{
    StrBuf out = strbuf(driver->arena);
    bool   same;

    if (x->folder || y->folder) {
        if (!side_members(driver, x) || !side_members(driver, y))
            return 2;
        same = diff_members(driver->arena, x->m, x->n, y->m, y->n, &out);
    } else {
        same = diff_bytes(driver->arena, x->file, y->file, &out);
    }
    if (driver->opt.json) {
        StrBuf json = strbuf(driver->arena);

        str_printf(&json, "{\n  \"schema\": \"tvmcc-diff/1\",\n  \"same\": %s,\n",
                   same ? "true" : "false");
        str_add(&json, "  \"first_difference\": ");
        if (same)
            str_add(&json, "null");
        else
            str_add_json(&json, out.at);
        say(driver, "%s\n}\n", json.at);
    } else if (!same) {
        say(driver, "%s\n", out.at);
    }
    return !same;
}

int cmd_diff(Driver *driver)
{
    TextList inputs = driver->opt.inputs;
    Side     x, y;
    Release  was, now;

    diag_one_status(driver->diags, 2);
    if (inputs.n != 2) {
        diag_error(driver->diags, E_USAGE, NO_LOC, "'diff' takes two products, not %u", inputs.n);
        return 2;
    }
    if (!side_open(driver, inputs.at[0], &x) || !side_open(driver, inputs.at[1], &y))
        return 2;
    if (!driver->opt.bytes && side_release(driver, &x, &was) && side_release(driver, &y, &now))
        return say_changes(driver, &was, &now);
    return say_bytes(driver, &x, &y);
}
