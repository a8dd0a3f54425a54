/* Objects for data in every format: written, read back, cut off, and given to the linkers that are
 * here. */
#include "objects/objects.h"
#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

static Arena *arena;
static Diags *diags;
static char   folder[] = "/tmp/test_objects_XXXXXX";

static const char content[] = "0123456789 weights";

static const struct {
    const char  *triple;
    ObjectFormat format;
    uint16_t     machine;
    uint32_t     bits;
    const char  *section;
} rows[] = {
    {"x86_64-linux-gnu", OBJECT_ELF, MACHINE_X86_64, 64, ".rodata.net_weights"},
    {"riscv32-unknown-elf", OBJECT_ELF, MACHINE_RISCV, 32, ".rodata.net_weights"},
    {"x86_64-pc-windows-msvc", OBJECT_COFF, MACHINE_X86_64, 64, ".rdata"},
    {"aarch64-pc-windows-msvc", OBJECT_COFF, MACHINE_AARCH64, 64, ".rdata"},
    {"i686-pc-windows-msvc", OBJECT_COFF, MACHINE_X86, 32, ".rdata"},
    {"x86_64-apple-macos13", OBJECT_MACHO, MACHINE_X86_64, 64, "__TEXT,__const"},
    {"arm64-apple-ios16-simulator", OBJECT_MACHO, MACHINE_AARCH64, 64, "__TEXT,__const"},
    {"arm64-apple-darwin", OBJECT_MACHO, MACHINE_AARCH64, 64, "__TEXT,__const"},
    {"wasm32-wasi", OBJECT_WASM, 0, 32, ".rodata.net_weights"},
};

static Bytes blob(const char *triple)
{
    Bytes data = {(const uint8_t *)content, sizeof content}, out = {0};

    CHECK(object_blob(diags, arena, triple, "", NULL, "net_weights", data, &out));
    return out;
}

static void test_blobs(void)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        Bytes                o = blob(rows[i].triple), again = blob(rows[i].triple);
        Object               f;
        const ObjectSymbol  *found = NULL;
        const ObjectSection *section;

        CHECK(o.n == again.n && memcmp(o.at, again.at, o.n) == 0);
        CHECK_INT(object_format(o), rows[i].format);
        CHECK_INT(object_format_of(rows[i].triple), rows[i].format);
        CHECK(object_read(diags, arena, rows[i].triple, o, &f));
        CHECK_INT(f.target.machine, rows[i].machine);
        CHECK_INT(f.target.bits, rows[i].bits);
        CHECK(f.relocatable && !object_is_shared(o));
        for (uint32_t k = 1; k < f.nsymbols; k++)
            if (f.symbols[k].bind == SYMBOL_GLOBAL) {
                CHECK(found == NULL);
                found = &f.symbols[k];
            }
        CHECK(found != NULL);
        if (!found || !found->section || found->section >= f.nsections) {
            CHECK(!"the symbol is in a section");
            continue;
        }
        CHECK_STR(found->name + f.underscore, "net_weights");
        CHECK(!found->hidden && found->value == 0);
        section = &f.sections[found->section];
        CHECK_STR(section->name, rows[i].section);
        CHECK_INT(section->size, sizeof content);
        CHECK(section->flags & SECTION_ALLOC && !(section->flags & (SECTION_WRITE | SECTION_EXEC)));
        CHECK(memmem(o.at, o.n, content, sizeof content) != NULL);
    }
}

/* Gigabytes lie behind what code of x86-64 reaches; other programs hold no more than that. */
static void test_large(void)
{
    enum { SHF_LARGE = 0x10000000 };
    const uint64_t gib = (uint64_t)1 << 30;
    Bytes          data = {(const uint8_t *)content, sizeof content}, out;
    Object         f;

    CHECK(object_data_is_large("x86_64-linux-gnu", gib));
    CHECK(!object_data_is_large("x86_64-linux-gnu", gib - 1));
    CHECK(!object_data_is_large("x86_64-pc-windows-msvc", gib));
    CHECK(!object_data_is_large("aarch64-linux-gnu", gib));
    CHECK(object_blob_most("x86_64-linux-gnu") > 1000 * gib);
    CHECK(object_blob_most("aarch64-linux-gnu") > 3 * gib);
    CHECK(object_blob_most("aarch64-linux-gnu") < 4 * gib);
    CHECK_INT(object_blob_most("x86_64-pc-windows-msvc"), 2 * gib - 1);
    CHECK_INT(object_blob_most("riscv32-unknown-elf"), 2 * gib - 1);
    for (uint32_t large = 0; large < 2; large++) {
        const char *section = large ? ".lrodata.net_weights" : ".model_flash";

        CHECK(
            object_blob(diags, arena, "x86_64-linux-gnu", "", section, "net_weights", data, &out));
        CHECK(object_read(diags, arena, "net.o", out, &f));
        CHECK_STR(f.sections[1].name, section);
        CHECK_INT((f.sections[1].flags & SHF_LARGE) != 0, large);
    }
}

