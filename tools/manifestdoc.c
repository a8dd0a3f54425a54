/* The reference in docs/manifest.md, from manifest/schema.def: all below the line that begins with
 * `<!-- reference`.
 *
 *     manifestdoc docs/manifest.md          write it, if it differs
 *     manifestdoc --check docs/manifest.md  fail if it is not what the table says */
#include "manifest/manifest.h"

#include <stdio.h>
#include <string.h>

static const char mark[] = "<!-- reference: written by tools/manifestdoc.c, do not edit -->\n";

int main(int argc, char **argv)
{
    Arena      *a = arena_new(NULL);
    Diags      *d = diags_new(a);
    StrBuf      s = strbuf(a), messages = strbuf(a);
    bool        check = argc == 3 && !strcmp(argv[1], "--check");
    const char *path = argv[argc - 1], *at;
    Bytes       was;
    int         status;

    if (argc != 2 && !check) {
        fputs("manifestdoc [--check] <file>\n", stderr);
        return 2;
    }
    if (file_read(d, a, path, &was)) {
        if (!(at = memmem(was.at, was.n, mark, strlen(mark)))) {
            diag_error(d, E_VERIFY, (Loc){.file = path}, "no line '%.13s'", mark);
        } else {
            str_addn(&s, (const char *)was.at, (size_t)(at - (const char *)was.at) + strlen(mark));
            manifest_reference(&s);
            if (!check)
                file_write(d, path, (Bytes){(const uint8_t *)s.at, s.n});
            else if (was.n != s.n || memcmp(was.at, s.at, s.n))
                diag_error(d, E_VERIFY, (Loc){.file = path},
                           "this is not what the schema says; run manifestdoc %s", path);
        }
    }
    diag_print(d, DIAG_TEXT, &messages);
    fputs(messages.at, stderr);
    status = diag_status(d);
    arena_free(a);
    return status;
}
