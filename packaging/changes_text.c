/* changes_text.c: what changes.c found, for people and as JSON.
 *
 *     vision 1.0 -> 1.1
 *
 *     models         1 changed, 2 the same
 *
 *     detector, x86_64-linux-gnu
 *       structure      changed
 *       interface      not compatible: input 'image' is float32[1, 3, 320, 320], was ..
 *       operators      nn.conv2d 52 -> 53
 *       kernels        3 new, 2 gone, 48 the same
 *                      + conv2d_bias_add_relu.7cd1ffd9
 *       code           9915 -> 10203 bytes (+2.9 %)
 *       the same       weights, target, toolchain
 *
 * What did not change is one line, so that a long list means many changes.
 */
#include "packaging/packaging.h"

#include <inttypes.h>
#include <string.h>

enum { LISTED = 12 }; /* of kernels and files, for people */

typedef struct {
    Arena   *a;
    Columns *table;
    StrBuf   same; /* names of what did not change */
} Section;

static Section section(Arena *a)
{
    return (Section){.a = a, .table = columns_new(a, "ll"), .same = strbuf(a)};
}

static void PRINTF_LIKE(3, 4) add(Section *s, const char *label, const char *fmt, ...)
{
    StrBuf  text = strbuf(s->a);
    va_list ap;

    va_start(ap, fmt);
    str_vprintf(&text, fmt, ap);
    va_end(ap);
    columns_add(s->table, "%s", label);
    columns_add(s->table, "%s", text.n ? text.at : "");
}

static void add_same(Section *s, const char *what)
{
    str_printf(&s->same, "%s%s", s->same.n ? ", " : "", what);
}

static void section_end(Section *s, uint32_t indent, StrBuf *out)
{
    if (s->same.n)
        add(s, "the same", "%s", s->same.at);
    columns_print(s->table, indent, out);
}

/* At most LISTED of them below each other. */
static void add_list(Section *s, const char *sign, const TextVec *list)
{
    uint32_t n = list->n > LISTED + 1 ? LISTED : list->n;

    for (uint32_t i = 0; i < n; i++)
        add(s, "", "%s%s", sign, list->at[i]);
    if (n < list->n)
        add(s, "", "%s%u more, see --json", sign, list->n - n);
}

static void add_text(Section *s, const char *label, const char *was, const char *now)
{
    was = was ? was : "-";
    now = now ? now : "-";
    if (strcmp(was, now) == 0)
        add_same(s, label);
    else if (strlen(was) + strlen(now) < 60)
        add(s, label, "%s -> %s", was, now);
    else {
        add(s, label, "%s", was);
        add(s, "", "-> %s", now);
    }
}

static void add_size(Section *s, const Quantity *q)
{
    double      percent = q->was ? 100 * ((double)q->now - (double)q->was) / (double)q->was : 0;
    const char *unit = strcmp(q->name, "multiply-adds") == 0 ? "" : " bytes";

    if (q->was == q->now)
        add_same(s, q->name);
    else
        add(s, q->name, "%" PRIu64 " -> %" PRIu64 "%s%s", q->was, q->now, unit,
            q->was && q->now ? arena_printf(s->a, " (%+.1f %%)", percent) : "");
}

/* ---- one model ---------------------------------------------------------------------------------------- */

static void add_known(Section *s, const char *label, Known changed, const char *unknown)
{
    if (changed == NO)
        add_same(s, label);
    else
        add(s, label, "%s", changed == YES ? "changed" : unknown);
}

static void add_interface(Section *s, const ModelChange *m)
{
    if (m->abi == ABI_SAME) {
        add_same(s, "interface");
        return;
    }
    add(s, "interface",
        m->abi == ABI_BROKEN ? "not compatible: programs that use it must change"
                             : "compatible, but programs that use it are compiled again");
    for (uint32_t i = 0; i < m->reasons.n; i++)
        add(s, "", "%s", m->reasons.at[i]);
}

static void add_operators(Section *s, const ModelChange *m)
{
    StrBuf line = strbuf(s->a);

    if (!m->was->desc->nops || !m->now->desc->nops)
        return;
    for (uint32_t i = 0; i < m->operators.n; i++)
        str_printf(&line, "%s%s %" PRIu64 " -> %" PRIu64, i ? ", " : "", m->operators.at[i].name,
                   m->operators.at[i].was, m->operators.at[i].now);
    if (line.n)
        add(s, "operators", "%s", line.at);
    else
        add_same(s, "operators");
}

