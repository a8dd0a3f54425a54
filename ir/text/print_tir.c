/* TIR as text.  Canonical: names are kept and made unique by a suffix among those visible, two
 * spaces a level, so print(parse(print(m))) gives the same bytes.  The language, of which
 * docs/ir/tir.md is the reference:
 *
 *     dim N in 1..64
 *     func @f kind(kernel) target("llvm -mcpu=haswell") (%x: f32[1,8] halo(1:1+1)=0.0 align 64,
 *         %y: f32[1,8] written, %tid in 0..255) macs 64 loc("net.onnx":12 "Conv_3") {
 *       alloc %r: f32x8[] @reg                   // to the end of the enclosing braces
 *       alloc %s: f32[4] @stack { .. }           // .. or of its own
 *       for %o < 8 reduce parallel unroll { .. }   for %i in %a .. %b : 0..7 { .. }
 *       block b [o<8=%o; c<64=%c] redundant where 1 <= %o { init %y[0,o] = 0.0 .. }
 *       %y[0,%o : 8] = %x[0,%o : 8] mask(m) when n    // lanes: reads those of m, writes those of n
 *       call @g(%x + (%o*32), %o) on0
 *     }
 *
 * Functions that a caller sees have a signature and structs (ir/tir/record.def), and data:
 *
 *     func @run kind(entry) sig(run) exported (%in: handle[1], %out: handle[1], %p: params[]) {
 *       if %p[].arena == handle(0) { return (i32(-1)) }
 *       view %x: f32[8] = %in[0]
 *       alloc %code: i32[] @reg
 *       %code[] = invoke launch %p[].launch(%p[].user, addr(@part), addr(%p[]), i32(2))
 *       switch %code[] { < 1 { .. } < 9 { .. } }      // 0, and 1 to 8
 *     }
 *     data @names exported align 8 {@name, null, u32 7, size 64, "text", hex 00ff}
 *     data @pool: pool_info {@name, size 64, u32 64, u32 1}
 *
 * Literals are f32; others are written f64(0.5), i32(7), bool as true, false; NaN by its bits,
 * nan(0x7fc00000).  i32(%o*2) is an index as a number, f32(..) of a number is a cast.  In an index,
 * read(%t[%i], 0, 9) is an integer of memory with its range.  Iterators and dims have no `%`. */
#include "ir/text/print_tir.h"

#include <inttypes.h>
#include <string.h>

/* ---- statements ---------------------------------------------------------------------------------------- */

static void print_stmts(Printer *p, const Stmt *s);
static void print_simple(Printer *p, const Stmt *s);

static void indent(Printer *p)
{
    for (int i = 0; i < p->depth; i++)
        str_add(p->out, "  ");
}

void print_loc(Printer *p, Loc loc)
{
    if (p->positional || p->bare || !loc.file)
        return;
    str_add(p->out, " loc(");
    print_quoted(p->out, ctx_path(p->c, loc.file));
    str_printf(p->out, ":%u", loc.line);
    if (loc.col)
        str_printf(p->out, ":%u", loc.col);
    if (loc.name) {
        str_add(p->out, " ");
        print_quoted(p->out, loc.name);
    }
    str_add(p->out, ")");
}

void print_buffer_type(Printer *p, const Buffer *b)
{
    StrBuf *out = p->out;

    str_printf(out, "%s[", b->record ? b->record->name : dtype_text(p->c, b->dtype));
    print_indices(p, b->ndim, b->extent);
    str_add(out, "]");
    if (b->halo) {
        bool first = true;
        str_add(out, " halo(");
        for (uint32_t i = 0; i < b->ndim; i++) {
            if (!b->halo->lo[i] && !b->halo->hi[i])
                continue;
            str_printf(out, "%s%u:%u+%u", first ? "" : ", ", i, b->halo->lo[i], b->halo->hi[i]);
            first = false;
        }
        str_add(out, ")=");
        float_print(out, DT_F64, b->halo->value);
    }
    if (b->stride) {
        str_add(out, " strides(");
        print_indices(p, b->ndim, b->stride);
        str_add(out, ")");
    }
    print_marks(p, &buffer_mark_table, b);
    if (b->alias)
        str_printf(out, " alias(%s)", print_buffer_name(p, b->alias));
    if (b->scope != SCOPE_ARENA)
        str_printf(out, " @%s", scope_text(b->scope));
}

