/* The tables of layers, operators and their messages. */
#include "frontends/coreml/coreml.h"

#include <string.h>

/* Messages by name, so that rows of layers.def are checked by the compiler. */
enum {
#define RECORD(name, fields) AT_##name,
#include "frontends/coreml/records.def"
#undef RECORD
    RECORD_COUNT
};

#define RECORD(name, fields) {#name, fields},
static const CmlRecord records[] = {
#include "frontends/coreml/records.def"
};
#undef RECORD

enum {
#define INPUTS(name, inputs) IN_##name,
#include "frontends/coreml/inputs.def"
#undef INPUTS
};

#define INPUTS(name, inputs) inputs,
static const char *const inputs_of[] = {
#include "frontends/coreml/inputs.def"
};
#undef INPUTS

#define none NULL
#define LAYER(number, name, record, inputs, how, relay, convert) \
    {#name, number, &records[AT_##record], inputs, CML_##how, relay, convert},
#define PROGRAM_OP(name, how, relay, convert) {#name, 0, NULL, NULL, CML_##how, relay, convert},
const CmlRow cml_rows[] = {
#include "frontends/coreml/layers.def"
#include "frontends/coreml/programs.def"
};
#undef LAYER
#undef PROGRAM_OP
#undef none

/* Inputs of the operators in the order of programs.def. */
#define PROGRAM_OP(name, how, relay, convert) IN_##name,
static const int program_inputs[] = {
#include "frontends/coreml/programs.def"
};
#undef PROGRAM_OP

const uint32_t cml_nrows = COUNT(cml_rows);
enum { FIRST_PROGRAM = COUNT(cml_rows) - COUNT(program_inputs) };

const char *cml_inputs(const CmlRow *row)
{
    return row->inputs ? row->inputs
                       : inputs_of[program_inputs[(uint32_t)(row - cml_rows) - FIRST_PROGRAM]];
}

const CmlRow *cml_layer_row(uint32_t number)
{
    for (uint32_t i = 0; number && i < cml_nrows; i++)
        if (cml_rows[i].number == number)
            return &cml_rows[i];
    return NULL;
}

const CmlRow *cml_program_row(const char *type)
{
    for (uint32_t i = FIRST_PROGRAM; i < cml_nrows; i++)
        if (!strcmp(cml_rows[i].name, type))
            return &cml_rows[i];
    return NULL;
}

bool cml_word(const char *inputs, uint32_t i, CmlWord *out)
{
    const char *at = inputs;

    for (;;) {
        size_t n = strcspn(at, " ");

        if (!n)
            return false;
        if (i-- == 0) {
            *out = (CmlWord){.name = at, .n = (uint32_t)strcspn(at, " ?.")};
            out->maybe = at[out->n] == '?';
            out->many = at[out->n] == '.';
            return true;
        }
        at += at[n] ? n + 1 : n;
    }
}

/* ---- fields --------------------------------------------------------------------------------------- */

static const CmlRecord *record_named(const char *name, size_t n)
{
    for (uint32_t i = 0; i < COUNT(records); i++)
        if (strlen(records[i].name) == n && !strncmp(records[i].name, name, n))
            return &records[i];
    return NULL;
}

static void read_kind(const char *at, size_t n, CmlField *f)
{
    static const char *const kinds[] = {"int", "bool", "float", "double", "text", "bytes"};

    f->many = n > 2 && at[n - 1] == ']';
    n -= f->many ? 2 : 0;
    for (uint32_t i = 0; i < COUNT(kinds); i++)
        if (strlen(kinds[i]) == n && !strncmp(kinds[i], at, n)) {
            f->kind = (CmlKind)i;
            return;
        }
    f->kind = CML_RECORD;
    f->record = record_named(at, n);
}

/* The next of "number:name:kind .."; false at the end. */
static bool next_field(const char **at, CmlField *f)
{
    const char *word = *at, *end = word + strcspn(word, " "), *name, *kind;

    *f = (CmlField){0};
    if (word == end)
        return false;
    for (; *word != ':'; word++)
        f->number = f->number * 10 + (uint32_t)(*word - '0');
    name = word + 1;
    kind = strchr(name, ':') + 1;
    f->name = name;
    f->n = (uint32_t)(kind - name) - 1;
    read_kind(kind, (size_t)(end - kind), f);
    *at = *end ? end + 1 : end;
    return true;
}

bool cml_field(const CmlRecord *r, const char *name, CmlField *out)
{
    const char *at = r->fields;

    for (uint32_t i = 0; next_field(&at, out); i++) {
        out->place = i;
        if (strlen(name) == out->n && !strncmp(name, out->name, out->n))
            return true;
    }
    return false;
}

bool cml_field_numbered(const CmlRecord *r, uint32_t number, CmlField *out)
{
    const char *at = r->fields;

    for (uint32_t i = 0; next_field(&at, out); i++) {
        out->place = i;
        if (out->number == number)
            return true;
    }
    return false;
}

static const struct {
    uint32_t    number;
    const char *name, *hint;
} refused[] = {
#define CML_REFUSED(number, name, hint) {number, #name, hint},
#include "frontends/coreml/refused.def"
#undef CML_REFUSED
};

const char *cml_layer_kind(Ctx *c, uint32_t number, const char **hint)
{
    const CmlRow *row = cml_layer_row(number);

    *hint = NULL;
    for (uint32_t i = 0; number && i < COUNT(refused); i++)
        if (refused[i].number == number) {
            *hint = refused[i].hint;
            return refused[i].name;
        }
    return row ? row->name : arena_printf(c->arena, "number %u", number);
}

const char *cml_program_refusal(const char *type)
{
    for (uint32_t i = 0; i < COUNT(refused); i++)
        if (!refused[i].number && !strcmp(refused[i].name, type))
            return refused[i].hint;
    return NULL;
}

/* -print-ops=coreml, in the order of the tables. */
void coreml_list_ops(StrBuf *out)
{
    for (uint32_t i = 0; i < cml_nrows; i++) {
        const CmlRow *r = &cml_rows[i];

        str_printf(out, "%-36s ", r->name);
        str_printf(out, r->number ? "%-5u " : "-     ", r->number);
        str_printf(out, "%-8s %s\n", r->number ? "network" : "program", r->relay ? r->relay : "-");
    }
}

void coreml_list_refused(StrBuf *out)
{
    for (uint32_t i = 0; i < COUNT(refused); i++)
        str_printf(out, "%-36s %s\n", refused[i].name, refused[i].hint);
}
