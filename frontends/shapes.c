/* The shapes of a model's inputs: what the model says, the user's --shape and --dim, and defaults.
 *
 * A size given by --shape wins, over the model's own with a warning.  A name that dimensions share
 * has one value, or is one symbolic dimension.  Names that exporters make up for what they do not
 * know ("?", "unk__1") bind nothing; such a dimension is called by its place, "x.0".  Only a batch
 * that leads becomes 1 by itself.  All that is missing or misspelt is said at once. */
#include "frontends/common.h"

#include <string.h>

/* A symbolic dimension; names that are one in text ("a b", "a_b") are told apart. */
static const Idx *new_dim(Shapes *s, const char *name, int64_t lo, int64_t hi)
{
    const Idx *x = dim_var(s->c, name, lo, hi);

    for (uint32_t i = 0; lo < hi && i < s->dims.n; i++)
        if (s->dims.at[i].value == x && strcmp(s->dims.at[i].name, name) != 0)
            return new_dim(s, arena_printf(s->c->arena, "%s_", name), lo, hi);
    return x;
}

Shapes shapes_new(Ctx *c, const ImportOptions *o)
{
    Shapes s = {.c = c,
                .o = o,
                .used = NEW_ARRAY(c->arena, bool, o->nshapes + 1),
                .used_dims = NEW_ARRAY(c->arena, bool, o->ndims + 1),
                .later = NEW_ARRAY(c->arena, bool, o->ndims + 1),
                .decided = atomset_new(c->arena)};

    for (uint32_t i = 0; i < o->ndims; i++) {
        const ImportDim *d = &o->dims[i];
        KnownDim         k = {d->name, new_dim(&s, d->name, d->lo, d->hi)};

        vec_push(c->arena, &s.dims, k);
    }
    return s;
}

/* ---- names ------------------------------------------------------------------------------------- */

/* "unk__12", "x_dynamic_axes_1": what stands before a number that was counted up. */
static bool counted(const char *name, const char *word)
{
    const char *at = strstr(name, word);

    return at && at[strlen(word)] && !at[strlen(word) + strspn(at + strlen(word), "0123456789")];
}

bool shapes_placeholder(const char *name)
{
    static const char *const words[] = {"?",    "*",    "-",       "_",      "None",
                                        "none", "null", "unknown", "dynamic"};

    if (!name || !name[strspn(name, " ")])
        return true;
    for (uint32_t i = 0; i < COUNT(words); i++)
        if (!strcmp(name, words[i]))
            return true;
    return !name[strspn(name, "+-0123456789")] || counted(name, "unk__") ||
           counted(name, "_dynamic_axes_");
}

/* Dimension 0 of several that is not named otherwise, or one that says it is the batch. */
static bool is_batch(uint32_t i, uint32_t ndim, const char *name)
{
    static const char *const words[] = {"N", "n", "B", "b", "bs", "BS"};

    if (shapes_placeholder(name))
        return i == 0 && ndim > 1;
    for (uint32_t k = 0; i == 0 && k < COUNT(words); k++)
        if (!strcmp(name, words[k]))
            return true;
    return strcasestr(name, "batch") != NULL;
}

/* The first s->o->ndims are the user's. */
static const KnownDim *find_dim(Shapes *s, const char *name)
{
    for (uint32_t i = 0; name && i < s->dims.n; i++) {
        if (strcmp(s->dims.at[i].name, name) != 0)
            continue;
        if (i < s->o->ndims)
            s->used_dims[i] = true;
        return &s->dims.at[i];
    }
    return NULL;
}

/* From now on the dimension `name` is v, unless it is something already. */
static void bind_dim(Shapes *s, const char *name, const Idx *v)
{
    if (!shapes_placeholder(name) && !find_dim(s, name))
        vec_push(s->c->arena, &s->dims, ((KnownDim){name, v}));
}

static const Idx *dim_by_name(void *user, const char *name, size_t n)
{
    Shapes         *s = user;
    const KnownDim *d = find_dim(s, intern_n(s->c->strings, name, n));

    return d ? d->value : NULL;
}

