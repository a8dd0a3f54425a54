/* Entry functions that ask which CPU runs them, and choose between the plans of one product: by
 * CPU, by shape bucket.
 *
 *     which()              1 + the highest variant that this CPU runs, 0: none
 *     noted(params)        the same, as the arena has it from the run before
 *     run_ex(..)           table[noted(..)][last](..)
 *     run_bucket(b, ..)    table[noted(..)][b](..)
 *     info()               infos[which()]: what it gives asks no more
 *     select(dims)         the first bucket whose sizes hold dims
 *
 * Row 0 of the tables is for a CPU that no variant fits: TVMCC_E_CPU.  CPUID traps where a
 * hypervisor runs: a microsecond each, up to 70 where that is itself a guest, and there is no
 * writable data to remember the answer.  So it is noted in the first bytes of the caller's arena,
 * which the plan leaves free (CPU_NOTE_BYTES): two words that depend on what is asked for, so that
 * whatever else lies there makes the run ask again. */
#include "passes/lower/entry/entry.h"

#include <stdio.h>

typedef struct {
    Entry       *e;
    const Plan  *plans;
    uint32_t     nvariants, nbuckets;
    bool         asks;        /* the CPU */
    const char **run, **info; /* symbols, by plan */
    const char  *runs;        /* the table of run functions, all variants and buckets */
} Choice;

/* ---- which CPU --------------------------------------------------------------------------------- */

static const uint32_t *needs_of(const Choice *ch, uint32_t variant)
{
    return plan_at(ch->plans, variant * ch->nbuckets)->target->cpu_needs;
}

static void define_which(const Choice *ch)
{
    Entry        *e = ch->e;
    Ctx          *c = e->c;
    const Idx    *n = idx_const(c->arith, CPU_WORDS);
    const Buffer *word = buffer_new(c, "word", DT_U32, SCOPE_STACK, 1, &n);
    const Prim   *args[1] = {address(e, word)};
    Code          code = {0};

    add(e, &code, stmt_alloc(c, word, stmt_seq(c, 0, NULL)));
    invoke(e, &code, NULL, "cpuid", prim_symbol(c, HOST_CPUID), 1, args);
    for (uint32_t v = ch->nvariants; v-- > 0;) {
        const uint32_t *needs = needs_of(ch, v);
        const Prim     *has = num(e, DT_BOOL, 1);

        for (uint32_t i = 0; i < CPU_WORDS; i++) {
            const Prim *bits = num(e, DT_U32, needs[i]);

            if (needs[i])
                has =
                    prim_and(c, has, prim_eq(c, prim_bin(c, PRIM_AND, at(e, word, i), bits), bits));
        }
        fail_if(e, &code, has, (int32_t)v + 1);
    }
    give(e, &code, status(e, 0));
    define(e, "__which", "which", false, 0, NULL, &code);
}

/* The two words of a note for row 0. */
static void note_of(const Choice *ch, const Prim *word[2])
{
    Sha256Ctx h;
    Sha256    sum;
    uint64_t  w[2] = {0};

    sha256_init(&h);
    for (uint32_t v = 0; v < ch->nvariants; v++) {
        const uint32_t *needs = needs_of(ch, v);
        char            line[16 * CPU_WORDS] = "cpu";
        int             n = 3;

        for (uint32_t i = 0; i < CPU_WORDS; i++)
            n += snprintf(line + n, sizeof line - (size_t)n, " %08x", needs[i]);
        sha256_add(&h, line, (size_t)n);
    }
    sum = sha256_end(&h);
    for (uint32_t i = 0; i < 16; i++)
        w[i / 8] = w[i / 8] << 8 | sum.b[i];
    for (uint32_t i = 0; i < 2; i++)
        word[i] = num(ch->e, DT_U64, (int64_t)w[i]);
}

