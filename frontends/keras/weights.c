/* Whose weights are which.
 *
 * In .keras a layer's path is the model's, "layers", and its class in snake case, with a number
 * behind it if others of the class were before it; within a layer it is the attribute's name.
 * What a second model shares is stored where the first one has it.  In .h5 all weights of a layer
 * of the outermost model are one list: first those that are trained, of it and the layers inside
 * it, then the others. */
#include "frontends/keras/keras.h"

#include <string.h>

typedef struct {
    Ctx                *c;
    const char         *path; /* of the file */
    const KerasArchive *a;
    Map                *shared; /* number -> KerasLayer */
} Weights;

static Loc place(const Weights *w, const KerasLayer *l)
{
    return (Loc){w->path, l->ordinal, 0, l->name};
}

static bool add_weight(Weights *w, KerasLayer *l, const KerasSlot *s, const H5Object *o)
{
    KerasWeight k = {.name = s->name, .path = o->path};
    H5Value     v, type;

    if (!h5_dataset(o, &v))
        return false;
    if (v.kind == H5_OPAQUE && v.bits == 16 && h5_attribute(o, "dtype", &type) &&
        type.kind == H5_TEXT && type.cells == 1 && !strcmp(type.texts[0], "bfloat16"))
        v.kind = H5_BFLOAT;
    k.value = v;
    vec_push(w->c->arena, &l->weights, k);
    return true;
}

static bool missing(Weights *w, const KerasLayer *l, const char *name)
{
    if (!h5_failed(w->a->weights))
        error_at(w->c, E_IMPORT, place(w, l), "%s '%s': its weight '%s' is not in the file",
                 l->class_name, l->name, name);
    return false;
}

/* ---- by paths --------------------------------------------------------------------------------------- */

/* The group of a layer's own weights, or of an attribute of it, which once began with '_'. */
static bool find_vars(Weights *w, const char *group, const KerasSlot *s, H5Object *out)
{
    const H5Object *root = &w->a->root;
    Arena          *a = w->c->arena;

    if (!*s->path)
        return h5_find(root, arena_printf(a, "%s/vars", group), out);
    return h5_find(root, arena_printf(a, "%s/%s/vars", group, s->path), out) ||
           h5_find(root, arena_printf(a, "%s/_%s/vars", group, s->path), out);
}

static bool read_own(Weights *w, KerasLayer *l, const char *group)
{
    KerasSlots  slots = keras_slots(w->c, l->row, l->config, w->a->major);
    const char *part = NULL;
    uint32_t    i = 0;
    H5Object    vars, at;
    KerasLayer *first = l->shared ? map_get(w->shared, (uint64_t)l->shared) : NULL;

    for (uint32_t k = 0; k < slots.n; k++, i++) {
        const KerasSlot *s = &slots.at[k];

        if (part != s->path) {
            i = 0;
            part = s->path;
            if (!find_vars(w, group, s, &vars)) {
                if (first && !h5_failed(w->a->weights)) {
                    l->weights = first->weights;
                    return true;
                }
                return missing(w, l, s->name);
            }
        }
        if (!h5_find(&vars, arena_printf(w->c->arena, "%u", i), &at)) {
            if (first && !h5_failed(w->a->weights)) {
                l->weights = first->weights;
                return true;
            }
            return missing(w, l, s->name);
        }
        if (!add_weight(w, l, s, &at))
            return false;
    }
    if (l->shared && !first)
        map_put(w->shared, (uint64_t)l->shared, l);
    return true;
}

/* Configurations were read KERAS_MAX_NESTING deep at most. */
static bool read_paths(Weights *w, KerasLayer *l, const char *group)
{
    Ctx *c = w->c;
    Map *used = map_new(c->scratch);
    bool input = true; /* a Sequential's own input is not among its layers */

    if (!l->model && !read_own(w, l, group))
        return false;
    for (uint32_t i = 0; i < l->kids.n; i++) {
        KerasLayer *kid = l->kids.at[i];
        const char *snake, *at = kid->part;
        uintptr_t   n;

        if (kid->operation && !strstr(kid->written, "OpLambda"))
            continue; /* Keras does not count functions among the layers */
        if (l->model && l->model->sequential && input && !strcmp(kid->class_name, "InputLayer"))
            continue;
        input = false;
        if (l->model) {
            const char *class = keras_group_class(kid->written);

            snake = intern(c->strings, keras_snake(c->scratch, class));
            n = (uintptr_t)map_get(used, PTR_KEY(snake));
            map_put(used, PTR_KEY(snake), (void *)(n + 1));
            at = n ? arena_printf(c->arena, "layers/%s_%llu", snake, (unsigned long long)n)
                   : arena_printf(c->arena, "layers/%s", snake);
        }
        if (!read_paths(w, kid, arena_printf(c->arena, "%s/%s", group, at)))
            return false;
    }
    return true;
}

