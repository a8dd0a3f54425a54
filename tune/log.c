/* Tuning logs as text: a record a line,
 *
 *     1 | 7cd1ffd9..64 hex digits.. | llvm -mtriple=.. -mcpu=.. | 1.25e-05 | split %x by 4 -> %a,
 * %b; ..
 *
 * which are version, workload, target, seconds (`-`: not measured) and steps; of version 2 a rule's
 * name and its decisions, `sched_dense/3: tile=6x2, chunk=48`.  `#` begins a line
 * for people.  Logs are large and come from other machines: lines are bounded, errors name the
 * line, and sorting makes every look-up a binary search. */
#include "tune/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 1 << 16, MAX_RECORDS = 1 << 22, MAX_ERRORS = 20 };

/* ---- reading ------------------------------------------------------------------------------------- */

typedef struct {
    Diags      *d;
    Arena      *a;
    Loc         loc;
    const char *at, *end; /* of the line */
    const char *start;
} Line;

static bool wrong(Line *l, const char *at, const char *what)
{
    l->loc.col = (uint32_t)(at - l->start) + 1;
    return diag_error(l->d, E_LOG, l->loc, "%s", what);
}

static bool blank(char ch)
{
    return ch == ' ' || ch == '\t' || ch == '\r';
}

/* The next column, without the blanks around it; `last`: all that is left. */
static Bytes column(Line *l, bool last)
{
    const char *bar = last ? NULL : memchr(l->at, '|', (size_t)(l->end - l->at));
    const char *from = l->at, *to = bar ? bar : l->end;

    l->at = bar ? bar + 1 : l->end;
    while (from < to && blank(*from))
        from++;
    while (to > from && blank(to[-1]))
        to--;
    return (Bytes){(const uint8_t *)from, (size_t)(to - from)};
}

static const char *text_of(Line *l, Bytes b)
{
    return arena_printf(l->a, "%.*s", (int)b.n, (const char *)b.at);
}

static int digit(uint8_t ch)
{
    return ch >= '0' && ch <= '9' ? ch - '0' : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

static bool parse_hash(Bytes b, Sha256 *out)
{
    for (size_t i = 0; i < 64 && b.n == 64; i += 2) {
        int high = digit(b.at[i]), low = digit(b.at[i + 1]);

        if (high < 0 || low < 0)
            return false;
        out->b[i / 2] = (uint8_t)(high * 16 + low);
    }
    return b.n == 64;
}

static bool parse_seconds(const char *text, double *out)
{
    char *end;

    *out = INFINITY;
    if (strcmp(text, "-") == 0)
        return true;
    *out = strtod(text, &end);
    return !text[strspn(text, "0123456789.eE+-")] && end != text && !*end && *out > 0 &&
           isfinite(*out);
}

static bool parse_record(Line *l, TuneRecord *out)
{
    Bytes       version = column(l, false), hash, target, seconds;
    const char *at;

    if (version.n != 1 || (*version.at != '1' && *version.at != '2'))
        return wrong(l, l->start,
                     version.n && version.at[0] >= '0' && version.at[0] <= '9'
                         ? "records of this version are not known; 1 and 2 are"
                         : "a record begins with its version, 1 or 2");
    hash = column(l, false);
    if (!parse_hash(hash, &out->workload))
        return wrong(l, (const char *)hash.at, "a workload is 64 hex digits in lower case");
    target = column(l, false);
    if (!target.n)
        return wrong(l, (const char *)target.at, "the target is missing");
    out->target = text_of(l, target);
    seconds = column(l, false);
    if (!parse_seconds(text_of(l, seconds), &out->seconds))
        return wrong(l, (const char *)seconds.at, "a time is seconds, such as 1.25e-05, or -");
    out->decided = *version.at == '2';
    if (l->at == l->end && l->end[-1] != '|')
        return wrong(l, l->end, "the steps are missing");
    at = l->at;
    out->steps = text_of(l, column(l, true));
    return !out->decided || strchr(out->steps, ':') ||
           wrong(l, at, "decisions stand behind their rule, such as sched_dense/3: tile=6x2");
}

/* The bytes of a line that are neither text nor blanks; NULL: none. */
static const char *odd_byte(const char *at, const char *end)
{
    for (; at < end; at++) {
        if (((unsigned char)*at < 0x20 && !blank(*at)) || *at == 0x7f)
            return at;
    }
    return NULL;
}

bool tune_log_parse(Diags *d, Arena *a, const char *path, Bytes text, TuneLog *log)
{
    const char *p = text.n ? (const char *)text.at : "", *end = p + text.n, *odd;
    uint32_t    errors = 0;
    Line        l = {.d = d, .a = a, .loc = {path, 0, 1, NULL}};

    log->sorted = false;
    for (; p < end && errors < MAX_ERRORS; p = l.end + 1) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        TuneRecord  r = {.steps = ""};
        bool        ok;

        l.at = l.start = p;
        l.end = nl ? nl : end;
        l.loc.line++;
        l.loc.col = 1;
        r.loc = l.loc;
        while (l.at < l.end && blank(*l.at))
            l.at++;
        if (l.at == l.end || *l.at == '#')
            continue;
        if (l.end - p > LINE_BYTES)
            ok = wrong(&l, p, "a line is longer than 65536 bytes");
        else if ((odd = odd_byte(p, l.end)))
            ok = wrong(&l, odd, "a byte is no text");
        else
            ok = parse_record(&l, &r);
        if (ok && log->records.n == MAX_RECORDS)
            return wrong(&l, p, "there are more than 4194304 records");
        if (ok)
            vec_push(a, &log->records, r);
        errors += !ok;
    }
    return errors == 0;
}

