/* formats: wire formats, without a word about operators.
 *
 * Readers take the bytes of a mapped file and give views of it, never copies of weights.  Input is
 * hostile: every length is checked against what is left, nesting and counts are limited, sizes
 * multiply with checked_mul.  Errors are recorded as E_PARSE_MODEL at the `Loc` that is passed.
 *
 *   protobuf.c   messages by field tables      npy.c           NumPy's .npy and .npz
 *   prototext.c  the same messages as text     sstable.c       sorted tables of keys and values
 *   flatbuffer.c tables by field tables
 *   zip.c        zip containers, read through libarchive, written stored
 *   zip_dir.c    zip containers by their directory: stored entries as views
 *   unpack.c     content of archives           onnx_tensor.c   ONNX's TensorProto, .pb
 *   pickle.c     Python's pickles, as data       hdf5*.c         HDF5, what Keras writes of it
 *   array.c      packed elements               text.c          arrays of strings
 */
#ifndef TVMCC_FORMATS_H
#define TVMCC_FORMATS_H

#include "base/base.h"

#include <tvmcc/abi.h>

/* ---- protobuf.c: the wire format of protocol buffers ---------------------------------------- */

/* How a field of a message lands in its C struct. */
typedef enum {
    PB_INT,     /* int64_t: any varint type but sint */
    PB_FLOAT,   /* float: fixed 32 */
    PB_DOUBLE,  /* double: fixed 64 */
    PB_TEXT,    /* const char *: NUL-terminated copy; NULL when absent */
    PB_BYTES,   /* Bytes: a view of the file */
    PB_MSG,     /* T *: NULL when absent; parts of a repeated occurrence merge as the format asks */
    PB_INTS,    /* PbInts: repeated varints, packed or not */
    PB_FLOATS,  /* PbPacked: repeated fixed 32, a view when packed in one piece */
    PB_DOUBLES, /* PbPacked: repeated fixed 64, the same */
    PB_TEXTS,   /* PbTexts */
    PB_BLOBS,   /* PbBlobs: repeated bytes, views of the file */
    PB_MSGS     /* PbMsgs: T *at[n] */
} PbKind;

typedef struct PbMessage PbMessage;
typedef struct {
    const char *text; /* NULL: the last */
    int64_t     number;
} PbEnum;
typedef struct {
    uint32_t         number; /* in the .proto file */
    PbKind           kind;
    size_t           offset; /* of the member */
    size_t           has;    /* offset of a bool set when the field is there, 0: none */
    const PbMessage *sub;    /* PB_MSG, PB_MSGS */
    const char      *name;   /* for text; NULL: the message is only read as bytes */
    const PbEnum    *words;  /* of an enumeration, for text */
} PbField;

/* One message: its struct's size and the fields that are wanted; all others are skipped. */
struct PbMessage {
    const char    *name;
    size_t         size;
    uint32_t       nfields;
    const PbField *fields;
};

typedef VEC(int64_t) PbInts;
typedef VEC(const char *) PbTexts;
typedef VEC(Bytes) PbBlobs;
typedef VEC(void *) PbMsgs;
typedef struct {
    Bytes data; /* little-endian cells, perhaps misaligned */
} PbPacked;

#define PB_MAX_DEPTH 64

/* Parse `bytes` as message `m` into `out` (m->size bytes, zeroed).  False with E_PARSE_MODEL. */
bool pb_read(Diags *d, Arena *a, Loc loc, const PbMessage *m, Bytes bytes, void *out);
/* The same message as text (prototext.c), of which nothing is a view. */
bool pb_read_text(Diags *d, Arena *a, Loc loc, const PbMessage *m, Bytes text, void *out);
/* What the text begins with is a field of the message. */
bool pb_looks_like_text(const PbMessage *m, Bytes text);

/* One field at a time, for bids and for callers that need no struct.  False at the end, and when
 * the bytes are wrong (then r->bad). */
typedef enum {
    PB_WIRE_VARINT,
    PB_WIRE_I64,
    PB_WIRE_LEN,
    PB_WIRE_SGROUP,
    PB_WIRE_EGROUP,
    PB_WIRE_I32
} PbWire;
typedef struct {
    uint32_t number;
    PbWire   wire;
    uint64_t value; /* VARINT, I64, I32 */
    Bytes    bytes; /* LEN */
} PbItem;
bool pb_next(Reader *r, PbItem *out);

/* ---- sstable.c: sorted tables of keys and values ---------------------------------------------- */

