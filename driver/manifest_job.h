/* The manifest as the verbs use it: read, checked against the machine, held to its lock.
 *
 *   manifest_check.c    target strings, files, hashes, flags: what manifest/ cannot see
 *   manifest_models.c   models: are they what the manifest says?
 *   manifest_lock.c     the rows of manifest.lock */
#ifndef TVMCC_DRIVER_MANIFEST_JOB_H
#define TVMCC_DRIVER_MANIFEST_JOB_H

#include "driver/job.h"
#include "manifest/manifest.h"

/* The path of -m; `manifest.yaml` unless given. */
const char *manifest_path(const Driver *driver);
/* Beside it: `vision.yaml` has `vision.lock`, unless `lock` itself is told another name. */
const char *manifest_lock_path(const Driver *driver);
/* The manifest of -m with manifest_check; NULL after errors. */
const Manifest *manifest_open(Driver *driver, ManFiles *files);
/* Target strings parse, files are there, hashes of sources are right, names of passes and flags
 * exist.  All errors at once, each at its place in the manifest. */
bool manifest_check(Driver *driver, const Manifest *m);
/* `all`: models can be imported, have the inputs, outputs and dimensions that the manifest says,
 * and this compiler has an option for every key: for `check`, which is to find all mistakes.  Else
 * only what no step of a build would find, the types of inputs. */
bool manifest_check_models(Driver *driver, const Manifest *m, bool all);
/* A product's compile, imported, with messages of its own in `quiet`; errors about the manifest go
 * to `driver`.  manifest_job_end frees it, whether it succeeded or not. */
bool manifest_job(Driver *driver, const ManBuild *b, Driver *quiet, Job *job);
void manifest_job_end(Driver *quiet);
/* With a lock beside the manifest: all is as it was locked, else an error for each difference
 * (E_LOCK); with --update-lock the lock is written anew instead.  Without a lock: true. */
bool manifest_enforce_lock(Driver *driver, const Manifest *m, const ManFiles *files);
/* Writes the lock. */
bool manifest_write_lock(Driver *driver, const Manifest *m, const ManFiles *files);

#endif
