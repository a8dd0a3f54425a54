/* Names that layers and settings had in older versions, and those that weights' groups have. */
#include "frontends/keras/keras.h"

#include <ctype.h>
#include <string.h>

typedef struct {
    const char *old, *now;
} Renamed;

#define CLASS(old, now) {old, now},
#define SETTING(old, now)
#define GROUP(class, name)
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
#undef CLASS
#undef SETTING
#undef GROUP

const char *keras_group_class(const char *name)
{
    for (uint32_t i = 0; i < COUNT(groups); i++)
        if (!strcmp(name, groups[i].old))
            return groups[i].now;
    return name;
}

const char *keras_class_now(const char *name)
{
    for (uint32_t i = 0; i < COUNT(classes); i++)
        if (!strcmp(name, classes[i].old))
            return classes[i].now;
    return name;
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
