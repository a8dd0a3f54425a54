/* opencl_program.c: programs and kernels of OpenCL, and images that these have in the place of
 * buffers.
 *
 * Programs come as source or as the binary of this device.  The names of a kernel's parameters say
 * which are images (backends/opencl/images.c): `p4x32_1`, by texels of four numbers of 32 bits.  A
 * launch is given buffers; an image of each is made once and lives as long. */
#include "opencl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IMAGE_TYPE "image1d_buffer_t"
#define HALF "cl_khr_fp16"
#define DOTS "cl_khr_integer_dot_product"

static void note_build_log(OpenCl *cl, Handle program)
{
    size_t n = strlen(cl->state.error), got = 0;

    cl->state.error[n++] = ':';
    cl->state.error[n++] = '\n';
    cl->state.error[n] = 0;
    /* a log longer than the room is an error of the call: it then stays empty */
    if (cl->clGetProgramBuildInfo(program, cl->device, CL_PROGRAM_BUILD_LOG,
                                  sizeof cl->state.error - n - 1, cl->state.error + n, &got) != 0)
        cl->state.error[n] = 0;
    cl->state.error[sizeof cl->state.error - 1] = 0;
}

static bool has_text(const char *text, size_t bytes, const char *what)
{
    size_t n = strlen(what);

    for (size_t i = 0; i + n <= bytes; i++)
        if (!memcmp(text + i, what, n))
            return true;
    return false;
}

/* A product names the least version of the language that it needs.  What only OpenCL C 3.0 may have
 * (products of bytes) its text asks for by macros, which are there if that version is named. */
static const char *name_version(OpenCl *cl, const char *source, size_t bytes, const char *options)
{
    static const char least[] = "-cl-std=CL1.2", later[] = "-cl-std=CL3.0";
    char              version[256] = "";

    if (strcmp(options, least) != 0 || !has_text(source, bytes, "__opencl_c_"))
        return options;
    cl->clGetDeviceInfo(cl->device, CL_DEVICE_VERSION, sizeof version, version, NULL);
    return strncmp(version, "OpenCL 3.", 9) ? options : later;
}

static const char *add_option(const char *options, const char *more, char room[MAX_OPTIONS])
{
    if (strlen(options) + strlen(more) >= MAX_OPTIONS)
        return options;
    if (options != room)
        strcpy(room, options);
    return strcat(room, more);
}

/* Quotients and roots of f32 may be wrong by 2.5 and 3 units in the last place where a program does
 * not ask for exact ones, which not every device has. */
static const char *ask_for_exact(OpenCl *cl, const char *options, char room[MAX_OPTIONS])
{
    uint64_t config = 0;

    cl->clGetDeviceInfo(cl->device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config, &config, NULL);
    return config & CL_FP_EXACT_DIVIDE_SQRT
               ? add_option(options, " -cl-fp32-correctly-rounded-divide-sqrt", room)
               : options;
}

/* ---- numbers of 16 bits ----------------------------------------------------------------------- */

static bool has_extension(OpenCl *cl, const char *name)
{
    size_t bytes = 0, n = strlen(name);
    bool   found = false;
    char  *all;

    if (cl->clGetDeviceInfo(cl->device, CL_DEVICE_EXTENSIONS, 0, NULL, &bytes) ||
        !(all = calloc(bytes + 1, 1)))
        return false;
    cl->clGetDeviceInfo(cl->device, CL_DEVICE_EXTENSIONS, bytes, all, NULL);
    for (const char *p = all; (p = strstr(p, name)) && !found; p += n)
        found = (p == all || p[-1] == ' ') && (!p[n] || p[n] == ' ');
    free(all);
    return found;
}

static int32_t no_half(OpenCl *cl)
{
    uint64_t config = 0;

    cl->clGetDeviceInfo(cl->device, CL_DEVICE_HALF_FP_CONFIG, sizeof config, &config, NULL);
    if (has_extension(cl, HALF) && config & CL_FP_ROUND_TO_NEAREST)
        return TVMCC_OK;
    snprintf(cl->state.error, sizeof cl->state.error,
             "the device does not compute with numbers of 16 bits (" HALF
             "), as this program does; "
             "one for --target=opencl computes with f32");
    return TVMCC_E_DEVICE;
}

/* ---- products of bytes ------------------------------------------------------------------------ */

static int32_t no_dots(OpenCl *cl)
{
    if (has_extension(cl, DOTS))
        return TVMCC_OK;
    snprintf(cl->state.error, sizeof cl->state.error,
             "the device does not multiply bytes four a step (" DOTS
             "), as this program does; one for --target=opencl does without");
    return TVMCC_E_DEVICE;
}

/* ---- images ---------------------------------------------------------------------------------- */

static int32_t no_images(OpenCl *cl)
{
    uint32_t has = 0;

    cl->clGetDeviceInfo(cl->device, CL_DEVICE_IMAGES, sizeof has, &has, NULL);
    if (has)
        return TVMCC_OK;
    snprintf(cl->state.error, sizeof cl->state.error,
             "the device has no images, by which this program reads weights; one for "
             "--target=opencl reads by pointers");
    return TVMCC_E_DEVICE;
}

