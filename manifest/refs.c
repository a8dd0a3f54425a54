/* What the names of a manifest point at, and the products that come of it.
 *
 * `refs_check` is the second half of reading: names exist, and entries fit together.
 * `manifest_builds` makes a product of each model and pair: defaults fill what the model leaves
 * open, ${..} is replaced.  Both go by the tables of schema.c.
 */
#include "manifest/tree.h"

#include <stdlib.h>
#include <string.h>

/* ---- looking up ---------------------------------------------------------------------------------- */

static const Record *record_of(const char *map)
{
    return record_field(schema_root(), map)->type();
}

static const ManSeq *seq_of(const Manifest *m, const char *map)
{
    return (const void *)((const char *)m + record_field(schema_root(), map)->offset);
}

static const ManRecord *entry_at(const ManSeq *s, const Record *rec, uint32_t i)
{
    return (const void *)((const char *)s->at + rec->size * i);
}

static const void *find(const Manifest *m, const char *map, const char *name)
{
    const ManSeq *s = seq_of(m, map);

    for (uint32_t i = 0; i < s->n; i++) {
        const ManRecord *e = entry_at(s, record_of(map), i);

        if (e->key && strcmp(e->key, name) == 0)
            return e;
    }
    return NULL;
}

const ManHost *manifest_host(const Manifest *m, const char *name)
{
    return find(m, "hosts", name);
}

const ManTarget *manifest_target(const Manifest *m, const char *name)
{
    return find(m, "targets", name);
}

const ManPair *manifest_pair(const Manifest *m, const char *name)
{
    return find(m, "pairs", name);
}

const ManModel *manifest_model(const Manifest *m, const char *name)
{
    return find(m, "models", name);
}

const ManBundle *manifest_bundle(const Manifest *m, const char *name)
{
    return find(m, "bundles", name);
}

static bool listed(const ManTexts *list, const char *text)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (strcmp(list->at[i].text, text) == 0)
            return true;
    }
    return false;
}

/* ---- checking ------------------------------------------------------------------------------------- */

#define UNFIT(d, loc, ...) diag_error(d, E_MANIFEST_REF, loc, __VA_ARGS__)

static void check_ref(Diags *d, Arena *a, const Manifest *m, const Ref *ref)
{
    const ManSeq *s = seq_of(m, ref->map);
    const char  **names = NEW_ARRAY(a, const char *, s->n), *closest;
    uint32_t      n = 0;

    if (find(m, ref->map, ref->name.text))
        return;
    for (uint32_t i = 0; i < s->n; i++) {
        if (entry_at(s, record_of(ref->map), i)->key)
            names[n++] = entry_at(s, record_of(ref->map), i)->key;
    }
    UNFIT(d, ref->name.loc, "there is no '%s' in '%s'", ref->name.text, ref->map);
    if ((closest = str_closest(ref->name.text, names, n)))
        diag_hint(d, "did you mean '%s'?", closest);
    else if (n == 0)
        diag_hint(d, "there are no '%s' at all", ref->map);
}

static void check_target(Diags *d, const ManTarget *t)
{
    bool keys = t->kind.given || t->device.given || t->mcpu.given || t->mattr.given ||
                t->max_threads_per_block.given || t->arch.given;

    if (t->text.given && keys)
        UNFIT(d, t->text.loc, "target '%s' has a target string and other keys", t->key);
    else if (!t->text.given && !t->kind.given)
        UNFIT(d, t->loc, "target '%s' has neither 'kind' nor a target string", t->key);
    if (!t->kind.given)
        return;
    if (target_class(t) != TARGET_DEVICE) {
        if (t->device.given)
            UNFIT(d, t->device.loc, "'device' is for devices, and '%s' is none", t->kind.text);
        if (t->max_threads_per_block.given)
            UNFIT(d, t->max_threads_per_block.loc,
                  "'max_threads_per_block' is for devices, and '%s' is none", t->kind.text);
        if (t->arch.given)
            UNFIT(d, t->arch.loc, "'arch' is for devices, and '%s' is none", t->kind.text);
    } else {
        if (t->mcpu.given)
            UNFIT(d, t->mcpu.loc, "'mcpu' is for CPUs; the host has its own");
        if (t->mattr.given)
            UNFIT(d, t->mattr.loc, "'mattr' is for CPUs; the host has its own");
    }
}

