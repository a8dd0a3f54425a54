/* Launches in the interpreter: what threads of a device may do, and the errors of those that may
 * not: races within a block and between blocks, barriers that not all threads come to. */
#include "tests/unit/check.h"

#include "ir/tir/tir.h"
#include "ops/ops.h"

#include <string.h>

typedef struct {
    const char *body;    /* of a device function of %x: f32[16], %y: f32[16] written */
    const char *message; /* a part of the error, or "" */
    float       y[16];   /* without one: what %y holds then; %x holds 0, 1, .. 15 */
} Case;

/* Two blocks of eight threads. */
#define THREADS "for %b < 2 bind(blockIdx.x) { for %t < 8 bind(threadIdx.x) { "
#define SHARED "alloc %s: f32[8] @shared { " THREADS

static const Case cases[] = {
    {THREADS "%y[%b*8+%t] = %x[15-%b*8-%t] } }",
     "",
     {15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}},
    /* a neighbour's value, through shared memory */
    {SHARED "%s[%t] = %x[%b*8+%t] barrier %y[%b*8+%t] = %s[7-%t] } } }",
     "",
     {7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8}},
    {SHARED "%s[%t] = %x[%b*8+%t] %y[%b*8+%t] = %s[7-%t] } } }",
     "thread 4 stores to a cell of 's' that thread 3 reads, with no barrier between them",
     {0}},
    {SHARED "%s[%t] = %x[%b*8+%t] %y[%b*8+%t] = %s[%t] } } }",
     "",
     {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
    /* all threads set a cell; to the same value they may */
    {SHARED "%s[3] = 2.0 barrier %y[%b*8+%t] = %s[3] } } }",
     "",
     {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}},
    {SHARED "%s[3] = %x[%t] barrier %y[%b*8+%t] = %s[3] } } }",
     "thread 1 stores to a cell of 's' that thread 0 stores another value to",
     {0}},
    /* rounds that reuse the memory need a barrier before and one behind */
    {SHARED
     "for %k < 3 seq { barrier %s[%t] = %x[%t+%k] barrier %y[%b*8+%t] = %s[(%t+1)%8] } } } }",
     "",
     {3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5, 6, 7, 8, 9, 2}},
    {SHARED "for %k < 3 seq { %s[%t] = %x[%t+%k] barrier %y[%b*8+%t] = %s[(%t+1)%8] } } } }",
     "thread 0 stores to a cell of 's' that thread 7 reads, with no barrier between them",
     {0}},
    {SHARED "for %k < 3 seq { barrier %s[%t] = %x[%t+%k] %y[%b*8+%t] = %s[(%t+1)%8] } } } }",
     "thread 0 reads a cell of 's'",
     {0}},
    /* barriers that not all come to */
    {SHARED "if %t < 4 { barrier } %y[%b*8+%t] = 1.0 } } }",
     "a barrier that only some threads of the block come to: a condition is true for some",
     {0}},
    {SHARED "if %b < 1 { barrier } %y[%b*8+%t] = 1.0 } } }",
     "",
     {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
    {SHARED "for %k < %t + 1 { barrier } %y[%b*8+%t] = 1.0 } } }",
     "their loops have other numbers of rounds",
     {0}},
    {SHARED "if %t < 4 { return } barrier %y[%b*8+%t] = 1.0 } } }",
     "others have left it or do not come this way",
     {0}},
    {SHARED "%y[%b*8+%t] = 1.0 } } for %u < 4 bind(threadIdx.x) { barrier } }",
     "others have left it or do not come this way",
     {0}},
    /* a loop with fewer rounds than the launch has threads is a condition */
    {THREADS "%y[%b*8+%t] = 1.0 } for %u < 3 bind(threadIdx.x) { %y[%b*8+%u] = 2.0 } }",
     "",
     {2, 2, 2, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1}},
    /* nothing orders blocks */
    {THREADS "%y[%t] = %x[%b*8+%t] } }",
     "block 1 stores to a cell of 'y' that another block stores another value to in the same "
     "launch",
     {0}},
    {THREADS "%y[%b*8+%t] = 1.0 barrier %y[%b*8+%t] = %y[(%b*8+%t+8)%16] } }",
     "block 1 stores to a cell of 'y' that another block reads",
     {0}},
    /* indices beyond */
    {SHARED "%s[%t+1] = 1.0 } } }", "index 8 of dimension 0 of 's' is outside 0..7", {0}},
    /* each thread has its own of what is not shared */
    {THREADS "alloc %l: f32[2] @local { for %k < 2 { %l[%k] = %x[%t+%k] } "
             "%y[%b*8+%t] = %l[0] + %l[1] } } }",
     "",
     {1, 3, 5, 7, 9, 11, 13, 15, 1, 3, 5, 7, 9, 11, 13, 15}},
    {SHARED "alloc %l: f32[1] @local { %l[0] = %x[%t] barrier %s[%t] = %l[0] barrier "
            "%y[%b*8+%t] = %l[0] + %s[7-%t] } } } }",
     "",
     {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}},
};

/* `more`: tensors beside the two, which a kernel of many operators takes. */
static void check_case(const Case *k, uint32_t more)
{
    Arena *arena = arena_new(NULL);
    Diags *diags = diags_new(arena);
    Ctx   *c = ctx_new(arena, diags, op_table);
    Target gpu = {.text = "llvm", .max_threads = 64};
    float  x[16], y[16] = {0};
    void  *buffers[2] = {x, y};
    StrBuf said = strbuf(arena), params = strbuf(arena), args = strbuf(arena);

    for (uint32_t i = 0; i < more; i++) {
        str_printf(&params, ", %%z%u: f32[16]", i);
        str_add(&args, ", %x");
    }
    const char *text = arena_printf(
        arena,
        "func @k kind(device) target(\"llvm\") (%%x: f32[16], %%y: f32[16] written%s) { %s }\n"
        "func @h kind(host) (%%x: f32[16], %%y: f32[16] written) {\n"
        "  launch @k grid(2, 1, 1) block(8, 1, 1) (%%x, %%y%s)\n}\n",
        params.at ? params.at : "", k->body, args.at ? args.at : "");
    const TirModule *m = tir_parse(c, "launch", (Bytes){(const uint8_t *)text, strlen(text)});
    bool             ok = false;

    for (int i = 0; i < 16; i++)
        x[i] = (float)i;
    if (m) {
        Func        f = *m->funcs[0];
        const Func *both[2] = {NULL, m->funcs[1]};
        f.target = &gpu;
        both[0] = func_new(c, f);
        m = tirmod_new(c, 2, both);
        ok = tir_eval(c, m, both[1], 2, buffers, 0, NULL);
    }
    diag_print(diags, DIAG_TEXT, &said);
    check_count++;
    if (ok == !!*k->message || (!ok && !strstr(said.at ? said.at : "", k->message)) ||
        (ok && memcmp(y, k->y, sizeof y))) {
        check_failures++;
        printf("%s\n  wanted: %s\n  said: %s\n", k->body, k->message, said.at ? said.at : "");
        for (int i = 0; ok && i < 16; i++)
            printf(" %g", (double)y[i]);
        printf("\n");
    }
    ctx_free(c);
    arena_free(arena);
}

int main(void)
{
    for (size_t i = 0; i < COUNT(cases); i++)
        check_case(&cases[i], i % 2 ? 0 : 100);
    return check_result();
}
