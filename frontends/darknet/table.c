/* The tables of layers and of their keys. */
#include "frontends/darknet/darknet.h"

#include <string.h>

#define none NULL
#define LAYER(name, other, label, relay, detects, convert) \
    {name, other, label, relay, detects, convert},
static const DarknetRow rows[] = {
#include "frontends/darknet/ops.def"
};
#undef LAYER

#define KEY(section, name, kind, fallback, use) \
    {section, name, DARKNET_##kind, fallback, DARKNET_##use},
static const DarknetKey keys[] = {
#include "frontends/darknet/keys.def"
};
#undef KEY
#undef none

const DarknetRow *darknet_row(const char *section)
{
    for (uint32_t i = 0; i < COUNT(rows); i++)
        if (!strcmp(rows[i].name, section) || (rows[i].other && !strcmp(rows[i].other, section)))
            return &rows[i];
    return NULL;
}

const char *darknet_nearest_section(const char *name)
{
    const char *names[COUNT(rows)];

    for (uint32_t i = 0; i < COUNT(rows); i++)
        names[i] = rows[i].name;
    return str_closest(name, names, COUNT(rows));
}

static bool is_of(const DarknetKey *k, const char *section)
{
    return !strcmp(k->section, section) || (!strcmp(k->section, "*") && strcmp(section, "net"));
}

const DarknetKey *darknet_key(const char *section, const char *name)
{
    for (uint32_t i = 0; i < COUNT(keys); i++)
        if (!strcmp(keys[i].name, name) && is_of(&keys[i], section))
            return &keys[i];
    return NULL;
}

const char *darknet_needed(const char *section, uint32_t i)
{
    for (uint32_t k = 0; k < COUNT(keys); k++)
        if (!keys[k].fallback && is_of(&keys[k], section) && i-- == 0)
            return keys[k].name;
    return NULL;
}

uint32_t darknet_key_count(void)
{
    return COUNT(keys);
}

uint32_t darknet_keys(const char *section, const char **names, uint32_t most)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < COUNT(keys) && n < most; i++)
        if (is_of(&keys[i], section))
            names[n++] = keys[i].name;
    return n;
}

const char *darknet_label(Ctx *c, const DarknetConfig *config, uint32_t layer)
{
    const DarknetSection *s = &config->sections[1 + layer];

    return intern_printf(c->strings, "layer%u_%s", layer, s->row ? s->row->label : s->name);
}

/* -print-ops=darknet, in the order of the table. */
void darknet_list_ops(StrBuf *out)
{
    for (uint32_t i = 0; i < COUNT(rows); i++)
        str_printf(out, "%-32s %-12s %-7s %s\n", rows[i].name, rows[i].other ? rows[i].other : "-",
                   "-", rows[i].relay ? rows[i].relay : "-");
}
