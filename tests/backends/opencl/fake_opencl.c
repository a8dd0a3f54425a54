/* libOpenCL.so.1 with one device that builds nothing: the log of a build says by which options it
 * was asked for.  What the device is and says of binaries, the environment says; and whether it
 * does build, kernels that take an image in the place of their first buffer. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void *Handle;
enum {
    CL_INVALID_VALUE = -30,
    CL_INVALID_BUILD_OPTIONS = -43,
    CL_INVALID_ARG_VALUE = -50,
    CL_DEVICE_IMAGES = 0x1016,
    CL_DEVICE_MAX_TEXELS = 0x1040,
    CL_KERNEL_ARG_TYPE_NAME = 0x1198,
    CL_DEVICE_BLOCK_THREADS = 0x1004,
    CL_DEVICE_BLOCK = 0x1005,
    CL_DEVICE_LOCAL_MEMORY = 0x1023,
    CL_KERNEL_BLOCK_THREADS = 0x11b0,
    CL_DEVICE_SINGLE_FP_CONFIG = 0x101b,
    CL_DEVICE_VERSION = 0x102f,
    CL_DEVICE_EXTENSIONS = 0x1030,
    CL_DEVICE_HALF_FP_CONFIG = 0x1033
};

static char options[1024];
static int  any, programs, kernels, memories, images;

typedef struct Memory Memory;
struct Memory {
    size_t  bytes;
    Memory *of; /* an image is of it */
};

static int64_t number(const char *variable, int64_t otherwise)
{
    const char *value = getenv(variable);

    return value ? strtoll(value, NULL, 0) : otherwise;
}

int32_t clGetPlatformIDs(uint32_t n, Handle *out, uint32_t *got)
{
    (void)n;
    *out = &any;
    *got = 1;
    return 0;
}

int32_t clGetDeviceIDs(Handle platform, uint64_t type, uint32_t n, Handle *out, uint32_t *got)
{
    (void)platform, (void)type, (void)n;
    *out = &any;
    *got = 1;
    return 0;
}

int32_t clGetDeviceInfo(Handle device, uint32_t what, size_t bytes, void *out, size_t *got)
{
    const char *config = getenv("FAKE_CL_CONFIG"), *version = getenv("FAKE_CL_VERSION");

    const char *extensions = getenv("FAKE_CL_EXTENSIONS");

    (void)device;
    if (what == CL_DEVICE_EXTENSIONS && extensions && got)
        *got = strlen(extensions) + 1;
    else if (what == CL_DEVICE_EXTENSIONS && extensions && bytes > strlen(extensions))
        strcpy(out, extensions);
    else if (what == CL_DEVICE_HALF_FP_CONFIG && bytes == 8)
        *(uint64_t *)out = (uint64_t)number("FAKE_CL_HALF", 0);
    else if (what == CL_DEVICE_SINGLE_FP_CONFIG && bytes == 8)
        *(uint64_t *)out = config ? strtoull(config, NULL, 0) : 0;
    else if (what == CL_DEVICE_IMAGES && bytes == 4)
        *(uint32_t *)out = (uint32_t)number("FAKE_CL_IMAGES", 1);
    else if (what == CL_DEVICE_MAX_TEXELS && bytes == sizeof(size_t))
        *(size_t *)out = (size_t)number("FAKE_CL_TEXELS", 65536);
    else if (what == CL_DEVICE_BLOCK_THREADS && bytes == sizeof(size_t))
        *(size_t *)out = (size_t)number("FAKE_CL_THREADS", 256);
    else if (what == CL_DEVICE_BLOCK && bytes == 3 * sizeof(size_t))
        for (int i = 0; i < 3; i++)
            ((size_t *)out)[i] = (size_t)number(i == 2 ? "FAKE_CL_Z" : "FAKE_CL_THREADS", 256);
    else if (what == CL_DEVICE_LOCAL_MEMORY && bytes == 8)
        *(uint64_t *)out = (uint64_t)number("FAKE_CL_SHARED", 32768);
    else if (what == CL_DEVICE_VERSION && version && bytes > strlen(version))
        strcpy(out, version);
    else
        return CL_INVALID_VALUE;
    return 0;
}

