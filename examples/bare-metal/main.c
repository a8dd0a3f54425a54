/* Handwritten digits on a microcontroller: no operating system, no C library, no heap.
 *
 * The model is an object like any other; its arena is a static array and its weights stay in flash.
 * The ten sample pictures are in flash too (board.c).  Prints what each is taken for and what the
 * model costs, and ends with status 0 if all are right. */
#include "board.h"
#include "digits.h"

enum { PIXELS = DIGITS_IN_IMAGE_ELEMS, HEADER = 13 }; /* "P5\n16 16\n255\n" */

DIGITS_DEFINE_ARENA(arena);

static void print_number(unsigned n)
{
    char text[12], *at = text + sizeof text - 1;

    for (*at = 0; n > 9; n /= 10)
        *--at = (char)('0' + n % 10);
    *--at = (char)('0' + n);
    board_print(at);
}

static int classify(const unsigned char *picture)
{
    static float   image[PIXELS], digit[DIGITS_OUT_DIGIT_ELEMS];
    digits_inputs  in = {image};
    digits_outputs out = {digit};
    int            best = 0;

    for (int i = 0; i < PIXELS; i++)
        image[i] = (float)picture[HEADER + i] / 255.0f;
    if (digits_run(&in, &out, arena) != 0)
        return -1;
    for (int i = 1; i < DIGITS_OUT_DIGIT_ELEMS; i++)
        if (digit[i] > digit[best])
            best = i;
    board_print("picture ");
    print_number((unsigned)best);
    board_print(", sure by ");
    print_number((unsigned)(digit[best] * 100.0f + 0.5f));
    board_print("%\n");
    return best;
}

int main(void)
{
    int wrong = 0;

    for (int i = 0; i < 10; i++)
        wrong += classify(board_picture(i)) != i;
    board_print("weights ");
    print_number(DIGITS_WEIGHTS_BYTES);
    board_print(" bytes in flash, arena ");
    print_number(sizeof arena);
    board_print(" bytes of memory\n");
    board_print(wrong ? "wrong\n" : "all right\n");
    return wrong != 0;
}
