/* What the CPU rules share: sizes of the nest, the register tile, fused neighbours. */
#include "schedules/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

int64_t cpu_lanes(const Sched *s)
{
    return s->target->vector_bytes / 4 > 0 ? s->target->vector_bytes / 4 : 1;
}

bool is_block(const Sched *s, int64_t n)
{
    return n >= LEAST_LANES && n <= cpu_lanes(s) && (n & (n - 1)) == 0;
}

int64_t inner_lanes(const Sched *s, int64_t n)
{
    return is_block(s, n) ? n : cpu_lanes(s);
}

void loop_vectors(Sched *s, const char *loop, int64_t cells, int64_t lanes, int64_t least,
                  const char *names)
{
    if (cells == lanes || (cells < lanes && cells >= least))
        try_step(s, "vectorize %%%s", loop);
    else if (cells > lanes && try_step(s, "split %%%s by %lld tail=peel -> %%%so, %%%si", loop,
                                       (long long)lanes, names, names))
        try_step(s, cells % lanes >= least ? "vectorize %%%si" : "vectorize %%%si#0", names);
}

static const Atom *iter_of(const Stmt *block, const char *name)
{
    uint32_t n = block->u.block.nspatial + block->u.block.nreduce + block->u.block.nseq;

    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(block->u.block.iter[i]->name, name))
            return block->u.block.iter[i];
    return NULL;
}

int64_t iter_extent(const Sched *s, const char *block, const char *iter)
{
    const Stmt *b = sched_block(s, block);
    const Atom *a = b ? iter_of(b, iter) : NULL;

    return a ? atom_usual(a) : 0;
}

bool is_symbolic(const Sched *s, const char *block, const char *iter)
{
    const Stmt *b = sched_block(s, block);
    const Atom *a = b ? iter_of(b, iter) : NULL;

    return a && a->below;
}

int64_t iter_unit(const Sched *s, const char *block, const char *iter)
{
    const Stmt *b = sched_block(s, block);
    const Atom *a = b ? iter_of(b, iter) : NULL;
    int64_t     unit = a && a->below ? llabs(a->below->c0) : 0;

    for (uint32_t i = 0; a && a->below && i < a->below->nterms; i++)
        for (int64_t k = llabs(a->below->t[i].coef), rest; k; k = rest)
            rest = unit % k, unit = k;
    return unit > 0 ? unit : 1;
}

int64_t loop_extent(const Sched *s, const char *loop)
{
    int64_t n = 0;

    return sched_loop_extent(s, loop, &n) ? n : 0;
}

bool has_block(const Sched *s, const char *block)
{
    return sched_block(s, block) != NULL;
}

/* How the block of a convolution reads its data, which are what has an iterator `y`, or `x` where
 * there is one row. */
typedef struct {
    const Stmt     *block;
    const LoadData *load; /* NULL: it does not */
    const Atom     *at;   /* an iterator, at `value`; others are where they begin */
    int64_t         value;
} DataLoad;

static void find_load(void *user, const Prim *p)
{
    DataLoad     *d = user;
    const Stmt   *store = d->block->kids[d->block->nkids - 1];
    const Atom   *y = iter_of(d->block, "y"), *x = iter_of(d->block, "x");
    const Buffer *b = p->kind == PRIM_LOAD ? p->u.load.buffer : NULL;

    if (b && b != store->u.store.buffer && y && p->u.load.n >= 4 &&
        (idx_uses(p->u.load.index[2], y) || (x && idx_uses(p->u.load.index[3], x))))
        d->load = &p->u.load;
}

static DataLoad data_load(const Sched *s)
{
    DataLoad d = {.block = sched_block(s, "conv")};

    if (d.block)
        stmt_visit(d.block, &(TirVisit){.user = &d, .prim = find_load});
    return d;
}

const LoadData *conv_data(const Sched *s)
{
    return data_load(s).load;
}

bool conv_is_pointwise(const Sched *s, const ConvSizes *z)
{
    const LoadData *d = conv_data(s);
    const Stmt     *b = sched_block(s, "conv");
    const Atom     *y = iter_of(b, "y"), *x = iter_of(b, "x"), *at[2];
    const Buffer   *to = b->kids[b->nkids - 1]->u.store.buffer;

    return z->kh * z->kw == 1 && !has_block(s, "pad") && d && y && x &&
           idx_is_atom(d->index[2], &at[0]) && idx_is_atom(d->index[3], &at[1]) && at[0] == y &&
           at[1] == x && d->buffer->extent[2] == to->extent[2] &&
           d->buffer->extent[3] == to->extent[3];
}

bool has_halo(const Sched *s)
{
    const Buffer *b = s->f->params[0].buffer;

    return b && b->halo;
}

static int64_t iter_value(void *user, const Atom *a)
{
    const DataLoad *d = user;

    return a == d->at ? d->value : a->lo;
}

