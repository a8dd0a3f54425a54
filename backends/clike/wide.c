/* Cells side by side in a kernel of a device: one access, and nothing else that is a vector.
 *
 *     const float4 b4 = *(const float4 *)&b0[4*i0];
 *     *(float4 *)&b1[4*i0] = make_float4(f(b4.x), f(b4.y), f(b4.z), f(b4.w));
 *
 * What has been found to be such an access lies on its border (backends/common/wide.c).  Numbers
 * that make a word may be one of 32 bits instead:
 *
 *     const unsigned b4 = *(const unsigned *)&b0[4*i0];
 *     *(unsigned *)&b1[4*i0] = ((unsigned)(unsigned char)f((signed char)(b4)) | .. << 8 | ..); */
#include "backends/clike/impl.h"
#include "ir/tir/intrin.h"

static const char *space_of(Clike *x, const Buffer *b)
{
    for (uint32_t i = 0; i < x->f->nparams; i++)
        if (x->f->params[i].buffer == b)
            return x->d->space(b->scope, x->f->params[i].written);
    return x->d->space(b->scope, true);
}

/* "*(const float4 *)&b0[4*i0]" */
static void access(Clike *x, const Buffer *b, const Idx *index, DType t, StrBuf *s)
{
    const char *space = space_of(x, b);

    str_printf(s, "*(%s%s%s *)&%s", space, *space ? " " : "", clike_type(x, t),
               clike_place(x, b, index));
}

const char *clike_image(Clike *x, const Buffer *b)
{
    const ClikeTexel *t = x->images ? map_get(x->images, b->id) : NULL;

    return t ? arena_printf(x->c->arena, "p%ux%u_%s", t->lanes, t->bits, clike_buffer(x, b) + 1)
             : NULL;
}

/* "as_float4(read_imageui(p4x32_1, b1 + i0))" */
void clike_texel(Clike *x, const Prim *p, StrBuf *s)
{
    const Buffer *b = p->u.load.buffer;
    const char *at = clike_index_text(x, idx_divc(x->c->arith, p->u.load.index[0], p->dtype.lanes));

    if (!x->narrow)
        at = arena_printf(x->c->arena, "(%s)(%s)", x->d->narrow, at);
    x->d->images->read(x->c, s, p->dtype, clike_type(x, p->dtype), clike_image(x, b),
                       arena_printf(x->c->arena, "%s + %s", clike_buffer(x, b), at));
}

bool clike_is_word(const Clike *x, DType t)
{
    return !x->program && x->d->words && t.lanes > 1 && t.bits * t.lanes == 32;
}

static DType bits_of_lane(DType t)
{
    return (DType){DT_UINT, t.bits, 1};
}

/* "((unsigned)(unsigned char)" and " << 8" around a lane, with what joins it to the one before. */
static void begin_lane(Clike *x, DType t, uint32_t lane, StrBuf *s)
{
    str_printf(s, lane ? " | (%s)(%s)" : "((%s)(%s)", x->d->type(DT_U32),
               x->d->type(bits_of_lane(t)));
}

static void end_lane(DType t, uint32_t lane, StrBuf *s)
{
    if (lane)
        str_printf(s, " << %u", (unsigned)(lane * t.bits));
    if (lane + 1 == t.lanes)
        str_add(s, ")");
}

static void begin_vector(Clike *x, DType t, StrBuf *s)
{
    str_printf(s, "%s%s%s", x->d->make[0], clike_type(x, t), x->d->make[1]);
}

/* A load that lies anywhere. */
static void load_each(Clike *x, const Prim *p, StrBuf *s)
{
    const bool word = clike_is_word(x, p->dtype);

    if (!word)
        begin_vector(x, p->dtype, s);
    for (uint32_t i = 0; i < p->dtype.lanes; i++) {
        const char *cell =
            clike_place(x, p->u.load.buffer, idx_addc(x->c->arith, p->u.load.index[0], (int64_t)i));
        if (word)
            begin_lane(x, p->dtype, i, s);
        str_printf(s, i && !word ? ", %s" : "%s", cell);
        if (word)
            end_lane(p->dtype, i, s);
    }
    if (!word)
        str_add(s, ")");
}

static void one_of(Clike *x, const Prim *p, uint32_t i, StrBuf *s)
{
    if (p->kind == PRIM_FLOAT)
        x->d->real(s, dtype_lanes(p->dtype, 1), p->u.f);
    else if (p->kind == PRIM_INT)
        x->d->integer(s, dtype_lanes(p->dtype, 1), p->u.i);
    else
        clike_prim(x, p->kids[p->kind == PRIM_VEC ? i : 0], s);
}

