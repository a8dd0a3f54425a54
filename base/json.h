/* JSON that somebody else wrote, through the library jansson. */
#ifndef TVMCC_BASE_JSON_H
#define TVMCC_BASE_JSON_H

#include "base/base.h"

#include <jansson.h>

/* The document, to be given back with json_decref; NULL: it is none, and `error` (or NULL) says
 * where.  Refused are keys that an object has twice, U+0000 in texts, integers beyond 64 bits, text
 * that is not UTF-8, more than 2048 levels and more than JSON_BYTES. */
json_t *json_read(Bytes text, json_error_t *error);
enum { JSON_BYTES = 16 << 20 };

#endif
