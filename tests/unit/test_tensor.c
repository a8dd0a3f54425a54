/* Tensors of the runtime: sizes, strides, checks, copies; and the devices that hold them. */
#include "tests/unit/check.h"
#include "tvmcc/runtime.h"

#include <dlfcn.h>
#include <stdlib.h>

static const int64_t           dims[3] = {2, 3, 4};
static const tvmcc_tensor_info info = {.name = "x",
                                       .dims = dims,
                                       .bytes = 96,
                                       .code = TVMCC_FLOAT,
                                       .bits = 32,
                                       .lanes = 1,
                                       .ndim = 3,
                                       .align = 4};

static void test_shape(void)
{
    float        data[24];
    int64_t      shape[3] = {2, 3, 4}, strides[3] = {12, 4, 1}, huge[3] = {INT64_MAX, 8, 8};
    tvmrt_tensor t = tvmrt_tensor_of(&info, data);

    CHECK_INT(tvmrt_tensor_bytes(&t), 96);
    CHECK(tvmrt_tensor_contiguous(&t));
    CHECK_INT(tvmrt_tensor_check(&t, &info), TVMCC_OK);
    t.shape = shape;
    t.strides = strides;
    CHECK(tvmrt_tensor_contiguous(&t));
    strides[1] = 8;
    CHECK(!tvmrt_tensor_contiguous(&t));
    CHECK_INT(tvmrt_tensor_check(&t, &info), TVMCC_E_SHAPE);
    t.strides = NULL;
    shape[2] = 5;
    CHECK_INT(tvmrt_tensor_check(&t, &info), TVMCC_E_SHAPE);
    shape[2] = -1;
    CHECK_INT(tvmrt_tensor_bytes(&t), 0);
    t.shape = huge;
    CHECK_INT(tvmrt_tensor_bytes(&t), 0);
    t = tvmrt_tensor_of(&info, data);
    t.byte_offset = 2;
    CHECK_INT(tvmrt_tensor_check(&t, &info), TVMCC_E_ALIGN);
    t = tvmrt_tensor_of(&info, NULL);
    CHECK_INT(tvmrt_tensor_check(&t, &info), TVMCC_E_NULL);
    t = tvmrt_tensor_of(&info, data);
    t.dtype.bits = 16;
    CHECK_INT(tvmrt_tensor_check(&t, &info), TVMCC_E_MISMATCH);
    t = tvmrt_tensor_of(&info, data);
    t.device.type = TVMCC_DEVICE_CUDA;
    CHECK_INT(tvmrt_tensor_check(&t, &info), TVMCC_E_DEVICE);
}

/* What nobody should pass is refused, not read. */
static void test_hostile(void)
{
    float   data[24] = {0};
    int64_t none[3] = {2, 0, 4}, empty[3] = {INT64_MAX, 8, 0}, huge[3] = {INT64_MAX, 8, 8};
    int64_t strides[3] = {INT64_MAX, INT64_MAX, INT64_MAX}, ones[3] = {1, 1, 1};
    tvmcc_tensor_info bare = info, many = info;
    tvmrt_tensor      good = tvmrt_tensor_of(&info, data), t = good, u;

    t.shape = NULL;
    CHECK_INT(tvmrt_tensor_check(&t, &info), TVMCC_E_NULL);
    CHECK_INT(tvmrt_tensor_bytes(&t), 0);
    CHECK(!tvmrt_tensor_contiguous(&t));
    t.strides = strides;
    CHECK(!tvmrt_tensor_contiguous(&t));
    CHECK_INT(tvmrt_tensor_copy(&t, &good), TVMCC_E_NULL);
    CHECK_INT(tvmrt_tensor_copy(&good, &t), TVMCC_E_NULL);
    CHECK_INT(tvmrt_tensor_check(NULL, &info), TVMCC_E_NULL);
    CHECK_INT(tvmrt_tensor_check(&good, NULL), TVMCC_E_NULL);
    CHECK_INT(tvmrt_tensor_bytes(NULL), 0);
    CHECK(!tvmrt_tensor_contiguous(NULL));
    CHECK_INT(tvmrt_tensor_copy(NULL, &good), TVMCC_E_NULL);
    CHECK_INT(tvmrt_tensor_copy(&good, NULL), TVMCC_E_NULL);
    t = tvmrt_tensor_of(NULL, data);
    CHECK(!t.data && !t.ndim && !t.shape);

    bare.dims = NULL;
    CHECK_INT(tvmrt_tensor_check(&good, &bare), TVMCC_E_NULL);
    many.ndim = UINT32_MAX;
    CHECK_INT(tvmrt_tensor_check(&good, &many), TVMCC_E_SHAPE);
    t = good;
    t.ndim = -1;
    CHECK_INT(tvmrt_tensor_check(&t, &info), TVMCC_E_SHAPE);
    CHECK_INT(tvmrt_tensor_bytes(&t), 0);
    CHECK(!tvmrt_tensor_contiguous(&t));
    CHECK_INT(tvmrt_tensor_copy(&t, &t), TVMCC_E_SHAPE);

    t = good;
    t.data = NULL;
    CHECK_INT(tvmrt_tensor_copy(&t, &good), TVMCC_E_NULL);
    t.shape = none;
    CHECK_INT(tvmrt_tensor_copy(&t, &t), TVMCC_OK); /* no element */
    t.shape = empty;
    CHECK_INT(tvmrt_tensor_bytes(&t), 0);
    t.strides = strides;
    CHECK(tvmrt_tensor_contiguous(&t));
    CHECK_INT(tvmrt_tensor_copy(&t, &t), TVMCC_OK);
    t = good;
    t.shape = huge;
    CHECK_INT(tvmrt_tensor_copy(&t, &t), TVMCC_E_SHAPE);
    t.strides = strides;
    CHECK(!tvmrt_tensor_contiguous(&t));
    t = u = good;
    t.shape = u.shape = ones;
    t.strides = strides; /* dims of 1 are not walked */
    CHECK(tvmrt_tensor_contiguous(&t));
    CHECK_INT(tvmrt_tensor_copy(&t, &u), TVMCC_OK);
    t = good;
    t.device.type = TVMCC_DEVICE_CUDA;
    CHECK_INT(tvmrt_tensor_copy(&good, &t), TVMCC_E_DEVICE);
    CHECK_INT(tvmrt_tensor_copy(&t, &good), TVMCC_E_DEVICE);
}

