/* Steps as text: parse, print, apply.
 *
 * A step is `word arguments -> names`.  The row of sched.def says by its pattern which arguments
 * are loops and tensors (printed with %), blocks and scopes (bare); parsing takes either.  `by 6`,
 * `into 4`, `at %t` and `tail=even` are arguments with a key. */
#include "ir/sched/impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *text, *pattern;
    StepApply  *apply;
    StepClass class;
} StepRow;

static const StepRow rows[] = {
#define STEP(id, text, args, apply, class, about) {text, args, apply, CLASS_##class},
#include "ir/sched/sched.def"
#undef STEP
};

/* ---- arguments ---------------------------------------------------------------------------------- */

const StepArg *step_option(const Step *st, const char *key)
{
    for (uint32_t i = 0; i < st->nargs; i++)
        if (st->arg[i].key && !strcmp(st->arg[i].key, key))
            return &st->arg[i];
    return NULL;
}

const StepArg *step_arg(const Step *st, uint32_t i)
{
    for (uint32_t k = 0; k < st->nargs; k++)
        if (!st->arg[k].key && !i--)
            return &st->arg[k];
    return NULL;
}

uint32_t step_nargs(const Step *st)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < st->nargs; k++)
        n += !st->arg[k].key;
    return n;
}

/* Options that are written as words, `split %x by 6`; others are key=value. */
static bool is_keyword(const char *name)
{
    return !strcmp(name, "by") || !strcmp(name, "into") || !strcmp(name, "at") ||
           !strcmp(name, "with") || !strcmp(name, "over");
}

/* ---- print ---------------------------------------------------------------------------------------- */

/* The letter of the i-th argument or result in a pattern: L, B, T, S, @ or 0. */
static char letter(const char *pattern, bool out, uint32_t i)
{
    const char *arrow = strstr(pattern, "->"), *p = out ? arrow : pattern;
    char        last = 0;
    if (!p)
        return 0;
    for (; *p && (out || !arrow || p < arrow) && *p != '|'; p++) {
        bool word = p > pattern && p[-1] != ' ';
        if (!word && strchr("LBTS@", *p) &&
            (p[1] == ' ' || p[1] == ',' || p[1] == '.' || !p[1] || *p == '@')) {
            last = *p;
            if (!i--)
                return last;
        }
    }
    return last;
}

/* One of several loops, and not the first. */
static bool is_listed(const char *pattern, uint32_t i)
{
    return strstr(pattern, "..") && letter(pattern, false, i - 1) == 'L' &&
           letter(pattern, false, i) == 'L';
}

static void print_name(StrBuf *out, char kind, const char *name)
{
    str_printf(out, "%s%s", kind == 'L' || kind == 'T' ? "%" : kind == '@' ? "@" : "", name);
}

void step_print(Ctx *c, const Step *st, StrBuf *out)
{
    const StepRow *row = &rows[st->kind];
    uint32_t       plain = 0;

    (void)c;
    str_add(out, row->text);
    for (uint32_t i = 0; i < st->nargs; i++) {
        const StepArg *a = &st->arg[i];
        bool           word = a->key && is_keyword(a->key);
        if (a->key)
            str_printf(out, word ? " %s " : " %s=", a->key);
        else
            str_add(out, plain && is_listed(row->pattern, plain) ? ", " : " ");
        if (!a->name)
            str_printf(out, "%" PRId64, a->num);
        else if (a->key)
            print_name(out, !strcmp(a->key, "with") ? '@' : word ? 'L' : 0, a->name);
        else
            print_name(out, letter(row->pattern, false, plain), a->name);
        plain += !a->key;
    }
    if (st->map)
        str_printf(out, " %s", st->map);
    for (uint32_t i = 0; i < st->nouts; i++) {
        str_add(out, i ? ", " : " -> ");
        print_name(out, letter(row->pattern, true, i), st->out[i]);
    }
}

void sched_print(const Sched *s, StrBuf *out)
{
    for (uint32_t i = 0; i < s->steps.n; i++) {
        step_print(s->c, &s->steps.at[i], out);
        str_add(out, "\n");
    }
}

/* ---- parse ---------------------------------------------------------------------------------------- */

static const char *skip_blanks(const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\r')
        p++;
    return p;
}

