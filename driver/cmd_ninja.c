/* tvmcc ninja: the manifest as build.ninja.
 *
 *     tvmcc ninja -m manifest.yaml -o build.ninja
 *
 * The template at the top of the repository (build.ninja.in, compiled in) has all rules and edges;
 * here are only the values that go into it: for each product its names, options and shards, for
 * each bundle its archives, for each name of the manifest what it stands for on Ninja's command
 * line.  Nothing of a model is parsed but what tells how large it is.
 */
#include "driver/build.h"
#include "driver/job.h"
#include "driver/manifest_job.h"
#include "driver/template.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

extern const unsigned char build_ninja_text[]; /* made by the build from build.ninja.in */
extern const size_t        build_ninja_text_bytes;

enum { CODEGEN_MEMORY = 1536 }; /* MiB of one code generation, at most */

typedef struct {
    const char     *files; /* what goes into archives */
    const ManBuild *build;
} Built;

typedef struct {
    Driver           *driver;
    Arena            *a;
    const BuildPlace *place;
    const Manifest   *manifest;
    ManFiles          files; /* what build.ninja depends on */
    TemplateScope    *top;
    const char       *measured; /* the model that `shards` is of */
    uint32_t          shards;
    VEC(Built) products;
    VEC(const char *) groups; /* names on Ninja's command line, and what each stands for */
    VEC(StrBuf) members;
} Expansion;

/* ---- quoting ----------------------------------------------------------------------------------- */

static bool is_plain(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_./=,:+@%^";

    return *word && !word[strspn(word, plain)];
}

static void add_shell_word(StrBuf *s, const char *word)
{
    if (is_plain(word)) {
        str_add(s, word);
        return;
    }
    str_addc(s, '\'');
    for (; *word; word++) {
        if (*word == '\'')
            str_add(s, "'\\''");
        else
            str_addc(s, *word);
    }
    str_addc(s, '\'');
}

/* For the value of a Ninja variable. */
static const char *ninja_value(Arena *a, const char *text)
{
    StrBuf s = strbuf(a);

    for (; *text; text++) {
        if (*text == '$')
            str_addc(&s, '$');
        str_addc(&s, *text);
    }
    return s.n ? s.at : "";
}

/* For a path of a build line. */
static const char *ninja_path(Arena *a, const char *path)
{
    StrBuf s = strbuf(a);

    for (; *path; path++) {
        if (strchr("$ :|", *path))
            str_addc(&s, '$');
        str_addc(&s, *path);
    }
    return s.n ? s.at : "";
}

/* Words as the value of a variable that goes into a command. */
static const char *ninja_words(Arena *a, const TextList *words)
{
    StrBuf s = strbuf(a);

    for (uint32_t i = 0; i < words->n; i++) {
        if (i)
            str_addc(&s, ' ');
        add_shell_word(&s, words->at[i]);
    }
    return words->n ? ninja_value(a, s.at) : "";
}

static void add_path(StrBuf *s, const char *path)
{
    str_printf(s, "%s%s", s->n ? " " : "", path);
}

/* ---- places ------------------------------------------------------------------------------------ */

static const char *real_path(Driver *driver, const char *path)
{
    char real[PATH_MAX];

    if (!realpath(path, real))
        return diag_error(driver->diags, E_IO, (Loc){.file = path}, "there is no folder '%s': %s",
                          path, strerror(errno));
    return arena_printf(driver->arena, "%s", real);
}

