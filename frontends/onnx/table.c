/* The table of foreign operators. */
#include "frontends/onnx/onnx.h"

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
