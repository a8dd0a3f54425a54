/* Building twice under other conditions (cmd_repro.c): conditions, and one run of the command.
 *
 *   repro_run.c    a run: its folder, its conditions, its process
 *   cmd_repro.c    which runs, and what their products say */
#ifndef TVMCC_DRIVER_REPRO_H
#define TVMCC_DRIVER_REPRO_H

#include "driver/driver.h"
#include "packaging/packaging.h"

typedef enum {
    VARY_FOLDER,
    VARY_HOME,
    VARY_USER,
    VARY_UMASK,
    VARY_LOCALE,
    VARY_ZONE,
    VARY_DATE,
    VARY_JOBS,
    VARY_ORDER,
    VARY_ENVIRONMENT,
    VARY_CACHE,
    VARY_COUNT
} Vary;

extern const char *const vary_names[VARY_COUNT];

typedef struct {
    const char *path; /* relative, as the command names it */
    Bytes       data;
    bool        executable;
} ReproInput;

typedef struct {
    Driver     *driver;
    const char *work, *program;      /* folder of all runs; this program */
    TextList    words;               /* of the command, without the program */
    TextList    launcher;            /* in front of it */
    bool        takes_jobs, reorder; /* has -j; files may come in any order */
    VEC(ReproInput) inputs;
    const char *faketime;        /* or NULL */
    uint32_t    possible;        /* set of 1 << VARY_x that this machine can vary */
    const char *why[VARY_COUNT]; /* the others: why not */
    uint32_t    runs;
    int         messages; /* what the last run said */
} Repro;

/* One run under these conditions, always in the same place: the folder that its products were moved
 * to, NULL after errors.  With VARY_CACHE the run takes over the kernel cache of the run before. */
const char *repro_run(Repro *r, uint32_t conditions, int *status);
/* Can a process of another user run the program? */
bool repro_other_user(const Repro *r, const char **why);

#endif
