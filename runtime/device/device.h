/* What the host sides of all devices share.
 *
 * A device is a driver: the library that it opens, the calls that it finds there, and the functions
 * of tvmcc_device.  Its struct begins with a DeviceState, behind which it keeps its own. */
#ifndef TVMRT_DEVICE_H
#define TVMRT_DEVICE_H

#include "tvmcc/runtime.h"

#include <stdbool.h>

struct DeviceDriver;

/* Weights in the device's memory, for all models that have the same. */
typedef struct SharedWeights SharedWeights;

typedef struct {
    tvmcc_device               table;
    const struct DeviceDriver *driver;
    void                      *library;
    tvmrt_device_options       options; /* which of the devices */
    SharedWeights             *weights;
    bool                       timing;   /* launches that are no recording's are timed */
    uint32_t                   launches; /* that were */
    char                       error[512];
} DeviceState;

typedef struct {
    const char *name;
    size_t      at; /* of the pointer in the driver's struct */
} DeviceCall;

/* What a block may have; ULLONG_MAX: nobody knows. */
typedef struct {
    char               name[128]; /* of the device */
    unsigned long long threads, block[3], shared_bytes;
} DeviceLimits;

typedef struct DeviceDriver {
    const char        *title;   /* "OpenCL" */
    const char        *library; /* opened at run time */
    const char *const *others;  /* ... else one of these, NULL behind the last; NULL: none */
    const char        *no_library, *no_call, *no_device; /* why it cannot be opened */
    size_t             bytes;                            /* of its struct */
    size_t             least;                            /* bytes of memory that it can allocate */
    bool               shares;                           /* contexts and streams of the caller */
    uint32_t           ncalls, nmore; /* `nmore` behind those need not be there: NULL */
    const DeviceCall  *calls;
    /* Where the library and its calls are there: takes the device that the options
     * say.  NULL, or why not. */
    const char *(*open)(DeviceState *s);
    void (*close)(DeviceState *s); /* nothing is under way */
    /* Optional: what an error code of the library means, in its own words. */
    const char *(*error_text)(DeviceState *s, int32_t code);
    /* Optional: programs whose blocks have more are refused. */
    void (*limits)(DeviceState *s, DeviceLimits *out);
    /* Optional: what a kernel that was found was compiled to may leave fewer threads. */
    void (*narrow)(DeviceState *s, void *kernel, DeviceLimits *limits);
    /* Optional: a kernel that was found may have the memory that its blocks share. */
    int32_t (*grant)(DeviceState *s, const tvmcc_kernel_info *kernel, void *handle);
    /* Optional: weights are there, for the program that was loaded last. */
    int32_t (*weights)(DeviceState *s, void *memory);
    /* Optional, for devices whose options say `timing`; `open` says why not where only this one
     * cannot.  What the first n of state.launches took, all of which have ended; forget them, if
     * there is more to do than that launches are counted anew. */
    int32_t (*launch_times)(DeviceState *s, uint32_t n, double *ns);
    void (*forget_times)(DeviceState *s); /* or NULL */
    /* All devices: name and, as far as they are known, maker, memory and type; gives their number.
     */
    uint32_t (*devices)(DeviceState *s, uint32_t n, tvmrt_device_info *out);
    /* As in abi.h, `self` is the driver's struct; no copy is empty, no launch is of nothing.
     * Programs are loaded by module_load and kernel, weights by alloc and upload.  Without
     * download_later and poll, downloads happen at once and `poll` waits. */
    tvmcc_device functions;
} DeviceDriver;

/* Keeps what failed for last_error; TVMCC_OK for code 0. */
int32_t tvmrt_device_check(DeviceState *s, int32_t code, const char *what);
/* Zeroed memory of malloc; NULL with the error where there is none. */
void *tvmrt_device_new(DeviceState *s, size_t bytes);
/* Room for one more behind n in an array of malloc; an error where there is no memory. */
int32_t tvmrt_device_grow(DeviceState *s, void **array, uint32_t n, uint32_t *room, size_t size);

#endif
