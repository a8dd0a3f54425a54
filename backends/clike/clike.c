/* Statements, and the function around them.
 *
 * Where a dialect has no names for people, loop variables are i<n> and buffers b<n>, numbered in
 * order of appearance, so that equal functions have equal text. */
#include "backends/clike/impl.h"
#include "backends/common/device.h"
#include "ir/tir/intrin.h"

#include <string.h>

/* A buffer without dimensions is a variable, but a parameter is always a pointer. */
const char *clike_cell(const Clike *x, const Buffer *b)
{
    for (uint32_t i = 0; i < x->f->nparams; i++)
        if (x->f->params[i].buffer == b)
            return "[0]";
    return "";
}

void clike_indent(Clike *x)
{
    for (int i = 0; i < x->depth; i++) /* loops of devices are nested deep */
        str_add(x->out, x->program ? "    " : " ");
}

const char *clike_index_text(Clike *x, const Idx *i)
{
    StrBuf s = strbuf(x->c->arena);

    clike_index(x, i, &s);
    return s.at;
}

/* Without the parentheses around all of it. */
const char *clike_bare(const Clike *x, const char *text)
{
    size_t n = strlen(text), depth = 0;

    if (*text != '(' || text[n - 1] != ')')
        return text;
    for (size_t i = 0; i + 1 < n; i++) {
        depth += text[i] == '(';
        depth -= text[i] == ')';
        if (!depth)
            return text;
    }
    return arena_printf(x->c->arena, "%.*s", (int)n - 2, text + 1);
}

static void block(Clike *x, const Stmt *s)
{
    str_add(x->out, "{\n");
    x->depth++;
    clike_stmt(x, s, true);
    x->depth--;
    clike_indent(x);
    str_add(x->out, "}\n");
}

static void print_bound(Clike *x, const Stmt *s)
{
    const LoopData *l = &s->u.loop;

    clike_fresh(x);
    clike_indent(x);
    str_printf(x->out, "const %s %s = ", x->index, clike_var(x, l->var));
    if (!idx_is_const(l->lo, NULL) || l->lo->lo)
        str_printf(x->out, "%s + ", clike_index_text(x, l->lo));
    str_printf(x->out, "%s;\n", x->d->axis(l->bind));
    if (l->extent == x->axis[l->bind]) {
        clike_stmt(x, s->kids[0], true);
        return;
    }
    clike_indent(x); /* the launch is sized by another loop */
    str_printf(x->out, "if (%s < %s) ", x->d->axis(l->bind), clike_index_text(x, l->extent));
    block(x, s->kids[0]);
}

static void print_for(Clike *x, const Stmt *s)
{
    const LoopData *l = &s->u.loop;
    const char     *v = clike_var(x, l->var);

    clike_fresh(x);
    const Running *outer = x->running;
    const char    *along = clike_run_along(x, s);
    clike_indent(x);
    const char *lo = clike_index_text(x, l->lo);
    bool        zero = idx_is_const(l->lo, NULL) && !l->lo->lo;
    if (l->rounds && x->d->axis) { /* of a device */
        if (l->extent->hi <= l->rounds)
            map_put(x->unrolled, l->var->id, x);
        str_printf(x->out, "#pragma unroll %u\n", l->rounds);
        clike_indent(x);
    }
    str_printf(x->out, "for (%s %s = %s; %s < %s%s%s; %s++%s) ", x->index, v, lo, v, zero ? "" : lo,
               zero ? "" : " + ", clike_index_text(x, l->extent), v, along);
    block(x, s->kids[0]);
    x->running = outer;
    clike_forget(x, l->var);
}

static void print_if(Clike *x, const Stmt *s)
{
    clike_fresh(x);
    const char *cond = clike_bare(x, clike_expression(x, s->u.cond));
    clike_indent(x);
    str_printf(x->out, "if (%s) ", cond);
    block(x, s->kids[0]);
    if (s->nkids > 1) {
        clike_indent(x);
        str_add(x->out, "else ");
        block(x, s->kids[1]);
    }
}

