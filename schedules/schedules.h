/* Schedule rules: how an operator's loops are arranged on a target.  schedules.def maps the anchor
 * operator of a kernel and the kind of target to a rule; the first row that fits and is not refused
 * wins, the last resort is the unscheduled nest (with W_SCHEDULE_REFUSED). */
#ifndef TVMCC_SCHEDULES_H
#define TVMCC_SCHEDULES_H

#include "ir/sched.h"

typedef struct {
    const char *op; /* anchor's text, "*" any */
    TargetKind  kind;
    SchedRule  *rule;
    const char *name; /* "cpu.conv2d_nchwc/1": rule and version, for logs */
} ScheduleRow;
extern const ScheduleRow schedule_table[];
extern const uint32_t    schedule_count;

#define SCHED(op, kind, rule, version) SchedRule rule;
#include "schedules/schedules.def"
#undef SCHED

#endif
