/* Runs golden tests: one file says how to run, the input, and what must come out.
 *
 *     # tvmcc opt --passes=fold_constant %s
 *     fn @main() { add(1, 2) }
 *     ----
 *     fn @main() { 3 }
 *
 * The lines at the top that begin with '#' are
 *
 *     # tvmcc <arguments>     a shell command; several run in order, their output adds up
 *     # passes: <list>        tvmcc opt --passes=<list> %s, and then: what was printed, parsed and
 *                             printed again, is the same
 *     # file: <name>          what the input file is called, instead of `input`
 *     # anything else         a remark
 *
 * %s stands for the input file and %d for the folder of the test.  Commands run in an empty folder
 * of their own.  Compared is stdout, then stderr, then `[exit N]` unless 0, or `[signal N]`.
 *
 *     run [--bless] --tvmcc <driver> <file or folder>...
 *
 * A folder means all its *.test files.  --bless writes what came out into the files.
 */
#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 120, DIFF_LINES = 2000, CONTEXT = 3 };

typedef struct {
    Arena      *arena;
    Diags      *diags;
    const char *driver; /* absolute */
    const char *temporary;
    bool        bless;
    uint32_t    passed, failed;
} Runner;

typedef struct {
    const char *path, *folder; /* the folder is absolute */
    const char *name;          /* of the input file */
    VEC(const char *) commands;
    bool  again; /* print, parse, print: the same */
    Bytes head, input, expected;
} Test;

/* ---- reading a test -------------------------------------------------------------------------- */

static const char *text_of(Arena *a, Bytes b)
{
    StrBuf s = strbuf(a);

    str_addn(&s, (const char *)b.at, b.n);
    return s.at;
}

/* Takes the next line, with its newline, off `rest`. */
static Bytes next_line(Bytes *rest)
{
    const uint8_t *nl = rest->n ? memchr(rest->at, '\n', rest->n) : NULL;
    Bytes          line = {rest->at, nl ? (size_t)(nl - rest->at) + 1 : rest->n};

    rest->at += line.n;
    rest->n -= line.n;
    return line;
}

static bool line_is(Bytes line, const char *text)
{
    size_t n = strlen(text);

    return line.n >= n && memcmp(line.at, text, n) == 0 &&
           (line.n == n || (line.n == n + 1 && line.at[n] == '\n'));
}

static void add_header_line(Runner *r, Test *t, Bytes line)
{
    char  *text = (char *)text_of(r->arena, line);
    size_t n = strlen(text);

    if (n && text[n - 1] == '\n')
        text[n - 1] = 0;
    text += strspn(text, "# ");
    if (str_starts(text, "tvmcc ") || strcmp(text, "tvmcc") == 0) {
        vec_push(r->arena, &t->commands, text);
    } else if (str_starts(text, "passes: ")) {
        text = arena_printf(r->arena, "tvmcc opt --passes=%s %%s", text + 8);
        vec_push(r->arena, &t->commands, text);
        t->again = true;
    } else if (str_starts(text, "file: ")) {
        t->name = text + 6;
    }
}

static bool read_test(Runner *r, Test *t)
{
    Bytes all, rest, line;

    if (!file_read(r->diags, r->arena, t->path, &all))
        return false;
    t->name = "input";
    rest = all;
    while (rest.n && *rest.at == '#') {
        line = next_line(&rest);
        add_header_line(r, t, line);
    }
    t->head = (Bytes){all.at, (size_t)(rest.at - all.at)};
    t->input = (Bytes){rest.at, 0};
    while (rest.n) {
        line = next_line(&rest);
        if (line_is(line, "----")) {
            t->expected = rest;
            if (t->commands.n)
                return true;
            break;
        }
        t->input.n += line.n;
    }
    return diag_error(r->diags, E_USAGE, (Loc){t->path, 1, 1, NULL}, "%s",
                      t->commands.n ? "there is no line ----" : "there is no line '# tvmcc ...'");
}

/* ---- running it ------------------------------------------------------------------------------ */

static const char *substitute(Arena *a, const char *text, const char *from, const char *to)
{
    StrBuf      s = strbuf(a);
    const char *p;

    while ((p = strstr(text, from))) {
        str_addn(&s, text, (size_t)(p - text));
        str_add(&s, to);
        text = p + strlen(from);
    }
    str_add(&s, text);
    return s.at;
}

