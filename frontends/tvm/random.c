/* Random numbers: Threefry 4x64 with 20 rounds, as TVM counts and splits its keys.
 *
 * A key is ten words: 0..3 the key of the cipher, 4 and 5 the splits so far, 7 the counter, 8 and 9
 * a single bit where the next split is noted.  Keys are constants, so that the numbers are, too.
 *
 * Salmon, Moraes, Dror and Shaw: Parallel random numbers: as easy as 1, 2, 3 (2011); Claessen and
 * Palka: Splittable pseudorandom number generators using cryptographic hashing (2013). */
#include "frontends/tvm/tvm.h"

#include <math.h>
#include <string.h>

enum { WORDS = 4, KEY = 10, ROUNDS = 20 };

static uint64_t rotated(uint64_t x, uint32_t by)
{
    return x << by | x >> (64 - by);
}

/* The words of `counter`, each with i more, under that key. */
static void threefry(const uint64_t *key, const uint64_t *counter, uint64_t i, uint64_t *out)
{
    static const uint8_t by[8][2] = {{14, 16}, {52, 57}, {23, 40}, {5, 37},
                                     {25, 33}, {46, 12}, {58, 22}, {32, 32}};
    uint64_t             all[WORDS + 1] = {[WORDS] = 0x1bd11bdaa9fc1a22};

    for (uint32_t j = 0; j < WORDS; j++) {
        all[j] = key[j];
        all[WORDS] ^= key[j];
        out[j] = counter[j] + i;
    }
    for (uint32_t r = 0; r < ROUNDS; r++) {
        uint64_t was;

        if (r % 4 == 0) {
            for (uint32_t j = 0; j < WORDS; j++)
                out[j] += all[(r / 4 + j) % (WORDS + 1)];
            out[WORDS - 1] += r / 4;
        }
        for (uint32_t j = 0; j < 2; j++) {
            out[2 * j] += out[2 * j + 1];
            out[2 * j + 1] = out[2 * j] ^ rotated(out[2 * j + 1], by[r % 8][j]);
        }
        was = out[1], out[1] = out[3], out[3] = was;
    }
}

/* ---- keys ------------------------------------------------------------------------------------------- */

/* The bit moves on by one. */
static void move_bit(const uint64_t *from, uint64_t *to)
{
    uint64_t high = from[8], low = from[9];

    to[8] = high >> 1;
    to[9] = high == 1 ? (uint64_t)1 << 63 : high ? 0 : low >> 1;
}

static bool read_key(const TvNode *n, uint64_t *out)
{
    const Expr *e = n->in[0]->kind == EXPR_CONST ? n->in[0] : build_fold(&n->b, n->in[0]);
    int64_t     cells;

    if (!e) {
        tv_error(n, E_UNSUPPORTED, "its key is no constant");
        diag_hint(n->b.c->diags, "threefry_key(seed) makes one in the module");
        return false;
    }
    if (!type_elems(e->type, &cells) || cells != KEY || !dtype_eq(expr_dtype(e), DT_U64))
        return tv_error(n, E_IMPORT, "a key of %s", type_text(n->b.c, e->type));
    memcpy(out, e->u.constant->data.at, KEY * sizeof *out);
    return true;
}

static const Expr *key_expr(const TvNode *n, const uint64_t *key)
{
    return build_const(&n->b, DT_U64, 1, (int64_t[]){KEY}, key);
}

static const Expr *pair(const TvNode *n, const Expr *x, const Expr *y)
{
    return x && y ? expr_tuple(n->b.c, 2, (const Expr *[]){x, y}, n->b.loc) : NULL;
}

const Expr *tv_threefry_split(TvNode *n)
{
    uint64_t key[KEY], left[KEY], right[KEY];

    if (!read_key(n, key))
        return NULL;
    memcpy(left, key, sizeof left);
    memcpy(right, key, sizeof right);
    if (key[8] || key[9]) {
        right[4] |= key[8], right[5] |= key[9];
        move_bit(key, left);
        move_bit(key, right);
    } else { /* no room is left: a new key */
        threefry(key, key + 4, 0, left);
        memset(left + 4, 0, 6 * sizeof *left);
        left[8] = (uint64_t)1 << 62;
        memcpy(right, left, sizeof right);
        right[4] = (uint64_t)1 << 63;
    }
    return pair(n, key_expr(n, left), key_expr(n, right));
}

/* ---- numbers ---------------------------------------------------------------------------------------- */

/* `count` words, from the key, which goes on behind them. */
static uint64_t *words_of(const TvNode *n, int64_t count, uint64_t *key)
{
    static const uint64_t ones[WORDS] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    uint64_t *out = NEW_ARRAY(n->b.c->arena, uint64_t, (size_t)count + WORDS), was[KEY], *at = out;
    uint64_t  whole = (uint64_t)count / WORDS * WORDS;

    memcpy(was, key, sizeof was);
    if (was[7] >= UINT64_MAX - (uint64_t)count) { /* the counter has no room */
        memset(key + 6, 0, 2 * sizeof *key);
        if (was[8] || was[9]) {
            key[4] |= was[8], key[5] |= was[9];
            move_bit(was, key);
        } else {
            threefry(was, ones, 0, key);
            memset(key + 4, 0, 6 * sizeof *key);
            key[8] = (uint64_t)1 << 63;
        }
    }
    for (uint64_t i = 0; i < whole / WORDS; i++, at += WORDS)
        threefry(key, key + 4, i, at);
    key[7] += whole;
    if (count % WORDS) {
        threefry(key, key + 4, 0, at);
        key[7] += WORDS;
    }
    key[6] = 0;
    return out;
}

