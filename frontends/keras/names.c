/* Names that layers and settings had in older versions, and those that weights' groups have. */
#include "frontends/keras/keras.h"

#include <ctype.h>
#include <string.h>

typedef struct {
    const char *old, *now;
} Renamed;

/* The rows of one kind: each includes the table with the others empty. */
#define CLASS(old, now) {old, now},
#define SETTING(old, now)
#define GROUP(class, name)
#define PARTS(class, weights)
static const Renamed classes[] = {
#include "frontends/keras/names.def"
};
#undef CLASS
#undef SETTING

#define CLASS(old, now)
#define SETTING(old, now) {old, now},
static const Renamed settings[] = {
#include "frontends/keras/names.def"
};
#undef SETTING
#undef GROUP

#define SETTING(old, now)
#define GROUP(class, name) {class, name},
static const Renamed groups[] = {
#include "frontends/keras/names.def"
};
#undef GROUP
#undef PARTS

#define GROUP(class, name)
#define PARTS(class, weights) {class, weights},
static const Renamed parts[] = {
#include "frontends/keras/names.def"
};
#undef CLASS
#undef SETTING
#undef GROUP
#undef PARTS

static const char *found(const Renamed *rows, uint32_t n, const char *name, const char *otherwise)
{
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(name, rows[i].old))
            return rows[i].now;
    return otherwise;
}

const char *keras_group_class(const char *name)
{
    return found(groups, COUNT(groups), name, name);
}

const char *keras_class_now(const char *name)
{
    return found(classes, COUNT(classes), name, name);
}

const char *keras_parts(const char *class, const json_t *config, int major)
{
    const char *how = json_string_value(json_object_get(config, "consume_less"));

    return major > 1 || (how && !strcmp(how, "gpu")) ? NULL
                                                     : found(parts, COUNT(parts), class, NULL);
}

const json_t *keras_setting(const json_t *config, const char *name)
{
    const json_t *x = json_object_get(config, name);

    for (uint32_t i = 0; !x && i < COUNT(settings); i++)
        if (!strcmp(name, settings[i].now))
            x = json_object_get(config, settings[i].old);
    return x;
}

bool keras_setting_old(const char *name, const char *of)
{
    for (uint32_t i = 0; i < COUNT(settings); i++)
        if (!strcmp(name, settings[i].old) && !strcmp(of, settings[i].now))
            return true;
    return false;
}

/* As Keras does it: a '_' before a capital with small letters behind it, then between a small
 * letter and a capital. */
char *keras_snake(Arena *a, const char *name)
{
    StrBuf one = strbuf(a), two = strbuf(a);

    for (const char *p = name; *p;) {
        str_addc(&one, *p);
        if (p[1] && isupper((unsigned char)p[1]) && islower((unsigned char)p[2])) {
            str_addc(&one, '_');
            str_addc(&one, *++p);
            while (islower((unsigned char)p[1]))
                str_addc(&one, *++p);
        }
        p++;
    }
    for (const char *p = one.n ? one.at : ""; *p; p++) {
        str_addc(&two, (char)tolower((unsigned char)*p));
        if (islower((unsigned char)*p) && isupper((unsigned char)p[1]))
            str_addc(&two, '_');
    }
    return two.n ? two.at : arena_printf(a, "%s", "");
}