Handle clCreateContext(const void *p, uint32_t n, const Handle *devices, void (*f)(void),
                       void *user, int32_t *code)
{
    (void)p, (void)n, (void)devices, (void)f, (void)user;
    *code = 0;
    return &any;
}

Handle clCreateCommandQueue(Handle context, Handle device, uint64_t properties, int32_t *code)
{
    (void)context, (void)device, (void)properties;
    *code = 0;
    return &any;
}

int32_t clReleaseContext(Handle h)
{
    (void)h;
    return 0;
}

int32_t clReleaseCommandQueue(Handle h)
{
    (void)h;
    if (programs || kernels || memories || images)
        abort(); /* one is left */
    return 0;
}

int32_t clReleaseProgram(Handle h)
{
    (void)h;
    programs--;
    return 0;
}

Handle clCreateProgramWithSource(Handle context, uint32_t n, const char **text, const size_t *bytes,
                                 int32_t *code)
{
    (void)context, (void)n, (void)text, (void)bytes;
    *code = 0;
    programs++;
    return &any;
}

Handle clCreateProgramWithBinary(Handle context, uint32_t n, const Handle *devices,
                                 const size_t *bytes, const uint8_t **code, int32_t *status,
                                 int32_t *error)
{
    const char *says = getenv("FAKE_CL_STATUS"), *fails = getenv("FAKE_CL_ERROR");

    (void)context, (void)n, (void)devices, (void)bytes, (void)code;
    *status = says ? atoi(says) : 0;
    *error = fails ? atoi(fails) : 0;
    if (*error)
        return NULL;
    programs++;
    return &any;
}

int32_t clBuildProgram(Handle program, uint32_t n, const Handle *devices, const char *with,
                       void (*f)(void), void *user)
{
    (void)program, (void)n, (void)devices, (void)f, (void)user;
    strncpy(options, with, sizeof options - 1);
    return number("FAKE_CL_BUILDS", 0) ? 0 : CL_INVALID_BUILD_OPTIONS;
}

int32_t clGetProgramBuildInfo(Handle program, Handle device, uint32_t what, size_t bytes, void *out,
                              size_t *got)
{
    (void)program, (void)device, (void)what, (void)got;
    if (bytes <= strlen(options))
        return CL_INVALID_VALUE;
    strcpy(out, options);
    return 0;
}

int32_t clFinish(Handle queue)
{
    (void)queue;
    return 0;
}

/* ---- kernels of (image, offset, buffer, offset) ----------------------------------------------- */

Handle clCreateKernel(Handle program, const char *name, int32_t *code)
{
    (void)program, (void)name;
    *code = 0;
    kernels++;
    return &any;
}

int32_t clReleaseKernel(Handle h)
{
    (void)h;
    kernels--;
    return 0;
}

int32_t clGetKernelInfo(Handle kernel, uint32_t what, size_t bytes, void *out, size_t *got)
{
    (void)kernel, (void)what, (void)bytes, (void)got;
    *(uint32_t *)out = 4;
    return 0;
}

int32_t clGetKernelWorkGroupInfo(Handle kernel, Handle device, uint32_t what, size_t bytes,
                                 void *out, size_t *got)
{
    (void)kernel, (void)device, (void)got;
    if (what != CL_KERNEL_BLOCK_THREADS || bytes != sizeof(size_t) ||
        !getenv("FAKE_CL_KERNEL_THREADS"))
        return CL_INVALID_VALUE;
    *(size_t *)out = (size_t)number("FAKE_CL_KERNEL_THREADS", 0);
    return 0;
}