/* Blocks of outputs, from the first one on, that read the same channels. */
static int64_t group_blocks(const Sched *s, int64_t o)
{
    DataLoad d = data_load(s);
    IdxEnv   env = {.var = iter_value, .user = &d};
    int64_t  n;

    if (!d.load || !(d.at = iter_of(d.block, "o")))
        return o;
    const Idx *block = d.load->index[1], *lane = d.load->index[d.load->n > 4 ? 4 : 1];
    int64_t    first[] = {idx_eval(block, &env), idx_eval(lane, &env)};
    for (n = 1; n < o; n++) {
        d.value = n;
        if (idx_eval(block, &env) != first[0] || idx_eval(lane, &env) != first[1])
            break;
    }
    return n;
}

GroupRow group_row(const Sched *s, const ConvSizes *z)
{
    DataLoad    d = data_load(s);
    const Atom *x = d.load ? iter_of(d.block, z->line) : NULL,
               *kw = x ? iter_of(d.block, z->kernel_line) : NULL,
               *j = x ? iter_of(d.block, "j") : NULL;
    const Idx *at = x ? d.load->index[strcmp(z->line, "x") ? 2 : 3] : NULL;
    GroupRow   r = {.lanes = inner_lanes(s, iter_extent(s, "conv", "j")),
                    .kw = z->kw,
                    .stride = x ? idx_coef(at, x) : 1,
                    .dilation = kw ? idx_coef(at, kw) : 1};

    if (j && d.load->n > 4 && idx_uses(d.load->index[4], j))
        r.spread = iter_extent(s, "conv", "i");
    r.stride = r.stride > 0 ? r.stride : 1;
    r.dilation = r.dilation > 0 ? r.dilation : 1;
    return r;
}

typedef struct {
    const Buffer *seen[8];
    uint32_t      n, ndim;
} Operands;

/* Values of images are as large as the result: the sums, which it takes the place of, and what is
 * read beside them. */
static void add_operand(void *user, const Prim *p)
{
    Operands     *o = user;
    const Buffer *b = p->kind == PRIM_LOAD ? p->u.load.buffer : NULL;

    if (!b || p->u.load.n != o->ndim || b->scope != SCOPE_ARENA || o->n == COUNT(o->seen))
        return;
    for (uint32_t i = 0; i < o->n; i++)
        if (o->seen[i] == b)
            return;
    o->seen[o->n++] = b;
}

int64_t conv_channels(const ConvSizes *z)
{
    return z->c * (z->i ? z->i : 1);
}

int64_t conv_steps(const ConvSizes *z)
{
    return (z->c ? z->c : 1) * (z->i ? z->i : 1) * z->kh * z->kw;
}

double conv_madds(const ConvSizes *z)
{
    return (double)(z->n * z->y * z->x * z->o) * (double)conv_steps(z);
}

int64_t result_streams(const Sched *s, const char *out, uint32_t ndim)
{
    Operands    reads = {.ndim = ndim};
    const Stmt *b = out ? sched_block(s, out) : NULL;

    if (b)
        stmt_visit(b, &(TirVisit){.user = &reads, .prim = add_operand});
    return reads.n ? reads.n : 1;
}

TileEnd tile_end(const Sched *s, const ConvSizes *z, const char *out)
{
    Machine m = machine_of(s->target);
    double  bytes = (double)(z->n * z->o * z->y * z->x * z->lanes * 4);
    double  streams = (double)result_streams(s, out, 5), vector = (double)(z->lanes * 4);
    Time    moved = moved_time(&m, (streams - 1) * vector, vector, bytes * streams);

    return (TileEnd){.steps = (double)conv_steps(z), .move = time_traffic(time_take_far(&moved))};
}

ConvSizes conv_sizes(const Sched *s)
{
    int64_t   block = iter_extent(s, "conv", "j"), o = iter_extent(s, "conv", "o");
    ConvSizes z = {is_block(s, block) ? block : cpu_lanes(s),
                   iter_extent(s, "conv", "n"),
                   o,
                   iter_extent(s, "conv", "y"),
                   iter_extent(s, "conv", "x"),
                   iter_extent(s, "conv", "c"),
                   iter_extent(s, "conv", "kh"),
                   iter_extent(s, "conv", "kw"),
                   iter_extent(s, "conv", "i"),
                   group_blocks(s, o),
                   "y",
                   "x",
                   "kh",
                   "kw"};

    return z;
}

ConvSizes conv_lines(const Sched *s)
{
    ConvSizes z = conv_sizes(s), t = z;

    if (!z.i || z.x != 1 || z.y <= 1 || is_symbolic(s, "conv", "x") || is_symbolic(s, "conv", "y"))
        return z;
    z.y = t.x, z.x = t.y, z.kh = t.kw, z.kw = t.kh;
    z.row = t.line, z.line = t.row, z.kernel_row = t.kernel_line, z.kernel_line = t.kernel_row;
    return z;
}

int64_t joined_rows(const Machine *m, int64_t y, int64_t x)
{
    int64_t rows = 1;

    while (rows * x < limit_line_pixels(m) && rows < y && y % (rows * 2) == 0)
        rows *= 2;
    if (x <= limit_line_columns(m))
        rows = divisor_upto(y, MOST_LINE / x);
    return rows;
}

