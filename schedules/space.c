/* The space of a rule as text, and whether its candidates are legal. */
#include "schedules/schedules.h"

#include <math.h>
#include <string.h>

const ScheduleRow *schedule_of_te(Ctx *c, const TeFunc *te, const Target *t)
{
    TensorList defs = te_defs(c, te);

    for (uint32_t i = 0; i < schedule_count; i++) {
        const ScheduleRow *row = &schedule_table[i];
        bool               fits = !strcmp(row->def, "*");

        for (uint32_t k = 0; k < defs.n && !fits; k++)
            fits = strcmp(row->def, "+") ? !strcmp(row->def, defs.at[k]->buffer->name)
                                         : defs.at[k]->kind == TENSOR_REDUCE;
        if (fits && row->cls == t->cls)
            return row;
    }
    return NULL;
}

bool schedule_replay(Sched *s, const Op *anchor, const char *text)
{
    size_t      n = strcspn(text, ":"), stem = strcspn(text, "/:");
    const char *known = NULL;

    for (uint32_t i = 0; text[n] && i < schedule_count; i++) {
        const ScheduleRow *row = &schedule_table[i];

        if (strncmp(row->name, text, stem) != 0 || row->name[stem] != '/')
            continue;
        known = row->name;
        if (schedule_takes(row, s->target, anchor) && strlen(row->name) == n &&
            !strncmp(row->name, text, n))
            return sched_replay(s, row->rule, text + n + 1);
    }
    if (known && strlen(known) == n && !strncmp(known, text, n))
        s->refusal = arena_printf(s->c->arena, "refused: %s does not arrange %s", known,
                                  anchor ? anchor->text : "this kernel");
    else if (known)
        s->refusal = arena_printf(s->c->arena, "refused: decisions of %.*s; the rule is %s now",
                                  (int)n, text, known);
    else
        s->refusal = arena_printf(s->c->arena, "refused: there is no rule '%.*s'", (int)n, text);
    return false;
}

/* The rule's schedule along a trail, or by its own choice. */
static Sched *along(Ctx *c, const TeFunc *te, const Target *t, const ScheduleRow *row, Trail *trail,
                    uint64_t *points)
{
    Sched *s = sched_new(c, t, te);

    s->points = points;
    s->choose = trail ? trail_choose : NULL;
    s->picker = trail;
    row->rule(s);
    return s;
}

typedef struct {
    const char *refusal;
    uint32_t    n;
} Pruned;
typedef VEC(Pruned) PrunedList;

static void prune(Ctx *c, PrunedList *list, const char *refusal)
{
    uint32_t i = 0;

    while (i < list->n && strcmp(list->at[i].refusal, refusal) != 0)
        i++;
    if (i == list->n)
        vec_push(c->arena, list, ((Pruned){refusal, 0}));
    list->at[i].n++;
}

static void print_candidate(const Decision *d, uint32_t i, bool first, StrBuf *out)
{
    str_add(out, first ? " " : ", ");
    candidate_print(d, i, out);
    str_add(out, i == d->best ? "*" : "");
    if (!isnan(d->at[i].cycles))
        str_printf(out, " %.*f", d->at[i].cycles < 100 ? 1 : 0, d->at[i].cycles);
}

bool space_print(Ctx *c, const TeFunc *te, const Target *t, const ScheduleRow *row, StrBuf *out)
{
    uint64_t   points = 1;
    Sched     *s = along(c, te, t, row, NULL, &points);
    PrunedList pruned = {0};
    Trail      trail = {0};

    if (s->refusal)
        return error_at(c, E_SCHEDULE, te->loc, "rule %s does not fit kernel '%s': %s", row->name,
                        te->name, s->refusal);
    str_printf(out, "@%s: %s, %s%llu point%s\n", te->name, row->name,
               points == MOST_POINTS ? "more than " : "", (unsigned long long)points,
               points == 1 ? "" : "s");
    for (uint32_t i = 0; i < s->decisions.n; i++) {
        const Decision *d = &s->decisions.at[i];
        bool            first = true;

        trail.n = i + 1;
        str_printf(out, "    %s =", d->name);
        for (uint32_t k = 0; k < d->n; k++) {
            trail.at[i] = k;
            Sched *point = k == d->taken ? s : along(c, te, t, row, &trail, NULL);
            if (point->refusal) {
                prune(c, &pruned, point->refusal);
                continue;
            }
            print_candidate(d, k, first, out);
            first = false;
        }
        trail.at[i] = d->taken;
        str_add(out, "\n");
    }
    for (uint32_t i = 0; i < pruned.n; i++)
        str_printf(out, "    pruned %u: %s\n", pruned.at[i].n, pruned.at[i].refusal);
    return true;
}
