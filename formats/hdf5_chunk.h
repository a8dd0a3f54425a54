/* What the indices of chunks share: hdf5_chunk.c, hdf5_array.c. */
#ifndef TVMCC_FORMATS_HDF5_CHUNK_H
#define TVMCC_FORMATS_HDF5_CHUNK_H

#include "formats/hdf5.h"

typedef struct {
    const H5Type  *type;
    const H5Space *space;
    uint32_t       rank, nfilters;
    uint8_t        filters[8];
    uint64_t       dims[ARRAY_MAX_DIMS], bytes; /* of a chunk, unpacked */
    uint64_t       grid[ARRAY_MAX_DIMS], all;   /* chunks along each dimension, in all */
    uint32_t       grows;                       /* bits of the dimensions without an end */
    bool           plain_edges;                 /* chunks over the edge are not packed */
    uint8_t       *out;
} H5Chunks;

/* The cells of a chunk to where they are in the whole; packed: its bytes in the file. */
bool h5_put_chunk(H5File *f, const H5Chunks *k, const uint64_t *place, uint64_t address,
                  uint64_t packed, uint32_t mask);
/* Where chunk `i` begins; growing_first: the dimension that grows is the slowest. */
void h5_chunk_place(const H5Chunks *k, uint64_t i, bool growing_first, uint64_t *place);
bool h5_fixed_array(H5File *f, uint64_t address, const H5Chunks *k);
bool h5_extensible_array(H5File *f, uint64_t address, const H5Chunks *k);

#endif
