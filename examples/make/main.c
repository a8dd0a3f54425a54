/* Compiled model, plain C: one array in, one out, one call. */
#include "digits.h"

#include <stdio.h>

DIGITS_DEFINE_ARENA(arena);

int main(void)
{
    static float   image[DIGITS_IN_IMAGE_ELEMS]; /* an empty picture */
    float          digit[DIGITS_OUT_DIGIT_ELEMS];
    digits_inputs  in = {image};
    digits_outputs out = {digit};
    int32_t        rc = digits_run(&in, &out, arena);

    if (rc) {
        fprintf(stderr, "digits_run: %d\n", (int)rc);
        return 1;
    }
    for (int i = 0; i < DIGITS_OUT_DIGIT_ELEMS; i++)
        printf("%d %.3f\n", i, digit[i]);
    return 0;
}
