/* changes.c: what changed from one release to the next, in the terms of those who use it.
 *
 * Models are paired by entry and triple; a model that is alone with its entry on both sides is the
 * same model for another machine.  Of each pair: did the graph change, did the weights, does a
 * program that uses it have to; which operators and kernels came and went; how much larger it is.
 * Names of kernels end in a hash of their code, so equal names are equal code.
 */
#include "packaging/packaging.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NEAR_PERCENT = 5 };

const char *const abi_change_names[] = {"same", "compile", "broken"};
const char *const latency_names[] = {"same", "near", "lower", "higher", "unknown"};
const char *const known_names[] = {"true", "false", "null"};

static bool same_sha(Sha256 x, Sha256 y)
{
    return memcmp(x.b, y.b, sizeof x.b) == 0;
}

static bool is_zero(Sha256 x)
{
    static const Sha256 none;

    return same_sha(x, none);
}

static bool same_text(const char *x, const char *y)
{
    return x == y || (x && y && strcmp(x, y) == 0);
}

/* ---- what goes in and out --------------------------------------------------------------------------- */

static void PRINTF_LIKE(4, 5) because(Arena *a, ModelChange *m, AbiChange abi, const char *fmt, ...)
{
    StrBuf  s = strbuf(a);
    va_list ap;

    va_start(ap, fmt);
    str_vprintf(&s, fmt, ap);
    va_end(ap);
    vec_push(a, &m->reasons, s.at);
    if (abi > m->abi)
        m->abi = abi;
}

static const char *type_of(Arena *a, const TensorDesc *t)
{
    static const char *const kinds[] = {"int", "uint", "float", "", "bfloat", "", "bool"};
    StrBuf                   s = strbuf(a);

    str_add(&s, t->code < COUNT(kinds) ? kinds[t->code] : "?");
    if (t->code != 6)
        str_printf(&s, "%u", t->bits);
    str_addc(&s, '[');
    for (uint32_t i = 0; i < t->ndim; i++)
        str_printf(&s, "%s%" PRId64, i ? ", " : "", t->dims[i]);
    str_addc(&s, ']');
    return s.at;
}

static const TensorDesc *find_tensor(const TensorDesc *t, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(t[i].name, name) == 0)
            return &t[i];
    return NULL;
}

static void compare_tensor(Arena *a, ModelChange *m, const char *what, const TensorDesc *x,
                           const TensorDesc *y)
{
    const char *was = type_of(a, x), *now = type_of(a, y);

    if (strcmp(was, now) != 0)
        because(a, m, ABI_BROKEN, "%s '%s' is %s, was %s", what, x->name, now, was);
    if (strcmp(x->c_name, y->c_name) != 0)
        because(a, m, ABI_BROKEN, "%s '%s' is called %s in C, was %s", what, x->name, y->c_name,
                x->c_name);
    if (!same_text(x->layout, y->layout))
        because(a, m, ABI_BROKEN, "%s '%s' has layout %s, had %s", what, x->name,
                y->layout ? y->layout : "-", x->layout ? x->layout : "-");
    if (x->state != y->state)
        because(a, m, ABI_BROKEN, "%s '%s' is the state of another input", what, x->name);
    if (x->quantized != y->quantized || x->scale != y->scale || x->zero_point != y->zero_point)
        because(a, m, ABI_COMPILE, "%s '%s' has scale %g and zero point %d, had %g and %d", what,
                x->name, y->quantized ? y->scale : 1, y->zero_point, x->quantized ? x->scale : 1,
                x->zero_point);
    if (y->align > x->align)
        because(a, m, ABI_COMPILE, "%s '%s' is aligned to %u, was to %u", what, x->name, y->align,
                x->align);
}

static void compare_tensors(Arena *a, ModelChange *m, const char *what, const TensorDesc *x,
                            uint32_t nx, const TensorDesc *y, uint32_t ny)
{
    bool order = nx == ny;

    for (uint32_t i = 0; i < nx; i++) {
        const TensorDesc *other = find_tensor(y, ny, x[i].name);

        if (!other)
            because(a, m, ABI_BROKEN, "%s '%s' is gone", what, x[i].name);
        else
            compare_tensor(a, m, what, &x[i], other);
        order = order && (!other || other == &y[i]);
    }
    for (uint32_t i = 0; i < ny; i++)
        if (!find_tensor(x, nx, y[i].name))
            because(a, m, ABI_BROKEN, "%s '%s' is new: %s", what, y[i].name, type_of(a, &y[i]));
    if (!order && nx == ny)
        because(a, m, ABI_COMPILE, "%ss come in another order", what);
}

