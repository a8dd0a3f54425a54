/* What came out of a run, for people.
 *
 *     digits, 2 threads, compiled for this CPU (cascadelake; -mcpu=native), inputs not given are
 * random digit: f32[1,10], 1.22e-10 to 1, mean 0.1 5.8e-08 2.4e-07 9.9e-06 1 .. 3  0.99994
 *            2  9.9e-06
 *
 * The largest values are shown where an output looks like scores of classes: one row, as long as
 * the labels, or probabilities, or the only output. */
#include "driver/session.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST = 8, TOP = 5, CLASSES_MIN = 10, CLASSES_MAX = 1 << 16 };

/* ---- labels, top k ---- */

bool session_labels(Session *s)
{
    Driver     *d = s->driver;
    const char *path = d->opt.compile.labels, *product = d->opt.inputs.at[0], *slash, *name;
    Bytes       file;
    Member     *members;
    uint32_t    n;
    struct stat st;

    if (path)
        return product_labels(d->diags, d->arena, path, &s->labels);
    if (s->compiled)
        return true;
    name = arena_printf(d->arena, "share/%s/%s.labels", s->info->name, s->info->name);
    slash = strrchr(product, '/');
    if (stat(product, &st) == 0 && S_ISDIR(st.st_mode)) {
        path = arena_printf(d->arena, "%s/%s", product, name);
    } else if (pack_format(product) == PACK_NONE) {
        path = arena_printf(d->arena, "%.*s%s.labels", (int)(slash ? slash + 1 - product : 0),
                            product, s->info->name);
    } else {
        if (!file_map(d->diags, product, &file) ||
            !pack_read(d->diags, d->arena, product, file, PACK_LIMIT, &members, &n))
            return false;
        for (uint32_t i = 0; i < n; i++)
            if (str_ends(members[i].path, name))
                return product_label_lines(d->diags, d->arena, product, members[i].data,
                                           &s->labels);
        return true;
    }
    return access(path, R_OK) || product_labels(d->diags, d->arena, path, &s->labels);
}

void session_print_top(Session *s, uint32_t output, uint32_t top)
{
    const tvmcc_tensor_info *t = &s->info->outputs[output];
    const char              *data = s->out[output];
    DType                    type = {t->code, t->bits, 1};
    size_t                   n = t->bytes / dtype_bytes(type);
    size_t                   batch = t->ndim > 1 && t->dims[0] > 0 ? (size_t)t->dims[0] : 1;
    size_t                   classes = n / batch ? n / batch : 1;
    bool                    *used = NEW_ARRAY(s->driver->arena, bool, n + 1);

    for (uint32_t k = 0; k < top && k < n; k++) {
        size_t best = n;
        for (size_t i = 0; i < n; i++)
            if (!used[i] && (best == n || dtype_get_f(type, data + i * dtype_bytes(type)) >
                                              dtype_get_f(type, data + best * dtype_bytes(type))))
                best = i;
        double value = dtype_get_f(type, data + best * dtype_bytes(type));
        used[best] = true;
        const char *label = best % classes < s->labels.n ? s->labels.at[best % classes] : NULL;
        if (s->driver->opt.json) {
            str_printf(&s->json, "%s{\"index\": %zu, ", k ? ", " : ", \"top\": [", best);
            if (label) {
                str_add(&s->json, "\"label\": ");
                str_add_json(&s->json, label);
                str_add(&s->json, ", ");
            }
            str_printf(&s->json, "\"value\": %.9g}", value);
        } else if (label) {
            say(s->driver, "%8zu  %-12.6g  %s\n", best, value, label);
        } else {
            say(s->driver, "%8zu  %.6g\n", best, value);
        }
    }
    if (s->driver->opt.json && n)
        str_add(&s->json, "]");
}

/* ---- in short ---- */

typedef struct {
    size_t n, nans;
    double min, max, sum; /* of what is not NaN */
} Range;

static Range range_of(const tvmcc_tensor_info *t, const char *data)
{
    DType type = {t->code, t->bits, 1};
    Range r = {.n = t->bytes / dtype_bytes(type), .min = INFINITY, .max = -INFINITY};

    for (size_t i = 0; i < r.n; i++) {
        double v = dtype_get_f(type, data + i * dtype_bytes(type));

        if (isnan(v)) {
            r.nans++;
            continue;
        }
        r.min = v < r.min ? v : r.min;
        r.max = v > r.max ? v : r.max;
        r.sum += v;
    }
    return r;
}

static bool looks_like_classes(const Session *s, const tvmcc_tensor_info *t, const Range *r)
{
    if (r->nans || !t->ndim || (size_t)t->dims[t->ndim - 1] != r->n)
        return false; /* not one row */
    if (s->labels.n)
        return s->labels.n == r->n;
    return r->n >= CLASSES_MIN && r->n <= CLASSES_MAX &&
           (s->info->noutputs == 1 || (r->min >= 0 && fabs(r->sum - 1) < 1e-3));
}

static void show_text(Session *s, uint32_t index)
{
    const tvmcc_tensor_info *t = &s->info->outputs[index];
    Array  v = {.ndim = t->ndim, .dims = t->dims, .data = {s->out[index], t->bytes}, .text = true};
    size_t n = array_strings(&v);

    say(s->driver, "%s: %zu strings\n ", t->name, n);
    for (size_t i = 0; i < n && i < FIRST; i++) {
        Bytes b = array_string(&v, i);

        say(s->driver, " '%.*s'", (int)b.n, (const char *)b.at);
    }
    say(s->driver, n > FIRST ? " ..\n" : "\n");
}

static void show_output(Session *s, uint32_t index)
{
    const tvmcc_tensor_info *t = &s->info->outputs[index];
    DType                    type = {t->code, t->bits, 1};
    Range                    r = range_of(t, s->out[index]);

    say(s->driver, "%s: %s", t->name, session_tensor_text(s, t));
    if (r.n > r.nans)
        say(s->driver, ", %.6g to %.6g, mean %.6g", r.min, r.max, r.sum / (double)(r.n - r.nans));
    if (r.nans)
        say(s->driver, ", %zu NaN", r.nans);
    say(s->driver, r.n ? "\n " : ", empty\n");
    for (size_t i = 0; i < r.n && i < FIRST; i++) {
        double v = dtype_get_f(type, (const char *)s->out[index] + i * dtype_bytes(type));

        if (isnan(v))
            say(s->driver, " NaN");
        else
            say(s->driver, " %.6g", v);
    }
    if (r.n)
        say(s->driver, r.n > FIRST ? " ..\n" : "\n");
    if (looks_like_classes(s, t, &r))
        session_print_top(s, index, TOP);
}

void session_show(Session *s)
{
    static const char *const fills[] = {"random", "random", "0", "1"}; /* as FillMode */
    bool                     filled = s->ngiven < s->info->ninputs;

    say(s->driver, "%s, %s, %s%s%s\n", s->info->name, session_threads(s), session_compiled_for(s),
        filled ? ", inputs not given are " : "", filled ? fills[s->driver->opt.fill] : "");
    for (uint32_t i = 0; i < s->info->noutputs; i++)
        if (s->info->outputs[i].ndim && session_is_text(s, s->info->outputs[i].name))
            show_text(s, i);
        else
            show_output(s, i);
}