static void add_kernels(Section *s, const ModelChange *m)
{
    if (!m->kernels_new.n && !m->kernels_gone.n) {
        if (m->kernels_same)
            add_same(s, "kernels");
        return;
    }
    add(s, "kernels", "%u new, %u gone, %u the same", m->kernels_new.n, m->kernels_gone.n,
        m->kernels_same);
    add_list(s, "+ ", &m->kernels_new);
    add_list(s, "- ", &m->kernels_gone);
}

static void add_latency(Section *s, const ModelChange *m)
{
    double was = (double)m->was->desc->macs, now = (double)m->now->desc->macs;

    switch (m->latency) {
    case LATENCY_SAME: add_same(s, "latency"); break;
    case LATENCY_NEAR: add(s, "latency", "near: other kernels, about as many multiply-adds"); break;
    case LATENCY_LOWER:
    case LATENCY_HIGHER:
        add(s, "latency", "%s: %.2f times the multiply-adds", latency_names[m->latency], now / was);
        break;
    case LATENCY_UNKNOWN:
        add(s, "latency", "unknown: %s",
            strcmp(m->was->desc->targets, m->now->desc->targets) != 0 ? "another target"
                                                                      : "no kernels are listed");
        break;
    }
}

static void add_model(Arena *a, const ModelChange *m, StrBuf *out)
{
    const ModelDesc *x = m->was->desc, *y = m->now->desc;
    Section          s = section(a);

    str_printf(out, "\n%s, %s\n", y->entry, y->triple);
    add_known(&s, "structure", m->structure, "unknown: other code, and no graph to compare");
    add_known(&s, "weights", m->weights, "unknown: they are packed for other code");
    add_interface(&s, m);
    add_operators(&s, m);
    add_kernels(&s, m);
    add_latency(&s, m);
    for (uint32_t i = 0; i < m->sizes.n; i++) {
        Quantity q = m->sizes.at[i];

        if (strcmp(q.name, "weights") == 0)
            q.name = "weights' size";
        add_size(&s, &q);
    }
    add_text(&s, "target", x->targets, y->targets);
    add_text(&s, "toolchain", x->toolchain, y->toolchain);
    section_end(&s, 2, out);
}

/* ---- all of it ------------------------------------------------------------------------------------------ */

static const char *model_name(Arena *a, const ModelChange *m)
{
    const ModelDesc *d = (m->now ? m->now : m->was)->desc;

    return arena_printf(a, "%s, %s", d->entry, d->triple);
}

static void add_models(Section *s, const Changes *c)
{
    static const char *const kinds[] = {"gone", "new", "changed", "the same"};
    uint32_t                 headed = 0;

    for (int kind = 0; kind < 4; kind++) {
        TextVec names = {0};

        for (uint32_t i = 0; i < c->nmodels; i++) {
            const ModelChange *m = &c->models[i];
            int                is = !m->now ? 0 : !m->was ? 1 : m->changed ? 2 : 3;

            if (is == kind)
                vec_push(s->a, &names, model_name(s->a, m));
        }
        if (!names.n)
            continue;
        add(s, headed++ ? "" : "models", "%u %s", names.n, kinds[kind]);
        if (kind < 2)
            add_list(s, kind ? "+ " : "- ", &names);
    }
}

/* "vision 1.0 -> 1.1" */
static void add_title(const Changes *c, StrBuf *out)
{
    const Release *x = c->was, *y = c->now;
    Columns       *line = columns_new(out->arena, "l"); /* names are whatever the archive says */

    if (!x->name || !y->name)
        columns_add(line, "%s -> %s", x->path, y->path);
    else
        columns_add(line, "%s %s -> %s%s%s", x->name, x->version ? x->version : "0",
                    strcmp(x->name, y->name) ? y->name : "", strcmp(x->name, y->name) ? " " : "",
                    y->version ? y->version : "0");
    columns_print(line, 0, out);
    str_addc(out, '\n');
}

void changes_text(const Changes *c, StrBuf *out)
{
    Arena   *a = out->arena;
    Section  s = section(a);
    bool     told = c->files.n || c->packages.n; /* why they are not the same */
    Quantity archive = {"archive", c->was->bytes, c->now->bytes};
    Quantity content = {"content", c->was->content, c->now->content};

    add_title(c, out);
    add_models(&s, c);
    if (archive.was && archive.now)
        add_size(&s, &archive);
    add_size(&s, &content);
    add_text(&s, "licence", c->was->license, c->now->license);
    if (c->packages.n) {
        add(&s, "made from", "%u other entr%s of the bill of materials", c->packages.n,
            c->packages.n == 1 ? "y" : "ies");
        add_list(&s, "", &c->packages);
    } else if (c->now->npackages) {
        add_same(&s, "bill of materials");
    }
    if (c->files.n) {
        add(&s, "other files", "%u", c->files.n);
        add_list(&s, "", &c->files);
    }
    section_end(&s, 0, out);
    for (uint32_t i = 0; i < c->nmodels; i++)
        told = told || c->models[i].changed;
    for (uint32_t i = 0; i < c->nmodels; i++)
        if (c->models[i].was && c->models[i].now && c->models[i].changed)
            add_model(a, &c->models[i], out);
    if (!c->same && !told)
        str_printf(out, "\nfirst difference: %s\n", c->first);
}

