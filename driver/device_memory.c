/* --device-memory: the model's inputs and outputs lie in its device's memory, as they do in a
 * program whose own kernels make the ones and read the others. */
#include "driver/session.h"

static bool failed(Session *s, int32_t rc, const char *name, size_t bytes)
{
    return rc == TVMCC_OK || diag_error(s->driver->diags, E_RUN, NO_LOC,
                                        "no memory of the device for '%s', %zu bytes: %s", name,
                                        bytes, s->device->last_error(s->device->self));
}

/* `at`: the tensors' memory here, and then their handles there. */
static bool move(Session *s, uint32_t n, const tvmcc_tensor_info *t, void **at, bool upload)
{
    const tvmcc_device *d = s->device;

    for (uint32_t i = 0; i < n; i++) {
        void   *memory, *here = at[i];
        int32_t rc = d->alloc(d->self, t[i].bytes ? t[i].bytes : 1, &memory);

        if (!failed(s, rc, t[i].name, t[i].bytes))
            return false;
        at[i] = s->device_tensors[s->ndevice_tensors++] = memory;
        if (upload && t[i].bytes)
            rc = d->upload(d->self, memory, 0, here, t[i].bytes);
        if (!failed(s, rc, t[i].name, t[i].bytes))
            return false;
    }
    return true;
}

bool session_device_memory(Session *s)
{
    const tvmcc_model_info *m = s->info;
    uint32_t                n = m->ninputs + m->noutputs;

    if (!s->device)
        return diag_error(s->driver->diags, E_USAGE, NO_LOC,
                          "--device-memory is for models of devices, and '%s' runs on the CPU",
                          m->name);
    if (s->dynamic)
        return diag_error(s->driver->diags, E_UNSUPPORTED, NO_LOC,
                          "--device-memory: a run of '%s' decides the sizes of its tensors, which "
                          "have to be here",
                          m->name);
    tvmcc_place *places = NEW_ARRAY(s->driver->arena, tvmcc_place, n + 1);
    for (uint32_t i = 0; i < n; i++)
        places[i].kind = s->device->kind;
    s->device_tensors = NEW_ARRAY(s->driver->arena, void *, n + 1);
    if (!move(s, m->ninputs, m->inputs, s->in, true) ||
        !move(s, m->noutputs, m->outputs, s->out, false))
        return false;
    s->params.places = places;
    return true;
}

void session_free_device_memory(Session *s)
{
    for (uint32_t i = 0; i < s->ndevice_tensors; i++)
        s->device->free(s->device->self, s->device_tensors[i]);
}