static int32_t run_nothing(void *const *inputs, void *const *outputs, const tvmcc_params *params)
{
    (void)inputs, (void)outputs, (void)params;
    return TVMCC_OK;
}

static void test_null_models(void)
{
    float            data[24] = {0};
    tvmcc_params     params = {.struct_bytes = sizeof params};
    tvmrt_tensor     t = tvmrt_tensor_of(&info, data);
    tvmcc_model_info m = {
        .abi = TVMCC_ABI, .struct_bytes = sizeof m, .ninputs = 1, .inputs = &info};
    tvmrt_model   model = {0};
    const int64_t dim = 1;

    CHECK_INT(tvmrt_run(&m, &t, 1, NULL, 0, &params), TVMCC_E_NULL); /* no run */
    m.run = run_nothing;
    CHECK_INT(tvmrt_run(&m, &t, 1, NULL, 0, &params), TVMCC_OK);
    CHECK_INT(tvmrt_run(&m, &t, 1, NULL, 0, NULL), TVMCC_E_NULL);
    CHECK_INT(tvmrt_run(&m, NULL, 1, NULL, 0, &params), TVMCC_E_NULL);
    CHECK_INT(tvmrt_run(NULL, &t, 1, NULL, 0, &params), TVMCC_E_NULL);
    m.inputs = NULL;
    CHECK_INT(tvmrt_run(&m, &t, 1, NULL, 0, &params), TVMCC_E_NULL);
    m.arena_shared = 64;
    m.arena_private = SIZE_MAX / 4;
    CHECK(tvmrt_arena_bytes(&m, 0) == 64 + SIZE_MAX / 4);
    CHECK(tvmrt_arena_bytes(&m, 5) == SIZE_MAX);
    m.arena_shared = SIZE_MAX;
    CHECK(tvmrt_arena_bytes(&m, 1) == SIZE_MAX);
    CHECK_INT(tvmrt_arena_bytes(NULL, 1), 0);
    CHECK_INT(tvmrt_buckets(NULL), 0);
    CHECK(!tvmrt_bucket(NULL, &dim));
    m.nbuckets = 1;
    CHECK(!tvmrt_bucket(&m, NULL));
    CHECK_INT(tvmrt_model_open(NULL, "x", NULL), TVMCC_E_NULL);
    CHECK_INT(tvmrt_model_open(&model, NULL, NULL), TVMCC_E_NULL);
    tvmrt_model_close(&model);
    tvmrt_model_close(NULL);
    CHECK(!tvmrt_device_open(TVMCC_DEVICE_OPENCL, NULL, 0, NULL));
    tvmrt_device_close(NULL);
}