void print_body(Printer *p, const Stmt *s)
{
    uint32_t mark = p->names.n;

    str_add(p->out, " {\n");
    p->depth++;
    print_stmts(p, s);
    p->depth--;
    printer_end_scope(p, mark);
    indent(p);
    str_add(p->out, "}");
}

static void print_range(Printer *p, int64_t lo, int64_t hi)
{
    str_printf(p->out, "%" PRId64 "..%" PRId64, lo, hi);
}

/* Of a dimension: the most may be a form. */
static void print_bounds(Printer *p, const Atom *a)
{
    str_printf(p->out, "%" PRId64 "..%s", a->lo, idx_text(p, atom_most(p->c->arith, a)));
}

static void print_for(Printer *p, const Stmt *s)
{
    const LoopData *l = &s->u.loop;
    Arith          *A = p->c->arith;
    uint32_t        mark = p->names.n;
    const Idx      *end = idx_add(A, l->lo, l->extent);
    int64_t         lo;
    const char     *from = idx_text(p, l->lo), *to = idx_text(p, end);

    str_printf(p->out, "for %s", printer_declare(p, l->var, "%", l->var->name));
    if (idx_is_const(l->lo, &lo) && lo == 0)
        str_printf(p->out, " < %s", to);
    else
        str_printf(p->out, " in %s .. %s", from, to);
    bool said = l->var->below && l->var->below == l->extent && l->lo == idx_const(A, 0);
    if (!said && (l->var->lo != l->lo->lo || l->var->hi != loop_last(end, l->lo))) {
        str_add(p->out, " : ");
        print_range(p, l->var->lo, l->var->hi);
    }
    if (l->kind != LOOP_SPATIAL)
        str_add(p->out, l->kind == LOOP_REDUCE ? " reduce" : " seq");
    print_marks(p, &loop_mark_table, l);
    print_loc(p, s->loc);
    print_body(p, s->kids[0]);
    printer_end_scope(p, mark);
}

static void print_block(Printer *p, const Stmt *s)
{
    const BlockData *b = &s->u.block;
    uint32_t         n = b->nspatial + b->nreduce + b->nseq, mark = p->names.n;
    uint32_t         last = b->nseq ? 3 : b->nreduce ? 2 : 1, part = 1;
    const char     **bind = NEW_ARRAY(p->c->scratch, const char *, n + 1);

    for (uint32_t i = 0; i < n; i++)
        bind[i] = idx_text(p, b->bind[i]);
    str_printf(p->out, "block %s [", printer_clean_name(p, b->name));
    for (uint32_t i = 0; i <= n; i++) {
        for (; part < last && i >= b->nspatial + (part > 1 ? b->nreduce : 0); part++)
            str_add(p->out, ";");
        if (i == n)
            break;
        if (i)
            str_add(p->out, p->out->at[p->out->n - 1] == ';' ? " " : ", ");
        str_add(p->out, printer_declare(p, b->iter[i], "", b->iter[i]->name));
        if (b->iter[i]->below) {
            str_printf(p->out, "<%s", idx_text(p, b->iter[i]->below));
        } else if (b->iter[i]->lo == 0) {
            str_printf(p->out, "<%" PRId64, b->iter[i]->hi + 1);
        } else {
            str_add(p->out, " in ");
            print_range(p, b->iter[i]->lo, b->iter[i]->hi);
        }
        str_printf(p->out, "=%s", bind[i]);
    }
    str_add(p->out, "]");
    if (b->redundant)
        str_add(p->out, " redundant");
    if (b->opaque)
        str_add(p->out, " opaque");
    if (b->where.n) {
        str_add(p->out, " where ");
        print_pred(p, b->where);
    }
    print_loc(p, s->loc);
    str_add(p->out, " {\n");
    p->depth++;
    for (uint32_t i = 0; i < s->nkids; i++) {
        if (i > 0 || !b->has_init) {
            print_stmts(p, s->kids[i]);
            continue;
        }
        indent(p);
        str_add(p->out, "init");
        if (s->kids[0]->kind == STMT_STORE) {
            str_add(p->out, " ");
            print_simple(p, s->kids[0]);
        } else {
            print_body(p, s->kids[0]);
        }
        str_add(p->out, "\n");
    }
    p->depth--;
    printer_end_scope(p, mark);
    indent(p);
    str_add(p->out, "}");
}

