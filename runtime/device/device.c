/* device.c: opening a device, and what is the same for all.
 *
 * Libraries of devices are opened with dlopen, so neither the build nor the start of a program
 * depends on one.  The list of drivers is devices.def.
 */
#include "device.h"

#include <dlfcn.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE(kind, name) extern const DeviceDriver tvmrt_##name##_driver;
#include "devices.def"
#undef DEVICE

enum { ROOM = 8192, MOST_DEVICES = 64 }; /* for any driver's struct */

static const DeviceDriver *find(uint32_t kind)
{
    switch (kind) {
#define DEVICE(kind, name) \
    case TVMCC_DEVICE_##kind: return &tvmrt_##name##_driver;
#include "devices.def"
#undef DEVICE
    default: return NULL; /* any number that a model may name */
    }
}

/* ---- functions of the table ------------------------------------------------------------------ */

static const tvmcc_device *own(void *self)
{
    return &((DeviceState *)self)->driver->functions;
}

static int32_t device_alloc(void *self, size_t bytes, void **memory)
{
    size_t least = ((DeviceState *)self)->driver->least;

    return own(self)->alloc(self, bytes < least ? least : bytes, memory);
}

static void device_free(void *self, void *memory)
{
    if (memory)
        own(self)->free(self, memory);
}

static int32_t device_upload(void *self, void *memory, size_t offset, const void *host,
                             size_t bytes)
{
    return bytes ? own(self)->upload(self, memory, offset, host, bytes) : TVMCC_OK;
}

static int32_t device_download(void *self, void *host, void *memory, size_t offset, size_t bytes)
{
    return bytes ? own(self)->download(self, host, memory, offset, bytes) : TVMCC_OK;
}

static int32_t device_download_later(void *self, void *host, void *memory, size_t offset,
                                     size_t bytes)
{
    const tvmcc_device *d = own(self);

    if (!bytes)
        return TVMCC_OK;
    return (d->download_later ? d->download_later : d->download)(self, host, memory, offset, bytes);
}

static int32_t device_copy(void *self, void *to, size_t to_offset, void *from, size_t from_offset,
                           size_t bytes)
{
    return bytes ? own(self)->copy(self, to, to_offset, from, from_offset, bytes) : TVMCC_OK;
}

static int32_t device_module_load(void *self, uint32_t form, const void *code, size_t bytes,
                                  const char *options, void **module)
{
    *module = NULL;
    return own(self)->module_load(self, form, code, bytes, options ? options : "", module);
}

static void device_module_free(void *self, void *module)
{
    if (module)
        own(self)->module_free(self, module);
}

static void device_kernel_free(void *self, void *kernel)
{
    if (kernel)
        own(self)->kernel_free(self, kernel);
}

static int32_t device_launch(void *self, void *kernel, const uint32_t grid[3],
                             const uint32_t block[3], const tvmcc_arg *args, uint32_t nargs)
{
    for (int i = 0; i < 3; i++)
        if (grid[i] == 0)
            return TVMCC_OK;
    return own(self)->launch(self, kernel, grid, block, args, nargs);
}

/* ---- weights --------------------------------------------------------------------------------- */

struct SharedWeights {
    uint8_t        sha256[32];
    size_t         bytes;
    void          *memory;
    uint32_t       users;
    SharedWeights *next;
};

static SharedWeights *find_weights(DeviceState *s, const uint8_t sha256[32], size_t bytes)
{
    static const uint8_t unknown[32];
    SharedWeights       *w = s->weights;

    if (!memcmp(sha256, unknown, sizeof unknown))
        return NULL;
    while (w && (w->bytes != bytes || memcmp(w->sha256, sha256, sizeof w->sha256) != 0))
        w = w->next;
    return w;
}

static int32_t use_weights(DeviceState *s, void *memory)
{
    return s->driver->weights ? s->driver->weights(s, memory) : TVMCC_OK;
}

