/* abi.h: the structs shared by generated code, the runtime and every caller.
 *
 * A compiled model is an object file whose functions take these structs, so that thread pools,
 * loaders, RPC and bindings are written once for all models.  C99 and C++, needs only <stddef.h>
 * and <stdint.h>, brings no function but tvmcc_strerror, which is inline.  Generated code lays the
 * same structs out by hand: every offset is asserted below and listed in docs/abi.md.
 *
 * All members are pointers, size_t or 32-bit words in pairs: no 64-bit integer stands in a struct,
 * because 32-bit ABIs disagree on its alignment.  Structs that begin with `struct_bytes` only ever
 * grow at the end; any other change raises TVMCC_ABI.
 */
#ifndef TVMCC_ABI_H
#define TVMCC_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TVMCC_ABI 1

/* ---- return codes: 0 or one of these ------------------------------------------------------ */

enum {
    TVMCC_OK = 0,
    TVMCC_E_NULL = -1,      /* a pointer is NULL */
    TVMCC_E_ALIGN = -2,     /* arena, tensor or weights are not aligned as the header says */
    TVMCC_E_MISMATCH = -3,  /* arena too small, other weights, other ABI, too many threads */
    TVMCC_E_SHAPE = -4,     /* a shape that was not compiled */
    TVMCC_E_DEVICE = -5,    /* a device is missing or its driver failed */
    TVMCC_E_CPU = -6,       /* this CPU, or the system, lacks what the code was compiled for */
    TVMCC_E_CANCELLED = -7, /* the instrument callback asked to stop */
    TVMCC_E_CAPACITY = -8   /* an output is too small; the bytes it needs are filled in */
};

/* What a return code says, for people. */
static inline const char *tvmcc_strerror(int32_t code)
{
    switch (code) {
    case TVMCC_OK: return "success";
    case TVMCC_E_NULL: return "a pointer is NULL";
    case TVMCC_E_ALIGN: return "arena, tensor or weights are not aligned";
    case TVMCC_E_MISMATCH: return "arena too small, other weights, other ABI or too many threads";
    case TVMCC_E_SHAPE: return "a shape that was not compiled";
    case TVMCC_E_DEVICE: return "a device is missing or its driver failed";
    case TVMCC_E_CPU: return "this CPU lacks what the code was compiled for";
    case TVMCC_E_CANCELLED: return "cancelled by the instrument callback";
    case TVMCC_E_CAPACITY: return "an output is too small";
    default: return "unknown code";
    }
}

/* ---- element types: the codes of DLPack -------------------------------------------------------
 * An element of less than 8 bits has a byte of its own, its bits the low ones. */

enum {
    TVMCC_INT = 0,
    TVMCC_UINT = 1,
    TVMCC_FLOAT = 2,
    TVMCC_HANDLE = 3,
    TVMCC_BFLOAT = 4,
    TVMCC_COMPLEX = 5,
    TVMCC_BOOL = 6,
    TVMCC_FLOAT8_E4M3FN = 10,
    TVMCC_FLOAT8_E4M3FNUZ = 11,
    TVMCC_FLOAT8_E5M2 = 12,
    TVMCC_FLOAT8_E5M2FNUZ = 13,
    TVMCC_FLOAT8_E8M0FNU = 14,
    TVMCC_FLOAT4_E2M1FN = 17
};

/* ---- devices: a table of functions, so that generated code knows no driver ---------------------
 */

enum { /* the device types of DLPack */
       TVMCC_DEVICE_CPU = 1,
       TVMCC_DEVICE_CUDA = 2,
       TVMCC_DEVICE_OPENCL = 4,
       TVMCC_DEVICE_VULKAN = 7,
       TVMCC_DEVICE_METAL = 8,
       TVMCC_DEVICE_ROCM = 10,
       TVMCC_DEVICE_EXT = 12 /* one that none of these is */
};

enum { TVMCC_CODE_SOURCE = 0, TVMCC_CODE_BINARY = 1 };

enum {
    TVMCC_ARG_BUFFER = 0, /* p: what alloc gave */
    TVMCC_ARG_VALUE = 1,  /* p: `bytes` bytes of a scalar */
    TVMCC_ARG_LOCAL = 2   /* `bytes` bytes of memory shared by a work group; p is NULL */
};

