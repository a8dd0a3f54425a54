/* Metal of a machine without it: the calls of the Objective-C runtime that runtime/device/metal.c
 * makes, and the classes and methods behind them.  Kernels are compiled by clang and run on the
 * CPU.
 *
 * It is strict where the real one is: an encoder ends before its buffer is committed, and a command
 * buffer has one at a time; nothing runs before the commit; copies are of whole words; an argument
 * has a number that there is; a method that no class has ends the process, and so does an object
 * that is left when the device goes.
 *
 *     MOCK_METAL_FAIL=newCommandQueue   this method, or function, gives nil and an error
 *     MOCK_METAL_OLD=1                  what came later is not there: setMathMode:, times
 *     MOCK_METAL_THREADS=16             threads of a block, at most
 *     MOCK_METAL_SHARED=1024            bytes that a block may share; 32768
 *     MOCK_METAL_SYSTEM=12              the version of macOS, of which metallibs have a least; 15
 *     MOCK_METAL_LOG=file               each method's name is added to it */
#include "../mock/mock.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "objc_msgSend is written for x86-64 and aarch64"
#endif

enum { DEVICES = 2, BUFFERS = 31, BYTES = 4096, NODES = 4096, POOLS = 16, POOLED = 64 };
enum { STATUS_COMPLETED = 4, STATUS_ERROR = 5 };

typedef enum {
    CLASS,
    ARRAY,
    STRING,
    ERROR,
    OPTIONS,
    DATA,
    DEVICE,
    QUEUE,
    BUFFER,
    LIBRARY,
    FUNCTION,
    PIPELINE,
    COMMANDS,
    COMPUTE,
    BLIT
} Kind;

typedef struct Object Object;

/* A launch, or a copy where `from` is set. */
typedef struct {
    Object   *pipeline, *buffer[BUFFERS];
    char      bytes[BYTES];
    size_t    nbytes, bytes_at;
    MockIndex grid, block;
    char     *from, *to;
    size_t    n;
} Node;

struct Object {
    Kind        kind, of; /* of: what a class makes */
    _Atomic int refs;
    int         number;
    char       *text;   /* STRING, DATA; of an ERROR */
    char       *memory; /* BUFFER */
    size_t      bytes;
    void       *library; /* LIBRARY, FUNCTION, PIPELINE */
    MockKernel  kernel;
    int         least;              /* system of a LIBRARY, FUNCTION */
    Object     *commands, *encoder; /* of an encoder; of COMMANDS */
    Node       *nodes, now;         /* COMMANDS; of an encoder */
    size_t      nnodes;
    int         status;
    double      begun, done; /* COMMANDS, seconds */
    bool        ended, precise, imprecise, waited;
};

typedef struct {
    size_t width, height, depth;
} Size;

static _Atomic long          alive; /* objects that were made and not released, but for devices */
static _Thread_local Object *pool[POOLS][POOLED];
static _Thread_local int     npools, npooled[POOLS];

static void die(const char *what, const char *name)
{
    fprintf(stderr, "mock Metal: %s%s%s\n", what, name ? " " : "", name ? name : "");
    abort();
}

static bool fails(const char *name)
{
    const char *fail = getenv("MOCK_METAL_FAIL");

    return fail && !strncmp(name, fail, strlen(fail));
}

static void note(const char *name)
{
    const char *log = getenv("MOCK_METAL_LOG");
    FILE       *f = log ? fopen(log, "a") : NULL;

    if (f) {
        fprintf(f, "%s\n", name);
        fclose(f);
    }
}

/* ---- objects ------------------------------------------------------------------------------------- */

static Object *make(Kind kind)
{
    Object *o = calloc(1, sizeof *o);

    o->kind = kind;
    o->refs = 1;
    alive += kind != DEVICE;
    return o;
}

static Object *retain(Object *o)
{
    o->refs++;
    return o;
}

