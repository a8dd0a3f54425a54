/* transform_layout and elide_pad: where cells lie.
 *
 *     transform_layout %w (o, c, h, v) -> (o//16, c//8, h, v, c%8, o%16)
 *
 * Every access goes through the map.  A constant parameter changes the function's signature, and a
 * prepack function that fills the new array (ragged ends with zero) is recorded.  A guarded read
 * select(inside %w, %w[..], 0) whose other cells fall on ragged ends needs its guard no longer.
 *
 * elide_pad: a definition select(inside, %d[..], fill) only restates what the halo of %d holds; its
 * readers read %d.  An internal buffer without such a halo is given one, filled by blocks of its
 * own before anything else happens to it. */
#include "ir/sched/impl.h"

#include <math.h>
#include <string.h>

/* ---- transform_layout ------------------------------------------------------------------------------ */

enum { MAX_DIMS = 8 };

typedef struct {
    Ctx        *c;
    uint32_t    n, m;          /* old, new dimensions */
    const Atom *var[MAX_DIMS]; /* over the old extents; never of unit range */
    const Idx  *form[MAX_DIMS];
    const char *name[MAX_DIMS];
} LayoutMap;

static const Idx *map_name(void *user, const char *name, size_t n)
{
    LayoutMap *m = user;
    for (uint32_t i = 0; i < m->n; i++)
        if (strlen(m->name[i]) == n && !memcmp(m->name[i], name, n))
            return idx_atom(m->c->arith, m->var[i]);
    return NULL;
}

static const char *blanks(const char *p)
{
    while (*p == ' ' || *p == '\t')
        p++;
    return p;
}

static bool parse_layout(Work *w, const Buffer *t, LayoutMap *m)
{
    const char *p = blanks(w->st->map + 1);
    *m = (LayoutMap){.c = w->c};
    while (*p != ')') {
        const char *end = p + (*p == '%');
        p = end;
        while (*end && !strchr(" ,)\t", *end))
            end++;
        if (m->n == MAX_DIMS || m->n == t->ndim || end == p)
            return refuse(w, "%%%s has %u dimensions", t->name, t->ndim) != NULL;
        const Idx *n = t->extent[m->n];
        if (n->hi < 1)
            return refuse(w, "%%%s is empty", t->name) != NULL;
        m->name[m->n] = intern_n(w->c->strings, p, (size_t)(end - p));
        m->var[m->n] =
            atom_upto(w->c->arith, m->name[m->n], n->hi > 1 ? n : idx_const(w->c->arith, 2));
        m->n++;
        p = blanks(end);
        if (*p == ',')
            p = blanks(p + 1);
    }
    if (m->n != t->ndim)
        return refuse(w, "%%%s has %u dimensions", t->name, t->ndim) != NULL;
    p = blanks(blanks(p + 1) + 2); /* `->` was seen by the parser */
    IdxParser parser = {.name = map_name, .user = m};
    for (p = blanks(p + 1); *p != ')';) {
        const Idx *x = m->m < MAX_DIMS ? idx_parse(w->c->arith, &p, &parser) : NULL;
        p = blanks(p);
        if (!x || (*p != ',' && *p != ')'))
            return refuse(w, "the map does not parse at '%s'", p) != NULL;
        m->form[m->m++] = x;
        if (*p == ',')
            p = blanks(p + 1);
    }
    return m->m > 0 || refuse(w, "the map is empty") != NULL;
}

/* Dimensions of a symbolic size become dimensions as they are. */
static bool keeps_symbolic(Work *w, const Buffer *t, const LayoutMap *m)
{
    for (uint32_t i = 0; i < m->n; i++)
        for (uint32_t d = 0; d < m->m; d++)
            if (!idx_is_const(t->extent[i], NULL) && idx_uses(m->form[d], m->var[i]) &&
                m->form[d] != idx_atom(w->c->arith, m->var[i]))
                return refuse(w, "the size of %%%s is not constant", t->name) != NULL;
    return true;
}

