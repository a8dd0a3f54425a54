/* libnvrtc of a machine without the CUDA Toolkit: kernels become functions of this machine.
 *
 * `sm_<n>` gives a shared library in place of machine code, `compute_<n>` the text that it is made
 * of in place of PTX.  As the real one, it takes no other options than those that it knows. */
#include "../mock/mock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, BAD_OPTION = 5, COMPILATION = 6 };

typedef struct {
    char  *text, *log, *ptx;
    void  *code;
    size_t bytes;
} Program;

int nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return OK;
}

static const int archs[] = {75, 80, 86, 90, 120};

int nvrtcGetNumSupportedArchs(int *n)
{
    *n = sizeof archs / sizeof *archs;
    return OK;
}

int nvrtcGetSupportedArchs(int *out)
{
    memcpy(out, archs, sizeof archs);
    return OK;
}

int nvrtcCreateProgram(Program **p, const char *text, const char *name, int nheaders,
                       const char *const *headers, const char *const *names)
{
    (void)name, (void)nheaders, (void)headers, (void)names;
    *p = calloc(1, sizeof **p);
    (*p)->text = strdup(text);
    return OK;
}

int nvrtcDestroyProgram(Program **p)
{
    free((*p)->text);
    free((*p)->log);
    free((*p)->ptx);
    free((*p)->code);
    free(*p);
    *p = NULL;
    return OK;
}

static int fail(Program *p, int code, const char *why)
{
    free(p->log);
    p->log = strdup(why);
    return code;
}

/* The text, with an entry for each of its kernels behind it. */
static char *with_entries(const char *text, int arch)
{
    char  *out = NULL;
    size_t n = 0;
    FILE  *f = open_memstream(&out, &n);

    fprintf(f, "%s\nextern \"C\" const int mock_arch = %d;\n", text, arch);
    for (const char *at = text; (at = strstr(at, "__global__ void ")); at++) {
        const char *name = at + strlen("__global__ void "), *bound = "__launch_bounds__(";
        int         threads = 1024;

        if (!strncmp(name, bound, strlen(bound))) {
            threads = atoi(name + strlen(bound));
            name = strchr(name, ')') + 2;
        }
        fprintf(f, "MOCK_KERNEL(%.*s, %d, %d)\n", (int)strcspn(name, "("), name, threads,
                strstr(text, "__syncthreads") || strstr(text, "__shfl_"));
    }
    fclose(f);
    return out;
}

int nvrtcCompileProgram(Program *p, int n, const char *const *options)
{
    const char *arch = NULL, *known = "--gpu-architecture=", *log = getenv("MOCK_CUDA_LOG");
    FILE       *f = log ? fopen(log, "a") : NULL;
    int         number = 0;
    size_t      k = 0;

    if (f) {
        fprintf(f, "nvrtcCompileProgram\n");
        fclose(f);
    }
    for (int i = 0; i < n; i++) {
        if (!strncmp(options[i], known, strlen(known)))
            arch = options[i] + strlen(known);
        else if (strcmp(options[i], "-fmad=false") && strcmp(options[i], "--std=c++17"))
            return fail(p, BAD_OPTION, "nvrtc: error: unrecognized option");
    }
    if (arch && strchr(arch, '_'))
        number = atoi(strchr(arch, '_') + 1);
    while (k < sizeof archs / sizeof *archs && archs[k] != number)
        k++;
    if (k == sizeof archs / sizeof *archs)
        return fail(p, BAD_OPTION, "nvrtc: error: invalid value for --gpu-architecture (-arch)");
    p->ptx = with_entries(p->text, number);
    if (*arch != 's')
        return OK;
    p->code = mock_translate(p->ptx, &p->bytes, &p->log);
    return p->code ? OK : COMPILATION;
}

int nvrtcGetProgramLogSize(const Program *p, size_t *bytes)
{
    *bytes = p->log ? strlen(p->log) + 1 : 1;
    return OK;
}

int nvrtcGetProgramLog(const Program *p, char *log)
{
    strcpy(log, p->log ? p->log : "");
    return OK;
}

int nvrtcGetCUBINSize(const Program *p, size_t *bytes)
{
    *bytes = p->bytes;
    return OK;
}

int nvrtcGetCUBIN(const Program *p, char *code)
{
    memcpy(code, p->code, p->bytes);
    return OK;
}

int nvrtcGetPTXSize(const Program *p, size_t *bytes)
{
    *bytes = strlen(p->ptx) + 1;
    return OK;
}

int nvrtcGetPTX(const Program *p, char *text)
{
    strcpy(text, p->ptx);
    return OK;
}
