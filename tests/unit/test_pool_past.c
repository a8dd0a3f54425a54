/* What a pool learns of the launches of a function: waking somebody pays for the launches that find
 * him awake; what was lost by it, or by threads that came and were slow, is not put at risk for
 * long. */
#include "runtime/thread.c"
#include "tests/unit/check.h"

enum { US = 1000, ALONE = 300 * US, WAKING = 40 * US };

/* A launch that called, whom it found awake; one that woke somebody, who came; one that woke in
 * vain. */
static void together(Past *p, int64_t took)
{
    learn(p, &(Launch){.called = true, .came = 1, .all = took, .run = took});
}

static void woken(Past *p, int64_t took)
{
    learn(p,
          &(Launch){.called = true, .came = 1, .wake = WAKING, .all = took, .run = took - WAKING});
}

static void in_vain(Past *p, int64_t lost, int64_t run)
{
    learn(p, &(Launch){.called = true, .wake = WAKING, .all = run + lost, .run = run});
}

static void by_itself(Past *p, bool first, int64_t took)
{
    learn(p, &(Launch){.first = first, .all = took, .run = took});
}

int main(void)
{
    Past p = {.alone = {ALONE, ALONE}};

    together(&p, ALONE / 2);
    CHECK_INT(p.debt, 0);
    CHECK(calls(&p, 2, false));

    /* In vain: it is awake at the next launch, and makes up for it. */
    settle_up(&p);
    in_vain(&p, 5 * US, ALONE);
    CHECK(calls(&p, 2, false));
    together(&p, ALONE / 2);
    settle_up(&p);
    CHECK_INT(p.fails, 0);
    CHECK(calls(&p, 2, false));

    /* It came late: the same. */
    woken(&p, ALONE + 100 * US);
    CHECK(calls(&p, 2, false));
    together(&p, ALONE - 80 * US);
    CHECK(calls(&p, 2, false));
    together(&p, ALONE - 80 * US);
    settle_up(&p);
    CHECK_INT(p.fails, 0);

    /* Nothing made up for it, in as many launches as are tried. */
    woken(&p, ALONE + 10 * US);
    together(&p, ALONE - 5 * US);
    together(&p, ALONE + 4 * US);
    CHECK(calls(&p, 2, false));
    together(&p, ALONE - 4 * US);
    CHECK(calls(&p, 2, false));
    together(&p, ALONE + 1 * US);
    CHECK_INT(p.fails, 1);
    CHECK_INT(p.debt, 6 * US * RETRY);
    CHECK(!calls(&p, 2, false));
    by_itself(&p, false, 6 * US * RETRY);
    CHECK(calls(&p, 2, false));

    /* A short function runs alone until those that it woke are awake. */
    Past s = {.alone = {10 * US, 10 * US}, .together = 6 * US};
    in_vain(&s, 2 * US, 10 * US);
    CHECK_INT(s.debt, WAKING - 12 * US);
    for (int i = 0; i < 3; i++) {
        CHECK(!calls(&s, 2, false));
        by_itself(&s, false, 10 * US);
    }
    CHECK(calls(&s, 2, false));

    /* Who is very slow: at once; but what was gained before counts against CREDIT launches. */
    Past q = {.alone = {ALONE, ALONE}, .together = ALONE / 2};
    in_vain(&q, 2 * US, ALONE);
    together(&q, (1 + CREDIT) * ALONE);
    CHECK_INT(q.fails, 1);
    CHECK_INT(q.debt, ALONE << 5);
    Past r = {.alone = {ALONE, ALONE}, .together = ALONE / 2};
    for (int i = 0; i < 100; i++)
        together(&r, ALONE / 2);
    for (int i = 0; i < CREDIT; i++) {
        together(&r, 2 * ALONE);
        CHECK(calls(&r, 2, false));
    }
    together(&r, 2 * ALONE);
    CHECK(!calls(&r, 2, false));

    /* What it takes alone is known apart for launches after a pause. */
    Past t = {.alone = {ALONE}, .together = ALONE / 2};
    CHECK(calls(&t, 2, false));
    CHECK(!calls(&t, 2, true));
    by_itself(&t, true, 2 * ALONE);
    CHECK(calls(&t, 2, true));
    learn(&t, &(Launch){.called = true,
                        .first = true,
                        .came = 1,
                        .wake = WAKING,
                        .all = ALONE * 3 / 2,
                        .run = ALONE});
    CHECK_INT(t.lost, -ALONE / 2 - 1);
    return check_result();
}
