/* Attributes that forward() changes.
 *
 *     self.seen = torch.add(self.seen, x)
 *     seen = self.seen; torch.add_(seen, x)
 *
 * Nothing in an archive says which: the module is run with all as they were saved first.  Tensors
 * that it changed in place, or set to others of their type, are states then, as those of programs
 * of torch.export: the module is run again with them as inputs, and what they are at the end are
 * results NAME_out.  What else changes (numbers, lists, tensors that get another shape) is as it
 * was saved when a run begins. */
#include "frontends/pytorch/script.h"

#include <string.h>

/* ---- before a run --------------------------------------------------------------------------------- */

typedef struct {
    Script      *s;
    Map         *seen;   /* objects */
    NamedValues *params; /* states are added; NULL: to names, those that options speak of */
    Shapes      *shapes;
    VEC(const char *) names;
} Walk;

static bool take_state(Walk *w, TsObject *o, const char *name, PtTensor *t)
{
    Script     *s = w->s;
    const Expr *e;

    if (t->cells != PT_REAL)
        return error_at(s->c, E_UNSUPPORTED, s->loc,
                        "the model changes '%s', whose cells are complex or quantized",
                        t->constant);
    if (!(e = state_input(s->c, &s->im.shapes, s->loc, t->constant, t->e->type, t->e, w->params)))
        return false;
    vec_push(s->c->arena, &s->states, ((TsState){t->constant, o, name, e}));
    t->e = e;
    t->constant = NULL;
    return true;
}

static void see_option(Walk *w, const char *name)
{
    const ImportOptions *o = w->shapes->o;

    for (uint32_t i = 0; i < o->nshapes; i++)
        if (!strcmp(o->shapes[i].name, name))
            w->shapes->used[i] = true;
    if (value_given(o, name))
        vec_push(w->s->c->scratch, &w->names, name);
}

/* Objects are no deeper than the pickle that made them. */
static bool walk(Walk *w, TsObject *o)
{
    if (map_get(w->seen, PTR_KEY(o)))
        return true;
    map_put(w->seen, PTR_KEY(o), o);
    for (uint32_t i = 0; i < o->fields.n; i++) {
        const TsField *field = &o->fields.at[i];
        PtTensor      *t = field->value.kind == TS_TENSOR ? field->value.t : NULL;

        if (field->value.kind == TS_OBJECT && !walk(w, field->value.object))
            return false;
        if (!t || !t->constant)
            continue;
        if (!w->params)
            see_option(w, t->constant);
        else if (map_get(w->s->im.states, PTR_KEY(t->constant)) &&
                 !take_state(w, o, field->name, t))
            return false;
    }
    return true;
}

bool ts_take_states(Script *s, TsObject *module, NamedValues *params)
{
    Walk w = {.s = s, .seen = map_new(s->c->scratch), .params = params};

    return !map_count(s->im.states) || walk(&w, module);
}

/* Options may speak of states that are not found yet. */
bool ts_check_shapes(Script *s, TsObject *module, const NamedValues *params)
{
    Shapes   early = s->im.shapes;
    uint32_t n = early.o->nshapes;
    Walk     w = {.s = s, .seen = map_new(s->c->scratch), .shapes = &early};

    early.used = NEW_ARRAY(s->c->arena, bool, n + 1);
    memcpy(early.used, s->im.shapes.used, n * sizeof *early.used);
    walk(&w, module);
    for (uint32_t i = 0; i < params->names.n; i++)
        vec_push(s->c->scratch, &w.names, params->names.at[i]);
    return shapes_check(&early, s->loc, w.names.n, w.names.at);
}

/* ---- after it -------------------------------------------------------------------------------------- */

static const TsState *state_of(const Script *s, const TsJournal *x)
{
    for (uint32_t i = 0; i < s->states.n; i++)
        if (s->states.at[i].object == x->object && s->states.at[i].field == x->name)
            return &s->states.at[i];
    return NULL;
}

bool ts_find_states(Frame *f)
{
    Script *s = f->s;

    for (uint32_t i = 0; i < s->changed.n; i++) {
        const TsJournal *x = &s->changed.at[i];
        const TsField   *now = ts_field(x->object, x->name);
        const Expr      *e;

        if (x->was.kind != TS_TENSOR || now->value.kind != TS_TENSOR || !x->was.t->constant ||
            x->was.t->cells != PT_REAL || now->value.t->cells != PT_REAL)
            continue;
        if (!(e = ts_read(f, &now->value)))
            return false;
        if (e->type == x->was.t->e->type)
            pt_becomes_state(&s->im, x->was.t->constant);
    }
    return true;
}

bool ts_add_states(Frame *f, NamedValues *r)
{
    Script *s = f->s;

    for (uint32_t i = 0; i < s->states.n; i++) {
        const TsState *x = &s->states.at[i];
        const char    *name = state_result(s->c, x->name);
        const Expr    *e;

        f->target = name;
        if (!(e = ts_read(f, &ts_field(x->object, x->field)->value)))
            return false;
        if (e->type != x->first->type)
            return error_at(s->c, E_UNSUPPORTED, s->loc,
                            "the model keeps '%s' as %s, and makes %s of it", x->name,
                            type_text(s->c, x->first->type), type_text(s->c, e->type));
        for (uint32_t k = 0; k < r->names.n; k++)
            if (r->names.at[k] == name)
                return error_at(s->c, E_UNSUPPORTED, s->loc, "two results are called '%s'", name);
        vec_push(s->c->arena, &r->at, e);
        vec_push(s->c->arena, &r->names, name);
    }
    return true;
}

void ts_warn_changed(const Script *s)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->changed.n; i++) {
        const TsJournal *x = &s->changed.at[i];
        const char      *path = *x->object->path
                                    ? intern_printf(s->c->strings, "%s.%s", x->object->path, x->name)
                                    : x->name;

        if (state_of(s, x))
            continue;
        if (!n++)
            diag_warn(s->c->diags, W_STATE_KEPT, s->loc,
                      "the model changes '%s', which is as it was saved when the next run begins",
                      path);
        else if (n <= 8)
            diag_note(s->c->diags, s->loc, "'%s' changes, too", path);
    }
}
