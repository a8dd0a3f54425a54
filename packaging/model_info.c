/* model_info.c: what a product says about itself, from its bytes alone.
 *
 * `net_info()` returns the address of a constant (include/tvmcc/abi.h).  To call it a library must
 * be loaded, and then a stranger's constructors run; and a library for another machine cannot be.
 * So the constant is read where it lies in the file: pointers are what the relocations there say.
 * Objects get an address for each section, so that all is alike.
 *
 *     relocations, by address:  .. | name toolchain targets | inputs outputs pools weights | ..
 *     constant:       abi struct_bytes ^ three pointers side by side, two numbers before them
 *
 * It is found without symbols, which a library may have lost, by the three pointers; its name is
 * then held against the function `<name>_info`.  Every size is bounded, every address looked up.
 */
#include "packaging/packaging.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_SECTIONS = 1 << 16,
    MAX_POINTERS = 1 << 20,
    MAX_RELOCS = 1 << 24, /* that are looked at */
    MAX_TENSORS = 4096,
    MAX_NDIM = 32,
    MAX_BUCKETS = 512,
    MAX_INFOS = 1024,
    MAX_TRIES = 1024,  /* what looks like a constant, but has no function */
    SECTION_SHIFT = 40 /* distance of sections in objects */
};

typedef struct {
    uint64_t address;
    Bytes    data;
} Part;

typedef struct {
    uint64_t at, value;
} Pointer;

typedef struct {
    Arena        *a;
    const Object *f;
    uint32_t      word;  /* bytes of a pointer */
    uint32_t      tries; /* that are left */
    VEC(Part) parts;     /* of memory, by address */
    VEC(Pointer) pointers;
} Image;

/* The next member of a struct; `bad` sticks. */
typedef struct {
    const Image *im;
    uint64_t     at;
    bool         bad;
} Cursor;

/* ---- memory --------------------------------------------------------------------------------------- */

static uint64_t address_of(const Object *f, uint32_t section)
{
    return f->relocatable ? (uint64_t)(section + 1) << SECTION_SHIFT : f->sections[section].address;
}

static int by_address(const void *x, const void *y)
{
    const Part *a = x, *b = y;

    return (a->address > b->address) - (a->address < b->address);
}

static int by_place(const void *x, const void *y)
{
    const Pointer *a = x, *b = y;

    return (a->at > b->at) - (a->at < b->at);
}

/* What lies from `at` on; empty: nothing does. */
static Bytes memory_at(const Image *im, uint64_t at)
{
    uint32_t low = 0, high = im->parts.n;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        *(im->parts.at[middle].address <= at ? &low : &high) = middle;
    }
    if (low == high || at < im->parts.at[low].address ||
        at - im->parts.at[low].address >= im->parts.at[low].data.n)
        return (Bytes){0};
    at -= im->parts.at[low].address;
    return (Bytes){im->parts.at[low].data.at + at, im->parts.at[low].data.n - at};
}

static uint64_t number(const Image *im, Bytes b, uint32_t bytes)
{
    return object_number(&im->f->target, b.at, bytes);
}

/* 0 where no relocation puts an address: NULL. */
static uint64_t pointer_at(const Image *im, uint64_t at)
{
    Pointer  key = {.at = at};
    Pointer *p = im->pointers.n
                     ? bsearch(&key, im->pointers.at, im->pointers.n, sizeof key, by_place)
                     : NULL;

    return p ? p->value : 0;
}

/* ---- relocations ---------------------------------------------------------------------------------- */

static void add_relocation(Image *im, uint32_t section, ObjectReloc r)
{
    const Object       *f = im->f;
    uint32_t            n = f->relocatable ? f->nsymbols : f->ndynamic;
    const ObjectSymbol *s = f->relocatable ? f->symbols : f->dynamic;
    uint64_t            at = r.at, value = r.addend;
    Bytes               place;

    if (r.kind == RELOC_OTHER)
        return;
    if (f->relocatable)
        at += address_of(f, section);
    if (!r.has_addend && (place = memory_at(im, at)).n >= im->word)
        value += number(im, place, im->word);
    if (r.kind == RELOC_SECTION) {
        if (r.symbol == 0 || r.symbol >= f->nsections)
            return;
        value += address_of(f, (uint32_t)r.symbol);
    }
    if (r.kind == RELOC_SYMBOL) {
        if (r.symbol >= n || s[r.symbol].section == 0 || s[r.symbol].section >= f->nsections)
            return;
        value += s[r.symbol].value;
        if (f->relocatable)
            value += address_of(f, s[r.symbol].section) - f->sections[s[r.symbol].section].address;
    }
    vec_push(im->a, &im->pointers, ((Pointer){at, value}));
}

