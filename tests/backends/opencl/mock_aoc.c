/* aoc of a machine without Intel's FPGA SDK: the .aocx is the program as the first OpenCL device
 * here compiles it, which then takes it as a binary.
 *
 *     aoc [-march=emulator] [-board=<name>] -o program.aocx program.cl
 *
 * Anything else is refused, as is a folder with more than the text in it.  Of the board `other` the
 * file is for no device here.  MOCK_AOC_LOG: where each call's words go; MOCK_AOC_FAIL: what is
 * wrong with the text; MOCK_AOC_PACK: the file is the text, and no device is needed. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef void *Handle;

enum {
    TYPE_GPU = 4,
    SINGLE_FP_CONFIG = 0x101b,
    EXACT = 1 << 7,
    BINARY_SIZES = 0x1165,
    BINARIES = 0x1166,
    BUILD_LOG = 0x1183,
    MOST = 16
};
#define TYPE_ALL 0xffffffffu

#define CALLS(CALL)                                                                            \
    CALL(int32_t, clGetPlatformIDs, (uint32_t, Handle *, uint32_t *))                          \
    CALL(int32_t, clGetDeviceIDs, (Handle, uint64_t, uint32_t, Handle *, uint32_t *))          \
    CALL(int32_t, clGetDeviceInfo, (Handle, uint32_t, size_t, void *, size_t *))               \
    CALL(Handle, clCreateContext,                                                              \
         (const void *, uint32_t, const Handle *, void (*)(void), void *, int32_t *))          \
    CALL(Handle, clCreateProgramWithSource,                                                    \
         (Handle, uint32_t, const char **, const size_t *, int32_t *))                         \
    CALL(int32_t, clBuildProgram,                                                              \
         (Handle, uint32_t, const Handle *, const char *, void (*)(void), void *))             \
    CALL(int32_t, clGetProgramBuildInfo, (Handle, Handle, uint32_t, size_t, void *, size_t *)) \
    CALL(int32_t, clGetProgramInfo, (Handle, uint32_t, size_t, void *, size_t *))              \
    CALL(int32_t, clReleaseProgram, (Handle))                                                  \
    CALL(int32_t, clReleaseContext, (Handle))

#define DECLARE(type, name, args) static type(*name) args;
CALLS(DECLARE)

static void fail(const char *what, const char *more)
{
    fprintf(stderr, "Error: %s%s\n", what, more);
    exit(1);
}

static void open_library(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW), *call;

    if (!library)
        fail("no OpenCL device", "");
#define OPEN(type, name, args)                 \
    if (!(call = dlsym(library, #name)))       \
        fail("libOpenCL.so.1 has no ", #name); \
    memcpy(&name, &call, sizeof call);
    CALLS(OPEN)
}

static Handle find_device(void)
{
    static const uint32_t types[] = {TYPE_GPU, TYPE_ALL};
    Handle                platforms[MOST], device;
    uint32_t              n = 0, found = 0;

    if (clGetPlatformIDs(MOST, platforms, &n))
        n = 0;
    for (int t = 0; t < 2; t++)
        for (uint32_t i = 0; i < n && i < MOST; i++)
            if (!clGetDeviceIDs(platforms[i], types[t], 1, &device, &found) && found)
                return device;
    fail("no OpenCL device", "");
    return NULL;
}

/* By the options that the run-time library builds text with. */
static char *binary_of(const char *text, size_t *bytes)
{
    int32_t  code = 0;
    Handle   device, context, program;
    uint64_t config = 0;
    size_t   n = strlen(text);
    char    *binary, log[4096] = "";

    open_library();
    device = find_device();
    clGetDeviceInfo(device, SINGLE_FP_CONFIG, sizeof config, &config, NULL);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    if (code)
        fail("no context", "");
    program = clCreateProgramWithSource(context, 1, &text, &n, &code);
    if (code)
        fail("no program", "");
    if (clBuildProgram(program, 1, &device,
                       config & EXACT ? "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"
                                      : "-cl-std=CL1.2",
                       NULL, NULL)) {
        clGetProgramBuildInfo(program, device, BUILD_LOG, sizeof log - 1, log, NULL);
        fail("the text does not build: ", log);
    }
    if (clGetProgramInfo(program, BINARY_SIZES, sizeof *bytes, bytes, NULL) || !*bytes)
        fail("no binary", "");
    binary = malloc(*bytes);
    if (clGetProgramInfo(program, BINARIES, sizeof binary, &binary, NULL))
        fail("no binary", "");
    clReleaseProgram(program);
    clReleaseContext(context);
    return binary;
}

static char *read_text(void)
{
    FILE  *f = fopen("program.cl", "rb");
    size_t n;
    char  *text;

    if (!f || fseek(f, 0, SEEK_END))
        fail("no program.cl", "");
    n = (size_t)ftell(f);
    rewind(f);
    text = calloc(n + 1, 1);
    if (fread(text, 1, n, f) != n)
        fail("program.cl cannot be read", "");
    fclose(f);
    return text;
}

static void write_file(const char *path, const char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");

    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f))
        fail("cannot write ", path);
}

static void look_around(void)
{
    DIR           *here = opendir(".");
    struct dirent *e;

    while (here && (e = readdir(here)))
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && strcmp(e->d_name, "program.cl"))
            fail("the folder is another program's, it has ", e->d_name);
    closedir(here);
}

static void note_call(int argc, char **argv)
{
    const char *path = getenv("MOCK_AOC_LOG");
    FILE       *f = path ? fopen(path, "a") : NULL;

    for (int i = 1; f && i < argc; i++)
        fprintf(f, "%s%s", argv[i], i + 1 < argc ? " " : "\n");
    if (f)
        fclose(f);
}

int main(int argc, char **argv)
{
    const char *wrong = getenv("MOCK_AOC_FAIL"), *board = "";
    int         i = 1;
    size_t      n = 0;
    char       *text, *made;

    note_call(argc, argv);
    i += i < argc && !strcmp(argv[i], "-march=emulator");
    if (i < argc && !strncmp(argv[i], "-board=", 7))
        board = argv[i++] + 7;
    if (argc - i != 3 || strcmp(argv[i], "-o") || strcmp(argv[i + 1], "program.aocx") ||
        strcmp(argv[i + 2], "program.cl"))
        fail("unknown option ", i < argc ? argv[i] : "");
    look_around();
    puts("aoc: Environment checks completed successfully.");
    if (mkdir("program", 0777))
        fail("cannot make the work folder", "");
    write_file("program/build.log", "", 0);
    write_file("program.aoco", "", 0);
    if (wrong)
        fail(wrong, "");
    text = read_text();
    if (!strstr(text, "__kernel void k_"))
        fail("the text has no kernel", "");
    if (!strcmp(board, "other"))
        made = strdup("of another board"), n = strlen(made);
    else if (getenv("MOCK_AOC_PACK"))
        made = strdup(text), n = strlen(made);
    else
        made = binary_of(text, &n);
    write_file("program.aocx", made, n);
    free(text);
    free(made);
    return 0;
}
