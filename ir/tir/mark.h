/* Marks of loops and buffers as rows of a table (ir/tir/mark.def).  A new one is a row, the step
 * that sets it and the pass or backend that reads it: the field, its text in both directions and
 * what the verifier says of it follow from the row. */
#ifndef TVMCC_IR_TIR_MARK_H
#define TVMCC_IR_TIR_MARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the stages are is at the top of ir/tir/tir.h. */
typedef enum { TIR_NEST, TIR_LOWERED, TIR_FLAT } TirStage;

/* Axes of a launch: of its blocks, of the threads of one. */
typedef enum {
    AXIS_NONE,
    AXIS_BLOCK_X,
    AXIS_BLOCK_Y,
    AXIS_BLOCK_Z,
    AXIS_THREAD_X,
    AXIS_THREAD_Y,
    AXIS_THREAD_Z,
    AXIS_COUNT
} BindAxis;

typedef struct {
    uint32_t dim;
    int64_t  factor, offset; /* elements */
} Pitch;

enum {
    MAX_ALIGN = 4096,
    MAX_AHEAD = 65536,
    MAX_PITCH = 65536,
    MAX_PLACE = 1 << 16,
    MAX_HINT = 128,
    MAX_STAGES = 8,
    MAX_SWIZZLE = 1024
};

/* Forms, and the types of their fields. */
typedef enum {
    FORM_FLAG,
    FORM_NUMBER,
    FORM_POWER,
    FORM_NAME,
    FORM_INTRIN,
    FORM_AXIS,
    FORM_PITCH
} MarkForm;
typedef bool         MarkOfFLAG;
typedef uint32_t     MarkOfNUMBER, MarkOfPOWER;
typedef const char  *MarkOfNAME, *MarkOfINTRIN;
typedef BindAxis     MarkOfAXIS;
typedef const Pitch *MarkOfPITCH;

typedef struct {
    const char *text;
    MarkForm    form;
    int64_t     most;
    TirStage    stage;
    size_t      offset, size; /* of the field */
} Mark;

typedef struct {
    uint32_t    n;
    const Mark *at;
} MarkTable;

extern const MarkTable loop_mark_table, buffer_mark_table;

/* Of a LoopData or a Buffer: the mark is set. */
bool mark_is_set(const Mark *m, const void *of);
/* Those that `from` has, as `from` has them. */
void marks_add(const MarkTable *t, void *to, const void *from);

/* Loops that are marked, as a set. */
enum {
#define LOOP_MARK(id, field, form, text, most, stage, by, reader) MARK_AT_##id,
#include "ir/tir/mark.def"
};
enum {
#define LOOP_MARK(id, field, form, text, most, stage, by, reader) MARK_##id = 1 << MARK_AT_##id,
#include "ir/tir/mark.def"
};

#endif