static int32_t device_weights_load(void *self, const uint8_t sha256[32], const void *host,
                                   size_t bytes, void **memory)
{
    DeviceState   *s = self;
    SharedWeights *w = find_weights(s, sha256, bytes);
    int32_t        rc;

    *memory = NULL;
    if (w) {
        if ((rc = use_weights(s, w->memory)))
            return rc;
        w->users++;
        *memory = w->memory;
        return TVMCC_OK;
    }
    if (!(w = tvmrt_device_new(s, sizeof *w)))
        return TVMCC_E_DEVICE;
    *w = (SharedWeights){.bytes = bytes, .users = 1, .next = s->weights};
    memcpy(w->sha256, sha256, sizeof w->sha256);
    rc = device_alloc(self, bytes, &w->memory);
    if (!rc &&
        ((rc = device_upload(self, w->memory, 0, host, bytes)) || (rc = use_weights(s, w->memory))))
        device_free(self, w->memory);
    if (rc) {
        free(w);
        return rc;
    }
    s->weights = w;
    *memory = w->memory;
    return TVMCC_OK;
}

static void device_weights_free(void *self, void *memory)
{
    DeviceState    *s = self;
    SharedWeights **at = &s->weights;

    while (*at && (*at)->memory != memory)
        at = &(*at)->next;
    if (!memory || !*at || --(*at)->users)
        return;
    SharedWeights *gone = *at;
    *at = gone->next;
    free(gone);
    device_free(self, memory);
}

/* ---- programs --------------------------------------------------------------------------------- */

static void device_program_free(void *self, const tvmcc_program *p, void **handles)
{
    for (uint32_t i = 0; i < p->nhandles; i++) {
        if (i < p->nkernels)
            device_kernel_free(self, handles[i]);
        else
            device_module_free(self, handles[i]);
        handles[i] = NULL;
    }
}

/* Has a block of the kernel all that it needs? */
static int32_t check_block(DeviceState *s, const DeviceLimits *most, const tvmcc_kernel_info *k)
{
    const uint32_t block[3] = {k->threads_x, k->threads_y, k->threads_z};
    bool           fits = 1ULL * block[0] * block[1] * block[2] <= most->threads;

    for (int i = 0; i < 3; i++)
        fits = fits && block[i] <= most->block[i];
    if (!fits)
        snprintf(s->error, sizeof s->error,
                 "%s: blocks of '%s' have %u x %u x %u threads; the device has "
                 "%llu x %llu x %llu, %llu in all",
                 most->name, k->name, block[0], block[1], block[2], most->block[0], most->block[1],
                 most->block[2], most->threads);
    else if (k->shared_bytes > most->shared_bytes)
        snprintf(s->error, sizeof s->error,
                 "%s: blocks of '%s' share %u bytes; the device has %llu", most->name, k->name,
                 k->shared_bytes, most->shared_bytes);
    else
        return TVMCC_OK;
    return TVMCC_E_DEVICE;
}

static int32_t find_kernel(void *self, void *module, const tvmcc_kernel_info *k, DeviceLimits most,
                           void **handle)
{
    const DeviceDriver *d = ((DeviceState *)self)->driver;
    int32_t             rc = own(self)->kernel(self, module, k->name, handle);

    if (!rc && d->narrow) {
        d->narrow(self, *handle, &most);
        rc = check_block(self, &most, k);
    }
    return rc || !d->grant ? rc : d->grant(self, k, *handle);
}

static int32_t load_code(void *self, const tvmcc_program *p, const tvmcc_code *code, void **handles)
{
    const DeviceDriver *d = ((DeviceState *)self)->driver;
    void              **modules = handles + p->nkernels;
    DeviceLimits        most = {"", ULLONG_MAX, {ULLONG_MAX, ULLONG_MAX, ULLONG_MAX}, ULLONG_MAX};
    int32_t             rc = TVMCC_OK;

    if (code->nparts > p->nhandles - p->nkernels ||
        (code->nparts != 1 && code->nparts < p->nkernels))
        return TVMCC_E_MISMATCH;
    if (d->limits)
        d->limits(self, &most);
    for (uint32_t i = 0; i < p->nkernels && !rc; i++)
        rc = check_block(self, &most, &p->kernels[i]);
    for (uint32_t i = 0; i < code->nparts && !rc; i++)
        rc = device_module_load(self, code->form, code->parts[i].code, code->parts[i].bytes,
                                code->options, &modules[i]);
    for (uint32_t i = 0; i < p->nkernels && !rc; i++)
        rc =
            find_kernel(self, modules[code->nparts > 1 ? i : 0], &p->kernels[i], most, &handles[i]);
    return rc;
}

