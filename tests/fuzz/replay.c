/* A main for fuzz targets where libFuzzer is absent: gives each file of the corpus folder to the
 * target, and each of its prefixes of a few lengths, so that cut-off inputs are tried in every
 * build.  A crash is the failure. */
#include "base/base.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay(Bytes file)
{
    for (size_t part = 1; part <= 16; part++) {
        size_t   n = file.n * part / 16;
        uint8_t *exact = malloc(n ? n : 1); /* so that a read past the end is noticed */

        if (!exact)
            abort();
        memcpy(exact, file.at, n);
        LLVMFuzzerTestOneInput(exact, n);
        free(exact);
    }
}

int main(int argc, char **argv)
{
    Arena         *a = arena_new(NULL);
    Diags         *d = diags_new(a);
    DIR           *folder = argc == 2 ? opendir(argv[1]) : NULL;
    struct dirent *entry;
    unsigned       n = 0;
    bool           ok;
    StrBuf         messages = strbuf(a);

    while (folder && (entry = readdir(folder))) {
        Bytes file;

        if (entry->d_name[0] != '.' &&
            file_read(d, a, arena_printf(a, "%s/%s", argv[1], entry->d_name), &file)) {
            replay(file);
            n++;
        }
    }
    if (folder)
        closedir(folder);
    diag_print(d, DIAG_TEXT, &messages);
    fputs(messages.at, stderr);
    printf("%u inputs\n", n);
    ok = n && !diag_errors(d);
    arena_free(a);
    return !ok;
}
