/* The text of a plan: what runs how often, and where everything lies. */
#include "ir/plan.h"

static void print_io(Ctx *c, const char *what, uint32_t n, const PlanIO *io, StrBuf *out)
{
    for (uint32_t i = 0; i < n; i++) {
        str_printf(out, "%s %%%s: ", what, io[i].name);
        type_print(c, io[i].type, out);
        str_add(out, "\n");
    }
}

void plan_print(Ctx *c, const Plan *p, StrBuf *out)
{
    uint64_t floor = p->arena_floor ? p->arena_floor : 1;

    str_printf(out, "plan @%s target \"%s\"\n", p->name, p->target->text);
    print_io(c, "input", p->nin, p->in, out);
    print_io(c, "output", p->nout, p->out, out);
    str_printf(out, "arena %llu bytes, %llu more a thread; lower bound %llu (%.1f %%)\n",
               (unsigned long long)p->arena_bytes, (unsigned long long)p->private_bytes,
               (unsigned long long)p->arena_floor, 100.0 * (double)p->arena_bytes / (double)floor);
    str_printf(out, "weights %llu bytes, %lld multiply-adds a run\n",
               (unsigned long long)p->weights_bytes, (long long)p->macs);
    for (uint32_t i = 0; i < p->nkernels; i++)
        str_printf(out, "kernel @%s: %llu calls, %lld multiply-adds\n", p->kernels[i].func->name,
                   (unsigned long long)p->kernels[i].calls, (long long)p->kernels[i].macs);
    for (uint32_t i = 0; i < p->nconsts; i++)
        str_printf(out, "const %llu +%llu %s%s%s\n", (unsigned long long)p->consts[i].offset,
                   (unsigned long long)p->consts[i].bytes,
                   p->consts[i].data->name ? p->consts[i].data->name : "-",
                   p->consts[i].prepack ? " packed " : "",
                   p->consts[i].prepack && p->consts[i].map ? p->consts[i].map : "");
    for (uint32_t i = 0; i < p->nslots; i++)
        str_printf(out, "slot %llu +%llu live %u..%u %s\n", (unsigned long long)p->slots[i].offset,
                   (unsigned long long)p->slots[i].bytes, p->slots[i].first, p->slots[i].last,
                   p->slots[i].name);
}

uint64_t plan_state_bytes(const Plan *p)
{
    uint64_t n = STATE_POINTERS;

    if (!p->target->host)
        return 0;
    for (uint32_t i = 0; i < p->tir->nfuncs; i++)
        n += p->tir->funcs[i]->kind == FUNC_DEVICE;
    return n * p->target->host->pointer_bits / 8;
}