/* Each old index can be had back from the new one: no two cells share a place. */
static bool is_injective(Work *w, const Buffer *t, const LayoutMap *m)
{
    const Idx *coord[MAX_DIMS], *back[MAX_DIMS];
    for (uint32_t d = 0; d < m->m; d++) {
        int64_t hi = m->form[d]->hi > m->form[d]->lo ? m->form[d]->hi : m->form[d]->lo + 1;
        coord[d] = idx_atom(w->c->arith, atom_var(w->c->arith, "cell", m->form[d]->lo, hi));
    }
    if (!invert(w->c, m->m, m->form, coord, m->n, m->var, back))
        return false;
    for (uint32_t i = 0; i < m->n; i++)
        if (!back[i] && t->extent[i]->hi > 1)
            return false;
    return true;
}

/* New index d with its range over the box of t itself: the variables of unit dimensions are wider.
 */
static const Idx *without_units(Work *w, const Buffer *t, const LayoutMap *m, uint32_t d)
{
    IdxSubst *units = subst_new(w->c->arith, w->c->scratch);
    for (uint32_t i = 0; i < m->n; i++)
        if (t->extent[i]->hi == 1)
            subst_bind(units, m->var[i], idx_const(w->c->arith, 0));
    return idx_subst(units, m->form[d]);
}

static const Idx *const *map_cells(Ctx *c, void *user, uint32_t n, const Idx *const *index)
{
    const LayoutMap *m = user;
    IdxSubst        *sub = subst_new(c->arith, c->scratch);
    const Idx      **at = NEW_ARRAY(c->arena, const Idx *, m->m);
    for (uint32_t i = 0; i < n; i++)
        subst_bind(sub, m->var[i], index[i]);
    for (uint32_t d = 0; d < m->m; d++)
        at[d] = idx_subst(sub, m->form[d]);
    return at;
}

/* Loops over a box around one block that stores `value` (over its iterators) to b[index]. */
static const Stmt *fill_nest(Ctx *c, const char *name, uint32_t n, const Atom *const *iter,
                             const Stmt *store)
{
    const Atom **var = NEW_ARRAY(c->scratch, const Atom *, n + 1);
    const Idx  **bind = NEW_ARRAY(c->arena, const Idx *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        var[i] = fresh_var(c, intern_printf(c->strings, "%s.%s", name, iter[i]->name),
                           iter[i]->hi - iter[i]->lo + 1);
        bind[i] = idx_addc(c->arith, idx_atom(c->arith, var[i]), iter[i]->lo);
    }
    BlockData   b = {.name = name, .nspatial = n, .iter = iter, .bind = bind};
    const Stmt *s = stmt_block(c, b, 1, &store, NO_LOC);
    for (uint32_t i = n; i-- > 0;)
        s = loop_of(c, var[i], LOOP_SPATIAL, s, NO_LOC);
    return s;
}

