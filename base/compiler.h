/* The only place for compiler extensions. */
#ifndef TVMCC_BASE_COMPILER_H
#define TVMCC_BASE_COMPILER_H

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define NORETURN _Noreturn
#define UNUSED __attribute__((unused))
#define FALLTHROUGH __attribute__((fallthrough))

/* A function compiled for more than the baseline; its caller has asked the processor. */
#define TARGET_FEATURES(list) __attribute__((target(list)))
#if defined(__clang__)
#define TARGET_ARM_SHA2 "sha2"
#else
#define TARGET_ARM_SHA2 "+crypto"
#endif

/* 1 in a build with AddressSanitizer. */
#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifndef WITH_ASAN
#define WITH_ASAN 0
#endif

/* 1 in a build with MemorySanitizer. */
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define WITH_MSAN 1
#endif
#endif
#ifndef WITH_MSAN
#define WITH_MSAN 0
#endif

/* Bytes in memory of a library, which MemorySanitizer did not see written. */
#if WITH_MSAN
#include <sanitizer/msan_interface.h>
#define WRITTEN_BY_LIBRARY(p, n) __msan_unpoison((p), (n))
#else
#define WRITTEN_BY_LIBRARY(p, n) ((void)(p), (void)(n))
#endif

#endif
