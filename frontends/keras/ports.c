/* What a model takes and gives: names, shapes and types of its inputs, names of its outputs. */
#include "frontends/keras/keras.h"

#include <string.h>

/* Lists were read KERAS_MAX_NESTING deep at most. */
static void list_ports(Ctx *c, const KerasArg *p, const char *key, KerasPorts *out)
{
    if (p->kind == KERAS_TENSOR)
        vec_push(c->arena, out, ((KerasPort){.name = key ? key : p->layer, .arg = p}));
    for (uint32_t i = 0; i < p->n; i++)
        list_ports(c, &p->at[i], p->at[i].name ? p->at[i].name : key, out);
}

void keras_ports(Ctx *c, const KerasArg *list, KerasPorts *out)
{
    list_ports(c, list, NULL, out);
}

/* ---- inputs ----------------------------------------------------------------------------------------- */

static const char *dtype_of(const KerasLayer *l)
{
    const json_t *x = json_object_get(l->config, "dtype");
    const char   *name = json_string_value(json_object_get(l->config, "input_dtype"));

    name = name ? name : json_string_value(x);
    name = name ? name : json_string_value(json_object_get(json_object_get(x, "config"), "name"));
    return name ? name : "float32";
}

static void shape_of(const KerasLayer *l, KerasPort *p)
{
    static const char *const names[] = {"batch_shape", "batch_input_shape", "build_input_shape"};

    for (uint32_t i = 0; i < COUNT(names) && !json_is_array(p->shape); i++) {
        const json_t *x = json_object_get(l->config, names[i]),
                     *items = json_object_get(x, "items");

        p->shape = items ? items : x;
    }
    p->shape = json_is_array(p->shape) ? p->shape : NULL;
    p->dtype = dtype_of(l);
}

/* A Sequential says the shape of its input, or its first layer does. */
static void sequential_input(Ctx *c, const KerasLayer *l, KerasPorts *out)
{
    KerasPort         p = {0};
    const KerasLayer *first = l;

    while (first->model && first->model->sequential && first->kids.n)
        first = first->kids.at[0];
    if (first->model && !first->model->sequential) {
        keras_inputs(c, first, out);
        return;
    }
    p.name = !strcmp(first->class_name, "InputLayer")
                 ? first->name
                 : intern_printf(c->strings, "%s_input", first->name);
    shape_of(first, &p);
    if (!p.shape)
        shape_of(l, &p);
    p.dtype = dtype_of(first);
    /* Of indices the type is that of the table where it is not said. */
    if (!strcmp(first->class_name, "Embedding") && !json_object_get(first->config, "input_dtype"))
        p.dtype = "float32";
    vec_push(c->arena, out, p);
}

void keras_inputs(Ctx *c, const KerasLayer *model, KerasPorts *out)
{
    if (model->model->sequential) {
        sequential_input(c, model, out);
        return;
    }
    keras_ports(c, &model->model->in, out);
    for (uint32_t i = 0; i < out->n; i++) {
        KerasPort *p = &out->at[i];

        p->name = p->arg->layer;
        shape_of(p->arg->from, p);
    }
}

bool keras_shape(const KerasPort *p, uint32_t *rank, InputDim *dims)
{
    *rank = UINT32_MAX;
    if (!p->shape)
        return true;
    if (json_array_size(p->shape) > MAX_RANK)
        return false;
    *rank = (uint32_t)json_array_size(p->shape);
    for (uint32_t i = 0; i < *rank; i++) {
        const json_t *x = json_array_get(p->shape, i);

        dims[i] = (InputDim){-1, NULL};
        if (!json_is_null(x) && (!json_int(x, &dims[i].value) || dims[i].value < 0))
            return false;
    }
    return true;
}

/* ---- outputs ---------------------------------------------------------------------------------------- */

void keras_outputs(Ctx *c, const KerasLayer *model, KerasPorts *out)
{
    Map *used = map_new(c->scratch);

    if (model->model->sequential) {
        if (model->kids.n)
            vec_push(c->arena, out, ((KerasPort){.name = model->kids.at[model->kids.n - 1]->name}));
        return;
    }
    keras_ports(c, &model->model->out, out);
    for (uint32_t i = 0; i < out->n; i++) {
        const char *name = out->at[i].name;

        for (uint32_t k = 1; map_get(used, PTR_KEY(name)); k++)
            name = intern_printf(c->strings, "%s_%u", out->at[i].name, k);
        map_put(used, PTR_KEY(name), used);
        out->at[i].name = name;
    }
}
