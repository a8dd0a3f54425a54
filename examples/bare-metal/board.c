/* Start-up of a Cortex-M4F or M7: vectors, memory, floats switched on, a console.
 *
 * Output and the end of the program go through semihosting: a breakpoint that an emulator or a
 * debugger answers.  On a board of your own, write to its serial port instead.  memcpy, memmove and
 * memset are all that a model compiled with -fno-libm may ask for; compilers call them as well. */
#include "board.h"

#include <stddef.h>
#include <stdint.h>

int         main(void);
void        reset(void);
extern char stack_top[], data_start[], data_end[], data_load[], bss_start[], bss_end[];

/* ---- memory functions: built without turning their loops into calls of themselves -------- */

void *memcpy(void *to, const void *from, size_t n)
{
    unsigned char       *t = to;
    const unsigned char *f = from;

    while (n--)
        *t++ = *f++;
    return to;
}

void *memmove(void *to, const void *from, size_t n)
{
    unsigned char       *t = to;
    const unsigned char *f = from;

    if (t <= f)
        return memcpy(to, from, n);
    while (n--)
        t[n] = f[n];
    return to;
}

void *memset(void *to, int value, size_t n)
{
    unsigned char *t = to;

    while (n--)
        *t++ = (unsigned char)value;
    return to;
}

/* ---- semihosting ---------------------------------------------------------------------------- */

enum { SYS_WRITE0 = 0x04, SYS_EXIT_EXTENDED = 0x20, STOPPED_APPLICATION_EXIT = 0x20026 };

static void semihosting(uint32_t operation, const void *argument)
{
    register uint32_t    r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;

    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

void board_print(const char *text)
{
    semihosting(SYS_WRITE0, text);
}

static void stop(int status)
{
    const uint32_t block[2] = {STOPPED_APPLICATION_EXIT, (uint32_t)status};

    semihosting(SYS_EXIT_EXTENDED, block);
    for (;;) {
    }
}

/* ---- start-up ----------------------------------------------------------------------------- */

void reset(void)
{
    volatile uint32_t *access = (volatile uint32_t *)0xe000ed88; /* CPACR */

    *access |= 0xfu << 20; /* the floating-point unit, for everyone */
    __asm__ volatile("dsb\nisb");
    memcpy(data_start, data_load, (size_t)(data_end - data_start));
    memset(bss_start, 0, (size_t)(bss_end - bss_start));
    stop(main());
}

static void fault(void)
{
    board_print("fault\n");
    stop(2);
}

__attribute__((section(".vectors"), used)) static void (*const vectors[])(void) = {
    (void (*)(void))stack_top, reset, fault, fault, fault, fault, fault};

/* ---- pictures ----------------------------------------------------------------------------- */

#define PICTURE(n)                                            \
    __asm__(".section .rodata.picture" #n ",\"a\"\n"          \
            ".global picture" #n "\npicture" #n ":\n"         \
            ".incbin \"" SAMPLES "/" #n ".pgm\"\n.previous"); \
    extern const unsigned char picture##n[];

PICTURE(0)
PICTURE(1)
PICTURE(2)
PICTURE(3)
PICTURE(4)
PICTURE(5)
PICTURE(6)
PICTURE(7)
PICTURE(8)
PICTURE(9)

const unsigned char *board_picture(int digit)
{
    static const unsigned char *const all[] = {picture0, picture1, picture2, picture3, picture4,
                                               picture5, picture6, picture7, picture8, picture9};

    return all[digit];
}
