/* libcuda.so.1, or with MOCK_HIP libamdhip64.so, of a machine without a GPU: memory is malloc'd,
 * and kernels are functions that are called once for each thread.
 *
 * It is strict where the real one is: without a current context there is no memory, a capture
 * forbids waiting, blocks and grids have limits, machine code is for one generation.  A barrier
 * that not all threads of a block reach ends the launch.  Memory is filled with ones and ends in a
 * mark, and what was not given back when the context goes ends the process.  Copies from and to
 * pinned memory happen when someone waits for their stream, and so does what follows them, or a
 * function of the host; a copy of other memory waits.
 *
 *     MOCK_CUDA_ARCH=90           which GPU it is; 80
 *     MOCK_HIP_MACH=0x4c          ... of AMD, by the number of code objects; 0x3f, a gfx90a
 *     MOCK_CUDA_FAIL=cuMemAlloc   this call gives CUDA_ERROR_OUT_OF_MEMORY
 *     -DMOCK_OLD                  a driver without events; of AMD that of ROCm 5.2, which does not
 *                                 call functions of the host
 *     MOCK_CUDA_LOG=file          each call's name is added to it, and the launches of a replay */
#include "../mock/mock.h"
#include "mock_codes.h"

#ifdef MOCK_HIP
#include "hip_names.h"
#endif
#if defined MOCK_HIP || !defined MOCK_OLD
#define HAS_EVENTS
#endif

#include <dlfcn.h>
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef MOCK_HIP
enum { INTEGRATED = 16 }; /* the attribute's number */
#else
enum { INTEGRATED = 18, CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76 };
#endif
enum { DEVICES = 2, MAX_ARGS = 512 };

typedef MockIndex Index;

typedef struct {
    void       *library;
    const char *code; /* ... or a code object, whose kernels have names and cannot be run */
} Module;

typedef struct Function {
    Module          *module;
    MockKernel       kernel;
    int              given; /* bytes that a launch may give its blocks */
    struct Function *next;
} Function;

/* A launch, its arguments by value. */
typedef struct Node {
    Function    *f;
    Index        grid, block;
    uint64_t     value[MAX_ARGS];
    struct Node *next;
} Node;

typedef struct {
    Node  *nodes, **end;
    size_t n;
} Graph;

typedef struct Event {
    enum { UNRECORDED, PENDING, DONE } state;
    unsigned      flags;
    double        ns; /* when it was reached */
    struct Event *next;
} Event;

/* What a stream has still to do: a function of the host, an event, a launch, or a copy. */
typedef struct Task {
    void (*fn)(void *);
    void        *data;
    Event       *event;
    Node        *node;
    void        *to;
    const void  *from;
    size_t       bytes;
    struct Task *next;
} Task;

typedef struct Stream {
    Graph         *capture;
    bool           asked;
    int            failed; /* a launch that was not waited for */
    Task          *tasks;
    struct Stream *next;
} Stream;

typedef struct Pinned {
    char          *at;
    size_t         bytes;
    struct Pinned *next;
} Pinned;

static int               initialized, retained;
static long              alive; /* things that were made and not given back */
static _Thread_local int depth;
static Function         *functions;
static Stream           *streams;
static Pinned           *pinned;
#ifdef HAS_EVENTS
static Event *events;
#endif

/* ---- the environment ----------------------------------------------------------------------------- */

static int enter(const char *call, int needs_context)
{
    const char *fail = getenv("MOCK_CUDA_FAIL"), *log = getenv("MOCK_CUDA_LOG");
    FILE       *f = log ? fopen(log, "a") : NULL;

    if (f) {
        fprintf(f, "%s\n", call);
        fclose(f);
    }
    if (fail && !strncmp(call, fail, strlen(fail)))
        return OUT_OF_MEMORY;
    if (!initialized)
        return NOT_INITIALIZED;
    return needs_context && depth == 0 ? INVALID_CONTEXT : OK;
}

