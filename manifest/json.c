/* A manifest as JSON, by the tables: for CMake, which reads JSON but no YAML, and for scripts.
 * Every value is what the reader made of it: sizes are bytes, paths are relative to the folder the
 * manifest's own path is relative to, shorthands are written out. */
#include "manifest/tree.h"

#include <inttypes.h>
#include <string.h>

static void add_record(StrBuf *out, const Record *rec, const void *r);

static void add_texts(StrBuf *out, const ManTexts *t)
{
    str_addc(out, '[');
    for (uint32_t i = 0; i < t->n; i++) {
        str_add(out, i ? ", " : "");
        str_add_json(out, t->at[i].text);
    }
    str_addc(out, ']');
}

static void add_shape(StrBuf *out, const ManShape *s)
{
    str_addc(out, '[');
    for (uint32_t i = 0; i < s->n; i++) {
        str_add(out, i ? ", " : "");
        if (s->at[i].name)
            str_add_json(out, s->at[i].name);
        else
            str_printf(out, "%" PRId64, s->at[i].value);
    }
    str_addc(out, ']');
}

static void add_reals(StrBuf *out, const ManReals *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        str_printf(out, "%s%.17g", i ? ", " : "[", r->at[i].value);
    str_add(out, r->n ? "]" : "[]");
}

static void add_ints(StrBuf *out, const ManInts *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        str_printf(out, "%s%" PRId64, i ? ", " : "[", r->at[i].value);
    str_add(out, r->n ? "]" : "[]");
}

static void add_table(StrBuf *out, const ManTable *t)
{
    str_addc(out, '{');
    for (uint32_t i = 0; i < t->n; i++) {
        str_add(out, i ? ", " : "");
        str_add_json(out, t->at[i].key);
        str_add(out, ": ");
        str_add_json(out, t->at[i].text);
    }
    str_addc(out, '}');
}

static void add_seq(StrBuf *out, const Record *rec, const ManSeq *s, bool map)
{
    str_addc(out, map ? '{' : '[');
    for (uint32_t i = 0; i < s->n; i++) {
        const ManRecord *r = (const void *)((const char *)s->at + rec->size * i);

        str_add(out, i ? ", " : "");
        if (map) {
            str_add_json(out, r->key);
            str_add(out, ": ");
        }
        add_record(out, rec, r);
    }
    str_addc(out, map ? '}' : ']');
}

static void add_field(StrBuf *out, const Field *f, const void *slot)
{
    switch (f->kind) {
    case KIND_TEXT:
    case KIND_CHOICE:
    case KIND_PATH:
    case KIND_REF: str_add_json(out, ((const ManText *)slot)->text); break;
    case KIND_BOOL: str_add(out, ((const ManBool *)slot)->value ? "true" : "false"); break;
    case KIND_INT:
    case KIND_SIZE: str_printf(out, "%" PRId64, ((const ManInt *)slot)->value); break;
    case KIND_REAL: str_printf(out, "%.17g", ((const ManReal *)slot)->value); break;
    case KIND_SHAPE: add_shape(out, slot); break;
    case KIND_TEXTS:
    case KIND_CHOICES:
    case KIND_PATHS:
    case KIND_REFS: add_texts(out, slot); break;
    case KIND_INTS: add_ints(out, slot); break;
    case KIND_REALS: add_reals(out, slot); break;
    case KIND_TABLE: add_table(out, slot); break;
    case KIND_ONE: add_record(out, f->type(), slot); break;
    case KIND_MANY: add_seq(out, f->type(), slot, false); break;
    case KIND_MAP: add_seq(out, f->type(), slot, true); break;
    case KIND_LATER: break;
    }
}

static void add_record(StrBuf *out, const Record *rec, const void *r)
{
    bool first = true;

    str_addc(out, '{');
    for (uint32_t i = 0; i < rec->n; i++) {
        const Field  *f = &rec->fields[i];
        const ManAny *slot = (const void *)((const char *)r + f->offset);

        if (f->kind == KIND_LATER || !slot->given)
            continue;
        str_printf(out, "%s\"%s\": ", first ? "" : ", ", f->key);
        add_field(out, f, slot);
        first = false;
    }
    str_addc(out, '}');
}

static void add_named(StrBuf *out, const char *name, const char *text)
{
    str_printf(out, "\"%s\": ", name);
    str_add_json(out, text);
    str_add(out, ", ");
}

static void add_build(StrBuf *out, const ManBuild *b)
{
    str_addc(out, '{');
    add_named(out, "name", b->name);
    add_named(out, "model", b->model->key);
    add_named(out, "pair", b->pair->key);
    add_named(out, "entry", b->entry);
    add_named(out, "target", manifest_target_text(out->arena, b->host, b->target));
    str_add(out, "\"settings\": ");
    add_record(out, record_field(schema_root(), "models")->type(), b->model);
    str_addc(out, '}');
}

void manifest_json(const Manifest *m, const ManFiles *files, const char *more, StrBuf *out)
{
    ManBuilds builds = manifest_builds(m, out->arena);

    str_add(out, "{\"manifest\": ");
    add_record(out, schema_root(), m);
    str_add(out, ",\n \"files\": [");
    for (uint32_t i = 0; i < files->n; i++) {
        str_add(out, i ? ", " : "");
        str_add_json(out, files->at[i]);
    }
    str_add(out, "],\n \"builds\": [");
    for (uint32_t i = 0; i < builds.n; i++) {
        str_add(out, i ? ",\n  " : "");
        add_build(out, &builds.at[i]);
    }
    str_printf(out, "]%s}\n", more);
}
