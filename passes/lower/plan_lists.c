/* What a plan lists beside its code: tensors that go in and out, values in the arena, kernels and
 * how their schedules came to be. */
#include "passes/lower/lower.h"

const PlanIO *plan_io(Ctx *c, uint32_t n, const char *const *names, const Type *const *types,
                      const ModuleIO *info)
{
    PlanIO *io = NEW_ARRAY(c->arena, PlanIO, n + 1);

    for (uint32_t i = 0; i < n; i++)
        io[i] =
            (PlanIO){names[i], types[i], info ? info[i].layout : NULL, info ? info[i].state : 0};
    return io;
}

const PlanSlot *plan_slots(Program *p, uint32_t *n)
{
    PlanSlot *s = NEW_ARRAY(p->c->arena, PlanSlot, p->slots.n + 1);

    *n = 0;
    for (uint32_t i = 0; i < p->slots.n; i++) {
        const Slot *from = p->slots.at[i];
        uint64_t    at;
        const Slot *root = slot_root(from, &at);
        if (root->place != PLACE_ARENA || root->here || !slot_is_part(from))
            continue;
        s[*n] = (PlanSlot){.name = from->name,
                           .offset = root->offset + at,
                           .bytes = from->bytes,
                           .first = from->first,
                           .last = from->last};
        if (p->open) {
            s[*n].at = idx_add(p->c->arith, root->open.offset, slot_way(p->c, from));
            s[*n].room = from->open.bytes;
        }
        ++*n;
    }
    return s;
}

const PlanKernel *plan_kernels(Kernels *k)
{
    PlanKernel *out = NEW_ARRAY(k->c->arena, PlanKernel, k->all.n + 1);

    for (uint32_t i = 0; i < k->all.n; i++) {
        const Kernel *from = k->all.at[i];
        StrBuf        text = strbuf(k->c->arena), choices = strbuf(k->c->arena),
               decisions = strbuf(k->c->arena);
        if (from->sched) {
            sched_print(from->sched, &text);
            decisions_print(from->sched, &decisions);
            decisions_explain(from->sched, &choices);
        }
        out[i] = (PlanKernel){.calls = from->calls,
                              .func = from->flat,
                              .te = from->sched ? from->sched->te : NULL,
                              .schedule = text.at,
                              .rule = from->rule,
                              .refused = from->refused.all,
                              .decisions = decisions.at,
                              .choices = choices.at,
                              .macs = from->macs,
                              .nworkloads = from->workloads.n,
                              .workloads = from->workloads.at};
    }
    return out;
}
