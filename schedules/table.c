/* The table of schedule rules, from schedules.def. */
#include "schedules/schedules.h"

#include <string.h>

const ScheduleRow schedule_table[] = {
#define SCHED(op, def, cls, rule, version) {op, def, CLASS_##cls, rule, #rule "/" #version},
#include "schedules/schedules.def"
#undef SCHED
};
const uint32_t schedule_count = COUNT(schedule_table);

bool schedule_takes(const ScheduleRow *row, const Target *t, const Op *anchor)
{
    return row->cls == t->cls &&
           (!strcmp(row->op, "*") || (anchor && !strcmp(row->op, anchor->text)));
}
