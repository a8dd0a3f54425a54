/* Images that kernels have in the place of buffers, on the device that fake_opencl.c says: when
 * they are made, how often, what is left of them, and what is said where they cannot be. */
#include "tvmcc/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Alignas(64) char room[8192];
static const tvmcc_device *d;
static void               *module, *kernel;
static int                 failures;

#define CHECK(condition)                                                   \
    do {                                                                   \
        if (!(condition)) {                                                \
            printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
            failures++;                                                    \
        }                                                                  \
    } while (0)

enum { LIMIT = 65536 * 16, SMALL = 4096 };
static const uint8_t host[LIMIT + 64];

static int32_t load(const char *text)
{
    int32_t rc =
        d->module_load(d->self, TVMCC_CODE_SOURCE, text, strlen(text), "-cl-std=CL1.2", &module);

    return rc ? rc : d->kernel(d->self, module, "k", &kernel);
}

/* The fake ends the process if something is left. */
static void end(void)
{
    d->kernel_free(d->self, kernel);
    d->module_free(d->self, module);
    tvmrt_device_close(d);
    module = kernel = NULL;
}

static void begin(void)
{
    const char *why = "";

    d = tvmrt_device_open(TVMCC_DEVICE_OPENCL, room, sizeof room, &why);
    if (!d)
        exit((printf("no device: %s\n", why), 1));
}

static int32_t weights(uint8_t name, size_t bytes, void **memory)
{
    const uint8_t sha[32] = {name};

    return d->weights_load(d->self, sha, host, bytes, memory);
}

static int32_t launch(void *read, void *written)
{
    static const uint32_t one[3] = {1, 1, 1};
    int64_t               at = 0;
    tvmcc_arg             args[4] = {{.kind = TVMCC_ARG_BUFFER, .p = read},
                                     {.kind = TVMCC_ARG_VALUE, .bytes = 8, .p = &at},
                                     {.kind = TVMCC_ARG_BUFFER, .p = written},
                                     {.kind = TVMCC_ARG_VALUE, .bytes = 8, .p = &at}};

    return d->launch(d->self, kernel, one, one, args, 4);
}

static void is_refused(int32_t rc, const char *want)
{
    const char *said = rc == TVMCC_E_DEVICE ? d->last_error(d->self) : "it is taken";

    if (strcmp(said, want) != 0) {
        printf("'%s', not '%s'\n", said, want);
        failures++;
    }
}

static const char images[] = "image1d_buffer_t", plain[] = "kernel";

/* One of a buffer, though two models share the weights and launches are two; gone with them. */
static void are_made_once(void)
{
    void *w, *same, *arena;

    begin();
    CHECK(load(images) == TVMCC_OK);
    CHECK(weights(1, LIMIT, &w) == TVMCC_OK && weights(1, LIMIT, &same) == TVMCC_OK && w == same);
    CHECK(d->alloc(d->self, LIMIT + 64, &arena) == TVMCC_OK); /* is no image */
    CHECK(launch(w, arena) == TVMCC_OK && launch(w, arena) == TVMCC_OK);
    d->weights_free(d->self, w);
    CHECK(launch(w, arena) == TVMCC_OK);
    d->weights_free(d->self, w);
    CHECK(weights(2, SMALL, &w) == TVMCC_OK); /* the device takes one at a time */
    CHECK(launch(w, arena) == TVMCC_OK);
    d->weights_free(d->self, w);
    d->free(d->self, arena);
    end();
}

/* Of memory that is no model's weights at the first launch. */
static void are_made_late(void)
{
    void *read, *written;

    begin();
    CHECK(load(images) == TVMCC_OK);
    CHECK(d->alloc(d->self, SMALL, &read) == TVMCC_OK);
    CHECK(d->alloc(d->self, SMALL, &written) == TVMCC_OK);
    CHECK(launch(read, written) == TVMCC_OK);
    is_refused(launch(written, read), "clCreateImage failed with OpenCL error -6");
    d->free(d->self, read);
    CHECK(launch(written, written) == TVMCC_OK);
    d->free(d->self, written);
    end();
}

/* `open` fails, and leaves nothing; a program without images takes the same weights. */
static void are_too_large(void)
{
    void *w;

    begin();
    CHECK(load(images) == TVMCC_OK);
    is_refused(weights(1, LIMIT + 16, &w),
               "the weights are an image of 65537 texels, of which the device has 65536 at most; a "
               "program for --target=opencl reads by pointers");
    d->kernel_free(d->self, kernel);
    d->module_free(d->self, module);
    CHECK(load(plain) == TVMCC_OK);
    CHECK(weights(1, LIMIT + 16, &w) == TVMCC_OK);
    d->weights_free(d->self, w);
    end();
    setenv("FAKE_CL_NAME", "p1x32_0", 1); /* four times as many texels */
    begin();
    CHECK(load(images) == TVMCC_OK);
    CHECK(weights(1, LIMIT / 4, &w) == TVMCC_OK);
    d->weights_free(d->self, w);
    CHECK(weights(1, LIMIT / 4 + 4, &w) == TVMCC_E_DEVICE);
    end();
    unsetenv("FAKE_CL_NAME");
}

/* Weights that a model without images has loaded. */
static void are_of_shared_weights(void)
{
    void *w = NULL, *same = NULL;

    begin();
    CHECK(load(plain) == TVMCC_OK && weights(1, LIMIT + 16, &w) == TVMCC_OK);
    d->kernel_free(d->self, kernel);
    d->module_free(d->self, module);
    CHECK(load(images) == TVMCC_OK);
    CHECK(weights(1, LIMIT + 16, &same) == TVMCC_E_DEVICE && !same);
    d->weights_free(d->self, w);
    end();
}

static void are_not_there(void)
{
    void *w;

    setenv("FAKE_CL_IMAGES", "0", 1);
    begin();
    is_refused(load(images), "the device has no images, by which this program reads weights; one "
                             "for --target=opencl reads by pointers");
    CHECK(load(plain) == TVMCC_OK);
    end();
    unsetenv("FAKE_CL_IMAGES");
    setenv("FAKE_CL_IMAGE", "-10", 1);
    begin();
    CHECK(load(images) == TVMCC_OK);
    is_refused(weights(1, SMALL, &w), "clCreateImage failed with OpenCL error -10, the device has "
                                      "no images of such texels");
    end();
    unsetenv("FAKE_CL_IMAGE");
}

/* Of a parameter whose name says no texel that there is. */
static void have_names(void)
{
    static const char *const names[] = {"p0", "p4x32", "p2x32_0", "p4x64_0", "x4x32_0"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        setenv("FAKE_CL_NAME", names[i], 1);
        begin();
        is_refused(load(images), "clGetKernelArgInfo failed with OpenCL error -10, the device has "
                                 "no images of such texels");
        end();
    }
    unsetenv("FAKE_CL_NAME");
}

int main(void)
{
    setenv("FAKE_CL_BUILDS", "1", 1);
    are_made_once();
    are_made_late();
    are_too_large();
    are_of_shared_weights();
    are_not_there();
    have_names();
    return failures != 0;
}
