/* The kernels of a plan: a module for each, which is what drivers load, or all of them in one as
 * text for people.  A module is written sooner than a hash of its kernel would find it in the cache
 * (0.6 to 1.2 ms), so none is kept there. */
#include "backends/vulkan/vulkan.h"

#include "tvmcc/abi.h"

bool vulkan_source(Ctx *c, const TirModule *m, StrBuf *out)
{
    bool matrices = false;

    for (uint32_t i = 0; i < m->nfuncs; i++)
        matrices = matrices || (m->funcs[i]->kind == FUNC_DEVICE && uses_matrices(m->funcs[i]));
    Spirv *s = spv_new(c, matrices);
    for (uint32_t i = 0; i < m->nfuncs; i++)
        if (m->funcs[i]->kind == FUNC_DEVICE && !vulkan_function(s, m->funcs[i]))
            return false;
    spv_text(c, spv_bytes(s), out);
    return true;
}

bool vulkan_images(Ctx *c, const TirModule *m, const Target *t, const CodegenOptions *o,
                   DeviceImages *out)
{
    DeviceImage image = {.form = TVMCC_CODE_BINARY, .target = ""};
    VEC(Bytes) parts = {0};

    (void)t, (void)o; /* one SPIR-V is for all */
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        Spirv *s;

        if (m->funcs[i]->kind != FUNC_DEVICE)
            continue;
        if (!vulkan_function(s = spv_new(c, uses_matrices(m->funcs[i])), m->funcs[i]))
            return false;
        vec_push(c->arena, &parts, spv_bytes(s));
    }
    image.parts = (BytesList){parts.n, parts.at};
    vec_push(c->arena, out, image);
    return true;
}
