/* Pages for a browser: what `profile --html` and `inspect --html` write.
 *
 *   html_page.c     one file of data, style and script (driver/page/), which draws the data
 *   html_graph.c    the graph of a model as data
 *   html_profile.c  times, memory and the graph with its hot kernels
 *   html_inspect.c  the graph alone, or what a product says of itself
 *
 * Data are JSON; a name from a model never becomes markup. */
#ifndef TVMCC_DRIVER_HTML_H
#define TVMCC_DRIVER_HTML_H

#include "driver/session.h"

/* ---- html_page.c ---- */

/* The page for `json`, an object without its closing brace, at `path`. */
bool html_write(Driver *driver, const char *path, const char *title, const StrBuf *json);
/* `{"title": .., "about": [..], "tiles": [`: tiles follow, then html_end_tiles. */
void html_begin(StrBuf *s, const char *title, uint32_t n, const char *const *about);
/* `note` may be NULL.  A figure that is not known has no tile. */
void        html_tile(StrBuf *s, const char *name, const char *value, const char *note);
void        html_end_tiles(StrBuf *s);
const char *html_bytes(Arena *a, double bytes); /* "1.5 MiB" */

/* ---- html_graph.c ---- */

/* The nodes of main: inputs, calls, outputs. */
typedef struct HtmlNode HtmlNode;
typedef struct {
    Ctx *c;
    VEC(HtmlNode) nodes;
    Map *index, *alias; /* of an expression: its node plus one; what a let-bound name stands for */
    uint32_t ninputs, noutputs, ncalls, nconsts;
    double   const_bytes;
} HtmlGraph;

void html_graph(Ctx *c, const Module *m, HtmlGraph *out);
/* Node i runs in kernel k, which takes `us`; at the place `loc` of the model. */
void html_graph_time(HtmlGraph *g, uint32_t node, uint32_t kernel, double us);
bool html_graph_is_at(const HtmlGraph *g, uint32_t node, Loc loc);
/* Fills `at`: the key of a place of the model to the first node there, plus one; nodes of one place
 * stand one behind the other where the frontend made them so. */
void html_graph_places(const HtmlGraph *g, Map *at, uint64_t (*key)(Ctx *c, Loc loc));
void html_graph_nodes_of(const HtmlGraph *g, uint32_t kernel, StrBuf *s); /* `1, 2` */
void html_graph_json(const HtmlGraph *g, StrBuf *s);                      /* `, "nodes": [..]` */

/* ---- html_profile.c ---- */

typedef struct {
    const char *name;
    uint32_t    calls;
    double      us, flops, bytes; /* of all calls of a run */
    bool        elsewhere;        /* peak and bandwidth are not of what runs it */
} HtmlKernel;

typedef struct {
    const Session    *s;
    double            wall_us, total_us; /* a run; the sum of its steps */
    double            peak, bandwidth;   /* flops and bytes a second; 0: not known */
    uint32_t          nkernels, nsteps;
    const HtmlKernel *kernels;
    const double     *step_us; /* [nsteps] */
    const char       *timer;
} HtmlProfile;

bool html_profile(const HtmlProfile *p, const char *path);

/* ---- html_inspect.c ---- */

bool html_model(Driver *driver, Job *job, const char *path);
bool html_product(Driver *driver, const tvmcc_model_info *info, const char *path);

#endif