static void print_while(Clike *x, const Stmt *s)
{
    clike_fresh(x);
    clike_indent(x);
    str_add(x->out, "for (;;) {\n");
    x->depth++;
    const char *cond = clike_expression(x, s->u.cond);
    clike_indent(x);
    str_printf(x->out, "if (!(%s)) break;\n", cond);
    clike_stmt(x, s->kids[0], true);
    x->depth--;
    clike_indent(x);
    str_add(x->out, "}\n");
}

/* Memory of an array; its name is that of cell 0 of the interior. */
static void print_array(Clike *x, const Buffer *b, int64_t elems, int64_t origin)
{
    const bool  shared = b->scope == SCOPE_SHARED && !x->program;
    const char *memory = shared ? x->d->shared : "", *space = shared ? x->d->space(b->scope, true)
                                                              : x->d->own ? x->d->own
                                                                          : "";
    const char *type = clike_cells(x, b), *name = clike_buffer(x, b), *cells = name;

    if (shared && x->in_given) {
        str_printf(x->out, "%s *const %s = (%s *)(%s + %lld);\n", type, name, type, x->d->given,
                   (long long)(shared_at(x->c, b, &x->given) + origin * dtype_bytes(b->dtype)));
        return;
    }
    if (origin)
        cells = x->program ? clike_name(x, "cells") : intern_printf(x->c->strings, "s%s", name + 1);
    if (shared && x->d->border && buffer_border(b) > SHARED_BORDER)
        x->d->border(x->out, buffer_border(b));
    str_printf(x->out, "%s%s%s %s[%lld];\n", memory, *memory ? " " : "", type, cells,
               (long long)(elems > 0 ? elems : 1));
    if (!origin)
        return;
    clike_indent(x);
    str_printf(x->out, "%s%s%s%s *%s = %s + %lld;\n", x->program ? "" : "  ", space,
               *space ? " " : "", type, name, cells, (long long)origin);
}

static bool print_matrices(Clike *x, const Buffer *b)
{
    Matrix        of = MATRIX_C;
    const Intrin *row =
        x->matrices && b->scope == SCOPE_FRAG ? matrix_row(x->matrices, b, &of) : NULL;

    if (row)
        str_printf(x->out, "%s %s[%lld];\n", x->d->matrix(row, of), clike_buffer(x, b),
                   (long long)matrix_count(x->matrices, b));
    return row != NULL;
}

static void print_local(Clike *x, const Stmt *s)
{
    const Buffer *b = s->u.buffer;
    int64_t       elems = 1, origin = 0;

    if (print_matrices(x, b))
        return;
    if (b->ndim && !buffer_size(x->c, b, &elems, &origin)) {
        error_at(x->c, E_CODEGEN, s->loc, "@%s: the size of %%%s is known only at run time",
                 x->f->name, b->name);
        x->failed = true;
    }
    if (b->ndim == 0)
        str_printf(x->out, "%s%s%s;\n", clike_cells(x, b), dtype_is_handle(b->dtype) ? "" : " ",
                   clike_buffer(x, b));
    else
        print_array(x, b, elems, origin);
}

static void print_alloc(Clike *x, const Stmt *s, bool tail)
{
    /* Behind declarations a block goes on to its end; shared memory is that of the kernel.  No two
     * variables of a kernel have one name, and compilers of devices know when each is read last:
     * hundreds of blocks in each other are more than some of them parse. */
    bool braces =
        !tail && (x->program || (s->u.buffer->ndim && s->u.buffer->scope != SCOPE_SHARED));

    clike_indent(x);
    if (braces)
        str_add(x->out, "{ ");
    print_local(x, s);
    x->depth += braces;
    clike_stmt(x, s->kids[0], true);
    x->depth -= braces;
    if (!braces)
        return;
    clike_indent(x);
    str_add(x->out, "}\n");
}