/* What is left to the compiler of the text, and what a host that is no machine does not have. */
static void check_source(Diags *d, const ManHost *h, const ManTarget *t)
{
    const ManAny *cpu = h->mcpu.given ? (const void *)&h->mcpu : (const void *)&t->mcpu;
    const ManAny *features = h->mattr.given ? (const void *)&h->mattr : (const void *)&t->mattr;

    if (h->variants.given)
        UNFIT(d, h->variants.loc,
              "host '%s' has variants, which '%s' leaves to the compiler of its text", h->key,
              target_word(d, t));
    if (strcmp(h->triple.text, ANY_TRIPLE) != 0)
        return;
    if (cpu->given)
        UNFIT(d, cpu->loc, "host '%s' is any machine, so no 'mcpu'", h->key);
    if (features->given)
        UNFIT(d, features->loc, "host '%s' is any machine, so no 'mattr'", h->key);
}

/* Devices, and a CPU behind them. */
static void check_fallback(Diags *d, const Manifest *m, const ManPair *p, const ManHost *h)
{
    const ManTarget *before = manifest_target(m, p->target.text);

    if (p->fallback.given && h->variants.given)
        UNFIT(d, p->fallback.loc, "'fallback' is for hosts without variants, and '%s' has some",
              h->key);
    for (uint32_t i = 0; i < p->fallback.n; i++) {
        const ManTarget *t = manifest_target(m, p->fallback.at[i].text);

        if (!before || !t)
            return;
        if (target_class(before) != TARGET_DEVICE)
            UNFIT(d, p->fallback.at[i].loc,
                  "target '%s' is no device: what is behind it is never tried", before->key);
        else if (target_class(t) == TARGET_SOURCE)
            UNFIT(d, p->fallback.at[i].loc, "target '%s' gives text, no code that a run could open",
                  t->key);
        before = t;
    }
}

static void check_pair(Diags *d, const Manifest *m, const ManPair *p)
{
    const ManHost   *h = p->host.given ? manifest_host(m, p->host.text) : NULL;
    const ManTarget *t = p->target.given ? manifest_target(m, p->target.text) : NULL;

    if (!h || !t)
        return;
    if (h->mcpu.given && t->mcpu.given) {
        UNFIT(d, p->loc, "pair '%s' has two processors", p->key);
        diag_note(d, h->mcpu.loc, "the host's is %s", h->mcpu.text);
        diag_note(d, t->mcpu.loc, "the target's is %s", t->mcpu.text);
    }
    check_fallback(d, m, p, h);
    if (target_class(t) == TARGET_SOURCE) {
        check_source(d, h, t);
        return;
    }
    if (strcmp(h->triple.text, ANY_TRIPLE) == 0)
        UNFIT(d, p->loc, "pair '%s' needs a machine, and host '%s' is any", p->key, h->key);
    if (h->variants.given && (h->mcpu.given || t->mcpu.given))
        UNFIT(d, h->variants.loc, "host '%s' of pair '%s' has variants, so no 'mcpu'", h->key,
              p->key);
    if (h->variants.given && p->machine.given)
        UNFIT(d, p->machine.loc, "'machine' is one machine, host '%s' has variants for several",
              h->key);
}

