/* Products opened as a library, as an unpacked archive and as a plain .tar, with weights inside and
 * in a file; and what is refused. */
#include "packaging/packaging.h"
#include "tests/unit/check.h"
#include "tvmcc/runtime.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static Arena      *arena;
static Diags      *diags;
static const char *embed, *file;
static char        folder[] = "/tmp/tvmccXXXXXX";

static const char *in_folder(const char *path)
{
    return arena_printf(arena, "%s/%s", folder, path);
}

static Bytes slurp(const char *path)
{
    Bytes b = {0};

    CHECK(file_read(diags, arena, path, &b));
    return b;
}

/* Opens, runs, closes: the factor that the weights hold; -1 if it does not open. */
static float factor(const char *path, const char *name)
{
    float        x[3] = {1, 2, 3}, y[3] = {0};
    tvmrt_model  model;
    tvmrt_tensor in, out;
    tvmcc_params params = {.struct_bytes = sizeof params, .threads = 1};

    if (tvmrt_model_open(&model, path, name) != TVMCC_OK) {
        CHECK(model.error[0] != 0);
        CHECK(!model.info && !model.handle && !model.mapping);
        return -1;
    }
    CHECK_INT(tvmrt_arena_bytes(model.info, 4), 140);
    CHECK(!model.weights || (uintptr_t)model.weights % 64 == 0);
    in = tvmrt_tensor_of(&model.info->inputs[0], x);
    out = tvmrt_tensor_of(&model.info->outputs[0], y);
    params.weights = model.weights;
    params.weights_bytes = model.weights_bytes;
    CHECK_INT(tvmrt_run(model.info, &in, 1, &out, 1, &params), TVMCC_OK);
    CHECK(y[1] == 2 * y[0] && y[2] == 3 * y[0]);
    CHECK_INT(tvmrt_run(model.info, &in, 1, &out, 0, &params), TVMCC_E_MISMATCH);
    tvmrt_model_close(&model);
    return y[0];
}

static Bytes weights(float value, uint8_t first)
{
    float *data = NEW_ARRAY(arena, float, 16);

    data[0] = value;
    return weights_file(arena, (Bytes){(uint8_t *)data, 64}, (Sha256){{first, 2, 3}});
}

static void test_library(void)
{
    const char *copy = in_folder("libmodel.so");

    CHECK(factor(embed, NULL) == 2);
    CHECK(factor(embed, "fake_embed") == 2);
    CHECK(factor(embed, "other") == -1);
    CHECK(factor(in_folder("missing.so"), NULL) == -1);
    CHECK(file_write(diags, copy, slurp(embed)));
    CHECK(factor(copy, NULL) == -1);
    CHECK(factor(copy, "fake_embed") == 2);
}

static void test_weights_beside(void)
{
    const char *library = in_folder("libfake_file.so"), *beside = in_folder("fake_file.weights");

    CHECK(file_write(diags, library, slurp(file)));
    CHECK(factor(library, NULL) == -1); /* no file yet */
    CHECK(file_write(diags, beside, weights(5, 1)));
    CHECK(factor(library, NULL) == 5);
    CHECK(file_write(diags, beside, weights(5, 9))); /* another build's */
    CHECK(factor(library, NULL) == -1);
    CHECK(file_write(diags, beside, (Bytes){(const uint8_t *)"short", 5}));
    CHECK(factor(library, NULL) == -1);
}

static Member *archive_members(uint32_t *n)
{
    static const char *const names[] = {"embed", "file"};
    Member                  *m = NEW_ARRAY(arena, Member, 4);

    for (uint32_t i = 0; i < 2; i++)
        m[i] = (Member){.path = arena_printf(arena, "top/lib/here/libfake_%s.so", names[i]),
                        .data = slurp(i ? file : embed),
                        .executable = true};
    m[2] = (Member){.path = "top/lib/elsewhere/libfake_embed.so", .data = slurp(embed)};
    m[2].data.at = arena_dup(arena, m[2].data.at, m[2].data.n);
    ((uint8_t *)(uintptr_t)m[2].data.at)[18] ^= 0x55; /* another machine's */
    m[3] = (Member){.path = "top/share/fake_file/fake_file.weights", .data = weights(7, 1)};
    *n = 4;
    return m;
}

static void test_tar(void)
{
    uint32_t    n;
    Member     *m = archive_members(&n);
    const char *path = in_folder("model.tar");
    BytesList   pieces;
    Bytes       tar;
    uint8_t    *broken;

    CHECK(pack_archive(diags, arena, PACK_TAR, 0, m, n, &pieces));
    tar = pieces_join(arena, pieces);
    CHECK(file_write(diags, path, tar));
    CHECK(factor(path, "fake_embed") == 2);
    CHECK(factor(path, "fake_file") == 7);
    CHECK(factor(path, NULL) == -1); /* two of them */
    CHECK(factor(path, "none") == -1);
    for (size_t cut = 0; cut < tar.n; cut += tar.n / 50) {
        CHECK(file_write(diags, path, (Bytes){tar.at, cut}));
        factor(path, "fake_file");
    }
    broken = arena_dup(arena, tar.at, tar.n);
    memset(broken + 124, '7', 11); /* a size beyond the file */
    CHECK(file_write(diags, path, (Bytes){broken, tar.n}));
    CHECK(factor(path, "fake_file") == -1);
}

static void test_directory(void)
{
    uint32_t n;
    Member  *m = archive_members(&n);

    for (uint32_t i = 0; i < n; i++) {
        char *path = arena_printf(arena, "%s/unpacked/%s", folder, m[i].path);

        for (char *p = path + 1; (p = strchr(p, '/')) != NULL; *p++ = '/') {
            *p = 0;
            mkdir(path, 0755);
        }
        CHECK(file_write(diags, path, m[i].data));
    }
    CHECK(factor(in_folder("unpacked/top"), "fake_embed") == 2);
    CHECK(factor(in_folder("unpacked"), "fake_file") == 7);
    CHECK(factor(in_folder("unpacked"), NULL) == -1);
}

int main(int argc, char **argv)
{
    arena = arena_new(NULL);
    diags = diags_new(arena);
    if (argc != 3 || !mkdtemp(folder))
        return 2;
    embed = argv[1];
    file = argv[2];
    RUN(test_library);
    RUN(test_weights_beside);
    RUN(test_tar);
    RUN(test_directory);
    if (system(arena_printf(arena, "rm -rf %s", folder)))
        return 2;
    file_unmap_all(diags);
    arena_free(arena);
    return check_result();
}
