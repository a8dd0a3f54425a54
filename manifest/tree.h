/* Inside manifest/: the tree of a YAML text, and the schema as tables. */
#ifndef TVMCC_MANIFEST_TREE_H
#define TVMCC_MANIFEST_TREE_H

#include "manifest/manifest.h"

/* ---- tree.c: text to tree ---------------------------------------------------------------------- */

typedef enum { NODE_SCALAR, NODE_LIST, NODE_MAP, NODE_ALIAS } NodeKind;

typedef struct Node Node;
struct Node {
    NodeKind           kind;
    bool               plain, flow; /* a scalar without quotes; a list or map in brackets */
    bool               block;       /* a scalar of the form | or > */
    Loc                loc;
    size_t             start, end; /* bytes of the text, without anchor and what follows */
    size_t             outer;      /* where its anchor begins, else `start` */
    const char        *anchor;     /* its own, or the one an alias names */
    const char        *text;       /* of a scalar */
    uint32_t           nkids;      /* of a map: keys and values in turn */
    const Node *const *kids;
    const Node        *target;   /* of an alias */
    uint32_t           expanded; /* nodes with aliases written out */
};

/* What an alias stands for, else the node itself. */
static inline const Node *node_of(const Node *n)
{
    return n->kind == NODE_ALIAS ? n->target : n;
}

enum {
    TREE_BYTES = 1 << 20, /* of a file */
    TREE_DEPTH = 40,
    TREE_NODES = 100000, /* with aliases written out, so that ten lines cannot become a million */
};

/* The byte that begins each line of a text, and the line (from 0) of a byte. */
typedef VEC(size_t) Lines;
void     lines_index(Arena *a, Bytes text, Lines *lines);
uint32_t lines_find(const Lines *lines, size_t byte);

/* NULL after errors.  `text` is shown below messages, so it must live as long as `d`. */
const Node *tree_parse(Diags *d, Arena *a, Strings *names, const char *path, Bytes text);

/* ---- schema.c: the table ------------------------------------------------------------------------ */

typedef enum {
    KIND_TEXT,
    KIND_CHOICE,
    KIND_PATH,
    KIND_REF,
    KIND_BOOL,
    KIND_INT,
    KIND_SIZE,
    KIND_REAL,
    KIND_SHAPE,
    KIND_TEXTS,
    KIND_CHOICES,
    KIND_PATHS,
    KIND_REFS,
    KIND_INTS,
    KIND_REALS,
    KIND_TABLE,
    KIND_ONE,
    KIND_MANY,
    KIND_MAP,
    KIND_LATER, /* known, and refused */
} FieldKind;

typedef struct Record Record;

typedef struct {
    const char *key;
    FieldKind   kind;
    const char *arg;             /* as schema.def says; NULL */
    const Record *(*type)(void); /* of ONE, MANY and MAP */
    bool        required;
    size_t      offset; /* in the record's struct */
    const char *help;   /* of LATER: why */
} Field;

struct Record {
    const char *const *head; /* name of the struct, shorthand, about */
    const Field       *fields;
    uint32_t           n;
    size_t             size;
};

const Record *schema_root(void);
const Field  *record_field(const Record *r, const char *key);        /* NULL: none */
const char   *record_shorthand(const Record *r);                     /* a key, or NULL */
const char   *choices_text(Arena *a, const char *choices, bool all); /* "'a', 'b' or 'c'" */
void          int_range(const Field *f, int64_t *low, int64_t *high);

/* What all values and records begin with. */
typedef struct {
    bool given;
    Loc  loc;
} ManAny;

/* All lists and maps. */
typedef struct {
    bool     given;
    Loc      loc;
    void    *at;
    uint32_t n;
} ManSeq;

/* All records. */
typedef struct {
    bool        given;
    Loc         loc;
    const char *key;
} ManRecord;

/* ---- value.c: scalars of a tree as typed values; false after an error ---------------------------- */

typedef struct {
    Diags      *d;
    Arena      *a;
    Strings    *names;
    const char *folder;      /* of the file that is read, with '/' behind; "" for this folder */
    bool        substitutes; /* ${model} may stand here */
} Values;

bool value_text(const Values *v, const Field *f, const Node *n, ManText *out);
bool value_bool(const Values *v, const Field *f, const Node *n, ManBool *out);
bool value_int(const Values *v, const Field *f, const Node *n, ManInt *out);
bool value_size(const Values *v, const Field *f, const Node *n, ManInt *out);
bool value_real(const Values *v, const Field *f, const Node *n, ManReal *out);
bool value_extent(const Values *v, const Field *f, const Node *n, ManExtent *out);
/* A key of a mapping whose keys are free. */
bool value_key(const Values *v, const Node *n);
bool name_ok(const char *text); /* of hosts, targets, pairs, models, bundles */

/* ---- target.c -------------------------------------------------------------------------------------- */

/* What a target's kind, or the first word of its text, asks for. */
typedef enum { TARGET_CPU, TARGET_DEVICE, TARGET_SOURCE } TargetClass;
TargetClass target_class(const ManTarget *t);
const char *target_word(Diags *d, const ManTarget *t); /* that kind */

/* ---- refs.c ---------------------------------------------------------------------------------------- */

typedef struct {
    const char *map; /* "hosts" */
    ManText     name;
} Ref;

typedef VEC(Ref) Refs;

/* Names point at entries, and, if `fit`, entries fit together. */
void refs_check(Diags *d, Arena *a, const Manifest *m, const Refs *refs, bool fit);

#endif