/* The command that writes build.ninja, for a shell in its folder. */
static const char *own_command(Driver *driver, const BuildPlace *p)
{
    const Options *o = &driver->opt;
    Arena         *a = driver->arena;
    StrBuf         s = strbuf(a);
    const char    *slash = strrchr(p->output, '/');
    TextList       words = {0};

    vec_push(a, &words, p->compiler);
    vec_push(a, &words, "ninja");
    vec_push(a, &words, "-m");
    vec_push(a, &words, path_from(a, p->folder, p->manifest));
    vec_push(a, &words, "-C");
    vec_push(a, &words, p->builddir);
    if (o->launcher)
        vec_push(a, &words, arena_printf(a, "--launcher=%s", o->launcher));
    if (o->compile.cache_dir)
        vec_push(a, &words,
                 arena_printf(a, "--cache-dir=%s", path_from(a, p->folder, o->compile.cache_dir)));
    if (o->compile.cache_size)
        vec_push(a, &words,
                 arena_printf(a, "--cache-size=%llu", (unsigned long long)o->compile.cache_size));
    if (o->compile.no_cache)
        vec_push(a, &words, "-fno-cache");
    if (o->compile.epoch)
        vec_push(a, &words, arena_printf(a, "--epoch=%lld", (long long)o->compile.epoch));
    vec_push(a, &words, "-o");
    vec_push(a, &words,
             strcmp(p->output, "-") == 0 ? "build.ninja"
             : slash                     ? slash + 1
                                         : p->output);
    for (uint32_t i = 0; i < words.n; i++) {
        if (i)
            str_addc(&s, ' ');
        add_shell_word(&s, words.at[i]);
    }
    return s.at;
}

bool build_place(Driver *driver, const char *output, BuildPlace *out)
{
    const Options *o = &driver->opt;
    Arena         *a = driver->arena;
    const char    *builddir = o->build_dir ? o->build_dir : "build", *slash, *real;
    bool           locked;

    out->manifest = manifest_path(driver);
    out->output = output ? output : arena_printf(a, "%s/build.ninja", builddir);
    slash = strrchr(out->output, '/');
    if (!file_make_folder(driver->diags, builddir) || !(real = real_path(driver, builddir)) ||
        !(out->folder = real_path(
              driver, slash ? arena_printf(a, "%.*s", (int)(slash - out->output + 1), out->output)
                            : ".")) ||
        !(out->compiler = real_path(driver, "/proc/self/exe")))
        return false;
    out->builddir = path_from(a, out->folder, real);
    if (!is_plain(out->builddir)) {
        diag_error(driver->diags, E_USAGE, NO_LOC,
                   "'%s' has characters that commands would need quotes for", out->builddir);
        diag_hint(driver->diags,
                  "build.ninja can be in any folder, and the products beside it: -C");
        return false;
    }
    if (strpbrk(arena_printf(a, "%s%s", out->folder, out->manifest), "\n\r"))
        return diag_error(driver->diags, E_USAGE, NO_LOC, "Ninja takes no paths with line ends");
    locked = access(manifest_lock_path(driver), F_OK) == 0;
    out->head =
        arena_printf(a, "# %s\n# lock: %s\n", own_command(driver, out),
                     locked ? path_from(a, out->folder, manifest_lock_path(driver)) : "none");
    return true;
}

/* ---- products ---------------------------------------------------------------------------------- */

/* `path` as build.ninja has it. */
static const char *input(Expansion *x, const char *path)
{
    return ninja_path(x->a, path_from(x->a, x->place->folder, path));
}

/* Listed in the depfile: with other bytes in it build.ninja may come out differently. */
static void depend(Expansion *x, const char *path)
{
    if (!path || access(path, F_OK) != 0)
        return;
    for (uint32_t i = 0; i < x->files.n; i++) {
        if (strcmp(x->files.at[i], path) == 0)
            return;
    }
    vec_push(x->a, &x->files, path);
}

static void depend_on_file(void *user, const ManText *path)
{
    depend(user, path->text);
}

/* The lock speaks of these too. */
static void depend_on_inputs(Expansion *x, const ManBuild *b)
{
    depend(x, b->model->source.path.text);
    manifest_build_files(b, depend_on_file, x);
}

/* How many shards a product is worth, by the model's size; 0 where the target allows none.
 * Mistakes in either are told by the step `lower`.  What the model reads besides is noted. */
