/* A plan for a device: its device functions as one program, which the host's object embeds as
 * constant data and opens when the model is opened. */
#include "backends/common/device.h"
#include "tvmcc/abi.h"

#include <string.h>

const char *device_symbol(Ctx *c, const char *func)
{
    size_t n = strlen(func);
    char  *name = arena_dup(c->arena, func, n + 1);

    for (size_t i = 0; i < n; i++)
        if (!((name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z') ||
              (name[i] >= '0' && name[i] <= '9')))
            name[i] = '_';
    return arena_printf(c->arena, "k_%s", name);
}

static DeviceKernel kernel_of(Ctx *c, const Device *d, const Func *f)
{
    DeviceKernel k = {.func = f->name,
                      .symbol = d->symbol ? d->symbol(c, f->name) : device_symbol(c, f->name)};
    const Idx   *axis[AXIS_COUNT];

    for (uint32_t i = 0; i < f->nparams; i++) {
        k.buffers += f->params[i].buffer != NULL;
        k.value_bytes += 8; /* a number, or the offset of a buffer */
    }
    func_axes(c, f, axis);
    for (int i = 0; i < 3; i++) {
        const Idx *n = axis[AXIS_THREAD_X + i];
        k.threads[i] = !n ? 1 : idx_is_const(n, NULL) ? (uint32_t)n->lo : 0;
    }
    k.shared_bytes = (uint32_t)func_shared_bytes(c, f);
    return k;
}

static bool in_word(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
           ch == '_';
}

/* A blank between these parts no two tokens. */
static bool needs_no_blank(char before, char after)
{
    static const char signs[] = "+-*/&|<>=";

    return after && !(in_word(before) && in_word(after)) &&
           !(strchr(signs, before) && strchr(signs, after));
}

/* The text without blanks that mean nothing: it is shipped, and nobody reads it there.  Lines stay,
 * for messages of the driver; those of the preprocessor are left alone. */
static void compact(const char *text, size_t n, StrBuf *out)
{
    bool directive = false;

    for (size_t i = 0; i < n; i++) {
        bool first = !out->n || out->at[out->n - 1] == '\n';

        if (text[i] == ' ' &&
            (first || (!directive && needs_no_blank(out->at[out->n - 1], text[i + 1]))))
            continue;
        directive = first ? text[i] == '#' : directive;
        str_addc(out, text[i]);
    }
}

bool device_text_image(Ctx *c, const Device *d, const TirModule *m, DeviceImages *out)
{
    StrBuf      text = strbuf(c->arena), shipped = strbuf(c->arena);
    DeviceImage image = {.form = TVMCC_CODE_SOURCE, .target = ""};

    if (!d->source(c, m, &text))
        return false;
    compact(text.at, text.n, &shipped);
    Bytes all = {(const uint8_t *)shipped.at, shipped.n};
    image.parts = (BytesList){1, DUP_ARRAY(c->arena, &all, 1)};
    vec_push(c->arena, out, image);
    return true;
}

bool device_code(Ctx *c, const Plan *p, const CodegenOptions *o, DeviceCode *out)
{
    const Device *d = p->target->backend->device;
    VEC(DeviceKernel) kernels = {0};

    *out = (DeviceCode){.kind = d->kind,
                        .target = p->target->text,
                        .options = d->options,
                        .arena_bytes = p->arena_bytes};
    for (uint32_t i = 0; i < p->tir->nfuncs; i++)
        if (p->tir->funcs[i]->kind == FUNC_DEVICE)
            vec_push(c->arena, &kernels, kernel_of(c, d, p->tir->funcs[i]));
    out->nkernels = kernels.n;
    out->kernels = kernels.at;
    return d->images && !o->device_text ? d->images(c, p->tir, p->target, o, &out->images)
                                        : device_text_image(c, d, p->tir, &out->images);
}

/* What is loaded is the host's code. */
Jit *device_jit_load(Ctx *c, const Target *t, Bytes object)
{
    return t->host->backend->jit_load(c, t->host, object);
}

void *device_jit_symbol(Jit *j, const char *func)
{
    return backend_cpu()->jit_symbol(j, func);
}

void device_jit_free(Jit *j)
{
    backend_cpu()->jit_free(j);
}