static void check_dim(Diags *d, const ManDim *dim)
{
    const ManInts *b = &dim->buckets, *ends = &dim->bounds;
    int            said = dim->value.given + b->given + ends->given;

    if (said != 1)
        UNFIT(d, dim->loc, "dimension '%s' has %s value, buckets and bounds", dim->key,
              said ? "more than one of" : "none of");
    if (ends->given &&
        (ends->n < 1 || ends->n > 2 || ends->at[0].value > ends->at[ends->n - 1].value))
        UNFIT(d, ends->loc, "'bounds' are not the smallest and the largest value");
    if (b->given && b->n == 0)
        UNFIT(d, b->loc, "'buckets' is empty");
    for (uint32_t i = 1; i < b->n; i++) {
        if (b->at[i].value <= b->at[i - 1].value) {
            UNFIT(d, b->at[i].loc, "buckets rise: %lld does not come behind %lld",
                  (long long)b->at[i].value, (long long)b->at[i - 1].value);
            return;
        }
    }
}

static void check_input(Diags *d, const ManInput *in)
{
    const ManImage *image = &in->image;

    if (in->layout.given && in->shape.given && in->shape.n != 4)
        UNFIT(d, in->shape.loc, "input '%s' is %s, so it has 4 dimensions, not %u", in->key,
              in->layout.text, in->shape.n);
    if (!image->given)
        return;
    if (image->mean.given && image->mean.n != 1 && image->mean.n != 3)
        UNFIT(d, image->mean.loc, "'mean' has 1 or 3 numbers, not %u", image->mean.n);
    if (image->std.given && image->std.n != 1 && image->std.n != 3)
        UNFIT(d, image->std.loc, "'std' has 1 or 3 numbers, not %u", image->std.n);
    for (uint32_t i = 0; i < image->std.n; i++) {
        if (image->std.at[i].value == 0)
            UNFIT(d, image->std.at[i].loc, "'std' divides, so it is not 0");
    }
    if (image->scale.given && image->scale.value == 0)
        UNFIT(d, image->scale.loc, "'scale' is not 0");
}

static void check_output(Diags *d, const ManResult *out)
{
    bool topk = out->add.given && strcmp(out->add.text, "topk") == 0;

    if (topk && !out->k.given)
        UNFIT(d, out->add.loc, "topk of output '%s' needs 'k'", out->key);
    if (out->k.given && !topk)
        UNFIT(d, out->k.loc, "'k' is for 'add: topk'");
}

static void check_tuning(Diags *d, const Manifest *m, const ManTuning *t, const ManTexts *pairs)
{
    bool require = t->policy.given && strcmp(t->policy.text, "require") == 0;

    if (require && t->logs.given && t->logs.n == 0)
        UNFIT(d, t->policy.loc, "'require' without logs cannot be met");
    if (t->policy.given && strcmp(t->policy.text, "ignore") == 0 && t->min_coverage.given &&
        t->min_coverage.value > 0)
        UNFIT(d, t->min_coverage.loc, "with policy 'ignore' no kernel is covered");
    for (uint32_t i = 0; pairs && i < t->logs.n; i++) {
        const ManTexts *own = &t->logs.at[i].pairs;

        for (uint32_t k = 0; k < own->n; k++) {
            if (!listed(pairs, own->at[k].text) && manifest_pair(m, own->at[k].text))
                UNFIT(d, own->at[k].loc, "the model is not built for pair '%s'", own->at[k].text);
        }
    }
}

static const char *entry_of(Arena *a, const ManModel *m)
{
    return c_identifier(a, m->product.entry.given ? m->product.entry.text : m->key);
}

static int by_entry(const void *a, const void *b)
{
    return strcmp(((const ManText *)a)->text, ((const ManText *)b)->text);
}

