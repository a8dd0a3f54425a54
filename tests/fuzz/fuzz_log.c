/* Any bytes as a tuning log: what is read prints, and reads again as the same records. */
#include "tune/tune.h"

#include <string.h>

static void print(const TuneLog *log, StrBuf *out)
{
    for (uint32_t i = 0; i < log->records.n; i++)
        tune_record_print(&log->records.at[i], out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena            *a = arena_new(NULL);
    Diags            *d = diags_new(a);
    StrBuf            s = strbuf(a), again = strbuf(a), messages = strbuf(a);
    TuneLog           log = {0}, second = {0};
    const TuneRecord *best;

    tune_log_parse(d, a, "fuzz.log", (Bytes){data, size}, &log);
    diag_print(d, DIAG_TEXT, &messages);
    print(&log, &s);
    if (!tune_log_parse(d, a, "again.log", (Bytes){(const uint8_t *)s.at, s.n}, &second))
        BUG("printed records do not parse:\n%s", s.at);
    print(&second, &again);
    if (s.n != again.n || (s.n && strcmp(s.at, again.at) != 0))
        BUG("records change when they are printed:\n%s\n%s", s.at, again.at);
    tune_log_sort(&log);
    for (uint32_t i = 0; i < log.records.n; i++) {
        const TuneRecord *r = &log.records.at[i];

        if (!tune_log_find(&log, r->workload, r->target, &best) || best->seconds > r->seconds)
            BUG("a record is not found");
    }
    arena_free(a);
    return 0;
}
