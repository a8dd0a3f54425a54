/* Schedule rules: how an operator's loops are arranged on a target.  schedules.def maps the anchor
 * operator of a kernel and the class of its target to a rule; the first row that fits and is not
 * refused wins, the last resort is the unscheduled nest (with W_SCHEDULE_REFUSED). */
#ifndef TVMCC_SCHEDULES_H
#define TVMCC_SCHEDULES_H

#include "ir/sched/sched.h"
#include "machine/machine.h"

/* Taps of an axis: tap k of cell v reads cell v * stride + k * dilation - before of `size`; without
 * a size it is not known which of them are padding. */
typedef struct {
    int64_t cells, taps, stride, dilation, before, size;
} TapAxis;

/* The work of a convolution with its results in blocks of `lanes` channels, for passes that choose
 * among layouts. */
typedef struct {
    int64_t lanes, n, o, y, x;    /* o in blocks */
    int64_t sum;                  /* steps of the reduction: channels and cells of the kernel */
    int64_t group;                /* blocks of outputs that read the same channels */
    int64_t kw, stride, dilation; /* along the row */
    int64_t spread;               /* channels of a group where a block holds several, else 0 */
    bool    plain;                /* data are not in blocks */
    int64_t data;                 /* bytes that the outputs of a group read; of plain rows */
    TapAxis rows, columns;
} ConvWork;
/* Cycles of one core in the register tiles that the rules choose (cpu/conv2d.c). */
double cpu_conv_cycles(const Target *t, const ConvWork *w);
/* ... on plain images: o and group are outputs, `lanes` those of the widest vector (cpu/planar.c).
 */
double cpu_planar_cycles(const Target *t, const ConvWork *w);
/* A depthwise convolution with c channels and the 1x1 convolution behind it, as one kernel
 * (cpu/pair.c): the rows that it makes at a time; 0: two kernels are better. */
typedef struct {
    int64_t c, o, y, x, lanes; /* o in blocks of so many lanes */
} PairWork;
int64_t cpu_pair_rows(const Target *t, const PairWork *w);
/* ... on a GPU, whose tiles make what they read, of a kernel of so many cells (gpu/tile.c). */
bool gpu_pair_pays(const Target *t, const PairWork *w, int64_t taps);
/* Steps of the sum that an instruction of warps takes of products of these types, which are best if
 * they lie side by side; 0: the target has none (gpu/tensor.c). */
int64_t gpu_steps(Ctx *c, DType data, DType weight, DType sum);
/* A convolution on a GPU, of so many images, outputs, pixels, channels and cells of the kernel,
 * with lanes that are no channel: cycles of the device in the tiles that the rules choose. */
typedef struct {
    DType   data, weight, sum;
    int64_t n, out, pixels, channels, taps;
    bool    along; /* channels are in blocks of whole instructions */
    int64_t run;   /* outputs that lie side by side; 0: pixels do */
} GpuConv;
double gpu_conv_cycles(Ctx *c, const GpuConv *w);
/* Nanoseconds of a kernel on a core that are functions and divisions, and sums that are no products
 * (cpu/common.c). */
double cpu_cells_ns(const Sched *s);
typedef struct {
    const char *op;  /* anchor's text, "*" any */
    const char *def; /* the definition that it arranges, "+" a reduction, "*" any */
    TargetClass cls;
    SchedRule  *rule;
    const char *name; /* "cpu.conv2d_nchwc/1": rule and version, for logs */
} ScheduleRow;
extern const ScheduleRow schedule_table[];
extern const uint32_t    schedule_count;

/* The row is for kernels of this operator, NULL: of none, on a target of its class. */
bool schedule_takes(const ScheduleRow *row, const Target *t, const Op *anchor);

/* The rule of a kernel of which only the text is known, by its definitions (space.c). */
const ScheduleRow *schedule_of_te(Ctx *c, const TeFunc *te, const Target *t);
/* The schedule of a record that holds decisions, `sched_dense/3: tile=6x2, chunk=48`, for a kernel
 * of this operator.  False and s->refusal: of another version of the rule, of a rule for other
 * kernels, or as sched_replay. */
bool schedule_replay(Sched *s, const Op *anchor, const char *text);
/* What the rule decides for the kernel, as text: each decision with its candidates, `*` behind the
 * default, their estimates, and how many points the space has.  Each candidate is applied, the
 * others being the default's; refused ones are left out, and counted with their reasons.  False and
 * an error: the rule does not fit. */
bool space_print(Ctx *c, const TeFunc *te, const Target *t, const ScheduleRow *row, StrBuf *out);

/* Cycles of one core of a convolution of stride 1 by Winograd's algorithm, in tiles of tile + 2
 * cells each way, as sched_winograd would cut it (cpu/winograd.c); INFINITY: the kernel is too
 * large. */
typedef struct {
    int64_t n, in, out, y, x; /* images, channels, size of the result */
    int64_t k[2];             /* the kernel */
    int64_t groups;           /* 0: one */
    int64_t lanes;            /* of a block of channels */
    bool    ints;             /* 8-bit integers, two products of i16 a step */
    bool    short_tiles;      /* the last ones of an axis have no more products than they need */
    bool    open;             /* a run decides y or x; these are their usual ones */
} WinogradShape;
double winograd_cycles(const Machine *m, const WinogradShape *shape, int64_t tile);

/* A product of a recurrent cell that is computed for units of a definition, the gates that it is a
 * part of, and what follows from the definition (recurrent.c). */
typedef struct {
    const char *host, *product, *gates, *follow[2];
} RecurrentPart;
/* Of the kernel's cell, at most two, in order; one without a host is behind the last. */
const RecurrentPart *recurrent_parts(const Sched *s);

#define SCHED(op, def, cls, rule, version) SchedRule rule;
#include "schedules/schedules.def"
#undef SCHED

#endif
