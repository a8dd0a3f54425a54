/* The table of foreign operators. */
#include "frontends/frontends.h"
#include "frontends/onnx/onnx.h"

#include <stdio.h>

#define none NULL
#define LAST 0
#define ONNX(name, domain, lo, hi, relay, convert) {#name, domain, lo, hi, relay, convert},
const OnnxRow onnx_rows[] = {
#include "frontends/onnx/ops.def"
};
#undef ONNX
#undef LAST
#undef none

const uint32_t onnx_nrows = COUNT(onnx_rows);

/* -print-ops=onnx, in the order of the table. */
void onnx_list_ops(StrBuf *out)
{
    for (uint32_t i = 0; i < onnx_nrows; i++) {
        const OnnxRow *r = &onnx_rows[i];
        char           versions[48];

        if (r->hi)
            snprintf(versions, sizeof versions, "%lld-%lld", (long long)r->lo, (long long)r->hi);
        else
            snprintf(versions, sizeof versions, "%lld-", (long long)r->lo);
        str_printf(out, "%-32s %-7s %-14s %s\n", r->name, versions,
                   *r->domain ? r->domain : "ai.onnx", r->relay ? r->relay : "-");
    }
}