typedef struct {
    const char *key;
    Bytes       value; /* a view of the file */
} SsEntry;

/* All entries in their order; false with E_PARSE_MODEL.  Checksums are not asked. */
bool sstable_read(Diags *d, Arena *a, Loc loc, Bytes file, uint32_t *n, SsEntry **out);

/* ---- flatbuffer.c: FlatBuffers ------------------------------------------------------------------ */

/* What a field of a table is, and how it lands in its C struct; integers are int64_t there. */
typedef enum {
    FB_BOOL,
    FB_I8,
    FB_U8,
    FB_I16,
    FB_U16,
    FB_I32,
    FB_U32,
    FB_I64,
    FB_U64,
    FB_F32,    /* float */
    FB_TEXT,   /* const char *: NUL-terminated copy; NULL when absent */
    FB_BYTES,  /* Bytes: a view of the file */
    FB_VECTOR, /* FbVector: of numbers, a view */
    FB_ANY,    /* FbTable, as it is: what it holds hangs on another field */
    FB_TABLE,  /* T *: NULL when absent */
    FB_TABLES  /* FbTables */
} FbKind;

typedef struct {
    uint32_t       n;
    const uint8_t *at; /* little-endian cells, perhaps misaligned; NULL: the field is absent */
} FbVector;
typedef struct {
    uint32_t n;
    void   **at;
} FbTables;

typedef struct FbType FbType;
typedef struct {
    uint32_t      slot; /* its place in the schema */
    FbKind        kind;
    size_t        offset;   /* of the member */
    int64_t       fallback; /* of an integer that is absent */
    FbKind        cell;     /* FB_VECTOR */
    const FbType *sub;      /* FB_TABLE, FB_TABLES */
} FbField;
/* A table: its struct's size and the fields that are wanted. */
struct FbType {
    const char    *name;
    size_t         size;
    uint32_t       nfields;
    const FbField *fields;
};

#define FB_MAX_DEPTH 64

/* Parse `file` as a table into `out` (type->size bytes, zeroed).  False with E_PARSE_MODEL. */
bool fb_read(Diags *d, Arena *a, Loc loc, const FbType *type, Bytes file, void *out);

/* One field at a time, of tables whose type is found out later.  False: it leads out of the file.
 */
typedef struct {
    Bytes    file; /* at NULL: there is no such table */
    size_t   at, vtable;
    uint32_t slots, bytes;
} FbTable;
bool fb_root(Bytes file, FbTable *out);
bool fb_has(const FbTable *t, uint32_t slot);
bool fb_int(const FbTable *t, uint32_t slot, FbKind kind, int64_t fallback, int64_t *out);
bool fb_float(const FbTable *t, uint32_t slot, double fallback, double *out);
bool fb_vector(const FbTable *t, uint32_t slot, FbKind kind, FbVector *out);
bool fb_table(const FbTable *t, uint32_t slot, FbTable *out);

int64_t fb_int_at(FbVector v, FbKind kind, uint32_t i);
double  fb_float_at(FbVector v, uint32_t i);

/* ---- unpack.c: content of archives, within bounds ---------------------------------------------- */

/* Bytes of content for one of the archive, beyond the first UNPACK_FREE. */
enum { UNPACK_RATIO = 200, UNPACK_FREE = 64 << 20 };

typedef enum { UNPACK_DONE, UNPACK_BROKEN, UNPACK_LARGE } UnpackResult;

struct archive;
struct archive_entry;
typedef struct {
    struct archive *archive;
    Bytes           file;      /* the archive, which libarchive reads from memory */
    uint64_t        limit;     /* bytes of all its content */
    bool            any_ratio; /* the limit is what the user said */
    uint64_t        got, in;   /* so far; 0 at the start */
} Unpack;

/* The content of the entry whose header was just read, aligned to 16 bytes: where it is stored in
 * one piece so, it is that part of the file.  Of what is too large no more is read. */
UnpackResult unpack_entry(Unpack *u, Arena *a, struct archive_entry *e, Bytes *out);

/* ---- zip.c -------------------------------------------------------------------------------------- */

typedef struct {
    const char *name;
    Bytes       data; /* aligned to 16 when read */
} ZipEntry;

/* All regular entries, unpacked into the arena, or parts of the file, which has to stay; more than
 * `limit` bytes in all, or than the ratio allows, is an error. */