static void print_arg(Printer *p, const Arg *a)
{
    int64_t v;

    if (!a->buffer) {
        print_idx(p, a->scalar);
        return;
    }
    str_add(p->out, print_buffer_name(p, a->buffer));
    if (!a->offset || (idx_is_const(a->offset, &v) && v == 0))
        return;
    str_add(p->out, " + (");
    print_idx(p, a->offset);
    str_add(p->out, ")");
}

static void print_args(Printer *p, uint32_t n, const Arg *args)
{
    str_add(p->out, "(");
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            str_add(p->out, ", ");
        print_arg(p, &args[i]);
    }
    str_add(p->out, ")");
}

static void print_dims3(Printer *p, const char *word, const Idx *const *x)
{
    str_printf(p->out, " %s(", word);
    for (int i = 0; i < 3; i++) {
        if (i)
            str_add(p->out, ", ");
        if (x[i])
            print_idx(p, x[i]);
        else
            str_add(p->out, "1");
    }
    str_add(p->out, ")");
}

static void print_invoke(Printer *p, const InvokeData *d)
{
    StrBuf *out = p->out;

    if (d->result)
        str_printf(out, "%s[] = ", print_buffer_name(p, d->result));
    str_printf(out, "invoke %s ", d->sig->name);
    if (d->fn->kind == PRIM_SYMBOL)
        str_printf(out, "@%s", printer_clean_name(p, d->fn->u.symbol));
    else
        print_prim(p, d->fn, 0);
    str_add(out, "(");
    for (uint32_t i = 0; i < d->nargs; i++) {
        if (i)
            str_add(out, ", ");
        print_prim(p, d->args[i], 0);
    }
    str_add(out, ")");
}

static void print_switch(Printer *p, const Stmt *s)
{
    str_add(p->out, "switch ");
    print_prim(p, s->u.cases.value, 0);
    str_add(p->out, " {\n");
    p->depth++;
    for (uint32_t i = 0; i < s->nkids; i++) {
        indent(p);
        str_printf(p->out, "< %" PRId64, s->u.cases.end[i]);
        print_body(p, s->kids[i]);
        str_add(p->out, "\n");
    }
    p->depth--;
    indent(p);
    str_add(p->out, "}");
}

/* What declares a name comes after what its own line says of others. */
static const char *prim_text(Printer *p, const Prim *e)
{
    StrBuf  s = strbuf(p->c->scratch);
    StrBuf *was = p->out;

    p->out = &s;
    print_prim(p, e, 0);
    p->out = was;
    return s.at;
}

static void print_simple(Printer *p, const Stmt *s)
{
    StrBuf         *out = p->out;
    const CopyData *copy = &s->u.copy;

    switch (s->kind) {
    case STMT_FOR: print_for(p, s); return;
    case STMT_BLOCK: print_block(p, s); return;
    case STMT_WHILE:
    case STMT_IF:
        str_add(out, s->kind == STMT_IF ? "if " : "while ");
        print_prim(p, s->u.cond, 0);
        print_body(p, s->kids[0]);
        if (s->nkids > 1) {
            str_add(out, " else");
            print_body(p, s->kids[1]);
        }
        return;
    case STMT_STORE:
        if (s->u.store.member)
            print_member(p, s->u.store.buffer, s->u.store.index, s->u.store.member);
        else
            print_cell(p, s->u.store.buffer, s->u.store.index, s->u.store.value->dtype.lanes);
        str_add(out, " = ");
        print_prim(p, s->u.store.value, 0);
        if (s->u.store.mask) {
            str_add(out, " when ");
            print_prim(p, s->u.store.mask, 0);
        }
        return;
    case STMT_CALL:
        str_printf(out, "call @%s", printer_clean_name(p, s->u.call.callee));
        print_args(p, s->u.call.nargs, s->u.call.args);
        if (s->u.call.on0)
            str_add(out, " on0");
        print_loc(p, s->loc);
        return;
    case STMT_PREFETCH:
        str_add(out, "prefetch ");
        print_cell(p, s->u.prefetch.buffer, s->u.prefetch.index, 1);
        str_printf(out, " lines %u", s->u.prefetch.lines);
        return;
    case STMT_BARRIER: str_add(out, "barrier"); return;
    case STMT_AWAIT:
        str_printf(out, s->u.await.products ? "await products %u" : "await %u", s->u.await.groups);
        return;
    case STMT_REGION: {
        const Atom *v[2] = {s->u.region.tid, s->u.region.nt};
        uint32_t    mark = p->names.n;
        for (int i = 0; i < 2; i++) {
            str_printf(out, i ? ", %s in " : "region %s in ",
                       printer_declare(p, v[i], "%", v[i]->name));
            print_range(p, v[i]->lo, v[i]->hi);
        }
        print_body(p, s->kids[0]);
        printer_end_scope(p, mark);
        return;
    }
    case STMT_LAUNCH:
        str_printf(out, "launch @%s", printer_clean_name(p, s->u.launch.kernel));
        print_dims3(p, "grid", s->u.launch.grid);
        print_dims3(p, "block", s->u.launch.block);
        str_add(out, " ");
        print_args(p, s->u.launch.nargs, s->u.launch.args);
        print_loc(p, s->loc);
        return;
    case STMT_COPY:
        str_add(out, "copy ");
        print_arg(p, &copy->src);
        str_add(out, " -> ");
        print_arg(p, &copy->dst);
        str_add(out, ", ");
        print_idx(p, copy->bytes);
        str_printf(out, " bytes to %s", copy->to_device ? "device" : "host");
        return;
    case STMT_INVOKE: print_invoke(p, &s->u.invoke); return;
    case STMT_SWITCH: print_switch(p, s); return;
    case STMT_RETURN:
        str_add(out, "return");
        if (s->u.cond) {
            str_add(out, " (");
            print_prim(p, s->u.cond, 0);
            str_add(out, ")");
        }
        return;
    case STMT_FAIL: str_printf(out, "fail %d", (int)s->u.code); return;
    case STMT_SEQ:
    case STMT_VIEW:
    case STMT_ALLOC: break;
    }
    BUG("statement of kind %d", (int)s->kind);
}