static uint32_t shards_of(Expansion *x, const ManBuild *b)
{
    Arena         *a = arena_new(NULL);
    Diags         *d = diags_new(a);
    Ctx           *c = ctx_new(a, d, op_table);
    CompileOptions o = {.path = b->model->source.path.text,
                        .format = b->model->format.text,
                        .target = manifest_target_text(a, b->host, b->target)};
    Compiled       k;
    uint32_t       n = 1;

    compile_start(c, &k, &o);
    if (compile_target(c, &k) && compile_import(c, &k)) {
        n = shards_for(c, &k);
        for (uint32_t i = 0; i < k.files.n; i++)
            depend(x, arena_printf(x->a, "%s", k.files.at[i]));
    }
    if (n && b->product.shards.given)
        n = (uint32_t)b->product.shards.value;
    ctx_free(c);
    file_unmap_all(d);
    arena_free(a);
    return n;
}

static bool is(const ManText *t, const char *word)
{
    return t->given && strcmp(t->text, word) == 0;
}

/* Beside the manifest's name a group has all that is called so: `tvmcc build resnet board-cpu`. */
static void add_group(Expansion *x, const char *name, const char *member)
{
    uint32_t i = 0;

    while (i < x->groups.n && strcmp(x->groups.at[i], name) != 0)
        i++;
    if (i == x->groups.n) {
        vec_push(x->a, &x->groups, name);
        vec_push(x->a, &x->members, strbuf(x->a));
    }
    if (member)
        add_path(&x->members.at[i], member);
}

static void set_shards(Expansion *x, const ManBuild *b, TemplateScope *s, const char *step,
                       StrBuf *objects)
{
    uint32_t shards = shards_of(x, b);
    scope_add(x->a, s, "SHARDS", NULL);
    for (uint32_t i = 0; i < shards; i++) {
        TemplateScope *shard = scope_new(x->a, s);

        scope_set(x->a, shard, "SHARD", arena_printf(x->a, "%u", i));
        scope_set(x->a, shard, "SHARD_COUNT", arena_printf(x->a, "%u", shards));
        scope_add(x->a, s, "SHARDS", shard);
        add_path(objects, arena_printf(x->a, "%s.%u.o", step, i));
    }
}

static const char *product_path(Expansion *x, const ManBuild *b, const char *folder)
{
    const char *suffix = manifest_source_suffix(b->target);

    if (suffix)
        return arena_printf(x->a, "%s/%s%s", folder, b->entry, suffix);
    if (is(&b->product.type, "object"))
        return arena_printf(x->a, "%s/%s.o", folder, b->entry);
    return arena_printf(x->a, "%s/lib%s.%s", folder, b->entry,
                        is(&b->product.type, "shared") ? "so" : "a");
}

/* What a user of the product needs. */
static void add_members(Expansion *x, const char *group, const char *product, const char *step)
{
    add_group(x, group, product);
    add_group(x, group, arena_printf(x->a, "%s.h", step));
    add_group(x, group, arena_printf(x->a, "%s.json", step));
}