static void compare_abi(Arena *a, ModelChange *m)
{
    const ModelDesc *x = m->was->desc, *y = m->now->desc;

    if (x->abi != y->abi)
        because(a, m, ABI_BROKEN, "the ABI is %u, was %u", y->abi, x->abi);
    if (strcmp(x->triple, y->triple) != 0)
        because(a, m, ABI_BROKEN, "it is for %s, was for %s", y->triple, x->triple);
    compare_tensors(a, m, "input", x->in, x->nin, y->in, y->nin);
    compare_tensors(a, m, "output", x->out, x->nout, y->out, y->nout);
    if (x->weights_mode != y->weights_mode)
        because(a, m, ABI_BROKEN, "-fweights=%s, was %s", weights_mode_names[y->weights_mode],
                weights_mode_names[x->weights_mode]);
    if (y->arena_shared > x->arena_shared || y->arena_private > x->arena_private)
        because(a, m, ABI_COMPILE, "the arena is larger than <MODEL>_ARENA_BYTES was");
    if (y->arena_align > x->arena_align)
        because(a, m, ABI_COMPILE, "the arena is aligned to %u, was to %u", y->arena_align,
                x->arena_align);
}

/* ---- graph and weights ------------------------------------------------------------------------------ */

/* The text of the graph without what depends on values of weights: hashes, and lists of numbers
 * that are constants.  What is left out is in `values`. */
static const char *structure_of(Arena *a, const char *graph, StrBuf *values)
{
    StrBuf s = strbuf(a);

    for (const char *p = graph; *p;) {
        size_t      n = strcspn(p, "\n");
        const char *equals = str_starts(p, "const @") ? memchr(p, '=', n) : NULL;

        if (str_starts(p, "source sha256:")) {
            /* of the file */
        } else if (equals) {
            str_addn(&s, p, (size_t)(equals - p));
            str_addn(values, equals, n - (size_t)(equals - p));
        } else {
            str_addn(&s, p, n);
        }
        str_addc(&s, '\n');
        p += n + (p[n] == '\n');
    }
    return s.n ? s.at : "";
}

static uint64_t op_count(const ModelDesc *d, const char *name)
{
    for (uint32_t i = 0; i < d->nops; i++)
        if (strcmp(d->ops[i].name, name) == 0)
            return d->ops[i].count;
    return 0;
}

static void compare_operators(Arena *a, ModelChange *m)
{
    const ModelDesc *x = m->was->desc, *y = m->now->desc;

    if (!x->nops || !y->nops)
        return;
    for (uint32_t i = 0; i < x->nops; i++) {
        uint64_t now = op_count(y, x->ops[i].name);

        if (now != x->ops[i].count)
            vec_push(a, &m->operators, ((Quantity){x->ops[i].name, x->ops[i].count, now}));
    }
    for (uint32_t i = 0; i < y->nops; i++)
        if (!op_count(x, y->ops[i].name))
            vec_push(a, &m->operators, ((Quantity){y->ops[i].name, 0, y->ops[i].count}));
}

/* By the file's hash, the text of the graph if it is there, the kernels, the operators: whichever
 * can tell.  The bytes of the weights depend on the code too, and tell nothing once that is
 * another. */
