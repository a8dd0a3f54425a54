/* tvmcc diff: the first place where two products differ.
 *
 *     $ tvmcc diff one/net.tar two/net.tar
 *     net/lib/x86_64-linux-gnu/libnet.a: net.o: section '.text', 'net_run' + 0x12: 0x48, 0x49
 *
 * Archives and unpacked folders by member, libraries by object, objects by section and symbol,
 * text by line, anything else by offset.  Status 0 if they are equal, 1 if not.
 */
#include "driver/driver.h"
#include "packaging/packaging.h"

#include <sys/stat.h>

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A folder's members, or those of an archive. */
static bool members_of(Driver *driver, const char *path, Member **m, uint32_t *n)
{
    Bytes    file;
    uint64_t limit = driver->opt.max_size ? driver->opt.max_size : PACK_LIMIT;

    return is_folder(path) ? folder_read(driver->diags, driver->arena, path, m, n)
                           : file_map(driver->diags, path, &file) &&
                                 pack_read(driver->diags, driver->arena, path, file, limit, m, n);
}

int cmd_diff(Driver *driver)
{
    TextList inputs = driver->opt.inputs;
    Arena   *a = driver->arena;
    StrBuf   out = strbuf(a);
    bool     same;

    if (inputs.n != 2)
        return !!diag_error(driver->diags, E_USAGE, NO_LOC, "'diff' takes two products, not %u",
                            inputs.n);
    if (is_folder(inputs.at[0]) || is_folder(inputs.at[1])) {
        Member  *m[2];
        uint32_t n[2];

        if (!members_of(driver, inputs.at[0], &m[0], &n[0]) ||
            !members_of(driver, inputs.at[1], &m[1], &n[1]))
            return 1;
        same = diff_members(a, m[0], n[0], m[1], n[1], &out);
    } else {
        Bytes b[2];

        if (!file_map(driver->diags, inputs.at[0], &b[0]) ||
            !file_map(driver->diags, inputs.at[1], &b[1]))
            return 1;
        same = diff_bytes(a, b[0], b[1], &out);
    }
    if (!same)
        say(driver, "%s\n", out.at);
    return !same;
}
