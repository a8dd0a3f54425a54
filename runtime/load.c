/* load.c: opens a compiled model: a shared library, an unpacked archive, or a plain .tar of one.
 *
 *   net/lib/x86_64-linux-gnu/libnet.so     found by pattern; the ELF header must name this machine
 *   net/share/net/net.weights              mapped in place when the model keeps weights in a file;
 *   net/share/net/<triple>/net.weights     in archives for several machines
 *
 * A tar stores its members uncompressed at multiples of 512 bytes, so weights are used where they
 * lie in the mapped archive; the library is handed to the dynamic loader through a memory file.
 * Everything is bounded: an archive is input like any other.
 */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* memfd_create */
#endif
#include "tvmcc/runtime.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of the first version: later members are read where struct_bytes says they are there. */
enum { INFO_BYTES = offsetof(tvmcc_model_info, nbuckets) };
enum { TAR_BLOCK = 512, PATH_BYTES = 1024, NAME_BYTES = 128, MOST_DIMS = 64 };

#if defined(__x86_64__)
enum { MACHINE = 62 };
#elif defined(__aarch64__)
enum { MACHINE = 183 };
#elif defined(__arm__)
enum { MACHINE = 40 };
#elif defined(__i386__)
enum { MACHINE = 3 };
#elif defined(__riscv)
enum { MACHINE = 243 };
#else
enum { MACHINE = 0 };
#endif

static int32_t fail(tvmrt_model *m, int32_t code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int32_t fail(tvmrt_model *m, int32_t code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(m->error, sizeof m->error, fmt, ap);
    va_end(ap);
    return code;
}

/* ---- names ------------------------------------------------------------------------------------
 */

/* "lib<name>.so" or "<name>.so" -> name */
static bool library_name(const char *file, char name[NAME_BYTES])
{
    size_t n = strlen(file);

    if (n < 4 || strcmp(file + n - 3, ".so") != 0)
        return false;
    n -= 3;
    if (n > 3 && memcmp(file, "lib", 3) == 0) {
        file += 3;
        n -= 3;
    }
    if (n >= NAME_BYTES)
        return false;
    memcpy(name, file, n);
    name[n] = 0;
    return true;
}

static bool wanted_library(const char *file, const char *name, char found[NAME_BYTES])
{
    return library_name(file, found) && (!name || strcmp(found, name) == 0);
}

/* Is this the header of an ELF file for the machine that runs us? */
static bool our_machine(const uint8_t *h, size_t n)
{
    const uint16_t one = 1;
    bool           little = *(const uint8_t *)&one;
    unsigned       machine;

    if (n < 20 || memcmp(h, "\177ELF", 4) != 0 || h[4] != (sizeof(void *) == 8 ? 2 : 1) ||
        h[5] != (little ? 1 : 2))
        return false;
    machine = little ? h[18] | (unsigned)h[19] << 8 : h[19] | (unsigned)h[18] << 8;
    return MACHINE == 0 || machine == MACHINE;
}

static bool file_for_us(const char *path)
{
    uint8_t h[20];
    int     fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, h, sizeof h);

    if (fd >= 0)
        close(fd);
    return n == (ssize_t)sizeof h && our_machine(h, sizeof h);
}

/* ---- the parts of a model ----------------------------------------------------------------- */

static int32_t map_file(tvmrt_model *m, const char *path)
{
    struct stat st;
    int         fd = open(path, O_RDONLY | O_CLOEXEC);
    void       *p = MAP_FAILED;

    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0)
        p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (p == MAP_FAILED)
        return fail(m, TVMCC_E_MISMATCH, "cannot map '%s'", path);
    m->mapping = p;
    m->mapping_bytes = (size_t)st.st_size;
    return TVMCC_OK;
}

/* The weights file lies at `at`: check that it is the one the model was built with. */
static int32_t use_weights(tvmrt_model *m, const uint8_t *at, size_t bytes)
{
    const tvmcc_weight_info    *w = m->info->weights;
    const tvmcc_weights_header *h = (const tvmcc_weights_header *)at;
    uint64_t                    size = 0;

    if (bytes < sizeof *h || memcmp(h->magic, TVMCC_WEIGHTS_MAGIC, sizeof h->magic) != 0)
        return fail(m, TVMCC_E_MISMATCH, "not a weights file");
    for (int i = 8; i-- > 0;)
        size = size << 8 | h->data_bytes[i];
    if (size != bytes - sizeof *h || size != w->bytes)
        return fail(m, TVMCC_E_MISMATCH, "the weights file has another size than the model asks");
    if (memcmp(h->sha256, w->sha256, sizeof h->sha256) != 0)
        return fail(m, TVMCC_E_MISMATCH, "the weights file belongs to another build");
    m->weights = at + sizeof *h;
    m->weights_bytes = (size_t)size;
    return TVMCC_OK;
}