static void release(Object *o)
{
    int left = --o->refs;

    if (left < 0)
        die("an object was released twice", NULL);
    if (left == 1 && o->kind == DEVICE && alive)
        die("objects were not released", NULL);
    if (left)
        return;
    if (o->memory)
        mock_free(o->memory, "Metal");
    if (o->commands)
        release(o->commands);
    alive -= o->kind != DEVICE;
    free(o->text);
    free(o->nodes);
    free(o);
}

static Object *pooled(Object *o)
{
    if (!npools || npooled[npools - 1] == POOLED)
        die("an object without a pool", NULL);
    pool[npools - 1][npooled[npools - 1]++] = o;
    return o;
}

void *objc_autoreleasePoolPush(void)
{
    if (npools == POOLS)
        die("pools in each other", NULL);
    npooled[npools++] = 0;
    return &pool[npools - 1];
}

void objc_autoreleasePoolPop(void *p)
{
    if (!npools || p != &pool[npools - 1])
        die("another pool is innermost", NULL);
    npools--;
    for (int i = 0; i < npooled[npools]; i++)
        release(pool[npools][i]);
}

static Object *string(const char *text, size_t n)
{
    Object *s = make(STRING);

    s->text = strndup(text, n);
    return s;
}

static void set_error(Object **error, const char *text)
{
    if (!error)
        return;
    *error = pooled(make(ERROR));
    (*error)->text = strdup(text);
}

/* ---- Foundation ---------------------------------------------------------------------------------- */

static const char *utf8(Object *o, const char *name)
{
    (void)name;
    return o->text;
}

static Object *description(Object *o, const char *name)
{
    (void)name;
    return pooled(string(o->text, strlen(o->text)));
}

static void object_release(Object *o, const char *name)
{
    (void)name;
    release(o);
}

static Object *object_retain(Object *o, const char *name)
{
    (void)name;
    return retain(o);
}

static Object *class_new(Object *o, const char *name)
{
    (void)name;
    return make(o->of);
}

static Object *string_init(Object *o, const char *name, const void *bytes, size_t n,
                           size_t encoding)
{
    (void)name;
    if (encoding != 4)
        die("an encoding that is not UTF-8", NULL);
    o->text = strndup(bytes, n);
    return o;
}

static size_t array_count(Object *o, const char *name)
{
    (void)o, (void)name;
    return DEVICES;
}

static Object *device_of(int number);

static Object *array_at(Object *o, const char *name, size_t i)
{
    (void)o, (void)name;
    if (i >= DEVICES)
        die("no such element", NULL);
    return device_of((int)i);
}

/* ---- devices and memory -------------------------------------------------------------------------- */

/* Devices last as long as the system. */
static Object *device_of(int number)
{
    static Object *all[DEVICES];

    if (!all[number]) {
        all[number] = make(DEVICE);
        all[number]->number = number;
    }
    return all[number];
}

Object *MTLCreateSystemDefaultDevice(void)
{
    note(__func__);
    return fails(__func__) ? NULL : retain(device_of(0));
}

Object *MTLCopyAllDevices(void)
{
    note(__func__);
    return fails(__func__) ? NULL : make(ARRAY);
}

static Object *device_name(Object *o, const char *name)
{
    char text[32];

    (void)name;
    snprintf(text, sizeof text, "mock GPU %d", o->number);
    return pooled(string(text, strlen(text)));
}

static size_t device_memory(Object *o, const char *name)
{
    (void)name;
    return (size_t)(o->number + 1) << 30;
}

static signed char is_unified(Object *o, const char *name)
{
    (void)o, (void)name;
    return 1;
}

static Object *new_queue(Object *o, const char *name)
{
    (void)o;
    return fails(name) ? NULL : make(QUEUE);
}

static Object *new_buffer(Object *o, const char *name, size_t bytes, size_t options)
{
    (void)o;
    if (fails(name) || !bytes || options)
        return NULL;
    Object *b = make(BUFFER);
    b->memory = mock_alloc(bytes);
    b->bytes = bytes;
    return b;
}