/* One thread at a time is in here, to the end of the function. */
#define CALL(needs_context)                       \
    MOCK_ALONE;                                   \
    int entered = enter(__func__, needs_context); \
    if (entered)                                  \
    return entered

static int arch(void)
{
    const char *given = getenv("MOCK_CUDA_ARCH");

    return given ? atoi(given) : 80;
}

/* ---- devices and contexts ------------------------------------------------------------------------ */

int cuInit(unsigned flags)
{
    (void)flags;
    initialized = 1;
    CALL(0);
    return OK;
}

int cuDeviceGetCount(int *n)
{
    CALL(0);
    *n = DEVICES;
    return OK;
}

int cuDeviceGet(int *device, int n)
{
    CALL(0);
    *device = n;
    return n < 0 || n >= DEVICES ? INVALID_DEVICE : OK;
}

int cuDeviceGetName(char *name, int n, int device)
{
    CALL(0);
    snprintf(name, (size_t)n, "mock GPU %d of sm_%d", device, arch());
    return OK;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    CALL(0);
    *bytes = (size_t)(device + 1) << 30;
    return OK;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    CALL(0);
    (void)device;
    switch (attribute) {
    case INTEGRATED: *value = 0; return OK;
#ifndef MOCK_HIP
    case CAPABILITY_MAJOR: *value = arch() / 10; return OK;
    case CAPABILITY_MINOR: *value = arch() % 10; return OK;
#endif
    default: return INVALID_VALUE;
    }
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    CALL(0);
    retained++;
    *context = (void *)(uintptr_t)(device + 1);
    return OK;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    CALL(0);
    if (--retained == 0 && alive) {
        fprintf(stderr, "mock CUDA: %ld things were not given back\n", alive);
        abort();
    }
    return OK;
}

int cuCtxPushCurrent_v2(void *context)
{
    CALL(0);
    if (!context)
        return INVALID_CONTEXT;
    depth++;
    return OK;
}

int cuCtxPopCurrent_v2(void **context)
{
    CALL(1);
    *context = NULL;
    depth--;
    return OK;
}

#ifdef MOCK_HIP
const char *hipGetErrorString(int code)
{
    const char *text = text_of(code);

    return text ? text : "hipErrorUnknown";
}
#else
int cuGetErrorString(int code, const char **text)
{
    *text = text_of(code);
    return *text ? OK : INVALID_VALUE;
}
#endif

/* ---- streams ------------------------------------------------------------------------------------- */

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int run_node(const Node *n)
{
    void *args[MAX_ARGS];

    for (unsigned i = 0; i < MAX_ARGS; i++)
        args[i] = (void *)(uintptr_t)&n->value[i];
    return n->f->kernel.run && mock_run(&n->f->kernel, n->grid, n->block, args) ? OK
                                                                                : LAUNCH_FAILED;
}

static void reach(Event *e)
{
    e->ns = now_ns();
    e->state = DONE;
}

static void add_task(Stream *s, Task t)
{
    Task **end = &s->tasks, *kept = malloc(sizeof t);

    while (*end)
        end = &(*end)->next;
    *kept = t;
    *end = kept;
}

static void carry_out(Stream *s)
{
    for (Task *t = s->tasks; t; t = s->tasks) {
        if (t->fn)
            t->fn(t->data);
        else if (t->event)
            reach(t->event);
        else if (t->to && !s->failed)
            memmove(t->to, t->from, t->bytes);
        else if (t->node && !s->failed)
            s->failed = run_node(t->node);
        s->tasks = t->next;
        free(t->node);
        free(t);
    }
}

/* All that the stream was asked for; the first fault that nobody was told of. */
static int finish(Stream *s)
{
    int failed;

    carry_out(s);
    failed = s->failed;
    s->failed = OK;
    return failed;
}

/* Before something goes that they may use. */
static void carry_out_all(void)
{
    for (Stream *s = streams; s; s = s->next)
        carry_out(s);
}

/* ---- memory -------------------------------------------------------------------------------------- */

