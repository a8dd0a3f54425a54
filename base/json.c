/* JSON that somebody else wrote: the library's own checks, and a size, since a value takes up to
 * sixty times the memory of its text. */
#include "base/json.h"

json_t *json_read(Bytes text, json_error_t *error)
{
    if (error)
        *error = (json_error_t){.line = 1, .column = 1};
    if (!text.n || text.n > JSON_BYTES)
        return NULL;
    return json_loadb((const char *)text.at, text.n, JSON_REJECT_DUPLICATES, error);
}