static void *contents(Object *o, const char *name)
{
    (void)name;
    return o->memory;
}

/* ---- libraries ----------------------------------------------------------------------------------- */

static signed char responds(Object *o, const char *name, const char *selector)
{
    (void)o, (void)name;
    return (strcmp(selector, "setMathMode:") && strcmp(selector, "GPUStartTime")) ||
           !getenv("MOCK_METAL_OLD");
}

/* Functions are fast ones until something else is said. */
static void set_math_mode(Object *o, const char *name, long mode)
{
    (void)name;
    o->precise = mode == 0;
    o->imprecise = true;
}

static void set_math_functions(Object *o, const char *name, long which)
{
    (void)name;
    o->imprecise = which != 1;
}

static void set_fast_math(Object *o, const char *name, signed char fast)
{
    (void)name;
    o->precise = !fast;
}

/* Is this word the beginning of a variable, not of a pointer to one? */
static bool declares(const char *text, const char *at)
{
    size_t      n = strcspn(at, "[;=()");
    const char *before = at;

    while (before > text && strchr(" \t\n", before[-1]))
        before--;
    return (at[n] == '[' || at[n] == ';') && !memchr(at, '*', n) &&
           (before == text || strchr(";{}", before[-1]));
}

/* The text, its variables that a block shares marked, with an entry for each of its kernels behind
 * it.
 */
static char *with_entries(const char *text)
{
    const char *mark = "kernel void ", *most = "max_total_threads_per_threadgroup(",
               *shared = "threadgroup ", *rest = text;
    const bool together = strstr(text, "_barrier") || strstr(text, "simdgroup_");
    char      *out = NULL;
    size_t     n = 0;
    FILE      *f = open_memstream(&out, &n);

    for (const char *at = text; (at = strstr(at, shared)); at++)
        if (declares(text, at)) {
            fprintf(f, "%.*sMOCK_SHARED ", (int)(at - rest), rest);
            rest = at;
        }
    fprintf(f, "%s\n", rest);
    for (const char *at = text; (at = strstr(at, mark)); at++) {
        const char *line = at, *name = at + strlen(mark);

        while (line > text && line[-1] != '\n')
            line--;
        const char *bound = strstr(line, most);
        fprintf(f, "MOCK_KERNEL(%.*s, %d, %d)\n", (int)strcspn(name, "("), name,
                bound && bound < at ? atoi(bound + strlen(most)) : MOCK_THREADS, together);
    }
    fclose(f);
    return out;
}

static Object *make_library(const char *name, const char *source, Object **error)
{
    size_t bytes = 0;
    char  *log = NULL, *text = with_entries(source);
    void  *image = fails(name) ? NULL : mock_translate(text, &bytes, &log);
    void  *library = image ? mock_load(image, bytes) : NULL;

    free(text);
    free(image);
    if (!library)
        set_error(error, log ? log : "the compiler is out of order");
    free(log);
    if (!library)
        return NULL;
    Object *l = make(LIBRARY);
    l->library = library;
    return l;
}

static Object *new_library(Object *o, const char *name, Object *source, Object *options,
                           Object **error)
{
    (void)o;
    if (!options->precise || options->imprecise)
        die("arithmetic is not precise", NULL);
    return make_library(name, source->text, error);
}

/* Of the tools in place of Apple's: which system, then the text (xcrun.in). */
static Object *new_library_of_data(Object *o, const char *name, Object *data, Object **error)
{
    static const char head[] = "MTLB macosx ";
    const char       *text = strchr(data->text, '\n');

    (void)o;
    if (strncmp(data->text, head, strlen(head)) || !text) {
        set_error(error, "Invalid library file");
        return NULL;
    }
    Object *l = make_library(name, text, error);
    if (l)
        l->least = atoi(data->text + strlen(head));
    return l;
}