static int32_t fits_image(OpenCl *cl, size_t texels)
{
    size_t most = 0;

    cl->clGetDeviceInfo(cl->device, CL_DEVICE_MAX_TEXELS, sizeof most, &most, NULL);
    most = most < INT32_MAX ? most : INT32_MAX; /* kernels count them by int */
    if (texels <= most)
        return TVMCC_OK;
    snprintf(cl->state.error, sizeof cl->state.error,
             "the weights are an image of %llu texels, of which the device has %llu at most; a "
             "program for --target=opencl reads by pointers",
             (unsigned long long)texels, (unsigned long long)most);
    return TVMCC_E_DEVICE;
}

static int32_t new_image(OpenCl *cl, Handle memory, Texel texel, Handle *out)
{
    void       *all = cl->images;
    size_t      bytes = 0, texels;
    int32_t     code = 0, rc;
    ImageFormat format = {.order = texel.lanes == 1 ? CL_R : CL_RGBA,
                          .type = texel.bits == 8    ? CL_UNSIGNED_INT8
                                  : texel.bits == 16 ? CL_UNSIGNED_INT16
                                                     : CL_UNSIGNED_INT32};

    rc = check(cl, cl->clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof bytes, &bytes, NULL),
               "clGetMemObjectInfo");
    texels = bytes / (texel.lanes * texel.bits / 8);
    if (!rc)
        rc = fits_image(cl, texels);
    if (!rc)
        rc = tvmrt_device_grow(&cl->state, &all, cl->nimages, &cl->image_room, sizeof *cl->images);
    if (rc)
        return rc;
    cl->images = all;
    ImageDesc desc = {.type = CL_MEM_IMAGE1D_BUFFER, .width = texels, .buffer = memory};
    *out = cl->clCreateImage(cl->context, CL_MEM_READ_ONLY, &format, &desc, NULL, &code);
    if (code)
        return check(cl, code, "clCreateImage");
    cl->images[cl->nimages++] = (Image){memory, *out, texel};
    return TVMCC_OK;
}

static bool same_texel(Texel a, Texel b)
{
    return a.lanes == b.lanes && a.bits == b.bits;
}

/* What is written to the buffer by calls before a launch, its kernel finds in the image. */
static int32_t image_of(OpenCl *cl, Handle memory, Texel texel, Handle *out)
{
    for (uint32_t i = 0; i < cl->nimages; i++)
        if (cl->images[i].memory == memory && same_texel(cl->images[i].texel, texel)) {
            *out = cl->images[i].image;
            return TVMCC_OK;
        }
    return new_image(cl, memory, texel, out);
}

void tvmrt_opencl_forget_images(OpenCl *cl, Handle memory)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < cl->nimages; i++)
        if (!memory || cl->images[i].memory == memory)
            cl->clReleaseMemObject(cl->images[i].image);
        else
            cl->images[n++] = cl->images[i];
    cl->nimages = n;
}

/* So that `open` fails where an image cannot be, and another target may be taken. */
int32_t tvmrt_opencl_weights(DeviceState *state, void *memory)
{
    OpenCl *cl = (OpenCl *)state;
    Handle  image;
    int32_t rc = TVMCC_OK;

    for (uint32_t i = 0; i < cl->ntexels && !rc; i++)
        rc = image_of(cl, memory, cl->texels[i], &image);
    return rc;
}

/* Of a parameter's name; no other is an image. */
static Texel texel_of(const char *name)
{
    Texel    t = {0};
    uint32_t i;

    if (sscanf(name, "p%ux%u_%u", &t.lanes, &t.bits, &i) != 3 || (t.lanes != 1 && t.lanes != 4) ||
        (t.bits != 8 && t.bits != 16 && t.bits != 32))
        return (Texel){0};
    return t;
}

static void note_texel(OpenCl *cl, Texel t)
{
    uint32_t i = 0;

    while (i < cl->ntexels && !same_texel(cl->texels[i], t))
        i++;
    if (i == cl->ntexels && i < TEXELS)
        cl->texels[cl->ntexels++] = t;
}

static int32_t find_arg(OpenCl *cl, Kernel *k, uint32_t i)
{
    char    type[64] = "", name[64] = "";
    int32_t code =
        cl->clGetKernelArgInfo(k->kernel, i, CL_KERNEL_ARG_TYPE_NAME, sizeof type, type, NULL);

    if (!code)
        code = cl->clGetKernelArgInfo(k->kernel, i, CL_KERNEL_ARG_NAME, sizeof name, name, NULL);
    if (!code && !strcmp(type, IMAGE_TYPE)) {
        k->arg[i] = texel_of(name);
        if (!k->arg[i].lanes)
            code = CL_IMAGE_FORMAT_NOT_SUPPORTED;
        else
            note_texel(cl, k->arg[i]);
    }
    return check(cl, code, "clGetKernelArgInfo");
}