typedef struct tvmcc_arg {
    uint32_t    kind;
    uint32_t    bytes;
    const void *p;
} tvmcc_arg;

/* A kernel as its launches pass arguments: each buffer, then i64s, in the order of the text. */
typedef struct tvmcc_kernel_info {
    const char *name;
    uint32_t    buffers;
    uint32_t    value_bytes;                     /* of all that is no buffer */
    uint32_t    threads_x, threads_y, threads_z; /* of a block; 0: a run decides */
    uint32_t    shared_bytes;                    /* memory that a block shares */
} tvmcc_kernel_info;

typedef struct tvmcc_code_part {
    const void *code;
    size_t      bytes;
} tvmcc_code_part;

/* All kernels for one sort of device: a part for each, in their order, or one for all. */
typedef struct tvmcc_code {
    uint32_t               form; /* TVMCC_CODE_x */
    uint32_t               nparts;
    const char            *target;  /* "sm_80"; "": any */
    const char            *options; /* of module_load */
    const tvmcc_code_part *parts;
} tvmcc_code;

/* The first code that loads is taken. */
typedef struct tvmcc_program {
    uint32_t                 struct_bytes;
    uint32_t                 nhandles; /* that program_load wants room for */
    uint32_t                 ncodes, nkernels;
    const tvmcc_code        *codes;
    const tvmcc_kernel_info *kernels;
} tvmcc_program;

/* Functions that return int32_t give a code from above.  `launch` may return before the kernel
 * ends; launches and copies of one device happen in the order of the calls; `wait` waits for all.
 * A device that only holds memory leaves module_load to launch NULL, and what follows last_error.
 * Between record_begin and record_end launches are not carried out but become a recording, which
 * `replay` carries out as a launch; a device that records nothing leaves these four NULL.  One
 * thread at a time uses a table. */
typedef struct tvmcc_device {
    uint32_t struct_bytes;
    uint32_t kind;
    void    *self;
    int32_t (*alloc)(void *self, size_t bytes, void **memory);
    void (*free)(void *self, void *memory);
    int32_t (*upload)(void *self, void *memory, size_t offset, const void *host, size_t bytes);
    int32_t (*download)(void *self, void *host, void *memory, size_t offset, size_t bytes);
    int32_t (*copy)(void *self, void *to, size_t to_offset, void *from, size_t from_offset,
                    size_t bytes);
    int32_t (*module_load)(void *self, uint32_t code_form, const void *code, size_t bytes,
                           const char *options, void **module);
    void (*module_free)(void *self, void *module);
    int32_t (*kernel)(void *self, void *module, const char *name, void **kernel);
    void (*kernel_free)(void *self, void *kernel);
    int32_t (*launch)(void *self, void *kernel, const uint32_t grid[3], const uint32_t block[3],
                      const tvmcc_arg *args, uint32_t nargs);
    int32_t (*wait)(void *self);
    const char *(*last_error)(void *self);
    /* From struct_bytes 160 (84 where pointers have 32 bits) on.  Fills handles[nhandles]: the
     * kernels, then what they are parts of.  program_free takes what a failed load left, too. */
    int32_t (*program_load)(void *self, const tvmcc_program *program, void **handles);
    void (*program_free)(void *self, const tvmcc_program *program, void **handles);
    int32_t (*record_begin)(void *self);
    int32_t (*record_end)(void *self, void **recording);
    int32_t (*replay)(void *self, void *recording);
    void (*recording_free)(void *self, void *recording);
    /* From struct_bytes 192 (100) on.  A download that has happened when `wait`, or `poll` with 0,
     * returns: until then the host's memory is the device's. */
    int32_t (*download_later)(void *self, void *host, void *memory, size_t offset, size_t bytes);
    /* Begins what has not begun: 0 if all has happened, 1 if not, or a code. */
    int32_t (*poll)(void *self);
    /* Memory with these bytes, which nobody writes: one for all who ask for the same hash.  A hash
     * of zeros is nobody else's. */
    int32_t (*weights_load)(void *self, const uint8_t sha256[32], const void *host, size_t bytes,
                            void **memory);
    void (*weights_free)(void *self, void *memory);
} tvmcc_device;

