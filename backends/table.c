/* The list of backends: rows of backends.def. */
#include "backends/backend.h"

#include <string.h>

static const Backend *const all[] = {
#define BACKEND(name, about) &backend_##name,
#define DEVICE(name, about, product, text, suffix, what) &backend_##name,
#define SIBLING(name, about, product) &backend_##name,
#define SOURCE(name, about, product, text, suffix, what) &backend_##name,
#include "backends/backends.def"
};

static const char *const abouts[] = {
#define BACKEND(name, about) about,
#define DEVICE(name, about, product, text, suffix, what) about,
#define SIBLING(name, about, product) about,
#define SOURCE(name, about, product, text, suffix, what) about,
#include "backends/backends.def"
};

const Backend *backend_at(uint32_t i, const char **about)
{
    if (i >= COUNT(all))
        return NULL;
    if (about)
        *about = abouts[i];
    return all[i];
}

const Backend *backend_find(const char *name)
{
    for (size_t i = 0; i < COUNT(all); i++)
        if (!strcmp(all[i]->name, name))
            return all[i];
    return NULL;
}

const Backend *backend_cpu(void)
{
    return all[0];
}
