/* Models with dimensions that a run decides, in `tvmcc run` and `bench`: the given values say the
 * sizes of the inputs, and the run those of the outputs. */
#include "driver/session.h"

#include <string.h>

static bool is_dynamic(const tvmcc_tensor_info *t)
{
    for (uint32_t i = 0; i < t->ndim; i++)
        if (t->dims[i] < 0)
            return true;
    return false;
}

/* The sizes of input t, as the values have them. */
static bool size_input(Session *s, tvmcc_tensor_info *t)
{
    Diags       *d = s->driver->diags;
    const Array *v = array_find(s->given, s->ngiven, t->name);
    bool         fits = v && session_same_type(t, v) && v->ndim == t->ndim && v->data.n <= t->bytes;

    if (!v) {
        diag_error(d, E_RUN, NO_LOC, "the size of input '%s' is for the run to say: %s", t->name,
                   session_tensor_text(s, t));
        diag_hint(d, "give its value: --inputs=FILE.npz");
        return false;
    }
    for (uint32_t i = 0; fits && i < t->ndim; i++)
        fits = t->dims[i] < 0 || t->dims[i] == v->dims[i];
    if (!fits)
        return diag_error(d, E_RUN, (Loc){.file = v->file},
                          "input '%s' of the model is %s, its value here is %s", t->name,
                          session_tensor_text(s, t), session_array_text(s, v));
    t->dims = v->dims;
    t->bytes = v->data.n;
    return true;
}

static tvmcc_value *values(Arena *a, uint32_t n, const tvmcc_tensor_info *t)
{
    tvmcc_value *v = NEW_ARRAY(a, tvmcc_value, n + 1);

    for (uint32_t i = 0; i < n; i++) {
        v[i] = (tvmcc_value){.code = t[i].code,
                             .bits = t[i].bits,
                             .lanes = t[i].lanes,
                             .ndim = t[i].ndim,
                             .dims = NEW_ARRAY(a, int64_t, t[i].ndim + 1)};
        for (uint32_t k = 0; k < t[i].ndim; k++) /* a number has no dims to copy */
            v[i].dims[k] = t[i].dims[k];
    }
    return v;
}

bool session_dynamic(Session *s)
{
    const tvmcc_model_info *was = s->info;
    Arena                  *a = s->driver->arena;
    tvmcc_model_info       *m;
    bool                    any = false;

    for (uint32_t i = 0; i < was->ninputs; i++)
        any = any || is_dynamic(&was->inputs[i]);
    for (uint32_t i = 0; i < was->noutputs; i++)
        any = any || is_dynamic(&was->outputs[i]);
    if (!any)
        return true;
    if (s->remote)
        return diag_error(
            s->driver->diags, E_UNSUPPORTED, NO_LOC,
            "'%s' has sizes that a run decides, which programs of their own cannot be "
            "given yet",
            was->name);
    m = DUP_ARRAY(a, was, 1);
    tvmcc_tensor_info *in = DUP_ARRAY(a, was->inputs, was->ninputs + !was->ninputs);
    m->inputs = in;
    m->outputs = DUP_ARRAY(a, was->outputs, was->noutputs + !was->noutputs);
    s->dynamic = was;
    for (uint32_t i = 0; i < was->ninputs; i++)
        if (is_dynamic(&in[i]) && !size_input(s, &in[i]))
            return false;
    s->in_values = values(a, m->ninputs, m->inputs);
    s->out_values = values(a, m->noutputs, m->outputs);
    s->info = m;
    return true;
}

/* One pointer a tensor: to its cells, or to a value that has them. */
static void *const *arguments(Session *s, uint32_t n, const tvmcc_tensor_info *was,
                              const tvmcc_tensor_info *now, tvmcc_value *v, void **cells)
{
    void **out = NEW_ARRAY(s->driver->arena, void *, n + 1);

    for (uint32_t i = 0; i < n; i++) {
        v[i].data = cells[i];
        v[i].bytes = is_dynamic(&was[i]) ? was[i].bytes : now[i].bytes;
        out[i] = is_dynamic(&was[i]) ? (void *)&v[i] : cells[i];
    }
    return out;
}

int32_t session_run_dynamic(Session *s)
{
    const tvmcc_model_info *was = s->dynamic;
    tvmcc_tensor_info      *out = (tvmcc_tensor_info *)(uintptr_t)s->info->outputs; /* our copy */

    if (!s->in_args) {
        s->in_args = arguments(s, was->ninputs, was->inputs, s->info->inputs, s->in_values, s->in);
        s->out_args =
            arguments(s, was->noutputs, was->outputs, s->info->outputs, s->out_values, s->out);
    }
    for (uint32_t i = 0; i < was->noutputs; i++)
        s->out_values[i].bytes = was->outputs[i].bytes;
    int32_t rc = s->info->run(s->in_args, s->out_args, &s->params);
    for (uint32_t i = 0; rc == 0 && i < was->noutputs; i++)
        if (is_dynamic(&was->outputs[i])) {
            out[i].dims = s->out_values[i].dims;
            out[i].bytes = s->out_values[i].bytes;
        }
    return rc;
}