/* Where a tensor of a run lies.  In the memory of the device on which the model is open, the handle
 * of that memory, as `alloc` gives it, stands in place of the tensor's address. */
typedef struct tvmcc_place {
    uint32_t kind; /* TVMCC_DEVICE_CPU: here, else the kind of the model's device */
    uint32_t reserved;
    size_t   offset; /* bytes, on the device */
} tvmcc_place;

/* ---- params: what a run needs beside its tensors ------------------------------------------------
 */

/* One part of a parallel region: part 0 <= part < parts. */
typedef void (*tvmcc_part_fn)(void *ctx, uint32_t part, uint32_t parts);

/* Run fn(ctx, part, n) for all parts below n, return when all have ended.  n is `parts`, or less
 * where there are fewer threads to spare, but not 0.  Parts may run one after the other only if the
 * params have no barrier. */
typedef int32_t (*tvmcc_launch_fn)(void *user, tvmcc_part_fn fn, void *ctx, uint32_t parts);

/* Called by every part of a launch: returns when all n have called. */
typedef void (*tvmcc_barrier_fn)(void *user, uint32_t part);

enum { TVMCC_EVENT_BEGIN = 0, TVMCC_EVENT_END = 1 };

/* Before and after step `step` of the model in part `part`, each time if it is repeated; other than
 * 0 from part 0 before a step ends the run with TVMCC_E_CANCELLED. */
typedef int32_t (*tvmcc_instrument_fn)(void *user, uint32_t event, uint32_t step, uint32_t part);

/* The run ends when all is asked for: the device's `wait`, or `poll`, tells when outputs are there.
 * Inputs were read, outputs have to stay. */
enum { TVMCC_RUN_ASYNC = 1 };

typedef struct tvmcc_params {
    uint32_t                   struct_bytes; /* sizeof(tvmcc_params) */
    uint32_t                   threads;      /* parts of a region; 0 is 1 */
    void                      *arena;
    size_t                     arena_bytes;
    const void                *weights; /* NULL: those in the object */
    size_t                     weights_bytes;
    void                      *state; /* what <model>_open filled; NULL without a device */
    size_t                     state_bytes;
    tvmcc_launch_fn            launch;  /* NULL: the calling thread runs part after part */
    tvmcc_barrier_fn           barrier; /* NULL: parts of a launch need not be alive together */
    void                      *user;    /* first argument of both */
    const tvmcc_device *const *devices; /* one of a kind, of which <model>_open takes its own */
    size_t                     device_count;
    tvmcc_instrument_fn        instrument; /* may be NULL */
    void                      *instrument_user;
    /* From struct_bytes 128 (72) on; models on the CPU read none of it. */
    const tvmcc_place *places;   /* of the inputs, then the outputs; NULL: all are here */
    uint32_t           flags;    /* TVMCC_RUN_x */
    uint32_t           reserved; /* 0 */
} tvmcc_params;

/* ---- values: tensors whose shape is known at run time ------------------------------------------
 */

/* The caller gives the capacity in `bytes` and room for `ndim` dims; a run fills in dims, and bytes
 * with what is used (or, with TVMCC_E_CAPACITY, with what is needed). */
typedef struct tvmcc_value {
    uint8_t  code, bits;
    uint16_t lanes;
    uint32_t ndim;
    int64_t *dims;
    void    *data;
    size_t   bytes;
} tvmcc_value;

/* ---- model info: what a product says about itself ---------------------------------------------
 */

enum {
    TVMCC_TENSOR_DYNAMIC = 1,  /* some dim is -1; passed as tvmcc_value */
    TVMCC_TENSOR_QUANTIZED = 2 /* real value = scale * (stored - zero_point) */
};

typedef struct tvmcc_tensor_info {
    const char    *name;
    const int64_t *dims; /* -1: known at run time */
    size_t         bytes;
    uint8_t        code, bits;
    uint16_t       lanes;
    uint32_t       ndim;
    uint32_t       flags;
    uint32_t       align;
    float          scale;
    int32_t        zero_point;
    const char    *layout;      /* "NCHW", or NULL */
    size_t         state_input; /* outputs: 1 + the input that the next run may alias; else 0 */
} tvmcc_tensor_info;