static bool add_product(Expansion *x, const ManBuild *b)
{
    Arena         *a = x->a;
    TemplateScope *s = scope_new(a, x->top);
    const char    *folder = arena_printf(a, "$builddir/%s/%s", b->pair->key, b->model->key);
    const char    *step = arena_printf(a, "%s/%s", folder, b->entry);
    const char    *product = product_path(x, b, folder);
    const char    *weights = arena_printf(a, "%s.weights", step);
    bool           embed = !is(&b->product.weights, "file") && !is(&b->product.weights, "extern");
    StrBuf         objects = strbuf(a);
    BuildArgs      args;

    if (!build_args(x->driver, x->place->folder, b, &args))
        return false;
    scope_set(a, s, "NAME", b->name);
    scope_set(a, s, "TARGET_TEXT", manifest_target_text(a, b->host, b->target));
    scope_set(a, s, "STEP", step);
    scope_set(a, s, "MODEL", input(x, b->model->source.path.text));
    scope_set(a, s, "OPTIONS", ninja_words(a, &args.lower));
    set_shards(x, b, s, step, &objects);
    add_path(&objects, arena_printf(a, "%s.host.o", step));
    if (embed)
        add_path(&objects, arena_printf(a, "%s.weights.o", step));
    scope_set(a, s, "SOURCE", manifest_source_suffix(b->target));
    scope_set(a, s, "MACHINE", manifest_source_suffix(b->target) ? "" : "machine");
    scope_set(a, s, "EMBED", embed ? "embed" : "");
    scope_set(a, s, "OBJECTS", objects.at);
    scope_set(a, s, "PRODUCT", product);
    scope_set(a, s, "LINK_OPTIONS", ninja_words(a, &args.link));
    scope_set(a, s, "AUDIT_OPTIONS", ninja_words(a, &args.audit));
    scope_set(a, s, "VERIFY_OPTIONS",
              arena_printf(a, "%s%s", ninja_words(a, &args.verify),
                           b->model->verify.per_layer.value
                               ? arena_printf(a, " --plan=%s.plan", step)
                               : ""));
    scope_set(a, s, "VERIFY", "");
    if (b->model->verify.given) {
        scope_set(a, s, "VERIFY",
                  arena_printf(a, "%s %s", input(x, b->model->verify.inputs.text),
                               input(x, b->model->verify.outputs.text)));
        add_group(x, "verify", arena_printf(a, "%s.verified", step));
    }
    scope_add(a, x->top, "PRODUCTS", s);
    add_members(x, b->name, product, step);
    add_members(x, b->model->key, product, step);
    add_members(x, b->pair->key, product, step);
    add_members(x, "all", product, step);
    depend_on_inputs(x, b);
    vec_push(a, &x->products,
             ((Built){arena_printf(a, "%s.json %s.h %s%s%s", step, step, product, embed ? "" : " ",
                                   embed ? "" : weights),
                      b}));
    return true;
}

/* ---- bundles ----------------------------------------------------------------------------------- */

static bool lists(const ManTexts *names, const char *name)
{
    for (uint32_t i = 0; i < names->n; i++)
        if (strcmp(names->at[i].text, name) == 0)
            return true;
    return false;
}

/* Its tuning logs, unless the bundle wants none or has them already. */
static void add_logs(Expansion *x, const ManBundle *b, const ManBuild *build, TextList *options,
                     StrBuf *reads)
{
    Arena *a = x->a;

    for (uint32_t i = 0; i < build->tuning.logs.n; i++) {
        const char *path = build->tuning.logs.at[i].path.text, *slash = strrchr(path, '/');
        const char *word = arena_printf(a, "--add=tuning/%s=%s", slash ? slash + 1 : path,
                                        path_from(a, x->place->folder, path));
        bool        known = b->contents.n && !lists(&b->contents, "tuning");

        for (uint32_t k = 0; k < options->n; k++)
            known = known || strcmp(options->at[k], word) == 0;
        if (known)
            continue;
        vec_push(a, options, word);
        add_path(reads, input(x, path));
    }
}

/* What the manifest says about the archive, as options of `pack`: so it depends on what goes in,
 * and not on all that the manifest says about other machines. */
static void add_facts(Expansion *x, const ManBundle *b, const char *top, TextList *options)
{
    Arena            *a = x->a;
    const ManProject *project = &x->manifest->project;
    StrBuf            contents = strbuf(a);

    vec_push(a, options, arena_printf(a, "--top=%s", top));
    if (project->name.given)
        vec_push(a, options, arena_printf(a, "--name=%s", project->name.text));
    if (project->version.given)
        vec_push(a, options, arena_printf(a, "--version=%s", project->version.text));
    if (project->license.given)
        vec_push(a, options, arena_printf(a, "--license=%s", project->license.text));
    if (b->layout.given)
        vec_push(a, options, arena_printf(a, "--layout=%s", b->layout.text));
    for (uint32_t i = 0; i < b->contents.n; i++)
        str_printf(&contents, "%s%s", i ? "," : "", b->contents.at[i].text);
    if (contents.n)
        vec_push(a, options, arena_printf(a, "--contents=%s", contents.at));
}

