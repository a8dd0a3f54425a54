/* What the files of the Metal backend share.
 *
 *   metal.c     the Backend struct
 *   target.c    words of target strings: from which system on there are metallibs
 *   codegen.c   the dialect of clike; kernels as text
 *   metallib.c  the compiler of that text: Apple's tools */
#ifndef TVMCC_BACKENDS_METAL_H
#define TVMCC_BACKENDS_METAL_H

#include "backends/backend.h"
#include "backends/common/device.h"

/* ---- target.c: Target.mcpu is "macosx13.0", an SDK and a version; "": products hold text ---------- */

extern const char *const metal_words[];
bool                     metal_word(Ctx *c, Target *t, const char *name, const char *value);
bool                     metal_canonical(Ctx *c, Target *t, StrBuf *text);

/* An SDK that metallibs are made with. */
typedef struct {
    const char *name;   /* of xcrun: "macosx" */
    const char *option; /* that says the least version: "-mmacosx-version-min=" */
    const char *system; /* in triples; "": all others */
} MetalSdk;

/* Of Target.mcpu, and the version behind its name. */
const MetalSdk *metal_sdk(const char *arch, const char **version);

/* ---- codegen.c ---------------------------------------------------------------------------------- */

/* All kernels as one text of the Metal Shading Language; one of them. */
bool metal_source(Ctx *c, const TirModule *m, StrBuf *out);
bool metal_kernel(Ctx *c, const Func *f, StrBuf *out);

/* ---- metallib.c --------------------------------------------------------------------------------- */

/* What there is on this machine, or "". */
const char *metal_compiler_version(Ctx *c, const Target *t);
/* A metallib for each kernel. */
bool metal_libraries(Ctx *c, const TirModule *m, const Target *t, const CodegenOptions *o,
                     DeviceImages *out);

#endif