/* Every truncation and many single changes: an error or a result, never a crash. */
static void test_hostile(void)
{
    Diags *d = diags_new(arena);

    for (size_t i = 0; i < COUNT(rows); i++) {
        Bytes     o = blob(rows[i].triple);
        uint8_t  *p = arena_dup(arena, o.at, o.n);
        BytesList merged;
        Object    f;

        for (size_t n = 0; n < o.n; n++)
            object_read(d, arena, "o", (Bytes){arena_dup(arena, p, n), n}, &f);
        for (size_t at = 0; at < o.n; at++)
            for (int k = 0; k < 3; k++) {
                uint8_t old = p[at];
                Bytes   changed = {p, o.n};

                p[at] = (uint8_t[]){0, 0xff, 0x7f}[k];
                object_read(d, arena, "o", changed, &f);
                elf_unit_fits(arena, changed, o);
                elf_merge(d, arena, 2, (Bytes[]){changed, o}, NULL, (const char *[]){"a", "b"},
                          &merged);
                p[at] = old;
            }
    }
}

static void test_refusals(void)
{
    static const char *const bad[] = {"armv7-apple-ios9", "mips-pc-windows-msvc", "mips-linux-gnu"};
    Diags                   *d = diags_new(arena);
    Bytes                    out;

    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(!object_blob(d, arena, bad[i], "", NULL, "w", (Bytes){0}, &out));
    CHECK(!object_blob(d, arena, "wasm32", "", NULL, "w",
                       (Bytes){(const uint8_t *)content, (size_t)1 << 31}, &out));
    CHECK_INT(diag_errors(d), COUNT(bad) + 1);
}

static bool have(const char *tool)
{
    return system(arena_printf(arena, "command -v %s >/dev/null", tool)) == 0;
}

/* LLVM's linkers take all formats on any machine. */
static void test_linkers(void)
{
    static const struct {
        const char *triple, *tool, *options;
    } links[] = {
        {"x86_64-pc-windows-msvc", "lld-link-19", "/dll /noentry /export:net_weights,DATA /out:"},
        {"i686-pc-windows-msvc", "lld-link-19", "/dll /noentry /export:net_weights,DATA /out:"},
        {"aarch64-pc-windows-msvc", "lld-link-19", "/dll /noentry /export:net_weights,DATA /out:"},
        {"arm64-apple-macos14", "ld64.lld-19",
         "-arch arm64 -platform_version macos 14 14 -dylib -o "},
        {"x86_64-apple-macos13.2", "ld64.lld-19",
         "-arch x86_64 -platform_version macos 13.2 14 -dylib -o "},
        {"wasm32", "wasm-ld-19", "--no-entry --export=net_weights -o "},
    };
    const char *path = arena_printf(arena, "%s/w.o", folder);

    for (size_t i = 0; i < COUNT(links); i++) {
        const char *result = arena_printf(arena, "%s/%zu", folder, i);
        const char *command = arena_printf(arena, "%s %s %s%s >%s/log 2>&1", links[i].tool, path,
                                           links[i].options, result, folder);
        Bytes       o = blob(links[i].triple), linked;

        if (!have(links[i].tool)) {
            printf("SKIP %s (%s is not here)\n", links[i].triple, links[i].tool);
            continue;
        }
        CHECK(file_write(diags, path, o));
        CHECK_INT(system(command), 0);
        CHECK(file_map(diags, result, &linked) &&
              memmem(linked.at, linked.n, content, sizeof content));
    }
}

int main(void)
{
    arena = arena_new(NULL);
    diags = diags_new(arena);
    if (!mkdtemp(folder))
        return 2;
    RUN(test_blobs);
    RUN(test_large);
    RUN(test_hostile);
    RUN(test_refusals);
    RUN(test_linkers);
    if (system(arena_printf(arena, "rm -rf %s", folder)))
        return 2;
    file_unmap_all(diags);
    arena_free(arena);
    return check_result();
}