static void test_copy(void)
{
    float        a[24], b[24] = {0}, c[24] = {0};
    int64_t      transposed[3] = {1, 2, 6};
    tvmrt_tensor ta = tvmrt_tensor_of(&info, a), tb = tvmrt_tensor_of(&info, b),
                 tc = tvmrt_tensor_of(&info, c);

    for (int i = 0; i < 24; i++)
        a[i] = (float)i;
    tb.strides = transposed;
    CHECK_INT(tvmrt_tensor_copy(&tb, &ta), TVMCC_OK);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++)
                CHECK(b[i + 2 * j + 6 * k] == a[12 * i + 4 * j + k]);
    CHECK_INT(tvmrt_tensor_copy(&tc, &tb), TVMCC_OK);
    CHECK(memcmp(a, c, sizeof a) == 0);
    tc.ndim = 2;
    CHECK_INT(tvmrt_tensor_copy(&tc, &tb), TVMCC_E_SHAPE);
}

static void test_memory(const tvmcc_device *d)
{
    char    out[16] = {0};
    void   *a, *b;
    int32_t rc = d->alloc(d->self, 64, &a);

    CHECK_INT(rc, TVMCC_OK);
    CHECK_INT(d->alloc(d->self, 0, &b), TVMCC_OK);
    d->free(d->self, b);
    CHECK_INT(d->alloc(d->self, 64, &b), TVMCC_OK);
    CHECK_INT(d->upload(d->self, a, 8, "weights", 8), TVMCC_OK);
    CHECK_INT(d->copy(d->self, b, 16, a, 8, 8), TVMCC_OK);
    CHECK_INT(d->download(d->self, out, b, 16, 8), TVMCC_OK);
    CHECK_INT(d->wait(d->self), TVMCC_OK);
    CHECK_STR(out, "weights");
    d->free(d->self, a);
    d->free(d->self, b);
}

static void test_cpu(void)
{
    const tvmcc_device *d = tvmrt_cpu_device();
    void               *p;

    test_memory(d);
    CHECK(!d->module_load && !d->launch);
    CHECK_INT(d->alloc(d->self, SIZE_MAX - 8, &p), TVMCC_E_DEVICE);
}

static const char source[] =
    "__kernel void scale(__global float *x, float f, __local float *t, int n) {\n"
    "    int i = get_global_id(0), l = get_local_id(0);\n"
    "    t[l] = i < n ? x[i] : 0;\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    if (i < n) x[i] = t[l] * f;\n"
    "}\n";

static void test_kernel(const tvmcc_device *d)
{
    float           data[100], f = 3;
    int32_t         n = 100;
    uint32_t        grid[3] = {4, 1, 1}, block[3] = {32, 1, 1};
    void           *module, *kernel, *buffer;
    const tvmcc_arg args[] = {{TVMCC_ARG_BUFFER, 0, NULL},
                              {TVMCC_ARG_VALUE, sizeof f, &f},
                              {TVMCC_ARG_LOCAL, 32 * sizeof f, NULL},
                              {TVMCC_ARG_VALUE, sizeof n, &n}};
    tvmcc_arg       a[4];

    for (int i = 0; i < n; i++)
        data[i] = (float)i;
    CHECK_INT(d->module_load(d->self, TVMCC_CODE_SOURCE, "error", 5, "", &module), TVMCC_E_DEVICE);
    CHECK(strstr(d->last_error(d->self), "clBuildProgram"));
    CHECK_INT(d->module_load(d->self, TVMCC_CODE_SOURCE, source, sizeof source - 1, "", &module),
              0);
    CHECK_INT(d->kernel(d->self, module, "none", &kernel), TVMCC_E_DEVICE);
    CHECK_INT(d->kernel(d->self, module, "scale", &kernel), TVMCC_OK);
    CHECK_INT(d->alloc(d->self, sizeof data, &buffer), TVMCC_OK);
    CHECK_INT(d->upload(d->self, buffer, 0, data, sizeof data), TVMCC_OK);
    memcpy(a, args, sizeof a);
    a[0].p = buffer;
    CHECK_INT(d->launch(d->self, kernel, grid, block, a, 4), TVMCC_OK);
    CHECK_INT(d->wait(d->self), TVMCC_OK);
    CHECK_INT(d->download(d->self, data, buffer, 0, sizeof data), TVMCC_OK);
    for (int i = 0; i < n; i++)
        CHECK(data[i] == 3.0f * (float)i);
    d->free(d->self, buffer);
    d->kernel_free(d->self, kernel);
    d->module_free(d->self, module);
}

