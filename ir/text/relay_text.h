/* What Relay's printer and parser share; nothing for other rooms. */
#ifndef TVMCC_IR_TEXT_RELAY_TEXT_H
#define TVMCC_IR_TEXT_RELAY_TEXT_H

#include "ir/relay/relay.h"

/* The side file: magic, u64 count, count entries { sha256, u64 offset, u64 bytes }, then the data,
 * each 64-byte aligned.  Little-endian. */
#define CONSTS_MAGIC "tvmcc consts 1\n" /* 16 bytes with its NUL */
#define CONSTS_ENTRY 48

/* Constants of at most this many bytes print their values. */
#define SMALL_CONST 16
/* Larger constants of one value print as a hash like others, so that a short text cannot ask for
 * any amount of memory. */
#define MAX_SPLAT (1 << 28)

static inline bool name_start(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
}
static inline bool name_char(char ch)
{
    return name_start(ch) || (ch >= '0' && ch <= '9') || ch == '.';
}

#endif
