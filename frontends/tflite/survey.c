/* A look at all operators of all graphs before anything is built.
 *
 * Which have no row in ops.def, are of a newer version, or have options that are not known: all of
 * it is reported at once, each fault once with the first operator that has it. */
#include "frontends/tflite/tflite.h"

#include <string.h>

typedef struct {
    TfliteImport         *im;
    const TfliteGraph    *g;
    const TfliteOperator *p;
    const char           *op;
    uint32_t              ordinal; /* 0: in another graph than the main one */
    Findings              findings;
} Survey;

const char *tflite_node_name(const TfliteGraph *g, const TfliteOperator *p)
{
    return p->out.n ? tflite_tensor(g, tflite_out_index(p, 0))->name : "";
}

static void found(Survey *s, DiagId id, const char *hint, const char *fmt, ...) PRINTF_LIKE(4, 5);
static void found(Survey *s, DiagId id, const char *hint, const char *fmt, ...)
{
    Finding f = {.id = id,
                 .op = id == E_UNSUPPORTED_OP ? NULL : s->op,
                 .hint = hint,
                 .first = tflite_node_name(s->g, s->p),
                 .ordinal = s->ordinal};
    va_list ap;

    va_start(ap, fmt);
    finding_addv(s->im->c, &s->findings, f, fmt, ap);
    va_end(ap);
}

/* ---- options -------------------------------------------------------------------------------------- */

/* Each field where it should be; what is behind the last one is of a newer schema. */
static void check_fields(Survey *s, const TfliteOptions *o, const FbTable *t)
{
    uint32_t known = tflite_count_fields(o);

    for (uint32_t i = 0; i < t->slots; i++) {
        TfliteField f;
        FbVector    v;
        int64_t     number;
        double      real;
        bool        ok;

        if (i >= known) {
            if (fb_has(t, i))
                found(s, W_UNKNOWN_ATTRIBUTE, "the file is of a newer schema",
                      "field %u of its %s is not known", i, o->name);
            continue;
        }
        if (!tflite_field_at(o, i, &f))
            continue;
        ok = f.kind == FB_TEXT  ? fb_vector(t, i, FB_U8, &v)
             : f.vector         ? fb_vector(t, i, f.kind, &v)
             : f.kind == FB_F32 ? fb_float(t, i, 0, &real)
                                : fb_int(t, i, f.kind, 0, &number);
        if (!ok)
            found(s, E_PARSE_MODEL, NULL, "field %u of its %s leads out of the file", i, o->name);
    }
}

static void check_options(Survey *s, const TfliteRow *row)
{
    for (uint32_t set = 1; set <= 2; set++) {
        int64_t              type;
        const FbTable       *t = tflite_options_of(s->p, set, &type);
        const TfliteOptions *is = tflite_options(set, type);
        bool                 wanted = row->options && row->options->set == set;

        if (type == 0 || !t->file.at)
            continue;
        if (wanted && row->options == is)
            check_fields(s, is, t);
        else if (wanted || (is && tflite_count_fields(is)))
            found(s, W_UNKNOWN_ATTRIBUTE, NULL, "its options are %s, not %s",
                  is ? is->name : "of a kind that is not known",
                  row->options ? row->options->name : "none");
    }
}

/* ---- operators -------------------------------------------------------------------------------------- */

static uint32_t given(const TfliteOperator *p)
{
    uint32_t n = p->in.n;

    while (n && tflite_in_index(p, n - 1) < 0)
        n--;
    return n;
}

static void check_inputs(Survey *s, const TfliteRow *row)
{
    uint32_t n = given(s->p);

    for (uint32_t i = 0; i < row->least; i++)
        if (i >= n || tflite_in_index(s->p, i) < 0)
            found(s, E_IMPORT, NULL, "input %u is missing", i);
    if (n > row->most)
        found(s, W_SURPLUS_INPUTS, NULL, "%u input%s, but it takes %u", n, n == 1 ? "" : "s",
              row->most);
}

static void survey_operator(Survey *s)
{
    const TfliteOpcode *code = tflite_opcode(s->im->model, s->p);
    const TfliteRow    *row = tflite_row(code);

    s->op = tflite_op_name(s->im->c, code);
    if (!row) {
        found(s, E_UNSUPPORTED_OP, tflite_refusal(code), "operator %s is not supported", s->op);
        return;
    }
    if (code->version > row->version)
        found(s, W_MODEL_VERSION, NULL, "it is of version %lld; the newest known is %d",
              (long long)code->version, row->version);
    check_inputs(s, row);
    check_options(s, row);
}

bool tflite_survey(TfliteImport *im)
{
    Survey   s = {.im = im, .findings = {.path = im->path, .noun = "operator"}};
    uint32_t before = diag_errors(im->c->diags);

    if (im->model->version > TFLITE_VERSION)
        diag_warn(im->c->diags, W_MODEL_VERSION, (Loc){.file = im->path},
                  "the model is of version %lld of the format; the newest known is %d",
                  (long long)im->model->version, TFLITE_VERSION);
    for (uint32_t k = 0; k < im->model->graphs.n; k++) {
        s.g = im->model->graphs.at[k];
        for (uint32_t i = 0; i < s.g->operators.n; i++) {
            s.p = s.g->operators.at[i];
            s.ordinal = k == 0 ? i + 1 : 0;
            survey_operator(&s);
        }
    }
    findings_report(im->c, &s.findings);
    return diag_errors(im->c->diags) == before;
}
