/* What recurrent cells consist of (ops/nn/recurrent.c), for the rules of all classes of targets. */
#include "schedules/schedules.h"

static const RecurrentPart lstm_parts[] = {{"cell", "sum", "gate", {"state", "y"}}, {0}};
static const RecurrentPart gru_parts[] = {
    {"reset", "sum", "gate", {0}}, {"state", "fresh", "candidate", {"y"}}, {0}};
static const RecurrentPart other_parts[] = {{"state", "sum", "gate", {"y"}}, {0}};

const RecurrentPart *recurrent_parts(const Sched *s)
{
    return sched_block(s, "cell") ? lstm_parts : sched_block(s, "reset") ? gru_parts : other_parts;
}