static void compare_content(Arena *a, ModelChange *m)
{
    const ModelDesc *x = m->was->desc, *y = m->now->desc;
    bool             same_code = x->nkernel_names && !m->kernels_new.n && !m->kernels_gone.n &&
                     x->macs == y->macs && x->weights_bytes == y->weights_bytes &&
                     same_text(x->targets, y->targets) && m->abi == ABI_SAME;
    bool same_model = same_sha(x->model_sha, y->model_sha) && !is_zero(x->model_sha);

    m->structure = same_code && !m->operators.n ? NO : UNKNOWN;
    m->weights = same_sha(x->weights_sha, y->weights_sha) ? NO : same_code ? YES : UNKNOWN;
    if (same_model) { /* options may still have added or cut something */
        m->weights = NO;
        m->structure = m->operators.n || m->abi == ABI_BROKEN ? YES : NO;
    } else if (m->was->graph && m->now->graph) {
        StrBuf was = strbuf(a), now = strbuf(a);
        bool   same =
            strcmp(structure_of(a, m->was->graph, &was), structure_of(a, m->now->graph, &now)) == 0;

        m->structure = same ? NO : YES;
        m->weights = strcmp(was.n ? was.at : "", now.n ? now.at : "") == 0 ? NO : YES;
    } else if (x->nops && y->nops && m->structure == UNKNOWN) {
        m->structure = m->operators.n || x->macs != y->macs || x->nin != y->nin ? YES : UNKNOWN;
    }
}

/* ---- kernels ----------------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char **sorted(Arena *a, const ModelDesc *d)
{
    const char **names = NEW_ARRAY(a, const char *, d->nkernel_names + 1);

    for (uint32_t i = 0; i < d->nkernel_names; i++)
        names[i] = d->kernel_names[i];
    qsort(names, d->nkernel_names, sizeof *names, by_text);
    return names;
}

static void compare_kernels(Arena *a, ModelChange *m)
{
    const ModelDesc *x = m->was->desc, *y = m->now->desc;
    const char     **was = sorted(a, x), **now = sorted(a, y);
    uint32_t         i = 0, k = 0;

    while (i < x->nkernel_names || k < y->nkernel_names) {
        int order = i == x->nkernel_names ? 1 : k == y->nkernel_names ? -1 : strcmp(was[i], now[k]);

        if (order < 0)
            vec_push(a, &m->kernels_gone, was[i]);
        else if (order > 0)
            vec_push(a, &m->kernels_new, now[k]);
        else
            m->kernels_same++;
        i += order <= 0;
        k += order >= 0;
    }
}

static Latency compare_latency(const ModelChange *m)
{
    const ModelDesc *x = m->was->desc, *y = m->now->desc;
    double           was = (double)x->macs, now = (double)y->macs;

    if (!same_text(x->targets, y->targets) || !x->nkernel_names || !y->nkernel_names)
        return LATENCY_UNKNOWN;
    if (!m->kernels_new.n && !m->kernels_gone.n && x->macs == y->macs)
        return LATENCY_SAME;
    if (was <= 0 || now <= 0)
        return LATENCY_UNKNOWN;
    return now > was * (100 + NEAR_PERCENT) / 100   ? LATENCY_HIGHER
           : now < was * (100 - NEAR_PERCENT) / 100 ? LATENCY_LOWER
                                                    : LATENCY_NEAR;
}

/* ---- models ------------------------------------------------------------------------------------------ */

static void compare_sizes(Arena *a, ModelChange *m)
{
    const ModelDesc *x = m->was->desc, *y = m->now->desc;
    const Quantity   rows[] = {
        {"multiply-adds", (uint64_t)x->macs, (uint64_t)y->macs},
        {"code", m->was->code, m->now->code},
        {"weights", x->weights_bytes, y->weights_bytes},
        {"arena", x->arena_shared + x->arena_private, y->arena_shared + y->arena_private},
        {"library", m->was->library, m->now->library},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].was || rows[i].now)
            vec_push(a, &m->sizes, rows[i]);
}

static void compare_models(Arena *a, ModelChange *m)
{
    const ModelDesc *x = m->was->desc, *y = m->now->desc;

    compare_abi(a, m);
    compare_operators(a, m);
    compare_kernels(a, m);
    compare_content(a, m);
    compare_sizes(a, m);
    m->latency = compare_latency(m);
    m->changed = m->abi != ABI_SAME || m->structure != NO || m->weights != NO || m->operators.n ||
                 m->kernels_new.n || m->kernels_gone.n || !same_text(x->targets, y->targets) ||
                 !same_text(x->toolchain, y->toolchain) ||
                 !same_sha(x->weights_sha, y->weights_sha) || !same_sha(x->build_id, y->build_id);
    for (uint32_t i = 0; i < m->sizes.n; i++)
        m->changed = m->changed || m->sizes.at[i].was != m->sizes.at[i].now;
}

/* The only part of its entry. */
static bool alone(const Release *r, const char *entry)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < r->nparts; i++)
        n += strcmp(r->parts[i].desc->entry, entry) == 0;
    return n == 1;
}

