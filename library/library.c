/* libtvmcc: include/tvmcc/compiler.h over the room compile/.
 *
 * A session is a list of words that were found right.  Each compile reads them again into memory of
 * its own, so that compiles share nothing but what neither writes. */
#include "compile/products.h"
#include "ops/ops.h"

#include <tvmcc/compiler.h>

#include <stdatomic.h>
#include <string.h>

typedef VEC(const tvmcc_diagnostic *) Diagnostics;

struct tvmcc_session {
    Arena      *arena;
    TextList    words;
    Diagnostics diagnostics;
};

struct tvmcc_compiled {
    Arena          *arena;
    Diags          *diags;
    uint32_t        told; /* of the diags: those that are diagnostics already */
    Diagnostics     diagnostics;
    int             status;
    Ctx            *c; /* NULL: it came to nothing before */
    CompileOptions  options;
    Compiled        k;
    Products        products;
    uint32_t        set; /* of kinds */
    bool            failed;
    tvmcc_callbacks callbacks;
    atomic_bool     cancelled;
};

uint32_t tvmcc_compiler_abi(void)
{
    return TVMCC_COMPILER_ABI;
}

const char *tvmcc_compiler_version(void)
{
    return TVMCC_VERSION;
}

/* ---- messages ---------------------------------------------------------------------------------- */

static const char *add_line(Arena *a, const char *lines, const char *line)
{
    return lines ? arena_printf(a, "%s\n%s", lines, line) : line;
}

/* Those from `from` on; hints go to the message that they are about. */
static void tell(Arena *a, const Diags *d, uint32_t from, Diagnostics *out)
{
    tvmcc_diagnostic *last = NULL;

    for (uint32_t i = from; i < diag_count(d); i++) {
        const DiagRecord r = diag_at(d, i);

        if (r.kind == DIAG_IS_HINT) {
            if (last)
                last->hint = add_line(a, last->hint, r.text);
            continue;
        }
        const char *code = r.kind == DIAG_IS_NOTE ? "" : diag_code(r.id);
        const char *flag = *code ? diag_flag_of(code) : NULL;

        last = NEW(a, tvmcc_diagnostic);
        *last = (tvmcc_diagnostic){.severity = r.kind == DIAG_IS_ERROR     ? TVMCC_SEVERITY_ERROR
                                               : r.kind == DIAG_IS_WARNING ? TVMCC_SEVERITY_WARNING
                                                                           : TVMCC_SEVERITY_NOTE,
                                   .code = code,
                                   .flag = flag ? flag : "",
                                   .file = r.loc.file,
                                   .line = r.loc.line,
                                   .column = r.loc.col,
                                   .node = r.loc.name,
                                   .message = r.text};
        vec_push(a, out, last);
    }
}

/* ---- sessions ---------------------------------------------------------------------------------- */

tvmcc_session *tvmcc_session_new(void)
{
    Arena         *a = arena_new(NULL);
    tvmcc_session *s = NEW(a, tvmcc_session);

    s->arena = a;
    return s;
}

void tvmcc_session_free(tvmcc_session *s)
{
    if (s)
        arena_free(s->arena);
}

/* Words as options; mistakes are recorded. */
static void read_words(Diags *d, Arena *a, const TextList *words, CompileOptions *o)
{
    OptionParser p = {.d = d,
                      .a = a,
                      .compile = o,
                      .nrows = compile_option_count,
                      .rows = compile_option_table,
                      .filled = o,
                      .command = 'c'};

    for (uint32_t i = 0; i < words->n; i++) {
        const char *word = words->at[i];

        if (word[0] != '-' || !word[1])
            diag_error(d, E_USAGE, NO_LOC, "'%s' is no option", word);
        else if (!option_store(&p, words, &i))
            option_unknown(&p, word);
    }
}