/* params, or their arena, that run_ex itself will refuse. */
static const Prim *no_note(const Choice *ch, const Buffer *params)
{
    Entry      *e = ch->e;
    Ctx        *c = e->c;
    const Prim *arena = get(e, params, "arena");
    const Prim *low = prim_bin(c, PRIM_AND, prim_cast(c, DT_U64, arena), num(e, DT_U64, 7));
    const Prim *bad[5] = {
        is_null(e, address(e, params)),
        params_too_short(e, params),
        is_null(e, arena),
        prim_lt(c, get(e, params, "arena_bytes"), num(e, DT_U64, CPU_NOTE_BYTES)),
        prim_bin(c, PRIM_NE, low, num(e, DT_U64, 0)),
    };
    const Prim *any = bad[4];

    for (uint32_t i = 4; i-- > 0;) /* each may be looked at only if those before it are false */
        any = prim_select(c, bad[i], num(e, DT_BOOL, 1), any);
    return any;
}

static void ask(const Choice *ch, Code *code, const Buffer *row)
{
    invoke(ch->e, code, row, "which", function(ch->e, "__which"), 0, NULL);
}

static void define_noted(const Choice *ch)
{
    Entry        *e = ch->e;
    Ctx          *c = e->c;
    const Buffer *params = struct_of(e, "params", "params", SCOPE_ARENA), *note, *row, *known;
    Param         p[1] = {pointer(params)};
    const Prim   *word[2], *good;
    Code          code = {0}, only_ask = {0}, write = {0}, found = {0};

    row = variable(e, &code, "row", DT_I32);
    ask(ch, &only_ask, row);
    give(e, &only_ask, value_of(e, row));
    add(e, &code, stmt_if(c, no_note(ch, params), code_end(e, &only_ask), NULL));
    note_of(ch, word);
    note = view_array(e, &code, "note", DT_U64, 2, get(e, params, "arena"));
    known = variable(e, &code, "known", DT_U64);
    set(e, &code, known, prim_sub(c, at(e, note, 1), word[1]));
    good = prim_sub(c, value_of(e, known), num(e, DT_U64, 1)); /* row 0 is never noted */
    good = prim_lt(c, good, num(e, DT_U64, ch->nvariants));
    good = prim_and(c, prim_eq(c, at(e, note, 0), word[0]), good);
    give(e, &found, prim_cast(c, DT_I32, value_of(e, known)));
    add(e, &code, stmt_if(c, good, code_end(e, &found), NULL));
    ask(ch, &code, row);
    for (uint32_t i = 0; i < 2; i++) {
        const Idx  *k = idx_const(c->arith, i);
        const Prim *v = word[i];

        if (i)
            v = prim_add(c, v, prim_cast(c, DT_U64, value_of(e, row)));
        add(e, &write, stmt_store(c, note, &k, v));
    }
    add(e, &code,
        stmt_if(c, prim_not(c, prim_eq(c, value_of(e, row), status(e, 0))), code_end(e, &write),
                NULL));
    give(e, &code, value_of(e, row));
    define(e, "__noted", "noted", false, 1, p, &code);
}

/* ---- tables ------------------------------------------------------------------------------------ */

/* table[row * width + column], where the table has `rows` rows; without params the CPU is asked. */
static const Prim *pick(const Choice *ch, Code *code, const Buffer *params, const char *table,
                        uint32_t rows, uint32_t width, const Idx *column)
{
    Entry        *e = ch->e;
    Ctx          *c = e->c;
    const Prim   *args[1] = {params ? address(e, params) : NULL};
    const Idx    *i = column;
    const Buffer *row, *all;

    if (ch->asks) {
        row = variable(e, code, "row", DT_I32);
        if (params)
            invoke(e, code, row, "noted", function(e, "__noted"), 1, args);
        else
            ask(ch, code, row);
        i = idx_load(c->arith, value_of(e, row), 0, (int64_t)rows - 1);
        i = idx_add(c->arith, idx_mulc(c->arith, i, width), column);
    }
    all = view_array(e, code, "table", DT_HANDLE, (int64_t)rows * width, prim_symbol(c, table));
    return cell(e, all, i);
}

static uint32_t rows(const Choice *ch)
{
    return ch->nvariants + ch->asks;
}

