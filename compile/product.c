/* Options about what the product does beside the model, as text:
 *
 *     --input-image data:nhwc,uint8,mean=123.68,116.78,103.94,std=58.4,57.1,57.4,channels=bgr
 *     --output-add softmax, argmax:logits, topk=5:logits
 *     --state hidden_out=hidden_in
 *     --shape-buckets N=1,4,8
 *
 * Names of tensors may hold anything, so what is ours stands behind the last ':' of a picture, in
 * front of the first ':' of an addition. */
#include "compile/options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- pictures ---------------------------------------------------------------------------------- */

typedef VEC(double) Reals;

/* A number such as 0.017 or 1/255. */
static bool parse_real(const char *text, double *out)
{
    char  *end;
    double v = strtod(text, &end), by = 1;

    if (end == text)
        return false;
    if (*end == '/') {
        const char *from = end + 1;

        by = strtod(from, &end);
        if (end == from || by == 0)
            return false;
    }
    *out = v / by;
    return !*end && *out - *out == 0; /* neither infinite nor NaN */
}

static bool is_layout(const char *text)
{
    static const char *const all[] = {"nhwc", "nchw", "hwc", "chw"};

    for (size_t i = 0; i < COUNT(all); i++)
        if (!strcmp(all[i], text))
            return true;
    return false;
}

static bool is_type(const char *text, DType *out)
{
    static const struct {
        const char *text;
        DType       t;
    } all[] = {{"uint8", {DT_UINT, 8, 1}},
               {"int8", {DT_INT, 8, 1}},
               {"uint16", {DT_UINT, 16, 1}},
               {"float16", {DT_FLOAT, 16, 1}},
               {"float32", {DT_FLOAT, 32, 1}}};

    for (size_t i = 0; i < COUNT(all); i++)
        if (!strcmp(all[i].text, text)) {
            *out = all[i].t;
            return true;
        }
    return false;
}

typedef struct {
    Arena        *a;
    ProductImage *image;
    Reals         mean, std, *list; /* list: what a bare number goes on with */
    bool          bgr_model, bgr_pixels;
} ImageText;

static bool order_of(const char *text, bool *bgr)
{
    *bgr = !strcmp(text, "bgr");
    return *bgr || !strcmp(text, "rgb");
}

static bool image_word(ImageText *t, const char *word)
{
    ProductImage *im = t->image;
    const char   *equals = strchr(word, '=');
    double        v;

    if (t->list && parse_real(word, &v)) {
        vec_push(t->a, t->list, v);
        return true;
    }
    t->list = NULL;
    if (!equals) {
        if (is_layout(word)) {
            im->layout = str_upper(t->a, word);
            return true;
        }
        return is_type(word, &im->dtype);
    }
    const char *value = equals + 1;
    size_t      n = (size_t)(equals - word);
    if (n == 4 && !strncmp(word, "mean", n))
        t->list = &t->mean;
    else if (n == 3 && !strncmp(word, "std", n))
        t->list = &t->std;
    if (t->list) {
        bool ok = parse_real(value, &v) && !t->list->n;
        vec_push(t->a, t->list, v);
        return ok;
    }
    if (n == 5 && !strncmp(word, "scale", n))
        return parse_real(value, &im->scale) && im->scale > 0;
    if (n == 5 && !strncmp(word, "model", n)) {
        im->model_layout = str_upper(t->a, value);
        return is_layout(value);
    }
    if (n == 8 && !strncmp(word, "channels", n))
        return order_of(value, &t->bgr_model);
    if (n == 6 && !strncmp(word, "pixels", n))
        return order_of(value, &t->bgr_pixels);
    return false;
}

