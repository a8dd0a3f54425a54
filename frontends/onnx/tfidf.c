/* TfIdfVectorizer: how often runs of words, n-grams, occur in a row.
 *
 *     pool (2 3) (3 5), x 2 3 5 2 3    1 of the first word where x is 2 and what follows is 3: 2, 1
 *
 * Words are numbers; strings become their positions in the pool.  A gram whose words are d apart is
 * counted by comparing x with itself moved by d, from every place at once; behind the row is a
 * number that the pool does not have. */
#include "frontends/onnx/onnx.h"

#include <string.h>

typedef struct {
    uint32_t       n;    /* words of all grams */
    const int64_t *ids;  /* of the words */
    int64_t        none; /* is not among them */
} Pool;

/* Strings by their first place in the pool, from 1 on; 0: they are not there. */
static const Expr *numbered(Node *n, const Expr *x, const OnnxAttr *a, Pool *pool)
{
    const Build *b = &n->b;
    int64_t     *ids = NEW_ARRAY(b->c->arena, int64_t, a->strings.n + 1), last = 2;
    const Expr  *hit, *words;
    PbBlobs      distinct = {0};

    for (uint32_t i = 0; i < a->strings.n; i++) {
        Bytes    w = a->strings.at[i];
        uint32_t k = 0;

        while (k < distinct.n &&
               (distinct.at[k].n != w.n || (w.n && memcmp(distinct.at[k].at, w.at, w.n) != 0)))
            k++;
        if (k == distinct.n)
            vec_push(b->c->arena, &distinct, w);
        ids[i] = k + 1;
    }
    *pool = (Pool){a->strings.n, ids, -1};
    if (!(words = onnx_strings_of(n, distinct.n, distinct.at)))
        return NULL;
    hit = string_equal(b, build_expand_dims(b, x, expr_rank(x) - 1, 1), words);
    words = build_by(b, "add", build_arange(b, idx_const(b->c->arith, distinct.n), DT_I64), 1);
    last = hit ? (int64_t)expr_rank(hit) - 1 : 0;
    return hit ? build_reduce(b, "sum", build_mul(b, build_cast(b, hit, DT_I64), words), 1, &last,
                              false)
               : NULL;
}

static const Expr *read_pool(Node *n, Pool *pool)
{
    const OnnxAttr *a = node_attr(n, "pool_strings");
    bool            text = onnx_is_string(n->im, n->in[0]);
    int64_t         none = 0;
    Ints            v;

    if (text && a && a->strings.n && a->strings.n <= 1 << 16)
        return numbered(n, n->in[0], a, pool);
    if (text || !node_ints(n, "pool_int64s", &v) || !v.n)
        return node_error(n, E_IMPORT, "the pool has no words like those of input 0");
    for (uint32_t i = 0; i < v.n; i++)
        if (v.at[i] == none) {
            none++;
            i = UINT32_MAX; /* look at all again */
        }
    *pool = (Pool){v.n, v.at, none};
    return build_cast(&n->b, n->in[0], DT_I64);
}

/* How often each of `count` grams of `size` words, those from `ids` on, is in a row: [N, count]; x
 * has `span` cells behind each row. */
static const Expr *count_grams(const Build *b, const Expr *x, const Idx *starts, uint32_t size,
                               uint32_t count, const int64_t *ids, int64_t skips)
{
    const Expr *sum = NULL;
    int64_t     along = 1;

    for (int64_t d = 1; d <= (size == 1 ? 1 : skips + 1); d++) {
        const Expr *all = NULL;

        for (uint32_t j = 0; j < size; j++) {
            int64_t    *word = NEW_ARRAY(b->c->arena, int64_t, count + 1);
            const Expr *at, *same;

            for (uint32_t g = 0; g < count; g++)
                word[g] = ids[g * size + j];
            at = build_slice_to(b, x, 1, idx_const(b->c->arith, j * d),
                                idx_addc(b->c->arith, starts, j * d));
            same = at ? build2(b, "equal", build_expand_dims(b, at, 2, 1),
                               build_i64s(b, count, word), NULL)
                      : NULL;
            all = all ? build2(b, "logical_and", all, same, NULL) : same;
        }
        all = all ? build_reduce(b, "sum", build_cast(b, all, DT_F32), 1, &along, false) : NULL;
        sum = sum ? build_add(b, sum, all) : all;
    }
    return sum;
}