/* All run functions; the row of a CPU that does not fit comes first, if the CPU is asked. */
static const char *run_table(const Choice *ch)
{
    Entry   *e = ch->e;
    uint32_t n = ch->nvariants * ch->nbuckets;
    Items    all = {0};

    for (uint32_t i = 0; ch->asks && i < ch->nbuckets; i++)
        item_symbol(e, &all, symbol(e, "__no_cpu"));
    for (uint32_t i = 0; i < n; i++)
        item_symbol(e, &all, ch->run[i]);
    return constant(e, &all);
}

static void run_it(Entry *e, Code *code, const Prim *fn, const Param *params)
{
    const Buffer *result = variable(e, code, "result", DT_I32);
    const Prim   *args[3];

    for (uint32_t i = 0; i < 3; i++)
        args[i] = address(e, params[i].buffer);
    invoke(e, code, result, "run", fn, 3, args);
    give(e, code, value_of(e, result));
}

/* inputs, outputs, params, behind what is there already */
static void run_params(Entry *e, Param *params)
{
    params[0] = pointer(array_of(e, "inputs", DT_HANDLE, e->plan->nin));
    params[1] = pointer(array_of(e, "outputs", DT_HANDLE, e->plan->nout));
    params[2] = pointer(struct_of(e, "params", "params", SCOPE_ARENA));
}

/* ---- the functions ----------------------------------------------------------------------------- */

static void define_no_cpu(Entry *e)
{
    Param params[3];
    Code  code = {0};

    run_params(e, params);
    give(e, &code, status(e, TVMCC_E_CPU));
    define(e, "__no_cpu", "run", false, 3, params, &code);
}

static void define_run_table(const Choice *ch)
{
    Entry     *e = ch->e;
    const Idx *last = idx_const(e->c->arith, (int64_t)ch->nbuckets - 1);
    Param      params[3];
    Code       code = {0};

    run_params(e, params);
    run_it(e, &code, pick(ch, &code, params[2].buffer, ch->runs, rows(ch), ch->nbuckets, last),
           params);
    define(e, "_run_ex", "run", true, 3, params, &code);
}

static void define_run_bucket(const Choice *ch)
{
    Entry      *e = ch->e;
    Ctx        *c = e->c;
    Param       params[4] = {scalar(e, "bucket", 0, UINT32_MAX)};
    const Prim *bucket = prim_index(c, DT_U32, idx_atom(c->arith, params[0].scalar));
    const Idx  *i = idx_load(c->arith, bucket, 0, (int64_t)ch->nbuckets - 1);
    Code        code = {0};

    run_params(e, params + 1);
    fail_if(e, &code, prim_le(c, num(e, DT_U32, ch->nbuckets), bucket), TVMCC_E_SHAPE);
    run_it(e, &code, pick(ch, &code, params[3].buffer, ch->runs, rows(ch), ch->nbuckets, i),
           params + 1);
    define(e, "_run_bucket", "run_bucket", true, 4, params, &code);
}

static void define_info(const Choice *ch, const char *no_info)
{
    Entry *e = ch->e;
    Items  all = {0};
    Code   code = {0};

    if (ch->asks)
        item_symbol(e, &all, no_info);
    for (uint32_t v = 0; v < ch->nvariants; v++)
        item_symbol(e, &all, ch->info[(v + 1) * ch->nbuckets - 1]);
    give(e, &code,
         pick(ch, &code, NULL, constant(e, &all), rows(ch), 1, idx_const(e->c->arith, 0)));
    define(e, "_info", "info", true, 0, NULL, &code);
}

/* Unrolled, as buckets are few. */
static void define_select(const Choice *ch)
{
    Entry        *e = ch->e;
    Ctx          *c = e->c;
    uint32_t      n = ch->plans->ndims;
    const Buffer *dims = array_of(e, "dims", DT_U64, n); /* a negative size fits nowhere */
    Param         params[1] = {pointer(dims)};
    Code          code = {0};

    fail_if(e, &code, is_null(e, address(e, dims)), TVMCC_E_NULL);
    for (uint32_t b = 0; b < ch->nbuckets; b++) {
        const Plan *p = plan_at(ch->plans, b);
        const Prim *holds = num(e, DT_BOOL, 1);

        for (uint32_t k = 0; k < n; k++)
            holds = prim_and(c, holds, prim_le(c, at(e, dims, k), num(e, DT_U64, p->dims[k].size)));
        fail_if(e, &code, holds, (int32_t)b);
    }
    give(e, &code, status(e, TVMCC_E_SHAPE));
    define(e, "_select", "select", true, 1, params, &code);
}