/* A function of where the result lies and of where what it reads does. */
static void print_call(Clike *x, const StoreData *d)
{
    const Prim *p = d->value;

    if (!x->d->instruction || !x->d->instruction(p->u.intrin->id)) {
        error_at(x->c, E_CODEGEN, NO_LOC, "@%s: %s has no instruction %s", x->f->name, x->d->name,
                 p->u.intrin->text);
        x->failed = true;
        return;
    }
    const Prim *where = p->kids[0]->u.load.mask; /* of a copy, else zeros */
    const char *holds = where ? clike_bare(x, clike_expression(x, where->kids[0])) : NULL;
    clike_indent(x);
    str_printf(x->out, "%s(",
               p->u.intrin->group ? clike_group(x->c, p->u.intrin, p->dtype.lanes / UNIT_NUMBERS)
                                  : clike_instruction(x->c, p->u.intrin));
    str_printf(x->out, "&%s", clike_place(x, d->buffer, d->index[0]));
    for (uint32_t i = 0; i + p->u.intrin->sums < p->nkids; i++) {
        const LoadData *from = &p->kids[i]->u.load;
        str_printf(x->out, ", &%s", clike_place(x, from->buffer, from->index[0]));
    }
    str_printf(x->out, holds ? ", %s);\n" : ");\n", holds);
}

/* A product of four warps has been started: its sums may be read once all are awaited. */
static void note_sums(Clike *x, const Buffer *b)
{
    x->started++;
    for (uint32_t i = 0; i < x->sums.n; i++)
        if (x->sums.at[i] == b)
            return;
    vec_push(x->c->arena, &x->sums, b);
}

/* Of products each is a group of the device's own: those that may go on are the ones since the
 * await before. */
static void print_await(Clike *x, const AwaitData *d)
{
    int64_t n = 0, origin;

    clike_indent(x);
    if (!d->products) {
        str_printf(x->out, "async_await(%u);\n", d->groups);
        return;
    }
    str_printf(x->out, "products_await(%u);\n", d->groups ? x->started : 0);
    x->started = 0;
    for (uint32_t i = 0; !d->groups && i < x->sums.n; i++) {
        buffer_size(x->c, x->sums.at[i], &n, &origin);
        clike_indent(x);
        str_printf(x->out, "sums_known(%s, %lld);\n", clike_buffer(x, x->sums.at[i]), (long long)n);
    }
}

static const char *matrix_name(Clike *x, const MatrixRef *r)
{
    return arena_printf(x->c->arena, "%s[%lld]", clike_buffer(x, r->buffer), (long long)r->at);
}

static void print_matrix_op(Clike *x, const MatrixOp *op)
{
    const char   *text[4] = {matrix_name(x, &op->it)};
    Matrix        of;
    const Intrin *row = matrix_row(x->matrices, op->it.buffer, &of);

    for (uint32_t i = 0; i < 2 && op->kind == MATRIX_MULTIPLY; i++)
        text[1 + i] = matrix_name(x, &op->factor[i]);
    if (op->kind == MATRIX_FILL)
        text[3] = clike_bare(x, clike_expression(x, op->value));
    else if (op->memory)
        text[3] = clike_place(x, op->memory, op->first);
    clike_indent(x);
    x->d->matrix_op(x->out, row, of, op, text);
}

/* Not a value, but a call that is told where its result goes. */
static bool is_call(const Intrin *row)
{
    return (row->warp && !row->lanes) || !row->sums;
}

static void print_store(Clike *x, const StoreData *d)
{
    const char     *name = clike_buffer(x, d->buffer);
    const MatrixOp *op = x->matrices ? matrix_op(x->matrices, d) : NULL;

    clike_fresh(x);
    if (op) {
        print_matrix_op(x, op);
        return;
    }
    if (d->value->kind == PRIM_INTRIN && is_call(d->value->u.intrin)) {
        print_call(x, d);
        if (d->value->u.intrin->group)
            note_sums(x, d->buffer);
        return;
    }
    if (d->n && clike_has_vectors(x, d->value->dtype)) {
        clike_vector_store(x, d);
        return;
    }
    if (d->n && !x->program && d->value->dtype.lanes > 1 && !d->mask) {
        clike_wide_store(x, d);
        return;
    }
    const char *value = clike_bare(x, clike_expression(x, d->value));
    clike_indent(x);
    if (d->mask)
        clike_type(x, dtype_lanes(d->value->dtype, 2)); /* records the error: no masks */
    if (d->member)
        str_printf(x->out, "%s%s%s = %s%s;\n", name, d->buffer->scope == SCOPE_STACK ? "." : "->",
                   d->member->name, d->member->type == ABI_SIZE ? "(size_t)" : "", value);
    else if (d->n == 0)
        str_printf(x->out, "%s%s = %s;\n", name, clike_cell(x, d->buffer), value);
    else
        str_printf(x->out, "%s = %s;\n", clike_place(x, d->buffer, d->index[0]), value);
}

