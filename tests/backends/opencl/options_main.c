/* By which options the runtime builds a program of the device that fake_opencl.c says, what it says
 * of binaries that the device refuses, and of blocks that it has no room for. */
#include "tvmcc/runtime.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST "-cl-std=CL1.2"
#define EXACT " -cl-fp32-correctly-rounded-divide-sqrt"

static int failures;

static void check(const char *config, const char *version, uint32_t form, const char *text,
                  const char *given, const char *want)
{
    size_t      bytes = (tvmrt_device_bytes(TVMCC_DEVICE_OPENCL) + 63) / 64 * 64;
    void       *room = aligned_alloc(64, bytes), *module = NULL;
    const char *why = "", *said = NULL;

    setenv("FAKE_CL_CONFIG", config, 1);
    setenv("FAKE_CL_VERSION", version, 1);
    const tvmcc_device *d = tvmrt_device_open(TVMCC_DEVICE_OPENCL, room, bytes, &why);
    if (d && d->module_load(d->self, form, text, strlen(text), given, &module) == TVMCC_E_DEVICE)
        said = strchr(d->last_error(d->self), '\n');
    if (!said || strcmp(said + 1, want) != 0) {
        printf("config %s of %s, '%s': built by '%s', not '%s'\n", config, version, text,
               said ? said + 1 : why, want);
        failures++;
    }
    if (d)
        tvmrt_device_close(d);
    free(room);
}

/* A program that computes with half, of which the device says that. */
static void check_half(const char *extensions, const char *config, bool taken)
{
    static const char text[] = "#pragma OPENCL EXTENSION cl_khr_fp16 : enable";
    static const char want[] = "the device does not compute with numbers of 16 bits (cl_khr_fp16), "
                               "as this program does; one for --target=opencl computes with f32";
    _Alignas(64) char room[4096];
    void             *module = NULL;
    const char       *why = "", *said;

    setenv("FAKE_CL_EXTENSIONS", extensions, 1);
    setenv("FAKE_CL_HALF", config, 1);
    const tvmcc_device *d = tvmrt_device_open(TVMCC_DEVICE_OPENCL, room, sizeof room, &why);
    if (d)
        d->module_load(d->self, TVMCC_CODE_SOURCE, text, strlen(text), LEAST, &module);
    said = d ? d->last_error(d->self) : why;
    if (!strcmp(said, want) == taken) {
        printf("extensions '%s', f16 as %s: '%s'\n", extensions, config, said);
        failures++;
    }
    if (d)
        tvmrt_device_close(d);
}

static void check_refused(const char *variable, const char *code, const char *want)
{
    _Alignas(64) char room[4096];
    void             *module = NULL;
    const char       *why = "", *said = "it is loaded";

    setenv(variable, code, 1);
    const tvmcc_device *d = tvmrt_device_open(TVMCC_DEVICE_OPENCL, room, sizeof room, &why);
    if (d && d->module_load(d->self, TVMCC_CODE_BINARY, "x", 1, "", &module) == TVMCC_E_DEVICE)
        said = d->last_error(d->self);
    if (strcmp(said, want) != 0) {
        printf("a refused binary: '%s', not '%s'\n", d ? said : why, want);
        failures++;
    }
    if (d)
        tvmrt_device_close(d); /* the fake ends the process if a program is left */
    unsetenv(variable);
}

/* A program of one kernel, of 8 x 4 x 2 threads that share 1000 bytes, on a device that has less by
 * a variable; NULL: it is loaded. */