int64_t block_work(const Sched *s, const char *block)
{
    const Stmt *b = sched_block(s, block);
    int64_t     work = b != NULL;

    for (uint32_t i = 0; b && i < b->u.block.nspatial + b->u.block.nreduce; i++)
        work *= atom_usual(b->u.block.iter[i]);
    return work;
}

int64_t row_blocks(const Sched *s, int64_t y)
{
    Machine m = machine_of(s->target);
    int64_t blocks = limit_row_blocks(&m);

    while (y % blocks)
        blocks /= 2;
    return blocks;
}

const char *inline_epilogue(Sched *s, const char *anchor)
{
    const char *names[64];
    uint32_t    n = sched_blocks(s, names, COUNT(names)), at = n;

    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(names[i], anchor))
            at = i;
    if (at + 1 >= n)
        return NULL;
    for (uint32_t i = at + 1; i + 1 < n; i++)
        try_step(s, "compute_inline %s", names[i]);
    return names[n - 1];
}

void inline_prologue(Sched *s, const char *anchor)
{
    const char *names[64];
    uint32_t    n = sched_blocks(s, names, COUNT(names));

    for (uint32_t i = 0; i < n && strcmp(names[i], anchor); i++)
        if (strcmp(names[i], "pad") && strcmp(names[i], "panel"))
            try_step(s, "compute_inline %s", names[i]);
}

const char *prepare_anchor(Sched *s, const char *anchor, bool halo)
{
    inline_prologue(s, anchor);
    if (halo)
        try_step(s, "elide_pad pad");
    try_step(s, "fold_init bias -> %s", anchor);
    if (s->target->has_fma)
        try_step(s, "contract %s", anchor); /* integers have none */
    return inline_epilogue(s, anchor);
}

bool is_tiny(const Sched *s, int64_t work)
{
    Machine m = machine_of(s->target);

    return too_short(&m, products_ns(&m, work));
}

static void cell_prim(void *user, const Prim *p)
{
    CellWork *w = user;

    switch (p->kind) {
    case PRIM_LOAD: w->bytes += dtype_bytes(p->dtype); break;
    case PRIM_MATH: w->math++; break;
    case PRIM_DIV: w->divisions++; break;
    case PRIM_INT:
    case PRIM_FLOAT:
    case PRIM_INDEX:
    case PRIM_ADD:
    case PRIM_SUB:
    case PRIM_MUL:
    case PRIM_REM:
    case PRIM_MIN:
    case PRIM_MAX:
    case PRIM_MINNUM:
    case PRIM_MAXNUM:
    case PRIM_FMA:
    case PRIM_INTRIN:
    case PRIM_AND:
    case PRIM_OR:
    case PRIM_XOR:
    case PRIM_SHL:
    case PRIM_SHR:
    case PRIM_NOT:
    case PRIM_EQ:
    case PRIM_NE:
    case PRIM_LT:
    case PRIM_LE:
    case PRIM_SELECT:
    case PRIM_CAST:
    case PRIM_BITS:
    case PRIM_ADDR:
    case PRIM_SYMBOL:
    case PRIM_SIZEOF:
    case PRIM_CASE:
    case PRIM_SPLAT:
    case PRIM_RAMP:
    case PRIM_VEC:
    case PRIM_SHUFFLE: w->others++; break;
    }
}

CellWork cell_work(const Stmt *block)
{
    CellWork w = {0};

    stmt_visit(block, &(TirVisit){.user = &w, .prim = cell_prim});
    return w;
}

static void see_product(void *user, const Prim *p)
{
    *(bool *)user |= p->kind == PRIM_MUL || p->kind == PRIM_FMA || p->kind == PRIM_INTRIN;
}

/* It sums products, whose tiles load little. */
static bool sums_products(const Stmt *block)
{
    bool product = false;

    if (block->u.block.nreduce)
        stmt_visit(block, &(TirVisit){.user = &product, .prim = see_product});
    return product;
}

/* Of all blocks; with `again`, of functions and divisions, and of what sums that are no products
 * load again and again, alone. */
static double cells_ns(const Sched *s, bool again)
{
    const char *names[64];
    uint32_t    n = sched_blocks(s, names, COUNT(names));
    Machine     m = machine_of(s->target);
    double      ns = 0;

    for (uint32_t i = 0; i < n; i++) {
        const Stmt *b = sched_block(s, names[i]);
        CellWork    w = cell_work(b);

        if (again && (!b->u.block.nreduce || sums_products(b)))
            w.bytes = w.others = 0;
        ns += !again && sums_products(b) ? products_ns(&m, block_work(s, names[i]))
                                         : (double)block_work(s, names[i]) * cell_ns(&m, &w);
    }
    return ns;
}

double cpu_cells_ns(const Sched *s)
{
    return cells_ns(s, true);
}

bool is_tiny_kernel(const Sched *s)
{
    Machine m = machine_of(s->target);

    return too_short(&m, cells_ns(s, false));
}
