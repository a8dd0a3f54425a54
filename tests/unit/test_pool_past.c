/* What a pool learns of the launches of a function: whom one has woken in vain the next one calls
 * again; what is lost twice in a row, or by threads that came, is not put at risk for long. */
#include "runtime/thread.c"
#include "tests/unit/check.h"

enum { US = 1000, ALONE = 300 * US, WOKEN = 40 * US };

/* Launches that called: others came, or nobody. */
static void together(Past *p, int64_t took)
{
    learn(p, 1, true, 0, took, took);
}

static void in_vain(Past *p, int64_t lost)
{
    learn(p, 0, true, WOKEN, ALONE + lost, ALONE);
}

int main(void)
{
    Past p = {.alone = ALONE};

    together(&p, ALONE / 2);
    CHECK_INT(p.debt, 0);
    CHECK(calls(&p, 2));

    /* Asleep: it is awake at the next launch. */
    in_vain(&p, 5 * US);
    CHECK(calls(&p, 2));
    CHECK_INT(p.fails, 0);
    together(&p, ALONE / 2);
    CHECK(calls(&p, 2));
    CHECK_INT(p.fails, 0);

    /* A short function runs alone until it is. */
    Past s = {.alone = 10 * US, .together = 6 * US};
    learn(&s, 0, true, WOKEN, 12 * US, 10 * US);
    CHECK_INT(s.debt, WOKEN - 12 * US);
    for (int i = 0; i < 3; i++) {
        CHECK(!calls(&s, 2));
        learn(&s, 0, false, 0, 10 * US, 10 * US);
    }
    CHECK(calls(&s, 2));

    /* Asleep again: both losses count. */
    in_vain(&p, 2 * US);
    in_vain(&p, 3 * US);
    CHECK_INT(p.fails, 1);
    CHECK_INT(p.debt, 5 * US * RETRY);
    CHECK(!calls(&p, 2));

    /* It came and was slow; a loss before that is not forgotten. */
    Past q = {.alone = ALONE, .together = ALONE / 2};
    in_vain(&q, 2 * US);
    together(&q, ALONE + 1 * US);
    CHECK_INT(q.fails, 1);
    CHECK_INT(q.debt, 3 * US * RETRY);
    return check_result();
}