static void each(Clike *x, const Prim *p, StrBuf *s)
{
    const bool  word = clike_is_word(x, p->dtype);
    const Prim *one = p->kind == PRIM_SPLAT ? p->kids[0] : p;

    if (word && one->kind == PRIM_INT && !one->u.i) {
        x->d->integer(s, DT_U32, 0);
        return;
    }
    if (!word)
        begin_vector(x, p->dtype, s);
    for (uint32_t i = 0; i < p->dtype.lanes; i++) {
        if (word)
            begin_lane(x, p->dtype, i, s);
        else
            str_add(s, i ? ", " : "");
        one_of(x, p, i, s);
        if (word)
            end_lane(p->dtype, i, s);
    }
    if (!word)
        str_add(s, ")");
}

/* ((signed char)(b4 >> 8)) */
static void lane_of_word(Clike *x, const Prim *p, StrBuf *s)
{
    str_printf(s, "((%s)(", clike_type(x, p->dtype));
    clike_prim(x, p->kids[0], s);
    str_printf(s, " >> %u))", (unsigned)(p->u.from[0] * p->dtype.bits));
}

const char *clike_group(Ctx *c, const Intrin *row, uint32_t units)
{
    return intern_printf(c->strings, "%s_n%u", row->text, 8 * units);
}

const char *clike_instruction(Ctx *c, const Intrin *row)
{
    if (row->lanes)
        return intern_printf(c->strings, "%s_%s", row->text, dtype_text(c, row->result.dtype));
    if (row->warp || !row->sums)
        return row->text;
    return intern_printf(c->strings, "%s_%s_%s", row->text, dtype_text(c, row->operand[0].dtype),
                         dtype_text(c, row->operand[1].dtype));
}

/* dot4_u8_i8(*(const unsigned *)&b0[4*i0], *(const unsigned *)&b1[i0], sum), warp32_sum_f32(part,
 * sum) */
void clike_sum(Clike *x, const Prim *p, StrBuf *s)
{
    uint32_t n = p->nkids - 1;

    str_printf(s, "%s(", clike_instruction(x->c, p->u.intrin));
    for (uint32_t i = 0; i < n; i++) {
        if (p->u.intrin->lanes)
            clike_prim(x, p->kids[i], s);
        else
            access(x, p->kids[i]->u.load.buffer, p->kids[i]->u.load.index[0], DT_U32, s);
        str_add(s, ", ");
    }
    clike_prim(x, p->kids[n], s);
    str_add(s, ")");
}

void clike_wide(Clike *x, const Prim *p, StrBuf *s)
{
    if (p->kind == PRIM_LOAD && !p->u.load.n) {
        str_add(s, clike_buffer(x, p->u.load.buffer));
    } else if (p->kind == PRIM_LOAD && clike_image(x, p->u.load.buffer)) {
        clike_texel(x, p, s);
    } else if (p->kind == PRIM_LOAD) {
        if (is_on_border(x->c, p->u.load.buffer, p->u.load.index, dtype_bytes(p->dtype)))
            access(x, p->u.load.buffer, p->u.load.index[0], p->dtype, s);
        else
            load_each(x, p, s);
    } else if (p->kind == PRIM_SELECT) {
        str_add(s, "(");
        clike_prim(x, p->kids[0], s);
        str_add(s, " ? ");
        clike_prim(x, p->kids[1], s);
        str_add(s, " : ");
        clike_prim(x, p->kids[2], s);
        str_add(s, ")");
    } else if (p->kind == PRIM_SHUFFLE && p->dtype.lanes == 1 &&
               clike_is_word(x, p->kids[0]->dtype)) {
        lane_of_word(x, p, s);
    } else if (p->kind == PRIM_SHUFFLE && p->dtype.lanes == 1) {
        clike_prim(x, p->kids[0], s);
        str_printf(s, ".%c", "xyzw"[p->u.from[0]]);
    } else if (p->kind == PRIM_VEC || p->kind == PRIM_SPLAT || p->kind == PRIM_INT ||
               p->kind == PRIM_FLOAT) {
        each(x, p, s);
    } else {
        BUG("%s: an expression of kind %d in lanes", x->d->name, (int)p->kind);
    }
}

void clike_wide_store(Clike *x, const StoreData *d)
{
    const char *value = clike_expression(x, d->value);
    StrBuf      s = strbuf(x->c->arena);

    access(x, d->buffer, d->index[0], d->value->dtype, &s);
    clike_indent(x);
    str_printf(x->out, "%s = %s;\n", s.at, value);
}
