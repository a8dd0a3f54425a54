/* tvmcc repro: is a build the same wherever and whenever it is done?
 *
 *     tvmcc repro -- net.onnx --emit=o,h,tar.zst -o net
 *     tvmcc repro -m manifest.yaml release
 *
 * The command is run three times: plainly; with everything varied that this machine can vary, and
 * an empty kernel cache; and so once more with the cache that the second run filled.  All files
 * that appear are compared.  If some differ, each condition is tried alone, so that the report can
 * say what it was.  Status 10 if anything differs.
 */
#include "driver/manifest_job.h"
#include "driver/repro.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_INPUTS = 20000 };
static const uint64_t max_bytes = (uint64_t)32 << 30;

/* ---- what is copied ----------------------------------------------------------------------------- */

static const ReproInput *find_input(const Repro *r, const char *path)
{
    for (uint32_t i = 0; i < r->inputs.n; i++)
        if (strcmp(r->inputs.at[i].path, path) == 0)
            return &r->inputs.at[i];
    return NULL;
}

/* A file that the command did not touch, as far as one can see. */
static bool is_input(const Repro *r, const Member *m)
{
    const ReproInput *in = find_input(r, m->path);

    return in && in->data.n == m->data.n &&
           (in->data.n == 0 || memcmp(in->data.at, m->data.at, in->data.n) == 0);
}

static bool add_input(Repro *r, const char *path)
{
    ReproInput  in = {.path = path};
    struct stat st;
    uint64_t    sum = 0;

    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || find_input(r, path))
        return true;
    if (!file_map(r->driver->diags, path, &in.data))
        return false;
    in.executable = (st.st_mode & 0100) != 0;
    vec_push(r->driver->arena, &r->inputs, in);
    for (uint32_t i = 0; i < r->inputs.n; i++)
        sum += r->inputs.at[i].data.n;
    return (r->inputs.n <= MAX_INPUTS && sum <= max_bytes) ||
           diag_error(r->driver->diags, E_USAGE, NO_LOC,
                      "more than %d files, or 32 GiB, lie beside the inputs", MAX_INPUTS);
}

static bool is_below(const char *path)
{
    return path[0] != '/' && strcmp(path, "..") != 0 && !str_starts(path, "../") &&
           !strstr(path, "/../");
}

/* The parts of a word that may be a file: all of it, or what stands behind '='. */
static const char *file_of(const char *word)
{
    const char *equals = strchr(word, '=');
    struct stat st;

    if (stat(word, &st) == 0 && S_ISREG(st.st_mode))
        return word;
    if (equals && stat(equals + 1, &st) == 0 && S_ISREG(st.st_mode))
        return equals + 1;
    return NULL;
}

/* A file with what lies beside it: weights in files of their own have names that only the model
 * knows. */
static bool add_beside(Repro *r, const char *file)
{
    Arena         *a = r->driver->arena;
    const char    *slash = strrchr(file, '/');
    const char    *folder = slash ? arena_printf(a, "%.*s", (int)(slash - file), file) : ".";
    DIR           *d;
    struct dirent *e;
    bool           ok;

    ok = !(d = opendir(folder)) || add_input(r, file);
    while (ok && d && (e = readdir(d)) != NULL)
        if (e->d_name[0] != '.')
            ok = add_input(r, slash ? arena_printf(a, "%s/%s", folder, e->d_name)
                                    : arena_printf(a, "%s", e->d_name));
    if (d)
        closedir(d);
    return ok;
}

/* Files that the command names; others stay where they are. */
static bool add_named(Repro *r)
{
    for (uint32_t i = 0; i < r->words.n; i++) {
        const char *file = file_of(r->words.at[i]);

        if (file && is_below(file) && !add_beside(r, file))
            return false;
    }
    return true;
}

/* The folder of a manifest, without what builds leave there. */
static bool add_tree(Repro *r, const char *build)
{
    Member  *m;
    uint32_t n;

    if (!folder_read(r->driver->diags, r->driver->arena, ".", &m, &n))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        size_t k = strlen(build);

        if (m[i].path[0] == '.' || strstr(m[i].path, "/.") ||
            (strncmp(m[i].path, build, k) == 0 && m[i].path[k] == '/'))
            continue;
        if (!add_input(r, m[i].path))
            return false;
    }
    return true;
}

/* ---- the command -------------------------------------------------------------------------------- */