/* ---- by lists --------------------------------------------------------------------------------------- */

typedef struct {
    KerasLayer *layer;
    KerasSlot   slot;
} Wanted;
typedef VEC(Wanted) WantedList;

typedef enum { TRAINED, FIXED, BOTH } Which;

static void want_own(Weights *w, KerasLayer *l, bool fixed, WantedList *out)
{
    KerasSlots slots = keras_slots(w->c, l->row, l->config, w->a->major);

    for (uint32_t i = 0; i < slots.n; i++)
        if (slots.at[i].fixed == fixed)
            vec_push(w->c->arena, out, ((Wanted){l, slots.at[i]}));
}

/* What is not trained has its weights among the others, one layer after the other. */
static void want(Weights *w, KerasLayer *l, Which which, WantedList *out)
{
    if (which == BOTH && l->trainable) {
        want(w, l, TRAINED, out);
        want(w, l, FIXED, out);
        return;
    }
    if (which == TRAINED && !l->trainable)
        return;
    if (which == TRAINED || !l->trainable)
        want_own(w, l, false, out);
    if (which == FIXED || !l->trainable)
        want_own(w, l, true, out);
    for (uint32_t i = 0; i < l->kids.n; i++)
        want(w, l->kids.at[i], which == TRAINED ? TRAINED : l->trainable ? FIXED : BOTH, out);
}

/* An attribute of texts, which long ones have in pieces: weight_names0, weight_names1 .. */
static bool read_names(Weights *w, const H5Object *group, const char *name, TextList *out)
{
    H5Value v;

    for (uint32_t i = 0;; i++) {
        const char *at = i ? arena_printf(w->c->arena, "%s%u", name, i - 1) : name;

        if (!h5_attribute(group, at, &v)) {
            if (i == 0)
                continue;
            return !h5_failed(w->a->weights);
        }
        if (v.kind != H5_TEXT && v.cells)
            return error_at(w->c, E_PARSE_MODEL, (Loc){.file = w->path},
                            "attribute %s of '%s' is no list of names", at, group->path);
        for (uint64_t k = 0; k < v.cells; k++)
            vec_push(w->c->arena, out, v.texts[k]);
        if (i == 0)
            return true;
    }
}

static bool read_listed(Weights *w, KerasLayer *l)
{
    WantedList wanted = {0};
    TextList   names = {0};
    H5Object   group, at;

    want(w, l, TRAINED, &wanted);
    want(w, l, FIXED, &wanted);
    if (wanted.n == 0)
        return true;
    if (!h5_find(&w->a->root, l->name, &group))
        return missing(w, l, wanted.at[0].slot.name);
    if (!read_names(w, &group, "weight_names", &names))
        return false;
    if (names.n != wanted.n)
        return error_at(w->c, E_IMPORT, place(w, l),
                        "%s '%s': the file has %u weights of it, not %u", l->class_name, l->name,
                        names.n, wanted.n);
    for (uint32_t i = 0; i < names.n; i++)
        if (!h5_find(&group, names.at[i], &at))
            return missing(w, l, names.at[i]);
        else if (!add_weight(w, wanted.at[i].layer, &wanted.at[i].slot, &at))
            return false;
    return true;
}

bool keras_read_weights(Ctx *c, const char *path, const KerasArchive *a, KerasLayer *model)
{
    Weights w = {c, path, a, map_new(c->scratch)};

    if (a->paths)
        return read_paths(&w, model, "");
    for (uint32_t i = 0; i < model->kids.n; i++)
        if (!read_listed(&w, model->kids.at[i]))
            return false;
    return true;
}
