/* What the files of the OpenCL driver share.
 *
 *   opencl.c          memory, launches, opening
 *   opencl_program.c  programs, kernels, and images that these have in the place of buffers
 *
 * The few calls that we need are declared here. */
#ifndef TVMRT_OPENCL_H
#define TVMRT_OPENCL_H

#include "device.h"

/* Numbers and types of the OpenCL 1.2 ABI. */
typedef void *Handle;
enum {
    CL_DEVICE_TYPE_GPU = 4,
    CL_MEM_READ_WRITE = 1,
    CL_MEM_READ_ONLY = 4,
    CL_MEM_IMAGE1D_BUFFER = 0x10f6,
    CL_MEM_SIZE = 0x1102,
    CL_R = 0x10b0,
    CL_RGBA = 0x10b5,
    CL_UNSIGNED_INT8 = 0x10da,
    CL_UNSIGNED_INT16 = 0x10db,
    CL_UNSIGNED_INT32 = 0x10dc,
    CL_KERNEL_NUM_ARGS = 0x1191,
    CL_KERNEL_BLOCK_THREADS = 0x11b0,
    CL_KERNEL_ARG_TYPE_NAME = 0x1198,
    CL_KERNEL_ARG_NAME = 0x119a,
    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_DEVICE_TYPE = 0x1000,
    CL_DEVICE_BLOCK_THREADS = 0x1004, /* work group size, items along each axis */
    CL_DEVICE_BLOCK = 0x1005,
    CL_DEVICE_IMAGES = 0x1016,
    CL_DEVICE_SINGLE_FP_CONFIG = 0x101b,
    CL_DEVICE_MEMORY = 0x101f,
    CL_DEVICE_LOCAL_MEMORY = 0x1023,
    CL_DEVICE_NAME = 0x102b,
    CL_DEVICE_VENDOR = 0x102c,
    CL_DEVICE_VERSION = 0x102f,
    CL_DEVICE_EXTENSIONS = 0x1030,
    CL_DEVICE_HALF_FP_CONFIG = 0x1033,
    CL_DEVICE_SHARES = 0x1035, /* its memory with the host */
    CL_DEVICE_MAX_TEXELS = 0x1040,
    CL_FP_ROUND_TO_NEAREST = 1 << 2,
    CL_FP_EXACT_DIVIDE_SQRT = 1 << 7,
    CL_CONTEXT_DEVICES = 0x1081,
    CL_QUEUE_CONTEXT = 0x1090,
    CL_QUEUE_DEVICE = 0x1091,
    CL_QUEUE_PROPERTIES = 0x1093,
    CL_QUEUE_OUT_OF_ORDER = 1,
    CL_QUEUE_PROFILING = 2,
    CL_EVENT_STATUS = 0x11d3,
    CL_PROFILING_START = 0x1282,
    CL_PROFILING_END = 0x1283,
    MAX_PLATFORMS = 16,
    MAX_DEVICES = 16,
    MAX_OPTIONS = 256,
    CL_COMPILER_NOT_AVAILABLE = -3,
    CL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
    CL_OUT_OF_RESOURCES = -5,
    CL_IMAGE_FORMAT_NOT_SUPPORTED = -10,
    CL_BUILD_FAILURE = -11,
    CL_INVALID_BINARY = -42,
    MIN_BUFFER = 16, /* a buffer of 0 bytes is an error */
    TEXELS = 6
};
#define CL_DEVICE_TYPE_ALL 0xffffffffu

typedef struct {
    uint32_t order, type;
} ImageFormat;

typedef struct {
    uint32_t type;
    size_t   width, height, depth, array_size, row_pitch, slice_pitch;
    uint32_t num_mip_levels, num_samples;
    Handle   buffer;
} ImageDesc;