static void check_block(const char *variable, const char *value, const char *want)
{
    static const tvmcc_code_part part = {"", 1};
    static const tvmcc_code      code = {.nparts = 1, .target = "", .options = "", .parts = &part};
    static const tvmcc_kernel_info kernel = {
        .name = "k", .threads_x = 8, .threads_y = 4, .threads_z = 2, .shared_bytes = 1000};
    static const tvmcc_program program = {.struct_bytes = sizeof program,
                                          .nhandles = 2,
                                          .ncodes = 1,
                                          .nkernels = 1,
                                          .codes = &code,
                                          .kernels = &kernel};
    _Alignas(64) char          room[4096];
    void                      *handles[2];
    const char                *why = "", *said = NULL;

    setenv("FAKE_CL_BUILDS", "1", 1);
    setenv(variable, value, 1);
    const tvmcc_device *d = tvmrt_device_open(TVMCC_DEVICE_OPENCL, room, sizeof room, &why);
    if (!d)
        said = why;
    else if (d->program_load(d->self, &program, handles))
        said = d->last_error(d->self);
    if (want ? !said || strcmp(said, want) != 0 : said != NULL) {
        printf("%s=%s: '%s', not '%s'\n", variable, value, said ? said : "it is loaded",
               want ? want : "it is loaded");
        failures++;
    }
    if (d) {
        d->program_free(d->self, &program, handles);
        tvmrt_device_close(d);
    }
    unsetenv(variable);
    unsetenv("FAKE_CL_BUILDS");
}

int main(void)
{
    static const char plain[] = "kernel", dot[] = "#ifdef __opencl_c_x", one[] = "OpenCL 1.2 x",
                      image[] = "image1d_buffer_t p4x32_0", three[] = "OpenCL 3.0 x";
    enum { SOURCE = TVMCC_CODE_SOURCE, BINARY = TVMCC_CODE_BINARY };
    char many[300] = "-D";

    memset(many + 2, 'x', sizeof many - 3);
    check("0x3f", one, SOURCE, plain, LEAST, LEAST);
    check("0x80", one, SOURCE, plain, LEAST, LEAST EXACT);
    check("0xbf", three, SOURCE, plain, LEAST, LEAST EXACT);
    check("0x80", three, SOURCE, dot, LEAST, "-cl-std=CL3.0" EXACT);
    check("0x3f", three, SOURCE, dot, LEAST, "-cl-std=CL3.0");
    check("0x80", one, SOURCE, plain, "", EXACT);
    check("0x80", one, SOURCE, plain, many, many); /* there is no room for more */
    check("0x80", one, SOURCE, image, LEAST, LEAST EXACT " -cl-kernel-arg-info");
    check("0x80", one, BINARY, image, LEAST, LEAST);
    check("0x80", one, BINARY, plain, LEAST, LEAST); /* has been compiled */
    check_half("cl_khr_fp64 cl_khr_fp16", "0x7", true);
    check_half("cl_khr_fp16 cl_khr_icd", "0x4", true);
    check_half("cl_khr_fp16", "0x8", false); /* rounds to zero */
    check_half("cl_khr_fp16x xcl_khr_fp16", "0x7", false);
    check_half("", "0x7", false);
    for (int i = 0; i < 2; i++) {
        const char *variable = i ? "FAKE_CL_STATUS" : "FAKE_CL_ERROR";

        check_refused(variable, "-42",
                      "clCreateProgramWithBinary failed with OpenCL error -42, the binary is for "
                      "another device");
        check_refused(variable, "-30", "clCreateProgramWithBinary failed with OpenCL error -30");
    }
    check_block("FAKE_CL_THREADS", "64", NULL);
    check_block("FAKE_CL_THREADS", "63",
                ": blocks of 'k' have 8 x 4 x 2 threads; the device has 63 x 63 x 256, 63 in all");
    check_block("FAKE_CL_Z", "1",
                ": blocks of 'k' have 8 x 4 x 2 threads; the device has 256 x 256 x 1, 256 in all");
    check_block("FAKE_CL_SHARED", "1000", NULL);
    check_block("FAKE_CL_SHARED", "999", ": blocks of 'k' share 1000 bytes; the device has 999");
    check_block("FAKE_CL_KERNEL_THREADS", "64", NULL);
    check_block(
        "FAKE_CL_KERNEL_THREADS", "32",
        ": blocks of 'k' have 8 x 4 x 2 threads; the device has 256 x 256 x 256, 32 in all");
    return failures != 0;
}
