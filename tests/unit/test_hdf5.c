/* HDF5: files of every form that h5py writes (tests/formats/make_hdf5.py), and broken ones. */
#include "formats/formats.h"
#include "tests/unit/check.h"

#include <math.h>
#include <string.h>

static const char *const files[] = {"old_types", "old_links", "old_chunks", "middle_types",
                                    "new_types", "new_links", "new_chunks", "behind_types"};

static double number(const H5Value *v, uint64_t i)
{
    const uint8_t *at = v->data.at + i * (v->bits / 8);
    uint64_t       bits = 0;
    float          f;
    double         d;

    memcpy(&bits, at, v->bits / 8);
    if (v->kind == H5_UINT || v->kind == H5_BOOL)
        return (double)bits;
    if (v->kind == H5_INT)
        return (double)((int64_t)(bits << (64 - v->bits)) >> (64 - v->bits));
    if (v->bits == 16) /* f16, here a whole number from 0 to 100 */
        return bits ? ldexp((double)((bits & 1023) | 1024), (int)(bits >> 10) - 25) : 0;
    memcpy(&f, at, sizeof f);
    memcpy(&d, at, v->bits == 64 ? 8 : 4);
    return v->bits == 64 ? d : (double)f;
}

/* The cells are those that make_hdf5.py wrote. */
static bool right(const H5Value *v, const H5Value *empty)
{
    for (uint64_t i = 0; i < v->cells; i++) {
        int  want = (int)((7 * i + 3) % 101);
        char text[16];

        snprintf(text, sizeof text, "text%d", want);
        if (v->kind == H5_BOOL)
            want %= 2;
        if (v->kind == H5_TEXT ? strcmp(v->texts[i], text) != 0
                               : number(v, i) != (empty ? number(empty, 0) : want))
            return false;
    }
    return true;
}

static bool sized(const H5Value *v)
{
    uint64_t n = 1;

    for (uint32_t i = 0; i < v->ndim; i++)
        n *= (uint64_t)v->dims[i];
    return n == v->cells && (v->kind == H5_TEXT || v->data.n == n * (v->bits / 8));
}

/* All datasets below, by a stack of groups; how many there are. */
static uint32_t walk(Arena *a, H5File *f, const char *file)
{
    VEC(H5Object) todo = {0};
    uint32_t count = 0;

    vec_push(a, &todo, h5_root(f));
    while (todo.n) {
        H5Object group = todo.at[--todo.n];
        TextList names = {0};

        CHECK(h5_names(&group, &names));
        for (uint32_t i = 0; i < names.n; i++) {
            H5Object at;
            H5Value  v, empty;
            bool     none;

            CHECK(h5_find(&group, names.at[i], &at));
            if (str_ends(names.at[i], ".t"))
                continue;
            CHECK(h5_is_group(&at) == str_ends(names.at[i], ".g"));
            if (h5_is_group(&at)) {
                vec_push(a, &todo, at);
                continue;
            }
            none = h5_attribute(&at, "empty", &empty);
            if (!h5_dataset(&at, &v) || !sized(&v) || !right(&v, none ? &empty : NULL)) {
                printf("%s: %s is wrong\n", file, at.path);
                CHECK(false);
            }
            count++;
        }
    }
    return count;
}

static void check_attributes(H5File *f, const char *path)
{
    static const char *const names[] = {"numbers", "names", "text", "bytes"};
    H5Object                 root = h5_root(f), o;
    H5Value                  v;

    if (!h5_find(&root, path, &o) || !h5_attribute(&o, "text", &v))
        return;
    for (uint32_t i = 0; i < COUNT(names); i++)
        CHECK(h5_attribute(&o, names[i], &v) && sized(&v) && right(&v, NULL));
    for (int i = 0; i < 60; i++) {
        char name[8];

        snprintf(name, sizeof name, "a%d", i);
        CHECK(!h5_attribute(&o, name, &v) || (v.cells == 3 && right(&v, NULL)));
    }
    CHECK(!h5_attribute(&o, "absent", &v) && !h5_failed(f));
}

static Bytes read_file(Arena *a, Diags *d, const char *name)
{
    Bytes b = {0};

    CHECK(file_read(d, a, arena_printf(a, "tests/formats/hdf5/%s.h5", name), &b));
    return b;
}

