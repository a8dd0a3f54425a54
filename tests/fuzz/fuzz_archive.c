/* Any bytes as an archive: read within a limit, checked against its list of hashes. */
#include "packaging/packaging.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena   *a = arena_new(NULL);
    Diags   *d = diags_new(a);
    Member  *members;
    uint32_t n;

    if (pack_read(d, a, "archive", (Bytes){data, size}, 1 << 20, &members, &n))
        bundle_verify(d, a, "archive", members, n);
    arena_free(a);
    return 0;
}
