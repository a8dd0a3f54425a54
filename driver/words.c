/* Words of a response file. */
#include "driver/driver.h"

#include <ctype.h>

/* Splits as a shell does: blanks part words, quotes join, a backslash takes the next literally. */
bool words_split(Diags *d, Arena *a, const char *path, Bytes text, TextList *out)
{
    const uint8_t *at = text.at, *end = text.at + text.n;

    for (;;) {
        StrBuf word;
        char   quote = 0;

        while (at < end && isspace(*at))
            at++;
        if (at == end)
            return true;
        word = strbuf(a);
        for (; at < end && (quote || !isspace(*at)); at++) {
            if (*at == '\\' && quote != '\'' && at + 1 < end)
                str_addc(&word, (char)*++at);
            else if (quote ? *at == quote : *at == '"' || *at == '\'')
                quote = quote ? 0 : (char)*at;
            else
                str_addc(&word, (char)*at);
        }
        if (quote)
            return diag_error(d, E_USAGE, NO_LOC, "a quote in '%s' does not end", path);
        vec_push(a, out, word.at);
    }
}