static bool needs_weights(const tvmrt_model *m)
{
    return m->info->nweights > 0 && m->info->weights[0].mode == TVMCC_WEIGHTS_FILE;
}

static int32_t open_library(tvmrt_model *m, const char *path, const char *name)
{
    char symbol[NAME_BYTES + 8];
    const tvmcc_model_info *(*info)(void);

    m->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!m->handle)
        return fail(m, TVMCC_E_MISMATCH, "%s", dlerror());
    snprintf(symbol, sizeof symbol, "%s_info", name);
    *(void **)&info = dlsym(m->handle, symbol);
    if (!info)
        return fail(m, TVMCC_E_MISMATCH, "'%s' has no function '%s'", path, symbol);
    m->info = info();
    if (!m->info || m->info->abi != TVMCC_ABI || m->info->struct_bytes < INFO_BYTES)
        return fail(m, TVMCC_E_MISMATCH, "'%s' was built for another version of the ABI", path);
    return TVMCC_OK;
}

/* ---- an unpacked archive -----------------------------------------------------------------------
 */

/* Looks in `dir` for libraries of this machine; counts them, keeps the last. */
static int scan_libraries(const char *dir, const char *name, char path[PATH_BYTES],
                          char found[NAME_BYTES])
{
    int            count = 0;
    struct dirent *e;
    DIR           *d = opendir(dir);

    while (d && (e = readdir(d)) != NULL) {
        char candidate[NAME_BYTES], full[PATH_BYTES];

        if (!wanted_library(e->d_name, name, candidate) ||
            (size_t)snprintf(full, sizeof full, "%s/%s", dir, e->d_name) >= sizeof full ||
            !file_for_us(full))
            continue;
        memcpy(path, full, sizeof full);
        memcpy(found, candidate, sizeof candidate);
        count++;
    }
    if (d)
        closedir(d);
    return count;
}

static int scan_archive(const char *dir, const char *name, char path[PATH_BYTES],
                        char found[NAME_BYTES])
{
    char           lib[PATH_BYTES], sub[PATH_BYTES];
    int            count = 0;
    struct dirent *e;
    DIR           *d;

    if ((size_t)snprintf(lib, sizeof lib, "%s/lib", dir) >= sizeof lib)
        return 0;
    d = opendir(lib);
    while (d && (e = readdir(d)) != NULL)
        if (e->d_name[0] != '.' &&
            (size_t)snprintf(sub, sizeof sub, "%s/%s", lib, e->d_name) < sizeof sub)
            count += scan_libraries(sub, name, path, found);
    if (d)
        closedir(d);
    return count;
}

/* The only directory in `dir`, for archives unpacked with their top directory. */
static bool only_child(const char *dir, char child[PATH_BYTES])
{
    int            count = 0;
    struct dirent *e;
    DIR           *d = opendir(dir);

    while (d && (e = readdir(d)) != NULL)
        if (e->d_name[0] != '.' && count++ == 0 &&
            (size_t)snprintf(child, PATH_BYTES, "%s/%s", dir, e->d_name) >= PATH_BYTES)
            count = 2;
    if (d)
        closedir(d);
    return count == 1;
}

static int32_t open_directory(tvmrt_model *m, const char *dir, const char *name)
{
    char    path[PATH_BYTES], found[NAME_BYTES], child[PATH_BYTES], weights[2 * PATH_BYTES];
    int     count = scan_archive(dir, name, path, found);
    int32_t rc;

    if (count == 0 && only_child(dir, child)) {
        dir = child;
        count = scan_archive(dir, name, path, found);
    }
    if (count != 1)
        return fail(m, TVMCC_E_MISMATCH, "'%s' has %d libraries for this machine in lib/*/", dir,
                    count);
    rc = open_library(m, path, found);
    if (rc || !needs_weights(m))
        return rc;
    snprintf(weights, sizeof weights, "%s/share/%s/%s.weights", dir, found, found);
    if (access(weights, F_OK) != 0) { /* archives for several machines: lib/<triple>/libnet.so */
        char *triple = strrchr(path, '/');

        *triple = 0;
        triple = strrchr(path, '/');
        snprintf(weights, sizeof weights, "%s/share/%s%s/%s.weights", dir, found, triple, found);
    }
    rc = map_file(m, weights);
    return rc ? rc : use_weights(m, m->mapping, m->mapping_bytes);
}

/* ---- a plain tar -------------------------------------------------------------------------- */

typedef struct {
    char           name[101];
    const uint8_t *at;
    size_t         bytes;
} Member;