/* "N", "2*N+1": a form over dimensions that are known; NULL: it is none. */
static const Idx *form_of(Shapes *s, const char *text)
{
    IdxParser   how = {.name = dim_by_name, .user = s};
    const char *at = text;
    const Idx  *x = idx_parse(s->c->arith, &at, &how);

    return x && !*at ? x : NULL;
}

const Idx *shapes_most(const Shapes *s, const Idx *size)
{
    Arith *A = s->c->arith;

    if (idx_is_open(size))
        size = idx_most(A, size, s->decided);
    return idx_is_open(size) ? size : idx_const(A, size->hi);
}

/* What --dim says of dimension i of an input: by its name, by its place, or of all that are left.
 */
static const Idx *dim_given(Shapes *s, const char *input, uint32_t i, const char *name)
{
    const char     *place = intern_printf(s->c->strings, "%s.%u", input, i);
    const KnownDim *d = shapes_placeholder(name) ? NULL : find_dim(s, name);
    const Idx      *form;

    if (d || (d = find_dim(s, place)))
        return d->value;
    if (!shapes_placeholder(name) && name[strcspn(name, "+-*/%")] && (form = form_of(s, name)))
        return form; /* as exporters write what they know */
    for (uint32_t k = 0; k < s->o->ndims; k++) {
        const ImportDim *all = &s->o->dims[k];

        if (strcmp(all->name, "*") != 0)
            continue;
        s->used_dims[k] = true;
        return new_dim(s, shapes_placeholder(name) ? place : name, all->lo, all->hi);
    }
    return NULL;
}

/* The shape given for an input; one without a name is for the first input that asks. */
static const ImportShape *find_shape(Shapes *s, const char *input)
{
    for (uint32_t i = 0; i < s->o->nshapes; i++) {
        const ImportShape *g = &s->o->shapes[i];

        if (*g->name ? strcmp(g->name, input) != 0 : s->used[i])
            continue;
        s->used[i] = true;
        return g;
    }
    return NULL;
}

DType shapes_dtype(const Shapes *s, const char *input, DType fallback)
{
    for (uint32_t i = 0; i < s->o->nshapes; i++) {
        const ImportShape *g = &s->o->shapes[i];

        if (g->typed && (!*g->name || !strcmp(g->name, input)))
            return g->dtype;
    }
    return fallback;
}

/* The shape is that of values for a run, and --dim gives the dimension bounds. */
static bool left_to_run(Shapes *s, const ImportShape *given, uint32_t i, const InputDim *dim)
{
    const Idx *d =
        given->from_values && dim->value < 0 ? dim_given(s, given->name, i, dim->name) : NULL;

    return d && !idx_is_const(d, NULL);
}

void shapes_see(Shapes *s, const char *input, uint32_t ndim, const InputDim *dims)
{
    const ImportShape *given = NULL;

    vec_push(s->c->arena, &s->inputs, input);
    if (ndim != UINT32_MAX && ndim > MAX_RANK)
        return;
    for (uint32_t i = 0; i < s->o->nshapes; i++)
        if (!strcmp(s->o->shapes[i].name, input))
            given = &s->o->shapes[i];
    for (uint32_t i = 0; ndim != UINT32_MAX && i < ndim; i++) {
        if (dims[i].name && *dims[i].name)
            vec_push(s->c->arena, &s->names, dims[i].name);
        if (given && given->ndim == ndim && given->dims[i] >= 0 &&
            !left_to_run(s, given, i, &dims[i]))
            bind_dim(s, dims[i].name, idx_const(s->c->arith, given->dims[i]));
    }
}

/* ---- one input --------------------------------------------------------------------------------- */

/* " ('T')" */
static const char *in_brackets(Shapes *s, const char *name)
{
    return name && *name ? arena_printf(s->c->arena, " ('%s')", name) : "";
}

/* What the user gives for a dimension that is something else already. */
static void overridden(Shapes *s, Loc loc, const char *input, uint32_t i, const char *name,
                       const Idx *was, const Idx *v)
{
    diag_warn(s->c->diags, W_SHAPE_OVERRIDE, loc,
              "dimension %u%s of input '%s' is %s%s; the shape given makes it %s", i,
              in_brackets(s, name), input, dim_text(s->c, was),
              name ? " elsewhere" : " in the model", dim_text(s->c, v));
}

