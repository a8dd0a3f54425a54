/* A device whose programs are the names of their kernels. */
#include "backends/common/device.h"

#include "tvmcc/abi.h"

static const Target *parse_target(Ctx *c, const char *text)
{
    return device_parse_target(c, &backend_stub, text);
}

static void list_targets(StrBuf *out)
{
    str_add(out, "stub     nothing\n");
}

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

static const DeviceModel models[] = {{NULL, 16 * 1024, 32, 32}, {0}};

static const Device stub = {
    .kind = TVMCC_DEVICE_ROCM,
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

const Backend backend_stub = {
    .name = "stub",
    .device = &stub,
    .parse_target = parse_target,
    .list_targets = list_targets,
    .device_code = device_code,
    .jit_load = device_jit_load,
    .jit_symbol = device_jit_symbol,
    .jit_free = device_jit_free,
};
