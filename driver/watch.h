/* What the steps of a model take, run by run (watch.c). */
#ifndef TVMCC_DRIVER_WATCH_H
#define TVMCC_DRIVER_WATCH_H

#include "driver/session.h"

typedef struct {
    uint32_t    nsteps, nruns;
    uint32_t   *calls;    /* [step], of all runs */
    double     *took;     /* [step][run], seconds */
    bool       *launched; /* [step]: the device said what it took */
    double      wall;     /* seconds of a run that nobody watches */
    bool        timed;    /* by the device; else by the host's clock, .. */
    const char *untimed;  /* .. because of this; NULL: no device */
} Watch;

/* --repeat runs with and as many without watching, after some to warm up; false with an error. */
bool watch_steps(Watch *w, Session *s);

#endif
