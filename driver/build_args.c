/* A product of the manifest as options of the compiler.
 *
 * Each key becomes the option that a person would type.  A key whose option this compiler does not
 * have is an error at its place in the manifest, so that nothing a manifest says is ignored.
 */
#include "driver/build.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- paths ------------------------------------------------------------------------------------ */

/* Absolute, without links in its folders as far as they are there; the file itself may be a link.
 */
static const char *absolute(Arena *a, const char *path)
{
    char        real[PATH_MAX];
    const char *end = strrchr(path, '/');

    while (end) { /* path[0..end) is the folder */
        const char *folder = end == path ? "/" : arena_printf(a, "%.*s", (int)(end - path), path);

        if (realpath(folder, real))
            return arena_printf(a, "%s/%s", strcmp(real, "/") == 0 ? "" : real, end + 1);
        do
            end = end > path ? end - 1 : NULL;
        while (end && *end != '/');
    }
    return realpath(".", real) ? arena_printf(a, "%s/%s", real, path) : path;
}

const char *path_from(Arena *a, const char *folder, const char *path)
{
    const char *to = absolute(a, path), *from = arena_printf(a, "%s/", folder);
    size_t      common = 0; /* length of the folders that both have, with their slash */
    StrBuf      s = strbuf(a);

    if (*to != '/')
        return path;
    if (strcmp(to, folder) == 0)
        return ".";
    for (size_t i = 0; from[i] && from[i] == to[i]; i++) {
        if (to[i] == '/')
            common = i + 1;
    }
    if (common <= 1)
        return to;
    for (const char *p = from + common; (p = strchr(p, '/')); p++)
        str_add(&s, "../");
    str_add(&s, to + common);
    return s.at;
}

/* ---- one option ------------------------------------------------------------------------------- */

typedef struct {
    Driver         *driver;
    const char     *folder;
    const ManBuild *b;
    BuildArgs      *out;
} Args;

/* Adds `option` with `value` joined to it; an error if there is no such option. */
static void give(Args *x, TextList *list, char command, Loc loc, const char *key,
                 const char *option, const char *value)
{
    Arena   *a = x->driver->arena;
    bool     known = false;
    uint32_t n = (uint32_t)strcspn(option, "=");

    for (uint32_t i = 0; i < option_count && !known; i++) {
        const Option *row = &option_table[i];

        known = strncmp(row->text, option, n) == 0 &&
                (!row->text[n] || strcmp(row->text + n, "=") == 0) &&
                (row->commands[0] == '*' || strchr(row->commands, command));
    }
    if (!known) {
        diag_error(x->driver->diags, E_MANIFEST_LATER, loc, "this version cannot act on '%s'", key);
        return;
    }
    vec_push(a, list, arena_printf(a, "%s%s", option, value));
}

#define LOWER(field, key, option, value) \
    give(x, &x->out->lower, 'c', (field).loc, key, option, value)

static const char *number(Args *x, int64_t v)
{
    return arena_printf(x->driver->arena, "%lld", (long long)v);
}

static const char *join(Args *x, const ManTexts *list)
{
    StrBuf s = strbuf(x->driver->arena);

    for (uint32_t i = 0; i < list->n; i++)
        str_printf(&s, "%s%s", i ? "," : "", list->at[i].text);
    return list->n ? s.at : "";
}

static void each_text(Args *x, const ManTexts *list, const char *key, const char *option)
{
    for (uint32_t i = 0; i < list->n; i++)
        LOWER(list->at[i], key, option, list->at[i].text);
}

static const char *file(Args *x, const ManText *path)
{
    return path_from(x->driver->arena, x->folder, path->text);
}

/* ---- groups of options -------------------------------------------------------------------------- */

/* A dimension in a shape: a number, the name of one with bounds, or what --dim or the model says.
 */
static const char *extent(Args *x, const ManExtent *e)
{
    const ManDimList *dims = &x->b->model->dims;

    if (!e->name)
        return number(x, e->value);
    for (uint32_t i = 0; i < dims->n; i++) {
        if (strcmp(dims->at[i].key, e->name) != 0)
            continue;
        if (dims->at[i].value.given)
            return number(x, dims->at[i].value.value);
        if (dims->at[i].bounds.given)
            return e->name;
    }
    return "?";
}

static void add_shape(Args *x, const ManInput *in)
{
    StrBuf s = strbuf(x->driver->arena);

    str_printf(&s, "%s:[", in->key);
    for (uint32_t i = 0; i < in->shape.n; i++)
        str_printf(&s, "%s%s", i ? "," : "", extent(x, &in->shape.at[i]));
    str_add(&s, "]");
    LOWER(in->shape, "shape", "--shape=", s.at);
}