static NORETURN void child(const Runner *r, const char *command, const char *work)
{
    int in = open("/dev/null", O_RDONLY);
    int out =
        open(arena_printf(r->arena, "%s/out", r->temporary), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int err =
        open(arena_printf(r->arena, "%s/err", r->temporary), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    char folder[4096];

    snprintf(folder, sizeof folder, "%s", r->driver);
    *strrchr(folder, '/') = 0;
    if (in < 0 || out < 0 || err < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0 ||
        chdir(work) != 0)
        _exit(126);
    setenv("PATH", arena_printf(r->arena, "%s:%s", folder, getenv("PATH")), 1);
    setenv("LC_ALL", "C", 1);
    if (!strpbrk(command, "|&;<>")) /* else a signal would end the shell's child only */
        command = arena_printf(r->arena, "exec %s", command);
    alarm(SECONDS);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(126);
}

/* Runs one command and adds what it said to `said`. */
static bool run_command(Runner *r, const char *command, const char *work, StrBuf *said)
{
    pid_t pid = fork();
    int   status;
    Bytes out, err;

    if (pid == 0)
        child(r, command, work);
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return diag_error(r->diags, E_IO, NO_LOC, "cannot run: %s", strerror(errno));
    if (!file_read(r->diags, r->arena, arena_printf(r->arena, "%s/out", r->temporary), &out) ||
        !file_read(r->diags, r->arena, arena_printf(r->arena, "%s/err", r->temporary), &err))
        return false;
    str_addn(said, (const char *)out.at, out.n);
    str_addn(said, (const char *)err.at, err.n);
    if (said->n && said->at[said->n - 1] != '\n')
        str_addc(said, '\n');
    if (WIFSIGNALED(status))
        str_printf(said, "[signal %d]\n", WTERMSIG(status));
    else if (WEXITSTATUS(status))
        str_printf(said, "[exit %d]\n", WEXITSTATUS(status));
    return true;
}

static bool run_test(Runner *r, const Test *t, StrBuf *said)
{
    Arena      *a = r->arena;
    const char *work = arena_printf(a, "%s/work", r->temporary);

    if (system(arena_printf(a, "rm -rf '%s' && mkdir '%s'", work, work)) != 0 ||
        !file_write(r->diags, arena_printf(a, "%s/%s", work, t->name), t->input))
        return false;
    for (uint32_t i = 0; i < t->commands.n; i++) {
        const char *command = substitute(a, t->commands.at[i], "%s", t->name);

        if (!run_command(r, substitute(a, command, "%d", t->folder), work, said))
            return false;
    }
    if (t->again && said->n && !strstr(said->at, "[exit ") && !strstr(said->at, "[signal ")) {
        StrBuf twice = strbuf(a);
        Bytes  once = {(const uint8_t *)said->at, said->n};

        if (!file_write(r->diags, arena_printf(a, "%s/again", work), once) ||
            !run_command(r, "tvmcc opt again", work, &twice))
            return false;
        if (strcmp(said->at, twice.at) != 0)
            str_printf(said, "[printed again it is different]\n%s", twice.at);
    }
    said->at = (char *)substitute(a, said->at, t->folder, "%d");
    said->n = strlen(said->at);
    return true;
}

/* ---- showing the difference ------------------------------------------------------------------ */

typedef VEC(Bytes) Lines;

static Lines lines_of(Arena *a, Bytes text)
{
    Lines lines = {0};

    while (text.n) {
        Bytes line = next_line(&text);

        vec_push(a, &lines, line);
    }
    return lines;
}

static bool same_line(Bytes a, Bytes b)
{
    return a.n == b.n && memcmp(a.at, b.at, a.n) == 0;
}

static void print_line(char mark, Bytes line)
{
    printf("%c %.*s%s", mark, (int)line.n, (const char *)line.at,
           line.n && line.at[line.n - 1] == '\n' ? "" : "\n");
}

/* Longest common subsequence; long[i][j] is its length from lines i and j on. */
static void print_diff(Arena *a, Bytes expected, Bytes got)
{
    Lines     x = lines_of(a, expected), y = lines_of(a, got);
    uint16_t *longest;
    uint32_t  w = y.n + 1, quiet = CONTEXT;

    if (x.n > DIFF_LINES || y.n > DIFF_LINES) {
        printf("  %u lines instead of %u\n", y.n, x.n);
        return;
    }
    longest = arena_array(a, (size_t)(x.n + 1) * w, sizeof *longest);
    for (uint32_t i = x.n; i-- > 0;) {
        for (uint32_t j = y.n; j-- > 0;) {
            uint16_t down = longest[(i + 1) * w + j], right = longest[i * w + j + 1];

            longest[i * w + j] = same_line(x.at[i], y.at[j])
                                     ? (uint16_t)(longest[(i + 1) * w + j + 1] + 1)
                                 : down > right ? down
                                                : right;
        }
    }
    for (uint32_t i = 0, j = 0; i < x.n || j < y.n;) {
        if (i < x.n && j < y.n && same_line(x.at[i], y.at[j])) {
            if (quiet++ < CONTEXT)
                print_line(' ', x.at[i]);
            i++, j++;
        } else if (i < x.n && (j == y.n || longest[(i + 1) * w + j] >= longest[i * w + j + 1])) {
            if (quiet > CONTEXT)
                printf("@@ line %u\n", i + 1);
            print_line('-', x.at[i++]);
            quiet = 0;
        } else {
            if (quiet > CONTEXT)
                printf("@@ line %u\n", i + 1);
            print_line('+', y.at[j++]);
            quiet = 0;
        }
    }
}

/* ---- all tests --------------------------------------------------------------------------------
 */

static void one_test(Runner *r, const char *path)
{
    Test   t = {.path = path};
    StrBuf said = strbuf(r->arena), whole;
    Bytes  got;
    char   absolute[4096];
    bool   ok = realpath(path, absolute) != NULL;

    if (ok) {
        *strrchr(absolute, '/') = 0;
        t.folder = absolute;
    } else {
        diag_error(r->diags, E_IO, NO_LOC, "cannot read '%s': %s", path, strerror(errno));
    }
    if (!ok || !read_test(r, &t) || !run_test(r, &t, &said)) {
        r->failed++;
        return;
    }
    got = (Bytes){(const uint8_t *)said.at, said.n};
    if (same_line(t.expected, got)) {
        r->passed++;
        return;
    }
    printf("%s %s\n", r->bless ? "BLESS" : "FAIL", path);
    print_diff(r->arena, t.expected, got);
    if (!r->bless) {
        r->failed++;
        return;
    }
    whole = strbuf(r->arena);
    str_addn(&whole, (const char *)t.head.at, t.head.n + t.input.n);
    str_add(&whole, "----\n");
    str_addn(&whole, said.at, said.n);
    if (file_write(r->diags, path, (Bytes){(const uint8_t *)whole.at, whole.n}))
        r->passed++;
    else
        r->failed++;
}

static int is_test(const struct dirent *entry)
{
    return str_ends(entry->d_name, ".test");
}

static void run_path(Runner *r, const char *path)
{
    struct stat     st;
    struct dirent **entries;
    int             n;

    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        one_test(r, path);
        return;
    }
    n = scandir(path, &entries, is_test, alphasort);
    for (int i = 0; i < n; i++) {
        one_test(r, arena_printf(r->arena, "%s/%s", path, entries[i]->d_name));
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
}

int main(int argc, char **argv)
{
    Arena *a = arena_new(NULL);
    Runner r = {.arena = a, .diags = diags_new(a)};
    char   temporary[] = "/tmp/tvmcc-run-XXXXXX", driver[4096] = "";
    StrBuf messages = strbuf(a);
    int    i = 1;

    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--bless") == 0)
            r.bless = true;
        else if (strcmp(argv[i], "--tvmcc") != 0 || ++i == argc || !realpath(argv[i], driver))
            break;
    }
    if (!*driver || i == argc || argv[i][0] == '-' || !mkdtemp(temporary)) {
        fputs("usage: run [--bless] --tvmcc <driver> <file or folder>...\n", stderr);
        return 2;
    }
    r.driver = driver;
    r.temporary = temporary;
    for (; i < argc; i++)
        run_path(&r, argv[i]);
    diag_print(r.diags, DIAG_TEXT, &messages);
    fputs(messages.at, stdout);
    if (system(arena_printf(a, "rm -rf '%s'", temporary)) != 0)
        r.failed++;
    printf("%u passed, %u failed\n", r.passed, r.failed);
    arena_free(a);
    return r.failed != 0 || r.passed == 0;
}