static const ReleasePart *partner(const Release *from, const ReleasePart *p, const Release *in)
{
    const ModelDesc *d = p->desc;
    bool             any = alone(from, d->entry) && alone(in, d->entry);

    for (uint32_t i = 0; i < in->nparts; i++)
        if (strcmp(in->parts[i].desc->entry, d->entry) == 0 &&
            (any || strcmp(in->parts[i].desc->triple, d->triple) == 0))
            return &in->parts[i];
    return NULL;
}

static void pair_models(Arena *a, Changes *c)
{
    VEC(ModelChange) models = {0};

    for (uint32_t i = 0; i < c->was->nparts; i++) {
        ModelChange m = {.was = &c->was->parts[i]};

        m.now = partner(c->was, m.was, c->now);
        m.changed = true;
        if (m.now)
            compare_models(a, &m);
        vec_push(a, &models, m);
    }
    for (uint32_t i = 0; i < c->now->nparts; i++)
        if (!partner(c->now, &c->now->parts[i], c->was))
            vec_push(a, &models, ((ModelChange){.now = &c->now->parts[i], .changed = true}));
    c->nmodels = models.n;
    c->models = models.at;
}

/* ---- the rest of the archive --------------------------------------------------------------------------- */

/* Its content is told as that of models, or follows from it. */
static bool is_told(const char *path)
{
    static const char *const names[] = {
        "SHA256SUMS",          "manifest.json",     "sbom.spdx.json", "reports/coverage.json",
        "reports/memory.json", "reports/size.json",
    };
    static const char *const folders[] = {"lib/", "src/", "include/", "share/"};

    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(path, names[i]) == 0)
            return true;
    for (size_t i = 0; i < COUNT(folders); i++)
        if (str_starts(path, folders[i]))
            return true;
    return false;
}

static void compare_files(Arena *a, Changes *c)
{
    const Release *x = c->was, *y = c->now;
    uint32_t       i = 0, k = 0;

    while (i < x->n || k < y->n) {
        int order = i == x->n ? 1 : k == y->n ? -1 : strcmp(x->members[i].path, y->members[k].path);
        const Member *m = order > 0 ? &y->members[k] : &x->members[i];
        bool          same = order == 0 && m->data.n == y->members[k].data.n &&
                    (!m->data.n || memcmp(m->data.at, y->members[k].data.at, m->data.n) == 0);

        if (!same && !is_told(m->path))
            vec_push(a, &c->files,
                     arena_printf(a, "%c %s",
                                  order < 0   ? '-'
                                  : order > 0 ? '+'
                                              : '~',
                                  m->path));
        i += order <= 0;
        k += order >= 0;
    }
}

static bool has_package(const Release *r, const ReleasePackage *p)
{
    for (uint32_t i = 0; i < r->npackages; i++) {
        const ReleasePackage *q = &r->packages[i];

        if (same_text(p->name, q->name) && same_text(p->version, q->version) &&
            same_text(p->license, q->license) && same_text(p->sha, q->sha))
            return true;
    }
    return false;
}

static void compare_packages(Arena *a, const Release *x, const Release *y, char sign, TextVec *out)
{
    for (uint32_t i = 0; i < x->npackages; i++) {
        const ReleasePackage *p = &x->packages[i];

        if (!has_package(y, p))
            vec_push(a, out,
                     arena_printf(a, "%c %s%s%s, licence %s%s%.12s", sign, p->name,
                                  p->version ? " " : "", p->version ? p->version : "",
                                  p->license ? p->license : "NOASSERTION",
                                  p->sha ? ", sha256 " : "", p->sha ? p->sha : ""));
    }
}

void changes_find(Arena *a, const Release *was, const Release *now, Changes *out)
{
    StrBuf first = strbuf(a);

    *out = (Changes){.was = was, .now = now};
    out->same = diff_members(a, was->members, was->n, now->members, now->n, &first);
    out->first = first.n ? first.at : "";
    pair_models(a, out);
    if (was->n > 1 || now->n > 1) /* not metadata alone */
        compare_files(a, out);
    compare_packages(a, was, now, '-', &out->packages);
    compare_packages(a, now, was, '+', &out->packages);
}
