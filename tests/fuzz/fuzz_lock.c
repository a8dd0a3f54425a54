/* Any bytes as manifest.lock: what is read prints, reads again as equal, and differs from nothing.
 */
#include "manifest/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *a = arena_new(NULL);
    Diags *d = diags_new(a);
    StrBuf s = strbuf(a);
    Lock   lock, again, empty = {0};

    if (lock_parse(d, a, "fuzz.lock", (Bytes){data, size}, &lock)) {
        lock_print(&lock, &s);
        if (!lock_parse(d, a, "again.lock", (Bytes){(const uint8_t *)s.at, s.n}, &again) ||
            !lock_compare(d, "again.lock", &lock, &again))
            BUG("a lock is not what was printed:\n%s", s.at);
        lock_compare(d, "fuzz.lock", &lock, &empty);
        lock_compare(d, "fuzz.lock", &empty, &lock);
    }
    diag_print(d, DIAG_JSON, &s);
    arena_free(a);
    return 0;
}