/* Adds why a code was not taken to what is said of those before, as far as there is room. */
static void add_reason(DeviceState *s, char *said, size_t room, const char *target)
{
    size_t      n = strlen(said);
    const char *parts[] = {n ? "; " : "", target, ": ", s->error};

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t more = strlen(parts[i]);

        more = more < room - 1 - n ? more : room - 1 - n;
        memcpy(said + n, parts[i], more);
        said[n += more] = 0;
    }
}

/* The error says of each code why it was not taken. */
static int32_t device_program_load(void *self, const tvmcc_program *p, void **handles)
{
    DeviceState *s = self;
    char         said[sizeof s->error] = "";
    int32_t      rc = TVMCC_E_MISMATCH;

    if (p->struct_bytes < sizeof *p || p->nhandles < p->nkernels)
        return rc;
    memset(handles, 0, p->nhandles * sizeof *handles);
    for (uint32_t i = 0; i < p->ncodes && rc; i++) {
        device_program_free(self, p, handles);
        rc = load_code(self, p, &p->codes[i], handles);
        if (rc && p->ncodes > 1)
            add_reason(s, said, sizeof said, p->codes[i].target);
    }
    if (rc && p->ncodes > 1)
        memcpy(s->error, said, sizeof said);
    return rc;
}

static void device_recording_free(void *self, void *recording)
{
    if (recording)
        own(self)->recording_free(self, recording);
}

static const char *device_last_error(void *self)
{
    return ((DeviceState *)self)->error;
}

int32_t tvmrt_device_check(DeviceState *s, int32_t code, const char *what)
{
    const char *text = code && s->driver->error_text ? s->driver->error_text(s, code) : NULL;

    if (code == 0)
        return TVMCC_OK;
    snprintf(s->error, sizeof s->error, "%s failed with %s error %d%s%s", what, s->driver->title,
             (int)code, text ? ", " : "", text ? text : "");
    return TVMCC_E_DEVICE;
}

void *tvmrt_device_new(DeviceState *s, size_t bytes)
{
    void *at = calloc(1, bytes);

    if (!at)
        snprintf(s->error, sizeof s->error, "out of host memory");
    return at;
}