/* What --shape says of dimension i: a number, or a form over dimensions that --dim declares; true
 * with NULL: nothing. */
static bool size_given(Shapes *s, Loc loc, const ImportShape *given, const char *input, uint32_t i,
                       const Idx **out)
{
    const char *text = given && given->forms ? given->forms[i] : NULL;

    *out = text                           ? form_of(s, text)
           : given && given->dims[i] >= 0 ? idx_const(s->c->arith, given->dims[i])
                                          : NULL;
    if (!text || *out)
        return true;
    error_at(s->c, E_DIM, loc, "dimension %u of the shape given for input '%s' is '%s'", i, input,
             text);
    text += strcspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz");
    diag_hint(s->c->diags, "its names are to be declared: --dim %.*s=16, or with bounds, =1..64",
              (int)strcspn(text, "+-*/%() "), text);
    return false;
}

const Type *shapes_input(Shapes *s, Loc loc, const char *input, DType t, uint32_t ndim,
                         const InputDim *dims)
{
    Ctx               *c = s->c;
    const ImportShape *given = find_shape(s, input);
    const Idx         *out[MAX_RANK];
    int64_t            known[MAX_RANK], n = 1;
    bool               any = ndim == UINT32_MAX;
    uint32_t           before = s->missing.n;

    if (any && !given) {
        error_at(c, E_DIM, loc, "the model does not say the shape of input '%s'", input);
        diag_hint(c->diags, "give it: --shape '%s:[1,..]'", input);
        return NULL;
    }
    if (given && given->typed && !given->from_values && !dtype_eq(given->dtype, t))
        return error_at(c, E_DIM, loc,
                        "the shape given for input '%s' is of %s; the model's is of %s", input,
                        dtype_text(c, given->dtype), dtype_text(c, t));
    if (any)
        ndim = given->ndim;
    if (ndim > MAX_RANK)
        return error_at(c, E_UNSUPPORTED, loc, "input '%s' has %u dimensions, more than %d", input,
                        ndim, MAX_RANK);
    if (given && given->ndim != ndim)
        return error_at(c, E_DIM, loc, "the shape given for input '%s' has %u dimensions, not %u",
                        input, given->ndim, ndim);
    for (uint32_t i = 0; i < ndim; i++) {
        const char *name = any ? NULL : dims[i].name;
        const Idx  *fixed = any || dims[i].value < 0 ? NULL : idx_const(c->arith, dims[i].value);
        const Idx  *d = fixed ? NULL : dim_given(s, input, i, name), *user;

        if (!size_given(s, loc, given, input, i, &user))
            return NULL;
        if (user && !any && left_to_run(s, given, i, &dims[i]))
            user = NULL;
        out[i] = user ? user : fixed ? fixed : d;
        if (out[i] && out[i] != fixed && (out[i]->lo < 0 || out[i]->hi < 1) &&
            !(user && given->from_values)) {
            error_at(c, E_DIM, loc, "dimension %u of input '%s' is %s: it would be %s", i, input,
                     dim_text(s->c, out[i]), out[i]->lo < 0 ? "negative" : "empty");
            diag_hint(c->diags, "the shape of an input has sizes from 1, or bounds from 0");
            return NULL;
        }
        if (user && fixed && user != fixed) {
            s->reshaped = true;
            overridden(s, loc, input, i, NULL, fixed, user);
        } else if (user && d && d != user) {
            overridden(s, loc, input, i, name, d, user);
        } else if (!out[i] && is_batch(i, ndim, name)) {
            out[i] = idx_const(c->arith, 1);
            diag_warn(c->diags, W_DIM_DEFAULT, loc,
                      "dimension %u%s of input '%s' is not known: 1 is taken", i,
                      in_brackets(s, name), input);
        }
        known[i] = out[i] ? out[i]->hi : -1;
        if (!out[i]) {
            vec_push(c->arena, &s->missing, ((MissingDim){input, name, i, {0}}));
            continue;
        }
        bind_dim(s, name, out[i]);
        if (!checked_mul(n, idx_usual(out[i]), &n) || n > MAX_ELEMS)
            return error_at(c, E_DIM, loc, "input '%s' is too large", input);
    }
    for (uint32_t k = before; k < s->missing.n; k++)
        s->missing.at[k].shape = ints_dup(c, known, ndim);
    return s->missing.n == before ? type_tensor(c, t, ndim, out) : NULL;
}

