/* What threads divide in a program, and whether it is worth to call them.
 *
 * A kernel with a parallel loop is divided within, and threads meet behind it.  In a loop over
 * parts of a batch that is once a round and kernel; but no round needs what another one wrote, so
 * that threads can divide the rounds instead:
 *
 *   for %round < 69 { call @relu(.., %tid, %nt); barrier; call @softmax(..) on 0; barrier }
 *     -> for %round in 69*%tid//%nt .. 69*(%tid+1)//%nt { call @relu(.., 0, 1); call @softmax(..) }
 *
 * They do where that saves more, in a model whose sizes are numbers.  Values of a round then lie in
 * memory that every thread has for itself (Slot.own). */
#include "machine/machine.h"
#include "passes/lower/lower.h"

int64_t func_phases(const Func *f)
{
    const Atom *phase = func_scalar(f, TIR_PHASE, NULL);

    return phase ? phase->hi + 1 : 1;
}

bool func_is_parallel(const Func *f)
{
    return func_scalar(f, TIR_TID, NULL) != NULL;
}

/* Bytes of what a kernel reads in each phase, where it has many: those are recurrent networks,
 * which stream their weights anew in every step. */
static uint64_t bytes_again(const Slot *s, int64_t meets)
{
    uint64_t at;

    return meets > 2 && slot_root(s, &at)->place == PLACE_CONST ? s->bytes : 0;
}

/* What a call takes on one thread, in nanoseconds. */
static double call_ns(const Machine *m, const Item *it)
{
    int64_t  meets = func_phases(it->kernel->flat);
    uint64_t bytes = 0, again = 0;

    for (uint32_t k = 0; k < it->nin; k++) {
        bytes += it->in[k].slot->bytes;
        again += bytes_again(it->in[k].slot, meets);
    }
    for (uint32_t k = 0; k < it->nout; k++)
        bytes += it->out[k].slot->bytes;
    double work = work_ns(m, (double)it->kernel->macs, (double)bytes);
    double stream = (double)(meets - 1) * again_ns(m, (double)again);
    work = work > stream ? work : stream;
    return work > it->kernel->by_cells ? work : it->kernel->by_cells;
}

/* What a second thread saves in a run, in nanoseconds, with all barriers counted. */
static double saved_ns(const Machine *m, const ItemList *items);

/* ... of a loop whose rounds threads divide: the one with more of them keeps the other waiting. */
static double rounds_save(const Machine *m, const Item *loop)
{
    int64_t n = idx_usual(loop->rounds);
    double  round = 0;

    for (uint32_t i = 0; i < loop->then.n; i++)
        if (loop->then.at[i]->kind == ITEM_CALL)
            round += call_ns(m, loop->then.at[i]);
    return second_thread_saves(m, 2 * (double)(n / 2) * round, 1);
}

static double saved_ns(const Machine *m, const ItemList *items)
{
    double ns = 0;

    for (uint32_t i = 0; i < items->n; i++) {
        const Item *it = items->at[i];

        switch (it->kind) {
        case ITEM_IF: ns += saved_ns(m, &it->then) + saved_ns(m, &it->other); break;
        case ITEM_WHILE: ns += (double)limit_unknown_rounds(m) * saved_ns(m, &it->then); break;
        case ITEM_LOOP:
            ns += it->divided ? rounds_save(m, it)
                              : (double)idx_usual(it->rounds) * saved_ns(m, &it->then);
            break;
        case ITEM_CALL:
            if (func_is_parallel(it->kernel->flat))
                ns += second_thread_saves(m, call_ns(m, it), func_phases(it->kernel->flat));
            break;
        case ITEM_COPY:
        case ITEM_UPDATE:
        case ITEM_BIND: break;
        }
    }
    return ns;
}

bool worth_threads(const Program *p)
{
    Machine m = machine_of(p->kernels->target);

    return !p->device && worth_launch(&m, saved_ns(&m, &p->items));
}

/* ---- rounds --------------------------------------------------------------------------------------- */

/* Rounds are many, calls and copies, and worth it. */
static bool divides(const Program *p, const Machine *m, const Item *loop)
{
    int64_t n;

    if (p->open || p->device || p->kernels->target->no_threads || !idx_is_const(loop->rounds, &n) ||
        n < 2 || n < m->cores)
        return false;
    for (uint32_t i = 0; i < loop->then.n; i++)
        if (loop->then.at[i]->kind != ITEM_CALL && loop->then.at[i]->kind != ITEM_COPY)
            return false;
    return rounds_save(m, loop) > (double)n * saved_ns(m, &loop->then);
}

/* Memory whose life is within one round. */
static void own_slots(Program *p, const Item *loop)
{
    uint32_t from = loop->then.at[0]->at, to = loop->then.at[loop->then.n - 1]->at;

    for (uint32_t i = 0; i < p->slots.n; i++) {
        Slot *s = p->slots.at[i];

        if (!s->in && s->place == PLACE_ARENA && from <= s->first && s->last <= to)
            s->own = true;
    }
}

void divide_rounds(Program *p)
{
    Machine m = machine_of(p->kernels->target);

    for (uint32_t i = 0; i < p->items.n; i++) {
        Item *it = p->items.at[i];

        if (it->kind != ITEM_LOOP || !it->then.n || !divides(p, &m, it))
            continue;
        it->divided = true;
        own_slots(p, it);
    }
}
