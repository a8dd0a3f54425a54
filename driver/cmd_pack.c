/* tvmcc pack: an archive of what was built; tvmcc unpack: the folder of an archive.
 *
 *     tvmcc pack build/net.json build/net.h build/libnet.a -o net.tar.zst
 *     tvmcc pack -m manifest.yaml --bundle release --pair board-cpu FILES -o release.tar.zst
 *     tvmcc unpack net.tar.zst -C /opt/models
 *
 * Which file belongs to which model is found out (packaging/gather.c); their order means nothing.
 * With a manifest, a bundle of it says the name, version, licence, layout and contents, and the
 * tuning logs of the pair go in.
 */
#include "driver/driver.h"
#include "manifest/manifest.h"
#include "packaging/packaging.h"

#include <string.h>

typedef VEC(Member) Members;

typedef struct {
    Driver          *driver;
    Bundle           bundle;
    const LayoutRow *layout;
    Members          extra;
} Pack;

/* ---- what is asked for -------------------------------------------------------------------------- */

static bool find_word(Driver *driver, const char *option, const char *word,
                      const char *const *names, uint32_t n, uint32_t *out)
{
    const char *closest;

    for (uint32_t i = 0; i < n; i++)
        if (strcmp(word, names[i]) == 0) {
            *out = i;
            return true;
        }
    diag_error(driver->diags, E_USAGE, NO_LOC, "'%s' takes no '%s'", option, word);
    if ((closest = str_closest(word, names, n)))
        diag_hint(driver->diags, "did you mean '%s'?", closest);
    return false;
}

static bool add_contents(Pack *p, const char *list)
{
    while (*list) {
        size_t   n = strcspn(list, ",");
        uint32_t content;

        if (!find_word(p->driver, "--contents",
                       arena_printf(p->driver->arena, "%.*s", (int)n, list), content_names,
                       CONTENT_COUNT, &content))
            return false;
        p->bundle.contents |= 1u << content;
        list += n + (list[n] == ',');
    }
    return true;
}

static bool add_file(Pack *p, const char *path, const char *file)
{
    Member m = {.path = path};

    if (!file_map(p->driver->diags, file, &m.data))
        return false;
    vec_push(p->driver->arena, &p->extra, m);
    return true;
}

/* The tuning logs that the manifest names for the bundle's models on the pair. */
static bool add_logs(Pack *p, const Manifest *m, const ManBundle *b, const char *pair)
{
    ManBuilds   builds = manifest_builds(m, p->driver->arena);
    const char *last = NULL;

    for (uint32_t i = 0; i < builds.n; i++) {
        const ManBuild *build = &builds.at[i];
        bool            ours = !pair || strcmp(build->pair->key, pair) == 0;
        bool            listed = false;

        for (uint32_t k = 0; k < b->models.n; k++)
            listed = listed || strcmp(b->models.at[k].text, build->model->key) == 0;
        for (uint32_t k = 0; ours && listed && k < build->tuning.logs.n; k++) {
            const char *file = build->tuning.logs.at[k].path.text, *slash = strrchr(file, '/');

            if (last && strcmp(last, file) == 0)
                continue;
            last = file;
            if (!add_file(p, arena_printf(p->driver->arena, "tuning/%s", slash ? slash + 1 : file),
                          file))
                return false;
        }
    }
    return true;
}