static bool takes(const Command *c, const char *option)
{
    for (uint32_t i = 0; i < option_count; i++)
        if (strcmp(option_table[i].text, option) == 0 && option_fits(&option_table[i], c))
            return true;
    return false;
}

static bool choose_command(Repro *r)
{
    Driver        *driver = r->driver;
    Arena         *a = driver->arena;
    const Options *o = &driver->opt;
    const Command *c = command_find("compile");

    if (o->manifest) {
        if (!is_below(o->manifest))
            return diag_error(driver->diags, E_USAGE, NO_LOC,
                              "go to the folder of the manifest first: '%s' is not below this one",
                              o->manifest);
        vec_push(a, &r->words, "build");
        vec_push(a, &r->words, "-m");
        vec_push(a, &r->words, o->manifest);
        c = command_find("build");
    }
    for (uint32_t i = 0; i < o->inputs.n; i++)
        vec_push(a, &r->words, o->inputs.at[i]);
    if (!r->words.n)
        return diag_error(
            driver->diags, E_USAGE, NO_LOC,
            "say what is built: -m <manifest>, or behind '--' the words of a command");
    if (!o->manifest && command_find(r->words.at[0]))
        c = command_find(r->words.at[0]);
    if (strcmp(c->name, "repro") == 0)
        return diag_error(driver->diags, E_USAGE, NO_LOC, "'repro' is not repeated by itself");
    r->takes_jobs = takes(c, "-j");
    r->reorder = strcmp(c->name, "pack") == 0;
    if (o->launcher && o->manifest) { /* before each step, not before the whole */
        vec_push(a, &r->words, "--launcher");
        vec_push(a, &r->words, o->launcher);
    } else if (o->launcher)
        tool_words(a, (ToolArgs *)(void *)&r->launcher, o->launcher);
    return o->manifest ? add_tree(r, o->build_dir ? o->build_dir : "build") : add_named(r);
}

/* What this machine can vary. */
static void find_possible(Repro *r)
{
    r->possible = (1u << VARY_COUNT) - 1;
    if (!repro_other_user(r, &r->why[VARY_USER]))
        r->possible &= ~(1u << VARY_USER);
    if (WITH_ASAN || WITH_MSAN) { /* faketime's dlsym and their malloc call each other */
        r->why[VARY_DATE] = "'faketime' cannot run this build, which is sanitized";
        r->possible &= ~(1u << VARY_DATE);
    } else if (!(r->faketime = file_find_tool(r->driver->arena, "faketime"))) {
        r->why[VARY_DATE] = "'faketime' is not installed";
        r->possible &= ~(1u << VARY_DATE);
    }
    if (!r->takes_jobs) {
        r->why[VARY_JOBS] = "the command has no -j";
        r->possible &= ~(1u << VARY_JOBS);
    }
}

/* ---- comparing ----------------------------------------------------------------------------------- */

/* Files that say when or where: logs of Ninja, rules for it and for make, locks. */
static bool is_bookkeeping(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    return name[0] == '.' || str_starts(path, ".") || strstr(path, "/.") ||
           str_starts(name, "build.ninja") || str_ends(name, ".rsp") || str_ends(name, ".d");
}

static uint32_t keep_products(const Repro *r, Member *m, uint32_t n)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < n; i++)
        if (!is_bookkeeping(m[i].path) && !is_input(r, &m[i]))
            m[kept++] = m[i];
    return kept;
}

/* The number of products that are equal; false with `what` set at the first difference. */
static bool compare(Repro *r, const char *one, const char *two, uint32_t *count, StrBuf *what)
{
    Arena   *a = r->driver->arena;
    Member  *x, *y;
    uint32_t nx, ny;

    *count = 0;
    if (!folder_read(r->driver->diags, a, one, &x, &nx) ||
        !folder_read(r->driver->diags, a, two, &y, &ny))
        return false;
    nx = keep_products(r, x, nx);
    ny = keep_products(r, y, ny);
    for (uint32_t i = 0; i < nx; i++) {
        const Member *other = pack_find(y, ny, x[i].path);
        StrBuf        where = strbuf(a);

        if (!other) {
            str_printf(what, "%s: only the first run made it", x[i].path);
            return false;
        }
        if (!diff_bytes(a, x[i].data, other->data, &where)) {
            str_printf(what, "%s: %s", x[i].path, where.at);
            return false;
        }
        ++*count;
    }
    for (uint32_t i = 0; i < ny; i++)
        if (!pack_find(x, nx, y[i].path)) {
            str_printf(what, "%s: only the second run made it", y[i].path);
            return false;
        }
    return true;
}