static void print_return(Clike *x, const Stmt *s)
{
    const char *value = NULL;

    if (s->u.cond) {
        clike_fresh(x);
        value = clike_bare(x, clike_expression(x, s->u.cond));
    }
    clike_indent(x);
    str_printf(x->out, value ? "return %s;\n" : "return;\n", value);
}

static bool is_bound(const Stmt *s)
{
    return s->kind == STMT_FOR && s->u.loop.bind;
}

static void print_seq(Clike *x, const Stmt *s, bool tail)
{
    for (uint32_t i = 0; i < s->nkids; i++) {
        if (is_bound(s->kids[i])) { /* its variable's scope */
            clike_indent(x);
            block(x, s->kids[i]);
        } else {
            clike_stmt(x, s->kids[i], tail && i + 1 == s->nkids);
        }
    }
}

void clike_stmt(Clike *x, const Stmt *s, bool tail)
{
    switch (s->kind) {
    case STMT_SEQ: print_seq(x, s, tail); return;
    case STMT_FOR:
        if (is_bound(s))
            print_bound(x, s);
        else
            print_for(x, s);
        return;
    case STMT_IF: print_if(x, s); return;
    case STMT_WHILE: print_while(x, s); return;
    case STMT_ALLOC: print_alloc(x, s, tail); return;
    case STMT_STORE: print_store(x, &s->u.store); return;
    case STMT_PREFETCH: return; /* a hint: devices hide what they wait for, C has no word for it */
    case STMT_BARRIER:
        clike_indent(x);
        str_printf(x->out, "%s\n", x->groups ? x->d->group_barrier : x->d->barrier);
        return;
    case STMT_AWAIT: print_await(x, &s->u.await); return;
    case STMT_RETURN: print_return(x, s); return;
    case STMT_CALL: clike_call(x, s); return;
    case STMT_VIEW: clike_view(x, s, tail); return;
    case STMT_INVOKE: clike_invoke(x, &s->u.invoke); return;
    case STMT_SWITCH: clike_switch(x, s); return;
    case STMT_BLOCK:
    case STMT_REGION:
    case STMT_LAUNCH:
    case STMT_COPY:
    case STMT_FAIL: BUG("%s: a statement of kind %d in '%s'", x->d->name, (int)s->kind, x->f->name);
    }
}

static ClikeBlock block_of(const Idx *const axis[AXIS_COUNT])
{
    ClikeBlock b = {.threads = 1};

    for (int i = 0; i < 3; i++) {
        const Idx *x = axis[AXIS_THREAD_X + i];

        b.along[i] = !x ? 1 : idx_is_const(x, NULL) ? x->lo : 0;
        b.threads *= b.along[i];
    }
    return b;
}

typedef struct {
    StrBuf  *head, *body;
    uint32_t nbuffers, nvalues;
} Params;

const char *clike_pointer(Clike *x, const Param *p)
{
    const char *space = x->d->space(p->buffer->scope, p->written);

    return arena_printf(x->c->arena, "%s%s%s *", space, *space ? " " : "",
                        clike_type(x, p->buffer->dtype));
}

static void print_value(Clike *x, Params *p, const char *name)
{
    if (x->d->slot)
        str_printf(p->body, " const %s %s = values[%u];\n", x->d->wide, name, p->nvalues++);
    else
        str_printf(p->head, "%sconst %s %s", p->head->n ? ", " : "", x->d->wide, name);
}

/* Its buffer's name is the place of its first texel. */
static void print_image(Clike *x, Params *all, const Param *p, const char *image)
{
    const ClikeTexel *t = map_get(x->images, p->buffer->id);
    const char       *b = clike_buffer(x, p->buffer);

    str_printf(all->head, "%s%s %s", all->head->n ? ", " : "", x->d->images->type, image);
    print_value(x, all, arena_printf(x->c->arena, "o%s", b + 1));
    str_printf(all->body, " const %s %s = (%s)(o%s / %u);\n", x->d->narrow, b, x->d->narrow, b + 1,
               t->lanes * t->bits / 8);
}