bool zip_read(Diags *d, Arena *a, Loc loc, Bytes file, uint64_t limit, uint32_t *n, ZipEntry **out);
/* A zip with stored entries and no times: the same entries give the same bytes. */
Bytes zip_write(Arena *a, uint32_t n, const ZipEntry *entries);

/* ---- zip_dir.c: one entry at a time, for bids and for large files ------------------------------- */

typedef struct {
    Bytes    file;
    uint64_t at, end, left; /* of the directory */
    bool     bad;
} ZipDir;
typedef struct {
    Bytes    name, packed; /* views of the file */
    uint64_t size;
    uint32_t method, crc;
    bool     encrypted;
} ZipMember;

bool zip_open(Bytes file, ZipDir *out);   /* false: it is no zip */
bool zip_next(ZipDir *d, ZipMember *out); /* false at the end, and where d->bad */
/* A view of the file, of which the checksum is not asked, or else unpacked into the arena. */
bool zip_data(Diags *d, Arena *a, Loc loc, const ZipMember *m, Bytes *out);

/* ---- pickle.c: Python's pickles, as data ---------------------------------------------------------- */

typedef enum {
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INT,
    PICKLE_FLOAT,
    PICKLE_TEXT,
    PICKLE_LIST,
    PICKLE_TUPLE,
    PICKLE_DICT,
    PICKLE_GLOBAL,    /* a class or function, by its name */
    PICKLE_CALL,      /* what a function of that name would make of args */
    PICKLE_OBJECT,    /* an object of that class, made of args */
    PICKLE_PERSISTENT /* something outside, which args tells */
} PickleKind;
typedef struct Pickle Pickle;
struct Pickle {
    PickleKind  kind;
    uint32_t    id; /* dense; values that are shared have one */
    int64_t     i;
    double      f;       /* of an integer, too */
    const char *text;    /* TEXT; GLOBAL, CALL, OBJECT: "torch._utils._rebuild_tensor_v2" */
    VEC(Pickle *) items; /* DICT: keys and values by turns */
    Pickle *args;
    Pickle *state; /* CALL, OBJECT: what it was given afterwards; NULL: nothing */
};

/* Nothing is called, and no name is looked up.  The value may contain itself.  NULL with an error.
 */
Pickle       *pickle_read(Diags *d, Arena *a, Loc loc, const char *what, Bytes bytes);
const Pickle *pickle_item(const Pickle *dict, const char *key); /* NULL: there is none */

/* ---- hdf5.c: HDF5 ----------------------------------------------------------------------------------
 *
 * Groups, datasets and attributes of files that any version of the library wrote: superblocks 0 to
 * 3, old and new groups, cells in one piece, in the header or in chunks, deflated or not.  Links to
 * other files, compound types and references are not read; they are errors where they are asked
 * for. */

typedef struct H5File H5File;
typedef enum { H5_INT, H5_UINT, H5_FLOAT, H5_BFLOAT, H5_BOOL, H5_TEXT, H5_OPAQUE, H5_OTHER } H5Kind;
typedef struct {
    H5Kind             kind;
    uint32_t           bits; /* of a cell, but of TEXT and OTHER */
    uint32_t           ndim;
    const int64_t     *dims;
    uint64_t           cells;
    Bytes              data;  /* row-major, little-endian; a view where the file has it so */
    const char *const *texts; /* TEXT: NUL-terminated */
} H5Value;
typedef struct {
    H5File     *file;
    uint64_t    at;
    const char *path; /* "/model_weights/dense" */
} H5Object;

bool h5_is(Bytes file);
/* NULL with an error.  Messages of what comes later go to `d`, too, at `loc`; `what` is the file
 * within the one that `loc` names, or "". */
H5File  *h5_open(Diags *d, Arena *a, Loc loc, const char *what, Bytes file);
H5Object h5_root(H5File *f);
/* Names with '/' between them, from `from` on.  False: it is not there, or h5_failed. */
bool h5_find(const H5Object *from, const char *path, H5Object *out);
bool h5_is_group(const H5Object *o);
bool h5_names(const H5Object *group, TextList *out); /* of its links */
/* The same of an object's attribute, and of a dataset's cells. */
bool h5_attribute(const H5Object *o, const char *name, H5Value *out);
bool h5_dataset(const H5Object *o, H5Value *out);
bool h5_failed(const H5File *f); /* an error was recorded */

/* ---- values of tensors in files ------------------------------------------------------------------ */

#define ARRAY_MAX_DIMS 32

enum { ARRAY_OPAQUE = 255 };