static void read_relocations(Image *im)
{
    uint32_t left = MAX_RELOCS;

    for (uint32_t i = 1; i < im->f->nsections; i++) {
        const ObjectSection *s = &im->f->sections[i];
        uint32_t             n = reloc_count(im->f, s), of = s->relocs.n ? i : s->info;

        if (im->f->relocatable && of >= im->f->nsections)
            continue;
        for (uint32_t k = 0; k < n && left && im->pointers.n < MAX_POINTERS; k++, left--)
            add_relocation(im, of, reloc_at(im->f, s, k));
    }
    if (im->pointers.n)
        qsort(im->pointers.at, im->pointers.n, sizeof *im->pointers.at, by_place);
}

static void read_image(Image *im)
{
    for (uint32_t i = 1; i < im->f->nsections && i < MAX_SECTIONS; i++) {
        const ObjectSection *s = &im->f->sections[i];

        if (s->flags & SECTION_ALLOC && !(s->flags & SECTION_EXEC) && s->data.n)
            vec_push(im->a, &im->parts, ((Part){address_of(im->f, i), s->data}));
    }
    if (im->parts.n)
        qsort(im->parts.at, im->parts.n, sizeof *im->parts.at, by_address);
    read_relocations(im);
}

/* ---- structs: as in abi.h there is no padding ------------------------------------------------------- */

static uint64_t take(Cursor *c, uint32_t bytes)
{
    Bytes    b = memory_at(c->im, c->at);
    uint64_t value = 0;

    if (b.n < bytes)
        c->bad = true;
    else
        value = number(c->im, b, bytes);
    c->at += bytes;
    return value;
}

static uint64_t take_pointer(Cursor *c)
{
    uint64_t value = pointer_at(c->im, c->at);

    take(c, c->im->word);
    return value;
}

static const char *text_at(Cursor *c, uint64_t at)
{
    Bytes b = memory_at(c->im, at);

    if (b.n && memchr(b.at, 0, b.n))
        return (const char *)b.at;
    c->bad = true;
    return "";
}

/* A list of `n` things of so many bytes must be there. */
static Cursor list_at(Cursor *c, uint64_t at, uint32_t n, uint32_t bytes, uint32_t most)
{
    c->bad |= n > most || (n && memory_at(c->im, at).n / bytes < n);
    return (Cursor){c->im, at, c->bad};
}

static void read_tensor(Cursor *c, void *out)
{
    tvmcc_tensor_info *t = out;
    const Image       *im = c->im;
    uint64_t           name = take_pointer(c), dims = take_pointer(c), layout;
    int64_t           *values;
    uint32_t           scale;
    Cursor             list;

    t->name = text_at(c, name);
    t->bytes = take(c, im->word);
    t->code = (uint8_t)take(c, 1);
    t->bits = (uint8_t)take(c, 1);
    t->lanes = (uint16_t)take(c, 2);
    t->ndim = (uint32_t)take(c, 4);
    t->flags = (uint32_t)take(c, 4);
    t->align = (uint32_t)take(c, 4);
    scale = (uint32_t)take(c, 4);
    memcpy(&t->scale, &scale, sizeof scale);
    t->zero_point = (int32_t)take(c, 4);
    layout = take_pointer(c);
    t->layout = layout ? text_at(c, layout) : NULL;
    t->state_input = take(c, im->word);
    list = list_at(c, dims, t->ndim, 8, MAX_NDIM);
    if (c->bad)
        return;
    t->dims = values = NEW_ARRAY(im->a, int64_t, t->ndim + 1);
    for (uint32_t i = 0; i < t->ndim; i++)
        values[i] = (int64_t)take(&list, 8);
}

static void read_weight(Cursor *c, void *out)
{
    tvmcc_weight_info *w = out;

    w->section = text_at(c, take_pointer(c));
    take_pointer(c);
    w->bytes = take(c, c->im->word);
    w->mode = (uint32_t)take(c, 4);
    w->align = (uint32_t)take(c, 4);
    for (int k = 0; k < 32; k++)
        w->sha256[k] = (uint8_t)take(c, 1);
}