/* ---- order --------------------------------------------------------------------------------------- */

static int by_kernel(const TuneRecord *x, const TuneRecord *y)
{
    int order = memcmp(x->workload.b, y->workload.b, sizeof x->workload.b);

    return order ? order : strcmp(x->target, y->target);
}

static int by_time(const void *a, const void *b)
{
    const TuneRecord *x = a, *y = b;
    int               order = by_kernel(x, y);

    if (order)
        return order;
    if (x->seconds != y->seconds)
        return x->seconds < y->seconds ? -1 : 1;
    if (x->decided != y->decided)
        return x->decided ? 1 : -1;
    return strcmp(x->steps, y->steps); /* so that the order of the files does not matter */
}

void tune_log_sort(TuneLog *log)
{
    uint32_t n = 0;

    if (log->records.n)
        qsort(log->records.at, log->records.n, sizeof *log->records.at, by_time);
    for (uint32_t i = 0; i < log->records.n; i++) {
        if (n == 0 || by_time(&log->records.at[n - 1], &log->records.at[i]) != 0)
            log->records.at[n++] = log->records.at[i];
    }
    log->records.n = n;
    log->sorted = true;
}

uint32_t tune_log_find(const TuneLog *log, Sha256 workload, const char *target,
                       const TuneRecord **best)
{
    TuneRecord key = {.workload = workload, .target = target};
    uint32_t   low = 0, high = log->records.n, n = 0;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (by_kernel(&log->records.at[mid], &key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    *best = log->records.n ? &log->records.at[low] : NULL;
    while (low + n < log->records.n && by_kernel(&log->records.at[low + n], &key) == 0)
        n++;
    return n;
}

void tune_record_print(const TuneRecord *r, StrBuf *out)
{
    char hex[65];

    sha256_hex(r->workload, hex);
    str_printf(out, "%d | %s | %s | ", r->decided ? 2 : 1, hex, r->target);
    if (isfinite(r->seconds))
        str_printf(out, "%.9g", r->seconds);
    else
        str_addc(out, '-');
    str_printf(out, *r->steps ? " | %s\n" : " |\n", r->steps);
}