static void add_reals(StrBuf *s, const char *key, const ManReals *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        str_printf(s, "%s%.17g", i ? "," : key, r->at[i].value);
}

static const char *lower_case(Arena *a, const char *text)
{
    char *s = arena_printf(a, "%s", text);

    for (char *p = s; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return s;
}

static void add_image(Args *x, const ManInput *in)
{
    const ManImage *image = &in->image;
    Arena          *a = x->driver->arena;
    StrBuf          s = strbuf(a);

    str_printf(&s, "%s:%s", in->key,
               lower_case(a, image->layout.given ? image->layout.text : "nhwc"));
    if (image->dtype.given)
        str_printf(&s, ",%s", image->dtype.text);
    if (in->layout.given)
        str_printf(&s, ",model=%s", lower_case(a, in->layout.text));
    if (image->channels.given)
        str_printf(&s, ",channels=%s", lower_case(a, image->channels.text));
    if (image->pixels.given)
        str_printf(&s, ",pixels=%s", lower_case(a, image->pixels.text));
    if (image->scale.given)
        str_printf(&s, ",scale=%.17g", image->scale.value);
    add_reals(&s, ",mean=", &image->mean);
    add_reals(&s, ",std=", &image->std);
    LOWER(in->image, "image", "--input-image=", s.at);
}

/* `dtype` and, without an image, `layout` give no option: manifest_check_models compares them. */
static void add_tensors(Args *x)
{
    const ManModel *m = x->b->model;

    if (m->source.signature.given)
        LOWER(m->source.signature, "signature", "--signature=", m->source.signature.text);
    for (uint32_t i = 0; i < m->inputs.n; i++) {
        const ManInput *in = &m->inputs.at[i];

        if (in->shape.given)
            add_shape(x, in);
        if (in->image.given)
            add_image(x, in);
        if (in->value.given)
            LOWER(in->value, "value",
                  "--value=", arena_printf(x->driver->arena, "%s=%.17g", in->key, in->value.value));
        if (in->value_file.given)
            LOWER(in->value_file, "value_file", "--value=",
                  arena_printf(x->driver->arena, "%s=@%s", in->key, file(x, &in->value_file)));
    }
    for (uint32_t i = 0; i < m->dims.n; i++) {
        const ManDim *dim = &m->dims.at[i];
        StrBuf        s = strbuf(x->driver->arena);

        str_printf(&s, "%s=", dim->key);
        if (dim->value.given) {
            str_add(&s, number(x, dim->value.value));
            LOWER(dim->value, "value", "--dim=", s.at);
        } else if (dim->bounds.given) {
            str_printf(&s, "%lld..", (long long)dim->bounds.at[0].value);
            if (dim->bounds.n > 1)
                str_printf(&s, "%lld", (long long)dim->bounds.at[1].value);
            LOWER(dim->bounds, "bounds", "--dim=", s.at);
        } else {
            for (uint32_t k = 0; k < dim->buckets.n; k++)
                str_printf(&s, "%s%lld", k ? "," : "", (long long)dim->buckets.at[k].value);
            LOWER(dim->buckets, "buckets", "--shape-buckets=", s.at);
        }
    }
}

/* `outputs` are all of the product; what is added follows what it is computed from. */
static void add_outputs(Args *x)
{
    const ManModel *m = x->b->model;
    Arena          *a = x->driver->arena;
    StrBuf          names = strbuf(a);

    for (uint32_t i = 0; i < m->outputs.n; i++) {
        const ManResult *out = &m->outputs.at[i];
        bool             topk = out->add.given && strcmp(out->add.text, "topk") == 0;

        str_printf(&names, "%s%s", i ? "," : "", out->key);
        if (out->add.given)
            str_printf(&names, ",%s_%s", out->key, out->add.text);
        if (topk)
            str_printf(&names, ",%s_topk_index", out->key);
        if (topk)
            LOWER(out->add, "add", "--output-add=",
                  arena_printf(a, "topk=%lld:%s", (long long)out->k.value, out->key));
        else if (out->add.given)
            LOWER(out->add, "add",
                  "--output-add=", arena_printf(a, "%s:%s", out->add.text, out->key));
        if (out->labels.given)
            LOWER(out->labels, "labels", "--labels=", file(x, &out->labels));
    }
    if (m->outputs.n)
        LOWER(m->outputs, "outputs", "--output-tensors=", names.at);
    for (uint32_t i = 0; i < m->state.n; i++)
        LOWER(m->state.at[i], "state",
              "--state=", arena_printf(a, "%s=%s", m->state.at[i].key, m->state.at[i].text));
}

static void add_passes(Args *x)
{
    const ManModel *m = x->b->model;

    for (uint32_t i = 0; i < m->passes.config.n; i++) {
        const ManKeyText *kv = &m->passes.config.at[i];

        LOWER(*kv, "config",
              "-fpass-config=", arena_printf(x->driver->arena, "%s=%s", kv->key, kv->text));
    }
    each_text(x, &m->passes.disabled, "disabled", "-fno-pass=");
    each_text(x, &m->passes.required, "required", "-fpass=");
    if (m->layout.given)
        LOWER(m->layout, "layout", "--layout=", m->layout.text);
    if (m->precision.mixed.given)
        LOWER(m->precision.mixed, "mixed", "--mixed-precision=", join(x, &m->precision.mixed));
    if (m->precision.calculation.given)
        LOWER(m->precision.calculation, "calculation",
              "--mixed-precision-calculation-type=", m->precision.calculation.text);
    if (m->precision.accumulate.given)
        LOWER(m->precision.accumulate, "accumulate",
              "--mixed-precision-accumulate=", m->precision.accumulate.text);
}

static void add_tuning(Args *x)
{
    const ManTuning *t = &x->b->tuning;

    for (uint32_t i = 0; i < t->logs.n; i++)
        LOWER(t->logs.at[i].path, "logs", "--tuning=", file(x, &t->logs.at[i].path));
    if (t->policy.given && t->logs.n)
        LOWER(t->policy, "policy", "--tuning-policy=", t->policy.text);
    if (t->min_coverage.given && t->min_coverage.value > 0)
        LOWER(t->min_coverage, "min_coverage",
              "--tuning-min-coverage=", number(x, t->min_coverage.value));
}

static void no_limit(Args *x, const ManInt *limit, const char *key)
{
    if (limit->given)
        diag_error(x->driver->diags, E_MANIFEST_REF, limit->loc,
                   "'%s' is known of machine code, and pair '%s' makes none", key, x->b->pair->key);
}

/* Limits of what is known before code generation hold at once, the others at the audit. */
static void add_limits(Args *x)
{
    const ManLimits *l = &x->b->limits;

    if (l->weights.given)
        LOWER(l->weights, "weights", "--max-weights=", number(x, l->weights.value));
    if (l->arena.given)
        LOWER(l->arena, "arena", "--max-arena=", number(x, l->arena.value));
    if (manifest_source_suffix(x->b->target)) {
        no_limit(x, &l->code, "code");
        no_limit(x, &l->stack, "stack");
        return;
    }
    if (l->code.given)
        give(x, &x->out->audit, 'a', l->code.loc, "code", "--max-code=", number(x, l->code.value));
    if (l->stack.given)
        give(x, &x->out->audit, 'a', l->stack.loc, "stack",
             "--max-stack=", number(x, l->stack.value));
}

static bool is(const ManText *t, const char *word)
{
    return t->given && strcmp(t->text, word) == 0;
}

static void add_product(Args *x)
{
    const ManOutput *p = &x->b->product;

    if (is(&p->threads, "none"))
        LOWER(p->threads, "threads", "-fthreads=", "none");
    if (p->weights.given && !is(&p->weights, "embed"))
        LOWER(p->weights, "weights", "-fweights=", p->weights.text);
    if (p->weights_dtype.given && !is(&p->weights_dtype, "float32"))
        LOWER(p->weights_dtype, "weights_dtype", "-fweights-dtype=", p->weights_dtype.text);
    if (p->weights_section.given)
        LOWER(p->weights_section, "weights_section", "--weights-section=", p->weights_section.text);
    if (p->pic.given && !p->pic.value)
        LOWER(p->pic, "pic", "-fno-pic", "");
    if (p->libm.given && !p->libm.value)
        LOWER(p->libm, "libm", "-fno-libm", "");
    if (p->cpu_check.given && !p->cpu_check.value)
        LOWER(p->cpu_check, "cpu_check", "-fno-cpu-check", "");
    if (p->refittable.given && p->refittable.value)
        LOWER(p->refittable, "refittable", "-frefit", "");
    for (uint32_t i = 0; i < p->flags.n; i++)
        vec_push(x->driver->arena, &x->out->lower, p->flags.at[i].text);
    /* what the audit of the objects must know */
    if (is(&p->weights, "extern"))
        give(x, &x->out->audit, 'a', p->weights.loc, "weights", "-fweights=", "extern");
    if (p->pic.given && !p->pic.value)
        give(x, &x->out->audit, 'a', p->pic.loc, "pic", "-fno-pic", "");
    if (p->libm.given && !p->libm.value)
        give(x, &x->out->audit, 'a', p->libm.loc, "libm", "-fno-libm", "");
}

static void add_target(Args *x)
{
    Arena          *a = x->driver->arena;
    const ManHost  *h = x->b->host;
    const ManBuild *b = x->b;

    LOWER(*b->target, "target", "--target=", manifest_target_text(a, h, b->target));
    for (uint32_t i = 0; i < b->fallbacks.n; i++)
        LOWER(b->pair->fallback.at[i], "fallback",
              "--target=", manifest_target_text(a, h, b->fallbacks.at[i]));
    if (b->pair->machine.given)
        LOWER(b->pair->machine, "machine", "--machine=", file(x, &b->pair->machine));
    if (h->variants.given)
        LOWER(h->variants, "variants", "--cpu-variants=", join(x, &h->variants));
    if (b->opt_level.given)
        LOWER(b->opt_level, "opt_level", "-O", number(x, b->opt_level.value));
    if (b->fast_math.given && b->fast_math.value)
        LOWER(b->fast_math, "fast_math", "-ffast-math", "");
    if (is(&b->product.type, "shared") && !manifest_source_suffix(b->target))
        give(x, &x->out->link, 'c', h->loc, "triple", "-mtriple=", h->triple.text);
}

static void add_diagnostics(Args *x)
{
    const ManDiagnostics *d = &x->b->diagnostics;

    for (uint32_t i = 0; i < d->werror.n; i++) {
        const char *name = d->werror.at[i].text;

        if (strcmp(name, "all") == 0)
            LOWER(d->werror, "werror", "-W", "error");
        else
            LOWER(d->werror, "werror", "-W",
                  arena_printf(x->driver->arena, "error=%s",
                               diag_flag_of(name) ? diag_flag_of(name) : name));
    }
    if (d->format.text && !is(&d->format, "text"))
        LOWER(d->format, "format", "-fdiagnostics-format=", d->format.text);
}

static void add_verify(Args *x)
{
    const ManVerify *v = &x->b->model->verify;
    TextList        *list = &x->out->verify;

    if (!v->given)
        return;
    give(x, list, 'v', v->inputs.loc, "inputs", "--inputs=", file(x, &v->inputs));
    give(x, list, 'v', v->outputs.loc, "outputs", "--expect=", file(x, &v->outputs));
    if (v->rtol.given)
        give(x, list, 'v', v->rtol.loc, "rtol",
             "--rtol=", arena_printf(x->driver->arena, "%.9g", v->rtol.value));
    if (v->atol.given)
        give(x, list, 'v', v->atol.loc, "atol",
             "--atol=", arena_printf(x->driver->arena, "%.9g", v->atol.value));
    if (v->per_layer.given && v->per_layer.value)
        give(x, list, 'v', v->per_layer.loc, "per_layer", "--per-layer", "");
    if (manifest_source_suffix(x->b->target) && strcmp(x->b->host->triple.text, ANY_TRIPLE) != 0)
        give(x, list, 'v', x->b->host->triple.loc, "triple", "-mtriple=", x->b->host->triple.text);
    if (x->b->host->emulator.given) {
        StrBuf s = strbuf(x->driver->arena);

        for (uint32_t i = 0; i < x->b->host->emulator.n; i++)
            str_printf(&s, "%s%s", i ? " " : "", x->b->host->emulator.at[i].text);
        give(x, list, 'v', x->b->host->emulator.loc, "emulator", "--emulator=", s.at);
    }
}

bool build_args(Driver *driver, const char *folder, const ManBuild *b, BuildArgs *out)
{
    uint32_t before = diag_errors(driver->diags);
    Args     args = {driver, folder, b, out}, *x = &args;

    *out = (BuildArgs){0};
    if (b->model->format.given)
        LOWER(b->model->format, "format", "--model-format=", b->model->format.text);
    give(x, &out->lower, 'c', b->model->loc, "entry", "--entry=", b->entry);
    give(x, &out->audit, 'a', b->model->loc, "entry", "--entry=", b->entry);
    add_target(x);
    add_tensors(x);
    add_outputs(x);
    add_passes(x);
    add_tuning(x);
    add_limits(x);
    add_product(x);
    add_diagnostics(x);
    add_verify(x);
    return diag_errors(driver->diags) == before;
}
