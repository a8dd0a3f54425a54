/* What the files of the HDF5 reader share.
 *
 *   hdf5.c         the superblock, paths, attributes and datasets by name
 *   hdf5_header.c  object headers and their messages
 *   hdf5_type.c    types and shapes of cells, and the cells themselves
 *   hdf5_group.c   links: of old groups, in messages, and in dense storage
 *   hdf5_heap.c    global heaps (strings) and fractal heaps (dense storage)
 *   hdf5_tree.c    B-trees of both versions
 *   hdf5_chunk.c   datasets in chunks: their indices and filters
 *   hdf5_array.c   .. of which the addresses are in arrays
 *
 * An HDF5 file is a tree of groups.  Each object, a group or a dataset, has a header: a list of
 * messages that say its type, shape, attributes, links, and where its cells are.  Addresses count
 * from the superblock.  Nothing is trusted: what is read is a window of the file that was checked,
 * and how many structures are visited in all is bounded by the size of the file, so that trees and
 * lists that lead back to themselves end.  Checksums of the structures are not looked at; of cells
 * they are (fletcher32). */
#ifndef TVMCC_FORMATS_HDF5_H
#define TVMCC_FORMATS_HDF5_H

#include "formats/formats.h"

#define H5_NOWHERE UINT64_MAX /* an address that is not set */

struct H5File {
    Diags      *diags;
    Arena      *arena;
    Loc         loc;
    Bytes       file;           /* from the superblock on */
    uint32_t    offset, length; /* bytes of an address, and of a length */
    uint64_t    root;
    bool        failed;
    uint64_t    steps, bytes; /* structures that may still be visited, bytes that may be made */
    Map        *headers;      /* address -> H5Header */
    Map        *links;        /* address of a group -> H5Links */
    const char *object;       /* that is read now, for messages */
};

/* Records an error of the object that is read; false. */
bool h5_bad(H5File *f, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool h5_unsupported(H5File *f, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The bytes there; false with an error: they are not all in the file. */
bool h5_window(H5File *f, uint64_t address, uint64_t bytes, Reader *out);
/* From that address to the end of the file, behind these four letters, of which it is one step. */
bool h5_block(H5File *f, uint64_t address, const char *letters, Reader *out);
bool h5_step(H5File *f);
/* Room for so many bytes that the file makes; NULL with an error. */
uint8_t *h5_make(H5File *f, uint64_t bytes);
uint64_t h5_number(Reader *r, uint32_t bytes);   /* little-endian, up to 8 */
uint64_t h5_address(const H5File *f, Reader *r); /* H5_NOWHERE: it is not set */
uint64_t h5_length(const H5File *f, Reader *r);
uint32_t h5_width(uint64_t most); /* bytes of numbers up to that */

/* ---- hdf5_header.c ------------------------------------------------------------------------------- */

enum {
    H5_SPACE = 0x01,
    H5_LINK_INFO = 0x02,
    H5_DATATYPE = 0x03,
    H5_FILL_OLD = 0x04,
    H5_FILL = 0x05,
    H5_LINK = 0x06,
    H5_EXTERNAL = 0x07,
    H5_LAYOUT = 0x08,
    H5_FILTERS = 0x0b,
    H5_ATTRIBUTE = 0x0c,
    H5_CONTINUED = 0x10,
    H5_SYMBOLS = 0x11,
    H5_ATTRIBUTE_INFO = 0x15
};
typedef struct {
    uint32_t type;
    bool     shared; /* the data say where it is */
    Bytes    data;
} H5Message;
typedef VEC(H5Message) H5Header;

const H5Header *h5_header(H5File *f, uint64_t address); /* NULL with an error */
/* The first message of that type from *from on, which is set behind it; false: none is left. */
bool h5_message(H5File *f, const H5Header *h, uint32_t type, uint32_t *from, Bytes *out);
/* The only one; false: there is none, or with an error. */
bool h5_only(H5File *f, const H5Header *h, uint32_t type, Bytes *out);
bool h5_shared(H5File *f, uint32_t type, Bytes reference, Bytes *out);

/* ---- hdf5_type.c --------------------------------------------------------------------------------- */

typedef struct {
    H5Kind   kind;
    uint32_t size; /* bytes of a cell in the file */
    bool     big;  /* the first byte is the highest */
    bool     heap; /* text that lies in a global heap */
    char     pad;  /* behind text of one size: NUL or ' ' */
} H5Type;
typedef struct {
    uint32_t ndim;
    uint64_t cells, dims[ARRAY_MAX_DIMS], most[ARRAY_MAX_DIMS]; /* most: UINT64_MAX no limit */
} H5Space;

bool h5_type(H5File *f, Bytes message, H5Type *out);
bool h5_space(H5File *f, Bytes message, H5Space *out);
bool h5_space_bytes(H5File *f, const H5Space *s, const H5Type *t, uint64_t *out);
/* Cells as they lie in the file. */
bool h5_value(H5File *f, const H5Type *t, const H5Space *s, Bytes raw, H5Value *out);

/* ---- hdf5_heap.c --------------------------------------------------------------------------------- */

/* Object `index` of the global heap there. */
bool h5_global(H5File *f, uint64_t address, uint32_t index, Bytes *out);

typedef struct {
    uint32_t id_bytes, width, start_rows, rows, offset_bytes, length_bytes, huge_bytes;
    uint64_t start, most_direct, root, huge;
    bool     filtered;
} H5Heap;
bool h5_heap(H5File *f, uint64_t address, H5Heap *out);
bool h5_heap_object(H5File *f, const H5Heap *h, Bytes id, Bytes *out);

/* ---- hdf5_tree.c --------------------------------------------------------------------------------- */

/* Called for each record, or each leaf's child with its key; false ends it. */
typedef bool H5Visit(H5File *f, void *user, Bytes record, uint64_t child);

/* Version 1: keys of so many bytes. */
bool h5_tree1(H5File *f, uint64_t address, uint32_t type, uint32_t key, H5Visit *fn, void *user);
/* Version 2; the record's size is that of `record`, its type is looked at by the caller. */
bool h5_tree2(H5File *f, uint64_t address, uint32_t *type, H5Visit *fn, void *user);

/* ---- hdf5_group.c -------------------------------------------------------------------------------- */

typedef struct {
    const char *name;
    uint64_t    address; /* H5_NOWHERE: not in this file, or by another name */
} H5LinkTo;
typedef struct {
    VEC(H5LinkTo) all;
    Map *index; /* hash of the name -> H5LinkTo */
} H5Links;

const H5Links *h5_links(H5File *f, uint64_t address); /* NULL with an error */

/* ---- hdf5_chunk.c -------------------------------------------------------------------------------- */

/* The layout message of a dataset in chunks: its cells together. */
bool h5_chunks(H5File *f, const H5Header *h, Bytes layout, const H5Type *t, const H5Space *s,
               Bytes *out);
/* What cells are that were never written; the bytes of one, or none: zeros. */
bool h5_fill(H5File *f, const H5Header *h, const H5Type *t, uint8_t *at, uint64_t cells);

#endif