int32_t tvmrt_opencl_set_arg(OpenCl *cl, const Kernel *k, uint32_t i, const tvmcc_arg *a)
{
    Handle  memory = (Handle)(uintptr_t)a->p;
    int32_t rc = TVMCC_OK;

    if (a->kind == TVMCC_ARG_BUFFER && i < k->nargs && k->arg[i].lanes)
        rc = image_of(cl, memory, k->arg[i], &memory);
    if (rc)
        return rc;
    if (a->kind == TVMCC_ARG_BUFFER)
        rc = cl->clSetKernelArg(k->kernel, i, sizeof memory, &memory);
    else
        rc = cl->clSetKernelArg(k->kernel, i, a->bytes, a->kind == TVMCC_ARG_LOCAL ? NULL : a->p);
    return check(cl, rc, "clSetKernelArg");
}

/* ---- programs -------------------------------------------------------------------------------- */

static int32_t new_program(OpenCl *cl, uint32_t form, const void *code, size_t bytes, Handle *out)
{
    const char    *source = code;
    const uint8_t *binary = code;
    int32_t        rc = 0, status = 0;

    if (form == TVMCC_CODE_SOURCE)
        *out = cl->clCreateProgramWithSource(cl->context, 1, &source, &bytes, &rc);
    else
        *out = cl->clCreateProgramWithBinary(cl->context, 1, &cl->device, &bytes, &binary, &status,
                                             &rc);
    if (!rc && status)
        cl->clReleaseProgram(*out);
    return check(cl, rc ? rc : status,
                 form == TVMCC_CODE_SOURCE ? "clCreateProgramWithSource"
                                           : "clCreateProgramWithBinary");
}

static int32_t build(OpenCl *cl, Program *p, uint32_t form, const void *code, size_t bytes,
                     const char *options)
{
    char    room[MAX_OPTIONS];
    int32_t rc = new_program(cl, form, code, bytes, &p->program);

    if (rc)
        return rc;
    if (form == TVMCC_CODE_SOURCE)
        options = ask_for_exact(cl, name_version(cl, code, bytes, options), room);
    if (p->images)
        options = add_option(options, " -cl-kernel-arg-info", room);
    rc = check(cl, cl->clBuildProgram(p->program, 1, &cl->device, options, NULL, NULL),
               "clBuildProgram");
    if (rc) {
        note_build_log(cl, p->program);
        cl->clReleaseProgram(p->program);
    }
    return rc;
}

int32_t tvmrt_opencl_module_load(void *self, uint32_t form, const void *code, size_t bytes,
                                 const char *options, void **module)
{
    OpenCl  *cl = self;
    Program *p = tvmrt_device_new(&cl->state, sizeof *p);
    int32_t  rc = p ? TVMCC_OK : TVMCC_E_DEVICE;

    cl->ntexels = 0;
    if (!rc && (p->images = form == TVMCC_CODE_SOURCE && has_text(code, bytes, IMAGE_TYPE)))
        rc = no_images(cl);
    if (!rc && form == TVMCC_CODE_SOURCE && has_text(code, bytes, HALF))
        rc = no_half(cl);
    if (!rc && form == TVMCC_CODE_SOURCE && has_text(code, bytes, DOTS))
        rc = no_dots(cl);
    if (!rc)
        rc = build(cl, p, form, code, bytes, options);
    if (rc)
        free(p);
    else
        *module = p;
    return rc;
}

void tvmrt_opencl_module_free(void *self, void *module)
{
    OpenCl  *cl = self;
    Program *p = module;

    cl->clReleaseProgram(p->program);
    free(p);
}

void tvmrt_opencl_kernel_free(void *self, void *kernel)
{
    OpenCl *cl = self;
    Kernel *k = kernel;

    cl->clReleaseKernel(k->kernel);
    free(k);
}

int32_t tvmrt_opencl_kernel(void *self, void *module, const char *name, void **kernel)
{
    OpenCl  *cl = self;
    Program *p = module;
    int32_t  code = 0, rc;
    uint32_t n = 0;
    Handle   made = cl->clCreateKernel(p->program, name, &code);
    Kernel  *k;

    if ((rc = check(cl, code, name)))
        return rc;
    if (p->images)
        rc = check(cl, cl->clGetKernelInfo(made, CL_KERNEL_NUM_ARGS, sizeof n, &n, NULL),
                   "clGetKernelInfo");
    if (rc || !(k = tvmrt_device_new(&cl->state, sizeof *k + n * sizeof *k->arg))) {
        cl->clReleaseKernel(made);
        return rc ? rc : TVMCC_E_DEVICE;
    }
    k->kernel = made;
    k->nargs = n;
    for (uint32_t i = 0; i < n && !rc; i++)
        rc = find_arg(cl, k, i);
    if (rc)
        tvmrt_opencl_kernel_free(self, k);
    else
        *kernel = k;
    return rc;
}
