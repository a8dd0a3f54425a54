/* What can be done with a manifest short of building it.
 *
 *     tvmcc check [manifest.yaml]     all its errors; --json prints it as build systems want it
 *     tvmcc fmt [manifest.yaml]       rewrites it in canonical form; --check only compares
 *     tvmcc lock [manifest.yaml]      writes manifest.lock, from then on part of every build
 */
#include "driver/build.h"
#include "driver/manifest_job.h"

#include <string.h>

static bool one_manifest(Driver *driver)
{
    const Options *o = &driver->opt;

    return o->inputs.n + (o->manifest != NULL) <= 1 ||
           diag_error(driver->diags, E_USAGE, NO_LOC, "'%s' takes one manifest, not %u",
                      o->command->name, o->inputs.n + (o->manifest != NULL));
}

/* `, "options": {"net.board": ["--entry=net", ..], ..}`: what the lower step of each product takes,
 * for build systems that run the steps themselves. */
static const char *lower_options(Driver *driver, const Manifest *m)
{
    ManBuilds builds = manifest_builds(m, driver->arena);
    StrBuf    s = strbuf(driver->arena);

    str_add(&s, ",\n \"options\": {");
    for (uint32_t i = 0; i < builds.n; i++) {
        BuildArgs args;

        if (!build_args(driver, "/", &builds.at[i], &args))
            continue; /* all errors are recorded */
        str_add(&s, i ? ",\n  " : "");
        str_add_json(&s, builds.at[i].name);
        str_add(&s, ": [");
        for (uint32_t k = 0; k < args.lower.n; k++) {
            str_add(&s, k ? ", " : "");
            str_add_json(&s, args.lower.at[k]);
        }
        str_add(&s, "]");
    }
    str_add(&s, "}");
    return s.at;
}

int cmd_check(Driver *driver)
{
    ManFiles        files = {0};
    const Manifest *m = one_manifest(driver) ? manifest_open(driver, &files) : NULL;
    StrBuf          s = strbuf(driver->arena);

    if (!m || !manifest_check_models(driver, m, true) || !manifest_enforce_lock(driver, m, &files))
        return 0;
    if (driver->opt.json) {
        manifest_json(m, &files, lower_options(driver, m), &s);
        if (diag_errors(driver->diags))
            return 0;
        say(driver, "%s", s.at);
    } else if (driver->opt.verbose) {
        say(driver, "%s: %u models, %u products\n", manifest_path(driver), m->models.n,
            manifest_builds(m, driver->arena).n);
    }
    return 0;
}

int cmd_fmt(Driver *driver)
{
    const char *path = manifest_path(driver), *output = driver->opt.output;
    StrBuf      s = strbuf(driver->arena);
    Bytes       text;

    if (!one_manifest(driver) || !file_read(driver->diags, driver->arena, path, &text) ||
        !manifest_format(driver->diags, driver->arena, path, text, &s))
        return 0;
    if (!driver->opt.check) {
        file_write(driver->diags, output ? output : path, (Bytes){(const uint8_t *)s.at, s.n});
    } else if (s.n != text.n || memcmp(s.at, text.at, s.n) != 0) {
        uint32_t line = 1, col = 1;

        for (size_t i = 0; i < s.n && i < text.n && text.at[i] == (uint8_t)s.at[i]; i++, col++) {
            if (text.at[i] == '\n') {
                line++;
                col = 0;
            }
        }
        diag_error(driver->diags, E_MANIFEST_STYLE, (Loc){path, line, col, NULL},
                   "from here on this is not in canonical form");
        diag_hint(driver->diags, "'tvmcc fmt %s' rewrites it", path);
    }
    return 0;
}

int cmd_lock(Driver *driver)
{
    ManFiles        files = {0};
    const Manifest *m = one_manifest(driver) ? manifest_open(driver, &files) : NULL;

    if (m)
        manifest_write_lock(driver, m, &files);
    return 0;
}