static bool from_manifest(Pack *p)
{
    Driver          *driver = p->driver;
    const Options   *o = &driver->opt;
    ManFiles         files = {0};
    const Manifest  *m = manifest_read(driver->diags, driver->arena,
                                      o->manifest ? o->manifest : "manifest.yaml", &files);
    const ManBundle *b = m ? manifest_bundle(m, o->bundle) : NULL;

    if (!m)
        return false;
    if (!b)
        return diag_error(driver->diags, E_USAGE, NO_LOC, "the manifest has no bundle '%s'",
                          o->bundle);
    if (o->pair && !manifest_pair(m, o->pair))
        return diag_error(driver->diags, E_USAGE, NO_LOC, "the manifest has no pair '%s'", o->pair);
    p->bundle.name = m->project.name.text;
    p->bundle.version = m->project.version.text;
    p->bundle.license = m->project.license.text;
    p->bundle.top =
        arena_printf(driver->arena, "%s-%s-%s%s%s", p->bundle.name ? p->bundle.name : "models",
                     p->bundle.version ? p->bundle.version : "0", o->bundle, o->pair ? "-" : "",
                     o->pair ? o->pair : "");
    if (b->layout.given && !(p->layout = layout_find(driver->diags, "layout", b->layout.text)))
        return false;
    for (uint32_t i = 0; i < b->contents.n; i++)
        if (!add_contents(p, b->contents.at[i].text))
            return false;
    return (p->bundle.contents && !(p->bundle.contents >> CONTENT_TUNING & 1)) ||
           add_logs(p, m, b, o->pair);
}

/* Names that become file names and CMake text. */
static bool good_name(Driver *driver, const char *option, const char *text)
{
    if (!text || (*text && text[0] != '.' && text[0] != '-' &&
                  strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "_-.+") == strlen(text)))
        return true;
    return diag_error(driver->diags, E_USAGE, NO_LOC,
                      "'%s' takes letters, digits and _-.+, not '%s'", option, text);
}

static bool from_options(Pack *p)
{
    Driver        *driver = p->driver;
    const Options *o = &driver->opt;

    p->bundle.epoch = o->compile.epoch;
    if (o->pack_name)
        p->bundle.name = o->pack_name;
    if (o->pack_version)
        p->bundle.version = o->pack_version;
    if (o->license)
        p->bundle.license = o->license;
    if (o->top)
        p->bundle.top = o->top;
    if (!p->bundle.top && o->pack_name && o->pack_version)
        p->bundle.top = arena_printf(driver->arena, "%s-%s", o->pack_name, o->pack_version);
    if (o->compile.layout &&
        !(p->layout = layout_find(driver->diags, "--layout", o->compile.layout)))
        return false;
    if (o->contents) {
        p->bundle.contents = 0;
        if (!add_contents(p, o->contents))
            return false;
    }
    for (uint32_t i = 0; i < o->additions.n; i++) {
        const char *text = o->additions.at[i], *equals = strchr(text, '=');

        if (!equals || equals == text)
            return diag_error(driver->diags, E_USAGE, NO_LOC,
                              "'--add' takes <path>=<file>, not '%s'", text);
        if (!add_file(p, arena_printf(driver->arena, "%.*s", (int)(equals - text), text),
                      equals + 1))
            return false;
    }
    return good_name(driver, "--name", p->bundle.name) &&
           good_name(driver, "--version", p->bundle.version) &&
           good_name(driver, "--top", p->bundle.top);
}

/* ---- pack ------------------------------------------------------------------------------------------- */

static bool gather(Pack *p)
{
    Driver  *driver = p->driver;
    TextList inputs = driver->opt.inputs;
    Members  files = {0};

    for (uint32_t i = 0; i < inputs.n; i++) {
        Member m = {.path = inputs.at[i]};

        if (!file_map(driver->diags, inputs.at[i], &m.data))
            return false;
        vec_push(driver->arena, &files, m);
    }
    if (!bundle_gather(driver->diags, driver->arena, files.at, files.n, &p->bundle))
        return false;
    for (uint32_t i = 0; i < p->bundle.nextra; i++)
        vec_push(driver->arena, &p->extra, p->bundle.extra[i]);
    p->bundle.extra = p->extra.at;
    p->bundle.nextra = p->extra.n;
    return true;
}

