/* The weights: a struct with a member for each constant, of the type in which kernels read it, so
 * that it is right whatever order of bytes a machine has.
 *
 *     static const struct {
 *         TVMCC_ALIGNED(64) float conv1_w[72];   -- at 0
 *         uint8_t gap_288[32];
 *         float conv1_b[8];                      -- at 320
 *     } net_weights = {{0.25f, ..}, {0}, {..}};
 *
 * What lies where is the plan's matter: gaps are members, and an assertion compares the sizes. */
#include "backends/c/c.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct {
    uint64_t    offset, bytes;
    const char *name;
    DType       dtype; /* bits 0: nothing reads it as cells of a type */
} Field;

typedef VEC(Field) Fields;

enum { PER_LINE = 8 };

bool c_has_weights(const Source *s)
{
    return s->o->embed_weights && !s->o->extern_weights && s->plans->weights_bytes;
}

static int by_offset(const void *a, const void *b)
{
    const Field *x = a, *y = b;

    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* The plans' constants in the order of their places, each once. */
static Fields members_of(Source *s)
{
    Fields all = {0};
    Map   *seen = map_new(s->c->arena);

    for (const Plan *p = s->plans; p; p = p->next)
        for (uint32_t i = 0; i < p->nconsts; i++) {
            const PlanConst *k = &p->consts[i];
            Field m = {k->offset, k->bytes, k->name && *k->name ? k->name : "const", {0}};

            if (!k->bytes || map_get(seen, k->offset + 1))
                continue;
            map_put(seen, k->offset + 1, seen);
            vec_push(s->c->arena, &all, m);
        }
    if (all.n)
        qsort(all.at, all.n, sizeof *all.at, by_offset);
    return all;
}

static Field *member_at(Fields *all, uint64_t offset)
{
    uint32_t from = 0, to = all->n;

    while (from + 1 < to) { /* the last that begins at or before it */
        uint32_t middle = (from + to) / 2;

        if (all->at[middle].offset <= offset)
            from = middle;
        else
            to = middle;
    }
    return all->n && all->at[from].offset <= offset &&
                   offset - all->at[from].offset < all->at[from].bytes
               ? &all->at[from]
               : NULL;
}

typedef struct {
    Source       *s;
    Fields       *all;
    const Buffer *weights;
} Calls;

static bool read_call(void *user, const Stmt *st)
{
    Calls *x = user;

    for (uint32_t i = 0; st->kind == STMT_CALL && i < st->u.call.nargs; i++) {
        const Arg  *a = &st->u.call.args[i];
        const Func *f = map_get(x->s->funcs, PTR_KEY(intern(x->s->c->strings, st->u.call.callee)));
        int64_t     at = 0;

        if (a->buffer != x->weights || (a->offset && !idx_is_const(a->offset, &at)) || !f)
            continue;
        Field *m = member_at(x->all, (uint64_t)at);
        if (m && !m->dtype.bits)
            m->dtype = f->params[i].buffer->dtype;
    }
    return true;
}

/* As what the kernels that main calls read them. */
static void find_types(Source *s, Fields *all)
{
    for (const Plan *p = s->plans; p; p = p->next) {
        const Func *host = p->tir->funcs[p->tir->nfuncs - 1];
        Calls       calls = {s, all, host->params[plan_weights_param(p)].buffer};
        TirVisit    v = {.user = &calls, .enter = read_call};

        stmt_visit(host->body, &v);
    }
}

/* The cells of bytes that are little-endian. */
static void print_cells(Source *s, const Field *m, StrBuf *out)
{
    const uint8_t *at = s->o->weights.at + m->offset;
    uint32_t       size = dtype_bytes(m->dtype);

    str_add(out, "    {");
    for (uint64_t i = 0; i < m->bytes / size; i++) {
        str_add(out, i % PER_LINE ? ", " : i ? ",\n     " : "");
        if (dtype_is_float(m->dtype)) {
            double v = dtype_get_f(m->dtype, at + i * size);

            s->nans = s->nans || (m->dtype.bits > 16 && v - v != 0);
            if (m->dtype.bits == 16)
                str_printf(out, "0x%02x%02x", at[i * size + 1], at[i * size]);
            else
                c_real(out, m->dtype, v);
        } else {
            c_dialect.integer(out, dtype_is_bool(m->dtype) ? DT_U8 : m->dtype,
                              dtype_get_i(m->dtype, at + i * size));
        }
    }
    str_add(out, "},\n");
}

/* Fields of a struct, and the numbers for them. */
static void print_members(Source *s, Fields *all, StrBuf *members, StrBuf *values)
{
    uint64_t end = 0;
    Map     *names = map_new(s->c->scratch);

    for (uint32_t i = 0; i <= all->n; i++) {
        Field      *m = i < all->n ? &all->at[i] : NULL;
        uint64_t    at = m ? m->offset : s->plans->weights_bytes;
        const char *name;

        if (at > end) {
            str_printf(members, "    uint8_t gap_%" PRIu64 "[%" PRIu64 "];\n", end, at - end);
            str_add(values, "    {0},\n");
        }
        if (!m)
            return;
        if (!m->dtype.bits || m->bytes % dtype_bytes(m->dtype))
            m->dtype = DT_U8;
        name = c_identifier(s->c->arena, m->name);
        if (map_get(names, PTR_KEY(intern(s->c->strings, name))) || str_starts(name, "gap_"))
            name = arena_printf(s->c->arena, "%s_at_%" PRIu64, name, at);
        map_put(names, PTR_KEY(intern(s->c->strings, name)), names);
        str_printf(members, "    %s%s %s[%" PRIu64 "]; /* at %" PRIu64 " */\n",
                   i ? "" : "TVMCC_ALIGNED(64) ", c_type(m->dtype), name,
                   m->bytes / dtype_bytes(m->dtype), at);
        print_cells(s, m, values);
        end = at + m->bytes;
    }
}

bool c_weights(Source *s, StrBuf *out)
{
    Fields all;
    StrBuf members = strbuf(s->c->arena), values = strbuf(s->c->arena);

    if (!c_has_weights(s))
        return true;
    if (s->o->weights.n < s->plans->weights_bytes)
        return error_at(s->c, E_CODEGEN, NO_LOC, "there are %zu bytes of weights, not %" PRIu64,
                        s->o->weights.n, s->plans->weights_bytes);
    all = members_of(s);
    find_types(s, &all);
    print_members(s, &all, &members, &values);
    str_printf(out,
               "/* The weights, as kernels read them.  What places them in memory may be said with "
               "-D,\n"
               " * such as %s_WEIGHTS_PLACE='__attribute__((section(\".flash\")))'. */\n"
               "#ifndef %s_WEIGHTS_PLACE\n#define %s_WEIGHTS_PLACE\n#endif\n\n"
               "static const struct %s__weights {\n%s} %s_weights %s_WEIGHTS_PLACE = {\n%s};\n\n"
               "TVMCC_STATIC_ASSERT(sizeof(struct %s__weights) >= %" PRIu64
               "u, %s_weights_size);\n\n",
               s->upper, s->upper, s->upper, s->o->entry, members.at, s->o->entry, s->upper,
               values.at, s->o->entry, s->plans->weights_bytes, s->o->entry);
    return true;
}