/* ---- what is missing or misspelt ---------------------------------------------------------------- */

/* The options that would do: a --dim for each name, a --shape for each input without. */
static const char *options_text(Shapes *s)
{
    StrBuf t = strbuf(s->c->arena);

    for (uint32_t i = 0; i < s->missing.n; i++) {
        const MissingDim *m = &s->missing.at[i];
        bool              named = !shapes_placeholder(m->name), had = false;

        for (uint32_t k = 0; k < i; k++) {
            const MissingDim *o = &s->missing.at[k];

            had |= named ? !shapes_placeholder(o->name) && !strcmp(o->name, m->name)
                         : shapes_placeholder(o->name) && !strcmp(o->input, m->input);
        }
        if (had)
            continue;
        str_add(&t, t.n ? " " : "");
        if (named) {
            str_printf(&t, "--dim %s=16", m->name);
            continue;
        }
        str_printf(&t, "--shape '%s:[", m->input);
        for (uint32_t k = 0; k < m->shape.n; k++)
            if (m->shape.at[k] < 0)
                str_printf(&t, "%s..", k ? "," : "");
            else
                str_printf(&t, "%s%lld", k ? "," : "", (long long)m->shape.at[k]);
        str_add(&t, "]'");
    }
    return t.at;
}

static bool check_missing(Shapes *s, Loc loc)
{
    StrBuf t = strbuf(s->c->arena);

    if (!s->missing.n)
        return true;
    for (uint32_t i = 0; i < s->missing.n; i++) {
        const MissingDim *m = &s->missing.at[i];

        str_printf(&t, "%s%u%s of input '%s'", i ? ", " : "", m->at, in_brackets(s, m->name),
                   m->input);
    }
    if (s->missing.n == 1)
        error_at(s->c, E_DIM, loc, "dimension %s has no value", t.at);
    else
        error_at(s->c, E_DIM, loc, "%u dimensions have no value: %s", s->missing.n, t.at);
    diag_hint(s->c->diags, "give %s: %s", s->missing.n == 1 ? "it" : "them", options_text(s));
    return false;
}

/* "its inputs are 'x', 'z'", or what was meant. */
static void hint_names(Ctx *c, const char *word, const char *what, uint32_t n,
                       const char *const *names)
{
    const char *near = str_closest(word, names, n);
    StrBuf      t = strbuf(c->arena);
    uint32_t    many = 0;

    for (uint32_t i = 0; i < n; i++) {
        bool had = false;

        for (uint32_t k = 0; k < i; k++)
            had |= !strcmp(names[k], names[i]);
        if (!had && many++ < 8)
            str_printf(&t, "%s'%s'", t.n ? ", " : "", names[i]);
    }
    if (near)
        diag_hint(c->diags, "did you mean '%s'?", near);
    else if (many)
        diag_hint(c->diags, "its %s%s %s %s%s", what, many > 1 ? "s" : "", many > 1 ? "are" : "is",
                  t.at, many > 8 ? ", .." : "");
    else
        diag_hint(c->diags, "it has no %ss", what);
}

