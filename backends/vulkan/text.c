/* A module as assembly, an instruction a line, as spirv-as reads it with --preserve-numeric-ids.
 *
 *     %21 = OpIAdd %5 %19 %20 */
#include "backends/vulkan/vulkan.h"

#include <math.h>
#include <string.h>

typedef struct {
    const char *name, *form;
    uint32_t    number;
} OpRow;

static const OpRow ops[] = {
#define OP(name, number, form) {"Op" #name, form, number},
#include "backends/vulkan/spirv.def"
};

static const struct {
    char        letter;
    const char *name;
    uint32_t    value;
} enums[] = {
#define ENUM(letter, name, value) {letter, #name, value},
#define MODE(name, value) {'X', #name, value},
#define GLSL(name, number) {'I', #name, number},
#include "backends/vulkan/spirv.def"
};

typedef struct {
    Ctx     *c;
    StrBuf  *out;
    uint32_t bound;
    uint8_t *bits; /* of numeric types, by id; of floats with 128 added */
} Text;

enum { IS_FLOAT = 128 };

static const OpRow *row_of(uint32_t number)
{
    for (size_t i = 0; i < COUNT(ops); i++)
        if (ops[i].number == number)
            return &ops[i];
    BUG("a word of SPIR-V that is in no table: %u", number);
}

static void name(Text *x, char letter, uint32_t value)
{
    const bool mask = strchr("FZLO", letter) != NULL;

    if (mask && !value) {
        str_add(x->out, " None");
        return;
    }
    for (size_t i = 0; i < COUNT(enums); i++)
        if (enums[i].letter == letter && enums[i].value == value) {
            str_printf(x->out, " %s", enums[i].name);
            return;
        }
    BUG("a number of SPIR-V that is in no table: '%c' %u", letter, value);
}

/* A number of the type with that id. */
static void constant(Text *x, uint32_t type, const uint32_t *w)
{
    uint8_t  bits = x->bits[type];
    uint64_t v = w[0] | ((bits & ~IS_FLOAT) == 64 ? (uint64_t)w[1] << 32 : 0);
    double   d = dtype_get_f((bits & ~IS_FLOAT) == 64 ? DT_F64 : DT_F32, w);

    if (!(bits & IS_FLOAT))
        str_printf(x->out, " %llu", (unsigned long long)v);
    else if (d - d == 0)
        str_printf(x->out, " %a", d);
    else /* an exponent past the largest, as it is stored */
        str_printf(x->out, " %s0x1%sp+%d", signbit(d) ? "-" : "", isnan(d) ? ".8" : "",
                   (bits & ~IS_FLOAT) == 64 ? 1024 : 128);
}

static uint32_t string(Text *x, uint32_t n, const uint32_t *w)
{
    uint32_t i = 0;
    char     ch;

    str_add(x->out, " \"");
    for (; i / 4 < n && (ch = (char)(w[i / 4] >> i % 4 * 8)); i++)
        str_addc(x->out, ch);
    str_add(x->out, "\"");
    return i / 4 + 1;
}

static void operands(Text *x, const OpRow *row, uint32_t n, const uint32_t *w)
{
    const char *form = row->form;
    bool        built_in = false;

    for (uint32_t i = 0; i < n && *form; i++) {
        char f = *form;

        form += !strchr("*NW", f);
        switch (f) {
        case 'r': break; /* before the instruction */
        case 't':
        case 'i':
        case '*': str_printf(x->out, " %%%u", w[i]); break;
        case 'n':
        case 'N': str_printf(x->out, " %u", w[i]); break;
        case 'W': str_printf(x->out, " %u %%%u", w[i], w[i + 1]), i++; break;
        case 's': i += string(x, n - i, w + i) - 1; break;
        case 'c': constant(x, w[0], w + i), i = n; break;
        case 'B':
            if (built_in)
                name(x, f, w[i]);
            else
                str_printf(x->out, " %u", w[i]);
            break;
        default: name(x, f, w[i]); built_in = f == 'D' && w[i] == SpvBuiltIn;
        }
    }
}

static void instruction(Text *x, uint32_t n, const uint32_t *w)
{
    const OpRow *row = row_of(w[0] & 0xffff);
    const char  *result = strchr(row->form, 'r');

    if (result)
        str_printf(x->out, "%%%u = ", w[1 + (result - row->form)]);
    str_add(x->out, row->name);
    operands(x, row, n - 1, w + 1);
    str_addc(x->out, '\n');
    if (row->number == OpTypeInt || row->number == OpTypeFloat)
        x->bits[w[1]] = (uint8_t)(w[2] | (row->number == OpTypeFloat ? IS_FLOAT : 0));
}

void spv_text(Ctx *c, Bytes module, StrBuf *out)
{
    enum { HEAD = 5, BOUND = 3 };
    const uint32_t *w = (const uint32_t *)(const void *)module.at;
    uint32_t        n = (uint32_t)(module.n / sizeof *w), size;
    Text            x = {.c = c, .out = out, .bound = w[BOUND]};

    x.bits = NEW_ARRAY(c->arena, uint8_t, x.bound);
    for (uint32_t i = HEAD; i < n; i += size) {
        size = w[i] >> 16;
        instruction(&x, size, w + i);
    }
}
