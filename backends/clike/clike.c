/* Statements, and the function around them.
 *
 * Loop variables are i<n>, buffers b<n>, numbered in order of appearance, so that equal functions
 * have equal text. */
#include "backends/clike/impl.h"
#include "ir/tir/intrin.h"

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
    for (int i = 0; i < x->depth; i++)
        str_add(x->out, "    ");
}

static const char *index_text(Clike *x, const Idx *i)
{
    StrBuf s = strbuf(x->c->arena);

    clike_index(x, i, &s);
    return s.at;
}

static void print_stmt(Clike *x, const Stmt *s);

static void block(Clike *x, const Stmt *s)
{
    str_add(x->out, "{\n");
    x->depth++;
    print_stmt(x, s);
    x->depth--;
    clike_indent(x);
    str_add(x->out, "}\n");
}

static void print_for(Clike *x, const Stmt *s)
{
    const LoopData *l = &s->u.loop;
    uint32_t        v = clike_var(x, l->var);

    clike_fresh(x);
    clike_indent(x);
    if (l->bind) {
        str_printf(x->out, "const %s i%u = ", x->d->index_type, v);
        if (!idx_is_const(l->lo, NULL) || l->lo->lo)
            str_printf(x->out, "%s + ", index_text(x, l->lo));
        str_printf(x->out, "%s;\n", x->d->axis(l->bind));
        if (l->extent == x->axis[l->bind]) {
            print_stmt(x, s->kids[0]);
        } else { /* the launch is sized by another loop */
            clike_indent(x);
            str_printf(x->out, "if (%s < %s) ", x->d->axis(l->bind), index_text(x, l->extent));
            block(x, s->kids[0]);
        }
        return;
    }
    const char *lo = index_text(x, l->lo);
    bool        zero = idx_is_const(l->lo, NULL) && !l->lo->lo;
    str_printf(x->out, "for (%s i%u = %s; i%u < %s%s%s; i%u++) ", x->d->index_type, v, lo, v,
               zero ? "" : lo, zero ? "" : " + ", index_text(x, l->extent), v);
    block(x, s->kids[0]);
}

static void print_if(Clike *x, const Stmt *s)
{
    clike_fresh(x);
    const char *cond = clike_expression(x, s->u.cond);
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
    print_stmt(x, s->kids[0]);
    x->depth--;
    clike_indent(x);
    str_add(x->out, "}\n");
}

static void print_array(Clike *x, const Buffer *b, uint32_t n, int64_t elems, int64_t origin)
{
    const char *space = b->scope == SCOPE_SHARED ? x->d->space(SCOPE_SHARED, true) : "";
    const char *type = clike_type(x, b->dtype), *gap = *space ? " " : "";

    str_printf(x->out, "{ %s%s%s %s%u[%lld];\n", space, gap, type, origin ? "s" : "b", n,
               (long long)(elems > 0 ? elems : 1));
    if (!origin)
        return;
    clike_indent(x); /* cell 0 of the interior */
    str_printf(x->out, "  %s%s%s *b%u = s%u + %lld;\n", space, gap, type, n, n, (long long)origin);
}

static void print_alloc(Clike *x, const Stmt *s)
{
    const Buffer *b = s->u.buffer;
    int64_t       elems = 1, origin = 0;
    uint32_t      n = clike_buffer(x, b);

    buffer_size(x->c, b, &elems, &origin);
    clike_indent(x);
    if (b->scope == SCOPE_SHARED && b->ndim) { /* at the outermost level of the kernel */
        str_printf(x->out, "%s %s b%u[%lld];\n", x->d->space(SCOPE_SHARED, true),
                   clike_type(x, b->dtype), n, (long long)elems);
        print_stmt(x, s->kids[0]);
        return;
    }
    if (b->ndim == 0)
        str_printf(x->out, "{ %s b%u;\n", clike_type(x, b->dtype), n);
    else
        print_array(x, b, n, elems, origin);
    x->depth++;
    print_stmt(x, s->kids[0]);
    x->depth--;
    clike_indent(x);
    str_add(x->out, "}\n");
}

static void print_store(Clike *x, const StoreData *d)
{
    clike_fresh(x);
    const char *value = clike_expression(x, d->value);
    clike_indent(x);
    if (d->mask)
        clike_type(x, dtype_lanes(d->value->dtype, 2)); /* records the error: no masks */
    if (d->n == 0)
        str_printf(x->out, "b%u%s = %s;\n", clike_buffer(x, d->buffer), clike_cell(x, d->buffer),
                   value);
    else
        str_printf(x->out, "b%u[%s] = %s;\n", clike_buffer(x, d->buffer),
                   index_text(x, d->index[0]), value);
}

static void print_seq(Clike *x, const Stmt *s)
{
    for (uint32_t i = 0; i < s->nkids; i++) {
        const Stmt *k = s->kids[i];

        if (k->kind == STMT_FOR && k->u.loop.bind) { /* its variable's scope */
            clike_indent(x);
            block(x, k);
        } else {
            print_stmt(x, k);
        }
    }
}

static void print_stmt(Clike *x, const Stmt *s)
{
    switch (s->kind) {
    case STMT_SEQ: print_seq(x, s); return;
    case STMT_FOR: print_for(x, s); return;
    case STMT_IF: print_if(x, s); return;
    case STMT_WHILE: print_while(x, s); return;
    case STMT_ALLOC: print_alloc(x, s); return;
    case STMT_STORE: print_store(x, &s->u.store); return;
    case STMT_PREFETCH: return; /* threads of a device hide what they wait for */
    case STMT_BARRIER:
        clike_indent(x);
        str_printf(x->out, "%s\n", x->d->barrier);
        return;
    case STMT_RETURN:
        clike_indent(x);
        str_add(x->out, "return;\n");
        return;
    case STMT_BLOCK:
    case STMT_CALL:
    case STMT_REGION:
    case STMT_LAUNCH:
    case STMT_COPY:
    case STMT_VIEW:
    case STMT_INVOKE:
    case STMT_SWITCH:
    case STMT_FAIL:
        BUG("%s: a statement of kind %d in device kernel '%s'", x->d->name, (int)s->kind,
            x->f->name);
    }
}

bool clike_kernel(Ctx *c, const ClikeDialect *d, const Func *f, const char *name, StrBuf *out)
{
    f = intrins_expand(c, f); /* no dialect has instructions of its own */

    Clike  x = {.c = c, .d = d, .f = f, .depth = 1, .numbers = map_new(c->arena)};
    StrBuf body = strbuf(c->arena);

    func_axes(f, x.axis);
    str_printf(out, "%s %s(", d->kernel_prefix, name);
    for (uint32_t i = 0; i < f->nparams; i++) {
        const Param *p = &f->params[i];
        if (i)
            str_add(out, ", ");
        if (p->scalar) {
            str_printf(out, "const %s i%u", d->index_type, clike_var(&x, p->scalar));
            continue;
        }
        uint32_t    b = clike_buffer(&x, p->buffer);
        const char *space = d->space(p->buffer->scope, p->written),
                   *type = clike_type(&x, p->buffer->dtype);
        str_printf(out, "%s %s *%s p%u, const %s o%u", space, type, d->noalias, b, d->index_type,
                   b);
        str_printf(&body, "    %s %s *b%u = (%s %s *)((%s char *)p%u + o%u);\n", space, type, b,
                   space, type, space, b, b);
    }
    str_add(out, ")\n{\n");
    x.out = &body;
    print_stmt(&x, f->body);
    if (body.n)
        str_addn(out, body.at, body.n);
    str_add(out, "}\n\n");
    return !x.failed;
}