/* s and what follows it to the end of the braces. */
static void print_list(Printer *p, const Stmt *s, bool last)
{
    if (s->kind == STMT_SEQ) {
        for (uint32_t i = 0; i < s->nkids; i++)
            print_list(p, s->kids[i], last && i + 1 == s->nkids);
        return;
    }
    indent(p);
    if (s->kind == STMT_ALLOC || s->kind == STMT_VIEW) {
        const Buffer *b = s->kind == STMT_VIEW ? s->u.view.buffer : s->u.buffer;
        const char   *at = s->kind == STMT_VIEW ? prim_text(p, s->u.view.at) : NULL;
        uint32_t      mark = p->names.n;
        const char   *name = printer_declare(p, b, "%", b->name);
        str_printf(p->out, "%s %s: ", at ? "view" : "alloc", name);
        print_buffer_type(p, b);
        if (at)
            str_printf(p->out, " = %s", at);
        if (last) {
            str_add(p->out, "\n");
            print_list(p, s->kids[0], true);
            return; /* the name goes with the scope */
        }
        print_body(p, s->kids[0]);
        printer_end_scope(p, mark);
    } else {
        print_simple(p, s);
    }
    str_add(p->out, "\n");
}

static void print_stmts(Printer *p, const Stmt *s)
{
    print_list(p, s, true);
}

/* ---- functions --------------------------------------------------------------------------------------- */

static void print_func(Printer *p, const Func *f)
{
    StrBuf  *out = p->out;
    uint32_t mark = p->names.n;

    str_printf(out, "func @%s kind(%s)", p->positional ? "f" : printer_clean_name(p, f->name),
               func_kind_text(f->kind));
    if (f->sig)
        str_printf(out, " sig(%s)", f->sig->name);
    if (f->exported)
        str_add(out, " exported");
    if (f->any_cpu)
        str_add(out, " any_cpu");
    if (f->target) {
        str_add(out, " target(");
        print_quoted(out, f->target->text);
        str_add(out, ")");
    }
    str_add(out, " (");
    for (uint32_t i = 0; i < f->nparams; i++) {
        const Param *q = &f->params[i];
        if (i)
            str_add(out, ", ");
        if (q->scalar) {
            str_printf(out, "%s in ", printer_declare(p, q->scalar, "%", q->scalar->name));
            print_bounds(p, q->scalar);
        } else {
            str_printf(out, "%s: ", printer_declare(p, q->buffer, "%", q->buffer->name));
            print_buffer_type(p, q->buffer);
        }
        if (q->written)
            str_add(out, " written");
    }
    str_add(out, ")");
    if (f->macs && !p->positional)
        str_printf(out, " macs %" PRId64, f->macs);
    print_loc(p, f->loc);
    p->labels = true;
    p->nlabels = 0;
    print_body(p, f->body);
    p->labels = false;
    str_add(out, "\n");
    printer_end_scope(p, mark);
}

