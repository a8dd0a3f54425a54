/* Products of four warps (wgmma) in the interpreter, which go on beside the threads that started
 * them: the sums are in their cells once a thread has waited for them, and not before, however
 * quick a device may be.
 *
 * Each thread has a list of the sums that are on their way, in groups that `await products` ends;
 * the cells hold nothing of use meanwhile.  Another product of the same sums goes on from what is
 * on its way.  What products on their way read of shared memory may not be stored to: that is an
 * error, like a race.  Row r of a side is read by thread r of the four warps, or by those that are
 * so many behind.  Used by eval_launch.c. */
#include "ir/tir/eval.h"
#include "ir/tir/intrin.h"

#include <string.h>

typedef struct {
    uint8_t *at; /* of the thread's own memory */
    float    value;
    uint32_t group;
} Sum;

typedef struct {
    uintptr_t piece;
    uint32_t  group;
} Read;

typedef struct {
    VEC(Sum) sums;
    VEC(Read) reads;
    uint32_t group; /* the one that products are added to */
} Thread;

struct Products {
    Thread  *threads;
    uint32_t n, thread; /* that runs */
    Map     *sums;      /* cells of sums that are on their way -> 1 + place in the thread's list */
    Map     *pieces;    /* 16 bytes that are read -> by how many */
};

Products *products_new(Arena *a, uint32_t threads)
{
    Products *x = NEW(a, Products);

    x->threads = NEW_ARRAY(a, Thread, threads);
    x->n = threads;
    x->sums = map_new(a);
    x->pieces = map_new(a);
    return x;
}

void products_of_thread(Products *x, uint32_t thread)
{
    x->thread = thread;
}

static uintptr_t piece_of(const uint8_t *at)
{
    return (uintptr_t)at / WARP_BYTES;
}

static void count_piece(Products *x, uintptr_t piece, intptr_t more)
{
    intptr_t n = (intptr_t)map_get(x->pieces, piece) + more;

    if (n)
        map_put(x->pieces, piece, (void *)n);
    else
        map_del(x->pieces, piece);
}

/* What is on its way for as many groups or longer has arrived. */
static void arrive(Products *x, Thread *t, uint32_t groups)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < t->sums.n; i++) {
        Sum *s = &t->sums.at[i];
        if (s->group + groups >= t->group) {
            map_put(x->sums, PTR_KEY(s->at), (void *)(uintptr_t)(left + 1));
            t->sums.at[left++] = *s;
        } else {
            map_del(x->sums, PTR_KEY(s->at));
            memcpy(s->at, &s->value, sizeof s->value);
        }
    }
    t->sums.n = left;
    left = 0;
    for (uint32_t i = 0; i < t->reads.n; i++) {
        Read *r = &t->reads.at[i];
        if (r->group + groups >= t->group)
            t->reads.at[left++] = *r;
        else
            count_piece(x, r->piece, -1);
    }
    t->reads.n = left;
}

/* Another block: what was still on its way has gone nowhere. */
void products_drop(Products *x)
{
    for (uint32_t i = 0; i < x->n; i++) {
        x->threads[i].group++;
        arrive(x, &x->threads[i], 0);
        x->threads[i].group = 0;
    }
}

bool products_read(const Products *x, const uint8_t *at)
{
    return map_get(x->pieces, piece_of(at)) != NULL;
}

void products_await(Eval *e, uint32_t groups)
{
    Thread *t = &e->products->threads[e->products->thread];

    t->group++;
    arrive(e->products, t, groups);
}

/* Cells of a side from where it begins, which all threads have to say alike. */
static void read_side(Eval *e, const Prim *p, uint32_t first, uint32_t rows, double *out)
{
    const LoadData *l = &p->u.load;
    const DType     t = dtype_lanes(p->dtype, 1);
    const uint32_t  line = GROUP_LINE / dtype_bytes(t), piece = WARP_BYTES / dtype_bytes(t);
    Products       *x = e->products;
    int64_t         begin = 0;

    for (uint32_t i = 0; i < GROUP_THREADS && !e->bad; i++) {
        launch_enter(e, first + i);
        int64_t at = eval_idx(e, l->index[0]);
        if (i && at != begin)
            eval_fail(e, "threads of a group say that '%s' begins in different cells",
                      l->buffer->name);
        begin = at;
    }
    for (uint32_t i = 0; i < rows * line && !e->bad; i++) {
        if (i % line == 0)
            launch_enter(e, first + i / line % GROUP_THREADS);
        const Idx *at = idx_const(e->c->arith, begin + group_cell(t, i));
        uint8_t   *cell = eval_address(e, l->buffer, &at, NULL, 0);
        if (!cell)
            return;
        launch_read(e, l->buffer, cell);
        out[i] = scalar_get(t, cell).f;
        if (i % piece)
            continue;
        Thread *own = &x->threads[x->thread];
        vec_push(e->arena, &own->reads, ((Read){piece_of(cell), own->group}));
        count_piece(x, piece_of(cell), 1);
    }
}

/* One more product of the thread's sum in the cell at `at`. */
static void add_to_sum(Eval *e, uint8_t *at, double product)
{
    Products *x = e->products;
    Thread   *own = &x->threads[x->thread];
    uintptr_t known = (uintptr_t)map_get(x->sums, PTR_KEY(at));
    Sum       s = {.at = at};

    if (known)
        s.value = own->sums.at[known - 1].value;
    else
        memcpy(&s.value, at, sizeof s.value);
    s.value = (float)(product + (double)s.value);
    s.group = own->group;
    if (known) {
        own->sums.at[known - 1] = s;
        return;
    }
    vec_push(e->arena, &own->sums, s);
    map_put(x->sums, PTR_KEY(at), (void *)(uintptr_t)own->sums.n);
    memset(at, 0xff, sizeof s.value);
}

/* What a thread has of the result is what it has of mma.sync's (warp.c). */
void products_start(Eval *e, const StoreData *d, uint32_t first)
{
    const Prim    *p = d->value;
    const Intrin  *row = p->u.intrin;
    const uint32_t units = p->dtype.lanes / UNIT_NUMBERS, steps = (uint32_t)row->extent[2];
    const uint32_t warp = warp_threads(row->warp), columns = row->warp->x;
    double         a[GROUP_ROWS * GROUP_LINE / 2], b[8 * GROUP_UNITS * GROUP_LINE / 2];

    read_side(e, p->kids[0], first, GROUP_ROWS, a);
    read_side(e, p->kids[1], first, 8 * units, b);
    for (uint32_t t = 0; t < GROUP_THREADS && !e->bad; t++) {
        launch_enter(e, first + t);
        for (uint32_t k = 0; k < p->dtype.lanes; k++) {
            uint32_t in = t % warp, e4 = k % UNIT_NUMBERS;
            uint32_t i = t / warp * 16 + in / columns + 8 * (e4 / 2);
            uint32_t j = k / UNIT_NUMBERS * 8 + 2 * (in % columns) + e4 % 2;
            uint8_t *at = eval_address(e, d->buffer, d->index, d->member, k);
            double   sum = 0;
            if (!at)
                return;
            for (uint32_t s = 0; s < steps; s++)
                sum += a[i * steps + s] * b[j * steps + s];
            add_to_sum(e, at, sum);
        }
    }
}
