/* tensor.c: tensors with the layout of DLPack, and a checked way to run a model on them.
 *
 * Generated code takes bare pointers and trusts their shapes.  Here a caller that has tensors of
 * unknown origin finds out, before any kernel runs, whether they fit what the model was compiled
 * for.
 */
#include "tvmcc/runtime.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { MAX_TENSORS = 64, MAX_DIMS = 32 };

static size_t elem_bytes(const tvmrt_tensor *t)
{
    return ((size_t)t->dtype.bits * t->dtype.lanes + 7) / 8;
}

/* Has it dims, all of them sizes? */
static bool has_shape(const tvmrt_tensor *t)
{
    if (!t || t->ndim < 0 || (t->ndim && !t->shape))
        return false;
    for (int32_t i = 0; i < t->ndim; i++)
        if (t->shape[i] < 0)
            return false;
    return true;
}

static bool is_empty(const tvmrt_tensor *t)
{
    for (int32_t i = 0; i < t->ndim; i++)
        if (t->shape[i] == 0)
            return true;
    return false;
}

/* Bytes of the elements; false if size_t does not hold the number. */
static bool count_bytes(const tvmrt_tensor *t, size_t *bytes)
{
    *bytes = is_empty(t) ? 0 : elem_bytes(t);
    for (int32_t i = 0; *bytes && i < t->ndim; i++)
        if (__builtin_mul_overflow(*bytes, (uint64_t)t->shape[i], bytes))
            return false;
    return true;
}

size_t tvmrt_tensor_bytes(const tvmrt_tensor *t)
{
    size_t bytes;

    return has_shape(t) && count_bytes(t, &bytes) ? bytes : 0;
}

int tvmrt_tensor_contiguous(const tvmrt_tensor *t)
{
    int64_t expect = 1;

    if (!has_shape(t))
        return 0;
    if (!t->strides || is_empty(t))
        return 1;
    for (int32_t i = t->ndim; i-- > 0;) {
        if (t->shape[i] != 1 && t->strides[i] != expect)
            return 0;
        if (__builtin_mul_overflow(expect, t->shape[i], &expect))
            return 0;
    }
    return 1;
}

tvmrt_tensor tvmrt_tensor_of(const tvmcc_tensor_info *info, void *data)
{
    tvmrt_tensor t = {.data = data};

    if (!info)
        return (tvmrt_tensor){0};
    t.ndim = (int32_t)info->ndim;
    t.device.type = TVMCC_DEVICE_CPU;
    t.dtype.code = info->code;
    t.dtype.bits = info->bits;
    t.dtype.lanes = info->lanes;
    t.shape = (int64_t *)(uintptr_t)info->dims; /* never written through */
    return t;
}

/* Of a tensor on the CPU, or on a device of this kind. */
static int32_t check(const tvmrt_tensor *t, const tvmcc_tensor_info *info, uint32_t device)
{
    if (!t || !info || (!t->data && info->bytes) || (info->ndim && (!t->shape || !info->dims)))
        return TVMCC_E_NULL;
    if (t->device.type != TVMCC_DEVICE_CPU && (uint32_t)t->device.type != device)
        return TVMCC_E_DEVICE;
    if (t->dtype.code != info->code || t->dtype.bits != info->bits || t->dtype.lanes != info->lanes)
        return TVMCC_E_MISMATCH;
    if (t->ndim < 0 || (uint32_t)t->ndim != info->ndim || !tvmrt_tensor_contiguous(t))
        return TVMCC_E_SHAPE;
    for (int32_t i = 0; i < t->ndim; i++)
        if (info->dims[i] >= 0 && t->shape[i] != info->dims[i])
            return TVMCC_E_SHAPE;
    if (info->align && ((uintptr_t)t->data + t->byte_offset) % info->align)
        return TVMCC_E_ALIGN;
    return TVMCC_OK;
}

int32_t tvmrt_tensor_check(const tvmrt_tensor *t, const tvmcc_tensor_info *info)
{
    return check(t, info, TVMCC_DEVICE_CPU);
}

/* A stride along a dim of 1 goes nowhere. */
static void fill_strides(const tvmrt_tensor *t, int64_t strides[MAX_DIMS])
{
    int64_t step = 1;

    for (int32_t i = t->ndim; i-- > 0; step *= t->shape[i])
        strides[i] = t->shape[i] == 1 ? 0 : t->strides ? t->strides[i] : step;
}

static int32_t check_copy(const tvmrt_tensor *to, const tvmrt_tensor *from)
{
    if (!to || !from || (to->ndim > 0 && !to->shape) || (from->ndim > 0 && !from->shape))
        return TVMCC_E_NULL;
    if (to->device.type != TVMCC_DEVICE_CPU || from->device.type != TVMCC_DEVICE_CPU)
        return TVMCC_E_DEVICE;
    if (memcmp(&to->dtype, &from->dtype, sizeof to->dtype))
        return TVMCC_E_MISMATCH;
    if (to->ndim != from->ndim || to->ndim > MAX_DIMS || !has_shape(to) || !has_shape(from))
        return TVMCC_E_SHAPE;
    for (int32_t i = 0; i < to->ndim; i++)
        if (to->shape[i] != from->shape[i])
            return TVMCC_E_SHAPE;
    return TVMCC_OK;
}

