/* The list of backends: rows of backends.def. */
#include "backends/backend.h"

#include <string.h>

static const Backend *const all[] = {
#define BACKEND(id, text, backend, about) [KIND_##id] = &backend,
#include "backends/backends.def"
#undef BACKEND
};

const Backend *backend_find(const char *name)
{
    for (size_t i = 0; i < COUNT(all); i++)
        if (!strcmp(all[i]->name, name))
            return all[i];
    return NULL;
}

const Backend *backend_of(TargetKind kind)
{
    return (size_t)kind < COUNT(all) ? all[kind] : NULL;
}