typedef struct {
    const char    *name;       /* any text, ':' and '/' too */
    uint8_t        code, bits; /* of an element, as in abi.h; ARRAY_OPAQUE: the file has no type */
    uint32_t       ndim;
    const int64_t *dims;
    Bytes          data; /* row-major, little-endian */
    const char    *file; /* that it came from */
    bool           text; /* strings: u8, of which the last dimension is the bytes of one */
} Array;

/* ---- array.c: elements of less than 8 bits ---- */

/* One element a byte, in its low bits; the array's own data if its elements are larger. */
Bytes array_unpacked(Arena *a, const Array *array);
/* The opposite: 8 / bits cells a byte, the first in the low bits. */
Bytes array_packed(Arena *a, Bytes cells, uint8_t bits);

/* ---- text.c: strings of one size, with zero bytes behind them ---- */

/* The room for each of n strings, at least 1, and their bytes; false with an error: one has a zero
 * byte in it, or they are too large together. */
bool text_cells(Diags *d, Arena *a, Loc loc, size_t n, const Bytes *strings, int64_t *room,
                Bytes *out);
/* The same as an array: one dimension more than `ndim`, of which there are `n` cells. */
bool array_of_text(Diags *d, Arena *a, Loc loc, size_t n, const Bytes *strings, uint32_t ndim,
                   const int64_t *dims, Array *out);
/* String i, up to its first zero byte; how many there are; all with the least room. */
Bytes  array_string(const Array *array, size_t i);
size_t array_strings(const Array *array);
Array  array_text_tight(Arena *a, const Array *array);
/* One code point off the bytes at *p; UINT32_MAX: they are not UTF-8, one byte is taken. */
uint32_t utf8_next(const uint8_t **p, const uint8_t *end);
void     utf8_add(StrBuf *s, uint32_t point);

/* ---- onnx_tensor.c: TensorProto, a constant of a model or a file of its own, .pb ---------------- */

typedef struct {
    const char *key, *value;
} OnnxEntry;
typedef struct {
    PbInts      dims;
    int64_t     data_type;
    PbPacked    float_data, double_data;
    PbInts      int32_data, int64_data, uint64_data;
    PbBlobs     string_data;
    const char *name;
    Bytes       raw_data;
    bool        has_raw;
    PbMsgs      external_data; /* OnnxEntry */
    int64_t     data_location;
} OnnxTensor;

extern const PbMessage onnx_tensor;

enum {
#define ONNX_DTYPE(id, number, code, bits) ONNX_##id = (number),
#include "formats/onnx_dtype.def"
#undef ONNX_DTYPE
};
/* Number and abi.h's name of an element type; false, 0: there is none. */
bool        onnx_dtype_code(int64_t number, uint8_t *code, uint8_t *bits);
int64_t     onnx_dtype_number(uint8_t code, uint8_t bits);
const char *onnx_dtype_text(int64_t number); /* "STRING" */
/* The elements as the message has them, wherever; a view if they are there as bytes. */
Bytes onnx_tensor_data(Arena *a, const OnnxTensor *t);

/* The data are packed, and a view of `file` if they are there as bytes; the name may be "". */
bool  tensor_pb_read(Diags *d, Arena *a, Loc loc, Bytes file, Array *out);
Bytes tensor_pb_write(Arena *a, const Array *array);

/* A value in a file of its own: TensorProto, SequenceProto or OptionalProto of either, as the first
 * two members say before it is read. */
typedef struct {
    bool        optional, sequence;
    bool        given; /* an optional value is there */
    const char *name;
    uint32_t    n; /* elements of a sequence; else 1, or 0 if it is not there */
    Array      *at;
} FileValue;

bool  value_pb_read(Diags *d, Arena *a, Loc loc, Bytes file, FileValue *out);
Bytes value_pb_write(Arena *a, const FileValue *v);

/* ---- npy.c: NumPy's files -------------------------------------------------------------------------
 * Its own types are exact.  Those that ml_dtypes adds, from bf16 to int2, are opaque there: two
 * bytes or one an element. */

/* The array's data is a view of `file` unless it is Fortran-ordered or big-endian.  Names are the
 * .npz's entries without ".npy". */
bool  npy_read(Diags *d, Arena *a, Loc loc, Bytes file, Array *out);
Bytes npy_write(Arena *a, const Array *array);
bool  npz_read(Diags *d, Arena *a, Loc loc, Bytes file, uint32_t *n, Array **out);
Bytes npz_write(Arena *a, uint32_t n, const Array *arrays);

#endif