static bool is_among(const char *name, uint32_t n, const char *const *names)
{
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

static bool check_used(Shapes *s, Loc loc, uint32_t n, const char *const *inputs)
{
    bool ok = true;

    for (uint32_t i = 0; i < s->o->nvalues; i++) {
        const char *name = s->o->values[i].name;

        if (is_among(name, n, inputs) || is_among(name, s->inputs.n, s->inputs.at))
            continue;
        ok = error_at(s->c, E_DIM, loc, "the model has no input '%s'", name);
        hint_names(s->c, name, "input", n, inputs);
    }
    for (uint32_t i = 0; i < s->o->nshapes; i++) {
        const char *name = s->o->shapes[i].name;

        if (s->used[i])
            continue;
        ok = error_at(s->c, E_DIM, loc, "the model has no input '%s'", name);
        hint_names(s->c, name, "input", n, inputs);
    }
    return ok;
}

bool shapes_given(Shapes *s, const char *name, int64_t *lo, int64_t *hi)
{
    for (uint32_t i = 0; i < s->o->ndims; i++) {
        if (strcmp(s->o->dims[i].name, name) != 0)
            continue;
        s->used_dims[i] = true;
        *lo = s->o->dims[i].lo;
        *hi = s->o->dims[i].hi;
        return true;
    }
    return false;
}

/* `all`: also those of what nodes make. */
static bool check_dims(Shapes *s, Loc loc, bool all)
{
    bool ok = true;

    for (uint32_t i = 0; i < s->o->ndims; i++) {
        if (s->used_dims[i] || (!all && s->later[i]) || !strcmp(s->o->dims[i].name, "*"))
            continue;
        ok = error_at(s->c, E_DIM, loc, "the model has no dimension '%s'", s->o->dims[i].name);
        hint_names(s->c, s->o->dims[i].name, "named dimension", s->names.n, s->names.at);
    }
    return ok;
}

void shapes_bound(Shapes *s, Loc loc, const char *name, int64_t lo, int64_t hi)
{
    const KnownDim *d = find_dim(s, name);

    if (!d && hi <= MAX_ELEMS && lo <= hi)
        bind_dim(s, name, new_dim(s, name, lo, hi));
    else if (d && (d->value->lo < lo || d->value->hi > hi))
        diag_warn(s->c->diags, W_SHAPE_OVERRIDE, loc,
                  "dimension '%s' is %s; the model was made for %s", name, dim_text(s->c, d->value),
                  hi <= MAX_ELEMS
                      ? arena_printf(s->c->arena, "%lld to %lld", (long long)lo, (long long)hi)
                      : arena_printf(s->c->arena, "%lld and more", (long long)lo));
}

bool shapes_check_dims(Shapes *s, Loc loc)
{
    return check_dims(s, loc, true);
}

bool shapes_check(Shapes *s, Loc loc, uint32_t n, const char *const *inputs)
{
    bool used = check_used(s, loc, n, inputs);

    used = check_dims(s, loc, s->missing.n > 0) && used;
    return check_missing(s, loc) && used;
}

bool shapes_check_module(Ctx *c, const Module *m, const ImportOptions *o, Loc loc)
{
    const Expr *f = module_func(m, "main");
    Shapes      s = shapes_new(c, o);
    VEC(const char *) names = {0};

    for (uint32_t i = 0; f && i < func_nparams(f); i++) {
        const Expr        *x = func_param(f, i);
        const ImportShape *given = find_shape(&s, x->u.var.name);

        vec_push(c->arena, &names, x->u.var.name);
        if (!given)
            continue;
        if (x->type->kind != TYPE_TENSOR || given->ndim != x->type->n)
            return error_at(c, E_DIM, loc, "the shape given for input '%s' does not fit %s",
                            x->u.var.name, type_text(c, x->type));
        for (uint32_t k = 0; k < given->ndim; k++) {
            int64_t v;

            if (given->forms && given->forms[k] &&
                strcmp(given->forms[k], dim_text(c, x->type->dims[k])) != 0)
                return error_at(c, E_DIM, loc, "dimension %u of input '%s' is %s, not '%s'", k,
                                x->u.var.name, dim_text(c, x->type->dims[k]), given->forms[k]);
            if (given->dims[k] >= 0 && type_dim(x->type, k, &v) && v != given->dims[k])
                return error_at(c, E_DIM, loc, "dimension %u of input '%s' is %lld, not %lld", k,
                                x->u.var.name, (long long)v, (long long)given->dims[k]);
        }
    }
    return check_used(&s, loc, names.n, names.at) && shapes_check_dims(&s, loc);
}