static void add_bundle(Expansion *x, const ManBundle *b, const char *pair)
{
    Arena            *a = x->a;
    const ManProject *project = &x->manifest->project;
    TemplateScope    *s = scope_new(a, x->top);
    StrBuf            members = strbuf(a), reads = strbuf(a);
    TextList          options = {0};
    const char       *top =
        arena_printf(a, "%s-%s-%s-%s", project->name.text,
                     project->version.given ? project->version.text : "0", b->key, pair);
    const char *archive;

    add_facts(x, b, top, &options);
    for (uint32_t i = 0; i < x->products.n; i++) {
        const Built *p = &x->products.at[i];

        if (strcmp(p->build->pair->key, pair) != 0 || !lists(&b->models, p->build->model->key))
            continue;
        add_path(&members, p->files);
        add_logs(x, b, p->build, &options, &reads);
    }
    archive = arena_printf(
        a, "$builddir/%s",
        ninja_path(a, arena_printf(a, "%s.%s", top, b->format.given ? b->format.text : "tar.zst")));
    scope_set(a, s, "NAME", arena_printf(a, "%s for %s", b->key, pair));
    scope_set(a, s, "ARCHIVE", archive);
    scope_set(a, s, "MEMBERS", members.n ? members.at : "");
    scope_set(a, s, "READS", reads.n ? arena_printf(a, "%s ", reads.at) : "");
    scope_set(a, s, "OPTIONS", ninja_words(a, &options));
    scope_add(a, x->top, "BUNDLES", s);
    add_group(x, b->key, archive);
    add_group(x, "all", archive);
}

static void add_bundles(Expansion *x)
{
    const ManBundleList *list = &x->manifest->bundles;

    scope_add(x->a, x->top, "BUNDLES", NULL);
    for (uint32_t i = 0; i < list->n; i++) {
        ManTexts pairs = manifest_bundle_pairs(x->manifest, x->a, &list->at[i]);

        for (uint32_t k = 0; k < pairs.n; k++)
            add_bundle(x, &list->at[i], pairs.at[k].text);
    }
}

/* ---- all of it ----------------------------------------------------------------------------------- */

static uint32_t codegen_jobs(void)
{
    struct sysinfo info;
    long           cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t       n = cores > 0 ? (uint64_t)cores : 1, fit;

    if (sysinfo(&info) == 0) {
        fit = (uint64_t)info.totalram * info.mem_unit / ((uint64_t)CODEGEN_MEMORY << 20);
        n = fit < n ? fit : n;
    }
    return n ? (uint32_t)n : 1;
}

static void set_head(Expansion *x)
{
    const Options    *o = &x->driver->opt;
    const BuildPlace *p = x->place;
    Arena            *a = x->a;
    TemplateScope    *s = x->top;
    TextList          compiler = {0}, cache = {0};
    const char       *slash = strrchr(p->output, '/');

    vec_push(a, &compiler, p->compiler);
    if (o->compile.cache_dir)
        vec_push(a, &cache,
                 arena_printf(a, "--cache-dir=%s", path_from(a, p->folder, o->compile.cache_dir)));
    if (o->compile.cache_size)
        vec_push(a, &cache,
                 arena_printf(a, "--cache-size=%llu", (unsigned long long)o->compile.cache_size));
    if (o->compile.no_cache)
        vec_push(a, &cache, "-fno-cache");
    scope_set(a, s, "HEAD", arena_printf(a, "%.*s", (int)strlen(p->head) - 1, p->head));
    scope_set(a, s, "COMMAND", ninja_value(a, own_command(x->driver, p)));
    scope_set(a, s, "BUILDDIR", p->builddir);
    scope_set(a, s, "COMPILER", ninja_value(a, p->compiler));
    scope_set(a, s, "TVMCC", ninja_words(a, &compiler));
    scope_set(a, s, "LAUNCHER", o->launcher ? ninja_value(a, o->launcher) : "");
    scope_set(a, s, "CACHE", ninja_words(a, &cache));
    scope_set(a, s, "EPOCH", arena_printf(a, "%lld", (long long)o->compile.epoch));
    scope_set(a, s, "CODEGEN_JOBS", arena_printf(a, "%u", codegen_jobs()));
    scope_set(a, s, "MANIFEST", input(x, p->manifest));
    scope_set(a, s, "OUTPUT",
              strcmp(p->output, "-") == 0 ? "build.ninja"
                                          : ninja_path(a, slash ? slash + 1 : p->output));
}