typedef struct {
    int32_t (*platforms)(uint32_t, void **, uint32_t *);
    int32_t (*devices)(void *, uint64_t, uint32_t, void **, uint32_t *);
    void *(*context)(const void *, uint32_t, void *const *, void (*)(void), void *, int32_t *);
    void *(*queue)(void *, void *, uint64_t, int32_t *);
    int32_t (*release_queue)(void *);
    int32_t (*release_context)(void *);
} Cl;

static void find_cl(Cl *cl)
{
    static const char *const names[] = {"clGetPlatformIDs",      "clGetDeviceIDs",
                                        "clCreateContext",       "clCreateCommandQueue",
                                        "clReleaseCommandQueue", "clReleaseContext"};
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW), *calls[sizeof names / sizeof *names];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        calls[i] = dlsym(library, names[i]);
    memcpy(cl, calls, sizeof calls);
}

/* On what the caller has made already. */
static void test_callers_queue(void *memory, size_t bytes)
{
    tvmrt_device_options o = {.struct_bytes = sizeof o, .number = TVMRT_FIRST_DEVICE};
    const char          *why = NULL;
    void                *platform, *device = NULL, *context, *queue, *other;
    Cl                   cl;
    const tvmcc_device  *d;

    find_cl(&cl);
    CHECK_INT(cl.platforms(1, &platform, NULL), 0);
    CHECK_INT(cl.devices(platform, 0xffffffffu, 1, &device, NULL), 0);
    context = cl.context(NULL, 1, &device, NULL, NULL, NULL);
    queue = cl.queue(context, device, 0, NULL);
    for (int i = 0; i < 3; i++) { /* the context, the queue, both */
        o.context = i == 1 ? NULL : context;
        o.stream = i == 0 ? NULL : queue;
        d = tvmrt_device_open_with(TVMCC_DEVICE_OPENCL, &o, memory, bytes, &why);
        CHECK(d && !why);
        test_memory(d);
        test_kernel(d);
        tvmrt_device_close(d);
    }
    other = cl.queue(context, device, 1, NULL);
    o.stream = other;
    if (other) {
        CHECK(!tvmrt_device_open_with(TVMCC_DEVICE_OPENCL, &o, memory, bytes, &why));
        CHECK_STR(why, "the OpenCL queue is out of order");
        cl.release_queue(other);
    }
    o.stream = queue;
    o.timing = 1;
    CHECK(!tvmrt_device_open_with(TVMCC_DEVICE_OPENCL, &o, memory, bytes, &why));
    CHECK_STR(why, "launches cannot be timed: the OpenCL queue was made without profiling");
    other = cl.queue(context, device, 2, NULL);
    o.stream = other;
    d = tvmrt_device_open_with(TVMCC_DEVICE_OPENCL, &o, memory, bytes, &why);
    CHECK(d && !why);
    test_kernel(d);
    double ns = 0;
    CHECK(tvmrt_timed_launches(d) > 0 && !tvmrt_launch_times(d, 1, &ns) && ns > 0);
    tvmrt_device_close(d);
    CHECK_INT(cl.release_queue(other), 0);
    o.timing = 0;
    o.stream = queue;
    o.name = "x";
    CHECK(!tvmrt_device_open_with(TVMCC_DEVICE_OPENCL, &o, memory, bytes, &why));
    CHECK_INT(cl.release_queue(queue), 0);
    CHECK_INT(cl.release_context(context), 0);
}

static void test_opencl(void)
{
    const char         *why = NULL;
    size_t              bytes = tvmrt_device_bytes(TVMCC_DEVICE_OPENCL);
    void               *memory = malloc(bytes);
    const tvmcc_device *d = tvmrt_device_open(TVMCC_DEVICE_OPENCL, memory, bytes, &why);

    CHECK(!tvmrt_device_open(TVMCC_DEVICE_OPENCL, memory, 8, NULL));
    if (!d) {
        printf("SKIP (%s)\n", why);
    } else {
        CHECK_INT(d->kind, TVMCC_DEVICE_OPENCL);
        test_memory(d);
        test_kernel(d);
        tvmrt_device_close(d);
        test_callers_queue(memory, bytes);
    }
    free(memory);
}

int main(void)
{
    setenv("POCL_CACHE_DIR", "/tmp", 0);
    RUN(test_shape);
    RUN(test_hostile);
    RUN(test_null_models);
    RUN(test_copy);
    RUN(test_cpu);
    RUN(test_opencl);
    return check_result();
}
