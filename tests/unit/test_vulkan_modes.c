/* Which modes of floats stay in a module for a device (runtime/device/vulkan_modes.c). */
#include "runtime/device/vulkan.h"
#include "tests/unit/check.h"

#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { F16, F32, F64 };
#define CAPABILITY(what) 2u << 16 | 17, what
#define MODE(mode, bits) 4u << 16 | 16, 9, mode, bits

/* Shader; three modes of f32, two of f64 and one of f16 too; a size of blocks; a function, whose
 * words nobody looks at. */
static const uint32_t module[] = {0x07230203,
                                  0x10500,
                                  0,
                                  10,
                                  0,
                                  CAPABILITY(1),
                                  CAPABILITY(4464),
                                  CAPABILITY(4466),
                                  CAPABILITY(4467),
                                  6u << 16 | 16,
                                  9,
                                  17,
                                  64,
                                  1,
                                  1,
                                  MODE(4459, 16),
                                  MODE(4459, 32),
                                  MODE(4459, 64),
                                  MODE(4461, 32),
                                  MODE(4461, 64),
                                  MODE(4462, 32),
                                  2u << 16 | 54,
                                  4464,
                                  CAPABILITY(4464),
                                  0,
                                  0};

/* "pzr" are the capabilities that stay, "p32 p64 z32 .." the modes. */
static const char *kept(const VkFloats *has)
{
    static const char names[] = "p?zr"; /* of 4464 and 4459, .. */
    static char       said[99];
    uint32_t          to[COUNT(module)];
    size_t            n = tvmrt_vk_keep_modes(has, module, COUNT(module), to), at = 5;
    char             *end = said;

    CHECK(n >= 5 && !memcmp(to, module, 5 * sizeof *to));
    for (; at < n && (to[at] & 0xffff) != 54; at += to[at] >> 16)
        if ((to[at] & 0xffff) == 17 && to[at + 1] != 1)
            *end++ = names[to[at + 1] - 4464];
        else if ((to[at] & 0xffff) == 16 && to[at + 2] != 17)
            end += sprintf(end, " %c%u", names[to[at + 2] - 4459], to[at + 3]);
    *end = 0;
    CHECK(n - at == 6 && !memcmp(to + at, module + COUNT(module) - 6, 6 * sizeof *to));
    return said;
}

static void test_modes(void)
{
    VkFloats has = {0};

    CHECK_STR(kept(&has), "");
    has.has[VK_NAN_PRESERVE + F32] = 1;
    CHECK_STR(kept(&has), "z z32");
    has.has[VK_NAN_PRESERVE + F64] = 1;
    has.has[VK_NAN_PRESERVE + F16] = has.has[VK_ROUND_EVEN + F64] = 1; /* of what it has not */
    CHECK_STR(kept(&has), "z z32 z64");
    has.has[VK_DENORM_PRESERVE + F32] = has.has[VK_ROUND_EVEN + F32] = 1;
    CHECK_STR(kept(&has), "pzr p32 z32 z64 r32");
    has.has[VK_DENORM_PRESERVE + F16] = 1; /* as f64, which has it not */
    CHECK_STR(kept(&has), "pzr p32 z32 z64 r32");
    has.denorm_independence = VK_INDEPENDENCE_ALL;
    CHECK_STR(kept(&has), "pzr p16 p32 z32 z64 r32");
    has.denorm_independence = has.rounding_independence = VK_INDEPENDENCE_NONE;
    CHECK_STR(kept(&has), "zr z32 z64 r32");
    has.has[VK_DENORM_PRESERVE + F64] = 1;
    CHECK_STR(kept(&has), "pzr p16 p32 p64 z32 z64 r32");
    has.denorm_independence = VK_INDEPENDENCE_32;
    CHECK_STR(kept(&has), "pzr p16 p32 p64 z32 z64 r32");
}

static void test_no_module(void)
{
    static const uint32_t stops[] = {1, 2, 3, 4, 5, 0}, ends[] = {1, 2, 3, 4, 5, 3u << 16 | 17, 1};
    uint32_t              to[8];
    VkFloats              has = {0};

    CHECK_INT(tvmrt_vk_keep_modes(&has, stops, 4, to), 0);
    CHECK_INT(tvmrt_vk_keep_modes(&has, stops, COUNT(stops), to), 0);
    CHECK_INT(tvmrt_vk_keep_modes(&has, ends, COUNT(ends), to), 0);
    CHECK_INT(tvmrt_vk_keep_modes(&has, stops, 5, to), 5);
}

int main(void)
{
    RUN(test_modes);
    RUN(test_no_module);
    return check_result();
}
