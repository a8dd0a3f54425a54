/* The only place for compiler extensions. */
#ifndef TVMCC_BASE_COMPILER_H
#define TVMCC_BASE_COMPILER_H

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define NORETURN _Noreturn
#define UNUSED __attribute__((unused))
#define FALLTHROUGH __attribute__((fallthrough))

#endif
