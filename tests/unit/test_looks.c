/* frontends/looks.def: each row is what its own bytes look like, models look like nothing of it,
 * and beginnings of real files are known. */
#include "frontends/frontends.h"
#include "tests/unit/check.h"

#define TEXT(s) ((Bytes){(const uint8_t *)(s), sizeof(s) - 1})

static void test_rows(void)
{
    static const struct {
        size_t      at;
        const char *magic, *inside, *what;
        size_t      n, ninside;
    } rows[] = {
#define FOLDER(member, what, hint)
#define LOOK(at, magic, inside, what, hint) \
    {at, magic, inside, what, sizeof(magic) - 1, sizeof(inside) - 1},
#include "frontends/looks.def"
#undef LOOK
#undef FOLDER
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint8_t file[1024] = {0};

        memset(file, 'x', rows[i].at);
        memcpy(file + rows[i].at, rows[i].magic, rows[i].n);
        memcpy(file + 512, rows[i].inside, rows[i].ninside);
        CHECK_STR(looks_of_file((Bytes){file, sizeof file}).what, rows[i].what);
        CHECK(looks_of_file((Bytes){file, rows[i].at + rows[i].n - 1}).what != rows[i].what);
    }
    CHECK(COUNT(rows) > 30);
}

static void test_beginnings(void)
{
    CHECK_STR(looks_of_file(TEXT("")).what, "an empty file");
    CHECK_STR(looks_of_file(TEXT("layers: 3\n")).what, "text");
    CHECK(!looks_of_file(TEXT("\x08\x08\x12\x07pytorch")).what);
    CHECK_STR(looks_of_file(TEXT("\xff\xd8\xff\xe0\0\x10JFIF")).what, "a JPEG picture");
    CHECK_STR(
        looks_of_file(TEXT("\x38\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F32\",\"shape\":[1]}}")).what,
        "a safetensors file");
    CHECK_STR(looks_of_file(TEXT("PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0"
                                 "archive/data.pkl"))
                  .what,
              "a PyTorch checkpoint");
    CHECK_STR(
        looks_of_file(TEXT("PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\6\0\0\0in.npy"))
            .what,
        "arrays of NumPy (.npz)");
}

int main(void)
{
    RUN(test_rows);
    RUN(test_beginnings);
    return check_result();
}