enum { TVMCC_POOL_SHARED = 0, TVMCC_POOL_DEVICE = 1 };

/* Memory beyond the arena that a target asks for. */
typedef struct tvmcc_pool_info {
    const char *name;
    size_t      bytes;
    uint32_t    align;
    uint32_t    kind;
} tvmcc_pool_info;

enum { TVMCC_WEIGHTS_EMBED = 0, TVMCC_WEIGHTS_FILE = 1, TVMCC_WEIGHTS_EXTERN = 2 };

typedef struct tvmcc_weight_info {
    const char *section; /* "" when not in the object */
    const void *data;    /* NULL when not in the object */
    size_t      bytes;
    uint32_t    mode;
    uint32_t    align;
    uint8_t     sha256[32];
} tvmcc_weight_info;

typedef int32_t (*tvmcc_run_fn)(void *const *inputs, void *const *outputs,
                                const tvmcc_params *params);

/* What a state is, as an array of pointers, after `open`: the table of the device, NULL on the CPU;
 * of a product for several targets the info of the one that was taken.  The rest is the model's. */
enum { TVMCC_STATE_DEVICE = 0, TVMCC_STATE_TARGET = 4 };

/* All constant.  `run` takes one pointer per tensor in model order: its data, or a tvmcc_value for
 * dynamic ones. */
typedef struct tvmcc_model_info {
    uint32_t                 abi; /* TVMCC_ABI */
    uint32_t                 struct_bytes;
    const char              *name;
    const char              *toolchain;
    const char              *targets;
    uint8_t                  sha256[32];   /* of the model file */
    uint8_t                  build_id[32]; /* of all that can change bytes */
    uint32_t                 ninputs, noutputs, npools, nweights;
    const tvmcc_tensor_info *inputs, *outputs;
    const tvmcc_pool_info   *pools;
    const tvmcc_weight_info *weights;
    size_t                   arena_shared; /* arena bytes = shared + threads * private */
    size_t                   arena_private;
    uint32_t                 arena_align;
    uint32_t                 device; /* device type a run needs, TVMCC_DEVICE_CPU for none */
    size_t                   state_bytes;
    tvmcc_run_fn             run;
    int32_t (*open)(void *state, const tvmcc_params *params); /* NULL without a device */
    void (*close)(void *state, const tvmcc_params *params);
    /* From struct_bytes 232 (168 where pointers have 32 bits) on.  Shape buckets: a model for each
     * size of the dimensions, the smallest first; the last is this one.  0: there are none. */
    uint32_t                              nbuckets, nbucket_dims;
    const struct tvmcc_model_info *const *buckets;
    const char *const                    *bucket_dims;  /* names of the dimensions */
    const int64_t                        *bucket_sizes; /* [nbuckets][nbucket_dims] */
    /* From struct_bytes 248 (180) on.  Of a product for several targets: what each is alone, in the
     * order in which `open` tries them.  0: there is one target. */
    uint32_t                              ntargets, reserved;
    const struct tvmcc_model_info *const *each_target;
} tvmcc_model_info;

/* ---- dimensions without an upper bound -----------------------------------------------------------
 */

/* Dimension `axis` of input `input` is times * this one + plus. */
typedef struct tvmcc_dim_info {
    const char *name;
    uint32_t    least, most; /* most 0: there is no bound */
    uint32_t    input, axis;
    uint32_t    times;
    int32_t     plus;
} tvmcc_dim_info;

/* Bytes of arena that a run with these dimensions takes, or a code from above. */
typedef int64_t (*tvmcc_arena_bytes_fn)(const int64_t *dims, uint32_t threads);

/* What <model>_sizes() gives of a model whose arena depends on the dimensions of a run; others have
 * no such function, and an arena of the size that tvmcc_model_info says. */
typedef struct tvmcc_size_info {
    uint32_t              struct_bytes;
    uint32_t              ndims;
    const tvmcc_dim_info *dims;
    tvmcc_arena_bytes_fn  arena_bytes;
} tvmcc_size_info;