static void set_groups(Expansion *x)
{
    scope_add(x->a, x->top, "GROUPS", NULL);
    for (uint32_t i = 0; i < x->groups.n; i++) {
        TemplateScope *s = scope_new(x->a, x->top);

        scope_set(x->a, s, "NAME", ninja_path(x->a, x->groups.at[i]));
        scope_set(x->a, s, "MEMBERS", x->members.at[i].n ? x->members.at[i].at : "");
        scope_add(x->a, x->top, "GROUPS", s);
    }
}

static const char *depfile(Expansion *x)
{
    StrBuf s = strbuf(x->a);

    const char *slash = strrchr(x->place->output, '/');

    str_printf(&s, "%s:", slash ? slash + 1 : x->place->output);
    for (uint32_t i = 0; i < x->files.n; i++) {
        str_add(&s, " \\\n ");
        for (const char *p = path_from(x->a, x->place->folder, x->files.at[i]); *p; p++) {
            if (strchr(" #\\", *p))
                str_addc(&s, '\\');
            str_add(&s, *p == '$' ? "$$" : (char[]){*p, 0});
        }
    }
    str_add(&s, "\n");
    return s.at;
}

static Bytes bytes_of(const char *text)
{
    return (Bytes){(const uint8_t *)text, strlen(text)};
}

bool build_expand(Driver *driver, const BuildPlace *place)
{
    Arena      *a = driver->arena;
    Expansion   x = {.driver = driver, .a = a, .place = place, .top = scope_new(a, NULL)};
    ManBuilds   builds;
    StrBuf      out = strbuf(a);
    const char *wrong = NULL;

    if (!(x.manifest = manifest_open(driver, &x.files)) ||
        !manifest_check_models(driver, x.manifest, false) ||
        !manifest_enforce_lock(driver, x.manifest, &x.files))
        return false;
    depend(&x, manifest_lock_path(driver));
    builds = manifest_builds(x.manifest, a);
    add_group(&x, "all", NULL);
    set_head(&x);
    scope_add(a, x.top, "PRODUCTS", NULL);
    for (uint32_t i = 0; i < builds.n; i++) {
        if (wrong == builds.at[i].model->key || add_product(&x, &builds.at[i]))
            continue;
        wrong = builds.at[i].model->key; /* its other pairs would say the same */
    }
    if (wrong)
        return false;
    add_bundles(&x);
    set_groups(&x);
    template_expand((Bytes){build_ninja_text, build_ninja_text_bytes}, x.top, &out);
    if (strcmp(place->output, "-") == 0)
        return file_write(driver->diags, "-", (Bytes){(const uint8_t *)out.at, out.n});
    return file_write(driver->diags, arena_printf(a, "%s.d", place->output),
                      bytes_of(depfile(&x))) &&
           file_write(driver->diags, place->output, (Bytes){(const uint8_t *)out.at, out.n});
}

int cmd_ninja(Driver *driver)
{
    BuildPlace place;

    if (driver->opt.inputs.n)
        return diag_error(driver->diags, E_USAGE, NO_LOC,
                          "'ninja' takes no files; -m names the manifest"),
               0;
    if (build_place(driver, driver->opt.output, &place))
        build_expand(driver, &place);
    return 0;
}