/* libdispatch copies what has no destructor. */
Object *dispatch_data_create(const void *bytes, size_t n, void *queue, void *destructor)
{
    Object *d = make(DATA);

    note(__func__);
    if (queue || destructor)
        die("data that is not copied", NULL);
    d->text = strndup(bytes, n);
    return d;
}

static Object *new_function(Object *o, const char *name, Object *symbol)
{
    MockKernel k;

    if (fails(name) || !mock_find(o->library, symbol->text, &k))
        return NULL;
    Object *f = make(FUNCTION);
    f->kernel = k;
    f->least = o->least;
    return f;
}

static Object *new_pipeline(Object *o, const char *name, Object *function, Object **error)
{
    const char *system = getenv("MOCK_METAL_SYSTEM");

    (void)o;
    if (fails(name)) {
        set_error(error, "the pipeline is out of order");
        return NULL;
    }
    if (function->least > (system ? atoi(system) : 15)) {
        set_error(error, "the function's deployment target is incompatible with this OS");
        return NULL;
    }
    Object *p = make(PIPELINE);
    p->kernel = function->kernel;
    return p;
}

static size_t most_shared(Object *o, const char *name)
{
    const char *less = getenv("MOCK_METAL_SHARED");

    (void)o, (void)name;
    return less ? (size_t)atoi(less) : 32 << 10;
}

static size_t most_threads(Object *o, const char *name)
{
    const char *less = getenv("MOCK_METAL_THREADS");

    (void)name;
    return less ? (size_t)atoi(less) : (size_t)o->kernel.threads;
}

/* ---- commands ------------------------------------------------------------------------------------ */

static Object *new_commands(Object *o, const char *name)
{
    (void)o;
    if (fails(name))
        return NULL;
    Object *c = make(COMMANDS);
    c->nodes = calloc(NODES, sizeof *c->nodes);
    return pooled(c);
}

static Object *encoder(Object *commands, const char *name, Kind kind)
{
    if (fails(name))
        return NULL;
    if (commands->encoder || commands->status)
        die("a command buffer has an encoder, or was committed:", name);
    Object *e = make(kind);
    e->commands = retain(commands);
    commands->encoder = e;
    return pooled(e);
}

static Object *compute_encoder(Object *o, const char *name)
{
    return encoder(o, name, COMPUTE);
}

static Object *blit_encoder(Object *o, const char *name)
{
    return encoder(o, name, BLIT);
}

static void end_encoding(Object *o, const char *name)
{
    (void)name;
    if (o->ended)
        die("an encoder ended twice", NULL);
    o->ended = true;
    o->commands->encoder = NULL;
}

static Node *add(Object *encoder)
{
    Object *c = encoder->commands;

    if (encoder->ended || c->nnodes == NODES)
        die("an encoder that ended, or too many commands", NULL);
    return &c->nodes[c->nnodes++];
}

static void set_pipeline(Object *o, const char *name, Object *pipeline)
{
    (void)name;
    o->now.pipeline = pipeline;
}

static void set_buffer(Object *o, const char *name, Object *buffer, size_t offset, size_t i)
{
    (void)name;
    if (i >= BUFFERS || offset || buffer->kind != BUFFER)
        die("no such argument", NULL);
    o->now.buffer[i] = buffer;
}

static void set_bytes(Object *o, const char *name, const void *bytes, size_t n, size_t i)
{
    (void)name;
    if (i >= BUFFERS || n > BYTES)
        die("no such argument, or too long", NULL);
    memcpy(o->now.bytes, bytes, n);
    o->now.nbytes = n;
    o->now.bytes_at = i;
}

