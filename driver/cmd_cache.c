/* tvmcc cache: the store of compiled kernels that every compile asks first.
 *
 *     tvmcc cache stat                     where it is, how many entries, how many bytes
 *     tvmcc cache clean                    remove all
 *     tvmcc cache export kernels.tar.zst   to another machine, or to the next run of a CI
 *     tvmcc cache import kernels.tar.zst   there; each entry is checked against its hash
 */
#include "driver/driver.h"
#include "packaging/packaging.h"

#include <string.h>

static void show_stat(Driver *driver, Cache *cache)
{
    CacheEntry *entries;
    uint32_t    n;
    uint64_t    bytes = 0;

    cache_list(cache, driver->arena, &entries, &n);
    for (uint32_t i = 0; i < n; i++)
        bytes += entries[i].bytes;
    if (driver->opt.json) {
        StrBuf s = strbuf(driver->arena);

        str_add_json(&s, cache_dir(cache));
        say(driver, "{\"dir\": %s, \"entries\": %u, \"bytes\": %llu, \"max_bytes\": %llu}\n", s.at,
            n, (unsigned long long)bytes, (unsigned long long)cache_max_bytes(cache));
    } else {
        say(driver, "folder   %s\nentries  %u\nbytes    %llu of %llu\n", cache_dir(cache), n,
            (unsigned long long)bytes, (unsigned long long)cache_max_bytes(cache));
    }
}

static bool known_format(Driver *driver, const char *file, PackFormat *out)
{
    *out = pack_format(file);
    if (*out != PACK_NONE)
        return true;
    diag_error(driver->diags, E_USAGE, NO_LOC, "'%s' has no suffix of an archive", file);
    diag_hint(driver->diags, ".tar, .tar.gz, .tar.zst, .tar.xz or .zip");
    return false;
}

static bool export_to(Driver *driver, Cache *cache, const char *file)
{
    Arena      *a = driver->arena;
    CacheEntry *entries;
    Member     *members;
    PackFormat  format;
    BytesList   archive;
    uint32_t    n, packed = 0;

    if (!known_format(driver, file, &format))
        return false;
    cache_list(cache, a, &entries, &n);
    members = NEW_ARRAY(a, Member, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        char  hex[65];
        Bytes content;

        if (!cache_get(cache, a, entries[i].key, &content))
            continue; /* broken, or trimmed meanwhile */
        sha256_hex(entries[i].key, hex);
        members[packed].path = arena_printf(a, "%.2s/%s", hex, hex + 2);
        members[packed++].data = cache_entry(a, entries[i].key, content);
    }
    if (!pack_archive(driver->diags, a, format, driver->opt.compile.epoch, members, packed,
                      &archive) ||
        !file_write_pieces(driver->diags, file, archive))
        return false;
    say(driver, "%u entries\n", packed);
    return true;
}

static bool import_from(Driver *driver, Cache *cache, const char *file)
{
    Diags   *d = driver->diags;
    Bytes    archive;
    Member  *members;
    uint32_t n, good = 0;

    if (!file_map(d, file, &archive) ||
        !pack_read(d, driver->arena, file, archive, PACK_LIMIT, &members, &n))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        Sha256 key;
        Bytes  content;

        if (!cache_entry_key(members[i].path, &key) ||
            !cache_entry_content(members[i].data, key, &content)) {
            diag_error(d, E_PACK, (Loc){.file = file},
                       "'%s' is not an entry of a cache, or damaged", members[i].path);
            continue;
        }
        cache_put(cache, key, content);
        good++;
    }
    say(driver, "%u entries, %llu of them new\n", good,
        (unsigned long long)cache_stats(cache).stored);
    return good == n;
}

/* What stands behind `cache` is one of the four, with a file where it takes one. */
static bool check_words(Driver *driver, const TextList *words)
{
    static const char *const verbs[] = {"stat", "clean", "export", "import"};
    const char              *closest;

    for (uint32_t i = 0; i < COUNT(verbs); i++) {
        bool file = i >= 2;

        if (strcmp(words->at[0], verbs[i]) == 0)
            return words->n == 1u + file ||
                   diag_error(driver->diags, E_USAGE, NO_LOC, "'cache %s' takes %s", verbs[i],
                              file ? "one file" : "no files");
    }
    diag_error(driver->diags, E_USAGE, NO_LOC,
               "'cache' takes stat, clean, export or import, not '%s'", words->at[0]);
    if ((closest = str_closest(words->at[0], verbs, COUNT(verbs))))
        diag_hint(driver->diags, "did you mean '%s'?", closest);
    return false;
}

int cmd_cache(Driver *driver)
{
    const TextList *words = &driver->opt.inputs;
    Cache          *cache = compile_cache(driver->diags, driver->arena, &driver->opt.compile);

    if (!check_words(driver, words))
        return 0;
    if (!cache && diag_errors(driver->diags))
        return 0;
    if (!cache) {
        diag_error(driver->diags, E_IO, NO_LOC, "there is no place for a cache");
        diag_hint(driver->diags, "set HOME or TVMCC_CACHE_DIR, or give --cache-dir");
        return 0;
    }
    switch (words->at[0][0]) {
    case 's': show_stat(driver, cache); break;
    case 'c': cache_clean(cache); break;
    case 'e': export_to(driver, cache, words->at[1]); break;
    default: import_from(driver, cache, words->at[1]); break;
    }
    return 0;
}