/* ---- infos ------------------------------------------------------------------------------------- */

static const char *bucket_names(const Choice *ch)
{
    Items all = {0};

    for (uint32_t k = 0; k < ch->plans->ndims; k++)
        item_symbol(ch->e, &all, text_constant(ch->e, ch->plans->dims[k].name));
    return constant(ch->e, &all);
}

static const char *bucket_sizes(const Choice *ch)
{
    Items all = {0};

    for (uint32_t b = 0; b < ch->nbuckets; b++)
        for (uint32_t k = 0; k < ch->plans->ndims; k++)
            item(ch->e, &all, ABI_I64, plan_at(ch->plans, b)->dims[k].size);
    return constant(ch->e, &all);
}

/* A variant's buckets; the last one's info has the table of all, its own included. */
static void define_infos(Choice *ch)
{
    Entry      *e = ch->e;
    uint32_t    i = 0, nb = ch->nbuckets;
    bool        buckets = ch->plans->ndims != 0;
    const char *names = bucket_names(ch), *sizes = bucket_sizes(ch);

    for (const Plan *p = ch->plans; p; p = p->next, i++) {
        Others b = {.n = nb, .ndims = p->ndims, .names = names, .sizes = sizes};
        bool   last = i % nb + 1 == nb;

        use_plan(e, p);
        if (buckets && last) {
            Items infos = {0};

            for (uint32_t k = 0; k + 1 < nb; k++)
                item_symbol(e, &infos, ch->info[i + 1 - nb + k]);
            item_symbol(e, &infos, symbol(e, arena_printf(e->c->arena, "__info%u", i / nb)));
            b.infos = constant(e, &infos);
        }
        ch->info[i] = model_info(e, ch->run[i], NULL, NULL, buckets && last ? &b : NULL);
        if (buckets && last) /* a name that was known before */
            ch->info[i] = e->data.at[e->data.n - 1].name =
                symbol(e, arena_printf(e->c->arena, "__info%u", i / nb));
    }
}

static void define_bodies(Choice *ch, uint64_t *arena)
{
    Entry   *e = ch->e;
    uint32_t i = 0;

    for (const Plan *p = ch->plans; p; p = p->next, i++) {
        const char *name = intern_printf(e->c->strings, "__run%u", i);

        use_plan(e, p);
        define_run_ex(e, name, false);
        ch->run[i] = symbol(e, name);
        if (p->arena)
            *arena = most_bytes(p);
        else if (p->arena_bytes + p->private_bytes > *arena)
            *arena = p->arena_bytes + p->private_bytes;
    }
}

void define_cpu_check(Entry *e, const Plan *p)
{
    Choice ch = {.e = e, .plans = p, .nvariants = 1, .nbuckets = 1, .asks = true};

    define_which(&ch);
}

void define_choice(Entry *e, const Plan *plans)
{
    Choice      ch = {.e = e,
                      .plans = plans,
                      .nvariants = plan_variants(plans),
                      .nbuckets = plan_buckets(plans),
                      .asks = plan_asks_cpu(plans)};
    uint32_t    n = ch.nvariants * ch.nbuckets;
    const char *no_info;
    uint64_t    arena = 0;

    ch.run = NEW_ARRAY(e->c->arena, const char *, n);
    ch.info = NEW_ARRAY(e->c->arena, const char *, n);
    define_bodies(&ch, &arena);
    e->any_cpu = ch.asks;
    if (ch.asks) {
        define_which(&ch);
        define_noted(&ch);
    }
    define_no_cpu(e);
    define_infos(&ch);
    no_info = model_info(e, symbol(e, "__no_cpu"), NULL, NULL, NULL);
    ch.runs = run_table(&ch);
    define_run_table(&ch);
    define_run(e, arena);
    define_info(&ch, no_info);
    if (!plans->ndims)
        return;
    define_run_bucket(&ch);
    define_select(&ch);
}
