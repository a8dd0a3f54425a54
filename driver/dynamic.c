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
    bool         fits =
        v && session_same_type(t, v) && v->ndim == t->ndim && (!t->bytes || v->data.n <= t->bytes);

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

int64_t session_arena_bytes(Session *s, uint32_t threads)
{
    const void **in;
    int64_t      n;

    if (!s->sizes)
        return (int64_t)tvmrt_arena_bytes(s->info, threads);
    in = NEW_ARRAY(s->driver->arena, const void *, s->info->ninputs + 1);
    for (uint32_t i = 0; i < s->info->ninputs; i++)
        in[i] = &s->in_values[i];
    n = tvmrt_run_bytes(s->sizes, in, threads);
    if (n < 0)
        session_shape_error(s);
    return n < 0 ? -1 : n;
}

static int32_t run_with_room(Session *s)
{
    for (uint32_t i = 0; i < s->info->noutputs; i++)
        s->out_values[i].bytes = s->out_memory[i].n;
    return s->info->run(s->in_args, s->out_args, &s->params);
}

/* Where an output has no largest size, its memory grows to what the run asked for. */
static bool more_room(Session *s)
{
    for (uint32_t i = 0; i < s->info->noutputs; i++) {
        size_t n = s->out_values[i].bytes;

        if (!is_dynamic(&s->dynamic->outputs[i]) || n <= s->out_memory[i].n)
            continue;
        guard_free(&s->out_memory[i]);
        if (!guard_new(&s->out_memory[i], n, 64))
            return diag_error(s->driver->diags, E_RUN, NO_LOC, "no memory for '%s', %zu bytes",
                              s->info->outputs[i].name, n);
        s->out[i] = s->out_values[i].data = s->out_memory[i].at;
    }
    return true;
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
    int32_t rc = run_with_room(s);
    if (rc == TVMCC_E_CAPACITY && s->sizes && more_room(s))
        rc = run_with_room(s);
    for (uint32_t i = 0; rc == 0 && i < was->noutputs; i++)
        if (is_dynamic(&was->outputs[i])) {
            out[i].dims = s->out_values[i].dims;
            out[i].bytes = s->out_values[i].bytes;
        }
    return rc;
}

/* ---- what was wrong with a run's sizes ---------------------------------------------------------- */

/* The dimensions of a plan's inputs, as the values of a run have them. */
typedef struct {
    Session    *s;
    const Plan *p;
    bool       *found;
    int64_t    *size; /* of each of p->symbols */
} Sizes;

static int64_t size_of(void *user, const Atom *a)
{
    const Sizes *z = user;

    for (uint32_t i = 0; i < z->p->symbols.n; i++)
        if (z->p->symbols.at[i] == a)
            return z->size[i];
    return 0;
}

/* c0 + q*dim of a dimension that no size before said; its number, or the number of them. */
static uint32_t dim_said(const Sizes *z, const Idx *x)
{
    uint32_t i = 0;

    if (x->nterms != 1 || x->t[0].coef <= 0)
        return z->p->symbols.n;
    while (i < z->p->symbols.n && (z->found[i] || z->p->symbols.at[i] != x->t[0].atom))
        i++;
    return i;
}

static Loc place_of(const Sizes *z, uint32_t input)
{
    const Array *v = array_find(z->s->given, z->s->ngiven, z->p->in[input].name);

    return v ? (Loc){.file = v->file} : NO_LOC;
}

/* `1..64`, `1..` */
static const char *bounds_text(Arena *a, const Atom *dim)
{
    return atom_is_open(dim)
               ? arena_printf(a, "%lld..", (long long)dim->lo)
               : arena_printf(a, "%lld..%lld", (long long)dim->lo, (long long)dim->hi);
}

