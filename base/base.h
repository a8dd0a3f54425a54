/* base: what knows nothing about tensors.
 *
 * Memory comes from arenas and is never freed piece by piece; strings are interned, so equal
 * strings are the same pointer; errors are collected in a `Diags` and printed by the driver;
 * files are mapped for reading and written atomically.  Out of memory is the only longjmp.
 *
 *   arena.c vec.c map.c str.c           memory, containers, text
 *   hash.c sha256.c divisor.c           hashes, integers
 *   diag.c diag.def                     errors, warnings, notes and hints, each with its code
 *   reader.c writer.c                   bounds-checked bytes in, atomic files out
 *   cache.c cache.h                     bytes on disk, found by hash
 */
#ifndef TVMCC_BASE_H
#define TVMCC_BASE_H

#include "base/compiler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- arena.c: memory that is freed all at once ------------------------------------------- */

typedef struct Arena Arena;

/* A new arena; `oom` (may be NULL: abort) is jumped to with 1 when memory ends. */
Arena *arena_new(jmp_buf *oom);
void   arena_free(Arena *a);
void   arena_reset(Arena *a);                        /* drops all contents (poisons under ASan) */
void  *arena_alloc(Arena *a, size_t bytes);          /* zeroed, aligned to 16; never NULL */
void  *arena_array(Arena *a, size_t n, size_t size); /* checked n * size */
void  *arena_dup(Arena *a, const void *p, size_t bytes);
char  *arena_printf(Arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
size_t arena_used(const Arena *a);
/* What a large allocation holds is not needed any more: its pages go back to the system, and it
 * reads as zeros.  Small ones are left alone. */
void arena_forget(Arena *a, void *p, size_t bytes);

#define NEW(a, T) ((T *)arena_alloc((a), sizeof(T)))
#define NEW_ARRAY(a, T, n) ((T *)arena_array((a), (n), sizeof(T)))
#define DUP_ARRAY(a, p, n) arena_dup((a), (p), (n) * sizeof *(p))
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- vec.c: growing arrays ----------------------------------------------------------------- */

/* VEC(int) v = {0};  vec_push(arena, &v, 3);  v.at[0];  v.n.  What is pushed may be made of what is
 * there already: n counts it afterwards. */
#define VEC(T)           \
    struct {             \
        T       *at;     \
        uint32_t n, cap; \
    }
#define vec_push(arena, v, x)                                                                \
    (((v)->n == (v)->cap                                                                     \
          ? (void)((v)->at = vec_grow((arena), (v)->at, &(v)->cap, sizeof *(v)->at, (v)->n)) \
          : (void)0),                                                                        \
     (v)->at[(v)->n] = (x), (v)->n++)
/* The most usual one. */
typedef VEC(const char *) TextList;
void *vec_grow(Arena *a, void *at, uint32_t *cap, size_t size, uint32_t n);

/* ---- map.c: hash maps from 64-bit keys ----------------------------------------------------- */

typedef struct Map Map;

Map     *map_new(Arena *a);
void    *map_get(const Map *m, uint64_t key);                /* NULL if absent */
bool     map_find(const Map *m, uint64_t key, void **value); /* tells absent from NULL */
void     map_put(Map *m, uint64_t key, void *value);         /* replaces */
void     map_del(Map *m, uint64_t key);
uint32_t map_count(const Map *m);
#define PTR_KEY(p) ((uint64_t)(uintptr_t)(p)) /* key of an interned pointer */

/* ---- str.c: text ----------------------------------------------------------------------------- */

typedef struct Strings Strings; /* the intern table */

Strings    *strings_new(Arena *a);
const char *intern(Strings *s, const char *text);
const char *intern_n(Strings *s, const char *text, size_t n);
const char *intern_printf(Strings *s, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A growing, always NUL-terminated text. */
typedef struct {
    Arena *arena;
    char  *at;
    size_t n, cap;
} StrBuf;

StrBuf strbuf(Arena *a);
void   str_add(StrBuf *s, const char *text);
void   str_addn(StrBuf *s, const char *text, size_t n);
void   str_addc(StrBuf *s, char ch);
void   str_reserve(StrBuf *s, size_t more); /* room for `more` bytes and the NUL */
void   str_printf(StrBuf *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
void   str_vprintf(StrBuf *s, const char *fmt, va_list ap);
void   str_add_json(StrBuf *s, const char *text); /* quoted; bytes that are not UTF-8 as U+FFFD */
bool   utf8_ok(const char *text);

/* A size such as 65536, 64KiB, 2MiB or 1GiB, from 1.  False: it is none. */
bool parse_bytes(const char *text, uint64_t *out);
bool str_starts(const char *text, const char *prefix);
bool str_ends(const char *text, const char *suffix);
/* Is it the pattern, with `n` bytes from *part on in place of its '*'?  A pattern has one. */
bool str_star(const char *text, const char *pattern, const char **part, size_t *n);
/* The candidate closest to `word` by edit distance, or NULL if none is close: "did you mean". */
const char *str_closest(const char *word, const char *const *candidates, size_t n);
/* Any text as a lower-case C identifier: letters, digits, '_'; never empty, never a keyword. */
const char *c_identifier(Arena *a, const char *text);
const char *str_upper(Arena *a, const char *text);

/* ---- columns.c: tables for people ---------------------------------------------------------------- */

typedef struct Columns Columns;

Columns *columns_new(Arena *a, const char *align); /* "lrr": a letter for each column; kept */
void     columns_add(Columns *c, const char *fmt, ...) PRINTF_LIKE(2, 3); /* the next cell */
void     columns_end(Columns *c); /* the rest of the row is empty */
void     columns_print(const Columns *c, uint32_t indent, StrBuf *out);

/* ---- hash.c ------------------------------------------------------------------------------------ */

typedef struct {
    const uint8_t *at;
    size_t         n;
} Bytes;

typedef struct {
    uint8_t b[32];
} Sha256;

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed); /* in memory only, never stored */
uint64_t hash_mix(uint64_t a, uint64_t b);

/* ---- sha256.c ---------------------------------------------------------------------------------- */

typedef enum { SHA256_SCALAR, SHA256_X86, SHA256_ARM } Sha256Path;
typedef struct Sha256Ctx {
    uint32_t   h[8];
    uint64_t   bytes;
    uint8_t    block[64];
    Sha256Path path; /* by which instructions; sha256_init takes the fastest there are */
} Sha256Ctx;
bool   sha256_has(Sha256Path path); /* on this processor */
Sha256 sha256(Bytes data);          /* FIPS 180-4 */
void   sha256_init(Sha256Ctx *c);
void   sha256_add(Sha256Ctx *c, const void *p, size_t n);
Sha256 sha256_end(Sha256Ctx *c);
void   sha256_hex(Sha256 s, char hex[65]);

/* ---- checked arithmetic: false on overflow ------------------------------------------------- */

#define checked_add(a, b, out) (!__builtin_add_overflow((a), (b), (out)))
#define checked_sub(a, b, out) (!__builtin_sub_overflow((a), (b), (out)))
#define checked_mul(a, b, out) (!__builtin_mul_overflow((a), (b), (out)))
static inline uint64_t align_up(uint64_t n, uint64_t align)
{
    return (n + align - 1) / align * align;
}
/* a >= 0, b > 0, rounds up. */
static inline int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

/* The least multiple of `to` that is not below n; n >= 0, to > 0. */
static inline int64_t round_up(int64_t n, int64_t to)
{
    return ceil_div(n, to) * to;
}
int64_t gcd_i64(int64_t a, int64_t b);   /* >= 0 */
int64_t floor_div(int64_t a, int64_t b); /* b > 0, rounds down */
int64_t floor_mod(int64_t a, int64_t b); /* b > 0, in [0, b) */

/* divisor.c: divisors of n >= 1, in at most 2^17 steps whatever n is; exact to 2^32, above it a
 * smaller or larger divisor than the nearest may come. */
int64_t divisor_upto(int64_t n, int64_t most);  /* the largest that is at most that, or 1 */
int64_t divisor_from(int64_t n, int64_t least); /* the smallest that is at least that, or n */

/* ---- diag.c: what the user is told ----------------------------------------------------------- */

/* A place in an input.  For models `line` is the node's ordinal from 1 and `name` its name. */
typedef struct {
    const char *file;      /* NULL: no place */
    uint32_t    line, col; /* 0: unknown */
    const char *name;      /* interned node name, or NULL */
} Loc;

#define NO_LOC ((Loc){0})

typedef enum {
#define DIAG(id, code, status, flag, text) id,
#include "base/diag.def"
#undef DIAG
    DIAG_COUNT
} DiagId;

typedef struct Diags Diags;

typedef enum { DIAG_TEXT, DIAG_JSON, DIAG_SARIF } DiagFormat;

typedef enum { DIAG_IS_ERROR, DIAG_IS_WARNING, DIAG_IS_NOTE, DIAG_IS_HINT } DiagKind;

typedef struct {
    DiagKind    kind;
    DiagId      id; /* of an error or warning */
    Loc         loc;
    const char *text;
} DiagRecord;

Diags *diags_new(Arena *a);
/* Record an error and return NULL, which serves pointers and (as false) bools. */
void *diag_error(Diags *d, DiagId id, Loc loc, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* Compilers are told of the NULL, or they warn of what is unset after an error. */
static inline void *null_of(UNUSED const void *null)
{
    return NULL;
}
#define diag_error(...) null_of(diag_error(__VA_ARGS__))
/* Record a warning unless its flag is off; an error under -Werror, or if its row has a status. */
void diag_warn(Diags *d, DiagId id, Loc loc, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* Notes and hints attach to the last error or warning. */
void     diag_note(Diags *d, Loc loc, const char *fmt, ...) PRINTF_LIKE(3, 4);
void     diag_hint(Diags *d, const char *fmt, ...) PRINTF_LIKE(2, 3);
uint32_t diag_errors(const Diags *d); /* how many errors so far */
/* All that was recorded, one by one. */
uint32_t   diag_count(const Diags *d);
DiagRecord diag_at(const Diags *d, uint32_t i);
int        diag_status(const Diags *d); /* docs/exit-status.md: of the first error; 0 if none */
void       diag_one_status(Diags *d, int status); /* from now on all errors have this one */
/* -Wname, -Wno-name, -Werror, -Werror=name, -Wno-error=name; -w: no warnings, whatever else is
 * said. False: no such flag. */
bool diag_flag(Diags *d, const char *option);
/* The flag of a warning by its code or itself: "W0301" -> "dim-default"; NULL: none. */
const char *diag_flag_of(const char *name);
/* Remember the text of an input so that messages can show the line with a caret. */
void diag_source(Diags *d, const char *file, Bytes text);
/* All that was recorded, in order, as the driver prints it to stderr. */
void diag_print(const Diags *d, DiagFormat format, StrBuf *out);
/* Text in colours, for terminals. */
void diag_color(Diags *d, bool on);
/* The errors of `from`, with their notes and hints, as errors `id` at `loc`: `who: message`. */
void diag_adopt(Diags *d, const Diags *from, DiagId id, Loc loc, const char *who);
/* There are errors after the first `errors`, and all of them are of this kind. */
bool diag_all_are(const Diags *d, uint32_t errors, DiagId id);
void diag_drop(Diags *d, uint32_t errors); /* forget what came after the first `errors` errors */
void diag_cut(Diags *d, uint32_t from, uint32_t to); /* ... records from .. to - 1 */
const char *diag_code(DiagId id);                    /* "E0301" */
const char *diag_help(const char *code); /* the text of a code's row; NULL: no such code */

/* What --help says of a code beside its text (diag_help.def). */
typedef struct {
    const char *why, *remedy, *command, *message;
} DiagHelp;

const DiagHelp *diag_explain(const char *code); /* NULL: no such code */

Arena *diag_arena(const Diags *d);
void **diag_mappings(Diags *d); /* lists of reader.c, kept here for their lifetime */
void **diag_streams(Diags *d);

/* Ours to blame: print message and place, remove temporary files, exit 70. */
#define BUG(...) base_bug(__FILE__, __LINE__, __VA_ARGS__)
NORETURN void base_bug(const char *file, int line, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* ---- reader.c, writer.c: bytes in, files out ------------------------------------------------- */

/* Map a file read-only.  The mapping lives until `file_unmap_all` (the Ctx's end), which must come
 * before the arena of `d` goes.  A pipe, or "-" for stdin, is read into memory, at most 2 GiB, and
 * once: by the same name it is the same bytes again.  Devices are refused.  Error: E_IO. */
bool file_map(Diags *d, const char *path, Bytes *out);
void file_unmap_all(Diags *d);
/* Where it lies, symbolic links followed; NULL: nowhere. */
const char *file_real(Arena *a, const char *path);
void file_adopt_mapping(Diags *d, void *at, size_t n); /* one made elsewhere, with that lifetime */
/* A file of that name is these bytes, which live as long as the Diags, whatever is on disk. */
void file_pretend(Diags *d, const char *path, Bytes content);
/* The same of an open regular file, which stays open; `path` is for the message. */
bool file_map_fd(Diags *d, int fd, const char *path, Bytes *out);
/* All of a file, into the arena; "-" is stdin. */
bool file_read(Diags *d, Arena *a, const char *path, Bytes *out);
/* May it be read? */
bool file_readable(Diags *d, const char *path);
/* missing.c: a hint behind the error that there is no such file, to read or to write. */
void file_missing(Diags *d, const char *path, bool reads);

/* Bounds-checked little-endian cursor; `bad` sticks, reads past the end give 0. */
typedef struct {
    const uint8_t *at, *end, *start;
    bool           bad;
} Reader;

Reader   reader(Bytes b);
uint8_t  read_u8(Reader *r);
uint16_t read_u16(Reader *r);
uint32_t read_u32(Reader *r);
uint64_t read_u64(Reader *r);
uint64_t read_varint(Reader *r); /* LEB128, at most 10 bytes */
Bytes    read_bytes(Reader *r, uint64_t n);
size_t   reader_left(const Reader *r);

/* Unless the file holds these bytes already (so that Ninja's restat sees no change): write to a
 * file without a name (or with a temporary one) in the same folder, fsync, give it this name.  "-"
 * is stdout; devices and pipes are written in place.  Nothing half-written is left.  Error: E_IO
 * (status 74).  `mode` is masked by umask. */
bool file_write(Diags *d, const char *path, Bytes content);
bool file_write_mode(Diags *d, const char *path, Bytes content, unsigned mode);
/* From now on SIGINT, SIGTERM and SIGHUP end tools and remove temporaries before they end the
 * process, and a write beyond RLIMIT_FSIZE fails instead; for programs (the driver calls it first),
 * not for the library. */
void file_handle_signals(void);
void file_remove_temporaries(void);
/* A program in PATH, as a shell would find it, or by its path; NULL: there is none. */
const char *file_find_tool(Arena *a, const char *name);
/* Runs a program that writes temporaries, found in PATH, and waits for it: `words` end with NULL.
 * An errno value if it cannot be started; `status` is 128+n for signals. */
int file_run_tool(const char *const *words, int *status);
/* ... in a folder, with all that it says in the file `log` there; NULL: on stderr.  A path in
 * words[0] is a full one. */
int file_run_tool_in(const char *folder, const char *log, const char *const *words, int *status);
/* A temporary name beside `path` that the two functions above know of; the file exists, empty.
 * NULL after an error (E_IO).  End it with file_commit (rename if the bytes differ) or file_drop.
 */
const char *file_temporary(Diags *d, Arena *a, const char *path, unsigned mode);
bool        file_commit(Diags *d, const char *temporary, const char *path);
void        file_drop(const char *temporary);
/* Where files go that lie beside nothing: $TMPDIR if that is a full path, else /tmp. */
const char *file_temporary_place(void);
/* The folder `path` and those around it, where they are missing; false after an error (E_IO). */
bool file_make_folder(Diags *d, const char *path);
/* A new folder there that nobody else may enter, so that what is written in it can be read and run
 * by its name.  NULL after an error (E_IO).  It ends with file_drop_folder, and all that is in it;
 * after a signal those files alone that file_temporary made. */
const char *file_temporary_folder(Diags *d, Arena *a);
bool        file_drop_folder(const char *folder);

/* False, with the error (E_IO): no file of so many bytes could be written beside `path`.  For those
 * who must know why another program failed to. */
bool file_room(Diags *d, Arena *a, const char *path, uint64_t bytes);

/* The content of a file as what lies here and there in memory, one after the other. */
typedef struct {
    uint32_t     n;
    const Bytes *at;
} BytesList;

bool   file_write_pieces(Diags *d, const char *path, BytesList content);
size_t pieces_size(BytesList p);
Bytes  pieces_join(Arena *a, BytesList p); /* as one; no copy of a single piece */

/* A file for `path` that is filled before all of it is known, so that megabytes need
 * not be kept until then.  NULL after an error.  It ends with file_out_finish or file_out_drop;
 * both may come after either. */
typedef struct FileOut FileOut;
FileOut               *file_out_new(Diags *d, Arena *a, const char *path);
bool                   file_out_put(FileOut *f, uint64_t at, Bytes content);
/* What was put from 0 to n, to be read; until the file_unmap_all of the Diags. */
bool file_out_map(FileOut *f, uint64_t n, Bytes *out);
/* The rest of the content: pieces of file_out_map that stand where they were put are there already.
 * With `keep` the file gets a temporary name, else its own if the bytes differ. */
bool        file_out_finish(FileOut *f, BytesList content, bool keep);
const char *file_out_temporary(const FileOut *f); /* after file_out_finish with `keep`, else NULL */
void        file_out_drop(FileOut *f);

/* ---- tree.c: folders by descriptor ------------------------------------------------------------ */

/* A folder that the user named; -1 with errno.  Only here links are followed. */
int tree_open(const char *path);
/* The folder `name` of `folder`; -1 where it is a link or no folder. */
int tree_open_at(int folder, const char *name);
/* The folder in which `path` lies, and its name there; -1 for "/", "." and "..". */
int tree_open_parent(Arena *a, const char *path, const char **name);
/* The folder `path` below `folder`, "" for itself; with `make` what is missing is made. */
int tree_open_below(int folder, const char *path, bool make);
/* The folder `path`, through links as the user wrote it, and those around it where they are
 * missing; false with errno. */
bool tree_make(const char *path);
/* What is in it; NULL with errno.  (A DIR: <dirent.h>.) */
void *tree_list(int folder);
/* Removes it with all below; of a link the link.  False, with errno: something is left. */
bool tree_remove_at(int folder, const char *name);
bool tree_remove(const char *path);

/* Bytes of a mapped file that nobody will read soon: their pages leave this process.  Reading them
 * brings them back; memory that is no mapping is left alone. */
void file_forget(Diags *d, Bytes content);

#endif
