/* runtime.h: load and run compiled models.  Small, C11, optional: a model runs without it.
 *
 *   thread.c   a pool of threads whose `launch` and `barrier` go into tvmcc_params
 *   tensor.c   tensors with the layout of DLPack, checked against a model's info
 *   load.c     opens a shared library, an unpacked archive or a plain .tar
 *   device/    tables of functions for devices; drivers are opened at run time
 *
 * Memory for all of it comes from the caller.  Functions that can fail return a code of abi.h.  Any
 * pointer to one of these structs may be NULL: TVMCC_E_NULL where there is a code to return, else
 * nothing, 0 or NULL.
 */
#ifndef TVMCC_RUNTIME_H
#define TVMCC_RUNTIME_H

#include "tvmcc/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- thread.c: the pool ------------------------------------------------------------------- */

typedef struct tvmrt_pool tvmrt_pool;

/* A pool for `threads` parts: the thread that launches is one of them.  Its memory is the caller's:
 * tvmrt_pool_bytes(threads) bytes, aligned to 64.  NULL if memory or threads cannot be had. */
size_t      tvmrt_pool_bytes(uint32_t threads);
tvmrt_pool *tvmrt_pool_new(void *memory, size_t bytes, uint32_t threads);
void        tvmrt_pool_free(tvmrt_pool *pool); /* ends the threads; the memory stays the caller's */
uint32_t    tvmrt_pool_threads(const tvmrt_pool *pool); /* 1 without a pool */
/* Sets threads, launch, barrier and user; without a pool to those of one thread. */
void tvmrt_pool_use(tvmrt_pool *pool, tvmcc_params *params);

/* The functions behind tvmcc_params: `pool` is a tvmrt_pool.  A launch calls fn(ctx, part, n) for
 * all parts below n, where n is `parts` or less: threads that sleep, or whose processor is taken,
 * are not waited for longer than they could save, judged by what earlier launches of fn took.  A
 * launch from a second thread waits for the first to end; a launch from inside a part would wait
 * for ever.  More parts than threads: TVMCC_E_MISMATCH. fork takes no threads along.  In the child
 * a launch calls fn(ctx, 0, 1) on the calling thread, so that models run, on one thread, and
 * tvmrt_pool_free does nothing; for threads the child makes a pool of its own, in other memory. */
int32_t tvmrt_launch(void *pool, tvmcc_part_fn fn, void *ctx, uint32_t parts);
void    tvmrt_barrier(void *pool, uint32_t part);

/* How many threads the machine gives this process (affinity respected), at least 1. */
uint32_t tvmrt_cpu_count(void);

/* ---- tensor.c: tensors ------------------------------------------------------------------------
 */

/* The layout of DLTensor (DLPack 1.1), so that arrays come and go without a copy.  `data` of one on
 * a device is what the device has for its memory: an address, a cl_mem, an MTLBuffer. */
