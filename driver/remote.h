/* Products that do not run in this process: linked with a small program (share/tvmcc/runner.c) and
 * run as one, on this machine or under the emulator of another (remote.c). */
#ifndef TVMCC_DRIVER_REMOTE_H
#define TVMCC_DRIVER_REMOTE_H

#include "driver/job.h"

#include <tvmcc/abi.h>

typedef struct Remote Remote;

/* A product that cannot be loaded: an object, a static library, a compressed archive. */
bool remote_wants(const char *path);
/* One that this machine's loader cannot take because it is for another machine. */
bool remote_foreign_product(Driver *driver, const char *path);
/* NULL after errors; E_NO_TOOL names what to install. */
Remote *remote_product(Driver *driver, const char *path);
/* Whether a compile is for another machine; its object, linked. */
bool    remote_is_foreign(Ctx *c, const Target *t);
Remote *remote_model(Driver *driver, Job *job);
/* The parts that describe tensors; there is nothing to call. */
const tvmcc_model_info *remote_info(const Remote *r);
/* `info`: what remote_info gave, or one of its buckets. */
bool remote_run(Remote *r, const tvmcc_model_info *info, void *const *in, void *const *out);
/* What every step changed, as share/tvmcc/runner.c records it; of models without buckets. */
bool remote_steps(Remote *r, void *const *in, Bytes *out);
void remote_close(Remote *r);

/* remote_info.c: what the program says of its model.  NULL, or what is wrong with it. */
const char *remote_parse(Arena *a, Bytes text, tvmcc_model_info *info, bool *weights);

#endif