/* The archive as others will read it, against what was meant. */
static bool verify(Driver *driver, const char *path, const Member *m, uint32_t n,
                   const LayoutRow *layout)
{
    Bytes    file;
    Member  *got;
    uint32_t ngot;

    if (!file_read(driver->diags, driver->arena, path, &file) ||
        !pack_read(driver->diags, driver->arena, path, file, PACK_LIMIT, &got, &ngot) ||
        (layout == &layout_table[0] &&
         !bundle_verify(driver->diags, driver->arena, path, got, ngot)))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const Member *x = pack_find(got, ngot, m[i].path);

        if (!x || x->data.n != m[i].data.n ||
            (x->data.n && memcmp(x->data.at, m[i].data.at, x->data.n) != 0))
            return diag_error(driver->diags, E_PACK, (Loc){.file = path},
                              "member '%s' was not written as it should be", m[i].path);
    }
    return ngot == n || diag_error(driver->diags, E_PACK, (Loc){.file = path},
                                   "the archive has %u members, not %u", ngot, n);
}

int cmd_pack(Driver *driver)
{
    const Options *o = &driver->opt;
    Pack           p = {.driver = driver, .layout = &layout_table[0]};
    PackFormat     format;
    Member        *m;
    uint32_t       n;
    BytesList      archive;

    if (!o->output)
        return !!diag_error(driver->diags, E_USAGE, NO_LOC, "say with -o where the archive goes");
    format = pack_format(o->output);
    if (format == PACK_NONE)
        return !!diag_error(driver->diags, E_USAGE, NO_LOC,
                            "the suffix of '%s' names no kind of archive", o->output);
    if ((o->bundle && !from_manifest(&p)) || !from_options(&p) || !gather(&p) ||
        !p.layout->members(driver->diags, driver->arena, &p.bundle, &m, &n) ||
        !pack_archive(driver->diags, driver->arena, format, p.bundle.epoch, m, n, &archive) ||
        !file_write_pieces(driver->diags, o->output, archive))
        return 1;
    if (o->verbose)
        say(driver, "%s: %u members, %zu bytes\n", o->output, n, pieces_size(archive));
    return o->verify && !verify(driver, o->output, m, n, p.layout);
}

/* ---- unpack ------------------------------------------------------------------------------------------ */

/* "net/" if all members are below it, else "". */
static const char *common_top(Arena *a, const Member *m, uint32_t n)
{
    size_t len = n ? strcspn(m[0].path, "/") + 1 : 0;

    for (uint32_t i = 0; i < n; i++)
        if (strncmp(m[i].path, m[0].path, len) != 0 || !strchr(m[i].path, '/'))
            return "";
    return n ? arena_printf(a, "%.*s", (int)len, m[0].path) : "";
}

static bool has_sums(const Member *m, uint32_t n, const char *top)
{
    for (uint32_t i = 0; i < n; i++)
        if (str_starts(m[i].path, top) && strcmp(m[i].path + strlen(top), "SHA256SUMS") == 0)
            return true;
    return false;
}

static bool unpack(Driver *driver, const char *path)
{
    const Options *o = &driver->opt;
    Arena         *a = driver->arena;
    const char    *top, *folder;
    Bytes          file;
    Member        *m;
    uint32_t       n;

    if (!file_map(driver->diags, path, &file) ||
        !pack_read(driver->diags, a, path, file, o->max_size ? o->max_size : PACK_LIMIT, &m, &n))
        return false;
    top = common_top(a, m, n);
    if (has_sums(m, n, top) && !bundle_verify(driver->diags, a, path, m, n))
        return false;
    folder = *top ? arena_printf(a, "%.*s", (int)strlen(top) - 1, top) : pack_stem(a, path);
    for (uint32_t i = 0; i < n; i++)
        m[i].path += strlen(top);
    if (o->output) {
        if (!file_make_folder(driver->diags, o->output))
            return false;
        folder = arena_printf(a, "%s/%s", o->output, folder);
    }
    if (!folder_write(driver->diags, a, folder, m, n, o->force))
        return false;
    say(driver, "%s\n", folder);
    return true;
}

int cmd_unpack(Driver *driver)
{
    for (uint32_t i = 0; i < driver->opt.inputs.n; i++)
        if (!unpack(driver, driver->opt.inputs.at[i]))
            return 1;
    return 0;
}