static bool is_text(Bytes b)
{
    if (!b.n || b.at[b.n - 1])
        return false;
    for (size_t i = 0; i + 1 < b.n; i++)
        if (b.at[i] < ' ' || b.at[i] > '~')
            return false;
    return true;
}

static void print_item(Printer *p, const DataItem *x)
{
    StrBuf *out = p->out;

    if (x->size_of) {
        str_printf(out, "%s sizeof(%s)", dtype_text(p->c, abi_dtype(x->type)), x->size_of->name);
        return;
    }
    switch (x->type) {
    case ABI_HANDLE:
        str_printf(out, x->symbol ? "@%s" : "null",
                   x->symbol ? printer_clean_name(p, x->symbol) : "");
        return;
    case ABI_NONE:
    case ABI_SHA:
        if (is_text(x->bytes)) {
            print_quoted(out, (const char *)x->bytes.at);
            return;
        }
        str_add(out, "hex ");
        for (size_t i = 0; i < x->bytes.n; i++)
            str_printf(out, "%02x", x->bytes.at[i]);
        return;
    case ABI_SIZE: str_printf(out, "size %" PRId64, x->i); return;
    case ABI_I64:
    case ABI_U8:
    case ABI_U16:
    case ABI_U32:
    case ABI_I32:
    case ABI_SHARED:
    case ABI_F32:
        str_printf(out, "%s %" PRId64, dtype_text(p->c, abi_dtype(x->type)), x->i);
        return;
    }
}

static void print_data(Printer *p, const Data *d)
{
    StrBuf *out = p->out;

    str_printf(out, "data @%s", printer_clean_name(p, d->name));
    if (d->record)
        str_printf(out, ": %s", d->record->name);
    str_add(out, d->exported ? " exported" : "");
    if (d->align)
        str_printf(out, " align %u", d->align);
    str_add(out, " {");
    for (uint32_t i = 0; i < d->nitems; i++) {
        str_add(out, i ? ", " : "");
        print_item(p, &d->items[i]);
    }
    str_add(out, "}\n");
}

void printer_finish(Printer *p, StrBuf *out)
{
    StrBuf *body = p->out;

    p->out = out;
    for (uint32_t i = 0; i < p->dims.n; i++) {
        str_printf(out, "dim %s in ", print_atom_name(p, p->dims.at[i]));
        print_bounds(p, p->dims.at[i]);
        str_add(out, "\n");
    }
    if (body->n)
        str_addn(out, body->at, body->n);
}

typedef enum { FOR_READERS, FOR_MACHINES, FOR_HASHES } PrintKind;

static void print_module(Ctx *c, const TirModule *m, PrintKind kind, StrBuf *out)
{
    StrBuf  body = strbuf(c->scratch);
    Printer p = printer_new(c, &body);

    p.positional = kind == FOR_HASHES;
    p.bare = kind == FOR_MACHINES;
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        if (i)
            str_add(&body, "\n");
        print_func(&p, m->funcs[i]);
    }
    if (m->nfuncs && m->ndata)
        str_add(&body, "\n");
    for (uint32_t i = 0; i < m->ndata; i++)
        print_data(&p, &m->data[i]);
    printer_finish(&p, out);
}

void tir_print(Ctx *c, const TirModule *m, StrBuf *out)
{
    print_module(c, m, FOR_READERS, out);
}

void tir_print_bare(Ctx *c, const TirModule *m, StrBuf *out)
{
    print_module(c, m, FOR_MACHINES, out);
}

void func_print(Ctx *c, const Func *f, StrBuf *out)
{
    print_module(c, &(TirModule){.nfuncs = 1, .funcs = &f}, FOR_READERS, out);
}

const char *stmt_text(Ctx *c, const Stmt *s)
{
    StrBuf  out = strbuf(c->scratch);
    Printer p = printer_new(c, &out);

    p.fragment = true;
    print_stmts(&p, s);
    return out.n ? out.at : "";
}

void func_canonical(Ctx *c, const Func *f, StrBuf *out)
{
    print_module(c, &(TirModule){.nfuncs = 1, .funcs = &f}, FOR_HASHES, out);
}

Sha256 func_hash(Ctx *c, const Func *f)
{
    StrBuf out = strbuf(c->scratch);

    func_canonical(c, f, &out);
    return sha256((Bytes){(const uint8_t *)out.at, out.n});
}
