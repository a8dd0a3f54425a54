/* Reads handwritten digits with a compiled model.
 *
 * The model is a library with a header: its arena is a static array, its input and output are plain
 * arrays, and running it is one call.  This program shows each picture, what the model takes it
 * for, how sure it is and how long it took; then what the model costs.
 *
 *     demo [picture.pgm...]        16 x 16 pixels, 8 bits; without names the ten samples
 */
#include "digits.h"
#include "tvmcc/runtime.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { SIZE = DIGITS_IN_IMAGE_DIM3, PIXELS = SIZE * SIZE, THREADS = 2, ACROSS = 5, MAX = 100 };

typedef struct {
    unsigned char pixels[PIXELS];
    int           digit;
    float         sure;
    double        micros;
} Picture;

DIGITS_DEFINE_ARENA_FOR(arena, THREADS);
static alignas(64) unsigned char pool_memory[4096];

static int read_picture(const char *path, Picture *p)
{
    FILE *f = fopen(path, "rb");
    int   width = 0, height = 0, ok;

    ok = f && fscanf(f, "P5 %d %d 255", &width, &height) == 2 && fgetc(f) != EOF && width == SIZE &&
         height == SIZE && fread(p->pixels, 1, PIXELS, f) == PIXELS;
    if (f)
        fclose(f);
    if (!ok)
        fprintf(stderr, "%s: not a %d x %d picture of the kind P5\n", path, SIZE, SIZE);
    return ok;
}

static double now(void)
{
    struct timespec t;

    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Runs the model on the picture a few times: the first run is cold, the fastest one counts. */
static int classify(Picture *p, const tvmcc_params *params)
{
    static float   image[DIGITS_IN_IMAGE_ELEMS], digit[DIGITS_OUT_DIGIT_ELEMS];
    digits_inputs  in = {image};
    digits_outputs out = {digit};

    for (int i = 0; i < PIXELS; i++)
        image[i] = (float)p->pixels[i] / 255.0f;
    p->micros = 1e9;
    for (int i = 0; i < 20; i++) {
        double  start = now(), took;
        int32_t rc = digits_run_ex(&in, &out, params);

        took = now() - start;
        if (rc) {
            fprintf(stderr, "digits_run_ex: code %d\n", (int)rc);
            return 0;
        }
        if (took < p->micros)
            p->micros = took;
    }
    p->digit = 0;
    for (int i = 1; i < 10; i++)
        if (digit[i] > digit[p->digit])
            p->digit = i;
    p->sure = digit[p->digit];
    return 1;
}

/* One line of text is two lines of pixels, so that a picture looks square. */
static void show_row(const Picture *pictures, int n)
{
    static const char shades[] = " .:-=+*#%@";

    for (int y = 0; y < SIZE; y += 2) {
        for (int i = 0; i < n; i++) {
            const unsigned char *at = pictures[i].pixels + y * SIZE;

            printf("  ");
            for (int x = 0; x < SIZE; x++)
                putchar(shades[(at[x] + at[x + SIZE]) * 9 / 510]);
        }
        putchar('\n');
    }
    for (int i = 0; i < n; i++)
        printf("  %d %3.0f%% %5.1f us ", pictures[i].digit, 100 * pictures[i].sure,
               pictures[i].micros);
    printf("\n\n");
}

static void show_costs(void)
{
    struct stat st;

    printf("model %d multiply-adds, %d bytes of weights, arena %zu bytes with %d threads",
           (int)DIGITS_MACS, (int)DIGITS_WEIGHTS_BYTES, sizeof arena, THREADS);
    if (stat(OBJECT, &st) == 0)
        printf(", %ld bytes on disk", (long)st.st_size);
    printf("\ncompiled by %s for %s\n", DIGITS_TOOLCHAIN, digits_info()->targets);
}

int main(int argc, char **argv)
{
    static Picture pictures[MAX];
    int            n = argc > 1 ? argc - 1 : 10, wrong = 0;
    tvmcc_params   params = {
          .struct_bytes = sizeof params, .arena = arena, .arena_bytes = sizeof arena};
    tvmrt_pool *pool = tvmrt_pool_new(pool_memory, sizeof pool_memory, THREADS);

    if (!pool || n > MAX)
        return EXIT_FAILURE;
    tvmrt_pool_use(pool, &params);
    for (int i = 0; i < n; i++) {
        char sample[] = SAMPLES "/0.pgm";

        sample[sizeof sample - 6] = (char)('0' + i % 10);
        if (!read_picture(argc > 1 ? argv[1 + i] : sample, &pictures[i]) ||
            !classify(&pictures[i], &params))
            return EXIT_FAILURE;
        wrong += argc == 1 && pictures[i].digit != i;
    }
    tvmrt_pool_free(pool);
    for (int i = 0; i < n; i += ACROSS)
        show_row(pictures + i, n - i < ACROSS ? n - i : ACROSS);
    show_costs();
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