/* `n` structs, each of `bytes` in the file and of `size` here. */
static void *read_all(Cursor *c, uint64_t at, uint32_t n, uint32_t bytes, size_t size,
                      void (*read_one)(Cursor *c, void *out))
{
    Cursor list = list_at(c, at, n, bytes, MAX_TENSORS);
    char  *all;

    if (c->bad)
        return NULL;
    all = arena_array(c->im->a, n + 1, size);
    for (uint32_t i = 0; i < n && !list.bad; i++)
        read_one(&list, all + i * size);
    c->bad |= list.bad;
    return all;
}

/* Names and sizes of the buckets' dimensions; their infos must be among those that were found. */
static void read_buckets(Cursor *c, ModelInfo *m)
{
    const Image *im = c->im;
    uint32_t     n = (uint32_t)take(c, 4), ndims = (uint32_t)take(c, 4);
    uint64_t     infos = take_pointer(c), names = take_pointer(c), sizes = take_pointer(c);
    Cursor       info = list_at(c, infos, n, im->word, MAX_BUCKETS);
    Cursor       name = list_at(c, names, ndims, im->word, MAX_NDIM);
    Cursor       size = list_at(c, sizes, n * ndims, 8, MAX_BUCKETS * MAX_NDIM);
    const char **texts;
    int64_t     *values;

    if (c->bad || !n)
        return;
    texts = NEW_ARRAY(im->a, const char *, ndims + 1);
    values = NEW_ARRAY(im->a, int64_t, n *ndims + 1);
    for (uint32_t i = 0; i < ndims; i++)
        texts[i] = text_at(c, take_pointer(&name));
    for (uint32_t i = 0; i < n * ndims; i++)
        values[i] = (int64_t)take(&size, 8);
    m->info.nbuckets = n;
    m->info.nbucket_dims = ndims;
    m->info.bucket_dims = texts;
    m->info.bucket_sizes = values;
    m->buckets = NEW_ARRAY(im->a, uint64_t, n);
    for (uint32_t i = 0; i < n; i++)
        m->buckets[i] = take_pointer(&info);
}

static bool has_function(const Object *f, Arena *a, const char *name)
{
    const char *want = arena_printf(a, "%s%s_info", f->underscore ? "_" : "", name);

    for (uint32_t i = 0; i < f->nsymbols; i++)
        if (f->symbols[i].section && strcmp(f->symbols[i].name, want) == 0)
            return true;
    return false;
}

static bool read_info(Image *im, uint64_t at, ModelInfo *m)
{
    Cursor            c = {im, at, false};
    tvmcc_model_info *o = &m->info;
    uint64_t          in, out, weights;
    uint32_t          first = im->word == 8 ? 200 : 148, tensor = 24 + 5 * im->word;

    *m = (ModelInfo){.address = at};
    o->abi = (uint32_t)take(&c, 4);
    o->struct_bytes = (uint32_t)take(&c, 4);
    if (o->abi != TVMCC_ABI || o->struct_bytes < first || o->struct_bytes > 4096)
        return false;
    o->name = text_at(&c, take_pointer(&c));
    o->toolchain = text_at(&c, take_pointer(&c));
    o->targets = text_at(&c, take_pointer(&c));
    if (c.bad || strlen(o->name) > 1024 || !im->tries || !has_function(im->f, im->a, o->name)) {
        im->tries -= im->tries != 0;
        return false;
    }
    for (int i = 0; i < 32; i++)
        o->sha256[i] = (uint8_t)take(&c, 1);
    for (int i = 0; i < 32; i++)
        o->build_id[i] = (uint8_t)take(&c, 1);
    o->ninputs = (uint32_t)take(&c, 4);
    o->noutputs = (uint32_t)take(&c, 4);
    o->npools = (uint32_t)take(&c, 4);
    o->nweights = (uint32_t)take(&c, 4);
    in = take_pointer(&c);
    out = take_pointer(&c);
    take_pointer(&c);
    weights = take_pointer(&c);
    o->arena_shared = take(&c, im->word);
    o->arena_private = take(&c, im->word);
    o->arena_align = (uint32_t)take(&c, 4);
    o->device = (uint32_t)take(&c, 4);
    o->state_bytes = take(&c, im->word);
    c.at += 3 * im->word;
    o->inputs = read_all(&c, in, o->ninputs, tensor, sizeof *o->inputs, read_tensor);
    o->outputs = read_all(&c, out, o->noutputs, tensor, sizeof *o->outputs, read_tensor);
    o->weights =
        read_all(&c, weights, o->nweights, 40 + 3 * im->word, sizeof *o->weights, read_weight);
    for (uint32_t i = 0; i < o->ninputs && !c.bad; i++)
        c.bad = o->inputs[i].state_input != 0;
    for (uint32_t i = 0; i < o->noutputs && !c.bad; i++)
        c.bad = o->outputs[i].state_input > o->ninputs;
    if (o->struct_bytes > first)
        read_buckets(&c, m);
    if (o->struct_bytes > first + 8 + 3 * im->word) /* the table is for who runs it */
        o->ntargets = (uint32_t)take(&c, 4);
    o->struct_bytes = sizeof *o;
    o->npools = 0;
    return !c.bad;
}

