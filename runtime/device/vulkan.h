/* What the files of the Vulkan device share.
 *
 *   vulkan.c          which device, opening and closing it
 *   vulkan_memory.c   memory, buffers of commands, copies
 *   vulkan_program.c  programs, launches, recordings
 *   vulkan_modes.c    how programs compute with floats
 *   vulkan_matrices.c matrices that a subgroup has
 *   vulkan_timing.c   what launches take
 *   vulkan_api.h      the part of Vulkan that they call */
#ifndef TVMRT_VULKAN_H
#define TVMRT_VULKAN_H

#include "device.h"
#include "vulkan_api.h"

enum {
    STAGING_BYTES = 1 << 22,
    MAX_COMMANDS = 8, /* buffers of commands that are submitted together */
    MAX_LATER = 64,   /* downloads that have not arrived */
    PUSH_BYTES = 128
};

/* Memory of the device, or of both. */
typedef struct Memory Memory;
struct Memory {
    VkObject buffer, memory;
    uint64_t address;
    void    *host;
    Memory  *next; /* of a recording */
};

/* Bytes that lie in the staging memory when all is done. */
typedef struct {
    void  *host;
    size_t at, bytes;
} Later;

typedef struct {
    VkHandle commands;
    Memory  *tables; /* of addresses, which its kernels read */
} Recording;

typedef struct {
    DeviceState  state;
    VkHandle     instance, physical, device, queue;
    uint32_t     family, timestamp_bits;
    VkProperties properties;
    VkMemories   memories;
    VkFeatures   features;
    VkFeatures11 features11;
    VkFeatures12 features12;
    VkFloats     floats;
    bool         has_matrices, has_dots; /* that kernels ask for */
    VkObject     pool, fence, cache, layout;
    Memory      *staging;
    size_t       staged;                 /* bytes of it that copies may still use */
    VkHandle     commands[MAX_COMMANDS]; /* to be filled; nused of them are, the last may be open */
    uint32_t     nused;
    VkHandle     pending[MAX_COMMANDS]; /* what is submitted next */
    uint32_t     npending;              /* fewer than MAX_COMMANDS while none is open */
    bool         submitted;             /* ... or runs now */
    Later        later[MAX_LATER];
    uint32_t     nlater;
    VkHandle     open;      /* commands go here; NULL: to a fresh one */
    Recording   *recording; /* ... or here */
    VkObject    *queries;   /* pools of timestamps */
    uint32_t     nqueries, room;
#define FIELD(result, name, args) result(*name) args;
    VK_CALLS(FIELD)
} Vulkan;

/* ---- vulkan.c ------------------------------------------------------------------------------- */

/* TVMCC_OK for code 0, else TVMCC_E_DEVICE, with the error recorded. */
int32_t tvmrt_vk_check(Vulkan *vk, int32_t code, const char *what);
int32_t tvmrt_vk_refuse(Vulkan *vk, const char *why);
bool    tvmrt_vk_has_extensions(Vulkan *vk, uint32_t n, const char *const *names); /* all */

/* ---- vulkan_memory.c ------------------------------------------------------------------------- */

/* Of the device, or with `host` of both; NULL with an error recorded. */
int32_t tvmrt_vk_memory_new(Vulkan *vk, size_t bytes, bool host, Memory **out);
void    tvmrt_vk_memory_free(Vulkan *vk, Memory *m);
int32_t tvmrt_vk_new_commands(Vulkan *vk, uint32_t n, VkHandle *out);
/* Where commands go: of the recording, or the open ones, behind all that were given before.  Never
 * submits: what lies in the staging memory stays. */
int32_t tvmrt_vk_commands(Vulkan *vk, VkHandle *out);
int32_t tvmrt_vk_end_commands(Vulkan *vk);
/* Submits what there is and waits: the staging memory is free again, downloads have arrived. */
int32_t tvmrt_vk_finish(Vulkan *vk);
/* Before anything new is asked for: what was submitted is done. */
int32_t tvmrt_vk_ready(Vulkan *vk);
int32_t tvmrt_vk_poll(void *self);
/* Functions of tvmcc_device, as those below. */
int32_t tvmrt_vk_alloc(void *self, size_t bytes, void **memory);
void    tvmrt_vk_free(void *self, void *memory);
int32_t tvmrt_vk_upload(void *self, void *memory, size_t offset, const void *host, size_t bytes);
int32_t tvmrt_vk_download(void *self, void *host, void *memory, size_t offset, size_t bytes);
int32_t tvmrt_vk_download_later(void *self, void *host, void *memory, size_t offset, size_t bytes);
int32_t tvmrt_vk_copy(void *self, void *to, size_t to_offset, void *from, size_t from_offset,
                      size_t bytes);

/* ---- vulkan_program.c ------------------------------------------------------------------------ */

int32_t tvmrt_vk_module_load(void *self, uint32_t form, const void *code, size_t bytes,
                             const char *options, void **module);
void    tvmrt_vk_module_free(void *self, void *module);
int32_t tvmrt_vk_kernel(void *self, void *module, const char *name, void **kernel);
void    tvmrt_vk_kernel_free(void *self, void *kernel);
void    tvmrt_vk_limits(DeviceState *state, DeviceLimits *out);
int32_t tvmrt_vk_launch(void *self, void *kernel, const uint32_t grid[3], const uint32_t block[3],
                        const tvmcc_arg *args, uint32_t nargs);
int32_t tvmrt_vk_wait(void *self);
void    tvmrt_vk_recording_free(void *self, void *recording);
int32_t tvmrt_vk_record_begin(void *self);
int32_t tvmrt_vk_record_end(void *self, void **recording);
int32_t tvmrt_vk_replay(void *self, void *recording);

/* ---- vulkan_modes.c -------------------------------------------------------------------------- */

/* Modes of floats that the device has not are taken out of a module, at `to`, which has room for as
 * many words; how many stay.  0: the module is none. */
size_t tvmrt_vk_keep_modes(const VkFloats *has, const uint32_t *module, size_t n, uint32_t *to);

/* ---- vulkan_matrices.c ----------------------------------------------------------------------- */

/* Has the device matrices of 16x16 numbers of f16, whose products are sums of f32, and subgroups of
 * 32 threads?  Behind its features. */
bool tvmrt_vk_find_matrices(Vulkan *vk);
enum { SUBGROUP = 32, MATRIX_EXTENSIONS = 2, MOST_EXTENSIONS = MATRIX_EXTENSIONS + 1 };
extern const char *const tvmrt_vk_matrix_extensions[MATRIX_EXTENSIONS];

/* ---- vulkan_timing.c ------------------------------------------------------------------------- */

/* NULL, or why not. */
const char *tvmrt_vk_can_time(const Vulkan *vk);
/* Before and behind the commands of a launch. */
int32_t tvmrt_vk_begin_timed(Vulkan *vk, VkHandle at);
void    tvmrt_vk_end_timed(Vulkan *vk, VkHandle at);
int32_t tvmrt_vk_launch_times(DeviceState *state, uint32_t n, double *ns);
void    tvmrt_vk_free_times(Vulkan *vk);

#endif
