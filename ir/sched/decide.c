/* Decisions: what a rule chooses, out of which candidates, and who chooses
 * (docs/design/decisions.md).
 *
 * A rule reads the sizes of its kernel, decides (`sched_decide`), then emits steps.  So the
 * decisions alone can be walked through without a nest: that counts the space.  The candidates of a
 * later decision may depend on earlier ones; the space is a tree. */
#include "ir/sched/impl.h"

#include <math.h>
#include <string.h>

/* ---- picks ----------------------------------------------------------------------------------- */

void candidate(Candidates *k, int64_t a, int64_t b, double cycles)
{
    Candidate one = {{a, b}, cycles};

    vec_push(k->arena, &k->of, one);
}

void usual(Candidates *k, int64_t a, int64_t b)
{
    for (uint32_t i = 0; i < k->of.n; i++)
        if (k->of.at[i].v[0] == a && k->of.at[i].v[1] == b)
            k->usual = i + 1;
    if (k->usual)
        return;
    candidate(k, a, b, NAN);
    k->usual = k->of.n;
}

double least_estimate(const Candidates *k)
{
    double least = INFINITY;

    for (uint32_t i = 0; i < k->of.n; i++)
        least = fmin(least, k->of.at[i].cycles);
    return least;
}

/* Estimates that differ by rounding are equal: the first of them is taken. */
static uint32_t quickest(const Candidates *k)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < k->of.n; i++)
        if (k->of.at[i].cycles < k->of.at[best].cycles * (1 - 1e-9) ||
            (isnan(k->of.at[best].cycles) && !isnan(k->of.at[i].cycles)))
            best = i;
    return best;
}

static const Candidate *pick(Sched *s, const char *name, PickKind kind, const Candidates *k,
                             const char *const *words)
{
    if (!k->of.n)
        BUG("decision '%s' has no candidate", name);
    Decision d = {.name = name,
                  .kind = kind,
                  .n = k->of.n,
                  .at = k->of.at,
                  .words = words,
                  .usual = k->usual > 0,
                  .best = k->usual ? k->usual - 1 : quickest(k)};

    d.taken = s->choose ? s->choose(s->picker, s, &d) : d.best;
    vec_push(s->choices, &s->decisions, d);
    return &d.at[d.taken];
}

Candidates candidates(Sched *s)
{
    return (Candidates){.arena = s->choices};
}

int64_t pick_factor(Sched *s, const char *name, const Candidates *k)
{
    return pick(s, name, PICK_FACTOR, k, NULL)->v[0];
}

const Candidate *pick_tile(Sched *s, const char *name, const Candidates *k)
{
    return pick(s, name, PICK_TILE, k, NULL);
}

uint32_t pick_order(Sched *s, const char *name, const Candidates *k, const char *const *words)
{
    return (uint32_t)pick(s, name, PICK_ORDER, k, words)->v[0];
}

bool pick_bool(Sched *s, const char *name, bool value)
{
    Candidates k = candidates(s);

    candidate(&k, 0, 0, NAN);
    candidate(&k, 1, 0, NAN);
    usual(&k, value, 0);
    return pick(s, name, PICK_BOOL, &k, NULL)->v[0] != 0;
}

/* ---- walking ----------------------------------------------------------------------------------- */

uint32_t trail_choose(void *trail, Sched *s, const Decision *d)
{
    const Trail *t = trail;

    return s->decisions.n < t->n ? t->at[s->decisions.n] : t->first ? 0 : d->best;
}

/* The next leaf but for the last decision, whose candidates are all leaves; false: there is none.
 */
static bool next_branch(const Sched *s, Trail *t)
{
    for (uint32_t i = s->decisions.n > 0 ? s->decisions.n - 1 : 0; i-- > 0;) {
        const Decision *d = &s->decisions.at[i];

        if (d->taken + 1 == d->n)
            continue;
        for (uint32_t k = 0; k < i; k++)
            t->at[k] = s->decisions.at[k].taken;
        t->at[i] = d->taken + 1;
        t->n = i + 1;
        return true;
    }
    return false;
}

static uint64_t count_points(const Sched *s, Decide *fn, void *plan)
{
    Arena   *arena = arena_new(NULL);
    Trail    t = {.first = true};
    uint64_t points = 0;

    for (bool more = true; more && points < MOST_POINTS;) {
        Sched probe = *s;

        arena_reset(arena);
        probe.choices = arena;
        probe.decisions.at = NULL;
        probe.decisions.n = probe.decisions.cap = 0;
        probe.choose = trail_choose;
        probe.picker = &t;
        fn(&probe, plan);
        if (probe.decisions.n > MOST_DECISIONS)
            BUG("%u decisions", probe.decisions.n);
        points += probe.decisions.n ? probe.decisions.at[probe.decisions.n - 1].n : 1;
        more = next_branch(&probe, &t);
    }
    arena_free(arena);
    return points < MOST_POINTS ? points : MOST_POINTS;
}

void sched_decide(Sched *s, Decide *fn, void *plan)
{
    if (s->points)
        *s->points = count_points(s, fn, plan);
    fn(s, plan);
}

/* ---- text -------------------------------------------------------------------------------------- */

void candidate_print(const Decision *d, uint32_t i, StrBuf *out)
{
    const Candidate *k = &d->at[i];

    switch (d->kind) {
    case PICK_FACTOR: str_printf(out, "%lld", (long long)k->v[0]); break;
    case PICK_TILE: str_printf(out, "%lldx%lld", (long long)k->v[0], (long long)k->v[1]); break;
    case PICK_ORDER: str_add(out, d->words[k->v[0]]); break;
    case PICK_BOOL: str_add(out, k->v[0] ? "yes" : "no"); break;
    }
}