/* Columns [N, grams] to their places in the result. */
static const Expr *placed(Node *n, const Expr *columns, uint32_t grams, Ints places, int64_t *width)
{
    const Build *b = &n->b;
    int64_t     *from;

    *width = 0;
    for (uint32_t i = 0; i < grams; i++) {
        if (places.at[i] < 0 || places.at[i] >= 1 << 24)
            return node_error(n, E_IMPORT, "ngram_indexes has %lld", (long long)places.at[i]);
        *width = places.at[i] >= *width ? places.at[i] + 1 : *width;
    }
    from = NEW_ARRAY(b->c->arena, int64_t, (size_t)*width + 1);
    for (int64_t i = 0; i < *width; i++)
        from[i] = grams; /* a column of zeros */
    for (uint32_t i = 0; i < grams; i++) {
        if (from[places.at[i]] != grams)
            return node_error(n, E_UNSUPPORTED, "two n-grams have place %lld",
                              (long long)places.at[i]);
        from[places.at[i]] = i;
    }
    return build_take(b, columns, build_i64s(b, (uint32_t)*width, from), 1);
}

/* [N, grams + 1] */
static const Expr *count_pool(Node *n, const Expr *x, const Pool *pool, Ints begins, Ints places,
                              uint32_t *grams)
{
    const Build *b = &n->b;
    Arith       *A = b->c->arith;
    int64_t     least = node_int(n, "min_gram_length", 1), most = node_int(n, "max_gram_length", 1);
    int64_t     skips = node_int(n, "max_skip_count", 0), span = (most - 1) * (skips + 1) + 1;
    const Idx  *N = expr_form(x, 0), *starts = idx_addc(A, expr_form(x, 1), 1);
    const Idx  *dims[2] = {N, idx_const(A, span)};
    const Expr *behind = build_i64s(b, 1, &pool->none);
    OnnxParts   columns = {0};

    if (least < 1 || most < least || most > begins.n || skips < 0 || skips > 1000)
        return node_error(n, E_IMPORT, "%lld to %lld words, %lld left out, in a pool of up to %u",
                          (long long)least, (long long)most, (long long)skips, begins.n);
    x = build_concat(b, 2, (const Expr *[]){x, build_broadcast_to(b, behind, 2, dims)}, 1);
    for (uint32_t i = 0; i < begins.n; i++) {
        uint32_t size = i + 1;
        int64_t  from = begins.at[i], to = i + 1 < begins.n ? begins.at[i + 1] : pool->n;
        uint32_t count = (uint32_t)((to - from) / size);

        if (from < 0 || to < from || to > pool->n || (to - from) % size)
            return node_error(n, E_IMPORT, "ngram_counts does not fit the pool");
        if (!count)
            continue;
        *grams += count;
        if (*grams > places.n)
            return node_error(n, E_IMPORT, "ngram_indexes has %u places", places.n);
        dims[1] = idx_const(A, count);
        vec_push(b->c->arena, &columns,
                 size < least || size > most
                     ? build_zeros_of(b, DT_F32, 2, dims)
                     : count_grams(b, x, starts, size, count, pool->ids + from, skips));
    }
    dims[1] = idx_const(A, 1);
    vec_push(b->c->arena, &columns, build_zeros_of(b, DT_F32, 2, dims));
    return build_concat(b, columns.n, columns.at, 1);
}

bool convert_tfidf_vectorizer(Node *n)
{
    static const char *const modes[] = {"TF", "IDF", "TFIDF", NULL};
    const Build             *b = &n->b;
    const char              *mode;
    const Expr              *x, *y;
    const double            *weights;
    uint32_t                 count, grams = 0, rank;
    int64_t                  width;
    Pool                     pool;
    Ints                     begins, places;

    if (!node_need_rank(n, 0, 1, 3) || !node_choice(n, "mode", modes, &mode) ||
        !node_numbers(n, "weights", &count, &weights) || !(x = read_pool(n, &pool)))
        return false;
    rank = expr_rank(x);
    if (rank < 1 || rank > 2 || !node_ints(n, "ngram_counts", &begins) ||
        !node_ints(n, "ngram_indexes", &places))
        return node_error(n, E_IMPORT, "it takes rows of words, ngram_counts and ngram_indexes");
    x = rank == 1 ? build_expand_dims(b, x, 0, 1) : x;
    if (!x || !(y = count_pool(n, x, &pool, begins, places, &grams)) ||
        !(y = placed(n, y, grams, places, &width)))
        return false;
    if (*mode == 'I')
        y = build2(b, "minimum", y, build_scalar(b, y, 1), NULL);
    if (count && strcmp(mode, "TF")) {
        float *w = NEW_ARRAY(b->c->arena, float, (size_t)width + 1);

        if (count < grams)
            return node_error(n, E_IMPORT, "%u weights for %u n-grams", count, grams);
        for (uint32_t i = 0; i < grams; i++)
            w[places.at[i]] = (float)weights[i];
        y = build_mul(b, y, build_const(b, DT_F32, 1, &width, w));
    }
    return y && node_done(n, rank == 1 ? build_reshape_to(b, y, 1, expr_forms(y).at + 1) : y);
}