int cuMemAlloc_v2(uint64_t *at, size_t bytes)
{
    CALL(1);
    if (!bytes)
        return INVALID_VALUE;
    *at = (uint64_t)(uintptr_t)mock_alloc(bytes);
    alive++;
    return OK;
}

int cuMemFree_v2(uint64_t at)
{
    CALL(1);
    carry_out_all();
    mock_free((void *)(uintptr_t)at, "CUDA");
    alive--;
    return OK;
}

int cuMemAllocHost_v2(void **at, size_t bytes)
{
    CALL(1);
    Pinned *p = malloc(sizeof *p);
    *p = (Pinned){malloc(bytes), bytes, pinned};
    *at = p->at;
    pinned = p;
    alive++;
    return OK;
}

int cuMemFreeHost(void *at)
{
    CALL(1);
    carry_out_all();
    Pinned **p = &pinned;
    while (*p && (*p)->at != at)
        p = &(*p)->next;
    if (!*p)
        return INVALID_VALUE;
    Pinned *gone = *p;
    *p = gone->next;
    free(gone->at);
    free(gone);
    alive--;
    return OK;
}

static bool is_pinned(const char *at)
{
    for (const Pinned *p = pinned; p; p = p->next)
        if (at >= p->at && at < p->at + p->bytes)
            return true;
    return false;
}

