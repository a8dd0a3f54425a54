/* The nest as a list: where statements lie, who encloses whom, and what names denote. */
#include "ir/sched/impl.h"

#include <stdlib.h>
#include <string.h>

static void add_sites(Work *w, const Stmt *s, uint32_t parent)
{
    uint32_t at = w->nest.n;
    vec_push(w->c->scratch, &w->nest, ((Site){s, parent, 0}));
    if (s->kind != STMT_BLOCK)
        for (uint32_t i = 0; i < s->nkids; i++)
            add_sites(w, s->kids[i], at);
    w->nest.at[at].end = w->nest.n;
}

Work work(Sched *s, const Step *st)
{
    Work w = {
        .s = s, .c = s->c, .st = st, .edits = map_new(s->c->scratch), .f = s->f, .exact = true};
    add_sites(&w, s->f->body, NO_SITE);
    return w;
}

const Func *refuse(Work *w, const char *fmt, ...)
{
    StrBuf  out = strbuf(w->c->arena);
    va_list ap;

    str_add(&out, "refused: ");
    step_print(w->c, w->st, &out);
    str_add(&out, ": ");
    va_start(ap, fmt);
    str_vprintf(&out, fmt, ap);
    va_end(ap);
    if (!w->s->refusal)
        w->s->refusal = out.at;
    return NULL;
}

void edit(Work *w, const Stmt *was, const Stmt *now)
{
    map_put(w->edits, PTR_KEY(was), (void *)(uintptr_t)now);
}

/* An empty loop or alloc is nothing. */
static const Stmt *with_kids(Ctx *c, const Stmt *s, const Stmt *const *kids)
{
    if ((s->kind == STMT_FOR || s->kind == STMT_ALLOC) && stmt_is_empty(kids[0]))
        return stmt_seq(c, 0, NULL);
    return stmt_with_kids(c, s, kids);
}

static const Stmt *apply_edits(Work *w, const Stmt *s)
{
    const Stmt *now = map_get(w->edits, PTR_KEY(s));
    if (now)
        return now;
    if (s->kind == STMT_BLOCK || !s->nkids)
        return s;
    const Stmt **kids = NEW_ARRAY(w->c->arena, const Stmt *, s->nkids);
    bool         same = true;
    for (uint32_t i = 0; i < s->nkids; i++) {
        kids[i] = apply_edits(w, s->kids[i]);
        same &= kids[i] == s->kids[i];
    }
    if (same)
        return s;
    return with_kids(w->c, s, kids);
}

const Stmt *body_with_edits(Work *w, uint32_t loop)
{
    return apply_edits(w, body_of(stmt_at(w, loop)));
}

/* Blocks that never run and allocs whose buffer nobody names any more. */
static const Stmt *drop_dead(Ctx *c, const Stmt *s)
{
    if (s->kind == STMT_BLOCK) {
        for (uint32_t i = 0; i < s->u.block.where.n; i++)
            if (idx_never(s->u.block.where.ge0[i]))
                return stmt_seq(c, 0, NULL);
        return s;
    }
    if (!s->nkids)
        return s;
    const Stmt **kids = NEW_ARRAY(c->arena, const Stmt *, s->nkids);
    bool         same = true;
    for (uint32_t i = 0; i < s->nkids; i++) {
        kids[i] = drop_dead(c, s->kids[i]);
        same &= kids[i] == s->kids[i];
    }
    if (s->kind == STMT_ALLOC) {
        Access a = access_of(kids[0], s->u.buffer);
        if (!a.loads && !a.stores)
            return kids[0];
    }
    return same ? s : with_kids(c, s, kids);
}

const Func *finish(Work *w)
{
    const Stmt *body = drop_dead(w->c, apply_edits(w, w->s->f->body));
    return func_with_body(w->c, w->f, body);
}

/* ---- places ----------------------------------------------------------------------------------- */

uint32_t site_of(const Work *w, const Stmt *s)
{
    for (uint32_t i = 0; i < w->nest.n; i++)
        if (w->nest.at[i].s == s)
            return i;
    return NO_SITE;
}

const Stmt *body_of(const Stmt *s)
{
    return s->kids[0];
}

Sites loops_around_site(const Work *w, uint32_t outer, uint32_t site)
{
    Sites up = {0}, down = {0};
    for (uint32_t p = w->nest.at[site].parent; p != NO_SITE && p != outer; p = w->nest.at[p].parent)
        if (stmt_at(w, p)->kind == STMT_FOR)
            vec_push(w->c->scratch, &up, p);
    for (uint32_t i = up.n; i-- > 0;)
        vec_push(w->c->scratch, &down, up.at[i]);
    return down;
}

Sites blocks_in(const Work *w, uint32_t site)
{
    Sites    out = {0};
    uint32_t from = site == NO_SITE ? 0 : site;
    uint32_t end = site == NO_SITE ? w->nest.n : w->nest.at[site].end;
    for (uint32_t i = from; i < end; i++)
        if (stmt_at(w, i)->kind == STMT_BLOCK)
            vec_push(w->c->scratch, &out, i);
    return out;
}

bool has_opaque(const Work *w, uint32_t site)
{
    Sites blocks = blocks_in(w, site);
    for (uint32_t i = 0; i < blocks.n; i++)
        if (block_at(w, blocks.at[i])->opaque)
            return true;
    return false;
}

