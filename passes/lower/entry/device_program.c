/* The program of a model on a device as constant data: its codes, which open offers to the device,
 * and what each kernel takes. */
#include "passes/lower/entry/device.h"

static const char *parts_of(Entry *e, const DeviceImage *image)
{
    Items all = {0};

    for (uint32_t i = 0; i < image->parts.n; i++) {
        Items bytes = {0};

        item_bytes(e, &bytes, image->parts.at[i].at, image->parts.at[i].n);
        item(e, &bytes, ABI_U8, 0); /* sources are texts */
        item_symbol(e, &all, constant(e, &bytes));
        item(e, &all, ABI_SIZE, (int64_t)image->parts.at[i].n);
    }
    return records(e, &all, "code_part");
}

static const char *codes_of(Entry *e, const DeviceCode *d)
{
    Items all = {0};

    for (uint32_t i = 0; i < d->images.n; i++) {
        const DeviceImage *image = &d->images.at[i];

        item(e, &all, ABI_U32, image->form);
        item(e, &all, ABI_U32, image->parts.n);
        item_symbol(e, &all, text_constant(e, image->target));
        item_symbol(e, &all, text_constant(e, d->options));
        item_symbol(e, &all, parts_of(e, image));
    }
    return records(e, &all, "code");
}

static const char *kernels_of(Entry *e, const DeviceCode *d)
{
    Items all = {0};

    for (uint32_t i = 0; i < d->nkernels; i++) {
        const DeviceKernel *k = &d->kernels[i];

        item_symbol(e, &all, text_constant(e, k->symbol));
        item(e, &all, ABI_U32, k->buffers);
        item(e, &all, ABI_U32, k->value_bytes);
        for (uint32_t t = 0; t < 3; t++)
            item(e, &all, ABI_U32, k->threads[t]);
        item(e, &all, ABI_U32, k->shared_bytes);
    }
    return records(e, &all, "kernel_info");
}

void define_program(Entry *e)
{
    const DeviceCode *d = code_of(e);
    Items             all = {0};

    item_sizeof(e, &all, "program");
    item(e, &all, ABI_U32, state_cells(e) - S_KERNELS);
    item(e, &all, ABI_U32, d->images.n);
    item(e, &all, ABI_U32, d->nkernels);
    item_symbol(e, &all, codes_of(e, d));
    item_symbol(e, &all, kernels_of(e, d));
    e->dev.program = records(e, &all, "program");
}
