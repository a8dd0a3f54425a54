/* Fields of marks by their rows. */
#include "ir/tir/tir.h"

#include <string.h>

static const Mark loops[] = {
#define LOOP_MARK(id, field, form, text, most, stage, by, reader) \
    {text, FORM_##form, most, TIR_##stage, offsetof(LoopData, field), sizeof(MarkOf##form)},
#include "ir/tir/mark.def"
};
static const Mark buffers[] = {
#define BUFFER_MARK(id, field, form, text, most, stage, by, reader) \
    {text, FORM_##form, most, TIR_##stage, offsetof(Buffer, field), sizeof(MarkOf##form)},
#include "ir/tir/mark.def"
};

const MarkTable loop_mark_table = {COUNT(loops), loops};
const MarkTable buffer_mark_table = {COUNT(buffers), buffers};

bool mark_is_set(const Mark *m, const void *of)
{
    const void *field = (const char *)of + m->offset;

    switch (m->form) {
    case FORM_FLAG: return *(const bool *)field;
    case FORM_NUMBER:
    case FORM_POWER: return *(const uint32_t *)field != 0;
    case FORM_NAME:
    case FORM_INTRIN: return *(const char *const *)field != NULL;
    case FORM_AXIS: return *(const BindAxis *)field != AXIS_NONE;
    case FORM_PITCH: return *(const Pitch *const *)field != NULL;
    }
    return false;
}

void marks_add(const MarkTable *t, void *to, const void *from)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (mark_is_set(&t->at[i], from))
            memcpy((char *)to + t->at[i].offset, (const char *)from + t->at[i].offset,
                   t->at[i].size);
}

uint32_t loop_marks(const LoopData *l)
{
    uint32_t set = 0;

    for (uint32_t i = 0; i < loop_mark_table.n; i++)
        set |= mark_is_set(&loop_mark_table.at[i], l) ? 1u << i : 0;
    return set;
}