static bool is_word(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
           ch == '_' || ch == '.' || ch == '#' || ch == '$';
}

/* A word without its sigil; a number if it is one. */
static const char *parse_value(Ctx *c, const char *p, StepArg *out)
{
    bool bare = *p != '%' && *p != '@';
    p += !bare;
    const char *end = p + (bare && *p == '-');
    int64_t     v = 0;
    bool        number = bare;
    for (; is_word(*end); end++)
        number = number && *end >= '0' && *end <= '9' && checked_mul(v, 10, &v) &&
                 checked_add(v, *end - '0', &v);
    if (end == p || (bare && *p == '-' && (!number || end == p + 1)))
        return NULL;
    if (number)
        out->num = *p == '-' ? -v : v;
    else
        out->name = intern_n(c->strings, p, (size_t)(end - p));
    return end;
}

/* The text of an index map, to the parenthesis that closes its right side; blanks made regular. */
static const char *parse_map(Ctx *c, const char *p, const char **map)
{
    const char *start = p;
    for (int side = 0; side < 2; side++) {
        int depth = 0;
        p = skip_blanks(p);
        if (*p != '(')
            return NULL;
        do {
            depth += (*p == '(') - (*p == ')');
            if (!*p++)
                return NULL;
        } while (depth);
        if (side)
            break;
        p = skip_blanks(p);
        if (!str_starts(p, "->"))
            return NULL;
        p += 2;
    }
    *map = intern_n(c->strings, start, (size_t)(p - start));
    return p;
}

/* NULL if it parses, else what is wrong. */
static const char *parse_step(Ctx *c, const char *text, Step *st)
{
    StepArg     word = {0};
    const char *p = parse_value(c, skip_blanks(text), &word), *key = NULL;
    uint32_t    kind = 0;

    *st = (Step){0};
    if (!p || !word.name)
        return "not a step";
    while (kind < STEP_COUNT && strcmp(rows[kind].text, word.name) != 0)
        kind++;
    if (kind == STEP_COUNT) {
        const char *names[STEP_COUNT];
        for (uint32_t i = 0; i < STEP_COUNT; i++)
            names[i] = rows[i].text;
        const char *near = str_closest(word.name, names, STEP_COUNT);
        return arena_printf(c->arena, near ? "no step '%s', did you mean '%s'?" : "no step '%s'",
                            word.name, near);
    }
    st->kind = (StepKind)kind;
    for (bool outs = false;;) {
        p = skip_blanks(p);
        if (*p == ',')
            p = skip_blanks(p + 1);
        if (!*p)
            break;
        if (str_starts(p, "->")) {
            outs = true;
            p += 2;
            continue;
        }
        if (*p == '(') {
            if (!(p = parse_map(c, p, &st->map)))
                return "the index map does not parse";
            continue;
        }
        StepArg     a = {.key = key};
        const char *end = parse_value(c, p, &a);
        if (!end)
            return arena_printf(c->arena, "'%s' is not an argument", p);
        if (outs && (!a.name || st->nouts == COUNT(st->out)))
            return "too many results";
        if (outs) {
            st->out[st->nouts++] = a.name;
        } else if (a.name && !key && *p != '%' && (is_keyword(a.name) || *end == '=')) {
            key = a.name;
            end += *end == '=';
            p = end;
            continue;
        } else {
            if (st->nargs == MAX_STEP_ARGS)
                return "too many arguments";
            st->arg[st->nargs++] = a;
        }
        key = NULL;
        p = end;
    }
    return key ? arena_printf(c->arena, "'%s' needs a value", key) : NULL;
}

/* ---- apply ---------------------------------------------------------------------------------------- */

/* Tensors without cells are left alone, so that extents are positive everywhere else. */
static bool has_empty_loop(const Work *w)
{
    for (uint32_t i = 0; i < w->nest.n; i++)
        if (stmt_at(w, i)->kind == STMT_FOR && loop_at(w, i)->extent->hi < 1)
            return true;
    return false;
}

