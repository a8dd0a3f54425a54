/* Thresholds: functions of the machine, by limits.def. */
#include "machine/machine.h"

#define LIMIT(type, name, unit, value) \
    type name(const Machine *m)        \
    {                                  \
        (void)m;                       \
        return value;                  \
    }
#include "machine/limits.def"
#undef LIMIT