/* ---- runs ------------------------------------------------------------------------------------------ */

static void show_messages(const Repro *r)
{
    char    text[4096];
    ssize_t n;

    for (off_t at = 0; (n = pread(r->messages, text, sizeof text, at)) > 0; at += n)
        fwrite(text, 1, (size_t)n, stderr);
}

/* A run that has to work, as the first did. */
static const char *run(Repro *r, uint32_t conditions, bool first)
{
    int         status = 0;
    const char *folder = repro_run(r, conditions, &status);

    if (folder && status) {
        show_messages(r);
        diag_error(r->driver->diags, first ? E_PACK : E_REPRO, NO_LOC,
                   first ? "the command ends with status %d"
                         : "the same command ends with status %d under other conditions",
                   status);
        return NULL;
    }
    return folder;
}

/* Each condition alone: those that make a difference. */
static void blame(Repro *r, const char *first, StrBuf *out)
{
    for (int v = -1; v < VARY_CACHE; v++) {
        StrBuf      what = strbuf(r->driver->arena);
        const char *folder;
        uint32_t    count;
        int         status;

        if (v >= 0 && !(r->possible >> v & 1))
            continue;
        folder = repro_run(r, v < 0 ? 0 : 1u << v, &status);
        if (!folder || (status == 0 && compare(r, first, folder, &count, &what)))
            continue;
        if (v < 0) {
            str_add(out, "nothing: two plain runs differ too");
            return;
        }
        str_printf(out, "%s%s", out->n ? ", " : "", vary_names[v]);
    }
}

static void say_conditions(Repro *r)
{
    StrBuf varied = strbuf(r->driver->arena);

    for (int v = 0; v < VARY_COUNT; v++)
        if (r->possible >> v & 1)
            str_printf(&varied, "%s%s", varied.n ? ", " : "", vary_names[v]);
    say(r->driver, "varied: %s\n", varied.at);
    for (int v = 0; v < VARY_COUNT; v++)
        if (!(r->possible >> v & 1))
            say(r->driver, "not varied: %s, %s\n", vary_names[v], r->why[v]);
    for (uint32_t i = 0; i < r->words.n; i++) {
        const char *file = file_of(r->words.at[i]);

        if (file && !is_below(file))
            say(r->driver, "not varied: the path of '%s', which is not below this folder\n", file);
    }
}

static void repeat(Repro *r)
{
    uint32_t    all = r->possible & ~(1u << VARY_CACHE), count = 0;
    const char *first = run(r, 0, true), *other = NULL;
    StrBuf      what = strbuf(r->driver->arena), why = strbuf(r->driver->arena);

    for (int warm = 0; first && warm < 2; warm++) {
        if (!(other = run(r, warm ? all | 1u << VARY_CACHE : all, false)))
            return;
        if (compare(r, first, other, &count, &what))
            continue;
        if (diag_errors(r->driver->diags))
            return;
        diag_error(r->driver->diags, E_REPRO, NO_LOC, "%s", what.at);
        if (warm)
            str_add(&why, "a warm cache");
        else
            blame(r, first, &why);
        diag_note(r->driver->diags, NO_LOC, "what made the difference: %s",
                  why.n ? why.at : "several conditions together");
        return;
    }
    if (first && !count)
        diag_error(r->driver->diags, E_USAGE, NO_LOC, "the command made no file to compare");
    else if (first)
        say(r->driver, "%u products are equal in %u runs\n", count, r->runs);
}

static bool make_work(Repro *r)
{
    char program[PATH_MAX];

    if (!(r->work = file_temporary_folder(r->driver->diags, r->driver->arena)))
        return false;
    /* the other user's way to a folder of his own */
    if (!realpath("/proc/self/exe", program) || chmod(r->work, 0755) != 0)
        return diag_error(r->driver->diags, E_IO, (Loc){.file = r->work}, "cannot write '%s': %s",
                          r->work, strerror(errno));
    r->program = arena_printf(r->driver->arena, "%s", program);
    return true;
}

int cmd_repro(Driver *driver)
{
    Repro r = {.driver = driver};

    if (!choose_command(&r) || !make_work(&r))
        return 1;
    find_possible(&r);
    repeat(&r);
    say_conditions(&r);
    if (!file_drop_folder(r.work))
        diag_error(driver->diags, E_IO, NO_LOC, "cannot remove '%s': %s", r.work, strerror(errno));
    return 0;
}