/* Now, or where the host's memory stays and is pinned when someone waits. */
static int copy(Stream *s, void *to, const void *from, size_t bytes, const void *host)
{
    int rc;

    if (s->capture)
        return CAPTURE_UNSUPPORTED; /* the real one records it; nobody asks for that */
    if (!host || is_pinned(host)) {
        add_task(s, (Task){.to = to, .from = from, .bytes = bytes});
        return OK;
    }
    rc = finish(s);
    memcpy(to, from, bytes);
    return rc;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, Stream *s)
{
    CALL(1);
    return copy(s, (void *)(uintptr_t)to, from, bytes, from);
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, Stream *s)
{
    CALL(1);
    return copy(s, to, (const void *)(uintptr_t)from, bytes, to);
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, Stream *s)
{
    CALL(1);
    return copy(s, (void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes, NULL);
}

/* ---- modules ------------------------------------------------------------------------------------- */

/* Text is compiled now, as PTX is: that of mock_nvrtc.c, or LLVM IR in place of LLVM's PTX. */
static int load_text(const char *text, void **library)
{
    size_t bytes = 0;
    char  *log = NULL;
    void  *image = strncmp(text, "; ModuleID", 10) ? mock_translate(text, &bytes, &log)
                                                   : mock_retarget(text, &bytes, &log);

    *library = image ? mock_load(image, bytes) : NULL;
    free(log);
    free(image);
    return *library ? OK : INVALID_PTX;
}

int cuModuleLoadDataEx(Module **out, const void *image, unsigned n, int *options, void **values)
{
    void *library = NULL;
    int   rc = OK;

    CALL(1);
    if (n == 2 && options[0] == 5 && options[1] == 6 && (size_t)(uintptr_t)values[1] > 0)
        *(char *)values[0] = 0;
    else
        return INVALID_VALUE;
    bool machine = memcmp(image, ELFMAG, SELFMAG) == 0;
#ifdef MOCK_HIP
    if (machine && (rc = check_code_object(image)) == OK) {
        *out = calloc(1, sizeof **out);
        (*out)->code = image;
        alive++;
        return OK;
    }
    machine = machine && !rc;
#endif
    if (rc)
        ;
    else if (machine)
        library = mock_load(image, elf_bytes(image));
    else
        rc = load_text(image, &library);
    const int *of = library ? dlsym(library, "mock_arch") : NULL;
    /* machine code is for GPUs of its generation from there on, PTX for all later ones */
    if (!rc && of && (*of > arch() || (machine && *of / 10 != arch() / 10)))
        rc = NO_BINARY_FOR_GPU;
    if (rc) {
        snprintf(values[0], (size_t)(uintptr_t)values[1], "mock: this is sm_%d", arch());
        if (library)
            dlclose(library);
        return rc;
    }
    *out = calloc(1, sizeof **out);
    (*out)->library = library;
    alive++;
    return OK;
}

int cuModuleUnload(Module *m)
{
    CALL(1);
    carry_out_all();
    for (Function **f = &functions; *f;)
        if ((*f)->module == m) {
            Function *gone = *f;
            *f = gone->next;
            free(gone);
        } else {
            f = &(*f)->next;
        }
    if (m->library)
        dlclose(m->library);
    free(m);
    alive--;
    return OK;
}

int cuModuleGetFunction(Function **out, Module *m, const char *name)
{
    Function f = {.module = m, .next = functions};

    CALL(1);
    if (m->code ? !has_descriptor(m->code, name) : !mock_find(m->library, name, &f.kernel))
        return NOT_FOUND;
    if (m->code)
        f.kernel.threads = MOCK_THREADS;
    *out = functions = malloc(sizeof f);
    **out = f;
    return OK;
}

/* ---- launches, streams, graphs ------------------------------------------------------------------- */

static bool fits(const Function *f, Index grid, Index size)
{
    uint64_t threads = (uint64_t)size.x * size.y * size.z;

    return grid.x && grid.y && grid.z && threads && threads <= (uint64_t)f->kernel.threads &&
           threads <= MOCK_THREADS && size.z <= 64 && grid.x <= INT32_MAX && grid.y <= 65535 &&
           grid.z <= 65535;
}

/* What a block may have beyond what its kernel may declare, of the GPU. */
enum { DECLARED = 48 << 10, GIVEN = 8 };
static int most_given(void)
{
    int a = arch();

    return (a == 80 || a == 87    ? 163
            : a == 90 || a == 100 ? 227
            : a > 80              ? 99
            : a == 75             ? 64
                                  : 48)
           << 10;
}

int cuFuncSetAttribute(Function *f, int attribute, int value)
{
    CALL(1);
    if (attribute != GIVEN || value < 0 || value > most_given())
        return INVALID_VALUE;
    f->given = value;
    return OK;
}

int cuFuncGetAttribute(int *value, int attribute, Function *f)
{
    CALL(1);
    if (attribute != GIVEN)
        return INVALID_VALUE;
    *value = f->given ? f->given : DECLARED;
    return OK;
}

int cuLaunchKernel(Function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, Stream *s, void **args, void **extra)
{
    Node n = {.f = f, .grid = {gx, gy, gz}, .block = {bx, by, bz}};

    CALL(1);
    if (f->given ? shared != (unsigned)f->given : shared > DECLARED) /* as the runtime does */
        return INVALID_VALUE;
    if (extra || f->kernel.nargs > MAX_ARGS || !fits(f, n.grid, n.block))
        return INVALID_VALUE;
    for (int i = 0; i < f->kernel.nargs; i++)
        memcpy(&n.value[i], args[i], 8);
    if (!s->capture && !s->tasks)
        return run_node(&n);
    Node *kept = malloc(sizeof n);
    *kept = n;
    if (!s->capture) {
        add_task(s, (Task){.node = kept});
        return OK;
    }
    *s->capture->end = kept;
    s->capture->end = &kept->next;
    s->capture->n++;
    return OK;
}

int cuStreamCreate(Stream **s, unsigned flags)
{
    (void)flags;
    CALL(1);
    *s = calloc(1, sizeof **s);
    (*s)->next = streams;
    streams = *s;
    alive++;
    return OK;
}

int cuStreamDestroy_v2(Stream *s)
{
    CALL(1);
    finish(s);
    Stream **at = &streams;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    free(s);
    alive--;
    return OK;
}

int cuStreamSynchronize(Stream *s)
{
    CALL(1);
    return s->capture ? CAPTURE_UNSUPPORTED : finish(s);
}

/* Done at the second time of asking. */
int cuStreamQuery(Stream *s)
{
    CALL(1);
    if (s->capture)
        return CAPTURE_UNSUPPORTED;
    s->asked = !s->asked;
    return s->asked ? NOT_READY : finish(s);
}

#ifdef HAS_EVENTS
static bool is_event(const Event *e)
{
    const Event *at = events;

    while (at && at != e)
        at = at->next;
    return at != NULL;
}

int cuEventCreate(Event **e, unsigned flags)
{
    Event event = {.flags = flags, .next = events};

    CALL(1);
    if (flags > 7)
        return INVALID_VALUE;
    *e = events = malloc(sizeof event);
    **e = event;
    alive++;
    return OK;
}

int cuEventDestroy_v2(Event *e)
{
    CALL(1);
    if (!is_event(e))
        return INVALID_HANDLE;
    Event **at = &events;
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    free(e);
    alive--;
    return OK;
}

int cuEventRecord(Event *e, Stream *s)
{
    CALL(1);
    if (!is_event(e))
        return INVALID_HANDLE;
    if (s->capture)
        return CAPTURE_UNSUPPORTED; /* the real one records it; nobody asks for that */
    e->state = PENDING;
    if (s->tasks)
        add_task(s, (Task){.event = e});
    else
        reach(e);
    return OK;
}

int cuEventElapsedTime(float *ms, Event *from, Event *to)
{
    CALL(1);
    if (!is_event(from) || !is_event(to) || !from->state || !to->state || from->flags & 2 ||
        to->flags & 2) /* that times nothing */
        return INVALID_HANDLE;
    if (from->state != DONE || to->state != DONE)
        return NOT_READY;
    *ms = (float)((to->ns - from->ns) * 1e-6);
    return OK;
}
#endif

#ifndef MOCK_OLD
int cuLaunchHostFunc(Stream *s, void (*fn)(void *), void *data)
{
    CALL(1);
    if (s->capture)
        return CAPTURE_UNSUPPORTED;
    add_task(s, (Task){.fn = fn, .data = data});
    return OK;
}
#endif

int cuStreamBeginCapture_v2(Stream *s, int mode)
{
    (void)mode;
    CALL(1);
    if (s->capture)
        return CAPTURE_UNSUPPORTED;
    s->capture = calloc(1, sizeof *s->capture);
    s->capture->end = &s->capture->nodes;
    alive++;
    return OK;
}

static void free_graph(Graph *g)
{
    for (Node *n = g->nodes; n;) {
        Node *next = n->next;
        free(n);
        n = next;
    }
    free(g);
    alive--;
}

/* A capture ends, whatever comes of it. */
int cuStreamEndCapture(Stream *s, Graph **g)
{
    MOCK_ALONE;
    int rc = enter(__func__, 1);

    if (!rc && !s->capture)
        rc = CAPTURE_UNSUPPORTED;
    *g = rc ? NULL : s->capture;
    if (rc && s->capture)
        free_graph(s->capture);
    s->capture = NULL;
    return rc;
}

int cuGraphInstantiateWithFlags(Graph **out, const Graph *g, unsigned long long flags)
{
    (void)flags;
    CALL(1);
    *out = calloc(1, sizeof **out);
    (*out)->end = &(*out)->nodes;
    for (const Node *n = g->nodes; n; n = n->next) {
        Node *kept = malloc(sizeof *n);
        *kept = *n;
        kept->next = NULL;
        *(*out)->end = kept;
        (*out)->end = &kept->next;
    }
    alive++;
    return OK;
}

int cuGraphDestroy(Graph *g)
{
    CALL(1);
    free_graph(g);
    return OK;
}

int cuGraphExecDestroy(Graph *g)
{
    CALL(1);
    free_graph(g);
    return OK;
}

int cuGraphLaunch(Graph *g, Stream *s)
{
    int rc = OK;

    CALL(1);
    if (s->capture)
        return CAPTURE_UNSUPPORTED;
    for (const Node *n = g->nodes; n && !rc; n = n->next) {
        if (!s->tasks) {
            rc = run_node(n);
            continue;
        }
        Node *kept = malloc(sizeof *kept);
        *kept = *n;
        add_task(s, (Task){.node = kept});
    }
    return rc;
}
