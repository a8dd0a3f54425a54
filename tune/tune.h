/* tune: tuning logs, the records of schedules that were measured (docs/tuning-logs.md).
 *
 *   log.c    text to records and back; the best records of a kernel
 *
 * A compile only reads logs.  Steps and decisions are judged where they are applied, by ir/sched/.
 */
#ifndef TVMCC_TUNE_H
#define TVMCC_TUNE_H

#include "base/base.h"

typedef struct {
    Loc         loc;
    Sha256      workload; /* canonical hash of the kernel's nest before any step */
    const char *target;   /* canonical text */
    double      seconds;  /* of one run; infinite: never measured */
    const char *steps;    /* with `;` between them; "" is a schedule too */
    bool        decided;  /* steps are decisions: `sched_dense/3: tile=6x2, chunk=48` */
} TuneRecord;

typedef struct TuneLog {
    VEC(TuneRecord) records;
    bool sorted;
} TuneLog;

/* Appends the records of a file.  False with errors (E_LOG, status 4), all of them recorded up to
 * a limit.  Texts live in `a`. */
bool tune_log_parse(Diags *d, Arena *a, const char *path, Bytes text, TuneLog *log);
/* By workload, target and time; equal records once. */
void tune_log_sort(TuneLog *log);
/* The records of a kernel, best first: how many.  The log is sorted. */
uint32_t tune_log_find(const TuneLog *log, Sha256 workload, const char *target,
                       const TuneRecord **best);
void     tune_record_print(const TuneRecord *r, StrBuf *out);

#endif