int tvmcc_session_options(tvmcc_session *s, size_t n, const char *const *words)
{
    Diags         *d = diags_new(s->arena);
    CompileOptions trial = compile_defaults();
    TextList       all = {0};
    uint32_t       before = s->words.n;

    for (uint32_t i = 0; i < before; i++)
        vec_push(s->arena, &all, s->words.at[i]);
    for (size_t i = 0; i < n; i++)
        vec_push(s->arena, &all, (const char *)arena_printf(s->arena, "%s", words[i]));
    read_words(d, s->arena, &all, &trial);
    tell(s->arena, d, 0, &s->diagnostics);
    if (!diag_errors(d))
        s->words = all;
    return diag_status(d);
}

const tvmcc_diagnostic *tvmcc_session_diagnostic(const tvmcc_session *s, size_t i)
{
    return i < s->diagnostics.n ? s->diagnostics.at[i] : NULL;
}

/* ---- callbacks --------------------------------------------------------------------------------- */

static void on_step(void *user, const char *step, uint32_t done, uint32_t total)
{
    const tvmcc_compiled *k = user;

    if (step && k->callbacks.step)
        k->callbacks.step(k->callbacks.user, step, done, total);
}

static void on_kernel(void *user, const char *name, uint32_t done, uint32_t total)
{
    const tvmcc_compiled *k = user;

    if (k->callbacks.kernel)
        k->callbacks.kernel(k->callbacks.user, name, done, total);
}

static bool is_cancelled(void *user)
{
    tvmcc_compiled *k = user;

    if (!atomic_load(&k->cancelled) && k->callbacks.cancelled(k->callbacks.user))
        atomic_store(&k->cancelled, true);
    return atomic_load(&k->cancelled);
}

static void take_callbacks(tvmcc_compiled *k, const tvmcc_callbacks *callbacks)
{
    size_t n = sizeof k->callbacks;

    if (!callbacks)
        return;
    memcpy(&k->callbacks, callbacks, callbacks->struct_bytes < n ? callbacks->struct_bytes : n);
    k->options.progress = on_step;
    k->options.progress_count = on_kernel;
    k->options.progress_user = k;
    if (k->callbacks.cancelled)
        k->options.cancel = (Cancel){is_cancelled, k};
}

/* ---- compiles ---------------------------------------------------------------------------------- */

/* What a function with the handle came to. */
static int done(tvmcc_compiled *k)
{
    tell(k->arena, k->diags, k->told, &k->diagnostics);
    k->status = diag_status(k->diags);
    diag_drop(k->diags, 0); /* another try may go better */
    k->told = diag_count(k->diags);
    return k->status;
}

static bool read_kinds(tvmcc_compiled *k, const char *kinds)
{
    for (;;) {
        size_t  n = strcspn(kinds, ",");
        Product kind;

        if (!product_find(k->diags, arena_printf(k->arena, "%.*s", (int)n, kinds), &kind))
            return false;
        k->set |= 1u << kind;
        if (!kinds[n])
            return true;
        kinds += n + 1;
    }
}

/* All code that the kinds need. */
static bool make_code(tvmcc_compiled *k)
{
    Products *all = &k->products;
    BytesList content;
    bool      ok = true;

    for (int p = 0; ok && p < PRODUCT_COUNT; p++)
        if (k->set >> p & 1)
            ok = product_needs_object((Product)p) ? product_object(all)
                                                  : product_content(all, (Product)p, &content);
    return ok;
}

static bool run(tvmcc_compiled *k, const TextList *given, const char *kinds)
{
    TextList words = {0};

    for (uint32_t i = 0; i < given->n; i++)
        vec_push(k->arena, &words, (const char *)arena_printf(k->arena, "%s", given->at[i]));
    read_words(k->diags, k->arena, &words, &k->options);
    if (diag_errors(k->diags) || !read_kinds(k, kinds) ||
        !products_fit(k->diags, &k->options, k->set) ||
        !compile_settle_model(k->diags, k->arena, &k->options, "llvm"))
        return false;
    k->c = ctx_new(k->arena, k->diags, op_table);
    compile_start(k->c, &k->k, &k->options);
    k->products = (Products){.c = k->c, .k = &k->k, .layout = &layout_table[0]};
    if (k->options.layout &&
        !(k->products.layout = layout_find(k->diags, "--layout", k->options.layout)))
        return false;
    return compile_model(k->c, &k->k, &k->options, k->set) && make_code(k);
}