static void dispatch(Object *o, const char *name, Size grid, Size block)
{
    Node *n = add(o);

    (void)name;
    if (!o->now.pipeline || !grid.width || !grid.height || !grid.depth ||
        block.width * block.height * block.depth > most_threads(o->now.pipeline, NULL))
        die("a launch of nothing, or of too many threads", NULL);
    *n = o->now;
    n->grid = (MockIndex){(unsigned)grid.width, (unsigned)grid.height, (unsigned)grid.depth};
    n->block = (MockIndex){(unsigned)block.width, (unsigned)block.height, (unsigned)block.depth};
}

static void copy(Object *o, const char *name, Object *from, size_t from_offset, Object *to,
                 size_t to_offset, size_t bytes)
{
    Node *n = add(o);

    (void)name;
    if ((from_offset | to_offset | bytes) % 4 || !bytes || from_offset + bytes > from->bytes ||
        to_offset + bytes > to->bytes)
        die("a copy that is not of words in both buffers", NULL);
    n->from = from->memory + from_offset;
    n->to = to->memory + to_offset;
    n->n = bytes;
}

/* The arguments of a kernel: its buffers and bytes by their numbers, then where it is. */
static bool run(Node *n)
{
    const MockKernel *k = &n->pipeline->kernel;
    void             *args[BUFFERS + 2], *at[BUFFERS];
    int               last = k->nargs - 2;

    for (int i = 0; i < last; i++) {
        at[i] = i == (int)n->bytes_at ? n->bytes : n->buffer[i] ? n->buffer[i]->memory : NULL;
        args[i] = &at[i];
    }
    if (last != (int)n->bytes_at + 1)
        die("a kernel has other arguments", NULL);
    args[last] = k->block;
    args[last + 1] = k->thread;
    return mock_run(k, n->grid, n->block, args);
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void commit(Object *o, const char *name)
{
    if (o->encoder || o->status)
        die("committed twice, or with an encoder", NULL);
    o->status = fails(name) ? STATUS_ERROR : STATUS_COMPLETED;
    o->begun = seconds();
    for (size_t i = 0; i < o->nnodes && o->status == STATUS_COMPLETED; i++) {
        Node *n = &o->nodes[i];

        if (n->from)
            memmove(n->to, n->from, n->n);
        else if (!run(n))
            o->status = STATUS_ERROR;
    }
    o->done = seconds();
    free(o->nodes);
    o->nodes = NULL;
}

static void wait(Object *o, const char *name)
{
    (void)name;
    if (!o->status)
        die("waited for what was not committed", NULL);
    o->waited = true;
}

/* 0 before it has ended, which nobody knows who did not wait. */
static double gpu_start(Object *o, const char *name)
{
    (void)name;
    return o->waited ? o->begun : 0;
}

static double gpu_end(Object *o, const char *name)
{
    (void)name;
    return o->waited ? o->done : 0;
}

static size_t status(Object *o, const char *name)
{
    (void)name;
    return (size_t)o->status;
}

static Object *commands_error(Object *o, const char *name)
{
    (void)o, (void)name;
    Object *error = NULL;

    set_error(&error, "the GPU stopped");
    return error;
}

/* ---- the Objective-C runtime --------------------------------------------------------------------- */

static Object classes[] = {{.kind = CLASS, .of = OPTIONS, .text = "MTLCompileOptions"},
                           {.kind = CLASS, .of = STRING, .text = "NSString"}};

Object *objc_getClass(const char *name)
{
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (!strcmp(classes[i].text, name))
            return &classes[i];
    die("no class", name);
    return NULL;
}

/* Selectors are their names here. */
const char *sel_registerName(const char *name)
{
    return name;
}

#define ANY (-1)
static const struct {
    int         kind;
    const char *name;
    void       *function;
} methods[] = {{ANY, "release", object_release},
               {ANY, "retain", object_retain},
               {CLASS, "new", class_new},
               {CLASS, "alloc", class_new},
               {STRING, "initWithBytes:length:encoding:", string_init},
               {STRING, "UTF8String", utf8},
               {ERROR, "localizedDescription", description},
               {ARRAY, "count", array_count},
               {ARRAY, "objectAtIndex:", array_at},
               {OPTIONS, "respondsToSelector:", responds},
               {OPTIONS, "setMathMode:", set_math_mode},
               {OPTIONS, "setMathFloatingPointFunctions:", set_math_functions},
               {OPTIONS, "setFastMathEnabled:", set_fast_math},
               {DEVICE, "name", device_name},
               {DEVICE, "recommendedMaxWorkingSetSize", device_memory},
               {DEVICE, "hasUnifiedMemory", is_unified},
               {DEVICE, "maxThreadgroupMemoryLength", most_shared},
               {DEVICE, "newCommandQueue", new_queue},
               {DEVICE, "newBufferWithLength:options:", new_buffer},
               {DEVICE, "newLibraryWithSource:options:error:", new_library},
               {DEVICE, "newLibraryWithData:error:", new_library_of_data},
               {DEVICE, "newComputePipelineStateWithFunction:error:", new_pipeline},
               {BUFFER, "contents", contents},
               {LIBRARY, "newFunctionWithName:", new_function},
               {PIPELINE, "maxTotalThreadsPerThreadgroup", most_threads},
               {QUEUE, "commandBuffer", new_commands},
               {COMMANDS, "computeCommandEncoder", compute_encoder},
               {COMMANDS, "blitCommandEncoder", blit_encoder},
               {COMMANDS, "commit", commit},
               {COMMANDS, "waitUntilCompleted", wait},
               {COMMANDS, "status", status},
               {COMMANDS, "respondsToSelector:", responds},
               {COMMANDS, "GPUStartTime", gpu_start},
               {COMMANDS, "GPUEndTime", gpu_end},
               {COMMANDS, "error", commands_error},
               {COMPUTE, "endEncoding", end_encoding},
               {COMPUTE, "setComputePipelineState:", set_pipeline},
               {COMPUTE, "setBuffer:offset:atIndex:", set_buffer},
               {COMPUTE, "setBytes:length:atIndex:", set_bytes},
               {COMPUTE, "dispatchThreadgroups:threadsPerThreadgroup:", dispatch},
               {BLIT, "endEncoding", end_encoding},
               {BLIT, "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", copy}};

/* A message to nil is nothing. */
static void *nothing(void)
{
    return NULL;
}

/* The function of a method; objc_msgSend goes on to it with its own arguments. */
__attribute__((used, visibility("hidden"))) void *mock_method(const Object *o, const char *name)
{
    if (!o)
        return (void *)(uintptr_t)nothing;
    note(name);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if ((methods[i].kind == ANY || methods[i].kind == (int)o->kind) &&
            !strcmp(methods[i].name, name))
            return methods[i].function;
    die("no method", name);
    return NULL;
}

#if defined(__x86_64__)
__asm__(".text\n.globl objc_msgSend\n.type objc_msgSend, @function\nobjc_msgSend:\n"
        "push %rdi\npush %rsi\npush %rdx\npush %rcx\npush %r8\npush %r9\nsub $8, %rsp\n"
        "call mock_method\n"
        "add $8, %rsp\npop %r9\npop %r8\npop %rcx\npop %rdx\npop %rsi\npop %rdi\njmp *%rax\n");
#else
__asm__(".text\n.globl objc_msgSend\n.type objc_msgSend, %function\nobjc_msgSend:\n"
        "stp x29, x30, [sp, #-80]!\nstp x0, x1, [sp, #16]\nstp x2, x3, [sp, #32]\n"
        "stp x4, x5, [sp, #48]\nstp x6, x7, [sp, #64]\n"
        "bl mock_method\nmov x16, x0\n"
        "ldp x6, x7, [sp, #64]\nldp x4, x5, [sp, #48]\nldp x2, x3, [sp, #32]\n"
        "ldp x0, x1, [sp, #16]\nldp x29, x30, [sp], #80\nbr x16\n");
#endif
