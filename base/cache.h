/* cache.c: a store of bytes on disk, found by the SHA-256 of what they were made from.
 *
 * It knows nothing of its contents and never decides what a product is: an entry is exactly what
 * was put, or it is not there.  What goes wrong on disk (no room, no permission, broken bytes) is
 * a miss, never an error.  All functions take NULL for "no cache", and may be called from several
 * threads of many processes at once; each caller brings its own arena.
 */
#ifndef TVMCC_CACHE_H
#define TVMCC_CACHE_H

#include "base/base.h"

typedef struct Cache Cache;

typedef struct {
    uint64_t hits, misses, stored; /* of this process */
    uint64_t corrupt;              /* entries removed because their bytes were not what was put */
} CacheStats;

/* What TVMCC_CACHE_SIZE says if that is no size; else NULL. */
const char *cache_wrong_size(void);
/* The store in folder `dir`; NULL: TVMCC_CACHE_DIR, XDG_CACHE_HOME/tvmcc or HOME/.cache/tvmcc, and
 * no cache where none of them is set.  `max_bytes` bounds all entries together; 0: what
 * TVMCC_CACHE_SIZE says, or 2 GiB.  Touches nothing on disk: the folder is made by the first
 * cache_put.  Lives as long as the arena. */
Cache      *cache_open(Arena *a, const char *dir, uint64_t max_bytes);
const char *cache_dir(const Cache *cache);
uint64_t    cache_max_bytes(const Cache *cache);
CacheStats  cache_stats(const Cache *cache);

/* The bytes put under `key`, checked against their hash, in `a`.  False: not there.  Marks the
 * entry as used, so that it is among the last to be trimmed. */
bool cache_get(Cache *cache, Arena *a, Sha256 key, Bytes *out);
/* What cache_get gave is not what was put, for a reason that only its user sees: a miss after all.
 */
void cache_drop(Cache *cache, Sha256 key);
/* Keeps `content` under `key`; keeps nothing where that fails.  An entry that is there stays. */
void cache_put(Cache *cache, Sha256 key, Bytes content);

typedef struct {
    Sha256   key;
    uint64_t bytes;   /* of its file */
    int64_t  used_ns; /* since 1970 */
} CacheEntry;

/* All entries, by key. */
void cache_list(const Cache *cache, Arena *a, CacheEntry **entries, uint32_t *n);
/* An entry as it lies on disk, and back: what `tvmcc cache export` packs and `import` checks.
 * False: not an entry, or not the bytes that were put under `key`. */
Bytes cache_entry(Arena *a, Sha256 key, Bytes content);
bool  cache_entry_content(Bytes entry, Sha256 key, Bytes *content);
/* The key of `ab/cdef...`, the name of an entry below the folder. */
bool cache_entry_key(const char *name, Sha256 *key);
/* Removes the entries used longest ago until `max_bytes` are left, and what killed processes left
 * behind. */
void cache_trim(Cache *cache, uint64_t max_bytes);
/* Removes all entries and, if nothing else is in it, the folder. */
void cache_clean(Cache *cache);

#endif
