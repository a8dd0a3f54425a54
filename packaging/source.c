/* source.c: what a model as C (`--target=c`) says about itself, from its text alone.
 *
 * The text is one that backends/c wrote; a file that was changed by hand, or comes from elsewhere,
 * is no such text, or says less.  From its head come target and compiler options, from its
 * definitions the entry and the hash of its build:
 *
 *     The model net.onnx as C99, for any compiler: made by tvmcc 0.1.0 for 'c -mattr=+avx2'.
 *         cc -std=c99 -O2 -mavx2 -c <this file>
 *     .build_id = {250, 236, ..},
 *     const tvmcc_model_info *net_info(void)
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "packaging/packaging.h"

#include <ctype.h>
#include <string.h>

enum { HEAD = 4096 }; /* bytes in which the head lies */

/* What stands between two texts in the first `n` bytes; NULL: they are not there. */
static const char *between(Arena *a, Bytes text, size_t n, const char *before, const char *behind)
{
    const uint8_t *from, *to, *end = text.at + (text.n < n ? text.n : n);

    if (!text.n || !(from = memmem(text.at, (size_t)(end - text.at), before, strlen(before))))
        return NULL;
    from += strlen(before);
    to = memmem(from, (size_t)(end - from), behind, strlen(behind));
    return to ? arena_printf(a, "%.*s", (int)(to - from), (const char *)from) : NULL;
}

/* They come to a command line, so only what says which processor it is. */
static bool is_machine_option(const char *word, size_t n)
{
    if (n < 3 || word[0] != '-' || word[1] != 'm')
        return false;
    for (size_t i = 2; i < n; i++)
        if (!isalnum((unsigned char)word[i]) && !strchr("-=.", word[i]))
            return false;
    return true;
}

static const char *options_of(Arena *a, Bytes text)
{
    const char *words = between(a, text, HEAD, "\n *     cc -std=c99 -O2 ", "-c <this file>\n");
    StrBuf      s = strbuf(a);

    for (const char *p = words ? words : ""; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");

        if (is_machine_option(p, n))
            str_printf(&s, "%s%.*s", s.n ? " " : "", (int)n, p);
        p += n;
    }
    return s.n ? s.at : "";
}

/* `net` of `const tvmcc_model_info *net_info(void)`, at the beginning of a line. */
static const char *entry_of(Arena *a, Bytes text)
{
    static const char type[] = "\nconst tvmcc_model_info *";
    const uint8_t    *at = text.at, *end = text.at + text.n;

    while (at < end && (at = memmem(at, (size_t)(end - at), type, strlen(type)))) {
        const char *name = (const char *)(at += strlen(type));
        size_t      n = 0;

        while (at + n < end && (isalnum(name[n]) || name[n] == '_'))
            n++;
        if (n > 5 && memcmp(name + n - 5, "_info", 5) == 0)
            return arena_printf(a, "%.*s", (int)(n - 5), name);
    }
    return NULL;
}

static bool hash_of(Bytes text, const char *key, Sha256 *out)
{
    const uint8_t *at = memmem(text.at, text.n, key, strlen(key)), *end = text.at + text.n;

    if (!at)
        return false;
    at += strlen(key);
    for (int i = 0; i < 32; i++) {
        unsigned v = 0, digits = 0;

        while (at < end && (isspace(*at) || *at == ','))
            at++;
        for (; at < end && isdigit(*at) && digits < 3; at++, digits++)
            v = v * 10 + (unsigned)(*at - '0');
        if (!digits || v > 255)
            return false;
        out->b[i] = (uint8_t)v;
    }
    return true;
}

bool source_read(Arena *a, Bytes text, SourceInfo *out)
{
    static const char head[] = "/* The model ";

    *out = (SourceInfo){0};
    if (text.n < strlen(head) || memcmp(text.at, head, strlen(head)) != 0)
        return false;
    out->target = between(a, text, HEAD, " for '", "'.\n *\n");
    out->entry = entry_of(a, text);
    out->options = options_of(a, text);
    return out->target && out->entry && hash_of(text, ".build_id = {", &out->build_id);
}
