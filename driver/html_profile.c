/* The page of `tvmcc profile --html`: kernels against their roofline, the arena over time, the
 * graph with the nodes that became hot kernels.
 *
 * A step of the host program calls one kernel.  Its place is that of the last node which was fused
 * into it; the primitive function of that call in the module after the graph passes knows them all.
 */
#include "driver/html.h"

#include <math.h>
#include <string.h>

typedef struct {
    const char *kernel;
    Loc         loc;
    double      us;
} PageStep;

typedef struct {
    const HtmlProfile *p;
    Ctx               *c;
    HtmlGraph          graph;
    VEC(PageStep) steps;
    Map *at;      /* key of a place to the first node there, plus one */
    Map *calls;   /* key of a place to the first call of a primitive function there */
    Map *kernels; /* interned name to number, plus one */
} Report;

static uint64_t place_key(Ctx *c, Loc loc)
{
    return hash_mix(PTR_KEY(intern(c->strings, loc.name ? loc.name : "")),
                    (uint64_t)loc.line << 32 | loc.col);
}

/* In the order in which the instrument callback counts them. */
static void find_steps(Report *r, const Stmt *s)
{
    for (uint32_t i = 0; i < s->nkids; i++)
        find_steps(r, s->kids[i]);
    if (s->kind != STMT_CALL && s->kind != STMT_LAUNCH)
        return;
    uint32_t i = r->steps.n;
    PageStep step = {s->kind == STMT_CALL ? s->u.call.callee : s->u.launch.kernel, s->loc,
                     i < r->p->nsteps ? r->p->step_us[i] : 0};
    vec_push(r->c->arena, &r->steps, step);
}

/* Calls of primitive functions at one place, in a list. */
typedef struct Fused {
    const Expr   *call;
    struct Fused *next;
} Fused;

static void find_fused(Report *r, const Expr *f)
{
    ExprList all = expr_post_order(r->c, f);

    for (uint32_t i = 0; i < all.n; i++) {
        const Expr *e = all.at[i];
        if (e->kind != EXPR_CALL || e->kids[0]->kind != EXPR_FUNC || !e->kids[0]->u.func.primitive)
            continue;
        Fused *x = NEW(r->c->arena, Fused);
        *x = (Fused){e, map_get(r->calls, place_key(r->c, e->loc))};
        map_put(r->calls, place_key(r->c, e->loc), x);
    }
}

/* A kernel's name begins with the operators of its function: how many of its characters agree. */
static size_t agreement(const char *kernel, ExprList ops)
{
    size_t n = 0;

    for (uint32_t i = 0; i < ops.n; i++) {
        const Op *op = call_op(ops.at[i]);
        if (!op)
            continue;
        const char *stem = strrchr(op->text, '.') ? strrchr(op->text, '.') + 1 : op->text;
        if (strncmp(kernel + n, stem, strlen(stem)) != 0)
            return n;
        n += strlen(stem);
        if (kernel[n] == '_')
            n++;
    }
    return n;
}

static void colour_place(Report *r, Loc loc, uint32_t kernel, double us, Map *done)
{
    uint32_t first = (uint32_t)(uintptr_t)map_get(r->at, place_key(r->c, loc));

    for (uint32_t i = first ? first - 1 : r->graph.nodes.n; i < r->graph.nodes.n; i++) {
        if (!html_graph_is_at(&r->graph, i, loc))
            break;
        if (!map_get(done, i + 1))
            html_graph_time(&r->graph, i, kernel, us);
        map_put(done, i + 1, r);
    }
}

static void colour_step(Report *r, const PageStep *s)
{
    uint32_t kernel =
        (uint32_t)(uintptr_t)map_get(r->kernels, PTR_KEY(intern(r->c->strings, s->kernel)));
    const Fused *best = NULL;
    size_t       most = 0;
    ExprList     ops = {0};
    Map         *done = map_new(r->c->scratch);

    if (!kernel)
        return;
    for (const Fused *x = map_get(r->calls, place_key(r->c, s->loc)); x; x = x->next) {
        ExprList all = expr_post_order(r->c, func_body(x->call->kids[0]));
        size_t   n = agreement(s->kernel, all);
        if (!best || n > most)
            best = x, most = n, ops = all;
    }
    colour_place(r, s->loc, kernel - 1, s->us, done);
    for (uint32_t i = 0; i < ops.n; i++)
        if (call_op(ops.at[i]))
            colour_place(r, ops.at[i]->loc, kernel - 1, s->us, done);
}

static void colour_graph(Report *r)
{
    const Compiled *k = &r->p->s->job.k;

    r->at = map_new(r->c->arena);
    r->calls = map_new(r->c->arena);
    r->kernels = map_new(r->c->arena);
    html_graph(r->c, k->imported, &r->graph);
    html_graph_places(&r->graph, r->at, place_key);
    for (uint32_t i = 0; i < r->p->nkernels; i++)
        map_put(r->kernels, PTR_KEY(intern(r->c->strings, r->p->kernels[i].name)),
                (void *)(uintptr_t)(i + 1));
    for (uint32_t i = 0; i < k->module->nfuncs; i++)
        find_fused(r, k->module->funcs[i].func);
    const TirModule *tir = session_plan(r->p->s)->tir;
    find_steps(r, tir->funcs[tir->nfuncs - 1]->body);
    for (uint32_t i = 0; i < r->steps.n; i++)
        colour_step(r, &r->steps.at[i]);
}

