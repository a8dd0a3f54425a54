/* Debian's static libraries are made for programs: they take libc's streams to lie in the same
 * file, which a shared library cannot promise.  In the portable libtvmcc.so the linker sends them
 * here (--wrap). */
#include <stdio.h>

extern FILE *__real_stdin, *__real_stdout, *__real_stderr;
FILE        *__wrap_stdin, *__wrap_stdout, *__wrap_stderr;

/* Before the constructors of C++, which have no number. */
__attribute__((constructor(101))) static void set_streams(void)
{
    __wrap_stdin = __real_stdin;
    __wrap_stdout = __real_stdout;
    __wrap_stderr = __real_stderr;
}