bool sched_apply(Sched *s, const Step *st)
{
    if (s->refusal)
        return false;
    Work        w = work(s, st);
    const Func *f = has_empty_loop(&w) ? refuse(&w, "a loop is empty") : rows[st->kind].apply(&w);
    if (f && arith_overflow(s->c->arith))
        f = refuse(&w, "an index overflows 64 bits");
    if (!f) {
        if (!s->refusal)
            BUG("step '%s' was refused without a reason", rows[st->kind].text);
        return false;
    }
    s->f = f;
    s->exact = s->exact && w.exact && rows[st->kind].class != CLASS_ORDER;
    for (uint32_t i = 0; i < w.cut.n; i++)
        vec_push(s->c->arena, &s->cut, w.cut.at[i]);
    vec_push(s->c->arena, &s->steps, *st);
    return true;
}

static bool apply_text(Sched *s, const char *text)
{
    Step        st;
    const char *wrong = s->refusal ? NULL : parse_step(s->c, text, &st);
    if (wrong)
        s->refusal = arena_printf(s->c->arena, "refused: %s: %s", text, wrong);
    return !s->refusal && sched_apply(s, &st);
}

bool step(Sched *s, const char *fmt, ...)
{
    StrBuf  text = strbuf(s->c->scratch);
    va_list ap;
    va_start(ap, fmt);
    str_vprintf(&text, fmt, ap);
    va_end(ap);
    return apply_text(s, text.at);
}

bool try_step(Sched *s, const char *fmt, ...)
{
    if (s->refusal)
        return false;
    StrBuf  text = strbuf(s->c->scratch);
    va_list ap;
    va_start(ap, fmt);
    str_vprintf(&text, fmt, ap);
    va_end(ap);
    bool ok = apply_text(s, text.at);
    s->refusal = NULL;
    return ok;
}

/* Where a comment starts: `//` between blanks or at the start, so that `o//16` is none. */
static size_t line_length(const char *p, const char *end)
{
    const char *at = p;
    for (; at < end && *at != '\n' && *at != ';'; at++) {
        bool before = at == p || at[-1] == ' ' || at[-1] == '\t';
        bool after = at + 2 >= end || at[2] == ' ' || at[2] == '\t' || at[2] == '\n';
        if (before && after && at + 1 < end && at[0] == '/' && at[1] == '/')
            break;
    }
    return (size_t)(at - p);
}

/* One step, or `@name`: what follows is for that function.  *now is whose steps are read. */
static bool apply_line(Ctx *c, Loc at, const char *line, uint32_t n, Sched *const *all, Sched **now)
{
    if (*line == '@') {
        *now = NULL;
        for (uint32_t i = 0; i < n && !*now; i++)
            *now = strcmp(all[i]->te->name, line + 1) ? NULL : all[i];
        return *now || error_at(c, E_SCHEDULE, at, "there is no function '%s'", line);
    }
    if (!*now)
        return error_at(c, E_SCHEDULE, at,
                        "steps of several functions stand under their names: "
                        "'@name' is expected before '%s'",
                        line);
    return apply_text(*now, line) || error_at(c, E_SCHEDULE, at, "%s", (*now)->refusal);
}

bool sched_parse_all(Ctx *c, const char *file, Bytes text, uint32_t nsched, Sched *const *all)
{
    const char *p = text.n ? (const char *)text.at : "", *end = p + text.n;
    uint32_t    line = 1;
    Sched      *now = nsched == 1 ? all[0] : NULL;

    while (p < end) {
        size_t      n = line_length(p, end);
        const char *one = skip_blanks(arena_printf(c->scratch, "%.*s", (int)n, p));
        size_t      len = strlen(one);
        while (len && (one[len - 1] == ' ' || one[len - 1] == '\t' || one[len - 1] == '\r'))
            len--;
        one = arena_printf(c->scratch, "%.*s", (int)len, one);
        if (len && !apply_line(c, (Loc){file, line, 1, NULL}, one, nsched, all, &now))
            return false;
        p += n;
        if (p < end && *p == '/')
            while (p < end && *p != '\n')
                p++;
        line += p < end && *p == '\n';
        p++;
    }
    return true;
}

bool sched_parse(Ctx *c, const char *file, Bytes text, Sched *s)
{
    return sched_parse_all(c, file, text, 1, &s);
}

/* ---- the schedule ----------------------------------------------------------------------------------- */

