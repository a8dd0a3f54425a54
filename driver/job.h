/* A compile as the command line asks for it. */
#ifndef TVMCC_DRIVER_JOB_H
#define TVMCC_DRIVER_JOB_H

#include "driver/compile.h"
#include "driver/driver.h"
#include "ops/ops.h"

typedef struct {
    Ctx           *c;
    CompileOptions options;
    Compiled       k;
} Job;

/* From the command line; `target` is what counts when it names none. */
bool job_start(Driver *driver, Job *job, const char *target);
/* A library or an archive, rather than a model file. */
bool job_is_product(const char *path);
/* Bytes of machine code, by compiling once more to an object. */
size_t job_code_bytes(Job *job);
double job_seconds(const Job *job); /* of all steps so far */

#endif
