/* A product of a manifest as the words of a command line: a manifest can say nothing that a compile
 * by hand could not, and the build of a product can be read and repeated. */
#include "driver/manifest_job.h"

#include <inttypes.h>

static void add(Arena *a, TextList *out, const char *option, const char *text)
{
    vec_push(a, out, arena_printf(a, "%s%s", option, text));
}

static void add_int(Arena *a, TextList *out, const char *option, const ManInt *v)
{
    if (v->given)
        vec_push(a, out, arena_printf(a, "%s%" PRId64, option, v->value));
}

/* `data:[1,3,?,224]`: a dimension with a name is the model's own, and --dim gives its value. */
static void add_shape(Arena *a, TextList *out, const ManInput *in)
{
    StrBuf s = strbuf(a);

    if (!in->shape.given)
        return;
    str_printf(&s, "--shape=%s:[", in->key);
    for (uint32_t i = 0; i < in->shape.n; i++) {
        const ManExtent *e = &in->shape.at[i];

        str_add(&s, i ? "," : "");
        if (e->name)
            str_addc(&s, '?');
        else
            str_printf(&s, "%" PRId64, e->value);
    }
    str_addc(&s, ']');
    vec_push(a, out, s.at);
}

static void add_form(Arena *a, TextList *out, const ManOutput *p)
{
    if (p->threads.given)
        add(a, out, "-fthreads=", p->threads.text);
    if (p->weights.given)
        add(a, out, "-fweights=", p->weights.text);
    if (p->pic.given)
        vec_push(a, out, p->pic.value ? "-fPIC" : "-fno-pic");
    if (p->libm.given)
        vec_push(a, out, p->libm.value ? "-flibm" : "-fno-libm");
    for (uint32_t i = 0; i < p->flags.n; i++)
        vec_push(a, out, p->flags.at[i].text);
}

static void add_warnings(Arena *a, TextList *out, const ManDiagnostics *d)
{
    for (uint32_t i = 0; i < d->werror.n; i++) {
        const char *name = d->werror.at[i].text;

        if (str_starts(name, "all") && !name[3])
            vec_push(a, out, "-Werror");
        else
            add(a, out, "-Werror=", diag_flag_of(name) ? diag_flag_of(name) : name);
    }
    if (d->format.given)
        add(a, out, "-fdiagnostics-format=", d->format.text);
}

void manifest_words(Arena *a, const ManBuild *b, TextList *out)
{
    const ManModel *m = b->model;

    if (m->format.given)
        add(a, out, "--model-format=", m->format.text);
    for (uint32_t i = 0; i < m->inputs.n; i++)
        add_shape(a, out, &m->inputs.at[i]);
    for (uint32_t i = 0; i < m->dims.n; i++) {
        const ManDim *d = &m->dims.at[i];

        vec_push(a, out,
                 arena_printf(a, "--dim=%s=%" PRId64, d->key,
                              d->value.given ? d->value.value : d->buckets.at[0].value));
    }
    add(a, out, "--target=", manifest_target_text(a, b->host, b->target));
    add(a, out, "--entry=", b->entry);
    add_int(a, out, "-O", &b->opt_level);
    if (b->fast_math.given)
        vec_push(a, out, b->fast_math.value ? "-ffast-math" : "-fno-fast-math");
    add_form(a, out, &b->product);
    add_int(a, out, "--max-arena=", &b->limits.arena);
    add_int(a, out, "--max-weights=", &b->limits.weights);
    add_int(a, out, "--max-code=", &b->limits.code);
    add_warnings(a, out, &b->diagnostics);
}