static void test_all(void)
{
    for (uint32_t i = 0; i < COUNT(files); i++) {
        Arena   *a = arena_new(NULL);
        Diags   *d = diags_new(a);
        Bytes    b = read_file(a, d, files[i]);
        H5File  *f = h5_open(d, a, NO_LOC, "", b);
        H5Object root;
        H5Value  count;
        StrBuf   out = strbuf(a);

        CHECK(h5_is(b) && f);
        if (!f)
            continue;
        root = h5_root(f);
        CHECK(h5_attribute(&root, "count", &count));
        CHECK_INT(walk(a, f, files[i]), (int)number(&count, 0));
        check_attributes(f, "/");
        check_attributes(f, "/types.g");
        check_attributes(f, "/many.g");
        diag_print(d, DIAG_TEXT, &out);
        CHECK_STR(out.at ? out.at : "", "");
        arena_free(a);
    }
}

/* A view of the file where nothing has to be moved. */
static void test_views(void)
{
    Arena   *a = arena_new(NULL);
    Diags   *d = diags_new(a);
    Bytes    b = read_file(a, d, "old_types");
    H5File  *f = h5_open(d, a, NO_LOC, "", b);
    H5Object root = h5_root(f), o;
    H5Value  v;

    CHECK(h5_find(&root, "types.g/lf4", &o) && h5_dataset(&o, &v));
    CHECK(v.data.at >= b.at && v.data.at < b.at + b.n);
    CHECK_INT(v.kind, H5_FLOAT);
    CHECK_INT(v.bits, 32);
    CHECK(!h5_find(&root, "types.g/absent", &o) && !h5_failed(f));
    CHECK(!h5_find(&root, "types.g/lf4/below", &o) && h5_failed(f));
    arena_free(a);
}

/* Chunks without an index whose dataset says that it could have 2^62 columns: an error, at once.
 */
static void test_endless(void)
{
    static const uint8_t shape[] = {2, 2, 1, 1, 5, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0};
    Arena               *a = arena_new(NULL);
    Diags               *d = diags_new(a);
    Bytes                b = read_file(a, d, "new_chunks");
    uint8_t             *copy = arena_dup(a, b.at, b.n);
    H5File              *f;
    H5Object             root, o;
    H5Value              v;

    for (size_t i = 0; i + 36 <= b.n; i++)
        if (!memcmp(b.at + i, shape, sizeof shape))
            copy[i + 35] = 0x40; /* the most columns */
    f = h5_open(d, a, NO_LOC, "", (Bytes){copy, b.n});
    root = h5_root(f);
    CHECK(h5_find(&root, "implicit", &o) && !h5_dataset(&o, &v) && diag_errors(d) == 1);
    arena_free(a);
}

/* Every byte that is changed gives a dataset or an error, and an error is recorded once. */
static void test_damaged(void)
{
    for (uint32_t i = 0; i < COUNT(files); i++) {
        Arena   *a = arena_new(NULL);
        Diags   *d = diags_new(a);
        Bytes    b = read_file(a, d, files[i]);
        uint8_t *copy = arena_dup(a, b.at, b.n);

        for (size_t at = i; at < b.n; at += b.n / 150 + 1) {
            Arena   *w = arena_new(NULL);
            Diags   *wd = diags_new(w);
            H5File  *f;
            H5Object o;
            H5Value  v;
            TextList names = {0};
            uint8_t  was = copy[at];

            copy[at] ^= (uint8_t)(1 + at % 255);
            if ((f = h5_open(wd, w, NO_LOC, "", (Bytes){copy, b.n}))) {
                H5Object root = h5_root(f), group;

                h5_names(&root, &names);
                for (uint32_t k = 0; k < names.n && !h5_failed(f); k++) {
                    TextList below = {0};

                    if (h5_find(&root, names.at[k], &group) && h5_names(&group, &below))
                        for (uint32_t j = 0; j < below.n && j < 20; j++)
                            if (h5_find(&group, below.at[j], &o))
                                h5_dataset(&o, &v);
                    if (h5_failed(f))
                        break;
                    h5_dataset(&group, &v);
                }
                CHECK_INT(diag_errors(wd), h5_failed(f) ? 1 : 0);
            }
            copy[at] = was;
            arena_free(w);
        }
        arena_free(a);
    }
}

int main(void)
{
    RUN(test_all);
    RUN(test_views);
    RUN(test_endless);
    RUN(test_damaged);
    return check_result();
}