/* ---- the weights file --------------------------------------------------------------------- */

/* First 64 bytes of a .weights file, little-endian; the data follow at once, so a mapped file has
 * them aligned to 64. */
#define TVMCC_WEIGHTS_MAGIC "TVMCCWT1"
typedef struct tvmcc_weights_header {
    uint8_t magic[8];
    uint8_t data_bytes[8]; /* u64 */
    uint8_t reserved[16];  /* 0 */
    uint8_t sha256[32];    /* of the data */
} tvmcc_weights_header;

/* ---- helpers of generated headers ---------------------------------------------------------------
 */

#ifndef TVMCC_ALIGNED /* what a compiler has its own words for may be defined before */
#if defined(__cplusplus) && __cplusplus >= 201103L
#define TVMCC_ALIGNED(n) alignas(n)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define TVMCC_ALIGNED(n) _Alignas(n)
#elif defined(_MSC_VER)
#define TVMCC_ALIGNED(n) __declspec(align(n))
#else
#define TVMCC_ALIGNED(n) __attribute__((aligned(n)))
#endif
#endif

#ifndef TVMCC_STATIC_ASSERT
#if defined(__cplusplus) && __cplusplus >= 201103L
#define TVMCC_STATIC_ASSERT(cond, name) static_assert(cond, #name)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define TVMCC_STATIC_ASSERT(cond, name) _Static_assert(cond, #name)
#else
#define TVMCC_STATIC_ASSERT(cond, name) typedef char tvmcc_assert_##name[(cond) ? 1 : -1]
#endif
#endif

#ifdef __cplusplus
#define TVMCC_SIZE_OF(n) static_cast<size_t>(n)
#else
#define TVMCC_SIZE_OF(n) ((size_t)(n))
#endif

/* ---- the layout, asserted ----------------------------------------------------------------- */