static bool read_shape(const TvNode *n, const char *attr, Ints *shape, int64_t *cells)
{
    return tv_ints(n, attr, shape) &&
           build_check_shape(&n->b, dims_of_i64(n->b.c, shape->at, shape->n)) &&
           random_cells(&n->b, shape->n, shape->at, cells);
}

const Expr *tv_threefry_generate(TvNode *n)
{
    uint64_t key[KEY], *words;
    int64_t  cells;
    Ints     shape;

    if (!read_key(n, key) || !read_shape(n, "out_shape", &shape, &cells))
        return NULL;
    words = words_of(n, cells, key);
    return pair(n, key_expr(n, key), build_const(&n->b, DT_U64, shape.n, shape.at, words));
}

/* In [0, 1): the upper bits of the lower half of a word, or of a whole one, behind the point. */
static double unit(uint64_t word, bool wide)
{
    return wide ? (double)(word >> 12) * 0x1p-52 : (double)((uint32_t)word >> 9) * 0x1p-23;
}

static bool read_float(const TvNode *n, DType *t)
{
    *t = DT_F32;
    if (!tv_type(n, "out_dtype", t))
        return false;
    return dtype_eq(*t, DT_F32) || dtype_eq(*t, DT_F64) ||
           tv_error(n, E_UNSUPPORTED, "'out_dtype' is %s", dtype_text(n->b.c, *t)) != NULL;
}

/* What uniform and normal read alike, with `each` words for a cell, and room for the cells. */
typedef struct {
    uint64_t key[KEY], *words;
    int64_t  cells;
    Ints     shape;
    DType    t;
    uint8_t *at;
} Draw;

static bool read_draw(const TvNode *n, int64_t each, Draw *d)
{
    if (!read_float(n, &d->t) || !read_key(n, d->key) ||
        !read_shape(n, "out_shape", &d->shape, &d->cells))
        return false;
    d->words = words_of(n, each * d->cells, d->key);
    d->at = arena_array(n->b.c->arena, (size_t)d->cells + 1, dtype_bytes(d->t));
    return true;
}

/* The key behind it, and cells * scale + offset; these are tensors without dimensions. */
static const Expr *drawn(const TvNode *n, const Draw *d, const Expr *scale, const Expr *offset)
{
    const Build *b = &n->b;
    const Expr  *x = build_const(b, d->t, d->shape.n, d->shape.at, d->at);

    x = build_add(b, build_mul(b, x, build_cast(b, scale, d->t)), build_cast(b, offset, d->t));
    return pair(n, key_expr(n, d->key), x);
}

/* key, low, high */
const Expr *tv_uniform(TvNode *n)
{
    Draw d;

    if (!read_draw(n, 1, &d))
        return NULL;
    for (int64_t i = 0; i < d.cells; i++)
        dtype_put_f(d.t, d.at + i * dtype_bytes(d.t), unit(d.words[i], dtype_eq(d.t, DT_F64)));
    return drawn(n, &d, build_sub(&n->b, n->in[2], n->in[1]), n->in[1]);
}

/* key, mean, scale: by Box and Muller, of the first half of the words and of the second. */
const Expr *tv_normal(TvNode *n)
{
    Draw d;
    bool wide;

    if (!read_draw(n, 2, &d))
        return NULL;
    wide = dtype_eq(d.t, DT_F64);
    for (int64_t i = 0; i < d.cells; i++) {
        double size = 1 - unit(d.words[i], wide), turn = unit(d.words[d.cells + i], wide);

        dtype_put_f(d.t, d.at + i * dtype_bytes(d.t), sqrt(-2 * log(size)) * sin(2 * M_PI * turn));
    }
    return drawn(n, &d, n->in[2], n->in[1]);
}

/* key, probabilities [.., classes]: of each sample the first class up to which they sum up to more
 * than a random number. */
const Expr *tv_multinomial(TvNode *n)
{
    const Build    *b = &n->b;
    ArgReduceAttrs *a = ATTRS(b, ArgReduceAttrs);
    uint32_t        rank = expr_rank(n->in[1]);
    uint64_t        key[KEY], *words;
    int64_t         samples = tv_int(n, "num_samples", 1), cells, dims[MAX_RANK], last = rank - 1;
    float          *at;
    const Expr     *p, *u, *rest;

    if (rank < 1 || rank >= MAX_RANK || samples < 1)
        return tv_error(n, E_IMPORT, "%lld samples of %s", (long long)samples,
                        type_text(b->c, n->in[1]->type));
    for (uint32_t i = 0; i + 1 < rank; i++)
        dims[i] = build_dim(b, n->in[1], i);
    dims[rank - 1] = samples;
    if (!read_key(n, key) || !random_cells(b, rank, dims, &cells))
        return NULL;
    words = words_of(n, cells, key);
    at = NEW_ARRAY(b->c->arena, float, (size_t)cells + 1);
    for (int64_t i = 0; i < cells; i++)
        at[i] = (float)unit(words[i], false);
    p = build_by(b, "maximum", build_cast(b, n->in[1], DT_F32), 0);
    p = build_div(b, p, build_reduce(b, "sum", p, 1, &last, true));
    p = build_expand_dims(b, build_scan(b, "cumsum", p, last, false, false), rank, 1);
    u = build_expand_dims(b, build_const(b, DT_F32, rank, dims, at), last, 1);
    rest = build_sub(b, p, u);
    if (!rest)
        return NULL;
    rest = build_where(b, build_by(b, "greater", rest, 0), rest, build_scalar(b, rest, 1));
    a->axis = last;
    a->dtype = DT_I64;
    return pair(n, key_expr(n, key), build1(b, "argmin", rest, a));
}