/* Loops start as %<block>.<axis>. */
static const Stmt *name_loops(Ctx *c, const Stmt *s, const char *block)
{
    if (s->kind == STMT_BLOCK)
        return s;
    if (s->kind == STMT_FOR && !block) {
        const Stmt *in = s;
        while (in->kind == STMT_FOR)
            in = in->kids[0];
        if (in->kind == STMT_BLOCK && !in->u.block.opaque)
            block = in->u.block.name;
    }
    const Stmt **kids = NEW_ARRAY(c->arena, const Stmt *, s->nkids);
    for (uint32_t i = 0; i < s->nkids; i++)
        kids[i] = name_loops(c, s->kids[i], block);
    if (s->kind != STMT_FOR || !block)
        return s->kind == STMT_SEQ ? stmt_seq(c, s->nkids, kids) : stmt_with_kids(c, s, kids);
    LoopData    l = s->u.loop;
    const char *name = intern_printf(c->strings, "%s.%s", block, l.var->name);
    l.var = atom_like(c->arith, name, l.var);
    IdxSubst *sub = subst_new(c->arith, c->scratch);
    subst_bind(sub, s->u.loop.var, idx_atom(c->arith, l.var));
    return stmt_for(c, l, stmt_subst(c, kids[0], sub), s->loc);
}

Sched *sched_new(Ctx *c, const Target *t, const TeFunc *te)
{
    Sched *s = NEW(c->arena, Sched);
    s->c = c;
    s->target = t;
    s->te = te;
    s->choices = c->arena;
    s->exact = true;
    const Func *f = te_lower(c, te, t);
    s->f = func_with_body(c, f, name_loops(c, f->body, NULL));
    return s;
}

const Stmt *sched_block(const Sched *s, const char *name)
{
    Work w = work((Sched *)(uintptr_t)s, NULL);
    for (uint32_t i = 0; i < w.nest.n; i++)
        if (stmt_at(&w, i)->kind == STMT_BLOCK && !strcmp(block_at(&w, i)->name, name))
            return stmt_at(&w, i);
    return NULL;
}

/* The first copy of that loop, or NULL. */
static const Stmt *find_loop(const Sched *s, const char *loop)
{
    static const Step none = {0};
    Sched             ask = *s; /* a refusal stays here */
    Sites             sites;
    Work              w = work(&ask, &none);
    const char       *name = intern(s->c->strings, loop + (*loop == '%'));

    return loops_named(&w, name, &sites) ? stmt_at(&w, sites.at[0]) : NULL;
}

bool sched_loop_extent(const Sched *s, const char *loop, int64_t *extent)
{
    const Stmt *found = find_loop(s, loop);

    return found && loop_extent_of(found, extent);
}

const Idx *sched_loop_form(const Sched *s, const char *loop)
{
    const Stmt *found = find_loop(s, loop);

    return found ? found->u.loop.extent : NULL;
}

const Idx *flat_index(Sched *s, const LoadData *l)
{
    Arith      *A = s->c->arith;
    const Idx  *at = idx_const(A, 0);
    const Idx **stride = NEW_ARRAY(s->c->arena, const Idx *, l->buffer->ndim + 1);

    buffer_strides(s->c, l->buffer, stride);
    for (uint32_t i = 0; i < l->n; i++)
        at = idx_add(A, at, idx_mul(A, l->index[i], stride[i]));
    return at;
}

int64_t flat_step(const Idx *x, const Atom *v, int64_t cells)
{
    int64_t step = 0;

    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;
        if (a == v)
            step = x->t[i].coef;
        else if (a->kind == ATOM_DIV && idx_uses(a->a, v) &&
                 (a->k % cells || a->a->nterms != 1 || a->a->t[0].coef != 1 || a->a->c0 % cells))
            return 0;
        else if (a->kind != ATOM_DIV && a->kind != ATOM_VAR)
            return 0;
    }
    return step;
}

uint32_t sched_blocks(const Sched *s, const char **names, uint32_t max)
{
    Work     w = work((Sched *)(uintptr_t)s, NULL);
    Sites    all = blocks_in(&w, NO_SITE);
    uint32_t n = 0;
    for (uint32_t i = 0; i < all.n; i++) {
        const char *name = block_at(&w, all.at[i])->name;
        bool        seen = false;
        for (uint32_t k = 0; k < n && k < max; k++)
            seen |= names[k] == name;
        if (seen)
            continue;
        if (n < max)
            names[n] = name;
        n++;
    }
    return n < max ? n : max;
}