/* CALL(name, parameters): every call returns an error code. */
#define CALLS(CALL)                                                                                \
    CALL(clGetPlatformIDs, (uint32_t, Handle *, uint32_t *))                                       \
    CALL(clGetDeviceIDs, (Handle, uint64_t, uint32_t, Handle *, uint32_t *))                       \
    CALL(clGetDeviceInfo, (Handle, uint32_t, size_t, void *, size_t *))                            \
    CALL(clGetKernelInfo, (Handle, uint32_t, size_t, void *, size_t *))                            \
    CALL(clGetKernelArgInfo, (Handle, uint32_t, uint32_t, size_t, void *, size_t *))               \
    CALL(clGetKernelWorkGroupInfo, (Handle, Handle, uint32_t, size_t, void *, size_t *))           \
    CALL(clGetMemObjectInfo, (Handle, uint32_t, size_t, void *, size_t *))                         \
    CALL(clGetContextInfo, (Handle, uint32_t, size_t, void *, size_t *))                           \
    CALL(clGetCommandQueueInfo, (Handle, uint32_t, size_t, void *, size_t *))                      \
    CALL(clRetainContext, (Handle))                                                                \
    CALL(clRetainCommandQueue, (Handle))                                                           \
    CALL(clReleaseContext, (Handle))                                                               \
    CALL(clReleaseCommandQueue, (Handle))                                                          \
    CALL(clReleaseMemObject, (Handle))                                                             \
    CALL(clReleaseProgram, (Handle))                                                               \
    CALL(clReleaseKernel, (Handle))                                                                \
    CALL(clEnqueueWriteBuffer, (Handle, Handle, uint32_t, size_t, size_t, const void *, uint32_t,  \
                                const Handle *, Handle *))                                         \
    CALL(clEnqueueReadBuffer,                                                                      \
         (Handle, Handle, uint32_t, size_t, size_t, void *, uint32_t, const Handle *, Handle *))   \
    CALL(clEnqueueCopyBuffer,                                                                      \
         (Handle, Handle, Handle, size_t, size_t, size_t, uint32_t, const Handle *, Handle *))     \
    CALL(clBuildProgram, (Handle, uint32_t, const Handle *, const char *, void (*)(void), void *)) \
    CALL(clGetProgramBuildInfo, (Handle, Handle, uint32_t, size_t, void *, size_t *))              \
    CALL(clSetKernelArg, (Handle, uint32_t, size_t, const void *))                                 \
    CALL(clEnqueueNDRangeKernel, (Handle, Handle, uint32_t, const size_t *, const size_t *,        \
                                  const size_t *, uint32_t, const Handle *, Handle *))             \
    CALL(clFinish, (Handle))                                                                       \
    CALL(clFlush, (Handle))                                                                        \
    CALL(clEnqueueMarkerWithWaitList, (Handle, uint32_t, const Handle *, Handle *))                \
    CALL(clGetEventInfo, (Handle, uint32_t, size_t, void *, size_t *))                             \
    CALL(clGetEventProfilingInfo, (Handle, uint32_t, size_t, void *, size_t *))                    \
    CALL(clReleaseEvent, (Handle))

/* MAKE(name, parameters): these return a handle, the error code goes through the last argument. */
#define MAKES(MAKE)                                                                               \
    MAKE(clCreateContext,                                                                         \
         (const void *, uint32_t, const Handle *, void (*)(void), void *, int32_t *))             \
    MAKE(clCreateCommandQueue, (Handle, Handle, uint64_t, int32_t *))                             \
    MAKE(clCreateBuffer, (Handle, uint64_t, size_t, void *, int32_t *))                           \
    MAKE(clCreateImage, (Handle, uint64_t, const void *, const void *, void *, int32_t *))        \
    MAKE(clCreateProgramWithSource, (Handle, uint32_t, const char **, const size_t *, int32_t *)) \
    MAKE(clCreateProgramWithBinary, (Handle, uint32_t, const Handle *, const size_t *,            \
                                     const uint8_t **, int32_t *, int32_t *))                     \
    MAKE(clCreateKernel, (Handle, const char *, int32_t *))

/* Numbers of a texel, and bits of each; 0: there is none. */
typedef struct {
    uint32_t lanes, bits;
} Texel;

typedef struct {
    Handle memory, image;
    Texel  texel;
} Image;

typedef struct {
    Handle program;
    bool   images; /* some kernels have such parameters */
} Program;

typedef struct {
    Handle   kernel;
    uint32_t nargs; /* 0: none is an image */
    Texel    arg[];
} Kernel;

typedef struct {
    DeviceState state;
    Handle      device, context, queue;
    Handle      mark;  /* event behind all that was asked for; NULL: there is none */
    Handle     *timed; /* events of state.launches */
    uint32_t    room;
    Image      *images;
    uint32_t    nimages, image_room;
    Texel       texels[TEXELS]; /* of the program that was loaded last */
    uint32_t    ntexels;
#define FIELD_CALL(name, args) int32_t(*name) args;
#define FIELD_MAKE(name, args) Handle(*name) args;
    CALLS(FIELD_CALL)
    MAKES(FIELD_MAKE)
} OpenCl;

static inline int32_t check(OpenCl *cl, int32_t code, const char *what)
{
    return tvmrt_device_check(&cl->state, code, what);
}

/* ---- opencl_program.c -------------------------------------------------------------------------- */

int32_t tvmrt_opencl_module_load(void *self, uint32_t form, const void *code, size_t bytes,
                                 const char *options, void **module);
void    tvmrt_opencl_module_free(void *self, void *module);
int32_t tvmrt_opencl_kernel(void *self, void *module, const char *name, void **kernel);
void    tvmrt_opencl_kernel_free(void *self, void *kernel);
int32_t tvmrt_opencl_weights(DeviceState *state, void *memory);
int32_t tvmrt_opencl_set_arg(OpenCl *cl, const Kernel *k, uint32_t i, const tvmcc_arg *a);
void    tvmrt_opencl_forget_images(OpenCl *cl, Handle memory); /* of a buffer, or of all */

#endif