bool product_parse_image(Arena *a, const char *text, ProductImage *out, const char **why)
{
    const char *colon = strrchr(text, ':'), *at = colon ? colon + 1 : text;
    ImageText   t = {.a = a, .image = out};

    *out = (ProductImage){0};
    *why = "a picture such as 'data:nhwc,uint8,mean=127.5,std=127.5,channels=bgr'";
    if (colon)
        out->input = arena_printf(a, "%.*s", (int)(colon - text), text);
    for (;;) {
        size_t n = strcspn(at, ",");

        if (!image_word(&t, arena_printf(a, "%.*s", (int)n, at)))
            return false;
        if (!at[n])
            break;
        at += n + 1;
    }
    out->swap = t.bgr_model != t.bgr_pixels;
    out->nmean = t.mean.n;
    out->mean = t.mean.at;
    out->nstd = t.std.n;
    out->std = t.std.at;
    for (uint32_t i = 0; i < out->nstd; i++)
        if (!(out->std[i] > 0)) {
            *why = "deviations above 0";
            return false;
        }
    return !colon || *out->input;
}

/* ---- additions and states -------------------------------------------------------------------------- */

bool product_parse_add(Arena *a, const char *text, ProductAdd *out, const char **why)
{
    size_t      n = strcspn(text, ":");
    const char *what = arena_printf(a, "%.*s", (int)n, text);
    char       *end;

    *out = (ProductAdd){0};
    *why = "'softmax', 'argmax' or 'topk=5', each with ':' and an output behind it or without";
    if (text[n])
        out->output = text + n + 1;
    if (out->output && !*out->output)
        return false;
    if (!strcmp(what, "softmax")) {
        out->kind = ADD_SOFTMAX;
    } else if (!strcmp(what, "argmax")) {
        out->kind = ADD_ARGMAX;
    } else if (!strncmp(what, "topk=", 5) && isdigit((unsigned char)what[5])) {
        out->kind = ADD_TOPK;
        out->k = strtoll(what + 5, &end, 10);
        return !*end && out->k >= 1 && out->k <= 65536;
    } else {
        return false;
    }
    return true;
}

bool product_parse_state(Arena *a, const char *text, ProductState *out, const char **why)
{
    const char *equals = strchr(text, '=');

    *why = "an output and an input such as 'hidden_out=hidden_in'";
    if (!equals || equals == text || !equals[1])
        return false;
    *out = (ProductState){arena_printf(a, "%.*s", (int)(equals - text), text), equals + 1};
    return true;
}

bool product_parse_bucket(Arena *a, const char *text, BucketDim *out, const char **why)
{
    const char *equals = strrchr(text, '='), *at = equals;
    VEC(int64_t) sizes = {0};

    *why = "a dimension and its values such as 'N=1,4,8'";
    if (!equals || equals == text)
        return false;
    do {
        char     *end;
        long long v = strtoll(at + 1, &end, 10);

        if (!isdigit((unsigned char)at[1]) || v < 1 || v > 1 << 20 || (*end && *end != ','))
            return false;
        vec_push(a, &sizes, v);
        at = end;
    } while (*at);
    *out = (BucketDim){arena_printf(a, "%.*s", (int)(equals - text), text), sizes.n, sizes.at};
    return true;
}

/* ---- labels ---------------------------------------------------------------------------------------- */

enum { MAX_LABELS = 1 << 20 };

bool product_label_lines(Diags *d, Arena *a, const char *path, Bytes text, TextList *out)
{
    size_t at = 0;

    while (at < text.n) {
        const uint8_t *end = memchr(text.at + at, '\n', text.n - at);
        size_t         n = end ? (size_t)(end - text.at) - at : text.n - at;
        size_t         keep = n && text.at[at + n - 1] == '\r' ? n - 1 : n;

        if (out->n == MAX_LABELS || memchr(text.at + at, 0, n)) {
            diag_error(d, E_USAGE, (Loc){.file = path}, "this is no file of labels");
            diag_hint(d, "it is text with a name on each line");
            return false;
        }
        vec_push(a, out, arena_printf(a, "%.*s", (int)keep, (const char *)text.at + at));
        at += n + 1;
    }
    return true;
}

bool product_labels(Diags *d, Arena *a, const char *path, TextList *out)
{
    Bytes file;

    return file_map(d, path, &file) && product_label_lines(d, a, path, file, out);
}
