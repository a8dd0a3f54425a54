/* A manifest's products as steps for Ninja: what `ninja` and `build` share.
 *
 *   build_args.c    a product of the manifest as options of the compiler
 *   cmd_ninja.c     the manifest as build.ninja, from the template at the top of the repository
 *   cmd_build.c     that, and Ninja
 *   build_report.c  what the steps tell the `tvmcc build` above them
 */
#ifndef TVMCC_DRIVER_BUILD_H
#define TVMCC_DRIVER_BUILD_H

#include "driver/driver.h"
#include "manifest/manifest.h"

/* ---- build_args.c ----------------------------------------------------------------------------- */

/* Words of command lines, not quoted.  Paths are relative to the folder where Ninja runs. */
typedef struct {
    TextList lower, link, audit, verify;
} BuildArgs;

/* False with errors at the places of the manifest that this compiler has no option for. */
bool build_args(Driver *driver, const char *folder, const ManBuild *b, BuildArgs *out);
/* `path`, which is relative to the current folder, as seen from `folder`, which is absolute and has
 * no links in it.  Absolute if they have nothing in common. */
const char *path_from(Arena *a, const char *folder, const char *path);

/* ---- cmd_ninja.c ------------------------------------------------------------------------------ */

/* Where things are. */
typedef struct {
    const char *manifest; /* as given */
    const char *output;   /* build.ninja; "-" is standard output */
    const char *folder;   /* of build.ninja: absolute, without links; Ninja runs there */
    const char *builddir; /* of the products, as seen from `folder` */
    const char *compiler; /* absolute path of this program */
    const char *head;     /* first lines of build.ninja: another head, another build */
} BuildPlace;

/* Makes the folder.  `output` NULL: in the build folder. */
bool build_place(Driver *driver, const char *output, BuildPlace *out);
/* Writes build.ninja and its depfile. */
bool build_expand(Driver *driver, const BuildPlace *place);

/* ---- build_report.c ---------------------------------------------------------------------------- */

/* Ninja says 1 whatever happened, so each step tells the `tvmcc build` above it, if there is one,
 * over a pipe that it inherits. */
void report_status(int status);
void report_kernels(uint32_t all, uint32_t compiled);

#define REPORT_VARIABLE "TVMCC_BUILD_REPORT" /* number of the descriptor */

#endif