static const Atom **box_iters(Ctx *c, uint32_t n, const int64_t *lo, const int64_t *extent)
{
    const Atom **iter = NEW_ARRAY(c->arena, const Atom *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        iter[i] =
            atom_var(c->arith, intern_printf(c->strings, "i%u", i), lo[i], lo[i] + extent[i] - 1);
    return iter;
}

static const Idx **iter_index(Ctx *c, uint32_t n, const Atom *const *iter)
{
    const Idx **at = NEW_ARRAY(c->arena, const Idx *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        at[i] = idx_atom(c->arith, iter[i]);
    return at;
}

/* kind(prepack): the old array in, the new one out. */
static const Func *prepack_of(Work *w, const Buffer *was, const Buffer *now, LayoutMap *m)
{
    Ctx        *c = w->c;
    int64_t     zero[MAX_DIMS] = {0}, ext[MAX_DIMS], cells = 1, old = 1;
    const Stmt *parts[2];
    uint32_t    n = 0;
    Buffer      in = *was, out = *now;
    Param      *params = NEW_ARRAY(c->arena, Param, 2);

    in.data = NULL;
    out.scope = SCOPE_ARENA;
    const Buffer *src = buffer_copy(c, was, in), *dst = buffer_copy(c, now, out);
    for (uint32_t d = 0; d < m->m; d++)
        cells *= ext[d] = now->extent[d]->c0;
    for (uint32_t d = 0; d < m->n; d++)
        old *= was->extent[d]->c0;
    if (cells != old) {
        const Atom **iter = box_iters(c, m->m, zero, ext);
        parts[n++] =
            fill_nest(c, "ends", m->m, iter,
                      stmt_store(c, dst, iter_index(c, m->m, iter), prim_num(c, dst->dtype, 0)));
    }
    for (uint32_t d = 0; d < m->n; d++)
        ext[d] = was->extent[d]->c0;
    const Atom **iter = box_iters(c, m->n, zero, ext);
    const Idx  **at = iter_index(c, m->n, iter);
    parts[n++] = fill_nest(c, "pack", m->n, iter,
                           stmt_store(c, dst, map_cells(c, m, m->n, at), prim_load(c, src, at)));
    params[0] = (Param){.buffer = src};
    params[1] = (Param){.buffer = dst, .written = true};
    return func_new(c, (Func){.name = arena_printf(c->arena, "pack_%s", was->name),
                              .kind = FUNC_PREPACK,
                              .target = w->s->f->target,
                              .nparams = 2,
                              .params = params,
                              .body = stmt_seq(c, n, parts),
                              .loc = w->s->f->loc});
}

/* The condition says exactly that the load lies in the interior of d. */
static bool is_interior(Work *w, const Prim *cond, const Prim *load)
{
    Arith        *A = w->c->arith;
    const Buffer *d = load->u.load.buffer;
    Pred          said, meant = PRED_TRUE;
    if (!prim_pred(w->c, cond, &said))
        return false;
    Pred known = PRED_TRUE; /* in its normal form */
    known = pred_and_pred(A, w->c->arena, known, said);
    for (uint32_t i = 0; i < d->ndim; i++) {
        const Idx *x = load->u.load.index[i];
        meant = pred_and(A, w->c->arena, meant, x);
        meant = pred_and(A, w->c->arena, meant, idx_addc(A, idx_sub(A, d->extent[i], x), -1));
    }
    for (uint32_t i = 0; i < meant.n; i++)
        if (!pred_implies(A, known, meant.ge0[i]))
            return false;
    for (uint32_t i = 0; i < known.n; i++)
        if (!pred_implies(A, meant, known.ge0[i]))
            return false;
    return true;
}

/* ---- guards that ragged ends make needless ---- */

typedef struct {
    Work         *w;
    const Buffer *t;
    int64_t       hi[MAX_DIMS]; /* the largest index of a guarded read */
    bool          some, strip;
} Guards;

static bool is_zero(const Prim *p)
{
    return p->kind == PRIM_FLOAT ? p->u.f == 0 && !signbit(p->u.f)
                                 : p->kind == PRIM_INT && p->u.i == 0;
}

/* select(the index lies in t, t[index], 0) with indices that are never negative. */
static bool is_guarded_read(const Guards *g, const Prim *p)
{
    const Prim *load = p->kind == PRIM_SELECT ? p->kids[1] : NULL;

    if (!load || load->kind != PRIM_LOAD || load->u.load.buffer != g->t || !is_zero(p->kids[2]))
        return false;
    for (uint32_t i = 0; i < g->t->ndim; i++)
        if (load->u.load.index[i]->lo < 0)
            return false;
    return is_interior(g->w, p->kids[0], load);
}

static const Prim *guarded_read(Ctx *c, void *user, const Prim *p)
{
    Guards *g = user;

    (void)c;
    if (!is_guarded_read(g, p))
        return p;
    if (g->strip)
        return p->kids[1];
    g->some = true;
    for (uint32_t i = 0; i < g->t->ndim; i++)
        if (p->kids[1]->u.load.index[i]->hi > g->hi[i])
            g->hi[i] = p->kids[1]->u.load.index[i]->hi;
    return p;
}

/* The body with its guards gone, where the map sends every cell that they kept out to a place of
 * its own within the new array, whose ends may grow for it: the prepack function fills them with
 * zero. */
static const Stmt *without_guards(Work *w, const Buffer *t, const LayoutMap *m, const Idx **extent)
{
    Ctx        *c = w->c;
    const Stmt *body = w->f->body;
    Guards      g = {.w = w, .t = t};
    TirMap      map = {.user = &g, .prim = guarded_read};
    Buffer      wide = *t;
    LayoutMap   wider;
    const Idx  *ext[MAX_DIMS];

    for (uint32_t i = 0; i < t->ndim; i++)
        g.hi[i] = t->extent[i]->c0 - 1;
    stmt_map(c, body, &map);
    if (!g.some)
        return body;
    for (uint32_t i = 0; i < t->ndim; i++)
        ext[i] = idx_const(c->arith, g.hi[i] + 1);
    wide.extent = ext;
    if (!parse_layout(w, &wide, &wider) || !is_injective(w, &wide, &wider))
        return body;
    const Idx *grown[MAX_DIMS];
    int64_t    cells = 1;
    for (uint32_t d = 0; d < m->m; d++) {
        const Idx *x = without_units(w, &wide, &wider, d);
        bool       few = x->hi <= 2 * extent[d]->c0 || x->hi < 64; /* or what fills a vector */
        if (x->lo < 0 || !few || !checked_mul(cells, x->hi + 1, &cells) || cells > INT32_MAX)
            return body;
        grown[d] = x->hi >= extent[d]->c0 ? idx_const(c->arith, x->hi + 1) : extent[d];
    }
    memcpy(extent, grown, m->m * sizeof *extent);
    g.strip = true;
    return stmt_map(c, body, &map);
}

const Func *step_transform_layout(Work *w)
{
    Ctx           *c = w->c;
    const StepArg *ta = step_arg(w->st, 0);
    LayoutMap      m;
    const Idx     *extent[MAX_DIMS];
    uint32_t       param = NO_SITE;

    if (!ta || !ta->name || !w->st->map)
        return refuse(w, "write `transform_layout %%t (a, b) -> (b, a)`");
    const Buffer *t = buffer_named(w, ta->name);
    if (!t)
        return NULL;
    for (uint32_t i = 0; i < w->s->f->nparams; i++)
        if (w->s->f->params[i].buffer == t)
            param = i - func_dims(w->s->f);
    if (param != NO_SITE && t->scope != SCOPE_CONST)
        return refuse(w, "%%%s is a parameter and not constant", t->name);
    if (t->halo || t->stride || t->alias)
        return refuse(w, "%%%s has a halo or shares its storage", t->name);
    if (t->pitch)
        return refuse(w, "%%%s has a pitch; align its storage afterwards", t->name);
    for (uint32_t i = 0; i < w->s->prepacks.n; i++)
        if (w->s->prepacks.at[i].param == param && param != NO_SITE)
            return refuse(w, "%%%s is packed already", t->name);
    if (has_opaque(w, 0))
        return refuse(w, "there is hand-written code");
    if (!parse_layout(w, t, &m) || !keeps_symbolic(w, t, &m))
        return NULL;
    if (!is_injective(w, t, &m))
        return refuse(w, "the map does not keep cells apart");
    int64_t cells = 1;
    for (uint32_t d = 0; d < m.m; d++) {
        const Idx  *x = without_units(w, t, &m, d);
        const Atom *same;
        if (x->lo < 0)
            return refuse(w, "new index %u can be negative", d);
        extent[d] =
            idx_is_atom(x, &same) && same->below ? same->below : idx_const(c->arith, x->hi + 1);
        if (!checked_mul(cells, x->hi + 1, &cells) || cells > INT32_MAX)
            return refuse(w, "the new array is too large");
    }
    const Stmt *body = param != NO_SITE ? without_guards(w, t, &m, extent) : w->f->body;
    Buffer      b = *t;
    b.ndim = m.m;
    b.extent = DUP_ARRAY(c->arena, extent, m.m);
    b.data = NULL;
    const Buffer *now = buffer_copy(c, t, b);
    const Func   *f = func_with_body(c, w->f, retarget(c, body, t, now, map_cells, &m));
    if (param != NO_SITE) {
        Prepack p = {.param = param, .prepack = prepack_of(w, t, now, &m), .map = w->st->map};
        vec_push(c->arena, &w->s->prepacks, p);
    }
    return with_buffer(w, f, t, now);
}

/* ---- elide_pad -------------------------------------------------------------------------------------- */

typedef struct {
    const Stmt   *block;
    const Buffer *pad;
} Elide;

static const Prim *elide_load(Ctx *c, void *user, const Prim *p)
{
    const Elide *e = user;
    if (p->kind != PRIM_LOAD || p->u.load.buffer != e->pad)
        return p;
    const BlockData *b = &e->block->u.block;
    const Prim      *load = store_of(e->block)->u.store.value->kids[1];
    IdxSubst        *sub = subst_new(c->arith, c->scratch);
    for (uint32_t i = 0; i < b->nspatial; i++)
        subst_bind(sub, b->iter[i], p->u.load.index[i]);
    return prim_subst(c, load, sub);
}

/* Blocks that store `value` to the halo of d: per dimension a slab before and one after, earlier
 * dimensions in their interior, later ones whole. */
static const Stmt *halo_nests(Ctx *c, const Buffer *d)
{
    Stmts parts = {0};
    for (uint32_t k = 0; k < d->ndim; k++)
        for (int side = 0; side < 2; side++) {
            int64_t lo[MAX_DIMS], ext[MAX_DIMS];
            for (uint32_t i = 0; i < d->ndim; i++) {
                int64_t n = d->extent[i]->c0;
                lo[i] = i > k ? -(int64_t)d->halo->lo[i] : 0;
                ext[i] = i > k ? n + d->halo->lo[i] + d->halo->hi[i] : n;
            }
            lo[k] = side ? d->extent[k]->c0 : -(int64_t)d->halo->lo[k];
            ext[k] = side ? d->halo->hi[k] : d->halo->lo[k];
            if (!ext[k])
                continue;
            const Atom **iter = box_iters(c, d->ndim, lo, ext);
            vec_push(c->scratch, &parts,
                     fill_nest(c, intern_printf(c->strings, "%s.halo", d->name), d->ndim, iter,
                               stmt_store(c, d, iter_index(c, d->ndim, iter),
                                          prim_num(c, d->dtype, d->halo->value))));
        }
    return stmt_seq(c, parts.n, parts.at);
}

static bool fill_value(const Prim *p, double *v)
{
    if (p->kind == PRIM_FLOAT)
        *v = p->u.f;
    else if (p->kind == PRIM_INT)
        *v = (double)p->u.i;
    return p->kind == PRIM_FLOAT || p->kind == PRIM_INT;
}

const Func *step_elide_pad(Work *w)
{
    Ctx           *c = w->c;
    const StepArg *ba = step_arg(w->st, 0);
    Sites          blocks, all = blocks_in(w, NO_SITE);
    uint32_t       lo[MAX_DIMS] = {0}, hi[MAX_DIMS] = {0};
    bool           covered = true, used = false, symbolic = false;
    double         fill;

    if (!ba || !ba->name)
        return refuse(w, "which block?");
    if (!blocks_named(w, ba->name, &blocks))
        return NULL;
    const Stmt *s = stmt_at(w, blocks.at[0]), *store = store_of(s);
    const Prim *v = store ? store->u.store.value : NULL;
    if (!is_pointwise(s) || v->kind != PRIM_SELECT || v->kids[1]->kind != PRIM_LOAD ||
        !fill_value(v->kids[2], &fill))
        return refuse(w, "'%s' is not select(inside, load, constant)", ba->name);
    const Buffer     *pad = store->u.store.buffer, *d = v->kids[1]->u.load.buffer;
    const Idx *const *at = v->kids[1]->u.load.index;
    if (is_param(w, pad))
        return refuse(w, "%%%s is an output", pad->name);
    if (s->u.block.nspatial != pad->ndim || d->ndim > MAX_DIMS)
        return refuse(w, "'%s' is not select(inside, load, constant)", ba->name);
    for (uint32_t i = 0; i < pad->ndim; i++) {
        const Atom *a;
        if (!idx_is_const(store->u.store.index[i], NULL) &&
            (!idx_is_atom(store->u.store.index[i], &a) || a != s->u.block.iter[i]))
            return refuse(w, "'%s' does not write cell by cell", ba->name);
    }
    if (!is_interior(w, v->kids[0], v->kids[1]))
        return refuse(w, "the condition of '%s' is not the inside of %%%s", ba->name, d->name);
    for (uint32_t i = 0; i < blocks.n; i++)
        if (!is_closed(w, blocks.at[i]) || !is_free(w, blocks.at[i]))
            return refuse(w, "'%s' depends on the loops around it", ba->name);
    for (uint32_t i = 0; i < d->ndim; i++) {
        const Idx *past = idx_sub(c->arith, at[i], d->extent[i]);
        int64_t before = at[i]->lo < 0 ? -at[i]->lo : 0, after = past->hi >= 0 ? past->hi + 1 : 0;
        symbolic |= !idx_is_const(d->extent[i], NULL);
        if (before > INT32_MAX || after > INT32_MAX)
            return refuse(w, "the padding is too large");
        lo[i] = (uint32_t)before;
        hi[i] = (uint32_t)after;
        if (before || after)
            covered &= d->halo && d->halo->lo[i] >= before && d->halo->hi[i] >= after;
    }
    if (d->halo && d->halo->value != fill)
        return refuse(w, "the halo of %%%s holds %g, '%s' fills with %g", d->name, d->halo->value,
                      ba->name, fill);
    if (!covered && is_param(w, d))
        return refuse(w, "%%%s has no halo that covers it", d->name);
    if (!covered && symbolic)
        return refuse(w, "the size of %%%s is not constant", d->name);
    if (!covered && (d->stride || d->alias))
        return refuse(w, "%%%s shares its storage", d->name);
    for (uint32_t i = 0; i < all.n; i++) {
        const Stmt *r = stmt_at(w, all.at[i]);
        Access      a = access_of(r, pad);
        if (r->u.block.name == s->u.block.name)
            continue;
        if (a.stores || a.in_index || (a.loads && r->u.block.opaque))
            return refuse(w, "'%s' does not only read %%%s", r->u.block.name, pad->name);
        if (!a.loads)
            continue;
        if (!sources_live(w, blocks.at[0], all.at[i]))
            return NULL;
        used = true;
        Elide e = {s, pad};
        edit(w, r, stmt_map(c, r, &(TirMap){.user = &e, .prim = elide_load}));
    }
    if (!used)
        return refuse(w, "nothing reads %%%s", pad->name);
    for (uint32_t i = 0; i < blocks.n; i++)
        edit(w, stmt_at(w, blocks.at[i]), stmt_seq(c, 0, NULL));
    if (covered)
        return finish(w);
    Halo     *h = NEW(c->arena, Halo);
    uint32_t *hlo = NEW_ARRAY(c->arena, uint32_t, d->ndim);
    uint32_t *hhi = NEW_ARRAY(c->arena, uint32_t, d->ndim);
    for (uint32_t i = 0; i < d->ndim; i++) {
        hlo[i] = d->halo && d->halo->lo[i] > lo[i] ? d->halo->lo[i] : lo[i];
        hhi[i] = d->halo && d->halo->hi[i] > hi[i] ? d->halo->hi[i] : hi[i];
    }
    *h = (Halo){d->ndim, fill, hlo, hhi};
    Buffer b = *d;
    b.halo = h;
    const Buffer *now = buffer_copy(c, d, b);
    /* What filled a smaller halo before goes: the new blocks fill all of it. */
    const char *name = intern_printf(c->strings, "%s.halo", d->name);
    for (uint32_t i = 0; i < all.n; i++)
        if (block_at(w, all.at[i])->name == name)
            edit(w, stmt_at(w, all.at[i]), stmt_seq(c, 0, NULL));
    return fill_first(w, with_buffer(w, finish(w), d, now), now, halo_nests(c, now));
}
