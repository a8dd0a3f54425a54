/* Any bytes as an HDF5 file: all names, the attributes that h5py's callers use, and all cells. */
#include "formats/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_OBJECTS = 200 };

/* Their bytes are read, as a frontend would. */
static uint64_t touch(const H5Value *v)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < v->data.n; i++)
        sum += v->data.at[i];
    for (uint64_t i = 0; v->texts && i < v->cells; i++)
        sum += (uint8_t)*v->texts[i];
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const attributes[] = {"count", "text", "names", "a3", "weight_names"};
    Arena                   *a = arena_new(NULL);
    H5File                  *f = h5_open(diags_new(a), a, NO_LOC, "", (Bytes){data, size});
    VEC(H5Object) todo = {0};
    volatile uint64_t sum = 0;

    if (f)
        vec_push(a, &todo, h5_root(f));
    for (uint32_t i = 0; i < todo.n && i < MOST_OBJECTS && !h5_failed(f); i++) {
        H5Object at = todo.at[i], kid;
        TextList names = {0};
        H5Value  v;

        for (uint32_t k = 0; k < COUNT(attributes); k++)
            if (h5_attribute(&at, attributes[k], &v))
                sum += touch(&v);
        if (h5_is_group(&at)) {
            h5_names(&at, &names);
            for (uint32_t k = 0; k < names.n && k < MOST_OBJECTS; k++)
                if (h5_find(&at, names.at[k], &kid))
                    vec_push(a, &todo, kid);
        } else if (h5_dataset(&at, &v)) {
            sum += touch(&v);
        }
    }
    arena_free(a);
    return 0;
}
