/* What the model of the machine says of a model's kernels, beside what they take (predict.c). */
#ifndef TVMCC_DRIVER_PREDICT_H
#define TVMCC_DRIVER_PREDICT_H

#include "driver/session.h"
#include "machine/machine.h"

typedef struct {
    Machine     machine;
    uint32_t    n; /* steps; 0: nothing is predicted */
    const Time *times;
    double     *least; /* [step], seconds: of its parts, one after the other */
} Predictor;

/* With --predict: for sessions of a model that was compiled `one_by_one`, with one thread; runs it
 * --repeat times. */
bool predict_open(Predictor *p, Session *s, uint32_t nsteps);
/* Seconds of a call of a step. */
double predict(const Predictor *p, uint32_t step);
/* ... of some, and what it is made of. */
Time predict_parts(const Predictor *p, uint32_t step, double calls);
/* Seconds of a step that has been seen to take `took`, if its parts say no less. */
double predict_least(const Predictor *p, uint32_t step, double took);

#endif