static int compile(const tvmcc_session *s, const char *path, const Bytes *model, const char *kinds,
                   const tvmcc_callbacks *callbacks, tvmcc_compiled **out)
{
    Arena          *a = arena_new(NULL);
    tvmcc_compiled *k = *out = NEW(a, tvmcc_compiled);

    k->arena = a;
    k->diags = diags_new(a);
    k->options = compile_defaults();
    k->options.path = arena_printf(a, "%s", path);
    k->options.hash_model = true;
    take_callbacks(k, callbacks);
    if (model)
        file_pretend(k->diags, k->options.path, *model);
    k->failed = !run(k, &s->words, kinds) || diag_errors(k->diags);
    return done(k);
}

int tvmcc_compile(const tvmcc_session *s, const char *path, const char *kinds,
                  const tvmcc_callbacks *callbacks, tvmcc_compiled **out)
{
    return compile(s, path, NULL, kinds, callbacks, out);
}

int tvmcc_compile_memory(const tvmcc_session *s, const char *path, const void *model, size_t bytes,
                         const char *kinds, const tvmcc_callbacks *callbacks, tvmcc_compiled **out)
{
    const Bytes content = {model, bytes};

    return compile(s, path, &content, kinds, callbacks, out);
}

void tvmcc_compiled_free(tvmcc_compiled *k)
{
    if (!k)
        return;
    file_unmap_all(k->diags);
    if (k->c)
        ctx_free(k->c);
    arena_free(k->arena);
}

int tvmcc_compiled_status(const tvmcc_compiled *k)
{
    return k->status;
}

const tvmcc_diagnostic *tvmcc_compiled_diagnostic(const tvmcc_compiled *k, size_t i)
{
    return i < k->diagnostics.n ? k->diagnostics.at[i] : NULL;
}

const char *tvmcc_compiled_entry(const tvmcc_compiled *k)
{
    return k->k.entry ? k->k.entry : "";
}

static bool find_kind(tvmcc_compiled *k, const char *text, Product *kind)
{
    if (!product_find(k->diags, text, kind))
        return false;
    return k->set >> *kind & 1 ||
           diag_error(k->diags, E_USAGE, NO_LOC, "'%s' is not among the kinds that were compiled",
                      text);
}

int tvmcc_compiled_content(tvmcc_compiled *k, const char *text, const void **data, size_t *bytes)
{
    Product   kind;
    BytesList content;

    *data = NULL;
    *bytes = 0;
    if (k->failed)
        return k->status;
    if (find_kind(k, text, &kind) && product_content(&k->products, kind, &content)) {
        Bytes *all = NEW(k->arena, Bytes);

        *all = pieces_join(k->arena, content);
        k->products.made[kind] = (BytesList){1, all}; /* joined once */
        *data = all->at;
        *bytes = all->n;
    }
    return done(k);
}

int tvmcc_compiled_write(tvmcc_compiled *k, const char *text, const char *path)
{
    Product     kind;
    const char *suffix;

    if (k->failed)
        return k->status;
    if (!find_kind(k, text, &kind))
        return done(k);
    path = arena_printf(k->arena, "%s", path);
    if (!product_has_place(path)) {
        diag_error(k->diags, E_USAGE, NO_LOC, "'%s' is no name of a file", path);
        return done(k);
    }
    suffix = product_table[kind].suffix;
    k->products.stem =
        str_ends(path, suffix)
            ? arena_printf(k->arena, "%.*s", (int)(strlen(path) - strlen(suffix)), path)
            : path;
    product_write(&k->products, kind, path);
    k->products.stem = NULL;
    return done(k);
}

const char *tvmcc_compiled_input(const tvmcc_compiled *k, size_t i)
{
    return i < k->k.files.n ? k->k.files.at[i] : NULL;
}

const char *tvmcc_compiled_output(const tvmcc_compiled *k, size_t i)
{
    return i < k->products.outputs.n ? k->products.outputs.at[i] : NULL;
}