int32_t tvmrt_device_grow(DeviceState *s, void **array, uint32_t n, uint32_t *room, size_t size)
{
    uint32_t more = *room < 64 ? 64 : 2 * *room;
    void    *at;

    if (n < *room)
        return TVMCC_OK;
    if (more <= *room || !(at = realloc(*array, more * size))) {
        snprintf(s->error, sizeof s->error, "out of host memory");
        return TVMCC_E_DEVICE;
    }
    *array = at;
    *room = more;
    return TVMCC_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

static tvmcc_device table_of(DeviceState *s, uint32_t kind)
{
    tvmcc_device t = s->driver->functions;

    t.struct_bytes = sizeof t;
    t.kind = kind;
    t.self = s;
    t.alloc = device_alloc;
    t.free = device_free;
    t.upload = device_upload;
    t.download = device_download;
    t.copy = device_copy;
    t.download_later = device_download_later;
    t.poll = t.poll ? t.poll : t.wait;
    t.weights_load = device_weights_load;
    t.weights_free = device_weights_free;
    t.module_load = device_module_load;
    t.module_free = device_module_free;
    t.kernel_free = device_kernel_free;
    t.launch = device_launch;
    t.last_error = device_last_error;
    t.program_load = device_program_load;
    t.program_free = device_program_free;
    if (t.recording_free)
        t.recording_free = device_recording_free;
    return t;
}

/* The driver's library and its calls; NULL, or why not. */
static const char *find_calls(DeviceState *s)
{
    const DeviceDriver *d = s->driver;

    s->library = dlopen(d->library, RTLD_NOW | RTLD_LOCAL);
    for (uint32_t i = 0; !s->library && d->others && d->others[i]; i++)
        s->library = dlopen(d->others[i], RTLD_NOW | RTLD_LOCAL);
    if (!s->library)
        return d->no_library;
    for (uint32_t i = 0; i < d->ncalls + d->nmore; i++) {
        void *call = dlsym(s->library, d->calls[i].name);

        if (!call && i < d->ncalls)
            return d->no_call;
        memcpy((char *)s + d->calls[i].at, &call, sizeof call);
    }
    return NULL;
}

size_t tvmrt_device_bytes(uint32_t kind)
{
    const DeviceDriver *d = find(kind);

    return d ? d->bytes : 0;
}

static uint32_t list_devices(uint32_t kind, uint32_t n, tvmrt_device_info *out, const char **why)
{
    _Alignas(16) char   room[ROOM] = {0};
    const DeviceDriver *d = find(kind);
    DeviceState        *s = (DeviceState *)room;
    uint32_t            found = 0;

    *why = "this runtime drives no such device";
    if (!d || d->bytes > sizeof room)
        return 0;
    s->driver = d;
    if ((*why = find_calls(s)))
        return 0;
    if (n)
        memset(out, 0, n * sizeof *out);
    if (!(found = d->devices(s, n, out)))
        *why = d->no_device;
    for (uint32_t i = 0; i < found && i < n; i++) {
        out[i].kind = kind;
        out[i].number = i;
    }
    return found;
}

static char lower(char ch)
{
    return ch >= 'A' && ch <= 'Z' ? (char)(ch - 'A' + 'a') : ch;
}

/* In letters of either case. */
static bool has_part(const char *text, const char *part)
{
    for (; *text; text++) {
        size_t n = 0;

        while (part[n] && lower(text[n]) == lower(part[n]))
            n++;
        if (!part[n])
            return true;
    }
    return !*part;
}

/* The first with the properties that the options say, cards before others; NULL, or why not. */
static const char *choose(uint32_t kind, tvmrt_device_options *o)
{
    tvmrt_device_info all[MOST_DEVICES], *best = NULL;
    const char       *why;
    uint32_t          n = list_devices(kind, MOST_DEVICES, all, &why);

    for (uint32_t i = 0; i < n && i < MOST_DEVICES; i++) {
        const tvmrt_device_info *x = &all[i];
        bool named = !o->name || has_part(x->name, o->name) || has_part(x->maker, o->name);

        if (named && x->memory_bytes >= o->least_memory &&
            (o->number == TVMRT_FIRST_DEVICE || o->number == i) && (!best || x->type < best->type))
            best = &all[i];
    }
    if (best)
        o->number = best->number;
    return best ? NULL : n ? "no device has the name, the memory and the number asked for" : why;
}

static bool has_choice(const tvmrt_device_options *o)
{
    return o->name || o->least_memory;
}

/* NULL, or why not. */
static const char *open_device(DeviceState *s, const DeviceDriver *d, uint32_t kind,
                               const tvmrt_device_options *o)
{
    const char *reason;

    memset(s, 0, d->bytes);
    s->driver = d;
    s->table = table_of(s, kind);
    s->options = *o;
    if (has_choice(o) && (reason = choose(kind, &s->options)))
        return reason;
    if ((reason = find_calls(s)))
        return reason;
    if ((reason = d->open(s)))
        d->close(s);
    s->timing = !reason && o->timing;
    return reason;
}

const tvmcc_device *tvmrt_device_open_with(uint32_t kind, const tvmrt_device_options *options,
                                           void *memory, size_t bytes, const char **why)
{
    tvmrt_device_options o = {.struct_bytes = sizeof o, .number = TVMRT_FIRST_DEVICE};
    const DeviceDriver  *d = find(kind);
    const char          *reason = NULL;

    if (options && options->struct_bytes >= offsetof(tvmrt_device_options, name)) /* or an older */
        memcpy(&o, options, options->struct_bytes < sizeof o ? options->struct_bytes : sizeof o);
    else if (options)
        reason = "options of another runtime";
    if (!d)
        reason = "this runtime drives no such device";
    else if (!memory || bytes < d->bytes || (uintptr_t)memory % 16)
        reason = "too little memory, or unaligned";
    else if ((o.context || o.stream) && !d->shares)
        reason = "this device is opened with a context and a queue of its own";
    else if ((o.context || o.stream) && has_choice(&o))
        reason = "the caller's context says which device it is: no name and no memory beside it";
    else if (o.timing && !d->launch_times)
        reason = "this runtime does not time what the device launches";
    if (!reason)
        reason = open_device(memory, d, kind, &o);
    if (why)
        *why = reason;
    return reason ? NULL : &((DeviceState *)memory)->table;
}

const tvmcc_device *tvmrt_device_open(uint32_t kind, void *memory, size_t bytes, const char **why)
{
    return tvmrt_device_open_with(kind, NULL, memory, bytes, why);
}

/* Runs that were not waited for end first: what they write to is the caller's again.  The library
 * stays open: drivers leave threads behind that must not lose their code. */
void tvmrt_device_close(const tvmcc_device *device)
{
    DeviceState *s = device ? device->self : NULL;

    if (!s)
        return;
    own(s)->wait(s);
    while (s->weights) { /* of models that were not closed */
        s->weights->users = 1;
        device_weights_free(s, s->weights->memory);
    }
    s->driver->close(s);
}

/* ---- times of launches ----------------------------------------------------------------------- */

/* The state of a device that was opened with `timing`, or NULL. */
static DeviceState *timed(const tvmcc_device *device)
{
    DeviceState *s = device ? device->self : NULL;

    return s && s->options.timing ? s : NULL;
}

int32_t tvmrt_time_launches(const tvmcc_device *device, int on)
{
    DeviceState *s = timed(device);
    int32_t      rc;

    if (!s)
        return device ? TVMCC_E_MISMATCH : TVMCC_E_NULL;
    rc = own(s)->wait(s);
    if (s->driver->forget_times)
        s->driver->forget_times(s);
    s->launches = 0;
    s->timing = on != 0;
    return rc;
}

uint32_t tvmrt_timed_launches(const tvmcc_device *device)
{
    DeviceState *s = timed(device);

    return s ? s->launches : 0;
}

int32_t tvmrt_launch_times(const tvmcc_device *device, uint32_t n, double *ns)
{
    DeviceState *s = timed(device);
    int32_t      rc;

    if (!s)
        return device ? TVMCC_E_MISMATCH : TVMCC_E_NULL;
    if (n > s->launches)
        return TVMCC_E_SHAPE;
    rc = own(s)->wait(s);
    return rc ? rc : s->driver->launch_times(s, n, ns);
}

/* ---- listing ---------------------------------------------------------------------------------- */

uint32_t tvmrt_devices(uint32_t kind, uint32_t n, tvmrt_device_info *out, const char **why)
{
    static const uint32_t kinds[] = {
#define DEVICE(kind, name) TVMCC_DEVICE_##kind,
#include "devices.def"
#undef DEVICE
    };
    const char *reason = NULL;
    uint32_t    found = 0;

    if (kind)
        found = list_devices(kind, n, out, &reason);
    for (size_t i = 0; !kind && i < sizeof kinds / sizeof *kinds; i++) {
        uint32_t here = found < n ? found : n;

        found += list_devices(kinds[i], n - here, out ? out + here : NULL, &reason);
    }
    if (why)
        *why = found ? NULL : kind ? reason : "there is no device";
    return found;
}
