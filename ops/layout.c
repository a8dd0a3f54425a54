/* Layouts as text: the letters of the dimensions, with a blocked channel as NCHW8c. */
#include "ops/common.h"

#include <stdlib.h>
#include <string.h>

bool layout_block(const char *layout, const char *plain, int64_t *block)
{
    size_t n = strlen(plain);
    char  *end;

    *block = 0;
    if (strncmp(layout, plain, n))
        return false;
    if (!layout[n])
        return true;
    if (layout[n] < '1' || layout[n] > '9')
        return false;
    *block = strtol(layout + n, &end, 10);
    return *block <= 64 && !strcmp(end, "c");
}

bool rel_layout(Ctx *c, Loc loc, const char *layout, const char *plain, int64_t *block)
{
    if (layout_block(layout, plain, block))
        return true;
    return error_at(c, E_TYPE, loc, "layout '%s' is neither %s nor %s<block>c", layout, plain,
                    plain);
}
