/* vulkan_modes.c: how programs of a Vulkan device compute with floats.
 *
 * A kernel's entry point asks for floats as IEEE 754 has them, in modes that a device may have or
 * not, and must not see where it has not (SPIR-V's float controls):
 *
 *     OpCapability DenormPreserve               subnormal numbers are not taken for 0
 *     OpCapability SignedZeroInfNanPreserve     nor is it assumed that there is no NaN
 *     OpCapability RoundingModeRTE              sums and products are rounded to nearest
 *     OpExecutionMode %3 DenormPreserve 32      .. of f32
 */
#include "vulkan.h"

#include <string.h>

enum { OP_EXECUTION_MODE = 16, OP_CAPABILITY = 17, OP_FUNCTION = 54, HEAD = 5, MODES = 3 };

static const struct {
    uint32_t mode, capability, place;
} modes[MODES] = {
    {4459, 4464, VK_DENORM_PRESERVE}, {4461, 4466, VK_NAN_PRESERVE}, {4462, 4467, VK_ROUND_EVEN}};

static uint32_t op_of(uint32_t word)
{
    return word & 0xffff;
}

/* Widths, each a bit, of which an instruction asks for mode i. */
static uint32_t asks_for(const uint32_t *w, uint32_t i)
{
    return op_of(*w) == OP_EXECUTION_MODE && *w >> 16 == 4 && w[2] == modes[i].mode ? w[3] : 0;
}

static uint32_t widths_of(const VkFloats *has, uint32_t i)
{
    const uint32_t *at = has->has + modes[i].place;

    return (at[0] ? 16 : 0) | (at[1] ? 32 : 0) | (at[2] ? 64 : 0);
}

/* Widths that must have the same mode: none of them has it unless all that are asked for may. */
static uint32_t alike(const VkFloats *has, uint32_t i)
{
    const int32_t independence = modes[i].place == VK_DENORM_PRESERVE ? has->denorm_independence
                                 : modes[i].place == VK_ROUND_EVEN    ? has->rounding_independence
                                                                      : VK_INDEPENDENCE_ALL;

    return independence == VK_INDEPENDENCE_NONE ? 16 | 32 | 64
           : independence == VK_INDEPENDENCE_32 ? 16 | 64
                                                : 0;
}

static bool stays(const uint32_t *w, const uint32_t kept[MODES])
{
    for (uint32_t i = 0; i < MODES; i++) {
        uint32_t asked = asks_for(w, i);

        if ((asked & ~kept[i]) || (op_of(*w) == OP_CAPABILITY && *w >> 16 == 2 &&
                                   w[1] == modes[i].capability && !kept[i]))
            return false;
    }
    return true;
}

size_t tvmrt_vk_keep_modes(const VkFloats *has, const uint32_t *module, size_t n, uint32_t *to)
{
    uint32_t asked[MODES] = {0}, kept[MODES];
    size_t   end = HEAD, m = HEAD;

    if (n < HEAD)
        return 0;
    for (; end < n && op_of(module[end]) != OP_FUNCTION; end += module[end] >> 16) {
        if (!(module[end] >> 16) || module[end] >> 16 > n - end)
            return 0;
        for (uint32_t i = 0; i < MODES; i++)
            asked[i] |= asks_for(module + end, i);
    }
    for (uint32_t i = 0; i < MODES; i++) {
        kept[i] = asked[i] & widths_of(has, i);
        if ((asked[i] ^ kept[i]) & alike(has, i))
            kept[i] &= ~alike(has, i);
    }
    memcpy(to, module, HEAD * sizeof *to);
    for (size_t at = HEAD, size; at < end; at += size) {
        size = module[at] >> 16;
        if (stays(module + at, kept)) {
            memcpy(to + m, module + at, size * sizeof *to);
            m += size;
        }
    }
    memcpy(to + m, module + end, (n - end) * sizeof *to);
    return m + n - end;
}
