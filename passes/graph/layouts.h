/* The layouts that the values of a function may have, and what they cost, by the class of the
 * target (docs/design/layouts.md): layout_choice.c offers and chooses, layout_cpu.c and
 * layout_device.c count. */
#ifndef TVMCC_PASSES_LAYOUTS_H
#define TVMCC_PASSES_LAYOUTS_H

#include "passes/graph/graph.h"
#include "schedules/schedules.h"

typedef struct LayoutCosts LayoutCosts;

typedef struct {
    Ctx               *c;
    Machine            machine;
    LayoutPlan         plan;
    const LayoutCosts *costs;
} LayoutSpace;

typedef struct {
    int64_t in[4], out[4], groups, group_in, kh, kw, stride, dilation;
    TapAxis axis[2];
    DType   data, weight, sum;
    bool    depthwise, grouped, wino, is_float;
} ConvDims;

/* What depends on the class of the target: the rows of layouts.def. */
struct LayoutCosts {
    /* The widths of blocks, widest first, that the function may have; plain is there. */
    void (*widths)(LayoutSpace *s, const ExprList *function);
    /* Values of this type may be in blocks. */
    bool (*blocks)(DType t);
    /* A convolution may be so, if its `block` function takes it; .. */
    bool (*reads)(const LayoutSpace *s, const ConvDims *d, Layouts l);
    /* .. cycles of a convolution, of another operator, of the same value in another layout. */
    double (*conv)(const LayoutSpace *s, const ConvDims *d, Layouts l);
    double (*other)(const LayoutSpace *s, const Expr *e, const int64_t dims[4], uint32_t layout);
    double (*repack)(const LayoutSpace *s, const Expr *e, const int64_t dims[4], uint32_t from,
                     uint32_t to);
};
#define LAYOUTS(cls, costs) extern const LayoutCosts costs;
#include "passes/graph/layouts.def"
#undef LAYOUTS

/* Cells of an image in a layout, surplus lanes included. */
double layout_cells(const LayoutPlan *p, const int64_t dims[4], uint32_t layout);
/* Both layouts of a value are the same bytes. */
bool same_bytes(const LayoutPlan *p, const int64_t dims[4], uint32_t from, uint32_t to);
/* Cycles on a CPU of copies of plain data with so many channels in the place of a convolution's,
 * and of its results without those that are more (fill_groups). */
double filled_cycles(const LayoutSpace *s, const ConvDims *d, int64_t in, int64_t out);
/* Groups of a convolution fit into blocks, or blocks into them. */
bool fits_groups(const ConvDims *d, int64_t width);

#endif
