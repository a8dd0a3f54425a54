/* Regular expressions as automata.
 *
 *   regex_parse.c   a pattern as a tree
 *   regex.c         as a program of byte ranges, and as states
 */
#ifndef TVMCC_FRONTENDS_ONNX_REGEX_H
#define TVMCC_FRONTENDS_ONNX_REGEX_H

#include "formats/formats.h"

enum { REGEX_DEAD, REGEX_WHOLE, REGEX_START };

/* Next states by state and class of a byte.  A string, and a zero byte behind it, leads from
 * REGEX_START to REGEX_WHOLE if all of it matches; further zero bytes change nothing. */
typedef struct {
    uint32_t       states, classes;
    uint8_t        class_of[256];
    const int32_t *next; /* [states * classes] */
} Regex;

/* The syntax is that of RE2; false with what is wrong or not supported. */
bool regex_compile(Arena *a, Bytes pattern, Regex *out, const char **why);

/* ---- regex_parse.c ---- */

typedef struct {
    uint32_t lo, hi;
} RegexRange;
typedef VEC(RegexRange) RegexRanges;

typedef enum { REGEX_SET, REGEX_CAT, REGEX_ALT, REGEX_REPEAT, REGEX_LOOK } RegexKind;
typedef enum {
    REGEX_AT_BEGIN,
    REGEX_AT_END,
    REGEX_AT_LINE,
    REGEX_AT_LINE_END,
    REGEX_AT_WORD,
    REGEX_NOT_AT_WORD
} RegexLook;

typedef struct RegexTree RegexTree;
struct RegexTree {
    RegexKind   kind;
    RegexRanges set;
    VEC(const RegexTree *) kids;
    uint32_t  min, max; /* of a repetition; UINT32_MAX: any number */
    RegexLook look;
};

const RegexTree *regex_parse(Arena *a, Bytes pattern, const char **why); /* NULL with why */

#endif
