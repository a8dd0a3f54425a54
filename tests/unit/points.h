/* Random points of schedule rules' spaces, and numbers to run them on.  Shared by test_space.c
 * (rules of CPUs, their nests) and test_space_device.c (rules of GPUs, down to the text of the
 * device). */
#ifndef TVMCC_TESTS_POINTS_H
#define TVMCC_TESTS_POINTS_H

#include "schedules/schedules.h"
#include "tests/unit/nests.h"

#include <math.h>

/* ---- numbers ------------------------------------------------------------------------------------- */

static inline void set(const Buffer *b, Mem m, int64_t i, int64_t v)
{
    char *at = (char *)m.base + i * dtype_bytes(b->dtype);

    if (dtype_is_float(b->dtype))
        dtype_put_f(b->dtype, at, (double)v);
    else
        dtype_put_i(b->dtype, at, v);
}

static inline double get(const Buffer *b, Mem m, int64_t i)
{
    const char *at = (const char *)m.base + i * dtype_bytes(b->dtype);

    return dtype_is_float(b->dtype) ? dtype_get_f(b->dtype, at) : (double)dtype_get_i(b->dtype, at);
}

/* Small numbers inside, what the halo says around them. */
static inline void fill(const Buffer *b, Mem m, uint64_t s)
{
    int64_t    at[8] = {0};
    const Idx *stride[8];

    seed = s;
    for (int64_t i = 0; i < m.n; i++)
        set(b, m, i, b->halo ? (int64_t)b->halo->value : 77);
    buffer_strides(c, b, stride);
    for (;;) {
        int64_t  off = m.origin;
        uint32_t d = b->ndim;

        for (uint32_t i = 0; i < b->ndim; i++)
            off += at[i] * stride[i]->c0;
        set(b, m, off, (int64_t)rnd(9) - (b->dtype.code == DT_UINT ? 0 : 4));
        while (d > 0 && ++at[d - 1] == b->extent[d - 1]->c0)
            at[--d] = 0;
        if (!d)
            return;
    }
}

static inline bool same(const Buffer *b, Mem want, Mem got)
{
    for (int64_t i = 0; i < want.n && want.n == got.n; i++)
        if (!(fabs(get(b, want, i) - get(b, got, i)) <= 1e-5 * (1 + fabs(get(b, want, i)))))
            return false;
    return want.n == got.n;
}

/* ---- points --------------------------------------------------------------------------------------- */

static inline uint32_t any(void *user, Sched *s, const Decision *d)
{
    (void)user;
    (void)s;
    return rnd(d->n);
}

static inline Sched *point_of(const TeFunc *te, const Target *t, const ScheduleRow *row,
                              Picker *choose)
{
    Sched *s = sched_new(c, t, te);

    s->choose = choose;
    row->rule(s);
    return s;
}

static inline const char *point_text(const Sched *s)
{
    StrBuf text = strbuf(c->scratch);

    decisions_print(s, &text);
    return text.n ? text.at : "";
}

#endif