/* False with an error: the size is none that the dimension can have. */
static bool take_size(Sizes *z, uint32_t input, uint32_t k, int64_t size, uint32_t dim)
{
    const Idx  *x = z->p->in[input].type->dims[k];
    const Atom *a = z->p->symbols.at[dim];
    int64_t     rest = size - x->c0, n = rest / x->t[0].coef;

    z->found[dim] = true;
    z->size[dim] = n;
    if (rest % x->t[0].coef == 0 && n >= a->lo && n <= a->hi)
        return true;
    return diag_error(z->s->driver->diags, E_RUN, place_of(z, input),
                      "dimension %u of input '%s' is %lld, which is no %s with %s in %s", k,
                      z->p->in[input].name, (long long)size, dim_text(z->s->c, x), a->name,
                      bounds_text(z->s->driver->arena, a));
}

/* What follows from those: `N = 3, T = 5`. */
static const char *known_text(const Sizes *z, const Idx *x)
{
    StrBuf s = strbuf(z->s->driver->arena);

    for (uint32_t i = 0; i < z->p->symbols.n; i++)
        if (idx_uses(x, z->p->symbols.at[i]))
            str_printf(&s, "%s%s = %lld", s.n ? ", " : "", z->p->symbols.at[i]->name,
                       (long long)z->size[i]);
    return s.n ? s.at : "";
}

/* The checks of the entry function (passes/lower/entry/dims.c) once more, with words. */
static bool sizes_fit(Sizes *z)
{
    const tvmcc_model_info *info = z->s->info;
    IdxEnv                  env = {.var = size_of, .user = z};

    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < z->p->nin; i++)
            for (uint32_t k = 0; k < z->p->in[i].type->n; k++) {
                const Idx *x = z->p->in[i].type->dims[k];
                int64_t    size = info->inputs[i].dims[k], want;
                uint32_t   dim = pass ? z->p->symbols.n : dim_said(z, x);

                if (!pass && dim < z->p->symbols.n && !take_size(z, i, k, size, dim))
                    return false;
                if (pass && (want = idx_eval(x, &env)) != size)
                    return diag_error(z->s->driver->diags, E_RUN, place_of(z, i),
                                      "dimension %u of input '%s' is %lld, but %s is %lld (%s)", k,
                                      z->p->in[i].name, (long long)size, dim_text(z->s->c, x),
                                      (long long)want, known_text(z, x));
            }
    return true;
}

/* The inputs are as they should be: a value of the run made something too large. */
static bool bounds_error(Session *s, const Plan *p)
{
    StrBuf text = strbuf(s->driver->arena);

    for (uint32_t i = 0; i < p->nbound; i++)
        str_printf(&text, "%s%s in %lld..%s", i ? ", " : "", p->bound[i].dim->name,
                   (long long)p->bound[i].dim->lo,
                   dim_text(s->c, atom_most(s->c->arith, p->bound[i].dim)));
    diag_error(s->driver->diags, E_RUN, NO_LOC,
               "values of the run ask for a size beyond its bounds, or for sizes that do not go "
               "together%s%s",
               text.n ? ": " : "", text.n ? text.at : "");
    if (text.n)
        diag_hint(s->driver->diags, "--dim <name>=<least>..<most> gives others");
    return false;
}

bool session_shape_error(Session *s)
{
    const Plan *p = s->compiled && !s->remote ? s->job.k.plan : NULL;
    Arena      *a = s->driver->arena;
    StrBuf      text = strbuf(a);

    if (s->dynamic && p && p->nin == s->info->ninputs) {
        Sizes z = {s, p, NEW_ARRAY(a, bool, p->symbols.n + 1),
                   NEW_ARRAY(a, int64_t, p->symbols.n + 1)};

        return sizes_fit(&z) && bounds_error(s, p);
    }
    for (uint32_t i = 0; s->dynamic && i < s->dynamic->ninputs; i++)
        if (is_dynamic(&s->dynamic->inputs[i]))
            str_printf(&text, "%s'%s' is %s", text.n ? ", " : "; ", s->info->inputs[i].name,
                       session_tensor_text(s, &s->info->inputs[i]));
    return diag_error(s->driver->diags, E_RUN, NO_LOC, "the run ended with status %d: %s%s",
                      TVMCC_E_SHAPE, tvmcc_strerror(TVMCC_E_SHAPE), text.n ? text.at : "");
}
