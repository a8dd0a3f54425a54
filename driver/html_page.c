/* A page is one file that needs no other: style, script and data stand in it.  The data are JSON in
 * a script element of another type, where only `</script` and `<!--` could mean something: every
 * `<` is written as an escape of JSON. */
#include "driver/html.h"

/* Embedded by the build: driver/page/. */
extern const unsigned char page_css_text[], page_js_text[], layout_js_text[];
extern const size_t        page_css_text_bytes, page_js_text_bytes, layout_js_text_bytes;

static void add_escaped(StrBuf *s, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&': str_add(s, "&amp;"); break;
        case '<': str_add(s, "&lt;"); break;
        case '>': str_add(s, "&gt;"); break;
        case '"': str_add(s, "&quot;"); break;
        default: str_addc(s, *text);
        }
}

bool html_write(Driver *driver, const char *path, const char *title, const StrBuf *json)
{
    StrBuf s = strbuf(driver->arena);

    str_add(&s, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>");
    add_escaped(&s, title);
    str_add(&s, "</title>\n<style>\n");
    str_addn(&s, (const char *)page_css_text, page_css_text_bytes);
    str_add(&s, "</style>\n</head>\n<body>\n<main></main>\n"
                "<noscript>This page is drawn by a script in it.</noscript>\n"
                "<script type=\"application/json\" id=\"data\">\n");
    for (size_t i = 0; i < json->n; i++)
        if (json->at[i] == '<')
            str_add(&s, "\\u003c");
        else
            str_addc(&s, json->at[i]);
    str_add(&s, ",\n\"version\": ");
    str_add_json(&s, compiler_version());
    str_add(&s, "}\n</script>\n<script>\n");
    str_addn(&s, (const char *)layout_js_text, layout_js_text_bytes);
    str_addn(&s, (const char *)page_js_text, page_js_text_bytes);
    str_add(&s, "</script>\n</body>\n</html>\n");
    return file_write(driver->diags, path, (Bytes){(const uint8_t *)s.at, s.n});
}

void html_begin(StrBuf *s, const char *title, uint32_t n, const char *const *about)
{
    str_add(s, "{\"title\": ");
    str_add_json(s, title);
    str_add(s, ",\n\"about\": [");
    for (uint32_t i = 0; i < n; i++) {
        str_add(s, i ? ", " : "");
        str_add_json(s, about[i]);
    }
    str_add(s, "],\n\"tiles\": [");
}

void html_tile(StrBuf *s, const char *name, const char *value, const char *note)
{
    str_add(s, s->at[s->n - 1] == '[' ? "[" : ", [");
    str_add_json(s, name);
    str_add(s, ", ");
    str_add_json(s, value);
    if (note) {
        str_add(s, ", ");
        str_add_json(s, note);
    }
    str_add(s, "]");
}

void html_end_tiles(StrBuf *s)
{
    str_add(s, "]");
}

const char *html_bytes(Arena *a, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    uint32_t                 i = 0;

    for (; bytes >= 1024 && i + 1 < COUNT(units); i++)
        bytes /= 1024;
    return arena_printf(a, bytes >= 1000 ? "%.4g %s" : "%.3g %s", bytes, units[i]);
}
