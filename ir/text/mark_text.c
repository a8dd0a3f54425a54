/* Marks of loops and buffers as text, in both directions: rows of ir/tir/mark.def, in their order.
 */
#include "ir/text/parse_tir.h"

#include <inttypes.h>

/* ---- printing ---------------------------------------------------------------------------------- */

static void print_mark(Printer *p, const Mark *m, const void *of)
{
    const void  *field = (const char *)of + m->offset;
    const Pitch *pitch;

    switch (m->form) {
    case FORM_FLAG: str_printf(p->out, " %s", m->text); return;
    case FORM_NUMBER:
    case FORM_POWER: str_printf(p->out, " %s %u", m->text, *(const uint32_t *)field); return;
    case FORM_NAME:
        str_printf(p->out, " %s @%s", m->text, printer_clean_name(p, *(const char *const *)field));
        return;
    case FORM_INTRIN: str_printf(p->out, " %s", *(const char *const *)field); return;
    case FORM_AXIS:
        str_printf(p->out, " %s(%s)", m->text, bind_axis_text(*(const BindAxis *)field));
        return;
    case FORM_PITCH:
        pitch = *(const Pitch *const *)field;
        str_printf(p->out, " %s(%u: %" PRId64 "+%" PRId64 ")", m->text, pitch->dim, pitch->factor,
                   pitch->offset);
        return;
    }
}

void print_marks(Printer *p, const MarkTable *t, const void *of)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (mark_is_set(&t->at[i], of))
            print_mark(p, &t->at[i], of);
}

/* ---- parsing ----------------------------------------------------------------------------------- */

static BindAxis parse_axis(Parser *p)
{
    const char *words[AXIS_COUNT - 1];
    uint32_t    i;

    for (i = 0; i < COUNT(words); i++)
        words[i] = bind_axis_text((BindAxis)(i + 1));
    i = parse_one_of(p, words, COUNT(words), "axis");
    return i < COUNT(words) ? (BindAxis)(i + 1) : AXIS_NONE;
}

static uint32_t parse_number(Parser *p, const Mark *m)
{
    int64_t n = parse_int(p);
    bool    power = m->form == FORM_POWER;

    if (!p->failed && (n < 1 || n > m->most || (power && (n & (n - 1)))))
        parse_fail(p, "'%s' takes %s from 1 to %" PRId64 ", not %" PRId64, m->text,
                   power ? "a power of two" : "a number", m->most, n);
    return (uint32_t)n;
}

/* `1: 32+16)` */
static const Pitch *parse_pitch(Parser *p, const Mark *m)
{
    Pitch   at;
    int64_t dim = parse_int(p);

    parse_expect(p, ":");
    at.factor = parse_int(p);
    parse_expect(p, "+");
    at.offset = parse_int(p);
    if (!p->failed && (dim < 0 || dim >= MAX_NDIM || at.factor < 1 || at.factor > m->most ||
                       at.offset < 0 || at.offset >= at.factor))
        parse_fail(p, "a pitch of %" PRId64 "+%" PRId64 " for dimension %" PRId64, at.factor,
                   at.offset, dim);
    parse_expect(p, ")");
    at.dim = (uint32_t)dim;
    return arena_dup(p->c->arena, &at, sizeof at);
}

static bool accept_intrin(Parser *p, const char **name)
{
    for (uint32_t i = 0; i < INTRIN_COUNT; i++)
        if (parse_accept(p, intrin_text((IntrinId)i))) {
            *name = intrin_text((IntrinId)i);
            return true;
        }
    return false;
}

static void parse_mark(Parser *p, const Mark *m, void *of)
{
    void *field = (char *)of + m->offset;

    if (m->form == FORM_INTRIN) {
        accept_intrin(p, field);
        return;
    }
    if (!parse_accept(p, m->text))
        return;
    switch (m->form) {
    case FORM_FLAG: *(bool *)field = true; return;
    case FORM_NUMBER:
    case FORM_POWER: *(uint32_t *)field = parse_number(p, m); return;
    case FORM_NAME: *(const char **)field = parse_symbol(p); return;
    case FORM_AXIS:
        parse_expect(p, "(");
        *(BindAxis *)field = parse_axis(p);
        parse_expect(p, ")");
        return;
    case FORM_PITCH:
        parse_expect(p, "(");
        *(const Pitch **)field = parse_pitch(p, m);
        return;
    case FORM_INTRIN: return;
    }
}

void parse_marks(Parser *p, const MarkTable *t, void *of)
{
    for (uint32_t i = 0; i < t->n && !p->failed; i++)
        parse_mark(p, &t->at[i], of);
}