uint32_t top_of(const Work *w, uint32_t site)
{
    uint32_t top = site;
    for (uint32_t p = site; p != NO_SITE; p = w->nest.at[p].parent)
        if (stmt_at(w, p)->kind == STMT_FOR || stmt_at(w, p)->kind == STMT_BLOCK)
            top = p;
    return top;
}

uint32_t own_nest(const Work *w, uint32_t outer, uint32_t block)
{
    uint32_t own = block;
    for (uint32_t p = block; p != NO_SITE && p != outer; p = w->nest.at[p].parent) {
        if (blocks_in(w, p).n > 1)
            break;
        if (stmt_at(w, p)->kind == STMT_FOR)
            own = p;
    }
    return own;
}

/* ---- names -------------------------------------------------------------------------------------- */

enum { ALL_COPIES = UINT32_MAX };

/* `p#1` is the second copy of `p`. */
static const char *split_copy(Work *w, const char *name, uint32_t *copy)
{
    const char *hash = strchr(name, '#');
    *copy = hash ? (uint32_t)strtoul(hash + 1, NULL, 10) : ALL_COPIES;
    return hash ? intern_n(w->c->strings, name, (size_t)(hash - name)) : name;
}

static bool ends_in(const char *full, const char *name)
{
    size_t nf = strlen(full), n = strlen(name);
    return nf > n + 1 && full[nf - n - 1] == '.' && !strcmp(full + nf - n, name);
}

static bool pick_copy(Work *w, const char *name, uint32_t copy, Sites *out)
{
    if (copy == ALL_COPIES)
        return true;
    if (copy >= out->n) {
        refuse(w, "%%%s has %u cop%s, counted from 0", name, out->n, out->n == 1 ? "y" : "ies");
        return false;
    }
    uint32_t one = out->at[copy];
    *out = (Sites){0};
    vec_push(w->c->scratch, out, one);
    return true;
}

bool loops_named(Work *w, const char *given, Sites *out)
{
    uint32_t    copy;
    const char *name = split_copy(w, given, &copy), *full = NULL;

    *out = (Sites){0};
    for (uint32_t i = 0; i < w->nest.n; i++)
        if (stmt_at(w, i)->kind == STMT_FOR && loop_at(w, i)->var->name == name)
            full = name;
    for (uint32_t i = 0; !full && i < w->nest.n; i++) {
        if (stmt_at(w, i)->kind != STMT_FOR || !ends_in(loop_at(w, i)->var->name, name))
            continue;
        full = loop_at(w, i)->var->name;
        for (uint32_t j = i + 1; j < w->nest.n; j++) {
            const char *other = stmt_at(w, j)->kind == STMT_FOR ? loop_at(w, j)->var->name : full;
            if (other != full && ends_in(other, name)) {
                refuse(w, "%%%s could be %%%s or %%%s", name, full, other);
                return false;
            }
        }
    }
    for (uint32_t i = 0; i < w->nest.n; i++)
        if (stmt_at(w, i)->kind == STMT_FOR && loop_at(w, i)->var->name == full)
            vec_push(w->c->scratch, out, i);
    if (!out->n) {
        refuse(w, "there is no loop %%%s", name);
        return false;
    }
    return pick_copy(w, name, copy, out);
}

bool blocks_named(Work *w, const char *given, Sites *out)
{
    uint32_t    copy;
    const char *name = split_copy(w, given, &copy);

    *out = (Sites){0};
    for (uint32_t i = 0; i < w->nest.n; i++) {
        if (stmt_at(w, i)->kind != STMT_BLOCK || block_at(w, i)->name != name)
            continue;
        if (block_at(w, i)->opaque) {
            refuse(w, "'%s' is hand-written", name);
            return false;
        }
        vec_push(w->c->scratch, out, i);
    }
    if (!out->n) {
        refuse(w, "there is no block '%s'", name);
        return false;
    }
    return pick_copy(w, name, copy, out);
}

const Buffer *buffer_named(Work *w, const char *name)
{
    for (uint32_t i = 0; i < w->s->f->nparams; i++) {
        const Buffer *b = w->s->f->params[i].buffer;
        if (b && !strcmp(b->name, name))
            return b;
    }
    for (uint32_t i = 0; i < w->nest.n; i++)
        if (stmt_at(w, i)->kind == STMT_ALLOC && !strcmp(stmt_at(w, i)->u.buffer->name, name))
            return stmt_at(w, i)->u.buffer;
    refuse(w, "there is no tensor %%%s", name);
    return NULL;
}

bool name_is_free(Work *w, const char *name, const Sites *except)
{
    for (uint32_t i = 0; i < w->nest.n; i++) {
        if (stmt_at(w, i)->kind != STMT_FOR || loop_at(w, i)->var->name != name)
            continue;
        bool goes = false;
        for (uint32_t k = 0; except && k < except->n; k++)
            goes |= except->at[k] == i;
        if (!goes) {
            refuse(w, "the name %%%s is taken", name);
            return false;
        }
    }
    return true;
}

const Func *drop_alloc(Work *w, const Buffer *b)
{
    for (uint32_t i = 0; i < w->nest.n; i++)
        if (stmt_at(w, i)->kind == STMT_ALLOC && stmt_at(w, i)->u.buffer == b)
            edit(w, stmt_at(w, i), body_of(stmt_at(w, i)));
    return func_with_body(w->c, w->f, apply_edits(w, w->s->f->body));
}