/* ---- as JSON ---- */

static void number(StrBuf *s, const char *key, double v, bool known)
{
    str_printf(s, known && isfinite(v) ? ", \"%s\": %.4f" : ", \"%s\": null", key, v);
}

/* What is not known of a product's kernels is null. */
static void kernels_json(const Report *r, StrBuf *s)
{
    const HtmlProfile *p = r->p;
    bool               known = p->s->compiled && (p->s->device || p->peak > 0);

    str_printf(s, ",\n\"total\": %.4f,\n\"kernels\": [", p->total_us);
    for (uint32_t i = 0; i < p->nkernels; i++) {
        const HtmlKernel *k = &p->kernels[i];
        bool              bound = known && !k->elsewhere && p->peak > 0 && p->bandwidth > 0;
        str_add(s, i ? ",\n{\"name\": " : "\n{\"name\": ");
        str_add_json(s, k->name);
        str_printf(s, ", \"calls\": %u, \"us\": %.4f", k->calls, k->us);
        number(s, "flops", k->flops, known);
        number(s, "bytes", k->bytes, known);
        number(s, "compute", bound ? k->flops / p->peak * 1e6 : 0, bound);
        number(s, "memory", bound ? k->bytes / p->bandwidth * 1e6 : 0, bound);
        str_add(s, ", \"nodes\": [");
        if (p->s->compiled)
            html_graph_nodes_of(&r->graph, i, s);
        str_add(s, "]}");
    }
    str_add(s, "]");
}

static void memory_json(const Plan *p, StrBuf *s)
{
    str_printf(s, ",\n\"memory\": {\"arena\": %llu, \"thread\": %llu, \"slots\": [",
               (unsigned long long)p->arena_bytes, (unsigned long long)p->private_bytes);
    for (uint32_t i = 0; i < p->nslots; i++) {
        const PlanSlot *x = &p->slots[i];
        str_add(s, i ? ",\n{\"name\": " : "\n{\"name\": ");
        str_add_json(s, x->name);
        str_printf(s, ", \"offset\": %llu, \"bytes\": %llu, \"first\": %u, \"last\": %u}",
                   (unsigned long long)x->offset, (unsigned long long)x->bytes, x->first, x->last);
    }
    str_add(s, "]}");
}

static const char *time_text(Arena *a, double us)
{
    return us < 1000 ? arena_printf(a, "%.4g \xc2\xb5s", us)
                     : arena_printf(a, "%.4g ms", us * 1e-3);
}

static void tiles(const Report *r, StrBuf *s)
{
    const HtmlProfile      *p = r->p;
    const tvmcc_model_info *info = p->s->info;
    Arena                  *a = r->c->arena;
    uint32_t                threads = p->s->params.threads;
    double                  flops = 0, weights = 0;

    for (uint32_t i = 0; i < p->nkernels; i++)
        flops += p->kernels[i].flops;
    for (uint32_t i = 0; i < info->nweights; i++)
        weights += (double)info->weights[i].bytes;
    html_tile(s, "a run", time_text(a, p->wall_us),
              arena_printf(a, "on %u thread%s", threads, threads == 1 ? "" : "s"));
    html_tile(s, "its kernels", time_text(a, p->total_us),
              arena_printf(a, "%u step%s, %s", p->nsteps, p->nsteps == 1 ? "" : "s", p->timer));
    if (p->s->compiled && p->peak > 0 && p->total_us > 0 && isfinite(flops))
        html_tile(s, "share of the peak",
                  arena_printf(a, "%.1f %%", 100 * flops / (p->total_us * 1e-6) / p->peak),
                  arena_printf(a, "of %.4g GFLOP/s", p->peak * 1e-9));
    if (p->bandwidth > 0)
        html_tile(s, "memory is read at", arena_printf(a, "%.3g GB/s", p->bandwidth * 1e-9),
                  p->s->device ? "by the model of the machine" : NULL);
    html_tile(s, "arena",
              html_bytes(a, (double)(info->arena_shared + info->arena_private * threads)), NULL);
    html_tile(s, "weights", html_bytes(a, weights), NULL);
}

bool html_profile(const HtmlProfile *p, const char *path)
{
    const Session *s = p->s;
    Report         r = {.p = p, .c = s->c};
    StrBuf         json = strbuf(s->driver->arena);
    const char    *about[2] = {s->driver->opt.inputs.at[0], s->info->targets};

    html_begin(&json, s->info->name, COUNT(about), about);
    tiles(&r, &json);
    html_end_tiles(&json);
    if (s->compiled)
        colour_graph(&r);
    kernels_json(&r, &json);
    if (s->compiled) {
        memory_json(session_plan(s), &json);
        html_graph_json(&r.graph, &json);
    }
    return html_write(s->driver, path, arena_printf(r.c->arena, "%s: profile", s->info->name),
                      &json);
}