/* ---- all models of a file --------------------------------------------------------------------------- */

typedef VEC(ModelInfo) Infos; /* by address */

static const ModelInfo *info_at(const Infos *all, uint64_t address)
{
    for (uint32_t i = 0; i < all->n; i++)
        if (all->at[i].address == address)
            return &all->at[i];
    return NULL;
}

/* The one that stands for its model: that for all targets, that with the buckets, or of several
 * processors' the one whose arena does for all. */
static bool is_better(const tvmcc_model_info *x, const tvmcc_model_info *y)
{
    if ((x->ntargets != 0) != (y->ntargets != 0))
        return x->ntargets != 0;
    if ((x->nbuckets != 0) != (y->nbuckets != 0))
        return x->nbuckets != 0;
    return x->arena_shared > y->arena_shared;
}

static bool resolve_buckets(Arena *a, ModelInfo *m, const Infos *all)
{
    const tvmcc_model_info **at = NEW_ARRAY(a, const tvmcc_model_info *, m->info.nbuckets + 1);

    for (uint32_t i = 0; i < m->info.nbuckets; i++) {
        const ModelInfo *bucket = info_at(all, m->buckets[i]);

        if (!bucket)
            return false;
        at[i] = &bucket->info;
    }
    m->info.buckets = at;
    return true;
}

static void find_infos(Arena *a, const Object *f, Infos *all)
{
    Image    im = {.a = a, .f = f, .word = f->target.bits / 8, .tries = MAX_TRIES};
    uint32_t w = im.word;

    read_image(&im);
    for (uint32_t i = 0; i + 2 < im.pointers.n && all->n < MAX_INFOS; i++) {
        uint64_t  at = im.pointers.at[i].at;
        ModelInfo m;

        if (at >= 8 && im.pointers.at[i + 1].at == at + w &&
            im.pointers.at[i + 2].at == at + 2 * w && read_info(&im, at - 8, &m))
            vec_push(a, all, m);
    }
}

bool model_infos(Diags *d, Arena *a, const char *file, Bytes content, ModelInfos *out)
{
    uint32_t before = out->n, n;
    Infos    all = {0};
    Member  *m;
    Object   f;

    if (ar_is_library(content)) {
        if (!ar_members(d, a, file, content, &m, &n))
            return false;
        for (uint32_t i = 0; i < n; i++)
            model_infos(diags_new(a), a, m[i].path, m[i].data, out);
        return out->n > before || diag_error(d, E_PACK, (Loc){.file = file}, "no model is in it");
    }
    if (!object_read(d, a, file, content, &f))
        return false;
    if (f.format == OBJECT_WASM || (f.format != OBJECT_ELF && !f.relocatable)) {
        diag_error(d, E_PACK, (Loc){.file = file}, "what this says of a model cannot be read");
        diag_hint(d, "the metadata of its build (.json) can");
        return false;
    }
    find_infos(a, &f, &all);
    for (uint32_t i = 0; i < all.n; i++) {
        const tvmcc_model_info *info = &all.at[i].info;
        uint32_t                k = before;

        if (!resolve_buckets(a, &all.at[i], &all))
            continue;
        while (k < out->n && strcmp(out->at[k]->name, info->name) != 0)
            k++;
        if (k == out->n)
            vec_push(a, out, info);
        else if (is_better(info, out->at[k]))
            out->at[k] = info;
    }
    return out->n > before || diag_error(d, E_PACK, (Loc){.file = file}, "no model is in it");
}