/* The next regular member from *offset on.  1: found, 0: end, -1: not a tar. */
static int next_member(const tvmrt_model *m, size_t *offset, Member *out)
{
    while (m->mapping_bytes >= TAR_BLOCK && *offset <= m->mapping_bytes - TAR_BLOCK) {
        const uint8_t *h = (const uint8_t *)m->mapping + *offset;
        size_t         left = m->mapping_bytes - *offset - TAR_BLOCK, bytes = 0, blocks;

        if (h[0] == 0)
            return 0;
        if (memcmp(h + 257, "ustar", 5) != 0)
            return -1;
        for (int i = 124; i < 135; i++) {
            if (h[i] < '0' || h[i] > '7')
                return -1;
            bytes = bytes << 3 | (size_t)(h[i] - '0');
        }
        if (bytes > left)
            return -1;
        blocks = (bytes + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
        *offset += TAR_BLOCK + (blocks < left ? blocks : left);
        if (h[156] != '0' && h[156] != 0)
            continue;
        memcpy(out->name, h, 100);
        out->name[100] = 0;
        out->at = h + TAR_BLOCK;
        out->bytes = bytes;
        return 1;
    }
    return 0;
}

/* "<top>/<rest>" -> rest */
static const char *below_top(const char *path)
{
    const char *slash = strchr(path, '/');

    return slash ? slash + 1 : "";
}

static bool tar_library(const Member *e, const char *name, char found[NAME_BYTES])
{
    const char *rest = below_top(e->name), *slash = strrchr(rest, '/');

    return strncmp(rest, "lib/", 4) == 0 && slash > rest + 3 &&
           wanted_library(slash + 1, name, found) && our_machine(e->at, e->bytes);
}

/* The dynamic loader wants a file: one in memory where there is such a thing. */
static int32_t open_bytes(tvmrt_model *m, const uint8_t *at, size_t bytes, const char *name)
{
    char    path[64] = "/tmp/tvmrtXXXXXX";
    bool    temporary = false;
    int32_t rc;
    int     fd = -1;

#ifdef __linux__
    fd = memfd_create(name, MFD_CLOEXEC);
    if (fd >= 0)
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
#endif
    if (fd < 0) {
        fd = mkstemp(path);
        temporary = fd >= 0;
    }
    if (fd < 0)
        return fail(m, TVMCC_E_MISMATCH, "no place for the library of '%s'", name);
    for (size_t done = 0; done < bytes;) {
        ssize_t n = write(fd, at + done, bytes - done);

        if (n <= 0) {
            if (temporary)
                unlink(path);
            close(fd);
            return fail(m, TVMCC_E_MISMATCH, "no space for the library of '%s'", name);
        }
        done += (size_t)n;
    }
    rc = open_library(m, path, name);
    if (temporary)
        unlink(path);
    close(fd);
    return rc;
}

static int32_t open_tar(tvmrt_model *m, const char *path, const char *name)
{
    char        found[NAME_BYTES], candidate[NAME_BYTES], want[2 * NAME_BYTES + 24];
    char        other[2 * NAME_BYTES + 128];
    const char *triple;
    Member      e, library = {.bytes = 0};
    size_t      offset = 0;
    int         more, count = 0;
    int32_t     rc = map_file(m, path);

    if (rc)
        return rc;
    while ((more = next_member(m, &offset, &e)) > 0)
        if (tar_library(&e, name, candidate)) {
            library = e;
            memcpy(found, candidate, sizeof candidate);
            count++;
        }
    if (more < 0)
        return fail(m, TVMCC_E_MISMATCH, "'%s' is neither a library nor a plain tar", path);
    if (count != 1)
        return fail(m, TVMCC_E_MISMATCH, "'%s' has %d libraries for this machine in lib/*/", path,
                    count);
    rc = open_bytes(m, library.at, library.bytes, found);
    if (rc || !needs_weights(m))
        return rc;
    /* lib/<triple>/libnet.so: archives for several machines have weights for each */
    triple = below_top(library.name) + 4;
    snprintf(want, sizeof want, "share/%s/%s.weights", found, found);
    snprintf(other, sizeof other, "share/%s/%.*s/%s.weights", found, (int)strcspn(triple, "/"),
             triple, found);
    for (offset = 0; next_member(m, &offset, &e) > 0;)
        if (strcmp(below_top(e.name), want) == 0 || strcmp(below_top(e.name), other) == 0)
            return use_weights(m, e.at, e.bytes);
    return fail(m, TVMCC_E_MISMATCH, "'%s' has no '%s'", path, want);
}

/* ---- the door ----------------------------------------------------------------------------- */

static int32_t open_file(tvmrt_model *m, const char *path, const char *name)
{
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    char        found[NAME_BYTES], full[PATH_BYTES], weights[2 * PATH_BYTES];
    int32_t     rc;

    if (!library_name(file, found))
        snprintf(found, sizeof found, "%s", file);
    if (name)
        snprintf(found, sizeof found, "%s", name);
    /* without a slash dlopen would search the system's directories */
    if ((size_t)snprintf(full, sizeof full, "%s%s", slash ? "" : "./", path) >= sizeof full)
        return fail(m, TVMCC_E_MISMATCH, "the path is too long");
    rc = open_library(m, full, found);
    if (rc || !needs_weights(m))
        return rc;
    snprintf(weights, sizeof weights, "%.*s%s.weights", (int)(strrchr(full, '/') + 1 - full), full,
             found);
    rc = map_file(m, weights);
    return rc ? rc : use_weights(m, m->mapping, m->mapping_bytes);
}

int32_t tvmrt_model_open(tvmrt_model *m, const char *path, const char *name)
{
    struct stat st;
    int32_t     rc;

    if (!m || !path)
        return TVMCC_E_NULL;
    memset(m, 0, sizeof *m);
    if (name && strlen(name) >= NAME_BYTES)
        rc = fail(m, TVMCC_E_MISMATCH, "the name is too long");
    else if (stat(path, &st) != 0)
        rc = fail(m, TVMCC_E_MISMATCH, "cannot open '%s'", path);
    else if (S_ISDIR(st.st_mode))
        rc = open_directory(m, path, name);
    else if (file_for_us(path))
        rc = open_file(m, path, name);
    else
        rc = open_tar(m, path, name);
    if (rc)
        tvmrt_model_close(m);
    return rc;
}

void tvmrt_model_close(tvmrt_model *m)
{
    if (!m)
        return;
    if (m->handle)
        dlclose(m->handle);
    if (m->mapping)
        munmap(m->mapping, m->mapping_bytes);
    m->info = NULL;
    m->handle = m->mapping = NULL;
    m->weights = NULL;
    m->weights_bytes = 0;
}

size_t tvmrt_arena_bytes(const tvmcc_model_info *info, uint32_t threads)
{
    size_t bytes = 0;

    if (info && (__builtin_mul_overflow(info->arena_private, threads ? threads : 1, &bytes) ||
                 __builtin_add_overflow(info->arena_shared, bytes, &bytes)))
        return SIZE_MAX;
    return bytes;
}

/* ---- dimensions without an upper bound ----------------------------------------------------------- */

const tvmcc_size_info *tvmrt_sizes(const tvmrt_model *m)
{
    char symbol[NAME_BYTES + 8];
    const tvmcc_size_info *(*sizes)(void);

    if (!m || !m->handle || !m->info || strlen(m->info->name) >= NAME_BYTES)
        return NULL;
    snprintf(symbol, sizeof symbol, "%s_sizes", m->info->name);
    *(void **)&sizes = dlsym(m->handle, symbol);
    return sizes ? sizes() : NULL;
}

int64_t tvmrt_run_bytes(const tvmcc_size_info *sizes, const void *const *inputs, uint32_t threads)
{
    int64_t dims[MOST_DIMS];

    if (!sizes || !inputs)
        return TVMCC_E_NULL;
    if (sizes->ndims > MOST_DIMS)
        return TVMCC_E_MISMATCH;
    for (uint32_t i = 0; i < sizes->ndims; i++) {
        const tvmcc_dim_info *d = &sizes->dims[i];
        const tvmcc_value    *v = inputs[d->input];
        int64_t               n;

        if (!v || !v->dims)
            return TVMCC_E_NULL;
        if (d->axis >= v->ndim || __builtin_sub_overflow(v->dims[d->axis], d->plus, &n) ||
            n % d->times)
            return TVMCC_E_SHAPE;
        dims[i] = n / d->times;
    }
    return sizes->arena_bytes(dims, threads);
}

/* ---- shape buckets ------------------------------------------------------------------------------ */

uint32_t tvmrt_buckets(const tvmcc_model_info *info)
{
    return !info || info->struct_bytes < offsetof(tvmcc_model_info, ntargets) ? 0 : info->nbuckets;
}

const tvmcc_model_info *tvmrt_bucket(const tvmcc_model_info *info, const int64_t *dims)
{
    for (uint32_t b = 0; dims && b < tvmrt_buckets(info); b++) {
        bool holds = true;

        for (uint32_t k = 0; k < info->nbucket_dims; k++)
            holds =
                holds && dims[k] >= 0 && dims[k] <= info->bucket_sizes[b * info->nbucket_dims + k];
        if (holds)
            return info->buckets[b];
    }
    return NULL;
}
