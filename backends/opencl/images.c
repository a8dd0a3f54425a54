/* Weights that come through a GPU's texture unit: Adreno's has a cache that pointers pass by.
 *
 *     __kernel void k(.., __read_only image1d_buffer_t p4x32_1, const long o1, ..)
 *       const int b1 = (int)(o1 / 16);
 *       .. as_float4(read_imageui(p4x32_1, b1 + i0)) ..    for  *(__global const float4 *)&b1[4*i0]
 *
 * An image is of a whole buffer, in texels of one number or of four, taken as bits.  So a parameter
 * is one where all accesses are of such a texel; weights lie on borders of 64 bytes, WEIGHTS_ALIGN.
 *
 * All else that kernels read lies in the arena, as what they write does: while a kernel writes to a
 * buffer, what an image of the same one gives is undefined, wherever in it both are. */
#include "backends/common/plain.h"
#include "backends/opencl/opencl.h"

#include <string.h>

/* A kernel may have no more on devices of the embedded profile. */
enum { MOST_IMAGES = 8, QUAD = 4 };

typedef struct {
    Ctx       *c;
    Map       *texels; /* buffer's id -> ClikeTexel */
    ClikeTexel none;   /* .. of those whose accesses are not alike */
} Reads;

static bool is_texel(const Reads *r, const Prim *p)
{
    const LoadData *l = &p->u.load;

    return p->kind == PRIM_LOAD && l->n == 1 && !l->mask && !dtype_is_bool(p->dtype) &&
           p->dtype.bits <= 32 &&
           (p->dtype.lanes == 1 ||
            (p->dtype.lanes == QUAD &&
             is_on_border(r->c, l->buffer, l->index, dtype_bytes(p->dtype))));
}

static ClikeTexel *texel_new(Ctx *c, DType t)
{
    ClikeTexel *x = NEW(c->arena, ClikeTexel);

    *x = (ClikeTexel){t.lanes, t.bits};
    return x;
}

static void see_load(Reads *r, const Prim *p, bool plain)
{
    const Buffer     *b = p->u.load.buffer;
    const ClikeTexel *t = map_get(r->texels, b->id);

    if (!plain || !is_texel(r, p) ||
        (t && (t->lanes != p->dtype.lanes || t->bits != p->dtype.bits)))
        map_put(r->texels, b->id, &r->none);
    else if (!t)
        map_put(r->texels, b->id, texel_new(r->c, p->dtype));
}

/* Operands of instructions are words of memory. */
static void see_prim(void *user, const Prim *p)
{
    for (uint32_t i = 0; p->kind == PRIM_INTRIN && i < p->nkids; i++)
        if (p->kids[i]->kind == PRIM_LOAD)
            see_load(user, p->kids[i], false);
    if (p->kind == PRIM_LOAD || p->kind == PRIM_ADDR)
        see_load(user, p, true);
}

static void find_images(Ctx *c, const Func *f, Map *out)
{
    Reads    r = {.c = c, .texels = map_new(c->scratch)};
    uint32_t n = 0;

    if (!f->target->gpu || strcmp(f->target->gpu, "adreno") != 0)
        return;
    stmt_visit(f->body, &(TirVisit){.user = &r, .prim = see_prim});
    for (uint32_t i = 0; i < f->nparams && n < MOST_IMAGES; i++) {
        const Param *p = &f->params[i];
        ClikeTexel  *t = p->buffer ? map_get(r.texels, p->buffer->id) : NULL;

        if (t && t->lanes && p->buffer->scope == SCOPE_CONST && !p->written) {
            map_put(out, p->buffer->id, t);
            n++;
        }
    }
}

static void read_texel(Ctx *c, StrBuf *s, DType t, const char *type, const char *image,
                       const char *at)
{
    const DType bits = {DT_UINT, t.bits, t.lanes};
    const char *raw = t.lanes == 1 ? clike_short_type(bits) : clike_short_vector(c, bits);

    str_printf(s, "as_%s(", type);
    if (t.bits < 32)
        str_printf(s, t.lanes == 1 ? "(%s)" : "convert_%s(", raw);
    str_printf(s, "read_imageui(%s, %s)%s%s)", image, at, t.lanes == 1 ? ".x" : "",
               t.bits < 32 && t.lanes > 1 ? ")" : "");
}

const ClikeImages opencl_images = {
    .type = "__read_only image1d_buffer_t", .find = find_images, .read = read_texel};
