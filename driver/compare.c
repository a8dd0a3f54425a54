/* Outputs of a run against expected ones: `tvmcc run --expect`, `tvmcc verify`.
 *
 * An output agrees when its largest error (with --mean: its mean error) is at most rtol times the
 * largest expected value, plus atol.  Of one that does not, the worst element is named, with what
 * came and what was expected. */
#include "driver/session.h"

#include <math.h>
#include <string.h>

typedef struct {
    double err, mean, most; /* largest and mean error, largest expected value */
    size_t at, nans;        /* the worst element; how many are NaN on one side only */
    double got, want;       /* there */
} Difference;

static Difference difference(const tvmcc_tensor_info *t, const void *got, const void *want)
{
    DType      type = {t->code, t->bits, 1};
    uint32_t   step = dtype_bytes(type);
    size_t     cells = t->bytes / step;
    double     sum = 0;
    Difference d = {0};

    for (size_t k = 0; k < cells; k++) {
        double a = dtype_get_f(type, (const char *)got + k * step),
               b = dtype_get_f(type, (const char *)want + k * step);
        double e = (isnan(a) && isnan(b)) || a == b ? 0 : fabs(a - b);

        if (isnan(e) && !d.nans++)
            d.at = k, d.got = a, d.want = b;
        if (e > d.err && !d.nans)
            d.at = k, d.got = a, d.want = b;
        if (e > d.err)
            d.err = e;
        if (fabs(b) > d.most && isfinite(b))
            d.most = fabs(b);
        sum += e;
    }
    d.mean = cells ? sum / (double)cells : 0;
    return d;
}

/* Element 5 of [2,3] is [1,2]. */
static const char *place(Arena *a, const tvmcc_tensor_info *t, size_t at)
{
    int64_t index[64];
    StrBuf  s = strbuf(a);

    for (uint32_t i = t->ndim; i-- > 0;) {
        index[i % 64] = t->dims[i] > 0 ? (int64_t)(at % (size_t)t->dims[i]) : 0;
        at = t->dims[i] > 0 ? at / (size_t)t->dims[i] : 0;
    }
    str_add(&s, "[");
    for (uint32_t i = 0; i < t->ndim; i++)
        str_printf(&s, "%s%lld", i ? "," : "", (long long)index[i % 64]);
    str_add(&s, "]");
    return s.at;
}

static void begin_row(Session *s, uint32_t i, const char *name)
{
    str_add(&s->json, i ? ", " : ", \"compared\": [");
    str_add(&s->json, "{\"name\": ");
    str_add_json(&s->json, name);
}

/* A value, without the sign that NaN may have. */
static const char *value_text(Arena *a, double v)
{
    return isnan(v) ? "NaN" : arena_printf(a, "%.6g", v);
}

static void blame(Session *s, const tvmcc_tensor_info *t, const Difference *d, double limit)
{
    Diags      *diags = s->driver->diags;
    Arena      *a = s->driver->arena;
    const char *at = place(a, t, d->at), *what = session_tensor_text(s, t);
    const char *got = value_text(a, d->got), *want = value_text(a, d->want);

    if (d->nans) {
        diag_error(diags, E_MISMATCH, NO_LOC,
                   "output '%s', %s, is %s at %s, expected is %s; %zu element%s NaN on one "
                   "side only",
                   t->name, what, got, at, want, d->nans, d->nans == 1 ? " is" : "s are");
        return;
    }
    diag_error(diags, E_MISMATCH, NO_LOC,
               "output '%s', %s, differs by %.3g at %s: it is %s, expected is %s; %.3g in the "
               "mean, at most %.3g is allowed",
               t->name, what, d->err, at, got, want, d->mean, limit);
    if (!s->driver->opt.judge_mean && d->mean <= limit)
        diag_hint(diags,
                  "the mean is within that: --mean judges by it, for quantized models, whose "
                  "rounding differs between engines");
}

/* Sizes of 1 aside. */
static bool same_shape(const tvmcc_tensor_info *t, const Array *v)
{
    uint32_t i = 0, k = 0;

    for (;; i++, k++) {
        while (i < t->ndim && t->dims[i] == 1)
            i++;
        while (k < v->ndim && v->dims[k] == 1)
            k++;
        if (i == t->ndim || k == v->ndim)
            return i == t->ndim && k == v->ndim;
        if (t->dims[i] != v->dims[k])
            return false;
    }
}