/* Libraries of two models go into one program and one archive, so their entries differ. */
static void check_entries(Diags *d, Arena *a, const Manifest *m)
{
    ManText *names = NEW_ARRAY(a, ManText, m->models.n);

    for (uint32_t i = 0; i < m->models.n; i++)
        names[i] = (ManText){true, m->models.at[i].loc, entry_of(a, &m->models.at[i])};
    if (m->models.n)
        qsort(names, m->models.n, sizeof *names, by_entry);
    for (uint32_t i = 1; i < m->models.n; i++) {
        if (strcmp(names[i].text, names[i - 1].text) != 0)
            continue;
        UNFIT(d, names[i].loc, "two models have the entry '%s'", names[i].text);
        diag_note(d, names[i - 1].loc, "the other one is here");
        diag_hint(d, "'product: {entry: ..}' gives one another");
    }
}

static void check_model(Diags *d, const Manifest *all, const ManModel *m)
{
    const ManText *labels = NULL;

    if (m->pairs.given && m->pairs.n == 0)
        UNFIT(d, m->pairs.loc, "model '%s' is built for nothing", m->key);
    for (uint32_t i = 0; i < m->inputs.n; i++)
        check_input(d, &m->inputs.at[i]);
    for (uint32_t i = 0; i < m->outputs.n; i++) {
        const ManResult *out = &m->outputs.at[i];

        check_output(d, out);
        if (out->labels.given && labels)
            UNFIT(d, out->labels.loc, "a product has one file of labels, and '%s' is another",
                  labels->text);
        labels = out->labels.given ? &out->labels : labels;
    }
    for (uint32_t i = 0; i < m->dims.n; i++)
        check_dim(d, &m->dims.at[i]);
    if (m->tuning.given)
        check_tuning(d, all, &m->tuning, &m->pairs);
}

static void check_bundle(Diags *d, const Manifest *m, const ManBundle *b)
{
    if (!m->project.name.given)
        UNFIT(d, b->loc, "archives are called after the project, and it has no name");
    if (b->models.given && b->models.n == 0)
        UNFIT(d, b->models.loc, "bundle '%s' has no models", b->key);
    for (uint32_t i = 0; i < b->models.n; i++) {
        const ManModel *model = manifest_model(m, b->models.at[i].text);

        for (uint32_t k = 0; model && k < b->pairs.n; k++) {
            const ManText *pair = &b->pairs.at[k];

            if (!listed(&model->pairs, pair->text) && manifest_pair(m, pair->text)) {
                UNFIT(d, pair->loc, "model '%s' is not built for pair '%s'", model->key,
                      pair->text);
                diag_note(d, model->pairs.given ? model->pairs.loc : model->loc,
                          "its pairs are here");
            }
        }
    }
    if (b->layout.given && strcmp(b->layout.text, "bundle") != 0 && b->models.n > 1)
        UNFIT(d, b->layout.loc, "layout '%s' holds one model, not %u", b->layout.text, b->models.n);
}

void refs_check(Diags *d, Arena *a, const Manifest *m, const Refs *refs, bool fit)
{
    for (uint32_t i = 0; i < refs->n; i++)
        check_ref(d, a, m, &refs->at[i]);
    if (!fit) /* values that are missing would only be missed once more */
        return;
    for (uint32_t i = 0; i < m->targets.n; i++)
        check_target(d, &m->targets.at[i]);
    for (uint32_t i = 0; i < m->pairs.n; i++)
        check_pair(d, m, &m->pairs.at[i]);
    if (m->defaults.reproducible.given && !m->defaults.reproducible.value)
        diag_error(d, E_MANIFEST_LATER, m->defaults.reproducible.loc,
                   "this version has no builds that are not reproducible");
    if (m->defaults.tuning.given)
        check_tuning(d, m, &m->defaults.tuning, NULL);
    for (uint32_t i = 0; i < m->models.n; i++)
        check_model(d, m, &m->models.at[i]);
    check_entries(d, a, m);
    for (uint32_t i = 0; i < m->bundles.n; i++)
        check_bundle(d, m, &m->bundles.at[i]);
}

/* ---- builds ----------------------------------------------------------------------------------------- */

typedef struct {
    Arena      *a;
    const char *model, *target, *version;
} Subst;

