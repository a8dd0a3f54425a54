/* What tiles of plain rows take: sums whose numbers come one by one, those of first layers, whose
 * channels are not blocks, and of depthwise convolutions, whose channels are not added up.
 *
 * Neighbouring pixels read the same numbers.  Where the columns of the kernel are written out, each
 * is loaded once and stays in a register until the last column that wants it, if there is room. */
#include "schedules/cpu/cpu.h"

/* Pixel p, at column k of the kernel, reads a number that no pixel before it has read. */
static bool is_new(const GroupRow *r, int64_t p, int64_t k)
{
    for (int64_t before = 1; before <= p; before++) {
        int64_t d = before * r->stride + k * r->dilation;

        if (d % r->dilation == 0 && d / r->dilation < r->kw)
            return false;
    }
    return true;
}

int64_t row_numbers(const GroupRow *r, int64_t n)
{
    int64_t all = 0;

    for (int64_t p = 0; p < n; p++)
        for (int64_t k = 0; k < r->kw; k++)
            all += is_new(r, p, k);
    return all;
}

/* Columns apart at which pixels read the same number. */
static int64_t columns_apart(const GroupRow *r)
{
    int64_t d = r->stride;

    while (d % r->dilation)
        d += r->stride;
    return d / r->dilation;
}

/* Numbers that wait for a later column, at most: those that n pixels share, of as many columns as
 * lie between; where the next column is the one, LLVM loads its first number early. */
static int64_t row_held(const GroupRow *r, int64_t n)
{
    int64_t apart = columns_apart(r), later = r->kw - apart;
    int64_t shared = n - apart * r->dilation / r->stride;

    return later < 1 || shared < 1 ? 0 : (apart < later ? apart : later) * shared + (apart == 1);
}

static PlainRow row_of(const Machine *m, const PlainWork *w, RegTile t, bool written)
{
    PlainRow r = {.lanes = w->row.lanes,
                  .columns = w->row.kw,
                  .rows = w->rows,
                  .numbers = written ? row_numbers(&w->row, t.pixels) : t.pixels * w->row.kw,
                  .held = written ? row_held(&w->row, t.pixels) : 0,
                  .written = written};

    if (!r.held && !(m->fma_mem_splat && t.nv == 1))
        r.held = 1;
    return r;
}

static double tile_cycles(const Machine *m, const PlainWork *w, RegTile t, bool written)
{
    PlainRow row = row_of(m, w, t, written);
    double   steps = (double)(w->rows * w->row.kw), sums = (double)(t.pixels * t.nv);
    double   weights = steps * (double)(t.nv * w->row.lanes * 4);
    double   compute = (double)w->rows * plain_row_cycles(m, &row, t);
    Time     all = time_beside(time_compute(compute), moved_time(m, weights, 0, weights));

    return time_cycles(m, all) + tile_end_cycles(m, compute, sums, w->move);
}

double plain_line_cycles(const Machine *m, const PlainWork *w, RegTile t, bool written)
{
    int64_t tiles = ceil_div(w->line, t.pixels), q = w->line / tiles, more = w->line % tiles;
    double  low = (double)(tiles - more) * tile_cycles(m, w, (RegTile){q, t.nv}, written);

    return more ? low + (double)more * tile_cycles(m, w, (RegTile){q + 1, t.nv}, written) : low;
}

bool plain_written(const Machine *m, const PlainWork *w, RegTile t)
{
    int64_t code = (w->joined ? w->line : t.pixels) * t.nv * w->row.kw;

    return w->row.kw > 1 && code <= limit_code_madds(m) &&
           limit_columns_price(m) * plain_line_cycles(m, w, t, true) <=
               plain_line_cycles(m, w, t, false);
}
