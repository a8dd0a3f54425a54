/* Target strings of C: `c`, any machine; `c -mtriple=.. -mcpu=..`, loops arranged as for that one.
 *
 * A machine lends its caches and registers.  Its vectors and fused multiply-adds are left to the
 * compiler of the text unless -mattr= names them: then they are GNU's. */
#include "backends/c/c.h"

#include <string.h>

static const char *const words[] = {"-mtriple",  "-mcpu",  "-march", "-mattr",   "-fast-math",
                                    "-winograd", "-small", "-libm",  "-threads", "-cpu-check"};
enum { ATTRIBUTES = 3 }; /* place in `words`; up to here they say which machine */

static const struct {
    const char *word, *why, *hint;
} refused[] = {
    {"-mabi", "the compiler of the C file decides how functions are called", NULL},
    {"-mfloat-abi", "the compiler of the C file decides how functions are called", NULL},
    {"-threads=1", "C code runs on one thread", "leave '-fthreads' out, or say '-fthreads=none'"},
};

static bool is_word(const char *text, size_t n, const char *word)
{
    size_t w = strlen(word);

    return n >= w && !strncmp(text, word, w) && (n == w || text[w] == '=');
}

/* False with an error if the word is none of C's.  `names`: it says which machine; `attributes`:
 * which of its vectors the text is to have. */
static bool check_word(Ctx *c, const char *at, size_t n, bool *names, const char **attributes)
{
    const char *word = arena_printf(c->scratch, "%.*s", (int)n, at), *near;

    for (size_t i = 0; i < COUNT(refused); i++) {
        if (!is_word(at, n, refused[i].word))
            continue;
        error_at(c, E_TARGET, NO_LOC, "target 'c': '%s': %s", word, refused[i].why);
        if (refused[i].hint)
            diag_hint(c->diags, "%s", refused[i].hint);
        return false;
    }
    for (size_t i = 0; i < COUNT(words); i++)
        if (is_word(at, n, words[i])) {
            *names = *names || i <= ATTRIBUTES;
            if (i == ATTRIBUTES)
                *attributes = intern(c->strings, word);
            return true;
        }
    error_at(c, E_TARGET, NO_LOC, "target 'c': unknown option '%s'", word);
    if ((near = str_closest(word, words, COUNT(words))))
        diag_hint(c->diags, "did you mean '%s='?", near);
    return false;
}

const Target *c_parse_target(Ctx *c, const char *text)
{
    StrBuf        rest = strbuf(c->scratch), canon = strbuf(c->scratch);
    bool          first = true, named = false;
    const char   *attributes = NULL;
    const Target *like;
    Target        t;

    for (const char *p = text; *p;) {
        size_t n = strcspn(p, str_starts(p, "-mattr") ? " \t\n" : " \t\n,");

        if (n && *p == '-') {
            if (!check_word(c, p, n, &named, &attributes))
                return NULL;
            str_printf(&rest, "%s%.*s", rest.n ? " " : "", (int)n, p);
        } else if (n && !(first && n == 1 && *p == 'c')) {
            return error_at(c, E_TARGET, NO_LOC, "target 'c': unexpected word '%.*s'", (int)n, p);
        }
        first = first && !n;
        p += n + !n;
    }
    if (!(like = backend_cpu()->parse_target(c, rest.n ? rest.at : "")))
        return NULL;
    str_add(&canon, "c");
    if (named)
        str_printf(&canon, " -mtriple=%s -mcpu=%s%s%s", like->triple, like->mcpu,
                   attributes ? " " : "", attributes ? attributes : "");
    t = (Target){.backend = &backend_c,
                 .cls = CLASS_CPU,
                 .triple = "any",
                 .mcpu = "",
                 .features = "",
                 .abi = "",
                 .arch = named ? like->arch : "c",
                 .cpu = named ? like->cpu : "generic",
                 .vector_bytes = 4,
                 .vector_regs = 16,
                 .max_threads = 1,
                 .fast_math = like->fast_math,
                 .winograd = like->winograd,
                 .small = like->small,
                 .no_libm = like->no_libm,
                 .no_threads = true};
    if (attributes) {
        t.vector_bytes = like->vector_bytes;
        t.vector_regs = like->vector_regs;
        t.has_fma = like->has_fma;
    }
    if (t.fast_math)
        str_add(&canon, " -fast-math=1");
    if (!t.winograd)
        str_add(&canon, " -winograd=0");
    if (t.small)
        str_add(&canon, " -small=1");
    if (t.no_libm)
        str_add(&canon, " -libm=0");
    t.text = intern(c->strings, canon.at);
    return DUP_ARRAY(c->arena, &t, 1);
}