static void print_param(Clike *x, Params *all, const Param *p)
{
    if (p->scalar) {
        const char *var = clike_var(x, p->scalar);
        print_value(x, all, x->narrow ? arena_printf(x->c->arena, "%s_given", var) : var);
        if (x->narrow)
            str_printf(all->body, " const %s %s = (%s)%s_given;\n", x->index, var, x->index, var);
        return;
    }
    const char *b = clike_buffer(x, p->buffer), *n = b + 1, *image = clike_image(x, p->buffer);
    if (image) {
        print_image(x, all, p, image);
        return;
    }
    const char *to = clike_pointer(x, p);
    const char *space = x->d->space(p->buffer->scope, p->written);
    str_printf(all->head, "%s%s%s p%s", all->head->n ? ", " : "", to, x->d->noalias, n);
    if (x->d->slot)
        x->d->slot(all->head, all->nbuffers++);
    print_value(x, all, arena_printf(x->c->arena, "o%s", n));
    str_printf(all->body, " %s%s = (%s)((%s%schar *)p%s + o%s);\n", to, b, to, space,
               *space ? " " : "", n, n);
}

/* What stands between a kernel's parentheses; how its body finds what they give. */
static void print_params(Clike *x, StrBuf *out, StrBuf *body)
{
    StrBuf head = strbuf(x->c->arena);
    Params p = {.head = &head, .body = body};

    for (uint32_t i = 0; i < x->f->nparams; i++)
        print_param(x, &p, &x->f->params[i]);
    str_addn(out, head.at, head.n);
    if (!x->d->slot)
        return;
    str_printf(out, ", %s", x->d->values);
    x->d->slot(out, p.nbuffers);
    str_printf(out, ", %s", x->d->last);
}

static bool has_instruction(const void *user, IntrinId id)
{
    const ClikeDialect *d = user;

    return d->instruction && d->instruction(id);
}

typedef struct {
    Ctx                *c;
    const ClikeDialect *d;
} Vectors;

static bool has_vector(const void *user, DType vector, Scope scope)
{
    const Vectors *v = user;

    return v->d->vector && (scope != SCOPE_SHARED || v->d->shared_wide) &&
           v->d->vector(v->c, vector);
}

static bool find_group(void *user, const Stmt *s)
{
    bool *found = user;

    *found = *found || (is_warp_store(s) && s->u.store.value->u.intrin->group);
    return !*found;
}

bool clike_kernel(Ctx *c, const ClikeDialect *d, const Func *f, const char *name, StrBuf *out)
{
    f = plain_instructions(c, f, has_instruction, d);
    f = plain_loads(
        c,
        plain_halves(c, plain_scalars(c, f, d->shared_bytes ? d->shared_bytes : WORD), d->has_half),
        has_vector, &(Vectors){c, d});
    f = plain_wide(c, f, has_vector, &(Vectors){c, d});

    Clike  x = {.c = c,
                .d = d,
                .f = f,
                .depth = 1,
                .names = map_new(c->arena),
                .taken = map_new(c->arena),
                .order = map_new(c->arena),
                .unrolled = map_new(c->arena),
                .images = map_new(c->arena),
                .narrow = func_index_fits(f)};
    StrBuf body = strbuf(c->arena);

    if (d->matrix && !(x.matrices = find_matrices(c, f)))
        return false;
    x.in_given = d->declares && func_shared_bytes(c, f) > d->declares;
    x.index = x.narrow ? d->narrow : d->wide;
    stmt_visit(f->body, &(TirVisit){.user = &x.groups, .enter = find_group});
    func_axes(c, f, x.axis);
    if (d->images)
        d->images->find(c, f, x.images);
    d->kernel(out, block_of(x.axis));
    str_printf(out, " %s(", name);
    print_params(&x, out, &body);
    str_add(out, ")\n{\n");
    x.out = &body;
    clike_stmt(&x, f->body, true);
    if (body.n)
        str_addn(out, body.at, body.n);
    str_add(out, "}\n\n");
    return !x.failed;
}

bool clike_kernels(Ctx *c, const ClikeDialect *d, uint32_t n, const Func *const *funcs, StrBuf *out)
{
    for (uint32_t i = 0; i < n; i++)
        if (funcs[i]->kind == FUNC_DEVICE &&
            !clike_kernel(c, d, funcs[i], device_symbol(c, funcs[i]->name), out))
            return false;
    return true;
}
