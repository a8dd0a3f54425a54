/* Tables for people: every column as wide as its widest cell.
 *
 *     tuned  conv2d_bias_add_relu.7cd1ffd9   2 calls   118013952 multiply-adds
 *     -      max_pool2d.872d233a            11 calls           0 multiply-adds
 *
 * Cells are kept until the table is printed, so that no name is too long for its column.  Names
 * come from hostile files: control characters are shown as '?'.
 */
#include "base/base.h"

#include <string.h>

enum { GAP = 2 };

struct Columns {
    Arena      *arena;
    const char *align; /* a letter for each column, 'l' or 'r' */
    uint32_t    n;     /* columns */
    VEC(const char *) cells;
};

Columns *columns_new(Arena *a, const char *align)
{
    Columns *c = NEW(a, Columns);

    c->arena = a;
    c->align = align;
    c->n = (uint32_t)strlen(align);
    return c;
}

void columns_add(Columns *c, const char *fmt, ...)
{
    StrBuf  s = strbuf(c->arena);
    va_list ap;

    va_start(ap, fmt);
    str_vprintf(&s, fmt, ap);
    va_end(ap);
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.at[i] < 0x20 || s.at[i] == 0x7f)
            s.at[i] = '?';
    vec_push(c->arena, &c->cells, s.at ? s.at : "");
}

void columns_end(Columns *c)
{
    while (c->cells.n % c->n)
        vec_push(c->arena, &c->cells, "");
}

/* Characters, not bytes of UTF-8. */
static size_t width_of(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void add_blanks(StrBuf *out, size_t n)
{
    while (n--)
        str_addc(out, ' ');
}

void columns_print(const Columns *c, uint32_t indent, StrBuf *out)
{
    size_t *widest = NEW_ARRAY(c->arena, size_t, c->n);

    for (uint32_t i = 0; i < c->cells.n; i++) {
        size_t n = width_of(c->cells.at[i]);

        if (n > widest[i % c->n])
            widest[i % c->n] = n;
    }
    for (uint32_t row = 0; row < c->cells.n; row += c->n) {
        size_t blanks = indent; /* written only before a text: no line ends in blanks */

        for (uint32_t k = 0; k < c->n && row + k < c->cells.n; k++) {
            const char *text = c->cells.at[row + k];
            size_t      pad = widest[k] - width_of(text);

            if (!widest[k])
                continue;
            if (*text) {
                add_blanks(out, blanks + (c->align[k] == 'r' ? pad : 0));
                str_add(out, text);
                blanks = c->align[k] == 'r' ? GAP : pad + GAP;
            } else {
                blanks += pad + GAP;
            }
        }
        str_addc(out, '\n');
    }
}
