/* TE as text (docs/ir/te.md), in the expressions of TIR:
 *
 *     te @conv_relu(%d: f32[1,8,56,56,8], %w: f32[64,64,3,3] @const) -> (%out) loc("net.onnx":3) {
 *       %conv[n<1,o<8,y<54,x<54,j<8]: f32 = sum[c<8,kh<3,kw<3,i<8] %d[n,c,..] * %w[o*8+j,..]
 *       %out[i0<1,..]: f32 = select(%conv[..] < 0.0, 0.0, %conv[..])
 *       scan t<9 [d<2] { %s[d<2,0<10,j<8]: f32 = 0.0  each { %s[d<2,t+1<10,j<8]: f32 = .. } }
 *       extern %y: f32[4], %h: f32[2] from (%x) { statements }
 *     }
 *
 * Canonical as TIR is: print(parse(print(f))) gives the same bytes. */
#include "ir/te/te.h"
#include "ir/text/print_tir.h"

static const char *const comb_names[] = {
    [COMB_SUM] = "sum", [COMB_PROD] = "prod", [COMB_MAX] = "max", [COMB_MAXNUM] = "maxnum",
    [COMB_MIN] = "min", [COMB_ANY] = "any",   [COMB_ALL] = "all"};

/* `[n<1,c<8]`; the names are visible until the end of the definition. */
static void print_axes(Printer *p, uint32_t n, const Atom *const *axis, const Idx *const *extent)
{
    str_add(p->out, "[");
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            str_add(p->out, ",");
        str_printf(p->out, "%s<", printer_declare(p, axis[i], "", axis[i]->name));
        print_idx(p, extent[i]);
    }
    str_add(p->out, "]");
}

static void print_extern(Printer *p, const Extern *e)
{
    str_add(p->out, "  extern ");
    for (uint32_t i = 0; i < e->nout; i++) {
        str_printf(p->out, "%s%s: ", i ? ", " : "", print_buffer_name(p, e->out[i]->buffer));
        print_buffer_type(p, e->out[i]->buffer);
    }
    str_add(p->out, " from (");
    for (uint32_t i = 0; i < e->nin; i++)
        str_printf(p->out, "%s%s", i ? ", " : "", print_buffer_name(p, e->in[i]->buffer));
    str_add(p->out, ")");
    p->depth = 1;
    print_body(p, e->body);
    str_add(p->out, "\n");
}

/* `: f32 = sum[k<8] body`; comb NULL: no reduction. */
static void print_cell_value(Printer *p, const Buffer *b, const char *comb, uint32_t nreduce,
                             const Atom *const *raxis, const Idx *const *rextent, const Prim *body)
{
    str_printf(p->out, ": %s = ", dtype_text(p->c, b->dtype));
    if (comb) {
        str_add(p->out, comb);
        print_axes(p, nreduce, raxis, rextent);
        str_add(p->out, " ");
    }
    print_prim(p, body, 0);
    str_add(p->out, "\n");
}

/* `%s[d<2,t+1<11,j<8]: f32 = ..`; axes of its own are the names that are new. */
static void print_scan_def(Printer *p, const ScanDef *d)
{
    const Buffer *b = d->t->buffer;
    uint32_t      mark = p->names.n, own = d->naxis;
    const Atom   *axis[TE_MAX_AXES] = {NULL}; /* by dimension; of unit axes, all of them 0, too */

    for (uint32_t i = b->ndim; i-- > 0 && own;)
        if (d->at[i] == idx_atom(p->c->arith, d->axis[own - 1]) &&
            b->extent[i] == d->extent[own - 1])
            axis[i] = d->axis[--own];
    str_printf(p->out, "%s%s[", d->part == SCAN_EACH ? "      " : "    ", print_buffer_name(p, b));
    for (uint32_t i = 0; i < b->ndim; i++) {
        str_add(p->out, i ? "," : "");
        if (axis[i])
            str_add(p->out, printer_declare(p, axis[i], "", axis[i]->name));
        else
            print_idx(p, d->at[i]);
        str_add(p->out, "<");
        print_idx(p, b->extent[i]);
    }
    str_add(p->out, "]");
    print_cell_value(p, b, d->reduces ? comb_names[d->comb] : NULL, d->nreduce, d->raxis,
                     d->rextent, d->body);
    printer_end_scope(p, mark);
}

static void print_scan(Printer *p, const Scan *k)
{
    uint32_t mark = p->names.n;

    str_printf(p->out, "  scan %s<", printer_declare(p, k->round, "", k->round->name));
    print_idx(p, k->rounds);
    str_add(p->out, " ");
    if (k->outer.n) {
        print_axes(p, k->outer.n, k->outer.atom, k->outer.extent);
        str_add(p->out, " ");
    }
    str_add(p->out, "{\n");
    for (ScanPart part = SCAN_START; part <= SCAN_END; part++) {
        str_add(p->out, part == SCAN_EACH ? "    each {\n" : "");
        for (uint32_t i = 0; i < k->defs.n; i++)
            if (k->defs.at[i].part == part)
                print_scan_def(p, &k->defs.at[i]);
        str_add(p->out, part == SCAN_EACH ? "    }\n" : "");
    }
    str_add(p->out, "  }\n");
    printer_end_scope(p, mark);
}

static void print_def(Printer *p, const Tensor *t)
{
    uint32_t mark = p->names.n;

    if (t->kind == TENSOR_SCAN) {
        if (t == t->scan->out.at[0])
            print_scan(p, t->scan);
        return;
    }

    if (t->kind == TENSOR_EXTERN) {
        if (t == t->ext->out[0])
            print_extern(p, t->ext);
        return;
    }
    str_printf(p->out, "  %s", print_buffer_name(p, t->buffer));
    print_axes(p, t->naxis, t->axis, t->buffer->extent);
    print_cell_value(p, t->buffer, t->kind == TENSOR_REDUCE ? comb_names[t->comb] : NULL,
                     t->nreduce, t->raxis, t->rextent, t->body);
    printer_end_scope(p, mark);
}

void te_print(Ctx *c, const TeFunc *f, StrBuf *out)
{
    StrBuf     body = strbuf(c->scratch);
    Printer    p = printer_new(c, &body);
    TensorList defs = te_defs(c, f);

    str_printf(&body, "te @%s(", printer_clean_name(&p, f->name));
    for (uint32_t i = 0; i < f->nparams; i++) {
        const Buffer *b = f->params[i]->buffer;

        str_printf(&body, "%s%s: ", i ? ", " : "", printer_declare(&p, b, "%", b->name));
        print_buffer_type(&p, b);
    }
    for (uint32_t i = 0; i < defs.n; i++)
        printer_declare(&p, defs.at[i]->buffer, "%", defs.at[i]->buffer->name);
    str_add(&body, ") -> (");
    for (uint32_t i = 0; i < f->nouts; i++)
        str_printf(&body, "%s%s", i ? ", " : "", print_buffer_name(&p, f->outs[i]->buffer));
    str_add(&body, ")");
    print_loc(&p, f->loc);
    str_add(&body, " {\n");
    for (uint32_t i = 0; i < defs.n; i++)
        print_def(&p, defs.at[i]);
    str_add(&body, "}\n");
    printer_finish(&p, out);
}