int32_t tvmrt_tensor_copy(const tvmrt_tensor *to, const tvmrt_tensor *from)
{
    int64_t     to_strides[MAX_DIMS], from_strides[MAX_DIMS], at[MAX_DIMS] = {0};
    int32_t     rc = check_copy(to, from);
    size_t      size, bytes;
    char       *d;
    const char *s;

    if (rc)
        return rc;
    if (!count_bytes(from, &bytes))
        return TVMCC_E_SHAPE;
    if (!bytes)
        return TVMCC_OK;
    if (!to->data || !from->data)
        return TVMCC_E_NULL;
    size = elem_bytes(from);
    d = (char *)to->data + to->byte_offset;
    s = (const char *)from->data + from->byte_offset;
    if (tvmrt_tensor_contiguous(to) && tvmrt_tensor_contiguous(from)) {
        memmove(d, s, bytes);
        return TVMCC_OK;
    }
    fill_strides(to, to_strides);
    fill_strides(from, from_strides);
    for (size_t left = bytes / size; left > 0; left--) {
        memcpy(d, s, size);
        for (int32_t i = to->ndim; i-- > 0;) { /* an odometer */
            d += to_strides[i] * (int64_t)size;
            s += from_strides[i] * (int64_t)size;
            if (++at[i] < to->shape[i])
                break;
            d -= to_strides[i] * at[i] * (int64_t)size;
            s -= from_strides[i] * at[i] * (int64_t)size;
            at[i] = 0;
        }
    }
    return TVMCC_OK;
}

/* Addresses, or handles of the device's memory with what lies before the tensor. */
static int32_t gather(const tvmrt_tensor *tensors, const tvmcc_tensor_info *infos, uint32_t n,
                      uint32_t device, void *pointers[MAX_TENSORS], tvmcc_place *places)
{
    if (n && !infos)
        return TVMCC_E_NULL;
    for (uint32_t i = 0; i < n; i++) {
        const tvmrt_tensor *t = &tensors[i];
        int32_t             rc = check(t, &infos[i], device);

        if (rc)
            return rc;
        if (infos[i].flags & TVMCC_TENSOR_DYNAMIC)
            return TVMCC_E_SHAPE;
        if (t->byte_offset > SIZE_MAX)
            return TVMCC_E_SHAPE;
        places[i] = (tvmcc_place){.kind = (uint32_t)t->device.type};
        pointers[i] = t->data;
        if (t->device.type == TVMCC_DEVICE_CPU)
            pointers[i] = (char *)t->data + t->byte_offset;
        else
            places[i].offset = (size_t)t->byte_offset;
    }
    return TVMCC_OK;
}

/* params of this header, whatever the caller's was. */
static tvmcc_params params_with(const tvmcc_params *params, const tvmcc_place *places)
{
    tvmcc_params p = {0};

    memcpy(&p, params, params->struct_bytes < sizeof p ? params->struct_bytes : sizeof p);
    if (params->struct_bytes >= offsetof(tvmcc_params, places)) {
        p.struct_bytes = sizeof p;
        p.places = places;
    }
    return p;
}

/* Of a model for several targets that is open: the one that was taken. */
static const tvmcc_model_info *taken(const tvmcc_model_info *info, const tvmcc_params *params)
{
    void *const *state = params->state;

    if (info->struct_bytes < sizeof *info || !info->ntargets ||
        params->struct_bytes < offsetof(tvmcc_params, places) || !state ||
        params->state_bytes < info->state_bytes || !state[TVMCC_STATE_TARGET])
        return info;
    return state[TVMCC_STATE_TARGET];
}

int32_t tvmrt_run(const tvmcc_model_info *info, const tvmrt_tensor *inputs, uint32_t ninputs,
                  const tvmrt_tensor *outputs, uint32_t noutputs, const tvmcc_params *params)
{
    void        *in[MAX_TENSORS], *out[MAX_TENSORS];
    tvmcc_place  places[2 * MAX_TENSORS];
    tvmcc_params placed;
    int32_t      rc;
    uint32_t     device;

    if (!info || !info->run || !params || (!inputs && ninputs) || (!outputs && noutputs))
        return TVMCC_E_NULL;
    if (info->abi != TVMCC_ABI || ninputs != info->ninputs || noutputs != info->noutputs ||
        ninputs > MAX_TENSORS || noutputs > MAX_TENSORS)
        return TVMCC_E_MISMATCH;
    device = taken(info, params)->device;
    rc = gather(inputs, info->inputs, ninputs, device, in, places);
    if (!rc)
        rc = gather(outputs, info->outputs, noutputs, device, out, places + ninputs);
    if (rc)
        return rc;
    placed = params_with(params, places);
    return info->run(in, out, &placed);
}