static const char *substitute(const Subst *s, const char *text)
{
    StrBuf out;

    if (!text || !strstr(text, "${"))
        return text;
    out = strbuf(s->a);
    while (*text) {
        size_t n = strcspn(text, "$");

        str_addn(&out, text, n);
        text += n;
        if (str_starts(text, "${model}")) {
            str_add(&out, s->model);
            text += strlen("${model}");
        } else if (str_starts(text, "${target}")) {
            str_add(&out, s->target);
            text += strlen("${target}");
        } else if (str_starts(text, "${version}")) {
            str_add(&out, s->version);
            text += strlen("${version}");
        } else if (*text) {
            str_addc(&out, *text++);
        }
    }
    return out.at;
}

static void substitute_record(const Subst *s, const Record *rec, void *out);

/* `slot` is a copy, but what it points at is the manifest's and copied before it changes. */
static void substitute_field(const Subst *s, const Field *f, void *slot)
{
    ManText  *text = slot;
    ManTexts *texts = slot;
    ManSeq   *seq = slot;

    switch (f->kind) {
    case KIND_TEXT:
    case KIND_PATH: text->text = substitute(s, text->text); break;
    case KIND_TEXTS:
    case KIND_PATHS:
        texts->at = texts->n ? DUP_ARRAY(s->a, texts->at, texts->n) : NULL;
        for (uint32_t i = 0; i < texts->n; i++)
            texts->at[i].text = substitute(s, texts->at[i].text);
        break;
    case KIND_ONE: substitute_record(s, f->type(), slot); break;
    case KIND_MANY:
    case KIND_MAP:
        seq->at = seq->n ? arena_dup(s->a, seq->at, seq->n * f->type()->size) : NULL;
        for (uint32_t i = 0; i < seq->n; i++)
            substitute_record(s, f->type(), (char *)seq->at + f->type()->size * i);
        break;
    case KIND_CHOICE:
    case KIND_REF:
    case KIND_BOOL:
    case KIND_INT:
    case KIND_SIZE:
    case KIND_REAL:
    case KIND_SHAPE:
    case KIND_CHOICES:
    case KIND_REFS:
    case KIND_INTS:
    case KIND_REALS:
    case KIND_TABLE:
    case KIND_LATER: break;
    }
}

static void substitute_record(const Subst *s, const Record *rec, void *out)
{
    for (uint32_t i = 0; i < rec->n; i++)
        substitute_field(s, &rec->fields[i], (char *)out + rec->fields[i].offset);
}

static size_t field_size(const Record *rec, const Field *f)
{
    return (f + 1 < rec->fields + rec->n && f[1].kind != KIND_LATER ? f[1].offset : rec->size) -
           f->offset;
}

/* What `out` does not give comes from `from`. */
static void inherit(const Record *rec, void *out, const void *from)
{
    ManRecord *head = out;

    for (uint32_t i = 0; i < rec->n; i++) {
        const Field  *f = &rec->fields[i];
        ManAny       *slot = (void *)((char *)out + f->offset);
        const ManAny *other = (const void *)((const char *)from + f->offset);

        if (f->kind == KIND_LATER || !other->given)
            continue;
        head->given = true;
        if (!slot->given)
            memcpy(slot, other, field_size(rec, f));
        else if (f->kind == KIND_ONE)
            inherit(f->type(), slot, other);
    }
}

/* Logs of other pairs fall away. */
static void keep_logs(Arena *a, ManTuning *t, const char *pair)
{
    ManLog  *all = t->logs.at, *own = NEW_ARRAY(a, ManLog, t->logs.n);
    uint32_t n = 0;

    for (uint32_t i = 0; i < t->logs.n; i++) {
        if (!all[i].pairs.given || listed(&all[i].pairs, pair))
            own[n++] = all[i];
    }
    t->logs.at = own;
    t->logs.n = n;
}