#if UINTPTR_MAX > 0xffffffffu
#define TVMCC_LAYOUT(lp64, ilp32, here) (lp64)
#elif UINTPTR_MAX == 0xffffffffu
#define TVMCC_LAYOUT(lp64, ilp32, here) (ilp32)
#else /* no code but that of the same compiler */
#define TVMCC_LAYOUT(lp64, ilp32, here) (here)
#endif
#define TVMCC_AT(type, member, lp64, ilp32)                                            \
    TVMCC_STATIC_ASSERT(offsetof(tvmcc_##type, member) ==                              \
                            TVMCC_LAYOUT(lp64, ilp32, offsetof(tvmcc_##type, member)), \
                        type##_##member)
#define TVMCC_SIZE(type, lp64, ilp32)                                                            \
    TVMCC_STATIC_ASSERT(sizeof(tvmcc_##type) == TVMCC_LAYOUT(lp64, ilp32, sizeof(tvmcc_##type)), \
                        type##_size)

TVMCC_STATIC_ASSERT(sizeof(void *) == sizeof(size_t), pointer_is_size);
TVMCC_STATIC_ASSERT(sizeof(void (*)(void)) == sizeof(void *), function_is_pointer);
TVMCC_AT(arg, kind, 0, 0);
TVMCC_AT(arg, bytes, 4, 4);
TVMCC_AT(arg, p, 8, 8);
TVMCC_SIZE(arg, 16, 12);
TVMCC_AT(device, struct_bytes, 0, 0);
TVMCC_AT(device, kind, 4, 4);
TVMCC_AT(device, self, 8, 8);
TVMCC_AT(device, alloc, 16, 12);
TVMCC_AT(device, free, 24, 16);
TVMCC_AT(device, upload, 32, 20);
TVMCC_AT(device, download, 40, 24);
TVMCC_AT(device, copy, 48, 28);
TVMCC_AT(device, module_load, 56, 32);
TVMCC_AT(device, module_free, 64, 36);
TVMCC_AT(device, kernel, 72, 40);
TVMCC_AT(device, kernel_free, 80, 44);
TVMCC_AT(device, launch, 88, 48);
TVMCC_AT(device, wait, 96, 52);
TVMCC_AT(device, last_error, 104, 56);
TVMCC_AT(device, program_load, 112, 60);
TVMCC_AT(device, program_free, 120, 64);
TVMCC_AT(device, record_begin, 128, 68);
TVMCC_AT(device, record_end, 136, 72);
TVMCC_AT(device, replay, 144, 76);
TVMCC_AT(device, recording_free, 152, 80);
TVMCC_AT(device, download_later, 160, 84);
TVMCC_AT(device, poll, 168, 88);
TVMCC_AT(device, weights_load, 176, 92);
TVMCC_AT(device, weights_free, 184, 96);
TVMCC_SIZE(device, 192, 100);
TVMCC_AT(place, kind, 0, 0);
TVMCC_AT(place, reserved, 4, 4);
TVMCC_AT(place, offset, 8, 8);
TVMCC_SIZE(place, 16, 12);
TVMCC_AT(kernel_info, name, 0, 0);
TVMCC_AT(kernel_info, buffers, 8, 4);
TVMCC_AT(kernel_info, value_bytes, 12, 8);
TVMCC_AT(kernel_info, threads_x, 16, 12);
TVMCC_AT(kernel_info, threads_y, 20, 16);
TVMCC_AT(kernel_info, threads_z, 24, 20);
TVMCC_AT(kernel_info, shared_bytes, 28, 24);
TVMCC_SIZE(kernel_info, 32, 28);
TVMCC_AT(code_part, code, 0, 0);
TVMCC_AT(code_part, bytes, 8, 4);
TVMCC_SIZE(code_part, 16, 8);
TVMCC_AT(code, form, 0, 0);
TVMCC_AT(code, nparts, 4, 4);
TVMCC_AT(code, target, 8, 8);
TVMCC_AT(code, options, 16, 12);
TVMCC_AT(code, parts, 24, 16);
TVMCC_SIZE(code, 32, 20);
TVMCC_AT(program, struct_bytes, 0, 0);
TVMCC_AT(program, nhandles, 4, 4);
TVMCC_AT(program, ncodes, 8, 8);
TVMCC_AT(program, nkernels, 12, 12);
TVMCC_AT(program, codes, 16, 16);
TVMCC_AT(program, kernels, 24, 20);
TVMCC_SIZE(program, 32, 24);
TVMCC_AT(params, struct_bytes, 0, 0);
TVMCC_AT(params, threads, 4, 4);
TVMCC_AT(params, arena, 8, 8);
TVMCC_AT(params, arena_bytes, 16, 12);
TVMCC_AT(params, weights, 24, 16);
TVMCC_AT(params, weights_bytes, 32, 20);
TVMCC_AT(params, state, 40, 24);
TVMCC_AT(params, state_bytes, 48, 28);
TVMCC_AT(params, launch, 56, 32);
TVMCC_AT(params, barrier, 64, 36);
TVMCC_AT(params, user, 72, 40);
TVMCC_AT(params, devices, 80, 44);
TVMCC_AT(params, device_count, 88, 48);
TVMCC_AT(params, instrument, 96, 52);
TVMCC_AT(params, instrument_user, 104, 56);
TVMCC_AT(params, places, 112, 60);
TVMCC_AT(params, flags, 120, 64);
TVMCC_AT(params, reserved, 124, 68);
TVMCC_SIZE(params, 128, 72);
TVMCC_AT(value, code, 0, 0);
TVMCC_AT(value, bits, 1, 1);
TVMCC_AT(value, lanes, 2, 2);
TVMCC_AT(value, ndim, 4, 4);
TVMCC_AT(value, dims, 8, 8);
TVMCC_AT(value, data, 16, 12);
TVMCC_AT(value, bytes, 24, 16);
TVMCC_SIZE(value, 32, 20);
TVMCC_AT(tensor_info, name, 0, 0);
TVMCC_AT(tensor_info, dims, 8, 4);
TVMCC_AT(tensor_info, bytes, 16, 8);
TVMCC_AT(tensor_info, code, 24, 12);
TVMCC_AT(tensor_info, bits, 25, 13);
TVMCC_AT(tensor_info, lanes, 26, 14);
TVMCC_AT(tensor_info, ndim, 28, 16);
TVMCC_AT(tensor_info, flags, 32, 20);
TVMCC_AT(tensor_info, align, 36, 24);
TVMCC_AT(tensor_info, scale, 40, 28);
TVMCC_AT(tensor_info, zero_point, 44, 32);
TVMCC_AT(tensor_info, layout, 48, 36);
TVMCC_AT(tensor_info, state_input, 56, 40);
TVMCC_SIZE(tensor_info, 64, 44);
TVMCC_AT(pool_info, name, 0, 0);
TVMCC_AT(pool_info, bytes, 8, 4);
TVMCC_AT(pool_info, align, 16, 8);
TVMCC_AT(pool_info, kind, 20, 12);
TVMCC_SIZE(pool_info, 24, 16);
TVMCC_AT(weight_info, section, 0, 0);
TVMCC_AT(weight_info, data, 8, 4);
TVMCC_AT(weight_info, bytes, 16, 8);
TVMCC_AT(weight_info, mode, 24, 12);
TVMCC_AT(weight_info, align, 28, 16);
TVMCC_AT(weight_info, sha256, 32, 20);
TVMCC_SIZE(weight_info, 64, 52);
TVMCC_AT(model_info, abi, 0, 0);
TVMCC_AT(model_info, struct_bytes, 4, 4);
TVMCC_AT(model_info, name, 8, 8);
TVMCC_AT(model_info, toolchain, 16, 12);
TVMCC_AT(model_info, targets, 24, 16);
TVMCC_AT(model_info, sha256, 32, 20);
TVMCC_AT(model_info, build_id, 64, 52);
TVMCC_AT(model_info, ninputs, 96, 84);
TVMCC_AT(model_info, noutputs, 100, 88);
TVMCC_AT(model_info, npools, 104, 92);
TVMCC_AT(model_info, nweights, 108, 96);
TVMCC_AT(model_info, inputs, 112, 100);
TVMCC_AT(model_info, outputs, 120, 104);
TVMCC_AT(model_info, pools, 128, 108);
TVMCC_AT(model_info, weights, 136, 112);
TVMCC_AT(model_info, arena_shared, 144, 116);
TVMCC_AT(model_info, arena_private, 152, 120);
TVMCC_AT(model_info, arena_align, 160, 124);
TVMCC_AT(model_info, device, 164, 128);
TVMCC_AT(model_info, state_bytes, 168, 132);
TVMCC_AT(model_info, run, 176, 136);
TVMCC_AT(model_info, open, 184, 140);
TVMCC_AT(model_info, close, 192, 144);
TVMCC_AT(model_info, nbuckets, 200, 148);
TVMCC_AT(model_info, nbucket_dims, 204, 152);
TVMCC_AT(model_info, buckets, 208, 156);
TVMCC_AT(model_info, bucket_dims, 216, 160);
TVMCC_AT(model_info, bucket_sizes, 224, 164);
TVMCC_AT(model_info, ntargets, 232, 168);
TVMCC_AT(model_info, reserved, 236, 172);
TVMCC_AT(model_info, each_target, 240, 176);
TVMCC_SIZE(model_info, 248, 180);
TVMCC_AT(dim_info, name, 0, 0);
TVMCC_AT(dim_info, least, 8, 4);
TVMCC_AT(dim_info, most, 12, 8);
TVMCC_AT(dim_info, input, 16, 12);
TVMCC_AT(dim_info, axis, 20, 16);
TVMCC_AT(dim_info, times, 24, 20);
TVMCC_AT(dim_info, plus, 28, 24);
TVMCC_SIZE(dim_info, 32, 28);
TVMCC_AT(size_info, struct_bytes, 0, 0);
TVMCC_AT(size_info, ndims, 4, 4);
TVMCC_AT(size_info, dims, 8, 8);
TVMCC_AT(size_info, arena_bytes, 16, 12);
TVMCC_SIZE(size_info, 24, 16);
TVMCC_AT(weights_header, magic, 0, 0);
TVMCC_AT(weights_header, data_bytes, 8, 8);
TVMCC_AT(weights_header, reserved, 16, 16);
TVMCC_AT(weights_header, sha256, 32, 32);
TVMCC_SIZE(weights_header, 64, 64);

#ifdef __cplusplus
}
#endif

#endif