void decisions_print(const Sched *s, StrBuf *out)
{
    bool any = false;

    for (uint32_t i = 0; i < s->decisions.n; i++) {
        const Decision *d = &s->decisions.at[i];

        if (d->n == 1)
            continue;
        str_printf(out, any ? ", %s=" : "%s=", d->name);
        candidate_print(d, d->taken, out);
        any = true;
    }
}

static void print_cycles(const Decision *d, uint32_t i, StrBuf *out)
{
    candidate_print(d, i, out);
    if (!isnan(d->at[i].cycles))
        str_printf(out, ", %.*f cycles", d->at[i].cycles < 100 ? 1 : 0, d->at[i].cycles);
}

/* The quickest candidate but for the one that was taken; n: none has an estimate. */
static uint32_t runner_up(const Decision *d)
{
    uint32_t best = d->n;

    for (uint32_t i = 0; i < d->n; i++)
        if (i != d->taken && !isnan(d->at[i].cycles) &&
            (best == d->n || d->at[i].cycles < d->at[best].cycles))
            best = i;
    return best;
}

void decisions_explain(const Sched *s, StrBuf *out)
{
    for (uint32_t i = 0; i < s->decisions.n; i++) {
        const Decision *d = &s->decisions.at[i];
        uint32_t        next = runner_up(d);

        if (d->n == 1)
            continue;
        str_printf(out, "%s = ", d->name);
        print_cycles(d, d->taken, out);
        str_add(out, d->taken != d->best ? ", as asked for" : d->usual ? ", by rule of thumb" : "");
        if (next < d->n) {
            str_add(out, "; then ");
            print_cycles(d, next, out);
        }
        str_printf(out, "; of %u\n", d->n);
    }
}

/* ---- replay ------------------------------------------------------------------------------------ */

typedef struct {
    const char *name, *value;
    bool        used;
} Given;

typedef struct {
    VEC(Given) all;
} Replay;

static const char *word_of(Ctx *c, const char *from, const char *to)
{
    while (from < to && *from == ' ')
        from++;
    while (to > from && to[-1] == ' ')
        to--;
    return intern_n(c->strings, from, (size_t)(to - from));
}

/* `name=value, ..`; false and a refusal if it is not that. */
static bool parse_given(Sched *s, const char *text, Replay *r)
{
    for (const char *p = text; *p;) {
        const char *end = p + strcspn(p, ","), *is = memchr(p, '=', (size_t)(end - p));
        Given       g = {0};

        if (!is) {
            s->refusal = arena_printf(s->c->arena, "refused: '%s' is no decision, name=value",
                                      word_of(s->c, p, end));
            return false;
        }
        g.name = word_of(s->c, p, is);
        g.value = word_of(s->c, is + 1, end);
        for (uint32_t i = 0; i < r->all.n; i++)
            if (r->all.at[i].name == g.name)
                s->refusal = arena_printf(s->c->arena, "refused: '%s' is decided twice", g.name);
        vec_push(s->c->arena, &r->all, g);
        p = end + (*end == ',');
    }
    return !s->refusal;
}

/* A few of the candidates, for a message. */
static const char *some_of(Ctx *c, const Decision *d)
{
    enum { SOME = 8 };
    StrBuf text = strbuf(c->arena);

    for (uint32_t i = 0; i < d->n && i < SOME; i++) {
        str_add(&text, i ? ", " : "");
        candidate_print(d, i, &text);
    }
    str_add(&text, d->n > SOME ? " .." : "");
    return text.at;
}

static uint32_t replay_choose(void *user, Sched *s, const Decision *d)
{
    Replay *r = user;
    StrBuf  text = strbuf(s->c->arena);

    for (uint32_t i = 0; i < r->all.n; i++) {
        Given *g = &r->all.at[i];

        if (strcmp(g->name, d->name) != 0)
            continue;
        g->used = true;
        for (uint32_t k = 0; k < d->n; k++) {
            text.n = 0;
            candidate_print(d, k, &text);
            if (strcmp(text.at, g->value) == 0)
                return k;
        }
        if (!s->refusal)
            s->refusal = arena_printf(s->c->arena, "refused: %s=%s: it can be %s", g->name,
                                      g->value, some_of(s->c, d));
    }
    return d->best;
}

static void refuse_unknown(Sched *s, const Replay *r)
{
    const char **names = NEW_ARRAY(s->c->arena, const char *, s->decisions.n + 1);

    for (uint32_t i = 0; i < s->decisions.n; i++)
        names[i] = s->decisions.at[i].name;
    for (uint32_t i = 0; i < r->all.n && !s->refusal; i++) {
        const char *near = str_closest(r->all.at[i].name, names, s->decisions.n);

        if (r->all.at[i].used)
            continue;
        s->refusal = arena_printf(s->c->arena,
                                  near ? "refused: there is no decision '%s', did you mean '%s'?"
                                       : "refused: there is no decision '%s'",
                                  r->all.at[i].name, near);
    }
}

bool sched_replay(Sched *s, SchedRule *rule, const char *text)
{
    Replay r = {0};

    if (!parse_given(s, text, &r))
        return false;
    s->choose = replay_choose;
    s->picker = &r;
    rule(s);
    s->choose = NULL;
    s->picker = NULL;
    if (!s->refusal)
        refuse_unknown(s, &r);
    return !s->refusal;
}
