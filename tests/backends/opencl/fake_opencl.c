/* libOpenCL.so.1 with one device that builds nothing: the log of a build says by which options it
 * was asked for.  What the device is and says of binaries, the environment says. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void *Handle;
enum {
    CL_INVALID_VALUE = -30,
    CL_INVALID_BUILD_OPTIONS = -43,
    CL_DEVICE_SINGLE_FP_CONFIG = 0x101b,
    CL_DEVICE_VERSION = 0x102f
};

static char options[1024];
static int  any, programs;

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

    (void)device, (void)got;
    if (what == CL_DEVICE_SINGLE_FP_CONFIG && bytes == 8)
        *(uint64_t *)out = config ? strtoull(config, NULL, 0) : 0;
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
    if (programs)
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
    return CL_INVALID_BUILD_OPTIONS;
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
UNUSED(clReleaseMemObject)
UNUSED(clReleaseKernel)
UNUSED(clEnqueueWriteBuffer)
UNUSED(clEnqueueReadBuffer)
UNUSED(clEnqueueCopyBuffer)
UNUSED(clSetKernelArg)
UNUSED(clEnqueueNDRangeKernel)
UNUSED(clFinish)
UNUSED(clFlush)
UNUSED(clEnqueueMarkerWithWaitList)
UNUSED(clGetEventInfo)
UNUSED(clGetEventProfilingInfo)
UNUSED(clReleaseEvent)
UNUSED(clCreateBuffer)
UNUSED(clCreateKernel)
