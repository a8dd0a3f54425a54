/* -arch=native: the GPU of NVIDIA's that is here, as its driver tells. */
#include "backends/common/device.h"

#include <dlfcn.h>
#include <string.h>

/* Numbers of the driver API. */
enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76 };

/* The calls' documented prototypes; 0 is success. */
typedef int InitFn(unsigned flags);
typedef int GetFn(int *device, int number);
typedef int AttributeFn(int *value, int attribute, int device);

const char *device_native_nvidia(Ctx *c)
{
    void        *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    InitFn      *init = NULL;
    GetFn       *get = NULL;
    AttributeFn *attribute = NULL;
    void        *calls[3] = {NULL};
    int          device = 0, major = 0, minor = 0;
    const char  *names[] = {"cuInit", "cuDeviceGet", "cuDeviceGetAttribute"};

    for (int i = 0; driver && i < 3; i++)
        calls[i] = dlsym(driver, names[i]);
    memcpy(&init, &calls[0], sizeof init);
    memcpy(&get, &calls[1], sizeof get);
    memcpy(&attribute, &calls[2], sizeof attribute);
    if (init && get && attribute && !init(0) && !get(&device, 0) &&
        !attribute(&major, CAPABILITY_MAJOR, device) &&
        !attribute(&minor, CAPABILITY_MINOR, device))
        return intern_printf(c->strings, "sm_%d%d", major, minor);
    error_at(c, E_TARGET, NO_LOC, "-arch=native: %s",
             driver ? "there is no GPU of NVIDIA's here"
                    : "there is no libcuda.so.1, which comes with NVIDIA's driver");
    diag_hint(c->diags, "sm_80 makes code for an A100, sm_90 for an H100");
    return NULL;
}