static bool compare_one(Session *s, uint32_t i, const tvmcc_tensor_info *t, const void *got,
                        const Array *want)
{
    const Options *o = &s->driver->opt;
    Difference     d = difference(t, got, want->data.at);
    double         limit = o->rtol * d.most + o->atol;
    bool           fits = !d.nans && (o->judge_mean ? d.mean : d.err) <= limit;

    if (!fits)
        blame(s, t, &d, limit);
    if (o->json) {
        begin_row(s, i, t->name);
        str_printf(&s->json,
                   ", \"agrees\": %s, \"max_error\": %.6g, \"mean_error\": %.6g, "
                   "\"max_expected\": %.6g}",
                   fits ? "true" : "false", d.err, d.mean, d.most);
    } else if (fits) {
        say(s->driver, "output '%s' agrees: largest error %.3g, mean %.3g, largest value %.3g\n",
            t->name, d.err, d.mean, d.most);
    }
    return fits;
}

static bool same_text(const Array *a, size_t i, const Array *b)
{
    Bytes x = array_string(a, i), y = array_string(b, i);

    return x.n == y.n && !memcmp(x.at, y.at, x.n);
}

/* Strings of one shape: all have to be equal. */
static bool compare_text(Session *s, uint32_t i, const Array *got, const Array *want)
{
    size_t n = array_strings(got), at = 0;

    while (at < n && same_text(got, at, want))
        at++;
    if (at < n) {
        Bytes             x = array_string(got, at), y = array_string(want, at);
        tvmcc_tensor_info t = {.ndim = got->ndim - 1, .dims = got->dims};

        diag_error(s->driver->diags, E_MISMATCH, NO_LOC,
                   "output '%s' is '%.*s' at %s, expected is '%.*s'", got->name, (int)x.n,
                   (const char *)x.at, place(s->driver->arena, &t, at), (int)y.n,
                   (const char *)y.at);
    }
    if (s->driver->opt.json) {
        begin_row(s, i, got->name);
        str_printf(&s->json, ", \"agrees\": %s}", at == n ? "true" : "false");
    } else if (at == n) {
        say(s->driver, "output '%s' agrees: %zu strings\n", got->name, n);
    }
    return at == n;
}

static bool is_text_alike(const Array *a, const Array *b)
{
    return a && a->text && b->text && a->ndim == b->ndim &&
           !memcmp(a->dims, b->dims, (a->ndim - 1) * sizeof *a->dims);
}

/* A result as the model would tell of it. */
static tvmcc_tensor_info info_of(const Array *v)
{
    return (tvmcc_tensor_info){.name = v->name,
                               .dims = v->dims,
                               .bytes = v->data.n,
                               .code = v->code,
                               .bits = v->bits,
                               .lanes = 1,
                               .ndim = v->ndim};
}

bool session_compare(Session *s, const char *path)
{
    uint32_t n, nresults;
    Array   *want, *results;
    bool     ok = true;

    if (!session_read_expected(s, path, &n, &want) || !session_results(s, &nresults, &results))
        return false;
    if (!n)
        return diag_error(s->driver->diags, E_MISMATCH, (Loc){.file = path}, "nothing is in it");
    for (uint32_t i = 0; i < n; i++) {
        const Array             *got = array_find(results, nresults, want[i].name);
        tvmcc_tensor_info        is = got ? info_of(got) : (tvmcc_tensor_info){0};
        const tvmcc_tensor_info *t = got ? &is : NULL;

        if (is_text_alike(got, &want[i])) {
            ok = compare_text(s, i, got, &want[i]) && ok;
            continue;
        }
        if (t && got->text == want[i].text && session_same_type(t, &want[i]) &&
            same_shape(t, &want[i]) && t->bytes == want[i].data.n) {
            ok = compare_one(s, i, t, got->data.at, &want[i]) && ok;
            continue;
        }
        if (t) {
            ok = diag_error(s->driver->diags, E_MISMATCH, (Loc){.file = want[i].file},
                            "output '%s' of the model is %s, expected here is %s", t->name,
                            session_tensor_text(s, t), session_array_text(s, &want[i]));
        } else {
            ok = diag_error(s->driver->diags, E_MISMATCH, (Loc){.file = want[i].file},
                            "the model has no output '%s'", want[i].name);
            diag_hint(s->driver->diags, "it has %s",
                      session_names(s, s->info->noutputs, s->info->outputs));
        }
        if (s->driver->opt.json) {
            begin_row(s, i, want[i].name);
            str_add(&s->json, ", \"agrees\": false}");
        }
    }
    if (s->driver->opt.json)
        str_add(&s->json, "]");
    return ok;
}