/* ---- JSON ------------------------------------------------------------------------------------------------ */

static void json_or_null(StrBuf *s, const char *text)
{
    if (text)
        str_add_json(s, text);
    else
        str_add(s, "null");
}

static void json_pair(StrBuf *s, const char *key, const char *was, const char *now)
{
    str_printf(s, ",\n     \"%s\": [", key);
    json_or_null(s, was);
    str_add(s, ", ");
    json_or_null(s, now);
    str_addc(s, ']');
}

static void json_list(StrBuf *s, const char *key, const TextVec *list)
{
    str_printf(s, "\"%s\": [", key);
    for (uint32_t i = 0; i < list->n; i++) {
        str_add(s, i ? ", " : "");
        str_add_json(s, list->at[i]);
    }
    str_addc(s, ']');
}

static void json_quantities(StrBuf *s, const char *key, const Quantities *list)
{
    str_printf(s, ",\n     \"%s\": {", key);
    for (uint32_t i = 0; i < list->n; i++) {
        str_add(s, i ? ", " : "");
        str_add_json(s, list->at[i].name);
        str_printf(s, ": [%" PRIu64 ", %" PRIu64 "]", list->at[i].was, list->at[i].now);
    }
    str_addc(s, '}');
}

static void json_model(StrBuf *s, const ModelChange *m)
{
    const ModelDesc *d = (m->now ? m->now : m->was)->desc;

    str_add(s, "\n    {\"entry\": ");
    str_add_json(s, d->entry);
    str_add(s, ", \"triple\": ");
    str_add_json(s, d->triple);
    str_printf(s, ", \"change\": \"%s\"",
               !m->now      ? "gone"
               : !m->was    ? "new"
               : m->changed ? "changed"
                            : "same");
    if (m->was && m->now) {
        const ModelDesc *x = m->was->desc, *y = m->now->desc;

        str_printf(s,
                   ",\n     \"structure_changed\": %s, \"weights_changed\": %s, \"interface\": "
                   "\"%s\", ",
                   known_names[m->structure], known_names[m->weights], abi_change_names[m->abi]);
        json_list(s, "reasons", &m->reasons);
        json_quantities(s, "operators", &m->operators);
        str_printf(s, ",\n     \"kernels\": {\"same\": %u, ", m->kernels_same);
        json_list(s, "new", &m->kernels_new);
        str_add(s, ", ");
        json_list(s, "gone", &m->kernels_gone);
        str_printf(s, "},\n     \"latency\": \"%s\"", latency_names[m->latency]);
        json_quantities(s, "sizes", &m->sizes);
        json_pair(s, "targets", x->targets, y->targets);
        json_pair(s, "toolchain", x->toolchain, y->toolchain);
    }
    str_addc(s, '}');
}

static void json_release(StrBuf *s, const char *key, const Release *r)
{
    str_printf(s, "  \"%s\": {\"path\": ", key);
    str_add_json(s, r->path);
    str_add(s, ", \"name\": ");
    json_or_null(s, r->name);
    str_add(s, ", \"version\": ");
    json_or_null(s, r->version);
    str_add(s, ", \"license\": ");
    json_or_null(s, r->license);
    str_printf(s, ", \"bytes\": %" PRIu64 ", \"content_bytes\": %" PRIu64 "},\n", r->bytes,
               r->content);
}

void changes_json(const Changes *c, StrBuf *s)
{
    str_printf(s, "{\n  \"schema\": \"tvmcc-diff/1\",\n  \"same\": %s,\n",
               c->same ? "true" : "false");
    json_release(s, "one", c->was);
    json_release(s, "other", c->now);
    str_add(s, "  \"models\": [");
    for (uint32_t i = 0; i < c->nmodels; i++) {
        str_add(s, i ? "," : "");
        json_model(s, &c->models[i]);
    }
    str_add(s, "\n  ],\n  ");
    json_list(s, "packages", &c->packages);
    str_add(s, ",\n  ");
    json_list(s, "files", &c->files);
    str_add(s, ",\n  \"first_difference\": ");
    json_or_null(s, c->same ? NULL : c->first);
    str_add(s, "\n}\n");
}
