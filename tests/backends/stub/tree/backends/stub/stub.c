/* A device whose programs are the names of their kernels. */
#include "backends/common/device.h"

#include "tvmcc/abi.h"

static const char *symbol(Ctx *c, const char *func)
{
    return object_symbol(c->arena, "stub_", func);
}

static bool source(Ctx *c, const TirModule *m, StrBuf *out)
{
    for (uint32_t i = 0; i < m->nfuncs; i++)
        if (m->funcs[i]->kind == FUNC_DEVICE)
            str_printf(out, "%s\n", symbol(c, m->funcs[i]->name));
    return true;
}

static const DeviceModel models[] = {{NULL, 16 * 1024, 32, 32, 0}, {0}};

static const Device stub = {
    .kind = TVMCC_DEVICE_EXT,
    .title = "Stub",
    .packages = "nothing",
    .options = "",
    .threads = 64,
    .most_threads = 64,
    .most_blocks = {65535, 65535, 65535},
    .models = models,
    .source = source,
    .symbol = symbol,
};

DEVICE_BACKEND(stub, "nothing")
