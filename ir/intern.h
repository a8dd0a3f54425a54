/* The intern table of nodes: types, prims and their like exist once, so equal means same pointer.
 *
 * A maker fills a node on its stack, asks `intern_find` for an equal one, and if there is none
 * copies it into the arena and says `intern_add`.  `tag` keeps kinds of nodes apart, so `eq` only
 * ever sees nodes of its own kind; `intern_count` is the number of nodes with that tag, which
 * serves as the next dense id.
 *
 *     const Prim *was = intern_find(c->nodes, NODE_PRIM, hash, prim_eq, &key);
 *     if (was) return was;
 *     key.id = intern_count(c->nodes, NODE_PRIM);
 *     intern_add(c->nodes, NODE_PRIM, hash, copy of key);
 */
#ifndef TVMCC_IR_INTERN_H
#define TVMCC_IR_INTERN_H

#include "base/base.h"

typedef struct Interner Interner;

typedef enum { NODE_PRIM, NODE_TYPE, NODE_DIM, NODE_TAG_COUNT } NodeTag;

Interner *interner_new(Arena *a);
/* The node with this tag and hash for which eq(node, key), or NULL. */
const void *intern_find(const Interner *in, NodeTag tag, uint64_t hash,
                        bool (*eq)(const void *node, const void *key), const void *key);
void        intern_add(Interner *in, NodeTag tag, uint64_t hash, const void *node);
uint32_t    intern_count(const Interner *in, NodeTag tag);

#endif