int32_t clGetKernelArgInfo(Handle kernel, uint32_t i, uint32_t what, size_t bytes, void *out,
                           size_t *got)
{
    static const char *const type[] = {"image1d_buffer_t", "long", "float*", "long"};
    const char              *name[] = {getenv("FAKE_CL_NAME"), "o0", "p1", "o1"};

    (void)kernel, (void)bytes, (void)got;
    if (!strstr(options, "-cl-kernel-arg-info"))
        return -19;
    strcpy(out, what == CL_KERNEL_ARG_TYPE_NAME ? type[i] : name[i] ? name[i] : "p4x32_0");
    return 0;
}

static Memory *memory_new(size_t bytes, Memory *of)
{
    Memory *m = malloc(sizeof *m);

    *m = (Memory){bytes, of};
    return m;
}

Handle clCreateBuffer(Handle context, uint64_t flags, size_t bytes, void *host, int32_t *code)
{
    (void)context, (void)flags, (void)host;
    *code = 0;
    memories++;
    return memory_new(bytes, NULL);
}

int32_t clGetMemObjectInfo(Handle h, uint32_t what, size_t bytes, void *out, size_t *got)
{
    (void)what, (void)bytes, (void)got;
    *(size_t *)out = ((Memory *)h)->bytes;
    return 0;
}

/* As many at a time as the environment says. */
Handle clCreateImage(Handle context, uint64_t flags, const void *format, const void *desc,
                     void *host, int32_t *code)
{
    const struct {
        uint32_t type;
        size_t   width, unused[5];
        uint32_t none[2];
        Memory  *of;
    }              *d = desc;
    const uint32_t *f = format;
    const size_t    texel = f[0] == 0x10b0 ? 4 : 16; /* numbers of 32 bits alone */

    (void)context, (void)flags, (void)host;
    *code = (int32_t)number("FAKE_CL_IMAGE", 0);
    if (f[1] != 0x10dc || d->type != 0x10f6 || d->width != d->of->bytes / texel)
        *code = CL_INVALID_VALUE;
    else if (images >= number("FAKE_CL_MOST_IMAGES", 1))
        *code = -6;
    if (*code)
        return NULL;
    images++;
    return memory_new(0, d->of);
}

int32_t clReleaseMemObject(Handle h)
{
    Memory *m = h;

    *(m->of ? &images : &memories) -= 1;
    free(m);
    return 0;
}

int32_t clEnqueueWriteBuffer(Handle queue, Handle h, uint32_t at_once, size_t at, size_t bytes,
                             const void *host, uint32_t n, const Handle *events, Handle *event)
{
    (void)queue, (void)at_once, (void)host, (void)n, (void)events, (void)event;
    return at + bytes <= ((Memory *)h)->bytes ? 0 : CL_INVALID_VALUE;
}

int32_t clSetKernelArg(Handle kernel, uint32_t i, size_t bytes, const void *value)
{
    (void)kernel;
    if (bytes != sizeof(Memory *))
        return CL_INVALID_ARG_VALUE;
    return i % 2 || (i == 0) == ((*(Memory *const *)value)->of != NULL) ? 0 : CL_INVALID_ARG_VALUE;
}

int32_t clEnqueueNDRangeKernel(Handle queue, Handle kernel, uint32_t n, const size_t *offset,
                               const size_t *global, const size_t *local, uint32_t nevents,
                               const Handle *events, Handle *event)
{
    (void)queue, (void)kernel, (void)n, (void)offset, (void)global, (void)local;
    (void)nevents, (void)events, (void)event;
    return 0;
}

/* Never called. */
#define UNUSED(name)    \
    int32_t name(void); \
    int32_t name(void)  \
    {                   \
        return -59;     \
    }
UNUSED(clGetContextInfo)
UNUSED(clGetCommandQueueInfo)
UNUSED(clRetainContext)
UNUSED(clRetainCommandQueue)
UNUSED(clEnqueueReadBuffer)
UNUSED(clEnqueueCopyBuffer)
UNUSED(clFlush)
UNUSED(clEnqueueMarkerWithWaitList)
UNUSED(clGetEventInfo)
UNUSED(clGetEventProfilingInfo)
UNUSED(clReleaseEvent)