static ManBuild build(const Manifest *m, Arena *a, const ManModel *model, const ManPair *pair)
{
    const ManDefaults *defaults = &m->defaults;
    Subst s = {a, model->key, pair->key, m->project.version.given ? m->project.version.text : "0"};
    ManModel *own = DUP_ARRAY(a, model, 1);
    ManBuild  b = {.pair = pair,
                   .host = manifest_host(m, pair->host.text),
                   .target = manifest_target(m, pair->target.text),
                   .name = arena_printf(a, "%s.%s", model->key, pair->key),
                   .diagnostics = defaults->diagnostics,
                   .reproducible = defaults->reproducible};

    for (uint32_t i = 0; i < pair->fallback.n; i++)
        vec_push(a, &b.fallbacks, manifest_target(m, pair->fallback.at[i].text));
    inherit(record_field(record_of("models"), "tuning")->type(), &own->tuning, &defaults->tuning);
    inherit(record_field(record_of("models"), "limits")->type(), &own->limits, &defaults->limits);
    inherit(record_field(record_of("models"), "product")->type(), &own->product,
            &defaults->product);
    if (!model->product.entry.given) /* one entry cannot be that of all models */
        own->product.entry = (ManText){0};
    if (!own->opt_level.given)
        own->opt_level = defaults->opt_level;
    if (!own->fast_math.given)
        own->fast_math = defaults->fast_math;
    substitute_record(&s, record_of("models"), own);
    keep_logs(a, &own->tuning, pair->key);
    b.model = own;
    b.entry = entry_of(a, own);
    b.opt_level = own->opt_level;
    b.fast_math = own->fast_math;
    b.tuning = own->tuning;
    b.limits = own->limits;
    b.product = own->product;
    return b;
}

ManBuilds manifest_builds(const Manifest *m, Arena *a)
{
    ManBuilds out = {0};

    for (uint32_t i = 0; i < m->models.n; i++) {
        const ManModel *model = &m->models.at[i];

        for (uint32_t k = 0; k < model->pairs.n; k++)
            vec_push(a, &out, build(m, a, model, manifest_pair(m, model->pairs.at[k].text)));
    }
    return out;
}

ManTexts manifest_bundle_pairs(const Manifest *m, Arena *a, const ManBundle *b)
{
    const ManModel *first = b->models.n ? manifest_model(m, b->models.at[0].text) : NULL;
    ManTexts        out = {true, b->loc, NULL, 0};

    if (b->pairs.given || !first)
        return b->pairs;
    out.at = NEW_ARRAY(a, ManText, first->pairs.n);
    for (uint32_t i = 0; i < first->pairs.n; i++) {
        bool all = true;

        for (uint32_t k = 1; k < b->models.n; k++)
            all = all &&
                  listed(&manifest_model(m, b->models.at[k].text)->pairs, first->pairs.at[i].text);
        if (all)
            out.at[out.n++] = first->pairs.at[i];
    }
    return out;
}

/* ---- files of a product -------------------------------------------------------------------------- */

static void file_of(const ManText *path, ManFileFn *fn, void *user)
{
    if (path->given)
        fn(user, path);
}

void manifest_build_files(const ManBuild *b, ManFileFn *fn, void *user)
{
    const ManModel *m = b->model;

    for (uint32_t i = 0; i < m->source.external_data.n; i++)
        fn(user, &m->source.external_data.at[i]);
    for (uint32_t i = 0; i < m->inputs.n; i++)
        file_of(&m->inputs.at[i].value_file, fn, user);
    for (uint32_t i = 0; i < m->outputs.n; i++)
        file_of(&m->outputs.at[i].labels, fn, user);
    for (uint32_t i = 0; i < b->tuning.logs.n; i++)
        file_of(&b->tuning.logs.at[i].path, fn, user);
    file_of(&b->pair->machine, fn, user);
    file_of(&m->verify.inputs, fn, user);
    file_of(&m->verify.outputs, fn, user);
}
