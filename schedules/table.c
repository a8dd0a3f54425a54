/* The table of schedule rules, from schedules.def. */
#include "schedules/schedules.h"

const ScheduleRow schedule_table[] = {
#define SCHED(op, def, cls, rule, version) {op, def, CLASS_##cls, rule, #rule "/" #version},
#include "schedules/schedules.def"
#undef SCHED
};
const uint32_t schedule_count = COUNT(schedule_table);