typedef struct tvmrt_tensor {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t ndim;
    struct {
        uint8_t  code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: row-major without gaps */
    uint64_t byte_offset;
} tvmrt_tensor;

/* Bytes of the elements when stored without gaps, 0 on overflow, a negative dim or no shape. */
size_t tvmrt_tensor_bytes(const tvmrt_tensor *t);
int    tvmrt_tensor_contiguous(const tvmrt_tensor *t);
/* A CPU tensor over `data` that looks like input or output `info`; shape points into info. */
tvmrt_tensor tvmrt_tensor_of(const tvmcc_tensor_info *info, void *data);
/* 0 if `t` can be passed where `info` is asked for, else the code a run would give. */
int32_t tvmrt_tensor_check(const tvmrt_tensor *t, const tvmcc_tensor_info *info);
/* Copies the elements of equal shapes and types in the CPU's memory, whatever their strides. */
int32_t tvmrt_tensor_copy(const tvmrt_tensor *to, const tvmrt_tensor *from);

/* Checks all tensors, then runs.  Static shapes, at most 64 tensors each way, in the CPU's memory
 * or in that of the device on which the model is open; device.id is the caller's word for which
 * one. */
int32_t tvmrt_run(const tvmcc_model_info *info, const tvmrt_tensor *inputs, uint32_t ninputs,
                  const tvmrt_tensor *outputs, uint32_t noutputs, const tvmcc_params *params);

/* ---- load.c: models -----------------------------------------------------------------------------
 */

typedef struct tvmrt_model {
    const tvmcc_model_info *info;
    const void             *weights; /* NULL when they are in the object */
    size_t                  weights_bytes;
    void                   *handle, *mapping; /* the loader's own */
    size_t                  mapping_bytes;
    char                    error[240]; /* why it failed */
} tvmrt_model;

/* `path` is a shared library, a directory with an unpacked archive, or a plain .tar of one.
 * `name` is the entry name; NULL: taken from lib<name>.so, which must then be the only one for
 * this machine.  A weights file is mapped when the model asks for one: share/<name>/<name>.weights
 * of the archive, or <name>.weights beside the library. */
int32_t tvmrt_model_open(tvmrt_model *model, const char *path, const char *name);
void    tvmrt_model_close(tvmrt_model *model);
/* How many shape buckets a model has, 0 for none, and the first that holds these sizes of its
 * dimensions (info->bucket_dims), a model of its own; NULL if none does. */
uint32_t                tvmrt_buckets(const tvmcc_model_info *info);
const tvmcc_model_info *tvmrt_bucket(const tvmcc_model_info *info, const int64_t *dims);
/* Bytes of arena for that many threads; SIZE_MAX where size_t does not hold the number. */
size_t tvmrt_arena_bytes(const tvmcc_model_info *info, uint32_t threads);
/* Of a model whose arena depends on the dimensions of a run; NULL: it does not. */
const tvmcc_size_info *tvmrt_sizes(const tvmrt_model *model);
/* Bytes of arena for a run with these inputs, of which only the dims are read, or the code that it
 * would end with. */
int64_t tvmrt_run_bytes(const tvmcc_size_info *sizes, const void *const *inputs, uint32_t threads);

/* ---- device/ ------------------------------------------------------------------------------ */

/* The CPU's memory as a device: no modules. */
const tvmcc_device *tvmrt_cpu_device(void);

/* The first device of a kind (TVMCC_DEVICE_x of abi.h), GPUs before others; its library is opened
 * at run time.  `memory` is the caller's: tvmrt_device_bytes(kind) bytes, aligned to 16; 0: this
 * runtime drives no such device.  NULL with the reason in `why` if there is none. */
size_t              tvmrt_device_bytes(uint32_t kind);
const tvmcc_device *tvmrt_device_open(uint32_t kind, void *memory, size_t bytes, const char **why);
void                tvmrt_device_close(const tvmcc_device *device);

enum { TVMRT_FIRST_DEVICE = 0xffff };

/* Which device, and what of it is the caller's and stays so.  An OpenCL queue without a context
 * brings its own; either is enough to say which device it is. */
typedef struct tvmrt_device_options {
    uint32_t    struct_bytes; /* sizeof(tvmrt_device_options) */
    uint32_t    number;       /* as tvmrt_devices counts them; TVMRT_FIRST_DEVICE: as above */
    void       *context;      /* CUcontext, cl_context; NULL: the device's primary or an own one */
    void       *stream;       /* CUstream, cl_command_queue (in order); NULL: one of its own */
    const char *name;         /* NULL, or a part of its name or its maker's, in any case */
    size_t      least_memory; /* bytes that it has to have */
    /* 1: it has to tell what launches take, as below, which takes time; a stream of the caller's
     * has to be of OpenCL and made with CL_QUEUE_PROFILING_ENABLE. */
    uint32_t timing;
    uint32_t reserved; /* 0 */
} tvmrt_device_options;

/* tvmrt_device_open with a choice; `options` NULL: none. */
const tvmcc_device *tvmrt_device_open_with(uint32_t kind, const tvmrt_device_options *options,
                                           void *memory, size_t bytes, const char **why);

enum { TVMRT_CARD = 0, TVMRT_CHIP = 1, TVMRT_NO_GPU = 2 };

typedef struct tvmrt_device_info {
    uint32_t kind, number;
    uint32_t type; /* a GPU with memory of its own, one that shares the CPU's, none (a CPU) */
    char     name[128], maker[64];
    uint64_t memory_bytes; /* 0: unknown */
} tvmrt_device_info;

/* The devices of a kind, 0: of all kinds.  Fills in `n` at most and gives their number; 0 with the
 * reason in `why`. */
uint32_t tvmrt_devices(uint32_t kind, uint32_t n, tvmrt_device_info *out, const char **why);

/* What launches take by the device's own clock, in the order of their calls; what a recording holds
 * is not timed.  The figures are of launches that the device has one behind the other, so nobody
 * should wait between them: on CUDA and ROCm it begins when the next other function of its table is
 * called, or at the latest a tenth of a second after the first launch.
 *
 * These are for devices that were opened with `timing`, TVMCC_E_MISMATCH for others.  The first one
 * waits, forgets what was timed so far and has launches timed from there on, or with `on` 0 no
 * more; they are from the opening on. */
int32_t tvmrt_time_launches(const tvmcc_device *device, int on);
/* How many launches were timed; 0 of other devices. */
uint32_t tvmrt_timed_launches(const tvmcc_device *device);
/* Waits, then fills in the nanoseconds of the first n; TVMCC_E_SHAPE: there are fewer. */
int32_t tvmrt_launch_times(const tvmcc_device *device, uint32_t n, double *ns);

#ifdef __cplusplus
}
#endif

#endif
