/* What threads gain and lose. */
#include "machine/machine.h"

/* A byte that two threads read costs as much as ten from L3: before the memory is written again the
 * cores must agree, line by line. */
enum { SHARED_BYTE = 10 };

double thread_balance(int64_t n)
{
    double two = (double)n / (double)(2 * ceil_div(n, 2)),
           four = (double)n / (double)(4 * ceil_div(n, 4));

    return 0.8 * two + 0.2 * four;
}

bool even_parts(const Machine *m, int64_t n)
{
    return n >= m->cores && thread_balance(n) >= limit_balance_rows(m);
}

double rows_shared(int64_t blocks)
{
    return blocks % 2 ? 1 / (double)blocks : 0;
}

/* The input of a block that both work on is shared; what is not even keeps one of them waiting. */
double division_cycles(const Machine *m, double weights, double input, int64_t blocks,
                       int64_t panels)
{
    double balance = thread_balance(blocks * panels);
    double bytes =
        SHARED_BYTE * input / 2 * rows_shared(blocks) + (1 - balance) * (weights + input);

    return bytes / (level_rate(m, LEVEL_L2) / 2);
}

double halves_cycles(int64_t n, double cycles, double left)
{
    double first = (double)(n / 2) * cycles + left, second = (double)ceil_div(n, 2) * cycles;

    return 2 * (first > second ? first : second);
}

/* A second thread saves half of the time.  It costs a barrier before and one behind, and lines that
 * change their owner, which is another. */
bool too_short(const Machine *m, double ns)
{
    return m->cores < 2 || ns < 3.0 * (double)m->sync_ns;
}

/* Functions of libm are polynomials of a dozen multiply-adds, a division and some steps more, which
 * wait for each other: 4 cells a nanosecond with AVX2, as measured.  Loads come from L2. */
enum { MATH = 12, DIVISION = 4 };

double cell_ns(const Machine *m, const CellWork *w)
{
    double macs =
        MATH * (double)w->math + DIVISION * (double)w->divisions + 0.25 * (double)w->others;

    return (double)w->bytes / m->stream_ns + macs / m->macs_ns;
}

int64_t cell_operations(const CellWork *w)
{
    return w->bytes / 4 + MATH * w->math + DIVISION * w->divisions + w->others;
}

double products_ns(const Machine *m, int64_t macs)
{
    return (double)macs / m->macs_ns;
}

double work_ns(const Machine *m, double macs, double bytes)
{
    double compute = macs / m->macs_ns, moved = bytes / m->stream_ns;

    return compute > moved ? compute : moved;
}

/* From L2 as in a recurrent cell (state_step_cycles): an LSTM of 64 and 128 units reads 100 bytes a
 * nanosecond (Zen 4). */
double again_ns(const Machine *m, double bytes)
{
    double share[LEVELS];
    Time   t = moved_time(m, bytes, 0, bytes);

    cache_shares(m, bytes, share);
    t.traffic[LEVEL_L2] = weights_cycles(m, share[LEVEL_L2] * bytes);
    return time_traffic(t) / m->ghz;
}

double second_thread_saves(const Machine *m, double ns, int64_t meets)
{
    return ns / 2 - (double)(meets * m->sync_ns);
}

double meeting_ns(const Machine *m, int64_t meets)
{
    return (double)(2 * meets * m->sync_ns);
}

double apart_ns(const Machine *m)
{
    return (double)(m->launch_ns + m->sync_ns);
}

double shared_cycles(const Machine *m, double cycles, double ns)
{
    return cycles / 2 + m->ghz * ns;
}

/* A launch costs a third of a microsecond even if nobody comes, which three per cent of the run
 * must cover, and another microsecond until others have. */
bool worth_launch(const Machine *m, double saved_ns)
{
    return m->cores > 1 && saved_ns > 4.0 * (double)m->launch_ns;
}
