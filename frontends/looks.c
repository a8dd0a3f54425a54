/* What a file that no frontend reads seems to be, so that the message can say what to do. */
#include "frontends/frontends.h"

#include <string.h>
#include <sys/stat.h>

enum { BEGINNING = 64 << 10 };

typedef struct {
    size_t      at, n;
    const char *magic, *inside;
    size_t      ninside;
    const char *what, *hint;
} Row;

#define LOOK(at, magic, inside, what, hint) \
    {at, sizeof(magic) - 1, magic, inside, sizeof(inside) - 1, what, hint},
#define FOLDER(member, what, hint)
static const Row files[] = {
#include "frontends/looks.def"
};
#undef LOOK
#undef FOLDER

#define LOOK(at, magic, inside, what, hint)
#define FOLDER(member, what, hint) {member, what, hint},
static const struct {
    const char *member, *what, *hint;
} folders[] = {
#include "frontends/looks.def"
};
#undef LOOK
#undef FOLDER

static bool holds(const uint8_t *at, size_t n, const char *text, size_t ntext)
{
    if (n > BEGINNING)
        n = BEGINNING;
    for (size_t i = 0; i + ntext <= n; i++)
        if (!memcmp(at + i, text, ntext))
            return true;
    return false;
}

static bool is_text(Bytes file)
{
    size_t n = file.n < 4096 ? file.n : 4096;

    for (size_t i = 0; i < n; i++)
        if ((file.at[i] < ' ' && !strchr("\t\n\r\f", file.at[i])) || file.at[i] == 0 ||
            file.at[i] == 0x7f)
            return false;
    return true;
}

Looks looks_of_file(Bytes file)
{
    for (uint32_t i = 0; i < COUNT(files); i++) {
        const Row *r = &files[i];

        if (file.n >= r->at + r->n && !memcmp(file.at + r->at, r->magic, r->n) &&
            holds(file.at, file.n, r->inside, r->ninside))
            return (Looks){r->what, r->hint};
    }
    if (file.n == 0)
        return (Looks){"an empty file", ""};
    return is_text(file) ? (Looks){"text", ""} : (Looks){0};
}

Looks looks_of_folder(Arena *a, const char *path)
{
    for (uint32_t i = 0; i < COUNT(folders); i++) {
        struct stat st;

        if (stat(arena_printf(a, "%s/%s", path, folders[i].member), &st) == 0)
            return (Looks){folders[i].what, folders[i].hint};
    }
    return (Looks){"a folder", "name the file of the model"};
}
